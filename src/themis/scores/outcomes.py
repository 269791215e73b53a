"""Given people beside what is known of them: their outcomes, or numbers, and our outputs.

Rates are of the rows that have what they need: a decision, an outcome, or both. Where weights are
numbers of people there are intervals, which hold if the rows are a random sample: Clopper and
Pearson for each rate, and 1 − confidence divided by the number of rates of all tables together.
Mean errors and calibration are what the rows show, with their weights, and have no interval: no
verdict rests on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, RequestError, suggest
from themis.inputs.characteristics import Value
from themis.inputs.columns import SHARED, spellings
from themis.inputs.people import KnownNumbers, KnownOutcomes
from themis.results.outcomes import (
    RATES,
    ErrorGroup,
    Errors,
    Gap,
    OutcomeGroup,
    Outcomes,
    Rate,
    RateName,
    Tenth,
)
from themis.scores.people import PeopleRun
from themis.scores.privacy import PeopleGroups, shared_outputs
from themis.statistics.intervals import Flags, Floats
from themis.statistics.proportions import Interval, ratio_of, sampled_rate, spread_of
from themis.subjects.labels import NumberPart
from themis.subjects.readings import Reading

Totals = Floats  # of each group


def known_outcomes(
    run: PeopleRun,
    reading: Reading,
    sets: Sequence[tuple[int, ...]],
    favourable: Iterable[Value] | None,
    confidence: float,
) -> tuple[Outcomes, ...]:
    """The rates of the groups of each set, and of the intersections of all of them.

    The people must have been run. Outcomes count as favourable where they are favourable outputs,
    or as `favourable` says. Raises RequestError for outcomes that are no outputs.
    """
    known = run.people.known
    assert known is not None
    tables = [_Counts.of(run, reading, columns) for columns in with_intersection(sets)]
    good = _favourable(run, known, reading, favourable)
    rates = len(RATES) * sum(len(each.groups.labels) for each in tables)
    counted = run.people.are_counted
    alpha = (1.0 - confidence) / rates if counted and rates else None
    return tuple(
        _table(run, reading, each, known, good, alpha, confidence if counted else None)
        for each in tables
    )


def with_intersection(sets: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The sets, and the one of all their characteristics if it is none of them."""
    together = tuple(sorted({column for each in sets for column in each}))
    return list(dict.fromkeys([*sets, together]))


# Which outcomes are favourable ----------------------------------------------------------------
def favourable_mistakes(known: KnownOutcomes, favourable: Iterable[Value]) -> Iterator[Mistake]:
    """Values that are said to be favourable outcomes, and that no row has."""
    for each in favourable:
        if _found(each, known.values) is None:
            problem = f"no row has the outcome {each!r} in {known.label!r}"
            remedy = suggest(str(each), [str(value) for value in known.shared])
            yield Mistake("label-favourable", "label_favourable", problem, remedy)


def check_outcomes(run: PeopleRun, known: KnownOutcomes, reading: Reading) -> None:
    """Raise RequestError for outcomes that are no outputs, as soon as that is clear.

    It is before anything was run, where all possible outputs are known; otherwise once there are
    outputs, and not one of the outcomes is among them or among the favourable ones.
    """
    labels, possible = reading.labels, run.sampler.runner.subject.possible_outputs()
    if isinstance(labels, NumberPart):
        possible = ()
    elif labels.meanings is not None:
        possible = labels.meanings.names
    wrong = [each for each in known.values if _meaning(each, reading, possible or ()) is None]
    unlike = len(wrong) == len(known.values) and len(labels.labels) > 0
    if wrong and (possible is not None or unlike):
        raise RequestError(_no_outputs(wrong, run, known, reading))


def _favourable(
    run: PeopleRun, known: KnownOutcomes, reading: Reading, favourable: Iterable[Value] | None
) -> Flags:
    """For each outcome whether it is a favourable one."""
    if favourable is not None:
        places = [_found(each, known.values) for each in favourable]
        return np.isin(np.arange(len(known.values)), [p for p in places if p is not None])
    found = [_meaning(value, reading) for value in known.values]
    wrong = [value for value, good in zip(known.values, found, strict=True) if good is None]
    if wrong:
        raise RequestError(_no_outputs(wrong, run, known, reading))
    return np.array(found, dtype=bool)


def _meaning(value: Value, reading: Reading, possible: Sequence[Value] = ()) -> bool | None:
    """Whether an outcome is a favourable output, or another one; None: it is none."""
    labels = reading.labels
    if isinstance(labels, NumberPart):
        return None
    if labels.meanings is not None:
        meant = labels.meanings.matching(value)
        if len(meant) == 1:
            return meant[0] in labels.wanted
    for each in spellings(value):
        if each in labels.wanted:
            return True
        seen = each in labels.labels or each in possible
        if seen or (not isinstance(each, str) and _is_other(each, labels.wanted)):
            return False
    return None


def _is_other(value: Value, wanted: Sequence[Value]) -> bool:
    """Whether it is false, or 0, where true, or 1, is favourable."""
    return value == 0 and any(each == 1 for each in wanted if not isinstance(each, str))


def _no_outputs(
    wrong: Sequence[Value], run: PeopleRun, known: KnownOutcomes, reading: Reading
) -> Iterator[Mistake]:
    """What is wrong with outcomes that are no outputs; of few people, neither of them is named."""
    remedy = "say which outcomes are favourable: label_favourable=[…]"
    is_number = isinstance(reading.labels, NumberPart)
    outputs = [] if is_number else _outputs_to_choose(run, reading)
    for value in (each for each in wrong if each in known.shared):
        why = "and the outputs are numbers" if is_number else "which is none of the outputs"
        problem = f"{known.label!r} has the outcome {value!r}, {why}"
        nearest = f", or {suggest(str(value), outputs)}" if outputs else ""
        yield Mistake("label-value", "label", problem, f"{remedy}{nearest}")
    rare = [each for each in wrong if each not in known.shared]
    if rare:
        which = "an outcome" if len(rare) == 1 else f"{len(rare):,} outcomes"
        why = f"{'is' if len(rare) == 1 else 'are'} none of the outputs"
        problem = f"{known.label!r} has {which} of fewer than {SHARED} people that {why}"
        yield Mistake("label-value", "label", problem, remedy)


def _outputs_to_choose(run: PeopleRun, reading: Reading) -> list[str]:
    """The outputs that an outcome may be meant to be, as far as they name nobody."""
    possible, shared = run.sampler.runner.subject.possible_outputs(), shared_outputs(run, reading)
    every = possible or reading.labels.labels
    return list(dict.fromkeys(str(each) for each in every if each in shared))


def _found(value: Value, values: Sequence[Value]) -> int | None:
    """Which of these values it is another way to write of."""
    own = list(spellings(value))
    return next((p for p, v in enumerate(values) if any(s in own for s in spellings(v))), None)


# Counting -------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Counts:
    """The groups of a set, and everybody's decision."""

    groups: PeopleGroups
    decided: Flags
    selected: Flags

    @classmethod
    def of(cls, run: PeopleRun, reading: Reading, columns: tuple[int, ...]) -> _Counts:
        cells = reading.cells(run.answers)
        return cls(PeopleGroups.of(run, columns), cells >= 0, reading.labels.is_favourable(cells))

    def rates(
        self, all_people: NDArray[Any], good: NDArray[Any], bad: NDArray[Any]
    ) -> dict[RateName, tuple[Totals, Totals]]:
        """For each rate how many there are, and of how many; people count as these say."""
        total = self.groups.total
        yes, no = self.selected & self.decided, self.decided & ~self.selected
        right, wrongly = total(good * yes), total(bad * yes)
        positives, negatives = total(good * self.decided), total(bad * self.decided)
        return {
            "selection_rate": (total(all_people * yes), total(all_people * self.decided)),
            "true_positive_rate": (right, positives),
            "false_positive_rate": (wrongly, negatives),
            "precision": (right, right + wrongly),
            "accuracy": (right + total(bad * no), positives + negatives),
        }


def _table(
    run: PeopleRun,
    reading: Reading,
    counts: _Counts,
    known: KnownOutcomes,
    good: Flags,
    alpha: float | None,
    confidence: float | None,
) -> Outcomes:
    own_heads, own_weights = known.heads[run.order], known.weights[run.order]
    heads, labels = np.where(counts.groups.inside, run.heads, 0), counts.groups.labels
    right, wrong = (own_heads[:, each].sum(axis=1) for each in (good, ~good))
    weighed = (own_weights[:, each].sum(axis=1) for each in (good, ~good))
    counted, weights = counts.rates(heads, right, wrong), counts.rates(run.weights, *weighed)
    rates = {name: _rates(counted[name], weights[name], alpha) for name in RATES}
    people, labelled, positives = map(counts.groups.total, (heads, right + wrong, right))
    groups = [
        OutcomeGroup(
            values=labels[place],
            people=int(people[place]),
            labelled=int(labelled[place]),
            positives=int(positives[place]),
            **{name: each[place] for name, each in rates.items()},
        )
        for place in range(len(labels))
    ]
    # Of more groups than a table has, those with the most people.
    listed = sorted(np.argsort(-people, kind="stable")[:200].tolist())
    return Outcomes(
        against=counts.groups.names,
        label=known.label,
        favourable=tuple(v for v, yes in zip(known.values, good, strict=True) if yes),
        unfavourable=tuple(v for v, yes in zip(known.values, good, strict=True) if not yes),
        people=int(heads.sum()),
        unlabelled=int(heads.sum() - labelled.sum()),
        undecided=int(heads[~counts.decided].sum()),
        confidence=confidence,
        groups=tuple(groups[place] for place in listed),
        groups_total=len(groups),
        gaps=tuple(_gaps(groups)),
        output=reading.details().get("output"),
        rare=tuple(_secret(run, reading, known, good)),
    )


def _secret(run: PeopleRun, reading: Reading, known: KnownOutcomes, good: Flags) -> Iterator[Value]:
    """Outcomes of fewer than SHARED people that nothing else names.

    The file names the favourable ones and what outputs mean, and so do outputs that many get.
    """
    shared = shared_outputs(run, reading)
    for value, rare, yes in zip(known.values, known.is_rare, good, strict=True):
        named = yes or _is_listed(value, reading) or not shared.isdisjoint(spellings(value))
        if rare and not named:
            yield value


def _is_listed(value: Value, reading: Reading) -> bool:
    """Whether it is one of the outputs that the file says how to tell."""
    labels = reading.labels
    return labels.meanings is not None and len(labels.meanings.matching(value)) == 1


def _rates(
    counted: tuple[Totals, Totals], weighed: tuple[Totals, Totals], alpha: float | None
) -> list[Rate]:
    result = []
    for count, of, weight, total in zip(*counted, *weighed, strict=True):
        if not total:
            result.append(Rate(None, 0, int(of)))
            continue
        ends = None if alpha is None else sampled_rate(count, of, alpha)
        low, high = (None, None) if ends is None else (ends.low, ends.high)
        result.append(Rate(float(weight / total), int(count), int(of), low, high))
    return result


# Groups beside each other -----------------------------------------------------------------------
def _gaps(groups: Sequence[OutcomeGroup]) -> Iterator[Gap]:
    gaps = {}
    for rate, name in RATES.items():
        all_rates = [(each.values, getattr(each, rate)) for each in groups]
        known = [(values, own) for values, own in all_rates if own.rate is not None]
        gaps[rate] = _gap(name, known)
        yield gaps[rate]
    yield _odds(gaps["true_positive_rate"], gaps["false_positive_rate"])


def _gap(name: Any, known: Sequence[tuple[dict[str, Value], Rate]]) -> Gap:
    if len(known) < 2:
        return Gap(name, None, groups=len(known), why="one-group")
    rates = [_interval(rate) for _, rate in known]
    points = [each.score for each in rates]
    spread, ratio = spread_of(rates), ratio_of(rates)
    sampled = known[0][1].low is not None
    return Gap(
        name,
        spread.score,
        spread.low if sampled else None,
        spread.high if sampled else None,
        ratio.score if ratio else None,
        ratio.low if ratio and sampled else None,
        ratio.high if ratio and sampled else None,
        lowest=known[points.index(min(points))][0],
        highest=known[points.index(max(points))][0],
        groups=len(known),
        why=None if ratio else "all-zero",
    )


def _interval(rate: Rate) -> Interval:
    assert rate.rate is not None
    low, high = (rate.rate if end is None else end for end in (rate.low, rate.high))
    return Interval(rate.rate, low, high)


def _odds(first: Gap, second: Gap) -> Gap:
    """The larger of two differences, and the smaller of their ratios."""
    groups = min(first.groups, second.groups)
    if first.difference is None or second.difference is None:
        return Gap("equalized_odds", None, groups=groups, why="one-group")
    return Gap(
        "equalized_odds",
        max(first.difference, second.difference),
        _both(max, first.low, second.low),
        _both(max, first.high, second.high),
        _both(min, first.ratio, second.ratio),
        _both(min, first.ratio_low, second.ratio_low),
        _both(min, first.ratio_high, second.ratio_high),
        groups=groups,
        why=first.why or second.why,
    )


def _both(pick: Any, first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else float(pick(first, second))


# Numbers ----------------------------------------------------------------------------------------
TENTHS = 10


def known_errors(
    run: PeopleRun, numbers: KnownNumbers, reading: Reading, sets: Sequence[tuple[int, ...]]
) -> Iterator[Errors]:
    """The errors of the groups of each set, and of their intersections; all people were run.

    Rows without a known number or without an output are left out.
    """
    labels = reading.labels
    assert isinstance(labels, NumberPart)
    place = np.empty(len(run.order), dtype=np.int64)
    place[run.order] = np.arange(len(run.order))
    person = place[numbers.person]  # of each row, as they were run
    cells = reading.cells(run.answers)[person]
    there = cells >= 0
    person, known, weights = person[there], numbers.values[there], numbers.weights[there]
    output = labels.values[cells[there]]
    tenth = _tenths(output, weights)
    for columns in with_intersection(sets):
        groups = PeopleGroups.of(run, columns)
        own = np.full(len(run.order), -1)
        own[groups.inside] = groups.own
        members = [np.flatnonzero(own[person] == group) for group in range(len(groups.labels))]
        rows = [
            _group(values, output[each], known[each], weights[each], tenth[each])
            for values, each in zip(groups.labels, members, strict=True)
        ]
        listed = sorted(rows, key=lambda each: -each.people)[:200]
        yield Errors(
            against=groups.names,
            label=numbers.label,
            people=sum(each.people for each in rows),
            groups=tuple(each for each in rows if each in listed),
            groups_total=len(rows),
            output=reading.details().get("output"),
        )


def _tenths(output: Floats, weights: Floats) -> NDArray[np.int64]:
    """The tenth of all outputs, by weight, that each is in; equal ones are in the same."""
    own = np.unique(output, return_inverse=True)[1]
    reached = np.cumsum(np.bincount(own, weights))
    middle = reached - np.bincount(own, weights) / 2
    return np.minimum((TENTHS * middle / reached[-1:]).astype(np.int64), TENTHS - 1)[own]


def _group(
    values: dict[str, Value],
    output: Floats,
    known: Floats,
    weights: Floats,
    tenth: NDArray[np.int64],
) -> ErrorGroup:
    parts = (np.flatnonzero(tenth == number) for number in range(TENTHS))
    return ErrorGroup(
        values=values,
        people=len(output),
        mean_error=_mean(output - known, weights),
        mean_absolute_error=_mean(np.abs(output - known), weights),
        tenths=tuple(
            Tenth(len(p), _mean(output[p], weights[p]), _mean(known[p], weights[p])) for p in parts
        ),
    )


def _mean(figures: Floats, weights: Floats) -> float | None:
    return float(np.average(figures, weights=weights)) if len(figures) else None
