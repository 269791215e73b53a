"""Draws from a profile are called draws: people may be drawn twice, and some never."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import themis
from tests import report_results as samples
from tests.show.test_annex import annex
from tests.show.test_wording import formats
from themis.results.model import CausalScore, Result
from themis.show.words.explanations import counted_people, harms
from themis.show.words.headlines import headline
from themis.show.words.verdicts import measured_on

SEXES, RACES = ("female", "male"), ("green", "purple")
SCHEMA = themis.Schema(
    sex=themis.Values([*SEXES, "other"], protected=True),
    race=RACES,
    number=range(10_000),
    other=range(10_000),
)
ROWS = [
    {"sex": SEXES[n % 2], "race": RACES[n // 2 % 2], "number": n, "other": n} for n in range(10_000)
]
PEOPLE = re.compile(r"(sampled:|none of|counted on|to|of) [\d,]+ (different )?(people|person)")


@cache
def drawn() -> Result:
    audit = themis.Audit(_decide, SCHEMA, profile=ROWS, error=0.1, deterministic=True)
    return audit.score([["sex"], ["race"], ["sex", "race"]])


def _decide(person: dict[str, Any]) -> bool:
    return bool(person["number"] > (6_000 if person["sex"] == "female" else 4_000))


def test_draws_are_no_people_in_any_format() -> None:
    result = drawn()
    assert {each.method for each in result.scores} == {"sampled"}
    for shown in (*formats(result), annex(result)):
        assert not PEOPLE.search(shown)
    terminal = next(formats(result))
    assert re.search(r"sampled: \d+ draws from the profile, ", terminal)
    assert re.search(r"sampled: [\d,]+( to [\d,]+)? draws from (a|each) group, ", terminal)
    none = r"the decision changed for none of \d+ draws from the profile when only their race was"
    assert re.search(none, terminal)
    assert re.search(r"\(counted on \d+ draws from the profile", terminal)
    assert "inputs drawn from" in measured_on(result)


def test_rows_that_are_run_once_are_not_all_people() -> None:
    """Forty people of eight kinds: a change was counted on eight rows, and that is what is said."""
    rows = [{"sex": "female", "number": 1_000 * (n % 8)} for n in range(40)]
    schema = themis.Schema(sex=["female", "male"], number=range(10_000))
    audit = themis.Audit(_decide, schema, deterministic=True)
    result = audit.apparent(rows, "sex", measures=["causal"], only_data=True)
    score = next(s for s in result.scores if isinstance(s, CausalScore) and s.direction)
    assert score.samples == 40
    assert counted_people(score) == "8 kinds of rows, each tried with every value"
    assert next(harms(score, most=1)).endswith("(counted on 8 kinds of rows)")


def test_people_of_whom_all_were_run_are_people() -> None:
    score = samples.causal(population="profile", method="exact", score=0.0, low=0.0, samples=700)
    assert "changed for none of 700 people when only their race was changed" in headline(score)
    assert "Measured on a.csv: 9 rows" in measured_on(
        samples.result(score, data={"file": "a.csv", "used": 9})
    )
