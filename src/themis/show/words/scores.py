"""How is noise said in plain words? The rate, and what it alone would give, as text.

How is a whole result said in plain words? Failures, what is unsure, cost, as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from themis.results.model import CausalScore, GroupScore, Noise, Placebo, Result, Score
from themis.results.verdicts import how_it_ended
from themis.show.words.values import count, duration, masked, percent, score_words, sure, visible


def noise_warning(noise: Noise) -> str:
    """That the subject does not always decide the same, how often, and what helps."""
    ends = f"between {percent(noise.low)} and {percent(noise.high)}, {sure(noise.confidence)}"
    each, more = "", "repeats = 5 takes the majority of five runs"
    if noise.repeats > 1:
        each = f", although each is the majority of {noise.repeats} runs"
        more = f"more than {noise.repeats} repeats may help"
    return (
        f"the subject does not always decide the same: {noise.differing:,} of "
        f"{count(noise.inputs, 'input')} got another decision when they were run again{each} "
        f"({percent(noise.rate)}; {ends}). {more}"
    )


def probe_sentence(noise: Noise) -> str:
    """That no noise was found, and how much there may be all the same."""
    return (
        f"{count(noise.inputs, 'input')} run again, none with another decision: at most "
        f"{percent(noise.high)} get one ({sure(noise.confidence)})"
    )


def placebo_sentence(placebo: Placebo) -> str:
    """The score that noise alone would give."""
    return (
        f"placebo {placebo.score:.3f}: with nothing changed, the decision changes for "
        f"{percent(placebo.score)} of people (between {percent(placebo.low)} and "
        f"{percent(placebo.high)})"
    )


MISSING_NAMED = 8  # scores named that were not measured


def failure_text(kind: str, failure: Mapping[str, Any]) -> str:
    """How often an execution failed in this way, with an example."""
    person = ", ".join(f"{visible(n)} {visible(v)}" for n, v in failure["input"].items())
    return (
        f"{visible(kind)} {count(failure['count'], 'time')}, e.g. "
        f"{visible(failure['message'])} for the input: {person}"
    )


def cut_off(result: Result) -> str | None:
    """That a run may have ended before all scores were begun, and why."""
    if result.stopped not in ("failed", "interrupted"):
        return None
    why = f"failed: {how_it_ended('failed')}" if result.stopped == "failed" else "was interrupted"
    return f"the run {why}; what was not measured until then is missing"


def inconclusive(scores: Sequence[Score]) -> Iterator[str]:
    """Which scores say less than was asked, and why."""
    measured = [score for score in scores if score.samples]
    early = sum(score.stopped in ("budget", "interrupted") for score in measured)
    noisy = sum(score.stopped == "noise" for score in measured)
    total = count(len(scores), "score")
    reasons = {"the run ended early": early, how_it_ended("noise"): noisy}
    for reason, unsure in reasons.items():
        if unsure:
            yield f"{unsure} of {total}: the interval is wider than asked, because {reason}"
    for stopped in ("budget", "interrupted"):
        missing = [each for each in scores if not each.samples and each.stopped == stopped]
        if missing:
            reason = f"because {how_it_ended(stopped)}"
            yield f"{len(missing)} of {total}: not measured, {reason}: {_names(missing)}"


def _names(scores: Sequence[Score]) -> str:
    """Which scores these are; the first of them, where they are many."""
    more = [f"{len(scores) - MISSING_NAMED:,} more"] if len(scores) > MISSING_NAMED else []
    return "; ".join([*map(score_words, scores[:MISSING_NAMED]), *more])


def hidden_changes(scores: Sequence[Score]) -> str | None:
    """What only both scores of a set show: equal rates that hide changed decisions."""
    causal = [each for each in scores if isinstance(each, CausalScore)]
    group = [each for each in scores if isinstance(each, GroupScore)]
    pairs = ((one, other) for one in causal for other in group if _of_the_same(one, other))
    return next(filter(None, (masked(one, other) for one, other in pairs)), None)


def _of_the_same(one: Score, other: Score) -> bool:
    """Whether two scores are about the same output of the same people."""
    return (one.output, one.population) == (other.output, other.population)


def by_set(scores: Sequence[Score]) -> dict[tuple[str, ...], list[Score]]:
    """The scores of each set, in the order of asking."""
    sets: dict[tuple[str, ...], list[Score]] = {}
    for score in scores:
        sets.setdefault(score.against, []).append(score)
    return sets


def cost_text(result: Result) -> str:
    """What the result cost: `1,404 executions · 0.8 s · seed 42`."""
    parts = [count(result.executions, "execution")]
    if result.cache_hits:
        parts.append(f"{result.cache_hits:,} answered from the cache")
    if "seconds" in result.timing:
        parts.append(duration(result.timing["seconds"]))
    return " · ".join([*parts, f"seed {result.seed}"])
