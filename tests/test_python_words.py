"""Does a message speak Python to Python code, and options to those who type commands?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import themis
from tests.projects import enter, run, write_project
from themis.cli.printing import OPTIONS, in_options

SOURCE = Path(themis.__file__).parent
ROOMS = ("statistics", "inputs", "subjects", "results", "engine", "scores", "search", "audit")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
OF_OTHERS = {"--data-raw"}  # an option of curl


def texts(path: Path) -> Iterator[str]:
    """All texts of a module that are no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bodies = (node for node in ast.walk(tree) if isinstance(node, ast.Expr))
    documented = {id(node.value) for node in bodies}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in documented:
            yield node.value


@pytest.mark.parametrize("room", ROOMS)
def test_what_python_can_reach_names_no_option(room: str) -> None:
    for path in (SOURCE / room).rglob("*.py"):
        for text in texts(path):
            assert {*OPTION.findall(text)} <= OF_OTHERS, f"{path.name}: {text}"


def test_a_written_option_would_be_noticed(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text('"""Not --this."""\nremedy = f"or use --that {1}"\n')
    found = [OPTION.findall(text) for text in texts(tmp_path / "module.py")]
    assert found == [["--that"]]


def test_the_command_line_has_an_option_for_each() -> None:
    shown = " ".join(run(command, "--help").output for command in ("score", "apparent"))
    for option in OPTIONS.values():
        assert option.split()[0].removeprefix("--no-rows") in shown
    text = 'widen it, or use unknown="keep" or "drop"'
    assert in_options(text) == "widen it, or use --unknown keep or drop"


def test_the_same_mistake_is_said_in_both_languages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(tmp_path, monkeypatch)
    write_project(tmp_path, inputs='race = ["green", "purple"]\nincome = { min = 0, max = 9 }')
    Path("people.csv").write_text("race,income\ngreen,12\n")
    done = run("apparent", "--data", "people.csv", "--against", "race", "--unknown", "error")
    assert "or use --unknown keep or drop" in done.output
    audit = themis.Audit.from_file("themis.toml")
    with pytest.raises(themis.RequestError, match='or use unknown="keep" or "drop"'):
        audit.apparent("people.csv", against=["race"], unknown="error")
