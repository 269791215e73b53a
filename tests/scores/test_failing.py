"""Is it said which inputs fail, and only where that is so?"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import themis
from themis.audit.audit import Audit
from themis.results.notes import Ending, Note
from themis.results.withheld import withheld
from themis.scores.explanations.regions import confirmed
from themis.subjects.processes.command import CommandSubject

SCHEMA = themis.Schema(
    sex=["f", "m"],
    age=range(18, 68),
    education=themis.Values(["HS", "BA", "MA"], missing=0.06),
    income=range(1_000),
)


def decide(person: Any) -> bool:
    if person["education"] is None:
        raise KeyError("education")
    return bool(person["income"] > 500 + 50 * (person["sex"] == "f"))


def people(count: int, missing: float, seed: int = 1) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [
        {
            "sex": rng.choice("fm"),
            "age": rng.randrange(18, 68),
            "education": None if rng.random() < missing else rng.choice(["HS", "BA", "MA"]),
            "income": rng.randrange(1_000),
        }
        for _ in range(count)
    ]


def the_note(notes: tuple[Note, ...]) -> Note:
    (note,) = (each for each in notes if each.code == "inputs-fail")
    return note


def said(audit: Audit, rows: Any = None) -> tuple[Note, ...]:
    """The notes of a result, also of one that failures ended."""
    try:
        if rows is None:
            return audit.score("sex").notes
        return audit.apparent(rows, "sex", only_data=True).notes
    except themis.SubjectError as error:
        return getattr(error.result, "notes", ())


@pytest.mark.parametrize("allowed", [0.0, 0.5])
@pytest.mark.parametrize("subject", [decide, themis.batch(lambda t: list(map(decide, rows_of(t))))])
def test_the_condition_of_all_failures_is_found(subject: Any, allowed: float) -> None:
    note = the_note(said(Audit(subject, SCHEMA, max_failures=allowed)))
    assert note.values["conditions"] == ["education is missing"]
    assert note.values["inside"] == note.values["failed"] == note.values["residents"] >= 10
    assert note.values["others"] == 0
    assert note.values["text"].startswith("KeyError: 'education' (test_failing.py:")
    assert "in all of these education is missing" in str(note)


def rows_of(table: Any) -> list[dict[str, Any]]:
    columns = {name: table[name] for name in table.keys()}  # noqa: SIM118 - it is no dictionary
    return [{name: column[i] for name, column in columns.items()} for i in range(len(table))]


def test_the_failures_of_given_people_are_counted_as_they_are() -> None:
    rows = people(4_000, 0.01)
    lacking = sum(row["education"] is None for row in rows)
    note = the_note(said(Audit(decide, SCHEMA, max_failures=0.5), rows))
    assert note.values["conditions"] == ["education is missing"]
    assert note.values["failed"] == note.values["inside"] == lacking
    assert note.values["inputs"] == len({tuple(row.values()) for row in rows})
    ended = the_note(said(Audit(decide, SCHEMA), rows))  # where none may fail
    assert ended.values["conditions"] == ["education is missing"]
    assert 10 <= ended.values["failed"] == ended.values["inside"] <= lacking


def test_an_audit_that_fails_says_in_its_error_where() -> None:
    with pytest.raises(themis.SubjectError, match=r"in all of these education is missing"):
        Audit(decide, SCHEMA).score("sex")


def test_some_failures_elsewhere_are_said() -> None:
    def rule(person: Any) -> bool:
        if person["income"] % 97 == 5:
            raise ValueError("odd")
        return decide(person)

    note = the_note(said(Audit(rule, SCHEMA, max_failures=0.5)))
    assert note.values["conditions"] == ["education is missing"]
    assert note.values["others"] > 0
    assert f"in {note.values['inside']:,} of these education is missing" in str(note)


def test_nothing_is_claimed_of_failures_that_follow_no_condition() -> None:
    rng = np.random.default_rng(5)
    claims = 0
    for seed in range(300):
        audit = Audit(decide, SCHEMA, seed=seed)
        codes = audit.sampler.base.rows(0, 400)
        failed = rng.random(400) < 0.2
        claims += bool(confirmed(codes, failed, audit.sampler, 0.9))
    assert claims <= 300 * 0.1


def test_a_condition_that_was_not_checked_afresh_would_be_claimed_too_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The half that suggests agrees with what it suggests, whatever fails."""
    audit, rng = Audit(decide, SCHEMA), np.random.default_rng(5)
    monkeypatch.setattr(np, "delete", lambda every, first: first)
    codes = audit.sampler.base.rows(0, 400)
    found = [confirmed(codes, rng.random(400) < 0.05, audit.sampler, 0.5) for _ in range(200)]
    monkeypatch.undo()
    fresh = [confirmed(codes, rng.random(400) < 0.05, audit.sampler, 0.5) for _ in range(200)]
    assert sum(map(bool, found)) > 3 * sum(map(bool, fresh))


def test_what_fails_with_few_people_names_nobody() -> None:
    def rule(person: Any) -> bool:
        if person["age"] == 40:
            raise ValueError(f"income {person['income']} of a person of 40")
        return bool(person["income"] > 500)

    note = the_note(said(Audit(rule, SCHEMA), people(3_000, 0.0)))
    assert note.values["conditions"] == ["age = 40"]
    assert "text" not in note.values  # each has another one
    shared = the_note(said(Audit(rule, SCHEMA, show_rows=True), people(3_000, 0.0)))
    assert shared.values["text"].startswith("ValueError: income ")


def test_ends_of_ranges_are_rounded_for_documents() -> None:
    note = Note.of("inputs-fail", failed=20, inputs=90, conditions=["income ≥ 31234", "age = 40"])
    shown = withheld(note)
    assert shown.values["conditions"] == ["income ≥ about 31,000", "age = 40"]


def test_looking_for_conditions_takes_no_more_than_was_asked_for() -> None:
    audit = Audit(decide, SCHEMA, max_failures=0.5, max_executions=1_200)
    result = audit.score("sex")
    assert result.executions <= 1_200
    assert result.spent.explanations <= result.executions - result.spent.explanations


def test_a_subject_that_never_fails_is_not_looked_at() -> None:
    audit = Audit(lambda person: person["age"] > 40, SCHEMA, deterministic=True)
    assert not any(each.code == "inputs-fail" for each in said(audit))
    assert audit.failing(least=100) == ()


def test_nothing_more_is_run_after_an_interrupt() -> None:
    runs = 0

    def rule(person: Any) -> bool:
        nonlocal runs
        runs += 1
        if runs == 300:
            raise KeyboardInterrupt
        return decide(person)

    audit = Audit(rule, SCHEMA, max_failures=0.5)
    audit.sampler.keep_on_interrupt = True
    assert audit.score("sex").stopped is Ending.INTERRUPTED
    assert runs == 300


def test_a_program_is_not_called_to_explain_a_few_failures() -> None:
    command = CommandSubject(SCHEMA, ["sh", "-c", 'test "$3" = "" && exit 1; echo 1', "decide"])
    audit = Audit(command, SCHEMA)
    assert audit.failing() == ()
    assert audit.runner.executions == 0


def test_what_is_run_to_explain_failures_allows_no_more_of_them() -> None:
    audit = Audit(decide, SCHEMA, max_failures=0.03)
    assert audit.failing(least=1_000)
    with pytest.raises(themis.SubjectError):  # 6 % of these fail, and hardly 2 % of all that ran
        audit.runner.run(audit.sampler.base.rows(2_000, 2_400))
