"""How do the differences of two results look in a terminal? What changed, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from themis.results.comparison import Bounds
from themis.results.comparison_differences import Differences, ScoreDifference, SetDifference
from themis.show.terminal.parts import (
    DIM,
    HEADLINE,
    WARNING,
    Sentence,
    indented,
    make_console,
    short,
)
from themis.show.terminal.results import render
from themis.show.words.searches import set_text
from themis.show.words.values import count, percent, visible

COLOURS = {"risen": "bold red", "new": "bold red", "fallen": "green", "gone": "green"}
ROWS = 40  # of a table, unless everything is shown


def render_differences(
    found: Differences,
    *,
    file: IO[str] | None = None,
    width: int | None = None,
    everything: bool = False,
) -> str:
    """The differences as text for a terminal or a file."""
    return render(show_differences(found, everything=everything), make_console(file, width=width))


def differences_headline(found: Differences) -> str:
    """Whether there is new discrimination, in one sentence."""
    risen = sum(each.change == "risen" for each in found.scores)
    new = sum(each.change == "new" for each in found.sets)
    if found.verdict == "new discrimination":
        parts = [f"{count(risen, 'score')} {'has' if risen == 1 else 'have'} risen"] * bool(risen)
        parts += [f"{count(new, 'minimal set')} {'is' if new == 1 else 'are'} new"] * bool(new)
        return f"new discrimination: {', '.join(parts)}"
    if found.verdict == "inconclusive":
        return "inconclusive: nothing is surely new, but something may be unseen"
    return "nothing is significantly new"


def guarantee(found: Differences) -> str:
    """How sure the claimed changes are."""
    if not found.compared:
        return "Nothing was compared: it takes something that was measured before and after."
    if found.confidence == 1.0:
        return "All of this is exact: nothing was sampled."
    parts = []
    if found.scores:
        worst = max(each.error for each in found.scores)
        parts.append(f"Each claimed change of a score is wrong with at most {percent(worst)}.")
    if found.confidence > 0:
        parts.append(f"All changes together are right with {100 * found.confidence:.10g} %.")
    return " ".join(parts) or "Nothing is certain about all changes together."


def show_differences(found: Differences, *, everything: bool = False) -> Iterator[RenderableType]:
    """The verdict, the scores, the sets, what else differs, and how sure it is."""
    yield Sentence(differences_headline(found), HEADLINE)
    changed = [each for each in found.scores if each.change in COLOURS]
    rest = [each for each in found.scores if each.change not in COLOURS]
    shown = [*changed, *rest][: None if everything else ROWS]
    if shown:
        yield indented(_score_table(shown))
    if len(shown) < len(found.scores):
        yield indented(Sentence(f"… {len(found.scores) - len(shown):,} more: -v shows them", DIM))
    if found.sets:
        yield ""
        only = "that only one of the two searches found"
        yield Sentence(f"minimal sets {'of the one search' if found.one_search else only}")
        yield indented(_set_table(found.sets[: None if everything else ROWS]))
    yield ""
    for text in found.open:
        yield Sentence(visible(text), WARNING, first="unseen: ")
    for text in found.unlike:
        yield Sentence(visible(text), DIM, first="note: ")
    yield Sentence(guarantee(found), DIM)


def _score_table(differences: list[ScoreDifference]) -> Table:
    table = _grid("score", "change", "before", "after")
    for each in differences:
        table.add_row(
            f"{each.quantity.measure} {set_text(each.quantity.against)}",
            Text(each.change, COLOURS.get(each.change, "")),
            short(_ends(each.before)),
            short(_ends(each.after)),
        )
    return table


def _set_table(differences: tuple[SetDifference, ...]) -> Table:
    table = _grid("set", "change", "before", "after")
    for each in differences:
        change = each.change
        words = change if each.within is None else f"{change} by {set_text(each.within)}"
        table.add_row(
            f"{each.quantity.measure} {set_text(each.quantity.against)}",
            Text(words, COLOURS.get(change, "")),
            short(_ends(each.before)),
            short(_ends(each.after)),
        )
    return table


def _grid(*heads: str) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    options: list[dict[str, Any]] = [{"overflow": "fold", "min_width": 10}, {"overflow": "fold"}]
    for option in (*options, {"no_wrap": True}, {"no_wrap": True}):
        table.add_column(**option)
    table.add_row(*(short(head, DIM) for head in heads))
    return table


def _ends(bounds: Bounds | None) -> str:
    if bounds is None:
        return "unknown"
    if bounds.low == bounds.high:
        return percent(bounds.low)
    if bounds.low == 0:
        return f"at most {percent(bounds.high)}"
    if bounds.high == 1 and bounds.score is None:
        return f"more than {percent(bounds.low)}"
    return f"{percent(bounds.low)} – {percent(bounds.high)}"
