"""The lattice of sets of characteristics: which sets there are, in which order, what is implied.

Sets are bit masks over the characteristics that are searched. Nothing here sees a subject.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

WIDE = 12  # characteristics: of more than 4,095 sets nobody reads the answer


def largest_size(max_size: int | None, width: int) -> int:
    """The size of the largest sets that are searched: all, or pairs where there are very many."""
    return min(max_size or (width if width <= WIDE else 2), width)


@dataclass(frozen=True)
class Lattice:
    """All sets of up to `max_size` of some characteristics, which have so many levels each.

    Sets of only those in the mask `first` come before all others.
    """

    levels: tuple[int, ...]
    max_size: int
    cap: int  # assignments beyond this are not tried, so they cost no more than this
    first: int = -1

    @property
    def width(self) -> int:
        """The number of characteristics."""
        return len(self.levels)

    @cached_property
    def total(self) -> int:
        """The number of sets."""
        return sum(math.comb(self.width, size) for size in range(1, self.max_size + 1))

    @property
    def variants(self) -> int:
        """An input with all that differs from it in one of the sets: elementary symmetric sums."""
        sums = [1, *[0] * self.max_size]
        for count in self.levels:
            for size in range(self.max_size, 0, -1):
                sums[size] += sums[size - 1] * (min(count, self.cap) - 1)
        return sum(sums)

    def cost(self, mask: int) -> int:
        """What one row of a set costs at most: its assignments, up to the cap."""
        return min(self.assignments(mask), self.cap)

    def assignments(self, mask: int) -> int:
        """The number of assignments of a set."""
        return math.prod(self.levels[place] for place in members(mask))

    def share(self, mask: int) -> float:
        """The part of the whole search's error that is spent on this set; in sum at most one.

        Fixed before anything is seen, in proportion to the sets' costs, so that the expensive ones
        may be decided with less evidence: half of it over all sets, and half within each size,
        so that small sets are not starved by huge ones that are hardly ever reached.
        """
        cost = self.cost(mask)
        of_size = cost / (self._sums[mask.bit_count()] * self.max_size)
        of_all = cost / sum(self._sums[1 : self.max_size + 1])
        return (of_size + of_all) / 2

    @cached_property
    def _sums(self) -> list[int]:
        """Per size, at least the sum over its sets of their costs (elementary symmetric)."""
        sums = [1, *[0] * self.width]
        for count in self.levels:
            for size in range(self.width, 0, -1):
                sums[size] += sums[size - 1] * min(count, self.cap)
        capped = (self.cap * math.comb(self.width, size) for size in range(self.width + 1))
        return list(map(min, sums, capped))

    def by_cost(self, is_pruned: Callable[[int], bool]) -> Iterator[int]:
        """The sets, cheap ones first, each after all its subsets; lazily.

        A set for which `is_pruned` holds is left out together with all its supersets.
        """
        heap = [(*self._rank(1 << place), 1, 1 << place) for place in range(self.width)]
        heapq.heapify(heap)
        while heap:
            *_, size, mask = heapq.heappop(heap)
            if is_pruned(mask):
                continue
            yield mask
            if size < self.max_size and not is_pruned(mask):
                for place in range(mask.bit_length(), self.width):
                    larger = mask | 1 << place
                    if not is_pruned(larger):
                        heapq.heappush(heap, (*self._rank(larger), size + 1, larger))

    def _rank(self, mask: int) -> tuple[bool, int]:
        return self._is_behind(mask), self.cost(mask)

    def _is_behind(self, mask: int) -> bool:
        return mask & ~self.first != 0

    def by_level(self, is_pruned: Callable[[int], bool], most: int) -> Iterator[list[int]]:
        """The sets that are not pruned, by size, up to `most` of one size together; lazily."""
        sets: Iterable[int] = [1 << place for place in range(self.width)]
        for _ in range(self.max_size):
            kept: list[int] = []
            ordered = sets if self.first == -1 else sorted(sets, key=self._is_behind)
            for mask in ordered:
                if is_pruned(mask):
                    continue
                kept.append(mask)
                if len(kept) % most == 0:
                    yield kept[-most:]
            if len(kept) % most:
                yield kept[-(len(kept) % most) :]
            sets = (
                mask | 1 << place
                for mask in kept
                if not is_pruned(mask)
                for place in range(mask.bit_length(), self.width)
            )

    def extensions(self, mask: int) -> list[int]:
        """The sets with one characteristic more, cheap ones first."""
        if mask.bit_count() >= self.max_size:
            return []
        larger = [mask | 1 << place for place in range(self.width) if not mask >> place & 1]
        return sorted(larger, key=lambda each: (self.cost(each), each))

    def by_size(self) -> Iterator[int]:
        """The sets in the order of Algorithm 3: by size, then as the characteristics stand."""
        for size in range(1, self.max_size + 1):
            for places in combinations(range(self.width), size):
                yield sum(1 << place for place in places)

    def count_supersets(self, found: Sequence[int]) -> int:
        """How many sets strictly contain one of these, which must contain none of each other."""
        if self.total > 2**17:  # beyond this many sets the pruned ones are not counted one by one
            return -1
        return sum(
            any(mask & each == each and mask != each for each in found) for mask in self.by_size()
        )


@dataclass
class Border:
    """What is decided, with all that follows from it by monotonicity (Theorems 4.1 and 4.2)."""

    above: list[int] = field(default_factory=list)  # minimal sets known to be above
    below: dict[int, dict[int, None]] = field(default_factory=dict)  # maximal ones, by size

    def add_above(self, mask: int) -> None:
        """Note a set that is above; its supersets are above as well."""
        self.above = [each for each in self.above if each & mask != mask] + [mask]

    def add_below(self, mask: int) -> None:
        """Note a set that is below; its subsets are below as well."""
        for size, sets in self.below.items():
            if size < mask.bit_count():
                self.below[size] = {each: None for each in sets if each & mask != each}
        self.below.setdefault(mask.bit_count(), {})[mask] = None

    def pruned_by(self, mask: int) -> int | None:
        """The set above that this one contains, if there is one."""
        return next((each for each in self.above if mask & each == each), None)

    def implied_by(self, mask: int) -> int | None:
        """The set below that contains this one, if there is one."""
        if mask in self.below.get(mask.bit_count(), ()):
            return mask
        larger = (sets for size, sets in self.below.items() if size > mask.bit_count())
        return next((each for sets in larger for each in sets if mask & each == mask), None)


def members(mask: int) -> tuple[int, ...]:
    """The places of a set's characteristics."""
    return tuple(place for place in range(mask.bit_length()) if mask >> place & 1)


def subsets(mask: int) -> Iterator[int]:
    """All non-empty subsets of a set, itself included."""
    part = mask
    while part:
        yield part
        part = (part - 1) & mask


def minimal(masks: Iterable[int]) -> list[int]:
    """Those that contain no other."""
    border = Border()
    for mask in sorted(masks, key=int.bit_count):
        if border.pruned_by(mask) is None:
            border.add_above(mask)
    return border.above
