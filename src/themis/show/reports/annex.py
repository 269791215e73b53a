"""The audit annex: rates by category and the test log, to be signed and filed with the report."""

from __future__ import annotations

from themis.results.model import Result
from themis.show.reports.annex_annex_log import log_section
from themis.show.reports.annex_annex_tables import tables_section
from themis.show.reports.html import Html, cut, tag
from themis.show.reports.html_document import document
from themis.show.reports.html_room import Room, fitting
from themis.show.reports.html_words import sentence
from themis.show.reports.method import started
from themis.show.reports.method_digest import digest
from themis.show.reports.page import LONGEST_VERDICT, footer
from themis.show.reports.verdict import statement
from themis.show.words.values import visible


def render_annex(result: Result) -> str:
    """The annex of a result as one HTML file of its own, of less than 300 KB."""
    hashed = digest(result)
    return fitting(lambda room: _render(result, room, hashed))


def _render(result: Result, room: Room, hashed: str) -> str:
    return document(
        f"Themis audit annex {hashed[:12]}",
        tag("a", "Skip to the annex", href="#main", class_="skip"),
        _header(result, hashed),
        tag(
            "main",
            tables_section(result, room),
            log_section(result, room, hashed),
            id="main",
        ),
        footer(),
    )


def _header(result: Result, hashed: str) -> Html:
    verdict = cut(sentence(statement(result).sentence), LONGEST_VERDICT)
    subject = (result.subject.get(key, "") for key in ("kind", "fingerprint"))
    about = [
        f"Subject: {' '.join(map(visible, filter(None, subject)))}",
        started(result),
        f"result {hashed[:12]}",
    ]
    return tag(
        "header",
        tag("p", tag("b", "Themis"), " Audit annex", class_="brand"),
        tag("h1", "Audit annex"),
        tag("p", tag("bdi", verdict), ".", class_="behind"),
        tag("p", " · ".join(filter(None, about)), class_="faint"),
    )
