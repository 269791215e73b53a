"""What more processes bring, and what they cost: ratios measured in one run.

    python benchmarks/scaling.py [--quick] [--workers 2] [--simulated]

Each subject is measured here, in processes and on a Dask cluster of this machine; results must be
the same. Efficiency is the time here divided by that of so many workers, times their number; the
first second, which is always done here, counts as it is. Then the cost of a task for the driver,
how many inputs it hands out when subjects take no time, its memory, and what it takes for an
execution of whole scores. Ends with 1 if a target is missed or a result differs.

With `--simulated` nothing is timed: the same tasks are run here, and a clock counts what they would
take in so many processes. That does not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import os
import pickle
import resource
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import themis
from themis.engine import runner
from themis.engine.executors import spread
from themis.engine.executors.pools import ProcessPool
from themis.engine.executors.travel import Done
from themis.engine.variants import Drawn, Inputs, all_variants
from themis.inputs.assignments import Assignments
from themis.inputs.population import Population
from themis.inputs.streams import BaseInputs
from themis.subjects.functions import BatchFunction

SIZES = {"race": 5, "sex": 2, "age": 60, "job": 12, "income": 200, "savings": 500, "region": 30}
SCHEMA = themis.Schema({name: range(size) for name, size in SIZES.items()})
TARGET = 0.8


def slow_row(person: dict[str, Any]) -> bool:
    """About a millisecond of work for each input."""
    total = sum(n * n % 7 for n in range(9_000))
    points = person["income"] + person["savings"] / 10 + total % 3
    return bool(points > (110 if person["race"] == 0 else 125))


def pipeline() -> Any:
    """One-hot columns and a large forest: about 20 microseconds for each input."""
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.integers(0, size, 5_000) for name, size in SIZES.items()})
    target = frame.income + frame.savings / 10 > np.where(frame.race == 0, 110, 125)
    one_hot = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["race", "sex", "job", "region"]),
        remainder="passthrough",
    )
    forest = RandomForestClassifier(240, max_depth=12, random_state=0)
    return make_pipeline(one_hot, forest).fit(frame, target)


def timed(subject: Any, executor: str | None, error: float) -> tuple[float, Any, int]:
    started = time.perf_counter()
    with themis.Audit(subject, SCHEMA, seed=1, error=error, executor=executor) as audit:
        score = audit.causal("race")
    seconds = time.perf_counter() - started
    return seconds, (score.score, score.low, score.high, score.executions), score.executions


def efficiency(workers: int, quick: bool) -> bool:
    subjects: list[tuple[str, Any, float]] = [
        ("row function, 1 ms", slow_row, 0.05 if quick else 0.01),
        ("one-hot forest, 20 µs", pipeline(), 0.003 if quick else 0.0006),
    ]
    print("| subject | executions | here | where | there | efficiency | target | |")
    print("|---|---|---|---|---|---|---|---|")
    fine = True
    for name, subject, error in subjects:
        here, expected, executions = timed(subject, None, error)
        for where in (f"processes:{workers}", "dask://local"):
            there, found, _ = timed(subject, where, error)
            share = here / there / workers
            target = TARGET if where.startswith("processes") else 0.0
            verdict = "met" if share >= target else "MISSED"
            if found != expected:
                verdict = "DIFFERENT"
            fine = fine and verdict == "met"
            print(
                f"| {name} | {executions:,} | {here:.1f} s | {where} | {there:.1f} s | "
                f"{share:.2f} | {target or '–'} | {verdict} |",
                flush=True,
            )
    return fine


def nothing(people: themis.InputTable) -> Any:
    return np.zeros(len(people), dtype=bool)


def cost_of_tasks(workers: int, quick: bool) -> None:
    """CPU time of the driver alone for tasks without a subject: workers have their own."""
    print("\n| a task is | inputs | where | of the driver | bytes | handed out |")
    print("|---|---|---|---|---|---|")
    count = 2 * spread.MOST
    base = BaseInputs(Population.of(SCHEMA), 1)
    variants = all_variants(Assignments(SCHEMA, (0, 1)))
    rows = count // variants.width + 1
    drawn = Drawn.of(base, 0, np.arange(rows), variants, np.arange(variants.width))[:count]
    kinds: dict[str, Inputs] = {"codes": drawn.codes(), "drawn there": drawn}
    for where, name in product((f"processes:{workers}", "dask://local"), kinds):
        for size in (spread.MOST, spread.MOST // 4):
            with patch.object(spread, "MOST", size):
                _cost_of_tasks(where, name, kinds[name], 2_000_000 if quick else 20_000_000)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nPeak memory of the driver: {peak:.0f} MB.")


def _cost_of_tasks(where: str, name: str, inputs: Inputs, executions: int) -> None:
    pool = spread.pool_of(where)
    subject = spread.SpreadSubject(BatchFunction(nothing, SCHEMA), pool, lambda: None)
    subject._seconds, subject._inputs = spread.HERE_SECONDS, 10**8  # as if it had run so many
    batch = subject.load(inputs)
    for _ in range(3):
        batch.run()  # starts the processes, which then know what they need
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(executions // len(inputs)):
        batch.run()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    tasks = executions // len(inputs) * len(spread.cut(range(len(inputs)), 1e-9, pool.workers))
    subject.close()
    weight = len(pickle.dumps(inputs[: spread.MOST]))
    print(
        f"| {name} | {spread.MOST:,} | {where} | {1e3 * cpu / tasks:.2f} ms | {weight:,} | "
        f"{executions / wall / 1e6:.1f} million a second |",
        flush=True,
    )


def quick_rule(people: themis.InputTable) -> Any:
    """Race and job change about half of the decisions."""
    return people["income"] + 20 * people["race"] + 8 * people["job"] > 150


class Weighing(ProcessPool):
    """Also notes how many bytes its tasks are, once a process has what it needs."""

    def __init__(self, workers: int, weighs: bool) -> None:
        super().__init__(workers)
        self._weighs, self.sizes = weighs, list[int]()

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        if self._weighs and args[1] is None and getattr(args[2], "given", None) is None:
            self.sizes.append(len(pickle.dumps(args)))
        return super().submit(function, *args)


def cost_of_scores(workers: int, quick: bool) -> None:
    """CPU time of the driver for an execution of whole scores: the slope between two errors."""
    print("\n| score | executions | of the driver for each | bytes of a task: median, most |")
    print("|---|---|---|---|")
    coarse, fine = (0.002, 0.001) if quick else (0.001, 0.0003)
    linked = SCHEMA.where("race != 0 or job != 3")  # each group has inputs of its own
    for measure, against, schema in (
        ("group", "race", SCHEMA),
        ("group", "race", linked),
        ("causal", "race", SCHEMA),
        ("causal", "job", SCHEMA),
    ):
        spent, sizes = list[tuple[float, int]](), list[int]()
        for error, weighs in ((coarse, True), (coarse, False), (fine, False)):
            pool = Weighing(workers, weighs)
            with (
                patch.object(spread, "HERE_SECONDS", 0.0),
                patch.object(spread, "pool_of", lambda _, pool=pool: pool),
                themis.Audit(
                    themis.batch(quick_rule), schema, seed=1, error=error, executor="-"
                ) as one,
            ):
                cpu = time.process_time()
                score = getattr(one, measure)(against)
                spent.append((time.process_time() - cpu, score.executions))
            sizes += pool.sizes
        _, (few_seconds, few), (seconds, many) = spent
        each = 1e6 * (seconds - few_seconds) / (many - few)
        weight = f"{int(np.median(sizes)):,}, {max(sizes):,}"
        name = f"{measure}, {against}{', linked' if schema is linked else ''}"
        print(f"| {name} | {many:,} | {each:.3f} µs | {weight} |", flush=True)


# Assumed: to start a process (its imports take 0.35 s of CPU time), and of the driver for a task.
START_SECONDS, TASK_SECONDS = 0.4, 0.0015


CLOCK = SimpleNamespace(now=0.0, here=True)  # `here`: whether this process works, not another


def simulated_row(person: dict[str, Any]) -> bool:
    """A millisecond of the simulated clock."""
    CLOCK.now += 0.001 if CLOCK.here else 0.0
    points = person["income"] + person["savings"] / 10
    return bool(points > (110 if person["race"] == 0 else 125))


class SimulatedTask(Future[Any]):
    """Done once the simulated clock says so."""

    end = 0.0

    def done(self) -> bool:
        return CLOCK.now >= self.end


class SimulatedPool(ProcessPool):
    """Runs tasks at once in this process, and counts when they would have ended elsewhere."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self._free: list[float] = []  # from when on each process has nothing to do

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        self._free = self._free or [CLOCK.now + START_SECONDS] * self.workers
        CLOCK.now, CLOCK.here = CLOCK.now + TASK_SECONDS, False
        done = function(*args)
        CLOCK.here = True
        seconds = 0.001 * len(args[-1]) if isinstance(done, Done) else 0.0
        first = min(range(self.workers), key=self._free.__getitem__)
        self._free[first] = max(self._free[first], CLOCK.now) + seconds
        task = SimulatedTask()
        task.set_result(replace(done, seconds=seconds) if isinstance(done, Done) else done)
        task.end = self._free[first]
        return task

    def wait(self, tasks: Iterable[SimulatedTask], *_: Any) -> Any:
        """The task that ends first, once that has happened."""
        first = min(tasks, key=lambda task: task.end)
        CLOCK.now = max(CLOCK.now, first.end)
        return SimpleNamespace(done={first})

    def stop(self) -> None:
        return


def simulated(workers: int, quick: bool) -> bool:
    """Efficiency for a row function of a millisecond, by a clock that only counts its work."""
    fine, clock = True, SimpleNamespace(perf_counter=lambda: CLOCK.now, monotonic=time.monotonic)
    print("| executions | here | there | efficiency | target | |\n|---|---|---|---|---|---|")
    for error in (0.0148,) if quick else (0.0148, 0.01):
        CLOCK.now, pool = 0.0, SimulatedPool(workers)
        with (
            patch.object(spread, "time", clock),
            patch.object(runner, "time", clock),
            patch.object(spread, "wait", pool.wait),
            patch.object(spread, "pool_of", lambda _, pool=pool: pool),
        ):
            _, found, executions = timed(simulated_row, "simulated", error)
        there, here = CLOCK.now, 0.001 * executions
        _, expected, _ = timed(simulated_row, None, error)
        share = here / there / workers
        verdict = "met" if share >= TARGET else "MISSED"
        verdict = verdict if found == expected else "DIFFERENT"
        fine = fine and verdict == "met"
        times = f"{here:.1f} s | {there:.1f} s | {share:.3f} | {TARGET}"
        print(f"| {executions:,} | {times} | {verdict} |", flush=True)
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="shorter runs")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--simulated", action="store_true", help="count work instead of time")
    options = parser.parse_args()
    steps: list[Callable[[int, bool], bool | None]] = [efficiency, cost_of_tasks, cost_of_scores]
    if options.simulated:
        steps = [simulated]
    results = [step(options.workers, options.quick) for step in steps]
    return 1 if False in results else 0


if __name__ == "__main__":
    sys.exit(main())
