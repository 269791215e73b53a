"""The finding of each score, made once: a difference, none, or why neither is known.

Every sentence, table, picture and verdict word goes by it, so that no two of them disagree. Limits
are held against scores in `verdicts`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from themis.results.model import ROUNDING, CausalScore, GroupScore, Score
from themis.results.notes import Ending, Note
from themis.results.withheld import is_told, whole_of
from themis.settings import Stopping

State: TypeAlias = Literal["grave", "calm", "open"]  # a difference, none, not known
Kind: TypeAlias = Literal[
    "unmeasured",  # the run ended before
    "unread",  # nothing of the set is given to the subject: 0 by construction
    "single",  # there is one value to change, or one group
    "alone",  # one group alone has a decision
    "idle",  # no output was favourable, or every one: rates tell nothing
    "unknown",  # failures left nothing to compare
    "never",  # surely no difference at all
    "none",  # no difference seen, as precisely as asked
    "undecided",  # no difference seen, less precisely
    "untried",  # no difference seen, but not all assignments were tried
    "noise",  # a difference that noise alone may explain
    "seen",  # a difference that is not certain
    "least",  # a certain difference, of which only a lower bound is known
    "differs",  # a certain difference
]
Sure: TypeAlias = Literal[
    "exact",  # all was run
    "confidence",  # sampled: the interval holds with the stated confidence
    "paper",  # sampled by a rule that certifies nothing
    "inconsistent",  # the answers contradict each other
    "early",  # not all was run
    "failures",  # all was run, and some executions failed
    "noise",  # all was run, and another run may answer differently
]
STATES: dict[Kind, State] = {
    "never": "calm",
    "none": "calm",
    "least": "grave",
    "differs": "grave",
}  # of others: open


@dataclass(frozen=True)
class Finding:
    """What a score found: which kind of sentence it is, and the numbers that may be shown."""

    kind: Kind
    state: State
    value: float | None  # what was observed; None: it would tell of few people
    ends: tuple[float, float] | None  # low ≤ truth ≤ high
    sure: Sure

    @property
    def is_exact(self) -> bool:
        """Whether its number, if it is shown, has no interval."""
        return self.ends is not None and self.ends[0] == self.ends[1]


def finding(score: Score) -> Finding:
    """The finding of a score; of one that documents may show, what the exact numbers decided."""
    whole, told = whole_of(score), is_told(score)
    kind = _kind(whole)
    state = STATES.get(kind, "open")
    if kind == "never" and not is_settled(whole):
        state = "open"
    return Finding(
        kind=kind,
        state=state,
        value=score.score if told else None,
        ends=(score.low, score.high) if told else None,
        sure=_sure(whole),
    )


def _kind(score: Score) -> Kind:
    if by_construction(score) is not None:
        return "unread"
    if not score.samples:
        return "unmeasured"
    if score.low > 0:
        return "least" if score.lower_bound else "differs"
    if nothing_compared(score) is not None:
        return "single"
    return _of_rates(score) if isinstance(score, GroupScore) else _of_changes(score)


def _of_changes(score: Score) -> Kind:
    """Of a causal score that may be 0."""
    if score.lower_bound:
        return "untried"
    if score.score > 0:
        noisy = isinstance(score, CausalScore) and score.placebo is not None
        return "noise" if noisy else "seen"
    if score.high == 0:
        return "never"
    if score.unknown and (score.high >= 1 if score.method == "exact" else _is_all_unknown(score)):
        return "unknown"
    return "none" if is_settled(score) else "undecided"


def _is_all_unknown(score: Score) -> bool:
    return score.unknown >= score.samples


def _of_rates(score: GroupScore) -> Kind:
    """Of groups that may be equal."""
    if idle_favour(score) is not None:
        return "idle"
    if len(score.groups) < 2:
        return "alone" if score.groups else "unknown"
    if score.high == 0:
        return "never"
    if score.lower_bound:
        return "untried"
    return "none" if is_settled(score) else "undecided"


def _sure(score: Score) -> Sure:
    if score.method == "sampled":
        return "paper" if score.stopping is Stopping.PAPER else "confidence"
    if score.stopped is Ending.INCONSISTENT:
        return "inconsistent"
    if not score.conclusive and score.stopped is not Ending.NOISE:
        return "early"
    noisy = isinstance(score, CausalScore) and score.placebo is not None
    if score.unknown and not noisy:
        return "failures"
    return "exact" if score.low == score.high else "noise"


def is_settled(score: Score) -> bool:
    """Whether a score is as precise as asked; failures and noise widen one that is exact, too."""
    is_wide = score.high - score.low > 2 * score.error + ROUNDING
    fails = score.unknown > 0 and not score.lower_bound
    return score.conclusive and not (is_wide and (score.method == "exact" or fails))


def nobody_favoured(score: Score) -> bool:
    """Whether no output was favourable, so that groups can't differ whatever the subject does."""
    if not isinstance(score, GroupScore) or score.statistic != "rate":
        return False
    return all(group.rate == 0 for group in score.groups)


def idle_favour(score: Score) -> Literal["no", "every"] | None:
    """Whether no output was favourable, or every one, so that groups can't differ by their rates.

    That all given people are favoured is a fact about them; of generated inputs it is suspicious.
    """
    score = whole_of(score)
    if not isinstance(score, GroupScore) or score.statistic != "rate" or len(score.groups) < 2:
        return None
    if nobody_favoured(score):
        return "no"
    everybody = score.population == "inputs" and all(each.rate == 1 for each in score.groups)
    return "every" if everybody else None


def by_construction(score: Score) -> Note | None:
    """Why a score is 0 whatever the subject does: it is not given the set; None if it is."""
    codes = ("not-an-input", "groups-need-people")
    return next((each for each in score.notes if each.code in codes), None)


def nothing_compared(score: Score) -> Note | None:
    """Why a score says nothing: there is one value to change, or one group; None if it does."""
    if isinstance(score, GroupScore):
        alone = score.samples and len(score.groups) == 1 and score.high == 0
        return Note.of("nothing-to-compare", against=score.against) if alone else None
    return next((each for each in score.notes if each.code == "nothing-to-change"), None)
