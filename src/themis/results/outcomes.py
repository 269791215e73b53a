"""What given people show besides scores: rates by known outcomes, what may stand in for a set, and
how often each category got the favourable decision.

These are observations. No verdict rests on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, TypeVar

from themis.inputs.characteristics import Value

RateName = Literal[
    "selection_rate", "true_positive_rate", "false_positive_rate", "precision", "accuracy"
]
GapName = Literal[
    "demographic_parity",
    "equal_opportunity",
    "false_positive_rate",
    "precision",
    "accuracy",
    "equalized_odds",
]
RATES: dict[RateName, GapName] = {  # and what the difference between groups is called
    "selection_rate": "demographic_parity",
    "true_positive_rate": "equal_opportunity",
    "false_positive_rate": "false_positive_rate",
    "precision": "precision",
    "accuracy": "accuracy",
}
ERRORS = ("mean_error", "mean_absolute_error")
FAINT = 0.1  # an association below this is not called one


@dataclass(frozen=True)
class Rate:
    """One rate of one group: of so many people, how many; None where there is nobody to count.

    The ends hold, all of one set of tables together, if the rows are a random sample.
    """

    rate: float | None
    count: int
    of: int
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class OutcomeGroup:
    """The rates of one group of people, beside what became of them."""

    values: dict[str, Value]
    people: int
    labelled: int  # whose outcome is known
    positives: int  # whose outcome is favourable
    selection_rate: Rate  # of those with a decision, how many get the favourable one
    true_positive_rate: Rate  # the same of those whose outcome is favourable
    false_positive_rate: Rate  # and of those whose outcome is not
    precision: Rate  # of those with the favourable decision, whose outcome is favourable
    accuracy: Rate  # of those with decision and outcome, where both agree

    def rates(self) -> Iterator[tuple[RateName, Rate]]:
        """The rates by name."""
        for name in RATES:
            yield name, getattr(self, name)


@dataclass(frozen=True)
class Gap:
    """How far the groups' rates are apart: highest less lowest, and lowest divided by highest."""

    name: GapName
    difference: float | None
    low: float | None = None
    high: float | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    lowest: dict[str, Value] | None = None  # the groups; of equalized odds there are several
    highest: dict[str, Value] | None = None
    groups: int = 0  # that have the rate
    why: Literal["one-group", "all-zero"] | None = None  # there is no difference, or no ratio


@dataclass(frozen=True)
class Outcomes:
    """The rates of the groups of one set beside known outcomes."""

    against: tuple[str, ...]
    label: str  # the column of outcomes
    favourable: tuple[Value, ...]  # outcomes that count as favourable
    unfavourable: tuple[Value, ...]
    people: int
    unlabelled: int  # whose outcome is not known
    undecided: int  # who got no decision
    confidence: float | None  # of all intervals together; None: weights or noise leave none
    groups: tuple[OutcomeGroup, ...]
    groups_total: int
    gaps: tuple[Gap, ...]
    output: str | None = None
    rare: tuple[Value, ...] = ()  # outcomes that hardly anybody has
    noisy: bool = False  # the subject does not always decide the same: no interval holds

    @property
    def metrics(self) -> dict[str, float | None]:
        """The differences and ratios by the names that Fairlearn has for them."""
        return {
            f"{gap.name}_{kind}": number
            for gap in self.gaps
            for kind, number in (("difference", gap.difference), ("ratio", gap.ratio))
        }


@dataclass(frozen=True)
class Tenth:
    """Those of a group whose outputs are in one tenth of all outputs, from the smallest on."""

    people: int  # rows of people with an output and a known number
    output: float | None  # their means; None where there is nobody
    known: float | None


@dataclass(frozen=True)
class ErrorGroup:
    """How far outputs of one group of people are from the numbers that are known of them."""

    values: dict[str, Value]
    people: int  # rows with an output and a known number
    mean_error: float | None  # output less known number; above 0 outputs are too high
    mean_absolute_error: float | None
    tenths: tuple[Tenth, ...]


@dataclass(frozen=True)
class Errors:
    """The errors of numbers, by the groups of one set."""

    against: tuple[str, ...]
    label: str  # the column of known numbers
    people: int  # rows with an output and a known number
    groups: tuple[ErrorGroup, ...]
    groups_total: int
    output: str | None = None

    @property
    def metrics(self) -> dict[str, float | None]:
        """How far the groups' errors are apart: the largest less the smallest."""
        return {f"{name}_difference": self.gap(name) for name in ERRORS}

    def gap(self, name: str) -> float | None:
        """The largest less the smallest of these errors; None of fewer than two groups."""
        known = [getattr(each, name) for each in self.groups]
        known = [each for each in known if each is not None]
        return max(known) - min(known) if len(known) > 1 else None


@dataclass(frozen=True)
class Setting:
    """How far the groups' rates are apart where everybody has one value of a characteristic."""

    value: Value  # None: redrawn
    difference: float | None  # None: nobody, or one group alone, can have it
    low: float | None
    high: float | None
    before: float | None  # of the same people, as they are
    people: int  # who can have it, with a decision
    unreal: int  # who cannot: constraints forbid the combination, or the value would be missing
    undecided: int = 0  # who got no decision
    rate: float | None = None  # of favourable decisions then, of all these people
    fewest: int | None = None  # people in the smaller of the two groups that are farthest apart


@dataclass(frozen=True)
class Proxy:
    """How far a characteristic may stand in for a set: it goes with it, and it matters."""

    against: tuple[str, ...]
    name: str
    association: float  # of the set's groups and its values: Cramér's V without its bias
    changed: float  # share of people whose decision changes when it alone is changed
    at_least: bool  # not all of its values were tried, or executions failed
    difference: float | None  # between the groups' rates, as these people are
    low: float | None
    high: float | None
    confidence: float | None  # as of known outcomes
    possible: int  # values that it may have
    settings: tuple[Setting, ...]  # each value that was tried
    redrawn: Setting | None = (
        None  # each person's value from those tried, as often as people have it
    )
    output: str | None = None
    noisy: bool = False  # as of known outcomes

    @property
    def strength(self) -> float:
        """Association times share: what characteristics are ranked by."""
        return self.association * self.changed

    @property
    def may_stand_in(self) -> bool:
        """Whether it goes with the set, more than faintly, and changes decisions."""
        return self.association >= FAINT and self.changed > 0

    @property
    def lowered(self) -> float | None:
        """By how much redrawing lowers the difference of those whom it compares."""
        redrawn = self.redrawn
        if redrawn is None or redrawn.difference is None or redrawn.before is None:
            return None
        return redrawn.before - redrawn.difference

    @property
    def extremes(self) -> tuple[Setting, Setting] | None:
        """The values with the smallest and the largest difference; None where there are none."""
        known = [each for each in self.settings if each.difference is not None]
        if not known:
            return None
        return min(known, key=_difference), max(reversed(known), key=_difference)


def _difference(setting: Setting) -> float:
    assert setting.difference is not None
    return setting.difference


@dataclass(frozen=True)
class Category:
    """One category and what it got; a value of None is an unknown one."""

    values: dict[str, Value]
    inputs: int  # of given people, how many
    favourable: int
    undecided: int  # without a decision; the rate is of the others
    share: float  # of all that is counted, by weight
    rate: float | None  # by weight; None where nobody has a decision, or a value is unknown
    low: float | None = None
    high: float | None = None
    ratio: float | None = None  # to the highest rate; None where there is none, or of too few
    ratio_low: float | None = None
    ratio_high: float | None = None
    few: bool = False  # too few to say anything
    people: int | None = None  # of whom inputs were drawn: how many are in it
    together: int = 1  # so many categories, of too few people each to be named


@dataclass(frozen=True)
class CategoryTable:
    """All categories of one or two characteristics, in the order of their values."""

    against: tuple[str, ...]
    categories: tuple[Category, ...]


@dataclass(frozen=True)
class Observed:
    """The observed rates of one output.

    The ends of all tables, of all outputs, hold together after a number of inputs that was fixed
    beforehand; those of everybody who was given, if they are a random sample.
    """

    population: Literal["inputs", "profile", "rows"]
    whole: bool  # every input that occurs, or everybody who was given, is counted
    inputs: int
    favourable: int
    undecided: int
    confidence: float | None  # None: nothing is estimated, or weights or noise leave no interval
    tables: tuple[CategoryTable, ...]
    too_many: tuple[tuple[str, ...], ...] = ()  # sets of more categories than a table has
    output: str | None = None
    statistic: Literal["rate", "mean"] = "rate"  # of means what is above the median is counted
    favours: str | None = None  # as of a group score
    weighted: bool = False  # inputs or people weigh differently: rates are not those of the counts
    noisy: bool = False  # the subject does not always decide the same

    def categories(self) -> Iterator[Category]:
        """Those of all tables."""
        for table in self.tables:
            yield from table.categories


Part = TypeVar("Part", Outcomes, Proxy, Observed)
ENDS = ("low", "high", "ratio_low", "ratio_high")


def of_noise(part: Part) -> Part:
    """The same of a subject that does not always decide the same, without its intervals.

    People with the same values, and inputs that were drawn twice, share one answer, so that chance
    moves them together.
    """
    shown: Part = replace(_without_ends(part), confidence=None, noisy=True)
    return shown


def _without_ends(part: Any) -> Any:
    if isinstance(part, tuple):
        return tuple(map(_without_ends, part))
    if not is_dataclass(part) or isinstance(part, type):
        return part
    inner = {each.name: _without_ends(getattr(part, each.name)) for each in fields(part)}
    return replace(part, **inner | {name: None for name in ENDS if name in inner})
