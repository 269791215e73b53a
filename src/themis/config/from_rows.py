"""Drafts from rows of data: types, ranges, steps, bins and weights, all of it guessed.

Nothing of it is exact: values that do not occur in the rows may occur elsewhere, and what is
unlikely in the rows may be likely there. So every guess comes with a remark.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from themis.config.columns import Tally, Typed
from themis.config.drafts import Draft, DraftFile, check_names, check_some_used
from themis.inputs.characteristics import Value
from themis.inputs.numbers import align, round_step
from themis.inputs.row_files import Table

LIST_NUMBERS = 10  # up to so many different numbers are listed
LIST_TEXTS = 50  # up to so many different texts are
PROPOSED = 20  # of too many texts, the most frequent ones are proposed
BINS = 4  # of protected numbers: quarters of the rows
FEW_ROWS = 20  # with fewer rows, different values in each prove nothing
FINE_STEPS = 10_000  # a finer grid than this is made coarser
WEIGHTED = 2**20  # ranges with more values get no weights
OUTLYING = 2  # the largest 1 % reach so many times as far as the rest

_NAMES_A_ROW = re.compile(r"(^|.*[\W_])(id|uuid|guid|index|rowid)", re.IGNORECASE)
_NAMES_A_DECISION = (
    "approved", "class", "decision", "label", "outcome", "output", "prediction", "target", "y",
)  # fmt: skip
_GOOD = {
    "1", "true", "yes", "y", "t", "approve", "approved", "accept", "accepted", "admit", "admitted",
    "grant", "granted", "hire", "hired", "good", "pass", "passed", "positive", "selected",
    "eligible", "paid", "repaid", ">50k", ">50k.", "high", "low risk", "low_risk",
}  # fmt: skip
_BAD = {
    "0", "-1", "false", "no", "n", "f", "deny", "denied", "reject", "rejected", "refused",
    "decline", "declined", "bad", "fail", "failed", "negative", "ineligible", "default",
    "defaulted", "<=50k", "<=50k.", "low", "high risk", "high_risk", "none",
}  # fmt: skip


def draft_from_data(
    pieces: Iterable[Table],
    *,
    source: str,
    protected: Sequence[str] = (),
    target: str | None = None,
) -> DraftFile:
    """A file whose characteristics are the columns of some rows, but for the target.

    The rows come in pieces, no two of which are held at once.
    """
    tally = Tally()
    for piece in pieces:
        tally.add(piece)
    typed = tally.typed()
    names = list(typed)
    check_names(names, protected, target)
    drafts = [
        _draft(name, each, protected=name in protected, asked=target is None)
        for name, each in typed.items()
        if name != target
    ]
    check_some_used(drafts, source, "no column can be a characteristic", "name other rows")
    origin = f"{source}: {_count(tally.length, 'row')}, {_count(len(names), 'column')}"
    decided = () if target is None else _favourable(target, typed[target])
    return DraftFile(origin, drafts, protected, *decided)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _draft(name: str, typed: Typed, *, protected: bool, asked: bool) -> Draft:
    reason = _reason_against(name, typed, protected=protected)
    if typed.kind == "nested" or not typed.values:
        return Draft(name, None, (), reason)
    numbers = typed.kind in ("integer", "real")
    if numbers and len(typed.values) > LIST_NUMBERS:
        spec, remarks = _range(typed, protected=protected)
    else:
        spec, remarks = _listed(typed, protected=protected)
    if protected and not reason:
        spec["protected"] = True
    if typed.facts.missing and not reason:
        spec["missing"] = _share(typed.facts.missing, typed.facts.rows)
    remarks = [*_common_remarks(typed), *(remarks if not reason else ())]
    if asked and name.lower() in _NAMES_A_DECISION and not reason:
        remarks.append(f"if this is what is decided, --target {name} leaves it out")
    shown = list(spec["values"]) if spec.keys() == {"values"} else spec
    return Draft(name, shown, tuple(remarks), reason).checked()


def _reason_against(name: str, typed: Typed, *, protected: bool) -> str:
    """Why a column is no characteristic; empty where it is one."""
    if typed.kind == "nested":
        return "its values are lists or objects, not single values"
    if not typed.values:
        return "it is empty"
    if len(typed.values) == 1:
        return "it is the same in all rows; uncomment it if the subject reads it"
    if protected:
        return ""
    if _is_identifier(name, typed):
        return "it names the rows: each has another value"
    if typed.kind in ("text", "mixed") and len(typed.values) > LIST_TEXTS:
        return (
            f"{typed.number} different texts are too many to try; if the subject reads it, "
            f"uncomment the {PROPOSED} most frequent ones"
        )
    return ""


def _is_identifier(name: str, typed: Typed) -> bool:
    if not typed.is_unique or typed.facts.rows < FEW_ROWS:
        return False
    if typed.kind == "integer":
        low, high = typed.ends
        numbered = high - low == typed.facts.rows - 1
        return numbered or _NAMES_A_ROW.fullmatch(name) is not None
    return typed.kind == "text"


def _common_remarks(typed: Typed) -> Iterator[str]:
    facts = typed.facts
    if typed.most is not None:
        yield (
            f"{typed.number} different values: how often they occur is taken from "
            f"{_count(sum(typed.counts), 'row')}"
        )
    if facts.missing:
        texts = ", ".join(repr(text) for text in facts.missing_texts if text.strip())
        shown = f" ({texts})" if texts else ""
        has = "has" if facts.missing == 1 else "have"
        other = f"; if the subject takes {texts} instead, add it as a value" if texts else ""
        yield f"{_count(facts.missing, 'row')} {has} no value here{shown}{other}"
    if facts.leading_zeros and typed.kind == "text":
        yield "numbers with leading zeros are taken as texts"
    if typed.kind == "mixed":
        yield "texts, numbers or truth values are mixed"
    if typed.kind == "text" and any(text != text.strip() for text in typed.values):
        yield "some texts begin or end with a blank"


def _share(missing: int, there: int) -> float:
    """The share of rows without a value, with two digits, and never 0 or 1."""
    share = missing / (missing + there)
    digits = 1 - math.floor(math.log10(min(share, 1 - share)))
    return round(share, digits)


def _listed(typed: Typed, *, protected: bool) -> tuple[dict[str, Any], list[str]]:
    """All values, or the most frequent of too many, with their weights."""
    pairs = list(zip(typed.values, typed.counts, strict=True))
    limit = LIST_TEXTS if protected else PROPOSED
    remarks = []
    if len(pairs) > LIST_TEXTS:
        kept = sorted(range(len(pairs)), key=lambda place: -pairs[place][1])[:limit]
        share = sum(pairs[place][1] for place in kept) / sum(typed.counts)
        pairs = [pairs[place] for place in sorted(kept)]
        remarks.append(
            f"the {limit} most frequent of {typed.number} texts, {share:.0%} of the rows"
        )
    values = [_plain(value) for value, _ in pairs]
    weights = round_weights([count for _, count in pairs])
    if typed.kind == "real" and all(value.is_integer() for value in values):
        remarks.append("all are whole, written with a point as in the rows")
    return {"values": values, **({"weights": weights} if weights else {})}, remarks


def _range(typed: Typed, *, protected: bool) -> tuple[dict[str, Any], list[str]]:
    """Numbers from the smallest to the largest, by a step that fits them."""
    low, high = map(_exact, typed.ends)
    step, remarks = _step(typed, low, high)
    low, high = align(low, high, step)
    spec: dict[str, Any] = {"min": _plain(low), "max": _plain(high)}
    if typed.kind == "real" or step != 1:
        spec["step"] = _plain(step)
    edges, weights = _quantile_bins(typed, low, high, step)
    remarks += _outliers(typed)
    if edges and protected:
        spec |= {"bins": edges, **({"weights": weights} if weights else {})}
        remarks.append("bins of about as many rows each")
    elif edges:
        extra = f"bins = {edges}" + (f", weights = {weights}" if weights else "")
        remarks.append(f"every value is drawn as often; to draw as in the rows add {extra}")
    return spec, remarks


def _step(typed: Typed, low: Any, high: Any) -> tuple[Any, list[str]]:
    step = typed.spacing
    if typed.kind == "integer":
        assert step is not None
        whole = int(step)
        return whole, [f"all are {whole:,} or a multiple of it apart"] if whole != 1 else []
    if step is not None and (high - low) / step <= FINE_STEPS:
        return step, []
    rounded = round_step(high - low)
    return rounded, [f"{_plain(low)} to {_plain(high)} in the rows; the step is rounded"]


def _outliers(typed: Typed) -> Iterator[str]:
    """A word on a few rows that stretch the range."""
    low, high = map(_exact, typed.ends)
    one, most = (_exact(_quantile(typed, share)) for share in (0.01, 0.99))
    middle = most - one
    if middle > 0 and (high - most > OUTLYING * middle or one - low > OUTLYING * middle):
        yield f"98 % of the rows lie between {_plain(one)} and {_plain(most)}: narrow it?"


def _quantile(typed: Typed, share: float) -> Any:
    """The smallest value that a share of the rows does not exceed."""
    reached = np.cumsum(typed.counts)
    return typed.values[int(np.searchsorted(reached, max(share * reached[-1], 1)))]


def _quantile_bins(
    typed: Typed, low: Any, high: Any, step: Any
) -> tuple[list[int | float], list[float] | None]:
    """The first values of all bins but the lowest, on the grid, and the bins' shares."""
    edges: list[Any] = []
    for part in range(1, BINS):
        last = _exact(_quantile(typed, part / BINS))  # the largest value below the edge
        edge = low + max((last - low) // step + 1, 1) * step
        if edge <= high and (not edges or edge > edges[-1]):
            edges.append(edge)
    places = [bisect_left(typed.values, edge) for edge in edges]
    counts = np.add.reduceat(typed.counts, [0, *places]).tolist() if edges else []
    few = (high - low) // step < WEIGHTED  # each value has a weight in the end
    return [_plain(edge) for edge in edges], round_weights(counts) if few else None


def round_weights(counts: Sequence[int]) -> list[float] | None:
    """Shares with three decimals that add up to 1, none of them 0; None where all are equal."""
    parts, total = 1_000, sum(counts)
    if len(set(counts)) <= 1 or not total:
        return None
    shares = [max(count * parts / total, 1.0) for count in counts]
    shares = [share * parts / sum(shares) for share in shares]
    rounded = [max(int(share), 1) for share in shares]
    by_rest = sorted(range(len(shares)), key=lambda i: (int(shares[i]) - shares[i], i))
    for place in by_rest[: max(parts - sum(rounded), 0)]:
        rounded[place] += 1
    while sum(rounded) > parts:
        rounded[max(range(len(rounded)), key=lambda i: rounded[i])] -= 1
    return [number / parts for number in rounded]


def _favourable(name: str, typed: Typed) -> tuple[list[Value] | None, str]:
    """Which values of the target people want, as far as can be guessed, and why."""
    pairs = list(zip(typed.values, typed.counts, strict=True))
    if typed.kind == "nested" or not pairs:
        return None, f"column {name!r} has no decisions: name the favourable outputs"
    if len(pairs) > LIST_TEXTS or (typed.kind == "real" and len(pairs) > LIST_NUMBERS):
        return None, (
            f"column {name!r} has {typed.number} different values: these are measurements, not "
            "decisions; let the subject compare them with a cut-off"
        )
    shown = ", ".join(f"{_plain(value)!r} ({_count(count, 'row')})" for value, count in pairs[:10])
    words = {value: str(_plain(value)).strip().lower() for value, _ in pairs}
    good = [value for value, word in words.items() if word in _GOOD]
    rest = [value for value, word in words.items() if word not in _BAD]
    chosen = good or (rest if 0 < len(rest) < len(pairs) else [pairs[-1][0]])
    sure = "guessed" if good or 0 < len(rest) < len(pairs) else "a mere guess, the last of"
    return [_plain(value) for value in chosen], f"{sure} from column {name!r}: {shown}"


def _exact(value: Any) -> Any:
    """A number to compute with: without rounding, and with // rounding down."""
    return Fraction(value) if isinstance(value, Decimal) else value


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal | Fraction) else value
