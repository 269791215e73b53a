"""What follows others and what is derived: which inputs are drawn, and which tables are wrong."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import themis
from tests.tied_worlds import FOLLOWER, LEADER, random_world
from themis.inputs import population as populations
from themis.inputs.blocks import RejectionBlock
from themis.inputs.following import as_drawn
from themis.inputs.people import people_of
from themis.inputs.population import Population
from themis.inputs.rows import rows_of
from themis.inputs.streams import BaseInputs, reference_person

AS = {"Female": {"Husband": "Wife"}, "Male": {"Wife": "Husband"}}
MATES = ["Husband", "Wife", "Unmarried"]


def schema_with(**mate: Any) -> themis.Schema:
    return themis.Schema(
        sex=["Female", "Male"],
        relationship=themis.Values(MATES, **{"follows": "sex", "as_": AS, **mate}),
        title=themis.derived("sex", {"Female": "Ms", "Male": "Mr"}),
        age=themis.Integers(18, 20),
    )


def problems(make: Any) -> list[str]:
    with pytest.raises(themis.SchemaError) as error:
        make()
    return [str(each) for each in error.value.mistakes]


def test_nobody_is_drawn_whose_followers_do_not_fit() -> None:
    schema = schema_with()
    rows = [schema.decode_row(row) for row in BaseInputs(Population.of(schema), 1).rows(0, 500)]
    couples = {(row["sex"], row["relationship"], row["title"]) for row in rows}
    assert couples == {
        ("Female", "Wife", "Ms"),
        ("Female", "Unmarried", "Ms"),
        ("Male", "Husband", "Mr"),
        ("Male", "Unmarried", "Mr"),
    }
    wives = sum(row["relationship"] == "Wife" for row in rows if row["sex"] == "Female")
    women = sum(row["sex"] == "Female" for row in rows)
    assert 0.55 < wives / women < 0.78  # two of three: husbands became wives


@pytest.mark.parametrize("seed", range(12))
def test_inputs_occur_as_often_as_rewriting_makes_them(seed: int) -> None:
    world = random_world(seed, binned=seed % 2 == 1)
    own = Population.of(world.schema)
    every = np.arange(own.size or 0)
    rows = [world.schema.decode_row(row) for row in own.combinations(every)]
    shares = dict(zip((tuple(r.values()) for r in rows), own.probabilities(every), strict=True))
    assert shares == {
        tuple(row[name] for name in world.schema.names): pytest.approx(float(share))
        for row, share in world.inputs
    }


@pytest.mark.parametrize("seed", [5, 8])
def test_what_is_too_much_to_list_is_drawn_with_the_same_shares(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = random_world(seed)
    monkeypatch.setattr(populations, "ENUMERATION_LIMIT", 1)
    own = Population.of(world.schema)
    assert any(isinstance(block, RejectionBlock) for block in own.blocks)
    assert not own.uniform
    _compare(own, {tuple(r[n] for n in world.names): w for r, w in world.inputs}, world)
    code = world.values[FOLLOWER].index(next(row[FOLLOWER] for row, _ in world.inputs))
    column = world.schema.column_by_name[FOLLOWER]
    part = own.restricted({column: (code, code + 1)})
    assert part is not None
    mate = world.values[FOLLOWER][code]
    some = {tuple(r[n] for n in world.names): w for r, w in world.inputs if r[FOLLOWER] == mate}
    _compare(part, {row: w / sum(some.values()) for row, w in some.items()}, world)


def _compare(own: Population, truth: dict[Any, Fraction], world: Any) -> None:
    drawn = BaseInputs(own, 1).rows(0, 6_000)
    counts = Counter(tuple(world.schema.decode_row(row).values()) for row in drawn)
    assert counts.keys() <= truth.keys()
    for row, share in truth.items():
        spread = 5 * (float(share) / 6_000) ** 0.5
        assert abs(counts[row] / 6_000 - float(share)) < spread + 1e-9


def test_constraints_forbid_what_followers_become() -> None:
    schema = schema_with().where("relationship != 'Husband'")
    own = Population.of(schema)
    every = np.arange(own.size or 0)
    shares = Counter[tuple[Any, ...]]()
    for row, share in zip(own.combinations(every), own.probabilities(every), strict=True):
        person = schema.decode_row(row)
        shares[person["sex"], person["relationship"]] += share
    # Of six couples, two are male husbands; the female one became a wife.
    assert shares == {
        ("Female", "Wife"): pytest.approx(0.5),
        ("Female", "Unmarried"): pytest.approx(0.25),
        ("Male", "Unmarried"): pytest.approx(0.25),
    }


def test_the_reference_person_fits() -> None:
    schema = schema_with()
    person = schema.decode_row(reference_person(Population.of(schema)))
    assert person["title"] == {"Female": "Ms", "Male": "Mr"}[person["sex"]]
    assert person["relationship"] != {"Female": "Husband", "Male": "Wife"}[person["sex"]]


def test_a_schema_with_followers_survives_a_file() -> None:
    schema = schema_with(weights=[1, 2, 1])
    again = themis.Schema.from_dict(schema.to_dict())
    assert again == schema
    assert hash(again.characteristics[1]) is not None
    assert [tie.table.tolist() for tie in again.ties] == [tie.table.tolist() for tie in schema.ties]
    binned = random_world(1, binned=True).schema
    assert themis.Schema.from_dict(binned.to_dict()) == binned


def test_numbers_and_truth_values_lead_by_their_text() -> None:
    schema = themis.Schema(
        child=[True, False],
        school=themis.Values([0, 1, 2], follows="child", as_={"true": {"0": 1}, False: {1: 0}}),
        fee=themis.derived("child", {"true": 0.5, "false": 1}),
    )
    assert [tie.table.tolist() for tie in schema.ties] == [[[1, 1, 2], [0, 0, 2]], [[0, 0], [1, 1]]]


def test_a_code_without_a_place_in_the_table_stays() -> None:
    (mate, title) = schema_with().ties
    levels, codes = np.array([1, 5, -1, 1]), np.array([1, 1, 1, 9])
    assert mate.moved(levels, codes).tolist() == [0, 1, 1, 9]
    assert title.moved(np.array([0, 7]), np.array([1, 1])).tolist() == [0, 1]


def test_a_derived_characteristic_is_in_no_set() -> None:
    schema = schema_with()
    with pytest.raises(themis.RequestError, match=re.escape("name 'sex' instead")):
        schema.columns_of(["title", "age"])
    assert [schema.names[column] for column in schema.free] == ["sex", "relationship", "age"]
    audit = themis.Audit(lambda row: row["title"] == "Ms", schema)
    assert audit.search(0.5).among == ("sex", "relationship", "age")
    assert audit.search(0.5).found == (("sex",),)


MISTAKES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "unknown leader": (
        {"follows": "sx"},
        ["inputs.relationship.follows: there is no characteristic 'sx'; did you mean 'sex'?"],
    ),
    "itself": (
        {"follows": "relationship"},
        ["inputs.relationship.follows: it can't lead itself; choose from: sex, age"],
    ),
    "a chain": (
        {"follows": "title"},
        [
            "inputs.relationship.follows: 'title' is derived from 'sex' itself, and there are no "
            "chains; name 'sex', with a table for its values"
        ],
    ),
    "several at once": (
        {"as_": {"Femal": {"Husband": "Wive"}, "Male": "Husband"}},
        [
            "inputs.relationship.as: 'Femal' is no value of 'sex'; did you mean 'Female'?",
            "inputs.relationship.as: 'Wive' is none of its values; did you mean 'Wife'?",
            "inputs.relationship.as: 'Male' must have a table, got 'Husband'; write Male = "
            '{ before = "after" }',
        ],
    ),
    "one way only": (
        {"as_": {"Female": {"Husband": "Wife"}}},
        [
            "inputs.relationship.as: it does not map one to one between 'Male' and 'Female' of "
            "'sex': 'Husband' with 'Male' becomes 'Wife' with 'Female', and that becomes 'Wife' "
            "with 'Male'; write for each of the two what every value of the other becomes"
        ],
    ),
    "weight 0": (
        {"weights": [1, 0, 1]},
        [
            "inputs.relationship.as: others become 'Wife', which has weight 0; give it a weight, "
            "however small"
        ],
    ),
    "an unknown bin": (
        {"follows": "age", "as_": {"18 to 19": {"Wife": "Husband"}}},
        ["inputs.relationship.as: '18 to 19' is no value of 'age'; choose from: 18, 19, 20"],
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_wrong_table_gets_exactly_these_messages(case: str) -> None:
    options, expected = MISTAKES[case]
    assert problems(lambda: schema_with(**options)) == expected


def test_every_pair_of_values_that_is_not_one_to_one_is_named() -> None:
    table = {"F": {"b": "a"}, "M": {"a": "b"}}
    found = problems(
        lambda: themis.Schema(
            sex=["F", "M", "X"], mate=themis.Values(["a", "b"], follows="sex", as_=table)
        )
    )
    assert [re.findall(r"between '(\w)' and '(\w)'", each) for each in found] == [
        [("X", "F")],
        [("X", "M")],
    ]


def test_what_can_be_neither_followed_nor_derived_is_refused() -> None:
    def derived(values: Any, **options: Any) -> Any:
        return lambda: themis.Schema(a=["x", "y"], b=themis.derived("a", values, **options))

    assert problems(derived({"x": 1})) == [
        "inputs.b.values: there is no value for 'y' of 'a'; give one for each"
    ]
    assert problems(derived({"x": 1, "y": 2}, protected=True, weights=[1, 2])) == [
        "a derived characteristic has no 'weights'; remove it, or give it to 'a'",
        "a derived characteristic has no 'protected'; remove it, or give it to 'a'",
    ]
    assert "must be a table, got ['x']" in problems(derived(["x"]))[0]
    assert "'as' is there without 'follows'" in problems(lambda: themis.Values(["x"], as_={}))[0]
    assert "without a table 'as'" in problems(lambda: themis.Values(["x"], follows="a"))[0]
    assert "give it bins" in problems(
        lambda: themis.Schema(
            a=themis.Integers(0, 10**6),
            b=themis.Values(["x", "y"], follows="a", as_={"1": {"x": "y"}}),
        )
    )[0]  # fmt: skip


# With missing values, and with rows as they are ----------------------------------------------
def maybe(**title: Any) -> themis.Schema:
    return themis.Schema(
        sex=themis.Values(["Female", "Male"], missing=0.2),
        relationship=themis.Values(MATES, follows="sex", as_=AS, missing=0.1),
        title=themis.derived("sex", {"Female": "Ms", "Male": "Mr"}, **title),
    )


def test_a_leader_without_a_value_changes_nothing() -> None:
    rows = BaseInputs(Population.of(maybe()), 1).rows(0, 2_000)
    seen = {tuple(maybe().decode_row(row).values()) for row in rows}
    assert {mate for sex, mate, _ in seen if sex is None} == {*MATES, None}
    assert {mate for sex, mate, _ in seen if sex == "Male"} == {"Husband", "Unmarried", None}
    assert {(sex, title) for sex, _, title in seen} == {
        (None, None),
        ("Female", "Ms"),
        ("Male", "Mr"),
    }


def test_no_table_names_a_missing_value() -> None:
    missing = themis.Values(["F", "M"], missing=0.2)
    found = problems(
        lambda: themis.Schema(
            sex=missing, title=themis.derived("sex", {"F": "Ms", "M": "Mr", "None": "Mx"})
        )
    )
    assert found == ["inputs.title.values: 'None' is no value of 'sex'; choose from: F, M"]
    assert problems(lambda: maybe(missing=0.5)) == [
        "inputs.title.from: a derived one has no 'missing': it is missing where 'sex' is; "
        "remove it, or give it to 'sex'"
    ]


def test_a_row_whose_title_is_missing_is_not_as_it_is_derived() -> None:
    codes = np.array([[0, 0, 0], [2, 0, 2], [0, 0, 2], [2, 0, 0]])
    assert as_drawn([tie for tie in maybe().ties if tie.derived], codes).tolist() == [
        True,
        True,
        False,
        False,
    ]
    rows = [{"sex": "Female", "relationship": "Wife", "title": None}] * 2
    audit = themis.Audit(lambda row: row["title"] is None, maybe(), seed=1, profile=rows)
    found = audit.search(0.5)
    assert found.method == "sampled"  # no list of inputs has that row
    assert found.found == (("sex",),)


def test_rows_with_another_sex_need_a_title() -> None:
    rows = {"sex": ["Female", "Other", None], "relationship": ["Wife", "Wife", "Wife"]}
    people = people_of(rows_of(rows), maybe())
    assert [people.schema.decode_row(row)["title"] for row in people.codes] == ["Ms", None]
    (reason,) = people.facts["reasons"]
    assert (reason["where"], reason["reason"]) == ("title", "nothing to derive it from")
    assert reason["examples"] == [{"row": 2, "value": "Other"}]
    assert "kept" not in people.facts  # what is left out is not run as it is
    titled = people_of(rows_of({**rows, "title": ["Ms", "Mx", None]}), maybe())
    assert (titled.rows, titled.facts["dropped"]) == (3, 0)
    assert titled.facts["kept"] == [
        {"name": "sex", "rows": 1, "values": ["Other"]},
        {"name": "title", "rows": 1, "values": ["Mx"]},
    ]


def test_rows_may_have_what_is_never_drawn() -> None:
    world = random_world(2)
    rows = [dict(zip(world.names, key, strict=True)) for key in world.outputs]
    drawn = {tuple(row.values()) for row, _ in world.inputs}
    odd = [row for row in rows if world.valid(row) and tuple(row.values()) not in drawn]
    assert odd
    result = world.audit().apparent(odd, against=[LEADER], only_data=True)
    assert result.scores[0].samples == len(odd)
