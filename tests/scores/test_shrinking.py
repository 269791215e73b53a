"""Is a shrunk witness still a witness, plainer than before, and worth what it costs?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

import themis
from tests.external import ran, write_command
from tests.worlds import Case, cases
from themis.inputs.population import Population
from themis.inputs.streams import reference_person
from themis.scores.explanations import explaining as explanations
from themis.scores.explanations.shrinking import Plainness, plain_witnesses
from themis.scores.explanations.witnesses import FlipPool, Pairs
from themis.subjects.decisions import FAILED

SCHEMA = themis.Schema(
    race=["green", "purple", "blue"],
    sex=["f", "m"],
    age=themis.Integers(18, 120),
    hours=themis.Integers(0, 100),
    education=["HS", "BA", "MA", "PhD"],
    city=list("ABCDEFGH"),
    income=themis.Reals(0, 200_000, step=1_000),
)


def loan(person: dict[str, Any]) -> bool:
    hard = person["hours"] > 70 and person["education"] == "MA" and person["race"] == "purple"
    return person["income"] > 30_000 and not hard


def shrunk_one_by_one(audit: themis.Audit, columns: tuple[int, ...], pairs: Pairs) -> Pairs:
    """Each pair shrunk by itself, so that none is merged with another."""
    codes, outputs = [], []
    for (first, second), (one, other) in pairs:
        pool = FlipPool(audit.sampler.assignments(columns), audit.sampler.reading)
        pool.add_pairs(first[None], second[None], np.array([[one, other]]))
        [plain] = plain_witnesses([pool], audit.sampler, known=True)
        labels = audit.runner.labels.labels
        codes.append(pool.schema.encode_rows(list(plain[0].inputs)))
        outputs.append([labels.index(each) for each in plain[0].outputs])
    return Pairs(np.stack(codes), np.array(outputs))


def distance(pair: Any, reference: Any, schema: themis.Schema) -> list[Any]:
    return [ranks[0] for ranks in Plainness(reference, schema).of(pair[None])]


def flipping_pairs(case: Case, audit: themis.Audit) -> Pairs:
    """Every pair that flips in a tiny world, up to 40 of them, by brute force."""
    columns = case.schema.columns_of(case.names)
    size = audit.population.size
    codes = audit.population.combinations(np.arange(size))
    outputs = audit.runner.run(codes)
    rest = [c for c in range(len(case.schema)) if c not in columns]
    found = [
        (a, b)
        for a in range(size)
        for b in range(a)
        if outputs[a] != outputs[b]
        and (codes[a, rest] == codes[b, rest]).all()
        and in_other_bins(case.schema, columns, codes[a], codes[b])
    ][:40]
    assume(found)
    places = np.array(found)
    return Pairs(codes[places], outputs[places])


def in_other_bins(schema: themis.Schema, columns: Any, first: Any, second: Any) -> bool:
    """Whether two values are never merely two members of one bin."""
    return all(
        first[c] == second[c]
        or schema.characteristics[c].level_of(first[c : c + 1])
        != schema.characteristics[c].level_of(second[c : c + 1])
        for c in columns
    )


@given(case=cases())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_shrunk_pair_flips_is_valid_differs_in_the_set_only_and_is_not_farther(
    case: Case,
) -> None:
    audit = case.audit(seed=1)
    columns = case.schema.columns_of(case.names)
    pairs = flipping_pairs(case, audit)
    shrunk = shrunk_one_by_one(audit, columns, pairs)
    reference = reference_person(audit.population)
    assert len(shrunk) == len(pairs)
    valid = {values for values, _ in case.world.inputs()}
    for (before, _), (after, outputs) in zip(pairs, shrunk, strict=True):
        first, second = (case.schema.decode_row(row) for row in after)
        assert case.decide(first) != case.decide(second)
        assert [case.decide(first), case.decide(second)] == [
            audit.runner.labels.labels[number] for number in outputs
        ]
        assert {tuple(first.values()), tuple(second.values())} <= valid
        assert set(np.flatnonzero(after[0] != after[1])) <= set(columns)
        assert in_other_bins(case.schema, columns, *after)
        assert distance(after, reference, case.schema) <= distance(before, reference, case.schema)


@given(case=cases())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_all_witnesses_of_a_score_are_distinct_and_true(case: Case) -> None:
    result = case.audit(seed=3).causal(*case.names)
    valid = {values for values, _ in case.world.inputs()}
    seen = set()
    for witness in result.witnesses:
        assert set(witness.differs_in) <= set(case.names)
        assert tuple(case.decide(row) for row in witness.inputs) == witness.outputs
        assert witness.outputs[0] != witness.outputs[1]
        assert all(tuple(row.values()) in valid for row in witness.inputs)
        seen.add(frozenset(tuple(row.items()) for row in witness.inputs))
    assert len(seen) == len(result.witnesses)


@pytest.mark.parametrize("vectorised", [False, True])
def test_only_what_matters_is_left_unusual(vectorised: bool) -> None:
    def columns(table: themis.InputTable) -> Any:
        hard = (table["hours"] > 70) & (table["education"] == "MA") & (table["race"] == "purple")
        return (table["income"] > 30_000) & ~hard

    audit = themis.Audit(themis.batch(columns) if vectorised else loan, SCHEMA, seed=2)
    plainest = audit.causal("race").witnesses[0]
    assert tuple(plainest.inputs[0].values()) == ("green", "f", 69, 71, "MA", "A", 100_000.0)
    assert (plainest.differs_in, plainest.outputs) == (("race",), (True, False))


def test_two_that_differ_needlessly_are_made_to_agree() -> None:
    audit = themis.Audit(loan, SCHEMA, seed=1)
    reference = reference_person(audit.population)
    pair = np.stack([reference, reference])
    pair[:, [3, 4]] = 90, 2
    pair[:, :3] = [(0, 1, 5), (1, 0, 9)]  # another race, sex and age
    pairs = Pairs(pair[None], audit.runner.run(pair)[None])
    ((shrunk, _),) = shrunk_one_by_one(audit, (0, 1, 2), pairs)
    assert np.flatnonzero(shrunk[0] != shrunk[1]).tolist() == [0]
    assert (shrunk[:, 1:3] == reference[1:3]).all()


def test_a_pair_that_loses_the_favourable_decision_still_does_when_shrunk() -> None:
    schema = themis.Schema(race=["green", "purple"], points=range(100), other=range(50))

    def grade(person: dict[str, Any]) -> str:  # two kinds of refusal in the middle
        if 20 <= person["points"] < 90:
            return "no" if person["race"] == "green" else "never"
        return "yes" if person["race"] == "green" and person["points"] >= 90 else "no"

    audit = themis.Audit(grade, schema, favourable=["yes"], seed=1)
    codes = np.array([[[0, 95, 3], [1, 95, 3]]])
    pairs = Pairs(codes, audit.runner.run(codes[0])[None])
    ((pair, _),) = shrunk_one_by_one(audit, (0,), pairs)
    assert pair[0].tolist() == [0, 90, 24]  # not 49 points, where neither is accepted


def test_whoever_is_favoured_stays_so() -> None:
    schema = themis.Schema(sex=["f", "m"], age=themis.Integers(18, 77), other=range(1_000))

    def decide(person: dict[str, Any]) -> bool:  # young women lose, older ones win
        return (person["sex"] == "f") == (person["age"] >= 48)

    witnesses = themis.Audit(decide, schema, seed=2).causal("sex").witnesses
    plainest = {tuple(each.inputs[0].values()) for each in witnesses[:2]}
    assert plainest == {("m", 47, 499), ("f", 48, 499)}


@pytest.mark.parametrize("distance", ["relational", "threshold"])
def test_outputs_that_differ_by_degrees_never_come_nearer(distance: str) -> None:
    tolerance = {"tolerance": 150} if distance == "threshold" else {}
    limit = themis.Output(min=0, max=1_000, distance=distance, **tolerance)

    def offer(person: dict[str, Any]) -> int:
        gap = 300 if person["hours"] > 70 else 100
        return int(500 + person["age"] - gap * (person["race"] == "purple"))

    audit = themis.Audit(offer, SCHEMA, outputs=limit, seed=1)
    codes = np.array([[[0, 1, 5, hours, 2, 3, 9], [1, 1, 5, hours, 2, 3, 9]] for hours in (10, 95)])
    outputs = audit.runner.run(codes.reshape(4, -1)).reshape(2, 2)
    shrunk = shrunk_one_by_one(audit, (0,), Pairs(codes, outputs))
    hours = {"relational": [50, 71], "threshold": [10, 71]}  # 100 is no difference by threshold
    assert shrunk.codes[:, 0, 3].tolist() == hours[distance]
    assert (shrunk.codes[1, :, [1, 2, 4, 5]] == [[0, 0], [51, 51], [0, 0], [0, 0]]).all()


def test_outputs_that_are_near_enough_make_no_witness_of_a_whole_domain() -> None:
    def points(person: dict[str, Any]) -> int:
        return person["b"] + person["a"] * (5 if person["b"] == 3 else 1)

    output = themis.Output(min=0, max=20, distance="threshold", tolerance=2)
    audit = themis.Audit(points, themis.Schema(a=range(2), b=range(4)), outputs=output)
    (witness,) = audit.causal("a").witnesses
    assert witness.inputs == ({"a": 1, "b": 3}, {"a": 0, "b": 3})


# What it costs ----------------------------------------------------------------------------
def test_a_domain_that_was_run_whole_is_explained_for_nothing() -> None:
    schema = themis.Schema(race=["green", "purple"], savings=range(100), sex=["f", "m"])
    audit = themis.Audit(lambda p: p["savings"] > (50 if p["race"] == "green" else 60), schema)
    score = audit.causal("race")
    assert score.method == "exact"
    assert (audit.runner.account.sampling, audit.runner.account.explanations) == (400, 0)
    assert score.witnesses[0].inputs[0] == {"race": "green", "savings": 51, "sex": "f"}


@pytest.mark.parametrize("budget", [200, 400, 1_000])
def test_the_budget_holds_for_explanations_too(budget: int) -> None:
    audit = themis.Audit(loan, SCHEMA, seed=1, max_executions=budget)
    audit.causal("race")
    assert audit.runner.executions <= budget
    assert audit.runner.account.explanations <= max(budget // 10, 1)


def test_explanations_change_no_number_of_a_score(monkeypatch: pytest.MonkeyPatch) -> None:
    def numbers() -> list[Any]:
        audit = themis.Audit(loan, SCHEMA, seed=4, error=0.1)
        scores = [audit.causal(each) for each in ("race", "sex,income", "hours")]
        return [
            (s.score, s.low, s.high, s.samples, s.direction, s.account.sampling) for s in scores
        ]

    explained = numbers()
    untouched = "themis.scores.tally.explained_together"
    monkeypatch.setattr(untouched, lambda parts, *_, **__: [each.score for each in parts])
    assert numbers() == explained


def test_a_program_is_run_a_few_times_more_and_the_result_counts_it(tmp_path: Path) -> None:
    config = write_command(tmp_path, run="error = 0.1\nconfidence = 0.95")
    first, again = (themis.Audit.from_file(config).score([["race"]], ["causal"]) for _ in "ab")
    (score,) = first.scores
    assert 0 < score.account.explanations == first.spent.explanations <= 30
    assert len(ran(tmp_path)) == first.executions
    assert tuple(score.witnesses[0].inputs[0].values()) == ("green", "f", 49, 499_999)
    assert again.scores[0].to_dict()["witnesses"] == score.to_dict()["witnesses"]
    assert again.executions == 0  # what was run for it is kept as well


# What can go wrong ------------------------------------------------------------------------
@pytest.mark.parametrize("size", [10_000, 1_000_000])
def test_a_crash_on_the_way_spoils_no_measurement_and_is_not_remembered(size: int) -> None:
    schema = themis.Schema(race=["green", "purple"], points=range(100), other=range(size))
    usual = (size - 1) // 2

    def decide(person: dict[str, Any]) -> bool:
        if person["other"] == usual and person["points"] != 49:
            raise RuntimeError("the usual person")
        return bool(person["race"] == "green" or person["points"] < 80)

    audit = themis.Audit(decide, schema, seed=3, error=0.2, confidence=0.9)
    result = audit.score([["race"]], ["causal"])
    assert result.failures == {}
    (score,) = result.scores
    assert score.witnesses
    assert all(each.inputs[0]["other"] != usual for each in score.witnesses)
    crashing = np.array([[0, 90, usual]], dtype=schema.dtype)
    assert audit.runner.known(crashing)[0] != FAILED


def test_an_interrupt_while_explaining_keeps_the_score(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(explanations, "plain_witnesses", interrupted)
    audit = themis.Audit(loan, SCHEMA, seed=1)
    with pytest.raises(KeyboardInterrupt):
        audit.causal("race")
    audit = themis.Audit(loan, SCHEMA, seed=1)
    audit.sampler.keep_on_interrupt = True
    result = audit.score([["race"], ["sex"]], ["causal"])
    (score,) = result.scores
    assert result.stopped == score.stopped == "interrupted"
    assert score.score > 0
    assert score.witnesses


# The reference person ---------------------------------------------------------------------
def test_the_reference_person_is_the_most_usual_one() -> None:
    schema = themis.Schema(
        plain=["a", "b", "c"],
        weighted=themis.Values(["a", "b", "c"], weights=[1, 3, 3]),
        age=themis.Integers(18, 120),
        skewed=themis.Integers(0, 4, weights=[0.1, 0.1, 0.1, 0.3, 0.4]),
        huge=themis.Integers(0, 10**12),
        scores=[1, 5, 20],
    )
    person = schema.decode_row(reference_person(Population.of(schema)))
    assert person == {
        "plain": "a", "weighted": "b", "age": 69, "skewed": 3, "huge": 5 * 10**11, "scores": 5,
    }  # fmt: skip
