"""Replays and differences: what became of the tests, what changed, and what else to know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from themis.results.comparison import Differences, ScoreDifference, SetDifference
from themis.results.finding import Bounds, Quantity, State
from themis.results.replays import AT_RANDOM, STATES, Replay, ReplayedTest, TestState
from themis.show.blocks import Block, Cell, Commands, Content, Head, Number, Part, Statement, Table
from themis.show.words.headlines import capital
from themis.show.words.naming import in_units, kinds
from themis.show.words.scores import failure_text
from themis.show.words.values import (
    COMMON,
    Rounding,
    at_most,
    confidence_text,
    count,
    ends_text,
    figure,
    points,
    set_phrase,
    set_text,
    some_of,
    took,
    visible,
    with_followers,
)
from themis.show.words.wording import PLAIN, Wording

ROWS = 200  # of a table
CHANGES = {"risen": "grave", "risen, tolerated": "open", "new": "grave",
           "fallen": "calm", "gone": "calm"}  # first in a table  # fmt: skip
OUTCOMES = {"still": "grave", "new": "grave", "fixed": "calm", "failed": "open"}
VERDICTS: dict[str, State] = {"new discrimination": "grave", "nothing new": "calm"}


def headline_of(found: Differences | Replay) -> str:
    """What became of all, in one sentence without its full stop."""
    if isinstance(found, Differences):
        return differences_headline(found)
    return replay_headline(found)


def state_of(found: Differences | Replay) -> State:
    """Whether something got worse."""
    if isinstance(found, Differences):
        return VERDICTS.get(found.verdict, "open")
    if found.count("still", "new"):
        return "grave"
    return "calm" if found.conclusive else "open"


def comparison_tables(
    found: Differences | Replay, words: Wording = PLAIN, *, everything: bool = False
) -> Iterator[Part]:
    """The scores and sets that were compared; or the tests of each set, and examples."""
    most = None if everything else ROWS
    tables = _differences(found, most)
    if isinstance(found, Replay):
        tables = (_tests(found, most), _examples(found, words, everything=everything))
    yield from (Part(each.title, (each,)) for each in tables if each.rows)


def _differences(found: Differences | Replay, most: int | None) -> tuple[Table, ...]:
    if isinstance(found, Replay):
        return ()
    only = "that only one of the two searches found"
    sets = f"Minimal sets {'of the one search' if found.one_search else only}"
    return _changes("Scores", found.scores, most), _changes(sets, found.sets, most)


def _changes(
    title: str, differences: Sequence[ScoreDifference | SetDifference], most: int | None
) -> Table:
    ranked = sorted(differences, key=lambda each: each.change not in CHANGES)
    rows: list[Sequence[Content]] = [
        (
            quantity_text(each),
            Cell(capital(change_text(each)), state=CHANGES.get(each.change, "")),
            *(measured_text(ends, each.quantity) for ends in (each.before, each.after)),
        )
        for each in ranked[:most]
    ]
    heads = ("Score" if title == "Scores" else "Set", "Change", "Before", "After")
    return Table(title, heads, rows, _more(len(ranked) - len(rows)))


def _more(hidden: int) -> str:
    return f"{count(hidden, 'more row')} not shown" if hidden > 0 else ""


def _tests(replay: Replay, most: int | None) -> Table:
    states = [state for state in STATES if replay.count(state)]
    rows: list[Sequence[Content]] = [
        (
            (set_text(each.against) or "no set") + with_followers(each.against, each.followed),
            f"{each.tests:,}",
            *(_number(each.states.get(state, 0), OUTCOMES.get(state, "")) for state in states),
        )
        for each in replay.sets[:most]
    ]
    heads: list[Head] = ["Set", Number("Tests"), *(Number(capital(each)) for each in states)]
    return Table("Tests by set", heads, rows, _more(len(replay.sets) - len(rows)))


def _number(number: int, state: str) -> Cell:
    return Cell(f"{number:,}", state=state) if number else Cell("–")


def _examples(replay: Replay, words: Wording, *, everything: bool) -> Table:
    shown = [each for each in replay.examples if everything or each.state != "fixed"]
    rows: list[Sequence[Content]] = [
        (
            Cell(capital(each.state), state=OUTCOMES.get(each.state, "")),
            pair_outcome(each, words),
            shared_values(each, everything=everything),
        )
        for each in (shown if everything else shown[:8])
    ]
    return Table("Examples", ("State", "Pair", "Both have"), rows)


def remarks(found: Differences | Replay) -> Iterator[Block]:
    """What else differs, what could not be seen, and how sure all of it is."""
    if isinstance(found, Differences):
        yield from (Statement(str(note), "warning", "unseen") for note in found.open)
        yield from (Statement(str(note), "faint", "note") for note in found.unlike)
        yield Statement(guarantee(found))
        return
    for reason, rows in found.unknown_rows.items():
        text = f"{count(rows, 'row')} of {visible(found.source)}: {reason}"
        yield Statement(text, "warning", "unknown")
    for kind, failure in found.failures.items():
        yield Statement(failure_text(kind, failure), "warning", "failed")
        if "reproduce" in failure:
            yield Commands((failure["reproduce"],))
    if noise := random_answers(found):
        yield Statement(noise, "warning")
    others = (str(each) for each in found.notes if each.code != AT_RANDOM)
    yield from (Statement(each, "faint", "note") for each in others)
    yield Statement(replay_cost(found), "faint")


CLAIMED = ("risen", "risen, tolerated", "fallen", "new", "gone")  # changes that are certain
OTHERS: dict[TestState, str] = {  # states of tests that do not differ, or are not known to
    "fixed": "equal now",
    "unclear": "with different decisions when run again",
    "unconfirmed": "unconfirmed",
    "failed": "failed",
    "unknown": "outside the schema",
    "not run": "not run",
}


def replay_headline(replay: Replay) -> str:
    """`3 of 512 tests differ: 2 still, 1 new; 24 equal now`, `None of 512 tests differs`."""
    if not replay.tests:
        return "There are no tests to run again"
    total, differing = count(replay.tests, "test"), replay.count("still", "new")
    text = f"None of {total} {'differs' if replay.conclusive else 'is known to differ'}"
    if differing:
        text = f"{differing:,} of {total} {'differs' if differing == 1 else 'differ'}: "
        text += _numbers(replay, {"still": "still", "new": "new"})
    return "; ".join(filter(None, [text, _numbers(replay, OTHERS)]))


def _numbers(replay: Replay, words: Mapping[TestState, str]) -> str:
    """How many tests are in each of these states, as far as some are."""
    numbers = {word: replay.count(state) for state, word in words.items()}
    return ", ".join(f"{number:,} {word}" for word, number in numbers.items() if number)


def random_answers(replay: Replay) -> str | None:
    """That the subject seems to answer at random, where a note of the replay says so."""
    return next((f"{capital(str(each))}." for each in replay.notes if each.code == AT_RANDOM), None)


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
    texts = [f"{visible(name)} {visible(value)}" for name, value in common]
    return some_of(texts, len(texts) if everything else COMMON, more=", + {} more")


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
    none = "No difference has grown"
    if small := [quantity_text(each) for each in found.scores if each.change == "risen, tolerated"]:
        none += f" beyond the tolerance (tolerated: {_named(small)})"
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
    return some_of(names, 3, between="; ", more="; {} more")


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
        return "Nothing was sampled."
    worst = max((each.error for each in found.scores if each.change in CLAIMED), default=0.0)
    parts = []
    if 0 < worst < 1:
        chance = f"{figure(100 * worst, digits=2)} %"
        parts.append(f"Each reported change of a score is false with a chance of at most {chance}.")
    if found.confidence > 0:
        parts.append(f"All of it together: {confidence_text(found.confidence)}.")
    return " ".join(parts) or "Nothing is certain about all of it together."


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
