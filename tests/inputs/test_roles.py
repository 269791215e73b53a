"""Roles of characteristics: what a schema takes, refuses, and gives to its subject."""

from __future__ import annotations

import re
from typing import Any

import pytest

import themis

SCHEMA = themis.Schema(
    sex=themis.Values(["f", "m"], protected=True, role="group"),
    note=themis.Values(["x", "y"], role="context"),
    title=themis.derived("sex", {"f": "Ms", "m": "Mr"}),
    spouse=themis.Values(
        ["Wife", "Husband", "None"],
        weights=[1, 1, 2],
        follows="sex",
        as_={"f": {"Wife": "Husband"}, "m": {"Husband": "Wife"}},
    ),
    age=themis.Integers(18, 60, role="input"),
).where("sex == 'f' or age < 50")


def test_a_schema_with_roles_is_the_same_when_it_is_read_again() -> None:
    assert themis.Schema.from_dict(SCHEMA.to_dict()) == SCHEMA
    assert "role" not in SCHEMA.to_dict()["inputs"]["age"]


def test_the_subject_s_schema_has_no_group_column_and_nothing_that_depends_on_one() -> None:
    given = SCHEMA.given
    assert given.names == ("note", "title", "spouse", "age")
    assert (given.ties, given.constraints) == ((), ())
    assert given.given is given
    plain = themis.Schema(a=[1, 2])
    assert plain.given is plain


def test_only_group_columns_that_nothing_given_goes_with_are_unread() -> None:
    assert SCHEMA.unread == frozenset()
    alone = themis.Schema({each.name: each for each in SCHEMA if each.name in ("sex", "age")})
    assert alone.unread == {0}
    title = themis.derived("sex", {"f": "Ms", "m": "Mr"}, role="group")
    known = themis.Schema(sex=SCHEMA.characteristics[0], title=title, age=range(3))
    assert known.unread == {0, 1}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: themis.Values([1, 2], role="grop"),
            "there is no role 'grop'; did you mean 'group'?",
        ),
        (
            lambda: themis.Integers(0, 9, role="context", protected=True),
            'write role = "group" if the subject',
        ),
        (lambda: themis.Schema(a=themis.Values([1, 2], role="group")), "nothing is given to the"),
    ],
)
def test_a_role_that_makes_no_sense_is_refused_with_a_remedy(make: Any, said: str) -> None:
    with pytest.raises(themis.ThemisError, match=re.escape(said)):
        themis.Schema(a=make(), b=[1])


def test_no_set_and_no_search_has_a_context() -> None:
    audit = themis.Audit(lambda person: person["note"] == "x" and person["age"] > 30, SCHEMA)
    for ask in (audit.causal, audit.group):
        with pytest.raises(themis.ThemisError, match="'note' is a context, which is never"):
            ask("note")
    found = audit.search(0.0)
    assert found.found == (("age",),)
    assert "note" not in found.among
    assert {pair.inputs[0]["note"] for pair in audit.causal("age").witnesses} == {"x"}
