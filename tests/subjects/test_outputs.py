"""Are outputs beyond yes and no measured as defined? Numbers, rankings, several at once."""

from __future__ import annotations

import itertools
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import themis
from themis.errors import RequestError, SubjectError
from themis.results.saved import result_from_dict
from themis.subjects.outputs import ranking_distance

DISTANCES: dict[str, Any] = {
    "exact": ({}, lambda a, b: float(a != b)),
    "threshold": ({"tolerance": 2}, lambda a, b: float(abs(a - b) > 2)),
    "relational": ({}, lambda a, b: abs(a - b) / 10),
    "function": ({"distance": lambda a, b: (a - b) ** 2 / 100}, lambda a, b: (a - b) ** 2 / 100),
}

SIZES = (2, 3, 4)


@st.composite
def numbers_by_input(draw: Any) -> dict[tuple[int, ...], int]:
    cells = list(itertools.product(*(range(size) for size in SIZES)))
    values = draw(st.lists(st.integers(0, 10), min_size=len(cells), max_size=len(cells)))
    return dict(zip(cells, values, strict=True))


def small_schema(valid: bool = False) -> themis.Schema:
    schema = themis.Schema(a=range(2), b=themis.Values([0, 1, 2], weights=[1, 2, 3]), c=range(4))
    return schema.where("not (a == 1 and c == 3)") if valid else schema


def definition(
    table: dict[tuple[int, ...], float], against: tuple[int, ...], distance: Any, constrained: bool
) -> tuple[float, float]:
    """Causal and mean-group score by brute force: expected largest distance from one's own."""
    weights = {
        row: float(row[1] + 1) for row in table if not (constrained and row[0] == 1 and row[2] == 3)
    }
    total = sum(weights.values())
    causal = 0.0
    means: dict[tuple[int, ...], list[float]] = {}
    for row, weight in weights.items():
        others = [
            other
            for other in weights
            if all(other[k] == row[k] for k in range(3) if k not in against)
        ]
        causal += weight * max(distance(table[row], table[other]) for other in others)
        group = means.setdefault(tuple(row[k] for k in against), [0.0, 0.0])
        group[0] += weight * table[row] / 10
        group[1] += weight
    rates = [value / weight for value, weight in means.values()]
    return causal / total, max(rates) - min(rates)


@settings(max_examples=60)
@given(
    table=numbers_by_input(),
    name=st.sampled_from(sorted(DISTANCES)),
    against=st.sampled_from([(0,), (1,), (0, 2), (0, 1, 2)]),
    constrained=st.booleans(),
)
@pytest.mark.slow
def test_exact_scores_of_numbers_are_the_definitions(
    table: dict[tuple[int, ...], int], name: str, against: tuple[int, ...], constrained: bool
) -> None:
    options, distance = DISTANCES[name]
    output = themis.Output(**{"min": 0, "max": 10, "distance": name, **options})
    audit = themis.Audit(
        lambda p: table[p["a"], p["b"], p["c"]], small_schema(constrained), outputs=output
    )
    names = ["abc"[k] for k in against]
    causal, spread = definition(table, against, distance, constrained)
    score = audit.causal(*names)
    assert score.method == "exact"
    assert score.score == pytest.approx(causal)
    assert score.distance.split()[0] in (name, "<lambda>")
    group = audit.group(*names)
    assert group.statistic == "mean"
    assert group.score == pytest.approx(spread)
    assert group.impact_ratio is None


LARGE = themis.Schema(
    race=["green", "purple"], sex=["f", "m"], income=range(1_000), savings=range(1_000)
)


FEW = themis.Schema(race=["green", "purple"], savings=range(10))


def graded(table: Any) -> Any:
    """Limits between 0 and 4: 1 more for one race, and up to 1 more for one sex."""
    return (
        table["income"] / 500
        + (table["race"] == "green")
        + (table["sex"] == "m") * table["savings"] / 1_000
    )


@pytest.mark.parametrize(
    ("options", "race", "sex"),
    [
        ({"distance": "relational"}, 1 / 4, 0.5 / 4),
        ({"distance": "threshold", "tolerance": 0.4}, 1.0, 0.6),
        ({"distance": lambda a, b: abs(a - b) / 4}, 1 / 4, 0.5 / 4),
    ],
)
@pytest.mark.slow
def test_sampled_intervals_of_distances_hold_the_truth(
    options: dict[str, Any], race: float, sex: float
) -> None:
    output = themis.Output(min=0, max=4, **options)
    missed = Counter[str]()
    for seed in range(40):
        audit = themis.Audit(themis.batch(graded), LARGE, outputs=output, seed=seed)
        for name, truth, mean in (("race", race, 1 / 4), ("sex", sex, 0.4995 / 4)):
            score = audit.causal(name, confidence=0.9, error=0.1)
            assert score.method == "sampled"
            missed["causal"] += not score.low - 1e-3 <= truth <= score.high + 1e-3
            group = audit.group(name, confidence=0.9, error=0.1)
            missed["group"] += not group.low <= mean <= group.high
    # 80 intervals each at 90 %: more than 17 misses have a chance below 0.1 %.
    assert max(missed.values()) <= 17


def test_a_wrong_scale_would_be_noticed() -> None:
    output = themis.Output(min=0, max=8, distance="relational")
    audit = themis.Audit(themis.batch(graded), LARGE, outputs=output)
    score = audit.causal("race", error=0.05)
    assert score.high < 1 / 4
    assert score.low <= 1 / 8 <= score.high


def test_several_outputs_are_read_off_the_same_executions() -> None:
    calls = []

    def decide(table: Any) -> dict[str, Any]:
        calls.append(len(table))
        limit = graded(table)
        return {"limit": limit, "granted": limit > 2}

    outputs = [
        themis.Output(name="limit", at="limit", min=0, max=4, cut=1, distance="relational"),
        themis.Output(name="granted", at="granted"),
    ]
    audit = themis.Audit(themis.batch(decide), LARGE, outputs=outputs, seed=1)
    result = audit.score([["race"]])
    told = [f"{each.measure} {each.output} {each.statistic}" for each in result.scores[1:3]]
    assert told == ["group limit mean", "group limit rate"]
    told = [f"{each.measure} {each.output}" for each in result.scores]
    assert told[:1] + told[3:] == ["causal limit", "causal granted", "group granted"]
    assert result.executions == sum(calls)
    alone = [
        themis.Audit(themis.batch(decide), LARGE, outputs=each, seed=1).score([["race"]])
        for each in outputs
    ]
    assert result.executions < sum(each.executions for each in alone)
    apart = [each for single in alone for each in single.scores]
    assert [(each.score, each.low, each.high) for each in result.scores] == [
        (each.score, each.low, each.high) for each in apart
    ]
    again = result_from_dict(json.loads(json.dumps(result.to_dict())))
    assert again.to_dict() == result.to_dict()
    assert audit.causal("race", output="granted").output == "granted"
    assert audit.group("race", output="limit", statistic="rate").statistic == "rate"


@pytest.mark.parametrize("shape", ["frame", "array", "rows"])
def test_answers_come_as_frames_arrays_and_dictionaries(shape: str) -> None:
    pandas = pytest.importorskip("pandas")

    def decide(table: Any) -> Any:
        limit = graded(table)
        if shape == "frame":
            return pandas.DataFrame({"limit": limit, "granted": limit > 2})
        return np.stack([limit, limit > 2], axis=1)

    def decide_one(person: dict[str, Any]) -> Any:
        limit = graded({name: np.array(value) for name, value in person.items()}).item()
        return {"granted": [limit > 2], "limit": limit}

    places = {"frame": ("limit", "granted"), "array": (0, 1), "rows": ("/limit", "/granted/0")}
    limit, granted = places[shape]
    outputs = [
        themis.Output(name="limit", at=limit, min=0, max=4, distance="relational"),
        themis.Output(name="granted", at=granted),
    ]
    subject = decide_one if shape == "rows" else themis.batch(decide)
    audit = themis.Audit(subject, LARGE, outputs=outputs)
    assert audit.causal("race", output="limit").low <= 0.25 <= audit.causal("race").high
    assert audit.causal("race", output="granted").score > 0.2


def test_a_ranking_is_compared_by_its_order() -> None:
    def hotels(person: dict[str, Any]) -> list[str]:
        names = ["Ibis", "Mercure", "Ritz"]
        return names[::-1] if person["computer"] == "apple" and person["nights"] > 5 else names

    schema = themis.Schema(computer=["apple", "other"], nights=range(1, 11))
    audit = themis.Audit(hotels, schema, outputs=themis.Output(distance="ranking"))
    score = audit.causal("computer")
    assert score.score == pytest.approx(0.5)
    assert score.witnesses[0].outputs[0][1] == "Mercure"
    with pytest.raises(RequestError, match="favourable"):
        audit.group("computer")
    assert [each.measure for each in audit.score([["computer"]]).scores] == ["causal"]


@given(st.permutations(range(5)), st.permutations(range(5)))
@settings(max_examples=50)
def test_the_distance_of_full_rankings_is_kendalls(one: list[int], two: list[int]) -> None:
    apart = sum(
        (one.index(i) < one.index(j)) != (two.index(i) < two.index(j))
        for i, j in itertools.combinations(range(5), 2)
    )
    assert ranking_distance(one, two) == pytest.approx(apart / 10)


def test_a_search_finds_the_sets_that_change_a_number_much() -> None:
    output = themis.Output(min=0, max=4, distance="threshold", tolerance=0.4)
    audit = themis.Audit(themis.batch(graded), LARGE, outputs=output)
    found = audit.search(0.5, among=["race", "sex"])
    assert found.found == (("race",), ("sex",))
    assert audit.search(0.75, among=["race", "sex"]).found == (("race",),)
    groups = audit.search(0.2, "group", among=["race", "sex"])
    assert groups.found == (("race",),)


@pytest.mark.parametrize("kind", ["worker", "command"])
@pytest.mark.slow
def test_outside_programs_answer_with_several_outputs(tmp_path: Path, kind: str) -> None:
    limit = "p['savings'] * 5.0 + (50 if p['race'] == 'green' else 0)"
    answer = f"{{'out': {{'limit': {limit}}}, 'granted': p['savings'] > 10, 'id': id(p)}}"
    code = f"import json, sys\np = json.load(sys.stdin)\nprint(json.dumps({answer}))\n"
    if kind == "worker":
        code = f"import themis.worker\nthemis.worker.serve(lambda p: {answer})\n"
    (tmp_path / "loan.py").write_text(code)
    arguments = 'arguments = "json"\n' if kind == "command" else ""
    (tmp_path / "themis.toml").write_text(
        f'version = 1\n[subject]\nkind = "{kind}"\n{arguments}'
        f'command = ["{sys.executable}", "loan.py"]\n'
        '[inputs]\nrace = ["green", "purple"]\nsavings = { min = 0, max = 20 }\n'
        '[outputs.limit]\nat = "/out/limit"\nmin = 0\nmax = 200\ndistance = "relational"\n'
        '[outputs.granted]\nat = "/granted"\n'
    )
    results = []
    for _ in range(2):
        with themis.Audit.from_file(tmp_path / "themis.toml") as audit:
            results.append(audit.score([["race"]]))
    for result, executions in zip(results, (42, 0), strict=True):
        scores = {(each.measure, each.output): each.score for each in result.scores}
        assert scores["causal", "limit"] == pytest.approx(0.25)
        assert scores["group", "limit"] == pytest.approx(0.25)
        assert scores["causal", "granted"] == 0
        assert result.spent.sampling == executions


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"limt": 3}, "nothing at '/limit'"),
        ({"limit": 9}, "not between min = 0 and max = 5"),
        ({"limit": "much"}, "not a number"),
        ("no", "nothing at '/limit'"),
    ],
)
def test_answers_without_an_output_are_failures_with_the_reason(answer: Any, reason: str) -> None:
    output = themis.Output(name="limit", at="/limit", min=0, max=5)
    with pytest.raises(SubjectError, match=reason):
        themis.Audit(lambda person: answer, FEW, outputs=output).causal("race")


def test_failed_executions_leave_an_interval() -> None:
    def decide(person: dict[str, Any]) -> float:
        if person["savings"] == 3 and person["race"] == "green":
            raise ValueError("no")
        return person["savings"] / 10 + (person["race"] == "green") / 2

    output = themis.Output(min=0, max=2, distance="relational")
    audit = themis.Audit(decide, FEW, outputs=output, max_failures=1)
    score = audit.causal("race")
    assert score.low == pytest.approx(0.9 * 0.25)
    assert score.high == pytest.approx(0.9 * 0.25 + 0.1)
    group = audit.group("race")
    assert group.low < group.high


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"distance": "threshhold"}, "threshold"),
        ({"distance": "threshold"}, "needs a tolerance"),
        ({"distance": "relational"}, "needs min and max"),
        ({"min": 3}, "belong together"),
        ({"min": 3, "max": 3}, "not below max"),
        ({"tolerance": 1}, "has no tolerance"),
        ({"distance": "ranking", "cut": 1}, "a list, not a number"),
        ({"cut": 1, "favourable": [2]}, "keep one"),
        ({"min": 0, "max": 1, "distance": "threshold", "tolerance": -1}, "negative"),
    ],
)
def test_a_senseless_output_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(RequestError, match=problem):
        themis.Output(**options)


def test_a_distance_function_of_the_file_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "pricing.py").write_text(
        "def decide(p): return {'price': 100 if p['race'] == 'green' else 150}\n"
        "def apart(a, b): return min(abs(a - b) / 100, 1)\n"
    )
    (tmp_path / "themis.toml").write_text(
        'version = 1\n[subject]\nkind = "python"\nfunction = "pricing:decide"\n'
        '[inputs]\nrace = ["green", "purple"]\nage = { min = 18, max = 30 }\n'
        '[outputs.price]\nat = "price"\nmin = 0\nmax = 200\ndistance = "pricing:apart"\n'
        '[[checks]]\nagainst = ["race"]\nmax_score = 0.1\noutput = "price"\n'
    )
    with themis.Audit.from_file(tmp_path / "themis.toml") as audit:
        assert audit.causal("race").score == pytest.approx(0.5)
        assert audit.causal("race").distance == "apart"
