"""Characteristics: the named input variables and the values that they take (Def. 3.1)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, SchemaError, listed, suggest
from themis.inputs.numbers import (
    NumberRange,
    is_list,
    is_number,
    missing_mistakes,
    mistake,
    weight_mistakes,
)

Value: TypeAlias = str | int | float | bool | None  # None: there is no value
Codes: TypeAlias = NDArray[np.integer[Any]]
Role: TypeAlias = Literal["input", "context", "group"]
TABLE_LIMIT = 65_536  # up to this many values decoding is one table look-up
OWN = -1  # in place of a level: the base input's own value, unchanged
UNLISTED = "unlisted"  # what values of no level are called


@dataclass(frozen=True, kw_only=True)
class Characteristic(ABC):
    """A named input variable with a finite, ordered list of values, known by their codes 0, 1, …

    Inside a set of characteristics it takes its *levels*: its values, or its bins where it has any.
    `weights` (one per value, or one per bin) are the operational profile; a value of weight zero
    does not occur. `missing` is the share of inputs without a value: the code behind all values,
    and a level of its own. It is compared with values only if it is a counterfactual of them.
    Behind it are the codes of `extra` values: each belongs to the rows that have it, and is no
    assignment for others. A number within a bin is of that bin, all others are of no level.
    Its `role`: an "input" is given to the subject and compared; a "context" is given as the input
    has it, and never compared; a "group" is known of people, and never given to the subject.
    """

    name: str = ""
    weights: Sequence[float] | None = None
    protected: bool = False
    missing: float | None = None
    missing_as_counterfactual: bool = False
    role: Role = "input"
    extra: Sequence[Value] = ()  # values of given rows that are none of these, for one run

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of values."""

    @property
    def numeric(self) -> bool:
        """Whether all values are numbers."""
        return True

    @property
    def boolean(self) -> bool:
        """Whether all values are truth values."""
        return False

    @property
    def ordered(self) -> bool:
        """Whether a larger code is a larger number: "at least" and "between" mean something."""
        return self.numeric

    @abstractmethod
    def _decode(self, codes: Codes) -> NDArray[Any]:
        """The values of these codes, none of which is missing, as one array."""

    @abstractmethod
    def _encode(self, value: Any) -> int | None:
        """The code of a value, or None when it is not one of this characteristic's."""

    @property
    def code_count(self) -> int:
        """The number of codes: of the values, of no value where that may be, of further ones."""
        return self.first_extra + len(self.extra)

    @property
    def first_extra(self) -> int:
        """The code of the first value that only given rows have."""
        return self.size + (self.missing is not None)

    @property
    def missing_code(self) -> int:
        """The code of no value; no input has it where `missing` is None."""
        return self.size

    @property
    def keeps_missing(self) -> bool:
        """Whether "missing" is part of the context: no counterfactual gives or takes a value."""
        return self.missing is not None and not self.missing_as_counterfactual

    @cached_property
    def _behind(self) -> NDArray[Any]:
        """The values of the codes behind `size`."""
        behind = [*([None] if self.missing is not None else []), *self.extra]
        table = np.empty(len(behind), dtype=object)
        table[:] = behind
        return table

    def decode(self, codes: Codes) -> NDArray[Any]:
        """The values of these codes, as one array; with None in it where a value may be missing."""
        if not len(self._behind):
            return self._decode(codes)
        codes = np.asarray(codes)
        there = codes < self.size
        values = np.empty(codes.shape, dtype=object)
        values[there] = self._decode(codes[there])
        values[~there] = self._behind[codes[~there] - self.size]
        return values

    @property
    def is_given(self) -> bool:
        """Whether the subject is given it."""
        return self.role != "group"

    @property
    def is_open(self) -> bool:
        """Whether all its values are those that given rows have: a context that lists none."""
        return self.role == "context" and not self.size

    def column(self, codes: Codes) -> NDArray[Any]:
        """The same for arrays and tables: where a number may be missing, all are floats or NaN."""
        if not (len(self._behind) and self.numeric):
            return self.decode(codes)
        codes = np.asarray(codes)
        values, behind = self._decode(np.minimum(codes, self.size - 1)), self._numbers_behind
        values = values.astype(np.result_type(values, behind), copy=False)
        there = codes < self.size
        values[~there] = behind[codes[~there] - self.size]
        return values

    @cached_property
    def _numbers_behind(self) -> NDArray[Any]:
        """The numbers of the codes behind `size`, NaN for no value."""
        whole = self.missing is None and not any(isinstance(each, float) for each in self.extra)
        return self._behind.astype(np.int64 if whole else np.float64)

    def encode(self, value: Any) -> int | None:
        """The code of a value (None or NaN: no value), or None when it is none of these."""
        nothing = value is None or (isinstance(value, float | np.floating) and value != value)
        if nothing and self.missing is not None:
            return self.missing_code
        try:
            code = self._encode(value)
            return self._extra_codes.get(value) if code is None else code
        except TypeError:  # unhashable: certainly not one of the values
            return None

    @cached_property
    def _extra_codes(self) -> dict[Value, int]:
        return {value: code for code, value in enumerate(self.extra, self.first_extra)}

    def value(self, code: int) -> Value:
        """The value of one code, as a plain Python object; None for no value."""
        value: Value = self.decode(np.array([code])).tolist()[0]
        return value

    @property
    def bin_starts(self) -> NDArray[np.int64] | None:
        """The first code of each bin, or None where there are no bins."""
        return None

    @property
    def levels(self) -> int:
        """The number of bins, or of values where there are no bins; "missing" is one more."""
        return self.filled_levels + (self.missing is not None)

    @property
    def filled_levels(self) -> int:
        """The number of levels that are values or bins; "missing" comes behind them."""
        return self.size if self.bin_starts is None else len(self.bin_starts)

    def level_of(self, codes: Codes) -> Codes:
        """The level that each code belongs to, OWN where it is none."""
        levels: Codes = codes
        if self.bin_starts is not None:
            levels = np.searchsorted(self.bin_starts, codes, side="right") - 1
            levels = levels + (np.asarray(codes) >= self.size)
        if not self.extra:
            return levels
        places = np.asarray(codes, dtype=np.int64) - self.first_extra
        return np.where(places < 0, levels, self._extra_levels[np.maximum(places, 0)])

    @cached_property
    def _extra_levels(self) -> NDArray[np.int64]:
        """The bins that extra values lie in; OWN for all others."""
        return np.full(len(self.extra), OWN)

    @cached_property
    def has_own(self) -> bool:
        """Whether some rows have values of no level."""
        return bool(self.extra) and bool((self._extra_levels == OWN).any())

    def level_range(self, level: int) -> tuple[int, int]:
        """The first code of a level and the one behind its last."""
        if self.bin_starts is None:
            return level, level + 1
        edges = [*self.bin_starts.tolist(), self.size, self.missing_code + 1]
        return edges[level], edges[level + 1]

    def level_label(self, level: int) -> Value:
        """What a level is called: its value, or the ends of the bin; None for "missing"."""
        if level == OWN:
            return UNLISTED
        start, stop = self.level_range(level)
        if stop - start == 1:
            return self.value(start)
        return f"{self.value(start)} to {self.value(stop - 1)}"

    @cached_property
    def value_weights(self) -> NDArray[np.float64] | None:
        """The probability of each value if there is one, or None when all are equally likely."""
        if self.weights is None:
            return None
        weights = np.asarray(self.weights, dtype=float)
        if self.bin_starts is not None and len(weights) != self.size:
            sizes = np.diff([*self.bin_starts.tolist(), self.size])
            weights = np.repeat(weights / sizes, sizes)
        return np.asarray(weights / weights.sum())

    @cached_property
    def _weighted_levels(self) -> NDArray[np.int64]:
        assert self.value_weights is not None
        levels = np.flatnonzero(np.bincount(self.level_of(np.flatnonzero(self.value_weights > 0))))
        behind = [] if self.missing is None else [self.filled_levels]
        return np.array([*levels.tolist(), *behind], dtype=np.int64)

    @property
    def _shared_count(self) -> int:
        return self.levels if self.value_weights is None else len(self._weighted_levels)

    @property
    def possible_count(self) -> int:
        """How many levels have a value of positive weight: the ones that may be assigned.

        One more, OWN, is of the rows with a value of no level.
        """
        return self._shared_count + self.has_own

    def possible_levels(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The possible levels at these places of their list, which may be too long to write."""
        count = self._shared_count
        shared = np.minimum(places, count - 1) if self.has_own else places
        levels = shared if self.value_weights is None else self._weighted_levels[shared]
        return np.where(places == count, OWN, levels) if self.has_own else levels

    def possible_places(self, levels: NDArray[Any]) -> NDArray[Any]:
        """Where these levels stand in the list of possible ones."""
        places = levels
        if self.value_weights is not None:
            places = np.searchsorted(self._weighted_levels, levels)
        return np.where(levels == OWN, self._shared_count, places) if self.has_own else places

    def named(self, name: str) -> Characteristic:
        """The same characteristic under a name; it is not checked again."""
        other = copy(self)
        object.__setattr__(other, "name", name)
        return other

    def _common_mistakes(self) -> Iterator[Mistake]:
        yield from missing_mistakes(self.missing, self.missing_as_counterfactual)
        yield from weight_mistakes(self.weights, self.size, self.filled_levels)
        if self.role not in get_args(Role):
            remedy = suggest(str(self.role), get_args(Role))
            yield mistake("role", f"there is no role {self.role!r}", remedy)
        elif self.role == "context" and self.protected:
            problem = "a context is never compared, so protecting it means nothing"
            remedy = 'write role = "group" if the subject is not given it, or remove the role'
            yield mistake("role", problem, remedy)


@dataclass(frozen=True)
class Values(Characteristic):
    """A categorical characteristic: a list of distinct strings, numbers or truth values.

    A context without values has those of given rows, each row its own.
    With `follows="sex", as_={"Female": {"Husband": "Wife"}, …}` it is rewritten where the sex of an
    input is changed: what the table does not name stays. With `from_="sex"`, or several names, it
    is `derived`.
    """

    values: Sequence[Value] = field(default=())
    follows: str | None = field(default=None, kw_only=True)
    as_: Mapping[Any, Any] | None = field(default=None, kw_only=True, hash=False)
    from_: str | Sequence[str] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if is_list(self.from_):
            object.__setattr__(self, "from_", tuple(self.from_ or ()))
        object.__setattr__(self, "values", _listed(self.values))
        if self.role == "context" and self.values == () and self.missing is None:
            # Where only given rows have values, this share says nothing.
            object.__setattr__(self, "missing", 0.5)
        _settle(self, self._mistakes(), "values")

    @property
    def derived(self) -> bool:
        """Whether it is computed from other characteristics."""
        return self.from_ is not None

    @property
    def leaders(self) -> tuple[str, ...]:
        """The characteristic that it follows, or those that it is derived from."""
        named = self.follows if self.from_ is None else self.from_
        return (named,) if isinstance(named, str) else tuple(named or ())

    def _tie_mistakes(self) -> Iterator[Mistake]:
        """What is wrong with the keys of a tie, whatever its leader is."""
        if self.derived:
            remedy = f"remove it, or give it to {listed(self.leaders)}"
            for key in ("follows", "weights", "protected"):
                if getattr(self, key) not in (None, False):
                    yield mistake("derived-key", f"a derived characteristic has no {key!r}", remedy)
        elif self.follows is not None and not (isinstance(self.as_, Mapping) and self.as_):
            problem = f"it follows {self.follows!r} without a table 'as', got {self.as_!r}"
            yield mistake("follows-table", problem, 'write as = { … = { before = "after" } }')
        elif self.follows is None and self.as_ is not None:
            problem = "'as' is there without 'follows'"
            yield mistake("follows-table", problem, "name the characteristic that it follows")

    def _mistakes(self) -> Iterator[Mistake]:
        if not is_list(self.values):
            problem = f"values must be a list, got {self.values!r}"
            yield mistake("values-list", problem, f"write [{self.values!r}]")
            return
        if not self.values and self.role != "context":
            yield mistake("empty-values", "there are no values", "list at least one")
            return
        wrong = [v for v in self.values if not isinstance(v, str | bool) and not is_number(v)]
        if wrong:
            problem = f"{wrong[0]!r} can't be a value"
            yield mistake("value-type", problem, "use strings, finite numbers, true or false")
            return
        if len(set(self.values)) < len(self.values):  # most often not: counting takes more memory
            for value in [value for value, times in Counter(self.values).items() if times > 1]:
                yield mistake("duplicate-value", f"the value {value!r} appears twice", "remove one")
        yield from self._common_mistakes()
        yield from self._tie_mistakes()

    @property
    def size(self) -> int:
        return len(self.values)

    @property
    def _own(self) -> Sequence[Value]:
        return self.extra if self.is_open else self.values

    @cached_property
    def numeric(self) -> bool:
        return bool(self._own) and all(map(is_number, self._own))

    @cached_property
    def ordered(self) -> bool:
        return self.numeric and bool((np.diff(self._table) > 0).all())

    @cached_property
    def boolean(self) -> bool:
        return bool(self._own) and all(isinstance(value, bool) for value in self._own)

    def column(self, codes: Codes) -> NDArray[Any]:
        if not self.is_open:
            return super().column(codes)
        values = self._behind[np.asarray(codes)]
        if self.numeric and (np.asarray(codes) == self.missing_code).any():
            return values.astype(np.float64)
        return np.array(values.tolist()) if self.numeric or self.boolean else values

    @cached_property
    def _table(self) -> NDArray[Any]:
        if self.boolean or self.numeric:
            numbers = np.array(self.values)
            if numbers.tolist() == list(self.values):  # large ones among fractions are rounded
                return numbers
        table = np.empty(len(self.values), dtype=object)
        table[:] = self.values
        return table

    def _decode(self, codes: Codes) -> NDArray[Any]:
        return self._table.take(codes)

    def value(self, code: int) -> Value:
        if code >= self.size:
            return super().value(code)
        value: Value = self._table.item(code)
        return value

    @cached_property
    def _codes(self) -> dict[Value, int]:
        return {value: code for code, value in enumerate(self.values)}

    def _encode(self, value: Any) -> int | None:
        return self._codes.get(value)


def _listed(values: Any) -> Any:
    """What an array, a column or a categorical holds, as a list; all else as it is."""
    if isinstance(values, Sequence) or not hasattr(values, "tolist"):
        return values
    listed: list[Any] = values.tolist()
    categories = getattr(getattr(values, "cat", values), "categories", None)
    if categories is not None and len(set(listed)) < len(listed):  # a whole column of categories
        return categories.tolist()
    return listed


class _Range(NumberRange, Characteristic):
    """Numbers from `min` to `max`, both ends included, in steps."""

    def __post_init__(self) -> None:
        _settle(self, self.range_mistakes() or self._common_mistakes(), "bins")
        for name in ("min", "max", "step"):
            value = getattr(self, name)
            object.__setattr__(self, name, int(value) if self.whole else float(value))

    @cached_property
    def _extra_levels(self) -> NDArray[np.int64]:
        if self.bins is None or self.bin_starts is None:
            return np.full(len(self.extra), OWN)
        numbers = np.array(self.extra, dtype=float)
        levels = np.searchsorted(np.array(self.bins, dtype=float), numbers, side="right")
        within = (numbers >= self.min) & (numbers <= self.max)
        if self.value_weights is not None:
            within &= np.add.reduceat(self.value_weights, self.bin_starts)[levels] > 0
        return np.where(within, levels, OWN)


@dataclass(frozen=True)
class Integers(_Range):
    """Whole numbers from `min` to `max`, both ends included, in steps.

    `bins=[40, 65]` groups them: an edge is the first value of the next bin.
    """

    min: int
    max: int
    step: int = field(default=1, kw_only=True)
    bins: Sequence[int] | None = field(default=None, kw_only=True)

    whole = True

    def _decode(self, codes: Codes) -> NDArray[Any]:
        values = np.array(codes, dtype=np.int64)  # quicker than a table
        if self.step != 1:
            values *= self.step
        if self.min:
            values += self.min
        return values


@dataclass(frozen=True)
class Reals(_Range):
    """Numbers from `min` to `max`, both ends included, in steps of `step`.

    `bins=[0.5]` groups them: an edge is the first value of the next bin.
    """

    min: float
    max: float
    step: float | None = field(default=None, kw_only=True)  # must be given: no default is sensible
    bins: Sequence[float] | None = field(default=None, kw_only=True)

    whole = False

    def _decode(self, codes: Codes) -> NDArray[Any]:
        small = self.size <= TABLE_LIMIT
        return np.take(self._table, codes) if small else self._compute(codes)

    @cached_property
    def _table(self) -> NDArray[Any]:
        return self._compute(np.arange(self.size))

    def _compute(self, codes: Codes) -> NDArray[Any]:
        assert self.step is not None
        return np.round(self.min + np.asarray(codes) * self.step, self.digits)


def _settle(each: Characteristic, mistakes: Iterable[Mistake], own: str) -> None:
    """Raise what is wrong, and turn lists into tuples: a characteristic never changes, and hashes.

    `own` is the list that only its kind has.
    """
    if found := list(mistakes):
        raise SchemaError(found)
    for name in (own, "weights", "extra"):
        if getattr(each, name) is not None:
            object.__setattr__(each, name, tuple(getattr(each, name)))
