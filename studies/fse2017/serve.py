"""A trained instance as a program.

python -m studies.fse2017.serve FILE               a worker: JSON lines in, JSON lines out
python -m studies.fse2017.serve FILE 3 1 0 …       a command: one input, prints 1 or 0
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from themis.worker import serve

from .machines import load, predict


def main(path: str, *values: str) -> None:
    stored = load(Path(path))
    if values:
        print(int(predict(stored.machine, np.array([values], dtype=np.int64))[0]))
        return

    def decide(rows: list[dict[str, Any]]) -> list[int]:
        codes = np.array([[row[name] for name in stored.names] for row in rows], dtype=np.int64)
        return [int(each) for each in predict(stored.machine, codes)]

    serve(decide, batch=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
