"""Full slots: what is asked for, together with what idle slots run ahead, and where that is kept.

For subjects outside of this process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.ahead import Again, Ahead, More, answered, chosen_answers, merged
from themis.subjects.base import Answers, Batch, Subject
from themis.subjects.decisions import NOT_RUN, Cells
from themis.subjects.labels import Labels

if TYPE_CHECKING:
    from themis.engine.recall import Recall

Sort = Callable[[Answers], Answers]  # those of the answers that were asked for


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
