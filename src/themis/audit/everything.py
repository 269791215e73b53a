"""Everything for a reader: each protected characteristic, their pairs, and a search among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

from themis.audit.family import Family
from themis.audit.forecast import Forecast
from themis.errors import RequestError
from themis.inputs.schema import Schema
from themis.results.model import Measure
from themis.settings import Settings

THRESHOLD = 0.05  # of the search, unless somebody asks for another

Steps = Callable[[int, int], None]  # hears the number of a step, and how many there are


def ignore_steps(_number: int, _total: int) -> None:
    """Listens to nothing."""


def ignore_forecast(_forecast: Forecast) -> None:
    """Listens to nothing."""


@dataclass(frozen=True)
class Everything:
    """What a whole audit measures."""

    sets: tuple[tuple[str, ...], ...]  # single characteristics, pairs, what else the file names
    among: tuple[str, ...]  # that the search makes sets of; none: there is no search
    threshold: float = THRESHOLD
    max_size: int | None = None

    @classmethod
    def of(
        cls,
        schema: Schema,
        named: Sequence[tuple[str, ...]],
        threshold: float = THRESHOLD,
        max_size: int | None = None,
    ) -> Everything:
        """The protected characteristics and their pairs, and the sets that a file names."""
        free = {schema.names[column] for column in schema.free}
        protected = [name for name in schema.protected if name in free]
        sets = chain(combinations(protected, 1), combinations(protected, 2), named)
        distinct: dict[frozenset[str], tuple[str, ...]] = {}
        for each in sets:
            distinct.setdefault(frozenset(each), each)
        if not distinct:
            problem = "nothing is said to be protected, so there is nothing to audit"
            remedy = "write protected = true at a characteristic, or name sets in [run] against"
            raise RequestError.one("no-set", "inputs", problem, remedy)
        among = tuple(protected) if len(protected) > 1 else ()
        return cls(tuple(distinct.values()), among, threshold, max_size)

    def family(
        self, settings: Settings, measures: Sequence[Measure], searched: Sequence[Measure]
    ) -> Family:
        """All scores, the searches, and what those find: one statement.

        `measures` are those of each set, one for each of its scores.
        """
        scores = Family.of(settings, list(measures) * len(self.sets))
        return scores.with_searches(searched) if self.among else scores
