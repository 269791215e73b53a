"""The pytest plugin: fixtures, options, outcomes, properties.

It imports nothing of the package until a test asks for an audit, so that pytest starts quickly.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from themis.errors import InconclusiveError
    from themis.results.model import CheckResult
    from themis.results.verdicts import Check
    from themis.testing.claims import AuditInTest, Audits, Turns

SETTINGS: dict[str, tuple[type, str]] = {
    "confidence": (float, "confidence level of a verdict; overrides files and marks"),
    "error": (float, "half the width of an interval, in the first round"),
    "seed": (int, "the same seed gives the same verdicts"),
    "max_executions": (int, "maximum number of executions for one assertion"),
    "max_seconds": (float, "time limit in seconds for one assertion"),
}
FAMILY = "the confidence is that of all tests of the session together"
OUTCOMES = ("fail", "skip", "warn")
MARK = (
    "themis(config, *, subject, schema, favourable, seed, error, …): what themis_audit audits: "
    "a themis.toml, or a subject with its schema; and with which settings"
)

_WHAT = frozenset({"config", "subject", "schema"})
_records = pytest.StashKey[list[dict[str, Any]]]()
_turns = pytest.StashKey[Any]()  # of a test
_tests = pytest.StashKey[int]()  # that use an audit, of a session


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options and the settings of pytest's own file."""
    group = parser.getgroup("themis", "discrimination (themis)")
    for name, (kind, text) in SETTINGS.items():
        group.addoption(f"--themis-{name.replace('_', '-')}", type=kind, metavar="N", help=text)
    group.addoption("--themis-family", action="store_const", const=True, help=FAMILY)
    text = "what becomes of a test whose limit could not be decided (default: fail)"
    group.addoption("--themis-inconclusive", choices=OUTCOMES, help=text)
    parser.addini("themis_inconclusive", f"{text}: {', '.join(OUTCOMES)}", default="fail")
    text = "the themis.toml of themis_audit. Default: the nearest one at or above the test file"
    group.addoption("--themis-config", metavar="FILE", help=text)
    parser.addini("themis_config", text, default="")


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known, and refuse settings that make no sense before anything runs."""
    config.addinivalue_line("markers", MARK)
    if (chosen := _on_inconclusive(config)) not in OUTCOMES:
        raise pytest.UsageError(f"themis_inconclusive: {chosen!r} is none of {', '.join(OUTCOMES)}")
    if given := _given(config):
        from themis.errors import RequestError
        from themis.settings import Settings

        try:
            Settings(**given)
        except RequestError as error:
            named = (f"--themis-{each.where.replace('_', '-')}" for each in error.mistakes)
            lines = [f"{n}: {m.problem}" for n, m in zip(named, error.mistakes, strict=True)]
            raise pytest.UsageError("\n".join(lines)) from None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Count the tests that will make claims, before the first of them does."""
    fixtures = {"themis_audit", "themis_audit_of"}
    using = [fixtures.intersection(getattr(each, "fixturenames", ())) for each in session.items]
    session.config.stash[_tests] = max(sum(map(bool, using)), 1)


@pytest.fixture(scope="session", name="_themis_audits")
def session_audits(pytestconfig: pytest.Config) -> Iterator[Audits]:
    """The audits of this session, which tests share."""
    from themis.testing.claims import Audits

    audits = Audits(_given(pytestconfig))
    yield audits
    audits.close()


@pytest.fixture
def themis_audit(request: pytest.FixtureRequest, _themis_audits: Audits) -> AuditInTest:
    """The audit of the nearest themis.toml, or of what the mark `themis` names.

    Write `themis_audit.causal("race").assert_below(0.05)`.
    """
    from themis.errors import ThemisError

    asked = _marked(request.node)
    problem: ThemisError
    try:
        if _WHAT.isdisjoint(asked):
            asked["config"] = _configured(request.config)
        return _in_test(request, _themis_audits, asked)
    except ThemisError as error:
        problem = error
    return pytest.fail(str(problem), pytrace=False)


@pytest.fixture
def themis_audit_of(request: pytest.FixtureRequest, _themis_audits: Audits) -> Any:
    """Gives the audit of a subject that the test has at hand: `themis_audit_of(model, schema)`.

    Settings are given as to `themis.Audit`. Tests that name the same objects share what was run.
    """

    def audit_of(subject: Any, schema: Any, **settings: Any) -> AuditInTest:
        __tracebackhide__ = True
        asked = {**_marked(request.node), "subject": subject, "schema": schema, **settings}
        asked.pop("config", None)
        return _in_test(request, _themis_audits, asked)

    return audit_of


def _in_test(request: pytest.FixtureRequest, audits: Audits, asked: dict[str, Any]) -> AuditInTest:
    from themis.testing.claims import AuditInTest

    audit, settings = audits.audit(asked, request.path, request.config.rootpath)
    record, unsure, turns = _reporting(request)
    return AuditInTest(audit, settings, record=record, unsure=unsure, turns=turns)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put what a test learned, and whether it was inconclusive, where other processes see it."""
    report = yield
    if measured := item.stash.get(_records, None):
        report.themis = measured  # type: ignore[attr-defined]  # reports keep what they are given
        item.stash[_records] = []
    if not report.passed and not hasattr(report, "wasxfail") and _is_unsure(call):
        report.themis_inconclusive = True  # type: ignore[attr-defined]
        if _on_inconclusive(item.config) == "skip":
            report.outcome = "skipped"
            reason = str(call.excinfo.value if call.excinfo else "").partition("\n")[0]
            path, line, _ = item.location
            report.longrepr = (path, (line or 0) + 1, f"inconclusive: {reason}")
    return report


def pytest_report_teststatus(report: Any) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """Inconclusive is an outcome of its own, whether it counts as a failure or not."""
    if getattr(report, "themis_inconclusive", False):
        return "inconclusive", "?", ("INCONCLUSIVE", {"purple": True})
    return None


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """What the inconclusive tests say, and one line for each limit that was decided or not."""
    reports = [each for kind in terminalreporter.stats.values() for each in kind]
    unsure = [each for each in reports if getattr(each, "themis_inconclusive", False)]
    if unsure and config.getoption("tbstyle") != "no":
        terminalreporter.section("inconclusive", purple=True)
        for report in unsure:
            _show_inconclusive(terminalreporter, report)
    measured = [(each.nodeid, known) for each in reports for known in getattr(each, "themis", ())]
    if measured:
        terminalreporter.section("themis")
        _show_measured(terminalreporter, sorted(measured, key=lambda each: each[0]))


def _show_measured(terminalreporter: Any, measured: list[tuple[str, dict[str, Any]]]) -> None:
    """One line for each assertion."""
    widest = max(len(known["line"]) for _, known in measured)
    colours = {"violated": "red", "holds": "green"}
    for test, known in measured:
        markup = {colours.get(known["verdict"], "purple"): True}
        terminalreporter.write_line(f"{known['line']:<{widest}}  {test}", **markup)
    total = sum(known["executions"] for _, known in measured)
    terminalreporter.write_line(f"{total:,} execution{'' if total == 1 else 's'}")


def _is_unsure(call: pytest.CallInfo[None]) -> bool:
    from themis.errors import InconclusiveError

    return call.excinfo is not None and call.excinfo.errisinstance(InconclusiveError)


def _show_inconclusive(terminalreporter: Any, report: Any) -> None:
    if report.failed:
        terminalreporter.write_sep("_", report.head_line or report.nodeid)
        report.toterminal(terminalreporter._tw)
    else:
        line = f"{report.longrepr[-1]}  {report.nodeid}".removeprefix("inconclusive: ")
        terminalreporter.write_line(line)


def _given(config: pytest.Config) -> dict[str, Any]:
    """The settings that the command line gives."""
    options = {name: config.getoption(f"themis_{name}") for name in (*SETTINGS, "family")}
    return {name: value for name, value in options.items() if value is not None}


def _on_inconclusive(config: pytest.Config) -> str:
    return str(config.getoption("themis_inconclusive") or config.getini("themis_inconclusive"))


def _configured(config: pytest.Config) -> Any:
    """The file that the command line or pytest's own file names, if one does."""
    if named := config.getoption("themis_config"):
        return config.invocation_params.dir / named
    if named := config.getini("themis_config"):
        return (config.inipath.parent if config.inipath else config.rootpath) / named
    return None


def _marked(node: Any) -> dict[str, Any]:
    """What the marks of a test say; the nearer one counts."""
    asked: dict[str, Any] = {}
    for mark in reversed(list(node.iter_markers("themis"))):
        if len(mark.args) > 1:
            pytest.fail("@pytest.mark.themis takes one themis.toml; name the rest", pytrace=False)
        said = {**({"config": mark.args[0]} if mark.args else {}), **mark.kwargs}
        if not _WHAT.isdisjoint(said):  # another subject: not the one of the class or module
            asked = {name: value for name, value in asked.items() if name not in _WHAT}
        asked |= said
    return asked


def _frames_of_ours() -> int:
    """How many frames up the test's own line stands, as `warnings.warn` counts."""
    frame, count = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("themis."):
        frame, count = frame.f_back, count + 1
    return count


def _reporting(request: pytest.FixtureRequest) -> tuple[Any, Any, Turns]:
    """Where a test's verdicts go, what becomes of those that are none, and whose turn it is."""
    from themis.testing.claims import Turns

    node, chosen = request.node, _on_inconclusive(request.config)
    turns = node.stash.setdefault(_turns, Turns(request.config.stash[_tests]))

    def record(check: Check, answer: CheckResult, executions: int) -> None:
        from themis.show.terminal.results import limit_line

        known = {"verdict": answer.verdict, "line": limit_line(answer), "executions": executions}
        node.stash.setdefault(_records, []).append(known)
        sets = "search" if check.against is None else ",".join(check.against)
        of = sets if check.output is None else f"{sets}.{check.output}"
        values = {
            "score": answer.score,
            "low": answer.low,
            "high": answer.high,
            "limit": answer.max_score,
            "confidence": answer.confidence,
            "verdict": answer.verdict,
            "executions": executions,
        }
        for name, value in values.items():
            if value is not None:
                value = round(value, 6) if isinstance(value, float) else value
                node.user_properties.append((f"themis.{answer.measure}.{of}.{name}", value))

    def unsure(error: InconclusiveError) -> None:
        __tracebackhide__ = True
        if chosen == "warn":
            from themis.errors import InconclusiveWarning

            text = str(error).partition("\n")[0]
            warnings.warn(InconclusiveWarning(text), stacklevel=_frames_of_ours())
            return
        raise error from None  # whether it fails or is skipped is decided in its report

    return record, unsure, turns
