"""Is what is said of a subject that answers at random true in every table and format?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import themis
from themis.results.model import CausalScore, GroupScore
from themis.results.saved import result_from_dict
from themis.show.reports.annex import render_annex
from themis.show.reports.page import render_page
from themis.show.terminal.results import render_result
from themis.show.words.scores import method


def flat(text: str) -> str:
    return " ".join(text.split())


def test_groups_of_a_noisy_domain_that_was_run_once_have_intervals_in_every_table() -> None:
    rng = np.random.default_rng(4)
    schema = themis.Schema(sex=themis.Values(["f", "m"], protected=True), age=range(10))
    audit = themis.Audit(lambda person: bool(rng.random() < 0.5), schema, seed=1)
    (score,) = (result := audit.score("sex", measures=["group"])).scores
    assert isinstance(score, GroupScore)
    assert score.method == "exact"
    assert all(group.low < 0.5 < group.high for group in score.groups)
    for page in (render_page(result), render_annex(result)):
        assert "below four fifths" not in page
        assert "above four fifths" not in page
    assert "another run may give other answers" in method(score)


@pytest.mark.parametrize("seed", range(12))
def test_people_who_share_an_answer_do_not_make_noise_certain(seed: int) -> None:
    rng = np.random.default_rng(seed)
    schema = themis.Schema(sex=["f", "m"], age=[1, 2])
    rows = [{"sex": s, "age": a} for s in "fm" for a in (1, 2) for _ in range(100)]
    audit = themis.Audit(lambda person: bool(rng.random() < 0.5), schema, seed=1)
    (score,) = audit.apparent(rows, "sex", measures=["group"], only_data=True).scores
    assert isinstance(score, GroupScore)
    assert score.four_fifths == "unclear"
    assert all(group.low <= 0.5 <= group.high for group in score.groups)
    assert score.high == 1


def test_weights_leave_fewer_answers_to_average_noise() -> None:
    rng = np.random.default_rng(2)
    heavy = themis.Values(["usual", "rare"], weights=[0.99, 0.01])
    schema = themis.Schema(sex=["f", "m"], kind=heavy, age=[1, 2])
    audit = themis.Audit(lambda person: bool(rng.random() < 0.5), schema, seed=1)
    for group in audit.group("sex").groups:  # two inputs of each have nearly all the weight
        assert (group.low, group.high) == (0, 1)
        assert "runs" not in audit.group("sex").to_dict()["groups"][0]


def test_rates_beside_known_outcomes_have_no_intervals_where_there_is_noise() -> None:
    rng = np.random.default_rng(3)
    schema = themis.Schema(sex=["f", "m"], age=range(5))
    rows = [{"sex": s, "age": a, "good": a > 2} for s in "fm" for a in range(5) for _ in range(20)]
    coin = themis.Audit(lambda person: bool(rng.random() < 0.5), schema, seed=1)
    fair = themis.Audit(lambda person: person["age"] > 1, schema, seed=1)
    asked: dict[str, Any] = {"label": "good", "only_data": True, "proxies": True}
    for audit, noisy in ((coin, True), (fair, False)):
        result = audit.apparent(rows, "sex", **asked)
        (table,), proxy = result.outcomes, result.proxies[0]
        assert table.noisy is proxy.noisy is noisy
        assert (table.confidence is None) is (proxy.confidence is None) is noisy
        assert all((gap.low is None) is (gap.ratio_low is None) is noisy for gap in table.gaps)
        assert all((rate.low is None) is noisy for _, rate in table.groups[0].rates())
        page = flat(render_page(result))
        assert ("which noise alone may set apart" in page) is noisy
        assert ("The intervals hold if" in page) is not noisy
        assert result_from_dict(result.to_dict()).outcomes[0].noisy is noisy


def test_pairs_and_losses_that_noise_may_make_are_told_as_such_in_every_format() -> None:
    rng = np.random.default_rng(4)
    schema = themis.Schema(sex=["f", "m"], age=range(20))
    audit = themis.Audit(lambda person: bool(rng.random() < 0.5), schema, seed=1)
    result = audit.score("sex", measures=["causal"])
    (score,) = result.scores
    assert isinstance(score, CausalScore)
    assert score.witnesses
    assert score.direction
    page = render_page(result)
    assert "An example, maybe by noise" in page
    assert "oise alone may make such pairs" in page
    assert "changes by noise are among them" in page
    assert "changes by noise are among them" in flat(render_result(result, everything=True))
    assert "Changes by noise alone may be among these" in score._repr_html_()
