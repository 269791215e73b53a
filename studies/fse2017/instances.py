"""The twenty instances: which system, which data, which characteristic it should not depend on.

    python -m studies.fse2017.instances

trains them all and writes to `build/`, for each, the trained instance and two files with which
`themis` runs it: `themis score studies/fse2017/build/F-census/worker.toml --against race`.
"""

from __future__ import annotations

import json
import sys
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

BUILD = Path(__file__).parent / "build"  # unless `build_in` names another folder
ROOT = Path(__file__).parents[2]

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
        """The instance from its file, which `write` makes."""
        return load(self.path)

    def write(self, folder: Path | None = None, people: People | None = None) -> Path:
        """Train it and write it, with files for Themis; the folder is returned."""
        folder = self.path.parent if folder is None else folder
        stored = self.train(people)
        save(stored, folder / self.path.name)
        for kind in ("worker", "command"):
            (folder / f"{kind}.toml").write_text(_settings(kind, stored, folder / self.path.name))
        return folder


def _all() -> Iterator[Instance]:
    for system in AWARE:
        yield Instance(system, "credit", "gender")
        yield Instance(system, "census", "gender")
        yield Instance(system, "census", "race")
    for system in PLAIN:
        yield Instance(system, "credit")
        yield Instance(system, "census")


def build_in(folder: Path) -> None:
    """Write trained instances there from now on, and look for them there; in this process."""
    global BUILD
    BUILD = folder


INSTANCES = {instance.name: instance for instance in _all()}


def subject(stored: Stored) -> Any:
    """The instance as Themis runs it within this process: on whole columns."""

    def decide(table: themis.InputTable) -> Any:
        return stored.machine.decide([table[name] for name in stored.names])

    return themis.batch(decide)


def _settings(kind: str, stored: Stored, path: Path) -> str:
    """A file for Themis that runs a stored instance as a program."""
    command = [sys.executable, "-m", f"{__package__}.serve", str(path.resolve())]
    inputs = zip(stored.names, stored.sizes, strict=True)
    lines = [
        "version = 1",
        "",
        "[subject]",
        f'kind = "{kind}"',
        f"command = {json.dumps(command)}",
        f"cwd = {json.dumps(str(ROOT))}",
        *(['arguments = "positional"'] if kind == "command" else []),
        "",
        "[inputs]",
        *(f"{name} = {{ min = 0, max = {size - 1} }}" for name, size in inputs),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    for instance in INSTANCES.values():
        print(instance.write())


if __name__ == "__main__":
    main()
