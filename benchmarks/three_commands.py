"""Three commands from a table and a model to a report, for each library, beside a plain count.

German credit: a model is trained and saved as its library saves it, then `themis init`, `score` and
`report` are run in an empty folder. For the plain count everybody's gender is set to each value in
turn, and the library itself is asked. `python benchmarks/three_commands.py`; libraries that are not
installed are left out, and Keras computes with PyTorch.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

sys.path.insert(0, str(Path(__file__).parents[1]))

from studies.fse2017 import data

TRUSTED = ("--trust-pickle",)  # skops does not know trees, and the others are no mere data
Predict = Callable[[pd.DataFrame], Any]


def german() -> pd.DataFrame:
    """The data set with its texts."""
    book = data.code_book("german")
    columns = {
        name: codes if book.get(name) is None else np.array(book[name], dtype=object)[codes]
        for name, codes in data.table("german").items()
    }
    return pd.DataFrame(columns)


def pipeline(rows: pd.DataFrame, target: Any, folder: Path) -> tuple[str, Predict]:
    """Logistic regression behind an encoder."""
    import skops.io

    texts = list(rows.select_dtypes(exclude="number").columns)
    encode = make_column_transformer((OneHotEncoder(), texts), remainder=StandardScaler())
    model = make_pipeline(encode, LogisticRegression(max_iter=500)).fit(rows, target)
    skops.io.dump(model, folder / "model.skops")
    return "model.skops", model.predict


def gradient_boosting(rows: pd.DataFrame, target: Any, folder: Path) -> tuple[str, Predict]:
    """scikit-learn's boosted trees, with categories."""
    import skops.io

    model = HistGradientBoostingClassifier(max_iter=40, random_state=0).fit(typed(rows), target)
    skops.io.dump(model, folder / "model.skops")
    return "model.skops", lambda given: model.predict(given.astype(typed(rows).dtypes))


def xgboost(rows: pd.DataFrame, target: Any, folder: Path) -> tuple[str, Predict]:
    """XGBoost, with categories."""
    from xgboost import XGBClassifier

    model = XGBClassifier(n_estimators=40, max_depth=4, enable_categorical=True)
    model.fit(typed(rows), target == "good").save_model(folder / "model.json")
    return "model.json", lambda given: model.predict(given.astype(typed(rows).dtypes))


def lightgbm(rows: pd.DataFrame, target: Any, folder: Path) -> tuple[str, Predict]:
    """LightGBM, with categories."""
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(n_estimators=40, verbose=-1).fit(typed(rows), target == "good")
    model.booster_.save_model(folder / "model.txt")
    return "model.txt", lambda given: model.predict(given.astype(typed(rows).dtypes))


def catboost(rows: pd.DataFrame, target: Any, folder: Path) -> tuple[str, Predict]:
    """CatBoost, with its own categories."""
    from catboost import CatBoostClassifier

    texts = list(rows.select_dtypes(exclude="number").columns)
    model = CatBoostClassifier(iterations=40, verbose=0, allow_writing_files=False)
    model.fit(rows, target, cat_features=texts).save_model(str(folder / "model.cbm"))
    return "model.cbm", lambda given: model.predict(given).ravel()


def statsmodels(rows: pd.DataFrame, target: Any, folder: Path) -> tuple[str, Predict]:
    """Logistic regression by a formula."""
    import statsmodels.formula.api as formulas

    formula = "good ~ status + duration + amount + savings + employment + age + gender"
    fitted = formulas.logit(formula, rows.assign(good=(target == "good") * 1)).fit(disp=0)
    fitted.save(str(folder / "model.pickle"))
    return "model.pickle", lambda given: fitted.predict(given) >= 0.5


def keras(rows: pd.DataFrame, target: Any, folder: Path) -> tuple[str, Predict]:
    """A small network of the numbers and the gender; the table has its number."""
    os.environ["KERAS_BACKEND"] = "torch"  # for the commands, too
    import keras as library

    library.utils.set_random_seed(0)
    kept = coded(rows)
    kept.assign(good=(target == "good") * 1).to_csv(folder / "people.csv", index=False)
    scale = library.layers.Normalization()
    scale.adapt(kept.to_numpy("float32"))
    dense = library.layers.Dense
    layers = [scale, dense(8, activation="relu"), dense(1, activation="sigmoid")]
    model = library.Sequential([library.layers.Input((kept.shape[1],)), *layers])
    model.compile("adam", "binary_crossentropy")
    model.fit(kept.to_numpy("float32"), (target == "good").to_numpy(), epochs=40, verbose=0)
    model.save(folder / "model.keras")

    def predict(given: pd.DataFrame) -> Any:
        return model.predict(coded(given).to_numpy("float32"), verbose=0)[:, 0] >= 0.5

    return "model.keras", predict


def coded(rows: pd.DataFrame) -> pd.DataFrame:
    """The columns of numbers, and the gender as one."""
    places = {each: place for place, each in enumerate(sorted(data.code_book("german")["gender"]))}
    return rows.select_dtypes("number").assign(gender=rows["gender"].map(places))


def typed(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with texts as categories."""
    return rows.astype(dict.fromkeys(rows.select_dtypes(exclude="number").columns, "category"))


def plain_count(rows: pd.DataFrame, predict: Predict) -> float:
    """The share of people whose decision depends on their gender."""
    values = sorted(rows["gender"].unique())
    answers = np.stack([np.asarray(predict(rows.assign(gender=each))) for each in values])
    return float((answers != answers[0]).any(axis=0).mean())


def measured(folder: Path, file: str, trusted: tuple[str, ...]) -> dict[str, Any]:
    """The causal score of gender after three commands."""
    commands = (
        ("init", "--from", "people.csv", "--model", file, *trusted),
        ("score", "-o", "result.json", "--quiet", *trusted),
        ("report", "result.json", "-o", "report.html"),
    )
    for command in commands:
        line = [sys.executable, "-m", "themis", *command]
        subprocess.run(line, cwd=folder, check=True, capture_output=True)
    scores = json.loads((folder / "result.json").read_text())["scores"]
    causal = [each for each in scores if each["measure"] == "causal"]
    return next(each for each in causal if each["against"] == ["gender"])


def main() -> None:
    """Print a line of the table for each library."""
    people = german()
    rows, target = people.drop(columns="credit"), people["credit"]
    for train in (pipeline, gradient_boosting, xgboost, lightgbm, catboost, statsmodels, keras):
        own = train in (pipeline, gradient_boosting)
        if not own and importlib.util.find_spec(train.__name__) is None:
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            people.to_csv(folder / "people.csv", index=False)
            file, predict = train(rows, target, folder)
            trusted = TRUSTED if train in (gradient_boosting, statsmodels, keras) else ()
            score = measured(folder, file, trusted)
            ends = f"{score['low']:.1%} – {score['high']:.1%}"
            count = plain_count(rows, predict)
            print(f"| {train.__name__} | {score['score']:.1%} | {ends} | {count:.1%} |", flush=True)


if __name__ == "__main__":
    main()
