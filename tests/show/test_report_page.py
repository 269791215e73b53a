"""Does the report say what a result says, in little room, whatever names and values it holds?"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import report_results as samples
from themis.results.model import Result
from themis.results.parts import Group, Noise, Witness
from themis.results.saved import read_result
from themis.show.blocks import Axis
from themis.show.parts.groups import four_fifths_line, ratios
from themis.show.reports.annex import render_annex
from themis.show.reports.document import LIMIT_BYTES, STYLE
from themis.show.reports.method import RECIPE, digest
from themis.show.reports.page import render_page
from themis.show.words import values as display_words
from themis.show.words.wording import PLAIN

LIGHT, DARK = (
    dict(re.findall(r"--([\w-]+):(#[0-9a-f]{6});", part))
    for part in STYLE.split("prefers-color-scheme:dark")
)
VOID = {"meta", "wbr", "link", "line", "circle", "rect", "polygon", "path"}
TAGS = {
    *("html", "head", "meta", "title", "link", "style", "body", "header", "main", "nav", "footer"),
    *("h1", "h2", "h3", "h4", "section", "div", "p", "span", "a", "b", "i", "bdi", "strong"),
    *("small", "mark", "code", "pre", "ul", "ol", "li", "dl", "dt", "dd", "details", "summary"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td"),
    *("svg", "text", "tspan", "line", "circle", "rect", "polygon", "path"),
    *("article", "figure", "figcaption", "abbr", "wbr"),
}
RENDERERS: dict[str, Callable[[Result], str]] = {"page": render_page, "annex": render_annex}


class Document(HTMLParser):
    """A page as a browser would take it apart: tags, attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        assert tag in VOID
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())

    def values_of(self, name: str) -> list[str]:
        return [value for _, each, value in self.attributes if each == name]


def words(result: Result) -> str:
    return Document(render_page(result)).text


@pytest.fixture(scope="module", params=[f"{s} {r}" for s in samples.SAMPLES for r in RENDERERS])
def rendered(request: pytest.FixtureRequest) -> str:
    name, _, kind = request.param.rpartition(" ")
    return RENDERERS[kind](samples.SAMPLES[name]())


@pytest.mark.some_slow(core=4, full=4)
def test_a_report_is_one_small_file_that_refers_to_nothing_else_and_can_be_heard(
    rendered: str,
) -> None:
    page = Document(rendered)
    assert len(rendered.encode()) < LIMIT_BYTES
    assert set(page.tags) <= TAGS
    links = page.values_of("href")
    assert all(each.startswith("#") or each == "data:," for each in links)
    assert not page.values_of("src") + page.values_of("style")
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    ids = Counter(page.values_of("id"))
    assert max(ids.values()) == 1
    places = {each[1:] for each in links if each.startswith("#")}
    assert places | set(page.values_of("aria-labelledby")) <= set(ids)
    assert len(page.values_of("aria-label")) >= page.values_of("role").count("img")
    assert page.tags["caption"] == page.tags["table"]
    assert page.tags["h1"] == 1


def test_the_policy_allows_the_own_style_and_nothing_else(rendered: str) -> None:
    (policy,) = [value for tag, name, value in Document(rendered).attributes
                 if (tag, name) == ("meta", "content") and "default-src" in value]  # fmt: skip
    style = rendered.partition("<style>")[2].partition("</style>")[0]
    own = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{own}'")
    assert "unsafe" not in policy
    assert "script-src" not in policy


@settings(max_examples=25, deadline=None)
@given(st.text(max_size=40), st.text(alphabet="<>&\"'`/=-![]", max_size=12))
def test_no_text_becomes_markup(first: str, second: str) -> None:
    name = f"n{first}{second}"
    pair = Witness(({name: first, "b": 1}, {name: second, "b": 1}), (first, second), (second,))
    score = samples.causal(
        against=(name,), witnesses=(pair,), direction=(), notes=samples.notes(first)
    )
    groups = (Group({name: first}, 0.5, 0.4, 0.6, 9), Group({name: second}, 0.4, 0.3, 0.5, 9))
    hostile = samples.result(
        score, samples.group(against=(name,), groups=groups), notes=samples.notes(second)
    )
    for render in RENDERERS.values():
        page = Document(render(hostile))
        assert set(page.tags) <= TAGS
        assert page.tags["style"] == 1


def test_a_note_of_the_whole_result_is_not_repeated_for_each_score() -> None:
    (note,) = samples.notes("some rows were left out")
    noted = samples.result(samples.causal(notes=(note,)), notes=(note,))
    assert words(noted).lower().count("some rows were left out") == 1
    alike = [samples.causal(against=(name,), notes=(note,)) for name in ("race", "sex")]
    shown = words(samples.result(*alike))
    assert "Causal score of race, causal score of sex: some rows were left out" in shown


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"failures": samples.all_facts().failures}, "Crash 3 times, e.g. ValueError: no\\nage"),
        ({"noise": Noise(300, 7, 0.023, 0.01, 0.05, 0.99)}, "7 of 300 inputs got a different"),
        ({"notes": samples.notes("the subject gave it")}, "Warning: The subject gave it"),
    ],
)
def test_what_voids_a_verdict_stands_before_the_scores(changes: Any, said: str) -> None:
    before = words(samples.result(samples.causal(), **changes)).partition("The causal score is")[0]
    for each in ("Before you rely on this", said, "with reservations"):
        assert each in before


def test_facts_that_may_be_there_are_shown_when_they_are() -> None:
    shown = words(samples.all_facts())
    for said in (
        "noise alone would give 4.0 % (2.0 – 7.0 %)",
        "income > 40 and employment = none",
        "3.0 times their share",
        "compared among the rows only",
        "race: risk",
        "distance: threshold 5",
        "difference of means",
        "too few people to judge",
        "people.csv",
    ):
        assert said in shown, said
    assert re.search(r"[\d,]+ groups between these are not shown", words(samples.many_groups()))
    assert "not shown" in words(samples.wide_search())


def test_a_group_with_few_rows_is_never_called_above_or_below() -> None:
    few = Group({"race": "red"}, 0.0, 0.0, 0.01, 4, few=True)
    score = samples.group(groups=(*samples.group().groups, few))
    known = ratios(score)
    assert known is not None
    assert [each.place for each in known] == ["above", "below", "few"]
    row = re.search("<tr[^>]*><th[^>]*><bdi>red.*?</tr>", render_page(samples.result(score)))
    assert row is not None
    assert "too few people to judge" in row.group()
    assert "four fifths" not in row.group()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(*[st.floats(0.01, 1.0)] * 3), min_size=2, max_size=6))
def test_the_interval_of_a_ratio_holds_whenever_those_of_the_rates_do(ends: Any) -> None:
    groups, truths = [], []
    for place, three in enumerate(ends):
        low, truth, high = sorted(three)
        groups.append(Group({"g": place}, (low + high) / 2, low, high, 10))
        truths.append(truth)
    known = ratios(samples.group(groups=tuple(groups)))
    assert known is not None
    for ratio, truth in zip(known, truths, strict=True):
        assert ratio.low - 1e-9 <= truth / max(truths) <= ratio.high + 1e-9


def test_the_line_is_at_four_fifths_of_the_highest_rate() -> None:
    line = four_fifths_line(samples.group())
    assert line == pytest.approx(0.4)
    marks = re.findall(r'x1="([\d.]+)%"[^>]*class="mark"', render_page(
        samples.result(samples.group())))  # fmt: skip
    axis = Axis.reaching(0.55)
    assert marks == [f"{100 * 0.4 / axis.end:.2f}"] * 4  # in the card and in the whole table


@pytest.mark.slow
def test_even_a_monster_fits() -> None:
    names = [f"{n} {'x' * 300}" for n in range(100)]
    people = (dict.fromkeys(names, "y" * 3000), dict.fromkeys(names, "z" * 3000))
    pairs = (Witness(people, ("o" * 9_000, "p" * 9_000), ("q" * 9_000,) * 2),) * 3
    groups = tuple(Group(dict.fromkeys(names, n), 0.5, 0.4, 0.6, 9) for n in range(15))
    scores = [
        samples.causal(against=tuple(names), witnesses=pairs, notes=samples.notes("n" * 9_000))
    ] * 12
    scores += [samples.group(against=tuple(names), groups=groups)] * 12
    inputs = {name: ["v" * 3_000, "w" * 3_000] for name in names}
    notes = samples.notes(*(f"{n}{'m' * 9_000}" for n in range(50)))
    monster = samples.result(*scores, notes=notes,
                             schema={"inputs": inputs, "constraints": inputs})  # fmt: skip
    for render in RENDERERS.values():
        assert len(render(monster).encode()) < LIMIT_BYTES


def test_a_pair_marks_what_differs_and_has_the_lines_that_reproduce_it_or_the_inputs() -> None:
    page = render_page(samples.result(samples.causal()))
    # Once in its card, once among all pairs.
    assert re.findall('class="changed"[^>]*><bdi>(.*?)</bdi>', page) == ["green", "purple"] * 2
    assert "loan green 30" in page
    assert "loan purple 30" in page
    pair = Witness(({"race": "a", "n": 1}, {"race": "b", "n": 1}), ("1", "0"))
    assert '{"race": "b", "n": 1}' in words(samples.result(samples.causal(witnesses=(pair,))))


def test_the_hash_can_be_computed_from_the_file_without_themis(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_text(json.dumps(samples.small_search().to_dict(), indent=2))
    command = shlex.split(RECIPE)
    assert (command[0], command[-1]) == ("python", "result.json")
    line = [sys.executable, "-I", *command[1:-1], str(file)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == digest(read_result(file)) == digest(samples.small_search())
    assert done.stdout.strip() in render_annex(read_result(file))


def test_the_annex_counts_every_category_of_characteristics_and_intersections() -> None:
    annex = Document(re.sub("(</[a-z0-9]+>)", r" \1", render_annex(samples.audit()))).text
    (observed,) = samples.audit().observed
    assert [each.against for each in observed.tables] == [("sex",), ("race",), ("sex", "race")]
    for each in observed.categories():
        rate = display_words.percent(each.favourable / each.inputs)
        assert f"{PLAIN.label(each.values)} {each.inputs} {each.favourable} {rate}" in annex
    assert "These tables count the same 181 test applicants" in annex


def test_the_annex_is_dated_hashed_can_be_signed_and_names_the_command_for_rates() -> None:
    result = samples.result(samples.causal())
    annex = Document(render_annex(result)).text
    for said in (
        "2026-03-01 12:00:00 UTC",
        "b03f6199494d8611",
        "themis 0.1.0, python 3.12.1",
        digest(result),
        "Date and signature",
        "They are not in this result. A whole audit counts them:themis audit",
    ):
        assert said in annex


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_of_text_stand_out(palette: dict[str, str]) -> None:
    pairs = [
        *((text, "paper") for text in ("ink", "soft", "calm", "grave", "open")),
        *((text, "sheet") for text in ("ink", "soft", "calm")),
        *((text, f"{text}-sheet") for text in ("calm", "grave", "open")),
        ("ink", "grave-sheet"),
        ("ink", "mark"),
    ]
    for text, behind in pairs:
        assert _contrast(palette[text], palette[behind]) >= 4.5, (text, behind)
    assert set(LIGHT) == set(DARK)
    assert all(f"var(--{name})" in STYLE for name in LIGHT)


@pytest.mark.slow
def test_every_class_has_a_style_and_every_style_a_class() -> None:
    used = {
        name
        for make in samples.SAMPLES.values()
        for render in RENDERERS.values()
        for names in re.findall('class="([^"]*)"', render(make()))
        for name in names.split()
    }
    plain = {"plain", "above", "unclear", "rest"}  # they look like what is around them
    assert used - plain == set(re.findall(r"\.([a-z]\w*)", STYLE))


def _contrast(one: str, other: str) -> float:
    """The contrast ratio of the Web Content Accessibility Guidelines."""
    light, dark = sorted((_luminance(each) for each in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
              for part in parts]  # fmt: skip
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
