"""Scores of given people: which inputs are somebody's row, and how many people have what is named.

Documents name no value, no group and no output of fewer than SHARED people (`results.withheld`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from themis.inputs.assignments import Assignments, Labels
from themis.inputs.characteristics import Value
from themis.inputs.columns import SHARED
from themis.inputs.keys import InputKeys, numbered, summed
from themis.inputs.people import People
from themis.results.model import CausalScore, GroupScore, Score, SearchResult
from themis.results.notes import Note
from themis.results.parts import Witness
from themis.statistics.intervals import Flags, Floats
from themis.statistics.proportions import ratio_of, sampled_rate
from themis.subjects.decisions import NOT_RUN
from themis.subjects.readings import Reading

if TYPE_CHECKING:
    from themis.scores.people import PeopleRun

FEW = 30  # people; a smaller group is marked: its rate says little about others like them


def of_people(
    score: Score, population: Literal["profile", "rows"], run: PeopleRun, reading: Reading
) -> Score:
    """The score as one of given people: it says which inputs are rows, and how large groups are."""
    score, people = replace(score, population=population), run.people
    if isinstance(score, GroupScore):
        score = _counted(score, run, reading)
    elif isinstance(score, CausalScore):
        pairs = (e for e in score.witnesses if not (e.generated and any(_are_rows(e, people))))
        score = replace(score, witnesses=tuple(_marked(each, people) for each in pairs))
    if not any(map(outputs_in, score.notes)) and not getattr(score, "witnesses", ()):
        return score  # nothing of it names an output
    shared = shared_outputs(run, reading)
    score = replace(score, notes=marked_notes(score.notes, shared))
    if isinstance(score, CausalScore):
        score = replace(score, witnesses=tuple(_by_outputs(e, shared) for e in score.witnesses))
    return score


def search_of_people(search: SearchResult, run: PeopleRun, reading: Reading) -> SearchResult:
    """The search as one of a profile."""
    scores = tuple(of_people(score, "profile", run, reading) for score in search.minimal_sets)
    found = replace(search, minimal_sets=scores, population="profile")
    if not any(map(outputs_in, search.notes)):
        return found
    return replace(found, notes=marked_notes(search.notes, shared_outputs(run, reading)))


def shared_outputs(run: PeopleRun, reading: Reading) -> set[Value]:
    """The outputs that name nobody: at least SHARED people get them, or the file lists them."""
    cells, labels = reading.cells(run.known_answers()), reading.labels
    got = np.bincount(cells[cells >= 0], run.heads[cells >= 0], len(labels.labels))
    each = zip(labels.labels, got, strict=True)
    shared = {_hashable(name) for name, people in each if people >= SHARED}
    listed = () if labels.meanings is None else labels.meanings.names
    possible = run.sampler.runner.subject.possible_outputs() or ()
    return shared.union(*(map(_hashable, more) for more in (labels.wanted, listed, possible)))


def is_shared(output: Value, shared: Collection[Value]) -> bool:
    """Whether an output is among those; a ranking is a list."""
    return _hashable(output) in shared


def _hashable(output: Any) -> Any:
    return tuple(map(_hashable, output)) if isinstance(output, list) else output


def outputs_in(note: Note) -> list[Value]:
    """The outputs that a note names."""
    values = note.values
    if note.code == "merged-texts":
        return [text for group in values["texts"] for text in group]
    if note.code == "same-output":
        return [values["output"]]
    return list(values.get("outputs", ()))


def marked_notes(notes: Iterable[Note], shared: Collection[Value]) -> tuple[Note, ...]:
    """The notes, which say of the outputs that they name which hardly anybody gets."""
    return tuple(_with_rare(note, shared) for note in notes)


def _with_rare(note: Note, shared: Collection[Value]) -> Note:
    rare = [each for each in outputs_in(note) if not is_shared(each, shared)]
    return Note.of(note.code, **{**note.values, "rare": rare}) if rare else note


def _by_outputs(pair: Witness, shared: Collection[Value]) -> Witness:
    first, second = (not is_shared(each, shared) for each in pair.outputs)
    return replace(pair, rare_outputs=(first, second)) if first or second else pair


def groups_of(assignments: Assignments, codes: NDArray[Any]) -> tuple[Labels, NDArray[np.int64]]:
    """What the groups that occur among these inputs are called, and each input's group."""
    places = assignments.places_of(codes)
    first, own = numbered(InputKeys.among(places).of(places))
    each = [assignments.schema.characteristics[c] for c in assignments.columns]
    levels = [one.possible_levels(places[first, i]) for i, one in enumerate(each)]
    return Labels(assignments, np.stack(levels, axis=1)), own


@dataclass(frozen=True)
class PeopleGroups:
    """The groups of a set among given people: who is in one, and in which."""

    names: tuple[str, ...]
    inside: Flags
    labels: Labels
    own: NDArray[np.int64]  # of those inside

    @classmethod
    def of(cls, run: PeopleRun, columns: tuple[int, ...]) -> PeopleGroups:
        """Those of everybody in a run."""
        assignments = Assignments(run.people.schema, columns)
        inside = assignments.in_groups(run.codes)
        return cls(assignments.names, inside, *groups_of(assignments, run.codes[inside]))

    def total(self, figures: NDArray[Any]) -> Floats:
        """The sum of each group; there is a figure for everybody."""
        return summed(self.own, figures[self.inside], len(self.labels))


def _counted(score: GroupScore, run: PeopleRun, reading: Reading) -> GroupScore:
    """The score with the number of people in each group; those with few of them are marked."""
    groups = PeopleGroups.of(run, run.people.schema.columns_of(score.against))
    names = [tuple(each.values()) for each in groups.labels]

    def of_each(heads: Floats) -> list[int]:
        sizes = dict(zip(names, map(int, groups.total(heads)), strict=True))
        return [sizes.get(tuple(each.values.values()), 0) for each in score.groups]

    sizes = of_each(run.heads)
    answers = sizes
    if score.statistic == "mean":
        answers = of_each(_answering(score, run, reading))
        if score.method == "sampled":  # no more than were drawn
            answers = [min(n, g.samples) for n, g in zip(answers, score.groups, strict=True)]
    marked = (
        replace(each, people=size, few=size < FEW, answers=None if known == size else known)
        for each, size, known in zip(score.groups, sizes, answers, strict=True)
    )
    others = _of_others(score, run, reading, groups)
    return replace(score, groups=tuple(marked), impact_ratio_of_others=others)


def _of_others(
    score: GroupScore, run: PeopleRun, reading: Reading, groups: PeopleGroups
) -> tuple[float, float] | None:
    """The ends of the impact ratio if everybody who was run is a random sample of others.

    At this fixed number of people: Clopper and Pearson, 1 − confidence divided by the groups.
    """
    cells = reading.cells(run.known_answers())
    is_whole = score.method == "exact" and not (cells == NOT_RUN).any()
    if not is_whole or score.impact_ratio is None or not run.people.are_counted:
        return None
    decided = groups.total(run.heads * (cells >= 0))
    good = groups.total(run.heads * (reading.labels.is_favourable(cells) & (cells >= 0)))
    alpha = (1.0 - score.confidence) / max(int((decided > 0).sum()), 1)
    each = zip(good[decided > 0], decided[decided > 0], strict=True)
    ratio = ratio_of([sampled_rate(*counts, alpha) for counts in each])
    return None if ratio is None else (ratio.low, ratio.high)


def _answering(score: GroupScore, run: PeopleRun, reading: Reading) -> Floats:
    """How many people of each row have an output that counts."""
    heads = np.where(run.weights > 0, run.heads, 0.0)
    if score.method == "exact" and not score.unknown and not score.stopped.is_early:
        return heads
    cells = reading.cells(run.known_answers())
    if score.method == "exact" and not score.stopped.is_early:
        return np.where((cells >= 0) | (cells == NOT_RUN), heads, 0.0)  # all was run, if not kept
    return np.where(cells >= 0, heads, 0.0)


def _marked(pair: Witness, people: People) -> Witness:
    if pair.generated:
        return pair
    rows, columns = _are_rows(pair, people), people.schema.column_by_name
    first, second = (
        tuple(n for n in pair.differs_in if is_row and _is_rare(people, columns[n], values[n]))
        for is_row, values in zip(rows, pair.inputs, strict=True)
    )
    return replace(pair, rows=rows, rare=(first, second) if first or second else None)


def _is_rare(people: People, column: int, value: Value) -> bool:
    """Whether fewer than SHARED people have a value."""
    code = people.schema.characteristics[column].encode(value)
    return bool(people.heads[people.codes[:, column] == code].sum() < SHARED)


def _are_rows(pair: Witness, people: People) -> tuple[bool, bool]:
    """Which of two inputs are the row of somebody, as they are."""
    codes = people.schema.encode_rows(list(pair.inputs))
    first, second = ((people.codes == each).all(axis=1).any() for each in codes)
    return bool(first), bool(second)
