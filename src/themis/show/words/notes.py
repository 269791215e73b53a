"""Notes and endings in plain words: the sentence of every code.

A code that is not known, of a later version, is shown as it is with its values; so is one whose
values are not those that its sentence needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from themis.inputs.personal import SHARED
from themis.results.notes import OLD_SENTENCE, Ending, Note
from themis.show.words.amounts import (
    Values,
    amount,
    from_to,
    on_error,
    on_figures,
    on_score,
    precisely,
    what,
)
from themis.show.words.input_notes import INPUT_WORDS, quotes
from themis.show.words.run_notes import RUN_WORDS
from themis.show.words.values import (
    all_of,
    at_least,
    at_most,
    confidence_text,
    count,
    cut_name,
    exact_figure,
    one_line,
    percent,
    points,
    share_text,
    told_apart,
    visible,
)
from themis.show.words.wording import PLAIN

ENDED = {
    Ending.NOISE: "the subject does not always decide the same",
    Ending.BUDGET: "the budget ended",
    Ending.FAILED: "the subject failed too often",
    Ending.INTERRUPTED: "it was interrupted",
    Ending.INCONSISTENT: "the answers contradict each other: they depend on more than the input",
    Ending.SPELLING: "outputs differ only in spelling",
}
WHEN = {"baseline": "not as in the baseline", "before": "before", "after": "after"}


def sentence(note: Note) -> str:
    """The note in words."""
    words = (UNTOLD if "untold" in note.values else WORDS).get(note.code)
    try:
        if words is not None:
            text = words(note.values) if callable(words) else words.format_map(_joined(note.values))
            return f"{_prefix(note.values)}{text}"
    except (LookupError, TypeError, ValueError, AttributeError):
        pass  # it was edited
    values = ", ".join(f"{name} {each}" for name, each in note.values.items())
    return one_line(f"{note.code} ({values})" if values else note.code)


def how_it_ended(stopped: Ending) -> str:
    """Why something is not finished."""
    return ENDED.get(stopped, "it was interrupted")


def _prefix(values: Values) -> str:
    """Of which set or output a note is, or of which of two results."""
    about = f"{values['about']}: " if "about" in values else ""
    return f"{WHEN[values['when']]}: {about}" if "when" in values else about


def _joined(values: Values) -> Values:
    """The values with sets and names as they are written."""
    against = values.get("against")
    return {**values, "against": ",".join(against)} if against else values


def _ended_early(values: Values) -> str:
    limits = []
    if "max_executions" in values:
        limits.append(f"max_executions = {values['max_executions']:,}")
    if "max_seconds" in values:
        limits.append(f"max_seconds = {values['max_seconds']:g}")
    budget = Ending(values["ended"]) is Ending.BUDGET
    reason = f"the budget ended ({', '.join(limits)})" if budget else "interrupted"
    if not values["samples"]:
        return f"{reason} before it was measured"
    return f"{reason} before the interval was as narrow as asked; it holds all the same"


def _rows_with_counterparts(values: Values) -> str:
    it = "it" if len(values["against"]) == 1 else "them"
    followed = f", and {all_of(values['followed'])} with {it}" if "followed" in values else ""
    if values["paired"] == values["rows"]:
        return (
            f"all of {count(values['rows'], 'row')} have a counterpart among the rows that differs "
            f"only in {all_of(values['against'])}{followed}"
        )
    return (
        f"{values['paired']:,} of {count(values['rows'], 'row')} "
        f"{'has' if values['paired'] == 1 else 'have'} a counterpart among the rows that "
        f"differs only in {all_of(values['against'])}{followed}; the others count as unchanged"
    )


def _too_many_groups(values: Values) -> str:
    tried = values["tried"]
    then = f"{tried:,} were, so the score is a lower bound"
    if not tried:
        then = "none of those that were tried occurs; give the characteristic bins"
    return f"{values['groups']:,} groups are too many to try: {then}"


def _groups_without_decision(values: Values) -> str:
    number = values["groups"]
    return f"{number:,} group{'s have' if number > 1 else ' has'} no decision to show"


def _score_between(values: Values) -> str:
    why = ENDED[Ending.SPELLING] if values.get("spelled") else "executions failed"
    low, high = (amount(values, end) for end in ("low", "high"))
    return f"{what(values)} is between {low} and {high}: {why}"


def _no_decision(values: Values) -> str:
    """How often each group got no decision; the extreme ones, where there are many."""
    groups = sorted(values["groups"], key=lambda each: each["rate"], reverse=True)
    shown = groups if len(groups) <= GROUPS_NAMED else [groups[0], groups[-1]]
    parts = "; ".join(map(_no_decision_of, shown))
    sure = ""
    if "confidence" in values:
        together = "all" if len(groups) > 2 else "both"
        sure = f" ({confidence_text(values['confidence'])}, {together} intervals together)"
    return f"{parts}{sure}"


def _no_decision_of(group: Mapping[str, Any]) -> str:
    who = ", ".join(f"{name} {visible(value)}" for name, value in group["values"].items())
    text = f"{who or PLAIN.label({})}: {group['undecided']:,} of {group['samples']:,}"
    low, high = (percent(group[end]) for end in ("low", "high"))
    return text if group["low"] == group["high"] else f"{text} (between {low} and {high})"


def _no_decision_apart(values: Values) -> str:
    return (
        f"groups differ in how often there is no decision, by {at_least(points(values['apart']))}: "
        f"{_no_decision(values)}"
    )


def _spelling(values: Values, until: str) -> str:
    texts = "; ".join(" and ".join(map(repr, group)) for group in values["texts"][:SPELLINGS])
    more = "; …" if len(values["texts"]) > SPELLINGS else ""
    texts = texts or "outputs that few people get"  # and that are not shown
    table = f"[outputs.{values['output']}.labels]" if "output" in values else "[subject.labels]"
    remedy = (
        f"declare in {table} whether they are different decisions, and name labels in favourable"
    )
    return f"{texts}{more} differ only in case, punctuation or white space{until}; {remedy}"


def _only_spelling(values: Values) -> str:
    return _spelling(values, "")


def _partly_spelling(values: Values) -> str:
    return _spelling(values, ", and the interval covers both meanings")


def _noise_in_search(values: Values) -> str:
    who, doubtful = "inputs of the found sets", values["doubtful"]
    if values.get("differing"):
        who = f"{values['differing']:,} of {count(values['inputs'], 'input')}"
    sets = f"; noise alone may explain {doubtful:,} of the sets found" if doubtful else ""
    return f"{ENDED[Ending.NOISE]}: {who} got a different decision when run again{sets}"


def _inputs_flip(values: Values) -> str:
    get = "gets" if values["flips"] == 1 else "get"
    text = f"{values['flips']:,} of {count(values['inputs'], 'input')} {get} a different output"
    if values.get("average"):  # what was counted are draws of it
        return f"decided by how far outputs differ for {count(values['inputs'], 'input')}"
    text = f"at least {text}" if values.get("untried") else text
    unsettled = values.get("unsettled")
    return f"{text}, {unsettled} could not be settled" if unsettled else text


def _groups_apart(values: Values) -> str:
    ends = [amount(values, end) for end in ("low", "high")]
    tried = count(values["contexts"], "input")
    return f"groups differ by {ends[0].removesuffix(' points')} to {ends[1]} (tried on {tried})"


INCONSISTENT = {
    "again": "when it was run again",
    "neighbours": "in a call with other inputs",
}


def _inconsistent_example(values: Values) -> str:
    """One input with its two outputs."""
    named = ((cut_name(visible(each)) for each in both) for both in values["input"].items())
    person = ", ".join(" ".join(both) for both in named)
    first, second = told_apart(values["outputs"])
    when = INCONSISTENT[values["how"]]
    if not person:
        return f"an example: the same input got {first}, and {second} {when}"
    return f"an example: the same input got {first}, and {second} {when}: {person}"


def _of_output(values: Values) -> str:
    return f" in {values['output']}" if "output" in values else ""


def _scale_differs(values: Values) -> str:
    before, after = (
        f"{exact_figure(low)} to {exact_figure(high)}"
        for low, high in (values["before"], values["after"])
    )
    where = f"the scale{_of_output(values).replace(' in ', ' of ')} differs"
    return f"{where} (before: {before}; after: {after}), so that shares of it are not compared"


def _noise_may_explain(values: Values) -> str:
    what = f"a score of {amount(values, 'high')}" if "high" in values else "it"
    return f"noise alone may explain {what}"


def _noise_alone(values: Values) -> str:
    score, high = percent(values["score"]), at_most(percent(values["high"]))
    gives = f"noise alone gives {score}, {high}; more repeats may tell"
    return f"{ENDED[Ending.NOISE]}: {gives}"


def _ended(values: Values) -> str:
    return how_it_ended(Ending(values["ended"]))


def _acceptance(does: str) -> Callable[[Values], str]:
    def words(values: Values) -> str:
        of = f" of {values['output']}" if "output" in values else ""
        limit = f" up to {values['max_score']:g}" if "max_score" in values else ""
        line = f" (line {values['line']})" if "line" in values else ""
        name = f"{values['measure']} {','.join(values['against'])}{of}{limit}"
        return f"the acceptance of {name}{line} {does.format_map(values)}"

    return words


def _setting_differs(values: Values) -> str:
    first, second = (all_of(values[name]) for name in ("before", "after"))
    return f"the {values['name']} differs: {first}, then {second}"


def _answers_at_random(values: Values) -> str:
    tests, unclear, lasting = (values[name] for name in ("tests", "unclear", "lasting"))
    less = "none did" if unclear == tests else f"{unclear:,} did not do"
    others = f"; {lasting:,} did, which is more than chance leaves" if lasting else ""
    return (
        f"the subject seems to answer at random: of {count(tests, 'test')} that discriminated "
        f"once, {less} so each time they were run again{others}"
    )


def _favourable_differs(values: Values) -> str:
    before, after = told_apart([values["before"], values["after"]])
    return (
        f"what counts as favourable{_of_output(values)} differs (before: {before}; after: "
        f"{after}), so that rates are not compared"
    )


def _quantity(name: str) -> str:
    """The name of a score, of which what counts as favourable is cut: it comes last."""
    start, sign, favours = name.partition("favourable: ")
    return f"{start}{sign}{cut_name(favours.removesuffix(')'))})" if sign else name


def _once(values: Values, did: str) -> str:
    only, other = ("before", "after") if values["only"] == "before" else ("after", "before")
    return f"{did} {only} and not {other}"


def _value_taken_away(values: Values) -> str:
    names = " and ".join(cut_name(visible(name)) for name in values["names"])
    share = share_text(
        values["share"], values["changed"], values["inputs"], values.get("low"), values.get("high")
    )
    return (
        f"without {names}, inputs that have it get a different decision: {share}; the score "
        "leaves that out"
    )


WHY_NOT_EXACT = {
    "not-counted": "constraints link more characteristics than can be listed",
    "bins": "for each input a random member stands for a bin, of more than one characteristic or "
    "of an output by degrees",
    "following": "a characteristic of the set follows another, and some of its variants occur as "
    "nobody's own input",
    "too-wide": "the set, with what constraints link to it, has too many combinations",
    "suite": "the tests are to be written down, which are too many",
    "max-executions": "max_executions does not allow it",
    "max-seconds": "max_seconds does not allow it",
    "failures": "some executions failed, and a characteristic of the set has bins",
}


def _exact_not_possible(values: Values) -> str:
    why = WHY_NOT_EXACT.get(values["reason"], values["reason"])
    return f"sampled although exact was asked for: {why}"


NEAR = "so near the limit that ± {} cannot tell the side"

SPELLINGS = 3  # groups of texts that are named
GROUPS_NAMED = 4  # of people

UNTOLD: dict[str, str] = {  # where the numbers would tell what few people get
    "exact-score": "counted and not estimated",
    "equals-threshold": "a tie: exactly the threshold",
    "score-between": "executions failed, or outputs differ only in spelling",
    "groups-apart": "decided by the means of its groups",
    "estimated-score": "estimated",
    "noise-may-explain": "noise alone may explain it",
    "noise-in-score": f"{ENDED[Ending.NOISE]}: noise alone may explain a part of this score",
    "noise-in-finding": "noise may explain a part of it; more executions may tell",
    "score-near-limit": "the score is so near the limit that the side cannot be told",
    "sets-near-limit": "found sets are so near the limit that the side cannot be told",
    "above-baseline": "more than in the baseline",
    "not-above-baseline": "not shown to be more than in the baseline",
    "maybe-above-baseline": "too uncertain to say that it is not more than in the baseline",
}
WORDS: dict[str, str | Callable[[Values], str]] = {
    OLD_SENTENCE: "{text}",
    "ended-early": _ended_early,
    "too-many-assignments": "{assignments:,} assignments are too many to try: {tried:,} were, so "
    "the score is a lower bound",
    "too-many-groups": _too_many_groups,
    "exact-not-possible": _exact_not_possible,
    "random-members": "a random member stands for each bin; the interval allows for the choice of "
    "members",
    "rows-with-counterparts": _rows_with_counterparts,
    "groups-not-listed": lambda values: (
        f"of {values['groups']:,} groups, the {values['listed']:,} with the lowest and highest "
        f"{on_figures('{}')(values)} are listed; the score is that of all of them"
    ),
    "groups-without-decision": _groups_without_decision,
    "value-taken-away": _value_taken_away,
    "paper-rule": "the paper's stopping rule: this interval is what it claims, not what it holds; "
    "it fails most often for scores near 0",
    "noise-in-score": lambda values: (
        f"{ENDED[Ending.NOISE]}: noise alone may explain a score of {amount(values, 'high')}"
    ),
    "noise-in-rates": on_figures(
        f"{ENDED[Ending.NOISE]}; {{}} are averages over its noise, so that this interval holds"
    ),
    "noise-of-calls": f"{ENDED[Ending.NOISE]}, and all inputs of one call are changed alike: "
    "groups that were run in different calls seem to differ, and in one call they do less",
    "noise-in-exact-rates": on_figures(
        f"{ENDED[Ending.NOISE]}: these are the {{}} of one run on every input, and another run "
        "may give others"
    ),
    "no-decision-rates": lambda values: f"some executions gave no decision: {_no_decision(values)}",
    "no-decision-apart": _no_decision_apart,
    "only-spelling": _only_spelling,
    "partly-spelling": _partly_spelling,
    "noise-in-group-search": on_figures(
        f"{ENDED[Ending.NOISE]}; {{}} are averages over its noise, so that the groups' "
        "differences hold"
    ),
    "noise-in-search": _noise_in_search,
    "inputs-flip": _inputs_flip,
    "exact-score": on_score("{what} is {score}, counted and not estimated"),
    "equals-threshold": on_score("a tie: {what} is {score}, exactly the threshold"),
    "score-between": _score_between,
    "groups-apart": _groups_apart,
    "within-set-below": "within {against}, which is not above either",
    "causal-score-below": "the causal score of {against} is not above either, and bounds it",
    "estimated-score": on_score("estimated at {score}"),
    "noise-may-explain": _noise_may_explain,
    "run-ended": _ended,
    "search-ended": lambda values: (
        f"{_ended(values)} with {count(values['sets_open'], 'combination')} not checked"
    ),
    "subject-failed": "the subject failed",
    "never-favourable": "no output was favourable: what `favourable` names never came",
    "noise-alone": _noise_alone,
    "only-lower-bound": "there are too many combinations to try all, so only a lower bound is "
    "known",
    "executions-failed": "some executions failed, so the interval stays wide",
    "score-near-limit": on_error(f"the score is {NEAR}"),
    "sets-near-limit": on_error(f"found sets are {NEAR}"),
    "sets-at-limit": "found sets are exactly at the limit, and sets that contain them were not "
    "looked at",
    "sets-undecided": "{undecided:,} of {sets:,} combinations are undecided",
    "accepted-up-to": lambda values: (
        f"{','.join(values['against'])} is accepted only up to {precisely(values, 'max_score')}"
    ),
    "accepted-until": "{against} was accepted until {until}",
    "not-in-baseline": "it is not in the baseline",
    "undecided-in-baseline": "the baseline could not decide it",
    "above-baseline": lambda values: (
        f"more than in the baseline, where it was at most {amount(values, 'high')}"
    ),
    "baseline-unfinished": "the baseline did not measure it to the end",
    "maybe-above-baseline": lambda values: (
        f"too uncertain to say that it is not more than in the baseline, where it was at most "
        f"{amount(values, 'high')}"
    ),
    "not-above-baseline": lambda values: (
        f"not shown to be more than in the baseline ({from_to(values)})"
    ),
    "acceptance-unmatched": _acceptance(
        "matches no check: nothing was tested that it could accept"
    ),
    "acceptance-not-needed": _acceptance("is not needed: no such finding was made"),
    "acceptance-ended": _acceptance("ended on {until} and counts no longer"),
    "few-combinations": lambda values: (
        f"the constraints leave only {values['share']:.2g} of all combinations of "
        f"{', '.join(values['names'])}: scores describe that small part of the inputs"
    ),
    **INPUT_WORDS,
    **RUN_WORDS,
    "proxies-missing": lambda values: (
        f"the run ended before it was seen whether {all_of(values['names'])} may stand in for "
        "others"
    ),
    "pairs-not-confirmed": f"{ENDED[Ending.NOISE]}: pairs with different decisions got the "
    "same one when run again",
    "vouched-for": "the file vouches that the subject is deterministic: nothing was run again to "
    "check for noise",
    "depends-on-neighbours": "answers depend on the other inputs of a call: {differing:,} of "
    "{inputs:,} inputs got a different decision among others; decide each input by itself",
    "inconsistent-example": _inconsistent_example,
    "few-people": f"the numbers are not shown, as they would tell what fewer than {SHARED} people "
    "get",
    "not-checked-for-noise": "not checked for consistency: what it rests on was not repeated",
    "noise-in-finding": lambda values: (
        f"noise may explain {amount(values, 'explains')}, so that only "
        f"{amount(values, 'floor')} are certain; more executions may tell"
    ),
    "no-favourable-trial": lambda values: (
        f"no trial got a favourable decision: the outputs were {quotes(values['outputs'])}. That "
        "is chance, or `favourable` in [subject] names the wrong outputs"
    ),
    "nothing-protected": "no characteristic is marked protected = true: `themis score` needs "
    "--against to know what to measure",
    "column-not-used": "the column {name!r} is no characteristic: it is not used",
    "same-subject": "as far as can be seen, the subject is the one that the result is of",
    "answers-at-random": _answers_at_random,
    "forbidden-by-constraint": "a constraint forbids the input",
    "no-such-characteristic": "there is no characteristic {name!r} to test against",
    "characteristic-removed": "{name} was removed from the schema",
    "characteristic-added": "{name} was added to the schema",
    "characteristic-changed": "{name} is described differently",
    "constraints-differ": "the constraints differ",
    "scale-differs": _scale_differs,
    "favourable-differs": _favourable_differs,
    "rows-differ": "the given rows differ",
    "setting-differs": _setting_differs,
    "kind-differs": "the kind of subject differs: {before}, then {after}",
    "fingerprint-differs": "the program changed between the two runs",
    "seed-differs": "the seed differs: {before}, then {after}",
    "threshold-differs": "the {measure} search has a different threshold: {before}, then {after}",
    "among-differs": "the {measure} search is among different characteristics",
    "max-size-differs": "the {measure} search has a different largest size: {before}, then {after}",
    "paper-rule-used": "the paper's stopping rule gives intervals that need not hold",
    "maybe-risen": lambda values: (
        f"{_quantity(values['name'])} is too uncertain now to say that it has not risen"
    ),
    "measured-once": lambda values: _once(values, f"{_quantity(values['name'])} was measured"),
    "searched-once": lambda values: _once(values, f"{values['measure']} scores were searched"),
    "nothing-measured": "nothing was measured",
}
