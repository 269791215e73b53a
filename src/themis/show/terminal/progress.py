"""How far a run is: the live line on a terminal, and lines now and then where there is none."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType

from rich.cells import cell_len
from rich.live import Live
from rich.text import Text

from themis.events import Activity, Progress, SearchProgress
from themis.show.terminal.parts import make_console
from themis.show.words.values import count, duration, percent, visible

DELAY_SECONDS = 0.5  # shorter runs show nothing
REFRESHES = 8  # per second
FEWEST = 20  # tests, or a tenth of all: before, starting up may be most of the time
LINE_SECONDS = 2.0  # between two lines about a file, where there is no terminal
LOG_SECONDS, LOG_SELDOM = 10.0, 60.0  # until the first line about a run there; between two, at most
LARGE_FILE = 10_000_000  # bytes; reading a smaller one does not last, whatever else does


def reading_words(done: int, total: int) -> str:
    """How much of a file was read: `read 120 MB of 500 MB`."""
    return f"read {done / 1e6:,.0f} MB of {total / 1e6:,.0f} MB"


def activity_words(activity: Activity) -> list[str]:
    """What a run does beside sampling, and at most how much of this step is left; else nothing."""
    words = {"noise": "checking for noise", "explanations": "explaining"}.get(activity.purpose)
    if words is None:
        return []
    return [f"{words}, up to {activity.planned:,} to go" if activity.planned else words]


def fitted(parts: Sequence[str], spared: Sequence[str], width: int | None) -> Text:
    """The parts in one line, without the first of those that can be spared if it is too narrow."""
    for left_out in range(len(spared) + 1):
        gone = spared[:left_out]
        line = " · ".join(part for part in parts if part not in gone)
        if width is None or cell_len(line) <= width:
            break
    return Text(line, no_wrap=True, overflow="ellipsis")


class ReadingLines:
    """Says now and then how much of a file was read; of what is read quickly, nothing."""

    def __init__(
        self, say: Callable[[str], None], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._say, self._clock = say, clock
        self._said = clock()

    def __call__(self, done: int, total: int) -> None:
        """Take notice of how many bytes were read."""
        now = self._clock()
        if total >= LARGE_FILE and now - self._said >= LINE_SECONDS:
            self._said = now
            self._say(reading_words(done, total))


class ProgressLine:
    """A context within which `listen` keeps one line up to date; it vanishes at the end.

    Where it is not enabled, the line as it stands is said now and then, if somebody is to `say` it.
    """

    def __init__(
        self,
        *,
        enabled: bool,
        say: Callable[[str], None] | None = None,
        delay_seconds: float | None = None,
    ) -> None:
        if delay_seconds is None:
            delay_seconds = DELAY_SECONDS if enabled else LOG_SECONDS
        self._say, self._delay, self._over = say, delay_seconds, threading.Event()
        self._lock = threading.Lock()
        self._live: Live | None = None
        self._event: Progress | None = None
        self.look: Callable[[], Activity] | None = None  # where a run can be asked what it is at
        self._started = self._measurement_started = self._heard = time.monotonic()
        self._executed = self._known = 0  # before this measurement, and of it without executions
        self._thread: threading.Thread | None = None
        if enabled or say is not None:
            self._thread = threading.Thread(
                target=self._show if enabled else self._log, daemon=True
            )

    def listen(self, event: Progress) -> None:
        """Take notice of where a measurement stands."""
        last, now = self._event, time.monotonic()
        if last is not None and (last.measure, last.against) != (event.measure, event.against):
            self._measurement_started, self._known = self._heard, 0
            self._executed = last.executions
        if event.executions == self._executed:  # so far all was known, which took no time
            self._measurement_started, self._known = now, event.samples
        self._heard, self._event = now, event

    def __enter__(self) -> ProgressLine:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        with self._lock:
            if self._live is not None:
                self._live.stop()

    def _log(self) -> None:
        assert self._say is not None
        while not self._over.wait(self._delay):
            self._say(self.line().plain)
            self._delay = min(2 * self._delay, LOG_SELDOM)

    def _show(self) -> None:
        if self._over.wait(self._delay):
            return
        with self._lock:
            if self._over.is_set():
                return
            self._live = Live(
                get_renderable=self.line,
                console=make_console(sys.__stderr__),
                transient=True,
                refresh_per_second=REFRESHES,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()

    def line(self) -> Text:
        """The line as it stands now."""
        now, event = time.monotonic(), self._event
        elapsed = duration(now - self._started)
        if event is None:
            return self._fitted([*self._beginning(), elapsed])
        activity = self._activity(event.executions)
        nothing = event.low <= 0.0 and event.high >= 1.0  # is known yet
        interval = "" if nothing else f"{percent(event.low)} to {percent(event.high)}"
        executions = count(activity.executions, "execution")
        parts = [
            f"{event.measure} {visible(','.join(event.against))}",
            *(activity_words(activity) or self._sampling(event, now)),
            *filter(None, (interval, executions, elapsed)),
        ]
        return self._fitted(parts, interval, executions)

    def _beginning(self) -> list[str]:
        """What happens before anything is measured: a subject may take long to load, or to try."""
        if self.look is None:
            return ["loading"]
        executions = self.look().executions
        return ["running", *([count(executions, "execution")] if executions else [])]

    def _fitted(self, parts: Sequence[str], *spared: str) -> Text:
        """One line that is no wider than the terminal, if there is one."""
        width = None if self._live is None else self._live.console.width
        if width is not None:
            width -= cell_len("".join(self._whole()))
        return fitted(parts, spared, width)

    def _whole(self) -> list[str]:
        """Where something larger stands of which this is a part."""
        return []

    def _activity(self, executions: int) -> Activity:
        """What the run is at now; without somebody to ask, what it last told."""
        return Activity("sampling", executions) if self.look is None else self.look()

    def _sampling(self, event: Progress, now: float) -> list[str]:
        """How far the tests are, and how long the rest takes."""
        left = self._seconds_left(event, now)
        samples = f"sampling {event.samples:,} of {event.expected:,}"
        return [samples if left is None else f"{samples}, {duration(left)} left"]

    def _seconds_left(self, event: Progress, now: float) -> float | None:
        """At the pace so far; None as long as there is none."""
        seen = event.samples - self._known
        enough = max(min(FEWEST, event.expected / 10), 1)
        if seen < enough or event.samples >= event.expected:
            return None
        pace = (self._heard - self._measurement_started) / seen
        return max(pace * (event.expected - event.samples) - (now - self._heard), 0.0)


class SearchProgressLine(ProgressLine):
    """A live line for files, scores, searches and replays: it shows what was heard of last."""

    def __init__(self, *, enabled: bool, say: Callable[[str], None] | None = None) -> None:
        super().__init__(enabled=enabled, say=say)
        self._search: SearchProgress | None = None
        self._inputs: tuple[int, int] | None = None  # of a replay: run so far, and all
        self._bytes: tuple[int, int] | None = None  # of rows: read so far, and all
        self._step: tuple[int, int] | None = None  # of a whole audit: this one, and all
        self.expected: int | None = None  # executions of a whole audit, by its forecast

    def listen(self, event: Progress) -> None:
        """Take notice of where a measurement stands."""
        self._search = self._bytes = None
        super().listen(event)

    def listen_to_rows(self, done: int, total: int) -> None:
        """Take notice of how many bytes of rows were read."""
        self._bytes = (done, total) if done < total else None

    def listen_to_search(self, event: SearchProgress) -> None:
        """Take notice of the set that a search decided."""
        self._search = event

    def listen_to_inputs(self, done: int, total: int) -> None:
        """Take notice of how many inputs of a replay were run."""
        self._inputs = done, total

    def listen_to_steps(self, number: int, total: int) -> None:
        """Take notice of the step of a whole audit that begins."""
        self._step, self._search = (number, total), None

    def line(self) -> Text:
        """The line as it stands now; of a whole audit, where that stands before all else."""
        return Text.assemble(*self._whole(), self._part(), no_wrap=True, overflow="ellipsis")

    def _whole(self) -> list[str]:
        if self._step is None:
            return []
        number, total = self._step
        done = f"step {number} of {total}"
        if self.expected and self.look is not None:
            share = min(self.look().executions / self.expected, 0.99)
            done = f"{done}, about {100 * share:.0f} %"
        return [f"{done} · "]

    def _part(self) -> Text:
        if self._inputs is not None:
            done, total = self._inputs
            text = f"replay · {done:,} of {count(total, 'input')}"
            return Text(text, no_wrap=True, overflow="ellipsis")
        if self._bytes is not None:
            return Text(reading_words(*self._bytes), no_wrap=True, overflow="ellipsis")
        event = self._search
        if event is None:
            return super().line()
        activity = self._activity(event.executions)
        last, executions = f"last {visible(','.join(event.against))}", activity.executions
        parts = [
            f"{event.measure} {event.decided:,} of {count(event.total, 'set')}",
            f"{event.found:,} found",
            *activity_words(activity),
            count(executions, "execution"),
            duration(time.monotonic() - self._started),
            last,
        ]
        return self._fitted(parts, last, count(executions, "execution"))
