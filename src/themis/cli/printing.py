"""Printing: results on stdout, messages on stderr, and a stdout that can't be written."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from themis.errors import ThemisError
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
