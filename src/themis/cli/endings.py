"""The end of a command: its exit code, and one line per mistake instead of a traceback."""

from __future__ import annotations

import functools
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from types import FrameType
from typing import Any

import typer

from themis.cli.printing import UnprintableError, close_stdout, printing, say, spell_program
from themis.config.told import tell
from themis.errors import Exit, Mistake, MistakesError, ThemisError

ENDING_SECONDS = 3.0  # that a program may take to end what it started, without being disturbed


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
        except KeyboardInterrupt as error:
            say("interrupted before anything was learned")
            code = error.args[0] if error.args else Exit.INTERRUPTED
        except BrokenPipeError:
            close_stdout()
            code = Exit.BROKEN_PIPE
        except Exception as error:
            code = _say_unprintable(error) or _say_bug(error, options.get("verbose"))
        raise typer.Exit(int(code))

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
        close_stdout()
        sys.exit(Exit.BROKEN_PIPE)
    except UnprintableError as error:
        sys.exit(say_error(error))
    except KeyboardInterrupt:  # before a command began
        sys.exit(Exit.INTERRUPTED)


def end_undisturbed() -> None:
    """From now on Ctrl-C is let pass: what was started is ended, and files are closed.

    That takes a moment. If it takes longer, Ctrl-C ends the program at once; the keeper of what
    subjects started then clears up behind it.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        return
    over = time.monotonic() + ENDING_SECONDS

    def let_pass(number: int, _frame: FrameType | None) -> None:
        if time.monotonic() > over:
            os._exit(Exit.INTERRUPTED)

    with suppress(ValueError):  # signals are for the main thread
        signal.signal(signal.SIGINT, let_pass)


def say_error(error: ThemisError) -> Exit:
    """Print every mistake on its own line, and give the exit code."""
    mistakes = error.mistakes if isinstance(error, MistakesError) else (error,)
    for mistake in mistakes:
        text = in_options(str(_with_option(mistake)))
        code = f"[{mistake.code}]" if isinstance(mistake, Mistake) else ""
        say(f"error{code}: {text}")
        tell(text)
    if len(mistakes) > 1:
        say(f"{len(mistakes)} mistakes; {spell_program()} explain CODE tells more")
    return error.exit_code


# What Python writes is spelled differently on the command line.
OPTIONS = {
    "show_rows=True": "--rows",
    "trust_pickle=True": "--trust-pickle",
    "cache=False": "--no-cache",
    "cache=FILE": "--cache FILE",
    "suite=FILE": "--suite FILE",
    'unknown="keep" or "drop"': "--unknown keep or drop",
    'unknown="drop"': "--unknown drop",
    "label_favourable=[…]": "--label-favourable VALUE",
}
ARGUMENTS = (  # of Python, that are options here
    *("against", "among", "executor", "threshold", "max_size"),
)


def in_options(text: str) -> str:
    """A message with options in place of Python's arguments."""
    for argument, option in OPTIONS.items():
        text = text.replace(argument, option)
    return text


def _with_option(mistake: Mistake | ThemisError) -> Mistake | ThemisError:
    """The mistake at the option, where Python has an argument of that name."""
    if isinstance(mistake, Mistake) and mistake.where in ARGUMENTS:
        return replace(mistake, where=f"--{mistake.where.replace('_', '-')}")
    return mistake


def _say_unprintable(error: Exception) -> Exit | None:
    """Say that stdout is the reason, where that is so, and give the exit code.

    What renders text for a terminal touches stdout, too, past `printing`.
    """
    if not isinstance(error, OSError):
        return None
    try:
        with printing():
            sys.stdout.write("")
            sys.stdout.flush()
    except UnprintableError as found:
        return say_error(found)
    except BrokenPipeError:
        close_stdout()
        return Exit.BROKEN_PIPE
    return None


def _say_bug(error: Exception, verbose: bool | None) -> Exit:
    """Say that this is our mistake; `verbose` is None where a command has no such option."""
    bug = "this is a bug in Themis; please report it"
    say(f"internal error: {type(error).__name__}: {error}; {bug}")
    tell(f"{type(error).__name__}: {bug}")
    if verbose or os.environ.get("THEMIS_DEBUG"):
        traceback.print_exception(error)
    else:
        remedy = "THEMIS_DEBUG=1 in the environment" if verbose is None else "-v"
        say(f"{remedy} shows where it happened")
    return Exit.BUG
