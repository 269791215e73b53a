"""Models of other libraries as subjects: handed over as they are, and scored as the library says.

Each score is that of all inputs, asked of the library itself in the way of its own documentation.
The dependency group `frameworks` has them.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import themis
from themis import Integers, RequestError, Schema
from themis.cli.init import write_file
from themis.config.reader import Config, read_config

# Whatever a library says about its own dependencies is its own affair.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

SCHEMA = Schema(
    {
        "sex": ["Male", "Female"],
        "age": Integers(18, 67),
        "home town": list("CAB"),
        "rich": [False, True],
    }
)
NUMBERS = Schema(sex=[0, 1], age=Integers(18, 67), rich=[False, True])
TEXT = ["sex", "home town"]


def library(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name} is not installed: make test-full installs it")


def people(schema: Schema, count: int = 800) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {each.name: each.decode(rng.integers(0, each.size, count)) for each in schema}
    )


def everyone(schema: Schema) -> pd.DataFrame:
    values = [each.decode(np.arange(each.size)).tolist() for each in schema]
    return pd.DataFrame(list(itertools.product(*values)), columns=list(schema.names))


def outcome(frame: pd.DataFrame) -> pd.Series:
    noise = np.random.default_rng(1).normal(0, 4, len(frame))
    worse = frame["sex"].isin(["Female", 1])
    return (frame["age"] + 9 * frame["rich"] - 7 * worse + noise > 40).astype(int)


def town_outcome(frame: pd.DataFrame) -> pd.Series:
    young = frame["age"] + 9 * (frame["sex"] == "Male") < 35
    return frame["home town"].astype(str).where(young, "elsewhere")


def categorised(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype({name: "category" for name in TEXT if name in frame})


def flip_rate(decide: Callable[[pd.DataFrame], Any], schema: Schema = SCHEMA) -> float:
    """The share of inputs whose decision changes with the sex alone, by brute force."""
    frame = everyone(schema)
    decisions = pd.Series(np.asarray(decide(frame)).reshape(len(frame)), name="decision")
    others = [name for name in schema.names if name != "sex"]
    groups = pd.concat([frame, decisions], axis=1).groupby(others)["decision"]
    return float((groups.transform("nunique") > 1).mean())


def assert_scored(
    subject: Any,
    decide: Callable[[pd.DataFrame], Any],
    schema: Schema = SCHEMA,
    folder: Path | None = None,
    **options: Any,
) -> None:
    """The exact score of a model, or of what a themis.toml in the folder says of one."""
    if folder is None:
        audit = themis.Audit(subject, schema, **options)
    else:
        audit = themis.Audit.from_file(write(folder, subject, schema), **options)
    score = audit.causal("sex")
    assert score.method == "exact"
    assert score.score == pytest.approx(flip_rate(decide, schema))
    assert 0.01 < score.score < 1


def write(folder: Path, subject: str, schema: Schema) -> Path:
    """A themis.toml with this subject and these inputs."""
    values = {each.name: each.decode(np.arange(each.size)).tolist() for each in schema}
    inputs = "\n".join(f'"{name}" = {json.dumps(each)}' for name, each in values.items())
    path = folder / "themis.toml"
    path.write_text(f'version = 1\n[subject]\nkind = "model"\n{subject}\n[inputs]\n{inputs}\n')
    return path


def drafted_from(rows: pd.DataFrame, model: str, folder: Path, module: str | None = None) -> Config:
    """What `themis init` makes of a table and the file of a model."""
    rows.to_csv(folder / "people.csv", index=False)
    write_file(
        str(folder / "people.csv"),
        folder / "themis.toml",
        target=None,
        force=True,
        model=folder / model,
        module=module,
        trust_pickle=module is None,
    )
    return read_config(folder / "themis.toml")


def assert_drafted_is_scored(
    folder: Path, rows: pd.DataFrame, decide: Callable[[pd.DataFrame], Any], **options: Any
) -> None:
    """The file that was drafted gives the score of the people in the table."""
    score = themis.Audit.from_file(folder / "themis.toml", **options).causal("sex").score
    one, other = (np.asarray(decide(rows.assign(sex=each))) for each in rows["sex"].unique())
    assert score == pytest.approx(np.mean(one != other))
    assert 0.01 < score < 1


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return categorised(people(SCHEMA))


def boosted(name: str, frame: Any, target: Any, trees: int = 20) -> Any:
    """A classifier of this library."""
    if name == "xgboost":
        model = library(name).XGBClassifier(n_estimators=trees, enable_categorical=True)
    else:
        model = library(name).LGBMClassifier(n_estimators=trees, verbose=-1)
    return model.fit(frame, target)


def booster(model: Any) -> Any:
    return model.get_booster() if hasattr(model, "get_booster") else model.booster_


@pytest.mark.parametrize("name", ["xgboost", "lightgbm"])
class TestBoosters:
    FILES = {"xgboost": ["json", "ubj"], "lightgbm": ["txt"]}  # noqa: RUF012

    def test_classifier_booster_and_files_decide_alike(
        self, tmp_path: Path, frame: pd.DataFrame, name: str
    ) -> None:
        model = boosted(name, frame, outcome(frame))
        decide = lambda frame: model.predict(categorised(frame))  # noqa: E731
        with_cut = lambda frame: model.predict_proba(categorised(frame))[:, 1] >= 0.9  # noqa: E731
        for subject in (model, booster(model)):
            assert_scored(subject, decide)
            assert_scored(themis.model(subject, cut=0.9), with_cut)
            assert_scored(
                themis.model(subject, method="predict_proba", class_=1, cut=0.9), with_cut
            )
        for ending in self.FILES[name]:
            for saved in (model, booster(model)) if name == "xgboost" else (booster(model),):
                saved.save_model(tmp_path / f"m.{ending}")
                assert_scored(f'file = "m.{ending}"', decide, folder=tmp_path)
            assert_scored(f'file = "m.{ending}"\ncut = 0.9', with_cut, folder=tmp_path)

    def test_one_that_was_trained_on_an_array_gets_one(self, name: str) -> None:
        frame = people(NUMBERS)
        model = boosted(name, frame.to_numpy(float), outcome(frame))
        for subject in (model, booster(model)):
            assert_scored(subject, lambda frame: model.predict(frame.to_numpy(float)), NUMBERS)

    def test_several_classes_are_asked_for(self, frame: pd.DataFrame, name: str) -> None:
        target = town_outcome(frame).astype("category").cat.codes
        model = boosted(name, frame, target, trees=5)
        for subject in (model, booster(model)):
            with pytest.raises(RequestError, match=r"4 classes: 0, 1, 2, 3.*favourable = "):
                themis.Audit(subject, SCHEMA)
            decide = lambda frame: model.predict(categorised(frame))  # noqa: E731
            assert_scored(subject, decide, favourable=[3])
            assert_scored(
                themis.model(subject, class_=3, cut=0.4),
                lambda frame: model.predict_proba(categorised(frame))[:, 3] >= 0.4,
            )

    def test_a_value_that_it_never_saw_is_named(self, frame: pd.DataFrame, name: str) -> None:
        schema = Schema({**{each.name: each for each in SCHEMA}, "sex": ["male", "Female"]})
        with pytest.raises(RequestError, match=r"sex 'male'; leave them out.*: Female, Male"):
            themis.Audit(boosted(name, frame, outcome(frame), trees=5), schema)


def test_a_file_that_stopped_early_decides_like_its_classifier(
    tmp_path: Path, frame: pd.DataFrame
) -> None:
    xgboost = library("xgboost")
    stop = {"early_stopping_rounds": 2, "learning_rate": 1.0}
    model = xgboost.XGBClassifier(n_estimators=60, enable_categorical=True, **stop)
    half = len(frame) // 2
    target = outcome(frame)
    later = [(frame[half:], target[half:])]
    model.fit(frame[:half], target[:half], eval_set=later, verbose=False)
    assert model.best_iteration < model.get_booster().num_boosted_rounds() - 1
    model.save_model(tmp_path / "m.json")
    decide = lambda frame: model.predict(categorised(frame))  # noqa: E731
    assert_scored('file = "m.json"', decide, folder=tmp_path)


def test_a_catboost_model_and_its_file_get_their_columns_in_their_order(tmp_path: Path) -> None:
    catboost = library("catboost")
    frame = people(SCHEMA)
    model = catboost.CatBoostClassifier(iterations=20, verbose=0, allow_writing_files=False)
    model.fit(frame, np.where(outcome(frame), "yes", "no"), cat_features=TEXT)
    turned = Schema({each.name: each for each in reversed(SCHEMA.characteristics)})
    decide = lambda frame: model.predict(frame[list(SCHEMA.names)])  # noqa: E731
    assert_scored(model, decide, turned, favourable=["yes"])
    model.save_model(str(tmp_path / "m.cbm"))
    assert_scored('file = "m.cbm"\nfavourable = ["yes"]', model.predict, folder=tmp_path)
    with_cut = lambda frame: model.predict_proba(frame)[:, 1] >= 0.9  # noqa: E731
    assert_scored('file = "m.cbm"\nclass = "yes"\ncut = 0.9', with_cut, folder=tmp_path)


NET = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(3, WIDTH)

    def forward(self, rows):
        return ANSWER
"""


def write_net(folder: Path, name: str, width: int = 1, answer: str = "self.line(rows)") -> None:
    """A module of Python with a network of one layer."""
    text = NET.replace("WIDTH", str(width)).replace("ANSWER", answer)
    (folder / f"{name}.py").write_text(text)


def scaled(torch: Any) -> Any:
    """Brings the numbers of people to about one."""
    layer = torch.nn.BatchNorm1d(3)
    layer.running_mean = torch.tensor([0.5, 42.0, 0.5])
    layer.running_var = torch.tensor([0.5, 15.0, 0.5]) ** 2
    return layer


def raw(module: Any, frame: pd.DataFrame) -> Any:
    """What a module of PyTorch answers when it is in use."""
    torch = library("torch")
    with torch.no_grad():
        return module.eval()(torch.tensor(frame.to_numpy(np.float32))).numpy()


class TestTorch:
    @pytest.fixture(scope="class")
    def module(self) -> Any:
        torch = library("torch")
        torch.manual_seed(0)
        layers = torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Dropout(0.5)
        return torch.nn.Sequential(scaled(torch), *layers, torch.nn.Linear(8, 1))

    @pytest.fixture(scope="class")
    def cut(self, module: Any) -> float:
        return float(np.median(raw(module, everyone(NUMBERS))))

    def test_a_module_is_asked_as_in_use_and_left_as_it_was(self, module: Any, cut: float) -> None:
        subject = themis.model(module.train(), cut=cut)
        assert_scored(subject, lambda frame: raw(module, frame)[:, 0] >= cut, NUMBERS)
        module.train()
        themis.Audit(subject, NUMBERS).causal("sex")
        assert module.training

    def test_scores_by_class_decide_for_the_largest(self) -> None:
        torch = library("torch")
        torch.manual_seed(3)
        two, three = (
            torch.nn.Sequential(scaled(torch), torch.nn.Linear(3, width)) for width in (2, 3)
        )
        assert_scored(two, lambda frame: raw(two, frame).argmax(axis=1), NUMBERS)
        with pytest.raises(RequestError, match=r"3 classes: 0, 1, 2; .*favourable = "):
            themis.Audit(three, NUMBERS)

    def test_a_device_that_is_not_there_is_said(self, module: Any, cut: float) -> None:
        with pytest.raises(RequestError, match="can't compute on 'xpu:9' here"):
            themis.Audit(themis.model(module, cut=cut, device="xpu:9"), NUMBERS)

    def test_a_gpu_decides_the_same(self, module: Any, cut: float) -> None:
        if not library("torch").cuda.is_available():
            pytest.skip("there is no GPU for PyTorch")
        here = themis.Audit(themis.model(module, cut=cut), NUMBERS)
        there = themis.Audit(themis.model(copy.deepcopy(module), cut=cut, device="cuda"), NUMBERS)
        assert there.causal("sex").score == here.causal("sex").score
        assert there.runner.subject.fingerprint() != here.runner.subject.fingerprint()

    def test_weights_are_read_for_a_module_that_is_named(self, tmp_path: Path) -> None:
        torch = library("torch")
        write_net(tmp_path, "themis_test_net")
        line = {"weight": torch.tensor([[-9.0, 1.0, 8.0]]), "bias": torch.tensor([-40.0])}
        torch.save({f"line.{name}": each for name, each in line.items()}, tmp_path / "net.pt")
        subject = 'file = "net.pt"\nobject = "themis_test_net:Net"\ncut = 0'
        decide = lambda f: f["age"] + 8 * f["rich"] - 9 * f["sex"] >= 40  # noqa: E731
        assert_scored(subject, decide, NUMBERS, tmp_path)
        for saved, said in (
            ({"other": line["bias"]}, r"weights in net\.pt do not fit(?s:.*)Missing key\(s\)"),
            ([1], r"net\.pt holds a list, no weights; save them"),
        ):
            torch.save(saved, tmp_path / "net.pt")
            with pytest.raises(RequestError, match=said):
                themis.Audit.from_file(tmp_path / "themis.toml")

    def test_a_pickle_that_is_named_as_weights_is_not_executed(self, tmp_path: Path) -> None:
        mark = tmp_path / "executed"

        class Malicious:
            def __reduce__(self) -> Any:
                return Path.touch, (mark,)

        library("torch").save(Malicious(), tmp_path / "m.pt")
        subject = 'file = "m.pt"\nobject = "torch.nn:Identity"'
        with pytest.raises(RequestError, match=r"m\.pt can't be read"):
            themis.Audit.from_file(write(tmp_path, subject, NUMBERS))
        assert not mark.exists()

    def test_torchscript_needs_trust(self, tmp_path: Path, module: Any, cut: float) -> None:
        torch = library("torch")
        torch.jit.trace(module.eval(), torch.ones(2, 3)).save(str(tmp_path / "m.pt"))
        subject = f'file = "m.pt"\ncut = {cut!r}'
        with pytest.raises(RequestError, match=r"state_dict.*trust_pickle=True"):
            themis.Audit.from_file(write(tmp_path, subject, NUMBERS))
        decide = lambda frame: raw(module, frame)[:, 0] >= cut  # noqa: E731
        assert_scored(subject, decide, NUMBERS, tmp_path, trust_pickle=True)

    def test_weights_are_drafted_with_their_module_and_measured(self, tmp_path: Path) -> None:
        torch = library("torch")
        layers = "torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1))"
        text = f"import torch\n\n\ndef net():\n    return {layers}\n"
        (tmp_path / "drafted_net.py").write_text(text)
        net = torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1))
        net[1].weight.data = torch.tensor([[-9.0, 1.0, 3.0]])
        net[1].bias.data = torch.tensor([-40.0])
        torch.save(net.state_dict(), tmp_path / "net.pt")
        rows = people(NUMBERS)
        table = rows.assign(repaid=outcome(rows))
        config = drafted_from(table, "net.pt", tmp_path, module="drafted_net:net")
        assert config.schema.names == NUMBERS.names, "its first layer takes three numbers"
        assert config.subject.cut == 0
        assert_drafted_is_scored(tmp_path, rows, lambda rows: raw(net, rows)[:, 0] >= 0)

    @pytest.mark.parametrize(("width", "expected"), [(1, "cut = 0.5\n"), (3, "# favourable = [")])
    def test_what_a_module_answers_to_the_rows_is_seen_though_no_layer_shows_it(
        self, width: int, expected: str, tmp_path: Path
    ) -> None:
        torch = library("torch")
        write_net(tmp_path, f"probable_{width}", width, "torch.sigmoid(self.line(rows))")
        line = torch.nn.Linear(3, width).state_dict()
        torch.save({f"line.{name}": each for name, each in line.items()}, tmp_path / "net.pt")
        rows = people(NUMBERS)
        table = rows.assign(repaid=outcome(rows))
        drafted_from(table, "net.pt", tmp_path, module=f"probable_{width}:Net")
        assert f"\n{expected}" in (tmp_path / "themis.toml").read_text()


def test_a_keras_model_decides_from_a_cut_on_or_by_class_and_its_file_needs_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library("torch")
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    keras = library("keras")
    shape, last = keras.layers.Input((3,)), keras.layers.Dense(1, activation="sigmoid")
    model = keras.Sequential([shape, keras.layers.Rescaling(0.02), last])
    last.set_weights([np.array([[9.0], [1.0], [2.0]]), np.zeros(1)])
    answers = lambda frame: model.predict(frame.to_numpy(float), verbose=0)[:, 0]  # noqa: E731
    cut = float(np.median(answers(everyone(NUMBERS))))
    decide = lambda frame: answers(frame) >= cut  # noqa: E731
    with pytest.raises(RequestError, match="cut: the model answers with numbers such as"):
        themis.Audit(model, NUMBERS).causal("sex")
    assert_scored(themis.model(model, cut=cut), decide, NUMBERS)
    three = keras.Sequential([shape, keras.layers.Dense(3, activation="softmax")])
    with pytest.raises(RequestError, match="3 classes: 0, 1, 2"):
        themis.Audit(three, NUMBERS)
    model.save(tmp_path / "model.keras")
    subject = f'file = "model.keras"\ncut = {cut!r}'
    with pytest.raises(RequestError, match=r"model\.keras would run any code"):
        assert_scored(subject, decide, NUMBERS, tmp_path)
    assert_scored(subject, decide, NUMBERS, tmp_path, trust_pickle=True)
    rows = people(NUMBERS)
    drafted = drafted_from(rows.assign(repaid=outcome(rows)), "model.keras", tmp_path)
    assert drafted.schema.names == NUMBERS.names, "the last of one too many is what it predicts"
    assert drafted.subject.cut == 0.5


@pytest.mark.parametrize("by_formula", [True, False])
def test_results_of_statsmodels_predict_from_a_cut_on_also_in_a_file_that_was_drafted(
    by_formula: bool, tmp_path: Path
) -> None:
    """The target and what a formula does not read are no inputs, and there is a cut."""
    schema = SCHEMA if by_formula else NUMBERS
    rows = people(schema)
    rows = rows.assign(other=np.arange(len(rows)) % 4, good=outcome(rows))
    if by_formula:
        formula = "good ~ C(sex) + np.log(age) + rich*sex + Q('home town')"
        model = library("statsmodels.formula.api").logit(formula, rows)
        fitted = model.fit(disp=0, method="lbfgs", maxiter=1000)
        predict = fitted.predict
    else:
        api = library("statsmodels.api")
        read = api.add_constant(rows[["sex", "age", "rich"]].astype(float))
        fitted = api.GLM(rows["good"], read, family=api.families.Binomial()).fit()
        predict = lambda rows: fitted.predict(  # noqa: E731
            rows.assign(const=1.0)[fitted.model.exog_names].astype(float)
        )
    assert_scored(themis.model(fitted, cut=0.6), lambda frame: predict(frame) >= 0.6, schema)
    fitted.save(str(tmp_path / "model.pickle"))
    config = drafted_from(rows, "model.pickle", tmp_path)
    assert set(config.schema.names) == set(schema.names)
    assert config.subject.cut == 0.5
    decide = lambda rows: predict(rows) >= 0.5  # noqa: E731
    assert_drafted_is_scored(tmp_path, rows, decide, trust_pickle=True)
