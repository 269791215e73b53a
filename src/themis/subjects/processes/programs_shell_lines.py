"""How is a program or a text written as one line for a shell? Words, and standard input.

What does not print, such as a line end within a value, is spelled out in a way that the shell
undoes: the line can be shown, copied and run, and gives the very bytes.
"""

from __future__ import annotations

import os
import shlex

OCTAL = "\\{:03o}"  # a byte within $'…'
OCTAL_OF_PRINTF = "\\0{:03o}"  # and for %b


def shell_quoted(word: bytes | str) -> str:
    """A word of a line; `$'…'`, which bash, zsh and ksh know, where something does not print."""
    text = os.fsdecode(word)
    if text.isprintable():
        return shlex.quote(text)
    inner = _spelled_out(text, OCTAL).replace("'", "\\'")
    return f"$'{inner}'"


def shell_feed(data: bytes) -> str:
    """The command that writes these bytes, for the left side of a pipe."""
    text = os.fsdecode(data)
    *lines, rest = text.split("\n")
    if lines and not rest and all(line.isprintable() for line in lines):
        return " ".join(["printf", r"'%s\n'", *map(shlex.quote, lines)])
    if text.isprintable():
        return f"printf %s {shlex.quote(text)}"
    return f"printf %b {shlex.quote(_spelled_out(text, OCTAL_OF_PRINTF))}"


def _spelled_out(text: str, octal: str) -> str:
    """The text with its backslashes doubled, and the bytes of what does not print by number."""
    return "".join(
        each.replace("\\", "\\\\")
        if each.isprintable()
        else "".join(map(octal.format, os.fsencode(each)))
        for each in text
    )
