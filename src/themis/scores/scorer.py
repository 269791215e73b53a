"""Scores of a given set (use 1 of the paper): exact where that costs no more, else sampled."""

from __future__ import annotations

import copy
import math
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from themis.engine.blocks import Block
from themis.engine.sampler import Sampler
from themis.engine.variants import Rows
from themis.inputs.columns import SHARED
from themis.inputs.following import as_drawn
from themis.inputs.people import People
from themis.inputs.population import Population
from themis.results.model import Measure
from themis.results.notes import Ending, Note
from themis.scores.causal import measure_causal
from themis.scores.domain import Domain, Pieces, can_be_exact, cannot_sweep, run_domain
from themis.scores.group import measure_group
from themis.scores.privacy import of_people
from themis.scores.question import Question, Scored, charged, drawing_from
from themis.scores.tally import by_construction, told_unchangeable
from themis.settings import Settings, Stopping
from themis.statistics.proportions import ProportionRule
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import NOT_RUN
from themis.subjects.readings import Reading

if TYPE_CHECKING:
    from themis.scores.excess import ExcessRows
    from themis.scores.people import PeopleRun

EXACT_LIMIT = 2**24


class Scorer:
    """Measures sets, and remembers the whole domain once it was run.

    With `people` the sampler draws from a profile, which they are.
    """

    def __init__(self, sampler: Sampler, people: People | None = None) -> None:
        self.sampler = sampler
        self.whole = sampler  # draws from all inputs
        self._domains: dict[bool, Domain] = {}  # what was run whole: with variants, or without
        self.people_run: PeopleRun | None = None  # whom inputs are drawn from, if not from all
        self._exact: dict[object, Scored] = {}
        self.contexts: dict[tuple[int, ...], ExcessRows] = {}  # what was counted of an excess
        schema = sampler.population.schema
        if people is not None:
            self.whole = drawing_from(sampler, Population.of(schema))
            from themis.scores.people import PeopleRun

            self.people_run = PeopleRun(sampler, people)
        self._reachable = self.whole  # draws also what only occurs as a variant
        if any(not tie.derived for tie in schema.ties):
            self._reachable = drawing_from(sampler, Population.reachable(schema))

    def reading_as(self, reading: Reading) -> Scorer:
        """The same, of another output of the same executions."""
        other = copy.copy(self)
        other.sampler, other.whole, other._reachable = (
            each.reading_as(reading) for each in (self.sampler, self.whole, self._reachable)
        )
        other.contexts = {}
        return other

    @property
    def whole_domain(self) -> Domain | None:
        """Every input that occurs, where all of them were run and held."""
        return next((each.occurring for each in self._domains.values()), None)

    def question(self, columns: tuple[int, ...], measure: Measure, settings: Settings) -> Question:
        """The question for the score of a set of columns."""
        return Question(self.sampler, self.sampler.assignments(columns), measure, settings)

    def measure(self, question: Question) -> Scored:
        """The score of a set, with what it cost."""
        runner, before = self.sampler.runner, self.sampler.runner.account
        measured = self._measured(question)
        measured = measured.then(lambda score: charged(score, runner, before))
        if self.people_run is None:
            measured = measured.then(partial(told_unchangeable, question))
        if measured.score.method == "exact" and measured.score.stopped is Ending.EXHAUSTED:
            self._exact[_key(question)] = measured
        return measured

    def knows(self, question: Question) -> bool:
        """Whether a set's exact score takes no execution: it was measured, or all people ran.

        Of more groups than are compared at most nothing is known where few people are in each.
        """
        run, assignments, measure = self.people_run, question.assignments, question.measure
        if not question.tries_all:
            if run is None:
                return False
            groups = len(np.unique(assignments.places_of(run.codes), axis=0))
            if SHARED * groups > run.counts.sum():
                return False
        has_run = run is not None and measure == "group" and not (run.answers == NOT_RUN).any()
        return has_run or _key(question) in self._exact

    def known(self, question: Question) -> Scored | None:
        """The exact score of a set, where nothing has to be run for it."""
        key = _key(question)
        if not self.knows(question):
            return None
        if self.people_run is not None and key not in self._exact:
            self._exact[key] = self._of_people(question, self.people_run)
        return self._exact.get(key)

    def cost_of_all(self, question: Question) -> float:
        """The executions of an exact score, where nothing was run; infinite if it can't be exact.

        Of all that the schema allows, one run serves all sets.
        """
        run, assignments = self.people_run, question.assignments
        if question.measure == "excess":
            return math.inf
        if run is not None:
            width = assignments.count if _can_run_all(question) else math.inf
            return len(run.people) * (1 if question.measure == "group" else width)
        sampler = self.drawing_all(question) if can_be_exact(question) else None
        size = None if sampler is None else sampler.population.size
        return math.inf if size is None else size

    def run_people(self, question: Question) -> None:
        """Run everybody of a profile, where a group score of these columns would.

        After that all group scores are known, and a search for groups needs no chance. Raises
        BudgetEndedError or KeyboardInterrupt where that ended it.
        """
        run = self.people_run
        if run is None or not self._runs_all(run, question):
            return
        ended = run.run(question.assignments, "group")
        if ended is Ending.INTERRUPTED:
            raise KeyboardInterrupt
        if ended is not None:
            raise BudgetEndedError

    def is_exact(self, question: Question) -> bool:
        """Whether a score is exact anyway, as long as no budget ends it."""
        if question.measure == "excess":
            return False
        if self.people_run is not None:
            return self._runs_all(self.people_run, question)
        return self.cost_of_all(question) <= self._most(question)

    # What is measured, and how --------------------------------------------------------------------
    def _measured(self, question: Question) -> Scored:
        run = self.people_run
        if (known := by_construction(question)) is not None:
            population = "inputs" if run is None else "profile"
            return known.then(lambda score: replace(score, population=population))
        if question.measure == "excess":
            measured = self._excess(question)
        elif run is None:
            return self._of_inputs(question)
        elif self._runs_all(run, question):
            return self._of_people(question, run)
        else:
            measured = _sampled(question)
        if run is None:
            return measured
        return measured.then(lambda score: of_people(score, "profile", run, question.reading))

    def _of_people(self, question: Question, run: PeopleRun) -> Scored:
        from themis.scores.apparent import measure_people

        measured = measure_people(run, question)
        return measured.then(lambda score: of_people(score, "profile", run, question.reading))

    def _of_inputs(self, question: Question) -> Scored:
        """A score of all that the schema allows: exact where that costs no more, else sampled."""
        settings = question.settings
        if settings.stopping is Stopping.PAPER:
            return _sampled(question)
        was_known = self._reaches(question) in self._domains
        domain = self._whole_domain(question)
        if domain is not None:
            if was_known:
                self.sampler.runner.ledger.remember(len(domain.cells))
            if domain.ended is None:
                self._write_down(domain, question)
            return self._exactly(question, domain)
        reason = self._why_not_swept(question) if settings.exact else None
        if settings.exact and reason is None:
            return self._exactly(question)
        note = () if reason is None else (Note.of("exact-not-possible", reason=reason),)
        measured = _sampled(question)
        return measured.then(lambda score: replace(score, notes=(*score.notes, *note)))

    def _excess(self, question: Question) -> Scored:
        from themis.scores.excess import ExcessRows, measure_excess

        columns = question.assignments.columns
        rows = self.contexts.get(columns) or ExcessRows(question)
        measured, self.contexts[columns] = measure_excess(question, rows), rows
        return measured

    def _exactly(self, question: Question, domain: Domain | None = None) -> Scored:
        """The score of a domain that was run, or of one that is too large to hold."""
        from themis.scores.exact import exact_causal, exact_group

        exact = exact_causal if question.measure == "causal" else exact_group
        return exact(question, Pieces.of(self.sampler, question.assignments, domain))

    def _why_not_swept(self, question: Question) -> str | None:
        """Why there is no exact score of a domain that is too large to hold; None if there is."""
        sampler = self.sampler
        reason = cannot_sweep(question)
        size = sampler.population.size or 0
        if reason is None and sampler.tables.suite is not None:
            reason = "suite"
        elif reason is None and size > sampler.runner.executions_left:
            reason = "max-executions"
        elif reason is None and not self._has_time_for(size):
            reason = "max-seconds"
        return reason

    def _runs_all(self, run: PeopleRun, question: Question) -> bool:
        """Whether running all people of a profile costs no more than to sample."""
        settings, people = question.settings, len(run.people)
        width = min(question.assignments.count, settings.max_assignments)
        most = ProportionRule(settings.confidence, settings.error).max_samples
        cost = people * width if question.measure == "causal" else people
        limit = most * width if question.measure == "group" or _can_run_all(question) else 0
        if settings.exact and limit:
            limit = cost
        certified = settings.stopping is Stopping.CERTIFIED
        return certified and cost <= min(limit, self._executions_left(cost))

    def _executions_left(self, wanted: float) -> float:
        left = self.sampler.runner.executions_left
        return left if wanted <= left and self._has_time_for(wanted) else 0.0

    # The whole domain -----------------------------------------------------------------------------
    def _reaches(self, question: Question) -> bool:
        """Whether variants of the set, or of its parts, are needed that are drawn by nobody.

        A follower in a set has all its values there, whatever its leader is.
        """
        if self._reachable is self.whole or True in self._domains:
            return True
        followers = {tie.follower for tie in self.sampler.population.schema.ties}
        held = not followers.isdisjoint(question.assignments.columns)
        return self.people_run is not None or (question.measure == "causal" and held)

    def drawing_all(self, question: Question) -> Sampler | None:
        """What draws every input that exact scores of the set, and of its parts, need.

        None where nothing does: of given people with a derived characteristic that is not what it
        is derived to, no list has all variants.
        """
        run = self.people_run
        derived = [tie for tie in self.sampler.population.schema.ties if tie.derived]
        if run is not None and not as_drawn(derived, run.codes).all():
            return None
        return self._reachable if self._reaches(question) else self.whole

    def run_all(self, question: Question, *, or_part: bool = False) -> Domain | None:
        """The whole domain, run once; None when the budget ends before, or a part of it.

        Of a profile: all inputs, most of which have no weight. Where something follows others: also
        those that only occur as variants, if a set needs them.
        """
        sampler, reaches = self.drawing_all(question), self._reaches(question)
        if sampler is None or reaches in self._domains:
            return self._domains.get(reaches)
        keeps_interrupts = or_part and self.sampler.keep_on_interrupt
        domain = run_domain(sampler, keeps_interrupts=keeps_interrupts)
        if domain is None or (domain.ended and not or_part):
            return None
        schema = sampler.population.schema
        if self.people_run is not None:
            people = self.people_run.people
            domain = domain.weighted(schema, people.codes, people.weights)
        elif sampler.population is not (own := self.sampler.population):
            every = np.arange(own.size or 0)
            domain = domain.weighted(schema, own.combinations(every), own.probabilities(every))
        if domain.ended is None:
            self._domains[reaches] = domain
        return domain

    def _write_down(self, domain: Domain, question: Question) -> None:
        """Write an exact score's inputs into the suite, if one is wanted."""
        tables, assignments = self.sampler.tables, question.assignments
        if tables.suite is None:
            return
        if not assignments.schema.ties:
            tables.suite.add_domain(assignments.columns, domain.codes, domain.cells)
        elif assignments.binned:  # a test has random members
            tables.suite.add_domain((), domain.codes, domain.cells)
        else:
            rows = Rows(domain.occurring.codes, {})
            cells = domain.table(assignments, domain.cells)
            tables.note("domain", Block(question.every, rows, cells, self.sampler.reading))

    def _whole_domain(self, question: Question) -> Domain | None:
        """All outputs, if running everything costs no more than sampling might."""
        if not can_be_exact(question):
            return None
        if self._reaches(question) not in self._domains:
            size = self.cost_of_all(question)
            if size > self._most(question) or size > self._executions_left(size):
                return None
        return self.run_all(question, or_part=True)

    def _most(self, question: Question) -> int:
        """The executions of a whole domain up to which it is run: no more than to sample."""
        settings = question.settings
        if settings.exact:
            return EXACT_LIMIT
        width, is_cheap = question.assignments.count, self.sampler.runner.traits.vectorised
        most = ProportionRule(settings.confidence, settings.error).max_samples
        if not is_cheap:
            width = min(width, 16)  # wide rows mostly flip long before they are whole
        return min(most * width, EXACT_LIMIT)

    def _has_time_for(self, executions: float) -> bool:
        """Whether so many executions, for which there is budget, surely fit in the time left."""
        runner = self.sampler.runner
        if math.isinf(runner.seconds_left):
            return True
        counts = [1, 8]  # inputs run to learn it: the first time may take longer than others
        if runner.traits.vectorised:  # and a small call as long as a large one
            counts += [8 * 64, 8 * 64**2]
        for count in counts:
            seconds = count * runner.runs * (runner.pace.for_each or 0.0)
            if runner.executions < count <= executions and 4 * seconds < runner.seconds_left:
                with suppress(BudgetEndedError):
                    runner.run(self.sampler.base.rows(0, count))
        seconds = runner.runs * (runner.pace.for_each or 0.0)
        return 2 * executions * seconds < runner.seconds_left


def _key(question: Question) -> object:
    """What tells exact scores apart."""
    reading, measure = question.reading, question.measure
    statistic = reading.statistic if measure == "group" else None
    return frozenset(question.assignments.columns), measure, reading.place, statistic


def _can_run_all(question: Question) -> bool:
    """Whether all variants of given people can be run: none is left out, nor drawn from a bin."""
    return question.tries_all and not question.assignments.binned


def _sampled(question: Question) -> Scored:
    """The score of a set from base inputs, by the certified rules or as the paper has it."""
    causal = question.measure == "causal"
    if question.settings.stopping is Stopping.PAPER:
        from themis.scores.paper import paper_causal, paper_group

        return (paper_causal if causal else paper_group)(question)
    return (measure_causal if causal else measure_group)(question)
