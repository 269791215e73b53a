"""What follows others and what is derived: which inputs are drawn, and which tables are wrong."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

import themis
from tests.joint_worlds import (
    CHOICES,
    FOLLOWER,
    FREE,
    LEADER,
    JointWorld,
    Weighed,
    plain_world,
)
from themis.inputs import population as populations
from themis.inputs.blocks import RejectionBlock
from themis.inputs.people import people_of
from themis.inputs.population import Population
from themis.inputs.streams import BaseInputs
from themis.inputs.tables import rows_of

AS = {"Female": {"Husband": "Wife"}, "Male": {"Wife": "Husband"}}
MATES = ["Husband", "Wife", "Unmarried"]


def schema_with(**mate: Any) -> themis.Schema:
    return themis.Schema(
        sex=["Female", "Male"],
        relationship=themis.Values(MATES, **{"follows": "sex", "as_": AS, **mate}),
        title=themis.derived("sex", {"Female": "Ms", "Male": "Mr"}),
        age=themis.Integers(18, 20),
    )


def maybe(**title: Any) -> themis.Schema:
    return themis.Schema(
        sex=themis.Values(["Female", "Male"], missing=0.2),
        relationship=themis.Values(MATES, follows="sex", as_=AS, missing=0.1),
        title=themis.derived("sex", {"Female": "Ms", "Male": "Mr"}, **title),
    )


def problems(make: Any) -> list[str]:
    with pytest.raises(themis.SchemaError) as error:
        make()
    return [str(each) for each in error.value.mistakes]


def world_of(seed: int) -> JointWorld:
    """What may be missing, what is in bins and what is forbidden differs from seed to seed."""
    gone = {LEADER: CHOICES[LEADER][seed % 3], FREE: CHOICES[FREE][seed // 2 % 3]}
    forbidden = CHOICES["constraint"][seed % 5]
    return plain_world(seed, binned=seed % 2 == 1, constraint=forbidden, **gone)


@pytest.mark.parametrize("seed", range(12))
def test_inputs_occur_as_often_as_rewriting_makes_them(seed: int) -> None:
    world = world_of(seed)
    own = Population.of(world.schema)
    every = np.arange(own.size or 0)
    rows = [world.schema.decode_row(row) for row in own.combinations(every)]
    shares = dict(zip((tuple(r.values()) for r in rows), own.probabilities(every), strict=True))
    assert shares == {tuple(row.values()): pytest.approx(share) for row, share in world.inputs}


@pytest.mark.parametrize("seed", [6, 8])
def test_what_is_too_much_to_list_is_drawn_with_the_same_shares(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = world_of(seed)
    monkeypatch.setattr(populations, "ENUMERATION_LIMIT", 1)
    own = Population.of(world.schema)
    assert any(isinstance(block, RejectionBlock) for block in own.blocks)
    _compare(own, world.inputs)
    mate = world.inputs[0][0][FOLLOWER]
    code = world.column[FOLLOWER].values.index(mate)
    part = own.restricted({world.schema.column_by_name[FOLLOWER]: (code, code + 1)})
    assert part is not None
    _compare(part, [(row, weight) for row, weight in world.inputs if row[FOLLOWER] == mate])


def _compare(own: Population, truth: Weighed) -> None:
    drawn = BaseInputs(own, 1).rows(0, 6_000)
    counts = Counter(tuple(own.schema.decode_row(row).values()) for row in drawn)
    whole = sum(weight for _, weight in truth)
    assert counts.keys() <= {tuple(row.values()) for row, _ in truth}
    for row, weight in truth:
        share = weight / whole
        assert abs(counts[tuple(row.values())] / 6_000 - share) < 5 * (share / 6_000) ** 0.5 + 1e-9


def test_a_schema_survives_a_file() -> None:
    both = themis.Values(["green", "blue"], missing=0.1, missing_as_counterfactual=True)
    gaps = themis.Schema(race=both, age=themis.Integers(18, 20, missing=0.5))
    assert gaps.size == 3 * 4
    known = gaps.where("age is missing or age > 18")
    for schema in (known, schema_with(weights=[1, 2, 1]), plain_world(1, binned=True).schema):
        again = themis.Schema.from_dict(schema.to_dict())
        assert again == schema
        assert [e.table.tolist() for e in again.ties] == [e.table.tolist() for e in schema.ties]


def test_a_derived_characteristic_is_in_no_set() -> None:
    schema = schema_with()
    with pytest.raises(themis.RequestError, match=re.escape("name 'sex' instead")):
        schema.columns_of(["title", "age"])
    found = themis.Audit(lambda row: row["title"] == "Ms", schema).search(0.5)
    assert found.among == ("sex", "relationship", "age")
    assert found.found == (("sex",),)


def derived(values: Any, **options: Any) -> Any:
    return lambda: themis.Schema(a=["x", "y"], b=themis.derived("a", values, **options))


MISTAKES: list[tuple[Any, list[str]]] = [
    (
        lambda: schema_with(follows="sx"),
        ["inputs.relationship.follows: there is no characteristic 'sx'; did you mean 'sex'?"],
    ),
    (
        lambda: schema_with(follows="relationship"),
        ["inputs.relationship.follows: it can't lead itself; choose from: sex, age"],
    ),
    (
        lambda: schema_with(follows="title"),
        ["there are no chains; name 'sex', with a table for its values"],
    ),
    (
        lambda: schema_with(as_={"Femal": {"Husband": "Wive"}, "Male": "Husband"}),
        [
            "inputs.relationship.as: 'Femal' is no value of 'sex'; did you mean 'Female'?",
            "inputs.relationship.as: 'Wive' is none of its values; did you mean 'Wife'?",
            "inputs.relationship.as: 'Male' must have a table, got 'Husband'; write Male = ",
        ],
    ),
    (
        lambda: schema_with(as_={"Female": {"Husband": "Wife"}}),
        [
            "inputs.relationship.as: not one to one between 'Male' and 'Female' of 'sex': there "
            "and back, 'Husband' becomes another value; write for each of the two what every "
        ],
    ),
    (
        lambda: schema_with(weights=[1, 0, 1]),
        ["others become 'Wife', which has weight 0; give it a weight, however small"],
    ),
    (
        lambda: schema_with(follows="age", as_={"18 to 19": {"Wife": "Husband"}}),
        ["inputs.relationship.as: '18 to 19' is no value of 'age'; choose from: 18, 19, 20"],
    ),
    (derived({"x": 1}), ["inputs.b.values: there is no value for 'y' of 'a'; give one for each"]),
    (
        derived({"x": 1, "y": 2}, protected=True, weights=[1, 2]),
        [f"a derived characteristic has no '{key}'; remove it" for key in ("weights", "protected")],
    ),
    (derived(["x"]), ["must be a table, got ['x']"]),
    (lambda: themis.Values(["x"], as_={}), ["'as' is there without 'follows'"]),
    (lambda: themis.Values(["x"], follows="a"), ["without a table 'as'"]),
    (
        lambda: themis.Schema(
            a=themis.Integers(0, 10**6),
            b=themis.Values(["x", "y"], follows="a", as_={"1": {"x": "y"}}),
        ),
        ["give it bins: what follows it goes by bin then"],
    ),
    (
        lambda: maybe(missing=0.5),
        ["a derived one has no 'missing': it is missing where 'sex' is; remove it"],
    ),
    (
        lambda: themis.Schema(
            sex=["F", "M", "X"],
            mate=themis.Values(["a", "b"], follows="sex", as_={"F": {"b": "a"}, "M": {"a": "b"}}),
        ),
        ["between 'X' and 'F'", "between 'X' and 'M'"],
    ),
]


@pytest.mark.parametrize("case", range(len(MISTAKES)))
def test_a_wrong_table_gets_exactly_these_messages(case: int) -> None:
    make, expected = MISTAKES[case]
    for said, words in zip(problems(make), expected, strict=True):
        assert words in said


# With missing values, and with rows as they are ----------------------------------------------
def test_a_row_whose_title_is_missing_is_in_no_list_of_inputs() -> None:
    rows = [{"sex": "Female", "relationship": "Wife", "title": None}] * 2
    audit = themis.Audit(lambda row: row["title"] is None, maybe(), seed=1, profile=rows)
    found = audit.search(0.5)
    assert (found.method, found.found) == ("sampled", (("sex",),))


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


def test_numbers_and_truth_values_lead_by_their_text() -> None:
    schema = themis.Schema(
        child=[True, False],
        school=themis.Values([0, 1, 2], follows="child", as_={"true": {"0": 1}, False: {1: 0}}),
        fee=themis.derived("child", {"true": 0.5, "false": 1}),
    )
    assert [tie.table.tolist() for tie in schema.ties] == [[[1, 1, 2], [0, 0, 2]], [[0], [1]]]
