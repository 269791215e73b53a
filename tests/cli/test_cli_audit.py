"""`themis audit`: one folder with everything, which tells the same as its result."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.external import PATIENCE, wait_until, write_sh_worker
from tests.projects import BIASED, enter, run, write_project
from themis.results.model import Result
from themis.results.saved import read_result
from themis.show.reports import markdown as covers
from themis.show.reports.method import digest
from themis.show.words.values import file_size
from themis.show.words.verdicts import verdict

ROUGH = "[run]\nerror = 0.1\n"
FEW = """
race = { values = ["green", "purple"], protected = PROTECTED }
sex = { values = ["female", "male"], protected = PROTECTED }
savings = { min = 0, max = 9 }
"""
PROTECTED = FEW.replace("PROTECTED", "true")
FILES = {"README.md", "annex.html", "report.html", "result.json", "suite.csv", "summary.md"}
SLOW = "with open('begun', 'a') as file: file.write('.')\ntime.sleep(0.002)\n" + BIASED


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter(tmp_path, monkeypatch)
    return tmp_path


def audited(*options: str, code: int = 0) -> Any:
    """An audit into `out` that ends with this code."""
    done = run("audit", "-o", "out", *options)
    assert done.exit_code == code, done.output
    return done


def written() -> dict[str, bytes]:
    """What is in `out`."""
    return {each.name: each.read_bytes() for each in Path("out").iterdir()}


def _told_by_all() -> Result:
    """The result that all documents in `out` are of."""
    result = read_result("out/result.json")
    for name in ("report.html", "annex.html", "README.md"):
        assert digest(result) in (Path("out") / name).read_text(), name
    return result


def test_everything_is_in_one_folder_and_tells_the_same(folder: Path) -> None:
    write_project(folder, extra=ROUGH)
    done = audited()
    assert written().keys() == FILES
    result = _told_by_all()
    assert verdict(result).sentence.startswith("The decision changes with race")
    for name in ("report.html", "summary.md", "README.md"):
        assert "The decision changes with race" in (Path("out") / name).read_text(), name
    assert "\nthemis audit --output out\n" in Path("out/README.md").read_text()
    assert "99 % confidence for all together" in " ".join(done.stdout.split())
    audited("-q", "--no-family")
    assert (result.family, read_result("out/result.json").family) == (8, None)


def test_the_threshold_is_that_of_the_files_search_unless_given(folder: Path) -> None:
    write_project(folder, extra=f"{ROUGH}[[checks]]\nsearch = true\nmax_score = 0.2\n")
    for options, threshold in ((), 0.2), (("--threshold", "0.3", "--max-size", "1"), 0.3):
        audited("-q", *options)
        (search, *_) = read_result("out/result.json").searches
        assert (search.threshold, search.max_size == 1) == (threshold, bool(options))


def test_files_of_somebody_else_are_left_alone(folder: Path) -> None:
    write_project(folder, extra=ROUGH)
    Path("README.md").write_text("mine")
    done = run("audit", "-o", ".")
    assert done.exit_code == 2
    assert "'.' has a README.md that is not of an audit" in done.stderr
    assert Path("README.md").read_text() == "mine"
    Path("file").write_text("mine")
    assert run("audit", "-o", "file").exit_code == 2


def test_an_audit_that_ran_out_of_budget_is_inconclusive_and_says_so(folder: Path) -> None:
    write_project(folder, extra=ROUGH)
    assert "inconclusive" in audited("--max-executions", "300", code=4).stdout
    assert read_result("out/result.json").executions <= 300
    assert "ended early" in Path("out/report.html").read_text()


def test_a_failing_subject_ends_with_3_and_leaves_no_empty_folder(folder: Path) -> None:
    write_project(folder, "raise ValueError('never')")
    done = run("audit", "-o", "out/new")
    assert done.exit_code == 3
    assert "ValueError: never" in done.stderr
    wrong = run("audit", "missing.toml", "-o", "other")
    assert wrong.exit_code == 2
    assert not Path("other").exists()


def _interrupt_after(inputs: int) -> str:
    """What an audit says that is interrupted once it has run so many inputs."""
    command = [sys.executable, "-m", "themis", "audit", "-o", "out"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: Path("begun").exists() and Path("begun").stat().st_size > inputs)
    child.send_signal(signal.SIGINT)
    _, stderr = child.communicate(timeout=PATIENCE)
    assert child.returncode == 130, stderr
    return stderr


@pytest.mark.slow
def test_an_interrupt_keeps_what_was_learned(folder: Path) -> None:
    write_project(folder, SLOW)
    stderr = _interrupt_after(600)
    assert "interrupted; the same command gives the full answer: themis audit" in stderr
    assert read_result("out/result.json").stopped == "interrupted"
    assert "the run was interrupted" in Path("out/summary.md").read_text()


def _small_audit(folder: Path) -> None:
    """A quick audit in `out`, which is finished."""
    body = "return int(person['race'] == 'green' and person['savings'] > 3)"
    write_project(folder, body, inputs=PROTECTED)
    audited("-q")


def test_an_audit_that_ends_early_is_saved_in_place_of_an_earlier_one(folder: Path) -> None:
    _small_audit(folder)
    audited("--max-executions", "10", code=4)
    assert written().keys() == FILES
    assert _told_by_all().stopped == "budget"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_documents_are_rendered_waits_for_the_last_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    _small_audit(folder)
    render = covers.render_cover

    def render_and_interrupt(*given: Any, **more: Any) -> str:
        os.kill(os.getpid(), number)
        return render(*given, **more)

    monkeypatch.setattr(covers, "render_cover", render_and_interrupt)
    done = run("audit", "-o", "out", "--seed", "5")
    assert done.exit_code == 128 + number
    assert "wrote report.html" in done.stdout
    assert _told_by_all().seed == 5


def test_an_audit_that_measured_nothing_saves_no_result(folder: Path) -> None:
    write_project(folder, SLOW)
    stderr = _interrupt_after(0)  # while the forecast is made
    assert "interrupted" in stderr
    assert not Path("out/result.json").exists()


def test_the_suite_of_an_audit_holds_the_tests_of_scores_and_not_of_the_search(
    folder: Path,
) -> None:
    inputs = PROTECTED.replace("max = 9 }", "max = 9, protected = true }")
    inputs += "income = { min = 0, max = 99999 }\n"
    write_project(folder, "return int(person['income'] > 50000)", inputs=inputs, extra=ROUGH)
    done = audited()
    with Path("out/suite.csv").open(newline="") as file:
        tested = {row["against"] for row in csv.DictReader(file)}
    result = read_result("out/result.json")
    assert {len(each.against) for each in result.scores} == {1, 2}
    assert tested == {",".join(each.against) for each in result.scores}
    assert result.searches[0].sets_tested == 7  # also the one of all three
    size = Path("out/suite.csv").stat().st_size
    assert f"in out/suite.csv ({file_size(size)})" in done.stderr


@pytest.mark.slow
def test_an_audit_of_a_program_goes_on_where_another_ended(folder: Path) -> None:
    config = write_sh_worker(folder, run="error = 0.1")
    config.write_text(config.read_text().replace('"m"] }', '"m"], protected = true }'))
    audited("--max-executions", "2000", code=4)
    audited()
    went_on = read_result("out/result.json")
    audited("--no-cache")
    fresh = read_result("out/result.json")
    assert went_on.executions < fresh.executions - 500
    assert [each.score for each in went_on.scores] == [each.score for each in fresh.scores]


def test_an_audit_of_a_profile_holds_no_rows_unless_they_are_allowed(folder: Path) -> None:
    people = "race,sex,savings\n" + "green,female,1\npurple,male,8\ngreen,male,3\n" * 4
    (folder / "people.csv").write_text(people)
    body = "return int(person['race'] == 'green' or person['sex'] == 'male')"
    write_project(folder, body, inputs=PROTECTED, extra='[profile]\ndata = "people.csv"\n')
    done = run("audit", "-o", "out")
    assert done.exit_code in (0, 4), done.output
    assert written().keys() == FILES - {"suite.csv"}
    assert "suite.csv" not in Path("out/README.md").read_text()
    assert "no suite.csv: it would hold rows of people" in done.stdout
    run("audit", "-o", "out", "--rows")
    assert written().keys() == FILES


def test_an_audit_that_fails_or_is_of_nothing_leaves_an_older_one(folder: Path) -> None:
    _small_audit(folder)
    before = written()
    write_project(folder, "raise ValueError('no')", inputs=PROTECTED)
    assert "wrote" not in audited(code=3).stdout
    assert written() == before
    write_project(folder, inputs=FEW.replace("PROTECTED", "false"))
    audited(code=2)
    assert written() == before
    assert run("audit", "-o", "new", "-q").exit_code == 2
    assert not Path("new").exists()
