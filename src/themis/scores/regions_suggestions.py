"""Which few conditions would tell where the flips are? Suggestions, to be checked on other rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.inputs.schema import Schema
from themis.scores.regions_conditions import (
    Column,
    Condition,
    Floats,
    Proposal,
    evidence,
    meets_all,
)

FEWEST = 5  # flips that are not covered yet
REGIONS = 3
LONGEST = 3  # conditions of a region
BEAM = 2  # ways to go on that are kept while a region grows
ENOUGH = 0.8  # of the flips: no further region is looked for
LEAST_LIFT = 2.0  # flips are so many times as frequent within; a check asks for less


@dataclass(frozen=True)
class Suggestion:
    """Conditions, and what is left of their evidence when their number is charged for."""

    conditions: tuple[Condition, ...] = ()
    charge: float = 0.0
    worth: float = 0.0
    lift: float = 1.0


def suggest_regions(
    codes: NDArray[Any],
    flips: NDArray[np.bool_],
    weights: Floats | None,
    schema: Schema,
    against: Sequence[int],
) -> list[Suggestion]:
    """Regions one after the other: each explains flips that those before it left."""
    columns = [
        Column.of(schema, number, codes) for number in range(len(schema)) if number not in against
    ]
    weight = np.ones(len(codes)) if weights is None else weights
    left = np.ones(len(codes), dtype=bool)
    found: list[Suggestion] = []
    while columns and len(found) < REGIONS and _worth_looking(flips, left):
        best = _left_rows(codes, flips, weight, left, columns, schema).best()
        if not best.conditions:
            break
        found.append(best)
        left &= ~meets_all(best.conditions, codes)
    return found


def _worth_looking(flips: NDArray[np.bool_], left: NDArray[np.bool_]) -> bool:
    total, rest = int(flips.sum()), int((flips & left).sum())
    return rest >= FEWEST and rest > (1 - ENOUGH) * total and not flips[left].all()


def _left_rows(
    codes: NDArray[Any],
    flips: NDArray[np.bool_],
    weight: Floats,
    left: NDArray[np.bool_],
    columns: Sequence[Column],
    schema: Schema,
) -> _Rows:
    flip_weights, row_weights = weight * (flips & left), weight * left
    return _Rows(
        codes,
        int((flips & left).sum()),
        flip_weights / flip_weights.sum(),
        row_weights / row_weights.sum(),
        columns,
        schema,
    )


@dataclass
class _Rows:
    """The rows that regions before left, and what each of them counts."""

    codes: NDArray[Any]
    count: int  # of flips
    flips: Floats  # their sum is 1, as is that of the weights
    weights: Floats
    columns: Sequence[Column]
    schema: Schema

    def best(self) -> Suggestion:
        """The conditions with most evidence, grown one by one, the best few ways at a time."""
        best, top, beam = Suggestion(), 0.0, [Suggestion()]
        for _ in range(LONGEST):
            grown = {frozenset(g.conditions): g for each in beam for g in self._grown(each)}
            ranked = sorted(grown.values(), key=lambda each: -each.worth)
            dense = (each for each in ranked if each.lift >= LEAST_LIFT)
            best = max(best, next(dense, best), key=lambda each: each.worth)
            beam = [each for each in ranked[:BEAM] if each.worth > top]
            if not beam:
                break
            top = beam[0].worth
        return best

    def _grown(self, start: Suggestion) -> Iterator[Suggestion]:
        """The suggestion with one more condition, on each other column."""
        rows = np.flatnonzero(meets_all(start.conditions, self.codes) & (self.weights > 0))
        flips, weights = self.flips[rows], self.weights[rows]
        taken = {each.column for each in start.conditions}
        for column in self.columns:
            if column.number not in taken:
                for proposal in column.proposals(rows, flips, weights):
                    yield self._valued((*start.conditions, proposal.condition), proposal)

    def _valued(self, conditions: tuple[Condition, ...], found: Proposal) -> Suggestion:
        """The conditions with their worth: the evidence for them, less what they cost."""
        kinds = math.log(LONGEST * math.comb(len(self.columns), len(conditions)))
        charge = kinds + sum(each.charge(self.schema) for each in conditions)
        worth = evidence(self.count, found.inside, found.share) - charge
        return Suggestion(conditions, charge, worth, found.inside / max(found.share, 1e-300))
