"""The options that commands share: one dataclass, which a decorator adds to a command.

A new shared option is a new field of `Options`, with its help text.
"""

# ruff: noqa: RUF009 - the calls in `Options` make fields

from __future__ import annotations

import functools
import inspect
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from themis.cli.printing import option_of
from themis.errors import Mistake, RequestError


def _option(text: str, metavar: str | None = None, *names: str, **about: Any) -> Any:
    """A field that is an option, by default of the field's name, with its help text."""
    about |= {"names": names, "help": text, "metavar": metavar}
    return field(default=about.pop("default", None), metadata=about)


def _flag(text: str, *names: str) -> Any:
    return _option(text, None, *names, default=False)


_setting = functools.partial(_option, setting=True)  # an option that overrides one of the file


TRUST = "Load a pickle, which may run any code."


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the command line says; an option that a command does not offer keeps its default."""

    config: Path | None = _option("The file. Default: themis.toml, pyproject.toml here.", "CONFIG")
    without_constraint: list[str] | None = _option("Leave out this constraint; repeatable.", "NAME")
    confidence: float | None = _setting("Confidence level.", "0.99")
    family: bool | None = _setting(
        "One confidence for all results together.", None, "--family/--no-family"
    )
    error: float | None = _setting("Interval half-width.", "0.05")
    seed: int | None = _setting("The same seed gives the same result.", "42")
    stopping: Literal["certified", "paper"] | None = _setting(
        "Stopping rule; paper is for comparison."
    )
    exact: bool | None = _setting("Run every input, however many.", None, "--exact/--no-exact")
    max_executions: int | None = _setting("Maximum number of executions.", "N")
    max_seconds: float | None = _setting("Time limit in seconds.", "S")
    max_total_tokens: int | None = _setting("Maximum tokens of a language model.", "N")
    max_spend: float | None = _setting("Maximum spend, by the file's prices.", "20")
    ahead: bool | None = _setting("Run likely inputs in idle slots.", None, "--ahead/--no-ahead")
    repeats: int | None = _setting("Run each input N times, take the majority.", "N")
    probe: int | None = _setting("Inputs to repeat, for consistency; 0: none.", "N")
    jobs: int | None = _option(
        "Parallel processes. Default: 1; for commands, one per processor.", "N", min=1
    )
    executor: str | None = _option("Run on processes:N or dask://HOST:PORT.", "WHERE")
    cache: Path | None = _option("Keep decisions here (.themis/cache.sqlite).", "FILE")
    no_cache: bool = _flag("Neither use nor keep earlier decisions.")
    trust_pickle: bool = _flag(TRUST)
    suite: Path | None = _setting("Write the tests: .csv, .jsonl or .parquet.", "FILE")
    show_rows: bool | None = _setting(
        "Show rows of people in all output.", None, "--rows/--no-rows"
    )
    as_json: bool = _flag("Print JSON on stdout, and nothing else.", "--json")
    output: Path | None = _option(
        "Save as .json, .html, .md, .csv, .sarif or .junit.xml.",
        "FILE",
        "--output",
        "-o",
    )
    quiet: bool = _flag("One sentence per score, no live line.", "--quiet", "-q")
    verbose: bool = _flag("Show everything that was found.", "--verbose", "-v")
    no_progress: bool = _flag("No live line.")
    events: Path | None = _option("Write events as lines of JSON.", "FILE")
    command: str = ""  # the shortest one that gives the same result

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that are given, which override those of the file."""
        names = [each.name for each in fields(self) if each.metadata.get("setting")]
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value is not None}

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
            ("--jobs", "--executor"): self.jobs is not None and self.executor is not None,
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
        RequestError.refuse(mistakes)


AT_ONCE = "Interval half-width (0.05; finer if quick)."
SETTINGS = ("confidence", "family", "error", "seed", "stopping", "max_executions", "max_seconds")
WHERE = ("jobs", "executor")
TALK = ("as_json", "output", "quiet", "verbose", "no_progress", "events")
# Options that change how a result is shown or how fast it comes, and nothing in it.
WITHOUT_EFFECT = frozenset({*TALK, *WHERE, "ahead", "cache", "no_cache", "suite", "show_rows"})


def with_options(
    *names: str, without: Collection[str] = (), helps: Mapping[str, str] | None = None
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Offer shared options, all if none is named, below those of the command itself.

    The command gets them as its first argument, an `Options`; `helps` are texts in place of theirs.
    """
    shared = [
        _parameter(each, (helps or {}).get(each.name))
        for each in fields(Options)
        if each.metadata and each.name not in without and (not names or each.name in names)
    ]

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(command)
        def run(context: typer.Context, **given: Any) -> int:
            options = {each.name: given.pop(each.name) for each in shared}
            return command(Options(**options, command=_command_of(context)), **given)

        first, *own = inspect.signature(command, eval_str=True).parameters.values()
        context = first.replace(name="context", annotation=typer.Context)
        own = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
        run.__signature__ = inspect.Signature([context, *own, *shared])  # type: ignore[attr-defined]
        return run

    return decorate


def _parameter(option: Field[Any], text: str | None) -> inspect.Parameter:
    """A shared option as Typer reads it from a signature."""
    about = {key: value for key, value in option.metadata.items() if key != "setting"}
    names = about.pop("names") or (option_of(option.name),)
    about["help"] = text or about["help"]
    if option.name == "config":
        info = typer.Argument(**about, show_default=False)
    else:
        info = typer.Option(*names, **about)
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=option.default,
        annotation=Annotated[_option_types()[option.name], info],
    )


@functools.cache
def _option_types() -> dict[str, Any]:
    return get_type_hints(Options)


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
                yield max(each.secondary_opts if one is False else each.opts, key=len)
            if not isinstance(one, bool):
                yield str(one)


def split_names(given: list[str] | None) -> list[str]:
    """The names of an option that may come at once, between commas, or one by one."""
    return [name.strip() for text in given or () for name in text.split(",") if name.strip()]
