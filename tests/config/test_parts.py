"""Parts of a themis.toml as forms edit them: what a text means, and that nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.config.parts import Source, keys_of, kinds_of, read, shown
from themis.config.toml import parse_toml
from themis.errors import ConfigError

FILE = """\
# What is tested.
version = 1

[subject]      # a program
kind = "python"
function = "loan:decide"  # keep me
favourable = ["approved", 1]
max_failures = 0.10

[inputs]  # whom
sex = { values = ["female", "male"], protected = true }   # of people
age = { min = 18, max = 1_000, bins = [30, 60] }
job = ["none",  # out of work
       "some"]
"a b" = { values = ["x", "1", true, "{ y", ' "z"\\n'], weights = [1, 2.50, 3, 4, 5] }

[constraints]
grown = "age >= 21 or job == 'none'"  # by law

[report.values]
sex = { female = "women" }
"""
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
WORDS = ["1", "true", "1.50", "'a'", '"b"', "{ a = 1 }", "- 1", "1_0", "007", "nan", "a # b", ""]
SCALARS = st.one_of(
    st.sampled_from(WORDS), TEXTS, st.integers(), st.booleans(), st.floats(allow_nan=False,
    allow_infinity=False),
)  # fmt: skip
TABLES = st.dictionaries(TEXTS, SCALARS, max_size=3)
VALUES = {  # by a key that is written so
    "favourable": st.lists(SCALARS, min_size=1, max_size=4),
    "depends": st.lists(TEXTS, min_size=1, max_size=3),
    "labels": st.dictionaries(TEXTS, st.lists(TEXTS), max_size=3),
    "version": TEXTS,
    "max_failures": st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    "similar_texts": st.sampled_from(["same", "different"]),
    "deterministic": st.booleans(),
}


def parts(source: Source) -> list[Any]:
    """All parts of a file."""
    named = [
        (section, each) for section in ("inputs", "constraints") for each in source.table(section)
    ]
    return [source.part(*each) for each in [*named, ("subject",), ("report",), ("run",)]]


@given(st.data())
def test_a_value_is_read_from_its_text_as_it_was(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(VALUES)))
    value, key = data.draw(VALUES[name]), keys_of("subject", "python")[name]
    assert json.dumps(read(key, shown(key, value))) == json.dumps(value)


@given(st.data())
def test_an_edit_of_one_key_leaves_all_other_lines_as_they_are(data: st.DataObject) -> None:
    source = Source(
        Path("themis.toml"), FILE.replace("\n", data.draw(st.sampled_from(["\n", "\r\n"])))
    )
    part = data.draw(st.sampled_from(parts(source)))
    texts = {name: shown(key, part.spec.get(name)) for name, key in part.keys.items()}
    assert source.filled_in(part, texts).text == source.text
    changed = data.draw(st.sampled_from(sorted(texts)))
    texts[changed] = data.draw(st.sampled_from([*WORDS, "a\nb", "3, 4"]) | TEXTS)
    try:
        new = source.filled_in(part, texts).text
    except ConfigError:  # what can't be edited is refused
        return
    before, after = source.text.splitlines(keepends=True), new.splitlines(keepends=True)
    own = {part.path[-1], part.section, changed, "some"}
    kept = [line for line in before if line.strip() and not any(n in line for n in own)]
    assert [line for line in after if line in kept] == kept
    assert parse_toml(new).keys() >= parse_toml(source.text).keys() - {part.section}


@pytest.mark.parametrize(
    ("section", "name", "texts", "line"),
    [
        ("inputs", "age", {"bins": "30, 60 65"},
         "age = { min = 18, max = 1000, bins = [30, 60, 65] }\n"),
        ("inputs", "sex", {"protected": "", "values": "female\nmale"},
         'sex = { values = ["female", "male"] }   # of people\n'),
        ("inputs", "a b", {"weights": ""},
         '"a b" = { values = ["x", "1", true, "{ y", " \\"z\\"\\\\n"] }\n'),
        ("constraints", "grown", {"condition": "age >= 18"}, 'grown = "age >= 18"  # by law\n'),
        ("subject", "", {"max_failures": "a lot"}, 'max_failures = "a lot"\n'),
    ],
)  # fmt: skip
def test_a_key_is_edited_in_its_line(
    section: str, name: str, texts: dict[str, str], line: str
) -> None:
    source = Source(Path("themis.toml"), FILE)
    new = source.filled_in(source.part(section, name), texts).text
    lines, old = new.splitlines(keepends=True), FILE.splitlines(keepends=True)
    assert line in lines
    assert len([each for each in lines if each not in old]) == 1


def test_what_becomes_of_another_kind_keeps_what_both_may_have() -> None:
    source = Source(Path("themis.toml"), FILE)
    new = source.filled_in(source.part("subject", kind="command"), {"command": "python\nloan.py"})
    assert new.data["subject"] == {
        "kind": "command", "command": ["python", "loan.py"], "favourable": ["approved", 1],
        "max_failures": 0.1,
    }  # fmt: skip
    new = source.filled_in(source.part("inputs", "sex", "range"), {"min": "1", "max": "2"})
    assert new.data["inputs"]["sex"] == {"protected": True, "min": 1, "max": 2}
    assert set(kinds_of("subject")) == {"python", "model", "command", "worker", "http", "chat"}


def test_what_is_wrong_in_a_file_can_be_edited_by_parts() -> None:
    text = 'subject = { kind = ["x"] }\ninputs.a = "x"\ninputs.b = 07:32:00\nconstraints.c = [1]\n'
    source = Source(Path("themis.toml"), text)
    for part in parts(source):
        assert not any(shown(key, part.spec.get(name)) for name, key in part.keys.items())
    new = source.filled_in(source.part("inputs", "a"), {"values": "x"})
    assert new.data["inputs"]["a"] == ["x"]


def test_a_part_is_not_added_twice_and_its_name_may_be_anything() -> None:
    source = Source(Path("pyproject.toml"), "[tool.themis]\nversion = 1\n[tool.other]\nx = 1\n")
    for name in ("sex", "]\n[x", '"', "ключ"):
        part = source.part("inputs", name, is_new=True)
        source = source.filled_in(part, {"values": "a\nb"})
    assert source.data["inputs"] == {key: ["a", "b"] for key in ("sex", "]\n[x", '"', "ключ")}
    assert source.text.endswith("[tool.other]\nx = 1\n")
    with pytest.raises(ConfigError, match="there is one of this name already"):
        source.filled_in(source.part("inputs", "sex", is_new=True), {"values": "c"})
    assert "sex" not in source.without(source.part("inputs", "sex")).table("inputs")
