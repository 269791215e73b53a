"""How far a run is: the live line on a terminal, and lines now and then where there is none."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType

from rich.live import Live
from rich.text import Text

from themis.events import (
    Activity,
    Began,
    Event,
    Forecast,
    InputsReplayed,
    Progress,
    RowsRead,
    SearchProgress,
    StepBegun,
)
from themis.show.terminal.parts import make_console
from themis.show.words.values import count, duration, percent, visible

DELAY_SECONDS = 0.5  # shorter runs show nothing
FEWEST = 20  # tests, or a tenth of all: before, starting up may be most of the time
LOG_SECONDS, LOG_SELDOM = 10.0, 60.0  # until the first line about a run there; between two, at most


def activity_words(activity: Activity) -> list[str]:
    """What a run does beside sampling, and at most how much of this step is left; else nothing."""
    words = {"noise": "checking for noise", "explanations": "explaining"}.get(activity.purpose)
    if words is None:
        return []
    return [f"{words}, up to {activity.planned:,} to go" if activity.planned else words]


class ProgressLine:
    """A context within which `listen` keeps one line up to date; it vanishes at the end.

    It shows what was heard of last: a file, a score, a search or a replay.
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
        self._search: SearchProgress | None = None
        self._aside: str | None = None  # what goes on besides measuring
        self._step: StepBegun | None = None  # of a whole audit
        self._expected: int | None = None  # executions of a whole audit, by its forecast
        self._look: Callable[[], Activity] | None = None  # where a run can be asked what it is at
        self._started = self._measurement_started = self._heard = time.monotonic()
        self._thread: threading.Thread | None = None
        if enabled or say is not None:
            self._thread = threading.Thread(
                target=self._show if enabled else self._log, daemon=True
            )

    def listen(self, event: Event) -> None:
        """Take notice of what happens."""
        match event:
            case Progress():
                self._search = self._aside = None
                self._measure(event)
            case SearchProgress():
                self._search = event
            case RowsRead():
                read = f"read {event.done / 1e6:,.0f} MB of {event.total / 1e6:,.0f} MB"
                self._aside = read if event.done < event.total else None
            case InputsReplayed():
                self._aside = f"replay · {event.done:,} of {count(event.total, 'input')}"
            case StepBegun():
                self._step, self._search = event, None
            case Forecast():
                self._expected = event.executions
            case Began():
                self._look = event.look

    def _measure(self, event: Progress) -> None:
        last, now = self._event, time.monotonic()
        if last is not None and (last.measure, last.against) != (event.measure, event.against):
            self._measurement_started = self._heard
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
                refresh_per_second=8,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()

    def line(self) -> Text:
        """The line as it stands now; of a whole audit, where that stands before all else."""
        if self._aside is not None:
            parts = [self._aside]
        else:
            parts = self._score() if self._search is None else self._found(self._search)
        return Text(" · ".join([*self._whole(), *parts]), no_wrap=True, overflow="ellipsis")

    def _score(self) -> list[str]:
        now, event = time.monotonic(), self._event
        elapsed = duration(now - self._started)
        if event is None:
            return [*self._beginning(), elapsed]
        activity = self._activity(event.executions)
        nothing = event.low <= 0.0 and event.high >= 1.0  # is known yet
        interval = "" if nothing else f"{percent(event.low, 'down')} to {percent(event.high, 'up')}"
        return [
            f"{event.measure} {visible(','.join(event.against))}",
            *(activity_words(activity) or self._sampling(event, now)),
            *filter(None, [interval]),
            count(activity.executions, "execution"),
            elapsed,
        ]

    def _beginning(self) -> list[str]:
        """What happens before anything is measured: a subject may take long to load, or to try."""
        if self._look is None:
            return ["loading"]
        executions = self._look().executions
        return ["running", *([count(executions, "execution")] if executions else [])]

    def _whole(self) -> list[str]:
        """Where the whole audit stands of which this is a part."""
        if self._step is None:
            return []
        done = f"step {self._step.number} of {self._step.total}"
        if self._expected and self._look is not None:
            share = min(self._look().executions / self._expected, 0.99)
            done = f"{done}, about {100 * share:.0f} %"
        return [done]

    def _found(self, event: SearchProgress) -> list[str]:
        activity = self._activity(event.executions)
        return [
            f"{event.measure} {event.decided:,} of {count(event.total, 'set')}",
            f"{event.found:,} found",
            *activity_words(activity),
            count(activity.executions, "execution"),
            duration(time.monotonic() - self._started),
            f"last {visible(','.join(event.against))}",
        ]

    def _activity(self, executions: int) -> Activity:
        """What the run is at now; without somebody to ask, what it last told."""
        return Activity("sampling", executions) if self._look is None else self._look()

    def _sampling(self, event: Progress, now: float) -> list[str]:
        """How far the tests are, and how long the rest takes."""
        left = self._seconds_left(event, now)
        samples = f"sampling {event.samples:,} of {event.expected:,}"
        return [samples if left is None else f"{samples}, {duration(left)} left"]

    def _seconds_left(self, event: Progress, now: float) -> float | None:
        """At the pace so far; None as long as there is none."""
        enough = max(min(FEWEST, event.expected / 10), 1)
        if event.samples < enough or event.samples >= event.expected:
            return None
        pace = (self._heard - self._measurement_started) / event.samples
        return max(pace * (event.expected - event.samples) - (now - self._heard), 0.0)
