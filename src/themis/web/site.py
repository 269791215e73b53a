"""What all pages of one server share: the project, its history, its runs, and what is allowed."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

from themis.config.programs import programs
from themis.config.reader import Config, load_config
from themis.config.told import mark_of
from themis.web.guard import Keys
from themis.web.history import History
from themis.web.runs import Runs
from themis.web.warm import Warm


@dataclass
class Site:
    """One server for one project."""

    project: Path  # a folder
    file: Path  # the themis.toml that is measured; it need not be there yet
    keys: Keys
    history: History
    runs: Runs
    warm: Warm
    read_only: bool = False
    rows: bool = False  # rows of people may be shown
    trust_pickle: bool = False
    confirmed: set[str] = field(default_factory=set)  # subjects that somebody agreed to run

    def config(self) -> Config:
        """What the file says now; raises ConfigError with all that is wrong."""
        return load_config(self.file)

    def mark(self) -> str:
        """Of the file as it is: what somebody confirms is this one, and no later one."""
        return mark_of(self.file.read_bytes())

    def seen(self) -> str:
        """Of the file, and of the files that it names, as somebody who confirms them sees them."""
        named = [place for each in programs(self.config()) for place in each.files]
        states = [(str(each), each.stat().st_size, each.stat().st_mtime_ns) for each in named]
        return f"{self.mark()} {mark_of(str(states).encode())}"

    @property
    def is_confirmed(self) -> bool:
        """Whether what the file names may be run."""
        return self.file.is_file() and self.seen() in self.confirmed


def site_of(request: Request) -> Site:
    """The site that a request is about."""
    found: Site = request.app.state.site
    return found


async def posted(request: Request) -> dict[str, list[str]]:
    """The fields of a form that may change something; refuses what does not hold its token."""
    fields: dict[str, list[str]] = {}
    for name, value in parse_qsl((await request.body()).decode("utf-8", "replace"), True):
        fields.setdefault(name, []).append(value)
    check_change(request, "".join(fields.pop("token", [])))
    return fields


def check_change(request: Request, token: str = "") -> None:
    """Refuse a change unless it may be and holds the token of this server's forms.

    Scripts send the token in a header, forms in a field.
    """
    site = site_of(request)
    if site.read_only:
        raise HTTPException(403, "This server was started with --read-only.")
    given = request.headers.get("x-themis-token") or token
    if not hmac.compare_digest(given.encode(), site.keys.form.encode()):
        raise HTTPException(403, "The form is of another session: load the page again.")
