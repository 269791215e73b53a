"""Files of trained models: read as subjects, and no code of theirs run unless it is trusted."""

from __future__ import annotations

import hashlib
import importlib
import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from themis.errors import RequestError, suggest
from themis.inputs.schema import Schema
from themis.subjects.base import Subject
from themis.subjects.models import INSTALL, Model
from themis.subjects.onnx import OnnxModel

SAFE = (".onnx", ".skops")
PICKLES = (".joblib", ".pkl", ".pickle")
MLFLOW = "MLmodel"  # the file that makes a folder an MLflow model


def load_model(
    path: str | Path, schema: Schema, *, trust_pickle: bool = False, version: str = ""
) -> Subject:
    """The model in a file, as a subject; its fingerprint is a hash of the file and the version.

    Reading a pickle runs whatever code is in it, so that this needs `trust_pickle`; so does an
    MLflow folder, which holds pickles.
    """
    path = Path(path)
    _check_exists(path)
    kind = MLFLOW if path.is_dir() else path.suffix.lower()
    if kind not in SAFE and not trust_pickle:
        problem = f"reading {path.name} would run any code that its author put into it"
        remedy = (
            "save the model as ONNX (skl2onnx) or skops (skops.io.dump), which are safe, "
            "or pass --trust-pickle if you trust whoever made it"
        )
        raise _unusable(problem, remedy, code="untrusted-pickle")
    fingerprint = _fingerprint(path, version)
    if kind == ".onnx":
        return OnnxModel(path, schema, fingerprint=fingerprint)
    if kind == MLFLOW:
        return FileModel(_read_mlflow(path), schema, fingerprint=fingerprint, as_frame=True)
    read = _read_skops if kind == ".skops" else _read_pickle
    model = read(path)
    if not callable(getattr(model, "predict", None)) or isinstance(model, type):
        problem = f"{path.name} holds a {type(model).__name__}, which has no predict method"
        raise _unusable(problem, "save the fitted model itself")
    return FileModel(model, schema, fingerprint=fingerprint)


class FileModel(Model):
    """A model that was read from a file."""

    def __init__(
        self, model: Any, schema: Schema, *, fingerprint: str, as_frame: bool = False
    ) -> None:
        super().__init__(model, schema)
        self.as_frame = self.as_frame or as_frame
        self._fingerprint = fingerprint

    def fingerprint(self) -> str:
        return self._fingerprint


def _check_exists(path: Path) -> None:
    known = (*SAFE, *PICKLES)
    if path.is_dir():
        if not (path / MLFLOW).is_file():
            remedy = f"name a file ({', '.join(known)}), or a folder with an {MLFLOW} file"
            raise _unusable(f"{path} is a folder", remedy)
        return
    if not path.is_file():
        beside = path.parent.iterdir() if path.parent.is_dir() else ()
        found = sorted(each.name for each in beside if each.suffix.lower() in known)
        remedy = suggest(path.name, found) if found else "name the file of a model"
        raise _unusable(f"there is no file {path}", remedy)
    if path.suffix.lower() not in known:
        problem = f"{path.name} has the ending {path.suffix!r}, which is none of a model"
        raise _unusable(problem, f"choose from: {', '.join(known)}, or an MLflow folder")


def _read_skops(path: Path) -> Any:
    skops = _library("skops.io")
    if skops is None:
        raise _unusable("skops files need skops, which is not installed", INSTALL)
    try:
        unknown = skops.get_untrusted_types(file=path)
        if not unknown:
            return skops.load(path)
    except Exception as error:
        raise _unreadable(path, error) from error
    problem = f"{path.name} holds types that skops does not know: {', '.join(unknown)}"
    remedy = (
        'check them, load it with skops.io.load(…, trusted=[…]) and use object = "module:attribute"'
    )
    raise _unusable(problem, remedy, code="untrusted-types")


def _read_pickle(path: Path) -> Any:
    library = _library("joblib") or pickle  # joblib reads plain pickles, too
    try:
        with _importable(path.parent), path.open("rb") as file:
            return library.load(file)
    except ModuleNotFoundError as error:
        problem = f"{path.name} needs the module {error.name!r}, which is not installed"
        raise _unusable(problem, f"install {error.name}, or put it beside the file") from error
    except Exception as error:
        raise _unreadable(path, error) from error


def _read_mlflow(path: Path) -> Any:
    library = _library("mlflow.pyfunc")
    if library is None:
        problem = f"{path.name} is an MLflow model, and mlflow is not installed"
        raise _unusable(problem, "run: pip install mlflow, or save the model as ONNX")
    try:
        return library.load_model(str(path))
    except Exception as error:
        raise _unreadable(path, error) from error


def _library(name: str) -> Any:
    """A module that may not be installed, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """A pickle names the modules of its classes; those beside it are found."""
    place = str(folder.resolve())
    sys.path.insert(0, place)
    try:
        yield
    finally:
        sys.path.remove(place)


def _fingerprint(path: Path, version: str) -> str:
    digest = hashlib.sha256(version.encode())
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    for each in files:
        if each.is_file():
            digest.update(b"\0" + str(each.relative_to(path)).encode() + b"\0")
            with each.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def _unreadable(path: Path, error: Exception) -> RequestError:
    why = (str(error).splitlines() or [""])[0]
    problem = f"{path.name} can't be read: {type(error).__name__}: {why}"
    return _unusable(problem, "save the model again, with the same versions of its libraries")


def _unusable(problem: str, remedy: str, *, code: str = "model-file") -> RequestError:
    return RequestError.one(code, "subject.file", problem, remedy)
