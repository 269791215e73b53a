"""Pages of results: opened, read, exported, and compared."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from urllib.parse import unquote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from themis.results.comparison import compare
from themis.results.model import Result
from themis.results.saved import result_from_dict
from themis.results.withheld import withheld
from themis.show.html import Html, folded, tag
from themis.show.reports import comparisons
from themis.show.reports.document import Space
from themis.show.reports.formats import FORMATS
from themis.show.reports.page import EXHIBITS, SECTIONS, contents, header
from themis.show.reports.sections import pairs_section, sets_section
from themis.show.words.headlines import capital
from themis.show.words.wording import subject_title
from themis.web import combinations, pairs
from themis.web.history import Run
from themis.web.layout import button, choice, labelled, shell
from themis.web.running import afterwards
from themis.web.site import Site, address, asked_run, check_change, shown_result, site_of

FEWEST = 2  # results that can be compared
SAVED = ("json", ".json", "the result itself, to open again or to compare")


async def take_result(request: Request) -> Response:
    """Keep a result that somebody opens; the file's name is in a header."""
    site = site_of(request)
    check_change(request)
    name = unquote(request.headers.get("x-themis-name", "result"))
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
    own: dict[object, Callable[[], Html]] = {
        pairs_section: lambda: pairs.preview(site, run, result),
        sets_section: lambda: combinations.preview(run, result),
    }
    shown = [own[show]() if show in own else show(result, Space()) for show in SECTIONS]
    shown.insert(EXHIBITS, pairs.pinned_section(site, run, result))
    after = afterwards(site, run)
    return HTMLResponse(
        shell(
            title,
            after if run.is_cut else "",
            _actions(run, result),
            contents(shown),
            *shown,
            "" if run.is_cut else after,
            header=header(result, title),
            form_token=site.keys.form,
        )
    )


def _actions(run: Run, result: Result) -> Html:
    """What can be done with a result, before its sections."""
    here = address(run)
    links = [(f"{here}/decide", "Limits"), (f"/compare?after={run.name}", "Compare")]
    if result.searches:
        links.insert(0, (f"{here}/combinations", "Combinations"))
    if pairs.Pairs(result).all:
        links.insert(0, (f"{here}/pairs", "Pairs"))
    made = (tag("a", text, href=place) for place, text in links)
    return tag("nav", *made, _exports(here), class_="doing", aria_label="This result")


def _exports(here: str) -> Html:
    """Every format as a file, and what it is for."""
    known = [(each.name, each.suffix, each.about) for each in FORMATS.values() if each.suffix]
    items = (
        tag("li", tag("a", capital(about), href=f"{here}/export/{name}"), " ", tag("small", suffix))
        for name, suffix, about in (*known, SAVED)
    )
    return folded("Export", tag("ul", *items), kind="menu")


async def export(request: Request) -> Response:
    """A result in one of the formats of the report, or as it is saved, as a file."""
    site, run = site_of(request), asked_run(request)
    name, result = request.path_params["format"], shown_result(site, run)
    if name == SAVED[0]:
        suffix, text = SAVED[1], f"{json.dumps(result.to_dict(), indent=2)}\n"
    elif name in FORMATS:
        pinned = [*pairs.pinned_pairs(site, run, result).values()]
        text = FORMATS[name].render(result, rows=site.rows, exhibits=pinned)
        suffix = FORMATS[name].suffix
    else:
        raise HTTPException(404, "There is no such format.")
    return Response(
        text,
        media_type="application/octet-stream",
        headers={"Content-Disposition": f'attachment; filename="{run.name}{suffix}"'},
    )


async def compared(request: Request) -> Response:
    """Which two runs are compared, and what changed significantly from one to the other."""
    site = site_of(request)
    before, after = (request.query_params.get(name, "") for name in ("before", "after"))
    form, about = _choice_of_two(site, before, after), {"here": "/compare"}
    about["form_token"] = site.keys.form
    if not before or not after:
        return HTMLResponse(shell("Compare two results", form, **about))
    results = _result_of(site, before), _result_of(site, after)
    found, topic = withheld(compare(*results)), comparisons.topic_of(*results)
    others = tag("section", tag("h2", "Compare others"), form)
    content = *comparisons.sections(found, topic), others
    header = comparisons.header(found, topic)
    return HTMLResponse(shell("What changed", *content, header=header, **about))


def _result_of(site: Site, name: str) -> Result:
    run = site.history.find(name)
    result = None if run is None else site.history.result(run)
    if result is None:
        raise HTTPException(404, "One of the two is not there, or learned nothing.")
    return result


def _choice_of_two(site: Site, before: str, after: str) -> Html:
    known = [
        (run.name, f"{run.title}, {time.strftime('%Y-%m-%d %H:%M', time.localtime(run.began))}")
        for run in site.history.runs()
        if run.hash
    ]
    if len(known) < FEWEST:
        return tag("p", "Two results are needed: measure again, or open a saved one.")
    later, earlier = known[0][0], known[1][0]
    return tag(
        "form",
        labelled("before", "Before", choice("before", known, before or earlier)),
        labelled("after", "After", choice("after", known, after or later)),
        button("Compare"),
        action="/compare",
    )


ROUTES = [
    Route("/results", take_result, methods=["POST"]),
    Route("/results/{name}", read),
    Route("/results/{name}/export/{format}", export),
    Route("/compare", compared),
]
