"""Ahead: inputs that are run before they are asked for, in slots that would stand idle.

For subjects outside of this process. Whoever drives a run says what comes next (`looking`). An
input counts as executed when it is asked for; until then it is `ahead` in the ledger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from themis.engine.account import Ledger
from themis.subjects.base import Answers, Batch, Subject
from themis.subjects.decisions import FAILED, NOT_RUN, Cells, Failure
from themis.subjects.labels import Labels

if TYPE_CHECKING:
    from themis.engine.recall import Recall

SHARE = 10  # of the executions, the part that may be run ahead beyond one input for each slot
FULL_ROUNDS = 16  # a batch of so many inputs for each slot loses little at its end
WINDOW, WINDOWS = 16, 256  # later rows that are looked at together, and how often at most


class Held(NamedTuple):
    """What an input that was run ahead gave."""

    output: Any
    failure: Failure | None


# Inputs that will be asked for next, the most likely ones first.
Coming: TypeAlias = Callable[[], Generator[NDArray[Any]]]
Sort: TypeAlias = Callable[[Answers], Answers]  # those of the answers that were asked for


class Ahead:
    """Runs inputs of a subject with full slots, and holds what was run ahead until it is asked for.

    `known` tells which inputs this process knows, `run` executes a batch; the latter sorts the
    answers with what it is given, before it counts them.
    """

    def __init__(
        self,
        subject: Subject,
        labels: Labels,
        ledger: Ledger,
        recall: Recall | None,
        known: Callable[[NDArray[Any]], Cells],
        run: Callable[[Batch, Sort | None], Answers],
    ) -> None:
        self._subject, self._labels, self._ledger, self._recall = subject, labels, ledger, recall
        self._known, self._run, self._slots = known, run, subject.traits.slots
        self._held: dict[Any, Held] = {}
        self._numbers: dict[str, int] = {}  # of outputs, by their representation
        self._request = np.empty((0, 0))  # what is asked for now
        self._coming: Coming | None = None
        self._rng = np.random.default_rng(0)  # for orders that have nothing to do with inputs
        self.start(allowed=False)

    def start(self, *, allowed: bool) -> None:
        """Begin a measurement; what is held stays held."""
        self._allowed = allowed and self._slots > 1
        self._before = self._ledger.spent

    @contextmanager
    def looking(self, coming: Coming | None) -> Iterator[None]:
        """Within, these inputs come next."""
        before = self._coming
        if self._allowed and coming is not None:
            self._coming = coming
        try:
            yield
        finally:
            self._coming = before

    def begin(self, codes: NDArray[Any]) -> None:
        """These inputs are asked for together, in one batch or several; none of them is to come."""
        self._request = codes

    def answers(self, codes: NDArray[Any]) -> Answers:
        """The answers to inputs; what was run ahead is not run again.

        Slots that they leave idle run what comes next.
        """
        if not (self._held or (self._allowed and len(codes) < FULL_ROUNDS * self._slots)):
            return self._run(self._subject.load(codes), None)
        held = self._look_up(codes)
        new = np.array([place for place, each in enumerate(held) if each is None], dtype=np.int64)
        if not len(new):
            return merged(held, Answers([]))
        part = codes if len(new) == len(codes) else codes[new]
        try:
            answers = self._run_mixed(part, self._more(len(new)))
        except BaseException:
            if (unfinished := self._subject.unfinished) is not None:
                self._subject.unfinished = merged(held, unfinished)
            raise
        return answers if len(new) == len(codes) else merged(held, answers)

    def consume(self, codes: NDArray[Any]) -> int:
        """These were asked for: those of them that were run ahead count as executed, how many."""
        if not self._held:
            return 0
        count = sum(self._held.pop(key, None) is not None for key in self._keys(codes))
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
        held = (self._held.get(key) for key in self._keys(codes))
        return [NOT_RUN if each is None else self._number(each) for each in held]

    def _keys(self, codes: NDArray[Any]) -> list[Any]:
        keys: list[Any] = self._subject.schema.given_keys.of(codes).tolist()
        return keys

    def _look_up(self, codes: NDArray[Any]) -> list[Held | None]:
        """What is held of these inputs; of the same input asked for twice only the first."""
        keys = self._keys(codes)
        first = {key: place for place, key in reversed(list(enumerate(keys)))}
        return [
            self._held.get(key) if first[key] == place else None for place, key in enumerate(keys)
        ]

    def _number(self, held: Held) -> int:
        known = held.failure is None
        return self._numbers.get(repr(held.output), FAILED) if known else FAILED

    def _more(self, needed: int) -> NDArray[Any] | None:
        """What to run in the slots that a batch of so many leaves idle, if anything."""
        room = self._room(needed)
        if room <= 0 or self._coming is None:
            return None
        new: dict[Any, NDArray[Any]] = {}
        taken = self._held.keys() | self._keys(self._request)
        with closing(self._coming()) as coming:
            for part in coming:
                codes = part[~self._is_known(part)]
                for key, row in zip(self._keys(codes), codes, strict=True):
                    if key not in taken and len(new) < room:
                        new.setdefault(key, row)
                if len(new) >= room:
                    break
        return np.stack([*new.values()]) if new else None

    def _room(self, needed: int) -> int:
        """How many inputs to run with so many that are needed: the slots that they leave idle.

        No more than one for each slot and a share of the executions are held at any time.
        """
        if needed >= FULL_ROUNDS * self._slots:
            return 0
        now, rooms = self._ledger.spent, [-needed % self._slots]
        for spent in (now, now - self._before):
            rooms.append(self._slots + spent.executions // SHARE - spent.ahead)
        return min(rooms)

    def _is_known(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of these inputs need not be run: this process knows them, or a cache file."""
        known: NDArray[np.bool_] = self._known(codes) != NOT_RUN
        return known if self._recall is None else known | self._recall.knows(codes)

    def _run_mixed(self, codes: NDArray[Any], more: NDArray[Any] | None) -> Answers:
        """The answers to these inputs, run among others in random order; those are laid aside."""
        if more is None:
            return self._run(self._subject.load(codes), None)
        order = self._rng.permutation(len(codes) + len(more))

        def sort(answers: Answers) -> Answers:
            back = np.argsort(order).tolist()
            others = chosen_answers(answers, back[len(codes) :])
            places = [*range(len(more))]
            if answers is self._subject.unfinished:
                places = _answered(others)
            self._lay_aside(more[places], chosen_answers(others, places))
            return chosen_answers(answers, back[: len(codes)])

        return self._run(self._subject.load(np.concatenate([codes, more])[order]), sort)

    def _lay_aside(self, codes: NDArray[Any], answers: Answers) -> None:
        """Keep what inputs gave that nobody has asked for yet, here and in the cache file."""
        for place, key in enumerate(self._keys(codes)):
            self._held[key] = Held(answers.outputs[place], answers.failures.get(place))
        self._ledger.run_ahead(len(codes))
        if self._recall is not None:
            self._recall.keep(codes, answers, self._labels)


def in_windows(
    inputs: Callable[[int, int], NDArray[Any]], start: int, end: float = math.inf
) -> Coming:
    """What is needed of the rows from `start` on, some rows after others."""

    def coming() -> Generator[NDArray[Any]]:
        last = int(min(start + WINDOWS * WINDOW, end))
        for first in range(start, last, WINDOW):
            yield inputs(first, min(first + WINDOW, last))

    return coming


def chosen_answers(answers: Answers, places: Sequence[int]) -> Answers:
    """The answers at these places, in this order."""
    failures = {
        new: answers.failures[old] for new, old in enumerate(places) if old in answers.failures
    }
    return Answers([answers.outputs[place] for place in places], failures)


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


def _answered(answers: Answers) -> list[int]:
    """The places of those that have an answer, or a failure instead."""
    outputs = enumerate(answers.outputs)
    return [place for place, each in outputs if each is not None or place in answers.failures]
