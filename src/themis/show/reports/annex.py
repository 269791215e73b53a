"""The audit annex: rates by category and the test log, to be signed and filed with the report."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations
from typing import Any

from themis._version import __version__
from themis.results.model import GroupScore, Result
from themis.results.parts import Group
from themis.results.withheld import hidden_groups
from themis.settings import Stopping
from themis.show.blocks import (
    Block,
    Commands,
    Content,
    Head,
    Number,
    Part,
    Points,
    Statement,
    Table,
)
from themis.show.html import Html, tag
from themis.show.intervals import ends_text
from themis.show.parts.cautions import ALL_CLEAR, caution_blocks, cautions
from themis.show.parts.checks import checks_table
from themis.show.parts.groups import Ratio, rate_interval, ratio_cell, ratios, tested_head
from themis.show.parts.scores import (
    described,
    details,
    meanings,
    protected_scores,
    score_name,
    scores_table,
)
from themis.show.reports.document import Space, document, fitting, rest, section
from themis.show.reports.drawing import drawn
from themis.show.reports.method import (
    CUT_OFF,
    RECIPE,
    command_again,
    digest,
    facts_table,
    inputs_blocks,
    started,
)
from themis.show.reports.page import whole_clauses
from themis.show.reports.references import TEXTS, references_section
from themis.show.reports.sections import outcomes_section
from themis.show.words.headlines import capital, headline, hidden_means
from themis.show.words.notes import how_it_ended
from themis.show.words.scores import how_sure_together, impact, ratio_text
from themis.show.words.searches import (
    checks_guarantee,
    guarantee,
    search_headline,
    set_counts,
    set_text,
)
from themis.show.words.units import rate_text
from themis.show.words.values import count, percent, set_phrase, visible
from themis.show.words.verdicts import verdict
from themis.show.words.wording import Wording, is_drawn, subject_title, wording

SAYS: dict[str, Any] = TEXTS["annex"]
SMALL = 1e-6
NAMED = 12  # rare categories that are named
NOT_LISTED = {"groups-not-listed", "too-many-groups", "groups-without-decision"}
RARE = 0.02  # of those who were tested: a category that an audit may leave out


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
    """Single characteristics, then intersections, then what was not measured."""
    scores = [each for each in protected_scores(result, result.scores)
              if isinstance(each, GroupScore) and each.groups]  # fmt: skip
    scores.sort(key=lambda each: len(each.against))
    yield Statement(impact_statement(scores), "headline")
    yield Statement(SAYS["nyc"])
    if any(each.method == "sampled" for each in result.scores if isinstance(each, GroupScore)):
        yield Statement(SAYS["each" if result.family is None else "all"])
    yield from (rates_part(each, result, space) for each in scores[: space.scores])
    if (hidden := len(scores) - space.scores) > 0:
        yield Statement(f"{count(hidden, 'more table')} not shown here")
    yield from _missing(result, scores)


def impact_statement(scores: Sequence[GroupScore]) -> str:
    """Of whom the rates are, which decides what they may be called."""
    populations = {each.population for each in scores}
    known = [each for each in ("rows", "profile") if each in populations]
    return str(SAYS[known[0] if known else "synthetic"])


def rates_part(score: GroupScore, result: Result, space: Space) -> Part:
    """The categories of a set by falling rate, each with its ratio to the highest."""
    words = wording(result)
    known: Sequence[Ratio | None] = ratios(score) or [None] * len(score.groups)
    ranked = sorted(zip(score.groups, known, strict=True), key=lambda each: -each[0].rate)
    shown = ranked[: space.categories]
    more = count(len(ranked) - len(shown), "more category", "more categories")
    foot = f"{more}, with lower rates, not shown here; all are in the JSON result"
    mean = score.statistic == "mean"
    last = ("Above the median", "Impact ratio") if mean else ("Impact ratio", "Ratio between")
    names = (tested_head(score), "Favourable", "Mean" if mean else "Selection rate", "Interval")
    heads: list[Head] = ["Category", *map(Number, (*names, *last))]
    rows = [_row(score, group, ratio, words) for group, ratio in shown]
    untold = hidden_means(score, words)
    remark = ". ".join(filter(None, [impact(score), *details(score), untold]))
    title = f"Categories of {set_phrase(score.against)}"
    blocks: list[Block] = [Table(title, heads, rows, foot if len(ranked) > len(shown) else "")]
    blocks += [Statement(capital(remark), "faint")] if remark else []
    blocks.append(Statement(_unknown(score, result), "faint"))
    return Part(score_name(score), blocks)


def _row(score: GroupScore, group: Group, ratio: Ratio | None, words: Wording) -> Sequence[Content]:
    last: Sequence[Content] = ("–", "–")
    if score.statistic == "mean":
        last = _scoring(score, group)
    elif ratio is not None:
        ends = "–" if ratio.few else ends_text(ratio.low, ratio.high, ratio_text)
        last = (ratio_cell(ratio), ends)
    return (
        words.label(group.values),
        f"{group.samples:,}",
        favourable(score, group),
        rate_text(score, group.rate),
        rate_interval(score, group),
        *last,
    )


def _scoring(score: GroupScore, group: Group) -> tuple[str, str]:
    """How often a category is above the median of all, and that by the highest such rate."""
    best = max((each.above_median or 0.0 for each in score.groups), default=0.0)
    if group.above_median is None:
        return "–", "–"
    return percent(group.above_median), f"{group.above_median / best:.2f}" if best else "–"


def _unknown(score: GroupScore, result: Result) -> str:
    """How many are of no category, and which categories are rare; what is counted is said."""
    if score.population == "inputs":
        return (
            "Of an unknown category: not applicable, since inputs are generated. Each category is "
            "sampled separately until it can be compared; sample sizes differ."
        )
    words = wording(result)
    groups = (*score.groups, *(replace(each, values={}) for each in hidden_groups(score)))
    sizes, whom = [group.samples for group in groups], "those who were tested"
    if is_drawn(score):  # each category about as often, however many people are in it
        sizes = [group.people or 0 for group in groups]
        whom = words.whom(score.population)
    all_listed = not any(note.code in NOT_LISTED for note in score.notes)
    text = ""
    rows = _rows_of(result)
    if rows is not None and all_listed and all(sizes):
        text = f"Of an unknown category: {count(max(rows - sum(sizes), 0), 'row')}. "
    each = zip(groups, sizes, strict=True)
    rare = [group for group, size in each if size < RARE * sum(sizes)]
    if not rare:
        return f"{text}No category has fewer than 2 % of {whom}."
    named = "; ".join(words.label(g.values) for g in rare[:NAMED])
    more = f" and {len(rare) - NAMED:,} more" if len(rare) > NAMED else ""
    left = "none was left out here"
    if any(group.few for group in groups):
        left = "here those of too few rows to judge have no ratio, nor is any measured by them"
    return (
        f"{text}Fewer than 2 % of {whom}: {named}{more}. Local Law 144 lets an auditor leave such "
        f"categories out of the impact ratios, with a reason (§ 5-301(d)); {left}."
    )


def _rows_of(result: Result) -> int | None:
    """How many given people were used; None where they weigh unequally and were drawn."""
    data = result.data or {}
    groups = (each for each in result.scores if isinstance(each, GroupScore))
    used = None if "weights" in data and any(map(is_drawn, groups)) else data.get("used")
    return used if isinstance(used, int) else None


def favourable(score: GroupScore, group: Group) -> str:
    """How many got the favourable decision; unknown where people weigh unequally."""
    number = group.rate * group.samples
    if score.statistic == "mean" or abs(number - round(number)) > SMALL * max(number, 1.0):
        return "–"
    return f"{round(number):,}"


def _missing(result: Result, scores: Sequence[GroupScore]) -> Iterator[Block]:
    """The tables that protected characteristics call for and this result lacks."""
    inputs = result.schema.get("inputs", {})
    named = inputs.items() if isinstance(inputs, Mapping) else ()
    protected = [n for n, spec in named if isinstance(spec, Mapping) and spec.get("protected")]
    wanted = chain(combinations(protected, 1), combinations(protected, 2))
    measured = {frozenset(each.against) for each in scores}
    missing = [",".join(each) for each in wanted if frozenset(each) not in measured]
    if missing:
        options = [word for each in missing[:12] for word in ("--against", each)]
        are = "is" if len(missing) == 1 else "are"
        tables = count(len(missing), "table")
        text = f"{tables} of protected characteristics and their pairs {are} missing. To measure:"
        file = (result.source or {}).get("file")
        words = ["themis", "score", *([file] if isinstance(file, str) else [])]
        command = shlex.join([*words, "--measure", "group", *options, "--family"])
        yield Part("Not in this result", [Statement(text), Commands([command])])
    elif not scores:
        yield Statement("This result holds no group scores, so that there are no rates to list.")


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
    log: list[Block] = [facts_table(result), Statement("The command:", "faint")]
    log += [
        Commands([command_again(result).line]),
        Statement(SAYS["hashed"], "faint"),
        Commands([RECIPE]),
    ]
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
        yield Statement(f"{search_headline(search, words, sets)}. {set_counts(search)}.")
        yield Statement(guarantee(search))
    if result.checks:
        yield checks_table(result.checks, most=space.checks)


def render_annex(result: Result) -> str:
    """The annex of a result as one HTML file of its own, of less than 300 KB."""
    return fitting(lambda space: _render(result, space))


def _render(result: Result, space: Space) -> str:
    title, hashed = "What was tested, and on what", digest(result)
    about = Table(title, ("", ""), [*_about(result)])
    signatures = tag("div", *(tag("div", each) for each in SIGNED), class_="sign")
    signed = tag("div", tag("h3", "Signatures"), signatures, class_="block")
    rates = "B. Selection rates and impact ratios"
    return document(
        f"Themis audit annex {hashed[:12]}",
        "Audit annex",
        hashed,
        _header(result, hashed[:12]),
        section("about", f"A. {title}", drawn([about])),
        section("rates", rates, drawn(_tables(result, space))),
        outcomes_section(result, space),
        section("log", "C. Test log", drawn(_log(result, space))),
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
