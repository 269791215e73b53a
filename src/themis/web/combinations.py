"""The combinations that a search looked at: which are in or out, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from themis.results.model import Result, SearchResult
from themis.show.html import Html, empty, tag, value
from themis.show.parts.search import MEANINGS, looked_at, reasons_of, word_of
from themis.show.reports.document import section
from themis.show.reports.drawing import drawn, sentence
from themis.show.reports.sections import search_part, search_title
from themis.show.words.searches import Names, protected_first, protection, set_text
from themis.show.words.values import count
from themis.show.words.wording import subject_title, wording
from themis.web.history import Run
from themis.web.layout import choice, filters, labelled, paged, shell, written
from themis.web.site import address, asked_run, back_to, shown_result, site_of


def page(request: Request) -> Response:
    """The sets of one search, a hundred at a time."""
    site, run = site_of(request), asked_run(request)
    result, given = shown_result(site, run), request.query_params
    place = given.get("search", "0")
    if place not in _places(result):
        raise HTTPException(404, "There is no such search in this result.")
    search = protected_first(result)(result.searches[int(place)])
    found = paged(request, [*_chosen(result, search, given)], "combination")
    return HTMLResponse(
        shell(
            f"Combinations: {subject_title(result)}",
            back_to(run),
            drawn([search_part(search, wording(result), link=_linking(run, place))]),
            tag("div", _form(result, search, given), id="list"),
            *_exactly(search, _names(given)),
            found.pager,
            drawn([reasons_of(search, found.things)]) if found.things else "",
            form_token=site.keys.form,
        )
    )


def _places(result: Result) -> list[str]:
    return [*map(str, range(len(result.searches)))]


def _names(given: Mapping[str, str]) -> Names:
    return tuple(filter(None, map(str.strip, given.get("has", "").split(","))))


def _chosen(result: Result, search: SearchResult, given: Mapping[str, str]) -> Iterator[Names]:
    """The sets that are wanted, those that were found first."""
    has, kind = {*_names(given)}, given.get("kind")
    for own, sets in looked_at(search).items():
        for names in sets if kind in (own, None, "") else ():
            if has <= {*names} and not ("protected" in given and protection(result, names)):
                yield names


def _form(result: Result, search: SearchResult, given: Mapping[str, str]) -> Html:
    """What narrows the list."""
    kinds = [("", "all")]
    kinds += [(each, MEANINGS.get(each, word_of(each, search))) for each in looked_at(search)]
    titles = map(search_title, result.searches)
    searches = choice("search", zip(_places(result), titles, strict=True), given.get("search", ""))
    contains = written("has", given.get("has", ""), list="names", placeholder="sex, age")
    known = tag("datalist", *(empty("option", value=each) for each in search.among), id="names")
    checked = "checked" if "protected" in given else None
    only = empty("input", type="checkbox", name="protected", id="protected", checked=checked)
    return filters(
        *([labelled("search", "Search", searches)] if len(result.searches) > 1 else []),
        labelled("kind", "Which", choice("kind", kinds, given.get("kind", ""))),
        labelled("has", "Contains", contains),
        known,
        tag("p", only, " ", tag("label", "protected only", for_="protected")),
    )


def _exactly(search: SearchResult, names: Names) -> Iterator[Html]:
    """What became of the set of these alone, which the list need not have."""
    if names:
        about = tag("strong", value(set_text(names)), ": ")
        yield tag("p", about, sentence(search.why(*names)), class_="remark")


def _linking(run: Run, place: str) -> Callable[[Names], str]:
    """Where the combinations are shown that have these characteristics."""
    page = f"{address(run)}/combinations"
    return lambda names: f"{page}?{urlencode({'search': place, 'has': ','.join(names)})}#list"


def preview(run: Run, result: Result) -> Html:
    """The section of a result: what each search found, and links to all that it looked at."""
    shown: list[Html] = []
    for place, search in enumerate(map(protected_first(result), result.searches)):
        link = _linking(run, str(place))
        text = f"All {count(search.sets_tested, 'combination')} that were tested, and why"
        every = tag("p", tag("a", text, href=link(())))
        shown += [drawn([search_part(search, wording(result), link=link)]), every]
    fold = result.command == "audit"  # whose cards show the same sets
    return section("sets", "Combinations", *shown, fold=fold) if shown else Html()


ROUTES = [Route("/results/{name}/combinations", page)]
