"""The action of this repository: does its step check, report, and end with the right code?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
LOAN = "def decide(person):\n    return person['age'] >= (40 if person['sex'] == 'f' else 30)\n"
FILE = """version = 1
[subject]
kind = "python"
function = "loan:decide"
favourable = [true]
[inputs]
sex = ["f", "m"]
age = { min = 18, max = 80 }
[[checks]]
against = ["sex"]
max_score = LIMIT
"""


@pytest.mark.parametrize(
    ("limit", "options", "undecided", "code"),
    [("0.5", "", "false", 0), ("0.05", "", "false", 1), ("0.1", "--max-executions 40", "true", 0)],
)
def test_the_action_checks_and_reports(
    limit: str, options: str, undecided: str, code: int, tmp_path: Path
) -> None:
    (tmp_path / "loan.py").write_text(LOAN)
    (tmp_path / "themis.toml").write_text(FILE.replace("LIMIT", limit))
    step = ACTION["runs"]["steps"][-1]
    given = {"file": "themis.toml", "options": options, "allow-undecided": undecided}
    inputs = {name: each["default"] for name, each in ACTION["inputs"].items()} | given
    own = {
        name: inputs[text[len("${{ inputs.") : -len(" }}")]] for name, text in step["env"].items()
    }
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", step["run"]],
        cwd=tmp_path,
        env=os.environ | own | {"PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout + done.stderr
    made = {each.name for each in (tmp_path / "themis-reports").iterdir()}
    assert {"themis.json", "themis.sarif", "themis.junit.xml", "themis.md", "themis.html"} <= made


def test_workflows_run_what_the_repository_has() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for job in yaml.safe_load(path.read_text())["jobs"].values():
            for step in job["steps"]:
                command = step.get("run", "").split()
                if command[:1] == ["make"]:
                    assert f"\n{command[1]}:" in makefile
