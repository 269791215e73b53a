"""Does no document name an output of fewer than five people, where many get the others?

All people have an income that begins with MARK, and subjects put it into what they answer. What
is written of them in every format is in `test_private_rows`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import themis
from tests.projects import Project, run
from tests.show.test_private_rows import (
    DOCUMENTS,
    MARK,
    causal_score,
    documents,
    odd,
)
from tests.show.test_private_rows import people_project as people_project  # a fixture
from themis.results.notes import Note
from themis.results.saved import read_result
from themis.results.withheld import withheld

CAUSAL = ("score", "--measure", "causal")


def notes_of() -> dict[str, Note]:
    return {note.code: note for note in withheld(read_result("result.json")).notes}


@pytest.mark.parametrize(("women", "named"), [(1, False), (4, False), (5, True)])
def test_a_pair_names_only_outputs_that_five_people_get(
    people_project: Project, women: int, named: bool
) -> None:
    people_project(odd(women))
    score = causal_score(*CAUSAL)
    for name, text in documents("result.json"):
        assert f"case {MARK}" not in text or named, name
        assert f"case {MARK}" in text or not named or name not in DOCUMENTS, name
    assert score.witnesses
    for pair in score.witnesses:
        assert set(pair.outputs) == {"no", f"case {MARK}" if named else "a rare output"}
    assert (MARK in score._repr_html_()) == named
    assert f"case {MARK}" in run("score", "--rows").output


def list_output(path: Path) -> None:
    """The file itself names what few people get."""
    path.write_text(path.read_text().replace("[1]", f'["case {MARK}"]'))


def test_outputs_that_the_file_lists_are_named(people_project: Project) -> None:
    list_output(people_project(odd(1)))
    assert causal_score(*CAUSAL).witnesses[0].outputs == (f"case {MARK}", "no")


def test_a_sampled_score_counts_who_was_drawn() -> None:
    """There are more people than a sample needs, and too many inputs to hold."""
    schema = themis.Schema(sex=["f", "m"], number=range(30_000), other=range(1_000))
    rows = [{"sex": "fm"[n % 2], "number": n, "other": 0} for n in range(30_000)]

    def decide(person: dict[str, Any]) -> str:
        if person["other"] or person["sex"] == "m":
            return "no"
        return "often" if person["number"] % 3 else f"number {person['number'] // 500}"

    score = themis.Audit(decide, schema, profile=rows, error=0.1).causal("sex")
    assert score.method == "sampled"
    pairs = [pair for pair in score.witnesses if not pair.generated]
    assert {"no", "often"} <= {each for pair in pairs for each in pair.outputs}
    for pair in pairs:
        rare = pair.rare_outputs or (False, False)
        assert rare == tuple(each.startswith("number") for each in pair.outputs)


def test_the_one_output_of_few_people_is_not_named(people_project: Project) -> None:
    path = people_project(f"return 'case {MARK}'")
    few = Path("people.csv").read_text().splitlines()[:4]
    Path("people.csv").write_text("\n".join(few) + "\n")
    command = (*CAUSAL, "--against", "hours", "-o", "result.json")
    assert MARK not in run(*command).output
    assert notes_of()["no-favourable-output"].values["outputs"] == ["1 rare output"]
    list_output(path)
    run(*command)
    assert notes_of()["same-output"].values["output"] == f"case {MARK}"


def test_a_message_names_no_outcome_and_no_output_of_few_people(people_project: Project) -> None:
    people_project(odd(2))
    header, *lines = Path("people.csv").read_text().splitlines()
    known = [f"{line},{'paid' if n else f'fraud {MARK}'}" for n, line in enumerate(lines)]
    Path("people.csv").write_text("\n".join([f"{header},known", *known]) + "\n")
    done = run("apparent", "--label", "known", "--only-data")
    said = " ".join(done.output.split())
    assert done.exit_code == 2
    assert "'known' has the outcome 'paid', which is none of the outputs" in said
    assert "'known' has an outcome of fewer than 5 people that is none of the outputs" in said
    assert MARK not in said
    done = run("apparent", "--label", "known", "--label-favourable", "frau", "--only-data")
    assert "no row has the outcome" in done.output
    assert MARK not in done.output
