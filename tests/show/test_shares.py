"""Does every share that is shown say what it rests on?"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import themis
from tests import report_results as samples
from themis.results.model import CausalScore, GroupScore
from themis.results.parts import Harm
from themis.show.reports.markdown import render_markdown
from themis.show.reports.page import render_page
from themis.show.terminal.results import render_result
from themis.show.words.explanations import change_sentence, region_sentence
from themis.show.words.headlines import headline
from themis.show.words.scores import method
from themis.show.words.searches import harms
from themis.show.words.units import ends_of
from themis.show.words.values import figure, percent_sure, share_text
from themis.show.words.verdicts import overview
from themis.show.words.wording import PLAIN
from themis.statistics.proportions import anytime_interval

LARGE = themis.Schema(
    race=["green", "purple"], sex=["f", "m"], savings=range(1_000), income=range(10**6)
)


def loan(table: themis.InputTable) -> Any:
    return table["savings"] > np.where(table["race"] == "green", 500, 650)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ((3 / 26, 3, 26, 0.02, 0.3), "3 of 26"),
        ((0.0, 0, 99, 0.0, 0.1), "0 of 99"),
        ((0.25, 25, 100, 0.15, 0.37), "25.0 % (15.0 – 37.0 %)"),
        ((0.0, 0, 200, 0.0, 0.023), "0 % (at most 2.3 %)"),
        ((0.0, 0, 20_000, 0.0, 0.0004), "0 % (below 0.1 %)"),
        ((0.25, 25, 100), "25.0 %"),  # nothing was estimated
        ((0.25, 3, 26), "25.0 %"),  # those that were counted weigh differently
        ((0.25, None, 26), "25.0 %"),  # of an earlier version
    ],
)
def test_a_share_of_few_is_shown_as_counts_and_others_with_ends(given: Any, shown: str) -> None:
    assert share_text(*given) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (15_812.4, "15,810"),
        (1_170_000.0, "1,170,000"),
        (4.5e9, "4,500,000,000"),
        (-81_430.0, "-81,430"),
        (99_999.0, "100,000"),
        (1_234.4, "1,234"),
        (0.062_54, "0.06254"),
        (0.000_123, "0.000123"),
        (0.0, "0"),
        (123e12, "123,000,000,000,000"),
        (1.5e15, "1.5e+15"),
        (1.5e-5, "1.5e-05"),
    ],
)
def test_numbers_have_four_digits_and_no_powers_of_ten(number: float, shown: str) -> None:
    assert figure(number) == shown


def test_means_are_written_out_and_called_means() -> None:
    score = samples.group(statistic="mean", scale=(0.0, 1_300_000.0), impact_ratio=None)
    result = samples.result(score)
    (harm,) = harms(score, most=1)
    shown = [render_result(result), render_page(result), render_markdown(result), harm]
    for each in shown:
        assert not re.search(r"\de\+\d", each)
    for each in (shown[0], harm):
        assert "highest mean" in each
        assert "highest rate" not in each
    assert "%" not in harm


def test_scales_and_tolerances_keep_their_digits() -> None:
    score = samples.causal(distance="threshold 1.23457e+06")
    assert "changes by more than 1,234,570 when" in headline(score)
    none = samples.causal(distance="threshold 5", score=0.0, low=0.0, high=0.02)
    assert "the output changed by more than 5 for none of 702 test inputs" in headline(none)
    exact = replace(none, method="exact", high=0.0)
    assert headline(exact).startswith("The output never changes by more than 5 when only race")
    assert "no difference found for race (none by more than 5)" in overview([exact], PLAIN).lower()
    within = replace(exact, counterfactuals="within", population="rows")
    assert "differs only in race but whose output differs by more than 5 (" in headline(within)
    assert ends_of((0.0, 12_345_678_900.0)) == "0 to 12,345,678,900"


def test_directions_of_a_sampled_score_have_counts_and_ends_that_fit_them() -> None:
    score = themis.Audit(themis.batch(loan), LARGE, seed=1).causal("race")
    (harm,) = score.direction
    assert harm.lost_count == round(harm.lost * harm.contexts) > 0
    assert harm.gained_count == 0 == harm.gained_low
    ends = anytime_interval(harm.lost_count, harm.lost_count, harm.contexts, score.confidence)
    assert (harm.lost_low, harm.lost_high) == (ends.low, ends.high)
    assert harm.lost_low is not None
    assert harm.lost_low < 0.15 < ends.high  # the truth
    assert f"({100 * harm.lost_low:.1f} – " in change_sentence(harm)


def test_directions_of_a_whole_domain_are_exact_and_have_counts() -> None:
    schema = themis.Schema(race=["green", "purple"], savings=range(26))
    audit = themis.Audit(lambda p: p["savings"] > (5 if p["race"] == "green" else 8), schema)
    (harm,) = audit.causal("race").direction
    assert (harm.lost_count, harm.gained_count, harm.contexts, harm.lost_low) == (3, 0, 26, None)
    assert "3 of 26 lose the favourable decision, 0 of 26 gain it" in change_sentence(harm)


def test_people_who_weigh_differently_are_not_shown_as_counts() -> None:
    schema = themis.Schema(race=["green", "purple"], savings=range(26))
    audit = themis.Audit(lambda p: p["savings"] > (5 if p["race"] == "green" else 8), schema)
    rows = {"race": ["green"] * 4, "savings": [3, 6, 7, 20], "w": [1, 5, 1, 1]}
    result = audit.apparent(rows, "race", weights="w", measures=["causal"], only_data=True)
    harm = next(s for s in result.scores if isinstance(s, CausalScore) and s.direction).direction[0]
    assert (harm.lost, harm.lost_count) == (0.75, 2)
    assert "75.0 % lose the favourable decision, 0 % gain it" in change_sentence(harm)


def test_regions_say_on_how_much_they_rest() -> None:
    score = themis.Audit(themis.batch(loan), LARGE, seed=1, error=0.02).causal("race")
    region = replace(score.regions[0], loses=None)  # of all directions
    assert region.inside == round(region.coverage * region.flips)
    assert region.residents is not None
    assert region.inputs is not None
    assert region.residents / region.inputs == pytest.approx(region.share)
    assert region.share_low is not None
    assert region.share_high is not None
    assert region.share_low < region.share < region.share_high
    few = replace(region, flips=40, inside=20, coverage=0.5, inputs=50, residents=5, share=0.1)
    assert "20 of 40 changes" in region_sentence(few, score)
    assert "among 5 of 50 test inputs" in region_sentence(few, score)


def test_each_group_states_its_own_number_of_tests() -> None:
    schema = themis.Schema(
        race=["green", "purple", "blue", "red"], savings=range(1_000), income=range(10**6)
    )

    def decide(table: themis.InputTable) -> Any:
        limits = {"green": 200, "purple": 500, "blue": 510, "red": 900}
        return table["savings"] > np.array([limits[each] for each in table["race"].tolist()])

    result = themis.Audit(themis.batch(decide), schema, seed=2, error=0.02).score(
        [["race"]], ["group"]
    )
    (score,) = result.scores
    assert isinstance(score, GroupScore)
    tests = {group.samples for group in score.groups}
    assert len(tests) > 1  # a group in the middle is left as soon as it can't be an extreme one
    assert f"{min(tests):,} to {max(tests):,} test inputs in a group" in method(score)
    shown, page = render_result(result), render_page(result)
    for group in score.groups:
        assert f"of {group.samples:,}" in shown
        assert f"{group.samples:,} test inputs" in page


def test_a_direction_of_an_earlier_version_is_shown_as_before() -> None:
    harm = Harm({"race": "green"}, {"race": "purple"}, 0.113, 0.0, 1_404)
    sentence = "green → purple: 11.3 % lose the favourable decision, 0 % gain it"
    assert change_sentence(harm) == sentence


@pytest.mark.parametrize(
    ("confidence", "shown"),
    [(0.99, "99"), (0.9975, "99.75"), (0.99875, "99.875"), (1 - 0.01 / 11, "99.909"), (0.5, "50")],
)
def test_a_confidence_has_few_digits_and_is_never_more_than_it_is(
    confidence: float, shown: str
) -> None:
    assert percent_sure(confidence) == shown
    assert float(shown) <= 100 * confidence + 1e-9
