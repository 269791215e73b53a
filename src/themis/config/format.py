"""The format of `themis.toml`: which keys there are, of which shape, and what they are for.

The JSON Schema for editors and the complaints about a wrong file both come from these models. Where
a table becomes a dataclass (settings, outputs, checks, acceptances), its keys are the fields of the
dataclass that have a description. Rules of characteristics are only shown to editors here; `Schema`
checks them.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
)

from themis import keys
from themis.config.tables import (
    VALUE,
    Decision,
    Decisions,
    Table,
    broken,
    optional,
    read_from,
    required,
    table_of,
)
from themis.errors import Mistake
from themis.inputs.characteristics import Role
from themis.inputs.people import Unknown
from themis.results.verdicts import Acceptance, Check
from themis.settings import Settings
from themis.subjects.base import CostKind
from themis.subjects.decisions import DEFAULT_FAVOURABLE
from themis.subjects.meanings import with_refusals
from themis.subjects.outputs import SIMILAR_TEXTS, Output, Similarity, refusal_outputs
from themis.subjects.trained import Method

VERSION = 1  # of the file format; the only one that this Themis reads


def format_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of `themis.toml`, for editors."""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **File.model_json_schema()}


def _check_version(version: int) -> int:
    if version != VERSION:
        problem = f"this Themis reads version {VERSION} of the format, got {version}"
        remedy = f"write version = {VERSION}, or install a Themis that reads version {version}"
        raise broken(Mistake("not-allowed", "", problem, remedy))
    return version


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


def _check_leaders(given: Any) -> Any:
    every = given if isinstance(given, list) and given else [given]
    if not all(isinstance(each, str) and each for each in every):
        problem = "must be a characteristic, or a list of some"
        raise broken(Mistake("wrong-type", "", problem, 'write "sex", or ["sex", "age"]'))
    return given


_NAME = {"type": "string", "minLength": 1}
_NAMES = {"type": "array", "minItems": 1, "items": _NAME}
_LIST = {"type": "array", "minItems": 1, "uniqueItems": True, "items": VALUE}

# Checked where they are used; the JSON Schema is for editors.
Number: TypeAlias = Annotated[Any, WithJsonSchema({"type": "number"})]
Numbers: TypeAlias = Annotated[
    list[Any], WithJsonSchema({"type": "array", "minItems": 1, "items": {"type": "number"}})
]
ValueList: TypeAlias = Annotated[Any, WithJsonSchema(_LIST)]
_TABLE = {"type": "object", "minProperties": 1}
_DERIVED = {**_TABLE, "additionalProperties": {"anyOf": [VALUE, _TABLE]}}
ValuesOrTable: TypeAlias = Annotated[Any, WithJsonSchema({"anyOf": [_LIST, _DERIVED]})]
ValueTable: TypeAlias = Annotated[
    Any, WithJsonSchema({**_TABLE, "additionalProperties": {**_TABLE, **_DERIVED}})
]

Text: TypeAlias = Annotated[str, Field(min_length=1)]
Leaders: TypeAlias = Annotated[
    Any, AfterValidator(_check_leaders), WithJsonSchema({"anyOf": [_NAME, _NAMES]})
]
Price: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Reference: TypeAlias = Annotated[str, Field(pattern=r"^[^\s:]+:[^\s:]+$")]
Command: TypeAlias = Annotated[list[str], Field(min_length=1)]
Sets: TypeAlias = list[Annotated[list[str], Field(min_length=1)]]
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


class Characteristic(Table):
    weights: Numbers = optional("How frequent each value is", [0.9, 0.1])
    protected: bool = optional(
        "Protected by law or by you; measured by default", True, default=False
    )
    role: Role = optional(
        "input: given and compared; context: given, never compared; group: only known of people",
        "group",
        default="input",
    )
    missing: Number = optional("The share of inputs without a value", 0.07)
    missing_as_counterfactual: bool = optional(
        "Whether a value may be compared with none", True, default=False
    )


class ValuesInput(Characteristic):
    """A characteristic with a list of values."""

    values: ValuesOrTable = required("All its values", ["green", "purple"])
    follows: Text = optional("The characteristic whose changes it follows", "sex")
    as_: ValueTable = optional(
        "What its values become, by value or bin of what it follows",
        {"Female": {"Husband": "Wife"}, "Male": {"Wife": "Husband"}},
        alias="as",
    )
    from_: Leaders = optional(
        "What it is derived from: `values` has one for each of its values, or tables for several",
        "sex",
        alias="from",
    )


class OpenInput(Table):
    """A context whose values are those of given rows, each row its own."""

    role: Literal["context"] = required("Given as the row has it, never compared", "context")


class DocumentsInput(Table):
    """Texts that are sent, one for each input, with places of their own."""

    documents: Text = required(
        "A CSV, JSON lines or Parquet file with a text in each row",
        "resumes.csv",
    )
    column: Text = optional("The column of the texts", "text", default="text")


class NamesInput(Table):
    """Names that go with what somebody is."""

    names: Text = required(
        "A CSV, JSON lines or Parquet file with a name in each row",
        "names.csv",
    )
    by: list[Text] = required(
        "The characteristics, columns of the file, that names go with",
        ["sex", "ethnicity"],
        min_length=1,
    )
    column: Text = optional("The column of the names", "name", default="name")


class RangeInput(Characteristic):
    """Numbers from min to max, both included; whole ones unless one is written with a point."""

    min: Number = required("The smallest value", 18)
    max: Number = required("The largest value", 120)
    step: Number = optional("From one value to the next; 1 for whole numbers", 0.5)
    bins: Numbers = optional("The first value of each bin but the lowest", [40, 65])


def _input_shape(spec: Any) -> str | None:
    """Which of the ways to describe a characteristic this one tries to be."""
    if not isinstance(spec, Mapping):
        return "list"
    if "values" in spec:
        return "values"
    if any(key in spec for key in ("min", "max", "step", "bins")):
        return "range"
    if (own := next((key for key in ("documents", "names") if key in spec), None)) is not None:
        return own
    if spec.keys() == {"role"} and spec["role"] == "context":
        return "open"
    shapes = ("values", "documents", "names")
    return next((key for key in shapes if difflib.get_close_matches(key, map(str, spec))), None)


Input: TypeAlias = Annotated[
    Annotated[ValueList, Tag("list")]
    | Annotated[ValuesInput, Tag("values")]
    | Annotated[RangeInput, Tag("range")]
    | Annotated[DocumentsInput, Tag("documents")]
    | Annotated[NamesInput, Tag("names")]
    | Annotated[OpenInput, Tag("open")],
    Discriminator(_input_shape),
]


class Profile(Table):
    """Whom inputs are drawn from: rows of people, instead of all that the inputs allow."""

    data: Text = required("A CSV, JSON lines or Parquet file of people", "people.csv")
    weights: Text = optional("The column that says how often a row occurs", "count")
    unknown: Unknown = optional(
        "Rows with values that the inputs lack",
        default="keep",
    )


class Report(Table):
    """What reports call the program, its people, its decision and the values of its inputs."""

    name: Text = optional("What was tested, for the title of a report", "Loan screen")
    version: Text = optional("Which version of it", "2026.3")
    owner: Text = optional("Who is responsible for it", "Credit department")
    purpose: Text = optional("What it decides", "First decision on consumer loans")
    auditor: Text = optional("Who tested it", "Internal audit")
    why_test_data: Text = optional(
        "Why it was tested on test data instead of historical data, for the annex",
        "No historical data: the program is not in use yet",
    )
    why_metrics: Text = optional(
        "Why these measures, for the annex", "Approval is the decision that applicants feel"
    )
    data_source: Text = optional(
        "Where the data come from and of which period, for the annex",
        "Applications from January to June 2026",
    )
    distribution_date: Text = optional(
        "Since when the program is in use, for the annex", "2026-09-01"
    )
    independence: Text = optional(
        "How the auditor relates to the owner, for the annex",
        "No other contract with the owner in the past two years",
    )
    people: Text = optional(
        "Whom it decides on, in the plural: sentences are about test applicants then, instead of "
        "test inputs",
        "applicants",
    )
    decision: Text = optional(
        "The favourable decision as a noun: sentences are about approval rates then", "approval"
    )
    values: dict[str, dict[str, Text]] = optional(  # the reader checks the names
        "Words for values, by characteristic", {"sex": {"female": "women", "male": "men"}}
    )
    eeo1: dict[str, dict[str, Text]] = optional(
        "Names of EEO-1 categories for values, by characteristic, for the annex",
        {"sex": {"female": "Female", "male": "Male"}},
    )
    rows: bool = optional(
        "Whether reports, terminals and suites may show rows of people", True, default=False
    )


OutputTable = table_of(
    Output,
    "MeasuredOutput",
    "One output that is measured; several are read off the same executions.",
)


@dataclass(frozen=True, kw_only=True)
class Run(Settings):
    """The table [run]: settings, and the sets that are measured where none is named."""

    against: tuple[tuple[str, ...], ...] | None = keys.optional(
        None,
        "The sets that `themis score` measures. Default: each protected one",
        [["race"], ["race", "sex"]],
        annotation=Sets,
        min_length=1,
    )

    @property
    def settings(self) -> Settings:
        """The settings alone."""
        return Settings(**{name: getattr(self, name) for name in Settings.names()})


RunTable = table_of(Run, "Run", "What is measured, how precisely, at which cost.")
CheckTable = table_of(
    Check,
    "Check",
    "A limit that `themis check` enforces: on one set of characteristics, or on all.",
)
AcceptedTable = table_of(
    Acceptance, "Accepted", "A finding that `themis check` lets pass for a while, visibly."
)

AnySubject: TypeAlias = Annotated[
    PythonSubject | ModelSubject | CommandSubject | WorkerSubject | HttpSubject | ChatSubject,
    Field(discriminator="kind"),
]


class File(Table):
    """The settings of Themis, which tests decision software for discrimination."""

    model_config = ConfigDict(title="themis.toml")
    version: Annotated[int, AfterValidator(_check_version), WithJsonSchema({"const": VERSION})] = (
        required("The version of this file format", VERSION)
    )
    subject: AnySubject = required("The software under test")
    inputs: dict[str, Input] = required(
        "The characteristics, in the order of the arguments",
        json_schema_extra={"minProperties": 1},
    )
    constraints: dict[str, str] = optional(
        "Conditions that every input meets, by name", {"adult": "age >= 18"}
    )
    outputs: dict[str, Annotated[Output, read_from(OutputTable)]] = optional(
        "What is measured, if not one plain decision",
        {"limit": {"at": "/limit", "min": 0, "max": 5000, "distance": "relational"}},
        default_factory=dict,
    )
    run: Annotated[Run, read_from(RunTable)] = optional(
        "Confidence, precision and cost", {"confidence": 0.99}, default_factory=Run
    )
    profile: Profile = optional("People to draw inputs from", {"data": "people.csv"})
    report: Report = optional("Words for reports", {"people": "applicants"})
    checks: list[Annotated[Check, read_from(CheckTable)]] = optional(
        "What `themis check` enforces",
        [{"against": ["race"], "max_score": 0.05}],
        default_factory=list,
    )
    accepted: list[Annotated[Acceptance, read_from(AcceptedTable)]] = optional(
        "Findings that `themis check` lets pass for a while",
        default_factory=list,
    )


SUBJECTS: dict[str, type[Subject]] = {
    get_args(model.model_fields["kind"].annotation)[0]: model
    for model in get_args(get_args(AnySubject)[0])
}
INPUTS: dict[str, type[Table]] = {
    "values": ValuesInput,
    "range": RangeInput,
    "open": OpenInput,
    "documents": DocumentsInput,
    "names": NamesInput,
}
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
