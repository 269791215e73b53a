"""The formats that a result can be reported in, and its scores as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from themis.errors import Mistake, RequestError, suggest
from themis.results.model import CausalScore, GroupScore, Result, Score
from themis.results.withheld import is_told, withheld
from themis.show.words.wording import PLAIN

if TYPE_CHECKING:
    from themis.show.reports.sections import Exhibit


@dataclass(frozen=True)
class Format:
    """One format: how its file names end, and the function that writes it."""

    name: str
    suffix: str
    home: str  # module:function in this package, imported when it is used
    about: str
    has_exhibits: bool = False

    def render(
        self, result: Result, *, rows: bool = False, exhibits: Sequence[Exhibit] = ()
    ) -> str:
        """The text of a file; rows of people are in it only if `rows`, or it, allows."""
        module, _, function = self.home.partition(":")
        found: Callable[..., str] = getattr(
            import_module(f"themis.show.reports.{module}"), function
        )
        shown = result if rows else withheld(result)
        return found(shown, exhibits) if self.has_exhibits else found(shown)


FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        Format("html", ".html", "page:render_page", "a page to read and to print", True),
        Format("md", ".md", "markdown:render_markdown", "a pull request comment"),
        Format("junit", ".junit.xml", "ci:render_junit", "tests, for CI servers"),
        Format("sarif", ".sarif", "sarif:render_sarif", "for code scanning"),
        Format("github", "", "ci:render_annotations", "annotations and job summary"),
        Format("csv", ".csv", "formats:render_csv", "the scores as a table"),
        Format("annex", ".annex.html", "annex:render_annex", "tables for an audit", True),
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


def formats_named_by(file: str) -> list[Format]:
    """The formats whose files end as this one does, the likeliest first.

    `a.xml` can only be JUnit; `a.html` is a page, and may be an annex.
    """
    ends = {each: each.suffix.rpartition(".")[2] for each in FORMATS.values() if each.suffix}
    fitting = [each for each, end in ends.items() if file.lower().endswith(f".{end}")]
    return sorted(fitting, key=lambda each: -len(each.suffix) * file.lower().endswith(each.suffix))


_NAMES = """
measure against score low high confidence error method samples executions cache_hits stopped
stopping lower_bound unknown output distance population counterfactuals flip_rate impact_ratio
impact_ratio_low impact_ratio_high most_favoured least_favoured command seed fingerprint
"""
COLUMNS = tuple(_NAMES.split())
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how what spreadsheets compute begins


def score_rows(result: Result) -> list[dict[str, Any]]:
    """One row per score with all COLUMNS; what a score does not have is None."""
    return [_row(each, result) for each in result.scores]


def render_csv(result: Result) -> str:
    """The scores as CSV (RFC 4180): a header, then one line per score; empty where unknown."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    for row in score_rows(result):
        writer.writerow({name: _inert(each) for name, each in row.items()})
    return text.getvalue()


def _inert(value: Any) -> Any:
    """The value; a text that a spreadsheet would take for a formula gets an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def _named(values: Mapping[str, Any]) -> str:
    return ", ".join(PLAIN.named(*each) for each in values.items()) or PLAIN.label(values)


def _row(score: Score, result: Result) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(score, name, None) for name in COLUMNS}
    if not is_told(score):
        row |= dict.fromkeys(("score", "low", "high", "most_favoured", "least_favoured"))
    row["against"] = ",".join(score.against)  # no name has a comma
    row["command"], row["seed"] = result.command, result.seed
    row["fingerprint"] = result.subject.get("fingerprint")
    row["flip_rate"] = score.flip_rate if isinstance(score, CausalScore) else None
    if isinstance(score, GroupScore) and is_told(score):
        best, worst = score.most_favoured, score.least_favoured
        row["most_favoured"] = None if best is None else _named(best.values)
        row["least_favoured"] = None if worst is None else _named(worst.values)
    return row
