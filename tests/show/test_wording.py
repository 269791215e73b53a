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
from themis.results.notes import Ending
from themis.results.parts import Group, Harm, Naming, Region
from themis.show.reports.ci import findings, render_annotations, render_junit
from themis.show.reports.markdown import render_markdown
from themis.show.reports.page import render_page
from themis.show.terminal.results import render_headlines, render_result
from themis.show.words.explanations import where_losing
from themis.show.words.headlines import headline
from themis.show.words.verdicts import verdict
from themis.show.words.wording import PLAIN, Wording

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


def mistakes(folder: Path, words: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        naming(folder, words)
    return [str(each) for each in caught.value.mistakes]


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
    yield " ".join(render_headlines(shown, file=io.StringIO()).split())
    yield shown._repr_html_()
    for render in (render_page, render_markdown, render_junit, render_annotations):
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
    (one,) = mistakes(tmp_path, f'[report.{table}]\nsexx.female = "women"')
    assert f"report.{table}.sexx: there is no characteristic 'sexx'; did you mean 'sex'?" in one
    (one,) = mistakes(tmp_path, f'[report.{table}]\nsex.femal = "women"')
    assert f"report.{table}.sex.femal: sex has no value 'femal'; did you mean 'female'?" in one
    (one,) = mistakes(tmp_path, 'peple = "applicants"')
    assert "did you mean 'people'" in one
    assert mistakes(tmp_path, 'people = ""')
    assert mistakes(tmp_path, f"[report.{table}]\nsex.female = 3")


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
CALM: dict[str, Any] = {"score": 0.0, "low": 0.0, "high": 0.02}


def test_a_finding_of_either_measure_is_in_the_verdict() -> None:
    calm, found = samples.causal(**CALM), samples.group()
    assert verdict(samples.result(calm, found)).word == "difference found"
    both = samples.result(
        samples.causal(), samples.group(against=("age",)), samples.causal(against=("sex",), **CALM)
    )
    said = verdict(both).sentence
    assert "changes with race" in said
    assert "differ by age" in said
    assert "no difference found for sex" in said


def test_the_verdict_on_given_people_comes_before_that_on_generated_inputs() -> None:
    rows = samples.causal(score=0.3, low=0.25, high=0.35, population="rows")
    found = verdict(samples.result(samples.causal(), rows))
    assert "For 30.0 % of the people in the rows" in found.sentence
    assert "11.3" not in found.sentence
    assert "On test inputs: the decision changes with race" in found.behind
    calm = replace(rows, **CALM)
    assert verdict(samples.result(samples.causal(), calm)).word == "no difference found"


def test_what_was_hardly_measured_is_undecided_in_every_format() -> None:
    little = samples.causal(**CALM, stopped=Ending.BUDGET)
    missing = samples.causal(against=("age",), samples=0, stopped=Ending.BUDGET)
    cut = samples.result(little, missing)
    assert verdict(cut).sentence == "Undecided for race and age"
    assert verdict(samples.result(little)).sentence.startswith("Undecided for race: the decision")
    assert "No effect" not in render_page(samples.result(little))


@pytest.mark.parametrize(
    ("values", "shown"), [({}, "sad 'x'"), ({"mood": {"sad 'x'": "the sad"}}, "The sad")]
)
def test_a_sentence_never_changes_the_value_that_it_begins_with(
    values: dict[str, Any], shown: str
) -> None:
    named = Naming(values=values)
    mood = {"against": ("mood",), "witnesses": ()}
    harm = Harm({"mood": "sad 'x'"}, {"mood": "glad"}, 0.3, 0.1, 100)
    region = Region(("age ≤ 47",), 0.6, 0.5, 0.7, 0.2, 3.0, 140, loses={"mood": "sad 'x'"})
    score = samples.causal(**mood, direction=(harm,), regions=(region,))
    result = samples.result(score, report=named)
    (found,) = findings(result)
    assert f". {shown} → glad: " in found.text
    assert str(where_losing(score, Wording(named))).startswith(f"{shown} lose where ")


def test_every_format_has_the_same_verdict() -> None:
    shown = samples.result(samples.causal(), samples.group(against=("age",)))
    said = verdict(shown).sentence
    for text in (render_page(shown), render_markdown(shown), shown._repr_html_()):
        assert said in samples.plain(text)
    assert said in " ".join(
        render_result(shown, file=io.StringIO(), width=400, everything=True).split()
    )


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
    ("distance", "said"),
    [
        ("ranking", "Among the rows the output differs by 11.3 % on average with race"),
        ("ranking 0.2", "but whose output differs by more than 0.2"),
        ("threshold 5", "but whose output differs by more than 5"),
        ("exact", "but gets a different decision"),
    ],
)
def test_a_tolerance_counts_rows_and_does_not_average(distance: str, said: str) -> None:
    score = samples.causal(population="rows", counterfactuals="within", distance=distance)
    line = headline(score)
    assert said in line
    assert ("on average" in line) == (distance == "ranking")
