"""Is a subject that decides at random found out, and no other one suspected?"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import themis
from tests.external import RACE, ran, write_worker
from themis.cli import app
from themis.repeats import PAIRS

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


@pytest.mark.parametrize("seed", range(6))
def test_noise_is_found_stated_and_leaves_no_verdict(seed: int) -> None:
    audit = themis.Audit(noisy(0.01, seed=seed), SCHEMA, seed=seed, error=0.02)
    result = audit.score([["race"]], ["causal"])
    (score,) = result.scores
    assert (score.stopped, score.low, score.conclusive) == ("noise", 0.0, False)
    assert "does not always decide the same" in score.notes[-1]
    assert result.timing["repeats"] > 100


def test_true_score_is_in_the_interval_in_spite_of_the_noise() -> None:
    covered = 0
    for seed in range(20):
        audit = themis.Audit(noisy(0.02, gap=20, seed=seed), SCHEMA, seed=seed, error=0.03)
        score = audit.causal("race")
        covered += score.low <= 0.2 <= score.high
    assert covered >= 18


@pytest.mark.parametrize("gap", [0, 20])
def test_subject_that_decides_the_same_is_not_suspected(gap: int) -> None:
    calls = 0
    decide = noisy(0.0, gap=gap)

    def counted(person: dict[str, Any]) -> int:
        nonlocal calls
        calls += 1
        return decide(person)

    result = themis.Audit(counted, SCHEMA, seed=1).score([["race"]])
    assert all(score.conclusive and not score.notes for score in result.scores)
    repeats = result.timing.get("repeats", 0)
    assert repeats == (2 * PAIRS if gap else 0)
    assert calls == result.executions + repeats


def test_command_line_says_so_and_ends_with_4(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_worker(tmp_path, before="import random; person['income'] = 99 * (random.random() < 0.97)")
    done = CliRunner().invoke(app, ["score", *RACE, "--measure", "causal"])
    assert done.exit_code == 4
    shown = " ".join(done.stdout.split())
    assert "inconclusive: 1 of 1 score: the interval is wider than asked, because the" in shown
    assert "the subject does not always decide the same" in shown
    assert "noise alone may explain" in shown


def test_pairs_are_confirmed_once(tmp_path: Path) -> None:
    config = write_worker(tmp_path)
    counts = []
    for _ in range(2):
        with themis.Audit.from_file(config) as audit:
            counts.append(audit.score([["race"]], ["causal"]).timing.get("repeats", 0))
    assert counts == [2 * PAIRS, 0]
    assert len(ran(tmp_path)) - len(set(ran(tmp_path))) == 2 * PAIRS


def test_budget_is_kept_and_the_paper_rule_is_left_alone() -> None:
    for options in ({"max_executions": 100}, {"stopping": "paper"}):
        audit = themis.Audit(noisy(0.05), SCHEMA, **options)
        result = audit.score([["race"]], ["causal"])
        assert "repeats" not in result.timing
        assert json.dumps(result.to_dict())
