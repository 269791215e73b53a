"""How much the measurement costs beside the subject itself, as ratios measured in one run.

    python benchmarks/speed.py [--quick]

For each subject the whole measurement of a causal and a group score is timed; then the very
inputs that it executed are rebuilt and handed to the subject in one go (a row function gets them
as ready dictionaries in a bare loop). The ratio is what Themis adds. Then 10⁸ executions of a
vectorised subject, with the peak of the process's memory.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # CPU time of one thread is what is compared

import numpy as np

import themis

SIZES = {
    "age": 10, "workclass": 8, "weight": 70, "education": 16, "marital": 7, "occupation": 14,
    "relation": 6, "race": 5, "sex": 2, "gain": 100, "loss": 40, "hours": 100, "country": 40,
}  # fmt: skip
WEIGHTS = [0.2, -0.1, 0.01, 0.15, 0.1, 0.05, -0.2, -0.4, 0.3, 0.03, -0.02, 0.02, 0.01]
SCHEMA = themis.Schema({name: range(size) for name, size in SIZES.items()})


def vectorised(table: themis.InputTable) -> Any:
    """A scoring rule in numpy: all columns, weighted, through a logistic curve."""
    points = np.zeros(len(table))
    for weight, column in zip(WEIGHTS, table.keys(), strict=True):
        points += weight * table[column]
    chance = 1 / (1 + np.exp(-(points - 4)))
    return (chance > 0.5) & (table["hours"] > 5)


def row(person: dict[str, Any]) -> bool:
    """A small but not trivial rule, one person at a time."""
    points = person["education"] * 2 + person["hours"] / 4
    if person["age"] < 3 and person["relation"] != 2:
        points -= 8
    if person["gain"] > 50 or person["occupation"] in (1, 4, 9):
        points += 6
    limit = 30 if person["race"] == 0 else 33
    return bool(points - person["loss"] / 10 > limit)


def scorecard(person: dict[str, Any]) -> bool:
    """A scorecard as programs of this kind have them: a dozen rules, one person at a time."""
    points = 0.0
    for limit, gain in ((2, 4), (4, 9), (7, 12), (9, 6)):
        if person["age"] >= limit:
            points = points + gain
    points += 1.5 * min(person["education"], 12) + 0.3 * max(person["hours"] - 35, 0)
    if person["occupation"] in (1, 4, 9, 11):
        points += 8
    elif person["workclass"] == 3:
        points -= 4
    if person["marital"] in (0, 2) and person["relation"] != 5:
        points += 5 if person["sex"] == 0 else 3
    wealth = person["gain"] * 0.4 - person["loss"] * 0.9
    points += max(-10.0, min(wealth, 20.0))
    if person["country"] > 30 and person["race"] in (1, 3):
        points -= 6
    return points > 38


def tree() -> Any:
    """A decision tree as scikit-learn trains it on such data."""
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(0, size, 20_000) for size in SIZES.values()])
    target = rows[:, 0] * 3 + rows[:, 3] * 2 + rows[:, 11] - 4 * rows[:, 7] > 60
    return DecisionTreeClassifier(max_depth=12, random_state=0).fit(rows, target)


class Recorder:
    """Keeps the inputs that a run executes, so that they can be run again in one go."""

    def __init__(self, audit: themis.Audit) -> None:
        self.codes: list[Any] = []
        runner = audit.runner
        execute = runner.execute

        def recording(batch: Any, input_at: Any, count: int) -> Any:
            cells = execute(batch, input_at, count)
            self.codes.append(input_at(np.arange(count)))
            return cells

        runner.execute = recording  # type: ignore[method-assign]


def seconds(*actions: Callable[[], Any], repeats: int) -> list[float]:
    """The best of several runs of each, by turns: the others were disturbed."""
    best = [float("inf")] * len(actions)
    for _ in range(repeats):
        for place, action in enumerate(actions):
            gc.collect()
            started = time.process_time()
            action()
            best[place] = min(best[place], time.process_time() - started)
    return best


def in_one_go(subject: Any, codes: Any) -> Callable[[], Any]:
    """The subject on the same rows, prepared before the clock starts."""
    if isinstance(subject, themis.batch):
        columns = {
            n: np.ascontiguousarray(codes[:, i], dtype=np.int64) for i, n in enumerate(SIZES)
        }
        table = themis.InputTable(columns, len(codes))
        return lambda: subject.function(table)
    if hasattr(subject, "predict"):
        array = np.ascontiguousarray(codes, dtype=float)
        return lambda: subject.predict(array)
    people = [dict(zip(SIZES, values, strict=True)) for values in codes.tolist()]

    def loop() -> list[Any]:
        return [subject(person) for person in people]

    return loop


def compare(name: str, subject: Any, against: str, measure: str, error: float, limit: float,
            repeats: int) -> str:  # fmt: skip
    def whole() -> Any:
        audit = themis.Audit(subject, SCHEMA, seed=1, confidence=0.99, error=error)
        return getattr(audit, measure)(against)

    recorded = themis.Audit(subject, SCHEMA, seed=1, confidence=0.99, error=error)
    recorder = Recorder(recorded)
    getattr(recorded, measure)(against)
    codes = np.concatenate(recorder.codes)
    del recorder
    mine, bare = seconds(whole, in_one_go(subject, codes), repeats=repeats)
    ratio = mine / bare
    verdict = "met" if ratio <= limit else "MISSED"
    return (
        f"| {name} | {measure} {against} | {len(codes):,} | {1e9 * bare / len(codes):,.0f} | "
        f"{1e9 * mine / len(codes):,.0f} | {ratio:.2f} | {limit:g} | {verdict} |"
    )


def memory(executions: int) -> str:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    audit = themis.Audit(
        themis.batch(vectorised), SCHEMA, seed=1, error=0.0001, max_executions=executions
    )
    started = time.process_time()
    result = audit.group("race")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rate = result.executions / (time.process_time() - started)
    unit = 1024 if sys.platform == "linux" else 1024 * 1024
    return (
        f"{result.executions:,} executions of a vectorised subject: peak {peak // unit} MB in all "
        f"(limit 300; {before // unit} MB before), {rate / 1e6:.1f} M executions/s"
    )


CASES: list[tuple[str, Callable[[], Any], str, str, float, float]] = [
    ("vectorised", lambda: themis.batch(vectorised), "race", "group", 0.001, 1.3),
    ("vectorised", lambda: themis.batch(vectorised), "race", "causal", 0.001, 1.3),
    ("vectorised", lambda: themis.batch(vectorised), "education", "causal", 0.001, 1.3),
    ("decision tree", tree, "race", "group", 0.001, 1.3),
    ("decision tree", tree, "race", "causal", 0.001, 1.3),
    ("decision tree", tree, "education", "causal", 0.001, 1.3),
    ("row function, scorecard", lambda: scorecard, "race", "group", 0.002, 2.5),
    ("row function, scorecard", lambda: scorecard, "race", "causal", 0.002, 2.5),
    ("row function, tiny", lambda: row, "race", "group", 0.002, 2.5),
]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a tenth of the executions")
    parser.add_argument("--case", type=int, help="only this one, in this process")
    options = parser.parse_args()
    if options.case is not None:
        name, make, against, measure, error, limit = CASES[options.case]
        scale = 3.0 if options.quick else 1.0
        print(compare(name, make(), against, measure, error * scale, limit, 9))
        return
    print(memory(10**7 if options.quick else 10**8), "\n", flush=True)
    print("| subject | measured | executions | bare ns | with Themis ns | ratio | limit | |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for case in range(len(CASES)):  # each in a process whose memory no other has used
        quick = ["--quick"] if options.quick else []
        subprocess.run([sys.executable, __file__, "--case", str(case), *quick], check=True)


if __name__ == "__main__":
    main()
