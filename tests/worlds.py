"""Random tiny worlds for Hypothesis: the same world for the package and for the oracle."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st

import themis
from tests.oracle import Variable, World

CONSTRAINTS = [
    ("not (c0 == {0} and c1 == {1})", lambda r, v: not (r["c0"] == v[0] and r["c1"] == v[1])),
    ("c0 != {0} or c1 in [{1}]", lambda r, v: r["c0"] != v[0] or r["c1"] == v[1]),
    ("c1 != {1}", lambda r, v: r["c1"] != v[1]),
]


@dataclass(frozen=True)
class Case:
    """A schema and a subject for the package, and the same for the oracle."""

    schema: themis.Schema
    decide: Any
    world: World
    names: tuple[str, ...]

    def audit(self, **options: Any) -> themis.Audit:
        return themis.Audit(self.decide, self.schema, favourable=self.world.favourable, **options)


@st.composite
def weights(draw: Any, size: int) -> tuple[float, ...]:
    numbers = draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
    return tuple(float(n) for n in numbers) if any(numbers) else (1.0,) * size


@st.composite
def characteristics(draw: Any, name: str) -> tuple[themis.Values | themis.Integers, Variable]:
    if draw(st.booleans()):
        size = draw(st.integers(1, 4))
        values = tuple(f"v{i}" for i in range(size))
        chosen = draw(st.none() | weights(size))
        return themis.Values(values, weights=chosen), Variable(name, values, None, chosen)
    low, size = draw(st.integers(-3, 3)), draw(st.integers(2, 5))
    step = draw(st.integers(1, 3))
    numbers = tuple(low + step * i for i in range(size))
    edges = draw(st.none() | st.sets(st.sampled_from(numbers[1:]), min_size=1, max_size=2))
    bins, members = None, None
    if edges is not None:
        bins = sorted(edges)
        bounds = [numbers[0], *bins, numbers[-1] + 1]
        members = tuple(
            tuple(n for n in numbers if first <= n < last) for first, last in pairwise(bounds)
        )
    chosen = draw(st.none() | weights(size))
    spec = themis.Integers(numbers[0], numbers[-1], step=step, bins=bins, weights=chosen)
    return spec, Variable(name, numbers, members, chosen)


@st.composite
def cases(
    draw: Any,
    *,
    constrained: bool = True,
    weighted: bool = True,
    binned: bool = True,
    most: int = 4,
) -> Case:
    """A world of two to four characteristics with a random decision for each input."""
    count = draw(st.integers(2, most))
    pairs = [draw(characteristics(f"c{i}")) for i in range(count)]
    if not weighted:
        pairs = [
            (_plain(spec, weights=None), Variable(v.name, v.values, v.bins)) for spec, v in pairs
        ]
    if not binned:
        pairs = [
            (_plain(spec, bins=None), Variable(v.name, v.values, None, v.weights))
            for spec, v in pairs
        ]
    variables = tuple(variable for _, variable in pairs)
    schema = themis.Schema({f"c{i}": spec for i, (spec, _) in enumerate(pairs)})
    valid = lambda row: True  # noqa: E731 - replaced below by one that closes over the choice
    if constrained and draw(st.booleans()):
        text, rule = draw(st.sampled_from(CONSTRAINTS))
        chosen = [draw(st.sampled_from(v.values)) for v in variables[:2]]
        schema = schema.where(text.format(*(repr(c) for c in chosen)))
        valid = lambda row: rule(row, chosen)  # noqa: E731
    labels = draw(st.sampled_from([(0, 1), ("no", "yes"), (0, 1, 2)]))
    salt = draw(st.integers(0, 10_000))
    bias = draw(st.floats(0.05, 0.95))

    def decide(row: dict[str, Any]) -> Any:
        noise = np.random.default_rng([salt, *(abs(hash_of(v)) for v in row.values())])
        return (
            labels[1 + int(noise.integers(len(labels) - 1))] if noise.random() < bias else labels[0]
        )

    world = World(variables, valid, decide, favourable=(labels[1],))
    if not world.inputs():
        from hypothesis import reject

        reject()
    names = draw(st.sets(st.sampled_from([v.name for v in variables]), min_size=1))
    return Case(schema, decide, world, tuple(sorted(names)))


def hash_of(value: Any) -> int:
    """A number for a value that is the same in every process."""
    return value + 100 if isinstance(value, int) else sum(map(ord, value))


def _plain(spec: Any, **changes: Any) -> Any:
    from dataclasses import replace

    known = {name: value for name, value in changes.items() if hasattr(spec, name)}
    return replace(spec, **known)
