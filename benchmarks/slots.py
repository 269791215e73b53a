"""How many of a service's slots are busy: the share of the time that requests were being decided.

    python benchmarks/slots.py > table.md
    python benchmarks/slots.py 64 256

A real service on this machine, in a process of its own, answers each request after a fixed delay.
Busy is the number of executions that the answer consumed, times the delay, divided by the number
of slots and the wall time: what was run ahead and not needed does not count. The delay grows with
the slots, so that neither the client nor the service is short of a processor. Questions have at
least 50 executions for each slot, unless the table says so; targets hold for those. Takes about
ten minutes for all slots; numbers of slots can be named.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from aiohttp import web

from themis import Audit, Integers, Result, Schema
from themis.subjects.http.subject import HttpSubject

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
SECONDS_PER_SLOT = 0.002  # of delay: at most 500 requests a second
LEAST = 50  # executions for each slot, from which on targets hold
Question = Callable[[Audit], Result]


def causal(error: float) -> Question:
    """The causal score of a set of 24 assignments."""
    return lambda audit: _with(audit, error).score([("race", "region")], ["causal"])


def search(error: float) -> Question:
    """All minimal sets among four characteristics."""
    among = ["sex", "race", "region", "married"]
    return lambda audit: _with(audit, error).search_all(0.1, ["causal"], among)


def _with(audit: Audit, error: float) -> Audit:
    audit.settings = audit.settings.changed(error=error)
    return audit


# By slots: what is asked, and the share that is to be busy.
QUESTIONS: dict[str, tuple[Callable[[float], Question], dict[int, float], dict[int, float]]] = {
    "causal score": (
        causal, {4: 0.1, 16: 0.1, 64: 0.05, 256: 0.03}, {64: 0.85, 256: 0.6}
    ),
    "search": (
        search, {4: 0.1, 16: 0.1, 64: 0.05, 256: 0.03}, {64: 0.75, 256: 0.6}
    ),
}  # fmt: skip


def main() -> None:
    chosen = [int(each) for each in sys.argv[1:]] or SLOTS
    print("| slots | question | executions | ahead | busy without | busy | target | |")
    print("|---|---|---|---|---|---|---|---|")
    for slots in chosen:
        delay = SECONDS_PER_SLOT * slots
        with Server(delay) as url:
            for name, (make, errors, targets) in QUESTIONS.items():
                compare(url, slots, delay, name, make(errors.get(slots, 0.05)), targets.get(slots))


def compare(
    url: str, slots: int, delay: float, name: str, question: Question, target: float | None
) -> None:
    """One line of the table: the same question without and with running ahead."""
    plain, _ = ask(url, slots, delay, question, ahead=False)
    share, result = ask(url, slots, delay, question, ahead=True)
    said = ""
    if result.executions < LEAST * slots:
        said = f"fewer than {LEAST} executions for each slot"
    elif target is not None:
        said = "met" if share >= target else "MISSED"
    ahead = result.timing.get("ahead", 0)
    wanted = "" if target is None else f"{target:.0%}"
    print(
        f"| {slots} | {name} | {result.executions:,} | {ahead:,} | {plain:.0%} | {share:.0%} "
        f"| {wanted} | {said} |",
        flush=True,
    )


def ask(
    url: str, slots: int, delay: float, question: Question, *, ahead: bool
) -> tuple[float, Result]:
    """The share of the slots that was busy with what was consumed, and the result."""
    subject = HttpSubject(SCHEMA, url, concurrency=slots, timeout_seconds=60)
    with Audit(subject, SCHEMA, seed=1, ahead=ahead) as audit:
        started = time.perf_counter()
        result = question(audit)
        seconds = time.perf_counter() - started
    return result.executions * delay / (slots * seconds), result


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
