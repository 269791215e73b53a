"""How sure the number of a score is: its interval, that all was run, or why neither is so."""

from __future__ import annotations

from themis.results.model import CausalScore, GroupScore, Score
from themis.results.notes import Ending
from themis.settings import Stopping
from themis.show.words.notes import how_it_ended
from themis.show.words.units import apart_text
from themis.show.words.values import confidence_text, hundredths, percent_sure

ALL_RUN = {
    "inputs": "every input was run",
    "profile": "everybody in the profile was run",
    "rows": "every row was run",
}


def how(score: Score) -> str:
    """What stands behind a headline's number: its interval, or that there is none."""
    if score.method == "exact" and score.low == score.high:
        return exactly(score)
    ends = _interval(score)
    if score.method == "sampled" and score.stopping is Stopping.CERTIFIED:
        if score.family in (None, 1):
            return f"{percent_sure(score.confidence)} % confidence interval: {ends}"
        return f"interval {ends}, {certainty(score)}"
    return f"between {ends.replace('–', ' and ')}, {certainty(score)}"


def _interval(score: Score) -> str:
    """`11.9–13.9 %`, `0.8–10.8 points`."""
    if isinstance(score, GroupScore) and score.statistic == "mean":
        return f"{apart_text(score, score.low)}–{apart_text(score, score.high)}"
    unit = "points" if score.measure == "group" else "%"
    return f"{hundredths(score.low)}–{hundredths(score.high)} {unit}"


def exactly(score: Score) -> str:
    """Why a number is exact: all was run, or what was not could not change it."""
    if not score.conclusive:
        return f"exact, although not {ALL_RUN[score.population]}"
    if score.unknown:
        return f"exact, although {_why_unknown(score)}"
    return f"exact: {ALL_RUN[score.population]}"


def how_much_was_run(score: Score) -> str:
    """Of an exact method, whether all was run."""
    if not score.conclusive and score.stopped not in (Ending.NOISE, Ending.SPELLING):
        return f"not {ALL_RUN[score.population]}"
    if score.unknown:
        return f"{ALL_RUN[score.population]}, and {_why_unknown(score)}"
    if score.low != score.high:
        return f"{ALL_RUN[score.population]}, and another run may give other answers"
    return f"exact: {ALL_RUN[score.population]}"


def _why_unknown(score: Score) -> str:
    """Why some rows could have gone either way."""
    if any(note.code in ("only-spelling", "partly-spelling") for note in score.notes):
        return how_it_ended(Ending.SPELLING)
    return "some executions failed"


def certainty(score: Score) -> str:
    """How sure an interval is, or why there is one although all was run."""
    if score.method == "exact" and score.stopped.is_early:
        return "because the run ended early"
    if score.method == "exact":
        noisy = isinstance(score, CausalScore) and score.placebo is not None
        noisy = noisy or not score.unknown
        return "because of noise" if noisy else f"because {_why_unknown(score)}"
    if score.stopping is Stopping.PAPER:
        return "claimed by the paper's rule, not certified"
    return sure(score)


def sure(score: Score) -> str:
    """With which confidence an interval holds, and for how many together."""
    return confidence_text(score.confidence, score.family)
