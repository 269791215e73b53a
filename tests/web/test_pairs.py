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
PAIR = r'name="pair" value="([^"]+)"'


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


@pytest.fixture(scope="module")
def place(server: Server, result: Any) -> str:
    return server.open_result(result)


def cards(page: str) -> list[tuple[list[str], list[str]]]:
    """What differs in each pair that is shown, and what the two get."""
    tables = re.findall(r'<table class="pair".*?</table>', page, re.DOTALL)
    rows = [re.findall(r"<bdi>([^<]*)</bdi>", each)[-6:] for each in tables]
    return [(each[1:3], each[4:6]) for each in rows]


def test_a_result_leads_to_all_of_its_pairs_a_hundred_at_a_time(
    server: Server, place: str, result: Any
) -> None:
    page = server.get(place).text
    assert f'href="{place}/pairs"' in page
    assert 'href="#people"' in page  # of the contents
    assert "/try?result=" in page
    first, last = (server.get(f"{place}/pairs{each}").text for each in ("", "?page=99"))
    total = sum(len(each["witnesses"]) for each in result["scores"])
    assert total > 100
    assert (len(cards(first)), len(cards(last))) == (100, total % 100)
    assert f"1 to 100 of {total} pairs" in first
    assert EVIL not in first + last


def test_pairs_are_filtered_by_set_and_loser(server: Server, place: str, result: Any) -> None:
    score = next(n for n, each in enumerate(result["scores"]) if each["witnesses"])
    assert result["scores"][score]["against"] == ["sex"]
    losing = cards(server.get(f"{place}/pairs?score={score}&loses=female").text)
    assert all(differs == ["male", "female"] for differs, _ in losing)
    assert 0 < len(losing) < len(cards(server.get(f"{place}/pairs?score={score}").text))
    for query in ("score=77", "loses=nobody", "page=-1&score=x"):
        assert not cards(server.get(f"{place}/pairs?{query}").text)


def test_a_pinned_pair_is_an_exhibit_of_the_page_and_of_its_reports(
    server: Server, place: str
) -> None:
    first, second, *_ = re.findall(PAIR, server.get(f"{place}/pairs").text)
    note = f"Both earn the same {EVIL}"
    pinned = server.post(f"{place}/exhibits", {"pair": first, "note": note})
    assert pinned.headers["location"] == f"{place}#exhibits"
    server.post(f"{place}/exhibits", {"pair": second})
    for address in ("", "/export/html", "/export/annex"):
        shown = server.get(place + address).text
        assert "Exhibit 2: " in shown
        assert "Both earn the same &lt;script&gt;" in shown
    server.post(f"{place}/exhibits/remove", {"pair": first})
    left = server.get(place).text
    assert ("Exhibit 1: " in left, "Exhibit 2: " in left, note in left) == (True, False, False)
    assert server.post(f"{place}/exhibits", {"pair": "99.0"}).status_code == 404


@pytest.fixture
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


def test_given_people_are_shown_tried_and_pinned_with_rows_only(
    tmp_path: Path, of_people: dict[str, Any]
) -> None:
    for options, may in ((), False), (("--rows",), True):
        with serving(tmp_path, *options) as server:
            place = server.open_result(of_people)
            page = server.get(f"{place}/pairs").text
            assert bool(cards(page)) == ("/try?result=" in page) == ("income 71" in page) == may
            for key in re.findall(PAIR, server.get(place).text)[:1]:
                server.post(f"{place}/exhibits", {"pair": key})
            assert ("Exhibit 1: " in server.get(place).text) == may
    with serving(tmp_path, "--read-only") as server:
        page = server.get(place).text
        assert "Exhibit 1: " not in page + server.get(f"{place}/export/annex").text
        assert "Pin as an exhibit" not in page
        assert server.post(f"{place}/exhibits", {"pair": key}).status_code == 403
