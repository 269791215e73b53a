"""Is a configuration file read as it is meant, and is each of its mistakes reported well?"""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from themis.audit.audit import Audit
from themis.config.complaints import find_complaints
from themis.config.format import INPUTS, TABLES, File, format_schema
from themis.config.reader import Config, _Findings, _Reader, find_config, read_config
from themis.config.tables import SUBJECTS
from themis.config.toml import KeyPath, key_lines, parse_toml, spell_path
from themis.errors import ConfigError, RequestError
from themis.inputs.schema import Integers, Reals, Schema, Values
from themis.settings import Settings
from themis.subjects.decisions import DEFAULT_FAVOURABLE

DESIGN = """\
version = 1

[subject]
kind = "command"
command = ["python", "loan.py"]  # a list; never a shell
arguments = "positional"         # positional: loan.py green 18 · named: loan.py race green age 18
favourable = ["1"]
timeout_seconds = 5

[inputs]                                     # order = argument order
sex    = ["female", "male"]
race   = { values = ["green", "purple"], protected = true }
age    = { min = 18, max = 120, bins = [40, 65] }
income = { min = 0.0, max = 200000.0, step = 1000.0 }
city   = { values = ["A", "B"], weights = [0.9, 0.1] }

[constraints]
no_young_millionaires = "not (age < 30 and income > 150000)"

[run]
seed = 42
max_executions = 1_000_000

[[checks]]
against = ["race"]
max_score = 0.05

[[checks]]
search = true
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


def read(text: str, name: str = "themis.toml") -> Config:
    Path(name).write_text(text, encoding="utf-8")
    return read_config(Path(name))


def messages(text: str) -> list[str]:
    """What is wrong with a file, one line each, without its name."""
    with pytest.raises(ConfigError) as caught:
        read(text)
    lines = str(caught.value).splitlines()
    assert len(lines) == len(caught.value.mistakes), "every mistake is one line"
    for mistake in caught.value.mistakes:
        assert mistake.line
        assert mistake.remedy
        assert mistake.code == mistake.code.lower().replace(" ", "-")
    return [line.removeprefix("themis.toml:") for line in lines]


def paths_of(value: Any, path: KeyPath = ()) -> set[KeyPath]:
    parts: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        parts = list(value.items())
    elif isinstance(value, list):
        parts = list(enumerate(value))
    inner = [paths_of(each, (*path, key)) for key, each in parts]
    return {(*path, key) for key, _ in parts}.union(*inner)


def check_paths(found: Collection[KeyPath], data: Any) -> None:
    """All keys of the data are found, and nothing that it does not have."""
    every = paths_of(data)
    assert {path for path in every if not any(isinstance(part, int) for part in path)} <= {*found}
    assert {*found} <= every


# Files without mistakes -------------------------------------------------------------------


def test_example_of_the_design_is_read_as_it_says(folder: Path) -> None:
    config = read(DESIGN)
    assert config.schema == Schema(
        sex=["female", "male"],
        race=Values(["green", "purple"], protected=True),
        age=Integers(18, 120, bins=[40, 65]),
        income=Reals(0, 200_000, step=1_000),
        city=Values(["A", "B"], weights=[0.9, 0.1]),
    ).where(no_young_millionaires="not (age < 30 and income > 150000)")
    assert config.schema.protected == ("race",)
    assert config.settings == Settings(seed=42, max_executions=1_000_000)
    assert (config.subject.kind, config.subject.favourable) == ("command", ("1",))
    assert config.subject.options == {
        "command": ["python", "loan.py"],
        "arguments": "positional",
        "timeout_seconds": 5,
    }
    assert config.folder == folder.resolve()
    race, search = config.checks
    assert (race.against, race.search, race.max_score, race.line) == (("race",), False, 0.05, 24)
    assert (search.against, search.search, search.max_score, search.line) == (None, True, 0.1, 28)
    assert race.name == "causal race at most 0.05"
    assert search.name == "causal search at most 0.1"


def test_the_sets_of_a_run_are_read_once_each_in_the_order_of_the_inputs() -> None:
    run = '[run]\nerror = 0.1\nagainst = [["age"], ["age", "race"], ["race", "age"]]'
    config = read(config_text(rest=run))
    assert config.against == (("age",), ("race", "age"))
    assert config.settings == Settings(error=0.1)
    assert type(config.settings) is Settings
    VALIDATOR.validate(tomllib.loads(config_text(rest=run)))
    plain = read(config_text())
    assert (plain.against, plain.checks, plain.settings) == ((), (), Settings())
    assert plain.subject.favourable == DEFAULT_FAVOURABLE


@pytest.mark.parametrize("kind", SUBJECT_OF)
def test_every_kind_of_subject_is_read_with_its_keys(kind: str) -> None:
    text = config_text(f'kind = "{kind}"\n{SUBJECT_OF[kind]}\nversion = "2"\nmax_failures = 0.5')
    subject = read(text).subject
    assert subject.kind == kind
    assert subject.options == tomllib.loads(SUBJECT_OF[kind])
    assert (subject.version, subject.max_failures) == ("2", 0.5)
    VALIDATOR.validate(tomllib.loads(text))


def test_a_project_file_and_one_of_windows_are_read_the_same_way() -> None:
    project = '[project]\nname = "x"\n[tool.themis]\n' + DESIGN.replace(
        "[[checks]]", "[[tool.themis.checks]]"
    )
    for name in ("subject", "inputs", "constraints", "run"):
        project = project.replace(f"\n[{name}]", f"\n[tool.themis.{name}]")
    own, other = read(DESIGN), read(project, "pyproject.toml")
    assert (own.schema, own.settings, own.subject) == (other.schema, other.settings, other.subject)
    assert [check.line for check in other.checks] == [27, 31]
    windows = b"\xef\xbb\xbf" + DESIGN.replace("\n", "\r\n").encode()
    Path("themis.toml").write_bytes(windows)
    assert read_config(Path("themis.toml")).checks == own.checks


# Where the file is ------------------------------------------------------------------------


@pytest.mark.parametrize("project", [None, "[project]\nname = 'x'\n", "[tool.black]\n", "x = ["])
def test_folder_without_a_file_is_told_how_to_get_one(folder: Path, project: str | None) -> None:
    if project is not None:
        Path("pyproject.toml").write_text(project)
    with pytest.raises(ConfigError, match=r"neither a themis\.toml nor .*; run `themis init`"):
        find_config(folder)
    Path("pyproject.toml").write_text("[tool.themis]\nversion = one\n")
    with pytest.raises(ConfigError, match=r"pyproject\.toml:2: at column 11 there is no value"):
        read_config(find_config(folder))
    Path("themis.toml").write_text("")
    assert find_config(folder).name == "themis.toml"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.toml", "there is no such file; run `themis init` to write one"),
        ("", "is a folder; name a file, such as themis.toml"),
        ("latin.toml", "2: is not UTF-8 text; save it as UTF-8"),
        ("empty.toml", "the file is empty; run `themis init` to write one"),
        ("pyproject.toml", "there is no [tool.themis] in it; run `themis init` to write one"),
        ("a\0b", "can't be read: embedded null byte; check its name"),
    ],
)
def test_unreadable_files_are_one_line_each(folder: Path, name: str, message: str) -> None:
    Path("latin.toml").write_bytes(b"version = 1\n# caf\xe9\n")
    Path("empty.toml").write_text("# nothing\n")
    Path("pyproject.toml").write_text("[tool.black]\n")
    with pytest.raises(ConfigError) as caught:
        read_config(folder / name)
    assert str(caught.value) in (f"{folder / name}: {message}", f"{folder / name}:{message}")
    assert caught.value.exit_code == 2


# Files with a mistake ---------------------------------------------------------------------

CATALOGUE = Path(__file__).with_name("faulty.txt").read_text(encoding="utf-8").split("-----\n")
SYNTAX = {  # of these the first one alone is told
    config_text(inputs='race = ["a"]\nsex = ["x"]\nrace = [\n"b"\n]'): (
        "8: the key 'inputs.race' appears twice, first in line 6; remove or rename one"
    ),
    config_text("kind = python"): (
        "3: at column 8 there is no value; "
        'text goes in quotes, as in name = "text"; true and false are written small'
    ),
    config_text(inputs='race = ["green]'): (
        "6: at column 16 text is not closed on its line; end it with a quote"
    ),
    config_text(inputs='race ["green"]'): (
        '6: at column 6 there is no = after the key; write it as name = "value"'
    ),
    config_text(inputs="age = { min = 0, max = 99999999999999999999 }"): (
        "6: inputs.age: max must be a whole number, got 99999999999999999999; "
        "write one of at most 18 digits"
    ),
    "a = " + "9" * 5_000: ("1: a whole number has more digits than Python reads; write it as 1e30"),
    "a = " + "[" * 100_000: "1: lists or tables are nested too deeply; nest fewer",
    config_text(rest=f"[{'.'.join('a' * 20_000)}]"): (
        "1: lists or tables are nested too deeply; nest fewer"
    ),
}


def expected(text: str) -> list[str]:
    """What stands behind the faulty lines of a file, each with the number of its line.

    #! is for mistakes in shape, which the schema for editors finds as well, #~ for others.
    """
    lines = enumerate(text.splitlines(), 1)
    return [
        f"{number}: {said}" for number, line in lines for said in re.split("  #[!~] ", line)[1:]
    ]


@pytest.mark.parametrize("number", range(len(CATALOGUE)))
def test_every_faulty_line_gets_exactly_the_messages_behind_it(number: int) -> None:
    said = messages(CATALOGUE[number])
    assert sorted(said) == sorted(expected(CATALOGUE[number]))
    lines = [int(message.partition(":")[0]) for message in said]
    assert lines == sorted(lines)


def test_what_is_no_toml_gets_exactly_this_message() -> None:
    assert {text: messages(text) for text in SYNTAX} == {t: [said] for t, said in SYNTAX.items()}


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
WORDS_OF_PYDANTIC = ("Input should", "type=", "union", "Field required", "Extra inputs", "NoneType")


DATA = tomllib.loads(DESIGN)
FULL = DATA | {
    "inputs": DATA["inputs"] | {"flat": [1]},
    "outputs": {"limit": {"at": "/limit", "min": 0, "max": 9, "favourable": ["yes"]}},
    "profile": {"data": "people.csv"},
    "accepted": [{"against": ["race"], "reason": "why", "until": date(2027, 3, 31)}],
}
OF_SEVERAL_KEYS = {"output", "both-given", "no-model", "nothing-to-check", "threshold"}
PLACES = [(), *sorted(paths_of(FULL), key=str)]


def changed(data: Any, edits: list[tuple[KeyPath, str | None, Any]]) -> Any:
    """A copy with something else at some paths, or at a new key of the table there."""
    data = copy.deepcopy(data)
    for path, key, new in edits:
        *around, last = (*path, *([] if key is None else [key])) or ("version",)
        place = data
        with suppress(KeyError, IndexError, TypeError):  # an earlier change took it away
            for part in around:
                place = place[part]
            if isinstance(place, dict | list):
                place[last] = new
    return data


edits = st.tuples(st.sampled_from(PLACES), names | st.none(), anything)


@settings(max_examples=150, deadline=None)
@given(st.lists(edits, min_size=1, max_size=3))
@example([(("checks", 0), "output", 5)])
def test_changed_file_is_read_or_refused_with_remedies(edits: list[Any]) -> None:
    data = changed(FULL, edits)
    complaints = find_complaints(data)
    if any(each.mistake.code not in OF_SEVERAL_KEYS for each in complaints):
        assert not VALIDATOR.is_valid(data)
    try:
        _Reader(data, _Findings("themis.toml", "", ())).read(Path("themis.toml"))
    except ConfigError as error:
        for mistake in error.mistakes:
            assert mistake.remedy, mistake
            assert not any(word in str(mistake) for word in WORDS_OF_PYDANTIC)


# The JSON Schema --------------------------------------------------------------------------


def test_schema_for_editors_accepts_the_example_and_says_what_keys_mean() -> None:
    schema = format_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    VALIDATOR.validate(tomllib.loads(DESIGN))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == "themis.toml"
    for table in [schema, *schema["$defs"].values()]:
        assert table["description"]
        for name, key in table["properties"].items():
            assert name == "kind" or key["description"], name


TABLE = re.compile(r"(?:inputs\.|checks(?=\[))?[^.:]+")  # one of the inputs or checks, or a section


@pytest.mark.parametrize("number", range(len(CATALOGUE)))
def test_schema_for_editors_rejects_the_tables_that_are_wrong_in_shape(number: int) -> None:
    errors = VALIDATOR.iter_errors(tomllib.loads(CATALOGUE[number]))
    rejected = {TABLE.match(f"{spell_path(tuple(each.absolute_path))}:") for each in errors}
    shape = re.findall("  #! (.*?)(?=  #|\n)", CATALOGUE[number])
    at_the_top = [each for each in shape if re.match(r"\w+: (is missing|there is no such)", each)]
    told = {TABLE.match(each) for each in shape if each not in at_the_top}
    assert {each and each[0] for each in rejected} == {
        *(each and each[0] for each in told),
        *([None] if at_the_top else []),
    }


# Lines ------------------------------------------------------------------------------------


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
        check_paths(lines.keys(), data)
    assert all(1 <= line <= text.count("\n") + 1 for line in places)


# What only shows when it is used ----------------------------------------------------------
FUNCTION = 'kind = "python"\nfunction = "os:getcwd"'
DATA = f"{FUNCTION}\n[profile]\ndata"


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        ('kind = "python"\nfunction = "not_there:decide"', "subject.function: there is no"),
        ('kind = "command"\ncommand = ["not-there"]', "subject.command: there is no program"),
        ('kind = "worker"\ncommand = ["not-there"]', "subject.command: there is no program"),
        ('kind = "http"\nurl = "http://localhost/{age}"', "subject.url: "),
        ('kind = "http"\nurl = "http://[::1:80/ok"', "subject.url: "),
        ('kind = "model"\nfile = "model.onnx"', "subject.file: there is no file"),
        (f'{DATA} = "nobody.csv"', "profile.data: nobody.csv: there is no such file"),
        (
            f'{DATA} = "people.csv"\nweights = "many"',
            "profile.weights: people.csv has no column 'many'",
        ),
        (
            f'{FUNCTION}\n[outputs.limit]\ndistance = "not_there:f"',
            "outputs.limit.distance: there is no module",
        ),
    ],
)
@pytest.mark.parametrize("name", ["themis.toml", "pyproject.toml"])
def test_what_can_not_be_used_has_its_line(subject: str, said: str, name: str) -> None:
    Path("people.csv").write_text("race\n1\n2\n")
    text = f"version = 1\n[subject]\n{subject}\n[inputs]\nrace = [1, 2]\n"
    if name == "pyproject.toml":
        text = "[tool.themis]\n" + text.replace("\n[", "\n[tool.themis.")
    Path(name).write_text(text)
    key = said.partition(":")[0].rpartition(".")[2]
    (line,) = [n for n, each in enumerate(text.split("\n"), 1) if each.startswith(f"{key} =")]
    with pytest.raises(RequestError) as caught:
        Audit.from_file(Path(name))
    assert str(caught.value).startswith(f"{name}:{line}: {said}")
