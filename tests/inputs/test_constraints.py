"""Constraints: what they mean, what is said about wrong ones, and that no text does harm."""

from __future__ import annotations

import itertools
import operator
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from themis.errors import SchemaError
from themis.inputs import expressions as _columns
from themis.inputs.characteristics import Characteristic, Integers, Values
from themis.inputs.constraints import Constraint, parse_constraint


def listed(name: str, values: Any) -> Values:
    return Values(tuple(values), name=name)


AGE = listed("age", range(18, 91))
RACE = listed("race", ("green", "purple"))
HOME = listed("home", ("green", "blue"))
EMPLOYED = listed("employed", (False, True))
RENT = listed("rent", (0, 500, 2000))
INCOME = Integers(0, 200_000, name="income")
STATUS = listed("marital-status", ("married", "single"))
SCHEMA = (AGE, RACE, HOME, EMPLOYED, RENT, INCOME, STATUS)


def parse(text: Any, *variables: Characteristic) -> Constraint:
    return parse_constraint(text, variables or SCHEMA, name="c")


def mistakes_of(text: Any, *variables: Characteristic) -> list[str]:
    with pytest.raises(SchemaError) as caught:
        parse(text, *variables)
    assert {mistake.where for mistake in caught.value.mistakes} == {"constraint 'c'"}
    return [f"{each.code}: {each.problem}; {each.remedy}" for each in caught.value.mistakes]


def codes_of(text: Any, *variables: Characteristic) -> list[str]:
    return [line.split(":")[0] for line in mistakes_of(text, *variables)]


def holds(text: str, *variables: Characteristic, **rows: list[Any]) -> list[bool]:
    """The result for inputs given by value, as one list per characteristic."""
    known = {each.name.replace("-", "_"): each for each in variables or SCHEMA}
    columns = {
        known[name].name: np.array([known[name].encode(value) for value in values])
        for name, values in rows.items()
    }
    return parse(text, *variables).holds(columns).tolist()


# What constraints mean


def test_constraint_names_what_it_reads_in_schema_order_also_from_a_pickle() -> None:
    made = parse("income > 3 and (age > 20 or income < 9)")
    for constraint in (made, pickle.loads(pickle.dumps(made))):
        assert constraint.variables == ("age", "income")
        assert (constraint.name, constraint.text[:6]) == ("c", "income")
        assert constraint.holds({"age": np.array([2, 3]), "income": np.array([9, 9])}).tolist() == [
            False,
            True,
        ]


@pytest.mark.parametrize(
    ("text", "rows", "expected"),
    [  # what the property below does not write
        ('race not in ("green", "purple")', {"race": ["green", "purple"]}, "00"),
        ("age in {20, 3 * 10}", {"age": [20, 30, 40]}, "110"),
        ("income / 12 > 3 * rent", {"income": [18_000, 18_001], "rent": [500, 500]}, "01"),
        ("employed != (age > 40)", {"employed": [True, False], "age": [41, 41]}, "01"),
        ("employed == (1 < 2)", {"employed": [True, False]}, "10"),
        ('`marital-status` != "married"', {"marital_status": ["married", "single"]}, "01"),
        ("`age` > 20\n  and age < 30", {"age": [20, 25, 30]}, "010"),
        ("age > 1_8.5e0 or age == .19e2", {"age": [18, 19]}, "01"),
        ("age > 1000 or age < -0.5 or income >= 1e300", {"age": [18], "income": [9]}, "0"),
    ],
)
def test_constraint_means_what_python_would_mean(
    text: str, rows: dict[str, list[Any]], expected: str
) -> None:
    assert "".join(str(int(each)) for each in holds(text, **rows)) == expected


def test_literal_can_escape_quotes_and_characters() -> None:
    odd = listed("odd", ('a"b', "a'b", "é", "tab\t", "back\\slash", "plain"))
    text = r'''odd in ["a\"b", 'a\'b', "\xe9", "tab\t", "back\\slash"] or odd == "\u00e9"'''
    assert holds(text, odd, odd=list(odd.values)) == [True] * 5 + [False]


def test_characteristic_may_be_named_like_a_word_of_python() -> None:
    words = [listed(name, (1, 2)) for name in ("class", "from", "t", "if", "true", "naïve", "a b")]
    text = "class == 1 and from == 1 and t == 1 and `if` == 1 and `true` == 1 and naïve == `a b`"
    constraint = parse(text, *words)
    assert constraint.variables == tuple(each.name for each in words)
    assert constraint.holds({each.name: np.array([0, 1]) for each in words}).tolist() == [1, 0]


def test_characteristic_of_mixed_values_equals_its_numbers_and_its_text() -> None:
    mixed = listed("mixed", (10, "many", True))
    assert holds("mixed == 10", mixed, mixed=[10, "many", True]) == [True, False, False]
    assert holds('mixed in ["many", 10]', mixed, mixed=[10, "many", True]) == [True, True, False]
    assert codes_of("mixed == 1", mixed) == ["different-kinds"]


def test_large_numbers_are_exact_and_huge_ranges_compared_by_their_ends() -> None:
    large = Integers(2**53 - 199_999, 2**53, name="large")
    ends = [2**53 - 1, 2**53]
    assert holds(f"large == {2**53}", large, large=ends) == [False, True]
    assert holds(f"large < {2**53}", large, large=ends) == [True, False]
    huge = Integers(0, 10**12, name="huge")
    assert codes_of("huge == -1 or huge in [1000000000001]", huge) == ["not-a-value"]
    parse("huge == 5 and huge != 7", huge)


# The same result as Python, input by input


class Number:
    """A number whose quotient by zero is undefined and whose undefined comparisons are false."""

    def __init__(self, value: float | None) -> None:
        self.value = value

    def __neg__(self) -> Number:
        return Number(None if self.value is None else -self.value)

    def __hash__(self) -> int:
        return hash(self.value)


def _arithmetic(function: Callable[[Any, Any], Any], *, swapped: bool) -> Callable[..., Number]:
    def compute(self: Number, other: Any) -> Number:
        pair = [self.value, other.value if isinstance(other, Number) else float(other)]
        left, right = reversed(pair) if swapped else pair
        try:
            return Number(None if None in pair else function(left, right))
        except ZeroDivisionError:
            return Number(None)

    return compute


def _comparison(function: Callable[[Any, Any], bool]) -> Callable[..., bool]:
    def compare(self: Number, other: Any) -> bool:
        pair = (self.value, other.value if isinstance(other, Number) else other)
        return None not in pair and function(*pair)

    return compare


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod"):
    setattr(Number, f"__{_name}__", _arithmetic(getattr(operator, _name), swapped=False))
    setattr(Number, f"__r{_name}__", _arithmetic(getattr(operator, _name), swapped=True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Number, f"__{_name}__", _comparison(getattr(operator, _name)))


@st.composite
def schemas(draw: st.DrawFn) -> list[Values]:
    whole = draw(st.lists(st.integers(-4, 4), min_size=1, max_size=5, unique=True))
    quarters = draw(st.lists(st.integers(-8, 8), min_size=1, max_size=5, unique=True))
    letters = st.lists(st.sampled_from("uvwxyz"), min_size=1, max_size=4, unique=True)
    return [
        listed("whole", tuple(whole)),
        listed("part-time", tuple(value / 4 for value in quarters)),
        listed("flag", (True, False)),
        listed("first", tuple(draw(letters))),
        listed("second", tuple(draw(letters))),
    ]


@st.composite
def reading_numbers(draw: st.DrawFn) -> str:
    """Arithmetic that reads a characteristic and doesn't divide by a constant zero."""
    name = st.sampled_from(["whole", "`part-time`"])
    text = draw(name)
    for sign in draw(st.lists(st.sampled_from(["+", "-", "*", "/", "//", "%"]), max_size=3)):
        nonzero = st.integers(1, 4).map(str)
        term = draw(
            name | nonzero | st.tuples(name, nonzero).map(lambda pair: f"({pair[0]}-{pair[1]})")
        )
        text = f"{text} {sign} {term}" if draw(st.booleans()) else f"-({text}) {sign} -{term}"
    return text


def comparisons(schema: list[Values]) -> st.SearchStrategy[str]:
    numbers, order = reading_numbers(), st.sampled_from(["<", "<=", ">", ">="])
    either = order | st.sampled_from(["==", "!="])
    equality, within = st.sampled_from(["==", "!="]), st.sampled_from(["in", "not in"])
    values, letters = st.sampled_from(schema[0].values), st.sampled_from(schema[3].values)

    def written(form: str, *parts: st.SearchStrategy[Any]) -> st.SearchStrategy[str]:
        return st.builds(form.format, *parts)

    return st.one_of(
        written("{} {} {} {} {}", numbers, either, numbers, either, numbers),
        written("{} {} {} {} 2.5", numbers, order, st.integers(-5, 5), order),
        written("whole {} {}", equality, values),
        written("whole {} {}", within, st.lists(values, min_size=1)),
        written("{!r} {} first", letters, equality),
        written("first {} {}", within, st.lists(letters, min_size=1)),
        written("first {} second", equality),
        st.sampled_from(["flag", "flag == true", "False != flag", "flag in [true]"]),
    )


def conditions(schema: list[Values]) -> st.SearchStrategy[str]:
    joined = st.sampled_from(
        ["{} and {}", "{} or {}", "not {} or {}", "({} or {})", "({}) == ({})"]
    )
    return st.recursive(
        comparisons(schema),
        lambda parts: (
            st.builds(lambda form, a, b: form.format(a, b), joined, parts, parts)
            | parts.map(lambda part: f"not ({part})")
        ),
        max_leaves=8,
    )


def evaluate_by_row(text: str, row: dict[str, Any]) -> bool:
    """Python's own answer; the text was generated here, so it may be evaluated."""
    values = {
        name.replace("-", "_"): value if isinstance(value, bool | str) else Number(float(value))
        for name, value in row.items()
    }
    return bool(eval(text.replace("`part-time`", "part_time"), {"true": True}, values))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_columns_and_tables_agree_with_python_on_every_input(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    text = data.draw(conditions(schema))
    rows = list(itertools.product(*(range(each.size) for each in schema)))[::11]
    columns = {
        each.name: np.array(column)
        for each, column in zip(schema, zip(*rows, strict=True), strict=True)
    }
    expected = [
        evaluate_by_row(text, {v.name: v.values[c] for v, c in zip(schema, row, strict=True)})
        for row in rows
    ]
    assert parse(text, *schema).holds(columns).tolist() == expected
    with mock.patch.object(_columns, "TABLE_LIMIT", 0):
        assert parse(text, *schema).holds(columns).tolist() == expected


# What is said about wrong constraints


CATALOGUE = Path(__file__).with_name("faulty_constraints.txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize("line", CATALOGUE)
def test_every_faulty_constraint_gets_the_message_behind_it(line: str) -> None:
    text, message = line.split("  #! ")
    assert message in "\n".join(mistakes_of(text))


def test_a_mistake_in_several_lines_has_its_place() -> None:
    (said,) = mistakes_of("age > 18 and\n  (race == 'green'")
    assert "syntax: can't be read at column 16, near" in said
    assert codes_of(" \n ") == ["empty-constraint"]


# Text that means harm


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("age > 3 " + " " * 10_000, "too-long"),
        ("(" * 4000 + "employed" + ")" * 4000, "too-deep"),
        ("(" * 9000, "too-deep"),
        ("age" + "+age" * 2000 + " > 3", "too-deep"),
        ("1if 1else " * 900 + "1", "too-deep"),
        (")" * 90, "syntax"),
        ("age\0> 3", "unexpected-character"),
        ('race == "gr\0en"', "unexpected-character"),
        ("age > " + "9" * 5000, "invalid-number"),
        ("age > 1e999", "invalid-number"),
        ('race == "\ud800"', "unexpected-character"),
        ("`\ud800` > 3", "unknown-name"),
        ("__import__('os').system('true')", "unsupported-syntax"),
        (None, "not-text"),
        (["age > 3"], "not-text"),
    ],
)
def test_harmful_text_is_a_mistake_that_can_be_printed(text: Any, code: str) -> None:
    lines = mistakes_of(text)
    assert lines[0].split(":")[0] == code
    assert all(len(line.encode("utf-8")) < 500 for line in lines)


def test_deepest_allowed_nesting_is_evaluated() -> None:
    text = "employed"
    for _ in range(45):
        text = f"(employed == {text} == employed)"
    for deep in (text, "(" * 95 + "employed" + ")" * 95, "not " * 98 + "employed"):
        assert parse(deep).holds({"employed": np.array([1])}).tolist() == [True]


PIECES = """age race employed income x `marital-status` "green" ' ` 3 0 1e9 . .. ( ) [ ] { } , : =
== != < >= ! && | ~ + - * / // % ** ^ @ not and or in is if else lambda for None true await
yield # f' é ²"""
FRAGMENTS = [*PIECES.split(), "\\", "\n", "\ud83d", "\0"]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14), st.sampled_from(["", " "]))
def test_any_text_is_a_constraint_or_a_schema_error(fragments: list[str], space: str) -> None:
    try:
        constraint = parse(space.join(fragments))
    except SchemaError as error:
        str(error).encode("utf-8")
    else:
        columns = {name: np.zeros(3, dtype=np.int64) for name in constraint.variables}
        assert constraint.holds(columns).shape == (3,)
