"""Loading: subjects from what the user gave, an object or a table of options."""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from inspect import signature
from pathlib import Path
from typing import Any

from themis.errors import Mistake, RequestError, suggest
from themis.inputs.characteristics import Value
from themis.inputs.schema import Schema
from themis.subjects.base import Prices, Subject, at_door
from themis.subjects.functions import BatchFunction, InputTable, RowFunction
from themis.subjects.models import Model
from themis.subjects.outputs import REFERENCE, Output
from themis.subjects.secrets import redact_inherited
from themis.subjects.trained import Method, trained_of


@dataclass(frozen=True)
class batch:  # noqa: N801 - reads as a verb: themis.batch(predict)
    """Marks a function of a whole table of inputs: `Audit(themis.batch(predict), schema)`.

    The function gets an `InputTable` (column name → numpy array) and returns one output per row.
    """

    function: Callable[[InputTable], Any]


@dataclass(frozen=True)
class keywords:  # noqa: N801 - reads as a verb: themis.keywords(decide)
    """Marks a function of keyword arguments: `Audit(themis.keywords(decide), schema)`."""

    function: Callable[..., Any]


@dataclass(frozen=True)
class model:  # noqa: N801 - reads as what it is: themis.model(classifier, cut=0.3)
    """A trained model, and what its answers mean: `Audit(themis.model(it, cut=0.3), schema)`.

    `method` is "predict", "predict_proba" or "decision_function", `class_` whose probability
    counts, and `cut` from where on it is favourable; without one it is a number, for `outputs`.
    `dtypes` are the types of its columns in training: the frame, its `dtypes`, or a dictionary.
    `device` is where a PyTorch module computes, such as "cuda".
    """

    model: Any
    _: KW_ONLY
    method: Method | None = None
    class_: Value = None
    cut: float | None = None
    dtypes: Any = None
    device: str | None = None


def subject_from(thing: Any, schema: Schema) -> Subject:
    """The subject for an object: a marked function, anything with `predict`, or a function."""
    return at_door(_subject_from(thing, schema.given), schema)


def _subject_from(thing: Any, schema: Schema) -> Subject:
    if isinstance(thing, Subject):
        return thing
    if isinstance(thing, batch):
        return BatchFunction(thing.function, schema)
    if isinstance(thing, keywords):
        return RowFunction(thing.function, schema, keywords=True)
    asked = thing if isinstance(thing, model) else model(thing)
    if trained_of(asked.model) is not None:
        given = {each.name: getattr(asked, each.name) for each in fields(model)[1:]}
        return Model(asked.model, schema, **given)
    if callable(thing):
        name = getattr(thing, "__name__", repr(thing))
        _check_row_call(thing, schema, "subject", repr(name), "give themis.keywords(function)")
        return RowFunction(thing, schema)
    remedy = "give a function, themis.batch(function), or an object with predict"
    raise RequestError.one("not-a-subject", "subject", f"{thing!r} can't decide anything", remedy)


def columns_read(thing: Any, names: Sequence[str]) -> list[str]:
    """Those of a table's columns that a model reads: all of them, where it does not know."""
    asked = thing.model if isinstance(thing, model) else thing
    trained = trained_of(asked)
    if trained is None or trained.names is None:
        return list(names)
    spelled = {trained.spelled(name): name for name in names}
    needed = trained.needed or trained.names  # not what its first step drops
    lacking = [name for name in needed if name not in spelled]
    if lacking:
        raise RequestError(
            Mistake("model-columns", "frame", f"there is no column {name!r}, which the model reads",
                    suggest(name, list(names)))
            for name in lacking
        )  # fmt: skip
    return [spelled[name] for name in needed]


def subject_from_options(
    kind: str,
    options: Mapping[str, Any],
    schema: Schema,
    folder: Path,
    *,
    jobs: int | None = None,
    trust_pickle: bool = False,
    version: str = "",
    depends: Sequence[str] = (),
) -> Subject:
    """The subject that the `[subject]` table of a file describes.

    `jobs` is the number of processes, by default one for each processor for commands and one for
    workers, which may need much memory.
    """
    version += _contents(depends, folder)
    given, own = schema.given, {**options, "version": version}
    subject: Subject
    if kind == "python":
        subject = _python_subject(options, given, folder)
    elif kind == "model":
        subject = _model_subject(options, given, folder, trust_pickle=trust_pickle, version=version)
    elif kind == "http":
        from themis.subjects.http.subject import HttpSubject

        subject = HttpSubject(given, **own)
    elif kind == "chat":
        subject = _chat_subject(own, given, folder)
    else:
        subject = _program_subject(kind, own, given, folder, jobs)
    return at_door(subject, schema)


def _program_subject(
    kind: str, options: Mapping[str, Any], schema: Schema, folder: Path, jobs: int | None
) -> Subject:
    options = {**options, "cwd": folder / options.get("cwd", "")}
    if kind == "command":
        from themis.subjects.processes.command import CommandSubject

        return CommandSubject(schema, **options, jobs=jobs or processors())
    from themis.subjects.processes.worker import WorkerSubject

    return WorkerSubject(schema, **options, jobs=jobs or 1)


def _chat_subject(options: Mapping[str, Any], schema: Schema, folder: Path) -> Subject:
    from themis.subjects.http.chat import ChatSubject, prompt_of

    prices = Prices(**options["prices"]) if "prices" in options else None
    own = {key: value for key, value in options.items() if key not in ("prompt", "prices")}
    prompt = prompt_of(options["prompt"], folder)
    own |= {"user": prompt.user, "system": prompt.system}
    return ChatSubject(schema, **own, prices=prices)


def _contents(patterns: Sequence[str], folder: Path) -> str:
    """A hash of the files that patterns match, which a subject depends on; raises for none."""
    digest = hashlib.sha256()
    for pattern in patterns:
        try:
            found = sorted(path for path in folder.glob(pattern) if path.is_file())
        except (ValueError, NotImplementedError):  # empty, or an absolute path
            found = []
        if not found:
            problem = f"{pattern!r} matches no file in {folder}"
            remedy = "write it relative to that folder, as in 'rules/*.py', or remove it"
            raise _unusable("subject.depends", problem, remedy)
        for path in found:
            try:
                content = path.read_bytes()
            except OSError as error:
                problem = f"{str(path)!r} can't be read: {error.strerror}"
                raise _unusable("subject.depends", problem, "make it readable") from error
            digest.update(f"{path.relative_to(folder)}\0{len(content)}\0".encode() + content)
    return f"\0{digest.hexdigest()}" if patterns else ""


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _python_subject(options: Mapping[str, Any], schema: Schema, folder: Path) -> Subject:
    function = load_attribute(options["function"], folder, where="subject.function")
    call = options.get("call", "row")
    if isinstance(function, batch | keywords):  # the mark in the code says how it is called
        return subject_from(function, schema)
    if not callable(function):
        problem = f"{options['function']!r} is not callable"
        raise _unusable("subject.function", problem, "name a function")
    if call == "batch":
        return BatchFunction(function, schema)
    if call == "row":
        called = f'{options["function"]!r}, with call = "row",'
        _check_row_call(function, schema, "subject.call", called, 'write call = "keywords"')
    return RowFunction(function, schema, keywords=call == "keywords")


def _check_row_call(function: Any, schema: Schema, where: str, name: str, by_name: str) -> None:
    """Raise where a function does not take a row as one dict; `by_name` is the way to others."""
    if _takes(function, {}):
        return
    fits = _takes(function, **dict.fromkeys(schema.names))
    remedy = by_name if fits else "give it one parameter"
    raise _unusable(where, f"{name} can't be called with one dict", remedy)


def _takes(function: Any, *given: Any, **named: Any) -> bool:
    """Whether a function can be called like this, as far as its signature is known."""
    try:
        signature(function).bind(*given, **named)
    except TypeError:
        return False
    except ValueError:  # it has none, as some that are written in C
        return True
    return True


def _model_subject(
    options: Mapping[str, Any], schema: Schema, folder: Path, *, trust_pickle: bool, version: str
) -> Subject:
    """The model of a file, of a Python object, or of an object with the weights of a file."""
    from themis.subjects.model_files import load_model

    asked = {key: value for key, value in options.items() if key not in ("file", "object")}
    path = options.get("object")
    thing = None if path is None else load_attribute(path, folder, where="subject.object")
    if "file" in options:
        return load_model(
            folder / options["file"],
            schema,
            module=thing,
            trust_pickle=trust_pickle,
            version=version,
            **asked,
        )
    if trained_of(thing) is None:
        problem = f"{path!r} has no predict method"
        raise _unusable("subject.object", problem, "name a fitted model")
    return Model(thing, schema, **asked)


def load_attribute(path: str, folder: Path, *, where: str) -> Any:
    """The object that `module:attribute` names, with the folder on the import path."""
    module_name, _, attribute = path.partition(":")
    if not module_name or not attribute:
        problem = f"{path!r} is not of the form module:attribute"
        raise _unusable(where, problem, "write for example loan:decide")
    module = _import(module_name, folder, where, attribute)
    thing: Any = module
    for part in attribute.split("."):
        try:
            thing = getattr(thing, part)
        except AttributeError:
            names = [name for name in dir(thing) if not name.startswith("_")]
            remedy = suggest(part, names) if names else "define it"
            raise _unusable(where, f"{module_name!r} has no {part!r}", remedy) from None
    return thing


def loaded_output(output: Output, folder: Path) -> Output:
    """The output with its distance function, where it names one as module:function."""
    reference = output.distance
    if not isinstance(reference, str) or REFERENCE.fullmatch(reference) is None:
        return output
    where = f"outputs.{output.name}.distance"
    function = load_attribute(reference, folder, where=where)
    if not callable(function):
        raise _unusable(where, f"{reference!r} is not callable", "name a function of two outputs")
    return replace(output, distance=function)


def _import(name: str, folder: Path, where: str, attribute: str) -> Any:
    place = str(folder.resolve())
    loaded = getattr(sys.modules.get(name), "__file__", None)
    own = folder.resolve() / f"{name}.py"
    if loaded is not None and own.exists() and Path(loaded).resolve() != own:
        del sys.modules[name]  # another folder's module of the same name
    sys.path.insert(0, place)
    try:
        importlib.invalidate_caches()
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and name.split(".")[0] != error.name.split(".")[0]:
            problem = f"{name!r} needs the module {error.name!r}, which is not installed"
            raise _unusable(where, problem, f"install {error.name}") from error
        remedy = suggest(name, sorted(path.stem for path in folder.glob("*.py")))
        if not remedy.startswith("did you mean"):  # others that are there need not be meant
            remedy = f"write {name.replace('.', '/')}.py with {attribute} in it, or name another"
        raise _unusable(where, f"there is no module {name!r} in {folder}", remedy) from None
    except (Exception, SystemExit) as error:
        said = redact_inherited(str(error))
        problem = f"importing {name!r} failed with {type(error).__name__}: {said}"
        raise _unusable(where, problem, "fix the module") from error
    finally:
        sys.path.remove(place)


def _unusable(where: str, problem: str, remedy: str) -> RequestError:
    return RequestError.one("subject", where, problem, remedy)
