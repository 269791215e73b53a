"""What single inputs get: the trials and costs of `themis validate`, and what-ifs for the page."""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TextIO

from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from themis.audit.audit import Audit
from themis.audit.plan import Pilot, Plan, Trial, Wish, make_plan
from themis.audit.trying import some_input, try_input
from themis.cli.measure import parse_sets
from themis.cli.options import Options
from themis.cli.printing import hosting_subject, in_options, say, write
from themis.cli.session import Session, about, forecast_sentence, open_config
from themis.config.reader import Config
from themis.errors import Exit, MistakesError, ThemisError
from themis.events import Began, Part
from themis.inputs.characteristics import Characteristic, Integers, Reals, Values
from themis.inputs.numbers import two_digits
from themis.show.terminal.parts import (
    DIM,
    FOLDED,
    MARK,
    WARNING,
    Sentence,
    grid,
    indented,
    make_console,
    render,
    short,
)
from themis.show.terminal.progress import ProgressLine
from themis.show.words.scores import outputs_text
from themis.show.words.values import (
    confidence_text,
    count,
    cut_name,
    percent,
    size,
    tokens_used,
    visible,
)


def try_out(options: Options, wish: Wish, against: Sequence[str]) -> int:
    """Run a few inputs of the file's subject, and show what was found."""
    if wish.command == "audit" and options.family is None:
        options = replace(options, family=True)
    config = open_config(options, against)
    wish = replace(wish, pilot=wish.pilot or config.subject.pilot)
    make = Audit.from_config
    is_live = sys.__stderr__ is not None and sys.__stderr__.isatty()
    with (
        hosting_subject(),
        ProgressLine(enabled=is_live, say=say) as line,
        make(
            config,
            jobs=options.jobs,
            trust_pickle=options.trust_pickle,
            cache=False if wish.pilot is None else None,
            **options.settings,
        ) as audit,
    ):
        line.listen(Began(lambda: audit.runner.activity))
        leaves_precision = Session(options, make, config).leaves_precision
        if against:
            wish = replace(wish, sets=parse_sets(audit, against))
        plan = make_plan(audit, config.checks, at_once=leaves_precision, wish=wish)
    console = make_console(sys.stdout)
    if options.as_json:
        write(f"{json.dumps(as_dict(plan), indent=2)}\n")
    else:
        write(render(show_plan(plan, str(config.path)), console))
    if plan.failure is not None:
        too_often = audit.runner.fails_too_often
        say(f"{'error' if too_often else 'warning'}: {in_options(plan.failure)}")
        if too_often:
            return Exit.SUBJECT_FAILED
    return Exit.DONE


def as_dict(plan: Plan) -> dict[str, Any]:
    """What was found, for programs; what a command costs in sentences, too."""
    plain = ("size", "valid_size", "valid_share", "seconds_per_execution", "example")
    found = {
        **{name: getattr(plan, name) for name in plain},
        "trials": [asdict(each) for each in plan.trials],
        "failure": plan.failure and in_options(plan.failure),
        "warnings": list(map(str, plan.warnings)),
        "forecast": asdict(plan.forecast),
        "checks": plan.checks and asdict(plan.checks),
        "searches": [asdict(each) for each in plan.searches],
        "pilot": plan.pilot and asdict(plan.pilot),
    }
    costs = [*(_costs(plan) if plan.forecast.parts else ()), *_check_costs(plan)]
    return {**found, "costs": [each.text for each in costs]}


def show_plan(plan: Plan, name: str) -> Iterator[RenderableType]:
    """The parts of a plan from top to bottom."""
    answered = any(trial.output is not None for trial in plan.trials)
    if answered:
        yield Sentence(f"{visible(name)} is valid", "bold green")
    else:
        none = f"the subject answered none of {count(len(plan.trials), 'trial input')}"
        yield Sentence(f"{visible(name)} can be read, but {none}", "bold red")
    yield ""
    yield indented(_characteristics(plan))
    yield ""
    yield indented(_domain(plan))
    yield ""
    yield _title(count(len(plan.trials), "trial input"))
    yield indented(_trials(plan.trials))
    yield ""
    if plan.example is not None:
        yield _title("the first of them, in a shell")
        yield indented(Text(visible(plan.example), overflow="fold"))
        yield ""
    if plan.pilot is not None:
        yield _title("the pilot")
        yield from map(indented, map(Sentence, _pilot(plan.pilot)))
        yield ""
    has_checks = bool(plan.checks or plan.searches)
    if not answered:  # what it costs is what failing costs
        yield from _warnings(plan)
        return
    if plan.forecast.parts or (plan.command is None and not has_checks):
        yield _title(f"what themis {plan.command or 'score'} will cost")
        yield from map(indented, _costs(plan))
    if has_checks:
        yield from [""] * bool(plan.forecast.parts)
        yield _title(f"what themis {plan.command or 'check'} will cost")
        yield from map(indented, _check_costs(plan))
    yield from _warnings(plan)


def _pilot(pilot: Pilot) -> Iterator[str]:
    used = ", ".join(tokens_used(asdict(pilot)))
    kept = f"{count(pilot.executions, 'execution')}, whose decisions are kept"
    known = "all answers come from an earlier run"
    yield f"{kept if pilot.executions else known}{used and f': {used}'}"
    yield from map(outputs_text, pilot.outputs)
    for kind, failed in pilot.failures.items():
        yield f"{visible(kind)}: {failed:,}"
    if pilot.repeated:
        inputs = count(pilot.repeated, "input")
        yield f"run twice: {pilot.differing:,} of {inputs} got a different decision"


def _warnings(plan: Plan) -> Iterator[RenderableType]:
    for warning in plan.warnings:
        yield Sentence(visible(str(warning)), WARNING, first="warning: ")


def _title(text: str) -> Rule:
    return Rule(Text(text, "bold"), align="left", style=DIM)


def _characteristics(plan: Plan) -> Table:
    heads = ("characteristic", "values", "bins", "protected", "which")
    name, last = {**FOLDED, "max_width": 20}, {"no_wrap": False}  # the last is what gives way
    table = grid(name, {"justify": "right"}, {}, {}, last, heads=heads)
    for each in plan.schema:
        bins = "" if each.bin_starts is None else f"{each.filled_levels}"
        protected = short("protected", MARK) if each.protected else short("–", DIM)
        table.add_row(
            cut_name(visible(each.name)),
            short(f"{each.size:,}"),
            short(bins),
            protected,
            short(_describe(each), DIM),
        )
    return table


def _describe(each: Characteristic) -> str:
    if each.is_open:
        return "as each row has it"
    missing = "" if each.missing is None else f"{percent(each.missing)} missing; "
    if isinstance(each, Values):
        values = missing + ", ".join(visible(value) for value in each.values[:20])
        if not each.leaders:
            return values
        how = "derived from" if each.derived else "follows"
        return f"{how} {', '.join(map(visible, each.leaders))}: {values}"
    assert isinstance(each, Integers | Reals)
    step = "" if each.step == 1 else f" by {each.step:g}"
    return f"{missing}{each.min:g} to {each.max:g}{step}"


def _domain(plan: Plan) -> Table:
    table = grid({"min_width": len("valid inputs")}, FOLDED)
    table.add_row(short("inputs", DIM), Sentence(size(plan.size)))
    if plan.schema.constraints:
        about = "" if plan.share_is_exact else "about "
        valid = about + size(round(plan.size * Fraction(plan.valid_share)))
        if plan.valid_size is not None:
            valid = size(plan.valid_size)
        constraints = count(len(plan.schema.constraints), "constraint")
        leave = "leaves" if len(plan.schema.constraints) == 1 else "leave"
        share = f"{constraints} {leave} {about}{percent(plan.valid_share)}"
        table.add_row(short("valid inputs", DIM), Sentence(valid))
        table.add_row(short("", DIM), Sentence(share))
    if plan.profile is not None:
        text = f"{visible(plan.profile['file'])}: {count(plan.profile['used'], 'row')}"
        table.add_row(short("drawn from", DIM), Sentence(text))
    return table


def _trials(trials: tuple[Trial, ...]) -> Table:
    judged = any(trial.favourable is not None for trial in trials)
    table = grid({"max_width": 20}, *[{}] * judged, FOLDED)
    shown = trials[0].values
    heads = ("output", *["favourable"] * judged)
    names = "" if shown is None else _listed(shown)
    table.add_row(*(short(head, DIM) for head in heads), Text(names, DIM))
    for trial in trials:
        values = "a row of people, which --rows shows"
        if trial.values is not None:
            values = _listed(trial.values.values())
        failed = trial.output is None
        output = short("failed", "red") if failed else short(visible(trial.output))
        table.add_row(output, *[_favourable(trial)] * judged, Text(values, DIM))
    return table


def _listed(values: Iterable[object]) -> str:
    """Names or values, each whole; of very many the first: `female · 40 · + 3 more`."""
    texts = [cut_name(visible(value)) for value in values]
    more = [f"+ {len(texts) - 20} more"] if len(texts) > 20 else []
    return " · ".join([*texts[:20], *more])


def _favourable(trial: Trial) -> Text:
    if trial.output is None:
        return short("–", DIM)
    return short("yes", "green") if trial.favourable else short("no")


def _costs(plan: Plan) -> Iterator[Sentence]:
    forecast = plan.forecast
    asked = [f"to ± {100 * plan.error:g} points", confidence_text(plan.confidence)]
    if forecast.parts and all(each.exact for each in forecast.parts):
        asked = ["exact"]
    duration = f"one execution takes {_tiny(plan.seconds_per_execution)}"
    yield Sentence(f"{', '.join(asked)}; {duration}", DIM)
    for each in forecast.parts:
        yield Sentence(f"{visible(each.name)}: {_executions(each, plan)}")
    if forecast.search:
        yield Sentence(f"the search: {about(forecast.search, 'execution')} more")
    if forecast.again:
        yield Sentence(f"repeated to check consistency: {about(forecast.again, 'execution')}")
    if forecast.parts:
        yield Sentence(forecast_sentence(forecast))


def _check_costs(plan: Plan) -> Iterator[Sentence]:
    if plan.checks is not None:
        sets = count(len(plan.checks.parts), "set")
        first = f"checks of {sets}: {forecast_sentence(plan.checks)}"
        yield Sentence(f"{first}; more near a limit, fewer far above it")
    for each in plan.searches:
        sets = size(each.sets) + (" set" if each.sets == 1 else " sets")
        yield Sentence(
            f"a search among {sets}: {about(each.executions, 'execution')} if it finds nothing, "
            "more where scores are near the limit; --max-seconds limits it"
        )


def _executions(part: Part, plan: Plan) -> str:
    """What a set takes beyond those before it."""
    is_first = part is plan.forecast.parts[0]
    executions = about(part.executions, "execution") + ("" if is_first else " more")
    if not part.exact:
        return executions
    if is_first and plan.profile is None and plan.valid_size is not None:
        executions = count(plan.valid_size, "input")
    shown = executions if part.executions else "already run by then"
    whom = "all inputs are" if plan.profile is None else "everybody is"
    return f"exact scores: {whom} run ({shown})"


def _tiny(seconds: float) -> str:
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms")):
        if seconds < limit:
            return f"{_two_digits(seconds * factor)} {unit}"
    return f"{_two_digits(seconds)} s"


def _two_digits(number: float) -> str:
    """A number to two digits, never as a power of ten: `0.35`, `3.5`, `200`."""
    return f"{two_digits(number):,.10g}"


def answer_lines(options: Options) -> int:
    """Answer until stdin ends: `{"values": {…}}`, or `{}` for an input to start from.

    The first line says that the subject is loaded. Each names the files that it rests on, with
    their times: where one of them changes, a new process is to be asked.
    """
    asked, told = _asked(), os.fdopen(os.dup(1), "w", encoding="utf-8")
    with told, hosting_subject():
        try:
            config = open_config(options)
            audit = Audit.from_config(
                config, cache=False, trust_pickle=options.trust_pickle, ahead=False
            )
        except ThemisError as error:
            _tell(told, {"mistakes": _said(error)})
            return error.exit_code
        with audit:
            about = {"fingerprint": audit.runner.subject.fingerprint()}
            _tell(told, {**about, "files": _files(config)})
            for question in asked:
                _tell(told, {**about, **_answer(audit, question), "files": _files(config)})
    return Exit.DONE


def _answer(audit: Audit, question: dict[str, Any]) -> dict[str, Any]:
    try:
        if "values" not in question:
            return {"values": some_input(audit)}
        return {"answer": asdict(try_input(audit, question["values"]))}
    except ThemisError as error:
        return {"mistakes": _said(error)}


def _said(error: ThemisError) -> list[str]:
    return [*map(str, error.mistakes if isinstance(error, MistakesError) else [error])]


def _tell(told: TextIO, what: dict[str, Any]) -> None:
    told.write(f"{json.dumps(what, default=str)}\n")
    told.flush()


def _asked() -> Iterator[dict[str, Any]]:
    """The lines of stdin, which the subject can't read; its end interrupts what runs."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    given = os.fdopen(os.dup(0), encoding="utf-8")
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)

    def read() -> None:
        for line in given:
            lines.put(line)
        lines.put("")
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10.0)  # a subject that does not let go is ended with the process
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=read, daemon=True).start()
    return map(json.loads, iter(lines.get, ""))


def _files(config: Config) -> dict[str, int]:
    """What the subject was made of, as far as it is known: what the file names, and modules."""
    spec, folder = config.subject, config.folder
    named = {folder / each for each in _texts(spec.options)}
    named |= {each for pattern in spec.depends for each in folder.glob(pattern)}
    loaded = [getattr(each, "__file__", None) for each in [*sys.modules.values()]]
    named |= {path for each in loaded if each and (path := Path(each)).is_relative_to(folder)}
    return {str(each): each.stat().st_mtime_ns for each in named if each.is_file()}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str) and len(value) < 1_000 and "\0" not in value:
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
