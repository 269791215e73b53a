"""What the words and figures of reports mean, and what four documents call them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from themis.results.model import CausalScore, GroupScore, Result
from themis.show.blocks import Part, Table
from themis.show.html import Html, tag
from themis.show.reports.document import Space, section
from themis.show.reports.drawing import drawn

TEXTS: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("texts.toml").read_text(encoding="utf-8")
)
HERE, ABSENT, PARTLY = "in this result", "not in this result", "in part"


@dataclass(frozen=True)
class Reference:
    """One thing that a document names, what it is here, and whether this result has it."""

    named: str
    here: str
    status: str


def references(result: Result) -> dict[str, list[Reference]]:
    """By document, what it names and where that is."""
    statuses = _statuses(result)
    return {
        each["document"]: [
            Reference(named, here, statuses.get(status, status))
            for named, here, status in each["rows"]
        ]
        for each in TEXTS["references"]
    }


def _statuses(result: Result) -> dict[str, str]:
    """Which of the things that documents ask for a result holds."""
    groups = [each for each in result.scores if isinstance(each, GroupScore) and each.samples]
    causal = any(isinstance(each, CausalScore) and each.samples for each in result.scores)
    rates = any(each.statistic == "rate" for each in groups)
    observed = {each.statistic for each in result.observed}
    pairs = any(len(table.against) > 1 for each in result.observed for table in each.tables)
    held = {
        "causal": causal,
        "rates": rates,
        "observed": "rate" in observed,
        "scoring": "mean" in observed,
        "pairs": pairs,
        "counted": bool(observed),
        "scores": causal or rates,
        "outcomes": bool(result.outcomes),
        "proxies": bool(result.proxies),
    }
    statuses = {name: HERE if each else ABSENT for name, each in held.items()}
    rows = any(each.population == "rows" for each in result.observed)
    return {
        **statuses,
        "intersecting": PARTLY if observed and not pairs else statuses["counted"],
        "historical": PARTLY if rows else "test data: see part A",
    }


def references_section(result: Result) -> Html:
    """The tables, one for each document."""
    heads = ("There", "Here", "Status")
    parts = [
        Part(document, [Table(document, heads, [(e.named, e.here, e.status) for e in rows])])
        for document, rows in references(result).items()
    ]
    title = "D. What the figures are called elsewhere"
    statement = tag("p", tag("b", TEXTS["annex"]["no_advice"]), class_="statement")
    return section("references", title, statement, drawn(parts))


def glossary_section(result: Result, _: Space) -> Html:
    """The words of the report, folded."""
    words = {**TEXTS["glossary"], **(TEXTS["outcomes"] if result.outcomes else {})}
    words |= TEXTS["excess"] if result.has_excess else {}
    table = Table("Words of this report", ("", ""), [*words.items()], shape="plain")
    return section("glossary", "Glossary", drawn([table]), fold=True)
