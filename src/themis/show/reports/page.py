"""The report of a result, of a replay, or of what changed between two, as one HTML file.

Of a result: what was tested, the verdict, a card for each set; statistics, then the method. The
others can be Markdown as well.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from themis.results.comparison import Differences
from themis.results.model import Result
from themis.results.parts import Naming
from themis.results.replays import Replay
from themis.results.withheld import withheld
from themis.show.blocks import Statement
from themis.show.html import Html, cut, tag
from themis.show.parts.cautions import cautions
from themis.show.parts.comparisons import comparison_tables, headline_of, remarks, state_of
from themis.show.reports import markdown
from themis.show.reports.document import Space, chip, document, drawn, fitting, section, sentence
from themis.show.reports.findings import findings_section
from themis.show.reports.method import again_section, digest, method_section, started_on
from themis.show.reports.sections import (
    Exhibit,
    cautions_section,
    checks_section,
    errors_section,
    exhibits_section,
    glossary_section,
    groups_section,
    harm_section,
    outcomes_section,
    pairs_section,
    proxies_section,
    regions_section,
    scores_section,
    sets_section,
)
from themis.show.words.headlines import capital
from themis.show.words.values import visible
from themis.show.words.verdicts import how_to_read, measured_on, verdict
from themis.show.words.wording import PLAIN, Wording, named_title, subject_title, wording

LONGEST_VERDICT = 600
PAPER = "Parts that are folded on the screen are not printed: open those that are wanted first."
HEADING = re.compile(r'<h2 id="(\w+)-title">([^<]+)</h2>')
# In the order of the page; each is empty if there is nothing to show.
SECTIONS: tuple[Callable[[Result, Space], Html], ...] = (
    checks_section,
    findings_section,
    sets_section,
    cautions_section,
    scores_section,
    groups_section,
    outcomes_section,
    errors_section,
    proxies_section,
    harm_section,
    regions_section,
    pairs_section,
    method_section,
    again_section,
    glossary_section,
)
EXHIBITS = SECTIONS.index(sets_section)  # go before these


def render_page(result: Result, exhibits: Sequence[Exhibit] = ()) -> str:
    """A result as one HTML file of less than 300 KB that needs nothing else."""
    return fitting(lambda space: _render(result, space, exhibits))


def _render(result: Result, space: Space, exhibits: Sequence[Exhibit]) -> str:
    title = subject_title(result)
    shown = [show(result, space) for show in SECTIONS]
    shown.insert(EXHIBITS, exhibits_section(exhibits, wording(result)))
    return document(
        f"{title}: Themis report",
        "Report",
        digest(result),
        header(result, title),
        contents(shown),
        *shown,
        tag("p", PAPER, class_="paper faint"),
    )


def contents(sections: Iterable[Html]) -> Html:
    """Links to the sections, for wide screens."""
    found = (each for shown in sections for each in HEADING.findall(shown))
    links = (tag("li", tag("a", Html(title), href=f"#{name}")) for name, title in found)
    return tag("nav", tag("ul", *links), class_="toc", aria_label="Contents")


def header(result: Result, title: str) -> Iterator[Html]:
    """What was tested, when and by whom; then the verdict in one sentence, and on whom."""
    yield tag("h1", tag("bdi", title))
    yield tag("p", " · ".join(_about(result)), class_="about")
    found = verdict(result)
    chips = [chip(found.state, found.word)]
    if any(each.weakens for each in cautions(result)):  # a link to what weakens the verdict
        chips.append(tag("a", chip("open", "with reservations"), href="#cautions"))
    behind = [tag("p", found.behind, class_="behind")] if found.behind else []
    below = filter(None, [measured_on(result), how_to_read(result)])
    yield tag(
        "div",
        tag("p", *chips, class_="chips"),
        tag("p", sentence(whole_clauses(found.sentence)), class_="sentence"),
        *behind,
        *(tag("p", tag("bdi", each), class_="faint") for each in below),
        class_=f"verdict {found.state}",
    )


def _about(result: Result) -> Iterator[str]:
    naming = wording(result).naming
    if naming.purpose:
        yield visible(naming.purpose)
    if naming.owner:
        yield f"owner: {visible(naming.owner)}"
    if naming.auditor:
        yield f"tested by {visible(naming.auditor)}"
    if started_on(result):
        yield started_on(result)


def whole_clauses(sentence: str) -> str:
    """A verdict; of one that is long, the clauses that fit, and that there are more."""
    if len(sentence) <= LONGEST_VERDICT:
        return sentence
    start = sentence[:LONGEST_VERDICT].rpartition("; ")[0]
    while start.count("(") > start.count(")"):  # a semicolon within parentheses
        start = start.rpartition("; ")[0]
    return f"{start}; more is below" if start else cut(sentence, LONGEST_VERDICT)


SUFFIXES = (".html", ".md")
WORDS = {
    "Comparison": {"grave": "difference has grown", "calm": "nothing new", "open": "undecided"},
    "Replay": {"grave": "decisions differ", "calm": "no test differs", "open": "undecided"},
}


@dataclass(frozen=True)
class Topic:
    """What a document is about: what was tested, further facts, and the words for it."""

    title: str = ""
    about: str = ""
    words: Wording = PLAIN


def topic_of(before: Result, after: Result) -> Topic:
    """What two results that are compared are about."""
    about = " · ".join(
        f"{name}: {', '.join(known)}"
        for name, each in (("before", before), ("after", after))
        if (known := [*filter(None, (subject_title(each), started_on(each)))])
    )
    return Topic(subject_title(after), about, wording(after))


def topic_of_file(naming: Naming) -> Topic:
    """What a replay is about, as the file names it."""
    return Topic(named_title(naming), naming.purpose or "", Wording(naming))


def render_comparison(found: Differences | Replay, path: Path, topic: Topic | None = None) -> str:
    """The document that the name of a file asks for: a page, else Markdown."""
    shown, topic = withheld(found), topic or Topic()
    if path.suffix == ".md":
        return _markdown(shown, topic)
    printed = (found if isinstance(found, Replay) else shown).to_dict()  # by --json
    hashed = hashlib.sha256(json.dumps(printed, sort_keys=True).encode()).hexdigest()
    return _page(shown, hashed, topic)


def _page(found: Differences | Replay, hashed: str, topic: Topic) -> str:
    name = _name(found)
    title = cut(f"{name}: {headline_of(found)}", 120)
    return document(
        title, name, hashed, comparison_header(found, topic), *comparison_sections(found, topic)
    )


def _name(found: Differences | Replay) -> str:
    return "Comparison" if isinstance(found, Differences) else "Replay"


def comparison_header(found: Differences | Replay, topic: Topic) -> Iterator[Html]:
    """What was compared, and the verdict."""
    name, state = _name(found), state_of(found)
    yield tag("h1", tag("bdi", topic.title or name))
    if topic.about:
        yield tag("p", capital(topic.about), class_="about")
    yield tag(
        "div",
        tag("p", chip(state, WORDS[name][state]), class_="chips"),
        tag("p", sentence(headline_of(found)), class_="sentence"),
        class_=f"verdict {state}",
    )


def comparison_sections(found: Differences | Replay, topic: Topic) -> Iterator[Html]:
    """What differs, and what is to be said of it."""
    for each in comparison_tables(found, topic.words):
        yield section(each.title.split()[0].lower(), each.title, drawn(each.blocks))
    yield section("notes", "Notes", drawn(remarks(found)))


def _markdown(found: Differences | Replay, topic: Topic) -> str:
    name = f"Themis: {markdown.escape(topic.title)}" if topic.title else "Themis"
    blocks = [Statement(headline_of(found), "headline")]
    blocks += [Statement(capital(topic.about))] if topic.about else []
    tables = (table for each in comparison_tables(found, topic.words) for table in each.blocks)
    parts = markdown.drawn([*blocks, *tables, *remarks(found)])
    return "\n\n".join([f"## {name}", *parts]) + "\n"
