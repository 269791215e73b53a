"""Accounts: what a score or a search cost, and the fields of a score that tell how it was got."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypedDict, TypeVar

from themis.engine.account import Spent
from themis.engine.runner import Runner
from themis.engine.sampler import Cost
from themis.results.model import Score, SearchResult
from themis.results.parts import Account
from themis.settings import Settings, Stopping
from themis.statistics.proportions import Interval

Part = TypeVar("Part", bound=Score | SearchResult)


class CommonFields(TypedDict):
    """The fields that every score has, whatever it measures."""

    score: float
    low: float
    high: float
    confidence: float
    error: float
    stopping: Stopping
    executions: int
    cache_hits: int


def common_fields(interval: Interval, settings: Settings, cost: Cost) -> CommonFields:
    """The interval of a score, what was asked for, and what it has cost so far."""
    return {
        "score": interval.score,
        "low": interval.low,
        "high": interval.high,
        "confidence": settings.confidence,
        "error": settings.error,
        "stopping": settings.stopping,
        "executions": cost.executions,
        "cache_hits": cost.cache_hits,
    }


def account_of(spent: Spent) -> Account:
    """What was spent, as a result has it."""
    return Account(spent.sampling, spent.noise, spent.explanations, spent.isolating)


def metered(runner: Runner, make: Callable[[], Part]) -> Part:
    """What `make` gives, with the executions that this took added to its account."""
    before = runner.account
    return charged(make(), runner, before)


def charged(part: Part, runner: Runner, before: Spent) -> Part:
    """The part, with the executions since then added to its account."""
    account = (part.account or Account()) + account_of(runner.account - before)
    return replace(part, executions=account.total, account=account)


def asked_again(part: Part) -> Part:
    """An answer that was given before: all of it is known, and nothing is executed."""
    hits = part.cache_hits + part.executions
    free = replace(part, executions=0, account=Account(), cache_hits=hits)
    if isinstance(free, SearchResult):
        return replace(free, minimal_sets=tuple(map(asked_again, free.minimal_sets)))
    return free
