"""Are the models of a file built without what other packages plug into pydantic?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import themis

PLUGIN = """\
print("the plugin was loaded")
class Plugin:
    def new_schema_validator(self, *args, **kwargs):
        return None, None, None
plugin = Plugin()
"""
READING = """\
import sys
from pathlib import Path
from themis.config.reader import read_config
read_config(Path("themis.toml"))
print("the file was read")
import pydantic
class Own(pydantic.BaseModel):
    age: int
"""
FILE = 'version = 1\n[subject]\nkind = "command"\ncommand = ["true"]\n[inputs]\nsex = ["f", "m"]\n'


@pytest.mark.slow
def test_plugins_are_for_models_of_the_subject_alone(tmp_path: Path) -> None:
    (tmp_path / "plugged.py").write_text(PLUGIN)
    info = tmp_path / "plugged-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[pydantic]\nown = plugged:plugin\n")
    (tmp_path / "themis.toml").write_text(FILE)
    source = Path(themis.__file__).parents[1]
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{source}"}
    env.pop("PYDANTIC_DISABLE_PLUGINS", None)
    done = subprocess.run(
        [sys.executable, "-c", READING], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == ["the file was read", "the plugin was loaded"], done.stderr
