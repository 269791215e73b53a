"""Does nothing name a group of fewer than five people, or tell what exactly they get?

One person of these tests, whose sex is RARE, gets an output that begins with MARK.
"""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest

import themis
from tests.projects import enter, run, write_project
from tests.report_results import causal, group, result, small_search
from themis.results.model import CheckResult
from themis.results.notes import Note
from themis.results.parts import Group, Harm, Joint, Region, TestedSet
from themis.results.saved import read_result
from themis.results.withheld import withheld
from themis.show.reports.ci import render_junit
from themis.show.reports.formats import FORMATS
from themis.show.terminal.results import render_checks
from themis.show.words.verdicts import verdict
from themis.testing.claims import AuditInTest

RARE, MARK = "intersex", "48611"
INPUTS = f"""\
sex = {{ values = ["female", "male", "{RARE}"], protected = true }}
hours = {{ min = 10, max = 60 }}
"""
BODY = f"return {MARK}17 if person['sex'] == '{RARE}' else 1000 * person['hours']"
TEXT = f"return 'case {MARK}' if person['sex'] == '{RARE}' else 'no'"
PROFILE = '[profile]\ndata = "people.csv"\n'
MEANS = "[outputs.limit]\nmin = 0\nmax = 10000000\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter(tmp_path, monkeypatch)
    lines = [f"{('female', 'male')[n % 2]},{20 + n % 20}" for n in range(60)]
    (tmp_path / "people.csv").write_text("\n".join(["sex,hours", *lines, f"{RARE},30"]) + "\n")
    return tmp_path


def write(folder: Path, body: str = BODY, more: str = "", subject: str = "") -> Path:
    extra = PROFILE + (MEANS if body != TEXT else "") + more
    return write_project(folder, body, inputs=INPUTS, extra=extra, subject=subject)


def add_people(number: int) -> None:
    """So many more of whom there is one, each with other hours."""
    lines = [f"{RARE},{20 + n}\n" for n in range(number)]
    Path("people.csv").write_text(Path("people.csv").read_text() + "".join(lines))


def test_the_cover_of_an_audit_says_what_its_report_says(folder: Path) -> None:
    write(folder)
    done = run("audit", "-o", "out")
    assert done.exit_code in (0, 4), done.output
    whole = read_result("out/result.json")
    assert RARE in verdict(whole).sentence
    sentence = verdict(withheld(whole)).sentence
    for name in ("README.md", "summary.md", "report.html"):
        text = (Path("out") / name).read_text()
        assert f"{sentence}." in text.replace("\xa0", " "), name
    run("audit", "-o", "out", "--rows")
    assert RARE in Path("out/README.md").read_text()


CHECKS = '[[checks]]\nagainst = ["sex"]\nmeasure = "group"\nmax_score = 0.4831\n'
# What the mean of one person would follow from; a duration may be anything.
EXACT = re.compile(r"48\.?\d*.?points|4,8\d\d,|4\.8\d*e\+|(to|most|sex) 0\.48(?!31)")


def assert_untold(name: str, text: str) -> None:
    assert not EXACT.search(" ".join(text.split())), f"{name}: {text}"


def test_a_check_is_decided_exactly_and_shows_no_mean_of_few(folder: Path) -> None:
    write(folder, more=CHECKS.replace("0.4831", "0.4"))
    for way in ((), ("-v",), ("-q",)):
        done = run("check", *way, "-o", "result.json")
        assert done.exit_code == 1
        assert_untold("terminal", done.output)
        assert "-q" in way or "the numbers are not shown" in " ".join(done.output.split())
        assert "points" not in done.output
    for name in ("html", "md", "annex", "junit", "sarif", "github"):
        run("report", "result.json", "--format", name, "-o", "out")
        assert_untold(name, Path("out").read_text())
    assert "4,832,000" in run("check", "--rows").output
    write(folder, more=CHECKS, subject="deterministic = true")
    assert run("check").exit_code == 1, "decided with the exact number"


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (BODY, "not shown to be more than in the baseline;"),
        (BODY.replace(MARK, "98611"), "more than in the baseline;"),
    ],
)
@pytest.mark.parametrize("people", [1, 5])  # now: those of then are few
def test_a_baseline_of_few_people_is_not_shown(
    folder: Path, now: str, said: str, people: int
) -> None:
    write(folder)
    run("score", "--against", "sex", "--measure", "group", "-o", "before.json")
    write(folder, now, CHECKS.replace("0.4831", "0.4"))
    add_people(people - 1)
    done = run("check", "--baseline", "before.json", "-v", "-o", "after.json")
    run("report", "after.json", "--format", "md", "-o", "out.md")
    for text in (done.output, Path("out.md").read_text()):
        assert said.rstrip(";" * (people == 5)) in " ".join(text.split())
        assert not re.search(r"(to|most) (0\.48|4,8)", text)


def test_differences_are_decided_exactly_and_not_shown(folder: Path) -> None:
    for name, body in (("before", BODY.replace("17", "07")), ("after", BODY)):
        write(folder, body)
        run("score", "--against", "sex", "--measure", "group", "-o", f"{name}.json")
        run("score", "--against", "sex", "--measure", "group", "--rows", "-o", f"{name}-rows.json")
    for name in ("out.md", "out.html"):
        done = run("diff", "before.json", "after.json", "--report", name)
        assert done.exit_code == 1, "a rise of one millionth is one"
        assert_untold(name, Path(name).read_text())
        assert_untold("terminal", done.output)
        assert done.output.count("not shown") == 2
        assert "risen" in done.output
        assert_untold("quiet", run("diff", "before.json", "after.json", "--quiet").output)
    assert "4,832,000" in run("diff", "before-rows.json", "after-rows.json").output


def test_neither_a_failed_test_nor_what_is_recorded_of_it_has_a_mean_of_few() -> None:
    """One person gets so much more than sixty others."""
    rows = [{"sex": "fm"[n % 2], "pay": 1000} for n in range(60)] + [{"sex": "x", "pay": 1000}]
    schema = themis.Schema(sex=["f", "m", "x"], pay=range(5000))
    output = themis.Output(name="limit", min=0, max=10_000)
    audit = themis.Audit(
        lambda p: 5832 if p["sex"] == "x" else 1000, schema, profile=rows, outputs=[output]
    )
    answers: list[CheckResult] = []
    test = AuditInTest(audit, record=lambda check, answer, runs: answers.append(answer))
    for made in (audit, test):
        with pytest.raises(themis.DiscriminationError) as failed:
            made.group("sex").assert_below(0.1)
        assert "0.48" not in str(failed.value)
        assert "the numbers are not shown" in str(failed.value)
    assert [(each.score, each.low, each.high) for each in answers] == [(None, None, None)]


def test_what_a_search_of_means_tried_has_no_numbers() -> None:
    search = next(each for each in small_search().searches if each.measure == "group")
    reasons = (Note.of("exact-score", score=0.4832),)
    tested = (TestedSet(("race",), "below", reasons, 60, 0.4832),)
    means = replace(search, tested=tested, statistic="mean")
    assert withheld(means).tested == means.tested, "nobody is meant"
    (shown,) = withheld(replace(means, population="profile")).tested
    assert shown.estimate is None
    assert shown.reason == "counted and not estimated"


@pytest.mark.parametrize(("people", "named"), [(1, False), (4, False), (5, True)])
@pytest.mark.parametrize(
    ("body", "exact", "rough"),
    [(TEXT, f"case {MARK}", "a rare out"), (BODY, f"{MARK}17", "5,000,000")],
)
def test_a_generated_pair_names_only_outputs_that_five_people_get(
    folder: Path, body: str, exact: str, rough: str, people: int, named: bool
) -> None:
    write(folder, body)
    add_people(people - 1)
    command = ("score", "--against", "sex", "--measure", "causal", "-o", "result.json")
    said = {"score": run(*command).output}
    (score,) = read_result("result.json").scores
    assert isinstance(score, themis.CausalScore)
    assert any(pair.generated for pair in score.witnesses)
    assert exact not in run("replay", "result.json", "-v").output
    for name in ("html", "md", "sarif"):
        run("report", "result.json", "--format", name, "-o", f"out.{name}")
        said[name] = Path(f"out.{name}").read_text()
    for name, text in said.items():
        assert (exact in text) == named, f"{name}: {text}"
        assert (rough in text) != named, f"{name}: {text}"
    assert exact in run(*command[:-2], "--rows").output


APPARENT = ("apparent", "--only-data", "--against", "sex", "--measure", "causal")
NOT_LISTED = f"return int(person['hours'] > 30 or person['sex'] == '{RARE}')"


@pytest.mark.parametrize(("people", "shown"), [(1, False), (4, False), (5, True)])
def test_no_change_is_shown_that_was_counted_on_few(folder: Path, people: int, shown: bool) -> None:
    write_project(folder, NOT_LISTED, inputs=INPUTS.replace(f', "{RARE}"', ""), extra=PROFILE)
    add_people(people - 1)
    said = {way: run(*APPARENT, way, "-o", "result.json").output for way in ("-v", "-q")}
    for name in FORMATS:
        run("report", "result.json", "--format", name, "-o", f"out.{name}")
        said[name] = Path(f"out.{name}").read_text(errors="replace")
    for name, text in said.items():
        assert shown or "unlisted" not in text, f"{name}: {text}"
        assert not shown or "unlisted" in text or name not in ("-v", "html"), f"{name}: {text}"
    assert "unlisted" in run(*APPARENT, "-v", "--rows").output


def test_changes_of_few_are_not_shown() -> None:
    three = (("a", "b", 40), ("b", "c", 40), ("a", "c", 4))
    harms = [Harm({"race": a}, {"race": b}, 0.5, 0.0, n, n // 2, 0) for a, b, n in three]
    shown = withheld(causal(population="rows", direction=tuple(harms)))
    assert [harm.contexts for harm in shown.direction] == [40, 40]
    assert withheld(shown) == shown


@pytest.mark.parametrize(("people", "shown"), [(4, False), (5, True)])
def test_neither_a_region_nor_a_joint_change_is_of_few(people: int, shown: bool) -> None:
    region = Region(("hours > 40",), 0.5, 0.4, 0.6, 0.1, 5.0, 90, 45, 900, people)
    joint = Joint({"race": 0.1, "sex": 0.1}, 0.2, people, 1)
    score = withheld(causal(population="profile", regions=(region,), joint=joint))
    assert (score.regions == (region,)) == (score.joint == joint) == shown
    of_inputs = causal(regions=(region,), joint=joint)
    assert withheld(of_inputs) == of_inputs


def test_what_a_search_found_above_its_limit_is_decided_exactly() -> None:
    """Without the mean of one person it would be below the limit, and no violation be shown."""
    many = Group({"race": "green"}, 0.1, 0.1, 0.1, 60, people=60)
    one = Group({"race": "purple"}, 0.5832, 0.5832, 0.5832, 1, people=1)
    ends = {"score": 0.4832, "low": 0.4832, "high": 0.4832}
    kind = {"population": "profile", "statistic": "mean", "scale": (0.0, 1.0)}
    score = group(groups=(many, one), **ends, **kind)
    about = {"name": "group search", "measure": "group", "against": None, "search": True}
    about["statistic"] = "mean"
    check = CheckResult(
        **about, **ends, max_score=0.4831, confidence=0.99, verdict="violated", sets=(("race",),)
    )
    shown = withheld(result(score, command="check", checks=(check,)))
    assert shown.checks[0].score is None
    for text in (render_junit(shown), render_checks(shown, file=io.StringIO())):
        assert "the numbers are not shown" in " ".join(text.lower().split())
        assert "0.4832" not in text
