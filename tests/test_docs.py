"""Does the documentation tell the truth? Every snippet is run, every shown output compared.

Each page is a session in an empty folder; its fenced blocks are taken from top to bottom.

* ```` ```console ```` and ```` ```bash ````: lines that start with `$ ` are commands, the lines
  below one are its output. In ```` ```sh ```` every line is a command.
* ```` ```python ````: run; all of a page share their names.
* ```` ```toml ````: a configuration, or a part of one that becomes whole with BASE.

Comments before a block say more about it: `<!-- file: loan.py -->` (write the block to this
file), `<!-- examples: chat -->` (copy these folders of examples), `<!-- output -->` (this is what
the python block before printed), `<!-- exit: 2 -->` (its commands end with this code),
`<!-- needs: cc -->` (left out where there is no such program or package; the test is then skipped
with the reason). Files may be of any language. In an output, `…` stands for any text, and alone
on a line for any lines. What stands between `<!-- generated: name -->` and `<!-- end -->` comes
from GENERATED.

`python -m tests.test_docs` rewrites outputs and generated parts that are no longer true.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import io
import itertools
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Literal, get_args, get_origin
from urllib.parse import unquote

import pytest
import typer
import yaml
from typer.testing import CliRunner

import themis
from tests import diagrams
from tests.browser import Browser, opened
from tests.test_architecture import rooms_table
from tests.web.serving import until
from themis.cli import app
from themis.config import format as file_format
from themis.config import tables
from themis.config.reader import read_config
from themis.errors import ThemisError
from themis.inputs.tables import rows_of
from themis.results.saved import result_schema
from themis.show.reports.formats import COLUMNS, FORMATS
from themis.show.words.notes import known_codes
from themis.subjects.http.subject import HttpSubject
from themis.subjects.loading import subject_from_options
from themis.subjects.processes.command import CommandSubject
from themis.subjects.processes.worker import WorkerSubject

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md", *DOCS]
OTHERS = ("examples/**/*.md", "benchmarks/*.md", "studies/*/README.md", "tests/guarantees.md")
LINKED = [*PAGES, ROOT / "CHANGELOG.md", *(path for each in OTHERS for path in ROOT.glob(each))]
SCRIPTS = (ROOT / "examples").glob("*.py")
EXAMPLES = sorted(each for each in SCRIPTS if each.stem != "gallery")  # a test of its own

COMMANDS = ("console", "bash", "sh")
SHOWN = ("text", "json", "yaml")  # read, not run
ONLY_LOOKED_UP = ("make", "pip", "git")  # commands that a test can't afford or must not run
BASE = {
    "version": "version = 1\n",
    "subject": '[subject]\nkind = "python"\nfunction = "loan:decide"\n',
    "inputs": (
        '[inputs]\nrace = ["green", "purple"]\nsex = ["female", "male"]\n'
        "age = { min = 18, max = 80 }\nincome = { min = 0, max = 200000, step = 1000 }\n"
    ),
}

LONG = "command-line formats language-models models pytest python-api realistic-inputs search"
LONG += " subjects tutorial"

ids = [str(page.relative_to(ROOT)) for page in PAGES]


# --- pages and their blocks ---------------------------------------------------------------

FENCE = re.compile(
    r"^(?P<comments>(?:<!--[^\n]*-->\n)*)^```(?P<language>\w*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
COMMENT = re.compile(r"<!-- (?P<key>[\w ]+?)(?:: (?P<value>.*?))? -->")
# What a run that lasts says of itself in a log: on a busy machine each may last.
PROGRESS = re.compile(r"^.* · [\d,]+ executions · \d+ s\b.*\n", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, where that begins, what the comments say."""

    language: str
    body: str
    start: int
    line: int
    notes: dict[str, str]


@dataclass(frozen=True)
class Difference:
    """An output that a page shows wrongly: what stands from `start` on, and what is true."""

    line: int
    start: int
    shown: str
    actual: str

    def __str__(self) -> str:
        return f"line {self.line} shows\n{self.shown}\nbut it is\n{self.actual}"


def blocks_of(text: str) -> Iterator[Block]:
    for found in FENCE.finditer(text):
        notes = {each["key"]: each["value"] or "" for each in COMMENT.finditer(found["comments"])}
        start = found.start("body")
        line = text.count("\n", 0, start)
        yield Block(found["language"], found["body"], start, line, notes)


def matches(shown: str, actual: str) -> bool:
    """Whether an output is as shown; `…` stands for any text, alone on a line for any lines.

    A time behind a dot may stand on a line of its own or not: how long it is depends on the time.
    """
    parts = []
    for line in shown.rstrip().replace("\n· …", " · …").splitlines():
        if line.strip() == "…":
            parts.append(r"(?:.*\n)*?")
        elif line.endswith(" · …"):
            parts.append(re.escape(line.removesuffix(" · …")).replace("…", ".*") + r"\s· .*\n")
        else:
            parts.append(re.escape(line.rstrip()).replace("…", ".*") + r"[ ]*\n")
    whole, printed = re.compile("".join(parts) + r"\n*"), actual.rstrip() + "\n"
    return any(map(whole.fullmatch, (printed, PROGRESS.sub("", printed))))


# --- running a page -----------------------------------------------------------------------


@dataclass
class Session:
    """One page, run from top to bottom in a folder of its own."""

    folder: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__page__"})
    printed: str | None = ""  # of the last block of Python; None where that was not run
    differences: list[Difference] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)  # programs that blocks need

    def run(self, text: str) -> None:
        for block in blocks_of(text):
            with self._in_folder():
                try:
                    self._take(block)
                except (Exception, SystemExit) as error:
                    raise AssertionError(f"line {block.line}: {error!r}\n{block.body}") from error

    def _take(self, block: Block) -> None:
        needed = block.notes.get("needs")
        if needed is not None and not is_there(needed):
            self.missing.add(needed)
            self.printed = None if block.language == "python" else self.printed
            return
        for name in block.notes.get("examples", "").split():
            shutil.copytree(ROOT / "examples" / name, Path("examples") / name)
        if "file" in block.notes:
            path = Path(block.notes["file"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.body, encoding="utf-8")
        if "output" in block.notes:
            if self.printed is not None:
                self._compare(block, block.start, block.body, self.printed)
        elif block.language in COMMANDS:
            self._run_commands(block)
        elif block.language == "python" and "file" not in block.notes:
            self._run_python(block)
        elif block.language == "toml":
            check_toml(block.body, self.folder)
        elif block.language == "json":
            json.loads(block.body)
        elif block.language == "yaml":
            yaml.safe_load(block.body)
        known = (*COMMANDS, *SHOWN, "python", "toml")
        assert block.language in known or "file" in block.notes, (
            f"line {block.line}: a block of {block.language!r} is not tested: choose a language"
        )

    def _run_python(self, block: Block) -> None:
        code = compile("\n" * block.line + block.body, "page", "exec")
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(code, self.names)
        self.printed = output.getvalue()

    def _run_commands(self, block: Block) -> None:
        prompt = "" if block.language == "sh" else "$ "
        commands: list[tuple[str, int]] = []  # each with the place behind it
        outputs: list[str] = []
        place = block.start
        for line in block.body.splitlines(keepends=True):
            place += len(line)
            if line.startswith(prompt):
                commands.append((line.removeprefix(prompt), place))
                outputs.append("")
            else:
                outputs[-1] += line
        for (command, behind), shown in zip(commands, outputs, strict=True):
            self._check_command(block, command, shown, behind)

    def _check_command(self, block: Block, command: str, shown: str, at: int) -> None:
        words = shlex.split(command, comments=True)
        if not words:
            return
        if words[0] in ONLY_LOOKED_UP or (words[0] == "python" and "benchmarks" in words[1]):
            look_up(words)
            return
        actual, code = execute(command, words)
        expected = int(block.notes.get("exit", "0"))
        assert code == expected, f"{command.strip()!r} ended with {code}:\n{actual}"
        if shown:
            self._compare(block, at, shown, actual)

    def _compare(self, block: Block, start: int, shown: str, actual: str) -> None:
        if not matches(shown, actual):
            line = block.line + block.body.count("\n", 0, max(start - block.start, 0))
            self.differences.append(Difference(line, start, shown, actual))

    @contextlib.contextmanager
    def _in_folder(self) -> Iterator[None]:
        """The page's folder as the place to be; its modules are read anew each time."""
        kept = sys.path.copy(), sys.dont_write_bytecode, os.environ.copy()
        sys.path.insert(0, str(self.folder))
        sys.dont_write_bytecode = True
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        os.environ |= {"COLUMNS": "80", "NO_COLOR": "1", "PATH": path, "CHAT_SEED": "1"}
        os.environ["PYTEST_PLUGINS"] = "themis.pytest_plugin"  # the package may not be installed
        try:
            with contextlib.chdir(self.folder):
                yield
        finally:
            sys.path[:], sys.dont_write_bytecode = kept[0], kept[1]
            os.environ.clear()
            os.environ.update(kept[2])
            for name, module in list(sys.modules.items()):
                if str(getattr(module, "__file__", None) or "").startswith(str(self.folder)):
                    del sys.modules[name]


def is_there(needed: str) -> bool:
    """Whether there is such a program, or such a Python package."""
    return shutil.which(needed) is not None or importlib.util.find_spec(needed) is not None


def execute(command: str, words: list[str]) -> tuple[str, int]:
    """What a command prints on both streams, and its exit code; `themis` in this process."""
    if words[0] == "themis" and not set(command) & set("|><&;"):
        result = CliRunner().invoke(app, words[1:], prog_name="themis")
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.output, result.exit_code
    done = subprocess.run(
        ["bash", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout, done.returncode


def look_up(words: list[str]) -> None:
    """Whether a command that is not run here could be: its target or its file is there."""
    if words[0] == "make":
        makefile = (ROOT / "Makefile").read_text()
        for target in words[1:]:
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"no target {target}"
    elif words[0] == "python":
        assert (ROOT / words[1]).is_file(), f"there is no {words[1]}"
    elif words[:2] == ["pip", "install"]:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        for extra in re.findall(r"\[([\w,]+)\]", " ".join(words)):
            assert set(extra.split(",")) <= set(project["optional-dependencies"]), extra


def check_toml(text: str, folder: Path) -> None:
    """Read a configuration, or a part of one, which BASE makes whole."""
    data = tomllib.loads(text)
    before = "" if "version" in data else BASE["version"]
    behind = "".join(BASE[key] for key in ("subject", "inputs") if key not in data)
    path = folder / "part.toml"
    path.write_text(f"{before}{text}\n{behind}", encoding="utf-8")
    read_config(path)
    path.unlink()


@pytest.mark.some_slow(core=2)
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name, marks=pytest.mark.slow if page.stem in LONG.split() else [])
        for page, name in zip(PAGES, ids, strict=True)
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of libraries
def test_every_snippet_works_and_shows_what_happens(page: Path, tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.run(page.read_text(encoding="utf-8"))
    assert not session.differences, "\n\n".join(
        [
            *map(str, session.differences),
            f"If that is right: python -m tests.test_docs rewrites {page.name}",
        ]
    )
    if session.missing:
        pytest.skip(f"some blocks need {', '.join(sorted(session.missing))}; all others are right")


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.name)
def test_every_example_runs(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip(), "an example says what it found"


@pytest.mark.parametrize("config", sorted((ROOT / "examples").glob("*/themis.toml")), ids=str)
def test_every_example_file_can_be_measured(config: Path) -> None:
    if read_config(config).subject.kind not in ("python", "model"):
        return  # it needs a program or a service that may not be here
    result = CliRunner().invoke(app, ["score", str(config), "--quiet"])
    assert result.exit_code == 0, result.output


def test_an_output_that_is_not_shown_truly_is_noticed(tmp_path: Path) -> None:
    session = Session(tmp_path)
    for shown, actual in itertools.product(("a · …\n", "a\n· …\n"), ("a · 0.1 s\n", "a\n· 1 s\n")):
        assert matches(shown, actual)
        assert not matches(shown, actual.replace("a", "b"))
    session.run("```console\n$ themis --version\nthemis 0.0\n$ themis --version\nthemis …\n```\n")
    assert [each.shown for each in session.differences] == ["themis 0.0\n"]


def test_a_block_that_needs_what_is_not_here_is_left_out_with_its_output(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.run("```python\nprint(1)\n```\n")
    session.run("<!-- needs: no-such-program -->\n```python\nprint(2)\n```\n")
    session.run("<!-- output -->\n```text\n2\n```\n")
    assert session.missing == {"no-such-program"}
    assert not session.differences


def test_a_snippet_that_fails_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="line 1: ZeroDivisionError"):
        Session(tmp_path).run("```python\n1 / 0\n```\n")


# --- generated parts ----------------------------------------------------------------------

GENERATED_PART = re.compile(
    r"(?<=<!-- generated: )(?P<name>[\w-]+) -->\n(?P<body>.*?)(?=<!-- end -->)", re.DOTALL
)


def file_reference() -> str:
    """Every key of `themis.toml` that this version can use, as tables."""
    parts = [
        _table("The top of the file", file_format.File),
        _table("`[subject]`, all kinds", tables.Subject),
    ]
    for kind in runnable_kinds():
        model = file_format.SUBJECTS[kind]
        common = (*tables.Subject.model_fields, "kind")
        parts.append(_table(f'`[subject]` with `kind = "{kind}"`', model, without=common))
        inner = {key: model.inner(key) for key in model.model_fields}
        parts += [_table(f"`[subject.{key}]`", each) for key, each in inner.items() if each]
    characteristic = tuple(file_format.Characteristic.model_fields)
    parts += [
        _table("`[inputs]`: values or numbers", file_format.Characteristic),
        _table("`[inputs]`: a list of values", file_format.ValuesInput, without=characteristic),
        _table("`[inputs]`: a range of numbers", file_format.RangeInput, without=characteristic),
        _table("`[inputs]`: texts", file_format.DocumentsInput),
        _table("`[inputs]`: names", file_format.NamesInput),
        _table("`[outputs.NAME]`", file_format.OutputTable),
        _table("`[run]`", file_format.RunTable),
        _table("`[profile]`", file_format.Profile),
        _table("`[[checks]]`", file_format.CheckTable),
        _table("`[[accepted]]`", file_format.AcceptedTable),
    ]
    return "\n".join(parts)


def _table(title: str, model: Any, without: tuple[str, ...] = ()) -> str:
    lines = [f"### {title}", "", "| key | default | meaning |", "|---|---|---|"]
    for name, info in model.model_fields.items():
        if name in without:
            continue
        default = "required" if info.is_required() else _code(_default(model, name))
        meaning = f"{info.description}{_choices(info.annotation, info.description)}"
        if default in ("required", "–", "`[]`"):
            meaning += _example(info.examples)
        lines.append(f"| `{info.alias or name}` | {default} | {meaning} |")
    return "\n".join(lines) + "\n"


def _example(examples: list[Any] | None) -> str:
    """The first example, unless it is a number."""
    if not examples or isinstance(examples[0], int | float):
        return ""
    return f": {_code(examples[0])}"


def _choices(annotation: Any, named: str) -> str:
    """The values that a key may have, where they are few and its meaning does not name them."""
    known = [each for each in _literals(annotation) if isinstance(each, str)]
    if len(known) < 2 or all(each in named for each in known):
        return ""
    return f" ({', '.join(map(_code, known[:-1]))} or {_code(known[-1])})"


def _literals(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [each for part in get_args(annotation) for each in _literals(part)]


CLASSES = {"command": CommandSubject, "worker": WorkerSubject, "http": HttpSubject}


def _default(model: Any, name: str) -> Any:
    """What holds without the key; for subjects outside of this process, their class knows."""
    own = [CLASSES[kind] for kind in CLASSES if file_format.SUBJECTS[kind] is model]
    if own and name in (parameters := inspect.signature(own[0]).parameters):
        default = parameters[name].default
        return default if default or default is False else None
    info = model.model_fields[name]
    return None if info.default_factory or info.default == "" else info.default


def _code(value: Any) -> str:
    """A value as TOML has it."""
    if value is None:
        return "–"
    if isinstance(value, dict):
        inner = ", ".join(f"{key} = {_code(each).strip('`')}" for key, each in value.items())
        return f"`{{ {inner} }}`"
    if isinstance(value, date):
        return f"`{value.isoformat()}`"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return f"`[{', '.join(_code(each).strip('`') for each in value)}]`"
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def runnable_kinds() -> list[str]:
    """The kinds of subjects that the format knows and this version can run."""
    return [kind for kind in file_format.SUBJECTS if not _is_refused(kind)]


def _is_refused(kind: str) -> bool:
    options = {"function": "json:dumps", "object": "json:dumps", "command": ["true"]}
    options |= {"url": "http://localhost:1", "prompt": {"user": "{input}"}}
    try:
        subject_from_options(kind, options, themis.Schema(race=["green", "purple"]), ROOT)
    except ThemisError as error:
        return "can't run" in str(error)
    except Exception:
        return False
    return False


def formats_table() -> str:
    """The formats of `themis report`."""
    lines = ["| format | file | what it is |", "|---|---|---|"]
    for name, each in FORMATS.items():
        file = f"`result{each.suffix}`" if each.suffix else "standard output"
        lines.append(f"| `{name}` | {file} | {each.about} |")
    return "\n".join(lines) + "\n"


def score_columns() -> str:
    """The columns of the scores as a table."""
    return f"Columns: {', '.join(f'`{name}`' for name in COLUMNS)}.\n"


METHODS = ("causal", "group", "excess", "score", "search", "search_all", "apparent", "everything")
METHODS += ("search_plan", "replay", "failing")


def audit_methods() -> str:
    """The methods of an audit with their arguments, and the first sentence on each."""
    methods = [getattr(themis.Audit, each) for each in METHODS]
    first = [(inspect.getdoc(each) or "").partition("\n")[0] for each in methods]
    return "".join(
        f"* `{_call(each)}`: {text}\n" for each, text in zip(methods, first, strict=True)
    )


def _call(method: Callable[..., Any]) -> str:
    """A method with its arguments; of those that may be left out, a sign of equality tells."""
    signs = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    shown = [
        f"{signs.get(each.kind, '')}{name}{'' if each.default is each.empty else '='}"
        for name, each in inspect.signature(method).parameters.items()
        if name != "self"
    ]
    return f"{method.__name__}({', '.join(shown)})"


GENERATED: dict[str, Callable[[], str]] = {
    "audit-methods": audit_methods,
    "file-reference": file_reference,
    "formats": formats_table,
    "score-columns": score_columns,
    "rooms": rooms_table,
}


def generated_differences(text: str) -> list[Difference]:
    differences = []
    for part in GENERATED_PART.finditer(text):
        actual = f"\n{GENERATED[part['name']]()}\n"
        if part["body"] != actual:
            line = text.count("\n", 0, part.start()) + 1
            differences.append(Difference(line, part.start("body"), part["body"], actual))
    return differences


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_generated_parts_are_up_to_date(page: Path) -> None:
    assert not generated_differences(page.read_text(encoding="utf-8")), (
        "run: python -m tests.test_docs"
    )


# --- what pages must mention --------------------------------------------------------------


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_every_key_of_the_file_format_is_in_the_reference() -> None:
    text = page("the-file.md")
    models = [file_format.File, file_format.RunTable, file_format.Profile, file_format.CheckTable]
    models += [file_format.AcceptedTable, *file_format.INPUTS.values()]
    models += [file_format.SUBJECTS[kind] for kind in runnable_kinds()]
    names = {name for model in models for name in model.keys()}  # noqa: SIM118
    assert not {name for name in names if f"`{name}`" not in text and f"`{name} " not in text}


def test_every_command_has_a_section() -> None:
    group = typer.main.get_command(app)
    commands = group.commands  # type: ignore[attr-defined]
    headings = re.findall(r"^## themis (\w+)$", page("command-line.md"), re.MULTILINE)
    assert sorted(headings) == sorted(name for name, each in commands.items() if not each.hidden)


def test_every_public_name_is_in_the_python_guide() -> None:
    text = page("python-api.md")
    names = [name for name in themis.__all__ if not name.startswith("_")]
    assert not [name for name in names if not re.search(rf"`(themis\.)?{name}\b", text)]


OPEN = ("data", "failures", "schema", "source", "subject", "timing")  # mappings without a schema
SAID_ONCE = re.compile(  # at the beginning of the page, or as a table of their own
    r"[._](low|high)$|(scores\[\]|search)\.account\.|_rate\.\w+$|(precision|accuracy)\.\w+$"
    r"|(within|across|gap)\.score$|redrawn\.|versions\.|(notes|reasons)\[\]\.(code|values)$"
    r"|^report\.|^search\[\]\."
)


def fields_of(schema: Any, kinds: Any, path: str = "") -> Iterator[str]:
    """Every field of what a JSON Schema describes, as `scores[].against`."""
    if "$ref" in schema:
        yield from fields_of(kinds[schema["$ref"].rpartition("/")[2]], kinds, path)
    for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from fields_of(each, kinds, path)
    if "items" in schema:
        yield from fields_of(schema["items"], kinds, f"{path}[]")
    for key, each in schema.get("properties", {}).items():
        inner = f"{path}.{key}" if path else key
        yield inner
        yield from fields_of(each, kinds, inner)


FIELDS = re.compile(r"^\* ((?:`[\w\[\].]+`(?:, )?)+): ", re.MULTILINE)


def documented_fields() -> set[str]:
    items = FIELDS.findall(page("result-json.md"))
    named = [re.findall(r"[\w\[\].]+", item) for item in items]
    return {path for names in named for path in itertools.accumulate(names, beside)}


def beside(before: str, name: str) -> str:
    """The path that a name of an item stands for: `.name` is a field beside the one before."""
    return before.rpartition(".")[0] + name if name.startswith(".") else name


def test_every_field_of_the_json_result_is_documented_and_no_other() -> None:
    schema = result_schema()
    typed = {each for each in fields_of(schema, schema["$defs"]) if not SAID_ONCE.search(each)}
    of_types = {each for each in documented_fields() if each.partition(".")[0] not in OPEN}
    assert of_types | {*OPEN} == typed


def test_the_keys_of_mappings_without_a_schema_are_documented() -> None:
    schema = themis.Schema(race=["green", "purple"], savings=range(5, 9)).where("savings != 5")
    shell = 'test "$2" = 7 && exit 3; test "$1" = green && echo 1 || echo 0'
    command = CommandSubject(schema, ["sh", "-c", shell, "decide"])
    rows = {"race": ["green", "blue", "green"], "savings": [6, 6, 8], "count": [1, 0, 1]}
    audit = themis.Audit(command, schema, max_failures=0.5)
    data = audit.apparent(rows_of(rows), "race", weights="count", unknown="drop").to_dict()
    (failed,) = data["failures"].values()
    keys = {f"{name}.{key}" for name in OPEN if name != "failures" for key in data[name] or ()}
    keys |= {f"failures.KIND.{key}" for key in failed}
    keys |= {f"data.reasons[].{key}" for each in data["data"]["reasons"] for key in each}
    assert keys <= documented_fields()


@pytest.mark.slow
def test_the_tables_of_coverage_are_what_the_benchmark_computes() -> None:
    spec = importlib.util.spec_from_file_location("coverage_bench", ROOT / "benchmarks/coverage.py")
    assert spec is not None
    assert spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    sys.modules["coverage_bench"] = benchmark  # dataclasses look it up
    spec.loader.exec_module(benchmark)
    rows = re.findall(
        r"^\| (\d\d)%, ±0.05 \| ([\d.]+) \| (.*?) \| (.*?) \|$",
        page("how-it-works.md") + (ROOT / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert len(rows) > 9
    for percent, true_score, certified, published in rows:
        confidence, p = int(percent) / 100, float(true_score)
        ours = benchmark.exact_certified(benchmark.ProportionRule(confidence, 0.05), p)
        paper = benchmark.exact_paper(benchmark.PaperRule(confidence, 0.05), p)
        for shown, cell in ((certified, ours), (published, paper)):
            assert shown.replace("*", "") == f"{cell.coverage:.3f} / {cell.executions:,.0f}"


# --- links --------------------------------------------------------------------------------

LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")


def anchors_of(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MkDocs make them."""
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each).strip().lower().replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", LINKED, ids=lambda path: path.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for link in LINK.finditer(text):
        target, _, anchor = unquote(link["target"]).partition("#")
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{link[0]} leads nowhere"
        assert not anchor or anchor in anchors_of(path), f"{link[0]}: no such heading"


def test_the_explanation_of_every_code_names_a_page_that_exists() -> None:
    assert {each.page for each in known_codes()} <= {path.name for path in DOCS}


@pytest.mark.parametrize("page", LINKED, ids=lambda path: path.name)
def test_every_picture_is_there(page: Path) -> None:
    pictures = r"(?:!\[[^\]]*\]\(|\b(?:src|srcset)=\")([^\s)\"]+)"
    for shown in re.finditer(pictures, page.read_text(encoding="utf-8")):
        assert (page.parent / shown[1]).is_file(), shown[0]


def test_every_command_on_the_picture_of_commands_can_be_given_like_that() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for _, line in diagrams.WHEN:
        name, *arguments = shlex.split(line)[1:]
        commands[name].make_context(name, arguments)  # raises an error of usage


def test_the_pages_of_the_site_link_only_to_each_other() -> None:
    for path in DOCS:
        for link in LINK.finditer(FENCE.sub("", path.read_text(encoding="utf-8"))):
            target = link["target"].partition("#")[0]
            assert not target.startswith(".."), f"{path.name}: {target} is not part of the site"


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r"([\w-]+\.md)", (ROOT / "mkdocs.yml").read_text())
    assert sorted(listed) == [path.name for path in DOCS]


@pytest.mark.slow
def test_the_site_is_built_without_warnings_and_fetches_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    made = sorted(tmp_path.glob("*.html"))
    assert len(made) == len(DOCS) + 1  # and one for what is not found
    for page in made:
        fetched = re.findall(
            r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=\"?(http[^\" >]*)", page.read_text()
        )
        assert fetched == [], page.name


@pytest.mark.slow
def test_the_search_of_the_site_needs_no_server(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, check=True)
    look_for = """(() => { const field = document.querySelector(".md-search__input");
        field.focus(); field.value = "placebo";
        for (const each of ["input", "keyup"]) field.dispatchEvent(new Event(each)); })()"""
    found = "document.querySelector('.md-search-result__list').innerText.includes('placebo score')"
    with Browser() as browser, opened(browser, tmp_path / "index.html") as page:
        page.evaluate(look_for)
        until(lambda: page.evaluate(found))
        assert page.messages == []
        assert all(each.startswith(("file:", "data:")) for each in page.requests)


def test_the_citation_and_the_changelog_have_the_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == themis.__version__
    assert f"## {themis.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_no_page_names_a_place_outside_the_repository() -> None:
    for path in LINKED:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(?<![\w.])/work\b|/home/|/tmp/|\.\./shared", text), path.name


def test_every_test_that_a_page_names_exists() -> None:
    named = {
        (path.name, *found.groups())
        for path in LINKED
        for found in re.finditer(r"`(tests/[\w/]+\.py)::(\w+)`", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 10
    for page, file, name in named:
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), (
            f"{page}: {file}::{name}"
        )


# --- rewriting ----------------------------------------------------------------------------


def rewrite(path: Path) -> None:
    """Put in what is true: outputs with their times as `…`, and the generated parts."""
    for pass_ in (generated_differences, snippet_differences):
        text = path.read_text(encoding="utf-8")
        for each in sorted(pass_(text), key=lambda each: -each.start):
            actual = each.actual
            if pass_ is snippet_differences:
                actual = re.sub(r"(< )?\d[\d.]* (s|ms|µs)\b", "…", actual).rstrip() + "\n"
            if any(line.strip() == "…" for line in each.shown.splitlines()):
                print(f"{path.name}:{each.line}: an excerpt, which is left to you, of\n{actual}")
                continue
            print(f"{path.name}:{each.line}: rewritten")
            text = text[: each.start] + actual + text[each.start + len(each.shown) :]
        path.write_text(text, encoding="utf-8")


def snippet_differences(text: str) -> list[Difference]:
    with tempfile.TemporaryDirectory() as folder:
        session = Session(Path(folder).resolve())
        session.run(text)
    return session.differences


if __name__ == "__main__":
    for each in PAGES:
        rewrite(each)
