"""Which formats can a result be reported in? One table, from names to what writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module

from themis.errors import Mistake, RequestError, suggest
from themis.results.model import Result


@dataclass(frozen=True)
class Format:
    """One format: how its file names end, and the function that writes it."""

    name: str
    suffix: str
    home: str  # module:function in this package, imported when it is used
    about: str

    @property
    def render(self) -> Callable[[Result], str | bytes]:
        """The function from a result to the text or bytes of a file."""
        module, _, function = self.home.partition(":")
        found: Callable[[Result], str | bytes] = getattr(
            import_module(f"themis.show.reports.{module}"), function
        )
        return found


FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        Format("html", ".html", "page:render_page", "a page to read and to print"),
        Format("md", ".md", "markdown:render_markdown", "a pull request comment"),
        Format("junit", ".junit.xml", "ci_junit:render_junit", "tests, for CI servers"),
        Format("sarif", ".sarif", "ci_sarif:render_sarif", "for code scanning"),
        Format("github", "", "ci_github:render_annotations", "annotations and job summary"),
        Format("csv", ".csv", "formats_score_table:render_csv", "the scores as a table"),
        Format("parquet", ".parquet", "formats_score_table:render_parquet", "the same, typed"),
        Format("annex", ".annex.html", "annex:render_annex", "tables for an audit"),
    )
}


def parse_formats(given: Iterable[str]) -> list[Format]:
    """The formats that `--format html,md` names; raises RequestError with all unknown ones."""
    names = [name.strip() for text in given for name in text.split(",") if name.strip()]
    mistakes = [
        Mistake("format", "--format", f"there is no format {name!r}", suggest(name, list(FORMATS)))
        for name in dict.fromkeys(names)
        if name not in FORMATS
    ]
    if not names:
        remedy = f"name some of: {', '.join(FORMATS)}"
        mistakes = [Mistake("format", "--format", "no format is named", remedy)]
    if mistakes:
        raise RequestError(mistakes)
    return [FORMATS[name] for name in dict.fromkeys(names)]
