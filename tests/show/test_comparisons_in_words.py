"""Do sentences on differences and replays claim no more than is known?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from themis.results.comparison import Differences, ScoreChange, ScoreDifference
from themis.results.finding import Bounds, Quantity
from themis.results.notes import Note
from themis.show.parts.comparisons import differences_headline, guarantee

RACE = Quantity("group", ("race",))


def found(
    *ends: Bounds, confidence: float = 1.0, change: ScoreChange = "fallen", **changes: Any
) -> Differences:
    scores = tuple(
        ScoreDifference(RACE, change, ends[at], ends[at + 1]) for at in range(0, len(ends), 2)
    )
    return replace(Differences(scores, (), (), (), confidence), **changes)


def test_nothing_is_sure_where_nothing_was_compared() -> None:
    once = Note.of("measured-once", name="causal sex", only="before")
    for confidence in (0.96, 1.0):
        assert guarantee(found(confidence=confidence, open=(once,))).startswith("Nothing was comp")
    assert guarantee(found(confidence=0.96)) == "All of it together: 96 % confidence."


def test_where_no_change_is_reported_none_is_said_to_be_sure() -> None:
    ends = Bounds(0.1, 0.2, 0.01)
    same = found(ends, ends, confidence=0.96, change="no significant change")
    assert guarantee(same) == "All of it together: 96 % confidence."
    unsure = replace(same, confidence=0.0)
    assert guarantee(unsure) == "Nothing is certain about all of it together."


def test_a_tolerated_rise_is_seen_and_said() -> None:
    zero, tenth, wide = Bounds(0.0, 0.0, 0.0), Bounds(0.1, 0.1, 0.0), Bounds(0.1, 0.2, 0.01)
    exact = found(zero, tenth, change="risen, tolerated")
    assert exact.verdict == "nothing new"
    assert differences_headline(exact) == (
        "No difference has grown beyond the tolerance (tolerated: group race)"
    )
    both = found(zero, wide, zero, wide, change="risen, tolerated", confidence=0.98)
    assert guarantee(both).startswith("Each reported change of a score is false with a chance of")
