"""Subjects that travel to other processes: packed here, unpacked and run there.

A task is a few codes and the name of a subject. A process that does not know the subject asks for
it once, and keeps it.
"""

from __future__ import annotations

import pickle
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
from numpy.typing import NDArray

from themis.errors import RequestError
from themis.subjects.base import Answers, Subject

_HERE = ("themis", "__main__")  # of which nothing is packed: it is there, or packed anyhow

_known: dict[tuple[str, int], Subject] = {}  # of this process, one for each thread


@dataclass(frozen=True)
class Done:
    """What came of a task."""

    answers: Answers
    seconds: float


def pack(subject: Subject) -> bytes:
    """The subject as bytes; modules of the user's own travel with it, installed ones do not."""
    try:
        with _by_value(_own_modules()):
            return _dumps(subject)
    except Exception as first:
        try:
            return _dumps(subject)
        except Exception:
            raise _stays_here(f"{type(first).__name__}: {first}") from first


def _dumps(subject: Subject) -> bytes:
    packed: bytes = cloudpickle.dumps(subject)
    return packed


def run_task(name: str, packed: bytes | None, codes: NDArray[Any]) -> Done | None:
    """Run these inputs in this process; None where it does not know the subject yet."""
    key = name, threading.get_ident()
    subject = _known.get(key)
    if subject is None:
        if packed is None:
            return None
        try:
            subject = pickle.loads(packed)
        except Exception as error:  # what it needs is not installed there, most often
            raise _stays_here(f"{type(error).__name__}: {error}") from None
        _known[key] = subject
    with one_thread():
        started = time.perf_counter()
        return Done(subject.load(codes).run(), time.perf_counter() - started)


@contextmanager
def one_thread() -> Iterator[None]:
    """Within, libraries that compute with several threads use one, here as everywhere."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:  # then there is no library either that would need it
        yield
        return
    with threadpool_limits(limits=1):
        yield


def _own_modules() -> list[ModuleType]:
    """The modules that were imported from no installed package."""
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    installed = {Path(sysconfig.get_path(kind)).resolve() for kind in kinds}
    return [
        module
        for name, module in list(sys.modules.items())
        if isinstance(module, ModuleType)
        and name.split(".")[0] not in _HERE
        and (file := getattr(module, "__file__", None)) is not None
        and installed.isdisjoint(Path(file).resolve().parents)
    ]


@contextmanager
def _by_value(modules: list[ModuleType]) -> Iterator[None]:
    chosen = [each for each in modules if each.__name__ in sys.modules]
    for each in chosen:
        cloudpickle.register_pickle_by_value(each)
    try:
        yield
    finally:
        for each in chosen:
            cloudpickle.unregister_pickle_by_value(each)


def _stays_here(reason: str) -> RequestError:
    return RequestError.one(
        "subject-stays-here",
        "executor",
        f"the subject can't be sent to other processes: {reason}",
        "run it here (--jobs 1), or load what can't be sent where it is needed first, and not when "
        "its module is imported",
    )
