"""Does the scorer tell scikit-learn how much a candidate discriminates?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import themis

pd = pytest.importorskip("pandas")
sklearn = pytest.importorskip("sklearn.base")


class Rule(sklearn.BaseEstimator):  # type: ignore[name-defined, misc]
    """A model of sex and age; its handicap is a parameter."""

    def __init__(self, handicap: int = 0) -> None:
        self.handicap = handicap

    def fit(self, X: Any, y: Any = None) -> Rule:  # noqa: N803
        self.columns = list(X)
        return self

    def predict(self, X: Any) -> Any:  # noqa: N803
        own = pd.DataFrame(X)
        return (own["age"] >= 40 + self.handicap * (own["sex"] == "f")).astype(int).to_numpy()


def table(count: int = 400) -> Any:
    rng = np.random.default_rng(1)
    return pd.DataFrame({"sex": rng.choice(["f", "m"], count), "age": rng.integers(20, 60, count)})


def test_the_scorer_gives_minus_the_score_of_the_rows() -> None:
    people, model = table(), Rule(10).fit(table())
    other = people.assign(sex=people["sex"].map({"f": "m", "m": "f"}))
    changed = (model.predict(people) != model.predict(other)).mean()
    assert themis.scorer("sex")(model, people) == pytest.approx(-changed)
    rates = [model.predict(people[people["sex"] == sex]).mean() for sex in "fm"]
    groups = themis.scorer("sex", measure="group")(model, people)
    assert groups == pytest.approx(-abs(rates[0] - rates[1]))
    with pytest.raises(themis.RequestError, match="there is no measure 'both'"):
        themis.scorer("sex", measure="both")  # type: ignore[arg-type]


def test_a_grid_search_finds_the_candidate_that_discriminates_least() -> None:
    from sklearn.model_selection import GridSearchCV

    people = table()
    search = GridSearchCV(
        Rule(),
        {"handicap": [10, 0, 5]},
        scoring=themis.scorer("sex", schema=people),
        n_jobs=2,
        cv=2,
    )
    search.fit(people, [0] * len(people))
    assert search.best_params_ == {"handicap": 0}
    means = search.cv_results_["mean_test_score"]
    assert means[0] < means[2] < means[1] == 0


def test_what_a_split_lacks_is_tried_where_the_schema_has_it_and_else_no_number() -> None:
    people, model = table(), Rule(10).fit(table())
    women = people[people["sex"] == "f"]
    assert themis.scorer("sex", schema=people)(model, women) < 0
    assert math.isnan(themis.scorer("sex", measure="group", schema=people)(model, women))


def test_an_array_has_the_columns_of_the_schema() -> None:
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(0)
    people = rng.integers(0, [2, 60], size=(500, 2))
    model = DecisionTreeClassifier(max_depth=4).fit(people, people[:, 1] > 20 + 20 * people[:, 0])
    flipped = np.stack([1 - people[:, 0], people[:, 1]], axis=1)
    changed = (model.predict(people) != model.predict(flipped)).mean()
    schema = themis.Schema(sex=[0, 1], age=range(60))
    assert themis.scorer("sex", schema=schema)(model, people) == pytest.approx(-changed)
