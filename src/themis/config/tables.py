"""Tables of a file as models: how dataclasses are read from them, and the kinds of [subject]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields
from functools import partial
from types import NoneType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeAlias,
    get_args,
    get_origin,
    get_type_hints,
)
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetPydanticSchema,
    ValidationError,
    WithJsonSchema,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from themis.errors import Mistake, RequestError, SchemaError
from themis.inputs.characteristics import Value, Values
from themis.keys import Rule, remedy_of
from themis.subjects.base import CostKind
from themis.subjects.decisions import DEFAULT_FAVOURABLE
from themis.subjects.outputs import (
    SIMILAR_TEXTS,
    Output,
    Similarity,
    refusal_outputs,
    with_refusals,
)
from themis.subjects.trained import Method

VALUE = {"type": ["string", "number", "boolean"]}


def broken(mistake: Mistake) -> PydanticCustomError:
    """The exception of a validator that knows in plain words what is wrong."""
    said = {"code": mistake.code, "problem": mistake.problem, "remedy": mistake.remedy}
    return PydanticCustomError("broken_rule", "{problem}", said)


def _obey(rule: Rule, remedy: str, value: Any) -> Any:
    if not rule.holds(value):
        said = {"rule": rule.words, "remedy": remedy_of(remedy, value)}
        raise PydanticCustomError("broken_rule", "{rule}", said)
    return value


def _check_decision(output: Any) -> Any:
    try:
        Values([output])
    except SchemaError as error:
        raise broken(error.mistakes[0]) from None
    return output


Decision: TypeAlias = Annotated[Any, AfterValidator(_check_decision), WithJsonSchema(VALUE)]
Decisions: TypeAlias = Annotated[tuple[Decision, ...], Field(strict=False)]  # a list is one, too


class Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    @classmethod
    def keys(cls) -> dict[str, FieldInfo]:
        """All keys that it may have, as they are written."""
        return {each.alias or name: each for name, each in cls.model_fields.items()}

    @classmethod
    def inner(cls, key: str) -> type[Table] | None:
        """The table that stands at a key, if one does."""
        known = cls.keys().get(key)
        kind = None if known is None else known.annotation
        return kind if isinstance(kind, type) and issubclass(kind, Table) else None

    def given(self) -> dict[str, Any]:
        """The keys that stand in the file."""
        keys = type(self).model_fields
        return {key: getattr(self, key) for key in keys if key in self.model_fields_set}


def _drop_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


def required(description: str, *examples: Any, **rules: Any) -> Any:
    return Field(description=description, examples=list(examples) or None, **rules)


def optional(description: str, *examples: Any, default: Any = None, **rules: Any) -> Any:
    """A key that may be left out; without a default it has none for editors to show."""
    if default is None or default == "":
        rules["json_schema_extra"] = _drop_default
    if "default_factory" not in rules:
        rules["default"] = default
    return Field(description=description, examples=list(examples), **rules)


def table_of(cls: type, name: str, meaning: str) -> type[Table]:
    """The table whose keys are the described fields of a dataclass."""
    hints = get_type_hints(cls)
    keys: dict[str, Any] = {
        each.name: _key(hints[each.name], each.default, **each.metadata)
        for each in fields(cls)
        if "description" in each.metadata
    }
    return create_model(name, __base__=Table, __doc__=meaning, **keys)


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
    return hint, optional(description, *examples, default=default, **rest)


def read_from(table: type[Table]) -> GetPydanticSchema:
    """Marks a dataclass that is made of what stands in a table."""

    def schema(cls: type, handler: GetCoreSchemaHandler) -> CoreSchema:
        made = partial(_made, cls)
        return core_schema.no_info_after_validator_function(made, handler.generate_schema(table))

    return GetPydanticSchema(schema)


def _made(cls: type, table: Table) -> Any:
    try:
        return cls(**table.given())
    except RequestError as error:
        raise ValidationError.from_exception_data(
            cls.__name__,
            [{"type": broken(each), "loc": (), "input": None} for each in error.mistakes],
        ) from None


# The software under test ------------------------------------------------------------------------
def _check_body(body: Any) -> Any:
    if not isinstance(body, str | Mapping | list):
        problem = "must be a JSON template, as text or as a table"
        raise broken(Mistake("not-allowed", "", problem, 'write "{input}"'))
    return body


def _check_prompt(given: Any) -> Any:
    every = given if isinstance(given, list) and given else [given]
    for each in every:
        is_file = isinstance(each, Mapping) and each.keys() == {"file"}
        if not isinstance(each["file"] if is_file else each, str):
            problem = "must be a text, a file, or a list of those"
            raise broken(Mistake("wrong-type", "", problem, 'write { file = "prompt.txt" }'))
    return given


Text: TypeAlias = Annotated[str, Field(min_length=1)]
Price: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Reference: TypeAlias = Annotated[str, Field(pattern=r"^[^\s:]+:[^\s:]+$")]
Command: TypeAlias = Annotated[list[str], Field(min_length=1)]
_PATTERNS = {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}}
LabelTable: TypeAlias = Annotated[  # the reader says what is wrong with patterns
    dict[str, list[str]],
    WithJsonSchema({"type": "object", "minProperties": 1, "additionalProperties": _PATTERNS}),
]
_FILE = {"type": "object", "required": ["file"], "additionalProperties": False}
_ONE = {"anyOf": [{"type": "string"}, {**_FILE, "properties": {"file": {"type": "string"}}}]}
_SEVERAL = {"type": "array", "minItems": 1, "items": _ONE}
PromptTexts: TypeAlias = Annotated[
    Any, AfterValidator(_check_prompt), WithJsonSchema({"anyOf": [*_ONE["anyOf"], _SEVERAL]})
]
Body: TypeAlias = Annotated[
    Any, AfterValidator(_check_body), WithJsonSchema({"type": ["string", "object", "array"]})
]


class Subject(Table):
    is_outside: ClassVar[bool] = False  # another process, whose answers are kept
    pilot: ClassVar[int | None] = None  # executions of a forecast, where each costs money
    favourable: Decisions = optional(
        "Outputs that count as the favourable decision",
        ["1"],
        default=DEFAULT_FAVOURABLE,
        min_length=1,
    )
    labels: LabelTable = optional(
        "Which texts mean the same decision; * and ? as in file names",
        {"approved": ["approved*", "yes"], "refused": ["refused*", "no"]},
    )
    similar_texts: Similarity = optional(SIMILAR_TEXTS, "different", default="same")
    version: str = optional(
        "Free text; decisions of another version are not reused", "2024-06", default=""
    )
    depends: list[Text] = optional(
        "Files that it reads; when one changes, kept decisions are not reused",
        ["rules/*.py"],
        default=[],
    )
    max_failures: float = optional(
        "The fraction of executions that may fail", 0.01, default=0, ge=0, le=1
    )
    max_undecided: float = optional(
        "The fraction of answers that may fit no label, or two",
        0.01,
        default=0,
        ge=0,
        le=1,
    )
    repeats: int = optional(
        "Run each input N times and take the majority",
        5,
        default=1,
        ge=1,
    )
    deterministic: bool = optional(
        "You vouch that it always decides the same: no consistency check, and reports say so",
        True,
        default=False,
    )
    cost: CostKind = optional(
        "What to save: calls (default for models and functions of a table) or executions",
        "calls",
    )

    @property
    def meanings(self) -> Mapping[str, Sequence[str]] | None:
        """The labels, with those that its kind has of its own."""
        return self.labels

    def own_outputs(self) -> tuple[Output, ...]:
        """What its kind measures where no outputs are declared; nothing: the one decision."""
        return ()

    @property
    def program(self) -> str:
        """What it is called where nobody named it: its function, file, command or address."""
        given = self.options
        if "model" in given:
            return str(given["model"])
        if "url" in given:
            with suppress(ValueError):  # what is no address is refused where it is loaded
                parts = urlsplit(given["url"])  # what stands before @ or behind ? may be secret
                return f"{parts.hostname or ''}{parts.path}"
            return ""
        named = (given[key] for key in ("function", "file", "object") if key in given)
        return next(named, " ".join(given.get("command", ())))

    @property
    def options(self) -> dict[str, Any]:
        """The keys of its kind, as they are given."""
        common = Subject.model_fields.keys() | {"kind"}
        given = {key: value for key, value in self.given().items() if key not in common}
        return {
            key: value.given() if isinstance(value, Table) else value
            for key, value in given.items()
        }


class PythonSubject(Subject):
    """A Python function."""

    kind: Literal["python"]
    function: Reference = required("module:attribute, from the folder of this file", "loan:decide")
    call: Literal["row", "keywords", "batch"] = optional(
        "Called with one dict, keyword arguments, or a table of inputs",
        "row",
        default="row",
    )


class ModelSubject(Subject):
    """A trained model: a file, or a Python object with a predict method."""

    kind: Literal["model"]
    file: Text = optional(
        "ONNX, skops, XGBoost, LightGBM, CatBoost, weights of PyTorch, or a pickle",
        "model.onnx",
    )
    object: Reference = optional(
        "module:attribute of a fitted model, or of the module for these weights",
        "loan:model",
    )
    method: Method = optional("What the model is asked for", "predict_proba", default="predict")
    class_: Decision = optional("The class whose probability counts", 1, alias="class")
    cut: Annotated[float, Field(allow_inf_nan=False)] = optional(
        "Probabilities or numbers from here on are favourable", 0.3
    )
    dtypes: dict[str, str] = optional(
        "Types of columns in training, if the model does not know them", {"sex": "category"}
    )
    device: Text = optional("Where PyTorch or ONNX computes", "cuda", default="cpu")


class CommandSubject(Subject):
    """A program that is started once for each input."""

    is_outside = True

    kind: Literal["command"]
    command: Command = required(
        "The program and its arguments, no shell; {race} stands for a value",
        ["python", "loan.py"],
    )
    arguments: Literal["positional", "named", "json", "csv"] = optional(
        "How the input is passed: as arguments, or on standard input", "positional"
    )
    answer: Annotated[str, Field(pattern=r"^(last-line|stdout|exit-code|/.*)$")] = optional(
        "Where the output is: last-line, stdout, exit-code, or a JSON pointer",
        *("last-line", "stdout", "exit-code", "/decision"),
    )
    env: dict[str, str] = optional("Environment variables", {"LANG": "C"})
    cwd: Text = optional("The folder in which it runs", "build")
    timeout_seconds: Positive = optional("How long one execution may take", 5)


class WorkerSubject(Subject):
    """A program that stays alive and answers one line for each line it reads."""

    is_outside = True

    kind: Literal["worker"]
    command: Command = required("The program and its arguments, no shell", ["python", "worker.py"])
    format: Literal["jsonl", "csv"] = optional("JSON lines or CSV lines", "jsonl")
    env: dict[str, str] = optional("Environment variables", {"LANG": "C"})
    cwd: Text = optional("The folder in which it runs", "build")
    start_seconds: Positive = optional("How long it may take to start", 30)
    timeout_seconds: Positive = optional("How long one execution may take", 5)
    recycle_after: int = optional("Start it afresh after this many executions", 100_000, ge=1)


Url: TypeAlias = Annotated[str, Field(pattern=r"^https?://[^\s/]")]


class HttpSubject(Subject):
    """A web service."""

    is_outside = True

    kind: Literal["http"]
    url: Url = required("Where requests are sent", "http://localhost:8000/decide")
    method: Literal["GET", "POST", "PUT", "PATCH"] = optional("The HTTP method", "POST")
    headers: dict[str, str] = optional("HTTP headers", {"Accept": "application/json"})
    body: Body = optional("A JSON template with places like {race}; {input} or {inputs}", "{input}")
    answer: Annotated[str, Field(pattern="^(text|status|/.*)?$")] = optional(
        "Where the output is: text, status, or a JSON pointer", "/decision"
    )
    concurrency: int = optional("Requests at the same time", 8, ge=1)
    rate_per_second: Positive = optional("Requests per second at most", 100)
    retries: int = optional("How often a failed request is sent again", 3, ge=0)
    timeout_seconds: Positive = optional("How long one request may take", 5)


class Prompt(Table):
    """What a language model is told about each input."""

    user: PromptTexts = required(
        "The message, with places like {race}: a text, { file = … }, or a list of those",
        "The applicant is {age}.",
    )
    system: PromptTexts = optional("The system message, likewise", "You decide on loans.")
    paraphrases: PromptTexts = optional(
        "Further wordings; each input gets one, and keeps it in comparisons",
        ["Should {age} year olds get a loan?", {"file": "other.txt"}],
    )


class PricesTable(Table):
    """What tokens cost, in any currency."""

    input: Price = required("Per million tokens read", 0.15)
    output: Price = required("Per million tokens written", 0.60)


class ChatSubject(Subject):
    """A language model behind an API of chat completions."""

    is_outside = True
    pilot = 100

    kind: Literal["chat"]
    url: Url = required(
        "The base of the API; /chat/completions is added",
        "https://api.example.com/v1",
    )
    model: Text = optional("Which model, if the address does not say", "small-1")
    headers: dict[str, str] = optional("HTTP headers", {"Authorization": "Bearer ${API_KEY}"})
    prompt: Prompt = required(
        "What the model is told about each input", {"user": "The applicant is {age}. Approve?"}
    )
    parameters: dict[str, Any] = optional(
        "Further parameters, sent unchanged", {"temperature": 0.7, "max_tokens": 5}
    )
    answer: Annotated[str, Field(pattern="^(text|/.*)$")] = optional(
        "Where the output is: text, or a JSON pointer into a message of JSON",
        "/decision",
        default="text",
    )
    json_schema: dict[str, Any] = optional(
        "The JSON Schema of messages, for models that support one",
        {"type": "object", "properties": {"decision": {"enum": ["approved", "denied"]}}},
    )
    refusals: Annotated[list[Text], Field(min_length=1)] = optional(
        "Texts that decline to decide: one more decision, whose rates are measured",
        ["I can't*", "I'm sorry*"],
    )
    prices: PricesTable = optional("What a million tokens cost", {"input": 0.15, "output": 0.60})
    concurrency: int = optional("Requests at the same time", 8, default=8, ge=1)
    rate_per_second: Positive = optional("Requests per second at most", 10)
    requests_per_minute: Positive = optional("Requests per minute at most", 500)
    tokens_per_minute: Positive = optional("Tokens per minute at most", 200_000)
    retries: int = optional("How often a failed request is sent again", 3, ge=0)
    timeout_seconds: Positive = optional("How long one request may take", 120, default=60)

    @property
    def meanings(self) -> Mapping[str, Sequence[str]] | None:
        return None if self.labels is None else with_refusals(self.labels, self.refusals or ())

    def own_outputs(self) -> tuple[Output, ...]:
        if self.refusals is None or self.meanings is None:
            return ()
        return refusal_outputs(self.meanings, self.favourable)


AnySubject: TypeAlias = Annotated[
    PythonSubject | ModelSubject | CommandSubject | WorkerSubject | HttpSubject | ChatSubject,
    Field(discriminator="kind"),
]
SUBJECTS: dict[str, type[Subject]] = {
    get_args(model.model_fields["kind"].annotation)[0]: model
    for model in get_args(get_args(AnySubject)[0])
}
