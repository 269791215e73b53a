"""Which inputs fail: the condition that tells them from others best, checked on a separate half.

Inputs are looked at as they come, none left out and each once: people in random order, or the first
base inputs. What is known is not run again. One half suggests a condition, as for regions; on the
other half, which that has not seen, the interval of the share of failed inputs that meet it must
lie above that of the share of all inputs: fixed n, both ends together with the confidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from themis.engine.sampler import LEFT_SHARE, Sampler
from themis.inputs.columns import SHARED
from themis.inputs.keys import first_places
from themis.results.notes import Note
from themis.scores.explanations.regions import ROWS, SUGGESTING
from themis.scores.explanations.suggestions import Condition, meets_all, suggest_regions
from themis.statistics.intervals import Flags, Floats, clopper_pearson
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import FAILED, NOT_RUN, Cells

if TYPE_CHECKING:
    from themis.scores.people import PeopleRun

FEWEST = 10  # failed inputs, half of which suggest
LEAST_COVERAGE = 0.5  # of the failed inputs: a condition that fewer meet explains little

Codes = NDArray[np.int64]


def failed_inputs(
    sampler: Sampler, run: PeopleRun | None, confidence: float, *, least: int = 0
) -> Note | None:
    """How many inputs fail, and under which condition, if one is confirmed; None where none fail.

    Explaining it takes no more executions than were asked for so far, or `least`; of a subject
    outside of this process as many as other explanations. A condition that fewer than SHARED given
    people meet is not named, nor an error that fewer of them get.
    """
    codes, cells = _looked_at(sampler, run, least)
    failed = cells == FAILED
    heads = np.ones(len(codes)) if run is None else run.heads[: len(codes)]
    if not failed.any():
        return None
    schema = sampler.population.schema
    conditions = confirmed(codes, failed, sampler, confidence)
    inside = meets_all(conditions, codes)
    if not conditions or (run is not None and heads[inside].sum() < SHARED):
        return Note.of("inputs-fail", failed=int(failed.sum()), inputs=len(codes))
    return Note.of(
        "inputs-fail",
        failed=int(failed.sum()),
        inputs=len(codes),
        conditions=[each.text(schema) for each in sorted(conditions, key=lambda e: e.column)],
        inside=int((failed & inside).sum()),
        others=int((failed & ~inside).sum()),
        residents=int(inside.sum()),
        confidence=confidence,
        text=_common_text(sampler, codes[failed & inside], heads[failed & inside]),
    )


def confirmed(
    codes: Codes, failed: Flags, sampler: Sampler, confidence: float
) -> Sequence[Condition]:
    """The conditions that most failed inputs meet, and surely more of them than of all inputs.

    Where nothing tells which fail, some are given with a chance of at most 1 − confidence.
    """
    if failed.sum() < FEWEST:
        return ()
    first = np.arange(0, len(codes), 2)[:SUGGESTING]
    second = np.delete(np.arange(len(codes)), first)
    found = suggest_regions(codes[first], failed[first], None, sampler.population.schema, ())
    if not found:
        return ()
    inside, own = meets_all(found[0].conditions, codes[second]), failed[second]
    alpha, met = (1.0 - confidence) / 2, int((inside & own).sum())
    low, _ = clopper_pearson(met, int(own.sum()), alpha)
    _, most = clopper_pearson(int(inside.sum()), len(inside), alpha)
    is_sure = low > most and met >= LEAST_COVERAGE * own.sum()
    return found[0].conditions if is_sure else ()


def _looked_at(sampler: Sampler, run: PeopleRun | None, least: int) -> tuple[Codes, Cells]:
    """The first inputs that are known, or were run for this, without a gap; and their answers."""
    runner, most = sampler.runner, sampler.trials.allowance()
    if not runner.traits.external:
        left = runner.executions_left // LEFT_SHARE
        most = int(min(max(most, runner.asked, least), left, ROWS))
    elif runner.failures.total < FEWEST:  # each call may be expensive
        most = 0
    most = 0 if runner.out_of_time else most
    if run is None:
        codes = sampler.base.rows(0, min(max(most, SUGGESTING), ROWS))
        codes = codes[first_places(sampler.population.schema.input_keys.of(codes))]
        cells = sampler.trials.known(codes)
    else:
        codes, cells = run.codes[:ROWS], run.known_answers()[:ROWS]
    missing = np.flatnonzero(cells == NOT_RUN)
    if len(missing) and most:
        with suppress(BudgetEndedError):
            cells[missing], _ = sampler.trials.run(codes[missing], most)
    gaps = np.flatnonzero(cells == NOT_RUN)
    end = int(gaps[0]) if len(gaps) else len(cells)
    return codes[:end], cells[:end]


def _common_text(sampler: Sampler, codes: Codes, heads: Floats) -> str | None:
    """The first line of what most of these inputs fail with; of people only what several share."""
    log, counts = sampler.runner.failures, Counter[str]()
    texts = log.lines_of(codes, sampler.population.schema)
    for text, people in zip(texts, heads.tolist(), strict=True):
        counts.update({text: int(people)} if text else {})
    (text, people), *_ = counts.most_common(1) or [("", 0)]
    return text if text and (people >= SHARED or not log.personal) else None
