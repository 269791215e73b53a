"""Files of trained models: read as subjects, and no code of theirs run unless it is trusted."""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from themis.errors import RequestError, suggest
from themis.inputs.schema import Schema
from themis.subjects.base import Subject
from themis.subjects.columns import INSTALL
from themis.subjects.decisions import cut_text
from themis.subjects.models import Model, OnnxModel
from themis.subjects.trained import WEIGHTS, trained_of

SAFE = (".onnx", ".skops")
HARMLESS = (  # types that skops asks about: they hold data, and only code of scikit-learn runs
    "numpy.dtype",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.compose._column_transformer.make_column_selector",
)
BOOSTED = (".json", ".ubj", ".txt", ".cbm")  # XGBoost, LightGBM and CatBoost: data, no code
PICKLES = (".joblib", ".pkl", ".pickle")
PICKLED_BY = "joblib" if find_spec("joblib") else "pickle"  # joblib reads plain ones, too
KERAS = ".keras"  # data and the names of code: its safe mode has been got round more than once
KNOWN = (*SAFE, *BOOSTED, *PICKLES, *WEIGHTS, KERAS)
MLFLOW = "MLmodel"  # the file that makes a folder an MLflow model


def load_model(
    path: str | Path,
    schema: Schema,
    *,
    module: Any = None,
    trust_pickle: bool = False,
    version: str = "",
    **asked: Any,
) -> Subject:
    """The model in a file, as a subject; its fingerprint is a hash of the file and the version.

    Reading a pickle runs whatever code is in it, so that this needs `trust_pickle`; so do an MLflow
    folder, TorchScript and a Keras file, which hold or name code. Weights of PyTorch are for a
    `module`: it, its class or a function that makes it. `asked` are options of `Model`.
    """
    path = Path(path)
    if path.suffix.lower() != ".onnx":
        model = read_model(path, module=module, trust_pickle=trust_pickle)
        fingerprint = _fingerprint(path, version)
        return Model(model, schema, fingerprint=fingerprint, as_frame=path.is_dir(), **asked)
    _check_exists(path)
    device = asked.pop("device", None)
    if asked:
        problem = "an ONNX file decides by its output, and has no method, class or cut"
        raise _unusable(problem, "remove them, or use the model that it was made of")
    return OnnxModel(path, schema, fingerprint=_fingerprint(path, version), device=device)


def read_model(path: Path, *, module: Any = None, trust_pickle: bool = False) -> Any:
    """The model in a file of any kind but ONNX, as its library gives it."""
    _check_exists(path)
    kind = MLFLOW if path.is_dir() else path.suffix.lower()
    safe = kind in (*SAFE, *BOOSTED) or (kind in WEIGHTS and module is not None)
    if not safe and not trust_pickle:
        raise _untrusted(path, kind)
    if module is not None:
        model = _read_weights(path, module)
    elif kind == ".skops":
        model = _read_skops(path, trusts=trust_pickle)
    else:
        name, read = _READERS[kind]
        library = _needed(name, path)
        with _reading(path):
            model = read(library, path)
    if trained_of(model) is None:
        problem = f"{path.name} holds a {type(model).__name__}, which has no predict method"
        raise _unusable(problem, "save the fitted model itself")
    return model


def _untrusted(path: Path, kind: str) -> RequestError:
    problem = f"reading {path.name} would run any code that its author put into it"
    safe = "save the model as ONNX (skl2onnx) or skops (skops.io.dump), which are safe"
    if kind in WEIGHTS:
        safe = "save its weights (torch.save(module.state_dict(), …)) and name the module: "
        safe += 'object = "module:Class"'
    remedy = f"{safe}, or pass trust_pickle=True if you trust whoever made it"
    return _unusable(problem, remedy, code="untrusted-pickle")


def _check_exists(path: Path) -> None:
    known = KNOWN
    if path.is_dir() and not (path / MLFLOW).is_file():
        remedy = f"name a file ({', '.join(known)}), or a folder with an {MLFLOW} file"
        raise _unusable(f"{path} is a folder", remedy)
    if not path.exists():
        found = sorted(each.name for each in path.parent.glob("*") if each.suffix.lower() in known)
        remedy = suggest(path.name, found) if found else "name the file of a model"
        raise _unusable(f"there is no file {path}", remedy)
    if path.is_file() and path.suffix.lower() not in known:
        problem = f"{path.name} has the ending {path.suffix!r}, which is none of a model"
        raise _unusable(problem, f"choose from: {', '.join(known)}, or an MLflow folder")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """What goes wrong within is that the file can't be read, unless it is said better."""
    try:
        yield
    except RequestError:
        raise
    except Exception as error:
        raise _unreadable(path, error) from error


def _read_skops(path: Path, *, trusts: bool) -> Any:
    try:
        skops = importlib.import_module("skops.io")
    except ImportError:
        raise _unusable("skops files need skops, which is not installed", INSTALL) from None
    with _reading(path):
        asked = skops.get_untrusted_types(file=path)
        unknown = [each for each in asked if each not in HARMLESS]
        if not unknown or trusts:
            return skops.load(path, trusted=asked)
    problem = f"{path.name} holds types that skops does not know: {', '.join(unknown)}"
    remedy = "pass trust_pickle=True if you trust whoever made it, or save it as ONNX"
    raise _unusable(problem, remedy, code="untrusted-types")


def _read_pickle(library: Any, path: Path) -> Any:
    try:
        with _importable(path.parent), path.open("rb") as file:
            return library.load(file)
    except ModuleNotFoundError as error:
        problem = f"{path.name} needs the module {error.name!r}, which is not installed"
        raise _unusable(problem, f"install {error.name}, or put it beside the file") from error


def _read_xgboost(library: Any, path: Path) -> Any:
    """As the classifier that was saved, where it was one: it may have stopped early."""
    booster = library.Booster(model_file=str(path))
    saved = json.loads(booster.attr("scikit_learn") or "{}")
    kinds = {"classifier": "XGBClassifier", "regressor": "XGBRegressor"}
    kind = kinds.get(saved.get("_estimator_type", ""))
    if kind is None:
        return booster
    model = getattr(library, kind)(enable_categorical=True)
    model.load_model(str(path))
    return model


def _read_torch(library: Any, path: Path) -> Any:
    """TorchScript, or a whole module that was pickled."""
    try:
        return library.jit.load(str(path), map_location="cpu")
    except RuntimeError:  # it is none
        pass
    with _importable(path.parent):
        found = library.load(path, map_location="cpu", weights_only=False)
    if isinstance(found, Mapping):
        problem = f"{path.name} holds weights, and not the module that they are of"
        raise _unusable(problem, 'name the module: object = "module:Class"')
    return found


def _read_weights(path: Path, module: Any) -> Any:
    """The module with the weights of a file; nothing in the file is executed."""
    if path.suffix.lower() not in WEIGHTS:
        problem = f"{path.name} holds a whole model, and an object is named as well"
        raise _unusable(problem, "remove one of them")
    library = _needed("torch", path)
    if not isinstance(module, library.nn.Module):
        module = module()
    with _reading(path):
        weights = library.load(path, map_location="cpu", weights_only=True)
    if not isinstance(weights, Mapping):
        problem = f"{path.name} holds a {type(weights).__name__}, no weights"
        raise _unusable(problem, "save them: torch.save(module.state_dict(), …)")
    try:
        module.load_state_dict(weights)
    except Exception as error:
        said = cut_text(" ".join(str(error).split()), 300)
        problem = f"the weights in {path.name} do not fit the module that is named: {said}"
        remedy = 'name the module that was trained: object = "module:Class"'
        raise _unusable(problem, remedy) from error
    return module


def _needed(name: str, path: Path) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        library = name.partition(".")[0]
        problem = f"{path.name} is read by {library}, which can't be imported: {error}"
        raise _unusable(problem, f"run: pip install {library}") from None


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


# For each ending, the library that reads such files, and how.
_READERS: dict[str, tuple[str, Callable[[Any, Path], Any]]] = {
    **dict.fromkeys((".json", ".ubj"), ("xgboost", _read_xgboost)),
    ".txt": ("lightgbm", lambda library, path: library.Booster(model_file=str(path))),
    ".cbm": ("catboost", lambda library, path: library.CatBoost().load_model(str(path))),
    **dict.fromkeys(PICKLES, (PICKLED_BY, _read_pickle)),
    **dict.fromkeys(WEIGHTS, ("torch", _read_torch)),
    KERAS: ("keras", lambda library, path: library.saving.load_model(path, safe_mode=False)),
    MLFLOW: ("mlflow.pyfunc", lambda library, path: library.load_model(str(path))),
}
