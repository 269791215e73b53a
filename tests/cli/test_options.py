"""Options that commands share, contradictions, exit codes, and what codes mean."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer
from typer.testing import CliRunner

from tests.projects import Project, run
from themis.cli import app
from themis.cli.options import Options, with_options
from themis.cli.printing import ends_properly
from themis.errors import Exit
from themis.show.words.notes import known_codes


def test_an_option_that_is_not_offered_is_unknown_and_keeps_its_default() -> None:
    seen: list[tuple[Options, int]] = []

    @with_options("seed", "quiet", helps={"seed": "Another text."})
    def command(options: Options, size: Annotated[int, typer.Option("--size")] = 1) -> int:
        """Do something."""
        seen.append((options, size))
        return Exit.DONE

    app = typer.Typer(rich_markup_mode=None)
    app.command()(ends_properly(command))
    assert CliRunner().invoke(app, ["--seed", "7", "--size", "3", "-q"]).exit_code == 0
    ((options, size),) = seen
    assert (options.seed, options.quiet, options.error, size) == (7, True, None, 3)
    assert options.command.endswith("--size 3 --seed 7")  # -q changes nothing in a result
    assert options.settings == {"seed": 7}
    shown = CliRunner().invoke(app, ["--help"]).stdout
    assert "Another text." in shown
    assert "--error" not in shown
    assert CliRunner().invoke(app, ["--error", "0.1"]).exit_code == 2


def test_all_contradictions_are_said_at_once(project: Project) -> None:
    project()
    done = run("score", "-q", "-v", "--cache", "c.sqlite", "--no-cache")
    rest = "which is given, too; leave one of them out"
    assert done.exit_code == 2
    assert done.stderr.splitlines() == [
        f"error[contradiction]: --cache: contradicts --no-cache, {rest}",
        f"error[contradiction]: --quiet: contradicts --verbose, {rest}",
        "2 mistakes; themis explain CODE tells more",
    ]


def test_exit_codes_are_those_of_the_documentation() -> None:
    page = Path(__file__).parents[2] / "docs" / "command-line.md"
    documented = re.findall(r"^\| (\d+) \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(each) for each in documented] == [*sorted({*Exit} - {Exit.BROKEN_PIPE})]


def explain(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["explain", *arguments], prog_name="themis")
    return done.exit_code, done.output


def test_codes_are_explained_and_listed_below_their_groups() -> None:
    assert explain("unknown-key") == (
        0,
        "unknown-key (mistakes in the file)\n"
        "There is no such key here: it is misspelt, or belongs to another table or kind of "
        "subject.\n"
        "What helps: Use the name that the message suggests, or move the key.\n"
        "More: docs/the-file.md\n",
    )
    code, said = explain("groups-not-listed")  # a note
    assert (code, "What helps" in said) == (0, False)
    assert "In JSON: groups, listed, span\n" in said
    problem = "CODE: there is no code 'unknown-kee'; did you mean 'unknown-key'?"
    assert explain("unknown-kee") == (2, f"error[unknown-code]: {problem}\n")
    lines = explain()[1].splitlines()
    assert lines[0] == "Mistakes in the file:"
    assert sum(each.startswith("  ") for each in lines) == len(known_codes())
    assert sum(each.endswith(":") for each in lines) == len({each.group for each in known_codes()})
