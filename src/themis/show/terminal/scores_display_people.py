"""How do two people look side by side? Witnesses as diffs, the one difference marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from themis.results.model import CausalScore, Witness
from themis.show.terminal.parts import (
    DIM,
    HEADLINE,
    MARK,
    Sentence,
    ShellLine,
    grid,
    indented,
    short,
)
from themis.show.words.values import other_changes_first, output_name, set_phrase, visible

WITNESSES = 2  # pairs of people shown, unless all are asked for
COMMON = 12  # characteristics shown in which the two people agree
NARROW = 70  # below this width one pair of people stands beside the names, else two


def show_witnesses(
    score: CausalScore, *, width: int, everything: bool = False
) -> Iterator[RenderableType]:
    """The witnesses, two people side by side, one or two pairs in a table."""
    ranked = other_changes_first(score.witnesses)
    shown = ranked if everything else ranked[:WITNESSES]
    if not shown:
        return
    phrase = set_phrase(score.against).removesuffix(" together")
    yield ""
    yield indented(Sentence(f"People who differ only in {phrase}, and {they_get(score)}:"))
    step = 1 if width < NARROW else 2
    for first in range(0, len(shown), step):
        if first:
            yield ""
        table = pairs_table(
            shown[first : first + step], width, everything=everything, output=score.output
        )
        yield indented(table)
    hidden = len(score.witnesses) - len(shown)
    if hidden:
        yield indented(short(f"{hidden} more such pairs: -v shows them", DIM))
    if everything and shown[0].reproduce:
        yield indented(Sentence("The first pair, in a shell:"))
        yield from (ShellLine(visible(line)) for line in shown[0].reproduce)


def they_get(score: CausalScore) -> str:
    """What the two people of a witness get."""
    another = output_name(score).removeprefix("the ")
    if score.placebo is not None:
        return f"got another {another}, maybe by noise"
    return f"get another {another}"


def show_difference(
    witness: Witness, *, width: int, output: str | None = None
) -> Iterator[RenderableType]:
    """One pair in few lines: in what the two differ side by side, and what both have."""
    names = [name for name in witness.inputs[0] if name not in witness.differs_in]
    yield pairs_table([without(witness, names)], width, everything=True, output=output)
    both = [f"{set_phrase([n])} {set_phrase([visible(witness.inputs[0][n])])}" for n in names]
    if both:
        rest = f", + {len(both) - COMMON} more" if len(both) > COMMON else ""
        yield Sentence(f"{', '.join(both[:COMMON])}{rest}", DIM, first="both have ")


def without(witness: Witness, names: Sequence[str]) -> Witness:
    """The pair with these characteristics left out."""
    first, second = ({n: v for n, v in each.items() if n not in names} for each in witness.inputs)
    return replace(witness, inputs=(first, second))


def pairs_table(
    pairs: Sequence[Witness], width: int, *, everything: bool = False, output: str | None = None
) -> Table:
    """Pairs of people beside the names of their characteristics, then their decisions."""
    names = list(pairs[0].inputs[0])
    changed = {name for pair in pairs for name in pair.differs_in}
    common = [name for name in names if name not in changed]
    hidden = set() if everything else set(common[COMMON:])
    widest = max(8, (width - 24) // (2 * len(pairs)) - 3)
    columns: list[dict[str, Any]] = [{"max_width": 18}]
    for _ in pairs:
        columns += [{"width": 1}, *({"max_width": widest, "min_width": 8} for _ in range(2))]
    table = grid(*columns)
    for name in (name for name in names if name not in hidden):
        changed_here = name in changed
        cells = [_two(pair, name) for pair in pairs]
        table.add_row(short(visible(name), MARK if changed_here else DIM), *_joined(cells))
    if hidden:
        same = [[short("=", DIM), short("=", DIM)] for _ in pairs]
        table.add_row(short(f"+ {len(hidden)} more", DIM), *_joined(same))
    outputs = [[short(visible(each), HEADLINE) for each in pair.outputs] for pair in pairs]
    table.add_row(short(visible(output or "decision"), HEADLINE), *_joined(outputs))
    return table


def _two(pair: Witness, name: str) -> list[Text]:
    """One characteristic of two people; marked where they differ."""
    first, second = (visible(each[name]) for each in pair.inputs)
    if name in pair.differs_in:
        return [short(first, MARK), short(f"‹ {second}", MARK)]
    return [short(first, DIM), short(second, DIM)]


def _joined(cells: Sequence[Sequence[Text]]) -> Iterator[Text]:
    """The cells of all pairs, with a line before each pair."""
    for pair in cells:
        yield short("│", DIM)
        yield from pair
