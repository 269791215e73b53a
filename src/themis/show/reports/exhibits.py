"""Pairs that somebody chose to be shown, each with a note."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from themis.results.model import CausalScore
from themis.results.parts import Witness
from themis.show.html import Html, tag
from themis.show.parts.scores import score_name
from themis.show.reports.document import section
from themis.show.reports.sections import pair_card
from themis.show.words.wording import Wording

INTRO = "Pairs that were chosen by hand from those that the test found."


@dataclass(frozen=True)
class Exhibit:
    """A pair of a score, and what was noted about it."""

    score: CausalScore
    witness: Witness
    note: str = ""


def exhibits_section(
    exhibits: Sequence[Exhibit], words: Wording, below: Callable[[int], Any] = lambda _: ""
) -> Html:
    """A card for each exhibit, by its number; nothing if there are none."""
    if not exhibits:
        return Html()
    cards = (
        tag(
            "article",
            tag("h3", f"Exhibit {place + 1}: ", tag("bdi", score_name(each.score))),
            *([tag("p", tag("bdi", each.note))] if each.note else []),
            pair_card(each.witness, each.score, words),
            below(place),
        )
        for place, each in enumerate(exhibits)
    )
    return section("exhibits", "Exhibits", tag("p", INTRO), tag("div", *cards, class_="cards"))
