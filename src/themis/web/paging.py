"""Long lists a page at a time, and the choices that narrow them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from starlette.requests import Request

from themis.show.html import Html, tag
from themis.show.words.values import count

PAGE = 100
Thing = TypeVar("Thing")


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
