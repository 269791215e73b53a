"""`themis explain`: what the code of a mistake or note means, and what helps."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from themis.cli.printing import print_line, write
from themis.errors import Exit, RequestError, suggest

if TYPE_CHECKING:
    from themis.show.words.codes import Code


def _names() -> list[str]:
    from themis.show.words.codes import known_codes

    return [*dict.fromkeys(each.code for each in known_codes())]


def explain(
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="CODE", help="As in error[CODE], or in JSON.", autocompletion=_names
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> int:
    """Explain the code of a mistake or note; without one, list all."""
    from themis.show.words.codes import known_codes

    found = [each for each in known_codes() if code in (None, each.code)]
    if not found:
        problem = f"there is no code {code!r}"
        raise RequestError.one("unknown-code", "CODE", problem, suggest(str(code), _names()))
    if as_json:
        write(f"{json.dumps([asdict(each) for each in found], indent=2, ensure_ascii=False)}\n")
    elif code is None:
        write("\n".join(_listed(found)) + "\n")
    else:
        for line in (line for each in found for line in _lines(each)):
            print_line(line)
    return Exit.DONE


def _lines(each: Code) -> Iterator[str]:
    yield f"{each.code} ({each.group.lower()})"
    if each.says:
        yield f"It says: {each.says}"
    yield each.means
    if each.helps:
        yield f"What helps: {each.helps}"
    if each.values:
        yield f"In JSON: {', '.join(each.values)}"
    yield f"More: docs/{each.page}"


def _listed(codes: Iterable[Code]) -> Iterator[str]:
    """A line for each code; on a terminal it is cut where that ends."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    for group, own in groupby(codes, lambda each: each.group):
        yield f"{group}:"
        for each in own:
            line = f"  {each.code:24} {each.means.partition('. ')[0].removesuffix('.')}"
            yield line if len(line) <= width else f"{line[: width - 1]}…"
