"""Is a configuration file read as it is meant, and is each of its mistakes reported well?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from pydantic_core.core_schema import ErrorType

from themis.audit.audit import Audit
from themis.config.complaints import _Fault, find_complaints
from themis.config.format import INPUTS, SUBJECTS, TABLES, File
from themis.config.reader import (
    Config,
    _Findings,
    _Reader,
    find_config,
    format_schema,
    read_config,
)
from themis.config.toml import KeyPath, key_lines, parse_toml
from themis.errors import ConfigError, RequestError
from themis.inputs.schema import Integers, Reals, Schema, Values
from themis.settings import Settings
from themis.subjects.decisions import DEFAULT_FAVOURABLE

DESIGN = """\
version = 1

[subject]
kind = "command"                 # command | worker | python | model | http
command = ["python", "loan.py"]  # a list; never a shell
arguments = "positional"         # positional: loan.py green 18 · named: loan.py race green age 18
favourable = ["1"]               # outputs that count as the favourable decision
timeout_seconds = 5

[inputs]                                     # order = argument order
sex    = ["female", "male"]
race   = { values = ["green", "purple"], protected = true }
age    = { min = 18, max = 120, bins = [40, 65] }        # integers, both ends included
income = { min = 0.0, max = 200000.0, step = 1000.0 }
city   = { values = ["A", "B"], weights = [0.9, 0.1] }   # weights: the operational profile

[constraints]
no_young_millionaires = "not (age < 30 and income > 150000)"

[run]
confidence = 0.99
error = 0.05
seed = 42
stopping = "certified"           # certified | paper (the paper's own rule, for comparison)
max_executions = 1_000_000
max_seconds = 600

[[checks]]
against = ["race"]
measure = "causal"               # causal | group
max_score = 0.05

[[checks]]
search = true                    # no minimal set above the threshold
measure = "causal"
max_score = 0.10
"""

VALIDATOR = jsonschema.Draft202012Validator(format_schema())

SUBJECT_OF = {
    "python": 'function = "a.b:c.d"\ncall = "batch"',
    "model": 'object = "loan:model"',
    "command": 'command = ["./loan", "{race}"]\nanswer = "/out/0"\nenv = { A = "1" }\ncwd = "x"',
    "worker": 'command = ["./loan"]\nformat = "csv"\nstart_seconds = 0.5\nrecycle_after = 10',
    "http": 'url = "https://a.org/x"\nmethod = "PUT"\nheaders = { "X-A" = "1" }\nretries = 0\n'
    'body = { who = "{race}" }\nanswer = "/a"\nconcurrency = 4\nrate_per_second = 2.5',
}


def config_text(
    subject: str = 'kind = "python"\nfunction = "loan:decide"',
    inputs: str = 'race = ["green", "purple"]\nage = { min = 18, max = 120 }',
    rest: str = "",
    top: str = "version = 1",
) -> str:
    """A file in which [subject] is line 2, [inputs] line 5 with the default subject."""
    return f"{top}\n[subject]\n{subject}\n[inputs]\n{inputs}\n{rest}\n"


def read(folder: Path, text: str, name: str = "themis.toml") -> Config:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read_config(path)


def messages(folder: Path, text: str, name: str = "themis.toml") -> list[str]:
    """What is wrong with a file, one line each, without the folder."""
    with pytest.raises(ConfigError) as caught:
        read(folder, text, name)
    lines = str(caught.value).splitlines()
    assert len(lines) == len(caught.value.mistakes), "every mistake is one line"
    for mistake in caught.value.mistakes:
        assert mistake.line
        assert mistake.remedy
        assert mistake.code == mistake.code.lower().replace(" ", "-")
    return [line.removeprefix(f"{folder}{os.sep}{name}:") for line in lines]


def paths_of(value: Any, path: KeyPath = ()) -> set[KeyPath]:
    parts: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        parts = list(value.items())
    elif isinstance(value, list):
        parts = list(enumerate(value))
    inner = [paths_of(each, (*path, key)) for key, each in parts]
    return {(*path, key) for key, _ in parts}.union(*inner)


# Files without mistakes -------------------------------------------------------------------


def test_example_of_the_design_is_read_as_it_says(tmp_path: Path) -> None:
    config = read(tmp_path, DESIGN)
    assert config.schema == Schema(
        sex=["female", "male"],
        race=Values(["green", "purple"], protected=True),
        age=Integers(18, 120, bins=[40, 65]),
        income=Reals(0, 200_000, step=1_000),
        city=Values(["A", "B"], weights=[0.9, 0.1]),
    ).where(no_young_millionaires="not (age < 30 and income > 150000)")
    assert config.schema.protected == ("race",)
    assert config.settings.seed == 42
    assert config.settings.max_executions == 1_000_000
    assert config.subject.kind == "command"
    assert config.subject.favourable == ("1",)
    assert config.subject.options == {
        "command": ["python", "loan.py"],
        "arguments": "positional",
        "timeout_seconds": 5,
    }
    assert config.folder == tmp_path.resolve()
    race, search = config.checks
    assert (race.against, race.search, race.max_score, race.line) == (("race",), False, 0.05, 28)
    assert (search.against, search.search, search.max_score, search.line) == (None, True, 0.1, 33)
    assert race.name == "causal race at most 0.05"
    assert search.name == "causal search at most 0.1"


def test_the_sets_of_a_run_are_read_once_each_in_the_order_of_the_inputs(tmp_path: Path) -> None:
    run = '[run]\nerror = 0.1\nagainst = [["age"], ["age", "race"], ["race", "age"]]'
    config = read(tmp_path, config_text(rest=run))
    assert config.against == (("age",), ("race", "age"))
    assert config.settings == Settings(error=0.1)
    assert type(config.settings) is Settings
    VALIDATOR.validate(tomllib.loads(config_text(rest=run)))
    assert read(tmp_path, config_text()).against == ()


def test_what_is_left_out_gets_the_defaults(tmp_path: Path) -> None:
    config = read(tmp_path, config_text())
    assert config.subject.favourable == DEFAULT_FAVOURABLE
    assert (config.subject.version, config.subject.max_failures) == ("", 0.0)
    assert config.subject.options == {"function": "loan:decide"}
    assert config.settings.confidence == 0.99
    assert config.checks == ()


@pytest.mark.parametrize("kind", SUBJECT_OF)
def test_every_kind_of_subject_is_read_with_its_keys(tmp_path: Path, kind: str) -> None:
    text = config_text(f'kind = "{kind}"\n{SUBJECT_OF[kind]}\nversion = "2"\nmax_failures = 0.5')
    subject = read(tmp_path, text).subject
    assert subject.kind == kind
    assert subject.options == tomllib.loads(SUBJECT_OF[kind])
    assert (subject.version, subject.max_failures) == ("2", 0.5)
    VALIDATOR.validate(tomllib.loads(text))


def test_project_file_is_read_the_same_way(tmp_path: Path) -> None:
    project = '[project]\nname = "x"\n[tool.themis]\n' + DESIGN.replace(
        "[[checks]]", "[[tool.themis.checks]]"
    )
    for name in ("subject", "inputs", "constraints", "run"):
        project = project.replace(f"\n[{name}]", f"\n[tool.themis.{name}]")
    own, other = read(tmp_path, DESIGN), read(tmp_path, project, "pyproject.toml")
    assert (own.schema, own.settings, own.subject) == (
        other.schema,
        other.settings,
        other.subject,
    )
    assert [check.line for check in other.checks] == [31, 36]


def test_a_set_is_in_schema_order(tmp_path: Path) -> None:
    text = config_text(rest='[[checks]]\nagainst = ["age", "race"]\nmax_score = 0\nsearch = false')
    (check,) = read(tmp_path, text).checks
    assert check.against == ("race", "age")
    assert check.name == "causal race,age at most 0"


def test_domain_larger_than_64_bits_is_read(tmp_path: Path) -> None:
    inputs = "\n".join(f"x{n} = {{ min = 0, max = 1_000_000_000 }}" for n in range(4))
    assert read(tmp_path, config_text(inputs=inputs)).schema.size == (10**9 + 1) ** 4


def test_byte_order_mark_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    path = tmp_path / "themis.toml"
    path.write_bytes(b"\xef\xbb\xbf" + DESIGN.replace("\n", "\r\n").encode())
    assert read_config(path).checks[1].line == 33


# Where the file is ------------------------------------------------------------------------


def test_own_file_goes_before_the_project_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.themis]\nversion = 1\n")
    assert find_config(tmp_path).name == "pyproject.toml"
    (tmp_path / "themis.toml").write_text("")
    assert find_config(tmp_path).name == "themis.toml"


@pytest.mark.parametrize("project", [None, "[project]\nname = 'x'\n", "[tool.black]\n", "x = ["])
def test_folder_without_a_file_is_told_how_to_get_one(tmp_path: Path, project: str | None) -> None:
    if project is not None:
        (tmp_path / "pyproject.toml").write_text(project)
    with pytest.raises(ConfigError, match=r"neither a themis\.toml nor .*; run `themis init`"):
        find_config(tmp_path)


def test_broken_project_file_with_our_table_is_found_so_that_it_is_reported(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.themis]\nversion = one\n")
    with pytest.raises(ConfigError, match=r"pyproject\.toml:2: at column 11 there is no value"):
        read_config(find_config(tmp_path))


def test_unreadable_files_are_one_line_each(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b"version = 1\n# caf\xe9\n")
    (tmp_path / "empty.toml").write_text("# nothing\n")
    (tmp_path / "pyproject.toml").write_text("[tool.black]\n")
    expected = {
        "nowhere.toml": ": there is no such file; run `themis init` to write one",
        ".": ": is a folder; name a file, such as themis.toml",
        "latin.toml": ":2: is not UTF-8 text; save it as UTF-8",
        "empty.toml": ": the file is empty; run `themis init` to write one",
        "pyproject.toml": ": there is no [tool.themis] in it; run `themis init` to write one",
        "a\0b": ": can't be read: embedded null byte; check its name",
    }
    for name, message in expected.items():
        path = tmp_path / name
        with pytest.raises(ConfigError) as caught:
            read_config(path)
        assert str(caught.value) == f"{path}{message}"
        assert caught.value.exit_code == 2


# Files with a mistake ---------------------------------------------------------------------

NOT_A_TABLE = "must be a table, got 5"
RUN = "[run]\n"
CHECK = '[[checks]]\nagainst = ["race"]\nmax_score = 0.1\n'
FAULTY: dict[str, tuple[str, str]] = {
    "version 2": (
        config_text(top="version = 2"),
        "1: version: this Themis reads version 1 of the format, got 2; "
        "write version = 1, or install a Themis that reads version 2",
    ),
    "version as text": (
        config_text(top='version = "1"'),
        "1: version: must be a whole number, got '1'; write for example version = 1",
    ),
    "version true": (
        config_text(top="version = true"),
        "1: version: must be a whole number, got true; write for example version = 1",
    ),
    "no version": (config_text(top=""), "1: version: is missing; write version = 1"),
    "no subject": (
        'version = 1\n[inputs]\na = ["x"]\n',
        "1: subject: is missing; write [subject] and its keys below",
    ),
    "no inputs": (
        'version = 1\n[subject]\nkind = "python"\nfunction = "a:b"\n',
        "1: inputs: is missing; write [inputs] and its keys below",
    ),
    "empty inputs": (
        config_text(inputs=""),
        "5: inputs: there is no characteristic; describe at least one",
    ),
    "unknown table": (
        config_text(rest="[input]\nx = 1"),
        "8: input: there is no such key; did you mean 'inputs'?",
    ),
    "section is no table": (
        config_text(top="version = 1\nrun = 5"),
        f"2: run: {NOT_A_TABLE}; write [run] and its keys below",
    ),
    "single brackets": (
        config_text(rest='[checks]\nagainst = ["race"]'),
        "8: checks: must be a list, got a table; write [[checks]] and its keys below",
    ),
    "check is no table": (
        config_text(top="version = 1\nchecks = [5]"),
        f"2: checks[1]: {NOT_A_TABLE}; write a table in {{ }}",
    ),
    "unknown kind": (
        config_text('kind = "pyhton"\nfunction = "a:b"'),
        "3: subject.kind: must be one of python, model, command, worker, http, got 'pyhton'; "
        'write kind = "python"',
    ),
    "no kind": (
        config_text('url = "http://a.org"'),
        '2: subject.kind: is missing; write kind = "http"',
    ),
    "no function": (
        config_text('kind = "python"'),
        '2: subject.function: is missing; write function = "loan:decide"',
    ),
    "function without colon": (
        config_text('kind = "python"\nfunction = "loan.decide"'),
        "4: subject.function: is not written as it should be, got 'loan.decide'; "
        'write for example function = "loan:decide"',
    ),
    "misspelt key": (
        config_text('kind = "python"\nfuncton = "a:b"'),
        "4: subject.functon: there is no such key for the kind 'python'; did you mean 'function'?",
    ),
    "key of another kind": (
        config_text('kind = "python"\nfunction = "a:b"\nurl = "http://a.org"'),
        "5: subject.url: there is no such key for the kind 'python'; "
        "choose from: kind, function, call, favourable, labels, version, max_failures, "
        "max_undecided, repeats, deterministic, cost",
    ),
    "unknown call": (
        config_text('kind = "python"\nfunction = "a:b"\ncall = "rows"'),
        "5: subject.call: must be 'row', 'keywords' or 'batch', got 'rows'; did you mean 'row'?",
    ),
    "unknown cost": (
        config_text('kind = "python"\nfunction = "a:b"\ncost = "call"'),
        "5: subject.cost: must be 'calls' or 'executions', got 'call'; did you mean 'calls'?",
    ),
    "call of a wrong type": (
        config_text('kind = "python"\nfunction = "a:b"\ncall = 1'),
        "5: subject.call: must be 'row', 'keywords' or 'batch', got 1; "
        'write for example call = "row"',
    ),
    "no model": (
        config_text('kind = "model"'),
        '2: subject: there is no model; write file = "model.onnx" or object = "loan:model"',
    ),
    "two models": (
        config_text('kind = "model"\nfile = "a.onnx"\nobject = "a:b"'),
        "2: subject: both file and object are given; remove one of them",
    ),
    "command as text": (
        config_text('kind = "command"\ncommand = "./loan"'),
        "4: subject.command: must be a list, got './loan'; "
        'write for example command = ["python", "loan.py"]',
    ),
    "command with a number": (
        config_text('kind = "command"\ncommand = [\n"./loan",\n5]'),
        "6: subject.command[2]: must be text, got 5; write it in quotes",
    ),
    "no timeout": (
        config_text('kind = "command"\ncommand = ["a"]\ntimeout_seconds = 0'),
        "5: subject.timeout_seconds: must be more than 0, got 0; "
        "write for example timeout_seconds = 5",
    ),
    "endless timeout": (
        config_text('kind = "command"\ncommand = ["a"]\ntimeout_seconds = inf'),
        "5: subject.timeout_seconds: must be a finite number, got inf; "
        "write for example timeout_seconds = 5",
    ),
    "unknown answer": (
        config_text('kind = "command"\ncommand = ["a"]\nanswer = "exit"'),
        "5: subject.answer: is not written as it should be, got 'exit'; write for example "
        'answer = "last-line" or "stdout" or "exit-code" or "/decision"',
    ),
    "number in env": (
        config_text('kind = "command"\ncommand = ["a"]\n[subject.env]\nB = 1'),
        "6: subject.env.B: must be text; write it in quotes",
    ),
    "negative retries": (
        config_text('kind = "http"\nurl = "http://a"\nretries = -1'),
        "5: subject.retries: must be at least 0, got -1; write for example retries = 3",
    ),
    "date as body": (
        config_text('kind = "http"\nurl = "http://a"\nbody = 2020-01-01'),
        '5: subject.body: must be a JSON template, as text or as a table; write "{input}"',
    ),
    "no favourable": (
        config_text('kind = "python"\nfunction = "a:b"\nfavourable = []'),
        '5: subject.favourable: is empty; write for example favourable = ["1"]',
    ),
    "not a number is favourable": (
        config_text('kind = "python"\nfunction = "a:b"\nfavourable = ["1", nan]'),
        "5: subject.favourable[2]: nan can't be a value; "
        "use strings, finite numbers, true or false",
    ),
    "too many failures": (
        config_text('kind = "python"\nfunction = "a:b"\nmax_failures = 5'),
        "5: subject.max_failures: must be at most 1, got 5; write for example max_failures = 0.01",
    ),
    "no values": (
        config_text(inputs="race = []"),
        "6: inputs.race: there are no values; list at least one",
    ),
    "value instead of a list": (
        config_text(inputs='race = "green"'),
        "6: inputs.race: values must be a list, got 'green'; write ['green']",
    ),
    "duplicate value": (
        config_text(inputs='race = ["green", "green"]'),
        "6: inputs.race: the value 'green' appears twice; remove one",
    ),
    "min above max": (
        config_text(inputs="age = { min = 90, max = 18 }"),
        "6: inputs.age: minimum 90 exceeds maximum 18; swap them or widen the range",
    ),
    "no max": (
        config_text(inputs="age = { min = 90 }"),
        "6: inputs.age.max: is missing; write max = 120",
    ),
    "misspelt max": (
        config_text(inputs="[inputs.age]\nmin = 9\nmaxi = 18"),
        "8: inputs.age.maxi: there is no such key beside min and max; did you mean 'max'?",
    ),
    "no step": (
        config_text(inputs="age = { min = 0, max = 1.5 }"),
        "6: inputs.age: step is missing; write a number",
    ),
    "text as min": (
        config_text(inputs='age = { min = "a", max = 5 }'),
        "6: inputs.age: min must be a whole number, got 'a'; write a whole number",
    ),
    "values and min": (
        config_text(inputs="age = { values = [1], min = 5 }"),
        "6: inputs.age.min: there is no such key beside values; "
        "choose from: values, follows, as, from, weights, protected, missing, "
        "missing_as_counterfactual",
    ),
    "neither values nor min": (
        config_text(inputs="age = { protected = true }"),
        "6: inputs.age: there are neither values nor min and max; "
        'write values = ["green", "purple"], or min = 18 and max = 120',
    ),
    "weights of another length": (
        config_text(inputs="age = { values = [1, 2], weights = [1] }"),
        "6: inputs.age: 1 weight for 2 values; give one weight for each",
    ),
    "weight instead of a list": (
        config_text(inputs="age = { values = [1, 2], weights = 1 }"),
        "6: inputs.age.weights: must be a list, got 1; write for example weights = [0.9, 0.1]",
    ),
    "protected as text": (
        config_text(inputs='age = { values = [1, 2], protected = "yes" }'),
        "6: inputs.age.protected: must be true or false, got 'yes'; write it without quotes",
    ),
    "comma in a name": (
        config_text(inputs='"a,b" = [1]'),
        "6: inputs.a,b: 'a,b' can't be a name; use text without commas and backquotes",
    ),
    "number as constraint": (
        config_text(rest="[constraints]\nadult = 18"),
        "9: constraints.adult: must be text, got 18; write it in quotes",
    ),
    "unknown name in a constraint": (
        config_text(rest='[constraints]\nadult = "agee > 18"'),
        "9: constraints.adult: there is no characteristic 'agee'; did you mean 'age'?",
    ),
    "impossible constraint": (
        config_text(rest='[constraints]\nadult = "age > 200"'),
        "9: constraints.adult: 'age > 200' holds for no input at all; "
        "correct it, or widen the ranges that it reads",
    ),
    "contradictory constraints": (
        config_text(rest='[constraints]\nold = "age > 60"\nyoung = "age < 50"'),
        "8: constraints: 'old', 'young' contradict each other: no input meets all of them; "
        "relax one of them",
    ),
    "confidence in percent": (
        config_text(rest=f"{RUN}confidence = 99"),
        "9: run.confidence: must lie between 0 and 1, got 99; write 0.99 for 99 %",
    ),
    "one set instead of several": (
        config_text(rest=f'{RUN}against = ["race"]'),
        "9: run.against[1]: must be a list, got 'race'; "
        'write for example against = [["race"], ["race", "sex"]]',
    ),
    "no set at all": (
        config_text(rest=f"{RUN}against = []"),
        '9: run.against: is empty; write for example against = [["race"], ["race", "sex"]]',
    ),
    "a set without characteristics": (
        config_text(rest=f'{RUN}against = [["race"], []]'),
        '9: run.against[2]: is empty; write for example against = [["race"], ["race", "sex"]]',
    ),
    "a set of a run with an unknown name": (
        config_text(rest=f'{RUN}against = [["race"], ["race", "aage"]]'),
        "9: run.against[2]: there is no characteristic 'aage'; did you mean 'age'?",
    ),
    "a set of a run with a name twice": (
        config_text(rest=f'{RUN}against = [["race", "race"]]'),
        "9: run.against[1]: 'race' appears twice; remove one",
    ),
    "unknown choice of a profile": (
        config_text(rest='[profile]\ndata = "people.csv"\nunknown = "what"'),
        "10: profile.unknown: must be 'keep', 'drop', 'error' or 'extend', got 'what'; "
        "choose from: keep, drop, error, extend",
    ),
    "unknown setting": (
        config_text(rest=f"{RUN}max_execution = 5"),
        "9: run.max_execution: there is no such key; did you mean 'max_executions'?",
    ),
    "setting of the subject": (
        config_text(rest=f'{RUN}cost = "calls"'),
        "9: run.cost: there is no such key; write it in [subject]",
    ),
    "setting of the run": (
        config_text('kind = "python"\nfunction = "a:b"\nconfidence = 0.9'),
        "5: subject.confidence: there is no such key for the kind 'python'; write it in [run]",
    ),
    "limit of a check": (
        config_text(rest=f"{RUN}max_score = 0.1"),
        "9: run.max_score: there is no such key; write it in [[checks]]",
    ),
    "unknown stopping": (
        config_text(rest=f'{RUN}stopping = "soon"'),
        '9: run.stopping: there is no rule \'soon\'; write "certified" or "paper"',
    ),
    "number as search": (
        config_text(rest="[[checks]]\nsearch = 5\nmax_score = 0.05"),
        "9: checks[1].search: must be true or false, got 5; write for example search = true",
    ),
    "against and search": (
        config_text(rest=f"{CHECK}search = true"),
        "8: checks[1]: both against and search are given; remove one of them",
    ),
    "nothing to check": (
        config_text(rest=f"{CHECK}[[checks]]\nmax_score = 0.1"),
        '11: checks[2]: there is nothing to check; write against = ["race"], or search = true',
    ),
    "search is false": (
        config_text(rest="[[checks]]\nsearch = false\nmax_score = 0.1"),
        '8: checks[1]: there is nothing to check; write against = ["race"], or search = true',
    ),
    "score above 1": (
        config_text(rest='[[checks]]\nagainst = ["race"]\nmax_score = 5'),
        "10: checks[1].max_score: must be at most 1, got 5; write for example max_score = 0.05",
    ),
    "limit in units": (
        config_text(
            rest='[outputs.limit]\nmin = 0\nmax = 5000\n[[checks]]\nagainst = ["race"]\n'
            'measure = "group"\nmax_score = 100'
        ),
        "14: checks[1].max_score: must be at most 1, got 100; it is a share of the scale: write "
        "0.02 for 100 of 0 to 5,000",
    ),
    "no limit": (
        config_text(rest='[[checks]]\nagainst = ["race"]'),
        "8: checks[1].max_score: is missing; write max_score = 0.05",
    ),
    "unknown measure": (
        config_text(rest=f'{CHECK}measure = "both"'),
        "11: checks[1].measure: must be 'causal' or 'group', got 'both'; "
        "choose from: causal, group",
    ),
    "unknown name in a set": (
        config_text(rest='[[checks]]\nagainst = ["rase"]\nmax_score = 0.1'),
        "9: checks[1].against: there is no characteristic 'rase'; did you mean 'race'?",
    ),
    "empty set": (
        config_text(rest="[[checks]]\nagainst = []\nmax_score = 0.1"),
        '9: checks[1].against: is empty; write for example against = ["race"]',
    ),
    "set as text": (
        config_text(rest='[[checks]]\nagainst = "race"\nmax_score = 0.1'),
        "9: checks[1].against: must be a list, got 'race'; write for example against = [\"race\"]",
    ),
    "name twice in a set": (
        config_text(rest='[[checks]]\nagainst = ["race", "race"]\nmax_score = 0.1'),
        "9: checks[1].against: 'race' appears twice; remove one",
    ),
    "key twice": (
        config_text(inputs='race = ["a"]\nsex = ["x"]\nrace = [\n"b"\n]'),
        "8: the key 'inputs.race' appears twice, first in line 6; remove or rename one",
    ),
    "table twice": (
        config_text(rest='[inputs]\nsex = ["x"]'),
        "8: the key 'inputs' appears twice, first in line 5; remove or rename one",
    ),
    "text without quotes": (
        config_text("kind = python"),
        "3: at column 8 there is no value; "
        'text goes in quotes, as in name = "text"; true and false are written small',
    ),
    "list not closed": (
        config_text(inputs='race = ["green"\nage = [1]'),
        "7: at column 1 a list is not closed; separate its items by commas, end it with ]",
    ),
    "quote not closed": (
        config_text(inputs='race = ["green]'),
        "6: at column 16 text is not closed on its line; end it with a quote",
    ),
    "no equals sign": (
        config_text(inputs='race ["green"]'),
        '6: at column 6 there is no = after the key; write it as name = "value"',
    ),
    "number beyond 64 bits": (
        config_text(inputs="age = { min = 0, max = 99999999999999999999 }"),
        "6: a whole number has more than 64 bits; stay below 9.2e18, or write it as 1e30",
    ),
}


def test_a_limit_that_is_written_as_the_search_is_told_apart(tmp_path: Path) -> None:
    _, said = messages(tmp_path, config_text(rest="[[checks]]\nsearch = 0.05"))
    assert said == (
        "9: checks[1].search: must be true or false, got 0.05; "
        "write search = true and max_score = 0.05"
    )


@pytest.mark.parametrize("case", FAULTY)
def test_faulty_file_gets_exactly_this_message(tmp_path: Path, case: str) -> None:
    text, message = FAULTY[case]
    assert messages(tmp_path, text) == [message]


def test_many_mistakes_are_reported_at_once_each_with_its_line(tmp_path: Path) -> None:
    text = """\
version = 3
[subject]
kind = "comand"
command = []
favorable = ["1"]
[inputs]
sex = ["female", "female"]
race = { values = ["green", "purple"], weigths = [1, 2] }
age = { min = 90, max = 18, protected = 1 }
income = { min = 0.0, max = 9.5 }
size = { min = 1, max = 9 }
[constraints]
adult = "age >= 18 and sise > 2"
small = "size <"
[run]
error = 5
sed = 1
[[checks]]
against = ["rase", "age"]
max_score = -1
[[checks]]
search = "yes"
"""
    assert [message.split(": ")[:2] for message in messages(tmp_path, text)] == [
        ["1", "version"],
        ["3", "subject.kind"],
        ["4", "subject.command"],
        ["5", "subject.favorable"],
        ["7", "inputs.sex"],
        ["8", "inputs.race.weigths"],
        ["9", "inputs.age.protected"],
        ["9", "inputs.age"],
        ["10", "inputs.income"],
        ["13", "constraints.adult"],
        ["14", "constraints.small"],
        ["16", "run.error"],
        ["17", "run.sed"],
        ["19", "checks[1].against"],
        ["20", "checks[1].max_score"],
        ["21", "checks[2].max_score"],
        ["22", "checks[2].search"],
    ]


def test_constraints_that_hold_for_no_input_are_among_all_mistakes(tmp_path: Path) -> None:
    text = """\
version = 1
[subject]
kind = "python"
function = "loan:decide"
[inputs]
age = { min = 90, max = 18 }
size = { min = 1, max = 9 }
sex = ["f", "m"]
[constraints]
large = "size > 20"
none = "size > 20 and sex == 'f'"
fine = "size > 2"
faulty = "age > 200"
"""
    said = [
        ["6", "inputs.age"],
        ["10", "constraints.large"],
        ["11", "constraints.none"],
    ]
    assert [message.split(": ")[:2] for message in messages(tmp_path, text)] == said
    healthy = text.replace("min = 90, max = 18", "min = 18, max = 90")
    now = [message.split(": ")[:2] for message in messages(tmp_path, healthy)]
    assert now == [*said[1:], ["13", "constraints.faulty"]]


def test_mistakes_in_a_project_file_have_its_lines(tmp_path: Path) -> None:
    text = '[project]\n\n[tool.themis]\nversion = 1\n[tool.themis.inputs]\na = []\nb = ["x"]\n'
    assert messages(tmp_path, text, "pyproject.toml") == [
        "3: subject: is missing; write [subject] and its keys below",
        "6: inputs.a: there are no values; list at least one",
    ]


def test_faulty_characteristic_is_not_called_unknown(tmp_path: Path) -> None:
    text = config_text(
        inputs='age = { min = 9, max = 1 }\n"odd name" = []\nrace = ["green"]',
        rest='[constraints]\na = "age > 3"\nb = "`odd name` == 1 and rac == 1"\n'
        '[[checks]]\nagainst = ["age", "odd name"]\nmax_score = 0.1',
    )
    assert messages(tmp_path, text) == [
        "6: inputs.age: minimum 9 exceeds maximum 1; swap them or widen the range",
        "7: inputs.odd name: there are no values; list at least one",
        "11: constraints.b: there is no characteristic 'rac'; did you mean 'race'?",
    ]


def test_name_with_a_line_break_keeps_the_message_on_one_line(tmp_path: Path) -> None:
    (message,) = messages(tmp_path, config_text(inputs='"a\\nb" = []'))
    assert message == "6: inputs.'a\\nb': there are no values; list at least one"


# The models never let pydantic's own words through ----------------------------------------

fractions = st.floats(-3, 3).filter(lambda number: not number.is_integer())  # 1.0 is whole in JSON
scalars = st.one_of(
    st.text(max_size=5), st.integers(-3, 3), fractions, st.booleans(), st.dates(), st.times()
)
models = [File, *SUBJECTS.values(), *INPUTS.values()]
models += [table for table in TABLES.values() if not isinstance(table, Mapping)]
names = st.sampled_from(sorted({"zzz"}.union(*(model.model_fields for model in models))))
anything = st.recursive(
    scalars | st.sampled_from(list(SUBJECTS)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=5),
    max_leaves=12,
)
Change = tuple[KeyPath, str | None, Any]
CROWDED = tomllib.loads(DESIGN)
CROWDED["inputs"]["flat"] = [1]


def replaced(value: Any, path: KeyPath, new: Any) -> Any:
    """A copy of nested data with something else, or something new, at a path."""
    if not path:
        return new
    key, *rest = path
    if isinstance(value, list):
        return [
            replaced(each, tuple(rest), new) if n == key else each for n, each in enumerate(value)
        ]
    if not isinstance(key, str):
        raise TypeError("no key of TOML")
    return {**value, key: replaced(value.get(key), tuple(rest), new)}


tables_of_the_file: list[KeyPath] = [
    *((), ("subject",), ("run",), ("checks", 0), ("checks", 1), ("constraints",)),
    *(("inputs",), ("inputs", "race"), ("inputs", "age"), ("inputs", "city")),
]


def changes(data: Any, tables: list[KeyPath]) -> st.SearchStrategy[list[Change]]:
    """Up to three values that are set at paths of the data, or at new keys of its tables."""
    paths = st.sampled_from([*sorted(paths_of(data), key=str), *tables])
    return st.lists(st.tuples(paths, names | st.none(), anything), min_size=1, max_size=3)


def changed(data: Any, tables: list[KeyPath], edits: list[Change]) -> Any:
    for path, key, new in edits:
        place = (*path, key) if key and path in tables else path
        try:
            data = replaced(data, place, new)
        except (AttributeError, TypeError):  # an earlier change took the table away
            continue
    return data if isinstance(data, dict) else {}


WORDS_OF_PYDANTIC = ("Input should", "type=", "union", "Field required", "Extra inputs", "NoneType")


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(changes(CROWDED, tables_of_the_file))
def test_changed_file_is_never_described_in_the_words_of_pydantic(edits: list[Change]) -> None:
    data = changed(CROWDED, tables_of_the_file, edits)
    complaints = find_complaints(data)
    for complaint in complaints:
        assert complaint.mistake.problem
        assert complaint.mistake.remedy
        assert not any(word in str(complaint.mistake) for word in WORDS_OF_PYDANTIC)
    if any(each.mistake.code != "output" for each in complaints):  # those need several keys to see
        assert not VALIDATOR.is_valid(data)


FULL = CROWDED | {
    "outputs": {"limit": {"at": "/limit", "min": 0, "max": 9, "favourable": ["yes"]}},
    "profile": {"data": "people.csv"},
    "accepted": [{"against": ["race"], "reason": "why", "until": date(2027, 3, 31)}],
}
all_tables: list[KeyPath] = [
    *(*tables_of_the_file, ("outputs",), ("outputs", "limit"), ("profile",), ("accepted", 0)),
]


@settings(max_examples=150, deadline=None)
@given(changes(FULL, all_tables))
@example([(("checks", 0), "output", 5)])
def test_changed_file_is_read_or_refused_with_remedies(edits: list[Change]) -> None:
    data = changed(FULL, all_tables, edits)
    try:
        _Reader(data, _Findings("themis.toml", "", ())).read(Path("themis.toml"))
    except ConfigError as error:
        for mistake in error.mistakes:
            assert mistake.remedy, mistake
            assert not any(word in str(mistake) for word in WORDS_OF_PYDANTIC)


@pytest.mark.parametrize("place", [("zzz",), ("run", "seed"), ("subject", "python", "call"), ()])
def test_every_error_of_pydantic_has_plain_words(place: KeyPath) -> None:
    context = {"expected": "'a' or 'b'", "gt": 0, "ge": 0, "le": 1}
    for kind in get_args(ErrorType):
        fault = _Fault.of({"type": kind, "loc": place, "msg": "type=x", "input": 5, "ctx": context})
        said = fault.complaint({}).mistake
        assert said.problem, kind
        assert said.remedy, kind
        assert not any(word in str(said) for word in WORDS_OF_PYDANTIC), kind


@pytest.mark.parametrize("path", [(), *tables_of_the_file, ("outputs",), ("accepted", 0)])
@pytest.mark.parametrize("key", [0, 1.5, True, None, date(2020, 1, 1), ("a", "b")])
def test_key_that_is_no_text_is_a_mistake(path: KeyPath, key: Any) -> None:
    crowded = {**CROWDED, "outputs": {}, "accepted": [{"reason": "why"}]}
    table: Any = crowded
    for part in path:
        table = table[part]
    for changed in ({**table, key: [1]}, {key: [1]}):
        complaints = find_complaints(replaced(crowded, path, changed))
        assert complaints
        for each in complaints:
            assert not any(word in str(each.mistake) for word in WORDS_OF_PYDANTIC)


def test_every_table_of_the_file_is_known_to_the_complaints() -> None:
    schema = format_schema()
    tables = {name for name, key in schema["properties"].items() if "$defs" in json.dumps(key)}
    assert tables == TABLES.keys()


# The JSON Schema --------------------------------------------------------------------------


def test_schema_for_editors_accepts_the_example_and_says_what_keys_mean() -> None:
    schema = format_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(tomllib.loads(DESIGN), schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == "themis.toml"
    for table in [schema, *schema["$defs"].values()]:
        assert table["description"]
        for name, key in table["properties"].items():
            assert name == "kind" or key["description"], name


SYNTAX = {"key twice", "table twice", "text without quotes", "list not closed"}
SYNTAX |= {"quote not closed", "no equals sign"}
BEYOND_SHAPE = {  # needs more than one key to see
    *("min above max", "no step", "weights of another length", "comma in a name"),
    *("unknown name in a constraint", "impossible constraint", "contradictory constraints"),
    *("unknown name in a set", "name twice in a set", "number beyond 64 bits"),
    *("a set of a run with an unknown name", "a set of a run with a name twice"),
    *("not a number is favourable", "endless timeout"),  # JSON has neither
}


@pytest.mark.parametrize("case", sorted(FAULTY.keys() - SYNTAX))
def test_schema_for_editors_rejects_what_is_wrong_in_shape(case: str) -> None:
    data = tomllib.loads(FAULTY[case][0])
    assert VALIDATOR.is_valid(data) == (case in BEYOND_SHAPE)


# Lines ------------------------------------------------------------------------------------

TRICKY = '''\
a."b c".'d.e' = 1 # c = 2
"q\\u0041" = """
[not.a.table]
x = 1 \\""" y"""
lit = \'\'\'
z = [ ''\'\'\'
s = "a # b = [ \\" c"
date = 1979-05-27 07:32:00
list = [ # [
  1.5, [2, { u = 1, "v w".x = [3] } ], "]",

  { k = 'it]s' }
]
[ t . "u" ] # x
k={}
[[c]]
[c.sub]
z = -inf
[[c]]
  [[c.d]]
  [[c.d]]
  q = """a"""""
'''


def test_lines_of_a_tricky_text_are_those_an_eye_finds() -> None:
    lines = key_lines(TRICKY)
    assert lines.keys() == paths_of(parse_toml(TRICKY))
    expected: dict[KeyPath, int] = {
        ("a",): 1,
        ("a", "b c", "d.e"): 1,
        ("qA",): 2,
        ("lit",): 5,
        ("s",): 7,
        ("date",): 8,
        ("list",): 9,
        ("list", 1, 1, "v w", "x", 0): 10,
        ("list", 3, "k"): 12,
        ("t", "u"): 14,
        ("t", "u", "k"): 15,
        ("c",): 16,
        ("c", 0): 16,
        ("c", 0, "sub", "z"): 18,
        ("c", 1): 19,
        ("c", 1, "d", 1, "q"): 22,
    }
    assert {path: lines[path] for path in expected} == expected


def test_table_that_was_implied_first_stands_at_its_own_header() -> None:
    assert key_lines("[a.b]\nx = 1\n[a]\ny = 1\n")[("a",)] == 3


keys = st.sampled_from(["a", "b", '"c d"', "'e.f'", '"\\u00e9#"', "1"])
blanks = st.sampled_from(["", "\n", "# [x]\n", "\n\n  # y = 1\n"])
values = st.recursive(
    st.sampled_from(
        ["1", "-1.5", "true", "1979-05-27T07:32:00Z", '"[x] # \\" {"', "'}'", '"""\nx = 1\n"""']
    ),
    lambda inner: (
        st.lists(st.tuples(blanks, inner), max_size=3).map(
            lambda items: "[" + ",".join(f"{blank}{item}" for blank, item in items) + "]"
        )
        | st.dictionaries(keys, inner, max_size=3).map(
            lambda table: "{" + ", ".join(f"{key} = {value}" for key, value in table.items()) + " }"
        )
    ),
    max_leaves=6,
)
tables = st.lists(
    st.tuples(
        st.sampled_from(["[t1]", "[t2.x]", "[ t3 . 'y z' ]", "[[l]]", "[l.m]", "[[l.n]]"]),
        blanks,
        st.dictionaries(keys, values, max_size=4),
    ),
    max_size=5,
)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(tables)
@example([("[[l]]", "", {}), ("[[l.n]]", "", {"a": "1"}), ("[[l]]", "", {}), ("[[l.n]]", "", {})])
def test_each_key_is_found_on_the_line_where_it_was_written(
    document: list[tuple[str, str, dict[str, str]]],
) -> None:
    text = ""
    written: list[tuple[str, int]] = []
    for header, blank, body in document:
        text += f"{header}\n{blank}"
        for key, value in body.items():
            written.append((next(iter(tomllib.loads(f"{key} = 1"))), text.count("\n") + 1))
            text += f"{key} = {value}\n"
    try:
        data = parse_toml(text)
    except ConfigError:  # the same table twice
        assume(False)
    lines = key_lines(text)
    assert lines.keys() == paths_of(data)
    for key, line in written:
        assert any(path[-1] == key and each == line for path, each in lines.items())


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab\"'[]{}=.,#\n \\1\r\t\0é", max_size=60))
def test_no_text_breaks_the_scanner(text: str) -> None:
    lines = key_lines(text)
    assert all(1 <= line <= text.count("\n") + 1 for line in lines.values())
    try:
        data = parse_toml(text)
    except ConfigError as error:
        places = [mistake.line or 0 for mistake in error.mistakes]
    else:
        places = list(lines.values())
        assert lines.keys() == paths_of(data)
    assert all(1 <= line <= text.count("\n") + 1 for line in places)


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = " + "9" * 5_000])
def test_text_that_python_can_not_hold_is_a_mistake(tmp_path: Path, text: str) -> None:
    assert len(messages(tmp_path, text)) == 1


def test_reading_a_file_loads_nothing_heavy() -> None:
    code = (
        "import sys, themis.config.reader;"
        "print(*{'pandas', 'sklearn', 'typer', 'rich'} & {*sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


@pytest.mark.parametrize("answer", ["", "/outputs", "text", "status"])
def test_the_answer_of_a_service_may_be_all_of_it(tmp_path: Path, answer: str) -> None:
    subject = f'kind = "http"\nurl = "http://a"\nanswer = "{answer}"'
    assert read(tmp_path, config_text(subject)).subject.options["answer"] == answer


# What only shows when it is used ----------------------------------------------------------
FUNCTION = 'kind = "python"\nfunction = "os:getcwd"'


@pytest.mark.parametrize(
    ("subject", "rest", "said"),
    [
        ('kind = "python"\nfunction = "not_there:decide"', "", "subject.function: there is no"),
        ('kind = "command"\ncommand = ["not-there"]', "", "subject.command: there is no program"),
        ('kind = "worker"\ncommand = ["not-there"]', "", "subject.command: there is no program"),
        ('kind = "http"\nurl = "http://localhost/{age}"', "", "subject.url: "),
        ('kind = "model"\nfile = "model.onnx"', "", "subject.file: there is no file"),
        (
            FUNCTION,
            '[profile]\ndata = "nobody.csv"',
            "profile.data: nobody.csv: there is no such file",
        ),
        (
            FUNCTION,
            '[profile]\ndata = "people.csv"\nweights = "many"',
            "profile.weights: people.csv has no column 'many'",
        ),
        (
            FUNCTION,
            '[outputs.limit]\ndistance = "not_there:f"',
            "outputs.limit.distance: there is no module",
        ),
    ],
)
@pytest.mark.parametrize("name", ["themis.toml", "pyproject.toml"])
def test_what_can_not_be_used_has_its_line(
    tmp_path: Path, subject: str, rest: str, said: str, name: str
) -> None:
    (tmp_path / "people.csv").write_text("race\n1\n2\n")
    text = f"version = 1\n[subject]\n{subject}\n[inputs]\nrace = [1, 2]\n{rest}"
    if name == "pyproject.toml":
        text = "[tool.themis]\n" + text.replace("\n[", "\n[tool.themis.")
    (tmp_path / name).write_text(text)
    key = said.partition(":")[0].rpartition(".")[2]
    (line,) = [n for n, each in enumerate(text.split("\n"), 1) if each.startswith(f"{key} =")]
    with pytest.raises(RequestError) as caught:
        Audit.from_file(tmp_path / name)
    assert str(caught.value).startswith(f"{tmp_path / name}:{line}: {said}")


def test_without_items_the_lines_of_all_keys_are_the_same() -> None:
    texts = [TRICKY, 'a = [ "x]", \'y\' ,\n 2]\nb = ["""\nz]"""]\nc = [["d"], 1] # [\ne = 1\n']
    for text in texts:
        every, few = key_lines(text), key_lines(text, items=False)
        assert few.items() <= every.items()
        assert all(isinstance(path[-1], int) for path in every.keys() - few.keys())
    assert key_lines(texts[1], items=False) == {
        **{("a",): 1, ("b",): 3, ("c",): 5, ("e",): 6},
        **{("b", 0): 3, ("c", 0): 5, ("c", 1): 5},
    }


def test_a_mistake_in_an_item_of_a_long_list_is_placed_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "themis.toml"
    listed = DESIGN.replace('favourable = ["1"]', 'favourable = [\n  "1",\n  [2],\n]')
    path.write_text(listed, encoding="utf-8")
    line = listed.splitlines().index("  [2],") + 1
    with pytest.raises(ConfigError, match=rf"themis.toml:{line}: subject.favourable\[2\]"):
        read_config(path)
