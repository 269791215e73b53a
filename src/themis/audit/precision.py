"""How precise one command is: a confidence that its members share, and the error that takes little.

What is precise at once is chosen by counts alone: nothing is run and no clock is read, so that the
choice is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeVar

from themis.audit.apparatus import Apparatus, Wanted
from themis.results.model import CheckResult, Measure, Result, Score, SearchResult
from themis.scores.group import shares_contexts
from themis.settings import Settings, Stopping
from themis.statistics.excess import FEWEST_TIMES, ExcessRule
from themis.statistics.groups import GroupRule
from themis.statistics.proportions import ProportionRule
from themis.statistics.reruns import interval_confidence

MEASURES: tuple[Measure, ...] = ("causal", "group")  # unless somebody asks for others
THRESHOLD = 0.05  # of a search in a whole audit, the same
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


NARROWER = (0.01, 0.02)  # than the usual error; half of the first takes four times as much
# Executions that take seconds: of functions of a table and models, and of one input at a time. With
# twice as many a forest of trees takes a minute; with half as many four groups are not narrower.
AT_ONCE, AT_ONCE_BY_ONE = 2_000_000, 100_000


def precise_at_once(
    apparatus: Apparatus, settings: Settings, wanted: Sequence[Wanted], *, exactly: bool = True
) -> Settings:
    """The settings under which these scores take few executions even in the worst case.

    They are exact where all that they need can be run, unless not even that would be `exactly` so,
    else the error is the least that is cheap. Programs and services, what is limited, and the
    paper's rule keep the error that they have.
    """
    limit = _limit(apparatus, settings)
    asked = [
        (view.scorer, view.scorer.question(columns, measure, settings))
        for columns, measure, view in wanted
    ]
    if all(scorer.is_exact(question) for scorer, question in asked):
        return settings
    if exactly and limit:
        costs = [scorer.cost_of_all(question) for scorer, question in asked]
        shared = apparatus.people is None  # the domain is run once for all of them
        if (max(costs) if shared else sum(costs)) <= limit:  # infinite where one is not exact
            return replace(settings, exact=True)
    for error in NARROWER:
        narrower = replace(settings, error=error)
        if _of_samples(narrower, wanted) <= limit:
            return narrower
    return settings


def _limit(apparatus: Apparatus, settings: Settings) -> int:
    traits = apparatus.runner.traits
    costly = traits.external or apparatus.handling.cost == "executions"
    if settings.is_limited or costly or settings.stopping is Stopping.PAPER:
        return 0
    return (AT_ONCE if traits.vectorised else AT_ONCE_BY_ONE) // apparatus.runner.runs


def _of_samples(settings: Settings, wanted: Sequence[Wanted]) -> float:
    """The executions of sampled scores, however decisions change."""
    alpha, total = 1.0 - interval_confidence(settings.confidence), 0
    most = {
        "causal": ProportionRule(settings.confidence, settings.error).max_samples,
        "group": GroupRule(alpha, settings.error).most_contexts,
        "excess": FEWEST_TIMES * ExcessRule(alpha, settings.error).most_contexts,
    }
    for columns, scores in groupby(wanted, lambda each: each[0]):
        views = {measure: view for _, measure, view in scores}
        sampler = next(iter(views.values())).sampler
        assignments, rows = sampler.assignments(columns), [most[each] for each in views]
        together = max(rows) if shares_contexts(sampler, assignments) else sum(rows)
        total += together * min(assignments.count, settings.max_assignments)
    return total
