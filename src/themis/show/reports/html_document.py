"""What is around a report? One file that fetches nothing, runs nothing, and says so."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from themis.show.reports.html import Html, empty, tag
from themis.show.reports.style import STYLE


def policy() -> str:
    """The content security policy: the page's own style, and nothing else at all."""
    own = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{own}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def document(title: str, *content: Any) -> str:
    """A whole page."""
    head = (
        empty("meta", charset="utf-8"),
        empty("meta", http_equiv="Content-Security-Policy", content=policy()),
        empty("meta", name="viewport", content="width=device-width, initial-scale=1"),
        empty("meta", name="color-scheme", content="light dark"),
        empty("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        empty("link", rel="icon", href="data:,"),  # else browsers ask a server for one
        tag("style", Html(STYLE)),
    )
    page = tag("html", tag("head", *head), tag("body", *content), lang="en", dir="ltr")
    # A lone surrogate in a name can't be written as UTF-8; `visible` shows those as escapes.
    return f"<!doctype html>\n{page}\n"
