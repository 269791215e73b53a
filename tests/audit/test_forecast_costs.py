"""What a forecast says of functions of a table, beside what is taken then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import themis
from themis.audit.forecast import Forecaster
from themis.audit.plan import make_plan
from themis.events import FACTOR, Event, Forecast

SCHEMA = themis.Schema(
    sex=themis.Values(["f", "m"], protected=True),
    race=themis.Values(list("abc"), protected=True),
    income=range(1000),
    rest=range(10**5),
)


def biased(points: int) -> Any:
    def decide(table: Any) -> Any:
        women, race = np.asarray(table["sex"]) == "f", np.asarray(table["race"]) == "a"
        return np.asarray(table["income"]) > 500 + 3 * points * women + points * race

    return themis.batch(decide)


@pytest.mark.parametrize("points", [0, 150])
def test_searches_of_groups_that_constraints_link_are_foreseen(points: int) -> None:
    """Their groups share no contexts, so that each is drawn by itself."""
    schema = themis.Schema(
        sex=themis.Values(["f", "m"], protected=True),
        race=themis.Values(list("abcde"), protected=True),
        age=themis.Integers(18, 80, bins=[30, 60], protected=True),
        kids=themis.Integers(0, 5, protected=True),
        income=range(1000),
        rest=range(10**5),
    ).where("race != 'b' or age >= 25")
    told: list[Event] = []
    audit = themis.Audit(biased(points), schema, seed=1, listen=told.append)
    audit.everything()
    (foreseen,) = (each for each in told if isinstance(each, Forecast))
    assert 1 / FACTOR < foreseen.executions / audit.runner.account.executions < FACTOR


@pytest.mark.parametrize("change", [100, 1000])
def test_scores_by_degrees_are_foreseen(change: int) -> None:
    def price(table: Any) -> Any:
        return np.asarray(table["income"]) + change * (np.asarray(table["sex"]) == "f")

    outputs = [themis.Output(name="price", min=0, max=5000, distance="relational")]
    options: Any = {"outputs": outputs, "seed": 1, "error": 0.01, "cost": "executions"}
    with themis.Audit(themis.batch(price), SCHEMA, **options) as audit:
        foreseen = make_plan(audit).forecast
    audit = themis.Audit(themis.batch(price), SCHEMA, **options)
    audit.score([["sex"], ["race"]])
    assert 1 / FACTOR < foreseen.executions / audit.runner.account.executions < FACTOR


def test_a_forecast_of_a_search_among_many_characteristics_takes_no_time() -> None:
    names = [f"c{place}" for place in range(40)]
    schema = themis.Schema({name: ["a", "b"] for name in names})
    with themis.Audit(lambda person: 1, schema) as audit:
        forecaster = Forecaster(audit.sampler, audit.settings)
        told = forecaster.forecast([((0,), "causal")], among=range(40), threshold=0.05)
    assert told.search > 0
