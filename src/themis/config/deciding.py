"""Decisions about findings that a themis.toml keeps: limits, and what is accepted for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from themis.config.edits import with_value
from themis.config.parts import Source
from themis.config.reader import prefix_of
from themis.config.toml import KeyPath
from themis.results.model import Measure
from themis.results.verdicts import Acceptance, Check


@dataclass(frozen=True)
class Finding:
    """What a decision is about: a set, or every set where it is None."""

    against: tuple[str, ...] | None
    measure: Measure = "causal"
    output: str | None = None  # where a subject has several

    @property
    def keys(self) -> dict[str, Any]:
        """How the file names it."""
        which = {"search": True} if self.against is None else {"against": list(self.against)}
        of = {} if self.output is None else {"output": self.output}
        return {**which, "measure": self.measure, **of}

    def is_of(self, decision: Check | Acceptance, first_output: str | None) -> bool:
        """Whether the file has decided this one; without a name its first output is meant."""
        outputs = {each or first_output for each in (decision.output, self.output)}
        about = (decision.against, decision.measure)
        return about == (self.against, self.measure) and len(outputs) == 1


def with_limit(source: Source, finding: Finding, max_score: str) -> Source:
    """The file with a limit on a finding, anew or instead of the one that it has."""
    return _decided(source, "checks", finding, {"max_score": _number(max_score)})


def with_acceptance(
    source: Source, finding: Finding, *, reason: str, until: str, max_score: str = ""
) -> Source:
    """The file with a finding accepted, anew or instead of how it is accepted now."""
    up_to = {"max_score": _number(max_score)} if max_score else {}
    given = {**up_to, "reason": reason, "until": _parsed(date.fromisoformat, until)}
    return _decided(source, "accepted", finding, given)


def _decided(source: Source, section: str, finding: Finding, given: Mapping[str, Any]) -> Source:
    config = source.config()
    first = config.outputs[0].name if config.outputs else None
    own: Iterable[Check | Acceptance] = getattr(config, section)
    places = [place for place, each in enumerate(own) if finding.is_of(each, first)]
    if section == "checks" and places:
        return _with(source, (section, places[0], "max_score"), given["max_score"])
    keys = dict(source.data[section][places[0]]) if places else finding.keys
    keys = {name: each for name, each in keys.items() if name != "max_score"}
    number = places[0] if places else len([*own])
    return _with(source, (section, number), {**keys, **given})


def _with(source: Source, path: KeyPath, value: Any) -> Source:
    text = with_value(source.text, path, value, prefix=prefix_of(source.path))
    return _valid(replace(source, text=text))


def _valid(source: Source) -> Source:
    """The file, if it has no mistakes; raises ConfigError with all of them."""
    source.config()
    return source


def _number(text: str) -> Any:
    return _parsed(float, text)


def _parsed(parse: Callable[[str], Any], text: str) -> Any:
    """The value of a text; the file says what is wrong with one that is none."""
    with suppress(ValueError):
        return parse(text)
    return text
