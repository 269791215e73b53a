"""Does `themis apparent` measure the people in a file, say who does not fit, and what it cost?"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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


def measured(*arguments: str) -> dict[str, Any]:
    done = run("apparent", "--data", "people.csv", "--unknown", "drop", "--json", *arguments)
    assert done.exit_code == 0, done.output
    data: dict[str, Any] = json.loads(done.stdout)
    return data


def scores(data: dict[str, Any]) -> dict[tuple[str, str, str], float]:
    return {
        (
            each["measure"],
            each.get("population", "inputs"),
            each.get("counterfactuals", "generated"),
        ): each["score"]
        for each in data["scores"]
    }


def test_people_are_compared_by_columns_that_the_schema_lacks(
    project: Project, tmp_path: Path
) -> None:
    project()
    region = ["north", "south", "south", "south", "south", "north"]
    lines = [f"{line},{name}" for line, name in zip(ROWS.split(), ["region", *region], strict=True)]
    (tmp_path / "people.csv").write_text("\n".join(lines), encoding="utf-8")
    found = measured("--against", "region", "--against", "race,region", "--weights", "count")
    alone, both = (
        [each for each in found["scores"] if each["against"] == names]
        for names in (["region"], ["race", "region"])
    )
    assert [(each["measure"], each["population"]) for each in alone] == [
        ("causal", "rows"),
        ("group", "rows"),
    ]
    rates = {each["values"]["region"]: each["rate"] for each in alone[1]["groups"]}
    assert rates == {"north": 1, "south": pytest.approx(5 / 8)}  # of 1 + 5 + 2 that fit, 5
    assert {each["population"] for each in both} == {"rows", "inputs"}
    wrong = run("apparent", "--data", "people.csv", "--against", "regoin")
    assert wrong.exit_code == 2
    assert "no column of this name in the rows; did you mean 'region'?" in " ".join(
        wrong.output.split()
    )


def test_rows_and_all_inputs_are_measured_and_said_to_differ(project: Project) -> None:
    project()
    found = scores(measured())
    assert found["causal", "rows", "generated"] == 0.5
    assert found["causal", "rows", "within"] == 0.5
    assert found["group", "rows", "generated"] == 1
    assert found["causal", "inputs", "generated"] == pytest.approx(0.3)
    assert found["group", "inputs", "generated"] == pytest.approx(0.3)
    shown = run("apparent", "--data", "people.csv", "--unknown", "drop", "-v").stdout
    shown = " ".join(shown.split())
    assert shown.startswith("The decision changes with race (for 50.0 % of the people in the rows)")
    assert "people.csv: 6 rows, 2 do not fit, 4 used" in shown
    assert "causal, in the rows" in shown
    assert "race: unknown value (1, e.g. line 6)" in shown
    assert "income: out of range (1, e.g. line 7)" in shown


def test_weights_count_people(project: Project) -> None:
    project()
    data = measured("--weights", "count", "--only-data")
    assert scores(data) == {
        ("causal", "rows", "generated"): 0.3,
        ("causal", "rows", "within"): 0.3,
        ("group", "rows", "generated"): 1.0,
    }
    assert data["data"]["weights"] == "count"
    assert data["data"]["ignored"] == ["id"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "--data: there are no rows to measure"),
        (("--data", "no.csv"), "no.csv: there is no such file"),
        (("--data", "people.csv", "--weights", "Count"), "did you mean 'count'?"),
        (("--data", "people.csv", "--against", "rase"), "did you mean 'race'?"),
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
    profile = '[profile]\ndata = "people.csv"\nweights = "count"\nunknown = "drop"\n'
    project(extra=profile)
    done = run("score", "--json", "--against", "race")
    found = scores(json.loads(done.stdout))
    assert found == {("causal", "profile", "generated"): 0.3, ("group", "profile", "generated"): 1}
    rows = json.loads(run("apparent", "--json", "--only-data").stdout)
    assert scores(rows)["causal", "rows", "generated"] == 0.3
    assert "drawn from" in run("validate").stdout
    searched = json.loads(run("search", "--threshold", "0.2", "--json").stdout)
    assert searched["scores"][0]["population"] == "profile"


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
    (tmp_path / "loan.py").write_text(
        "import sys\nrace, sex, income = sys.argv[1:]\n"
        "open('runs', 'a').write('x')\nprint(int(int(income) >= (30 if race == 'green' else 60)))\n"
    )
    (tmp_path / "themis.toml").write_text(
        f'version = 1\n[subject]\nkind = "command"\ncommand = [{sys.executable!r}, "loan.py"]\n'
        f"[inputs]\n{INPUTS}"
    )
    first = measured("--only-data")
    runs = len((tmp_path / "runs").read_text())
    assert first["account"]["sampling"] == 6  # three contexts, each green and purple
    assert runs == first["executions"]
    again = measured("--only-data")
    assert again["executions"] == 0
    assert len((tmp_path / "runs").read_text()) == runs
    assert scores(first) == scores(again)


def test_a_table_in_the_place_of_the_file_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "people.csv").write_text("race,sex\ngreen,f\n")
    enter(tmp_path, monkeypatch)
    result = run("apparent", "people.csv")
    assert result.exit_code == 2
    assert "it is a table, not a themis.toml" in result.output
    assert "--data people.csv" in result.output


def test_known_outcomes_and_proxies_stand_beside_the_scores(project: Project) -> None:
    project()
    Path("known.csv").write_text(OUTCOMES, encoding="utf-8")
    arguments = ("apparent", "--data", "known.csv", "--only-data", "-v")
    plain, done = run(*arguments), run(*arguments, "--label", "repaid", "--proxies")
    assert (plain.exit_code, done.exit_code) == (0, 0)
    known = "Outcomes known from repaid: 1 as favourable, 1 rare outcome not. 1 of 6 people have"
    assert known in " ".join(done.stdout.split())
    assert "What may stand in for race" in done.stdout
    first = plain.stdout.splitlines()[0]
    assert done.stdout.splitlines()[0] == first  # the verdict is the same
    reports = run("apparent", "--data", "known.csv", "--only-data", "--label", "repaid", "--json")
    table = json.loads(reports.stdout)["outcomes"][0]
    green = table["groups"][0]
    assert (green["values"], green["true_positive_rate"]["of"]) == ({"race": "green"}, 2)


SOME_UNKNOWN = """\
race,sex,income
green,f,40
green,m,80
purple,f,40
blue,m,70
"""


@pytest.mark.parametrize(("unknown", "used"), [(None, 4), ("keep", 4), ("drop", 3)])
def test_unknown_is_heeded_for_the_rows_of_the_profile(
    project: Project, unknown: str | None, used: int
) -> None:
    project(extra='[profile]\ndata = "some.csv"\n')
    Path("some.csv").write_text(SOME_UNKNOWN, encoding="utf-8")
    options = [] if unknown is None else ["--unknown", unknown]
    profile = run("apparent", "--only-data", "--json", *options)
    assert profile.exit_code == 0, profile.output
    given = run("apparent", "--data", "some.csv", "--only-data", "--json", *options)
    first, second = (json.loads(each.stdout) for each in (profile, given))
    assert first["data"]["used"] == used
    for each in (first, second):
        assert "blue" not in each["schema"]["inputs"]["race"]["values"]
    scores = [[(s["measure"], s["score"]) for s in each["scores"]] for each in (first, second)]
    assert scores[0] == scores[1]


def test_small_groups_are_never_presented_as_fair(project: Project) -> None:
    project(body="return 1")
    command = ("apparent", "--data", "people.csv", "--measure", "group", "--only-data", "-q")
    for options in ((), ("--rows",)):
        shown = " ".join(run(*command, *options).stdout.split())
        assert "it rests on groups of too few people to judge" in shown


def test_known_outcomes_of_the_profile_need_no_data(project: Project) -> None:
    project(extra='[profile]\ndata = "known.csv"\n')
    Path("known.csv").write_text(OUTCOMES, encoding="utf-8")
    done = run("apparent", "--only-data", "--label", "repaid", "--json")
    assert done.exit_code == 0, done.output
    given = run("apparent", "--data", "known.csv", "--only-data", "--label", "repaid", "--json")
    assert json.loads(done.stdout)["outcomes"] == json.loads(given.stdout)["outcomes"]
