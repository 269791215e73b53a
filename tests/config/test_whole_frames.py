"""Is what `init` writes for a model of a whole frame measured at once, as a plain count has it?"""

from __future__ import annotations

import re
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
from tests.projects import run
from themis.subjects.columns import needed_columns

COUNT = 600
BESIDE = ("init", "--from", "rows.csv", "--model", "model.joblib", "--trust-pickle", "--force")


def drafted(model: Any, frame: pd.DataFrame, *options: str) -> str:
    """What `init` says, in one line, of a model and a table, which are written here."""
    joblib.dump(model, "model.joblib")
    frame.to_csv("rows.csv", index=False)
    done = run(*BESIDE, *options)
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


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


def test_two_commands_lead_to_the_groups_of_what_the_model_never_sees() -> None:
    frame = hiring()
    columns = make_column_transformer(
        (TfidfVectorizer(), "letter"),
        (OneHotEncoder(handle_unknown="ignore"), ["degree", "applied_on"]),
        (StandardScaler(), ["years", "salary"]),
    )
    model = make_pipeline(columns, LogisticRegression(max_iter=1000))
    model.fit(frame.drop(columns="hired"), frame["hired"])
    said = drafted(model, frame, "--protected", "gender", "--target", "hired")
    assert "date_of_birth: the model drops it" in said
    text = Path("themis.toml").read_text()
    assert "passed on as each row has it: dates" in text
    assert 'against = ["gender"]\nmeasure = "group"' in text
    audit = themis.Audit.from_file(trust_pickle=True)
    assert {each.name: each.role for each in audit.schema} == {
        "gender": "group",
        **dict.fromkeys(["applied_on", "letter"], "context"),
        **dict.fromkeys(["degree", "years", "salary"], "input"),
    }
    found = audit.apparent(measures=["group"], only_data=True, label="hired")
    chosen = pd.Series(model.predict(frame.drop(columns="hired")) == "yes")
    rates = chosen.groupby(frame["gender"]).mean()
    assert found.scores[0].score == pytest.approx(rates["male"] - rates["female"])
    good = frame["hired"] == "yes"
    rightly = chosen[good].groupby(frame["gender"][good]).mean()
    for each in found.outcomes[0].groups:
        assert each.true_positive_rate.rate == pytest.approx(rightly[each.values["gender"]])
    checked = run("check", "--trust-pickle")
    assert checked.exit_code == 1
    assert "gender" in checked.output


DATES = ["applied_on", "date_of_birth"]


def age_in_days(frame: pd.DataFrame) -> pd.DataFrame:
    return (frame["applied_on"] - frame["date_of_birth"]).dt.days.to_frame()


def test_dates_reach_a_model_as_it_was_trained_on_them() -> None:
    rows = hiring()
    rows.loc[7, "date_of_birth"] = None
    frame = rows.assign(**{name: pd.to_datetime(rows[name]) for name in DATES})
    age = make_pipeline(FunctionTransformer(age_in_days), SimpleImputer(), StandardScaler())
    columns = make_column_transformer((age, DATES), (StandardScaler(), ["years"]))
    model = make_pipeline(columns, LogisticRegression()).fit(frame, frame["hired"])
    drafted(model, rows, "--protected", "gender", "--target", "hired")
    audit = themis.Audit.from_file(trust_pickle=True)
    found = audit.apparent(measures=["group"], only_data=True).scores[0].score
    rates = pd.Series(model.predict(frame) == "yes").groupby(frame["gender"]).mean()
    assert found == pytest.approx(abs(rates["male"] - rates["female"]))
    spoiled = rows.assign(applied_on=rows["applied_on"] + " o'clock")
    spoiled.to_csv("rows.csv", index=False)
    untyped = run("score", "--trust-pickle")
    assert untyped.exit_code == 2
    assert "some values of 'applied_on' can't be made datetime64" in untyped.output
    told = drafted(model, spoiled, "--protected", "gender", "--target", "hired")
    failing = "the model fails on ([0-9]+) of \\1 rows that it was tried on: TypeError: "
    assert re.search(failing, told)


def test_a_target_that_was_left_in_the_table_is_noticed() -> None:
    frame = hiring()[["hired", "years", "salary"]]
    frame["hired"] = (frame["hired"] == "yes").astype(int)
    left_out = "left out: hired: taken for what is decided, not for an input"
    nameless = LogisticRegression().fit(frame[["years", "salary"]].to_numpy(), frame["hired"])
    assert left_out in drafted(nameless, frame)
    tree = DecisionTreeClassifier().fit(frame[["years"]], frame["hired"])
    two = frame.assign(female=np.arange(len(frame)) % 2)  # two columns look like what is decided
    assert left_out in drafted(tree, two[["female", *frame]], "--protected", "female")
    assert 'role = "group"' in Path("themis.toml").read_text()
    tree = DecisionTreeClassifier().fit(frame, frame["hired"])
    told = drafted(tree, frame)
    assert "hired nearly always equals the model's answer: if it is what is decided" in told
    assert "years nearly" not in told
    frame.rename(columns={"years": "yeers"}).to_csv("rows.csv", index=False)
    assert "no column 'years'; did you mean 'yeers'?" in run(*BESIDE).output


class Own:
    """A model with probabilities alone, which takes what it needs of a frame."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        yes = frame["years"] / 25
        return np.stack([1 - yes, yes], axis=1)


def test_what_is_missing_in_the_file_is_told_or_guessed_by_how_the_model_answers() -> None:
    frame = hiring()[["gender", "years", "salary", "hired"]]
    drafted(Own(), frame, "--protected", "gender")
    found = themis.Audit.from_file(trust_pickle=True).group("gender").score
    rates = (frame["years"] >= 12.5).groupby(frame["gender"]).mean()
    assert found == pytest.approx(rates["male"] - rates["female"])
    numbers = LinearRegression().fit(frame[["years"]], frame["salary"])
    asked = "missing: favourable: the model answers with numbers: --target names"
    assert asked in drafted(numbers, frame)
    assert "missing" not in drafted(numbers, frame, "--target", "salary")
    several = LogisticRegression().fit(frame[["years"]], frame["years"] // 10)
    assert "missing: favourable: which of its classes do people" in drafted(several, frame)


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
