"""Spelling: texts that become equal when case, punctuation and white space are ignored.

Nobody but the user knows whether `Approved.` and `approved` are two decisions. As long as no labels
say so, they are neither the same nor different.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Alike = NDArray[np.int32]  # label number → the number of the first label that is spelled alike

MEANINGFUL = frozenset("%#@&/\\")  # `95 %` is not `95`; dashes are signs, as in A- and -1


def same_but_for_spelling(labels: Iterable[Any]) -> list[tuple[Any, ...]]:
    """The labels that differ only in spelling, as groups of two and more.

    >>> same_but_for_spelling(["Approved.", "approved", "Denied", ">50K", "<=50K"])
    [('Approved.', 'approved')]
    """
    groups: dict[str, list[Any]] = {}
    for label in dict.fromkeys(each for each in labels if isinstance(each, str)):
        groups.setdefault(spelling_key(label), []).append(label)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def spelling_key(text: str) -> str:
    """What is left of a text without case, punctuation and white space.

    Signs that make a difference stay: + - < > = and the like, and marks between two digits, so that
    >50K and <=50K, A+ and A-, 1.5 and 15 are told apart. A text of nothing else is itself.
    """
    folded = unicodedata.normalize("NFKC", text).casefold().strip()
    kept = [each for place, each in enumerate(folded) if not _is_ignored(folded, place)]
    return "".join(kept) or folded


def _is_ignored(text: str, place: int) -> bool:
    each, around = text[place], text[max(place - 1, 0) : place + 2]
    if len(around) == 3 and around[0].isdigit() and around[2].isdigit():
        return False
    kind = unicodedata.category(each)
    marks = kind.startswith("P") and kind != "Pd" and each not in MEANINGFUL
    return marks or each.isspace() or kind in ("Cc", "Cf")


class Spellings:
    """Which labels of one output are spelled alike, as labels appear."""

    def __init__(self, favourable: Iterable[Any]) -> None:
        self._wanted = {spelling_key(each) for each in favourable if isinstance(each, str)}
        self._first: dict[str, int] = {}
        self._table: list[int] = []
        self._like: list[bool] = []  # which are spelled like a favourable one
        self._any = False

    def alike(self, labels: Sequence[Any]) -> Alike | None:
        """For each label the first that is spelled like it; None where no two are."""
        self._learn(labels)
        return np.array(self._table, dtype=np.int32) if self._any else None

    def like_favourable(self, labels: Sequence[Any]) -> NDArray[np.bool_]:
        """Which labels are spelled like a favourable one, whether they are one or not."""
        self._learn(labels)
        return np.array(self._like, dtype=bool)

    def _learn(self, labels: Sequence[Any]) -> None:
        for number in range(len(self._table), len(labels)):
            label = labels[number]
            first, like = number, False
            if isinstance(label, str):
                key = spelling_key(label)
                first, like = self._first.setdefault(key, number), key in self._wanted
            self._table.append(first)
            self._like.append(like)
            self._any = self._any or first != number
