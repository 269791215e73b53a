"""Is a saved result told truly in every format? Validated, read back, and with hostile names."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator
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
from tests.projects import SMALL, enter, process, run, write_project
from tests.report_results import all_facts, notes
from themis.audit.checker import run_checks
from themis.cli.demo import demo_audit
from themis.errors import SubjectError
from themis.results.comparison import beside_baseline
from themis.results.model import CausalScore, Result
from themis.results.saved import result_from_dict, result_schema
from themis.results.verdicts import Acceptance, Acceptances, Check
from themis.show.reports.ci import render_annotations, render_junit
from themis.show.reports.formats import COLUMNS, FORMATS, render_csv, score_rows
from themis.show.reports.markdown import escape, render_markdown
from themis.show.reports.sarif import render_sarif
from themis.show.words.searches import verdict_words
from themis.subjects.processes.command import CommandSubject

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
Project = Callable[..., Path]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    enter(tmp_path, monkeypatch)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return lambda *arguments, **options: write_project(tmp_path, *arguments, **options)


# Results of every kind --------------------------------------------------------------------
SCHEMA = themis.Schema(
    race=themis.Values(["green", "purple"], protected=True),
    sex=["f", "m"],
    age=themis.Integers(18, 60, bins=[30, 45]),
    savings=range(100),
)


def loan(person: dict[str, Any]) -> int:
    return int(person["savings"] > (40 if person["race"] == "green" else 60) - person["age"] / 10)


def check(limit: float, *against: str, measure: Any = "causal") -> Check:
    name = f"{measure} {','.join(against) or 'search'} at most {limit:g}"
    return Check(
        against=against or None, search=not against, measure=measure, max_score=limit, name=name
    )


def make_results() -> Iterator[tuple[str, Result]]:
    audit = themis.Audit(loan, SCHEMA, seed=3, error=0.1, confidence=0.9)
    yield "demo", demo_audit().score([["race"], ["race", "sex"]])
    yield "score", audit.score([["race"], ["sex"], ["age"]])
    yield "budget", themis.Audit(loan, SCHEMA, max_executions=60).score([["race"], ["sex"]])
    yield "bound", themis.Audit(loan, SCHEMA, max_assignments=2, error=0.2).score([["savings"]])
    yield "search", audit.search_all(0.1, ("causal", "group"))
    yield "one search", audit.search_all(0.1, ("causal",), max_size=1)
    cut = themis.Audit(loan, SCHEMA, max_executions=900).search_all(0.1, ("causal",))
    assert cut.stopped == "budget"
    yield "search cut off", cut
    yield "checks", all_verdicts(audit)
    yield "baseline", beside_baseline(all_verdicts(audit), all_verdicts(audit))

    def fails(person: dict[str, Any]) -> int:
        if person["savings"] == 7:
            raise ValueError("no savings of 7 & <b>")
        return loan(person)

    yield "failures", themis.Audit(fails, SCHEMA, max_failures=0.5).score([["race"]])
    with pytest.raises(SubjectError) as caught:
        themis.Audit(lambda person: 1 / 0, SCHEMA).score([["race"]])
    yield "failed", caught.value.result
    rows = {"race": ["green", "purple"], "sex": ["f", "m"], "age": [20, 50], "savings": [45, 52]}
    yield "apparent", themis.Audit(loan, SCHEMA, error=0.2).apparent(rows, "race")
    small = themis.Schema(race=["green", "purple"], savings=range(5, 9))
    command = CommandSubject(small, ["sh", "-c", 'test "$1" = green && echo 1 || echo 0', "sh"])
    yield "command", themis.Audit(command, small).score([["race"]])


def all_verdicts(audit: themis.Audit) -> Result:
    """Checks of which one holds, one is violated, one lacks evidence, the others are accepted."""
    accepted = Acceptances(
        (
            Acceptance(against=("race",), reason="ticket | 12", until=date(2099, 1, 1)),
            Acceptance(
                against=("savings",), reason="may count", until=date(2099, 1, 1), max_score=1.0
            ),
        ),
        date(2026, 1, 1),
    )
    checks = [
        check(0.5, "sex"),
        check(0.02, "race", measure="group"),
        check(0.01, "race"),
        check(0.3),
        check(0.1),
    ]
    result = run_checks(audit, checks, accepted=accepted)
    lacking = replace(
        result.checks[0],
        name="open",
        verdict="not enough evidence",
        reasons=notes("the budget ended"),
    )
    result = replace(result, checks=(*result.checks, lacking))
    assert {each.verdict for each in result.checks} == {
        *("holds", "violated", "accepted", "not enough evidence")
    }
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
    return {**dict(make_results()), "full": all_facts(), "hostile": hostile()}


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
    jsonschema.Draft202012Validator.check_schema(result_schema())
    validator = jsonschema.Draft202012Validator(strict(result_schema()))
    for name, result in results.items():
        errors = [f"{name}: {each.message}" for each in validator.iter_errors(plain(result))]
        assert not errors


def test_command_prints_the_schema_of_results() -> None:
    assert json.loads(run("schema", "--result").stdout) == result_schema()
    assert json.loads(run("schema").stdout)["title"] == "themis.toml"


# JUnit ------------------------------------------------------------------------------------
def test_junit_is_valid_for_every_result(results: dict[str, Result]) -> None:
    validator = etree.XMLSchema(etree.parse(SCHEMAS / "junit-10.xsd"))
    for name, result in results.items():
        tree = etree.fromstring(render_junit(result).encode())
        assert validator.validate(tree), (name, validator.error_log)


def test_junit_outcome_follows_the_verdict(results: dict[str, Result]) -> None:
    suite = ElementTree.fromstring(render_junit(results["checks"]))[0]
    tags = {"violated": "failure", "not enough evidence": "error", "accepted": "skipped"}
    expected = [tags.get(each.verdict, "system-out") for each in results["checks"].checks]
    cases = suite.findall("testcase")
    assert [case[0].tag for case in cases] == expected
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert (
            int(suite.attrib[attribute]) == expected.count(tag) == len(suite.findall(f".//{tag}"))
        )
    assert int(suite.attrib["tests"]) == len(cases)
    skipped = suite.find(".//skipped")
    assert skipped is not None
    assert "until 2099-01-01: ticket | 12" in skipped.attrib["message"]


def test_junit_of_a_search_fails_for_each_found_set(results: dict[str, Result]) -> None:
    result = results["one search"]
    suite = ElementTree.fromstring(render_junit(result))[0]
    assert int(suite.attrib["failures"]) == len(result.searches[0].found) > 0
    cut = ElementTree.fromstring(render_junit(results["search cut off"]))[0]
    assert int(cut.attrib["errors"]) == 1


# SARIF ------------------------------------------------------------------------------------
def test_sarif_is_valid_for_every_result(results: dict[str, Result]) -> None:
    schema = json.loads((SCHEMAS / "sarif-2.1.0-rtm.5.json").read_text())
    validator = jsonschema.Draft4Validator(schema, format_checker=jsonschema.FormatChecker())
    for name, result in results.items():
        errors = list(validator.iter_errors(json.loads(render_sarif(result))))
        assert not errors, (name, errors[0])


def test_sarif_points_at_the_line_of_the_characteristic(project: Project) -> None:
    limits = '[[checks]]\nagainst = ["race"]\nmax_score = 0.1\n[[checks]]\nsearch = true\n'
    project(inputs=SMALL, extra=limits + "max_score = 0.1\n")
    assert run("check", "-o", "result.json").exit_code == 1
    assert run("report", "result.json", "--format", "sarif").exit_code == 0
    file = Path("themis.toml").read_text().splitlines()
    log = json.loads(Path("result.sarif").read_text())
    found = log["runs"][0]["results"]
    assert len(found) == 3
    for each in found:
        (location,) = each["locations"]
        physical = location["physicalLocation"]
        assert physical["artifactLocation"]["uri"] == "themis.toml"
        name = location["logicalLocations"][0]["name"]
        assert file[physical["region"]["startLine"] - 1].startswith(f"{name} =")


def test_sarif_of_a_set_relates_all_its_characteristics() -> None:
    result = demo_audit().score([["race", "sex"]], ["causal"])
    lines = {"race": 7, "sex": 9}
    placed = replace(result, source={"file": "a b.toml", "lines": lines, "command": "themis"})
    (found,) = json.loads(render_sarif(placed))["runs"][0]["results"]
    where = [found["locations"][0], *found["relatedLocations"]]
    starts = [each["physicalLocation"]["region"]["startLine"] for each in where]
    assert sorted(starts) == [7, 9]
    assert where[0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b.toml"


def test_sarif_knows_what_is_accepted_and_what_is_new(results: dict[str, Result]) -> None:
    found = json.loads(render_sarif(results["checks"]))["runs"][0]["results"]
    passed = [each for each in found if "suppressions" in each]
    assert {each["suppressions"][0]["status"] for each in passed} == {"accepted"}
    assert "ticket | 12" in passed[0]["suppressions"][0]["justification"]
    assert len(passed) < len(found)
    assert not [each for each in found if "baselineState" in each]
    beside = json.loads(render_sarif(results["baseline"]))["runs"][0]["results"]
    assert {each["baselineState"] for each in beside if "suppressions" not in each} == {"unchanged"}


def test_undecided_is_a_notification_and_no_result(results: dict[str, Result]) -> None:
    (log,) = json.loads(render_sarif(results["checks"]))["runs"]
    (told,) = log["invocations"][0]["toolExecutionNotifications"]
    assert "undecided" in told["message"]["text"]
    assert not [each for each in log["results"] if "undecided" in each["message"]["text"]]


def test_failed_run_is_no_success(results: dict[str, Result]) -> None:
    for name, success in (("demo", True), ("budget", False), ("failures", False)):
        (log,) = json.loads(render_sarif(results[name]))["runs"]
        assert log["invocations"][0]["executionSuccessful"] is success


# HTML -------------------------------------------------------------------------------------
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
        found.append(
            (match[1], {name: unescaped(value) for name, value in pairs}, unescaped(match[3]))
        )
    return found


def test_annotations_say_where_and_how_bad(results: dict[str, Result]) -> None:
    lines = {"race": 7, "savings": 10}
    source = {"file": "themis.toml", "lines": lines, "command": "", "checks": [20, 21, 22, 23, 24]}
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
    project(extra='[[checks]]\nagainst = ["race"]\nmax_score = 0.1\n')
    run("check", "-o", "result.json")
    Path("summary.md").write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    done = run("report", "result.json", "--format", "github")
    assert done.exit_code == 0
    assert done.stdout.startswith("::error file=themis.toml,line=8,title=causal race at most 0.1")
    summary = Path("summary.md").read_text()
    assert summary.startswith("before\n## Themis: ")
    assert "\n\n**The check is violated" in summary
    assert {each.suffix for each in Path().iterdir() if each.is_file()} == {
        *(".json", ".md", ".py", ".toml")
    }


# Markdown ---------------------------------------------------------------------------------
def parsed(text: str) -> list[Any]:
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text)


def cells(text: str) -> list[str]:
    """What a reader sees in the cells of all tables, without bold."""
    found = []
    for number, token in enumerate(tokens := parsed(text)):
        if token.type in ("td_open", "th_open"):
            inner = tokens[number + 1].children or []
            found.append(
                "".join(
                    each.content
                    for each in inner
                    if each.type in ("text", "text_special", "code_inline")
                )
            )
    return found


def test_markdown_shows_hostile_text_as_it_is(results: dict[str, Result]) -> None:
    text = render_markdown(results["hostile"])
    shown = cells(text)
    for value in ("a|b", "<script>alert(1)</script>", "]]>"):
        assert any(value in cell for cell in shown), value
    kinds = [child.type for token in parsed(text) for child in token.children or []]
    assert not {"link_open", "em_open", "s_open", "code_inline", "image"} & set(kinds)
    inline = [
        child.content
        for token in parsed(text)
        for child in token.children or []
        if child.type == "html_inline"
    ]
    assert set(inline) <= {
        *("<!-- -->", "<span>", "</span>", "<sub>", "</sub>"),
        *("<details>", "<summary>", "</summary>", "</details>"),
    }
    blocks = [token.content for token in parsed(text) if token.type == "html_block"]
    assert not [each for each in blocks if "<script" in each.lower()]
    assert "@everyone" not in text
    assert not re.search(r"(?<!&)#12", text)


def test_every_table_of_markdown_has_even_rows(results: dict[str, Result]) -> None:
    for name, result in results.items():
        rows: list[int] = []
        widths: set[int] = set()
        for token in parsed(render_markdown(result)):
            if token.type == "tr_open":
                rows.append(0)
            elif token.type in ("td_open", "th_open"):
                rows[-1] += 1
            elif token.type == "table_close":
                assert len(set(rows)) == 1, name
                widths |= set(rows)
                rows = []
        assert widths <= {3, 4}


@settings(max_examples=60, deadline=None)
@example("1. one")
@example(" ")
@given(st.text(max_size=30) | st.text("\\`*_[]<>|~&#@$:-+=1.) a", max_size=12))
def test_escaped_text_is_read_as_it_was(text: str) -> None:
    tokens = parsed(f"- {escape(text)}")
    children = [child for token in tokens for child in token.children or []]
    shown = "".join(e.content for e in children if e.type in ("text", "text_special"))
    structure = {token.type for token in tokens} - {"inline"}
    assert structure <= {
        *("bullet_list_open", "list_item_open", "paragraph_open"),
        *("paragraph_close", "list_item_close", "bullet_list_close"),
    }
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
    score = next(s for s in results["demo"].scores if isinstance(s, CausalScore))
    people = cells(render_markdown(results["demo"]))
    for person in score.witnesses[0].inputs:
        assert str(person["race"]) in people


def test_comment_is_never_longer_than_github_takes() -> None:
    names = [f"characteristic number {number} {'x' * 200}" for number in range(90)]
    result = demo_audit().score([["race"]])
    (causal, group) = result.scores
    person = dict.fromkeys(names, "y" * 40)
    other = {**person, names[0]: "z"}
    witness = replace(causal.witnesses[0], inputs=(person, other))
    many = replace(
        result,
        scores=tuple(replace(causal, against=(name,), witnesses=(witness,) * 9) for name in names)
        + tuple(replace(group, against=(name,), low=0.0) for name in names),
        notes=notes(*(f"note {number} {'w' * 100}" for number in range(90))),
    )
    text = render_markdown(many)
    assert len(text) < 65_536
    assert "… and 140 more" in text
    assert re.search(r"… the rest \(\d+ parts\) is in the saved result", text)
    assert text.count("<details>") == text.count("</details>") > 5


# Tables -----------------------------------------------------------------------------------
def test_csv_holds_the_scores(results: dict[str, Result]) -> None:
    for result in results.values():
        rows = score_rows(result)
        reader = csv.DictReader(io.StringIO(render_csv(result), newline=""))
        read = list(reader)
        assert tuple(reader.fieldnames or ()) == COLUMNS
        for row, text in zip(rows, read, strict=True):
            assert {k: "" if v is None else str(v) for k, v in row.items()} == text
        assert [row["low"] for row in rows] == [score.low for score in result.scores]


# The command ------------------------------------------------------------------------------
def test_every_format_renders_every_result(results: dict[str, Result]) -> None:
    for name in FORMATS:
        for result in results.values():
            assert FORMATS[name].render(result_from_dict(plain(result)))


def test_report_runs_nothing(project: Project) -> None:
    project(extra='[[checks]]\nagainst = ["race"]\nmax_score = 0.1\n')
    run("check", "-o", "result.json")
    for path in (*Path().glob("project_*.py"), Path("themis.toml")):
        path.unlink()
    done = process("report", "result.json", "--format", "md,junit,sarif", "--format", "csv,md",
                   "-o", "new/folder")  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    written = ["result.csv", "result.junit.xml", "result.md", "result.sarif"]
    assert sorted(each.name for each in Path("new/folder").iterdir()) == written
    assert done.stdout.count("wrote new/folder/result.") == 4


@pytest.mark.parametrize(
    ("output", "start"),
    [
        ("junit.xml", "<?xml"),
        ("out.sarif", "{"),
        ("a/README.MD", "## Themis"),
        ("table.csv", "measure,"),
        ("x.annex.html", "<!doctype html>"),
    ],
)
def test_the_end_of_the_one_file_names_its_format(
    project: Project, output: str, start: str
) -> None:
    project()
    run("score", "-o", "result.json")
    assert run("report", "result.json", "-o", output).exit_code == 0
    assert Path(output).read_bytes().startswith(start.encode())
    wrong = run("report", "result.json", "--format", "github", "-o", f"new/{output}")
    assert wrong.exit_code == 2
    assert "and --format asks for github; leave out --format, or end it in .txt" in wrong.stderr
    assert not Path("new").exists()


def test_a_file_in_the_way_of_a_folder_is_told(project: Project) -> None:
    project()
    run("score", "-o", "result.json")
    Path("taken").write_text("mine")
    for words, problem in (
        ("--format html,md -o taken", "'taken' is a file, and several formats need a folder"),
        ("--format html -o taken/", "'taken/' is a file, and the slash asks for a folder"),
        ("--format html -o taken/page.html", "'taken' can't be made a folder: a file is in"),
        ("--format html,md -o taken/in", "'taken/in' can't be made a folder: a file is in"),
        ("--format github -o there/", "github is no file of a folder, and 'there/' is one"),
    ):
        done = run("report", "result.json", *words.split())
        assert done.exit_code == 2
        assert f"error[output]: --output: {problem}" in done.stderr
    assert Path("taken").read_text() == "mine"


@pytest.mark.some_slow(core=3)
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("result.json", "--format", "marcdown,sariff"), "there is no format 'sariff'; did you"),
        (("result.json", "--format", ","), "no format is named"),
        (("nothing.json",), "nothing.json: there is no such file"),
        (("result.json", "--format", "md", "-o", "./result.json"), "is the result that is"),
    ],
)
def test_wrong_use_ends_with_2_and_a_reason(
    project: Project, arguments: tuple[str, ...], problem: str
) -> None:
    project()
    run("score", "-o", "result.json")
    done = run("report", *arguments)
    assert done.exit_code == 2
    assert problem in done.stderr


# Where a result comes from ----------------------------------------------------------------
def test_result_says_file_lines_and_command(project: Project) -> None:
    project(inputs=SMALL)
    Path("here").mkdir()
    Path("themis.toml").rename("here/themis.toml")
    for path in Path().glob("project_*.py"):
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
    with themis.Audit(lambda person: int(person["=cmd"] == "+1"), schema) as audit:
        result = audit.score([["=cmd"]])
    rows = list(csv.DictReader(io.StringIO(render_csv(result))))
    assert {row["against"] for row in rows} == {"'=cmd"}
    assert rows[1]["most_favoured"].startswith("'")
    assert not any(cell.startswith(("=", "+", "@")) for row in rows for cell in row.values())
    assert [float(row["score"]) for row in rows] == [score.score for score in result.scores]
