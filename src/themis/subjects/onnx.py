"""ONNX models as subjects: run by onnxruntime, without executing anything of their author's."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
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
_PROVIDER = "ExecutionProvider"
CPU = "cpu"


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
        self.session = _open(path, device or CPU)
        self.inputs = self.session.get_inputs()
        self._named = {each.name: each for each in self.inputs}
        self.table = len(self.inputs) == 1 and not _is_single(self.inputs[0], schema)
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
    known = {name.removesuffix(_PROVIDER).lower(): name for name in there}
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


def _is_single(model_input: Any, schema: Schema) -> bool:
    """Whether the only input of a model is a column by name, not a table."""
    return len(schema) == 1 and model_input.name == schema.names[0]


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
