"""Known outcomes, error rates by group, and what may stand in for a set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from themis.results.outcomes import Errors, OutcomeGroup, Outcomes, Proxy, Rate
from themis.show.blocks import Block, Cell, Number, Points, Statement, Table
from themis.show.words.outcomes import (
    ERRORS_CERTAINTY,
    NO_VERDICT,
    RATE_WORDS,
    about_errors,
    about_outcomes,
    calibration,
    error_text,
    few_words,
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
    WHAT_IF,
    WHAT_IF_HEADS,
    by_lowering,
    proxies_certainty,
    proxy_row,
    proxy_sentences,
    what_if_row,
    what_if_title,
)
from themis.show.words.values import count, set_phrase
from themis.show.words.wording import Wording


def outcome_blocks(outcomes: Outcomes, words: Wording, *, most: int) -> Iterator[Block]:
    """Rates beside known outcomes by group, how far they are apart, and how sure that is."""
    yield Statement(about_outcomes(outcomes, words))
    yield _rates(outcomes, words, most)
    yield gaps_table(outcomes, words)
    if missing := tuple(f"undefined: {each}" for each in undefined(outcomes, words)):
        yield Points(missing)
    yield Statement(f"{outcomes_certainty(outcomes)} {NO_VERDICT}", "faint")


def error_blocks(errors: Errors, words: Wording, *, most: int) -> Iterator[Block]:
    """Errors of numbers by group, how they are calibrated, and what they are worth."""
    yield Statement(about_errors(errors))
    yield errors_table(errors, words, most)
    groups = [each for each in errors.groups[:most] if each.tenths]
    yield Table(
        "Mean output and mean known number, by tenths of all outputs",
        ("Tenth", *(Number(words.label(each.values)) for each in groups)),
        [
            (str(number + 1), *(calibration(each.tenths[number]) for each in groups))
            for number in range(max((len(each.tenths) for each in groups), default=0))
        ],
        shape="rates",
    )
    yield Statement(f"{ERRORS_CERTAINTY} {NO_VERDICT}", "faint")


def errors_table(errors: Errors, words: Wording, most: int) -> Table:
    shown = errors.groups[:most]
    hidden = errors.groups_total - len(shown)
    return Table(
        f"Errors by {set_phrase(errors.against)}",
        ("Group", Number("Rows"), Number("Mean error"), Number("Mean absolute error")),
        [
            (words.label(each.values), f"{each.people:,}",
             error_text(each.mean_error, signed=True), error_text(each.mean_absolute_error))
            for each in shown
        ],
        count(hidden, "more group is not shown", "more groups are not shown") if hidden else "",
        "rates",
    )  # fmt: skip


def _rates(outcomes: Outcomes, words: Wording, most: int) -> Table:
    shown = outcomes.groups[:most]
    hidden = outcomes.groups_total - len(shown)
    return Table(
        f"Rates beside known outcomes, by {set_phrase(outcomes.against)}",
        ("Group", *(Number(each.capitalize()) for each in RATE_WORDS.values())),
        [
            (_group(each, words), *(_rate(rate) for _, rate in each.rates()))
            for each in shown
        ],
        count(hidden, "more group is not shown", "more groups are not shown") if hidden else "",
        "rates",
    )  # fmt: skip


def _group(group: OutcomeGroup, words: Wording) -> Cell:
    favourable = f"{group.positives:,} of {group.labelled:,} favourable"
    return Cell(words.label(group.values), favourable)


def _rate(rate: Rate) -> Cell:
    return Cell(rate_words(rate), ", ".join(filter(None, [few_words(rate), rate_ends(rate)])))


def gaps_table(outcomes: Outcomes, words: Wording, *, brief: bool = False) -> Table:
    """How far groups are apart by each rate; `brief` where there is little room."""
    return Table(
        f"How far the groups of {set_phrase(outcomes.against)} are apart",
        ("Compared by", Number("Difference"), Number("Ratio"), "Lowest – highest"),
        [
            (
                gap_name(each, brief=brief),
                gap_difference(each, brief=brief),
                gap_ratio(each),
                gap_groups(each, words),
            )
            for each in outcomes.gaps
        ],
        shape="rates",
    )


def proxy_blocks(proxies: Sequence[Proxy], words: Wording, *, most: int) -> Iterator[Block]:
    """What may stand in for one set: what that means, the numbers, and what they are worth."""
    shown = proxies[:most]
    hidden = len(proxies) - len(shown)
    name, *others = (each.capitalize() for each in PROXY_HEADS)
    yield Points([f"{each}." for each in proxy_sentences(proxies, words)])
    yield Table(
        f"What may stand in for {set_phrase(proxies[0].against)}",
        (name, *map(Number, others)),
        list(map(proxy_row, shown)),
        count(hidden, "more is not shown", "more are not shown") if hidden else "",
        "rates",
    )
    if ranking := by_lowering(proxies):
        name, *others = (each.capitalize() for each in WHAT_IF_HEADS)
        rows = list(map(what_if_row, ranking[:most]))
        yield Statement(WHAT_IF)
        yield Table(what_if_title(ranking), (name, *map(Number, others)), rows, "", "rates")
    yield Statement(proxies_certainty(proxies), "faint")
