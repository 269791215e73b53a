"""Reads `themis.toml`, reports all of its mistakes at once, and places later ones in its lines.

Three passes over the file, none of which hides the mistakes of the next: its keys and their values
(the models of `format`), the rules of the schema, and what refers to something else: constraints,
checks and acceptances.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from themis.config.complaints import find_complaints, find_references, table_of, tables_of
from themis.config.format import File, Profile
from themis.config.tables import AnySubject
from themis.config.toml import KeyPath, key_lines, parse_toml, spell_path
from themis.errors import ConfigError, Mistake, MistakesError, RequestError, SchemaError, suggest
from themis.inputs.characteristics import Characteristic
from themis.inputs.constraints import parse_constraint
from themis.inputs.documents import Names, documents
from themis.inputs.documents import names as names_of
from themis.inputs.expressions import quote
from themis.inputs.following import completed, level_names, ties_of
from themis.inputs.population import Population
from themis.inputs.schema import Schema, characteristic_from, outside_sets
from themis.inputs.tables import kind_of
from themis.results.parts import Naming
from themis.results.verdicts import Acceptance, Check
from themis.settings import Settings
from themis.subjects.outputs import Output

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
        self.mistakes: list[Mistake] = []
        self._file = file
        self._lines = key_lines(text)
        self._prefix = prefix
        self._touched: set[KeyPath] = set()

    def add(self, path: KeyPath, mistake: Mistake) -> None:
        """Report a mistake at a key, or where that would stand if it is missing."""
        placed = mistake.at(file=self._file, line=self.line(path))
        self.mistakes.append(replace(placed, where=spell_path(path)))
        self._touched.update(path[:length] for length in range(len(path) + 1))

    def say(self, path: KeyPath, code: str, problem: str, remedy: str) -> None:
        """Report a mistake that is found here."""
        self.add(path, Mistake(code, "", problem, remedy))

    def add_all(self, path: KeyPath, error: MistakesError) -> None:
        for mistake in error.mistakes:
            self.add(path, mistake)

    def has(self, *path: str | int) -> bool:
        """Whether there is a mistake at this key or inside of it."""
        return path in self._touched

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
    """Turns the data of a file into a configuration, section by section."""

    def __init__(self, data: Mapping[str, Any], found: _Findings) -> None:
        self._data = data
        self._folder = Path()
        self._found = found
        self._characteristics: dict[str, Characteristic] = {}  # the healthy ones
        self._names: list[str] = []  # also of the faulty ones
        self._constraints: dict[str, str] = {}  # the healthy ones

    def read(self, path: Path) -> Config:
        self._folder = path.resolve().parent
        for complaint in find_complaints(self._data):
            self._found.add(complaint.path, complaint.mistake)
        self._read_characteristics()
        self._read_prompt()
        self._check_ties()
        self._read_constraints()
        schema = self._read_schema()
        self._check_sets()
        if schema is not None:
            self._check_groups(schema)
        for complaint in find_references(self._data, self._found.has):
            self._found.add(complaint.path, complaint.mistake)
        self._check_repeated_acceptances()
        self._check_value_words()
        if self._found.mistakes or schema is None:
            raise ConfigError(sorted(self._found.mistakes, key=lambda each: each.line or 0))
        file, line = File.model_validate(self._data), self._found.line

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

    def _table(self, name: str) -> Mapping[str, Any]:
        return table_of(self._data, name)

    def _read_characteristics(self) -> None:
        for name, spec in self._table("inputs").items():
            try:
                Schema({name: [0]})  # the name alone
                self._names.append(name)
                if (usable := self._usable(name, spec)) is not None:
                    self._add_inputs(self._read_spec(name, usable), name)
            except SchemaError as error:
                self._found.add_all(("inputs", name), error)
            except RequestError as error:  # of a file that it names
                for each in error.mistakes:
                    line = "" if each.line is None else f", line {each.line:,}"
                    told = f"{Path(each.file).name}{line}: {each.problem}" if each.file else ""
                    mistake = replace(each, problem=told or each.problem, line=None)
                    self._found.add(("inputs", name), mistake)

    def _read_spec(self, name: str, spec: Any) -> Mapping[str, Characteristic]:
        """What a spec of the file describes; of names also what they are drawn by."""
        given = dict(spec) if isinstance(spec, Mapping) else {}
        for read, key in ((documents, "documents"), (names_of, "names")):
            if key in given:
                read_of = read(self._folder / given.pop(key), **given)
                return (
                    dict(read_of.expanded(name)) if isinstance(read_of, Names) else {name: read_of}
                )
        return {name: characteristic_from(spec)}

    def _add_inputs(self, inputs: Mapping[str, Characteristic], own: str) -> None:
        """Add characteristics: one that the file has a table for, and contexts that it needs."""
        for name, each in inputs.items():
            if name != own and name in self._table("inputs"):
                problem = f"a context of this name is added for {own!r}"
                self._found.say(("inputs", name), "duplicate-name", problem, "rename this one")
            elif name != own:
                self._names.append(name)
            self._characteristics[name] = each.named(name)

    def _usable(self, name: str, spec: Any) -> Any:
        """What can be checked further: the keys without a mistake, if none that is needed lacks."""
        if not isinstance(spec, Mapping):
            return spec
        kept = {key: spec[key] for key in spec if not self._found.has("inputs", name, key)}
        needed = ({"values"}, {"min", "max"}, {"documents"}, {"names", "by"})
        is_whole = kept == {"role": "context"} or any(each <= kept.keys() for each in needed)
        return kept if is_whole else None

    def _read_prompt(self) -> None:
        """Add the contexts that choose among several texts of a prompt."""
        prompt = self._table("subject").get("prompt")
        if not isinstance(prompt, Mapping) or self._found.has("subject", "prompt"):
            return
        from themis.subjects.http.chat import prompt_of  # few need a client

        try:
            contexts = prompt_of(prompt, self._folder).contexts
        except RequestError as error:
            for mistake in error.mistakes:
                self._found.add(tuple(mistake.where.split(".")), mistake)
            return
        self._add_inputs(contexts, "subject.prompt")

    def _check_ties(self) -> None:
        """Whether what follows others, or is derived from them, fits those."""
        known = self._characteristics
        try:
            ties_of(list(known.values()))
        except SchemaError as error:
            for mistake in error.mistakes:
                around, _, key = mistake.where.rpartition(".")
                name = around.removeprefix("inputs.")
                leaders = getattr(known[name], "leaders", ())
                is_faulty = any(each in self._names and each not in known for each in leaders)
                if not (is_faulty and mistake.code == "unknown-name"):
                    self._found.add(("inputs", name, key), mistake)

    @property
    def _healthy(self) -> dict[str, Characteristic]:
        """The characteristics about which there is no complaint, also beside others."""
        known = self._characteristics.items()
        return {name: each for name, each in known if not self._found.has("inputs", name)}

    def _read_constraints(self) -> None:
        known = self._healthy
        healthy = completed(list(known.values()))
        faulty = [name for name in self._names if name not in known]
        excused = {f"there is no characteristic {quote(name)}" for name in faulty}
        for name, text in self._table("constraints").items():
            if self._found.has("constraints", name):
                continue
            try:
                parse_constraint(text, healthy, name=name)
                self._constraints[name] = text
            except SchemaError as error:
                for mistake in error.mistakes:
                    is_unknown = mistake.code == "unknown-name"
                    if not is_unknown or (healthy and mistake.problem not in excused):
                        self._found.add(("constraints", name), mistake)

    def _read_schema(self) -> Schema | None:
        """The whole schema, if nothing is wrong with its parts nor with all of them together."""
        if self._found.has("inputs") or self._found.has("constraints"):
            return None
        places = {f"constraint {name!r}": name for name in self._constraints}
        try:
            schema = Schema(self._characteristics).constrained(self._constraints)
            Population.of(schema)
        except SchemaError as error:
            for mistake in error.mistakes:
                name = places.get(mistake.where)
                path = (mistake.where,) if name is None else ("constraints", name)
                self._found.add(path, mistake)
            return None
        return schema

    def _sets(self, section: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The tables of a section whose set can be read, with their numbers."""
        for number, table in tables_of(self._data, section):
            if "against" in table and not self._found.has(section, number, "against"):
                yield number, table

    def _check_sets(self) -> None:
        """Whether all sets are made of characteristics, faulty ones included."""
        if not self._names:
            return
        schema = Schema({name: [0] for name in self._names})
        for path, names in self._all_sets():
            for name in _repeated(names):
                self._found.say(path, "duplicate-name", f"{name!r} appears twice", "remove one")
            try:
                schema.columns_of(names)
            except RequestError as error:
                self._found.add_all(path, error)
            for each in map(self._characteristics.get, names):
                if each is not None and (mistake := outside_sets(each, "")) is not None:
                    self._found.add(path, mistake)

    def _check_groups(self, schema: Schema) -> None:
        """Whether a limit is on what changing something does that the subject is not given: 0."""
        unread = {schema.names[column] for column in schema.unread}
        for number, table in self._sets("checks"):
            measure = table.get("measure", "causal")
            if measure != "group" and unread.issuperset(table["against"]):
                problem = "the score of what the program is not given is 0 by construction"
                names = " and ".join(map(quote, table["against"]))
                remedy = f'write measure = "group", or remove role = "group" from {names}'
                self._found.say(("checks", number), "check-unread", problem, remedy)

    def _all_sets(self) -> Iterator[tuple[KeyPath, list[str]]]:
        """The sets of the whole file that can be read, with their places."""
        if not self._found.has("run", "against"):
            for number, names in enumerate(self._table("run").get("against", ())):
                yield ("run", "against", number), names
        for section in ("checks", "accepted"):
            for number, table in self._sets(section):
                yield (section, number, "against"), table["against"]

    def _check_repeated_acceptances(self) -> None:
        """Whether a finding is accepted twice, which leaves open until when."""
        first: dict[tuple[str, str, frozenset[str]], int] = {}
        for number, table in self._sets("accepted"):
            measure, output = (str(table.get(key)) for key in ("measure", "output"))
            key = measure.replace("None", "causal"), output, frozenset(table["against"])
            line = self._found.line(("accepted", number))
            if key in first:
                problem, place = (
                    f"this is accepted already, in line {first[key]}",
                    ("accepted", number),
                )
                self._found.say(place, "duplicate-acceptance", problem, "remove one of them")
            first.setdefault(key, line)

    def _check_value_words(self) -> None:
        """Whether [report.values] and [report.eeo1] name characteristics and values there are."""
        for key in ("values", "eeo1"):
            words = self._table("report").get(key, {})
            for name, table in words.items() if isinstance(words, Mapping) else ():
                self._check_words_of(("report", key, name), name, table)

    def _check_words_of(self, path: KeyPath, name: str, table: Any) -> None:
        if name not in self._names:
            problem = f"there is no characteristic {name!r}"
            self._found.say(path, "unknown-name", problem, suggest(name, self._names))
        elif name in self._characteristics and isinstance(table, Mapping):
            known = level_names(self._characteristics[name])
            for value in (each for each in table if known and each not in known):
                problem, place = f"{name} has no value {value!r}", (*path, value)
                self._found.say(place, "unknown-value", problem, suggest(value, known))


def _naming(file: File) -> Naming:
    """The words of the file, with what the subject is called and what it declares favourable."""
    given = {} if file.report is None else file.report.given()
    favourable = file.subject.favourable if "favourable" in file.subject.given() else ()
    return Naming(**given, program=file.subject.program, favourable=favourable)


def _repeated(names: list[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if names.count(name) > 1]


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
