"""What an audit was asked and answered: the same question again executes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from themis.audit.views import View
from themis.results.model import Measure, Score
from themis.results.outcomes import Outcomes, Proxy
from themis.settings import Settings

if TYPE_CHECKING:
    from themis.scores.people import PeopleRun


def question_of(
    columns: tuple[int, ...],
    measure: Measure,
    view: View,
    settings: Settings,
    limit: float | None = None,
) -> object:
    """What a score answers; an audit keeps its views, so that each has an identity."""
    return (columns, measure, id(view), settings, limit)


class Asked:
    """The answers that measuring again would not change."""

    def __init__(self) -> None:
        self._answers: dict[object, tuple[Score, ...]] = {}
        self.observed: dict[object, tuple[tuple[Outcomes, ...], tuple[Proxy, ...]]] = {}  # in rows
        self.runs: dict[object, PeopleRun | None] = {}  # of these rows

    def answers(self, question: object) -> tuple[Score, ...]:
        """What was answered; nothing if it was not asked before."""
        return self._answers.get(question, ())

    def keep(self, question: object, scores: Sequence[Score], settings: Settings) -> None:
        """Take note of an answer, unless a budget or an interrupt cut it off."""
        if all(_is_settled(each, settings) for each in scores):
            self._answers.setdefault(question, tuple(scores))


def _is_settled(score: Score, settings: Settings) -> bool:
    limited = settings.max_executions is not None or settings.max_seconds is not None
    return not score.stopped.is_early and (score.is_checked or not limited)
