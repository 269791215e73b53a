"""Outcomes: what an execution yields, a decision known by its label, or a failure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.inputs.characteristics import Value

# A cell of a table is a label's number (0, 1, …) or one of these.
FAILED = -1  # executed, without a decision
NO_COUNTERFACTUAL = -2  # a constraint forbids this variant
NOT_RUN = -3

Cells = NDArray[Any]  # of whole numbers; one byte each where outputs are plain decisions

DEFAULT_FAVOURABLE: tuple[Value, ...] = (1, "1", True, "true")
SHOWN_TEXT = 120  # characters of an output in a message
SHOWN_ERROR = 500  # and of what was raised

CRASH = "crash"  # the subject raised, or ended badly
INVALID = "invalid output"  # it answered, but not with a decision
NO_DECISION = "no decision"  # it answered, but with a text that fits no label, or two
TIMEOUT = "timeout"  # it took too long and was ended
TRANSPORT = "transport"  # it was not reached, or had no time: says nothing about the input
NOT_SENT = "not sent"  # it was not asked, since all that it was asked just before failed


class CutOff(str):
    """A text that ended before it was whole, which the one who wrote it says."""

    __slots__ = ()


@dataclass(frozen=True)
class Failure:
    """Why an execution yielded no decision.

    The message may repeat what a subject said, and so values of the input; `plain` never does.
    An input that only failed together with others, not `alone`, may not be to blame. The `remedy`
    is one for failures of this sort, if there is any but to mend the subject.
    """

    kind: str
    message: str
    plain: str = field(default="", compare=False)
    alone: bool = field(default=True, compare=False)
    remedy: str = field(default="", compare=False)


def shortened(output: Any) -> str:
    """An output in a message: services may talk at length."""
    if isinstance(output, str) and len(output) > SHOWN_TEXT:
        return f"{output[:SHOWN_TEXT]!r}… ({len(output):,} characters)"
    return cut_text(repr(output), SHOWN_TEXT)


def cut_text(text: str, most: int) -> str:
    """The start of a text that is longer than a message can bear, with its size."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def is_number_like(output: Any) -> bool:
    """Whether an output is a finite number, whole or not."""
    return isinstance(output, int | float | np.number) and bool(np.isfinite(output))


def is_decision(label: Any) -> bool:
    """Whether an output can be a decision: a text, a truth value, or a whole number."""
    if isinstance(label, str):
        return bool(label.strip())
    if isinstance(label, float):
        return label.is_integer()
    return isinstance(label, bool | int)
