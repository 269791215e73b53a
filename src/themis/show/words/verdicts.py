"""The one headline of a result, the same in every format: both measures, all sets, all populations.

Of scores of given people and of generated inputs, those of the people come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from themis.results.finding import State, finding, idle_favour
from themis.results.model import (
    CausalScore,
    ExcessScore,
    GroupScore,
    Result,
    Score,
    SearchResult,
    is_by_degrees,
)
from themis.results.notes import Ending
from themis.results.withheld import by_size, is_told
from themis.settings import Stopping
from themis.show.words.headlines import (
    capital,
    compared,
    few_remark,
    headline_parts,
    hidden_size,
    idle_words,
    not_given,
    score_text,
)
from themis.show.words.naming import amount, apart_text, beyond, in_units, output_words
from themis.show.words.notes import how_it_ended
from themis.show.words.scores import cut_off, rows_used
from themis.show.words.searches import (
    checks_guarantee,
    checks_headline,
    protected_first,
    scores_about,
    search_headline,
    search_is_idle,
    verdict_words,
)
from themis.show.words.values import (
    NAMED,
    at_least,
    at_most,
    count,
    percent,
    plain_phrase,
    set_phrase,
    some_of,
    visible,
)
from themis.show.words.wording import PLACES, Wording, is_drawn, wording

STATES: dict[str, State] = {  # of checks; others are open
    "violated": "grave",
    "violated, not decided in the baseline": "grave",
    "passes": "calm",
}
GRAVITY: tuple[State, ...] = ("calm", "open", "grave")
FOUND, NOT_FOUND, UNDECIDED = "difference found", "no difference found", "undecided"
WORDS: dict[State, str] = {"grave": FOUND, "calm": NOT_FOUND, "open": UNDECIDED}


@dataclass(frozen=True)
class Verdict:
    """What a result says: a word, a sentence without its full stop, and what stands behind it."""

    state: State
    word: str
    sentence: str
    behind: str = ""  # whole sentences


def verdict(result: Result) -> Verdict:
    """The verdict of a result."""
    words = wording(result)
    if result.checks:
        return _of_checks(result)
    if result.searches and result.command == "audit":
        return _of_audit(result, words)
    if result.searches:
        return _of_searches(result, words)
    return _of_scores(result, words)


def line(result: Result) -> str:
    """The verdict in one line."""
    return capital(verdict(result).sentence)


def check_state(verdict_text: str) -> State:
    """How a verdict of a check is shown; one that neither passes nor is violated is open."""
    return STATES.get(verdict_text, "open")


def _of_checks(result: Result) -> Verdict:
    verdicts = [verdict_words(each) for each in result.checks]
    worst = max(verdicts, key=lambda each: GRAVITY.index(check_state(each)))
    sentence = capital(checks_headline(result.checks))
    behind = " ".join([*_violations(result), *_undecided(result), checks_guarantee(result)])
    return Verdict(check_state(worst), worst, sentence, behind)


def _violations(result: Result) -> Iterator[str]:
    """What is above its limit, the first few."""
    words = wording(result)
    violated = [each for each in result.checks if each.verdict == "violated"]
    for check in violated[:3]:
        score = scores_about(result, check).get(check.against or ())
        if score is not None:
            limit = f"the limit is {amount(check.max_score, check)}"
            yield f"{headline_parts(score, words)[0]}; {limit}."


def _undecided(result: Result) -> Iterator[str]:
    """The checks that could not be decided, where others could."""
    names = [visible(each.name) for each in result.checks if each.verdict == "not enough evidence"]
    if len(result.checks) > 1 and names:
        yield f"Undecided: {_listed(names)}."


def _of_audit(result: Result, words: Wording) -> Verdict:
    """The scores first, since they are of each characteristic; then what the search says."""
    scores, searches = _of_scores(result, words), _of_searches(result, words)
    said = " ".join(map("{}.".format, search_lines(result, words)))
    state = max(scores.state, searches.state, key=GRAVITY.index)
    behind = f"{scores.behind} {said}".strip()
    return Verdict(state, WORDS[state], scores.sentence, behind)


def search_lines(result: Result, words: Wording) -> Iterator[str]:
    """Each search in a sentence without its full stop, with the sets that it found."""
    for search in map(protected_first(result), result.searches):
        yield search_headline(search, words, _named(search.found))


def _named(found: Sequence[tuple[str, ...]]) -> str:
    """Sets by name, and how many more there are: `race and sex; age; 3 more`."""
    return some_of([*map(plain_phrase, found)], between="; ", more="; {} more")


def _of_searches(result: Result, words: Wording) -> Verdict:
    sentence = _joined((search_headline(each, words) for each in result.searches), words)
    found = _found(result)
    if found:
        return Verdict("grave", "found", sentence, f"Found: {_named(found)}.")
    idle = any(search_is_idle(each, words) for each in result.searches)
    if idle or not all(each.conclusive for each in result.searches):
        cut = any(each.stopped.is_early or each.sets_open for each in result.searches)
        return Verdict("open", "not finished" if cut and not idle else UNDECIDED, sentence)
    return Verdict("calm", "none found", sentence)


def _joined(sentences: Iterable[str], words: Wording) -> str:
    """Sentences as one: behind a semicolon each begins with a small letter."""
    first, *others = sentences
    return "; ".join([first, *(_small(each, words) for each in others)])


def _small(sentence: str, words: Wording) -> str:
    """A sentence with a small first letter, unless that is how the word for decisions begins."""
    own = sentence.startswith(words.naming.decision or "\0")
    return sentence if own else f"{sentence[:1].lower()}{sentence[1:]}"


def _found(result: Result) -> list[tuple[str, ...]]:
    """The sets that searches found, protected ones first."""
    ordered: list[SearchResult] = list(map(protected_first(result), result.searches))
    return list(dict.fromkeys(names for each in ordered for names in each.found))


def _of_scores(result: Result, words: Wording) -> Verdict:
    unread = [each for each in result.scores if finding(each).kind == "unread"]
    wanted = [each for each in result.scores if each not in unread]
    measured = [each for each in wanted if each.samples]
    if not wanted and unread:
        return Verdict("open", "not measured", capital("; ".join(_unread_clauses(unread))))
    if not measured:
        why = "" if result.stopped is Ending.DONE else f": {how_it_ended(result.stopped)}"
        return Verdict("open", UNDECIDED, f"Nothing was measured{why}")
    given = [each for each in measured if each.population in PLACES]
    counted = given or measured
    kinds = {each.population for each in counted}
    asked = [each for each in result.scores if each.population in kinds]
    sentence, behind = _sentence(asked, words)
    if given and len(given) < len(measured):
        others = [each for each in measured if each not in given]
        behind += f" On {words.whom()}: {_small(clauses(others, words), words)}."
    behind += _missing(result, len(wanted) - len(measured))
    complete = len(measured) == len(wanted) and cut_off(result) is None
    state = _state(counted, complete=complete)
    return Verdict(state, WORDS[state], sentence, behind.strip())


def measured_on(result: Result) -> str:
    """On which inputs: generated ones, which are not people, or given rows."""
    times = f", in {count(result.executions, 'run')} of the program" if result.executions else ""
    return f"Measured on {source_text(result)}{times}."


def source_text(result: Result) -> str:
    """The same in a few words: `generated test inputs, not real people`."""
    words, data = wording(result), result.data or {}
    kinds = result.populations
    given = rows_used(data) if "used" in data else visible(data.get("file", "the given rows"))
    if any(map(is_drawn, result.scores)) or any(map(is_drawn, result.searches)):
        given = f"inputs drawn from {given}"
    made_up = f"generated {words.whom()}, not real {words.people}"
    if "inputs" not in kinds:
        return given
    return made_up if kinds == {"inputs"} else f"{given}, and {made_up}"


def how_to_read(result: Result) -> str:
    """What the words of the verdict mean, for somebody who reads nothing else."""
    words, scores = wording(result), [each for each in result.scores if each.samples]
    kind = next((each.population for each in scores if each.population in PLACES), "inputs")
    named = any(each.output is not None for each in scores)
    changed = [each for each in scores if isinstance(each, CausalScore)]
    parts = []
    if changed:
        found = next((each for each in changed if finding(each).state == "grave"), changed[0])
        name, what = plain_phrase(found.against), "an output" if named else "the decision"
        only = f"nothing but {name} is" if len(found.against) == 1 else "only these are"
        same = f"if the same {words.one(kind)} gets a different one when {only} changed"
        parts.append(f"{what} changes with {name} {same}")
    if any(isinstance(each, GroupScore) and each.statistic == "rate" for each in scores):
        favour = "a favourable output" if named else words.favour()
        parts.append(f"rates are how often each group gets {favour}")
    return f"How to read this: {'; '.join(parts)}." if parts else ""


def _state(scores: Sequence[Score], *, complete: bool) -> State:
    states = {finding(each).state for each in scores}
    if "grave" in states:
        return "grave"
    return "calm" if states == {"calm"} and complete else "open"


def _missing(result: Result, missing: int) -> str:
    """How many scores were not measured, and that a run was cut off."""
    text = ""
    if missing:
        text = (
            f" {count(missing, 'further score')} {'was' if missing == 1 else 'were'} not measured."
        )
    ending = cut_off(result)
    return text if ending is None else f"{text} {capital(ending)}."


def _sentence(scores: Sequence[Score], words: Wording) -> tuple[str, str]:
    """The sentence, and what stands behind its numbers as sentences of their own."""
    if len({each.against for each in scores}) > 1 or len(scores) > 2:
        return clauses(scores, words), ""
    measured_first = sorted(scores, key=lambda each: finding(each).kind == "unread")
    halves = [headline_parts(each, words) for each in measured_first]
    sentence = _joined((each for each, _ in halves), words)
    return sentence, " ".join(dict.fromkeys(behind for _, behind in halves if behind))


def clauses(scores: Sequence[Score], words: Wording) -> str:
    """Where a difference was found, by which measure and how large; where none; what is open.

    Rates that tell nothing are no reason to call a set open of which the causal score is known.
    """
    alone = [each for each in scores if finding(each).kind == "single"]
    unread = [each for each in scores if finding(each).kind == "unread"]
    telling = [each for each in scores if finding(each).kind not in ("unread", "single", "idle")]
    idle = [
        idle_words(which, compared(each, words), each.output, words)
        for each in scores
        if isinstance(each, GroupScore) and (which := idle_favour(each))
    ]
    parts = [*_found_clauses(telling, words), *_other_clauses(telling), *dict.fromkeys(idle)]
    parts += [f"there is nothing to compare for {_sets(alone)}"] if alone else []
    return capital("; ".join([*parts, *_unread_clauses(unread)]))


def _unread_clauses(scores: Sequence[Score]) -> Iterator[str]:
    """What holds by construction, by measure; of rows and of all inputs it is the same."""
    for kind in (CausalScore, GroupScore):
        if own := [each for each in scores if isinstance(each, kind)]:
            yield not_given(own)


def _found_clauses(scores: Sequence[Score], words: Wording) -> Iterator[str]:
    """One clause for each thing that differs: the decision, the rates, an output."""
    found = [each for each in scores if finding(each).state == "grave"]
    made_up = {each.against for each in found if each.counterfactuals == "generated"}
    found = [
        each for each in found if each.counterfactuals == "generated" or each.against not in made_up
    ]  # what rows show among themselves is the lesser part of the same finding
    subjects: dict[str, list[Score]] = {}
    for each in found:
        subjects.setdefault(_subject(each, words), []).append(each)
    for subject, parts in subjects.items():
        ranked = sorted(filter(partial(adds, others=parts), parts), key=by_size)
        sizes = [_sized(each, words, first=not place) for place, each in enumerate(ranked)]
        yield f"{subject} {_listed(sizes)}"


def adds(score: Score, others: Sequence[Score]) -> bool:
    """Whether a set says more than its parts: more than was seen of them, or of both together.

    So does one whose size is not shown, as far as can be told.
    """
    joint = score.joint if isinstance(score, CausalScore) else None
    if joint is not None and (joint.only if joint.only_low is None else joint.only_low) > 0:
        return True
    own = set(score.against)
    parts = [each for each in others if set(each.against) < own]
    return not any(is_told(each) and is_told(score) and each.score >= score.low for each in parts)


def _subject(score: Score, words: Wording) -> str:
    if isinstance(score, GroupScore):
        where = f"{PLACES[score.population]} " if score.population in PLACES else ""
        return f"{where}{compared(score, words)} differ by"
    name = output_words(score)
    if score.counterfactuals == "within":
        return f"{name} differs{beyond(score)} between rows that differ only in"
    chance = " beyond chance" if isinstance(score, ExcessScore) else ""
    return f"{name} changes{beyond(score)}{chance} with"


def _sized(score: Score, words: Wording, *, first: bool) -> str:
    """`sex (for 12.9 % of test inputs)`, `race (5.0 %)`."""
    if not is_told(score):
        return f"{set_phrase(score.against)} ({hidden_size(words)})"
    size = at_least(in_units(score.low, score, "down")) if score.lower_bound else score_text(score)
    if isinstance(score, GroupScore):
        size += few_remark(score, words)
    elif is_by_degrees(score):
        size = f"by {size} on average"
    elif first and not isinstance(score, ExcessScore):
        size = f"for {size} of {words.whom(score.population)}"
    return f"{set_phrase(score.against)} ({size})"


def _other_clauses(scores: Sequence[Score]) -> Iterator[str]:
    """The sets of which no measure found anything."""
    found = {each.against for each in scores if finding(each).state == "grave"}
    rest = [each for each in scores if each.against not in found]
    open_sets = {each.against for each in rest if finding(each).state == "open"}
    calm = [each for each in rest if each.against not in open_sets]
    if calm:
        bound = _bound(calm)
        yield f"no difference found for {_sets(calm)}{f' ({bound})' if bound else ''}"
    if open_sets:
        unclear = [each for each in rest if each.against in open_sets]
        known = [e for e in unclear if isinstance(e, CausalScore) and e.samples and is_told(e)]
        seen = [each for each in known if each.score > 0]
        size = ""
        if seen:
            most = max(seen, key=lambda each: each.score)
            size = f" (changes seen: {percent(most.score)}, {at_most(percent(most.high, 'up'))})"
        yield f"undecided for {_sets(unclear, 'and')}{size}"


def _bound(scores: Sequence[Score]) -> str:
    """How large a difference may be all the same."""
    parts = []
    changed = [each for each in scores if not isinstance(each, GroupScore) and is_told(each)]
    if changed:
        most = max(changed, key=lambda each: each.high)
        parts.append(in_units(most.high, most, "up"))
    rates = [each for each in scores if isinstance(each, GroupScore) and each.statistic == "rate"]
    if rates:
        parts.append(apart_text(rates[0], max(each.high for each in rates), "up"))
    if all(is_told(each) and not each.high and not beyond(each) for each in scores):
        return "exactly none"
    claimed = ""
    if any(each.stopping is Stopping.PAPER and each.method == "sampled" for each in scores):
        claimed = " by the paper's rule, which is not certified"
    if len(parts) == 2:
        return f"an effect above {parts[0]} and a gap above {parts[1]} are ruled out{claimed}"
    above = "an effect above" if changed else "a gap above"
    return f"{above} {parts[0]} is ruled out{claimed}" if parts else ""


def _sets(scores: Iterable[Score], word: str = "or") -> str:
    return _listed(dict.fromkeys(set_phrase(each.against) for each in scores), word)


def _listed(parts: Iterable[str], word: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`; of many, the first and how many more."""
    shown = list(parts)
    if len(shown) > NAMED:
        shown = [*shown[: NAMED - 1], f"{len(shown) - NAMED + 1:,} more"]
    *others, last = shown
    comma = "," if any(e.endswith(" together") for e in shown) else ""
    return f"{', '.join(others)}{comma} {word} {last}" if others else last
