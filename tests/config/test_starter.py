"""Does `themis init` write something that works?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema

from themis.config.drafts import SUBJECT_FILE_NAME, starter_subject_text, starter_text
from themis.config.format import CheckTable, RangeInput, RunTable, format_schema
from themis.config.reader import read_config
from themis.config.tables import PythonSubject
from themis.config.toml import parse_toml


def test_starter_file_is_read_without_mistakes() -> None:
    Path("themis.toml").write_text(starter_text(), encoding="utf-8")
    config = read_config(Path("themis.toml"))
    assert config.subject.kind == "python"
    assert config.subject.options["function"] == f"{Path(SUBJECT_FILE_NAME).stem}:decide"
    assert [check.name for check in config.checks] == [
        "causal race at most 0.05",
        "group sex at most 0.02",
    ]
    jsonschema.Draft202012Validator(format_schema()).validate(parse_toml(starter_text()))


def test_starter_file_is_valid_with_its_commented_keys_switched_on() -> None:
    key = re.compile(r"^# (?!.*labels)(?=.*=|.{0,3}\[)", re.M)
    text = key.sub("", starter_text()).replace(
        "favourable = [1]", 'favourable = ["yes"]'
    )  # a label
    Path("themis.toml").write_text(text, encoding="utf-8")
    config = read_config(Path("themis.toml"))
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
    space: dict[str, Any] = {}
    exec(compile(starter_subject_text(), SUBJECT_FILE_NAME, "exec"), space)
    decide = space["decide"]
    woman = {"sex": "female", "age": 30, "income": 35_000.0, "employed": True, "race": "green"}
    assert decide(woman) != decide({**woman, "sex": "male"})
    assert decide(woman) == decide({**woman, "race": "purple"})
