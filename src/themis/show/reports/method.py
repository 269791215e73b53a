"""How a result was measured and how to make it again: method, versions, command, and its hash."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from themis.results.model import Result, Score, SearchResult
from themis.results.notes import Ending
from themis.results.withheld import whole_of
from themis.settings import Stopping
from themis.show.html import Html, cut, folded, join, shell, table, tag, value
from themis.show.reports.document import Room, rest, score_name, section
from themis.show.words.explanations import probe_sentence
from themis.show.words.notes import how_it_ended
from themis.show.words.scores import account_text, method, rows_used
from themis.show.words.searches import checks_guarantee
from themis.show.words.values import (
    confidence_text,
    count,
    duration,
    percent_sure,
    size,
    visible,
)
from themis.show.words.wording import Wording


@dataclass(frozen=True)
class Command:
    """A line for a shell; `recorded` if it is the one that was given."""

    line: str
    recorded: bool


def command_again(result: Result) -> Command:
    """The command that makes a result again."""
    given = (result.source or {}).get("command")
    if isinstance(given, str) and given:
        return Command(given, recorded=True)
    if isinstance(given, Sequence) and given:
        return Command(shlex.join(map(str, given)), recorded=True)
    return Command(shlex.join(["themis", *_words(result)]), recorded=False)


def _words(result: Result) -> Iterator[str]:
    yield result.command
    file = (result.source or {}).get("file")
    if isinstance(file, str):
        yield file
    if result.searches and not result.checks:
        yield from _search(result, result.searches)
    elif result.command == "score":
        yield from _scores(result.scores)
    elif result.scores and not result.checks:
        yield from _precision(result.scores[0])
    yield from ("--seed", str(result.seed))


def _search(result: Result, searches: Sequence[SearchResult]) -> Iterator[str]:
    first = searches[0]
    yield from ("--threshold", f"{first.threshold:g}", "--measure", _measure(searches))
    inputs = result.schema.get("inputs", {})
    if isinstance(inputs, Mapping) and tuple(inputs) != first.among:
        yield from ("--among", ",".join(first.among))
    if first.max_size < len(first.among):
        yield from ("--max-size", str(first.max_size))
    if first.decide_only:
        yield "--decide-only"
    yield from _precision(first)


def _scores(scores: Sequence[Score]) -> Iterator[str]:
    for names in dict.fromkeys(each.against for each in scores):
        yield from ("--against", ",".join(names))
    if scores:
        yield from ("--measure", _measure(scores), *_precision(scores[0]))


def _measure(asked: Iterable[Score | SearchResult]) -> str:
    measures = {each.measure for each in asked}
    return "both" if len(measures) > 1 else measures.pop()


def _precision(asked: Score | SearchResult) -> Iterator[str]:
    yield from ("--confidence", f"{asked.confidence:.10g}", "--error", f"{asked.error:.10g}")
    if asked.family is not None:
        yield "--family"
    if asked.stopping is not Stopping.CERTIFIED:
        yield from ("--stopping", asked.stopping)


Fact = tuple[str, Any]


def method_section(result: Result, room: Room) -> Html:
    """What stands behind the numbers."""
    return section(
        "method",
        "Method and confidence",
        *_sureness(result),
        facts_list(result),
        *_per_score(result, room),
        inputs_table(result, room),
        fold=True,
    )


def again_section(result: Result, room: Room) -> Html:
    """The command that makes the result again."""
    command = command_again(result)
    note = "This is the command that was given."
    if not command.recorded:
        note = (
            "Put together from the result; run it in the folder of the themis.toml. "
            "A limit on executions or time is not among what a result keeps."
        )
    if result.command == "demo":
        note = "The demo needs no file."
    return section(
        "again",
        "Run it again",
        shell([cut(command.line, 8_000)]),
        tag("p", f"{note} {same_again(result)}"),
        fold=True,
    )


CUT_OFF = (Ending.BUDGET, Ending.INTERRUPTED, Ending.FAILED)


def same_again(result: Result) -> str:
    """Whether the command gives the same result again."""
    if result.stopped in CUT_OFF:
        return "This run ended early; another one may end elsewhere, and give another result."
    if result.noise is not None and result.noise.differing:
        return "The subject does not always decide the same, so that another run gives others."
    return "The same seed gives the same result as long as the subject is the same."


def _sureness(result: Result) -> Iterator[Html]:
    sampled = [each for each in result.scores if each.method == "sampled" and each.samples]
    certified = [each for each in sampled if each.stopping is Stopping.CERTIFIED]
    if certified:
        confidence = min(each.confidence for each in certified)
        yield tag(
            "p",
            f"{confidence_text(confidence)} is about the procedure: of 100 runs with other seeds, "
            f"in at least {percent_sure(confidence)} the interval contains the true score. "
            f"It is that of {_of_whom(certified[0])}.",
        )
    if any(each.method == "exact" and each.conclusive for each in result.scores):
        yield tag("p", "Exact means: every input was run, and the score is what its definition "
                       "says.")  # fmt: skip
    if result.checks:
        yield tag("p", checks_guarantee(result))
    if result.noise is not None and not result.noise.differing:
        yield tag("p", probe_sentence(result.noise), ".")


def _of_whom(score: Score) -> str:
    """What a confidence is about."""
    if score.family in (None, 1):
        return "each score on its own"
    return (
        f"all {score.family:,} together: 1 − confidence was divided among them before the first "
        "input was run"
    )


def facts(result: Result) -> Iterator[Fact]:
    """Where a result comes from: the subject, the run, the versions, the hash."""
    timing = result.timing
    yield "Subject", visible(result.subject.get("kind", "unknown"))
    if result.subject.get("fingerprint"):
        yield "Fingerprint", tag("code", visible(result.subject["fingerprint"]))
    if started(result):
        yield "Started", started(result)
    if "seconds" in timing:
        yield "Took", duration(timing["seconds"])
    if timing.get("executor"):
        yield "Ran", visible(timing["executor"])
    yield "Executions", account_text(result)
    if timing.get("calls"):
        yield "Calls of the subject", f"{timing['calls']:,}"
    if result.cache_hits:
        yield "Answered from the cache", f"{result.cache_hits:,}"
    yield "Seed", str(result.seed)
    yield "Ended", "done" if result.stopped is Ending.DONE else how_it_ended(result.stopped)
    yield from _data(result)
    if isinstance(timing.get("versions"), Mapping):
        yield "Versions", ", ".join(f"{visible(n)} {visible(v)}"
                                    for n, v in timing["versions"].items())  # fmt: skip
    file = (result.source or {}).get("file")
    if file:
        yield "File", tag("code", value(file))
    yield "SHA-256 of the result", tag("code", digest(result))


def _data(result: Result) -> Iterator[Fact]:
    """What rows were given and what became of them."""
    if result.data is not None:
        yield "Given rows", tag("bdi", cut(rows_used(result.data), 400))
        if ignored := result.data.get("ignored"):
            yield "Columns not used", tag("bdi", cut(", ".join(map(visible, ignored)), 400))


def started(result: Result) -> str:
    """When the run began, in UTC as it was written; empty if that is not known."""
    text = result.timing.get("started")
    try:
        return datetime.fromisoformat(str(text)).strftime("%Y-%m-%d %H:%M:%S %Z").strip()
    except ValueError:
        return ""


def started_on(result: Result) -> str:
    """The day of the run: `16 November 2026`."""
    try:
        day = datetime.fromisoformat(str(result.timing.get("started")))
    except ValueError:
        return ""
    return f"{day.day} {day:%B %Y}"


def facts_list(result: Result) -> Html:
    """The facts, one below the other."""
    items = (tag("div", tag("dt", name), tag("dd", each)) for name, each in facts(result))
    return tag("dl", *items, class_="facts")


def _per_score(result: Result, room: Room) -> Iterator[Html]:
    scores = [each for each in result.scores if each.samples][: room.scores]
    title = "Every score: method and cost"
    heads = ("Set", "Measure", "Method", ("Confidence", "number"), ("Error", "number"),
             "Ended", ("Executions", "number"), ("From the cache", "number"))  # fmt: skip
    if scores:
        shown = table(title, heads, (_method_row(each, room.words) for each in scores))
        yield folded(title, tag("div", shown, class_="wide"))


ENDED = {Ending.ERROR_REACHED: "as precise as asked"}  # the others are named well


def _method_row(score: Score, words: Wording) -> tuple[Any, ...]:
    return (
        score_name(score),
        score.measure,
        method(score, words),
        f"{percent_sure(score.confidence)} %",
        f"± {100 * score.error:.4g} %",
        f"{ENDED.get(score.stopped, score.stopped)} ({score.stopping})",
        f"{score.executions:,}",
        f"{score.cache_hits:,}",
    )


def inputs_table(result: Result, room: Room) -> Html:
    """The characteristics and constraints that inputs were made of."""
    inputs = result.schema.get("inputs", {})
    if not isinstance(inputs, Mapping) or not inputs:
        return Html()
    shown = list(inputs.items())[: room.inputs]
    constraints = result.schema.get("constraints", {})
    return folded(
        f"The inputs: {count(len(inputs), 'characteristic')}",
        table(
            "Characteristics of the inputs",
            ("Characteristic", "Values", "Protected"),
            (
                (value(name, room.letters), _values(spec, room), _protected(spec))
                for name, spec in shown
            ),
            foot=rest(len(inputs) - len(shown)),
        ),
        *(
            tag("p", tag("code", value(f"{name}: {each}", room.sentence)))
            for name, each in list(constraints.items())[: room.inputs]
        ),
    )


def _values(spec: Any, room: Room) -> Html:
    """What a characteristic can be, as in the file."""
    given = spec if isinstance(spec, Mapping) else {"values": spec}
    if isinstance(given.get("values"), list):
        values = given["values"]
        text = ", ".join(visible(each) for each in values)
        start = "" if len(values) < 8 else f"{size(len(values))} values: "
        parts = [start, tag("bdi", cut(text, 2 * room.letters))]
    else:
        step = f", step {given['step']:g}" if "step" in given else ""
        parts = [f"{given.get('min')} to {given.get('max')}{step}"]
    if given.get("bins"):
        parts.append(f"; bins at {cut(', '.join(map(visible, given['bins'])), room.letters)}")
    if given.get("weights"):
        parts.append("; weighted")
    return join(parts)


def _protected(spec: Any) -> str:
    return "yes" if isinstance(spec, Mapping) and spec.get("protected") else ""


# The same in plain Python, for whoever has the file and not this program.
RECIPE = (
    'python -c \'import hashlib, json, sys; r = json.load(open(sys.argv[1])); del r["themis"]; '
    'print(hashlib.sha256(json.dumps(r, sort_keys=True, separators=(",", ":")).encode())'
    ".hexdigest())' result.json"
)


def digest(result: Result) -> str:
    """The SHA-256 of a result's JSON with sorted keys; without the version that read it."""
    data = whole_of(result).to_dict()
    del data["themis"]
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
