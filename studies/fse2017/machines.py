"""Trained instances: how they decide and are stored. Three forms, plain numpy, no pickle.

Since every characteristic has finitely many codes, all twenty instances are one of: a sum of one
number per code (`Points`: linear models and naive Bayes), a binary tree (`Tree`), or a sum over
support vectors (`Kernel`). Nothing here needs Themis or scikit-learn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Columns = Sequence[NDArray[Any]]  # one array of codes per characteristic, in order
Bools = NDArray[np.bool_]

MOST_CODES = 200  # no characteristic of the study has more
KERNEL_CELLS = 2**18  # kernel values held at once: what fits into a cache


class Machine(Protocol):
    """Decides for many inputs at once: true is the favourable decision."""

    def decide(self, columns: Columns) -> Bools: ...

    def arrays(self) -> dict[str, NDArray[Any]]: ...


def predict(machine: Machine, codes: NDArray[Any]) -> Bools:
    """The decisions about the rows of a matrix of codes."""
    return machine.decide(np.ascontiguousarray(codes.T))


@dataclass(frozen=True)
class Points:
    """Favourable when offset + Σ table[characteristic][code] > 0."""

    offset: float
    tables: tuple[NDArray[np.float64], ...]

    def score(self, columns: Columns) -> NDArray[np.float64]:
        total = np.full(len(columns[0]), self.offset)
        for table, codes in zip(self.tables, columns, strict=True):
            total += table[codes]
        return total

    def decide(self, columns: Columns) -> Bools:
        return self.score(columns) > 0

    def arrays(self) -> dict[str, NDArray[Any]]:
        named = {f"table_{place:02}": table for place, table in enumerate(self.tables)}
        return {"offset": np.array(self.offset), **named}


@dataclass(frozen=True)
class Tree:
    """Goes to `left` where the code is at most the threshold; a leaf is its own child."""

    characteristic: NDArray[np.intp]
    threshold: NDArray[np.float64]
    left: NDArray[np.intp]
    right: NDArray[np.intp]
    favourable: Bools

    def leaves(self, columns: Columns) -> NDArray[np.intp]:
        """The leaf in which each input ends."""
        people = len(columns[0])
        flat = np.concatenate([np.asarray(codes) for codes in columns])
        node = np.zeros(people, dtype=np.intp)
        active = np.arange(people if len(self.left) > 1 else 0)
        while len(active):
            at = node[active]
            codes = flat[self.characteristic[at] * people + active]
            at = np.where(codes <= self.threshold[at], self.left[at], self.right[at])
            node[active] = at
            active = active[self.left[at] != at]
        return node

    def decide(self, columns: Columns) -> Bools:
        """Whether an input lies in the box of a favourable leaf, for all boxes at once.

        One look-up per characteristic is quicker than one per level of the tree.
        """
        inside = np.broadcast_to(self._everywhere, (len(columns[0]), len(self._everywhere)))
        for place, table in self._boxes.items():
            inside = inside & table[columns[place]]
        return inside.any(axis=1)

    @cached_property
    def _everywhere(self) -> NDArray[np.uint64]:
        """A bit for each favourable leaf."""
        return _packed(np.ones((1, len(self._favourable_leaves)), dtype=bool))[0]

    @cached_property
    def _favourable_leaves(self) -> NDArray[np.intp]:
        own = np.arange(len(self.left))
        return np.flatnonzero((self.left == own) & self.favourable)

    @cached_property
    def _boxes(self) -> dict[int, NDArray[np.uint64]]:
        """Characteristic → code → the favourable leaves that admit it, as bits."""
        nodes, codes = len(self.left), np.arange(MOST_CODES)
        inner = self.left != np.arange(nodes)
        tables = {}
        for place in np.unique(self.characteristic[inner]):
            admits = np.ones((MOST_CODES, nodes), dtype=bool)
            for node in range(nodes):  # parents come before their children
                children = (self.left[node], self.right[node])
                if children[0] == node:
                    continue
                below = codes <= self.threshold[node]
                for child, side in zip(children, (below, ~below), strict=True):
                    own = side if self.characteristic[node] == place else True
                    admits[:, child] = admits[:, node] & own
            tables[int(place)] = _packed(admits[:, self._favourable_leaves])
        return tables

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def _packed(bits: Bools) -> NDArray[np.uint64]:
    """Each row of bits as 64-bit numbers."""
    filled = np.zeros((len(bits), -(-max(bits.shape[1], 1) // 64) * 64), dtype=bool)
    filled[:, : bits.shape[1]] = bits
    return np.packbits(filled, axis=1).view(np.uint64)


@dataclass(frozen=True)
class Kernel:
    """Favourable when offset + Σ weight · exp(−γ · distance² to a support vector) > 0."""

    offset: float
    gamma: float
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    vectors: NDArray[np.float32]  # rows = support vectors, standardised
    weights: NDArray[np.float32]

    def decide(self, columns: Columns) -> Bools:
        people, step = len(columns[0]), max(1, KERNEL_CELLS // len(self.weights))
        favourable = np.empty(people, dtype=bool)
        squares = (self.vectors**2).sum(axis=1, keepdims=True)
        ones = np.ones_like(squares)
        # −γ·(|x|² + |v|² − 2·x·v) as one product of matrices
        right = (-self.gamma * np.hstack([-2 * self.vectors, ones, squares])).astype(np.float32).T
        for start in range(0, people, step):
            part = np.column_stack([codes[start : start + step] for codes in columns])
            inputs = (part - self.mean) / self.scale
            norms = (inputs**2).sum(axis=1, keepdims=True)
            left = np.hstack([inputs, norms, np.ones_like(norms)]).astype(np.float32)
            values = left @ right
            np.exp(values, out=values)
            favourable[start : start + step] = values @ self.weights + self.offset > 0
        return favourable

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: np.asarray(getattr(self, name)) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class Stored:
    """A machine with the names and numbers of values of the inputs that it expects."""

    machine: Machine
    names: tuple[str, ...]
    sizes: tuple[int, ...]


def save(stored: Stored, path: Path) -> None:
    """Write an instance to a file; the same instance always gives the same arrays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(
        path,
        form=np.array(type(stored.machine).__name__),
        names=np.array(stored.names),
        sizes=np.array(stored.sizes),
        **stored.machine.arrays(),
    )


def load(path: Path) -> Stored:
    """An instance from its file."""
    with np.load(path, allow_pickle=False) as file:
        held = {name: file[name] for name in file.files}
    form, names, sizes = held.pop("form"), held.pop("names"), held.pop("sizes")
    return Stored(_FORMS[str(form)](held), tuple(map(str, names)), tuple(map(int, sizes)))


def _points(held: dict[str, NDArray[Any]]) -> Points:
    tables = tuple(held[name] for name in sorted(held) if name != "offset")
    return Points(float(held["offset"]), tables)


def _kernel(held: dict[str, NDArray[Any]]) -> Kernel:
    numbers = {name: float(held.pop(name)) for name in ("offset", "gamma")}
    return Kernel(**numbers, **held)


_FORMS: dict[str, Any] = {"Points": _points, "Tree": lambda held: Tree(**held), "Kernel": _kernel}
