"""The frame of every page, and the few pieces that pages are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from starlette.requests import Request

from themis.show.html import Html, empty, tag
from themis.show.words.values import count

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
    here: str = "/",
    form_token: str = "",
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


def posting(action: str, form_token: str, *content: Any, kind: str | None = None) -> Html:
    """A form that changes something."""
    token = empty("input", type="hidden", name="token", value=form_token)
    return tag("form", token, *content, method="post", action=action, class_=kind)


def button(text: str, *, kind: str | None = None, **attributes: Any) -> Html:
    """What sends a form."""
    return tag("button", text, type="submit", class_=kind, **attributes)


def labelled(name: str, label: str, control: Html, hint: str = "") -> Html:
    """A control (whose id is `name`) with its label, and what helps to fill it in."""
    said = [tag("span", hint, class_="hint", id=f"{name}-hint")] if hint else []
    return tag("p", tag("label", label, for_=name), control, *said, class_="field")


def choice(name: str, options: Iterable[tuple[str, str]], chosen: str = "") -> Html:
    """A list to choose one of: values and names."""
    made = (
        tag("option", text, value=value, selected="selected" if value == chosen else None)
        for value, text in options
    )
    return tag("select", *made, name=name, id=name)


def written(name: str, value: str = "", kind: str = "text", **attributes: Any) -> Html:
    """A line to write in."""
    return empty("input", type=kind, name=name, id=name, value=value, **attributes)


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
