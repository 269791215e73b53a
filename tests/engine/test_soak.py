"""Does a long run hold no more than a short one?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LOAD = Path(__file__).parents[2] / "benchmarks" / "load.py"


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="what a process holds is read from /proc")
def test_millions_of_executions_hold_no_more_memory_files_threads_and_processes() -> None:
    done = subprocess.run([sys.executable, str(LOAD), "--soak"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
