"""The words of one report: what its inputs, its decisions and the values of its groups are called.

There is no dictionary here: words come from the table `[report]` of a file. Without them inputs are
test inputs, rates are those of the favourable output, and values are shown as they are. Only rows
that were given are people.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from themis.inputs.personal import SHARED
from themis.results.model import CausalScore, GroupScore, Result, Score, SearchResult
from themis.results.parts import Group, Naming, Region
from themis.results.rough import ABOUT, HIGHER, LOWER, RARE
from themis.show.words.values import LONGEST, count, cut_name, visible

# Values that say nothing without the name of their characteristic.
VAGUE = {"yes", "no", "true", "false", "none", "other", "unknown", "missing", LOWER, HIGHER, *RARE}
EQUALS, LISTS = (" = ", " ≠ "), (" is one of ", " is none of ")  # in conditions
SHORT = 8  # letters of a value that is hardly ever cut
PLACES = {"rows": "in the rows", "profile": "in the profile"}


@dataclass(frozen=True)
class Wording:
    """How the sentences of a report name things; every sentence gets it."""

    naming: Naming = field(default_factory=Naming)
    long: frozenset[str] = frozenset()  # values, of which two may look the same where they are cut

    def whom(self, population: str = "inputs") -> str:
        """Of whom a share is: `test inputs`, `test applicants`, `the applicants in the rows`."""
        if population in PLACES:
            return f"the {self.people} {PLACES[population]}"
        return f"test {self.naming.people or 'inputs'}"

    @property
    def people(self) -> str:
        """What given people are called."""
        return cut_name(visible(self.naming.people)) if self.naming.people else "people"

    def counted(self, number: int, population: str = "inputs") -> str:
        """`1 test input`, `1,404 test applicants`, `1 person`, `1,404 people`."""
        if population not in PLACES:
            whom = self.whom()
            return count(number, whom.removesuffix("s"), whom)
        one = "person" if self.people == "people" else self.people.removesuffix("s")
        return count(number, one, self.people)

    def tested(self, number: int, score: Score) -> str:
        """What a figure of a score was counted on: inputs, people, draws, or kinds of rows.

        Rows that are alike in all that matters are tried once, and so are fewer than the people.
        """
        if is_drawn(score):
            return f"{count(number, 'draw')} from the profile"
        if score.population in PLACES and number < score.samples:
            return count(number, "kind of row", "kinds of rows")
        return self.counted(number, score.population)

    def of_group(self, group: Group, score: Score) -> str:
        """How many were tested of a group: people, or rows or draws where these are others."""
        if is_drawn(score):
            return count(group.samples, "draw")
        tested = count(group.samples, "row")
        if group.people in (None, group.samples):
            tested = self.counted(group.samples, score.population)
        return tested if group.answers is None else f"{tested}, {group.answers:,} with an output"

    def their(self, population: str = "inputs") -> str:
        """`their `, where it is people that something of is changed."""
        return "their " if self.naming.people or population in PLACES else ""

    @property
    def rates(self) -> str:
        """What groups are compared by: `approval rates`, or `rates of 'approved'`."""
        if self.naming.decision:
            return f"{cut_name(visible(self.naming.decision))} rates"
        if len(self.naming.favourable) == 1:
            return f"rates of '{cut_name(visible(self.naming.favourable[0]))}'"
        return "rates of favourable decisions"

    def favour(self, output: str | None = None) -> str:
        """The favourable decision: `approval`, `'approved'`; else that of an output with a name."""
        if output is not None:
            return f"a favourable output of {cut_name(visible(output))}"
        if self.naming.decision:
            return cut_name(visible(self.naming.decision))
        if len(self.naming.favourable) == 1:
            return f"'{cut_name(visible(self.naming.favourable[0]))}'"
        return "the favourable decision"

    def value(self, name: str, value: Any, most: int = LONGEST) -> str:
        """A value: its word, or as it is; whole where another one would look the same if cut."""
        text = visible(self._word(name, value) or value)
        shown = cut_name(text, most)
        if shown == text:
            return text
        alike = any(each != text and cut_name(each, most) == shown for each in self.long)
        return text if alike else shown

    def label(self, values: Mapping[str, Any], most: int | None = None) -> str:
        """An assignment: `women`, `green`, `age 30`, `female · orange`, `men · age 30`.

        Where the number of letters is limited, names go first, then each value is cut alike.
        A group without values is one that is not named, since so few people are in it.
        """
        if not values:
            rare = f"fewer than {SHARED} {self.people}"
            return rare if most is not None else f"a group of {rare}"
        parts = [
            self.value(*each) if self._is_plain(*each) else self.named(*each)
            for each in values.items()
        ]
        text = " · ".join(parts)
        if most is None or len(text) <= most:
            return text
        plain = [self.value(*each) for each in values.items()]
        room = (most - 3 * (len(plain) - 1)) // len(plain)
        if sum(map(len, plain)) + 3 * (len(plain) - 1) <= most:
            return " · ".join(plain)
        return " · ".join(self.value(*each, most=room) for each in values.items())

    def named(self, name: str, value: Any) -> str:
        """A value with the name of its characteristic, unless there is a word: `race green`."""
        text = self.value(name, value)
        return text if self._word(name, value) else f"{cut_name(visible(name))} {text}"

    def condition(self, text: str) -> str:
        """A condition of a region with the words of its values: `sex = women`."""
        for name, known in self.naming.values.items():
            for sign in (*EQUALS, *LISTS):
                values = text.removeprefix(start := f"{name}{sign}")
                if values != text:
                    parts = values.split(", ") if sign in LISTS else [values]
                    return visible(start + ", ".join(known.get(each, each) for each in parts))
        return visible(text)

    def conditions(self, region: Region) -> str:
        """All of a region: `sex = women and age ≤ 47`."""
        return " and ".join(map(self.condition, region.conditions))

    def _word(self, name: str, value: Any) -> str | None:
        return self.naming.values.get(name, {}).get(visible(value))

    def _is_plain(self, name: str, value: Any) -> bool:
        """Whether a value can be understood without the name of its characteristic."""
        if self._word(name, value):
            return True
        if not isinstance(value, str) or len(value) < 2 or value.lower() in VAGUE:
            return False
        first = value.removeprefix(ABOUT)[:1]
        return not (first.isdigit() or first in "-+.")


PLAIN = Wording()


def is_drawn(measured: Score | SearchResult) -> bool:
    """Whether its samples are draws from people: one may be drawn twice, and some never are.

    All rows are run, unless it is asked to draw from them: then groups are sampled.
    """
    whose = ("profile", "rows") if isinstance(measured, GroupScore) else ("profile",)
    return measured.population in whose and measured.method == "sampled"


def wording(result: Result) -> Wording:
    """The words of a result."""
    specs = result.schema.get("inputs", {}).values()
    listed = (each.get("values", ()) if isinstance(each, Mapping) else each for each in specs)
    return _worded(result.report or Naming(), chain(chain(*listed), _values(result.scores)))


def brought(scores: Iterable[Score]) -> Wording:
    """The words that scores bring along which are shown alone: those of their audit."""
    scores = list(scores)
    known = (each.naming for each in scores if each.naming is not None)
    return _worded(next(known, Naming()), _values(scores))


def _worded(naming: Naming, values: Iterable[Any]) -> Wording:
    words = chain(*(each.values() for each in naming.values.values()))
    texts = (each for each in chain(values, words) if isinstance(each, str))
    return Wording(naming, frozenset(visible(each) for each in texts if len(each) > SHORT))


def _values(scores: Iterable[Score]) -> Iterator[Any]:
    """The values of groups and of pairs."""
    for score in scores:
        groups = [each.values for each in score.groups] if isinstance(score, GroupScore) else []
        pairs = score.witnesses if isinstance(score, CausalScore) else ()
        for known in (*groups, *(each for pair in pairs for each in pair.inputs)):
            yield from known.values()
