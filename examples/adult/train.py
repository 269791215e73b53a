"""Adult (Census Income): 6,000 of its people as a table, and an XGBoost model of their incomes."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import xgboost

sys.path.insert(0, str(Path(__file__).parents[2]))

from studies.fse2017 import data

PEOPLE = 6_000


def adult() -> pd.DataFrame:
    """The data set with its texts; what nobody wrote down is missing."""
    book = data.code_book("adult")
    columns = {}
    for name, codes in data.table("adult").items():
        texts = book.get(name)  # of numbers there are none
        columns[name] = codes if texts is None else np.array([*texts, None], dtype=object)[codes]
    return pd.DataFrame(columns).sample(PEOPLE, random_state=0).drop(columns="fnlwgt")


if __name__ == "__main__":
    people = adult()
    people.to_csv("people.csv", index=False)
    features = people.drop(columns="income")
    texts = features.select_dtypes(exclude="number").columns
    features = features.astype(dict.fromkeys(texts, "category"))
    model = xgboost.XGBClassifier(n_estimators=60, max_depth=4, enable_categorical=True)
    model.fit(features, people["income"] == ">50K").save_model("model.json")
