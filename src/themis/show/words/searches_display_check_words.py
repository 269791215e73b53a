"""How are verdicts said in plain words? The headline, the interval and what is certain."""

from __future__ import annotations

from collections.abc import Iterator

from themis.results.model import CheckResult, Result, Score
from themis.show.words.searches import amount, set_text
from themis.show.words.values import count, percent, visible


def checks_headline(checks: tuple[CheckResult, ...]) -> str:
    """`1 of 3 checks is violated, 1 lacks evidence`."""
    verdicts = [verdict_words(each) for each in checks]
    if len(checks) == 1:
        return _ONE[verdicts[0]]
    total = count(len(checks), "check")
    parts: list[str] = []
    for verdict, (one, many) in _SEVERAL.items():
        number = verdicts.count(verdict)
        if number and not (verdict == "holds" and parts):
            of = "" if parts else f" of {total}"
            parts.append(f"{number}{of} {one if number == 1 else many}")
    return f"all {total} hold" if set(verdicts) == {"holds"} else ", ".join(parts)


def verdict_words(check: CheckResult) -> str:
    """The verdict; beside a baseline that knows it already, that is said as well."""
    return f"{check.verdict}, not new" if check.baseline == "known" else check.verdict


def acceptance_words(check: CheckResult) -> Iterator[str]:
    """What was let pass by a check, until when, and why; one sentence for each set."""
    for each in check.accepted:
        limit = "" if each.max_score is None else f" up to {amount(each.max_score, check.measure)}"
        yield (
            f"{set_text(each.against)} is accepted{limit} until {each.until}: "
            f"{visible(each.reason)}"
        )


_ONE = {
    "violated": "the check is violated",
    "not enough evidence": "the check lacks evidence",
    "violated, not new": "the check is violated, but not newly",
    "not enough evidence, not new": "the check lacks evidence, but nothing is newly above",
    "accepted": "what the check found is accepted",
    "holds": "the check holds",
}
_SEVERAL = {  # in the order of a headline, which leaves out those that hold
    "violated": ("is violated", "are violated"),
    "not enough evidence": ("lacks evidence", "lack evidence"),
    "violated, not new": ("is violated, but not newly", "are violated, but not newly"),
    "not enough evidence, not new": (
        "lacks evidence, but is not newly above",
        "lack evidence, but are not newly above",
    ),
    "accepted": ("is accepted", "are accepted"),
    "holds": ("holds", "hold"),
}


def check_interval(check: CheckResult) -> str:
    """The interval that a verdict rests on; empty where there is none."""
    if check.high is None:
        return ""
    if check.low is None:
        return f"at most {percent(check.high)}"
    if check.low == check.high:
        return "exact"
    return f"{percent(check.low)} – {percent(check.high)}"


def checks_guarantee(result: Result) -> str:
    """What is certain about the verdicts."""
    rules = [*(each.stopping for each in result.scores), *(s.stopping for s in result.searches)]
    if "paper" in rules:
        return "The paper's stopping rule was used: that the verdicts are right is not certified."
    open_checks = [each for each in result.checks if each.verdict == "not enough evidence"]
    if len(open_checks) == len(result.checks):
        return "No verdict is certain: no check is decided."
    but = ", but for those that lack evidence," if open_checks else ""
    text = f"Every verdict{but} is exact: all inputs were run."
    if result.searches or any(map(_is_partial, result.scores)):
        confidence = 100 * result.checks[0].confidence
        text = f"Each verdict by itself is right with {confidence:.10g} % confidence."
    tolerant = [each for each in result.checks if each.search and each.verdict == "holds"]
    for each in tolerant:
        if each.high is not None and each.high > each.max_score:
            high = amount(each.high, each.measure)
            return f"{text} That a search holds means: no set is above {high}."
    return text


def _is_partial(score: Score) -> bool:
    """Whether a score was measured, but not on all inputs."""
    return score.samples > 0 and (score.method == "sampled" or not score.conclusive)
