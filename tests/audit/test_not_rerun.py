"""What was not run again convicts nobody, wherever one asks, unless somebody vouches for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import themis
from tests.projects import enter, run, write_project
from themis.show.reports.formats import FORMATS

SCHEMA = themis.Schema(race=["green", "purple"], income=range(100), savings=range(1000))
ROWS = [{"race": race, "income": 40, "savings": 1} for race in ("green", "purple")] * 30
CHECK = '[[checks]]\nagainst = ["race"]\nmeasure = "causal"\nmax_score = 0.05\n'
SEARCH = '[[checks]]\nsearch = true\nmeasure = "causal"\nmax_score = 0.05\n'
NOT_RERUN: dict[str, dict[str, Any]] = {
    "no probe": {"probe": 0},
    "the paper's rule": {"stopping": "paper"},
}


def loan(person: dict[str, Any]) -> bool:
    return bool(person["income"] > (30 if person["race"] == "green" else 60))


def audit(**options: Any) -> themis.Audit:
    return themis.Audit(loan, SCHEMA, seed=1, **options)


@pytest.mark.parametrize("options", NOT_RERUN.values(), ids=NOT_RERUN)
def test_scores_and_searches_do_not_convict(options: dict[str, Any]) -> None:
    asked = audit(**options)
    for score in (asked.causal("race"), asked.group("race")):
        assert score.score > 0.2
        with pytest.raises(themis.InconclusiveError):
            score.assert_below(0.05)
    found = asked.search(0.1, among=["race"])
    assert not found.found
    assert found.undecided == (("race",),)


def test_scores_of_given_people_do_not_convict() -> None:
    given = audit(probe=0).apparent(ROWS, against=[("race",)], only_data=True)
    for score in given.scores:
        assert score.score == 1
        with pytest.raises(themis.InconclusiveError):
            score.assert_below(0.05)


@pytest.mark.some_slow(core=2)
@pytest.mark.parametrize("check", [CHECK, SEARCH], ids=["score", "search"])
def test_checks_end_with_4(check: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_project(tmp_path, extra=f"[run]\nprobe = 0\n{check}")
    enter(tmp_path, monkeypatch)
    assert run("check").exit_code == 4
    (verdict,) = json.loads(run("check", "--json").stdout)["checks"]
    assert verdict["verdict"] == "not enough evidence"
    assert run("check", "--probe", "100").exit_code == 1


def test_who_vouches_for_a_subject_is_believed_and_every_report_says_so() -> None:
    asked = audit(probe=0, deterministic=True)
    result = asked.score([("race",)])
    with pytest.raises(themis.DiscriminationError):
        result.scores[0].assert_below(0.05)
    assert "vouched-for" in [note.code for note in result.notes]
    for name in ("html", "md", "annex"):
        assert "vouches" in str(FORMATS[name].render(result))
