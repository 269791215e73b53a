"""One card for each characteristic or set: what was found, a hundred dots, who loses, one pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from themis.results.model import CausalScore, CheckResult, GroupScore, Result, Score, is_by_degrees
from themis.results.parts import Group
from themis.show.html import Html, cut, folded, join, tag
from themis.show.reports.document import LONGEST_NAME, Room, left_out, section, set_name
from themis.show.reports.people import pair_block
from themis.show.reports.verdict import chip
from themis.show.svg import dots
from themis.show.words.explanations import (
    joint_sentences,
    losing_sentences,
    other_changes_first,
    where_losing,
)
from themis.show.words.headlines import (
    beyond,
    headline,
    kind_words,
    output_name,
    output_words,
    score_text,
    shown_extremes,
)
from themis.show.words.scores import by_set, hidden_changes, impact
from themis.show.words.searches import amount, protection
from themis.show.words.values import count, cut_name
from themis.show.words.verdicts import (
    FOUND,
    GRAVITY,
    NOT_FOUND,
    UNDECIDED,
    State,
    adds,
    split,
    state_of,
)
from themis.show.words.wording import PLACES

OVER, WITHIN, ACCEPTED = "over the limit", "within the limit", "accepted"
KINDS = {0: "protected", 1: "protected, with others", 2: "not protected"}
ORDINARY = 2
FEWEST_CARDS = 2
SEARCH_CARDS = 4  # of a search, which has a matrix or a lattice, and where there are many


@dataclass(frozen=True)
class Mark:
    """What a card says first."""

    state: State
    word: str


def cards_section(result: Result, room: Room) -> Html:
    """A card for each set, those of protected characteristics first and apart."""
    sets = [_once(each) for each in by_set(result.scores).values()]
    if not sets:
        return Html()
    ranked = sorted(sets, key=lambda each: _order(result, each))
    ordinary = [each for each in ranked if protection(result, each[0].against) == ORDINARY]
    protected = [each for each in ranked if each not in ordinary]
    few = min(len(protected), len(ordinary)) < 2  # they share a row, each with its kind
    kinds = [ranked] if few else [protected, ordinary]
    return section("findings", "Findings", *(_cards(each, result, room) for each in kinds))


def _once(scores: Sequence[Score]) -> list[Score]:
    """The scores of a set; of those that several checks measured, the most precise."""
    best: dict[tuple[object, ...], Score] = {}
    for each in scores:
        key = (*_what(each), each.counterfactuals, each.distance)
        if key not in best or each.high - each.low < best[key].high - best[key].low:
            best[key] = each
    return list(best.values())


def _order(result: Result, scores: Sequence[Score]) -> tuple[object, ...]:
    """Protected ones first; limits that are passed, then what was found, the largest first."""
    against = scores[0].against
    state = GRAVITY.index(mark_of(scores, result).state)
    return protection(result, against) == ORDINARY, -state, -_own_share(scores), len(against)


def _own_share(scores: Sequence[Score]) -> float:
    """How much a set does; of a set of two, how much only both do, which its parts do not show."""
    joint = [each.joint for each in scores if isinstance(each, CausalScore) and each.joint]
    return max((each.only for each in joint), default=max(each.low for each in scores))


def _cards(sets: Sequence[Sequence[Score]], result: Result, room: Room) -> Html:
    telling = [each for each in sets if _has_own_card(each, result)]
    shown = telling[: _most(telling, result, room)]
    cards = [_card(each, result, room) for each in shown]
    others = [each for each in sets if each not in shown]
    more = [_line(each, result) for each in others[: room.scores - len(shown)]]
    rest = folded(_rest_title(others), tag("ul", *more, class_="lines")) if more else Html()
    hidden = left_out(len(sets) - room.scores, "set")
    return join([tag("div", *cards, class_="findings"), rest, *hidden])


def _most(sets: Sequence[Sequence[Score]], result: Result, room: Room) -> int:
    """How many sets get a card."""
    fits = len(sets) <= room.cards and not _is_search(result)
    most = room.cards if fits else min(room.cards, SEARCH_CARDS)
    is_protected = any(protection(result, each[0].against) != ORDINARY for each in sets)
    return most if is_protected else max(most // 2, FEWEST_CARDS)


def _is_search(result: Result) -> bool:
    return bool(result.searches) and result.command != "audit"


def _has_own_card(scores: Sequence[Score], result: Result) -> bool:
    """Whether a set shows something that its parts, which have cards, do not."""
    if result.checks or _is_search(result):
        return True
    own = set(scores[0].against)
    parts = [each for each in result.scores if set(each.against) < own and each.samples]
    if not parts:
        return True
    like = {_what(each): [part for part in parts if _what(part) == _what(each)] for each in scores}
    return any(state_of(each) == "grave" and adds(each, like[_what(each)]) for each in scores)


def _what(score: Score) -> tuple[object, ...]:
    """What is measured of a set: scores of a set and its parts are compared within that."""
    return score.measure, score.output, score.population, getattr(score, "statistic", "")


def _rest_title(sets: Sequence[Sequence[Score]]) -> str:
    joint = all(len(each[0].against) > 1 for each in sets)
    return count(len(sets), "more combination" if joint else "more set")


def mark_of(scores: Sequence[Score], result: Result) -> Mark:
    """The state of a set: beside its limits where it has some, else whether something was found."""
    checks = _checks_of(scores, result)
    verdicts = {each.verdict for each in checks}
    if "violated" in verdicts:
        return Mark("grave", OVER)
    if "not enough evidence" in verdicts:
        return Mark("open", UNDECIDED)
    if "accepted" in verdicts:
        return Mark("open", ACCEPTED)
    if checks:
        return Mark("calm", WITHIN)
    given = [each for each in scores if each.population in PLACES] or scores
    states = {state_of(each) for each in given}
    if "grave" in states:
        return Mark("grave", FOUND)
    return Mark("calm", NOT_FOUND) if states == {"calm"} else Mark("open", UNDECIDED)


def _checks_of(scores: Sequence[Score], result: Result) -> list[CheckResult]:
    """The checks that judged this set: its own, and searches that found it."""
    measures = {each.measure for each in scores}
    return [
        each
        for each in result.checks
        if each.measure in measures
        and (each.against == scores[0].against or scores[0].against in each.sets)
    ]


def _card(scores: Sequence[Score], result: Result, room: Room) -> Html:
    mark = mark_of(scores, result)
    shown = main_scores(scores)
    kind = KINDS[protection(result, scores[0].against)]
    return tag(
        "article",
        tag("p", chip(mark.state, mark.word), tag("span", kind), class_="kind"),
        tag("h3", set_name(scores[0].against)),
        _pictures(scores, result, room),
        *(_sentences(each, room) for each in shown),
        *_remark(scores, room),
        *_joint(shown, room),
        *_losers(shown, room),
        *_pair(shown, room),
        class_=f"finding {mark.state}",
    )


def main_scores(scores: Sequence[Score]) -> list[Score]:
    """What a card tells in words: one score of each measure and output, of given people first."""
    ranked = sorted(
        (each for each in scores if each.samples),
        key=lambda each: (each.population not in PLACES, each.counterfactuals == "within"),
    )
    first: dict[tuple[object, ...], Score] = {}
    for each in ranked:
        first.setdefault((each.measure, each.output, getattr(each, "statistic", "")), each)
    return list(first.values()) or list(scores[:1])


def _sentences(score: Score, room: Room) -> Html:
    sentence, behind = split(headline(score, room.words))
    ratio = impact(score) if isinstance(score, GroupScore) and state_of(score) == "grave" else None
    more = " ".join(filter(None, [behind, f"{ratio[:1].upper()}{ratio[1:]}." if ratio else ""]))
    small = [tag("small", cut(more, room.sentence))] if more else []
    return tag("p", f"{cut(sentence, room.sentence)}.", *small)


def _remark(scores: Sequence[Score], room: Room) -> Iterator[Html]:
    text = hidden_changes(scores, room.words)
    if text is not None:
        yield tag("p", f"{text[:1].upper()}{text[1:]}.", class_="remark")


def _joint(scores: Sequence[Score], room: Room) -> Iterator[Html]:
    """Of a set of two, what each alone changes and what only both."""
    for score in scores:
        if isinstance(score, CausalScore) and state_of(score) == "grave":
            for text in joint_sentences(score, room.words):
                yield tag("p", f"{cut(text, room.sentence)}.", class_="remark")


def _losers(scores: Sequence[Score], room: Room) -> Iterator[Html]:
    for score in scores:
        if isinstance(score, CausalScore) and score.direction and state_of(score) == "grave":
            texts = losing_sentences(score, room.words, most=1)
            items = (tag("li", cut(each, room.sentence)) for each in texts)
            where = where_losing(score, room.words)
            yield tag("p", tag("b", "Who loses"), class_="label")
            first = [tag("li", f"{cut(where, room.sentence)}.")] if where else []
            yield tag("ul", *first, *items, class_="lines")


def _pair(scores: Sequence[Score], room: Room) -> Iterator[Html]:
    """One pair that shows it, if there is one that differs in the whole set."""
    for score in scores:
        if isinstance(score, CausalScore) and score.witnesses:
            ranked = other_changes_first(score.witnesses)
            telling = max(ranked, key=lambda each: (each.joint is not None, len(each.differs_in)))
            example = "An example" if score.placebo is None else "An example, maybe by noise"
            yield tag("p", tag("b", example), class_="label")
            yield pair_block(telling, score, room)
            return


def _line(scores: Sequence[Score], result: Result) -> Html:
    """A set that got no card."""
    mark = mark_of(scores, result)
    figures = "; ".join(f"{kind_words(each)} {score_text(each)}" for each in scores if each.samples)
    return tag("li", chip(mark.state, mark.word), " ", tag("b", set_name(scores[0].against)),
               f" {figures}")  # fmt: skip


# --- pictures -----------------------------------------------------------------------------


def _pictures(scores: Sequence[Score], result: Result, room: Room) -> Html:
    """Dots for shares of inputs, and for the rates of the two extreme groups."""
    parts = [part for each in _drawn(scores) for part in _picture(each, scores, result, room)]
    return tag("div", *parts, class_="pictures") if parts else Html()


def _drawn(scores: Sequence[Score]) -> Iterator[Score]:
    """Given people beside all inputs; what rows show among themselves is not drawn."""
    for each in sorted(scores, key=lambda each: each.measure):
        if each.samples and each.counterfactuals == "generated":
            yield each


def _picture(score: Score, scores: Sequence[Score], result: Result, room: Room) -> Iterator[Html]:
    several = len({each.population for each in scores}) > 1
    whom = _among_others(score, room) if several else _of_whom(score, room)
    if isinstance(score, CausalScore):
        if not is_by_degrees(score):
            yield _share(score, whom, result)
    elif isinstance(score, GroupScore) and _shows_rates(score, several):
        yield from (_rate(each, score.output, room) for each in shown_extremes(score))


def _shows_rates(score: GroupScore, several: bool) -> bool:
    """Whether rates are drawn: of two groups at least, and of given people if there are some."""
    is_main = score.population in PLACES or not several
    return is_main and score.statistic == "rate" and len(score.groups) > 1


def _of_whom(score: Score, room: Room) -> str:
    """What follows `13 of 100`: `test inputs`, but `of the people in the profile`."""
    whom = room.words.whom(score.population)
    return f"of {whom}" if score.population in PLACES else whom


def _among_others(score: Score, room: Room) -> str:
    """The same where given people stand beside generated inputs."""
    return PLACES.get(score.population) or f"of {room.words.whom()}"


def _share(score: CausalScore, whom: str, result: Result) -> Html:
    """How many of a hundred get a different decision; beyond a limit they are darker."""
    share = score.low if score.lower_bound else score.score
    number = of_hundred(share)
    text = f"{'at least ' * score.lower_bound}{hundred_text(share)}"
    limit = _limit(score, result)
    kinds = [("on", number)]
    more = []
    if limit is not None:
        inside = min(number, of_hundred(limit))
        kinds = [("in", inside), ("over", number - inside)]
        kind = "limit" if result.checks else "threshold"
        more = [tag("small", f"{kind} {amount(limit, score)}")]
    drawn = dots(kinds, f"{text}: {output_words(score)} changes{beyond(score)}")
    name = output_name(score).removeprefix("the ")
    what = f"{name} differs{by}" if (by := beyond(score)) else f"different {name}"
    more.insert(0, tag("small", what))
    return tag("figure", drawn, tag("figcaption", tag("b", text), " ", whom, *more))


def _limit(score: Score, result: Result) -> float | None:
    """The lowest limit or threshold that is about this measure of this output."""
    about = (score.measure, score.output)
    limits = [
        each.max_score
        for each in result.checks
        if (each.measure, each.output) == about and (each.search or each.against == score.against)
    ]
    limits += [each.threshold for each in result.searches if (each.measure, each.output) == about]
    return min(limits, default=None)


def _rate(group: Group, output: str | None, room: Room) -> Html:
    """How many of a hundred of a group get the favourable decision."""
    text, name = hundred_text(group.rate), cut_name(room.words.label(group.values), LONGEST_NAME)
    get = f"get {room.words.favour(output)}"
    drawn = dots([("rate", of_hundred(group.rate))], f"{name}: {text} {get}")
    return tag(
        "figure", drawn, tag("figcaption", tag("b", text), " ", tag("bdi", name), tag("small", get))
    )


def of_hundred(share: float) -> int:
    """How many dots a share is; a little is not nothing, and nearly all not all."""
    if 0 < share < 1:
        return min(max(int(100 * share + 0.5), 1), 99)
    return int(100 * share + 0.5)


def hundred_text(share: float) -> str:
    """`13 of 100`; `fewer than 1 of 100`."""
    if 0 < share < 0.005:
        return "fewer than 1 of 100"
    if 0.995 < share < 1:
        return "more than 99 of 100"
    return f"{of_hundred(share)} of 100"
