"""Does a replay with more executions ever confirm less? Small suites whose tests share inputs."""

from __future__ import annotations

import csv
import itertools
import random
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import themis
from themis.audit.confirming import FIRST, SECOND, Confirmation
from themis.results.replays import Replay
from themis.statistics.reruns import fewest_reruns

Person = dict[str, Any]
PRICE = {"name": "price", "at": "/price", "min": 0, "max": 100}


@dataclass
class World:
    """A subject that is changed, and tests of what it was."""

    seed: int
    path: Path

    def __post_init__(self) -> None:
        draws = random.Random(self.seed)
        values = {f"c{n}": list("abcd"[: draws.randint(2, 4)]) for n in range(draws.randint(2, 4))}
        self.schema = themis.Schema(values)
        self.share = draws.choice([0.05, 0.2, 0.5])
        self.failing = draws.choice([0.0, 0.0, 0.2])
        self.outputs = None
        if draws.random() < 0.5:
            how = draws.choice([{"distance": "threshold", "tolerance": 30}, {}])
            granted = themis.Output(name="granted", at="/granted", favourable=[1])
            self.outputs = [granted, themis.Output(**PRICE, **how)]
        with self.path.open("w", newline="") as file:
            names = ["output"] if self.outputs is None else ["output.granted", "output.price"]
            writer = csv.writer(file)
            writer.writerow(["test", "against", "base", *values, *names])
            for test in range(draws.randint(2, 20)):
                for line in self._test(draws, values):
                    writer.writerow([test + 1, *line])

    def _test(self, draws: random.Random, values: dict[str, list[str]]) -> Any:
        """The rows of one test, with the outputs before the change."""
        against = draws.sample(list(values), draws.randint(1, 2))
        context = {name: draws.choice(each) for name, each in values.items()}
        ways = list(itertools.product(*(values[name] for name in against)))
        draws.shuffle(ways)
        base = draws.choice([0, 0, 1, None])
        for place, way in enumerate(ways[: draws.randint(2, len(ways))]):
            person = {**context, **dict(zip(against, way, strict=True))}
            output = self.decide(person, "then")
            told = list(output.values()) if isinstance(output, dict) else [output]
            is_base = str(place == base).lower()
            yield [",".join(against), is_base, *person.values(), *told]

    def decide(self, person: Person, when: str = "now") -> Any:
        chance = random.Random(f"{self.seed} {when} {sorted(person.items())}")
        if when == "now" and chance.random() < self.failing:
            raise ValueError
        one = int(chance.random() < self.share)
        if self.outputs is None:
            return one
        return {"granted": one, "price": 50 + one * chance.randint(-40, 40)}

    def replay(self, most: int | None = None) -> Replay:
        audit = themis.Audit(
            self.decide, self.schema, outputs=self.outputs, max_executions=most, max_failures=1.0
        )
        return audit.replay(self.path)


@pytest.mark.parametrize(
    "seed", [0, 1, 4, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(20, 36))]
)
def test_no_budget_confirms_fewer_tests_than_a_smaller_one(seed: int, tmp_path: Path) -> None:
    world = World(seed, tmp_path / "suite.csv")
    whole, before = world.replay(), 0
    for most in range(1, whole.executions + 60):
        found = world.replay(most)
        assert found.executions <= most
        assert found.count("new", "still") >= before, most
        assert found.count("unclear") == 0
        if found.inputs < whole.inputs:
            assert found.executions == most
        elif found.count("unconfirmed"):  # less than one more test takes
            assert found.executions > most - 2 * fewest_reruns(SECOND / 4), most
        before = found.count("new", "still")
    assert before == whole.count("new", "still")


SHARED = """test,against,base,c0,c1,c2,output
1,c2,true,v3,v0,v2,0
1,c2,false,v3,v0,v0,0
2,c0,true,v1,v0,v2,0
2,c0,false,v3,v0,v2,0
3,"c1,c2",true,v3,v1,v2,0
3,"c1,c2",false,v3,v0,v0,0
4,c1,true,v3,v1,v2,0
4,c1,false,v3,v0,v2,0
5,"c0,c2",true,v0,v0,v1,0
5,"c0,c2",false,v3,v0,v1,0
5,"c0,c2",false,v1,v0,v1,0
6,"c1,c2",false,v2,v1,v1,0
6,"c1,c2",false,v2,v1,v0,0
6,"c1,c2",false,v2,v0,v1,0
6,"c1,c2",false,v2,v0,v0,0
6,"c1,c2",false,v2,v0,v2,0
"""


def test_few_failing_tests_among_many_that_share_inputs_are_confirmed(tmp_path: Path) -> None:
    """Those that do not fail would make those that do take fewer reruns, if they failed, too."""
    path = tmp_path / "suite.csv"
    path.write_text(SHARED)
    schema = themis.Schema(c0=["v0", "v1", "v2", "v3"], c1=["v0", "v1"], c2=["v0", "v1", "v2"])

    def decide(person: Person) -> int:
        return int(tuple(person.values()) == ("v3", "v1", "v2"))

    for most in range(20, 40):
        found = themis.Audit(decide, schema, max_executions=most).replay(path)
        assert found.count("new") >= 1, most


def confirmation(draws: random.Random, pairs: int, inputs: int, kinds: int) -> Confirmation:
    ends = [draws.sample(range(inputs), 2) for _ in range(pairs)]
    of = np.array([draws.randrange(kinds) for _ in range(pairs)], dtype=np.int64)
    numbers = np.array(ends, dtype=np.int64).reshape(-1, 2)
    return Confirmation(numbers, np.arange(inputs)[:, None], of, np.arange(pairs))


@pytest.mark.parametrize("seed", range(30))
def test_no_tests_that_fail_take_more_than_is_kept_back_for_them(seed: int) -> None:
    draws = random.Random(seed)
    pairs, inputs, kinds = draws.randint(1, 30), draws.randint(4, 40), draws.randint(1, 4)
    every = confirmation(draws, pairs, inputs, kinds)
    shared = int(np.bincount(every.inputs.reshape(-1)).max())
    known = draws.randint(0, pairs)
    first = every.part(slice(known), FIRST)
    most = first.needs_at_most(np.arange(pairs - known + 1), kinds, shared)
    for _ in range(20):
        chosen = sorted(draws.sample(range(known, pairs), draws.randint(0, pairs - known)))
        which = np.array([*range(known), *chosen], dtype=np.int64)
        some = Confirmation(
            every.inputs[which], every.codes, every.kinds[which], every.tests[which]
        )
        assert max(some.needs()[-1:], default=0) <= most[len(chosen)]


def came_again(then: Any, now: Any, which: Any) -> Any:
    """All pairs have outputs, and come out the same."""
    return np.ones((2, len(which)), dtype=bool)


@pytest.mark.parametrize("seed", range(10))
def test_what_pairs_need_is_what_running_them_takes_wherever_they_share_inputs(seed: int) -> None:
    every = confirmation(random.Random(seed), 12, 14, 3)
    needs = every.needs()
    for number in range(1, 13):
        part, ran = every.part(slice(number), FIRST), 0

        def perform(inputs: Any, **_: Any) -> Any:
            nonlocal ran
            ran += len(inputs)
            return np.zeros(len(inputs), dtype=np.int32)

        labels = SimpleNamespace(dtype=np.int32)
        runner: Any = SimpleNamespace(
            labels=labels, batch_size=5, executions_left=99, out_of_time=False, repeat=perform
        )
        runner.heed = lambda: None
        cells = np.zeros(len(part.codes), dtype=np.int32)
        assert part.run(runner, cells, came_again, count(1))
        assert part.confirmed.all()
        assert ran == needs[number - 1]
