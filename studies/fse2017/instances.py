"""The twenty instances: which system, which data, which characteristic it should not depend on.

    python -m studies.fse2017.instances

trains those that are not in `build/` yet and writes, for each, the trained instance and two files
for Themis that run it as a worker and as a command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import themis

from .bayes import gaussian_bayes, massaged_bayes
from .data import SEED, SOURCES, People, Source, balanced
from .linear import fair_logistic_regression, logistic_regression, support_vector_machine
from .machines import Machine, Stored, load, save
from .trees import aware_tree, conditional_tree, plain_tree

BUILD = Path(__file__).parent / "build"

AWARE: dict[str, Callable[[People, str], Machine]] = {
    "A": fair_logistic_regression,
    "B": aware_tree,
    "C": massaged_bayes,
    "D": conditional_tree,
}
PLAIN: dict[str, Callable[[People], Machine]] = {
    "E": gaussian_bayes,
    "F": plain_tree,
    "G": logistic_regression,
    "H": support_vector_machine,
}


@dataclass(frozen=True)
class Instance:
    """A system trained on a data set, maybe so as not to depend on a sensitive characteristic."""

    system: str
    data: str
    sensitive: str | None = None

    @property
    def name(self) -> str:
        return "-".join(part for part in (self.system, self.data, self.sensitive) if part)

    @property
    def source(self) -> Source:
        return SOURCES[self.data]

    @property
    def path(self) -> Path:
        return BUILD / self.name / "instance.npz"

    def train(self, people: People | None = None) -> Stored:
        """The instance, trained on the balanced sample unless other people are given."""
        people = balanced(self.data, seed=SEED)[0] if people is None else people
        if self.sensitive is None:
            machine = PLAIN[self.system](people)
        else:
            machine = AWARE[self.system](people, self.sensitive)
        return Stored(machine, self.source.names, self.source.sizes)

    def stored(self) -> Stored:
        """The instance from its file; trained and written first if there is none."""
        if not self.path.exists():
            save(self.train(), self.path)
        return load(self.path)


def _all() -> Iterator[Instance]:
    for system in AWARE:
        yield Instance(system, "credit", "gender")
        yield Instance(system, "census", "gender")
        yield Instance(system, "census", "race")
    for system in PLAIN:
        yield Instance(system, "credit")
        yield Instance(system, "census")


INSTANCES = {instance.name: instance for instance in _all()}


def subject(stored: Stored) -> Any:
    """The instance as Themis runs it within this process: on whole columns."""

    def decide(table: themis.InputTable) -> Any:
        return stored.machine.decide([table[name] for name in stored.names])

    return themis.batch(decide)
