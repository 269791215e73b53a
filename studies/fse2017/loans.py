"""The examples of the paper's section 2: what a group score can't see.

Each is a loan program that decides about many applications at once, as `themis.batch` wants it. The
paper's "name" is a number here; what it calls random must be the same when asked again, so lots
were drawn beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import themis

SCHEMA = themis.Schema(
    name=range(100),
    age=["<40", ">40"],
    race=["green", "purple"],
    savings=range(100),
    amount=range(10),
)


@dataclass(frozen=True)
class Example:
    """A loan program, the characteristic in question, and the scores that the text implies."""

    title: str
    decide: Any
    against: str
    group: float
    causal: float


# Of all pairs of name and amount, 30 % that were drawn by lot once and for all.
LUCKY = np.random.default_rng(2017).permutation(1_000).reshape(100, 10) < 300


def thirty_and_forty(table: themis.InputTable) -> Any:
    """30 % of people below 40 get the loan, 40 % of those above: 10 % group discriminating."""
    return table["savings"] >= np.where(table["age"] == "<40", 70, 60)


def opposite_effects(table: themis.InputTable) -> Any:
    """Race counts against purple people below 40, and as much against green ones above."""
    hindered = (table["race"] == "purple") == (table["age"] == "<40")
    return table["savings"] >= np.where(hindered, 70, 50)


def random_or_richest(table: themis.InputTable) -> Any:
    """A random 30 % of purple applicants, and the 30 % of green ones with the most savings."""
    lucky = LUCKY[table["name"], table["amount"]]
    return np.where(table["race"] == "purple", lucky, table["savings"] >= 70)


EXAMPLES = (
    Example("30 % and 40 %", thirty_and_forty, "age", group=0.10, causal=0.10),
    Example("two opposite effects", opposite_effects, "race", group=0.0, causal=0.20),
    Example("a random 30 % or the richest 30 %", random_or_richest, "race", group=0.0, causal=0.42),
)


def measure(example: Example, *, seed: int, error: float) -> tuple[Any, Any]:
    """The group and the causal score of an example."""
    audit = themis.Audit(
        themis.batch(example.decide), SCHEMA, seed=seed, error=error, deterministic=True
    )
    return audit.group(example.against), audit.causal(example.against)
