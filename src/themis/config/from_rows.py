"""Drafts from rows of data: types, ranges, steps, bins and weights, all of it guessed.

Nothing of it is exact: values that do not occur in the rows may occur elsewhere, and what is
unlikely in the rows may be likely there. So every guess comes with a remark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from themis.config.drafts import (
    NO_MODEL,
    Draft,
    DraftFile,
    ModelFacts,
    check_names,
    check_some_used,
)
from themis.config.from_model import tried, word_of
from themis.config.toml import spell_value
from themis.errors import Mistake, RequestError, count_of, suggest
from themis.inputs.characteristics import Value
from themis.inputs.columns import SHARED, Typed, type_column
from themis.inputs.guesses import LIST_NUMBERS, LIST_TEXTS, are_dates, guess_column, plain, words_of
from themis.inputs.numbers import exact, round_step
from themis.inputs.schema import Schema, characteristic_from
from themis.inputs.tables import Table

SPELLINGS = 4  # of one class: 1, 1.0, "1" and true
NAMES_A_DECISION = {
    "approved", "class", "decision", "label", "outcome", "output", "prediction", "target",
}  # fmt: skip
_PROTECTED = {
    "age", "citizenship", "disability", "disabled", "ethnic", "ethnicity", "gender", "marital",
    "married", "nationality", "orientation", "pregnant", "race", "religion", "sex",
}  # fmt: skip
_OF_A_THING = {"account", "car", "credit", "house", "loan", "property", "vehicle"}  # an age of it
_GRANTED = {
    "approve", "approved", "accept", "accepted", "admit", "admitted", "grant", "granted", "hire",
    "hired", "invited", "offered", "pass", "passed", "promoted", "selected", "eligible", "repaid",
}  # fmt: skip
_REFUSED = {
    "deny", "denied", "reject", "rejected", "refused", "decline", "declined", "failed",
    "ineligible", "default", "defaulted",
}  # fmt: skip
_GOOD = _GRANTED | {
    "1", "true", "yes", "y", "t", "good", "positive", "paid", ">50k", ">50k.", "high", "low risk",
    "low_risk",
}  # fmt: skip
_BAD = _REFUSED | {
    "0", "-1", "false", "no", "n", "f", "bad", "fail", "negative", "<=50k", "<=50k.", "low",
    "high risk", "high_risk", "none",
}  # fmt: skip


def draft_from_data(
    rows: Table,
    *,
    source: str,
    protected: Sequence[str] = (),
    target: str | None = None,
    profile: str | None = None,
    model: ModelFacts = NO_MODEL,
) -> DraftFile:
    """A file whose characteristics are the columns of some rows, but for the target.

    With a `model`, they are its columns. Where none are given, columns are taken for protected, and
    one for the target, by their names; `profile` is the path of the rows for the file.
    """
    typed = {n: type_column(column, is_text=rows.is_text) for n, column in rows.columns.items()}
    names = list(typed)
    check_names(names, protected, target)
    compared = protected or [name for name in names if _is_protected(name)]
    found = target or _find_target(typed, model, compared)
    read = _read_by(model, [name for name in names if name != found])
    others = [name for name in names if name not in (*read, found)]
    guessed = [] if protected else [name for name in [*read, *others] if _is_protected(name)]
    if model.names is None and model.count == len(read):
        model = replace(model, names=[model.spelled(name) for name in read])  # it takes them all
    told = target is not None or model.file
    asked = [] if told else [name for name in read if _may_be_decided(name, typed[name])]
    drafts = [
        _draft(name, typed[name], [*protected, *guessed], model, guessed, asked)
        for name in [*read, *others]
    ]
    if found is not None and target is None:
        reason = "taken for what is decided, not for an input; --target names another column"
        drafts.append(Draft(found, None, (), reason))
    check_some_used(drafts, source, "no column can be a characteristic", "name other rows")
    model = tried(model, some_rows(rows), _schema_of(drafts), _dates(drafts, typed), found)
    scale = _scale(None if found is None else typed[found], model)
    return DraftFile(
        f"{source}: {'the first ' * rows.is_cut}{count_of(len(rows), 'row')}, "
        f"{count_of(len(names), 'column')}",
        drafts,
        [*protected, *guessed],
        *_favourable(found, None if found is None else typed[found], model),
        example=_example(model),
        profile=profile,
        subject=tuple(_subject(model)) if model.file else DraftFile.subject,
        output=None if scale is None or found is None else (found, *scale),
        model=model,
        rare=[each.name for each in drafts if _lists_rare(each, typed[each.name])],
        asked=[each.name for each in drafts if each.name in asked and not each.left_out],
    )


def _subject(model: ModelFacts) -> Iterator[str]:
    yield "\n# The software under test; its path is relative to the folder of this file."
    yield f'[subject]\nkind = "model"\nfile = {spell_value(model.file)}'
    if model.module is not None:
        yield f"object = {spell_value(model.module)}"
    if model.dtypes:
        yield "# dtypes: the model fails on these dates as texts, not as pandas reads dates"
        yield f"dtypes = {spell_value(dict(model.dtypes))}"


def _dates(drafts: Sequence[Draft], typed: Mapping[str, Typed]) -> list[str]:
    return [each.name for each in drafts if not each.left_out and are_dates(typed[each.name])]


def some_rows(rows: Table) -> Table:
    """Rows from all over a table, to try a model on."""
    return rows.part(range(0, len(rows), max(1, len(rows) // 500)))


def _schema_of(drafts: Sequence[Draft]) -> Schema:
    return Schema(
        {each.name: characteristic_from(each.spec) for each in drafts if not each.left_out}
    )


def _lists_rare(draft: Draft, typed: Typed) -> bool:
    """Whether a draft lists a text that fewer than SHARED rows have, be it in a comment."""
    listed = set(draft.spec.get("values", ()) if isinstance(draft.spec, dict) else draft.spec or ())
    rows = zip(typed.values, typed.counts, strict=True) if listed else ()
    return any(count < SHARED and isinstance(v, str) and v in listed for v, count in rows)


def _read_by(model: ModelFacts, names: list[str]) -> list[str]:
    """The columns that the model reads, in its order; all where it does not know them."""
    needed = model.needed or model.names
    if needed is None:
        return names
    lacking = [name for name in needed if name not in map(model.spelled, names)]
    others = [name for name in names if model.spelled(name) not in needed]
    if lacking:
        raise RequestError(
            Mistake(
                "model-columns",
                "--model",
                f"the rows have no column {name!r}",
                suggest(name, others) if others else "add it",
            )
            for name in lacking
        )
    by_spelling = {model.spelled(name): name for name in names}
    return [by_spelling[name] for name in needed]


def _draft(
    name: str,
    typed: Typed,
    protected: Sequence[str],
    model: ModelFacts,
    guessed: Sequence[str],
    asked: Sequence[str],
) -> Draft:
    knows, unread = model.names is not None, _why_unread(name, model)
    if unread and name not in protected:
        return Draft(name, None, (), unread)
    guess = guess_column(name, typed, protected=name in protected, needed=knows and not unread)
    remarks = list(guess.remarks)
    if unread and not guess.left_out:
        remarks.append(f"{unread}: people are compared by it")
        guess = replace(guess, spec={**guess.spec, "role": "group"})
    if name in guessed and not guess.left_out:
        remarks.append("protected is a guess from its name")
    if name in asked and not guess.left_out:
        remarks.append("named like a decision: remove it if it is decided and no input")
    spec = guess.spec
    if isinstance(spec, dict) and "values" in spec:
        spec = _of_categories(spec, model.categories.get(model.spelled(name)))
    return Draft(name, spec, tuple(remarks), guess.left_out).checked()


def _why_unread(name: str, model: ModelFacts) -> str:
    """Why a model that knows its columns does not look at this one; empty where it does."""
    if model.names is None:
        return ""
    if model.spelled(name) not in model.names:
        return "the model was not trained on it"
    return "" if model.spelled(name) in (model.needed or model.names) else "the model drops it"


def _of_categories(spec: dict[str, Any], known: Sequence[Value] | None) -> dict[str, Any]:
    """The values that the model was trained on, with their weights."""
    if known is None or all(value in known for value in spec["values"]):
        return spec
    weights = spec.get("weights", [1] * len(spec["values"]))
    kept = [(v, w) for v, w in zip(spec["values"], weights, strict=True) if v in known]
    result = {**spec, "values": [value for value, _ in kept]}
    return result | ({"weights": [each for _, each in kept]} if "weights" in spec else {})


def _is_protected(name: str) -> bool:
    words = words_of(name)
    return bool(words & _PROTECTED) and not words & _OF_A_THING


def _find_target(
    typed: Mapping[str, Typed], model: ModelFacts, compared: Collection[str]
) -> str | None:
    """The column with what was decided: a model knows it or its classes, or it is called so.

    None by which people are `compared`.
    """
    if model.target in typed:
        return model.target
    knows = model.names is not None
    others = [name for name in typed if model.spelled(name) not in (model.names or ())]
    if model.classes and (knows or len(others) != model.count):
        classes = {word_of(value) for value in model.classes}
        first = {name: typed[name].values[: SPELLINGS * len(classes) + 1] for name in others}
        found = [n for n, own in first.items() if {word_of(plain(v)) for v in own} == classes]
        found = [name for name in found if name not in compared]
        if len(found) == 1 or (found and knows):
            return found[0]
    called = [name for name in others if _names_a_decision(name) and name not in compared]
    few = [name for name in called if 1 < len(typed[name].values) <= LIST_TEXTS]
    if few:
        return few[-1]
    if knows or model.count != len(others) - 1 or others[-1] in compared:
        return None
    last = others[-1]  # where tables usually have it
    return last if 1 < len(typed[last].values) <= LIST_NUMBERS else None


def _names_a_decision(name: str) -> bool:
    """Whether a column is called like what is decided; `y` only if that is the whole name."""
    return not NAMES_A_DECISION.isdisjoint(words_of(name)) or name.strip().lower() == "y"


def _may_be_decided(name: str, typed: Typed) -> bool:
    """Whether an input of two values is called like a decision, so that it is asked about."""
    called = _names_a_decision(name) or not words_of(name).isdisjoint(_GRANTED | _REFUSED)
    return called and len(typed.values) == 2


def _favourable(
    name: str | None, typed: Typed | None, model: ModelFacts
) -> tuple[list[Value] | None, str]:
    """Which decisions people want, as far as can be guessed, and why."""
    if len(classes := model.classes or ()) > 2:
        shown = ", ".join(repr(each) for each in classes[:10])
        return None, f"which of its classes do people want? The model decides between {shown}"
    if classes:
        return wanted([(each, 0) for each in classes], "the classes of the model")
    if name is None and model.answers_numbers:
        return None, "the model answers with numbers: --target names the column that it predicts"
    if name is None or typed is None:
        return None, DraftFile.favourable_remark
    pairs = list(zip(typed.values, typed.counts, strict=True))
    if typed.kind == "nested" or not pairs:
        return None, f"column {name!r} has no decisions: name the favourable outputs"
    numbers = typed.kind in ("real", "integer")
    if len(pairs) > (LIST_NUMBERS if numbers else LIST_TEXTS):
        return None, (
            f"column {name!r} has {len(pairs):,} different values: these are measurements, not "
            "decisions; let the subject compare them with a cut-off"
        )
    return wanted(pairs, f"column {name!r}")


def _scale(typed: Typed | None, model: ModelFacts) -> tuple[float, float] | None:
    """The range of answers like the numbers of a column; None where they are decisions.

    It is wider than theirs: what is predicted may lie beside all that was. It stays on one side of
    0, and its ends are nobody's number.
    """
    if typed is None or typed.kind not in ("integer", "real"):
        return None
    if len(typed.values) <= LIST_NUMBERS or model.classes or model.cut:
        return None
    low, high = map(exact, typed.ends)
    beside = (high - low) / 4
    unit = round_step(beside, 5)
    lower, higher = (low - beside) // unit * unit, -((-high - beside) // unit) * unit
    return (
        0.0 if low >= 0 > lower else float(lower),
        0.0 if high <= 0 < higher else float(higher),
    )


def _example(model: ModelFacts) -> Value:
    """An output that may be favourable, to be shown where it is asked which one is."""
    if not model.classes:
        return DraftFile.example
    return wanted([(each, 0) for each in model.classes], "")[0][0]


def wanted(pairs: list[tuple[Any, int]], source: str) -> tuple[list[Value], str]:
    """The decisions that people want, and how sure that is; each with its number of rows."""
    rows = [f" ({count_of(count, 'row')})" if count else "" for _, count in pairs]
    values = [repr(plain(value)) for value, _ in pairs]
    shown = ", ".join(value + count for value, count in zip(values[:10], rows, strict=False))
    words = {value: str(plain(value)).strip().lower() for value, _ in pairs}
    good = [value for value, word in words.items() if word in _GOOD]
    rest = [value for value, word in words.items() if word not in _BAD]
    chosen = good or (rest if 0 < len(rest) < len(pairs) else [pairs[-1][0]])
    sure = "guessed" if good or 0 < len(rest) < len(pairs) else "a mere guess, the last one,"
    return [plain(value) for value in chosen], f"{sure} from {source}: {shown}"
