"""Sentences about numbers: in their own units, and no rates where there are means."""

from __future__ import annotations

import decimal
import io
import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import report_results as samples
from tests.report_results import result
from themis.show.reports.markdown import render_markdown
from themis.show.reports.page import render_page
from themis.show.terminal.results import render_result
from themis.show.words.scores import ratio_text
from themis.show.words.values import (
    Rounding,
    about_duration,
    decimals,
    duration,
    figure,
    hundredths,
    percent,
    percent_sure,
    share_text,
    size,
    visible,
)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (percent(0), "0 %"),
        (percent(0.0004), "< 0.1 %"),
        (percent(0.113), "11.3 %"),
        (percent(0.9996), "> 99.9 %"),
        (percent(1.0), "100 %"),
        # sizes are exact below a quadrillion
        (size(101_808), "101,808"),
        (size(2_100_000_000_000), "2,100,000,000,000 (2.1 × 10^12)"),
        (size(10**15), "1.0 × 10^15"),
        (size(997 * 10**20), "1.0 × 10^23"),
        (size(3**100), "5.2 × 10^47"),
        (duration(0.0), "< 0.1 s"),
        (about_duration(0.0), "under 0.1 s"),
        (duration(0.8), "0.8 s"),
        (about_duration(0.8), "about 0.8 s"),
        (duration(42), "42 s"),
        (duration(90), "1.5 min"),
        (duration(9_000), "2.5 h"),
        # four digits, and powers of ten only where there is no other way
        (figure(15_812.4), "15,810"),
        (figure(-81_430.0), "-81,430"),
        (figure(99_999.0), "100,000"),
        (figure(1_234.4), "1,234"),
        (figure(0.062_54), "0.06254"),
        (figure(0.000_123), "0.000123"),
        (figure(0.0), "0"),
        (figure(123e12), "123,000,000,000,000"),
        (figure(1.5e15), "1.5e+15"),
        (figure(1.5e-5), "1.5e-05"),
        # of few, counts; of others, their ends where something was estimated
        (share_text(3 / 26, 3, 26, 0.02, 0.3), "3 of 26"),
        (share_text(0.0, 0, 99, 0.0, 0.1), "0 of 99"),
        (share_text(0.25, 25, 100, 0.15, 0.37), "25.0 % (15.0 – 37.0 %)"),
        (share_text(0.0, 0, 200, 0.0, 0.023), "0 % (at most 2.3 %)"),
        (share_text(0.0, 0, 20_000, 0.0, 0.0004), "0 % (below 0.1 %)"),
        (share_text(0.25, 25, 100), "25.0 %"),
        (share_text(0.25, 3, 26), "25.0 %"),  # those that were counted weigh differently
        (share_text(0.25, None, 26), "25.0 %"),
        # never more than it is
        (percent_sure(0.99), "99"),
        (percent_sure(0.9975), "99.75"),
        (percent_sure(0.99875), "99.875"),
        (percent_sure(1 - 0.01 / 11), "99.909"),
        # control characters are shown, never obeyed
        (visible("a\nb"), "a\\nb"),
        (visible("\x1b[31mred"), "\\x1b[31mred"),
        (visible("\u202eabc"), "\\u202eabc"),
        (visible("\ud800"), "\\ud800"),
        (visible(""), "''"),
        (visible("  "), "'  '"),
        (visible(True), "true"),
        (visible(1.5), "1.5"),
        (visible("日本"), "日本"),
    ],
)
def test_numbers_and_values_are_readable(written: str, shown: str) -> None:
    assert written == shown


def test_a_confidence_is_never_rounded_up_to_certainty() -> None:
    assert "at 99.5% (" in str(samples.causal(confidence=0.995))
    assert "at 99% (" in str(samples.causal(confidence=0.99))


@given(share=st.floats(0, 1), to=st.sampled_from(["down", "up"]))
def test_an_end_of_an_interval_is_never_rounded_inwards(share: float, to: Rounding) -> None:
    saved = Decimal(repr(round(share, 12)))
    texts = {0.1: hundredths(share, to), 1: decimals(100 * share, 0, to)}
    for step, text in texts.items():
        if text.startswith(("<", ">")):  # as small, or as large, as can be said
            continue
        beyond = (Decimal(text) / 100 - saved) * (1 if to == "up" else -1)
        assert -Decimal("1e-12") <= beyond < Decimal(str(step)) / 100
    shown = float(figure(12_345 * share, to=to).replace(",", ""))
    assert shown >= 12_345 * share - 1e-7 if to == "up" else shown <= 12_345 * share + 1e-7


@pytest.mark.parametrize("whole", [0.05, 0.29, 0.57, 0.3 - 0.1, 0.1 + 0.2])
def test_an_end_that_is_a_whole_number_of_tenths_stays_what_it_is(whole: float) -> None:
    assert percent(whole, "down") == percent(whole, "up") == percent(whole)


@pytest.mark.parametrize(("ratio", "ends"), [(0.8029, "0.8029 – 0.81"), (0.7968, "0.79 – 0.7968")])
def test_an_end_of_an_impact_ratio_is_told_from_four_fifths(ratio: float, ends: str) -> None:
    assert f"{ratio_text(ratio, 'down')} – {ratio_text(ratio, 'up')}" == ends


def test_all_formats_round_the_ends_of_an_interval_outwards() -> None:
    told = result(samples.causal(low=0.0635, high=0.1624), samples.group(low=0.1509, high=0.2571))
    pages = {
        "terminal": render_result(told, file=io.StringIO()),
        "in full": render_result(told, file=io.StringIO(), everything=True, width=100),
        "page": samples.plain(render_page(told)),
        "markdown": samples.plain(render_markdown(told)),
        "notebook": samples.plain(told._repr_html_()),
    }
    for name, page in pages.items():
        assert re.search("6.3( – |–)16.3", page), name
        assert re.search("15.0( – |–)25.8", page), name
        assert not re.search("16.2|15.1|25.7", page.partition("<svg")[0]), name


def test_numbers_are_rounded_alike_whatever_a_subject_does_to_decimals() -> None:
    with decimal.localcontext() as context:
        context.prec = 1
        assert percent(0.1234, "up") == "12.4 %"
        assert percent(0.1234, "down") == "12.3 %"
