"""The format of `themis.toml`: which keys there are, of which shape, and what they are for.

The JSON Schema for editors and the complaints about a wrong file both come from these models. Where
a table becomes a dataclass (settings, outputs, checks, acceptances), its keys are the fields of the
dataclass that have a description. Rules of characteristics are only shown to editors here; `Schema`
checks them.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

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
    SUBJECTS,
    VALUE,
    AnySubject,
    Table,
    Text,
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
from themis.subjects.outputs import Output

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
Leaders: TypeAlias = Annotated[
    Any, AfterValidator(_check_leaders), WithJsonSchema({"anyOf": [_NAME, _NAMES]})
]
Sets: TypeAlias = list[Annotated[list[str], Field(min_length=1)]]


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
