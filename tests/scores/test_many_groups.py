"""Group scores of very many groups: the result lists the ends, the score is that of all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import themis
from themis.scores import group_tally

GROUPS = 60


def decide(table: Any) -> Any:
    """Group g is favoured in g of GROUPS contexts."""
    return (np.asarray(table["x"]) < np.asarray(table["g"])).astype(int)


def audit() -> themis.Audit:
    schema = themis.Schema(g=list(range(GROUPS)), x=list(range(GROUPS)))
    return themis.Audit(themis.batch(decide), schema)


def of_inputs() -> themis.GroupScore:
    return audit().group("g")


def of_people() -> themis.GroupScore:
    rows = {"g": list(range(GROUPS)) * GROUPS, "x": np.repeat(range(GROUPS), GROUPS)}
    (score,) = audit().apparent(rows, "g", measures=["group"], only_data=True).scores
    return score


@pytest.mark.parametrize("measured", [of_inputs, of_people])
def test_of_many_groups_the_lowest_and_highest_are_listed(
    monkeypatch: pytest.MonkeyPatch, measured: Callable[[], themis.GroupScore]
) -> None:
    whole = measured()
    monkeypatch.setattr(group_tally, "LISTED", 12)
    ends = measured()
    assert len(whole.groups) == GROUPS
    assert [each.values["g"] for each in ends.groups] == [0, 1, GROUPS - 2, GROUPS - 1]
    assert all(each in whole.groups for each in ends.groups)
    for name in ("score", "low", "high", "impact_ratio", "impact_ratio_low", "impact_ratio_high"):
        assert getattr(ends, name) == getattr(whole, name), name
    (note,) = (note for note in ends.notes if note.code == "groups-not-listed")
    assert dict(note.values) == {"groups": GROUPS, "listed": 4}
    assert not any(note.code == "groups-not-listed" for note in whole.notes)
