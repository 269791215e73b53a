"""Meanings: which texts of a subject mean which decision, as declared labels.

A label has patterns. A text is trimmed and case-folded before it is compared; in a pattern `*`
stands for any text and `?` for any one character, as in file names. A text that fits the patterns
of exactly one label is that decision; all others are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from themis.errors import Mistake, RequestError, suggest
from themis.subjects.decisions import CutOff

MOST = 100  # labels; as many as a subject may have outputs

REFUSAL = "refusal"  # the label of answers that decline to decide
CUT_HINT = "; it was cut off: raise max_tokens"

CODE = "labels"  # of every mistake in a table of labels


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
    if len(labels) > MOST:
        problem = f"{len(labels)} labels are more than {MOST}"
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


_EXAMPLE = 'write for example approved = ["approved*", "yes"]'


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
