"""What can go wrong on purpose, and how it is said: where, rule, received, remedy."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Self


class Exit(IntEnum):
    """The exit codes of all commands."""

    DONE = 0
    DISCRIMINATES = 1  # a limit is violated, or a saved test or a newer result discriminates
    MISTAKE = 2  # in the usage or the file
    SUBJECT_FAILED = 3
    INCONCLUSIVE = 4
    BUG = 70  # EX_SOFTWARE: none of the documented codes
    INTERRUPTED = 130  # by Ctrl-C; after another signal 128 and its number
    BROKEN_PIPE = 141  # what a shell reports for a program that SIGPIPE ended


@dataclass(frozen=True)
class Mistake:
    """One mistake of a user: where it is, what is wrong, and what to do about it."""

    code: str  # stable, kebab-case: unknown-name, empty-values, …
    where: str  # "inputs.age", "--against", "constraint 'adult'"
    problem: str  # the rule and what was received
    remedy: str = ""
    file: str = ""
    line: int | None = None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.line else f"{self.file}: " if self.file else ""
        text = f"{place}{self.where}: {self.problem}" if self.where else f"{place}{self.problem}"
        return f"{text}; {self.remedy}" if self.remedy else text

    def at(self, *, file: str, line: int | None) -> Mistake:
        """The same mistake with its place in a file."""
        return replace(self, file=file, line=line)


class ThemisError(Exception):
    """Base of everything that Themis raises on purpose."""

    exit_code = Exit.MISTAKE  # of a command that it ends


class MistakesError(ThemisError):
    """What the user wrote can't be used; `mistakes` lists every reason, not only the first."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes: tuple[Mistake, ...] = tuple(mistakes)
        super().__init__("\n".join(str(mistake) for mistake in self.mistakes))

    def __reduce__(self) -> tuple[Any, ...]:  # as another process raises it
        return type(self), (self.mistakes,)

    @classmethod
    def one(cls, code: str, where: str, problem: str, remedy: str = "") -> Self:
        """The error of a single mistake."""
        return cls([Mistake(code, where, problem, remedy)])

    @classmethod
    def refuse(cls, mistakes: Iterable[Mistake]) -> None:
        """Raise all of these at once, if there are any."""
        found = tuple(mistakes)
        if found:
            raise cls(found)


class SchemaError(MistakesError):
    """The schema or one of its constraints is wrong."""


class ConfigError(MistakesError):
    """The configuration file is wrong."""


class RequestError(MistakesError):
    """A measurement was asked for that the schema or the settings don't allow."""


class SubjectError(ThemisError):
    """The subject can't be loaded, or failed more often than allowed.

    `result` holds what was learned before it failed, if anything was; `plain` is the message
    without what a subject said, where that is another.
    """

    exit_code = Exit.SUBJECT_FAILED

    def __init__(self, message: str, *, result: Any = None, plain: str = "") -> None:
        super().__init__(message)
        self.result, self.plain = result, plain


class LimitError(ThemisError, AssertionError):
    """A score is not shown to be within its limit; `outcome` is what was measured, if anything."""

    def __init__(self, message: str, *, outcome: Any = None) -> None:
        super().__init__(message)
        self.outcome = outcome


class DiscriminationError(LimitError):
    """A score is shown to be above its limit."""

    exit_code = Exit.DISCRIMINATES
    __module__ = "themis"  # where users find it, and short in the output of their tests


class InconclusiveError(LimitError):
    """Whether a score is above its limit could not be told."""

    exit_code = Exit.INCONCLUSIVE
    __module__ = "themis"


class InconclusiveWarning(UserWarning):
    """Whether a score is above its limit could not be told, and the test goes on all the same."""

    __module__ = "themis"


def count_of(number: float, noun: str, plural: str = "") -> str:
    """`1 row`, `1,404 executions`, `2.5 seconds`."""
    shown = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{shown} {noun if number == 1 else plural or noun + 's'}"


def listed(names: Sequence[str]) -> str:
    """Names in a message: `'sex', 'age' and 'job'`."""
    *first, last = map(repr, names)
    return f"{', '.join(first)} and {last}" if first else last


def suggest(name: str, valid: Sequence[str]) -> str:
    """The remedy for an unknown name: the nearest valid ones, or all of them."""
    for each in valid:
        if unicodedata.normalize("NFC", each) == unicodedata.normalize("NFC", name):
            return f"did you mean {each!r}? It looks alike in another Unicode form: copy it"
    near = difflib.get_close_matches(name, valid, n=1, cutoff=0.6)
    shown = ", ".join(valid[:12]) + (", …" if len(valid) > 12 else "")
    return f"did you mean {near[0]!r}?" if near else f"choose from: {shown}"


class RowsWarning(UserWarning):
    """Rows that do not fit the schema were left out."""


class ColumnsWarning(UserWarning):
    """Columns of a table that can be no characteristics were left out."""
