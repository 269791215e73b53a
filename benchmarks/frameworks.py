"""Boosted models of Adult, handed over as they are: each causal score beside a plain count.

    python benchmarks/frameworks.py > table.md

The plain count sets the sex of each of the 48,842 people to either value and asks the library. It
takes what the dependency group `frameworks` installs, and about half a minute.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent.parent))

from studies.fse2017 import data

import themis

ERROR = 0.01


def adult() -> tuple[pd.DataFrame, pd.Series]:
    """The people of the data set, and which of them earn more than 50K."""
    book = data.code_book("adult")
    columns = {
        name: values if book.get(name) is None else np.array(book[name], dtype=object)[values]
        for name, values in data.table("adult").items()
    }
    frame = pd.DataFrame(columns)
    good = frame.pop("income").str.startswith(">").astype(int)
    texts = [name for name in frame if book.get(name) is not None]
    return frame.astype(dict.fromkeys(texts, "category")), good


def models(frame: pd.DataFrame, good: pd.Series) -> Iterator[tuple[str, Any]]:
    """A model of each library, trained as its documentation shows."""
    import catboost
    import lightgbm
    import xgboost

    yield "LightGBM", lightgbm.LGBMClassifier(n_estimators=60, verbose=-1).fit(frame, good)
    yield (
        "XGBoost",
        xgboost.XGBClassifier(n_estimators=60, enable_categorical=True).fit(frame, good),
    )
    texts = list(frame.select_dtypes("category"))
    model = catboost.CatBoostClassifier(iterations=60, verbose=0, allow_writing_files=False)
    yield "CatBoost", model.fit(frame, good, cat_features=texts)


def plain_share(decide: Callable[[pd.DataFrame], Any], frame: pd.DataFrame) -> float:
    """The share of people whose decision depends on the sex that is written down."""
    sexes = frame["sex"].cat.categories
    changed = [frame.assign(sex=pd.Categorical([sex] * len(frame), sexes)) for sex in sexes]
    first, second = (np.asarray(decide(each)).ravel() for each in changed)
    return float((first != second).mean())


def main() -> None:
    warnings.simplefilter("ignore")
    frame, good = adult()
    schema = themis.Schema.from_frame(frame, protected=["sex"])
    print("| library | causal score of sex | interval | plain count |\n|---|---|---|---|")
    for name, model in models(frame, good):
        score = themis.Audit(model, schema, profile=frame).causal("sex", error=ERROR)
        plain = plain_share(model.predict, frame)
        assert score.low <= plain <= score.high
        print(f"| {name} | {score.score:.1%} | {score.low:.1%} – {score.high:.1%} | {plain:.1%} |")


if __name__ == "__main__":
    main()
