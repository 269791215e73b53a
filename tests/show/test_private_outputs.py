"""Does no document name an output, or the mean, of fewer than five people?

All people have an income that begins with MARK, and some subjects put it into what they answer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import themis
from tests.projects import run
from tests.show.test_private_rows import (
    DOCUMENTS,
    MADE,
    MARK,
    PROFILE,
    Project,
    assert_private,
    documents,
)
from tests.show.test_private_rows import project as project  # a fixture
from themis.results.notes import Note
from themis.results.saved import read_result
from themis.results.withheld import withheld


def odd(women: int, then: str = "'no'") -> str:
    """A subject that has a text for so many women, and for no man."""
    last = f"person['income'] >= {MARK}{MADE - 2 * women:02} and person['income'] <= {MARK}99"
    return f"return 'case {MARK}' if {last} and person['sex'] == 'female' else {then}"


def notes_of(path: str = "result.json") -> dict[str, Note]:
    return {note.code: note for note in withheld(read_result(path)).notes}


@pytest.mark.parametrize(("women", "named"), [(1, False), (4, False), (5, True)])
def test_a_pair_names_only_outputs_that_five_people_get(
    project: Project, women: int, named: bool
) -> None:
    project(odd(women))
    run("score", "--measure", "causal", "-o", "result.json")
    for name, text in documents("result.json"):
        assert f"case {MARK}" not in text or named, name
        assert f"case {MARK}" in text or not named or name not in DOCUMENTS, name
    (score,) = withheld(read_result("result.json")).scores
    assert isinstance(score, themis.CausalScore)
    assert score.witnesses
    for pair in score.witnesses:
        assert set(pair.outputs) == {"no", f"case {MARK}" if named else "a rare output"}
    assert (MARK in score._repr_html_()) == named
    assert f"case {MARK}" in run("score", "--rows").output


def test_outputs_that_the_file_lists_are_named(project: Project) -> None:
    path = project(odd(1))
    path.write_text(path.read_text().replace("[1]", f'["case {MARK}"]'))
    run("score", "--measure", "causal", "-o", "result.json")
    (score,) = withheld(read_result("result.json")).scores
    assert isinstance(score, themis.CausalScore)
    assert score.witnesses[0].outputs == (f"case {MARK}", "no")


def test_no_command_prints_an_output_of_few_people(project: Project) -> None:
    project(odd(2))
    for command in (
        ("score",),
        ("search", "--threshold", "0"),
        ("apparent",),
        ("apparent", "--draw", "--counterfactuals", "generated"),
    ):
        assert_private(*command)
        note = notes_of()["no-favourable-output"]
        assert note.values["outputs"] == ["no", "1 rare output"]
        assert "the subject gave 'no', 1 rare output; favourable is" in str(note)
    assert MARK not in run("validate").output
    assert MARK not in run("replay", "result.json", "-v").output


def test_a_sampled_score_counts_who_was_drawn() -> None:
    """There are more people than a sample needs, and too many inputs to hold."""
    schema = themis.Schema(sex=["f", "m"], number=range(30_000), other=range(1_000))
    rows = [{"sex": "fm"[n % 2], "number": n, "other": 0} for n in range(30_000)]

    def decide(person: dict[str, Any]) -> str:
        if person["other"] or person["sex"] == "m":
            return "no"
        return "often" if person["number"] % 3 else f"number {person['number'] // 500}"

    audit = themis.Audit(decide, schema, profile=rows, error=0.1)
    score = audit.causal("sex")
    assert score.method == "sampled"
    pairs = [pair for pair in score.witnesses if not pair.generated]
    assert {"no", "often"} <= {each for pair in pairs for each in pair.outputs}
    for pair in pairs:
        rare = pair.rare_outputs or (False, False)
        assert rare == tuple(each.startswith("number") for each in pair.outputs)


def test_the_one_output_of_few_people_is_not_named(project: Project, tmp_path: Path) -> None:
    path = project(f"return 'case {MARK}'")
    few = "\n".join(path.parent.joinpath("people.csv").read_text().splitlines()[:4])
    (tmp_path / "people.csv").write_text(few + "\n")
    run("score", "--against", "hours", "--measure", "causal", "-o", "result.json")
    assert MARK not in run("score", "--against", "hours", "--measure", "causal").output
    assert notes_of()["no-favourable-output"].values["outputs"] == ["1 rare output"]
    path.write_text(path.read_text().replace("[1]", f'["case {MARK}"]'))
    run("score", "--against", "hours", "--measure", "causal", "-o", "result.json")
    assert notes_of()["same-output"].values["output"] == f"case {MARK}"


def test_spellings_of_few_people_are_not_named(project: Project) -> None:
    spelled = f"('case {MARK}' if person['hours'] > 40 else 'Case {MARK}.')"
    project(odd(2).replace(f"'case {MARK}'", spelled))
    run("score", "--against", "hours", "--measure", "causal", "-o", "result.json")
    assert "spelling" in Path("result.json").read_text()
    for name, text in documents("result.json"):
        assert MARK not in text, name


def test_two_answers_to_one_input_are_not_named(project: Project) -> None:
    counting = """\
import itertools
calls = decide.__dict__.setdefault("calls", itertools.count())
return f"case {next(calls) % 40} MARK" """
    project(counting.replace("MARK", MARK))
    said = " ".join(run("score", "--measure", "causal", "-v").output.split())
    assert "the same input got a rare output, and another rare output" in said
    assert MARK not in said


MEANS = "[outputs.limit]\nmin = 0\nmax = 10000000000\n"


@pytest.mark.slow
def test_the_mean_of_one_person_is_not_shown(project: Project) -> None:
    project("return person['income']", extra=PROFILE + MEANS)
    assert_private("score", "--against", "income", "--measure", "group")
    (score,) = withheld(read_result("result.json")).scores
    assert isinstance(score, themis.GroupScore)
    assert score.groups == ()
    (whole,) = read_result("result.json").scores
    assert whole.score == pytest.approx((MADE - 1) / 1e10)
    assert MARK in run("score", "--against", "income", "--measure", "group", "--rows").output


def test_a_difference_does_not_tell_the_mean_of_one_person(project: Project) -> None:
    rows = [{"sex": "f", "income": 1_000_000_000, "hours": 20} for _ in range(20)]
    rows += [{"sex": "m", "income": int(f"{MARK}17"), "hours": 20}]
    schema = themis.Schema(sex=["f", "m"], income=range(9_999_999_999), hours=range(10, 61))
    output = themis.Output(name="limit", min=0, max=10_000_000_000)
    audit = themis.Audit(lambda p: p["income"], schema, profile=rows, outputs=[output])
    score = audit.group("sex")
    assert score.score == pytest.approx(0.3861159317)
    shown = withheld(score)
    assert [each.rate for each in shown.groups] == pytest.approx([0.1])
    for text in (str(score), repr(score), score._repr_html_(), str(score.plot())):
        assert "0.38" not in text
        assert MARK not in text.replace(",", "")
    rows += 4 * rows[-1:]
    many = themis.Audit(lambda p: p["income"], schema, profile=rows, outputs=[output])
    assert withheld(many.group("sex")).score == pytest.approx(0.3861159317)


def test_a_message_names_no_outcome_and_no_output_of_few_people(
    project: Project, tmp_path: Path
) -> None:
    project(odd(2))
    header, *lines = (tmp_path / "people.csv").read_text().splitlines()
    known = [f"{line},{'paid' if n else f'fraud {MARK}'}" for n, line in enumerate(lines)]
    (tmp_path / "people.csv").write_text("\n".join([f"{header},known", *known]) + "\n")
    done = run("apparent", "--label", "known", "--only-data")
    said = " ".join(done.output.split())
    assert done.exit_code == 2
    assert "'known' has the outcome 'paid', which is none of the outputs" in said
    assert "'known' has an outcome of fewer than 5 people that is none of the outputs" in said
    assert MARK not in said
    done = run("apparent", "--label", "known", "--label-favourable", "frau", "--only-data")
    assert "no row has the outcome" in done.output
    assert MARK not in done.output


def test_a_row_that_does_not_fit_is_named_by_its_line(project: Project) -> None:
    project(strange=True, extra=f'{PROFILE}unknown = "error"\n')
    done = run("score")
    assert done.exit_code == 2
    assert "line 62" in done.output
    assert MARK not in done.output
