"""How cost grows with the size of what is given: CPU time and peak memory of one score.

    python benchmarks/growth.py [--quick] [--only constraints]

Each measurement has a process of its own: it makes a schema of that size, measures one score of a
vectorised subject (of a search: decides all sets), and reports the CPU time without imports and
the peak of its memory with all. The limits are absolute, since what grows is of interest: they
were set for one core of a shared machine and are generous but for the last row of each table.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # CPU time of one thread is what is compared


@dataclass(frozen=True)
class Growth:
    """One thing that grows: its sizes, and limits of seconds and megabytes for the largest."""

    what: str
    sizes: tuple[int, ...]
    seconds: float
    megabytes: int
    measure: Callable[[int], Callable[[], Any]]  # makes what is timed


def _others(count: int) -> dict[str, Any]:
    return {f"c{number}": range(10) for number in range(1, count + 1)}


def _favour(table: Any) -> Any:
    """Depends on the sex of some, whatever else there is."""
    return (table["sex"] == 0) | (table["c1"] > 5)


def _audit(schema: Any, subject: Callable[[Any], Any] = _favour, **settings: Any) -> Any:
    import themis

    return themis.Audit(themis.batch(subject), schema, seed=1, **settings)


def characteristics(size: int) -> Callable[[], Any]:
    import themis

    schema = themis.Schema({"sex": [0, 1], **_others(size - 1)})
    return lambda: _audit(schema).causal("sex")


def values(size: int) -> Callable[[], Any]:
    import themis

    schema = themis.Schema({"sex": [0, 1], "place": range(size), **_others(12)})

    def favour(table: Any) -> Any:
        return _favour(table) & (table["place"] % 7 > 1)

    return lambda: _audit(schema, favour).causal("place")


def groups(size: int) -> Callable[[], Any]:
    import themis

    schema = themis.Schema({"place": range(size), **_others(12)})

    def favour(table: Any) -> Any:
        return table["place"] * 7919 % size % 10 + table["c1"] > 9

    return lambda: _audit(schema, favour, max_assignments=size).group("place")


def constraints(size: int) -> Callable[[], Any]:
    import themis

    schema = themis.Schema({"sex": [0, 1], **_others(420)})
    pairs = [f"c{2 * number + 1} + c{2 * number + 2} < 17" for number in range(size)]
    limited = schema.where(*pairs) if size else schema
    return lambda: _audit(limited).causal("c1,c2")


def bins(size: int) -> Callable[[], Any]:
    import themis

    starts = [10_000 * number // size for number in range(1, size)]
    schema = themis.Schema({"age": themis.Integers(0, 9_999, bins=starts), **_others(12)})

    def favour(table: Any) -> Any:
        return (table["age"] // 777 + table["c1"]) % 7 > 3

    return lambda: _audit(schema, favour).causal("age")


def sets(size: int) -> Callable[[], Any]:
    import themis

    count = 1
    while count * (count + 1) // 2 < size:
        count += 1
    protected = {f"p{number}": themis.Values([0, 1], protected=True) for number in range(count)}
    schema = themis.Schema({**protected, **_others(3)})

    def favour(table: Any) -> Any:
        return (table["p0"] == 1) | (table["c1"] > 4)

    return lambda: _audit(schema, favour).search(0.3, max_size=2)


GROWTHS = {
    growth.what: growth
    for growth in (
        Growth("characteristics", (5, 13, 100, 300, 1_000, 10_000), 10.0, 300, characteristics),
        Growth("values", (2, 100, 10_000, 1_000_000), 1.0, 150, values),
        Growth("groups", (2, 100, 1_000), 5.0, 300, groups),
        Growth("constraints", (0, 25, 100, 200), 2.0, 200, constraints),
        Growth("bins", (2, 100, 1_000), 1.0, 100, bins),
        Growth("sets", (10, 100, 1_000, 5_000, 10_000), 20.0, 300, sets),
    )
}


def peak() -> float:
    """The most memory that this process held, in MB."""
    unit = 1024 if sys.platform == "linux" else 1024 * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def one(what: str, size: int) -> str:
    """A row of the table: what it took, in this process."""
    growth = GROWTHS[what]
    import themis.audit.audit  # noqa: F401 - imports are no part of what grows

    action = growth.measure(size)
    started = time.process_time()
    action()
    seconds, memory = time.process_time() - started, peak()
    met = seconds <= growth.seconds and memory <= growth.megabytes
    limit = f"{growth.seconds:g} s, {growth.megabytes} MB"
    verdict = "met" if met else "MISSED"
    return f"| {what} | {size:,} | {seconds:.2f} | {memory:.0f} | {limit} | {verdict} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="all but the largest size of each")
    parser.add_argument("--only", choices=GROWTHS, help="only what grows so")
    parser.add_argument("--size", type=int, help="only this size, in this process")
    options = parser.parse_args()
    if options.size is not None:
        print(one(options.only or "characteristics", options.size), flush=True)
        return
    print("| what grows | size | CPU seconds | peak MB | limit | |")
    print("|---|---|---|---|---|---|", flush=True)
    for growth in GROWTHS.values():
        if options.only in (None, growth.what):
            for size in growth.sizes[: -1 if options.quick else None]:
                command = [sys.executable, __file__, "--only", growth.what, "--size", str(size)]
                subprocess.run(command, check=False)


if __name__ == "__main__":
    main()
