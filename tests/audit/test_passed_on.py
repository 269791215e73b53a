"""Columns that are only passed on: ids, dates and texts of rows, which nobody varies."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import themis
from tests.projects import run, write_project
from themis.config.reader import read_config
from themis.errors import ConfigError

OPEN = themis.Values(role="context")
SCHEMA = themis.Schema(
    id=OPEN,
    sex=themis.Values(["f", "m"], protected=True),
    note=OPEN,
    years=range(20),
    start=OPEN,
    number=OPEN,
)
COUNT = 500


def frame() -> pd.DataFrame:
    """Applicants with an id, a text that some lack, a date and a number with cents."""
    rng = np.random.default_rng(1)
    words = rng.choice(["good", "late", "java", "lead"], (COUNT, 3))
    notes: list[str | None] = [f"{' '.join(each)} {n}" for n, each in enumerate(words.tolist())]
    return pd.DataFrame(
        {
            "id": [f"0{n:05d}" for n in range(COUNT)],
            "sex": rng.choice(["f", "m"], COUNT),
            "note": [None if n % 7 == 0 else each for n, each in enumerate(notes)],
            "years": rng.integers(0, 20, COUNT),
            "start": pd.date_range("2024-01-01", periods=COUNT).strftime("%Y-%m-%d"),
            "number": np.round(rng.uniform(0, 1000, COUNT), 2),
        }
    )


def decide(person: dict[str, Any]) -> bool:
    """It fails on anything that is not as the rows have it."""
    assert len(person["id"]) == 6
    assert person["start"][4] == "-"
    assert isinstance(person["number"], float)
    words = (person["note"] or "").split()
    return bool(person["years"] + 3 * (person["sex"] == "m") + 4 * words.count("good") > 12)


def plainly(rows: pd.DataFrame) -> tuple[float, float]:
    """The causal and the group score by sex, counted."""
    people = [
        {**row, "note": row["note"] if isinstance(row["note"], str) else None}
        for row in rows.to_dict("records")
    ]
    own = [decide(each) for each in people]
    other = [decide({**each, "sex": "fm"[each["sex"] == "f"]}) for each in people]
    changed = float(np.mean([a != b for a, b in zip(own, other, strict=True)]))
    rates = pd.Series(own).groupby(rows["sex"].to_numpy()).mean()
    return changed, float(abs(rates["f"] - rates["m"]))


@pytest.mark.parametrize("source", ["frame", "file", "profile"])
def test_scores_of_rows_with_columns_passed_on_are_a_plain_count(
    source: str, tmp_path: Path
) -> None:
    rows = frame()
    if source == "profile":
        audit = themis.Audit(decide, SCHEMA, profile=rows, exact=True)
        found = [audit.causal("sex").score, audit.group("sex").score]
        assert audit.search(0.05).found == (("sex",), ("years",))
    else:
        path = tmp_path / "people.csv"
        rows.to_csv(path, index=False)
        given = rows if source == "frame" else path
        result = themis.Audit(decide, SCHEMA).apparent(given, "sex", counterfactuals="generated")
        found = [each.score for each in result.scores]
        assert {each.population for each in result.scores} == {"rows"}
        assert result.data is not None
        assert "kept" not in result.data
    assert found == pytest.approx(plainly(rows))


def test_a_pipeline_that_was_fitted_on_the_whole_frame_gets_all_of_it() -> None:
    compose = pytest.importorskip("sklearn.compose")
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

    rows = frame()
    good = rows["note"].fillna("").str.count("good")
    hired = rows["years"] + 3 * (rows["sex"] == "m") + 4 * good > 12
    year = FunctionTransformer(lambda each: pd.to_datetime(each["start"]).dt.year.to_frame())
    length = FunctionTransformer(lambda each: each["id"].str.len().to_frame())
    words = make_pipeline(FunctionTransformer(lambda each: each.fillna("")), CountVectorizer())
    columns = compose.make_column_transformer(
        (words, "note"),
        (OneHotEncoder(), ["sex"]),
        (year, ["start"]),
        (length, ["id"]),
        ("passthrough", ["years", "number"]),
    )
    model = make_pipeline(columns, LogisticRegression(max_iter=2000)).fit(rows, hired)
    found = themis.Audit(model, SCHEMA).apparent(rows, "sex", counterfactuals="generated")
    other = rows.assign(sex=np.where(rows["sex"] == "f", "m", "f"))
    own = model.predict(rows)
    rates = pd.Series(own).groupby(rows["sex"].to_numpy()).mean()
    assert [each.score for each in found.scores] == pytest.approx(
        [(own != model.predict(other)).mean(), abs(rates["f"] - rates["m"])]
    )


def test_without_rows_it_is_said_what_is_missing_and_with_them_no_result_has_it() -> None:
    audit = themis.Audit(decide, SCHEMA)
    for ask in (lambda: audit.causal("sex"), lambda: audit.search(0.1), lambda: audit.score("sex")):
        with pytest.raises(themis.ThemisError, match="'number' have no values but those of rows"):
            ask()
    result = themis.Audit(decide, SCHEMA, profile=frame()).score("sex")
    assert result.schema["inputs"]["note"] == {"role": "context"}
    assert themis.Schema.from_dict(result.schema) == SCHEMA
    assert SCHEMA.open == ("id", "note", "start", "number")


INPUTS = """\
id = { role = "context" }
sex = { values = ["f", "m"], protected = true }
note = { role = "context" }
years = { min = 0, max = 19 }
"""


def test_a_file_measures_its_profile_and_shows_nobody_s_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    frame().to_csv("people.csv", index=False)
    body = """
        assert set(person) == {'id', 'sex', 'note', 'years'}
        words = (person['note'] or '').split()
        return int(person['years'] + 3 * (person['sex'] == 'm') + 4 * words.count('good') > 12)
    """
    body = textwrap.dedent(body)
    write_project(tmp_path, body, inputs=INPUTS)
    for command in ("validate", "score"):
        refused = run(command)
        assert refused.exit_code == 2
        said = " ".join(refused.output.split())
        assert "'id' and 'note' have no values but those of rows" in said
    write_project(tmp_path, body, inputs=INPUTS, extra='[profile]\ndata = "people.csv"\n')
    assert run("validate").exit_code == 0
    for command in (["score", "-v"], ["apparent", "--data", "people.csv", "-v"]):
        shown = run(*command)
        assert shown.exit_code == 0, shown.output
        assert "java" not in shown.output
        assert "00012" not in shown.output
    wrong = INPUTS.replace('note = { role = "context" }', 'note = { role = "group" }')
    with pytest.raises(ConfigError, match="there are neither values nor min and max"):
        read_config(write_project(tmp_path, inputs=wrong))


def test_a_context_with_values_is_drawn_from_them_and_rows_keep_their_own() -> None:
    schema = themis.Schema(note=themis.Values(["x"], role="context"), years=range(20))
    audit = themis.Audit(lambda person: (person["note"] == "x") == (person["years"] > 9), schema)
    assert audit.group("years").score == 1
    rows = [{"note": note, "years": years} for note in "xyz" for years in range(20)]
    found = audit.apparent(rows, "years", measures=["group"], only_data=True)
    assert found.scores[0].score == pytest.approx(1 / 3)
