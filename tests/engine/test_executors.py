"""The same answers wherever a subject runs, and whatever happens to the processes that run it."""

from __future__ import annotations

import decimal
import importlib
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import loky
import numpy as np
import pytest

import themis
from tests.clocks import Clock
from tests.external import PATIENCE, interrupting, is_alive, start, wait_until, write_command
from tests.projects import BIASED, Project, run, write_project
from themis.audit.run import Work
from themis.engine import runner as runner_module
from themis.engine.executors import spread
from themis.engine.executors.pools import Pool
from themis.engine.executors.spread import pool_of
from themis.errors import RequestError, SubjectError
from themis.subjects import base as base_module
from themis.subjects.functions import RowFunction

SCHEMA = themis.Schema(
    race=["green", "purple", "blue"], sex=["f", "m"], income=range(1000), savings=range(1000)
)


def row(person: dict[str, Any]) -> str:
    limit = {"green": 300, "purple": 500, "blue": 400}[person["race"]]
    return "yes" if person["income"] + person["savings"] / 10 > limit else "no"


def table(people: themis.InputTable) -> Any:
    limit = np.select([people["race"] == "green", people["race"] == "purple"], [300, 500], 400)
    return np.where(people["income"] + people["savings"] / 10 > limit, "yes", "no")


class Model:
    def predict(self, frame: Any) -> Any:
        return table(frame)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is run here first, batches have several tasks, and no call seems to take time.

    Those of a function of a table are cut by what they take; where one fails, which of its inputs
    are run alone depends on that.
    """
    Clock.put_into(monkeypatch, runner_module, base_module)
    monkeypatch.setattr(spread, "HERE_SECONDS", 0.0)
    monkeypatch.setattr(spread, "MOST", 128)


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    with loky.ProcessPoolExecutor(2) as executor:
        yield executor


def audit(subject: Any, executor: Any = None, **options: Any) -> themis.Audit:
    options = {"seed": 1, "favourable": ["yes"], "error": 0.1, **options}
    return themis.Audit(subject, SCHEMA, executor=executor, **options)


def everything(asked: themis.Audit) -> list[Any]:
    """What is measured, found and counted, in each kind of question."""
    with asked:
        results = [
            asked.score([("race",), ("race", "sex")]),
            asked.search_all(0.1, ["causal"], ["race", "sex", "income"]),
        ]
    return [replace(each, timing={}).to_dict() for each in results]


# What a subject does: everything is the same wherever it is asked ------------------------------
def leaving_out(people: themis.InputTable) -> Any:
    return table(people)[people["income"] % 100 != 1]


def unsendable(person: dict[str, Any]) -> Any:
    return (each for each in ()) if person["income"] % 10 == 1 else row(person)


def structured(people: themis.InputTable) -> Any:
    return {"decision": table(people), "points": people["income"] * 1.5}


OUTPUTS = [
    themis.Output(name="decision", at="decision", favourable=["yes"]),
    themis.Output(name="points", at="points", min=0, max=1500, cut=700),
]

HERE = os.getpid()
WAYS = [  # processes that run the slow ones load a library of frames first
    pytest.param(Model(), {}, id="model", marks=pytest.mark.slow),
    pytest.param(themis.batch(leaving_out), {"max_failures": 1.0}, id="leaves some out"),
    pytest.param(
        themis.batch(structured), {"outputs": OUTPUTS}, id="in parts", marks=pytest.mark.slow
    ),
    pytest.param(lambda p, here=HERE: row(p) if os.getpid() == here else "no", {}, id="differs"),
]


@pytest.mark.parametrize(("subject", "options"), WAYS)
def test_results_are_the_same_wherever_the_subject_runs(
    subject: Any, options: dict[str, Any], processes: Executor, request: pytest.FixtureRequest
) -> None:
    options = {"error": 0.25, **options}
    with ThreadPoolExecutor(3) as threads:
        here, *audits = [audit(subject, each, **options) for each in (None, threads, processes)]
        expected = [each.to_dict() for each in here.score([("race",)]).scores]
        for there in audits:
            assert [each.to_dict() for each in there.score([("race",)]).scores] == expected
            assert there.runner.failures.counts == here.runner.failures.counts
    differs = request.node.callspec.id == "differs"
    assert [note.code for note in there.apparatus.cache_notes] == ["executor-differs"] * differs


@pytest.mark.slow
def test_modules_are_imported_there_as_they_were_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: Executor
) -> None:
    """What a module sets when it is imported, and what is imported later, are there as well."""
    (tmp_path / "rules_of_loans.py").write_text(
        "import decimal\n\ndecimal.getcontext().prec = 2\n_limit = None\n\n"
        "def load():\n    global _limit\n    _limit = 300\n"
    )
    (tmp_path / "deciding_loans.py").write_text(
        "from decimal import Decimal\nfrom functools import lru_cache\n\n"
        "@lru_cache\ndef rules():\n    import rules_of_loans\n\n    rules_of_loans.load()\n"
        "    return rules_of_loans\n\n"
        "def decide(person):\n    limit = rules()._limit\n"
        "    points = Decimal(person['income']) + Decimal(person['savings']) / 3\n"
        "    return 'yes' if points > limit + 200 * (person['race'] == 'green') else 'no'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    subject = importlib.import_module("deciding_loans").decide
    asked = audit(subject, processes)
    with decimal.localcontext():  # the module lowers the precision of whoever imports it
        assert everything(asked) == everything(audit(subject))
    assert not asked.apparatus.cache_notes


def test_threads_of_libraries_are_as_many_as_before() -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")
    before = [each["num_threads"] for each in threadpoolctl.threadpool_info()]
    with ThreadPoolExecutor(4) as threads:
        audit(themis.batch(table), threads).causal("race")
    assert [each["num_threads"] for each in threadpoolctl.threadpool_info()] == before
    with pytest.raises(RequestError, match="takes no tasks"):  # as it was shut down
        audit(row, threads).causal("race")


def test_a_process_that_is_killed_is_replaced_and_nothing_is_lost(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    small = themis.Schema(race=["green", "purple"], income=range(10), savings=range(10))

    def decide(person: dict[str, Any]) -> str:
        if person["income"] == 0 and person["savings"] == 0 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return "yes" if person["income"] > (4 if person["race"] == "green" else 5) else "no"

    results = []
    for executor in ("processes:2", None):  # the first inputs, which are run here, kill nobody
        with themis.Audit(decide, small, favourable=["yes"], executor=executor, seed=1) as asked:
            results.append(replace(asked.score([("race",)]), timing={}))
        assert mark.exists()
    assert results[0] == results[1]


class Elsewhere(Pool):
    """A pool of one process, simulated here: one that dies takes its task with it."""

    name, workers = "elsewhere", 1
    inside = False

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        Elsewhere.inside = True
        try:
            future.set_result(function(*args))
        except GeneratorExit:  # which no subject catches
            future.set_exception(BrokenExecutor("it died"))
        finally:
            Elsewhere.inside = False
        return future

    def renew(self) -> None: ...


def run_elsewhere(deadly: int) -> tuple[list[Any], bool]:
    """The answers to 200 inputs, one of which kills processes, and whether a difference is told."""

    def decide(person: dict[str, Any]) -> int:
        if Elsewhere.inside and person["income"] == deadly:
            raise GeneratorExit
        return int(person["income"])

    told, function = list[bool](), RowFunction(decide, SCHEMA)
    subject = spread.SpreadSubject(function, Elsewhere(), lambda: told.append(True))
    codes = np.zeros((200, 4), dtype=SCHEMA.dtype, order="F")
    codes[:, 2] = range(200)
    return list(subject.load(codes).run().outputs), bool(told)


def test_what_kills_processes_stays_here_where_that_is_known_and_else_ends_the_run() -> None:
    assert run_elsewhere(3) == (list(range(200)), True)  # it was answered here before
    with pytest.raises(SubjectError, match="died 5 times"):
        run_elsewhere(100)


def test_what_cannot_travel_is_said(processes: Executor) -> None:
    lock = threading.Lock()

    def decide(person: dict[str, Any]) -> str:
        with lock:
            return row(person)

    with pytest.raises(RequestError, match=r"the subject can't be sent to other processes.*lock"):
        audit(decide, processes).causal("race")
    with pytest.raises(RequestError, match=r"an answer of the subject can't be sent.*generator"):
        audit(unsendable, processes, max_failures=0.5).causal("race")


def test_an_interrupt_ends_the_processes(tmp_path: Path) -> None:
    pids, driver = tmp_path / "pids", os.getpid()

    def decide(person: dict[str, Any]) -> str:
        if os.getpid() != driver:
            with pids.open("a") as file:
                file.write(f"{os.getpid()}\n")
            time.sleep(PATIENCE)
        return "yes"

    with interrupting(pids.exists):
        audit(decide, "processes:2").causal("race")
    wait_until(lambda: not any(map(is_alive, map(int, pids.read_text().split()))))


SLOW = """\
import pathlib
pathlib.Path(f"{os.getpid()}.pid").touch()
started = time.perf_counter()
while time.perf_counter() - started < 0.02:
    pass
return 1
"""


@pytest.mark.slow
@pytest.mark.parametrize("pause", [0.05, 1.1])
def test_ctrl_c_twice_leaves_no_traceback_and_no_process(tmp_path: Path, pause: float) -> None:
    write_project(tmp_path, SLOW)
    options = {"cwd": tmp_path, "start_new_session": True}
    driver = start("score", "--jobs", "2", "--error", "0.002", **options)
    wait_until(lambda: len([*tmp_path.glob("*.pid")]) >= 3)
    pids = [int(each.stem) for each in tmp_path.glob("*.pid")]
    for _ in range(2):
        os.killpg(driver.pid, signal.SIGINT)  # the driver is there until it is waited for
        time.sleep(pause)
    _, said = driver.communicate(timeout=PATIENCE)
    assert "Traceback" not in said
    assert driver.returncode in (130, -signal.SIGINT)  # the second may come after all was done
    wait_until(lambda: not any(map(is_alive, pids)))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        *((f"processes:{each}", "no number of processes above 0") for each in ("0", "", "-2", "x")),
        *((each, "is no executor") for each in ("proceses:4", "dask:local", "dask://")),
        *((each, "is no address") for each in ("dask://host:port", "dask://[::1")),
    ],
)
def test_what_is_no_executor_is_said(name: str, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        pool_of(name)


def test_programs_and_services_say_that_they_stay_with_the_driver(tmp_path: Path) -> None:
    said = run("score", str(write_command(tmp_path)), "--executor", "processes:2").output
    assert "processes:2 is not used" in said
    assert "a web service would get the requests of many machines" in " ".join(said.split())


DRIVER = """
import os, time
from pathlib import Path
import themis
from themis.engine.executors import spread

spread.HERE_SECONDS = 0.0
DRIVER, PLACE = os.getpid(), Path({place!r})

def decide(person):
    if os.getpid() != DRIVER:
        (PLACE / str(os.getpid())).touch()
        time.sleep(600)
    return "yes"

themis.Audit(decide, themis.Schema(race=["green", "purple"], income=range(10**6)),
             executor="processes:2").causal("race")
"""


@pytest.mark.slow
def test_processes_end_with_a_driver_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", DRIVER.format(place=str(tmp_path))]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as driver:
        wait_until(lambda: [*tmp_path.iterdir()])
        driver.kill()
    pids = [int(path.name) for path in tmp_path.iterdir()]
    wait_until(lambda: not any(map(is_alive, pids)))


# What a result says of where it ran ------------------------------------------------------------


def test_a_pool_is_named_where_it_ran_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    def named(executor: Any) -> str:
        return str(audit(row, executor, error=0.3).score([["race"]]).timing["executor"])

    with ThreadPoolExecutor(2) as threads:
        assert named(threads) == "ThreadPoolExecutor"
        monkeypatch.setattr(spread, "HERE_SECONDS", math.inf)
        assert [named(each) for each in ("processes:4", threads)] == ["in process"] * 2


def test_what_was_measured_before_a_cluster_was_lost_is_kept(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(BIASED)
    measure = Work.measure

    def lost(work: Work, *args: Any, **options: Any) -> object:
        if work._scores:
            raise SubjectError("the cluster is gone")
        return measure(work, *args, **options)

    monkeypatch.setattr(Work, "measure", lost)
    done = run("score", "-o", "result.json")
    assert (done.exit_code, "error: the cluster is gone" in done.stderr) == (3, True)
    saved = json.loads(Path("result.json").read_text())
    assert [each["measure"] for each in saved["scores"]] == ["causal"]
    assert saved["stopped"] == "failed"
