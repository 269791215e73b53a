"""How does a command end when something is wrong? One line per mistake, and an exit code."""

from __future__ import annotations

import functools
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from themis.errors import MistakesError, ThemisError
from themis.show.words.values import one_line

INTERRUPTED = 130
BROKEN_PIPE = 141  # what a shell reports for a program that SIGPIPE ended
INTERNAL = 70  # EX_SOFTWARE: a bug of ours, none of the documented codes


class UnprintableError(ThemisError):
    """Standard output can't be written, for example because a disk is full."""


def ends_properly(command: Callable[..., int]) -> Callable[..., None]:
    """The command with its return value as exit code; no error leaves a traceback."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            code = command(*arguments, **options)
            with printing():
                sys.stdout.flush()
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except ThemisError as error:
            code = say_error(error)
        except KeyboardInterrupt:
            say("interrupted before anything was learned")
            code = INTERRUPTED
        except BrokenPipeError:
            code = close_stdout()
        except Exception as error:
            code = _say_unprintable(error) or _say_bug(options.get("verbose"))
        raise typer.Exit(code)

    return run


def run_printing(act: Callable[[], None]) -> None:
    """Do what prints outside of all commands, such as help; ends the program where that fails."""
    try:
        with printing():
            try:
                act()
            finally:
                sys.stdout.flush()
    except BrokenPipeError:
        sys.exit(close_stdout())
    except UnprintableError as error:
        sys.exit(say_error(error))


def say_error(error: ThemisError) -> int:
    """Print every mistake on its own line, and give the exit code."""
    if not isinstance(error, MistakesError):
        say(f"error: {error}")
        return error.exit_code
    for mistake in error.mistakes:
        say(f"error: {mistake}")
    if len(error.mistakes) > 1:
        say(f"{len(error.mistakes)} mistakes")
    return error.exit_code


@contextmanager
def printing() -> Iterator[None]:
    """Within, a stdout that can't be written is told like a mistake; a closed pipe stays one."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        close_stdout()
        raise UnprintableError(
            f"standard output can't be written: {error.strerror}; use another place"
        ) from None


def print_line(text: str) -> None:
    """One line on stdout."""
    with printing():
        print(text)


def say(message: str) -> None:
    """One line on stderr; control characters are shown, not obeyed."""
    print(one_line(message), file=sys.stderr, flush=True)


def _say_unprintable(error: Exception) -> int:
    """Say that stdout is the reason, where that is so, and give the exit code; else 0.

    What renders text for a terminal touches stdout, too, past `printing`.
    """
    try:
        if isinstance(error, OSError):
            with printing():
                sys.stdout.write("")
                sys.stdout.flush()
    except (UnprintableError, BrokenPipeError) as found:
        return say_error(found) if isinstance(found, UnprintableError) else close_stdout()
    return 0


def _say_bug(verbose: bool | None) -> int:
    """Say that this is our mistake; `verbose` is None where a command has no such option."""
    error = sys.exc_info()[1]
    say(f"internal error: {type(error).__name__}: {error}; this is a bug of Themis, please report")
    if verbose or os.environ.get("THEMIS_DEBUG"):
        traceback.print_exc()
    else:
        remedy = "THEMIS_DEBUG=1 in the environment" if verbose is None else "-v"
        say(f"{remedy} shows where it happened")
    return INTERNAL


def close_stdout() -> int:
    """Nobody reads any more: let the rest, also what is still buffered, go nowhere."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):  # stdout is no file: there is nothing to close
        pass
    return BROKEN_PIPE
