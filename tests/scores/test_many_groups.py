"""Group scores of very many groups: the result lists the ends, the score is that of all."""

from __future__ import annotations

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


def test_of_many_groups_the_lowest_and_highest_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = audit().group("g")
    monkeypatch.setattr(group_tally, "LISTED", 12)
    ends = audit().group("g")
    assert len(whole.groups) == GROUPS
    assert [each.values["g"] for each in ends.groups] == [0, 1, GROUPS - 2, GROUPS - 1]
    assert all(each in whole.groups for each in ends.groups)
    for name in ("score", "low", "high", "impact_ratio", "impact_ratio_low", "impact_ratio_high"):
        assert getattr(ends, name) == getattr(whole, name), name
    (note,) = (note for note in ends.notes if note.code == "groups-not-listed")
    assert dict(note.values) == {"groups": GROUPS, "listed": 4}
    assert not any(note.code == "groups-not-listed" for note in whole.notes)


def test_of_many_groups_of_people_the_ends_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"g": list(range(GROUPS)) * 2, "x": [GROUPS // 2] * 2 * GROUPS}
    whole = audit().apparent(rows, "g", measures=["group"], only_data=True).scores[0]
    monkeypatch.setattr(group_tally, "LISTED", 12)
    ends = audit().apparent(rows, "g", measures=["group"], only_data=True).scores[0]
    assert isinstance(whole, themis.GroupScore)
    assert isinstance(ends, themis.GroupScore)
    assert (len(whole.groups), len(ends.groups)) == (GROUPS, 4)
    assert (ends.score, ends.impact_ratio) == (whole.score, whole.impact_ratio) == (1.0, 0.0)
