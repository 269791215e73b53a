"""Pages of runs: all of them, one as it goes on, its stream of events, its end, and going on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from themis.show.html import Html, empty, folded, literal, table, tag
from themis.show.reports.document import chip
from themis.web.measuring import fields_of
from themis.web.runs import EVENTS, Run, latest_from, lines_from
from themis.web.site import Site, address, asked_run, button, posted, site_of

HEADS = ("Run", "When", "Verdict", "")
# States that the list shows: the kind of chip, and the word.
STATES = {
    "waiting": ("pruned", "waiting"),
    "running": ("calm", "running"),
    "stopped": ("open", "stopped"),
    "lost": ("open", "lost"),
    "failed": ("grave", "failed"),
}
FIGURES = (
    ("executions", "Executions"),
    ("pace", "A second"),
    ("elapsed", "Time so far"),
    ("left", "Time left, about"),
)
# A row of the chart, which the script fills in.
ROW = tag(
    "template",
    tag(
        "div",
        tag("span", class_="name"),
        tag("span", class_="ends"),
        tag("svg", empty("rect", y=0, height=10, rx=1), viewBox="0 0 100 10",
            preserveAspectRatio="none", aria_hidden="true"),
        tag("small"),
        tag("span", class_="sets"),
        class_="bar",
    ),
    id="row",
)  # fmt: skip


async def home(request: Request) -> Response:
    """What was measured in this project: what goes on first, then the latest."""
    site = site_of(request)
    runs = site.history.runs()
    drop = tag(
        "p",
        tag("label", "Open a saved result: ", for_="result"),
        empty("input", type="file", id="result", accept=".json", data_send="/results"),
        class_="drop",
    )
    listed = table(
        "What was measured", HEADS, ([*_row(site, each)] for each in runs), kind="chart runs"
    )
    shown = listed if runs else tag("p", "Nothing was measured here yet: ",
                                    tag("a", "describe what is tested", href="/describe"), ", or ",
                                    tag("a", "measure", href="/run"), ".")  # fmt: skip
    return site.page("Results", drop, shown, scripts=["send.js"])


def _row(site: Site, run: Run) -> Iterator[Any]:
    yield tag("a", tag("bdi", run.title), href=address(run))
    yield tag("time", run.when)
    about = [f"seed {run.seed}"] * (run.seed is not None) + [run.hash[:12]] * bool(run.hash)
    said = run.verdict or run.message[:200]
    yield tag("div", state_chip(run), " ", said, tag("small", " · ".join(about)))
    stopping = button("Stop", kind="second", aria_label=f"Stop {run.title}")
    if site.read_only or not (run.is_over or site.runs.place(run) is not None):
        yield ""
    elif run.is_over:
        yield _forgetting(site, run)
    else:
        yield site.form(f"/runs/{run.name}/stop", stopping)


def _forgetting(site: Site, run: Run) -> Html:
    """A second click forgets: nothing brings a result back."""
    sure = button("Remove it and its files", kind="second", aria_label=f"Remove {run.title}")
    return folded("Forget", site.form(f"/results/{run.name}/forget", sure))


async def watch(request: Request) -> Response:
    """A run as it goes on; of one that is over, its result or why there is none."""
    site, run = site_of(request), asked_run(request)
    if run.is_over:
        return RedirectResponse(address(run), 303) if run.hash else _ended(site, run)
    state = tag("p", state_chip(run), " ", tag("span", _now(site, run), id="now"), class_="state")
    figures = (
        tag("div", tag("dt", name), tag("dd", "–", id=key), class_="figure")
        for key, name in FIGURES
    )
    live = (
        tag("p", "", class_="unseen", id="told", role="status"),
        state,
        tag("dl", *figures, class_="figures"),
        tag("p", "", id="failures"),
        _changes(site, run),
        tag("div", id="chart"),
        ROW,
    )
    again = tag("noscript", tag("p", tag("a", "Look again", href=f"/runs/{run.name}")))
    about = {"data_run": run.name, "data_expected": run.expected, "data_limit": limit_of(run)}
    watched = tag("div", *live, id="live", **about)
    return site.page(run.title, again, watched, header=_header(run), scripts=["live.js"])


def state_chip(run: Run) -> Html:
    """How far a run is; nothing of one that came to its end."""
    return chip(*STATES[run.state]) if run.state in STATES else Html("")


def _header(run: Run) -> list[Html]:
    asked = tag("code", literal(" ".join(run.command)))
    return [tag("h1", run.title), tag("p", "themis ", asked, f" · {run.when}", class_="about")]


def limit_of(run: Run) -> str | None:
    """After how many seconds a run is to end, if it is."""
    return fields_of(run.command).get("max_seconds")


def _now(site: Site, run: Run) -> str:
    """Where a run stands, in one line."""
    found = [*latest_from(site.history.folder(run) / EVENTS)]
    if found:
        return str(json.loads(found[-1][1])["line"])
    before = site.runs.place(run)
    if run.state == "running" or before is None:
        return "starting" if run.state == "running" else "waits in another window's queue"
    return "starts next" if before < 1 else f"starts after {before} other{'s' * (before > 1)}"


def _changes(site: Site, run: Run) -> Html:
    """What can be done with a run of this server."""
    if site.runs.place(run) is None:
        said = "It was started by another server of this page: it is stopped there."
        return tag("p", said, class_="faint")
    stop = button("Stop, and keep what is known", kind="second")  # it may begin at any moment
    return site.form(f"/runs/{run.name}/stop", stop)


def _ended(site: Site, run: Run) -> Response:
    """Why there is no result."""
    said = tag("pre", literal(run.message)) if run.message else ""
    chip = () if run.is_cut else (state_chip(run), " ")
    nothing = tag("p", *chip, "Nothing was learned.")
    content = nothing, said, afterwards(site, run)
    return site.page(run.title, *content, header=_header(run))


def afterwards(site: Site, run: Run) -> Html:
    """What can be done with a run that is over: go on, ask again, forget it."""
    if site.read_only:
        return Html("")
    forms = [_forgetting(site, run)]
    told = [tag("p", state_chip(run))] * run.is_cut
    if run.command:
        name = "Go on" if run.is_cut else "Measure again"
        forms.insert(0, site.form(f"/runs/{run.name}/again", button(name)))
        forms.insert(1, tag("a", "Change what is asked", href=f"/run?from={run.name}"))
    return tag("div", *told, tag("div", *forms, class_="buttons"), class_="afterwards")


async def again(request: Request) -> Response:
    """The same command once more; what is kept of its answers is not run again."""
    await posted(request)
    site, run = site_of(request), asked_run(request)
    if not run.command:
        raise HTTPException(400, "This result was opened, not measured here.")
    if not site.is_confirmed:
        return RedirectResponse(f"/run?from={run.name}", 303)
    new = site.runs.add(run.title, run.command, mark=site.mark(), expected=run.expected)
    return RedirectResponse(f"/runs/{new.name}", 303)


async def stop(request: Request) -> Response:
    """End a run."""
    await posted(request)
    run = asked_run(request)
    site_of(request).runs.stop(run)
    return RedirectResponse(f"/runs/{run.name}", 303)


async def forget(request: Request) -> Response:
    """Remove a run from the history."""
    await posted(request)
    site, run = site_of(request), asked_run(request)
    if not run.is_over:
        raise HTTPException(409, "The run goes on: stop it first.")
    site.history.forget(run)
    return RedirectResponse("/", 303)


_streams = 0


async def events(request: Request) -> Response:
    """What a run writes, as server-sent events; one that lost its way goes on where it was.

    A new one begins with the latest of each kind: what those before said is no longer so.
    """
    if _streams >= 32:
        raise HTTPException(429, "Too many pages watch runs of this server; close some.")
    run, site = asked_run(request), site_of(request)
    seen = request.headers.get("last-event-id", "")
    start = int(seen) if seen.isdecimal() and len(seen) < 16 else 0
    place = site.history.folder(run) / EVENTS

    async def told() -> AsyncIterator[str]:
        global _streams
        _streams += 1
        at, waited = start, ""
        try:
            while not await request.is_disconnected():
                now = site.history.find(run.name)
                for behind, line in lines_from(place, at) if at else latest_from(place):
                    at = behind
                    yield f"id: {at}\ndata: {line}\n\n"
                if now is None or now.is_over:
                    where = "/" if now is None else address(now)
                    yield f"event: over\ndata: {json.dumps(where)}\n\n"
                    return
                if not at and (waits := f"{now.state}: {_now(site, now)}") != waited:
                    waited = waits
                    yield f"event: waits\ndata: {json.dumps([now.state, _now(site, now)])}\n\n"
                await asyncio.sleep(0.2)
        finally:
            _streams -= 1

    return StreamingResponse(told(), media_type="text/event-stream")


ROUTES = [
    Route("/", home),
    Route("/results/{name}/forget", forget, methods=["POST"]),
    Route("/runs/{name}", watch),
    Route("/runs/{name}/stop", stop, methods=["POST"]),
    Route("/runs/{name}/again", again, methods=["POST"]),
    Route("/runs/{name}/events", events),
]
