"""Are the XML settings of Themis 1.0 and 2.0 converted, mistakes collected, and bombs refused?"""

from __future__ import annotations

import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from themis.cli import app
from themis.config.from_xml import convert_settings
from themis.config.reader import read_config
from themis.errors import ConfigError

SETTINGS = """<?xml version="1.0" encoding="UTF-8"?>
<settings>
  <name>loan &amp; credit</name>
  <command>python "my loan.py" --quick</command>
  <seed>42</seed>
  <inputs>
    <input>
      <name>sex</name><type>categorical</type>
      <values><value>male</value><value>female</value></values>
    </input>
    <input>
      <name>age group</name><type>continuousInt</type>
      <bounds><lowerbound>-1</lowerbound><upperbound>80</upperbound></bounds>
      <unit>years</unit>
    </input>
  </inputs>
  <tests>
    <test>
      <function>causalDiscrimination</function><conf>0.99</conf><margin>0.01</margin>
      <input_name>sex</input_name><input_name>age group</input_name><threshold>0.3</threshold>
    </test>
    <test>
      <function>groupDiscrimination</function><conf>0.95</conf><margin>0.05</margin>
      <input_name>sex</input_name>
    </test>
    <test>
      <function>discriminationSearch</function><conf>0.9</conf><margin>0.1</margin>
      <group>False</group><causal>True</causal><threshold>0.2</threshold>
    </test>
  </tests>
</settings>
"""


def convert(text: str) -> dict[str, Any]:
    return tomllib.loads(convert_settings(text.encode(), source="settings.xml"))


def mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        convert(text)
    return [str(each) for each in caught.value.mistakes]


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def test_every_part_is_converted() -> None:
    data = convert(SETTINGS)
    subject = data["subject"]
    assert subject["command"] == ["python", "my loan.py", "--quick"]
    assert (subject["kind"], subject["arguments"]) == ("command", "positional")
    assert data["inputs"] == {"sex": ["male", "female"], "age group": {"min": -1, "max": 80}}
    assert data["run"] == {"seed": 42, "confidence": 0.99, "error": 0.01}
    assert data["checks"] == [
        {"against": ["sex", "age group"], "measure": "causal", "max_score": 0.3},
        {"against": ["sex"], "measure": "group", "max_score": 0.2},
        {"search": True, "measure": "causal", "max_score": 0.2},
    ]


def test_unknown_elements_are_kept_as_comments() -> None:
    text = convert_settings(SETTINGS.encode(), source="settings.xml")
    assert "# <name>loan & credit</name>" in text
    assert "# <unit>years</unit>" in text


def test_converted_file_is_valid_and_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("settings.xml").write_text(SETTINGS.replace('python "my loan.py"', "sh 'my loan.sh'"))
    Path("my loan.sh").write_text('[ "$2" = male ] && echo 1 || echo 0\n')
    done = run("init", "--from", "settings.xml")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "wrote themis.toml, from settings.xml" in done.stdout
    config = read_config(Path("themis.toml"))
    assert config.schema.names == ("sex", "age group")
    assert len(config.checks) == 3
    assert run("validate").exit_code == 0
    done = run("score", "--against", "sex", "-q")
    assert "the groups of sex are 100 points apart" in done.stdout, done.stderr
    assert run("init", "--from", "settings.xml").exit_code == 2  # it is there already


def test_all_mistakes_are_reported_at_once_with_their_lines() -> None:
    text = """<settings>
    <seed>many</seed>
    <inputs>
      <input><name>sex</name><type>catgorical</type></input>
      <input><name>age</name><type>continuousInt</type>
        <bounds><lowerbound>9</lowerbound><upperbound>x</upperbound></bounds></input>
      <input><name>age</name><type>categorical</type><values/></input>
      <input><type>categorical</type><values><value>a</value><value>a</value></values></input>
      <input><name>low</name><type>continuousInt</type>
        <bounds><lowerbound>9</lowerbound><upperbound>1</upperbound></bounds></input>
    </inputs>
    <tests>
      <test><function>causalDiscriminaton</function><conf>99</conf></test>
      <test><function>groupDiscrimination</function><input_name>rase</input_name></test>
      <test><function>causalDiscrimination</function></test>
    </tests></settings>"""
    found = mistakes(text)
    for part in (
        "settings.xml:1: settings: there is no <command>",
        "settings.xml:2: settings.seed: 'many' is no seed",
        "settings.xml:4: settings.inputs.input: there is no type 'catgorical'; did you mean "
        "'categorical'?",
        "<upperbound> is 'x'",
        "'age' stands there twice",
        "'age' has no <value>",
        "there is no <name>",
        "has 'a' twice",
        "'low' goes from 9 to 1",
        "there is no function 'causalDiscriminaton'; did you mean 'causalDiscrimination'?",
        "<conf> is '99'; write a number between 0 and 1",
        "there is no input 'rase'",
        "causalDiscrimination has no <input_name>",
    ):
        assert any(part in each for each in found), (part, found)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is not XML: no element found"),
        ("<settings>", "is not XML"),
        ("<settings></wrong>", "is not XML: mismatched tag"),
        ("<other/>", "the outermost element is <other>"),
        ("<settings/>", "there is no <input>"),
        ('<?xml version="1.0" encoding="utf-99"?><settings/>', "settings.xml:1: "),
        ("<a>" * 200 + "</a>" * 200, "has more than 100 elements in one another"),
        ("<settings>&undefined;</settings>", "is not XML: undefined entity"),
        ("<settings>" + " " * 2**20 + "</settings>", "bytes; at most"),
    ],
)
def test_what_is_not_settings_is_said(text: str, problem: str) -> None:
    assert any(problem in each for each in mistakes(text))


LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))
BOMB = f'<!DOCTYPE s [<!ENTITY l0 "lol">{LAUGHS}]><settings>&l11;</settings>'
BLOWUP = f'<!DOCTYPE s [<!ENTITY a "{"a" * 50_000}">]><settings>{"&a;" * 50_000}</settings>'
EXTERNAL = '<!DOCTYPE s [<!ENTITY f SYSTEM "file:///etc/passwd">]><settings>&f;</settings>'
OUTSIDE = '<!DOCTYPE s SYSTEM "http://127.0.0.1:9/evil.dtd"><settings/>'
PARAMETER = '<!DOCTYPE s [<!ENTITY % p SYSTEM "file:///etc/passwd">%p;]><settings/>'


@pytest.mark.parametrize("text", [BOMB, BLOWUP, EXTERNAL, OUTSIDE, PARAMETER])
def test_entities_are_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("settings.xml").write_text(f'<?xml version="1.0"?>\n{text}')
    started = time.process_time()
    done = run("init", "--from", "settings.xml")
    assert time.process_time() - started < 20  # gigabytes of text take longer
    assert done.exit_code == 2
    assert done.stderr.startswith("error: settings.xml:2: has a document type")
    assert "root:" not in done.stderr
    assert not Path("themis.toml").exists()


@pytest.mark.parametrize("name", ["missing.xml", "table.parquet", "."])
def test_file_that_can_not_be_converted_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("init", "--from", name)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: --from: ")


NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="<&>`,")).filter(
    lambda text: text == text.strip() != ""
)


@given(NAMES, st.lists(NAMES, min_size=1, unique=True))
def test_any_names_and_values_survive(name: str, values: list[str]) -> None:
    listed = "".join(f"<value>{value}</value>" for value in values)
    text = (
        "<settings><command>loan</command><inputs><input>"
        f"<name>{name}</name><type>categorical</type><values>{listed}</values>"
        f"</input></inputs><x>{name}</x></settings>"
    )
    assert convert(text)["inputs"] == {name: values}
