"""Proxies in plain words: what may stand in for a set, and what if everybody had one value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from themis.results.outcomes import FAINT, Proxy, Setting
from themis.show.words.outcomes import SAMPLE, no_intervals, of_output
from themis.show.words.values import (
    at_least,
    confidence_text,
    cut_name,
    hundredths,
    percent,
    plain_phrase,
    points,
    set_phrase,
    visible,
)
from themis.show.words.wording import Wording

PROXY_HEADS = ("characteristic", "association", "changed")
WHAT_IF_HEADS = ("characteristic", "redrawn", "favourable", "smallest gap", "favourable")
WHAT_IF = (
    "Measured, not advice: what the difference becomes where one characteristic is changed for "
    "everybody and all else stays. Redrawn: each person gets one of the values that were tried by "
    "chance, as often as these people have them. Characteristics are ranked by how much that "
    "lowers it. Where nobody or everybody gets the favourable decision, no difference is left."
)
TOLD = 3  # characteristics with sentences of their own
NAMED = 6  # of those without any sign
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
    known = [each for each in proxies if each.difference is not None and _has_what_if(each)]
    return sorted(known, key=lambda each: -1.0 if each.lowered is None else -each.lowered)


def _has_what_if(proxy: Proxy) -> bool:
    return proxy.lowered is not None or proxy.extremes is not None


def what_if_row(proxy: Proxy) -> tuple[str, ...]:
    """A line of the ranking: redrawn, and with the value that leaves the smallest difference."""
    least = None if proxy.extremes is None else proxy.extremes[0]
    redrawn = proxy.redrawn if proxy.lowered is not None else None
    value = "" if least is None else f"{cut_name(visible(least.value))}: "
    return _name(proxy), *_left(redrawn), f"{value}{_left(least)[0]}", _left(least)[1]


def _left(setting: Setting | None) -> tuple[str, str]:
    if setting is None or setting.difference is None:
        return "–", "–"
    left = f"{points(setting.difference)}{_ends(setting.low, setting.high)}"
    return left, "–" if setting.rate is None else percent(setting.rate)


def what_if_title(proxies: Sequence[Proxy]) -> str:
    """What the ranking shows, with the difference as these people are."""
    first = proxies[0]
    assert first.difference is not None
    now = f"{points(first.difference)}{_ends(first.low, first.high)} as these people are"
    return f"What the difference by {set_phrase(first.against)} becomes, {now}"


def proxy_sentences(proxies: Sequence[Proxy], words: Wording) -> Iterator[str]:
    """What the table says, without full stops: the strongest, then those without any sign."""
    strong = [each for each in proxies if each.may_stand_in]
    for each in strong[:TOLD]:
        yield _stands_in(each, words)
    weak = [_name(each) for each in proxies if not each.may_stand_in]
    if weak:
        more = f" and {len(weak) - NAMED} more" if len(weak) > NAMED else ""
        reason = f"(association below {FAINT:g}, or no decision changes)"
        yield f"No sign of it for {', '.join(weak[:NAMED])}{more} {reason}"


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


def _ends(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    return f" ({hundredths(low, 'down')}–{hundredths(high, 'up')})"


def proxies_certainty(proxies: Sequence[Proxy]) -> str:
    """What the numbers are, and under which condition the intervals hold."""
    confidence = proxies[0].confidence
    if confidence is None:
        return f"{NOT_CAUSES} {no_intervals(proxies[0])}"
    return f"{NOT_CAUSES} {SAMPLE} ({confidence_text(confidence)} for all of them together)."
