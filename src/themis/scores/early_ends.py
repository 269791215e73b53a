"""Early ends: what was learned stays when the budget ends in a batch, or somebody interrupts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from themis.results.notes import Ending
from themis.subjects.base import BudgetEndedError


@dataclass
class EarlyEnd:
    """Why something ended early; None if it did not."""

    ending: Ending | None = None


@contextmanager
def ending_early(*, keeps_interrupts: bool) -> Iterator[EarlyEnd]:
    """Within, the end of the budget ends that alone; so does an interrupt, unless it is raised."""
    early = EarlyEnd()
    try:
        yield early
    except BudgetEndedError:
        early.ending = Ending.BUDGET
    except KeyboardInterrupt:
        if not keeps_interrupts:
            raise
        early.ending = Ending.INTERRUPTED
