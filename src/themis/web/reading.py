"""Pages of results: opened, read, exported, compared, searched through, and decided on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from difflib import unified_diff
from functools import partial
from urllib.parse import unquote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from themis.config.parts import Finding, Source, with_acceptance, with_limit
from themis.config.reader import Config
from themis.engine.replacing import write_whole
from themis.results.comparison import compare
from themis.results.model import Result, SearchResult
from themis.results.saved import result_from_dict
from themis.results.withheld import by_size, withheld
from themis.show.html import Html, empty, folded, literal, tag, value
from themis.show.parts.scores import score_name
from themis.show.parts.search import MEANINGS, looked_at, reasons_of, word_of
from themis.show.reports.document import Space, drawn, section, sentence
from themis.show.reports.formats import FORMATS
from themis.show.reports.page import (
    EXHIBITS,
    SECTIONS,
    comparison_header,
    comparison_sections,
    contents,
    header,
    topic_of,
)
from themis.show.reports.sections import pairs_section, search_part, search_title, sets_section
from themis.show.words.headlines import capital, point
from themis.show.words.searches import Names, protected_first, protection
from themis.show.words.values import count, set_text, visible
from themis.show.words.wording import subject_title, wording
from themis.web import pairs
from themis.web.running import afterwards
from themis.web.runs import Run
from themis.web.site import (
    Site,
    address,
    asked_run,
    back_to,
    button,
    check_change,
    choice,
    filters,
    hidden,
    paged,
    posted,
    shown_result,
    site_of,
    ticked,
    written,
)

SAVED = ("json", ".json", "the result itself, to open again or to compare")


async def take_result(request: Request) -> Response:
    """Keep a result that somebody opens; the file's name is in a header."""
    site = site_of(request)
    check_change(request)
    name = unquote(request.headers.get("x-themis-name", "result"))
    try:
        result = result_from_dict(json.loads(await request.body()))
    except (ValueError, RecursionError):
        raise HTTPException(400, f"{name} is no JSON.") from None
    run = site.history.open_result(name, result, rows=site.rows)
    return Response(address(run), media_type="text/plain")


def read(request: Request) -> Response:
    """One result: the sections of the report, of which pairs and combinations have more pages."""
    site, run = site_of(request), asked_run(request)
    result = shown_result(site, run)
    title = subject_title(result)
    own: dict[object, Callable[[], Html]] = {
        pairs_section: lambda: pairs.preview(site, run, result),
        sets_section: lambda: sets_preview(run, result),
    }
    shown = [own[show]() if show in own else show(result, Space()) for show in SECTIONS]
    shown.insert(EXHIBITS, pairs.pinned_section(site, run, result))
    after = afterwards(site, run)
    return site.page(
        title,
        after if run.is_cut else "",
        _actions(run, result),
        contents(shown),
        *shown,
        "" if run.is_cut else after,
        header=header(result, title),
    )


def _actions(run: Run, result: Result) -> Html:
    """What can be done with a result, before its sections."""
    here = address(run)
    links = [(f"{here}/decide", "Limits"), (f"/compare?after={run.name}", "Compare")]
    if result.searches:
        links.insert(0, (f"{here}/combinations", "Combinations"))
    if pairs.Pairs(result).all:
        links.insert(0, (f"{here}/pairs", "Pairs"))
    made = (tag("a", text, href=place) for place, text in links)
    return tag("nav", *made, _exports(here), class_="doing", aria_label="This result")


def _exports(here: str) -> Html:
    """Every format as a file, and what it is for."""
    known = [(each.name, each.suffix, each.about) for each in FORMATS.values() if each.suffix]
    items = (
        tag("li", tag("a", capital(about), href=f"{here}/export/{name}"), " ", tag("small", suffix))
        for name, suffix, about in (*known, SAVED)
    )
    return folded("Export", tag("ul", *items), kind="menu")


async def export(request: Request) -> Response:
    """A result in one of the formats of the report, or as it is saved, as a file."""
    site, run = site_of(request), asked_run(request)
    name, result = request.path_params["format"], shown_result(site, run)
    if name == SAVED[0]:
        suffix, text = SAVED[1], f"{json.dumps(result.to_dict(), indent=2)}\n"
    elif name in FORMATS:
        pinned = [*pairs.pinned_pairs(site, run, result).values()]
        text = FORMATS[name].render(result, rows=site.rows, exhibits=pinned)
        suffix = FORMATS[name].suffix
    else:
        raise HTTPException(404, "There is no such format.")
    return Response(
        text,
        media_type="application/octet-stream",
        headers={"Content-Disposition": f'attachment; filename="{run.name}{suffix}"'},
    )


async def compared(request: Request) -> Response:
    """Which two runs are compared, and what changed significantly from one to the other."""
    site = site_of(request)
    before, after = (request.query_params.get(name, "") for name in ("before", "after"))
    form = _choice_of_two(site, before, after)
    if not before or not after:
        return site.page("Compare two results", form, here="/compare")
    results = _result_of(site, before), _result_of(site, after)
    found, topic = withheld(compare(*results)), topic_of(*results)
    others = tag("section", tag("h2", "Compare others"), form)
    content = *comparison_sections(found, topic), others
    header = comparison_header(found, topic)
    return site.page("What changed", *content, header=header, here="/compare")


def _result_of(site: Site, name: str) -> Result:
    run = site.history.find(name)
    result = None if run is None else site.history.result(run)
    if result is None:
        raise HTTPException(404, "One of the two is not there, or learned nothing.")
    return result


def _choice_of_two(site: Site, before: str, after: str) -> Html:
    runs = [run for run in site.history.runs() if run.hash]
    known = [(run.name, f"{run.title}, {run.when}") for run in runs]
    if len(known) < 2:
        return tag("p", "Two results are needed: measure again, or open a saved one.")
    later, earlier = known[0][0], known[1][0]
    return tag(
        "form",
        choice("before", "Before", known, before or earlier),
        choice("after", "After", known, after or later),
        button("Compare"),
        action="/compare",
    )


def sets(request: Request) -> Response:
    """The sets of one search, a hundred at a time."""
    site, run = site_of(request), asked_run(request)
    result, given = shown_result(site, run), request.query_params
    place = given.get("search", "0")
    if place not in _places(result):
        raise HTTPException(404, "There is no such search in this result.")
    search = protected_first(result)(result.searches[int(place)])
    found = paged(request, [*_chosen(result, search, given)], "combination")
    return site.page(
        f"Combinations: {subject_title(result)}",
        back_to(run),
        drawn([search_part(search, wording(result), link=_linking(run, place))]),
        tag("div", _form(result, search, given), id="list"),
        *_exactly(search, _names(given)),
        found.pager,
        drawn([reasons_of(search, found.things)]) if found.things else "",
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
    several = zip(_places(result), titles, strict=True)
    searches = choice("search", "Search", several, given.get("search", ""))
    known = tag("datalist", *(empty("option", value=each) for each in search.among), id="names")
    only = ticked("protected", "on", "protected only", is_chosen="protected" in given)
    return filters(
        searches if len(result.searches) > 1 else Html(),
        choice("kind", "Which", kinds, given.get("kind", "")),
        written("has", "Contains", given.get("has", ""), list="names", placeholder="sex, age"),
        known,
        tag("p", only),
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


def sets_preview(run: Run, result: Result) -> Html:
    """The section of a result: what each search found, and links to all that it looked at."""
    shown: list[Html] = []
    for place, search in enumerate(map(protected_first(result), result.searches)):
        link = _linking(run, str(place))
        text = f"All {count(search.sets_tested, 'combination')} that were tested, and why"
        every = tag("p", tag("a", text, href=link(())))
        shown += [drawn([search_part(search, wording(result), link=link)]), every]
    fold = result.command == "audit"  # whose cards show the same sets
    return section("sets", "Combinations", *shown, fold=fold) if shown else Html()


NO_FILE = "Limits are kept in a themis.toml, which is not there yet: describe the subject first."
STALE = "The file was changed after this page was made and nothing was saved: load the page again."
LIMIT = "From 0 to 1: 0.05 is 5 %, or 5 points."
share = partial(written, kind="number", min=0, max=1, step="any")


async def decide(request: Request) -> Response:
    """What the file says now, and what it can say of this result; a form changes it."""
    site, run = site_of(request), asked_run(request)
    result, saved = shown_result(site, run), Html()
    if request.method == "POST":
        saved = _saved(site, result, await posted(request))
    title, here = f"Decide: {subject_title(result)}", request.url.path
    content = _content(site, result, here) if site.file.exists() else [tag("p", NO_FILE)]
    return site.page(title, back_to(run), saved, *content)


def _findings(result: Result) -> dict[Finding, str]:
    """What can be decided, the largest score first; then what was only found, and a search."""
    scores = sorted(result.scores, key=by_size)
    found = {
        Finding(each.against, each.measure, each.output): f"{score_name(each)}: {point(each)}"
        for each in scores
    }
    for search in result.searches:
        for names in search.found:
            found.setdefault(Finding(names, search.measure, search.output), set_text(names))
    return {each: f"{each.measure} {text}" for each, text in found.items()}


def _saved(site: Site, result: Result, given: Mapping[str, str]) -> Html:
    """The lines of the file that were changed; raises ConfigError where it may not be."""
    source, was_confirmed = Source.of(site.file), site.is_confirmed
    if given.get("mark") != source.mark:
        raise HTTPException(409, STALE)
    new = _decided(source, [*_findings(result), Finding(None)], given)
    write_whole(site.file, new.text.encode())
    if was_confirmed:  # it still names the same program
        site.confirmed.add(site.seen())
    before, after = source.plain.splitlines(), new.plain.splitlines()
    changes = [e for e in [*unified_diff(before, after, n=0, lineterm="")][2:] if e[0] in "+-"]
    lines = (tag("ins" if each[0] == "+" else "del", literal(visible(each))) for each in changes)
    told = tag("pre", *lines) if changes else tag("p", "It said so already.")
    head = tag("h2", "Saved in ", site.file.name)
    return tag("section", head, told, role="status", class_="saved")


def _decided(source: Source, findings: list[Finding], given: Mapping[str, str]) -> Source:
    try:
        if "finding" in given:
            return with_limit(source, findings[int(given["finding"])], given["max_score"])
        reason, until, up_to = (given[name] for name in ("reason", "until", "up_to"))
        about = findings[int(given["accepted"])]
        return with_acceptance(source, about, reason=reason, until=until, max_score=up_to)
    except (KeyError, ValueError, IndexError):
        raise HTTPException(400, "The form is of another result: load the page again.") from None


def _content(site: Site, result: Result, here: str) -> Iterator[Html]:
    """What the file has, and the forms."""
    form = partial(site.form, here, hidden(mark=site.mark()), kind="decide")
    yield tag("h2", "In ", site.file.name)
    own = [tag("li", value(text)) for text in _kept(site.config())]
    yield tag("ul", *own) if own else tag("p", "No limits, and nothing is accepted.")
    if site.read_only:
        return
    named = [(str(place), text) for place, text in enumerate(_findings(result).values())]
    every = [*named, (str(len(named)), "every set, by a search")]
    limit = (
        tag("h2", "Set a limit"),
        choice("finding", "On", every),
        share("max_score", "Largest score allowed", hint=LIMIT),
        button("Save the limit"),
    )
    yield form(*limit)
    accept = (
        tag("h2", "Accept a finding for a while"),
        choice("accepted", "Finding", named),
        written("reason", "Reason", hint="Every report shows it."),
        written("until", "Until", hint="The last day that counts.", kind="date"),
        share("up_to", "Only up to", hint="If it is empty, any score is accepted."),
        button("Accept it"),
    )
    yield form(*accept) if named else Html()


def _kept(config: Config) -> Iterator[str]:
    """The limits of the file and what it accepts."""
    for check in config.checks:
        yield f"limit: {check.name}"
    for each in config.accepted:
        about = f"{each.measure} {set_text(each.against)}, accepted until {each.until}"
        yield f"{about}: {each.reason}"


ROUTES = [
    Route("/results", take_result, methods=["POST"]),
    Route("/results/{name}", read),
    Route("/results/{name}/export/{format}", export),
    Route("/compare", compared),
    Route("/results/{name}/combinations", sets),
    Route("/results/{name}/decide", decide, methods=["GET", "POST"]),
]
