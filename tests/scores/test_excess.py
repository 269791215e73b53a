"""The excess score of whole audits: subjects that answer at random, and what it is refused for."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import themis
from tests.services import Reply, Request, Service, serve
from themis.audit.checker import run_checks
from themis.cli import app
from themis.results.model import Result
from themis.results.saved import result_from_dict
from themis.results.verdicts import Check
from themis.show.words.headlines import headline

SCHEMA = themis.Schema(
    sex=["f", "m"], region=range(5), income=range(100), savings=themis.Integers(0, 10**6)
)


def random_subject(seed: int, shift: float = 0.2, *, fails: float = 0.0) -> Any:
    """Chances of 0.5, and so much more for men and for region 4; men fail more often."""
    rng = np.random.default_rng(seed)

    def decide(table: themis.InputTable) -> Any:
        chance = 0.5 + shift / 2 * (table["sex"] == "m") + shift / 2 * (table["region"] == 4)
        answers = (rng.random(len(table)) < chance).astype(object)
        answers[(rng.random(len(table)) < fails) & (table["sex"] == "m")] = None
        return answers

    return themis.batch(decide)


def test_a_fair_random_subject_is_not_convicted_and_a_guilty_one_is() -> None:
    check = Check(against=("sex",), measure="excess", max_score=0.02)
    verdicts = {}
    for shift in (0.0, 0.8):
        audit = themis.Audit(random_subject(0, shift), SCHEMA, error=0.01)
        verdicts[shift] = run_checks(audit, [check]).checks[0].verdict
    assert verdicts == {0.0: "holds", 0.8: "violated"}


def decide(table: themis.InputTable) -> Any:
    """Sex decides for one in fifty, region for nobody."""
    return (table["income"] < 50) ^ ((table["savings"] % 50 == 0) & (table["sex"] == "m"))


def test_of_a_subject_that_is_certain_it_is_the_causal_score_at_most_for_some_more() -> None:
    audit = themis.Audit(themis.batch(decide), SCHEMA, error=0.02)
    excess, causal = audit.excess("sex"), audit.causal("sex")
    assert excess.low <= 0.02 <= excess.high
    assert excess.within.score == 0
    assert excess.account.sampling <= 2.5 * causal.account.sampling
    assert audit.excess("region").score == 0
    assert "asked twice, the decision differs for 0 % of test inputs; with another sex" in (
        headline(excess)
    )


# Services --------------------------------------------------------------------------------------
@contextmanager
def lottery() -> Iterator[Service]:
    """A service that draws, half of the time for men, a quarter for women."""
    rng = random.Random(0)

    def answer(request: Request) -> Reply:
        chance = 0.75 if request.json["sex"] == "m" else 0.25
        return Reply(str(int(rng.random() < chance)))

    with serve() as service:
        service.answer = answer
        yield service


def measured(folder: Path, service: Service, *options: str) -> Result:
    (folder / "themis.toml").write_text(
        f'version = 1\n[subject]\nkind = "http"\nurl = "{service.url}"\nfavourable = ["1", 1]\n'
        '[inputs]\nsex = { values = ["f", "m"], protected = true }\nage = [30, 40, 50]\n'
    )
    path = folder / "result.json"
    config = str(folder / "themis.toml")
    asked = ["score", config, "--measure", "excess", "--probe", "0", "--error", "0.15"]
    done = CliRunner().invoke(app, [*asked, "-o", str(path), *options])
    assert done.exit_code in (0, 1, 4), done.output
    return result_from_dict(json.loads(path.read_text()))


def test_what_was_drawn_before_is_asked_anew_and_what_was_answered_is_sent_once(
    tmp_path: Path,
) -> None:
    with lottery() as service:
        part = measured(tmp_path, service, "--max-executions", "200")
        before = len(service.requests)
        whole = measured(tmp_path, service)
        sent = len(service.requests)
        assert before == part.executions <= 200
        assert sent == whole.executions + whole.cache_hits  # of six inputs, thousands of answers
        assert whole.cache_hits == before
        (score,) = whole.scores
        assert score.low <= 0.25 <= score.high
        again = measured(tmp_path, service)
        assert len(service.requests) == sent
        assert again.scores[0].score == score.score


def test_a_fair_service_that_changed_since_other_sets_were_asked_is_not_convicted(
    tmp_path: Path,
) -> None:
    rng, schema = random.Random(0), themis.Schema(sex=["f", "m"], race=["a", "b"], age=range(10**6))
    with serve() as service:
        for against, chance in (("sex", 0.9), ("race", 0.1)):
            service.answer = lambda _, chance=chance: Reply(str(int(rng.random() < chance)))
            subject = service.subject(schema=schema)
            with themis.Audit(subject, schema, error=0.1, cache=tmp_path / "cache") as audit:
                assert audit.excess(against).score < 0.15


# What is said, and refused ---------------------------------------------------------------------
def test_a_saved_result_is_the_same_and_says_who_is_favoured() -> None:
    with themis.Audit(random_subject(3, 0.6), SCHEMA, error=0.05) as audit:
        result = audit.score(["sex"], ["excess"])
    saved = result_from_dict(result.to_dict())
    assert saved.to_dict() == result.to_dict()
    assert result.to_metrics()["excess/sex/low"] > 0
    told = str(headline(saved.scores[0]))
    assert "more; sex m is favoured" in told
    assert "with another sex" in told


def test_nobody_is_called_favoured_where_changes_may_cancel_out() -> None:
    def turned(table: themis.InputTable) -> Any:  # as many gain as lose
        return (table["income"] < 50) ^ (table["sex"] == "m")

    score = themis.Audit(themis.batch(turned), SCHEMA, error=0.05).excess("sex")
    assert "neither sex f nor sex m is clearly favoured" in str(headline(score))


def test_of_given_people_contexts_are_drawn_from_them() -> None:
    poor = {"sex": ["f", "m"] * 20, "region": [4] * 40, "income": [5] * 40, "savings": [7] * 40}

    rng = np.random.default_rng(1)

    def decide(table: themis.InputTable) -> Any:  # sex matters to these people, and to nobody else
        chance = 0.3 + 0.6 * ((table["sex"] == "m") & (table["region"] == 4))
        return rng.random(len(table)) < chance

    audit = themis.Audit(themis.batch(decide), SCHEMA, error=0.1)
    rows, every = audit.apparent(poor, "sex", measures=["excess"]).scores
    assert (rows.population, every.population) == ("rows", "inputs")
    assert rows.low <= 0.36 <= rows.high
    assert every.low <= 0.36 / 5 <= every.high < rows.low


def test_a_set_that_is_not_given_has_none_by_construction() -> None:
    schema = themis.Schema(
        sex=themis.Values(["f", "m"], role="group"), income=range(100), savings=range(1000)
    )
    audit = themis.Audit(lambda person: int(person["income"] > 50), schema)
    assert "0 by construction" in str(audit.excess("sex"))


def refusal(call: Any) -> str:
    with pytest.raises(themis.RequestError) as caught:
        call()
    return str(caught.value)


def test_where_it_means_nothing_it_is_refused_with_the_reason() -> None:
    subject = random_subject(0)
    for option in ({"deterministic": True}, {"repeats": 3}):
        audit = themis.Audit(subject, SCHEMA, **option)
        assert "asked again" in refusal(lambda audit=audit: audit.excess("sex"))
        assert "asked again" in refusal(lambda audit=audit: audit.score(["sex"], ["excess"]))
        assert "asked again" in refusal(lambda audit=audit: audit.search(0.1, "excess"))
    audit = themis.Audit(subject, SCHEMA)
    rows = {"sex": ["f"], "region": [1], "income": [5], "savings": [7], "known": [1]}
    asked = {"measures": ["excess"], "label": "known"}
    assert "known outcomes need every row" in refusal(lambda: audit.apparent(rows, "sex", **asked))
    assert "at most 64" in refusal(lambda: audit.excess("income"))
    number = themis.Output(name="limit", min=0, max=9, distance="relational")
    graded = themis.Audit(lambda person: 3, SCHEMA, outputs=[number])
    assert "has degrees" in refusal(lambda: graded.excess("sex"))
    assert "has degrees" in refusal(lambda: graded.search(0.1, "excess"))
    assert "asks nothing again" in refusal(lambda: audit.search(0.1, "excess", stopping="paper"))
