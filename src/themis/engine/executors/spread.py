"""A subject whose batches are cut into tasks, which other processes run."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from themis.engine.executors.pools import PROCESSES, GivenPool, Pool, ProcessPool
from themis.engine.executors.travel import Missing, Packed, one_thread, pack, run_task
from themis.engine.variants import Drawn, Inputs, codes_of
from themis.errors import RequestError, SubjectError, suggest
from themis.inputs.characteristics import Codes
from themis.subjects.base import Answers, Around, Batch, Subject, heed
from themis.subjects.decisions import Failure, OutputColumns

HERE_SECONDS = 1.0  # work that is done here first: what takes less needs no other process
TASK_SECONDS = 0.5  # that a task takes, about
LEAST_SECONDS = 0.005  # a shorter one costs more than it saves
FEWEST, MOST = 16, 65_536  # inputs that are compared where none was run here, and of a task
COMPARED, COMPARED_SECONDS = 1_000, 0.5  # inputs that are run there and here, at most
IN_FLIGHT = 2  # tasks for each worker that are on their way
DEATHS = 5  # rounds of tasks in which processes may die
DASK = "dask://", "dask+tls://"
TURN = 0.5  # seconds after which an interrupt is heard at the latest

Part = Sequence[int]  # places of a batch, one after another


class SpreadSubject(Around):
    """A subject of this process that runs in a pool's, with the same answers in the same order.

    The first second of work is done here. After that each batch is cut by what an input takes. A
    process that dies is replaced.
    """

    def __init__(self, subject: Subject, pool: Pool, tell: Callable[[], None]) -> None:
        super().__init__(subject)
        self._pool = pool
        self._tell = tell  # that it answers differently there
        self.schema = subject.schema
        self.traits = replace(subject.traits, executor=pool.name)
        self._name = uuid4().hex  # of the subject, in processes that have it
        self._seconds, self._inputs = 0.0, 0  # of work so far, wherever
        self._seen: tuple[NDArray[Any], Answers] | None = None  # a call here, to compare
        self._agrees: bool | None = None  # whether it answers there as here; None: not yet known

    @cached_property
    def _packed(self) -> Packed:
        return pack(self.inside, files=self._pool.shares_files)

    def load(self, codes: Inputs) -> Batch:
        return _Batch(self._run, codes)

    def close(self) -> None:
        self.inside.close()
        self._pool.stop()

    def _run(self, codes: Inputs) -> Answers:
        heed(self.deadline)
        if not len(codes) or self._agrees is False or self._seconds < HERE_SECONDS:
            return self._run_here(codes)
        gathered = _Gathered(len(codes))
        try:
            while not self._pool.open(min(heed(self.deadline), TURN)):
                pass
            if self._agrees is None:
                self._compare(codes)
            if self._agrees:
                self._run_there(codes, gathered)
        except BaseException:
            self.unfinished = gathered.answers()
            self._pool.stop()
            raise
        # Which of many culprits are found depends on the call.
        unfit = self.traits.vectorised and gathered.isolated
        return self._run_here(codes) if unfit or not self._agrees else gathered.answers()

    def _compare(self, codes: Inputs) -> None:
        """Find out whether it answers there as here, before anything else is run there.

        A process that imports other modules, or the same with another state, is another program;
        so is one that dies, twice, of what was answered here.
        """
        if self._seen is None:
            self._run_here(codes[:FEWEST])
        assert self._seen is not None
        given, answers = self._seen
        gathered = _Gathered(len(given))
        if lost := self._try_all(self._tasks(given, range(len(given)), gathered)):
            self._pool.renew()
            lost = self._try_all(lost)
        self._agrees, self._seen = not lost and _agree(answers, gathered.answers()), None
        if not self._agrees:
            self._tell()
            self.ran_elsewhere = False
            self._pool.stop()

    def _run_here(self, codes: Inputs) -> Answers:
        """The answers of this process, call by call as without an executor."""
        gathered, size = _Gathered(len(codes)), self.call_inputs or len(codes) or 1
        try:
            for first in range(0, len(codes), size):
                part = range(first, min(first + size, len(codes)))
                gathered.add(part, self._call_here(codes_of(_at(codes, part))))
        except BaseException:
            if self.inside.unfinished is not None:
                gathered.add(part, self.inside.unfinished)
            self.unfinished = gathered.answers()
            raise
        return gathered.answers()

    def _call_here(self, codes: NDArray[Any]) -> Answers:
        subject, started = self.inside, time.perf_counter()
        subject.deadline, subject.unfinished = self.deadline, None
        try:
            with one_thread():
                answers = subject.load(codes).run()
            self._keep_to_compare(codes, answers, time.perf_counter() - started)
            return answers
        finally:
            self._note(len(codes), time.perf_counter() - started)

    def _keep_to_compare(self, codes: NDArray[Any], answers: Answers, seconds: float) -> None:
        """The call with the most inputs, as far as there is time for them."""
        if self._agrees is not None or not len(codes):
            return
        most = min(COMPARED, int(COMPARED_SECONDS * len(codes) / max(seconds, 1e-9)))
        count = min(len(codes), max(most, 1))
        isolated = self.traits.vectorised and answers.calls > 1  # its culprits are those of a call
        if self._seen is None or (count > len(self._seen[0]) and not isolated):
            self._seen = codes[:count].copy(), _first(answers, count)

    def _note(self, inputs: int, seconds: float) -> None:
        self._seconds += seconds
        self._inputs += inputs

    def _run_there(self, codes: Inputs, gathered: _Gathered) -> None:
        """Run these inputs in tasks, several at the same time, the first ones first."""
        tasks = self._tasks(codes, range(len(codes)), gathered)
        for _ in range(DEATHS):
            tasks = self._try_all(tasks)
            if not tasks:
                return
            self._pool.renew()
        raise SubjectError(
            f"the processes that ran it died {DEATHS} times; a program of its own (kind = "
            '"command") can be run on all other inputs, and those that kill it are named'
        )

    @property
    def _each(self) -> float:
        """Seconds that an input took so far."""
        return self._seconds / max(self._inputs, 1)

    def _tasks(self, codes: Inputs, places: Part, gathered: _Gathered) -> list[_Task]:
        parts = cut(places, self._each, self._pool.workers)
        return [_Task(codes, part, gathered) for part in parts]

    def _submit(self, task: _Task, missing: Missing | None) -> Future[Any]:
        """Begin a task, with what its process is missing."""
        packed = self._packed if missing is Missing.SUBJECT else None
        inputs = _at(task.codes, task.part)
        if missing is not None and isinstance(inputs, Drawn):
            inputs = replace(inputs, with_streams=True)
        return self._pool.submit(run_task, self._name, packed, inputs)

    def _try_all(self, tasks: Sequence[_Task]) -> list[_Task]:
        """Run these tasks; those whose process died, or whose pool did, come back."""
        waiting: dict[Future[Any], _Task] = {}
        try:
            return self._finish(deque((task, None) for task in tasks), waiting)
        finally:
            for begun in waiting:
                begun.cancel()  # in an executor of the user's own, which goes on

    def _finish(self, ready: Ready, waiting: dict[Future[Any], _Task]) -> list[_Task]:
        lost: list[_Task] = []
        room = IN_FLIGHT * self._pool.workers
        while waiting or (ready and not lost):
            try:
                while ready and len(waiting) < room and not lost:
                    task, missing = ready[0]
                    waiting[self._submit(task, missing)] = task
                    ready.popleft()
            except self._pool.lost:
                lost.append(ready.popleft()[0])
            turn = min(heed(self.deadline), TURN)
            finished = wait(waiting, turn, FIRST_COMPLETED).done
            if waiting and not finished:
                self._pool.check()
            for ended in finished:
                task = waiting.pop(ended)
                try:
                    done = ended.result()
                except self._pool.lost:
                    lost.append(task)
                    continue
                if isinstance(done, Missing):
                    ready.appendleft((task, done))  # before others ask for it, too
                    continue
                task.gathered.add(task.part, done.answers)
                self.ran_elsewhere = True
                self._note(len(task.part), done.seconds)
        return sorted([*lost, *(task for task, _ in ready)], key=lambda each: each.part[0])


def cut(places: Part, seconds: float, workers: int) -> list[Part]:
    """Places of a batch as equal parts of about the wanted time, as many for each worker.

    A part that were left over at the end would keep all workers but one waiting.
    """
    count = len(places)
    size, least = (max(int(each / max(seconds, 1e-9)), 1) for each in (TASK_SECONDS, LEAST_SECONDS))
    needed = -(-count // min(size, MOST))
    even = -(-needed // workers) * workers
    parts = min(even, max(count // least, needed))
    edges = [count * number // max(parts, 1) for number in range(parts + 1)]
    return [places[start:end] for start, end in pairwise(edges)]


class _Batch:
    """Inputs that are run as they are given, codes or described."""

    def __init__(self, run: Callable[[Inputs], Answers], inputs: Inputs) -> None:
        self._run, self._inputs = run, inputs

    def overwrite(self, column: int, codes: Codes | int) -> None:
        self._inputs = codes_of(self._inputs).copy()
        self._inputs[:, column] = codes

    def take(self, places: NDArray[np.int64]) -> Batch:
        return _Batch(self._run, self._inputs[places])

    def run(self) -> Answers:
        return self._run(self._inputs)


@dataclass(frozen=True, eq=False)
class _Task:
    """A part of a batch that is run elsewhere, and where its answers go."""

    codes: Inputs
    part: Part
    gathered: _Gathered


Ready: TypeAlias = deque[tuple[_Task, Missing | None]]  # with what its process is missing


class _Gathered:
    """The answers to the parts of a batch, in whatever order they come in."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._parts: dict[int, Answers] = {}
        self.isolated = False  # whether calls failed

    def add(self, part: Part, answers: Answers) -> None:
        """Take the answers of a part."""
        # Who is to blame, and whether anybody is, may lie in how tasks were cut.
        self.isolated = self.isolated or answers.calls > 1 or bool(answers.failures)
        self._parts[part[0]] = answers

    def answers(self) -> Answers:
        """All of them, in order; None in the places of those that have not come in."""
        outputs, failures, given, calls, end = list[Any](), dict[int, Failure](), 0, 0, 0
        for start, each in sorted(self._parts.items()):
            if end < start:
                outputs.append([None] * (start - end))
            outputs.append(each.outputs)
            failures |= {start + place: failure for place, failure in each.failures.items()}
            end = start + len(each.outputs)
            given += len(each.outputs) if each.given is None else each.given
            calls += each.calls
        if end < self._count:
            outputs.append([None] * (self._count - end))
        return Answers(_joined(outputs), failures, given, calls)


def _at(codes: Inputs, part: Part) -> Inputs:
    return codes[part[0] : part[-1] + 1]


def _joined(parts: Sequence[Any]) -> Any:
    """Outputs one after another, as one array where the parts are arrays of one kind."""
    if all(isinstance(part, np.ndarray) for part in parts):
        if len({part.dtype.kind for part in parts}) == 1:
            return np.concatenate(parts)
    elif all(isinstance(part, OutputColumns) for part in parts):
        names = list(parts[0].columns)
        if all(list(part.columns) == names for part in parts):
            joined = {name: _joined([part.columns[name] for part in parts]) for name in names}
            return OutputColumns(joined, sum(map(len, parts)))
    return [output for part in parts for output in _as_list(part)]


def _first(answers: Answers, count: int) -> Answers:
    """The answers to the first inputs of a call."""
    failures = {place: each for place, each in answers.failures.items() if place < count}
    return Answers(_as_list(answers.outputs)[:count], failures)


def _agree(expected: Answers, found: Answers) -> bool:
    """Whether inputs got the same answers elsewhere as here.

    Those that failed here with all of a larger call may not fail there.
    """
    with_others = {place for place, each in expected.failures.items() if not each.alone}
    return all(
        one == other or place in with_others
        for place, (one, other) in enumerate(zip(_texts(expected), _texts(found), strict=True))
    )


def _texts(answers: Answers) -> list[str | None]:
    """Outputs as they are written, None in the places of failures."""
    outputs = enumerate(_as_list(answers.outputs))
    return [None if place in answers.failures else repr(each) for place, each in outputs]


def _as_list(outputs: Any) -> list[Any]:
    return outputs if isinstance(outputs, list) else list(outputs.tolist())


def pool_of(executor: str | Executor) -> Pool:
    """The pool that a text names, or that is given."""
    if isinstance(executor, Executor):
        return GivenPool(executor)
    if executor.startswith(PROCESSES):
        return ProcessPool(_processes(executor))
    if executor.startswith(DASK) and not executor.endswith("://"):
        from themis.engine.executors.dask_pool import DaskPool

        return DaskPool(executor)
    kinds = ("processes:4", "dask://local", "dask://host:8786", "dask+tls://host:8786")
    problem = f"{executor!r} is no executor"
    raise RequestError.one("executor", "executor", problem, suggest(executor, kinds))


def _processes(executor: str) -> int:
    """How many processes a text asks for."""
    number = executor.removeprefix(PROCESSES)
    if number.isdecimal() and int(number):
        return int(number)
    problem = f"{executor!r} names no number of processes above 0"
    raise RequestError.one("executor", "executor", problem, "write for example processes:2")
