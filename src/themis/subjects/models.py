"""Trained models as subjects: fed as they were trained, and what their answers decide."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, RequestError, count_of, suggest
from themis.inputs.characteristics import Characteristic, Codes, Value
from themis.inputs.schema import Schema
from themis.subjects.base import Batch, ColumnsBatch, Subject, Traits
from themis.subjects.decisions import DEFAULT_FAVOURABLE
from themis.subjects.encoders import Encoded, encoded_columns, refused_extras, unseen_values
from themis.subjects.trained import METHODS, Method, TorchModule, Trained, trained_of

INSTALL = "run: pip install 'themis-fairness[models]'"
CATEGORY = "category"


class Model(Subject):
    """A trained model, fed with a DataFrame when it knows column names, else an array.

    A model that was fitted on a DataFrame gets its columns in its own order, with the categories
    that it knows or that `dtypes` say; one that was fitted on an array gets the characteristics in
    schema order. A missing value is NaN, of whatever kind it is, as in tables that pandas reads.

    Its decision is what `method` answers. Of probabilities the one of `class_` counts: from `cut`
    on the decision is 1, below 0; without a cut it is a number, which must be declared as output.
    """

    kind = "model"
    traits = Traits(vectorised=True, cost="calls")

    def __init__(
        self,
        model: Any,
        schema: Schema,
        *,
        method: Method | None = None,
        class_: Value = None,
        cut: float | None = None,
        dtypes: Any = None,
        device: str | None = None,
        as_frame: bool = False,
        fingerprint: str | None = None,
    ) -> None:
        trained = trained_of(model)
        assert trained is not None, "who makes a Model of it has asked"
        self.trained: Trained = trained
        if device is not None:
            trained.move(device)
        self.schema = schema
        self.columns = self._ordered()
        text = [each.name for each in schema if not (each.numeric or each.boolean)]
        self.as_frame = as_frame or trained.form == "frame"
        if trained.form is None:
            self.as_frame |= trained.names is not None or bool(text)
        elif trained.form == "array" and text:
            raise RequestError(_text_mistakes(text))
        by_order = trained.names is None and not self.as_frame and len(schema) > 1
        self.traits = replace(self.traits, by_order=by_order)
        self._check_count()
        known = encoded_columns(model, trained.names or schema.names)
        refused = list(refused_extras(schema, known))
        if self.as_frame:
            self.frame_columns = FrameColumns(schema, trained, dtypes)
            known |= self.frame_columns.known
        self._unseen, mistakes = unseen_values(schema, known)
        if mistakes or refused:
            raise RequestError([*mistakes, *refused])
        known_too = {*known, *trained.categories}
        self._unsure = frozenset(name for name in text if trained.spelled(name) not in known_too)
        self.cut = cut
        self.method = self._chosen(method, class_)
        self._given = (method, class_, cut) if device is None else (method, class_, cut, device)
        self._fingerprint = fingerprint
        if isinstance(trained, TorchModule):
            self.load(np.zeros((1, len(schema)), dtype=np.int64)).run()  # how wide its answers are
        self.place = self._place_of(class_)

    def _ordered(self) -> tuple[int, ...]:
        """The schema's columns in the order in which the model wants them."""
        names, known = self.trained.names, self.schema.names
        if names is None:
            return tuple(range(len(known)))
        spelled = [self.trained.spelled(name) for name in known]
        problems = [
            (f"the model needs a column {name!r} that the schema lacks", suggest(name, known))
            for name in self.trained.needed or ()
            if name not in spelled
        ]
        remedy = "remove it from the schema; a value it never sees can't matter"
        problems += [
            (f"the model was not trained on {name!r}", remedy)
            for name, own in zip(known, spelled, strict=True)
            if own not in names
        ]
        if problems:
            raise RequestError(Mistake("model-columns", "subject", *each) for each in problems)
        return tuple(spelled.index(name) for name in names if name in spelled)

    def _check_count(self) -> None:
        expected, count = self.trained.count, len(self.schema)
        if self.trained.names is not None:
            return  # they are known one by one
        if expected is not None and expected != count:
            problem = (
                f"the model was trained on {count_of(expected, 'column')}, the schema has {count}"
            )
            remedy = "describe exactly those, in order"
            raise RequestError.one("model-columns", "subject", problem, remedy)

    def _chosen(self, method: Method | None, class_: Value) -> Method:
        """The method that is asked: by default probabilities where one of them is asked for."""
        trained = self.trained
        if method is None:
            asks = class_ is not None or self.cut is not None
            usual: Method = "predict_proba" if asks else "predict"
            return usual if trained.has(usual) else next(filter(trained.has, METHODS))
        there = [each for each in METHODS if trained.has(each)]
        if method not in there:
            problem, remedy = f"the model has no method {method!r}", ", ".join(there)
            raise RequestError.one("model-method", "method", problem, f"choose from: {remedy}")
        return method

    def _place_of(self, class_: Value) -> int | None:
        """The column of the answers that is asked for; None where answers have no columns."""
        classes = self.trained.classes
        if class_ is not None:
            several = self.trained.by_class or self.method == "predict_proba"
            if classes is None and isinstance(class_, int) and several:
                return class_
            if classes is None or (self.method == "predict" and not self.trained.by_class):
                problem = "the model gives no probabilities of classes"
                raise RequestError.one("model-class", "class", problem, "remove it")
            if class_ not in classes:
                problem = f"the model has no class {class_!r}"
                remedy = f"choose from: {_listed(classes)}"
                raise RequestError.one("model-class", "class", problem, remedy)
            return classes.index(class_)
        asked = self.method != "predict" or (self.trained.by_class and self.cut is not None)
        if not asked or (classes is None and self.method == "predict"):
            return None
        if classes is None and self.method == "predict_proba":
            return 1  # of two, which is looked at once there are answers
        if classes is None or len(classes) != 2 or classes[1] not in DEFAULT_FAVOURABLE:
            known = "has classes that it does not name" if classes is None else "decides between "
            problem = f"the model {known}{_listed(classes or ())}"
            remedy = f"name the favourable one: class = {_shown((classes or (1,))[-1])}"
            raise RequestError.one("model-class", "class", problem, remedy)
        return 1

    def decision_mistakes(self, favourable: tuple[Value, ...] | None) -> Iterator[Mistake]:
        classes, cut = self.trained.classes, self.cut
        if cut is not None and favourable is not None:
            problem = "both favourable and cut say what is favourable"
            yield Mistake("model-cut", "cut", problem, "remove one of them")
        if cut is not None or self.structured:
            return
        if self.place is not None:
            problem = "a probability is a number, not a decision"
            remedy = "write from where on it is favourable, such as cut = 0.5, or declare an output"
            yield Mistake("model-cut", "cut", problem, remedy)
        elif classes is not None and favourable is None and len(classes) > 2:
            problem = f"the model decides between {len(classes)} classes: {_listed(classes)}"
            remedy = "name those that people want: favourable = […]"
            yield Mistake("model-favourable", "favourable", problem, remedy)
        elif classes is not None:
            for value in favourable or ():
                if value not in classes:
                    problem = f"the model has no class {value!r}"
                    remedy = f"choose from: {_listed(classes)}"
                    yield Mistake("model-favourable", "favourable", problem, remedy)

    def unseen(self) -> Mapping[str, tuple[Value, ...]]:
        return self._unseen

    def unsure_of(self) -> frozenset[str]:
        return self._unsure

    def possible_outputs(self) -> tuple[Value, ...] | None:
        decides = self.cut is None and self.place is None and not self.structured
        return self.trained.classes if decides else None

    def load(self, codes: NDArray[Any]) -> Batch:
        if self.as_frame:
            return ColumnsBatch(self, codes, self.frame_columns.values, self._decide_frame)

        def numbers(column: int, codes: Codes) -> NDArray[Any]:
            """Truth values are 0 and 1, what is missing NaN."""
            return self.schema.characteristics[column].column(codes).astype(np.float64)

        return ColumnsBatch(self, codes, numbers, self._decide_array)

    def _decide_frame(self, columns: list[Any]) -> Any:
        import pandas as pd

        names = self.schema.names
        return self.decide(pd.DataFrame({names[place]: columns[place] for place in self.columns}))

    def _decide_array(self, columns: list[NDArray[Any]]) -> Any:
        # By column: quicker to make, and for most models to read.
        return self.decide(np.stack([columns[place] for place in self.columns]).T)

    def decide(self, inputs: Any) -> Any:
        """The model's decisions on a frame or an array of inputs."""
        answers = self.trained.answer(self.method, inputs)
        if self.place is not None:
            answers = np.asarray(answers)
            if self.trained.classes is None and self._given[1] is None:
                _check_two(answers)
            answers = _of_class(answers, self.place)
        elif self.trained.by_class and np.ndim(answers) == 2 and answers.shape[1] > 1:
            answers = np.asarray(answers).argmax(axis=1)
        if self.cut is not None:
            return (np.asarray(answers).reshape(len(inputs)) >= self.cut).astype(np.int8)
        if not self.structured:
            _check_whole(answers)
        return answers

    def fingerprint(self) -> str:
        own = self._fingerprint or self.trained.fingerprint()
        if self._given == (None, None, None):
            return own
        return hashlib.sha256(f"{own} {self._given!r}".encode()).hexdigest()[:16]


def _of_class(answers: NDArray[Any], place: int) -> NDArray[Any]:
    """The answers on one class; those on the second of two may come alone."""
    if answers.ndim == 2 and answers.shape[1] > 1:
        return np.asarray(answers[:, place])
    return answers.reshape(-1) if place == 1 else -answers.reshape(-1)


def _check_two(answers: NDArray[Any]) -> None:
    """Raise RequestError where probabilities are of more than two classes without names."""
    if answers.ndim == 2 and answers.shape[1] > 2:
        problem = f"the model answers with {answers.shape[1]} probabilities"
        remedy = "name the place of the favourable one: class = 1"
        raise RequestError.one("model-class", "class", problem, remedy)


def _check_whole(answers: Any) -> None:
    """Raise RequestError where answers are numbers with a fraction."""
    numbers = np.asarray(answers)
    if numbers.dtype.kind != "f" or (numbers.ndim == 2 and numbers.shape[1] > 1):
        return
    fractions = numbers[np.isfinite(numbers) & (numbers != np.floor(numbers))]
    if len(fractions):
        problem = f"the model answers with numbers such as {fractions[0]:g}, not with decisions"
        remedy = "write from where on one is favourable, such as cut = 0.5, or declare an output"
        raise RequestError.one("model-cut", "cut", problem, remedy)


def _text_mistakes(names: list[str]) -> Iterator[Mistake]:
    for name in names:
        problem = f"{name!r} holds text, and the model takes numbers there"
        remedy = "give the numbers that the text was encoded to"
        yield Mistake("model-columns", "subject", problem, remedy)


def _listed(classes: tuple[Value, ...]) -> str:
    shown = [_shown(each) for each in classes[:12]]
    return ", ".join(shown) + ", …" * (len(classes) > 12)


def _shown(value: Value) -> str:
    """A value as Python writes it, and but for truth values a file as well."""
    return f'"{value}"' if isinstance(value, str) else repr(value)


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
