"""`themis ui`: the page, on this machine alone."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from themis.cli.options import TRUST
from themis.cli.printing import print_line
from themis.errors import Exit, RequestError


def ui(
    config: Annotated[
        Path,
        typer.Argument(
            metavar="CONFIG",
            help="The themis.toml, or its folder; need not be there yet.",
            show_default=False,
        ),
    ] = Path(),
    port: Annotated[int, typer.Option(help="Where it listens; 0 takes a free one.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Open no browser.")] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Show results; run and change nothing.")
    ] = False,
    rows: Annotated[bool, typer.Option("--rows", help="Show rows of people.")] = False,
    trust_pickle: Annotated[bool, typer.Option("--trust-pickle", help=TRUST)] = False,
) -> int:
    """Open the page: describe, measure, try and read in a browser."""
    if any(find_spec(name) is None for name in ("starlette", "uvicorn")):
        problem = "the page needs starlette and uvicorn, which are not installed"
        remedy = "pip install 'themis-fairness[web]'"
        raise RequestError.one("missing-extra", "themis ui", problem, remedy)
    from themis.web.serving import serve

    serve(
        config,
        print_line,
        port=port,
        opens=not no_open,
        read_only=read_only,
        rows=rows,
        trust_pickle=trust_pickle,
    )
    return Exit.DONE
