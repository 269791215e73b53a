"""How often is somebody convicted who should not be? Simulated subjects whose truth is known.

    python benchmarks/verdicts.py > table.md            # under an hour on two cores
    python benchmarks/verdicts.py --quick               # minutes
    python benchmarks/verdicts.py --part noise --only "whole check" --runs 50

A cell fails when so many of its runs end with a false verdict that the lower Clopper–Pearson end,
at 0.01 divided by the number of cells, exceeds 1 − confidence. Tables go to standard output,
progress to standard error. Ends with 1 if a cell fails. docs/verdicts.md says what is simulated.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the subjects are the tests' own

from tests.simulations.counting import Tally, simulate
from tests.simulations.covers import cover
from tests.simulations.noisy import FACTORS, Cell

POWER_SHARE = 5  # one run in so many is of a subject that does discriminate


def main() -> int:
    options = parse()
    failed = 0
    with ProcessPoolExecutor(options.jobs) as pool:
        for part in options.part or PARTS:
            failed += PARTS[part](pool, options)
    return 1 if failed else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="pairs of factors, fewer runs")
    parser.add_argument("--runs", type=int, help="runs of each cell")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--only", default="", help="cells whose name holds all of these words")
    parser.add_argument("--part", choices=list(PARTS), action="append", help="what to simulate")
    return parser.parse_args()


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- noise --------------------------------------------------------------------------------


def noise_cells(quick: bool) -> Iterator[tuple[Cell, int]]:
    """Cells with their numbers of runs; strict ones, at 99 %, where runs are quick."""
    for factors in cover(FACTORS, 2 if quick else 3):
        yield Cell(**factors), 60 if quick else 400
    if not quick:
        for factors in cover(FACTORS, 2):
            if factors["task"] in ("score", "check"):
                yield Cell(**factors, confidence=0.99), 2_000


def noise_part(pool: ProcessPoolExecutor, options: argparse.Namespace) -> int:
    """One line for each cell; the number of those that fail."""
    cells = [each for each in noise_cells(options.quick) if matches(each[0].name, options.only)]
    cells = [(cell, options.runs or runs) for cell, runs in cells]
    print(
        "| truth | noise | values | budget | task | measure | domain | confidence | "
        "false verdicts | | undecided | executions | discriminating: convicted | executions |"
    )
    print("|---" * 14 + "|")
    failed = 0
    for (cell, runs), (tally, power) in zip(cells, pool.map(run_noise, cells), strict=True):
        fails = tally.surely_above(1 - cell.confidence, cells=len(cells))
        failed += fails
        mark = "**fails**" if fails else "holds"
        progress(f"{mark:9} {tally.convicted:4}/{runs} {cell.name}")
        row = [
            cell.truth if cell.truth == "fair" else "0.8 × limit",
            f"{cell.noise:.1%} {cell.place}",
            f"{cell.values}",
            cell.budget,
            cell.task,
            cell.measure,
            cell.domain,
            f"{cell.confidence:.0%}",
            f"{tally.convicted} of {tally.runs}",
            mark,
            f"{tally.undecided / tally.runs:.0%}",
            f"{tally.executions / tally.runs:,.0f}",
            f"{power.convicted} of {power.runs}",
            f"{power.executions / power.runs:,.0f}",
        ]
        print(f"| {' | '.join(row)} |", flush=True)
    print(f"\n{failed} of {len(cells)} cells fail\n", flush=True)
    return failed


def run_noise(job: tuple[Cell, int]) -> tuple[Tally, Tally]:
    """Subjects that must not be convicted, and some that should be."""
    cell, runs = job
    guilty = replace(cell, guilty=True)
    return simulate(cell.run, runs), simulate(guilty.run, max(runs // POWER_SHARE, 1))


def matches(name: str, words: str) -> bool:
    return all(word in name for word in words.split())


PARTS = {"noise": noise_part}


if __name__ == "__main__":
    sys.exit(main())
