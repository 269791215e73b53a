"""Scripts that no test runs import what is there."""

from __future__ import annotations

import ast
import importlib
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted([*ROOT.glob("benchmarks/*.py"), *ROOT.glob("studies/**/*.py")])


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_script_imports_of_themis_is_there(script: Path) -> None:
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("themis"):
            module = importlib.import_module(str(node.module))
            for each in node.names:
                with suppress(ModuleNotFoundError):
                    importlib.import_module(f"{node.module}.{each.name}")
                assert hasattr(module, each.name)
