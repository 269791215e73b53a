"""German credit: its 1,000 people as a table, and a scikit-learn pipeline that judges them."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

sys.path.insert(0, str(Path(__file__).parents[2]))

from studies.fse2017 import data


def german() -> pd.DataFrame:
    """The data set with its texts."""
    book = data.code_book("german")
    columns = {
        name: codes if book.get(name) is None else np.array(book[name], dtype=object)[codes]
        for name, codes in data.table("german").items()
    }
    return pd.DataFrame(columns)


if __name__ == "__main__":
    people = german()
    people.to_csv("people.csv", index=False)
    features = people.drop(columns="credit")
    texts = list(features.select_dtypes(exclude="number"))
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), texts), remainder=StandardScaler()
    )
    model = make_pipeline(encode, LogisticRegression(max_iter=1_000))
    skops.io.dump(model.fit(features, people["credit"]), "model.skops")
