"""The one tally of a causal score: what the rows of a set's table say, however they came about.

Rows come with the outputs of their variants and their weights. Their states are counted, flips kept
as witnesses, and rows whose assignments were all tried tell who loses and what is only joint.
Sets that can't be changed in any input, or that the subject never gets to see, need no rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from themis.engine.sampler import Sampler
from themis.engine.variants import Rows, Variants, all_variants, own_columns
from themis.inputs.assignments import Assignments
from themis.results.model import CausalScore, ExcessScore, Score
from themis.results.notes import Ending, Note
from themis.results.parts import Region
from themis.scores.explanations.changes import Ends, HarmTally, JointTally
from themis.scores.explanations.explaining import Unexplained, explained_together
from themis.scores.explanations.witnesses import FlipPool
from themis.scores.group_tally import group_score
from themis.scores.question import Question, Scored
from themis.settings import Settings, Stopping
from themis.statistics.intervals import Floats
from themis.statistics.proportions import Interval, mixture_ends
from themis.subjects.decisions import FAILED, NO_COUNTERFACTUAL, NOT_RUN, Cells
from themis.subjects.readings import CONSTANT, FLIP, UNKNOWN

ZERO = Interval(0.0, 0.0, 0.0)


class Inputs(NamedTuple):
    """Base inputs that share the rows of a table: each one's row, and what it weighs."""

    codes: NDArray[Any]
    rows: NDArray[np.int64]
    weights: Floats


class CausalTally:
    """Counts the rows of one set's table: those that flip or may flip."""

    def __init__(self, question: Question, variants: Variants) -> None:
        reading = question.reading
        self.question, self.variants = question, variants
        self.count = self.flips = self.unknown = 0
        self.apart = 0.0  # how far outputs are apart in all; 1 for each flip
        self.pool = FlipPool(variants.assignments, reading)
        whole = variants.complete
        self.harm = HarmTally.of(variants.assignments, reading) if whole else None
        self.joint = JointTally.of(variants, reading)
        self.is_partial = not whole  # what was not tried may flip

    def add(self, rows: Rows, cells: Cells) -> tuple[NDArray[np.int8], Floats]:
        """Count sampled rows; their states, and how far the outputs of each are apart."""
        reading, states = self.question.reading, self.states(rows, cells)
        some, apart = states, np.asarray(states == FLIP, dtype=float)
        if reading.averages:
            apart = reading.row_distances(cells, own_columns(self.variants, rows))
            some = np.where(apart > 0, FLIP, CONSTANT).astype(np.int8)
        self.pool.add_table(self.variants, rows, cells, some, apart if reading.averages else None)
        self.count += len(states)
        self.flips += int((states == FLIP).sum())
        self.unknown += int((states == UNKNOWN).sum())
        self.apart += float(apart.sum())
        return states, apart

    def add_whole(
        self, rows: Rows, cells: Cells, weights: Floats | None = None, inputs: Inputs | None = None
    ) -> None:
        """Count what one change does in rows in which every assignment was tried.

        What is only joint is counted of base inputs: these ones, or each row is one.
        """
        if self.harm is not None:
            self.harm.add(cells, weights)
        if self.joint is None:
            return
        if inputs is None:
            self.joint.add(rows, cells, weights)
            return
        # So many cells are looked at together: memory stays flat.
        step = max(2**20 // cells.shape[1], 1)
        for start in range(0, len(inputs.rows), step):
            part = slice(start, start + step)
            base = Rows(inputs.codes[part], {})
            self.joint.add(base, cells[inputs.rows[part]], inputs.weights[part])

    def ends(
        self, cells: Cells, states: NDArray[np.int8], rows: NDArray[np.int64], own: Cells
    ) -> tuple[Floats, Floats]:
        """How far inputs are from the farthest variant in their rows, at least and at most.

        Where every difference counts it is 1 for a row that flips, as `states` say; by degrees, how
        far the output is from the input's `own`.
        """
        reading = self.question.reading
        if not reading.graded:
            states = self.opened(states)
            return (states == FLIP)[rows].astype(float), (states != CONSTANT)[rows].astype(float)
        least = np.zeros(len(own))
        for column in cells.T:
            least = np.maximum(least, reading.distances(own, column[rows]))
        unclear = ((cells == FAILED) | (cells == NOT_RUN)).any(axis=1)[rows] | (own < 0)
        return least, np.where(unclear | self.is_partial, 1.0, least)

    def states(self, rows: Rows, cells: Cells) -> NDArray[np.int8]:
        """The states of sampled rows; one flips that no further output can bring farther."""
        reading = self.question.reading
        own = own_columns(self.variants, rows) if reading.graded else None
        return self.opened(reading.settled_states(cells, own))

    def opened(self, states: NDArray[np.int8]) -> NDArray[np.int8]:
        """The states; a row is not constant where an assignment that was not tried may flip it."""
        if self.is_partial:
            states[states == CONSTANT] = UNKNOWN
        return states

    def scored(
        self,
        interval: Interval,
        regions: Callable[[], tuple[Region, ...]] = tuple,
        *,
        people: NDArray[Any] | None = None,
        known: bool = False,
        notes: tuple[Note, ...] = (),
        **how: Any,
    ) -> Scored:
        """The result with all that explains it, and the flips, to be run again."""
        part = Unexplained(self.score(interval, notes, **how), self.pool, regions)
        [score] = explained_together([part], self.question.sampler, people=people, known=known)
        if self.joint is not None:
            score = self.joint.explain(score, self._ends(score.method))
        return Scored(score, self.pool)

    def _ends(self, method: str) -> Ends | None:
        """The ends of shares that are seen in sampled rows, which hold whenever the run stops."""
        settings = self.question.settings
        certified = method == "sampled" and settings.stopping is not Stopping.PAPER
        return share_ends(settings) if certified else None

    def score(self, interval: Interval, notes: tuple[Note, ...] = (), **how: Any) -> CausalScore:
        """The result with its witnesses and the direction of harm; `how` it was measured."""
        question, lower_bound = self.question, self.is_partial and self.unknown > 0
        if lower_bound:
            count = self.variants.assignments.count
            note = Note.of("too-many-assignments", assignments=count, tried=self.variants.width)
            notes = (*notes, note)
        if interval.score == 0 and question.reading.labels.merged_texts():
            notes = (*notes, Note.of("equal-but-for-spelling"))
        return CausalScore(
            **question.fields(interval, notes=notes, **how),
            followed=question.assignments.followed_names,
            unknown=self.unknown,
            lower_bound=lower_bound,
            witnesses=self.pool.choose(),
            **harm_fields(self.harm, self._ends(how["method"])),
        )


def harm_fields(tally: HarmTally | None, ends: Ends | None) -> dict[str, Any]:
    """The fields of a score that tell what one change does, and who loses by it."""
    if tally is None or not tally.contexts:
        return {"flip_rate": None, "direction": ()}
    changes, crossing = tally.changes(ends), tally.crossing(ends)
    return {"flip_rate": tally.flip_rate, "direction": changes, "crossing": crossing}


def share_ends(settings: Settings) -> Ends:
    """The ends of shares among sampled rows, each by itself; any stopping time."""
    alpha = 1.0 - settings.confidence
    return lambda successes, trials: mixture_ends(successes, successes, trials, alpha)


def fixed_share(sampler: Sampler, columns: tuple[int, ...]) -> float:
    """The share of inputs to which constraints, or a single value, leave no other assignment.

    Of 1,000 inputs; 0 where there are too many assignments to look at.
    """
    schema = sampler.population.schema
    assignments = Assignments(schema, columns)
    if assignments.count == 1:
        return 1.0
    if assignments.count > 200 or not schema.touching(assignments.changed).constraints:
        return 0.0
    cells = sampler.tables.unknown(all_variants(assignments), 0, 1_000).cells
    return float(((cells != NO_COUNTERFACTUAL).sum(axis=1) < 2).mean())


def told_unchangeable(question: Question, score: Score) -> Score:
    """The score; one of changes, of a set that can't be changed in any input, says so."""
    if not isinstance(score, CausalScore | ExcessScore) or not score.samples or score.score > 0:
        return score
    if fixed_share(question.sampler, question.assignments.columns) < 1:
        return score
    note = Note.of("nothing-to-change", against=score.against)
    return replace(score, notes=(*score.notes, note))


def by_construction(question: Question) -> Scored | None:
    """The score of a set of which nothing reaches the subject, if it needs no execution.

    Changing such a set changes no input. Groups of generated inputs have equal rates where the set
    is drawn independently of all that the subject is given. None: the score must be measured.
    """
    population, names = question.sampler.population, question.assignments.names
    if not population.schema.unread.issuperset(question.assignments.columns):
        return None
    ended: dict[str, Any] = {"method": "exact", "samples": 0, "stopped": Ending.EXHAUSTED}
    if question.measure != "group":
        kind = CausalScore if question.measure == "causal" else ExcessScore
        notes = (Note.of("not-an-input", against=names),)
        return Scored(kind(**question.fields(ZERO, **ended, notes=notes)))
    if population.profile or not population.is_independent(question.assignments.columns):
        return None
    notes = (Note.of("groups-need-people", against=names),)
    return Scored(group_score(question, (), ZERO, **ended, notes=notes))
