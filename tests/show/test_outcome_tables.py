"""Are tables of known outcomes and proxies whole in narrow terminals and on narrow screens?"""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest

from tests.report_results import known_outcomes as known
from themis.show.parts.outcomes import gap_difference, gap_ratio, proxy_row, rate_ends, rate_words
from themis.show.reports.page import render_page
from themis.show.terminal.results import render_result


def figures() -> list[str]:
    """Every number and name of the tables."""
    (outcomes,) = known().outcomes
    rates = [rate for group in outcomes.groups for _, rate in group.rates()]
    shown = [*map(rate_words, rates), *map(gap_ratio, outcomes.gaps)]
    shown += [gap_difference(gap).replace(" points", "") for gap in outcomes.gaps]
    shown += [cell for proxy in known().proxies for cell in proxy_row(proxy)]
    shown += [rate_ends(rate).removesuffix(" %") for rate in rates]
    return shown


@pytest.mark.parametrize("width", [40, 50, 60, 70, 80])
def test_no_number_is_cut_in_a_narrow_terminal(width: int) -> None:
    text = render_result(known(), file=io.StringIO(), width=width, everything=True)
    tables = text[text.index("Outcomes known from") :]
    assert max(map(len, tables.splitlines())) <= width
    assert "…" not in tables
    words = set(re.split(r"[\s,;:()]+", tables))
    for figure in figures():
        assert set(re.split(r"[\s,;:()]+", figure)) <= words, figure


@pytest.mark.parametrize("width", [50, 65, 80])
def test_no_name_of_a_group_is_cut_in_a_narrow_terminal(width: int) -> None:
    result = known()
    (outcomes,) = result.outcomes
    shorter = tuple(
        replace(gap, lowest={"sex": "female"}, highest={"sex": "male"}, low=None)
        for gap in outcomes.gaps
    )
    result = replace(result, outcomes=(replace(outcomes, gaps=shorter),))
    text = render_result(result, file=io.StringIO(), width=width)
    gaps = re.split(r"\s+", text[text.index("known outcomes") :])
    named = sum(bool(gap.difference) for gap in shorter)
    assert (gaps.count("female"), gaps.count("male")) == (named, named)


def test_their_rows_become_blocks_on_narrow_screens() -> None:
    page = render_page(known())
    tables = re.findall("<table[^>]*>", page[page.index('id="outcomes"') :])
    assert len(tables) >= 3
    assert all('class="chart' in each for each in tables[:3])
    assert 'data-label="Accuracy"' in page
