"""Whose scores have people to show? What the sections on people share."""

from __future__ import annotations

from collections.abc import Iterator

from themis.results.model import CausalScore, Result
from themis.show.reports.html import Html, tag
from themis.show.words.searches import protection
from themis.show.words.values import count


def causal_scores(result: Result) -> list[CausalScore]:
    """The causal scores, sets of protected characteristics first."""
    scores = [each for each in result.scores if isinstance(each, CausalScore) and each.samples]
    return sorted(scores, key=lambda each: protection(result, each.against))


def left_out(hidden: int, noun: str) -> Iterator[Html]:
    """That some are not shown, if so."""
    if hidden:
        yield tag("p", f"{count(hidden, f'more {noun}')} not shown here", class_="faint")
