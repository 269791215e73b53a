"""The report: what was tested, the verdict, a card for each set; statistics, then the method."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from themis.results.model import Result
from themis.show.html import Html, cut, tag
from themis.show.parts.cautions import cautions
from themis.show.reports.document import Space, document, fitting
from themis.show.reports.drawing import chip, sentence
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
from themis.show.words.values import visible
from themis.show.words.verdicts import how_to_read, measured_on, verdict
from themis.show.words.wording import subject_title, wording

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
