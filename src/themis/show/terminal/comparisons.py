"""How does a replay look in a terminal? What became of the tests, set by set, with examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from themis.results.replays import STATES, Replay, ReplayedTest
from themis.show.terminal.parts import (
    DIM,
    HEADLINE,
    WARNING,
    Sentence,
    ShellLine,
    make_console,
    short,
)
from themis.show.terminal.progress import ProgressLine
from themis.show.terminal.results import render
from themis.show.words.values import count, duration, visible

STYLES = {"still": "bold red", "new": "bold red", "fixed": "green", "failed": "yellow"}
SHOWN = 2  # examples of each state, unless all are asked for
COMMON = 8  # characteristics shown in which the two people agree


def render_replay(
    replay: Replay,
    *,
    file: IO[str] | None = None,
    width: int | None = None,
    everything: bool = False,
) -> str:
    """The whole replay as text for a terminal or a file."""
    console = make_console(file, width=width)
    return render(_show(replay, everything=everything), console)


def render_replay_headline(replay: Replay, *, file: IO[str] | None = None) -> str:
    """What became of the tests, in one sentence."""
    return render(iter([Sentence(replay_headline(replay))]), make_console(file))


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
        ("failed", "failed"),
        ("unknown", "no longer fit the schema"),
        ("not run", "were not run"),
    ):
        number = replay.count(state)  # type: ignore[arg-type]  # literals lose their type here
        if number:
            text += f"; {number:,} {word}"
    return text


def _show(replay: Replay, *, everything: bool) -> Iterator[RenderableType]:
    yield Sentence(replay_headline(replay), HEADLINE)
    if replay.sets:
        yield ""
        yield _table(replay)
    yield from _examples(replay, everything=everything)
    yield ""
    for reason, rows in replay.unknown_rows.items():
        text = f"{count(rows, 'row')} of {visible(replay.source)}: {visible(reason)}"
        yield Sentence(text, WARNING, first="unknown: ")
    for kind, failure in replay.failures.items():
        person = ", ".join(f"{visible(n)} {visible(v)}" for n, v in failure["input"].items())
        text = (
            f"{visible(kind)} {count(failure['count'], 'time')}, e.g. "
            f"{visible(failure['message'])} for the input: {person}"
        )
        yield Sentence(text, "red", first="failed: ")
        if "reproduce" in failure:
            yield ShellLine(visible(failure["reproduce"]))
    for note in replay.notes:
        yield Sentence(visible(note), DIM, first="note: ")
    yield Sentence(_cost(replay), DIM)


def _table(replay: Replay) -> Table:
    states = [state for state in STATES if replay.count(state)]
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_column(overflow="fold", min_width=10)
    for _ in ("tests", *states):
        table.add_column(no_wrap=True, justify="right")
    table.add_row(*(short(head, DIM) for head in ("against", "tests", *states)))
    for each in replay.sets:
        cells = [_number(each.states.get(state, 0), STYLES.get(state, "")) for state in states]
        name = visible(",".join(each.against)) if any(each.against) else "no set"
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
        parts[0] += f", {replay.changed:,} with another output than before"
    parts.append(count(replay.executions, "execution"))
    if replay.cache_hits:
        parts.append(f"{replay.cache_hits:,} answered from the cache")
    if "seconds" in replay.timing:
        parts.append(duration(replay.timing["seconds"]))
    return " · ".join(parts)


class ReplayLine(ProgressLine):
    """A live line that says how many inputs were run."""

    done, total = 0, 0

    def listen_to_inputs(self, done: int, total: int) -> None:
        """Take notice of where the replay stands."""
        self.done, self.total = done, total

    def line(self) -> Text:
        """The line as it stands now."""
        if not self.total:
            return super().line()
        text = f"replay · {self.done:,} of {count(self.total, 'input')}"
        return Text(text, no_wrap=True, overflow="ellipsis")
