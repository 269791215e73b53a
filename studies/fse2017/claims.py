"""The claims of the paper, each judged by one number against limits that are fixed here.

`LIMITS` names the number that decides about a claim and what it must reach. The evidence is made of
the run's numbers, and its sentences fit every verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .instances import INSTANCES
from .measuring import SEARCHED
from .paper_numbers import FIGURE_3, MEANS

Numbers = dict[str, Any]
Cells = dict[tuple[str, str], Numbers]  # Figure 1: instance and characteristic
Unit = Literal["share", "factor"]
PLAIN_OF = {"A": "G", "B": "F", "C": "E", "D": "F"}  # the same kind of model without the care
NOTICEABLE = 0.05  # a causal score that counts as discrimination
ORDER_OF_MAGNITUDE = 10.0


@dataclass(frozen=True)
class Limits:
    """What the number of a claim must reach for the claim to carry over, wholly or in part."""

    claim: str
    number: str
    wholly: float
    in_part: float
    unit: Unit = "share"

    def verdict(self, reached: float) -> str:
        if reached >= self.wholly:
            return "carries over"
        return "in part" if reached >= self.in_part else "does not carry over"

    def spell(self, number: float) -> str:
        if self.unit == "factor":
            return f"{number:.2f} ×"
        return "one case" if number == ANY else percent(number)


TENTH = 0.1  # of what the paper says can happen: more than an exception
ANY = 0.001  # one case, however many there are
LIMITS = {
    "causal sees more": Limits(
        "The causal score detects discrimination that the group score misses.",
        "share of cells of Figure 1 whose whole causal interval lies above the group interval",
        wholly=TENTH,
        in_part=ANY,
    ),
    "care is not enough": Limits(
        "Instances that were designed to avoid discrimination discriminate.",
        f"share of aware instances with a causal score above {100 * NOTICEABLE:g} %, by its whole "
        "interval, against the characteristic that they should not depend on",
        wholly=TENTH,
        in_part=ANY,
    ),
    "care moves discrimination": Limits(
        "Avoiding discrimination against one characteristic can create it against another.",
        "share of comparisons with the plain model of the same kind in which the whole interval "
        "against the other characteristic is higher",
        wholly=TENTH,
        in_part=ANY,
    ),
    "care does not help": Limits(
        "There is no clear evidence that discrimination-aware methods discriminate less than "
        "others.",
        "share of aware instances that score higher than the plain model, minus the share that "
        "score lower, by whole intervals",
        wholly=0.0,
        in_part=-0.25,
    ),
    "pruning saves": Limits(
        "Pruning saves orders of magnitude.",
        "geometric mean of executions without pruning ÷ with it, the smaller of group and causal",
        wholly=ORDER_OF_MAGNITUDE,
        in_part=math.sqrt(ORDER_OF_MAGNITUDE),
        unit="factor",
    ),
    "low thresholds cost less": Limits(
        "The more a system discriminates (or the lower θ is), the fewer tests are needed.",
        "share of instances for which the paper's procedure takes fewer executions at the lowest θ "
        "than at the highest",
        wholly=1.0,
        in_part=0.5,
    ),
}


@dataclass(frozen=True)
class Claim:
    """One claim of the paper, the number that decides about it, and the evidence."""

    limits: Limits
    number: float
    evidence: str

    @property
    def claim(self) -> str:
        return self.limits.claim

    @property
    def verdict(self) -> str:
        return self.limits.verdict(self.number)


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
        care_does_not_help(cells),
        pruning_saves(measured),
        low_thresholds_cost_less(measured["sweep"]),
    ]


def causal_sees_more(cells: Cells) -> Claim:
    apart = [
        (row["causal"]["score"] / max(row["group"]["score"], 1e-3), row)
        for row in cells.values()
        if _higher(row["causal"], row["group"])
    ]
    apart.sort(key=lambda each: -each[0])
    shown = "; ".join(
        f"{label(row['instance'])} against {row['against']}: "
        f"group {percent(row['group']['score'])}, causal {percent(row['causal']['score'])}"
        for _, row in apart[:5]
    )
    return Claim(
        LIMITS["causal sees more"],
        len(apart) / len(cells),
        f"In {len(apart)} of {len(cells)} cells the whole causal interval lies above the whole "
        f"group interval{': ' * bool(shown)}{shown}.",
    )


def care_is_not_enough(cells: Cells) -> Claim:
    own = _own_cells(cells)
    above = [row for row in own if row["causal"]["low"] > NOTICEABLE]
    worst = max(own, key=lambda row: row["causal"]["score"])
    return Claim(
        LIMITS["care is not enough"],
        len(above) / len(own),
        f"{len(above)} of {len(own)} have a causal score above {100 * NOTICEABLE:g} % (99 % "
        f"confidence) against the characteristic that they should not depend on; the largest is "
        f"{label(worst['instance'])} with {percent(worst['causal']['score'])}.",
    )


def care_moves_discrimination(cells: Cells) -> Claim:
    pairs = [
        (row, _plain(cells, row))
        for (name, against), row in cells.items()
        if INSTANCES[name].sensitive not in (None, against)
    ]
    moved = [(row, plain) for row, plain in pairs if _higher(row["causal"], plain["causal"])]
    shown = "; ".join(
        f"{label(row['instance'])} against {row['against']} {percent(row['causal']['score'])}, "
        f"{label(plain['instance'])} {percent(plain['causal']['score'])}"
        for row, plain in moved
    )
    return Claim(
        LIMITS["care moves discrimination"],
        len(moved) / len(pairs),
        f"In {len(moved)} of {len(pairs)} comparisons with the plain model of the same kind the "
        f"causal score against the other characteristic is higher by its whole interval"
        f"{': ' * bool(shown)}{shown}.",
    )


def care_does_not_help(cells: Cells) -> Claim:
    own = [(row["causal"], _plain(cells, row)["causal"]) for row in _own_cells(cells)]
    worse = sum(_higher(aware, plain) for aware, plain in own)
    better = sum(_higher(plain, aware) for aware, plain in own)
    return Claim(
        LIMITS["care does not help"],
        (worse - better) / len(own),
        f"Against the characteristic that they should not depend on, {better} of {len(own)} have a "
        f"lower causal score than the plain model of the same kind, {worse} a higher one, each by "
        f"whole intervals. (C is compared with E, though they are different kinds of naive Bayes.)",
    )


def pruning_saves(measured: Numbers) -> Claim:
    saved = {
        measure: [
            row["unpruned"]["executions"] / row["pruned"]["executions"]
            for row in measured["figure_3"]
            if row["measure"] == measure
        ]
        for measure in ("group", "causal")
    }
    words = [
        f"{name} means: "
        + ", ".join(
            f"{measure} {mean(factors):.2f} × (the paper: {MEANS[measure][name]:,g} ×)"
            for measure, factors in saved.items()
        )
        for name, mean in (("geometric", geometric), ("arithmetic", arithmetic))
    ]
    instances = len({row["instance"] for row in measured["figure_3"]})
    return Claim(
        LIMITS["pruning saves"],
        min(map(geometric, saved.values())),
        f"What the paper's own procedure saves on {sets_of(measured)}, over {instances} of the "
        f"paper's {len(FIGURE_3)} instances; {'; '.join(words)}. {_settled(measured)}",
    )


def sets_of(measured: Numbers) -> str:
    """The sets that Figure 3 searches."""
    most = measured["run"]["max_size"]
    sizes = " or ".join(f"{len(names)} ({data})" for data, names in SEARCHED.items())
    few = "the subsets" if most is None else f"the subsets of at most {most}"
    return f"{few} of {sizes} characteristics"


def _settled(measured: Numbers) -> str:
    shares = [row["implied"] / row["all_sets"] for row in measured["figure_2"]]
    some = sum(share > 0 for share in shares)
    return (
        f"More characteristics leave more to prune, which was not run: the minimal sets found for "
        f"Figure 2 would settle {percent(sum(shares) / len(shares))} of all sets on average, and "
        f"at least one in {some} of {len(shares)} instances."
    )


def low_thresholds_cost_less(sweep: Sequence[Numbers]) -> Claim:
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
        LIMITS["low thresholds cost less"],
        fewer / len(names),
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


def _higher(one: Numbers, other: Numbers) -> bool:
    """Whether the whole interval of one score lies above that of another."""
    return bool(one["low"] > other["high"])


def _own_cells(cells: Cells) -> list[Numbers]:
    """The cells of aware instances against the characteristic they should not depend on."""
    return [row for (name, against), row in cells.items() if INSTANCES[name].sensitive == against]


def _plain(cells: Cells, row: Numbers) -> Numbers:
    """The same cell of the plain model of the same kind."""
    instance = INSTANCES[row["instance"]]
    return cells[f"{PLAIN_OF[instance.system]}-{instance.data}", row["against"]]
