"""How often is the reported score within the asked error, and at how many executions?

    python benchmarks/coverage.py > table.md

The first table compares `ProportionRule` with the paper's rule (Algorithm 2). Its coverage is
exact: a sum over all sample paths by dynamic programming. Simulated runs stand beside it as
a check of the check. The second table compares the group rules with Algorithm 1, simulated.
"Covered" means |score − truth| ≤ error, which is what both the rule for proportions and the paper
promise; the certified group rule promises that its interval, of a width of 2·error, has the truth.
Tables go to standard output, progress to standard error. Takes about a quarter of an hour.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln as log_gamma
from scipy.special import xlog1py, xlogy

from themis.statistics.groups import GroupRule
from themis.statistics.intervals import binomial_inclusion, normal_quantile
from themis.statistics.proportions import (
    TAIL_SHARE,
    PaperRule,
    ProportionRule,
)
from themis.statistics.reruns import interval_confidence

PROPORTIONS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.98, 1.0)
PROMISES = ((0.95, 0.05), (0.99, 0.05), (0.95, 0.01), (0.99, 0.01))
RUNS = 20_000  # of the certified rule, cheap: only looks are simulated
PAPER_RUNS = 1000  # of the paper's rule: every sample is
ROUNDING = 1e-12
SEED = 20170904

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Cell:
    """Coverage and mean executions of a rule at one true score."""

    coverage: float
    executions: float


def main() -> None:
    started = time.perf_counter()
    for line in proportion_table():
        print(line, flush=True)
    print()
    for line in group_table():
        print(line, flush=True)
    progress(f"done in {time.perf_counter() - started:.0f} s")


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- one proportion -----------------------------------------------------------------------


def proportion_table() -> Iterator[str]:
    yield (
        f"Coverage exact (simulated: {RUNS:,} certified runs, {PAPER_RUNS:,} of the paper's) "
        "/ mean samples. Bold: below the confidence."
    )
    yield ""
    yield "| confidence, error | true score | certified | the paper's rule |"
    yield "|---|---|---|---|"
    rng = np.random.default_rng(SEED)
    for confidence, error in PROMISES:
        ours, paper = ProportionRule(confidence, error), PaperRule(confidence, error)
        for p in PROPORTIONS:
            progress(f"proportion {p} at {confidence:.0%} ± {error}")
            certified = show(confidence, exact_certified(ours, p), simulate_certified(ours, p, rng))
            published = show(confidence, exact_paper(paper, p), simulate_paper(paper, p, rng))
            yield f"| {confidence:.0%}, ±{error} | {p:g} | {certified} | {published} |"


def show(confidence: float, exact: Cell, simulated: Cell) -> str:
    text = f"{exact.coverage:.3f}"
    text = f"**{text}**" if exact.coverage < confidence else text
    return f"{text} ({simulated.coverage:.3f}) / {exact.executions:,.0f}"


def exact_certified(rule: ProportionRule, p: float) -> Cell:
    """Follow the probabilities of all counts from look to look, and take out what stops."""
    alive, last, coverage, mean, total = np.ones(1), 0, 0.0, 0.0, 0.0
    for n in rule.looks():
        alive, last = np.convolve(alive, binomial_pmf(n - last, p)), n
        stopped = np.where(certified_stops(rule, np.arange(n + 1), n), alive, 0.0)
        coverage += stopped[within(np.arange(n + 1) / n, p, rule.error)].sum()
        mean += n * stopped.sum()
        total += stopped.sum()
        alive = alive - stopped
    assert abs(total - 1) < 1e-6, "every path stops once"
    return Cell(float(coverage), float(mean))


def simulate_certified(rule: ProportionRule, p: float, rng: np.random.Generator) -> Cell:
    count, last = np.zeros(RUNS, dtype=np.int64), 0
    size, score = np.zeros(RUNS), np.zeros(RUNS)
    for n in rule.looks():
        count, last = count + rng.binomial(n - last, p, size=RUNS), n
        stops = (size == 0) & certified_stops(rule, count, n)
        size[stops], score[stops] = n, count[stops] / n
    return Cell(float(within(score, p, rule.error).mean()), float(size.mean()))


def certified_stops(rule: ProportionRule, counts: NDArray[np.int64], n: int) -> Flags:
    gamma = TAIL_SHARE * (1 - rule.confidence)
    return binomial_inclusion(counts, n, rule.error, gamma) | (n == rule.max_samples)


def exact_paper(rule: PaperRule, p: float) -> Cell:
    """The same after every single sample; `first` is the smallest count still followed."""
    alive, first, coverage, mean, total = np.ones(1), 0, 0.0, 0.0, 0.0
    for r in range(1, rule.max_samples + 1):
        grown = np.convolve(alive, [1 - p, p])
        counts = np.arange(first, first + len(grown))
        stopped = np.where(paper_stops(rule, counts, np.full_like(counts, r)), grown, 0.0)
        coverage += stopped[within(counts / r, p, rule.error)].sum()
        mean += r * stopped.sum()
        total += stopped.sum()
        left = np.flatnonzero(grown - stopped > 1e-16)
        if not len(left):
            break
        alive, first = (grown - stopped)[left[0] : left[-1] + 1], first + int(left[0])
    assert abs(total - 1) < 1e-6, "every path stops once"
    return Cell(float(coverage), float(mean))


def simulate_paper(rule: PaperRule, p: float, rng: np.random.Generator) -> Cell:
    sizes, scores = run_paper(rule, p, PAPER_RUNS, rng)
    return Cell(float(within(scores, p, rule.error).mean()), float(sizes.mean()))


def run_paper(
    rule: PaperRule, p: float, runs: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], Floats]:
    """Where each of many runs stops and the score it reports, a block of runs at a time."""
    r = np.arange(1, rule.max_samples + 1)
    sizes, scores = [], []
    for first in range(0, runs, 50):
        counts = np.cumsum(rng.random((min(50, runs - first), len(r))) < p, axis=1)
        stop = paper_stops(rule, counts, r).argmax(axis=1)
        sizes.append(stop + 1)
        scores.append(counts[np.arange(len(stop)), stop] / (stop + 1))
    return np.concatenate(sizes), np.concatenate(scores)


def paper_stops(rule: PaperRule, counts: NDArray[np.int64], r: NDArray[np.int64]) -> Flags:
    p = counts / r
    close = normal_quantile(rule.confidence) * np.sqrt(p * (1 - p) / r) < rule.error
    return (close & (r > rule.sampling_threshold)) | (r == rule.max_samples)


def within(score: Floats, truth: float, error: float) -> Flags:
    return np.abs(score - truth) <= error + ROUNDING


def binomial_pmf(n: int, p: float) -> Floats:
    x = np.arange(n + 1)
    ways = log_gamma(n + 1) - log_gamma(x + 1) - log_gamma(n - x + 1)
    return np.asarray(np.exp(ways + xlogy(x, p) + xlog1py(n - x, -p)))


# --- groups -------------------------------------------------------------------------------

EQUAL = {groups: np.full(groups, 0.3) for groups in (2, 16, 100)}
SPREAD = np.linspace(0.2, 0.8, 16)
GROUP_PROMISE = (0.95, 0.05)


def group_table() -> Iterator[str]:
    confidence, error = GROUP_PROMISE
    yield f"Groups at {confidence:.0%} ± {error}: coverage / mean executions. Bold: below it."
    yield ""
    yield "| groups | outcomes | runs | certified | the paper's Algorithm 1 (1,000 runs) |"
    yield "|---|---|---|---|---|"
    rng = np.random.default_rng(SEED)
    for name, rates, runs in group_cases():
        published = simulate_algorithm_1(rates, rng)
        for outcomes, simulate in GROUP_RULES.items():
            progress(f"{name}: {outcomes}")
            certified = simulate(rates, runs, rng)
            cells = f"{show_simulated(certified)} | {show_simulated(published)}"
            yield f"| {name} | {outcomes} | {runs:,} | {cells} |"


def group_cases() -> Iterator[tuple[str, Floats, int]]:
    for (groups, rates), runs in zip(EQUAL.items(), (1000, 500, 60), strict=True):
        yield f"{groups} equal (.3)", rates, runs
    yield "16 spread .2 to .8", SPREAD, 500


def show_simulated(cell: Cell) -> str:
    text = f"{cell.coverage:.3f}"
    text = f"**{text}**" if cell.coverage < GROUP_PROMISE[0] else text
    return f"{text} / {cell.executions:,.0f}"


def simulate_groups(rates: Floats, runs: int, draw: Callable[[int, int], Floats]) -> Cell:
    """`draw(rows, columns)` gives the chances that the active groups' rates are compared to."""
    confidence, error = GROUP_PROMISE  # of the whole statement: reruns have a part of it
    rule = GroupRule(1.0 - interval_confidence(confidence), error)
    truth, hits, total = rates.max() - rates.min(), 0, 0
    for _ in range(runs):
        state, last = rule.start(len(rates)), 0
        for contexts in rule.looks():
            active = int(state.active.sum())
            outcomes = draw(contexts - last, active) < rates[state.active]
            state.add(outcomes, outcomes)
            state.look()
            total, last = total + outcomes.size, contexts
            if state.done:
                break
        found = state.interval()
        hits += found.low - ROUNDING <= truth <= found.high + ROUNDING
    return Cell(hits / runs, total / runs)


def simulate_same_context(rates: Floats, runs: int, rng: np.random.Generator) -> Cell:
    return simulate_groups(rates, runs, lambda rows, _: rng.random((rows, 1)))


def simulate_own_chance(rates: Floats, runs: int, rng: np.random.Generator) -> Cell:
    return simulate_groups(rates, runs, lambda rows, columns: rng.random((rows, columns)))


GROUP_RULES: dict[str, Callable[[Floats, int, np.random.Generator], Cell]] = {
    "depend on the context": simulate_same_context,
    "independent of it": simulate_own_chance,
}


def simulate_algorithm_1(rates: Floats, rng: np.random.Generator) -> Cell:
    """Each group has inputs of its own here, so that dependence on the context is no matter."""
    rule = PaperRule(*GROUP_PROMISE)
    outcomes = [run_paper(rule, float(rate), PAPER_RUNS, rng) for rate in rates]
    scores = np.stack([score for _, score in outcomes])
    spread = scores.max(axis=0) - scores.min(axis=0)
    executions = np.sum([size for size, _ in outcomes], axis=0)
    covered = within(spread, float(rates.max() - rates.min()), rule.error)
    return Cell(float(covered.mean()), float(executions.mean()))


if __name__ == "__main__":
    main()
