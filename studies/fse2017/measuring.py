"""Every figure's numbers, measured with Themis, as plain dictionaries.

Only the public interface of the package is used. Each function is one piece of work that a process
of its own can do; the same seed gives the same numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

import themis

from . import loans
from .bayes import massaged_labels
from .brute_force import plain_scores
from .data import SEED, People, balanced, schema
from .instances import INSTANCES, Instance, subject
from .linear import (
    Gamma,
    accuracy,
    largest_covariance,
    logistic_regression,
    support_vector_machine,
)
from .machines import Machine, Points, Stored, predict
from .paper_numbers import FIGURE_2, FIGURE_3
from .relabelling import discrimination, unexplained
from .trees import conditional_labels, plain_tree

CONFIDENCE, ERROR, THRESHOLD = 0.99, 0.05, 0.75  # of Figures 2 and 3 of the paper
VARIANTS: tuple[Gamma, ...] = ("scale", "auto")  # of system H on codes that are not standardised
NOTEWORTHY = 0.05  # the least score that Figure 2 shows
SENSITIVE = ("age", "country", "gender", "marital", "race", "relation")
SEARCHED = {  # of these all subsets are searched in every way
    "census": ("marital", "race", "gender", "gain"),
    "credit": ("status", "history", "savings", "employment", "gender"),
}
Numbers = dict[str, Any]


@dataclass(frozen=True)
class Effort:
    """How precise, and how much of it."""

    name: str
    score_error: float
    people: int  # of the plain sample that checks a score
    trained_on: int | None  # people of the sample, at most
    max_size: int | None  # of the sets of Figure 3
    workers: tuple[str, ...]
    figure_2: tuple[str, ...]
    figure_3: tuple[str, ...]
    sweep: tuple[str, ...]
    thresholds: tuple[float, ...]
    max_executions: int = 20_000_000  # of one search, so that nothing is endless


FULL = Effort(
    name="full",
    score_error=0.002,
    people=400_000,
    trained_on=None,
    max_size=None,
    workers=tuple(INSTANCES),
    figure_2=tuple(INSTANCES),
    figure_3=tuple(FIGURE_3),
    sweep=("B-credit-gender", "F-credit"),
    thresholds=(0.9, 0.7, 0.6, 0.5, 0.3, 0.1),
)
QUICK = replace(
    FULL,
    name="quick",
    score_error=0.01,
    people=40_000,
    trained_on=3_000,
    max_size=2,
    workers=("A-credit-gender", "B-census-gender", "H-credit"),  # the three forms of machines
    figure_2=("B-census-gender", "D-census-race"),
    figure_3=("B-credit-gender",),
    sweep=("B-credit-gender",),
    thresholds=(0.9, 0.5, 0.1),
)


def audit(instance: Instance, stored: Stored | None = None, **options: Any) -> themis.Audit:
    """A fresh audit of a stored instance, or of a variant; it remembers nothing of any other.

    Instances are functions of their input, so that nothing needs to be run again.
    """
    return themis.Audit(
        subject(instance.stored() if stored is None else stored),
        schema(instance.source),
        deterministic=True,
        **{"seed": SEED, "confidence": CONFIDENCE, "error": ERROR, **options},
    )


def train(name: str, effort: Effort) -> Numbers:
    """Train and store an instance; what its method promises about people, and its accuracy."""
    instance = INSTANCES[name]
    sample, others = _trainees(instance, effort), balanced(instance.data)[1]
    instance.write(people=sample)
    machine = instance.stored().machine
    decided = predict(machine, sample.codes)
    row: Numbers = {
        "instance": name,
        "accuracy": accuracy(decided, sample),
        "accuracy_others": accuracy(predict(machine, others.codes), others),
        "people": len(sample),
    }
    for sensitive in ("race", "gender"):
        if sensitive in instance.source.names:
            deprived = sample.deprived(sensitive)
            row[f"before_{sensitive}"] = discrimination(sample.good, deprived)
            row[f"after_{sensitive}"] = discrimination(decided, deprived)
    if instance.sensitive is not None:
        row["promise"] = _promise(instance, sample, machine)
    return row


def _trainees(instance: Instance, effort: Effort) -> People:
    """The people to train on: the balanced sample, or some of it."""
    sample, _ = balanced(instance.data)
    chosen = np.random.default_rng(SEED).permutation(len(sample))[: effort.trained_on]
    return sample.take(np.sort(chosen))


def _promise(instance: Instance, sample: People, machine: Machine) -> Numbers:
    """What the method of an aware instance bounds on its training data, before and after."""
    sensitive = instance.sensitive or ""
    deprived = sample.deprived(sensitive)
    match instance.system:
        case "A":
            plain = logistic_regression(sample)
            assert isinstance(machine, Points)
            what, before, after = (
                "covariance",
                largest_covariance(plain, sample, sensitive),
                largest_covariance(machine, sample, sensitive),
            )
        case "B":
            decided = predict(machine, sample.codes)
            what, before, after = (
                "discrimination of decisions",
                discrimination(predict(plain_tree(sample), sample.codes), deprived),
                discrimination(decided, deprived),
            )
        case "C":
            labels = massaged_labels(sample, sensitive)
            what, before, after = (
                "discrimination of labels",
                discrimination(sample.good, deprived),
                discrimination(labels, deprived),
            )
        case _:
            explanatory = sample.codes[:, sample.source.place(sample.source.explanatory)]
            labels = conditional_labels(sample, sensitive)
            what, before, after = (
                "unexplained discrimination of labels",
                unexplained(sample.good, deprived, explanatory),
                unexplained(labels, deprived, explanatory),
            )
    return {"what": what, "before": before, "after": after}


def figure_1(name: str, effort: Effort) -> list[Numbers]:
    """Group and causal scores against race and gender: ours, and the paper's rule as printed."""
    instance, rows = INSTANCES[name], []
    for against in ("race", "gender"):
        if against not in instance.source.names:
            continue
        # An audit for each score: within one, the second would be answered by what the first ran.
        cells = {
            "group": audit(instance, error=effort.score_error).group(against),
            "causal": audit(instance, error=effort.score_error).causal(against),
        }
        printed = audit(instance, stopping="paper")
        plain = plain_scores(instance.stored(), (against,), _people(instance, effort), SEED + 1)
        rows.append(
            {
                "instance": name,
                "against": against,
                **{measure: _score(score) for measure, score in cells.items()},
                "paper_rule": {
                    "group": _score(printed.group(against)),
                    "causal": _score(printed.causal(against)),
                },
                "plain": asdict(plain),
                "agree": {
                    "group": agrees(cells["group"], plain.group, plain.group_margin),
                    "causal": agrees(cells["causal"], plain.causal, plain.causal_margin),
                },
            }
        )
    return rows


def worker(name: str, effort: Effort) -> Numbers:
    """The instance as a program of its own: the same scores as within this process?"""
    instance = INSTANCES[name]
    with themis.Audit.from_file(
        instance.path.parent / "worker.toml",
        jobs=1,
        cache=False,
        seed=SEED,
        error=ERROR,
        deterministic=True,
    ) as outside:
        theirs = outside.causal("gender")
    ours = audit(instance, cost="executions").causal("gender")  # as a worker is run: the same looks
    same = (theirs.score, theirs.samples) == (ours.score, ours.samples)
    return {"instance": name, "same": same, "executions": theirs.executions}


def variant(name: str, gamma: Gamma, effort: Effort) -> list[Numbers]:
    """System H on codes that are not standardised: its scores against race and gender."""
    instance = INSTANCES[name]
    people = _trainees(instance, effort)
    machine = support_vector_machine(people, standardised=False, gamma=gamma)
    stored = Stored(machine, instance.source.names, instance.source.sizes)
    return [
        {
            "instance": name,
            "gamma": gamma,
            "against": against,
            "accuracy": accuracy(predict(machine, people.codes), people),
            "group": _score(audit(instance, stored, error=effort.score_error).group(against)),
            "causal": _score(audit(instance, stored, error=effort.score_error).causal(against)),
        }
        for against in ("race", "gender")
        if against in instance.source.names
    ]


def figure_2(name: str, effort: Effort) -> Numbers:
    """The sets above 75 %, and the sensitive parts of them that are above 5 %."""
    instance = INSTANCES[name]
    one = audit(instance, max_executions=effort.max_executions)
    pairs = one.search(THRESHOLD, max_size=2)
    wider = one.search(THRESHOLD, among=SEARCHED[instance.data], max_size=effort.max_size)
    found = sorted({*pairs.found, *wider.found}, key=lambda each: (len(each), each))
    minimal = [each for each in found if not any(set(other) < set(each) for other in found)]
    parts = {part for each in minimal for part in _sensitive_parts(each)}
    scores = [one.causal(*part, error=0.01) for part in sorted(parts, key=lambda p: (len(p), p))]
    listed = [against for label, against, _ in FIGURE_2 if label == name]
    return {
        "instance": name,
        "found": [list(each) for each in minimal],
        "undecided": len(pairs.undecided) + len(wider.undecided),
        "open": pairs.sets_open + wider.sets_open,
        "executions": pairs.executions + wider.executions,
        "sets": pairs.sets_total,
        "implied": _implied(minimal, instance.source.names),
        "all_sets": 2 ** len(instance.source.names) - 1,
        "parts": [_score(score) for score in scores if score.score >= NOTEWORTHY],
        "listed": [_score(one.causal(*against, error=0.01)) for against in listed],
    }


def figure_3(name: str, measure: Any, effort: Effort) -> Numbers:
    """Executions that a search for all sets above 75 % takes: three ways."""
    return {"instance": name, **_searches(INSTANCES[name], measure, THRESHOLD, effort, full=True)}


def sweep(name: str, threshold: float, effort: Effort) -> Numbers:
    """Executions of a pruned search at this threshold: the paper's, and ours."""
    return {"instance": name, **_searches(INSTANCES[name], "causal", threshold, effort, full=False)}


def _searches(
    instance: Instance, measure: Any, threshold: float, effort: Effort, *, full: bool
) -> Numbers:
    among = SEARCHED[instance.data]
    options = {"among": among, "max_size": effort.max_size, "max_executions": effort.max_executions}

    def search(stopping: Any, prune: bool) -> Numbers:
        fresh = audit(instance, stopping=stopping)
        found = fresh.search(threshold, measure, prune=prune, **options)
        return {
            "executions": found.executions,
            "sets": found.sets_tested,
            "sets_total": found.sets_total,
            "found": [list(each) for each in found.found],
            "undecided": len(found.undecided),
            "open": found.sets_open,
            "stopped": found.stopped,
        }

    return {
        "measure": measure,
        "threshold": threshold,
        **({"unpruned": search("paper", False)} if full else {}),
        "pruned": search("paper", True),
        "ours": search("certified", True),
    }


def section_2(effort: Effort) -> list[Numbers]:
    """The scores of the loan examples."""
    rows = []
    for example in loans.EXAMPLES:
        group, causal = loans.measure(example, seed=SEED, error=effort.score_error)
        rows.append(
            {
                "title": example.title,
                "against": example.against,
                "implied": {"group": example.group, "causal": example.causal},
                "group": _score(group),
                "causal": _score(causal),
            }
        )
    return rows


def _people(instance: Instance, effort: Effort) -> int:
    return effort.people // 10 if instance.name == "H-census" else effort.people  # 8,000 vectors


def _score(score: Any) -> Numbers:
    kept = ("score", "low", "high", "executions", "samples", "method", "stopped")
    return {"against": list(score.against), **{name: getattr(score, name) for name in kept}}


def agrees(score: Any, truth: float, margin: float) -> bool:
    """Whether a certified interval and a plain sample can both be right."""
    return bool(score.low - margin <= truth <= score.high + margin)


def _sensitive_parts(against: Sequence[str]) -> list[tuple[str, ...]]:
    """The sensitive characteristics of a set: one by one, in pairs, and all of them."""
    own = tuple(sorted(name for name in against if name in SENSITIVE))
    sizes = {1, 2, len(own)} - {0}
    return [part for size in sorted(sizes) for part in itertools.combinations(own, size)]


def _implied(found: list[tuple[str, ...]], names: Sequence[str]) -> int:
    """How many of all sets of characteristics contain a found one."""
    every = np.arange(1 << len(names))
    implied = np.zeros(len(every), dtype=bool)
    for each in found:
        mask = sum(1 << names.index(name) for name in each)
        implied |= (every & mask) == mask
    return int(implied.sum())
