"""The pairs of a result: all of them, by set and by who loses; those pinned as exhibits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from themis.engine.replacing import write_whole
from themis.inputs.characteristics import Value
from themis.inputs.schema import Schema
from themis.results.model import CausalScore, Result
from themis.results.parts import Witness
from themis.show.html import Html, cut, folded, tag
from themis.show.parts.scores import protected_scores, score_name
from themis.show.reports.document import section
from themis.show.reports.sections import PAIRS, Exhibit, exhibits_section, pair_card
from themis.show.words.explanations import other_changes_first
from themis.show.words.scores import lesser
from themis.show.words.values import count
from themis.show.words.wording import Wording, subject_title, wording
from themis.web.runs import Run
from themis.web.site import (
    Site,
    address,
    asked_run,
    back_to,
    button,
    choice,
    filters,
    hidden,
    paged,
    posted,
    run_named,
    shown_result,
    site_of,
)

LONGEST_NOTE = 600
ALL = ("", "all")


@dataclass(frozen=True)
class Pair:
    """One pair of a result, and where it is in it."""

    score: CausalScore
    witness: Witness
    key: str  # the places of its score and of itself: "3.0"

    @property
    def is_whole(self) -> bool:
        """Whether it has all values: of given people only what differs may be shown."""
        return len(self.witness.inputs[0]) > len(self.witness.differs_in)


@dataclass(frozen=True)
class Pairs:
    """All pairs of a result, as its report orders them."""

    result: Result

    @cached_property
    def all(self) -> list[Pair]:
        """Each of them, those of protected characteristics first."""
        return [pair for place, score in self.scores.items() for pair in _of(score, place)]

    @cached_property
    def scores(self) -> dict[str, CausalScore]:
        """The scores that have some, by their places in the result."""
        places = {id(each): str(place) for place, each in enumerate(self.result.scores)}
        ranked = protected_scores(self.result, self.result.scores)
        causal = [e for e in ranked if isinstance(e, CausalScore) and e.witnesses]
        among_rows = {*map(id, lesser(causal))}
        return {places[id(each)]: each for each in causal if id(each) not in among_rows}

    @cached_property
    def schema(self) -> Schema:
        """That of the result."""
        return Schema.from_dict(self.result.schema)

    @cached_property
    def words(self) -> Wording:
        """The words of the result."""
        return wording(self.result)

    def find(self, key: str) -> Pair | None:
        """The pair of this key."""
        return next((each for each in self.all if each.key == key), None)

    def loser(self, pair: Pair) -> str:
        """Who loses: what the second one is, by the levels of the set."""
        own = pair.witness.inputs[1]
        return self.words.label({n: self._level(n, own[n]) for n in pair.score.against if n in own})

    def _level(self, name: str, value: Value) -> Value:
        each = self.schema.characteristics[self.schema.column_by_name[name]]
        code = each.encode(value)
        return value if code is None else each.level_label(int(each.level_of(np.array([code]))[0]))


def _of(score: CausalScore, place: str) -> Iterator[Pair]:
    places = {id(each): number for number, each in enumerate(score.witnesses)}
    for each in other_changes_first(score.witnesses):
        yield Pair(score, each, f"{place}.{places[id(each)]}")


def chosen_pairs(pairs: Pairs, score: str, loses: str = "") -> list[Pair]:
    """The pairs of a score, or of all, in which these lose, or whoever does."""
    found = [each for each in pairs.all if score in ("", each.key.split(".")[0])]
    return [each for each in found if not loses or pairs.loser(each) == loses]


# Pages ------------------------------------------------------------------------------------
def page(request: Request) -> Response:
    """The pairs that are wanted, a hundred at a time."""
    site, run = site_of(request), asked_run(request)
    pairs, given = Pairs(shown_result(site, run)), request.query_params
    score, loses = given.get("score", ""), given.get("loses", "")
    found = paged(request, chosen_pairs(pairs, score, loses), "pair")
    below = _linking(site, run, pairs.result)
    cards = (card(each, pairs, below) for each in found.things)
    return site.page(
        f"Pairs: {subject_title(pairs.result)}",
        back_to(run),
        _form(pairs, score, loses),
        found.pager,
        tag("div", *cards, class_="cards many"),
        found.pager,
    )


def _form(pairs: Pairs, score: str, loses: str) -> Html:
    """The choices; who loses depends on the set."""
    names = [ALL, *((place, cut(score_name(each), 80)) for place, each in pairs.scores.items())]
    known = {pairs.loser(each) for each in chosen_pairs(pairs, score)}
    losers = [ALL, *((each, each) for each in sorted(known))]
    return filters(
        choice("score", "Set", names, score), choice("loses", "Who loses", losers, loses)
    )


def card(pair: Pair, pairs: Pairs, below: Callable[[Pair], Iterable[Html]]) -> Html:
    """One pair, and what can be done with it."""
    return tag(
        "article",
        tag("h3", tag("bdi", score_name(pair.score))),
        pair_card(pair.witness, pair.score, pairs.words),
        tag("div", *below(pair), class_="actions"),
        class_="one",
        id=f"pair-{pair.key}",
    )


def _linking(site: Site, run: Run, result: Result) -> Callable[[Pair], Iterator[Html]]:
    """Each of a pair can be the start of a what-if, and both an exhibit."""
    pinned = pins(site, run, result)

    def below(pair: Pair) -> Iterator[Html]:
        if not site.read_only and pair.is_whole:
            for side, text in enumerate(("Try the first", "Try the second")):
                yield tag("a", text, href=_try_address(run, pair, side))
        if not site.read_only:
            yield pin_form(site, run, pair.key, pinned)

    return below


def _try_address(run: Run, pair: Pair, side: int) -> str:
    return f"/try?{urlencode({'result': run.name, 'pair': pair.key, 'side': side})}"


@dataclass(frozen=True)
class Started:
    """The values that a what-if begins with, and what is said of where they are from."""

    values: Mapping[str, Value]
    about: Html


def asked_pair(request: Request) -> Started | None:
    """The one of a pair that an address names, if it names any."""
    given = request.query_params
    if "pair" not in given:
        return None
    site = site_of(request)
    run = run_named(site, given.get("result", ""))
    pairs = Pairs(shown_result(site, run))
    found = pairs.find(given["pair"])
    if found is None or not found.is_whole:
        raise HTTPException(404, "There is no such pair, or its values may not be shown.")
    side = 1 if given.get("side") == "1" else 0
    link = tag("a", "a pair of this result", href=f"{address(run)}/pairs")
    pin = pin_form(site, run, found.key, pins(site, run, pairs.result))
    about = tag("div", tag("span", "Started from one of ", link, "."), pin, class_="actions begun")
    return Started(found.witness.inputs[side], about)


def preview(site: Site, run: Run, result: Result) -> Html:
    """The section of a result with the first pair of each set, and a link to all pairs."""
    pairs = Pairs(result)
    if not pairs.all:
        return Html()
    first = {each.key.split(".")[0]: each for each in reversed(pairs.all)}
    shown = [first[place] for place in [*pairs.scores][:4]]
    every = tag("a", f"All {count(len(pairs.all), 'pair')}", href=f"{address(run)}/pairs")
    below = _linking(site, run, result)
    cards = (card(each, pairs, below) for each in shown)
    intro = tag("p", PAIRS, " ", every)
    return section("people", "Pairs", intro, tag("div", *cards, class_="cards"))


# Exhibits ---------------------------------------------------------------------------------
def pinned_pairs(site: Site, run: Run, result: Result) -> dict[str, Exhibit]:
    """Those that were pinned, by the keys of their pairs."""
    known = {each.key: each for each in Pairs(result).all}
    return {
        key: Exhibit(known[key].score, known[key].witness, note)
        for key, note in pins(site, run, result).items()
        if key in known
    }


def pinned_section(site: Site, run: Run, result: Result) -> Html:
    """The exhibits of a result, each with what takes it away."""
    shown = pinned_pairs(site, run, result)
    forms = [Html() if site.read_only else unpin_form(site, run, key) for key in shown]
    return exhibits_section([*shown.values()], wording(result), forms.__getitem__)


def pins(site: Site, run: Run, result: Result) -> dict[str, str]:
    """The notes of those that are pinned, by the keys of their pairs."""
    try:
        found: dict[str, str] = json.loads(_place(site, run, result).read_bytes())
    except FileNotFoundError:
        return {}
    return found


def keep(site: Site, run: Run, result: Result, pinned: dict[str, str]) -> None:
    """Write them down."""
    kept = {key: note[:LONGEST_NOTE] for key, note in [*pinned.items()][:60]}
    write_whole(_place(site, run, result), json.dumps(kept, indent=2).encode())


def _place(site: Site, run: Run, result: Result) -> Path:
    """Keys are those of the pairs that are shown: without rows of people there are others."""
    kind = "exhibits" if result.whole is None else "exhibits-without-rows"
    return site.history.folder(run) / f"{kind}.json"


def pin_form(site: Site, run: Run, key: str, pinned: dict[str, str]) -> Html:
    """What pins a pair, or leads to the exhibits where it is one."""
    if key in pinned:
        return tag("a", "Pinned as an exhibit", href=f"{address(run)}#exhibits")
    note = f"note-{key}"
    form = site.form(
        f"{address(run)}/exhibits",
        hidden(pair=key),
        tag("label", "Note for the report (may be empty)", for_=note),
        tag("textarea", name="note", id=note, rows=2, maxlength=LONGEST_NOTE),
        button("Pin"),
        kind="pin",
    )
    return folded("Pin as an exhibit", form)


def unpin_form(site: Site, run: Run, key: str) -> Html:
    """What takes a pair from the exhibits."""
    unpin = button("Unpin", kind="quiet")
    return site.form(f"{address(run)}/exhibits/remove", hidden(pair=key), unpin)


async def pin(request: Request) -> Response:
    """Pin a pair as an exhibit, or take it away."""
    fields = await posted(request)
    site, run = site_of(request), asked_run(request)
    result, key = shown_result(site, run), fields.get("pair", "")
    pinned = pins(site, run, result)
    if Pairs(result).find(key) is None:
        raise HTTPException(404, "There is no such pair.")
    if request.url.path.endswith("/remove"):
        pinned.pop(key, None)
    else:
        pinned[key] = fields.get("note", "").strip()
    keep(site, run, result, pinned)
    return RedirectResponse(f"{address(run)}#exhibits", 303)


ROUTES = [
    Route("/results/{name}/pairs", page),
    Route("/results/{name}/exhibits", pin, methods=["POST"]),
    Route("/results/{name}/exhibits/remove", pin, methods=["POST"]),
]
