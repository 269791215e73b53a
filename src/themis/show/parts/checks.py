"""The verdicts of checks, and what was let pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from themis.results.model import CheckResult, Result, Score
from themis.results.withheld import by_size, whole_of
from themis.show.blocks import (
    Axis,
    Block,
    Cell,
    Chip,
    Content,
    Interval,
    Mark,
    Number,
    Part,
    Points,
    Statement,
    Table,
)
from themis.show.words.naming import amount
from themis.show.words.searches import (
    acceptance_words,
    check_interval,
    check_point,
    protection,
    scores_about,
    verdict_words,
)
from themis.show.words.values import count, set_text, some_of, visible
from themis.show.words.verdicts import check_state

SETS = 10  # found sets that are named


def checks_table(checks: Sequence[CheckResult], *, most: int | None = None) -> Table:
    """A row for each check: its verdict, and where the score is beside the limit."""
    rows: list[Sequence[Content]] = [
        (
            Cell(_named(each), each.reason or ""),
            Chip(check_state(verdict_words(each)), verdict_words(each)),
            check_point(each),
            check_interval(each),
        )
        for each in checks[:most]
    ]
    heads = ("Check", "Verdict", Number("Score"), Number("Interval"))
    hidden = len(checks) - len(rows)
    foot = count(hidden, "more is not shown", "more are not shown") if hidden else ""
    return Table("The checks", heads, rows, foot)


def _named(check: CheckResult) -> str:
    """The name of a check, which says its limit; of means, also in the units of the output."""
    if check.measure == "causal" or check.statistic == "rate":
        return visible(check.name)
    return f"{visible(check.name)} (the limit is {amount(check.max_score, check)})"


def accepted(checks: Sequence[CheckResult]) -> Iterator[Block]:
    """What was let pass, and why: never out of sight."""
    for each in checks:
        if each.accepted:
            yield Part(f"{visible(each.name)}: accepted", [Points([*acceptance_words(each)])])


def check_details(check: CheckResult, *, everything: bool = False) -> Iterator[Block]:
    """The interval beside the limit, and the sets that were found above it."""
    if check.low is not None and check.high is not None:
        axis = Axis.reaching(max(check.high, check.max_score))
        mark = Mark(check.max_score, f"limit {amount(check.max_score, check)}")
        kind = check_state(verdict_words(check))
        drawn = Interval(check.low, check.high, check.score, check_interval(check), kind,
                         axis=axis, marks=(mark,))  # fmt: skip
        cells = (check_point(check), drawn, check_interval(check))
        yield Table("Beside the limit", ("", axis, ""), [cells])
    if check.sets:
        most, sets = len(check.sets) if everything else SETS, [*map(set_text, check.sets)]
        names = some_of(sets, most, between="; ", more="; + {} more")
        yield Statement(f"{count(len(sets), 'minimal set')} found: {names}")


def telling_score(check: CheckResult, result: Result) -> Score | None:
    """The score above the limit that says most: of a protected set if there is one."""
    scores, exact = scores_about(result, check), scores_about(whole_of(result), check)
    passed = [each.against for each in check.accepted]
    sets = [each for each in check.sets if each not in passed]
    sets = sets if check.against is None else [check.against]
    above = [scores[e] for e in sets if e in scores and exact[e].low > check.max_score]
    return min(above, key=lambda e: (protection(result, e.against), by_size(e)), default=None)
