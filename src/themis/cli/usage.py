"""Mistakes in how a command is called, said like all others: unknown options, missing arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from themis.cli.printing import say, spell_program
from themis.errors import Mistake, suggest

UsageError: Any = typer.BadParameter.__mro__[1]  # which typer does not name
HELP_ITSELF = "NoArgsIsHelpError"  # no mistake: somebody wants to see the help
WORDS = (  # what typer writes, and what it is here
    (r"^Invalid value for (?P<where>[^:]+): (Value error, )?", r"\g<where>: "),
    (r"Input should be (.*?)(, unable to .*)?$", r"must be \1"),
    (r"^Got unexpected extra arguments?(\(s\))? \((.*)\)$", r"\2 is unexpected"),
    (r"^Missing (argument|option) (.*)$", r"\2: is missing"),
    (r"^Option (\S+) requires an argument$", r"\1: a value is missing"),
)


class Commands(TyperGroup):
    """Commands whose wrong calls end like other mistakes: one message, with a remedy."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _said():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with _said():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if self.get_command(ctx, name) is None:
            remedy = suggest(name, list(self.commands))
            raise UsageError(f"there is no command {name!r}; {remedy}", ctx)
        return super().resolve_command(ctx, args)


@contextmanager
def _said() -> Iterator[None]:
    """Within, wrong calls become one message; the exit code stays."""
    try:
        yield
    except UsageError as error:
        if type(error).__name__ == HELP_ITSELF:
            raise
        say(f"error: {_mistake(error)}")
        raise typer.Exit(error.exit_code) from None


def _mistake(error: Any) -> Mistake:
    """What is wrong with a call, and what helps."""
    where, command = "", "COMMAND"
    if error.ctx is not None:
        root = error.ctx.find_root().command_path
        command = error.ctx.command_path.removeprefix(root).strip()
        where = command or "themis"
    shows = f"`{' '.join(filter(None, (spell_program(), command, '-h')))}` shows how it is called"
    name = getattr(error, "option_name", None)
    if name is not None and type(error).__name__ == "NoSuchOption":
        options = [] if error.ctx is None else error.ctx.command.get_params(error.ctx)
        near = suggest(name, [text for each in options for text in each.opts if text[:2] == "--"])
        remedy = near if near.startswith("did you mean") else shows
        return Mistake("usage", where, f"there is no option {name!r}", remedy)
    text = error.format_message().rstrip(".")
    for pattern, words in WORDS:
        text = re.sub(pattern, words, text)
    problem, _, remedy = text.partition("; ")
    placed = re.match(r"'?([^\s':]+)'?: ", problem)
    if placed is not None:  # at the option, as for all other mistakes
        where, problem = placed[1], problem[placed.end() :]
    received = _received(error)
    if received is not None and received not in problem:
        problem += f", got {received}"
    return Mistake("usage", where, problem, remedy or shows)


def _received(error: Any) -> str | None:
    """The value that is refused, where the error tells it."""
    problems = getattr(error.__cause__ or error.__context__, "errors", None)
    found = [each.get("input") for each in problems()] if callable(problems) else []
    return repr(found[0]) if found else None
