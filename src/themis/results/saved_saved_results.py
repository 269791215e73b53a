"""Reading a saved result: the JSON of format 1 becomes the `Result` that was written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from itertools import islice
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from themis.errors import Mistake, RequestError
from themis.results.model import CausalScore, CheckResult, GroupScore, Result, Score, SearchResult
from themis.results.saved import find_faults

FORMAT = 1
MOST_FAULTS = 20  # that are told of one file
REMEDY = "measure again, or restore it"

Kind = TypeVar("Kind")


def read_result(path: str | Path) -> Result:
    """The result that a file holds; raises RequestError when it holds none."""
    path = Path(path)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise _mistake(path, "there is no such file", "write one: themis score -o FILE") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _mistake(path, f"can't be read as JSON: {reason}", "name a saved result") from None
    if isinstance(data, Mapping) and "themis" in data and data.get("command") == "replay":
        problem = "is a replay, which says what became of tests and holds no scores"
        raise _mistake(path, problem, "name a result, or the suite that was replayed")
    if not isinstance(data, Mapping) or "themis" not in data or "scores" not in data:
        raise _mistake(path, "is no result of Themis", "write one: themis score -o FILE")
    if data.get("format") != FORMAT:
        raise _mistake(
            path,
            f"has format {data.get('format')!r}, this Themis reads format {FORMAT}",
            "measure again with this version, or install the one that wrote it",
        )
    faults = [
        Mistake("result", str(path), f"{each.place}: {each.problem}", REMEDY)
        for each in islice(find_faults(data), MOST_FAULTS)
    ]
    if faults:
        raise RequestError(faults)
    try:
        return result_from_dict(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"is damaged: {type(error).__name__}: {error}"
        raise _mistake(path, problem, REMEDY) from None


def result_from_dict(data: Mapping[str, Any]) -> Result:
    """The result that `Result.to_dict` described."""
    scores = tuple(_score(each) for each in data["scores"])
    found = data.get("search", [])
    searches = found if isinstance(found, list) else [found]
    parts = {
        **data,
        "scores": scores,
        "searches": tuple(_search(each, scores) for each in searches),
        "checks": tuple(_build(CheckResult, each) for each in data.get("checks", ())),
    }
    return _build(Result, parts)


def _score(data: Mapping[str, Any]) -> Score:
    return _build(CausalScore if data["measure"] == "causal" else GroupScore, data)


def _search(data: Mapping[str, Any], scores: tuple[Score, ...]) -> SearchResult:
    found = [tuple(names) for names in data["minimal_sets"]]
    about = (data["measure"], data.get("output"))
    by_set = {each.against: each for each in scores if (each.measure, each.output) == about}
    parts = {
        "cache_hits": 0,
        **data,
        "found": found,
        "minimal_sets": tuple(by_set[names] for names in found if names in by_set),
        "tested": data["sets"],
    }
    return _build(SearchResult, parts)


def _build(kind: type[Kind], data: Mapping[str, Any]) -> Kind:
    """A dataclass from the JSON of its fields; keys that it does not know are left out."""
    hints = get_type_hints(kind)
    given: dict[str, Any] = {}
    for each in fields(kind):  # type: ignore[arg-type]
        if each.name in data:
            given[each.name] = _value(hints[each.name], data[each.name])
        elif each.default is MISSING and each.default_factory is MISSING:
            raise KeyError(each.name)
    return kind(**given)


def _value(hint: Any, value: Any) -> Any:
    """A JSON value as what a field wants: lists as tuples, objects as dataclasses."""
    if value is None or get_origin(hint) is Literal:
        return value
    if get_origin(hint) in (UnionType, Union):
        inner = [each for each in get_args(hint) if each is not type(None)]
        return _value(inner[0], value) if len(inner) == 1 else value
    if get_origin(hint) is tuple:
        kinds = get_args(hint)
        if kinds[-1] is Ellipsis:
            kinds = kinds[:1] * len(value)
        return tuple(_value(kind, each) for kind, each in zip(kinds, value, strict=True))
    if hasattr(hint, "__dataclass_fields__") and isinstance(value, Mapping):
        return _build(hint, value)
    return value


def _mistake(path: Path, problem: str, remedy: str) -> RequestError:
    return RequestError([Mistake("result", str(path), problem, remedy)])
