"""Model files as subjects: the same scores as in memory, and no code run that nobody trusts."""

from __future__ import annotations

import os
import pickle
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from tests.subjects.contract import assert_keeps_the_contract, outputs_of
from themis import Integers, RequestError, Schema
from themis.subjects.model_files import load_model

skops = pytest.importorskip("skops.io")
pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")

from skl2onnx.common.data_types import (  # noqa: E402 - only where it is installed
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)

NUMBERS = Schema(age=Integers(18, 67), income=Integers(0, 100), owner=[False, True])
MIXED = Schema(race=["green", "purple"], age=Integers(18, 67), city=["A", "B", "C"])
TEXT_COLUMNS = ["race", "city"]


@dataclass
class Case:
    """A model in memory, the schema of its inputs, and what it was fitted on."""

    schema: Schema
    model: Any
    fitted_on: Any


@pytest.fixture(scope="module")
def numbers() -> Case:
    """A forest that was fitted on an array."""
    values = _values(NUMBERS, _draw(NUMBERS, 400))
    noise = np.random.default_rng(0).normal(0, 9, 400)
    target = (values[:, 0] + values[:, 1] + 20 * values[:, 2] + noise) > 100
    forest = RandomForestClassifier(10, random_state=0)
    return Case(NUMBERS, forest.fit(values, target.astype(int)), values)


@pytest.fixture(scope="module")
def mixed() -> Case:
    """A pipeline that was fitted on a DataFrame, with text labels."""
    frame = _values(MIXED, _draw(MIXED, 400))
    target = np.where((frame["race"] == "green") ^ (frame["age"] > 40), "approve", "deny")
    encode = make_column_transformer((OneHotEncoder(), TEXT_COLUMNS), remainder="passthrough")
    model = make_pipeline(encode, LogisticRegression(max_iter=2_000)).fit(frame, target)
    return Case(MIXED, model, frame)


def _draw(schema: Schema, count: int) -> np.ndarray:
    generator = np.random.default_rng(1)
    return np.column_stack([generator.integers(0, each.size, count) for each in schema])


def _values(schema: Schema, codes: np.ndarray) -> Any:
    frame = pd.DataFrame({e.name: e.decode(codes[:, c]) for c, e in enumerate(schema)})
    return frame if schema is MIXED else frame.to_numpy(np.float32)


def _save(case: Case, path: Path, inputs: Any = None) -> Path:
    if path.suffix == ".skops":
        skops.dump(case.model, path)
    elif path.suffix == ".joblib":
        joblib.dump(case.model, path)
    elif path.suffix != ".onnx":
        path.write_bytes(pickle.dumps(case.model))
    else:
        text, number = StringTensorType([None, 1]), Int64TensorType([None, 1])
        columns = [("race", text), ("age", number), ("city", text)]
        array = [("X", FloatTensorType([None, 3]))]
        types_ = inputs or (columns if case.schema is MIXED else array)
        options = {"zipmap": False}
        onnx = skl2onnx.to_onnx(case.model, initial_types=types_, target_opset=17, options=options)
        path.write_bytes(onnx.SerializeToString())
    return path


def _complaint(path: Path, schema: Schema = NUMBERS, **options: Any) -> str:
    with pytest.raises(RequestError) as caught:
        load_model(path, schema, **options)
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.mark.parametrize("ending", ["onnx", "skops", "joblib", "pkl", "pickle"])
@pytest.mark.parametrize("name", ["numbers", "mixed"])
def test_a_file_decides_like_the_model_in_memory_and_keeps_the_contract(
    tmp_path: Path, request: pytest.FixtureRequest, name: str, ending: str
) -> None:
    case = request.getfixturevalue(name)
    trust = ending not in ("onnx", "skops") or name == "numbers"  # skops knows no trees
    path = _save(case, tmp_path / f"m.{ending}")
    subject = load_model(path, case.schema, trust_pickle=trust, version="2")
    assert subject.kind == "model"
    assert subject.traits.vectorised
    codes = _draw(case.schema, 300)
    assert (
        outputs_of(subject.load(codes)) == case.model.predict(_values(case.schema, codes)).tolist()
    )
    assert_keeps_the_contract(subject, codes[:50])


class TestOnnx:
    def test_a_device_that_is_not_there_is_said_with_those_that_are(
        self, tmp_path: Path, numbers: Case
    ) -> None:
        path = _save(numbers, tmp_path / "m.onnx")
        assert "can't compute on 'cpuu' here; did you mean 'cpu'" in _complaint(path, device="cpuu")
        there, here = load_model(path, NUMBERS, device="cpu"), load_model(path, NUMBERS)
        assert there.fingerprint() == f"{here.fingerprint()} cpu"
        rows = _draw(NUMBERS, 50)
        assert outputs_of(there.load(rows)) == outputs_of(here.load(rows))

    def test_wrong_columns_are_all_named(self, tmp_path: Path, mixed: Case) -> None:
        path = _save(mixed, tmp_path / "m.onnx")
        text = _complaint(path, Schema(rase=["green"], age=["18"], city=["A"]))
        assert "needs a column 'race' that the schema lacks; did you mean 'rase'?" in text
        assert "takes no 'rase'" in text
        assert "'age' holds text, and the model takes numbers there" in text

    def test_fixed_batch_size_is_refused(self, tmp_path: Path, numbers: Case) -> None:
        path = _save(numbers, tmp_path / "m.onnx", [("X", FloatTensorType([1, 3]))])
        assert "takes 1 input at once" in _complaint(path)

    def test_missing_library_is_named_with_the_remedy(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "m.onnx").write_bytes(b"x")
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
        assert "pip install 'themis-fairness[models]'" in _complaint(tmp_path / "m.onnx")


class TestTrust:
    def test_types_of_skops_that_hold_data_alone_need_none(
        self, tmp_path: Path, numbers: Case
    ) -> None:
        model = make_pipeline(SimpleImputer(), CalibratedClassifierCV(LogisticRegression()))
        model.fit(numbers.fitted_on, numbers.model.predict(numbers.fitted_on))
        skops.dump(model, tmp_path / "m.skops")
        subject = load_model(tmp_path / "m.skops", NUMBERS)
        found = outputs_of(subject.load(_draw(NUMBERS, 400)))
        assert found == model.predict(numbers.fitted_on).tolist()

    def test_unknown_types_are_listed_not_loaded(self, tmp_path: Path) -> None:
        steps = SimpleImputer().fit([[1.0]]), FunctionTransformer(os.system), LogisticRegression()
        skops.dump(make_pipeline(*steps), tmp_path / "m.skops")
        text = _complaint(tmp_path / "m.skops")
        assert "types that skops does not know: posix.system;" in text
        assert "trust_pickle=True" in text

    @pytest.mark.parametrize("ending", ["joblib", "pkl", "pickle", "PKL", "onnx", "skops"])
    def test_malicious_file_is_not_executed_without_the_flag(
        self, tmp_path: Path, ending: str
    ) -> None:
        mark = tmp_path / "executed"

        class Malicious:
            def __reduce__(self) -> Any:
                return Path.touch, (mark,)

        path = tmp_path / f"m.{ending}"
        path.write_bytes(pickle.dumps(Malicious()))
        text = _complaint(path)
        assert not mark.exists()
        if ending not in ("onnx", "skops"):
            assert all(word in text for word in ("ONNX", "skops", "trust_pickle=True"))
            _complaint(path, trust_pickle=True)  # it holds no model, and now it did run
            assert mark.exists()

    def test_classes_beside_the_file_are_found(self, tmp_path: Path) -> None:
        name = "themis_test_own_model"
        (tmp_path / f"{name}.py").write_text(
            "class Own:\n    def predict(self, rows):\n        return [1] * len(rows)\n"
        )
        (tmp_path / "m.pkl").write_bytes(f"c{name}\nOwn\n)R.".encode())
        try:
            subject = load_model(tmp_path / "m.pkl", NUMBERS, trust_pickle=True)
        finally:
            sys.modules.pop(name, None)
        assert outputs_of(subject.load(_draw(NUMBERS, 2))) == [1, 1]
        assert str(tmp_path) not in sys.path

    def test_missing_module_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "m.pkl").write_bytes(b"cno_such_module\nX\n)R.")
        text = _complaint(tmp_path / "m.pkl", trust_pickle=True)
        assert "needs the module 'no_such_module'" in text


def test_an_mlflow_model_needs_trust_and_gets_a_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Predictor:
        def predict(self, frame: pd.DataFrame) -> Any:
            return (frame["age"] > 40).astype(int)

    (tmp_path / "MLmodel").write_text("flavors: {}")
    assert "trust_pickle=True" in _complaint(tmp_path)
    library = types.ModuleType("mlflow.pyfunc")
    library.load_model = lambda _: Predictor()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mlflow", types.ModuleType("mlflow"))
    monkeypatch.setitem(sys.modules, "mlflow.pyfunc", library)
    subject = load_model(tmp_path, NUMBERS, trust_pickle=True)
    assert outputs_of(subject.load(np.array([[0, 0, 0], [40, 0, 0]]))) == [0, 1]


class TestFiles:
    def test_what_is_no_file_of_a_model_is_said(self, tmp_path: Path) -> None:
        assert "is a folder" in _complaint(tmp_path)
        (tmp_path / "model.onnx").touch()
        assert "did you mean 'model.onnx'?" in _complaint(tmp_path / "modle.onnx")
        (tmp_path / "m.h5").touch()
        text = _complaint(tmp_path / "m.h5", trust_pickle=True)
        assert all(ending in text for ending in (".onnx", ".skops", ".joblib", ".pkl", ".pickle"))
        (tmp_path / "m.pkl").write_bytes(pickle.dumps({"weights": [1]}))
        assert "holds a dict" in _complaint(tmp_path / "m.pkl", trust_pickle=True)

    @pytest.mark.parametrize("ending", ["onnx", "skops", "joblib", "pkl"])
    @pytest.mark.parametrize("content", [b"", b"nonsense", b"\x80\x04."])
    def test_corrupt_file_is_one_line(self, tmp_path: Path, ending: str, content: bytes) -> None:
        path = tmp_path / f"m.{ending}"
        path.write_bytes(content)
        text = _complaint(path, trust_pickle=True)
        assert "\n" not in text
        assert path.name in text

    def test_fingerprint_changes_with_file_and_version(self, tmp_path: Path) -> None:
        codes, target = _draw(NUMBERS, 60), np.arange(60) % 2
        prints = set()
        for seed, version in ((0, ""), (0, "2"), (1, ""), (0, "")):
            model = GradientBoostingClassifier(n_estimators=2, random_state=seed, subsample=0.5)
            (tmp_path / "m.pkl").write_bytes(pickle.dumps(model.fit(codes, target)))
            subject = load_model(tmp_path / "m.pkl", NUMBERS, trust_pickle=True, version=version)
            prints.add(subject.fingerprint())
        assert len(prints) == 3
