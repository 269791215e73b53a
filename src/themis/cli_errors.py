"""How does a command end when something is wrong? One line per mistake, and an exit code."""

from __future__ import annotations

import functools
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import typer

from themis.errors import MistakesError, ThemisError

INTERRUPTED = 130
BROKEN_PIPE = 141  # what a shell reports for a program that SIGPIPE ended
INTERNAL = 70  # EX_SOFTWARE: a bug of ours, none of the documented codes


def ends_properly(command: Callable[..., int]) -> Callable[..., None]:
    """The command with its return value as exit code; no error leaves a traceback."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            code = command(*arguments, **options)
            sys.stdout.flush()
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except ThemisError as error:
            code = say_error(error)
        except KeyboardInterrupt:
            say("interrupted before anything was learned")
            code = INTERRUPTED
        except BrokenPipeError:
            _close_stdout()
            code = BROKEN_PIPE
        except Exception:
            code = _say_bug(verbose=bool(options.get("verbose")))
        raise typer.Exit(code)

    return run


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


def say(message: str) -> None:
    """One line on stderr; control characters are shown, not obeyed."""
    print(one_line(message), file=sys.stderr, flush=True)


def one_line(text: str) -> str:
    """The text with everything that would move the cursor spelled out."""
    if text.isprintable():
        return text
    return "".join(
        each
        if each.isprintable()
        else each.encode("unicode_escape", "surrogatepass").decode("ascii")
        for each in text
    )


def _say_bug(*, verbose: bool) -> int:
    error = sys.exc_info()[1]
    say(f"internal error: {type(error).__name__}: {error}; this is a bug of Themis, please report")
    if verbose or os.environ.get("THEMIS_DEBUG"):
        traceback.print_exc()
    else:
        say("-v shows where it happened")
    return INTERNAL


def _close_stdout() -> None:
    """Nobody reads any more: let the rest, also what is still buffered, go nowhere."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):  # stdout is no file: there is nothing to close
        pass
