"""Reruns: what a score rests on is run again, before anything is held against a subject.

A random sample of the flips behind a causal score, or of the inputs of the most and the least
favoured group, is run again; `statistics.reruns` has what that proves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from themis.engine.ahead import Again
from themis.engine.sampler import Sampler
from themis.inputs.keys import InputKeys, each_once, numbered
from themis.inputs.streams import AHEAD, RERUNS
from themis.results.model import CausalScore, GroupScore, Score
from themis.results.notes import Note
from themis.results.parts import Reruns, exceeds
from themis.scores.accounts import metered
from themis.scores.explanations.witnesses import FlipPool, Flips, Pairs
from themis.scores.group import KEPT_ROWS, GroupInputs, passes
from themis.scores.neighbours import Example, Neighbours
from themis.settings import Settings
from themis.statistics.reruns import (
    CAUTION,
    RERUNS_SHARE,
    drift_ends,
    exact_reruns,
    explained_by_noise,
    fewest_reruns,
    reruns_for,
)
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import NOT_RUN, Cells
from themis.subjects.readings import Reading

SHARE_LEFT = 0.2  # of a finding that noise may explain without a limit to hold it against
AFTER_NOISE = 4  # times as many pairs are run again once noise was found, …
HOPELESS = 0.4  # … unless so many did not come out the same
INNER_PAIRS, EXTERNAL_PAIRS = 5_000, 100  # run again at most, or asked // 8
SINGLE_PAIRS = 1_000  # the same of functions that are called input by input, or as many as asked
MIXED_CALLS = 7  # for inputs that are run again: one coin for each call rarely agrees in all
TOGETHER_CALLS = 3  # for what several findings rest on
HARMLESS_CALLS = 2  # for what convicts nobody: the lower end is 0
TIMES = 10  # runs of one input that are numbered for other purposes
GROUP_INPUTS, GROUP_MOST = 40, 5_000  # of each extreme group
ENOUGH = 300  # inputs run again where noise was found, or where that costs next to nothing

Finding = Flips | GroupInputs  # what a score rests on


class Found(NamedTuple):
    """What a score rests on, and how often what running it again shows may be wrong."""

    finding: Finding
    score: float
    alpha: float


class _Drift(NamedTuple):
    """How many inputs of a group changed sides, and how far its expected rate may be away."""

    differing: int
    low: float
    high: float


class Along(NamedTuple):
    """Inputs that are to be run again with others, in one call, and the outputs that they had."""

    codes: NDArray[Any]
    before: Cells
    key: bytes  # what the answers are kept under


class Rerunner:
    """Runs findings of one audit again, and knows of which outputs some did not come out the same.

    `names` are those of the subject's outputs, where there are several.
    """

    def __init__(
        self, sampler: Sampler, names: Sequence[str] = (), *, trusted: bool = False
    ) -> None:
        self._sampler, self._runner = sampler, sampler.runner
        self.trusted = trusted  # somebody vouches that the subject is deterministic
        self._names = tuple(names)
        labels = self._runner.labels
        self._readings = [Reading(labels, place) for place in range(max(len(names), 1))]
        self._calls = Neighbours(self._runner, self._readings)
        self._doubted: set[int] = set()  # outputs of which some pair did not come out the same
        self._moved: set[int] = set()  # outputs of which whole calls moved the rates of groups
        self._confirmed: dict[bytes, Cells] = {}  # the answers of what was run again
        self._lasting: dict[object, GroupInputs] = {}  # of scores whose reruns all were the same
        self._example: Example | None = None  # of an answer that did not last
        self._along: list[Along] = []
        self._mixing = sampler.base.generator(AHEAD, 0, 2)

    @property
    def _may_mix(self) -> bool:
        """Whether different things may be run again in one call."""
        return self._runner.saves_calls and not self._runner.traits.external

    @property
    def neighbours(self) -> bool:
        """Whether answers depend on the other inputs of a call, and not on chance."""
        return self._calls.found

    def reserve(self, settings: Settings) -> int:
        """How many executions to keep back for running findings again, of a limited budget."""
        limited = settings.max_executions is not None or settings.max_seconds is not None
        if self.trusted or not limited or not settings.looks_for_noise:
            return 0
        alpha = RERUNS_SHARE * (1.0 - settings.confidence) / 2
        wanted, least = 2 * reruns_for(SHARE_LEFT, alpha), 2 * fewest_reruns(alpha)
        if settings.max_executions is None:
            return wanted
        budget = settings.max_executions // self._runner.runs
        return min(wanted, max(least, budget // 4), budget // 2)

    def confirm(self, score: Score, settings: Settings, limit: float | None = None) -> Score:
        """The score with what running again shows of what it rests on.

        Pairs of a causal score are a random sample of its flips; of a group score, inputs of the
        most and the least favoured group are run again. How many is planned before the first: as
        many as a verdict on `limit` needs if all come out the same, within bounds.
        """
        try:
            return metered(self._runner, lambda: self._confirm(score, settings, limit))
        finally:
            self._along = []

    def _confirm(self, score: Score, settings: Settings, limit: float | None) -> Score:
        finding, self._runner.finding = self._runner.finding, None
        if self.trusted:
            return replace(score, reruns=Reruns(0, 0, 0.0, trusted=True))
        if not settings.looks_for_noise or score.score <= 0 or not score.samples:
            return score
        reruns = None
        with self._runner.spending_reserve():
            shown = None
            if isinstance(finding, FlipPool):
                shown, finding = finding.shown, finding.flips
                if shown is not None and isinstance(score, CausalScore) and self._may_mix:
                    codes, _ = self._each_shown([score], shown)
                    unknown = np.full(len(codes), NOT_RUN)
                    self._along.append(Along(codes, unknown, _key(codes, finding.reading)))
            if isinstance(finding, Flips | GroupInputs):
                alpha = RERUNS_SHARE * (1.0 - settings.confidence)
                reruns = self.rerun(finding, score.score, score.low, alpha, limit)
                if isinstance(score, GroupScore) and reruns and not reruns.differing:
                    self._keep_lasting(score, finding)
            self._along = []
            if isinstance(score, CausalScore):
                with suppress(BudgetEndedError):
                    [score] = self.shown_again([score], shown)
        return replace(score, reruns=reruns)

    def rerun(
        self, finding: Finding, score: float, low: float, alpha: float, limit: float | None = None
    ) -> Reruns | None:
        """Run what a score rests on again; None where the budget does not allow for enough.

        With probability at least 1 − alpha, noise explains no more of the score than it says.
        """
        if self.trusted:
            return Reruns(0, 0, 0.0, trusted=True)
        with suppress(BudgetEndedError):
            if isinstance(finding, GroupInputs):
                return self._rerun_groups(finding, low, alpha, limit)
            planned = self._planned(finding, score, low, alpha, limit)
            if planned is not None:
                calls = MIXED_CALLS if low > 0 else HARMLESS_CALLS
                return self._rerun_flips(finding, score, alpha, planned, calls)
        return None

    def rerun_together(self, findings: Sequence[Found]) -> list[Reruns | None]:
        """The same for several findings; flips are run again in a few calls."""
        if not self.trusted and self._may_mix:
            with suppress(BudgetEndedError):
                self._run_again_together(findings)
        return [self.rerun(each.finding, each.score, each.score, each.alpha) for each in findings]

    def _run_again_together(self, findings: Sequence[Found]) -> None:
        """Run what several findings rest on again; each input once for all that it is part of.

        They share their calls, but each has its inputs in several.
        """
        parts = []
        for flips, score, alpha in findings:
            if isinstance(flips, Flips) and (planned := self._planned(flips, score, score, alpha)):
                codes, before = self._chosen(flips, planned, first=True)[0].inputs
                if len(list(each_once(codes))) == 1:
                    parts.append((flips.reading, codes, before))
        if len(parts) < 2:
            return
        every = np.concatenate([codes for _, codes, _ in parts])
        first, numbers = numbered(InputKeys.among(every).of(every))
        order = self._sampler.base.generator(RERUNS, 5).permutation(first)
        calls = np.array_split(order, min(len(parts), TOGETHER_CALLS))
        runs = [Again(every[call], 1 + TIMES * number) for number, call in enumerate(calls)]
        cells = np.empty(len(every), dtype=self._runner.labels.dtype)
        for call, answer in zip(calls, self._runner.repeat_each(runs, self._mixing), strict=True):
            cells[call] = answer
        cells, end = cells[first][numbers], 0
        for reading, codes, before in parts:
            start, end = end, end + len(codes)
            after = cells[start:end]
            self._confirmed[_key(codes, reading)] = after
            self._keep_example(codes, before, after, reading)

    def _planned(
        self, flips: Flips, score: float, low: float, alpha: float, limit: float | None = None
    ) -> int | None:
        """How many flips to run again until noise explains at most a share of them."""
        if not len(flips.pairs):
            return None
        share = SHARE_LEFT if low > 0 else 1.0  # without a finding, enough to notice pure noise
        if limit is not None and exceeds(low, limit):
            share = min(share, CAUTION * (low - limit) / score)
        planned = self._affordable(reruns_for(share, alpha / 2), len(flips.pairs))
        return None if planned < fewest_reruns(alpha / 2) else planned

    def _rerun_flips(
        self, flips: Flips, score: float, alpha: float, planned: int, calls: int
    ) -> Reruns:
        """Run so many flips again, in so many calls where few are to be made.

        If some flip does not come out the same, more are run, to know how many are left.
        """
        made, differing = self._rerun_pairs(flips, planned, calls, first=True)
        if differing:
            self._doubted.add(flips.reading.place)
            more = self._affordable(max(AFTER_NOISE * planned, ENOUGH), len(flips.pairs))
            if more > planned and differing < HOPELESS * made:
                made, differing = self._rerun_pairs(flips, more, calls, first=False)
        return Reruns(made, differing, score * explained_by_noise(differing, made, alpha / 2))

    def _rerun_pairs(self, flips: Flips, count: int, calls: int, *, first: bool) -> tuple[int, int]:
        """Run so many pairs again, mixed: how many got answers, and how many of them others.

        A pair counts as noise when one of the two is as far from what it was before as half the
        way to the other; a failure is another matter. Where pairs are few each is run as often as
        the others.
        """
        pairs, rng = self._chosen(flips, count, first=first)
        codes, outputs = pairs.inputs
        before, reading = pairs.outputs, flips.reading
        after = self._run_again(codes, outputs, rng, reading, first=first, calls=calls)
        after = after.reshape(count, 2)
        apart = reading.distances(before[:, 0], before[:, 1])
        moved = np.maximum(*(reading.distances(before[:, i], after[:, i]) for i in (0, 1)))
        known = (after >= 0).all(axis=1)
        return int(known.sum()), int(((2 * moved >= apart) & known).sum())

    def _chosen(
        self, flips: Flips, count: int, *, first: bool
    ) -> tuple[Pairs, np.random.Generator]:
        """So many random pairs, and what else is to be drawn for them."""
        rng = self._sampler.base.generator(RERUNS, 0 if first else 1)
        chosen = passes(rng, flips.weights / flips.weights.sum(), count)
        return flips.pairs.take(chosen), rng

    def _run_again(
        self, codes: NDArray[Any], before: Cells, rng: np.random.Generator, reading: Reading,
        *, first: bool = True, random: bool = False, calls: int = MIXED_CALLS, spread: bool = False,
    ) -> Cells:  # fmt: skip
        """Run inputs again, in random order among each other; once, however often one asks.

        `random` says that the inputs were not chosen by their outputs; `spread`, that they are run
        in several calls, as each may have something of its own. Where few calls are to be made,
        what is there several times is run in no more than `calls`.
        """
        key = _key(codes, reading, first=first)
        if key not in self._confirmed:
            own, along, self._along = len(codes), self._along, []
            codes = np.concatenate([codes, *(each.codes for each in along)])
            before = np.concatenate([before, *(each.before for each in along)])
            cells = np.empty(len(codes), dtype=self._runner.labels.dtype)
            parts = self._calls_of(codes, own, calls, spread=spread)
            orders = [rng.permutation(places) for places in parts]
            runs = [
                Again(codes[order], (1 if first else 2) + TIMES * number)
                for number, order in enumerate(orders)
            ]
            answers = zip(orders, self._runner.repeat_each(runs, self._mixing), strict=True)
            for number, (order, answer) in enumerate(answers):
                cells[order] = answer
                if random and not number:
                    self._calls.doubt(codes[order], cells[order], before[order], reading)
            self._confirmed[key], end = cells[:own], own
            for each in along:
                start, end = end, end + len(each.codes)
                self._confirmed[each.key] = cells[start:end]
            self._keep_example(codes, before, cells, reading)
        return reading.cells(self._confirmed[key])

    def _calls_of(
        self, codes: NDArray[Any], own: int, calls: int, *, spread: bool
    ) -> list[NDArray[np.int64]]:
        """The places of inputs, by call: each at most once in it, unless calls are to be few.

        Those behind the first `own` are spread over the same calls.
        """
        parts = list(each_once(codes[:own]))
        for number, part in enumerate(each_once(codes[own:])):
            call = number if number < len(parts) else 0
            parts[call] = np.concatenate([parts[call], own + part])
        if self._may_mix and len(parts) > calls:
            parts = [np.concatenate(parts[call::calls]) for call in range(calls)]
        if spread:
            parts = [part[call::calls] for part in parts for call in range(calls)]
        return [part for part in parts if len(part)]

    def _keep_example(
        self, codes: NDArray[Any], before: Cells, cells: Cells, reading: Reading
    ) -> None:
        after = reading.cells(cells)
        self._example = self._example or Example.first(codes, before, after, reading)

    def examples(self) -> Iterator[Note]:
        """One input that got two different outputs, where answers are not consistent."""
        example, how = self._example, "again"
        if self.neighbours:
            example, how = self._calls.example, "neighbours"
        if example is not None:
            reading = example.reading
            yield Note.of(
                "inconsistent-example",
                how=how,
                input=self._runner.schema.decode_row(example.codes),
                outputs=[reading.labels.labels[number] for number in example.answers],
                about=self._names[reading.place] if len(self._names) > 1 else None,
            )

    def shown_again(
        self, scores: Sequence[CausalScore], shown: NDArray[Any] | None = None
    ) -> list[CausalScore]:
        """Scores of one output without shown pairs that do not come out the same when run again.

        `shown` are their inputs, one after the other, as far as they are known; a pair that shows
        what is only joint may stand before them.
        """
        pairs = [pair for score in scores for pair in score.witnesses]
        if self.trusted or not pairs or not self._has_room(2 * len(pairs)):
            return list(scores)
        place = self._place(scores[0].output)
        reading = self._readings[place]
        codes, numbers = self._each_shown(scores, shown)
        before = reading.numbers_of([each for pair in pairs for each in pair.outputs])
        first = np.full(len(codes), NOT_RUN)
        first[numbers] = before
        rng = self._sampler.base.generator(RERUNS, 2)
        after = self._run_again(codes, first, rng, reading)[numbers]
        moved = reading.distances(before, after).reshape(-1, 2).max(axis=1)
        same = 2 * moved < reading.distances(before[::2], before[1::2])
        if not same.all():
            self._doubted.add(place)
        kept = iter(same.tolist())
        return [
            replace(each, witnesses=tuple(pair for pair in each.witnesses if next(kept)))
            for each in scores
        ]

    def _each_shown(
        self, scores: Sequence[CausalScore], shown: NDArray[Any] | None
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The inputs of all shown pairs, and which of them each one is: if calls are few, once."""
        rows = [row for score in scores for pair in score.witnesses for row in pair.inputs]
        codes = shown
        if codes is None or len(codes) != len(rows) or any(each.joint for each in scores):
            codes = self._runner.schema.encode_rows(rows)
        if not self._may_mix:
            return codes, np.arange(len(codes))
        first, numbers = numbered(InputKeys.among(codes).of(codes))
        return codes[first], numbers

    def _rerun_groups(
        self, finding: GroupInputs, low: float, alpha: float, limit: float | None
    ) -> Reruns | None:
        """What running inputs of the extreme groups again shows.

        Noise that each execution has of its own is averaged in the rates. What all inputs of a call
        have in common is not: where a subject takes whole tables and some inputs did not come out
        the same, only what is seen again counts, with both groups in one call.
        """
        if not self._runner.traits.vectorised or finding.kept == 1.0:
            return self._rerun_members(finding, low, alpha, limit, finding.kept)
        found = self._rerun_members(finding, low, alpha / 2, limit, finding.kept)
        if found is None or not found.differing:
            return found
        again = self._rerun_members(finding, low, alpha / 2, limit, 1.0)
        return again and replace(again, explains=max(again.explains, found.explains))

    def _keep_lasting(self, score: GroupScore, finding: Finding) -> None:
        if (
            isinstance(finding, GroupInputs)
            and finding.kept < 1.0
            and self._runner.traits.vectorised
        ):
            self._lasting[of_groups(score)] = finding

    def _rerun_members(
        self, finding: GroupInputs, low: float, alpha: float, limit: float | None, kept: float
    ) -> Reruns | None:
        shared = self._runner.traits.vectorised
        wanted, above = max(fewest_reruns(alpha), GROUP_INPUTS), low - (limit or 0.0)
        if kept > finding.kept:  # noise was found: now as many as there are
            wanted = KEPT_ROWS
        elif kept:
            wanted = max(wanted, exact_reruns(above, alpha, kept))
        elif shared and above > 0:  # noise that makes the finding would show with 1 − alpha
            wanted = max(wanted, math.ceil(math.log(1 / alpha) / above))
        most = KEPT_ROWS if shared and finding.kept < 1.0 else GROUP_MOST  # hardly any twice
        count = self._affordable(min(wanted, most), GROUP_MOST)
        if count < fewest_reruns(alpha):
            return None
        groups = [
            self._members(finding, group, count, number)
            for number, group in enumerate((finding.best, finding.worst))
        ]
        if shared or self._may_mix:
            codes, before, _ = groups[1]
            self._along.append(Along(codes, before, _key(codes, finding.reading)))
        doubts = kept == finding.kept  # once is enough
        best = self._drift(finding, *groups[0], alpha / 2, doubts=doubts)
        self._along = []
        worst = self._drift(finding, *groups[1], alpha / 2, doubts=doubts)
        if best.differing or worst.differing:
            self._doubted.add(finding.reading.place)
        if shared and worst.low > best.high:  # in one call they are nearer than they were
            self._moved.add(finding.reading.place)
        unseen = kept * max(0.0, worst.high - best.low)
        proven = max(0.0, -best.high) + max(0.0, worst.low)  # reruns contradict what was seen
        return Reruns(2 * count, best.differing + worst.differing, max(unseen, proven))

    def _members(
        self, finding: GroupInputs, group: int, count: int, number: int
    ) -> tuple[NDArray[Any], Cells, np.random.Generator]:
        """Random inputs of a group, with the outputs that they had."""
        rng = self._sampler.base.generator(RERUNS, 3 + number)
        return *finding.draw(group, count, rng), rng

    def _drift(
        self,
        finding: GroupInputs,
        codes: NDArray[Any],
        before: Cells,
        rng: np.random.Generator,
        alpha: float,
        *,
        doubts: bool,
    ) -> _Drift:
        """How far a group's expected rate may be from the one that was seen in these inputs."""
        reading = finding.reading
        spread = not doubts and self._may_mix
        after = self._run_again(codes, before, rng, reading, random=doubts, spread=spread)
        tolerances = rng.random(len(codes)) if reading.statistic == "mean" else None
        was, now = (reading.favourable_ends(cells, tolerances)[0] for cells in (before, after))
        known = (before >= 0) & (after >= 0)
        fewer, more = int((was & ~now & known).sum()), int((now & ~was & known).sum())
        return _Drift(fewer + more, *drift_ends(fewer, more, max(int(known.sum()), 1), alpha))

    def _affordable(self, wanted: int, pairs: int) -> int:
        """How many of the wanted reruns (of two inputs each) may be made, as far as is foreseen."""
        runner = self._runner
        if not pairs or runner.out_of_time:
            return 0
        most = INNER_PAIRS
        if runner.traits.external:
            most = max(EXTERNAL_PAIRS, runner.asked // 8)
        elif not runner.traits.vectorised:  # each is an execution: no more than the finding took
            most = min(most, max(SINGLE_PAIRS, runner.asked))
        left = runner.executions_left
        if runner.seconds_for_more and not math.isinf(runner.seconds_left):
            each = runner.runs * runner.seconds_for_more
            left = min(left, runner.seconds_left / max(each, 1e-9))
        return int(min(wanted, most, left // 2))

    def _place(self, output: str | None) -> int:
        return self._names.index(output) if output in self._names else 0

    def _has_room(self, executions: int) -> bool:
        return self._runner.executions_left >= executions and not self._runner.out_of_time


def of_groups(score: GroupScore) -> object:
    """What tells group scores apart."""
    return score.against, score.output, score.statistic, score.population


def _key(codes: NDArray[Any], reading: Reading, *, first: bool = True) -> bytes:
    """What inputs are known by that were run again, for the first time or once more."""
    return bytes([reading.place, first]) + codes.tobytes()
