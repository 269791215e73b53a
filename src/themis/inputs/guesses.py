"""Guesses of characteristics from columns of data: types, ranges, steps, bins and weights.

Nothing of it is exact: values that do not occur in the rows may occur elsewhere, and what is
unlikely in the rows may be likely there. So every guess comes with a remark.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

from themis.errors import Mistake, RequestError, count_of, suggest
from themis.inputs.columns import SHARED, Typed, type_column
from themis.inputs.numbers import NUMBER_LIMIT, align, exact, round_step, two_digits
from themis.inputs.tables import Table

LIST_NUMBERS = 10  # up to so many different numbers are listed
LIST_TEXTS = 50  # up to so many different texts are
WEIGHTED = 2**20  # ranges with more values get no weights
READERS = "themis.subjects.loading"  # knows models; this room does not, and loads it on demand
_NAMES_A_ROW = {"id", "uuid", "guid", "index", "key", "nr", "row", "rowid", "rowno"}


@dataclass(frozen=True)
class Guess:
    """What a column seems to be; with a reason to leave it out, the spec is only a proposal."""

    name: str
    spec: Any  # as in a file; None where there is nothing to propose
    remarks: tuple[str, ...] = ()
    left_out: str = ""  # the reason


def guess_table(
    rows: Table, protected: str | Iterable[str], target: str | None, model: Any
) -> list[Guess]:
    """What the columns seem to be, except the target; of a model those that it reads.

    Protected ones that it does not read are groups of people.
    """
    marked = [protected] if isinstance(protected, str) else list(protected)
    columns = rows.columns
    unknown = [name for name in (*marked, target) if name is not None and name not in columns]
    if unknown:
        known = list(columns)
        raise RequestError(
            Mistake("unknown-name", "frame", f"there is no {name!r}", suggest(name, known))
            for name in unknown
        )
    names = [name for name in columns if name != target]
    read = names if model is None else import_module(READERS).columns_read(model, names)
    guesses = [
        guess_column(
            name,
            type_column(columns[name], is_text=rows.is_text),
            protected=name in marked,
            needed=model is not None and name in read,
        )
        for name in names
        if name in read or name in marked
    ]
    for guess in guesses:
        if guess.name not in read and not guess.left_out:
            guess.spec["role"] = "group"
    return guesses


def guess_column(
    name: str, typed: Typed, *, protected: bool = False, needed: bool = False
) -> Guess:
    """The characteristic that a column is; one that is `needed` is left out only if it can't be.

    What is needed and nobody varies, such as an id, is a context with the values of the rows.
    """
    reason = _reason_against(name, typed, protected=protected, needed=needed)
    if needed and reason and typed.kind != "nested":
        passed_on = f"passed on as each row has it: {reason}"
        return Guess(name, {"role": "context"}, (*_common_remarks(typed), passed_on))
    if reason and (len(typed.values) != 1 or reaches_person(typed.values[0], typed.counts[0])):
        # What is left out is not shown, if it may be somebody's.
        return Guess(name, None, tuple(_common_remarks(typed)) if typed.values else (), reason)
    numbers = typed.kind in ("integer", "real")
    if numbers and len(typed.values) > LIST_NUMBERS:
        spec, remarks = _range(typed, protected=protected)
    else:
        spec, remarks = _listed(typed)
    if protected and not reason:
        spec["protected"] = True
    if typed.missing and not reason:
        spec["missing"] = _missing_share(typed.missing, typed.rows)
    remarks = [*_common_remarks(typed), *(remarks if not reason else ())]
    shown = list(spec["values"]) if spec.keys() == {"values"} else spec
    return Guess(name, shown, tuple(remarks), reason)


def _reason_against(name: str, typed: Typed, *, protected: bool, needed: bool) -> str:
    """Why a column is no characteristic; empty where it is one."""
    if typed.kind == "nested":
        return "its values are lists or objects, not single values"
    if not typed.values:
        return "it is empty"
    personal = personal_reason(name, typed)
    if personal:
        return personal
    if all(map(reaches_person, typed.values, typed.counts)):
        return "its values name or reach persons"
    if needed and not protected and are_dates(typed):
        return "dates"
    if needed and (protected or not _is_anybody(typed)):
        return ""
    if len(typed.values) == 1 and not typed.missing:
        return "it is the same in all rows; uncomment it if the subject reads it"
    if protected:
        return ""
    if _is_identifier(name, typed):
        return "it names the rows: each has another value"
    if typed.kind in ("text", "mixed") and len(typed.values) > LIST_TEXTS:
        many = f"{len(typed.values):,} different texts are too many to try"
        return many if needed else f"{many}; if the subject reads it, list those that matter"
    return ""


def _is_anybody(typed: Typed) -> bool:
    """Whether most rows have a text, or a number of their own: nothing that makes groups."""
    texts = typed.kind in ("text", "mixed") and len(typed.values) > LIST_TEXTS
    return typed.is_unique or (texts and 2 * len(typed.values) > typed.rows)


def _is_identifier(name: str, typed: Typed) -> bool:
    # With fewer rows, different values in each prove nothing.
    if not typed.is_unique or typed.rows < 20:
        return False
    if typed.kind == "integer":
        low, high = typed.ends
        numbered = high - low == typed.rows - 1
        return numbered or not _NAMES_A_ROW.isdisjoint(words_of(name))
    return typed.kind == "text"


def _common_remarks(typed: Typed) -> Iterator[str]:
    if typed.missing:
        texts = ", ".join(repr(text) for text in typed.missing_texts if text.strip())
        shown = f" ({texts})" if texts else ""
        has = "has" if typed.missing == 1 else "have"
        other = f"; if the subject takes {texts} instead, add it as a value" if texts else ""
        yield f"{count_of(typed.missing, 'row')} {has} no value here{shown}{other}"
    if typed.missing and len(typed.values) == 1:
        yield (
            "all others have the same value: if no value means something, such as 'no', write that "
            "into the rows, or there is nothing to change it to"
        )
    if typed.leading_zeros and typed.kind == "text":
        yield "numbers with leading zeros are taken as texts"
    if typed.kind == "mixed":
        yield "texts, numbers or truth values are mixed"


def _missing_share(missing: int, there: int) -> float:
    """The share of rows without a value, with two digits, and never 0 or 1."""
    share = missing / (missing + there)
    digits = 1 - math.floor(math.log10(min(share, 1 - share)))
    return round(share, digits)


def _listed(typed: Typed) -> tuple[dict[str, Any], list[str]]:
    """All values, or the most frequent of too many, with their weights."""
    every = list(zip(typed.values, typed.counts, strict=True))
    pairs = [pair for pair in every if not reaches_person(*pair)]
    remarks = []
    if left := len(every) - len(pairs):
        remarks.append(f"not listed: {count_of(left, 'value')} that name or reach persons")
    if len(pairs) > LIST_TEXTS:
        kept = sorted(range(len(pairs)), key=lambda place: -pairs[place][1])[:LIST_TEXTS]
        share = sum(pairs[place][1] for place in kept) / sum(typed.counts)
        pairs = [pairs[place] for place in sorted(kept)]
        number = f"the {LIST_TEXTS} most frequent of {len(every):,} texts"
        remarks.append(f"{number}, {share:.0%} of the rows")
    values = [plain(value) for value, _ in pairs]
    counts = [count for _, count in pairs]
    even = len(set(counts)) <= 1 or not sum(counts)
    return {"values": values, **({} if even else {"weights": _shares(counts)})}, remarks


def _range(typed: Typed, *, protected: bool) -> tuple[dict[str, Any], list[str]]:
    """Numbers from the smallest to the largest, by a step that fits them."""
    low, high = map(_exact, typed.ends)
    step, remarks = _step(typed, low, high)
    seen = align(low, high, step)
    low, high = _nobodys_ends(typed, *seen, step)
    spec: dict[str, Any] = {"min": plain(low), "max": plain(high)}
    if typed.kind == "real" or step != 1:
        spec["step"] = plain(step)
    edges, weights = _quantile_bins(typed, *seen, step)
    if edges and weights:
        spec |= {"bins": edges, "weights": weights}
        remarks.append("bins of about as many rows each, drawn as often as in the rows")
    elif edges and protected:
        spec["bins"] = edges
        remarks.append("bins of about as many rows each")
    if not weights and (high - low) // step >= WEIGHTED:
        remarks.append("too many values for weights: without a profile, drawn evenly")
    return spec, remarks


def _nobodys_ends(typed: Typed, low: Any, high: Any, step: Any) -> tuple[Any, Any]:
    """The ends of a range; one of few rows would be somebody's number, and is rounded outward.

    It stays on the grid, so that all rows still fit, and on its side of 0.
    """
    # The ends of a range are rounded to about a fiftieth of it.
    unit = max(round_step(Fraction(high - low), 50), 2 * Fraction(step))
    lower = low + (low // unit * unit - low) // step * step
    lower += step if lower < 0 <= low else 0
    higher = high - (high - -(-high // unit) * unit) // step * step
    higher -= step if higher > 0 >= high else 0
    ends = [
        rounded if _rows_with(typed, own) < SHARED and abs(rounded) <= NUMBER_LIMIT else end
        for own, end, rounded in zip(typed.ends, (low, high), (lower, higher), strict=True)
    ]
    return (ends[0], ends[1])


def _rows_with(typed: Typed, value: Any) -> int:
    place = bisect_left(typed.values, value)
    found = place < len(typed.values) and typed.values[place] == value
    return typed.counts[place] if found else 0


def _step(typed: Typed, low: Any, high: Any) -> tuple[Any, list[str]]:
    step = typed.spacing
    if typed.kind == "integer":
        assert step is not None
        whole = int(step)
        return whole, [f"all are {whole:,} or a multiple of it apart"] if whole != 1 else []
    if step is not None and (high - low) / step <= 10_000:  # a finer grid than this is made coarser
        return step, []
    rounded = round_step(high - low)
    return rounded, [f"about {_short(low)} to {_short(high)} in the rows; the step is rounded"]


def _short(number: Any) -> str:
    """A number with two digits: the whole one may be somebody's."""
    return f"{two_digits(float(number)):,g}"


def _quantile_bins(
    typed: Typed, low: Any, high: Any, step: Any
) -> tuple[list[int | float], list[float] | None]:
    """The first values of all bins but the lowest, on the grid, and the bins' shares."""
    edges: list[Any] = []
    reached = np.cumsum(typed.counts)
    for share in (0.25, 0.5, 0.75):  # bins are quarters of the rows
        place = int(np.searchsorted(reached, max(share * reached[-1], 1)))
        last = _exact(typed.values[place])  # the largest value below the edge
        edge = low + max((last - low) // step + 1, 1) * step
        if edge <= high and (not edges or edge > edges[-1]):
            edges.append(edge)
    places = [bisect_left(typed.values, plain(edge)) for edge in edges]
    counts = np.add.reduceat(typed.counts, [0, *places]).tolist() if edges else []
    few = (high - low) // step < WEIGHTED  # each value has a weight in the end
    starts = [low, *edges, high + step]
    sizes = [(stop - start) // step for start, stop in pairwise(starts)]
    even = len({Fraction(count, size) for count, size in zip(counts, sizes, strict=False)}) <= 1
    return [plain(edge) for edge in edges], None if even or not few else _shares(counts)


def _shares(counts: Sequence[int]) -> list[float]:
    """Shares with three decimals, none of them 0."""
    return [max(round(count / sum(counts), 3), 0.001) for count in counts]


def _exact(value: Any) -> Any:
    """A number to compute with: without rounding, and with // rounding down."""
    return exact(value) if isinstance(value, float) else value


def plain(value: Any) -> Any:
    """A value as a file has it."""
    return float(value) if isinstance(value, Fraction) else value


# Columns that tell who somebody is ------------------------------------------------------------
MOST = 0.5  # of the values look so
LOOKED_AT = 1_000  # texts of a column, spread over all of them

# Each in linear time: cells may be as long as a file. Of an address that is looked for within a
# text, the one sign before its @ does; the digits of a phone number end at the first separator.
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.\w+")
_EMAIL_WITHIN = re.compile(r"[^@\s]@[^@\s]+\.\w")
_PHONE = re.compile(r"(?=(?:\D*\d){7})\+?[\d.]*+[\s()/\-+][\d\s()/.\-]*+|\+\d{7,}")
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}(?:[T ].*)?"
)
_DECIMAL_COMMA = re.compile(r"[+-]?\d{1,3}(?:\.?\d{3})*,\d+")
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_NAMES = {"name", "surname", "forename", "lastname", "firstname", "fullname", "username"}
_PLACES = {"address", "street", "email", "mail", "phone", "telephone", "mobile", "fax"}
_NUMBERS = {"ssn", "iban", "passport", "nhs", "msisdn"}
_BIRTH = {"birth", "dob", "birthday", "birthdate", "born"}
_ANOTHER_NAME = {"country", "product", "brand", "model", "city", "state", "job", "school", "file"}


def personal_reason(name: str, typed: Typed) -> str:
    """Why a column is about persons and not about what they are like; empty where it is not."""
    words = words_of(name)
    many = typed.kind in ("text", "mixed", "integer") and len(typed.values) > 2
    texts = [value for value in typed.values if isinstance(value, str)]
    texts = texts[:: len(texts) // LOOKED_AT + 1]
    if _share_like(_EMAIL, texts) > MOST:
        return "e-mail addresses name persons"
    if _share_like(_DATE, texts) > MOST and (not _BIRTH.isdisjoint(words) or _is_rare(typed)):
        return "dates: give the subject what it makes of them, such as an age in years"
    if (_is_rare(typed) and _share_like(_PHONE, texts) > MOST) or _is_long_number(typed):
        return "long numbers, such as of phones or accounts, name persons"
    if many and not words.isdisjoint(_PLACES | _NUMBERS):
        return "its name says that it names or reaches persons"
    if texts and not words.isdisjoint(_NAMES) and words.isdisjoint(_ANOTHER_NAME) and many:
        return "its name says that it names or reaches persons"
    if _share_like(_DECIMAL_COMMA, texts) > MOST and len(texts) > 2:
        return "numbers with a decimal comma are read as texts: write them with a point"
    # In a text that somebody wrote there are five words or more, on average.
    if texts and _is_rare(typed) and _mean(len(text.split()) for text in texts) >= 5:
        return "texts that somebody wrote: no two need be the same"
    return ""


def are_dates(typed: Typed) -> bool:
    """Whether the values of a column are mostly dates."""
    return _share_like(_DATE, [each for each in typed.values if isinstance(each, str)]) > MOST


def reaches_person(value: Any, rows: int) -> bool:
    """Whether a value of so many rows has an e-mail address, or is a phone number that few have."""
    if not isinstance(value, str):
        return False
    text = value.strip()
    is_phone = rows < SHARED and _PHONE.fullmatch(text) is not None and not _DATE.fullmatch(text)
    return is_phone or _EMAIL_WITHIN.search(text) is not None


def words_of(name: str) -> set[str]:
    """The words in the name of a column, whatever joins them."""
    return {word.lower() for word in _PARTS.findall(name)} | {name.lower()}


def _is_rare(typed: Typed) -> bool:
    """Whether most rows have a value that hardly any other has."""
    return len(typed.values) > MOST * sum(typed.counts)


def _is_long_number(typed: Typed) -> bool:
    numbers = typed.kind in ("integer", "real")
    # Nearly all rows have a value of their own.
    if not numbers or len(typed.values) < 0.9 * sum(typed.counts):
        return False
    whole = all(value == int(value) for value in typed.values[:LOOKED_AT])
    # Phone and account numbers have nine digits or more.
    return bool(typed.values) and whole and typed.ends[0] >= 10**8


def _share_like(pattern: re.Pattern[str], texts: list[str]) -> float:
    return _mean(pattern.fullmatch(text.strip()) is not None for text in texts)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0
