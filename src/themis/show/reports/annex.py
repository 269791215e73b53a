"""The audit annex: rates by category and the test log, to be signed and filed with the report."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations

from themis._version import __version__
from themis.results.model import GroupScore, Result
from themis.results.parts import Group
from themis.results.withheld import FewerGroups
from themis.settings import Stopping
from themis.show.html import Html, cut, shell, table, tag, value
from themis.show.intervals import ends_text
from themis.show.reports.document import (
    MORE_SCORES,
    Room,
    block,
    document,
    fitting,
    group_name,
    left_out,
    rest,
    score_name,
    score_sentence,
    scores_of,
    section,
    set_words,
)
from themis.show.reports.method import (
    CUT_OFF,
    RECIPE,
    command_again,
    digest,
    facts_list,
    inputs_table,
    started,
)
from themis.show.reports.outcomes import outcomes_section
from themis.show.reports.page import subject_title, whole_clauses
from themis.show.reports.references import references_section
from themis.show.reports.scores import (
    MEANINGS,
    Ratio,
    about,
    details,
    interval,
    point,
    rate_interval,
    ratio_cell,
    ratios,
    tested_head,
)
from themis.show.reports.verdict import ALL_CLEAR, cautions
from themis.show.words.headlines import capital, untold_text
from themis.show.words.notes import how_it_ended
from themis.show.words.scores import how_sure_together, impact, ratio_text
from themis.show.words.searches import (
    check_interval,
    checks_guarantee,
    guarantee,
    search_headline,
    set_counts,
    set_text,
    verdict_words,
)
from themis.show.words.units import rate_text
from themis.show.words.values import count, percent, percent_sure, visible
from themis.show.words.verdicts import verdict
from themis.show.words.wording import is_drawn, wording

SYNTHETIC = (
    "These rates were measured on test inputs that Themis generated from the schema. Scores on "
    "synthetic inputs differ from rates on historical applicants: they show what the subject does "
    "with people as the schema describes them, and not who applied or what became of them."
)
ROWS = (
    "These rates were measured on rows that were given. They are rates of those people, as far as "
    "the rows stand for them; scores on synthetic inputs differ from rates on historical "
    "applicants, and are named as such where they occur."
)
PROFILE = (
    "These rates were measured on rows of the profile, each as it was given. They are rates of "
    "those people, as far as the rows stand for them; whether they are historical data, and of "
    "whom, is for whoever gave them to say."
)
NYC = (
    "After the tables of New York City Local Law 144 (6 RCNY § 5-301): for each category how many "
    "were tested, how often they got the favourable decision, and that rate divided by the rate of "
    "the most favoured category; of numbers, how often a category is above the median of all that "
    "were compared, as counted: by convention a higher number counts as more favourable there, "
    "also where it is not, as of prices. A bias audit under that law uses historical data; where "
    "there are too few and test data are used, its summary has to explain why historical data were "
    "not used, and how the test data were generated and obtained (§ 5-302)."
)
SMALL = 1e-6
NAMED = 12  # rare categories that are named
NOT_LISTED = {"groups-not-listed", "too-many-groups", "groups-without-decision"}
RARE = 0.02  # of those who were tested: a category that an audit may leave out


MADE = {
    "inputs": "Test data. Inputs were generated at random from the schema, each characteristic by "
    "its weights or else all values equally often, within the constraints. They are not people.",
    "profile": "Test data. Inputs are the given rows, or were drawn from them; for causal scores "
    "single values of them were changed.",
    "rows": "Given rows. Whether they are historical data, and of whom, is for whoever gave them "
    "to say.",
}
OPEN = "(to be filled in; the file can name it in [report])"


def about_section(result: Result, room: Room) -> Html:
    """What was tested with what, for what, by whom, on which data and why on those."""
    shown = table("What was tested, and on what", ("", ""), _about(result, room), kind="chart")
    return section("about", "A. What was tested, and on what", shown)


def _about(result: Result, room: Room) -> Iterator[tuple[str, object]]:
    naming = room.words.naming
    kind = visible(result.subject.get("kind", "unknown"))
    yield "Tested", tag("bdi", subject_title(result))
    yield "Kind, fingerprint", f"{kind}, {visible(result.subject.get('fingerprint') or 'unknown')}"
    for name, given in (("Purpose", naming.purpose), ("Owner", naming.owner),
                        ("Auditor", naming.auditor)):  # fmt: skip
        yield name, tag("bdi", visible(given)) if given else OPEN
    yield "Tool", f"Themis {_version(result)}"
    yield "Date of the test", started(result) or "unknown"
    kinds = {each.population for each in result.scores} or {"inputs"}
    yield "Source of the data", " ".join(MADE[each] for each in MADE if each in kinds)
    if isinstance((result.data or {}).get("file"), str):
        rows = (result.data or {}).get("rows")
        number = f", {count(rows, 'row')}" if isinstance(rows, int) else ""
        yield "Given rows", f"{visible((result.data or {})['file'])}{number}"
    if kinds != {"rows"}:
        why = naming.why_test_data
        yield "Why test data", tag("bdi", visible(why)) if why else OPEN


def _version(result: Result) -> str:
    """The version that measured it, where the result names one; else the one that writes this."""
    versions = result.timing.get("versions")
    measured = versions.get("themis") if isinstance(versions, Mapping) else None
    return visible(measured or __version__)


def tables_section(result: Result, room: Room) -> Html:
    """Single characteristics, then intersections, then what was not measured."""
    scores = [each for each in scores_of(result, GroupScore) if each.groups]
    scores.sort(key=lambda each: len(each.against))
    data = result.data or {}
    used = None if "weights" in data and any(map(is_drawn, scores)) else data.get("used")
    room = replace(room, rows=used if isinstance(used, int) else None)
    shown = scores[: room.scores]
    single = [each for each in shown if len(each.against) == 1]
    return section(
        "rates",
        "B. Selection rates and impact ratios",
        tag("p", tag("b", impact_statement(scores)), class_="statement"),
        tag("p", NYC),
        *_together(result),
        *_kind("Single characteristics", single, room),
        *_kind("Intersections", shown[len(single) :], room),
        *left_out(len(scores) - len(shown), "table"),
        *_missing(result, scores),
    )


EACH = (
    "The intervals of the rates within one table hold together with the stated confidence, and so "
    "do the impact ratios that follow from them; the tables do so each by itself."
)
ALL = (
    "The intervals of all tables, and of all other scores of this result, hold together with the "
    "stated confidence: 1 − confidence was divided among them before the first input was run."
)


def _together(result: Result) -> Iterator[Html]:
    """Of what the confidence is: of each table, or of all."""
    if any(each.method == "sampled" for each in scores_of(result, GroupScore)):
        yield tag("p", EACH if result.family is None else ALL)


def impact_statement(scores: Sequence[GroupScore]) -> str:
    """Of whom the rates are, which decides what they may be called."""
    populations = {each.population for each in scores}
    if "rows" in populations:
        return ROWS
    return PROFILE if "profile" in populations else SYNTHETIC


def _kind(title: str, scores: Sequence[GroupScore], room: Room) -> Iterator[Html]:
    if scores:
        yield tag("h3", title)
        yield from (_one(each, room) for each in scores)


def _one(score: GroupScore, room: Room) -> Html:
    known: Sequence[Ratio | None] = ratios(score) or [None] * len(score.groups)
    ranked = sorted(zip(score.groups, known, strict=True), key=lambda each: -each[0].rate)
    shown = ranked[: room.categories]
    hidden = len(ranked) - len(shown)
    more = count(hidden, "more category", "more categories")
    untold = untold_text(score, room.words).removeprefix("; ")
    remark = " · ".join(filter(None, [impact(score), *details(score), untold]))
    return block(
        score_name(score),
        table(
            f"Categories of {set_words(score.against)}",
            (
                "Category",
                (tested_head(score), "number"),
                ("Favourable", "number"),
                ("Mean" if score.statistic == "mean" else "Selection rate", "number"),
                ("Interval", "number"),
                *_ratio_heads(score),
            ),
            (_row(score, group, ratio, room) for group, ratio in shown),
            kind="chart",
            foot=f"{more}, with lower rates, not shown here; all are in the JSON result"
            if hidden
            else "",
        ),
        tag(
            "p",
            *([f"{capital(remark)}. "] if remark else []),
            _unknown(score, room),
            class_="faint",
        ),
        level="h4",
    )


def _ratio_heads(score: GroupScore) -> Sequence[tuple[str, str]]:
    """Of means a ratio says nothing: they have scoring rates, and the ratio of those."""
    if score.statistic == "mean":
        return (("Above the median", "number"), ("Impact ratio", "number"))
    return (("Impact ratio", "number"), ("Interval", "number"))


def _unknown(score: GroupScore, room: Room) -> str:
    """How many are of no category, and which categories are rare; what is counted is said."""
    if score.population == "inputs":
        return (
            "Inputs without a value are in no category; all others are. Each category is tested by "
            "itself, however rare it is, and no longer than it takes to compare it."
        )
    groups = score.groups
    if isinstance(score, FewerGroups):
        groups = (*groups, *(replace(each, values={}) for each in score.hidden))
    sizes, whom = [group.samples for group in groups], "those who were tested"
    if is_drawn(score):  # each category about as often, however many people are in it
        sizes = [group.people or 0 for group in groups]
        whom = room.words.whom(score.population)
    all_listed = not any(note.code in NOT_LISTED for note in score.notes)
    text = ""
    if room.rows is not None and all_listed and all(sizes):
        text = f"Of an unknown category: {count(max(room.rows - sum(sizes), 0), 'row')}. "
    each = zip(groups, sizes, strict=True)
    rare = [group for group, size in each if size < RARE * sum(sizes)]
    if not rare:
        return f"{text}No category has fewer than 2 % of {whom}."
    named = "; ".join(room.words.label(g.values) for g in rare[:NAMED])
    more = f" and {len(rare) - NAMED:,} more" if len(rare) > NAMED else ""
    left = "none was left out here"
    if any(group.few for group in groups):
        left = "here those of too few rows to judge have no ratio, nor is any measured by them"
    return (
        f"{text}Fewer than 2 % of {whom}: {named}{more}. Local Law 144 lets an auditor leave such "
        f"categories out of the impact ratios, with a reason (§ 5-301(d)); {left}."
    )


def _row(score: GroupScore, group: Group, ratio: Ratio | None, room: Room) -> tuple[object, ...]:
    return (
        group_name(group.values, room),
        f"{group.samples:,}",
        favourable(score, group),
        rate_text(score, group.rate),
        rate_interval(score, group),
        *(_scoring(score, group) if score.statistic == "mean" else _ratio_cells(ratio)),
    )


def _ratio_cells(ratio: Ratio | None) -> tuple[object, object]:
    if ratio is None:
        return "–", "–"
    return ratio_cell(ratio), ("–" if ratio.few else ends_text(ratio.low, ratio.high, ratio_text))


def _scoring(score: GroupScore, group: Group) -> tuple[str, str]:
    """How often a category is above the median of all, and that by the highest such rate."""
    best = max((each.above_median or 0.0 for each in score.groups), default=0.0)
    if group.above_median is None:
        return "–", "–"
    return percent(group.above_median), f"{group.above_median / best:.2f}" if best else "–"


def favourable(score: GroupScore, group: Group) -> str:
    """How many got the favourable decision; unknown where people weigh unequally."""
    number = group.rate * group.samples
    if score.statistic == "mean" or abs(number - round(number)) > SMALL * max(number, 1.0):
        return "–"
    return f"{round(number):,}"


def _missing(result: Result, scores: Sequence[GroupScore]) -> Iterator[Html]:
    """The tables that protected characteristics call for and this result lacks."""
    inputs = result.schema.get("inputs", {})
    named = inputs.items() if isinstance(inputs, Mapping) else ()
    protected = [n for n, spec in named if isinstance(spec, Mapping) and spec.get("protected")]
    wanted = chain(combinations(protected, 1), combinations(protected, 2))
    measured = {frozenset(each.against) for each in scores}
    missing = [",".join(each) for each in wanted if frozenset(each) not in measured]
    if missing:
        options = [word for each in missing[:12] for word in ("--against", each)]
        yield tag("h3", "Not in this result")
        yield tag(
            "p",
            f"{count(len(missing), 'table')} of protected characteristics and their pairs "
            f"{'is' if len(missing) == 1 else 'are'} missing. To measure:",
        )
        file = (result.source or {}).get("file")
        words = ["themis", "score", *([file] if isinstance(file, str) else [])]
        yield shell([shlex.join([*words, "--measure", "group", *options, "--family"])])
    elif not scores:
        yield tag("p", "This result holds no group scores, so that there are no rates to list.")


PURPOSE = (
    "Items that point 2(g) of Annex IV to Regulation (EU) 2024/1689 (the AI Act) asks of technical "
    "documentation about testing. They cover this test only. Whether the documentation as a whole "
    "is complete is for the provider to judge."
)
RULES = {
    Stopping.CERTIFIED: "Inputs were drawn until the interval was as narrow as asked. The "
    "intervals hold at the stated confidence although the number of tests was chosen while "
    "looking.",
    Stopping.PAPER: "The stopping rule of the 2017 paper was used. That its intervals hold is not "
    "certified.",
}
EXACT = "Where it is called exact, every input of the domain was run."
SIGNED = (
    "Tested by (name, role)",
    "Date and signature",
    "Responsible person (name, role)",
    "Date and signature",
)
IMPACT_RATIO = "The impact ratio is the lowest rate of favourable decisions divided by the highest."


def log_section(result: Result, room: Room) -> Html:
    """The items of the test log, in the order in which the regulation names them."""
    return section(
        "log",
        "C. Test log",
        tag("p", PURPOSE),
        block("Testing procedure", *_procedure(result)),
        block("Test data and their main characteristics", *_data(result, room)),
        block("Metrics", *_metrics(result)),
        block("Potentially discriminatory impacts", *_impacts(result, room)),
        block("Failures and reservations", *_reservations(result, room)),
        block("Log", *_log(result)),
        block("Signatures", tag("div", *(tag("div", each) for each in SIGNED), class_="sign")),
    )


def _procedure(result: Result) -> Iterator[Html]:
    yield tag(
        "p",
        "The subject was run on inputs, and again on the same inputs with nothing but the "
        "characteristics in question changed. Its decisions were compared. The subject’s code was "
        "not read.",
    )
    words = [RULES[rule] for rule in RULES if rule in result.rules]
    if result.stopped in CUT_OFF and Stopping.CERTIFIED in result.rules:
        words.append(f"This run ended before that: {how_it_ended(result.stopped)}.")
    if any(each.method == "exact" and each.conclusive for each in result.scores):
        words.append(EXACT)
    if words:
        yield tag("p", " ".join(words))
    sure = checks_guarantee(result) if result.checks else how_sure_together(result, remedy="")
    if sure is not None:
        yield tag("p", sure)


def _data(result: Result, room: Room) -> Iterator[Html]:
    names = {
        "inputs": "generated from the schema, all equally likely unless weights are given",
        "profile": "the rows of the profile, or drawn from them",
        "rows": "rows that were given",
    }
    yield tag("p", "Inputs: ", "; ".join(names[each] for each in sorted(result.populations)), ".")
    yield inputs_table(result, room)


def _metrics(result: Result) -> Iterator[Html]:
    measures = {each.measure for each in result.scores} | {s.measure for s in result.searches}
    yield from (tag("p", meaning) for name, meaning in MEANINGS.items() if name in measures)
    if "group" in measures:
        yield tag("p", IMPACT_RATIO)


def _impacts(result: Result, room: Room) -> Iterator[Html]:
    scores = [each for each in result.scores if each.samples]
    if scores:
        yield table(
            "All scores",
            ("Set", ("Score", "number"), ("Interval", "number"), ("Confidence", "number")),
            (
                (
                    tag("div", tag("b", score_name(each)), about(each, room.words)),
                    point(each),
                    interval(each),
                    f"{percent_sure(each.confidence)} %",
                )
                for each in scores[: room.scores]
            ),
            kind="chart",
            foot=rest(len(scores) - room.scores, *MORE_SCORES),
        )
        yield tag("ul", *(tag("li", score_sentence(each, room), ".") for each in scores[:8]))
    for search in result.searches[: room.searches]:
        sets = cut("; ".join(map(set_text, search.found[: room.sets])), 20 * room.sentence)
        words = search_headline(search, room.words, sets)
        yield tag("p", f"{words}. {set_counts(search)}. ", guarantee(search))
    if result.checks:
        yield table(
            "Limits that were checked",
            ("Check", "Verdict", ("Interval", "number")),
            (
                (value(each.name, room.letters), verdict_words(each), check_interval(each))
                for each in result.checks[: room.checks]
            ),
            kind="chart",
            hidden_caption=False,
        )


def _reservations(result: Result, room: Room) -> Iterator[Html]:
    found = cautions(result)
    if not found:
        yield tag("p", ALL_CLEAR)
        return
    shown = found[: room.cautions]
    items = (
        tag("li", tag("b", f"{each.kind}: "), tag("bdi", cut(each.text, room.sentence)))
        for each in shown
    )
    yield tag("ul", *items)
    yield from left_out(len(found) - len(shown), "reservation")


def _log(result: Result) -> Iterator[Html]:
    yield facts_list(result)
    yield tag("p", "The command:", class_="faint")
    yield shell([cut(command_again(result).line, 8_000)])
    yield tag("p", "The hash is over the result’s JSON. Whoever has the file can compute it:",
              class_="faint")  # fmt: skip
    yield shell([RECIPE])


def render_annex(result: Result) -> str:
    """The annex of a result as one HTML file of its own, of less than 300 KB."""
    words = wording(result)
    return fitting(lambda room: _render(result, replace(room, words=words)))


def _render(result: Result, room: Room) -> str:
    hashed = digest(result)[:12]
    return document(
        f"Themis audit annex {hashed}",
        "Audit annex",
        digest(result),
        _header(result, hashed),
        about_section(result, room),
        tables_section(result, room),
        outcomes_section(result, room),
        log_section(result, room),
        references_section(result, room),
    )


def _header(result: Result, hashed: str) -> Iterator[Html]:
    sentence = whole_clauses(verdict(result).sentence)
    subject = (result.subject.get(key, "") for key in ("kind", "fingerprint"))
    subject_text = " ".join(map(visible, filter(None, subject)))
    about = [f"Subject: {subject_text}", started(result), f"result {hashed}"]
    yield tag("h1", "Audit annex")
    yield tag("p", tag("bdi", sentence), ".", class_="behind")
    yield tag("p", " · ".join(filter(None, about)), class_="faint")
