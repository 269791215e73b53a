"""Pages that ask what is measured: the form, what that will cost, and whether it may be run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from themis.config.parts import PICKLE, Named, programs
from themis.config.reader import Config
from themis.show.html import Html, empty, folded, join, literal, table, tag, value
from themis.web.site import (
    Site,
    ask_command,
    button,
    choice,
    hidden,
    labelled,
    posted,
    problems,
    run_named,
    site_of,
    ticked,
    written,
)

# Commands: what a run is called, and what it is for; what each takes besides the settings.
COMMANDS = {
    "audit": ("Audit", "everything that is protected, and a search"),
    "score": ("Scores", "how often sets of characteristics change the decision"),
    "search": ("Search", "which combinations of characteristics change the decision"),
    "apparent": ("People", "scores of real people, from a table"),
    "check": ("Checks", "the limits that the file sets"),
}
TAKEN = {
    "audit": ("threshold", "max_size", "measure"),
    "score": ("against", "measure"),
    "search": ("threshold", "max_size", "measure", "among"),
    "apparent": ("data", "against", "measure"),
    "check": (),
}
# What is filled in: its name, and what helps; numbers of the settings have what the file says.
ASKED = {
    "threshold": ("Search for an effect of at least", "0.1 is 10 %; blank: 0.05"),
    "max_size": ("Characteristics in one combination, at most", "blank: any number"),
    "among": ("Only among", "race,sex; blank: all inputs"),
    "data": ("Table of people", "beside the configuration file; blank: its [profile]"),
}
SETTINGS = {
    "confidence": "Confidence level",
    "error": "Half the width of an interval",
    "max_executions": "Maximum number of executions",
    "max_seconds": "Time limit in seconds",
    "max_spend": "Maximum spend",
    "seed": "Seed",
}
AT_ONCE = "0.02 is ± 2 points; blank: what takes seconds, at most 0.05"
THEN = {"/try": 303, "/trial": 307}  # where somebody was going; 307 sends the form on
# What `themis validate` takes.
FORECAST = {*SETTINGS, "against", "threshold", "max_size", "measure"} - {"max_spend"}
MEASURES = (
    ("", "Both; of a search, causal"),
    ("causal", "Causal"),
    ("group", "Group"),
    ("excess", "Excess, of programs that answer at random"),
)
TEXTS = ("among", "data")  # that are no numbers
NOTHING = Html("")


async def ask(request: Request) -> Response:
    """The form of a run, empty or as an earlier one was asked for."""
    site = site_of(request)
    config = site.config()
    if site.read_only:
        said = "The page was started with --read-only: nothing is run."
        return site.page("Measure", tag("p", said), here="/run")
    if not site.is_confirmed:
        return _confirm(site, config, request.query_params.get("then", ""))
    earlier = request.query_params.get("from")
    return _page(site, fields_of(() if earlier is None else run_named(site, earlier).command))


async def forecast(request: Request) -> Response:
    """The form, with what the run that it asks for will cost."""
    fields, site = await posted(request), site_of(request)
    if not site.is_confirmed:
        return RedirectResponse("/run", 303)
    command, *options = command_of(fields)
    if command == "apparent":
        said = "Each row is run once, and again for each change: limit the time if there are many."
        return _page(site, fields, tag("p", said))
    wanted = [each for each in options if _name(each) in FORECAST]
    found = await _foresee(site, [f"--for={command}", *wanted])
    return _page(site, fields, _costs(found))


async def start(request: Request) -> Response:
    """Put a run into the queue."""
    fields, site = await posted(request), site_of(request)
    if not site.is_confirmed:
        return RedirectResponse("/run", 303)
    command, expected = command_of(fields), fields.get("expected", "")
    run = site.runs.add(
        title_of(command),
        command,
        mark=site.mark(),
        expected=int(expected) if expected.isdecimal() and len(expected) < 16 else 0,
    )
    return RedirectResponse(f"/runs/{run.name}", 303)


async def confirm(request: Request) -> Response:
    """Somebody agreed that what the file names is run: this file, as it was shown."""
    fields, site = await posted(request), site_of(request)
    if fields.get("mark") != site.seen():
        raise HTTPException(409, "It changed since it was shown: look at it again.")
    site.confirmed.add(site.seen())
    then = fields.get("then", "")
    return RedirectResponse(then if then in THEN else "/run", THEN.get(then, 303))


# Between forms and commands ---------------------------------------------------------------
def command_of(fields: QueryParams) -> tuple[str, ...]:
    """What a form asks for, as a command of `themis` without its file."""
    command = fields.get("command", "")
    if command not in COMMANDS:
        raise HTTPException(400, "There is no such measurement.")
    taken = (*TAKEN[command], *SETTINGS)
    given = {name: fields.getlist(name) for name in taken}
    if "against" in given:
        given["against"] += fields.get("sets", "").splitlines()
    if command == "search" and not fields.get("threshold", "").strip():
        given["threshold"] = ["0.05"]
    options = (
        f"--{name.replace('_', '-')}={text.strip()}"
        for name in taken
        for text in given[name]
        if text.strip()
    )
    return command, *options


def fields_of(command: Sequence[str]) -> QueryParams:
    """The form that asks for a command."""
    options = ((_name(each), each.partition("=")[2]) for each in command[1:])
    return QueryParams([*(("command", each) for each in command[:1]), *options])


def title_of(command: Sequence[str]) -> str:
    """What a run is called."""
    fields = fields_of(command)
    about = [*fields.getlist("against"), *fields.getlist("data")]
    return ": ".join(filter(None, [COMMANDS[command[0]][0], "; ".join(about)]))


def _name(option: str) -> str:
    return option.partition("=")[0].removeprefix("--").replace("-", "_")


async def _foresee(site: Site, options: Sequence[str]) -> dict[str, Any]:
    """What `themis validate` says of a command."""
    text, said = await ask_command(site, "validate", str(site.file), "--json", *options)
    found: dict[str, Any] = json.loads(text) if text else {"mistakes": said}
    return found


# What is shown ----------------------------------------------------------------------------
def _confirm(site: Site, config: Config, then: str) -> Response:
    """All that a file names, before any of it is run."""
    return site.page(
        "May this be run?",
        tag("p", f"{site.file.name} names what is below. Themis runs it on this machine, with your "
            "rights: confirm it only if you know where it comes from."),
        table("What the file names", ("Key", "What it says", "What is done with it"),
              (_named(site, each) for each in programs(config)), kind="chart"),
        site.form("/confirm", hidden(mark=site.seen(), then=then), button("Yes, run this")),
        here="/run",
    )  # fmt: skip


def _named(site: Site, each: Named) -> tuple[Any, Any, Any]:
    said = tag("code", value(" ".join(each.words)))
    use = f"{each.use[:1].upper()}{each.use[1:]}"
    if PICKLE in use and not site.trust_pickle:
        use = f"{use}: refused, unless the page is started with --trust-pickle"
    files = (tag("small", value(str(place))) for place in each.files)
    return tag("code", each.key), said, join([use, *files])


def _page(site: Site, fields: QueryParams, costs: Html = NOTHING) -> Response:
    config = site.config()
    chosen = fields.get("command", "audit")
    commands = [each for each in COMMANDS if each != "check" or config.checks]
    form = site.form(
        "/run",
        costs,
        tag("fieldset", tag("legend", "What is measured"),
            *(_radio(each, checked=each == chosen) for each in commands)),
        *_particulars(config, fields),
        folded("Precision and limits",
               tag("div", *_settings(config, fields), class_="settings")),
        tag("p", button("Forecast", kind="second", formaction="/forecast"), " ", button("Start"),
            class_="buttons"),
        kind="measure",
    )  # fmt: skip
    return site.page("Measure", form, here="/run")


def _costs(found: Mapping[str, Any]) -> Html:
    """What was foreseen, the sum first, with a way to start; or why nothing could be foreseen."""
    if "mistakes" in found:
        return problems(found["mistakes"])
    nothing = "nothing is known: no trial input was answered"
    *parts, whole = [each.replace("--max-seconds", "a time limit") for each in found["costs"]
                     or [nothing]]  # fmt: skip
    expected = (found["forecast"] if found["forecast"]["parts"] else found["checks"]) or {}
    return tag(
        "section",
        tag("h2", "What it will cost"),
        tag("p", f"{whole[:1].upper()}{whole[1:]}.", class_="sentence"),
        tag("ul", *(tag("li", each) for each in parts)),
        problems(filter(None, [found["failure"], *found["warnings"]])),
        hidden(expected=expected.get("executions", 0)),
        button("Start"),
        class_="costs",
        id="costs",
    )


def _radio(name: str, *, checked: bool) -> Html:
    about = {"type": "radio", "name": "command", "value": name, "id": f"command-{name}"}
    box = empty("input", checked="checked" if checked else None, **about)
    title, text = COMMANDS[name]
    said = tag("label", tag("b", title), " ", tag("span", text, class_="hint"), for_=about["id"])
    return tag("p", box, " ", said, class_="option")


def _particulars(config: Config, fields: QueryParams) -> Iterator[Html]:
    """What only some commands take; the style shows it where it is taken."""
    shown = {name: _box(name, label, hint, fields) for name, (label, hint) in ASKED.items()}
    shown["against"] = _against(config, fields)
    shown["measure"] = choice("measure", "Score", MEASURES, fields.get("measure", ""))
    for name, each in shown.items():
        yield tag("div", each, data_for=" ".join(c for c, taken in TAKEN.items() if name in taken))


def _against(config: Config, fields: QueryParams) -> Html:
    """Sets: each protected characteristic, and lines for others."""
    own = config.schema.protected
    given = [*fields.getlist("against"), *fields.get("sets", "").splitlines()]
    boxes = (ticked("against", name, value(name), is_chosen=name in given) for name in own)
    rest = "\n".join(each for each in given if each not in own)
    lines = tag("textarea", literal(rest), name="sets", id="sets", rows=2)
    hint = "one set a line, as race,sex; none at all: what the file protects"
    others = labelled("sets", "Other sets", lines, hint)
    legend = tag("legend", "Which characteristics")
    return tag("fieldset", legend, tag("p", *boxes, class_="picks"), others)


def _settings(config: Config, fields: QueryParams) -> Iterator[Html]:
    for name, label in SETTINGS.items():
        if name == "max_spend" and "prices" not in config.subject.options:
            continue
        kept = getattr(config.settings, name)
        hint = f"blank: {'no limit' if kept is None else f'{kept:g}'}"
        if name == "error" and "run.error" not in config.lines:
            hint = AT_ONCE
        yield _box(name, label, hint, fields)


def _box(name: str, label: str, hint: str, fields: QueryParams) -> Html:
    about: dict[str, Any] = {"kind": "number", "min": 0, "step": "any"}
    return written(name, label, fields.get(name, ""), hint, **({} if name in TEXTS else about))


ROUTES = [
    Route("/run", ask),
    Route("/run", start, methods=["POST"]),
    Route("/forecast", forecast, methods=["POST"]),
    Route("/confirm", confirm, methods=["POST"]),
]
