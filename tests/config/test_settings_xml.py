"""Are the XML settings of Themis 1.0 and 2.0 converted, mistakes told, and bombs refused?"""

from __future__ import annotations

import json
import time
import tomllib
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

from tests.projects import run
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
      <name>race</name><type>categorical</type>
      <values><value>green</value><value>purple</value></values>
    </input>
    <input>
      <name>age group</name><type>continuousInt</type>
      <bounds><lowerbound>-1</lowerbound><upperbound>3</upperbound></bounds>
      <unit>years</unit>
    </input>
  </inputs>
  <tests>
    <test>
      <function>group_discrimination</function><conf>0.95</conf><margin>0.05</margin>
      <i_fields><input_name>sex</input_name></i_fields>
    </test>
    <test>
      <function>causal_discrimination</function><conf>0.99</conf><margin>0.01</margin>
      <i_fields><input_name>age group</input_name><input_name>sex</input_name></i_fields>
    </test>
    <test>
      <function>discrimination_search</function><threshold>0.2</threshold><conf>0.9</conf>
      <margin>0.1</margin><group/><causal/>
    </test>
  </tests>
</settings>
"""


def written(text: str) -> str:
    """The file that some settings become; it has to be read without a mistake."""
    Path("themis.toml").write_text(convert_settings(text.encode(), source="settings.xml"))
    read_config(Path("themis.toml"))
    return Path("themis.toml").read_text()


def convert(text: str) -> dict[str, Any]:
    return tomllib.loads(written(text))


def mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        written(text)
    return [str(each) for each in caught.value.mistakes]


def settings_with(tests: str = "", command: str = "loan") -> str:
    return (
        f"<settings><command>{command}</command><inputs><input><name>sex</name>"
        "<type>categorical</type><values><value>m</value><value>f</value></values></input></inputs>"
        f"<tests>{tests}</tests></settings>"
    )


def test_every_part_is_converted() -> None:
    text = written(SETTINGS)
    for said in (
        "# The settings were called loan & credit.",
        "# Not converted: <unit>.",
        "Both ends of a range are",
        "group of sex; causal",
        "confidence = 0.99  # the strictest of several",
    ):
        assert said in text
    data = convert(SETTINGS)
    camel = SETTINGS.replace("group_disc", "groupDisc").replace("causal_disc", "causalDisc")
    assert convert(camel.replace("discrimination_search", "discriminationSearch")) == data
    subject = data["subject"]
    assert subject["command"] == ["python", "my loan.py", "--quick"]
    assert (subject["kind"], subject["arguments"]) == ("command", "positional")
    assert subject["favourable"] == ["1"]
    assert data["inputs"] == {
        "sex": {"values": ["male", "female"], "protected": True},
        "race": ["green", "purple"],  # no test names it
        "age group": {"min": -1, "max": 3, "protected": True},
    }
    assert data["run"] == {
        "against": [["sex"], ["age group", "sex"]],
        "seed": 42,
        "confidence": 0.99,
        "error": 0.01,
    }
    assert data["checks"] == [
        {"search": True, "measure": "causal", "max_score": 0.2},
        {"search": True, "measure": "group", "max_score": 0.2},
    ]


@pytest.mark.parametrize(
    ("test", "measures", "limit", "remark"),
    [
        ("<threshold>0.3</threshold><group/>", ["group"], 0.3, ""),
        ("<causal></causal><threshold>0.3</threshold>", ["causal"], 0.3, ""),
        ("<threshold>0.3</threshold><group/><causal/>", ["causal", "group"], 0.3, ""),
        ("<threshold>0.3</threshold>", [], 0.3, "neither <group/> nor <causal/>"),
        ("<threshold>0</threshold><causal/>", ["causal"], 0.001, "choose your own"),
        ("<threshold>1.0</threshold><causal/>", ["causal"], 0.999, "choose your own"),
        ("<causal/>", ["causal"], 0.2, "choose your own"),
    ],
)
def test_a_search_checks_the_measures_whose_elements_are_there(
    test: str, measures: list[str], limit: float, remark: str
) -> None:
    text = written(settings_with(f"<test><function>discrimination_search</function>{test}</test>"))
    assert remark in text
    assert tomllib.loads(text).get("checks", []) == [
        {"search": True, "measure": measure, "max_score": limit} for measure in measures
    ]


@pytest.mark.some_slow(core=2)
def test_imported_settings_measure_what_the_old_tests_measured() -> None:
    command = "cd programs &amp;&amp; './my loan'"
    Path("settings.xml").write_text(SETTINGS.replace('python "my loan.py" --quick', command))
    program = Path("programs", "my loan")
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nif [ "$3" -ge 2 -o "$1 $2" = "male green" ]; then echo 1; fi\n')
    program.write_text(program.read_text().replace("; fi", "; else echo 0; fi"))
    program.chmod(0o755)
    done = run("init", "--from", "settings.xml")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "wrote themis.toml, from settings.xml" in done.stdout
    assert run("init", "--from", "settings.xml").exit_code == 2  # it is there already
    done = run("score", "--json")
    assert done.exit_code == 0, done.stderr
    scores = json.loads(done.stdout)["scores"]
    found = {(tuple(each["against"]), each["measure"]): each["score"] for each in scores}
    both = ("sex", "age group")  # for each race, and for each of five ages of which three are low
    assert found == pytest.approx(
        {(("sex",), "causal"): 0.3, (("sex",), "group"): 0.3}
        | {(both, "causal"): 1.0, (both, "group"): 1.0}
    )


@pytest.mark.parametrize(
    ("line", "subject"),
    [
        ("python loan.py", {"command": ["python", "loan.py"]}),
        ("cd a && python y", {"command": ["python", "y"], "cwd": "a"}),
        ("cd /srv/a;   './my y' -x", {"command": ["./my y", "-x"], "cwd": "/srv/a"}),
        ("awk '{print}'", {"command": ["awk", "{{print}}"]}),
        ("y cd A=1", {"command": ["y", "cd", "A=1"]}),
    ],
)
def test_lines_for_a_shell_become_commands_without_one(line: str, subject: dict[str, Any]) -> None:
    found = convert(settings_with(command=escape(line)))["subject"]
    assert {key: found[key] for key in ("command", "cwd") if key in found} == subject


@pytest.mark.parametrize(
    "line",
    [
        *("make && ./y", "cd a && make && ./y", "./y | tail -1", "./y || true", "./y; true"),
        *("./y 2> /dev/null", "./y &", "python $FILE", 'python "$FILE"', "A=$B ./y", "./y `pwd`"),
        *("A=1 y", "cd a && cd b && y", "y '&&'", "y a\\&b"),
        *("./y *.csv", "~/y", "(./y)", "cd a", "cd a &&", "cd $HOME && ./y"),
    ],
)
def test_what_takes_a_shell_is_refused_with_the_remedy(line: str) -> None:
    (mistake,) = mistakes(settings_with(command=escape(line)))
    assert f"command: {line!r} needs a shell for '" in mistake
    assert 'write the line into a script, with "$@" for the values' in mistake
    (mistake,) = mistakes(settings_with(command="y 'a"))
    assert "can't be split into words: no closing quotation; close the quotes" in mistake


FAULTS = [  # what is written instead of a part of the settings, and what is said of it
    ('<command>python "my loan.py" --quick</command>', "", "2: settings: there is no <comm"),
    ("42", "many", "5: seed: 'many' is no whole number; write one, such as 42"),
    ("categorical", "catgorical", "7: input: there is no type 'catgorical'; did you mean "),
    (">3<", ">x<", "17: upperbound: 'x' is no whole number"),
    ("<name>sex</name>", "", "7: input: there is no <name>"),
    ("<lowerbound>-1</lowerbound>", "", "17: bounds: there is no <lowerbound>"),
    ("causal_disc", "causl_disc", "26: test: there is no function 'causl_discrimination'; did you"),
    ("0.95", "much", "23: conf: 'much' is no number; write one, such as 42"),
    ("<group/>", "<group>no</group>", "32: group: <group> has the text 'no', but its presence"),
    # What only makes no sense once it is converted:
    ("<name>race", "<name>sex", "the key 'inputs.sex' appears twice"),
    ("<value>male</value><value>female</value>", "", "inputs.sex: there are no values"),
    ("0.95", "99", "run.confidence: must lie between 0 and 1, got 99.0"),
    ("<input_name>sex</input_name></i", "</i", "run.against[1]: is empty"),
    ("<threshold>0.2", "<threshold>2", "checks[1].max_score: must be at most 1, got 2.0"),
    # What is no settings at all:
    (SETTINGS, "", "is not XML: no element found"),
    (SETTINGS, "<settings>", "is not XML"),
    (SETTINGS, "<settings></wrong>", "settings.xml:1: is not XML: mismatched tag"),
    (SETTINGS, "<other/>", "the outermost element is <other>"),
    (SETTINGS, '<?xml version="1.0" encoding="utf-99"?><settings/>', "settings.xml:1: "),
    (SETTINGS, "<a>" * 9999 + "</a>" * 9999, "the outermost element is <a>"),
    (SETTINGS, "<settings>&undefined;</settings>", "is not XML: undefined entity"),
]


@pytest.mark.parametrize("fault", range(len(FAULTS)))
def test_what_cannot_be_converted_is_refused_with_its_line(fault: int) -> None:
    old, new, said = FAULTS[fault]
    told = mistakes(SETTINGS.replace(old, new, 1))
    assert any(said in each for each in told)
    if said[0].isdigit():
        assert [each[: len(said) + 13] for each in told] == [f"settings.xml:{said}"]


LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))
BOMB = f'<!DOCTYPE s [<!ENTITY l0 "lol">{LAUGHS}]><settings>&l11;</settings>'
BLOWUP = f'<!DOCTYPE s [<!ENTITY a "{"a" * 50_000}">]><settings>{"&a;" * 50_000}</settings>'
EXTERNAL = '<!DOCTYPE s [<!ENTITY f SYSTEM "file:///etc/passwd">]><settings>&f;</settings>'
OUTSIDE = '<!DOCTYPE s SYSTEM "http://127.0.0.1:9/evil.dtd"><settings/>'
PARAMETER = '<!DOCTYPE s [<!ENTITY % p SYSTEM "file:///etc/passwd">%p;]><settings/>'


@pytest.mark.parametrize("text", [BOMB, BLOWUP, EXTERNAL, OUTSIDE, PARAMETER])
def test_entities_are_refused_at_once(text: str) -> None:
    Path("settings.xml").write_text(f'<?xml version="1.0"?>\n{text}')
    started = time.process_time()
    done = run("init", "--from", "settings.xml")
    assert time.process_time() - started < 20  # gigabytes of text take longer
    assert done.exit_code == 2
    assert done.stderr.startswith("error[xml]: settings.xml:2: has a document type")
    assert "root:" not in done.stderr
    assert not Path("themis.toml").exists()
