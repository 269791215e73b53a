"""Does nobody's row leave the machine in a document, a log or a suite, unless that was allowed?

All people of these tests have an income that begins with MARK, which no generated value does
and no hash in a document: it has eight digits for that.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import themis
from tests.projects import enter, run, write_project
from themis.results.model import Result
from themis.results.parts import Region
from themis.results.saved import read_result
from themis.results.withheld import withheld
from themis.show.reports.formats import FORMATS

MARK = "48611593"
MADE = 60
INPUTS = """\
sex = { values = ["female", "male"], protected = true }
hours = { min = 10, max = 60 }
income = { min = 0, max = 9999999999 }
"""
# Income decides nothing: pairs of generated values flip as those of people do.
BIASED = "return int(person['hours'] + 5 * (person['sex'] == 'male') > 40)"
# A pair flips only with an income that nobody but these people has.
NARROW = f"return int(person['sex'] == 'male' and person['income'] // 100 == {MARK})"
FAILING = f"""\
if person['income'] == {MARK}07:
    raise ValueError(f"an income of {{person['income']}} is unheard of")
{BIASED}"""
COUNTING = """\
import itertools
calls = decide.__dict__.setdefault("calls", itertools.count())
return int(person['hours'] + next(calls) % 7 > 40)"""
PROFILE = '[profile]\ndata = "people.csv"\n'
DOCUMENTS = ("html", "md", "sarif", "github")  # the others show no pairs
Project = Callable[..., Path]


def people(strange: bool = False) -> Iterator[str]:
    yield "sex,hours,income"
    for number in range(MADE):
        sex = ("female", "male")[number % 2]
        yield f"{sex},{20 + number * 7 % 40},{MARK}{number:02}"
    if strange:
        yield f"male,30,{MARK}99.5"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    enter(tmp_path, monkeypatch)

    def make(body: str = BIASED, *, strange: bool = False, **options: Any) -> Path:
        (tmp_path / "people.csv").write_text("\n".join(people(strange)) + "\n")
        return write_project(tmp_path, body, **{"inputs": INPUTS, "extra": PROFILE, **options})

    return make


def documents(path: str, *options: str) -> Iterator[tuple[str, str]]:
    """Every document of a saved result, by its name."""
    for name in FORMATS:
        done = run("report", path, "--format", name, "-o", f"out.{name}", *options)
        assert done.exit_code == 0, done.output
        yield name, Path(f"out.{name}").read_text(encoding="utf-8", errors="replace") + done.output


def measures(*options: str) -> Iterator[tuple[str, str]]:
    """What every command that measures prints, by its name."""
    for command in (SCORE, SEARCH, APPARENT, ("check",)):
        for way in (("-v",), ("-q",)):
            done = run(*command, *way, *options)
            assert done.exit_code in (0, 1, 4), done.output
            yield " ".join((*command, *way)), done.output
    yield "validate", run("validate", *options).output


def assert_private(*command: str) -> None:
    """Neither what a command prints nor any document of its result has a value of single people."""
    done = run(*command, "-v", "-o", "result.json")
    assert done.exit_code in (0, 4), done.output
    assert MARK not in done.output, done.output
    for name, text in documents("result.json"):
        assert MARK not in text, name
    assert MARK in Path("result.json").read_text(), "nothing was there to withhold"


def slowly(*case: Any) -> Any:
    return pytest.param(*case, marks=pytest.mark.slow)


SCORE, SEARCH, APPARENT = ("score",), ("search", "--threshold", "0"), ("apparent",)
CHECKS = '[[checks]]\nagainst = ["sex"]\nmax_score = 0.01\n'


@pytest.mark.parametrize("body", [*map(slowly, (BIASED, NARROW)), FAILING])
def test_no_command_prints_a_row(project: Project, body: str) -> None:
    project(body, subject="max_failures = 0.5", extra=PROFILE + CHECKS)
    for name, text in measures():
        assert MARK not in text, f"{name}: {text}"


def test_with_rows_every_page_shows_them(project: Project) -> None:
    project(FAILING, subject="max_failures = 0.5", extra=PROFILE + CHECKS)
    for name, text in measures("--rows"):
        assert MARK in text or "-q" in name, f"{name}: {text}"


@pytest.mark.some_slow(core=2, full=2)
@pytest.mark.parametrize(
    ("body", "command"),
    [
        (NARROW, SCORE), (BIASED, SEARCH), (FAILING, APPARENT),
        *(slowly(*case) for case in ((BIASED, SCORE), (FAILING, SEARCH), (NARROW, APPARENT),
                                     (FAILING, SCORE), (NARROW, SEARCH), (BIASED, APPARENT))),
    ],
)  # fmt: skip
def test_no_document_has_a_row_unless_rows_are_allowed(
    project: Project, body: str, command: tuple[str, ...]
) -> None:
    project(body, subject="max_failures = 0.5")
    assert run(*command, "-o", "result.json").exit_code in (0, 4)
    assert MARK in Path("result.json").read_text()
    for name, text in documents("result.json"):
        assert MARK not in text, name
    for name, text in documents("result.json", "--rows"):
        assert MARK in text or name not in DOCUMENTS, name


def test_the_file_can_allow_rows(project: Project) -> None:
    project(extra=f"{PROFILE}[report]\nrows = true\n")
    assert MARK in run("score", "-o", "result.json").output
    assert all(MARK in text for name, text in documents("result.json") if name in DOCUMENTS)
    assert MARK not in run("score", "--no-rows").output


def test_a_document_carries_the_hash_of_the_file(project: Project) -> None:
    from themis.show.reports.method import digest

    project()
    run("score", "-o", "result.json")
    hashed = digest(read_result("result.json"))
    assert digest(withheld(read_result("result.json"))) == hashed
    for name, text in (*documents("result.json"), *documents("result.json", "--rows")):
        assert (hashed in text) == (name in ("html", "annex")), name


def test_a_shown_pair_is_generated_was_run_and_flips(project: Project) -> None:
    project()
    run("score", "--measure", "causal", "-o", "result.json")
    result = read_result("result.json")
    (score,) = withheld(result).scores
    assert isinstance(score, themis.CausalScore)
    assert score.witnesses
    for pair in score.witnesses:
        assert pair.generated
        first, second = (row["hours"] + 5 * (row["sex"] == "male") > 40 for row in pair.inputs)
        assert first != second
        assert pair.outputs == (int(first), int(second))
    assert result.account is not None
    assert result.account.explanations > 0


def test_without_a_generated_pair_only_the_difference_is_shown(project: Project) -> None:
    project(NARROW)
    run("score", "--measure", "causal", "-o", "result.json")
    (score,) = withheld(read_result("result.json")).scores
    assert isinstance(score, themis.CausalScore)
    assert [pair.inputs for pair in score.witnesses] == [({"sex": "male"}, {"sex": "female"})]
    text = " ".join(run("score", "--measure", "causal", "-v").output.split())
    assert "their other values are those of people, and are not shown" in text


def test_the_json_says_which_inputs_are_rows(project: Project) -> None:
    project()
    data = json.loads(run("score", "--measure", "causal", "--json").stdout)
    assert data["personal_data"] is True
    rows = {tuple(line.split(",")) for line in people()}
    pairs = data["scores"][0]["witnesses"]
    assert any(pair["generated"] for pair in pairs)
    for pair in pairs:
        texts = [tuple(map(str, each.values())) for each in pair["inputs"]]
        if pair["generated"]:
            assert pair["rows"] is None
        else:
            assert pair["rows"] == [each in rows for each in texts]
            assert any(pair["rows"])


def test_a_result_of_generated_inputs_has_no_personal_data(project: Project) -> None:
    project(extra="")
    data = json.loads(run("score", "--json").stdout)
    assert data["personal_data"] is False
    assert not any(each["generated"] for s in data["scores"] for each in s["witnesses"])


def test_failed_trials_name_no_row_and_the_option_that_does(project: Project) -> None:
    project("raise ValueError('unheard of')")
    said = " ".join(run("validate").output.split())
    assert "--rows shows what the subject said" in said
    assert "show_rows" not in said
    assert "unheard of" not in said
    assert "unheard of" in run("validate", "--rows").output


def test_a_failed_run_names_no_row(project: Project) -> None:
    project(FAILING)
    done = run("score")
    assert done.exit_code == 3
    said = " ".join(done.output.split())
    assert "unheard of" not in said
    assert MARK not in said
    assert re.search(r"crash in \d+ of \d+ executions, e\.g\. ValueError \(\w+\.py:\d+\)", said)
    assert "--rows shows what the subject said" in said
    assert "show_rows=True shows what" not in said
    shown = run("score", "--rows").output
    assert MARK in shown
    assert "unheard of" in shown


def test_a_failure_that_is_not_shown_says_what_shows_it(project: Project) -> None:
    project(FAILING, subject="max_failures = 0.5")
    remedy = "the input and what the subject said may hold values of people: --rows shows them"
    said = " ".join(run("score", "-o", "result.json").output.split())
    assert re.search(rf"failed: crash \d+ times?; {remedy}", said)
    for name, text in documents("result.json"):
        assert remedy in " ".join(text.split()) or name not in ("html", "md", "sarif"), name
    html = themis.Audit.from_file("themis.toml").score([["sex"]])._repr_html_()
    assert "show_rows=True" in html


# What programs say about people, in words that are in no row.
SAYING = 'import sys; sys.exit("no rule: surname SMITH")'
ANSWERING = """\
import json, sys
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "error": "surname SMITH"}), flush=True)
"""


@pytest.mark.parametrize(
    ("kind", "program", "said"),
    [
        ("command", SAYING, "executions, e.g. exit code 1."),
        ("worker", SAYING, "inputs in a row, each in a fresh process: exit code 1."),
        ("worker", ANSWERING, "crash in 60 of 60 executions."),
    ],
)
def test_a_failed_program_is_not_quoted(
    project: Project, kind: str, program: str, said: str
) -> None:
    path = project()
    Path("program.py").write_text(program)
    text = Path("themis.toml").read_text()
    subject = f'[subject]\nkind = "{kind}"\ncommand = ["{sys.executable}", "program.py"]\n'
    Path("themis.toml").write_text(re.sub(r"\[subject\]\n(?:.+\n)*", subject, text))
    with pytest.raises(themis.SubjectError) as failed:
        themis.Audit.from_file(path).causal("sex")
    assert "SMITH" not in str(failed.value)
    assert said in str(failed.value)
    assert "show_rows=True shows what the subject said" in str(failed.value)
    assert "SMITH" in " ".join(run("score", "--rows").output.split())


def test_an_inconsistent_answer_is_shown_without_its_row(project: Project) -> None:
    project(COUNTING)
    done = run("score", "--measure", "causal", "-v")
    assert "the same input got" in " ".join(done.output.split())
    assert MARK not in done.output


def test_rows_that_do_not_fit_are_named_by_their_lines(project: Project) -> None:
    project(strange=True, extra=f'{PROFILE}unknown = "drop"\n')
    done = run("score", "--measure", "causal")
    text = " ".join(done.output.split())
    assert "line 62" in text
    assert MARK not in text
    with pytest.warns(themis.RowsWarning) as caught:
        themis.Audit.from_file("themis.toml")
    assert all(MARK not in str(each.message) for each in caught)


def test_values_that_only_rows_have_are_counted_and_not_shown(project: Project) -> None:
    project(inputs=INPUTS.replace("9999999999", "1000"))
    done = run("score", "--measure", "causal")
    assert "60 rows with a value of income" in " ".join(done.output.split())
    assert MARK not in done.output


def test_of_numbers_that_differ_only_the_first_digit_is_shown(project: Project) -> None:
    project(NARROW)
    run("search", "--threshold", "0", "--among", "income", "-o", "result.json")
    (score,) = withheld(read_result("result.json")).scores
    assert isinstance(score, themis.CausalScore)
    shown = {str(each["income"]) for pair in score.witnesses for each in pair.inputs}
    assert "about 5,000,000,000" in shown
    assert all(re.fullmatch(r"\d|about \d[0,]*|lower|higher", e) for e in shown)


@pytest.mark.parametrize(
    ("condition", "shown"),
    [
        ("income ≥ 4861117", "income ≥ about 4,900,000"),
        ("4861101 ≤ income ≤ 4861117", "about 4,900,000 ≤ income ≤ about 4,900,000"),
        ("rate ≤ 0.12345", "rate ≤ about 0.12"),
        ("income = 4861117", "income = about 4,900,000"),
        ("hours ≥ 40", "hours ≥ 40"),
        ("gain ≤ 5000", "gain ≤ 5000"),
        ("town = A 4861117 b", "town = A 4861117 b"),
        ("town is one of 12345, 67890", "town is one of 12345, 67890"),
    ],
)
def test_the_ends_of_a_region_are_rounded(project: Project, condition: str, shown: str) -> None:
    project()
    score = themis.Audit.from_file("themis.toml").causal("sex")
    region = Region((condition,), 0.9, 0.8, 1.0, 0.1, 9.0, 50)
    (found,) = withheld(replace(score, regions=(region,))).regions
    assert found.conditions == (shown,)
    (whole,) = withheld(replace(score, regions=(region,), population="inputs")).regions
    assert whole.conditions == (condition,)


RARE = "a group of fewer than 5 people"
TOWNS = INPUTS + 'town = ["Aber", "Bree"]\n'
OWN_TOWN = f"return int(person['town'] != 'Villa {MARK}' and person['hours'] > 30)"


def test_a_group_of_fewer_than_five_people_is_not_named(project: Project) -> None:
    """Every income is a group of its own, and one person has it."""
    project()
    command = ("score", "--against", "income", "--measure", "group")
    assert_private(*command)
    assert "fewer than 5 people" in " ".join(Path("out.html").read_text().split())
    (score,) = withheld(read_result("result.json")).scores
    assert isinstance(score, themis.GroupScore)
    assert {len(each.values) for each in score.groups} == {0}
    assert MARK not in repr(read_result("result.json").scores)
    assert MARK in run(*command, "--rows").output


def test_a_search_names_no_group_of_fewer_than_five_people(project: Project) -> None:
    """At most two people work as many hours."""
    project()
    run("search", "--threshold", "0.1", "--measure", "group", "--among", "hours", "-o", "r.json")
    (score,) = withheld(read_result("r.json")).scores
    assert isinstance(score, themis.GroupScore)
    assert {each.people for each in score.groups} <= {1, 2}
    assert {len(each.values) for each in score.groups} == {0}


def test_a_search_of_groups_of_which_none_is_tried_is_undecided(project: Project) -> None:
    project()
    done = run("search", "--threshold", "0.1", "--measure", "group", "--among", "income", "-v")
    assert done.exit_code == 4, done.output
    assert "give the characteristic bins" in " ".join(done.output.split())


@pytest.mark.parametrize(("people", "named"), [(1, False), (4, False), (5, True)])
def test_what_five_people_share_is_named(project: Project, people: int, named: bool) -> None:
    project()
    rows = [{"sex": "female", "hours": 20 + n, "income": n} for n in range(40)]
    rows += [{"sex": "male", "hours": 50 + n, "income": n} for n in range(people)]
    audit = themis.Audit.from_file("themis.toml")
    result = audit.apparent(rows, "sex", measures=["group"], only_data=True)
    (score,) = withheld(result).scores
    assert isinstance(score, themis.GroupScore)
    assert [each.values for each in score.groups] == [
        {"sex": "female"}, {"sex": "male"} if named else {}
    ]  # fmt: skip
    assert [each.people for each in score.groups] == [40, people]
    assert (RARE in score._repr_html_()) != named


def in_towns(folder: Path) -> None:
    """The people in two towns, but the last has one of their own, and an outcome of their own."""
    header, *lines = people()
    towns = [f"{line},{('Aber', 'Bree')[n % 2]},{n % 2}" for n, line in enumerate(lines[:-1])]
    own = f"{lines[-1]},Villa {MARK},fraud {MARK}"
    (folder / "people.csv").write_text("\n".join([f"{header},town,repaid", *towns, own]) + "\n")


def test_a_text_that_one_row_has_is_not_shown(project: Project, tmp_path: Path) -> None:
    project(OWN_TOWN, inputs=TOWNS)
    in_towns(tmp_path)
    assert_private("apparent", "--against", "town", "--only-data")
    for score in withheld(read_result("result.json")).scores:
        if isinstance(score, themis.CausalScore) and score.counterfactuals == "generated":
            assert ({"town": "Aber"}, {"town": "a rare value"}) in [
                each.inputs for each in score.witnesses
            ]
    assert MARK not in run("replay", "result.json", "-v").output
    assert MARK in run("replay", "result.json", "-v", "--rows").output


def test_no_region_names_a_value_that_only_rows_have() -> None:
    schema = themis.Schema(sex=["f", "m"], town=["Aber", "Bree"], income=range(2_000))
    towns = ("Aber", "Bree", f"Villa {MARK}", "Bree")
    rows = [{"sex": "fm"[n % 2], "town": towns[n % 4], "income": n} for n in range(2_000)]
    for town in ("Aber", towns[2]):
        audit = themis.Audit(
            lambda p, town=town: p["sex"] == "m" or p["town"] != town, schema, profile=rows
        )
        score = audit.causal("sex")
        assert score.score == pytest.approx(0.25, abs=0.05)
        conditions = {each.conditions for each in score.regions}
        assert conditions == ({("town = Aber",)} if town == "Aber" else set())


@pytest.mark.slow
def test_rare_outcomes_and_numbers_of_proxies_are_not_shown(
    project: Project, tmp_path: Path
) -> None:
    project(inputs=TOWNS)
    in_towns(tmp_path)
    known = ("--label", "repaid", "--label-favourable", "1")
    assert_private("apparent", "--against", "income", "--only-data", *known)
    assert_private("apparent", "--against", "sex", "--only-data", "--proxies", *known)
    table = withheld(read_result("result.json")).outcomes[0]
    assert table.favourable == ("1",)
    assert table.unfavourable == ("0", "1 rare outcome")
    shown = ("--only-data", "--rows", "--proxies", "-v")
    text = run("apparent", "--against", "sex", *shown, *known).output
    assert f"fraud {MARK}" in text


@pytest.mark.parametrize(("rows", "named"), [(1, False), (4, False), (5, True)])
def test_a_rare_outcome_is_named_where_many_rows_get_it_as_an_output(
    project: Project, tmp_path: Path, rows: int, named: bool
) -> None:
    """The subject says of some people what one of them did."""
    odd = f"return 'fraud {MARK}' if person['income'] % 100 >= {MADE - rows} else 'no'"
    project(odd, inputs=TOWNS)
    in_towns(tmp_path)
    known = ("--label", "repaid", "--label-favourable", "1")
    run("apparent", "--against", "sex", "--only-data", *known, "-o", "result.json")
    table = withheld(read_result("result.json")).outcomes[0]
    assert (f"fraud {MARK}" in table.unfavourable) == named
    assert ("1 rare outcome" in table.unfavourable) != named


def test_a_notebook_shows_no_row(project: Project) -> None:
    project()
    audit = themis.Audit.from_file("themis.toml")
    result = audit.score([["sex"]])
    shown = (audit, result, *result.scores, audit.search(0.0), audit.apparent())
    assert all(MARK not in each._repr_html_() for each in shown)
    assert all(MARK not in repr(each) for each in shown), "a saved notebook holds both"
    assert MARK in result.scores[0].witnesses[0]._repr_html_()  # asked for by itself


def test_a_failed_assertion_shows_no_row(project: Project) -> None:
    project(NARROW)
    audit = themis.Audit.from_file("themis.toml")
    with pytest.raises(themis.DiscriminationError) as failed:
        audit.causal("sex").assert_below(0.01)
    assert MARK not in str(failed.value)
    with pytest.raises(themis.DiscriminationError) as failed:
        audit.search(0.01, among=["sex"]).assert_nothing_found()
    assert MARK not in str(failed.value)


@pytest.mark.parametrize("allowed", [False, True])
def test_a_test_that_fails_shows_rows_only_if_allowed(project: Project, allowed: bool) -> None:
    from themis.testing.claims import AuditInTest

    project(NARROW)
    test = AuditInTest(themis.Audit.from_file("themis.toml", show_rows=allowed))
    with pytest.raises(themis.DiscriminationError) as failed:
        test.causal("sex").assert_below(0.01)
    assert (MARK in str(failed.value)) == allowed


@pytest.mark.parametrize("name", ["suite.csv", "suite.jsonl", "suite.parquet"])
def test_a_suite_of_people_must_be_allowed_and_says_what_it_is(project: Project, name: str) -> None:
    project()
    done = run("score", "--suite", name)
    assert done.exit_code == 2
    assert "--suite: it would hold rows of people" in done.output
    assert "--rows" in done.output
    assert not Path(name).exists()
    assert run("score", "--suite", name, "--rows", "--error", "0.2").exit_code == 0
    assert "personal_data" in Path(name).read_text(encoding="utf-8", errors="replace")
    for options, shown in (((), False), (("--rows",), True)):
        done = run("replay", name, "-v", "--report", "replay.md", *options)
        assert done.exit_code == 1, done.output
        assert "column-not-used" not in done.output
        assert "is no characteristic" not in done.output
        assert (MARK in done.output) == shown
        assert (MARK in Path("replay.md").read_text()) == shown


def test_a_replayed_result_shows_no_row(project: Project) -> None:
    project()
    run("score", "-o", "result.json")
    for options, shown in (((), False), (("--rows",), True)):
        done = run("replay", "result.json", "-v", "--report", "replay.html", *options)
        assert (MARK in done.output) == shown
        assert (MARK in Path("replay.html").read_text()) == shown
        told = [each for each in done.output.split("\n\n") if each.startswith("still: ")]
        assert len(set(told)) == len(told)  # what is left of several tests is said once
    assert MARK in run("replay", "result.json", "--json").output  # a file to work on
    assert '"personal_data": true' in run("replay", "result.json", "--json").output


def test_python_is_told_how_to_allow_a_suite(project: Project, tmp_path: Path) -> None:
    rows = [{"sex": "male", "age": age} for age in range(30, 40)]
    schema = themis.Schema(sex=["female", "male"], age=range(18, 70))
    with pytest.raises(themis.RequestError) as told:
        themis.Audit(lambda p: True, schema, profile=rows, suite=tmp_path / "suite.csv")
    assert "show_rows=True" in str(told.value)


def test_nothing_is_withheld_of_generated_inputs() -> None:
    schema = themis.Schema(sex=["female", "male"], age=range(18, 70))
    audit = themis.Audit(lambda p: p["sex"] == "male" and p["age"] > 30, schema)
    result: Result = audit.score([["sex"]])
    assert withheld(result) is result
    assert withheld(result.scores[0]) is result.scores[0]
