"""The words of one report: what its inputs, its decisions and the values of its groups are called.

There is no dictionary here: words come from the table `[report]` of a file. Without them inputs are
test inputs, rates are those of the favourable output, and values are shown as they are. Only rows
that were given are people.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from themis.inputs.columns import SHARED
from themis.results.model import GroupScore, Result, Score, SearchResult
from themis.results.notes import Note
from themis.results.parts import ABOUT, HIGHER, LOWER, RARE, Group, Naming, Region, Unnamed
from themis.show.words.values import LONGEST, LONGEST_NAME, count, cut_name, visible

# Values that say nothing without the name of their characteristic.
VAGUE = {"yes", "no", "true", "false", "none", "other", "unknown", "missing", LOWER, HIGHER, *RARE}
EQUALS, LISTS = (" = ", " ≠ "), (" is one of ", " is none of ")  # in conditions
PLACES = {"rows": "in the rows", "profile": "in the profile"}


@dataclass(frozen=True)
class Wording:
    """How the sentences of a report name things; every sentence gets it."""

    naming: Naming = field(default_factory=Naming)
    # By output, what to write where no output was favourable.
    remedies: Mapping[str | None, str] = field(default_factory=dict, compare=False)
    # The characteristics that sets are made of, where they are known.
    inputs: frozenset[str] = field(default=frozenset(), compare=False)

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
        return count(number, self.one(population), self._many(population))

    def one(self, population: str = "inputs") -> str:
        """`test input`, `test applicant`, `person`."""
        many = self._many(population)
        return "person" if many == "people" else many.removesuffix("s")

    def _many(self, population: str) -> str:
        return self.people if population in PLACES else self.whom()

    def tested(self, number: int, score: Score) -> str:
        """What a figure of a score was counted on: inputs, people, draws, or kinds of rows.

        Rows that are alike in all that matters are tried once, and so are fewer than the people.
        """
        if is_drawn(score):
            return count(number, "draw from the profile", "draws from the profile")
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
            return f"rates of {self._favourable}"
        return "rates of favourable decisions"

    def favour(self, output: str | None = None) -> str:
        """The favourable decision: `approval`, `'approved'`; else that of an output with a name."""
        if output is not None:
            return f"a favourable output of {cut_name(visible(output))}"
        if self.naming.decision:
            return cut_name(visible(self.naming.decision))
        if len(self.naming.favourable) == 1:
            return self._favourable
        return "the favourable decision"

    @property
    def _favourable(self) -> str:
        """The one favourable output."""
        return f"'{cut_name(visible(self.naming.favourable[0]))}'"

    def value(self, name: str, value: Any, most: int = LONGEST) -> str:
        """A value: its word, or as it is."""
        return cut_name(visible(self._word(name, value) or value), most)

    def label(self, values: Mapping[str, Any]) -> str:
        """An assignment: `women`, `green`, `age 30`, `female · orange`, `men · age 30`.

        A group without values is one that is not named, since so few people are in it.
        """
        if not values:
            return f"a group of fewer than {SHARED} {self.people}"
        return " · ".join(
            self.value(*each) if self._is_plain(*each) else self.named(*each)
            for each in values.items()
        )

    def begins_with_word(self, values: Mapping[str, Any]) -> bool:
        """Whether a label begins with a word, and not with a value or name, to be left as it is."""
        return not values or self._word(*next(iter(values.items()))) is not None

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
    naming, inputs = result.report or Naming(), result.schema.get("inputs", {})
    derived = {n for n, spec in inputs.items() if isinstance(spec, Mapping) and "from" in spec}
    free = frozenset(inputs) - derived
    return Wording(naming, favour_remedies(result.notes), free)


def brought(scores: Iterable[Score]) -> Wording:
    """The words that scores bring along which are shown alone: those of their audit."""
    return Wording(next((each.naming for each in scores if each.naming is not None), Naming()))


def favour_remedies(notes: Iterable[Note]) -> dict[str | None, str]:
    """By output, what to write where what `favourable` names never came; empty if not known."""
    found = (each for each in notes if each.code == "no-favourable-output")
    return {each.values.get("about"): favour_remedy(each.values) for each in found}


def favour_remedy(values: Mapping[str, Any]) -> str:
    """What to write: outputs that look like the favourable ones, if there are some."""
    wanted = {visible(each).casefold() for each in values["favourable"]}
    given = [each for each in values["outputs"] if not isinstance(each, Unnamed)]
    meant = [each for each in given if visible(each).casefold() in wanted]
    return f": write favourable = {json.dumps(meant, ensure_ascii=False)}" if meant else ""


def subject_title(result: Result) -> str:
    """What was tested: as the file calls it, else by the program's own name."""
    kind = visible(result.subject.get("kind") or "unknown")
    return named_title(wording(result).naming) or f"A {kind} subject"


def named_title(naming: Naming) -> str:
    """The name and version of what is tested; empty where it has none."""
    name = naming.name or naming.program
    version = f", version {naming.version}" if name and naming.version else ""
    return cut_name(visible(f"{name}{version}"), LONGEST_NAME) if name else ""
