"""What the figures are called elsewhere, and what those documents ask for that is not here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from themis.results.model import CausalScore, GroupScore, Result
from themis.show.html import Html, table, tag
from themis.show.reports.document import Room, block, section

NO_ADVICE = (
    "This part is information and no legal advice. It says under which names the figures of this "
    "result appear in four documents, and what those name that is not in it. It does not say that "
    "a requirement is met. Read the documents themselves; the report of ISO and IEC is not public, "
    "and its names could not be checked against its text."
)
HERE, ABSENT, PARTLY = "in this result", "not in this result", "in part"


@dataclass(frozen=True)
class Reference:
    """One thing that a document names, what it is here, and whether this result has it."""

    named: str
    here: str
    status: str


@dataclass(frozen=True)
class Held:
    """What a result holds, as far as the documents ask for it."""

    causal: bool
    rates: bool
    scoring: bool  # rates above the median
    pairs: bool
    rows: bool  # of given people
    outcomes: bool  # what was right is known, so that there are error rates
    proxies: bool  # whether something was looked for that may stand in for a set

    @classmethod
    def of(cls, result: Result) -> Held:
        """Of a result."""
        groups = [each for each in result.scores if isinstance(each, GroupScore) and each.samples]
        return cls(
            causal=any(isinstance(each, CausalScore) and each.samples for each in result.scores),
            rates=any(each.statistic == "rate" for each in groups),
            scoring=any(g.above_median is not None for each in groups for g in each.groups),
            pairs=any(len(each.against) > 1 for each in groups),
            rows=any(each.population == "rows" for each in groups),
            outcomes=bool(result.outcomes),
            proxies=bool(result.proxies),
        )


def _status(held: bool) -> str:
    return HERE if held else ABSENT


def references(result: Result) -> dict[str, list[Reference]]:
    """By document, what it names and where that is."""
    held = Held.of(result)
    errors = "error rates by group: they need rows with known outcomes"
    return {
        "ISO/IEC TR 24027:2021, Bias in AI systems and AI aided decision making": [
            Reference("demographic parity (statistical parity)",
                      "group score: the largest difference of rates", _status(held.rates)),
            Reference("equalized odds, equality of opportunity, predictive equality",
                      errors, _status(held.outcomes)),
            Reference("sources of bias: human, data, engineering",
                      "not examined: the subject is run, not read", ABSENT),
        ],
        "NIST AI 100-1 (AI RMF 1.0), MEASURE 2.11: fairness and bias are evaluated and results "
        "are documented; metrics as its Playbook names them": [
            Reference("demographic parity", "group score: the largest difference of rates",
                      _status(held.rates)),
            Reference("differences across groups, within groups and among intersecting groups",
                      "impact ratios and tables of pairs in part B",
                      PARTLY if held.rates and not held.pairs else _status(held.rates)),
            Reference("equalized odds, equal opportunity; false positive and false negative rates",
                      errors, _status(held.outcomes)),
            Reference("input data features that may serve as proxies",
                      "possible proxies among the rows", _status(held.proxies)),
            Reference("(not among them)",
                      "causal score, and pairs that differ only in the set", _status(held.causal)),
            Reference("test sets, metrics and tools are documented (MEASURE 2.1)",
                      "the test log in part C", HERE),
            Reference("harms in context; metrics developed with affected communities",
                      "not examined", ABSENT),
        ],
        "New York City Local Law 144 of 2021, rules in 6 RCNY §§ 5-300 to 5-304": [
            Reference("selection rate and impact ratio by category (§ 5-301)",
                      "the tables of part B", _status(held.rates)),
            Reference("scoring rate: how often a category scores above the median (§ 5-301)",
                      "the column “above the median” of part B", _status(held.scoring)),
            Reference("intersections of sex and race or ethnicity (§ 5-301)",
                      "the tables of pairs in part B", _status(held.pairs)),
            Reference("number of individuals of an unknown category (§ 5-301); categories below "
                      "2 % of the data (§ 5-301(d))",
                      "below each table of part B", _status(held.rates or held.scoring)),
            Reference("historical data; else why they were not used, and how the test data were "
                      "generated and obtained (§ 5-302)",
                      "part A; whether rows are historical is for whoever gave them to say",
                      PARTLY if held.rows else "test data: see part A"),
            Reference("an independent auditor, an audit in each year, publication, notices",
                      "not examined", ABSENT),
        ],
        "Regulation (EU) 2024/1689 (AI Act), Annex IV: technical documentation": [
            Reference("2(g): validation and testing procedures, test data and their main "
                      "characteristics", "the test log in part C", HERE),
            Reference("2(g): metrics for potentially discriminatory impacts",
                      "causal and group scores", _status(held.causal or held.rates)),
            Reference("2(g): metrics for accuracy, robustness", errors, _status(held.outcomes)),
            Reference("2(g): test logs and reports, dated and signed by the responsible persons",
                      "the places for signatures in part C", "to be signed"),
            Reference("3: degrees of accuracy for specific persons or groups of persons",
                      errors, _status(held.outcomes)),
            Reference("all other points", "not examined", ABSENT),
        ],
    }  # fmt: skip


def references_section(result: Result, _room: Room) -> Html:
    """The tables, one for each document."""
    return section(
        "references",
        "D. What the figures are called elsewhere",
        tag("p", tag("b", NO_ADVICE), class_="statement"),
        *_tables(result),
    )


def _tables(result: Result) -> Iterator[Html]:
    for document, rows in references(result).items():
        yield block(
            document,
            table(
                f"Names in {document}",
                ("There", "Here", "Status"),
                ((each.named, each.here, each.status) for each in rows),
                kind="chart",
            ),
        )
