"""The same answers on a real Dask cluster, whose workers get killed."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import themis
from tests.engine.test_executors import SUBJECTS, audit, everything
from tests.external import PATIENCE
from themis.engine.executors import dask_pool, spread
from themis.errors import SubjectError

distributed = pytest.importorskip("distributed", reason="Dask is not installed")
pytestmark = [
    pytest.mark.slow,
    # A worker that is killed leaves sockets of the driver's own cluster behind.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:distributed"),
]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "HERE_SECONDS", 0.0)
    monkeypatch.setattr(spread, "MOST", 128)


@pytest.fixture
def cluster() -> Iterator[Any]:
    with a_cluster(n_workers=2, threads_per_worker=1) as cluster:
        yield cluster


def a_cluster(**options: Any) -> Any:
    """One that takes any port, for other tests run beside."""
    anywhere = {"dashboard_address": "127.0.0.1:0"}
    return distributed.LocalCluster(dashboard_address=None, scheduler_kwargs=anywhere, **options)


def test_two_clusters_of_our_own_run_beside_each_other() -> None:
    pools = [dask_pool.DaskPool("dask://local") for _ in range(2)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert [pool.submit(pow, 2, 3).result() for pool in pools] == [8, 8]
    finally:
        for pool in pools:
            pool.stop()


def test_a_large_subject_is_sent_without_a_warning(cluster: Any) -> None:
    pool = dask_pool.DaskPool(address(cluster))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert pool.submit(len, bytes(11_000_000)).result() == 11_000_000
    finally:
        pool.stop()


def address(cluster: Any) -> str:
    return str(cluster.scheduler_address).replace("tcp://", "dask://")


def test_results_are_the_same_on_a_cluster(cluster: Any) -> None:
    for subject in SUBJECTS.values():
        assert everything(audit(subject, address(cluster))) == everything(audit(subject))


def slow(person: dict[str, Any]) -> str:
    time.sleep(0.002)
    limit = 300 if person["race"] == "green" else 500
    return "yes" if person["income"] > limit else "no"


def worker_pids(cluster: Any) -> list[int]:
    with distributed.Client(cluster) as client:
        return list(client.run(os.getpid).values())


def test_workers_that_are_killed_lose_nothing(cluster: Any) -> None:
    killed: list[int] = []
    done = threading.Event()

    def kill() -> None:
        while not done.wait(1.0) and len(killed) < 2:
            killed.append(worker_pids(cluster)[0])
            os.kill(killed[-1], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        there = everything(audit(slow, address(cluster)))
    finally:
        done.set()
        thread.join(PATIENCE)
    assert killed
    assert there == everything(audit(slow))


def test_workers_may_come_and_go(cluster: Any) -> None:
    def scale() -> None:
        for workers in (3, 1):
            time.sleep(1.0)
            cluster.scale(workers)

    thread = threading.Thread(target=scale)
    thread.start()
    there = everything(audit(slow, address(cluster)))
    thread.join()
    assert there == everything(audit(slow))


def test_a_lost_scheduler_is_said(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_pool, "PATIENCE", 2)
    timer = threading.Timer(1.0, cluster.close)

    def forever(person: dict[str, Any]) -> str:
        time.sleep(0.05)
        return "yes"

    asked = themis.Audit(forever, themis.Schema(race=["a", "b"], n=range(10**6)),
                         executor=address(cluster), error=0.01)  # fmt: skip
    timer.start()
    with pytest.raises(SubjectError, match="does not answer"):
        asked.causal("race")
    timer.join()


def test_an_answer_that_came_is_taken_though_its_worker_was_lost_since(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = dask_pool.DaskPool(address(cluster))
    try:
        pool.open(None)
        monkeypatch.setattr(distributed.Future, "status", property(lambda _: "lost"))
        assert pool.submit(print).result(PATIENCE) is None
    finally:
        pool.stop()


def test_a_task_for_a_client_that_has_given_up_is_lost(cluster: Any) -> None:
    pool = dask_pool.DaskPool(address(cluster))
    try:
        pool.open(None)
        pool._client.close()
        with pytest.raises(pool.lost):
            pool.submit(pow, 2, 3)
    finally:
        pool.stop()


def test_a_scheduler_that_is_not_there_is_said() -> None:
    with pytest.raises(SubjectError, match=r"dask://127.0.0.1:9 does not answer"):
        audit(slow, "dask://127.0.0.1:9").causal("race")


def test_a_scheduler_without_workers_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_pool, "ALONE_SECONDS", 1)
    with a_cluster(n_workers=0) as empty:
        name = address(empty)
        with pytest.raises(SubjectError, match=f"{name} has no worker"):
            audit(slow, name).causal("race")
