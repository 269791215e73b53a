"""Does the cache give back what was stored, to whom it belongs, and say what is wrong?"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import themis
from tests.external import PATIENCE, ran, stored, write_command, write_worker
from tests.projects import run
from themis.engine.cache import Cache, read_contents
from themis.engine.recall import Recall
from themis.engine.runner import Runner
from themis.subjects.base import Answers, CodesBatch, Subject, Traits
from themis.subjects.decisions import CRASH, Failure
from themis.subjects.labels import Labels


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    opened = Cache(tmp_path / "cache.sqlite")
    yield opened
    opened.close()


# The file ---------------------------------------------------------------------------------
def records(first: int, count: int) -> list[tuple[bytes, int, bytes]]:
    return [(place.to_bytes(16), 2, b"%d" % place) for place in range(first, first + count)]


def test_what_was_stored_is_there_after_closing_and_for_others_at_once(cache: Cache) -> None:
    number, other = cache.number_of("abc", "command"), Cache(cache.path)
    cache.put(number, records(0, 1_700))
    keys = [key for key, *_ in records(0, 1_800)]
    expected = {key: text for key, _, text in records(0, 1_700)}
    assert cache.find(keys) == expected, "before it is committed, too"
    cache.commit(now=True)
    assert other.find(keys) == expected
    other.put(other.number_of("abc", "command"), records(1_700, 100))
    other.close()
    cache.close()
    assert len(cache.find(keys)) == 1_800
    assert cache.number_of("abc", "command") == number != cache.number_of("abd", "command")
    subjects = read_contents(cache.path).subjects
    assert {each.fingerprint: each.decisions for each in subjects} == {"abc": 3_600, "abd": 0}


def test_an_interrupt_while_it_waits_for_another_process_loses_nothing(cache: Cache) -> None:
    cache.put(cache.number_of("abc", "command"), records(0, 10))
    with closing(sqlite3.connect(cache.path, isolation_level=None, check_same_thread=False)) as one:
        one.execute("BEGIN IMMEDIATE")

        def interrupt() -> None:
            os.kill(os.getpid(), signal.SIGINT)  # is heard once the file is free
            one.execute("COMMIT")

        def commit() -> None:
            timer.start()
            cache.commit(now=True)

        timer = threading.Timer(0.1, interrupt)
        with pytest.raises(KeyboardInterrupt):
            commit()
        timer.join()
    cache.commit(now=True)
    assert sum(each.decisions for each in read_contents(cache.path).subjects) == 20


FORKS = """
import os, sys
from pathlib import Path
from themis.engine.cache import Cache, clear, read_contents
cache = Cache(Path(sys.argv[1]))
number = cache.number_of("abc", "command")
cache.put(number, [(b"k" * 16, 1, b"yes")])
child = os.fork()
if child == 0:
    cache.close()
    print("child", cache.find([b"k" * 16]), flush=True)
    cache.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
cache.put(number, [(b"l" * 16, 1, b"no")])
cache.close()
print(len(Cache(cache.path).find([b"k" * 16, b"l" * 16])))
"""


def test_a_forked_process_leaves_the_cache_of_its_parent_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKS, str(tmp_path / "cache.sqlite")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.stdout == "child {}\n2\n", done.stderr


def write_text(path: Path) -> None:
    path.write_text("this is not a database, but it is longer than a hundred bytes" * 3)


def execute(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def write_other_database(path: Path) -> None:
    execute(path, "CREATE TABLE theirs (a)")


def write_later_format(path: Path) -> None:
    Cache(path).close()
    execute(path, "PRAGMA user_version = 99")


def write_damaged(path: Path) -> None:
    opened = Cache(path)
    opened.put(opened.number_of("abc", "command"), records(0, 2_000))
    opened.close()
    data = bytearray(path.read_bytes())
    data[4_096:] = os.urandom(len(data) - 4_096)
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("write", "problem", "remedy"),
    [
        (write_text, "is not a cache of Themis", "name another file"),
        (write_other_database, "is not a cache of Themis", "name another file"),
        (write_later_format, "was written by another Themis (format 99", "themis cache clear"),
        (write_damaged, "is damaged", "themis cache clear"),
        (Path.mkdir, "can't be read", "name another file"),
        (lambda path: path.symlink_to("/dev/null"), "is no file that can be kept", "--no-cache"),
    ],
)
def test_unusable_file_is_refused_with_a_remedy(
    tmp_path: Path, write: Any, problem: str, remedy: str
) -> None:
    path = tmp_path / "cache.sqlite"
    write(path)
    config = write_command(tmp_path)
    before = path.read_bytes() if path.is_file() else b""
    beside = sorted(tmp_path.iterdir())
    done = run("score", str(config), "--cache", str(path))
    assert sorted(tmp_path.iterdir()) == beside, "no lock beside it"
    assert (done.exit_code, "delete" in done.stderr) == (2, False)
    assert problem in done.stderr
    assert remedy in done.stderr
    assert not ran(tmp_path)
    assert not path.is_file() or path.read_bytes() == before
    assert run("score", str(config), "--no-cache", "--max-executions", "4").exit_code == 4


SCHEMA = themis.Schema(race=["green", "purple"], age=themis.Integers(0, 50), rich=[True, False])


class Numbers(Subject):
    """A subject that fails on some inputs and counts how often it is run."""

    schema = SCHEMA

    def __init__(self, kind: str, failing: set[int]) -> None:
        self.kind, self.failing, self.executions = kind, failing, 0
        self.traits = Traits(external=True, record="input" if kind == "command" else "batch")

    def fingerprint(self) -> str:
        return f"numbers {self.kind}"

    def load(self, codes: Any) -> Any:
        return CodesBatch(self.run, codes)

    def run(self, codes: Any) -> Answers:
        places = (codes[:, :3] @ [102, 2, 1]).tolist()
        self.executions += len(places)
        outputs = [["no", 1, "1"][place % 3] for place in places]
        failed = {at: Failure(CRASH, "x") for at, p in enumerate(places) if p in self.failing}
        return Answers(outputs, failed)


@settings(deadline=None, max_examples=40)  # every example waits for the disk
@given(
    st.sampled_from(["command", "worker"]),
    st.lists(st.lists(st.integers(0, 203), max_size=60), max_size=5),
    st.sets(st.integers(0, 203)),
)
def test_recalled_cells_are_those_of_a_run_without_a_cache(
    tmp_path_factory: Any, kind: str, questions: list[list[int]], failing: set[int]
) -> None:
    path = tmp_path_factory.mktemp("recall") / "cache.sqlite"
    questions = [*questions, *questions[::-1]]
    for _ in range(2):
        cache = Cache(path)
        subject, bare = Numbers(kind, failing), Numbers(kind, failing)
        with_cache = Runner(subject, Labels(), max_failures=1.0, recall=Recall(cache, subject))
        without = Runner(bare, Labels(), max_failures=1.0)
        for question in questions:
            codes = np.array([[p // 102, p // 2 % 51, p % 2] for p in question], dtype=np.int32)
            codes = codes.reshape(-1, 3)
            assert with_cache.run(codes).tolist() == without.run(codes).tolist()
        assert with_cache.labels.labels == without.labels.labels
        assert with_cache.failures == without.failures
        assert with_cache.asked == without.executions
        assert with_cache.executions == subject.executions
        cache.close()
    asked = {place for question in questions for place in question}
    assert subject.executions == len(asked & failing)  # only failures are tried again


WORLDS = {
    "race": {"colour": ["green", "purple"]},
    "age": {"age": themis.Reals(0, 50, step=1)},
    "rich": {"rich": [1, 0]},
}


@pytest.mark.parametrize("kind", ["command", "worker"])
def test_other_names_types_and_orders_are_other_inputs(tmp_path: Path, kind: str) -> None:
    race, age, rich = SCHEMA.characteristics
    parts: dict[str, Any] = {"race": race, "age": age, "rich": rich}
    binned = themis.Schema(race=race, age=themis.Integers(0, 50, bins=[9]), rich=rich)
    executions = []
    schemas = [SCHEMA, binned.where("age < 60"), themis.Schema(dict(reversed(parts.items())))]
    for schema in (*schemas, *(themis.Schema(parts | changed) for changed in WORLDS.values())):
        cache, subject = Cache(tmp_path / "c"), Numbers(kind, set())
        subject.schema = schema
        runner = Runner(subject, Labels(), recall=Recall(cache, subject))
        runner.run(np.zeros((1, len(schema)), dtype=np.int32))
        cache.close()
        executions.append(subject.executions)
    assert executions == [1, 0, 1, 1, 1, 1]


# Whole runs -------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [write_command, write_worker], ids=["command", "worker"])
def test_budget_ends_at_the_same_place_whatever_is_known(tmp_path: Path, write: Any) -> None:
    config = write(tmp_path, options="deterministic = true")
    results = []
    for _ in range(2):
        with themis.Audit.from_file(config, max_executions=150) as audit:
            score = audit.causal("race")
            results.append((score.samples, score.score, score.low, score.high, score.stopped))
    assert results[0] == results[1]
    assert len(ran(tmp_path)) == stored(tmp_path) == 150
    if write is write_command:  # another question uses what is known, too
        config.write_text(config.read_text().replace("max = 99 }", "max = 99, protected = true }"))
        with themis.Audit.from_file(config, max_executions=100) as audit:
            both = audit.causal("race", "sex")
        assert both.cache_hits > 0
        assert len(ran(tmp_path)) == 150 + both.executions == len(set(ran(tmp_path)))


def test_subject_in_this_process_is_remembered_for_one_run_only(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    result = themis.Audit(lambda person: 1, SCHEMA, cache=path).score([["race"]])
    assert [note.code for note in result.timing["notes"]] == ["cache-not-used"]
    assert not path.exists()


# Housekeeping -----------------------------------------------------------------------------


def test_info_and_clear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_command(tmp_path, options="deterministic = true")
    score = ("score", "--against", "race", "--max-executions", "40", "--json")
    assert "empty" in run("cache", "info").stdout
    assert run("cache", "clear").exit_code == 0
    run(*score)
    for place in ([], ["themis.toml"], ["."], [".themis/cache.sqlite"]):
        shown = run("cache", "info", *place).stdout.split()
        assert {".themis/cache.sqlite:", "subject", "command", "40", "UTC"} <= set(shown)
    refused = run("cache", "clear")
    assert (refused.exit_code, "--yes" in refused.stderr) == (2, True)
    assert run("cache", "clear", "--yes").exit_code == 0
    assert "empty" in run("cache", "info").stdout
    assert json.loads(run(*score).stdout)["executions"] == 40


def test_clear_removes_damaged_caches_and_nothing_else(tmp_path: Path) -> None:
    damaged, theirs = tmp_path / "cache.sqlite", tmp_path / "theirs.sqlite"
    write_damaged(damaged)
    write_other_database(theirs)
    done, refused = (run("cache", "clear", str(each), "--yes") for each in (damaged, theirs))
    assert (done.exit_code, refused.exit_code) == (0, 2)
    assert (damaged.exists(), theirs.exists()) == (False, True)
    assert "nothing was deleted" in refused.stderr


def test_secrets_of_the_environment_are_not_in_the_cache(tmp_path: Path) -> None:
    config = write_command(tmp_path, options='env = { TOKEN = "hunter2" }\ndeterministic = true')
    run("score", str(config), "--against", "race", "--max-executions", "20")
    data = (tmp_path / ".themis" / "cache.sqlite").read_bytes()
    assert stored(tmp_path) == 20
    assert not any(each in data for each in (b"hunter2", sys.executable.encode()))


# What counts as the same subject -----------------------------------------------------------


@pytest.mark.parametrize(("options", "noticed"), [("depends = ['rules/*.sh']\n", 1), ("", 0)])
def test_a_changed_helper_is_noticed_where_depends_names_it(
    tmp_path: Path, options: str, noticed: int
) -> None:
    (tmp_path / "rules").mkdir()
    rule = tmp_path / "rules" / "rule.sh"
    rule.write_text("limit=30")
    decide = f'. "{rule}"; if [ "$3" -ge "$limit" ]; then echo 1; else echo 0; fi'
    path = write_command(tmp_path, options=options, decide=decide, run="max_executions = 40\n")
    said = []
    for limit in (30, 30, 90):
        rule.write_text(f"limit={limit}")
        said.append(" ".join(run("score", str(path), "--against", "race").output.split()))
    known = ["answers come from an earlier run" in each for each in said]
    assert known == [False, True, not noticed]
    assert "the contents of the files it names are the same" in said[1]


@pytest.mark.parametrize("pattern", ["rules/*.py", "rules", "/"])
def test_a_pattern_without_files_is_a_mistake(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "rules").mkdir()
    path = write_command(tmp_path, options=f"depends = ['{pattern}']\n")
    done = run("score", str(path))
    assert done.exit_code == 2
    said = " ".join(done.output.split())
    assert f"subject.depends: '{pattern}' matches no file in" in said
