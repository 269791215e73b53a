"""What is certain about a search as a whole? Facts that reports and verdicts share."""

from __future__ import annotations

from themis.results.model import SearchResult
from themis.statistics.thresholds import ThresholdRule


def least_listed(search: SearchResult) -> float:
    """Every found set is above this, at the stated confidence."""
    return search.threshold if search.method == "exact" else _rule(search).floor


def largest_missed(search: SearchResult) -> float:
    """No set above this was missed, at the stated confidence."""
    return search.threshold if search.method == "exact" else _rule(search).ceiling


def how_it_ended(stopped: str) -> str:
    """Why something is not finished."""
    reasons = {
        "noise": "the subject does not always decide the same",
        "budget": "the budget ended",
        "failed": "the subject failed too often",
    }
    return reasons.get(stopped, "it was interrupted")


def _rule(search: SearchResult) -> ThresholdRule:
    return ThresholdRule(search.threshold, search.error, 1.0 - search.confidence)
