"""Answers that stand alone: one score or one search, which is no part of a result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from themis.audit.apparatus import Apparatus
from themis.audit.asked import question_of
from themis.audit.family import Family
from themis.audit.notes import with_commands
from themis.audit.run import Sought, in_words, of_rows, start_budget
from themis.audit.views import View
from themis.errors import SubjectError
from themis.results.model import Measure, Score, SearchResult
from themis.results.parts import Naming
from themis.scores.accounts import Part, asked_again, metered


@dataclass(frozen=True)
class Alone:
    """One answer of an audit, in its words; its own budget begins when it is asked for."""

    apparatus: Apparatus
    family: Family
    naming: Naming | None

    def score(self, columns: tuple[int, ...], measure: Measure, view: View) -> Score:
        """The score of a set of columns; the same question again executes nothing."""
        apparatus, own, probe = self.apparatus, self.family.settings, self.apparatus.probe
        question = question_of(columns, measure, view, own)
        for known in apparatus.asked.answers(question):
            return probe.weigh(asked_again(known), own, may_run=False)
        start_budget(apparatus.runner, own, probe)
        found = of_rows(view.scorer.measure(columns, measure, own), apparatus.facts)
        probe.foresee(own)
        measured = probe.confirm(found, own)
        weighed = self._weighed(lambda: probe.weigh(measured, own), measured.output)
        score = with_commands(weighed, apparatus.runner.subject)
        score = in_words(self.family.score(score), self.naming)
        self._check(score)
        apparatus.asked.keep(question, [score], own)
        return score

    def search(self, sought: Sought) -> SearchResult:
        """What the search for one measure finds."""
        from themis.search.searcher import weigh_search

        apparatus, own, probe = self.apparatus, self.family.settings, self.apparatus.probe
        start_budget(apparatus.runner, own, probe)
        (found,) = sought.find(apparatus, own)
        weighed = self._weighed(lambda: weigh_search(found, probe, own), found.output)
        result = self.family.search(weighed)
        named = tuple(in_words(each, self.naming) for each in result.minimal_sets)
        result = replace(result, minimal_sets=named)
        self._check(result)
        return result

    def _weighed(self, weigh: Callable[[], Part], output: str | None) -> Part:
        """The answer held against noise; of a subject that is not consistent, with an example."""
        runner, probe = self.apparatus.runner, self.apparatus.probe

        def look_and_weigh() -> Part:
            with runner.spending_reserve():
                probe.look(self.family.settings)
            part = weigh()
            if not probe.finds_in(output):
                return part
            return replace(part, notes=(*part.notes, *probe.examples()))

        return metered(runner, look_and_weigh)

    def _check(self, answer: Score | SearchResult) -> None:
        runner = self.apparatus.runner
        if runner.fails_too_often:
            raise SubjectError(runner.failure_message(), result=answer)
