"""What may stand in a `themis.toml`? The models here are the only description of the format.

They say which keys there are, of which shape, and what they are for; the JSON Schema for editors
and the complaints about a wrong file both come from them. Rules that the rest of Themis enforces
already (on characteristics and settings) are only shown to editors here, not checked again.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
)
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from themis.errors import SchemaError
from themis.inputs.characteristics import Values
from themis.subjects.decisions import DEFAULT_FAVOURABLE

VERSION = 1  # of the file format; the only one that this Themis reads


def format_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of `themis.toml`, for editors."""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **File.model_json_schema()}


def _broken_rule(problem: str, remedy: str) -> PydanticCustomError:
    """The exception of a validator that knows in plain words what is wrong."""
    return PydanticCustomError("broken_rule", "{problem}", {"problem": problem, "remedy": remedy})


def _check_version(version: int) -> int:
    if version != VERSION:
        raise _broken_rule(
            f"this Themis reads version {VERSION} of the format, got {version}",
            f"write version = {VERSION}, or install a Themis that reads version {version}",
        )
    return version


def _check_output(output: Any) -> Any:
    try:
        Values([output])
    except SchemaError as error:
        raise _broken_rule(error.mistakes[0].problem, error.mistakes[0].remedy) from None
    return output


def _check_body(body: Any) -> Any:
    if not isinstance(body, str | Mapping | list):
        raise _broken_rule("must be a JSON template, as text or as a table", 'write "{input}"')
    return body


_VALUE = {"type": ["string", "number", "boolean"]}
_LIST = {"type": "array", "minItems": 1, "uniqueItems": True, "items": _VALUE}

# Checked where they are used; the JSON Schema is for editors.
Number: TypeAlias = Annotated[Any, WithJsonSchema({"type": "number"})]
Numbers: TypeAlias = Annotated[
    list[Any], WithJsonSchema({"type": "array", "minItems": 1, "items": {"type": "number"}})
]
ValueList: TypeAlias = Annotated[Any, WithJsonSchema(_LIST)]

Fraction: TypeAlias = Annotated[
    Any, WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1})
]

Text: TypeAlias = Annotated[str, Field(min_length=1)]
Positive: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Reference: TypeAlias = Annotated[str, Field(pattern=r"^[^\s:]+:[^\s:]+$")]
Command: TypeAlias = Annotated[list[str], Field(min_length=1)]
Output: TypeAlias = Annotated[Any, AfterValidator(_check_output), WithJsonSchema(_VALUE)]
Body: TypeAlias = Annotated[
    Any, AfterValidator(_check_body), WithJsonSchema({"type": ["string", "object", "array"]})
]


class Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


def _drop_default(schema: dict[str, Any]) -> None:
    del schema["default"]


def _required(description: str, *examples: Any, **rules: Any) -> Any:
    return Field(description=description, examples=list(examples) or None, **rules)


def _optional(description: str, *examples: Any, default: Any = None, **rules: Any) -> Any:
    """A key that may be left out; without a default it has none for editors to show."""
    if default is None:
        rules["json_schema_extra"] = _drop_default
    return Field(default=default, description=description, examples=list(examples), **rules)


class Subject(Table):
    favourable: list[Output] = _optional(
        "The outputs that count as the favourable decision",
        ["1"],
        default=list(DEFAULT_FAVOURABLE),
        min_length=1,
    )
    version: str = _optional("Free text; results of another version are not reused", "2024-06")
    max_failures: float = _optional(
        "The fraction of executions that may fail", 0.01, default=0, ge=0, le=1
    )
    repeats: int = _optional(
        "Run each input so often and take the majority, for subjects that do not always decide "
        "the same",
        5,
        default=1,
        ge=1,
    )


class PythonSubject(Subject):
    """A Python function."""

    kind: Literal["python"]
    function: Reference = _required(
        "module:attribute, relative to the folder of this file", "loan:decide"
    )
    call: Literal["row", "keywords", "batch"] = _optional(
        "What it is called with: one dict, keyword arguments, or a table of many inputs",
        "row",
        default="row",
    )


class ModelSubject(Subject):
    """A trained model: a file, or a Python object with a predict method."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["file"]}, {"required": ["object"]}]}
    )
    kind: Literal["model"]
    file: Text = _optional("An ONNX, skops, joblib or pickle file", "model.onnx")
    object: Reference = _optional("module:attribute of a fitted model", "loan:model")


class CommandSubject(Subject):
    """A program that is started once for each input."""

    kind: Literal["command"]
    command: Command = _required(
        "The program and its arguments, never a shell; {race} stands for a value",
        ["python", "loan.py"],
    )
    arguments: Literal["positional", "named", "json", "csv"] = _optional(
        "How the input is passed on: as arguments, or on standard input", "positional"
    )
    answer: Annotated[str, Field(pattern=r"^(last-line|stdout|exit-code|/.*)$")] = _optional(
        "Where the output is found; a JSON pointer into what was printed begins with /",
        *("last-line", "stdout", "exit-code", "/decision"),
    )
    env: dict[str, str] = _optional("Environment variables", {"LANG": "C"})
    cwd: Text = _optional("The folder in which it runs", "build")
    timeout_seconds: Positive = _optional("How long one execution may take", 5)


class WorkerSubject(Subject):
    """A program that stays alive and answers one line for each line it reads."""

    kind: Literal["worker"]
    command: Command = _required(
        "The program and its arguments, never a shell", ["python", "worker.py"]
    )
    format: Literal["jsonl", "csv"] = _optional("JSON lines or CSV lines", "jsonl")
    env: dict[str, str] = _optional("Environment variables", {"LANG": "C"})
    cwd: Text = _optional("The folder in which it runs", "build")
    start_seconds: Positive = _optional("How long it may take to start", 30)
    timeout_seconds: Positive = _optional("How long one execution may take", 5)
    recycle_after: int = _optional("Start it afresh after so many executions", 100_000, ge=1)


class HttpSubject(Subject):
    """A web service."""

    kind: Literal["http"]
    url: Annotated[str, Field(pattern=r"^https?://[^\s/]")] = _required(
        "Where requests are sent", "http://localhost:8000/decide"
    )
    method: Literal["GET", "POST", "PUT", "PATCH"] = _optional("The HTTP method", "POST")
    headers: dict[str, str] = _optional("HTTP headers", {"Accept": "application/json"})
    body: Body = _optional(
        "A JSON template with places like {race}; {input} or {inputs}", "{input}"
    )
    answer: Annotated[str, Field(pattern="^(text|status|/.*)$")] = _optional(
        "Where the output stands: a JSON pointer, or text or status", "/decision"
    )
    follow_redirects: bool = _optional("Whether to follow redirects", True, default=False)
    concurrency: int = _optional("Requests at the same time", 8, ge=1)
    rate_per_second: Positive = _optional("Requests per second at most", 100)
    retries: int = _optional("How often a failed request is sent again", 3, ge=0)
    timeout_seconds: Positive = _optional("How long one request may take", 5)


class MeasuredOutput(Table):
    """One output that is measured; several are read off the same executions."""

    at: Annotated[Any, WithJsonSchema({"type": ["string", "integer"]})] = _optional(
        "Where it stands in the answer: a JSON pointer, or a column", "/limit"
    )
    favourable: list[Output] = _optional("The outputs that count as favourable", ["yes"])
    min: Number = _optional("The smallest number it can be", 0)
    max: Number = _optional("The largest number it can be", 5000)
    cut: Number = _optional("Numbers above this are favourable", 1000)
    distance: str = _optional(
        "How different two outputs are: exact, threshold, relational, ranking, or module:function",
        "relational",
        default="exact",
    )
    tolerance: Number = _optional("Differences up to this do not count", 100)


class Characteristic(Table):
    weights: Numbers = _optional("The operational profile: one number for each value", [0.9, 0.1])
    protected: bool = _optional("Whether the law or you protect it", True, default=False)


class ValuesInput(Characteristic):
    """A characteristic with a list of values."""

    values: ValueList = _required("All its values", ["green", "purple"])


class RangeInput(Characteristic):
    """Numbers from min to max, both included; whole ones unless one is written with a point."""

    min: Number = _required("The smallest value", 18)
    max: Number = _required("The largest value", 120)
    step: Number = _optional("From one value to the next; 1 for whole numbers", 1)
    bins: Numbers = _optional("The first value of each bin but the lowest", [40, 65])


def _input_shape(spec: Any) -> str | None:
    """Which of the three ways to describe a characteristic this one tries to be."""
    if not isinstance(spec, Mapping):
        return "list"
    if "values" in spec:
        return "values"
    if any(key in spec for key in ("min", "max", "step", "bins")):
        return "range"
    return "values" if any(difflib.get_close_matches("values", spec)) else None


Input: TypeAlias = Annotated[
    Annotated[ValueList, Tag("list")]
    | Annotated[ValuesInput, Tag("values")]
    | Annotated[RangeInput, Tag("range")],
    Discriminator(_input_shape),
]


class Run(Table):
    """How sure, how precise, how expensive."""

    confidence: Fraction = _optional("The chance that the intervals hold", default=0.99)
    error: Fraction = _optional("The half width of the intervals", default=0.05)
    seed: Annotated[Any, WithJsonSchema({"type": "integer", "minimum": 0})] = _optional(
        "The same seed gives the same result", default=0
    )
    stopping: Annotated[Any, WithJsonSchema({"enum": ["certified", "paper"]})] = _optional(
        "When to stop; paper is the rule of the 2017 paper", default="certified"
    )
    max_executions: Annotated[Any, WithJsonSchema({"type": "integer", "minimum": 1})] = _optional(
        "Stop after so many executions", 1_000_000
    )
    max_seconds: Annotated[Any, WithJsonSchema({"type": "number", "exclusiveMinimum": 0})] = (
        _optional("Stop after so many seconds", 600)
    )
    max_assignments: Annotated[Any, WithJsonSchema({"type": "integer", "minimum": 2})] = _optional(
        "Sets with more assignments are only sampled, and give a lower bound", default=1_000
    )
    probe: Annotated[Any, WithJsonSchema({"type": "integer", "minimum": 0})] = _optional(
        "Run so many inputs again to look for noise; 0 for none", 300
    )
    max_noise: Annotated[Any, WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1})] = (
        _optional("A score that noise alone may explain by more is inconclusive", 0.02)
    )


class Profile(Table):
    """Whom inputs are drawn from: rows of people, instead of all that the inputs allow."""

    data: Text = _required("A CSV, JSON lines or Parquet file with a row for each", "people.csv")
    weights: Text = _optional("The column that says how often a row occurs", "count")
    unknown: Literal["drop", "error", "extend"] = _optional(
        "Rows that do not fit: leave them out, stop, or widen the inputs", default="drop"
    )


_ONE_SET: JsonDict = {"required": ["against"], "properties": {"search": {"const": False}}}
_ALL_SETS: JsonDict = {
    "required": ["search"],
    "properties": {
        "search": {"const": True},
        "against": False,
        "max_score": {"exclusiveMinimum": 0, "exclusiveMaximum": 1},
    },
}


class Check(Table):
    """A limit that `themis check` enforces: on one set of characteristics, or on all."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [_ONE_SET, _ALL_SETS]})
    against: Annotated[list[str], Field(min_length=1)] = _optional(
        "The set of characteristics", ["race"]
    )
    search: bool = _optional("Search all sets for one above the limit", True)
    measure: Literal["causal", "group"] = _optional("Which score", "causal", default="causal")
    max_score: float = _required("The largest score allowed", 0.05, ge=0, le=1)
    output: str = _optional("Which of the declared outputs", "limit")


class Accepted(Table):
    """A finding that `themis check` lets pass for a while, visibly."""

    against: Annotated[list[str], Field(min_length=1)] = _required(
        "The set of characteristics, exactly", ["race"]
    )
    measure: Literal["causal", "group"] = _optional("Which score", "causal", default="causal")
    max_score: float = _optional("Accepted only up to here; else any score is", 0.12, ge=0, le=1)
    reason: Text = _required("Why it is accepted", "ticket 4711, mended in the next release")
    until: date = _required("The last day on which this counts", date(2027, 3, 31))
    output: str = _optional("Which of the declared outputs", "limit")


AnySubject: TypeAlias = Annotated[
    PythonSubject | ModelSubject | CommandSubject | WorkerSubject | HttpSubject,
    Field(discriminator="kind"),
]


class File(Table):
    """The settings of Themis, which tests decision software for discrimination."""

    model_config = ConfigDict(title="themis.toml")
    version: Annotated[int, AfterValidator(_check_version), WithJsonSchema({"const": VERSION})] = (
        _required("The version of this file format", VERSION)
    )
    subject: AnySubject = _required("The software under test")
    inputs: dict[str, Input] = _required(
        "The characteristics of an input, in the order of the arguments",
        json_schema_extra={"minProperties": 1},
    )
    constraints: dict[str, str] = _optional(
        "Conditions that every input meets, by name", {"adult": "age >= 18"}
    )
    outputs: dict[str, MeasuredOutput] = _optional(
        "What is measured, by name, where it is not one plain decision",
        {"limit": {"at": "/limit", "min": 0, "max": 5000, "distance": "relational"}},
    )
    run: Run = _optional("How sure, how precise, how expensive", {"confidence": 0.99})
    profile: Profile = _optional(
        "Whom inputs are drawn from, if not from all", {"data": "people.csv"}
    )
    checks: list[Check] = _optional(
        "What `themis check` enforces", [{"against": ["race"], "max_score": 0.05}]
    )
    accepted: list[Accepted] = _optional(
        "Findings that `themis check` lets pass, each with a reason and a last day"
    )


SUBJECTS: dict[str, type[Subject]] = {
    get_args(model.model_fields["kind"].annotation)[0]: model
    for model in (PythonSubject, ModelSubject, CommandSubject, WorkerSubject, HttpSubject)
}
INPUTS: dict[str, type[Table]] = {"values": ValuesInput, "range": RangeInput}
