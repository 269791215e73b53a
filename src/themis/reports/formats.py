"""Which formats can a result be reported in? One table, from names to what writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module

from themis.errors import Mistake, RequestError, suggest
from themis.results import Result


@dataclass(frozen=True)
class Format:
    """One format: how its file names end, and the function that writes it."""

    name: str
    suffix: str
    home: str  # module:function, imported when it is used
    about: str

    @property
    def render(self) -> Callable[[Result], str | bytes]:
        """The function from a result to the text or bytes of a file."""
        module, _, function = self.home.partition(":")
        found: Callable[[Result], str | bytes] = getattr(import_module(module), function)
        return found


FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        Format("html", ".html", "themis.reports.page:render_page", "a page to read and to print"),
        Format("md", ".md", "themis.reports.markdown:render_markdown", "a pull request comment"),
        Format("junit", ".junit.xml", "themis.reports.junit:render_junit", "tests, for CI servers"),
        Format("sarif", ".sarif", "themis.reports.sarif:render_sarif", "for code scanning"),
        Format(
            "github", "", "themis.reports.github:render_annotations", "annotations and job summary"
        ),
        Format("csv", ".csv", "themis.reports.score_table:render_csv", "the scores as a table"),
        Format(
            "parquet", ".parquet", "themis.reports.score_table:render_parquet", "the same, typed"
        ),
        Format("annex", ".annex.html", "themis.reports.annex:render_annex", "tables for an audit"),
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
