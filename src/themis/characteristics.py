"""Characteristics: the named input variables and the values that they take (Def. 3.1)."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, SchemaError

Value: TypeAlias = str | int | float | bool
Codes: TypeAlias = NDArray[np.integer[Any]]

TABLE_LIMIT = 65_536  # up to this many values decoding is one table look-up
SIZE_LIMIT = 2**62  # codes are 64-bit integers


@dataclass(frozen=True, kw_only=True)
class Characteristic:
    """A named input variable with a finite, ordered list of values, known by their codes 0, 1, …

    Inside a set of characteristics it takes its *levels*: its values, or its bins where it has any.
    `weights` (one per value, or one per bin) are the operational profile; a value of weight zero
    does not occur.
    """

    name: str = ""
    weights: Sequence[float] | None = None
    protected: bool = False

    # What each kind provides -------------------------------------------------------------
    @property
    def size(self) -> int:
        """The number of values."""
        raise NotImplementedError  # pragma: no cover - every kind overrides it

    @property
    def numeric(self) -> bool:
        """Whether all values are numbers."""
        return True

    @property
    def boolean(self) -> bool:
        """Whether all values are truth values."""
        return False

    def decode(self, codes: Codes) -> NDArray[Any]:
        """The values of these codes, as one array."""
        return self._table[codes] if self.size <= TABLE_LIMIT else self._compute(codes)

    def _compute(self, codes: Codes) -> NDArray[Any]:
        raise NotImplementedError  # pragma: no cover - every kind overrides it

    def encode(self, value: Any) -> int | None:
        """The code of a value, or None when it is not one of this characteristic's."""
        raise NotImplementedError  # pragma: no cover - every kind overrides it

    # The same for all kinds --------------------------------------------------------------
    @cached_property
    def _table(self) -> NDArray[Any]:
        return self._compute(np.arange(self.size))

    def value(self, code: int) -> Value:
        """The value of one code, as a plain Python object."""
        value: Value = self.decode(np.array([code])).tolist()[0]
        return value

    @property
    def bin_starts(self) -> NDArray[np.int64] | None:
        """The first code of each bin, or None where there are no bins."""
        return None

    @property
    def levels(self) -> int:
        """The number of bins, or of values where there are no bins."""
        return self.size if self.bin_starts is None else len(self.bin_starts)

    def level_of(self, codes: Codes) -> Codes:
        """The level that each code belongs to."""
        if self.bin_starts is None:
            return codes
        return np.searchsorted(self.bin_starts, codes, side="right") - 1

    def level_range(self, level: int) -> tuple[int, int]:
        """The first code of a level and the one behind its last."""
        if self.bin_starts is None:
            return level, level + 1
        stops = [*self.bin_starts[1:].tolist(), self.size]
        return int(self.bin_starts[level]), int(stops[level])

    def level_label(self, level: int) -> Value:
        """What a level is called: its value, or the ends of the bin."""
        start, stop = self.level_range(level)
        if stop - start == 1:
            return self.value(start)
        return f"{self.value(start)} to {self.value(stop - 1)}"

    @cached_property
    def value_weights(self) -> NDArray[np.float64] | None:
        """The probability of each value, or None when all are equally likely."""
        if self.weights is None:
            return None
        weights = np.asarray(self.weights, dtype=float)
        if self.bin_starts is not None and len(weights) != self.size:
            sizes = np.diff([*self.bin_starts.tolist(), self.size])
            weights = np.repeat(weights / sizes, sizes)
        return np.asarray(weights / weights.sum())

    @cached_property
    def possible_levels(self) -> NDArray[np.int64]:
        """The levels that have a value of positive weight: the ones that may be assigned."""
        if self.value_weights is None:
            return np.arange(self.levels)
        return np.unique(self.level_of(np.flatnonzero(self.value_weights > 0)))

    def named(self, name: str) -> Characteristic:
        """The same characteristic under a name."""
        return replace(self, name=name)

    def _common_mistakes(self) -> Iterator[Mistake]:
        if self.weights is None:
            return
        expected = {self.size, self.levels}
        weights = list(self.weights)
        if len(weights) not in expected:
            rule = " or ".join(str(number) for number in sorted(expected))
            what = "values" if len(expected) == 1 else "bins or values"
            yield _mistake(
                "weights-length",
                f"{len(weights)} weights for {rule} {what}",
                "give one weight for each",
            )
        if not all(_is_number(weight) and weight >= 0 for weight in weights):
            yield _mistake(
                "weights-negative",
                f"weights {weights!r} contain something that is not a number of at least 0",
                "use 0 for a value that does not occur",
            )
        elif not sum(weights) > 0:
            yield _mistake("weights-zero", "all weights are 0", "make at least one positive")


@dataclass(frozen=True)
class Values(Characteristic):
    """A categorical characteristic: a list of distinct strings, numbers or truth values."""

    values: Sequence[Value] = field(default=())

    def __post_init__(self) -> None:
        _raise_any(self._mistakes())
        _freeze(self, "values", "weights")

    def _mistakes(self) -> Iterator[Mistake]:
        if isinstance(self.values, str) or not isinstance(self.values, Sequence):
            yield _mistake(
                "values-list",
                f"values must be a list, got {self.values!r}",
                f"write [{self.values!r}]",
            )
            return
        if not self.values:
            yield _mistake("empty-values", "there are no values", "list at least one")
            return
        wrong = [value for value in self.values if not _is_value(value)]
        if wrong:
            yield _mistake(
                "value-type",
                f"{wrong[0]!r} can't be a value",
                "use strings, finite numbers, true or false",
            )
            return
        for value in [value for value, times in Counter(self.values).items() if times > 1]:
            yield _mistake(
                "duplicate-value", f"the value {value!r} stands there twice", "remove one"
            )
        yield from self._common_mistakes()

    @property
    def size(self) -> int:
        return len(self.values)

    @cached_property
    def numeric(self) -> bool:
        return all(_is_number(value) for value in self.values)

    @cached_property
    def boolean(self) -> bool:
        return all(isinstance(value, bool) for value in self.values)

    @cached_property
    def _table(self) -> NDArray[Any]:
        if self.boolean or self.numeric:
            return np.array(self.values)
        table = np.empty(len(self.values), dtype=object)
        table[:] = self.values
        return table

    def decode(self, codes: Codes) -> NDArray[Any]:
        return self._table[codes]

    @cached_property
    def _codes(self) -> dict[Value, int]:
        return {value: code for code, value in enumerate(self.values)}

    def encode(self, value: Any) -> int | None:
        try:
            return self._codes.get(value)
        except TypeError:  # unhashable: certainly not one of the values
            return None


@dataclass(frozen=True)
class Integers(Characteristic):
    """Whole numbers from `min` to `max`, both ends included, in steps.

    `bins=[40, 65]` groups them: an edge is the first value of the next bin.
    """

    min: int = 0
    max: int = 0
    step: int = field(default=1, kw_only=True)
    bins: Sequence[int] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _raise_any(_range_mistakes(self, (int, np.integer), "a whole number"))
        _freeze(self, "bins", "weights")
        for name in ("min", "max", "step"):
            object.__setattr__(self, name, int(getattr(self, name)))

    @property
    def size(self) -> int:
        return (self.max - self.min) // self.step + 1

    def _compute(self, codes: Codes) -> NDArray[Any]:
        return self.min + np.asarray(codes, dtype=np.int64) * self.step

    def encode(self, value: Any) -> int | None:
        return _encode_number(value, self.min, self.step, self.size)

    @cached_property
    def bin_starts(self) -> NDArray[np.int64] | None:
        return _bin_starts(self.bins, self.min, self.step)


@dataclass(frozen=True)
class Reals(Characteristic):
    """Numbers from `min` to `max`, both ends included, in steps of `step`.

    `bins=[0.5]` groups them: an edge is the first value of the next bin.
    """

    min: float = 0.0
    max: float = 0.0
    step: float = field(default=math.nan, kw_only=True)  # there is no sensible default
    bins: Sequence[float] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _raise_any(_range_mistakes(self, (int, float, np.integer, np.floating), "a number"))
        _freeze(self, "bins", "weights")
        for name in ("min", "max", "step"):
            object.__setattr__(self, name, float(getattr(self, name)))

    @property
    def size(self) -> int:
        return int((_exact(self.max) - _exact(self.min)) / _exact(self.step)) + 1

    @cached_property
    def _digits(self) -> int:
        """Decimal places of the values, so that 0.1 · 3 is shown and passed on as 0.3."""
        denominator = math.lcm(_exact(self.min).denominator, _exact(self.step).denominator)
        return next((places for places in range(16) if 10**places % denominator == 0), 16)

    def _compute(self, codes: Codes) -> NDArray[Any]:
        return np.round(self.min + np.asarray(codes) * self.step, self._digits)

    def encode(self, value: Any) -> int | None:
        return _encode_number(value, self.min, self.step, self.size)

    @cached_property
    def bin_starts(self) -> NDArray[np.int64] | None:
        return _bin_starts(self.bins, self.min, self.step)


def _range_mistakes(
    range_: Integers | Reals, types: tuple[type, ...], noun: str
) -> Iterator[Mistake]:
    """All that is wrong with a range of numbers."""
    wrong = [
        (name, value)
        for name, value in (("min", range_.min), ("max", range_.max), ("step", range_.step))
        if not isinstance(value, types) or isinstance(value, bool) or not math.isfinite(value)
    ]
    for name, value in wrong:
        missing = isinstance(value, float) and math.isnan(value)
        received = "is missing" if missing else f"must be {noun}, got {value!r}"
        yield _mistake("range-type", f"{name} {received}", f"write {noun}")
    if wrong:
        return
    low, high, step = _exact(range_.min), _exact(range_.max), _exact(range_.step)
    if step <= 0:
        yield _mistake("step", f"step must be positive, got {range_.step}", "remove the sign")
        return
    if low > high:
        yield _mistake(
            "min-max",
            f"minimum {range_.min} exceeds maximum {range_.max}",
            "swap them or widen the range",
        )
        return
    steps = (high - low) / step
    if steps.denominator != 1:
        reached = float(low + int(steps) * step)
        yield _mistake(
            "step-misses-max",
            f"maximum {range_.max} is not reached from {range_.min} in steps of {range_.step}",
            f"use max = {reached:g} or another step",
        )
        return
    if steps >= SIZE_LIMIT:
        yield _mistake(
            "too-many-values", f"{int(steps) + 1} values are too many", "use a larger step"
        )
        return
    mistakes = list(_bin_mistakes(range_, low, high, step))
    yield from mistakes
    if not mistakes:
        yield from range_._common_mistakes()


def _bin_mistakes(
    range_: Integers | Reals, low: Fraction, high: Fraction, step: Fraction
) -> Iterator[Mistake]:
    if range_.bins is None:
        return
    bins = list(range_.bins)
    if not bins or not all(_is_number(edge) for edge in bins):
        yield _mistake(
            "bins",
            f"bins must be a list of numbers, got {bins!r}",
            "give the first value of each bin but the lowest",
        )
        return
    if any(not low < _exact(edge) <= high for edge in bins):
        yield _mistake(
            "bins-range",
            f"bins {bins!r} has an edge outside ({range_.min}, {range_.max}]",
            "an edge is the first value of the next bin",
        )
    if any(_exact(first) >= _exact(second) for first, second in itertools.pairwise(bins)):
        yield _mistake("bins-order", f"bins {bins!r} must increase", "sort them and remove doubles")
        return
    starts = [-((low - _exact(edge)) // step) for edge in bins]  # ceil
    if len(set(starts)) < len(starts):
        yield _mistake(
            "bins-empty",
            f"bins {bins!r} has a bin without a value",
            f"put edges at least {range_.step} apart",
        )


def _bin_starts(bins: Sequence[float] | None, low: float, step: float) -> NDArray[np.int64] | None:
    if bins is None:
        return None
    first = _exact(low)
    starts = [int(-((first - _exact(edge)) // _exact(step))) for edge in bins]  # ceil
    return np.array([0, *starts], dtype=np.int64)


def _encode_number(value: Any, low: float, step: float, size: int) -> int | None:
    if not _is_number(value):
        return None
    code = (_exact(value) - _exact(low)) / _exact(step)
    return int(code) if code.denominator == 1 and 0 <= code < size else None


def _exact(number: Any) -> Fraction:
    """A number as it is written: 0.1 is one tenth."""
    return (
        Fraction(str(number)) if isinstance(number, float | np.floating) else Fraction(int(number))
    )


def _is_number(value: Any) -> bool:
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(
        value, bool
    )
    return number and math.isfinite(value)


def _is_value(value: Any) -> bool:
    return isinstance(value, str | bool) or _is_number(value)


def _freeze(characteristic: Characteristic, *names: str) -> None:
    """Turn lists into tuples, so that a characteristic can't change and can be hashed."""
    for name in names:
        if getattr(characteristic, name) is not None:
            object.__setattr__(characteristic, name, tuple(getattr(characteristic, name)))


def _mistake(code: str, problem: str, remedy: str) -> Mistake:
    return Mistake(code=code, where="", problem=problem, remedy=remedy)


def _raise_any(mistakes: Iterator[Mistake]) -> None:
    found = list(mistakes)
    if found:
        raise SchemaError(found)
