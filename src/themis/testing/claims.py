"""What a test claims of an audit: asked ever more precisely, until it is decided.

Which audit does a test mean? The audits of a session, made once for all tests that name them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from themis.audit.audit import Audit
from themis.audit.checker import run_checks
from themis.audit.precision import Family
from themis.config.reader import find_config
from themis.errors import (
    ConfigError,
    InconclusiveError,
    Mistake,
    RequestError,
    ThemisError,
    suggest,
)
from themis.results.model import CheckResult, Measure, Result, Score, SearchResult
from themis.results.verdicts import Check, assert_conclusive, limit_on, raise_unless_it_holds
from themis.results.withheld import withheld
from themis.settings import Settings

Record = Callable[[Check, CheckResult, int], None]  # a claim, its verdict, its executions
Unsure = Callable[[InconclusiveError], None]  # what to do about a claim that could not be decided
Gives = TypeVar("Gives")


def refuse(error: InconclusiveError) -> None:
    """What could not be decided fails the test."""
    __tracebackhide__ = True
    raise error from None


@dataclass
class Turns:
    """The parts of 1 − confidence that claims of a test have, where all of a session are a family.

    Each test has an equal part. Of it the first claim has a half, the second a quarter, and so on,
    as nobody knows how many there will be.
    """

    tests: int = 1
    taken: int = 0

    def next(self, settings: Settings, measure: Measure) -> Family:
        """What the next claim is a part of."""
        self.taken += 1
        one = Family.of(settings, [measure])
        return replace(one, parts=one.parts * self.tests * 2**self.taken, members=self.tests)


class AuditInTest:
    """An audit as a test sees it: its scores and searches can be asserted to be within a limit.

    `settings` override those of the audit in this test. The audit itself is `audit`; what it has
    run is shared by all tests.
    """

    def __init__(
        self,
        audit: Audit,
        settings: Mapping[str, Any] | None = None,
        *,
        record: Record = lambda check, answer, executions: None,
        unsure: Unsure = refuse,
        turns: Turns | None = None,
    ) -> None:
        self.audit = audit
        self.settings = dict(settings or {})
        self.turns = turns or Turns()
        self.record = record
        self.unsure = unsure

    @property
    def schema(self) -> Any:
        """The schema of the audit."""
        return self.audit.schema

    def causal(self, *against: str, output: str | None = None, **settings: Any) -> ScoreInTest:
        """The causal score of a set, measured when it is used: `.assert_below(0.05)`, `.low`."""
        __tracebackhide__ = True
        return plainly(lambda: ScoreInTest(self, "causal", against, output, settings))

    def group(self, *against: str, output: str | None = None, **settings: Any) -> ScoreInTest:
        """The group score of a set, measured when it is used."""
        __tracebackhide__ = True
        return plainly(lambda: ScoreInTest(self, "group", against, output, settings))

    def excess(self, *against: str, output: str | None = None, **settings: Any) -> ScoreInTest:
        """The excess of a set, of an audit that answers at random, measured when it is used."""
        __tracebackhide__ = True
        return plainly(lambda: ScoreInTest(self, "excess", against, output, settings))

    def search(
        self,
        threshold: float,
        measure: Measure = "causal",
        among: Sequence[str] | None = None,
        max_size: int | None = None,
        *,
        output: str | None = None,
        **settings: Any,
    ) -> SearchInTest:
        """A search, made when it is used: `.assert_nothing_found()`, `.found`."""
        __tracebackhide__ = True
        scope = {"among": among, "max_size": max_size}
        check = plainly(lambda: limit_on(measure, None, threshold, output))
        return SearchInTest(self, check, scope, settings)

    def __repr__(self) -> str:
        return repr(self.audit)

    def decide(
        self, check: Check, settings: Mapping[str, Any], **scope: Any
    ) -> Score | SearchResult | None:
        """Ask until the limit is decided; what was measured, or the error that fits the verdict."""
        __tracebackhide__ = True
        before = self.audit.runner.executions

        def ask() -> Result:
            with self.measuring(settings) as audit:
                family = self.turns.next(audit.settings, check.measure)
                return run_checks(audit, [check], family=family, **scope)

        result = plainly(ask)
        answer, outcome = result.checks[0], _outcome(result)
        self.record(check, withheld(result).checks[0], self.audit.runner.executions - before)
        rows = result.report is not None and result.report.rows
        self.settle(lambda: raise_unless_it_holds(answer, outcome, rows=rows))
        return outcome

    @contextmanager
    def measuring_once(self, settings: Mapping[str, Any], measure: Measure) -> Iterator[Audit]:
        """The same for something that a test looks at without a limit."""
        with self.measuring(settings) as audit:
            audit.settings = self.turns.next(audit.settings, measure).settings
            yield audit

    @contextmanager
    def measuring(self, settings: Mapping[str, Any]) -> Iterator[Audit]:
        """Within, the audit has the test's settings, and these."""
        kept = self.audit.settings
        try:
            self.audit.settings = self.audit.settings.changed(**{**self.settings, **settings})
            yield self.audit
        finally:
            self.audit.settings = kept

    def settle(self, claim: Callable[[], None]) -> None:
        """Make the claim; what could not be decided is for the test's rule to settle."""
        __tracebackhide__ = True
        try:
            plainly(claim)
        except InconclusiveError as error:
            unsure = error.with_traceback(None)
        else:
            return
        self.unsure(unsure)


class ClaimInTest(Generic[Gives]):
    """Something that is measured, when a test uses it, at the audit's error and confidence."""

    _known: Gives | None = None

    def _ask(self) -> Gives:
        raise NotImplementedError

    @property
    def measured(self) -> Gives:
        """What was measured, once."""
        __tracebackhide__ = True
        if self._known is None:
            self._known = plainly(self._ask)
        return self._known

    def __getattr__(self, name: str) -> Any:
        __tracebackhide__ = True
        if name.startswith("_"):  # nothing that pytest or a debugger looks for is worth a run
            raise AttributeError(name)
        return getattr(self.measured, name)


class ScoreInTest(ClaimInTest[Score]):
    """A score of an `AuditInTest`; it has the attributes of the score besides its assertions."""

    def __init__(
        self,
        test: AuditInTest,
        measure: Measure,
        against: Sequence[str],
        output: str | None,
        settings: Mapping[str, Any],
    ) -> None:
        names = [name for part in against for name in part.split(",")]
        columns = test.audit.schema.columns_of(names, where="against")
        self._test, self._measure, self._settings = test, measure, settings
        self._against = tuple(test.audit.schema.names[column] for column in columns)
        self._output = output

    def assert_below(self, limit: float) -> None:
        """Pass if the score is shown to be within the limit; the interval is narrowed until then.

        The first round asks for the audit's error, each further one for half of it, four rounds at
        most. They share the error probability: the verdict is right with the audit's confidence.
        """
        __tracebackhide__ = True
        check = plainly(lambda: limit_on(self._measure, self._against, limit, self._output))
        self._test.decide(check, self._settings)

    def assert_conclusive(self) -> None:
        """Fail if the run was cut off, and the interval is wider than asked."""
        __tracebackhide__ = True
        self._test.settle(lambda: assert_conclusive(self.measured))

    def _ask(self) -> Score:
        with self._test.measuring_once(self._settings, self._measure) as audit:
            score: Score = getattr(audit, self._measure)(*self._against, output=self._output)
            return score

    def __repr__(self) -> str:
        known = self._known
        return str(known) if known else f"{self._measure} score against {','.join(self._against)}"


class SearchInTest(ClaimInTest[SearchResult]):
    """A search of an `AuditInTest`; it has the attributes of the result besides its assertion."""

    def __init__(
        self,
        test: AuditInTest,
        check: Check,
        scope: Mapping[str, Any],
        settings: Mapping[str, Any],
    ) -> None:
        self._test, self._check, self._scope, self._settings = test, check, scope, settings

    def assert_nothing_found(self) -> None:
        """Pass if certainly no set is above the threshold (+ error, when inputs were sampled)."""
        __tracebackhide__ = True
        self._test.decide(self._check, self._settings, **self._scope)

    def _ask(self) -> SearchResult:
        check = self._check
        with self._test.measuring_once(self._settings, check.measure) as audit:
            return audit.search(check.max_score, check.measure, output=check.output, **self._scope)


def plainly(work: Callable[[], Gives]) -> Gives:
    """What the work gives; its errors name the test's own line, and not ours."""
    __tracebackhide__ = True
    try:
        return work()
    except ThemisError as error:
        problem = error.with_traceback(None)
    raise problem from None


def _outcome(result: Result) -> Score | SearchResult | None:
    if result.searches:
        return result.searches[0]
    return result.scores[0] if result.scores else None


OF_MEASUREMENT = tuple(each.name for each in fields(Settings) if each.name != "seed")
OF_SUBJECT = (
    "seed", "favourable", "labels", "outputs", "max_failures", "max_undecided", "cache", "profile",
    "profile_weights", "show_rows",
)  # fmt: skip
OF_FILE = (*OF_SUBJECT, "jobs", "trust_pickle")


class Audits:
    """The audits of a session. Settings given on the command line override all others."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = dict(given)
        self._audits: dict[Any, tuple[Audit, Any]] = {}

    def audit(
        self, asked: Mapping[str, Any], test: Path, root: Path
    ) -> tuple[Audit, Mapping[str, Any]]:
        """The audit that a test asks for, of a subject or a file, and its settings."""
        asked = {**asked, **self._given}
        RequestError.refuse(_find_mistakes(asked))
        settings = {name: asked[name] for name in OF_MEASUREMENT if name in asked}
        if "subject" in asked:
            options = _chosen(asked, OF_SUBJECT)
            subject, schema = asked["subject"], asked["schema"]
            key: tuple[Any, ...] = (id(subject), id(schema), *_key(options))
            found = self._kept(key, lambda: Audit(subject, schema, **options), asked)
        else:
            options = _chosen(asked, OF_FILE)
            path = _file(asked.get("config"), test, root)
            key = (path, *_key(options))
            found = self._kept(key, lambda: Audit.from_file(path, **options), asked)
        found.settings.changed(**settings)  # mistakes are the fixture's, not the first assertion's
        return found, settings

    def close(self) -> None:
        """End the processes of all subjects."""
        while self._audits:
            self._audits.popitem()[1][0].close()

    def _kept(self, key: Any, make: Callable[[], Audit], alive: Any) -> Audit:
        """The audit of this key; `alive` is held, so that no other object gets its identity."""
        if key not in self._audits:
            self._audits[key] = make(), alive
        return self._audits[key][0]


def _find_mistakes(asked: Mapping[str, Any]) -> Iterator[Mistake]:
    known = ("config", "subject", "schema", *OF_MEASUREMENT, *OF_FILE)
    for name in asked:
        if name not in known:
            yield Mistake("unknown-setting", name, "there is no such setting", suggest(name, known))
    if ("subject" in asked) != ("schema" in asked):
        here, missing = ("subject", "schema") if "subject" in asked else ("schema", "subject")
        problem = f"there is a {here}, but no {missing}"
        yield Mistake("mark", "mark themis", problem, f"name both, or a file: {missing}=…")
    if "subject" in asked and asked.get("config") is not None:
        problem = "there are both a subject and a file"
        yield Mistake("mark", "mark themis", problem, "name one of them")


def _chosen(asked: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: asked[name] for name in names if name in asked}


def _key(options: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What tells options apart: plain values by what they are, others by which object it is."""
    for name, value in sorted(options.items()):
        parts = value if isinstance(value, list | tuple) else [value]
        plain = all(isinstance(each, str | int | float | Path | None) for each in parts)
        yield name, repr(value) if plain else id(value)


def _file(named: Any, test: Path, root: Path) -> Path:
    """The file that is named, seen from the test's folder; else the nearest one above it."""
    if named is not None:
        path = (test.parent / named).resolve()
        return find_config(path) if path.is_dir() else path
    for folder in test.resolve().parents:
        try:
            return find_config(folder)
        except ConfigError:
            if folder == root:
                break
    remedy = "write one: themis init; or mark the test: @pytest.mark.themis(subject=…, schema=…)"
    problem = "there is no themis.toml at or above the test"
    raise ConfigError([Mistake("no-config", "themis_audit", problem, remedy, str(test))])
