"""Memory against a dictionary: what was put in is found, whichever way it is held."""

from __future__ import annotations

import subprocess
import sys
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


def answer(each: Input) -> int:
    return FAILED if sum(each) % 3 == 0 else sum(each) % 100


@pytest.mark.parametrize(("sizes", "whole"), [(SMALL, 10**4), (SMALL, 0), (HUGE, 10**4)])
@pytest.mark.parametrize("keeps_failures", [True, False])
@given(st.data())
@settings(max_examples=15)
def test_what_is_settled_is_run_once_as_it_appears_and_counted(
    sizes: Input, whole: int, keeps_failures: bool, data: st.DataObject
) -> None:
    """Whether memories of small domains are arrays or sorted keys."""
    ledger, ran, known, expected = Ledger(), [], set(), []
    asked = data.draw(asked_of(sizes))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory_module, "WHOLE_LIMIT", whole)
        memory = Memory(InputKeys(sizes), BYTE, ledger)
        for batch in asked:

            def run(places: Any, batch: list[Input] = batch) -> Any:
                ran.extend(batch[place] for place in places)
                return np.array([answer(batch[place]) for place in places], dtype=np.int8)

            keys = memory.keys.of(codes_of(batch))
            found = memory.settle(keys, run, keeps_failures=keeps_failures)
            assert found.tolist() == [answer(each) for each in batch]
            new = [each for each in dict.fromkeys(batch) if each not in known]
            expected += new
            known |= {each for each in new if keeps_failures or answer(each) != FAILED}
    assert ran == expected
    assert ledger.spent.from_memory == sum(map(len, asked)) - len(ran)


LOAD = Path(__file__).parents[2] / "benchmarks" / "load.py"


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="what a process holds is read from /proc")
def test_millions_of_executions_hold_no_more_memory_files_threads_and_processes() -> None:
    done = subprocess.run([sys.executable, str(LOAD), "--soak"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
