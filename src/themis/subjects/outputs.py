"""Outputs: which part of an answer is measured, which texts mean the same, how far two are apart.

Labels are names for what texts mean, and have patterns. A text is trimmed and case-folded before it
is compared; in a pattern `*` stands for any text and `?` for any one character, as in file names. A
text that fits the patterns of exactly one label is that decision; all others are none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, RequestError, suggest
from themis.inputs.characteristics import Value
from themis.keys import NUMBER, Rule, broken_rules, is_whole, optional
from themis.subjects.decisions import DECISION_LIMIT, CutOff
from themis.subjects.texts import resolve_pointer

DISTANCES = ("exact", "threshold", "relational", "ranking")
REFERENCE = re.compile(r"[^\s:]+:[^\s:]+")  # module:function, loaded before anything is measured

ANSWERED = "answered"  # the output beside a decision that may be declined
SIMILAR_TEXTS = "How to treat texts that differ only in case, outer space or final punctuation"
SIMILARITY = Rule(
    'must be "same" or "different", got {}',
    {"enum": ["same", "different"]},
    lambda value: value in ("same", "different"),
)
PLACE = Rule(
    "must be a JSON pointer or a column, got {}",
    {"type": ["string", "integer"]},
    lambda value: isinstance(value, str) or is_whole(value),
)

Distance = Callable[[Any, Any], float]
Statistic = Literal["rate", "mean"]
Similarity = Literal["same", "different"]

REFUSAL = "refusal"  # the label of answers that decline to decide
CUT_HINT = "; it was cut off: raise max_tokens"

CODE = "labels"  # of every mistake in a table of labels
_EXAMPLE = 'write for example approved = ["approved*", "yes"]'


@dataclass(frozen=True, kw_only=True)
class Output:
    """One output of a subject: where it stands in the answer, and what counts as another one.

    `at` is a JSON pointer ("/limit"), or the name or number of a column; None is the whole answer.
    With `min` and `max` it is a number within them. A favourable output is one of `favourable`, or
    a number above `cut`. `labels` say which texts mean the same: a label and its patterns, with `*`
    and `?` as in file names; then `favourable` names labels. Texts without labels that differ only
    in case, surrounding space or final punctuation are the same, unless `similar_texts` is
    "different". `distance` says how different two outputs are, from 0 to 1:

    * "exact": 0 or 1, the default;
    * "threshold": 1 for numbers that differ by more than `tolerance`;
    * "relational": the difference of numbers as a share of max − min;
    * "ranking": how differently two lists are ordered, 1 for the reverse;
    * a function of two outputs, in a file written as "module:function".

    The last two count as 0 or 1 if a `tolerance` is given. Raises RequestError with all mistakes.
    """

    name: str = "output"  # in a file the name of its table
    at: str | int | None = optional(
        None, "Where it is in the answer: a JSON pointer, or a column", "/limit", rule=PLACE
    )
    favourable: tuple[Value, ...] | None = optional(
        None, "The outputs that count as favourable", ["yes"]
    )
    labels: Mapping[str, Sequence[str]] | None = optional(
        None,
        "Which texts mean the same; * and ? as in file names",
        {"yes": ["yes*", "granted*"], "no": ["no*"]},
        annotation=dict[str, list[str]],
    )
    similar_texts: Similarity = optional("same", SIMILAR_TEXTS, "different", rule=SIMILARITY)
    min: float | None = optional(None, "The smallest number it can be", 0, rule=NUMBER)
    max: float | None = optional(None, "The largest number it can be", 5000, rule=NUMBER)
    cut: float | None = optional(None, "Numbers above this are favourable", 1000, rule=NUMBER)
    distance: str | Distance = optional(
        "exact",
        "How outputs differ: exact, threshold, relational, ranking, or module:function",
        "relational",
        annotation=str,
    )
    tolerance: float | None = optional(
        None, "Differences up to this do not count", 100, rule=NUMBER
    )

    def __post_init__(self) -> None:
        if self.favourable is not None:
            given = self.favourable
            texts = (given,) if isinstance(given, str) else tuple(given)
            object.__setattr__(self, "favourable", texts)
        if self.labels is not None:
            object.__setattr__(self, "labels", listed(self.labels))
        where = f"outputs.{self.name}"
        broken = [(f"{name} {problem}", remedy) for name, problem, remedy in broken_rules(self)]
        broken = broken or [*self._distance_mistakes(), *self._number_mistakes()]
        mistakes = [Mistake("output", where, *each) for each in broken]
        mistakes += self._label_mistakes(where)
        if mistakes:
            raise RequestError(mistakes)

    @property
    def numeric(self) -> bool:
        """Whether it is a number, and not one of some labels."""
        given = (self.min, self.max, self.cut)
        return any(each is not None for each in given) or self.distance in (
            "threshold",
            "relational",
        )

    @property
    def scale(self) -> tuple[float, float] | None:
        """What 0 and 1 stand for, where both ends are given."""
        if self.min is None or self.max is None:
            return None
        return float(self.min), float(self.max)

    @property
    def graded(self) -> bool:
        """Whether two outputs can differ and still not count as different."""
        return self.distance != "exact"

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """Which group scores it has: the spread of rates, of means, both, or none."""
        rate = self.cut is not None or self.favourable is not None
        rate = rate or (self._plain and self.labels is None)
        mean = self.numeric and self.scale is not None
        return (*(("mean",) if mean else ()), *(("rate",) if rate else ()))

    @property
    def distance_text(self) -> str:
        """The distance in a word or two."""
        name = self.distance if isinstance(self.distance, str) else _name_of(self.distance)
        return name if self.tolerance is None else f"{name} {self.tolerance:g}"

    @property
    def _plain(self) -> bool:
        return not self.numeric and self.distance == "exact"

    def _distance_mistakes(self) -> Iterator[tuple[str, str]]:
        """What is wrong with the distance, each with its remedy."""
        distance = self.distance if isinstance(self.distance, str) else "exact"
        if distance not in DISTANCES and not REFERENCE.fullmatch(distance):
            yield f"there is no distance {distance!r}", suggest(distance, DISTANCES)
        if distance == "threshold" and self.tolerance is None:
            problem = 'the distance "threshold" needs a tolerance'
            yield problem, "write tolerance = 100: more than that counts"
        if self.distance in ("exact", "relational") and self.tolerance is not None:
            problem = f"the distance {distance!r} has no tolerance"
            yield problem, 'write distance = "threshold", or remove it'
        if distance == "relational" and self.scale is None:
            problem = 'the distance "relational" needs min and max'
            yield problem, "write the smallest and largest output"

    def _number_mistakes(self) -> Iterator[tuple[str, str]]:
        """What is wrong with its numbers taken together, each with its remedy."""
        if (self.min is None) != (self.max is None):
            yield "min and max belong together", "write both"
        if self.scale is not None and self.scale[0] >= self.scale[1]:
            yield f"min {self.min:g} is not below max {self.max:g}", "swap them or widen the range"
        if self.tolerance is not None and self.tolerance < 0:
            yield "the tolerance is negative", "write 0 or more"
        if self.cut is not None and self.favourable is not None:
            yield "both favourable and cut say what is favourable", "keep one"
        if self.distance == "ranking" and self.numeric:
            yield "a ranking is a list, not a number", "remove min, max and cut"

    def _label_mistakes(self, where: str) -> Iterator[Mistake]:
        """What is wrong with its labels, and with what names them."""
        if self.labels is None:
            return
        if self.numeric or self.distance != "exact":
            problem = "labels are for texts that are the same or not, not for numbers or distances"
            yield Mistake("output", where, problem, "remove min, max, cut and distance, or labels")
        yield from (each.at(f"{where}.labels") for each in label_mistakes(self.labels))
        for broken in favourable_mistakes(self.favourable or (), self.labels):
            yield Mistake(CODE, f"{where}.favourable", *broken)

    def between_numbers(
        self, first: NDArray[np.float64], second: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The distances of numbers, element by element."""
        apart = np.abs(first - second)
        if self.distance == "relational":
            assert self.scale is not None
            return apart / (self.scale[1] - self.scale[0])
        limit = self.tolerance if self.distance == "threshold" else 0.0
        assert limit is not None
        return (apart > limit).astype(np.float64)

    def between(self, first: Any, second: Any) -> float:
        """The distance of two outputs that are no numbers; raises ValueError outside 0 to 1."""
        if self.distance == "exact":
            return float(first != second)
        if self.distance == "ranking":
            apart = ranking_distance(first, second)
        else:
            assert callable(self.distance)
            apart = float(self.distance(first, second))
        if not 0 <= apart <= 1:
            raise ValueError(
                f"the distance of {first!r} and {second!r} is {apart!r}; it must lie between 0 "
                "and 1, and be 0 for equal outputs"
            )
        return apart if self.tolerance is None else float(apart > self.tolerance)


def refusal_outputs(
    labels: Mapping[str, Sequence[str]], favourable: Sequence[Value]
) -> tuple[Output, Output]:
    """The decision, and beside it whether there is one at all: answers are better than refusals."""
    known = tuple(each for each in favourable if each in labels)
    answered = [each for name in labels if name != REFUSAL for each in labels[name]]
    meanings = {ANSWERED: answered, REFUSAL: labels[REFUSAL]}
    decision = Output(name="decision", favourable=known, labels=labels)
    return decision, Output(name=ANSWERED, favourable=(ANSWERED,), labels=meanings)


def ranking_distance(first: Sequence[Any], second: Sequence[Any]) -> float:
    """How differently two lists are ordered: 0 the same, 1 the reverse, or nothing in common.

    It is the share of pairs of items that the two lists order differently (Kendall's distance). An
    item that only one list has stands behind the end of the other, which then counts as an item
    itself; a pair about which one list says nothing counts half.
    """
    if set(first) != set(second):
        first, second = [*first, _END], [*second, _END]
    items = list(dict.fromkeys([*first, *second]))
    if len(items) < 2:
        return float(list(first) != list(second))
    one, other = (_order(ranking, items) for ranking in (first, second))
    return float(np.abs(one - other).sum() / (2 * len(items) * (len(items) - 1)))


_END = object()  # of a list, where the two do not hold the same items


def _order(ranking: Sequence[Any], items: Sequence[Any]) -> NDArray[np.int64]:
    """For each pair of items which of them comes first, -1 or 1; 0 where neither is there."""
    places = {item: place for place, item in reversed(list(enumerate(ranking)))}
    own = np.array([places.get(item, len(items)) for item in items])
    return np.asarray(np.sign(own[:, None] - own))


def find_part(answer: Any, at: str | int | None) -> Any:
    """The part of an answer that stands at a place; raises LookupError where there is none."""
    if at is None:
        return answer
    if isinstance(at, str) and at.startswith("/"):
        return resolve_pointer(answer, at)
    if isinstance(answer, dict):
        return answer[str(at)]
    if isinstance(answer, list | tuple | np.ndarray):
        return answer[int(at)]
    raise LookupError(at)


def _name_of(function: Distance) -> str:
    return getattr(function, "__name__", type(function).__name__)


def as_outputs(outputs: Iterable[Output] | Output | None) -> tuple[Output, ...]:
    """What the user gave as a tuple of outputs; empty where the answer is a plain decision.

    Raises RequestError where two of them can't be told apart.
    """
    if outputs is None:
        return ()
    given = (outputs,) if isinstance(outputs, Output) else tuple(outputs)
    if not all(isinstance(each, Output) for each in given):
        problem, remedy = "these are no outputs", 'write outputs=[themis.Output(name="approved")]'
        raise RequestError.one("output", "outputs", problem, remedy)
    names = [each.name for each in given]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise RequestError(
            Mistake("output", f"outputs.{name}", "two outputs have this name", "rename one")
            for name in twice
        )
    return given


def with_refusals(
    labels: Mapping[str, Sequence[str]], refusals: Sequence[str]
) -> dict[str, Sequence[str]]:
    """The labels and one more, of the texts that decline to decide."""
    return {**labels, REFUSAL: [*labels.get(REFUSAL, ()), REFUSAL, *refusals]}


class Meanings:
    """The declared labels of one output. Raises RequestError with all mistakes at once."""

    def __init__(self, labels: Mapping[str, Iterable[str]], *, where: str = "labels") -> None:
        own = listed(labels)
        mistakes = [each.at(where) for each in label_mistakes(own)]
        if mistakes:
            raise RequestError(mistakes)
        self.names = tuple(own)
        self._tests = {
            name: re.compile("|".join(map(_expression, patterns)), re.DOTALL)
            for name, patterns in own.items()
        }

    def matching(self, output: Any) -> tuple[str, ...]:
        """The labels that an output fits: one, if it is a decision."""
        text = as_text(output)
        if not text:
            return ()
        return tuple(name for name, test in self._tests.items() if test.fullmatch(text))

    def problem(self, output: Any) -> str | None:
        """Why an output is no decision; None if it is one."""
        found = self.matching(output)
        if len(found) == 1:
            return None
        cut = CUT_HINT if isinstance(output, CutOff) else ""
        return f"fits both labels {found[0]!r} and {found[1]!r}" if found else f"fits no label{cut}"


def listed(labels: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The patterns of each label as a list; a single one is a list of one."""
    return {
        name: list(patterns) if isinstance(patterns, Iterable) and not isinstance(patterns, str)
        else [patterns]
        for name, patterns in labels.items()
    }  # fmt: skip


def as_text(output: Any) -> str | None:
    """An output as patterns see it; None for what is neither text, truth value nor whole number."""
    if isinstance(output, bool):
        return "true" if output else "false"
    if isinstance(output, float) and output.is_integer():
        output = int(output)
    return _fold(str(output)) if isinstance(output, str | int) else None


@dataclass(frozen=True)
class LabelMistake:
    """What is wrong in a table of labels, at the path of its key."""

    path: tuple[str | int, ...]
    problem: str
    remedy: str

    def at(self, table: str) -> Mistake:
        """The mistake with its place in words."""
        place = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}"
                        for part in self.path)  # fmt: skip
        return Mistake(CODE, f"{table}{place}", self.problem, self.remedy)


def label_mistakes(labels: Mapping[str, Sequence[Any]]) -> Iterator[LabelMistake]:
    """All that is wrong with labels and their patterns."""
    if not labels:
        yield LabelMistake((), "there are no labels", _EXAMPLE)
    if len(labels) > DECISION_LIMIT:
        problem = f"{len(labels)} labels are more than {DECISION_LIMIT}"
        yield LabelMistake((), problem, "describe numbers in [outputs], without labels")
    for name, patterns in labels.items():
        if not str(name).strip():
            yield LabelMistake((name,), "the name of a label is empty", _EXAMPLE)
        if not patterns:
            yield LabelMistake((name,), "there are no patterns", _EXAMPLE)
        for place, pattern in enumerate(patterns):
            if (found := _pattern_mistake(name, pattern, labels)) is not None:
                yield LabelMistake((name, place), *found)


def favourable_mistakes(
    favourable: Iterable[Any], labels: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Each favourable output that is no label, with the remedy."""
    names = list(labels)
    for each in favourable:
        if each not in names:
            yield f"{each!r} is no label", suggest(str(each), names)


def _pattern_mistake(
    name: str, pattern: Any, labels: Mapping[str, Sequence[Any]]
) -> tuple[str, str] | None:
    """What is wrong with one pattern, and the remedy."""
    if not isinstance(pattern, str):
        return f"a pattern must be text, got {pattern!r}", "write it in quotes"
    if not pattern.strip():
        return "no text fits an empty pattern: an empty answer is no decision", "remove it"
    for other, theirs in labels.items():
        if other == name:
            continue
        for rival in theirs:
            if isinstance(rival, str) and _fold(pattern) == _fold(rival):
                problem = f"what fits {pattern!r} also fits the label {other!r}: no decision"
                return problem, "keep one of them"
    return None


def _expression(pattern: str) -> str:
    """A pattern as a regular expression on text that is trimmed and folded, in linear time.

    What follows a star is taken where it comes first, and never looked for again.
    """
    parts = [
        "".join("." if each == "?" else re.escape(each) for each in part)
        for part in _fold(pattern).split("*")
    ]
    if len(parts) == 1:
        return parts[0]
    first, *inner, last = parts
    return first + "".join(f"(?>.*?{each})" for each in inner) + ".*" + last


def _fold(text: str) -> str:
    return text.strip().casefold()
