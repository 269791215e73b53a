"""Does nobody's row leave the machine in a document, a log or a suite, unless that was allowed?

All people of these tests have an income that begins with MARK, which no generated value does
and no hash in a document: it has eight digits for that. Some subjects put it into what they answer.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import themis
from tests.projects import Project, run
from themis.results.parts import Region
from themis.results.saved import read_result
from themis.results.withheld import withheld
from themis.show.reports.formats import FORMATS
from themis.show.reports.method import digest
from themis.testing.claims import AuditInTest

MARK = "48611593"
MADE = 60
INPUTS = """\
sex = { values = ["female", "male"], protected = true }
hours = { min = 10, max = 60 }
income = { min = 0, max = 9999999999 }
"""
TOWNS = INPUTS + 'town = ["Aber", "Bree"]\n'
# Income decides nothing: pairs of generated values flip as those of people do.
BIASED = "return int(person['hours'] + 5 * (person['sex'] == 'male') > 40)"
# A pair flips only with an income that nobody but these people has.
NARROW = f"return int(person['sex'] == 'male' and person['income'] // 100 == {MARK})"
FAILING = f"""\
if person['income'] == {MARK}07:
    raise ValueError(f"an income of {{person['income']}} is unheard of")
{BIASED}"""
OWN_TOWN = f"return int(person['town'] != 'Villa {MARK}' and person['hours'] > 30)"
COUNT = "import itertools\ncalls = decide.__dict__.setdefault('calls', itertools.count())\n"
COUNTING = f"{COUNT}return int(person['hours'] + next(calls) % 7 > 40)"
NAMING = f"{COUNT}return f'case {{next(calls) % 40}} {MARK}'"
PROFILE = '[profile]\ndata = "people.csv"\n'
MEANS = PROFILE + "[outputs.limit]\nmin = 0\nmax = 10000000000\n"
CHECKS = PROFILE + '[[checks]]\nagainst = ["sex"]\nmax_score = 0.01\n'
FAILS = {"body": FAILING, "subject": "max_failures = 0.5"}
DOCUMENTS = ("html", "md", "sarif", "github")  # the others show no pairs


def odd(women: int) -> str:
    """A subject that has a text for so many women, and for no man."""
    last = f"person['income'] >= {MARK}{MADE - 2 * women:02} and person['income'] <= {MARK}99"
    return f"return 'case {MARK}' if {last} and person['sex'] == 'female' else 'no'"


def people(*, strange: bool = False, towns: bool = False) -> Iterator[str]:
    """The table of all; the town of the last, and an outcome, may be their own."""
    yield "sex,hours,income" + ",town,repaid" * towns
    for number in range(MADE):
        own = f",Villa {MARK},fraud {MARK}" if number == MADE - 1 else ""
        more = own or f",{('Aber', 'Bree')[number % 2]},{number % 2}"
        row = f"{('female', 'male')[number % 2]},{20 + number * 7 % 40},{MARK}{number:02}"
        yield row + more * towns
    if strange:
        yield f"male,30,{MARK}99.5"


@pytest.fixture
def people_project(project: Project) -> Project:
    def make(
        body: str = BIASED, *, strange: bool = False, towns: bool = False, **options: Any
    ) -> Path:
        Path("people.csv").write_text("\n".join(people(strange=strange, towns=towns)) + "\n")
        inputs = TOWNS if towns else INPUTS
        return project(body, **{"inputs": inputs, "extra": PROFILE, **options})

    return make


def documents(path: str, *options: str) -> Iterator[tuple[str, str]]:
    """Every document of a saved result, by its name."""
    for name in FORMATS:
        done = run("report", path, "--format", name, "-o", f"out.{name}", *options)
        assert done.exit_code == 0, done.output
        yield name, Path(f"out.{name}").read_text(encoding="utf-8", errors="replace") + done.output


def shown(*command: str) -> Iterator[tuple[str, str]]:
    """All that is shown of what a command measures, by its name; result.json is left."""
    rows = [each for each in command if each == "--rows"]
    for way in (("-q",), ("-v", "-o", "result.json")):
        done = run(*command, *way)
        assert done.exit_code in (0, 1, 4), done.output
        yield way[0], done.output
    yield "validate", run("validate", *rows).output
    yield "replay", run("replay", "result.json", "-v", *rows).output
    yield from documents("result.json", *rows)
    result = read_result("result.json")
    for each in (result, *result.scores, *result.searches):
        name = type(each).__name__
        yield f"notebook {name}", each._repr_html_()
        yield f"repr {name}", repr(each)


SCORE, SEARCH, APPARENT, CHECK = "score", "search --threshold 0", "apparent", "check"
ONLY = "apparent --only-data --against"
KNOWN = "--label repaid --label-favourable 1"
GENERATED = "apparent --draw --counterfactuals generated"
RARE = "the subject gave 'no', 1 rare output; favourable is"
REMEDY = "the input and what the subject said may hold values of people: --rows shows them"


@dataclass(frozen=True)
class Hidden:
    """What a command would tell of people, and what it says instead."""

    name: str
    command: str
    said: str = ""
    project: dict[str, Any] = field(default_factory=dict)
    slow: bool = False


HIDDEN = [
    Hidden("a pair", SCORE, "their other values are those of people, and are not shown",
           {"body": NARROW}),
    Hidden("a pair of a search", SEARCH),
    Hidden("a pair of a check", CHECK, "", {"extra": CHECKS}),
    Hidden("a pair of rows", APPARENT, "", {"body": NARROW}, slow=True),
    Hidden("a failure", SCORE, REMEDY, FAILS),
    Hidden("a failure in a search", SEARCH, REMEDY, FAILS, slow=True),
    Hidden("a failure in a check", CHECK, "", FAILS | {"extra": CHECKS}, slow=True),
    Hidden("a failure in rows", APPARENT, REMEDY, FAILS, slow=True),
    Hidden("an input with two outputs", f"{SCORE} --measure causal", "the same input got",
           {"body": COUNTING}),
    Hidden("values that the schema lacks", SCORE, "60 rows with a value of income",
           {"inputs": INPUTS.replace("9999999999", "1000")}),
    Hidden("groups of one person", f"{SCORE} --against income --measure group",
           "fewer than 5 people"),
    Hidden("a mean of one person", f"{SCORE} --against income --measure group", "",
           {"body": "return person['income']", "extra": MEANS}, slow=True),
    Hidden("a text of one row", f"{ONLY} town", "a rare value", {"body": OWN_TOWN, "towns": True}),
    Hidden("an outcome of one row", f"{ONLY} income {KNOWN}", "", {"towns": True}, slow=True),
    Hidden("numbers of proxies", f"{ONLY} sex --proxies {KNOWN}", "", {"towns": True}, slow=True),
    Hidden("a rare output", SCORE, RARE, {"body": odd(2)}),
    Hidden("a rare output in a search", SEARCH, RARE, {"body": odd(2)}),
    Hidden("a rare output of rows", APPARENT, RARE, {"body": odd(2)}),
    Hidden("a rare output of draws", GENERATED, RARE, {"body": odd(2)}),
    Hidden("spellings of rare outputs", f"{SCORE} --against hours --measure causal", "spelling",
           {"body": odd(2).replace(f"'case {MARK}'",
            f"('case {MARK}' if person['hours'] > 40 else 'Case {MARK}.')")}),
    Hidden("two rare outputs of one input", f"{SCORE} --measure causal",
           "the same input got a rare output, and another rare output", {"body": NAMING}),
]  # fmt: skip


@pytest.mark.parametrize(
    "hidden",
    [pytest.param(e, marks=[pytest.mark.slow] if e.slow else [], id=e.name) for e in HIDDEN],
)
def test_nothing_of_people_is_shown_anywhere_unless_rows_are_allowed(
    people_project: Project, hidden: Hidden
) -> None:
    people_project(**hidden.project)
    pages = dict(shown(*hidden.command.split()))
    for name, text in pages.items():
        assert MARK not in text, f"{name}: {text}"
    assert hidden.said in " ".join(pages["-v"].split())
    assert MARK in Path("result.json").read_text(), "nothing was there to withhold"
    if hidden.said == REMEDY:
        assert all(REMEDY in " ".join(pages[each].split()) for each in ("html", "md", "sarif"))
        assert "show_rows=True" in pages["notebook Result"]
    allowed = dict(shown(*hidden.command.split(), "--rows"))
    told = [name for name, text in allowed.items() if MARK in text]
    assert told
    if "pair" in hidden.name or "failure" in hidden.name:
        assert {"-v", *DOCUMENTS} <= {*told}


def test_the_file_can_allow_rows(people_project: Project) -> None:
    people_project(extra=f"{PROFILE}[report]\nrows = true\n")
    assert MARK in run("score", "-o", "result.json").output
    assert all(MARK in text for name, text in documents("result.json") if name in DOCUMENTS)
    assert MARK not in run("score", "--no-rows").output


def test_a_document_carries_the_hash_of_the_file(people_project: Project) -> None:
    people_project()
    run("score", "-o", "result.json")
    hashed = digest(read_result("result.json"))
    assert digest(withheld(read_result("result.json"))) == hashed
    for name, text in (*documents("result.json"), *documents("result.json", "--rows")):
        assert (hashed in text) == (name in ("html", "annex")), name


def causal_score(*command: str) -> themis.CausalScore:
    """The only score of a command, as it is shown."""
    run(*command, "-o", "result.json")
    (score,) = withheld(read_result("result.json")).scores
    assert isinstance(score, themis.CausalScore)
    return score


def test_a_shown_pair_is_generated_was_run_and_flips(people_project: Project) -> None:
    people_project()
    score = causal_score("score", "--measure", "causal")
    assert score.witnesses
    for pair in score.witnesses:
        assert pair.generated
        first, second = (row["hours"] + 5 * (row["sex"] == "male") > 40 for row in pair.inputs)
        assert first != second
        assert pair.outputs == (int(first), int(second))
    result = read_result("result.json")
    assert result.account is not None
    assert result.account.explanations > 0
    assert MARK in result.scores[0].witnesses[0]._repr_html_()  # asked for by itself


def test_without_a_generated_pair_only_the_difference_is_shown(people_project: Project) -> None:
    people_project(NARROW)
    score = causal_score("score", "--measure", "causal")
    assert [pair.inputs for pair in score.witnesses] == [({"sex": "male"}, {"sex": "female"})]
    score = causal_score("search", "--threshold", "0", "--among", "income")
    numbers = {str(each["income"]) for pair in score.witnesses for each in pair.inputs}
    assert "about 5,000,000,000" in numbers
    assert all(re.fullmatch(r"\d|about \d[0,]*|lower|higher", each) for each in numbers)


def test_the_json_says_which_inputs_are_rows(people_project: Project) -> None:
    people_project()
    data = json.loads(run("score", "--measure", "causal", "--json").stdout)
    assert data["personal_data"] is True
    rows = {tuple(line.split(",")) for line in people()}
    pairs = data["scores"][0]["witnesses"]
    assert any(pair["generated"] for pair in pairs)
    for pair in pairs:
        texts = [tuple(map(str, each.values())) for each in pair["inputs"]]
        assert pair["rows"] == (None if pair["generated"] else [each in rows for each in texts])
        assert pair["generated"] or any(pair["rows"])


def test_a_result_of_generated_inputs_has_no_personal_data_and_nothing_is_withheld() -> None:
    schema = themis.Schema(sex=["female", "male"], age=range(18, 70))
    audit = themis.Audit(lambda p: p["sex"] == "male" and p["age"] > 30, schema)
    result = audit.score([["sex"]])
    data = result.to_dict()
    assert data["personal_data"] is False
    assert not any(each["generated"] for s in data["scores"] for each in s["witnesses"])
    assert withheld(result) is result
    assert withheld(result.scores[0]) is result.scores[0]


@pytest.mark.parametrize(
    ("body", "command"), [(FAILING, "score"), ("raise ValueError('unheard of')", "validate")]
)
def test_a_failed_run_names_no_row_and_the_option_that_does(
    people_project: Project, body: str, command: str
) -> None:
    people_project(body)
    done = run(command)
    said = " ".join(done.output.split())
    assert done.exit_code == 3
    assert "--rows shows what the subject said" in said
    for hidden in ("unheard of", MARK, "show_rows=True shows what"):
        assert hidden not in said
    if command == "score":
        assert re.search(r"crash in \d+ of \d+ executions, e\.g\. ValueError \(\w+\.py:\d+\)", said)
        assert MARK in run(command, "--rows").output
    assert "unheard of" in run(command, "--rows").output


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
    people_project: Project, kind: str, program: str, said: str
) -> None:
    path = people_project()
    Path("program.py").write_text(program)
    subject = f'[subject]\nkind = "{kind}"\ncommand = ["{sys.executable}", "program.py"]\n'
    path.write_text(re.sub(r"\[subject\]\n(?:.+\n)*", subject, path.read_text()))
    with pytest.raises(themis.SubjectError) as failed:
        themis.Audit.from_file(path).causal("sex")
    assert "SMITH" not in str(failed.value)
    assert said in str(failed.value)
    assert "show_rows=True shows what the subject said" in str(failed.value)
    assert "SMITH" in " ".join(run("score", "--rows").output.split())


@pytest.mark.parametrize(("unknown", "code"), [("drop", 0), ("error", 2)])
def test_rows_that_do_not_fit_are_named_by_their_lines(
    people_project: Project, unknown: str, code: int
) -> None:
    people_project(strange=True, extra=f'{PROFILE}unknown = "{unknown}"\n')
    done = run("score", "--measure", "causal")
    assert done.exit_code == code
    assert "line 62" in " ".join(done.output.split())
    assert MARK not in done.output
    if unknown == "drop":
        with pytest.warns(themis.RowsWarning) as caught:
            themis.Audit.from_file("themis.toml")
        assert all(MARK not in str(each.message) for each in caught)


@pytest.mark.parametrize(
    ("condition", "rounded"),
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
def test_the_ends_of_a_region_are_rounded(
    people_project: Project, condition: str, rounded: str
) -> None:
    people_project()
    score = themis.Audit.from_file("themis.toml").causal("sex")
    region = Region((condition,), 0.9, 0.8, 1.0, 0.1, 9.0, 50)
    (found,) = withheld(replace(score, regions=(region,))).regions
    assert found.conditions == (rounded,)
    (whole,) = withheld(replace(score, regions=(region,), population="inputs")).regions
    assert whole.conditions == (condition,)


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


def test_a_search_names_no_group_of_fewer_than_five_people(people_project: Project) -> None:
    """At most two people work as many hours, and each has an own income."""
    people_project()
    search = ("search", "--threshold", "0.1", "--measure", "group", "--among")
    run(*search, "hours", "-o", "result.json")
    (score,) = withheld(read_result("result.json")).scores
    assert isinstance(score, themis.GroupScore)
    assert {each.people for each in score.groups} <= {1, 2}
    assert {len(each.values) for each in score.groups} == {0}
    done = run(*search, "income", "-v")
    assert done.exit_code == 4, done.output
    assert "give the characteristic bins" in " ".join(done.output.split())


@pytest.mark.parametrize(("number", "named"), [(1, False), (4, False), (5, True)])
def test_what_five_people_share_is_named(people_project: Project, number: int, named: bool) -> None:
    people_project()
    rows = [{"sex": "female", "hours": 20 + n, "income": n} for n in range(40)]
    rows += [{"sex": "male", "hours": 50 + n, "income": n} for n in range(number)]
    audit = themis.Audit.from_file("themis.toml")
    result = audit.apparent(rows, "sex", measures=["group"], only_data=True)
    (score,) = withheld(result).scores
    assert isinstance(score, themis.GroupScore)
    shared = {"sex": "male"} if named else {}
    assert [each.values for each in score.groups] == [{"sex": "female"}, shared]
    assert [each.people for each in score.groups] == [40, number]
    assert ("a group of fewer than 5 people" in score._repr_html_()) != named


@pytest.mark.parametrize(("rows", "named"), [(1, False), (4, False), (5, True)])
def test_a_rare_outcome_is_named_where_many_rows_get_it_as_an_output(
    people_project: Project, rows: int, named: bool
) -> None:
    """The subject says of some people what one of them did."""
    told = f"return 'fraud {MARK}' if person['income'] % 100 >= {MADE - rows} else 'no'"
    people_project(told, towns=True)
    run(*f"{ONLY} sex {KNOWN}".split(), "-o", "result.json")
    table = withheld(read_result("result.json")).outcomes[0]
    assert table.favourable == ("1",)
    assert table.unfavourable == ("0", f"fraud {MARK}" if named else "1 rare outcome")


@pytest.mark.parametrize("allowed", [False, True])
def test_a_test_that_fails_shows_rows_only_if_allowed(
    people_project: Project, allowed: bool
) -> None:
    people_project(NARROW)
    audit = themis.Audit.from_file("themis.toml", show_rows=allowed)
    for claim, shows in (
        (lambda: audit.causal("sex").assert_below(0.01), False),
        (lambda: audit.search(0.01, among=["sex"]).assert_nothing_found(), False),
        (lambda: AuditInTest(audit).causal("sex").assert_below(0.01), allowed),
    ):
        with pytest.raises(themis.DiscriminationError) as failed:
            claim()
        assert (MARK in str(failed.value)) == shows


@pytest.mark.parametrize("name", ["suite.csv", "suite.jsonl", "suite.parquet"])
def test_a_suite_of_people_must_be_allowed_and_says_what_it_is(
    people_project: Project, name: str
) -> None:
    path = people_project()
    done = run("score", "--suite", name)
    assert done.exit_code == 2
    assert "--suite: it would hold rows of people" in done.output
    assert "--rows" in done.output
    with pytest.raises(themis.RequestError, match="show_rows=True"):
        themis.Audit.from_file(path, suite=name)
    assert not Path(name).exists()
    assert run("score", "--suite", name, "--rows", "--error", "0.2").exit_code == 0
    assert "personal_data" in Path(name).read_text(encoding="utf-8", errors="replace")
    for options in ((), ("--rows",)):
        done = run("replay", name, "-v", "--report", "replay.md", *options)
        assert done.exit_code == 1, done.output
        assert "column-not-used" not in done.output
        assert "is no characteristic" not in done.output
        assert (MARK in done.output) == (MARK in Path("replay.md").read_text()) == bool(options)


def test_a_replayed_result_shows_no_row(people_project: Project) -> None:
    people_project()
    run("score", "-o", "result.json")
    for options in ((), ("--rows",)):
        done = run("replay", "result.json", "-v", "--report", "replay.html", *options)
        assert (MARK in done.output) == (MARK in Path("replay.html").read_text()) == bool(options)
        told = [each for each in done.output.split("\n\n") if each.startswith("still: ")]
        assert len(set(told)) == len(told)  # what is left of several tests is said once
    printed = run("replay", "result.json", "--json").output  # a file to work on
    assert MARK in printed
    assert '"personal_data": true' in printed
