"""Do acceptances let pass what they name, for as long as they say, and nothing else?"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import themis
from tests.projects import Project, process, run
from tests.results.test_checks import SCORE, SEARCHED, check
from themis.audit.checker import run_checks
from themis.config.reader import read_config
from themis.errors import ConfigError
from themis.results.model import CheckResult
from themis.results.notes import Ending
from themis.results.parts import Accepted
from themis.results.saved import read_result
from themis.results.verdicts import (
    Acceptance,
    Acceptances,
    acceptance_notes,
    judge_score,
    judge_search,
)

TODAY = date(2026, 6, 15)
LATER, EARLIER = date(2099, 1, 1), date(2020, 1, 1)
RACE = '[[checks]]\nagainst = ["race"]\nmax_score = 0.1\n'


def acceptance(*against: str, **changes: Any) -> Acceptance:
    made = Acceptance(against=against or ("race",), reason="ticket 12", until=LATER)
    return replace(made, **changes)


def accepting(*all_: Acceptance) -> Acceptances:
    return Acceptances(all_, TODAY)


def judged(limit: float, accepted: Acceptances, **changes: Any) -> CheckResult:
    """The verdict on a score of race between 0.15 and 0.25."""
    return judge_score(check(limit, "race"), replace(SCORE, **changes), 0.99, accepted)


def written(**changes: str) -> str:
    keys = {"against": '["race"]', "reason": '"ticket 12"', "until": "2099-01-01", **changes}
    return "[[accepted]]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items() if value)


# One set ----------------------------------------------------------------------------------


MET = (Accepted(("race",), "ticket 12", "2099-01-01", None),)


@pytest.mark.parametrize(
    ("accepted", "verdict", "reason"),
    [
        (acceptance(), "accepted", ""),
        (acceptance(max_score=0.25), "accepted", ""),
        (acceptance(max_score=0.24), "not enough evidence", ""),
        (acceptance(max_score=0.14), "violated", "is accepted only up to 14 %"),
        (acceptance(until=TODAY), "accepted", ""),
        (acceptance(until=date(2026, 6, 14)), "violated", "race was accepted until 2026-06-14"),
        # nothing but this finding
        (acceptance("sex"), "violated", ""),
        (acceptance("race", "sex"), "violated", ""),
        (acceptance(measure="group"), "violated", ""),
    ],
)
def test_acceptance_is_of_one_finding_up_to_its_limit_and_its_last_day(
    accepted: Acceptance, verdict: str, reason: str
) -> None:
    answer = judged(0.1, accepting(accepted))
    assert answer.verdict == verdict
    assert reason in answer.reason
    assert answer.fails == (verdict == "violated")
    assert answer.is_open == (verdict == "not enough evidence")
    if accepted == acceptance():
        assert answer.accepted == MET


def test_acceptance_is_for_one_output_and_without_a_name_for_the_first() -> None:
    accepted = Acceptances((acceptance(), acceptance("sex", output="limit")), TODAY, "decision")
    assert judged(0.1, accepted, output="decision").verdict == "accepted"
    assert judged(0.1, accepted, output="limit").verdict == "violated"
    sex = replace(SCORE, against=("sex",), output="limit")
    assert judge_score(check(0.1, "sex"), sex, 0.99, accepted).verdict == "accepted"
    other = replace(sex, output="decision")
    assert judge_score(check(0.1, "sex"), other, 0.99, accepted).verdict == "violated"


@settings(deadline=None)
@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=2).map(sorted),
    st.floats(0, 1),
    st.none() | st.floats(0, 1),
)
def test_acceptance_never_makes_anything_hold_or_violated(
    ends: list[float], limit: float, up_to: float | None
) -> None:
    changes = {"low": ends[0], "high": ends[1]}
    without = judged(limit, accepting(), **changes).verdict
    verdict = judged(limit, accepting(acceptance(max_score=up_to)), **changes).verdict
    assert (verdict == "holds") == (without == "holds")
    assert verdict != "violated" or without == "violated"
    if verdict == "accepted":
        assert up_to is None or ends[1] <= up_to


# All sets ---------------------------------------------------------------------------------
def searched(accepted: Acceptances, **changes: Any) -> CheckResult:
    """The verdict on a search that found race (0.15 to 0.25) and sex (0.3 to 0.4)."""
    sex = replace(SCORE, against=("sex",), score=0.35, low=0.3, high=0.4)
    found: dict[str, Any] = {"found": (("race",), ("sex",)), "minimal_sets": (SCORE, sex)}
    return judge_search(check(0.1), replace(SEARCHED, **{**found, **changes}), 0.99, accepted)


RACE_TOO, SEX_TOO = acceptance("race"), acceptance("sex")
OPEN = {"stopped": Ending.BUDGET, "sets_open": 3}


@pytest.mark.parametrize(
    ("accepted", "changes", "verdict", "reason"),
    [
        ([], {}, "violated", ""),
        ([RACE_TOO], {}, "violated", ""),
        ([RACE_TOO, SEX_TOO], {}, "accepted", ""),
        ([RACE_TOO, SEX_TOO], {"undecided": (("age",),)}, "not enough evidence", "undecided"),
        ([RACE_TOO, SEX_TOO], OPEN, "not enough evidence", "the budget ended"),
        ([RACE_TOO, acceptance("sex", max_score=0.2)], {}, "violated", "sex is accepted only up"),
        ([RACE_TOO, acceptance("sex", max_score=0.35)], {}, "not enough evidence", ""),
    ],
)
def test_search_is_accepted_only_when_every_found_set_is(
    accepted: list[Acceptance], changes: dict[str, Any], verdict: str, reason: str
) -> None:
    answer = searched(accepting(*accepted), **changes)
    assert answer.verdict == verdict
    assert reason in answer.reason
    if verdict in ("accepted", "violated") and not reason:
        assert [(each.against,) for each in answer.accepted] == [(e.against,) for e in accepted]
        assert answer.score == 0.35


# What is said about acceptances that do nothing -------------------------------------------


def test_an_acceptance_that_does_nothing_is_remarked() -> None:
    open_, met = judged(0.1, accepting()), judged(0.3, accepting(acceptance()))
    gone = searched(accepting(), found=(), minimal_sets=())
    for idle, answer, said in (
        (acceptance("sex", line=9), open_, "causal sex (line 9) matches no check"),
        (acceptance(), met, "is not needed: no such finding was made"),
        (acceptance("sex"), gone, "is not needed: no such finding was made"),
        (acceptance(until=EARLIER), open_, "ended on 2020-01-01 and counts no longer"),
    ):
        (note,) = acceptance_notes([answer], accepting(idle))
        assert said in str(note)


# In the file ------------------------------------------------------------------------------
def mistakes(config: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read_config(config)
    return [str(each).removeprefix(f"{config}:") for each in caught.value.mistakes]


@pytest.mark.parametrize(
    ("changes", "mistake"),
    [
        ({"reason": ""}, '13: accepted[1].reason: is missing; write reason = "ticket'),
        ({"reason": '""'}, "15: accepted[1].reason: is empty"),
        ({"until": ""}, "13: accepted[1].until: is missing; write until = 2027-03-31"),
        (
            {"until": '"2027-03-31"'},
            "16: accepted[1].until: must be a date, got '2027-03-31'; write it as 2027-03-31, "
            "without quotes",
        ),
        ({"until": "2027-03-31T10:00:00"}, "16: accepted[1].until: must be a date"),
        ({"against": '["rase"]'}, "14: accepted[1].against: there is no characteristic 'rase'"),
        ({"against": "[]"}, "14: accepted[1].against: is empty"),
        ({"against": '["race", "race"]'}, "14: accepted[1].against: 'race' appears twice"),
        ({"max_score": "1.5"}, "17: accepted[1].max_score: must be at most 1, got 1.5"),
        ({"measure": '"causl"'}, "17: accepted[1].measure: must be 'causal', 'group' or 'excess'"),
        ({"output": '"limit"'}, "17: accepted[1].output: there is no output 'limit'; declare it"),
        ({"untill": "1"}, "17: accepted[1].untill: there is no such key; did you mean 'until'?"),
    ],
)
def test_mistake_in_an_acceptance_has_its_line(
    project: Project, changes: dict[str, str], mistake: str
) -> None:
    (told,) = mistakes(project(extra=written(**changes)))
    assert told.startswith(mistake)


def test_same_finding_is_accepted_once(project: Project) -> None:
    twice = written(against='["sex", "race"]') + written(against='["race", "sex"]')
    (told,) = mistakes(project(extra=twice))
    assert told == ("17: accepted[2]: this is accepted already, in line 13; remove one of them")
    other = written() + written(measure='"group"')
    assert len(read_config(project(extra=other)).accepted) == 2


# The command ------------------------------------------------------------------------------
def test_accepted_finding_ends_with_0_and_is_shown_as_accepted(project: Project) -> None:
    project(extra=RACE + written())
    done = process("check", "-o", "result.json")
    assert (done.returncode, done.stderr) == (0, "")
    shown = " ".join(done.stdout.split())
    assert shown.startswith("What the check found is accepted")
    assert "causal race at most 0.1 accepted" in shown
    assert "race is accepted until 2099-01-01: ticket 12" in shown
    assert "holds" not in shown
    (saved,) = read_result("result.json").checks
    assert (saved.verdict, saved.accepted) == ("accepted", MET)


def test_score_near_what_is_accepted_is_measured_more_precisely(project: Project) -> None:
    """The true score is 0.3, so that ± 0.05 can't tell whether it is below 0.32."""
    project(extra=RACE + written(max_score="0.32"))
    done = run("check", "--json")
    (score,) = json.loads(done.stdout)["scores"]
    assert done.exit_code == 0
    assert score["error"] < 0.05


def test_a_finding_is_run_again_as_often_as_its_acceptance_asks_for() -> None:
    schema = themis.Schema(race=["a", "b"], age=range(100))
    output = themis.Output(name="limit", min=0, max=5000, distance="relational")
    audit = themis.Audit(
        lambda p: 10 * p["age"] + 1000 * (p["race"] == "a"), schema, outputs=[output]
    )
    limit = replace(check(0.01, "race"), measure="group", output="limit")
    bound = acceptance("race", measure="group", output="limit", max_score=0.12)
    done = run_checks(audit, [limit], accepted=accepting(bound))
    assert [each.verdict for each in done.checks] == ["violated"]
