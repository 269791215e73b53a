"""Does the command do what it is told, end with the right code, and never show a traceback?"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.external import PATIENCE, wait_until
from tests.projects import BIASED, FAIR, INPUTS, Project, process, run
from themis.cli.session import Session
from themis.config.reader import read_config

# Start-up ---------------------------------------------------------------------------------
MODULES = 400  # about 250 today, in 0.15 s
HEAVY = ("numpy", "scipy", "pydantic", "rich", "themis.audit.audit")


def loaded_by(arguments: list[str]) -> set[str]:
    """The modules that a command has loaded when it ends."""
    code = textwrap.dedent(f"""
        import sys
        sys.argv = ["themis", *{arguments!r}]
        from themis.cli import main
        try:
            main()
        finally:
            print("\\nLOADED", *sys.modules)
    """)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert "LOADED" in done.stdout, done.stdout + done.stderr
    return {*done.stdout.rpartition("LOADED ")[2].split()}


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_import_little_and_nothing_heavy(option: str) -> None:
    loaded = loaded_by([option])
    assert not loaded & {*HEAVY}
    assert len(loaded) < MODULES


SPARED = (
    *("themis.search", "themis.audit.forecast", "themis.audit.replay", "themis.audit.saved_tests"),
    *("themis.scores.people", "themis.scores.apparent", "themis.scores.outcomes"),
    *("themis.scores.proxies", "themis.scores.paper", "themis.scores.exact"),
    "themis.results.saved",
    *("themis.subjects.processes.command", "themis.subjects.processes.worker"),
    *("themis.subjects.http", "themis.engine.executors", "themis.show.reports"),
    *("scipy.special", "scipy.stats", "numpy.f2py", "pandas", "asyncio", "ssl", "rich.progress"),
)


def test_a_plain_score_imports_nothing_that_only_others_need(project: Project) -> None:
    assert not loaded_by(["score", "--quiet", str(project())]) & {*SPARED}


# Wrong usage: 2 ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["scor"], "'score'?"),
        (["score", "--erorr", "0.1"], "--error"),
        (["diff", "a.json"], "AFTER"),
        (["score", "--error", "abc"], "'--error'"),
    ],
)
def test_wrong_calls_end_with_2_and_name_what_is_meant(arguments: list[str], said: str) -> None:
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_every_wrong_option_is_printed_with_its_name(project: Project) -> None:
    project()
    done = run("score", "--against", "rase,sex", "--against", "incme")
    assert (done.exit_code, done.stdout) == (2, "")
    unknown = "error[unknown-name]: --against: there is no characteristic"
    assert done.stderr.splitlines() == [
        f"{unknown} 'rase'; did you mean 'race'?",
        f"{unknown} 'incme'; did you mean 'income'?",
        "2 mistakes; themis explain CODE tells more",
    ]
    done = run("score", "--error", "7", "--confidence", "99", "--max-executions", "0")
    assert done.exit_code == 2
    for name in ("--error: ", "--confidence: ", "--max-executions: "):
        assert f"error[setting]: {name}" in done.stderr


def test_every_mistake_of_the_file_is_printed(project: Project) -> None:
    project(inputs="race = []\nage = { min = 9, max = 1 }\n", extra="[rum]\nseed = 1\n")
    for command in ("score", "validate"):
        done = run(command)
        assert done.exit_code == 2
        lines = done.stderr.splitlines()
        assert len(lines) >= 4
        assert all(re.match(r"error\[[\w-]+\]: themis.toml:", line) for line in lines[:-1])
        assert lines[-1] == f"{len(lines) - 1} mistakes; themis explain CODE tells more"


def test_without_protected_characteristics_a_set_must_be_named(project: Project) -> None:
    project("return 'approved'", inputs=INPUTS.replace(", protected = true", ""))
    done = run("score")
    assert done.exit_code == 2
    assert "name a set, e.g. --against race" in done.stderr
    assert run("score", "--against", "race", "-q").exit_code == 0
    shown = " ".join(run("validate").stdout.split())
    assert "no characteristic is marked protected" in shown
    assert "warning: no trial got a favourable decision: the outputs were 'approved'" in shown


@pytest.mark.parametrize("output", ["missing/result.json", "."])
def test_place_of_the_result_is_checked_before_the_run(project: Project, output: str) -> None:
    project(f"open('ran', 'w').close()\n{FAIR}")
    done = run("score", "-o", output)
    assert done.exit_code == 2
    assert "error[output]: --output: " in done.stderr
    assert not Path("ran").exists()


# score: 0 ---------------------------------------------------------------------------------
def test_score_measures_the_sets_of_the_file_unless_others_are_named(project: Project) -> None:
    plain = INPUTS.replace(", protected = true", "")
    for inputs in (INPUTS, plain):  # what is protected does not matter then
        project(inputs=inputs, extra='[run]\nagainst = [["race"], ["sex", "race"]]')
        data = json.loads(run("score", "--json", "--measure", "group").stdout)
        assert [each["against"] for each in data["scores"]] == [["race"], ["race", "sex"]]
        shown = run("validate").stdout
        assert "race,sex: " in shown
        assert "warning" not in shown
    data = json.loads(run("score", "--json", "--measure", "group", "--against", "sex").stdout)
    assert [each["against"] for each in data["scores"]] == [["sex"]]


def test_validate_warns_of_failures_that_are_allowed(project: Project) -> None:
    body = "if person['income'] >= 50: raise ValueError('boom')\nreturn 1"
    few = 'race = ["a", "b"]\nincome = { min = 0, max = 90, step = 45 }'
    for allowed, code, said in (("0.9", 0, "warning"), ("0.01", 3, "error")):
        path = project(body, inputs=few)
        limit = f"favourable = [1]\nmax_failures = {allowed}"
        path.write_text(path.read_text().replace("favourable = [1]", limit))
        done = run("validate")
        assert done.exit_code == code
        assert done.stderr.startswith(f"{said}: the subject failed: crash in ")


def test_json_is_the_only_thing_on_stdout(project: Project) -> None:
    noise = "print('noise')\nos.write(1, b'raw noise\\n')\nos.system('echo child noise')\n"
    config = project("return int(person['race'] == 'green')", head=noise)
    Path("elsewhere").mkdir()
    done = process("score", str(config), "--json", "--against", "race,sex", folder="elsewhere")
    assert done.returncode == 0
    data = json.loads(done.stdout)
    assert [data["format"], *(s["measure"] for s in data["scores"])] == [2, "causal", "group"]
    assert (data["scores"][0]["against"], data["scores"][0]["score"]) == (["race", "sex"], 1.0)
    assert "raw noise" in done.stderr


def test_command_line_overrides_the_file(project: Project) -> None:
    project(extra="[run]\nseed = 1\nerror = 0.1\nconfidence = 0.9\n")
    options = ["--error", "0.04", "--seed", "5", "--stopping", "paper", "--measure", "causal"]
    data = json.loads(run("score", "--json", *options).stdout)
    found = [data["scores"][0][name] for name in ("error", "confidence", "stopping")]
    assert [data["seed"], *found] == [5, 0.04, 0.9, "paper"]


def test_piped_output_is_plain_in_any_encoding(project: Project) -> None:
    project()
    plain = {"PYTHONIOENCODING": "ascii", "TERM": "xterm-256color"}
    done = process("score", "--against", "race", **plain)
    assert (done.returncode, done.stderr, "\x1b" in done.stdout) == (0, "", False)


@pytest.mark.parametrize("option", ["--json", "-v"])
@pytest.mark.slow
def test_closed_pipe_leaves_no_traceback(project: Project, option: str) -> None:
    project()
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "themis", "score", "--against", "race", option]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=PATIENCE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_full_disk_does_not_lose_what_was_learned(project: Project) -> None:
    project()
    done = run("score", "--against", "race", "-o", "/dev/full")
    assert done.exit_code == 2
    assert "■ decision changes" in done.stdout
    assert "error[output]: --output: '/dev/full' can't be written: No space left" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        *("score --against race", "score --against race --json", "validate"),
        *("report result.json --format md -o -", "diff result.json result.json"),
        *("replay result.json", "schema", "--help", "--version"),
    ],
)
@pytest.mark.slow
def test_full_disk_behind_stdout_is_told_in_one_line(project: Project, command: str) -> None:
    """Whether it is met while something is written or only at the end."""
    project()
    if "result.json" in command:
        run("score", "--against", "race", "-o", "result.json")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "themis", *command.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            env={**os.environ, "PYTHONUNBUFFERED": "" if "json" in command else "1"},
        )
    said = "error: standard output can't be written: No space left on device; use another place\n"
    assert (done.returncode, done.stderr) == (2, said)


# A failing subject: 3 ---------------------------------------------------------------------
def test_failing_subject_ends_with_3_and_an_example(project: Project) -> None:
    project("if person['income'] % 2: raise ValueError('no\\nodd ones')\nreturn 1")
    done = run("score")
    assert done.exit_code == 3
    assert "error: the subject failed: crash" in done.stderr
    said = r"ValueError: no\\nodd ones \(project_\d+\.py:4\) for the input: race "
    assert re.search(said, done.stderr)
    assert "Traceback" not in done.stderr


def test_a_subject_that_exits_does_not_end_a_command_as_if_all_went_well(project: Project) -> None:
    project("sys.exit(0)")
    for command in ("score", "validate"):
        done = run(command)
        assert (done.exit_code, "error: the subject" in done.stderr) == (3, True)
    ended = process("score", str(project("os._exit(0)")))
    assert (ended.returncode, ended.stdout) == (3, "")
    assert "error: the subject ended the program with os._exit(0)" in ended.stderr


# Interrupted: 130 -------------------------------------------------------------------------
SLOW = "time.sleep(0.002)\nreturn 1 if person['race'] == 'green' else 0"
STUBBORN = "try:\n    time.sleep(0.005)\nexcept BaseException:\n    pass\nreturn 1"


@pytest.mark.parametrize("body", [SLOW, STUBBORN])
@pytest.mark.slow
def test_interrupt_saves_what_was_learned_and_ends_soon(project: Project, body: str) -> None:
    project(f"open('begun', 'a').write('x')\n{body}")
    options = ["--error", "0.01", "--against", "race", "-o", "result.json"]
    child = subprocess.Popen(
        [sys.executable, "-m", "themis", "score", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: Path("begun").exists() and Path("begun").stat().st_size > 200)
    child.send_signal(signal.SIGINT)
    stdout, stderr = child.communicate(timeout=PATIENCE)
    assert child.returncode == 130, stderr
    assert "interrupted; the same command gives the full answer: themis score" in stderr
    assert "Traceback" not in stderr
    data = json.loads(Path("result.json").read_text())
    assert data["stopped"] == "interrupted"
    assert data["scores"][0]["stopped"] == "interrupted"
    assert data["scores"][0]["samples"] > 0
    assert "race" in stdout


@pytest.mark.parametrize("command", ["score", "audit"])
@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_in_an_exact_run_keeps_what_was_learned(
    project: Project, command: str, number: str, code: int
) -> None:
    inputs = 'race = { values = ["green", "purple"], protected = true }\n'
    inputs += "income = { min = 0, max = 999 }\n"
    body = f"calls.append(1)\nif len(calls) == 900: os.kill(os.getpid(), signal.{number})"
    project(f"{body}\n{BIASED}", inputs=inputs, head="import signal\ncalls = []")
    done = process(command, "--exact", "--json")
    assert done.returncode == code, done.stderr
    data = json.loads(done.stdout)
    assert data["stopped"] == "interrupted"
    (score,) = data["scores"]
    assert 0 < score["samples"] < 900
    assert 0 < score["low"] < score["high"] < 1


LATE = "import atexit; atexit.register(lambda: os.kill(os.getpid(), 2))"
LINGERING = """
import atexit
def linger():
    time.sleep(1.0)
    os.kill(os.getpid(), 2)
    time.sleep(600)
atexit.register(linger)
import themis.cli.printing
themis.cli.printing.ENDING_SECONDS = 0.5
"""


@pytest.mark.parametrize(
    ("head", "code"), [("raise KeyboardInterrupt", 130), (LATE, 0), (LINGERING, 130)]
)
def test_interrupts_before_and_after_the_runs_show_no_traceback(
    project: Project, head: str, code: int
) -> None:
    done = process("score", "--quiet", str(project(head=head)))
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "KeyboardInterrupt" not in done.stderr


# Bugs -------------------------------------------------------------------------------------
def test_internal_error_shows_its_traceback_only_on_demand(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project()
    monkeypatch.setattr(Session, "run", lambda *_, **__: 1 // 0)
    done = run("score")
    assert done.exit_code not in range(5)
    assert "internal error: ZeroDivisionError: " in done.stderr
    assert "please report" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Traceback" in run("score", "-v").stderr
    monkeypatch.setenv("THEMIS_DEBUG", "1")
    assert "Traceback" in run("score").stderr


# init, validate, schema, demo -------------------------------------------------------------
@pytest.mark.slow
def test_init_validate_and_score_work_one_after_the_other(tmp_path: Path) -> None:
    first = process("init", folder=tmp_path, PATH=os.defpath)
    assert first.returncode == 0
    assert "next: python -m themis validate\n" in first.stdout
    assert read_config(tmp_path / "themis.toml").schema.protected == ("sex", "race")
    assert process("validate", folder=tmp_path).returncode == 0
    third = process("score", folder=tmp_path)
    assert third.returncode == 0, third.stderr
    assert "sex   ■ decision changes" in third.stdout


def test_init_overwrites_only_by_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("themis.toml").write_text("mine")
    Path("loan.py").write_text("mine too")
    done = run("init")
    assert done.exit_code == 2
    assert "--force" in done.stderr
    assert Path("themis.toml").read_text() == "mine"
    assert run("init", "--force").exit_code == 0
    assert Path("themis.toml").read_text() != "mine"
    assert Path("loan.py").read_text() == "mine too"


def test_validate_shows_domain_trials_and_what_a_command_will_cost(project: Project) -> None:
    project(extra='[constraints]\nrich = "income > 49"\n')
    done = run("validate")
    assert done.exit_code == 0
    for said in (
        *("40,000,000", "20,000,000", "1 constraint leaves 50.0 %", "8 trial inputs"),
        *("what themis score will cost", r"race: about [\d,]+ executions"),
        r"all together about [\d,]+ executions \(give or take a factor of 5\)",
    ):
        assert re.search(said, done.stdout), said

    def foreseen(*arguments: str) -> Any:
        return json.loads(run("validate", "--for", *arguments, "--json").stdout)

    audit, one = foreseen("audit")["forecast"], foreseen("score", "--against", "sex")["forecast"]
    assert [each["name"] for each in audit["parts"]] == ["race", "sex", "race,sex"]
    assert audit["among"] == 2
    assert [each["name"] for each in one["parts"]] == ["sex"]
    assert 0 < one["executions"] < audit["executions"]
    search = foreseen("search", "--max-size", "1")
    assert (search["forecast"]["parts"], search["searches"][0]["sets"]) == ([], 4)
    assert "a search among 4 sets" in search["costs"][0]
    assert "what themis search will cost" in run("validate", "--for", "search").stdout


def test_validate_of_a_failing_subject_ends_with_3(project: Project) -> None:
    project("raise ValueError('never')")
    done = run("validate")
    assert done.exit_code == 3
    assert "ValueError: never" in done.stderr
    assert "no input was answered: fix the subject, or what it is given" in done.stderr
    first = "themis.toml can be read, but the subject answered none of 8 trial inputs"
    assert done.stdout.startswith(first)
    assert "will cost" not in done.stdout
    assert "max_failures" not in done.stderr + run("score").stderr


def test_what_may_void_an_answer_is_said_with_quiet_too(project: Project) -> None:
    project("return 'yes' if person['race'] == 'green' else 'no'")  # favourable is 1
    for arguments in (("score",), ("search", "--threshold", "0.1", "--measure", "group")):
        done = run(*arguments, "--quiet")
        assert "warning: no output was favourable" in " ".join(done.stdout.split())
