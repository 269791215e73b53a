"""Can values shown beside each other be told apart, and do sentences name those who count?"""

from __future__ import annotations

from tests.report_results import group
from themis.results.parts import Group
from themis.show.words.headlines import headline
from themis.show.words.values import LONGEST, LONGEST_TEXT, cut_name, told_apart

SAME = "Approved by the department of consumer loans and mortgages, " * 4


def test_of_what_is_cut_the_beginning_and_the_end_are_shown() -> None:
    shown = cut_name(f"{SAME}North")
    assert (len(shown), shown[:8], shown[-5:]) == (LONGEST, "Approved", "North")


def test_two_outputs_that_are_cut_can_be_told_apart() -> None:
    end = " of the city and the county, after a second look at all that was handed in by then"
    for pair in ((f"{SAME}north{end}{SAME}", f"{SAME}south{end}{SAME}"), (0.1, 0.1 + 1e-15)):
        one, other = told_apart(pair)
        assert one != other
        assert max(len(one), len(other)) <= LONGEST_TEXT
    assert told_apart((0.30000000000000004, 1)) == ["0.3", "1"]


def people(race: str, rate: float, number: int) -> Group:
    return Group({"race": race}, rate, rate, rate, number, few=number < 5, people=number)


def test_of_equal_groups_the_largest_that_is_named_is_the_lowest_or_highest() -> None:
    groups = [people("green", 1.0, 60), people("blue", 1.0, 2), people("red", 0.0, 40),
              people("purple", 0.0, 1)]  # fmt: skip
    unnamed = [Group({}, 0.0, 0.0, 0.0, 90, people=90), Group({}, 1.0, 1.0, 1.0, 90, people=90)]
    for made in (groups, groups[::-1], [*unnamed, *groups]):
        score = group(groups=tuple(made), score=1.0, low=1.0, high=1.0, method="exact")
        assert "between red and green, the lowest and highest" in headline(score)
    alike = group(groups=tuple(people(race, 0.5, 9) for race in ("green", "red")))
    assert alike.most_favoured is not alike.least_favoured
