"""Trained models as subjects: objects with a `predict` method."""

from __future__ import annotations

import copy
import hashlib
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, RequestError, suggest
from themis.inputs.characteristics import Characteristic, Codes, Integers, Values
from themis.inputs.schema import Schema
from themis.subjects.base import Answers, Batch, Subject, Traits, isolate_failures
from themis.subjects.functions import function_fingerprint


class Model(Subject):
    """An object with `predict`, fed with a DataFrame when it knows column names, else an array.

    A model that was fitted on a DataFrame gets its columns in its own order; one that was fitted
    on an array gets the characteristics in schema order. A missing value is NaN, of whatever kind
    it is, as in tables that pandas reads.
    """

    kind = "model"
    traits = Traits(vectorised=True, cost="calls")

    def __init__(self, model: Any, schema: Schema) -> None:
        self.model = model
        self.schema = schema
        names = getattr(model, "feature_names_in_", None)
        self.columns = self._ordered(None if names is None else [str(name) for name in names])
        self.as_frame = names is not None or not all(
            each.numeric or each.boolean for each in schema
        )
        always = all(each.code_count == each.size for each in schema)
        self.of_trees = always and _is_of_trees(model) and all(map(_is_finite_in_single, schema))
        self.dtype = np.float32 if self.of_trees else np.float64
        self._check_count()
        if self.as_frame:
            _require_pandas()

    def _ordered(self, names: list[str] | None) -> tuple[int, ...]:
        """The schema's columns in the order in which the model wants them."""
        if names is None:
            return tuple(range(len(self.schema)))
        known = self.schema.names
        problems = [
            (f"the model needs a column {name!r} that the schema lacks", suggest(name, known))
            for name in names
            if name not in known
        ]
        remedy = "remove it from the schema; a value it never sees can't matter"
        problems += [
            (f"the model was not trained on {name!r}", remedy)
            for name in known
            if name not in names
        ]
        if problems:
            raise RequestError(Mistake("model-columns", "subject", *each) for each in problems)
        return tuple(known.index(name) for name in names)

    def _check_count(self) -> None:
        expected = getattr(self.model, "n_features_in_", None)
        if expected is not None and expected != len(self.schema):
            count = len(self.schema)
            problem = f"the model was trained on {expected} columns, the schema has {count}"
            remedy = "describe exactly those, in order"
            raise RequestError.one("model-columns", "subject", problem, remedy)

    def load(self, codes: NDArray[Any]) -> Batch:
        return _FrameBatch(self, codes) if self.as_frame else _ArrayBatch(self, codes)

    def predict(self, array: NDArray[Any]) -> Any:
        """The model's answers to an array of inputs.

        A schema has finite numbers only, so trees need not look for others. Other models may
        make some on the way to their decision, and must go on to complain.
        """
        if not self.of_trees:
            return self.model.predict(array)
        from sklearn import config_context

        with config_context(assume_finite=True):
            return self.model.predict(array)

    def fingerprint(self) -> str:
        try:
            return hashlib.sha256(pickle.dumps(self.model)).hexdigest()[:16]
        except Exception:  # not everything with a predict method can be pickled
            return function_fingerprint(type(self.model).predict)


class _ArrayBatch:
    def __init__(self, subject: Model, codes: NDArray[Any]) -> None:
        self._subject = subject
        if subject.columns != tuple(range(codes.shape[1])):
            codes = codes[:, list(subject.columns)]
        # By column, like the codes: quicker to make and to overwrite, and for most models to read.
        self._array = codes.astype(subject.dtype, order="F")
        for place, column in enumerate(subject.columns):
            characteristic = subject.schema.characteristics[column]
            if not _is_its_own_code(characteristic):
                self._array[:, place] = _numbers(characteristic, codes[:, place])

    def take(self, places: NDArray[np.int64]) -> Batch:
        part = copy.copy(self)
        part._array = np.take(self._array.T, places, axis=1).T
        return part

    def overwrite(self, column: int, codes: Codes | int) -> None:
        characteristic = self._subject.schema.characteristics[column]
        place = self._subject.columns.index(column)
        self._array[:, place] = _numbers(characteristic, np.atleast_1d(codes))

    def run(self) -> Answers:
        predict = self._subject.predict
        return isolate_failures(
            lambda start, stop: predict(self._array[start:stop]), len(self._array)
        )


class _FrameBatch:
    def __init__(self, subject: Model, codes: NDArray[Any]) -> None:
        import pandas as pd

        self._subject = subject
        self._frame = pd.DataFrame(
            {
                subject.schema.names[column]: _framed(
                    subject.schema.characteristics[column], codes[:, column]
                )
                for column in subject.columns
            }
        )

    def take(self, places: NDArray[np.int64]) -> Batch:
        part = copy.copy(self)
        part._frame = self._frame.iloc[places].reset_index(drop=True)
        return part

    def overwrite(self, column: int, codes: Codes | int) -> None:
        characteristic = self._subject.schema.characteristics[column]
        values = _framed(characteristic, np.atleast_1d(codes))
        if isinstance(codes, int):
            values = values.repeat(len(self._frame))
        self._frame[characteristic.name] = values

    def run(self) -> Answers:
        predict = self._subject.model.predict
        return isolate_failures(
            lambda start, stop: predict(self._frame.iloc[start:stop]), len(self._frame)
        )


def _numbers(each: Characteristic, codes: Codes) -> NDArray[Any]:
    """The values for an array of numbers; truth values are 0 and 1, what is missing NaN."""
    values = each.column(codes)
    return values.astype(np.float64) if values.dtype == object else values


def _framed(each: Characteristic, codes: Codes) -> NDArray[Any]:
    """The values for a DataFrame, with NaN for what is missing, as pandas reads it."""
    values = each.column(codes)
    if each.missing is not None and values.dtype == object:
        values[np.asarray(codes) == each.missing_code] = np.nan
    return values


def _is_its_own_code(each: Characteristic) -> bool:
    whole = isinstance(each, Integers) and each.min == 0 and each.step == 1
    return whole and each.code_count == each.size


def _is_finite_in_single(each: Characteristic) -> bool:
    """Whether none of the values is too large for single precision."""
    if not (each.numeric or each.boolean):
        return False
    codes = np.arange(each.size) if isinstance(each, Values) else np.array([0, each.size - 1])
    return bool((np.abs(each.decode(codes).astype(float)) <= np.finfo(np.float32).max).all())


def _is_of_trees(model: Any) -> bool:
    """Whether the model is made of nothing but scikit-learn's trees.

    They round all inputs to single precision first, so they get them in it: the same decisions, at
    half the memory.
    """
    if not type(model).__module__.startswith("sklearn."):
        return False
    if hasattr(model, "final_estimator_"):  # a stack may hand its inputs on
        return False
    parts = getattr(model, "estimators_", [model])
    if isinstance(parts, np.ndarray):  # boosting keeps its trees in a grid
        parts = parts.ravel().tolist()
    return len(parts) > 0 and all(_is_tree(each) for each in parts)


def _is_tree(model: Any) -> bool:
    module = type(model).__module__
    return module.startswith("sklearn.tree.") and hasattr(model, "tree_")


INSTALL = "run: pip install 'themis-fairness[models]'"


def _require_pandas() -> None:
    try:
        import pandas  # noqa: F401 - only whether it is there
    except ImportError:
        problem = "this model is fed with a DataFrame, and pandas is not installed"
        raise RequestError.one("needs-pandas", "subject", problem, INSTALL) from None
