"""Reruns: what a score rests on is run again, before anything is held against a subject.

A random sample of the flips behind a causal score, or of the inputs of the most and the least
favoured group, is run again; `statistics.reruns` has what that proves. Answers may also depend on
their neighbours, the other inputs of a call.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from themis.engine.runner import Runner
from themis.engine.sampler import Sampler
from themis.inputs.keys import InputKeys, each_once, first_places, numbered
from themis.inputs.streams import RERUNS
from themis.results.model import CausalScore, GroupScore, Score
from themis.results.notes import Note
from themis.results.parts import Reruns, exceeds
from themis.scores.explanations.witnesses import FlipPool
from themis.scores.group import KEPT_ROWS
from themis.scores.question import GroupInputs, Scored, metered, passes
from themis.settings import Settings
from themis.statistics.intervals import Flags
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

CALLS = (*(1,) * 24, *(8,) * 6)  # sizes of calls that show whether answers depend on the others
FEWEST_NEIGHBOURS = 3  # inputs whose answers changed with the call, and not when it was made again
SHARE_LEFT = 0.2  # of a finding that noise may explain without a limit to hold it against
MIXED_CALLS = 7  # for inputs that are run again: one coin for each call rarely agrees in all
GROUP_INPUTS, GROUP_MOST = 40, 5_000  # of each extreme group; of pairs at most as many
ENOUGH = 300  # inputs run again where noise was found, or where that costs next to nothing

Finding = FlipPool | GroupInputs  # what a score rests on


@dataclass(frozen=True)
class Example:
    """One input that got two different answers."""

    codes: NDArray[Any]
    answers: tuple[int, int]  # their numbers
    reading: Reading  # the output that they are about

    @classmethod
    def first(
        cls, codes: NDArray[Any], before: Cells, after: Cells, reading: Reading
    ) -> Example | None:
        """The first input with two different answers, neither of which is a failure."""
        both = np.flatnonzero((before != after) & (before >= 0) & (after >= 0))
        if not len(both):
            return None
        place = int(both[0])
        return cls(codes[place].copy(), (int(before[place]), int(after[place])), reading)


class Neighbours:
    """What is known of the calls of a subject that takes whole batches."""

    def __init__(self, runner: Runner, readings: Sequence[Reading]) -> None:
        self._runner, self._readings = runner, readings
        self.differing = 0  # inputs whose answers changed with the others of their call alone
        self.example: Example | None = None

    @property
    def found(self) -> bool:
        """Whether answers depend on the other inputs of a call, and not on chance."""
        return self.differing >= FEWEST_NEIGHBOURS

    def look(self, codes: NDArray[Any], first: Cells, whole: Cells) -> None:
        """See whether inputs that were run in one call get other answers among few others."""
        few = codes[: sum(CALLS)]
        runner = self._runner
        if runner.executions_left < 2 * len(codes) + len(few) or runner.out_of_time:
            return
        ends = np.minimum(np.cumsum((0, *CALLS)), len(few))
        parts = [few[start:end] for start, end in itertools.pairwise(ends) if end > start]
        apart = np.concatenate([runner.repeat(part, again=3) for part in parts])
        others = np.where(first >= 0, first, whole)
        others[: len(few)] = np.where(apart != whole[: len(few)], apart, others[: len(few)])
        if self._is_to_blame(codes, whole, others != whole):
            for reading in self._readings:
                self._keep(codes, reading.cells(whole), reading.cells(others), reading)

    def run_again(self, codes: NDArray[Any], first: Cells, alike: Flags, opened: Cells) -> Cells:
        """Run inputs again in a few calls, each among others than before; look where that shows.

        One is alone, those that are `alike` are by themselves, and of the others those with the
        usual answer: whatever a call is compared with, its mean, its median, its size or the values
        that occur in it, is different there. Those `opened` have been run so already.
        """
        cells = opened.copy()
        for part in _apart(first, alike):
            left = part[cells[part] == NOT_RUN]
            if len(left):
                cells[left] = self._runner.repeat(codes[left])
        changed = (cells != first) & (first >= 0)
        if not changed.any():
            return cells
        whole = self._runner.repeat(codes, again=2)
        self.look(codes, np.where(changed, cells, first), whole)
        return whole if self.found else cells

    def doubt(
        self,
        codes: NDArray[Any],
        cells: Cells,
        before: Cells,
        reading: Reading,
        others: NDArray[Any],
    ) -> None:
        """See whether a call, now answered so, changed answers that one output had elsewhere.

        Those may have been noise, and the inputs chosen for it: so they are asked for once more,
        among `others`, which are as mixed as those of the first calls.
        """
        now = reading.cells(cells)
        changed = np.flatnonzero((now != before) & (before >= 0))
        changed = changed[first_places(InputKeys.among(codes).of(codes[changed]))]
        wanted = len(changed) + len(others) + 2 * len(codes)
        if len(changed) < FEWEST_NEIGHBOURS or self._runner.executions_left < wanted:
            return
        mixed = self._runner.repeat(np.concatenate([codes[changed], others]), again=3)
        elsewhere = cells.copy()
        again = mixed[: len(changed)]
        elsewhere[changed] = np.where(again >= 0, again, cells[changed])
        if self._is_to_blame(codes, cells, reading.cells(elsewhere) != now):
            self._keep(codes, now, before, reading)

    def _is_to_blame(self, codes: NDArray[Any], cells: Cells, changed: Flags) -> bool:
        """Whether the call changed these answers, and not noise.

        A subject that gives the same call the same answers each time, and other calls others,
        depends on the other inputs of a call; else it is noise.
        """
        count = int(changed.sum())
        if count < FEWEST_NEIGHBOURS or not self._runner.traits.vectorised:
            return False
        again = range(4, 4 + max(2, 12 // count))  # of few inputs the call is made more often
        if self._runner.executions_left < len(again) * len(codes):
            return False
        if any((self._runner.repeat(codes, again=n) != cells).any() for n in again):
            return False
        self.differing += count
        return True

    def _keep(self, codes: NDArray[Any], cells: Cells, others: Cells, reading: Reading) -> None:
        self.example = self.example or Example.first(codes, cells, others, reading)


def _apart(answers: Cells, alike: Flags) -> list[NDArray[np.int64]]:
    """The places of all answers: one, those of inputs that are alike, the usual, and the others."""
    places = np.arange(len(answers))
    rest = places[1:][~alike[1:]]
    numbers, counts = np.unique(answers[rest], return_counts=True)
    usual = answers[rest] == (numbers[counts.argmax()] if len(rest) else 0)
    if (~usual).sum() < FEWEST_NEIGHBOURS:  # too few to say anything
        usual[:] = True
    parts = [places[:1], places[1:][alike[1:]], rest[usual], rest[~usual]]
    return [part for part in parts if len(part)]


class _Drift(NamedTuple):
    """How many inputs of a group changed sides, and how far its expected rate may be away."""

    differing: int
    low: float
    high: float


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
        self.readings = [Reading(labels, place) for place in range(max(len(names), 1))]
        self.calls = Neighbours(self._runner, self.readings)
        self.doubted: set[int] = set()  # outputs of which some pair did not come out the same
        self.moved: set[int] = set()  # outputs of which whole calls moved the rates of groups
        self._known: dict[bytes, Cells] = {}  # the answers of what was run again
        self._lasting: dict[object, GroupInputs] = {}  # of scores whose reruns all were the same
        self._example: Example | None = None  # of an answer that did not last

    @property
    def neighbours(self) -> bool:
        """Whether answers depend on the other inputs of a call, and not on chance."""
        return self.calls.found

    def place(self, output: str | None) -> int:
        """The number of an output."""
        return self._names.index(output) if output in self._names else 0

    def reserve(self, settings: Settings) -> int:
        """How many executions to keep back for running findings again, of a limited budget."""
        if self.trusted or not settings.is_limited or not settings.looks_for_noise:
            return 0
        alpha = RERUNS_SHARE * (1.0 - settings.confidence) / 2
        wanted, least = 2 * reruns_for(SHARE_LEFT, alpha), 2 * fewest_reruns(alpha)
        budget = self._runner.executions_left
        if math.isinf(budget):
            return wanted
        return int(min(wanted, max(least, budget // 4), budget // 2))

    def confirm(self, measured: Scored, settings: Settings, limit: float | None = None) -> Score:
        """The score with what running again shows of what it rests on.

        Pairs of a causal score are a random sample of its flips; of a group score, inputs of the
        most and the least favoured group are run again. How many is planned before the first: as
        many as a verdict on `limit` needs if all come out the same, within bounds.
        """
        return metered(self._runner, lambda: self._confirm(measured, settings, limit))

    def _confirm(self, measured: Scored, settings: Settings, limit: float | None) -> Score:
        score, finding = measured.score, measured.finding
        if self.trusted:
            return replace(score, reruns=Reruns(0, 0, 0.0, trusted=True))
        if not settings.looks_for_noise or score.score <= 0 or not score.samples:
            return score
        reruns = None
        with self._runner.spending_reserve():
            if finding is not None:
                alpha = RERUNS_SHARE * (1.0 - settings.confidence)
                reruns = self.rerun(finding, score.score, score.low, alpha, limit)
            if isinstance(finding, GroupInputs) and reruns and not reruns.differing:
                self._lasting[_of_groups(score)] = finding
            if isinstance(score, CausalScore):
                with suppress(BudgetEndedError):
                    [score] = self.shown_again([score])
        return replace(score, reruns=reruns)

    def after_noise(self, score: GroupScore, confidence: float) -> GroupScore:
        """The score after running more of it again, if noise was found once it was confirmed.

        A subject may have changed after a few calls: what was confirmed in them is seen again or
        does not count.
        """
        finding, before = self._lasting.pop(_of_groups(score), None), score.reruns
        if finding is None or before is None or finding.kept == 1.0:
            return score
        if self._runner.traits.vectorised:
            alpha = RERUNS_SHARE * (1.0 - confidence) / 2
            with suppress(BudgetEndedError), self._runner.spending_reserve():
                if again := self._rerun_members(finding, score.low, alpha, None, 1.0):
                    most = max(again.explains, before.explains)
                    return replace(score, reruns=replace(again, explains=most))
        return score

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
                calls = MIXED_CALLS if low > 0 else 2  # for what convicts nobody
                return self._rerun_flips(finding, score, alpha, planned, calls)
        return None

    def _planned(
        self, flips: FlipPool, score: float, low: float, alpha: float, limit: float | None = None
    ) -> int | None:
        """How many flips to run again until noise explains at most a share of them."""
        share = SHARE_LEFT if low > 0 else 1.0  # without a finding, enough to notice pure noise
        if limit is not None and exceeds(low, limit):
            share = min(share, CAUTION * (low - limit) / score)
        planned = self._affordable(reruns_for(share, alpha / 2), len(flips.pairs))
        return None if planned < fewest_reruns(alpha / 2) else planned

    def _rerun_flips(
        self, flips: FlipPool, score: float, alpha: float, planned: int, calls: int
    ) -> Reruns:
        """Run so many flips again, in so many calls where few are to be made.

        If some flip does not come out the same, more are run, to know how many are left.
        """
        made, differing = self._rerun_pairs(flips, planned, calls, first=True)
        if differing:
            self.doubted.add(flips.reading.place)
            more = self._affordable(max(4 * planned, ENOUGH), len(flips.pairs))
            if more > planned and differing < 0.4 * made:  # else it is hopeless
                made, differing = self._rerun_pairs(flips, more, calls, first=False)
        return Reruns(made, differing, score * explained_by_noise(differing, made, alpha / 2))

    def _rerun_pairs(
        self, flips: FlipPool, count: int, calls: int, *, first: bool
    ) -> tuple[int, int]:
        """Run so many pairs again, mixed: how many got answers, and how many of them others.

        A pair counts as noise when one of the two is as far from what it was before as half the
        way to the other; a failure is another matter. Where pairs are few each is run as often as
        the others.
        """
        rng = self._sampler.base.generator(RERUNS, 0 if first else 1)
        pairs = flips.pairs.take(passes(rng, flips.weights / flips.weights.sum(), count))
        codes, outputs = pairs.inputs
        before, reading = pairs.outputs, flips.reading
        after = self._run_again(codes, outputs, rng, reading, first=first, calls=calls)
        after = after.reshape(count, 2)
        apart = reading.distances(before[:, 0], before[:, 1])
        moved = np.maximum(*(reading.distances(before[:, i], after[:, i]) for i in (0, 1)))
        known = (after >= 0).all(axis=1)
        return int(known.sum()), int(((2 * moved >= apart) & known).sum())

    def _run_again(
        self, codes: NDArray[Any], before: Cells, rng: np.random.Generator, reading: Reading,
        *, first: bool = True, random: bool = False, calls: int = MIXED_CALLS, spread: bool = False,
    ) -> Cells:  # fmt: skip
        """Run inputs again, in random order among each other; once, however often one asks.

        `random` says that the inputs were not chosen by their outputs; `spread`, that they are run
        in several calls, as each may have something of its own. Where few calls are to be made,
        what is there several times is run in no more than `calls`.
        """
        key = bytes([reading.place, first]) + codes.tobytes()
        if key not in self._known:
            cells = np.empty(len(codes), dtype=self._runner.labels.dtype)
            orders = [rng.permutation(part) for part in self._calls_of(codes, calls, spread)]
            time = 1 if first else 2
            # The first ten are numbered for other purposes.
            for number, order in enumerate(orders):
                cells[order] = self._runner.repeat(codes[order], again=time + 10 * number)
                if random and not number:
                    others = self._sampler.base.rows(0, min(self._runner.asked, 4_096))
                    self.calls.doubt(codes[order], cells[order], before[order], reading, others)
            self._known[key] = cells
            self.keep_example(codes, before, reading.cells(cells), reading)
        return reading.cells(self._known[key])

    def _calls_of(self, codes: NDArray[Any], calls: int, spread: bool) -> list[NDArray[np.int64]]:
        """The places of inputs, by call: each at most once in it, unless calls are to be few."""
        parts = list(each_once(codes))
        few = self._runner.saves_calls and not self._runner.traits.external
        if few and len(parts) > calls:
            parts = [np.concatenate(parts[call::calls]) for call in range(calls)]
        if few and spread:
            parts = [part[call::calls] for part in parts for call in range(calls)]
        return [part for part in parts if len(part)]

    def keep_example(
        self, codes: NDArray[Any], before: Cells, after: Cells, reading: Reading
    ) -> None:
        """Keep one input that got two different outputs, if there is one."""
        self._example = self._example or Example.first(codes, before, after, reading)

    def examples(self) -> Iterator[Note]:
        """One input that got two different outputs, where answers are not consistent."""
        example, how = self._example, "again"
        if self.neighbours:
            example, how = self.calls.example, "neighbours"
        if example is not None:
            reading = example.reading
            yield Note.of(
                "inconsistent-example",
                how=how,
                input=self._runner.schema.decode_row(example.codes),
                outputs=[reading.labels.labels[number] for number in example.answers],
                about=self._names[reading.place] if len(self._names) > 1 else None,
            )

    def shown_again(self, scores: Sequence[CausalScore]) -> list[CausalScore]:
        """Scores of one output without shown pairs that do not come out the same when run again."""
        pairs = [pair for score in scores for pair in score.witnesses]
        ended = self._runner.out_of_time or self._runner.executions_left < 2 * len(pairs)
        if self.trusted or not pairs or ended:
            return list(scores)
        place = self.place(scores[0].output)
        reading = self.readings[place]
        codes = self._runner.schema.encode_rows([row for pair in pairs for row in pair.inputs])
        before = reading.numbers_of([each for pair in pairs for each in pair.outputs])
        first, numbers = numbered(InputKeys.among(codes).of(codes))  # each once
        rng = self._sampler.base.generator(RERUNS, 2)
        after = self._run_again(codes[first], before[first], rng, reading)[numbers]
        moved = reading.distances(before, after).reshape(-1, 2).max(axis=1)
        same = 2 * moved < reading.distances(before[::2], before[1::2])
        if not same.all():
            self.doubted.add(place)
        kept = iter(same.tolist())
        return [
            replace(each, witnesses=tuple(pair for pair in each.witnesses if next(kept)))
            for each in scores
        ]

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
        reading, doubts = finding.reading, kept == finding.kept  # once is enough
        rngs = [self._sampler.base.generator(RERUNS, number) for number in (3, 4)]
        best, worst = (
            finding.draw(group, count, rng)
            for group, rng in zip((finding.best, finding.worst), rngs, strict=True)
        )
        codes, before = (np.concatenate(both) for both in zip(best, worst, strict=True))
        after = self._run_again(codes, before, rngs[0], reading, random=doubts, spread=not doubts)
        end = len(best[0])
        up = _drift(reading, before[:end], after[:end], rngs[0], alpha / 2)
        down = _drift(reading, before[end:], after[end:], rngs[1], alpha / 2)
        differing = up.differing + down.differing
        if differing:
            self.doubted.add(reading.place)
        if shared and down.low > up.high:  # in one call they are nearer than they were
            self.moved.add(reading.place)
        unseen = kept * max(0.0, down.high - up.low)
        proven = max(0.0, -up.high) + max(0.0, down.low)  # reruns contradict what was seen
        return Reruns(2 * count, differing, max(unseen, proven))

    def _affordable(self, wanted: int, pairs: int) -> int:
        """How many of the wanted reruns (of two inputs each) may be made, as far as is foreseen."""
        runner = self._runner
        if not pairs or runner.out_of_time:
            return 0
        most = GROUP_MOST
        if runner.traits.external:
            most = max(100, runner.asked // 8)
        elif not runner.traits.vectorised:  # each is an execution: no more than the finding took
            most = min(most, max(1_000, runner.asked))
        left = runner.executions_left
        if runner.pace.for_more and not math.isinf(runner.seconds_left):
            each = runner.runs * runner.pace.for_more
            left = min(left, runner.seconds_left / max(each, 1e-9))
        return int(min(wanted, most, left // 2))


def _drift(
    reading: Reading, before: Cells, after: Cells, rng: np.random.Generator, alpha: float
) -> _Drift:
    """How far a group's expected rate may be from the one that was seen in these inputs."""
    tolerances = rng.random(len(before)) if reading.statistic == "mean" else None
    was, now = (reading.favourable_ends(cells, tolerances)[0] for cells in (before, after))
    known = (before >= 0) & (after >= 0)
    fewer, more = int((was & ~now & known).sum()), int((now & ~was & known).sum())
    return _Drift(fewer + more, *drift_ends(fewer, more, max(int(known.sum()), 1), alpha))


def _of_groups(score: Score) -> object:
    """What tells group scores apart."""
    assert isinstance(score, GroupScore)
    return score.against, score.output, score.statistic, score.population
