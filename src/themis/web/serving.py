"""The server: one process for one project and one user, on this machine alone."""

from __future__ import annotations

import signal
import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import uvicorn

from themis.errors import RequestError
from themis.web.app import make_app
from themis.web.guard import Keys
from themis.web.history import History
from themis.web.runs import Runs
from themis.web.site import Site
from themis.web.warm import Warm

HOST = "127.0.0.1"


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
