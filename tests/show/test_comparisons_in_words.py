"""Do sentences on differences and replays claim no more than is known?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from themis.results.comparison import Differences, ScoreChange, ScoreDifference
from themis.results.notes import Ending, Note
from themis.results.quantities import Bounds, Quantity
from themis.results.replays import Replay, ReplayedSet, ReplayedTest
from themis.show.reports.comparisons import render_comparison
from themis.show.terminal.comparisons import render_replay_headline, show_replay
from themis.show.terminal.parts import make_console, render
from themis.show.words.comparisons import (
    differences_headline,
    guarantee,
    random_answers,
    replay_headline,
)

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


@pytest.mark.parametrize(
    ("error", "said"),
    [(0.01, "a 2 %"), (0.04, "an 8 %"), (0.055, "an 11 %"), (0.09, "an 18 %"), (0.4, "an 80 %"),
     (0.0425, "an 8.5 %"), (0.05, "a 10 %"), (0.0004, "a 0.08 %")],
)  # fmt: skip
def test_a_chance_has_its_article(error: float, said: str) -> None:
    sampled = Bounds(0.1, 0.2, error)
    assert guarantee(found(sampled, sampled, confidence=0.5)).startswith(
        f"Each reported change of a score has at most {said} chance of being false."
    )


def test_nothing_is_said_of_a_chance_that_is_none_or_all() -> None:
    for error in (0.0, 0.6):
        ends = Bounds(0.1, 0.1, error)
        assert guarantee(found(ends, ends, confidence=0.96)) == (
            "All changes together: 96 % confidence."
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
        "No new discrimination found beyond the tolerance: 1 score has risen (group race), and "
        "its rise is tolerated"
    )
    both = found(zero, wide, zero, wide, change="risen, tolerated", confidence=0.98)
    assert "2 scores have risen (group race; group race), and their rises are" in (
        differences_headline(both)
    )
    assert guarantee(both).startswith("Each reported change of a score has at most a 1 % chance")


def replayed(**states: int) -> Replay:
    sets = (ReplayedSet(("sex",), sum(states.values()), states),)  # type: ignore[arg-type]
    return Replay(source="suite.csv", kind="suite", subject={}, sets=sets, examples=(), inputs=200,
                  changed=0, executions=200, cache_hits=0, stopped=Ending.DONE,
                  failures={})  # fmt: skip


def test_a_replay_says_that_the_subject_answers_at_random_where_a_note_does() -> None:
    note = Note.of("answers-at-random", tests=50, unclear=27, lasting=23)
    many = replace(replayed(still=3, new=20, unclear=27, same=50), notes=(note,))
    said = (
        "The subject seems to answer at random: of 50 tests that discriminated once, 27 did not "
        "do so each time they were run again; 23 did, which is more than chance leaves."
    )
    assert random_answers(many) == said
    assert f"- {said}\n" in render_comparison(many, Path("x.md"))
    shown = render(list(show_replay(many, width=80, everything=False)), make_console(None))
    assert " ".join(shown.split()).count(said[:-1]) == 1
    assert said in " ".join(render_replay_headline(many).split())
    none = replace(
        replayed(unclear=50),
        notes=(replace(note, values={"tests": 50, "unclear": 50, "lasting": 0}),),
    )
    assert (random_answers(none) or "").endswith(
        "of 50 tests that discriminated once, none did so each time they were run again."
    )
    assert random_answers(replayed(still=9)) is None
    lucky = replace(replayed(unclear=18, fixed=2), notes=(note,))
    assert "2 did not discriminate this time" in replay_headline(lucky)
    assert "2 are fixed" in replay_headline(replayed(fixed=2, same=18))


def test_a_pair_of_a_replay_has_its_decisions_as_they_are() -> None:
    people = {"sex": "f"}, {"sex": "m"}
    test = ReplayedTest("still", ("sex",), people, ("no", "yes"), ("no", "yes"))
    shown = render_comparison(replace(replayed(still=1), examples=(test,)), Path("x.md"))
    assert "| no for sex f, yes for sex m; before, no and yes |" in shown
