"""What the harness adds to the price of a request: subjects of kind http.

    python benchmarks/http_service.py > table.md

The server runs in a process of its own on this machine; it parses each request and decides.
Single inputs are compared with the bare client library, which sends ready bodies at the same
concurrency and reads the answers without parsing them. Throughput is inputs per second of wall
time, CPU time is that of the client's process; of several rounds, taken in turn, the quickest
counts. Takes about a minute. (Not called `http.py`: that would hide Python's own module.)
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import aiohttp
import httpx
import numpy as np
from aiohttp import web

from themis import Integers, Reals, Schema
from themis.subjects.http.subject import HttpSubject

SCHEMA = Schema(
    sex=["female", "male"],
    race=["green", "purple"],
    age=Integers(18, 120),
    income=Reals(0, 200_000, step=1_000),
)
HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
CONCURRENCY = 16
REQUESTS = 3_000
ROUNDS = 7


@dataclass(frozen=True)
class Cost:
    """What one input cost, in seconds."""

    wall: float
    cpu: float


def main() -> None:
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    server = context.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{ours.recv()}"
    try:
        print("| what | measured | target | met |")
        print("|---|---|---|---|")
        compare_single_inputs(url)
        for rows in (100, 10_000):
            measure_lists(url, rows)
    finally:
        server.terminate()
        server.join()


def serve(pipe: Connection) -> None:
    """A service that decides on one input at /one and on a list at /many."""

    def decide(row: dict[str, Any]) -> int:
        return int(row["race"] == "green" or row["income"] > 9_000)

    async def one(request: web.Request) -> web.Response:
        document = {"decision": decide(json.loads(await request.read()))}
        return web.Response(text=json.dumps(document), content_type="application/json")

    async def many(request: web.Request) -> web.Response:
        document = {"outputs": [decide(row) for row in json.loads(await request.read())]}
        return web.Response(text=json.dumps(document), content_type="application/json")

    async def run() -> None:
        application = web.Application(client_max_size=2**24)
        application.add_routes([web.post("/one", one), web.post("/many", many)])
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        pipe.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(run())


def compare_single_inputs(url: str) -> None:
    subject = HttpSubject(SCHEMA, f"{url}/one", answer="/decision", concurrency=CONCURRENCY)
    codes = draw(REQUESTS)
    bodies = [json.dumps(SCHEMA.decode_row(row)).encode() for row in codes[: REQUESTS // 10]]

    def harness() -> Cost:
        return measure(lambda: subject.load(codes).run(), len(codes))

    def library(talk: Callable[[str, list[bytes]], Any], count: int) -> Callable[[], Cost]:
        sent = (bodies * 10)[:count]
        return lambda: asyncio.run(talk(f"{url}/one", sent))

    contestants = (harness, library(talk_aiohttp, REQUESTS), library(talk_httpx, REQUESTS // 10))
    rounds = [[contestant() for contestant in contestants] for _ in range(ROUNDS)]
    ours, bare, other = (
        Cost(min(cost.wall for cost in costs), min(cost.cpu for cost in costs))
        for costs in zip(*rounds, strict=True)
    )
    subject.close()
    at = f"{CONCURRENCY} at once"
    tell(
        f"single inputs, {at} ({rate(ours)}), against aiohttp alone ({rate(bare)}), throughput",
        bare.wall / ours.wall,
        0.8,
    )
    tell(
        f"the same, CPU time ({ours.cpu * 1e6:.0f} µs against {bare.cpu * 1e6:.0f} µs alone)",
        bare.cpu / ours.cpu,
        0.8,
    )
    tell(
        f"aiohttp alone against httpx alone ({rate(other)}), {at}, throughput",
        other.wall / bare.wall,
        1.0,
    )


def measure_lists(url: str, rows: int) -> None:
    """Batches that travel as lists, against the same lists sent as ready bodies."""
    subject = HttpSubject(SCHEMA, f"{url}/many", body="{inputs}", answer="/outputs")
    codes = draw(rows)
    inputs = [SCHEMA.decode_row(row) for row in codes]
    size = 1_000
    bodies = [json.dumps(inputs[n : n + size]).encode() for n in range(0, rows, size)]
    repeats = max(1, 10_000 // rows)

    def harness() -> Cost:
        return measure(lambda: [subject.load(codes).run() for _ in range(repeats)], rows * repeats)

    def library() -> Cost:
        async def talk() -> Cost:
            async with aiohttp.ClientSession(headers=HEADERS) as session:
                await post_all(session, f"{url}/many", bodies)
                started = time.perf_counter(), time.process_time()
                for _ in range(repeats):
                    await post_all(session, f"{url}/many", bodies)
                return cost_since(*started, rows * repeats)

        return asyncio.run(talk())

    rounds = [(harness(), library()) for _ in range(ROUNDS)]
    ours, bare = (min((each[n] for each in rounds), key=lambda c: c.wall) for n in (0, 1))
    subject.close()
    tell(
        f"lists, {rows:,} inputs ({rate(ours)}), against ready bodies ({rate(bare)}), throughput",
        bare.wall / ours.wall,
        0.5,
    )


async def talk_aiohttp(url: str, bodies: list[bytes]) -> Cost:
    connector = aiohttp.TCPConnector(limit=CONCURRENCY)
    async with aiohttp.ClientSession(connector=connector, headers=HEADERS) as session:
        await post_all(session, url, bodies[:CONCURRENCY])
        started = time.perf_counter(), time.process_time()
        await post_all(session, url, bodies)
        return cost_since(*started, len(bodies))


async def post_all(session: aiohttp.ClientSession, url: str, bodies: list[bytes]) -> None:
    queue = iter(bodies)

    async def work() -> None:
        for body in queue:
            async with session.post(url, data=body) as response:
                await response.read()

    await asyncio.gather(*[work() for _ in range(min(CONCURRENCY, len(bodies)))])


async def talk_httpx(url: str, bodies: list[bytes]) -> Cost:
    limits = httpx.Limits(max_connections=CONCURRENCY)
    async with httpx.AsyncClient(limits=limits, headers=HEADERS) as client:
        queue = iter(bodies)

        async def work() -> None:
            for body in queue:
                (await client.post(url, content=body)).raise_for_status()

        started = time.perf_counter(), time.process_time()
        await asyncio.gather(*[work() for _ in range(CONCURRENCY)])
        return cost_since(*started, len(bodies))


def measure(work: Callable[[], Any], inputs: int) -> Cost:
    started = time.perf_counter(), time.process_time()
    work()
    return cost_since(*started, inputs)


def cost_since(wall: float, cpu: float, inputs: int) -> Cost:
    return Cost((time.perf_counter() - wall) / inputs, (time.process_time() - cpu) / inputs)


def draw(count: int) -> Any:
    generator = np.random.default_rng(7)
    return np.column_stack([generator.integers(0, each.size, count) for each in SCHEMA])


def rate(cost: Cost) -> str:
    return f"{1 / cost.wall:,.0f} inputs/s"


def tell(what: str, ratio: float, target: float) -> None:
    met = "yes" if ratio >= target else "NO"
    print(f"| {what} | {ratio:.2f}× | ≥ {target:g}× | {met} |", flush=True)


if __name__ == "__main__":
    main()
