"""Columns of a DataFrame with the types that a model was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, RequestError, suggest
from themis.inputs.characteristics import Characteristic, Codes, Value
from themis.inputs.schema import Schema
from themis.subjects.encoders import Encoded
from themis.subjects.trained import Trained

INSTALL = "run: pip install 'themis-fairness[models]'"
CATEGORY = "category"


class FrameColumns:
    """The columns of inputs, each in the type that the model says, or that `dtypes` say.

    `dtypes` is a training frame, its `dtypes`, or names with types.
    """

    def __init__(self, schema: Schema, trained: Trained, dtypes: Any) -> None:
        _require_pandas()
        self._schema = schema
        self._dtypes = _given(dtypes, schema)
        known = trained.categories
        for each in schema:
            categories = known.get(trained.spelled(each.name))
            if categories is not None and self._dtypes.get(each.name, CATEGORY) == CATEGORY:
                self._dtypes[each.name] = _category(categories)
            elif self._dtypes.get(each.name) == CATEGORY:
                self._dtypes[each.name] = _category(_sorted(each))
        self._places = {  # code → place among the categories
            each.name: _category_places(each, self._dtypes[each.name])
            for each in schema
            if _is_category(self._dtypes.get(each.name))
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
        import pandas as pd

        each = self._schema.characteristics[column]
        places = self._places.get(each.name)
        if places is not None:
            return pd.Categorical.from_codes(places[codes], dtype=self._dtypes[each.name])
        series = pd.Series(_framed(each, codes))
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


def _category(values: list[Value]) -> Any:
    import pandas as pd

    return pd.CategoricalDtype(values)


def _is_category(dtype: Any) -> bool:
    return str(dtype) == CATEGORY


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


def _framed(each: Characteristic, codes: Codes) -> NDArray[Any]:
    """The values for a DataFrame, with NaN for what is missing, as pandas reads it."""
    values = each.column(codes)
    if each.missing is not None and values.dtype == object:
        values[np.asarray(codes) == each.missing_code] = np.nan
    return values


def _require_pandas() -> None:
    try:
        import pandas  # noqa: F401 - only whether it is there
    except ImportError:
        problem = "this model is fed with a DataFrame, and pandas is not installed"
        raise RequestError.one("needs-pandas", "subject", problem, INSTALL) from None
