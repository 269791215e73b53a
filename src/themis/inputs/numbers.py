"""Ranges of numbers: values by step, bins, what can be wrong with them, and which step suits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, count_of

NUMBER_LIMIT = 2**62  # codes and whole values are 64-bit integers


class NumberRange:
    """Numbers from `min` to `max` in steps, as the user wrote them, right or wrong."""

    min: Any
    max: Any
    step: Any
    bins: Any
    whole: ClassVar[bool]  # only whole numbers are allowed

    def range_mistakes(self) -> list[Mistake]:
        """All that is wrong with the range; nothing else of it may be used if there is any."""
        return [*self._type_mistakes()] or [*self._order_mistakes()] or [*self._bin_mistakes()]

    @cached_property
    def size(self) -> int:
        """The number of values."""
        return int((exact(self.max) - exact(self.min)) / exact(self.step)) + 1

    @cached_property
    def digits(self) -> int:
        """Decimal places of the values, so that 0.1 · 3 is shown and passed on as 0.3."""
        denominator = math.lcm(exact(self.min).denominator, exact(self.step).denominator)
        return next((places for places in range(16) if 10**places % denominator == 0), 16)

    @cached_property
    def bin_starts(self) -> NDArray[np.int64] | None:
        """The first code of each bin, or None where there are no bins."""
        if self.bins is None:
            return None
        low, step = exact(self.min), exact(self.step)
        return np.array([0, *(int(-((low - exact(edge)) // step)) for edge in self.bins)], np.int64)

    def _encode(self, value: Any) -> int | None:
        """The code of a number, or None when it is not one of the values."""
        if not is_number(value):
            return None
        if self.whole and is_whole(value):  # without fractions, which take their time
            code, beside = divmod(int(value) - int(self.min), int(self.step))
            return code if not beside and self.min <= value <= self.max else None
        steps = (exact(value) - exact(self.min)) / exact(self.step)
        return int(steps) if steps.denominator == 1 and 0 <= steps < self.size else None

    def _type_mistakes(self) -> Iterator[Mistake]:
        noun = "a whole number" if self.whole else "a number"
        for name in ("min", "max", "step"):
            value = getattr(self, name)
            if value is None:
                yield mistake("range-type", f"{name} is missing", f"write {noun}")
            elif not is_number(value) or (self.whole and not is_whole(value)):
                remedy = "write one of at most 18 digits" if type(value) is int else f"write {noun}"
                yield mistake("range-type", f"{name} must be {noun}, got {value!r}", remedy)

    def _order_mistakes(self) -> Iterator[Mistake]:
        low, high, step = exact(self.min), exact(self.max), exact(self.step)
        if step <= 0:
            yield mistake("step", f"step must be positive, got {self.step}", "remove the sign")
            return
        if low > high:
            problem = f"minimum {self.min} exceeds maximum {self.max}"
            yield mistake("min-max", problem, "swap them or widen the range")
            return
        steps = (high - low) / step
        if steps >= NUMBER_LIMIT:
            number = Decimal(steps.numerator) / steps.denominator  # may be beyond all floats
            yield mistake(
                "too-many-values", f"{number:.1e} values are too many", "use a larger step"
            )
        elif steps.denominator != 1:
            reached = low + int(steps) * step
            problem = f"maximum {self.max} is not reached from {self.min} in steps of {self.step}"
            remedy = f"use max = {int(reached) if self.whole else float(reached)} or another step"
            yield mistake("step-misses-max", problem, remedy)

    def _bin_mistakes(self) -> Iterator[Mistake]:
        if self.bins is None:
            return
        if not is_list(self.bins) or not self.bins or not all(map(is_number, self.bins)):
            problem = f"bins must be a list of numbers, got {self.bins!r}"
            yield mistake("bins", problem, "give the first value of each bin but the lowest")
            return
        shown = list(self.bins)
        low, high = exact(self.min), exact(self.max)
        if any(not low < exact(edge) <= high for edge in shown):
            problem = f"bins {shown} has an edge outside ({self.min}, {self.max}]"
            yield mistake("bins-range", problem, "an edge is the first value of the next bin")
        if any(exact(first) >= exact(second) for first, second in itertools.pairwise(shown)):
            yield mistake("bins-order", f"bins {shown} must increase", "sort them, without doubles")
        elif self.bin_starts is not None and len({*self.bin_starts.tolist()}) <= len(shown):
            problem = f"bins {shown} has a bin without a value"
            yield mistake("bins-empty", problem, f"put edges at least {self.step} apart")


def exact(number: Any) -> Fraction:
    """A number as it is written: 0.1 is one tenth."""
    if isinstance(number, float | np.floating):
        return Fraction(str(number))
    return Fraction(int(number))


def is_whole(value: Any) -> bool:
    """Whether this is a whole number that fits in 64 bits."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return False
    return abs(int(value)) <= NUMBER_LIMIT


def is_number(value: Any) -> bool:
    """Whether this is a finite number; truth values are not."""
    return is_whole(value) or (isinstance(value, float | np.floating) and math.isfinite(value))


def is_list(value: Any) -> bool:
    """Whether this is a list of things, and not a text."""
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)


def mistake(code: str, problem: str, remedy: str) -> Mistake:
    """A mistake whose place is not known here."""
    return Mistake(code=code, where="", problem=problem, remedy=remedy)


def weight_mistakes(weights: Any, size: int, levels: int) -> Iterator[Mistake]:
    """What is wrong with weights of so many values, or of their bins."""
    if weights is None:
        return
    if not is_list(weights):
        problem = f"weights must be a list, got {weights!r}"
        yield mistake("weights-list", problem, "give one weight for each value")
        return
    expected = sorted({size, levels})
    if len(weights) not in expected:
        what = "bins or values" if len(expected) > 1 else "values" if size > 1 else "value"
        problem = f"{count_of(len(weights), 'weight')} for {' or '.join(map(str, expected))} {what}"
        yield mistake("weights-length", problem, "give one weight for each")
    if not all(is_number(weight) and weight >= 0 for weight in weights):
        problem = f"weights {[*weights]!r} contain something that is not a number of at least 0"
        yield mistake("weights-negative", problem, "use 0 for a value that does not occur")
    elif not sum(weights) > 0:
        yield mistake("weights-zero", "all weights are 0", "make at least one positive")


def missing_mistakes(share: Any, as_counterfactual: Any) -> Iterator[Mistake]:
    """What is wrong with the share of inputs without a value."""
    code = "missing-counterfactual"
    if share is not None and not (is_number(share) and 0 < share < 1):
        problem = f"missing must be a share above 0 and below 1, got {share!r}"
        remedy = "write the share of inputs without a value, such as 0.07, or remove it"
        yield mistake("missing-share", problem, remedy)
    if not isinstance(as_counterfactual, bool):
        problem = f"missing_as_counterfactual must be true or false, got {as_counterfactual!r}"
        yield mistake(code, problem, "write true or false")
    elif as_counterfactual and share is None:
        problem = "missing_as_counterfactual is true, but no value is ever missing"
        remedy = "give the share of inputs without a value, such as missing = 0.07"
        yield mistake(code, problem, remedy)


Number = TypeVar("Number", int, Fraction)


def round_step(width: Fraction, parts: int = 1_000) -> Fraction:
    """A step of 1, 2 or 5 times a power of ten that makes at most about so many parts."""
    step = width / parts
    power = Fraction(10) ** math.floor(math.log10(step.numerator) - math.log10(step.denominator))
    while power > step:  # logarithms are rounded
        power /= 10
    return next(power * factor for factor in (1, 2, 5, 10, 20) if power * factor >= step)


def align(low: Number, high: Number, step: Number) -> tuple[Number, Number]:
    """The ends of a range: as they are where steps lead from one to the other, else inside of it.

    Inside, they are multiples of the step.
    """
    if (high - low) % step == 0:
        return low, high
    return -(-low // step) * step, high // step * step


def two_digits(number: float) -> float:
    """A number that is not known better, or not to be told: 31,457 is 31,000."""
    return float(f"{number:.2g}")
