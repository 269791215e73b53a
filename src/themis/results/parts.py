"""The parts of a result: pairs, directions, regions, noise, groups, and what was executed.

Also values of single people as documents have them: long numbers roughly, rare texts not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

from themis.inputs.characteristics import Value
from themis.inputs.numbers import two_digits
from themis.results.hooks import Shown
from themis.results.notes import Note

LISTED_OUTPUTS = 20  # of an inventory, the most frequent

Rare: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]  # names, for each of two inputs


@dataclass(frozen=True)
class Witness(Shown):
    """Two inputs that differ only in the set, the favoured one first, and their outputs."""

    inputs: tuple[dict[str, Value], dict[str, Value]]
    outputs: tuple[Any, Any]  # as the subject gave them
    reproduce: tuple[str, ...] = ()  # lines for a shell that show it, where there are some
    joint: Literal[0, 1] | None = None  # the one whose output no part of the difference changes
    generated: bool = False  # beside pairs of given people: made up, and nobody's values
    rows: tuple[bool, bool] | None = None  # of given people: which of the two is a row as it is
    rare: Rare | None = None  # of rows, where they differ: values that hardly anybody has
    rare_outputs: tuple[bool, bool] | None = None  # of given people: which hardly anybody gets

    @property
    def differs_in(self) -> tuple[str, ...]:
        """The characteristics in which the two differ."""
        first, second = self.inputs
        return tuple(name for name in first if first[name] != second[name])


@dataclass(frozen=True)
class Harm:
    """One change of the set, and how often it costs or brings the favourable decision."""

    change_from: dict[str, Value]
    change_to: dict[str, Value]
    lost: float  # share of contexts in which the change turns favourable into unfavourable
    gained: float  # share of contexts in which it does the reverse
    contexts: int  # how many contexts this was counted on
    lost_count: int | None = None  # in so many of them, whatever they weigh; None: not known
    gained_count: int | None = None
    lost_low: float | None = None  # ends of the shares, each by itself, with the score's
    lost_high: float | None = None  # confidence; None where nothing is estimated, or weights
    gained_low: float | None = None  # leave no interval
    gained_high: float | None = None


@dataclass(frozen=True)
class Region:
    """People among whom many of the flips are found; counted on inputs that did not suggest it."""

    conditions: tuple[str, ...]  # on the context, all of them: "hours > 40", "education = HS"
    coverage: float  # share of all flips that lie here
    coverage_low: float
    coverage_high: float
    share: float  # of all inputs that lie here
    lift: float | None  # so many times as often as among all, inputs flip here; None: of none
    flips: int  # how many flips this was counted on
    inside: int | None = None  # how many of them lie here; None: not known
    inputs: int | None = None  # how many inputs the share was counted on
    residents: int | None = None  # how many of them lie here
    share_low: float | None = None  # ends of the share by Clopper and Pearson; None: exact
    share_high: float | None = None
    loses: dict[str, Value] | None = None  # of this direction only; None: of all


@dataclass(frozen=True)
class Crossing:
    """How often a change is one between a favourable output and another, of three or more."""

    share: float  # of the inputs whose every variant was run
    inputs: int  # so many
    count: int | None = None  # so many of them; None: they weigh differently
    low: float | None = None  # ends with the score's confidence; None: nothing is estimated
    high: float | None = None


@dataclass(frozen=True)
class Joint:
    """Of a set of two: which changes one of them makes alone, and which only both together.

    The shares are of the inputs whose every variant was run; an input may be changed by either.
    """

    alone: dict[str, float]  # by characteristic: changing it alone changes the output
    only: float  # neither alone does, both together do
    inputs: int  # on so many this was counted
    only_count: int | None = None  # so many of them; None: they weigh differently
    only_low: float | None = None  # ends with the score's confidence; None: nothing is estimated
    only_high: float | None = None


@dataclass(frozen=True)
class Share:
    """How often something was seen, or a difference of that, with its ends."""

    score: float
    low: float
    high: float


@dataclass(frozen=True)
class Noise:
    """How often a subject answers differently when it is run again on the same input."""

    inputs: int  # run again
    differing: int
    rate: float  # that two runs on one input differ
    low: float
    high: float
    confidence: float
    repeats: int = 1  # runs behind each output
    average: bool = False  # of how far outputs differ: what is counted are draws of that


@dataclass(frozen=True)
class Reruns:
    """What a finding rests on, run again: pairs of inputs, or inputs of the extreme groups.

    They are a random sample of it. `explains` is the part of the score that noise may explain at
    most: it is exceeded with the part of 1 − confidence that was set aside for noise.
    """

    made: int
    differing: int
    explains: float = field(repr=False)  # it may tell the score, and that a mean of few people
    trusted: bool = False  # nothing was run: somebody vouches that the subject is deterministic


@dataclass(frozen=True)
class Placebo:
    """The causal score that noise alone would give: as many runs as assignments, all the same."""

    score: float
    low: float
    high: float


@dataclass(frozen=True)
class Group(Shown):
    """One group's rate of favourable decisions; all groups' intervals hold together."""

    values: dict[str, Value]
    rate: float
    low: float
    high: float
    samples: int
    few: bool = False  # too few people to call it fair or unfair
    above_median: float | None = None  # share of its numbers above the median of all; as counted
    people: int | None = None  # of given people: how many are in it
    answers: int | None = None  # so many of them have an output; None: all
    runs: float | None = field(default=None, repr=False, compare=False)  # averaged; not saved

    @property
    def weight(self) -> tuple[bool, bool, int]:
        """How much it tells: whether it is named, can be judged, and of how many it is."""
        return bool(self.values), not self.few, self.people or self.samples


@dataclass(frozen=True)
class Account:
    """What the subject was run for; the sum is exactly what it was given."""

    sampling: int = 0  # to measure
    noise: int = 0  # run again: findings, random inputs, what noise alone would give
    explanations: int = 0  # to make witnesses plain, to look for regions, to see who loses
    isolating: int = 0  # given again to find those that fail, or since no answer came

    @property
    def total(self) -> int:
        """All executions."""
        return self.sampling + self.noise + self.explanations + self.isolating

    def __add__(self, other: Account) -> Account:
        names = [each.name for each in fields(self)]
        return Account(*(getattr(self, name) + getattr(other, name) for name in names))


@dataclass(frozen=True)
class TestedSet:
    """What a search found about one set, and why."""

    __test__ = False  # not a test, whatever pytest thinks of the name

    against: tuple[str, ...]
    # Of a sample: above threshold − error, not above threshold + error; exactly: the threshold.
    decision: Literal["above", "below", "undecided"]
    reasons: tuple[Note, ...] = field(repr=False)  # logs show no mean of few people
    samples: int = 0  # 0: it followed from another set and was not run
    estimate: float | None = field(default=None, repr=False)  # a by-product, without an interval

    @property
    def reason(self) -> str:
        """The reasons as text."""
        return "; ".join(map(str, self.reasons))

    @property
    def is_tie(self) -> bool:
        """Whether its score, which is exact, equals the threshold."""
        return any(each.code == "equals-threshold" for each in self.reasons)

    @property
    def is_exact(self) -> bool:
        """Whether its score is exact, and no sample decided."""
        return self.is_tie or any(each.code == "exact-score" for each in self.reasons)

    @property
    def was_counted(self) -> bool:
        """Whether no sample decided; failed executions may leave its score between two ends."""
        return self.is_exact or any(each.code == "score-between" for each in self.reasons)


@dataclass(frozen=True)
class Accepted:
    """A finding that was let pass, why, and for how long."""

    against: tuple[str, ...]
    reason: str
    until: str  # the last day, as 2027-03-31
    max_score: float | None = None  # up to which score; None: whatever it is


@dataclass(frozen=True)
class Naming:
    """What documents call the subject, its people, its decisions and its values; all optional."""

    name: str = ""
    version: str = ""
    owner: str = ""
    purpose: str = ""
    auditor: str = ""
    why_test_data: str = ""  # instead of historical data
    why_metrics: str = ""
    data_source: str = ""  # with its period
    distribution_date: str = ""  # since when the subject is in use
    independence: str = ""  # of the auditor
    people: str = ""  # a plural: "applicants"
    decision: str = ""  # the favourable one, as a noun: "approval"
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by characteristic
    eeo1: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # for the annex alone
    program: str = ""  # what the subject is called where nobody named it
    favourable: tuple[Value, ...] = ()  # the outputs that were declared favourable
    rows: bool = False  # whether documents may show rows of people


PRECISION = 1e-12  # exact scores are rounded to so much


def exceeds(score: float, limit: float) -> bool:
    """Whether a score is above a limit, and not only by rounding: 2/3 is at most 2/3.

    A score that is not 0 is never rounded to 0, so that a limit of 0 is meant as it is.
    """
    return score - limit > (PRECISION if limit > 0 else 0.0)


@dataclass(frozen=True)
class OutputCount:
    """One output, and how many answers had it."""

    value: Value  # of a long text its start
    count: int
    favourable: bool | None = None  # None where nothing says which outputs are
    rare: bool = False  # of given people: hardly anybody gets it


@dataclass(frozen=True)
class Inventory:
    """What a subject answered: every input that was run for scores, searches and explanations.

    An answer of an earlier run's cache counts like an execution; inputs that were run again to look
    for noise do not count, so that an output which came only then has count 0. With declared
    labels, outputs are those labels.
    """

    answers: int
    distinct: int
    counts: tuple[OutputCount, ...] = ()  # the most frequent; none of many different numbers
    lowest: float | None = None  # of numbers
    mean: float | None = None
    highest: float | None = None
    output: str | None = None  # its name, where a subject has several

    @property
    def others(self) -> int:
        """How many answers had an output that is not listed."""
        return self.answers - sum(each.count for each in self.counts)


Values: TypeAlias = dict[str, Any]

ABOUT = "about "  # before a number that is rounded
LOWER, HIGHER = "lower", "higher"  # of two numbers that are the same when rounded
RARE = ("a rare value", "another rare value")  # in place of texts that hardly anybody has


class Unnamed(str):
    """Stands in the place of an output or outcome that is not named, and is none itself."""

    __slots__ = ()


RARE_OUTPUT = (Unnamed("a rare output"), Unnamed("another rare output"))  # or gets


def rounded(text: str) -> str:
    """A number as it is written, if it has two digits; else about how much it is."""
    number = float(text)
    short = two_digits(number)
    return text if short == number else f"{ABOUT}{short:,.10g}"


def rough(
    inputs: tuple[Values, Values], names: Iterable[str], rare: Rare | None
) -> tuple[Values, Values]:
    """These values of two inputs; of numbers, no more than their first digit, and no rare text."""
    shown: tuple[Values, Values] = ({}, {})
    for name in names:
        both = inputs[0][name], inputs[1][name]
        is_rare = (False, False) if rare is None else (name in rare[0], name in rare[1])
        shown[0][name], shown[1][name] = kept_apart(both, is_rare, RARE)
    return shown


def kept_apart(
    both: tuple[Any, Any], rare: tuple[bool, bool], words: Sequence[str], *, exact: bool = False
) -> tuple[Any, Any]:
    """Two values without rare texts; numbers roughly, with `exact` only those that are rare."""
    texts = [about(e) if own or not exact else e for e, own in zip(both, rare, strict=True)]
    hidden = iter(words)
    for place, own in enumerate(rare):
        if own and isinstance(both[place], str):
            texts[place] = next(hidden)
    if texts[0] == texts[1] and both[0] != both[1]:
        texts = [LOWER, HIGHER] if both[0] < both[1] else [HIGHER, LOWER]
    return texts[0], texts[1]


def about(value: Any) -> Any:
    """A value that many have; of a long number, its first digit and how large it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if abs(value) < 10 and value == int(value):  # numbers of one digit are shown as they are
        return value
    return f"{ABOUT}{float(f'{value:.0e}'):,.10g}"
