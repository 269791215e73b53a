"""Known outcomes, error rates by group, and what may stand in for a set: sentences and tables."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from themis.results.model import CausalScore, Result
from themis.results.outcomes import (
    FAINT,
    Errors,
    Gap,
    OutcomeGroup,
    Outcomes,
    Proxy,
    Rate,
    Setting,
    Tenth,
)
from themis.show.blocks import Block, Cell, Number, Part, Points, Statement, Table
from themis.show.words.headlines import headline
from themis.show.words.values import (
    FEW_COUNTED,
    at_least,
    confidence_text,
    count,
    cut_name,
    decimals,
    hundredths,
    percent,
    plain_phrase,
    points,
    set_phrase,
    some_of,
    visible,
)
from themis.show.words.wording import Wording


def known_of_people(
    result: Result,
    words: Wording,
    against: tuple[str, ...] | None = None,
    *,
    most: int | None = None,
    causal: bool = False,
) -> Iterator[Part]:
    """All that given people show besides scores, of one set or of all.

    With `causal` the causal score of the same people stands below their known outcomes.
    """
    for known in (each for each in result.outcomes if against in (None, each.against)):
        beside = beside_causal(known, result, words) if causal else None
        blocks = [*outcome_blocks(known, words, most=most), *map(Statement, filter(None, [beside]))]
        yield Part(f"Known outcomes by {set_phrase(known.against)}", blocks)
    for wrong in (each for each in result.errors if against in (None, each.against)):
        blocks = [*error_blocks(wrong, words, most=most)]
        yield Part(f"Known numbers by {set_phrase(wrong.against)}", blocks)
    proxies = [each for each in result.proxies if against in (None, each.against)]
    for own in by_proxied_set(proxies):
        blocks = [*proxy_blocks(own, words, most=most)]
        yield Part(f"What may stand in for {set_phrase(own[0].against)}", blocks)


def outcome_blocks(outcomes: Outcomes, words: Wording, *, most: int | None) -> Iterator[Block]:
    """Rates beside known outcomes by group, how far they are apart, and how sure that is."""
    yield Statement(about_outcomes(outcomes, words))
    yield _rates(outcomes, words, most)
    yield gaps_table(outcomes, words)
    if missing := tuple(f"undefined: {each}" for each in undefined(outcomes, words)):
        yield Points(missing)
    yield Statement(f"{outcomes_certainty(outcomes)} {NO_VERDICT}", "faint")


def error_blocks(errors: Errors, words: Wording, *, most: int | None) -> Iterator[Block]:
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


def errors_table(errors: Errors, words: Wording, most: int | None) -> Table:
    """The errors of each group."""
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


def _rates(outcomes: Outcomes, words: Wording, most: int | None) -> Table:
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


def proxy_blocks(proxies: Sequence[Proxy], words: Wording, *, most: int | None) -> Iterator[Block]:
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


TABLES: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("outcomes.toml").read_text(encoding="utf-8")
)
RATE_WORDS, GAP_WORDS = TABLES["rates"], TABLES["gaps"]
UNDEFINED = 4  # undefined rates that are named
NO_VERDICT = (
    "These are observations of the rows, on which no verdict rests: whether the outcomes "
    "themselves are free of discrimination is not known."
)


def about_outcomes(outcomes: Outcomes, words: Wording) -> str:
    """Where outcomes come from, what counts as favourable, and who has none."""
    good, bad = (_listed(each) for each in (outcomes.favourable, outcomes.unfavourable))
    labels = f"{good} as favourable" + (f", {bad} not" if bad else "")
    beside = f", beside {of_output(outcomes.output)}" if outcomes.output else ""
    text = f"Outcomes known from {cut_name(visible(outcomes.label))}{beside}: {labels}."
    if outcomes.unlabelled:
        who = words.counted(outcomes.people, "rows")
        text += (
            f" {outcomes.unlabelled:,} of {who} have no known outcome, and are left out of what "
            "needs one."
        )
    if outcomes.undecided:
        text += f" {count(outcomes.undecided, 'decision')} missing, and left out."
    return text


ERRORS_CERTAINTY = "The errors are exact for these rows; there are no intervals for other people."


def about_errors(errors: Errors) -> str:
    """What is compared with what, and for how many rows."""
    beside = of_output(errors.output) if errors.output else "the output"
    return (
        f"Numbers known from {cut_name(visible(errors.label))}, beside {beside}: "
        f"{count(errors.people, 'row has', 'rows have')} both. The mean error is the output less "
        "the known number: above 0, outputs are too high."
    )


def error_text(number: float | None, *, signed: bool = False) -> str:
    """An error with four digits; a dash where there is none, or it is not shown."""
    return "–" if number is None else f"{number:{'+' * signed},.4g}"


def calibration(tenth: Tenth) -> str:
    """The means of one tenth of a group."""
    if tenth.output is None or tenth.known is None:
        return "–"
    return f"{error_text(tenth.output)} / {error_text(tenth.known)}"


def of_output(name: str) -> str:
    """Which of several outputs people are compared by."""
    return f"the output {cut_name(visible(name))}"


def _listed(values: Sequence[object]) -> str:
    return some_of([cut_name(visible(each)) for each in values], 4)


def outcomes_certainty(outcomes: Outcomes) -> str:
    """Under which condition the intervals hold, or why there are none."""
    if outcomes.confidence is None:
        return no_intervals(outcomes)
    return f"{SAMPLE} ({confidence_text(outcomes.confidence)} for all of them together)."


def no_intervals(part: Outcomes | Proxy) -> str:
    """Why there are none."""
    if part.noisy:
        return (
            "No intervals: the subject does not always give the same decision, and these are the "
            "rates of one run, which noise alone may set apart."
        )
    return "No intervals: the weights are not numbers of people."


SAMPLE = "The intervals hold if these rows are a random sample of the people who are meant"


def rate_words(rate: Rate) -> str:
    """A rate, or that there is none: `90.9 %`, `–`."""
    return "–" if rate.rate is None else percent(rate.rate)


def rate_ends(rate: Rate) -> str:
    """`41.2–97.0 %`; nothing where there is no interval."""
    return "" if rate.low is None or rate.high is None else f"{_ends(rate.low, rate.high)} %"


def _ends(low: float, high: float) -> str:
    return f"{hundredths(low, 'down')}–{hundredths(high, 'up')}"


def gap_name(gap: Gap, *, brief: bool = False) -> str:
    """`demographic parity (selection rate)`, `accuracy`."""
    if brief:
        return TABLES["brief"].get(gap.name, GAP_WORDS[gap.name])
    of = TABLES["of"].get(gap.name)
    return f"{GAP_WORDS[gap.name]} ({of})" if of else GAP_WORDS[gap.name]


def gap_difference(gap: Gap, *, brief: bool = False) -> str:
    """`83.3 points (40.1–97.0)`, or why there is none."""
    if gap.difference is None:
        return "–"
    ends = "" if gap.low is None or gap.high is None else f" ({_ends(gap.low, gap.high)})"
    shown = points(gap.difference)
    return f"{shown.replace('points', 'pts') if brief else shown}{ends}"


def gap_ratio(gap: Gap) -> str:
    """`0.17 (0.02–0.51)`."""
    if gap.ratio is None:
        return "–"
    low, high = gap.ratio_low, gap.ratio_high
    if low is None or high is None:
        return f"{gap.ratio:.2f}"
    return f"{gap.ratio:.2f} ({decimals(low, 2, 'down')}–{decimals(high, 2, 'up')})"


def gap_groups(gap: Gap, words: Wording) -> str:
    """Between which groups: `purple – blue`."""
    if gap.lowest is None or gap.highest is None or not gap.difference:
        return ""
    return f"{words.label(gap.lowest)} – {words.label(gap.highest)}"


def undefined(outcomes: Outcomes, words: Wording) -> Iterator[str]:
    """Which rates, differences and ratios there are not, and why."""
    missing = [
        f"{RATE_WORDS[name]} of {words.label(group.values)}: {TABLES['nobody'][name]}"
        for group in outcomes.groups
        for name, rate in group.rates()
        if rate.rate is None
    ]
    yield from missing[:UNDEFINED]
    if len(missing) > UNDEFINED:
        yield f"{len(missing) - UNDEFINED:,} more rates"
    for gap in outcomes.gaps:
        if gap.why is not None and gap.name != "equalized_odds":
            yield f"{GAP_WORDS[gap.name]}: {TABLES['why'][gap.why]}"


def beside_causal(outcomes: Outcomes, result: Result, words: Wording) -> str | None:
    """The causal score of the same set and people, as a sentence; None if it was not measured."""
    for score in result.scores:
        same = (score.against, score.output) == (outcomes.against, outcomes.output)
        of_rows = score.population != "inputs" and score.counterfactuals == "generated"
        if isinstance(score, CausalScore) and same and of_rows and score.samples:
            return f"{headline(score, words)}."
    return None


def few_words(rate: Rate) -> str:
    """What a rate is a share of, in a table: `of 44`; of few, how many of them."""
    if rate.rate is None:
        return ""
    return f"{rate.count:,} of {rate.of:,}" if rate.of < FEW_COUNTED else f"of {rate.of:,}"


PROXY_HEADS = ("characteristic", "association", "changed")
WHAT_IF_HEADS = ("characteristic", "redrawn", "favourable", "smallest gap", "favourable")
WHAT_IF = (
    "Measured, not advice: what the difference becomes where one characteristic is changed for "
    "everybody and all else stays. Redrawn: each person gets one of the values that were tried by "
    "chance, as often as these people have them. Characteristics are ranked by how much that "
    "lowers it. Where nobody or everybody gets the favourable decision, no difference is left."
)
NOT_CAUSES = (
    "Association is Cramér's V, corrected for bias: 0 is none, 1 tells the groups apart. Changed: "
    "the share of people whose decision changes with this characteristic alone. None of this says "
    "what causes what. Combinations that are unreal (constraints forbid them, or the value is "
    "missing) are left out."
)


def by_proxied_set(proxies: Sequence[Proxy]) -> list[tuple[Proxy, ...]]:
    """The proxies of each set, in order."""
    sets: dict[tuple[str, ...], list[Proxy]] = {}
    for each in proxies:
        sets.setdefault(each.against, []).append(each)
    return [tuple(each) for each in sets.values()]


def proxy_row(proxy: Proxy) -> tuple[str, ...]:
    """A line of the table."""
    least = "≥ " if proxy.at_least else ""
    return _name(proxy), f"{proxy.association:.2f}", f"{least}{percent(proxy.changed)}"


def by_lowering(proxies: Sequence[Proxy]) -> list[Proxy]:
    """Those with a difference to lower, the one whose redrawing lowers it most first."""
    tried = (e for e in proxies if e.lowered is not None or e.extremes is not None)
    known = [each for each in tried if each.difference is not None]
    return sorted(known, key=lambda each: -1.0 if each.lowered is None else -each.lowered)


def what_if_row(proxy: Proxy) -> tuple[str, ...]:
    """A line of the ranking: redrawn, and with the value that leaves the smallest difference."""
    least = None if proxy.extremes is None else proxy.extremes[0]
    redrawn = proxy.redrawn if proxy.lowered is not None else None
    value = "" if least is None else f"{cut_name(visible(least.value))}: "
    return _name(proxy), *_left(redrawn), f"{value}{_left(least)[0]}", _left(least)[1]


def _left(setting: Setting | None) -> tuple[str, str]:
    if setting is None or setting.difference is None:
        return "–", "–"
    left = f"{points(setting.difference)}{_between(setting.low, setting.high)}"
    return left, "–" if setting.rate is None else percent(setting.rate)


def what_if_title(proxies: Sequence[Proxy]) -> str:
    """What the ranking shows, with the difference as these people are."""
    first = proxies[0]
    assert first.difference is not None
    now = f"{points(first.difference)}{_between(first.low, first.high)} as these people are"
    return f"What the difference by {set_phrase(first.against)} becomes, {now}"


def proxy_sentences(proxies: Sequence[Proxy], words: Wording) -> Iterator[str]:
    """What the table says, without full stops: the strongest, then those without any sign."""
    strong = [each for each in proxies if each.may_stand_in]
    for each in strong[:3]:
        yield _stands_in(each, words)
    weak = [_name(each) for each in proxies if not each.may_stand_in]
    if weak:
        reason = f"(association below {FAINT:g}, or no decision changes)"
        yield f"No sign of it for {some_of(weak)} {reason}"


def _stands_in(proxy: Proxy, words: Wording) -> str:
    name, phrase = _name(proxy), plain_phrase(proxy.against)
    changed = at_least(percent(proxy.changed, "down")) if proxy.at_least else percent(proxy.changed)
    return (
        f"Among {words.whom('rows')} {name} may stand in for {phrase}: they go together "
        f"(association {proxy.association:.2f}), and the decision changes for "
        f"{changed} of them when only {name} is changed"
        f"{f' ({of_output(proxy.output)})' if proxy.output else ''}"
    )


def _name(proxy: Proxy) -> str:
    return cut_name(visible(proxy.name))


def _between(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    return f" ({hundredths(low, 'down')}–{hundredths(high, 'up')})"


def proxies_certainty(proxies: Sequence[Proxy]) -> str:
    """What the numbers are, and under which condition the intervals hold."""
    confidence = proxies[0].confidence
    if confidence is None:
        return f"{NOT_CAUSES} {no_intervals(proxies[0])}"
    return f"{NOT_CAUSES} {SAMPLE} ({confidence_text(confidence)} for all of them together)."
