"""What a reader should know besides the scores, what they cost, and how to see them in a shell."""

from __future__ import annotations

import json
import platform
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy
import numpy as np
import scipy
from numpy.typing import NDArray

from themis._version import __version__
from themis.engine.account import Spent
from themis.engine.runner import Runner
from themis.engine.sampler import Sampler
from themis.inputs.characteristics import Value
from themis.inputs.constraints import Constraint
from themis.inputs.population import Population
from themis.inputs.schema import Schema
from themis.results.model import CausalScore, GroupScore, Score
from themis.results.notes import Note
from themis.results.parts import LISTED_OUTPUTS, Inventory, OutputCount
from themis.scores.privacy import is_shared
from themis.scores.tally import fixed_share
from themis.settings import Stopping
from themis.subjects.base import Prices, Subject, Tokens
from themis.subjects.decisions import cut_text
from themis.subjects.labels import NumberPart
from themis.subjects.readings import Reading

MOSTLY = 0.9  # of the inputs get the same answer: worth a word
NEAR_ZERO = 0.05  # a causal score that is seen to be at most this


def sparse(population: Population) -> Iterator[Note]:
    """Of which characteristics the constraints leave few combinations."""
    for each in population.few_valid:
        yield Note.of("few-combinations", names=each.names, share=each.share)


def odd_outputs(
    runner: Runner, reading: Reading, favourable: Iterable[Value], about: str | None
) -> Iterator[Note]:
    """What is suspicious about the outputs as a whole; the same whatever a cache knew before.

    `about` names the output where there are several.
    """
    labels, failed = reading.labels, runner.failures.total
    yield from undeclared(reading, about)
    if texts := labels.merged_texts():
        yield Note.of("merged-texts", texts=texts, output=reading.details().get("output"))
    if runner.asked - failed < 20 or not labels.labels:  # nothing is odd about so few
        return
    if reading.has_favourable and not labels.favourable.any():
        seen, wanted = list(labels.labels[:5]), list(favourable)
        yield Note.of("no-favourable-output", outputs=seen, favourable=wanted, about=about)
    elif len(labels.labels) == 1:
        # Those made again failed as well, so that the rest has no number.
        number = None if failed else runner.asked
        yield Note.of("same-output", output=labels.labels[0], executions=number, about=about)


def undeclared(reading: Reading, about: str | None) -> Iterator[Note]:
    """What counts as favourable of three outputs or more, where nothing says what each means."""
    labels = reading.labels
    if labels.output.numeric or labels.meanings is not None or reading.graded:
        return
    good = labels.favourable
    # With three outputs or more it is worth a word what they count as.
    if len(good) < 3 or not reading.has_favourable or not good.any() or good.all():
        return
    named = [[labels.labels[place] for place in np.flatnonzero(each)] for each in (good, ~good)]
    yield Note.of(
        "undeclared-outputs",
        favourable=sorted(named[0], key=str)[:5],
        outputs=sorted(named[1], key=str)[:5],
        distinct=len(labels.labels),
        about=about,
    )


def unknown_values(subject: Subject) -> Iterator[Note]:
    """Which values a model takes for unknown, as it was trained on others."""
    for name, values in subject.unseen().items():
        yield Note.of("values-unseen", name=name, values=values[:5], more=len(values) > 5 or None)


def without_effect(subject: Subject, scores: Iterable[Score]) -> Iterator[Note]:
    """Which characteristics changed nothing, if a model may not know how they are spelled."""
    unsure = subject.unsure_of()
    found = {
        each.against[0]: None
        for each in scores
        if isinstance(each, CausalScore) and len(each.against) == 1 and each.samples
        if each.score == 0 and each.against[0] in unsure
    }
    if found:
        yield Note.of("without-effect", names=list(found))


def mostly_same(scores: Iterable[Score]) -> Iterator[Note]:
    """Whether nine tenths of the generated inputs, or more, get the same answer in every group.

    Of given people that is how it is; generated ones may be people who do not exist.
    """
    seen: set[str | None] = set()
    for each in scores:
        if not isinstance(each, GroupScore) or each.population != "inputs":
            continue
        if each.statistic != "rate":
            continue
        rates = [group.rate for group in each.groups]
        same = rates and (min(rates) >= MOSTLY or max(rates) <= 1 - MOSTLY)
        if same and max(rates) > 0 and min(rates) < 1 and each.output not in seen:
            seen.add(each.output)
            tested = [group.samples for group in each.groups]
            yield Note.of(
                "mostly-same",
                low=min(rates),
                high=max(rates),
                fewest=min(tested),
                most=max(tested),
                about=each.output,
            )


def made_by_constraints(scores: Sequence[Score], schema: Schema) -> Iterator[Note]:
    """Which differences between groups may come from constraints, and not from the set itself.

    Where nothing links a set to other characteristics, its groups differ by no more than its causal
    score (Theorem 4.3). So where they surely differ by twice as much or more, the constraints that
    link it do something: they give the groups other people, or forbid what would change decisions.
    Only causal scores near 0 are spoken of.
    """
    bounds = {
        (each.against, each.output): each.high
        for each in scores
        if isinstance(each, CausalScore) and _is_plain(each) and each.score <= NEAR_ZERO
        if each.distance == "exact"
    }
    for each in scores:
        if not isinstance(each, GroupScore) or not _is_plain(each) or each.statistic != "rate":
            continue
        most, links = bounds.get((each.against, each.output)), linking(schema, each.against)
        if most is None or not links or each.low <= 0 or 2 * most > each.low:
            continue
        linked = [name for name in schema.names if any(name in e.variables for e in links)]
        yield Note.of(
            "made-by-constraints",
            against=each.against,
            difference=each.score,
            changed=most,
            constraints={one.name: one.text for one in links},
            linked=[name for name in linked if name not in each.against],
            about=each.output,
        )


def few_counterfactuals(scores: Iterable[Score], sampler: Sampler) -> Iterator[Note]:
    """Of which sets constraints allow no other value to most inputs: they count as unchanged."""
    schema = sampler.population.schema
    causal = (each for each in scores if isinstance(each, CausalScore) and each.samples)
    for against in dict.fromkeys(each.against for each in causal if each.population == "inputs"):
        links = linking(schema, against)
        fixed = fixed_share(sampler, schema.columns_of(against)) if links else 0.0
        if fixed >= 0.5:  # worth a word
            yield Note.of(
                "few-counterfactuals",
                against=against,
                share=fixed,
                constraints={one.name: one.text for one in links},
            )


def _is_plain(score: Score) -> bool:
    """Whether it was measured on generated inputs, with ends that are certain."""
    certain = score.stopping is Stopping.CERTIFIED
    return bool(score.population == "inputs" and score.samples and certain)


def linking(schema: Schema, against: Iterable[str]) -> list[Constraint]:
    """The constraints that link a set to others; none where a characteristic follows another."""
    own = set(against)
    tied = {schema.names[place] for tie in schema.ties for place in (*tie.leaders, tie.follower)}
    if own & tied:
        return []  # inputs are then linked by more than constraints
    reads = {each.name: set(each.variables) for each in schema.constraints}
    return [e for e in schema.constraints if reads[e.name] & own and reads[e.name] - own]


def about_answers(runner: Runner, spent: Spent) -> Iterator[Note]:
    """How many an earlier run had left, and why there are no more.

    A first run may find those that it kept itself.
    """
    recall = runner.recall
    if recall is not None and not recall.began_empty and spent.from_cache:
        covered = runner.subject.covered
        yield Note.of("cache-answered", answers=spent.from_cache, covered=covered)
    if runner.unpaid:
        yield Note.of("service-unpaid", said=runner.unpaid)


def left_out(facts: Mapping[str, Any] | None) -> Iterator[Note]:
    """What each score of given rows says of those that it lacks."""
    yield from (note for note in fit_notes(facts) if note.code == "rows-left-out")


def fit_notes(facts: Mapping[str, Any] | None) -> Iterator[Note]:
    """What a reader should know about rows that were left out."""
    if not facts:
        return
    if facts["dropped"]:
        counts = {name: facts[name] for name in ("file", "rows", "dropped")}
        reasons = [{**each, "examples": each["examples"][:2]} for each in facts["reasons"]]
        yield Note.of("rows-left-out", **counts, reasons=reasons)
    for kept in facts.get("kept", ()):
        if kept.get("between_steps"):
            yield Note.of("values-between-steps", name=kept["name"], rows=kept["rows"])
        else:
            yield Note.of("values-kept", **kept)


USED = ("tokens_in", "tokens_out", "tokens_estimated", "spend")  # by a language model


def timing_of(
    spent: Spent, subject: Subject, started: datetime, seconds: float, notes: Iterable[Note]
) -> dict[str, Any]:
    """What differs from run to run: times, the machine, and what is to be said of them."""
    timing: dict[str, Any] = {
        "started": started.isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "executor": executor_of(subject),
        "versions": versions(),
        "machine": platform.platform(),
        "calls": spent.calls,
        "ahead": max(spent.ahead, 0),
        **dict(zip(USED, _used(spent, subject.prices), strict=True)),
        "notes": list(notes),
    }
    always = ("started", "seconds", "executor", "versions")
    return {name: value for name, value in timing.items() if value or name in always}


def _used(spent: Spent, prices: Prices | None) -> Iterator[float]:
    yield from (spent.tokens_in, spent.tokens_out, spent.tokens_estimated)
    tokens = Tokens(spent.tokens_in, spent.tokens_out)
    yield 0.0 if prices is None else round(prices.cost(tokens), 6)


def executor_of(subject: Subject) -> str:
    """What ran the subject, in words."""
    if subject.ran_elsewhere:
        return subject.traits.executor
    if subject.traits.jobs is not None:
        return f"processes:{subject.traits.jobs}"
    return "requests" if subject.traits.external else "in process"


def versions() -> dict[str, str]:
    """What the numbers were computed with."""
    return {
        "themis": __version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
    }


def with_commands(score: Score, subject: Subject) -> Score:
    """The score; the first pair has the lines that show it in a shell, if there are any.

    So has the first generated one beside people.
    """
    if not isinstance(score, CausalScore):
        return score
    pairs = list(score.witnesses)
    first = {each.generated: place for place, each in reversed(list(enumerate(pairs)))}
    for place in first.values():
        rows = pairs[place].inputs
        lines = tuple(line for row in rows if (line := subject.reproduce(row)) is not None)
        pairs[place] = replace(pairs[place], reproduce=lines)
    return replace(score, witnesses=tuple(pairs))


def inventories(runner: Runner, shared: Collection[Value] | None) -> Iterator[Inventory]:
    """The outputs that were seen, of each declared one; `shared` are those that name nobody."""
    source = runner.labels
    several = len(source.parts) > 1
    for place in range(len(source.parts)):
        reading = Reading(source, place)
        cells = reading.cells(np.flatnonzero(runner.answered))
        times = runner.answered[runner.answered > 0]
        counts = np.bincount(cells, times, len(reading.labels.labels)).astype(np.int64)
        if len(counts):
            name = reading.output.name if several and reading.output is not None else None
            yield _inventory(reading, counts, name, shared)


def _inventory(
    reading: Reading, counts: NDArray[np.int64], name: str | None, shared: Collection[Value] | None
) -> Inventory:
    labels = reading.labels
    listed: list[tuple[Value, OutputCount]] = []
    if not isinstance(labels, NumberPart) or len(counts) <= LISTED_OUTPUTS:
        columns = counts.tolist(), labels.labels, labels.favourable.tolist()
        each = sorted(zip(*columns, strict=True), key=lambda one: (-one[0], _text(one[1])))
        listed = [
            (value, OutputCount(_short(value), count, good if reading.has_favourable else None))
            for count, value, good in each[:LISTED_OUTPUTS]
        ]
    return Inventory(
        answers=int(counts.sum()),
        distinct=len(counts),
        counts=tuple(
            count if shared is None or is_shared(value, shared) else replace(count, rare=True)
            for value, count in listed
        ),
        output=name,
        **(_range_of(labels, counts) if isinstance(labels, NumberPart) else {}),
    )


def _range_of(part: NumberPart, counts: NDArray[np.int64]) -> dict[str, float]:
    """The ends and the mean of numbers, which do not depend on the order in which they came."""
    order = np.argsort(part.values)
    values, times = part.values[order], counts[order]
    mean = {"mean": float(np.average(values, weights=times))} if times.any() else {}
    return {"lowest": float(values[0]), **mean, "highest": float(values[-1])}


def _short(value: Any) -> Value:
    """An output as it is shown; of a long text the start, and a ranking as a text."""
    whole = value if isinstance(value, bool | int | float | str) else _text(value)
    return cut_text(whole, 80) if isinstance(whole, str) else whole


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
