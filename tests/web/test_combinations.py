"""Pages of a result: the combinations that a search looked at, and two results compared."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import themis
from tests.web.serving import Server, example, serving

NAMES = [f"c{number}" for number in range(8)]
EVIL = "<script>alert(1)</script>"


def searched(names: list[str], **options: Any) -> dict[str, Any]:
    """A result with a search: two characteristics decide together, a third one alone."""

    def decide(person: dict[str, Any]) -> bool:
        return bool((person["c0"] == 1 and person["c1"] == 1) or person[names[2]] == 1)

    inputs = {each: themis.Values([0, 1], protected=each in ("c0", "c1")) for each in names}
    with themis.Audit(decide, themis.Schema(inputs), seed=1) as audit:
        data: dict[str, Any] = audit.score([["c0"]]).to_dict()
        found = audit.search(0.35, decide_only=True, **options)
    return {**data, "command": "search", "search": found.to_dict()}


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    """One that was searched with a hostile name."""
    return searched(["c0", "c1", EVIL, *NAMES[3:]], max_size=3)


@pytest.fixture(scope="module")
def page(loan: Server, result: Any) -> str:
    return f"{loan.open_result(result)}/combinations"


def listed(text: str) -> list[tuple[list[str], str]]:
    """The sets of a page, and what was decided of each."""
    row = (
        r'<th scope="row" role="rowheader"><bdi>([^<]*)</bdi></th><td[^>]*><span class="chip (\w+)'
    )
    return [(names.split(", "), kind) for names, kind in re.findall(row, text)]


def test_sets_are_listed_by_what_was_decided(loan: Server, page: str, result: Any) -> None:
    search = result["search"]
    assert search["minimal_sets"] == [[EVIL], ["c0", "c1"]]
    every = listed(loan.get(page).text)
    assert len(every) == search["sets_tested"] < search["sets_total"]
    assert [kind for _, kind in every[:3]] == ["found", "found", "below"]
    assert listed(loan.get(f"{page}?kind=found").text) == every[:2]
    protected = listed(loan.get(f"{page}?protected=on").text)
    assert sorted(names for names, _ in protected) == [["c0"], ["c0", "c1"], ["c1"]]
    assert all({"c0", "c3"} <= {*names} for names, _ in listed(loan.get(f"{page}?has=c3,c0").text))
    assert loan.get(f"{page}?search=7").status_code == 404


def test_each_place_of_the_matrix_leads_to_why_a_set_is_in_or_out(loan: Server, page: str) -> None:
    text = loan.get(page).text
    links = re.findall(r'href="([^"]*/combinations\?[^"#]*)#list"[^>]*aria-label="([^"]*)"', text)
    assert len(links) == 8 * 9 / 2
    about = {label.partition(":")[0]: link for link, label in links}
    said = loan.get(about["c0, c1"].replace("&amp;", "&")).text
    assert "<strong><bdi>c0, c1</bdi>: </strong>" in said
    assert listed(said)[0] == (["c0", "c1"], "found")
    follows = next(link for label, link in about.items() if "script" in label and "c5" in label)
    said = loan.get(follows.replace("&amp;", "&")).text
    assert "follows: it contains" in said
    assert not listed(said)
    assert EVIL not in text + said


def test_a_result_leads_to_its_combinations_and_to_every_export(loan: Server, page: str) -> None:
    place = page.removesuffix("/combinations")
    text = loan.get(place).text
    assert f'href="{page}"' in text
    exports = re.findall(rf'href="{place}/export/(\w+)"', text)
    assert {"html", "annex", "csv", "sarif", "junit", "json"} <= {*exports}
    for each in exports:
        answer = loan.get(f"{place}/export/{each}")
        assert (answer.status_code, bool(answer.content)) == (200, True)
    again = loan.open_result(loan.get(f"{place}/export/json").json())
    assert loan.get(f"{again}/combinations").status_code == 200
    assert loan.get(f"{place}/export/none").status_code == 404


def test_two_results_are_compared_as_by_themis_diff(tmp_path: Path) -> None:
    schema = themis.Schema({"sex": ["f", "m"], "income": themis.Integers(0, 99)})

    def measured(most: int) -> dict[str, Any]:
        """What a rule is measured as that looks at sex for such incomes."""
        rule: Any = lambda person: person["sex"] == "f" or person["income"] >= most  # noqa: E731
        return themis.Audit(rule, schema, seed=1).score(["sex"]).to_dict()

    with serving(example(tmp_path)) as server:
        assert "Two results are needed" in server.get("/compare").text
        before, after = (server.open_result(measured(most)).rpartition("/")[2] for most in (10, 50))
        form = server.get("/compare").text
        assert form.count("<option") == 4
        assert f'value="{after}"' in form
        grown = server.get(f"/compare?before={before}&after={after}").text
        assert "difference has grown" in grown
        assert "causal sex" in grown
        assert "nothing new" in server.get(f"/compare?before={before}&after={before}").text
        missing = server.get("/compare?before=no&after=such")
        assert (missing.status_code, "is not there" in missing.text) == (404, True)
