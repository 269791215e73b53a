"""A subject around another one, which it passes on whatever it does not do itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from themis.errors import Mistake
from themis.inputs.characteristics import Value
from themis.subjects.base import Subject, Tokens
from themis.subjects.secrets import Secrets


class Around(Subject):
    """What is asked of it is asked of the subject inside."""

    def __init__(self, inside: Subject) -> None:
        self.inside, self.kind, self.reads_texts = inside, inside.kind, inside.reads_texts

    @property
    def structured(self) -> bool:
        """Whether an output may have parts."""
        return self.inside.structured

    @structured.setter
    def structured(self, value: bool) -> None:
        self.inside.structured = value

    def fingerprint(self) -> str:
        return self.inside.fingerprint()

    def decision_mistakes(self, favourable: tuple[Value, ...] | None) -> Iterator[Mistake]:
        return self.inside.decision_mistakes(favourable)

    def unseen(self) -> Mapping[str, tuple[Value, ...]]:
        return self.inside.unseen()

    def unsure_of(self) -> frozenset[str]:
        return self.inside.unsure_of()

    def possible_outputs(self) -> tuple[Value, ...] | None:
        return self.inside.possible_outputs()

    def foresee(self, executions: int) -> Tokens | None:
        return self.inside.foresee(executions)

    def reproduce(self, row: Mapping[str, Value]) -> str | None:
        return self.inside.reproduce(row)

    def secrets(self) -> Secrets:
        return self.inside.secrets()

    def note_answered(self) -> None:
        self.inside.note_answered()

    def close(self) -> None:
        self.inside.close()
