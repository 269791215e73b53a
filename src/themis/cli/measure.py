"""The commands that measure: `themis score`, `themis search` and `themis apparent`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from themis.cli.options import AT_ONCE, Options, split_names, with_options
from themis.cli.printing import naming, option_of
from themis.errors import Exit, Mistake, RequestError
from themis.results.notes import Ending
from themis.settings import Stopping

if TYPE_CHECKING:
    from themis.audit.audit import Audit
    from themis.inputs.tables import Table
    from themis.results.model import Measure, Result


MeasureChoice = Literal["causal", "group", "both", "excess"]

Against = Annotated[
    list[str] | None,
    typer.Option(
        metavar="race,sex",
        help="A set of characteristics; repeatable. Default: [run], else each protected one.",
    ),
]
Measured = Annotated[
    MeasureChoice,
    typer.Option(help="Which scores; excess is for random programs."),
]
MaxSize = Annotated[
    int | None, typer.Option(metavar="N", help="Only sets of at most N characteristics.")
]


@with_options(helps={"error": AT_ONCE})
def score(options: Options, against: Against = None, measure: Measured = "both") -> int:
    """Measure how much decisions differ."""
    from themis.cli.files import document_of
    from themis.cli.session import Session, score_exit_code
    from themis.show.terminal.results import render_result

    document = None if options.output is None else document_of(options.output)
    counts = document is not None and document.name == "annex"  # it shows observed rates
    session = Session.open(options, against=against or ())

    def work(audit: Audit) -> Result:
        sets, measures = parse_sets(audit, against or ()), measures_of(measure)
        precise = session.leaves_precision
        return audit.score(sets, measures, observed=counts, at_once=precise)

    return session.run(work, render_result, score_exit_code)


@with_options(without=("exact",))
def search(
    options: Options,
    *,
    threshold: Annotated[
        float, typer.Option(metavar="0.1", help="Find sets that reach this score.")
    ],
    measure: Measured = "causal",
    among: Annotated[
        list[str] | None,
        typer.Option(metavar="race,sex", help="Only sets of these characteristics."),
    ] = None,
    max_size: MaxSize = None,
    of: Annotated[
        str | None,
        typer.Option(metavar="OUTPUT", help="Which output. Default: the first."),
    ] = None,
    decide_only: Annotated[
        bool,
        typer.Option("--decide-only", help="List sets without measuring them."),
    ] = False,
    no_prune: Annotated[
        bool, typer.Option("--no-prune", help="With --stopping paper: test every set.")
    ] = False,
) -> int:
    """Find all minimal sets of characteristics that change decisions."""
    from themis.cli.session import Session
    from themis.show.terminal.results import render_search

    session = Session.open(options)
    names = None if among is None else split_names(among)

    def work(audit: Audit) -> Result:
        _check_search(audit, of, no_prune=no_prune)
        with naming({"output": "--of", "decide_only": "--decide-only"}):
            return audit.search_all(
                threshold,
                measures_of(measure),
                names,
                max_size,
                output=of,
                prune=not no_prune,
                decide_only=decide_only,
            )

    return session.run(work, render_search, _search_exit_code)


Data = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="CSV, JSON lines or Parquet. Default: [profile].",
    ),
]
Counterfactuals = Annotated[
    Literal["generated", "within", "both"] | None,
    typer.Option(help="Generated for each person, or found within the rows. Default: both."),
]
Of = Annotated[
    str | None,
    typer.Option(
        metavar="OUTPUT",
        help="Only this output. Default: all; with --label and --proxies the first.",
    ),
]
Unknown = Annotated[
    Literal["keep", "drop", "error"] | None,
    typer.Option(
        help="Rows with values that the schema lacks. Default: as in [profile], else keep.",
        show_default=False,
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The column of weights."),
]
Draw = Annotated[bool, typer.Option("--draw", help="Draw from the rows if all are too many.")]
OnlyData = Annotated[bool, typer.Option("--only-data", help="Do not measure all inputs as well.")]
Label = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Known outcomes: show error rates by group."),
]
LabelFavourable = Annotated[
    list[str] | None,
    typer.Option(
        metavar="VALUE",
        help="A favourable outcome; repeatable. Default: the favourable outputs.",
    ),
]
Proxies = Annotated[
    bool,
    typer.Option("--proxies", help="Show what may stand in for the sets."),
]


@with_options(without=("exact", "repeats", "probe", "suite"))
def apparent(
    options: Options,
    data: Data = None,
    against: Against = None,
    measure: Measured = "both",
    counterfactuals: Counterfactuals = None,
    of: Of = None,
    unknown: Unknown = None,
    weights: Weights = None,
    draw: Draw = False,
    only_data: OnlyData = False,
    label: Label = None,
    label_favourable: LabelFavourable = None,
    proxies: Proxies = False,
) -> int:
    """Measure how much decisions differ among given people."""
    from themis.cli.session import Session, score_exit_code
    from themis.show.terminal.results import render_result

    own = ("against", "weights", "unknown", "counterfactuals", "draw", "label", "label_favourable")
    names = {"rows": "--data", "output": "--of", **{name: option_of(name) for name in own}}

    def work(audit: Audit) -> Result:
        _check_output(audit, of)
        with naming(names):
            rows = _rows(data, audit, weights, label, against or ())
            return audit.apparent(
                rows,
                parse_sets(audit, against or (), rows),
                measures=measures_of(measure),
                output=of,
                counterfactuals=counterfactuals,
                unknown=unknown,
                weights=weights,
                draw=draw,
                only_data=only_data,
                label=label,
                label_favourable=label_favourable or None,
                proxies=proxies,
            )

    of_profile = against if data is None else None
    session = Session.open(options, {"the data": data}, of_profile or ())
    return session.run(work, render_result, score_exit_code)


def _rows(
    data: Path | None,
    audit: Audit,
    weights: str | None,
    label: str | None,
    against: Iterable[str],
) -> Table | None:
    """The rows of a file; None: those of the profile."""
    from themis.inputs.people import columns_read
    from themis.inputs.tables import read_table

    if data is None:
        return None
    wanted = columns_read(audit.schema, weights, label) | {*split_names(list(against))}
    return read_table(data, only=wanted, listen=audit.sampler.listen)


def measures_of(choice: MeasureChoice, command: str | None = None) -> tuple[Measure, ...]:
    """The scores that a choice stands for; an audit has an excess beside groups."""
    if choice == "excess" and command == "audit":
        return ("excess", "group")
    return ("causal", "group") if choice == "both" else (choice,)


def parse_sets(
    audit: Audit, against: Iterable[str], rows: Table | None = None
) -> Sequence[Sequence[str]]:
    """The sets that `--against` names, or those that the file makes the default.

    Sets of given rows may have columns that the schema lacks.
    """
    schema = audit.schema
    named = [[name.strip() for name in text.split(",")] for text in against]
    asked = {name for each in named for name in each}
    if rows is not None:
        from themis.inputs.people import with_groups

        schema = with_groups(schema, rows, asked)
    if not named and not audit.default_sets:
        problem = "nothing is said to be protected, so there is nothing to measure by default"
        remedy = f"name a set, e.g. --against {schema.names[0]}, or write protected = true in "
        raise RequestError.one("no-set", "--against", problem, f"{remedy}the file")
    mistakes: list[Mistake] = []
    sets: dict[tuple[str, ...], None] = {}
    for names in named or audit.default_sets:
        try:
            columns = schema.columns_of([name for name in names if name])
            sets[tuple(schema.names[column] for column in columns)] = None
        except RequestError as error:
            mistakes += error.mistakes
    RequestError.refuse(dict.fromkeys(mistakes))
    return list(sets)


def _search_exit_code(result: Result) -> Exit:
    """Whether all is decided and measured as precisely as asked."""
    decided = all(search.conclusive for search in result.searches)
    return Exit.DONE if decided and result.stopped is Ending.DONE else Exit.INCONCLUSIVE


def _check_search(audit: Audit, of: str | None, *, no_prune: bool) -> None:
    """Refuse what this search can't be asked for."""
    if no_prune and audit.settings.stopping is not Stopping.PAPER:
        problem = "the certified search never tests what follows from other sets"
        remedy = "leave it out, or add --stopping paper"
        raise RequestError.one("no-prune", "--no-prune", problem, remedy)
    _check_output(audit, of)


def _check_output(audit: Audit, of: str | None) -> None:
    """Refuse an output's name where the file declares none."""
    if of is not None and audit.first_output is None:
        problem = f"there is no output {of!r}"
        remedy = f"declare it in the file as [outputs.{of}], or leave --of out"
        raise RequestError.one("unknown-output", "--of", problem, remedy)
