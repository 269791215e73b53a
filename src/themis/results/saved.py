"""Results outside of this program: JSON read back as the `Result` that was written, and its JSON
Schema; data frames; metrics for a log of experiments.

Files are edited, merged and cut off. The classes that write a result say what may stand where, and
pydantic finds what does not; keys that they do not know are left out, and keys that have a default
may be missing. Whether numbers and names fit each other is not looked at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Tag, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, SchemaValidator

from themis.errors import Mistake, RequestError, SchemaError, suggest
from themis.inputs.schema import Schema, characteristic_from
from themis.inputs.tables import encoding_of
from themis.results.finding import finding
from themis.results.model import (
    FORMAT,
    SEARCH_KEYS,
    CausalScore,
    ExcessScore,
    GroupScore,
    Result,
    Score,
    SearchResult,
)
from themis.results.notes import Note, plain
from themis.results.outcomes import Outcomes, Proxy
from themis.results.parts import Group, Witness
from themis.results.withheld import withheld

REMEDY = "measure again, or restore it"
VALUE = "must be a text, a number or a truth value"
KINDS = {
    **dict.fromkeys(("dataclass_type", "dict_type"), "must be an object"),  # as JSON has it
    "tuple_type": "must be a list",
    "string_type": "must be text",
}


def read_result(path: str | Path) -> Result:
    """The result that a file holds; raises RequestError, with all its faults, when it holds none.

    The file is the JSON that `-o` wrote, or `Result.to_dict` gave.
    """
    path = Path(path)
    try:
        data = json.loads(path.read_bytes().decode(encoding_of(path)))
    except FileNotFoundError:
        raise _mistake(path, "there is no such file", "write one: themis score -o FILE") from None
    except RecursionError:
        raise _mistake(path, "is nested too deep", REMEDY) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _mistake(path, f"can't be read as JSON: {reason}", "name a saved result") from None
    if isinstance(data, Mapping) and "themis" in data and data.get("command") == "replay":
        problem = "is a replay, which says what became of tests and holds no scores"
        raise _mistake(path, problem, "name a result, or the suite that was replayed")
    if not isinstance(data, Mapping) or "themis" not in data or "scores" not in data:
        raise _mistake(path, "is no result of Themis", "write one: themis score -o FILE")
    if data.get("format") != FORMAT:
        reads = f"this Themis reads format {FORMAT}"
        remedy = "measure again with this version, or install the one that wrote it"
        raise _mistake(path, f"has format {data.get('format')!r}, {reads}", remedy)
    try:
        return result_from_dict(data)
    except RequestError as error:
        found = error.mistakes[:20]
        raise RequestError(replace(e, where=f"{path}: {e.where}") for e in found) from None


def result_from_dict(data: Mapping[str, Any]) -> Result:
    """The result that `Result.to_dict` described; raises RequestError, with all faults, if none."""
    data = _prepared(data)
    saved: Any = None
    faults: dict[str, str] = {}
    try:
        saved = _validator().validate_python(data)
    except ValidationError as error:
        for each in error.errors(include_url=False):
            faults.setdefault(_place(each, data), _problem(each))
    for place, problem in _schema_faults(data.get("schema")):
        faults.setdefault(place, problem)
    if faults:
        raise RequestError(Mistake("result", *each, REMEDY) for each in faults.items())
    own = {each.name: getattr(saved, each.name) for each in fields(Result)}
    notes = {"notes": list(saved.timing.notes)} if saved.timing.notes else {}
    own["timing"] = {**data.get("timing", {}), **notes}
    own["searches"] = tuple(_with_scores(each, saved.scores) for each in saved.searches)
    return Result(**own)


def _mistake(path: Path, problem: str, remedy: str) -> RequestError:
    return RequestError([Mistake("result", str(path), problem, remedy)])


# The file as the classes have it ------------------------------------------------------------
def _prepared(data: Mapping[str, Any]) -> dict[str, Any]:
    """The data with the names that the classes have for them."""
    found = data.get("search", [])
    searches = found if isinstance(found, list) else [found]
    return {**data, "whole": None, "searches": [_search(each) for each in searches]}


def _search(data: Any) -> Any:
    if not isinstance(data, Mapping):
        return data
    renamed = {name: data[key] for name, key in SEARCH_KEYS.items() if key in data}
    return {**data, "cache_hits": 0, **renamed, "minimal_sets": ()}


def _with_scores(search: SearchResult, scores: tuple[Score, ...]) -> SearchResult:
    """The search with the scores of what it found, which stand beside it."""
    about = (search.measure, search.output, search.statistic)
    by_set = {each.against: each for each in scores if _kind(each) == about}
    found = tuple(by_set[names] for names in search.found if names in by_set)
    return replace(search, minimal_sets=found)


def _kind(score: Score) -> tuple[object, ...]:
    statistic = score.statistic if isinstance(score, GroupScore) else "rate"
    return score.measure, score.output, statistic


# What may stand where ------------------------------------------------------------------------
def _measure(score: Any) -> str:
    found = score.get("measure") if isinstance(score, Mapping) else None
    return found if found in ("group", "excess") else "causal"


_AnyScore = Annotated[
    Annotated[CausalScore, Tag("causal")]
    | Annotated[GroupScore, Tag("group")]
    | Annotated[ExcessScore, Tag("excess")],
    Discriminator(_measure),
]


@dataclass(frozen=True, kw_only=True)
class _Written(Result):
    scores: tuple[_AnyScore, ...]


@dataclass(frozen=True)
class _Timing:
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Saved(_Written):
    __pydantic_config__ = ConfigDict(allow_inf_nan=False)

    timing: _Timing = _Timing()  # type: ignore[assignment]


@cache
def _validator() -> SchemaValidator:
    return SchemaValidator(_strict(TypeAdapter(_Saved).core_schema))


def _strict(schema: Any) -> Any:
    """The schema without conversions (no text is a number), and with one fault for each value.

    Reading as strict JSON would do the same, but refuses half a character in a name.
    """
    if isinstance(schema, list | tuple):
        return type(schema)(_strict(each) for each in schema)
    if not isinstance(schema, dict):
        return schema
    own = {name: _strict(each) for name, each in schema.items()}
    if own.get("type") in ("str", "int", "float", "bool"):
        own["strict"] = True
    if own.get("type") == "union":
        own |= {"custom_error_type": "value", "custom_error_message": VALUE}
    return own


# What is wrong ------------------------------------------------------------------------------
def _place(error: ErrorDetails, data: Mapping[str, Any]) -> str:
    """Where it is in the file: `scores[0].low`."""
    first, *rest = error["loc"]
    if first == "scores" and len(rest) > 1:
        del rest[1]  # which of the kinds of scores
    if first == "searches":
        first, rest = "search", [SEARCH_KEYS.get(str(each), each) for each in rest]
        rest = rest if isinstance(data.get("search"), list) else rest[1:]
    return str(first) + "".join(f"[{e}]" if isinstance(e, int) else f".{e}" for e in rest)


def _problem(error: ErrorDetails) -> str:
    if error["type"] == "missing":
        return "is missing"
    rule = error["msg"].replace("Input should be", "must be")
    return f"{KINDS.get(error['type'], rule)}, got {_show(error['input'])}"


def _show(value: Any) -> str:
    """A received value in a message, short."""
    if isinstance(value, Mapping | list):
        return "an object" if isinstance(value, Mapping) else "a list"
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _schema_faults(data: Any) -> Iterator[tuple[str, str]]:
    inputs = data.get("inputs") if isinstance(data, Mapping) else None
    if not isinstance(inputs, Mapping):
        yield "schema.inputs", f"must be an object, got {_show(inputs)}"
        return
    place = "schema"
    try:
        for name, spec in inputs.items():
            place = f"schema.inputs.{name}"
            characteristic_from(spec)
        place = "schema"
        Schema.from_dict(data)
    except SchemaError as error:
        yield from ((place, each.problem) for each in error.mistakes)
    except (AttributeError, KeyError, TypeError, ValueError):
        yield place, "is not what the inputs and constraints of a file may be"


# The JSON Schema ----------------------------------------------------------------------------
def result_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a result.

    Keys may be added within a format; a reader leaves out what it does not know.
    """
    whole = _bare(TypeAdapter(_Written).json_schema(mode="serialization"))
    kinds, own = whole["$defs"], whole["properties"]
    del kinds["Score"], own["searches"]
    del own["whole"], kinds["Group"]["properties"]["runs"]
    for kind in ("CausalScore", "GroupScore", "ExcessScore"):
        del kinds[kind]["properties"]["naming"], kinds[kind]["properties"]["whole"]
    search = kinds["SearchResult"]["properties"]
    del search["cache_hits"]
    for name, key in SEARCH_KEYS.items():
        search[key] = search.pop(name)
    search["ties"] = search["minimal_sets"]
    kinds["Inventory"]["properties"]["others"] = {"type": "integer"}
    none = {"type": "array", "maxItems": 0}
    for kind in ("causal", "group", "excess"):
        keys = kinds[f"{kind.capitalize()}Score"]["properties"]
        lists = {each: none for each in ("witnesses", "groups") if each not in keys}
        keys |= {"measure": {"const": kind}, **lists}
    one = {"$ref": "#/$defs/SearchResult"}
    own["search"] = {"oneOf": [one, {"type": "array", "items": one}]}
    version = {"type": "string", "description": "The version that wrote it"}
    own["personal_data"] = {"type": "boolean", "description": "It may hold rows of people"}
    whole["properties"] = {"themis": version, "format": {"const": FORMAT}, **own}
    for each in (*kinds.values(), whole):
        if "properties" in each:
            each["required"] = list(each["properties"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **whole,
        "description": Result.__doc__,
        "title": f"A result of Themis, format {FORMAT}",
    }


def _bare(schema: Any) -> Any:
    """A schema without titles and defaults, which say nothing here, and with short descriptions."""
    if isinstance(schema, list):
        return [_bare(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    own = {name: _bare(each) for name, each in schema.items() if name not in ("title", "default")}
    if isinstance(own.get("description"), str):
        own["description"] = own["description"].partition("\n")[0]
    return own


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
