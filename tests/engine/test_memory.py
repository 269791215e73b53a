"""Memory against a dictionary: what was put in is found, whichever way it is held."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from themis.engine import memory as memory_module
from themis.engine.account import Ledger
from themis.engine.memory import Memory
from themis.inputs.keys import InputKeys
from themis.subjects.decisions import FAILED

BYTE = np.dtype(np.int8)
SMALL = (3, 4, 5)
HUGE = (3, 4 * 10**12, 5 * 10**12)

Input = tuple[int, ...]


def inputs_of(sizes: Input) -> Any:
    """Inputs with codes at both ends and between them."""
    return st.tuples(*(st.sampled_from([0, 1, size // 2, size - 1]) for size in sizes))


def asked_of(sizes: Input) -> Any:
    """Inputs that are asked for, batch by batch."""
    return st.lists(st.lists(inputs_of(sizes), max_size=8), max_size=4)


def codes_of(inputs: list[Input]) -> Any:
    return np.array(inputs, dtype=np.int64).reshape(-1, 3)


@contextmanager
def held(*, dense: bool) -> Iterator[None]:
    """Within, memories of small domains are arrays or sorted keys."""
    with pytest.MonkeyPatch.context() as patch:
        if not dense:
            patch.setattr(memory_module, "WHOLE_LIMIT", 0)
        yield


def settled(
    memory: Memory, asked: list[Input], ran: list[Input], *, keeps_failures: bool = True
) -> list[int]:
    """What is settled of these; an input fails where the sum of its codes is a multiple of 3."""

    def run(places: Any) -> Any:
        ran.extend(asked[place] for place in places)
        return np.array([_answer(asked[place]) for place in places], dtype=np.int8)

    keys = memory.keys.of(codes_of(asked))
    return memory.settle(keys, run, keeps_failures=keeps_failures).tolist()


def _answer(each: Input) -> int:
    return FAILED if sum(each) % 3 == 0 else sum(each) % 100


@pytest.mark.parametrize(("sizes", "dense"), [(SMALL, True), (SMALL, False), (HUGE, False)])
@pytest.mark.parametrize("keeps_failures", [True, False])
@given(st.data())
@settings(max_examples=15)
def test_what_is_settled_is_run_once_as_it_appears_and_counted(
    sizes: Input, dense: bool, keeps_failures: bool, data: st.DataObject
) -> None:
    with held(dense=dense):
        ledger, ran, known, expected = Ledger(), [], set(), []
        memory = Memory(InputKeys(sizes), BYTE, ledger)
        asked = data.draw(asked_of(sizes))
        for batch in asked:
            found = settled(memory, batch, ran, keeps_failures=keeps_failures)
            assert found == [_answer(each) for each in batch]
            new = [each for each in dict.fromkeys(batch) if each not in known]
            expected += new
            known |= {each for each in new if keeps_failures or _answer(each) != FAILED}
        assert ran == expected
        assert ledger.spent.from_memory == sum(map(len, asked)) - len(ran)


LOAD = Path(__file__).parents[2] / "benchmarks" / "load.py"


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="what a process holds is read from /proc")
def test_millions_of_executions_hold_no_more_memory_files_threads_and_processes() -> None:
    done = subprocess.run([sys.executable, str(LOAD), "--soak"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
