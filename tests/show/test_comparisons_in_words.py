"""Do sentences on differences and replays claim no more than is known?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from themis.results.comparison import Differences, ScoreChange, ScoreDifference
from themis.results.notes import Note
from themis.results.quantities import Bounds, Quantity
from themis.show.words.comparisons import differences_headline, guarantee

EXACT = "All of this is exact: nothing was sampled."
RACE = Quantity("group", ("race",))


def found(
    *ends: Bounds, confidence: float = 1.0, change: ScoreChange = "fallen", **changes: Any
) -> Differences:
    scores = tuple(
        ScoreDifference(RACE, change, ends[at], ends[at + 1]) for at in range(0, len(ends), 2)
    )
    return replace(Differences(scores, (), (), (), confidence), **changes)


def test_only_numbers_without_an_interval_are_exact() -> None:
    one, wide = Bounds(0.1, 0.1, 0.0), Bounds(0.1, 0.7, 0.0)
    assert guarantee(found(one, one)) == EXACT
    for pair in ((one, wide), (wide, one), (one, replace(one, certified=False))):
        assert guarantee(found(one, one, *pair)) == (
            "Nothing was sampled; a score that has two ends is not known exactly."
        )


def test_nothing_is_sure_where_nothing_was_compared() -> None:
    once = Note.of("measured-once", name="causal sex", only="before")
    for confidence in (0.96, 1.0):
        assert guarantee(found(confidence=confidence, open=(once,))).startswith("Nothing was comp")
    none = "No change is reported. All intervals together: 96 % confidence."
    assert guarantee(found(confidence=0.96)) == none


def test_where_no_change_is_reported_none_is_said_to_be_sure() -> None:
    ends = Bounds(0.1, 0.2, 0.01)
    same = found(ends, ends, confidence=0.96, change="no significant change")
    assert guarantee(same) == "No change is reported. All intervals together: 96 % confidence."
    unsure = replace(same, confidence=0.0)
    assert guarantee(unsure) == "Nothing is certain about all intervals together."


def test_a_tolerated_rise_is_seen_and_said() -> None:
    zero, tenth, wide = Bounds(0.0, 0.0, 0.0), Bounds(0.1, 0.1, 0.0), Bounds(0.1, 0.2, 0.01)
    exact = found(zero, tenth, change="risen, tolerated")
    assert exact.verdict == "nothing new"
    assert differences_headline(exact) == (
        "No difference has grown beyond the tolerance: 1 score has risen (group race), and "
        "its rise is tolerated"
    )
    both = found(zero, wide, zero, wide, change="risen, tolerated", confidence=0.98)
    assert "2 scores have risen (group race; group race), and their rises are" in (
        differences_headline(both)
    )
    assert guarantee(both).startswith("Each reported change of a score has at most a 1 % chance")
