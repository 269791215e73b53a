"""Notes are codes with values wherever they are made, and sentences only where they are shown."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

import themis
from themis.results.notes import CODES, PREFIXES, Note
from themis.show.words.notes import WORDS, sentence
from themis.show.words.wording import PLAIN

SOURCE = Path(themis.__file__).parent


def test_every_code_has_words_and_no_others_do() -> None:
    assert WORDS.keys() == CODES.keys()


@pytest.mark.parametrize("code", [code for code, words in WORDS.items() if isinstance(words, str)])
def test_a_sentence_needs_only_the_values_of_its_code(code: str) -> None:
    needed = {name for _, name, _, _ in string.Formatter().parse(str(WORDS[code])) if name}
    assert needed <= set(CODES[code])


def codes_in(path: Path) -> Iterator[tuple[str, set[str]]]:
    """The codes that a module writes, each with the names of its values."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Note.of":
            for code in ast.walk(node.args[0]):
                if isinstance(code, ast.Constant) and isinstance(code.value, str):
                    yield code.value, {each.arg for each in node.keywords if each.arg}


def test_what_is_written_is_in_the_list_of_codes() -> None:
    written = [each for path in SOURCE.rglob("*.py") for each in codes_in(path)]
    assert len(written) > 40
    for code, names in written:
        assert names <= {*CODES[code], *PREFIXES}, code


def test_notes_are_made_by_the_list_of_codes_alone() -> None:
    """`Note(…)` takes any code, as a reader needs it; what is written must be in the list."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_note = isinstance(node, ast.Call) and ast.unparse(node.func) == "Note"
            assert not is_note, f"{path.name}: write Note.of"


def test_an_unknown_code_is_shown_with_its_values() -> None:
    assert str(Note("later-code", {"share": 0.1})) == "later-code (share 0.1)"
    assert str(Note("later-code", {"a": 1, "b": "x\ny"})) == "later-code (a 1, b x\\ny)"
    assert str(Note("later-code")) == "later-code"


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("junk", [None, "abc", -1, [], [[]], {}, [{}], 0.5])
def test_no_edit_of_a_note_is_a_bug(code: str, junk: object) -> None:
    for values in ({}, dict.fromkeys((*CODES[code], *PREFIXES), junk)):
        assert sentence(Note(code, values))


def test_a_note_says_of_what_and_of_which_result_it_is() -> None:
    note = Note.of("above-baseline", high=0.25, about="race,sex")
    assert str(note) == "race,sex: more than in the baseline, where it was at most 25.0 points"
    assert str(Note.of("nothing-measured", when="before")) == "before: nothing was measured"


def test_notes_are_equal_by_code_and_values() -> None:
    one, other = Note.of("column-not-used", name="a"), Note.of("column-not-used", name="b")
    assert one == Note("column-not-used", {"name": "a"})
    assert one != other
    assert len({one, other, Note.of("column-not-used", name="a")}) == 2
    assert Note.of("within-set-below", against=("a", "b")).values == {"against": ["a", "b"]}


def test_what_noise_explains_of_a_score_is_in_points() -> None:
    assert "explain a score of 5.0 points" in sentence(Note.of("noise-may-explain", high=0.05))
    finding = sentence(Note.of("noise-in-finding", explains=0.0004, floor=0.03))
    assert "explain < 0.1 points, so that only 3.0 points are certain" in finding


def test_a_missing_value_is_called_missing() -> None:
    assert PLAIN.label({"income": None}) == "income missing"
    assert PLAIN.label({"race": None, "age": 30}) == "race missing · age 30"


def test_what_a_missing_value_does_stands_apart_from_the_score() -> None:
    facts = {"names": ["income"], "changed": 30, "inputs": 120, "share": 0.25}
    assert sentence(Note.of("value-taken-away", **facts)) == (
        "without income, inputs that have it get a different decision: 25.0 %; the score leaves "
        "that out"
    )
    sampled = {**facts, "low": 0.2, "high": 0.3, "confidence": 0.99}
    assert "25.0 % (20.0 – 30.0 %)" in sentence(Note.of("value-taken-away", **sampled))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (1_500, "1,500 rows have values between the steps; each is run as it is"),
        (1, "1 row has a value between the steps; it is run as it is"),
    ],
)
def test_numbers_between_steps_are_no_lack_of_the_schema(rows: int, said: str) -> None:
    note = Note.of("values-between-steps", name="balance", rows=rows)
    assert note.is_harmless
    assert sentence(note) == f"balance: {said}"


def test_values_that_are_kept_for_their_rows_are_named() -> None:
    kept = Note.of("values-kept", name="age", rows=1_200, values=[1.5, 2.5, 3.5, 4.5])
    assert sentence(kept) == (
        "1,200 rows with a value of age that the schema does not have (1.5, 2.5, 3.5, …): run as "
        "it is, and tried for nobody else"
    )
