"""The sections on known outcomes, error rates by group, and on what may stand in for a set."""

from __future__ import annotations

from collections.abc import Sequence

from themis.results.model import Result
from themis.results.outcomes import Gap, Outcomes, Proxy, Rate
from themis.show.html import Html, cut, join, table, tag
from themis.show.reports.document import (
    LONGEST_SENTENCE,
    Room,
    block,
    group_name,
    left_out,
    rest,
    section,
    set_name,
    set_words,
)
from themis.show.words.outcomes import (
    NO_VERDICT,
    RATE_WORDS,
    about_outcomes,
    beside_causal,
    gap_difference,
    gap_groups,
    gap_name,
    gap_ratio,
    outcomes_certainty,
    rate_ends,
    rate_words,
    undefined,
)
from themis.show.words.proxies import (
    PROXY_HEADS,
    by_proxied_set,
    proxies_certainty,
    proxy_row,
    proxy_sentences,
)

STACKED = "chart rates"  # tables whose rows are blocks on narrow screens


def outcomes_section(result: Result, room: Room) -> Html:
    """A block for each set; nothing if no outcomes are known."""
    if not result.outcomes:
        return Html()
    shown = result.outcomes[: room.people]
    return section(
        "outcomes",
        "Known outcomes",
        tag("p", NO_VERDICT),
        *(_block(each, result, room) for each in shown),
        *left_out(len(result.outcomes) - len(shown), "set"),
        fold=True,
    )


def proxies_section(result: Result, room: Room) -> Html:
    """What may stand in for each set; nothing where that was not asked."""
    sets = by_proxied_set(result.proxies)
    if not sets:
        return Html()
    return section(
        "proxies",
        "Possible proxies",
        *(_proxies_block(each, room) for each in sets[: room.people]),
        *left_out(len(sets) - room.people, "set"),
        fold=True,
    )


def _proxies_block(proxies: Sequence[Proxy], room: Room) -> Html:
    shown = proxies[: room.inputs]
    rows = ([tag("bdi", cut(cell, room.letters)) for cell in proxy_row(each)] for each in shown)
    name, *others = PROXY_HEADS
    return block(
        set_name(proxies[0].against),
        *(tag("p", cut(f"{t}.", LONGEST_SENTENCE)) for t in proxy_sentences(proxies, room.words)),
        tag(
            "div",
            table(
                f"What may stand in for {set_words(proxies[0].against)}",
                (name.capitalize(), *((each.capitalize(), "number") for each in others)),
                rows,
                kind=STACKED,
                foot=rest(len(proxies) - len(shown)),
            ),
            class_="wide",
        ),
        tag("p", proxies_certainty(proxies), class_="faint"),
    )


def _block(outcomes: Outcomes, result: Result, room: Room) -> Html:
    causal = beside_causal(outcomes, result, room.words)
    reasons = [tag("li", tag("bdi", each)) for each in undefined(outcomes, room.words)]
    return block(
        set_name(outcomes.against),
        tag("p", cut(about_outcomes(outcomes, room.words), LONGEST_SENTENCE)),
        *([] if causal is None else [tag("p", cut(causal, LONGEST_SENTENCE))]),
        tag("div", _rates(outcomes, room), class_="wide"),
        tag("div", _gaps(outcomes, room), class_="wide"),
        *([tag("p", "Undefined:"), tag("ul", *reasons)] if reasons else []),
        tag("p", outcomes_certainty(outcomes), class_="faint"),
    )


def _rates(outcomes: Outcomes, room: Room) -> Html:
    shown = outcomes.groups[: room.groups]
    return table(
        f"Rates beside known outcomes, by {set_words(outcomes.against)}",
        ("Group", *((name.capitalize(), "number") for name in RATE_WORDS.values())),
        (
            (group_name(each.values, room), *(_cell(rate) for _, rate in each.rates()))
            for each in shown
        ),
        kind=STACKED,
        foot=rest(
            outcomes.groups_total - len(shown),
            "more group is not shown",
            "more groups are not shown",
        ),
    )


def _cell(rate: Rate) -> Html:
    counted = f"{rate.count:,} of {rate.of:,}"
    ends = f", {rate_ends(rate)}" if rate_ends(rate) else ""
    return join([rate_words(rate), " ", tag("small", f"{counted}{ends}")])


def _gaps(outcomes: Outcomes, room: Room) -> Html:
    def row(gap: Gap) -> tuple[object, ...]:
        between = tag("bdi", cut(gap_groups(gap, room.words), room.letters))
        return gap_name(gap), gap_difference(gap), gap_ratio(gap), between

    return table(
        f"How far the groups of {set_words(outcomes.against)} are apart",
        ("Compared by", ("Difference", "number"), ("Ratio", "number"), "Lowest – highest"),
        map(row, outcomes.gaps),
        kind=STACKED,
    )
