"""How many of a service's slots are busy with what an answer needs.

    python benchmarks/slots.py > table.md
    python benchmarks/slots.py 64 256

Counted: a subject in this process counts rounds, in each of which every slot runs one input; busy
is the number of executions that the answer consumed, divided by slots times rounds, without and
with running ahead. Measured: a real service on this machine, in a process of its own, answers each
request after a fixed delay; busy is executions × delay / (slots × wall time). What was run ahead
and not needed is not busy. The delay grows with the slots, so that neither client nor service is
short of a processor: 125 requests a second at most. Targets hold from 50 executions for each slot
on. Takes about fifteen minutes for all; numbers of slots can be named.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import sys
import time
from multiprocessing.connection import Connection
from typing import Any

from aiohttp import web
from numpy.typing import NDArray

from themis import Audit, Integers, Result, Schema
from themis.subjects.base import Answers, Batch, CodesBatch, Subject, Traits
from themis.subjects.http.subject import REQUESTS_EACH, HttpSubject

SCHEMA = Schema(
    sex=["f", "m"],
    race=["a", "b", "c", "d"],
    region=["n", "s", "e", "w", "x", "y"],
    married=["no", "yes"],
    age=Integers(18, 90),
    income=Integers(0, 200_000),
    savings=Integers(0, 1_000_000),
)
SLOTS = (4, 16, 64, 256)
SECONDS_PER_SLOT = 0.008  # of delay
LEAST = 50  # executions for each slot, from which on targets hold
AMONG = ["sex", "race", "region", "married"]
TARGETS = {("causal", 64): 0.85, ("search", 64): 0.75, ("causal", 256): 0.6, ("search", 256): 0.6}
ERRORS = {64: 0.07, 256: 0.05}  # smaller where more executions are wanted; else 0.1


def main() -> None:
    print(
        "| slots | question | executions | ahead | counted, without | with | measured | target | |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for slots in [int(each) for each in sys.argv[1:]] or SLOTS:
        with Server(SECONDS_PER_SLOT * slots) as url:
            for name in ("causal", "search"):
                tell(slots, name, url)


def tell(slots: int, name: str, url: str) -> None:
    """One line of the table."""
    shares = [count(slots, name, ahead=ahead) for ahead in (False, True)]
    share, result = measure(slots, name, url)
    target, said = TARGETS.get((name, slots)), ""
    if result.executions < LEAST * slots:
        said = f"fewer than {LEAST} executions for each slot"
    elif target is not None:
        said = "met" if share >= target else "MISSED"
    counts = f"{result.executions:,} | {result.timing.get('ahead', 0):,}"
    busy = " | ".join(f"{each:.2f}" for each in (*shares, share))
    print(f"| {slots} | {name} | {counts} | {busy} | {target or ''} | {said} |", flush=True)


def ask(audit: Audit, name: str) -> Result:
    """A causal score of 24 assignments, or all minimal sets among four characteristics."""
    if name == "causal":
        return audit.score([("race", "region")], ["causal"])
    return audit.search_all(0.1, ["causal"], AMONG)


def count(slots: int, name: str, *, ahead: bool) -> float:
    """The share of the slots that is busy if all inputs take the same time."""
    subject = Counting(slots)
    result = ask(Audit(subject, SCHEMA, seed=1, error=ERRORS.get(slots, 0.1), ahead=ahead), name)
    return result.executions / (slots * subject.rounds)


def measure(slots: int, name: str, url: str) -> tuple[float, Result]:
    """The same of a real service, and the result."""
    subject = HttpSubject(SCHEMA, url, concurrency=slots, timeout_seconds=60)
    with Audit(subject, SCHEMA, seed=1, error=ERRORS.get(slots, 0.1)) as audit:
        started = time.perf_counter()
        result = ask(audit, name)
        seconds = time.perf_counter() - started
    return result.executions * SECONDS_PER_SLOT / seconds, result


class Counting(Subject):
    """Decides in this process, and counts the rounds that so many slots would take."""

    kind = "counting"
    schema = SCHEMA

    def __init__(self, slots: int) -> None:
        self.traits = Traits(external=True, batch_size=REQUESTS_EACH * slots, slots=slots)
        self.rounds = 0

    def load(self, codes: NDArray[Any]) -> Batch:
        return CodesBatch(self.run, codes)

    def fingerprint(self) -> str:
        return ""

    def run(self, codes: NDArray[Any]) -> Answers:
        self.rounds += -(-len(codes) // self.traits.slots)
        return Answers([decide(SCHEMA.decode_row(row)) for row in codes])


class Server:
    """A service that answers after a delay, in a process of its own; within, its address."""

    def __init__(self, delay: float) -> None:
        self._ours, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(target=serve, args=(theirs, delay), daemon=True)

    def __enter__(self) -> str:
        self._process.start()
        return f"http://127.0.0.1:{self._ours.recv()}"

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.join()


def decide(person: dict[str, Any]) -> int:
    limit = 60_000 + 8_000 * (person["race"] == "a")
    limit += 60_000 * (person["race"] == "b" and person["region"] == "n")
    limit += 30_000 * (person["sex"] == "f" and person["married"] == "yes")
    return int(person["income"] > limit)


def serve(pipe: Connection, delay: float) -> None:
    async def one(request: web.Request) -> web.Response:
        person = json.loads(await request.read())
        await asyncio.sleep(delay)
        return web.Response(text=str(decide(person)), content_type="application/json")

    async def run() -> None:
        application = web.Application()
        application.add_routes([web.post("/", one)])
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1_024)
        await site.start()
        pipe.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(run())


if __name__ == "__main__":
    main()
