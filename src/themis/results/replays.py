"""What became of saved tests when they were run again: still, new, fixed, the same, or unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

from themis._version import __version__
from themis.inputs.characteristics import Value
from themis.results.model import FORMAT
from themis.results.notes import Ending, Note, plain
from themis.results.withheld import withheld, withheld_failures, withholding

TestState = Literal[
    "still", "new", "fixed", "same", "unclear", "unconfirmed", "failed", "unknown", "not run"
]

STATES: tuple[TestState, ...] = get_args(TestState)
AT_RANDOM = "answers-at-random"  # the note that says so


@dataclass(frozen=True)
class ReplayedTest:
    """Two inputs of one test, with their outputs then and now; None where there was none."""

    state: TestState
    against: tuple[str, ...]
    inputs: tuple[dict[str, Value], dict[str, Value]]
    before: tuple[Any, Any]  # of several outputs: a dictionary
    now: tuple[Any, Any]


@dataclass(frozen=True)
class ReplayedSet:
    """How many tests against one set are in each state; states without tests are left out."""

    against: tuple[str, ...]
    tests: int
    states: Mapping[TestState, int]
    followed: tuple[str, ...] = ()  # what the tests change with the set


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Saved tests, run again.

    A test discriminates when two of its inputs, which differ in nothing but the set, get different
    outputs. `still`: it did and it does; `new`: it did not; `fixed`: it does no longer; `same`: it
    neither did nor does; `unclear`: it does once, but not each time when it is run again;
    `unconfirmed`: it does, and was not run again often enough; `failed`: the subject gave no
    decision where one is needed; `unknown`: the schema does not admit its inputs any more.
    """

    source: str
    kind: Literal["suite", "result"]
    subject: Mapping[str, Any]
    sets: tuple[ReplayedSet, ...]
    examples: tuple[ReplayedTest, ...] = field(repr=False)
    inputs: int  # different ones that were run
    changed: int  # of them, that got another output than before
    executions: int
    cache_hits: int
    stopped: Ending
    failures: Mapping[str, Any] = field(repr=False)
    unknown_rows: Mapping[Note, int] = field(default_factory=dict, repr=False)  # why, and how many
    notes: tuple[Note, ...] = ()
    timing: Mapping[str, Any] = field(default_factory=dict)
    personal: bool = False  # whether the tests are of given people
    rows: bool = False  # whether documents may show rows of people

    def count(self, *states: TestState) -> int:
        """How many tests are in these states: `replay.count("still", "new")`."""
        return sum(each.states.get(state, 0) for each in self.sets for state in states)

    @property
    def tests(self) -> int:
        """How many tests there are."""
        return sum(each.tests for each in self.sets)

    @property
    def conclusive(self) -> bool:
        """Whether it is known of every test whether it discriminates."""
        return self.stopped is Ending.DONE and not self.count(
            "unclear", "unconfirmed", "failed", "unknown", "not run"
        )

    def to_dict(self) -> dict[str, Any]:
        """The replay as JSON has it."""
        return {
            "themis": __version__,
            "format": FORMAT,
            "command": "replay",
            **({"personal_data": True} if self.personal else {}),
            "source": {"file": self.source, "kind": self.kind},
            "subject": dict(self.subject),
            "executions": self.executions,
            "cache_hits": self.cache_hits,
            "stopped": self.stopped.value,
            "failures": dict(self.failures),
            "notes": plain(self.notes),
            "timing": dict(self.timing),
            "tests": self.tests,
            **{state.replace(" ", "_"): self.count(state) for state in STATES},
            "inputs": self.inputs,
            "changed": self.changed,
            "unknown_rows": [
                {**plain(why), "rows": rows} for why, rows in self.unknown_rows.items()
            ],
            "sets": [
                {
                    "against": list(each.against),
                    **({"followed": list(each.followed)} if each.followed else {}),
                    "tests": each.tests,
                    **each.states,
                }
                for each in self.sets
            ],
            "examples": [_example(each) for each in self.examples],
        }


def _example(test: ReplayedTest) -> dict[str, Any]:
    data = asdict(test)
    return {name: list(each) if isinstance(each, tuple) else each for name, each in data.items()}


@withholding.register
def _(replay: Replay) -> Replay:
    if not replay.personal or replay.rows:
        return replay
    return replace(
        replay,
        examples=(),
        failures=withheld_failures(replay.failures),
        unknown_rows=_counted(replay.unknown_rows),
    )


def _counted(reasons: Mapping[Note, int]) -> dict[Note, int]:
    counts: dict[Note, int] = {}
    for note, rows in zip(withheld(tuple(reasons)), reasons.values(), strict=True):
        counts[note] = counts.get(note, 0) + rows
    return counts
