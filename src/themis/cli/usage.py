"""Mistakes in how a command is called, said like all others: unknown options, missing arguments."""

from __future__ import annotations

import difflib
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from themis.cli.printing import say, spell_program
from themis.errors import Mistake, suggest

UsageError: Any = typer.BadParameter.__mro__[1]  # which typer does not name
LIKE = 0.7  # how alike two names of options are, of which one may be meant for the other
NARROW = 52  # below this width names of options leave no room for their texts beside them
HELP_ITSELF = "NoArgsIsHelpError"  # no mistake: somebody wants to see the help
WORDS = (  # what typer writes, and what it is here
    (r"^Invalid value for (?P<where>[^:]+): (Value error, )?", r"\g<where>: "),
    (r"Input should be (.*?)(, unable to .*)?$", r"must be \1"),
    (r"^Got unexpected extra arguments?(\(s\))? \((.*)\)$", r"\2 is unexpected"),
    (r"^Missing (argument|option) (.*)$", r"\2: is missing"),
    (r"^Option '?(\S+?)'? requires an argument$", r"\1: a value is missing"),
    (r"^Option '?(\S+?)'? does not take a value$", r"\1: takes no value; give \1 alone"),
)


class Command(TyperCommand):
    """A command whose help fits narrow terminals."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        super().format_help(ctx, _fitting(formatter))


class Commands(TyperGroup):
    """Commands whose wrong calls end like other mistakes: one message, with a remedy."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        super().format_help(ctx, _fitting(formatter))

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _said():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with _said(ctx):
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if self.get_command(ctx, name) is None:
            remedy = suggest(name, list(self.commands))
            raise UsageError(f"there is no command {name!r}; {remedy}", ctx)
        return super().resolve_command(ctx, args)


def _fitting(formatter: Any) -> Any:
    """What writes help, which by itself is never narrower than 50 columns."""
    columns = shutil.get_terminal_size().columns
    if columns < NARROW:
        formatter.width = columns
        formatter.write_dl = partial(formatter.write_dl, col_max=columns // 3)
    return formatter


@contextmanager
def _said(ctx: Any = None) -> Iterator[None]:
    """Within, wrong calls become one message; the exit code stays.

    `ctx` is that of the command whose part is called.
    """
    try:
        yield
    except UsageError as error:
        if type(error).__name__ == HELP_ITSELF:
            raise
        say(f"error: {_mistake(error, ctx)}")
        raise typer.Exit(error.exit_code) from None


def _mistake(error: Any, ctx: Any) -> Mistake:
    """What is wrong with a call, and what helps."""
    command = _path(error.ctx or ctx)
    if error.ctx is None and ctx is not None:  # while the parser was at work
        command = f"{command} {ctx.invoked_subcommand or ''}".strip()
    where = command or "themis"
    shows = f"`{' '.join(filter(None, (spell_program(), command, '-h')))}` shows how it is called"
    name = getattr(error, "option_name", None)
    if name is not None and type(error).__name__ == "NoSuchOption":
        remedy = _nearest(name, error.ctx) or _format(name, command) or shows
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


def _path(ctx: Any) -> str:
    """The command without the program: `cache info`."""
    return (
        "" if ctx is None else ctx.command_path.removeprefix(ctx.find_root().command_path).strip()
    )


def _nearest(name: str, ctx: Any) -> str | None:
    """The option that is meant, if one is nearly called so."""
    options = [] if ctx is None else ctx.command.get_params(ctx)
    bare = [text[2:] for each in options for text in each.opts if text[:2] == "--"]
    near = difflib.get_close_matches(name.lstrip("-"), bare, n=1, cutoff=LIKE)
    return f"did you mean '--{near[0]}'?" if near else None


def _format(name: str, command: str) -> str | None:
    """How to get a format that was asked for as if it were an option."""
    from themis.show.reports.formats import FORMATS

    wanted = name.lstrip("-")
    if wanted not in FORMATS or command == "report":
        return None
    return f"save the result with -o, then `{spell_program()} report --format {wanted}` writes it"


def _received(error: Any) -> str | None:
    """The value that is refused, where the error tells it."""
    problems = getattr(error.__cause__ or error.__context__, "errors", None)
    found = [each.get("input") for each in problems()] if callable(problems) else []
    return repr(found[0]) if found else None
