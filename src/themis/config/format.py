"""The format of `themis.toml`: which keys there are, of which shape, and what they are for.

The JSON Schema for editors and the complaints about a wrong file both come from these models. Where
a table becomes a dataclass (settings, outputs, checks, acceptances), its keys are the fields of the
dataclass that have a description. Rules of characteristics are only shown to editors here; `Schema`
checks them.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import partial
from types import NoneType
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    Tag,
    ValidationError,
    WithJsonSchema,
    create_model,
)
from pydantic.config import JsonDict
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from themis.errors import Mistake, RequestError, SchemaError
from themis.inputs.characteristics import Value, Values
from themis.inputs.people import Unknown
from themis.keys import Rule, optional
from themis.results.verdicts import Acceptance, Check
from themis.settings import Settings
from themis.subjects.base import CostKind
from themis.subjects.decisions import DEFAULT_FAVOURABLE
from themis.subjects.outputs import Output
from themis.subjects.trained import Method

VERSION = 1  # of the file format; the only one that this Themis reads


def format_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of `themis.toml`, for editors."""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **File.model_json_schema()}


def _broken(mistake: Mistake) -> PydanticCustomError:
    """The exception of a validator that knows in plain words what is wrong."""
    said = {"code": mistake.code, "problem": mistake.problem, "remedy": mistake.remedy}
    return PydanticCustomError("broken_rule", "{problem}", said)


def _obey(rule: Rule, remedy: str, value: Any) -> Any:
    if not rule.holds(value):
        said = {"rule": rule.words, "remedy": remedy}
        raise PydanticCustomError("broken_rule", "{rule}", said)
    return value


def _check_version(version: int) -> int:
    if version != VERSION:
        problem = f"this Themis reads version {VERSION} of the format, got {version}"
        remedy = f"write version = {VERSION}, or install a Themis that reads version {version}"
        raise _broken(Mistake("not-allowed", "", problem, remedy))
    return version


def _check_decision(output: Any) -> Any:
    try:
        Values([output])
    except SchemaError as error:
        raise _broken(error.mistakes[0]) from None
    return output


def _check_body(body: Any) -> Any:
    if not isinstance(body, str | Mapping | list):
        problem = "must be a JSON template, as text or as a table"
        raise _broken(Mistake("not-allowed", "", problem, 'write "{input}"'))
    return body


_VALUE = {"type": ["string", "number", "boolean"]}
_LIST = {"type": "array", "minItems": 1, "uniqueItems": True, "items": _VALUE}

# Checked where they are used; the JSON Schema is for editors.
Number: TypeAlias = Annotated[Any, WithJsonSchema({"type": "number"})]
Numbers: TypeAlias = Annotated[
    list[Any], WithJsonSchema({"type": "array", "minItems": 1, "items": {"type": "number"}})
]
ValueList: TypeAlias = Annotated[Any, WithJsonSchema(_LIST)]
_TABLE = {"type": "object", "minProperties": 1}
_DERIVED = {**_TABLE, "additionalProperties": _VALUE}
ValuesOrTable: TypeAlias = Annotated[Any, WithJsonSchema({"anyOf": [_LIST, _DERIVED]})]
ValueTable: TypeAlias = Annotated[
    Any, WithJsonSchema({**_TABLE, "additionalProperties": {**_TABLE, **_DERIVED}})
]

Text: TypeAlias = Annotated[str, Field(min_length=1)]
Positive: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Reference: TypeAlias = Annotated[str, Field(pattern=r"^[^\s:]+:[^\s:]+$")]
Command: TypeAlias = Annotated[list[str], Field(min_length=1)]
Decision: TypeAlias = Annotated[Any, AfterValidator(_check_decision), WithJsonSchema(_VALUE)]
Decisions: TypeAlias = Annotated[tuple[Decision, ...], Field(strict=False)]  # a list is one, too
Sets: TypeAlias = list[Annotated[list[str], Field(min_length=1)]]
_PATTERNS = {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}}
LabelTable: TypeAlias = Annotated[  # the reader says what is wrong with patterns
    dict[str, list[str]],
    WithJsonSchema({"type": "object", "minProperties": 1, "additionalProperties": _PATTERNS}),
]
Body: TypeAlias = Annotated[
    Any, AfterValidator(_check_body), WithJsonSchema({"type": ["string", "object", "array"]})
]


class Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    @classmethod
    def keys(cls) -> dict[str, FieldInfo]:
        """All keys that it may have, as they are written."""
        return {each.alias or name: each for name, each in cls.model_fields.items()}

    def given(self) -> dict[str, Any]:
        """The keys that stand in the file."""
        keys = type(self).model_fields
        return {key: getattr(self, key) for key in keys if key in self.model_fields_set}


def _drop_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


def _required(description: str, *examples: Any, **rules: Any) -> Any:
    return Field(description=description, examples=list(examples) or None, **rules)


def _optional(description: str, *examples: Any, default: Any = None, **rules: Any) -> Any:
    """A key that may be left out; without a default it has none for editors to show."""
    if default is None or default == "":
        rules["json_schema_extra"] = _drop_default
    if "default_factory" not in rules:
        rules["default"] = default
    return Field(description=description, examples=list(examples), **rules)


# Tables that are read as dataclasses --------------------------------------------------------
def _table_of(cls: type, name: str, meaning: str, **config: Any) -> type[Table]:
    """The table whose keys are the described fields of a dataclass."""
    hints = get_type_hints(cls)
    keys: dict[str, Any] = {
        each.name: _key(hints[each.name], each.default, **each.metadata)
        for each in fields(cls)
        if "description" in each.metadata
    }
    return create_model(name, __base__=Table, __doc__=meaning, __cls_kwargs__=config, **keys)


def _key(
    hint: Any, default: Any, *, rule: Rule | None = None, remedy: str = "", **rest: Any
) -> tuple[Any, Any]:
    """A field of a dataclass as one of a model: what may be None is left out in a file."""
    hint = rest.pop("annotation", hint)
    known = [kind for kind in get_args(hint) if kind is not NoneType]
    if NoneType in get_args(hint) and len(known) == 1:
        (hint,) = known
    if rule is not None:
        check = AfterValidator(partial(_obey, rule, remedy))
        hint = Annotated[Any, check, WithJsonSchema(dict(rule.schema))]
    elif get_origin(hint) is tuple:
        hint = Decisions if hint == tuple[Value, ...] else Annotated[hint, Field(strict=False)]
    if default is MISSING:
        return hint, Field(**rest)
    description, examples = rest.pop("description"), rest.pop("examples")
    return hint, _optional(description, *examples, default=default, **rest)


@dataclass(frozen=True)
class _ReadFrom:
    """Marks a dataclass that is made of what stands in a table."""

    table: type[Table]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        inner = handler.generate_schema(self.table)
        return core_schema.no_info_after_validator_function(partial(_made, source), inner)


def _made(cls: type, table: Table) -> Any:
    try:
        return cls(**table.given())
    except RequestError as error:
        raise ValidationError.from_exception_data(
            cls.__name__,
            [{"type": _broken(each), "loc": (), "input": None} for each in error.mistakes],
        ) from None


class Subject(Table):
    favourable: Decisions = _optional(
        "The outputs that count as the favourable decision",
        ["1"],
        default=DEFAULT_FAVOURABLE,
        min_length=1,
    )
    labels: LabelTable = _optional(
        "Which texts mean the same decision, by label; * and ? as in file names",
        {"approved": ["approved*", "yes"], "refused": ["refused*", "no"]},
    )
    version: str = _optional(
        "Free text; results of another version are not reused", "2024-06", default=""
    )
    max_failures: float = _optional(
        "The fraction of executions that may fail", 0.01, default=0, ge=0, le=1
    )
    max_undecided: float = _optional(
        "The fraction of executions whose answer may fit no label, or two",
        0.01,
        default=0,
        ge=0,
        le=1,
    )
    repeats: int = _optional(
        "Run each input N times and take the majority, for subjects that do not always decide "
        "the same",
        5,
        default=1,
        ge=1,
    )
    deterministic: bool = _optional(
        "Your word that it always decides the same: nothing is run again, and reports say so",
        True,
        default=False,
    )
    cost: CostKind = _optional(
        "What its time goes into: calls (few, large ones are made) or executions; by default calls "
        "for models and functions of a table",
        "calls",
    )

    @property
    def program(self) -> str:
        """What it is called where nobody named it: its function, file, command or address."""
        given = self.options
        if "url" in given:
            parts = urlsplit(given["url"])  # what stands before @ or behind ? may be secret
            return f"{parts.hostname or ''}{parts.path}"
        named = (given[key] for key in ("function", "file", "object") if key in given)
        return next(named, " ".join(given.get("command", ())))

    @property
    def options(self) -> dict[str, Any]:
        """The keys of its kind, as they are given."""
        common = Subject.model_fields.keys() | {"kind"}
        return {key: value for key, value in self.given().items() if key not in common}


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


_OF_WEIGHTS: JsonDict = {"pattern": r"\.(pt|pth)$"}


class ModelSubject(Subject):
    """A trained model: a file, or a Python object with a predict method."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["file"], "properties": {"object": False}},
                {"required": ["object"], "properties": {"file": False}},
                {"required": ["file", "object"], "properties": {"file": _OF_WEIGHTS}},
            ]
        }
    )
    kind: Literal["model"]
    file: Text = _optional(
        "A file of ONNX, skops, XGBoost, LightGBM or CatBoost, weights of PyTorch, or a pickle",
        "model.onnx",
    )
    object: Reference = _optional(
        "module:attribute of a fitted model, or of the module whose weights are in the file",
        "loan:model",
    )
    method: Method = _optional("What the model is asked for", "predict_proba", default="predict")
    class_: Decision = _optional("The class whose probability counts", 1, alias="class")
    cut: Annotated[float, Field(allow_inf_nan=False)] = _optional(
        "From here on a probability, or a number, is favourable", 0.3
    )
    dtypes: dict[str, str] = _optional(
        "Types of columns in training, where the model does not know them", {"sex": "category"}
    )
    device: Text = _optional("Where a model of PyTorch or ONNX computes", "cuda", default="cpu")


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
    recycle_after: int = _optional("Start it afresh after this many executions", 100_000, ge=1)


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


class Characteristic(Table):
    weights: Numbers = _optional("The operational profile: one number for each value", [0.9, 0.1])
    protected: bool = _optional("Whether the law or you protect it", True, default=False)
    missing: Number = _optional("The share of inputs without a value: above 0, below 1", 0.07)
    missing_as_counterfactual: bool = _optional(
        "Whether a value may be compared with none", True, default=False
    )


class ValuesInput(Characteristic):
    """A characteristic with a list of values."""

    values: ValuesOrTable = _required("All its values", ["green", "purple"])
    follows: Text = _optional("The characteristic whose changes it follows", "sex")
    as_: ValueTable = _optional(
        "What its values become, for each value (or bin) of the characteristic that it follows",
        {"Female": {"Husband": "Wife"}, "Male": {"Wife": "Husband"}},
        alias="as",
    )
    from_: Text = _optional(
        "The characteristic that it is derived from; `values` has one for each value of that",
        "sex",
        alias="from",
    )


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
    return "values" if difflib.get_close_matches("values", map(str, spec)) else None


Input: TypeAlias = Annotated[
    Annotated[ValueList, Tag("list")]
    | Annotated[ValuesInput, Tag("values")]
    | Annotated[RangeInput, Tag("range")],
    Discriminator(_input_shape),
]


class Profile(Table):
    """Whom inputs are drawn from: rows of people, instead of all that the inputs allow."""

    data: Text = _required("A CSV, JSON lines or Parquet file with a row for each", "people.csv")
    weights: Text = _optional("The column that says how often a row occurs", "count")
    unknown: Unknown = _optional(
        "Values that the inputs lack: keep them for their rows, leave the rows out, stop, or widen "
        "the inputs",
        default="keep",
    )


ValueWords: TypeAlias = Annotated[  # the reader checks the names against the inputs
    dict[str, dict[str, Text]],
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": {"type": "string", "minLength": 1},
            },
        }
    ),
]


class Report(Table):
    """What reports call the program, its people, its decision and the values of its inputs."""

    name: Text = _optional("What was tested, for the title of a report", "Loan screen")
    version: Text = _optional("Which version of it", "2026.3")
    owner: Text = _optional("Who is responsible for it", "Credit department")
    purpose: Text = _optional("What it decides", "First decision on consumer loans")
    auditor: Text = _optional("Who tested it", "Internal audit")
    why_test_data: Text = _optional(
        "Why it was tested on test data instead of historical data, for the annex",
        "No historical data: the program is not in use yet",
    )
    people: Text = _optional(
        "Whom it decides on, in the plural: sentences are about test applicants then, instead of "
        "test inputs",
        "applicants",
    )
    decision: Text = _optional(
        "The favourable decision as a noun: sentences are about approval rates then", "approval"
    )
    values: ValueWords = _optional(
        "Words for values, by characteristic", {"sex": {"female": "women", "male": "men"}}
    )
    rows: bool = _optional(
        "Whether reports, terminals and suites may show rows of people", True, default=False
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


OutputTable = _table_of(
    Output,
    "MeasuredOutput",
    "One output that is measured; several are read off the same executions.",
)


@dataclass(frozen=True, kw_only=True)
class Run(Settings):
    """The table [run]: settings, and the sets that are measured where none is named."""

    against: tuple[tuple[str, ...], ...] | None = optional(
        None,
        "The sets that `themis score` measures; else each protected characteristic on its own",
        [["race"], ["race", "sex"]],
        annotation=Sets,
        min_length=1,
    )

    @property
    def settings(self) -> Settings:
        """The settings alone."""
        return Settings(**{name: getattr(self, name) for name in Settings.names()})


RunTable = _table_of(Run, "Run", "What is measured, how precisely, at which cost.")
CheckTable = _table_of(
    Check,
    "Check",
    "A limit that `themis check` enforces: on one set of characteristics, or on all.",
    json_schema_extra={"oneOf": [_ONE_SET, _ALL_SETS]},
)
AcceptedTable = _table_of(
    Acceptance, "Accepted", "A finding that `themis check` lets pass for a while, visibly."
)

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
    outputs: dict[str, Annotated[Output, _ReadFrom(OutputTable)]] = _optional(
        "What is measured, by name, where it is not one plain decision",
        {"limit": {"at": "/limit", "min": 0, "max": 5000, "distance": "relational"}},
        default_factory=dict,
    )
    run: Annotated[Run, _ReadFrom(RunTable)] = _optional(
        "Confidence, precision and cost", {"confidence": 0.99}, default_factory=Run
    )
    profile: Profile = _optional(
        "Whom inputs are drawn from, if not from all", {"data": "people.csv"}
    )
    report: Report = _optional("Words for reports", {"people": "applicants"})
    checks: list[Annotated[Check, _ReadFrom(CheckTable)]] = _optional(
        "What `themis check` enforces",
        [{"against": ["race"], "max_score": 0.05}],
        default_factory=list,
    )
    accepted: list[Annotated[Acceptance, _ReadFrom(AcceptedTable)]] = _optional(
        "Findings that `themis check` lets pass, each with a reason and a last day",
        default_factory=list,
    )


SUBJECTS: dict[str, type[Subject]] = {
    get_args(model.model_fields["kind"].annotation)[0]: model
    for model in (PythonSubject, ModelSubject, CommandSubject, WorkerSubject, HttpSubject)
}
INPUTS: dict[str, type[Table]] = {"values": ValuesInput, "range": RangeInput}
TABLES: dict[str, type[Table] | Mapping[str, type[Table]]] = {  # by name, some by their kind
    "subject": SUBJECTS,
    "inputs": INPUTS,
    "outputs": OutputTable,
    "run": RunTable,
    "profile": Profile,
    "report": Report,
    "checks": CheckTable,
    "accepted": AcceptedTable,
}
