"""The commands `themis cache …`: what is kept of earlier runs, and away with it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from themis.cli.endings import ends_properly, one_line, print_line
from themis.cli.options import find

CONFIG_NAMES = (".toml",)

cache_app = typer.Typer(
    name="cache", help="What is kept of earlier runs.", no_args_is_help=True, rich_markup_mode=None
)

Place = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Argument(
        metavar="CONFIG|FILE",
        help="A configuration file, whose cache is meant, or a cache itself.",
        show_default=False,
    ),
]


@cache_app.command()
@ends_properly
def info(place: Place = None) -> int:
    """Say where the cache is, how large, and what it holds."""
    from themis.cli.saved_display_cache import show_contents
    from themis.cli.session import write
    from themis.engine.cache_cache_contents import read_contents
    from themis.show.terminal.results import make_console, render

    console = make_console(sys.stdout)
    write(render(show_contents(read_contents(_cache_of(place))), console))
    return 0


@cache_app.command()
@ends_properly
def clear(
    place: Place = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Delete the cache."""
    from themis.engine import cache_cache_contents as cache_contents
    from themis.errors import Mistake, RequestError

    path = _cache_of(place)
    if not path.exists():
        print_line(f"there is no cache {one_line(str(path))}")
        return 0
    if not yes:
        if not sys.stdin.isatty():
            problem = f"{path} would be deleted"
            raise RequestError([Mistake("confirm", "cache clear", problem, "--yes does it")])
        typer.confirm(f"Delete {one_line(str(path))}?", abort=True)
    cache_contents.clear(path)
    print_line(f"deleted {one_line(str(path))}")
    return 0


def _cache_of(place: Path | None) -> Path:
    """The cache that is meant: a file itself, or that of a configuration file."""
    from themis.engine.cache_cache_file import default_path

    if place is not None and not place.is_dir() and place.suffix not in CONFIG_NAMES:
        return place
    return default_path(find(place).parent)
