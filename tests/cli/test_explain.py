"""Does `themis explain` say what a code means, and which codes there are?"""

from __future__ import annotations

from typer.testing import CliRunner

from themis.cli import app
from themis.show.words.notes import known_codes


def explain(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["explain", *arguments], prog_name="themis")
    return done.exit_code, done.output


def test_a_mistake_is_explained() -> None:
    assert explain("unknown-key") == (
        0,
        "unknown-key (mistakes in the file)\n"
        "There is no such key here: it is misspelt, or belongs to another table or kind of "
        "subject.\n"
        "What helps: Use the name that the message suggests, or move the key.\n"
        "More: docs/the-file.md\n",
    )


def test_a_note_is_explained_beside_the_names_of_its_values() -> None:
    code, said = explain("groups-not-listed")
    assert code == 0
    assert "In JSON: groups, listed, span\n" in said
    assert "What helps" not in said


def test_an_unknown_code_is_a_mistake_that_suggests_the_nearest() -> None:
    problem = "CODE: there is no code 'unknown-kee'; did you mean 'unknown-key'?"
    assert explain("unknown-kee") == (2, f"error[unknown-code]: {problem}\n")


def test_without_a_code_every_one_has_a_line_below_its_group() -> None:
    lines = explain()[1].splitlines()
    assert lines[0] == "Mistakes in the file:"
    assert len([each for each in lines if each.startswith("  ")]) == len(known_codes())
    assert len([each for each in lines if each.endswith(":")]) == len(
        {each.group for each in known_codes()}
    )
