"""Does a replay convict only what comes out again and again?"""

from __future__ import annotations

import csv
import random
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import themis
from tests.clocks import Clock
from tests.projects import enter, run, write_project
from themis.engine import runner as runner_module
from themis.results.replays import Replay
from themis.show.reports.page import Topic, render_comparison
from themis.statistics.reruns import lasts_beyond_noise
from themis.subjects import base as base_module

SCHEMA = themis.Schema(sex=["f", "m"], job=["a", "b", "c"], income=range(100))
PAIRS = themis.Schema(sex=["f", "m"], income=range(1000))
Person = dict[str, Any]


def write_suite(path: Path, schema: themis.Schema, tests: Any, subject: Any) -> Path:
    """A suite of tests, each against a characteristic with the rest of a person."""
    columns = ["test", "against", "base", *schema.names, "output", "favourable", "failure"]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        for number, (against, rest) in enumerate(tests):
            for place, value in enumerate({"sex": "fm", "job": "abc"}[against]):
                person = {**rest, against: value}
                row = {"test": number + 1, "against": against, "base": str(place == 0).lower()}
                writer.writerow({**row, **person, "output": subject(person)})
    return path


def write_tests(path: Path, subject: Callable[[Person], Any] = lambda person: "no") -> Path:
    """A suite of forty tests by sex and twenty by job, with the outputs of a subject."""
    tests = [("sex", {"job": "a", "income": 5 * n // 2}) for n in range(40)]
    tests += [("job", {"sex": "f", "income": 5 * n}) for n in range(20)]
    return write_suite(path, SCHEMA, tests, subject)


def replay(path: Path, subject: Callable[[Person], Any], **options: Any) -> Replay:
    return themis.Audit(subject, SCHEMA, **options).replay(path)


def coin(draws: random.Random) -> Callable[[Person], str]:
    return lambda person: draws.choice(["yes", "no"])


def rare(draws: random.Random) -> Callable[[Person], str]:
    return lambda person: "yes" if draws.random() < 0.05 or person["income"] >= 30 else "no"


def many(draws: random.Random) -> Callable[[Person], str]:
    return lambda person: draws.choice("abcdefgh")


def unfair(draws: random.Random) -> Callable[[Person], str]:
    def decide(person: Person) -> str:
        fair = person["income"] >= (30 if person["sex"] == "f" else 60)
        return "yes" if fair != (draws.random() < 0.02) else "no"

    return decide


@pytest.mark.parametrize("subject", [coin, rare, many])
@pytest.mark.parametrize("replays", [30, pytest.param(100, marks=pytest.mark.slow)])
def test_noise_of_a_fair_subject_is_not_convicted(
    subject: Any, replays: int, tmp_path: Path
) -> None:
    path = write_tests(tmp_path / "suite.csv")
    found = [replay(path, subject(random.Random(seed))) for seed in range(replays)]
    assert sum(each.count("new", "still") > 0 for each in found) <= 0.01 * replays
    assert any(each.count("unclear") for each in found)
    assert not any(each.conclusive for each in found if each.count("unclear"))


@pytest.mark.parametrize("replays", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_an_unfair_subject_is_convicted_in_spite_of_a_little_noise(
    replays: int, tmp_path: Path
) -> None:
    path = write_tests(tmp_path / "suite.csv")
    found = [replay(path, unfair(random.Random(seed))) for seed in range(replays)]
    assert all(each.count("new") >= 3 for each in found)
    by_job = [states for each in found for states in each.sets if states.against == ("job",)]
    assert sum(each.states.get("new", 0) for each in by_job) <= 0.01 * replays


def test_numbers_with_a_little_noise_are_convicted_by_which_of_the_two_gets_more(
    tmp_path: Path,
) -> None:
    draws = random.Random(3)
    price = themis.Output(name="price", at="/price", min=0, max=1000, distance="relational")
    path = write_tests(tmp_path / "suite.csv", lambda person: 400)

    def dear(person: Person) -> dict[str, float]:
        return {"price": 400 + 50 * (person["sex"] == "f") + draws.random()}

    found = replay(path, dear, outputs=[price])
    states = {each.against: each.states for each in found.sets}
    assert states["sex",].get("new", 0) == 40
    assert states["job",].get("new", 0) == 0  # the noise itself


def test_noise_in_one_output_hides_nothing_in_another(tmp_path: Path) -> None:
    draws = random.Random(3)
    schema = themis.Schema(race=["green", "purple"], income=range(10_000))
    outputs = [
        themis.Output(name="limit", at="/limit", min=0, max=2000, distance="relational"),
        themis.Output(name="granted", at="/granted", favourable=["yes"]),
    ]

    def bank(noise: float, granted: str) -> Callable[[Person], Any]:
        return lambda person: {
            "limit": 1000 + noise * draws.gauss(0, 1),
            "granted": "yes" if person["race"] == granted else "no",
        }

    path = tmp_path / "suite.csv"
    with themis.Audit(bank(0, "green"), schema, suite=path, outputs=outputs) as audit:
        audit.causal("race", output="granted")
    found = themis.Audit(bank(1, "green"), schema, outputs=outputs).replay(path)
    assert found.count("still") == found.tests
    fair = themis.Audit(bank(1, "nobody"), schema, outputs=outputs).replay(path)
    assert fair.count("still", "new") == 0


@pytest.mark.parametrize("race", ["green", "blue", "purple"])
def test_of_numbers_those_farthest_apart_are_run_again(race: str, tmp_path: Path) -> None:
    """Of three races one gets less, and all numbers have a little noise."""
    draws = random.Random(3)
    schema = themis.Schema(race=["green", "blue", "purple"], income=range(100))
    limit = themis.Output(name="limit", at="/limit", min=0, max=5000, distance="relational")

    def less(person: Person) -> dict[str, float]:
        return {"limit": 1000 - 500 * (person["race"] == race) + draws.gauss(0, 1e-6)}

    path = tmp_path / "suite.csv"
    with themis.Audit(less, schema, suite=path, outputs=[limit]) as audit:
        audit.causal("race", error=0.001)
    found = themis.Audit(less, schema, outputs=[limit]).replay(path)
    assert (found.count("still"), found.tests) == (100, 100)
    assert found.executions <= 2 * found.inputs
    for example in found.examples:
        assert abs(example.now[0] - example.now[1]) > 499


def test_a_deterministic_subject_is_run_again_once_unless_few_tests_differ(tmp_path: Path) -> None:
    path = write_tests(tmp_path / "suite.csv")
    many = replay(path, lambda p: "no" if (p["sex"], p["job"]) == ("f", "a") else "yes")
    assert (many.conclusive, many.count("new")) == (True, 60)
    assert many.executions <= 2 * many.inputs
    one = replay(path, lambda p: "no" if (*p.values(),) == ("f", "a", 0) else "yes")
    assert (one.conclusive, one.count("new")) == (True, 2)  # by sex and by job
    assert one.executions <= one.inputs + 4 * 9


def test_failures_in_reruns_are_no_noise(tmp_path: Path) -> None:
    path, draws = write_tests(tmp_path / "suite.csv"), random.Random(1)

    def fails(person: Person) -> str:
        if draws.random() < 0.05:
            raise ValueError
        return "yes" if person["sex"] == "f" else "no"

    found = replay(path, fails, max_failures=0.3)
    assert found.count("unclear") == 0
    assert found.count("new") >= 20


def test_tests_that_fail_whenever_they_are_run_again_are_unconfirmed(tmp_path: Path) -> None:
    path, asked = write_tests(tmp_path / "suite.csv"), set()

    def once(person: Person) -> float | str:
        new = tuple(person.values()) not in asked
        asked.add(tuple(person.values()))
        return ("yes" if person["sex"] == "f" else "no") if new else float("nan")

    found = replay(path, once, max_failures=1.0)
    assert found.count("unconfirmed") == 40
    assert found.count("unclear") == 0
    assert not found.notes
    assert (found.stopped, found.conclusive) == ("done", False)


def test_one_noisy_input_of_many_tests_is_no_evidence_of_many(tmp_path: Path) -> None:
    """It is the first of some pairs and the second of others."""
    schema = themis.Schema({f"c{place}": ["a", "b"] for place in range(6)})
    path = tmp_path / "suite.csv"
    with themis.Audit(lambda person: 0, schema, suite=path) as audit:
        for name in schema.names:
            audit.causal(name)
    draws, wrong = random.Random(5), 0

    def noisy(person: Person) -> int:
        return int(tuple(person.values()) == tuple("ababab") and draws.random() < 0.45)

    for _ in range(100):
        wrong += themis.Audit(noisy, schema).replay(path).count("new") > 0
    assert wrong <= 3  # one is allowed on average; it was ten


def test_what_lasts_must_be_more_than_noise_leaves() -> None:
    """By brute force: the chance that anything counts, where each comes again with ½ at most."""
    alpha = 0.05
    for tests, chance in product((1, 2, 5, 40), (0.1, 0.4, 0.5)):
        draws = np.random.default_rng(tests)
        wrong = 0
        for _ in range(4_000):
            lasting, reruns = tests, 0
            while lasting:
                lasting, reruns = draws.binomial(lasting, chance), reruns + 1
                if lasts_beyond_noise(
                    lasting, tests, tests, reruns, alpha, all_last=lasting == tests
                ):
                    wrong += 1
                    break
        assert wrong / 4_000 <= alpha + 0.01
    assert lasts_beyond_noise(1, 1, 1, 6, alpha, all_last=True)
    assert not lasts_beyond_noise(1, 1, 1, 5, alpha, all_last=True)
    assert not lasts_beyond_noise(0, 9, 9, 99, alpha, all_last=True)


def test_a_replay_of_a_coin_is_open_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(tmp_path, monkeypatch)
    inputs = 'sex = ["f", "m"]\njob = ["a", "b", "c"]\nincome = { min = 0, max = 99 }\n'
    write_project(
        tmp_path, "return random.choice(['yes', 'no'])", inputs=inputs, head="import random"
    )
    write_tests(tmp_path / "suite.csv", coin(random.Random(1)))
    for options in ((), ("--fail-on", "new"), ("-q",), ("--json",)):
        ended = run("replay", "suite.csv", *options, "--report", "replay.html")
        assert ended.exit_code == 4, ended.output
        if options == ("--json",):
            assert '"answers-at-random"' in ended.output
        else:
            assert "None of 60 tests is known to differ" in ended.output
            assert "answer at random" in " ".join(ended.output.split())
        page = (tmp_path / "replay.html").read_text()
        assert "answer at random" in page
        assert "undecided" in page


# Too small a budget -----------------------------------------------------------------------


def write_pairs(path: Path, tests: int) -> Path:
    """A suite of so many tests by sex, which share no input and all discriminated."""
    pairs = [("sex", {"income": test}) for test in range(tests)]
    return write_suite(path, PAIRS, pairs, lambda person: person["sex"])


def by_sex(share: int) -> Any:
    """Decides by sex for this share of a hundred incomes."""
    return lambda person: int(person["sex"] == "f" and person["income"] * 37 % 100 < share)


@pytest.mark.parametrize("share", [100, 15])
def test_a_larger_budget_never_confirms_less_and_calls_nothing_noise(
    share: int, tmp_path: Path
) -> None:
    path, before = write_pairs(tmp_path / "suite.csv", 40), 0
    for most in (1, 10, 79, 80, *range(81, 170, 8), 300):
        found = themis.Audit(by_sex(share), PAIRS, max_executions=most).replay(path)
        assert found.executions <= most
        assert found.inputs == min(most, 80)
        assert found.count("unclear") == 0
        assert found.count("still") >= before
        assert (found.stopped == "budget") == bool(found.count("unconfirmed", "not run"))
        assert found.conclusive == (found.stopped == "done")
        before = found.count("still")
        for suffix in ("md", "html") if found.count("unconfirmed") else ():
            document = render_comparison(found, Path(f"replay.{suffix}"), Topic())
            assert "unconfirmed" in document
            assert ("known to differ" in document) == (before == 0)
            assert "different decisions when run again" not in document
    assert before == sum(income * 37 % 100 < share for income in range(40))


@pytest.mark.parametrize("most", [0.5, 1.0, 3.0])
def test_a_limit_of_time_holds_while_tests_are_run_and_run_again(
    most: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_pairs(tmp_path / "suite.csv", 50)
    clock = Clock.put_into(monkeypatch, runner_module, base_module)

    def decide(person: Person) -> int:
        clock.now += 0.01
        return int(person["sex"] == "f")

    started = clock.now
    found = themis.Audit(decide, PAIRS, max_seconds=most).replay(path)
    assert clock.now - started <= most + 0.02
    assert found.count("unclear") == 0
    assert (found.count("still"), found.stopped) == ((50, "done") if most > 2 else (0, "budget"))
