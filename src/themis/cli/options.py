"""The options that commands share: one dataclass, which a decorator adds to a command.

A new shared option is a new field of `Options`, with its help text.
"""

from __future__ import annotations

import functools
import inspect
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from enum import Enum, StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

import typer

from themis.errors import Mistake, RequestError


class StoppingChoice(StrEnum):
    """When to stop sampling."""

    CERTIFIED = "certified"
    PAPER = "paper"


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the command line says; an option that a command does not offer keeps its default."""

    config: Annotated[
        Path | None,
        typer.Argument(
            metavar="CONFIG",
            help="The file; else themis.toml or pyproject.toml here.",
            show_default=False,
        ),
    ] = None
    confidence: Annotated[
        float | None,
        typer.Option("--confidence", metavar="0.99", help="The chance that the intervals hold."),
    ] = None
    error: Annotated[
        float | None,
        typer.Option("--error", metavar="0.05", help="Half the width of an interval."),
    ] = None
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="42", help="The same seed gives the same result."),
    ] = None
    stopping: Annotated[
        StoppingChoice | None,
        typer.Option(
            "--stopping", help="The rule that ends sampling; the paper's is not certified."
        ),
    ] = None
    max_executions: Annotated[
        int | None,
        typer.Option("--max-executions", metavar="N", help="Run the subject at most so often."),
    ] = None
    max_seconds: Annotated[
        float | None, typer.Option("--max-seconds", metavar="S", help="Stop after so much time.")
    ] = None
    repeats: Annotated[
        int | None,
        typer.Option("--repeats", metavar="N", help="Run each input so often, take the majority."),
    ] = None
    probe: Annotated[
        int | None,
        typer.Option(
            "--probe",
            metavar="N",
            help="Run so many inputs again to look for noise. Default: some; 0: none.",
        ),
    ] = None
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            metavar="N",
            min=1,
            help="Processes at the same time. Default: one per processor for commands, else 1.",
        ),
    ] = None
    cache: Annotated[
        Path | None,
        typer.Option(
            "--cache",
            metavar="FILE",
            help="Keep decisions here; else in .themis/cache.sqlite beside the file.",
        ),
    ] = None
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Neither use nor keep decisions of other runs.")
    ] = False
    trust_pickle: Annotated[
        bool,
        typer.Option(
            "--trust-pickle",
            help="Load a pickle or joblib model, which may run any code it likes.",
        ),
    ] = False
    suite: Annotated[
        Path | None,
        typer.Option(
            "--suite",
            metavar="FILE",
            help="Write the tests with their outputs: .csv, .jsonl or .parquet.",
        ),
    ] = None
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON on stdout, and nothing else.")
    ] = False
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Save the result as JSON."),
    ] = None
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="One sentence per score.")] = False
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show everything that was found.")
    ] = False
    no_progress: Annotated[bool, typer.Option("--no-progress", help="No live line.")] = False
    command: str = ""  # the shortest one that gives the same result

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that are given, which override those of the file."""
        given = {name: getattr(self, name) for name in (*SETTINGS, "repeats", "probe", "suite")}
        return {name: _plain(value) for name, value in given.items() if value is not None}

    @property
    def cache_place(self) -> Path | Literal[False] | None:
        """The file that keeps decisions; None for the usual one, False for none."""
        return False if self.no_cache else self.cache

    @property
    def talks(self) -> bool:
        """Whether to say more than was asked for."""
        return not self.as_json and not self.quiet

    def check(self) -> None:
        """Refuse options that contradict each other."""
        pairs = {
            ("--cache", "--no-cache"): self.no_cache and self.cache is not None,
            ("--quiet", "--verbose"): self.quiet and self.verbose,
        }
        mistakes = [
            Mistake(
                "contradiction",
                option,
                f"contradicts {other}, which is given, too",
                "leave one of them out",
            )
            for (option, other), contradict in pairs.items()
            if contradict
        ]
        if mistakes:
            raise RequestError(mistakes)


SETTINGS = ("confidence", "error", "seed", "stopping", "max_executions", "max_seconds")
TALK = ("as_json", "output", "quiet", "verbose", "no_progress")
# Options that change how a result is shown or how fast it comes, and nothing in it.
WITHOUT_EFFECT = frozenset({*TALK, "jobs", "cache", "no_cache", "suite"})


def with_options(
    *names: str, without: Collection[str] = (), helps: Mapping[str, str] | None = None
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Offer shared options, all if none is named, below those of the command itself.

    The command gets them as its first argument, an `Options`; `helps` are texts in place of theirs.
    """
    hints = get_type_hints(Options, include_extras=True)
    offered = [name for name in (names or hints) if name not in (*without, "command")]
    shared = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=getattr(Options, name),
            annotation=_with_help(hints[name], (helps or {}).get(name)),
        )
        for name in offered
    ]

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(command)
        def run(context: typer.Context, **given: Any) -> int:
            options = {name: given.pop(name) for name in offered}
            return command(Options(**options, command=_command_of(context)), **given)

        first, *own = inspect.signature(command, eval_str=True).parameters.values()
        context = first.replace(name="context", annotation=typer.Context)
        own = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
        run.__signature__ = inspect.Signature([context, *own, *shared])  # type: ignore[attr-defined]
        return run

    return decorate


def _with_help(hint: Any, text: str | None) -> Any:
    """The annotation of an option with another help text."""
    if text is None:
        return hint
    kind, option = get_args(hint)
    option = copy(option)
    option.help = text
    return Annotated[kind, option]


def _command_of(context: typer.Context) -> str:
    return shlex.join(["themis", str(context.info_name), *_given_words(context)])


def _given_words(context: typer.Context) -> Iterator[str]:
    """The arguments and options that were given and matter, the arguments first."""
    given = [
        each
        for each in context.command.params
        if each.name is not None
        and each.name not in WITHOUT_EFFECT
        and getattr(context.get_parameter_source(each.name), "name", "") == "COMMANDLINE"
    ]
    for each in sorted(given, key=lambda parameter: parameter.param_type_name != "argument"):
        value = context.params[str(each.name)]
        for one in value if isinstance(value, list | tuple) else [value]:
            if each.param_type_name != "argument":
                yield max(each.opts, key=len)
            if one is not True:
                yield str(one)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def split_names(given: list[str] | None) -> list[str]:
    """The names of an option that may come at once, between commas, or one by one."""
    return [name.strip() for text in given or () for name in text.split(",") if name.strip()]
