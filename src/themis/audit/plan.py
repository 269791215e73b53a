"""Plans: what a run would meet and cost, from the domain, a few trial inputs and estimates."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from themis.audit.audit import Audit
from themis.audit.forecast import PILOT, Everything, Forecaster
from themis.audit.given import check_made_up
from themis.audit.notes import fit_notes, inventories, sparse, unknown_values
from themis.audit.precision import MEASURES, THRESHOLD, Family, precise_at_once
from themis.config.from_model import order_note
from themis.engine.account import Budget
from themis.errors import SubjectError
from themis.events import Forecast
from themis.inputs.characteristics import Value
from themis.inputs.following import rewrite
from themis.inputs.population import Population
from themis.inputs.schema import Schema
from themis.results.model import Measure
from themis.results.notes import Note
from themis.results.parts import Inventory
from themis.results.verdicts import Check, precisions
from themis.results.withheld import withheld, withheld_output
from themis.search.searcher import SearchPlan
from themis.subjects.base import Subject
from themis.subjects.labels import Labels, Part

Command = Literal["score", "search", "audit", "check"]


@dataclass(frozen=True)
class Trial:
    """One input and what the subject made of it."""

    values: dict[str, Value] | None  # None: a row of people, which is not to be shown
    output: Value | None  # None: no decision
    favourable: bool | None  # None: no output is more favourable than others, as of numbers


@dataclass(frozen=True)
class Pilot:
    """What the executions before the forecast showed, and what they used."""

    executions: int
    repeated: int  # inputs that were run twice
    differing: int  # of them, with another decision
    failures: Mapping[str, int]  # by kind
    outputs: tuple[Inventory, ...]
    tokens_in: int
    tokens_out: int
    spend: float


@dataclass(frozen=True, kw_only=True)
class Wish:
    """The command whose cost is asked for; None: what `score` and `check` take by default."""

    command: Command | None = None
    sets: Sequence[Sequence[str]] | None = None  # of a score; None: the default ones
    threshold: float = THRESHOLD  # of a search
    max_size: int | None = None
    measures: Sequence[Measure] = MEASURES
    pilot: int | None = None  # how many executions the forecast may take

    def is_for(self, *commands: Command) -> bool:
        """Whether one of these is meant."""
        return self.command is None or self.command in commands


@dataclass(frozen=True)
class Plan:
    """What is known before measuring anything."""

    schema: Schema
    size: int  # of the domain before constraints
    valid_size: int | None  # None: too many to count
    valid_share: float
    share_is_exact: bool
    warnings: tuple[Note, ...]
    trials: tuple[Trial, ...]
    seconds_per_execution: float
    forecast: Forecast  # of `themis score`, or of `themis audit`
    checks: Forecast | None  # of the file's checks of single sets, if it has any
    searches: tuple[SearchPlan, ...]  # of the file's checks that search, or of `themis search`
    confidence: float
    error: float
    failure: str | None  # why some trial has no decision
    profile: Mapping[str, Any] | None = None  # whom inputs are drawn from, where not from all
    command: Command | None = None  # that is forecast; None: `score` and `check`
    pilot: Pilot | None = None
    example: str | None = None  # a line for a shell that sends the first trial, where texts are


def make_plan(
    audit: Audit,
    checks: Sequence[Check] = (),
    *,
    at_once: bool = False,
    wish: Wish = Wish(),
) -> Plan:
    """Run a few inputs of an audit's subject; work out what its scores and checks will cost.

    How much a search takes depends on what it finds: only how many sets it looks at is known.
    """
    apparatus, schema, views = audit.apparatus, audit.schema, audit.apparatus.views
    population = views.whole.population
    check_made_up(schema, apparatus.facts)
    sets = audit.default_sets if wish.sets is None else wish.sets
    wanted = views.wanted(map(schema.columns_of, sets), wish.measures)
    family, whole = Family.of(audit.settings, [measure for _, measure, _ in wanted]), None
    if wish.command == "audit":
        whole = Everything.of(
            schema, audit.named_sets, wish.threshold, wish.max_size, wish.measures
        )
        wanted, family = whole.wanted(apparatus), whole.family(audit.settings, views)
    audit.runner.start(Budget(max_executions=wish.pilot))
    trials, settings = tuple(_try(audit)), family.settings
    if at_once:
        settings = precise_at_once(apparatus, settings, wanted)
    twice = None if wish.pilot is None else _ask_twice(audit, wish.pilot // 3)
    total = _size(schema)
    share, is_exact = _share(schema, total, population.size)
    failed = any(trial.output is None for trial in trials)
    failing = tuple(_failing(audit))
    rows = 0 if failed else PILOT  # where trials failed nothing more is tried
    if whole is not None and not failed:
        forecast = whole.forecast(apparatus, settings)
    else:
        scored = wanted if wish.is_for("score") else ()
        forecast = Forecaster(views.of(None), settings, rows=rows).forecast(scored)
    checks = checks if wish.is_for("check") else ()
    of_checks = _forecast_checks(audit, [each for each in checks if each.against], rows)
    shared = _shared(audit)  # by now as many people were run as will be
    if shared is not None:
        trials = tuple(_withheld(each, shared) for each in trials)
    return Plan(
        schema=schema,
        size=total,
        valid_size=population.size,
        valid_share=share,
        share_is_exact=is_exact,
        warnings=(
            *sparse(population),
            *unknown_values(audit.runner.subject),
            *failing,
            *_fit_notes(audit),
            *_warnings(audit, trials),
            *filter(None, [order_note(audit.runner.subject, None)]),
        ),
        trials=trials,
        seconds_per_execution=audit.runner.pace.for_each or 0.0,
        forecast=forecast,
        checks=of_checks,
        searches=tuple(_searches(audit, checks, wish)),
        command=wish.command,
        confidence=audit.settings.confidence,
        error=settings.error,
        failure=audit.runner.failure_message() if failed else None,
        profile=apparatus.facts,
        pilot=None if twice is None else _pilot(audit, twice),
        example=_example(audit.runner.subject, trials[0].values),
    )


def _example(subject: Subject, row: Mapping[str, Value] | None) -> str | None:
    return subject.reproduce(row) if subject.reads_texts and row is not None else None


def _shared(audit: Audit) -> set[Value] | None:
    """The outputs so far that name nobody; None where all may be shown."""
    views = audit.apparatus.views
    run = None if audit.shows_rows else views.people_run
    return None if run is None else views.shared_outputs(run)


def _ask_twice(audit: Audit, count: int) -> tuple[int, int]:
    """Of so many inputs, how many were answered twice, and how many of them differently."""
    codes = audit.sampler.base.rows(0, count)
    first = audit.runner.run(codes)
    second = audit.runner.repeat(codes)
    both = (first >= 0) & (second >= 0)
    return int(both.sum()), int((both & (first != second)).sum())


def _pilot(audit: Audit, twice: tuple[int, int]) -> Pilot:
    runner, shared = audit.runner, _shared(audit)
    spent, failures = runner.account, dict(runner.failures.counts)
    outputs = tuple(inventories(runner, shared))
    used, cost = (spent.tokens_in, spent.tokens_out), runner.used["max_spend"]
    return Pilot(spent.executions, *twice, failures, outputs, *used, cost)


def _searches(audit: Audit, checks: Sequence[Check], wish: Wish) -> Iterator[SearchPlan]:
    """Those of the checks, or the one that is wished for."""
    yield from (
        audit.search_plan(each.max_score, measure=each.measure) for each in checks if each.search
    )
    if wish.command == "search":
        measure: Measure = "excess" if "excess" in wish.measures else "causal"
        yield audit.search_plan(wish.threshold, max_size=wish.max_size, measure=measure)


def _fit_notes(audit: Audit) -> Iterable[Note]:
    notes = fit_notes(audit.apparatus.facts)
    return notes if audit.shows_rows else withheld(tuple(notes))


def _try(audit: Audit) -> Iterator[Trial]:
    codes = audit.sampler.base.rows(0, 8)
    cells = audit.runner.run(codes)
    reading = audit.sampler.reading
    labels: Labels | Part = audit.runner.labels
    is_plain = audit.runner.labels.is_plain
    favourable: list[bool] | list[None] = [None] * len(codes)
    if reading.has_favourable:
        favourable = reading.labels.is_favourable(reading.cells(cells)).tolist()
    if is_plain:  # beside the first output the others add nothing
        labels, cells = reading.labels, reading.cells(cells)
    for row, cell, good in zip(codes, cells.tolist(), favourable, strict=True):
        output = labels.labels[cell] if cell >= 0 else None
        shown = audit.shows_rows or not audit.population.profile
        yield Trial(audit.schema.decode_row(row) if shown else None, output, good)


def _failing(audit: Audit) -> Iterable[Note]:
    """How many inputs fail, and which, of as many as a second allows."""
    each = audit.runner.pace.for_more or 1.0
    with suppress(SubjectError):
        notes = audit.failing(least=min(int(1.0 / each), 2_000))
        return notes if audit.shows_rows else withheld(tuple(notes))
    return ()


def _withheld(trial: Trial, shared: Collection[Value]) -> Trial:
    return replace(trial, output=withheld_output(trial.output, shared))


def _warnings(audit: Audit, trials: tuple[Trial, ...]) -> Iterator[Note]:
    decided = [trial for trial in trials if trial.output is not None]
    if decided and all(trial.favourable is False for trial in decided):
        outputs = {repr(trial.output): trial.output for trial in decided}
        yield Note.of("no-favourable-trial", outputs=list(outputs.values()))
    if not audit.default_sets:
        yield Note.of("nothing-protected")


def _size(schema: Schema) -> int:
    """How many inputs there are before constraints; followers leave fewer than all combinations."""
    counted = Population.of(schema.with_constraints(())).size if schema.ties else schema.size
    return schema.size if counted is None else counted


def _share(schema: Schema, total: int, valid: int | None) -> tuple[float, bool]:
    """The share of combinations that constraints leave, and whether it is exact."""
    if not schema.constraints:
        return 1.0, True
    if valid is not None:
        return valid / total, True
    rng = np.random.default_rng(0)
    codes: Any = np.stack(
        [rng.integers(0, each.code_count, 200_000) for each in schema.characteristics], axis=1
    )
    rewrite(schema.ties, codes)
    return float(schema.valid(codes).mean()), False


def _forecast_checks(audit: Audit, checks: Sequence[Check], rows: int) -> Forecast | None:
    """Of the round of checks that tells their limits from three times as much: one score each."""
    if not checks:
        return None
    family = Family.of(audit.settings, [each.measure for each in checks])
    rounds = list(precisions(family.settings.error, family.settings.confidence))
    least = min(each.max_score for each in checks)
    round_ = next((each for each in rounds if each.error <= 2 * least), rounds[-1])
    settings = replace(family.settings, confidence=round_.confidence, error=round_.error)
    views = audit.apparatus.views
    wanted = [
        (audit.schema.columns_of(each.against or ()), each.measure, views.of(each.output))
        for each in checks
    ]
    return Forecaster(views.of(None), settings, rows=rows).forecast(wanted)
