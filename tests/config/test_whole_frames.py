"""Is what `init` writes for a model of a whole frame measured at once, as a plain count has it?"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import themis
from tests.projects import enter, run
from themis.config.drafts import ModelFacts
from themis.config.from_rows import draft_from_data
from themis.inputs.tables import read_table
from themis.subjects.columns import needed_columns

COUNT = 600


def hiring() -> pd.DataFrame:
    """Applicants with an id, dates, a text, salaries with cents, and what the model never sees."""
    rng = np.random.default_rng(3)
    gender = rng.choice(["female", "male"], COUNT)
    words = rng.choice(["python", "java", "award", "board", "team", "sales"], (COUNT, 4))
    frame = pd.DataFrame(
        {
            "applicant_id": np.arange(COUNT) + 100_000,
            "applied_on": pd.date_range("2024-01-01", periods=COUNT).strftime("%Y-%m-%d"),
            "date_of_birth": pd.date_range("1960-01-01", periods=COUNT).strftime("%Y-%m-%d"),
            "gender": gender,
            "degree": rng.choice(["bachelor", "master", "none"], COUNT),
            "years": rng.integers(0, 20, COUNT) + 5 * (gender == "male"),
            "salary": np.round(rng.uniform(20_000, 90_000, COUNT), 2),
            "letter": [f"{' '.join(each)} no {n}" for n, each in enumerate(words.tolist())],
        }
    )
    wanted = frame["years"] + 6 * frame["letter"].str.contains("python") + rng.normal(0, 3, COUNT)
    frame["hired"] = np.where(wanted > 15, "yes", "no")
    return frame


def pipeline() -> Any:
    return make_pipeline(
        make_column_transformer(
            (TfidfVectorizer(), "letter"),
            (OneHotEncoder(handle_unknown="ignore"), ["degree", "applied_on"]),
            (StandardScaler(), ["years", "salary"]),
        ),
        LogisticRegression(max_iter=1000),
    )


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[pd.DataFrame, Any]:
    """A folder with the rows and a model of the whole frame; both."""
    enter(tmp_path, monkeypatch)
    frame = hiring()
    frame.to_csv("hiring.csv", index=False)
    model = pipeline().fit(frame.drop(columns="hired"), frame["hired"])
    joblib.dump(model, "model.joblib")
    return frame, model


def test_two_commands_lead_to_the_groups_of_what_the_model_never_sees(
    project: tuple[pd.DataFrame, Any],
) -> None:
    frame, model = project
    asked = ("--from", "hiring.csv", "--model", "model.joblib", "--trust-pickle")
    done = run("init", *asked, "--protected", "gender", "--target", "hired")
    assert done.exit_code == 0, done.output
    inputs = tomllib.loads(Path("themis.toml").read_text())["inputs"]
    assert inputs["gender"]["role"] == "group"
    assert inputs["letter"] == inputs["applied_on"] == {"role": "context"}
    assert not {"applicant_id", "date_of_birth"} & inputs.keys()
    assert "date_of_birth: the model drops it" in done.output
    audit = themis.Audit.from_file(trust_pickle=True)
    found = audit.apparent(measures=["group"], only_data=True, label="hired")
    chosen = model.predict(frame.drop(columns="hired")) == "yes"
    rates = pd.Series(chosen).groupby(frame["gender"]).mean()
    assert found.scores[0].score == pytest.approx(rates["male"] - rates["female"])
    good = frame["hired"] == "yes"
    rightly = pd.Series(chosen)[good].groupby(frame["gender"][good]).mean()
    for each in found.outcomes[0].groups:
        assert each.true_positive_rate.rate == pytest.approx(rightly[each.values["gender"]])
    checked = run("check", "--trust-pickle")
    assert checked.exit_code == 1
    assert "gender" in checked.output


DATES = ["applied_on", "date_of_birth"]


def age_in_days(frame: pd.DataFrame) -> pd.DataFrame:
    return (frame["applied_on"] - frame["date_of_birth"]).dt.days.to_frame()


def test_dates_reach_a_model_as_it_was_trained_on_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(tmp_path, monkeypatch)
    rows = hiring()
    rows.loc[7, "date_of_birth"] = None
    rows.to_csv("hiring.csv", index=False)
    frame = pd.read_csv("hiring.csv", parse_dates=DATES)
    age = make_pipeline(FunctionTransformer(age_in_days), SimpleImputer(), StandardScaler())
    columns = make_column_transformer((age, DATES), (StandardScaler(), ["years"]))
    model = make_pipeline(columns, LogisticRegression()).fit(frame, frame["hired"])
    joblib.dump(model, "model.joblib")
    asked = ("--from", "hiring.csv", "--model", "model.joblib", "--trust-pickle")
    asked = (*asked, "--protected", "gender", "--target", "hired")
    assert run("init", *asked).exit_code == 0
    audit = themis.Audit.from_file(trust_pickle=True)
    found = audit.apparent(measures=["group"], only_data=True).scores[0].score
    rates = pd.Series(model.predict(frame) == "yes").groupby(frame["gender"]).mean()
    assert found == pytest.approx(abs(rates["male"] - rates["female"]))
    rows.assign(applied_on=rows["applied_on"] + " o'clock").to_csv("hiring.csv", index=False)
    untyped = run("score", "--trust-pickle")
    assert untyped.exit_code == 2
    assert "some values of 'applied_on' can't be made datetime64" in untyped.output
    told = " ".join(run("init", *asked, "--force").output.split())
    assert re.search(
        "the model fails on ([0-9]+) of \\1 rows that it was tried on: TypeError: ", told
    )


def test_a_target_that_was_left_in_the_table_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(tmp_path, monkeypatch)
    frame = hiring()[["hired", "years", "salary"]]
    frame["hired"] = (frame["hired"] == "yes").astype(int)
    frame.to_csv("rows.csv", index=False)
    asked = ("init", "--from", "rows.csv", "--model", "model.joblib", "--trust-pickle", "--force")
    without = LogisticRegression().fit(frame[["years", "salary"]].to_numpy(), frame["hired"])
    joblib.dump(without, "model.joblib")
    assert "left out: hired: taken for what is decided, not for an input" in run(*asked).output
    female = frame.assign(female=np.arange(len(frame)) % 2)[["female", *frame.columns]]
    female.to_csv("rows.csv", index=False)  # two columns look like what is decided
    joblib.dump(DecisionTreeClassifier().fit(frame[["years"]], frame["hired"]), "model.joblib")
    told = run(*asked, "--protected", "female").output
    assert "left out: hired: taken for what is decided, not for an input" in " ".join(told.split())
    assert 'role = "group"' in Path("themis.toml").read_text()
    frame.to_csv("rows.csv", index=False)
    joblib.dump(DecisionTreeClassifier().fit(frame, frame["hired"]), "model.joblib")
    told = " ".join(run(*asked).output.split())
    frame.rename(columns={"years": "yeers"}).to_csv("rows.csv", index=False)
    assert "no column 'years'; did you mean 'yeers'?" in run(*asked).output
    assert "hired nearly always equals the model's answer: if it is what is decided" in told
    assert "years nearly" not in told


class Own:
    """A model with probabilities alone, which takes what it needs of a frame."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        yes = frame["years"] / 25
        return np.stack([1 - yes, yes], axis=1)


def test_what_is_missing_in_the_file_is_told_or_guessed_by_how_the_model_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(tmp_path, monkeypatch)
    frame = hiring()[["gender", "years", "salary", "hired"]]
    frame.to_csv("rows.csv", index=False)
    asked = ("init", "--from", "rows.csv", "--model", "model.joblib", "--trust-pickle", "--force")
    joblib.dump(Own(), "model.joblib")
    assert run(*asked, "--protected", "gender").exit_code == 0
    found = themis.Audit.from_file(trust_pickle=True).group("gender").score
    rates = (frame["years"] >= 12.5).groupby(frame["gender"]).mean()
    assert found == pytest.approx(rates["male"] - rates["female"])
    joblib.dump(LinearRegression().fit(frame[["years"]], frame["salary"]), "model.joblib")
    told = " ".join(run(*asked).output.split())
    assert "missing: favourable: the model answers with numbers: --target names" in told
    assert "missing" not in run(*asked, "--target", "salary").output
    joblib.dump(LogisticRegression().fit(frame[["years"]], frame["years"] // 10), "model.joblib")
    told = " ".join(run(*asked).output.split())
    assert "missing: favourable: which of its classes do people want?" in told


NAMES = ["id", "born", "degree", "years"]


@pytest.mark.parametrize(
    ("transformer", "needed", "wrap"),
    [
        ([("a", "passthrough", ["years"])], ["years"], "grid"),
        ([("a", "passthrough", [2, 3]), ("b", "drop", ["id"])], ["degree", "years"], "calibrated"),
        ([("a", StandardScaler(), lambda frame: ["years"])], ["years"], None),
        ([("a", "passthrough", [False, True, False, True])], ["born", "years"], None),
        ([("a", "passthrough", ["years"])], NAMES, "remainder"),
    ],
)
def test_a_model_needs_the_columns_that_its_transformer_does_not_drop(
    transformer: list[Any], needed: list[str], wrap: str | None
) -> None:
    frame = pd.DataFrame(np.random.default_rng(1).normal(size=(40, 4)), columns=NAMES)
    hired = frame["years"] + frame["born"] > 0
    rest = "passthrough" if wrap == "remainder" else "drop"
    columns = ColumnTransformer(transformer, remainder=rest)
    model = make_pipeline(columns, LogisticRegression())
    if wrap == "grid":
        model = GridSearchCV(model, {"logisticregression__C": [1.0]}, cv=2)
    if wrap == "calibrated":
        model = CalibratedClassifierCV(model, cv=2)
    model.fit(frame, hired)
    assert needed_columns(model, NAMES) == needed
    schema = themis.Schema({name: themis.Reals(-1, 1, step=0.5) for name in needed})
    audit = themis.Audit(model, schema, favourable=[True])
    inputs = pd.DataFrame({name: [0.5, -0.5] for name in needed})
    whole = inputs.reindex(columns=NAMES, fill_value=0.0)
    answers = audit.runner.subject.load(schema.encode_rows(inputs.to_dict("records"))).run()
    assert list(answers.outputs) == list(model.predict(whole))


def test_what_a_model_takes_and_nobody_varies_is_passed_on(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    frame = hiring()
    frame.to_csv(path, index=False)
    names = ["applicant_id", "applied_on", "letter", "degree", "years", "salary"]
    facts = ModelFacts("model.joblib", names=names, classes=("no", "yes"))
    draft = draft_from_data(read_table(path), source="rows.csv", model=facts, target="hired")
    specs = {each.name: each.spec for each in draft.used}
    context = {name for name, spec in specs.items() if spec == {"role": "context"}}
    assert context == {"applicant_id", "applied_on", "letter"}
    assert specs["gender"]["role"] == "group"
    text = draft.text()
    assert "passed on as each row has it: dates" in text
    assert 'against = ["gender"]\nmeasure = "group"' in text
