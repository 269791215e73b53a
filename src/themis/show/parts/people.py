"""Pairs of inputs, who loses by which change, and where the changed decisions are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from themis.results.model import CausalScore
from themis.results.parts import Witness
from themis.show.blocks import Block, Cell, Commands, Content, Fold, Number, Statement, Table
from themis.show.words.explanations import (
    gained_text,
    joint_pair_sentence,
    lost_text,
    pairs_origin,
)
from themis.show.words.naming import output_name
from themis.show.words.values import (
    count,
    set_with_followers,
    told_apart,
    visible,
)
from themis.show.words.wording import Wording

COMMON = 12  # characteristics named in which the two of a pair agree
DIFFERENCES = 24  # rows of a pair
LINE = 4_000  # letters of an input


def pairs_title(score: CausalScore) -> str:
    """What the pairs of a score show: `Pairs who differ only in sex but get different …`."""
    what = f"{output_name(score).removeprefix('the ')}s"
    if score.output is not None:
        what = f"values of {output_name(score)}"
    whose = f" ({whose})" if (whose := pairs_origin(score)) else ""
    phrase = set_with_followers(score.against, score.followed)
    return f"Pairs who differ only in {phrase} but get different {what}{whose}:"


def pair_blocks(pair: Witness, score: CausalScore, words: Wording) -> Iterator[Block]:
    """Two inputs: in what they differ and what they get side by side, then what both have."""
    yield pair_table(pair, score.output, words)
    common = [name for name in pair.inputs[0] if name not in pair.differs_in]
    if common:
        both = ", ".join(
            f"{visible(n)} {words.value(n, pair.inputs[0][n], LINE)}" for n in common[:COMMON]
        )
        more = f", + {len(common) - COMMON} more" if len(common) > COMMON else ""
        yield Statement(f"{both}{more}", "faint", "both")
    if needs := joint_pair_sentence(pair, score, words):
        yield Statement(needs, "faint")


def pair_table(pair: Witness, output: str | None, words: Wording) -> Table:
    """A row for each difference, and one for what the two get."""
    rows: list[Sequence[Content]] = []
    for name in pair.differs_in[:DIFFERENCES]:
        values = [words.value(name, person[name], most=LINE) for person in pair.inputs]
        values = values if values[0] != values[1] else [visible(e[name]) for e in pair.inputs]
        rows.append((visible(name), *(Cell(e, state="changed") for e in told_apart(values))))
    if (hidden := len(pair.differs_in) - DIFFERENCES) > 0:
        rows.append((f"+ {hidden} more", "≠", "≠"))
    first, second = told_apart(pair.outputs)
    ends = (Cell(first, state="better"), Cell(second, state="worse"))
    rows.append((visible(output or "decision"), *ends))
    return Table("Two that differ", ("", "one", "the other"), rows, shape="pair")


def reproduction(pair: Witness) -> Iterator[Block]:
    """How to see it: lines for a shell, else the two inputs as the subject gets them."""
    whole = len(pair.inputs[0]) > len(pair.differs_in) or pair.rows is None
    if pair.reproduce and whole:
        yield Fold("Reproduce both in a shell", [Commands(pair.reproduce)])
    elif whole:
        inputs = [json.dumps(each, ensure_ascii=False)[:LINE] for each in pair.inputs]
        yield Fold("The two inputs", [Commands(inputs)])


def harm_table(score: CausalScore, words: Wording, *, most: int) -> Table:
    """Who loses by which change, the worst first."""
    shown = score.direction[:most]
    rows: list[Sequence[Content]] = [
        (words.label(e.change_from), words.label(e.change_to), lost_text(e), gained_text(e))
        for e in shown
    ]
    hidden = len(score.direction) - len(shown)
    return Table(
        f"Who loses by changes of {set_with_followers(score.against, score.followed)}",
        ("From", "To", Number("lose it"), Number("gain it")),
        rows,
        count(hidden, "more change does harm", "more changes do harm") if hidden else "",
        "plain",
    )
