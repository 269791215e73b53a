"""Does a baseline excuse nothing that was not measured now, and a diff claim nothing of it?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.projects import enter, run, write_project

INPUTS = 'sex = { values = ["f", "m"], protected = true }\nincome = { min = 0, max = 99 }\n'
LESS = "favoured = person['income'] >= (30 + {gap} * (person['sex'] == 'f'))\n"
BEFORE = LESS.format(gap=15) + "return int(favoured)"
WORSE = LESS.format(gap=60)
COUNT = "import itertools\ncalls = decide.__dict__.setdefault('calls', itertools.count())\n"
NOW = {
    "another name": WORSE + "return 'granted' if favoured else 0",
    "failures": WORSE + "if person['income'] % 4: raise ValueError('no')\nreturn int(favoured)",
    "noise": COUNT + WORSE + "return int(favoured) if next(calls) % 4 else 1",
}


def check_of(measure: str, *limits: float) -> str:
    return "".join(
        f'[[checks]]\nagainst = ["sex"]\nmeasure = "{measure}"\nmax_score = {limit}\n'
        for limit in limits
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter(tmp_path, monkeypatch)
    return tmp_path


def project(folder: Path, body: str, *checks: str, inputs: str = INPUTS, more: str = "") -> None:
    allowed = f"max_failures = 0.9\n{more}"
    write_project(folder, body, inputs=inputs, subject=allowed, extra="".join(checks))


@pytest.mark.parametrize(
    ("now", "measure"),
    [("another name", "group"), ("failures", "group"), ("failures", "causal"), ("noise", "causal")],
)
def test_what_can_not_be_measured_now_is_not_excused(folder: Path, now: str, measure: str) -> None:
    project(folder, BEFORE, check_of(measure, 0.2))
    run("check", "-o", "before.json")
    project(folder, NOW[now], check_of(measure, 0.2))
    alone = run("check", "-o", "after.json")
    beside = run("check", "--baseline", "before.json")
    assert alone.exit_code in (1, 4), alone.output
    assert beside.exit_code == alone.exit_code, beside.output
    assert "not new" not in beside.output
    compared = run("diff", "before.json", "after.json")
    assert compared.exit_code in (1, 4), compared.output


def test_a_name_that_is_no_longer_favourable_is_no_improvement(folder: Path) -> None:
    project(folder, BEFORE, check_of("group", 0.2))
    run("score", "--measure", "group", "-o", "before.json")
    project(folder, NOW["another name"])
    run("score", "--measure", "group", "-o", "after.json")
    for pair in (("before.json", "after.json"), ("after.json", "before.json")):
        done = run("diff", *pair)
        assert done.exit_code == 4, done.output
        assert "fallen" not in done.output
        assert "risen" not in done.output
        assert "never came" in " ".join(done.output.split())


WIDE = 'sex = { values = ["f", "m"], protected = true }\nincome = { min = 0, max = 99999 }\n'


def test_each_check_is_held_against_its_own_in_the_baseline(folder: Path) -> None:
    def body(gap: int) -> str:
        return f"return int(person['income'] >= (30000 + {gap} * (person['sex'] == 'f')))"

    checks = check_of("causal", 0.005, 0.09)
    project(folder, body(7000), checks, inputs=WIDE)
    run("check", "-o", "before.json")
    project(folder, body(11500), checks, inputs=WIDE)
    done = run("check", "--baseline", "before.json", "-o", "after.json")
    states = [each.get("baseline") for each in json.loads(Path("after.json").read_text())["checks"]]
    assert states[-1] == "new", done.output
    assert done.exit_code == 1


def test_people_and_generated_inputs_are_not_one_search(folder: Path) -> None:
    inputs = INPUTS + 'zip = ["a", "b"]\n'
    body = (
        "return int(person['income'] >= 50 + 40 * (person['sex'] == 'f') * (person['zip'] == 'b'))"
    )
    project(folder, body, inputs=inputs)
    run("search", "--threshold", "0.01", "-o", "before.json")
    rows = [f"{'fm'[n % 2]},{n % 100},{'ab'[n == 7]}" for n in range(400)]
    (folder / "people.csv").write_text("\n".join(["sex,income,zip", *rows]) + "\n")
    project(folder, body, '[profile]\ndata = "people.csv"\n', inputs=inputs)
    run("search", "--threshold", "0.01", "-o", "after.json")
    for pair in (("before.json", "after.json"), ("after.json", "before.json")):
        done = run("diff", *pair)
        assert done.exit_code == 4, done.output
        assert "A difference has grown" not in done.output
