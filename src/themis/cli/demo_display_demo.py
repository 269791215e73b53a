"""What does the demo say around its scores? What it does before, what to do next after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from rich.console import RenderableType
from rich.rule import Rule
from rich.text import Text

from themis.cli.demo import INTRODUCTION, NEXT_STEPS, loan_schema
from themis.show.terminal.parts import DIM, Sentence, grid, indented
from themis.show.terminal.results import make_console, render


def render_introduction(file: IO[str]) -> str:
    """What is about to be measured."""
    schema = loan_schema()
    power = len(str(schema.size)) - 1
    text = INTRODUCTION.format(size=f"more than 10^{power}", count=len(schema))
    return render(iter([Sentence(text), ""]), make_console(file))


def render_next_steps(file: IO[str]) -> str:
    """How to measure something of one's own."""

    def parts() -> Iterator[RenderableType]:
        yield ""
        yield Rule(Text("what to do next", "bold cyan"), align="left", style="cyan")
        table = grid({}, {"no_wrap": False, "overflow": "fold"})
        for command, effect in NEXT_STEPS:
            table.add_row(Text(command, "bold"), Text(effect, DIM))
        yield indented(table)

    return render(parts(), make_console(file))
