"""Does any kind of subject get what is only known of people?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import themis
from tests.subjects.contract import assert_keeps_the_contract
from themis.subjects.base import Answers, CodesBatch, Subject
from themis.subjects.loading import subject_from

SCHEMA = themis.Schema(
    race=["g", "p"],
    income=range(20),
    known=themis.Values(["f", "m"], protected=True, role="group"),
    title=themis.derived("known", {"f": "Ms", "m": "Mr"}),
)
NUMBERS = themis.Schema(
    race=[0, 1],
    income=SCHEMA["income"],
    known=SCHEMA["known"],
    title=themis.derived("known", {"f": 0, "m": 1}),
)
GIVEN = ["race", "income", "title"]
INPUTS = """
known = { values = ["f", "m"], protected = true, role = "group" }
race = { values = ["g", "p"], protected = true }
income = { min = 0, max = 19 }
"""


def by_row(person: dict[str, Any]) -> bool:
    assert list(person) == GIVEN
    return bool(person["income"] > 9)


def by_name(race: str, income: int, title: str) -> bool:
    return income > 9


def by_table(table: themis.InputTable) -> Any:
    assert list(table) == GIVEN
    return table["income"] > 9


class Net:
    """Something with predict, which gets an array."""

    n_features_in_ = 3

    def predict(self, inputs: Any) -> Any:
        assert np.asarray(inputs).shape[1] == 3
        return (np.asarray(inputs)[:, 1] > 9).astype(int)


@pytest.mark.parametrize(
    ("subject", "schema"),
    [
        (by_row, SCHEMA),
        (themis.keywords(by_name), SCHEMA),
        (themis.batch(by_table), SCHEMA),
        (Net(), NUMBERS),
    ],
)
def test_functions_and_models_are_given_the_others_only(
    subject: Any, schema: themis.Schema
) -> None:
    if not isinstance(subject, Net):
        twenty = np.arange(20)
        codes = np.column_stack([twenty % 2, twenty, twenty % 2, twenty % 2])
        assert_keeps_the_contract(subject_from(subject, schema), codes)
    assert themis.Audit(subject, schema).group("income").score == 1


class Ready(Subject):
    kind = "own"

    def __init__(self, schema: themis.Schema) -> None:
        self.schema = schema

    def load(self, codes: Any) -> Any:
        return CodesBatch(lambda own: Answers((own[:, 1] > 9).tolist()), codes)

    def fingerprint(self) -> str:
        return "1"


def test_a_ready_made_subject_must_be_made_for_what_it_is_given() -> None:
    assert themis.Audit(Ready(SCHEMA.given), SCHEMA).group("income").score == 1
    with pytest.raises(themis.ThemisError, match=r"\['known'\] never reach it"):
        themis.Audit(Ready(SCHEMA), SCHEMA)


COMMAND = """kind = "command"
command = ["sh", "-c", '[ $# = 2 ] && [ "$2" -gt 9 ] && echo 1 || echo 0', "sh"]
"""
WORKER = """
import sys
from themis.worker import serve
def decide(person):
    assert list(person) == ["race", "income"]
    return int(person["income"] > 9)
serve(decide)
"""


@pytest.mark.parametrize("kind", ["command", "worker"])
def test_programs_are_given_the_others_only(kind: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(WORKER)
    worker = f'kind = "worker"\ncommand = ["{sys.executable}", "own.py"]\n'
    subject = COMMAND if kind == "command" else worker
    path = tmp_path / "themis.toml"
    path.write_text(f"version = 1\n[subject]\n{subject}\n[inputs]\n{INPUTS}")
    with themis.Audit.from_file(path) as audit:
        assert audit.group("income").score == 1
        score = audit.causal("income")
        assert "known" not in " ".join(score.witnesses[0].reproduce or ())


def test_workers_of_an_executor_are_given_the_others_only() -> None:
    audit = themis.Audit(themis.batch(by_table), SCHEMA, executor="processes:2", exact=True)
    with audit:
        assert audit.group("income").score == 1
        assert audit.causal("known").score == 0
