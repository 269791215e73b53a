"""What single inputs get: a few of them before anything is measured, and what-ifs of one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from themis.config.reader import Config
from themis.errors import ThemisError
from themis.inputs.characteristics import Characteristic, Integers, Reals, Value, Values
from themis.inputs.schema import Schema
from themis.show.html import Html, empty, folded, join, table, tag, value
from themis.show.words.values import count, visible
from themis.show.words.wording import Wording
from themis.web.pairs import asked_pair
from themis.web.site import Site, ask_command, button, posted, problems, site_of

FIELD = "value:"  # before the names of characteristics, which may be any
PART = "x-themis-part"  # a header: only the answer is wanted


async def form(request: Request) -> Response:
    """The form, with the values of a pair or of an ordinary input."""
    site = site_of(request)
    config = site.config()
    if not site.is_confirmed:
        return RedirectResponse("/run?then=/try", 303)
    if site.read_only:
        said = "This server was started with --read-only: nothing is run."
        return site.page("What if", tag("p", said), here="/try")
    started = asked_pair(request)
    values = await _ask(site, {}) if started is None else {"values": started.values}
    if "mistakes" in values:
        return _page(site, {}, problems(values["mistakes"]))
    begun = "" if started is None else started.about
    known = {each.name for each in config.schema}
    own = {name: each for name, each in values["values"].items() if name in known}
    return _page(site, own, await _answered(site, own), begun)


async def answer(request: Request) -> Response:
    """What the values of the form get."""
    fields, site = await posted(request), site_of(request)
    if not site.is_confirmed:
        return RedirectResponse("/run", 303)
    values = dict(_read(site.config().schema, fields))
    shown = await _answered(site, values)
    return HTMLResponse(shown) if PART in request.headers else _page(site, values, shown)


async def _ask(site: Site, question: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return await run_in_threadpool(site.warm.ask, site.file, site.mark(), question)
    except ThemisError as error:  # the subject did not answer
        return {"mistakes": [str(error)]}


async def _answered(site: Site, values: Mapping[str, Any]) -> Html:
    found = await _ask(site, {"values": values})
    if "mistakes" in found:
        return problems(found["mistakes"])
    return join(_shown(found["answer"], Wording(site.config().report)))


def _page(site: Site, values: Mapping[str, Any], shown: Html, begun: Any = "") -> Response:
    config = site.config()
    words = Wording(config.report)
    asked = site.form(
        "/try",
        tag("div", *_fields(config.schema, values, words), class_="fields"),
        button("Decide"),
        kind="asked",
    )
    told = tag("section", shown, id="answer", aria_live="polite", aria_label="What they get")
    intro = tag("p", "Change a value: the subject decides again, also for each single change.")
    both = tag("div", asked, told, class_="try")
    return site.page("What if", intro, begun, both, here="/try", scripts=["try.js"])


# The form ---------------------------------------------------------------------------------
def _fields(schema: Schema, values: Mapping[str, Any], words: Wording) -> Iterator[Html]:
    """A field for each characteristic that is not derived, protected ones first."""
    derived = {schema.names[tie.follower] for tie in schema.ties if tie.derived}
    own = [each for each in schema if each.name not in derived and not each.is_open]
    for place, each in enumerate(sorted(own, key=lambda each: not each.protected)):
        number = f"value-{place}"
        hints = [*_hints(each)]
        said = [tag("span", ", ".join(hints), class_="hint", id=f"{number}-hint")] if hints else []
        about = {"id": number, "name": f"{FIELD}{each.name}"}
        about |= {"aria_describedby": f"{number}-hint"} if hints else {}
        control = _control(each, values.get(each.name), words, about)
        yield tag("p", tag("label", value(each.name), for_=number), control, *said, class_="field")


def _hints(each: Characteristic) -> Iterator[str]:
    if each.protected:
        yield "protected"
    if each.role != "input":
        yield "never compared" if each.is_given else "not given to the subject"
    if isinstance(each, Integers | Reals):
        steps = "" if each.step == 1 else f", in steps of {each.step:,}"
        yield f"{each.min:,} to {each.max:,}{steps}"
        if each.missing is not None:
            yield "may be empty"


def _control(each: Characteristic, own: Any, words: Wording, about: dict[str, str]) -> Html:
    """What the value of one characteristic is given with."""
    if isinstance(each, Integers | Reals):
        ends = {"min": each.min, "max": each.max, "step": each.step}
        written = "" if own is None else own
        needed = None if each.missing is not None else "required"
        return empty("input", type="number", value=str(written), required=needed, **ends, **about)
    if not _is_listed(each):
        return empty("input", type="text", value="" if own is None else str(own), **about)
    options: list[Value] = [each.value(code) for code in range(each.size)]
    options += [None] if each.missing is not None else []
    made = (
        tag(
            "option",
            words.value(each.name, one),
            value=json.dumps(one),
            selected="selected" if (type(one), one) == (type(own), own) else None,
        )
        for one in options
    )
    return tag("select", *made, **about)


def _is_listed(each: Characteristic) -> bool:
    return isinstance(each, Values) and 0 < each.size <= 2_000


def _read(schema: Schema, fields: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """The values of a form; what is none of a list stays a text, and is refused as such."""
    for each in schema:
        text = fields.get(f"{FIELD}{each.name}")
        if text is not None:
            yield each.name, _chosen(text) if _is_listed(each) else text


def _chosen(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


# The answer -------------------------------------------------------------------------------
def _shown(found: Mapping[str, Any], words: Wording) -> Iterator[Html]:
    """What the input gets, then what its single changes get, and what was not tried."""
    given = _outputs(found["outputs"]) or f"none: {found['failure']}"
    yield tag(
        "p",
        tag("span", "Decision ", class_="label"),
        tag("strong", given, class_=_look(found["outputs"])),
        class_="given",
    )
    run = sum(each["run"] for each in found["tried"])
    tried = f"{count(run, 'single change')} {'was' if run == 1 else 'were'} run"
    telling = [each for each in found["changes"] if each["differs"]]
    same = [each for each in found["changes"] if each["outputs"] and not each["differs"]]
    failed = [each for each in found["changes"] if not each["outputs"]]
    protected = {each["name"] for each in found["tried"] if each["protected"]}

    def changes(title: str, listed: Sequence[Mapping[str, Any]]) -> Html:
        rows = ([*_row(each, found["values"], words, protected)] for each in _together(listed))
        return tag("div", table(title, ("Change", "Decision"), rows), class_="wide")

    one, many = ("alters it", "alter it") if found["outputs"] else ("gets one", "get one")
    said = count(len(telling), one, many) + ":" if telling else f"none {one}."
    yield tag("p", f"{tried}; {said}")
    if telling:
        yield changes("Changes that alter it", telling)
    if failed:
        said = f"{count(len(failed), 'change')} got no decision: {failed[0]['failure']}"
        yield tag("p", said, class_="faint")
    if same:
        title = count(len(same), "change that alters nothing", "changes that alter nothing")
        yield folded(title, changes("Changes that do not", same))
    if left := " ".join(_left_out(found["tried"])):
        yield tag("p", left, class_="faint")


def _together(changes: Sequence[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Changes of one characteristic that get the same, where nothing follows it."""
    for _, alike in groupby(changes, lambda each: (each["name"], each["outputs"])):
        listed = [*alike]
        if any(len(each["values"]) > 1 for each in listed):
            yield from ([each] for each in listed)
        else:
            yield listed


def _row(
    changes: Sequence[Mapping[str, Any]],
    before: Mapping[str, Any],
    words: Wording,
    protected: set[str],
) -> Iterator[Any]:
    """What was changed, with what follows it; then what that gets."""
    (name, *followed), new = changes[0]["values"], changes[0]["values"]
    after = [words.value(name, each["values"][name]) for each in changes]
    marks = ["protected"] if name in protected else []
    if len(after) > 3:  # the first and the last
        marks.append(f"{len(after)} values tried")
        after = [after[0], "…", after[-1]]
    marks += [
        f"{visible(each)}: {words.value(each, before[each])} → {words.value(each, new[each])}"
        for each in followed
    ]
    text = f"{visible(name)}: {words.value(name, before[name])} → {', '.join(after)}"
    yield join([value(text.replace(", …,", " …")), " ", *(tag("small", " · ".join(marks)),)])
    yield tag("span", _outputs(changes[0]["outputs"]), class_=_look(changes[0]["outputs"]))


def _look(outputs: Sequence[Mapping[str, Any]]) -> str | None:
    known = [each["favourable"] for each in outputs]
    return None if len(known) != 1 or known[0] is None else "better" if known[0] else "worse"


def _outputs(given: Sequence[Mapping[str, Any]]) -> str:
    """What was given: the decision, or each output with its name."""
    return ", ".join(
        f"{visible(each['name'])} {visible(each['value'])}"
        if each["name"]
        else visible(each["value"])
        for each in given
    )


def _left_out(tried: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What was not run, and why."""
    for each in tried:
        if each["forbidden"]:
            many = each["forbidden"] > 1
            yield (
                f"{count(each['forbidden'], 'change')} of {visible(each['name'])} "
                f"{'are' if many else 'is'} not allowed by the constraints."
            )
        if (left := each["values"] - each["run"] - each["forbidden"]) > 0:
            yield (
                f"Of {visible(each['name'])}, {each['run']} of {each['run'] + left:,} other "
                "values were tried."
            )


# A few inputs ------------------------------------------------------------------------------
async def trial(request: Request) -> Response:
    """Run a few inputs as `themis validate` does, in a process of its own."""
    await posted(request)
    site = site_of(request)
    if not site.is_confirmed:
        return RedirectResponse("/run?then=/trial", 303)
    rows = "--rows" if site.rows else "--no-rows"
    out, wrong = await ask_command(site, "validate", str(site.file), "--json", rows)
    found = _tried(json.loads(out), site.config()) if out else ()
    links = tag("a", "Change the description", href="/describe"), tag("a", "Measure", href="/run")
    content = problems(wrong), *found, tag("p", *links, class_="actions")
    return site.page("A few inputs", *content, here="/describe")


def _tried(found: Mapping[str, Any], config: Config) -> Iterator[Html]:
    trials, words = found["trials"], Wording(config.report)
    failed = sum(each["output"] is None for each in trials)
    how = f"{failed} of {len(trials)} failed" if failed else "each got a decision"
    whose = "test inputs" if config.profile is None else "rows of people"
    yield tag("p", f"{len(trials)} {whose} were run; {how}. Nothing is measured yet.")
    yield problems(filter(None, [found["failure"], *found["warnings"]]))
    names = [*(trials[0]["values"] or ())]
    if not names:
        yield tag("p", "themis ui --rows shows what they hold.")
    rows = ([*_trial_row(each, names, words)] for each in trials)
    yield tag("div", table("A few inputs", ("Decision", *map(value, names)), rows), class_="wide")
    if failed < len(trials):
        yield folded("What measuring will cost", *(tag("p", each) for each in found["costs"]))


def _trial_row(trial: Mapping[str, Any], names: list[str], words: Wording) -> Iterator[Html]:
    look = {True: "better", False: "worse"}.get(trial["favourable"])
    failed = trial["output"] is None
    yield tag("span", "failed" if failed else value(trial["output"]), class_=look)
    yield from (value(words.value(name, trial["values"][name])) for name in names)


ROUTES = [
    Route("/try", form),
    Route("/try", answer, methods=["POST"]),
    Route("/trial", trial, methods=["POST"]),
]
