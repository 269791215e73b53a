"""How far is a search? The live line, which also listens to what a search decided."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.text import Text

from themis.events import Progress, SearchProgress
from themis.show.terminal.progress import DELAY_SECONDS, ProgressLine
from themis.show.words.values import count, duration, visible


class SearchProgressLine(ProgressLine):
    """A live line for searches and scores alike: it shows whichever was heard of last."""

    def __init__(self, *, enabled: bool, delay_seconds: float = DELAY_SECONDS) -> None:
        super().__init__(enabled=enabled, delay_seconds=delay_seconds)
        self._search: SearchProgress | None = None
        self.count_executions: Callable[[], int] | None = None  # where the number is known live

    def listen(self, event: Progress) -> None:
        """Take notice of where a measurement stands."""
        self._search = None
        super().listen(event)

    def listen_to_search(self, event: SearchProgress) -> None:
        """Take notice of the set that a search decided."""
        self._search = event

    def line(self) -> Text:
        """The line as it stands now."""
        event = self._search
        if event is None:
            return super().line()
        parts = [
            f"{event.measure} {event.decided:,} of {count(event.total, 'set')}",
            f"{event.found:,} found",
            count(self._executions(event), "execution"),
            duration(time.monotonic() - self._started),
            f"last {visible(','.join(event.against))}",
        ]
        return Text(" · ".join(parts), no_wrap=True, overflow="ellipsis")

    def _executions(self, event: SearchProgress) -> int:
        """Also of the set that is being decided, which may take a while."""
        return event.executions if self.count_executions is None else self.count_executions()
