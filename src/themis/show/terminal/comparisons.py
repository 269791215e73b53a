"""Replays and differences in a terminal: what became of the tests, what changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from themis.results.comparison import Bounds, Differences, ScoreDifference, SetDifference
from themis.results.replays import STATES, Replay, ReplayedTest
from themis.show.terminal.parts import (
    DIM,
    FOLDED,
    HEADLINE,
    NUMBER,
    WARNING,
    Page,
    Sentence,
    failures,
    grid,
    indented,
    make_console,
    render,
    short,
)
from themis.show.words.searches import set_text
from themis.show.words.values import (
    confidence_text,
    count,
    duration,
    percent,
    set_phrase,
    visible,
    with_followers,
)

STYLES = {"still": "bold red", "new": "bold red", "fixed": "green", "failed": "yellow"}
SHOWN = 2  # examples of each state, unless all are asked for
COMMON = 8  # characteristics shown in which the two people agree


def render_replay_headline(replay: Replay, *, file: IO[str] | None = None) -> str:
    """What became of the tests, in one sentence."""
    return render([Sentence(replay_headline(replay))], make_console(file))


def replay_headline(replay: Replay) -> str:
    """`3 of 512 tests discriminate: 2 still, 1 new; 24 are fixed`."""
    if not replay.tests:
        return "there are no tests to run again"
    still, new, fixed = (replay.count(state) for state in ("still", "new", "fixed"))
    total = count(replay.tests, "test")
    text = f"none of {total} discriminates"
    if still + new:
        parts = [f"{n:,} {word}" for n, word in ((still, "still"), (new, "new")) if n]
        verb = "discriminates" if still + new == 1 else "discriminate"
        text = f"{still + new:,} of {total} {verb}: {', '.join(parts)}"
    elif not replay.conclusive:
        text = f"none of {total} is known to discriminate"
    if fixed:
        text += f"; {fixed:,} {'is' if fixed == 1 else 'are'} fixed"
    for state, word in (
        ("unclear", "gave different decisions when run again"),
        ("failed", "failed"),
        ("unknown", "no longer fit the schema"),
        ("not run", "were not run"),
    ):
        number = replay.count(state)  # type: ignore[arg-type]  # literals lose their type here
        if number:
            text += f"; {number:,} {word}"
    return text


def show_replay(replay: Replay, *, width: int, everything: bool) -> Iterator[RenderableType]:
    """What became of the tests, set by set, with examples."""
    yield Sentence(replay_headline(replay), HEADLINE)
    if replay.sets:
        yield ""
        yield _table(replay)
    yield from _examples(replay, everything=everything)
    yield ""
    for reason, rows in replay.unknown_rows.items():
        text = f"{count(rows, 'row')} of {visible(replay.source)}: {visible(str(reason))}"
        yield Sentence(text, WARNING, first="unknown: ")
    yield from failures(replay.failures)
    for note in replay.notes:
        yield Sentence(visible(str(note)), DIM, first="note: ")
    yield Sentence(_cost(replay), DIM)


render_replay = Page[Replay](show_replay)


def _table(replay: Replay) -> Table:
    states = [state for state in STATES if replay.count(state)]
    heads = ("against", "tests", *states)
    numbers = [NUMBER for _ in heads[1:]]
    table = grid({**FOLDED, "min_width": 10}, *numbers, heads=heads, gap=3)
    for each in replay.sets:
        cells = [_number(each.states.get(state, 0), STYLES.get(state, "")) for state in states]
        name = visible(",".join(each.against)) if any(each.against) else "no set"
        name += with_followers(each.against, each.followed)
        table.add_row(Text(name), f"{each.tests:,}", *cells)
    return table


def _number(number: int, style: str) -> Text:
    return Text(f"{number:,}", style) if number else Text("–", DIM)


def _examples(replay: Replay, *, everything: bool) -> Iterator[RenderableType]:
    shown: dict[str, int] = {}
    for test in replay.examples:
        shown[test.state] = shown.get(test.state, 0) + 1
        if everything or (shown[test.state] <= SHOWN and test.state != "fixed"):
            yield ""
            style = STYLES.get(test.state, "")
            yield Sentence(_difference(test), style, first=f"{test.state}: ")
            yield Sentence(_person(test, everything=everything), DIM, first="       ")


def _difference(test: ReplayedTest) -> str:
    """`race green gets 1, race purple gets 0; before, 1 and 0`."""
    people = [
        ", ".join(f"{visible(name)} {visible(person[name])}" for name in _changed(test))
        for person in test.inputs
    ]
    now = [_output(each) for each in test.now]
    then = " and ".join("no decision" if each is None else visible(each) for each in test.before)
    return f"{people[0]} {now[0]}, {people[1]} {now[1]}; before, {then}"


def _output(output: object) -> str:
    return "gets no decision" if output is None else f"gets {visible(output)}"


def _changed(test: ReplayedTest) -> list[str]:
    first, second = test.inputs
    return [name for name in first if first[name] != second[name]] or list(test.against)


def _person(test: ReplayedTest, *, everything: bool) -> str:
    """What the two have in common."""
    changed = _changed(test)
    common = [(name, value) for name, value in test.inputs[0].items() if name not in changed]
    shown = common if everything else common[:COMMON]
    text = ", ".join(f"{visible(name)} {visible(value)}" for name, value in shown)
    return text + (f", + {len(common) - len(shown)} more" if len(shown) < len(common) else "")


def _cost(replay: Replay) -> str:
    parts = [count(replay.inputs, "input")]
    if replay.changed:
        parts[0] += f", {replay.changed:,} with a different output than before"
    parts.append(count(replay.executions, "execution"))
    if replay.cache_hits:
        parts.append(f"{replay.cache_hits:,} answered from the cache")
    if "seconds" in replay.timing:
        parts.append(duration(replay.timing["seconds"]))
    return " · ".join(parts)


COLOURS = {"risen": "bold red", "new": "bold red", "fallen": "green", "gone": "green"}
ROWS = 40  # of a table, unless everything is shown


def differences_headline(found: Differences) -> str:
    """Whether there is new discrimination, in one sentence."""
    risen = sum(each.change == "risen" for each in found.scores)
    new = sum(each.change == "new" for each in found.sets)
    if found.verdict == "new discrimination":
        parts = [f"{count(risen, 'score')} {'has' if risen == 1 else 'have'} risen"] * bool(risen)
        parts += [f"{count(new, 'minimal set')} {'is' if new == 1 else 'are'} new"] * bool(new)
        return f"new discrimination: {', '.join(parts)}"
    if found.verdict == "inconclusive":
        return "undecided: no new discrimination was shown, but some may be unseen"
    return "nothing is significantly new"


def guarantee(found: Differences) -> str:
    """How sure the claimed changes are."""
    if not found.compared:
        return "Nothing was compared: it takes something that was measured before and after."
    if found.confidence == 1.0:
        return "All of this is exact: nothing was sampled."
    parts = []
    if found.scores:
        worst = max(each.error for each in found.scores)
        parts.append(
            f"Each reported change of a score has at most a {_chance(worst)} chance of being false."
        )
    if found.confidence > 0:
        parts.append(f"All changes together: {confidence_text(found.confidence)}.")
    return " ".join(parts) or "Nothing is certain about all changes together."


def _chance(share: float) -> str:
    return f"{100 * share:.2g} %"


def show_differences(
    found: Differences, *, width: int, everything: bool = False
) -> Iterator[RenderableType]:
    """The verdict, the scores, the sets, what else differs, and how sure it is."""
    yield Sentence(differences_headline(found), HEADLINE)
    changed = [each for each in found.scores if each.change in COLOURS]
    rest = [each for each in found.scores if each.change not in COLOURS]
    shown = [*changed, *rest][: None if everything else ROWS]
    if shown:
        yield indented(_table_of("score", shown))
    if len(shown) < len(found.scores):
        yield indented(Sentence(f"… {len(found.scores) - len(shown):,} more: -v shows them", DIM))
    if found.sets:
        yield ""
        only = "that only one of the two searches found"
        yield Sentence(f"minimal sets {'of the one search' if found.one_search else only}")
        yield indented(_table_of("set", found.sets[: None if everything else ROWS]))
    yield ""
    for note in found.open:
        yield Sentence(visible(str(note)), WARNING, first="unseen: ")
    for note in found.unlike:
        yield Sentence(visible(str(note)), DIM, first="note: ")
    yield Sentence(guarantee(found), DIM)


render_differences = Page[Differences](show_differences)


def _table_of(noun: str, differences: Sequence[ScoreDifference | SetDifference]) -> Table:
    heads = (noun, "change", "before", "after")
    table = grid({**FOLDED, "min_width": 10}, FOLDED, {}, {}, heads=heads)
    for each in differences:
        within = each.within if isinstance(each, SetDifference) else None
        words = each.change if within is None else f"{each.change} by {set_text(within)}"
        of = "" if each.quantity.output is None else f" of {set_phrase([each.quantity.output])}"
        table.add_row(
            f"{each.quantity.measure} {set_text(each.quantity.against)}{of}",
            Text(words, COLOURS.get(each.change, "")),
            short(_ends(each.before)),
            short(_ends(each.after)),
        )
    return table


def _ends(bounds: Bounds | None) -> str:
    if bounds is None:
        return "unknown"
    if bounds.low == bounds.high:
        return percent(bounds.low)
    if bounds.low == 0:
        return f"at most {percent(bounds.high)}"
    if bounds.high == 1 and bounds.score is None:
        return f"more than {percent(bounds.low)}"
    return f"{percent(bounds.low)} – {percent(bounds.high)}"
