"""The pairs of a result: by set and by who loses, a hundred at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import themis
from tests.web.serving import Server, serving

EVIL = "<script>alert(1)</script>"


def decide(person: dict[str, Any]) -> str:
    if person["city"] == EVIL:
        return "yes" if person["sex"] == "male" else "no"
    return "yes" if person["sex"] == "female" or person["income"] < 50 else "no"


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    """A result whose pairs were made many."""
    schema = themis.Schema(
        sex=themis.Values(["female", "male"], protected=True),
        city=["Ulm", EVIL],
        income=range(0, 100),
    )
    with themis.Audit(decide, schema, favourable=["yes"], seed=1) as audit:
        data: dict[str, Any] = audit.score([["sex"], ["city"]]).to_dict()
    for score in data["scores"]:
        score["witnesses"] *= 12
    return data


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("pairs")) as found:
        yield found


def cards(page: str) -> list[tuple[list[str], list[str]]]:
    """What differs in each pair that is shown, and what the two get."""
    tables = re.findall(r'<table class="pair".*?</table>', page, re.DOTALL)
    rows = [re.findall(r"<bdi>([^<]*)</bdi>", each)[-6:] for each in tables]
    return [(each[1:3], each[4:6]) for each in rows]


def test_pairs_are_shown_a_hundred_at_a_time(server: Server, result: Any) -> None:
    place = server.open_result(result)
    first = server.get(f"{place}/pairs").text
    total = sum(len(each["witnesses"]) for each in result["scores"])
    assert total > 100
    assert len(cards(first)) == 100
    assert f"1 to 100 of {total} pairs" in first
    last = server.get(f"{place}/pairs?page=99").text
    assert len(cards(last)) == total % 100
    assert EVIL not in first + last


def test_pairs_are_filtered_by_set_and_loser(server: Server, result: Any) -> None:
    place = f"{server.open_result(result)}/pairs"
    score = next(n for n, each in enumerate(result["scores"]) if each["witnesses"])
    assert result["scores"][score]["against"] == ["sex"]
    losing = cards(server.get(f"{place}?score={score}&loses=female").text)
    assert losing
    assert all(differs == ["male", "female"] for differs, _ in losing)
    of_sex = cards(server.get(f"{place}?score={score}").text)
    assert 0 < len(losing) < len(of_sex)


def test_a_filter_that_nothing_meets_shows_no_pair(server: Server, result: Any) -> None:
    place = f"{server.open_result(result)}/pairs"
    for query in ("score=77", "loses=nobody", "page=-1&score=x"):
        assert not cards(server.get(f"{place}?{query}").text)


def test_a_result_leads_to_all_of_its_pairs(server: Server, result: Any) -> None:
    place = server.open_result(result)
    page = server.get(place).text
    assert f'href="{place}/pairs"' in page
    assert 'href="#people"' in page  # of the contents
    assert "/try?result=" in page


def test_a_pinned_pair_is_an_exhibit_of_the_page_and_of_its_reports(
    server: Server, result: Any
) -> None:
    place = server.open_result(result)
    first, second = re.findall(r'name="pair" value="([^"]+)"', server.get(f"{place}/pairs").text)[
        :2
    ]
    note = f"Both earn the same {EVIL}"
    pinned = server.post(f"{place}/exhibits", {"pair": first, "note": note})
    assert pinned.headers["location"] == f"{place}#exhibits"
    server.post(f"{place}/exhibits", {"pair": second})
    exports = [server.get(f"{place}/export/{name}").text for name in ("html", "annex")]
    for text in (server.get(place).text, *exports):
        assert "Exhibit 2: " in text
        assert "Both earn the same &lt;script&gt;" in text
    server.post(f"{place}/exhibits/remove", {"pair": first})
    left = server.get(place).text
    assert ("Exhibit 1: " in left, "Exhibit 2: " in left, note in left) == (True, False, False)
    assert server.post(f"{place}/exhibits", {"pair": "99.0"}).status_code == 404


def test_an_exhibit_of_given_people_is_shown_with_rows_only(tmp_path: Path) -> None:
    found = of_people()
    with serving(tmp_path, "--rows") as server:
        place = server.open_result(found)
        key = re.findall(r'name="pair" value="([^"]+)"', server.get(place).text)[0]
        server.post(f"{place}/exhibits", {"pair": key})
        assert "Exhibit 1: " in server.get(place).text
    with serving(tmp_path, "--read-only") as server:
        page = server.get(place).text
        assert "Exhibit 1: " not in page + server.get(f"{place}/export/annex").text
        assert "Pin as an exhibit" not in page
        assert server.post(f"{place}/exhibits", {"pair": key}).status_code == 403


def of_people() -> dict[str, Any]:
    """A result about given people, without pairs that were made up."""
    schema = themis.Schema(sex=["female", "male"], city=["Ulm", EVIL], income=range(0, 100))
    rows = [
        {"sex": sex, "city": "Ulm", "income": income}
        for income in range(50, 90)
        for sex in ("female", "male")
    ]
    with themis.Audit(decide, schema, favourable=["yes"], seed=1) as audit:
        found: dict[str, Any] = audit.apparent(
            rows, ["sex"], counterfactuals="within", only_data=True
        ).to_dict()
    for score in found["scores"]:
        score["witnesses"] = [each for each in score["witnesses"] if not each["generated"]]
    return found


def test_given_people_are_shown_and_tried_with_rows_only(
    tmp_path: Path,
) -> None:
    found = of_people()
    for options, may in ((), False), (("--rows",), True):
        with serving(tmp_path, *options) as server:
            page = server.get(f"{server.open_result(found)}/pairs").text
            assert bool(cards(page)) == ("/try?result=" in page) == may
            assert ("income 71" in page) == may
