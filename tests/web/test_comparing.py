"""The page that compares two results."""

from __future__ import annotations

from typing import Any

import themis
from tests.web.serving import Server


def sample(share: float) -> dict[str, Any]:
    """What a rule is measured as that looks at sex for a share of incomes."""

    def decide(person: dict[str, Any]) -> bool:
        return bool(person["sex"] == "f" or person["income"] >= 100 * share)

    schema = themis.Schema({"sex": ["f", "m"], "income": themis.Integers(0, 99)})
    return themis.Audit(decide, schema, seed=1).score(["sex"]).to_dict()


def test_two_results_are_compared_as_by_themis_diff(loan: Server) -> None:
    assert "Two results are needed" in loan.get("/compare").text
    before, after = (loan.open_result(sample(share)).rpartition("/")[2] for share in (0.1, 0.5))
    form = loan.get("/compare").text
    assert form.count("<option") == 4
    assert f'value="{after}"' in form
    grown = loan.get(f"/compare?before={before}&after={after}").text
    assert "difference has grown" in grown
    assert "causal sex" in grown
    same = loan.get(f"/compare?before={before}&after={before}").text
    assert "nothing new" in same


def test_a_result_that_is_not_there_is_said(loan: Server) -> None:
    answer = loan.get("/compare?before=no&after=such")
    assert answer.status_code == 404
    assert "is not there" in answer.text
