"""The page that compares two runs."""

from __future__ import annotations

import time

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from themis.results.comparison import compare
from themis.results.model import Result
from themis.results.withheld import withheld
from themis.show.html import Html, tag
from themis.show.reports.comparisons import header, sections, topic_of
from themis.web.layout import button, choice, labelled, shell
from themis.web.site import Site, site_of

FEWEST = 2


async def ask(request: Request) -> Response:
    """Which two runs are compared, and what changed significantly from one to the other."""
    site = site_of(request)
    before, after = (request.query_params.get(name, "") for name in ("before", "after"))
    token = site.keys.form
    if not before or not after:
        return HTMLResponse(
            shell(
                "Compare two results", _form(site, before, after), here="/compare", form_token=token
            )
        )
    results = _result(site, before), _result(site, after)
    found, topic = withheld(compare(*results)), topic_of(*results)
    return HTMLResponse(
        shell(
            "What changed",
            *sections(found, topic),
            tag("section", tag("h2", "Compare others"), _form(site, before, after)),
            header=header(found, topic),
            here="/compare",
            form_token=token,
        )
    )


def _result(site: Site, name: str) -> Result:
    run = site.history.find(name)
    result = None if run is None else site.history.result(run)
    if result is None:
        raise HTTPException(404, "One of the two is not there, or learned nothing.")
    return result


def _form(site: Site, before: str, after: str) -> Html:
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


ROUTES = [Route("/compare", ask)]
