"""Does nothing name a group of fewer than five people, or tell what exactly they get?

One person of these tests, whose sex is RARE, gets an output that begins with MARK.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.projects import enter, run, write_project
from themis.results.saved import read_result
from themis.results.withheld import withheld
from themis.show.words.verdicts import verdict

RARE, MARK = "intersex", "48611"
INPUTS = f"""\
sex = {{ values = ["female", "male", "{RARE}"], protected = true }}
hours = {{ min = 10, max = 60 }}
"""
BODY = f"return {MARK}17 if person['sex'] == '{RARE}' else 1000 * person['hours']"
EXTRA = '[profile]\ndata = "people.csv"\n[outputs.limit]\nmin = 0\nmax = 10000000\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter(tmp_path, monkeypatch)
    lines = [f"{('female', 'male')[n % 2]},{20 + n % 20}" for n in range(60)]
    (tmp_path / "people.csv").write_text("\n".join(["sex,hours", *lines, f"{RARE},30"]) + "\n")
    return tmp_path


def write(folder: Path, body: str = BODY, more: str = "") -> Path:
    return write_project(folder, body, inputs=INPUTS, extra=EXTRA + more)


def test_the_cover_of_an_audit_says_what_its_report_says(folder: Path) -> None:
    write(folder)
    done = run("audit", "-o", "out")
    assert done.exit_code in (0, 4), done.output
    result = read_result("out/result.json")
    assert RARE in verdict(result).sentence
    sentence = verdict(withheld(result)).sentence
    for name in ("README.md", "summary.md", "report.html"):
        text = (Path("out") / name).read_text()
        assert f"{sentence}." in text.replace("\xa0", " "), name
        assert "too few people to judge: " + RARE not in text, name
    run("audit", "-o", "out", "--rows")
    assert RARE in Path("out/README.md").read_text()
