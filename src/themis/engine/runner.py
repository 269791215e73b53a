"""The runner: executes the subject, never twice on one input of a small domain, and counts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.account import Budget, Ledger, Pace, Spent
from themis.engine.ahead import Ahead
from themis.engine.answers import (
    FailureLog,
    TooManyFailuresError,
    number_answers,
    refuse_secrets,
    run_combined,
)
from themis.engine.memory import (
    InputAt,
    Memory,
    PlainBatch,
    RunnerBatch,
    WholeBatch,
)
from themis.engine.variants import Inputs, codes_of
from themis.errors import SubjectError
from themis.events import Activity, ignore
from themis.inputs.assignments import Places
from themis.inputs.schema import Schema
from themis.subjects.base import (
    Answers,
    Batch,
    BudgetEndedError,
    CostKind,
    Subject,
    Tokens,
    Traits,
    UnpaidError,
)
from themis.subjects.decisions import NOT_RUN, Cells
from themis.subjects.labels import Labels

if TYPE_CHECKING:
    from themis.engine.recall import Recall

PRECISELY = 1_000  # executions whose tokens are foreseen to know those of one
RESERVED_SECONDS = 1.0  # at least, or a tenth: choosing what is run again takes time as well
MANY_EXECUTIONS = 10_000_000  # a limit of so many is for emergencies: calls stay few and large
EARLY_FAILURES = 10  # this many failures above the limit end a run early


class Runner:
    """Runs batches of inputs and gives back label numbers; counts executions and cache hits.

    With several `runs`, each output is what so many executions on the same input amount to. `cost`
    is what to save, where somebody knows better than the kind of subject tells.
    """

    def __init__(
        self,
        subject: Subject,
        labels: Labels,
        *,
        budget: Budget | None = None,
        max_failures: float = 0.0,
        max_undecided: float = 0.0,
        recall: Recall | None = None,
        runs: int = 1,
        cost: CostKind | None = None,
    ) -> None:
        self.recall = recall
        self.subject = subject
        self.traits: Traits = subject.traits if cost is None else replace(subject.traits, cost=cost)
        self.schema: Schema = subject.schema
        self.labels = labels
        self.max_failures = max_failures
        self.max_undecided = max_undecided
        self.runs = runs  # behind each output
        self.ledger = Ledger()
        self.heed: Callable[[], None] = ignore  # raises what shall end the run between two blocks
        self.opening: Callable[[], None] = ignore  # runs what goes before all else
        self.is_aside = False  # whether what is run now measures nothing
        self._aside = 0  # answers of what was run so: their failures do not count
        self._secrets = subject.secrets()
        self.failures = FailureLog(self._secrets.redact)
        self.answered = np.zeros(0, dtype=np.int64)  # how many answers had each label
        self._is_within = False  # a batch, at whose end failures are weighed
        self.pace = Pace(self.traits, runs)
        self._needed = 0  # inputs that were run because they were asked for
        self.ahead = Ahead(subject, labels, self.ledger, recall, self.known, self._run)
        self.start(budget or Budget())
        self.memory = Memory(self.schema.given_keys, labels.dtype, self.ledger)

    def start(self, budget: Budget) -> None:
        """Begin a measurement with a fresh budget; what is known stays known."""
        self._budget = budget
        self.ahead.start(allowed=budget.ahead and not budget.limits)
        self.reserved = 0  # executions that are kept back for running findings again
        self._started_at = self.used
        self.unpaid = ""  # why a service answers nothing more, once it does
        if self.subject.tokens is not None:
            self.subject.is_spent = self._is_spent
        self._deadline = time.monotonic() + (
            math.inf if budget.max_seconds is None else budget.max_seconds
        )

    @property
    def account(self) -> Spent:
        """What the subject was run for so far, and how often."""
        spent, used = self.ledger.spent, self.subject.tokens
        if used is None:
            return spent
        return replace(
            spent, tokens_in=used.input, tokens_out=used.output, tokens_estimated=used.estimated
        )

    def metered(self) -> Callable[[], Spent]:
        """What is spent from now on, whenever that is asked."""
        before = self.account
        return lambda: self.account - before

    @property
    def used(self) -> dict[str, float]:
        """What counts for budgets so far, by the setting that limits it."""
        tokens, prices = self.subject.tokens or Tokens(), self.subject.prices
        cost = 0.0 if prices is None else prices.cost(tokens)
        return {"max_executions": self.spent, "max_total_tokens": tokens.total, "max_spend": cost}

    @property
    def executions(self) -> int:
        """How many inputs the subject was given so far, for whatever reason."""
        return self.account.executions

    @property
    def spent(self) -> int:
        """What counts for budgets: all that was asked of the subject, for whatever reason."""
        return self.ledger.asked + self.ledger.asked_again

    @property
    def asked(self) -> int:
        """The same without what was asked for noise."""
        return self.ledger.asked

    @property
    def cache_hits(self) -> int:
        """How many answers were known before, to this process or in a cache file."""
        return self.account.cache_hits

    @property
    def remembers(self) -> bool:
        """Whether the domain is so small that no input is ever executed twice."""
        return self.memory.is_whole

    @property
    def draws_elsewhere(self) -> bool:
        """Whether inputs that are run whole may be drawn by whoever runs them."""
        return bool(self.traits.executor) and self.traits.vectorised and not self.remembers

    @property
    def saves_calls(self) -> bool:
        """Whether few, large calls are wanted: not where few executions are allowed."""
        return self.traits.cost == "calls" and (self.max_executions or math.inf) >= MANY_EXECUTIONS

    @property
    def max_executions(self) -> int | None:
        """The number of executions that the budget of this measurement allows, if it has one."""
        return self._budget.max_executions

    @property
    def executions_left(self) -> float:
        """How many inputs the budget still allows to run; with several runs each, fewer."""
        if not self._budget.limits:
            return math.inf
        each = {"max_executions": 1.0}
        if self.subject.tokens is not None:
            tokens, cost = self.foresee(PRECISELY)
            each |= {"max_total_tokens": tokens.total / PRECISELY, "max_spend": cost / PRECISELY}
        left = min(left / max(each[name], 1e-12) for name, left in self._limits_left.items())
        return left // self.runs - self.reserved

    @property
    def _limits_left(self) -> dict[str, float]:
        """What is left of the limits of the budget, by their settings."""
        used, before = self.used, self._started_at
        return {name: at - used[name] + before[name] for name, at in self._budget.limits.items()}

    def _is_spent(self) -> bool:
        """Whether the tokens or the money are used up, or the service says so."""
        left = {**self._limits_left, "max_executions": 1}
        return bool(self.unpaid) or min(left.values()) <= 0

    @property
    def seconds_left(self) -> float:
        """How much time the budget still allows, less what the reserved executions will take."""
        left = self._deadline - time.monotonic()
        if not self.reserved or math.isinf(left):
            return left
        most = self._budget.max_seconds or 0.0
        each = (self.pace.for_more or 0.0) if self.pace.knows_more_than_one else 0.0
        seconds = self.runs * self.reserved * each
        return left - min(max(seconds, min(most / 10, RESERVED_SECONDS)), most / 2)

    @contextmanager
    def spending_reserve(self) -> Iterator[None]:
        """Within, what is kept back for running findings again may be spent."""
        reserved, self.reserved = self.reserved, 0
        try:
            yield
        finally:
            self.reserved = reserved

    @property
    def out_of_time(self) -> bool:
        """Whether the budget's time is over."""
        return self.seconds_left <= 0

    @property
    def must_not_begin(self) -> bool:
        """Whether no call may begin that has many inputs: the time is over."""
        return self.traits.vectorised and self.out_of_time

    @property
    def is_late(self) -> bool:
        """Whether it has been over for a second: nothing is to be computed any more."""
        return self.seconds_left <= -1.0

    @property
    def batch_size(self) -> int:
        """How many inputs to run together; only a limit of time lets it depend on the speed."""
        return self.pace.batch_size(self.spent, self.seconds_left)

    def foresee(self, executions: int) -> tuple[Tokens, float]:
        """The tokens that so many executions will use, and what these cost if prices are known."""
        tokens, prices = self.subject.foresee(executions) or Tokens(), self.subject.prices
        return tokens, 0.0 if prices is None else prices.cost(tokens)

    @property
    def fails_too_often(self) -> bool:
        """Whether more executions failed than allowed, or gave no decision."""
        shares = self.max_failures, self.max_undecided
        return self.failures.exceed(*(share * (self.spent - self._aside) for share in shares))

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Within, executions explain a score instead of measuring it, and are counted as such.

        A failure is then no failure of the measurement: it is neither logged nor remembered.
        """
        with self.aside(), self.ledger.counting_as("explanations"):
            yield

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Within, nothing is measured: a failure is neither logged nor remembered."""
        before, self.is_aside = self.is_aside, True
        try:
            yield
        finally:
            self.is_aside = before

    @property
    def activity(self) -> Activity:
        """What the latest executions are for."""
        ledger, failures = self.ledger, dict(self.failures.counts)
        said = self.failures.said()
        return Activity(ledger.latest, self.executions, ledger.planned, failures, said)

    def load(self, codes: NDArray[Any]) -> RunnerBatch:
        """A batch of inputs whose columns can be overwritten between runs."""
        self._open()
        if self.remembers:
            return WholeBatch(codes, self.perform, self.memory, lambda: not self.is_aside)
        if self.traits.external:
            return WholeBatch(codes, self.perform)
        return PlainBatch(codes, self.subject.load(codes), self.execute)

    def run(self, inputs: Inputs) -> Cells:
        """The label number of each input, FAILED where the subject gave no decision."""
        return self.load(codes_of(inputs)).run() if self.remembers else self.perform(inputs)

    def known(self, codes: NDArray[Any]) -> Cells:
        """The outputs of these inputs, NOT_RUN where they are not remembered."""
        if not self.remembers:
            return np.full(len(codes), NOT_RUN, dtype=self.labels.dtype)
        return self.memory.look_up(self.memory.keys.of(codes))

    def held(self, codes: NDArray[Any]) -> Cells:
        """The outputs of inputs that were run ahead, NOT_RUN where they were not.

        An output that nobody has asked for yet has no number: it counts as FAILED.
        """
        cells = self.ahead.cells(codes)
        return np.array(cells, dtype=self.labels.dtype)

    def execute(self, batch: Batch, input_at: InputAt, count: int) -> Cells:
        """Run a loaded batch of so many inputs; `input_at` gives them, for failure examples."""
        if self.saves_calls and count > self.executions_left:  # nobody cuts what is in large calls
            raise BudgetEndedError

        def run(_: int, places: Places | None) -> Cells:
            part, at = batch, input_at
            if places is not None:
                codes = np.asfortranarray(input_at(places))
                part, at = self.subject.load(codes), codes.__getitem__
            answers = self._run(part)
            cells = number_answers(self.labels, answers)
            self.ledger.ask(len(cells))
            self._log(cells, answers, at)
            return cells

        with self.ending_together():
            return run_combined(run, self.runs, self.labels)

    def perform(self, codes: Inputs, *, again: int = 0, call: int | None = None) -> Cells:
        """Run these inputs, except those whose decisions a cache file holds.

        `again` is how often they were run before: each time has decisions of its own. `call` is how
        many of a subject that is called from this process are one call, if somebody cares.
        """
        self._open()
        cells = np.empty(len(codes), dtype=self.labels.dtype)
        first = 0
        if self.traits.external:
            self.ahead.begin(codes_of(codes))
        with nullcontext() if self.traits.external else self.ending_together():
            while first < len(codes):
                if first and self.must_not_begin:
                    raise BudgetEndedError
                size = self.size_of_next(len(codes), call)
                part = codes[first : first + size]
                cells[first : first + size] = self._perform_part(part, again)
                first += size
        return cells

    def _open(self) -> None:
        opening, self.opening = self.opening, ignore
        opening()

    @property
    def longest_call(self) -> float:
        """How many inputs a call in this process may have so that an interrupt is heard in time."""
        return self.pace.longest_call(self.seconds_left)

    def size_of_next(self, count: int, call: int | None = None) -> int:
        """How many inputs the subject gets next, of so many that are run together."""
        if self.traits.external:
            return self.batch_size
        call = call or self.pace.call_size(len(self.schema), self.seconds_left)
        self.subject.call_inputs = call
        return count if self.traits.executor else call

    def repeat(self, codes: NDArray[Any], *, again: int = 1) -> Cells:
        """Run these inputs for the again-th time after the first; this counts as noise.

        The first time (0) is answered from what is known, where it is; the others are remembered
        nowhere but in a cache file.
        """
        if again and self.traits.is_one_call and self.is_late:
            raise BudgetEndedError
        with self.pace.apart(), self.ledger.counting_as("noise"):  # nothing is planned from these
            self.ledger.planned = max(self.ledger.planned or 0, self.runs * len(codes))
            return self.perform(codes, again=again) if again else self.run(codes)

    def _perform_part(self, inputs: Inputs, again: int) -> Cells:
        if not self.traits.external:
            load: Callable[[Any], Batch] = self.subject.load  # with an executor, also of a Drawn
            return self.execute(load(inputs), inputs.__getitem__, len(inputs))
        codes = codes_of(inputs)

        def run(number: int, places: Places | None) -> Cells:
            part = codes if places is None else codes[places]
            return self._settle(part, again * self.runs + number)

        with self.ending_together():
            return run_combined(run, self.runs, self.labels)

    @contextmanager
    def ending_together(self) -> Iterator[None]:
        """Within, all is run; TooManyFailuresError after it, if too many of all so far failed."""
        before, outer = self.failures.total, self._is_within
        self._is_within = True
        try:
            yield
        finally:
            self._is_within = outer
        failed = self.failures.total
        if not outer and failed > max(before, EARLY_FAILURES - 1) and self.fails_too_often:
            raise TooManyFailuresError(self.failure_message())

    def _settle(self, codes: NDArray[Any], number: int) -> Cells:
        """The outputs of these inputs of an external subject, run for the number-th time."""
        needed = self._needed

        def run(part: NDArray[Any]) -> Answers:
            again = number > 0
            return self._run(self.subject.load(part)) if again else self.ahead.answers(part)

        if self.recall is None:
            answers = run(codes)
            cells = number_answers(self.labels, answers)
        else:
            cells, answers = self.recall.settle(codes, run, self.labels, time=number)
        ahead = 0 if number else self.ahead.consume(codes)
        self.ahead.learn(answers, cells)
        self.ledger.ask(len(codes))
        self.ledger.find(len(codes) - ahead - (self._needed - needed))
        self._log(cells, answers, codes.__getitem__)
        return cells

    def _run(self, batch: Batch, sort: Callable[[Answers], Answers] | None = None) -> Answers:
        """Execute a batch; `sort` gives those of the answers that were asked for."""
        started = time.perf_counter()
        self.ledger.begin()
        self.subject.unfinished = None
        self.subject.deadline = time.monotonic() + self.seconds_left
        try:
            answers = batch.run()
        except BaseException as error:
            if (unfinished := self.subject.unfinished) is not None:
                refuse_secrets(unfinished, self._secrets)
                self._count(unfinished, sort)
            if isinstance(error, SubjectError):
                self.failures.clean(error)
            if isinstance(error, UnpaidError):
                self.unpaid = str(error)
            raise
        finally:
            self.subject.deadline = math.inf
        if self.traits.external:
            refuse_secrets(answers, self._secrets)
        self.pace.add(answers, time.perf_counter() - started)
        count = len(answers.outputs)
        given = count if answers.given is None else answers.given
        isolating, calls = max(given - count, 0), answers.calls
        if sort is not None:
            answers = sort(answers)
        needed = len(answers.outputs)
        self._needed += needed
        self.ledger.execute(min(given, needed), isolating=isolating, calls=calls)
        return answers

    def _count(self, unfinished: Answers, sort: Callable[[Answers], Answers] | None) -> None:
        """Count what was executed of a batch that was interrupted, or cut off by the deadline."""
        given, calls = unfinished.given, unfinished.calls
        isolating = 0 if given is None else max(given - unfinished.settled, 0)
        if sort is not None:
            unfinished = self.subject.unfinished = sort(unfinished)
        settled = unfinished.settled
        self.ledger.execute(settled, isolating=isolating, calls=0 if given is None else calls)
        self.ledger.ask(settled)

    def _log(self, cells: Cells, answers: Answers, input_at: InputAt) -> None:
        self._take_stock(cells)
        own, aside = self.labels.explain, self.is_aside
        self._aside += aside * len(cells)
        self.failures.add(cells, answers, self.schema, input_at, own, aside=aside)

    def _take_stock(self, cells: Cells) -> None:
        """Count answers by label, whether the subject gave them now or a cache held them.

        What is run again to look for noise is no further answer.
        """
        if self.ledger.purpose == "noise":
            return
        times = np.bincount(cells[cells >= 0], minlength=len(self.answered))
        times[: len(self.answered)] += self.answered
        self.answered = times

    def failure_message(self) -> str:
        """What failed, how often, with an example."""
        return self.failures.message(self.spent - self._aside)

    def close(self) -> None:
        """End what the subject keeps alive, and make durable what was stored; may be used again."""
        try:
            self.subject.close()
        finally:
            if self.recall is not None:
                self.recall.cache.close()
