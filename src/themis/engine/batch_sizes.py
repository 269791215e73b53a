"""Batch sizes: how many inputs are run together, and how many of them in one call.

What is run together ends together: whether the subject fails too often is asked once all of it is
done. So a run ends at the same input wherever and however fast it runs.
"""

from __future__ import annotations

import math

from themis.engine.pace import CallTimes
from themis.subjects.base import Traits

TOGETHER = 2**19  # inputs at most; those who run them at several places wait between two batches
FIRST_BATCH = 16  # of a subject that gets its inputs one by one
GROWTH_SHARE = 8  # after that, at most this part of all that was run before
CALL = 65_536  # inputs of one call at most
CALL_VALUES = 2**22  # and so many values: a table of numbers is then of 32 MB
ROW_CALL = 16_384  # of a row function: each is a dictionary
LONGEST_CALL = 1.0  # second of a call here, if inputs are several: it may not be interruptible
LONGEST_FIRST = 2.0  # the same of the first such call, if all the time of one alone is its own
LONGEST_GROWN = 2.0  # seconds of a call that is larger than those before, at most
MOST_GROWTH = 16  # times as many inputs has a call as the largest so far, where time is limited
CALL_SECONDS = 0.5  # calls of one input each are counted about this often
SPREAD_SECONDS = 2.0  # of a batch that others run, where time is limited, …
FAR_AWAY = 20.0  # … or if there is so much of it


def steady_size(traits: Traits, spent: int) -> int:
    """How many inputs to run together where time is no limit: it depends on counts alone."""
    if traits.vectorised:
        return TOGETHER
    return min(max(spent // GROWTH_SHARE, FIRST_BATCH), TOGETHER)


def timely_size(traits: Traits, seconds: float | None, left: float) -> int:
    """How many to run together so that a limit of time is met; `seconds` is what one takes."""
    if seconds is None:
        return 1
    most = CALL if traits.vectorised else ROW_CALL
    if traits.executor or (traits.vectorised and left >= FAR_AWAY):
        most, longest = TOGETHER, SPREAD_SECONDS
    else:
        longest = CALL_SECONDS
    # What is cut off at the deadline is lost: of single calls only half of the rest is planned.
    left = left if traits.vectorised else left / 2
    return min(most, max(int(min(longest, max(left, 0.0)) / max(seconds, 1e-9)), 1))


def call_size(traits: Traits, width: int, seconds: float | None) -> int:
    """How many of them are one call here, also of a subject that runs elsewhere unless it fails.

    An input has `width` values.

    Of functions that get their inputs one by one it has no consequences, and goes by their speed.
    """
    if traits.vectorised:
        return max(min(CALL, CALL_VALUES // width), 1)
    return FIRST_BATCH if seconds is None else timely_size(traits, seconds, math.inf)


def timely_call(seconds: float, *, alone: bool = False) -> float:
    """How many inputs a call may have where each takes so long; without end if all may.

    It is a power of two: how calls are cut shall not depend on every breath of the machine. Where
    only calls with one input `alone` are known, most of their time may be that of the call.
    """
    if alone:
        return max(LONGEST_FIRST / max(seconds, 1e-9), 1.0)
    if seconds * CALL <= LONGEST_CALL:
        return math.inf
    return 2.0 ** math.floor(math.log2(max(LONGEST_CALL / seconds, 1.0)))


def longest_call(traits: Traits, times: CallTimes, left: float) -> float:
    """How many inputs a call here may have so that an interrupt, and the limit, is met in time."""
    if not traits.is_one_call:
        return math.inf
    alone = times.largest[0] == 1 and math.isinf(left)
    size = max(timely_call(times.seconds_each, alone=alone), _grown(times, left))
    return size if math.isinf(left) else min(size, _most(times, left))


def limited_size(traits: Traits, times: CallTimes, left: float, runs: int) -> int:
    """How many inputs to run together in one call here, with this much time left."""
    each = runs * times.seconds_each if times.largest[0] else None
    size = max(timely_size(traits, each, left), _grown(times, left) // runs)
    return min(size, max(_most(times, left) // runs, 1))


def _most(times: CallTimes, left: float) -> int:
    """What a call may have at most, given the largest so far.

    Even if its inputs take four times as long where they are twice as many it ends in time, and in
    half of it where it has more than twice as many.
    """
    times_left = max(left, 0.0) / max(times.seconds_of_inputs, 1e-9)
    growth = math.sqrt(times_left)
    if growth >= 1:
        growth = min(max(math.sqrt(times_left / 2), min(math.floor(growth), 2)), MOST_GROWTH)
    return max(int(growth * max(times.largest[0], 1)), 1)


def _grown(times: CallTimes, left: float) -> int:
    return times.grown(min(LONGEST_GROWN, left / 2), left / 2)
