"""Do the examples of language models find what their stand-in does?"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from themis.results.model import Result
from themis.results.saved import result_from_dict

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name: str, folder: Path, *options: str) -> Result:
    """The result of the command that its README shows, in a copy of the folder."""
    shutil.copytree(EXAMPLES / name, folder / name, ignore=shutil.ignore_patterns(".themis"))
    server = [sys.executable, str(EXAMPLES / "chat/server.py"), "truth.toml"]
    command = ["score", "--measure", "excess", "-o", "result.json", *options]
    done = subprocess.run(
        [*server, sys.executable, "-m", "themis", *command],
        cwd=folder / name, env=os.environ | {"CHAT_SEED": "1"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document: Any = json.loads((folder / name / "result.json").read_text())
    return result_from_dict(document)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "truths"),
    [
        ("chat", {"sex": 0.09, "city": 0.0}),
        ("triage", {"sex": 0.04, "language": 0.04}),
        ("resumes", {"sex": 0.05, "ethnicity": 0.04}),
    ],
)
def test_examples_find_what_their_stand_in_does(
    tmp_path: Path, name: str, truths: dict[str, float]
) -> None:
    against = [word for each in truths for word in ("--against", each)]
    result = run(name, tmp_path, *against, "--error", "0.08")
    decisions = [each for each in result.scores if each.output in (None, "decision")]
    for score, truth in zip(decisions, truths.values(), strict=True):
        assert score.low <= truth <= score.high
