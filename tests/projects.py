"""Folders with a subject and its themis.toml, and two ways to run the command in them."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.external import PATIENCE
from themis.cli import app

FAIR = "return 1"
BIASED = "return 1 if person['income'] >= (30 if person['race'] == 'green' else 60) else 0"
INPUTS = """\
race = { values = ["green", "purple"], protected = true }
sex = { values = ["f", "m"], protected = true }
income = { min = 0, max = 99 }
savings = { min = 0, max = 99999, bins = [50000] }
"""
SMALL = """\
race = { values = ["green", "purple"], protected = true }
sex = ["f", "m"]
income = { min = 0, max = 90, step = 10 }
"""
NUMBERS = itertools.count()
VARIABLES = ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "THEMIS_DEBUG")


Project = Callable[..., Path]  # the fixture that writes one


def write_project(
    folder: Path,
    body: str = BIASED,
    *,
    inputs: str = INPUTS,
    subject: str = "",
    extra: str = "",
    head: str = "",
) -> Path:
    """The configuration file of a new subject with this body."""
    module = f"project_{next(NUMBERS)}"  # modules are imported once per process
    code = f"import os, sys, time\n{head}\ndef decide(person):\n{textwrap.indent(body, '    ')}\n"
    (folder / f"{module}.py").write_text(code)
    config = folder / "themis.toml"
    config.write_text(
        f'version = 1\n[subject]\nkind = "python"\nfunction = "{module}:decide"\n'
        f"favourable = [1]\n{subject}\n[inputs]\n{inputs}\n{extra}"
    )
    return config


def enter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder, without anything that changes how output looks."""
    monkeypatch.chdir(folder)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def run(*arguments: str) -> Any:
    """The command within this process."""
    return CliRunner().invoke(app, list(arguments))


def process(
    *arguments: str, folder: str | Path = ".", **environment: str
) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, its output piped."""
    return subprocess.run(
        [sys.executable, "-m", "themis", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=folder,
        env={**os.environ, **environment},
    )
