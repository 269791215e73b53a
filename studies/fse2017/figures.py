"""The tables and pictures of the figures, the paper's numbers beside ours."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from . import pictures
from .blocks import Block, Heading, Paragraph, Picture, Table
from .claims import arithmetic, factors_of_the_paper, geometric, label
from .data import SOURCES
from .measuring import CONFIDENCE, ERROR, NOTEWORTHY, SEARCHED, THRESHOLD
from .paper_numbers import BELOW, FIGURE_1, FIGURE_2, FIGURE_3, MEANS, SWEEP

Numbers = dict[str, Any]
LEAST_ROWS = 11  # the paper's rule never stops before


def figure_1(measured: Numbers) -> Iterator[Block]:
    yield Heading("Figure 1: race and gender")
    yield Paragraph(
        f"Scores in per cent with {whole(CONFIDENCE)} intervals, certified to ± "
        f"{percent(measured['run']['score_error'])}. *Rule* is the paper's stopping rule at ± "
        f"{percent(ERROR)} on our instance."
    )
    for against in ("race", "gender"):
        rows = [row for row in measured["figure_1"] if row["against"] == against]
        yield Table(
            [f"{against}", "group: paper", "group: ours", "interval", "executions", "rule",
             "causal: paper", "causal: ours", "interval", "executions", "rule"],
            [_figure_1_row(row) for row in rows],
        )  # fmt: skip
        lines = [
            pictures.ScoreLine(
                label(row["instance"]),
                *(row["causal"][key] for key in ("score", "low", "high")),
                FIGURE_1[row["instance"]][against][1] / 100,
            )
            for row in rows
        ]
        yield Picture(pictures.scores(f"Causal scores against {against}", lines))


def _figure_1_row(row: Numbers) -> list[str]:
    theirs = dict(zip(("group", "causal"), FIGURE_1[row["instance"]][row["against"]], strict=True))
    cells = [label(row["instance"])]
    for measure in ("group", "causal"):
        ours = row[measure]
        cells += [
            paper_percent(theirs[measure]),
            percent(ours["score"]),
            interval(ours),
            f"{ours['executions']:,}",
            percent(row["paper_rule"][measure]["score"]),
        ]
    return cells


def figure_2(measured: Numbers) -> Iterator[Block]:
    yield Heading("Figure 2: what contributes to sets above 75 %")
    yield Paragraph(
        f"{len(measured['figure_2'])} of {len(FIGURE_1)} instances. First all minimal sets with a "
        f"causal score above {whole(THRESHOLD)} ({whole(CONFIDENCE)} confidence, error {ERROR:g}, "
        f"certified): of at most two characteristics{_wider(measured)}. Then the sensitive "
        f"characteristics within them, one by one, in pairs and together, as far as they score at "
        f"least {whole(NOTEWORTHY)} (± 1). The last column counts those of all 2ⁿ − 1 sets that "
        f"contain a found set, and so need no test."
    )
    yield Table(
        ["instance", "minimal sets above 75 %", "sensitive parts, causal score in %", "executions",
         "undecided or open", "sets settled"],
        [
            [
                label(row["instance"]),
                "; ".join(", ".join(each) for each in row["found"]) or "none",
                "; ".join(f"{', '.join(p['against'])} {percent(p['score'])} ({interval(p)})"
                          for p in row["parts"]) or "none",
                f"{row['executions']:,}",
                str(row["undecided"] + row["open"]),
                f"{row['implied']:,} of {row['all_sets']:,}",
            ]
            for row in measured["figure_2"]
        ],
        words=(0, 1, 2),
    )  # fmt: skip
    yield Paragraph("The sets that the paper lists, measured on our instances (causal, per cent):")
    theirs = {(name, frozenset(against)): value for name, against, value in FIGURE_2}
    yield Table(
        ["instance", "set", "paper", "ours", "interval", "executions"],
        [
            [
                label(row["instance"]),
                ", ".join(score["against"]),
                f"{theirs[row['instance'], frozenset(score['against'])]:.1f}",
                percent(score["score"]),
                interval(score),
                f"{score['executions']:,}",
            ]
            for row in measured["figure_2"]
            for score in row["listed"]
        ],
        words=(0, 1),
    )


def _wider(measured: Numbers) -> str:
    """What Figure 2 searches beside pairs."""
    return "" if measured["run"]["max_size"] == 2 else ", and those searched for Figure 3"


def figure_3(measured: Numbers) -> Iterator[Block]:
    most = measured["run"]["max_size"]
    size = "all subsets" if most is None else f"all subsets of at most {most}"
    yield Heading("Figure 3: what pruning saves")
    instances = len({row["instance"] for row in measured["figure_3"]})
    yield Paragraph(
        f"{instances} of the {len(FIGURE_3)} instances of the paper's figure. "
        f"Executions to find all minimal sets above {whole(THRESHOLD)} at {whole(CONFIDENCE)} and "
        f"error {ERROR:g}: the paper's Algorithm 3 without pruning, with it, and the certified "
        f"search. The sets are {size} of {', '.join(SEARCHED['census'])} (census) and of "
        f"{', '.join(SEARCHED['credit'])} (credit). More could not be executed as printed, since "
        f"the procedure tries every assignment of a set. The certified search guarantees its whole "
        f"answer, the other two guarantee nothing; it leaves undecided what it would have to "
        f"compare more than 1,000 groups for. A search that left sets undecided did less than it "
        f"was asked: its factor is in brackets and kept out of the means of *pruned ÷ ours*."
    )
    for measure in ("group", "causal"):
        rows = [row for row in measured["figure_3"] if row["measure"] == measure]
        yield Table(
            [measure, "paper: unpruned", "paper: pruned", "paper: factor", "unpruned", "pruned",
             "factor", "ours", "pruned ÷ ours", "found: paper's way", "found: ours"],
            [*(_figure_3_row(row) for row in rows), *_means(rows, measure)],
        )  # fmt: skip
    yield from _all_subsets(measured)


def _figure_3_row(row: Numbers) -> list[str]:
    without, pruned = FIGURE_3[row["instance"]][row["measure"]]
    counts = {way: row[way]["executions"] for way in ("unpruned", "pruned", "ours")}
    shown = {
        way: f"{'> ' if row[way]['stopped'] != 'done' else ''}{count:,}"
        for way, count in counts.items()
    }
    unsure = undecided(row["ours"])
    ratio = _times(counts["pruned"] / counts["ours"])
    return [
        label(row["instance"]),
        f"{without:,}",
        f"{pruned:,}",
        _times(without / pruned),
        shown["unpruned"],
        shown["pruned"],
        _times(counts["unpruned"] / counts["pruned"]),
        shown["ours"],
        f"({ratio})" if unsure else ratio,
        str(len(row["pruned"]["found"])),
        _found(row["ours"]),
    ]


def _means(rows: list[Numbers], measure: str) -> Iterator[list[str]]:
    theirs = factors_of_the_paper(measure)
    saved = [row["unpruned"]["executions"] / row["pruned"]["executions"] for row in rows]
    ours = [
        row["pruned"]["executions"] / row["ours"]["executions"]
        for row in rows
        if not undecided(row["ours"])
    ]
    of = f"{len(ours)} of {len(rows)} searches"
    for name, mean in (("arithmetic", arithmetic), ("geometric", geometric)):
        printed = MEANS[measure][name]
        yield [
            f"**{name} mean**", "", "",
            f"{_times(printed)} printed, {_times(mean(theirs))} recomputed",
            "", "", _times(mean(saved)), "",
            f"{_times(mean(ours)) if ours else '–'} ({of})", "", "",
        ]  # fmt: skip


def _found(search: Numbers) -> str:
    unsure = undecided(search)
    return f"{len(search['found'])}{f' (+ {unsure} undecided)' if unsure else ''}"


def undecided(search: Numbers) -> int:
    """How many sets a search left without an answer, or never reached."""
    return int(search["undecided"] + search["open"])


def _times(factor: float) -> str:
    return f"{factor:,.0f} ×" if factor >= 100 else f"{factor:.3g} ×"


def _all_subsets(measured: Numbers) -> Iterator[Block]:
    yield Paragraph(
        "**All subsets, computed.** Nobody can execute Algorithm 3 without pruning over all 2ⁿ − 1 "
        f"sets. Its cost has a floor, though: the rule looks at {LEAST_ROWS} people at the least, "
        f"in the causal procedure at least two executions each; in the group procedure "
        f"{LEAST_ROWS} executions for each assignment, and the assignments of all sets together "
        "are Π(1 + values) − 1. The estimate multiplies the number of sets by the mean cost of a "
        "set in the unpruned runs above, if that is more. It is rough: larger sets have more "
        "assignments, but more people flip early. The counts that the paper prints as unpruned lie "
        "below these floors wherever marked, so they can't be counts of all subsets, executed as "
        "printed."
    )
    yield Table(
        ["data", "measure", "sets", "least possible", "estimate from the cost per set",
         "paper: largest unpruned count"],
        list(_bounds(measured)),
        words=(0, 1),
    )  # fmt: skip


def _bounds(measured: Numbers) -> Iterator[list[str]]:
    for data, source in SOURCES.items():
        sets = 2 ** len(source.sizes) - 1
        assignments = math.prod(1 + size for size in source.sizes) - 1
        for measure in ("group", "causal"):
            rows = [
                row["unpruned"]
                for row in measured["figure_3"]
                if row["measure"] == measure and f"-{data}" in row["instance"]
            ]
            if not rows:
                continue
            least = LEAST_ROWS * assignments if measure == "group" else 2 * LEAST_ROWS * sets
            cost = sum(r["executions"] for r in rows) / sum(r["sets"] for r in rows)
            theirs = max(
                counts[measure][0] for name, counts in FIGURE_3.items() if f"-{data}" in name
            )
            estimate = max(least, cost * sets)
            mark = " (below the floor)" if theirs < least else ""
            yield [
                data,
                measure,
                f"{sets:,}",
                f"{least:.3g}",
                f"{estimate:.3g}",
                f"{theirs:,}{mark}",
            ]


def sweep(measured: Numbers) -> Iterator[Block]:
    names = list(dict.fromkeys(row["instance"] for row in measured["sweep"]))
    yield Heading("Section 5.4: fewer tests as θ falls")
    yield Paragraph(
        f"Causal searches on the sets of Figure 3, {len(names)} of {len(SWEEP)} instances. In the "
        f"paper: {_sweep_of_the_paper()}. The "
        "paper's procedure tests fewer sets as more of them are above θ. The certified search pays "
        "for proof: close to a small θ, telling a score from its limit takes more people."
    )
    series: dict[str, list[tuple[float, float]]] = {}
    rows = []
    for row in measured["sweep"]:
        for way, title in (("pruned", "paper's procedure"), ("ours", "certified")):
            key = f"{label(row['instance'])}, {title}"
            series.setdefault(key, []).append((row["threshold"], row[way]["executions"]))
        rows.append(
            [
                label(row["instance"]),
                f"{row['threshold']:g}",
                f"{row['pruned']['executions']:,}",
                f"{row['pruned']['sets']} of {row['pruned']['sets_total']}",
                f"{row['ours']['executions']:,}",
                f"{row['ours']['sets']} of {row['ours']['sets_total']}",
                _found(row["ours"]),
            ]
        )
    yield Table(
        ["instance", "θ", "paper's procedure", "sets tested", "certified", "sets tested", "found"],
        rows,
    )
    if names:
        yield Picture(pictures.lines("Executions of a search by θ", series, "θ", "executions"))


def _sweep_of_the_paper() -> str:
    return "; ".join(
        f"{label(name)} "
        + ", ".join(f"{tests:,} tests at θ = {theta:g}" for theta, tests in points)
        for name, points in SWEEP.items()
    )


def whole(share: float) -> str:
    return f"{100 * share:.0f} %"


def percent(share: float) -> str:
    return f"{100 * share:.2f}"


def paper_percent(value: float) -> str:
    return "< 0.01" if value == BELOW else f"{value:.2f}"


def interval(score: Numbers) -> str:
    return f"{percent(score['low'])} – {percent(score['high'])}"
