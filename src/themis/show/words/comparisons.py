"""Replays and differences in plain words: what became of the tests, and what changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from themis.results.comparison import Differences, ScoreDifference, SetDifference
from themis.results.quantities import Bounds, Quantity
from themis.results.replays import AT_RANDOM, Replay, ReplayedTest
from themis.show.intervals import ends_text
from themis.show.words.headlines import capital
from themis.show.words.naming import kinds
from themis.show.words.searches import set_text
from themis.show.words.units import in_units
from themis.show.words.values import (
    Rounding,
    at_most,
    confidence_text,
    count,
    figure,
    points,
    set_phrase,
    took,
    visible,
)
from themis.show.words.wording import PLAIN, Wording

NAMED = 3  # scores or sets in a headline
AN = re.compile(r"8|1[18](?!\d)")  # numbers that are spoken with a vowel first
CLAIMED = ("risen", "risen, tolerated", "fallen", "new", "gone")  # changes that are certain
COMMON = 8  # characteristics shown in which the two inputs agree


def replay_headline(replay: Replay) -> str:
    """`3 of 512 tests differ: 2 still, 1 new; 24 are fixed`, `2 of 512 tests still …`."""
    if not replay.tests:
        return "There are no tests to run again"
    still, new, fixed = (replay.count(state) for state in ("still", "new", "fixed"))
    total = count(replay.tests, "test")
    text = f"None of {total} differs"
    if still + new:
        verb = "differs" if still + new == 1 else "differ"
        text = f"{still + new:,} of {total} {verb}"
        if still and new:
            text += f": {still:,} still, {new:,} new"
        elif still:
            text = f"{still:,} of {total} still {verb}"
        else:
            text += ", which it did not before" if new == 1 else ", which they did not before"
    elif not replay.conclusive:
        known = "confirmed" if replay.count("unconfirmed") else "known"
        text = f"None of {total} is {known} to differ"
    if fixed and random_answers(replay) is not None:  # once equal is no proof
        text += f"; {fixed:,} did not differ this time"
    elif fixed:
        text += f"; {fixed:,} {'is' if fixed == 1 else 'are'} fixed"
    for state, word in (
        ("unclear", "gave different decisions when run again"),
        ("unconfirmed", _unconfirmed(replay.count("unconfirmed"))),
        ("failed", "failed"),
        ("unknown", f"no longer {'fits' if replay.count('unknown') == 1 else 'fit'} the schema"),
        ("not run", f"{'was' if replay.count('not run') == 1 else 'were'} not run"),
    ):
        number = replay.count(state)  # type: ignore[arg-type]  # literals lose their type here
        if number:
            text += f"; {number:,} {word}"
    return text


def random_answers(replay: Replay) -> str | None:
    """That the subject seems to answer at random, where a note of the replay says so."""
    return next((f"{capital(str(each))}." for each in replay.notes if each.code == AT_RANDOM), None)


def other_notes(replay: Replay) -> Iterator[str]:
    """What else the notes of a replay say."""
    yield from (str(each) for each in replay.notes if each.code != AT_RANDOM)


def _unconfirmed(number: int) -> str:
    differ, were = ("differs", "was") if number == 1 else ("differ", "were")
    return f"{differ} but {were} not run again often enough to confirm"


def pair_outcome(test: ReplayedTest, words: Wording = PLAIN) -> str:
    """`1 for race green, 0 for race purple; before, 1 and 0`."""
    people = [
        ", ".join(words.named(name, person[name]) for name in _changed(test))
        for person in test.inputs
    ]
    now = [_output(each) for each in test.now]
    then = " and ".join("no decision" if each is None else visible(each) for each in test.before)
    return f"{now[0]} for {people[0]}, {now[1]} for {people[1]}; before, {then}"


def _output(output: object) -> str:
    return "no decision" if output is None else visible(output)


def _changed(test: ReplayedTest) -> list[str]:
    first, second = test.inputs
    return [name for name in first if first[name] != second[name]] or list(test.against)


def shared_values(test: ReplayedTest, *, everything: bool) -> str:
    """What the two have in common."""
    changed = _changed(test)
    common = [(name, value) for name, value in test.inputs[0].items() if name not in changed]
    shown = common if everything else common[:COMMON]
    text = ", ".join(f"{visible(name)} {visible(value)}" for name, value in shown)
    return text + (f", + {len(common) - len(shown)} more" if len(shown) < len(common) else "")


def replay_cost(replay: Replay) -> str:
    parts = [count(replay.inputs, "input")]
    if replay.changed:
        parts[0] += f", {replay.changed:,} with a different output than before"
    parts.append(count(replay.executions, "execution"))
    if replay.cache_hits:
        parts.append(f"{replay.cache_hits:,} answered from the cache")
    if "seconds" in replay.timing:
        parts.append(took(replay.timing))
    return " · ".join(parts)


def differences_headline(found: Differences) -> str:
    """Whether a difference has grown, in one sentence."""
    risen = [quantity_text(each) for each in found.scores if each.change == "risen"]
    new = [quantity_text(each) for each in found.sets if each.change == "new"]
    if found.verdict == "new discrimination":
        has, are = ("has" if len(risen) == 1 else "have"), ("is" if len(new) == 1 else "are")
        parts = [f"{count(len(risen), 'score')} {has} risen ({_named(risen)})"] * bool(risen)
        parts += [f"{count(len(new), 'minimal set')} {are} new ({_named(new)})"] * bool(new)
        return f"A difference has grown: {', '.join(parts)}"
    if found.verdict == "inconclusive":
        return "Undecided: no difference was shown to have grown, but a rise may be unseen"
    small = [quantity_text(each) for each in found.scores if each.change == "risen, tolerated"]
    none = "No difference has grown"
    if small:
        have, their = ("has", "its rise is") if len(small) == 1 else ("have", "their rises are")
        none += f" beyond the tolerance: {count(len(small), 'score')} {have} risen"
        none += f" ({_named(small)}), and {their} tolerated"
    return "; ".join([none, *_improved(found), *_unseen(found)])


def _unseen(found: Differences) -> Iterator[str]:
    """How large a rise the intervals hide, at most, and what shows smaller ones."""
    rises = [
        each.after.high - each.before.low
        for each in found.scores
        if each.change == "no significant change" and each.before.told and each.after.told
        if each.quantity.statistic != "mean"
    ]
    if rises and max(rises) > 0:
        remedy = "a smaller --error in both runs shows smaller ones"
        yield f"a rise of up to {points(max(rises), 'up')} may be unseen ({remedy})"


def _named(names: list[str]) -> str:
    """The first of them, and how many more there are."""
    more = [f"{len(names) - NAMED:,} more"] if len(names) > NAMED else []
    return "; ".join([*names[:NAMED], *more])


def _improved(found: Differences) -> Iterator[str]:
    """What is less than before."""
    fallen = sum(each.change == "fallen" for each in found.scores)
    gone = sum(each.change == "gone" for each in found.sets)
    if fallen:
        yield f"{count(fallen, 'score')} {'has' if fallen == 1 else 'have'} fallen"
    if gone:
        yield f"{count(gone, 'minimal set')} {'is' if gone == 1 else 'are'} gone"


def guarantee(found: Differences) -> str:
    """How sure the claimed changes are."""
    once = any(note.code in ("measured-once", "searched-once") for note in found.open)
    if not found.compared or (once and not found.scores and not found.sets):
        return "Nothing was compared: it takes something that was measured before and after."
    if found.confidence == 1.0:
        if _is_exact(found):
            return "All of this is exact: nothing was sampled."
        return "Nothing was sampled; a score that has two ends is not known exactly."
    changed = [each for each in found.scores if each.change in CLAIMED]
    if not changed and not any(each.change in CLAIMED for each in found.sets):
        if found.confidence > 0:
            return f"No change is reported. All intervals together: {_confidence(found)}."
        return "Nothing is certain about all intervals together."
    parts = []
    worst = max((each.error for each in changed), default=0.0)
    if 0 < worst < 1:
        parts.append(
            f"Each reported change of a score has at most {_chance(worst)} chance of being false."
        )
    if found.confidence > 0:
        parts.append(f"All changes together: {_confidence(found)}.")
    return " ".join(parts) or "Nothing is certain about all changes together."


def _confidence(found: Differences) -> str:
    return confidence_text(found.confidence)


def _is_exact(found: Differences) -> bool:
    """Whether all that was compared are numbers, and no intervals."""
    compared: list[ScoreDifference | SetDifference] = [*found.scores, *found.sets]
    known = (ends for each in compared for ends in (each.before, each.after) if ends is not None)
    return all(ends.low == ends.high and ends.certified for ends in known)


def _chance(share: float) -> str:
    """A share with its article: `a 2 %`, `an 8 %`, `an 11 %`."""
    shown = figure(100 * share, digits=2)
    return f"{'an' if AN.match(shown) else 'a'} {shown} %"


def bounds_text(bounds: Bounds | None, quantity: Quantity) -> str:
    """Where a score is: `1.7 – 11.2 %`, `at most 9.6 points`; of means in their units."""
    if bounds is None:
        return "unknown"
    if not bounds.told:
        return "not shown"
    return _ends(bounds, lambda end, to: in_units(end, quantity, to))


def measured_text(bounds: Bounds | None, quantity: Quantity) -> str:
    """The same behind the score itself, where one may be shown: `6.4 % (1.4 – 11.4 %)`."""
    text = bounds_text(bounds, quantity)
    if bounds is None or bounds.score is None or not bounds.told or bounds.low == bounds.high:
        return text
    if quantity.statistic == "mean" or quantity.is_average_of_people:
        return text
    return f"{in_units(bounds.score, quantity)} ({text})"


def size_text(found: ScoreDifference | SetDifference) -> str:
    """By how much what was observed has changed, where that may be shown: `by 3.2 points`."""
    if found.quantity.statistic == "mean" or found.quantity.is_average_of_people:
        return ""
    ends = [found.before, found.after]
    known = [each.score for each in ends if each is not None and each.told]
    if found.change not in CLAIMED or len(known) < 2 or None in known:
        return ""
    before, after = (each or 0.0 for each in known)
    return f"by {in_units(abs(after - before), found.quantity)}"


def _ends(bounds: Bounds, unit: Callable[[float, Rounding], str]) -> str:
    if bounds.low == bounds.high:
        return unit(bounds.low, "near")
    if bounds.low == 0:
        return at_most(unit(bounds.high, "up"))
    if bounds.high == 1 and bounds.score is None:
        return f"more than {unit(bounds.low, 'down')}"
    return ends_text(bounds.low, bounds.high, unit)


def quantity_text(each: ScoreDifference | SetDifference) -> str:
    """What was measured: `causal race, sex of limit`."""
    about = each.quantity
    of = "" if about.output is None else f" of {set_phrase([about.output])}"
    return ", ".join([f"{about.measure} {set_text(about.against)}{of}", *kinds(about)])


def change_text(each: ScoreDifference | SetDifference) -> str:
    """What became of it: `risen`, `new by race`."""
    within = each.within if isinstance(each, SetDifference) else None
    return each.change if within is None else f"{each.change} by {set_text(within)}"
