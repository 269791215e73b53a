"""Does whoever is told that a subject is inconsistent see one input with its two outputs?"""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest

import themis
from themis.results.notes import Ending, Note
from themis.results.saved import result_from_dict
from themis.show.reports.page import render_page
from themis.show.terminal.results import render_result

SCHEMA = themis.Schema(race=["green", "purple"], savings=range(1_000), income=range(10**6))


def compared_with_others() -> Any:
    return themis.batch(lambda table: table["savings"] > table["savings"].mean())


def coin() -> Any:
    rng = np.random.default_rng(3)
    return themis.batch(lambda table: rng.random(len(table)) < 0.5)


def in_turn() -> Any:
    turns = itertools.count()
    return lambda person: person["savings"] > 500 or next(turns) % 3 == 0


def example_in(notes: tuple[Note, ...]) -> Note:
    (found,) = [note for note in notes if note.code == "inconsistent-example"]
    return found


@pytest.mark.parametrize(
    ("make", "how", "said"),
    [
        (compared_with_others, "neighbours", "in a call with other inputs"),
        (coin, "again", "when it was run again"),
        (in_turn, "again", "when it was run again"),
    ],
)
def test_the_example_is_in_the_result_and_shown_everywhere(make: Any, how: str, said: str) -> None:
    audit = themis.Audit(make(), SCHEMA, error=0.1, seed=2)
    result = audit.score([["race"]])
    assert {score.stopped for score in result.scores} & {Ending.INCONSISTENT, Ending.NOISE}
    example = example_in(result.notes)
    values = example.values
    assert values["how"] == how
    assert values["input"].keys() == set(SCHEMA.names)
    assert sorted(values["outputs"]) == [False, True]
    saved = result_from_dict(json.loads(json.dumps(result.to_dict())))
    assert example_in(saved.notes) == example
    sentence = str(example)
    assert said in sentence
    assert f"savings {values['input']['savings']}" in sentence
    assert sentence in " ".join(render_result(saved).split())
    assert f"income {values['input']['income']}" in render_page(saved)


def test_the_two_outputs_are_those_that_the_input_got() -> None:
    given: dict[tuple[Any, ...], set[bool]] = {}
    rng = np.random.default_rng(5)

    def loan(table: themis.InputTable) -> Any:
        answers = rng.random(len(table)) < 0.5
        for *row, answer in zip(*(table[n].tolist() for n in table.keys()), answers, strict=True):  # noqa: SIM118
            given.setdefault(tuple(row), set()).add(bool(answer))
        return answers

    audit = themis.Audit(themis.batch(loan), SCHEMA, error=0.2, seed=1)
    values = example_in(audit.score([["race"]], ["causal"]).notes).values
    assert given[tuple(values["input"].values())] == set(values["outputs"])


def test_a_consistent_subject_has_none() -> None:
    fair = themis.batch(lambda table: table["savings"] > 500)
    result = themis.Audit(fair, SCHEMA, error=0.2).score([["race"]])
    assert "inconsistent-example" not in {note.code for note in result.notes}


def test_of_several_outputs_the_one_that_changed_is_named() -> None:
    rng = np.random.default_rng(5)

    def decide(table: themis.InputTable) -> Any:
        return {"sure": table["savings"] > 500, "vague": rng.random(len(table)) < 0.5}

    outputs = [themis.Output(name=n, at=n) for n in ("sure", "vague")]
    audit = themis.Audit(themis.batch(decide), SCHEMA, outputs=outputs, error=0.2)
    example = example_in(audit.score([["race"]], ["causal"]).notes)
    assert example.values["about"] == "vague"
