"""Has each score exactly one finding, and each kind of finding a sentence for each measure?"""

from __future__ import annotations

from typing import Any, get_args

import pytest

from tests.report_results import causal, group
from themis.results.finding import Kind, State, finding
from themis.results.model import Score
from themis.results.notes import Ending, Note
from themis.results.parts import Group, Placebo
from themis.show.words.headlines import headline

NO_DIFFERENCE = {"score": 0.0, "low": 0.0, "high": 0.04}
SURELY_NONE = {"score": 0.0, "low": 0.0, "high": 0.0, "method": "exact"}
ONE = (Group({"race": "green"}, 0.5, 0.45, 0.55, 700),)
NOBODY = tuple(Group({"race": race}, 0.0, 0.0, 0.01, 700) for race in ("green", "purple"))
FINDINGS: dict[Kind, tuple[State, dict[str, Any] | None, dict[str, Any] | None]] = {
    # kind: its state, and what makes it of a causal score and of a group score
    "unmeasured": ("open", {"samples": 0}, {"samples": 0}),
    "unread": (
        "open",
        SURELY_NONE | {"samples": 0, "notes": (Note.of("not-an-input", against=["race"]),)},
        SURELY_NONE | {"samples": 0, "notes": (Note.of("groups-need-people", against=["race"]),)},
    ),
    "single": (
        "open",
        SURELY_NONE | {"notes": (Note.of("nothing-to-change", against=["race"]),)},
        SURELY_NONE | {"groups": ONE},
    ),
    "alone": ("open", None, {"groups": ONE, "low": 0.0, "high": 1.0, "score": 0.0}),
    "idle": ("open", None, NO_DIFFERENCE | {"groups": NOBODY}),
    "unknown": (
        "open",
        {"score": 0.0, "low": 0.0, "high": 1.0, "unknown": 5000},
        {"groups": (), "low": 0.0, "high": 1.0, "score": 0.0},
    ),
    "never": ("calm", SURELY_NONE, SURELY_NONE),
    "none": ("calm", NO_DIFFERENCE, {"score": 0.01, "low": 0.0, "high": 0.06}),
    "undecided": (
        "open",
        NO_DIFFERENCE | {"stopped": Ending.BUDGET},
        {"low": 0.0, "stopped": Ending.BUDGET},
    ),
    "untried": (
        "open",
        {"score": 0.1, "low": 0.0, "lower_bound": True},
        {"low": 0.0, "lower_bound": True},
    ),
    "noise": ("open", {"low": 0.0, "placebo": Placebo(0.1, 0.05, 0.2)}, None),
    "seen": ("open", {"low": 0.0}, None),
    "least": ("grave", {"lower_bound": True}, {"lower_bound": True}),
    "differs": ("grave", {}, {}),
}


def scores(kind: Kind) -> list[Score]:
    _, changes, apart = FINDINGS[kind]
    return [
        *([] if changes is None else [causal(**changes)]),
        *([] if changes is None else [causal(**changes, distance="relational")]),
        *([] if changes is None else [causal(**changes, counterfactuals="within")]),
        *([] if apart is None else [group(**apart)]),
        *([] if apart is None or kind == "idle" else [group(**apart, statistic="mean")]),
    ]


@pytest.mark.parametrize("kind", get_args(Kind))
def test_each_kind_has_one_state_and_a_sentence_for_each_measure(kind: Kind) -> None:
    for score in scores(kind):
        found = finding(score)
        assert (found.kind, found.state) == (kind, FINDINGS[kind][0]), score
        said = headline(score)
        assert not said[0].islower()
        assert not set("{}\x1f") & set(said)
        grave = "no difference" not in said.lower() and "undecided" not in said.lower()
        assert grave or found.state != "grave"


def test_what_is_surely_equal_is_not_known_while_answers_contradict_each_other() -> None:
    assert finding(causal(**SURELY_NONE, stopped=Ending.INCONSISTENT)).state == "open"


def test_a_difference_is_found_whatever_ended_the_run() -> None:
    assert {finding(causal(stopped=each)).state for each in Ending} == {"grave"}
