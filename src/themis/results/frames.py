"""Results as data frames, and as metrics for a log of experiments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Literal

from themis.errors import Mistake, RequestError, suggest
from themis.results.finding import finding
from themis.results.model import GroupScore, Result, Score, SearchResult, plain
from themis.results.outcomes import Outcomes, Proxy
from themis.results.parts import Group, Witness
from themis.results.withheld import withheld

Library = Literal["pandas", "polars"]
LIBRARIES: tuple[Library, ...] = ("pandas", "polars")
SCORE_FIELDS = (
    "score", "low", "high", "confidence", "error", "method", "samples", "executions",
    "cache_hits", "stopped", "lower_bound", "unknown",
)  # fmt: skip
IMPACT_FIELDS = ("impact_ratio", "impact_ratio_low", "impact_ratio_high")
Row = Mapping[str, Any]


def to_frame(things: Any, library: Library | None = None) -> Any:
    """A data frame of a score, result, search, group or witness, or of several of one kind.

    Scores give a row each, a search one for each set that it looked at, groups a row each, known
    outcomes one for each group, proxies one for each value that was tried, and witnesses two rows
    each: the favoured person first, `pair` counts them. `library` is "pandas" or
    "polars"; without it, the first of the two that is installed. Raises RequestError without any.
    """
    several = [things] if isinstance(things, _KINDS) else list(things)
    columns = _columns(_rows(several))
    if not columns and several and all(isinstance(each, Result) for each in several):
        columns = {name: [] for name in ("measure", "against", *SCORE_FIELDS)}  # of no score
    return _make(_library(library), columns)


def _rows(things: Sequence[Any]) -> list[Row]:
    for kind, make in _ROWS.items():
        if all(isinstance(each, kind) for each in things):
            return [*make(things)]
    kinds = ", ".join(sorted({type(each).__name__ for each in things}))
    problem = f"can't make one data frame of {kinds}"
    remedy = "give a score, result, search, group or witness, or several of one kind"
    raise RequestError([Mistake("frame", "to_frame", problem, remedy)])


def _score_rows(scores: Iterable[Score]) -> Iterator[Row]:
    for score in scores:
        row = {"measure": score.measure, "against": ",".join(score.against)}
        row |= {name: plain(getattr(score, name)) for name in SCORE_FIELDS}
        if score.output is not None:
            row["output"] = score.output
        if isinstance(score, GroupScore):
            row |= {name: getattr(score, name) for name in IMPACT_FIELDS}
        yield row


def _result_rows(results: Iterable[Result]) -> Iterator[Row]:
    return _score_rows(score for result in results for score in result.scores)


def _search_rows(searches: Iterable[SearchResult]) -> Iterator[Row]:
    """Every set that was looked at; the minimal ones with the scores that were measured."""
    for search in searches:
        scores = {score.against: score for score in search.minimal_sets if score.samples}
        for each in search.tested:
            score = scores.get(each.against)
            yield {
                "measure": search.measure,
                "against": ",".join(each.against),
                "decision": each.decision,
                "minimal": each.against in search.found,
                **{name: getattr(score, name, None) for name in ("score", "low", "high")},
                "samples": each.samples,
                "reason": each.reason,
            }


def _group_rows(groups: Sequence[Group]) -> Iterator[Row]:
    names = ("rate", "low", "high", "samples", "few")
    taken = {name for group in groups for name in group.values}
    for group in groups:
        yield group.values | {_free(name, taken): getattr(group, name) for name in names}


def _witness_rows(witnesses: Sequence[Witness]) -> Iterator[Row]:
    taken = {name for witness in witnesses for name in witness.inputs[0]}
    pair, output = _free("pair", taken), _free("output", taken)
    for number, witness in enumerate(witnesses):
        for person, decision in zip(witness.inputs, witness.outputs, strict=True):
            yield {pair: number, **person, output: decision}


def _outcome_rows(tables: Iterable[Outcomes]) -> Iterator[Row]:
    for table in tables:
        for group in table.groups:
            row: dict[str, Any] = {"against": ",".join(table.against)}
            row["group"] = ",".join(map(str, group.values.values()))
            row |= {name: getattr(group, name) for name in ("people", "labelled", "positives")}
            for name, rate in group.rates():
                row |= {name: rate.rate, f"{name}_low": rate.low, f"{name}_high": rate.high}
            yield row


def _proxy_rows(proxies: Iterable[Proxy]) -> Iterator[Row]:
    for proxy in proxies:
        about = {name: getattr(proxy, name) for name in ("name", "association", "changed")}
        for setting in proxy.settings:
            yield {"against": ",".join(proxy.against), **about, **plain(setting)}


def _free(name: str, taken: Iterable[str]) -> str:
    """A column's name that no characteristic has."""
    while name in taken:
        name += "_"
    return name


_ROWS: dict[type, Callable[[Any], Iterator[Row]]] = {
    Score: _score_rows,
    Result: _result_rows,
    SearchResult: _search_rows,
    Group: _group_rows,
    Witness: _witness_rows,
    Outcomes: _outcome_rows,
    Proxy: _proxy_rows,
}
_KINDS = tuple(_ROWS)


def _columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Rows as columns; what a row does not have is None."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _alike([row.get(name) for row in rows]) for name in names}


def _alike(values: list[Any]) -> list[Any]:
    """The values, as text if they are of several kinds: a column has one."""
    kinds = {type(each) for each in values if each is not None}
    if len(kinds) <= 1 or kinds == {int, float}:
        return values
    return [None if each is None else str(each) for each in values]


def _library(wanted: Library | None) -> Library:
    if wanted is not None and wanted not in LIBRARIES:
        problem = f"there is no library {wanted!r} to make data frames with"
        mistake = Mistake("frame", "library", problem, suggest(str(wanted), LIBRARIES))
        raise RequestError([mistake])
    for each in LIBRARIES if wanted is None else (wanted,):
        if find_spec(each) is not None:
            return each
    problem = f"{wanted} is not installed" if wanted else "neither pandas nor polars is installed"
    remedy = f"pip install {wanted or 'pandas'}"
    raise RequestError([Mistake("frame", "to_frame", problem, remedy)])


def _make(library: Library, columns: dict[str, list[Any]]) -> Any:
    if library == "pandas":
        import pandas

        return pandas.DataFrame(columns)
    import polars

    return polars.DataFrame(columns, strict=False)


ENDS = ("score", "low", "high")
NOTHING = (
    "unread",
    "unmeasured",
    "single",
    "alone",
    "idle",
    "unknown",
)  # findings without a number

_UNFIT = re.compile(r"[^\w.-]|^\.+$")  # for the names that MLflow, W&B and others take


def to_metrics(result: Result) -> dict[str, float]:
    """Score, low and high of each score: `causal/sex/score`, `group/sex.age/high`, …

    Behind the set is whose score it is, if not that of all inputs, and before all of it the output
    where there are several. What documents may not show, and what was not measured, has no key.
    """
    names: dict[str, tuple[str, ...]] = {}
    metrics: dict[str, float] = {}
    for score in withheld(result).scores:
        shown, parts = finding(score), tuple(_parts(score))
        if shown.kind in NOTHING or shown.value is None or shown.ends is None:
            continue
        name = "/".join(_UNFIT.sub("_", part) for part in parts)
        while names.setdefault(name, parts) != parts:  # of another score, spelled alike
            name += "_"
        for end, number in zip(ENDS, (shown.value, *shown.ends), strict=True):
            metrics.setdefault(f"{name}/{end}", float(number))  # asked twice, the first counts
    return metrics


def _parts(score: Score) -> Iterator[str]:
    if score.output is not None:
        yield score.output
    is_mean = isinstance(score, GroupScore) and score.statistic == "mean"
    yield f"{score.measure}-mean" if is_mean else score.measure
    yield ".".join(score.against)
    if score.population != "inputs":
        yield score.population
    if score.counterfactuals != "generated":
        yield score.counterfactuals
