"""Python subjects: every way to hand one over, and what happens when it misbehaves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import themis
from themis.engine.runner import Runner
from themis.inputs.population import Population
from themis.inputs.streams import BaseInputs
from themis.subjects.decisions import CRASH, FAILED, INVALID, is_decision
from themis.subjects.labels import Labels
from themis.subjects.loading import load_attribute, subject_from, subject_from_options

SCHEMA = themis.Schema(
    race=["green", "purple"],
    age=themis.Integers(18, 90),
    rate=themis.Reals(0, 1, step=0.1),
    employed=[True, False],
    id=range(10**6),
)


def test_a_row_function_gets_plain_python_values() -> None:
    seen: list[dict[str, Any]] = []

    def record(row: dict[str, Any]) -> bool:
        seen.append(dict(row))
        row.clear()  # what it does to its own input harms nobody
        return True

    themis.Audit(record, SCHEMA).causal("race")
    types = {name: type(value) for name, value in seen[0].items()}
    assert types == {"race": str, "age": int, "rate": float, "employed": bool, "id": int}
    assert all(len(row) == 5 for row in seen)
    assert {row["rate"] for row in seen} <= {i / 10 for i in range(11)}


def test_a_table_offers_columns_frames_and_arrays() -> None:
    lengths = []

    def check(table: themis.InputTable) -> Any:
        lengths.append(len(table))
        assert list(table) == list(table.keys()) == list(SCHEMA.names)
        assert table.to_pandas()["age"].tolist() == table["age"].tolist()
        assert table.to_numpy().shape == (len(table), 5)
        with pytest.raises(ValueError, match="read-only"):
            table["age"][0] = 3
        return np.zeros(len(table), dtype=int)

    themis.Audit(themis.batch(check), SCHEMA).causal("race")
    assert max(lengths) > 1


def run(subject: Any, count: int = 200) -> Runner:
    runner = Runner(subject_from(subject, SCHEMA), Labels(), max_failures=1.0)
    runner.run(BaseInputs(Population.of(SCHEMA), 0).rows(0, count))
    return runner


def test_a_row_that_raises_is_a_crash_with_an_example_and_never_a_decision() -> None:
    def sometimes(row: dict[str, Any]) -> bool:
        if row["age"] > 80:
            raise KeyError("savings")
        return True

    log = run(sometimes).failures
    assert 0 < log.counts[CRASH] < 200
    row, message = log.examples[CRASH]
    assert row["age"] > 80
    line = sometimes.__code__.co_firstlineno + 2
    assert message == f"KeyError: 'savings' (test_subjects.py:{line})"


@pytest.mark.parametrize("output", [None, 0.73, float("nan"), [1], {"a": 1}, "", "  "], ids=repr)
def test_an_output_that_is_no_decision_is_an_outcome_of_its_own(output: Any) -> None:
    log = run(lambda row: output if row["age"] > 80 else 1).failures
    assert set(log.counts) == {INVALID}
    row, message = log.examples[INVALID]
    assert row["age"] > 80
    assert repr(output) in message


@pytest.mark.parametrize("kind", [float, object, list])
def test_labels_are_the_same_for_every_way_to_return_them(kind: Any) -> None:
    outputs: list[Any] = [0, 1, np.nan, 0.5, np.inf] if kind is float else [0, 1, None, 0.5, [2]]
    labels = Labels()
    given = outputs if kind is list else np.array(outputs, dtype=kind)
    assert labels.number(given).tolist() == [0, 1, -1, -1, -1]
    assert labels.labels == (0, 1)
    assert labels.number(np.array([True, False])).tolist() == [1, 0]
    assert labels.number(np.array([1, 0, 1], dtype=np.uint8)).tolist() == [1, 0, 1]
    assert labels.number(np.array([1000, 0])).tolist() == [2, 0]
    assert labels.number(np.array(["1", "no"])).tolist() == [3, 4]
    assert labels.parts[0].favourable.tolist() == [False, True, False, True, False]


OUTPUTS = [True, False, 0, 1, 2, 255, 256, -1, 1.0, 0.5, "1", "", None, np.int64(2), [1]]


@given(st.lists(st.lists(st.sampled_from(OUTPUTS), max_size=6), max_size=4))
def test_outputs_are_numbered_as_they_appear(batches: list[list[Any]]) -> None:
    labels, seen = Labels(), []
    for outputs in batches:
        expected = []
        for output in outputs:
            plain = output.item() if isinstance(output, np.generic) else output
            if is_decision(plain) and plain not in seen:
                seen.append(plain)
            expected.append(seen.index(plain) if is_decision(plain) else FAILED)
        assert labels.number(outputs).tolist() == expected
    assert [repr(each) for each in labels.labels] == [repr(each) for each in seen]


@pytest.mark.parametrize(
    ("returns", "said"),
    [
        (lambda table: [1, 0, 1], r"returned 3 outputs for \d+ inputs"),
        (lambda table: np.zeros((len(table), 2)), r"say in \[outputs\] which part"),
        (lambda table: None, "returned None; it must return one output for each input, in a list"),
        (lambda table: (1 for _ in range(len(table))), "returned <generator .*; it must return"),
        (lambda table: np.zeros((len(table), 2, 2)), r"an array of shape \(\d\d+, 2, 2\); it must"),
        (lambda table: {"a": 1}, r"the column 'a' has 1 output for \d\d+ inputs"),
    ],
)
def test_what_is_no_list_of_outputs_fails_by_its_name(returns: Any, said: str) -> None:
    with pytest.raises(themis.SubjectError, match=said):
        themis.Audit(themis.batch(returns), SCHEMA).causal("race")


FEW = themis.Schema(race=["green", "purple"], income=range(5))


@pytest.mark.parametrize(
    ("head", "call", "remedy"),
    [
        ("decide(row)", "row", None),
        ("decide(row, strict=False)", "row", None),
        ("decide(*rows)", "row", None),
        ("decide(race, income)", "row", 'write call = "keywords"'),
        ("decide(race, income)", "keywords", None),
        ("decide(first, second)", "row", "give it one parameter"),
        ("decide()", "row", "give it one parameter"),
    ],
)
def test_a_function_that_takes_no_dict_is_noticed_before_it_is_run(
    tmp_path: Path, head: str, call: str, remedy: str | None
) -> None:
    module = re.sub(r"\W", "_", f"takes {head} {call}")
    (tmp_path / f"{module}.py").write_text(f"def {head}:\n    return 1\n")
    options = {"function": f"{module}:decide", "call": call}
    if remedy is None:
        assert subject_from_options("python", options, FEW, tmp_path).kind == "python"
        return
    with pytest.raises(themis.RequestError, match=f"can't be called with one dict; {remedy}"):
        subject_from_options("python", options, FEW, tmp_path)


def test_a_function_of_several_parameters_is_told_from_one_of_a_dict_in_python_too() -> None:
    def decide(race: str, income: int) -> bool:
        return income > 2

    with pytest.raises(themis.RequestError, match="can't decide"):
        themis.Audit(42, FEW)
    with pytest.raises(themis.RequestError, match=r"'decide'.* one dict; give themis\.keywords"):
        themis.Audit(decide, FEW)
    assert themis.Audit(themis.keywords(decide), FEW).causal("income").score == 1


@pytest.mark.parametrize(
    ("mark", "head"), [("batch", "decide(table)"), ("keywords", "decide(race, income)")]
)
def test_a_function_that_is_marked_in_python_is_called_as_it_is_marked(
    tmp_path: Path, mark: str, head: str
) -> None:
    answer = "table['income'] > 2" if mark == "batch" else "income > 2"
    code = f"import themis\n\n@themis.{mark}\ndef {head}:\n    return {answer}\n"
    (tmp_path / f"marked_{mark}.py").write_text(code)
    for call in ({}, {"call": mark}):
        options = {"function": f"marked_{mark}:decide", **call}
        subject = subject_from_options("python", options, FEW, tmp_path)
        assert list(subject.load(np.array([[0, 2], [1, 3]])).run().outputs) == [False, True]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("loan_b:decide", "there is no module 'loan_b'.*did you mean 'loan_bb'"),
        ("loan_bb:decid", "has no 'decid'; did you mean 'decide'"),
        ("loan_bb", "not of the form module:attribute"),
        ("broken_bb:f", "importing 'broken_bb' failed with ZeroDivisionError"),
        ("needs_bb:f", "needs the module 'no_such_module'"),
    ],
)
def test_a_subject_that_can_not_be_loaded_says_why(tmp_path: Path, path: str, message: str) -> None:
    (tmp_path / "loan_bb.py").write_text("import json\n\ndef decide(row):\n    return 1\n")
    (tmp_path / "broken_bb.py").write_text("1 / 0\n")
    (tmp_path / "needs_bb.py").write_text("import no_such_module\n")
    with pytest.raises(themis.RequestError, match=message):
        load_attribute(path, tmp_path, where="subject.function")
