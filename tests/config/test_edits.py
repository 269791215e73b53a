"""Edits of a themis.toml change what is asked, and not one byte beside it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.config.toml import key_lines, spell_value, with_value, without
from themis.errors import ConfigError

LOAN = """\
# What is tested.
version = 1

[subject]      # a program
kind = "python"
function = "loan:decide"  # keep me

[inputs]
sex = { values = ["female", "male"], protected = true }
age = { min = 18, max = 90, bins = [30, 60] }   # years
job = ["none",  # out of work
       "some"]

[constraints]
adult = "age >= 18"

[[checks]]
against = ["sex"]
max_score = 0.05

# The other one.
[[checks]]
search = true
max_score = 0.1

[report.values]
sex = { female = "women" }
"""

# Values as they may be written.

WORDS = ["a", "b-1", "C_", "two words", "dot.ted", 'quo"te', "ключ", "", "12", "[x]", "a=b", "#"]
SCALARS = [
    "1", "-0.5", "1e3", "true", "0x1F", "1_000", "inf", "2027-03-31", "1979-05-27 07:32:00",
    '"text"', "'lit # eral'", '"a \\" = ] quote"', '""', "''", '"""x"""', '"""\n[fake]\nk = 1\n"""',
    "'''\n# no comment ] }\n'''", '"""two "" quotes"""""', "'''it''s'''", '"""back\\\\"""',
]  # fmt: skip
NAMES = st.lists(st.sampled_from(WORDS), max_size=3, unique=True)
GAPS = st.sampled_from(["", " ", "\n", "  # said = [\n  ", "\n\n# {\n", "\t"])
SPACES = st.sampled_from(["", " ", "\t "])
COMMENTS = st.sampled_from(["", " # why", "   #[x] = {", "\t"])
FILLERS = st.lists(st.sampled_from(["", "# [no] = header", "   ", "#"]), max_size=2)


def spelled(draw: Any, name: str) -> str:
    """A key in one of the ways to write it."""
    plain = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    ways = [spell_value(name), *([f"'{name}'"] if "'" not in name else []), *([name] * plain)]
    return draw(st.sampled_from(ways))


@st.composite
def lists(draw: Any, inner: Any) -> str:
    """A list, over several lines and with comments."""
    items = draw(st.lists(inner, max_size=3))
    text = ",".join(f"{draw(GAPS)}{each}{draw(GAPS)}" for each in items)
    return f"[{text}{draw(GAPS)}]"


@st.composite
def inline_tables(draw: Any, inner: Any) -> str:
    """A table in { }."""
    pairs = (f"{spelled(draw, name)}{draw(SPACES)}= {draw(inner)}" for name in draw(NAMES))
    return f"{{{', '.join(pairs)}{draw(SPACES)}}}"


VALUES = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: st.one_of(lists(inner), inline_tables(inner)),
    max_leaves=6,
)


@dataclass(frozen=True)
class Line:
    """One key of a text: its path, where its lines begin and end, and where its value does."""

    path: tuple[Any, ...]
    start: int
    value: int
    stop: int
    end: int


@st.composite
def texts(draw: Any) -> tuple[str, list[Line]]:
    """A TOML text in an odd hand, with where everything in it is."""
    text, found = "", []

    def fill() -> None:
        nonlocal text
        text += "".join(f"{each}\n" for each in draw(FILLERS))

    def keys(table: tuple[Any, ...], names: list[str]) -> None:
        nonlocal text
        for name in names:
            fill()
            start, written = len(text), draw(VALUES)
            parts = (name, *draw(st.one_of(st.just([]), st.just(["deep", "er"]))))
            key = f"{draw(SPACES)}.{draw(SPACES)}".join(spelled(draw, each) for each in parts)
            text += f"{draw(SPACES)}{key}{draw(SPACES)}={draw(SPACES)}"
            places = start, len(text), len(text) + len(written)
            text += f"{written}{draw(COMMENTS)}\n"
            found.append(Line((*table, *parts), *places, len(text)))

    keys((), [f"top {each}" for each in draw(NAMES)])
    for table in draw(NAMES):
        fill()
        text += f"{draw(SPACES)}[{draw(SPACES)}{spelled(draw, table)}{draw(SPACES)}]\n"
        keys((table,), draw(NAMES))
        if draw(st.booleans()):
            text += f"[ {spelled(draw, table)} . 'sub table' ]  # below\n"
            keys((table, "sub table"), draw(NAMES))
    for number in range(draw(st.integers(0, 2))):
        text += f"[[many]]{draw(COMMENTS)}\n"
        keys(("many", number), draw(NAMES))
        if draw(st.booleans()):
            text += "[many.inner]\n"
            keys(("many", number, "inner"), draw(NAMES))
    fill()
    return text, found


ENDS = st.sampled_from(["\n", "\r\n"])
MARKS = st.sampled_from(["", "\ufeff"])
NEW = st.sampled_from([7, 0.25, True, "new ] # \" '", ["x", 1], {"k": "v"}])


@given(texts())
def test_a_key_is_found_in_the_line_where_it_begins(made: tuple[str, list[Line]]) -> None:
    text, found = made
    lines = {each.path: text.count("\n", 0, each.start) + 1 for each in found}
    assert lines.items() <= key_lines(text).items()


@given(texts(), ENDS, MARKS, NEW, st.data())
def test_a_value_is_replaced_and_nothing_else(
    made: tuple[str, list[Line]], end: str, mark: str, new: Any, data: Any
) -> None:
    text, found = made
    if not found:
        return
    line = data.draw(st.sampled_from(found))
    old = read(text, line.path)
    if old == new and type(old) is type(new):
        return
    before, behind = (e.replace("\n", end) for e in (text[: line.value], text[line.stop :]))
    try:
        edited = with_value(mark + text.replace("\n", end), line.path, new)
    except ConfigError:  # remarks inside of the value would be lost
        assert {"#", "\n"} <= {*text[line.value : line.stop]}
    else:
        assert edited == f"{mark}{before}{spell_value(new)}{behind}"


@given(texts(), ENDS, MARKS, st.data())
def test_a_key_is_removed_with_its_lines_alone(
    made: tuple[str, list[Line]], end: str, mark: str, data: Any
) -> None:
    text, found = made
    if not found:
        return
    line = data.draw(st.sampled_from(found))
    before, behind = (e.replace("\n", end) for e in (text[: line.start], text[line.end :]))
    assert without(mark + text.replace("\n", end), line.path) == f"{mark}{before}{behind}"


@given(texts(), NEW, st.booleans(), st.data())
def test_an_edit_inside_of_a_value_changes_its_lines_alone(
    made: tuple[str, list[Line]], new: Any, adds: bool, data: Any
) -> None:
    text, found = made
    inner = [line for line in found if isinstance(read(text, line.path), dict | list)]
    if not inner:
        return
    line = data.draw(st.sampled_from(inner))
    old = read(text, line.path)
    known = [*old] if isinstance(old, dict) else [*range(len(old))]
    part = data.draw(st.sampled_from([*known, "more" if isinstance(old, dict) else len(old)]))
    path = (*line.path, part)
    try:
        edited = with_value(text, path, new) if adds else without(text, path)
    except ConfigError:
        assert {"#", "\n"} <= {*text[line.value : line.stop]}
        return
    assert edited.startswith(text[: line.value])
    assert edited.endswith(text[line.stop :])
    assert not adds or read(edited, path) == new


@given(texts(), NEW, ENDS, st.data())
def test_an_added_key_is_an_insertion(
    made: tuple[str, list[Line]], new: Any, end: str, data: Any
) -> None:
    text, found = made
    text = text.replace("\n", end)
    tables = [(), ("brand new",), *(line.path[:-1] for line in found)]
    path = (*data.draw(st.sampled_from(tables)), "added ☃")
    edited = with_value(text, path, new)
    assert read(edited, path) == new
    assert is_longer(edited, text)
    assert end == "\n" or not text or "\n" not in edited.replace("\r\n", "")


def read(text: str, path: tuple[Any, ...]) -> Any:
    """The value at a path."""
    found: Any = tomllib.loads(text)
    for part in path:
        found = found[part]
    return found


def is_longer(edited: str, text: str) -> bool:
    """Whether one piece was put into the text."""
    same = next(
        (n for n, (a, b) in enumerate(zip(edited, text, strict=False)) if a != b), len(text)
    )
    return len(edited) > len(text) and edited.endswith(text[same:])


# The edits of a page, as they come out


@pytest.mark.parametrize(
    ("path", "value", "was", "now"),
    [
        (("inputs", "sex", "protected"), False, "protected = true", "protected = false"),
        (
            ("inputs", "age"),
            {"min": 18, "max": 95, "bins": [30, 60], "protected": True},
            "max = 90, bins = [30, 60] }   # years",
            "max = 95, bins = [30, 60], protected = true }   # years",
        ),
        (("inputs", "town"), ["a", "b"], '"some"]\n', '"some"]\ntown = ["a", "b"]\n'),
        (("subject", "depends"), ["x"], "# keep me\n", '# keep me\ndepends = ["x"]\n'),
        (("checks", 1, "max_score"), 0.2, "max_score = 0.1\n", "max_score = 0.2\n"),
        (
            ("checks", 2),
            {"against": ["age"]},
            "max_score = 0.1\n",
            'max_score = 0.1\n\n[[checks]]\nagainst = ["age"]\n',
        ),
        (("report", "values", "age"), {"18": "x"}, "men\" }\n", 'men" }\nage = { 18 = "x" }\n'),
        (("run", "seed"), 3, '"women" }\n', '"women" }\n\n[run]\nseed = 3\n'),
        (("version",), 2, "version = 1", "version = 2"),
        # The remark on the next one stays:
        (("checks", 0), None, '[[checks]]\nagainst = ["sex"]\nmax_score = 0.05\n\n', ""),
        (("run", "seed"), None, "", ""),
    ],
)  # fmt: skip
def test_edits_of_a_page(path: tuple[Any, ...], value: Any, was: str, now: str) -> None:
    edited = without(LOAN, path) if value is None else with_value(LOAN, path, value)
    assert edited == LOAN.replace(was, now)


def test_a_table_of_pyproject_is_edited_within_it() -> None:
    text = '[project]\nname = "x"\n\n[tool.themis]\nversion = 1\n\n[tool.other]\nrun = 1\n'
    edited = with_value(text, ("run", "seed"), 3, prefix=("tool", "themis"))
    added = "version = 1\n\n[tool.themis.run]\nseed = 3\n"
    assert edited == text.replace("version = 1\n", added)


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        (LOAN, ("inputs", "job"), 'job = ["none",  # out of work'),  # the remark would be lost
        ('version = 1\n[inputs.sex]\nvalues = ["f"]\n', ("inputs", "sex"), "[inputs.sex]"),
        # It would come before others:
        ('[inputs]\na = ["x"]\n[inputs.b]\nmin = 1\nmax = 2\n', ("inputs", "c"), "[inputs]"),
    ],
)
def test_what_would_be_lost_is_refused_with_its_line(
    text: str, path: tuple[Any, ...], line: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        with_value(text, path, ["f", "m", "x"])
    (mistake,) = caught.value.mistakes
    assert (mistake.code, text.splitlines()[mistake.line - 1]) == ("not-edited", line)
    assert "by hand" in mistake.remedy
