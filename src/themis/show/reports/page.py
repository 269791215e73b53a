"""The report: the verdict, what voids it, the evidence, and how to make it again, on one page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from themis._version import __version__
from themis.results.model import Result
from themis.show.reports.html import Html, Room, cut, document, fitting, sentence, tag
from themis.show.reports.method import again_section, digest, method_section, started
from themis.show.reports.people import harm_section, pairs_section, regions_section
from themis.show.reports.scores import groups_section, scores_section
from themis.show.reports.sets import lattice_section
from themis.show.reports.verdict import cautions, cautions_section, checks_table, chip, statement
from themis.show.words.scores import cost_text
from themis.show.words.values import visible

LONGEST_VERDICT = 600


def render_page(result: Result) -> str:
    """A result as one HTML file of less than 300 KB that needs nothing else."""
    hashed = digest(result)
    return fitting(lambda room: _render(result, room, hashed))


def _render(result: Result, room: Room, hashed: str) -> str:
    sections = {
        "scores": ("Scores", scores_section(result, room)),
        "groups": ("Groups", groups_section(result, room)),
        "sets": ("Sets", lattice_section(result, room)),
        "people": ("People", pairs_section(result, room)),
        "harm": ("Harm", harm_section(result, room)),
        "regions": ("Flips", regions_section(result, room)),
        "method": ("Method", method_section(result, room, hashed)),
        "again": ("Run it again", again_section(result)),
    }
    shown = {name: each for name, each in sections.items() if each[1]}
    contents = [(name, title) for name, (title, _) in shown.items()]
    return document(
        f"Themis report: {cut(statement(result).sentence, 120)}",
        tag("a", "Skip to the report", href="#main", class_="skip"),
        header(result),
        tag(
            "main",
            checks_table(result, room),
            cautions_section(result, room),
            contents_list(contents),
            *(section for _, section in shown.values()),
            id="main",
        ),
        footer(),
    )


def header(result: Result) -> Html:
    """The verdict in one sentence, and of what it is."""
    verdict = statement(result)
    about = [visible(result.subject.get("kind", "")), started(result), cost_text(result)]
    return tag(
        "header",
        tag("p", tag("b", "Themis"), " Report", class_="brand"),
        tag("p", chip(verdict.state, verdict.word), *_reservations(result), class_="chips"),
        tag("h1", tag("bdi", cut(sentence(verdict.sentence), LONGEST_VERDICT))),
        *([tag("p", verdict.behind, class_="behind")] if verdict.behind else []),
        tag("p", " · ".join(filter(None, about)), class_="faint"),
    )


def _reservations(result: Result) -> Iterator[Html]:
    """A link to what weakens the verdict, beside it."""
    if cautions(result):
        yield tag("a", chip("open", "with reservations"), href="#cautions")


def contents_list(sections: Iterable[tuple[str, str]]) -> Html:
    """Links to the sections."""
    links = (tag("li", tag("a", title, href=f"#{name}")) for name, title in sections)
    return tag("nav", tag("ul", *links), aria_label="Sections")


def footer() -> Html:
    """What wrote this."""
    return tag(
        "footer",
        tag(
            "p",
            f"Written by Themis {__version__} from a saved result. Nothing was run for it, and "
            "the page fetches nothing.",
        ),
    )
