"""Families: all that one command measures, where one confidence holds for all of it together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from themis.results.model import CheckResult, Measure, Result, Score, SearchResult
from themis.settings import Settings

Shares = TypeVar("Shares", Score, CheckResult)
# The groups' spread, and their rates; the excess, and what it is the difference of.
STATEMENTS: dict[Measure, int] = {"causal": 1, "group": 2, "excess": 4}


@dataclass(frozen=True)
class Family:
    """What was planned before the first sample: how many members, and into how many parts.

    Unless the settings ask for a family every member has the whole of 1 − confidence for itself.
    """

    asked: Settings
    parts: float = 1.0  # that 1 − confidence is divided into
    members: int | None = None  # scores or checks; None: only a search knows afterwards
    counts_noise: bool = False  # nothing of all this is run again afterwards

    @classmethod
    def of(cls, asked: Settings, measures: Iterable[Measure]) -> Family:
        """The family of scores or checks of these measures."""
        planned = tuple(measures)
        parts, counts_noise = sum(STATEMENTS[each] for each in planned), {*planned} == {"excess"}
        return cls(asked, parts, len(planned), counts_noise)

    @classmethod
    def of_searches(cls, asked: Settings, measures: Iterable[Measure]) -> Family:
        """The family of searches in one go, which are right as a whole, and of what they find."""
        searched = tuple(measures)
        parts = max((STATEMENTS[each] for each in searched), default=1)
        return cls(asked, parts, counts_noise={*searched} == {"excess"})

    def with_searches(self, measures: Iterable[Measure]) -> Family:
        """The same family with searches in one go, and with what they find."""
        searches = Family.of_searches(self.asked, measures)
        counts_noise = self.counts_noise and searches.counts_noise
        parts = self.parts + searches.parts
        return replace(self, parts=parts, members=None, counts_noise=counts_noise)

    @property
    def settings(self) -> Settings:
        """How each of them is measured."""
        return self.asked.divided(self.parts)

    def whole(self, result: Result) -> Result:
        """The result of the family, with the confidence that its members share."""
        if not self.asked.family:
            return result
        known = self.members
        several = len(result.scores) + len(result.searches) if known is None else known
        return replace(
            result,
            scores=tuple(self.shared(each, several) for each in result.scores),
            searches=tuple(self.search(each, several) for each in result.searches),
            checks=tuple(self.shared(each, several) for each in result.checks),
        )

    def search(self, search: SearchResult, members: int | None = None) -> SearchResult:
        """A search of the family, with the scores of what it found."""
        several = members or 1 + len(search.minimal_sets)
        found = tuple(self.shared(each, several) for each in search.minimal_sets)
        if not self.asked.family:
            return search
        whole = self.asked.confidence
        return replace(search, minimal_sets=found, confidence=whole, family=several)

    def shared(self, each: Shares, members: int = 1) -> Shares:
        """A score or check of the family."""
        if not self.asked.family:
            return each
        return replace(each, confidence=self.asked.confidence, family=members)
