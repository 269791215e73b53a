"""What an audit is given: a file, decisions, people and a cache, made into what it works with."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from themis.audit.notes import left_out
from themis.engine.cache import default_path
from themis.errors import Mistake, RequestError, RowsWarning
from themis.events import Listener, ignore
from themis.inputs.characteristics import Value
from themis.inputs.people import People, Unknown, columns_read, people_of, with_groups
from themis.inputs.schema import Inputs, Schema
from themis.inputs.tables import read_table, rows_of
from themis.results.notes import Note
from themis.results.withheld import withheld
from themis.settings import Settings
from themis.subjects.base import Subject
from themis.subjects.decisions import DEFAULT_FAVOURABLE
from themis.subjects.labels import Labels
from themis.subjects.loading import loaded_output, subject_from_options
from themis.subjects.outputs import Meanings, Output, Similarity, favourable_mistakes, listed

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from themis.config.reader import Config
    from themis.engine.recall import Recall

CachePlace: TypeAlias = str | Path | Literal[False] | None


@dataclass(frozen=True)
class Described:
    """What a file describes, made into what an audit works with; mistakes have its lines."""

    config: Config
    jobs: int | None = None
    trust_pickle: bool = False
    listen: Listener = ignore

    def options(self) -> dict[str, Any]:
        """What it says about an audit, except for its subject and its people."""
        config, spec = self.config, self.config.subject
        own = ("similar_texts", "max_failures", "max_undecided", "repeats", "deterministic", "cost")
        with self._placing():
            outputs = [loaded_output(each, config.folder) for each in config.outputs]
        return {
            "favourable": spec.favourable,
            "labels": None if config.outputs else spec.meanings,
            "outputs": outputs,
            "show_rows": config.report.rows,
            **{name: getattr(spec, name) for name in own},
            **{name: getattr(config.settings, name) for name in Settings.names()},
        }

    def subject(self, schema: Schema) -> Subject:
        """Its subject, for inputs of this schema."""
        spec = self.config.subject
        with self._placing():
            return subject_from_options(
                spec.kind,
                spec.options,
                schema,
                self.config.folder,
                jobs=self.jobs,
                trust_pickle=self.trust_pickle,
                version=spec.version,
                depends=spec.depends,
            )

    def place(
        self, subject: Subject, executor: str | Executor | None, cache: CachePlace
    ) -> dict[str, Any]:
        """Where its subject runs, and what keeps its decisions, unless that is given."""
        external = subject.traits.external
        if executor is None and (self.jobs or 1) > 1 and not external:
            executor = f"processes:{self.jobs}"
        if cache is None and external:
            cache = default_path(self.config.folder)
        return {"executor": executor, "cache": cache}

    def people(
        self,
        label: str | None = None,
        unknown: Unknown | None = None,
        beside: Collection[str] = (),
    ) -> People | None:
        """The people of its profile, if it has one; with their known outcomes, if asked for.

        `unknown` is done with rows that do not fit instead of what the file says. Columns `beside`
        the schema's make groups.
        """
        profile, schema = self.config.profile, self.config.schema
        if profile is None:
            return None
        with self._placing():
            rows = read_table(
                self.config.folder / profile.data,
                only=columns_read(schema, profile.weights, label) | {*beside},
                listen=self.listen,
            )
            return people_of(
                rows,
                with_groups(schema, rows, beside),
                weights=profile.weights,
                unknown=unknown or profile.unknown,
                label=label,
                where="profile.data",
            )

    def _placing(self) -> AbstractContextManager[None]:
        from themis.config.reader import placing

        return placing(self.config)


def schema_of(given: Schema | Inputs) -> Schema:
    """The schema itself, or that of a mapping of names to values; nothing else is one."""
    if isinstance(given, Schema):
        return given
    if isinstance(given, Mapping):
        return Schema(given)
    problem = f"{type(given).__name__} is no schema"
    remedy = "write for example Schema(sex=['female', 'male'], age=range(18, 90))"
    if isinstance(given, str | Path):
        problem = f"{str(given)!r} is no schema"
        remedy = f"a file is read by Audit.from_file({str(given)!r})"
    elif hasattr(given, "columns"):
        remedy = "one is made from a table by Schema.from_frame(table)"
    raise RequestError.one("schema", "schema", problem, remedy)


def with_columns(config: Config, names: Iterable[str]) -> Config:
    """The same with these columns of its profile that the schema lacks: groups of people."""
    lacking = [name for name in names if name and name not in config.schema.column_by_name]
    if config.profile is None or not lacking:
        return config
    rows = read_table(config.folder / config.profile.data, only=lacking)
    return replace(config, schema=with_groups(config.schema, rows, lacking))


def given_people(
    given: Any,
    schema: Schema,
    weights: str | Sequence[float] | None,
    label: str | None = None,
    unknown: Unknown | None = None,
    beside: Collection[str] = (),
) -> People | None:
    """The people that Python code gives as a profile, if any; with their known outcomes."""
    if given is None or isinstance(given, People):
        return given
    rows = rows_of(given, only=columns_read(schema, weights, label) | {*beside})
    schema, way = with_groups(schema, rows, beside), unknown or "keep"
    return people_of(rows, schema, weights=weights, unknown=way, label=label, where="profile")


def check_made_up(schema: Schema, facts: Mapping[str, Any] | None) -> None:
    """Raise RequestError for contexts with the values of rows only, where no profile has any."""
    if facts is None and (names := schema.open):
        named = " and ".join(map(repr, names))
        problem = f"{named} {'has' if len(names) == 1 else 'have'} no values but those of rows"
        remedy = "give a profile, measure rows (apparent), or list values"
        raise RequestError.one("open-context", "inputs", problem, remedy)


def warn_of(facts: Mapping[str, Any] | None) -> None:
    """Warn Python code of rows that were left out; results say it as well."""
    for note in withheld(tuple(left_out(facts))):
        warnings.warn(RowsWarning(str(note)), stacklevel=3)


def decisions_of(
    favourable: tuple[Value, ...],
    labels: Mapping[str, Iterable[str]] | None,
    outputs: tuple[Output, ...],
    similar_texts: Similarity,
) -> Labels:
    """The decisions of a subject; raises RequestError where its labels make no sense."""
    if labels is None:
        wanted = Output(favourable=favourable, similar_texts=similar_texts)
        return Labels(outputs, wanted)
    Meanings(labels)
    mistakes = []
    if outputs:
        problem, remedy = "the outputs have labels of their own", "give them to Output(labels=…)"
        mistakes.append(Mistake("labels", "labels", problem, remedy))
    if favourable != DEFAULT_FAVOURABLE:
        found = favourable_mistakes(favourable, labels)
        mistakes += (Mistake("labels", "favourable", *each) for each in found)
    RequestError.refuse(mistakes)
    known = tuple(each for each in favourable if each in labels)
    return Labels((), Output(favourable=known, labels=listed(labels)))


def spread(subject: Subject, executor: str | Executor | None, notes: list[Note]) -> Subject:
    """The subject, run by an executor if one is given and the subject runs in this process.

    Programs have processes of their own already, and a web service would get the requests of many
    machines instead of those that it allows for one.
    """
    if executor is None:
        return subject
    from themis.engine.executors.spread import SpreadSubject, pool_of

    pool = pool_of(executor)
    if subject.traits.external:
        notes.append(Note.of("executor-not-used", executor=pool.name))
        return subject
    different = Note.of("executor-differs", executor=pool.name)
    return SpreadSubject(subject, pool, lambda: notes.append(different))


def open_recall(
    subject: Subject, cache: CachePlace, layout: str, notes: list[Note]
) -> Recall | None:
    """What a cache file holds of a subject; what there is to say about it goes to the notes."""
    if cache is None or cache is False:
        return None
    if not subject.traits.external:
        notes.append(Note.of("cache-not-used"))
        return None
    from themis.engine.cache import Cache
    from themis.engine.recall import Recall

    return Recall(Cache(Path(cache)), subject, layout)
