"""Reads `themis.toml`, reports its mistakes with their lines, and places later ones there.

Passes over the file, each of which reports all mistakes of its kind and rests on there being none
of those before: the keys and their values (the models of `format`), the characteristics, how these
fit together, and what refers to them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from themis.config.complaints import find_complaints
from themis.config.format import AnySubject, File, Profile, format_schema
from themis.config.toml import KeyPath, key_lines, parse_toml, spell_path
from themis.errors import ConfigError, Mistake, RequestError, SchemaError, suggest
from themis.inputs.characteristics import Characteristic
from themis.inputs.documents import documents
from themis.inputs.documents import names as names_of
from themis.inputs.expressions import quote
from themis.inputs.following import level_names
from themis.inputs.population import Population
from themis.inputs.row_files import kind_of
from themis.inputs.schema import Schema, characteristic_from
from themis.results.parts import Naming
from themis.results.verdicts import Acceptance, Check
from themis.settings import Settings
from themis.subjects.meanings import CODE as LABELS
from themis.subjects.meanings import REFUSAL, favourable_mistakes, label_mistakes, listed
from themis.subjects.outputs import ANSWERED, Output
from themis.subjects.prompts import prompt_of

__all__ = [
    "Config",
    "config_of",
    "find_config",
    "format_schema",
    "load_config",
    "placing",
    "prefix_of",
    "read_config",
]

FILE_NAME = "themis.toml"
PROJECT_FILE_NAME = "pyproject.toml"
INIT_REMEDY = "run `themis init` to write one"


@dataclass(frozen=True)
class Config:
    """A configuration file without mistakes."""

    path: Path
    folder: Path  # the file's own, absolute: what the subject's paths are relative to
    subject: AnySubject
    schema: Schema
    settings: Settings
    checks: tuple[Check, ...]
    outputs: tuple[Output, ...] = ()
    profile: Profile | None = None
    accepted: tuple[Acceptance, ...] = ()
    against: tuple[tuple[str, ...], ...] = ()  # the sets of [run], in schema order
    lines: Mapping[str, int] = field(default_factory=dict)  # of each key: "subject.command"
    report: Naming = field(default_factory=Naming)
    sha256: str = ""  # of the file's text


def find_config(start: Path) -> Path:
    """The configuration file of a folder: its `themis.toml`, else its `pyproject.toml`.

    The latter counts when it has a table `[tool.themis]`. Raises ConfigError without any.
    """
    own, project = start / FILE_NAME, start / PROJECT_FILE_NAME
    if own.exists():
        return own
    if project.is_file() and _has_table(project):
        return project
    problem = f"there is neither a {FILE_NAME} nor a {PROJECT_FILE_NAME} with [tool.themis]"
    raise ConfigError([Mistake("no-config", "", problem, INIT_REMEDY, file=str(start))])


def load_config(place: Path) -> Config:
    """The configuration of a file, or of the one that `find_config` finds in a folder."""
    return read_config(find_config(place) if place.is_dir() else place)


def read_config(path: Path) -> Config:
    """The configuration that a file describes; raises ConfigError with all of its mistakes."""
    if kind_of(path) is not None:
        problem, remedy = "it is a table, not a themis.toml", f"rows are given as --data {path}"
        raise ConfigError([Mistake("no-config", "", problem, remedy, file=str(path))])
    return config_of(_read_text(path), path)


def config_of(text: str, path: Path) -> Config:
    """The configuration that a text describes where it is, or would be, the file at a path."""
    prefix = prefix_of(path)
    try:
        data = _section(parse_toml(text), prefix)
    except ConfigError as error:
        raise ConfigError(m.at(file=str(path), line=m.line) for m in error.mistakes) from None
    found = _Findings(str(path), text, prefix)
    if not data:
        what = "there is no [tool.themis] in it" if prefix else "the file is empty"
        raise ConfigError([Mistake("empty-file", "", what, INIT_REMEDY, str(path))])
    hashed = hashlib.sha256(text.encode("utf-8")).hexdigest()
    return replace(_Reader(data, found).read(path), sha256=hashed)


def prefix_of(path: Path) -> KeyPath:
    """The table of a file that holds the whole configuration; empty where the file does."""
    return ("tool", "themis") if path.name == PROJECT_FILE_NAME else ()


class _Findings:
    """The mistakes of a file so far, each with its line."""

    def __init__(self, file: str, text: str, prefix: KeyPath) -> None:
        self._mistakes: list[Mistake] = []
        self._file = file
        self._lines = key_lines(text)
        self._prefix = prefix

    def add(self, path: KeyPath, mistake: Mistake) -> None:
        """Report a mistake at a key, or where that would stand if it is missing."""
        placed = mistake.at(file=self._file, line=self.line(path))
        self._mistakes.append(replace(placed, where=spell_path(path)))

    def check(self) -> None:
        """Raise ConfigError if there are mistakes: what is checked next rests on there being none.

        They are in the order of their lines.
        """
        if self._mistakes:
            raise ConfigError(sorted(self._mistakes, key=lambda each: each.line or 0))

    def line(self, path: KeyPath) -> int:
        """The line of a key, or of the innermost table around it that is there."""
        full = (*self._prefix, *path)
        lengths = range(len(full), 0, -1)
        return next((self._lines[full[:n]] for n in lengths if full[:n] in self._lines), 1)

    def lines_by_name(self) -> dict[str, int]:
        """The line of every key of the file, by how the key is spelled."""
        depth = len(self._prefix)
        inside = ((path, n) for path, n in self._lines.items() if path[:depth] == self._prefix)
        return {spell_path(path[depth:]): line for path, line in inside if path[depth:]}


class _Reader:
    """Turns the data of a file into a configuration, pass by pass."""

    def __init__(self, data: Mapping[str, Any], found: _Findings) -> None:
        self._data = data
        self._folder = Path()
        self._found = found
        self._characteristics: dict[str, Characteristic] = {}

    def read(self, path: Path) -> Config:
        self._folder = path.resolve().parent
        for complaint in find_complaints(self._data):
            self._found.add(complaint.path, complaint.mistake)
        self._found.check()
        self._check_labels()
        self._found.check()
        file, line = File.model_validate(self._data), self._found.line
        self._read_characteristics()
        self._read_prompt()
        self._found.check()
        schema = self._schema(file)
        self._check_sets(file, schema)
        self._check_outputs(file)
        self._check_repeated_acceptances(file)
        self._check_value_words(file, schema)
        self._found.check()

        def ordered(names: tuple[str, ...] | None) -> tuple[str, ...]:
            return tuple(name for name in schema.names if name in (names or ()))

        return Config(
            path,
            self._folder,
            file.subject,
            schema,
            file.run.settings,
            tuple(
                replace(e, against=ordered(e.against) or None, name="", line=line(("checks", n)))
                for n, e in enumerate(file.checks)
            ),
            tuple(replace(each, name=name) for name, each in file.outputs.items())
            or file.subject.own_outputs(),
            file.profile,
            tuple(
                replace(e, against=ordered(e.against), line=line(("accepted", n)))
                for n, e in enumerate(file.accepted)
            ),
            tuple(dict.fromkeys(ordered(tuple(names)) for names in file.run.against or ())),
            self._found.lines_by_name(),
            _naming(file),
        )

    def _read_characteristics(self) -> None:
        for name, spec in self._data["inputs"].items():
            try:
                Schema({name: [0]})  # the name alone
                self._add_inputs(self._read_spec(name, spec), name)
            except SchemaError as error:
                for mistake in error.mistakes:
                    self._found.add(("inputs", name), mistake)
            except RequestError as error:  # of a file that it names
                for each in error.mistakes:
                    line = "" if each.line is None else f", line {each.line:,}"
                    told = f"{Path(each.file).name}{line}: {each.problem}" if each.file else ""
                    mistake = replace(each, problem=told or each.problem, line=None)
                    self._found.add(("inputs", name), mistake)

    def _read_spec(self, name: str, spec: Any) -> Mapping[str, Characteristic]:
        """What a spec of the file describes; of names also what they are drawn by."""
        given = dict(spec) if isinstance(spec, Mapping) else {}
        if "documents" in given:
            return {name: documents(self._folder / given.pop("documents"), **given)}
        if "names" in given:
            return dict(names_of(self._folder / given.pop("names"), **given).expanded(name))
        return {name: characteristic_from(spec)}

    def _add_inputs(self, inputs: Mapping[str, Characteristic], own: str) -> None:
        """Add characteristics: one that the file has a table for, and contexts that it needs."""
        for name, each in inputs.items():
            if name != own and name in self._data["inputs"]:
                problem = f"a context of this name is added for {own!r}"
                mistake = Mistake("duplicate-name", "", problem, "rename this one")
                self._found.add(("inputs", name), mistake)
            self._characteristics[name] = each.named(name)

    def _read_prompt(self) -> None:
        """Add the contexts that choose among several texts of a prompt."""
        prompt = self._data["subject"].get("prompt")
        try:
            if prompt is not None:
                self._add_inputs(prompt_of(prompt, self._folder).contexts, "subject.prompt")
        except RequestError as error:
            for mistake in error.mistakes:
                self._found.add(tuple(mistake.where.split(".")), mistake)

    def _schema(self, file: File) -> Schema:
        """The whole schema, if its parts fit together: what follows others, and constraints."""
        try:
            schema = Schema(self._characteristics).constrained(file.constraints or {})
            Population.of(schema)
        except SchemaError as error:
            for mistake in error.mistakes:
                self._found.add(self._place(mistake.where), mistake)
        self._found.check()
        return schema

    def _place(self, where: str) -> KeyPath:
        """The path of what a mistake of a schema is about."""
        of_constraints = {
            f"constraint {e!r}": ("constraints", e) for e in self._table("constraints")
        }
        around, _, key = where.rpartition(".")
        is_key = around.startswith("inputs.")
        path = ("inputs", around.removeprefix("inputs."), key) if is_key else (where,)
        return of_constraints.get(where, path)

    def _table(self, name: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._data.get(name, {})
        return found

    def _check_labels(self) -> None:
        """Whether labels and their patterns make sense, and whether `favourable` names labels."""
        subject, outputs = self._data["subject"], self._table("outputs")
        tables: dict[KeyPath, Mapping[str, Any]] = {("subject",): subject}
        tables |= {("outputs", name): table for name, table in outputs.items()}
        for path, table in tables.items():
            if "labels" not in table:
                continue
            for each in label_mistakes(listed(table["labels"])):
                self._add_label((*path, "labels", *each.path), each.problem, each.remedy)
            for broken in favourable_mistakes(table.get("favourable", ()), table["labels"]):
                self._add_label((*path, "favourable"), *broken)
        if "labels" in subject and outputs:
            problem = "the outputs have labels of their own"
            self._add_label(("subject", "labels"), problem, "write [outputs.NAME.labels]")
        if "refusals" in subject:
            for each in label_mistakes({REFUSAL: subject["refusals"]}):
                place = ("subject", "refusals", *each.path[1:])
                self._add_label(place, each.problem, each.remedy)
            if "labels" not in subject:
                problem = "only labels tell decisions from refusals"
                self._add_label(("subject", "refusals"), problem, _WRITE_LABELS)

    def _add_label(self, path: KeyPath, problem: str, remedy: str) -> None:
        self._found.add(path, Mistake(LABELS, "", problem, remedy))

    def _check_outputs(self, file: File) -> None:
        """Whether checks and acceptances name outputs that are declared."""
        known = [*file.outputs]
        if not known and "refusals" in self._data["subject"]:
            known = ["decision", ANSWERED]
        for path, each in _decisions(file):
            if each.output is not None and each.output not in known:
                other = f"declare it as [outputs.{each.output}]"
                remedy = suggest(each.output, known) if known else other
                problem = f"there is no output {each.output!r}"
                self._found.add((*path, "output"), Mistake("unknown-output", "", problem, remedy))

    def _check_sets(self, file: File, schema: Schema) -> None:
        """Whether all sets are made of characteristics, and limits are on what can be above 0."""
        for path, names in _sets_of(file):
            for name in dict.fromkeys(name for name in names if names.count(name) > 1):
                problem = f"{name!r} appears twice"
                self._found.add(path, Mistake("duplicate-name", "", problem, "remove one"))
            try:
                schema.columns_of(names)
            except RequestError as error:
                for mistake in error.mistakes:
                    self._found.add(path, mistake)
        unread = {schema.names[column] for column in schema.unread}
        for number, check in enumerate(file.checks):
            if check.against and check.measure != "group" and unread.issuperset(check.against):
                problem = "the score of what the program is not given is 0 by construction"
                names = " and ".join(map(quote, check.against))
                remedy = f'write measure = "group", or remove role = "group" from {names}'
                self._found.add(("checks", number), Mistake("check-unread", "", problem, remedy))

    def _check_repeated_acceptances(self, file: File) -> None:
        """Whether a finding is accepted twice, which leaves open until when."""
        first: dict[tuple[str, str | None, frozenset[str]], int] = {}
        for number, each in enumerate(file.accepted):
            key = each.measure, each.output, frozenset(each.against)
            if key in first:
                problem = f"this is accepted already, in line {first[key]}"
                mistake = Mistake("duplicate-acceptance", "", problem, "remove one of them")
                self._found.add(("accepted", number), mistake)
            first.setdefault(key, self._found.line(("accepted", number)))

    def _check_value_words(self, file: File, schema: Schema) -> None:
        """Whether [report.values] and [report.eeo1] name characteristics and values there are."""
        given = {} if file.report is None else file.report.given()
        for path, name, table in (
            (("report", key, name), name, table)
            for key in ("values", "eeo1")
            for name, table in given.get(key, {}).items()
        ):
            if name not in schema:
                problem = f"there is no characteristic {name!r}"
                mistake = Mistake("unknown-name", "", problem, suggest(name, schema.names))
                self._found.add(path, mistake)
                continue
            known = level_names(schema[name])
            for value in (each for each in table if known and each not in known):
                problem = f"{name} has no value {value!r}"
                mistake = Mistake("unknown-value", "", problem, suggest(value, known))
                self._found.add((*path, value), mistake)


def _sets_of(file: File) -> Iterator[tuple[KeyPath, Sequence[str]]]:
    """The sets of the whole file, with their places."""
    for number, names in enumerate(file.run.against or ()):
        yield ("run", "against", number), names
    for path, each in _decisions(file):
        if each.against is not None:
            yield (*path, "against"), each.against


def _decisions(file: File) -> Iterator[tuple[KeyPath, Check | Acceptance]]:
    """The limits of a file and what it accepts, with their places."""
    yield from ((("checks", number), each) for number, each in enumerate(file.checks))
    yield from ((("accepted", number), each) for number, each in enumerate(file.accepted))


def _naming(file: File) -> Naming:
    """The words of the file, with what the subject is called and what it declares favourable."""
    given = {} if file.report is None else file.report.given()
    favourable = file.subject.favourable if "favourable" in file.subject.given() else ()
    return Naming(**given, program=file.subject.program, favourable=favourable)


def _section(data: Mapping[str, Any], prefix: KeyPath) -> Mapping[str, Any]:
    for key in prefix:
        inner = data.get(str(key))
        data = inner if isinstance(inner, Mapping) else {}
    return data


def _has_table(project: Path) -> bool:
    text = _read_text(project)
    try:
        return bool(_section(parse_toml(text), ("tool", "themis")))
    except ConfigError:
        return "[tool.themis" in text  # reading it will say what is wrong


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        mistake = Mistake("no-config", "", "there is no such file", INIT_REMEDY)
    except IsADirectoryError:
        mistake = Mistake("no-config", "", "is a folder", f"name a file, such as {FILE_NAME}")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        mistake = Mistake("not-utf8", "", "is not UTF-8 text", "save it as UTF-8", line=line)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        mistake = Mistake("unreadable-file", "", f"can't be read: {reason}", "check its name")
    raise ConfigError([mistake.at(file=str(path), line=mistake.line)])


@contextmanager
def placing(config: Config) -> Iterator[None]:
    """Within, mistakes in what the keys of the file mean carry the file and their line."""
    try:
        yield
    except RequestError as error:
        raise RequestError(_placed(config, each) for each in error.mistakes) from error


_WRITE_LABELS = 'write [subject.labels], for example approved = ["approved*"]'
_KEYS = {  # of the file, by what Python calls the options
    "weights": "profile.weights",
    **{key: f"run.{key}" for key in ("max_total_tokens", "max_spend")},
    **{
        key: f"subject.{key}"
        for key in (
            *("favourable", "method", "class", "cut", "dtypes", "device"),
            *("deterministic", "repeats", "parameters.seed"),
        )
    },
}


def _placed(config: Config, mistake: Mistake) -> Mistake:
    """The mistake at its key, or at the table that the key would stand in."""
    profile = config.profile
    if profile is not None and mistake.file == str(config.folder / profile.data):
        if mistake.line is not None:  # it is in a row
            return mistake
        problem = f"{profile.data}: {mistake.problem}"
        mistake = replace(mistake, where="profile.data", problem=problem, file="")
    mistake = replace(mistake, where=_KEYS.get(mistake.where, mistake.where))
    place = mistake.where
    while place and place not in config.lines:
        place = place.rpartition("[" if place.endswith("]") else ".")[0]
    if mistake.file or not place:
        return mistake
    return mistake.at(file=str(config.path), line=config.lines[place])
