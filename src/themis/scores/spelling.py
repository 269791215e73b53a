"""Scores that rest on spelling: rows whose texts differ only in case, punctuation or white space.

Such rows are unknown (`Reading.row_states`), so that the lower end of an interval takes them for
constant and the upper end for flips. With the stated confidence it holds whatever labels will say.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from themis.results.model import GroupScore, Score, SearchResult
from themis.results.notes import Ending, Note
from themis.subjects.readings import Reading

S = TypeVar("S", bound=Score)


def with_spelling(score: S, spelled: int, reading: Reading) -> S:
    """The score with a note if so many rows rest on spelling; undecided if all of it does.

    That is: nothing else was found, or the interval is wider than asked.
    """
    if not spelled:
        return score
    wide = score.high - score.low > 2 * score.error
    only = wide or (score.score == 0 and not isinstance(score, GroupScore))
    note = spelling_note(reading, rows=spelled, only=only)
    undecided = only and score.stopped.is_conclusive
    stopped = Ending.SPELLING if undecided else score.stopped
    return replace(score, stopped=stopped, notes=(*score.notes, note))


def spelling_in_search(search: SearchResult, reading: Reading) -> SearchResult:
    """The search with a note if sets are undecided, and texts differ only in spelling."""
    if not search.undecided or not reading.spelled_texts():
        return search
    return replace(search, notes=(*search.notes, spelling_note(reading)))


def spelling_note(reading: Reading, *, rows: int | None = None, only: bool = True) -> Note:
    """That texts differ only in spelling, and which."""
    code = "only-spelling" if only else "partly-spelling"
    name = reading.details().get("output")
    return Note.of(code, texts=reading.spelled_texts(), rows=rows, output=name)
