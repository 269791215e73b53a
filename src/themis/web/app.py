"""The addresses of the page, and what answers them."""

from __future__ import annotations

import sqlite3
from importlib.resources import files

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from themis.errors import ConfigError, MistakesError, ThemisError
from themis.show.html import tag
from themis.show.reports.document import STYLE
from themis.web import (
    combinations,
    comparing,
    deciding,
    describing,
    measuring,
    pairs,
    reading,
    running,
    trial,
    trying,
    uploads,
)
from themis.web.guard import Guard
from themis.web.layout import problems, shell
from themis.web.site import Site, site_of

KINDS = {".js": "text/javascript", ".css": "text/css"}
MISTAKES = (ThemisError, OSError, sqlite3.Error)
STATIC = files("themis.web").joinpath("static")


def make_app(site: Site) -> Guard:
    """Everything that a server answers, behind its guard."""
    app = Starlette(
        routes=[
            Route("/static/{name}", static),
            *reading.ROUTES,
            *measuring.ROUTES,
            *running.ROUTES,
            *comparing.ROUTES,
            *pairs.ROUTES,
            *combinations.ROUTES,
            *deciding.ROUTES,
            *trying.ROUTES,
            *describing.ROUTES,
            *uploads.ROUTES,
            *trial.ROUTES,
        ],
        exception_handlers={HTTPException: refused, **dict.fromkeys(MISTAKES, mistaken)},
    )
    app.state.site = site
    return Guard(app, site.keys)


async def static(request: Request) -> Response:
    """A script or a style."""
    name = request.path_params["name"]
    if name == "report.css":
        return Response(STYLE, media_type="text/css")
    file, kind = STATIC.joinpath(name), KINDS.get(name[name.rfind(".") :])
    if kind is None or name not in {each.name for each in STATIC.iterdir()}:
        raise HTTPException(404, "There is no such file.")
    return Response(file.read_bytes(), media_type=kind)


async def refused(request: Request, error: Exception) -> Response:
    """A page that says why nothing was done."""
    assert isinstance(error, HTTPException)
    text = tag("p", error.detail)
    token = site_of(request).keys.form
    return HTMLResponse(shell("Not possible", text, form_token=token), error.status_code)


async def mistaken(request: Request, error: Exception) -> Response:
    """A page with a user's mistakes, all of them, or with what the disk refused."""
    site = site_of(request)
    if isinstance(error, ConfigError) and not site.file.exists():
        return RedirectResponse("/describe", 303)
    found = error.mistakes if isinstance(error, MistakesError) else (error,)
    said = problems(str(each) for each in found)
    link = tag("p", tag("a", "Describe what is tested", href="/describe"))
    content = (said, link) if isinstance(error, ConfigError) else (said,)
    token = site.keys.form
    return HTMLResponse(shell("Something is missing", *content, form_token=token), 400)
