"""Are sentences and pages, word for word, those that somebody read and found true?

`python -m tests.show.test_golden` writes the files anew, so that their changes can be read.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from textwrap import wrap
from typing import Any

import pytest

import themis
from tests import report_results as samples
from tests.report_results import group, notes, plain, result
from tests.show.test_notebook import SEARCHED
from tests.show.test_report_findings import cards
from themis.results.model import CausalScore, CheckResult, Result, Score
from themis.results.notes import Ending, Note
from themis.results.parts import Group, Harm, Naming, Noise, Placebo, Region, Share
from themis.results.withheld import withheld
from themis.settings import Stopping
from themis.show.reports.markdown import render_markdown
from themis.show.terminal.results import render_checks, render_quiet, render_result, render_search

GOLDEN = Path(__file__).parent / "golden"


# Scores of every kind, one variant after the other ------------------------------------------
def causal(**changes: Any) -> CausalScore:
    """One without pairs, which would take much room."""
    return samples.causal(**{"witnesses": (), **changes})


NONE: dict[str, Any] = {"score": 0.0, "low": 0.0, "high": 0.02, "direction": ()}
WHOLE = {"method": "exact", "high": 0.0}
CUT = {"stopped": Ending.BUDGET}
PRICE = {"output": "price", "distance": "relational", "scale": (0.0, 1000.0)}
MEAN: dict[str, Any] = {"output": "limit", "statistic": "mean", "scale": (0.0, 5000.0)}
MEAN |= {"impact_ratio": None}
FAIR = causal(against=("sex",), **NONE)
PAIR = ("race", "sex")
ROWS = {"population": "rows"}
SAME = Share(0.12, 0.1, 0.14)
WITHIN = {**ROWS, "counterfactuals": "within"}
OFFSET = (Harm({"race": "green"}, {"race": "purple"}, 0.06, 0.05, 106),)
COUNTED = (Harm({"race": "green"}, {"race": "purple"}, 0.3, 0.1, 10, 3, 1),)
QUOTED = (Harm({"mood": "sad 'x'"}, {"mood": "glad"}, 0.3, 0.1, 100),)
WHERE = Region(("age ≤ 47",), 0.6, 0.5, 0.7, 0.2, 3.0, 140, loses={"mood": "sad 'x'"})
EXACT = {**ROWS, "method": "exact", "score": 0.55, "low": 0.55, "high": 0.55}


def of(race: str, rate: float, people: int) -> Group:
    return Group({"race": race}, rate, rate, rate, people, few=people < 5, people=people)


ONE = (of("green", 1.0, 1), of("purple", 0.5, 90), of("blue", 0.45, 90))
INSIDE = (of("green", 0.48, 1), of("purple", 0.5, 90), of("blue", 0.45, 90))
SILENT = tuple(Group({"race": each}, 0.0, 0.0, 0.1, 69) for each in ("green", "purple"))
ALWAYS = tuple(Group({"race": each}, 1.0, 0.9, 1.0, 69) for each in ("green", "purple"))
CALM = {"score": 0.0, "low": 0.0, "high": 0.096}

SCORES: dict[str, list[Score]] = {
    "found": [samples.causal()],
    "found for a pair": [causal(against=PAIR)],
    "three sets": [causal(), causal(against=("sex", "age")), causal(against=("job",))],
    "found and fair": [causal(), FAIR],
    "found and exactly fair": [causal(), replace(FAIR, **WHOLE)],
    "fair": [FAIR],
    "fair and hardly seen": [FAIR, causal(score=0.008, low=0.0, high=0.058)],
    "fair by both measures": [FAIR, group(against=("sex",), score=0.01, low=0.0, high=0.03)],
    "exactly fair": [replace(FAIR, **WHOLE)],
    "lower bound": [causal(lower_bound=True, high=1.0), group()],
    "lower bound that is tiny": [group(lower_bound=True, low=0.0002)],
    "exact": [causal(method="exact", low=0.113, high=0.113)],
    "paper": [causal(stopping=Stopping.PAPER), group(stopping=Stopping.PAPER, low=0.0)],
    "cut off": [replace(FAIR, **CUT), causal(against=("job",), samples=0, **CUT)],
    "one set cut off": [replace(FAIR, **CUT)],
    "not measured": [causal(samples=0), group(samples=0)],
    "noise": [causal(low=0.0, placebo=Placebo(0.02, 0.0, 0.031), stopped=Ending.NOISE)],
    "rates": [group()],
    "rates of a pair and its part": [group(), group(against=PAIR, score=0.4, low=0.25, high=0.5)],
    "rates of a pair that shows nothing more": [group(), group(against=PAIR)],
    "rates found and undecided": [group(), group(against=("sex",), low=0.0)],
    "rates of a single group": [group(groups=group().groups[:1], score=0.0, low=0.0, high=0.0)],
    "either measure": [causal(against=("sex",), **NONE), group()],
    "similar rates that hide": [causal(direction=OFFSET), group(score=0.01, low=0.0, high=0.03)],
    "no output favourable": [causal(**NONE), group(groups=SILENT, **CALM)],
    "nothing could be compared": [causal(**{**NONE, "high": 1.0, "unknown": 702})],
    "most failed": [causal(**{**NONE, "high": 0.9, "unknown": 600}), group(low=0.0, unknown=300)],
    "a few failed": [causal(**{**NONE, "high": 0.05, "unknown": 3})],
    "every output favourable": [group(groups=ALWAYS, **CALM)],
    "every output favourable in rows": [
        group(groups=ALWAYS, **{**CALM, **WHOLE, "population": "rows"})
    ],
    "two outputs": [causal(output="loan"), causal(output="rate", against=("sex",))],
    "means": [group(**MEAN)],
    "distances": [causal(placebo=Placebo(0.02, 0.0, 0.031), **PRICE)],
    "tolerance": [causal(output="price", distance="threshold 50", **{**NONE, "high": 0.05})],
    "tolerance, not all tried": [
        causal(output="price", distance="threshold 50", lower_bound=True, **{**NONE, "high": 0.05})
    ],
    "excess": [samples.excess()],
    "excess that may be chance": [samples.excess(low=0.0, gap=None)],
    "no excess": [samples.excess(score=0.0, low=0.0, within=SAME, across=SAME)],
    "rows": [causal(**ROWS)],
    "rows beside inputs": [causal(), causal(**{**ROWS, "score": 0.3, "low": 0.25, "high": 0.35})],
    "calm rows beside inputs": [causal(), causal(**{**NONE, **ROWS})],
    "within rows": [causal(), causal(**ROWS), causal(**WITHIN)],
    "within rows by order": [causal(distance="ranking", **WITHIN)],
    "within rows by order, tolerant": [causal(distance="ranking 0.2", **WITHIN)],
    "within rows, tolerant": [causal(distance="threshold 5", **WITHIN)],
    "one person's rate is the highest": [group(groups=ONE, **EXACT)],
    "one person's rate of two": [group(groups=ONE[:2], **EXACT)],
    "one person's rate is in the midst": [group(groups=INSIDE, **EXACT)],
    "groups that are not listed": [
        group(groups=ONE, notes=(Note.of("groups-not-listed", groups=900, listed=3),), **EXACT)
    ],
    "one person's mean is the highest": [group(groups=ONE, **{**EXACT, **MEAN})],
    "one person's mean is in the midst": [
        group(groups=INSIDE, **{**EXACT, **MEAN, "score": 0.05, "low": 0.05, "high": 0.05})
    ],
    "who loses": [causal(direction=COUNTED)],
    "who loses by degrees": [causal(output="limit", distance="threshold 100")],
    "quoted values": [causal(against=("mood",), direction=QUOTED, regions=(WHERE,))],
    "a part and its pair": [causal(), causal(against=PAIR, score=0.3, low=0.28, high=0.32)],
    "a part and a calm pair": [causal(), causal(against=PAIR, **{**NONE, "high": 0.05})],
}


# What else may be said -----------------------------------------------------------------------
NOTES: dict[str, dict[str, Any]] = {
    "exact-score": {"score": 0.02006},
    "estimated-score": {"score": 0.2},
    "score-between": {"low": 0.1, "high": 0.2},
    "noise-in-score": {"high": 0.031},
    "noise-in-finding": {"explains": 0.01, "floor": 0.02},
    "accepted-up-to": {"against": ["race"], "max_score": 0.05},
    "above-baseline": {"high": 0.31},
    "not-above-baseline": {"low": 0.166, "high": 0.263},
    "noise-in-rates": {},
    "noise-in-exact-rates": {},
    "noise-in-group-search": {},
}
KINDS: dict[str, dict[str, Any]] = {
    "causal": {"measure": "causal"},
    "group": {"measure": "group"},
    "means": {"measure": "group", "statistic": "mean", "scale": (0.0, 5000.0)},
}
CHECK = CheckResult(
    name="one", measure="causal", against=("race",), search=False, max_score=0.05,
    confidence=0.99, verdict="violated", score=0.113, low=0.063, high=0.163,
)  # fmt: skip
SEARCHES: dict[str, dict[str, Any]] = {
    "sampled": {},
    "exact": {"method": "exact"},
    "exact at 0": {"method": "exact", "threshold": 0.0},
    "sampled at 0": {"threshold": 0.0},
    "sampled at 1": {"threshold": 1.0},
    "by the paper": {"stopping": Stopping.PAPER},
    "by groups": {"measure": "group"},
    "groups of few": {"measure": "group", "undecided": (), "threshold": 0.3,
                      "minimal_sets": (group(groups=ONE, **EXACT),)},
    "groups of few, others differ as much": {"measure": "group", "undecided": (), "threshold": 0.04,
                                             "minimal_sets": (group(groups=ONE, **EXACT),)},
}  # fmt: skip
WRONG: dict[str, Any] = {
    "failures": {"crash": {"count": 3, "input": {"age": 30}, "message": "ValueError: a\nb"}},
    "noise": Noise(300, 7, 0.023, 0.01, 0.05, 0.99),
    "notes": notes("the subject gave the same output"),
    "data": {"dropped": 50},
}
NAMED = Naming(name="Loan screen", people="applicants", decision="approval",
               values={"race": {"green": "the green"}})  # fmt: skip
PROTECTED = {"inputs": {"race": {"values": [0, 1], "protected": True}, "age": [1, 2]}}


def results() -> Iterator[tuple[str, Result]]:
    """Each kind of result, with its name."""
    for name, scores in SCORES.items():
        yield name, result(*scores)
    for name, value in WRONG.items():
        yield f"what may invalidate it: {name}", result(causal(), **{name: value})
    yield "an ended budget", result(causal(stopped=Ending.BUDGET, notes=notes("it ended")))
    never = (Note.of("no-favourable-output", outputs=[1, 0], favourable=["1"]),)
    silent = group(groups=SILENT, **CALM)
    yield "no output favourable, and what to write", result(silent, notes=never)
    unfound = replace(SEARCHED, measure="group", found=(), minimal_sets=(), undecided=())
    yield (
        "a search of rates that tell nothing",
        result(command="search", searches=(unfound,), notes=never),
    )
    alike = [causal(against=(name,), notes=notes("rows were left out")) for name in PAIR]
    yield "the same note of two scores", result(*alike)
    yield "the words of a file", result(causal(), group(), FAIR, report=NAMED)
    age = causal(against=("age",), low=0.1)
    yield "one that is protected", result(age, causal(), causal(against=PAIR), schema=PROTECTED)
    for name, changes in SEARCHES.items():
        searched = replace(SEARCHED, **changes)
        yield f"a search: {name}", result(command="search", searches=(searched,))
    schema = themis.Schema(race=["green", "purple"], sex=["f", "m"], income=range(10))
    audit = themis.Audit(lambda row: row["income"] + 3 * (row["race"] == "green") >= 5, schema)
    yield "checks", samples.checked(result(causal()))
    yield "a search: a tie", audit.search_all(0.3, among=["race", "sex"])
    for kind, changes in KINDS.items():
        reasons = [(Note.of(code, **values),) for code, values in NOTES.items()]
        checks = tuple(replace(CHECK, reasons=each, **changes) for each in reasons)
        yield f"reasons of checks: {kind}", result(command="check", checks=checks)


def shown(made: Result) -> str:
    """What a terminal shows of it, in short and in full, and the cards of its page."""
    made = withheld(replace(made, timing={"seconds": 0.8}, subject={"kind": "command"}))
    render: Callable[..., str] = render_result
    if made.searches or made.checks:
        render = render_search if made.searches else render_checks
    pages = [render(made, file=io.StringIO(), width=100)]
    if not made.checks:
        pages = [*pages, render(made, file=io.StringIO(), width=100, everything=True)]
        pages += ["\n".join(wrap(f"card: {plain(each)}", 100)) for each in cards(made)]
    return "\n~~~\n".join(each.strip() for each in pages)


def kinds() -> str:
    return "\n\n".join(f"==== {name} ====\n{shown(made)}" for name, made in results()) + "\n"


def page(name: str) -> str:
    """The pages of a sample in full: of a terminal, and Markdown."""
    made = withheld(samples.SAMPLES[name]())
    made = replace(made, timing={"seconds": 0.8})
    terminal = render_result(made, file=io.StringIO(), width=80, everything=True)
    quiet = render_quiet(made, file=io.StringIO())
    return "\n~~~\n".join((quiet.strip(), terminal.strip(), render_markdown(made).strip())) + "\n"


PAGES = ("demo", "small search", "outputs", "everything", "audit", "apparent", "outcomes")
FILES: dict[str, Callable[[], str]] = {
    "kinds": kinds,
    **{each: lambda n=each: page(n) for each in PAGES},
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_shown_is_what_was_read_by_somebody(name: str) -> None:
    expected = (GOLDEN / f"{name}.txt").read_text("utf-8")
    assert FILES[name]() == expected, "if that is better: python -m tests.show.test_golden"


if __name__ == "__main__":
    for name, made in FILES.items():
        (GOLDEN / f"{name}.txt").write_text(made(), "utf-8")
