"""Is a saved result told truly in every format? Validated, read back, and with hostile names."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lxml import etree
from markdown_it import MarkdownIt

import themis
from tests.projects import SMALL, Project, process, run
from tests.report_results import SAMPLES, audit, demo, notes
from tests.results.test_checks import check
from themis.audit.checker import run_checks
from themis.errors import SubjectError
from themis.results.comparison import beside_baseline
from themis.results.model import CausalScore, Result
from themis.results.saved import result_from_dict, result_schema
from themis.results.verdicts import Acceptance, Acceptances
from themis.show.reports.ci import render_annotations, render_junit
from themis.show.reports.formats import COLUMNS, FORMATS, render_csv, score_rows
from themis.show.reports.markdown import escape, render_markdown
from themis.show.reports.sarif import render_sarif
from themis.show.words.searches import verdict_words

SCHEMAS = Path(__file__).parents[1] / "schemas"
HOSTILE = [
    "a|b",
    "<script>alert(1)</script>",
    "]]>",
    "x\ny\r\nz",
    "\x00\x1b[31mred",
    "::error::100 %",
    "file=a,line=1",
    "@everyone and #12",
    "**bold** _it_ `code` [link](http://evil) ~~no~~",
    "{0} \\",
    "\"quoted\" & 'so'",
    "\u202eright to left",
    "\ud800half",
    "$x$ :smile: &amp;",
    "- item",
]
CHECK = '[[checks]]\nagainst = ["race"]\nmax_score = 0.1\n'
WHERE = {"file": "themis.toml", "command": ""}


# Results of every kind --------------------------------------------------------------------
SCHEMA = themis.Schema(
    race=themis.Values(["green", "purple"], protected=True),
    sex=["f", "m"],
    age=themis.Integers(18, 60, bins=[30, 45]),
    savings=range(100),
)


def loan(person: dict[str, Any]) -> int:
    return int(person["savings"] > (40 if person["race"] == "green" else 60) - person["age"] / 10)


def fails(person: dict[str, Any]) -> int:
    if person["savings"] == 7:
        raise ValueError("no savings of 7 & <b>")
    return loan(person)


def all_verdicts() -> Result:
    """Checks of which one holds, one is violated, one lacks evidence, the others are accepted."""
    until = date(2099, 1, 1)
    race = Acceptance(against=("race",), reason="ticket | 12", until=until)
    savings = Acceptance(against=("savings",), reason="may count", until=until, max_score=1.0)
    accepted = Acceptances((race, savings), date(2026, 1, 1))
    checks = [
        check(0.5, "sex"),
        check(0.02, "race", measure="group"),
        check(0.01, "race"),
        check(0.3),
        check(0.1),
    ]
    audit = themis.Audit(loan, SCHEMA, seed=3, error=0.1, confidence=0.9)
    result = run_checks(audit, checks, accepted=accepted)
    open_ = {"verdict": "not enough evidence", "reasons": notes("the budget ended")}
    lacking = replace(result.checks[0], name="open", **open_)
    result = replace(result, checks=(*result.checks, lacking))
    said = {"holds", "violated", "accepted", "not enough evidence"}
    assert {each.verdict for each in result.checks} == said
    return result


def hostile() -> Result:
    """A result whose names, values, outputs and notes try to break out of every format."""
    names = [f"{number} {text}".replace(",", ";") for number, text in enumerate(HOSTILE)]
    names = [name.replace("`", "'") for name in names]  # no name may have a comma or a backquote
    schema = themis.Schema({names[0]: HOSTILE, names[1]: ["b"], **{n: [1, 2] for n in names[2:]}})
    outputs = dict(zip(HOSTILE, reversed(HOSTILE), strict=True))
    audit = themis.Audit(
        lambda person: outputs[person[names[0]]], schema, favourable=[HOSTILE[0]], error=0.2
    )
    result = run_checks(
        audit, [check(0.1, names[0]), check(0.1, *names[:3]), check(0.1, names[0], measure="group")]
    )
    lines = {name: number + 1 for number, name in enumerate(names)}
    source = {"file": "odd dir/the mis,%:.toml", "lines": lines, "command": "themis check"}
    failure = {"count": 2, "message": HOSTILE[4], "input": {names[0]: HOSTILE[1]}}
    return replace(result, source=source, notes=notes(*HOSTILE), failures={HOSTILE[1]: failure})


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    """Each sample that is measured, and others."""
    kinds = ("demo", "small search", "outputs", "everything", "audit", "apparent", "outcomes")
    cut = themis.Audit(loan, SCHEMA, max_executions=900).search_all(0.1, ("causal",))
    assert cut.stopped == "budget"
    with pytest.raises(SubjectError) as failed:
        themis.Audit(lambda person: 1 / 0, SCHEMA).score([["race"]])
    checks = all_verdicts()
    return {
        **{name: SAMPLES[name]() for name in kinds},
        "budget": themis.Audit(loan, SCHEMA, max_executions=60).score([["race"], ["sex"]]),
        "bound": themis.Audit(loan, SCHEMA, max_assignments=2, error=0.2).score([["savings"]]),
        "search cut off": cut,
        "checks": checks,
        "baseline": beside_baseline(checks, all_verdicts()),
        "failures": themis.Audit(fails, SCHEMA, max_failures=0.5).score([["race"]]),
        "failed": failed.value.result,
        "hostile": hostile(),
    }


# The published schema of the JSON result --------------------------------------------------
def strict(schema: Any) -> Any:
    """The schema that allows no key that it does not name."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: strict(each) for name, each in schema.items()}
    if "properties" in schema and "required" in schema:
        closed["additionalProperties"] = False
    return closed


def plain(result: Result) -> Any:
    return json.loads(json.dumps(result.to_dict(), allow_nan=False))


@pytest.mark.slow
def test_every_kind_of_result_is_as_its_schema_says(results: dict[str, Result]) -> None:
    assert json.loads(run("schema", "--result").stdout) == result_schema()
    jsonschema.Draft202012Validator.check_schema(result_schema())
    validator = jsonschema.Draft202012Validator(strict(result_schema()))
    for name, result in results.items():
        errors = [f"{name}: {each.message}" for each in validator.iter_errors(plain(result))]
        assert not errors


def test_every_format_renders_every_result_as_its_own_schema_says(
    results: dict[str, Result],
) -> None:
    junit = etree.XMLSchema(etree.parse(SCHEMAS / "junit-10.xsd"))
    schema = json.loads((SCHEMAS / "sarif-2.1.0-rtm.5.json").read_text())
    sarif = jsonschema.Draft4Validator(schema, format_checker=jsonschema.FormatChecker())
    for name, result in results.items():
        again = result_from_dict(plain(result))
        assert all(each.render(again) for each in FORMATS.values())
        tree = etree.fromstring(render_junit(result).encode())
        assert junit.validate(tree), (name, junit.error_log)
        errors = list(sarif.iter_errors(json.loads(render_sarif(result))))
        assert not errors, (name, errors[0])
        rows = score_rows(result)
        reader = csv.DictReader(io.StringIO(render_csv(result), newline=""))
        for row, text in zip(rows, reader, strict=True):
            assert {k: "" if v is None else str(v) for k, v in row.items()} == text
        assert tuple(reader.fieldnames or ()) == COLUMNS
        assert [row["low"] for row in rows] == [score.low for score in result.scores]


# JUnit ------------------------------------------------------------------------------------
def test_junit_outcome_follows_the_verdict(results: dict[str, Result]) -> None:
    suite = ElementTree.fromstring(render_junit(results["checks"]))[0]
    tags = {"violated": "failure", "not enough evidence": "error", "accepted": "skipped"}
    expected = [tags.get(each.verdict, "system-out") for each in results["checks"].checks]
    assert [case[0].tag for case in suite.findall("testcase")] == expected
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.attrib[attribute]) == expected.count(tag)
    assert int(suite.attrib["tests"]) == len(expected)
    skipped = suite.find(".//skipped")
    assert skipped is not None
    assert "until 2099-01-01: ticket | 12" in skipped.attrib["message"]


def test_junit_of_a_search_fails_for_each_found_set(results: dict[str, Result]) -> None:
    search = audit().searches[0]
    alone = replace(audit(), command="search", searches=(search,), scores=())
    suite = ElementTree.fromstring(render_junit(alone))[0]
    assert int(suite.attrib["failures"]) == len(search.found) > 0
    cut = ElementTree.fromstring(render_junit(results["search cut off"]))[0]
    assert int(cut.attrib["errors"]) == 1


# SARIF ------------------------------------------------------------------------------------
def sarif_run(result: Result) -> Any:
    (log,) = json.loads(render_sarif(result))["runs"]
    return log


def test_sarif_points_at_the_lines_of_all_characteristics() -> None:
    result = themis.Audit(loan, SCHEMA).score([["race"], ["race", "sex"]], ["causal"])
    lines = {"race": 7, "sex": 9}
    placed = replace(result, source={"file": "a b.toml", "lines": lines, "command": "themis"})
    one, two = sarif_run(placed)["results"]
    for found, names in ((one, ["race"]), (two, ["race", "sex"])):
        assert found["locations"][0]["logicalLocations"][0]["name"] in names
        where = [found["locations"][0], *found.get("relatedLocations", ())]
        physical = [each["physicalLocation"] for each in where]
        starts = [each["region"]["startLine"] for each in physical]
        assert sorted(starts) == [lines[name] for name in names]
        assert {each["artifactLocation"]["uri"] for each in physical} == {"a%20b.toml"}


def test_sarif_knows_what_is_accepted_new_or_undecided(results: dict[str, Result]) -> None:
    log = sarif_run(results["checks"])
    passed = [each for each in log["results"] if "suppressions" in each]
    assert {each["suppressions"][0]["status"] for each in passed} == {"accepted"}
    assert "ticket | 12" in passed[0]["suppressions"][0]["justification"]
    assert len(passed) < len(log["results"])
    assert not [each for each in log["results"] if "baselineState" in each]
    (told,) = log["invocations"][0]["toolExecutionNotifications"]
    assert "undecided" in told["message"]["text"]
    assert not [each for each in log["results"] if "undecided" in each["message"]["text"]]
    beside = sarif_run(results["baseline"])["results"]
    assert {each["baselineState"] for each in beside if "suppressions" not in each} == {"unchanged"}


def test_failed_run_is_no_success(results: dict[str, Result]) -> None:
    for name, success in (("demo", True), ("budget", False), ("failures", False)):
        assert sarif_run(results[name])["invocations"][0]["executionSuccessful"] is success


def test_page_shows_what_is_accepted_and_why(results: dict[str, Result]) -> None:
    page = str(FORMATS["html"].render(results["checks"]))
    assert ">accepted<" in page
    assert "race is accepted until 2099-01-01: ticket | 12" in page
    known = str(FORMATS["html"].render(results["baseline"]))
    assert ">violated, not new<" in known


# GitHub -----------------------------------------------------------------------------------
COMMAND = re.compile(r"::(error|warning|notice)(?: ([^:]*))?::(.*)")


def unescaped(text: str) -> str:
    for code, character in (("%0A", "\n"), ("%0D", "\r"), ("%3A", ":"), ("%2C", ",")):
        text = text.replace(code, character)
    return text.replace("%25", "%")


def annotations(result: Result) -> list[tuple[str, dict[str, str], str]]:
    """The commands as GitHub reads them; fails where a line is none."""
    found = []
    for line in render_annotations(result).splitlines():
        match = COMMAND.fullmatch(line)
        assert match, line
        pairs = [each.split("=", 1) for each in (match[2] or "").split(",") if each]
        where = {name: unescaped(value) for name, value in pairs}
        found.append((match[1], where, unescaped(match[3])))
    return found


def test_annotations_say_where_and_how_bad(results: dict[str, Result]) -> None:
    source = WHERE | {"lines": {"race": 7, "savings": 10}, "checks": [20, 21, 22, 23, 24]}
    told = annotations(replace(results["checks"], source=source))
    levels = [level for level, _, _ in told]
    assert levels == sorted(levels, key=["error", "warning", "notice"].index)
    assert {"error", "warning", "notice"} == set(levels)
    for level, where, text in told:
        assert where["file"] == "themis.toml"
        if "accepted" in where["title"]:
            assert level == "notice"
        if "violated" in where["title"]:
            assert level == "error"
            assert where["line"] == "7"
            assert "The limit is 2 points" in text


def test_hostile_text_stays_one_command_per_line(results: dict[str, Result]) -> None:
    told = annotations(results["hostile"])
    for _, where, text in told:
        assert set(where) <= {"file", "line", "title"}
        assert where["file"] == "odd dir/the mis,%:.toml"
        assert "\n" not in text
    assert any("::error::100 %" in text for _, _, text in told)


def test_github_gets_annotations_and_the_job_summary(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(extra=CHECK)
    run("check", "-o", "result.json")
    Path("summary.md").write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    done = run("report", "result.json", "--format", "github")
    assert done.exit_code == 0
    assert done.stdout.startswith("::error file=themis.toml,line=8,title=causal race at most 0.1")
    summary = Path("summary.md").read_text()
    assert summary.startswith("before\n## Themis: ")
    assert "\n\n**The check is violated" in summary
    assert not Path("result.txt").exists()


# Markdown ---------------------------------------------------------------------------------
def parsed(text: str) -> list[Any]:
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text)


def cells(text: str) -> list[str]:
    """What a reader sees in the cells of all tables, without bold."""
    tokens = parsed(text)
    inner = [tokens[number + 1].children or [] for number, token in enumerate(tokens)
             if token.type in ("td_open", "th_open")]  # fmt: skip
    seen = ("text", "text_special", "code_inline")
    return ["".join(each.content for each in cell if each.type in seen) for cell in inner]


def test_markdown_shows_hostile_text_as_it_is(results: dict[str, Result]) -> None:
    text = render_markdown(results["hostile"])
    shown = cells(text)
    for value in ("a|b", "<script>alert(1)</script>", "]]>"):
        assert any(value in cell for cell in shown), value
    children = [child for token in parsed(text) for child in token.children or []]
    kinds = {child.type for child in children}
    assert not {"link_open", "em_open", "s_open", "code_inline", "image"} & kinds
    tags = ("<span>", "<sub>", "<details>", "<summary>")
    allowed = {"<!-- -->", *tags, *(each.replace("<", "</") for each in tags)}
    assert {child.content for child in children if child.type == "html_inline"} <= allowed
    blocks = [token.content for token in parsed(text) if token.type == "html_block"]
    assert not [each for each in blocks if "<script" in each.lower()]
    assert "@everyone" not in text
    assert not re.search(r"(?<!&)#12", text)


def test_every_table_of_markdown_has_even_rows(results: dict[str, Result]) -> None:
    for name, result in results.items():
        rows: list[int] = []
        for token in parsed(render_markdown(result)):
            if token.type == "tr_open":
                rows.append(0)
            elif token.type in ("td_open", "th_open"):
                rows[-1] += 1
            elif token.type == "table_close":
                assert len(set(rows)) == 1, name
                rows = []


@settings(max_examples=60, deadline=None)
@example("1. one")
@example(" ")
@given(st.text(max_size=30) | st.text("\\`*_[]<>|~&#@$:-+=1.) a", max_size=12))
def test_escaped_text_is_read_as_it_was(text: str) -> None:
    tokens = parsed(f"- {escape(text)}")
    children = [child for token in tokens for child in token.children or []]
    shown = "".join(e.content for e in children if e.type in ("text", "text_special"))
    structure = {token.type.rpartition("_")[0] for token in tokens} - {""}
    assert structure <= {"bullet_list", "list_item", "paragraph"}
    if text.isprintable() and text.strip():  # what can't be seen is spelled out
        assert shown.split() == text.split()


def test_markdown_has_verdict_table_people_and_cost(results: dict[str, Result]) -> None:
    text = render_markdown(results["checks"])
    head, verdict = text.split("\n\n")[:2]
    assert head == "## Themis: A python subject: violated"
    assert verdict.startswith("**1 of 6 checks is violated, 1 is undecided, 3 are")
    shown = cells(text)
    for each in results["checks"].checks:
        assert any(cell.startswith(each.name) for cell in shown)
        assert any(cell.endswith(verdict_words(each)) for cell in shown)
    assert "until 2099-01-01: ticket &#124; 12" in text
    assert text.count("<details>") == text.count("</details>") > 0
    assert f"{results['checks'].executions:,} executions" in text


def test_comment_is_never_longer_than_github_takes() -> None:
    names = [f"characteristic number {number} {'x' * 200}" for number in range(90)]
    causal, group = demo().scores[:2]
    assert isinstance(causal, CausalScore)
    person = dict.fromkeys(names, "y" * 40)
    witness = replace(causal.witnesses[0], inputs=(person, {**person, names[0]: "z"}))
    scores = [replace(causal, against=(name,), witnesses=(witness,) * 9) for name in names]
    rates = [replace(group, against=(name,), low=0.0) for name in names]
    said = notes(*(f"note {number} {'w' * 100}" for number in range(90)))
    text = render_markdown(replace(demo(), scores=(*scores, *rates), notes=said))
    assert len(text) < 65_536
    assert "… and 140 more" in text
    assert re.search(r"… the rest \(\d+ parts\) is in the saved result", text)
    assert text.count("<details>") == text.count("</details>") > 5


# The command ------------------------------------------------------------------------------
def test_report_runs_nothing(project: Project) -> None:
    project(extra=CHECK)
    run("check", "-o", "result.json")
    for path in (*Path().glob("project_*.py"), Path("themis.toml")):
        path.unlink()
    done = process("report", "result.json", "--format", "md,junit,sarif", "--format", "csv,md",
                   "-o", "new/folder")  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    written = ["result.csv", "result.junit.xml", "result.md", "result.sarif"]
    assert sorted(each.name for each in Path("new/folder").iterdir()) == written
    assert done.stdout.count("wrote new/folder/result.") == 4


@pytest.fixture
def saved(project: Project) -> Project:
    Path("result.json").write_text(json.dumps(demo().to_dict()))
    return project


def test_the_end_of_the_one_file_names_its_format(saved: Project) -> None:
    for output, start in (
        ("junit.xml", "<?xml"),
        ("out.sarif", "{"),
        ("a/README.MD", "## Themis"),
        ("table.csv", "measure,"),
        ("x.annex.html", "<!doctype html>"),
    ):
        assert run("report", "result.json", "-o", output).exit_code == 0
        assert Path(output).read_bytes().startswith(start.encode())
        wrong = run("report", "result.json", "--format", "github", "-o", f"new/{output}")
        assert wrong.exit_code == 2
        assert "and --format asks for github; leave out --format, or end it in .txt" in wrong.stderr
    assert not Path("new").exists()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("--format html,md -o taken", "--output: 'taken' is a file, and several formats need a"),
        (
            "--format html -o taken/",
            "--output: 'taken/' is a file, and the slash asks for",
        ),
        ("--format html -o taken/page.html", "--output: 'taken' can't be made a folder: a file is"),
        ("--format html,md -o taken/in", "--output: 'taken/in' can't be made a folder: a file is"),
        ("--format github -o there/", "--output: github is no file of a folder, and 'there/' is"),
        ("--format md -o ./result.json", "is the result that is"),
        ("--format marcdown,sariff", "there is no format 'sariff'; did you"),
        ("--format ,", "no format is named"),
        ("../nothing.json", "nothing.json: there is no such file"),
    ],
)
def test_wrong_use_ends_with_2_and_a_reason(saved: Project, words: str, problem: str) -> None:
    Path("taken").write_text("mine")
    done = run("report", *["result.json"][: words.startswith("--")], *words.split())
    assert done.exit_code == 2
    assert problem in done.stderr
    assert Path("taken").read_text() == "mine"


# Where a result comes from ----------------------------------------------------------------
def test_result_says_file_lines_and_command(project: Project) -> None:
    project(inputs=SMALL)
    Path("here").mkdir()
    for path in (*Path().glob("project_*.py"), Path("themis.toml")):
        path.rename(f"here/{path.name}")
    words = "score here --against race,sex --against sex --seed 4 --json --no-progress -q"
    done = run(*words.split(), "--measure", "causal", "-o", "odd name.json")
    data = json.loads(done.stdout)
    hashed = hashlib.sha256(Path("here/themis.toml").read_bytes()).hexdigest()
    assert data["source"] == {
        "sha256": hashed,
        "file": "here/themis.toml",
        "lines": {"race": 8, "sex": 9, "income": 10},
        "command": "themis score here --against race,sex --against sex --measure causal --seed 4",
    }
    assert json.loads(Path("odd name.json").read_text()) == data


def test_texts_in_csv_are_inert_in_a_spreadsheet() -> None:
    schema = themis.Schema({"=cmd": ["+1", "@a", "ok"], "age": range(3)})
    result = themis.Audit(lambda person: int(person["=cmd"] == "+1"), schema).score([["=cmd"]])
    rows = list(csv.DictReader(io.StringIO(render_csv(result))))
    assert {row["against"] for row in rows} == {"'=cmd"}
    assert rows[1]["most_favoured"].startswith("'")
    assert not any(cell.startswith(("=", "+", "@")) for row in rows for cell in row.values())
    assert [float(row["score"]) for row in rows] == [score.score for score in result.scores]
