"""Searches by excess: are they right where the truth is known, and do they say so everywhere?"""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import themis
from tests.projects import Project, run
from tests.scores.test_excess import SCHEMA, lottery, random_subject
from tests.simulations.at_random import cells
from tests.simulations.counting import simulate
from themis.audit.checker import run_checks
from themis.audit.plan import Wish, make_plan
from themis.events import FACTOR, Forecast
from themis.results.comparison import compare
from themis.results.saved import result_from_dict
from themis.results.verdicts import Check
from themis.show.reports.formats import FORMATS

NAMES = ("a", "b", "c")


def exact(chances: Any, weights: Any, against: tuple[int, ...]) -> float:
    """The largest mean of (p − q)² over contexts, of two assignments; by the definition."""
    others = tuple(axis for axis in range(chances.ndim) if axis not in against)
    count = int(np.prod([chances.shape[axis] for axis in against]))
    own = chances.transpose(*against, *others).reshape(count, -1)
    of_contexts = weights.transpose(*against, *others).reshape(count, -1).sum(axis=0)
    return float((((own[:, None] - own[None]) ** 2) @ of_contexts).max())


@pytest.mark.parametrize("threshold", [0.05, pytest.param(0.2, marks=pytest.mark.slow)])
def test_all_decisions_outside_of_the_zone_are_right(threshold: float) -> None:
    wrong = found = 0
    sets = [each for size in (1, 2, 3) for each in combinations(range(3), size)]
    for seed in range(8):
        rng = np.random.default_rng(seed)
        chances = rng.random((2, 3, 2)) ** 2
        weights = np.full(chances.shape, 1 / chances.size)

        def decide(table: themis.InputTable, chances: Any = chances, rng: Any = rng) -> Any:
            return rng.random(len(table)) < chances[tuple(table[name] for name in NAMES)]

        schema = themis.Schema(a=range(2), b=range(3), c=range(2), beside=range(10**6))
        audit = themis.Audit(themis.batch(decide), schema, seed=seed, confidence=0.8)
        search = audit.search(threshold, "excess", NAMES, error=0.04)
        truth = {tuple(NAMES[n] for n in each): exact(chances, weights, each) for each in sets}
        listed = [set(each) for each in search.found]
        right = all(truth[each] > threshold - 0.04 for each in search.found) and all(
            value < threshold + 0.04 or any(each <= set(names) for each in listed)
            for names, value in truth.items()
        )
        assert search.conclusive
        wrong += not right
        found += len(listed)
    assert wrong <= 4  # 1.6 are allowed on average
    assert found >= 4


def test_where_they_are_not_more_may_do_less_and_the_search_lists_the_minimal_set() -> None:
    chances, weights = np.zeros((2, 2, 2)), np.zeros((2, 2, 2))
    weights[:, 0, 0] = weights[:, 1, 1] = 0.25  # b and c go together, and a decides then
    chances[1, 0, 0] = chances[1, 1, 1] = 1
    chances[:, 0, 1] = chances[:, 1, 0] = 0.5
    assert exact(chances, weights, (0,)) == 1
    assert exact(chances, weights, (0, 1)) == 0.5
    schema = themis.Schema(a=range(2), b=range(2), c=range(2), constraints=["b == c"])
    audit = themis.Audit(lambda person: person["a"], schema)
    assert audit.search(0.6, "excess").found == (("a",),)


def test_no_fair_subject_is_convicted_whatever_its_randomness_and_its_budget() -> None:
    tallies = [(cell, simulate(cell, runs)) for cell, runs in cells(1) if cell.budget]
    assert all(tally.price <= (cell.budget or 0) for cell, tally in tallies)
    assert sum(tally.convicted for _, tally in tallies) <= 4  # 2.4 are allowed on average


@pytest.mark.parametrize("runs", [5, pytest.param(20, marks=pytest.mark.long)])
@pytest.mark.slow
def test_no_fair_subject_is_convicted_more_often_than_stated(runs: int) -> None:
    for cell, times in cells(runs):
        assert not simulate(cell, times).surely_above(1 - cell.confidence, cells=36), cell.name


def guilty(seed: int) -> Any:
    """For one in ten, women are favoured in nine of ten answers and men in one: .064."""
    rng = np.random.default_rng(seed)

    def decide(table: themis.InputTable) -> Any:
        turned = np.where(table["sex"] == "f", 0.9, 0.1)
        usual = table["income"] % 2
        return rng.random(len(table)) < np.where(table["income"] < 10, turned, usual)

    return themis.batch(decide)


def test_a_tenth_that_is_turned_round_is_found_within_a_thousand_contexts() -> None:
    taken = []
    for seed in range(3):
        audit = themis.Audit(guilty(seed), SCHEMA, seed=seed)
        search = audit.search(0.05, "excess", ["sex", "region"], error=0.025)
        assert search.found == (("sex",),)
        (score,) = search.minimal_sets
        assert score.low <= 0.064 <= score.high
        assert score.high - score.low <= 0.05
        taken += [each.samples for each in search.tested if each.against == ("sex",)]
    assert 200 <= np.mean(taken) <= 1_000


def test_what_one_question_asked_the_next_ones_go_on_from() -> None:
    audit = themis.Audit(guilty(0), SCHEMA, error=0.02)
    score, search = audit.excess("sex"), audit.search(0.02, "excess", ["sex"])
    assert (search.found, search.executions) == ((("sex",),), 0)
    assert search.minimal_sets[0].samples == score.samples


def test_a_set_of_too_many_assignments_is_undecided_and_says_why() -> None:
    audit = themis.Audit(random_subject(0, 0.0), SCHEMA, error=0.1)
    search = audit.search(0.2, "excess", ["sex", "income"])
    assert search.undecided == (("income",), ("sex", "income"))
    assert "100 assignments are too many to compare" in search.why("income")
    with pytest.raises(themis.InconclusiveError):
        search.assert_nothing_found()


@pytest.mark.parametrize("fair", [False, True])
def test_a_check_holds_found_sets_against_its_limit(fair: bool) -> None:
    small = themis.Schema(sex=["f", "m"], region=range(5), income=range(2))
    subject = random_subject(1, 0.0) if fair else guilty(1)
    with themis.Audit(subject, small if fair else SCHEMA, error=0.02) as audit:
        check = Check(search=True, measure="excess", max_score=0.02)
        (answer,) = run_checks(audit, [check], among=["sex", "region"]).checks
    assert answer.verdict == ("holds" if fair else "violated"), str(answer)


def test_nothing_is_run_again_and_no_budget_is_kept_back_for_it() -> None:
    with themis.Audit(guilty(0), SCHEMA, max_executions=5_000) as audit:
        result = audit.search_all(0.05, ["excess"], ["sex"])
    assert result.searches[0].found == (("sex",),)
    assert (result.spent.noise, result.noise) == (0, None)


# Commands --------------------------------------------------------------------------------------


def asked(folder: Path, url: str, *options: str) -> Any:
    (folder / "themis.toml").write_text(
        f'version = 1\n[subject]\nkind = "http"\nurl = "{url}"\nfavourable = ["1", 1]\n[inputs]\n'
        'sex = { values = ["f", "m"], protected = true }\n'
        'race = { values = ["g", "p"], protected = true }\nage = { min = 18, max = 999999 }\n'
    )
    search = "--measure excess --threshold 0.15 --error 0.15 --max-size 1 --among sex,race"
    return run("search", str(folder / "themis.toml"), *search.split(), *options)


def test_a_search_of_a_service_is_resumed_and_asks_nothing_twice(tmp_path: Path) -> None:
    path, sent = tmp_path / "result.json", []
    with lottery() as service:
        for options, code in (
            (["--max-executions", "200"], 4),
            (["-o", str(path)], 0),
            ([], 0),
            (["--no-cache"], 0),
        ):
            done = asked(tmp_path, service.url, *options)
            assert done.exit_code == code, done.output
            sent.append(len(service.requests))
    assert sent[0] <= 200 < sent[1] == sent[2] < sent[3] - 200
    result = result_from_dict(json.loads(path.read_text()))
    assert result.executions == sent[1] - 200
    assert result.searches[0].found == (("sex",),)


def test_an_audit_measures_and_searches_it_beside_groups(project: Project) -> None:
    body = "return int(random.random() < (0.8 if person['sex'] == 'm' else 0.2))"
    project(body, head="import random")
    done = run("audit", "--measure", "excess", "--threshold", "0.15", "--error", "0.1")
    assert done.exit_code == 0, done.output
    result = result_from_dict(json.loads(Path("themis-audit/result.json").read_text()))
    assert {each.measure for each in result.scores} == {"excess", "group"}
    assert [each.measure for each in result.searches] == ["excess", "group"]
    assert "The excess is what a change does beyond that" in " ".join(done.output.split())
    assert "repeats = 5" not in done.output
    page = Path("themis-audit/report.html").read_text()
    assert "The decision changes beyond chance with sex (" in page


@pytest.mark.parametrize("subject", [guilty(0), random_subject(0)], ids=["a tenth", "all"])
def test_what_it_takes_is_foreseen_within_the_stated_factor(subject: Any) -> None:
    protected = {
        "sex": themis.Values(["f", "m"], protected=True),
        "region": themis.Values(range(3), protected=True),
    }
    schema, told = themis.Schema(protected, income=range(100), savings=range(10**6)), list[Any]()
    audit = themis.Audit(subject, schema, listen=told.append)
    spent = audit.everything(measures=("excess", "group")).executions
    (audited,) = (each for each in told if isinstance(each, Forecast))
    assert spent / FACTOR <= audited.executions <= FACTOR * spent
    plan = make_plan(themis.Audit(subject, schema), wish=Wish(measures=["excess"]))
    spent = themis.Audit(subject, schema).score([["sex"], ["region"]], ["excess"]).executions
    assert spent / FACTOR <= plan.forecast.executions <= FACTOR * spent
    assert plan.forecast.again == 0


def test_of_a_profile_contexts_are_those_of_its_people() -> None:
    found = []
    for income in (50, 5):
        people = {"sex": ["f", "m"] * 50, "region": [1] * 100, "savings": [*range(100)]}
        audit = themis.Audit(guilty(2), SCHEMA, profile=people | {"income": [income] * 100})
        found.append(audit.search(0.2, "excess", ["sex", "region"]))
    assert [each.found for each in found] == [(), (("sex",),)]
    assert {each.population for each in (*found, *found[1].minimal_sets)} == {"profile"}


def test_where_noise_is_found_the_measure_beyond_it_is_named() -> None:
    with themis.Audit(random_subject(0), SCHEMA) as audit:
        page = FORMATS["md"].render(audit.score(["sex"], ["group"]))
    assert str(page).count("--measure excess measures what changing sex does beyond that") == 1


def test_every_format_shows_it_and_a_saved_one_is_the_same_and_compared() -> None:
    results = []
    for subject in (random_subject(3, 0.0), guilty(0)):
        with themis.Audit(subject, SCHEMA, error=0.015) as audit:
            results.append(audit.search_all(0.03, ["excess"], ["sex", "region"]))
    fair, found = results
    saved = result_from_dict(found.to_dict())
    assert saved.to_dict() == found.to_dict()
    assert "beyond chance" in saved._repr_html_()
    for name, each in FORMATS.items():
        for result in (fair, saved):
            shown = each.render(result)
            text = shown if isinstance(shown, str) else shown.decode("utf-8", "replace")
            said = "excess" in text.lower() or "beyond chance" in text
            assert said or (name, result) == ("github", fair) or name in ("junit", "csv"), name
    assert "by about 3\xa0points or more (more than 1.5\xa0points" in str(
        FORMATS["md"].render(saved)
    )
    changed = compare(fair, found).sets
    assert [(each.quantity.against, each.change) for each in changed] == [(("sex",), "new")]
