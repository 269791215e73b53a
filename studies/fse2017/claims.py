"""What carries over from the paper, and what does not? Each claim, judged by the run's numbers.

A claim is a function of what was measured; its verdict and every number in its sentence come from
there. The sentences exist for either outcome.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .instances import INSTANCES
from .measuring import SEARCHED
from .paper_numbers import FIGURE_3, MEANS

Numbers = dict[str, Any]
PLAIN_OF = {"A": "G", "B": "F", "C": "E", "D": "F"}  # the same kind of model without the care
ORDER_OF_MAGNITUDE = 10.0


@dataclass(frozen=True)
class Claim:
    """One claim of the paper, whether it holds here, and the evidence."""

    claim: str
    holds: bool | None  # None: partly
    evidence: str

    @property
    def verdict(self) -> str:
        return {True: "carries over", False: "does not carry over", None: "in part"}[self.holds]


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def label(name: str) -> str:
    """A-census-race as "A census/race"."""
    instance = INSTANCES[name]
    return (
        f"{instance.system} {instance.data}{f'/{instance.sensitive}' if instance.sensitive else ''}"
    )


def claims(measured: Numbers) -> list[Claim]:
    """All claims, in the order of the paper."""
    cells = {(row["instance"], row["against"]): row for row in measured["figure_1"]}
    return [
        causal_sees_more(cells),
        care_is_not_enough(cells),
        care_moves_discrimination(cells),
        care_against_none(cells),
        pruning_saves(measured),
        lower_thresholds_cost_less(measured["sweep"]),
    ]


def causal_sees_more(cells: dict[tuple[str, str], Numbers]) -> Claim:
    apart = [
        (row["causal"]["score"] / max(row["group"]["score"], 1e-3), row)
        for row in cells.values()
        if row["causal"]["low"] > row["group"]["high"]
    ]
    apart.sort(key=lambda each: -each[0])
    shown = "; ".join(
        f"{label(row['instance'])} against {row['against']}: "
        f"group {percent(row['group']['score'])}, causal {percent(row['causal']['score'])}"
        for _, row in apart[:5]
    )
    return Claim(
        "The causal score detects discrimination that the group score misses.",
        bool(apart),
        f"In {len(apart)} of {len(cells)} cells the whole causal interval lies above the whole "
        f"group interval{': ' + shown if shown else ''}.",
    )


def care_is_not_enough(cells: dict[tuple[str, str], Numbers]) -> Claim:
    own = _own_cells(cells)
    above = [row for row in own if row["causal"]["low"] > 0.05]
    worst = max(own, key=lambda row: row["causal"]["score"])
    return Claim(
        "Instances that were designed to avoid discrimination discriminate.",
        bool(above),
        f"{len(above)} of {len(own)} have a causal score certainly above 5 % against the very "
        f"characteristic they should not depend on; the largest is {label(worst['instance'])} "
        f"with {percent(worst['causal']['score'])}.",
    )


def care_moves_discrimination(cells: dict[tuple[str, str], Numbers]) -> Claim:
    moved, compared = [], 0
    for (name, against), row in cells.items():
        instance = INSTANCES[name]
        if instance.sensitive in (None, against):
            continue
        plain = cells[f"{PLAIN_OF[instance.system]}-{instance.data}", against]
        compared += 1
        if row["causal"]["low"] > plain["causal"]["high"]:
            moved.append((row, plain))
    shown = "; ".join(
        f"{label(row['instance'])} against {row['against']} {percent(row['causal']['score'])}, "
        f"{label(plain['instance'])} {percent(plain['causal']['score'])}"
        for row, plain in moved
    )
    return Claim(
        "Avoiding discrimination against one characteristic can create it against another.",
        bool(moved),
        f"In {len(moved)} of {compared} comparisons with the plain model of the same kind the "
        f"score against the other characteristic is certainly higher"
        f"{': ' + shown if shown else ''}.",
    )


def care_against_none(cells: dict[tuple[str, str], Numbers]) -> Claim:
    better = worse = 0
    for row in _own_cells(cells):
        instance = INSTANCES[row["instance"]]
        plain = cells[f"{PLAIN_OF[instance.system]}-{instance.data}", row["against"]]
        better += row["causal"]["high"] < plain["causal"]["low"]
        worse += row["causal"]["low"] > plain["causal"]["high"]
    return Claim(
        "There is no clear evidence that discrimination-aware methods discriminate less than "
        "others.",
        better <= worse,
        f"Against the characteristic that they should not depend on, {better} of 12 have a "
        f"certainly lower causal score than the plain model of the same kind, {worse} a certainly "
        f"higher one. (C is compared with E, though they are different kinds of naive Bayes.)",
    )


def pruning_saves(measured: Numbers) -> Claim:
    words, holds = [], []
    for measure in ("group", "causal"):
        rows = [row for row in measured["figure_3"] if row["measure"] == measure]
        saved = [row["unpruned"]["executions"] / row["pruned"]["executions"] for row in rows]
        mean = geometric(saved)
        holds.append(mean >= ORDER_OF_MAGNITUDE)
        words.append(f"{measure} {mean:.2f} × (the paper: {MEANS[measure]['geometric']:g} ×)")
    shares = [row["implied"] / row["all_sets"] for row in measured["figure_2"]]
    some = sum(share > 0 for share in shares)
    sizes = " or ".join(f"{len(names)} ({data})" for data, names in SEARCHED.items())
    return Claim(
        "Pruning saves orders of magnitude.",
        True if all(holds) else None if some else False,
        f"Geometric means of what the paper's own procedure saves on the subsets of {sizes} "
        f"characteristics: {', '.join(words)}. So few leave little to prune, and "
        f"what is pruned is cheap: sets in which nearly everybody flips at once. Over all subsets "
        f"the found sets would settle {percent(sum(shares) / len(shares))} of all sets on average, "
        f"and at least one in {some} of {len(shares)} instances.",
    )


def lower_thresholds_cost_less(sweep: Sequence[Numbers]) -> Claim:
    names = list(dict.fromkeys(row["instance"] for row in sweep))
    fewer, words = 0, []
    for name in names:
        rows = sorted((r for r in sweep if r["instance"] == name), key=lambda r: -r["threshold"])
        first, last = rows[0], rows[-1]
        fewer += last["pruned"]["executions"] < first["pruned"]["executions"]
        words.append(
            f"{label(name)} {first['pruned']['executions']:,} at θ = {first['threshold']:g}, "
            f"{last['pruned']['executions']:,} at θ = {last['threshold']:g}"
        )
    return Claim(
        "The more a system discriminates (or the lower θ is), the fewer tests are needed.",
        True if fewer == len(names) else None if fewer else False,
        f"The paper's procedure takes fewer executions at the lowest θ than at the highest for "
        f"{fewer} of {len(names)} instances: {'; '.join(words)}.",
    )


def factors_of_the_paper(measure: str) -> list[float]:
    """Recomputed from the counts that the paper prints."""
    pairs = (counts[measure] for counts in FIGURE_3.values())
    return [without / pruned for without, pruned in pairs]


def geometric(factors: Iterable[float]) -> float:
    logarithms = [math.log(factor) for factor in factors]
    return math.exp(sum(logarithms) / len(logarithms))


def arithmetic(factors: Sequence[float]) -> float:
    return sum(factors) / len(factors)


def _own_cells(cells: dict[tuple[str, str], Numbers]) -> list[Numbers]:
    """The cells of aware instances against the characteristic they should not depend on."""
    return [row for (name, against), row in cells.items() if INSTANCES[name].sensitive == against]
