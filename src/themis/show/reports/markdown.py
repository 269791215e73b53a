"""A result as a comment on a pull request, and the cover note of an audit's folder, as Markdown."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator
from functools import singledispatch
from typing import Any

from themis.results.finding import finding
from themis.results.model import CausalScore, GroupScore, Result, Score
from themis.results.withheld import by_size, withheld
from themis.show.blocks import (
    Axis,
    Block,
    Cell,
    Chip,
    Commands,
    Content,
    Fold,
    Part,
    Points,
    Statement,
    Table,
    head_text,
    text_of,
)
from themis.show.html import cut
from themis.show.parts.cautions import caution_blocks, cautions
from themis.show.parts.checks import accepted, checks_table
from themis.show.parts.outcomes import known_of_people
from themis.show.parts.scores import WITNESSES, pair_blocks, scores_table
from themis.show.reports.method import RECIPE, command_again, digest, same_again
from themis.show.words.explanations import harms, pairs_origin
from themis.show.words.headlines import headline
from themis.show.words.scores import cost_text, how_sure_together, impact, outputs_text
from themis.show.words.searches import checks_guarantee, guarantee
from themis.show.words.values import count, set_text, unbroken, visible
from themis.show.words.verdicts import measured_on, verdict
from themis.show.words.wording import Wording, subject_title, wording

LIMIT = 65_000  # characters; GitHub takes 65,536
ROWS = 40  # of a table
LONGEST = 600  # characters of a cell or a sentence
MARKS = {"calm": "✅", "grave": "❌", "undecided": "❔", "open": "☑️"}  # accepted, or known
BOLD = ("changed", "better", "worse")

_SPECIAL = re.compile(r"[\\`*_\[\]<>|~&#]")
_LINKING = re.compile(r"@(?=\w)|&#35;(?=\w)|:(?=[\w+-]+:)")  # people, issues, emoji
_LEADING = re.compile(r"^(?:[-+=\s]|\d(?=\d*[.)](?:\s|$)))")  # would begin a list, rule or code


def render_markdown(result: Result) -> str:
    """The verdict, a table, the people it happens to, and the cost; at most LIMIT characters."""
    title = f"## Themis: {escape(subject_title(result), begins=False)}: {verdict(result).word}"
    parts = [title, *drawn(_blocks(result))]
    cost = f"<sub>{escape(f'{_certainty(result)} {cost_text(result)}'.strip())}</sub>"
    return "\n\n".join([*_fitting(parts, LIMIT - len(cost) - 100), cost]) + "\n"


def _blocks(result: Result) -> Iterator[Block]:
    """What a comment says, in its order."""
    found, words = verdict(result), wording(result)
    yield Statement(found.sentence, "headline")
    if found.behind:
        yield Statement(found.behind)
    for search in result.searches:
        if search.decide_only and search.found:
            yield Points([*map(set_text, search.found)])
    if result.checks:
        yield from (checks_table(result.checks, most=ROWS), *accepted(result.checks))
    elif known := [each for each in result.scores if each.samples]:
        hidden = len(known) - ROWS
        yield scores_table(known[:ROWS], foot=f"… and {hidden:,} more" if hidden > 0 else "")
    doubts = cautions(result)
    yield from caution_blocks(doubts[:ROWS])
    if (hidden := len(doubts) - ROWS) > 0:
        yield Statement(f"… and {hidden:,} more", "warning")
    yield from (Statement(f"Outputs: {outputs_text(each)}") for each in result.outputs)
    for each in known_of_people(result, words, most=ROWS, causal=True):
        yield Fold(each.title, each.blocks)
    for score in _worst(result):
        if people := [*_people(score, words)]:
            yield Fold(headline(score, words), people)


def _worst(result: Result) -> list[Score]:
    """The scores that are surely above 0, the largest first."""
    words = wording(result)
    known = {
        (each.measure, headline(each, words)): each
        for each in result.scores
        if finding(each).state == "grave"
    }
    return sorted(known.values(), key=by_size)[:10]


def _people(score: Score, words: Wording) -> Iterator[Block]:
    """Whom a set hurts, and pairs that show it."""
    ratio = impact(score) if isinstance(score, GroupScore) else None
    if said := [*harms(score, most=3, words=words), *filter(None, [ratio])]:
        yield Points(said)
    if isinstance(score, CausalScore):
        for pair in score.witnesses[:WITNESSES]:
            yield from pair_blocks(pair, score, words)
        if whose := pairs_origin(score):
            yield Statement(f"These pairs: {whose}.")


def _certainty(result: Result) -> str:
    if result.checks:
        return checks_guarantee(result)
    texts = [guarantee(each) for each in result.searches]
    return " ".join(filter(None, [*texts, how_sure_together(result)]))


def _fitting(parts: list[str], room: int) -> Iterator[str]:
    """The parts that fit; that some don't is said."""
    for place, part in enumerate(parts):
        room -= len(part) + 2
        if room < 0:
            yield f"… the rest ({count(len(parts) - place, 'part')}) is in the saved result"
            return
        yield part


def escape(text: str, *, begins: bool = True) -> str:
    """Text that Markdown shows as it is: nothing is styled, linked, mentioned or run.

    What begins a line must not make it a list, a rule or code.
    """
    if not text:
        return ""
    text = _SPECIAL.sub(_entity, visible(text))
    text = _LEADING.sub(_entity, text) if begins else text
    text = _LINKING.sub(lambda found: f"{found[0]}<!-- -->", text)
    text = text.replace("$", "<span>$</span>")  # two of them would be a formula
    return unbroken(text)


def _entity(found: re.Match[str]) -> str:
    return f"&#{ord(found[0])};"


def drawn(blocks: Iterable[Block]) -> Iterator[str]:
    """The blocks as paragraphs; of pictures there is nothing, their numbers stand beside them."""
    for each in blocks:
        if text := _drawn(each):
            yield text


def _cut(text: str) -> str:
    return escape(cut(text, LONGEST))


@singledispatch
def _drawn(block: Any) -> str:
    return ""


@_drawn.register
def _(said: Statement) -> str:
    text = escape(said.text)
    if said.look == "headline":
        return f"**{text}.**"
    text = f"{escape(said.before)}: {text}" if said.before else text
    return f"> ⚠️ {text}" if said.look == "warning" else text


@_drawn.register
def _(points: Points) -> str:
    return "\n".join(f"- {escape(each)}" for each in points.items)


@_drawn.register
def _(commands: Commands) -> str:
    return "\n".join(f"<pre>{escape(each)}</pre>" for each in commands.lines)


@_drawn.register
def _(fold: Fold) -> str:
    summary = f"<details><summary>{escape(fold.title)}</summary>"
    return "\n\n".join([summary, *drawn(fold.blocks), "</details>"])


@_drawn.register
def _(part: Part) -> str:
    return "\n\n".join([f"**{escape(part.title)}**", *drawn(part.blocks)])


@_drawn.register
def _(table: Table) -> str:
    places = [place for place, head in enumerate(table.heads) if not isinstance(head, Axis)]
    heads = [escape(head_text(table.heads[place])) for place in places]
    rows = ([_cell(row[place]) for place in places] for row in table.rows[:ROWS])
    lines = [f"| {' | '.join(each)} |" for each in (heads, ["---"] * len(places), *rows)]
    hidden = len(table.rows) - ROWS
    more = f"… and {hidden:,} more" if hidden > 0 else escape(table.foot)
    return "\n".join([*lines, *([f"\n{more}"] if more else [])])


def _cell(content: Content) -> str:
    text = _cut(text_of(content))
    if isinstance(content, Chip):
        return f"{MARKS.get(content.word, MARKS.get(content.state, ''))} {text}".strip()
    if isinstance(content, Cell):
        text = f"**{text}**" if content.state in BOLD and text else text
        return f"{text} ({_cut(content.small)})" if content.small else text
    return text


# An audit's folder: the verdict, and which file is for whom ------------------------------------
FILES = {
    "report.html": "the report: verdict, findings, pairs, statistics; to read and to print",
    "annex.html": "the annex: rates by category, test log, reference table; to file and to sign",
    "summary.md": "the same in short, for a ticket or a pull request",
    "result.json": "all numbers; `themis report`, `diff`, `replay` and `check --baseline` read it",
    "suite.csv": "the tests behind the scores, with their outputs; `themis replay` runs them again",
}


def render_cover(
    result: Result, files: Collection[str] = tuple(FILES), *, folder: str | None = None
) -> str:
    """The note as Markdown, about these files; it says no more of people than they do.

    `folder` is what was given for them, which is no part of a result.
    """
    return "\n\n".join(_cover(withheld(result), files, folder)) + "\n"


def _cover(result: Result, files: Collection[str], folder: str | None) -> Iterator[str]:
    found = verdict(result)
    yield f"# Audit of {escape(subject_title(result))}"
    yield f"**{escape(found.sentence)}.**"
    if found.behind:
        yield escape(found.behind)
    yield escape(measured_on(result))
    rows = [f"| [{name}]({name}) | {what} |" for name, what in FILES.items() if name in files]
    yield "\n".join(["| file | what it is |", "| --- | --- |", *rows])
    yield f"The command that made this folder. {same_again(result)}"
    where = "" if folder is None else f" --output {shlex.quote(folder)}"
    yield f"```\n{command_again(result) or 'themis audit'}{where}\n```"
    yield f"SHA-256 of the result: `{digest(result)}`. Whoever has the file can compute it:"
    yield f"```\n{RECIPE}\n```"
