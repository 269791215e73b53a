"""Pairs of inputs, who loses by which change, and where the changed decisions are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from themis.inputs.characteristics import Value
from themis.inputs.personal import SHARED
from themis.results.model import CausalScore
from themis.results.parts import Region, Witness
from themis.results.withheld import whole_of
from themis.show.blocks import Block, Cell, Commands, Content, Fold, Head, Number, Statement, Table
from themis.show.intervals import WHOLE, Interval
from themis.show.words.explanations import (
    covered_text,
    gained_text,
    joint_pair_sentence,
    lift_text,
    lost_text,
    pairs_origin,
)
from themis.show.words.naming import output_name
from themis.show.words.values import (
    count,
    cut_text,
    percent,
    set_phrase,
    set_with_followers,
    share_text,
    told_apart,
    visible,
    with_followers,
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
    noise = score.placebo is not None
    they = f"got different {what}, maybe by noise" if noise else f"get different {what}"
    whose = f" ({whose})" if (whose := pairs_origin(score)) else ""
    phrase = set_with_followers(score.against, score.followed)
    return f"Pairs who differ only in {phrase} but {they}{whose}:"


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


CHANGES_KEPT = 20  # the most directions of harm that a result keeps; if it has fewer, it has all
SHADES = (0.01, 0.05, 0.1, 0.25, 0.5)  # from which share on a cell of the matrix is darker
MATRIX = 6  # assignments on each side of a matrix

Key = tuple[tuple[str, Value], ...]


def harm_table(score: CausalScore, words: Wording, *, most: int) -> Table:
    """Who loses by which change: a small matrix; of many assignments, the worst changes."""
    ends = [each for harm in score.direction for each in (harm.change_from, harm.change_to)]
    names = {_key(each): words.label(each) for each in ends}
    if len(names) <= MATRIX:
        return _matrix(score, names, words)
    shown = score.direction[:most]
    rows: list[Sequence[Content]] = [
        (words.label(e.change_from), words.label(e.change_to), lost_text(e), gained_text(e))
        for e in shown
    ]
    hidden = len(score.direction) - len(shown)
    return Table(
        f"Changes of {set_phrase(score.against)} that do most harm",
        ("From", "To", Number("lose it"), Number("gain it")),
        rows,
        count(hidden, "more change does harm", "more changes do harm") if hidden else "",
        "plain",
    )


def _key(values: Mapping[str, Value]) -> Key:
    """An assignment by its values: names are cut, so that two may look the same."""
    return tuple(values.items())


def _matrix(score: CausalScore, names: Mapping[Key, str], words: Wording) -> Table:
    lost: dict[tuple[Key, Key], Cell] = {}
    for harm in score.direction:
        one, other = _key(harm.change_from), _key(harm.change_to)
        lost[one, other] = _shaded(harm.lost, lost_text(harm))
        lost[other, one] = _shaded(harm.gained, gained_text(harm))
    few = [each for each in whole_of(score).direction if each not in score.direction]
    for harm in few:
        one, other = _key(harm.change_from), _key(harm.change_to)
        lost[one, other] = lost[other, one] = Cell(f"fewer than {SHARED} {words.people}")
    kept = len(score.direction) + len(few) >= CHANGES_KEPT
    unknown = Cell("not kept" if kept else "none seen")
    heads: list[Head] = ["from ↓ to →", *names.values()]
    rows: list[Sequence[Content]] = [
        [name, *("–" if one == other else lost.get((one, other), unknown) for other in names)]
        for one, name in names.items()
    ]
    change = "change" if len(score.against) > 1 else "changes"
    with_it = with_followers(score.against, score.followed)
    title = f"Who loses when {set_phrase(score.against)} {change}{with_it}"
    return Table(title, heads, rows, shape="matrix")


def _shaded(share: float, text: str) -> Cell:
    return Cell(text, state=f"shade{sum(share >= each for each in SHADES)}")


def regions_table(score: CausalScore, words: Wording, *, most: int) -> Table:
    """Where the changed decisions are, each direction apart where it is known who loses."""
    directed = any(each.loses is not None for each in score.regions)
    heads: list[Head] = ["Where", *(["Who loses"] if directed else []), WHOLE]
    heads += map(Number, ("Of such changes", "Changes here", "Inputs here", "As often"))
    rows = [_region(each, words, directed=directed) for each in score.regions[:most]]
    hidden = len(score.regions) - len(rows)
    decide = "decide" if len(score.against) > 1 else "decides"
    return Table(
        f"Where {set_phrase(score.against)} {decide}",
        heads,
        rows,
        f"{count(hidden, 'more region')} not shown" if hidden else "",
        "regions",
    )


def _region(region: Region, words: Wording, *, directed: bool) -> Sequence[Content]:
    low, here, high = map(percent, (region.coverage_low, region.coverage, region.coverage_high))
    ends = f"{low} – {high}"
    where = " and ".join(cut_text(words.condition(each)) for each in region.conditions)
    loser = "anybody" if region.loses is None else words.label(region.loses)
    return (
        Cell(where, f"counted on {count(region.flips, 'change')}"),
        *([loser] if directed else []),
        Interval(
            region.coverage_low, region.coverage_high, region.coverage, f"{here}, {ends}", "grave"
        ),
        Cell(here, ends),
        covered_text(region),
        share_text(
            region.share, region.residents, region.inputs or 0, region.share_low, region.share_high
        ),
        f"{lift_text(region.lift)} ×",
    )
