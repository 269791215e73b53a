"""Apparent scores: each definition equals a direct computation, and rows are as they are."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import themis
from tests import oracle
from tests.engine.test_suites import read
from tests.oracle import World
from tests.worlds import Case, cases, hash_of
from themis.errors import RowsWarning

SOME = settings(max_examples=60, derandomize=True, suppress_health_check=list(HealthCheck))


@dataclass(frozen=True)
class RowCase:
    """A world with some rows in it, as the package and as the oracle see them."""

    case: Case
    rows: list[tuple[Any, float]]

    @property
    def names(self) -> set[str]:
        return set(self.case.names)

    @property
    def columns(self) -> dict[str, list[Any]]:
        names = [v.name for v in self.case.world.variables]
        return {name: [row[i] for row, _ in self.rows] for i, name in enumerate(names)}

    @property
    def weights(self) -> list[float]:
        return [weight for _, weight in self.rows]

    def measure(self, **options: Any) -> dict[tuple[str, str], Any]:
        audit = self.case.audit(max_failures=1.0, **options)
        names, weights = self.case.names, self.weights
        result = audit.apparent(self.columns, names, weights=weights, only_data=True)
        assert result.data["used"] == len(self.rows)
        assert all(score.population == "rows" for score in result.scores)
        return {(s.measure, s.counterfactuals): s for s in result.scores}


@st.composite
def row_cases(draw: Any, *, failing: bool = False) -> RowCase:
    """Rows with copies and weights, of a world with constraints and weights of its own."""
    case = draw(cases(binned=False, most=3))
    inputs = [values for values, _ in case.world.inputs()]
    rows = draw(st.lists(st.sampled_from(inputs), min_size=1, max_size=25))
    several = [0.5, 1.0, 2.0, 3.0] if draw(st.booleans()) else [1.0]
    weights = [draw(st.sampled_from(several)) for _ in rows]
    if failing and draw(st.booleans()):
        case = _failing(case, draw(st.integers(0, 1_000)))
        if all(case.world.output(row) is oracle.FAILED for row in rows):
            reject()
    return RowCase(case, list(zip(rows, weights, strict=True)))


def _failing(case: Case, salt: int) -> Case:
    """The same world, where about a fifth of the executions fail."""

    def fails(row: dict[str, Any]) -> bool:
        noise = np.random.default_rng([salt, *(abs(hash_of(v)) for v in row.values())])
        return bool(noise.random() < 0.2)

    def decide(row: dict[str, Any]) -> Any:
        if fails(row):
            raise ValueError("no")
        return case.decide(row)

    def output(row: dict[str, Any]) -> Any:
        return oracle.FAILED if fails(row) else case.decide(row)

    old = case.world
    world = World(old.variables, old.valid, output, old.favourable)
    return replace(case, decide=decide, world=world)


@SOME
@given(row_cases(failing=True))
def test_scores_are_those_of_the_definitions_with_the_ends_that_failures_leave(
    rows: RowCase,
) -> None:
    world, found = rows.case.world, rows.measure()
    assert found["causal", "generated"].method == found["causal", "within"].method == "exact"
    for key, truth in {
        ("causal", "generated"): oracle.causal_generated(world, rows.rows, rows.names),
        ("causal", "within"): oracle.causal_within(world, rows.rows, rows.names),
        ("group", "generated"): oracle.group(world, rows.rows, rows.names),
    }.items():
        score = found[key]
        assert (score.low, score.high) == pytest.approx(truth), key
        assert score.low - 1e-9 <= score.score <= score.high + 1e-9


@SOME
@given(row_cases(), st.integers(2, 3))
def test_too_many_assignments_leave_a_lower_bound(rows: RowCase, limit: int) -> None:
    score = rows.measure(max_assignments=limit)["causal", "generated"]
    truth, _ = oracle.causal_generated(rows.case.world, rows.rows, rows.names)
    assert score.low - 1e-9 <= truth <= score.high + 1e-9


def test_degrees_of_too_many_assignments_leave_a_lower_bound() -> None:
    """Nothing that was not tried may be nearer than what was."""
    schema = themis.Schema(race=range(200), age=range(50))
    rows = [{"race": number, "age": number} for number in range(40)]
    outputs = [themis.Output(name="points", min=0, max=199, distance="relational")]
    audit = themis.Audit(
        lambda person: 199 if person["race"] == 77 else person["race"] // 20,
        schema, outputs=outputs, max_assignments=3,
    )  # fmt: skip
    score = audit.apparent(rows, "race", measures=["causal"], only_data=True).scores[0]
    assert (score.lower_bound, score.high, score.method) == (True, 1.0, "sampled")
    assert score.score < 0.1


@SOME
@given(row_cases(failing=True), st.integers(0, 100))
@pytest.mark.slow
def test_distances_and_means_of_rows_equal_a_direct_computation(rows: RowCase, salt: int) -> None:
    world = rows.case.world

    def number(values: Any) -> Any:
        if world.output(values) is oracle.FAILED:
            return oracle.FAILED
        return sum(hash_of(v) * (i + salt) for i, v in enumerate(values)) % 11

    def subject(person: dict[str, Any]) -> Any:
        output = number(tuple(person.values()))
        if output is oracle.FAILED:
            raise ValueError("no")
        return output

    points = themis.Output(name="points", min=0, max=10, distance="relational")
    case = replace(rows.case, decide=subject, world=replace(world, favourable=()))
    found = RowCase(case, rows.rows).measure(outputs=[points])
    assert found["group", "generated"].statistic == "mean"
    for key, truth in {
        ("causal", "generated"): oracle.distance(
            world, rows.rows, rows.names, number, within=False
        ),
        ("causal", "within"): oracle.distance(world, rows.rows, rows.names, number, within=True),
        ("group", "generated"): oracle.means(world, rows.rows, rows.names, number),
    }.items():
        score = found[key]
        assert score.output == "points"
        assert (score.low, score.high) == pytest.approx(truth)
        assert score.low - 1e-9 <= score.score <= score.high + 1e-9


def test_all_outputs_of_a_subject_are_measured_on_the_rows_from_the_same_executions() -> None:
    schema = themis.Schema(race=["green", "purple"], income=themis.Integers(0, 99))
    calls: list[Any] = []

    def bank(person: dict[str, Any]) -> dict[str, Any]:
        calls.append(tuple(person.values()))
        green = person["race"] == "green"
        return {"granted": person["income"] >= 30, "limit": person["income"] + 10 * green}

    outputs = [
        themis.Output(name="granted", at="/granted", favourable=[True]),
        themis.Output(name="limit", at="/limit", min=0, max=200, distance="relational"),
    ]
    rows = [{"race": "green", "income": 20}, {"race": "purple", "income": 50}]
    result = themis.Audit(bank, schema, outputs=outputs).apparent(rows, "race", only_data=True)
    found = {(s.output, s.measure, s.counterfactuals): s.score for s in result.scores}
    assert found == {
        ("granted", "causal", "generated"): 0,
        ("granted", "causal", "within"): 0,
        ("granted", "group", "generated"): 1,
        ("limit", "causal", "generated"): pytest.approx(0.05),
        ("limit", "causal", "within"): 0,
        ("limit", "group", "generated"): pytest.approx(0.1),
    }
    assert result.spent.sampling == 4
    assert len(calls) == result.executions
    only = themis.Audit(bank, schema, outputs=outputs).apparent(rows, "race", output="limit")
    assert {score.output for score in only.scores} == {"limit"}


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_over_members_hold_as_often_as_stated_though_people_differ(
    weighted: bool,
) -> None:
    schema = themis.Schema(
        age=themis.Integers(0, 99, bins=[50]), need=themis.Integers(0, 10**8), name=range(60)
    )
    rng = np.random.default_rng(2)
    data = {"age": [10] * 60, "need": rng.integers(50, 150, 60), "name": range(60)}
    weights = rng.integers(1, 4, 60) if weighted else np.ones(60)
    old_enough = themis.batch(lambda table: table["age"] >= table["need"])
    asked: Any = {"measures": ["causal"], "counterfactuals": "generated", "only_data": True}

    chances = np.clip(100 - data["need"], 0, 50) / 50  # that a random member of 50 to 99 gets it
    truth = float((chances * weights).sum() / weights.sum())
    missed = 0
    for seed in range(60):
        audit = themis.Audit(old_enough, schema, seed=seed, confidence=0.8)
        (score,) = audit.apparent(data, "age", weights=weights, **asked).scores
        missed += not score.low <= truth <= score.high
        assert score.high - score.low < 0.5
    assert missed <= 20  # 12 expected at most; more than 20 of 60 at 0.2 has probability 0.005


# A larger table ---------------------------------------------------------------------------
SCHEMA = themis.Schema(
    race=["green", "purple", "blue"],
    sex=["female", "male"],
    age=themis.Integers(18, 90),
    income=themis.Integers(0, 200_000, step=100),
)


def people(count: int, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "race": rng.choice(["green", "purple", "blue"], count, p=[0.6, 0.3, 0.1]),
        "sex": rng.choice(["female", "male"], count),
        "age": rng.integers(18, 91, count),
        "income": 100 * rng.integers(0, 2_001, count),
    }


def decide(table: Any) -> Any:
    """Green people need less."""
    return table["income"] + np.where(table["race"] == "green", 20_000, 0) > 80_000


def test_fifty_thousand_rows_take_no_call_per_row() -> None:
    calls: list[int] = []

    def counting(table: Any) -> Any:
        calls.append(len(table["income"]))
        return decide(table)

    data = people(50_000)
    audit = themis.Audit(themis.batch(counting), SCHEMA, seed=1)
    result = audit.apparent(data, ["race"], only_data=True)
    near = (data["income"] > 60_000) & (data["income"] <= 80_000)
    assert result.scores[0].score == pytest.approx(near.mean())
    assert result.executions == sum(calls)
    assert result.spent.sampling <= 3 * result.data["distinct"]
    assert len(calls) < 70  # 30 of them look whether answers depend on the others of a call


def test_neither_copies_nor_other_sets_run_again_what_was_run_even_in_a_huge_domain() -> None:
    schema = themis.Schema(
        {"race": ["green", "purple"], "sex": ["f", "m"]}
        | {f"x{i}": themis.Integers(0, 10**9) for i in range(4)}
    )
    rng = np.random.default_rng(0)
    copies = np.repeat(np.arange(40), 1 + np.arange(40) % 3)
    data = {f"x{i}": rng.integers(0, 10**9, 40)[copies] for i in range(4)}
    data |= {"race": np.full(len(copies), "green"), "sex": np.array(["f", "m"] * 20)[copies]}

    def loan(person: Any) -> bool:
        return bool(person["x0"] % 7 > (2 if person["race"] == "green" else 3))

    audit = themis.Audit(loan, schema)
    sets = [["race"], ["sex"], ["race", "sex"]]
    result = audit.apparent(data, sets, only_data=True, measures=["causal"])
    flipping = data["x0"] % 7 == 3
    assert result.scores[0].score == pytest.approx(flipping.mean())
    assert 160 - 2 * len(set(copies[flipping])) <= result.spent.sampling <= 160


def test_a_budget_that_ends_leaves_ends_that_hold_and_an_inconclusive_score() -> None:
    data = people(200)
    audit = themis.Audit(themis.batch(decide), SCHEMA)
    whole = audit.apparent(data, "race", only_data=True)
    for budget in (50, 250):
        short = themis.Audit(themis.batch(decide), SCHEMA, max_executions=budget)
        result = short.apparent(data, "race", only_data=True)
        assert result.executions <= budget
        assert result.stopped == "budget"
        for score, truth in zip(result.scores, whole.scores, strict=True):
            assert score.low <= truth.score <= score.high
        assert result.scores[0].low < result.scores[0].high


def test_small_groups_are_marked_and_whole_number_weights_count_people() -> None:
    data = people(400)
    data["race"] = np.where(np.arange(400) % 2, "green", "purple")
    data["race"][:5] = "blue"
    audit = themis.Audit(themis.batch(decide), SCHEMA)
    for weights, few in ((None, ["blue"]), ([10] * 400, [])):
        asked: Any = {"measures": ["group"], "only_data": True, "weights": weights}
        groups = audit.apparent(data, "race", **asked).scores[0].groups
        assert [each.values["race"] for each in groups if each.few] == few


def test_drawing_from_the_rows_gives_intervals_that_hold_the_exact_scores() -> None:
    data = people(20_000)
    audit = themis.Audit(themis.batch(decide), SCHEMA, confidence=0.99)
    exact = audit.apparent(data, "race", only_data=True, counterfactuals="generated").scores
    drawn = audit.apparent(data, "race", only_data=True, draw=True).scores
    for truth, score in zip(exact, drawn, strict=True):
        assert score.population == "rows"
        assert score.method == "sampled"
        assert score.samples < 5_000
        assert score.low <= truth.score <= score.high


def test_the_same_seed_gives_the_same_scores_and_order_of_rows_does_not_matter() -> None:
    data = people(300)
    shuffled = {name: column[::-1] for name, column in data.items()}
    first, again, other = (
        themis.Audit(themis.batch(decide), SCHEMA, seed=3).apparent(rows, "race,sex").to_dict()
        for rows in (data, data, shuffled)
    )
    first["timing"] = again["timing"] = {}
    assert first == again
    numbers = [[s["score"] for s in each["scores"]] for each in (first, other)]
    assert numbers[0] == pytest.approx(numbers[1])


@pytest.mark.parametrize("output", [0.1, 3.0, 0.7])
@pytest.mark.parametrize("counts", [(172, 228), (7, 11)])
def test_the_last_digits_of_a_sum_are_no_difference(output: float, counts: tuple[int, int]) -> None:
    schema = themis.Schema(sex=["f", "m"], age=range(20, 50))
    ages = 20 + np.arange(sum(counts)) % 30
    rows = {"sex": np.repeat(["f", "m"], counts), "age": ages}
    outputs = [themis.Output(name="limit", min=0, max=10)]
    audit = themis.Audit(lambda _: output, schema, outputs=outputs)
    score = audit.apparent(rows, "sex", measures=["group"], only_data=True).scores[0]
    assert (score.score, score.low, score.high) == (0.0, 0.0, 0.0)
    score.assert_below(0.0)


# Rows with values that the schema does not have: their own value, and nobody else's -----------


NAMES = ("race", "age", "rate")
GRID = themis.Schema(
    race=["green", "blue"],
    age=themis.Integers(20, 26, step=2),
    rate=themis.Reals(0, 1, step=0.5, missing=0.1),
)


def at_random(row: dict[str, Any]) -> int:
    return random.Random(repr(sorted(row.items(), key=str))).choice((0, 0, 1))


def odd_rows(seed: int) -> list[tuple[Any, ...]]:
    """Rows of the grid, and others: red and old ones, fractions, ones without a rate."""
    chance = random.Random(seed)
    races, ages = ["green", "blue", "red", "grey"], [20, 22, 24, 26, 23, 25.5, 40]
    rates = [0.0, 0.5, 1.0, 0.25, None, 7.5]
    return [(chance.choice(races), chance.choice(ages), chance.choice(rates)) for _ in range(30)]


def named(rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(NAMES, row, strict=True)) for row in rows]


@pytest.mark.parametrize("bins", [None, [24]])
@pytest.mark.parametrize("names", [("age",), ("race", "age"), ("rate",)])
def test_scores_of_all_inputs_do_not_depend_on_given_rows(
    bins: Any, names: tuple[str, ...]
) -> None:
    schema = themis.Schema(
        race=["green", "blue"],
        age=themis.Integers(20, 26, step=2, bins=bins),
        rate=themis.Reals(0, 1, step=0.5, missing=0.1),
    )
    audit, alone = (themis.Audit(at_random, schema, deterministic=True) for _ in range(2))
    found = audit.apparent(named(odd_rows(2)), against=[names]).scores
    for score in (each for each in found if each.population == "inputs"):
        own = getattr(alone, score.measure)(*names)
        assert (score.score, score.low, score.high) == (own.score, own.low, own.high)


@pytest.mark.some_slow(core=3)
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_suite_holds_the_rows_as_they_are(suffix: str, tmp_path: Path) -> None:
    path, rows = tmp_path / f"suite{suffix}", odd_rows(3)
    given = {"profile": named(rows), "suite": path, "show_rows": True}
    with themis.Audit(at_random, GRID, **given, deterministic=True) as audit:
        audit.search(threshold=0.3)

    def plain(row: Any) -> tuple[Any, ...]:
        return row[0], float(row[1]), None if row[2] in ("", None) else float(row[2])

    written = {plain([row[name] for name in NAMES]) for row in read(path)}
    assert {plain(row) for row in rows} <= written
    again = themis.Audit(at_random, GRID, profile=named(rows)).replay(path)
    assert (again.changed, list(again.unknown_rows)) == (0, [])


def test_a_cache_knows_the_rows_by_their_values(tmp_path: Path) -> None:
    shell = 'test "$1" = red && echo 1 || echo 0'
    (tmp_path / "themis.toml").write_text(
        'version = 1\n[subject]\nkind = "command"\ndeterministic = true\n'
        f"command = ['sh', '-c', '{shell}', 'at_random']\n[inputs]\nrace = ['green', 'blue']\n"
    )
    found = []
    for race in ("red", "grey", "red"):
        with themis.Audit.from_file(tmp_path / "themis.toml") as audit:
            result = audit.apparent([{"race": race}], against=["race"], only_data=True)
            found.append(result.scores[0].score)
    assert found == [1.0, 0.0, 1.0]


def test_nobody_else_gets_the_value_of_a_row() -> None:
    seen: list[dict[str, Any]] = []

    def watched(row: dict[str, Any]) -> int:
        seen.append(row)
        return at_random(row)

    rows = [("red", 20, 0.0), ("green", 23, 0.5)]
    result = themis.Audit(watched, GRID).apparent(named(rows), against=[NAMES], only_data=True)
    assert not any(row["race"] == "red" and row["age"] == 23 for row in seen)
    assert any(row == {"race": "red", "age": 26, "rate": 1.0} for row in seen)
    assert {note.code for note in result.notes} >= {"values-kept", "values-between-steps"}


def test_what_still_does_not_fit_is_a_warning_and_a_note_on_every_score() -> None:
    rows = [*named(odd_rows(1)), {"race": "green", "age": "old", "rate": 0.5}]
    audit = themis.Audit(at_random, GRID)
    with pytest.warns(RowsWarning, match="1 of 31 rows"):
        result = audit.apparent(rows, against=["race"])
    for score in result.scores:
        codes = [note.code for note in score.notes]
        assert ("rows-left-out" in codes) == (score.population == "rows")
    with pytest.warns(RowsWarning, match="1 of 31 rows"):
        profile = themis.Audit(at_random, GRID, profile=rows)
    assert "rows-left-out" in [note.code for note in profile.causal("race").notes]
