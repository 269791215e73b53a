"""What all pages share: the project, its results and commands, what is allowed, and the frame."""

from __future__ import annotations

import asyncio
import hmac
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse

from themis.config.parts import programs
from themis.config.reader import Config, load_config
from themis.config.told import mark_of
from themis.errors import RequestError
from themis.results.model import Result
from themis.results.saved import read_result
from themis.results.withheld import withheld
from themis.show.html import Html, empty, join, tag
from themis.show.words.values import count
from themis.web.child import Told, Warm, command_line
from themis.web.guard import Keys
from themis.web.runs import History, Run, Runs


@dataclass
class Site:
    """One server for one project."""

    project: Path  # a folder
    file: Path  # the themis.toml that is measured; it need not be there yet
    keys: Keys
    history: History
    runs: Runs
    warm: Warm
    read_only: bool = False
    rows: bool = False  # rows of people may be shown
    trust_pickle: bool = False
    confirmed: set[str] = field(default_factory=set)  # subjects that somebody agreed to run

    def config(self) -> Config:
        """What the file says now; raises ConfigError with all that is wrong."""
        return load_config(self.file)

    def mark(self) -> str:
        """Of the file as it is: what somebody confirms is this one, and no later one."""
        return mark_of(self.file.read_bytes())

    def seen(self) -> str:
        """Of the file, and of the files that it names, as somebody who confirms them sees them."""
        named = [place for each in programs(self.config()) for place in each.files]
        states = [(str(each), each.stat().st_size, each.stat().st_mtime_ns) for each in named]
        return f"{self.mark()} {mark_of(str(states).encode())}"

    def page(
        self, title: str, *content: Any, status: int = 200, here: str = "/", **about: Any
    ) -> HTMLResponse:
        """A whole page; see `shell`."""
        token = self.keys.form
        return HTMLResponse(shell(title, *content, here=here, form_token=token, **about), status)

    def form(self, action: str, *content: Any, kind: str | None = None) -> Html:
        """A form that changes something."""
        token = hidden(token=self.keys.form)
        return tag("form", token, *content, method="post", action=action, class_=kind)

    @property
    def is_confirmed(self) -> bool:
        """Whether what the file names may be run."""
        return self.file.is_file() and self.seen() in self.confirmed


def site_of(request: Request) -> Site:
    """The site that a request is about."""
    found: Site = request.app.state.site
    return found


async def posted(request: Request) -> QueryParams:
    """The fields of a form that may change something; refuses what does not hold its token."""
    fields = QueryParams((await request.body()).decode("utf-8", "replace"))
    check_change(request, fields.get("token", ""))
    return fields


def check_change(request: Request, token: str = "") -> None:
    """Refuse a change unless it may be and holds the token of this server's forms.

    Scripts send the token in a header, forms in a field.
    """
    site = site_of(request)
    if site.read_only:
        raise HTTPException(403, "This server was started with --read-only.")
    given = request.headers.get("x-themis-token") or token
    if not hmac.compare_digest(given.encode(), site.keys.form.encode()):
        raise HTTPException(403, "The form is of another session: load the page again.")


# Commands of `themis` that answer a page


async def ask_command(
    site: Site, *command: str, most_seconds: float = 300.0
) -> tuple[str, list[str]]:
    """What a command writes to stdout, and its mistakes, in the project's folder.

    Raises RequestError where it takes too long.
    """
    trust = ["--trust-pickle"] if site.trust_pickle else []
    mark = site.mark() if site.file.exists() else ""
    with Told(mark) as told:
        process = await asyncio.create_subprocess_exec(
            *command_line("", *command, *trust),
            cwd=site.project,
            env=told.environment,
            stdin=PIPE,  # closes with this process
            stdout=PIPE,
            stderr=DEVNULL,
            start_new_session=True,
        )
        assert process.stdout is not None
        try:
            out = await asyncio.wait_for(process.stdout.read(), most_seconds)
            await process.wait()
        except TimeoutError:
            problem, remedy = f"took more than {most_seconds:.0f} seconds", "run it in a terminal"
            raise RequestError.one("too-slow", f"themis {command[0]}", problem, remedy) from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        return out.decode(errors="replace"), told.mistakes


# Runs and their results


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


PAGE = 100  # things of a long list
Thing = TypeVar("Thing")

# What the bar at the top leads to: addresses and names.
PLACES = (
    ("/", "Results"),
    ("/run", "Measure"),
    ("/try", "Try"),
    ("/describe", "Describe"),
    ("/compare", "Compare"),
)


def shell(
    title: str,
    *content: Any,
    here: str,
    form_token: str,
    scripts: Iterable[str] = (),
    header: Iterable[Any] = (),
) -> str:
    """A whole page; `scripts` are names of modules in `static`."""
    head = (
        empty("meta", charset="utf-8"),
        empty("meta", name="viewport", content="width=device-width, initial-scale=1"),
        empty("meta", name="color-scheme", content="light dark"),
        empty("meta", name="form-token", content=form_token),
        tag("title", f"{title} · Themis"),
        empty("link", rel="icon", href="data:,"),
        empty("link", rel="stylesheet", href="/static/report.css"),
        empty("link", rel="stylesheet", href="/static/web.css"),
        *(tag("script", type="module", src=f"/static/{each}") for each in ("wait.js", *scripts)),
    )
    links = [
        tag("a", name, href=place, aria_current="page" if place == here else None)
        for place, name in PLACES
    ]
    body = (
        tag("a", "Skip to the content", href="#main", class_="skip"),
        tag("nav", tag("b", "Themis"), *links, class_="places", aria_label="Themis"),
        tag("header", *(header or (tag("h1", title),))),
        tag("main", *content, id="main"),
    )
    page = tag("html", tag("head", *head), tag("body", *body), lang="en", dir="ltr")
    return f"<!doctype html>\n{page}\n"


def button(text: str, *, kind: str | None = None, **attributes: Any) -> Html:
    """What sends a form."""
    return tag("button", text, type="submit", class_=kind, **attributes)


def labelled(name: str, label: str, control: Html, hint: str = "") -> Html:
    """A control (whose id is `name`) with its label, and what helps to fill it in."""
    said = [tag("span", hint, class_="hint", id=f"{name}-hint")] if hint else []
    return tag("p", tag("label", label, for_=name), control, *said, class_="field")


def choice(
    name: str, label: str, options: Iterable[tuple[str, str]], chosen: str = "", hint: str = ""
) -> Html:
    """A list to choose one of: values and names."""
    made = (
        tag("option", text, value=value, selected="selected" if value == chosen else None)
        for value, text in options
    )
    return labelled(name, label, tag("select", *made, name=name, id=name), hint)


def written(
    name: str, label: str, value: str = "", hint: str = "", kind: str = "text", **attributes: Any
) -> Html:
    """A line to write in."""
    line = empty("input", type=kind, name=name, id=name, value=value, **attributes)
    return labelled(name, label, line, hint)


def ticked(name: str, value: str, text: Any, *, is_chosen: bool = False) -> Html:
    """A box to tick."""
    checked = "checked" if is_chosen else None
    box = empty("input", type="checkbox", name=name, value=value, checked=checked)
    return tag("label", box, " ", text)


def hidden(**values: Any) -> Html:
    """What a form sends besides what is filled in."""
    return join(empty("input", type="hidden", name=key, value=each) for key, each in values.items())


def problems(mistakes: Iterable[str]) -> Html:
    """What is wrong, all at once; nothing where nothing is."""
    told = [tag("li", each) for each in mistakes]
    return tag("div", tag("ul", *told), class_="problems", role="alert") if told else Html("")


# Long lists ----------------------------------------------------------------------------
@dataclass(frozen=True)
class Paged(Generic[Thing]):
    """The things of one page, and links to those before and behind."""

    things: Sequence[Thing]
    pager: Html


def paged(request: Request, every: Sequence[Thing], noun: str) -> Paged[Thing]:
    """The page of these that a query asks for, or the last one."""
    asked = request.query_params.get("page", "1")
    number = int(asked) if asked.isdecimal() and len(asked) < 9 else 1
    number = max(min(number, -(-len(every) // PAGE)), 1)
    first = PAGE * (number - 1)
    shown = every[first : first + PAGE]
    said = count(len(every), noun)
    if len(every) > PAGE:
        said = f"{first + 1:,} to {first + len(shown):,} of {said}"
    parts: list[Any] = [said]
    if first:
        parts.append(tag("a", "← Before", href=_query(request, number - 1), rel="prev"))
    if first + len(shown) < len(every):
        parts.append(tag("a", "Next →", href=_query(request, number + 1), rel="next"))
    links = (tag("span", each) for each in parts)
    return Paged(shown, tag("nav", *links, class_="pager", aria_label=f"Pages of {noun}s"))


def _query(request: Request, number: int) -> str:
    chosen = {**request.query_params, "page": str(number)}
    return f"?{urlencode({name: each for name, each in chosen.items() if each})}"


def filters(*fields: Html) -> Html:
    """Choices that narrow a list."""
    return tag("form", *fields, tag("button", "Show", type="submit"), class_="filters")
