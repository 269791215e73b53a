"""Pages to measure: what is asked, the run as it goes on, and its end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from themis.show.html import tag
from themis.web.layout import button, choice, labelled, posting, shell
from themis.web.opened import address, asked_run
from themis.web.runs import EVENTS, lines_from
from themis.web.site import Site, posted, site_of

COMMANDS = {
    "audit": "Everything: each protected characteristic, their pairs, and a search",
    "score": "Scores of the protected characteristics",
    "check": "The checks of the file",
}
POLL = 0.2  # seconds between two looks at what a run writes
MOST_STREAMS = 32


async def ask(request: Request) -> Response:
    """The form of a run."""
    site = site_of(request)
    config = site.config()
    if not site.is_confirmed:
        return HTMLResponse(_confirm(site, str(config.subject)))
    what = labelled("command", "Measure", choice("command", list(COMMANDS.items())))
    form = posting("/run", site.keys.form, what, button("Start"))
    return HTMLResponse(shell("Measure", form, here="/run", form_token=site.keys.form))


def _confirm(site: Site, subject: str) -> str:
    """Nothing of a file is run before somebody saw what it is."""
    return shell(
        "May this be run?",
        tag("p", "The file names a program. It is run on this machine, with your rights:"),
        tag("pre", subject),
        posting("/confirm", site.keys.form, button("Yes, this is my program")),
        here="/run",
        form_token=site.keys.form,
    )


async def confirm(request: Request) -> Response:
    """Somebody agreed that what the file names is run."""
    await posted(request)
    site = site_of(request)
    site.confirmed.add(site.mark())
    return RedirectResponse("/run", 303)


async def start(request: Request) -> Response:
    """Put a run into the queue."""
    fields, site = await posted(request), site_of(request)
    if not site.is_confirmed:
        return RedirectResponse("/run", 303)
    command = fields.get("command", [""])[0]
    if command not in COMMANDS:
        raise HTTPException(400, "There is no such measurement.")
    run = site.runs.add(command, [command, str(site.file)])
    return RedirectResponse(f"/runs/{run.name}", 303)


async def watch(request: Request) -> Response:
    """A run as it goes on."""
    site, run = site_of(request), asked_run(request)
    if run.is_over:
        return RedirectResponse(address(run), 303) if run.hash else HTMLResponse(_failed(site, run))
    stop = posting(f"/runs/{run.name}/stop", site.keys.form, button("Stop, and keep what is known"))
    live = tag("div", tag("p", run.state), id="live", data_run=run.name, aria_live="polite")
    return HTMLResponse(
        shell(run.title, live, stop, form_token=site.keys.form, scripts=["live.js"])
    )


def _failed(site: Site, run: object) -> str:
    message = getattr(run, "message", "")
    return shell("The run ended", tag("pre", message), form_token=site.keys.form)


async def stop(request: Request) -> Response:
    """End a run."""
    await posted(request)
    run = asked_run(request)
    site_of(request).runs.stop(run)
    return RedirectResponse(f"/runs/{run.name}", 303)


_streams = 0


async def events(request: Request) -> Response:
    """What a run writes, as server-sent events; one that lost its way goes on where it was."""
    if _streams >= MOST_STREAMS:
        raise HTTPException(429, "Too many pages watch runs of this server; close some.")
    run, site = asked_run(request), site_of(request)
    start = int(request.headers.get("last-event-id") or 0)
    place = site.history.folder(run) / EVENTS

    async def told() -> AsyncIterator[str]:
        global _streams
        _streams += 1
        try:
            at = start
            while not await request.is_disconnected():
                now = site.history.find(run.name)
                for behind, line in lines_from(place, at):
                    at = behind
                    yield f"id: {at}\ndata: {line}\n\n"
                if now is None or now.is_over:
                    where = "/" if now is None else address(now)
                    yield f"event: over\ndata: {json.dumps(where)}\n\n"
                    return
                await asyncio.sleep(POLL)
        finally:
            _streams -= 1

    return StreamingResponse(told(), media_type="text/event-stream")


ROUTES = [
    Route("/run", ask),
    Route("/run", start, methods=["POST"]),
    Route("/confirm", confirm, methods=["POST"]),
    Route("/runs/{name}", watch),
    Route("/runs/{name}/stop", stop, methods=["POST"]),
    Route("/runs/{name}/events", events),
]
