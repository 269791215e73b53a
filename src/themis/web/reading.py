"""Pages to read: the list of runs, and results."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from themis.results.saved import result_from_dict
from themis.show.html import Html, empty, table, tag
from themis.show.reports.document import Space
from themis.show.reports.formats import FORMATS
from themis.show.reports.page import SECTIONS, contents, header
from themis.show.reports.sections import pairs_section
from themis.show.words.wording import subject_title
from themis.web.history import Run
from themis.web.layout import shell
from themis.web.opened import address, asked_run, shown_result
from themis.web.pairs import preview
from themis.web.site import check_change, posted, site_of

LARGEST_RESULT = 50_000_000


async def home(request: Request) -> Response:
    """What was measured in this project, the latest first."""
    site = site_of(request)
    runs = site.history.runs()
    drop = tag(
        "p",
        tag("label", "Open a saved result: ", for_="result"),
        empty("input", type="file", id="result", accept=".json", data_send="/results"),
        class_="drop",
    )
    shown = _list(runs) if runs else tag("p", "Nothing was measured here yet.")
    return HTMLResponse(
        shell("Results", drop, shown, form_token=site.keys.form, scripts=["send.js"])
    )


def _list(runs: list[Run]) -> Html:
    rows = (
        (
            tag("a", each.title, href=address(each)),
            time.strftime("%Y-%m-%d %H:%M", time.localtime(each.began)),
            each.verdict or each.state,
            tag("code", each.hash[:12]),
        )
        for each in runs
    )
    return table("What was measured", ("Run", "When", "Verdict", "Hash"), rows)


async def take_result(request: Request) -> Response:
    """Keep a result that somebody opens; the file's name is in a header."""
    site = site_of(request)
    check_change(request)
    name = request.headers.get("x-themis-name", "result")
    try:
        result = result_from_dict(json.loads(await request.body()))
    except (ValueError, RecursionError):
        raise HTTPException(400, f"{name} is no JSON.") from None
    run = site.history.open_result(name, result, rows=site.rows)
    return Response(address(run), media_type="text/plain")


def read(request: Request) -> Response:
    """One result: the sections of the report, of which pairs and combinations have more pages."""
    site, run = site_of(request), asked_run(request)
    result = shown_result(site, run)
    title = subject_title(result)
    shown = [
        preview(run, result, tries=not site.read_only)
        if show is pairs_section
        else show(result, Space())
        for show in SECTIONS
    ]
    return HTMLResponse(
        shell(
            title,
            contents(shown),
            tag("p", *_exports(run), class_="actions"),
            *shown,
            header=header(result, title),
            form_token=site.keys.form,
        )
    )


def _exports(run: Run) -> Iterator[Html]:
    yield Html("Export: ")
    for each in FORMATS.values():
        if each.suffix:
            yield tag("a", each.name, href=f"/results/{run.name}/export/{each.name}")
            yield Html(" ")


async def export(request: Request) -> Response:
    """A result in one of the formats of the report, as a file."""
    site, run = site_of(request), asked_run(request)
    chosen = FORMATS.get(request.path_params["format"])
    result = site.history.result(run)
    if chosen is None or result is None:
        raise HTTPException(404, "There is no such format.")
    name = f"{run.name}{chosen.suffix}"
    return Response(
        chosen.render(result, rows=site.rows),
        media_type="application/octet-stream",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


async def forget(request: Request) -> Response:
    """Remove a run from the history."""
    await posted(request)
    site_of(request).history.forget(asked_run(request))
    return RedirectResponse("/", 303)


ROUTES = [
    Route("/", home),
    Route("/results", take_result, methods=["POST"]),
    Route("/results/{name}", read),
    Route("/results/{name}/export/{format}", export),
    Route("/results/{name}/forget", forget, methods=["POST"]),
]
