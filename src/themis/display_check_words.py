"""How are verdicts said in plain words? The headline, the interval and what is certain."""

from __future__ import annotations

from themis.display_search_words import amount
from themis.display_words import count, percent
from themis.results import CheckResult, Result


def checks_headline(checks: tuple[CheckResult, ...]) -> str:
    """`1 of 3 checks is violated, 1 lacks evidence`."""
    verdicts = [each.verdict for each in checks]
    violated, open_ = verdicts.count("violated"), verdicts.count("not enough evidence")
    total = count(len(checks), "check")
    if len(checks) == 1:
        return {"violated": "the check is violated", "holds": "the check holds"}.get(
            verdicts[0], "the check lacks evidence"
        )
    parts = []
    if violated:
        parts.append(f"{violated} of {total} {'is' if violated == 1 else 'are'} violated")
    if open_:
        of = "" if violated else f" of {total}"
        parts.append(f"{open_}{of} {'lacks' if open_ == 1 else 'lack'} evidence")
    return ", ".join(parts) or f"all {total} hold"


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
    text = "Every verdict is exact: all inputs were run."
    if any(each.method == "sampled" for each in result.scores) or result.searches:
        confidence = 100 * result.checks[0].confidence
        text = f"Each verdict by itself is right with {confidence:.10g} % confidence."
    tolerant = [each for each in result.checks if each.search and each.verdict == "holds"]
    for each in tolerant:
        if each.high is not None and each.high > each.max_score:
            high = amount(each.high, each.measure)
            return f"{text} That a search holds means: no set is above {high}."
    return text
