"""The run that an address names, and its result as it may be shown."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request

from themis.results.model import Result
from themis.results.saved import read_result
from themis.results.withheld import withheld
from themis.show.html import Html, tag
from themis.web.history import Run
from themis.web.site import Site, site_of


def address(run: Run) -> str:
    """Where a run is shown: its result, if it is over."""
    return f"/results/{run.name}" if run.hash else f"/runs/{run.name}"


def back_to(run: Run) -> Html:
    """The way from a page about a result to the result."""
    return tag("p", tag("a", "← The result", href=address(run)))


def asked_run(request: Request) -> Run:
    """The run that an address names."""
    return run_named(site_of(request), request.path_params["name"])


def run_named(site: Site, name: str) -> Run:
    """The run of this name."""
    run = site.history.find(name)
    if run is None:
        raise HTTPException(404, "There is no such run.")
    return run


def shown_result(site: Site, run: Run) -> Result:
    """What a run learned, as it may be shown."""
    place = site.history.place_of(run)
    if place is None:
        raise HTTPException(404, "This run learned nothing.")
    return _read(place, place.stat().st_mtime_ns, rows=site.rows)


@lru_cache(maxsize=4)  # a large one takes a second to read, and has many pages
def _read(place: Path, _time: int, *, rows: bool) -> Result:
    result = read_result(place)
    return result if rows else withheld(result)
