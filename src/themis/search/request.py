"""What is searched for, and whether that can be asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from themis.errors import Mistake, RequestError
from themis.results.model import Measure
from themis.search.lattice import members


@dataclass(frozen=True)
class SearchRequest:
    """What is searched for."""

    measure: Measure
    threshold: float
    columns: tuple[int, ...]  # the characteristics that sets are made of
    max_size: int
    error_share: float = 1.0  # the part of 1 − confidence that this search may use
    decide_only: bool = False  # found sets get no scores, unless these are exact

    def columns_of(self, mask: int) -> tuple[int, ...]:
        """The columns of a set of the search."""
        return tuple(self.columns[place] for place in members(mask))


def check_request(threshold: float, max_size: int | None) -> None:
    """Raise RequestError with all that is wrong with a request for a search."""
    mistakes = list(_mistakes(threshold, max_size))
    if mistakes:
        raise RequestError(mistakes)


def _mistakes(threshold: float, max_size: int | None) -> Iterator[Mistake]:
    if isinstance(threshold, bool) or not 0 <= threshold <= 1:
        yield Mistake(
            "threshold",
            "threshold",
            f"must lie between 0 and 1, got {threshold!r}",
            "write 0.1 for 10 %, 0 for whatever matters at all",
        )
    if max_size is not None and max_size < 1:
        yield Mistake(
            "max-size",
            "max_size",
            f"must be at least 1, got {max_size!r}",
            "leave it out for sets of any size",
        )
