"""Do the examples of language models find what their stand-in does?"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from examples.chat.server import Model, Truth, serve

from tests.external import finish, start, stored, wait_until
from themis.engine.cache import default_path
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


@pytest.mark.slow
def test_no_answer_of_a_run_that_was_killed_is_paid_for_twice(tmp_path: Path) -> None:
    folder = tmp_path / "chat"
    shutil.copytree(EXAMPLES / "chat", folder, ignore=shutil.ignore_patterns(".themis"))
    truth = Truth(**tomllib.loads((folder / "truth.toml").read_text()), latency_seconds=0.005)
    first, second = Model(truth), Model(replace(truth, seed=2, latency_seconds=0.0))
    command = ["score", str(folder / "themis.toml"), "--measure", "excess", "--error", "0.1"]
    variables = os.environ | {"CHAT_API_KEY": truth.key}
    with serve(first) as host:
        process = start(*command, env=variables | {"CHAT_HOST": host})
        wait_until(lambda: default_path(folder).exists() and stored(folder) > 100)
        process.kill()
        process.communicate()
    known = stored(folder)
    with serve(second) as host:
        text, _ = finish(start(*command, "--json", env=variables | {"CHAT_HOST": host}))
    result = json.loads(text)
    assert 100 < known <= first.asked.total()
    assert result["cache_hits"] == known
    assert result["executions"] == second.asked.total() > 0
    used = result["timing"]
    assert used["tokens_in"] + used["tokens_out"] == second.tokens
