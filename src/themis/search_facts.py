"""What is certain about a search as a whole? Facts that reports and verdicts share."""

from __future__ import annotations

from themis.decisions import ThresholdRule
from themis.results import SearchResult

EXACT_REASON = "its score is"  # how the reasons of a search that ran every input begin


def is_exact(search: SearchResult) -> bool:
    """Whether every input was run, so that no set was decided by a sample."""
    ran = [each for each in search.tested if each.samples]
    return bool(ran) and all(each.reason.startswith(EXACT_REASON) for each in ran)


def least_listed(search: SearchResult) -> float:
    """Every found set is above this, at the stated confidence."""
    return search.threshold if is_exact(search) else _rule(search).floor


def largest_missed(search: SearchResult) -> float:
    """No set above this was missed, at the stated confidence."""
    return search.threshold if is_exact(search) else _rule(search).ceiling


def how_it_ended(stopped: str) -> str:
    """Why something is not finished."""
    return "the budget ended" if stopped == "budget" else "it was interrupted"


def _rule(search: SearchResult) -> ThresholdRule:
    return ThresholdRule(search.threshold, search.error, 1.0 - search.confidence)
