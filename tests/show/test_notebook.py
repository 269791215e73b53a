"""What do notebooks get? Static tables, pictures that are well-formed SVG, and data frames."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import themis
from tests.report_results import notes, plain
from tests.show.test_display import PEOPLE, causal, group, result
from themis.results import saved
from themis.results.notes import Ending
from themis.results.parts import Group, Harm, TestedSet, Witness
from themis.settings import Stopping
from themis.show.blocks import Interval, Mark
from themis.show.notebook import LABELS, NUMBERS, WIDTH, chart

SVG = "{http://www.w3.org/2000/svg}"
EVIL = "<script>alert(1)</script>"
SEARCHED = themis.SearchResult(
    measure="causal", threshold=0.1, confidence=0.99, error=0.05,
    minimal_sets=(causal(),), found=(("race",),), undecided=(("sex",),),
    tested=(
        TestedSet(("race",), "above", notes("80 of 702 inputs get a different output"), 702, 0.11),
        TestedSet(("sex",), "undecided", notes("it is too near"), 900, 0.1),
        TestedSet(("age",), "below", notes("none of 80 inputs flips"), 80, 0.0),
    ),
    sets_total=7, sets_tested=3, sets_pruned=4, sets_open=0, among=("race", "sex", "age"),
    max_size=3, method="sampled", stopped=Ending.DONE, stopping=Stopping.CERTIFIED, executions=99,
    cache_hits=0,
)  # fmt: skip


def drawn(svg: str) -> ElementTree.Element:
    """The picture as a tree; it is well-formed and asks nothing of the network."""
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= {
        "svg", "title", "g", "line", "rect", "text",
    }  # fmt: skip
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
    return root


def texts(root: ElementTree.Element) -> list[str]:
    return [plain(each.text or "") for each in root.iter(f"{SVG}text")]


def bars(root: ElementTree.Element) -> list[tuple[float, float]]:
    """From where to where the bars reach, as shares of the axis."""
    room = WIDTH - LABELS - NUMBERS

    def share(pixels: float) -> float:
        return (pixels - LABELS) / room

    found = [
        (float(each.attrib["x"]), float(each.attrib["width"])) for each in root.iter(f"{SVG}rect")
    ]
    return [(share(x), share(x + width)) for x, width in found]


# --- tables -------------------------------------------------------------------------------


def test_a_witness_marks_what_differs_and_nothing_else() -> None:
    html = Witness(PEOPLE, (1, 0))._repr_html_()
    assert re.findall('class="changed"><bdi>(.*?)</bdi>', html) == ["green", "purple"]
    assert "decision" in html


@pytest.mark.parametrize(
    "thing",
    [
        Group({EVIL: EVIL}, 0.5, 0.4, 0.6, 9),
        Witness(({EVIL: EVIL, "a": 1}, {EVIL: "b", "a": 1}), (EVIL, 0)),
        replace(SEARCHED, found=((EVIL,),), minimal_sets=(causal(against=(EVIL,)),)),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_tables_are_escaped_and_balanced(thing: Any) -> None:
    html = thing._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    for tag in ("div", "table", "tr", "td", "bdi", "span"):
        assert len(re.findall(f"<{tag}[ >]", html)) == html.count(f"</{tag}>")


def test_scores_of_different_outputs_are_not_compared() -> None:
    offset = (Harm({"race": "green"}, {"race": "purple"}, 0.18, 0.17, 106),)
    changed = causal(low=0.3, score=0.35, high=0.4, direction=offset)
    both = (changed, group(score=0.0, low=0.0, high=0.1))
    assert "rates hide this" in result(*both)._repr_html_()
    other = replace(both[1], output="limit")
    assert "rates hide this" not in result(both[0], other)._repr_html_()


# --- pictures -----------------------------------------------------------------------------


def test_scores_groups_and_sets_stand_at_their_places() -> None:
    root = drawn(str(causal().plot()))
    low, high = (pytest.approx(end / 0.25, abs=0.01) for end in (0.063, 0.163))
    assert bars(root) == [(0, low), (low, high)]
    assert texts(root)[:3] == ["0 %", "12.5 %", "25 %"]
    assert "6.3 % – 16.3 %" in texts(root)
    said = "For 11.3 % of test inputs the decision changes when only race"
    assert said in root.attrib["aria-label"]
    root = drawn(group().plot().svg)
    assert {"green", "purple", "four fifths of the highest"} <= {*texts(root)}
    (dashed,) = [each for each in root.iter(f"{SVG}line") if "stroke-dasharray" in each.attrib]
    place = (float(dashed.attrib["x1"]) - LABELS) / (WIDTH - LABELS - NUMBERS)
    assert place == pytest.approx(0.8 * 0.5, abs=0.01)
    assert {"race", "threshold 10.0 %"} <= {*texts(drawn(SEARCHED.plot().svg))}
    nothing = replace(SEARCHED, found=(), minimal_sets=())
    assert "no other combination changes" in drawn(nothing.plot().svg).attrib["aria-label"]


def test_a_picture_shows_itself_and_replaces_an_earlier_one_of_its_kind(tmp_path: Path) -> None:
    for thing in (causal(), group(), SEARCHED, result(causal(), group())):
        plot = thing.plot()
        assert plot._repr_svg_() == str(plot) == plot.svg
        assert plot.svg in plot._repr_html_()
        plot.save(tmp_path / "score.svg")
        assert (tmp_path / "score.svg").read_text(encoding="utf-8") == plot.svg
    for name in ("a.png", "a.pdf", "a", "a.svg.png"):
        with pytest.raises(themis.RequestError, match=r"SVG; name it 'a(\.svg)?\.svg'"):
            plot.save(tmp_path / name)
        assert not (tmp_path / name).exists()


@settings(max_examples=40, deadline=None)
@given(
    name=st.text(max_size=60),
    ends=st.lists(st.floats(0, 1), min_size=3, max_size=3).map(sorted),
    limit=st.floats(0, 1),
)
def test_any_name_and_interval_is_a_well_formed_picture(
    name: str, ends: list[float], limit: float
) -> None:
    low, point, high = ends
    root = drawn(chart([Interval(low, high, point, name)], name, [Mark(limit, name)]))
    assert all(-0.001 <= at <= 1.01 for bar in bars(root) for at in bar)
    assert max((len(each) for each in texts(root)[3:4]), default=0) <= 27


# --- data frames --------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_scores_groups_and_witnesses_become_rows(library: Any) -> None:
    frame = result(causal(), group()).to_frame(library)
    assert type(frame).__module__.startswith(library)
    assert list(frame["measure"]) == ["causal", "group"]
    assert list(frame["low"]) == [0.063, 0.15]
    assert list(frame["impact_ratio"])[1] == 0.6
    assert causal().to_frame(library).shape[0] == group().groups[0].to_frame(library).shape[0] == 1
    groups = themis.to_frame(group().groups, library)
    assert list(groups["race"]) == ["green", "purple"]
    assert list(groups["rate"]) == [0.5, 0.3]
    people = themis.to_frame(causal().witnesses * 2, library)
    assert list(people["pair"]) == [0, 0, 1, 1]
    assert list(people["race"]) == ["green", "purple"] * 2
    assert list(people["output"]) == ["1", "0", "1", "0"]
    assert Witness(PEOPLE, (1, 0)).to_frame(library).shape == (2, 4)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_names_that_clash_and_values_of_several_kinds_are_kept(library: Any) -> None:
    people = ({"pair": "x", "output": 1}, {"pair": 2, "output": 1})
    frame = themis.to_frame(Witness(people, ("yes", False)), library)
    assert list(frame.columns) == ["pair_", "pair", "output", "output_"]
    assert list(frame["pair"]) == ["x", "2"]
    assert list(frame["output_"]) == ["yes", "False"]
    clash = themis.to_frame(Group({"rate": "low"}, 0.5, 0.4, 0.6, 9), library)
    assert [*clash["rate"], *clash["rate_"]] == ["low", 0.5]


def test_pandas_comes_before_polars_and_without_both_the_remedy_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert isinstance(causal().to_frame(), pandas.DataFrame)
    monkeypatch.setattr(saved, "find_spec", lambda name: None if name == "pandas" else name)
    assert isinstance(causal().to_frame(), polars.DataFrame)
    monkeypatch.setattr(saved, "find_spec", lambda name: None)
    for asked, things, problem in (
        ((), causal(), "neither pandas nor polars is installed; pip"),
        (("polars",), causal(), "polars is not installed; pip install polars"),
        (("panda",), causal(), "did you mean 'pandas'"),
        ((), [causal(), group().groups[0]], "make one data frame of CausalScore, Group"),
    ):
        with pytest.raises(themis.RequestError, match=problem):
            themis.to_frame(things, *asked)
