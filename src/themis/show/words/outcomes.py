"""Known outcomes in plain words: error rates by group, their differences, and how sure they are."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from themis.results.model import CausalScore, Result
from themis.results.outcomes import Errors, Gap, Outcomes, Proxy, Rate, Tenth
from themis.show.words.headlines import headline
from themis.show.words.values import (
    FEW_COUNTED,
    confidence_text,
    count,
    cut_name,
    decimals,
    hundredths,
    percent,
    points,
    visible,
)
from themis.show.words.wording import Wording

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


def _listed(values: Sequence[object], shown: int = 4) -> str:
    texts = [cut_name(visible(each)) for each in values[:shown]]
    return ", ".join(texts) + (f" and {len(values) - shown} more" if len(values) > shown else "")


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
