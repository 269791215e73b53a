"""Trained models as subjects: fed as they were trained, and what their answers decide.

ONNX files are run by onnxruntime, without executing anything of their author's.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, RequestError, count_of, suggest
from themis.inputs.characteristics import Characteristic, Codes, Value
from themis.inputs.schema import Schema
from themis.subjects.base import Batch, ColumnsBatch, Subject, Traits
from themis.subjects.columns import (
    FrameColumns,
    encoded_columns,
    refused_extras,
    unseen_values,
)
from themis.subjects.decisions import DEFAULT_FAVOURABLE
from themis.subjects.trained import METHODS, Method, TorchModule, Trained, trained_of

LABEL_NAMES = ("output_label", "label")  # as converters name the decision

_NUMBERS = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int16)": np.int16,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}
_FLOATS = ("tensor(float)", "tensor(double)", "tensor(float16)")
_TEXT = "tensor(string)"


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
            ordered, spelled = trained.categories, trained.spelled
            own = {n: ordered[spelled(n)] for n in schema.names if spelled(n) in ordered}
            self.frame_columns = FrameColumns(schema, own, dtypes)
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


class OnnxModel(Subject):
    """A model in the ONNX format: one table for all characteristics, or one input for each.

    A table gets the characteristics in schema order; single inputs are known by their names. The
    decision is the output called `label` or `output_label`, or else the first.
    """

    kind = "model"
    traits = Traits(vectorised=True, cost="calls")

    def __init__(
        self, path: Path, schema: Schema, *, fingerprint: str, device: str | None = None
    ) -> None:
        self.schema = schema
        self._path, self._fingerprint, self._device = path.absolute(), fingerprint, device
        self.session = _open(path, device or "cpu")
        self.inputs = self.session.get_inputs()
        self._named = {each.name: each for each in self.inputs}
        first = self.inputs[0].name
        self.table = len(self.inputs) == 1 and (len(schema) > 1 or first != schema.names[0])
        self.traits = replace(self.traits, by_order=self.table and len(schema) > 1)
        mistakes = [*self._column_mistakes(), *self._shape_mistakes()]
        self.output = _decision_output(self.session.get_outputs(), mistakes)
        if mistakes:
            raise RequestError(mistakes)

    def load(self, codes: NDArray[Any]) -> Batch:
        return ColumnsBatch(self, codes, self._values, self._call)

    def _values(self, column: int, codes: Codes) -> NDArray[Any]:
        """The values as a tensor holds them: a missing number is NaN, a missing text empty."""
        each = self.schema.characteristics[column]
        values = each.column(codes)
        if each.missing is not None and not each.numeric:
            values[codes == each.missing_code] = np.nan if each.boolean else ""
        taken = self.inputs[0] if self.table else self._named[each.name]
        return values.astype(_NUMBERS.get(taken.type, np.object_))

    def _call(self, columns: list[NDArray[Any]]) -> Any:
        if self.table:
            given = {self.inputs[0].name: np.stack(columns, axis=1)}
        else:
            named = zip(self.schema.names, columns, strict=True)
            given = {name: values.reshape(_shape(self._named[name])) for name, values in named}
        return self.session.run([self.output], given)[0]

    def unsure_of(self) -> frozenset[str]:
        return frozenset(each.name for each in self.schema if not (each.numeric or each.boolean))

    def fingerprint(self) -> str:
        return self._fingerprint if self._device is None else f"{self._fingerprint} {self._device}"

    def __reduce__(self) -> Any:
        """A session can't travel: the file is opened again where the subject arrives."""
        made = partial(OnnxModel, fingerprint=self._fingerprint, device=self._device)
        return made, (self._path, self.schema)

    def _column_mistakes(self) -> Iterator[Mistake]:
        """Whether the model and the schema speak of the same columns, and of the same types."""
        names = self.schema.names
        if self.table:
            types = dict.fromkeys(names, self.inputs[0].type)
            width = self.inputs[0].shape[-1]
            if isinstance(width, int) and width != len(names):
                problem = (
                    f"the model takes {count_of(width, 'column')}, the schema has {len(names)}"
                )
                yield _mistake(problem, "describe exactly those, in order")
        else:
            types = {name: each.type for name, each in self._named.items()}
        for name in types:
            if name not in names:
                problem = f"the model needs a column {name!r} that the schema lacks"
                yield _mistake(problem, suggest(name, names))
        for each in self.schema:
            if each.name not in types:
                remedy = "remove it from the schema; a value it never sees can't matter"
                yield _mistake(f"the model takes no {each.name!r}", remedy)
            else:
                yield from _type_mistakes(each, types[each.name])

    def _shape_mistakes(self) -> Iterator[Mistake]:
        for each in self.inputs:
            if each.shape and isinstance(each.shape[0], int):
                number = count_of(each.shape[0], "input")
                problem = f"the model takes {number} at once, no more and no fewer"
                yield _mistake(problem, "export it with a batch axis of any length")
                return


def _open(path: Path, device: str) -> Any:
    """A session on one thread: the order of sums stays the same, and a fork loses nothing."""
    try:
        onnxruntime: Any = importlib.import_module("onnxruntime")
    except ImportError:
        problem = "ONNX models need onnxruntime, which is not installed"
        remedy = "run: pip install 'themis-fairness[models]'"
        raise RequestError.one("needs-onnxruntime", "subject.file", problem, remedy) from None
    there = onnxruntime.get_available_providers()
    known = {name.removesuffix("ExecutionProvider").lower(): name for name in there}
    if device not in known:
        problem = f"onnxruntime can't compute on {device!r} here"
        raise RequestError.one("model-device", "subject.device", problem, suggest(device, [*known]))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4  # errors reach us as exceptions
    try:
        return onnxruntime.InferenceSession(path, options, providers=[known[device]])
    except Exception as error:  # its exceptions have no common base
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
    problem = f"{path} is not an ONNX model: {why}"
    raise RequestError.one("model-file", "subject.file", problem, "export it again")


def _shape(model_input: Any) -> tuple[int, ...]:
    """The shape of a single column: most models take a second axis."""
    return (-1, *[1] * (len(model_input.shape or [None, None]) - 1))


def _type_mistakes(each: Characteristic, kind: str) -> Iterator[Mistake]:
    number = each.numeric or each.boolean
    if kind in _NUMBERS and not number:
        problem = f"{each.name!r} holds text, and the model takes numbers there"
        yield _mistake(problem, "give the numbers that the text was encoded to")
    elif kind == _TEXT and number:
        problem = f"{each.name!r} holds numbers, and the model takes text there"
        yield _mistake(problem, 'write the values as text, such as "1"')
    elif each.missing is not None and kind in _NUMBERS and kind not in _FLOATS:
        problem = f"{each.name!r} may be missing, and the model takes {kind} there, without NaN"
        yield _mistake(problem, "remove missing, or export the model with floats")
    elif kind in _NUMBERS and kind not in _FLOATS and not all(map(_is_whole, each.extra)):
        problem = f"rows have fractions of {each.name!r}, and the model takes {kind} there"
        yield _mistake(problem, 'round them, or leave such rows out: unknown = "drop"')
    elif kind not in _NUMBERS and kind != _TEXT:
        yield _mistake(
            f"the model takes {kind} for {each.name!r}", "use a tensor of numbers or text"
        )


def _is_whole(value: Value) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _decision_output(outputs: Any, mistakes: list[Mistake]) -> str:
    """The name of the output that holds the decision."""
    named = [each for each in outputs if each.name in LABEL_NAMES]
    chosen = (named or outputs)[0]
    shape = list(chosen.shape or [])
    scores = len(shape) > 2 or (len(shape) == 2 and isinstance(shape[1], int) and shape[1] != 1)
    if not chosen.type.startswith("tensor(") or scores:
        problem = f"the model's output {chosen.name!r} is {chosen.type} of shape {shape}"
        mistakes.append(_mistake(f"{problem}, not one decision for each input", "export a label"))
    name: str = chosen.name
    return name


def _mistake(problem: str, remedy: str) -> Mistake:
    return Mistake("model-columns", "subject.file", problem, remedy)
