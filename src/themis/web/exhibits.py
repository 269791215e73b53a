"""The pairs of a result that are pinned as exhibits: which, and what was noted about each."""

from __future__ import annotations

import json
from pathlib import Path

from themis.engine.replacing import write_whole
from themis.results.model import Result
from themis.show.html import Html, empty, folded, tag
from themis.web.history import Run
from themis.web.layout import button, posting
from themis.web.opened import address
from themis.web.site import Site

LONGEST_NOTE, MOST = 600, 60


def pins(site: Site, run: Run, result: Result) -> dict[str, str]:
    """The notes of those that are pinned, by the keys of their pairs."""
    try:
        found: dict[str, str] = json.loads(_place(site, run, result).read_bytes())
    except FileNotFoundError:
        return {}
    return found


def keep(site: Site, run: Run, result: Result, pinned: dict[str, str]) -> None:
    """Write them down."""
    kept = {key: note[:LONGEST_NOTE] for key, note in [*pinned.items()][:MOST]}
    write_whole(_place(site, run, result), json.dumps(kept, indent=2).encode())


def _place(site: Site, run: Run, result: Result) -> Path:
    """Keys are those of the pairs that are shown: without rows of people there are others."""
    kind = "exhibits" if result.whole is None else "exhibits-without-rows"
    return site.history.folder(run) / f"{kind}.json"


def pin_form(site: Site, run: Run, key: str, pinned: dict[str, str]) -> Html:
    """What pins a pair, or leads to the exhibits where it is one."""
    if key in pinned:
        return tag("a", "Pinned as an exhibit", href=f"{address(run)}#exhibits")
    note = f"note-{key}"
    form = posting(
        f"{address(run)}/exhibits",
        site.keys.form,
        empty("input", type="hidden", name="pair", value=key),
        tag("label", "Note for the report (may be empty)", for_=note),
        tag("textarea", name="note", id=note, rows=2, maxlength=LONGEST_NOTE),
        button("Pin"),
        kind="pin",
    )
    return folded("Pin as an exhibit", form)


def unpin_form(site: Site, run: Run, key: str) -> Html:
    """What takes a pair from the exhibits."""
    name = empty("input", type="hidden", name="pair", value=key)
    return posting(
        f"{address(run)}/exhibits/remove", site.keys.form, name, button("Unpin", kind="quiet")
    )
