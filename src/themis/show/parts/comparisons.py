"""Replays and differences: what became of the tests, what changed, and what else to know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from themis.results.comparison import Differences, ScoreDifference, SetDifference
from themis.results.finding import State
from themis.results.replays import STATES, Replay
from themis.show.blocks import Block, Cell, Commands, Content, Head, Number, Part, Statement, Table
from themis.show.words.comparisons import (
    change_text,
    differences_headline,
    guarantee,
    measured_text,
    other_notes,
    pair_outcome,
    quantity_text,
    random_answers,
    replay_cost,
    replay_headline,
    shared_values,
)
from themis.show.words.headlines import capital
from themis.show.words.scores import failure_text
from themis.show.words.searches import set_text
from themis.show.words.values import count, visible, with_followers
from themis.show.words.wording import PLAIN, Wording

ROWS = 200  # of a table
EXAMPLES = 8
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
        for each in (shown if everything else shown[:EXAMPLES])
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
    yield from (Statement(note, "faint", "note") for note in other_notes(found))
    yield Statement(replay_cost(found), "faint")
