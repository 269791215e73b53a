"""Does a difference between two results mean that something changed, and is every rise noticed?"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import themis
from tests import report_results as samples
from tests.projects import Project, process, run
from tests.results.test_checks import SCORE, SEARCHED, check
from themis.audit.checker import run_checks
from themis.results.comparison import beside_baseline, compare
from themis.results.finding import Bounds, Quantity, has_risen, known
from themis.results.model import CausalScore, Result, SearchResult
from themis.results.notes import Ending, Note
from themis.results.parts import TestedSet
from themis.results.verdicts import judge_score, judge_search
from themis.settings import Stopping
from themis.show.words.searches import verdict_words

RACE = Quantity("causal", ("race",))


def result(*scores: CausalScore, **changes: Any) -> Result:
    fields = {
        "seed": 0,
        "subject": {"kind": "python", "fingerprint": "a"},
        "schema": {"inputs": {"race": ["g", "p"], "sex": ["f", "m"]}, "constraints": {}},
    }
    return samples.result(*scores, **{**fields, **changes})


def texts(notes: Iterable[Note]) -> tuple[str, ...]:
    return tuple(map(str, notes))


def between(low: float, high: float, *against: str, **changes: Any) -> CausalScore:
    ends = {"low": low, "high": high, "score": (low + high) / 2}
    return replace(SCORE, against=against or ("race",), **{**ends, **changes})


def searched(*found: tuple[str, ...], below: Any = (), **changes: Any) -> SearchResult:
    """A search at 0.1 ± 0.05 that found some sets and decided others to be below."""
    tested = [TestedSet(each, "above", (), 100) for each in found]
    tested += [TestedSet(each, "below", (), 100) for each in below]
    made = replace(SEARCHED, found=found, tested=tuple(tested), among=("race", "sex"))
    return replace(made, **changes)


def change(before: Result, after: Result, **options: Any) -> str:
    (only,) = compare(before, after, **options).scores
    return only.change


def set_changes(before: SearchResult, after: SearchResult, *scores: CausalScore) -> dict[str, str]:
    """What became of each set."""
    found = compare(result(searches=(before,)), result(*scores, searches=(after,)))
    return {",".join(each.quantity.against): each.change for each in found.sets}


# Scores -----------------------------------------------------------------------------------


def test_equal_exact_scores_are_the_same_although_rounded() -> None:
    third = between(1 / 3, 1 / 3, method="exact", score=1 / 3)
    saved = samples.saved(result(third))
    assert saved.scores[0].low != third.low
    assert change(saved, result(third)) == change(result(third), saved) == "the same"


def test_a_tolerance_silences_rises_and_neither_falls_nor_what_is_the_same() -> None:
    low, high = (result(between(x, x, method="exact")) for x in (0.1, 0.105))
    assert change(low, low, tolerance=0.025) == "the same"
    assert change(high, low, tolerance=0.025) == "fallen"
    assert change(low, high, tolerance=0.025) == "risen, tolerated"
    assert compare(low, high, tolerance=0.01).verdict == "nothing new"
    assert change(result(between(0.3, 0.4)), result(between(0.1, 0.2)), tolerance=0.5) == "fallen"


@settings(deadline=None)
@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=2).map(sorted),
    st.lists(st.floats(0, 1), min_size=2, max_size=2).map(sorted),
)
def test_claims_are_symmetric_and_need_disjoint_intervals(
    first: list[float], second: list[float]
) -> None:
    one, two = result(between(*first)), result(between(*second))
    there, back = change(one, two), change(two, one)
    opposite = {"risen": "fallen", "fallen": "risen"}
    assert back == opposite.get(there, there)
    if there == "risen":
        assert second[0] > first[1]
    elif second[0] > first[1] + 1e-6:
        pytest.fail("a rise was not noticed")


@pytest.mark.parametrize(
    "changes", [{"stopping": Stopping.PAPER}, {"stopped": Ending.NOISE}], ids=["paper", "noise"]
)
def test_intervals_that_need_not_hold_claim_nothing(changes: dict[str, Any]) -> None:
    low, high = between(0.1, 0.2), between(0.5, 0.6, **changes)
    found = compare(result(low), result(high))
    assert found.scores[0].change == "no significant change"
    assert found.verdict == "inconclusive"
    assert found.open


def test_claim_is_as_sure_as_both_intervals_together() -> None:
    sure, unsure = between(0.1, 0.2, confidence=0.99), between(0.5, 0.6, confidence=0.95)
    exact = replace(between(0.5, 0.5), method="exact")
    (difference,) = compare(result(sure), result(unsure)).scores
    assert difference.error == pytest.approx(0.06)
    assert compare(result(sure), result(unsure)).confidence == pytest.approx(0.94)
    (difference,) = compare(result(sure), result(exact)).scores
    assert difference.error == pytest.approx(0.01)


def test_score_of_a_check_is_as_sure_as_the_check_was_asked_to_be() -> None:
    """Its rounds share the error: one that decides was chosen, and claims more than that choice."""
    asked = audit(0.5, confidence=0.9, error=0.2)
    checked = run_checks(asked, [check(0.1, "race")])
    assert {each.confidence for each in (*checked.checks, *checked.scores)} == {0.9}
    searched = run_checks(asked, [check(0.1)]).searches[0]
    assert {each.confidence for each in (searched, *searched.minimal_sets)} == {0.9}
    (difference,) = compare(checked, result(between(0.1, 0.2, confidence=0.995))).scores
    assert difference.error == pytest.approx(0.1 + 0.005)


LIMIT: dict[str, Any] = {"output": "limit", "distance": "relational"}


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        ({}, {"output": "limit"}, "causal race (limit)"),
        ({}, {"population": "rows"}, "causal race (rows)"),
        (
            LIMIT | {"scale": (0.0, 1000.0)},
            LIMIT | {"scale": (0.0, 4000.0)},
            "causal race (limit, relational, 0 to 4,000)",
        ),
    ],
)
def test_scores_of_something_else_are_not_compared(
    before: dict[str, Any], after: dict[str, Any], name: str
) -> None:
    one, other = result(between(0, 0.1, **before)), result(between(0.5, 0.6, **after))
    assert change(one, one) == "no significant change"
    found = compare(one, other)
    assert not found.scores
    assert found.verdict == "inconclusive"
    assert f"{name} was measured after and not before" in texts(found.open)


def test_rise_counts_although_a_budget_ended_and_whatever_the_order_of_names() -> None:
    cut = {"stopped": Ending.BUDGET}
    ended = result(between(0.5, 0.9, "race", "sex", **cut), **cut)
    found = compare(result(between(0, 0.1, "sex", "race")), ended)
    assert found.verdict == "new discrimination"
    assert texts(found.open) == ("after: the budget ended",)
    same = result(between(0.05, 0.9, **cut), **cut)
    assert compare(result(between(0, 0.1)), same).verdict == "inconclusive"


# Minimal sets -----------------------------------------------------------------------------
BELOW = searched(below=[("race",)])  # so it is less than 0.15
FOUND, BOTH = searched(("race",)), searched(("race", "sex"), below=[("race",)])
EXACT = [replace(each, method="exact") for each in (BELOW, FOUND)]
OPEN, PAPER = searched(undecided=(("race",),)), replace(BELOW, stopping=Stopping.PAPER)


@pytest.mark.parametrize(
    ("before", "after", "scores", "changes"),
    [
        (BELOW, FOUND, [between(0.15, 0.25)], {"race": "new"}),
        (BELOW, FOUND, [between(0.14, 0.24)], {"race": "possibly new"}),
        (BELOW, FOUND, [], {"race": "possibly new"}),  # more than 0.05 is all that is known
        (searched(), FOUND, [between(0.5, 0.6)], {"race": "possibly new"}),
        (OPEN, FOUND, [between(0.5, 0.6)], {"race": "possibly new"}),
        (PAPER, FOUND, [between(0.5, 0.6)], {"race": "possibly new"}),
        (*EXACT, [], {"race": "new"}),
        (*EXACT[::-1], [], {"race": "gone"}),
        (FOUND, BOTH, [], {"race": "possibly gone", "race,sex": "already implied"}),
        (BOTH, FOUND, [], {"race": "possibly new", "race,sex": "still implied"}),
    ],
)
def test_set_is_new_only_if_it_was_surely_below_and_surely_rose(
    before: SearchResult, after: SearchResult, scores: list[CausalScore], changes: dict[str, str]
) -> None:
    assert set_changes(before, after, *scores) == changes


def test_undecided_sets_leave_the_answer_open() -> None:
    whole = result(searches=(BELOW,))
    assert compare(whole, whole).verdict == "nothing new"
    assert compare(whole, result(searches=(OPEN,))).verdict == "inconclusive"


# What else differs ------------------------------------------------------------------------
def test_everything_that_differs_is_said() -> None:
    before = result(between(0, 0.1))
    after = replace(
        result(between(0, 0.1, confidence=0.95, error=0.01)),
        seed=7,
        subject={"kind": "python", "fingerprint": "b"},
        schema={"inputs": {"race": ["g", "p", "x"], "age": [1]}, "constraints": {"a": "age > 1"}},
        data={"rows": 3},
    )
    assert texts(compare(before, after).unlike) == (
        "sex was removed from the schema",
        "age was added to the schema",
        "race is described differently",
        "the constraints differ",
        "the given rows differ",
        "the confidence differs: 0.99, then 0.95",
        "the error differs: 0.05, then 0.01",
        "the program changed between the two runs",
        "the seed differs: 0, then 7",
    )
    assert compare(before, before).unlike == ()


# Simulated and real subjects --------------------------------------------------------------
SCHEMA = themis.Schema(
    race=["green", "purple"], sex=["f", "m"], place=themis.Integers(0, 99_999, bins=[50_000])
)


def audit(share: float, sexist: float = 0.0, **settings: Any) -> themis.Audit:
    """Of a subject with these causal scores against race and against sex."""

    def decide(people: Any) -> Any:
        by_race = (people["race"] == "green") & (people["place"] < 100_000 * share)
        by_sex = (people["sex"] == "f") & (people["place"] >= 100_000 * (1 - sexist))
        return (by_race | by_sex).astype(int)

    return themis.Audit(themis.batch(decide), SCHEMA, **settings)


@pytest.mark.slow
def test_unchanged_subject_is_hardly_ever_called_changed() -> None:
    """At 80 % a claim may be wrong in 4 of 10 pairs of runs, at 99 % in 2 of 100."""
    for confidence, error, pairs in ((0.8, 0.1, 80), (0.99, 0.1, 30)):
        claims = narrow = 0
        for pair in range(pairs):
            one, two = (
                audit(0.3, seed=2 * pair + k, confidence=confidence, error=error).score(
                    [["race"]], ["causal"]
                )
                for k in range(2)
            )
            claims += change(one, two) in ("risen", "fallen")
            narrow += abs(one.scores[0].score - two.scores[0].score) > 0.02
        bound = 2 * (1 - confidence)
        allowed = pairs * bound + 3 * np.sqrt(pairs * bound * (1 - bound))
        assert claims <= allowed
        assert narrow > allowed  # comparing numbers by eye would claim a change


def test_unchanged_subject_at_the_threshold_has_no_new_sets() -> None:
    """The score lies at the threshold: one search finds the set, the next may not."""
    settings = {"error": 0.1, "confidence": 0.9}
    runs = [
        audit(0.2, seed=seed, **settings).search_all(0.2, ("causal",), ["race", "sex"])
        for seed in range(12)
    ]
    assert len({each.searches[0].found for each in runs}) > 1
    unsure = {"possibly new", "possibly gone", "already implied", "still implied"}
    for before, after in pairwise(runs):
        assert {each.change for each in compare(before, after).sets} <= unsure


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.floats(0, 0.9), st.floats(0, 0.9), st.integers(0, 9))
def test_claims_about_real_runs_are_true(first: float, second: float, seed: int) -> None:
    before, after = (
        audit(share, seed=seed + k, error=0.05).score([["race"]], ["causal"])
        for k, share in enumerate((first, second))
    )
    claim = change(before, after)
    assert claim != "risen" or second > first
    assert claim != "fallen" or second < first
    if abs(second - first) > 0.2:
        assert claim in ("risen", "fallen")


# The command ------------------------------------------------------------------------------
def subject(gap: int) -> str:
    return f"return 1 if person['income'] >= (30 if person['race'] == 'green' else {gap}) else 0"


def test_new_discrimination_ends_with_1_and_missing_evidence_with_4(project: Project) -> None:
    project(subject(40))
    run("score", "-o", "before.json")
    run("score", "-o", "cut.json", "--max-executions", "30")
    project(subject(80))
    run("score", "-o", "after.json", "--seed", "5")
    done = process("diff", "before.json", "after.json")
    assert (done.returncode, done.stderr) == (1, "")
    shown = " ".join(done.stdout.split())
    assert shown.startswith("A difference has grown: 2 scores have risen")
    assert "causal race Risen" in shown
    assert "causal sex No significant" in shown
    assert "note: the seed differs: 0, then 5" in shown
    assert "Each reported change of a score is false with a chance of at most 2 %." in shown
    back = run("diff", "after.json", "before.json")
    assert back.exit_code == 0
    assert back.stdout.startswith("No difference has grown; 2 scores have fallen; ")
    assert run("diff", "before.json", "after.json", "--tolerance", "0.6").exit_code == 0
    done = run("diff", "before.json", "cut.json")
    assert done.exit_code == 4
    assert done.stdout.startswith("Undecided: no difference was shown to have grown")
    assert "unseen: after: the budget ended" in done.stdout


# Baselines --------------------------------------------------------------------------------
def marked(before: Result, score: CausalScore) -> str | None:
    answer = judge_score(check(0.1, "race"), score, 0.99)
    ending = Ending.BUDGET if score.stopped == Ending.BUDGET else Ending.DONE
    after = result(score, checks=(answer,), command="check", stopped=ending)
    return beside_baseline(after, before).checks[0].baseline


def test_a_baseline_of_another_scale_says_nothing() -> None:
    kind = {"distance": "relational"}
    now = between(0.16, 0.26, scale=(0.0, 1000.0), **kind)
    assert marked(result(replace(now, low=0.15)), now) == "known"
    assert marked(result(replace(now, low=0.15, scale=(0.0, 4000.0))), now) == "undecided"
    means = {"measure": "group", "statistic": "mean", "scale": (0.0, 1000.0)}
    search = searched(("race",), **means)
    answer = judge_search(replace(check(0.1), measure="group"), search, 0.99)
    after = result(searches=(search,), checks=(answer,), command="check")
    for scale, state in (((0.0, 1000.0), "known"), ((0.0, 4000.0), "undecided")):
        before = result(searches=(replace(search, scale=scale),))
        assert beside_baseline(after, before).checks[0].baseline == state


def test_rates_of_other_decisions_are_not_compared() -> None:
    ends = {"low": 0.3, "score": 0.31, "high": 0.32}
    both, one = (samples.group(favours=each, **ends) for each in ("maybe, yes", "yes"))
    before, after = result(both), result(one)
    found = compare(before, after)
    assert not found.scores
    said = "what counts as favourable differs (before: maybe, yes; after: yes), so rates"
    assert any(str(each).startswith(said) for each in found.unlike)
    answer = judge_score(replace(check(0.1, "race"), measure="group"), one, 0.99)
    answer = replace(answer, verdict="violated")
    checked = replace(after, checks=(answer,))
    states = [beside_baseline(checked, e).checks[0].baseline for e in (before, after)]
    assert states == ["undecided", "known"]
    other = replace(one, distance="relational", scale=(0.0, 9.0))  # of pairs, not of rates
    assert [each.change for each in compare(after, result(other)).scores] == [
        "no significant change"
    ]


def test_search_knows_new_sets_from_old_ones_and_from_what_was_undecided() -> None:
    before = run_checks(audit(0.4, seed=1), [check(0.1)])
    after = run_checks(audit(0.4, seed=2), [check(0.1)])
    worse = run_checks(audit(0.3, 0.4, seed=2), [check(0.1)])
    (search,) = before.searches
    undecided = replace(search, found=(), minimal_sets=(), undecided=search.found, tested=())
    unsure = replace(before, scores=(), checks=(), searches=(undecided,))
    for then, now, state, said in (
        (before, after, "known", ""),
        (before, worse, "new", "sex: more than in the baseline"),
        (unsure, after, "undecided", "the baseline could not decide it"),
        (replace(unsure, searches=()), after, "undecided", "it is not in the baseline"),
    ):
        (answer,) = beside_baseline(now, then).checks
        assert (answer.verdict, answer.baseline) == ("violated", state)
        assert said in answer.reason
        assert answer.fails == (state != "known")
    assert verdict_words(answer) == "violated, not decided in the baseline"


CUT, BY_PAPER = {"stopped": Ending.BUDGET}, {"stopping": Stopping.PAPER}
FULL, NEAR = between(0.15, 0.25), between(0.06, 0.16)


@pytest.mark.parametrize(
    ("before", "after", "state"),
    [
        ([between(0.15, 0.25)], between(0.16, 0.26), "known"),
        ([between(0.15, 0.25)], between(0.3, 0.4), "new"),
        ([between(0.05, 0.15)], between(0.12, 0.2), "known"),
        # a baseline excuses only what it measured to the end
        ([], FULL, "undecided"),
        ([between(0, 1, **CUT)], FULL, "undecided"),
        ([between(0.1, 0.3, **BY_PAPER)], FULL, "undecided"),
        ([between(0.0, 0.1, **CUT)], FULL, "new"),
        # where evidence is missing that may be nothing new, but not where the budget ended
        ([between(0.05, 0.15)], NEAR, "known"),
        ([between(0, 0.05)], NEAR, "new"),
        ([], NEAR, "undecided"),
        ([between(0.05, 0.15)], replace(NEAR, **CUT), None),
    ],
)
def test_violation_that_is_no_larger_is_known(
    before: list[CausalScore], after: CausalScore, state: str | None
) -> None:
    assert marked(result(*before), after) == state


CHECKS = '[[checks]]\nagainst = ["race"]\nmax_score = 0.1\n[[checks]]\nsearch = true\n'
CHECKS += "max_score = 0.97\n"


def test_check_beside_a_baseline_fails_only_on_what_is_new(project: Project) -> None:
    project(subject(60), extra=CHECKS)
    assert run("check", "-o", "before.json").exit_code == 1
    again = run("check", "--baseline", "before.json", "--seed", "8", "-o", "again.json")
    assert again.exit_code == 0, again.output
    assert again.stdout.startswith("Both checks are violated, but not newly")
    (first, _) = json.loads(Path("again.json").read_text())["checks"]
    assert (first["verdict"], first["baseline"]) == ("violated", "known")
    project(subject(95), extra=CHECKS)
    worse = run("check", "--baseline", "before.json")
    assert worse.exit_code == 1
    assert "more than in the baseline, where it was at most" in " ".join(worse.stdout.split())


def test_baseline_that_is_no_result_ends_with_2_before_anything_runs(project: Project) -> None:
    project(f"open('ran', 'w').close()\n{subject(60)}", extra=CHECKS)
    done = run("check", "--baseline", "nothing.json")
    assert done.exit_code == 2
    said = "nothing.json: there is no such file; write one: themis score -o FILE"
    assert said in done.stderr
    assert not Path("ran").exists()


# What a result knows ----------------------------------------------------------------------


def test_supersets_of_what_was_found_are_above_the_zone() -> None:
    found, pair = result(searches=(FOUND,)), Quantity("causal", ("race", "sex"))
    assert known(found, pair) == Bounds(0.05, 1.0, pytest.approx(0.01), above_low=True)
    for other in (Quantity("causal", ("sex",)), Quantity("group", ("race",))):
        assert known(found, other) is None
    assert known(result(searches=(replace(FOUND, output="limit"),)), RACE) is None


@settings(deadline=None)
@given(st.floats(0, 1), st.booleans(), st.booleans())
def test_touching_ends_are_a_rise_only_if_one_is_open(end: float, above: bool, below: bool) -> None:
    before, after = Bounds(0, end, 0, below_high=below), Bounds(end, 1, 0, above_low=above)
    assert has_risen(before, after) == (above or below)
