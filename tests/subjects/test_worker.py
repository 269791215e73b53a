"""Workers as subjects: processes that stay alive, and every way in which they may not."""

from __future__ import annotations

import gc
import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import themis.worker
from tests.external import is_alive
from themis import Integers, Reals, RequestError, Schema, SubjectError
from themis.subjects.base import Answers
from themis.subjects.decisions import CRASH, Failure
from themis.subjects.processes.worker import WorkerSubject

NASTY = [
    "--help", "$(touch f)", "a b", "line\nbreak", "\r\n", "'", '"', '""', "\\", "a,b", "🦊 é",
    " ", "\u2028", "\x01", "", "id",
]  # fmt: skip

# A worker without the help of themis.worker, whose misdeeds can be chosen.
BARE = """
import json, os, sys, time
def answer(id, output):
    print(json.dumps({"id": id, "output": output}), flush=FLUSH)
FLUSH = True
for line in sys.stdin:
    request = json.loads(line)
    id, n = request["id"], request["input"]["n"]
    MISDEED
    answer(id, n % 3)
"""
AGES = Schema(n=Integers(0, 9_999))

Make = Callable[..., WorkerSubject]


@pytest.fixture
def worker(tmp_path: Path) -> Any:
    """Makes a worker of Python source; all of them are closed in the end."""
    made: list[WorkerSubject] = []

    def make(source: str, schema: Schema = AGES, **options: Any) -> WorkerSubject:
        path = tmp_path / f"worker{len(made)}.py"
        path.write_text(source)
        command = [sys.executable, "-S", str(path)]
        options.setdefault("env", {"PYTHONUNBUFFERED": ""})  # buffers as Python has them
        made.append(WorkerSubject(schema, command, **options))
        return made[-1]

    yield make
    for subject in made:
        subject.close()


@pytest.fixture
def serving(worker: Make, tmp_path: Path) -> Any:
    """Makes a worker that serves with a copy of themis.worker, which needs nothing else."""
    shutil.copy(themis.worker.__file__, tmp_path / "themis_worker.py")

    def make(body: str, schema: Schema = AGES, **options: Any) -> WorkerSubject:
        return worker(f"from themis_worker import serve\n{body}", schema, **options)

    return make


def run(subject: WorkerSubject, codes: Any) -> Answers:
    return subject.load(np.asarray(codes).reshape(-1, len(subject.schema))).run()


def misdeed(text: str) -> str:
    return BARE.replace("MISDEED", text)


def assert_only(answers: Answers, culprits: dict[int, Failure], count: int) -> None:
    """Every other input has its own answer."""
    assert answers.failures == culprits
    kept = [n for n in range(count) if n not in culprits]
    assert [answers.outputs[n] for n in kept] == [n % 3 for n in kept]


@pytest.mark.parametrize(("form", "rest"), [("jsonl", [True, 0.3]), ("csv", ["true", "0.3"])])
def test_values_reach_the_worker_and_outputs_come_back_as_they_are(
    serving: Make, form: str, rest: list[Any]
) -> None:
    schema = Schema(race=NASTY, flag=[False, True], rate=Reals(0, 1, step=0.1))
    body = f"serve(lambda row: ascii([*row, *row.values()]), format={form!r})"
    answers = run(serving(body, schema, format=form), [[n, 1, 3] for n in range(len(NASTY))])
    assert answers.failures == {}
    assert answers.outputs == [ascii([*schema.names, value, *rest]) for value in NASTY]


def test_json_outputs_keep_their_types_and_csv_outputs_are_strings(serving: Make) -> None:
    body = """
class Number:
    def tolist(self): return 1
outputs = [1, '1', True, 'é ,"', None, 1.5, [1], Number(), '\\ud800', 2 ** 70, object()]
"""
    answers = run(serving(body + "serve(lambda row: outputs[row['n']])"), range(11))
    kept = [1, "1", True, 'é ,"', None, 1.5, [1], 1, "\ud800", 2**70]
    assert answers.outputs[:10] == kept
    assert "can't be written as JSON" in answers.failures[10].message
    body += "serve(lambda row: outputs[int(row['n'])], format='csv')"
    answers = run(serving(body, format="csv"), [0, 1, 2, 3, 99])
    assert answers.outputs[:4] == ["1", "1", "true", 'é ,"']
    assert answers.failures == {4: Failure(CRASH, "IndexError: list index out of range")}


def test_a_worker_stays_alive_between_batches_until_it_is_closed(serving: Make) -> None:
    subject = serving("import os\nserve(lambda row: os.getpid())")
    batch = subject.load(np.arange(5)[:, None])
    (pid,) = {*batch.run().outputs, *batch.run().outputs}
    subject.close()
    assert not is_alive(pid)
    assert run(subject, [0]).outputs != [pid]


def test_answers_in_any_order_go_to_their_own_inputs(worker: Make) -> None:
    source = """
import json, os
rest = b""
while chunk := os.read(0, 65536):
    *lines, rest = (rest + chunk).split(b"\\n")
    for line in reversed(lines):
        request = json.loads(line)
        print(json.dumps({"output": request["input"]["n"] % 3, "id": request["id"]}), flush=True)
"""
    assert_only(run(worker(source), range(2_000)), {}, 2_000)


def test_jobs_share_a_batch_and_keep_its_order(serving: Make, tmp_path: Path) -> None:
    body = f"""
import glob, os, time
here = {str(tmp_path / "here")!r}
open(f"{{here}}.{{os.getpid()}}", "w").close()
while len(glob.glob(here + ".*")) < 3:  # until all have come
    time.sleep(0.01)
serve(lambda row: f"{{row['n']}} {{os.getpid()}}")
"""
    answers = run(serving(body, jobs=3), range(900))
    assert [int(each.split()[0]) for each in answers.outputs] == list(range(900))
    assert len({each.split()[1] for each in answers.outputs}) == 3


def test_a_worker_is_recycled_after_so_many_inputs(serving: Make) -> None:
    subject = serving("import os\nserve(lambda row: os.getpid())", recycle_after=100)
    pids = run(subject, range(350)).outputs
    assert len(set(pids)) == 4
    assert max(pids.count(pid) for pid in pids) == 100
    assert not is_alive(pids[0])


@pytest.mark.parametrize(
    ("schema", "command", "options", "said"),
    [
        (AGES, "cat", {"format": "json"}, "did you mean 'jsonl'"),
        (AGES, "no-such-worker", {}, "there is no program 'no-such-worker'"),
        (AGES, "cat", {"recycle_after": 0}, "subject.recycle_after: must be positive"),
        (Schema(race=["\ud800"]), "cat", {}, "inputs.race: .* surrogate"),
        (Schema(race=["\0"]), "cat", {"format": "csv"}, "inputs.race: .* NUL"),
    ],
)
def test_mistakes_are_refused_at_once(
    schema: Schema, command: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(RequestError, match=said):
        WorkerSubject(schema, [command], **options)


@pytest.mark.some_slow(core=3)
@pytest.mark.parametrize("flush", [True, False])
def test_inputs_on_which_it_dies_are_found_and_the_others_keep_their_answers(
    worker: Make, flush: bool
) -> None:
    source = misdeed("if n in (0, 70, 71, 299): print('bad', n, file=sys.stderr); os._exit(3)")
    subject = worker(source.replace("FLUSH = True", f"FLUSH = {flush}"), start_seconds=0.7)
    failures = {n: Failure(CRASH, f"exit code 3: bad {n}") for n in (0, 70, 71, 299)}
    assert_only(run(subject, range(300)), failures, 300)


@pytest.mark.slow
def test_one_percent_of_crashes_costs_two_starts_each(worker: Make, tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    source = misdeed("if n % 100 == 50: sys.exit(1)")
    subject = worker(f"open({str(starts)!r}, 'a').write('x')\n" + source)
    failures = dict.fromkeys(range(50, 2_000, 100), Failure(CRASH, "exit code 1"))
    assert_only(run(subject, range(2_000)), failures, 2_000)
    assert len(starts.read_text()) <= 2 * 20 + 1


def test_a_state_that_breaks_the_worker_blames_no_input(worker: Make) -> None:
    source = misdeed("count = globals().get('count', 0) + 1\n    if count > 130: os._exit(1)")
    assert_only(run(worker(source), range(1_000)), {}, 1_000)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "import sys\nprint('no model file', file=sys.stderr)\nsys.exit(4)",
            "exit code 4: no model file; the end of its standard",
        ),
        (
            "print('Loading model', flush=True)\n" + misdeed("pass"),
            "a line that is not an answer .*: 'Loading model'",
        ),
        ("pass", "exit code 0 and gave no answer"),
    ],
)
def test_what_is_no_worker_stops_the_run(worker: Make, source: str, said: str) -> None:
    with pytest.raises(SubjectError, match=said):
        run(worker(source), range(300))


def test_a_slow_worker_is_given_fewer_inputs_at_once(serving: Make) -> None:
    body = "import time\ndef decide(rows):\n"
    body += "    time.sleep(0.01 * len(rows))\n    return [row['n'] % 3 for row in rows]\n"
    subject = serving(body + "serve(decide, batch=True)", timeout_seconds=0.5, start_seconds=1)
    assert_only(run(subject, range(200)), {}, 200)


@pytest.mark.some_slow(core=4)
@pytest.mark.parametrize(
    ("deed", "message"),
    [
        ("if n == 70: print('debug', flush=True)", "it wrote a line that is not an answer"),
        ("if n == 70: print('[1, 2]', flush=True)", "it wrote a line that is not an answer"),
        ("if n == 70: answer(id, 5)", "it answered twice with the same id"),
        ("if n == 70: answer(7, 5); continue", "it answered with the id 7, which was not asked"),
        ("if n == 70: answer('x', 5); continue", 'the id "x", which was not asked'),
        ("if n == 70: answer(id - 1, 5); continue", "which was not asked"),
        ("if n == 70: answer(id + 0.5, 5); continue", "which was not asked"),
        ("if n == 70: print(json.dumps({'id': id})); continue", "its answer has no output"),
        ("if n == 70: continue", "it ended with exit code 0 and gave no answer"),
        ("if n == 70: sys.stdout.write('{\"id\": '); sys.stdout.flush(); sys.exit()", "no answer"),
        ("if n == 70: os.close(1); time.sleep(300)", "it closed its output"),
    ],
)  # fmt: skip
def test_answers_out_of_turn_are_traced_to_their_input(
    worker: Make, deed: str, message: str
) -> None:
    answers = run(worker(misdeed(deed), timeout_seconds=2), range(200))
    assert list(answers.failures) == [70]
    assert message in answers.failures[70].message
    assert_only(answers, {70: answers.failures[70]}, 200)


def test_a_worker_that_flushes_nothing_until_its_input_ends_is_understood(
    worker: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Answers that were held back may take long, as on a busy machine.
    monkeypatch.setattr("themis.subjects.processes.worker.GRACE_SECONDS", 60.0)
    subject = worker(misdeed("pass").replace("FLUSH = True", "FLUSH = False"), start_seconds=0.5)
    assert_only(run(subject, range(10)), {}, 10)
    assert_only(run(subject, range(3_000)), {}, 3_000)


@pytest.mark.slow
def test_starting_has_its_own_timeout(worker: Make) -> None:
    slow = "import time; time.sleep(1.0)\n" + misdeed("pass")
    assert_only(run(worker(slow, timeout_seconds=0.9), range(10)), {}, 10)
    slow = slow.replace("1.0", "300")
    with pytest.raises(SubjectError, match=r"3 inputs in a row.*no answer within 0.2 seconds"):
        run(worker(slow, start_seconds=0.2), range(10))


def test_a_subject_that_is_forgotten_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "w.py").write_text(misdeed("answer(id, os.getpid()); continue"))
    subject = WorkerSubject(AGES, [sys.executable, str(tmp_path / "w.py")])
    (pid,) = run(subject, [0]).outputs
    assert is_alive(pid)
    del subject
    gc.collect()
    assert not is_alive(pid)


def test_a_subject_travels_to_another_process_and_survives_a_fork(serving: Make) -> None:
    subject = serving("import os\nserve(lambda row: os.getpid())")
    (pid,) = run(subject, [0]).outputs
    again = pickle.loads(pickle.dumps(subject))
    assert run(again, [0]).outputs != [pid]
    again.close()
    reader, writer = os.pipe()
    if not (child := os.fork()):
        try:
            os.write(writer, json.dumps(run(subject, [0]).outputs).encode())
            subject.close()
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answers:
        assert json.loads(answers.read()) != [pid]
    os.waitpid(child, 0)
    assert run(subject, [0]).outputs == [pid]


def test_the_line_to_reproduce_an_answer_can_be_pasted(serving: Make) -> None:
    subject = serving("serve(lambda row: row['n'] + 1)")
    line = subject.reproduce({"n": 41})
    pasted = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True)
    assert json.loads(pasted.stdout) == {"id": 10000, "output": 42}


def test_what_the_script_prints_is_no_answer(serving: Make) -> None:
    body = """
import os, subprocess, sys
def decide(row):
    print("deciding", row)
    sys.stdout.flush()
    subprocess.run(["echo", "from a child"])
    try:
        return input()
    except EOFError:
        return row["n"] % 3
serve(decide)
print("bye")
"""
    subject = serving(body)
    assert_only(run(subject, range(50)), {}, 50)


def test_serve_calls_with_keywords_or_with_a_whole_batch(serving: Make) -> None:
    assert_only(run(serving("serve(lambda n: n % 3, keywords=True)"), range(50)), {}, 50)
    body = """
def decide(rows):
    if any(row["n"] == 7 for row in rows):
        raise ValueError("seven")
    return [row["n"] % 3 for row in rows]
serve(decide, batch=True)
"""
    failure = Failure(CRASH, "ValueError: seven")
    assert_only(run(serving(body), range(50)), {7: failure}, 50)
    short = run(serving("serve(lambda rows: [], batch=True)"), range(2))
    assert short.failures[1] == Failure(CRASH, "ValueError: inputs: 1, outputs: 0")


def test_the_helper_needs_the_standard_library_only(tmp_path: Path) -> None:
    shutil.copy(themis.worker.__file__, tmp_path / "alone.py")
    code = "import sys, alone; print([m for m in ('numpy', 'themis') if m in sys.modules])"
    command = [sys.executable, "-S", "-c", code]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
