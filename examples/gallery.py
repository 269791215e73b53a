"""Real audits, each a command away: `python examples/gallery.py adult` writes adult.html here.

Without a name all are made. `--into FOLDER` says where the pages go.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
THEMIS = [sys.executable, "-m", "themis"]
CASES: dict[str, list[list[str]]] = {
    "adult": [
        [sys.executable, str(HERE / "adult" / "train.py")],
        [*THEMIS, "init", "--from", "people.csv", "--model", "model.json"],
        [*THEMIS, "score", "--against", "sex", "--against", "race", "-o", "result.json"],
    ],
    "german": [
        [sys.executable, str(HERE / "german" / "train.py")],
        [*THEMIS, "init", "--from", "people.csv", "--model", "model.skops"],
        [*THEMIS, "score", "-o", "result.json"],
    ],
    "program": [
        ["cc", "-O2", "-o", "screen", "screen.c"],
        [*THEMIS, "score", "-o", "result.json"],
    ],
    "resumes": [
        [
            *(sys.executable, str(HERE / "chat" / "server.py"), "truth.toml", *THEMIS, "score"),
            *("--measure", "excess", "--error", "0.02", "--max-executions", "200000"),
            *("-o", "result.json"),
        ],
    ],
}


def make(name: str, into: Path) -> Path:
    """Run the commands of a case in a folder of its own; the page that comes of it."""
    with tempfile.TemporaryDirectory() as folder:
        if (HERE / name / "themis.toml").exists():
            shutil.copytree(HERE / name, folder, dirs_exist_ok=True)
        for command in CASES[name]:
            done = subprocess.run([*command], cwd=folder, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"{name}: {' '.join(command)}\n{done.stdout}{done.stderr}")
        page = into.resolve() / f"{name}.html"
        report = [*THEMIS, "report", "result.json", "--format", "html", "-o", str(page)]
        subprocess.run(report, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace(folder, f"examples/{name}"), encoding="utf-8")
    return page


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("names", nargs="*", choices=[*CASES, []], metavar="NAME")
    asked.add_argument("--into", type=Path, default=Path())
    given = asked.parse_args()
    for each in given.names or CASES:
        print(make(each, given.into))
