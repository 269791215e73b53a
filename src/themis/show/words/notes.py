"""Notes and endings in plain words, and what is known of each code.

notes.toml has the sentence of every code, codes.toml what it means and what helps.

A code that is not known, of a later version, is shown as it is with its values; so is one whose
values are not those that its sentence needs.
"""

from __future__ import annotations

import re
import shlex
import string
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from themis.inputs.columns import SHARED
from themis.results.model import Result
from themis.results.notes import CODES, Ending, Note
from themis.results.parts import Unnamed
from themis.show.words.values import (
    LONGEST_TEXT,
    Rounding,
    all_of,
    at_least,
    at_most,
    confidence_text,
    count,
    cut_name,
    cut_text,
    exact_figure,
    figure,
    length_text,
    one_line,
    percent,
    points,
    round_points,
    share_text,
    some_of,
    told_apart,
    visible,
)
from themis.show.words.wording import PLAIN, favour_remedy

Values: TypeAlias = Mapping[str, Any]

WORDS: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("notes.toml").read_text(encoding="utf-8")
)
ENDS: dict[str, Rounding] = {"low": "down", "floor": "down", "high": "up", "explains": "up"}
SHOWN = 3  # constraints, spellings or values that are named
_ALWAYS = {  # what the words of some sentences need, and no note has as a value
    "noise": WORDS["ended"]["noise"],
    "rates": "rates",
    "what": "its score",
    "shared": str(SHARED),
}
_CHOICE = re.compile(r"<([^<>|]*)(?:\|([^<>]*))?>")


def sentence(note: Note) -> str:
    """The note in words."""
    template = WORDS["untold" if "untold" in note.values else "words"].get(note.code)
    try:
        if template is not None:
            return f"{_prefix(note.values)}{_filled(template, note.values)}"
    except (LookupError, TypeError, ValueError, AttributeError):
        pass  # it was edited
    values = ", ".join(f"{name} {each}" for name, each in note.values.items())
    return one_line(f"{note.code} ({values})" if values else note.code)


def how_it_ended(stopped: Ending) -> str:
    """Why something is not finished."""
    return WORDS["ended"].get(stopped, WORDS["ended"]["interrupted"])


def command_without(note: Note, result: Result) -> str | None:
    """The command that measures again without the constraints that make a finding, if known."""
    command, names = (result.source or {}).get("command"), note.values.get("constraints")
    measured = result.command in ("score", "search", "apparent")
    if note.code != "made-by-constraints" or not measured:
        return None
    if not isinstance(command, str) or not isinstance(names, Mapping):
        return None
    return " ".join([command, *(f"--without-constraint {shlex.quote(name)}" for name in names)])


def fields_of(template: str) -> Iterator[tuple[str, str, str]]:
    """The texts of a sentence, each with the field behind it and how that is written."""
    for text, name, spec, _ in string.Formatter().parse(template):
        yield text, name or "", spec or ""


def _filled(template: str, values: Values) -> str:
    """The sentence with the values; what its words need is among them."""
    known = {
        **_ALWAYS,
        **({"rates": "means", "what": "the difference"} if "span" in values else {}),
        "lone": values.get("paired") != values.get("rows"),
        **values,
    }

    def chosen(match: re.Match[str]) -> str:
        return match[1] if _has_all(match[1], known) else match[2] or ""

    while _CHOICE.search(template):  # from the inside out
        template = _CHOICE.sub(chosen, template)
    parts = (text + _written(known, name, spec) for text, name, spec in fields_of(template))
    return "".join(parts)


def _has_all(part: str, values: Values) -> bool:
    named = ((values.get(name), spec) for _, name, spec in fields_of(part) if name)
    return all(value if spec == "?" else value is not None for value, spec in named)


def _written(values: Values, name: str, spec: str) -> str:
    """A field of a sentence."""
    if not name or spec == "?":
        return ""
    if spec in SPECS:
        return SPECS[spec](values, name)
    value = values[name]
    if spec.startswith("count "):
        return count(value, spec.removeprefix("count "))
    if "/" in spec:
        one, many = spec.split("/")
        return one if (value if isinstance(value, int) else len(value)) == 1 else many
    if name in WORDS:
        return str(WORDS[name].get(value, value))
    return ",".join(value) if isinstance(value, list) else format(value, spec)


def _prefix(values: Values) -> str:
    """Of which set or output a note is, or of which of two results."""
    about = f"{values['about']}: " if "about" in values else ""
    return f"{WORDS['when'][values['when']]}: {about}" if "when" in values else about


def _amount(values: Values, name: str) -> str:
    """A score or a part of it: in per cent or points, or in the units of the output."""
    to = ENDS.get(name, "near")
    if "span" in values:
        return figure(values["span"] * values[name], to=to)
    shown = percent if values.get("measure") == "causal" else points
    return shown(values[name], to)


def _precise(values: Values, name: str) -> str:
    """The same with as many digits as tell it from a threshold."""
    shown = _precision(values, name)
    causal = values.get("measure") == "causal" and "span" not in values
    return f"{shown.split()[0]} %" if causal else shown


def _precision(values: Values, name: str) -> str:
    return _amount(values, name) if "span" in values else round_points(values[name])


def _amounts(values: Values, _: str) -> str:
    """Between which ends something is, with the unit once."""
    low, high = (_amount(values, end) for end in ("low", "high"))
    if low == high:
        return low
    unit = high.rpartition(" ")[2]
    return f"{low.removesuffix(f' {unit}')} to {high}"


def _no_decision(values: Values, _: str) -> str:
    """How often each group got no decision; the extreme ones, where there are many."""
    groups = sorted(values["groups"], key=lambda each: each["rate"], reverse=True)
    shown = groups if len(groups) <= 4 else [groups[0], groups[-1]]
    parts = "; ".join(map(_no_decision_of, shown))
    if "confidence" not in values:
        return parts
    together = "all" if len(groups) > 2 else "both"
    return f"{parts} ({confidence_text(values['confidence'])}, {together} intervals together)"


def _no_decision_of(group: Values) -> str:
    who = ", ".join(f"{name} {visible(value)}" for name, value in group["values"].items())
    text = f"{who or PLAIN.label({})}: {group['undecided']:,} of {group['samples']:,}"
    low, high = percent(group["low"], "down"), percent(group["high"], "up")
    return text if group["low"] == group["high"] else f"{text} (between {low} and {high})"


def _spellings(values: Values, _: str) -> str:
    texts = "; ".join(" and ".join(map(repr, group)) for group in values["texts"][:SHOWN])
    more = "; …" if len(values["texts"]) > SHOWN else ""
    return f"{texts or 'outputs that few people get'}{more}"  # which are not shown


def _person(values: Values, name: str) -> str:
    named = ((cut_name(visible(each)) for each in both) for both in values[name].items())
    return ", ".join(" ".join(both) for both in named)


def _columns(values: Values, name: str) -> str:
    return some_of([cut_name(visible(each)) for each in values[name]], 20)


def _quantity(values: Values, name: str) -> str:
    """The name of a score, of which what counts as favourable is cut: it comes last."""
    start, sign, favours = values[name].partition("favourable: ")
    return f"{start}{sign}{cut_name(favours.removesuffix(')'))})" if sign else start


def _share(values: Values, name: str) -> str:
    ends = (values.get("low"), values.get("high"))
    return share_text(values[name], values["changed"], values["inputs"], *ends)


def _reasons(values: Values, name: str) -> str:
    parts = []
    for each in values[name]:
        examples = ", ".join(map(_example, each["examples"]))
        parts.append(f"{each['where']}: {each['reason']} ({each['rows']:,}, e.g. {examples})")
    return "; ".join(parts)


def _example(example: Values) -> str:
    place = f"line {example['line']:,}" if "line" in example else f"row {example['row']:,}"
    value = example["value"]
    if value is None:
        return place
    if isinstance(value, Mapping):
        value = ", ".join(f"{name} {each}" for name, each in value.items())
        return f"{value} in {place}"
    return f"{value!r} in {place}"


def _like(values: Values, name: str) -> str:
    if name in values and values[name] is None:  # it is of a person
        return "such value"
    return f"value like {repr(values[name]) if name in values else 'nothing'}"


def _others(values: Values, name: str) -> str:
    more = values["distinct"] - len(values["favourable"]) - len(values[name])
    *first, last = [*map(quoted, values[name]), *([f"{more:,} more"] if more > 0 else [])]
    return f"{', '.join(first)} and {last}" if first else last


def _rules(values: Values, name: str) -> str:
    rules = [f"{rule} ({text})" for rule, text in values[name].items()]
    return some_of(rules, SHOWN, between="; ")


def _scale(values: Values, name: str) -> str:
    low, high = values[name]
    return f"{exact_figure(low)} to {exact_figure(high)}"


def _difference(values: Values, name: str) -> str:
    return _filled(WORDS["differs"][values[name]], values)


def quoted(value: Any) -> str:
    """An output as Python writes it; of a long one its start, and its size.

    What stands in the place of outputs that are not named has no quotation marks.
    """
    if isinstance(value, Unnamed):
        return str(value)
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return f"{value[:LONGEST_TEXT]!r}… {length_text(value)}"
    return cut_text(repr(value))


def quotes(values: Iterable[Any]) -> str:
    """Outputs or values as Python writes them: `'approved', 'refused'`."""
    return ", ".join(map(quoted, values))


def _examples(values: Values, name: str) -> str:
    return quotes(values[name][:SHOWN]) + (", …" if len(values[name]) > SHOWN else "")


SPECS: dict[str, Callable[[Values, str], str]] = {
    "amount": _amount,
    "amounts": _amounts,
    "precise": _precise,
    "precision": _precision,
    "percent": lambda values, name: percent(values[name]),
    "points": lambda values, name: points(values[name]),
    "at-least": lambda values, name: at_least(points(values[name], "down")),
    "at-most": lambda values, name: at_most(percent(values[name], "up")),
    "of-rows": lambda values, name: percent(values[name] / values["rows"]),
    "share": _share,
    "confidence": lambda values, name: confidence_text(values[name]),
    "and": lambda values, name: all_of(values[name]),
    "or": lambda values, name: " or ".join(values[name]),
    "list": lambda values, name: ", ".join(values[name]),
    "names": lambda values, name: all_of(cut_name(visible(each)) for each in values[name]),
    "line": lambda values, name: one_line(values[name]),
    "quoted": lambda values, name: quoted(values[name]),
    "quotes": lambda values, name: quotes(values[name]),
    "examples": _examples,
    "first": lambda values, name: told_apart(values[name])[0],
    "second": lambda values, name: told_apart(values[name])[1],
    "before": lambda values, _: told_apart([values["before"], values["after"]])[0],
    "after": lambda values, _: told_apart([values["before"], values["after"]])[1],
    "scale": _scale,
    "no-decision": _no_decision,
    "spellings": _spellings,
    "person": _person,
    "columns": _columns,
    "quantity": _quantity,
    "reasons": _reasons,
    "like": _like,
    "others": _others,
    "remedy": lambda values, _: favour_remedy(values),
    "rules": _rules,
    "difference": _difference,
}

Kind = Literal["mistake", "note"]


@dataclass(frozen=True)
class Code:
    """What is known of a code, whatever it was raised or said about."""

    code: str
    kind: Kind
    about: str  # "in the file"
    means: str
    helps: str  # empty where nothing is to be done
    page: str  # of the documentation
    values: tuple[str, ...] = ()  # of a note

    @property
    def group(self) -> str:
        """What it is, as a title: "Mistakes in the file"."""
        return f"{self.kind.capitalize()}s {self.about}"


@cache
def known_codes() -> tuple[Code, ...]:
    """Every code, group by group; a few are both a mistake and a note."""
    text = Path(__file__).with_name("codes.toml").read_text(encoding="utf-8")
    kinds: dict[Kind, dict[str, dict[str, list[str]]]] = tomllib.loads(text)  # type: ignore[assignment]
    return tuple(
        _code(kind, about, code, words, str(group["page"]))
        for kind, groups in kinds.items()
        for about, group in groups.items()
        for code, words in group.items()
        if code != "page"
    )


def _code(kind: Kind, about: str, code: str, words: list[str], page: str) -> Code:
    means, helps, page = [*words, page][:3]
    if kind == "mistake":
        return Code(code, kind, about, means, helps, page)
    return Code(code, kind, about, means, helps, page, CODES[code])
