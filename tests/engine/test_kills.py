"""Does a run that is killed, wherever that happens, go on and end in the very same result?"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from tests.external import (
    GATE,
    PATIENCE,
    close_gate,
    lasting,
    open_gate,
    processes_in,
    ran,
    serving_loans,
    stored,
    wait_until,
    write_command,
    write_sh_worker,
)
from themis.cli import main
from themis.engine import cache as cache_module
from themis.engine.cache import default_path

BATCH = 32  # inputs of a command that are run together, and of a service with two connections
RUN = "error = 0.1\nconfidence = 0.95\nahead = false"  # so that all that is stored is needed

Project = tuple[Path, Callable[[], None]]  # its file, and what tells the subject that a run is gone


@contextmanager
def command(folder: Path) -> Iterator[Project]:
    yield write_command(folder, before=GATE, run=RUN), lambda: None


@contextmanager
def worker(folder: Path) -> Iterator[Project]:
    yield write_sh_worker(folder, before=GATE, run=RUN), lambda: None


@contextmanager
def service(folder: Path) -> Iterator[Project]:
    with serving_loans(folder) as loans:
        yield loans.write(options="concurrency = 2", run=RUN), loans.hang_up


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "points", "options"),
    [
        (command, 4, []),
        (worker, 4, []),
        (service, 4, []),
        *(pytest.param(e, 15, [], marks=pytest.mark.long) for e in (command, worker, service)),
        (service, 3, ["--measure", "excess", "--error", "0.3"]),
    ],
)
def test_a_run_that_is_killed_at_many_places_ends_in_the_same_result(
    tmp_path: Path, kind: Callable[[Path], Any], points: int, options: list[str]
) -> None:
    with kind(tmp_path) as (config, forget):
        expected = finish(start(config, *options), config)
        total, most = expected["executions"], max(BATCH, largest_batch(tmp_path))
        assert total == len(ran(tmp_path)) == stored(tmp_path)
        start_afresh(tmp_path)
        for point in sorted(random.Random(11).sample(range(1, total), points)):
            known, made = stored(tmp_path), len(ran(tmp_path))
            gate = made + point - known
            close_gate(tmp_path, gate)
            process = start(config, *options)
            wait_until(lambda at=gate, it=process: len(ran(tmp_path)) >= at or not it.is_alive())
            process.kill()
            process.join()
            assert process.exitcode == -signal.SIGKILL, "it ended by itself"
            forget()
            wait_until(lambda: not processes_in(tmp_path) and not working_in(tmp_path))
            assert len(ran(tmp_path)) == gate
            assert 0 <= point - stored(tmp_path) <= most  # what was in flight
        open_gate(tmp_path)
        known, made = stored(tmp_path), len(ran(tmp_path))
        result = finish(start(config, *options), config)
    assert known > total // 2
    assert lasting(result) == lasting(expected)
    assert result["executions"] == total - known == len(ran(tmp_path)) - made
    assert stored(tmp_path) == total


# A process that has loaded all modules, and forks for each run: to start is cheap. --------
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["themis.cli.measure", "themis.audit.audit", "aiohttp", __name__])


def start(config: Path, *options: str) -> BaseProcess:
    """The command in a process of its own."""
    process = FORKS.Process(target=_run_command, args=(config, options))
    process.start()
    return process


def finish(process: BaseProcess, config: Path) -> Any:
    """The result that the command printed, once it has ended."""
    process.join(PATIENCE)
    assert process.exitcode == 0
    return json.loads(config.with_name("printed.json").read_text())


def _run_command(config: Path, options: tuple[str, ...]) -> None:
    with config.with_name("printed.json").open("w") as file:
        os.dup2(file.fileno(), 1)
    os.chdir(config.parent)
    cache_module.COMMIT_SECONDS = 0.0  # else a quick subject loses more than is in flight
    sys.argv = ["themis", "score", str(config), "--json", *options]
    if "http" not in config.read_text():
        sys.argv += ["--jobs", "1"]
    main()


def working_in(folder: Path) -> list[Path]:
    """Processes in this folder: also those that are not yet the program that they will be."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):
            found += [each] if each.readlink() == folder else []
    return found


def start_afresh(folder: Path) -> None:
    """Forget all executions."""
    shutil.rmtree(folder / ".themis")
    for log in folder.glob("loan.*.log"):
        log.unlink()


def largest_batch(folder: Path) -> int:
    """How many decisions the largest record of a batch holds; 0 where each has its own."""
    with closing(sqlite3.connect(default_path(folder))) as connection, connection:
        ((most,),) = connection.execute("SELECT max(decided) FROM records")
    return most or 0
