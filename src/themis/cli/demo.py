"""The built-in example: a loan program that treats groups alike, and people not.

What does the demo say around its scores? What it does before, what to do next after.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

from rich.console import RenderableType
from rich.rule import Rule
from rich.text import Text

from themis.audit.audit import Audit
from themis.inputs.characteristics import Integers, Values
from themis.inputs.schema import Schema
from themis.show.terminal.parts import DIM, Sentence, grid, indented, make_console, render

SETS = (("race",), ("sex",))
SETTINGS: dict[str, Any] = {"seed": 42, "error": 0.01}  # what the demo overrides

INTRODUCTION = (
    "A loan program decides on {size} possible applicants, described by "
    "{count} characteristics. It was written for this demo, with two faults. "
    "Themis does not read it: it runs it on applicants it makes up, changes nothing "
    "but their race (then their sex), and watches the decision."
)

NEXT_STEPS = (
    ("themis init", "write a themis.toml for your own program, with an example to edit"),
    ("themis validate", "check it, try it out, and see what a score will cost"),
    ("themis score", "measure it: --against race,sex names a set"),
)


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
    return Audit(decide_loan, loan_schema(), favourable=["approved"], **options)


def render_introduction(file: IO[str]) -> str:
    """What is about to be measured."""
    schema = loan_schema()
    power = len(str(schema.size)) - 1
    text = INTRODUCTION.format(size=f"more than 10^{power}", count=len(schema))
    return render([Sentence(text), ""], make_console(file))


def render_next_steps(file: IO[str]) -> str:
    """How to measure something of one's own."""

    def parts() -> Iterator[RenderableType]:
        yield ""
        yield Rule(Text("what to do next", "bold cyan"), align="left", style="cyan")
        table = grid({}, {"no_wrap": False, "overflow": "fold"})
        for command, effect in NEXT_STEPS:
            table.add_row(Text(command, "bold"), Text(effect, DIM))
        yield indented(table)

    return render(parts(), make_console(file))
