"""What a command is told by whoever starts it for a page, and how it tells its mistakes.

By variables of the environment: they are for processes that another part of Themis starts.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

from themis.errors import ConfigError, Mistake

MISTAKES = "THEMIS_MISTAKES"  # a file to which mistakes are written
CONFIRMED = "THEMIS_CONFIRMED"  # the SHA-256 of the configuration that somebody agreed to run


def tell(mistake: str) -> None:
    """Write a mistake where somebody waits for it."""
    if place := os.environ.get(MISTAKES):
        with suppress(OSError), Path(place).open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(mistake)}\n")


def mark_of(read: bytes) -> str:
    """Of a file as it was read: what somebody confirms, or edits, is this one."""
    return hashlib.sha256(read).hexdigest()


def check_confirmed(path: Path) -> None:
    """Raise ConfigError where a file is another one than somebody agreed to run."""
    wanted = os.environ.get(CONFIRMED)
    if wanted and mark_of(path.read_bytes()) != wanted:
        problem, remedy = "it changed since it was confirmed", "look at it again, and confirm it"
        raise ConfigError([Mistake("not-confirmed", "", problem, remedy, str(path))])
