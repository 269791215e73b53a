"""Sentences about numbers: in their own units, and no rates where there are means."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import themis
from tests import report_results as samples
from themis.audit.notes import mostly_same
from themis.results.model import CheckResult
from themis.results.notes import Note
from themis.results.parts import Group, Naming, Placebo, Witness
from themis.show.reports.annex import render_annex
from themis.show.reports.ci import findings
from themis.show.reports.markdown import render_markdown
from themis.show.reports.page import render_page
from themis.show.reports.scores import details
from themis.show.terminal.checks import render_checks
from themis.show.terminal.parts import make_console, render
from themis.show.terminal.scores import rates_table
from themis.show.words.explanations import placebo_sentence
from themis.show.words.headlines import headline
from themis.show.words.scores import how_sure_together
from themis.show.words.values import at_least, told_apart
from themis.show.words.wording import Wording

BY_DEGREES = {"output": "price", "distance": "relational", "scale": (0.0, 1000.0)}
MEAN = {"output": "price", "statistic": "mean", "scale": (0.0, 5000.0)}
CUSTOMERS = Wording(Naming(people="customers"))


def test_noise_of_an_output_by_degrees_is_no_share_of_people() -> None:
    noisy = samples.causal(placebo=Placebo(0.02, 0.0, 0.031))
    assert placebo_sentence(noisy) == (
        "noise alone gives 0.020: with nothing changed, for 2.0 % of test inputs the decision "
        "changes (between 0 % and 3.1 %)"
    )
    priced = samples.causal(placebo=Placebo(0.02, 0.0, 0.031), **BY_DEGREES)
    assert placebo_sentence(priced).endswith(
        "with nothing changed, on average the output price changes by 2.0 % of its scale from 0 "
        "to 1,000 (between 0 % and 3.1 %)"
    )


def test_people_whose_values_are_changed_are_named_before() -> None:
    said = headline(samples.causal(**BY_DEGREES), CUSTOMERS)
    assert "from 0 to 1,000 for test customers when only their race is changed" in said
    assert "from 0 to 1,000 when only race is changed" in headline(samples.causal(**BY_DEGREES))


def test_what_holds_together_are_means_where_no_rates_were_measured() -> None:
    both = (samples.causal(family=2), samples.group(family=2, **MEAN))
    assert str(how_sure_together(samples.result(*both))).startswith(
        "Both scores and their groups' means hold together"
    )
    rates = samples.result(samples.group(family=1))
    assert str(how_sure_together(rates)).startswith("The score and its groups' rates hold")
    (note,) = samples.group(
        notes=(Note.of("groups-not-listed", groups=90, listed=9),), **MEAN
    ).notes
    assert "the 9 with the lowest and highest means are listed" in str(note)


@pytest.mark.parametrize(
    "code", ["noise-in-rates", "noise-in-exact-rates", "noise-in-group-search"]
)
def test_notes_on_means_do_not_speak_of_rates(code: str) -> None:
    (mean,) = samples.group(notes=(Note.of(code),), **MEAN).notes
    (rate,) = samples.group(notes=(Note.of(code),)).notes
    assert "means" in str(mean)
    assert "rates" not in str(mean)
    assert str(rate) == str(mean).replace("means", "rates")


def test_low_means_do_not_make_people_treated_alike() -> None:
    groups = (
        Group({"race": "a"}, 0.01, 0.01, 0.01, 100),
        Group({"race": "b"}, 0.03, 0.03, 0.03, 100),
    )
    rates = samples.group(groups=groups)
    assert [note.code for note in mostly_same([rates])] == ["mostly-same"]
    assert not list(mostly_same([samples.group(groups=groups, **MEAN)]))


UNITS = {
    "exact-score": ({"score": 0.02006}, "2.006 %", "2.006 points", "100.3"),
    "estimated-score": ({"score": 0.2}, "20 %", "20 points", "1,000"),
    "score-between": ({"low": 0.1, "high": 0.2}, "and 20.0 %", "and 20.0 points", "500 and 1,000"),
    "noise-in-score": ({"high": 0.031}, "a score of 3.1 %", "of 3.1 points", "of 155"),
    "noise-in-finding": ({"explains": 0.01, "floor": 0.02}, "2.0 % are", "2.0 points", "100 are"),
    "accepted-up-to": ({"against": ["race"], "max_score": 0.05}, "5 %", "5 points", "250"),
    "above-baseline": ({"high": 0.31}, "31.0 %", "31.0 points", "1,550"),
    "not-above-baseline": (
        {"low": 0.166, "high": 0.263},
        "(16.6 to 26.3 %)",
        "(16.6 to 26.3 points)",
        "(830 to 1,315)",
    ),
}


@pytest.mark.parametrize("code", UNITS)
def test_a_note_has_the_unit_of_what_it_is_about(code: str) -> None:
    values, *expected = UNITS[code]
    kinds = (
        {"measure": "causal"},
        {"measure": "group"},
        {"measure": "group", "statistic": "mean", "scale": (0.0, 5000.0)},
    )
    for kind, said in zip(kinds, expected, strict=True):
        check = CheckResult(
            name="one",
            against=("race",),
            search=False,
            max_score=0.1,
            confidence=0.99,
            verdict="violated",
            reasons=(Note.of(code, **values),),
            **kind,
        )
        assert said in check.reason


def test_a_confidence_is_never_rounded_up_to_certainty() -> None:
    assert "at 99.5% (" in str(samples.causal(confidence=0.995))
    assert "at 99% (" in str(samples.causal(confidence=0.99))


def test_a_check_of_means_shows_its_limit_in_the_units_of_the_output() -> None:
    result = samples.checked(samples.result(samples.group()))
    kept = replace(result.checks[0], measure="group", search=False, against=("race",))
    mean = replace(kept, name="by race at most 0.02", max_score=0.02, statistic="mean")
    mean = replace(mean, scale=(0.0, 5000.0))
    for width in (80, 40):
        shown = render_checks(replace(result, checks=(mean,)), width=width)
        assert "(the limit is 100)" in " ".join(shown.split())
        assert "the limit is" not in render_checks(replace(result, checks=(kept,)), width=width)


def test_means_are_among_so_many_and_rates_of_them() -> None:
    def shown(**changes: Any) -> str:
        table = rates_table(samples.group(**changes), width=80)
        return render([table], make_console(width=80))

    assert " of 700 " in shown()
    assert " among 700 " in shown(**MEAN)


PRICES = Witness(({"race": "green"}, {"race": "purple"}), (1259.1000000000001, 1856.714285714286))


def test_outputs_of_a_pair_have_ten_digits_unless_that_hides_the_difference() -> None:
    assert told_apart(PRICES.outputs) == ["1259.1", "1856.714286"]
    assert told_apart((0.1, 0.10000000000000002)) == ["0.1", "0.10000000000000002"]
    assert told_apart(("yes", True, 3)) == ["yes", "true", "3"]
    result = samples.result(samples.causal(witnesses=(PRICES,)))
    for text in (render_page(result), render_markdown(result), result._repr_html_()):
        assert "1856.714286" in text
        assert "1856.7142857" not in text


def test_of_prices_none_is_the_favoured_one() -> None:
    prices = samples.causal(witnesses=(PRICES,), direction=(), output="price")
    decisions = samples.causal()
    page = samples.plain(render_page(samples.result(prices)))
    assert "The one with the higher output comes first." in page
    assert "favoured one" not in page
    assert "The favoured one comes first." in samples.plain(render_page(samples.result(decisions)))
    both = samples.plain(render_page(samples.result(prices, decisions)))
    assert "of numbers, the one with the higher output" in both


def test_distances_are_in_words() -> None:
    (first, *_) = details(samples.causal(**BY_DEGREES))
    assert first == "how far numbers are apart, as a share of the scale"
    (first, *_) = details(samples.causal(distance="threshold 100"))
    assert first == "numbers that differ by more than 100"


def test_a_lower_end_that_is_tiny_is_more_than_nothing() -> None:
    tiny = samples.group(lower_bound=True, low=0.0002)
    assert "differ by more than 0 percentage points" in headline(tiny)
    assert [at_least(each) for each in ("5.0 %", "< 0.1 %", "> 99.9 %")] == [
        "at least 5.0 %",
        "more than 0 %",
        "more than 99.9 %",
    ]


def test_sentences_of_annotations_begin_with_capitals() -> None:
    (found,) = findings(samples.result(samples.group()))
    assert ". Highest rate: " in found.text


def test_markdown_escapes_digits_only_where_they_begin_a_line() -> None:
    named = Naming(name="1. model")
    result = samples.result(samples.causal(method="exact"), report=named)
    text = render_markdown(result)
    assert text.startswith("## Themis: 1. model")
    assert "<sub> " not in text


def test_rates_above_a_cut_are_no_shares_of_a_scale() -> None:
    rates = {"distance": "relational", "scale": (-50.0, 50.0), "output": "price"}
    for favours, said in (
        ("more than 20000000000000", ": favourable is more than 20000000000000"),
        ("more than -1.5", ": favourable is more than -1.5"),
        ("2, 3", ": favourable is 2, 3"),
        (None, ""),
    ):
        score = samples.group(favours=favours, **rates)
        assert list(details(score)) == [f"difference of rates{said}"]
        for render_it in (render_page, render_annex):
            page = samples.plain(render_it(samples.result(score)))
            assert f"ifference of rates{said}" in page
            assert "on a scale from -50" not in page
    assert "on a scale from 0 to 5,000" in list(details(samples.group(**MEAN)))


def test_no_effect_of_less_than_a_tolerance_is_not_no_effect() -> None:
    none = {"score": 0.0, "low": 0.0, "high": 0.05, "witnesses": (), "direction": ()}
    price = samples.causal(output="price", distance="threshold 50", **none)
    assert headline(price).startswith(
        "No effect of more than 50 found for race: the output price changed by more than 50 for"
    )
    untried = replace(price, lower_bound=True)
    assert headline(untried).startswith("No effect of more than 50 found for race, but not all")
    assert headline(samples.causal(**none)).startswith("No effect of race found: the decision")


def test_cuts_that_differ_in_their_last_digit_are_told_apart() -> None:
    schema = themis.Schema(sex=["f", "m"], age=range(3))
    for cut in (1_234_567, 1_234_568):
        price = themis.Output(min=0, max=2e6, cut=cut, distance="relational")
        scores = themis.Audit(lambda person: 1_234_568, schema, outputs=price).score([["sex"]])
        assert f"more than {cut}" in [getattr(each, "favours", None) for each in scores.scores]
