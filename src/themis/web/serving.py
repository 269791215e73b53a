"""The server: one process for one project and one user, on this machine alone; its addresses."""

from __future__ import annotations

import signal
import socket
import threading
import webbrowser
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import NoReturn

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from themis.errors import ConfigError, MistakesError, RequestError, ThemisError
from themis.show.html import tag
from themis.show.reports.document import STYLE
from themis.web import describing, measuring, pairs, reading, running, trying, uploads
from themis.web.child import Warm
from themis.web.guard import Guard, Keys
from themis.web.runs import History, Runs
from themis.web.site import Site, problems, site_of

HOST = "127.0.0.1"
PAGES = reading, measuring, running, pairs, trying, describing, uploads
KINDS = {".js": "text/javascript", ".css": "text/css"}
MISTAKES = ThemisError, OSError
STATIC = files("themis.web").joinpath("static")


def serve(
    place: Path,
    say: Callable[[str], None],
    *,
    port: int = 0,
    opens: bool = True,
    read_only: bool = False,
    rows: bool = False,
    trust_pickle: bool = False,
) -> None:
    """Answer until Ctrl-C; then end what runs, which keeps what it learned."""
    file = place / "themis.toml" if place.is_dir() else place
    project = file.resolve().parent
    listener = _listener(port)
    keys = Keys(listener.getsockname()[1])
    history = History(project, rows=rows)
    options = ["--rows" if rows else "--no-rows", *(["--trust-pickle"] if trust_pickle else [])]
    site = Site(
        project=project,
        file=file.resolve(),
        keys=keys,
        history=history,
        runs=Runs(history, file.resolve(), options),
        warm=Warm(trust_pickle=trust_pickle),
        read_only=read_only,
        rows=rows,
        trust_pickle=trust_pickle,
    )
    address = f"http://{HOST}:{keys.port}/?token="
    config = uvicorn.Config(
        make_app(site),
        log_level="critical",
        access_log=False,
        ws="none",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    say(f"the page is at {address}{keys.entry}")
    say("Ctrl-C ends it")
    if opens:
        threading.Timer(0.3, webbrowser.open, [address + keys.once]).start()
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGTERM, _end)  # which uvicorn passes on once it has ended
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGINT, before)
        site.warm.close()
        site.runs.close()


def _end(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _listener(port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()  # a browser may be quicker than the server
    except OSError as error:
        listener.close()
        problem = f"port {port} can't be used: {error.strerror}"
        raise RequestError.one("port", "--port", problem, "leave it out for a free one") from None
    return listener


# What it answers


def make_app(site: Site) -> Guard:
    """Everything that a server answers, behind its guard."""
    app = Starlette(
        routes=[
            Route("/static/{name}", static),
            *(route for page in PAGES for route in page.ROUTES),
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
    return site_of(request).page("Not possible", text, status=error.status_code)


async def mistaken(request: Request, error: Exception) -> Response:
    """A page with a user's mistakes, all of them, or with what the disk refused."""
    site = site_of(request)
    if isinstance(error, ConfigError) and not site.file.exists():
        return RedirectResponse("/describe", 303)
    found = error.mistakes if isinstance(error, MistakesError) else (error,)
    said = problems(str(each) for each in found)
    link = tag("p", tag("a", "Describe what is tested", href="/describe"))
    content = (said, link) if isinstance(error, ConfigError) else (said,)
    return site.page("Something is missing", *content, status=400)
