"""Conditions as results have them mean what they meant to whoever wrote them."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import themis
from themis.results.conditions import meets
from themis.scores.explanations.suggestions import Condition

SCHEMA = themis.Schema(
    {
        "age": range(18, 40),
        "age of car": themis.Values([0, 1, 5, 20], missing=0.1),
        "job": ["none", "missing work", "a b", "7"],
        "loan": [True, False],
        "pay": themis.Reals(0, 5, step=0.5),
        "step": themis.Reals(1000, 9000, step=1000),
    }
)


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    column = draw(st.integers(0, len(SCHEMA) - 1))
    each = SCHEMA.characteristics[column]
    codes = st.integers(0, each.size - 1 + (each.missing is not None))
    if not each.ordered or draw(st.booleans()):
        values = draw(st.lists(codes, min_size=1, max_size=each.size - 1, unique=True))
        return Condition(column, values=tuple(values))
    low, high = sorted(draw(st.tuples(*[st.integers(0, each.size - 1)] * 2)))
    return Condition(column, low, high)


@settings(max_examples=300, deadline=None)
@given(conditions(), st.integers(0, 10**6))
def test_an_input_meets_the_text_of_a_condition_where_its_codes_do(
    condition: Condition, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, each.size, 20) for each in SCHEMA]
    columns[1] = rng.integers(0, SCHEMA.characteristics[1].size + 1, 20)  # also no value
    codes = np.stack(columns, axis=1).astype(SCHEMA.dtype)
    text = condition.text(SCHEMA)
    told = [meets(SCHEMA.decode_row(row), text) for row in codes]
    assert told == condition.holds(codes).tolist(), text
