"""The sets in a table, the worst first; cards of the first few: dots, rates, who loses, a pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from themis.results.finding import finding
from themis.results.model import CausalScore, CheckResult, GroupScore, Result, Score, is_by_degrees
from themis.results.withheld import is_told, width
from themis.show.blocks import Block, Chip, Dots, Fold, Points, Statement
from themis.show.html import Html, tag
from themis.show.parts.groups import rates_table
from themis.show.parts.scores import limits_of
from themis.show.parts.summary import LEGEND, SetSummary, summaries, summary_table
from themis.show.reports.document import Space, chip, drawn, rest, section
from themis.show.reports.sections import pair_card
from themis.show.words.explanations import (
    harms,
    joint_sentences,
    region_sentence,
    telling_witness,
)
from themis.show.words.headlines import capital, headline_parts
from themis.show.words.naming import beyond, output_name, output_words
from themis.show.words.scores import by_set, hidden_changes, impact
from themis.show.words.searches import protection
from themis.show.words.values import count, set_text
from themis.show.words.verdicts import FOUND, GRAVITY, NOT_FOUND, UNDECIDED, adds
from themis.show.words.wording import PLACES, Wording, wording

OVER, WITHIN, ACCEPTED = "over the limit", "within the limit", "accepted"
KINDS = {0: "protected", 1: "protected, with others", 2: "not protected"}
ORDINARY = 2
IN_VIEW = 10  # sets of the table; the others are folded


def findings_section(result: Result, space: Space) -> Html:
    """Every set in a few lines, those that are not protected folded; cards of the first few."""
    sets = [_once(each) for each in by_set(result.scores).values()]
    if not sets:
        return Html()
    ranked = sorted(sets, key=lambda each: _order(result, each))
    rows = {each.against: each for each in summaries(result, [e for own in ranked for e in own])}
    lines = [rows[each[0].against] for each in ranked]
    shown, others = _parted(lines)
    blocks: list[Block] = [
        summary_table(shown[:IN_VIEW], title="Differences found, by set"),
        Statement(LEGEND, "faint"),
    ]
    more = count(len(shown) - IN_VIEW, "more set")
    plain = count(len(others), "set that is not protected", "sets that are not protected")
    for title, rest_of in ((more, shown[IN_VIEW:]), (plain, others)):
        if rest_of:
            foot = rest(len(rest_of) - space.scores, "set")
            blocks.append(
                Fold(title, [summary_table(rest_of[: space.scores], title=title, foot=foot)])
            )
    listed = {each.against for each in shown}
    cards = [each for each in ranked if each[0].against in listed and _has_own_card(each, result)]
    return section(
        "findings",
        "Findings",
        drawn(blocks),
        tag("div", *(_card(each, result) for each in cards[: space.cards]), class_="findings"),
    )


def _parted(lines: Sequence[SetSummary]) -> tuple[list[SetSummary], list[SetSummary]]:
    """The sets in view, and those that are folded: unprotected ones beside protected ones."""
    protected = [each for each in lines if each.protection != ORDINARY]
    if not protected:
        return list(lines), []
    return protected, [each for each in lines if each.protection == ORDINARY]


def _once(scores: Sequence[Score]) -> list[Score]:
    """The scores of a set; of those that several checks measured, the most precise."""
    best: dict[tuple[object, ...], Score] = {}
    for each in scores:
        key = (*_what(each), each.counterfactuals, each.distance)
        if key not in best or width(each) < width(best[key]):
            best[key] = each
    return list(best.values())


def _order(result: Result, scores: Sequence[Score]) -> tuple[object, ...]:
    """Protected ones first; limits that are passed, then what was found, the largest first."""
    against = scores[0].against
    state = GRAVITY.index(mark_of(scores, result).state)
    size = max((each.low for each in scores if is_told(each)), default=0.0)
    return protection(result, against) == ORDINARY, -state, -size, len(against)


def _has_own_card(scores: Sequence[Score], result: Result) -> bool:
    """Whether a set shows something that its parts, which have cards, do not."""
    own = set(scores[0].against)
    parts = [each for each in result.scores if set(each.against) < own and each.samples]
    if result.checks or not parts:
        return True
    like = {_what(each): [part for part in parts if _what(part) == _what(each)] for each in scores}
    return any(finding(each).state == "grave" and adds(each, like[_what(each)]) for each in scores)


def _what(score: Score) -> tuple[object, ...]:
    """What is measured of a set: scores of a set and its parts are compared within that."""
    return score.measure, score.output, score.population, getattr(score, "statistic", "")


def mark_of(scores: Sequence[Score], result: Result) -> Chip:
    """The state of a set: beside its limits where it has some, else whether something was found."""
    checks = _checks_of(scores, result)
    verdicts = {each.verdict for each in checks}
    if "violated" in verdicts:
        return Chip("grave", OVER)
    if "not enough evidence" in verdicts:
        return Chip("open", UNDECIDED)
    if "accepted" in verdicts:
        return Chip("open", ACCEPTED)
    if checks:
        return Chip("calm", WITHIN)
    given = [each for each in scores if each.population in PLACES] or scores
    states = {finding(each).state for each in given}
    if "grave" in states:
        return Chip("grave", FOUND)
    return Chip("calm", NOT_FOUND) if states == {"calm"} else Chip("open", UNDECIDED)


def _checks_of(scores: Sequence[Score], result: Result) -> list[CheckResult]:
    """The checks that judged this set: its own, and searches that found it."""
    measures, against = {each.measure for each in scores}, scores[0].against
    about = (each for each in result.checks if each.measure in measures)
    return [each for each in about if each.against == against or against in each.sets]


def _card(scores: Sequence[Score], result: Result) -> Html:
    mark, words = mark_of(scores, result), wording(result)
    pictures = [*_pictures(scores, result, words)]
    kind = KINDS[protection(result, scores[0].against)]
    return tag(
        "article",
        tag("p", chip(mark.state, mark.word), tag("span", kind), class_="kind"),
        tag("h3", tag("bdi", set_text(scores[0].against))),
        tag("div", drawn(pictures), class_="pictures") if pictures else Html(),
        drawn(_said(scores, words)),
        *_pair(main_scores(scores), words),
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


def _said(scores: Sequence[Score], words: Wording) -> Iterator[Block]:
    """The headlines, what equal rates hide, what only both of two change, and who loses."""
    shown = main_scores(scores)
    for score in shown:
        sentence, behind = headline_parts(score, words)
        yield Statement(sentence)
        grave = isinstance(score, GroupScore) and finding(score).state == "grave"
        ratio = impact(score) if isinstance(score, GroupScore) and grave else None
        if more := " ".join(filter(None, [behind, f"{capital(ratio)}." if ratio else ""])):
            yield Statement(more, "faint")
    if (hidden := hidden_changes(scores, words)) is not None:
        yield Statement(capital(hidden), "remark")
    for score in shown:
        if isinstance(score, CausalScore) and finding(score).state == "grave":
            yield from (Statement(text, "remark") for text in joint_sentences(score, words))
            if losing := [*harms(score, most=1, words=words)]:
                places = (region_sentence(each, score, words) for each in score.regions[:2])
                yield Statement("Who loses:", "faint")
                yield Points([*losing, *places])


def _pair(scores: Sequence[Score], words: Wording) -> Iterator[Html]:
    """One pair that shows it, if there is one that differs in the whole set."""
    for score in scores:
        if isinstance(score, CausalScore) and score.witnesses:
            telling = telling_witness(score)
            example = "An example" if score.placebo is None else "An example, maybe by noise"
            yield tag("p", tag("b", example), class_="label")
            yield pair_card(telling, score, words)
            return


def _pictures(scores: Sequence[Score], result: Result, words: Wording) -> Iterator[Block]:
    """A hundred dots for the share that changes, and the groups' rates as bars."""
    several = len({each.population for each in scores}) > 1
    for score in sorted(scores, key=lambda each: each.measure):
        if not score.samples or score.counterfactuals != "generated":
            continue
        is_main = score.population in PLACES or not several
        if isinstance(score, CausalScore) and not is_by_degrees(score):
            yield _share(score, _of_whom(score, words, several=several), result)
        elif isinstance(score, GroupScore) and is_main and len(score.groups) > 1:
            yield rates_table(score, words, most=3)


def _of_whom(score: Score, words: Wording, *, several: bool) -> str:
    """What follows `13 of 100`: `test inputs`, but `of the people in the profile`."""
    if several:
        return PLACES.get(score.population) or f"of {words.whom()}"
    whom = words.whom(score.population)
    return f"of {whom}" if score.population in PLACES else whom


def _share(score: CausalScore, whom: str, result: Result) -> Dots:
    """How many of a hundred get a different decision; the lowest limit is outlined."""
    share = score.low if score.lower_bound else score.score
    text = f"{'at least ' * score.lower_bound}{hundred_text(share)}"
    name = output_name(score).removeprefix("the ")
    small = [f"{name} differs{by}" if (by := beyond(score)) else f"different {name}"]
    limit = None
    for each in limits_of(result, score)[:1]:
        limit = of_hundred(each.share)
        small.append(f"{'limit' if result.checks else 'threshold'} {each.name}")
    label = f"{text}: {output_words(score)} changes{beyond(score)}"
    return Dots(of_hundred(share), limit, label, text, whom, small)


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
