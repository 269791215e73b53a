"""How are sets and groups named in a report? In the words of the displays, of a bounded length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from themis.results.model import Score
from themis.show.reports.html import Html, cut, join, tag
from themis.show.words.searches import set_text
from themis.show.words.values import headline, label, set_phrase, visible

LONGEST_NAME = 240  # a set may be made of hundreds of characteristics
LONGEST_SENTENCE = 700


def set_name(against: Iterable[str]) -> Html:
    """A set in a table or a heading: `race, sex`."""
    return tag("bdi", cut(set_text(against), LONGEST_NAME))


def score_name(score: Score) -> Html:
    """The set of a score, and which output it is about where there are several."""
    name = set_name(score.against)
    if score.output is None:
        return name
    return join([name, ": ", tag("bdi", cut(visible(score.output), LONGEST_NAME))])


def set_words(against: Sequence[str]) -> str:
    """A set in a sentence: `race and sex together`."""
    return cut(set_phrase(against), LONGEST_NAME)


def group_name(values: Mapping[str, Any]) -> Html:
    """A group: `race green, sex male`."""
    return tag("bdi", cut(label(values), LONGEST_NAME))


def score_sentence(score: Score) -> str:
    """The headline of a score, as a sentence without its full stop."""
    return cut(sentence(headline(score)), LONGEST_SENTENCE)


def sentence(words: str) -> str:
    """Words of ours that start a line, with a capital; names of the user stay as they are."""
    ours = words.startswith(("the ", "all groups ", "nothing ", "no set "))
    return f"{words[:1].upper()}{words[1:]}" if ours else words
