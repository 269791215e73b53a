"""Trained models of any make: what they know about their columns and classes, how they answer.

A model is recognised by the package that its class comes from; none of them is imported for that.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import json
import pickle
import re
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Literal

import numpy as np

from themis.errors import RequestError
from themis.inputs.characteristics import Value
from themis.subjects.columns import needed_columns
from themis.subjects.functions import function_fingerprint

Method = Literal["predict", "predict_proba", "decision_function"]
WEIGHTS = (".pt", ".pth")  # the files of PyTorch
METHODS: tuple[Method, ...] = ("predict", "predict_proba", "decision_function")


class Trained:
    """A fitted model as it is asked; this one is in the style of scikit-learn."""

    form: Literal["frame", "array"] | None = None  # what it takes; None: either
    by_class = False  # whether `predict` may give a number for each class instead of one of them
    own_methods = True  # whether its methods say how it answers; else it only predicts

    def __init__(self, model: Any) -> None:
        self.model = model

    @property
    def names(self) -> list[str] | None:
        """The columns that it was trained on, in its order; None where it does not know."""
        names = getattr(self.model, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    @property
    def needed(self) -> list[str] | None:
        """Those of them that it looks at, and must be given; None where it knows no names."""
        return None if self.names is None else needed_columns(self.model, self.names)

    @property
    def count(self) -> int | None:
        """How many columns it was trained on."""
        return getattr(self.model, "n_features_in_", None) or None

    def spelled(self, name: str) -> str:
        """How it writes the name of a column."""
        return name

    @property
    def categories(self) -> dict[str, list[Value]]:
        """The values of the columns that were categories in training, in its order."""
        for key in ("best_estimator_", "estimator_"):  # of searches and of what wraps another
            inner = trained_of(getattr(self.model, key, None))
            if inner is not None:
                return inner.categories
        return {}

    @property
    def classes(self) -> tuple[Value, ...] | None:
        """What it decides between, in its order; None for numbers, or where it does not know."""
        classes = getattr(self.model, "classes_", None)
        if not isinstance(classes, np.ndarray) or classes.ndim != 1 or not len(classes):
            return None
        return tuple(classes.tolist())

    @property
    def target(self) -> str | None:
        """The column that it was trained to predict; None where it does not know."""
        return None

    @property
    def cut(self) -> float | None:
        """From where on its answer is usually a yes; None where answers are no probabilities."""
        return 0.5 if self.has("predict_proba") and not self.has("predict") else None

    def has(self, method: Method) -> bool:
        """Whether it can answer so."""
        if self.own_methods:
            return callable(getattr(self.model, method, None))
        names_classes = self.classes is not None and not self.by_class
        return method == "predict" or (method == "predict_proba" and names_classes)

    def answer(self, method: Method, inputs: Any) -> Any:
        """Its answers to a frame or an array of inputs."""
        return getattr(self.model, method)(inputs)

    def move(self, device: str) -> None:
        """Compute there from now on."""
        name = type(self.model).__name__
        problem = f"a {name} computes where its library does, and is not moved"
        raise RequestError.one("model-device", "device", problem, "remove it")

    def fingerprint(self) -> str:
        """Equal when the model is the same, as far as that can be known."""
        try:
            return hashlib.sha256(pickle.dumps(self.model)).hexdigest()[:16]
        except Exception:  # not everything that predicts can be pickled
            return function_fingerprint(getattr(type(self.model), "predict", type(self.model)))


def trained_of(thing: Any) -> Trained | None:
    """What is known about a model; None for what is none."""
    lineage = type(thing).__mro__
    packages = {each.__module__.partition(".")[0] for each in lineage}
    kinds = {each.__name__ for each in lineage}
    predicts = any(callable(getattr(thing, method, None)) for method in METHODS)
    if isinstance(thing, type) or not predicts:
        is_module = "torch" in packages and "Module" in kinds
        return TorchModule(thing) if is_module else None
    for package, (booster, usual) in _MAKES.items():
        if package in packages:
            return booster(thing) if "Booster" in kinds else usual(thing)
    of_categories = any(kind.startswith("HistGradientBoosting") for kind in kinds)
    return HistGradientBoosting(thing) if of_categories else Trained(thing)


class _Booster(Trained, ABC):
    """The inner model of a boosting library: `predict` gives probabilities, no classes.

    Its decision is the class that the same library's classifier would choose: the one with the
    largest probability.
    """

    own_methods = False
    _binary: tuple[str, ...] = ()
    _several: tuple[str, ...] = ()

    @property
    @abstractmethod
    def _objective(self) -> tuple[str, int]:
        """What it was trained for, and the number of classes if there are several."""

    def _scores(self, inputs: Any) -> Any:
        return self.model.predict(inputs)

    @property
    def classes(self) -> tuple[Value, ...] | None:
        objective, count = self._objective
        if objective in self._binary:
            return (0, 1)
        return tuple(range(count)) if objective in self._several else None

    def answer(self, method: Method, inputs: Any) -> Any:
        scores = np.asarray(self._scores(inputs))
        if self.classes is None:
            return scores
        if self.classes == (0, 1) and scores.ndim == 1:
            scores = np.stack([1 - scores, scores], axis=1)
        if method == "predict" and scores.ndim == 2:
            return scores.argmax(axis=1)
        return scores


class Xgboost(Trained):
    """A model of XGBoost in the style of scikit-learn."""

    @property
    def categories(self) -> dict[str, list[Value]]:
        return _xgboost_categories(self.model.get_booster())


class XgboostBooster(_Booster):
    """A `Booster` of XGBoost."""

    _binary = ("binary:logistic",)
    _several = ("multi:softprob",)

    @property
    def names(self) -> list[str] | None:
        names: list[str] | None = self.model.feature_names
        return names

    @property
    def count(self) -> int | None:
        return int(self.model.num_features())

    @property
    def categories(self) -> dict[str, list[Value]]:
        return _xgboost_categories(self.model)

    @cached_property
    def _objective(self) -> tuple[str, int]:
        learner = json.loads(self.model.save_config())["learner"]
        return learner["objective"]["name"], int(learner["learner_model_param"]["num_class"])

    def _scores(self, inputs: Any) -> Any:
        xgboost = importlib.import_module("xgboost")
        return self.model.predict(xgboost.DMatrix(inputs, enable_categorical=True))


def _xgboost_categories(booster: Any) -> dict[str, list[Value]]:
    try:
        arrays = booster.get_categories(export_to_arrow=True).to_arrow()
    except Exception:  # before XGBoost 3.1 a model did not keep them; reading them needs pyarrow
        return {}
    return {name: array.to_pylist() for name, array in arrays or () if array is not None}


class Lightgbm(Trained):
    """A model of LightGBM in the style of scikit-learn."""

    @property
    def booster(self) -> Any:
        """The model of the library itself."""
        return self.model.booster_

    @property
    def names(self) -> list[str] | None:
        names: list[str] = self.booster.feature_name()
        made_up = [f"Column_{place}" for place in range(len(names))]
        return None if names == made_up else names

    @property
    def count(self) -> int | None:
        return int(self.booster.num_feature())

    def spelled(self, name: str) -> str:
        return name.replace(" ", "_")

    @property
    def categories(self) -> dict[str, list[Value]]:
        known = self.booster.pandas_categorical or []
        infos = self.booster.dump_model(num_iteration=1)["feature_infos"]
        columns = [
            name for name in self.booster.feature_name() if infos.get(name, {}).get("values")
        ]
        return dict(zip(columns, known, strict=True)) if len(columns) == len(known) else {}


class LightgbmBooster(_Booster, Lightgbm):
    """A `Booster` of LightGBM."""

    _binary = ("binary", "cross_entropy", "xentropy")
    _several = ("multiclass", "multiclassova")

    @property
    def booster(self) -> Any:
        return self.model

    @cached_property
    def _objective(self) -> tuple[str, int]:
        words = self.model.dump_model(num_iteration=1).get("objective", "").split()
        return words[0] if words else "", int(self.model.num_model_per_iteration())


class Catboost(Trained):
    """A model of CatBoost, also one that does not know that it is a classifier."""

    own_methods = False

    @property
    def names(self) -> list[str] | None:
        names = [str(name) for name in self.model.feature_names_]
        return None if names == [str(place) for place in range(len(names))] else names

    @property
    def count(self) -> int | None:
        return len(self.model.feature_names_)

    @property
    def classes(self) -> tuple[Value, ...] | None:
        return tuple(np.asarray(self.model.classes_).tolist()) or None

    def answer(self, method: Method, inputs: Any) -> Any:
        kind = "Probability" if method == "predict_proba" else "Class"
        return self.model.predict(inputs, **({"prediction_type": kind} if self.classes else {}))


class HistGradientBoosting(Trained):
    """A model of scikit-learn that takes categories as they are."""

    @property
    def categories(self) -> dict[str, list[Value]]:
        steps = getattr(getattr(self.model, "_preprocessor", None), "named_transformers_", {})
        if self.names is None or "encoder" not in steps:
            return {}
        columns = np.asarray(self.names)[self.model.is_categorical_].tolist()
        known = [_that_are_there(each.tolist()) for each in steps["encoder"].categories_]
        return dict(zip(columns, known, strict=True)) if len(columns) == len(known) else {}


def _that_are_there(values: list[Any]) -> list[Value]:
    """Values without those that stand for a missing one, which is no category: None, NaN, NA."""
    return [each for each in values if isinstance(each, str | int | float) and each == each]


class Statsmodels(Trained):
    """The results of a statsmodels fit: with a formula it makes its columns itself."""

    by_class, own_methods = True, False

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        formula = getattr(model.model, "formula", None)
        self._columns: list[str] = [] if formula else list(model.model.exog_names)
        self._read = _read_by_formula(model.model.data) if formula else None
        self.form = "frame" if formula else None

    @property
    def names(self) -> list[str] | None:
        if self.form == "frame":
            return self._read
        names = [name for name in self._columns if name != "const"]
        made_up = all(re.fullmatch(r"x\d+", name) for name in names)
        return None if made_up else names

    @property
    def count(self) -> int | None:
        return len([name for name in self._columns if name != "const"]) or None

    @property
    def classes(self) -> tuple[Value, ...] | None:
        """The numbers of several classes; of two there is only a probability."""
        inner = self.model.model
        count = getattr(inner, "J", None) or getattr(inner, "k_levels", None)
        return tuple(range(count)) if count is not None and count > 1 else None

    @property
    def target(self) -> str | None:
        name = self.model.model.endog_names
        return name if isinstance(name, str) else None

    @property
    def cut(self) -> float | None:
        inner = self.model.model
        binary = type(inner).__name__ in ("Logit", "Probit")
        binary |= type(getattr(inner, "family", None)).__name__ == "Binomial"
        return 0.5 if binary else None

    def answer(self, method: Method, inputs: Any) -> Any:
        if "const" in self._columns and hasattr(inputs, "columns"):
            inputs = inputs.assign(const=1.0)[self._columns].astype(float)
        elif "const" in self._columns:
            inputs = np.insert(inputs, self._columns.index("const"), 1.0, axis=1)
        return np.asarray(self.model.predict(inputs))


def _read_by_formula(data: Any) -> list[str] | None:
    """The columns of the training frame that a formula reads; None where they are not known."""
    design = getattr(data, "model_spec", None) or getattr(data, "design_info", None)
    frame = getattr(data, "frame", None)
    if design is None or frame is None:
        return None
    words = set(getattr(design, "required_variables", ()))  # of formulaic; patsy has code
    for factor in getattr(design, "factor_infos", ()):
        for node in ast.walk(ast.parse(factor.code, mode="eval")):
            words |= {node.id} if isinstance(node, ast.Name) else set()
            words |= {str(node.value)} if isinstance(node, ast.Constant) else set()  # of Q("name")
    return [str(name) for name in frame.columns if str(name) in words] or None


class Keras(Trained):
    """A Keras model of one input: an array of numbers."""

    form = "array"
    by_class, own_methods = True, False

    @property
    def count(self) -> int | None:
        return _width(getattr(self.model, "input_shape", None))

    @property
    def classes(self) -> tuple[Value, ...] | None:
        width = _width(getattr(self.model, "output_shape", None)) or 0
        return tuple(range(width)) if width > 1 else None

    @property
    def cut(self) -> float | None:
        layers = getattr(self.model, "layers", None) or [None]
        activation = getattr(layers[-1], "activation", None)
        return 0.5 if getattr(activation, "__name__", "") == "sigmoid" else None

    def answer(self, method: Method, inputs: Any) -> Any:
        return self.model.predict(inputs, verbose=0, batch_size=8192)


def _width(shape: Any) -> int | None:
    """How many numbers each row of this shape has, where that is known."""
    width = shape[-1] if isinstance(shape, tuple) and len(shape) == 2 else None
    return width if isinstance(width, int) else None


class TorchModule(Trained):
    """A PyTorch module: an array of numbers in, a number or one for each class out."""

    form = "array"
    by_class, own_methods = True, False

    @property
    def classes(self) -> tuple[Value, ...] | None:
        return None if self.width is None or self.width < 2 else tuple(range(self.width))

    width: int | None = None  # of its answers, once it was tried

    @property
    def count(self) -> int | None:
        """What its first layer with weights takes, where that is a number for each column."""
        for layer in self.model.modules():
            own = getattr(layer, "in_features", None) or getattr(layer, "num_features", None)
            if own is not None or next(layer.parameters(recurse=False), None) is not None:
                return own if isinstance(own, int) else None
        return None

    @property
    def cut(self) -> float | None:
        """Half a probability behind a sigmoid, and 0 for a single number, which may be a logit."""
        *_, last = self.model.modules()
        if type(last).__name__ == "Sigmoid" or getattr(last, "original_name", "") == "Sigmoid":
            return 0.5
        return 0.0 if getattr(last, "out_features", None) == 1 else None

    def move(self, device: str) -> None:
        torch = importlib.import_module("torch")
        try:
            self.model.to(torch.device(device))
        except (RuntimeError, AssertionError) as error:  # what PyTorch raises where there is none
            said = str(error).splitlines()[0]
            problem = f"PyTorch can't compute on {device!r} here: {said}"
            raise RequestError.one("model-device", "device", problem, "leave it out") from None

    def answer(self, method: Method, inputs: Any) -> Any:
        """Asked as in use, not as in training, which drops units at random."""
        torch = importlib.import_module("torch")
        like = next(self.model.parameters(), torch.empty(0))
        was_training = self.model.training
        self.model.eval()
        try:
            with torch.inference_mode():
                given = torch.as_tensor(inputs, dtype=like.dtype, device=like.device)
                answers = self.model(given).cpu()
        finally:
            self.model.train(was_training)
        answers = answers.double() if answers.is_floating_point() else answers
        self.width = answers.shape[1] if answers.ndim == 2 else 1
        return answers.numpy()

    def fingerprint(self) -> str:
        digest = hashlib.sha256(function_fingerprint(type(self.model).forward).encode())
        for name, tensor in sorted(self.model.state_dict().items()):
            how = f"{name} {tensor.dtype} {tensor.device.type} "  # in which the last bit may differ
            digest.update(how.encode() + tensor.cpu().double().numpy().tobytes())
        return digest.hexdigest()[:16]


_MAKES: dict[str, tuple[type[Trained], type[Trained]]] = {  # package → its Booster, its others
    "xgboost": (XgboostBooster, Xgboost),
    "lightgbm": (LightgbmBooster, Lightgbm),
    "catboost": (Catboost, Catboost),
    "statsmodels": (Statsmodels, Statsmodels),
    "keras": (Keras, Keras),
}
