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

from tests.external import PATIENCE, wait_until
from tests.projects import BIASED, enter, run, write_project
from themis.results.model import Result
from themis.results.saved import read_result
from themis.show.reports import markdown as covers
from themis.show.reports.method import digest
from themis.show.words.values import file_size
from themis.show.words.verdicts import verdict

ROUGH = "[run]\nerror = 0.1\n"
FILES = {"README.md", "annex.html", "report.html", "result.json", "suite.csv", "summary.md"}
SLOW = "with open('begun', 'a') as file: file.write('.')\ntime.sleep(0.002)\n" + BIASED


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter(tmp_path, monkeypatch)
    return tmp_path


def _told_by_all() -> Result:
    """The result that all documents in `out` are of."""
    result = read_result("out/result.json")
    for name in ("report.html", "annex.html", "README.md"):
        assert digest(result) in (Path("out") / name).read_text(), name
    return result


def test_everything_is_in_one_folder_and_tells_the_same(folder: Path) -> None:
    write_project(folder, extra=ROUGH)
    done = run("audit", "-o", "out")
    assert done.exit_code == 0, done.output
    assert {each.name for each in Path("out").iterdir()} == FILES
    sentence = verdict(_told_by_all()).sentence
    assert sentence.startswith("The decision changes with race")
    for name in ("report.html", "summary.md", "README.md"):
        text = (Path("out") / name).read_text()
        assert "The decision changes with race" in text, name
    assert "\nthemis audit --output out\n" in Path("out/README.md").read_text()
    assert "99 % confidence for all together" in " ".join(done.stdout.split())


def test_the_threshold_is_that_of_the_files_search_unless_given(folder: Path) -> None:
    write_project(folder, extra=f"{ROUGH}[[checks]]\nsearch = true\nmax_score = 0.2\n")
    run("audit", "-o", "out", "-q")
    assert read_result("out/result.json").searches[0].threshold == 0.2
    run("audit", "-o", "out", "-q", "--threshold", "0.3", "--max-size", "1")
    search = read_result("out/result.json").searches[0]
    assert (search.threshold, search.max_size) == (0.3, 1)


def test_the_confidence_is_that_of_the_whole_unless_refused(folder: Path) -> None:
    write_project(folder, extra=ROUGH)
    run("audit", "-o", "out", "-q")
    assert read_result("out/result.json").family == 8
    run("audit", "-o", "out", "-q", "--no-family")
    assert read_result("out/result.json").family is None


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
    done = run("audit", "-o", "out", "--max-executions", "300")
    assert done.exit_code == 4
    assert read_result("out/result.json").executions <= 300
    assert "inconclusive" in done.stdout
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
    write_project(folder, body, inputs=FEW.replace("PROTECTED", "true"))
    done = run("audit", "-o", "out", "-q")
    assert done.exit_code == 0, done.output


def test_an_audit_that_ends_early_is_saved_in_place_of_an_earlier_one(folder: Path) -> None:
    _small_audit(folder)
    done = run("audit", "-o", "out", "--max-executions", "10")
    assert done.exit_code == 4
    assert {each.name for each in Path("out").iterdir()} == FILES
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
    inputs = FEW.replace("PROTECTED", "true").replace("max = 9 }", "max = 9, protected = true }")
    inputs += "income = { min = 0, max = 99999 }\n"
    write_project(folder, "return int(person['income'] > 50000)", inputs=inputs, extra=ROUGH)
    done = run("audit", "-o", "out")
    with Path("out/suite.csv").open(newline="") as file:
        written = {row["against"] for row in csv.DictReader(file)}
    result = read_result("out/result.json")
    assert {len(each.against) for each in result.scores} == {1, 2}
    assert written == {",".join(each.against) for each in result.scores}
    assert result.searches[0].sets_tested == 7  # also the one of all three
    size = Path("out/suite.csv").stat().st_size
    assert f"in out/suite.csv ({file_size(size)})" in done.stderr


@pytest.mark.slow
def test_an_audit_of_a_program_goes_on_where_another_ended(folder: Path) -> None:
    (folder / "decide.py").write_text(
        "import sys\nfor line in sys.stdin:\n"
        "    number, race, sex, income = line.strip().split(',')\n"
        "    if number == 'id':\n        continue\n"
        "    good = int(income) >= (30000 if race == 'green' else 60000)\n"
        "    print(f'{number},{int(good)}', flush=True)\n"
    )
    (folder / "themis.toml").write_text(
        f'version = 1\n[subject]\nkind = "worker"\ncommand = [{sys.executable!r}, "decide.py"]\n'
        'format = "csv"\nfavourable = ["1"]\n[inputs]\n'
        'race = { values = ["green", "purple"], protected = true }\n'
        'sex = { values = ["f", "m"], protected = true }\nincome = { min = 0, max = 99999 }\n'
    )
    first = run("audit", "-o", "out", "--max-executions", "2000")
    assert first.exit_code == 4, first.output
    second = run("audit", "-o", "out")
    assert second.exit_code == 0, second.output
    assert run("audit", "-o", "fresh", "--no-cache").exit_code == 0
    went_on, fresh = (read_result(f"{each}/result.json") for each in ("out", "fresh"))
    assert went_on.executions < fresh.executions - 500
    assert [each.score for each in went_on.scores] == [each.score for each in fresh.scores]


FEW = """
race = { values = ["green", "purple"], protected = PROTECTED }
sex = { values = ["female", "male"], protected = PROTECTED }
savings = { min = 0, max = 9 }
"""


def test_an_audit_of_a_profile_holds_no_rows_unless_they_are_allowed(folder: Path) -> None:
    rows = [("green", "female", 1), ("purple", "male", 8), ("green", "male", 3)] * 4
    lines = [",".join(map(str, each)) for each in rows]
    (folder / "people.csv").write_text("\n".join(["race,sex,savings", *lines]) + "\n")
    body = "return int(person['race'] == 'green' or person['sex'] == 'male')"
    inputs = FEW.replace("PROTECTED", "true")
    write_project(folder, body, inputs=inputs, extra='[profile]\ndata = "people.csv"\n')
    done = run("audit", "-o", "out")
    assert done.exit_code in (0, 4), done.output
    assert {each.name for each in Path("out").iterdir()} == FILES - {"suite.csv"}
    assert "suite.csv" not in Path("out/README.md").read_text()
    assert "no suite.csv: it would hold rows of people" in done.stdout
    run("audit", "-o", "out", "--rows")
    assert {each.name for each in Path("out").iterdir()} == FILES


def test_a_failed_audit_does_not_say_that_it_wrote_an_older_one(folder: Path) -> None:
    inputs = FEW.replace("PROTECTED", "true")
    write_project(folder, "return int(person['race'] == 'green')", inputs=inputs)
    run("audit", "-o", "out", "-q")
    before = {each: each.read_bytes() for each in Path("out").iterdir()}
    write_project(folder, "raise ValueError('no')", inputs=inputs)
    done = run("audit", "-o", "out")
    assert done.exit_code == 3
    assert "wrote" not in done.stdout
    assert {each: each.read_bytes() for each in Path("out").iterdir()} == before


def test_an_audit_of_nothing_leaves_an_older_one_as_it_is(folder: Path) -> None:
    body = "return int(person['race'] == 'green')"
    write_project(folder, body, inputs=FEW.replace("PROTECTED", "true"))
    run("audit", "-o", "out", "-q")
    before = Path("out/suite.csv").read_bytes()
    write_project(folder, body, inputs=FEW.replace("PROTECTED", "false"))
    assert run("audit", "-o", "out", "-q").exit_code == 2
    assert Path("out/suite.csv").read_bytes() == before
    assert run("audit", "-o", "new", "-q").exit_code == 2
    assert not Path("new").exists()
