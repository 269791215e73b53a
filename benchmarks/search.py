"""Executions that a search needs: the paper's Algorithm 3, unpruned and pruned, and ours.

    python benchmarks/search.py [--quick | --much]

Models of four kinds on a census-like and a credit-like schema (the numbers of values of the two
public data sets; the training data are made here), and two rules written by hand. 99 %
confidence, error 0.05. Ours decides every set with one guarantee for the whole answer ("deciding")
and then estimates each minimal set to the asked error, with witnesses ("in all"); the paper's rule
guarantees nothing. Where most sets lie in the zone, threshold ± error, an honest answer takes more
inputs than the paper's rule; such subjects are marked and left out of the second mean.
Executions are counted, so the table is the same on every machine. They depend on chance, so that
they are means over three seeds; at 0.75 the paper's procedure, which takes millions, runs with one.

A last table has subjects in which much is found, beside a lower bound that is computed from their
exact scores (`bounds`); `--much` prints it alone.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import themis
from themis.statistics.thresholds import ThresholdRule

CENSUS = {
    "age": 10, "workclass": 8, "weight": 70, "education": 16, "marital": 7, "occupation": 14,
    "relation": 6, "race": 5, "sex": 2, "gain": 100, "loss": 40, "hours": 100, "country": 40,
}  # fmt: skip
CREDIT = {
    "status": 4, "duration": 80, "history": 5, "purpose": 11, "amount": 200, "savings": 5,
    "employment": 5, "rate": 4, "sex": 4, "debtors": 3, "residence": 4, "property": 4, "age": 75,
    "plans": 3, "housing": 3, "credits": 4, "job": 4, "dependants": 2, "telephone": 2, "foreign": 2,
}  # fmt: skip
SENSITIVE = ["age", "marital", "relation", "race", "sex"]
CREDIT_8 = ["status", "history", "purpose", "savings", "employment", "sex", "property", "housing"]


def training(sizes: dict[str, int], seed: int) -> tuple[Any, Any]:
    """People whose outcome depends on some characteristics, with an interaction and noise."""
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.integers(0, size, 6_000) for size in sizes.values()])
    unit = rows / (np.array(list(sizes.values())) - 1)
    weights = rng.normal(size=len(sizes)) * (rng.random(len(sizes)) < 0.7)
    points = unit @ weights + 1.5 * (unit[:, 0] > 0.5) * (unit[:, 3] < 0.4)
    points += rng.normal(scale=0.4, size=len(rows))
    return rows, points > np.median(points)


def model(kind: str, sizes: dict[str, int]) -> Any:
    """A model of scikit-learn, trained on such people."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    rows, target = training(sizes, seed=len(sizes))
    kinds: dict[str, Callable[[], Any]] = {
        "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "tree": lambda: DecisionTreeClassifier(max_depth=10, random_state=0),
        "bayes": GaussianNB,
        "forest": lambda: RandomForestClassifier(5, max_depth=8, random_state=0),
    }
    return kinds[kind]().fit(rows, target)


def parity(table: themis.InputTable) -> Any:
    """An interaction: neither characteristic matters much for most people without the other."""
    return ((table["race"] > 1) ^ (table["sex"] > 0)) & (table["hours"] > 30)


def points(table: themis.InputTable) -> Any:
    """A plain list of points."""
    return table["education"] + table["hours"] / 10 + 4 * (table["race"] == 0) > 14


@dataclass(frozen=True)
class Case:
    name: str
    subject: Callable[[], Any]
    sizes: dict[str, int]
    among: list[str] | None
    max_size: int | None


CASES = [
    Case("logistic, credit 8, size ≤ 3", lambda: model("logistic", CREDIT), CREDIT, CREDIT_8, 3),
    Case("tree, credit 8, size ≤ 3", lambda: model("tree", CREDIT), CREDIT, CREDIT_8, 3),
    Case("bayes, credit 8, size ≤ 3", lambda: model("bayes", CREDIT), CREDIT, CREDIT_8, 3),
    Case("logistic, census 5", lambda: model("logistic", CENSUS), CENSUS, SENSITIVE, None),
    Case("tree, census 5", lambda: model("tree", CENSUS), CENSUS, SENSITIVE, None),
    Case("bayes, census 5", lambda: model("bayes", CENSUS), CENSUS, SENSITIVE, None),
    Case("parity, census 5", lambda: themis.batch(parity), CENSUS, SENSITIVE, None),
    Case("points, census 5", lambda: themis.batch(points), CENSUS, SENSITIVE, None),
    Case("tree, census 13, size ≤ 2", lambda: model("tree", CENSUS), CENSUS, None, 2),
    Case("logistic, census 13, size ≤ 2", lambda: model("logistic", CENSUS), CENSUS, None, 2),
]

PEOPLE = {"region": 9, "job": 5, "sex": 2, "family": 6, "branch": 16, "race": 4, "month": 12,
          "home": 3}  # fmt: skip


def much(kind: str) -> Any:
    """A model of people with eight characteristics, all of which matter."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(2)
    rows = np.column_stack([rng.integers(0, size, 6_000) for size in PEOPLE.values()])
    unit = rows / (np.array(list(PEOPLE.values())) - 1)
    points = unit @ rng.normal(size=len(PEOPLE)) + (unit[:, 0] > 0.5) * (unit[:, 3] < 0.4)
    points += rng.normal(scale=0.3, size=len(rows))
    made = make_pipeline(StandardScaler(), LogisticRegression())
    if kind == "tree":
        made = DecisionTreeClassifier(max_depth=8, random_state=0)
    return made.fit(rows, points > np.median(points))


def scored(table: themis.InputTable) -> Any:
    """A list of points in which every characteristic but one matters."""
    points = table["branch"] / 3 + table["month"] / 3 + 2 * (table["region"] % 4)
    points += 3 * (table["race"] == 0) + 2 * (table["job"] > 2)
    return points + 2 * table["home"] * (table["family"] > 2) > 12


MUCH = [
    Case("logistic regression", lambda: much("logistic"), PEOPLE, None, 3),
    Case("decision tree", lambda: much("tree"), PEOPLE, None, 3),
    Case("a list of points", lambda: themis.batch(scored), PEOPLE, None, 3),
]

SEEDS = (1, 2, 3)
CONFIDENCE, ERROR = 0.99, 0.05


def audit(case: Case, subject: Any, seed: int, **options: Any) -> themis.Audit:
    schema = themis.Schema({name: range(size) for name, size in case.sizes.items()})
    options |= {"seed": seed, "confidence": CONFIDENCE, "error": ERROR}
    return themis.Audit(subject, schema, cost="executions", **options)


@dataclass(frozen=True)
class Row:
    unpruned: float
    pruned: float
    ours: float
    deciding: float
    in_zone: float
    tested: float
    rows_ratio: float
    zone_share: float  # with the seed that has most: at its ends chance decides

    @property
    def factor(self) -> float:
        return self.pruned / self.ours

    @property
    def deciding_factor(self) -> float:
        return self.pruned / self.deciding

    @property
    def mostly_in_zone(self) -> bool:
        return self.zone_share >= 1 / 3


def run(case: Case, threshold: float, *, unpruned: bool) -> Row:
    subject = case.subject()
    options = {"among": case.among, "max_size": case.max_size}

    def paper(seed: int, *, prune: bool) -> int:
        procedure = audit(case, subject, seed, stopping="paper", deterministic=True)
        return procedure.search(threshold, prune=prune, **options).executions

    whole = paper(1, prune=False) if unpruned else 0
    pruned = np.mean([paper(seed, prune=True) for seed in (SEEDS if threshold < 0.5 else (1,))])
    ours = np.array([search(case, subject, seed, threshold, options) for seed in SEEDS])
    share = float((ours[:, 2] / ours[:, 3]).max())
    return Row(whole, float(pruned), *ours.mean(axis=0).tolist(), share)


def search(
    case: Case, subject: Any, seed: int, threshold: float, options: dict[str, Any]
) -> tuple[float, ...]:
    """Our executions in all and for deciding; sets in the zone, sets tested, and inputs there."""
    mine = audit(case, subject, seed)
    result = mine.search(threshold, **options)
    estimating = sum(score.executions for score in result.minimal_sets)
    zone = [t for t in result.tested if t.estimate is not None and t.samples
            and abs(t.estimate - threshold) <= 0.05]  # fmt: skip
    tested = [t for t in result.tested if t.samples]
    lattice = mine.apparatus.views.of(None).searcher._lattice(
        mine._among(case.among), result.max_size, "causal", mine.settings
    )
    ratios = []
    for each in zone:
        mask = sum(1 << result.among.index(name) for name in each.against)
        fixed = ThresholdRule(threshold, 0.05, 2 * 0.01 * lattice.share(mask)).max_samples
        ratios.append(each.samples / fixed)
    deciding = result.executions - estimating
    return result.executions, deciding, len(zone), len(tested), max(ratios, default=0.0)


@dataclass(frozen=True)
class Bounds:
    """The fewest executions with which an answer can be as certain as ours."""

    largest: float  # that of the set that takes most: no procedure can take fewer in all
    total: float  # of all sets: those that share nothing between sets take no fewer


def bounds(case: Case, subject: Any, threshold: float) -> Bounds:
    """Of the sets that every right answer has to list, or to leave out, from their exact scores.

    A black box tells nothing of inputs that are not run. *To list* a set with score d, take a
    second subject in which a part 1 − f/d of the contexts that flip do not: its score is f =
    threshold − error. It looks the same with a chance of at least (f/d)^h if h contexts were seen
    to flip, each by two executions, and it may be listed with a chance of at most α. So
    h ≥ ln((1 − α)/α) / ln(d/f) on average (Jensen's inequality).

    *To leave out* a set of a assignments, take one in which a part q = (c − d)/(1 − d) of the
    constant contexts has one assignment, drawn at random, with another output: its score is c =
    threshold + error. Running m inputs of such a context misses it with a chance of 1 − qm/a,
    which is at least (1 − q)^(m/a). So it takes a · ln((1 − α)/α) / −ln(1 − q) executions.

    Sets of which a part, or which themselves, lie in the zone need not be in either list.
    """
    low, high = threshold - ERROR, threshold + ERROR
    odds = math.log(CONFIDENCE / (1 - CONFIDENCE))
    scores = exact_scores(case, subject)
    parts = {names: [part for part in scores if set(part) < set(names)] for names in scores}
    listed = [names for names, d in scores.items()
              if d >= high and all(scores[part] <= low for part in parts[names])]  # fmt: skip
    below = [names for names, d in scores.items() if d <= low]
    most = [names for names in below if not any(set(names) < set(other) for other in below)]
    needed = [2 * odds / math.log(scores[names] / low) for names in listed]
    for names in most:
        assignments = math.prod(case.sizes[name] for name in names)
        missed = (high - scores[names]) / (1 - scores[names])
        needed.append(assignments * odds / -math.log1p(-missed))
    return Bounds(max(needed), sum(needed))


def exact_scores(case: Case, subject: Any) -> dict[tuple[str, ...], float]:
    """The causal score of every set, from all inputs."""
    sizes = tuple(case.sizes.values())
    codes = np.indices(sizes, dtype=np.int16).reshape(len(sizes), -1)
    if hasattr(subject, "predict"):
        outputs = np.asarray(subject.predict(codes.T))
    else:
        outputs = np.asarray(scored(dict(zip(case.sizes, codes, strict=True))))  # type: ignore[arg-type]
    grid, names = outputs.astype(np.int8).reshape(sizes), list(case.sizes)
    assert case.max_size is not None
    return {
        tuple(names[axis] for axis in axes): float((grid.max(axes) != grid.min(axes)).mean())
        for size in range(1, case.max_size + 1)
        for axes in itertools.combinations(range(len(names)), size)
    }


def much_is_found(threshold: float = 0.75) -> None:
    """The table of subjects in which much is found."""
    print(f"\nMuch is found, θ = {threshold}: executions, 99 %, error 0.05\n")
    print("| subject | sets found | paper, pruned | decide only | fewer | in all | fewer | "
          "lower bound: one set | all sets, nothing shared |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|")
    factors: list[tuple[float, float]] = []
    for case in MUCH:
        subject, found = case.subject(), []
        only: list[int] = []
        whole: list[int] = []
        options = {"max_size": case.max_size}
        printed = audit(case, subject, 1, stopping="paper", deterministic=True)
        pruned = printed.search(threshold, **options).executions
        for seed in SEEDS:
            decided = audit(case, subject, seed).search(threshold, decide_only=True, **options)
            only.append(decided.executions)
            whole.append(audit(case, subject, seed).search(threshold, **options).executions)
            found.append(len(decided.found))
        least = bounds(case, subject, threshold)
        deciding, in_all = float(np.mean(only)), float(np.mean(whole))
        factors.append((pruned / deciding, pruned / in_all))
        cells = [case.name, f"{min(found)} to {max(found)}", f"{pruned:,}", f"{deciding:,.0f}"]
        cells += [f"{pruned / deciding:.1f} ×", f"{in_all:,.0f}", f"{pruned / in_all:.1f} ×"]
        cells += [f"{least.largest:,.0f}", f"{least.total:,.0f}"]
        print(f"| {' | '.join(cells)} |", flush=True)
    deciding, in_all = (mean(list(each)) for each in zip(*factors, strict=True))
    print(f"\nGeometric mean: decide only {deciding:.1f} × (target 4 ×), in all {in_all:.1f} ×")


def mean(factors: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, factors)) / len(factors)) if factors else math.nan


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="only the small cases")
    parser.add_argument("--much", action="store_true", help="only those in which much is found")
    given = parser.parse_args()
    if not given.much:
        little_is_found(quick=given.quick)
    if not given.quick:
        much_is_found()


def little_is_found(*, quick: bool) -> None:
    """The tables of the other subjects."""
    cases = CASES[:7] if quick else CASES
    for threshold, target in ((0.75, 15.0), (0.1, 2.0)):
        print(f"\nθ = {threshold}: executions, 99 %, error 0.05\n")
        print("| subject | paper, all sets | paper, pruned | ours: deciding | fewer than pruned | "
              "ours: in all | fewer than pruned | sets in the zone | inputs there against a fixed "
              "design |")  # fmt: skip
        print("|---|---|---|---|---|---|---|---|---|")
        rows: list[Row] = []
        for case in cases:
            started = time.monotonic()
            row = run(case, threshold, unpruned="13" not in case.name)
            print(f"{case.name}: {time.monotonic() - started:.0f} s", file=sys.stderr)
            whole = f"{row.unpruned:,.0f}" if row.unpruned else "–"
            ratio = f"{row.rows_ratio:.2f}" if row.in_zone else "–"
            most = " (most)" if row.mostly_in_zone else ""
            zone = f"{row.in_zone:.3g} of {row.tested:.3g}{most}"
            cells = [case.name, whole, f"{row.pruned:,.0f}"]
            cells += [f"{row.deciding:,.0f}", f"{row.deciding_factor:.1f} ×"]
            cells += [f"{row.ours:,.0f}", f"{row.factor:.1f} ×", zone, ratio]
            print(f"| {' | '.join(cells)} |", flush=True)
            rows.append(row)
        for which, chosen in (
            ("all subjects", rows),
            ("those with under a third of their sets in the zone",
             [row for row in rows if not row.mostly_in_zone]),
        ):  # fmt: skip
            deciding = mean([row.deciding_factor for row in chosen])
            in_all = mean([row.factor for row in chosen])
            print(f"\nGeometric mean over {which}: deciding {deciding:.1f} ×, "
                  f"in all {in_all:.1f} × (target {target:g} ×)")  # fmt: skip


if __name__ == "__main__":
    main()
