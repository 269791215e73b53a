"""What if: one person's values in a form, what they get, and which single changes alter that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from tests.web.serving import Server, serving

FILE = """\
version = 1
[subject]
kind = "python"
function = "decide:decide"
favourable = ["yes"]

[inputs]
sex = { values = ["female", "male"], protected = true }
title = { from = "sex", values = { female = "Ms", male = "Mr" } }
relation = { values = ["Wife", "Husband", "None"], follows = "sex", \
as = { male = { Wife = "Husband" }, female = { Husband = "Wife" } } }
age = { min = 18, max = 90, bins = [30, 60] }
income = { min = 0, max = 1000, step = 10, missing = 0.1 }
"<script>alert(1)</script>" = ["plain", "<b>bold</b>"]

[constraints]
grown = "age >= 21 or relation == 'None'"
"""
PROGRAM = """
print("loaded")
def decide(person):
    print("noise on stdout")
    assert person["title"] == {"female": "Ms", "male": "Mr"}[person["sex"]]
    if person["<script>alert(1)</script>"] == "<b>bold</b>":
        raise ValueError("<i>too bold</i>")
    return "yes" if person["relation"] == "Husband" or (person["income"] or 0) > 500 else "no"
"""
PERSON = {
    "sex": '"female"',
    "relation": '"Wife"',
    "age": "40",
    "income": "100",
    "<script>alert(1)</script>": '"plain"',
}


def project(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "themis.toml").write_text(FILE)
    (folder / "decide.py").write_text(PROGRAM)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(project(tmp_path_factory.mktemp("trying") / "project")) as found:
        found.post("/confirm")
        yield found


def answer(server: Server, **changed: str) -> str:
    """The text of what a person gets, with some values changed."""
    values = {f"value:{name}": value for name, value in {**PERSON, **changed}.items()}
    page = server.post("/try", values)
    assert page.status_code == 200, page.text
    shown = page.text.partition('id="answer"')[2]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", shown.partition(">")[2])).split())


def test_an_ordinary_person_is_there_to_begin_with_and_inert(server: Server) -> None:
    page = server.get("/try").text
    assert 'name="value:age"' in page
    assert 'name="value:title"' not in page  # it is derived
    assert "single changes were run" in page
    assert "<script>alert" not in page
    assert "<b>bold" not in page


def test_a_change_is_run_with_what_follows_it(server: Server) -> None:
    said = answer(server)
    assert said.startswith("Decision no ")
    for each in ("sex: female → male protected", "relation: Wife → Husband", "title: Ms → Mr"):
        assert each in said
    assert answer(server, income="").startswith("Decision no ")  # it may be missing


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("age", "", "age: it needs a value; choose from 18 to 90"),
        ("age", "17", "age: out of range: '17'"),
        ("age", "19", "constraint 'grown'"),
        ("age", "19", "change relation or age"),
        ("income", "55", "income: off step: '55'; choose from 0 to 1000 in steps of 10"),
        ("sex", '"femal"', "sex: unknown value: 'femal'; did you mean 'female'?"),
        ("sex", "[[", "sex: unknown value: '[['"),
    ],
)
def test_a_value_that_is_none_is_refused(server: Server, name: str, given: str, said: str) -> None:
    assert said in answer(server, **{name: given})


def test_a_failure_is_shown_with_its_reason_and_is_no_decision(server: Server) -> None:
    said = answer(server, **{"<script>alert(1)</script>": '"<b>bold</b>"'})
    assert "Decision none: ValueError: <i>too bold</i>" in said
    assert "1 gets one" in said
    assert "1 change got no decision: ValueError" in answer(server)


def test_a_program_that_changed_is_confirmed_and_loaded_anew(tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    with serving(folder) as server:
        server.post("/confirm")
        assert answer(server).startswith("Decision no ")
        for name, content, said in (
            ("decide.py", 'def decide(person):\n    return "changed"\n', "Decision changed "),
            ("decide.py", "import os\nos.abort()\n", "the subject ended with -6 instead of answ"),
            ("themis.toml", f"{FILE}\n# changed\n", "the subject ended with -6 instead of answ"),
        ):
            (folder / name).write_text(content)
            assert server.post("/try", {"value:age": "40"}).headers["location"] == "/run"
            server.post("/confirm")
            assert said in answer(server)


def test_nothing_is_run_before_the_file_was_confirmed(tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    with serving(folder) as server:
        assert server.get("/try").headers["location"] == "/run?then=/try"
        assert server.post("/try", {"value:age": "40"}).headers["location"] == "/run"
    with serving(folder, "--read-only") as server:
        assert server.post("/try", {"value:age": "40"}).status_code == 403
