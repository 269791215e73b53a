"""What a model's answers mean: methods, classes, cuts, and the types of its columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

import themis
from themis import Integers, Output, RequestError, Schema, Values
from themis.subjects.loading import subject_from

SCHEMA = Schema(sex=[0, 1], income=Integers(0, 99))
MIXED = Schema(sex=["Male", "Female"], income=Integers(0, 99))


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return np.stack(np.meshgrid([0, 1], np.arange(100), indexing="ij"), axis=-1).reshape(-1, 2)


@pytest.fixture(scope="module")
def mixed(rows: np.ndarray) -> pd.DataFrame:
    sex = pd.Categorical(np.where(rows[:, 0] == 1, "Male", "Female"))
    return pd.DataFrame({"sex": sex, "income": rows[:, 1]})


def good(rows: np.ndarray) -> np.ndarray:
    return rows[:, 1] >= 50 + 10 * rows[:, 0]


def boosted() -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(max_iter=20, min_samples_leaf=5)


def flips(decisions: Any) -> float:
    first, second = np.asarray(decisions).reshape(2, -1)
    return float((first != second).mean())


class Probable:
    """An object that has nothing but probabilities, by sex and income."""

    def predict_proba(self, inputs: Any) -> np.ndarray:
        numbers = np.asarray(inputs)
        yes = numbers[:, 1] / 100 + (0.08 + numbers[:, 1] / 2_000) * (numbers[:, 0] - 0.5)
        return np.stack([1 - yes, yes], axis=1)


@pytest.fixture(scope="module")
def model(rows: np.ndarray) -> Any:
    return LogisticRegression(C=0.001).fit(rows, good(rows))


@pytest.fixture(scope="module")
def three(rows: np.ndarray) -> Any:
    target = np.where(good(rows), "yes", np.where(rows[:, 1] < 20, "no", "ask"))
    return LogisticRegression(max_iter=500).fit(rows, target)


class TestMethods:
    def test_a_cut_decides_on_the_probability_from_there_on(
        self, model: Any, rows: np.ndarray
    ) -> None:
        proba = model.predict_proba(rows)[:, 1]
        cut = float(proba[70])  # of an input: it counts as favourable
        expected = proba >= cut
        assert not (expected == model.predict(rows)).all()
        subject = subject_from(themis.model(model, cut=cut), SCHEMA)
        outputs = subject.load(np.array([[0, 70], [0, 69]])).run().outputs
        assert outputs.tolist() == [1, 0]
        audit = themis.Audit(themis.model(model, cut=cut), SCHEMA)
        assert audit.causal("sex").score == pytest.approx(flips(expected))
        assert audit.group("sex").groups[0].rate == pytest.approx(expected[:100].mean())

    def test_a_decision_function_is_that_of_the_second_class_or_the_other_way_round(
        self, rows: np.ndarray
    ) -> None:
        model = LinearSVC(C=0.01).fit(rows / [1, 100], good(rows))
        schema = Schema(sex=[0, 1], income=themis.Reals(0, 0.99, step=0.01))
        values = model.decision_function(rows / [1, 100])
        for class_, expected in (
            (None, values >= 0.1),
            (True, values >= 0.1),
            (False, -values >= 0.1),
        ):
            subject = themis.model(model, method="decision_function", class_=class_, cut=0.1)
            score = themis.Audit(subject, schema).causal("sex")
            assert score.score == pytest.approx(flips(expected)) != 0

    def test_without_a_cut_a_probability_is_a_declared_output(
        self, model: Any, rows: np.ndarray
    ) -> None:
        subject = themis.model(model, method="predict_proba", class_=False)
        with pytest.raises(RequestError, match="cut: a probability is a number, not a decision"):
            themis.Audit(subject, SCHEMA)
        output = Output(name="p", min=0, max=1, distance="relational")
        score = themis.Audit(subject, SCHEMA, outputs=output).group("sex")
        proba = model.predict_proba(rows)[:, 0].reshape(2, -1)
        assert score.score == pytest.approx(abs(proba[0].mean() - proba[1].mean()))

    def test_a_number_without_a_cut_is_the_users_mistake_not_a_crash(
        self, rows: np.ndarray
    ) -> None:
        model = LinearRegression().fit(rows, good(rows))
        with pytest.raises(
            RequestError, match=r"cut: the model answers with numbers such as .*0\."
        ):
            themis.Audit(model, SCHEMA).causal("sex")
        score = themis.Audit(themis.model(model, cut=0.5), SCHEMA).causal("sex")
        assert score.score == pytest.approx(flips(model.predict(rows) >= 0.5)) != 0

    @pytest.mark.parametrize("width", [1, 2])
    def test_a_model_with_nothing_but_probabilities_is_asked_for_them(
        self, model: Any, rows: np.ndarray, width: int
    ) -> None:
        class Scores:
            def predict_proba(self, inputs: np.ndarray) -> np.ndarray:
                found: np.ndarray = model.predict_proba(inputs)[:, -width:]
                return found if width == 2 else found[:, 0]

        cut = float(model.predict_proba(rows)[70, 1])
        expected = model.predict_proba(rows)[:, 1] >= cut
        for given in ({}, {"method": "predict_proba"}, {"class_": 1}):
            audit = themis.Audit(themis.model(Scores(), cut=cut, **given), SCHEMA)
            assert audit.causal("sex").score == pytest.approx(flips(expected)) != 0
        with pytest.raises(RequestError, match="a probability is a number, not a decision"):
            themis.Audit(Scores(), SCHEMA)

    def test_of_more_probabilities_without_names_the_favourable_one_must_be_named(
        self, three: Any, rows: np.ndarray
    ) -> None:
        class Scores:
            def predict_proba(self, inputs: np.ndarray) -> np.ndarray:
                found: np.ndarray = three.predict_proba(inputs)
                return found

        with pytest.raises(RequestError, match="answers with 3 probabilities; name the place"):
            themis.Audit(themis.model(Scores(), cut=0.4), SCHEMA).causal("sex")
        score = themis.Audit(themis.model(Scores(), cut=0.4, class_=2), SCHEMA).causal("sex")
        assert score.score == pytest.approx(flips(three.predict_proba(rows)[:, 2] >= 0.4))

    def test_favourable_and_a_cut_contradict_each_other(self, model: Any) -> None:
        with pytest.raises(RequestError, match="both favourable and cut"):
            themis.Audit(themis.model(model, cut=0.5), SCHEMA, favourable=[False])

    def test_what_is_asked_is_part_of_the_fingerprint(self, model: Any) -> None:
        asked = [{}, {"cut": 0.5}, {"cut": 0.6}, {"cut": 0.5, "class_": False}]
        prints = [subject_from(themis.model(model, **each), SCHEMA).fingerprint() for each in asked]
        assert len(set(prints)) == 4
        assert prints[0] == subject_from(model, SCHEMA).fingerprint()

    @pytest.mark.parametrize("names", [None, ["sex", "income"]], ids=["array", "frame"])
    def test_what_a_model_writes_into_its_input_is_not_there_in_the_next_call(
        self, names: list[str] | None
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


class TestClasses:
    def test_which_of_several_is_favourable_is_asked(self, three: Any) -> None:
        message = (
            r'favourable: the model decides between 3 classes: "ask", "no", "yes"; .*favourable = '
        )
        with pytest.raises(RequestError, match=message):
            themis.Audit(three, SCHEMA)
        themis.Audit(three, SCHEMA, favourable=["yes"])
        themis.Audit(three, SCHEMA, labels={"good": ["yes"], "bad": ["no", "ask"]})

    def test_whose_probability_counts_is_asked(self, three: Any, rows: np.ndarray) -> None:
        message = r'class: the model decides between "ask", "no", "yes"; .*class = "yes"'
        with pytest.raises(RequestError, match=message):
            themis.Audit(themis.model(three, cut=0.4), SCHEMA)
        score = themis.Audit(themis.model(three, class_="yes", cut=0.4), SCHEMA).causal("sex")
        assert score.score == pytest.approx(flips(three.predict_proba(rows)[:, 2] >= 0.4)) != 0

    def test_classes_that_it_lacks_are_mistakes(self, three: Any) -> None:
        with pytest.raises(RequestError, match="class: the model has no class 'Yes'; choose from"):
            themis.Audit(themis.model(three, class_="Yes", cut=0.5), SCHEMA)
        with pytest.raises(RequestError, match="favourable: the model has no class 'Yes'"):
            themis.Audit(three, SCHEMA, favourable=["Yes"])


class TestTypes:
    def test_categories_of_the_training_are_learned_from_the_model(
        self, mixed: pd.DataFrame, rows: np.ndarray
    ) -> None:
        model = boosted().fit(mixed, good(rows))
        search = GridSearchCV(boosted(), {}, cv=2)
        search.fit(mixed, good(rows))
        expected = flips(model.predict(mixed))
        for each in (model, search):
            assert themis.Audit(each, MIXED).causal("sex").score == pytest.approx(expected) != 0
            with pytest.raises(RequestError, match=r"not trained on sex 'male'; .*: Female, Male"):
                themis.Audit(each, Schema(sex=["male", "Female"], income=Integers(0, 99)))

    def test_a_category_that_was_missing_in_training_is_missing_again(
        self, mixed: pd.DataFrame, rows: np.ndarray
    ) -> None:
        unknown = mixed.assign(sex=np.nan).astype({"sex": mixed["sex"].dtype})
        both = pd.concat([mixed, unknown], ignore_index=True)
        model = boosted().fit(both, np.append(good(rows), np.zeros(len(rows), bool)))
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
        self, mixed: pd.DataFrame, rows: np.ndarray
    ) -> None:
        model = boosted().fit(mixed, good(rows))
        profile = pd.DataFrame(
            {"sex": ["Male", "Female", "Other"] * 20, "income": [58, 58, 70] * 20}
        )
        score = themis.Audit(model, MIXED, profile=profile).causal("sex")
        assert score.score == pytest.approx(2 / 3)


class TestFiles:
    def test_the_file_says_method_class_and_cut(
        self, tmp_path: Path, three: Any, rows: Any
    ) -> None:
        skops = pytest.importorskip("skops.io")
        skops.dump(three, tmp_path / "m.skops")
        text = 'version = 1\n[subject]\nkind = "model"\nfile = "m.skops"\n{}\n[inputs]\n'
        text += "sex = [0, 1]\nincome = {{ min = 0, max = 99 }}\n"
        path = tmp_path / "themis.toml"
        path.write_text(text.format('method = "predict_proba"\nclass = "yes"\ncut = 0.4'))
        score = themis.Audit.from_file(path).causal("sex")
        assert score.score == pytest.approx(flips(three.predict_proba(rows)[:, 2] >= 0.4)) != 0
        path.write_text(text.format('class = "Yes"\ncut = 0.4'))
        with pytest.raises(RequestError, match=r"themis\.toml:5: subject\.class: .*no class 'Yes'"):
            themis.Audit.from_file(path)
        path.write_text(text.format(""))
        with pytest.raises(RequestError, match=r"themis\.toml:2: subject\.favourable: .*3 classes"):
            themis.Audit.from_file(path)

    @pytest.mark.parametrize(
        ("name", "package"),
        [("m.json", "xgboost"), ("m.ubj", "xgboost"), ("m.txt", "lightgbm"), ("m.cbm", "catboost")],
    )
    def test_the_package_that_a_file_needs_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, package: str
    ) -> None:
        import sys

        from themis.subjects.model_files import load_model

        (tmp_path / name).touch()
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(RequestError, match=f"read by {package}, .*: pip install {package}"):
            load_model(tmp_path / name, SCHEMA)


class TestDevices:
    def test_a_model_that_is_not_moved_says_so(self, model: Any) -> None:
        with pytest.raises(RequestError, match="is not moved"):
            themis.Audit(themis.model(model, device="cuda"), SCHEMA)
