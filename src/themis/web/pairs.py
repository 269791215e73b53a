"""The pairs of a result: all of them, by set, by who loses, and by where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlencode

import numpy as np
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from themis.inputs.characteristics import Value
from themis.inputs.schema import Schema
from themis.results.conditions import meets
from themis.results.model import CausalScore, Result
from themis.results.parts import Region, Witness
from themis.show.html import Html, cut, tag
from themis.show.parts.scores import protected_scores, score_name
from themis.show.reports.document import section
from themis.show.reports.exhibits import Exhibit, exhibits_section
from themis.show.reports.sections import pair_card, pairs_intro
from themis.show.words.explanations import other_changes_first
from themis.show.words.scores import lesser
from themis.show.words.values import count
from themis.show.words.wording import Wording, subject_title, wording
from themis.web import exhibits
from themis.web.history import Run
from themis.web.layout import choice, filters, labelled, paged, shell
from themis.web.opened import address, asked_run, back_to, run_named, shown_result
from themis.web.site import Site, posted, site_of

PREVIEWED = 4
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

    def regions(self, chosen: str) -> dict[str, Region]:
        """The regions of one score, or of all, by the places of both."""
        own = {chosen: self.scores[chosen]} if chosen in self.scores else self.scores
        found = ((f"{p}.{n}", each) for p, s in own.items() for n, each in enumerate(s.regions))
        return dict(found)


def _of(score: CausalScore, place: str) -> Iterator[Pair]:
    places = {id(each): number for number, each in enumerate(score.witnesses)}
    for each in other_changes_first(score.witnesses):
        yield Pair(score, each, f"{place}.{places[id(each)]}")


@dataclass(frozen=True)
class Asked:
    """Which pairs are wanted."""

    score: str = ""
    loses: str = ""
    region: str = ""

    @classmethod
    def of(cls, request: Request) -> Asked:
        """What the query says."""
        given = request.query_params
        return cls(given.get("score", ""), given.get("loses", ""), given.get("region", ""))


def chosen_pairs(pairs: Pairs, asked: Asked) -> list[Pair]:
    """The pairs that are wanted."""
    found = pairs.all
    if asked.score:
        found = [each for each in found if each.key.split(".")[0] == asked.score]
    if asked.loses:
        found = [each for each in found if pairs.loser(each) == asked.loses]
    if asked.region:
        region = pairs.regions("").get(asked.region)
        if region is None:
            return []
        score = asked.region.split(".")[0]
        found = [
            each
            for each in found
            if each.key.split(".")[0] == score
            and all(meets(each.witness.inputs[0], condition) for condition in region.conditions)
        ]
    return found


# Pages ------------------------------------------------------------------------------------
def page(request: Request) -> Response:
    """The pairs that are wanted, a hundred at a time."""
    site, run = site_of(request), asked_run(request)
    pairs, asked = Pairs(shown_result(site, run)), Asked.of(request)
    found = paged(request, chosen_pairs(pairs, asked), "pair")
    below = _linking(site, run, pairs.result)
    cards = (card(each, pairs, below) for each in found.things)
    return HTMLResponse(
        shell(
            f"Pairs: {subject_title(pairs.result)}",
            back_to(run),
            _form(pairs, asked),
            found.pager,
            tag("div", *cards, class_="cards many"),
            found.pager,
            form_token=site.keys.form,
        )
    )


def _form(pairs: Pairs, asked: Asked) -> Html:
    """The choices; who loses and where depend on the set."""
    own = chosen_pairs(pairs, Asked(asked.score))
    names = [ALL, *((place, cut(score_name(each), 80)) for place, each in pairs.scores.items())]
    losers = [ALL, *((each, each) for each in sorted({*map(pairs.loser, own)}))]
    regions = [
        (key, cut(pairs.words.conditions(each), 80))
        for key, each in pairs.regions(asked.score).items()
    ]
    fields = [
        labelled("score", "Set", choice("score", names, asked.score)),
        labelled("loses", "Who loses", choice("loses", losers, asked.loses)),
    ]
    if regions:
        shown = choice("region", [("", "anywhere"), *regions], asked.region)
        fields.append(labelled("region", "Where", shown))
    return filters(*fields)


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
    pinned = exhibits.pins(site, run, result)

    def below(pair: Pair) -> Iterator[Html]:
        if not site.read_only and pair.is_whole:
            for side, text in enumerate(("Try the first", "Try the second")):
                yield tag("a", text, href=_try_address(run, pair, side))
        if not site.read_only:
            yield exhibits.pin_form(site, run, pair.key, pinned)

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
    pin = exhibits.pin_form(site, run, found.key, exhibits.pins(site, run, pairs.result))
    about = tag("div", tag("span", "Begun with one of ", link, "."), pin, class_="actions begun")
    return Started(found.witness.inputs[side], about)


def preview(site: Site, run: Run, result: Result) -> Html:
    """The section of a result with the first pair of each set, and a link to all pairs."""
    pairs = Pairs(result)
    if not pairs.all:
        return Html()
    first = {each.key.split(".")[0]: each for each in reversed(pairs.all)}
    shown = [first[place] for place in [*pairs.scores][:PREVIEWED]]
    every = tag("a", f"All {count(len(pairs.all), 'pair')}", href=f"{address(run)}/pairs")
    below = _linking(site, run, result)
    cards = (card(each, pairs, below) for each in shown)
    intro = tag("p", pairs_intro([*pairs.scores.values()]), " ", every)
    return section("people", "Pairs", intro, tag("div", *cards, class_="cards"))


# Exhibits ---------------------------------------------------------------------------------
def pinned_pairs(site: Site, run: Run, result: Result) -> dict[str, Exhibit]:
    """Those that were pinned, by the keys of their pairs."""
    known = {each.key: each for each in Pairs(result).all}
    return {
        key: Exhibit(known[key].score, known[key].witness, note)
        for key, note in exhibits.pins(site, run, result).items()
        if key in known
    }


def pinned_section(site: Site, run: Run, result: Result) -> Html:
    """The exhibits of a result, each with what takes it away."""
    shown = pinned_pairs(site, run, result)
    forms = [Html() if site.read_only else exhibits.unpin_form(site, run, key) for key in shown]
    return exhibits_section([*shown.values()], wording(result), forms.__getitem__)


async def pin(request: Request) -> Response:
    """Pin a pair as an exhibit, or take it away."""
    fields = await posted(request)
    site, run = site_of(request), asked_run(request)
    result, key = shown_result(site, run), "".join(fields.get("pair", []))
    pinned = exhibits.pins(site, run, result)
    if Pairs(result).find(key) is None:
        raise HTTPException(404, "There is no such pair.")
    if request.url.path.endswith("/remove"):
        pinned.pop(key, None)
    else:
        pinned[key] = "".join(fields.get("note", [])).strip()
    exhibits.keep(site, run, result, pinned)
    return RedirectResponse(f"{address(run)}#exhibits", 303)


ROUTES = [
    Route("/results/{name}/pairs", page),
    Route("/results/{name}/exhibits", pin, methods=["POST"]),
    Route("/results/{name}/exhibits/remove", pin, methods=["POST"]),
]
