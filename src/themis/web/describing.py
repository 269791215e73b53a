"""The page that describes a subject: forms and the text of the themis.toml that they edit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from themis.config.parts import MAIN, NAMED, Key, Part, Source, kinds_of, shape_of, shown
from themis.engine.replacing import write_whole
from themis.errors import ConfigError, Mistake
from themis.inputs.population import Population
from themis.inputs.schema import Schema
from themis.show.html import Html, folded, tag, value
from themis.show.words.values import count, size
from themis.web.site import (
    Site,
    button,
    choice,
    hidden,
    labelled,
    posted,
    problems,
    site_of,
    ticked,
    written,
)
from themis.web.uploads import ANY, beginnings, upload_field

PREFIX = "key-"  # of fields, before the names of keys
SECTIONS = {  # their titles, and what one of several is called
    "subject": ("What is tested", ""),
    "inputs": ("Characteristics", "a characteristic"),
    "constraints": ("Constraints", "a constraint"),
    "outputs": ("Outputs", "an output"),
    "profile": ("Real people", ""),
    "report": ("Words for reports", ""),
    "run": ("Confidence and cost", ""),
}


def describe(request: Request) -> Response:
    """The forms of the file, beside its text."""
    site = site_of(request)
    return _Page(site, Source.of(site.file), dict(request.query_params)).answer()


async def save(request: Request) -> Response:
    """Edit the file: the keys of a form, or all of its text."""
    given, site = await _sent(request), site_of(request)
    source = Source.of(site.file)
    try:
        new = _edited(source, given)
    except ConfigError as error:
        is_stale = given.get("mark") != source.mark
        page = _Page(site, source, {} if is_stale else given)
        return page.answer(409 if is_stale else 400, error.mistakes)
    before = {(each.where, each.problem) for each in _mistakes(source)}
    fresh = [each for each in _mistakes(new) if (each.where, each.problem) not in before]
    if fresh and "anyway" not in given:
        return _Page(site, source, given).answer(400, fresh)
    write_whole(site.file, new.text.encode())
    return RedirectResponse(f"/describe#{given.get('section', 'file')}", 303)


async def check(request: Request) -> Response:
    """What a form would make of the file, and what is wrong with that; nothing is saved."""
    given, source = await _sent(request), Source.of(site_of(request).file)
    return JSONResponse(await run_in_threadpool(_checked, source, given))


async def _sent(request: Request) -> dict[str, str]:
    """What a form holds; browsers send lines with ends of their own."""
    return {name: text.replace("\r\n", "\n") for name, text in (await posted(request)).items()}


def _checked(source: Source, given: Mapping[str, str]) -> dict[str, str]:
    try:
        new = _edited(source, given)
    except ConfigError as error:
        return {"state": problems(map(_told, error.mistakes))}
    return {"state": _state(new), "text": new.plain}


def _edited(source: Source, given: Mapping[str, str]) -> Source:
    """What a form makes of the file, if that is as it was when the form was made."""
    if given.get("mark") != source.mark:
        problem, remedy = "it was changed after this page was made", "go back for what you wrote"
        where = source.path.name
        raise ConfigError([Mistake("stale", where, problem, f"{remedy}, and repeat it")])
    if "text" in given:
        return source.rewritten(given["text"])
    part = _part(source, given)
    if given.get("do") == "remove":
        return source.without(part)
    texts = {key: given[PREFIX + key] for key in part.keys if PREFIX + key in given}
    return source.filled_in(part, texts)


def _part(source: Source, given: Mapping[str, str]) -> Part:
    """The part that a form, or an address, names."""
    section, name, kind = (given.get(key, "") for key in ("section", "name", "kind"))
    section = section if section in SECTIONS else "subject"
    return source.part(section, name, kind, is_new="new" in given)


def _mistakes(source: Source) -> Iterable[Mistake]:
    try:
        source.config()
    except ConfigError as error:
        return error.mistakes
    return ()


def _told(mistake: Mistake) -> str:
    line = f"Line {mistake.line}, " if mistake.line else ""
    return f"{line}{mistake.at(file='', line=None)}"


def _state(source: Source) -> Html:
    """What is wrong with the file, or else how many inputs it describes."""
    try:
        return tag("p", _domain(source.config().schema), class_="clear")
    except ConfigError as error:
        listed = (tag("li", _told(each)) for each in error.mistakes)
        return tag("div", tag("ul", *listed), class_="problems")


def _domain(schema: Schema) -> str:
    free = Population.of(schema.with_constraints(())).size or schema.size
    text = f"{count(len(schema), 'characteristic')}, {size(free)} possible inputs"
    if not schema.constraints:
        return f"{text}."
    valid = Population.of(schema).size
    leave = count(len(schema.constraints), "constraint leaves", "constraints leave")
    return f"{text}; {leave} {'too many to count' if valid is None else size(valid)}."


class _Page:
    """The page, with the form that is open, as it was filled in."""

    def __init__(self, site: Site, source: Source, given: Mapping[str, str]) -> None:
        self._site, self._source, self._given = site, source, given
        self._may_insist = False

    def answer(self, status: int = 200, mistakes: Iterable[Mistake] = ()) -> Response:
        """The page with what is wrong with an edit that was not saved."""
        self._may_insist = status == 400
        refused = tag("h2", "Not saved") if status != 200 else ""
        content = refused, problems(map(_told, mistakes)), *self._content()
        scripts = ["describe.js", "send.js"]
        return self._site.page(
            "Describe", *content, status=status, here="/describe", scripts=scripts
        )

    def _content(self) -> Iterator[Html]:
        is_there, site = self._site.file.exists(), self._site
        state = _state(self._source) if is_there else Html("")
        if site.read_only:
            yield state
            yield tag("pre", tag("code", Html(escape(self._source.plain))), tabindex="0")
            return
        if not is_there:
            yield from beginnings(site)
        yield state
        if is_there:
            yield site.form("/trial", button("Try a few inputs"))
        yield tag("div", tag("div", *self._sections()), self._text(), class_="described")
        if is_there:
            yield upload_field(site, "Upload a table, a model or an API description", ANY)

    def _text(self) -> Html:
        """The file as it is, to be read and edited."""
        text = self._given.get("text", self._source.plain)
        rows = str(min(max(text.count("\n") + 2, 12), 40))
        title = tag("h2", self._site.file.name, id="text-title")
        lines = area("text", text, rows=rows, aria_labelledby="text-title")
        return self._form([title, lines], "Save the text", id_="file")

    def _form(self, content: Iterable[Any], save: str, *others: Html, **attributes: str) -> Html:
        """A form that is checked while it is filled in."""
        mark, box = hidden(mark=self._source.mark), ticked("anyway", "yes", "Save it all the same")
        insist = [tag("p", box)] if self._may_insist else []
        live = tag("output", class_="live")  # what the script says while it is filled in
        send = tag("p", button(save), *others, class_="actions")
        whole = mark, *content, live, *insist, send
        form = self._site.form("/describe", *whole, kind="checked")
        return tag("div", form, **attributes)

    def _sections(self) -> Iterator[Html]:
        try:
            assert self._source.data is not None
        except ConfigError:  # only the text can be edited
            return
        for section, (title, one) in SECTIONS.items():
            names = [*self._source.table(section)] if section in NAMED else [""]
            head = [tag("h2", title)] if one else []
            yield tag("section", *head, *self._entries(section, names, title), id=section)

    def _entries(self, section: str, names: Iterable[str], title: str) -> Iterator[Html]:
        """What a section holds, one of them perhaps as a form."""
        asked = self._given if self._given.get("section") == section else None
        for name in names:
            own = {"section": section, "name": name}
            if asked is not None and "new" not in asked and asked.get("name", "") == name:
                yield self._edit(_part(self._source, asked))
            else:
                link = _link(value(name) if name else title, own)
                yield tag("p", link, " ", _summary(_part(self._source, own)), class_="entry")
        if asked is not None and "new" in asked:
            yield self._edit(_part(self._source, asked))
        elif one := SECTIONS[section][1]:
            yield tag("p", _link(f"Add {one}", {"section": section, "new": "yes"}))

    def _edit(self, part: Part) -> Html:
        """The form of a part, with its kinds to choose from."""
        own = {"section": part.section, "name": part.name}
        own |= {"new": "yes"} if part.is_new else {}
        kinds = [
            tag("li", _link(about, {**own, "kind": kind}, kind == part.kind))
            for kind, about in kinds_of(part.section).items()
        ]
        title, one = SECTIONS[part.section]
        content = [tag("h3", f"Add {one}" if part.is_new else value(part.name or title))]
        content += [tag("ul", *kinds, class_="kinds")] if kinds else []
        if part.is_new:
            del own["name"]
            name = self._given.get("name", "")
            content += [written("name", "Name", name, required="required")]
        texts = {
            key: self._given.get(PREFIX + key, shown(about, part.spec.get(key)))
            for key, about in part.keys.items()
        }
        content += [hidden(**own, kind=part.kind), *controls(part.keys, texts)]
        remove = button("Remove", kind="quiet", name="do", value="remove")
        cancel = tag("a", "Cancel", href=f"/describe#{part.section}")
        others = [cancel] if part.is_new or part.section == "subject" else [remove, cancel]
        return self._form(content, "Save", *others, id_="edit")


def _summary(part: Part) -> Html:
    """What the file says of a part, on a line."""
    told = [
        name if each is True else said if name in ("values", "condition") else f"{name} {said}"
        for name, each in part.spec.items()
        if name in part.keys and (said := shown(part.keys[name], each).replace("\n", ", "))
    ]
    return tag("span", value(" · ".join(told)), class_="faint") if told else Html("")


def _link(text: Any, asked: Mapping[str, str], is_here: bool | None = None) -> Html:
    query = urlencode({key: each for key, each in asked.items() if each})
    return tag("a", text, href=f"/describe?{query}#edit", aria_current="true" if is_here else None)


# Controls ------------------------------------------------------------------------------------
def controls(keys: Mapping[str, Key], texts: Mapping[str, str]) -> Iterator[Html]:
    """A control for each key with its text; those that few files need are folded."""
    made = {name: _control(name, key, texts.get(name, "")) for name, key in keys.items()}
    yield from (each for name, each in made.items() if name in MAIN)
    rare = {name: each for name, each in made.items() if name not in MAIN}
    if rare:
        said = ", ".join(name.replace("_", " ") for name in rare if texts.get(name))
        yield folded(f"More: {said}" if said else "More", *rare.values())


def area(name: str, text: str, **attributes: Any) -> Html:
    """Lines to write in, with every byte of a text between its tags."""
    inside = Html(f"\n{escape(text)}")  # browsers drop the first line end
    return tag("textarea", inside, name=name, id=name, spellcheck="false", **attributes)


def _control(name: str, key: Key, text: str) -> Html:
    field, title, shape = f"{PREFIX}{name}", name.replace("_", " ").capitalize(), shape_of(key)
    hint, examples = key.get("description", ""), key.get("examples") or [None]
    if shape == "choice":
        return choice(field, title, _options(key, text), text, hint)
    described = {"aria_describedby": f"{field}-hint", "placeholder": shown(key, examples[0])}
    if shape in ("values", "texts", "table"):
        hint += "; written as in the file" if shape == "table" else "; one on each line"
        rows = str(min(max(text.count("\n") + 2, 3), 12))
        return labelled(field, title, area(field, text, rows=rows, **described), hint)
    return written(field, title, text, hint, **described)


def _options(key: Key, text: str) -> Iterator[tuple[str, str]]:
    words = {"true": "yes", "false": "no"}
    usual = str(key.get("default", "")).lower()
    yield "", f"{words.get(usual, usual)} (default)" if usual else "–"
    known = ["true", "false"] if key.get("type") == "boolean" else key.get("enum", ["context"])
    for each in dict.fromkeys([*map(str, known), text]):
        if each:
            yield each, words.get(each, each)


ROUTES = [
    Route("/describe", describe),
    Route("/describe", save, methods=["POST"]),
    Route("/describe/check", check, methods=["POST"]),
]
