"""What is wrong with the keys of a file and with their values, in plain words."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from themis.config.format import TABLES, Characteristic, File, RangeInput, ValuesInput
from themis.config.tables import SUBJECTS, Subject, Table
from themis.config.toml import KeyPath, spell_value
from themis.errors import Mistake, suggest
from themis.subjects.outputs import ANSWERED, REFUSAL, favourable_mistakes, label_mistakes, listed
from themis.subjects.outputs import CODE as LABELS
from themis.subjects.trained import WEIGHTS

_SECRET = frozenset({"headers", "url", "env"})  # what stands there is never shown


@dataclass(frozen=True)
class Complaint:
    """A mistake in the keys of a file and the path of the key, which tells its place."""

    path: KeyPath
    mistake: Mistake


def find_complaints(data: Mapping[str, Any]) -> list[Complaint]:
    """All that is wrong with the keys of a file and with the types of their values."""
    readable, complaints = _settle_kind(data)
    try:
        File.model_validate(readable)
        faults = []
    except ValidationError as error:
        faults = [_Fault.of(each) for each in error.errors(include_url=False)]
    unknown = [each for each in faults if each.is_unknown]
    misspelt = {
        (*fault.table, near)
        for fault in unknown
        for near in difflib.get_close_matches(fault.key, fault.keys, n=1)
    }
    told = [
        each
        for each in faults
        if not (each.is_missing and each.path in misspelt) and not each.is_about_labels
    ]
    complaints += [each.complaint() for each in told]
    return complaints + list(_choice_complaints(readable, misspelt))


@dataclass(frozen=True)
class _Fault:
    """One error of pydantic: in which table, under which key of it."""

    error: ErrorDetails
    model: type[Table]  # of that table
    table: KeyPath
    inside: KeyPath  # from the table on: its key, then places inside of that key's value

    @classmethod
    def of(cls, error: ErrorDetails) -> _Fault:
        """The place in the file; pydantic's also names the member of a union."""
        place = tuple(part for part in error["loc"] if part != "[key]")
        model = TABLES.get(str(place[0])) if place else None
        if model is None:
            return cls(error, File, (), place)
        depth = 2 if get_origin(File.keys()[str(place[0])].annotation) in (dict, list) else 1
        table, inside = place[:depth], place[depth:]
        if isinstance(model, Mapping) and inside:
            model, inside = model[str(inside[0])], inside[1:]
        if isinstance(model, Mapping) or not inside:
            return cls(error, File, (), table)
        if len(inside) > 1 and (inner := model.inner(str(inside[0]))) is not None:
            model, table, inside = inner, (*table, inside[0]), inside[1:]
        return cls(error, model, table, inside)

    @property
    def path(self) -> KeyPath:
        return (*self.table, *self.inside)

    @property
    def is_missing(self) -> bool:
        return self.error["type"] == "missing"

    @property
    def is_unknown(self) -> bool:
        return self.error["type"] == "extra_forbidden"

    @property
    def is_about_labels(self) -> bool:
        """Whether it is in the patterns of labels, or in what names them: the reader tells that."""
        return self.error.get("ctx", {}).get("code") == LABELS

    @property
    def key(self) -> str:
        return str(self.inside[0]) if self.inside else ""

    @property
    def keys(self) -> list[str]:
        """All keys that the table may have, those that only it has first."""
        return sorted(self.model.keys(), key=lambda key: key in _COMMON)

    def complaint(self) -> Complaint:
        code, problem, remedy = self._words()
        return _complaint(code, self.path, problem, remedy)

    def _words(self) -> tuple[str, str, str]:
        kind, received = self.error["type"], self.error["input"]
        context = self.error.get("ctx", {})
        if kind == "broken_rule":
            problem = context.get("problem") or context["rule"].format(_show(received))
            remedy = context["remedy"] or self._example()
            return context.get("code", "setting"), problem, remedy
        if self.is_unknown:
            beside = _BESIDE.get(self.model, "")
            meant = "" if self.key in _SHAPES else self.key  # no misspelling, but of another shape
            remedy = self._elsewhere() or suggest(meant, self.keys)
            return "unknown-key", f"there is no such key{beside}", remedy
        code, rule, remedy = _WORDS.get(kind, _OTHER_WORDS)
        problem = rule.format(**context)
        may_be_secret = not _SECRET.isdisjoint(self.path)
        if code in {"wrong-type", "not-allowed", "out-of-range"} and not may_be_secret:
            problem += f", got {_show(received)}"
        if kind == "literal_error" and isinstance(received, str):
            remedy = suggest(received, get_args(self.model.keys()[self.key].annotation))
        if kind == "bool_type" and not isinstance(received, str):
            remedy = ""
        return code, problem, remedy or self._example()

    def _elsewhere(self) -> str:
        """The remedy for a key of another table; else nothing."""
        for name in ("subject", "run", "profile", "report", "checks"):
            table = TABLES[name]
            models = table.values() if isinstance(table, Mapping) else (table,)
            if name not in self.table and any(self.key in {*each.keys()} for each in models):
                return f"write it in {_HEADERS[name]}"
        return ""

    def _example(self) -> str:
        """The remedy that shows how the key is written."""
        if self.model is File and self.key in _HEADERS and len(self.inside) == 1:
            return f"write {_HEADERS[self.key]} and its keys below"
        if self.key == "labels" and len(self.inside) > 1:
            return 'write a list of texts, such as ["approved*", "yes"]'
        if len(self.inside) > 1 and self.key != "against":
            return "write a table in { }"
        known = self.model.keys().get(self.key)
        if known is None:
            return suggest(self.key, self.keys)
        written = f"{self.key} = {' or '.join(map(spell_value, known.examples or ()))}"
        return f"write {written}" if self.is_missing else f"write for example {written}"


_COMMON = {*Subject.keys(), *Characteristic.keys()}
_SHAPES = {*ValuesInput.keys(), *RangeInput.keys()}
_BESIDE: dict[type[Table], str] = {
    ValuesInput: " beside values",
    RangeInput: " beside min and max",
    **{model: f" for the kind {kind!r}" for kind, model in SUBJECTS.items()},
}
_HEADERS = {
    **{name: f"[{name}]" for name in ("subject", "inputs", "constraints", "run", "profile")},
    "report": "[report]",
    "outputs": "[outputs.limit]",
    "checks": "[[checks]]",
    "accepted": "[[accepted]]",
}
_WORDS = {  # pydantic's type of error → code, rule, remedy unless an example is the best one
    "missing": ("missing-key", "is missing", ""),
    "string_type": ("wrong-type", "must be text", "write it in quotes"),
    "bool_type": ("wrong-type", "must be true or false", "write it without quotes"),
    "int_type": ("wrong-type", "must be a whole number", ""),
    "float_type": ("wrong-type", "must be a number", ""),
    "finite_number": ("wrong-type", "must be a finite number", ""),
    **dict.fromkeys(("list_type", "tuple_type"), ("wrong-type", "must be a list", "")),
    "date_type": ("wrong-type", "must be a date", "write it as 2027-03-31, without quotes"),
    **dict.fromkeys(
        ("dict_type", "model_type", "model_attributes_type"), ("wrong-type", "must be a table", "")
    ),
    "invalid_key": ("wrong-type", "the name of a key must be text", "write it in quotes"),
    "literal_error": ("not-allowed", "must be {expected}", ""),
    "string_pattern_mismatch": ("not-allowed", "is not written as it should be", ""),
    "string_too_short": ("empty", "is empty", ""),
    "too_short": ("empty", "is empty", ""),
    "greater_than": ("out-of-range", "must be more than {gt:g}", ""),
    "greater_than_equal": ("out-of-range", "must be at least {ge:g}", ""),
    "less_than_equal": ("out-of-range", "must be at most {le:g}", ""),
    "union_tag_not_found": (
        "no-values",
        "there are neither values nor min and max",
        'write values = ["green", "purple"], or min = 18 and max = 120',
    ),
}
_OTHER_WORDS = ("not-allowed", "can't be used here", "`themis schema` shows what can")


def _settle_kind(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Complaint]]:
    """The data with a kind of subject that exists, so that its other keys can be checked."""
    subject = data.get("subject")
    if not isinstance(subject, Mapping) or subject.get("kind") in tuple(SUBJECTS):
        return data, []
    kind = subject.get("kind")
    near = difflib.get_close_matches(kind, SUBJECTS, n=1) if isinstance(kind, str) else []
    fitting = max(SUBJECTS, key=lambda each: len(SUBJECTS[each].keys().keys() & subject))
    problem = f"must be one of {', '.join(SUBJECTS)}, got {_show(kind)}"
    code = "not-allowed"
    if kind is None:
        code, problem = "missing-key", "is missing"
    guess = near[0] if near else fitting
    complaint = _complaint(code, ("subject", "kind"), problem, f'write kind = "{guess}"')
    return {**data, "subject": {**subject, "kind": guess}}, [complaint]


def _choice_complaints(data: Mapping[str, Any], misspelt: set[KeyPath]) -> Iterator[Complaint]:
    """What is wrong with keys that fit on their own: both or neither of two, no fitting limit."""
    subject = table_of(data, "subject")
    if subject.get("kind") == "model":
        given = [key for key in ("file", "object") if key in subject]
        if len(given) == 2 and not str(subject["file"]).lower().endswith(WEIGHTS):
            yield _complaint("both-given", ("subject",), "both file and object are given", _REMOVE)
        elif not given and misspelt.isdisjoint({("subject", "file"), ("subject", "object")}):
            remedy = 'write file = "model.onnx" or object = "loan:model"'
            yield _complaint("no-model", ("subject",), "there is no model", remedy)
    for number, check in tables_of(data, "checks"):
        path: KeyPath = ("checks", number)
        search = check.get("search", False)
        if "against" in check and search is True:
            yield _complaint("both-given", path, "both against and search are given", _REMOVE)
        hopeless = misspelt.isdisjoint({(*path, "against"), (*path, "search")})
        if "against" not in check and search is False and hopeless:
            remedy = 'write against = ["race"], or search = true'
            yield _complaint("nothing-to-check", path, "there is nothing to check", remedy)
        limit = check.get("max_score")
        if search is True and isinstance(limit, int | float) and limit in (0, 1):
            problem = f"a search needs a limit between 0 and 1, got {_show(limit)}"
            yield _complaint("threshold", (*path, "max_score"), problem, "write 0.05 for 5 %")


def find_references(data: Mapping[str, Any], is_wrong: Callable[..., bool]) -> Iterator[Complaint]:
    """What is wrong with names of outputs and labels; `is_wrong` are keys with another mistake."""
    subject, outputs = table_of(data, "subject"), table_of(data, "outputs")
    known = list(outputs) or (["decision", ANSWERED] if "refusals" in subject else [])
    for section in ("checks", "accepted"):
        for number, table in tables_of(data, section):
            name = table.get("output")
            if isinstance(name, str) and name not in known:
                remedy = suggest(name, known) if known else f"declare it as [outputs.{name}]"
                problem = f"there is no output {name!r}"
                yield _complaint("unknown-output", (section, number, "output"), problem, remedy)
    tables: dict[KeyPath, Any] = {("subject",): subject}
    tables |= {("outputs", name): table for name, table in outputs.items()}
    for path, table in tables.items():
        yield from _label_complaints(path, table, is_wrong)
    if "labels" in subject and outputs:
        problem, remedy = "the outputs have labels of their own", "write [outputs.NAME.labels]"
        yield _complaint(LABELS, ("subject", "labels"), problem, remedy)
    if not is_wrong("subject", "refusals"):
        yield from _refusal_complaints(subject)


def _label_complaints(
    path: KeyPath, table: Any, is_wrong: Callable[..., bool]
) -> Iterator[Complaint]:
    """Whether labels and their patterns make sense, and whether `favourable` names labels."""
    labels = table.get("labels") if isinstance(table, Mapping) else None
    if not isinstance(labels, Mapping):
        return
    for each in label_mistakes(listed(labels)):
        if not is_wrong(*path, "labels", *each.path):
            yield _complaint(LABELS, (*path, "labels", *each.path), each.problem, each.remedy)
    favourable = table.get("favourable", ())
    if isinstance(favourable, list) and not is_wrong(*path, "favourable"):
        for broken in favourable_mistakes(favourable, labels):
            yield _complaint(LABELS, (*path, "favourable"), *broken)


def _refusal_complaints(subject: Mapping[str, Any]) -> Iterator[Complaint]:
    refusals, path = subject.get("refusals"), ("subject", "refusals")
    if not isinstance(refusals, list):
        return
    for each in label_mistakes({REFUSAL: refusals}):
        yield _complaint(LABELS, (*path, *each.path[1:]), each.problem, each.remedy)
    if "labels" not in subject:
        problem = "only labels tell decisions from refusals"
        remedy = 'write [subject.labels], for example approved = ["approved*"]'
        yield _complaint(LABELS, path, problem, remedy)


def table_of(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A table of a file, empty where there is none."""
    table = data.get(name, {})
    return table if isinstance(table, Mapping) else {}


def tables_of(data: Mapping[str, Any], section: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The tables of a list, with their numbers."""
    tables = data.get(section, [])
    for number, table in enumerate(tables if isinstance(tables, list) else []):
        if isinstance(table, Mapping):
            yield number, table


_REMOVE = "remove one of them"


def _complaint(code: str, path: KeyPath, problem: str, remedy: str) -> Complaint:
    return Complaint(path, Mistake(code, "", problem, remedy))


def _show(value: Any) -> str:
    """A received value in a message: on one line, and short."""
    if isinstance(value, Mapping):
        return "a table"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    if hasattr(value, "isoformat"):
        text = value.isoformat()
    return text if len(text) <= 60 else f"{text[:59]}…"
