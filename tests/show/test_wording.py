"""Do the words of a file reach every sentence, and do sentences claim no more without them?"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import themis
from tests import report_results as samples
from themis.config.reader import read_config
from themis.errors import ConfigError
from themis.results.model import Result
from themis.results.parts import Group, Naming
from themis.show.notebook import html_of
from themis.show.reports.ci import render_annotations, render_junit
from themis.show.reports.markdown import render_markdown
from themis.show.reports.page import render_page
from themis.show.terminal.results import render_quiet, render_result
from themis.show.words.headlines import headline
from themis.show.words.wording import PLAIN, Wording, favour_remedy

FILE = """
version = 1
[subject]
kind = "command"
command = ["python", "loan.py"]
favourable = ["approved"]
[inputs]
sex = ["female", "male"]
age = { min = 18, max = 80, bins = [40] }
flag = [true, false]
[report]
"""
WORDS = """
name = "Loan screen"
people = "applicants"
decision = "approval"
[report.values]
sex.female = "women"
sex.male = "men"
age."18 to 39" = "the young"
flag.true = "yes"
"""
GROUPS = (Group({"sex": "male"}, 0.5, 0.4, 0.6, 300), Group({"sex": "female"}, 0.3, 0.2, 0.4, 300))


def naming(folder: Path, words: str) -> Naming:
    path = folder / "themis.toml"
    path.write_text(FILE + words)
    return read_config(path).report


def result(report: Naming | None) -> Result:
    scores = (
        samples.causal(against=("sex",), witnesses=()),
        samples.group(against=("sex",), groups=GROUPS),
    )
    schema = {"inputs": {"sex": ["female", "male"], "age": {"min": 18, "max": 80}}}
    return replace(samples.result(*scores), report=report, schema=schema)


def formats(shown: Result) -> Iterator[str]:
    """Everything that a result can be shown as, on lines as they come."""
    yield " ".join(render_result(shown, file=io.StringIO(), width=90, everything=True).split())
    yield " ".join(render_quiet(shown, file=io.StringIO()).split())
    for render in (html_of, render_page, render_markdown, render_junit, render_annotations):
        yield render(shown)


def test_words_of_the_file_are_in_every_format(tmp_path: Path) -> None:
    for text in formats(result(naming(tmp_path, WORDS))):
        assert "test applicants" in text
        assert "test inputs" not in text
        assert "women" in text
        assert "approval rates" in text.casefold()
        assert "rates of favourable decisions differ" not in text.casefold()


def test_without_words_generated_inputs_are_no_people() -> None:
    for text in formats(result(None)):
        assert "test inputs" in text
        assert not re.search(r"(%|\d|of|who) people", text)
        assert "rates of favourable decisions" in text.casefold()


def test_rates_are_named_by_the_one_output_that_the_file_calls_favourable(tmp_path: Path) -> None:
    assert Wording(naming(tmp_path, "")).rates == "rates of 'approved'"
    assert Wording(Naming(favourable=("a", "b"))).rates == PLAIN.rates


def test_only_given_rows_are_people() -> None:
    words = Wording(Naming(people="applicants"))
    assert (PLAIN.whom(), PLAIN.whom("rows")) == ("test inputs", "the people in the rows")
    assert (words.whom(), words.whom("rows")) == ("test applicants", "the applicants in the rows")
    assert (PLAIN.counted(1), PLAIN.counted(1, "rows")) == ("1 test input", "1 person")
    assert words.counted(2_000) == "2,000 test applicants"
    given = samples.causal(population="rows")
    assert "of the people in the rows the decision changes when only their" in headline(given)


@pytest.mark.parametrize("table", ["values", "eeo1"])
def test_what_words_are_for_must_be_there(tmp_path: Path, table: str) -> None:
    for words, problem in (
        (
            f'[report.{table}]\nsexx.female = "w"',
            f"report.{table}.sexx: there is no characteristic",
        ),
        (f'[report.{table}]\nsexx.female = "w"', "did you mean 'sex'?"),
        (f'[report.{table}]\nsex.femal = "w"', "sex has no value 'femal'; did you mean 'female'?"),
        (f"[report.{table}]\nsex.female = 3", f"report.{table}.sex.female"),
        ('peple = "applicants"', "did you mean 'people'"),
        ('people = ""', "people"),
    ):
        with pytest.raises(ConfigError) as caught:
            naming(tmp_path, words)
        (mistake,) = caught.value.mistakes
        assert problem in str(mistake)


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ('kind = "python"\nfunction = "loan:decide"', "loan:decide"),
        ('kind = "model"\nfile = "model.onnx"', "model.onnx"),
        ('kind = "command"\ncommand = ["python", "loan.py"]', "python loan.py"),
        ('kind = "http"\nurl = "https://me:secret@host:80/decide?key=secret"', "host/decide"),
    ],
)
def test_a_program_has_a_name_of_its_own_without_secrets(
    tmp_path: Path, subject: str, name: str
) -> None:
    path = tmp_path / "themis.toml"
    path.write_text(f"version = 1\n[subject]\n{subject}\n[inputs]\nsex = [0, 1]\n")
    assert read_config(path).report.program == name


# --- one verdict --------------------------------------------------------------------------


def test_a_score_that_stands_alone_speaks_in_the_words_of_its_audit() -> None:
    audit = themis.Audit(
        lambda person: int(person["savings"] > (30 if person["sex"] == "m" else 60)),
        themis.Schema(sex=["f", "m"], savings=range(100)),
        deterministic=True,
    )
    audit.naming = Naming(people="applicants", decision="approval", values={"sex": {"f": "women"}})
    with pytest.raises(themis.DiscriminationError, match="test applicants"):
        audit.causal("sex").assert_below(0.1)
    with pytest.raises(themis.DiscriminationError, match="women"):
        audit.group("sex").assert_below(0.1)
    assert "test applicants" in audit.causal("sex")._repr_html_()
    assert "naming" not in audit.causal("sex").to_dict()


@pytest.mark.parametrize(
    ("outputs", "favourable", "remedy"),
    [
        ([1, 0], ["1"], ": write favourable = [1]"),
        (["1", "0"], [1], ': write favourable = ["1"]'),
        ([True, False], ["True"], ": write favourable = [true]"),
        (["Yes", "No"], ["yes"], ': write favourable = ["Yes"]'),
        (["a", "b"], ["1"], ""),
    ],
)
def test_what_to_write_is_what_looks_the_same(
    outputs: list[Any], favourable: list[Any], remedy: str
) -> None:
    assert favour_remedy({"outputs": outputs, "favourable": favourable}) == remedy


def test_rates_that_tell_nothing_are_no_test_that_passes() -> None:
    groups = tuple(replace(each, rate=0.0, low=0.0) for each in GROUPS)
    silent = samples.group(groups=groups, score=0.0, low=0.0, high=0.096)
    assert '<error message="No output was favourable' in render_junit(samples.result(silent))
