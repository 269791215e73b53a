"""Does `themis init` write something that works?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema

from themis.config.drafts import SUBJECT_FILE_NAME, starter_subject_text, starter_text
from themis.config.format import CheckTable, RangeInput, RunTable, format_schema
from themis.config.reader import read_config
from themis.config.tables import PythonSubject
from themis.config.toml import parse_toml


def _decide() -> Any:
    space: dict[str, Any] = {}
    exec(compile(starter_subject_text(), SUBJECT_FILE_NAME, "exec"), space)
    return space["decide"]


def test_starter_file_is_read_without_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "themis.toml"
    path.write_text(starter_text(), encoding="utf-8")
    config = read_config(path)
    assert config.subject.kind == "python"
    assert config.subject.options["function"] == f"{Path(SUBJECT_FILE_NAME).stem}:decide"
    assert [check.name for check in config.checks] == [
        "causal race at most 0.05",
        "group sex at most 0.02",
    ]
    checker = jsonschema.Draft202012Validator(format_schema())
    assert [error.message for error in checker.iter_errors(parse_toml(starter_text()))] == []


def test_starter_file_is_valid_with_its_commented_keys_switched_on(tmp_path: Path) -> None:
    lines = [
        line[2:]
        if line.startswith("# ") and ("=" in line or "[" in line[:4]) and "labels" not in line
        else line
        for line in starter_text().splitlines()
    ]
    path = tmp_path / "themis.toml"
    text = "\n".join(lines).replace("favourable = [1]", 'favourable = ["yes"]')  # names a label
    path.write_text(text, encoding="utf-8")
    config = read_config(path)
    assert config.subject.version == "2024-06"
    assert config.settings.max_seconds == 600
    assert config.checks[-1].search


def test_starter_file_shows_every_key_of_its_tables() -> None:
    text = starter_text()
    for model in (PythonSubject, RangeInput, RunTable, CheckTable):
        for key in model.model_fields:
            if key != "output":  # only where [outputs] declares some
                assert f"{key} =" in text, key


def test_starter_subject_treats_sex_but_not_race_differently() -> None:
    decide = _decide()
    woman = {"sex": "female", "age": 30, "income": 35_000.0, "employed": True, "race": "green"}
    assert decide(woman) != decide({**woman, "sex": "male"})
    assert decide(woman) == decide({**woman, "race": "purple"})
