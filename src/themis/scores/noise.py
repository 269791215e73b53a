"""Noise: what convicts is run again, and what the subject's own noise may explain is not counted.

A fair subject that flips at random with probability q shows a causal score of 1 − (1−q)ᵏ − qᵏ for k
assignments. So a random sample of what a score rests on is run again (`reruns`), and nothing is
held against a subject that was not. Some random inputs are run again, too, which gives the rate of
the noise, and shows whether answers depend on the rest of a call (`neighbours`).
Where there is noise its effect on a score follows from that rate: the placebo score, of inputs that
are run as often as a row has assignments, with nothing changed, is at most so large.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from themis.engine.sampler import Sampler
from themis.engine.variants import TRIED
from themis.inputs.keys import Keys, first_places
from themis.results.finding import by_construction
from themis.results.model import CausalScore, GroupScore, Score, SearchResult
from themis.results.notes import Ending, Note
from themis.results.parts import Noise, Placebo
from themis.scores.group_tally import impact_ratio
from themis.scores.reruns import ENOUGH, Rerunner
from themis.settings import Settings
from themis.statistics.intervals import Flags, placebo_at_most, rate_ends
from themis.statistics.reruns import PLACEBO_SHARE, expected_rates, widest_spread
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import NOT_RUN, Cells
from themis.subjects.outputs import Statistic
from themis.subjects.readings import Reading

SHARE = 20  # one of so many executions is made again to look for noise
AT_ONCE = 4_096  # of them in one call
USUAL = 200  # so many base inputs in a row that were all met before: hardly another one is left

S = TypeVar("S", bound=Score)

# Notes of what was weighed already; scores and searches may be weighed twice.
WEIGHED = {
    *("noise-in-score", "noise-in-rates", "noise-in-exact-rates", "noise-of-calls"),
    *("noise-in-search", "noise-in-group-search"),
}


class NoiseProbe:
    """What is known of a subject's noise within one audit; asks for more as the runs grow."""

    def __init__(self, sampler: Sampler, reruns: Rerunner) -> None:
        self.reruns = reruns  # of findings
        self._sampler, self._runner = sampler, sampler.runner
        self._readings = reruns.readings
        self._drawn = 0  # base inputs looked at so far
        self._last_new = -1  # the last of them that was not met before
        self._spent = 0  # runs of them that this took
        schema = sampler.population.schema
        # Those that are distinct and got an answer each time:
        self._codes: NDArray[Any] = np.empty((0, len(schema)), dtype=schema.dtype)
        self._met = schema.input_keys.of(self._codes)  # keys of all that are distinct
        self._tolerances = np.empty(0)
        dtype = self._runner.labels.dtype
        self._runs: list[Cells] = [np.empty(0, dtype) for _ in range(2)]  # first and again
        self._opened: Cells = np.full(1, NOT_RUN, dtype)  # what the first got before all others

    @property
    def found(self) -> bool:
        """Whether some input got another output when it was run again."""
        return any(self._is_noisy(place) for place in range(len(self._readings)))

    def finds_in(self, output: str | None, statistic: Statistic | None = None) -> bool:
        """The same for one output; where its groups are compared, also by less than counts there.

        A tolerance is for pairs: rates and means change with each answer.
        """
        place = self.reruns.place(output)
        return self._is_noisy(place) or (statistic is not None and self._moves(place, statistic))

    def noise(self, confidence: float) -> Noise | None:
        """The rate at which two runs on an input differ; None where none was run again."""
        inputs = len(self._codes)
        if not inputs:
            return None
        changed = [self._changed(place) for place in range(len(self._readings))]
        differing = int(np.logical_or.reduce(changed).sum())
        return self._noise(differing, inputs, confidence)

    def notes(self) -> Iterator[Note]:
        """What the rate does not show: that the pairs of some score did not come out the same."""
        inputs = len(self._codes)
        if self.reruns.trusted:
            yield Note.of("vouched-for")
        if self.reruns.neighbours:
            yield Note.of(
                "depends-on-neighbours", differing=self.reruns.calls.differing, inputs=inputs
            )
        elif any(not self._changed(place).any() for place in self.reruns.doubted):
            yield Note.of("pairs-not-confirmed")
        if self.found:
            yield from self.reruns.examples()

    def open_with(self, settings: Settings) -> None:
        """Let the runner open with the call of one input alone, if there will be one anyway.

        It tells how long an input takes at most, before a large call that nobody can interrupt.
        """
        if settings.looks_for_noise and self._looks_at_calls and not self.reruns.trusted:
            self._runner.opening = self._run_alone

    def look(self, settings: Settings) -> None:
        """Run so many base inputs again as the settings ask for, or as befits the run so far."""
        if self.reruns.trusted or not settings.looks_for_noise:
            return
        with suppress(BudgetEndedError):
            while not (self._runner.out_of_time or self._has_met_all):
                count = self._affordable_count(settings)
                few = settings.probe is None and self._runner.saves_calls
                # Less than an eighth of those before is worth no further call.
                if count < 1 or (few and count < self._drawn // 8):
                    return
                self._look_at(count)

    def weigh(
        self, score: Score, settings: Settings, *, most: int | None = None, may_run: bool = True
    ) -> Score:
        """The score as it is; where there is noise, with what that alone would give.

        Its lower end is then what running again left of it; the upper one is moved by the placebo's
        upper end, as an output that is not the usual one can hide a flip. `most` is the number of
        assignments tried in a row where that is not the settings' own.
        """
        statistic = score.statistic if isinstance(score, GroupScore) else None
        if not settings.looks_for_noise or not self.finds_in(score.output, statistic):
            return score
        if by_construction(score) is not None:
            return score
        if self.reruns.neighbours:
            return replace(score, stopped=Ending.INCONSISTENT)
        if isinstance(score, GroupScore):
            score = self.reruns.after_noise(score, settings.confidence) if may_run else score
            moved = self.reruns.place(score.output) in self.reruns.moved
            return score if is_weighed(score) else _weighed_group(score, settings, moved=moved)
        if not isinstance(score, CausalScore) or score.placebo is not None:
            return score
        certainty = 1.0 - PLACEBO_SHARE * (1.0 - settings.confidence)
        place, width = self.reruns.place(score.output), self._width(score, settings, most)
        placebo = self._placebo(place, width, certainty)
        too_much = placebo.high > settings.noise_limit and score.conclusive
        return _widened(
            score,
            min(1.0, score.high + placebo.high),
            Note.of("noise-in-score", high=placebo.high),
            placebo=placebo,
            stopped=Ending.NOISE if too_much else score.stopped,
        )

    # What was run ------------------------------------------------------------------------
    def _is_noisy(self, place: int) -> bool:
        if self.reruns.neighbours or place in self.reruns.doubted:
            return True
        return bool(self._changed(place).any())

    def _moves(self, place: int, statistic: Statistic) -> bool:
        """Whether some input counted otherwise in the rate or mean of its group when run again."""
        reading = Reading(self._runner.labels, place, statistic)
        if not reading.graded or not (statistic == "mean" or reading.has_favourable):
            return False
        first, second = (reading.cells(run) for run in self._runs)
        known = (first >= 0) & (second >= 0)
        before, after = (reading.share_ends(each[known])[0] for each in (first, second))
        # Means that differ by less of a scale are shown as the same.
        return bool((np.abs(before - after.astype(float)) > 1e-4).any())

    def _changed(self, place: int) -> Flags:
        """Which inputs got another output when they were run again."""
        reading = self._readings[place]
        first, other = (reading.cells(run) for run in self._runs)
        return reading.differs(first, other, self._tolerances)

    def _noise(self, differing: int, inputs: int, confidence: float) -> Noise:
        low, high = rate_ends(differing, inputs, confidence)
        rate = differing / inputs
        average = any(reading.averages for reading in self._readings)
        return Noise(inputs, differing, rate, low, high, confidence, self._runner.runs, average)

    # Running inputs again ----------------------------------------------------------------
    @property
    def _looks_at_calls(self) -> bool:
        """Whether inputs are run again in calls that are unlike the first."""
        runner = self._runner
        return runner.traits.vectorised and runner.saves_calls and not runner.traits.external

    def _run_alone(self) -> None:
        """Run the first base input; if it fails, that is left to the calls that measure."""
        if self._opened[0] == NOT_RUN and not self._drawn:
            with self._runner.aside():
                opened = self._runner.repeat(self._next(1))
            self._opened = np.where(opened >= 0, opened, NOT_RUN).astype(opened.dtype)

    def _affordable_count(self, settings: Settings) -> int:
        """How many base inputs to run again next."""
        count = min(self._wanted(settings), self._at_once)
        left = self._runner.executions_left
        return int(left // 2) if 2 * count > left else count

    @property
    def _at_once(self) -> int:
        """How many inputs are run again in one go: what is found must not depend on the speed."""
        runner = self._runner
        pressed = not math.isinf(runner.seconds_left) or not runner.traits.vectorised
        # More than that where they have no more values than a large table.
        return runner.batch_size if pressed else max(AT_ONCE, 2**22 // len(runner.schema))

    def _wanted(self, settings: Settings) -> int:
        """How many further base inputs to run again.

        Unless the user says so, their runs are a share of the executions; one whose own output is
        not known yet takes two.
        """
        if settings.probe is not None:
            return settings.probe - self._drawn
        if (self._sampler.population.size or math.inf) <= ENOUGH:
            return AT_ONCE  # until all were met: an exact score of few inputs rests on each
        share = min(self._runner.asked // (SHARE * self._runner.runs), 10_000) - self._spent
        least = ENOUGH if self.found or self._runner.traits.vectorised else 0
        if share < 1:
            return least - self._drawn
        first = self._sampler.tables.known_outputs(self._next(share), self._drawn)
        costs = np.cumsum(1 + (first == NOT_RUN))
        return max(int(np.searchsorted(costs, share, side="right")), least - self._drawn)

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

    def _look_at(self, count: int) -> None:
        """Run the next base inputs again, less those that were met before."""
        start, codes = self._drawn, self._next(count)
        keys = self._sampler.population.schema.input_keys.of(codes)
        new = _distinct(self._met, keys)
        count = self._stop(start + new, start + count) - start
        new = new[new < count]
        first = self._sampler.tables.known_outputs(codes[:count], start)[new]
        codes, missing = codes[new], np.flatnonzero(first == NOT_RUN)
        if len(missing):
            first[missing] = self._runner.repeat(codes[missing], again=0)
        second = self._again(codes, first, start) if len(codes) else first
        if len(new):
            self._last_new = start + int(new[-1])
        self._met = np.concatenate([self._met, keys[new]])
        self._drawn += count
        self._spent += len(codes) + len(missing)
        decided = (first >= 0) & (second >= 0)  # a failure is another matter than noise
        tolerances = self._sampler.base.tolerances(start, start + count)[new][decided]
        self._codes = np.concatenate([self._codes, codes[decided]])
        self._tolerances = np.concatenate([self._tolerances, tolerances])
        for number, run in enumerate((first, second)):
            self._runs[number] = np.concatenate([self._runs[number], run[decided]])
        for reading in self._readings:
            self.reruns.keep_example(codes, reading.cells(first), reading.cells(second), reading)

    def _again(self, codes: NDArray[Any], first: Cells, start: int) -> Cells:
        """What the inputs get when they are run again; the first ones also among others."""
        runner = self._runner
        if self._looks_at_calls and not start and not runner.out_of_time:
            opened = np.append(self._opened, np.full_like(first[1:], NOT_RUN))
            return self.reruns.calls.run_again(codes, first, self._alike(codes), opened)
        second = runner.repeat(codes)
        if runner.traits.vectorised and not start:
            self.reruns.calls.look(codes, first, second)
        return second

    def _alike(self, codes: NDArray[Any]) -> Flags:
        """Which inputs have the value that is last in the characteristic with fewest values."""
        sizes = [each.size if each.size > 1 else np.inf for each in self._runner.schema]
        column = int(np.argmin(sizes))
        alike: Flags = codes[:, column] == codes[:, column].max()
        return alike

    # The placebo -------------------------------------------------------------------------
    def _placebo(self, place: int, width: int, confidence: float) -> Placebo:
        """The placebo of rows with so many runs, as far as the rate of the noise shows it."""
        inputs = len(self._codes)
        if not inputs:
            return Placebo(0.0, 0.0, 1.0)  # there was no budget left to say how much
        noise = self._noise(int(self._changed(place).sum()), inputs, confidence)
        reading = self._readings[place]
        two = not reading.graded and len(reading.labels.labels) <= 2
        likely, highest = (
            placebo_at_most(rate, width, two_outputs=two) for rate in (noise.rate, noise.high)
        )
        return Placebo(likely, noise.low if width > 1 else 0.0, highest)

    def _width(self, score: CausalScore, settings: Settings, most: int | None) -> int:
        """How many runs a row of the score's table has, or at most has."""
        columns = self._runner.schema.columns_of(score.against)
        count = self._sampler.assignments(columns).count
        if most is not None:
            return min(count, most)
        sampled = count > settings.max_assignments and score.method == "sampled"
        return TRIED if sampled else count


def _distinct(before: Keys, keys: Keys) -> NDArray[np.int64]:
    """The places of keys that are neither among those before nor earlier here."""
    return first_places(np.concatenate([before, keys]))[len(before) :] - len(before)


def _weighed_group(score: GroupScore, settings: Settings, *, moved: bool) -> GroupScore:
    """The group score of a noisy subject.

    Sampled rates are averages over the noise, unless whole calls `moved` them. A whole domain was
    run once: then the ends allow for what another run would give.
    """
    if score.method != "exact" and moved and score.reruns is not None:
        high = min(score.high + score.reruns.explains, 1.0)
        return _widened(score, high, Note.of("noise-of-calls"), stopped=Ending.INCONSISTENT)
    if score.method != "exact":
        return replace(score, notes=(*score.notes, Note.of("noise-in-rates")))
    alpha = PLACEBO_SHARE * (1.0 - settings.confidence)
    ends = [(each.low, each.high, each.runs or 0.0) for each in score.groups]
    unlisted = next((each for each in score.notes if each.code == "groups-not-listed"), None)
    whole = unlisted is None
    if unlisted is not None:  # the ends of all groups hold together, and these are some of them
        alpha *= len(ends) / max(unlisted.values["groups"], len(ends), 1)
    wider = zip(score.groups, expected_rates(ends, alpha), strict=True)
    groups = [replace(each, low=low, high=high) for each, (low, high) in wider]
    ratio = impact_ratio(groups, all_groups=whole)
    if score.impact_ratio is not None and ratio is not None:
        score = replace(score, impact_ratio_low=ratio.low, impact_ratio_high=ratio.high)
    high = max(score.high, widest_spread(ends, alpha)) if whole else 1.0
    too_much = high - score.high > settings.noise_limit and score.conclusive
    stopped = Ending.NOISE if too_much else score.stopped
    note = Note.of("noise-in-exact-rates")
    return _widened(score, high, note, groups=tuple(groups), stopped=stopped)


def _widened(score: S, high: float, note: Note, **changes: Any) -> S:
    """The score with what running again left of its lower end, and with a higher upper one."""
    reruns = None if score.reruns is None else replace(score.reruns, explains=0.0)
    notes = (*score.notes, note)
    return replace(score, low=score.floor, high=high, reruns=reruns, notes=notes, **changes)


def is_weighed(part: Score | SearchResult) -> bool:
    """Whether noise was taken into account already."""
    return any(note.code in WEIGHED for note in part.notes)
