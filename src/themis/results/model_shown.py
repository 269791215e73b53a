"""What can a result do by itself? Show itself in a notebook, be drawn, become a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from themis.show.notebook_plots import Plot


class Shown:
    """Something that a notebook shows as a static table, and that becomes a data frame."""

    def _repr_html_(self) -> str:
        from themis.show.notebook import html_of

        return html_of(self)

    def to_frame(self, library: Literal["pandas", "polars"] | None = None) -> Any:
        """A data frame: of pandas if it is installed, else of polars, or of the named library."""
        from themis.results.frames import to_frame

        return to_frame(self, library)


class Plotted(Shown):
    """Something that can be drawn: intervals on an axis."""

    def plot(self) -> Plot:
        """A small picture of the intervals, as SVG."""
        from themis.show.notebook_plots import plot

        return plot(self)
