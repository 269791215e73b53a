"""What a command prints, what its subject may not, and how it ends: mistakes and exit codes."""

from __future__ import annotations

import functools
import gc
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TextIO

import typer

from themis.config.told import tell
from themis.errors import Exit, Mistake, MistakesError, RequestError, SubjectError, ThemisError
from themis.show.words.values import one_line


class UnprintableError(ThemisError):
    """Standard output can't be written, for example because a disk is full."""


def write(text: str) -> None:
    """Print on stdout, whatever encoding it has; a closed pipe shows at once."""
    encoding = sys.stdout.encoding or "utf-8"
    with printing():
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
        sys.stdout.flush()


def write_document(text: str) -> None:
    """A document on stdout that names its own encoding, or is data: no sign is replaced."""
    with printing():
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
        sys.stdout.flush()


def print_line(text: str) -> None:
    """A sentence on stdout: wrapped on a terminal, elsewhere one line."""
    write(f"{_fitting(text, sys.stdout)}\n")


def say(message: str, *, command: str = "") -> None:
    """A message on stderr, and a command to be copied; control characters are shown, not obeyed.

    On a terminal it is wrapped, and the command stands below; elsewhere all is one line.
    """
    text = _fitting(one_line(message), sys.stderr)
    joint = "\n  $ " if sys.stderr.isatty() else ": "
    print(f"{text}{joint}{one_line(command)}" if command else text, file=sys.stderr, flush=True)


def _fitting(text: str, stream: TextIO) -> str:
    """The text in lines that fit the terminal, if the stream is one; no word is broken."""
    if not stream.isatty():
        return text
    from themis.show.terminal.parts import make_console, message_lines  # imports rich

    return message_lines(text, make_console(stream).width)


@contextmanager
def printing() -> Iterator[None]:
    """Within, a stdout that can't be written is reported as a mistake; a closed pipe stays one."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        close_stdout()
        raise UnprintableError(
            f"standard output can't be written: {error.strerror}; use another place"
        ) from None


def open_streams() -> None:
    """Let standard streams that are closed lead nowhere.

    Else the next file that is opened would get the number of one, and what is printed with it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", closefd=False))


def close_stdout() -> None:
    """Nobody reads any more: let the rest, also what is still buffered, go nowhere."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):  # stdout is no file: there is nothing to close
        pass


def spell_program() -> str:
    """How this program was called: `themis`, or `python -m themis`."""
    return "python -m themis" if Path(sys.argv[0]).name == "__main__.py" else "themis"


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
        return replace(mistake, where=option_of(mistake.where))
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


def option_of(name: str) -> str:
    """What an argument of Python is called on the command line, unless that is special."""
    return f"--{name.replace('_', '-')}"


@contextmanager
def naming(options: Mapping[str, str]) -> Iterator[None]:
    """Within, mistakes in what was asked carry the names of the options."""
    try:
        yield
    except RequestError as error:
        raise RequestError(
            replace(each, where=options.get(each.where, each.where)) for each in error.mistakes
        ) from None


@contextmanager
def hosting_subject() -> Iterator[None]:
    """Within, what the subject prints goes to stderr, and it can't end the command."""
    if not gc.isenabled():  # as `__main__` starts
        gc.freeze()
        gc.enable()
    try:
        with _stdout_is_stderr(), redirect_stdout(sys.stderr), _no_silent_end():
            yield
    except SystemExit as error:
        raise SubjectError(_ENDED.format(call=f"exit({error.code!r})")) from None


_ENDED = "the subject ended the program with {call}; it must return a decision"


@contextmanager
def _no_silent_end() -> Iterator[None]:
    """Within, `os._exit` of this process says so and tells of no success: nothing was decided."""
    own, end = os.getpid(), os._exit

    def said(status: int) -> NoReturn:
        if os.getpid() == own:
            os.write(2, f"error: {_ENDED.format(call=f'os._exit({status!r})')}\n".encode())
            status = Exit.SUBJECT_FAILED
        end(status)

    os._exit = said
    try:
        yield
    finally:
        os._exit = end


@contextmanager
def _stdout_is_stderr() -> Iterator[None]:
    """Within, file descriptor 1 leads to stderr: libraries print past Python's stdout."""
    try:
        sys.stdout.flush()
        number = sys.stdout.fileno()
        kept = os.dup(number)
    except (OSError, ValueError, AttributeError):  # stdout is no file, as in tests
        yield
        return
    try:
        os.dup2(2, number)
        yield
    finally:
        os.dup2(kept, number)
        os.close(kept)
