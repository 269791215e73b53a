"""Does the built-in example show what it says: equal rates, and people treated unequally?"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from themis.cli.demo import SETS, decide_loan, demo_audit, loan_schema
from themis.results.model import CausalScore, GroupScore, Score


@pytest.fixture(scope="module")
def scores() -> dict[tuple[str, str], Score]:
    result = demo_audit().score(SETS, command="demo")
    return {(score.against[0], score.measure): score for score in result.scores}


def test_domain_is_far_too_large_to_try_everything() -> None:
    assert loan_schema().size > 10**14


def test_demo_takes_a_second_or_two() -> None:
    assert demo_audit().score(SETS).executions < 60_000  # 20,000 in a second, and more


def test_race_is_discriminated_against_by_both_measures(
    scores: dict[tuple[str, str], Score],
) -> None:
    causal, group = scores["race", "causal"], scores["race", "group"]
    assert isinstance(causal, CausalScore)
    assert isinstance(group, GroupScore)
    assert causal.low > 0.1
    assert group.low > 0.1
    assert group.four_fifths == "below"
    assert causal.direction[0].change_to == {"race": "purple"}
    assert causal.direction[0].gained == 0


def test_sex_looks_equal_by_group_and_flips_individuals(
    scores: dict[tuple[str, str], Score],
) -> None:
    assert scores["sex", "causal"].low > 0.1
    assert scores["sex", "group"].high < 0.03


@pytest.mark.slow
def test_stated_intervals_hold_the_truth_of_a_large_sample(
    scores: dict[tuple[str, str], Score],
) -> None:
    audit = demo_audit()
    rows = demo_audit(seed=7).sampler.base.rows(0, 20_000)
    people = [audit.schema.decode_row(row) for row in rows]
    flips = {
        name: np.mean(
            [
                len({decide_loan({**person, name: value}) for value in values}) > 1
                for person in people
            ]
        )
        for name, values in (("race", ("green", "purple")), ("sex", ("female", "male")))
    }
    for name, share in flips.items():
        score = scores[name, "causal"]
        assert score.low - 0.01 < share < score.high + 0.01


@pytest.mark.slow
def test_same_seed_gives_the_same_result() -> None:
    first, second = (demo_audit().score(SETS).to_dict() for _ in range(2))
    first["timing"] = second["timing"] = {}
    assert first == second


# What to do next --------------------------------------------------------------------------
@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The program as an installer writes it, in a folder that is not on PATH."""
    path = tmp_path / "environment" / "bin" / "themis"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!{sys.executable}\nfrom themis.cli import main\n\nmain()\n")
    path.chmod(0o755)
    return path


def next_steps(command: str, folder: Path, *places: Path) -> list[str]:
    """The commands that the demo names in a shell with these folders on PATH; all of them work."""
    environment = {**os.environ, "PATH": os.pathsep.join([*map(str, places), os.defpath])}

    def shell(line: str) -> str:
        done = subprocess.run(
            line,
            shell=True,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    end = shell(f"{command} demo --error 0.1").rpartition("what to do next")[2]
    lines = [line.strip().removeprefix("$ ").partition("  ")[0] for line in end.splitlines()]
    named = [line for line in lines if re.search(r"themis'? \w+$", line)]
    for each in named:
        assert shell(f"{each} --help").startswith("Usage: ")
    return named


@pytest.mark.slow
def test_a_program_on_the_path_is_named_as_it_is(program: Path) -> None:
    steps = next_steps("themis", program.parent, program.parent)
    assert steps == ["themis init", "themis validate", "themis score"]
    assert next_steps(str(program), program.parent, program.parent) == steps


@pytest.mark.slow
def test_a_program_off_the_path_is_named_as_it_was_called(program: Path, tmp_path: Path) -> None:
    command = "environment/bin/themis"
    steps = [f"{command} init", f"{command} validate", f"{command} score"]
    assert next_steps(command, tmp_path) == steps
    other = tmp_path / "other"
    other.mkdir()
    (other / "themis").write_text("#!/bin/sh\nexit 1\n")
    (other / "themis").chmod(0o755)
    assert next_steps(command, tmp_path, other) == steps


@pytest.mark.slow
def test_a_long_name_of_the_program_is_never_cut(program: Path, tmp_path: Path) -> None:
    folder = tmp_path / ("a folder with a long name " * 4).strip()
    program.parent.parent.rename(folder)
    quoted = f"'{folder}/bin/themis'"
    assert next_steps(quoted, tmp_path)[0] == f"{quoted} init"
    module = next_steps(f"{sys.executable} -m themis", tmp_path)
    assert module[-1] == f"{sys.executable} -m themis score"
