"""What a model's answers mean: methods, classes, cuts, and the types of its columns."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV

import themis
from themis import Integers, Output, RequestError, Schema, Values
from themis.subjects.loading import subject_from
from themis.subjects.model_files import load_model

SCHEMA = Schema(sex=[0, 1], income=Integers(0, 99))
MIXED = Schema(sex=["Male", "Female"], income=Integers(0, 99))


ROWS = np.stack(np.meshgrid([0, 1], np.arange(100), indexing="ij"), axis=-1).reshape(-1, 2)
GOOD = ROWS[:, 1] >= 50 + 10 * ROWS[:, 0]


@pytest.fixture(scope="module")
def mixed() -> pd.DataFrame:
    sex = pd.Categorical(np.where(ROWS[:, 0] == 1, "Male", "Female"))
    return pd.DataFrame({"sex": sex, "income": ROWS[:, 1]})


def boosted() -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(max_iter=20, min_samples_leaf=5)


def flips(decisions: Any) -> float:
    first, second = np.asarray(decisions).reshape(2, -1)
    return float((first != second).mean())


class Scores:
    """The last probabilities of a model, and nothing else."""

    def __init__(self, model: Any, width: int) -> None:
        self.model, self.width = model, width

    def predict_proba(self, inputs: Any) -> Any:
        found = self.model.predict_proba(inputs)[:, -self.width :]
        return found[:, 0] if self.width == 1 else found


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    two = LogisticRegression(max_iter=500).fit(ROWS, GOOD)
    target = np.where(GOOD, "yes", np.where(ROWS[:, 1] < 20, "no", "ask"))
    three = LogisticRegression(max_iter=500).fit(ROWS, target)
    return {
        "two": two,
        "three": three,
        "line": LinearRegression().fit(ROWS, GOOD),
        "one score": Scores(two, 1),
        "two scores": Scores(two, 2),
        "three scores": Scores(three, 3),
    }


PROBABILITY = {"method": "predict_proba"}
DECISION: dict[str, Any] = {"method": "decision_function", "cut": 0.1}


def of_two(models: dict[str, Any]) -> Any:
    return models["two"].predict_proba(ROWS)[:, 1] >= 0.8


def of_three(models: dict[str, Any]) -> Any:
    return models["three"].predict_proba(ROWS)[:, 2] >= 0.4


@pytest.mark.parametrize(
    ("name", "asked", "expected"),
    [
        ("two", {"cut": 0.8}, of_two),
        *((f"{n} score{s}", {"cut": 0.8}, of_two) for n, s in (("one", ""), ("two", "s"))),
        ("one score", {"cut": 0.8, **PROBABILITY}, of_two),
        ("two scores", {"cut": 0.8, "class_": 1}, of_two),
        ("three", {"cut": 0.4, "class_": "yes"}, of_three),
        ("three scores", {"cut": 0.4, "class_": 2}, of_three),
        ("line", {"cut": 0.5}, lambda models: models["line"].predict(ROWS) >= 0.5),
        ("two", DECISION, lambda models: models["two"].decision_function(ROWS) >= 0.1),
        (
            "two",
            {"class_": False, **DECISION},
            lambda models: -models["two"].decision_function(ROWS) >= 0.1,
        ),
    ],
)
def test_a_cut_decides_on_the_number_of_the_class_from_there_on(
    models: dict[str, Any], name: str, asked: dict[str, Any], expected: Any
) -> None:
    decisions = expected(models)
    audit = themis.Audit(themis.model(models[name], **asked), SCHEMA)
    assert audit.causal("sex").score == pytest.approx(flips(decisions)) != 0
    assert audit.group("sex").groups[0].rate == pytest.approx(decisions[:100].mean())


def test_who_is_at_the_cut_is_favoured(models: dict[str, Any]) -> None:
    cut = float(models["two"].predict_proba([[0, 70]])[0, 1])
    subject = subject_from(themis.model(models["two"], cut=cut), SCHEMA)
    assert subject.load(np.array([[0, 70], [0, 69]])).run().outputs.tolist() == [1, 0]


def test_without_a_cut_a_probability_is_a_declared_output(models: dict[str, Any]) -> None:
    subject = themis.model(models["two"], class_=False, **PROBABILITY)
    output = Output(name="p", min=0, max=1, distance="relational")
    score = themis.Audit(subject, SCHEMA, outputs=output).group("sex")
    proba = models["two"].predict_proba(ROWS)[:, 0].reshape(2, -1)
    assert score.score == pytest.approx(abs(proba[0].mean() - proba[1].mean()))


BETWEEN = 'the model decides between 3 classes: "ask", "no", "yes"; .*favourable = '


@pytest.mark.parametrize(
    ("name", "asked", "options", "said"),
    [
        ("two", PROBABILITY, {}, "cut: a probability is a number, not a decision"),
        ("two scores", {}, {}, "a probability is a number, not a decision"),
        ("two", {"cut": 0.5}, {"favourable": [False]}, "both favourable and cut"),
        ("two", {"device": "cuda"}, {}, "is not moved"),
        ("three", {}, {}, f"favourable: {BETWEEN}"),
        ("three", {}, {"favourable": ["Yes"]}, "favourable: the model has no class 'Yes'"),
        ("three", {"cut": 0.4}, {}, 'class: .* between "ask", "no", "yes"; .*class = "yes"'),
        ("three", {"cut": 0.4, "class_": "Yes"}, {}, "class: the model has no class 'Yes'; choose"),
    ],
)
def test_what_is_left_open_or_contradicts_itself_is_refused(
    models: dict[str, Any], name: str, asked: dict[str, Any], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(RequestError, match=said):
        themis.Audit(themis.model(models[name], **asked), SCHEMA, **options)


def test_several_classes_may_be_favoured_or_labelled(models: dict[str, Any]) -> None:
    themis.Audit(models["three"], SCHEMA, favourable=["yes"])
    themis.Audit(models["three"], SCHEMA, labels={"good": ["yes"], "bad": ["no", "ask"]})


@pytest.mark.parametrize(
    ("name", "asked", "said"),
    [
        ("line", {}, r"cut: the model answers with numbers such as .*0\."),
        ("three scores", {"cut": 0.4}, "answers with 3 probabilities; name the place"),
    ],
)
def test_an_answer_that_is_left_open_is_the_users_mistake_not_a_crash(
    models: dict[str, Any], name: str, asked: dict[str, Any], said: str
) -> None:
    with pytest.raises(RequestError, match=said):
        themis.Audit(themis.model(models[name], **asked), SCHEMA).causal("sex")


def test_what_is_asked_is_part_of_the_fingerprint(models: dict[str, Any]) -> None:
    asked = [{}, {"cut": 0.5}, {"cut": 0.6}, {"cut": 0.5, "class_": False}]
    subjects = [subject_from(themis.model(models["two"], **each), SCHEMA) for each in asked]
    assert len({each.fingerprint() for each in subjects}) == 4
    assert subjects[0].fingerprint() == subject_from(models["two"], SCHEMA).fingerprint()


@pytest.mark.parametrize("names", [None, ["sex", "income"]], ids=["array", "frame"])
def test_what_a_model_writes_into_its_input_is_not_there_in_the_next_call(
    names: list[str] | None,
) -> None:
    class Writes:
        feature_names_in_ = names

        def predict(self, given: Any) -> Any:
            sex, income = given.T if names is None else (given[n].to_numpy() for n in names)
            income.flags.writeable = True  # of frames: before pandas 3 it was
            income -= 50
            return (income >= 10 * sex).astype(int)

    batch = subject_from(Writes(), SCHEMA).load(np.array([[0, 55], [0, 65]]))
    for sex, expected in [(0, [1, 1]), (1, [0, 1]), (0, [1, 1])]:
        batch.overwrite(0, sex)
        assert batch.run().outputs.tolist() == expected


class TestTypes:
    def test_categories_of_the_training_are_learned_from_the_model(
        self, mixed: pd.DataFrame
    ) -> None:
        model = boosted().fit(mixed, GOOD)
        search = GridSearchCV(boosted(), {}, cv=2)
        search.fit(mixed, GOOD)
        expected = flips(model.predict(mixed))
        for each in (model, search):
            assert themis.Audit(each, MIXED).causal("sex").score == pytest.approx(expected) != 0
            with pytest.raises(RequestError, match=r"not trained on sex 'male'; .*: Female, Male"):
                themis.Audit(each, Schema(sex=["male", "Female"], income=Integers(0, 99)))

    def test_a_category_that_was_missing_in_training_is_missing_again(
        self, mixed: pd.DataFrame
    ) -> None:
        unknown = mixed.assign(sex=np.nan).astype({"sex": mixed["sex"].dtype})
        both = pd.concat([mixed, unknown], ignore_index=True)
        model = boosted().fit(both, np.append(GOOD, np.zeros(200, bool)))
        schema = Schema(
            sex=Values(["Female", "Male"], missing=0.5, missing_as_counterfactual=True),
            income=Integers(0, 99),
        )
        groups = themis.Audit(model, schema, favourable=[True]).group("sex").groups
        rates = {each.values["sex"]: each.rate for each in groups}
        for sex, frame in {"Female": mixed[:100], "Male": mixed[100:], None: unknown}.items():
            assert rates[sex] == pytest.approx(model.predict(frame).mean())
        assert rates[None] == 0 < rates["Male"] < rates["Female"]

    @pytest.mark.parametrize("given", ["frame", "dtypes", "names"])
    def test_types_that_are_given_reach_the_model(self, mixed: pd.DataFrame, given: str) -> None:
        wanted = mixed.astype({"income": "float32"})
        seen: list[Any] = []

        class Recorder:
            def predict(self, frame: pd.DataFrame) -> Any:
                seen.append(frame.dtypes)
                return (frame["sex"].cat.codes == 0) & (frame["income"] > 50)

        kinds = {"sex": "category", "income": "float32"}
        dtypes = {"frame": wanted, "dtypes": wanted.dtypes, "names": kinds}[given]
        score = themis.Audit(themis.model(Recorder(), dtypes=dtypes), MIXED).causal("sex")
        assert score.score == pytest.approx(0.49)
        for each in seen:
            assert each["income"] == np.float32
            assert each["sex"].categories.tolist() == ["Female", "Male"]

    def test_values_of_rows_that_no_category_has_are_missing_for_the_model(
        self, mixed: pd.DataFrame
    ) -> None:
        model = boosted().fit(mixed, GOOD)
        profile = pd.DataFrame({"sex": ["Male", "Female", "Other"], "income": [58, 58, 70]})
        score = themis.Audit(model, MIXED, profile=pd.concat([profile] * 20)).causal("sex")
        assert score.score == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        ('method = "predict_proba"\nclass = "yes"\ncut = 0.4', None),
        ('class = "Yes"\ncut = 0.4', r"themis\.toml:5: subject\.class: .*no class 'Yes'"),
        ("", r"themis\.toml:2: subject\.favourable: .*3 classes"),
    ],
)
def test_the_file_says_method_class_and_cut(
    tmp_path: Path, models: dict[str, Any], subject: str, said: str | None
) -> None:
    pytest.importorskip("skops.io").dump(models["three"], tmp_path / "m.skops")
    path = tmp_path / "themis.toml"
    path.write_text(
        f'version = 1\n[subject]\nkind = "model"\nfile = "m.skops"\n{subject}\n'
        "[inputs]\nsex = [0, 1]\nincome = { min = 0, max = 99 }\n"
    )
    if said is None:
        expected = flips(models["three"].predict_proba(ROWS)[:, 2] >= 0.4)
        assert themis.Audit.from_file(path).causal("sex").score == pytest.approx(expected) != 0
        return
    with pytest.raises(RequestError, match=said):
        themis.Audit.from_file(path)


@pytest.mark.parametrize(
    ("ending", "package"),
    [("json", "xgboost"), ("ubj", "xgboost"), ("txt", "lightgbm"), ("cbm", "catboost")],
)
def test_the_package_that_a_file_needs_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, package: str
) -> None:
    (tmp_path / f"m.{ending}").touch()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(RequestError, match=f"read by {package}, .*: pip install {package}"):
        load_model(tmp_path / f"m.{ending}", SCHEMA)
