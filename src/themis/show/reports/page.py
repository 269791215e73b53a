"""The report: verdict, reservations, evidence, and how to make it again, on one page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from themis.results.model import Result
from themis.show.html import Html, cut, tag
from themis.show.reports.document import Room, document, fitting
from themis.show.reports.method import again_section, method_section, started
from themis.show.reports.people import harm_section, pairs_section, regions_section
from themis.show.reports.scores import groups_section, scores_section
from themis.show.reports.sets import lattice_section
from themis.show.reports.verdict import cautions, cautions_section, checks_table, chip
from themis.show.words.scores import cost_text
from themis.show.words.values import visible
from themis.show.words.verdicts import verdict
from themis.show.words.wording import wording

LONGEST_VERDICT = 600
# In the order of the page: the name that links use, their words, and the section, empty if there
# is nothing to show.
SECTIONS: tuple[tuple[str, str, Callable[[Result, Room], Html]], ...] = (
    ("scores", "Scores", scores_section),
    ("groups", "Groups", groups_section),
    ("sets", "Sets", lattice_section),
    ("people", "People", pairs_section),
    ("harm", "Harm", harm_section),
    ("regions", "Flips", regions_section),
    ("method", "Method", method_section),
    ("again", "Run it again", again_section),
)


def render_page(result: Result) -> str:
    """A result as one HTML file of less than 300 KB that needs nothing else."""
    words = wording(result)
    return fitting(lambda room: _render(result, replace(room, words=words)))


def _render(result: Result, room: Room) -> str:
    made = ((name, title, show(result, room)) for name, title, show in SECTIONS)
    shown = [each for each in made if each[2]]
    return document(
        f"Themis report: {cut(verdict(result).sentence, 120)}",
        "Report",
        _header(result),
        checks_table(result, room),
        cautions_section(result, room),
        _contents((name, title) for name, title, _ in shown),
        *(each for _, _, each in shown),
    )


def _header(result: Result) -> Iterator[Html]:
    """The verdict in one sentence, and of what it is."""
    found = verdict(result)
    chips = [chip(found.state, found.word)]
    if any(
        each.weakens for each in cautions(result)
    ):  # a link to what weakens the verdict, beside it
        chips.append(tag("a", chip("open", "with reservations"), href="#cautions"))
    yield tag("p", *chips, class_="chips")
    yield tag("h1", tag("bdi", cut(found.sentence, LONGEST_VERDICT)))
    if found.behind:
        yield tag("p", found.behind, class_="behind")
    about = [visible(result.subject.get("kind", "")), started(result), cost_text(result)]
    yield tag("p", " · ".join(filter(None, about)), class_="faint")


def _contents(sections: Iterable[tuple[str, str]]) -> Html:
    """Links to the sections."""
    links = (tag("li", tag("a", title, href=f"#{name}")) for name, title in sections)
    return tag("nav", tag("ul", *links), aria_label="Sections")
