"""The sections of a report, in the order of the page; each is empty if there is nothing to show."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from themis.results.finding import finding
from themis.results.model import CausalScore, GroupScore, Result, Score, SearchResult
from themis.results.outcomes import Errors, Outcomes, Proxy
from themis.results.parts import Witness
from themis.show.blocks import Block, Fold, Part, Points, Statement, Table
from themis.show.html import Html, tag
from themis.show.parts.cautions import all_clear, caution_blocks, cautions
from themis.show.parts.checks import accepted, checks_table
from themis.show.parts.groups import group_table
from themis.show.parts.outcomes import (
    NO_VERDICT,
    beside_causal,
    by_proxied_set,
    error_blocks,
    outcome_blocks,
    proxy_blocks,
)
from themis.show.parts.scores import (
    described,
    details,
    harm_table,
    limits_of,
    meanings,
    pair_blocks,
    protected_scores,
    reproduction,
    score_name,
    scores_table,
)
from themis.show.parts.search import lattice, reasons_table
from themis.show.reports.document import Space, drawn, left_out, rest, section
from themis.show.words.explanations import (
    counted_people,
    directions_certainty,
    flip_rate_sentence,
    harms,
    other_changes_first,
    pairs_origin,
    region_sentence,
)
from themis.show.words.headlines import capital, headline
from themis.show.words.naming import amount
from themis.show.words.scores import by_set, impact, lesser
from themis.show.words.searches import (
    Names,
    guarantee,
    protected_first,
    search_headline,
    set_counts,
)
from themis.show.words.values import set_text
from themis.show.words.wording import Wording, wording

TEXTS: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("texts.toml").read_text(encoding="utf-8")
)
FEW = 3  # scores, of which more pairs are shown
PAIRS = (
    "Each card shows a pair that differs only in the set but gets different outputs. The favoured "
    "one comes first; of numbers, the higher one."
)
Some = TypeVar("Some", bound=Score)


def _parts(
    name: str, title: str, intro: str, things: Sequence[Any], show: Callable[[Any], Part],
    *, most: int, noun: str = "set",
) -> Html:  # fmt: skip
    """A folded section with a part for each thing, as many as there is space for; or nothing."""
    if not things:
        return Html()
    parts = drawn(map(show, things[:most]))
    hidden = left_out(len(things) - most, noun)
    return section(name, title, tag("p", intro), parts, *hidden, fold=True)


def _scores_of(result: Result, kind: type[Some]) -> list[Some]:
    scores = protected_scores(result, result.scores)
    return [each for each in scores if isinstance(each, kind)]


def checks_section(result: Result, space: Space) -> Html:
    """The verdict of each check, and what was let pass."""
    if not result.checks:
        return Html()
    table = checks_table(result.checks, most=space.checks)
    return tag("div", drawn([table, *accepted(result.checks)]), class_="block checks")


def cautions_section(result: Result, space: Space) -> Html:
    """The cautions as a box, or that there are none."""
    found = cautions(result)
    if not found:
        return tag("p", all_clear(result), class_="clear", id="cautions")
    outputs = {each.output for each in result.scores if each.output is not None}
    names = [*result.schema.get("inputs", ()), *outputs]
    shown = drawn(caution_blocks(found[: space.cautions], names))
    hidden = left_out(len(found) - space.cautions, "reservation")
    return section("cautions", "Before you rely on this", shown, *hidden, kind="cautions")


def scores_section(result: Result, space: Space) -> Html:
    """All scores that were measured; nothing if there are none."""
    words = wording(result)
    sets = by_set(protected_scores(result, result.scores))
    every = [score for scores in sets.values() for score in scores]
    among_rows = lesser(every)
    measured = [each for each in every if each not in among_rows]
    if not measured:
        return Html()
    shown = measured[: space.scores]
    foot = rest(len(measured) - len(shown), "score")
    blocks: list[Block] = [
        Statement(meanings(each.measure for each in shown)),
        described(scores_table(shown, result, foot=foot), shown, words),
        Statement(_legend(result, shown), "faint"),
    ]
    if among_rows:
        title, within = "Within the rows: compared with each other only", among_rows[: space.scores]
        table = described(scores_table(within, result, title=title), within, words)
        blocks.append(Fold(title, [table]))
    folds = len(measured) > 8 or bool(result.searches)
    return section("scores", "Statistics", drawn(blocks), fold=folds)


def _legend(result: Result, scores: Sequence[Score]) -> str:
    """What colours and lines of the pictures mean."""
    keys = {"grave": "orange: difference found", "calm": "blue: no difference found",
            "open": "dashed: undecided"}  # fmt: skip
    states = {finding(each).state for each in scores}
    items = [words for kind, words in keys.items() if kind in states]
    marks = sorted({mark.name for each in scores for mark in limits_of(result, each)})
    if marks:
        kind = "limit" if result.checks else "threshold"
        items.append(f"dashed line across: {kind} {', '.join(marks[:4])}")
    return capital("; ".join(items))


def groups_section(result: Result, space: Space) -> Html:
    """The groups of every group score."""
    words = wording(result)
    scores = [each for each in _scores_of(result, GroupScore) if len(each.groups) > 1]
    what = "How often each group gets the favourable decision."
    if any(each.statistic == "mean" for each in scores):
        what = "How often each group gets a favourable output, or the mean of what it gets."
    intro = (
        f"{what} All intervals of one table hold together. The dashed line is at four fifths of "
        "the highest rate."
    )

    def show(score: GroupScore) -> Part:
        behind = ". ".join(filter(None, [impact(score), *details(score)]))
        blocks: list[Block] = [Statement(headline(score, words))]
        blocks += [Statement(capital(behind), "faint")] if behind else []
        blocks.append(group_table(score, words, most=space.groups // 2))
        return Part(score_name(score), blocks)

    most = max(space.scores // 4, 1)
    return _parts("groups", "Rates of groups", intro, scores, show, most=most, noun="group score")


def outcomes_section(result: Result, space: Space) -> Html:
    """A part for each set whose outcomes are known."""
    words = wording(result)

    def show(known: Outcomes) -> Part:
        causal = filter(None, [beside_causal(known, result, words)])
        blocks = [*map(Statement, causal), *outcome_blocks(known, words, most=space.groups)]
        return Part(set_text(known.against), blocks)

    most = space.people
    return _parts("outcomes", "Known outcomes", NO_VERDICT, result.outcomes, show, most=most)


def errors_section(result: Result, space: Space) -> Html:
    """A part for each set beside known numbers."""

    def show(errors: Errors) -> Part:
        blocks = error_blocks(errors, wording(result), most=space.groups)
        return Part(set_text(errors.against), [*blocks])

    return _parts("errors", "Known numbers", NO_VERDICT, result.errors, show, most=space.people)


def proxies_section(result: Result, space: Space) -> Html:
    """What may stand in for each set; nothing where that was not asked."""

    def show(proxies: Sequence[Proxy]) -> Part:
        blocks = proxy_blocks(proxies, wording(result), most=space.inputs)
        return Part(set_text(proxies[0].against), [*blocks])

    intro = "Characteristics of the given people that go together with a set."
    sets = by_proxied_set(result.proxies)
    return _parts("proxies", "Possible proxies", intro, sets, show, most=space.people)


def harm_section(result: Result, space: Space) -> Html:
    """Who loses by which change."""
    words = wording(result)

    def show(score: CausalScore) -> Part:
        said = [*harms(score, most=1, words=words)]
        if score.flip_rate is not None and len(score.direction) > 1:
            said.append(capital(flip_rate_sentence(score)))
        counted = f"Counted on {counted_people(score, words)}{directions_certainty(score)}"
        table = harm_table(score, words, most=space.changes)
        return Part(score_name(score), [*map(Statement, said), table, Statement(counted, "faint")])

    intro = (
        "Of those who are changed from the one to the other, so many lose, or gain, the favourable "
        "decision."
    )
    scores = [each for each in _scores_of(result, CausalScore) if each.direction]
    return _parts("harm", "Who loses", intro, scores, show, most=space.people)


def regions_section(result: Result, space: Space) -> Html:
    """Where the changed decisions are found; nothing where that was not looked for."""
    words = wording(result)

    def show(score: CausalScore) -> Part:
        said = (region_sentence(each, score, words) for each in score.regions[: space.regions])
        return Part(score_name(score), [Points([*said])])

    intro = (
        "Where many of the changed decisions are found, each direction apart where it is known who "
        "loses; measured on a separate half of the tests."
    )
    scores = [each for each in _scores_of(result, CausalScore) if each.regions]
    return _parts("regions", "Who is affected", intro, scores, show, most=space.people)


def pairs_section(result: Result, space: Space) -> Html:
    """More pairs side by side; nothing if there are no witnesses."""
    scores = [each for each in _scores_of(result, CausalScore) if each.witnesses]
    scores = [each for each in scores if each not in lesser(scores)]
    if not scores:
        return Html()
    most = space.pairs if len(scores) <= FEW else max(space.pairs // 2, 1)
    words = wording(result)
    shown = (_pairs(each, words, most) for each in scores[: space.people])
    hidden = left_out(len(scores) - space.people, "set")
    return section("people", "Pairs", tag("p", PAIRS), *shown, *hidden, fold=True)


def _pairs(score: CausalScore, words: Wording, most: int) -> Html:
    ranked = other_changes_first(score.witnesses)
    said = [headline(score, words), *filter(None, [capital(pairs_origin(score))])]
    return tag(
        "div",
        tag("h3", tag("bdi", score_name(score))),
        drawn(map(Statement, said)),
        tag("div", *(pair_card(each, score, words) for each in ranked[:most]), class_="cards"),
        *left_out(len(ranked) - most, "pair"),
        class_="block",
    )


def pair_card(pair: Any, score: CausalScore, words: Wording) -> Html:
    """One pair, and how to see it."""
    blocks: Iterable[Block] = [*pair_blocks(pair, score, words), *reproduction(pair)]
    return tag("div", drawn(blocks), class_="pair")


def sets_section(result: Result, space: Space) -> Html:
    """All searches of a result; nothing if there was none."""
    if not result.searches:
        return Html()
    words = wording(result)
    shown = (
        search_part(each, words, why=[reasons_table(each, most=space.sets)])
        for each in map(protected_first(result), result.searches[: space.searches])
    )
    # Of a whole audit the cards show the same sets.
    return section("sets", "Combinations", drawn(shown), fold=result.command == "audit")


def search_part(
    search: SearchResult, words: Wording, *, why: Sequence[Block] = (),
    link: Callable[[Names], str] = lambda _: "",
) -> Part:  # fmt: skip
    """What a search found, the pairs of characteristics, and what is certain about the list."""
    return Part(
        search_title(search),
        [
            Statement(f"{search_headline(search, words)}. {set_counts(search, words)}."),
            *lattice(search, link),
            *([Fold("Why combinations are in or out", why)] if why else []),
            Statement(guarantee(search), "faint"),
        ],
    )


def search_title(search: SearchResult) -> str:
    """What was searched for: `Causal search, threshold 20 %`."""
    return capital(f"{search.measure} search, threshold {amount(search.threshold, search)}")


EXHIBITS = "Pairs that were chosen by hand from those that the test found."


@dataclass(frozen=True)
class Exhibit:
    """A pair of a score, and what was noted about it."""

    score: CausalScore
    witness: Witness
    note: str = ""


def exhibits_section(
    exhibits: Sequence[Exhibit], words: Wording, below: Callable[[int], Any] = lambda _: ""
) -> Html:
    """A card for each exhibit, by its number; nothing if there are none."""
    if not exhibits:
        return Html()
    cards = (
        tag(
            "article",
            tag("h3", f"Exhibit {place + 1}: ", tag("bdi", score_name(each.score))),
            *([tag("p", tag("bdi", each.note))] if each.note else []),
            pair_card(each.witness, each.score, words),
            below(place),
        )
        for place, each in enumerate(exhibits)
    )
    return section("exhibits", "Exhibits", tag("p", EXHIBITS), tag("div", *cards, class_="cards"))


def glossary_section(result: Result, _: Space) -> Html:
    """The words of the report, folded."""
    words = {**TEXTS["glossary"], **(TEXTS["outcomes"] if result.outcomes else {})}
    words |= TEXTS["excess"] if result.has_excess else {}
    table = Table("Words of this report", ("", ""), [*words.items()], shape="plain")
    return section("glossary", "Glossary", drawn([table]), fold=True)
