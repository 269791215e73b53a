"""What does a test log have to hold? Procedure, data, metrics, impacts, log and signatures."""

from __future__ import annotations

from collections.abc import Iterator

from themis.results.model import Result
from themis.show.reports.html import Html, cut, shell, table, tag, value
from themis.show.reports.html_room import Room
from themis.show.reports.html_words import score_name, score_sentence, sentence
from themis.show.reports.method import facts, facts_list, inputs_table
from themis.show.reports.method_again import command_again
from themis.show.reports.method_digest import RECIPE
from themis.show.reports.scores import MEANINGS, about, interval, point
from themis.show.reports.verdict_cautions import cautions
from themis.show.words.searches import guarantee, search_headline, set_counts, set_text
from themis.show.words.searches_display_check_words import check_interval
from themis.show.words.values import count, percent

PURPOSE = (
    "Items that point 2(g) of Annex IV to Regulation (EU) 2024/1689 (the AI Act) asks of technical "
    "documentation about testing. They cover this test only. Whether the documentation as a whole "
    "is complete is for the provider to judge."
)
RULES = {
    "certified": "Inputs were drawn until the interval was as narrow as asked. The intervals hold "
    "at the stated confidence although the number of tests was chosen while looking.",
    "paper": "The stopping rule of the 2017 paper was used. That its intervals hold is not "
    "certified.",
}
EXACT = "Where it is called exact, every input of the domain was run."
IMPACT_RATIO = "The impact ratio is the lowest rate of favourable decisions divided by the highest."


def log_section(result: Result, room: Room, hashed: str) -> Html:
    """The items of the test log, in the order in which the regulation names them."""
    return tag(
        "section",
        tag("h2", "B. Test log", id="log-title"),
        tag("p", PURPOSE),
        *_item("Testing procedure", *_procedure(result)),
        *_item("Test data and their main characteristics", *_data(result, room)),
        *_item("Metrics", *_metrics(result)),
        *_item("Potentially discriminatory impacts", *_impacts(result, room)),
        *_item("Failures and reservations", *_reservations(result, room)),
        *_item("Log", *_log(result, hashed)),
        *_item("Signatures", _signatures()),
        id="log",
        aria_labelledby="log-title",
    )


def _item(title: str, *content: Html) -> Iterator[Html]:
    yield tag("div", tag("h3", title), *content, class_="block")


def _procedure(result: Result) -> Iterator[Html]:
    yield tag(
        "p",
        "The subject was run on inputs, and again on the same inputs with nothing but the "
        "characteristics in question changed. Its decisions were compared. The subject’s code was "
        "not read.",
    )
    rules = {each.stopping for each in result.scores} | {each.stopping for each in result.searches}
    words = [RULES[rule] for rule in RULES if rule in rules]
    if any(each.method == "exact" and each.conclusive for each in result.scores):
        words.append(EXACT)
    if words:
        yield tag("p", " ".join(words))


def _data(result: Result, room: Room) -> Iterator[Html]:
    populations = {each.population for each in result.scores} or {"inputs"}
    names = {
        "inputs": "inputs made up from the schema, all equally likely unless weights are given",
        "profile": "inputs drawn by the operational profile",
        "rows": "rows that were given",
    }
    yield tag("p", "People: ", "; ".join(names[each] for each in sorted(populations)), ".")
    yield inputs_table(result, room)


def _metrics(result: Result) -> Iterator[Html]:
    measures = {each.measure for each in result.scores} | {s.measure for s in result.searches}
    yield from (tag("p", meaning) for name, meaning in MEANINGS.items() if name in measures)
    if "group" in measures:
        yield tag("p", IMPACT_RATIO)


def _impacts(result: Result, room: Room) -> Iterator[Html]:
    scores = [each for each in result.scores if each.samples]
    if scores:
        hidden = len(scores) - room.scores
        yield table(
            "All scores",
            ("Set", ("Score", "number"), ("Interval", "number"), ("Confidence", "number")),
            (
                (
                    tag("div", tag("b", score_name(each)), about(each)),
                    (point(each), "number"),
                    (interval(each), "number"),
                    (percent(each.confidence), "number"),
                )
                for each in scores[: room.scores]
            ),
            kind="chart",
            hidden_caption=True,
            foot=f"{hidden:,} more scores are not shown" if hidden > 0 else None,
        )
        yield tag("ul", *(tag("li", score_sentence(each), ".") for each in scores[:8]))
    for search in result.searches[: room.searches]:
        words = sentence(search_headline(search))
        sets = cut("; ".join(map(set_text, search.found[: room.sets])), 20 * room.sentence)
        yield tag("p", f"{words}{': ' if sets else ''}{sets}. {set_counts(search)}. ",
                  guarantee(search))  # fmt: skip
    if result.checks:
        yield table(
            "Limits that were checked",
            ("Check", ("Verdict", ""), ("Interval", "number")),
            (
                (value(each.name, room.letters), each.verdict, (check_interval(each), "number"))
                for each in result.checks[: room.checks]
            ),
            kind="chart",
        )


def _reservations(result: Result, room: Room) -> Iterator[Html]:
    found = cautions(result)
    if not found:
        yield tag("p", "No execution failed, nothing ended early, and there are no warnings.")
        return
    shown = found[: room.cautions]
    items = (
        tag("li", tag("b", f"{each.kind}: "), tag("bdi", cut(each.text, room.sentence)))
        for each in shown
    )
    yield tag("ul", *items)
    if len(found) > len(shown):
        yield tag("p", f"{count(len(found) - len(shown), 'more reservation')} not shown here")


def _log(result: Result, hashed: str) -> Iterator[Html]:
    yield facts_list(facts(result, hashed))
    yield tag("p", "The command:", class_="faint")
    yield shell([cut(command_again(result).line, 8_000)])
    yield tag("p", "The hash is over the result’s JSON. Whoever has the file can compute it:",
              class_="faint")  # fmt: skip
    yield shell([RECIPE])


def _signatures() -> Html:
    fields = ("Tested by (name, role)", "Date and signature",
              "Responsible person (name, role)", "Date and signature")  # fmt: skip
    return tag("div", *(tag("div", each) for each in fields), class_="sign")
