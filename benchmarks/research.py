"""What else could save executions: four ideas, simulated with fixed seeds.

    python benchmarks/research.py [spreads failures last-look limits]

Each experiment compares the rule that Themis has with another one: mean rows or executions, and
how often the interval holds. `research.md` says what came of them. Takes some minutes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from math import ceil, log

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from themis.results.verdicts import precisions
from themis.statistics.intervals import bet_fractions, binomial_inclusion, clopper_pearson
from themis.statistics.proportions import TAIL_SHARE, ProportionRule, mixture_ends

SEED = 20170904
Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


# --- a. large spreads of groups ---
PILOT = 60  # rows from which a bet is chosen; it counts on those after them


def spreads() -> Iterator[str]:
    """Two groups that share their contexts: other weights of the bets, and a learned bet."""
    yield (
        "| confidence | difference in a row | best fixed n | equal weights | most on two "
        "bets | most on a learned bet | the best bet, if it were known |"
    )
    yield "|---|---|---|---|---|---|---|"
    cases = {"1 with .6": (0.6, 0.0), "1 with .9": (0.9, 0.0), "1 with .3, −1 with .1": (0.3, 0.1),
             "1 with .02": (0.02, 0.0), "1 and −1 with .21": (0.21, 0.21)}  # fmt: skip
    for confidence in (0.95, 0.99):
        for name, (up, down) in cases.items():
            variance = up + down - (up - down) ** 2
            fixed = ceil(variance * (stats.norm.ppf(0.5 + confidence / 2) / 0.05) ** 2)
            equal = np.full(len(BETS), 1 / len(BETS))
            two = np.full(len(BETS), 0.2 / (len(BETS) - 2))
            two[[0, 3]] = 0.3, 0.5
            cells = [f"{confidence:.0%}", name, f"{fixed:,}"]
            for weights, learned, bet in (
                (equal, 0.0, None), (two, 0.0, None), (equal, 0.7, None), (equal, 1.0, variance)
            ):  # fmt: skip
                rows, held = bet_runs(up, down, confidence, weights, learned, bet)
                cells.append(f"{rows:,.0f} ({rows / fixed:.1f} ×), holds {held:.3f}")
            yield f"| {' | '.join(cells)} |"


def bet_runs(
    up: float,
    down: float,
    confidence: float,
    weights: Floats,
    learned: float,
    variance: float | None,
    runs: int = 400,
) -> tuple[float, float]:
    """The mean number of rows until the ends are 2 · 0.05 apart, and how often they hold.

    A part `learned` of the evidence is that of one bet, the best for a variance that is given or
    that of the first rows.
    """
    rng = np.random.default_rng(SEED)
    counts, first = np.zeros((runs, 3)), np.zeros((runs, 3))
    bet = np.full(runs, bet_for(variance) if variance is not None else 0.0)
    rows, held = np.zeros(runs), np.ones(runs, dtype=bool)
    going, n, bar = np.arange(runs), 0, log(2 / (1 - confidence))
    while len(going) and n < 20_000:
        step = PILOT if not n else ceil(0.15 * n)
        counts[going] += rng.multinomial(step, [up, 1 - up - down, down], len(going))
        n += step
        if learned and variance is None and n == PILOT:
            first = counts.copy()
            shares = (counts + 1 / 3) / (n + 1)
            bet = bet_for(shares[:, 0] + shares[:, 2] - (shares[:, 0] - shares[:, 2]) ** 2)
        later = counts - first
        high = upper(counts[going], later[going], bet[going], bar, weights, learned)
        back = slice(None, None, -1)
        low = -upper(
            counts[going][:, back], later[going][:, back], bet[going], bar, weights, learned
        )
        done = high - low <= 0.1
        rows[going[done]] = n
        held[going[done]] = (low[done] <= up - down) & (up - down <= high[done])
        going = going[~done]
    return float(rows.mean()), float(held.mean())


def bet_for(variance: float | Floats) -> Floats:
    """What to bet on each row so that an end is soonest within 0.05 of the mean."""
    return np.asarray(np.minimum(0.05 / np.maximum(variance, 0.01), 0.49))


BETS = np.array(bet_fractions(0.05))


def upper(
    counts: Floats, later: Floats, bet: Floats, bar: float, weights: Floats, learned: float
) -> Floats:
    """The upper end of a mean: the root in μ of the evidence against it, by bisection."""
    low, high = np.full(len(counts), -1.0), np.full(len(counts), 1.0 - 1e-9)
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(30):
            middle = (low + high) / 2
            parts = log_wealth(counts.T, BETS[:, None] / (1 - middle), middle)
            parts = parts + np.log((1 - learned) * weights)[:, None]
            own = log_wealth(later.T, bet, middle) + np.log(learned)
            evidence = np.logaddexp(np.logaddexp.reduce(parts, axis=0), own)
            low, high = np.where(evidence >= bar, (low, middle), (middle, high))
    return high


def log_wealth(counts: Floats, bet: Floats, mean: Floats) -> Floats:
    """The log of what bets on "the mean of D is below this" have won."""
    plus, zero, minus = counts
    lost = np.log(np.maximum(1 - bet * (1 - mean), 0.0))
    won = zero * np.log1p(bet * mean) + minus * np.log1p(bet * (1 + mean))
    return np.asarray(np.where(plus > 0, plus * lost, 0.0) + won)


# --- b. executions that fail ---
def failures() -> Iterator[str]:
    """The planned one-sided tests on certain and on possible flips, instead of the mixture."""
    yield (
        "| confidence | true score | fail | without any | before | holds | planned tests | holds |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for confidence in (0.95, 0.99):
        for share in (0.1, 0.5):
            for failing in (0.01, 0.05, 0.2):
                rule = ProportionRule(confidence, 0.05)
                plain, _ = failing_runs(rule, share, 0.0, planned)
                now, held = failing_runs(rule, share, failing, by_mixture)
                then, then_held = failing_runs(rule, share, failing, planned)
                cells = [f"{confidence:.0%}", f"{share:g}", f"{failing:.0%}", f"{plain:,.0f}"]
                cells += [f"{now:,.0f}", f"{held:.4f}", f"{then:,.0f}", f"{then_held:.4f}"]
                yield f"| {' | '.join(cells)} |"


Ends = Callable[[ProportionRule, Counts, Counts, int], tuple[NDArray[np.bool_], Floats, Floats]]


def failing_runs(
    rule: ProportionRule, share: float, failing: float, ends: Ends, runs: int = 4_000
) -> tuple[float, float]:
    """Mean rows, and how often the truth is between the ends.

    The worst case: all inputs that fail would flip, or none of them; so the true share is that of
    the certain flips, or of the possible ones, and the worse of both counts.
    """
    rng = np.random.default_rng(SEED)
    counts = np.zeros((runs, 3), dtype=np.int64)
    rows, low, high = np.zeros(runs), np.zeros(runs), np.ones(runs)
    going, n = np.arange(runs), 0
    chances = [share * (1 - failing), failing, (1 - share) * (1 - failing)]
    for target in further(rule):
        counts[going] += rng.multinomial(target - n, chances, len(going))
        n = target
        certain, unknown = counts[going, 0], counts[going, 1]
        done, below, above = ends(rule, certain, certain + unknown, n)
        rows[going[done]], low[going[done]], high[going[done]] = n, below[done], above[done]
        going = going[~done]
        if not len(going):
            break
    holds = [((low <= truth) & (truth <= high)).mean() for truth in (chances[0], sum(chances[:2]))]
    return float(rows.mean()), float(min(holds))


def further(rule: ProportionRule) -> Iterator[int]:
    yield from rule.looks()
    n = rule.max_samples
    while True:
        n = ceil(1.1 * n)
        yield n


def by_mixture(
    rule: ProportionRule, low: Counts, high: Counts, n: int
) -> tuple[NDArray[np.bool_], Floats, Floats]:
    """As it was: ends that hold at any time, once they are ± error of what is certain."""
    below, above = mixture_ends(low, high, np.full(len(low), n), 1 - rule.confidence)
    below, above = np.asarray(below), np.asarray(above)
    known = low == high
    done = (below >= low / n - rule.error) & (above <= high / n + rule.error)
    plain = known & inclusion(rule, low, n)
    ends = (
        np.where(plain, low / n - rule.error, below),
        np.where(plain, low / n + rule.error, above),
    )
    return done | plain, *ends


def planned(
    rule: ProportionRule, low: Counts, high: Counts, n: int
) -> tuple[NDArray[np.bool_], Floats, Floats]:
    """The tail tests of the rule, each end on counts of its own."""
    done = inclusion(rule, low, n) & inclusion(rule, high, n)
    return done, low / n - rule.error, high / n + rule.error


def inclusion(rule: ProportionRule, successes: Counts, n: int) -> NDArray[np.bool_]:
    if n >= rule.max_samples:
        return np.ones(len(successes), dtype=bool)
    gamma = TAIL_SHARE * (1 - rule.confidence)
    return np.asarray(binomial_inclusion(successes, np.full(len(successes), n), rule.error, gamma))


# --- c. a last look that is planned ---
def last_look() -> Iterator[str]:
    """The half width at a known budget, today and with a part of α for a test there."""
    yield (
        "| confidence | observed | rows that the budget allows | today | with 10 % of α "
        "| 50 % | all of α |"
    )
    yield "|---|---|---|---|---|---|---|"
    for confidence in (0.95, 0.99):
        for share in (0.1, 0.5):
            for n in (50, 100, 200, 400):
                x, alpha = round(share * n), 1 - confidence
                low, high = mixture_ends(x, x, n, alpha)
                cells = [f"{confidence:.0%}", f"{share:g}", f"{n}", f"{float(high - low) / 2:.3f}"]
                for part in (0.1, 0.5, 1.0):
                    low, high = clopper_pearson(x, n, part * alpha)
                    cells.append(f"{float(high - low) / 2:.3f}")
                yield f"| {' | '.join(cells)} |"
    yield ""
    yield "What the other looks pay for it, mean rows at 99 % ± 0.05 with so much of α:"
    yield ""
    yield "| true score | all of α | 90 % | 50 % |"
    yield "|---|---|---|---|"
    for share in (0.02, 0.1, 0.5):
        rows = [failing_runs(ProportionRule(1 - 0.01 * part, 0.05), share, 0.0, planned)[0]
                for part in (1.0, 0.9, 0.5)]  # fmt: skip
        yield f"| {share:g} | {' | '.join(f'{each:,.0f}' for each in rows)} |"


# --- d. limits that can't be decided ---
LIMIT = 0.2
GIVE_UP = (0.0, 0.05, 0.2)  # when the chance that any later round decides is below


def limits() -> Iterator[str]:
    """The rounds of a check, given up when the chance that the next ones decide is small."""
    yield (
        "| true score less the limit | "
        + " | ".join(
            f"{'all rounds' if not each else f'given up below {each:.0%}'}: decided, mean rows"
            for each in GIVE_UP
        )
        + " |"
    )
    yield "|---|" + "---|" * len(GIVE_UP)
    for apart in (0.0, 0.002, 0.005, 0.01):
        cells = [f"{apart:g}"]
        for least in GIVE_UP:
            decided, rows = check_runs(LIMIT + apart, least)
            cells.append(f"{decided:.2f}, {rows:,.0f}")
        yield f"| {' | '.join(cells)} |"


def check_runs(share: float, least: float, runs: int = 400) -> tuple[float, float]:
    """How often a check at 99 % ± 0.05 is decided, and the rows that it takes."""
    rng = np.random.default_rng(SEED)
    decided, rows = 0, 0
    for _ in range(runs):
        x = n = 0
        for precision in (plan := list(precisions(0.05, 0.99))):
            rule = ProportionRule(precision.confidence, precision.error)
            for target in rule.looks():
                if target > n:
                    x, n = x + rng.binomial(target - n, share), target
                if n == target and rule.done(x, n):
                    break
            if abs(x / n - LIMIT) > precision.error:
                decided += 1
                break
            finest = plan[-1].error
            if chance_to_decide(x, n, finest) < least:
                break
        rows += n
    return decided / runs, rows / runs


def chance_to_decide(x: int, n: int, finest: float) -> float:
    """The chance that the score is further from the limit than the finest round can tell."""
    share = (x + 1) / (n + 2)
    deviation = (share * (1 - share) / n) ** 0.5
    inside = stats.norm.cdf((LIMIT + finest - share) / deviation)
    return float(1 - inside + stats.norm.cdf((LIMIT - finest - share) / deviation))


EXPERIMENTS = {"spreads": spreads, "failures": failures, "last-look": last_look,
               "limits": limits}  # fmt: skip


def main() -> None:
    for name in sys.argv[1:] or EXPERIMENTS:
        print(f"\n## {name}\n", flush=True)
        for line in EXPERIMENTS[name]():
            print(line, flush=True)


if __name__ == "__main__":
    main()
