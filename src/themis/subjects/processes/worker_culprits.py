"""Culprits: which inputs are to blame when a worker fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from themis.subjects.processes.lines import Exchange
from themis.subjects.processes.worker_slots import Slot, Talk


def settle(
    slot: Slot, places: Sequence[int], columns: Sequence[list[bytes]]
) -> list[Any] | dict[int, Any]:
    """The outputs of these inputs, or outputs and failures by place when something failed.

    When a process fails, what it answered is kept, and the first input without an answer runs
    alone in a fresh process: the culprit, if answers come as they are made. If it is innocent the
    rest is halved until the culprit is alone.
    """
    try:
        rows = _cut(columns, places)
        talk = slot.talk(rows, len(places))
        if talk.exchange.complete and not talk.exchange.failures:
            slot.note_good([column[0] for column in rows])
            return talk.exchange.outputs
        return _Search(slot, columns).go(places, talk)
    except BaseException:
        slot.drop()
        raise


class _Search:
    """The search for the inputs to blame among those of one exchange."""

    def __init__(self, slot: Slot, columns: Sequence[list[bytes]]) -> None:
        self._slot = slot
        self._columns = columns
        self._outcomes: dict[int, Any] = {}

    def go(self, places: Sequence[int], talk: Talk) -> dict[int, Any]:
        """The outcome of each place, an output or a failure; `talk` is the first attempt."""
        pending = self._after(places, talk, in_order=True)
        while pending:
            places, in_order = pending.pop()
            talk = self._slot.talk(_cut(self._columns, places), len(places))
            pending += self._after(places, talk, in_order=in_order)
        return self._outcomes

    def _after(
        self, places: Sequence[int], talk: Talk, *, in_order: bool
    ) -> list[tuple[Sequence[int], bool]]:
        """Keep what was answered; what to run next, the last first."""
        exchange = talk.exchange
        self._keep(places, exchange)
        missing = [places[offset] for offset in exchange.missing()]
        if not missing:
            return []
        if in_order or len(missing) == 1:
            suspect = missing[0] if exchange.suspect is None else places[exchange.suspect]
            in_order = not self._judge(suspect, talk, is_alone=len(places) == 1)
            missing.remove(suspect)
            if in_order:
                return [(missing, True)] if missing else []
        half = len(missing) // 2
        return [(part, False) for part in (missing[half:], missing[:half]) if part]

    def _judge(self, place: int, talk: Talk, *, is_alone: bool) -> bool:
        """Run a suspect alone, unless it was; whether it is answered."""
        offset = 0
        if not (is_alone and talk.fresh):
            talk, offset = self._slot.run_alone(_row(self._columns, place))
        if talk.failure is None:
            self._outcomes[place] = talk.exchange.failures.get(
                offset, talk.exchange.outputs[offset]
            )
            return True
        self._outcomes[place] = talk.failure
        self._slot.note_failure(talk)
        return False

    def _keep(self, places: Sequence[int], exchange: Exchange) -> None:
        for offset, output in exchange.answered():
            self._outcomes[places[offset]] = exchange.failures.get(offset, output)
        good = next((o for o, _ in exchange.answered() if o not in exchange.failures), None)
        if good is not None:
            self._slot.note_good(_row(self._columns, places[good]))


def _cut(columns: Sequence[list[bytes]], places: Sequence[int]) -> list[list[bytes]]:
    if isinstance(places, range):
        return [column[places.start : places.stop] for column in columns]
    return [[column[place] for place in places] for column in columns]


def _row(columns: Sequence[list[bytes]], place: int) -> list[bytes]:
    return [column[place] for column in columns]
