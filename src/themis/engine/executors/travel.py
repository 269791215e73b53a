"""Subjects that travel to other processes: packed here, unpacked and run there.

A task is the name of a subject, and codes, or which rows of a stream are its inputs. A process that
does not know the subject or the stream asks for it once, and keeps it.
"""

from __future__ import annotations

import hashlib
import os
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

from themis.engine.drawn import Drawn, Inputs, Streams
from themis.errors import RequestError
from themis.subjects.base import Answers, Subject

MOST_KNOWN = 4  # subjects that a process keeps for each of its threads
MOST_STREAMS = 2  # of a subject: each keeps what it drew last
_INSTALLED = ("stdlib", "platstdlib", "purelib", "platlib")

_known: OrderedDict[tuple[str, int], _Known] = OrderedDict()
_lock = threading.RLock()  # a module that is imported may fork


@dataclass(frozen=True)
class Done:
    """What came of a task; no answers where one of them can't be sent back."""

    answers: Answers | None
    seconds: float = 0.0


class Missing(Enum):
    """What a process must be sent before it can run a task."""

    SUBJECT, STREAM = range(2)


@dataclass(frozen=True)
class Packed:
    """A subject on its way: its own modules are imported where they are found, or sent along."""

    by_name: bytes | None
    modules: dict[str, tuple[str, str]]  # of the user's own: file and hash
    path: tuple[str, ...]  # where modules are looked for
    by_value: bytes | None
    process: int
    reasons: list[str] = field(default_factory=list)  # why one of the ways is closed


def pack(subject: Subject) -> Packed:
    """The subject as it travels; raises RequestError where no way is open."""
    own, reasons = _own_modules(), []

    def tried(how: Any) -> bytes | None:
        try:
            with how:
                packed: bytes = cloudpickle.dumps(subject)
                return packed
        except Exception as error:
            reasons.append(f"{type(error).__name__}: {error}")
            return None

    by_name, by_value = tried(_by_value([])), tried(_by_value(own))
    if by_name is None and by_value is None:
        raise _stays_here(reasons[0])
    folders = dict.fromkeys(str(_root(each)) for each in own)
    files = {each.__name__: str(each.__file__) for each in own}
    # One whose file is gone is no reason to send others by value: it can't be imported anywhere.
    modules = {name: (file, _hash(file)) for name, file in files.items() if Path(file).is_file()}
    return Packed(by_name, modules, (*folders, *sys.path), by_value, os.getpid(), reasons)


def run_task(name: str, packed: Packed | None, inputs: Inputs) -> Done | Missing:
    """Run these inputs in this process, or say what it does not know yet."""
    key = name, threading.get_ident()
    known = _known.get(key)
    if known is None:
        if packed is None:
            return Missing.SUBJECT
        with _lock:  # modules are imported by one thread at a time
            known = _known[key] = _Known(_unpack(packed))
            while len(_known) > MOST_KNOWN * threading.active_count():
                _known.popitem(last=False)
    started = time.perf_counter()
    codes = known.codes(inputs)
    if codes is None:
        return Missing.STREAM
    with one_thread():
        answers = known.subject.load(codes).run()
        return Done(answers if _can_be_sent(answers) else None, time.perf_counter() - started)


@dataclass
class _Known:
    """What a process keeps of a subject: itself, and of which streams its inputs are drawn."""

    subject: Subject
    streams: OrderedDict[str, Streams] = field(default_factory=OrderedDict)

    def codes(self, inputs: Inputs) -> NDArray[Any] | None:
        """The inputs of a task; None where they are of a stream that is not known.

        One that gives other inputs here, where versions differ, is not kept: codes are sent then.
        """
        if not isinstance(inputs, Drawn):
            return inputs
        if inputs.given is not None:
            if inputs.streams is not None and np.array_equal(inputs.codes(), inputs.given):
                self.streams[inputs.name] = inputs.streams
                while len(self.streams) > MOST_STREAMS:
                    self.streams.popitem(last=False)
            return inputs.given
        if inputs.name not in self.streams:
            return None
        self.streams.move_to_end(inputs.name)
        return replace(inputs, streams=self.streams[inputs.name]).codes()


def _unpack(packed: Packed) -> Subject:
    """The subject by the names of its modules, if they are here as they were there, or by value."""
    reasons = list(packed.reasons)
    here = all(_hash(file) == content for file, content in packed.modules.values())
    for way in (packed.by_name if here else None, packed.by_value):
        if way is None:
            continue
        try:
            if way is packed.by_name and packed.process != os.getpid():
                _prepare_imports(packed)
            subject: Subject = pickle.loads(way)
            return subject
        except Exception as error:  # what it needs is not installed there, most often
            reasons.append(f"{type(error).__name__}: {error}")
    raise _stays_here(reasons[0] if reasons else "its modules are not there")


def _prepare_imports(packed: Packed) -> None:
    """Let modules be found as in the sender, and none of the same name from elsewhere."""
    sys.path[:] = list(dict.fromkeys([*packed.path, *sys.path]))
    for name, (file, content) in packed.modules.items():
        loaded = getattr(sys.modules.get(name), "__file__", None)
        if loaded is not None and (loaded, _loaded.get(name, content)) != (file, content):
            del sys.modules[name]
        _loaded[name] = content


_loaded: dict[str, str] = {}  # what own modules were when they were imported for a subject


def _can_be_sent(answers: Answers) -> bool:
    """Whether the answers can go back; arrays of numbers and texts always can."""
    outputs = answers.outputs
    if isinstance(outputs, np.ndarray) and outputs.dtype != object:
        return True
    try:
        pickle.dumps(answers)
    except Exception:
        return False
    return True


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


def _begin_anew() -> None:
    """In a forked process: calls that other threads were in are not made there."""
    global _nested
    _nested = 0
    _lock.release()


if hasattr(os, "register_at_fork"):
    # A process that is forked while another thread sets limits would find locks of these libraries
    # held, by nobody.
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_begin_anew
    )


def _own_modules() -> list[ModuleType]:
    """The modules that were imported from no installed package."""
    installed = {Path(sysconfig.get_path(kind)).resolve() for kind in _INSTALLED}
    return [
        module
        for name, module in list(sys.modules.items())
        if isinstance(module, ModuleType)
        and name == module.__name__
        and name.split(".")[0] not in ("themis", "__main__", "__mp_main__")
        and (file := getattr(module, "__file__", None)) is not None
        and installed.isdisjoint(Path(file).resolve().parents)
    ]


def _root(module: ModuleType) -> Path:
    """The folder from which a module was imported."""
    file = Path(str(module.__file__)).resolve()
    levels = module.__name__.count(".") + (file.name == "__init__.py")
    return file.parents[levels]


def _hash(file: str) -> str:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return f"not there: {os.urandom(8).hex()}"  # equal to nothing


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


def _stays_here(reason: str) -> RequestError:
    return RequestError.one(
        "subject-stays-here",
        "executor",
        f"the subject can't be sent to other processes: {reason}",
        "run it here, without an executor, or make what can't be sent where it is first needed",
    )
