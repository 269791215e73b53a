"""Would the tests notice if the heart were wrong? Small changes of the code, one at a time.

    pip install coverage
    python benchmarks/mutants.py > mutants.md       # 160 of them, about half an hour on two cores
    python benchmarks/mutants.py --count 20 --only statistics --seed 3

Each mutant is one changed operator, number or condition in statistics, memory, tables, runner,
or search. The tests of these rooms are run once to see which of them run which lines; a
mutant is caught when one of those that run its line fails, or hangs, or another test of its room.
What survives stands in the table, and what is equivalent to the original in `EQUIVALENT`, with the
reason. Functions that only foresee what is cheapest (`FORESIGHT`) are left out: whatever they say,
the answer is right. Ends with 1 if one survives.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from xml.etree import ElementTree

sys.path.remove(str(Path(__file__).resolve().parent))  # which has a coverage.py of its own
from coverage import CoverageData

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "src/themis"
CHANGED = (
    *("statistics/", "search/", "inputs/keys.py"),
    *(f"engine/{name}.py" for name in ("memory", "tables", "variants", "runner")),
)
TESTS = ("statistics", "engine", "search", "scores", "inputs", "audit")  # rooms that may notice
SECONDS = 900  # for the tests of one mutant: what takes longer hangs, …
ONE_TEST = 120  # … as does one of them that takes so long
ONLY = ["-q", "-n", "0", "-m", "not slow", "-p", "no:cacheprovider", "--no-header"]

# What these say changes how much is executed, in which order or in which calls, and no answer.
FORESIGHT: dict[str, tuple[str, ...]] = {
    "search/causal_decider.py": (
        *("_costs_more", "_is_cheapest", "_cost", "_cost_of_all", "_cost_of_above"),
        *("_open_costs", "_sizes", "_cost_to_come", "takes_proofs"),
    ),
    "search/whole_domain.py": ("is_cheaper", "pays", "_affordable", "_least_cost"),
    "search/found_sets.py": ("_cost",),
    "search/cells.py": ("proof_cost", "proof_costs"),
    "search/flips.py": ("in_large_calls", "best_order"),
}

# What a mutant changes can't be seen in any result: (file, line as it is, as it is changed): why
EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "statistics/intervals.py",
        "tail = betaincc(x + 1.0, np.where(possible, n - x, 1.0), np.minimum(proportion, 1.0))",
        "tail = betaincc(x + 1.0, np.where(possible, n - x, 1.0), np.minimum(proportion, 2.0))",
    ): "what is above 1 is not possible, and replaced",
    (
        "engine/memory.py",
        "self.is_whole = keys.count <= WHOLE_LIMIT // dtype.itemsize",
        "self.is_whole = keys.count < WHOLE_LIMIT // dtype.itemsize",
    ): "of one size of a domain, the way in which it is held",
    (
        "search/lattice.py",
        "self.below[size] = {each: None for each in sets if each & mask != each}",
        "self.below[size] = {each: None for each in sets if each | mask != each}",
    ): "sets that follow from a larger one are kept beside it: a matter of time",
    (
        "search/causal_decider.py",
        "if counts.total > self.rule.max_samples and (not (self.rule.floor == 0 and counts.hits))",
        "if counts.total >= self.rule.max_samples and (not (self.rule.floor == 0 and counts.hits))",
    ): "the last test may be asked as soon as there is all that it looks at",
    (
        "engine/memory.py",
        "if not len(known[0])",
        "if not len(known[1])",
    ): "keys and outputs are as many",
    (
        "inputs/keys.py",
        "word, stride = (word + 1, 1)",
        "word, stride = (word + 2, 1)",
    ): "a word that is always 0: the keys are as distinct",
    (
        "search/causal_decider.py",
        "if flips and (not sample.done)",
        "if not (flips and (not sample.done))",
    ): "whether others are tried before the next proofs: a matter of cost",
    (
        "search/flips.py",
        "if budget >= LEARNING_ROWS / 2",
        "if not budget >= LEARNING_ROWS / 2",
    ): "whether learning is worth its executions: a matter of cost",
    (
        "search/causal_decider.py",
        "last = max((rule.max_samples for rule in left.values()), default=0)",
        "last = max((rule.max_samples for rule in left.values()), default=1)",
    ): "where no set is left there is nothing to exhaust",
    (
        "engine/memory.py",
        "self.is_empty = True",
        "self.is_empty = False",
    ): "a memory that holds nothing is asked, and answers so",
    (
        "search/found_sets.py",
        "expensive = book.is_exhaustive(mask) and book.proof_cost(mask) >= SPOT_COST",
        "expensive = book.is_exhaustive(mask) and book.proof_cost(mask) > SPOT_COST",
    ): "of one cost, the way in which a set is measured",
    (
        "statistics/intervals.py",
        "possible = (proportion < 1.0) & (x < n)",
        "possible = (proportion < 1.0) & (x <= n)",
    ): "where all succeed the proportion is above 1",
    (
        "search/causal_decider.py",
        "if counts.total >= rule.max_samples",
        "if counts.total > rule.max_samples",
    ): "inputs are drawn once more before all are settled: a matter of cost",
    (
        "search/causal_decider.py",
        "if flips and (not sample.done)",
        "if flips and (not not sample.done)",
    ): "whether others are tried before the next proofs: a matter of cost",
}

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is},
    **{ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult},
    **{ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd},
}
Change = Callable[[], None]

NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum"}
NAMES |= {"maximum": "minimum", "floor": "ceil", "ceil": "floor", "cumsum": "sort"}


@dataclass(frozen=True)
class Mutant:
    """One changed place."""

    path: str  # within the package
    line: int
    last_line: int  # of what changes
    before: str
    after: str
    source: str  # of the whole module

    @property
    def reason(self) -> str | None:
        """Why it is no other program, if that is known."""
        return EQUIVALENT.get((self.path, self.before, self.after))


def main() -> int:
    options = parse()
    chosen = list(islice(mutants(paths(options.only), options.seed), options.count))
    places: SimpleQueue[Path] = SimpleQueue()
    survivors = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        copies = [copied(Path(folder) / str(number)) for number in range(options.jobs)]
        tests = Tests.learned(copies, pool)
        for each in copies:
            places.put(each)

        def is_caught(mutant: Mutant) -> bool:
            place = places.get()
            try:
                return catch(place, mutant, tests.of(mutant))
            finally:
                places.put(place)

        verdicts = zip(chosen, pool.map(is_caught, chosen), strict=True)
        for number, (mutant, caught) in enumerate(verdicts, 1):
            survivors += [] if caught else [mutant]
            word = "caught" if caught else "SURVIVED"
            told = f"{number:4} of {len(chosen)}  {word:8}  {mutant.path}:{mutant.line}"
            print(f"{told}  {mutant.after}", file=sys.stderr, flush=True)
    show(len(chosen), survivors)
    return 1 if survivors else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=160, help="mutants")
    parser.add_argument("--seed", type=int, default=0, help="of their choice")
    parser.add_argument("--only", default="", help="of files whose path holds this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    return parser.parse_args()


def paths(only: str) -> list[str]:
    """The modules that are changed."""
    package = ROOT / PACKAGE
    found = [
        str(path.relative_to(package))
        for part in CHANGED
        for path in (sorted((package / part).glob("*.py")) if part[-1] == "/" else [package / part])
        if path.name not in ("__init__.py", "coming_tries.py")  # what idle slots may run
    ]
    return [path for path in found if only in path]


# Which tests run which lines ----------------------------------------------------------------
@dataclass(frozen=True)
class Tests:
    """Those that run each line of each module, and how long they take."""

    by_line: dict[str, dict[int, set[str]]]  # module → line → tests
    seconds: dict[str, float]

    @classmethod
    def learned(cls, copies: Sequence[Path], pool: ThreadPoolExecutor) -> Tests:
        """What one run of all tests shows; each copy runs a part of them."""
        parts = [TESTS[number :: len(copies)] for number in range(len(copies))]
        by_line: dict[str, dict[int, set[str]]] = {}
        seconds: dict[str, float] = {}
        for place, _ in zip(copies, pool.map(watch, copies, parts), strict=True):
            data = CoverageData(str(place / ".coverage"))
            data.read()
            for file in data.measured_files():
                lines = by_line.setdefault(str(Path(file).relative_to(place / PACKAGE)), {})
                for line, names in data.contexts_by_lineno(file).items():
                    found = {node_of(place, name) for name in names if name}
                    lines.setdefault(line, set()).update(found)
            failed = set()
            for case in ElementTree.parse(place / "times.xml").iter("testcase"):
                node = node_of(place, f"{case.get('classname')}.{case.get('name')}".split("[")[0])
                seconds[node] = seconds.get(node, 0.0) + float(case.get("time") or 0)
                if case.find("failure") is not None or case.find("error") is not None:
                    failed.add(node)
            for node in failed:  # being watched takes time and memory, which some tests count
                if fails(place, [node], environment(place)):
                    del seconds[node]
        return cls(by_line, seconds)

    def of(self, mutant: Mutant) -> list[str]:
        """The tests that may notice a mutant, the quickest first."""
        lines = self.by_line.get(mutant.path, {})
        found = set().union(*(lines.get(n, ()) for n in range(mutant.line, mutant.last_line + 1)))
        return sorted(found & self.seconds.keys(), key=lambda node: (self.seconds[node], node))


def watch(place: Path, rooms: Sequence[str]) -> None:
    """Run the tests of some rooms, and write down what they run."""
    (place / "watch.ini").write_text(
        f"[run]\ndynamic_context = test_function\nsource = {place / PACKAGE}\n"
    )
    command = [sys.executable, "-m", "coverage", "run", "--rcfile=watch.ini", "-m", "pytest", *ONLY]
    command += ["--junitxml=times.xml", *(f"tests/{room}" for room in rooms)]
    env = {**os.environ, "PYTHONPATH": str(place / "src")}
    subprocess.run(command, cwd=place, env=env, check=False, stdout=subprocess.DEVNULL)
    print(f"the tests of {', '.join(rooms)} were watched", file=sys.stderr, flush=True)


def node_of(place: Path, name: str) -> str:
    """A test as pytest names it: `tests.engine.test_memory.test_it` is in a file."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        path = Path(*parts[:length]).with_suffix(".py")
        if (place / path).exists():
            return "::".join([str(path), *parts[length:]])
    return name


# Changes ------------------------------------------------------------------------------------
def mutants(modules: Sequence[str], seed: int) -> Iterator[Mutant]:
    """Changed places of all modules in random order, without those that are no other program."""
    trees = {path: ast.parse((ROOT / PACKAGE / path).read_text()) for path in modules}
    every = [(path, n) for path in trees for n, _ in enumerate(changes(path, trees[path]))]
    random.Random(seed).shuffle(every)
    for path, number in every:
        changed = copy.deepcopy(trees[path])
        statement, change = next(islice(changes(path, changed), number, None))
        before = first_line(statement)
        change()
        after, last = first_line(statement), last_line(statement)
        mutant = Mutant(path, statement.lineno, last, before, after, ast.unparse(changed))
        if before != after and mutant.reason is None:
            yield mutant


def first_line(node: ast.AST) -> str:
    """What changes of a statement: its head, without what stands within it."""
    return ast.unparse(node).split(":\n")[0].replace("\n", " ")


def last_line(node: ast.stmt) -> int:
    """The last line of its head."""
    body = getattr(node, "body", None)
    return body[0].lineno - 1 if body else node.end_lineno or node.lineno


def changes(path: str, tree: ast.Module) -> Iterator[tuple[ast.stmt, Change]]:
    """The statements of functions, with functions that change one place of them."""
    left_out = FORESIGHT.get(path, ())
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name not in left_out:
            for statement in statements(function.body):
                yield from ((statement, each) for each in places_of(statement))


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Those of a function, but for texts, errors and functions within it."""
    for each in body:
        is_text = isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
        if is_text or isinstance(each, ast.Raise | ast.Assert | ast.FunctionDef | ast.ClassDef):
            continue
        yield each
        for name in ("body", "orelse", "finalbody"):
            yield from statements(getattr(each, name, ()))


def places_of(statement: ast.stmt) -> Iterator[Change]:
    for node in own_nodes(statement):
        if isinstance(node, ast.Compare):
            for place, operator in enumerate(node.ops):
                if type(operator) in SWAPS:
                    yield partial(node.ops.__setitem__, place, swapped(operator))
        elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in SWAPS:
            yield partial(setattr, node, "op", swapped(node.op))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
            yield partial(setattr, node, "operand", ast.UnaryOp(type(node.op)(), node.operand))
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield partial(setattr, node, "value", not node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            yield partial(setattr, node, "value", node.value + 1)
        elif isinstance(node, ast.Attribute | ast.Name):
            field = "attr" if isinstance(node, ast.Attribute) else "id"
            if getattr(node, field) in NAMES:
                yield partial(setattr, node, field, NAMES[getattr(node, field)])
    if isinstance(statement, ast.If | ast.While):
        yield partial(setattr, statement, "test", ast.UnaryOp(ast.Not(), statement.test))


def own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement itself, without annotations and the statements within it."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        yield node
        for name, value in ast.iter_fields(node):
            children = value if isinstance(value, list) else [value]
            if name not in ("annotation", "body", "orelse", "finalbody", "handlers"):
                waiting += [each for each in children if isinstance(each, ast.AST)]


def swapped(operator: ast.AST) -> ast.AST:
    return SWAPS[type(operator)]()


# Running ------------------------------------------------------------------------------------
def copied(place: Path) -> Path:
    """A copy of what the tests need."""
    for name in ("src", "tests", "examples", "benchmarks", "docs", "studies", "deploy"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.glob("*.*"):
        if path.is_file():
            shutil.copy(path, place)
    return place


def catch(place: Path, mutant: Mutant, tests: Sequence[str]) -> bool:
    """Whether one of these tests fails, or one of its room: being watched, some run less."""
    path = place / PACKAGE / mutant.path
    original = path.read_text()
    path.write_text(mutant.source)
    room, env = f"tests/{Path(mutant.path).parts[0]}", environment(place)
    try:
        return any(fails(place, each, env) for each in ([*tests], [room]) if each)
    finally:
        path.write_text(original)


def environment(place: Path) -> dict[str, str]:
    """That of a run in this copy."""
    return {**os.environ, "PYTHONPATH": str(place / "src"), "PYTHONDONTWRITEBYTECODE": "1"}


def fails(place: Path, tests: Sequence[str], env: Mapping[str, str]) -> bool:
    """Whether one of these tests fails, or hangs."""
    try:
        limits = [f"faulthandler_timeout={ONE_TEST}", "faulthandler_exit_on_timeout=true"]
        options = ["-x", *(word for each in limits for word in ("-o", each))]
        command = [sys.executable, "-m", "pytest", *options, *ONLY, *tests]
        done = subprocess.run(
            command, cwd=place, env=env, capture_output=True, timeout=SECONDS, check=False
        )
        if done.returncode in (4, 5):  # pytest was asked for something that is not there
            raise SystemExit(done.stdout.decode() + done.stderr.decode())
        return done.returncode != 0
    except subprocess.TimeoutExpired:
        return True


def show(count: int, survivors: Sequence[Mutant]) -> None:
    """The table of those that no test noticed."""
    print(f"{count - len(survivors)} of {count} mutants are caught.")
    if survivors:
        print("\n| where | as it is | survived |\n|---|---|---|")
    for each in survivors:
        print(f"| {each.path}:{each.line} | `{each.before}` | `{each.after}` |")


if __name__ == "__main__":
    sys.exit(main())
