"""Does a command leave alone what the user has? It never writes where it reads."""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path

import pytest

from tests import report_results
from tests.projects import SMALL, enter, run, write_project
from themis.cli.files import is_no_loss
from themis.show.reports.formats import FORMATS

PEOPLE = "race,sex,income\n" + "green,f,10\npurple,m,40\n" * 20


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with people, a suite, and a saved result; its subject notes that it ran."""
    enter(tmp_path, monkeypatch)
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "others.csv").write_text(PEOPLE)
    write_project(
        tmp_path,
        "open('ran', 'w').close()\nreturn int(person['race'] == 'green')",
        inputs=SMALL,
        extra='[profile]\ndata = "people.csv"\n[report]\nrows = true\n'
        '[[checks]]\nagainst = ["race"]\nmax_score = 0.5\n',
    )
    assert run("score", "-o", "result.json", "--suite", "suite.csv").exit_code == 0
    (tmp_path / "ran").unlink()
    os.link("result.json", "linked.json")
    (tmp_path / "pointer.csv").symlink_to("people.csv")
    return tmp_path


@pytest.mark.some_slow(core=3)
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("score -o themis.toml", "--output: 'themis.toml' is there already and is no"),
        ("score --suite pointer.csv", "--suite: 'pointer.csv' is there already and is no"),
        ("score --suite x.csv -o ./x.csv", "--suite: 'x.csv' is also where --output writes"),
        ("score -o SUBJECT", "is there already and is no result of Themis"),
        ("search --threshold 0.1 --suite x.csv -o x.csv", "is also where --output writes"),
        ("apparent --data others.csv -o others.csv", "--output: 'others.csv' is the data"),
        ("check --baseline result.json -o linked.json", "'linked.json' is the baseline"),
        ("replay suite.csv -o suite.csv", "'suite.csv' is the file that is replayed"),
        ("replay result.json -o linked.json", "'linked.json' is the file that is replayed"),
        ("init --from people.csv --force -o people.csv", "'people.csv' is the file to convert"),
    ],
)
def test_what_is_read_is_never_overwritten(folder: Path, command: str, words: str) -> None:
    (subject,) = folder.glob("project_*.py")
    refused(folder, command.replace("SUBJECT", subject.name), words, "; name another file")


def refused(folder: Path, command: str, words: str, remedy: str) -> None:
    """Run a command that ends with these words, and leaves every file as it is."""
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    done = run(*command.split())
    assert done.exit_code == 2, done.output
    assert words in done.stderr
    assert remedy in done.stderr
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


FOREIGN = {
    "thesis.txt": "what I wrote",
    "table.csv": "race,sex,income\ngreen,f,10\n",
    "rows.jsonl": '{"race": "green", "sex": "f"}\n',
    "other.json": '{"scores": [1, 2]}',
    "broken.json": "{",
    "README.md": "# My project\n",
    "page.html": "<!doctype html>\n<html><body>mine</body></html>\n",
    "tests.xml": '<?xml version="1.0"?>\n<testsuites name="pytest tests"></testsuites>\n',
    "scan.sarif": '{"runs": [{"tool": {"driver": {"name": "Other"}}}]}',
    "data.parquet": "PAR1 of somebody else PAR1",
    # which only begin like ours
    "notes.md": "## Themis\n\nWhat I want to ask of it\n",
    "like.json": '{"themis": "a goddess", "holds": "scales"}',
    "cut.json": '{"themis": "0.1.0", "format": 2, "command": "score", "executions": 1',
}


@pytest.mark.parametrize(
    ("commands", "words"),
    [
        ("score -o thesis.txt; score -o other.json; score -o broken.json", "result of Themis"),
        ("score -o like.json; replay suite.csv -o cut.json; demo -o cut.json", "result of Themis"),
        ("score --suite table.csv; score --suite rows.jsonl; score --suite scores.csv", "suite"),
        ("search --threshold 0.1 --suite data.parquet", "suite"),
        ("check -o table.csv; replay suite.csv -o suite2.csv", "report of Themis (csv)"),
        ("report result.json --format csv -o table.csv", "report of Themis (csv)"),
        ("report result.json -o page.html", "report of Themis (html)"),
        ("replay suite.csv --report page.html", "report of Themis (html)"),
        ("report result.json --format annex -o page.html", "report of Themis (annex)"),
        ("report result.json --format md -o README.md", "report of Themis (md)"),
        ("report result.json --format md -o notes.md", "report of Themis (md)"),
        ("diff result.json result.json --report README.md", "report of Themis (md)"),
        ("report result.json --format junit -o tests.xml", "report of Themis (junit)"),
        ("report result.json --format sarif -o scan.sarif", "report of Themis (sarif)"),
    ],
)
def test_a_file_of_another_kind_is_never_replaced(folder: Path, commands: str, words: str) -> None:
    for name, content in FOREIGN.items():
        (folder / name).write_text(content)
    assert run("report", "result.json", "--format", "csv", "-o", "scores.csv").exit_code == 0
    shutil.copy("suite.csv", "suite2.csv")
    said = f"is there already and is no {words}: it would be lost"
    for command in commands.split("; "):
        refused(folder, command, said, "; name another file, or remove it\n")


@pytest.mark.parametrize(
    "command",
    [
        *("score -o FILE.json", "replay suite.csv -o FILE.json", "demo -q -o FILE.json"),
        *(f"score --suite FILE{each}" for each in (".csv", ".jsonl", ".parquet", ".ndjson")),
        *(
            f"report result.json --format {each} -o FILE"
            for each in ("html", "annex", "md", "junit", "sarif", "github", "csv")
        ),
        *(f"diff result.json result.json --report FILE{each}" for each in (".md", ".html")),
        "replay suite.csv --report FILE.html",
        "replay suite.csv --report FILE.md",
    ],
)
def test_a_file_of_the_same_kind_is_replaced(folder: Path, command: str) -> None:
    (folder / "FILE").touch()  # an empty file is no loss
    first = run(*command.split())
    assert first.exit_code in (0, 1), first.output
    (written,) = folder.glob("FILE.*") if "FILE." in command else [folder / "FILE"]
    before = written.stat().st_ino
    assert run(*command.split()).exit_code == first.exit_code
    assert written.stat().st_ino != before


@pytest.mark.parametrize("name", report_results.SAMPLES)
def test_whatever_a_report_holds_it_is_known_as_one_of_ours(tmp_path: Path, name: str) -> None:
    result = report_results.SAMPLES[name]()
    for kind, each in FORMATS.items():
        text = each.render(result)
        file = tmp_path / kind
        file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "replace"))
        assert is_no_loss(file, kind), kind


def test_earlier_files_that_others_saved_anew_are_known(folder: Path) -> None:
    suite = (folder / "suite.csv").read_text()
    for content, encoding in ((suite.replace(",", ";"), "utf-8-sig"), (suite, "utf-16")):
        (folder / "suite.csv").write_text(content, encoding=encoding)
        assert run("score", "--suite", "suite.csv").exit_code == 0


def test_what_is_no_file_is_written_to(folder: Path) -> None:
    assert run("score", "-q", "-o", "/dev/null").exit_code == 0
    os.mkfifo(folder / "pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((folder / "pipe").read_text()))
    reader.start()
    assert run("score", "-q", "-o", "pipe").exit_code == 0
    reader.join()
    assert json.loads(read[0])["command"] == "score"
    assert run("report", "result.json", "--format", "md", "-o", "-").stdout.startswith("## Themis")
