"""Sentences about one of several outputs, about small groups, and where nothing was found."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import themis
from tests import report_results as samples
from themis.results.comparison import ScoreDifference
from themis.results.model import GroupScore, Result
from themis.results.notes import Ending, Note
from themis.results.parts import Group, Joint, Naming, Noise, Region, TestedSet, Witness
from themis.results.quantities import Bounds, Quantity
from themis.results.saved import result_from_dict
from themis.results.withheld import withheld, withheld_check
from themis.show.reports.ci import findings, render_junit
from themis.show.reports.page import render_page, whole_clauses
from themis.show.reports.sarif import render_sarif
from themis.show.reports.scores import interval, rate_interval
from themis.show.terminal.checks import render_checks
from themis.show.terminal.parts import Scale, indented, make_console, render
from themis.show.terminal.results import interval_text
from themis.show.terminal.scores import pairs_table, rates_table
from themis.show.terminal.searches import show_people
from themis.show.words.comparisons import bounds_text, quantity_text
from themis.show.words.explanations import (
    change_sentence,
    flip_rate_sentence,
    joint_sentences,
    lift_text,
    losing_sentences,
    noise_warning,
    probe_sentence,
    region_sentence,
)
from themis.show.words.headlines import compared, headline
from themis.show.words.scores import impact, seen
from themis.show.words.searches import (
    check_interval,
    check_point,
    checks_guarantee,
    guarantee,
    search_headline,
)
from themis.show.words.values import percent
from themis.show.words.verdicts import how_to_read, overview, verdict
from themis.show.words.wording import Wording, is_drawn

APPROVAL = Wording(Naming(decision="approval"))


def test_the_word_for_the_decision_is_not_used_of_other_outputs() -> None:
    score = samples.causal(output="limit", distance="threshold 100")
    lost = change_sentence(score.direction[0], APPROVAL, score.output)
    assert "6.6 % lose a favourable output of limit, 1.0 % gain it" in lost
    assert "approval" not in " ".join(losing_sentences(score, APPROVAL, most=1))
    assert flip_rate_sentence(score).endswith("alters 11.0 % of outputs of limit by more than 100")
    assert flip_rate_sentence(samples.causal()).endswith("alters 11.0 % of decisions")
    assert "lose approval" in change_sentence(score.direction[0], APPROVAL)


def test_cards_name_the_output_and_show_no_limit_of_another() -> None:
    scores = (samples.group(output="limit"), samples.causal(output="limit"))
    result = replace(samples.result(*scores), report=APPROVAL.naming)
    check = samples.checked(result).checks[0]
    other = replace(check, against=("race",), search=False, measure="causal", output="granted")
    page = samples.plain(render_page(replace(result, checks=(other,))))
    assert "get a favourable output of limit" in page
    assert "get approval" not in page
    assert "different limit limit" not in " ".join(page.split())


def test_an_interval_of_means_has_both_ends_and_a_space() -> None:
    mean = samples.group(statistic="mean", scale=(0.0, 5000.0), low=0.07, high=0.16)
    assert interval_text(mean).plain == "350 – 800"
    close = replace(mean, low=0.070001, high=0.070002)
    assert interval_text(close).plain == "350 – 350"
    assert interval_text(samples.group()).plain == "15.0 – 25.0 points"


def test_a_group_that_is_too_small_to_judge_decides_nothing_about_four_fifths() -> None:
    groups = (
        Group({"race": "green"}, 1.0, 1.0, 1.0, 1, few=True),
        Group({"race": "purple"}, 0.5, 0.5, 0.5, 90),
        Group({"race": "blue"}, 0.45, 0.45, 0.45, 90),
    )
    ratio = {"impact_ratio": 0.45, "impact_ratio_low": 0.45, "impact_ratio_high": 0.45}
    small = samples.group(groups=groups, **ratio)
    assert str(impact(small)).endswith("so the four-fifths rule is not applied")
    judged = replace(small, groups=(replace(groups[0], few=False), *groups[1:]))
    assert "does not meet the four-fifths rule" in str(impact(judged))


def test_means_and_rates_of_one_output_can_be_told_apart() -> None:
    rate = samples.group(output="limit")
    mean = samples.group(output="limit", statistic="mean", scale=(0.0, 5000.0))
    bounds = Bounds(0.15, 0.25, 0.01, 0.2)
    texts = []
    for each in (rate, mean):
        about = Quantity.of(each)
        name = quantity_text(ScoreDifference(about, "no significant change", bounds, bounds))
        texts.append((name, bounds_text(bounds, about)))
    assert texts == [
        ("group race of limit", "15.0 – 25.0 points"),
        ("group race of limit, means", "750 – 1,250"),
    ]
    cases = render_junit(samples.result(rate, mean))
    assert 'name="race: limit"' in cases
    assert 'name="race: limit, means"' in cases


def test_nothing_is_claimed_of_a_list_that_is_empty() -> None:
    search = replace(samples.small_search().searches[0], found=(), stopped=Ending.NOISE)
    assert "is shown to change" in search_headline(search)
    assert "exact" not in search_headline(search)
    assert guarantee(search) == "Nothing is certain about any set."
    ended = guarantee(replace(search, stopped=Ending.BUDGET, sets_open=2))
    assert ended.startswith("Nothing is known about the 2 combinations not checked")


def test_the_head_of_bars_is_never_cut() -> None:
    scale = Scale(("0 to 100 %, ┃ 10 %", "┃ 10 %"))
    shown = [render([scale], make_console(width=width)).strip() for width in (20, 8, 4)]
    assert shown == ["0 to 100 %, ┃ 10 %", "┃ 10 %", ""]


def test_checks_and_searches_of_means_are_in_the_units_of_the_output() -> None:
    mean = {"statistic": "mean", "scale": (0.0, 5000.0), "output": "limit"}
    ends = {"low": 0.15, "high": 0.25, "max_score": 0.1, "score": 0.2}
    check = replace(samples.checked(samples.result(samples.group())).checks[0], measure="group")
    check = replace(check, **ends, **mean)
    assert (check_point(check), check_interval(check)) == ("1,000", "750 – 1,250")
    found = replace(samples.result(samples.group(**mean)), checks=(check,))
    for text in (render_checks(samples.saved(found)), render_page(found), render_junit(found)):
        assert "points" not in text.replace("percentage points", "")  # of the glossary
    assert "The limit is 500." in render_junit(found)
    search = replace(samples.small_search().searches[1], measure="group", threshold=0.1, **mean)
    assert "differ by more than 500" in search_headline(search)
    assert "above 500" in guarantee(search)
    rates = replace(check, statistic="rate")
    assert (check_point(rates), check_interval(rates)) == ("20.0 points", "15.0 – 25.0 points")


GROUPS = (
    Group({"race": "green"}, 1.0, 1.0, 1.0, 1, few=True, people=1),
    Group({"race": "purple"}, 0.5, 0.5, 0.5, 90, people=90),
    Group({"race": "blue"}, 0.45, 0.45, 0.45, 90, people=90),
)
EXACT = {"method": "exact", "population": "rows", "score": 0.55, "low": 0.55, "high": 0.55}


def test_a_headline_that_rests_on_one_person_names_the_difference_without_them() -> None:
    score = samples.group(groups=GROUPS, **EXACT)
    without = "5.0 points without groups of too few people to judge"
    assert f"differ by race (55.0 points; {without})" in overview([score], Wording())
    assert (
        "the lowest and highest of 3 groups of race in the rows, and by 5.0 percentage points "
        "without groups of too few people to judge: green (exact" in headline(score)
    )
    page = samples.plain(render_page(samples.result(score)))
    assert "50 of 100" in page
    assert "45 of 100" in page
    assert "100 of 100" not in page
    few = samples.group(groups=GROUPS[:2], **EXACT)
    assert "(55.0 points; it rests on too few people to judge)" in overview([few], Wording())
    unlisted = replace(score, notes=(Note.of("groups-not-listed", groups=900, listed=3),))
    assert "5.0 points without" not in overview([unlisted], Wording())
    many = samples.group(groups=(*GROUPS[1:], replace(GROUPS[0], rate=0.48)), **EXACT)
    assert "differ by race (55.0 points)" in overview([many], Wording())


def test_why_a_set_is_out_is_in_words_and_units() -> None:
    about = {"low": 0.026, "high": 0.183, "contexts": 1404}
    said = "groups differ by 2.6 to 18.3 points (tried on 1,404 inputs)"
    assert str(Note.of("groups-apart", **about)) == said
    assert "by 130 to 915 (tried" in str(Note.of("groups-apart", **about, span=5000.0))
    assert str(Note.of("inputs-flip", flips=26, inputs=314)).endswith(
        "inputs get a different output"
    )
    search = samples.small_search().searches[0]
    superset = (*search.found[0], *(n for n in search.among if n not in search.found[0]))
    assert search.why(*superset).startswith("follows: it contains ")
    named = replace(samples.small_search().searches[1], output="granted")
    assert "rates of favourable outputs of granted" in search_headline(named)
    assert compared(samples.group(output="granted")) == "rates of favourable outputs of granted"


def test_fresh_and_saved_figures_are_rounded_alike() -> None:
    fresh = 9.049999999999999
    assert (lift_text(fresh), lift_text(9.05), lift_text(10.2)) == ("9.1", "9.1", "10")
    share = 0.12849999999999998
    assert percent(share) == percent(round(share, 12))
    region = Region(("income > 40",), 0.5, 0.4, 0.6, 0.0488, 10.2, 140)
    score = samples.causal(regions=(region,))
    assert "10 times their share" in region_sentence(region, score)
    assert ">10 ×<" in samples.plain(render_page(samples.result(score)))


def test_how_to_read_names_what_was_found_and_a_limit_the_output_that_it_is_about() -> None:
    calm = samples.causal(against=("sex",), score=0.0, low=0.0)
    found = samples.result(calm, samples.causal())
    assert "the decision changes with race if" in how_to_read(found)
    scores = (samples.causal(output="granted", score=0.0, low=0.0), samples.causal(output="limit"))
    check = replace(samples.checked(found).checks[0], against=("race",), output="limit")
    behind = verdict(replace(samples.result(*scores), checks=(check,))).behind
    assert behind.startswith("For 11.3 % of test inputs the output limit changes")


def test_a_page_says_in_words_which_rows_were_given() -> None:
    data = {"file": "people.csv", "rows": 60, "used": 50, "dropped": 10, "distinct": 40}
    facts = {"unknown": "keep", "reasons": [], "ignored": ["branch", "name"]}
    result = replace(samples.result(samples.causal(population="rows")), data={**data, **facts})
    page = samples.plain(render_page(result))
    assert "people.csv: 60 rows, 10 do not fit, 50 used, 40 of them different" in page
    assert "branch, name" in page
    assert "Data: " not in page


def test_short_names_leave_room_for_the_values_of_a_pair() -> None:
    shared = {"job": "temporary"}
    pair = Witness(({"race": "green", **shared}, {"race": "purple", **shared}), ("yes", "no"))
    shown = render([pairs_table([pair], 40)], make_console(width=40))
    assert shown.count("temporary") == 2


def _of_two_outputs() -> Result:
    """Checks of the same set of two outputs, both violated."""
    granted = samples.causal(output="granted", low=0.2, score=0.2, high=0.2)
    limit = samples.causal(output="limit", low=0.03, score=0.03, high=0.03, direction=())
    check = replace(
        samples.checked(samples.result(granted)).checks[0],
        against=("race",),
        search=False,
        verdict="violated",
        sets=(),
    )
    checks = [
        replace(check, name=f"causal race of {each.output}", output=each.output, max_score=most,
                score=each.score, low=each.low, high=each.high)
        for each, most in ((granted, 0.1), (limit, 0.01))
    ]  # fmt: skip
    return replace(samples.result(granted, limit), checks=tuple(checks))


def test_a_check_shows_the_people_of_its_own_output() -> None:
    result = _of_two_outputs()
    first, _, second = render_checks(result, width=80).partition("causal race of limit: violated")
    assert "lose a favourable output of granted" in first
    assert "of granted" not in second
    assert first.startswith("Both checks are violated")


def test_findings_of_two_outputs_can_be_told_apart() -> None:
    result = _of_two_outputs()
    found = json.loads(render_sarif(result))["runs"][0]["results"]
    assert len({each["partialFingerprints"]["themisSet/v1"] for each in found}) == 2
    titles = [each.title for each in findings(replace(result, checks=()))]
    assert titles == [
        "causal score of race for granted: 20.0 %",
        "causal score of race for limit: 3.0 %",
    ]
    assert 'message="violated: 20.0 % (exact)"' in render_junit(result)


def test_narrow_tables_break_no_word_of_a_group_and_no_mark_from_its_value() -> None:
    groups = (
        Group({}, 1.0, 1.0, 1.0, 4, few=True),
        Group({"race": "purple"}, 0.5, 0.5, 0.5, 190),
    )
    words = Wording(Naming(people="applicants"))
    score = samples.group(groups=groups, population="profile")
    shown = render([indented(rates_table(score, width=40, words=words))], make_console(width=40))
    assert "applicants" in shown
    assert {"too", "few"} <= set(shown.split())
    sampled = (Group({"job": "permanent"}, 0.778, 0.759, 0.797, 10_644), replace(groups[1]))
    shown = render(
        [indented(rates_table(samples.group(groups=sampled), width=40))], make_console(width=40)
    )
    assert "permanent" in shown
    assert "75.9 % –" in shown  # dropping the bar leaves room for whole numbers
    pair = Witness(({"job": "permanent"}, {"job": "temporarily"}), ("no", "yes"))
    lines = render([indented(pairs_table([pair], 40))], make_console(width=40)).splitlines()
    assert lines[0].endswith("‹temporaril")
    fits = Witness(({"job": "permanent"}, {"job": "temporary"}), ("no", "yes"))
    assert "‹ temporary" in render([indented(pairs_table([fits], 40))], make_console(width=40))


def _few_at_the_top(**changes: Any) -> GroupScore:
    groups = (
        Group({}, 1.0, 1.0, 1.0, 4, few=True, people=4),
        Group({"race": "purple"}, 0.5, 0.5, 0.5, 90, people=90),
        Group({"race": "blue"}, 0.45, 0.45, 0.45, 90, people=90),
    )
    ends = {"score": 0.55, "low": 0.55, "high": 0.55, "method": "exact"}
    return samples.group(**{"groups": groups, "population": "profile", **ends, **changes})


def test_a_search_says_which_sets_rest_on_few_people() -> None:
    search = replace(
        samples.small_search().searches[0], measure="group", found=(("race",),), threshold=0.3,
        minimal_sets=(_few_at_the_top(),), undecided=(), stopped=Ending.DONE,
    )  # fmt: skip
    rests = "; for race this rests on groups of too few people to judge"
    assert search_headline(search).endswith(rests)
    assert rests not in search_headline(replace(search, threshold=0.04))  # others differ as much
    shown = render(show_people(_few_at_the_top(), width=80), make_console(width=80))
    assert "5.0 points without groups of too few people to judge" in " ".join(shown.split())


def test_a_mean_of_few_people_is_not_shown_and_said_not_to_be() -> None:
    kind = {"statistic": "mean", "scale": (0.0, 8000.0), "impact_ratio": None}
    shown = withheld(_few_at_the_top(**kind))
    untold = "a group of fewer than 5 people is further apart, and its mean is not shown"
    assert headline(shown) == (
        f"Mean outputs differ by 400 between blue and purple in the profile; {untold} "
        "(exact: everybody in the profile was run)"
    )
    assert f"({untold})" in overview([shown], Wording())
    assert (interval_text(shown).plain, interval(shown)) == ("not shown", "not shown")
    assert [rate_interval(shown, each) for each in shown.groups] == ["exact", "exact"]
    table = render([rates_table(shown, width=80)], make_console(width=80))
    assert "8,000" not in table
    inside = _few_at_the_top(**kind, score=0.05, low=0.05, high=0.05)
    inside = replace(inside, groups=(replace(inside.groups[0], rate=0.47), *inside.groups[1:]))
    assert "; the mean of a group of fewer than 5 people is not shown (" in headline(
        withheld(inside)
    )
    assert interval(withheld(inside)) == "exact"  # the difference is that of the others
    one = withheld(_few_at_the_top(**kind, groups=inside.groups[:2]))
    assert headline(one) == (
        "Mean outputs differ between groups of race in the profile; how much is not shown, as "
        "only one mean is of 5 people or more"
    )
    check = replace(samples.checked(samples.result(shown)).checks[0], measure="group",
                    against=("race",), low=0.55, high=0.55)  # fmt: skip
    assert check_interval(check) == "exact"
    assert check_interval(withheld_check(check, [_few_at_the_top(**kind)])) == "not shown"


def test_an_empty_list_is_not_described() -> None:
    search = replace(samples.small_search().searches[0], found=(), undecided=())
    assert "listed" not in guarantee(search)
    assert "is missing" in guarantee(search)


def test_means_that_were_seen_are_said_in_their_units() -> None:
    mean = samples.group(statistic="mean", scale=(0.0, 10.0), low=0.0, score=0.2)
    assert ": they differed by 2 in the test" in headline(mean)
    assert seen(replace(mean, score=0.21)).endswith("moved into the interval, to 2.1")


def test_a_search_of_numbers_says_no_false_counts() -> None:
    def price(person: dict[str, Any]) -> float:
        return 200.0 + 3 * person["age"] + (20 if person["sex"] == "f" else 0)

    schema = themis.Schema(sex=["f", "m"], age=range(100), km=range(10_000))
    output = themis.Output(name="price", min=0, max=1000, distance="relational")
    audit = themis.Audit(price, schema, outputs=[output], seed=3)
    (tested,) = audit.search(0.1, among=["sex"]).tested
    assert tested.reason == f"decided by how far outputs differ for {tested.samples} inputs"
    (tested,) = audit.search(0.1, measure="group", among=["sex"]).tested
    assert tested.estimate == pytest.approx(0.02)
    tolerant = themis.Output(name="price", min=0, max=1000, distance="threshold", tolerance=5)
    audit = themis.Audit(price, schema, outputs=[tolerant], seed=3)
    (tested,) = audit.search(0.1, among=["sex"]).tested
    assert tested.reason == f"{tested.samples} of {tested.samples} inputs get a different output"


def test_noise_of_numbers_is_how_far_they_differ() -> None:
    noise = Noise(55, 0, 0.0, 0.0, 0.092, 0.99, average=True)
    said = "55 inputs run again: outputs differ by at most 9.2 % on average (99 % confidence)"
    assert probe_sentence(noise) == said
    clear = replace(samples.result(samples.causal()), noise=noise)
    assert said in " ".join(
        render_page(clear).replace("&nbsp;", " ").replace("\u00a0", " ").split()
    )
    warned = noise_warning(replace(noise, differing=3, rate=0.055, low=0.01))
    assert "outputs of 55 inputs that were run again differ by 5.5 % on average (between" in warned
    graded = themis.Output(name="price", min=0, max=10, distance="relational")
    schema = themis.Schema(sex=["f", "m"], age=range(1000))
    for outputs, average in (([graded], True), (None, False)):
        audit = themis.Audit(lambda p: p["age"] % 10, schema, outputs=outputs)
        audit.causal("sex")
        found = audit.probe.noise(0.99)
        assert found is not None
        assert found.average == average


def test_everybody_of_a_profile_is_not_every_input() -> None:
    search = replace(samples.small_search().searches[0], method="exact", population="profile")
    assert "everybody in the profile was run" in search_headline(search)
    score = samples.causal(population="profile", method="exact", low=0.2, score=0.2, high=0.2)
    checked = samples.checked(samples.result(score))
    said = checks_guarantee(replace(checked, searches=(), scores=(score,)))
    assert "is exact: everybody in the profile was run." in said


def test_draws_from_rows_are_draws() -> None:
    drawn = samples.group(population="rows", method="sampled")
    assert is_drawn(drawn)
    assert not is_drawn(replace(drawn, method="exact"))
    assert not is_drawn(samples.causal(population="rows", method="sampled"))


def test_notes_on_means_are_in_the_units_of_the_output() -> None:
    notes = (Note.of("noise-in-score", high=0.02), Note.of("estimated-score", score=0.3))
    mean = samples.group(statistic="mean", scale=(100.0, 600.0), notes=notes)
    assert [str(each).rpartition(" of this")[0] or str(each) for each in mean.notes] == [
        "the subject does not always decide the same: noise alone may explain a score of 10",
        "estimated at 150",
    ]
    search = replace(samples.small_search().searches[0], measure="group")
    tested = TestedSet(("race",), "above", (Note.of("exact-score", score=0.25),), 30, 0.25)
    mean_search = replace(search, statistic="mean", scale=(0.0, 8.0), tested=(tested,))
    assert mean_search.tested[0].reason == "the difference is 2, counted and not estimated"
    causal = replace(mean_search, measure="causal", tested=(tested,))
    assert causal.tested[0].reason == "its score is 25 %, counted and not estimated"


def test_what_one_change_does_is_counted_where_the_rest_is_estimated() -> None:
    joint = Joint({"race": 0.4, "sex": 0.2}, 0.0, 110, 0, 0.0, 0.068)
    (said,) = joint_sentences(samples.causal(against=("race", "sex"), joint=joint))
    assert "for 44 of 110 already if only race is, for 22 of 110 already if only sex is" in said


def test_a_set_of_two_at_the_end_of_a_list_is_set_apart() -> None:
    early = samples.causal(samples=0, stopped=Ending.BUDGET)
    scores = [replace(early, against=("sex",)), replace(early, against=("race", "sex"))]
    assert overview(scores, Wording()) == "Undecided for sex, and race and sex together"


def test_checks_of_means_of_an_earlier_file_have_the_units_of_their_scores() -> None:
    mean = samples.group(output="limit", statistic="mean", scale=(0.0, 5000.0))
    check = replace(samples.checked(samples.result(mean)).checks[0], measure="group",
                    output="limit", statistic="mean", scale=(0.0, 5000.0))  # fmt: skip
    data = replace(samples.result(mean), checks=(check,)).to_dict()
    assert result_from_dict(data).checks == (check,)
    del data["checks"][0]["statistic"], data["checks"][0]["scale"]
    assert result_from_dict(data).checks == (check,)
    rate = replace(samples.result(samples.group()), checks=(replace(check, output=None),))
    assert result_from_dict(rate.to_dict()).checks == rate.checks


def test_a_long_verdict_ends_with_a_whole_clause() -> None:
    clause = "means of limit differ by sex (100; 20 without groups of too few people to judge)"
    said = whole_clauses("; ".join([clause] * 20))
    assert said.endswith("to judge); more is below")
    assert len(said) < 640
    assert whole_clauses(clause) == clause
    assert whole_clauses("x" * 900).endswith("…")
