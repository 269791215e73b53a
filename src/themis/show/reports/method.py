"""How a result was measured and how to make it again: method, versions, command, and its hash."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from themis.results.model import Result, Score
from themis.results.notes import Ending
from themis.results.withheld import whole_of
from themis.settings import Stopping
from themis.show.blocks import Block, Commands, Statement, Table
from themis.show.html import Html
from themis.show.reports.document import Space, drawn, rest, section
from themis.show.words.explanations import probe_sentence
from themis.show.words.notes import how_it_ended
from themis.show.words.scores import (
    account_text,
    outputs_text,
    precision_chosen,
    rows_used,
)
from themis.show.words.searches import checks_guarantee
from themis.show.words.values import (
    confidence_text,
    cut_name,
    cut_text,
    percent_sure,
    size,
    tokens_used,
    took,
    visible,
)


def command_again(result: Result) -> str | None:
    """The command that makes a result again; None of one that was made in Python."""
    given = (result.source or {}).get("command")
    if isinstance(given, str):
        return given or None
    return shlex.join(map(str, given)) if isinstance(given, Sequence) and given else None


def command_blocks(result: Result) -> Iterator[Block]:
    """The command, or how it is said in Python, and whether it gives the same result."""
    command = command_again(result)
    if command is not None:
        yield Commands([command])
    how = f"It was made in Python, with the seed {result.seed}. " if command is None else ""
    yield Statement(f"{how}{same_again(result)}")


def method_section(result: Result, space: Space) -> Html:
    """What stands behind the numbers."""
    blocks = [*_sureness(result), facts_table(result), *inputs_blocks(result, space)]  # fmt: skip
    return section("method", "Method and confidence", drawn(blocks), fold=True)


def again_section(result: Result, _: Space) -> Html:
    """The command that makes the result again."""
    return section("again", "Run it again", drawn(command_blocks(result)), fold=True)


CUT_OFF = (Ending.BUDGET, Ending.INTERRUPTED, Ending.FAILED)


def same_again(result: Result) -> str:
    """Whether the command gives the same result again."""
    if result.stopped in CUT_OFF:
        return "This run ended early; another one may end elsewhere, and give another result."
    if result.noise is not None and result.noise.differing:
        return "The subject answers at random, so another run gives different answers."
    if result.has_excess:
        return "What is answered at random may be answered differently by another run."
    return "The same seed gives the same result as long as the subject is the same."


def _sureness(result: Result) -> Iterator[Block]:
    sampled = [each for each in result.scores if each.method == "sampled" and each.samples]
    certified = [each for each in sampled if each.stopping is Stopping.CERTIFIED]
    if certified:
        confidence = min(each.confidence for each in certified)
        always = "" if result.has_excess else ", if the subject always decides the same"
        yield Statement(
            f"{confidence_text(confidence)} is about the procedure: of 100 runs with other seeds, "
            f"in at least {percent_sure(confidence)} the interval contains the true score{always}. "
            f"It is that of {_of_whom(certified[0])}."
        )
    if any(each.method == "exact" and each.conclusive for each in result.scores):
        yield Statement(
            "Exact means: every input was run, and the score is what its definition says."
        )
    if (text := precision_chosen(result)) is not None:
        yield Statement(text)
    if result.checks:
        yield Statement(checks_guarantee(result))
    if result.noise is not None and not result.noise.differing:
        yield Statement(probe_sentence(result.noise))


def _of_whom(score: Score) -> str:
    """What a confidence is about."""
    if score.family in (None, 1):
        return "each score on its own"
    return (
        f"all {score.family:,} together: 1 − confidence was divided among them before the first "
        "input was run"
    )


def facts(result: Result) -> Iterator[tuple[str, str]]:
    """Where a result comes from: the subject, the run, the versions, the hash."""
    timing, source = result.timing, result.source or {}
    versions = timing.get("versions")
    known = {
        "Subject": visible(result.subject.get("kind", "unknown")),
        "Fingerprint": result.subject.get("fingerprint"),
        "Started": started(result),
        "Took": took(timing) if "seconds" in timing else None,
        "Ran": timing.get("executor"),
        "Executions": account_text(result),
        "Calls of the subject": f"{timing['calls']:,}" if timing.get("calls") else None,
        "Tokens": "".join(tokens_used(timing)),
        "Answered from the cache": f"{result.cache_hits:,}" if result.cache_hits else None,
        "Outputs": "; ".join(map(outputs_text, result.outputs)),
        "Seed": str(result.seed),
        "Ended": "done" if result.stopped is Ending.DONE else how_it_ended(result.stopped),
        "Given rows": None if result.data is None else rows_used(result.data),
        "Columns not used": ", ".join(map(visible, (result.data or {}).get("ignored") or ())),
        "Versions": ", ".join(f"{name} {each}" for name, each in versions.items())
        if isinstance(versions, Mapping)
        else None,
        "Machine": timing.get("machine"),
        "File": source.get("file"),
        "SHA-256 of the file": source.get("sha256"),
        "SHA-256 of the result": digest(result),
    }
    yield from ((name, visible(each)) for name, each in known.items() if each)


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


def facts_table(result: Result) -> Table:
    """The facts, one below the other."""
    rows = [(name, cut_name(each, 400)) for name, each in facts(result)]
    return Table("Where the result comes from", ("", ""), rows, shape="plain")


def inputs_blocks(result: Result, space: Space) -> Iterator[Block]:
    """The characteristics and constraints that inputs were made of."""
    inputs = result.schema.get("inputs", {})
    if not isinstance(inputs, Mapping) or not inputs:
        return
    rows = [
        (visible(name), _values(spec), _protected(spec))
        for name, spec in list(inputs.items())[: space.inputs]
    ]
    heads = ("Characteristic", "Values", "Protected")
    foot = rest(len(inputs) - len(rows), "characteristic")
    table = Table("Characteristics of the inputs", heads, rows, foot, "plain")
    constraints = result.schema.get("constraints", {}).items()
    said = [f"{name}: {cut_text(visible(each))}" for name, each in constraints][: space.inputs]
    yield table
    if said:
        yield Commands(said)


def _values(spec: Any) -> str:
    """What a characteristic can be, as in the file."""
    given = spec if isinstance(spec, Mapping) else {"values": spec}
    if isinstance(given.get("values"), list):
        values = given["values"]
        start = "" if len(values) < 8 else f"{size(len(values))} values: "
        text = f"{start}{cut_text(', '.join(map(visible, values)))}"
    else:
        step = f", step {given['step']:g}" if "step" in given else ""
        text = f"{given.get('min')} to {given.get('max')}{step}"
    if given.get("bins"):
        text += f"; bins at {cut_text(', '.join(map(visible, given['bins'])))}"
    weights = given.get("weights") or ()
    return f"{text}; weights {cut_text(', '.join(map(visible, weights)))}" if weights else text


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
    return whole_of(result).sha256
