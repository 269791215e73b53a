"""Ten numbers of given people: each equals what pandas counts, without anything of Themis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import themis

SCHEMA = themis.Schema(
    sex=themis.Values(["female", "male"], protected=True),
    branch=["north", "south", "west"],
    income=themis.Reals(0.0, 100.0, step=0.5),
)
COUNT = 800


def worth(table: Any) -> Any:
    """A number for each row: income, a little more for men, a lot less in the west."""
    bonus = 7 * (np.asarray(table["sex"]) == "male") - 20 * (np.asarray(table["branch"]) == "west")
    return np.asarray(table["income"], dtype=float) + bonus


def grade(table: Any) -> Any:
    """One of three classes, of which two are favourable."""
    return np.select([worth(table) >= 60, worth(table) >= 40], ["first", "second"], "none")


def is_good(grades: Any) -> Any:
    return np.asarray(grades) != "none"


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(11)
    sex = rng.choice(["female", "male"], COUNT)
    west = rng.random(COUNT) < np.where(sex == "male", 0.15, 0.45)
    frame = pd.DataFrame(
        {
            "sex": sex,
            "branch": np.where(west, "west", rng.choice(["north", "south"], COUNT)),
            "income": np.round(rng.uniform(0, 100, COUNT), 2),
        }
    )
    frame["earned"] = np.round(frame["income"] + rng.normal(0, 15, COUNT), 2)
    return frame.assign(right=np.where(frame["earned"] > 45, "second", "none"))


@pytest.fixture(scope="module")
def classes(people: pd.DataFrame) -> themis.Result:
    audit = themis.Audit(themis.batch(grade), SCHEMA, favourable=["first", "second"])
    options: dict[str, Any] = {"label": "right", "label_favourable": "second", "proxies": True}
    return audit.apparent(people, ["sex"], only_data=True, counterfactuals="generated", **options)


@pytest.fixture(scope="module")
def numbers(people: pd.DataFrame) -> themis.Result:
    output = themis.Output(name="worth", min=-100, max=200, distance="relational")
    audit = themis.Audit(themis.batch(worth), SCHEMA, outputs=output)
    return audit.apparent(people, ["sex"], only_data=True, label="earned")


def by_sex(people: pd.DataFrame, values: Any) -> pd.Series[float]:
    return pd.Series(values, people.index, dtype=float).groupby(people["sex"]).mean()


def gap(rates: pd.Series[float]) -> float:
    return float(rates.max() - rates.min())


def changed(people: pd.DataFrame, read: Callable[[Any], Any]) -> float:
    """The share of people for whom something differs between both sexes."""
    female, male = (read(people.assign(sex=sex)) for sex in ("female", "male"))
    return float((female != male).mean())


def test_rates_and_their_ratio(people: pd.DataFrame, classes: themis.Result) -> None:
    rates = by_sex(people, is_good(grade(people)))
    assert classes.scores[1].score == pytest.approx(gap(rates))
    assert classes.scores[1].impact_ratio == pytest.approx(rates.min() / rates.max())


def test_differences_beside_known_outcomes(people: pd.DataFrame, classes: themis.Result) -> None:
    chosen, right = is_good(grade(people)), people["right"] == "second"
    told = classes.outcomes[0].metrics
    rightly = by_sex(people[right], chosen[right])
    assert told["equal_opportunity_difference"] == pytest.approx(gap(rightly))
    assert told["accuracy_difference"] == pytest.approx(gap(by_sex(people, chosen == right)))


def test_errors_of_numbers_and_their_calibration(
    people: pd.DataFrame, numbers: themis.Result
) -> None:
    off = worth(people) - people["earned"]
    told = {group.values["sex"]: group for group in numbers.errors[0].groups}
    for sex, group in told.items():
        own = people["sex"] == sex
        assert group.mean_error == pytest.approx(off[own].mean())
        assert group.mean_absolute_error == pytest.approx(off[own].abs().mean())
        lowest = own & (worth(people) <= np.sort(worth(people))[COUNT // 10 - 1])
        assert group.tenths[0].people == lowest.sum()
        assert group.tenths[0].known == pytest.approx(people["earned"][lowest].mean())


def test_decisions_that_change_with_the_sex_of_everybody(
    people: pd.DataFrame, classes: themis.Result
) -> None:
    every = changed(people, grade)
    assert classes.scores[0].score == pytest.approx(every)
    good = changed(people, lambda table: is_good(grade(table)))
    assert classes.scores[0].crossing.share == pytest.approx(good)
    audit = themis.Audit(
        themis.batch(grade), SCHEMA, profile=people, favourable=["first", "second"]
    )
    (score,) = audit.score(["sex"], ["causal"], at_once=True).scores
    assert (score.method, score.score) == ("exact", pytest.approx(every))


def test_the_gap_where_everybody_has_one_value(
    people: pd.DataFrame, classes: themis.Result
) -> None:
    (proxy,) = (each for each in classes.proxies if each.name == "branch")
    for setting in proxy.settings:
        moved = people.assign(branch=setting.value)
        assert setting.difference == pytest.approx(gap(by_sex(moved, is_good(grade(moved)))))
