"""How often is somebody convicted who should not be? Simulated subjects whose truth is known.

    python benchmarks/verdicts.py > table.md            # under an hour on two cores
    python benchmarks/verdicts.py --quick               # about two minutes
    python benchmarks/verdicts.py --part noise --only "whole check" --runs 50

A cell fails when so many of its runs end with a false verdict that the lower Clopper–Pearson end,
at 0.01 divided by the number of cells, exceeds 1 − confidence, or when a run crashes. Tables go to
standard output, progress to standard error. Ends with 1 if a cell fails. verdicts.md beside it says
what is simulated.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # subjects are those of the tests

from tests.simulations.at_random import cells
from tests.simulations.counting import Simulation, Tally, cover, simulate
from tests.simulations.dependent import cases
from tests.simulations.families import Family, Together, Unchanged, at_limits
from tests.simulations.noisy import FACTORS, Cell

SLICE = 10  # runs that a process makes in one go
POWER_SHARE = 5  # for so many runs there is one of a subject that does discriminate


def main() -> int:
    options = parse()
    failed = 0
    with ProcessPoolExecutor(options.jobs) as pool:
        for part in options.part or PARTS:
            failed += PARTS[part](Bench(pool, options.quick, options.runs, options.only))
    return 1 if failed else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="pairs of factors, fewer runs")
    parser.add_argument("--runs", type=int, help="runs of each cell")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--only", default="", help="cells whose name holds all of these words")
    parser.add_argument("--part", choices=list(PARTS), action="append", help="what to simulate")
    return parser.parse_args()


@dataclass(frozen=True)
class Bench:
    """What is run, and where."""

    pool: ProcessPoolExecutor
    quick: bool
    asked_runs: int | None
    only: str

    def wants(self, simulation: Simulation) -> bool:
        """Whether its name holds all of the words that were given."""
        return all(word in simulation.name for word in self.only.split())

    def chosen(self, jobs: Sequence[tuple[Any, int]]) -> list[tuple[Any, int]]:
        """Those that are wanted, with as many runs as are."""
        return [(each, self.asked_runs or runs) for each, runs in jobs if self.wants(each)]

    def tallies(self, jobs: Sequence[tuple[Simulation, int]]) -> Iterator[Tally]:
        """The tally of each, in order; all processes work on slices of them."""
        slices = [
            [
                self.pool.submit(simulate, each, min(SLICE, runs - first), first=first, go_on=True)
                for first in range(0, runs, SLICE)
            ]
            for each, runs in jobs
        ]
        started = time.perf_counter()
        for (each, _), parts in zip(jobs, slices, strict=True):
            tally = sum((part.result() for part in parts), start=Tally())
            seconds = time.perf_counter() - started
            crashes = f"  {tally.crashed} crashed" if tally.crashed else ""
            counts = f"{tally.convicted:4} of {tally.runs:4}{crashes}"
            progress(f"{seconds:5.0f} s  {counts}  {each.name}")
            yield tally


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def heading(*names: str) -> None:
    print(f"| {' | '.join(names)} |")
    print("|---" * len(names) + "|", flush=True)


def line(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def ending(failed: int, cells: int) -> int:
    print(f"\n{failed} of {cells} cells fail.\n", flush=True)
    return failed


# --- noise --------------------------------------------------------------------------------


def noise_cells(quick: bool) -> Iterator[tuple[Cell, int]]:
    """Cells with their numbers of runs; strict ones, at 99 %, where runs are quick."""
    for factors in cover(FACTORS, 2 if quick else 3):
        yield Cell(**factors), 40 if quick else 200
    if not quick:
        for factors in cover(FACTORS, 2):
            if factors["task"] in ("score", "check"):
                yield Cell(**factors, confidence=0.99), 2_000


def noise_part(bench: Bench) -> int:
    """False verdicts of noisy subjects, and how often others are convicted for the same price."""
    jobs = bench.chosen(list(noise_cells(bench.quick)))
    guilty = [(replace(each, guilty=True), max(runs // POWER_SHARE, 1)) for each, runs in jobs]
    both = [job for pair in zip(jobs, guilty, strict=True) for job in pair]
    counted = list(bench.tallies(both))
    print("### Noise\n")
    heading(
        *("true score", "noise", "values", "budget", "task", "measure", "domain", "confidence"),
        *("false verdicts", "", "undecided", "executions", "power", "executions"),
    )
    failed = 0
    for (cell, _), tally, power in zip(jobs, counted[::2], counted[1::2], strict=True):
        fails = tally.surely_above(1 - cell.confidence, cells=len(jobs))
        fails = fails or tally.crashed + power.crashed > 0
        failed += fails
        line(
            "0" if cell.truth == "fair" else "0.8 × limit",
            f"{100 * cell.noise:g} % {cell.place}",
            f"{cell.values}",
            cell.budget,
            cell.task,
            cell.measure,
            cell.domain,
            f"{100 * cell.confidence:.0f} %",
            f"{tally.convicted} of {tally.runs:,}",
            mark(fails),
            f"{100 * tally.undecided / tally.runs:.0f} %",
            f"{tally.price:,.0f}",
            f"{power.convicted} of {power.runs:,}",
            f"{power.price:,.0f}",
        )
    return ending(failed, len(jobs))


def mark(fails: bool) -> str:
    return "**fails**" if fails else "holds"


# --- answers at random ------------------------------------------------------------------------


def random_part(bench: Bench) -> int:
    """False verdicts on excesses of fair subjects that draw answers, and the price of true ones."""
    jobs = bench.chosen(cells(4 if bench.quick else 60))
    guilty = [(replace(each, guilty=True), max(runs // POWER_SHARE, 1)) for each, runs in jobs]
    counted = list(bench.tallies([*jobs, *guilty]))
    print("### Answers at random\n")
    heading("subject", "task", "budget", "confidence", "false verdicts", "", "undecided",
            "executions", "power", "executions")  # fmt: skip
    failed = 0
    halves = counted[: len(jobs)], counted[len(jobs) :]
    for (cell, _), tally, power in zip(jobs, *halves, strict=True):
        fails = tally.surely_above(1 - cell.confidence, cells=len(jobs))
        fails = fails or tally.crashed + power.crashed > 0
        failed += fails
        line(
            cell.kind,
            cell.task,
            f"{cell.budget or 'none'}",
            f"{100 * cell.confidence:.0f} %",
            f"{tally.convicted} of {tally.runs:,}",
            mark(fails),
            f"{100 * tally.undecided / tally.runs:.0f} %",
            f"{tally.price:,.0f}",
            f"{power.convicted} of {power.runs:,}",
            f"{power.price:,.0f}",
        )
    return ending(failed, len(jobs))


# --- order and neighbours -----------------------------------------------------------------


def dependent_part(bench: Bench) -> int:
    """Subjects that remember or look at others: none is convicted, and those that show are told."""
    runs = 1 if bench.quick else 10
    jobs = bench.chosen([(each, runs) for each in cases()])
    print("### Order and neighbours\n")
    heading("subject", "kind", "task", "domain", "convicted", "reported", "", "executions")
    failed = 0
    for (case, _), tally in zip(jobs, bench.tallies(jobs), strict=True):
        fails = tally.convicted > 0 or (case.shows and tally.reported < tally.runs)
        fails = fails or tally.crashed > 0
        failed += fails
        counts = [f"{count} of {tally.runs}" for count in (tally.convicted, tally.reported)]
        parts = (case.subject, case.kind, case.task, case.domain)
        line(*parts, *counts, mark(fails), f"{tally.price:,.0f}")
    return ending(failed, len(jobs))


# --- many sets, and nothing changed -------------------------------------------------------

FAMILIES = {  # sets: runs, and with --quick
    "causal": {5: (300, 15), 20: (40, 4), 50: (10, 0)},
    "group": {5: (300, 15), 20: (100, 4), 50: (10, 0)},
}


def family_part(bench: Bench) -> int:
    """Search checks of many sets, each exactly at the limit."""
    jobs = bench.chosen(
        [
            (Family(sets, measure), quick if bench.quick else runs)
            for measure, sizes in FAMILIES.items()
            for sets, (runs, quick) in sizes.items()
            if quick or not bench.quick
        ]
    )
    print("### Many sets at the limit\n")
    heading("sets", "measure", "confidence", "violated", "", "undecided", "executions")
    failed = 0
    for (family, _), tally in zip(jobs, bench.tallies(jobs), strict=True):
        fails = tally.surely_above(1 - family.confidence, cells=len(jobs)) or tally.crashed > 0
        failed += fails
        line(
            f"{family.sets}",
            family.measure,
            f"{100 * family.confidence:.0f} %",
            f"{tally.convicted} of {tally.runs}",
            mark(fails),
            f"{tally.undecided} of {tally.runs}",
            f"{tally.price:,.0f}",
        )
    return ending(failed, len(jobs))


TOGETHER = {  # task, measure: runs, and with --quick, of ten scores or checks
    ("score", "causal"): (200, 10),
    ("score", "group"): (200, 10),
    ("check", "causal"): (40, 2),
    ("check", "group"): (40, 2),
}


def together_part(bench: Bench) -> int:
    """Commands with ten scores or checks: is all that is said right, with `family`?"""
    jobs = bench.chosen(
        [
            (
                Together(10, measure, task, error=0.1 if task == "score" else 0.4),
                counts[bench.quick],
            )
            for (task, measure), counts in TOGETHER.items()
        ]
    )
    alone = [(replace(each, family=False), runs) for each, runs in jobs]
    counted = list(bench.tallies([*jobs, *alone]))
    print("### Several scores of one command\n")
    heading("of", "measure", "confidence", "any is wrong", "", "executions", "without family",
            "executions")  # fmt: skip
    failed = 0
    halves = counted[: len(jobs)], counted[len(jobs) :]
    for (each, _), tally, other in zip(jobs, *halves, strict=True):
        fails = tally.surely_above(1 - each.confidence, cells=len(jobs))
        fails = fails or tally.crashed + other.crashed > 0
        failed += fails
        line(
            f"{each.members} {each.task}s",
            each.measure,
            f"{100 * each.confidence:.0f} %",
            f"{tally.convicted} of {tally.runs}",
            mark(fails),
            f"{tally.price:,.0f}",
            f"{other.convicted} of {other.runs}",
            f"{other.price:,.0f}",
        )
    return ending(failed, len(jobs))


CHEAP = ("score", "search")  # tasks of which 2,000 runs take a minute or two


def limit_part(bench: Bench) -> int:
    """Scores right at a limit: how often is one cleared, or accepted, that should not be?"""
    cells = [(each, 20 if bench.quick else 200) for each in at_limits()]
    if not bench.quick:
        cells += [(each, 2_000) for each in at_limits(0.99) if each.task in CHEAP]
    jobs = bench.chosen(cells)
    print("### Right at a limit\n")
    heading("false verdict", "task", "measure", "confidence", "runs", "", "undecided", "executions")
    failed = 0
    for (each, _), tally in zip(jobs, bench.tallies(jobs), strict=True):
        fails = tally.surely_above(1 - each.confidence, cells=len(jobs)) or tally.crashed > 0
        failed += fails
        line(
            each.claim,
            each.task,
            each.measure,
            f"{100 * each.confidence:.0f} %",
            f"{tally.convicted} of {tally.runs:,}",
            mark(fails),
            f"{100 * tally.undecided / tally.runs:.0f} %",
            f"{tally.price:,.0f}",
        )
    return ending(failed, len(jobs))


def unchanged_part(bench: Bench) -> int:
    """Two runs with different seeds, compared."""

    def runs(domain: str, noise: float) -> int:
        return 200 if noise or domain == "sampled" else 20  # without chance all are the same

    jobs = bench.chosen(
        [
            (
                Unchanged(how, task, measure, domain, noise),
                6 if bench.quick else runs(domain, noise),
            )
            for how in ("diff", "baseline")
            for task in ("score", "search")
            for measure in ("causal", "group")
            for domain in ("sampled", "whole")
            for noise in (0.0, 0.01)
        ]
    )
    print("### Nothing changed\n")
    heading(
        *("comparison", "of", "measure", "domain", "noise"),
        *("called new", "", "undecided", "executions"),
    )
    failed = 0
    for (each, _), tally in zip(jobs, bench.tallies(jobs), strict=True):
        fails = tally.surely_above(2 * (1 - each.confidence), cells=len(jobs))
        fails = fails or tally.crashed > 0
        failed += fails
        line(
            each.how,
            each.task,
            each.measure,
            each.domain,
            f"{100 * each.noise:g} %",
            f"{tally.convicted} of {tally.runs}",
            mark(fails),
            f"{tally.undecided} of {tally.runs}",
            f"{tally.price:,.0f}",
        )
    return ending(failed, len(jobs))


PARTS: dict[str, Callable[[Bench], int]] = {
    "noise": noise_part,
    "random": random_part,
    "order": dependent_part,
    "families": family_part,
    "together": together_part,
    "limits": limit_part,
    "unchanged": unchanged_part,
}

if __name__ == "__main__":
    sys.exit(main())
