"""Results: what was measured, in a form that can be saved, compared and shown."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from themis._version import __version__
from themis.errors import count_of
from themis.results.hooks import Plotted, hook, withheld_repr
from themis.results.notes import Ending, Note, in_units, plain
from themis.results.outcomes import Errors, Observed, Outcomes, Proxy
from themis.results.parts import (
    Accepted,
    Account,
    Crossing,
    Group,
    Harm,
    Inventory,
    Joint,
    Naming,
    Noise,
    Placebo,
    Region,
    Reruns,
    Share,
    TestedSet,
    Witness,
)
from themis.settings import Stopping

ROUNDING = 1e-9  # a saved result has twelve digits
FORMAT = 2  # of the JSON result
FOUR_FIFTHS = 0.8  # the line below which an impact ratio is taken as evidence of adverse impact

Measure = Literal["causal", "group", "excess"]
Verdict = Literal["holds", "violated", "accepted", "not enough evidence"]

SEARCH_KEYS = {"found": "minimal_sets", "tested": "sets"}  # fields of a search: keys of the JSON


@dataclass(frozen=True, kw_only=True)
class Score(Plotted):
    """A score with its interval: with the stated confidence, low ≤ truth ≤ high.

    `method` is "exact" when every input was run, else "sampled". With `lower_bound` only the
    lower end says anything: some assignments were too many to try.
    """

    measure: Measure
    against: tuple[str, ...]
    score: float
    low: float
    high: float
    confidence: float
    error: float
    method: Literal["exact", "sampled"]
    samples: int
    stopped: Ending
    stopping: Stopping
    executions: int  # all that were made for it, the sum of its account
    cache_hits: int
    lower_bound: bool = False
    unknown: int = 0  # rows that could have gone either way: failures, or too many variants
    notes: tuple[Note, ...] = field(default=(), repr=False)
    reruns: Reruns | None = None  # None: nothing was run again
    output: str | None = None  # the output's name, where a subject has several
    naming: Naming | None = field(default=None, compare=False, repr=False)  # its audit's words
    distance: str = "exact"  # what counts as another output
    scale: tuple[float, float] | None = None  # what 0 and 1 stand for, of numbers that are averaged
    population: Literal["inputs", "profile", "rows"] = "inputs"  # of whom this is the score
    counterfactuals: Literal["generated", "within"] = "generated"  # made up, or among the rows
    family: int | None = None  # so many hold together with this confidence; None: each by itself
    account: Account | None = None  # None: not known
    followed: tuple[str, ...] = ()  # characteristics that were changed with those of the set
    # Of one as documents may show it, whose hidden numbers are None: the one to decide with.
    whole: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "notes", in_units(self, self.notes))

    @property
    def is_checked(self) -> bool:
        """Whether what it rests on was run again, if there is a finding at all."""
        return self.counts_noise or self.reruns is not None or self.low <= 0

    @property
    def counts_noise(self) -> bool:
        """Whether asking again is part of what is measured."""
        return False

    @property
    def floor(self) -> float:
        """The score is at least this although the subject may be noisy: what a verdict rests on."""
        if self.counts_noise:
            return self.low
        return 0.0 if self.reruns is None else max(0.0, self.low - self.reruns.explains)

    @property
    def conclusive(self) -> bool:
        """Whether the run came to its end, and was not cut off by its budget or by hand."""
        return self.stopped.is_conclusive

    def __str__(self) -> str:
        about, shown = (
            f"{self.measure} score against {','.join(self.against)}",
            hook("withheld")(self),
        )
        if shown.low is None:
            return f"{about}: not shown, as it would tell of few people"
        if self.method == "exact" and not self.samples:
            return f"{about}: not given to the subject, 0 by construction"
        bound = "at least " if self.lower_bound else ""
        together = "" if self.family in (None, 1) else f" for all {self.family} together"
        return (
            f"{about}: {bound}{self.score:.3f} "
            f"[{self.low:.3f}, {self.high:.3f}] at {100 * self.confidence:.10g}%{together} "
            f"({self.method}, {count_of(self.executions, 'execution')})"
        )

    def assert_below(self, limit: float) -> None:
        """Pass if the score is shown to be at most the limit.

        Raises DiscriminationError if it is shown to be above, InconclusiveError if it may be.
        """
        __tracebackhide__ = True
        hook("assert_below")(self, limit)

    def assert_conclusive(self) -> None:
        """Raise InconclusiveError if the run was cut off, and the interval is wider than asked."""
        __tracebackhide__ = True
        hook("assert_conclusive")(self)

    def to_dict(self) -> dict[str, Any]:
        """The score as the JSON result has it."""
        data = {"witnesses": [], "groups": [], **plain(self)}  # each is of one kind alone
        if self.whole is not None:
            data["withheld"] = "few-people"
        return data


@dataclass(frozen=True, kw_only=True)
class CausalScore(Score):
    """The fraction of inputs whose output changes when only the set changes (Def. 3.7)."""

    witnesses: tuple[Witness, ...] = field(default=(), repr=False)  # logs show nobody's row
    flip_rate: float | None = None
    direction: tuple[Harm, ...] = ()
    crossing: Crossing | None = None  # None: every change is one, or nothing is favourable
    regions: tuple[Region, ...] = ()
    placebo: Placebo | None = None
    joint: Joint | None = None  # of a set of two: what only both change
    of_few: bool = False  # an average that would tell what fewer than five of the given people get

    __repr__ = withheld_repr


@dataclass(frozen=True, kw_only=True)
class GroupScore(Score):
    """The largest difference between the groups' rates of favourable decisions (Def. 3.5, 3.6)."""

    groups: tuple[Group, ...] = field(default=(), repr=False)  # nor who is a group alone
    statistic: Literal["rate", "mean"] = "rate"  # of favourable outputs, or of a number's values
    impact_ratio: float | None = None
    impact_ratio_low: float | None = None
    impact_ratio_high: float | None = None
    # Of given people who were all run: its ends if they are a random sample of others.
    impact_ratio_of_others: tuple[float, float] | None = None
    favours: str | None = None  # what counted as favourable; None of means

    __repr__ = withheld_repr

    @property
    def most_favoured(self) -> Group | None:
        """The group with the highest observed rate; of several the largest that is named."""
        return max(self.groups, key=lambda group: (group.rate, *group.weight), default=None)

    @property
    def least_favoured(self) -> Group | None:
        """The group with the lowest observed rate; of several the largest that is named.

        Another than the most favoured, where there is one.
        """
        best = self.most_favoured
        others = [each for each in reversed(self.groups) if each is not best] or self.groups
        return max(others, key=lambda group: (-group.rate, *group.weight), default=None)

    @property
    def as_sample(self) -> tuple[float, float] | None:
        """The ends of the impact ratio of others like these people; None unless theirs is exact."""
        is_exact = self.impact_ratio_low == self.impact_ratio_high
        return self.impact_ratio_of_others if is_exact else None

    @property
    def four_fifths(self) -> Literal["below", "above", "unclear"]:
        """Where the impact ratio is shown to be: below four fifths, above, or unclear."""
        if self.impact_ratio_high is not None and self.impact_ratio_high < FOUR_FIFTHS:
            return "below"
        if self.impact_ratio_low is not None and self.impact_ratio_low >= FOUR_FIFTHS:
            return "above"
        return "unclear"


@dataclass(frozen=True, kw_only=True)
class ExcessScore(Score):
    """How often a change of the set alters decisions beyond what asking again does.

    Of subjects that answer at random: `across` minus `within`, of the `pair` of assignments for
    which that is largest. Each of them, and `gap`, has ends of its own.
    """

    pair: tuple[dict[str, Any], dict[str, Any]] | None = None  # None: nothing could be compared
    within: Share | None = None  # how often the same input, asked again, got another decision
    across: Share | None = None  # how often it did when the first of the pair became the second
    gap: Share | None = None  # the first one's rate of favourable decisions minus the second's
    times: int = 2  # that each input of a context was asked, in the end

    @property
    def counts_noise(self) -> bool:
        """It does: what it rests on is run again as it is measured."""
        return True

    __repr__ = withheld_repr


@dataclass(frozen=True, kw_only=True)
class SearchResult(Plotted):
    """The minimal sets that reach a threshold (Def. 3.9); at 0, those with a score above it.

    With the stated confidence, all at once: every found set has a score above threshold − error,
    and every set above threshold + error contains a found or an undecided one. Where every input
    was run, without the error.
    """

    measure: Measure
    threshold: float
    confidence: float
    error: float
    minimal_sets: tuple[Score, ...]  # the found sets with their estimated scores
    found: tuple[tuple[str, ...], ...]
    undecided: tuple[tuple[str, ...], ...]
    tested: tuple[TestedSet, ...]
    sets_total: int
    sets_tested: int
    sets_pruned: int
    sets_open: int  # neither tested nor pruned when the budget ended
    among: tuple[str, ...]
    max_size: int
    method: Literal["exact", "sampled"]
    stopped: Ending
    stopping: Stopping
    executions: int
    cache_hits: int
    notes: tuple[Note, ...] = field(default=(), repr=False)
    output: str | None = None  # as of the scores of its sets
    distance: str = "exact"
    scale: tuple[float, float] | None = None
    statistic: Literal["rate", "mean"] = "rate"
    account: Account | None = None  # as of a score
    family: int | None = None  # so many lists and scores hold together; None: each by itself
    decide_only: bool = False  # the found sets were not measured: they have no scores
    population: Literal["inputs", "profile"] = "inputs"  # whose decisions are looked at
    favours: str | None = None  # as of a group score

    __repr__ = withheld_repr

    def __post_init__(self) -> None:
        told = ((each, in_units(self, each.reasons)) for each in self.tested)
        tested = (e if e.reasons == own else replace(e, reasons=own) for e, own in told)
        object.__setattr__(self, "tested", tuple(tested))
        object.__setattr__(self, "notes", in_units(self, self.notes))

    @property
    def counts_noise(self) -> bool:
        """Whether asking again is part of what is measured, as of an `ExcessScore`."""
        return self.measure == "excess"

    @property
    def ties(self) -> tuple[tuple[str, ...], ...]:
        """The found sets whose score, which is exact, equals the threshold."""
        tied = {each.against for each in self.tested if each.is_tie}
        return tuple(names for names in self.found if names in tied)

    @property
    def conclusive(self) -> bool:
        """Whether every set was decided."""
        return self.stopped is Ending.DONE and not self.undecided

    def why(self, *against: str) -> str:
        """Why a set is in or out of the answer."""
        return str(hook("why")(self, *against))

    def assert_nothing_found(self) -> None:
        """Pass if it is shown that no set is above the threshold (+ error, if sampled).

        Raises DiscriminationError if one is shown to be above, InconclusiveError if one may be.
        """
        __tracebackhide__ = True
        hook("assert_nothing_found")(self)

    def to_dict(self) -> dict[str, Any]:
        """The search as the JSON result has it."""
        own = plain(replace(self, minimal_sets=()))
        del own["minimal_sets"], own["cache_hits"]  # the scores stand beside it
        return {SEARCH_KEYS.get(name, name): each for name, each in own.items()} | {
            "ties": plain(self.ties)
        }


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """Whether a limit on a score holds; of a search, the score is the worst of the found sets."""

    name: str
    measure: Measure
    against: tuple[str, ...] | None  # None: a search
    search: bool
    max_score: float
    confidence: float  # that this verdict is right, by itself or with all others of its family
    verdict: Verdict
    score: float | None = field(default=None, repr=False)  # logs show no mean of few people
    low: float | None = field(default=None, repr=False)
    high: float | None = field(default=None, repr=False)
    sets: tuple[tuple[str, ...], ...] = ()  # what a search found
    reasons: tuple[Note, ...] = field(default=(), repr=False)
    output: str | None = None  # the output's name, where a subject has several
    statistic: Literal["rate", "mean"] = "rate"  # as of its score
    scale: tuple[float, float] | None = None
    accepted: tuple[Accepted, ...] = ()  # what was let pass
    baseline: Literal["new", "undecided", "known"] | None = None  # beside an earlier result
    family: int | None = None  # so many verdicts are right together; None: each by itself

    def __post_init__(self) -> None:
        object.__setattr__(self, "reasons", in_units(self, self.reasons))

    @property
    def reason(self) -> str:
        """The reasons as text; empty where there are none."""
        return "; ".join(map(str, self.reasons))

    def rests_on(self, score: Score) -> bool:
        """Whether this is the score that decided it: other checks may have measured it as well."""
        ends = (self.measure, self.output, self.score, self.low, self.high)
        return ends == (score.measure, score.output, score.score, score.low, score.high)

    @property
    def fails(self) -> bool:
        """Whether this is a reason to stop: a violation, unless a baseline knows it already."""
        return self.verdict == "violated" and self.baseline != "known"

    @property
    def is_open(self) -> bool:
        """Whether it is neither decided nor, beside a baseline, surely nothing new."""
        return self.verdict == "not enough evidence" and self.baseline != "known"

    def to_dict(self) -> dict[str, Any]:
        """The check as the JSON result has it."""
        own: dict[str, Any] = plain(self)
        return own


@dataclass(frozen=True, kw_only=True)
class Result(Plotted):
    """Everything that one command measured."""

    command: str
    seed: int
    subject: Mapping[str, Any]
    schema: Mapping[str, Any]
    scores: tuple[Score, ...]
    executions: int
    cache_hits: int
    stopped: Ending
    failures: Mapping[str, Any] = field(repr=False)
    notes: tuple[Note, ...] = field(default=(), repr=False)
    timing: Mapping[str, Any] = field(default_factory=dict)
    searches: tuple[SearchResult, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    noise: Noise | None = None
    data: Mapping[str, Any] | None = field(default=None, repr=False)  # of rows that were given
    source: Mapping[str, Any] | None = None  # the file, its lines by characteristic, the command
    account: Account | None = None  # of all executions; None: not known
    report: Naming | None = None  # the words for documents, as far as there are some
    outcomes: tuple[Outcomes, ...] = ()  # rates beside known outcomes, where a label was named
    errors: tuple[Errors, ...] = ()  # of numbers beside known ones
    proxies: tuple[Proxy, ...] = ()  # what may stand in for a set, where that was asked
    observed: tuple[Observed, ...] = ()  # rates by category on one set of inputs, for the annex
    outputs: tuple[Inventory, ...] = field(default=(), repr=False)  # what was answered, how often
    # Of one as documents may show it: the one to decide with, whose hash they carry.
    whole: Any = field(default=None, compare=False, repr=False)

    __repr__ = withheld_repr

    def __str__(self) -> str:
        line: str = hook("line")(hook("withheld")(self))
        return line

    @property
    def spent(self) -> Account:
        """What the subject was run for."""
        return self.account or Account(self.executions)

    @property
    def populations(self) -> set[str]:
        """Of whom scores and searches are."""
        parts: tuple[Score | SearchResult, ...] = (*self.scores, *self.searches)
        return {each.population for each in parts} or {"inputs"}

    @property
    def has_excess(self) -> bool:
        """Whether some of it is an excess: of a program that may answer at random."""
        parts: tuple[Score | SearchResult | CheckResult, ...]
        parts = (*self.scores, *self.searches, *self.checks)
        return any(each.measure == "excess" for each in parts)

    @property
    def holds_people(self) -> bool:
        """Whether rows were given, so that values of people may be in it."""
        return self.data is not None or self.populations != {"inputs"}

    @property
    def rules(self) -> set[Stopping]:
        """The stopping rules that were used."""
        return {each.stopping for part in (self.scores, self.searches) for each in part}

    @property
    def family(self) -> int | None:
        """How many scores or checks hold together with their confidence; None: each by itself."""
        parts: tuple[CheckResult | Score | SearchResult, ...]
        parts = self.checks or self.searches or self.scores
        return next((each.family for each in parts), None)

    def to_metrics(self) -> dict[str, float]:
        """Each score with its ends as numbers by name, `causal/sex/score`, for a log.

        What documents may not show, and what was not measured, has no key.
        """
        metrics: dict[str, float] = hook("metrics")(self)
        return metrics

    @cached_property
    def sha256(self) -> str:
        """Of its JSON with sorted keys, without the version that read it."""
        data = self.to_dict()
        del data["themis"]
        text = json.dumps(data, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """The JSON result."""
        searches = [each.to_dict() for each in self.searches]
        return {
            "themis": __version__,
            "format": FORMAT,
            "command": self.command,
            "personal_data": self.holds_people,
            "seed": self.seed,
            "subject": dict(self.subject),
            "schema": dict(self.schema),
            "executions": self.executions,
            "cache_hits": self.cache_hits,
            "stopped": self.stopped.value,
            "failures": dict(self.failures),
            "outputs": [{**plain(each), "others": each.others} for each in self.outputs],
            "notes": plain(self.notes),
            "timing": plain(self.timing),
            "account": plain(self.account),
            "noise": plain(self.noise),
            "data": None if self.data is None else dict(self.data),
            "source": None if self.source is None else dict(self.source),
            "report": plain(self.report),
            "scores": [each.to_dict() for each in self.scores],
            "search": searches[0] if len(searches) == 1 else searches,
            "checks": plain(self.checks),
            "observed": plain(self.observed),
            "outcomes": plain(self.outcomes),
            "errors": plain(self.errors),
            "proxies": plain(self.proxies),
        }


def is_by_degrees(score: Score | SearchResult) -> bool:
    """Whether a causal score is how far outputs are apart, and not for how many they differ."""
    return has_degrees(score.distance)


def has_degrees(distance: str) -> bool:
    """Whether outputs differ by degrees by this distance."""
    kind, _, tolerance = distance.partition(" ")
    return kind != "exact" and not tolerance
