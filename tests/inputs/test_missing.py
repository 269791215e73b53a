"""Inputs without a value: their codes, what constraints say of them, how often they are drawn."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import themis
from themis.errors import SchemaError
from themis.inputs.characteristics import Characteristic
from themis.inputs.people import people_of
from themis.inputs.population import Population
from themis.inputs.schema import Schema
from themis.inputs.streams import BaseInputs, reference_person
from themis.inputs.tables import rows_of

KINDS: list[tuple[Characteristic, list[Any]]] = [
    (themis.Values(["a", "b"], missing=0.2), ["a", "b"]),
    (themis.Values([False, True], missing=0.2), [False, True]),
    (themis.Integers(3, 9, step=2, bins=[7], missing=0.2), [3, 5, 7, 9]),
    (themis.Reals(0, 1, step=0.25, missing=0.2), [0.0, 0.25, 0.5, 0.75, 1.0]),
]


@pytest.mark.parametrize(("kind", "values"), KINDS)
def test_no_value_is_the_code_behind_the_values(kind: Characteristic, values: list[Any]) -> None:
    every = np.arange(kind.code_count)
    assert kind.decode(every).tolist() == [*values, None]
    assert [kind.value(int(code)) for code in every] == [*values, None]
    assert [kind.encode(value) for value in (*values, None)] == every.tolist()
    assert kind.encode(float("nan")) == kind.missing_code == kind.size
    assert kind.level_label(kind.levels - 1) is None
    assert kind.level_of(np.array([kind.missing_code])).tolist() == [kind.levels - 1]
    assert kind.level_range(kind.levels - 1) == (kind.size, kind.size + 1)


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, "often", True, float("nan")])
def test_a_share_lies_between_nothing_and_everything(share: Any) -> None:
    with pytest.raises(SchemaError, match="a share above 0 and below 1"):
        themis.Integers(0, 3, missing=share)


# Constraints ----------------------------------------------------------------------------------
TRUTHS = {"true": True, "false": False, None: None}


def both(one: bool | None, two: bool | None) -> bool | None:
    if one is False or two is False:
        return False
    return None if one is None or two is None else True


def negated(one: bool | None) -> bool | None:
    return None if one is None else not one


def either(one: bool | None, two: bool | None) -> bool | None:
    return negated(both(negated(one), negated(two)))


def known(truth: Callable[..., bool]) -> Callable[..., bool | None]:
    """What a condition says of values that are there; of a missing one it says nothing."""
    return lambda *values: None if None in values else truth(*values)


same = known(lambda p, q: p == q)
TABLES: list[tuple[str, Callable[[Any, Any], bool | None]]] = [
    ("p and q", both),
    ("p or q", either),
    ("not p", lambda p, q: negated(p)),
    ("not (p or not q)", lambda p, q: negated(either(p, negated(q)))),
    ("p == q", same),
    ("p != q", known(lambda p, q: p != q)),
    ("p == true", lambda p, q: p),
    ("q in [false]", lambda p, q: negated(q)),
    ("q not in [false]", lambda p, q: q),
    ("(p and q) == q", lambda p, q: same(both(p, q), q)),
    ("p is missing", lambda p, q: p is None),
    ("p is not missing and q", lambda p, q: both(p is not None, q)),
    ("not (p is missing) or q", lambda p, q: either(p is not None, q)),
]
NUMBERS: list[tuple[str, Callable[[Any, Any], bool | None]]] = [
    ("a < b", known(lambda a, b: a < b)),
    ("a != b", known(lambda a, b: a != b)),
    ("a + b > 3", known(lambda a, b: a + b > 3)),
    ("not (a * 2 == 4)", lambda a, b: known(lambda a: a != 2)(a)),
    ("a in [1, 2]", lambda a, b: known(lambda a: a in (1, 2))(a)),
    ("a not in [1, 2]", lambda a, b: known(lambda a: a not in (1, 2))(a)),
    ("1 <= a < b", lambda a, b: both(known(lambda a: a >= 1)(a), known(lambda a, b: a < b)(a, b))),
    ("a / b >= 1", known(lambda a, b: b != 0 and a / b >= 1)),
    ("not a / b >= 1", known(lambda a, b: b == 0 or a / b < 1)),
    ("a is missing or b > a", lambda a, b: a is None or known(lambda b: b > a)(b)),
]
FLAGS = (themis.Values([False, True], missing=0.1), "pq", [False, True, None])
DIGITS = (themis.Integers(0, 3, missing=0.1), "ab", [0, 1, 2, 3, None])
CASES = [*((*case, *FLAGS) for case in TABLES), *((*case, *DIGITS) for case in NUMBERS)]


@pytest.mark.parametrize(("text", "truth", "kind", "names", "values"), CASES)
@pytest.mark.parametrize("tabulated", [True, False])
def test_conditions_have_three_truths_and_only_what_is_false_is_forbidden(
    text: str,
    truth: Callable[[Any, Any], bool | None],
    kind: Characteristic,
    names: str,
    values: list[Any],
    tabulated: bool,
    monkeypatch: Any,
) -> None:
    if not tabulated:
        monkeypatch.setattr("themis.inputs.expressions.TABLE_LIMIT", 0)
    schema = Schema(dict.fromkeys(names, kind)).where(text)
    for one, two in itertools.product(values, repeat=2):
        codes = np.array([[kind.encode(one), kind.encode(two)]])
        assert schema.valid(codes).tolist() == [truth(one, two) is not False], (one, two)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("b is missing", "'b' is never missing"),
        ("a + 1 is missing", "only the value of a characteristic can be missing"),
        ("a < a is missing", "only the value of a characteristic can be missing"),
        ("c is missing", "there is no characteristic 'c'"),
    ],
)
def test_what_can_not_be_missing_is_said(text: str, problem: str) -> None:
    schema = Schema(a=themis.Integers(0, 3, missing=0.1), b=themis.Integers(0, 3))
    with pytest.raises(SchemaError, match=problem):
        schema.where(text)


# Populations ----------------------------------------------------------------------------------
def test_of_many_values_one_is_missing_as_often_as_the_share_says() -> None:
    """Of few, test_following lists all inputs with what each has to be."""
    schema = Schema(
        few=themis.Values(["a", "b"], missing=0.25),
        many=themis.Integers(0, 10**12, missing=0.5),
    ).where("few is not missing or many is missing")
    codes = BaseInputs(Population.of(schema), 5).rows(0, 60_000)
    few, many = (codes[:, n] == each.missing_code for n, each in enumerate(schema))
    assert few.mean() == pytest.approx(0.125 / 0.875, abs=0.01)
    assert many.mean() == pytest.approx(0.5 / 0.875, abs=0.01)
    assert (codes[:, 1] <= 10**12 + 1).all()
    mostly = Schema(a=themis.Integers(0, 8, missing=0.9), b=themis.Values(["x"], missing=0.9))
    assert reference_person(Population.of(mostly)).tolist() == [4, 0], "the usual one has values"


# Given rows -----------------------------------------------------------------------------------
@pytest.mark.parametrize("nothing", [None, float("nan"), "", "?", "NA"])
def test_rows_without_a_value_fit(nothing: Any) -> None:
    schema = Schema(a=themis.Integers(0, 3, missing=0.1), b=themis.Values(["x", "y"], missing=0.5))
    people = people_of(rows_of([{"a": 1, "b": nothing}, {"a": nothing, "b": "y"}]), schema)
    assert people.codes.tolist() == [[1, 2], [4, 1]]
    assert people.facts["dropped"] == 0
    listed = Schema(a=themis.Values(["", "x"], missing=0.1))
    assert people_of(rows_of([{"a": ""}, {"a": "NA"}]), listed).codes.tolist() == [[0], [2]]
