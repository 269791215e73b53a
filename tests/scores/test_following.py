"""Scores of sets that something follows; against the definitions they are in test_joint_worlds."""

from __future__ import annotations

from typing import Any

import pytest

import themis
from themis.scores import scorer
from themis.show.words.headlines import headline


@pytest.mark.parametrize("stopping", ["certified", "paper"])
def test_only_groups_that_occur_are_compared(
    stopping: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scorer, "EXACT_LIMIT", 0)
    couples = themis.Schema(
        {each.name: each for each in ADULT if each.name in ("sex", "relationship", "hours")}
    )
    audit = themis.Audit(by_relationship, couples, seed=1, stopping=stopping)
    score = audit.group("sex", "relationship")
    assert score.method == "sampled"
    groups = {tuple(group.values.values()) for group in score.groups}
    assert ("Male", "Husband") in groups
    assert ("Female", "Wife") in groups
    assert not {("Female", "Husband"), ("Male", "Wife")} & groups


ADULT = themis.Schema(
    age=themis.Integers(17, 90, bins=[30, 50]),
    sex=themis.Values(["Female", "Male"], protected=True),
    race=["White", "Black", "Asian"],
    relationship=themis.Values(
        ["Husband", "Wife", "Unmarried", "Own-child"],
        follows="sex",
        as_={"Female": {"Husband": "Wife"}, "Male": {"Wife": "Husband"}},
    ),
    title=themis.derived("sex", {"Female": "Ms", "Male": "Mr"}),
    hours=themis.Integers(1, 99),
)


def by_relationship(row: dict[str, Any]) -> bool:
    return row["relationship"] == "Husband" and row["hours"] > 30


def test_a_husband_becomes_a_wife() -> None:
    audit = themis.Audit(by_relationship, ADULT, seed=1)
    score = audit.causal("sex")
    assert score.followed == ("relationship", "title")
    first, second = score.witnesses[0].inputs
    assert (first["sex"], first["relationship"], first["title"]) == ("Male", "Husband", "Mr")
    assert (second["sex"], second["relationship"], second["title"]) == ("Female", "Wife", "Ms")
    assert {name: first[name] for name in ("age", "race", "hours")} == {
        name: second[name] for name in ("age", "race", "hours")
    }
    assert abs(score.score - 0.5 * 69 / 99) < 0.05  # of four relationships two are couples
    assert audit.causal("sex", "relationship").followed == ("title",)
    assert audit.causal("race").followed == ()
    excess = audit.excess("sex")
    assert excess.low <= 0.5 * 69 / 99 <= excess.high
    said = "with another sex, and relationship and title with it, for "
    assert said in str(headline(excess))


def test_what_followed_is_saved_and_said() -> None:
    result = themis.Audit(by_relationship, ADULT, seed=1).score([["sex"]], ["causal"])
    assert result.to_dict()["scores"][0]["followed"] == ["relationship", "title"]
    html = result._repr_html_()
    assert "when sex is changed, and relationship and title with it" in html
