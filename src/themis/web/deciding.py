"""What is decided about a result: limits and accepted findings, which the file keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import unified_diff
from functools import partial

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from themis.config.parts import Finding, Source, with_acceptance, with_limit
from themis.config.reader import Config
from themis.engine.replacing import write_whole
from themis.results.model import Result
from themis.results.withheld import by_size
from themis.show.html import Html, empty, literal, tag, value
from themis.show.parts.scores import score_name
from themis.show.words.headlines import point
from themis.show.words.searches import set_text
from themis.show.words.values import visible
from themis.show.words.wording import subject_title
from themis.web.layout import button, choice, labelled, posting, shell, written
from themis.web.site import Site, asked_run, back_to, posted, shown_result, site_of

NO_FILE = "Limits are kept in a themis.toml, which is not there yet: describe the subject first."
STALE = "The file was changed after this page was made and nothing was saved: load the page again."
LIMIT = "From 0 to 1: 0.05 is 5 %, or 5 points."


async def page(request: Request) -> Response:
    """What the file says now, and what it can say of this result; a form changes it."""
    site, run = site_of(request), asked_run(request)
    result, saved = shown_result(site, run), Html()
    if request.method == "POST":
        fields = await posted(request)
        saved = _saved(site, result, {name: each[0] for name, each in fields.items()})
    title, here = f"Decide: {subject_title(result)}", request.url.path
    content = _content(site, result, here) if site.file.exists() else [tag("p", NO_FILE)]
    return HTMLResponse(shell(title, back_to(run), saved, *content, form_token=site.keys.form))


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
    mark = empty("input", type="hidden", name="mark", value=site.mark())
    form = partial(posting, here, site.keys.form, mark)
    yield tag("h2", "In ", site.file.name)
    own = [tag("li", value(text)) for text in _kept(site.config())]
    yield tag("ul", *own) if own else tag("p", "No limits, and nothing is accepted.")
    if site.read_only:
        return
    named = [(str(place), text) for place, text in enumerate(_findings(result).values())]
    every = [*named, (str(len(named)), "every set, by a search")]
    limit = (
        tag("h2", "Set a limit"),
        labelled("finding", "On", choice("finding", every)),
        labelled("max_score", "Largest score allowed", _share("max_score"), LIMIT),
        button("Save the limit"),
    )
    yield form(*limit, kind="decide")
    accept = (
        tag("h2", "Accept a finding for a while"),
        labelled("accepted", "Finding", choice("accepted", named)),
        labelled("reason", "Reason", written("reason"), "Every report shows it."),
        labelled("until", "Until", written("until", kind="date"), "The last day that counts."),
        labelled("up_to", "Only up to", _share("up_to"), "If it is empty, any score is accepted."),
        button("Accept it"),
    )
    yield form(*accept, kind="decide") if named else Html()


def _kept(config: Config) -> Iterator[str]:
    """The limits of the file and what it accepts."""
    for check in config.checks:
        yield f"limit: {check.name}"
    for each in config.accepted:
        about = f"{each.measure} {set_text(each.against)}, accepted until {each.until}"
        yield f"{about}: {each.reason}"


def _share(name: str) -> Html:
    return written(name, kind="number", min=0, max=1, step="any")


ROUTES = [Route("/results/{name}/decide", page, methods=["GET", "POST"])]
