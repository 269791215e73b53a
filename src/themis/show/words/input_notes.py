"""Notes on given rows, generated inputs and their outputs in plain words, by their codes."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from themis.results.model import Result
from themis.results.notes import Note
from themis.results.rough import Unnamed
from themis.show.words.amounts import Values
from themis.show.words.favours import favour_remedy
from themis.show.words.values import (
    LONGEST_TEXT,
    all_of,
    at_most,
    count,
    cut_text,
    length_text,
    percent,
    points,
    visible,
)

RULES = 3  # constraints that are shown


def _rows_left_out(values: Values) -> str:
    parts = []
    for each in values["reasons"]:
        examples = ", ".join(map(_example, each["examples"]))
        parts.append(f"{each['where']}: {each['reason']} ({each['rows']:,}, e.g. {examples})")
    verb, were = ("does not", "was") if values["dropped"] == 1 else ("do not", "were")
    return (
        f"{values['dropped']:,} of {count(values['rows'], 'row')} of {values['file']} {verb} "
        f"fit the schema and {were} left out: {'; '.join(parts)}"
    )


def _example(example: Mapping[str, Any]) -> str:
    place = f"line {example['line']:,}" if "line" in example else f"row {example['row']:,}"
    value = example["value"]
    if value is None:
        return place
    if isinstance(value, Mapping):
        value = ", ".join(f"{name} {each}" for name, each in value.items())
        return f"{value} in {place}"
    return f"{value!r} in {place}"


def _values_kept(values: Values) -> str:
    shown = quotes(values["values"][:3])
    examples = f" ({shown}{'' if len(values['values']) <= 3 else ', …'})" if shown else ""
    return (
        f"{count(values['rows'], 'row')} with a value of {values['name']} that the schema does "
        f"not have{examples}: run as it is, and tried for nobody else"
    )


def _values_between_steps(values: Values) -> str:
    rows = count(values["rows"], "row")
    if values["rows"] == 1:
        return f"{values['name']}: {rows} has a value between the steps; it is run as it is"
    return f"{values['name']}: {rows} have values between the steps; each is run as it is"


def _no_such_value(values: Values) -> str:
    if "value" in values and values["value"] is None:  # it is of a person
        return f"{values['name']} has no such value"
    value = repr(values["value"]) if "value" in values else "nothing"
    return f"{values['name']} has no value like {value}"


def _same_output(values: Values) -> str:
    which = "in every execution that did not fail"
    if "executions" in values:
        which = f"in all {values['executions']:,} executions"
    if values["output"] is None:  # too few people get it
        return f"the subject gave the same output {which}"
    return f"the subject gave the same output, {quoted(values['output'])}, {which}"


def _mostly_same(values: Values) -> str:
    rates = " to ".join(dict.fromkeys(percent(values[end]) for end in ("low", "high")))
    whom = "the generated test inputs"
    if "fewest" in values:  # earlier versions did not count
        counts = dict.fromkeys(f"{values[end]:,}" for end in ("fewest", "most"))
        whom = f"{' to '.join(counts)} generated test inputs in each group"
    return (
        f"{rates} of {whom} get a favourable answer: nine tenths or more are "
        "treated alike, so that few can show a difference; if real people are not like this, draw "
        "inputs from a table of them (profile), or give weights"
    )


def _made_by_constraints(values: Values) -> str:
    names, linked = " and ".join(values["against"]), all_of(values["linked"])
    rules = values["constraints"]
    shown = "; ".join(f"{name} ({text})" for name, text in list(rules.items())[:RULES])
    more = f" and {len(rules) - RULES} more" if len(rules) > RULES else ""
    which, links, it = "constraint", "links", "it"
    if len(rules) > 1:
        which, links, it = "constraints", "link", "them"
    changes = f"changes for {at_most(percent(values['changed']))} of test inputs"
    changes = changes if values["changed"] else "never changes"
    return (
        f"the rates of the groups of {names} differ by {points(values['difference'])}, but the "
        f"decision {changes} when only {names} is changed, as far as that is allowed: the "
        f"difference may come from the {which} {shown}{more}, which {links} {names} with {linked}; "
        f"leave {it} out to see what is left of it"
    )


def _few_counterfactuals(values: Values) -> str:
    names = " and ".join(values["against"])
    rules = "; ".join(
        f"{name} ({text})" for name, text in list(values["constraints"].items())[:RULES]
    )
    return (
        f"for {percent(values['share'])} of test inputs the constraints allow no other {names}, so "
        "that they count as unchanged, and the causal score says nothing about them: "
        f"{rules}; characteristics that change together can be said to (follows)"
    )


def command_without(note: Note, result: Result) -> str | None:
    """The command that measures again without the constraints that make a finding, if known."""
    command, names = (result.source or {}).get("command"), note.values.get("constraints")
    measured = note.code == "made-by-constraints" and result.command in (
        "score",
        "search",
        "apparent",
    )
    if not measured or not isinstance(command, str) or not isinstance(names, Mapping):
        return None
    return " ".join([command, *(f"--without-constraint {shlex.quote(name)}" for name in names)])


def _inputs_unlike_rows(values: Values) -> str:
    low, high = (visible(values[end]) for end in ("low", "high"))
    which = f"is {low}" if low == high else f"lies between {low} and {high}"
    return (
        f"generated test inputs are unlike the rows: {values['name']} {which} in "
        f"{percent(values['rows'])} of the rows, and in {percent(values['generated'])} of the test "
        "inputs; a profile, or weights, would make scores of inputs about people like these"
    )


def quoted(value: Any) -> str:
    """An output as Python writes it; of a long one its start, and its size.

    What stands in the place of outputs that are not named has no quotation marks.
    """
    if isinstance(value, Unnamed):
        return str(value)
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return f"{value[:LONGEST_TEXT]!r}… {length_text(value)}"
    return cut_text(repr(value))


def quotes(values: Iterable[Any]) -> str:
    """Outputs or values as Python writes them: `'approved', 'refused'`."""
    return ", ".join(map(quoted, values))


INPUT_WORDS: dict[str, str | Callable[[Values], str]] = {
    "rows-left-out": _rows_left_out,
    "values-kept": _values_kept,
    "values-between-steps": _values_between_steps,
    "range-widened": "{name} was widened to {min} to {max} to fit the rows",
    "values-added": lambda values: (
        f"{values['name']} got further values to fit the rows: {quotes(values['values'])}"
    ),
    "values-unseen": lambda values: (
        f"the model was not trained on {values['name']} {quotes(values['values'])}"
        f"{', …' if values.get('more') else ''}: it takes them for unknown"
    ),
    "without-effect": lambda values: (
        f"no change of {' or '.join(values['names'])} changed any answer of the model: if it was "
        "trained on other spellings of these values, it can't tell them apart"
    ),
    "no-favourable-output": lambda values: (
        f"no output was favourable: the subject gave {quotes(values['outputs'])}; favourable "
        f"is {quotes(values['favourable'])}. Group scores mean nothing until `favourable` names an "
        f"output{favour_remedy(values)}"
    ),
    "same-output": _same_output,
    "mostly-same": _mostly_same,
    "made-by-constraints": _made_by_constraints,
    "few-counterfactuals": _few_counterfactuals,
    "inputs-unlike-rows": _inputs_unlike_rows,
    "nothing-to-change": lambda values: (
        f"no test input can have another {' and '.join(values['against'])}, as the schema leaves "
        "a single value: nothing was changed, and nothing is known about it"
    ),
    "nothing-to-compare": lambda values: (
        f"there is a single group of {' and '.join(values['against'])}, so that there is nothing "
        "to compare"
    ),
    "no-such-value": _no_such_value,
}
