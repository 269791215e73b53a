"""Which options do the commands share? Their names, places and help."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import typer

if TYPE_CHECKING:
    from themis.results.model import Measure


class MeasureChoice(StrEnum):
    """Which scores to measure."""

    CAUSAL = "causal"
    GROUP = "group"
    BOTH = "both"


class StoppingChoice(StrEnum):
    """When to stop sampling."""

    CERTIFIED = "certified"
    PAPER = "paper"


# Typer reads these at run time, so they are spelled Optional[...] for its older versions.
ConfigArgument = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Argument(
        metavar="CONFIG",
        help="The file; else themis.toml or pyproject.toml here.",
        show_default=False,
    ),
]
Against = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--against",
        metavar="race,sex",
        help="A set of characteristics; may be given several times. "
        "Default: each protected one on its own.",
    ),
]
Confidence = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option("--confidence", metavar="0.99", help="The chance that the intervals hold."),
]
Error = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option("--error", metavar="0.05", help="Half the width of an interval."),
]
Seed = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--seed", metavar="42", help="The same seed gives the same result."),
]
Stopping = Annotated[
    Optional[StoppingChoice],  # noqa: UP045
    typer.Option("--stopping", help="The rule that ends sampling; the paper's is not certified."),
]
MaxExecutions = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--max-executions", metavar="N", help="Run the subject at most so often."),
]
MaxSeconds = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option("--max-seconds", metavar="S", help="Stop after so much time."),
]
Repeats = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--repeats", metavar="N", help="Run each input so often, take the majority."),
]
Probe = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--probe",
        metavar="N",
        help="Run so many inputs again to look for noise. Default: some; 0: none.",
    ),
]
Jobs = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--jobs",
        metavar="N",
        min=1,
        help="Processes at the same time. Default: one per processor for commands, else 1.",
    ),
]
CacheFile = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--cache",
        metavar="FILE",
        help="Keep decisions here; else in .themis/cache.sqlite beside the file.",
    ),
]
NoCache = Annotated[
    bool, typer.Option("--no-cache", help="Neither use nor keep decisions of other runs.")
]
TrustPickle = Annotated[
    bool,
    typer.Option(
        "--trust-pickle", help="Load a pickle or joblib model, which may run any code it likes."
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON on stdout, and nothing else.")
]
Output = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--output", "-o", metavar="FILE", help="Save the result as JSON."),
]
SuitePath = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--suite",
        metavar="FILE",
        help="Write the tests with their outputs: .csv, .jsonl or .parquet.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="One sentence per score.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show everything that was found.")]
NoProgress = Annotated[bool, typer.Option("--no-progress", help="No live line.")]


def find(config: Path | None) -> Path:
    """The configuration file that is meant by this argument, or by none."""
    from themis.config.reader import find_config

    if config is None:
        return find_config(Path())
    return find_config(config) if config.is_dir() else config


def given_settings(
    confidence: float | None,
    error: float | None,
    seed: int | None,
    stopping: StoppingChoice | None,
    max_executions: int | None,
    max_seconds: float | None,
    suite: Path | None = None,
    *,
    repeats: int | None = None,
    probe: int | None = None,
) -> dict[str, Any]:
    """The settings that the command line gives, which override those of the file."""
    options = {
        "confidence": confidence,
        "error": error,
        "seed": seed,
        "stopping": None if stopping is None else stopping.value,
        "max_executions": max_executions,
        "max_seconds": max_seconds,
        "suite": suite,
        "repeats": repeats,
        "probe": probe,
    }
    return {name: value for name, value in options.items() if value is not None}


def chosen_cache(cache: Path | None, *, no_cache: bool) -> Path | Literal[False] | None:
    """The cache that two options ask for; both at once is a mistake."""
    if no_cache and cache is not None:
        raise _contradiction("--cache", "--no-cache")
    return False if no_cache else cache


def check_talk(*, quiet: bool, verbose: bool) -> None:
    """Refuse to tell little and everything at once."""
    if quiet and verbose:
        raise _contradiction("--quiet", "--verbose")


def _contradiction(option: str, other: str) -> Exception:
    from themis.errors import Mistake, RequestError

    problem = f"contradicts {other}, which is given, too"
    return RequestError([Mistake("contradiction", option, problem, "leave one of them out")])


def split_names(given: list[str] | None) -> list[str]:
    """The names of an option that may come at once, between commas, or one by one."""
    return [name.strip() for text in given or () for name in text.split(",") if name.strip()]


def measures_of(choice: MeasureChoice) -> tuple[Measure, ...]:
    """The scores that a choice stands for."""
    if choice is MeasureChoice.CAUSAL:
        return ("causal",)
    return ("group",) if choice is MeasureChoice.GROUP else ("causal", "group")
