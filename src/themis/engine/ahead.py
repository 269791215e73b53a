"""Ahead: inputs that are run before they are asked for, in slots that would stand idle.

For subjects outside of this process; `FullSlots` runs them together with what is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from themis.engine.account import Ledger
from themis.inputs.assignments import Places
from themis.inputs.keys import InputKeys
from themis.subjects.base import Answers, Batch, Subject
from themis.subjects.decisions import FAILED, NOT_RUN, Cells, Failure
from themis.subjects.labels import Labels

if TYPE_CHECKING:
    from themis.engine.recall import Recall

SHARE = 10  # of the executions, the part that may be run ahead beyond one input for each slot
FULL_ROUNDS = 16  # a batch of so many inputs for each slot loses little at its end


class Held(NamedTuple):
    """What an input that was run ahead gave."""

    output: Any
    failure: Failure | None


class Again(NamedTuple):
    """Inputs that are run for the time-th time; the first is 0."""

    codes: NDArray[Any]
    time: int


class More(NamedTuple):
    """Inputs to run in idle slots, the key of each, and for which time it is run."""

    codes: NDArray[Any]
    keys: list[Any]
    times: Places


# The outcome under each key, None where there is none.
LookUp: TypeAlias = Callable[[Sequence[Any]], list[Held | None]]
# Inputs that will be asked for next, the most likely ones first, given what was run ahead.
Coming: TypeAlias = Callable[[LookUp], Generator[NDArray[Any]]]
Sort: TypeAlias = Callable[[Answers], Answers]  # those of the answers that were asked for


@dataclass(frozen=True)
class Mixed:
    """A batch of inputs that are needed and of others, in random order."""

    needed: int
    order: Places  # of the needed ones and then the others

    def split(self, answers: Answers) -> tuple[Answers, Answers]:
        """The answers to those that are needed, and to the others."""
        back = np.argsort(self.order).tolist()
        return chosen_answers(answers, back[: self.needed]), chosen_answers(
            answers, back[self.needed :]
        )


def chosen_answers(answers: Answers, places: Sequence[int]) -> Answers:
    """The answers at these places, in this order."""
    failures = {
        new: answers.failures[old] for new, old in enumerate(places) if old in answers.failures
    }
    return Answers([answers.outputs[place] for place in places], failures)


class Ahead:
    """Holds what was run ahead until it is asked for, and says what to run in idle slots.

    Whoever drives a run says what comes next (`looking`). An input counts as executed when it is
    asked for; until then it is `ahead` in the ledger.
    """

    def __init__(self, keys: InputKeys, slots: int, ledger: Ledger) -> None:
        self._input_keys, self._slots, self._ledger = keys, slots, ledger
        self._held: dict[Any, Held] = {}
        self._numbers: dict[str, int] = {}  # of outputs, by their representation
        self._request: Again | None = None  # what is asked for now; its keys, once needed
        self._requested: frozenset[Any] | None = None
        self._coming: Coming | None = None
        self._needed: Sequence[Again] = ()  # what is needed for certain, before all that may come
        self._rng = np.random.default_rng(0)
        self.start(allowed=False)

    def start(self, *, allowed: bool) -> None:
        """Begin a measurement; what is held stays held."""
        self._allowed = allowed and self._slots > 1
        self._before = self._ledger.spent

    @contextmanager
    def looking(
        self, coming: Coming | None, rng: Callable[[], np.random.Generator]
    ) -> Iterator[None]:
        """Within, these inputs come next; batches are mixed in an order drawn from `rng`.

        What somebody else foresees comes after them.
        """
        before = self._coming, self._rng
        if self._allowed and coming is not None:
            self._coming, self._rng = _one_after_other(coming, self._coming), rng()
        try:
            yield
        finally:
            self._coming, self._rng = before

    @contextmanager
    def needing(self, parts: Sequence[Again], rng: np.random.Generator) -> Iterator[None]:
        """Within, these are needed for certain after what is run now: they come before all else."""
        before = self._needed, self._rng
        if self._allowed and parts:
            self._needed, self._rng = parts, rng
        try:
            yield
        finally:
            self._needed, self._rng = before

    def begin(self, codes: NDArray[Any], time: int = 0) -> None:
        """These inputs are asked for together, in one batch or several; none of them is to come."""
        self._request, self._requested = Again(codes, time), None

    def concerns(self, count: int) -> bool:
        """Whether a batch of so many inputs may take what is held, or leave slots idle."""
        return bool(self._held) or (self._allowed and count < FULL_ROUNDS * self._slots)

    def keys(self, codes: NDArray[Any], time: int = 0) -> list[Any]:
        """The keys of these inputs when they are run for the time-th time."""
        keys: list[Any] = self._input_keys.of(codes).tolist()
        return [(time, key) for key in keys] if time else keys

    def look_up(self, keys: Sequence[Any]) -> list[Held | None]:
        """What is held under these keys; of the same input asked for twice only the first."""
        if not self._held:
            return [None] * len(keys)
        first = {key: place for place, key in reversed(list(enumerate(keys)))}
        return [
            self._held.get(key) if first[key] == place else None for place, key in enumerate(keys)
        ]

    def more(self, needed: int, known: Callable[[Again], NDArray[np.bool_]]) -> More | None:
        """What to run in the slots that a batch of so many leaves idle, if anything.

        Those that somebody else holds are `known`.
        """
        room = self._room(needed)
        if room <= 0 or self._request is None or not (self._needed or self._coming):
            return None
        new: dict[Any, tuple[NDArray[Any], int]] = {}
        if self._requested is None:
            self._requested = frozenset(self.keys(*self._request))
        taken = self._requested | self._held.keys()
        with closing(self._likely()) as likely:
            for part in likely:
                codes = part.codes[~known(part)]
                for key, row in zip(self.keys(codes, part.time), codes, strict=True):
                    if key not in taken and len(new) < room:
                        new.setdefault(key, (row, part.time))
                if len(new) >= room:
                    break
        if not new:
            return None
        rows, times = zip(*new.values(), strict=True)
        return More(np.stack(rows), list(new), np.array(times))

    def _likely(self) -> Generator[Again]:
        """What will be asked for, the most certain ones first."""
        yield from self._needed
        if self._coming is not None:
            with closing(self._coming(self._peek)) as coming:
                for codes in coming:
                    yield Again(codes, 0)

    def mixed(self, needed: int, others: int) -> Mixed:
        """The order in which so many inputs that are needed are run with others."""
        return Mixed(needed, self._rng.permutation(needed + others))

    def hold(self, keys: Sequence[Any], answers: Answers) -> None:
        """Keep what inputs gave that nobody has asked for yet."""
        for place, key in enumerate(keys):
            self._held[key] = Held(answers.outputs[place], answers.failures.get(place))
        self._ledger.run_ahead(len(keys))

    def consume(self, codes: NDArray[Any], time: int = 0) -> int:
        """These were asked for: those of them that were run ahead count as executed, how many."""
        if not self._held:
            return 0
        count = sum(self._held.pop(key, None) is not None for key in self.keys(codes, time))
        self._ledger.take_ahead(count)
        return count

    def learn(self, answers: Answers, cells: Cells) -> None:
        """Take note of the numbers that outputs have."""
        if self._allowed and len(answers.outputs) == len(cells) and len(self._numbers) < 10_000:
            some = min(len(cells), 1_000)
            pairs = zip(answers.outputs[:some], cells[:some].tolist(), strict=True)
            self._numbers.update((repr(output), number) for output, number in pairs)

    def cells(self, codes: NDArray[Any]) -> list[int]:
        """The numbers of outputs that are held: NOT_RUN where none is, FAILED if not known."""
        return [
            NOT_RUN
            if each is None
            else FAILED
            if each.failure is not None
            else self._numbers.get(repr(each.output), FAILED)
            for each in self._peek(self.keys(codes))
        ]

    def _peek(self, keys: Sequence[Any]) -> list[Held | None]:
        return [self._held.get(key) for key in keys]

    def _room(self, needed: int) -> int:
        """How many inputs to run with so many that are needed: the slots that they leave idle.

        No more than one for each slot and a share of the executions are held at any time.
        """
        if not needed or needed >= FULL_ROUNDS * self._slots:
            return 0
        now, rooms = self._ledger.spent, [-needed % self._slots]
        for spent in (now, now - self._before):
            rooms.append(self._slots + spent.executions // SHARE - spent.ahead)
        return min(rooms)


def _one_after_other(first: Coming, second: Coming | None) -> Coming:
    def coming(look_up: LookUp) -> Generator[NDArray[Any]]:
        yield from first(look_up)
        if second is not None:
            yield from second(look_up)

    return coming


def answered(answers: Answers) -> Places:
    """The places of those that have an answer, or a failure instead."""
    places = [
        place
        for place, output in enumerate(answers.outputs)
        if output is not None or place in answers.failures
    ]
    return np.array(places, dtype=np.int64)


def merged(held: Sequence[Held | None], new: Answers) -> Answers:
    """The answers that were held and the new ones, which fill the places between."""
    outputs: list[Any] = []
    failures: dict[int, Failure] = {}
    place = 0
    for number, each in enumerate(held):
        if each is None:
            each = Held(new.outputs[place], new.failures.get(place))
            place += 1
        outputs.append(each.output)
        if each.failure is not None:
            failures[number] = each.failure
    return Answers(outputs, failures, new.given, new.calls)


@dataclass
class FullSlots:
    """The slots of a subject, what is known of it, and how it is run."""

    subject: Subject
    labels: Labels
    ahead: Ahead
    recall: Recall | None
    known: Callable[[NDArray[Any]], Cells]
    run: Callable[[Batch, Sort | None], Answers]

    def answers(self, codes: NDArray[Any], time: int) -> Answers:
        """The answers to inputs; idle slots run what comes next.

        What was run ahead for this time is not run again.
        """
        if not self.ahead.concerns(len(codes)):
            return self.run(self.subject.load(codes), None)
        held = self.ahead.look_up(self.ahead.keys(codes, time))
        new = np.array([place for place, each in enumerate(held) if each is None], dtype=np.int64)
        if not len(new):
            return merged(held, Answers([]))
        part = codes if len(new) == len(codes) else codes[new]
        more = self.ahead.more(len(new), self._is_known)
        try:
            answers = self._run_mixed(part, more)
        except BaseException:
            if (unfinished := self.subject.unfinished) is not None:
                self.subject.unfinished = merged(held, unfinished)
            raise
        return answers if len(new) == len(codes) else merged(held, answers)

    def _is_known(self, part: Again) -> NDArray[np.bool_]:
        """Which of these inputs need not be run: this process knows them, or a cache file."""
        codes, time = part
        known = np.zeros(len(codes), dtype=bool) if time else self.known(codes) != NOT_RUN
        return known if self.recall is None else known | self.recall.knows(codes, time=time)

    def _run_mixed(self, codes: NDArray[Any], more: More | None) -> Answers:
        """The answers to these inputs, run together with others that are laid aside."""
        if more is None:
            return self.run(self.subject.load(codes), None)
        mixed = self.ahead.mixed(len(codes), len(more.codes))

        def sort(answers: Answers) -> Answers:
            needed, others = mixed.split(answers)
            all_places = range(len(more.keys))
            places = answered(others) if answers is self.subject.unfinished else all_places
            self._lay_aside(more, others, [*places])
            return needed

        both = np.concatenate([codes, more.codes])[mixed.order]
        return self.run(self.subject.load(both), sort)

    def _lay_aside(self, more: More, answers: Answers, places: list[int]) -> None:
        """Keep the answers to what was run ahead, here and in the cache file."""
        chosen = chosen_answers(answers, places)
        self.ahead.hold([more.keys[place] for place in places], chosen)
        if self.recall is None:
            return
        codes, times = more.codes[places], more.times[places]
        for number in np.unique(times).tolist():
            here = np.flatnonzero(times == number)
            own = chosen_answers(chosen, here.tolist())
            self.recall.keep(codes[here], own, self.labels, time=number)
