"""One run of a command: signals, the live line, events, saving, and the exit code."""

from __future__ import annotations

import json
import math
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, cast

from themis.audit.audit import Audit
from themis.audit.given import with_columns
from themis.cli.files import (
    Files,
    check_places,
    check_targets,
    document_of,
    save,
    source_of,
)
from themis.cli.options import Options, split_names
from themis.cli.printing import (
    hosting_subject,
    in_options,
    naming,
    option_of,
    print_line,
    say,
    write,
)
from themis.config.reader import Config, load_config, placing
from themis.config.told import check_confirmed
from themis.errors import Exit, RequestError, SubjectError
from themis.events import FACTOR, Activity, Began, Event, Forecast, Listener, ignore
from themis.inputs.numbers import two_digits
from themis.results.model import Result
from themis.results.notes import Ending, Note
from themis.results.withheld import withheld
from themis.show.terminal.progress import ProgressLine
from themis.show.words.values import about_duration, at_cost, count, file_size

if TYPE_CHECKING:
    from themis.engine.suites import Suite
    from themis.results.replays import Replay

Learned = TypeVar("Learned", bound="Result | Replay")


@dataclass(frozen=True)
class Session:
    """One run of a command: whom it audits, and how the user wants to be told."""

    options: Options
    make_audit: Callable[..., Audit]  # from settings and a listener
    config: Config | None = None  # of the demonstration there is none

    @classmethod
    def open(
        cls, options: Options, reads: Files | None = None, against: Iterable[str] = ()
    ) -> Session:
        """The session that the command line and its file describe.

        Refuses to overwrite what the command reads: `reads` by what they are, in words.
        """
        config = open_config(options, against)
        writes = {"--output": options.output, "--suite": options.suite}
        check_targets(writes, {**(reads or {}), "the cache": options.cache})
        make_audit = partial(
            Audit.from_config,
            config,
            jobs=options.jobs,
            executor=options.executor,
            cache=options.cache_place,
            trust_pickle=options.trust_pickle,
        )
        return cls(options, make_audit, config)

    @property
    def leaves_precision(self) -> bool:
        """Whether neither the command line nor the file says how precise scores are to be."""
        options, lines = self.options, {} if self.config is None else self.config.lines
        given = options.error is None and options.exact is None
        return given and lines.keys().isdisjoint({"run.error", "run.exact"})

    @property
    def is_live(self) -> bool:
        """Whether somebody watches: a terminal, and neither JSON nor silence was asked for."""
        wanted = self.options.talks and not self.options.no_progress
        return wanted and sys.__stderr__ is not None and sys.__stderr__.isatty()

    def run(
        self,
        work: Callable[[Audit], Learned],
        page: Callable[..., str],
        exit_code: Callable[[Learned], Exit],
        *,
        lines: Callable[..., str] | None = None,
        source: Mapping[str, Any] | None = None,
    ) -> int:
        """Do the work, show what was learned as a page or in lines, and give the exit code.

        Without `lines` they are those of a result. `source` is added to what the result says about
        where it comes from.
        """
        self.options.check()
        check_places(self.options.output, self.options.suite)
        with self._watch() as watch:
            return self._run(watch, work, page, exit_code, lines, source or {})

    def _run(
        self,
        watch: Watch,
        work: Callable[[Audit], Learned],
        page: Callable[..., str],
        exit_code: Callable[[Learned], Exit],
        lines: Callable[..., str] | None,
        source: Mapping[str, Any],
    ) -> int:
        problem, learned, audit, unstored, told = None, None, None, None, 0
        began = time.monotonic()
        with hosting_subject():
            try:
                with watch.line, self._placing():
                    audit = self._start(watch)
                    told = _say_notes(audit.apparatus.cache_notes)
                    learned = _with_loading(work(audit), began)
                    if audit.suite is not None:
                        audit.suite.failed = _is_empty(learned)
            except SubjectError as error:
                problem, learned = str(error), error.result
                if audit is not None and audit.suite is not None:
                    audit.suite.failed = True
            finally:
                unstored = _close(audit)
                if audit is not None:
                    _say_notes(audit.apparatus.cache_notes[told:])
        watch.finish()
        if isinstance(learned, Result):
            own = source_of(self.config, self.options.command)
            learned = replace(learned, source={**own, **source})
        if learned is not None:
            self._tell(learned, page, lines, failed=problem is not None)
        if problem is not None:
            say(f"error: {in_options(problem)}")
            code: int = Exit.SUBJECT_FAILED
        else:
            assert learned is not None
            assert audit is not None
            code = exit_code(learned)
            if learned.stopped is Ending.INTERRUPTED:
                _say_interrupted(audit)
                code = watch.exit_code
        if audit is not None and audit.suite is not None and self.options.talks:
            _say_suite(audit.suite)
        if unstored is not None:
            raise unstored
        return code

    def _watch(self) -> Watch:
        talks = self.options.talks
        listen = say_forecast if talks else ignore
        may, quiet = not self.options.no_progress, self.options.quiet and not self.options.as_json
        written = EventLines(self.options.events)
        return Watch(listen, written, live=self.is_live, talks=talks and may, quiet=quiet and may)

    @contextmanager
    def _placing(self) -> Iterator[None]:
        """Within, mistakes carry the names of options, or the line of the file."""
        options = {name: option_of(name) for name in self.options.settings}
        with placing(self.config) if self.config else nullcontext(), naming(options):
            yield

    def _start(self, watch: Watch) -> Audit:
        audit = self.make_audit(**self.options.settings, listen=watch.listen)
        audit.runner.heed = watch.heed
        audit.sampler.keep_on_interrupt = True
        watch.listen(Began(lambda: audit.runner.activity))
        return audit

    def _tell(
        self,
        learned: Learned,
        page: Callable[..., str],
        lines: Callable[..., str] | None,
        *,
        failed: bool,
    ) -> None:
        """Save and show what was learned; a run that failed does not replace an earlier file."""
        from themis.show.terminal.results import render_quiet

        options, brief = self.options, cast(Callable[..., str], lines or render_quiet)
        is_empty = _is_empty(learned)
        output = None if is_empty and not failed else options.output
        spared = failed and output is not None and output.is_file()
        unsaved = None if spared else _save(learned, output)
        if options.as_json:
            write(_json(learned))
        elif is_empty:
            write("" if failed else "nothing was measured: it was interrupted\n")
        elif options.quiet:
            write(brief(withheld(learned), file=sys.stdout))
        else:
            write(page(withheld(learned), file=sys.stdout, everything=options.verbose))
        if unsaved is not None:
            raise unsaved
        if spared:
            say(f"{output} is left as it was: the run failed")
        elif output is not None and self.options.talks:
            print_line(f"saved in {output}")


def _is_empty(learned: Result | Replay) -> bool:
    """Whether a run ended before it measured anything."""
    if not isinstance(learned, Result) or learned.searches or learned.checks:
        return False
    is_interrupted = learned.stopped is Ending.INTERRUPTED
    return not any(each.samples or not is_interrupted for each in learned.scores)


def _with_loading(learned: Learned, began: float) -> Learned:
    """The same, with how long it took to load rows and subject before anything was measured."""
    loading = time.monotonic() - began - learned.timing.get("seconds", 0.0)
    return replace(learned, timing={**learned.timing, "loading": round(max(loading, 0.0), 3)})


def _say_suite(suite: Suite) -> None:
    """Say what a suite holds, or that an earlier one was kept."""
    place = suite.path
    if suite.is_spared:
        say(f"{place} is left as it was: the run failed")
        return
    if suite.is_cut:  # how much of it is there is not known; the error says what to do
        return
    tests, rows = count(suite.tests, "test"), count(suite.rows, "row")
    say(f"{tests}, {rows} in {place} ({file_size(place.stat().st_size)})")


def _say_notes(notes: Sequence[Note]) -> int:
    """Say what there is to know about the cache, and give the number of notes."""
    for note in notes:
        say(f"note: {note}")
    return len(notes)


def _say_interrupted(audit: Audit) -> None:
    """Say how to get the rest of a run that a signal ended."""
    remedy = "the same command gives the full answer"
    if audit.runner.recall is not None:
        remedy = "what was run is stored: run the same command again to go on"
    say(f"interrupted; {remedy}", command=shlex.join(["themis", *sys.argv[1:]]))


def open_config(options: Options, against: Iterable[str] = ()) -> Config:
    """The file that is meant; the only place where a command that runs the subject reads it.

    Sets that people are compared `against` may have columns of the profile that the file lacks.
    """
    config = load_config(options.config or Path())
    check_confirmed(config.path)
    with naming({"constraints": "--without-constraint", "against": "--against"}):
        config = replace(config, schema=config.schema.without(*options.without_constraint or ()))
        return with_columns(config, split_names(list(against)))


def _json(learned: Result | Replay) -> str:
    return json.dumps(learned.to_dict(), indent=2) + "\n"


def _save(learned: Result | Replay, output: Path | None) -> RequestError | None:
    """Write the result where the user wants it, if anywhere; gives the reason if it can't."""
    try:
        if output is not None:
            named, text = document_of(output), _json(learned)
            if named is not None and isinstance(learned, Result):
                text = named.render(learned)
            save(output, text, remedy="the result is shown above")
    except RequestError as error:  # what was learned is still to be shown
        return error
    return None


def _close(audit: Audit | None) -> RequestError | None:
    """End what the audit keeps open; what can't be stored must not hide what was learned."""
    try:
        if audit is not None:
            audit.close()
    except RequestError as error:
        return error
    return None


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Watch:
    """Listens to a run: shows it in the live line, and ends it when a signal asks for that.

    Signals are those of Ctrl-C, of a cancelled job or container, and of a closed terminal. Each is
    a KeyboardInterrupt at once, and once more between two batches, because the subject may swallow
    the first one. Signals come in bursts: those within a second of the first are let pass, and so
    is one while what was learned is saved and shown.
    """

    def __init__(
        self,
        listen: Listener = ignore,
        written: EventLines | None = None,
        *,
        live: bool = False,
        talks: bool = False,
        quiet: bool = False,
    ) -> None:
        """Lines are said where it `talks`; if asked to be `quiet`, of what takes long alone."""
        self.line = ProgressLine(enabled=live, say=say if talks or quiet else None)
        self._written = written or EventLines(None)
        self._written.shown = lambda: self.line.line().plain
        self._listeners = (self.line.listen, listen, self._written.listen)
        self.exit_code: int = Exit.INTERRUPTED
        self._interrupted = self._spares_one = False
        self._heard = -math.inf
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Watch:
        if threading.current_thread() is threading.main_thread():  # only there signals arrive
            for number in SIGNALS:
                # What `nohup` starts is to go on when the terminal is closed.
                if number is signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        self._written.close()
        for number, before in self._before.items():
            signal.signal(number, before)

    def finish(self) -> None:
        """From now on what was learned is saved and shown: that takes only a moment."""
        self._spares_one = True

    def _interrupt(self, number: int, _frame: FrameType | None) -> None:
        # A shell and a job's runner pass Ctrl-C on.
        if self._spares_one or time.monotonic() - self._heard < 1.0:
            self._spares_one = False
            return
        self._interrupted, self._heard = True, time.monotonic()
        # By a shell's rule, the exit code of what a signal ended.
        self.exit_code = 128 + number
        raise KeyboardInterrupt(self.exit_code)

    def heed(self) -> None:
        """Interrupt once more what swallowed the first time."""
        if self._interrupted:
            raise KeyboardInterrupt(self.exit_code)

    def listen(self, event: Event) -> None:
        """Take notice of what happens, unless a signal is to end it."""
        self.heed()
        for listen in self._listeners:
            listen(event)


def score_exit_code(result: Result) -> Exit:
    """Whether all scores are as precise as asked, and what they found was run again."""
    sure = all(score.conclusive and score.is_checked for score in result.scores)
    return Exit.DONE if sure else Exit.INCONCLUSIVE


def forecast_sentence(forecast: Forecast) -> str:
    """All executions, with those that are repeated, in how many calls, and how long."""
    parts = [about(forecast.executions, "execution")]
    if forecast.calls < forecast.executions:
        parts.append(f"in {about(forecast.calls, 'call')}")
    if forecast.tokens:
        guessed = " (estimated)" if forecast.guessed else ""
        parts.append(f"with {about(forecast.tokens, 'token')}{guessed}{at_cost(forecast.spend)}")
    give_or_take = f"give or take a factor of {FACTOR}"
    if forecast.among > 4:  # the cost of a search among more is not foreseen well
        give_or_take = (
            f"a search among {forecast.among} characteristics may take many times as many"
        )
    time = "" if forecast.seconds is None else f"; {about_duration(forecast.seconds)}"
    return f"all together {' '.join(parts)} ({give_or_take}){time}"


def say_forecast(event: Event) -> None:
    """Say what a whole audit will cost, once that is known."""
    if isinstance(event, Forecast):
        searched = ", a search" if event.among > 1 else ""
        sets = count(len(event.parts), "set")
        say(f"{sets}{searched} and noise: {forecast_sentence(event)}")


def about(number: int, noun: str) -> str:
    """So many, as far as is known: "about 31,000 executions"."""
    return f"about {count(int(two_digits(number)), noun)}"


class EventLines:
    """Writes each event into a file as it happens; without a file, nothing.

    A line is `{"event": "Progress", "seconds": 1.2, "line": "…", …}`, with the fields of the event
    and what a terminal shows meanwhile. Between
    events there is a line with what the run is at. Of those that come quickly the last is written.
    """

    def __init__(self, place: Path | None) -> None:
        self._file = None if place is None else _opened(place)
        self.shown: Callable[[], str] = str  # on a terminal
        self._began, self._lock = time.monotonic(), threading.Lock()
        self._written: dict[str, float] = {}  # when, by kind
        self._late: Event | None = None  # not yet written
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def listen(self, event: Event) -> None:
        """Write an event, unless one of its kind was just written."""
        if self._file is None:
            return
        if isinstance(event, Began):
            self._thread = threading.Thread(target=self._look, args=[event], daemon=True)
            self._thread.start()
            return
        kind, now = type(event).__name__, time.monotonic()
        if now - self._written.get(kind, -1.0) < 0.1:  # there may be thousands a second
            self._late = event
            return
        self._written[kind] = now
        self._write(event)

    def _look(self, began: Began) -> None:
        while not self._over.wait(0.25):
            late, self._late = self._late, None
            if late is not None:
                self._write(late)
            self._write(began.look())

    def _write(self, event: Event | Activity) -> None:
        assert self._file is not None
        seconds = round(time.monotonic() - self._began, 3)
        about = {"event": type(event).__name__, "seconds": seconds, "line": self.shown()}
        with self._lock, suppress(OSError):  # a full disk does not end the run
            if not self._file.closed:
                self._file.write(f"{json.dumps({**about, **asdict(event)})}\n")
                self._file.flush()

    def close(self) -> None:
        """Write what is left, and close the file."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if self._file is not None:
            if self._late is not None:
                self._write(self._late)
            with suppress(OSError):
                self._file.close()


def _opened(place: Path) -> TextIO:
    try:
        return place.open("w", encoding="utf-8")
    except OSError as error:
        problem = f"{str(place)!r} can't be written: {error.strerror}"
        raise RequestError.one("output", "--events", problem, "choose another place") from None
