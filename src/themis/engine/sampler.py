"""Sampling within a budget: which rows to run next, and telling those who watch.

Trials: inputs that are run to explain a score, each at most once, and counted apart.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.ahead import Coming
from themis.engine.memory import SortedOutputs
from themis.engine.runner import Runner
from themis.engine.tables import Tables
from themis.engine.variants import Inputs, codes_of
from themis.events import Listener, Progress, ignore
from themis.inputs.assignments import Assignments
from themis.inputs.keys import first_places
from themis.inputs.population import Population
from themis.inputs.streams import MIXING, BaseInputs
from themis.subjects.decisions import NOT_RUN, Cells
from themis.subjects.readings import Reading

# Executions that explanations may take: a share of all so far, and for each at least a few.
DEAR_SHARE, DEAR_LEAST = 20, 30  # of subjects outside of this process
SHARE, LEAST = 10, 100  # of functions that are called input by input
MOST = 1_000  # of subjects that take whole batches
LEFT_SHARE = 10  # at most this part of what the budget has left


class Trials:
    """Runs inputs for explanations and remembers them, also of a domain too large for that."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._outputs = SortedOutputs(runner.labels.dtype)  # they are few in any domain
        self.spent = 0  # executions, and decisions that a cache file held instead

    def allowance(self, explanations: int = 1) -> int:
        """How many executions each of the next explanations may take: nothing measured counts."""
        runner = self._runner
        if runner.traits.vectorised and not runner.traits.external:
            own = MOST
        elif runner.traits.external:
            own = max(DEAR_LEAST, (runner.asked // DEAR_SHARE - self.spent) // explanations)
        else:
            own = max(LEAST, (runner.asked // SHARE - self.spent) // explanations)
        left = runner.executions_left // (LEFT_SHARE * explanations)
        return int(max(0, min(own, MOST, left)))

    @property
    def out_of_time(self) -> bool:
        """Whether the budget's time is over."""
        return self._runner.out_of_time

    def run(self, codes: NDArray[Any], most: int) -> tuple[Cells, NDArray[np.int64]]:
        """The numbers of these inputs' answers, and the places of those that were run for them.

        No more than `most` of those that are not known are run, the first ones; the others are
        NOT_RUN.
        """
        cells = self.known(codes)
        missing = np.flatnonzero(cells == NOT_RUN)
        keys = self._runner.memory.keys.of(codes[missing])
        new = first_places(keys)[:most]
        if len(new):
            self.spent += len(new)
            with self._runner.apart():
                self._runner.ledger.planned = most
                self._outputs.add(keys[new], self._runner.run(codes[missing[new]]))
            cells[missing] = self._outputs.look_up(keys)
        return cells, missing[new]

    def known(self, codes: NDArray[Any]) -> Cells:
        """The numbers of answers that take no execution, NOT_RUN where there are none."""
        cells = self._runner.known(codes)
        missing = np.flatnonzero(cells == NOT_RUN)
        cells[missing] = self._outputs.look_up(self._runner.memory.keys.of(codes[missing]))
        return cells


AnyTimeEnds = Callable[[], tuple[float, float]]  # of an interval, which hold at any time
CELLS = 2**19  # outputs held at once: memory stays flat
COARSE_CELLS = 2**15  # up to so many, few calls are worth more than few executions

# Blocks of subjects outside of this process.
LEAST_ROWS = 16  # enough to keep several processes busy while rows drop out
FIRST_CELLS = 32
GROWTH_SHARE = 4  # a block that grows is this part of all before it


@dataclass
class Sampler:
    """The parts of one run: population, runner, common base inputs and their tables."""

    population: Population
    runner: Runner
    seed: int
    listen: Listener = ignore
    keep_on_interrupt: bool = False  # give what was learned instead of raising KeyboardInterrupt
    reading: Reading = field(init=False)  # the output that is measured
    block_rows: int | None = None  # a fixed size for blocks, instead of one that fits the subject
    base: BaseInputs = field(init=False)
    tables: Tables = field(init=False)
    trials: Trials = field(init=False)

    def __post_init__(self) -> None:
        self.base = BaseInputs(self.population, self.seed)
        self.tables = Tables(self.base, self.runner)
        self.reading = Reading(self.runner.labels)
        self.trials = Trials(self.runner)

    def reading_as(self, reading: Reading) -> Sampler:
        """The same run, seen through another output."""
        other = copy.copy(self)
        other.reading = reading
        return other

    def assignments(self, columns: tuple[int, ...]) -> Assignments:
        """The assignments of a set of columns."""
        return Assignments(self.population.schema, columns)

    def unseen(self, start: int) -> NDArray[Any] | None:
        """Base inputs from a row on that are quickly drawn; None if there are few.

        Nothing is run on them: they tell how many people there are of a kind.
        """
        drawn_apart = any(block.size is None for block in self.population.blocks)
        # So many base inputs tell how many people there are of a kind.
        stop = min(16_384, self.base.chunk_rows)
        return None if drawn_apart or start > stop // 2 else self.base.rows(start, stop)

    def blocks(self, start: int, stop: int, width: int) -> Iterator[tuple[int, int]]:
        """Cut rows start..stop into blocks; ends early when the budget does.

        How the rows are cut never changes a result.
        """
        while start < stop:
            rows = min(stop - start, self._rows(start, width))
            left = self.runner.executions_left
            if rows * width > left:
                rows = int(left // width)
            if rows < 1 or self.runner.out_of_time:
                return
            yield start, start + rows
            start += rows

    def run_singles(
        self,
        assignments: Assignments,
        inputs: Inputs,
        *,
        block: int = 0,
        coming: Coming | None = None,
    ) -> Cells:
        """Run inputs that are compared by groups and not one with another, in random order.

        Idle slots of a subject may run what is `coming`.
        """
        answers = np.empty(len(inputs), dtype=self.runner.labels.dtype)
        with self.runner.ahead.looking(coming):
            if self.runner.traits.vectorised:
                answers[:] = self.runner.run(inputs)
            else:
                order = self.base.generator(MIXING, block).permutation(len(inputs))
                answers[order] = self.runner.run(codes_of(inputs)[order])
        if self.tables.suite is not None:
            self.tables.suite.add_singles(assignments.columns, codes_of(inputs), answers)
        return self.reading.cells(answers)

    def _rows(self, start: int, width: int) -> int:
        if self.block_rows is not None:
            return self.block_rows
        if self.runner.traits.external:
            return self._fixed_rows(start, width)
        cells, least = self.runner.batch_size, 1
        if math.isinf(self.runner.seconds_left):
            if self.runner.traits.vectorised:
                cells = CELLS
            else:  # most rows are left long before all of a wide set's assignments are run
                least = min(max(start // GROWTH_SHARE, LEAST_ROWS), max(CELLS // width, 1))
        chunk = self.base.chunk_rows
        return min(
            max(cells // width, least), CELLS, chunk - start % chunk
        )  # in one chunk: no copy

    def _fixed_rows(self, start: int, width: int) -> int:
        """A number that depends on nothing measured, so that a resumed run cuts the same blocks.

        Where batches are large, or time is limited, blocks grow with what was done before: a
        budget, or an interrupt, is met within a share of the time so far.
        """
        most = self.runner.batch_size
        if most <= (4_096 if math.isinf(self.runner.seconds_left) else FIRST_CELLS):
            return max(most // width, LEAST_ROWS)
        cells = min(max(start * width // GROWTH_SHARE, FIRST_CELLS), most)
        return max(cells // width, 1)

    def tell(
        self,
        measure: str,
        assignments: Assignments,
        samples: int,
        expected: int,
        ends: AnyTimeEnds | None = None,
    ) -> None:
        """Send a progress event; the interval is only computed where somebody listens."""
        self.runner.heed()
        if self.listen is not ignore:
            done, output = self.runner.executions, self.reading.output
            name = None if output is None else output.name
            low, high = (0.0, 1.0) if ends is None else ends()
            names = assignments.names
            self.listen(Progress(measure, names, samples, expected, low, high, done, name))
