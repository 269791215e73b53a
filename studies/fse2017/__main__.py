"""Does the whole study: `python -m studies.fse2017 [--quick] [--report-only] [--processes N]`.

The full run writes `measured.json`, `report.md` and `report.html` beside this file, and trained
instances to `build/`, or to `--build`; `--quick` writes all to `quick/` in there. Exit code 1 when
a score disagrees with its plain check.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from . import measuring
from .data import CHECKSUMS, SEED
from .instances import BUILD, INSTANCES, build_in
from .measuring import FULL, QUICK, Effort, Numbers
from .report import disagreements, to_html, to_markdown
from .work import Work

HERE = Path(__file__).parent
CORES = 2  # where --processes does not say how many


def measure_all(
    effort: Effort, processes: int, said: Callable[[str], None], build: Path
) -> Numbers:
    """Every number of the report; trained instances are written to a folder."""
    started, clock = datetime.now(UTC), time.monotonic()
    # Spawned, not forked: a process that has threads must not be copied.
    context = get_context("spawn")
    with ProcessPoolExecutor(processes, context, build_in, [build]) as pool:
        first = Work(pool)
        first.ask("training", measuring.train, *((name, effort) for name in INSTANCES))
        trained, training_seconds = first.collect(said)
        work = Work(pool)
        for title, function, calls in _pieces(effort):
            work.ask(title, function, *calls)
        results, seconds = work.collect(said)
    names = ("themis-fairness", "numpy", "scipy", "scikit-learn")
    return {
        "run": {
            "effort": effort.name,
            "date": started.date().isoformat(),
            "seed": SEED,
            "python": platform.python_version(),
            "versions": {name: version(name) for name in names},
            "data": CHECKSUMS,
            "score_error": effort.score_error,
            "max_size": effort.max_size,
            "processes": processes,
            "minutes": (time.monotonic() - clock) / 60,
            "cpu_minutes": (seconds + training_seconds) / 60,
        },
        "training": trained["training"],
        "figure_1": [row for rows in results["Figure 1"] for row in rows],
        "workers": results["workers"],
        "figure_2": results["Figure 2"],
        "figure_3": results["Figure 3"],
        "sweep": results["sweep"],
        "section_2": results["section 2"][0],
        "variants": [row for rows in results["system H"] for row in rows],
    }


def _pieces(effort: Effort) -> Iterable[tuple[str, Callable[..., Any], list[tuple[Any, ...]]]]:
    yield "section 2", measuring.section_2, [(effort,)]
    yield "Figure 1", measuring.figure_1, [(name, effort) for name in INSTANCES]
    variants = [(n, gamma) for n in ("H-credit", "H-census") for gamma in measuring.VARIANTS]
    yield "system H", measuring.variant, [(*each, effort) for each in variants]
    yield "workers", measuring.worker, [(name, effort) for name in effort.workers]
    yield "Figure 2", measuring.figure_2, [(name, effort) for name in effort.figure_2]
    both = [(name, measure) for name in effort.figure_3 for measure in ("group", "causal")]
    yield "Figure 3", measuring.figure_3, [(*pair, effort) for pair in both]
    points = [(name, threshold) for name in effort.sweep for threshold in effort.thresholds]
    yield "sweep", measuring.sweep, [(*point, effort) for point in points]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="The evaluation of the 2017 paper, done again")
    parser.add_argument("--quick", action="store_true", help="a minute, less precise")
    parser.add_argument("--report-only", action="store_true", help="from what was measured before")
    parser.add_argument("--processes", type=int, default=CORES, metavar="N")
    parser.add_argument("--build", type=Path, default=BUILD, help="where instances are written")
    options = parser.parse_args(arguments)
    build = options.build / "quick" if options.quick else options.build
    folder = build if options.quick else HERE
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "measured.json"
    if not options.report_only:
        effort = QUICK if options.quick else FULL
        measured = measure_all(effort, options.processes, _say, build)
        file.write_text(json.dumps(_short(measured), indent=1, ensure_ascii=False) + "\n")
    measured = json.loads(file.read_text())
    for name, text in (("report.md", to_markdown(measured)), ("report.html", to_html(measured))):
        (folder / name).write_text(text)
        print(folder / name)
    wrong = disagreements(measured)
    for each in wrong:
        _say(f"DISAGREES: {each}")
    return 1 if wrong else 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _short(value: Any) -> Any:
    """Numbers with as many digits as mean anything."""
    if isinstance(value, dict):
        return {name: _short(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_short(each) for each in value]
    return round(value, 6) if isinstance(value, float) else value


if __name__ == "__main__":
    sys.exit(main())
