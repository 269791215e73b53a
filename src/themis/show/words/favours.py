"""Rates that tell nothing, since no output was favourable or every one was, and what to write."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from themis.results.model import GroupScore, Score
from themis.results.notes import Note
from themis.results.rough import Unnamed
from themis.results.verdicts import nobody_favoured
from themis.results.withheld import whole_of
from themis.show.words.values import visible


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
