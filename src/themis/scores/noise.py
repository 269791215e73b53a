"""Noise: what convicts is run again, and what the subject's own noise may explain is not counted.

A fair subject that flips at random with probability q shows a causal score of 1 − (1−q)ᵏ − qᵏ for k
assignments. So a random sample of what a score rests on is run again (`statistics.reruns` has what
that proves), and nothing is held against a subject that was not. Some random inputs are run again,
too, which gives the rate of the noise, and shows whether answers depend on the rest of a call.
Where there is noise its effect on a score is measured: the placebo score, of inputs that are run as
often as a row has assignments, with nothing changed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from themis.engine.sampler import Sampler
from themis.engine.variants import TRIED
from themis.inputs.characteristics import Value
from themis.inputs.schema import Schema
from themis.inputs.streams import RERUNS
from themis.results.model import (
    CausalScore,
    GroupScore,
    Noise,
    Placebo,
    Reruns,
    Score,
    SearchResult,
)
from themis.results.notes import Ending, Note
from themis.scores.group import GroupInputs
from themis.scores.witnesses import FlipPool, Flips
from themis.settings import Settings, Stopping
from themis.statistics.intervals import exact_ends, placebo_at_most, rate_ends
from themis.statistics.reruns import (
    PLACEBO_SHARE,
    RERUNS_SHARE,
    drift_ends,
    explained_by_noise,
    fewest_reruns,
    reruns_for,
    widest_spread,
)
from themis.subjects.decisions import NOT_RUN, Cells
from themis.subjects.readings import Reading

SHARE_LEFT = 0.2  # of a finding that noise may explain without a limit to hold it against
CAUTION = 0.8  # of what a verdict could spare: then a few more pairs are run than the fewest
AFTER_NOISE = 4  # times as many pairs are run again once noise was found, …
HOPELESS = 0.4  # … unless so many did not come out the same
INNER_PAIRS, EXTERNAL_PAIRS = 5_000, 100  # run again at most, or asked // 8
CALLS = (*(1,) * 24, *(8,) * 6)  # sizes of calls that show whether answers depend on the others
FEWEST_NEIGHBOURS = 3  # answers that changed with the call, and not when it was made again
TIMES = 10  # runs of one input that are numbered for other purposes
GROUP_INPUTS, GROUP_MOST = 40, 5_000  # of each extreme group
SHARE = 20  # one of so many executions is made again to look for noise
ENOUGH = 300  # inputs run again where noise was found, or where that costs next to nothing
MOST = 10_000
USUAL = 200  # so many base inputs in a row that were all met before: hardly another one is left

FEWEST_ROWS = 30  # of a placebo score that is measured; else it follows from the rate
PLACEBO_EXECUTIONS = 1_000  # that it may take, or as many as the score took
CHEAP_EXECUTIONS = 100_000  # the same where a batch costs little more than one call

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd, so that no two codes of a column share a key

# Notes of what was weighed already; scores and searches may be weighed twice.
WEIGHED = {
    *("noise-in-score", "noise-in-rates", "noise-in-exact-rates"),
    *("noise-in-search", "noise-in-group-search"),
}


Finding = Flips | GroupInputs  # what a score rests on


class _Drift(NamedTuple):
    """How many inputs of a group changed sides, and how far its expected rate may be away."""

    differing: int
    low: float
    high: float


class NoiseProbe:
    """What is known of a subject's noise within one audit; asks for more as the runs grow.

    `names` are those of the subject's outputs, where there are several.
    """

    def __init__(
        self, sampler: Sampler, names: Sequence[str] = (), *, trusted: bool = False
    ) -> None:
        self._sampler, self._runner = sampler, sampler.runner
        self.trusted = trusted  # somebody vouches that the subject is deterministic
        labels = self._runner.labels
        self._names = tuple(names)
        self._readings = [Reading(labels, place) for place in range(max(len(names), 1))]
        self._neighbours = 0  # inputs whose answers changed with the others of their call alone
        self._doubted: set[int] = set()  # outputs of which some pair did not come out the same
        self._confirmed: dict[bytes, Cells] = {}  # what was run again
        self._drawn = 0  # base inputs looked at so far
        self._last_new = -1  # the last of them that was not met before
        self._spent = 0  # runs of them that this took
        self._met = np.empty(0, dtype=np.uint64)  # keys of those that are distinct
        schema = sampler.population.schema
        # Those that are distinct and got an answer each time:
        self._codes: NDArray[Any] = np.empty((0, len(schema)), dtype=schema.dtype)
        self._tolerances = np.empty(0)
        self._runs: list[Cells] = [np.empty(0, labels.dtype) for _ in range(2)]  # one after another

    @property
    def neighbours(self) -> bool:
        """Whether answers depend on the other inputs of a call, and not on chance."""
        return self._neighbours >= FEWEST_NEIGHBOURS

    @property
    def found(self) -> bool:
        """Whether some input got another output when it was run again."""
        return any(self._is_noisy(place) for place in range(len(self._readings)))

    def finds_in(self, output: str | None) -> bool:
        """The same for one output."""
        return self._is_noisy(self._place(output))

    def noise(self, confidence: float) -> Noise | None:
        """The rate at which two runs on an input differ; None where none was run again."""
        inputs = len(self._codes)
        if not inputs:
            return None
        changed = [self._changed(place, inputs, 2) for place in range(len(self._readings))]
        differing = int(np.logical_or.reduce(changed).sum())
        return self._noise(differing, inputs, confidence)

    def notes(self) -> Iterator[Note]:
        """What the rate does not show: that the pairs of some score did not come out the same."""
        inputs = len(self._codes)
        if self.trusted:
            yield Note.of("vouched-for")
        if self.neighbours:
            yield Note.of("depends-on-neighbours", differing=self._neighbours, inputs=inputs)
        elif any(not self._changed(place, inputs, 2).any() for place in self._doubted):
            yield Note.of("pairs-not-confirmed")

    def reserve(self, settings: Settings) -> int:
        """How many executions to keep back for running findings again, of a limited budget."""
        limited = settings.max_executions is not None or settings.max_seconds is not None
        if self.trusted or not limited or not looks_for_noise(settings):
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
        finding, self._runner.finding = self._runner.finding, None
        if self.trusted:
            return replace(score, reruns=Reruns(0, 0, 0.0, trusted=True))
        if not looks_for_noise(settings) or score.score <= 0 or not score.samples:
            return score
        reruns = None
        with self._runner.spending_reserve():
            if isinstance(finding, FlipPool):
                finding = finding.flips
            if isinstance(finding, Flips | GroupInputs):
                alpha = RERUNS_SHARE * (1.0 - settings.confidence)
                reruns = self.rerun(finding, score.score, score.low, alpha, limit)
            if isinstance(score, CausalScore):
                score = self._shown_again(score)
        return replace(score, reruns=reruns)

    def rerun(
        self, finding: Finding, score: float, low: float, alpha: float, limit: float | None = None
    ) -> Reruns | None:
        """Run what a score rests on again; None where the budget does not allow for enough.

        With probability at least 1 − alpha, noise explains no more of the score than it says.
        """
        if self.trusted:
            return Reruns(0, 0, 0.0, trusted=True)
        if isinstance(finding, GroupInputs):
            return self._rerun_groups(finding, low, alpha, limit)
        if not len(finding.pairs):
            return None
        share = SHARE_LEFT if low > 0 else 1.0  # without a finding, enough to notice pure noise
        if limit is not None and low > limit:
            share = min(share, CAUTION * (low - limit) / score)
        return self._rerun_flips(finding, score, alpha, share)

    def _rerun_flips(self, flips: Flips, score: float, alpha: float, share: float) -> Reruns | None:
        """Run flips again until noise explains at most a share of them.

        If some flip does not come out the same, more are run, to know how many are left.
        """
        planned = self._affordable(reruns_for(share, alpha / 2), len(flips.pairs))
        if planned < fewest_reruns(alpha / 2):
            return None
        made, differing = self._rerun_pairs(flips, planned, first=True)
        if differing:
            self._doubted.add(flips.reading.place)
            more = self._affordable(max(AFTER_NOISE * planned, ENOUGH), len(flips.pairs))
            if more > planned and differing < HOPELESS * made:
                made, differing = self._rerun_pairs(flips, more, first=False)
        return Reruns(made, differing, score * explained_by_noise(differing, made, alpha / 2))

    def _rerun_pairs(self, flips: Flips, count: int, *, first: bool) -> tuple[int, int]:
        """Run so many pairs again, mixed: how many got answers, and how many of them others.

        A pair counts as noise when one of the two is as far from what it was before as half the
        way to the other; a failure is another matter. Where pairs are few each is run as often as
        the others.
        """
        rng = self._sampler.base.generator(RERUNS, 0 if first else 1)
        size, reading = len(flips.pairs), flips.reading
        if (flips.weights == flips.weights[0]).all():
            orders = [rng.permutation(size) for _ in range(-(-count // size))]
            chosen = np.concatenate(orders)[:count]
        else:
            chosen = rng.choice(size, count, p=flips.weights / flips.weights.sum())
        pairs = flips.pairs.take(chosen)
        before = pairs.outputs
        codes = pairs.codes.reshape(2 * count, -1)
        after = self._run_again(codes, before.ravel(), rng, reading, first=first).reshape(count, 2)
        apart = reading.distances(before[:, 0], before[:, 1])
        moved = np.maximum(*(reading.distances(before[:, i], after[:, i]) for i in (0, 1)))
        known = (after >= 0).all(axis=1)
        return int(known.sum()), int(((2 * moved >= apart) & known).sum())

    def _run_again(
        self, codes: NDArray[Any], before: Cells, rng: np.random.Generator, reading: Reading,
        *, first: bool = True, random: bool = False,
    ) -> Cells:  # fmt: skip
        """Run inputs again, in random order among each other; once, however often one asks.

        `random` says that the inputs were not chosen by their outputs.
        """
        key = bytes([reading.place, first]) + codes.tobytes()
        if key not in self._confirmed:
            cells = np.empty(len(codes), dtype=self._runner.labels.dtype)
            for number, places in enumerate(_each_once(codes)):
                order = rng.permutation(places)
                again = (1 if first else 2) + TIMES * number
                cells[order] = self._runner.repeat(codes[order], again=again)
                if random and not number:
                    changed = (reading.cells(cells[order]) != before[order]) & (before[order] >= 0)
                    self._doubt_call(codes[order], cells[order], int(changed.sum()))
            self._confirmed[key] = reading.cells(cells)
        return self._confirmed[key]

    def _shown_again(self, score: CausalScore) -> CausalScore:
        """The score without shown pairs that do not come out the same when they are run again."""
        pairs = score.witnesses
        if not pairs or not self._has_room(2 * len(pairs)):
            return score
        place = self._place(score.output)
        reading = self._readings[place]
        codes = _encode(self._runner.schema, [row for pair in pairs for row in pair.inputs])
        before = reading.labels.number([each for pair in pairs for each in pair.outputs])
        rng = self._sampler.base.generator(RERUNS, 2)
        after = self._run_again(codes, before, rng, reading)
        moved = reading.distances(before, after).reshape(-1, 2).max(axis=1)
        same = 2 * moved < reading.distances(before[::2], before[1::2])
        if not same.all():
            self._doubted.add(place)
        return replace(score, witnesses=tuple(itertools.compress(pairs, same)))

    def _rerun_groups(
        self, finding: GroupInputs, low: float, alpha: float, limit: float | None
    ) -> Reruns | None:
        wanted = fewest_reruns(alpha)
        if finding.kept:
            above = low - (limit or 0.0)
            points = CAUTION * above / 2 if above > 0 else 1.0
            wanted = max(wanted, math.ceil(finding.kept * math.log(8 / alpha) / points))
        count = self._affordable(max(wanted, GROUP_INPUTS), GROUP_MOST)
        if count < fewest_reruns(alpha):
            return None
        best, worst = (
            self._drift(finding, group, count, alpha / 2, number)
            for number, group in enumerate((finding.best, finding.worst))
        )
        if best.differing or worst.differing:
            self._doubted.add(finding.reading.place)
        unseen = finding.kept * max(0.0, worst.high - best.low)
        proven = max(0.0, -best.high) + max(0.0, worst.low)  # reruns contradict what was seen
        return Reruns(2 * count, best.differing + worst.differing, max(unseen, proven))

    def _drift(
        self, finding: GroupInputs, group: int, count: int, alpha: float, number: int
    ) -> _Drift:
        """How far a group's expected rate may be from the one that was seen."""
        rng = self._sampler.base.generator(RERUNS, 3 + number)
        codes, before = finding.draw(group, count, rng)
        reading = finding.reading
        after = self._run_again(codes, before, rng, reading, random=True)
        tolerances = rng.random(count) if reading.statistic == "mean" else None
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
        left = runner.executions_left
        if runner.seconds_per_execution and not math.isinf(runner.seconds_left):
            each = runner.runs * runner.seconds_per_execution
            left = min(left, runner.seconds_left / max(each, 1e-9))
        return int(min(wanted, most, left // 2))

    def look(self, settings: Settings) -> None:
        """Run so many base inputs again as the settings ask for, or as befits the run so far."""
        if self.trusted or not looks_for_noise(settings):
            return
        while not (self._runner.out_of_time or self._has_met_all):
            count = min(self._wanted(settings), self._runner.batch_size)
            if 2 * count > self._runner.executions_left:
                count = int(self._runner.executions_left // 2)
            if count < 1:
                return
            self._take(count)

    def weigh(
        self, score: Score, settings: Settings, *, most: int | None = None, may_run: bool = True
    ) -> Score:
        """The score as it is; where there is noise, with what that alone would give.

        Its lower end is then what running again left of it; the upper one is moved by the placebo's
        upper end, as an output that is not the usual one can hide a flip. `most` is the number of
        assignments tried in a row where that is not the settings' own.
        """
        if not looks_for_noise(settings) or not self.finds_in(score.output):
            return score
        if self.neighbours:
            return replace(score, stopped=Ending.INCONSISTENT)
        if isinstance(score, GroupScore):
            return score if is_weighed(score) else _weighed_group(score, settings.confidence)
        if not isinstance(score, CausalScore) or score.placebo is not None:
            return score
        width = self._width(score, settings, most)
        rows = self._affordable_rows(score, width) if may_run else 0
        certainty = 1.0 - PLACEBO_SHARE * (1.0 - settings.confidence)
        placebo = self._placebo(self._place(score.output), width, rows, certainty)
        too_much = placebo.high > settings.noise_limit and score.conclusive
        return replace(
            score,
            placebo=placebo,
            low=score.floor,
            high=min(1.0, score.high + placebo.high),
            reruns=None if score.reruns is None else replace(score.reruns, explains=0.0),
            stopped=Ending.NOISE if too_much else score.stopped,
            notes=(*score.notes, Note.of("noise-in-score", high=placebo.high)),
        )

    # What was run ------------------------------------------------------------------------
    def _place(self, output: str | None) -> int:
        return self._names.index(output) if output in self._names else 0

    def _is_noisy(self, place: int) -> bool:
        return place in self._doubted or bool(self._changed(place, len(self._codes), 2).any())

    def _changed(self, place: int, inputs: int, runs: int) -> NDArray[np.bool_]:
        """Which of the first inputs got another output in some of the first runs."""
        changed = np.zeros(inputs, dtype=bool)
        for number in range(1, runs):
            changed |= self._differs(place, inputs, number)
        return changed

    def _differs(self, place: int, inputs: int, number: int) -> NDArray[np.bool_]:
        reading = self._readings[place]
        first, other = (reading.cells(self._runs[n][:inputs]) for n in (0, number))
        return reading.differs(first, other, self._tolerances[:inputs])

    def _noise(self, differing: int, inputs: int, confidence: float) -> Noise:
        low, high = rate_ends(differing, inputs, confidence)
        rate = differing / inputs
        return Noise(inputs, differing, rate, low, high, confidence, self._runner.runs)

    # Running inputs again ----------------------------------------------------------------
    def _wanted(self, settings: Settings) -> int:
        """How many further base inputs to run again.

        Unless the user says so, their runs are a share of the executions; one whose own output is
        not known yet takes two.
        """
        if settings.probe is not None:
            return settings.probe - self._drawn
        share = min(self._runner.asked // (SHARE * self._runner.runs), MOST) - self._spent
        least = ENOUGH if self.found or self._runner.traits.vectorised else 0
        if share < 1:
            return least - self._drawn
        first = self._sampler.tables.known_outputs(self._next(share), self._drawn)
        costs = np.cumsum(1 + (first == NOT_RUN))
        return max(int(np.searchsorted(costs, share, side="right")), least - self._drawn)

    def _has_room(self, executions: int) -> bool:
        return self._runner.executions_left >= executions and not self._runner.out_of_time

    @property
    def _has_met_all(self) -> bool:
        return self._drawn - self._last_new > USUAL

    def _stop(self, new: NDArray[np.int64], stop: int) -> int:
        """Where to end before `stop`, given which are new: once all seem to have been met.

        However many are run at once, that is at the same place.
        """
        before, behind = np.append(self._last_new, new), np.append(new, stop)
        met_all = np.flatnonzero(behind - before > USUAL)
        return int(before[met_all[0]]) + USUAL + 1 if len(met_all) else stop

    def _next(self, count: int) -> NDArray[Any]:
        return self._sampler.base.rows(self._drawn, self._drawn + count)

    def _take(self, count: int) -> None:
        """Run the next base inputs again, less those that were met before."""
        start, codes = self._drawn, self._next(count)
        keys = _keys(codes)
        new = _distinct(self._met, keys)
        count = self._stop(start + new, start + count) - start
        new = new[new < count]
        if len(new):
            self._last_new = start + int(new[-1])
        self._met = np.concatenate([self._met, keys[new]])
        first = self._sampler.tables.known_outputs(codes[:count], start)[new]
        codes = codes[new]
        missing = np.flatnonzero(first == NOT_RUN)
        if len(missing):
            first[missing] = self._runner.repeat(codes[missing], again=0)
        second = self._runner.repeat(codes) if len(codes) else first
        if self._runner.traits.vectorised and len(codes) and not start:
            self._among_others(codes, first, second)
        self._drawn += count
        self._spent += len(codes) + len(missing)
        decided = (first >= 0) & (second >= 0)  # a failure is another matter than noise
        tolerances = self._sampler.base.tolerances(start, start + count)[new][decided]
        self._codes = np.concatenate([self._codes, codes[decided]])
        self._tolerances = np.concatenate([self._tolerances, tolerances])
        self._runs[0] = np.concatenate([self._runs[0], first[decided]])
        self._runs[1] = np.concatenate([self._runs[1], second[decided]])

    def _among_others(self, codes: NDArray[Any], first: Cells, whole: Cells) -> None:
        """See whether inputs that were run in one call get other answers among few others."""
        few = codes[: sum(CALLS)]
        if not self._has_room(2 * len(codes) + len(few)):
            return
        ends = np.minimum(np.cumsum((0, *CALLS)), len(few))
        parts = [few[start:end] for start, end in itertools.pairwise(ends) if end > start]
        apart = np.concatenate([self._runner.repeat(part, again=3) for part in parts])
        changed = (first != whole) & (first >= 0)
        changed[: len(few)] |= apart != whole[: len(few)]
        self._doubt_call(codes, whole, int(changed.sum()))

    def _doubt_call(self, codes: NDArray[Any], cells: Cells, changed: int) -> None:
        """Take note that so many of the answers to a call differ from what they were elsewhere.

        A subject that gives the same call the same answers each time, and other calls others,
        depends on the other inputs of a call; else it is noise.
        """
        if changed < FEWEST_NEIGHBOURS or not self._runner.traits.vectorised:
            return
        if any((self._runner.repeat(codes, again=n) != cells).any() for n in (4, 5)):
            return
        self._neighbours += changed
        self._doubted |= set(range(len(self._readings)))

    # The placebo -------------------------------------------------------------------------
    def _placebo(self, place: int, width: int, rows: int, confidence: float) -> Placebo:
        """The placebo of rows with so many runs: measured on so many rows, else from the rate."""
        inputs = len(self._codes)
        if not inputs:
            return Placebo(0.0, 0.0, 1.0)  # there was no budget left to say how much
        noise = self._noise(int(self._changed(place, inputs, 2).sum()), inputs, confidence)
        if width == 2:
            return Placebo(noise.rate, noise.low, noise.high)
        if rows >= FEWEST_ROWS and self._run_rows(place, rows, width):
            changed = int(self._changed(place, rows, width).sum())
            return Placebo(changed / rows, *exact_ends(changed, rows, (1.0 - confidence) / 2))
        reading = self._readings[place]
        two = not reading.graded and len(reading.labels.labels) <= 2
        likely, highest = (
            placebo_at_most(rate, width, two_outputs=two) for rate in (noise.rate, noise.high)
        )
        return Placebo(likely, noise.low if width > 1 else 0.0, highest)

    def _affordable_rows(self, score: CausalScore, width: int) -> int:
        """How many rows of a placebo may be run: it costs no more than the score did."""
        cheap = self._runner.traits.vectorised
        least = CHEAP_EXECUTIONS if cheap else PLACEBO_EXECUTIONS
        limit = max(least, score.executions + score.cache_hits)
        return min(len(self._codes), ENOUGH, limit // max(width, 1))

    def _width(self, score: CausalScore, settings: Settings, most: int | None) -> int:
        """How many runs a row of the score's table has, or at most has."""
        columns = self._runner.schema.columns_of(score.against)
        count = self._sampler.assignments(columns).count
        if most is not None:
            return min(count, most)
        sampled = count > settings.max_assignments and score.method == "sampled"
        return TRIED if sampled else count

    def _run_rows(self, place: int, rows: int, width: int) -> bool:
        """Run the first inputs until each has `width` runs or differs; False if the budget ends."""
        changed = self._changed(place, rows, 2)
        for number in range(2, width):
            self._make_room(number, rows)
            cells = self._runs[number]
            places = np.flatnonzero(~changed & (cells[:rows] == NOT_RUN))
            if not self._has_room(len(places)):
                return False
            if len(places):
                cells[places] = self._runner.repeat(self._codes[places], again=number)
            changed |= self._differs(place, rows, number)
        return True

    def _make_room(self, number: int, rows: int) -> None:
        if number == len(self._runs):
            self._runs.append(np.empty(0, self._runner.labels.dtype))
        lacking = rows - len(self._runs[number])
        if lacking > 0:
            room = np.full(lacking, NOT_RUN, self._runner.labels.dtype)
            self._runs[number] = np.concatenate([self._runs[number], room])


def looks_for_noise(settings: Settings) -> bool:
    """Whether noise is looked for: the paper's procedures are left as printed."""
    return settings.probe != 0 and settings.stopping is not Stopping.PAPER


def _each_once(codes: NDArray[Any]) -> Iterator[NDArray[np.int64]]:
    """The places of all inputs, in parts that hold each input at most once."""
    left = np.arange(len(codes))
    keys = _keys(codes)
    while len(left):
        first = np.sort(np.unique(keys[left], return_index=True)[1])
        yield left[first]
        left = np.delete(left, first)


def _keys(codes: NDArray[Any]) -> NDArray[np.uint64]:
    """64 bits for each input: should two ever share them, one less is run again."""
    keys = np.zeros(len(codes), dtype=np.uint64)
    for column in codes.T:
        keys = keys * _MULTIPLIER + column.astype(np.uint64)
    return keys


def _distinct(before: NDArray[np.uint64], keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The places of keys that are neither among those before nor earlier here."""
    _, first = np.unique(np.concatenate([before, keys]), return_index=True)
    return np.sort(first[first >= len(before)]) - len(before)


def _weighed_group(score: GroupScore, confidence: float) -> GroupScore:
    """The group score of a noisy subject.

    Sampled rates are averages over the noise. A whole domain was run once: then the ends allow for
    what another run would give.
    """
    if score.method != "exact":
        return replace(score, notes=(*score.notes, Note.of("noise-in-rates")))
    alpha = PLACEBO_SHARE * (1.0 - confidence)
    ends = [(each.low, each.high, each.samples) for each in score.groups]
    whole = not any(note.code == "groups-not-listed" for note in score.notes)
    return replace(
        score,
        low=score.floor,
        high=max(score.high, widest_spread(ends, alpha)) if whole else 1.0,
        reruns=None if score.reruns is None else replace(score.reruns, explains=0.0),
        notes=(*score.notes, Note.of("noise-in-exact-rates")),
    )


def is_weighed(part: Score | SearchResult) -> bool:
    """Whether noise was taken into account already."""
    return any(note.code in WEIGHED for note in part.notes)


def _encode(schema: Schema, rows: Sequence[dict[str, Value]]) -> NDArray[Any]:
    codes = [[each.encode(row[each.name]) for each in schema] for row in rows]
    return np.array(codes, dtype=schema.dtype, order="F")
