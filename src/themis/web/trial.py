"""A few inputs run before anything is measured: what they get, what failed, and what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from themis.config.reader import Config
from themis.show.html import Html, folded, table, tag, value
from themis.show.words.wording import Wording
from themis.web.commands import ask_command
from themis.web.layout import problems, shell
from themis.web.site import posted, site_of


async def trial(request: Request) -> Response:
    """Run a few inputs as `themis validate` does, in a process of its own."""
    await posted(request)
    site = site_of(request)
    if not site.is_confirmed:
        return RedirectResponse("/run?then=/trial", 303)
    rows = "--rows" if site.rows else "--no-rows"
    out, wrong = await ask_command(site, "validate", str(site.file), "--json", rows)
    found = _found(json.loads(out), site.config()) if out else ()
    links = tag("a", "Change the description", href="/describe"), tag("a", "Measure", href="/run")
    content = problems(wrong), *found, tag("p", *links, class_="actions")
    token = site.keys.form
    return HTMLResponse(shell("A few inputs", *content, here="/describe", form_token=token))


def _found(found: Mapping[str, Any], config: Config) -> Iterator[Html]:
    trials, words = found["trials"], Wording(config.report)
    failed = sum(each["output"] is None for each in trials)
    how = f"{failed} of {len(trials)} failed" if failed else "each got a decision"
    whose = "test inputs" if config.profile is None else "rows of people"
    yield tag("p", f"{len(trials)} {whose} were run; {how}. Nothing is measured yet.")
    yield problems(filter(None, [found["failure"], *found["warnings"]]))
    names = [*(trials[0]["values"] or ())]
    if not names:
        yield tag("p", "themis ui --rows shows what they hold.")
    rows = ([*_row(each, names, words)] for each in trials)
    yield tag("div", table("A few inputs", ("Decision", *map(value, names)), rows), class_="wide")
    if failed < len(trials):
        yield folded("What measuring will cost", *(tag("p", each) for each in found["costs"]))


def _row(trial: Mapping[str, Any], names: list[str], words: Wording) -> Iterator[Html]:
    look = {True: "better", False: "worse"}.get(trial["favourable"])
    failed = trial["output"] is None
    yield tag("span", "failed" if failed else value(trial["output"]), class_=look)
    yield from (value(words.value(name, trial["values"][name])) for name in names)


ROUTES = [Route("/trial", trial, methods=["POST"])]
