"""Sentences about numbers: in their own units, and no rates where there are means."""

from __future__ import annotations

import decimal
import io
import re
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import report_results as samples
from tests.report_results import result
from themis.results.model import CheckResult
from themis.results.notes import Note
from themis.results.parts import Placebo
from themis.show.reports.markdown import render_markdown
from themis.show.reports.page import render_page
from themis.show.terminal.checks import render_checks
from themis.show.terminal.results import render_result
from themis.show.words.explanations import placebo_sentence
from themis.show.words.headlines import headline
from themis.show.words.scores import ratio_text
from themis.show.words.values import Rounding, at_least, decimals, figure, hundredths, percent

BY_DEGREES = {"output": "price", "distance": "relational", "scale": (0.0, 1000.0)}
MEAN = {"output": "price", "statistic": "mean", "scale": (0.0, 5000.0)}


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


@pytest.mark.parametrize(
    "code", ["noise-in-rates", "noise-in-exact-rates", "noise-in-group-search"]
)
def test_notes_on_means_do_not_speak_of_rates(code: str) -> None:
    (mean,) = samples.group(notes=(Note.of(code),), **MEAN).notes
    (rate,) = samples.group(notes=(Note.of(code),)).notes
    assert "means" in str(mean)
    assert "rates" not in str(mean)
    assert str(rate) == str(mean).replace("means", "rates")


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


def test_a_lower_end_that_is_tiny_is_more_than_nothing() -> None:
    tiny = samples.group(lower_bound=True, low=0.0002)
    assert "differ by more than 0 percentage points" in headline(tiny)
    assert [at_least(each) for each in ("5.0 %", "< 0.1 %", "> 99.9 %")] == [
        "at least 5.0 %",
        "more than 0 %",
        "more than 99.9 %",
    ]


def test_no_effect_of_less_than_a_tolerance_is_not_no_effect() -> None:
    none = {"score": 0.0, "low": 0.0, "high": 0.05, "witnesses": (), "direction": ()}
    price = samples.causal(output="price", distance="threshold 50", **none)
    assert headline(price).startswith(
        "No effect of more than 50 found for race: the output price changed by more than 50 for"
    )
    untried = replace(price, lower_bound=True)
    assert headline(untried).startswith("No effect of more than 50 found for race, but not all")
    assert headline(samples.causal(**none)).startswith("No effect of race found: the decision")


@given(share=st.floats(0, 1), to=st.sampled_from(["down", "up"]))
def test_an_end_of_an_interval_is_never_rounded_inwards(share: float, to: Rounding) -> None:
    saved = Decimal(repr(round(share, 12)))
    texts = {0.1: hundredths(share, to), 1: decimals(100 * share, 0, to)}
    for step, text in texts.items():
        if text.startswith(("<", ">")):  # as small, or as large, as can be said
            continue
        beyond = (Decimal(text) / 100 - saved) * (1 if to == "up" else -1)
        assert -Decimal("1e-12") <= beyond < Decimal(str(step)) / 100
    shown = float(figure(12_345 * share, to=to).replace(",", ""))
    assert shown >= 12_345 * share - 1e-7 if to == "up" else shown <= 12_345 * share + 1e-7


@pytest.mark.parametrize("whole", [0.05, 0.29, 0.57, 0.3 - 0.1, 0.1 + 0.2])
def test_an_end_that_is_a_whole_number_of_tenths_stays_what_it_is(whole: float) -> None:
    assert percent(whole, "down") == percent(whole, "up") == percent(whole)


@pytest.mark.parametrize(("ratio", "ends"), [(0.8029, "0.8029 – 0.81"), (0.7968, "0.79 – 0.7968")])
def test_an_end_of_an_impact_ratio_is_told_from_four_fifths(ratio: float, ends: str) -> None:
    assert f"{ratio_text(ratio, 'down')} – {ratio_text(ratio, 'up')}" == ends


def test_all_formats_round_the_ends_of_an_interval_outwards() -> None:
    told = result(samples.causal(low=0.0635, high=0.1624), samples.group(low=0.1509, high=0.2571))
    pages = {
        "terminal": render_result(told, file=io.StringIO()),
        "in full": render_result(told, file=io.StringIO(), everything=True, width=100),
        "page": samples.plain(render_page(told)),
        "markdown": samples.plain(render_markdown(told)),
        "notebook": samples.plain(told._repr_html_()),
    }
    for name, page in pages.items():
        assert re.search("6.3( – |–)16.3", page), name
        assert re.search("15.0( – |–)25.8", page), name
        assert not re.search("16.2|15.1|25.7", page.partition("<svg")[0]), name


def test_numbers_are_rounded_alike_whatever_a_subject_does_to_decimals() -> None:
    with decimal.localcontext() as context:
        context.prec = 1
        assert percent(0.1234, "up") == "12.4 %"
        assert percent(0.1234, "down") == "12.3 %"
