"""Notes are codes with values wherever they are made, and sentences only where they are shown."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import themis
from themis.results.notes import CODES, PREFIXES, Note
from themis.show.words.notes import WORDS, fields_of, sentence

SOURCE = Path(themis.__file__).parent


def test_every_code_has_words_and_no_others_do() -> None:
    assert WORDS["words"].keys() == CODES.keys()
    assert WORDS["untold"].keys() < CODES.keys()


@pytest.mark.parametrize("code", CODES)
def test_a_sentence_needs_only_the_values_of_its_code(code: str) -> None:
    """Besides what every note may say, such as that the subject is noisy."""
    templates = [WORDS[table][code] for table in ("words", "untold") if code in WORDS[table]]
    needed = {name for each in templates for _, name, _ in fields_of(each) if name}
    assert needed <= {*CODES[code], "noise", "rates", "what", "lone", "shared"}


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
