"""Subjects that travel to other processes: packed here, unpacked and run there.

A task is the name of a subject, and codes, or which rows of a stream are its inputs. A process that
does not know the subject or the stream asks for it once, and keeps it.
"""

from __future__ import annotations

import pickle
import sys
import sysconfig
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import numpy as np
from numpy.typing import NDArray

from themis.engine.variants import Drawn, Inputs, Streams
from themis.errors import RequestError
from themis.subjects.base import Answers, Subject

MOST_STREAMS = 2  # of a subject: each keeps what it drew last
INSTALLED = {"site-packages", "dist-packages"}  # folders of packages, wherever they are

_known: OrderedDict[tuple[str, int], _Known] = OrderedDict()
_lock = threading.RLock()  # a module that is imported may fork


@dataclass(frozen=True)
class Done:
    """What came of a task."""

    answers: Answers
    seconds: float = 0.0


class Missing(Enum):
    """What a process must be sent before it can run a task."""

    SUBJECT, STREAM = range(2)


@dataclass(frozen=True)
class Packed:
    """A subject on its way."""

    text: bytes
    path: tuple[str, ...]  # where its modules are looked for; empty: they are sent along
    numpy: str = np.__version__  # others may draw other inputs


def pack(subject: Subject, *, files: bool = True) -> Packed:
    """The subject as it travels to a process that has the same `files`, or not.

    Raises RequestError where something of it can't be sent.
    """
    own = _own_modules()
    try:
        with _by_value([] if files else own):
            text: bytes = cloudpickle.dumps(subject)
    except Exception as error:
        raise _stays_here(error) from None
    folders = dict.fromkeys(str(_root(each)) for each in own)
    return Packed(text, (*folders, *sys.path) if files else ())


def run_task(name: str, packed: Packed | None, inputs: Inputs) -> Done | Missing:
    """Run these inputs in this process, or say what it does not know yet."""
    key = name, threading.get_ident()
    known = _known.get(key)
    if known is None:
        if packed is None:
            return Missing.SUBJECT
        with _lock:  # modules are imported by one thread at a time
            known = _known[key] = _Known(_unpack(packed))
            # A process keeps a few subjects for each of its threads.
            while len(_known) > 4 * threading.active_count():
                _known.popitem(last=False)
    started = time.perf_counter()
    codes = known.codes(inputs)
    if codes is None:
        return Missing.STREAM
    with one_thread():
        answers = known.subject.load(codes).run()
        _check_sending(answers)
        return Done(answers, time.perf_counter() - started)


@dataclass
class _Known:
    """What a process keeps of a subject: itself, and of which streams its inputs are drawn."""

    subject: Subject
    streams: OrderedDict[str, Streams] = field(default_factory=OrderedDict)

    def codes(self, inputs: Inputs) -> NDArray[Any] | None:
        """The inputs of a task; None where they are of a stream that is not known."""
        if not isinstance(inputs, Drawn):
            return inputs
        if inputs.streams is not None:
            self.streams[inputs.name] = inputs.streams
            while len(self.streams) > MOST_STREAMS:
                self.streams.popitem(last=False)
        if inputs.name not in self.streams:
            return None
        self.streams.move_to_end(inputs.name)
        return replace(inputs, streams=self.streams[inputs.name]).codes()


def _unpack(packed: Packed) -> Subject:
    try:
        sys.path += [each for each in packed.path if each not in sys.path]
        if packed.numpy != np.__version__:
            raise ImportError(f"NumPy is {packed.numpy} here and {np.__version__} there")
        subject: Subject = pickle.loads(packed.text)
        return subject
    except Exception as error:  # what it needs is not installed there, most often
        raise _stays_here(error) from None


def _check_sending(answers: Answers) -> None:
    """Raise RequestError where answers can't go back; arrays of numbers and texts always can."""
    outputs = answers.outputs
    if isinstance(outputs, np.ndarray) and outputs.dtype != object:
        return
    try:
        pickle.dumps(answers)
    except Exception as error:
        raise _stays_here(error, "an answer of the subject") from None


_nested = 0
_limits: Any = None


@contextmanager
def one_thread() -> Iterator[None]:
    """Within, libraries that compute with several threads use one, here as everywhere."""
    global _nested, _limits
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:  # then there is no library either that would need it
        yield
        return
    with _lock:
        if not _nested:
            _limits = threadpool_limits(limits=1)
        _nested += 1
    try:
        yield
    finally:
        with _lock:
            _nested -= 1
            if not _nested:
                _limits.restore_original_limits()


def _own_modules() -> list[ModuleType]:
    """The modules that were imported from no installed package."""
    library = Path(sysconfig.get_path("stdlib")).resolve()
    return [
        module
        for name, module in list(sys.modules.items())
        if isinstance(module, ModuleType)
        and name == module.__name__
        and name.split(".")[0] not in ("themis", "__main__", "__mp_main__")
        and (file := getattr(module, "__file__", None)) is not None
        and INSTALLED.isdisjoint((place := Path(file).resolve()).parts)
        and library not in place.parents
    ]


def _root(module: ModuleType) -> Path:
    """The folder from which a module was imported."""
    file = Path(str(module.__file__)).resolve()
    levels = module.__name__.count(".") + (file.name == "__init__.py")
    return file.parents[levels]


@contextmanager
def _by_value(modules: list[ModuleType]) -> Iterator[None]:
    """Within, these modules are packed themselves, not their names."""
    for each in modules:
        cloudpickle.register_pickle_by_value(each)
    try:
        yield
    finally:
        for each in modules:
            cloudpickle.unregister_pickle_by_value(each)


def _stays_here(error: Exception, what: str = "the subject") -> RequestError:
    return RequestError.one(
        "subject-stays-here",
        "executor",
        f"{what} can't be sent to other processes: {type(error).__name__}: {error}",
        "run it here, without an executor, or make what can't be sent where it is first needed",
    )
