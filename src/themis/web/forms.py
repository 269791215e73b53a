"""The controls of forms that edit tables of a themis.toml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from themis.config.fields import MAIN, Key, shape_of, shown
from themis.show.html import Html, folded, tag
from themis.web.layout import choice, labelled, written

PREFIX = "key-"  # of fields, before the names of keys


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
        return labelled(field, title, choice(field, _options(key, text), text), hint)
    described = {"aria_describedby": f"{field}-hint", "placeholder": shown(key, examples[0])}
    if shape in ("values", "texts", "table"):
        hint += "; written as in the file" if shape == "table" else "; one on each line"
        rows = str(min(max(text.count("\n") + 2, 3), 12))
        return labelled(field, title, area(field, text, rows=rows, **described), hint)
    return labelled(field, title, written(field, text, **described), hint)


def _options(key: Key, text: str) -> Iterator[tuple[str, str]]:
    words = {"true": "yes", "false": "no"}
    usual = str(key.get("default", "")).lower()
    yield "", f"{words.get(usual, usual)} (default)" if usual else "–"
    known = ["true", "false"] if key.get("type") == "boolean" else key.get("enum", ["context"])
    for each in dict.fromkeys([*map(str, known), text]):
        if each:
            yield each, words.get(each, each)
