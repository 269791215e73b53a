"""Pairs side by side, who loses by which change, and who is affected."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from themis.inputs.characteristics import Value
from themis.inputs.personal import SHARED
from themis.results.model import CausalScore, Result
from themis.results.parts import Harm, Region, Witness
from themis.results.withheld import WithheldScore
from themis.show.html import Html, cut, empty, folded, join, shell, table, tag, value
from themis.show.intervals import WHOLE, Interval
from themis.show.reports.document import (
    LONGEST_SENTENCE,
    Room,
    block,
    blocks,
    group_name,
    left_out,
    rest,
    score_name,
    score_sentence,
    scores_of,
    set_words,
)
from themis.show.svg import picture
from themis.show.words.explanations import (
    counted_people,
    covered_text,
    directions_certainty,
    flip_rate_sentence,
    gained_text,
    joint_pair_sentence,
    lift_text,
    lost_text,
    other_changes_first,
    pairs_origin,
)
from themis.show.words.headlines import capital
from themis.show.words.scores import lesser
from themis.show.words.searches import harms
from themis.show.words.values import (
    count,
    cut_name,
    percent,
    share_text,
    told_apart,
    visible,
    with_followers,
)
from themis.show.words.wording import Wording

FEW = 3  # scores, of which more pairs are shown
LINE = 4_000  # letters of a command or an input
MAYBE_NOISE = " The subject does not always decide the same: noise alone may make such pairs."


def pairs_section(result: Result, room: Room) -> Html:
    """More pairs side by side; nothing if there are no witnesses."""
    scores = [each for each in scores_of(result, CausalScore) if each.witnesses]
    scores = [each for each in scores if each not in lesser(scores)]
    pairs = room.pairs if len(scores) <= FEW else max(room.pairs // 2, 1)
    return blocks(
        "people",
        "Pairs",
        "Each card shows a pair that differs only in the set but gets different "
        f"{'outputs' if all(map(_is_number, scores)) else 'decisions'}. {_comes_first(scores)}."
        f"{MAYBE_NOISE if any(each.placebo is not None for each in scores) else ''}",
        scores,
        lambda each: _people_of(each, pairs, room),
        most=room.people,
    )


def _comes_first(scores: Sequence[CausalScore]) -> str:
    """Which one of a pair comes first; of numbers that are not cut, nobody said which is better."""
    if all(map(_is_number, scores)):
        return "The one with the higher output comes first"
    if any(map(_is_number, scores)):
        return "The favoured one comes first; of numbers, the one with the higher output"
    return "The favoured one comes first"


def _is_number(score: CausalScore) -> bool:
    """Whether the outputs of its pairs are numbers, and none of them counts as favourable."""
    outputs = [each for pair in score.witnesses for each in pair.outputs]
    return not score.direction and all(type(each) in (int, float) for each in outputs)


def _people_of(score: CausalScore, pairs: int, room: Room) -> Html:
    ranked = other_changes_first(score.witnesses)
    cards = [pair_block(each, score, room) for each in ranked[:pairs]]
    return block(
        score_name(score),
        tag("p", score_sentence(score, room), "."),
        tag("div", *cards, class_="cards"),
        *left_out(len(ranked) - len(cards), "pair"),
    )


def pair_block(pair: Witness, score: CausalScore, room: Room) -> Html:
    """Two inputs: what they differ in and get, large; what they share, in one line."""
    common = [name for name in pair.inputs[0] if name not in pair.differs_in]
    first = pair.inputs[0]
    shared = "; ".join(f"{visible(name)} {visible(first[name])}" for name in common[: room.common])
    more = f" and {len(common) - room.common:,} more" if len(common) > room.common else ""
    phrase = set_words(score.against).removesuffix(" together")
    phrase += with_followers(score.against, score.followed)
    sides = (_side(pair, place, score, room) for place in (0, 1))
    needs = joint_pair_sentence(pair, score, room.words)
    whose = pairs_origin(score)
    alike = tag("p", "Both: ", tag("bdi", cut(shared, room.sentence)), more, class_="both")
    return tag(
        "div",
        tag(
            "div", *sides, class_="sides", role="group", aria_label=f"They differ only in {phrase}"
        ),
        *([alike] if common else []),
        *([tag("p", f"{needs}.", class_="both")] if needs else []),
        *([tag("p", f"{capital(whose)}.", class_="both")] if whose else []),
        *([_reproduce(pair)] if common or pair.rows is None else []),
        class_="pair",
    )


def _side(pair: Witness, place: int, score: CausalScore, room: Room) -> Html:
    """One of a pair: the values that differ, and what it gets."""
    person, output = pair.inputs[place], told_apart(pair.outputs, room.letters)[place]
    shown = pair.differs_in[: 3 * room.common]
    values = (_difference(pair, name, person[name], room) for name in shown)
    texts = [tag("mark", tag("bdi", _breaking(cut_name(v, room.letters)))) for v in values]
    more = len(pair.differs_in) - len(shown)
    if more > 0:
        texts.append(tag("small", f"and {count(more, 'more difference')}"))
    name = visible(score.output) if score.output else "decision"
    gets = tag("b", value(output, room.letters))
    return tag("div", *texts, tag("p", tag("small", f"{cut(name, room.letters)}:"), " ", gets),
               class_=("better", "worse")[place])  # fmt: skip


def _breaking(text: str) -> Html:
    """The text, which may be broken behind its underscores and not in the midst of a word."""
    first, *others = text.split("_")
    return join([first, *(each for part in others for each in ("_", empty("wbr"), part))])


def _difference(pair: Witness, name: str, value: Value, room: Room) -> str:
    one = len(pair.differs_in) == 1
    return room.words.label({name: value}) if one else room.words.named(name, value)


def _reproduce(pair: Witness) -> Html:
    """How to see it: lines for a shell, else the two inputs as the subject gets them."""
    if pair.reproduce:
        lines = shell(cut(each, LINE) for each in pair.reproduce)
        return folded("Reproduce both in a shell", lines)
    inputs = [cut(json.dumps(each, ensure_ascii=False), LINE) for each in pair.inputs]
    return folded("The two inputs", shell(inputs), kind="inputs")


CHANGES_KEPT = 20  # the most directions of harm that a result keeps; if it has fewer, it has all
SHADES = (0.01, 0.05, 0.1, 0.25, 0.5)  # from which share on a cell of the matrix is darker

Key = tuple[tuple[str, Value], ...]


def harm_section(result: Result, room: Room) -> Html:
    """Who loses by which change, as a small matrix for each set."""
    return blocks(
        "harm",
        "Who loses",
        "Read a row, then a column: of those who are changed from the one to the other, this "
        "share loses the favourable decision.",
        [each for each in scores_of(result, CausalScore) if each.direction],
        lambda each: _harm_of(each, room),
        most=room.people,
    )


def _harm_of(score: CausalScore, room: Room) -> Html:
    places = _assignments(score.direction, room)
    rate = ""
    if score.flip_rate is not None and len(places) > 2:
        rate = f" {capital(flip_rate_sentence(score))}."
    shown = (
        _matrix(score, places, room.words) if len(places) <= room.matrix else _changes(score, room)
    )
    return block(
        score_name(score),
        tag("p", cut(next(harms(score, most=1, words=room.words)), LONGEST_SENTENCE), ".", rate),
        tag("div", shown, class_="wide"),
        tag(
            "p",
            f"Counted on {counted_people(score, room.words)}{directions_certainty(score)}.",
            class_="faint",
        ),
    )


def _assignments(direction: Sequence[Harm], room: Room) -> dict[Key, Html]:
    """The assignments that the changes lead from and to, with their names, as they appear."""
    ends = (each for harm in direction for each in (harm.change_from, harm.change_to))
    return {_key(each): group_name(each, room) for each in ends}


def _key(values: Mapping[str, Value]) -> Key:
    """An assignment by its values: names are cut, so that two may look the same."""
    return tuple(values.items())


def _matrix(score: CausalScore, names: Mapping[Key, Html], words: Wording) -> Html:
    lost: dict[tuple[Key, Key], tuple[float, str]] = {}
    for harm in score.direction:
        one, other = _key(harm.change_from), _key(harm.change_to)
        lost[one, other] = (harm.lost, lost_text(harm))
        lost[other, one] = (harm.gained, gained_text(harm))
    few = score.few if isinstance(score, WithheldScore) else ()
    too_few = f"fewer than {SHARED} {words.people}"
    for harm in few:
        one, other = _key(harm.change_from), _key(harm.change_to)
        lost[one, other] = lost[other, one] = (0.0, too_few)
    unknown = None if len(score.direction) + len(few) >= CHANGES_KEPT else (0.0, "none seen")
    rows = (
        [name, *(_harm_cell(one, other, lost, unknown) for other in names)]
        for one, name in names.items()
    )
    with_it = with_followers(score.against, score.followed)
    change = "change" if len(score.against) > 1 else "changes"
    caption = f"Who loses when {set_words(score.against)} {change}{with_it}"
    return table(caption, ["from ↓ to →", *names.values()], rows, kind="matrix")


def _harm_cell(
    one: Key,
    other: Key,
    lost: Mapping[tuple[Key, Key], tuple[float, str]],
    unknown: tuple[float, str] | None,
) -> tuple[str, str]:
    if one == other:
        return "–", "same"
    known = lost.get((one, other), unknown)
    if known is None:
        return "not kept", "same"
    share, text = known
    shade = sum(share >= each for each in SHADES)
    return text, f"shade{shade}"


def _changes(score: CausalScore, room: Room) -> Html:
    shown = score.direction[: room.changes]
    return table(
        f"Changes of {set_words(score.against)} that do most harm",
        ("From", "To", ("lose it", "number"), ("gain it", "number")),
        (
            (
                group_name(each.change_from, room),
                group_name(each.change_to, room),
                lost_text(each),
                gained_text(each),
            )
            for each in shown
        ),
        foot=rest(
            len(score.direction) - len(shown), "more change does harm", "more changes do harm"
        ),
    )


def regions_section(result: Result, room: Room) -> Html:
    """Where the changed decisions are found; nothing where that was not looked for."""
    return blocks(
        "regions",
        "Who is affected",
        "Where many of the changed decisions are found, each direction apart where it is known who "
        "loses; measured on a separate half of the tests.",
        [each for each in scores_of(result, CausalScore) if each.regions],
        lambda each: _regions_of(each, room),
        most=room.people,
    )


def _regions_of(score: CausalScore, room: Room) -> Html:
    directed = any(each.loses is not None for each in score.regions)
    return block(
        score_name(score),
        table(
            f"Where {set_words(score.against)} {'decide' if len(score.against) > 1 else 'decides'}",
            (
                *(["Who loses"] if directed else []),
                ("Where", "where"),
                ("Share of such changes" if directed else "Share of all changes", "pic"),
                ("Changes here", "number"),
                ("Inputs here", "number"),
                ("As often", "number"),
            ),
            (
                (*_loser(each, room, directed=directed), *_region_row(each, room))
                for each in score.regions[: room.regions]
            ),
            kind="chart regions",
        ),
        *left_out(len(score.regions) - room.regions, "region"),
    )


def _loser(region: Region, room: Room, *, directed: bool) -> Iterator[object]:
    """Who loses, where the table says so of any region; one may be of all directions."""
    if directed:
        yield "anybody" if region.loses is None else group_name(region.loses, room)


def _region_row(region: Region, room: Room) -> tuple[object, ...]:
    low, here, high = map(percent, (region.coverage_low, region.coverage, region.coverage_high))
    ends = f"between {low} and {high}"
    drawn = Interval(region.coverage_low, region.coverage_high, region.coverage,
                     f"{here}, {ends}", "grave")  # fmt: skip
    spans = (
        tag("span", cut(room.words.condition(each), room.letters)) for each in region.conditions
    )
    conditions = tag("span", Html(" and ".join(spans)), class_="conditions")
    return (
        join([conditions, tag("small", f"counted on {count(region.flips, 'change')}")]),
        join([picture(drawn, WHOLE), tag("small", ends)]),
        covered_text(region),
        share_text(
            region.share, region.residents, region.inputs or 0, region.share_low, region.share_high
        ),
        f"{lift_text(region.lift)} ×",
    )
