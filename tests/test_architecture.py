"""The rooms of the program: who may import whom, and what is public.

ROOMS is the one table of it. A package may import the packages that its row names, and the modules
of the root that everybody may (FREE). Imports inside functions and for type checking count like all
others; inside a package the modules must not form a cycle.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import themis
from themis.subjects.functions import RowFunction
from themis.subjects.http.subject import HttpSubject
from themis.subjects.models import Model
from themis.subjects.processes.command import CommandSubject
from themis.subjects.processes.worker import WorkerSubject

SOURCE = Path(themis.__file__).parent

FREE = {"_version", "errors", "keys", "settings", "events"}  # they import nothing but each other

ROOMS: dict[str, tuple[str, str]] = {
    # package: (what it is for, packages that it may import)
    "statistics": ("counts in, ends and decisions out; knows nothing else of the program", ""),
    "inputs": ("what an input is, which there are, how they are drawn; people given as rows", ""),
    "subjects": ("the software under test, and what its answers mean", "inputs"),
    "results": ("what was measured: frozen, saved, judged, compared", "inputs statistics"),
    "engine": ("executes, counts, remembers, writes down", "inputs subjects"),
    "scores": (
        "a table and a stopping rule make a score, and its explanation",
        "inputs statistics subjects results engine",
    ),
    "search": (
        "which minimal sets are above a threshold",
        "inputs statistics subjects results engine scores",
    ),
    "config": ("themis.toml in, and drafts of it out", "inputs subjects results"),
    "audit": (
        "wires one run: one command makes one result",
        "inputs statistics subjects results engine scores search config",
    ),
    "show": ("results as sentences, terminal pages, notebooks, documents", "inputs results"),
    "web": ("the page: a server for one user on this machine", "inputs results engine config show"),
    "cli": (
        "the command line; the only place that prints",
        "inputs results engine config audit show web",
    ),
    "testing": ("the pytest plugin", "results config audit show"),
}
ALONE = {"worker", "__main__", "pytest_plugin", "themis"}  # modules of the root beside FREE
BOUND = 20  # files in one folder

PUBLIC = """
Audit CausalScore ColumnsWarning ConfigError DiscriminationError Errors ExcessScore Group
GroupScore Harm InconclusiveError InconclusiveWarning InputTable Integers LimitError Mistake
MistakesError Outcomes Output Plot Progress Proxy Reals Region Replay ReplayedSet ReplayedTest
RequestError Result RowsWarning Schema SchemaError SearchProgress SearchResult SubjectError
TestedSet ThemisError Values Witness __version__ batch derived documents keywords model names
read_result scorer to_frame
"""


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by its name without `themis.`; the package itself is `themis`."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        found[name or "themis"] = path
    return found


def imports_of(path: Path) -> Iterator[str]:
    """The modules of the package that a file imports, wherever in it."""
    known = modules()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path.name}:{node.lineno}: write imports in full: themis.…"
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [n if _short(n) in known else str(node.module) for n in inner]
        else:
            continue
        for name in names:
            if name == "themis" or name.startswith("themis."):
                yield _short(name)


def _short(name: str) -> str:
    return name.removeprefix("themis.")


def _room(module: str) -> str:
    return module.partition(".")[0]


def test_every_module_is_in_a_room_and_rooms_are_listed_in_the_direction_of_the_data() -> None:
    lost = {each for each in modules() if _room(each) not in {*ROOMS, *FREE, *ALONE}}
    assert not lost, "give it a room of ROOMS, in tests/test_architecture.py"
    assert ROOMS.keys() <= modules().keys()
    order = list(ROOMS)
    for room, (_, allowed) in ROOMS.items():
        assert all(order.index(each) < order.index(room) for each in allowed.split()), room


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_only_what_their_row_allows(room: str) -> None:
    allowed = {room, *ROOMS[room][1].split(), *FREE}
    wrong = {
        f"{module} -> {name}"
        for module, path in modules().items()
        if _room(module) == room
        for name in imports_of(path)
        if _room(name) not in allowed
    }
    assert not wrong, "move what it needs down, hand it over as an argument, or move the module"


def test_free_modules_and_the_worker_import_nothing_of_the_rooms() -> None:
    for module in (*FREE, "worker"):
        assert set(imports_of(modules()[module])) <= FREE, module


def test_no_modules_import_each_other_in_a_circle() -> None:
    inner = {name: set(imports_of(path)) - {name} for name, path in modules().items()}
    inner["themis"] = set()  # the face names its parts for type checkers, and imports them later
    in_order = list(TopologicalSorter(inner).static_order())  # raises CycleError with the circle
    assert set(in_order) >= set(inner)


@pytest.mark.parametrize("folder", sorted({path.parent for path in modules().values()}))
def test_no_folder_is_a_hall(folder: Path) -> None:
    assert len(list(folder.glob("*.py"))) <= BOUND


@pytest.mark.parametrize("room", ["inputs", "statistics", "subjects", "engine", "scores", "search"])
def test_nothing_below_the_audit_prints_or_knows_the_terminal(room: str) -> None:
    for module, path in modules().items():
        if _room(module) == room:
            text = path.read_text(encoding="utf-8")
            names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
            assert "print" not in names, f"{module} prints; raise an error or send an event"
            assert not re.search(r"^\s*(import|from) (rich|typer|click)\b", text, re.M), module


KINDS = {each.kind for each in (RowFunction, Model, CommandSubject, WorkerSubject, HttpSubject)}
SUBJECT_NAMES = {"subject", "own"}  # as variables and attributes that hold one are called


@pytest.mark.parametrize("module", [each for each in modules() if _room(each) in ROOMS])
def test_nobody_guesses_what_a_subject_can_do(module: str) -> None:
    """Outside of subjects/ its traits and methods say so, not its kind, nor whether it has a name.

    The file format, in config/, describes kinds; it knows no subject.
    """
    room = _room(module)
    for node in ast.walk(ast.parse(modules()[module].read_text(encoding="utf-8"))):
        where = f"{module}:{getattr(node, 'lineno', 0)}"
        if room != "subjects" and isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            guess = name in ("getattr", "hasattr") and bool(node.args)
            of = ast.unparse(node.args[0]).rpartition(".")[2] if guess else ""
            assert of not in SUBJECT_NAMES, f"{where}: give Subject a trait or a method for it"
        if room not in ("subjects", "config"):
            assert not _decides_by_kind(node), f"{where}: give Subject a trait or a method for it"


def _decides_by_kind(node: ast.AST) -> bool:
    """Whether this compares something with the name of a kind, or lists such names."""
    compared: list[ast.expr] = []
    if isinstance(node, ast.Compare):
        compared = [node.left, *node.comparators]
    elif isinstance(node, ast.MatchValue):
        compared = [node.value]
    of_subject = any(
        isinstance(each, ast.Attribute)
        and each.attr == "kind"
        and ast.unparse(each.value).rpartition(".")[2] in SUBJECT_NAMES
        for each in compared
    )
    listed = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.Constant)]
    is_list = isinstance(node, ast.Dict | ast.Tuple | ast.List | ast.Set)
    several = is_list and len({each.value for each in listed} & KINDS) > 1
    single = {each.value for each in compared if isinstance(each, ast.Constant)} & KINDS
    return of_subject or several or bool(single)


def test_decisions_by_kind_are_noticed() -> None:
    for line in (
        'subject.kind == "command"',
        "runner.subject.kind in BATCHES",
        'BATCHES = {"command": 32, "http": 256}',
        'BY_INPUT = ("command", "http")',
        'kind != "worker"',
        'match kind:\n case "worker":\n  pass',
    ):
        assert any(map(_decides_by_kind, ast.walk(ast.parse(line)))), line


def test_public_names_are_these() -> None:
    assert sorted(themis.__all__) == sorted(PUBLIC.split())
    with pytest.raises(AttributeError, match="no attribute 'Oracle'"):
        importlib.import_module("themis").Oracle  # noqa: B018 - the access is what is tested


@pytest.mark.parametrize("name", [each for each in PUBLIC.split() if not each.startswith("_")])
def test_public_names_can_be_imported_and_say_what_they_are(name: str) -> None:
    text = inspect.getdoc(getattr(themis, name))
    assert text
    assert not text.startswith(f"{name}("), "a docstring of its own, not the dataclass's"


@pytest.mark.parametrize("module", [each for each in modules() if each != "__main__"])
def test_every_module_says_in_its_first_line_what_it_is_for(module: str) -> None:
    text = modules()[module].read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)) or module == "_version" or not text.strip()


def _printed(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("module", "spared"),
    [
        ("themis", "numpy scipy pydantic pandas sklearn"),
        ("themis.cli", "numpy scipy pydantic pandas sklearn"),
        ("themis.cli.session", "scipy.special scipy.linalg scipy.stats numpy.f2py pandas"),
    ],
)
def test_starting_up_imports_no_more_than_it_needs(module: str, spared: str) -> None:
    code = f"import sys, {module}; print([n for n in {spared.split()} if n in sys.modules])"
    assert _printed(code) == "[]"


def test_whoever_imports_scipy_later_gets_it_whole() -> None:
    code = (
        "from themis.statistics import special; import scipy.special, scipy.stats, scipy.linalg; "
        "print(scipy.special.betaln is special.betaln, scipy.special.softmax([1.0])[0], "
        "scipy.stats.beta(2, 3).cdf(1.0), scipy.special._ufuncs.ndtri(0.5), "
        "scipy.linalg.solve([[2.0]], [1.0])[0])"
    )
    assert _printed(code) == "True 1.0 1.0 0.0 0.5"


def test_without_the_compiled_module_the_functions_come_from_the_package() -> None:
    code = (
        "import sys; sys.modules['scipy.special._ufuncs'] = None; from types import ModuleType; "
        "import importlib; real = importlib.import_module; "
        "whole = ModuleType('scipy.special'); whole.__getattr__ = lambda name: name; "
        "importlib.import_module = lambda name: whole if name == 'scipy.special' else real(name); "
        "from themis.statistics import special; print(special.betaln, special.bdtrc)"
    )
    assert _printed(code) == "betaln bdtrc"


def rooms_table() -> str:
    """ROOMS for ARCHITECTURE.md."""
    lines = ["| room | what it is for | may import |", "|---|---|---|"]
    for room, (purpose, allowed) in ROOMS.items():
        names = ", ".join(f"`{name}`" for name in allowed.split()) or "nothing"
        lines.append(f"| `{room}/` | {purpose} | {names} |")
    return "\n".join(lines) + "\n"
