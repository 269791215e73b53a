"""The command `themis diff`: what changed significantly between two saved results?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from themis.cli.endings import ends_properly
from themis.cli.options import AsJson, Verbose, check_talk

if TYPE_CHECKING:
    from themis.results.comparison_differences import Verdict

EXIT_CODES: dict[Verdict, int] = {"nothing new": 0, "new discrimination": 1, "inconclusive": 4}


@ends_properly
def diff(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="An earlier saved result.")],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="A later saved result.")],
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance", metavar="0.01", min=0, max=1, help="Rises of at most this do not count."
        ),
    ] = 0.0,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="One sentence.")] = False,
    verbose: Verbose = False,
) -> int:
    """Say what changed significantly between two saved results."""
    import json

    from themis.cli.session import write
    from themis.results.comparison_differences import compare
    from themis.results.saved_saved_results import read_result
    from themis.show.terminal.comparisons_display_differences import (
        differences_headline,
        render_differences,
    )

    check_talk(quiet=quiet, verbose=verbose)
    found = compare(read_result(before), read_result(after), tolerance=tolerance)
    if as_json:
        write(json.dumps(found.to_dict(), indent=2) + "\n")
    elif quiet:
        write(differences_headline(found) + "\n")
    else:
        write(render_differences(found, file=sys.stdout, everything=verbose))
    return EXIT_CODES[found.verdict]
