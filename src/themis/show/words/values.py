"""Numbers, names and durations in plain words, as text without style."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from os.path import commonprefix
from typing import Any, Literal, TypeAlias

from themis.errors import count_of as count

__all__ = ["count"]

FEW_COUNTED = 100  # a share of fewer is shown as counts
LONGEST = 64  # characters of a name or value within a sentence
LONGEST_NAME = 240  # of one that stands alone: a set may be made of hundreds of characteristics
NAMED = 6  # things in a sentence
COMMON = 8  # characteristics in which the two of a pair agree
LONGEST_TEXT = 120  # and of an output
Rounding: TypeAlias = Literal["near", "down", "up"]  # ends of intervals are rounded outwards
ROOMY = Context(60)
OUTWARDS = {"down": ROUND_FLOOR, "up": ROUND_CEILING}
MISSING = "missing"  # for no value
NO_BREAK = "\u00a0"  # a space at which no line ends
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=[%×]|(?:percentage )?points?\b|(?:min|µs|ms|s|h|days)\b)")


def visible(value: Any) -> str:
    """A value as text on one line: control characters are shown as escapes, never obeyed."""
    if value is None:
        return MISSING
    text = value if isinstance(value, str) else json.dumps(value)
    shown = one_line(text)
    return shown if shown.strip() else repr(text)


def told_apart(outputs: Sequence[Any], most: int = LONGEST_TEXT) -> list[str]:
    """Two outputs or values as text that is cut: of long numbers ten digits.

    Where these look the same all digits, and of texts what comes behind their common beginning.
    """
    short = [float(f"{each:.10g}") if isinstance(each, float) else each for each in outputs]
    texts = [visible(each) for each in (outputs if len(set(map(visible, short))) == 1 else short)]
    shown = [cut_name(each, most) for each in texts]
    if len(set(shown)) < len(set(texts)):
        start = max(0, len(commonprefix(texts)) - most // 4)  # noqa: RUF071 (of texts, not paths)
        shown = [cut_name(f"{'…' * bool(start)}{each[start:]}", most) for each in texts]
    return shown


def one_line(text: str) -> str:
    """The text with everything that would move the cursor spelled out."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else spelled_out(each) for each in text)


def spelled_out(character: str) -> str:
    """`\\n`, `\\x1b`, `\\u202e`, …"""
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def percent(share: float, to: Rounding = "near") -> str:
    """A share for reading: `11.3 %`, `< 0.1 %`, `0 %`."""
    return f"{hundredths(share, to)} %".replace("<", "< ").replace(">", "> ")


def unbroken(text: str) -> str:
    """The text with numbers that no line end parts from their unit: `2.0 %`, `5.1 points`."""
    return _BEFORE_UNIT.sub(NO_BREAK, text)


def at_most(shown: str) -> str:
    """An upper end: `at most 5.0 %`, but `below 0.1 %` where it is `< 0.1 %`."""
    return f"below {shown[2:]}" if shown.startswith("< ") else f"at most {shown}"


def at_least(shown: str) -> str:
    """A lower end: `at least 5.0 %`, but `more than 0 %` where it is `< 0.1 %`."""
    if shown.startswith("< "):
        return f"more than 0 {shown.split(maxsplit=2)[2]}"
    return f"more than {shown[2:]}" if shown.startswith("> ") else f"at least {shown}"


def share_text(
    share: float,
    successes: int | None,
    total: int,
    low: float | None = None,
    high: float | None = None,
) -> str:
    """A share with what it rests on: `3 of 26` where that is few, else with its interval.

    Where counts weigh differently the share is all that can be said, and where nothing is
    estimated it is exact.
    """
    plain = successes is not None and total > 0 and abs(successes / total - share) < 1e-9
    if plain and total < FEW_COUNTED:
        return f"{successes:,} of {total:,}"
    if low is None or high is None or low == high:
        return percent(share)
    most = percent(high, "up")
    ends = f"{hundredths(low, 'down')} – {most}" if low > 0 else at_most(most)
    return f"{percent(share)} ({ends})"


def points(difference: float, to: Rounding = "near") -> str:
    """A difference of two rates for reading: `17.1 points`."""
    return f"{hundredths(difference, to)} points".replace("<", "< ").replace(">", "> ")


def round_points(difference: float) -> str:
    """A limit or a precision, which somebody gave: `10 points`, `2.5 points`, `1 point`."""
    return count(float(f"{100 * difference:.4g}"), "point")


def hundredths(share: float, to: Rounding = "near") -> str:
    """A share in hundredths without a unit: `11.3`, `<0.1`."""
    share = as_saved(share)
    if 0 < share < 0.001:
        return "<0.1"
    if 0.999 < share < 1:
        return "100" if to == "up" else ">99.9"
    return f"{100 * share:.0f}" if share in (0.0, 1.0) else decimals(100 * share, 1, to)


def decimals(number: float, places: int, to: Rounding = "near") -> str:
    """A number with so many decimals, an end of an interval never nearer than it is: `5.1`."""
    if to == "near":
        return f"{number:.{places}f}"
    exact = Decimal(repr(as_saved(number)))
    last = Decimal(f"1e{-places}")
    return f"{exact.quantize(last, OUTWARDS[to], ROOMY):f}"  # a subject may change the usual one


def as_saved(number: float) -> float:
    """A number as a result file has it, so that a fresh one and a saved one are rounded alike."""
    return round(number, 12)  # as `results.model.plain`, which this must not import


def figure(number: float, digits: int = 4, to: Rounding = "near") -> str:
    """A number in units of its own: `15,810`, `0.0625`; very large or small ones as `1.2e+15`."""
    if to != "near":
        rounded = Context(digits, OUTWARDS[to]).create_decimal(repr(as_saved(number)))
        number = float(rounded)
    if number and not 1e-4 <= abs(number) < 1e15:
        return f"{number:.{digits}g}"
    return f"{float(f'{number:.{digits}g}'):,.15g}"


def exact_figure(number: float) -> str:
    """A number that somebody gave, as a scale or a tolerance, with all of its digits."""
    return figure(number, digits=10)


def confidence_text(confidence: float, family: int | None = None) -> str:
    """`99 % confidence`, or `99 % confidence for all 8 together`, `for both together`."""
    together = ""
    if family is not None and family > 1:
        together = f" for {'both' if family == 2 else f'all {family:,}'} together"
    return f"{percent_sure(confidence)} % confidence{together}"


def percent_sure(confidence: float) -> str:
    """A confidence in percent, to three digits behind the point and never more than it is."""
    return f"{math.floor(1e5 * confidence + 1e-6) / 1e3:.10g}"


def duration(seconds: float) -> str:
    """A time for reading: `0.8 s`, `3 min`, `2.5 h`, `4 days`."""
    if seconds < 0.05:
        return "< 0.1 s"
    for limit, unit, name in ((60, 1, "s"), (3_600, 60, "min"), (172_800, 3_600, "h")):
        if seconds < limit:
            return f"{_short(seconds / unit)} {name}"
    return f"{_short(seconds / 86_400)} days"


def took(timing: Mapping[str, Any]) -> str:
    """How long it took to measure, and to load rows and subject if somebody waited for that."""
    loading = timing.get("loading", 0.0)
    before = f" after {duration(loading)} of loading" if loading >= 3.0 else ""
    return f"{duration(timing['seconds'])}{before}"


def tokens_used(timing: Mapping[str, Any]) -> Iterator[str]:
    """How many tokens a language model used, and what they cost: nothing for other programs."""
    total = timing.get("tokens_in", 0) + timing.get("tokens_out", 0)
    if total:
        estimated = " (estimated)" if timing.get("tokens_estimated") else ""
        yield f"{count(total, 'token')}{estimated}{at_cost(timing.get('spend'))}"


def at_cost(spend: float | None) -> str:
    """What something costs, by the prices of the file: `, at a cost of 3.40`."""
    if not spend:
        return ""
    return f", at a cost of {spend:,.2f}" if spend >= 1 else f", at a cost of {spend:.2g}"


def about_duration(seconds: float) -> str:
    """An estimate of a time: `about 3 min`, `under 0.1 s`."""
    shown = duration(seconds)
    return f"under {shown[2:]}" if shown.startswith("< ") else f"about {shown}"


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0") if number < 10 else f"{number:,.0f}"


def file_size(octets: int) -> str:
    """The size of a file: `812 bytes`, `4.1 MB`."""
    for limit, unit, name in ((1e6, 1e3, "KB"), (1e9, 1e6, "MB")):
        if 1_000 <= octets < limit:
            return f"{_short(octets / unit)} {name}"
    return count(octets, "byte") if octets < 1_000 else f"{_short(octets / 1e9)} GB"


def size(number: int) -> str:
    """A number of inputs: exact below 10^15, with its magnitude when it is long."""
    if number < 10**9:
        return f"{number:,}"
    exponent = len(str(number)) - 1
    digits = round(number / 10 ** (exponent - 1))
    if digits == 100:  # 9.96 rounds to 10.0
        digits, exponent = 10, exponent + 1
    short = f"{digits // 10}.{digits % 10} × 10^{exponent}"
    return f"{number:,} ({short})" if number < 10**15 else short


def set_phrase(against: Sequence[str]) -> str:
    """A set in a sentence: `race`, or `race and sex together`."""
    return f"{plain_phrase(against)}{' together' * (len(against) > 1)}"


def plain_phrase(against: Sequence[str]) -> str:
    """The same in the middle of a sentence: `race`, or `race and sex`."""
    *others, last = [cut_name(visible(name)) for name in against]
    return f"{', '.join(others)} and {last}" if others else last


def set_with_followers(against: Sequence[str], followed: Sequence[str]) -> str:
    """What two people differ in: `race and sex`, or `sex, and relationship with it`."""
    return f"{plain_phrase(against)}{with_followers(against, followed)}"


def with_followers(against: Sequence[str], followed: Sequence[str]) -> str:
    """What was changed with a set: `, and relationship with it`; empty where nothing was."""
    if not followed:
        return ""
    it = "it" if len(against) == 1 else "them"
    return f", and {plain_phrase(followed)} with {it}"


def cut_name(text: str, most: int = LONGEST) -> str:
    """A name or value that is not longer than a sentence can bear: its beginning and its end.

    Three quarters are of its beginning: many differ there, and most of the others at their end.
    """
    if len(text) <= most:
        return text
    end = max(0, most - 1) // 4
    return f"{text[: max(0, most - 1 - end)]}…{text[len(text) - end :]}"


def cut_text(text: str) -> str:
    """The start of a text that is longer than a sentence can bear, with its size."""
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}… {length_text(text)}"


def some_of(
    items: Sequence[str], most: int = NAMED, *, between: str = ", ", more: str = " and {} more"
) -> str:
    """The first of many, and how many more there are: `race, sex and 3 more`."""
    hidden = len(items) - most
    return between.join(items[:most]) + (more.format(f"{hidden:,}") if hidden > 0 else "")


def all_of(values: Iterable[str | float]) -> str:
    """Names or numbers in a sentence: `race and sex`."""
    return " and ".join(f"{value:g}" if isinstance(value, float) else value for value in values)


def length_text(text: str) -> str:
    """How long a text is that was cut."""
    return f"({len(text):,} characters)"


def ends_text(low: float, high: float, unit: Callable[[float, Rounding], str] = percent) -> str:
    """The ends of an interval, or that there is none: `6.3 – 16.3 %`, `1 – 4 points`, `exact`."""
    if low == high:
        return "exact"
    least, most = unit(low, "down"), unit(high, "up")
    shared = "".join(most.rpartition(" ")[1:]) if " " in most else ""
    return f"{least.removesuffix(shared)} – {most}"


def set_text(against: Iterable[str]) -> str:
    """A set in a table: `race, sex`; it may be wrapped at the spaces."""
    return ", ".join(set_phrase([name]) for name in against)
