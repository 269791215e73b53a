"""Does `themis apparent` measure the people in a file, say who does not fit, and what it cost?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.external import ran, write_command
from tests.projects import enter, run, write_project

Project = Callable[..., Path]
INPUTS = """\
race = { values = ["green", "purple"], protected = true }
sex = ["f", "m"]
income = { min = 0, max = 99 }
"""
ROWS = """\
id,race,sex,income,count
1,green,f,40,2
2,purple,f,40,1
3,green,m,80,5
4,purple,m,20,2
5,blue,m,20,1
6,green,m,100,1
"""


OUTCOMES = """\
race,sex,income,repaid
green,f,40,1
green,m,80,1
green,m,20,0
purple,f,40,1
purple,m,70,0
purple,m,20,
"""
KNOWN = ("--data", "known.csv")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    enter(tmp_path, monkeypatch)
    (tmp_path / "people.csv").write_text(ROWS, encoding="utf-8")
    return lambda **options: write_project(tmp_path, **{"inputs": INPUTS, **options})


def shown(*arguments: str) -> dict[str, Any]:
    """The result of a command as JSON."""
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    data: dict[str, Any] = json.loads(done.stdout)
    return data


def measured(*arguments: str) -> dict[str, Any]:
    return shown("apparent", "--data", "people.csv", "--unknown", "drop", *arguments)


def scores(data: dict[str, Any]) -> dict[tuple[str, str, str], float]:
    return {
        (each["measure"], each["population"], each.get("counterfactuals", "generated")): each[
            "score"
        ]
        for each in data["scores"]
    }


def test_people_are_compared_by_columns_that_the_schema_lacks(
    project: Project, tmp_path: Path
) -> None:
    project()
    region = ["region", "north", "south", "south", "south", "south", "north"]
    lines = [f"{line},{name}" for line, name in zip(ROWS.split(), region, strict=True)]
    (tmp_path / "people.csv").write_text("\n".join(lines), encoding="utf-8")
    found = measured("--against", "region", "--against", "race,region", "--weights", "count")
    told = {(*s["against"], s["measure"], s["population"]): s for s in found["scores"]}
    assert {each for each in told if len(each) == 3} == {
        ("region", "causal", "rows"),
        ("region", "group", "rows"),
    }
    groups = told["region", "group", "rows"]["groups"]
    rates = {each["values"]["region"]: each["rate"] for each in groups}
    assert rates == {"north": 1, "south": pytest.approx(5 / 8)}  # of 1 + 5 + 2 that fit, 5
    assert {each[-1] for each in told if len(each) == 4} == {"rows", "inputs"}


def test_rows_and_all_inputs_are_measured_and_said_to_differ(project: Project) -> None:
    project()
    found = scores(measured())
    assert found == {
        ("causal", "rows", "generated"): 0.5,
        ("causal", "rows", "within"): 0.5,
        ("group", "rows", "generated"): 1,
        ("causal", "inputs", "generated"): pytest.approx(0.3),
        ("group", "inputs", "generated"): pytest.approx(0.3),
    }
    done = run("apparent", "--data", "people.csv", "--unknown", "drop", "-v")
    said = " ".join(done.stdout.split())
    assert said.startswith("The decision changes with race (for 50.0 % of the people in the rows)")
    for each in (
        *("people.csv: 6 rows, 2 do not fit, 4 used", "causal, in the rows"),
        *("race: unknown value (1, e.g. line 6)", "income: out of range (1, e.g. line 7)"),
    ):
        assert each in said


def test_weights_count_people(project: Project) -> None:
    project()
    data = measured("--weights", "count", "--only-data")
    assert [*scores(data).values()] == [0.3, 0.3, 1.0]
    assert (data["data"]["weights"], data["data"]["ignored"]) == ("count", ["id"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "--data: there are no rows to measure"),
        (("--data", "no.csv"), "no.csv: there is no such file"),
        (("--data", "people.csv", "--weights", "Count"), "did you mean 'count'?"),
        (("--data", "people.csv", "--against", "rase"), "in the rows; did you mean 'race'?"),
        (("--data", "people.csv", "--draw", "--counterfactuals", "within"), "--draw: "),
        (("--data", "bad.csv"), "--data: bad.csv has no column 'race'; did you mean 'Race'?"),
        (("--data", "people.csv", "--unknown", "error"), "income: out of range in 1 row: line 7"),
        ((*KNOWN, "--label", "repayed"), "--label: known.csv has no column 'repayed'; did you"),
        ((*KNOWN, "--label", "sex"), "--label: 'sex' is a characteristic"),
        ((*KNOWN, "--label", "repaid", "--label-favourable", "2"), "--label-favourable: no row"),
        ((*KNOWN, "--label-favourable", "1"), "--label-favourable: there is no column of known"),
        ((*KNOWN, "--label", "repaid", "--draw"), "--draw: known outcomes need every row"),
        ((*KNOWN, "--proxies", "--draw"), "--draw: proxies need every row"),
    ],
)
def test_mistakes_end_with_2_and_a_remedy(
    project: Project, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    project()
    (tmp_path / "bad.csv").write_text("Race,sex,income\ngreen,f,1\n", encoding="utf-8")
    (tmp_path / "known.csv").write_text(OUTCOMES, encoding="utf-8")
    done = run("apparent", *arguments)
    assert done.exit_code == 2, done.output
    assert said in done.stderr


def test_the_profile_of_the_file_is_what_inputs_are_drawn_from(project: Project) -> None:
    project(extra='[profile]\ndata = "people.csv"\nweights = "count"\nunknown = "drop"\n')
    found = scores(shown("score", "--against", "race"))
    assert found == {("causal", "profile", "generated"): 0.3, ("group", "profile", "generated"): 1}
    rows = scores(shown("apparent", "--only-data"))
    assert rows["causal", "rows", "generated"] == 0.3
    assert "drawn from" in run("validate").stdout
    assert shown("search", "--threshold", "0.2")["scores"][0]["population"] == "profile"


def test_checks_are_about_the_people_of_the_profile(project: Project) -> None:
    check = '[[checks]]\nagainst = ["race"]\nmax_score = 0.35\n'
    project(extra=check)
    assert run("check").exit_code == 0  # 0.3 of all inputs
    project(extra=f'[profile]\ndata = "people.csv"\nunknown = "drop"\n{check}')
    assert run("check").exit_code == 1  # half of the people


@pytest.mark.slow
def test_an_outside_subject_is_run_once_for_each_person_and_change_and_cached(
    project: Project, tmp_path: Path
) -> None:
    project()
    decide = 'case "$1" in green) least=30;; *) least=60;; esac; echo $(( $3 >= least ))'
    config = write_command(tmp_path, decide=decide)
    config.write_text(f"{config.read_text().partition('[inputs]')[0]}[inputs]\n{INPUTS}")
    first = measured("--only-data")
    runs = ran(tmp_path)
    assert first["account"]["sampling"] == 6  # three contexts, each green and purple
    assert len(runs) == first["executions"]
    again = measured("--only-data")
    assert (again["executions"], ran(tmp_path)) == (0, runs)
    assert scores(first) == scores(again)


def test_a_table_in_the_place_of_the_file_is_told_apart(project: Project) -> None:
    project()
    result = run("apparent", "people.csv")
    assert result.exit_code == 2
    assert "it is a table, not a themis.toml" in result.output
    assert "--data people.csv" in result.output


def test_known_outcomes_and_proxies_stand_beside_the_scores(project: Project) -> None:
    project()
    Path("known.csv").write_text(OUTCOMES, encoding="utf-8")
    arguments = ("apparent", *KNOWN, "--only-data")
    plain, done = run(*arguments, "-v"), run(*arguments, "-v", "--label", "repaid", "--proxies")
    assert (plain.exit_code, done.exit_code) == (0, 0)
    known = "Outcomes known from repaid: 1 as favourable, 1 rare outcome not. 1 of 6 people have"
    assert known in " ".join(done.stdout.split())
    assert "What may stand in for race" in done.stdout
    first = plain.stdout.splitlines()[0]
    assert done.stdout.splitlines()[0] == first  # the verdict is the same
    outcomes = shown(*arguments, "--label", "repaid")["outcomes"]
    green = outcomes[0]["groups"][0]
    assert (green["values"], green["true_positive_rate"]["of"]) == ({"race": "green"}, 2)
    project(extra='[profile]\ndata = "known.csv"\n')  # which needs no --data
    assert shown("apparent", "--only-data", "--label", "repaid")["outcomes"] == outcomes


@pytest.mark.parametrize(
    ("options", "used"), [((), 4), (("--unknown", "keep"), 4), (("--unknown", "drop"), 3)]
)
def test_unknown_is_heeded_for_the_rows_of_the_profile(
    project: Project, options: tuple[str, ...], used: int
) -> None:
    project(extra='[profile]\ndata = "some.csv"\n')
    people = "race,sex,income\ngreen,f,40\ngreen,m,80\npurple,f,40\nblue,m,70\n"
    Path("some.csv").write_text(people, encoding="utf-8")
    profile = shown("apparent", "--only-data", *options)
    given = shown("apparent", "--data", "some.csv", "--only-data", *options)
    assert profile["data"]["used"] == used
    for each in (profile, given):
        assert "blue" not in each["schema"]["inputs"]["race"]["values"]
    assert scores(profile) == scores(given)


def test_small_groups_are_never_presented_as_fair(project: Project) -> None:
    project(body="return 1")
    command = ("apparent", "--data", "people.csv", "--measure", "group", "--only-data", "-q")
    for options in ((), ("--rows",)):
        shown = " ".join(run(*command, *options).stdout.split())
        assert "it rests on groups of too few people to judge" in shown
