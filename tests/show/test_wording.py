"""Do the words of a file reach every sentence, and do sentences claim no more without them?"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import themis
from tests import report_results as samples
from tests.projects import SMALL, enter, run, write_project
from tests.report_results import plain
from themis.config.reader import read_config
from themis.errors import ConfigError, count_of
from themis.results.model import Result
from themis.results.notes import Ending, Note
from themis.results.parts import Group, Harm, Joint, Naming, Region, Witness
from themis.results.replays import ReplayedTest
from themis.results.saved import result_from_dict
from themis.results.withheld import withheld
from themis.show import html
from themis.show.reports.ci import findings, render_annotations, render_junit
from themis.show.reports.document import rest
from themis.show.reports.markdown import render_markdown
from themis.show.reports.page import render_page
from themis.show.terminal.checks import render_checks
from themis.show.terminal.results import render_headlines, render_result
from themis.show.words.comparisons import pair_outcome
from themis.show.words.explanations import region_sentence, where_losing
from themis.show.words.headlines import capital, headline
from themis.show.words.scores import ratio_text, seen
from themis.show.words.searches import amount, example
from themis.show.words.values import confidence_text, visible
from themis.show.words.verdicts import how_to_read, measured_on, verdict
from themis.show.words.wording import PLAIN, Wording, wording

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
    yield " ".join(render_result(shown, file=io.StringIO(), width=90).split())
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


def test_values_are_named_by_bins_and_truth_values_too(tmp_path: Path) -> None:
    words = Wording(naming(tmp_path, WORDS))
    assert words.label({"sex": "female"}) == "women"
    assert words.label({"sex": "female", "age": "18 to 39"}) == "women · the young"
    assert words.label({"sex": "male", "age": "40 to 80"}) == "men · age 40 to 80"
    assert words.label({"flag": True}) == "yes"
    assert PLAIN.label({"sex": "female", "race": "orange"}) == "female · orange"


def test_what_words_are_for_must_be_there(tmp_path: Path) -> None:
    (one,) = mistakes(tmp_path, '[report.values]\nsexx.female = "women"')
    assert "report.values.sexx: there is no characteristic 'sexx'; did you mean 'sex'?" in one
    (one,) = mistakes(tmp_path, '[report.values]\nsex.femal = "women"')
    assert "report.values.sex.femal: sex has no value 'femal'; did you mean 'female'?" in one
    (one,) = mistakes(tmp_path, 'peple = "applicants"')
    assert "did you mean 'people'" in one
    assert mistakes(tmp_path, 'people = ""')
    assert mistakes(tmp_path, "[report.values]\nsex.female = 3")


def test_names_survive_saving(tmp_path: Path) -> None:
    shown = result(naming(tmp_path, WORDS))
    again = result_from_dict(json.loads(json.dumps(shown.to_dict())))
    assert again.report == shown.report
    assert wording(again).label({"sex": "female"}) == "women"
    assert "report" not in result(None).to_dict()


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


def test_a_set_that_says_no_more_than_a_part_of_it_is_not_in_the_verdict() -> None:
    part, pair = samples.causal(), samples.causal(against=("race", "sex"))
    more = replace(pair, score=part.high + 0.2, low=part.high + 0.1, high=part.high + 0.3)
    joint = replace(pair, joint=Joint({"race": 0.1, "sex": 0.0}, 0.05, 200, 10, 0.01, 0.1))
    alone = replace(pair, joint=Joint({"race": 0.1, "sex": 0.0}, 0.0, 200, 0, 0.0, 0.02))
    said = [verdict(samples.result(part, each)).sentence for each in (pair, alone, more, joint)]
    assert ["race and sex" in each for each in said] == [False, False, True, True]
    assert "race and sex" in verdict(samples.result(samples.causal(**CALM), pair)).sentence


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


def test_values_that_say_nothing_alone_have_the_name_of_their_characteristic() -> None:
    for value in ("yes", "No", "none", "f", 3, True):
        assert PLAIN.label({"ill": value}) == f"ill {visible(value)}"
    assert PLAIN.label({"sex": "female", "ill": "yes"}) == "female · ill yes"


def test_rounded_numbers_and_rare_values_have_the_name_of_their_characteristic() -> None:
    for value in ("about 40", "lower", "higher", "a rare value"):
        assert PLAIN.label({"age": value}) == f"age {value}"
    assert PLAIN.label({"job": "about town"}) == "about town"
    people = ({"age": 41, "pay": 500}, {"age": 67, "pay": 500})
    pair = Witness(people, ("1", "0"), rows=(True, False))
    score = samples.causal(against=("age",), population="rows", witnesses=(pair,), direction=())
    shown = re.sub(r"(<[^>]*>|\s)+", " ", render_page(samples.result(withheld(score))))
    assert "age about 40 decision: 1" in shown
    assert "age about 70 decision: 0" in shown


@pytest.mark.parametrize(
    ("condition", "shown"),
    [
        ("sex = f", "sex = women"),
        ("sex ≠ f", "sex ≠ women"),
        ("sex is one of f, x", "sex is one of women, x"),
        ("sex is none of f, m", "sex is none of women, men"),
        ("sex = x", "sex = x"),
        ("sexes = f", "sexes = f"),
        ("age ≤ 47", "age ≤ 47"),
    ],
)
def test_words_of_values_are_in_conditions(condition: str, shown: str) -> None:
    named = Naming(values={"sex": {"f": "women", "m": "men"}})
    region = Region((condition,), 0.6, 0.5, 0.7, 0.2, 3.0, 140, loses={"race": "green"})
    result = replace(samples.result(samples.causal(regions=(region,))), report=named)
    page = samples.plain(re.sub(r"<(style|title).*?</\1>", "", render_page(result)))
    for said in (page, " ".join(render_result(result).split())):
        assert f"reen lose where {shown}" in said
        assert shown == condition or condition not in said
    undirected = region_sentence(replace(region, loses=None), samples.causal(), Wording(named))
    assert undirected.startswith(f"where {shown}: ")


@pytest.mark.parametrize(
    ("values", "shown"),
    [({}, "sad 'x'"), ({"mood": {"sad 'x'": "the sad"}}, "The sad")],
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


@pytest.mark.parametrize(
    ("region", "part"),
    [
        (
            Region(("age ≤ 38",), 11 / 15, 0.268, 0.979, 0.2, 3.0, 15, 11, loses={"sex": "f"}),
            "11 of 15 such changes (between 26.8 % and 97.9 %)",
        ),
        (
            Region(("age ≤ 38",), 1.0, 0.985, 1.0, 0.2, 3.0, 300, 300, loses={"sex": "f"}),
            "100 % of such changes (at least 98.5 %)",
        ),
        (Region(("age ≤ 38",), 1.0, 1.0, 1.0, 0.2, 3.0, 5, 5, loses={"sex": "f"}), "5 of 5 such"),
    ],
)
def test_a_card_says_how_much_of_it_is_where_somebody_loses(region: Region, part: str) -> None:
    harm = Harm({"sex": "f"}, {"sex": "m"}, 0.0, 0.3, 100)
    score = samples.causal(against=("sex",), witnesses=(), direction=(harm,), regions=(region,))
    said = f" lose where age ≤ 38: {part}"
    assert said in plain(str(where_losing(score)))
    assert said in plain(render_page(samples.result(score)))
    assert part in plain(region_sentence(region, score))  # as in the terminal


def test_a_caution_never_changes_the_name_that_it_begins_with() -> None:
    widened = Note.of("range-widened", name="race", min=1, max=2)
    ended = Note.of("mostly-same", low=0.0, high=0.05, fewest=10, most=20, about="race,sex")
    other = Note.of("pairs-not-confirmed")
    page = samples.plain(
        render_page(samples.result(samples.causal(), notes=(widened, ended, other)))
    )
    assert "race was widened to 1 to 2" in page
    assert "race,sex: " in page
    assert capital("race was widened", ["rac"]) == "Race was widened"
    assert capital(str(other), ["race"]) in page


def test_markdown_calls_an_output_by_its_name() -> None:
    shown = render_markdown(samples.result(samples.causal(output="limit")))
    assert "| **limit** | **1** | **0** |" in shown
    assert "**decision**" not in shown
    assert "| **decision** | **1**" in render_markdown(samples.result(samples.causal()))


def test_the_first_screen_says_on_whom_in_how_many_runs_and_how_to_read_it() -> None:
    named = replace(samples.result(samples.causal(), samples.group()), report=Naming(
        people="applicants", decision="approval"))  # fmt: skip
    runs = f"{named.executions:,} runs of the program"
    assert measured_on(named) == (
        f"Measured on generated test applicants, not on real applicants, in {runs}."
    )
    assert how_to_read(named) == (
        "How to read this: the decision changes with race if the same test applicant gets a "
        "different one when nothing but race is changed; rates are how often each group gets "
        "approval."
    )


def test_what_stands_behind_both_scores_is_said_once() -> None:
    exact: dict[str, Any] = {"method": "exact", "population": "profile"}
    one = samples.causal(score=0.2, low=0.2, high=0.2, **exact)
    other = samples.group(score=0.3, low=0.3, high=0.3, **exact)
    result = samples.result(one, other)
    assert verdict(result).behind == "Exact: everybody in the profile was run."
    sampled = samples.result(samples.causal(), samples.group())
    assert verdict(sampled).behind.count("confidence interval") == 2


def test_every_format_has_the_same_verdict() -> None:
    shown = samples.result(samples.causal(), samples.group(against=("age",)))
    said = verdict(shown).sentence
    for text in (render_page(shown), render_markdown(shown), shown._repr_html_()):
        assert said in samples.plain(text)
    assert said in " ".join(render_result(shown, file=io.StringIO(), width=400).split())


PARTED = re.compile(r"\d[ \n]+(?:[%]|(?:percentage )?points)")


@pytest.mark.slow
@pytest.mark.parametrize("result", [samples.all_facts(), samples.checked(samples.all_facts())])
def test_no_line_end_parts_a_number_from_its_unit(result: Result) -> None:
    page = re.sub(r"<(style|pre|bdi).*?</\1>|<[^>]*>", "", render_page(result))
    for text in (page, render_markdown(result), result._repr_html_()):
        assert "\u00a0%" in text
        assert not PARTED.search(re.sub(r"<[^>]*>", "", text))
    show = render_checks if result.checks else render_result
    for width in range(30, 101):
        lines = show(result, width=width, everything=True).split("\n")
        ends = ["\n".join([one[-1:], other.lstrip()]) for one, other in pairwise(lines)]
        assert not [each for each in ends if PARTED.match(each)], width


def test_what_is_copied_from_a_page_keeps_its_spaces() -> None:
    command = "themis score '30 % off.toml'"
    shown = render_page(replace(samples.all_facts(), source={"command": command}))
    assert escape(command) in shown
    assert html.value("30 %") == "<bdi>30 %</bdi>"


def test_words_in_the_plural_fit_what_pairs_get() -> None:
    words = Wording(Naming(values={"sex": {"f": "women"}}))
    people = ({"sex": "f", "age": 30}, {"sex": "m", "age": 30})
    test = ReplayedTest("still", ("sex",), people, ("refused", "approved"), ("refused", None))
    assert pair_outcome(test, words) == (
        "refused for women, no decision for sex m; before, refused and approved"
    )
    pair = samples.causal(against=("sex",), witnesses=(Witness(people, ("refused", "approved")),))
    assert example(pair, words) == "refused for women, approved for sex m; both have age 30"


def test_a_replay_on_the_terminal_speaks_in_the_words_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(tmp_path, monkeypatch)
    words = '[report.values]\nrace.green = "green people"\n'
    write_project(tmp_path, "return int(person['race'] == 'green')", inputs=SMALL, extra=words)
    run("score", "--suite", "suite.csv")
    assert "1 for green people" in run("replay", "suite.csv").stdout


ONE_LEFT_OUT = {
    "dropped": 1, "rows": 1, "file": "people.csv",
    "reasons": [{"where": "age", "reason": "too old", "rows": 1, "examples": []}],
}  # fmt: skip


def test_one_point_one_change_and_one_row_are_no_plurals() -> None:
    shares = (0.01, 0.1, 0.025, 0.005)
    assert [amount(each, samples.group()) for each in shares] == [
        *("1 point", "10 points", "2.5 points", "0.5 points"),
    ]
    assert amount(0.01, samples.causal()) == "1 %"
    near = Note.of("score-near-limit", error=0.01)
    assert "± 1 point cannot tell" in str(near)
    precise = samples.group(error=0.01, low=0.195, high=0.215, score=0.205)
    assert "within ± 1 point of" in (seen(precise) or "")
    harm = Harm({"race": "green"}, {"race": "purple"}, 0.1, 0.1, 106)
    for number, said in ((4, "1 more change that does harm"), (5, "2 more changes that do harm")):
        score = samples.causal(direction=(harm,) * number)
        assert f"… and {said}" in render_result(samples.result(score))
    assert [rest(n) for n in (0, 1, 2)] == ["", "1 more is not shown", "2 more are not shown"]


def test_many_statements_have_a_separator() -> None:
    assert confidence_text(0.99, 1642) == "99 % confidence for all 1,642 together"
    assert confidence_text(0.99, 2) == "99 % confidence for both together"


def test_one_of_a_thing_is_no_plural() -> None:
    said = [count_of(each, "second") for each in (0, 1, 1.0, 2.5, 1404)]
    assert said == ["0 seconds", "1 second", "1 second", "2.5 seconds", "1,404 seconds"]
    with pytest.raises(themis.SchemaError, match="1 weight for 2 values"):
        themis.Schema(sex=themis.Values(["f", "m"], weights=[1]))
    with pytest.raises(themis.SchemaError, match="2 weights for 1 value;"):
        themis.Schema(sex=themis.Values(["f"], weights=[1, 2]))
    assert str(samples.causal(executions=1)).endswith("(sampled, 1 execution)")
    left_out = str(Note.of("rows-left-out", **ONE_LEFT_OUT))
    assert left_out.startswith("1 of 1 row of people.csv does not fit the schema and was left out")
    flip = Note.of("inputs-flip", flips=1, inputs=1)
    assert str(flip) == "1 of 1 input gets a different output"


def test_markdown_tells_rows_apart_and_shows_digits_as_they_are() -> None:
    rows = samples.causal(population="rows")
    scores = (samples.causal(), rows, replace(rows, counterfactuals="within"), samples.group())
    text = samples.plain(render_markdown(samples.result(*scores)))
    lines = [line for line in text.splitlines() if line.startswith("| race")]
    assert len(set(lines)) == 4
    assert "causal, in the rows, among themselves" in text
    assert "20.0 points" in text
    assert "&#4" not in text
    assert "&#5" not in text


def test_an_impact_ratio_is_told_from_four_fifths() -> None:
    assert [ratio_text(each) for each in (0.8, 0.7971, 0.803, 0.791, 1.0)] == [
        *("0.80", "0.7971", "0.803", "0.79", "1.00"),
    ]


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


def test_a_group_of_weighted_rows_is_counted_in_rows() -> None:
    """Seven rows may stand for 21 people, and draws from a profile for nobody in particular."""
    score = samples.group(population="profile", method="exact")
    group = replace(score.groups[0], samples=7, people=7)
    assert PLAIN.of_group(group, score) == "7 people"
    assert PLAIN.of_group(replace(group, people=21), score) == "7 rows"
    assert PLAIN.of_group(replace(group, people=5), replace(score, method="sampled")) == "7 draws"


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
