"""How is noise said in plain words? The rate, and what it alone would give, as text."""

from __future__ import annotations

from themis.results.model import Noise, Placebo
from themis.show.words.values import count, percent, sure


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
