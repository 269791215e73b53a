"""Values that a model was not trained on: refused, or told, and never taken for fairness."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

import themis
from tests.subjects.test_frameworks import library
from themis import Integers, RequestError, Schema

COLUMNS = ["sex", "income"]
KNOWN = "write what it knows: female, male"
IGNORING = OneHotEncoder(handle_unknown="ignore")
ORDINAL = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    sex = rng.choice(["female", "male"], 400)
    return pd.DataFrame({"sex": sex, "income": rng.integers(0, 100, 400)})


def repaid(people: pd.DataFrame) -> pd.Series:
    return (people.income + 20 * (people.sex == "male") > 50).astype(int)


def by_name(encoder: Any) -> Any:
    return make_pipeline(
        make_column_transformer((encoder, ["sex"]), (StandardScaler(), ["income"])),
        LogisticRegression(),
    )


def schema(*sexes: Any) -> Schema:
    return Schema(sex=list(sexes), income=Integers(0, 99))


MODELS: dict[str, Callable[[], Any]] = {
    "one-hot": lambda: by_name(IGNORING),
    "infrequent": lambda: by_name(OneHotEncoder(handle_unknown="infrequent_if_exist")),
    "ordinal": lambda: by_name(ORDINAL),
    "refusing": lambda: by_name(OneHotEncoder()),
    "behind an imputer": lambda: by_name(
        make_pipeline(SimpleImputer(strategy="most_frequent"), IGNORING)
    ),
    "by place": lambda: make_pipeline(
        make_column_transformer((IGNORING, [0]), remainder="passthrough"), LogisticRegression()
    ),
    "by mask": lambda: make_pipeline(
        make_column_transformer((IGNORING, [True, False]), remainder="passthrough"),
        LogisticRegression(),
    ),
    "behind nothing": lambda: by_name(make_pipeline(FunctionTransformer(), IGNORING)),
    "every column": lambda: make_pipeline(ORDINAL, RandomForestClassifier(5, random_state=0)),
    "in a union": lambda: make_pipeline(make_union(ORDINAL, IGNORING), LogisticRegression()),
    "searched": lambda: GridSearchCV(by_name(IGNORING), {"logisticregression__C": [1.0]}, cv=2),
    "calibrated": lambda: CalibratedClassifierCV(by_name(IGNORING), cv=2),
    "voting": lambda: VotingClassifier([("one", by_name(IGNORING)), ("two", by_name(ORDINAL))]),
}


@pytest.mark.parametrize("kind", MODELS)
def test_groups_that_the_model_does_not_know_are_refused(kind: str, people: pd.DataFrame) -> None:
    model = MODELS[kind]().fit(people, repaid(people))
    with pytest.raises(RequestError) as caught:
        themis.Audit(model, schema("f", "m"))
    assert str(caught.value) == f"inputs.sex: the model was not trained on sex 'f', 'm'; {KNOWN}"
    score = themis.Audit(model, schema("female", "male"), seed=1).causal("sex")
    assert score.score > 0.1


def test_one_that_it_does_not_know_is_told(people: pd.DataFrame) -> None:
    model = by_name(IGNORING).fit(people, repaid(people))
    result = themis.Audit(model, schema("female", "male", "diverse"), seed=1).score("sex")
    told = "the model was not trained on sex 'diverse': it takes them for unknown"
    assert told in [str(note) for note in result.notes]
    known = themis.Audit(model, schema("female", "male"), seed=1).score("sex")
    assert not any(note.code == "values-unseen" for note in known.notes)


def test_one_that_it_refuses_is_refused_before_it_is_run(people: pd.DataFrame) -> None:
    model = by_name(OneHotEncoder()).fit(people, repaid(people))
    with pytest.raises(RequestError, match="sex 'diverse'; leave them out, or write what it knows"):
        themis.Audit(model, schema("female", "male", "diverse"))
    rows = pd.concat([people, pd.DataFrame({"sex": ["diverse"], "income": [7]})])
    audit = themis.Audit(model, schema("female", "male"))
    with pytest.raises(RequestError, match="values of sex on which the model's encoder fails"):
        audit.apparent(rows, ["sex"], only_data=True)
    with pytest.warns(themis.RowsWarning, match="1 of 401 rows"):
        left = audit.apparent(rows, ["sex"], only_data=True, unknown="drop")
    assert left.scores[0].score > 0


def test_numbers_that_were_encoded_are_looked_up_as_well(people: pd.DataFrame) -> None:
    coded = people.assign(sex=(people.sex == "male") + 1)
    model = by_name(IGNORING).fit(coded, repaid(people))
    themis.Audit(model, schema(1, 2))
    with pytest.raises(RequestError, match="not trained on sex 0, -1; write what it knows: 1, 2"):
        themis.Audit(model, schema(0, -1))
    with pytest.raises(RequestError, match="write what it knows: 1, 2"):
        themis.Audit(model, Schema(sex=Integers(100, 10**6), income=Integers(0, 99)))
    themis.Audit(model, Schema(sex=Integers(0, 10**6), income=Integers(0, 99)))


def test_where_only_the_types_differ_that_is_seen(people: pd.DataFrame) -> None:
    model = by_name(IGNORING).fit(people.assign(sex=people.sex == "male"), repaid(people))
    themis.Audit(model, schema(False, True))
    with pytest.raises(RequestError, match="'False', 'True'; write what it knows: False, True"):
        themis.Audit(model, schema("False", "True"))


@pytest.mark.parametrize(("sexes", "told"), [(("f", "m"), True), (("female", "male"), False)])
def test_where_nobody_can_know_it_is_told_that_nothing_changed(
    people: pd.DataFrame, sexes: tuple[str, str], told: bool
) -> None:
    catboost = library("catboost")
    model = catboost.CatBoostClassifier(
        iterations=20, verbose=0, cat_features=["sex"], allow_writing_files=False
    )
    model.fit(people, repaid(people))
    result = themis.Audit(model, schema(*sexes), seed=1).score("sex")
    notes = [str(note) for note in result.notes if note.code == "without-effect"]
    expected = (
        "no change of sex changed any answer of the model: if it was trained on other spellings "
        "of these values, it can't tell them apart"
    )
    assert notes == ([expected] if told else [])
