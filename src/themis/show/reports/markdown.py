"""A result as a comment on a pull request: GitHub's Markdown, short enough for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from themis.results.model import CausalScore, CheckResult, GroupScore, Result, Score
from themis.results.outcomes import Outcomes, Proxy
from themis.results.parts import Witness
from themis.results.withheld import whole_of
from themis.show.reports.page import subject_title
from themis.show.reports.scores import interval, point
from themis.show.words.certainty import certainty
from themis.show.words.explanations import pairs_origin
from themis.show.words.headlines import headline, kind_words
from themis.show.words.notes import how_it_ended
from themis.show.words.outcomes import (
    NO_VERDICT,
    RATE_WORDS,
    about_outcomes,
    beside_causal,
    counted_rate,
    gap_difference,
    gap_groups,
    gap_name,
    gap_ratio,
    outcomes_certainty,
    undefined,
)
from themis.show.words.proxies import (
    PROXY_HEADS,
    by_proxied_set,
    proxies_certainty,
    proxy_row,
    proxy_sentences,
)
from themis.show.words.scores import (
    cost_text,
    cut_off,
    failure_text,
    how_sure_together,
    impact,
    inconclusive,
)
from themis.show.words.searches import (
    acceptance_words,
    check_interval,
    check_point,
    checks_guarantee,
    guarantee,
    harms,
    set_text,
    verdict_words,
)
from themis.show.words.values import count, cut_name, told_apart, unbroken, visible
from themis.show.words.verdicts import verdict
from themis.show.words.wording import Wording, wording

LIMIT = 65_000  # characters; GitHub takes 65,536
ROWS = 40  # of a table
LONGEST = 80  # characters of one value
WITNESSES = 2  # pairs of people for each score
PEOPLE = 20  # characteristics of a person
TELLING = 10  # scores whose people are shown
MARKS = {"holds": "✅", "violated": "❌", "accepted": "☑️", "not enough evidence": "❔"}

_SPECIAL = re.compile(r"[\\`*_\[\]<>|~&#]")
_LINKING = re.compile(r"@(?=\w)|&#35;(?=\w)|:(?=[\w+-]+:)")  # people, issues, emoji
_LEADING = re.compile(r"^(?:[-+=\s]|\d(?=\d*[.)](?:\s|$)))")  # would begin a list, rule or code


def render_markdown(result: Result) -> str:
    """The verdict, a table, the people it happens to, and the cost; at most LIMIT characters."""
    title = f"## Themis: {escape(subject_title(result), begins=False)}: {verdict(result).word}"
    parts = [title, *_verdict(result), *_tables(result), *_cautions(result)]
    parts += [_outcomes(each, result) for each in result.outcomes]
    parts += [_proxies(each, result) for each in by_proxied_set(result.proxies)]
    parts += [each for score in _worst(result) for each in _people(score, wording(result))]
    cost = f"<sub>{escape(f'{_certainty(result)} {cost_text(result)}'.strip())}</sub>"
    return "\n\n".join([*_fitting(parts, LIMIT - len(cost) - 100), cost]) + "\n"


def _fitting(parts: list[str], room: int) -> Iterator[str]:
    """The parts that fit; that some don't is said."""
    for place, part in enumerate(parts):
        room -= len(part) + 2
        if room < 0:
            yield f"… the rest ({count(len(parts) - place, 'part')}) is in the saved result"
            return
        yield part


def escape(text: str, *, begins: bool = True) -> str:
    """Text that Markdown shows as it is: nothing is styled, linked, mentioned or run.

    What begins a line must not make it a list, a rule or code.
    """
    if not text:
        return ""
    text = _SPECIAL.sub(_entity, visible(text))
    text = _LEADING.sub(_entity, text) if begins else text
    text = _LINKING.sub(lambda found: f"{found[0]}<!-- -->", text)
    text = text.replace("$", "<span>$</span>")  # two of them would be a formula
    return unbroken(text)


def _entity(found: re.Match[str]) -> str:
    return f"&#{ord(found[0])};"


def _verdict(result: Result) -> Iterator[str]:
    found = verdict(result)
    yield f"**{escape(found.sentence)}.**"
    if found.behind:
        yield escape(found.behind)
    decided = (each for each in result.searches if each.decide_only)
    yield from ("\n".join(f"* {escape(set_text(n))}" for n in each.found) for each in decided)


def _tables(result: Result) -> Iterator[str]:
    if result.checks:
        yield _table(
            ("", "check", "verdict", "score", "interval"),
            [_check_row(each) for each in result.checks],
        )
        for check in result.checks:
            texts = [*acceptance_words(check), visible(check.reason) if check.reason else ""]
            lines = [f"- {escape(check.name)}: {escape(each)}" for each in texts if each]
            if lines:
                yield "\n".join(lines)
    elif result.scores:
        yield _table(
            ("set", "measure", "score", "interval", "how"),
            [_score_row(each) for each in result.scores],
        )


def _check_row(check: CheckResult) -> tuple[str, ...]:
    mark = MARKS[check.verdict if check.baseline != "known" else "accepted"]
    return (mark, check.name, verdict_words(check), check_point(check), check_interval(check))


def _score_row(score: Score) -> tuple[str, ...]:
    how = score.method if score.conclusive else how_it_ended(score.stopped)
    if how == "exact" and score.low != score.high:
        how = certainty(score).removeprefix("because ")
    shown, ends = (point(score), interval(score)) if score.samples else ("–", "")
    return (set_text(score.against), kind_words(score), shown, ends, how)


def _table(heads: Iterable[str], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [_line(heads), _line("---" for _ in heads)]
    lines += [_line(map(escape, row)) for row in rows[:ROWS]]
    if len(rows) > ROWS:
        lines.append(f"\n… and {len(rows) - ROWS:,} more")
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cautions(result: Result) -> Iterator[str]:
    """What speaks against believing it."""
    texts = [f"failed: {failure_text(kind, each)}" for kind, each in result.failures.items()]
    ending = cut_off(result)
    texts += [] if ending is None else [ending]
    texts += [
        *map(str, result.notes),
        *(f"inconclusive: {each}" for each in inconclusive(result.scores)),
    ]
    texts += [str(note) for score in result.scores if score.samples for note in score.notes]
    if texts:
        yield "\n".join(f"> ⚠️ {escape(each)}  " for each in dict.fromkeys(texts[:ROWS]))


def _worst(result: Result) -> list[Score]:
    """The scores that are surely above 0, the largest first."""
    words = wording(result)
    known = {
        (each.measure, headline(each, words)): each
        for each in result.scores
        if whole_of(each).low > 0
    }
    return sorted(known.values(), key=lambda each: -each.low)[:TELLING]


def _people(score: Score, words: Wording) -> Iterator[str]:
    """Whom a set hurts, folded away."""
    lines = [f"- {escape(each)}" for each in harms(score, most=3, words=words)]
    ratio = impact(score) if isinstance(score, GroupScore) else None
    lines += [] if ratio is None else [f"- {escape(ratio)}"]
    parts = ["\n".join(lines)] if lines else []
    if isinstance(score, CausalScore):
        parts += [_pair(each, score.output) for each in score.witnesses[:WITNESSES]]
        whose = pairs_origin(score)
        parts += [f"These pairs: {whose}."] if whose else []
    if parts:
        summary = f"<summary>{escape(headline(score, words))}</summary>"
        yield "\n\n".join([f"<details>{summary}", *parts, "</details>"])


def _pair(witness: Witness, output: str | None) -> str:
    """Two people side by side: where they differ first, then what they share."""
    first, second = witness.inputs
    changed = witness.differs_in
    names = [*changed, *(name for name in first if name not in changed)]
    rows = [
        "| " + " | ".join(_bold(each, name in changed) for each in (name, *shown)) + " |"
        for name in names[:PEOPLE]
        for shown in [told_apart([first[name], second[name]], LONGEST)]
    ]
    hidden = len(names) - PEOPLE
    rows += [f"| + {hidden} more | = | = |"] if hidden > 0 else []
    outputs = " | ".join(_bold(each, True) for each in told_apart(witness.outputs, LONGEST))
    head = ["| | one | the other |", "| --- | --- | --- |"]
    return "\n".join([*head, *rows, f"| {_bold(output or 'decision', True)} | {outputs} |"])


def _outcomes(outcomes: Outcomes, result: Result) -> str:
    """Rates beside known outcomes, folded away: by group, then how far they are apart."""
    words = wording(result)
    heads = ("group", *RATE_WORDS.values())
    rates = [
        (words.label(each.values), *(counted_rate(rate) for _, rate in each.rates()))
        for each in outcomes.groups
    ]
    gaps = [
        (gap_name(each), gap_difference(each), gap_ratio(each), gap_groups(each, words))
        for each in outcomes.gaps
    ]
    causal = beside_causal(outcomes, result, words)
    lines = [f"- undefined: {escape(each)}" for each in undefined(outcomes, words)]
    sure = f"{outcomes_certainty(outcomes)} {NO_VERDICT}"
    summary = f"<summary>Known outcomes by {escape(set_text(outcomes.against))}</summary>"
    parts = [
        f"<details>{summary}",
        escape(about_outcomes(outcomes, words)),
        _table(heads, rates),
        _table(("", "difference", "ratio", "lowest – highest"), gaps),
        *(["\n".join(lines)] if lines else []),
        *([] if causal is None else [escape(causal)]),
        f"{escape(sure)}\n\n</details>",
    ]
    return "\n\n".join(parts)


def _proxies(proxies: Sequence[Proxy], result: Result) -> str:
    """What may stand in for a set, folded away."""
    words = wording(result)
    rows = [proxy_row(each) for each in proxies]
    summary = escape(f"What may stand in for {set_text(proxies[0].against)}")
    parts = [
        f"<details><summary>{summary}</summary>",
        _table(PROXY_HEADS, rows),
        "\n".join(f"- {escape(each)}" for each in proxy_sentences(proxies, words)),
        f"{escape(proxies_certainty(proxies))}\n\n</details>",
    ]
    return "\n\n".join(parts)


def _bold(value: object, changed: bool) -> str:
    shown = escape(cut_name(visible(value), LONGEST))
    return f"**{shown}**" if changed else shown


def _certainty(result: Result) -> str:
    if result.checks:
        return checks_guarantee(result)
    texts = [guarantee(each) for each in result.searches]
    return " ".join(filter(None, [*texts, how_sure_together(result)]))
