"""Model files as subjects: the same scores as in memory, and no code run that nobody trusts."""

from __future__ import annotations

import os
import pickle
import sys
import types
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

import themis
from tests.subjects.contract import assert_keeps_the_contract
from themis import Integers, RequestError, Schema
from themis.subjects.base import Subject
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


@pytest.fixture(scope="module")
def numbers() -> tuple[Any, np.ndarray]:
    """A forest that was fitted on an array, and the array."""
    generator = np.random.default_rng(0)
    codes = _draw(NUMBERS, 400)
    values = np.column_stack([each.decode(codes[:, c]) for c, each in enumerate(NUMBERS)])
    values = values.astype(np.float32)
    target = (values[:, 0] + values[:, 1] + 20 * values[:, 2] + generator.normal(0, 9, 400)) > 100
    return RandomForestClassifier(10, random_state=0).fit(values, target.astype(int)), values


@pytest.fixture(scope="module")
def mixed() -> Any:
    """A pipeline that was fitted on a DataFrame, with text labels."""
    frame = _frame(MIXED, _draw(MIXED, 400))
    target = np.where((frame["race"] == "green") ^ (frame["age"] > 40), "approve", "deny")
    encode = make_column_transformer((OneHotEncoder(), TEXT_COLUMNS), remainder="passthrough")
    return make_pipeline(encode, LogisticRegression(max_iter=2_000)).fit(frame, target)


def _draw(schema: Schema, count: int) -> np.ndarray:
    generator = np.random.default_rng(1)
    return np.column_stack([generator.integers(0, each.size, count) for each in schema])


def _frame(schema: Schema, codes: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({e.name: e.decode(codes[:, c]) for c, e in enumerate(schema)})


def _save_onnx(model: Any, path: Path, types_: list[tuple[str, Any]], **options: Any) -> Path:
    onnx = skl2onnx.to_onnx(model, initial_types=types_, target_opset=17, **options)
    path.write_bytes(onnx.SerializeToString())
    return path


def _onnx_of_mixed(model: Any, path: Path) -> Path:
    kinds = {"race": StringTensorType([None, 1]), "age": Int64TensorType([None, 1])}
    kinds["city"] = StringTensorType([None, 1])
    return _save_onnx(model, path, list(kinds.items()), options={"zipmap": False})


def _outputs(subject: Subject, codes: np.ndarray) -> list[Any]:
    answers = subject.load(codes).run()
    assert not answers.failures
    return np.asarray(answers.outputs).tolist()


def _complaint(path: Path, schema: Schema = NUMBERS, **options: Any) -> str:
    with pytest.raises(RequestError) as caught:
        load_model(path, schema, **options)
    assert caught.value.exit_code == 2
    return str(caught.value)


class TestOnnx:
    def test_table_model_decides_like_the_one_in_memory(
        self, tmp_path: Path, numbers: tuple[Any, np.ndarray]
    ) -> None:
        model, values = numbers
        path = _save_onnx(model, tmp_path / "m.onnx", [("X", FloatTensorType([None, 3]))])
        subject = load_model(path, NUMBERS)
        assert subject.kind == "model"
        assert subject.traits.vectorised
        assert _outputs(subject, _draw(NUMBERS, 400)) == model.predict(values).tolist()

    def test_a_device_that_is_not_there_is_said_with_those_that_are(
        self, tmp_path: Path, numbers: tuple[Any, np.ndarray]
    ) -> None:
        path = _save_onnx(numbers[0], tmp_path / "m.onnx", [("X", FloatTensorType([None, 3]))])
        assert "can't compute on 'cpuu' here; did you mean 'cpu'" in _complaint(path, device="cpuu")
        there, here = load_model(path, NUMBERS, device="cpu"), load_model(path, NUMBERS)
        assert there.fingerprint() == f"{here.fingerprint()} cpu"
        rows = _draw(NUMBERS, 50)
        assert _outputs(there, rows) == _outputs(here, rows)

    def test_model_with_named_columns_and_text_labels(self, tmp_path: Path, mixed: Any) -> None:
        subject = load_model(_onnx_of_mixed(mixed, tmp_path / "m.onnx"), MIXED)
        codes = _draw(MIXED, 300)
        assert _outputs(subject, codes) == mixed.predict(_frame(MIXED, codes)).tolist()

    def test_all_kinds_keep_the_contract(
        self, tmp_path: Path, mixed: Any, numbers: tuple[Any, np.ndarray]
    ) -> None:
        table = _save_onnx(numbers[0], tmp_path / "t.onnx", [("X", FloatTensorType([None, 3]))])
        for path, schema in (
            (_onnx_of_mixed(mixed, tmp_path / "m.onnx"), MIXED),
            (table, NUMBERS),
        ):
            assert_keeps_the_contract(load_model(path, schema, version="2"), _draw(schema, 50))

    def test_wrong_columns_are_all_named(self, tmp_path: Path, mixed: Any) -> None:
        path = _onnx_of_mixed(mixed, tmp_path / "m.onnx")
        schema = Schema(rase=["green"], age=["18"], city=["A"])
        text = _complaint(path, schema)
        assert "needs a column 'race' that the schema lacks; did you mean 'rase'?" in text
        assert "takes no 'rase'" in text
        assert "'age' holds text, and the model takes numbers there" in text

    def test_fixed_batch_size_is_refused(
        self, tmp_path: Path, numbers: tuple[Any, np.ndarray]
    ) -> None:
        path = _save_onnx(numbers[0], tmp_path / "m.onnx", [("X", FloatTensorType([1, 3]))])
        assert "takes 1 input at once" in _complaint(path)

    def test_missing_library_is_named_with_the_remedy(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "m.onnx").write_bytes(b"x")
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
        assert "pip install 'themis-fairness[models]'" in _complaint(tmp_path / "m.onnx")


class TestSkops:
    def test_model_decides_like_the_one_in_memory(self, tmp_path: Path, mixed: Any) -> None:
        skops.dump(mixed, tmp_path / "m.skops")
        in_file = themis.Audit(
            load_model(tmp_path / "m.skops", MIXED), MIXED, favourable=["approve"]
        ).group("race")
        in_memory = themis.Audit(mixed, MIXED, favourable=["approve"]).group("race")
        assert in_file.score == in_memory.score > 0

    def test_types_that_hold_data_alone_need_no_trust(
        self, tmp_path: Path, numbers: tuple[Any, np.ndarray]
    ) -> None:
        values = numbers[1]
        model = make_pipeline(SimpleImputer(), CalibratedClassifierCV(LogisticRegression()))
        model.fit(values, numbers[0].predict(values))
        skops.dump(model, tmp_path / "m.skops")
        subject = load_model(tmp_path / "m.skops", NUMBERS)
        assert _outputs(subject, _draw(NUMBERS, 400)) == model.predict(values).tolist()

    def test_unknown_types_are_listed_not_loaded(self, tmp_path: Path) -> None:
        steps = SimpleImputer().fit([[1.0]]), FunctionTransformer(os.system), LogisticRegression()
        skops.dump(make_pipeline(*steps), tmp_path / "m.skops")
        text = _complaint(tmp_path / "m.skops")
        assert "types that skops does not know: posix.system;" in text
        assert "trust_pickle=True" in text


class TestPickles:
    @pytest.mark.parametrize("ending", ["joblib", "pkl", "pickle"])
    def test_trusted_model_decides_like_the_one_in_memory(
        self, tmp_path: Path, numbers: tuple[Any, np.ndarray], ending: str
    ) -> None:
        model, values = numbers
        path = tmp_path / f"m.{ending}"
        if ending == "joblib":
            joblib.dump(model, path)
        else:
            path.write_bytes(pickle.dumps(model))
        subject = load_model(path, NUMBERS, trust_pickle=True)
        assert _outputs(subject, _draw(NUMBERS, 400)) == model.predict(values).tolist()

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
        assert _outputs(subject, _draw(NUMBERS, 2)) == [1, 1]
        assert str(tmp_path) not in sys.path

    def test_missing_module_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "m.pkl").write_bytes(b"cno_such_module\nX\n)R.")
        assert "needs the module 'no_such_module'" in _complaint(
            tmp_path / "m.pkl", trust_pickle=True
        )


class TestMlflow:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "model").mkdir()
        (tmp_path / "model" / "MLmodel").write_text("flavors: {}")
        return tmp_path / "model"

    def test_folder_needs_the_flag(self, folder: Path) -> None:
        assert "trust_pickle=True" in _complaint(folder)

    def test_model_gets_a_frame(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        class Predictor:
            def predict(self, frame: pd.DataFrame) -> Any:
                return (frame["age"] > 40).astype(int)

        library = types.ModuleType("mlflow.pyfunc")
        library.load_model = lambda _: Predictor()  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "mlflow", types.ModuleType("mlflow"))
        monkeypatch.setitem(sys.modules, "mlflow.pyfunc", library)
        subject = load_model(folder, NUMBERS, trust_pickle=True)
        assert _outputs(subject, np.array([[0, 0, 0], [40, 0, 0]])) == [0, 1]


class TestFiles:
    def test_missing_file_suggests_a_near_name(self, tmp_path: Path) -> None:
        (tmp_path / "model.onnx").touch()
        assert "did you mean 'model.onnx'?" in _complaint(tmp_path / "modle.onnx")

    def test_unknown_ending_lists_the_known_ones(self, tmp_path: Path) -> None:
        (tmp_path / "m.h5").touch()
        text = _complaint(tmp_path / "m.h5", trust_pickle=True)
        assert all(ending in text for ending in (".onnx", ".skops", ".joblib", ".pkl", ".pickle"))

    def test_plain_folder_is_refused(self, tmp_path: Path) -> None:
        assert "is a folder" in _complaint(tmp_path)

    @pytest.mark.parametrize("ending", ["onnx", "skops", "joblib", "pkl"])
    @pytest.mark.parametrize("content", [b"", b"nonsense", b"\x80\x04."])
    def test_corrupt_file_is_one_line(self, tmp_path: Path, ending: str, content: bytes) -> None:
        path = tmp_path / f"m.{ending}"
        path.write_bytes(content)
        text = _complaint(path, trust_pickle=True)
        assert "\n" not in text
        assert path.name in text

    def test_object_without_predict_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "m.pkl").write_bytes(pickle.dumps({"weights": [1]}))
        assert "holds a dict" in _complaint(tmp_path / "m.pkl", trust_pickle=True)

    def test_fingerprint_changes_with_file_and_version(self, tmp_path: Path) -> None:
        codes, target = _draw(NUMBERS, 60), np.arange(60) % 2
        prints = set()
        for seed, version in ((0, ""), (0, "2"), (1, ""), (0, "")):
            model = GradientBoostingClassifier(n_estimators=2, random_state=seed, subsample=0.5)
            (tmp_path / "m.pkl").write_bytes(pickle.dumps(model.fit(codes, target)))
            subject = load_model(tmp_path / "m.pkl", NUMBERS, trust_pickle=True, version=version)
            prints.add(subject.fingerprint())
        assert len(prints) == 3
