"""Remarks: what a reader should know besides the scores, and how to see them in a shell."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

import numpy
import scipy

from themis._version import __version__
from themis.engine.runner import Runner
from themis.inputs.characteristics import Value
from themis.results.model import CausalScore, Score
from themis.subjects.base import Subject
from themis.subjects.readings import Reading

FEW_RUNS = 20  # below this number nothing is odd about equal outputs
START_SHARE = 0.5  # from this share of the time on, starting processes is worth a word
START_RUNS = 50  # and from this number of executions on


def odd_outputs(runner: Runner, reading: Reading, favourable: Iterable[Value]) -> Iterator[str]:
    """What is suspicious about the outputs as a whole; the same whatever a cache knew before."""
    labels, failed = reading.labels, runner.failures.total
    if runner.asked - failed < FEW_RUNS or not labels.labels:
        return
    if reading.has_favourable and not labels.favourable.any():
        seen = ", ".join(repr(each) for each in labels.labels[:5])
        wanted = ", ".join(repr(each) for each in favourable)
        yield (
            f"no output was favourable: the subject gave {seen}; favourable is {wanted}. "
            "Group scores mean nothing until `favourable` names an output"
        )
    elif len(labels.labels) == 1:
        which = f"in all {runner.asked:,} executions"
        if failed:  # those made again failed as well, so that the rest has no number
            which = "in every execution that did not fail"
        yield f"the subject gave the same output, {labels.labels[0]!r}, {which}"


def slow_start(runner: Runner) -> Iterator[str]:
    """Whether most of the time went into starting processes; it differs from run to run."""
    share = runner.subject.start_up_share() if runner.executions >= START_RUNS else None
    if share is not None and share >= START_SHARE:
        times = f"{1 / (1 - share):.0f} times as fast" if share < 0.99 else "at once"
        yield (
            f"starting the program took at least {share:.0%} of the time: as a worker, which "
            f'is started once (kind = "worker"), the subject would answer {times}'
        )


@dataclass(frozen=True)
class Spent:
    """How often a subject was run, and for what."""

    executions: int
    cache_hits: int
    repeats: int
    explaining: int
    isolating: int

    @classmethod
    def of(cls, runner: Runner) -> Spent:
        """In all so far."""
        return cls(**{each.name: getattr(runner, each.name) for each in fields(cls)})

    def __sub__(self, before: Spent) -> Spent:
        names = [each.name for each in fields(self)]
        return Spent(*(getattr(self, name) - getattr(before, name) for name in names))


def timing_of(
    spent: Spent, subject: Subject, started: datetime, seconds: float, remarks: Iterable[str]
) -> dict[str, Any]:
    """What differs from run to run: times, the machine, and what is to be said of them."""
    timing: dict[str, Any] = {
        "started": started.isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "executor": executor_of(subject),
        "versions": versions(),
        "repeats": spent.repeats,
        "explaining": spent.explaining,
        "isolating": spent.isolating,
        "notes": list(remarks),
    }
    always = ("started", "seconds", "executor", "versions")
    return {name: value for name, value in timing.items() if value or name in always}


def executor_of(subject: Subject) -> str:
    """What runs the subject, in words."""
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
    """The score; the first two people have the lines that show it in a shell, if there are any."""
    if not isinstance(score, CausalScore) or not score.witnesses:
        return score
    first, *others = score.witnesses
    lines = tuple(line for row in first.inputs if (line := subject.reproduce(row)) is not None)
    return replace(score, witnesses=(replace(first, reproduce=lines), *others))
