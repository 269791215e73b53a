"""As precise as scores can be at once, where nobody says how precise: by counts alone.

Nothing is run and no clock is read to choose, so that the choice is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from themis.audit.apparatus import Apparatus
from themis.audit.views import View
from themis.results.model import Measure
from themis.scores.group import shares_contexts
from themis.settings import Settings, Stopping
from themis.statistics.excess import FEWEST_TIMES, ExcessRule
from themis.statistics.groups import GroupRule
from themis.statistics.proportions import ProportionRule
from themis.statistics.reruns import interval_confidence

NARROWER = (0.01, 0.02)  # than the usual error; half of the first takes four times as much
# Executions that take seconds: of functions of a table and models, and of one input at a time. With
# twice as many a forest of trees takes a minute; with half as many four groups are not narrower.
AT_ONCE, AT_ONCE_BY_ONE = 2_000_000, 100_000

Asked = Sequence[tuple[tuple[int, ...], Sequence[tuple[Measure, View]]]]  # sets, and their scores


def precise_at_once(
    apparatus: Apparatus, settings: Settings, asked: Asked, *, exactly: bool = True
) -> Settings:
    """The settings under which these scores take few executions even in the worst case.

    They are exact where all that they need can be run, unless not even that would be `exactly` so,
    else the error is the least that is cheap. Programs and services, what is limited, and the
    paper's rule keep the error that they have.
    """
    limit = _limit(apparatus, settings)
    scores = [(columns, *each) for columns, views in asked for each in views]
    if all(v.scorer.is_exact(v.scorer.question(c, m, settings)) for c, m, v in scores):
        return settings
    if exactly and limit and _of_all(settings, asked) <= limit:
        return replace(settings, exact=True)
    for error in NARROWER:
        narrower = replace(settings, error=error)
        if sum(_of_samples(narrower, *each) for each in asked) <= limit:
            return narrower
    return settings


def _limit(apparatus: Apparatus, settings: Settings) -> int:
    traits = apparatus.runner.traits
    costly = traits.external or apparatus.handling.cost == "executions"
    if settings.is_limited or costly or settings.stopping is Stopping.PAPER:
        return 0
    return (AT_ONCE if traits.vectorised else AT_ONCE_BY_ONE) // apparatus.runner.runs


def _of_all(settings: Settings, asked: Asked) -> float:
    """The executions of exact scores; infinite where one of them is not exact."""
    shared, own = 0.0, 0.0
    for columns, views in asked:
        for measure, view in views:
            cost = view.scorer.cost_of_all(view.scorer.question(columns, measure, settings))
            if view.scorer.people_run is None:  # the domain is run once for all of them
                shared = max(shared, cost)
            else:
                own += cost
    return shared + own


def _of_samples(
    settings: Settings, columns: tuple[int, ...], views: Sequence[tuple[Measure, View]]
) -> float:
    """The executions of one set's sampled scores, however its decisions change."""
    sampler = views[0][1].sampler
    assignments = sampler.assignments(columns)
    alpha = 1.0 - interval_confidence(settings.confidence)
    most = {
        "causal": ProportionRule(settings.confidence, settings.error).max_samples,
        "group": GroupRule(alpha, settings.error).most_contexts,
        "excess": FEWEST_TIMES * ExcessRule(alpha, settings.error).most_contexts,
    }
    rows = [most[measure] for measure in {measure for measure, _ in views}]
    together = max(rows) if shares_contexts(sampler, assignments) else sum(rows)
    return together * min(assignments.count, settings.max_assignments)
