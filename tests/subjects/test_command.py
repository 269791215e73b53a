"""Commands as subjects: real processes, and all that can go wrong with them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.external import is_alive, wait_until
from themis import Integers, Reals, RequestError, Schema
from themis.subjects.base import Answers
from themis.subjects.decisions import CRASH, INVALID, Failure
from themis.subjects.processes import children as processes
from themis.subjects.processes.command import CommandSubject

Write = Callable[[str], str]

LONG = 300  # seconds that a subject takes where it is left alone: longer than any test waits

NASTY = [
    "--help", "$(touch f)", "`touch f`", "a b", "tab\t", "line\nbreak", "\r\n", "'", '"', "\\",
    "*", "~", "{race}", "a,b", "🦊 é", "-", " ", "%s", "\x01", "",
]  # fmt: skip

ECHO = "import os, sys\nprint(os.fsencode('|'.join(sys.argv[1:])).hex())"


@pytest.fixture
def shell(tmp_path: Path) -> Write:
    """Writes an executable shell script: it starts much faster than Python."""

    def write(source: str) -> str:
        path = tmp_path / "subject.sh"
        path.write_text(f"#!/bin/sh\n{source}\n")
        path.chmod(0o755)
        return str(path)

    return write


def run(subject: CommandSubject, codes: list[list[int]] | None = None) -> Answers:
    if codes is None:
        size = subject.schema.characteristics[0].size
        codes = [[code] + [0] * (len(subject.schema) - 1) for code in range(size)]
    return subject.load(np.array(codes)).run()


def test_nasty_values_reach_the_subject_byte_for_byte(tmp_path: Path) -> None:
    schema = Schema(race=NASTY, age=Integers(18, 19))
    command = [sys.executable, "-S", "-c", ECHO]
    answers = run(
        CommandSubject(schema, command, cwd=tmp_path, jobs=2), [[n, 1] for n in range(len(NASTY))]
    )
    assert answers.failures == {}
    assert [bytes.fromhex(each) for each in answers.outputs] == [
        value.encode() + b"|19" for value in NASTY
    ]
    assert not (tmp_path / "f").exists()


def test_numbers_and_truth_values_are_written_as_people_write_them() -> None:
    schema = Schema(
        whole=Integers(18, 20),
        real=Reals(0, 2, step=0.1),
        money=Reals(0, 5000, step=1000),
        flag=[False, True],
        mixed=[1, 2.5, "x"],
        tiny=[1e-7, 1e22],
        many=Integers(0, 10**9),
    )
    subject = CommandSubject(schema, ["echo"])
    assert run(subject, [[2, 3, 1, 1, 0, 0, 10**9], [0, 0, 0, 0, 1, 1, 7]]).outputs == [
        "20 0.3 1000.0 true 1 0.0000001 1000000000",
        "18 0.0 0.0 false 2.5 10000000000000000000000.0 7",
    ]


@pytest.mark.parametrize(
    ("words", "arguments", "said"),
    [
        (["-n"], "named", "race purple age 20"),
        (["{input}"], None, '{"race": "purple", "age": 20}'),
        (["--age={age}", "{{{race}}}", "{{}}"], None, "--age=20 {purple} {}"),
    ],
)
def test_named_arguments_are_pairs_and_places_take_the_values(
    words: list[str], arguments: str | None, said: str
) -> None:
    schema = Schema(race=["green", "purple"], age=Integers(18, 120))
    given = {} if arguments is None else {"arguments": arguments}
    assert run(CommandSubject(schema, ["echo", *words], **given), [[1, 2]]).outputs == [said]


@pytest.mark.parametrize(
    ("command", "options", "words"),
    [
        (["echo", "{rcae}", "{age}"], {}, "did you mean 'race'"),
        (["echo", "{race}"], {}, "no place for 'age'"),
        (["echo", "{inputs}"], {}, "'{inputs}' is not the place of a characteristic"),
        (["echo", "{"], {}, "double the brace"),
        (["echo", "{race}", "{age}"], {"arguments": "json"}, "use one of them"),
        (["echo"], {"arguments": "named-ish"}, "'named-ish' is no way to pass values"),
        (["echo"], {"answer": "lastline"}, "did you mean 'last-line'"),
        (["echo"], {"timeout_seconds": 0}, "must be positive"),
        (["echo"], {"cwd": Path("/nowhere")}, "there is no folder /nowhere"),
        ([], {}, "must be a list"),
        (["echo"], {"env": {"A=B": "c"}}, "'A=B' can't be set"),
    ],
)
def test_what_can_not_work_is_refused_at_once(
    command: list[str], options: dict[str, Any], words: str
) -> None:
    schema = Schema(race=["green"], age=Integers(18, 20))
    with pytest.raises(RequestError, match=words):
        CommandSubject(schema, command, **options)


@pytest.mark.parametrize("value", ["a\0b", "a\ud800b", "x" * (128 * 1024)])
def test_values_that_no_argument_can_hold_are_refused_before_the_first_run(value: str) -> None:
    with pytest.raises(RequestError) as caught:
        CommandSubject(Schema(age=[1], race=["green", value]), ["echo"])
    text = str(caught.value)
    assert "inputs.race" in text
    assert ascii(value[:3])[1:-1] in text
    text.encode()  # can be printed
    assert "\n" not in text


def test_a_command_that_can_not_be_run_is_named(tmp_path: Path, shell: Write) -> None:
    schema = Schema(race=["green"])
    (tmp_path / "python3").symlink_to(sys.executable)
    with pytest.raises(RequestError, match=r"'python' on the PATH; did you mean 'python3'\?"):
        CommandSubject(schema, ["python"], env={"PATH": str(tmp_path)})
    with pytest.raises(RequestError, match=f"there is no file {tmp_path}/pithon3"):
        CommandSubject(schema, ["./pithon3"], cwd=tmp_path)
    path = shell("echo 1")
    Path(path).chmod(0o400)
    with pytest.raises(RequestError, match=f"{path} is not executable; chmod"):
        CommandSubject(schema, [path])


def test_with_exit_code_answers_every_code_is_an_output_and_a_signal_a_crash(shell: Write) -> None:
    path = shell('[ "$1" = 2 ] && kill -TERM $$; exit $1')
    answers = run(CommandSubject(Schema(code=[0, 1, 2, 255]), [path], answer="exit-code"))
    assert answers.outputs == ["0", "1", None, "255"]
    assert answers.failures == {2: Failure(CRASH, "killed by SIGTERM")}


@pytest.mark.parametrize("waits", [True, False])
def test_descendants_that_are_left_behind_neither_delay_nor_survive(
    shell: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    if not waits:  # as on systems where the end of a process can't be waited for
        monkeypatch.setattr(processes, "_open_exit", lambda pid: None)
    pids = tmp_path / "pids"
    path = shell(f"sleep {LONG} & echo $! > {pids}; echo 1")
    subject = CommandSubject(Schema(a=[0]), [path])
    assert run(subject).outputs == ["1"]  # no timeout, so they were not waited for
    wait_until(lambda: not is_alive(int(pids.read_text())), LONG / 2)


def test_a_command_that_does_not_read_its_input_is_no_obstacle(shell: Write) -> None:
    path = shell("exec <&-; echo 1")
    subject = CommandSubject(Schema(text=["x" * 500_000]), [path], arguments="json")
    assert run(subject).outputs == ["1"]


@pytest.mark.parametrize(
    ("prints", "answer", "message"),
    [
        ("true", "last-line", "it printed nothing"),
        ("echo; echo ' '", "stdout", "it printed nothing"),
        ("echo oops >&2", "last-line", "it printed nothing: oops"),
        (r"printf '\377\376'", "last-line", r"it printed something that is not UTF-8: b'\xff\xfe'"),
        ("echo hello", "/a", "it printed something that is not JSON: 'hello'"),
        ("""echo '{"b": 1}'""", "/a", 'there is no /a in {"b": 1}'),
        ("""echo '{"a": null}'""", "/a", "/a is null, not a decision"),
        ("""echo '{"a": NaN}'""", "/a", "it printed something that is not JSON: '{\"a\": NaN}'"),
    ],
)
def test_empty_or_unexpected_output_is_an_outcome_of_its_own(
    shell: Write, prints: str, answer: str, message: str
) -> None:
    answers = run(CommandSubject(Schema(a=[0]), [shell(prints)], answer=answer))
    assert answers.failures == {0: Failure(INVALID, message)}


def test_the_answer_is_found_where_it_was_said_to_be(shell: Write) -> None:
    path = shell("""echo loading; echo '{"a/b": [0, {"c": true}], "n": 1.0}'; echo""")
    for answer, expected in (
        ("/a~1b/1/c", "true"),
        ("/n", "1.0"),
        ("/a~1b/0", "0"),
        ("last-line", '{"a/b": [0, {"c": true}], "n": 1.0}'),
        ("stdout", 'loading\n{"a/b": [0, {"c": true}], "n": 1.0}'),
    ):
        assert run(CommandSubject(Schema(a=[0]), [path], answer=answer)).outputs == [expected]


def test_four_jobs_run_at_once_and_keep_the_order(shell: Write, tmp_path: Path) -> None:
    meet = 'touch here.$1; until [ "$(echo here.[0-3])" = "$(echo here.0 here.1 here.2 here.3)" ]'
    source = f'{meet}; do sleep 0.01; done; [ "$1" = 5 ] && exit 1; echo $1'
    subject = CommandSubject(
        Schema(a=Integers(0, 15)), [shell(source)], jobs=4, cwd=tmp_path, timeout_seconds=60
    )
    answers = run(subject)  # fewer jobs would wait for the others until their time is over
    assert list(answers.failures) == [5]
    assert [int(each) for each in answers.outputs if each] == [n for n in range(16) if n != 5]


@pytest.mark.slow
def test_two_thousand_runs_leave_neither_descriptors_nor_zombies() -> None:
    def descriptors() -> int:
        return len(os.listdir("/dev/fd"))  # noqa: PTH208 - the same cost before and after

    subject = CommandSubject(Schema(a=Integers(0, 1999)), ["true"], answer="exit-code", jobs=2)
    run(subject, [[0]])
    before = descriptors()
    assert run(subject).outputs == ["0"] * 2000
    assert descriptors() <= before
    with contextlib.suppress(ChildProcessError):
        assert os.waitpid(-1, os.WNOHANG) == (0, 0)


def test_the_fingerprint_follows_the_script_and_its_surroundings(shell: Write) -> None:
    path = Path(shell("echo 1"))

    def fingerprint(**options: Any) -> str:
        command = ["sh", path.name]
        return CommandSubject(Schema(a=[0]), command, cwd=path.parent, **options).fingerprint()

    seen = [fingerprint(), fingerprint(version="2"), fingerprint(arguments="named")]
    seen += [fingerprint(env={"A": "secret"}), fingerprint(env={"A": "other"})]
    assert seen[0] == fingerprint()
    path.write_text("#!/bin/sh\necho 0\n")
    seen.append(fingerprint())
    assert len(set(seen)) == len(seen)
    assert not any("secret" in each for each in seen)


@pytest.mark.parametrize("mode", ["positional", "named", "json", "csv"])
@pytest.mark.slow
def test_the_line_to_reproduce_a_run_can_be_pasted(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "a folder" / "loan's.py"
    path.parent.mkdir()
    path.write_text(
        "import os, sys\nif sys.argv[1:]: print(ascii(sys.argv[1:]))\n"
        "else: print(ascii(sys.stdin.buffer.read()))\nprint(os.environ['KEY'], file=sys.stderr)"
    )
    schema = Schema(race=NASTY, age=Integers(18, 20))
    subject = CommandSubject(
        schema, [sys.executable, path.name], arguments=mode, cwd=path.parent, env={"KEY": "hush"}
    )
    for code in range(len(NASTY)):
        line = subject.reproduce({"race": NASTY[code], "age": 19})
        assert "hush" not in line
        assert line.isprintable()  # what is shown is what is run
        env = os.environ | {"KEY": "hush"}
        pasted = subprocess.run(
            ["bash", "-c", line], capture_output=True, text=True, env=env, check=True
        )
        assert pasted.stdout.strip() == run(subject, [[code, 1]]).outputs[0]
