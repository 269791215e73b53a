"""The drawings of the documentation, as pages: each shows what a real run found."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import themis
from themis.cli.demo import decide_loan, demo_audit, loan_schema
from themis.results.verdicts import Check

STYLE = """
:root { --back: #fff; --text: #1d2227; --dim: #5f6b76; --line: #d8dde2; --found: #b4460a;
  --soft: #fbe9df; --calm: #2c6e9b; --open: #8a6d00; color-scheme: light }
@media (prefers-color-scheme: dark) { :root { --back: #1e2129; --text: #e6e9ec; --dim: #a3adb8;
  --line: #3b424d; --found: #ff9a5c; --soft: #46301f; --calm: #7fbbe6; --open: #e2c14d;
  color-scheme: dark } }
* { box-sizing: border-box }
body { margin: 0; padding: 20px 24px; width: 860px; background: var(--back); color: var(--text);
  font: 16px/1.45 system-ui, "Liberation Sans", sans-serif }
table { border-collapse: collapse; width: 100% }
th { font-weight: 500; color: var(--dim); text-align: left; font-size: 14px }
th, td { padding: 7px 10px; border-bottom: 1px solid var(--line) }
.found { background: var(--soft); color: var(--found); font-weight: 600 }
.dim { color: var(--dim) } .words { color: var(--found); font-weight: 600 }
p.words { font-size: 15px }
.bar { display: grid; grid-template-columns: 190px 1fr 80px; gap: 12px; align-items: center }
.bar i { display: block; height: 20px; background: var(--calm); border-radius: 3px }
h2 { font-size: 17px; font-weight: 600; margin: 14px 0 8px } h2:first-child { margin-top: 0 }
p { margin: 10px 0 0 } pre { margin: 0; font: 14px/1.4 "DejaVu Sans Mono", monospace }
svg { display: block; width: 100% } svg text { font-size: 14px; fill: var(--text) }
.tree { display: grid; grid-template-columns: 1fr 330px; gap: 0 18px; align-items: stretch }
.tree code { font: 600 15px "DejaVu Sans Mono", monospace; color: var(--found) }
.tree > * { padding: 8px 0; border-bottom: 1px solid var(--line) }
"""


def page(body: str) -> str:
    """A page that is light or dark as the browser wants it."""
    return f"<!doctype html><meta charset=utf-8><style>{STYLE}</style>{body}"


def flips() -> str:
    """Applicants, each decided upon as a woman and as a man."""
    columns = ("race", "age", "income", "savings", "employment", "amount")
    rng, schema, rows = np.random.default_rng(5), loan_schema(), []
    for _ in range(7):
        person = {each.name: each.decode(rng.integers(each.size, size=1))[0] for each in schema}
        both = [decide_loan({**person, "sex": sex}) for sex in ("female", "male")]
        look = " class=found" if both[0] != both[1] else ""
        shown = "".join(f"<td>{person[name]}" for name in columns)
        word = "changes" if look else "the same"
        rows.append(f"<tr>{shown}<td{look}>{both[0]}<td{look}>{both[1]}<td{look}>{word}")
    head = "".join(f"<th>{each}" for each in (*columns, "as a woman", "as a man", "decision"))
    body = f"<table><tr>{head}{''.join(rows)}</table>"
    changed = sum("changes" in row for row in rows)
    return page(
        f"{body}<p class=dim>The causal score is the share of rows in which the decision changes. "
        f"Here it is {changed} of {len(rows)}; a run tries thousands of test applicants."
    )


def equal_rates() -> str:
    """Groups with the same rate, many of whose members would get a different decision."""
    audit = demo_audit(error=0.01, seed=42)
    group, causal = audit.group("sex"), audit.causal("sex")
    bars = "".join(
        f"<div class=bar><span>{each.values['sex']}</span><span>"
        f"<i style='width:{100 * each.rate:.1f}%'></i></span><b>{100 * each.rate:.1f} %</b></div>"
        for each in group.groups
    )
    change, words = causal.direction[0], ("{0} → {1}: lose it", "{0} → {1}: gain it")
    sexes = change.change_from["sex"], change.change_to["sex"]
    lose = "".join(
        f"<div class=bar><span>{each.format(*sexes)}</span><span>"
        f"<i style='width:{500 * share:.1f}%;background:var(--found)'></i></span>"
        f"<b>{100 * share:.1f} %</b></div>"
        for each, share in zip(words, (change.lost, change.gained), strict=True)
    )
    return page(
        f"<h2>Approval rates are nearly equal</h2>{bars}"
        "<h2>Yet decisions change when only the sex is changed (bars five times as wide)</h2>"
        f"{lose}"
        f"<p class=words>For {100 * causal.score:.1f} % of test applicants the decision "
        f"changes (99 % confidence interval: {outward(causal.low, causal.high)})."
    )


def outward(low: float, high: float) -> str:
    """An interval, its ends rounded as reports do."""
    ends = math.floor(1_000 * low) / 10, math.ceil(1_000 * high) / 10
    return "–".join(f"{each:g}" for each in ends) + " %"


def limits() -> str:
    """One limit, and intervals below, above and around it."""
    audits = (
        ("passes", "race", lambda p: p["points"] > 96 + (p["race"] == "green"), 0.02),
        ("violated", "race", lambda p: p["points"] > 60 + 12 * (p["race"] == "green"), 0.02),
        ("undecided", "race", lambda p: p["points"] > 60 + 5 * (p["race"] == "green"), 0.03),
    )
    schema, lines = themis.Schema(race=["green", "purple"], points=range(100), id=range(10**6)), ""
    for place, (word, name, rule, error) in enumerate(audits):
        score = themis.Audit(rule, schema, error=error, seed=1).causal(name)
        check = Check(against=(name,), max_score=LIMIT, name=word)
        assert said(score, check) == word, (word, score.low, score.high)
        lines += interval(place, word, score)
    x = across(LIMIT)
    return page(
        f"<svg viewBox='0 0 812 210'>{lines}<line x1={x} x2={x} y1=22 y2=180 stroke='currentColor' "
        f"stroke-width=2 /><text x={x} y=14 text-anchor=middle>limit {100 * LIMIT:.0f} %</text>"
        "<text x=150 y=204 style='fill:var(--dim)'>0 %</text><text x=700 y=204 text-anchor=end "
        "style='fill:var(--dim)'>20 %</text></svg><p class=dim>A check passes or is violated only "
        "if the whole interval says so. Where it does not, ask for a smaller error.</p>"
    )


LIMIT = 0.05


def across(share: float) -> float:
    """Where a share is on the line of `limits`."""
    return 150 + 550 * min(share / 0.2, 1.0)


def said(score: Any, check: Check) -> str:
    """What a check says of a score."""
    assert check.max_score is not None
    if score.high <= check.max_score:
        return "passes"
    return "violated" if score.low > check.max_score else "undecided"


def interval(place: int, word: str, score: Any) -> str:
    """A line of `limits`."""
    colour = {"passes": "--calm", "violated": "--found", "undecided": "--open"}[word]
    y, low, high, at = 55 + 50 * place, across(score.low), across(score.high), across(score.score)
    return (
        f"<text x=0 y={y + 5} style='font-weight:600;fill:var({colour})'>{word}</text>"
        f"<line x1={low} x2={high} y1={y} y2={y} style='stroke:var({colour})' stroke-width=8 "
        f"stroke-linecap=round /><circle cx={at} cy={y} r=8 style='fill:var({colour})' />"
        f"<text x=716 y={y + 5}>{outward(score.low, score.high)}</text>"
    )


WHEN = (
    ("I have a program, but no file that describes its inputs", "themis init"),
    ("How much does one characteristic matter?", "themis score --against sex"),
    ("Which combinations of characteristics matter?", "themis search --threshold 0.1"),
    ("Measure everything, with a report to sign", "themis audit"),
    ("How does it treat the people in this table?", "themis apparent --data people.csv"),
    ("Fail the build above a limit", "themis check"),
    ("What has changed since last time?", "themis diff old.json new.json"),
    ("Do the saved pairs still get different decisions?", "themis replay result.json"),
    ("I would rather click", "themis ui"),
)


def commands() -> str:
    """Which command when."""
    cells = "".join(f"<span>{each}</span><code>{command}</code>" for each, command in WHEN)
    return page(f"<div class=tree>{cells}</div>")


def terminal() -> str:
    """The beginning of what the demo prints."""
    command = [sys.executable, "-m", "themis", "demo", "--seed", "42"]
    wide = os.environ | {"COLUMNS": "92"}  # room for the longest line
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=wide)
    text = done.stdout.split("\n\n", 1)[1].partition("\n\n99 %")[0]
    escaped = text.replace("&", "&amp;").replace("<", "&lt;")
    lines = (
        f"<span class=words>{line}</span>" if "■" in line else line for line in escaped.split("\n")
    )
    return page(f"<pre><span class=dim>$</span> themis demo\n\n{chr(10).join(lines)}</pre>")


DRAWINGS: dict[str, Callable[[], str]] = {
    "flips": flips,
    "equal-rates": equal_rates,
    "limits": limits,
    "commands": commands,
    "terminal": terminal,
}

# What the numbers on the picture of a report stand at: the first element with such a text.
NOTED = ("difference found", "Observed", "Interval", "1,817", "reaches", "but similar rates")

MARKS = """
(texts => texts.forEach((text, number) => {
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode());) {
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect(), head = node.parentElement.closest('th');
    if (!node.data.includes(text) || box.height < 1) continue;
    const mark = document.createElement('b');
    mark.textContent = number + 1;
    mark.style.cssText = `position:absolute;width:20px;height:20px;border-radius:10px;color:#fff;
      background:#0b62c4;font:600 13px/20px sans-serif;text-align:center`;
    mark.style.left = (head ? (box.left + box.right) / 2 - 10 : box.right + 6) + 'px';
    mark.style.top = (head ? box.top - 22 : box.top) + scrollY + 'px';
    document.body.append(mark);
    break;
  }
}))(%s)
"""


def marks(texts: Iterable[str] = NOTED) -> str:
    """The script that puts numbers beside these texts of a page."""
    return MARKS % json.dumps(list(texts))


def write(folder: Path) -> list[Path]:
    """All drawings, as files."""
    written = []
    for name, draw in DRAWINGS.items():
        written.append(folder / f"{name}.html")
        written[-1].write_text(draw(), encoding="utf-8")
    return written
