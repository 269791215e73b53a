"""Columns of models: which values their encoders can tell apart, and frames as they were trained.

An encoder that ignores what it does not know makes one of all other values. A group that is spelled
otherwise than in training would look as if the model did not tell it from any other.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, RequestError, suggest
from themis.inputs.characteristics import Characteristic, Codes, Value, Values
from themis.inputs.schema import Schema

INSTALL = "run: pip install 'themis-fairness[models]'"
CATEGORY = "category"

# What has fitted models inside, which take the same columns, and what they are kept as.
_INSIDE = (
    "best_estimator_",
    "calibrated_classifiers_",
    "estimators_",
    "estimator_",
    "regressor_",
    "estimator",
)


@dataclass(frozen=True)
class Encoded:
    """The values of a column that an encoder knows, and whether it refuses all others."""

    values: frozenset[Value]
    refuses: bool


def encoded_columns(model: Any, columns: Sequence[str]) -> dict[str, Encoded]:
    """What the encoders within a model of scikit-learn know of the columns that it takes."""
    found: dict[str, Encoded] = {}
    for name, each in _walk(model, columns):
        before = found.get(name, Encoded(frozenset(), refuses=False))
        found[name] = Encoded(before.values | each.values, before.refuses or each.refuses)
    return found


def needed_columns(model: Any, columns: Sequence[str]) -> list[str]:
    """Those of its columns that a model of scikit-learn looks at: it may drop some at once."""
    for key in ("best_estimator_", "calibrated_classifiers_", "estimator"):
        inside = getattr(model, key, None)
        if isinstance(inside, list) and inside:
            inside = inside[0]
        if inside is not None and (key != "estimator" or not hasattr(model, "feature_names_in_")):
            return needed_columns(inside, columns)
    if hasattr(model, "steps"):
        taking = (step for _, step in model.steps if step not in (None, "passthrough"))
        return needed_columns(next(taking, None), columns)
    if not hasattr(model, "transformers_"):
        return list(columns)
    kept = {
        name
        for _, part, chosen in model.transformers_
        if not (isinstance(part, str) and part == "drop")
        for name in _chosen(chosen, columns) or ([] if chosen in ([], ()) else columns)
    }
    return [name for name in columns if name in kept]


def _walk(thing: Any, columns: Sequence[str]) -> Iterator[tuple[str, Encoded]]:
    if isinstance(thing, list | tuple):
        for each in thing:
            yield from _walk(each, columns)
    elif hasattr(thing, "steps"):  # one after the other
        for _, step in thing.steps:
            yield from _walk(step, columns)
            if not _hands_on(step):
                return
    elif hasattr(thing, "transformers_"):  # each some of the columns
        for _, part, chosen in thing.transformers_:
            yield from _walk(part, _chosen(chosen, columns))
    elif hasattr(thing, "transformer_list"):
        yield from _walk([part for _, part in thing.transformer_list], columns)
    elif isinstance(known := getattr(thing, "categories_", None), list):
        refuses = getattr(thing, "handle_unknown", "") == "error"
        for name, values in zip(columns, known if len(known) == len(columns) else (), strict=False):
            yield name, Encoded(frozenset(np.asarray(values).tolist()), refuses)
    elif not hasattr(thing, "estimators_features_"):  # such a one takes some columns, unnamed
        for name in _INSIDE:
            inside = getattr(thing, name, None)
            if inside is not None and not isinstance(inside, str):
                yield from _walk(inside, columns)
                return


def _hands_on(step: Any) -> bool:
    """Whether a step of a pipeline gives the next one the same columns and values."""
    if step is None or step == "passthrough":
        return True
    kind = type(step).__name__
    imputes = kind == "SimpleImputer" and not step.add_indicator
    return imputes or (kind == "FunctionTransformer" and step.func is None)


def _chosen(chosen: Any, columns: Sequence[str]) -> list[str]:
    """The columns that a part of a model takes; none where that is not known."""
    names = [chosen] if isinstance(chosen, str) else chosen
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return names if set(names) <= {*columns} else []
    try:
        return [str(each) for each in np.atleast_1d(np.array(columns, dtype=object)[chosen])]
    except (IndexError, TypeError, ValueError):
        return []


def unseen_values(
    schema: Schema, known: dict[str, Encoded]
) -> tuple[dict[str, tuple[Value, ...]], list[Mistake]]:
    """The values of each characteristic that a model takes for unknown, and what is wrong then.

    It may be asked about values that it has not seen, if it does not refuse them; but if it has
    seen none of a characteristic, these are not the values that it was trained on.
    """
    unseen, mistakes = dict[str, tuple[Value, ...]](), list[Mistake]()
    for each in schema:
        if each.name not in known or each.is_open:
            continue
        values = known[each.name].values
        missed: tuple[Value, ...] = ()
        # Up to so many values each is looked up.
        if each.size <= 10_000 or isinstance(each, Values):
            own = each.decode(np.arange(each.size)).tolist()
            missed = tuple(value for value in own if value not in values)
            knows = len(missed) < each.size
        else:
            knows = any(each.encode(value) is not None for value in values)
        if not knows or (missed and known[each.name].refuses):
            mistakes.append(_mistake(each, missed or (each.value(0),), values, leave_out=knows))
        elif missed:
            unseen[each.name] = missed
    return unseen, mistakes


def refused_extras(schema: Schema, known: dict[str, Encoded]) -> Iterator[Mistake]:
    """Where rows have values, unknown to the schema, on which an encoder fails."""
    for each in schema:
        own = known.get(each.name)
        if own is not None and own.refuses and not each.is_open and {*each.extra} - own.values:
            problem = f"some rows have values of {each.name} on which the model's encoder fails"
            remedy = 'remove these rows, or fit it with handle_unknown="ignore"'
            yield Mistake("model-values", f"inputs.{each.name}", problem, remedy)


def _mistake(
    each: Characteristic, missed: Sequence[Value], values: frozenset[Value], *, leave_out: bool
) -> Mistake:
    there = [value for value in values if value is not None and value == value]
    texts = sorted(map(str, there))
    if {str(value) for value in missed} & {*texts}:  # only the types differ
        texts = sorted(map(repr, there))
    shown = ", ".join(repr(value) for value in missed[:5]) + ", …" * (len(missed) > 5)
    problem = f"the model was not trained on {each.name} {shown}"
    remedy = f"write what it knows: {', '.join(texts[:12])}{', …' * (len(there) > 12)}"
    remedy = f"leave them out, or {remedy}" if leave_out else remedy
    return Mistake("model-values", f"inputs.{each.name}", problem, remedy)


class FrameColumns:
    """The columns of inputs, each in the type that the model says, or that `dtypes` say.

    `known` are the categories of columns; `dtypes` is a training frame, its `dtypes`, or names
    with types.
    """

    def __init__(self, schema: Schema, known: Mapping[str, list[Value]], dtypes: Any) -> None:
        pandas = _pandas()
        self._schema = schema
        self._dtypes = _given(dtypes, schema)
        for each in schema:
            categories = known.get(each.name)
            unsaid = CATEGORY if categories is not None else None
            if self._dtypes.get(each.name, unsaid) == CATEGORY:
                values = _sorted(each) if categories is None else categories
                self._dtypes[each.name] = pandas.CategoricalDtype(values)
        self._places = {  # code → place among the categories
            each.name: _category_places(each, self._dtypes[each.name])
            for each in schema
            if str(self._dtypes.get(each.name)) == CATEGORY
        }

    @property
    def known(self) -> dict[str, Encoded]:
        """The values of the columns that are categories: others would be missing for the model."""
        return {
            name: Encoded(frozenset(self._dtypes[name].categories.tolist()), refuses=True)
            for name in self._places
        }

    def values(self, column: int, codes: Codes) -> Any:
        """The values of one column as an array that a DataFrame takes."""
        pandas, each = _pandas(), self._schema.characteristics[column]
        places = self._places.get(each.name)
        if places is not None:
            return pandas.Categorical.from_codes(places[codes], dtype=self._dtypes[each.name])
        values = each.column(codes)
        if each.missing is not None and values.dtype == object:
            values[np.asarray(codes) == each.missing_code] = np.nan  # as pandas reads it
        series = pandas.Series(values)
        dtype = self._dtypes.get(each.name)
        if dtype is None:
            return series.array
        try:
            return series.astype(dtype).array
        except (TypeError, ValueError, OverflowError):  # its text may hold values of people
            problem = f"some values of {each.name!r} can't be made {dtype}"
            remedy = "give the type that the model was trained on, and values of this type"
            raise RequestError.one("model-dtypes", "dtypes", problem, remedy) from None


def _given(dtypes: Any, schema: Schema) -> dict[str, Any]:
    """The types that were asked for, by name."""
    if dtypes is None:
        return {}
    given = dtypes.dtypes if hasattr(dtypes, "columns") else dtypes
    if not isinstance(given, Mapping):  # of a frame: it may have further columns
        return {name: given[name] for name in schema.names if name in given.index}
    unknown = [name for name in given if name not in schema.names]
    if unknown:
        raise RequestError(
            Mistake("unknown-name", "dtypes", f"there is no {name!r}", suggest(name, schema.names))
            for name in unknown
        )
    return dict(given)


def _sorted(each: Characteristic) -> list[Value]:
    """The values in the order in which pandas makes categories of them."""
    codes = np.arange(each.size) if each.size else np.arange(each.first_extra, each.code_count)
    values: list[Value] = each.decode(codes).tolist()
    return sorted(values, key=lambda value: (isinstance(value, str), value))


def _category_places(each: Characteristic, dtype: Any) -> NDArray[np.int64]:
    """For each code the place of its value among the categories, -1 where it is none of them."""
    places = {value: place for place, value in enumerate(dtype.categories.tolist())}
    values = each.decode(np.arange(each.code_count)).tolist()
    return np.array([places.get(value, -1) for value in values], dtype=np.int64)


def _pandas() -> Any:
    try:
        return importlib.import_module("pandas")
    except ImportError:
        problem = "this model is fed with a DataFrame, and pandas is not installed"
        raise RequestError.one("needs-pandas", "subject", problem, INSTALL) from None
