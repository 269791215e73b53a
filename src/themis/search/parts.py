"""Parts of a set: which of its characteristics a variant changes, and what follows those.

Under a set X' a variant changes exactly some T ⊆ X'. What follows a characteristic of T is
rewritten, unless X' holds it: then it keeps its value, or is in T. So a part is T with those of its
followers that X' holds besides: one number, with T as bits and what is held as bits above those.
Parts of different sets that are the same number have the same variants.
"""

from __future__ import annotations

from collections.abc import Iterator

from themis.inputs.schema import Schema
from themis.search.lattice import members, subsets


class Parts:
    """The parts of sets of some columns."""

    def __init__(self, schema: Schema, columns: tuple[int, ...]) -> None:
        self._width = len(columns)
        self._followers: dict[int, int] = {}  # what follows each place, as bits
        for tie in schema.ties:
            if {tie.leader, tie.follower} <= {*columns}:
                place, follower = columns.index(tie.leader), columns.index(tie.follower)
                self._followers[place] = self._followers.get(place, 0) | 1 << follower

    def changed(self, part: int) -> int:
        """The characteristics that a part changes."""
        return part & ((1 << self._width) - 1)

    def held(self, part: int) -> int:
        """The followers of those that keep their value."""
        return part >> self._width

    def part(self, changed: int, mask: int) -> int:
        """The part of a set that changes exactly these of its characteristics."""
        if not self._followers:
            return changed
        followers = 0
        for place in members(changed):
            followers |= self._followers.get(place, 0)
        return changed | (followers & mask & ~changed) << self._width

    def is_part(self, part: int, mask: int) -> bool:
        """Whether it is one of the parts of a set."""
        changed = self.changed(part)
        return changed & mask == changed and self.part(changed, mask) == part

    def rewritten(self, part: int) -> Iterator[int]:
        """Parts of smaller sets whose variants are those of the same set, too.

        What is held here was rewritten there: the set may change it to the same value.
        """
        held, changed = self.held(part), self.changed(part)
        if held:
            yield changed
            yield from (changed | less << self._width for less in subsets(held) if less != held)
