"""The real cases in examples/: each from an empty folder to a report, beside a plain sample.

The plain sample asks the subject itself, without Themis: each person as they are, and with every
other value of the characteristic. The dependency group `frameworks` has what they need.
"""

from __future__ import annotations

import json
import re
import runpy
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import themis
from tests.external import PATIENCE
from tests.projects import enter, run
from tests.report_results import plain as with_spaces
from themis.results.model import CausalScore
from themis.results.saved import read_result

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
TABLE = ROOT / "benchmarks" / "README.md"
SAMPLE = 400  # people or inputs that are asked without Themis
NEAR = 0.015  # of a documented score: another version of a library learns slightly differently


def needs(*names: str) -> None:
    for name in names:
        pytest.importorskip(name, reason=f"{name} is not installed: make test-full installs it")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter(tmp_path, monkeypatch)
    return tmp_path


def told(*command: str) -> None:
    done = run(*command)
    assert done.exit_code == 0, done.output


def causal(against: str) -> CausalScore:
    """The score of the saved result; a page was made of it that shows nobody's row."""
    told("report")
    assert "<html" in Path("result.html").read_text(encoding="utf-8")
    found = [each for each in read_result("result.json").scores if each.against == (against,)]
    score = next(each for each in found if isinstance(each, CausalScore))
    assert any(each.generated for each in score.witnesses) or score.population == "inputs"
    return score


def assert_agrees(case: str, score: CausalScore, plain: Sequence[bool]) -> None:
    """Whether the score agrees with a plain sample, and with what the documentation says."""
    share = float(np.mean(plain))
    margin = 2.6 * max(share * (1 - share) / len(plain), 1 / len(plain) ** 2) ** 0.5  # 99 %
    assert score.low - margin <= share <= score.high + margin
    (row,) = re.findall(rf"^\| {case}[,:].*$", TABLE.read_text(encoding="utf-8"), re.M)
    measured, counted = (float(each) / 100 for each in re.findall(r"([\d.]+) %", row)[-2:])
    assert score.score == pytest.approx(measured, abs=NEAR)
    assert share == pytest.approx(counted, abs=NEAR)


def changes(decide: Any, people: pd.DataFrame, name: str, values: Sequence[Any]) -> list[bool]:
    """Of each person, whether some other value gets a different decision."""
    answers = [np.asarray(decide(people.assign(**{name: value}))) for value in values]
    return [len(set(each)) > 1 for each in zip(*answers, strict=True)]


def test_german_credit_with_a_pipeline(folder: Path) -> None:
    needs("skops")
    import skops.io

    runpy.run_path(str(EXAMPLES / "german" / "train.py"), run_name="__main__")
    told("init", "--from", "people.csv", "--model", "model.skops")
    told("score", "--measure", "causal", "-o", "result.json")
    people = pd.read_csv("people.csv", keep_default_na=False).sample(SAMPLE, random_state=1)
    model = skops.io.load("model.skops")
    assert_agrees(
        "German credit",
        causal("gender"),
        changes(model.predict, people.drop(columns="credit"), "gender", people["gender"].unique()),
    )


def test_adult_with_a_boosted_model(folder: Path) -> None:
    needs("xgboost")
    import xgboost

    runpy.run_path(str(EXAMPLES / "adult" / "train.py"), run_name="__main__")
    told("init", "--from", "people.csv", "--model", "model.json")
    told("score", "--measure", "causal", "--against", "sex", "--error", "0.02", "-o", "result.json")
    people = pd.read_csv("people.csv").drop(columns="income")
    texts = people.select_dtypes(exclude="number").columns
    kinds = {name: pd.CategoricalDtype(sorted(people[name].dropna().unique())) for name in texts}
    model = xgboost.XGBClassifier(enable_categorical=True)
    model.load_model("model.json")

    def decide(rows: pd.DataFrame) -> Any:
        return model.predict(rows.astype(kinds))

    assert_agrees("Adult", causal("sex"), changes(decide, people, "sex", ["Female", "Male"]))


def test_a_torch_module_by_its_weights(folder: Path) -> None:
    needs("torch")
    import torch

    for path in (EXAMPLES / "torch").iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    subprocess.run([sys.executable, "screen.py"], check=True, timeout=PATIENCE)
    told("score", "screen.toml", "--measure", "causal", "-o", "result.json")
    module = runpy.run_path("screen.py")["Screen"]()
    module.load_state_dict(torch.load("screen.pt"))
    people = pd.read_csv("people.csv").drop(columns="invited").sample(SAMPLE, random_state=1)

    def decide(rows: pd.DataFrame) -> Any:
        numbers = torch.tensor(rows.to_numpy(), dtype=torch.float32)
        return (module.eval()(numbers)[:, 0] >= 0.5).numpy()

    assert_agrees("torch", causal("sex"), changes(decide, people, "sex", [0, 1]))


@contextmanager
def served(port: int) -> Iterator[str]:
    """The service of the example, once it answers."""
    command = [sys.executable, "-m", "uvicorn", "app:app", "--port", str(port)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=EXAMPLES / "service", **quiet)
    url = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                urllib.request.urlopen(f"{url}/openapi.json")
                break
            except OSError:
                assert process.poll() is None
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait()


def test_a_fastapi_service_by_its_own_description(folder: Path) -> None:
    needs("fastapi", "uvicorn", "aiohttp")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with served(port) as url:
        document = json.load(urllib.request.urlopen(f"{url}/openapi.json"))
        Path("openapi.json").write_text(json.dumps({**document, "servers": [{"url": url}]}))
        told("init", "--from", "openapi.json", "--protected", "sex")
        told("score", "--measure", "causal", "-o", "result.json")
        score = causal("sex")
        rng = np.random.default_rng(0)
        numbers = (rng.integers(0, most, SAMPLE).tolist() for most in (58, 120_001, 2))
        inputs = zip(*numbers, strict=True)
        flips = [len({asked(url, sex, *each) for sex in ("female", "male")}) > 1 for each in inputs]
    assert_agrees("service", score, flips)


def asked(url: str, sex: str, years: int, income: int, employed: int) -> bool:
    person = {
        "name": "N",
        "sex": sex,
        "age": 18 + years,
        "income": income,
        "employed": employed > 0,
    }
    request = urllib.request.Request(f"{url}/loans", json.dumps(person).encode(), method="POST")
    request.add_header("Content-Type", "application/json")
    return bool(json.load(urllib.request.urlopen(request))["approved"])


def test_the_notebook_is_executed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("nbclient", "ipykernel")
    import nbformat
    from nbclient import NotebookClient

    path = EXAMPLES / "notebook" / "german_credit.ipynb"
    notebook = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "it is stored without outputs"
    monkeypatch.setenv("PYTHONPATH", str(Path(themis.__file__).parents[1]))
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=PATIENCE, resources=resources).execute()
    outputs = [cell.get("outputs", []) for cell in notebook.cells]
    shown = with_spaces(json.dumps(outputs, ensure_ascii=False))
    assert "Audit of a subject of the kind" in shown
    assert "the people in the profile" in shown
    assert "generated, not taken from" in shown
    assert "<svg" in shown
    (printed,) = re.findall(r"causal score against gender,age: ([\d.]+)", shown)
    alone = re.findall(r"For ([\d.]+) % of the people in the profile", shown)
    assert float(printed) >= float(alone[0]) / 100 - 0.05, "a larger set changes no less"


def test_the_gallery_is_made_by_a_command(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler: apt-get install gcc")
    made = runpy.run_path(str(EXAMPLES / "gallery.py"))["make"]("program", tmp_path)
    assert found_in(made, "children")


@pytest.mark.parametrize(
    ("case", "found"),
    [("program", "children"), ("resumes", "sex"), ("german", "gender"), ("adult", "race")],
)
def test_the_gallery_shows_what_was_found(case: str, found: str) -> None:
    assert case in runpy.run_path(str(EXAMPLES / "gallery.py"))["CASES"]
    assert found_in(ROOT / "docs" / "gallery" / f"{case}.html", found)


def found_in(page: Path, name: str) -> bool:
    said = re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8"))
    return bool(re.search(rf"The decision changes [\w ]*with [^;]{{0,60}}\b{name}\b", said))
