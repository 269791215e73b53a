"""Is a subject that decides at random found out, and no other one suspected?"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import themis
from tests.external import RACE, lasting, ran, stored, write_command, write_worker
from tests.projects import run
from themis.engine.answers import combine, run_combined
from themis.scores.noise import SHARE
from themis.scores.reruns import GROUP_INPUTS, SHARE_LEFT
from themis.statistics.reruns import RERUNS_SHARE, reruns_for
from themis.subjects.decisions import FAILED
from themis.subjects.labels import Labels

SCHEMA = themis.Schema(
    race=["green", "purple"], income=range(100), savings=themis.Integers(0, 10**6)
)


def noisy(share: float, *, gap: int = 0, seed: int = 0) -> Callable[[dict[str, Any]], int]:
    """A decision with another limit for each race, and with so many random flips."""
    rng = random.Random(seed)

    def decide(person: dict[str, Any]) -> int:
        decision = person["income"] >= (50 if person["race"] == "green" else 50 + gap)
        return int(decision != (rng.random() < share))

    return decide


@pytest.mark.parametrize("gap", [0, 20])
@pytest.mark.parametrize("error", [0.05, 0.02])
def test_subject_that_decides_the_same_is_never_suspected_and_costs_little_more(
    gap: int, error: float
) -> None:
    decide = noisy(0.0, gap=gap)
    for seed in range(4):
        calls = itertools.count()

        def counted(person: dict[str, Any], calls: Any = calls) -> int:
            next(calls)
            return decide(person)

        result = themis.Audit(counted, SCHEMA, seed=seed, error=error).score([["race"]])
        assert all(score.conclusive and not score.notes for score in result.scores)
        assert result.noise is not None
        assert (result.noise.differing, result.noise.rate, result.noise.low) == (0, 0.0, 0.0)
        assert not any(each.get("placebo") for each in result.to_dict()["scores"])
        pairs = reruns_for(SHARE_LEFT, RERUNS_SHARE * 0.01 / 2)  # and those that are shown
        findings = 2 * (pairs + 10) + 2 * GROUP_INPUTS
        others = result.spent.sampling + result.spent.explanations
        assert result.spent.noise <= others // SHARE + (findings if gap else 0)
        assert next(calls) == result.executions == others + result.spent.noise


def test_the_paper_rule_and_who_wants_no_probe_are_left_alone() -> None:
    for options in ({"stopping": "paper"}, {"probe": 0}):
        result = themis.Audit(noisy(0.05), SCHEMA, **options).score([["race"]], ["causal"])
        assert (result.spent.noise, result.noise) == (0, None)
        assert all(score.reruns is None for score in result.scores)


# The majority of several runs --------------------------------------------------------------
@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 7).flatmap(
        lambda runs: st.lists(
            st.lists(st.integers(FAILED, 2), min_size=runs, max_size=runs), max_size=20
        )
    )
)
def test_combined_outputs_are_the_majority_and_no_needless_run_is_made(
    inputs: list[list[int]],
) -> None:
    seen = np.array(inputs, dtype=np.int8).T
    if not len(seen):
        return
    made = np.zeros(len(inputs), dtype=int)

    def once(number: int, places: Any) -> Any:
        chosen = np.arange(len(inputs)) if places is None else places
        made[chosen] += 1
        return seen[number, chosen]

    cells = run_combined(once, len(seen), Labels())
    assert cells.tolist() == [majority(each) for each in inputs] == combine(seen, Labels()).tolist()
    assert made.tolist() == [needed(each) for each in inputs]


@pytest.mark.parametrize("repeats", [1, 3, 6, 7])
def test_the_mean_of_equal_numbers_is_that_number(repeats: int) -> None:
    def decide(person: dict[str, Any]) -> float:
        return 0.1 if person["race"] == "green" else 0.0

    cut = themis.Output(name="risk", min=0, max=1, cut=0.1)
    schema = themis.Schema(race=["green", "purple"], income=range(50))
    audit = themis.Audit(decide, schema, outputs=cut, repeats=repeats)
    assert audit.group("race", statistic="rate").score == 0  # nobody is above the cut
    assert set(audit.causal("race").witnesses[0].outputs) == {0.1, 0.0}


def majority(outputs: list[int]) -> int:
    """By hand: the most frequent label, the first of several; none where half the runs failed."""
    labels = [each for each in outputs if each != FAILED]
    if 2 * len(labels) <= len(outputs):
        return FAILED
    return max(dict.fromkeys(labels), key=labels.count)


def needed(outputs: list[int]) -> int:
    """After how many runs the majority is certain, whatever the others give."""
    for made in range(1, len(outputs)):
        part = outputs[:made]
        failed = part.count(FAILED)
        if 2 * failed >= len(outputs) or any(
            2 * part.count(label) > len(outputs) for label in set(part) - {FAILED}
        ):
            return made
    return len(outputs)


@pytest.mark.parametrize("write", [write_command, write_worker], ids=["command", "worker"])
def test_more_repeats_run_only_what_is_missing(tmp_path: Path, write: Any) -> None:
    config = write(tmp_path)
    options: dict[str, Any] = {"probe": 0, "max_executions": 2_000, "error": 0.2}
    counts, scores = [], []
    for repeats in (1, 3, 5, 5, 3):
        before = len(ran(tmp_path))
        with themis.Audit.from_file(config, repeats=repeats, **options) as audit:
            score = audit.causal("race")
        counts.append(len(ran(tmp_path)) - before)
        scores.append((score.score, score.low, score.high, score.samples))
        assert score.executions == counts[-1]
        assert score.account is not None
        assert score.account.sampling + score.cache_hits == (repeats // 2 + 1) * 2 * score.samples
    inputs = counts[0]
    assert counts == [inputs, inputs, inputs, 0, 0]  # majorities of 1, 2 and 3 runs
    assert len(set(scores)) == 1
    assert stored(tmp_path) == len(ran(tmp_path))


def test_each_repeat_of_a_noisy_program_keeps_its_own_decision(tmp_path: Path) -> None:
    coin = "import random; person['income'] = 99 * (random.random() < 0.6)"
    config = write_worker(tmp_path, before=coin)
    results = []
    for _ in range(2):
        with themis.Audit.from_file(config, repeats=3, error=0.2, probe=40) as audit:
            results.append(audit.score([["race"]], ["causal"]))
    first, second = results
    assert second.executions == 0
    assert lasting(first.to_dict()) == lasting(second.to_dict())
    assert second.noise is not None
    assert second.noise.differing > 0


@pytest.mark.parametrize("kind", ["row", "batch"])
def test_repeats_restore_the_score_that_the_subject_has_without_noise(kind: str) -> None:
    expected = themis.Audit(noisy(0.0, gap=20), SCHEMA, seed=3, error=0.03).causal("race")
    rng = np.random.default_rng(5)

    def decide(table: themis.InputTable) -> Any:
        limit = np.where(table["race"] == "green", 50, 70)
        return (table["income"] >= limit) != (rng.random(len(table)) < 0.01)

    subject: Any = themis.batch(decide) if kind == "batch" else noisy(0.01, gap=20, seed=5)
    audit = themis.Audit(subject, SCHEMA, seed=3, error=0.03, repeats=5, cost="executions")
    result = audit.score([["race"]], ["causal"])
    (score,) = result.scores
    assert (score.score, score.low, score.high) == (expected.score, expected.low, expected.high)
    assert score.conclusive
    assert result.noise is not None
    assert (result.noise.differing, result.noise.repeats) == (0, 5)
    assert expected.account is not None
    assert result.spent.sampling > 3 * expected.account.sampling


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "3"])
def test_senseless_settings_are_refused(value: Any) -> None:
    said = {"repeats": "a whole number", "probe": "a whole number", "max_noise": "between 0 and 1"}
    for name in ["repeats"] if value == 0 else said:
        given = -1 if (name, value) == ("max_noise", True) else value
        with pytest.raises(themis.RequestError, match=f"{name}: must .*{said[name]}"):
            themis.Audit(noisy(0.0), SCHEMA, **{name: given})


def test_file_and_command_line_say_how_often(tmp_path: Path) -> None:
    setting = "probe = 20\nmax_noise = 0.5\nerror = 0.2"
    config = str(write_worker(tmp_path, options="repeats = 3", run=setting))
    for options, said in (([], (3, 20)), (["--repeats", "5", "--probe", "30"], (5, 30))):
        noise = json.loads(run("score", config, *RACE, "--json", *options).stdout)["noise"]
        assert (noise["repeats"], noise["inputs"]) == said
    for option in ("--repeats", "--probe"):
        assert run("check", config, option, "-2").exit_code == 2
    done = run("score", config, *RACE, "--probe", "-2")
    assert "--probe: must be a whole number of at least 0, got -2" in done.stderr
