"""Does any document depend on what fewer than five people get, beyond its verdict?

Results that differ only in the number of such people, on the same side of all others, have the
same documents.
"""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import themis
from tests.projects import run
from themis.results.comparison import compare
from themis.results.model import GroupScore, Result, Score
from themis.results.parts import Group, Naming
from themis.results.saved import result_from_dict
from themis.results.verdicts import judge_score, limit_on
from themis.results.withheld import by_size, tells_of_few, withheld, withheld_check
from themis.scores.apparent import rests_on_few
from themis.show.notebook import html_of, plot
from themis.show.reports.formats import FORMATS
from themis.show.reports.page import render_comparison
from themis.show.terminal.results import (
    render_checks,
    render_differences,
    render_result,
    render_search,
)
from themis.show.words.explanations import harms
from themis.show.words.headlines import headline
from themis.show.words.verdicts import adds, verdict

LIMIT = 0.01
SIZES = {"a": 12, "b": 7}  # and c, of whom there are few


def measured(gets: Mapping[str, float], people: int, failing: int = 0) -> dict[str, Result]:
    """A result of rows, one of a profile, and a search; each with a check of the same limit."""
    rows = [{"race": race, "age": n} for race, n in SIZES.items() for n in range(n)]
    rows += [{"race": "c", "age": n} for n in range(people + failing)]

    def decide(person: dict[str, Any]) -> float:
        if person["race"] == "c" and person["age"] >= people:
            raise ValueError("no")
        return gets[person["race"]] + person["age"] / 1000

    schema = themis.Schema(race=["a", "b", "c"], age=range(40))
    output = themis.Output(name="limit", min=0, max=1000)
    audit = themis.Audit(
        decide, schema, profile=rows, outputs=[output], deterministic=True, seed=1,
        max_failures=0.9,
    )  # fmt: skip
    found = {
        "rows": audit.apparent(rows, "race", measures=["group"], only_data=True),
        "profile": audit.score([("race",)], measures=["group"]),
        "search": audit.search_all(threshold=0.015, measures=["group"], among=["race"]),
    }
    return {name: _comparable(each) for name, each in found.items()}


def _comparable(result: Result) -> Result:
    check = limit_on("group", ("race",), LIMIT, "limit")
    about = {"timing": {}, "subject": {"kind": "python", "fingerprint": "the same"}}
    checks = tuple(judge_score(check, each, 0.99) for each in result.scores)
    return replace(result, checks=checks, **about)


def documents(result: Result, before: Result) -> Iterator[tuple[str, str]]:
    """All that is shown of a result, of its checks, and of it beside an earlier one."""
    bare = replace(result, checks=())
    for name, way in FORMATS.items():
        yield name, way.render(result)
        yield f"{name} without checks", way.render(bare)
    pages: dict[str, Callable[..., str]] = {"result": render_result, "checks": render_checks}
    if result.searches:
        pages["search"] = render_search
    for name, page in pages.items():
        yield name, page(withheld(result), file=io.StringIO(), everything=True)
    differences = withheld(compare(before, result))
    yield "diff", render_differences(differences, file=io.StringIO(), everything=True)
    yield "diff.md", render_comparison(compare(before, result), Path("diff.md"))
    yield "diff.html", render_comparison(compare(before, result), Path("diff.html"))
    yield "diff.json", str(differences.to_dict())
    for thing in (bare, *result.scores, *result.searches):
        for show in (html_of, plot, repr, str):
            yield f"{show.__name__} {type(thing).__name__}", str(show(thing))
    yield "repr", repr(result)
    yield "verdict", verdict(withheld(result)).sentence


def draw_case(seed: int) -> tuple[dict[str, float], float, float, int, int]:
    """What two groups get, two numbers of few people on the same side of them, and how many."""
    rng = random.Random(seed)
    low, high = sorted(rng.sample(range(200, 800), 2))
    high += 20
    ends = [(0, low - 30), (low + 1, high - 1), (high + 30, 999)][seed % 3]
    one, other = (rng.uniform(*ends) for _ in range(2))
    gets = {"a": low, "b": high} if rng.random() < 0.5 else {"a": high, "b": low}
    return gets, one, other, rng.randint(1, 4), rng.choice((0, 5))


@pytest.mark.parametrize(
    "seed", [0, 1, 2, *(pytest.param(n, marks=pytest.mark.slow) for n in range(3, 15))]
)
@pytest.mark.some_slow(core=1, full=2)
def test_documents_do_not_depend_on_what_few_people_get(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    gets, one, other, people, failing = draw_case(seed)
    first, second = (measured({**gets, "c": each}, people, failing) for each in (one, other))
    before = measured({"a": 1, "b": 500, "c": 999}, people)
    assert first["rows"].scores[0].groups != second["rows"].scores[0].groups  # type: ignore[attr-defined]
    for kind in first:
        assert_same(first[kind], second[kind], before[kind], monkeypatch)


def assert_same(
    one: Result, other: Result, before: Result, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """The documents of both, which are the same."""
    monkeypatch.setattr(Result, "to_dict", lambda _: {"themis": ""})  # documents carry its hash
    texts = dict(documents(one, before))
    for name, text in documents(other, before):
        assert texts[name] == text, name
    return texts


def score_of(*groups: Group, **changes: Any) -> GroupScore:
    rates = [each.rate for each in groups]
    spread = max(rates) - min(rates)
    kind = {"statistic": "mean", "scale": (0.0, 1000.0), "population": "rows", "output": "limit"}
    score = measured({"a": 1, "b": 2, "c": 3}, 1)["rows"].scores[0]
    assert isinstance(score, GroupScore)
    ends = {"score": spread, "low": spread, "high": spread}
    return replace(score, groups=groups, **{**kind, **ends, **changes})


def of(race: str, rate: float, people: int, **more: Any) -> Group:
    return Group({"race": race}, rate, rate, rate, people, people=people, **more)


def test_a_difference_that_rests_on_few_has_no_size_and_one_that_does_not_has_all() -> None:
    score = withheld(score_of(of("a", 0.4, 40), of("b", 0.5, 40), of("c", 0.6, 1), of("d", 0.1, 2)))
    assert (score.score, score.low, score.high) == (None, None, None)
    assert headline(score) == (
        "Means of limit differ between groups of race in the rows; how much is not shown, as that "
        "would tell of fewer than 5 people"
    )
    assert not list(harms(score, most=1))
    shown = score_of(of("a", 0.4, 40), of("b", 0.5, 40), of("e", 0.45, 40), of("c", 0.45, 1))
    assert withheld(shown).score == pytest.approx(0.1)
    assert headline(withheld(shown)) == (
        "Means of limit differ by 100 between race a and race b, the lowest and highest of 3 "
        "groups of race that are shown in the rows; means of fewer than 5 people are not shown "
        "(exact: every row was run)"
    )


def test_answers_are_counted_and_not_people() -> None:
    """Of six people one has an output: the mean is theirs."""
    found = measured({"a": 200, "b": 300, "c": 777}, 1, failing=5)
    for kind in ("rows", "profile"):
        (score,) = found[kind].scores
        assert isinstance(score, GroupScore)
        assert [(each.people, each.answers) for each in score.groups][2] == (6, 1)
        shown = withheld(score)
        assert [each.values["race"] for each in shown.groups] == ["a", "b"]
        assert shown.score is None
        assert score.to_dict()["groups"][2]["answers"] == 1
        assert score.to_dict()["groups"][0]["answers"] is None
    found = measured({"a": 200, "b": 300, "c": 777}, 5, failing=1)
    (score,) = found["rows"].scores
    assert withheld(score).groups == score.groups
    assert "6 people, 5 with an output" in next(harms(score, most=1))


def test_numbers_that_few_people_do_not_change_are_shown() -> None:
    score = score_of(of("a", 0.4, 40), of("b", 0.5, 40), of("c", 0.45, 1))
    assert not tells_of_few(score)
    shown = withheld(score)
    assert len(shown.groups) == 2
    assert shown.score == pytest.approx(score.score)
    check = judge_score(limit_on("group", ("race",), LIMIT, "limit"), score, 0.99)
    assert withheld_check(check, [score]).score == check.score
    assert withheld(shown) is shown


def test_beside_a_number_that_is_shown_none_is_told_to_be_the_same() -> None:
    shown = measured({"a": 200, "b": 300, "c": 400}, 5)["rows"]
    hidden = replace(shown, scores=(hiding(shown.scores[0]),))
    assert compare(shown, hidden).scores[0].change == "the same"
    for pair in ((shown, hidden), (hidden, shown)):
        (each,) = withheld(compare(*pair)).scores
        assert each.change == "not shown"
        assert {each.before.told, each.after.told} == {True, False}
    fewer = measured({"a": 200, "b": 300, "c": 301}, 5)["rows"]
    assert withheld(compare(shown, fewer)).scores[0].change == "fallen"
    assert withheld(compare(hidden, fewer)).scores[0].change == "not shown"
    risen = withheld(compare(fewer, hidden))
    assert risen.scores[0].change == "risen"  # as the verdict says
    assert risen.verdict == compare(fewer, hidden).verdict == "new discrimination"
    assert withheld(compare(hidden, hidden)).scores[0].change == "the same"


def hiding(score: Any) -> Any:
    """The same score, with one person in the last group."""
    *others, last = score.groups
    return replace(score, groups=(*others, replace(last, people=1)))


# Averages of differences ---------------------------------------------------------------------
def averaged(number: float, kind: str, pairs: int = 1, tolerance: float | None = None) -> Result:
    """Prices of rows of whom few have a counterpart, or change; one of them gets the number."""
    alone = [{"race": "ab"[n % 2], "age": n} for n in range(30)]
    both = [{"race": race, "age": 100 + n} for n in range(pairs) for race in "ab"]

    def decide(person: dict[str, Any]) -> float:
        return number if person["race"] == "a" and person["age"] >= 100 else 0.0

    schema = themis.Schema(race=["a", "b"], age=range(200))
    distance = "relational" if tolerance is None else "threshold"
    output = themis.Output(name="price", min=0, max=1000, distance=distance, tolerance=tolerance)
    audit = themis.Audit(decide, schema, outputs=[output], deterministic=True, seed=1)
    result = audit.apparent(
        [*alone, *both], "race", measures=["causal"], counterfactuals=kind, only_data=True
    )
    (score,) = result.scores
    check = judge_score(limit_on("causal", ("race",), LIMIT, "price"), score, 0.99)
    about = {"timing": {}, "subject": {"kind": "python", "fingerprint": "the same"}}
    return replace(result, checks=(check,), **about)


@pytest.mark.parametrize("kind", ["within", "generated"])
def test_documents_do_not_depend_on_how_far_few_people_differ(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = averaged(876.54, kind), averaged(881.23, kind)
    assert one.scores[0].score != other.scores[0].score
    texts = assert_same(one, other, averaged(999, kind), monkeypatch)
    for name in ("md", "html", "annex", "result"):
        assert "not shown" in " ".join(texts[name].split())
    (row,) = csv.DictReader(io.StringIO(texts["csv"]))
    assert {row["score"], row["low"], row["high"]} == {""}


def test_an_average_of_few_differences_says_that_they_differ() -> None:
    (score,) = averaged(876.54, "within").scores
    assert headline(withheld(score)) == (
        "The output price differs between rows that differ only in race; how much is not shown, "
        "as that would tell of fewer than 5 people"
    )
    assert str(score) == "causal score against race: not shown, as it would tell of few people"
    (score,) = averaged(876.54, "generated").scores
    assert headline(withheld(score)) == (
        "The output price changes for some of the people in the rows when only their race is "
        "changed; how much is not shown, as that would tell of fewer than 5 people"
    )
    unsure = replace(score, low=0.0)
    assert headline(withheld(unsure)).startswith("Undecided for race: the output price changed")
    saved = result_from_dict(averaged(876.54, "within").to_dict())
    assert tells_of_few(saved.scores[0])


@pytest.fixture(params=["causal", "group"])
def score(request: pytest.FixtureRequest) -> Score:
    """A score of each kind whose numbers would tell of few people."""
    if request.param == "causal":
        return averaged(876.54, "within").scores[0]
    return score_of(of("a", 0.4, 40), of("b", 0.87654, 1))


def test_numbers_that_are_not_shown_are_not_there(score: Score) -> None:
    shown = withheld(score)
    assert {shown.score, shown.low, shown.high} == {None}
    data = shown.to_dict()
    assert {data["score"], data["low"], data["high"]} == {None}
    assert data["withheld"] == "few-people"
    assert "whole" not in data
    assert "8765" not in json.dumps(data)


def test_no_set_is_dropped_or_put_first_by_a_number_that_is_not_shown(score: Score) -> None:
    part = replace(score, against=("age",), population="inputs", score=0.1, low=0.1, high=0.1)
    both = withheld(replace(score, against=("age", "race")))
    assert adds(both, [part])
    assert adds(part, [both])
    assert sorted([both, part], key=by_size) == [part, both]
    result = replace(averaged(876.54, "within"), scores=(part, both), checks=())
    assert "age and race" in verdict(result).sentence


@pytest.mark.parametrize("kind", ["within", "generated"])
def test_averages_of_many_and_counts_of_few_are_shown(kind: str) -> None:
    for few in (4, 7) if kind == "within" else (2, 3):
        assert tells_of_few(averaged(500, kind, pairs=few).scores[0])
    assert not tells_of_few(averaged(500, kind, pairs=8).scores[0])
    assert not tells_of_few(averaged(500, kind, tolerance=10).scores[0])
    assert not tells_of_few(averaged(0, kind).scores[0])


@pytest.mark.parametrize(
    ("pairs", "heads", "few"),
    [
        ([], [1, 1], False),
        ([(0, 1)], [1, 1], True),
        ([(0, 1)], [1, 400], True),  # all of these differ from one person
        ([(0, 1)], [5, 400], False),
        ([(0, n) for n in range(1, 9)], [1] * 9, True),
        ([(2 * n, 2 * n + 1) for n in range(4)], [1] * 8, True),
        ([(2 * n, 2 * n + 1) for n in range(7)], [1] * 14, True),  # four of seven
        ([(2 * n, 2 * n + 1) for n in range(8)], [1] * 16, False),
        ([(0, 1), (2, 3)], [50, 50, 1, 1], True),  # the one of many may be known
        ([(3, 4), (2, 3), (1, 2), (0, 1)], [9, 9, 9, 9, 1], True),
        ([(0, 0), (1, 1)], [2, 3], True),
        ([(n, n) for n in range(4)], [2, 2, 2, 2], False),
    ],
)
def test_differences_are_of_as_many_as_the_rarest_row(
    pairs: list[tuple[int, int]], heads: list[int], few: bool
) -> None:
    assert of_few(pairs, heads, heads) is few


def of_few(pairs: list[tuple[int, int]], heads: list[int], amounts: Sequence[float]) -> bool:
    places = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return rests_on_few(places, np.array(heads, dtype=float), np.array(amounts, dtype=float))


@pytest.mark.parametrize(
    ("amounts", "heads", "few"),
    [
        ([0.1] * 80 + [331.37], [1] * 81, True),
        ([0.1] * 80 + [331.37], [1] * 80 + [5], False),  # what five have hides nobody
        ([1] * 80 + [20] * 4, [1] * 84, False),  # half of it
        ([1] * 80 + [21] * 4, [1] * 84, True),
        ([1] * 80 + [21] * 4, [1] * 80 + [2] * 4, False),  # of two people each
        ([1] * 80 + [81] * 2, [1] * 80 + [2] * 2, True),
        ([0.1] * 80 + [331.37], [5] * 80 + [1], True),
    ],
)
def test_an_average_most_of_which_few_people_make_up_is_not_shown(
    amounts: list[float], heads: list[int], few: bool
) -> None:
    assert of_few([(n, n) for n in range(len(amounts))], heads, amounts) is few


@pytest.mark.parametrize("kind", ["within", "generated"])
def test_what_one_person_gets_is_not_told_where_all_others_change_a_little(kind: str) -> None:
    rows = [{"race": race, "age": n} for n in range(40) for race in "ab"]
    schema = themis.Schema(race=["a", "b"], age=range(41))
    output = themis.Output(name="price", min=0, max=1000, distance="relational")
    asked: dict[str, Any] = {"measures": ["causal"], "counterfactuals": kind, "only_data": True}
    for apart, few in ((331.37, True), (4.5, True), (0.1234567891, False)):

        def decide(person: dict[str, Any], apart: float = apart) -> float:
            return 400 + (0.1 if person["age"] else apart) * (person["race"] == "a")

        audit = themis.Audit(decide, schema, outputs=[output], deterministic=True, seed=1)
        assert tells_of_few(audit.apparent(rows, "race", **asked).scores[0]) is few


def test_averages_of_people_are_written_with_four_digits(tmp_path: Path) -> None:
    result = averaged(123.456789, "within", pairs=9)
    (score,) = result.scores
    short = float(f"{score.score:.4g}")
    assert short != score.score
    (row,) = csv.DictReader(io.StringIO(str(FORMATS["csv"].render(result))))
    assert {float(row[name]) for name in ("score", "low", "high")} == {short}
    assert str(score.score) not in str(FORMATS["sarif"].render(result))
    (check,) = withheld(result).checks
    assert (check.score, check.low, check.high) == (short, short, short)
    before, after = differences_json(result, tmp_path / "result.json")
    assert (before["score"], after["high"]) == (short, short)
    saved = json.loads((tmp_path / "result.json").read_text())
    assert saved["scores"][0]["score"] == score.score  # the user's own


def differences_json(result: Result, path: Path) -> tuple[Any, Any]:
    """What `themis diff --json` prints of a result beside itself."""
    path.write_text(json.dumps(result.to_dict()), encoding="utf-8")
    ran = run("diff", str(path), str(path), "--json")
    (printed,) = json.loads(ran.stdout)["scores"]
    return printed["before"], printed["after"]


def test_the_json_of_a_comparison_withholds_as_its_pages_do(tmp_path: Path) -> None:
    result = measured({"a": 200, "b": 300, "c": 777}, 1)["rows"]
    before, after = differences_json(result, tmp_path / "result.json")
    assert before == after == {"score": None, "low": None, "high": None, "confidence": 1.0}
    allowed = replace(result, report=Naming(rows=True))
    before, _ = differences_json(allowed, tmp_path / "allowed.json")
    assert before["score"] == pytest.approx(result.scores[0].score)
