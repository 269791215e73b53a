"""What every kind of subject keeps to, whatever it runs and however that fails."""

from __future__ import annotations

import json
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import themis
from tests.external import interrupting, is_alive, wait_until
from tests.services import Reply, Request, Service, serve
from tests.subjects.contract import assert_keeps_the_contract, outputs_of
from themis.engine.runner import Runner
from themis.subjects.base import Subject
from themis.subjects.decisions import CRASH, INVALID, TIMEOUT, TRANSPORT
from themis.subjects.http.chat import ChatSubject
from themis.subjects.http.subject import HttpSubject
from themis.subjects.labels import Labels
from themis.subjects.loading import subject_from
from themis.subjects.processes.command import CommandSubject
from themis.subjects.processes.worker import WorkerSubject

pytest.importorskip("aiohttp")

SCHEMA = themis.Schema(race=[0, 1], age=themis.Integers(18, 117))
CODES = np.column_stack([np.arange(40) % 2, np.arange(40) * 2])
EXPECTED = [str(row["age"] % 7 + 10 * row["race"]) for row in map(SCHEMA.decode_row, CODES)]
PLACE, BAD = 21, 60  # the input on which they go wrong, and its age
TOKEN = "s3cr3t/with+signs&more"
LONG = 300  # seconds for which a subject hangs: longer than any test waits

SHELL = """
if [ "$2" {bad} ] && [ ! -e {folder}/well ]; then {deed}; fi
echo $(( $2 % 7 + 10 * $1 ))
"""
COMMANDS = {
    "works": ":",
    "crashes": 'echo "no $API_TOKEN" >&2; exit 3',
    "is killed": 'echo "no $API_TOKEN" >&2; kill -SEGV $$',
    "hangs": "sleep 300 & echo $! $$ > {folder}/here; wait",
    "floods": "yes",
    "warns": "yes warning | head -c 50000000 >&2",
    "says nothing": "exit 0",
    "tells a secret": 'echo "yes $API_TOKEN"; exit 0',
}
PYTHON = """
import json, os, subprocess, sys
def answer(id, output):
    print(json.dumps({"id": id, "output": output}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    id, row = request["id"], request["input"]
    if row["age"] {bad} and not os.path.exists("{folder}/well"):
        {deed}
    answer(id, row["age"] % 7 + 10 * row["race"])
"""
WORKERS = {
    "works": "pass",
    "crashes": "sys.exit('no ' + os.environ['API_TOKEN'])",
    "is killed": "print('no', os.environ['API_TOKEN'], file=sys.stderr, flush=True); os.abort()",
    "hangs": "it = subprocess.Popen(['sleep', '300']); "
    "open('{folder}/here', 'w').write(f'{it.pid} {os.getpid()}'); it.wait()",
    "floods": "[sys.stdout.write('x' * 9999) for _ in iter(int, 1)]",
    "warns": "sys.stderr.write('warning\\n' * 5_000_000)",
    "says nothing": "answer(id, None); continue",
    "tells a secret": "answer(id, 'yes ' + os.environ['API_TOKEN']); continue",
}
SAYS = {"says nothing": None, "tells a secret": f"yes {TOKEN}"}
OUTSIDE = ("crashes", "hangs", "floods", *SAYS)
FAULTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("dictionaries", "keywords", "table", "array", "frame"), ("crashes", "says nothing")
    ),
    "command": (*COMMANDS,),
    "worker": (*WORKERS,),
    **dict.fromkeys(("service", "lists", "chat"), OUTSIDE),
}


MESSAGES: dict[Any, str] = {
    "crashes": "no $API_TOKEN",
    ("command", "crashes"): "exit code 3: no $API_TOKEN",
    ("command", "is killed"): "killed by SIGSEGV: no $API_TOKEN",
    ("worker", "crashes"): "exit code 1: no $API_TOKEN",
    ("worker", "is killed"): "killed by SIGABRT: no $API_TOKEN",
    "hangs": "no answer within 2 seconds",
    ("command", "hangs"): "no end within 2 seconds",
    "floods": "an answer of more than ",
    ("command", "floods"): "it printed more than 1,048,576 bytes, beginning with 'y",
    ("worker", "floods"): "it wrote more than 1,048,576 bytes without a line end",
    "tells a secret": "the answer repeats a secret",
}


@dataclass
class Behaviour:
    """Decides in this process, or answers as a service, and goes wrong for one input or for all."""

    folder: Path
    fault: str = "works"
    always: bool = False

    def decide(self, row: Any) -> Any:
        if self.is_bad(row):
            if self.fault in SAYS:
                return SAYS[self.fault]
            (self.folder / "here").touch()
            if self.fault == "hangs":
                time.sleep(LONG)
            raise ValueError(f"no {TOKEN}")
        return int(row["age"] % 7 + 10 * row["race"])

    def is_bad(self, row: Any) -> bool:
        bad = self.fault != "works" and (self.always or row["age"] == BAD)
        return bad and not (self.folder / "well").exists()

    def by_name(self, race: int, age: int) -> Any:
        return self.decide({"race": race, "age": age})

    def rows(self, table: Any) -> list[Any]:
        return [self.by_name(*row) for row in zip(table["race"], table["age"], strict=True)]

    def serve(self, service: Service, request: Request) -> Reply:
        said = request.json
        if "messages" in said:
            said = dict(
                zip(SCHEMA.names, map(int, said["messages"][0]["content"].split()), strict=True)
            )
        rows = said if isinstance(said, list) else [said]
        if self.fault not in SAYS and any(map(self.is_bad, rows)):
            (self.folder / "here").touch()
            if self.fault == "hangs":
                service.stopped.wait(LONG)
            status = 500 if rows is said else 400
            return Reply("9" * 2**21) if self.fault == "floods" else Reply(f"no {TOKEN}", status)
        answers = [*map(self.decide, rows)]
        if "messages" in request.json:
            content = None if answers[0] is None else str(answers[0])
            return Reply(json.dumps({"choices": [{"message": {"content": content}}]}))
        return Reply(json.dumps(answers if rows is said else answers[0]))


class OfArrays(Behaviour):
    def predict(self, rows: Any) -> Any:
        return self.rows({"race": rows[:, 0], "age": rows[:, 1]})


class OfFrames(Behaviour):
    feature_names_in_ = np.array(["age", "race"])

    def predict(self, frame: Any) -> Any:
        return self.rows(frame)


class Making:
    """Makes subjects of any kind."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self._stack = folder, stack

    def __call__(self, kind: str, *behaviour: Any, seconds: float = LONG) -> Subject:
        if kind in ("command", "worker"):
            return self._program(kind, *behaviour, seconds=seconds)
        own = {"array": OfArrays, "frame": OfFrames}.get(kind, Behaviour)(self.folder, *behaviour)
        if kind in ("service", "lists", "chat"):
            service = self._stack.enter_context(serve())
            service.answer = lambda request: own.serve(service, request)
            headers = {"Authorization": "Bearer ${API_TOKEN}"}
            given: dict[str, Any] = {"headers": headers, "retries": 0, "timeout_seconds": seconds}
            if kind == "chat":
                return ChatSubject(SCHEMA, service.url, user="{race} {age}", **given)
            body = "{inputs}" if kind == "lists" else None
            return HttpSubject(SCHEMA, service.url, body=body, **given)
        functions = {
            "dictionaries": own.decide,
            "keywords": themis.keywords(own.by_name),
            "table": themis.batch(own.rows),
        }
        return subject_from(functions.get(kind, own), SCHEMA)

    def _program(
        self, kind: str, fault: str = "works", always: bool = False, *, seconds: float
    ) -> Subject:
        source, deeds, equal = (
            (SHELL, COMMANDS, "=") if kind == "command" else (PYTHON, WORKERS, "==")
        )
        bad = f"{equal} {BAD}" if not always else "-ge 0" if kind == "command" else ">= 0"
        text = source.replace("{bad}", bad).replace("{deed}", deeds[fault])
        path = self.folder / "subject"
        path.write_text(text.replace("{folder}", str(self.folder)))
        if kind == "command":
            return CommandSubject(SCHEMA, ["sh", str(path)], jobs=2, timeout_seconds=seconds)
        command = [sys.executable, "-S", str(path)]
        return WorkerSubject(SCHEMA, command, start_seconds=seconds, timeout_seconds=seconds)

    def left(self) -> list[int]:
        """The processes of the one that hangs that still run."""
        return [
            pid for pid in map(int, (self.folder / "here").read_text().split()) if is_alive(pid)
        ]


@pytest.fixture
def making(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Making]:
    monkeypatch.setenv("API_TOKEN", TOKEN)
    with ExitStack() as stack:
        yield Making(tmp_path, stack)


def decisions(runner: Runner) -> list[str | None]:
    """Those on all inputs, as texts; None where there is none."""
    cells = runner.run(CODES).tolist()
    labels = runner.labels.labels
    return [None if cell < 0 else str(labels[cell]) for cell in cells]


@pytest.mark.parametrize("kind", FAULTS)
def test_batches_parts_and_copies_are_the_inputs_that_they_hold(making: Making, kind: str) -> None:
    with closing(making(kind)) as subject:
        assert_keeps_the_contract(subject, CODES[:20])
        assert [*map(str, outputs_of(subject.load(CODES)))] == EXPECTED


@pytest.mark.parametrize(
    ("kind", "fault"), [(kind, fault) for kind, faults in FAULTS.items() for fault in faults]
)
def test_an_input_that_fails_fails_alone_and_gives_nothing_away(
    making: Making, kind: str, fault: str
) -> None:
    if kind in ("command", "worker"):
        tracemalloc.start()
    try:
        with closing(making(kind, fault, seconds=2 if fault == "hangs" else LONG)) as subject:
            runner = Runner(subject, Labels(), max_failures=1.0)
            found = decisions(runner)
        assert tracemalloc.get_traced_memory()[1] < 20 * 2**20, "what it floods is not kept"
    finally:
        tracemalloc.stop()
    if fault in ("works", "warns"):
        assert found == EXPECTED
        return
    assert found == [None if at == PLACE else each for at, each in enumerate(EXPECTED)]
    ((why, (row, message)),) = runner.failures.examples.items()
    kinds = {"crashes": CRASH, "is killed": CRASH, "hangs": TIMEOUT}
    assert why == (
        TRANSPORT if (kind, fault) == ("lists", "crashes") else kinds.get(fault, INVALID)
    )
    assert row["age"] == BAD
    assert (MESSAGES.get((kind, fault)) or MESSAGES.get(fault, "")) in message
    assert TOKEN[:9] not in message
    if fault == "hangs" and kind in ("command", "worker"):
        wait_until(lambda: not making.left())


@pytest.mark.parametrize("kind", FAULTS)
def test_one_that_always_fails_ends_the_run_and_gives_nothing_away(
    making: Making, kind: str
) -> None:
    with (
        pytest.raises(themis.SubjectError) as caught,
        themis.Audit(making(kind, "crashes", True), SCHEMA, max_failures=0.5) as audit,
    ):
        audit.causal("race")
    assert caught.value.exit_code == 3
    assert "no $API_TOKEN" in str(caught.value)
    assert TOKEN[:9] not in str(caught.value)


@pytest.mark.parametrize(
    "kind", ["dictionaries", "table", "command", "worker", "service", "lists", "chat"]
)
def test_after_an_interrupt_nothing_is_left_and_it_can_go_on(making: Making, kind: str) -> None:
    with closing(making(kind, "hangs")) as subject:
        runner = Runner(subject, Labels())
        with interrupting(lambda: (making.folder / "here").exists()):
            runner.run(CODES)
        wait_until(lambda: not making.left())
        (making.folder / "well").touch()
        assert decisions(runner) == EXPECTED
