"""The audit annex: rates by category and the test log, to be signed and filed with the report."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from themis._version import __version__
from themis.results.model import CausalScore, GroupScore, Result
from themis.settings import Stopping
from themis.show.blocks import (
    Block,
    Commands,
    Part,
    Points,
    Statement,
    Table,
)
from themis.show.html import Html, tag
from themis.show.parts.cautions import ALL_CLEAR, caution_blocks, cautions
from themis.show.parts.checks import checks_table
from themis.show.parts.groups import observed_blocks
from themis.show.parts.scores import (
    described,
    meanings,
    scores_table,
)
from themis.show.reports.document import Space, document, drawn, fitting, rest, section
from themis.show.reports.method import (
    CUT_OFF,
    RECIPE,
    command_blocks,
    digest,
    facts_table,
    inputs_blocks,
    started,
)
from themis.show.reports.page import whole_clauses
from themis.show.reports.sections import (
    TEXTS,
    Exhibit,
    errors_section,
    exhibits_section,
    outcomes_section,
)
from themis.show.words.headlines import headline
from themis.show.words.notes import how_it_ended
from themis.show.words.scores import how_sure_together
from themis.show.words.searches import checks_guarantee, guarantee, search_headline, set_counts
from themis.show.words.values import count, set_text, visible
from themis.show.words.verdicts import verdict
from themis.show.words.wording import subject_title, wording

SAYS: dict[str, Any] = TEXTS["annex"]
OPEN = "(to be filled in; the file can name it in [report])"


def _about(result: Result) -> Iterator[tuple[str, str]]:
    """What was tested with what, for what, by whom, on which data and why on those."""
    naming, data = wording(result).naming, result.data or {}
    kind = visible(result.subject.get("kind", "unknown"))
    yield "Tested", subject_title(result)
    yield "Kind, fingerprint", f"{kind}, {visible(result.subject.get('fingerprint') or 'unknown')}"
    for name, given in (
        ("Purpose", naming.purpose),
        ("Owner", naming.owner),
        ("In use since", naming.distribution_date),
        ("Auditor", naming.auditor),
        ("Independence of the auditor", naming.independence),
        ("Why these measures", naming.why_metrics),
    ):
        yield name, visible(given) if given else OPEN
    yield "Tool", f"Themis {_version(result)}"
    yield "Date of the test", started(result) or "unknown"
    kinds = {each.population for each in result.scores} or {"inputs"}
    yield (
        "Source of the data",
        " ".join(text for each, text in SAYS["made"].items() if each in kinds),
    )
    if isinstance(data.get("file"), str):
        rows = data.get("rows")
        number = f", {count(rows, 'row')}" if isinstance(rows, int) else ""
        yield "Given rows", f"{visible(data['file'])}{number}"
    if naming.data_source or "rows" in kinds:
        yield "Data and period", visible(naming.data_source) if naming.data_source else OPEN
    if kinds != {"rows"}:
        why = naming.why_test_data
        yield "Why test data", visible(why) if why else OPEN


def _version(result: Result) -> str:
    """The version that measured it, where the result names one; else the one that writes this."""
    versions = result.timing.get("versions")
    measured = versions.get("themis") if isinstance(versions, Mapping) else None
    return visible(measured or __version__)


def _tables(result: Result, space: Space) -> Iterator[Block]:
    """The observed rates of each output, or which command gives them."""
    if not result.observed:
        yield from _missing(result)
        return
    words = wording(result)
    yield Statement(SAYS[result.observed[0].population], "headline")
    yield Statement(SAYS["nyc"])
    for each in result.observed:
        yield from observed_blocks(each, words, tables=space.scores, most=space.categories)


def _missing(result: Result) -> Iterator[Block]:
    """That there are no rates to list, and how to have them."""
    why = "They are not in this result"
    if result.stopped in CUT_OFF and result.command in ("audit", "apparent"):
        why = f"They were not counted: {how_it_ended(result.stopped)}"
    inputs = result.schema.get("inputs", {}).values()
    marked = any(isinstance(each, Mapping) and each.get("protected") for each in inputs)
    first = "" if marked else " once characteristics are marked with protected = true"
    file = (result.source or {}).get("file")
    words = ["themis", "audit", *([file] if isinstance(file, str) else [])]
    yield Statement(f"{why}. A whole audit counts them{first}:")
    yield Commands([shlex.join(words)])


SIGNED = (
    "Tested by (name, role)",
    "Date and signature",
    "Responsible person (name, role)",
    "Date and signature",
)


def _log(result: Result, space: Space) -> Iterator[Block]:
    """The items of the test log, in the order in which the regulation names them."""
    yield Statement(SAYS["purpose"])
    found = cautions(result)[: space.cautions]
    log: list[Block] = [facts_table(result), *command_blocks(result)]
    log += [Statement(SAYS["hashed"], "faint"), Commands([RECIPE])]
    measures = {each.measure for each in result.scores} | {e.measure for e in result.searches}
    yield Part("Testing procedure", [*map(Statement, _procedure(result))])
    sources = "; ".join(SAYS["data"][each] for each in sorted(result.populations))
    data = [Statement(f"Inputs: {sources}"), *inputs_blocks(result, space)]
    yield Part("Test data and their main characteristics", data)
    ratio = [Statement(SAYS["impact_ratio"])] if "group" in measures else []
    yield Part("Metrics", [Statement(meanings(measures)), *ratio])
    yield Part("Potentially discriminatory impacts", [*_impacts(result, space)])
    reservations = [*caution_blocks(found)] or [Statement(ALL_CLEAR)]
    yield Part("Failures and reservations", reservations)
    yield Part("Log", log)


def _procedure(result: Result) -> Iterator[str]:
    yield SAYS["procedure"]
    yield from (SAYS[rule] for rule in Stopping if rule in result.rules)
    if result.stopped in CUT_OFF and Stopping.CERTIFIED in result.rules:
        yield f"This run ended before that: {how_it_ended(result.stopped)}."
    if any(each.method == "exact" and each.conclusive for each in result.scores):
        yield SAYS["exact"]
    sure = checks_guarantee(result) if result.checks else how_sure_together(result, remedy="")
    yield from filter(None, [sure])


def _impacts(result: Result, space: Space) -> Iterator[Block]:
    words = wording(result)
    scores = [each for each in result.scores if each.samples]
    if scores:
        shown = scores[: space.scores]
        foot = rest(len(scores) - len(shown), "score")
        yield described(scores_table(shown, foot=foot), shown, words)
        yield Points([headline(each, words) for each in scores[:8]])
    for search in result.searches[: space.searches]:
        sets = "; ".join(map(set_text, search.found[: space.sets]))
        yield Statement(f"{search_headline(search, words, sets)}. {set_counts(search, words)}.")
        yield Statement(guarantee(search))
    if result.checks:
        yield checks_table(result.checks, most=space.checks)


def render_annex(result: Result, exhibits: Sequence[Exhibit] = ()) -> str:
    """The annex of a result as one HTML file of its own, of less than 300 KB."""
    return fitting(lambda space: _render(result, space, exhibits))


def _render(result: Result, space: Space, exhibits: Sequence[Exhibit]) -> str:
    title, hashed = "What was tested, and on what", digest(result)
    about = Table(title, ("", ""), [*_about(result)])
    signatures = tag("div", *(tag("div", each) for each in SIGNED), class_="sign")
    signed = tag("div", tag("h3", "Signatures"), signatures, class_="block")
    rates = "B. Observed rates"
    return document(
        f"Themis audit annex {hashed[:12]}",
        "Audit annex",
        hashed,
        _header(result, hashed[:12]),
        section("about", f"A. {title}", drawn([about])),
        section("rates", rates, drawn(_tables(result, space))),
        outcomes_section(result, space),
        errors_section(result, space),
        section("log", "C. Test log", drawn(_log(result, space))),
        exhibits_section(exhibits, wording(result)),
        references_section(result),
        signed,
    )


def _header(result: Result, hashed: str) -> Iterator[Html]:
    sentence = whole_clauses(verdict(result).sentence)
    subject = (result.subject.get(key, "") for key in ("kind", "fingerprint"))
    subject_text = " ".join(map(visible, filter(None, subject)))
    about = [f"Subject: {subject_text}", started(result), f"result {hashed}"]
    yield tag("h1", "Audit annex")
    yield tag("p", tag("bdi", sentence), ".", class_="behind")
    yield tag("p", " · ".join(filter(None, about)), class_="faint")


# What the figures are called in four documents --------------------------------------------------
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
