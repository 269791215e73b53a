"""What a result can do by itself: show itself in a notebook, be drawn, become a table, be judged.

HOOKS is the only place below `show` that names something above it, and it does so by text: the
parts are imported when somebody asks for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from themis.errors import RequestError

HOOKS = {
    "html": "themis.show.notebook:html_of",
    "line": "themis.show.words.verdicts:line",
    "audit": "themis.show.notebook:audit_html",
    "plot": "themis.show.notebook:plot",
    "note": "themis.show.words.notes:sentence",
    "why": "themis.show.words.searches:why",
    "limit": "themis.show.terminal.results:limit_text",
    "withheld": "themis.results.withheld:withheld",
    "frame": "themis.results.saved:to_frame",
    "metrics": "themis.results.saved:to_metrics",
    "assert_below": "themis.results.verdicts:assert_below",
    "assert_conclusive": "themis.results.verdicts:assert_conclusive",
    "assert_nothing_found": "themis.results.verdicts:assert_nothing_found",
}


def hook(name: str) -> Callable[..., Any]:
    """The function of this name in HOOKS."""
    module, _, function = HOOKS[name].partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found


def withheld_repr(thing: Any) -> str:
    """What logs and notebooks keep of a result: nothing that would tell of few people."""
    shown = hook("withheld")(thing)
    parts = (f"{e.name}={getattr(shown, e.name)!r}" for e in fields(shown) if e.repr)
    return f"{type(shown).__name__}({', '.join(parts)})"


@dataclass(frozen=True)
class Plot:
    """A picture: a notebook shows it, `str` gives its SVG, `save` writes it to a file."""

    svg: str

    def __str__(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Plot({len(self.svg):,} characters of SVG)"

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        """Within the page itself the picture has the colours of the page."""
        return f'<div style="max-width:640px">{self.svg}</div>'

    def save(self, path: str | Path) -> None:
        """Write the picture to a file, an .svg."""
        place = Path(path)
        if place.suffix.lower() != ".svg":
            problem = f"{str(place)!r} can't be written: pictures are SVG"
            remedy = f"name it {place.with_suffix('.svg').name!r}" if place.name else "name a file"
            raise RequestError.one("picture", "path", problem, remedy)
        place.write_text(self.svg, encoding="utf-8")


class Shown:
    """Something that a notebook shows as a static table, and that becomes a data frame."""

    def _repr_html_(self) -> str:
        return str(hook("html")(self))

    def to_frame(self, library: Literal["pandas", "polars"] | None = None) -> Any:
        """A data frame: of pandas if it is installed, else of polars, or of the named library."""
        return hook("frame")(self, library)


class Plotted(Shown):
    """Something that can be drawn: intervals on an axis."""

    def plot(self) -> Plot:
        """A small picture of the intervals, as SVG."""
        drawn: Plot = hook("plot")(self)
        return drawn
