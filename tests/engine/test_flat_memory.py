"""What a run holds does not grow with its executions."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import numpy as np
import pytest

import themis
from themis.engine import memory
from themis.inputs import streams

SIZES = {"race": 3, "sex": 2, "income": 400, "savings": 400, "age": 80, "job": 50}
SCHEMA = themis.Schema({name: range(size) for name, size in SIZES.items()})


@themis.batch
def loan(people: themis.InputTable) -> Any:
    points = people["income"] + people["savings"]
    return points > np.where(people["race"] == 0, 400, 420)


def bytes_per_execution(measure: str) -> float:
    """By how much the peak of a longer run is higher, for each execution that it has more."""
    executions, peaks = [], []
    for error in (0.002, 0.001):
        audit = themis.Audit(loan, SCHEMA, probe=0, error=error)
        gc.collect()
        tracemalloc.start()
        executions.append(getattr(audit, measure)("race").executions)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    more = executions[1] - executions[0]
    assert more > 500_000
    return (peaks[1] - peaks[0]) / more


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["causal", "group"])
def test_a_longer_run_holds_no_more(monkeypatch: pytest.MonkeyPatch, measure: str) -> None:
    monkeypatch.setattr(memory, "STORE_LIMIT", 2**16)  # what is kept for other sets, at most
    monkeypatch.setattr(streams, "CHUNK", 2**12)  # of inputs, of which a few are kept
    assert bytes_per_execution(measure) < 0.25


@pytest.mark.slow
def test_a_run_that_kept_its_tables_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "STORE_LIMIT", 2**40)
    monkeypatch.setattr(streams, "CHUNK", 2**12)
    assert bytes_per_execution("causal") > 0.5
