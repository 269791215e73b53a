"""What `themis demo` measures and says: a loan program that treats groups alike, and people not."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import IO, Any

from rich.console import RenderableType
from rich.text import Text

from themis.audit.audit import Audit
from themis.cli.options import Options
from themis.cli.printing import spell_program, write
from themis.cli.session import Session, score_exit_code
from themis.inputs.characteristics import Integers, Values
from themis.inputs.schema import Schema
from themis.results.model import Result
from themis.results.parts import Naming
from themis.show.terminal.parts import (
    DIM,
    Sentence,
    grid,
    make_console,
    render,
)
from themis.show.terminal.results import render_result

SETS = (("race",), ("sex",))
SETTINGS: dict[str, Any] = {"seed": 42, "error": 0.01}  # what the demo overrides

INTRODUCTION = (
    "A demo loan program with two hidden faults, run on made-up applicants: only their race "
    "changes, then only their sex."
)

NEXT_STEPS = (
    ("init", "write a themis.toml for your own program"),
    ("validate", "check it, and see what a score will cost"),
    ("score", "measure it"),
)
NAMING = Naming(
    name="Loan program of the demo",
    purpose="Decisions on consumer loans",
    people="applicants",
    decision="approval",
    favourable=("approved",),
)


def run_demo(options: Options) -> int:
    """Measure the loan program, between an introduction and what to do next."""

    def work(audit: Audit) -> Result:
        return audit.score(SETS, command="demo")

    if options.talks:
        write(render_introduction(sys.stdout))
    session = Session(options, demo_audit)
    code = session.run(work, render_result, score_exit_code)
    if options.talks and code == 0:
        write(render_next_steps(sys.stdout))
    return code


def loan_schema() -> Schema:
    """The applicants of the demo: more than 10¹⁴ of them."""
    return Schema(
        race=Values(["green", "purple"], protected=True),
        sex=Values(["female", "male"], protected=True),
        age=Integers(18, 77, bins=[30, 50]),
        income=Integers(10_000, 120_000, step=100),
        savings=Integers(0, 50_000, step=100),
        employment=Values(["none", "temporary", "permanent"], weights=[0.1, 0.3, 0.6]),
        years_employed=Integers(0, 20),
        other_debts=Integers(0, 20_000, step=500),
        amount=Integers(1_000, 40_000, step=100),
    )


def decide_loan(applicant: Mapping[str, Any]) -> str:
    """The decision on one applicant: "approved" or "refused"."""
    points = applicant["income"] / 1_000 + applicant["savings"] / 1_000
    points += {"none": -25, "temporary": 0, "permanent": 10}[applicant["employment"]]
    points += applicant["years_employed"]
    points -= applicant["other_debts"] / 500 + applicant["amount"] / 1_000
    # The first fault: it asks more of one race. "We only use the district they live in."
    if applicant["race"] == "purple":
        points -= 20
    # The second: young women pay for the children they may have, older ones profit from
    # the lower default rate of women. Over all ages the two cancel out.
    if applicant["sex"] == "female":
        points += -15 if applicant["age"] < 48 else 15
    return "approved" if points >= 60 else "refused"


def demo_audit(**settings: Any) -> Audit:
    """The audit of the demo; `settings` override its own."""
    options = {**SETTINGS, **settings}
    audit = Audit(decide_loan, loan_schema(), favourable=["approved"], **options)
    audit.naming = NAMING
    return audit


def render_introduction(file: IO[str]) -> str:
    """What is about to be measured."""
    return render([Sentence(INTRODUCTION), ""], make_console(file))


def render_next_steps(file: IO[str]) -> str:
    """How to measure something of one's own."""
    name = spell_program()

    def parts() -> Iterator[RenderableType]:
        yield ""
        table = grid({}, {"no_wrap": False, "overflow": "fold"})
        for command, effect in NEXT_STEPS:
            table.add_row(Text(f"{name} {command}", "bold"), Text(effect, DIM))
        yield table

    return render(parts(), make_console(file))
