"""Does nothing name a group of fewer than five people, or tell what exactly they get?

One person of these tests, whose sex is RARE, gets an output that begins with MARK.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import themis
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


def write(folder: Path, body: str = BODY, more: str = "", subject: str = "") -> Path:
    return write_project(folder, body, inputs=INPUTS, extra=EXTRA + more, subject=subject)


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


CHECKS = '[[checks]]\nagainst = ["sex"]\nmeasure = "group"\nmax_score = 0.4831\n'
# What the mean of one person would follow from; a duration may be anything.
EXACT = re.compile(r"48\.3\d*.?points|4\.83\d*e\+|(to|most|sex) 0\.483")


def assert_rounded(name: str, text: str) -> None:
    assert not EXACT.search(" ".join(text.split())), f"{name}: {text}"


def test_a_check_is_decided_exactly_and_shows_rounded_numbers(folder: Path) -> None:
    write(folder, more=CHECKS.replace("0.4831", "0.4"))
    for way in ((), ("-v",), ("-q",)):
        done = run("check", *way, "-o", "result.json")
        assert done.exit_code == 1
        assert_rounded("terminal", done.output)
        assert "-q" in way or "48.0 points" in done.output.replace("\xa0", " ")
    for name in ("html", "md", "annex", "junit", "sarif", "github"):
        run("report", "result.json", "--format", name, "-o", "out")
        assert_rounded(name, Path("out").read_text())
    assert "48.3" in run("check", "--rows").output
    write(folder, more=CHECKS, subject="deterministic = true")
    assert run("check").exit_code == 1, "0.48 is below the limit, and 0.4832 is not"


@pytest.mark.parametrize(
    ("then", "said"), [(BODY, "not shown to be"), ("return 1000", "more than")]
)
def test_a_baseline_of_few_people_is_rounded(folder: Path, then: str, said: str) -> None:
    write(folder, then)
    run("score", "--against", "sex", "--measure", "group", "-o", "before.json")
    write(folder, more=CHECKS)
    done = run("check", "--baseline", "before.json", "-v", "-o", "after.json")
    assert said in " ".join(done.output.split())
    assert "0.483 to 0.483" not in done.output
    assert "(0.48 to 0.48)" in " ".join(done.output.split()) or then != BODY
    run("report", "after.json", "--format", "md", "-o", "out.md")
    assert "0.483 to 0.483" not in Path("out.md").read_text()


def test_differences_are_decided_exactly_and_shown_rounded(folder: Path) -> None:
    for name, body in (("before", BODY.replace("17", "07")), ("after", BODY)):
        write(folder, body)
        run("score", "--against", "sex", "--measure", "group", "-o", f"{name}.json")
        run("score", "--against", "sex", "--measure", "group", "--rows", "-o", f"{name}-rows.json")
    for name in ("out.md", "out.html"):
        done = run("diff", "before.json", "after.json", "--report", name)
        assert done.exit_code == 1, "a rise of one millionth is one"
        assert_rounded(name, Path(name).read_text())
        assert_rounded("terminal", done.output)
        assert "48.0 points" in done.output.replace("\xa0", " ")
    assert "48.3" in run("diff", "before-rows.json", "after-rows.json").output


def test_a_failed_test_shows_rounded_numbers() -> None:
    rows = [{"sex": "fm"[n % 2], "pay": 1000} for n in range(60)] + [{"sex": "x", "pay": 1000}]
    schema = themis.Schema(sex=["f", "m", "x"], pay=range(5000))
    output = themis.Output(name="limit", min=0, max=10_000)
    audit = themis.Audit(
        lambda p: 5832 if p["sex"] == "x" else 1000, schema, profile=rows, outputs=[output]
    )
    with pytest.raises(themis.DiscriminationError) as failed:
        audit.group("sex").assert_below(0.1)
    assert "0.480" in str(failed.value)
    assert_rounded("assertion", str(failed.value))
