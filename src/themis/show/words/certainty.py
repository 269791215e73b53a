"""How sure the number of a score is: its interval, that all was run, or why neither is so."""

from __future__ import annotations

from themis.results.finding import Sure, finding
from themis.results.model import GroupScore, Score
from themis.results.notes import Ending
from themis.show.words.naming import apart_text
from themis.show.words.notes import how_it_ended
from themis.show.words.values import confidence_text, hundredths, percent_sure

ALL_RUN = {
    "inputs": "every input was run",
    "profile": "everybody in the profile was run",
    "rows": "every row was run",
}
CONTRADICTED = how_it_ended(Ending.INCONSISTENT)
FAILED = "some executions failed"
WORDS: dict[Sure, tuple[str, str, str]] = {
    # beside one number, beside a method, and beside an interval
    "exact": ("exact: {all_run}", "exact: {all_run}", "exact: {all_run}"),
    "early": ("exact, although not {all_run}", "not {all_run}", "because the run ended early"),
    "failures": (f"exact, although {FAILED}", f"{{all_run}}, and {FAILED}", f"because {FAILED}"),
    "noise": (
        "exact: {all_run}",
        "{all_run}, and another run may give other answers",
        "because of noise",
    ),
    "inconsistent": (CONTRADICTED, CONTRADICTED, f"because {CONTRADICTED}"),
}


def how(score: Score) -> str:
    """What stands behind a headline's number: its interval, or that there is none."""
    if score.method == "exact" and score.low == score.high:
        return _words(score, 0)
    if finding(score).sure != "confidence":
        return f"between {interval_text(score, ' and ')}, {certainty(score)}"
    if score.family in (None, 1):
        return f"{percent_sure(score.confidence)} % confidence interval: {interval_text(score)}"
    return f"interval {interval_text(score)}, {certainty(score)}"


def interval_text(score: Score, dash: str = "–") -> str:
    """`11.9–13.9 %`, `0.8–10.8 points`."""
    if isinstance(score, GroupScore) and score.statistic == "mean":
        return f"{apart_text(score, score.low, 'down')}{dash}{apart_text(score, score.high, 'up')}"
    unit = "%" if score.measure == "causal" else "points"
    return f"{hundredths(score.low, 'down')}{dash}{hundredths(score.high, 'up')} {unit}"


def how_much_was_run(score: Score) -> str:
    """Of an exact method, whether all was run."""
    return _words(score, 1)


def certainty(score: Score) -> str:
    """How sure an interval is, or why there is one although all was run."""
    if score.method == "exact":
        return _words(score, 2)
    if finding(score).sure == "paper":
        return "claimed by the paper's rule, not certified"
    return sure(score)


def _words(score: Score, beside: int) -> str:
    return WORDS[finding(score).sure][beside].format(all_run=ALL_RUN[score.population])


def sure(score: Score) -> str:
    """With which confidence an interval holds, and for how many together."""
    return confidence_text(score.confidence, score.family)
