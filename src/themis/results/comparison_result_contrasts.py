"""What else differs between two results? The subject, the schema, the seed, the settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from themis.results.model import Result


def contrasts(before: Result, after: Result) -> Iterator[str]:
    """One sentence for each circumstance that is not the same, what matters most first."""
    yield from rule_contrasts(before, after)
    yield from _subject(before.subject, after.subject)
    if before.seed != after.seed:
        yield f"the seed differs: {before.seed}, then {after.seed}"


def rule_contrasts(before: Result, after: Result) -> Iterator[str]:
    """What was measured otherwise, whatever the subject: the schema, the rows, the settings."""
    yield from _schema(before.schema, after.schema)
    if (before.data or None) != (after.data or None):
        yield "the given rows differ"
    for name in ("confidence", "error", "stopping"):
        yield from _setting(name, before, after)
    yield from _searches(before, after)


def _schema(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    first, second = before.get("inputs", {}), after.get("inputs", {})
    for verb, names in (
        ("was removed from the schema", [name for name in first if name not in second]),
        ("was added to the schema", [name for name in second if name not in first]),
        ("is described otherwise", [n for n in first if n in second and first[n] != second[n]]),
    ):
        yield from (f"{name} {verb}" for name in names)
    if before.get("constraints", {}) != after.get("constraints", {}):
        yield "the constraints differ"


def _subject(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    if before.get("kind") != after.get("kind"):
        yield f"the kind of subject differs: {before.get('kind')}, then {after.get('kind')}"
    elif before.get("fingerprint") != after.get("fingerprint"):
        yield "the subject is another one: its fingerprint differs"


def _setting(name: str, before: Result, after: Result) -> Iterator[str]:
    """Whether a setting differs; a check chooses its error itself, round by round."""
    if name == "error" and (before.checks or after.checks):
        return
    first, second = (_values(name, result) for result in (before, after))
    if first and second and first != second:
        yield f"the {name} differs: {_listed(first)}, then {_listed(second)}"


def _values(name: str, result: Result) -> list[Any]:
    parts: list[Any] = [*result.scores, *result.searches]
    if name == "confidence" and result.checks:  # of its rounds, each has a larger one
        parts = [*result.checks]
    return sorted({getattr(each, name) for each in parts})


def _searches(before: Result, after: Result) -> Iterator[str]:
    for earlier in before.searches:
        for later in after.searches:
            if earlier.measure != later.measure:
                continue
            what = f"the {later.measure} search"
            if earlier.threshold != later.threshold:
                yield f"{what} has another threshold: {earlier.threshold}, then {later.threshold}"
            if set(earlier.among) != set(later.among):
                yield f"{what} is among other characteristics"
            if earlier.max_size != later.max_size:
                yield f"{what} has another largest size: {earlier.max_size}, then {later.max_size}"


def _listed(values: list[Any]) -> str:
    return " and ".join(f"{value:g}" if isinstance(value, float) else value for value in values)
