"""Do tests that use the plugin pass, fail and stay inconclusive as they should, and say why?"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import themis.testing.claims

# Runs within this process must not be the first to import these: pytester forgets what they load.
from themis.scores.reruns import GROUP_INPUTS
from themis.testing.claims import Audits
from themis.testing.plugin import SETTINGS

pytest_plugins = ["pytester"]

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
STRICT = ("-W", "error", "--strict-markers", "--strict-config", "-p", "no:cacheprovider")
STRICT += ("-p", "no:hypothesispytest")  # it imports all of Hypothesis anew for each run
# Within this process the plugin was imported long before pytest could have rewritten it.
WITHIN = (*STRICT, "-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning")
WITHIN += ("-p", "themis.pytest_plugin")  # registered by its package or not
WITHIN += ("-p", "no:unraisableexception")  # it collects garbage five times after each run

LOAN = """
def decide(person):
    decide.runs += 1
    needed = 30_000 + (8_000 if person["race"] == "purple" else 0)
    return 1 if person["income"] >= needed else 0
decide.runs = 0
"""
FILE = """
version = 1
[subject]
kind = "python"
function = "{module}:decide"
[inputs]
race = ["green", "purple"]
sex = ["f", "m"]
income = {{ min = 0, max = 99900, step = 100 }}
savings = {{ min = 0, max = 99999 }}
[run]
seed = 42
"""
BELOW = "def test_it(themis_audit):\n    themis_audit.causal('{}').assert_below({})\n"

Run = Callable[..., pytest.RunResult]


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with a subject that discriminates against a race: for 8 % of people."""
    for name in ("NO_COLOR", "FORCE_COLOR", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    module = f"loan_{abs(hash(pytester.path))}"  # modules are imported once per process
    pytester.makepyfile(**{module: LOAN})
    (pytester.path / "themis.toml").write_text(FILE.format(module=module))
    return pytester


@pytest.fixture
def run(project: pytest.Pytester) -> Run:
    def run_tests(source: str, *arguments: str) -> pytest.RunResult:
        project.makepyfile(test_it=source)
        return project.runpytest_inprocess(*WITHIN, *arguments)

    return run_tests


def reports(project: pytest.Pytester, source: str, *arguments: str) -> list[Any]:
    """The reports of the calls of these tests."""
    project.makepyfile(test_it=source)
    recorder = project.inline_run(*WITHIN, *arguments)
    found: list[Any] = recorder.getreports("pytest_runtest_logreport")
    return [each for each in found if each.when == "call"]


def properties(report: Any) -> dict[str, Any]:
    return dict(report.user_properties)


# --- what a test says ---------------------------------------------------------------------


def test_a_score_within_its_limit_passes_and_is_listed(run: Run) -> None:
    done = run(BELOW.format("sex", 0.05))
    done.assert_outcomes(passed=1)
    done.stdout.re_match_lines(
        [
            r"=+ themis =+",
            r"causal sex 0\.000 \[0\.000, 0\.050\] is at most 0\.05  test_it\.py::test_it",
            r"\d+ executions",
        ]
    )


def test_a_violated_limit_fails_with_the_score_and_two_people(run: Run) -> None:
    done = run(BELOW.format("race", 0.02))
    assert done.ret == 1
    text = done.stdout.str().partition("short test summary")[0]  # CI repeats all of it there
    assert re.search(
        r"DiscriminationError: causal race 0\.\d+ \[0\.\d+, 0\.\d+\] is above 0\.02", text
    )
    assert "the decision changes when only" in text
    assert len(re.findall(r"race\s+green\s+purple", text)) == 2
    assert len(re.findall(r"decision\s+1\s+0", text)) == 2
    assert ">       themis_audit.causal" not in text.partition("E  ")[2], (
        "one frame: the test's own"
    )


def test_a_search_names_what_it_found(run: Run) -> None:
    claim = """
        def test_{0}_{1}(themis_audit):
            themis_audit.search(0.{1}, "{0}", ["race", "sex"]).assert_nothing_found()
    """
    asked = (("causal", "05"), ("causal", "2"), ("excess", "03"))
    done = run("".join(claim.format(*each) for each in asked))
    done.assert_outcomes(passed=1, failed=2)
    for text in (r"causal search at most 0\.05", r"excess search at most 0\.03"):
        done.stdout.re_match_lines([rf".*{text}: 1 minimal set found \(race\)"])


def test_a_mistake_in_a_test_is_said_in_one_line(run: Run) -> None:
    done = run(BELOW.format("rase", 0.05) + BELOW.replace("_it", "_b").format("race", 5))
    done.assert_outcomes(failed=2)
    assert "there is no characteristic 'rase'; did you mean 'race'?" in done.stdout.str()
    assert "must be at least 0 and below 1, got 5; write 0.05 for 5 %" in done.stdout.str()
    assert "schema.py" not in done.stdout.str()


def test_a_subject_that_fails_is_no_verdict(project: pytest.Pytester, run: Run) -> None:
    for path in project.path.glob("loan_*.py"):
        path.write_text("def decide(person):\n    raise ValueError('no such person')\n")
    done = run(BELOW.format("race", 0.05))
    done.assert_outcomes(failed=1)
    assert "SubjectError: the subject failed: crash in" in done.stdout.str()
    assert "runner.py" not in done.stdout.str()


# --- narrowing, and what stays open -------------------------------------------------------

NEAR = BELOW.format("race", 0.08)  # the score is 0.08: no sample can tell


def test_an_interval_is_narrowed_until_the_limit_is_decided(project: pytest.Pytester) -> None:
    (report,) = reports(project, BELOW.format("race", 0.06))
    assert report.failed
    assert "0.06" in report.longreprtext
    measured = properties(report)
    assert measured["themis.causal.race.verdict"] == "violated"
    low, high = (measured[f"themis.causal.race.{end}"] for end in ("low", "high"))
    assert low > 0.06
    assert high - low < 0.05, "the asked error alone, ± 0.05, would not have told"


ALONE = """
    import themis
    SCHEMA = themis.Schema(race=["green", "purple"], income=range(1000), age=range(1000))

    def decide(person):
        return person["income"] > (300 if person["race"] == "green" else 380)

    def test_it():
        themis.Audit(decide, SCHEMA).causal("race").assert_below(0.08)
"""


@pytest.mark.parametrize("source", [NEAR, ALONE], ids=["with the fixture", "without"])
def test_what_stays_open_is_an_outcome_of_its_own_and_can_be_skipped(run: Run, source: str) -> None:
    done = run(source)
    assert done.ret == 1
    assert "1 inconclusive" in done.stdout.str().splitlines()[-1]
    assert "failed" not in done.stdout.str().splitlines()[-1]
    done.stdout.re_match_lines(
        [r"=+ inconclusive =+", r".*InconclusiveError: causal race .* may be above"]
    )
    done.stdout.re_match_lines([r"E +undecided: the score is so near the limit"])
    done = run(source, "--themis-inconclusive", "skip")
    assert done.ret == 0
    assert "1 inconclusive" in done.stdout.str().splitlines()[-1]
    if source is NEAR:
        done.stdout.re_match_lines([r"causal race .* may be above 0\.08  test_it\.py::test_it"])


def test_what_stays_open_can_be_a_warning_and_the_test_goes_on(
    run: Run, project: pytest.Pytester
) -> None:
    project.makeini("[pytest]\nthemis_inconclusive = warn\n")
    shown = ("-W", "default::themis.InconclusiveWarning")
    done = run(NEAR + "    assert False, 'it went on'\n", *shown)
    done.assert_outcomes(failed=1, warnings=1)
    done.stdout.re_match_lines(
        [r".*it went on", r".*test_it\.py:2: InconclusiveWarning: causal race"]
    )
    assert run(NEAR).ret == 1, "an error, where warnings are errors"


# --- which audit --------------------------------------------------------------------------


def test_tests_share_what_was_run(project: pytest.Pytester) -> None:
    again = BELOW.replace("_it", "_again").format("race", 0.05)
    more = BELOW.replace("_it", "_more").replace("causal", "group").format("race", 0.5)
    found = reports(project, BELOW.format("race", 0.05) + again + more)
    first, second, third = [properties(each) for each in found]
    assert first["themis.causal.race.executions"] > 0 == second["themis.causal.race.executions"]
    assert third["themis.group.race.executions"] <= 2 * GROUP_INPUTS  # only to check for noise


def test_the_nearest_file_counts(project: pytest.Pytester, run: Run) -> None:
    inner = project.mkdir("inner")
    text = (project.path / "themis.toml").read_text()
    (inner / "themis.toml").write_text(text.replace("race =", "colour ="))
    source = "def test_it(themis_audit):\n    assert themis_audit.schema.names[0] == {!r}\n"
    (inner / "test_inner.py").write_text(source.format("colour"))
    run(source.format("race")).assert_outcomes(passed=2)


def test_a_file_can_be_named(project: pytest.Pytester, run: Run) -> None:
    folder = project.mkdir("elsewhere")
    (project.path / "themis.toml").rename(folder / "loan.toml")
    for path in project.path.glob("loan_*.py"):
        path.rename(folder / path.name)
    source = BELOW.format("sex", 0.05)
    missing = run(source)
    missing.assert_outcomes(errors=1)
    assert "there is no themis.toml at or above the test" in missing.stdout.str()
    run(source, "--themis-config", "elsewhere/loan.toml").assert_outcomes(passed=1)
    project.makeini("[pytest]\nthemis_config = elsewhere/loan.toml\n")
    run(source).assert_outcomes(passed=1)
    project.makeini("[pytest]\n")
    mark = "import pytest\npytestmark = pytest.mark.themis('elsewhere/loan.toml')\n"
    run(mark + source).assert_outcomes(passed=1)


MARKED = """
    import pytest, themis
    SCHEMA = themis.Schema(race=["green", "purple"], income=range(100))

    def loan(person):
        return person["income"] > (30 if person["race"] == "green" else 40)

    @pytest.mark.themis(subject=loan, schema=SCHEMA, favourable=[True])
    class TestLoan:
        def test_exactly(self, themis_audit):
            themis_audit.causal("race").assert_below(0.1)

        @pytest.mark.themis(subject=lambda person: True, schema=SCHEMA)
        def test_nearer_mark(self, themis_audit):
            themis_audit.causal("race").assert_below(0)
"""


def test_a_mark_names_subject_and_schema_and_the_nearer_one_counts(run: Run) -> None:
    run(MARKED).assert_outcomes(passed=2)


def test_a_mark_that_makes_no_sense_is_a_plain_error(run: Run) -> None:
    wrong = {
        "eror=0.01": "eror: there is no such setting; did you mean 'error'?",
        "error=7": "error: must lie between 0 and 1, got 7",
        "subject=print": "there is a subject, but no schema",
        "'a.toml', 'b.toml'": "takes one themis.toml",
        "'nowhere.toml'": "there is no such file",
    }
    marked = [f"@pytest.mark.themis({mark})\n{BELOW}".format("race", 0.5) for mark in wrong]
    tests = [each.replace("_it", f"_{n}") for n, each in enumerate(marked)]
    done = run("import pytest\n" + "".join(tests))
    done.assert_outcomes(errors=len(wrong))
    for message in wrong.values():
        assert message in done.stdout.str()
    assert not re.search(r"Traceback|shared_audits\.py", done.stdout.str())


def test_a_subject_at_hand_is_audited_once_for_all_tests(project: pytest.Pytester) -> None:
    source = """
        import pytest, themis
        SCHEMA = themis.Schema(race=["green", "purple"], income=range(5000), age=range(5000))

        @pytest.fixture(scope="session")
        def model():
            return lambda person: person["income"] > 1500

        @pytest.mark.parametrize("seed", [1, 1, 2])
        def test_it(themis_audit_of, model, seed):
            themis_audit_of(model, SCHEMA, seed=seed).causal("race").assert_below(0.05)
    """
    found = [properties(each) for each in reports(project, source)]
    first, again, other_seed = [each["themis.causal.race.executions"] for each in found]
    assert first == other_seed > 0 == again


# --- options ------------------------------------------------------------------------------


def test_options_override_file_and_mark(run: Run) -> None:
    source = """
        import pytest

        @pytest.mark.themis(confidence=0.9, error=0.2)
        def test_it(themis_audit):
            score = themis_audit.causal("sex")
            assert (score.confidence, score.error) == (0.999, 0.03)
            assert themis_audit.audit.settings.seed == 7
    """
    options = ("--themis-confidence", "0.999", "--themis-error=0.03", "--themis-seed=7")
    run(source, *options).assert_outcomes(passed=1)


def test_options_that_make_no_sense_are_refused_before_anything_runs(run: Run) -> None:
    for argument, message in (
        ("--themis-confidence=99", "--themis-confidence: must lie between 0 and 1, got 99"),
        ("--themis-max-executions=0", "--themis-max-executions: must be a whole number"),
        ("--themis-inconclusive=pass", "invalid choice: 'pass'"),
    ):
        done = run(BELOW.format("sex", 0.05), argument)
        assert done.ret == pytest.ExitCode.USAGE_ERROR
        assert message in done.stderr.str()


def test_every_option_is_documented(pytester: pytest.Pytester) -> None:
    page = (Path(__file__).parents[2] / "docs" / "pytest.md").read_text(encoding="utf-8")
    shown = pytester.runpytest_inprocess(*WITHIN, "--help").stdout.str()
    names = set(re.findall(r"--themis-[\w-]+|themis_(?:config|inconclusive)(?= \()", shown))
    assert len(names) == len(SETTINGS) + 5
    assert not {name for name in names if f"`{name}`" not in page}


# --- in processes of their own ------------------------------------------------------------


@pytest.fixture
def installed(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package registers the plugin with processes of their own, as its installation does."""
    place = pytester.mkdir("installed")
    metadata = place / "themis_fairness-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: themis-fairness\nVersion: 0\n")
    points = PROJECT["entry-points"]["pytest11"].items()
    lines = "".join(f"{name} = {module}\n" for name, module in points)
    (metadata / "entry_points.txt").write_text(f"[pytest11]\n{lines}")
    before = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", f"{place}{os.pathsep}{before}")


@pytest.mark.usefixtures("installed")
@pytest.mark.slow
def test_a_run_with_strict_settings_writes_the_scores_into_the_junit_file(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(
        test_it=BELOW.format("sex", 0.05) + BELOW.replace("_it", "_b").format("race", 0.02)
    )
    done = project.runpytest_subprocess(*STRICT, "--junitxml=junit.xml")
    done.assert_outcomes(passed=1, failed=1)
    cases = ElementTree.parse(project.path / "junit.xml").getroot().iter("testcase")
    found = {
        case.get("name"): {each.get("name"): each.get("value") for each in case.iter("property")}
        for case in cases
    }
    assert found["test_it"]["themis.causal.sex.verdict"] == "holds"
    assert found["test_it"]["themis.causal.sex.high"] == "0.05"
    assert found["test_b"]["themis.causal.race.verdict"] == "violated"
    assert float(found["test_b"]["themis.causal.race.low"] or 0) > 0.02


@pytest.mark.usefixtures("installed")
@pytest.mark.slow
def test_all_processes_of_xdist_are_in_the_summary(project: pytest.Pytester) -> None:
    tests = [BELOW.replace("_it", f"_{n}").format("sex", 0.05) for n in range(3)]
    project.makepyfile(test_it="".join(tests) + NEAR.replace("_it", "_near"))
    done = project.runpytest_subprocess(*STRICT, "-n", "2", "--themis-max-executions=2000")
    done.assert_outcomes(passed=3)
    last = done.stdout.str().rpartition("= themis =")[2]
    assert sorted(re.findall(r"test_it\.py::test_(\w+)", last)) == ["0", "1", "2", "near"]
    assert "1 inconclusive" in last


UNUSED = """
import sys

def test_it():
    heavy = {"numpy", "scipy", "pydantic", "rich", "typer", "themis.audit.audit"}
    assert "themis.pytest_plugin" in sys.modules
    assert not heavy & sys.modules.keys()
"""


@pytest.mark.usefixtures("installed")
def test_a_plugin_that_is_not_used_imports_nothing_and_says_nothing(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(UNUSED)
    done = pytester.runpytest_subprocess(*STRICT, "-p", "themis.pytest_plugin")  # named twice
    done.assert_outcomes(passed=1)
    assert "= themis =" not in done.stdout.str()


def test_tests_of_a_family_share_the_confidence(project: pytest.Pytester) -> None:
    text = BELOW.format("sex", 0.05) + BELOW.replace("_it", "_again").format("sex", 0.05)
    alone, together = (
        [properties(each) for each in reports(project, text, *options)]
        for options in ((), ("--themis-family",))
    )
    name = "themis.causal.sex"
    assert [each[f"{name}.verdict"] for each in together] == ["holds", "holds"]
    assert {each[f"{name}.confidence"] for each in (*alone, *together)} == {0.99}
    assert together[0][f"{name}.executions"] > alone[0][f"{name}.executions"]


def test_only_tests_that_use_an_audit_share_the_confidence(run: Run) -> None:
    outcome = run(
        """
        def test_nothing():
            pass

        def test_two(themis_audit):
            assert themis_audit.turns.tests == 2

        def test_of(themis_audit_of, themis_audit):
            score = themis_audit.causal("race", family=True, confidence=0.96)
            assert score.confidence == 1 - 0.04 / 4  # one of two tests, half for the first claim
            assert themis_audit.turns.taken == 1
        """
    )
    outcome.assert_outcomes(passed=3)


def test_audits_of_other_people_are_others(tmp_path: Path) -> None:
    schema = themis.Schema(race=["green", "purple"], age=range(90))
    people = [[{"race": "green", "age": age} for age in range(3)] for _ in range(2)]
    audits = Audits({})

    def audit(**asked: Any) -> Any:
        return audits.audit({"subject": print, "schema": schema, **asked}, tmp_path, tmp_path)[0]

    for key, one, other in (("profile", *people), ("favourable", ["yes"], ["no"])):
        assert audit(**{key: one}) is audit(**{key: one})
        assert audit(**{key: one}) is not audit(**{key: other})
