"""Subjects that remember: functions of a person, and the same as a worker process.

    python tests/simulations/states.py alternates

None of them looks at anybody's race or sex.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

Decide = Callable[[dict[str, Any]], str]

WAVE = 37  # inputs from one change to the next


def alternates() -> Decide:
    """Yes, no, yes, no: whatever the input."""
    asked = 0

    def decide(person: dict[str, Any]) -> str:
        nonlocal asked
        asked += 1
        return "yes" if asked % 2 else "no"

    return decide


def answers_late() -> Decide:
    """The answer that the previous input should have got."""
    kept = "no"

    def decide(person: dict[str, Any]) -> str:
        nonlocal kept
        answer, kept = kept, "yes" if person["income"] >= 50 else "no"
        return answer

    return decide


def wavers() -> Decide:
    """Strict for some inputs, then lenient for as many, and so on."""
    asked = 0

    def decide(person: dict[str, Any]) -> str:
        nonlocal asked
        asked += 1
        return "yes" if person["income"] >= (30, 70)[asked // WAVE % 2] else "no"

    return decide


def drifts(after: int) -> Decide:
    """Becomes strict once, after so many inputs, and stays so."""
    asked = 0

    def decide(person: dict[str, Any]) -> str:
        nonlocal asked
        asked += 1
        return "yes" if person["income"] >= (30 if asked <= after else 70) else "no"

    return decide


STATES: dict[str, Callable[[], Decide]] = {
    "alternates": alternates,
    "answers late": answers_late,
    "wavers": wavers,
    "drifts early": partial(drifts, 50),
    "drifts late": partial(drifts, 400),
}

if __name__ == "__main__":
    from themis.worker import serve

    serve(STATES[sys.argv[1]]())
