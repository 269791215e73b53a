"""A Dask cluster on this machine: a process with all that belongs to it, which ends at any time.

Dask itself closes no cluster that is still being started. So it is a session of its own, whose
processes are killed together, and nothing of it is in the process of the driver.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from importlib import import_module
from multiprocessing import resource_tracker

from themis.engine.executors.interrupts import settle_in
from themis.subjects.loading import processors

# Semaphores of processes that were killed are removed by one that would complain about it.
QUIET = ("-W", "ignore:resource_tracker")


class OwnCluster:
    """A scheduler and a process for each core; `address` waits for them."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="themis-dask-")
        said, theirs = os.pipe()
        self._said = os.fdopen(said, "rb")
        lines = (
            f"import sys; sys.path[:] = {list(map(str, sys.path))}; sys.argv[:] = {sys.argv}",
            f"from {__name__} import serve",
            f"serve({theirs}, {os.getpid()}, {self._folder!r})",
        )
        flags = (*subprocess._args_from_interpreter_flags(), *QUIET)  # type: ignore[attr-defined]
        try:
            self._process = subprocess.Popen(
                [sys.executable, *flags, "-c", "\n".join(lines)],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs],
            )
        finally:
            os.close(theirs)

    async def address(self) -> str:
        """Wait for its address; raises OSError where it ends before it has one."""
        said = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        pipe, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(said), self._said
        )
        try:
            address = await said.read()
        finally:
            pipe.close()
        if not address:
            raise OSError("its processes ended while they were started")
        return address.decode()

    def end(self) -> None:
        """Kill what was started."""
        self._said.close()
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:  # it was about to begin
            self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def serve(pipe: int, driver: int, folder: str) -> None:
    """Be the cluster, and say its address: one thread for each core, and no limit of memory.

    What Dask logs is not shown: that processes come and go, and take their time.
    """

    def end() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        os.killpg(0, signal.SIGKILL)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource_tracker.ensure_running()  # outside of the session, after which it cleans up
    os.setsid()
    settle_in(driver, end)
    # Else Dask gives up a worker that is just being replaced 15 s after one of its deaths.
    import_module("dask").config.set({"distributed.deploy.lost-worker-timeout": "1000 days"})
    cluster = import_module("distributed").LocalCluster(
        n_workers=processors(),
        threads_per_worker=1,
        memory_limit=0,
        dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # else a second one meets the first
        local_directory=folder,
        silence_logs=logging.CRITICAL,
    )
    with os.fdopen(pipe, "w") as said:
        said.write(cluster.scheduler_address)
    while True:
        signal.pause()
