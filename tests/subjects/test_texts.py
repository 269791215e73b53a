"""Texts with places that a service is given: wordings, documents, variants of prompts, names."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import themis
from tests.projects import run as command
from tests.services import Reply, Request, Service, complaint, run
from themis import ConfigError, Integers, RequestError, Schema, Values
from themis.audit.trying import try_input
from themis.config.parts import programs
from themis.config.reader import read_config
from themis.subjects.http.requests import Requests
from themis.subjects.http.subject import HttpSubject
from themis.subjects.templates import WHOLE

pytest.importorskip("aiohttp")

PEOPLE = Schema(
    sex=["woman", "man"], age=Integers(18, 80, bins=[40]), single=Values([True, False], missing=0.1)
)


class TestWordings:
    def test_each_value_bin_and_no_value_has_a_text_of_its_own(self, service: Service) -> None:
        body = {
            "a": '{sex|woman:she "says", man:he, too,}: {age|18 to 39:young,40 to 80:of age}',
            "b": "{single|true:alone,false:,missing:?}",
        }
        path = "/x?by={sex|woman:a b,man:c}"
        run(service.subject(path, schema=PEOPLE, body=body), [[0, 0, 0], [1, 22, 1], [1, 62, 2]])
        sent = [(each.path, *each.json.values()) for each in service.requests]
        assert sorted(sent) == [
            ("/x?by=a%20b", 'she "says": young', "alone"),
            ("/x?by=c", "he, too,: of age", ""),
            ("/x?by=c", "he, too,: of age", "?"),
        ]

    def test_all_mistakes_are_told_at_once(self) -> None:
        body = ["{sex|womn:she,man:he,man:his}", "{sexx|woman:she}", "{single|true:yes}", "{age}"]
        said = complaint(schema=PEOPLE, body=body)
        assert "'sex' has no value 'womn'; did you mean 'woman'?" in said
        assert "'man' of 'sex' has two wordings" in said
        assert "no wording for 'woman' of 'sex'" in said
        assert "no wording for 'false', 'missing' of 'single'" in said
        assert "did you mean 'sex'?" in said

    def test_another_wording_is_another_subject(self) -> None:
        prints = {
            HttpSubject(Schema(sex=["f", "m"]), "http://localhost", body=[body]).fingerprint()
            for body in ("{sex|f:she,m:he}", "{sex|f:her,m:he}", "{sex}")
        }
        assert len(prints) == 3


RESUMES = (
    'id,text,more\na,"I am {name}, a {sex|woman:""mother"",man:father} of {age}.\n100% {{sic}}",x\n'
    "b,Ask {name} {name}!,y\n"
)


def with_resumes(folder: Path, texts: str = RESUMES, name: str = "resumes.csv") -> Schema:
    (folder / name).write_text(texts)
    names, read = ["Ada", "Bo"], themis.documents(folder / name)
    return Schema(sex=["woman", "man"], name=names, age=Integers(18, 80), resume=read)


LETTERS = st.text(st.characters(codec="utf-8", exclude_characters="{}$\0"), max_size=8)
NAMES = st.from_regex(r"[\w .-]{1,8}", fullmatch=True).filter(lambda name: name.strip() == name)


def naively(pieces: list[str], row: dict[str, Any]) -> str:
    """A text in pieces with its places filled in, one after the other."""
    known = {f"{{{name}}}": value for name, value in row.items()} | {"{{": "{", "}}": "}"}
    return "".join(known.get(piece, piece) for piece in pieces)


class TestDocuments:
    def test_texts_are_sent_with_their_places_filled(
        self, service: Service, tmp_path: Path
    ) -> None:
        schema, codes = with_resumes(tmp_path), [[0, 0, 1, 0], [1, 1, 2, 1]]
        body = {"prompt": "Decide on {name}: {resume}", "resume": "{resume}", "all": "{input}"}
        run(service.subject(schema=schema, body=body), codes)
        second, first = sorted((each.json for each in service.requests), key=lambda b: b["resume"])
        assert first["resume"] == 'I am Ada, a "mother" of 19.\n100% {sic}'
        assert first["prompt"] == f"Decide on Ada: {first['resume']}"
        row = {"sex": "woman", "name": "Ada", "age": 19, "resume": first["resume"]}
        assert first["all"] == row
        assert second["resume"] == second["all"]["resume"] == "Ask Bo Bo!"
        service.answer = lambda request: Reply(json.dumps([1] * len(request.json)))
        run(service.subject(schema=schema, body="{inputs}"), codes)
        assert service.requests[-1].json == [first["all"], second["all"]]
        with pytest.raises(RequestError, match="kind 'python' is not given texts"):
            themis.Audit(lambda row: 1, schema).score("sex")

    @given(st.data())
    def test_what_is_sent_is_what_plain_filling_gives(self, data: st.DataObject) -> None:
        own = NAMES.filter(lambda name: name not in WHOLE)
        names = data.draw(st.lists(own, min_size=1, max_size=3, unique=True))
        values = st.lists(LETTERS, min_size=1, max_size=3, unique=True)
        inputs: dict[str, Any] = {name: data.draw(values) for name in names}
        places = st.sampled_from([*(f"{{{name}}}" for name in names), "{{", "}}", "%", '"', "\\"])
        pieces = st.lists(places | LETTERS, max_size=6)
        texts = data.draw(st.lists(pieces.map(lambda p: ["x", *p]), min_size=1, max_size=3))
        inputs["doc 1"] = themis.documents({"text": ["".join(text) for text in texts]})
        schema, outer = Schema(inputs), data.draw(pieces)
        body = {"text": "".join([*outer, "{doc 1}"]), "rest": "".join(f"{{{n}}}" for n in names)}
        asked = Requests(schema, url="http://x", method="POST", headers={}, body=body).body
        codes = [[data.draw(st.integers(0, each.size - 1)) for each in schema] for _ in range(3)]
        for row, sent in zip(codes, asked.row.render(np.array(codes)), strict=True):
            told = schema.decode_row(np.array(row))
            text = texts[int(told.pop("doc 1")) - 1]
            assert json.loads(sent)["text"] == naively(outer, told) + naively(text, told)

    def test_what_is_wrong_is_told_by_rows_and_never_by_texts(self, tmp_path: Path) -> None:
        texts = "text\nI {nme} am\n{sex|wman:a}\nmy secret {is that I am; well}\n{nme}{\n"
        said = complaint(schema=with_resumes(tmp_path, texts), body="{input}")
        assert "inputs.resume: resumes.csv, line 2, line 5: '{nme}' is not the place" in said
        assert "did you mean 'name'?" in said
        assert "resumes.csv, line 3: 'sex' has no value 'wman'; did you mean 'woman'?" in said
        assert "line 4: what is in braces is not the place of a characteristic" in said
        assert "line 5: '{' is not the place" in said
        assert "secret" not in said

    def test_one_without_any_place_hides_what_others_show_unless_that_is_beside_it(
        self, tmp_path: Path
    ) -> None:
        texts = f"{RESUMES}c,My secret,x\nd,I am {{age}},x\ne,None,x\n"
        schema = with_resumes(tmp_path, texts)
        said = complaint(schema=schema, body=["{age}: {resume}"])
        assert "inputs.resume: resumes.csv, line 5, line 7: there is no place for 'sex'" in said
        assert "secret" not in said
        HttpSubject(schema, "http://localhost", body=["{sex} {name} {age}: {resume}"])
        same = with_resumes(tmp_path, "text\nI am\nYou are\n")
        HttpSubject(same, "http://localhost", body="{input}")

    @pytest.mark.parametrize("text", ["{resume}", "{input}", "{inputs}"])
    def test_a_text_does_not_contain_itself(self, tmp_path: Path, text: str) -> None:
        said = complaint(schema=with_resumes(tmp_path, f"text\n{text}\n"), body="{input}")
        assert "'resume' contains itself" in said or "'{inputs}' is not the place" in said

    def test_files_that_are_no_documents_are_refused(self, tmp_path: Path) -> None:
        def said(content: str, **options: Any) -> str:
            (tmp_path / "d.csv").write_text(content)
            with pytest.raises(RequestError) as caught:
                themis.documents(tmp_path / "d.csv", **options)
            return str(caught.value)

        assert "has no column 'text'; did you mean 'texts'?" in said("texts\na\n")
        assert "there is no text in line 3, line 4" in said("id,text\n1,a\n2,\n3, \n")
        assert "the id appears twice in line 2, line 3" in said("id,text\n1,a\n1,b\n,c\n")
        assert "the id is missing in line 4" in said("id,text\n1,a\n1,b\n,c\n")
        assert "holds no rows" in said("text\n")
        with (tmp_path / "large.csv").open("wb") as file:
            file.truncate(2**27)
        with pytest.raises(RequestError, match="is too large; leave out documents: 64 MiB"):
            themis.documents(tmp_path / "large.csv")

    def test_another_text_is_another_subject_and_none_is_told(self, tmp_path: Path) -> None:
        before, after = (
            HttpSubject(with_resumes(tmp_path, text), "http://localhost")
            for text in (RESUMES, RESUMES.replace("Ask", "Mind"))
        )
        assert before.fingerprint() != after.fingerprint()
        row = {"sex": "woman", "name": "Ada", "age": 19, "resume": "a"}
        assert '"resume": "[resume a]"' in before.reproduce(row)
        assert "mother" not in before.reproduce(row) + repr(before.schema["resume"])
        assert "mother" not in json.dumps(before.schema.to_dict())


@pytest.fixture
def project(service: Service, tmp_path: Path) -> Callable[..., Path]:
    """A themis.toml for the service, with these inputs, beside these files."""

    def write(inputs: str, *, prompt: str = "", **files: str) -> Path:
        for name, text in files.items():
            (tmp_path / f"{name}.csv").write_text(text)
        kind, part = ("chat", f"[subject.prompt]\n{prompt}") if prompt else ("http", "")
        text = f'version = 1\n[subject]\nkind = "{kind}"\nurl = "{service.url}"\n{part}\n'
        (tmp_path / "themis.toml").write_text(f"{text}[inputs]\n{inputs}\n")
        return tmp_path / "themis.toml"

    return write


PRONOUNS = 'sex = { values = ["woman", "man"], protected = true }\n'
SECRETS = "text,id\n" + "".join(
    f'"{{sex|woman:She,man:He}} has secret {n}.",n{n}\n' for n in range(40)
)


LETTER = f'{PRONOUNS}letter = {{ documents = "letters.csv" }}'


def completion(said: str) -> Reply:
    return Reply(json.dumps({"choices": [{"message": {"content": said}}]}))


class TestPrompts:
    def test_each_input_gets_one_of_the_wordings_and_keeps_it(
        self, service: Service, project: Callable[..., Path], tmp_path: Path
    ) -> None:
        (tmp_path / "third.txt").write_text("Third: {letter} {{sic}}\n")
        prompt = (
            'user = "First: {letter}"\nparaphrases = ["Second: {letter}", { file = "third.txt" }]\n'
            'system = ["Be fair to {sex|woman:her,man:him}.", "Be kind."]\n'
        )
        path = project(LETTER, letters=SECRETS, prompt=prompt)
        seen = set()

        def decide(request: Request) -> Reply:
            system, user = (each["content"] for each in request.json["messages"])
            seen.add((system, user))
            return completion(str(int(user.startswith("Third") and "her" in system)))

        service.answer = decide
        score = themis.Audit.from_file(path).causal("sex")
        assert score.score == pytest.approx(1 / 6)
        assert {*score.witnesses[0].inputs[0]} == {"sex", "letter", "wording", "system"}
        systems = {"woman": ("Be fair to her.", "Be kind."), "man": ("Be fair to him.", "Be kind.")}
        assert seen == {
            (system, text.format(f"{pronoun} has secret {n}."))
            for sex, pronoun in (("woman", "She"), ("man", "He"))
            for system in systems[sex]
            for text in ("First: {}", "Second: {}", "Third: {} {{sic}}")
            for n in range(40)
        }

    def test_validate_shows_a_request_with_all_places_filled(
        self, service: Service, project: Callable[..., Path]
    ) -> None:
        service.answer = lambda request: completion("1")
        prompt = 'user = ["Is {sex|woman:she,man:he} {letter}?", "Or {letter} {sex}?"]'
        path = project(LETTER, letters=SECRETS, prompt=prompt)
        said = "".join(command("validate", str(path)).output.split())
        assert re.search(r'"(Isshe|Ishe|Or)\[lettern\d+\](woman|man)?\?"', said)

    def test_a_wording_without_a_place_that_others_have_is_a_mistake(
        self, project: Callable[..., Path]
    ) -> None:
        prompt = 'user = "Is {sex} {letter}?"\nparaphrases = ["Or {letter}?", "{sex}, {letter}"]\n'
        letters = "text\nDear Sir\n"
        path = project(LETTER, letters=letters, prompt=prompt)
        with pytest.raises(RequestError) as caught:
            themis.Audit.from_file(path)
        (mistake,) = caught.value.mistakes
        assert mistake.where == "subject.prompt.paraphrases[1]"
        assert mistake.problem == "there is no place for 'sex', which other texts have"
        assert mistake.line is not None
        assert "paraphrases" in path.read_text().splitlines()[mistake.line - 1]
        marked = letters.replace("Dear Sir", '"{sex|woman:Ms,man:Mr}"')
        project(LETTER, letters=marked, prompt=prompt)
        themis.Audit.from_file(path).close()
        project(LETTER, letters=f"{marked}Madam\n", prompt=prompt)
        with pytest.raises(RequestError, match=r"letters.csv, line 3: there is no place for 'sex'"):
            themis.Audit.from_file(path)

    def test_one_text_is_no_context(self, project: Callable[..., Path]) -> None:
        assert read_config(project(PRONOUNS, prompt='user = ["{sex}?"]')).schema.names == ("sex",)

    @pytest.mark.parametrize(
        ("prompt", "inputs", "said"),
        [
            (
                'user = "{sex}"\nsystem = 3',
                "",
                r"prompt\.system: must be a text, a file, or a list",
            ),
            ('user = ["{sex}", " "]', "", r"subject\.prompt\.user: text 2 is empty"),
            (
                'user = "{sex}"\nparaphrases = { file = "none.txt" }',
                "",
                r"subject\.prompt\.paraphrases: 'none.txt' can't be read",
            ),
            ('user = ["a", "b"]', 'wording = ["a"]', "a context of this name is added"),
            ('user = "{sexx}"', "", r"subject\.prompt.*did you mean 'sex'"),
            ('user = ["{sex}", "{sexx}"]', "", r"subject\.prompt.*did you mean 'sex'"),
        ],
    )
    def test_what_is_wrong_with_texts_is_told(
        self, project: Callable[..., Path], prompt: str, inputs: str, said: str
    ) -> None:
        with pytest.raises(themis.ThemisError, match=said):
            themis.Audit.from_file(project(PRONOUNS + inputs, prompt=prompt))


def test_the_score_of_a_service_that_reads_the_pronoun_alone_is_exact_and_tells_no_text(
    service: Service, project: Callable[..., Path], tmp_path: Path
) -> None:
    path = project(LETTER, letters=SECRETS)

    def decide(request: Request) -> Reply:
        pronoun, *_, number = request.json["letter"].strip(".").split()
        return Reply(str(int(pronoun == "She" and int(number) < 10)))

    service.answer = decide
    named = [each for each in programs(read_config(path)) if each.key == "inputs.letter"]
    assert [each.files for each in named] == [(tmp_path / "letters.csv",)]  # who confirms, sees it
    saved, page = str(tmp_path / "r.json"), tmp_path / "r.html"
    done = command("score", str(path), "-v", "-o", saved)
    assert command("report", saved, "-o", str(page)).exit_code == done.exit_code == 0
    assert [score.score for score in themis.read_result(saved).scores] == [0.25, 0.25]
    told = done.output + Path(saved).read_text() + page.read_text()
    assert "secret" not in told
    assert "[letter n" in told  # in the lines that show a pair again


@pytest.mark.parametrize("refused", [True, False])
def test_a_service_that_repeats_what_it_is_given_tells_no_text(
    refused: bool, service: Service, project: Callable[..., Path], tmp_path: Path
) -> None:
    path = project(LETTER, letters=SECRETS)
    text = path.read_text().replace("[inputs]", '[subject.labels]\nyes = ["yes"]\n[inputs]')
    path.write_text(text.replace("[subject]", "[subject]\nmax_failures = 1\nmax_undecided = 1"))
    service.answer = lambda request: Reply(json.dumps(request.json), 400 if refused else 200)
    written = [str(tmp_path / name) for name in ("r.json", "r.md", "events")]
    command("validate", str(path))
    done = command("score", str(path), "-v", "-o", written[0], "--events", written[2])
    command("report", written[0], "-o", written[1])
    told = done.output + "".join(Path(each).read_text() for each in written)
    assert "may repeat a document" in told or "400" in told
    assert "secret" not in told + command("validate", str(path)).output


LISTS = {
    ("woman", "a"): ["Ada", "Eve", "Di"],
    ("woman", "b"): ["Una"],
    ("man", "a"): ["Bo", "Al"],
    ("man", "b"): ["Cy", "Flo"],
}
NAMES_FILE = "name,sex,group\n" + "".join(
    f"{name},{sex},{group}\n" for (sex, group), each in LISTS.items() for name in each
)
NAMED = f'{PRONOUNS}group = ["a", "b"]\nname = {{ names = "names.csv", by = ["sex", "group"] }}\n'


class TestNames:
    def test_a_service_that_reads_the_name_alone_has_the_exact_scores(
        self, service: Service, project: Callable[..., Path]
    ) -> None:
        liked = {"Ada", "Una", "Bo"}
        path = project(NAMED, names=NAMES_FILE)
        service.answer = lambda request: Reply(str(int(request.json["name"] in liked)))
        audit = themis.Audit.from_file(path)
        causal, group = audit.causal("sex"), audit.group("sex")
        table = audit.schema["name"].as_
        flips = [
            len({table[sex][group_][draw] in liked for sex in table}) > 1
            for group_ in "ab"
            for draw in table["man"]["a"]
        ]
        assert causal.score == pytest.approx(np.mean(flips))
        assert group.score == pytest.approx(abs((1 / 3 + 1) / 2 - (1 / 2 + 0) / 2))
        assert causal.followed == ("name",)
        for person in causal.witnesses[0].inputs:
            assert person["name"] in LISTS[person["sex"], person["group"]]
        assert {*service.requests[0].json} == {"sex", "group", "name"}

    def test_each_name_of_a_combination_is_as_often_as_any_other(self, tmp_path: Path) -> None:
        rows = [{"name": f"{sex}{n}", "sex": sex} for sex in "fm" for n in range(7)]
        rows.append({"name": "m7", "sex": "m"})
        schema = Schema(sex=["f", "m"], name=themis.names(rows, by="sex"))
        table = schema["name"].as_
        assert [*Counter(table["f"].values()).values()] == [16] * 7
        assert [*Counter(table["m"].values()).values()] == [14] * 8
        orders = [[int(name[1:]) for name in table[sex].values()] for sex in "fm"]
        assert abs(np.corrcoef(orders)[0, 1]) < 0.3

    def test_names_are_those_of_whoever_has_them_however_the_input_came_about(self) -> None:
        sizes = zip(product("fm", "ab"), (1, 2, 3, 4), strict=True)
        rows = [
            {"name": f"{sex}{group}{n}", "sex": sex, "group": group}
            for (sex, group), count in sizes
            for n in range(count)
        ]
        names, own = themis.names(rows, by=["sex", "group"]), Values(["f", "m"], missing=0.2)
        schema = Schema(sex=own, age=range(60), group=["a", "b"], name=names)
        seen = set()

        def decide(person: dict[str, Any]) -> int:
            seen.add((person["sex"], person["group"], person["name"]))
            return len(person["name"] or "") + person["age"] % 7 > 6

        audit = themis.Audit(decide, schema, max_executions=150)
        for columns in (["sex"], ["group"], ["sex", "group"]):
            audit.causal(*columns)
            audit.group(*columns)
        audit.search(0.3)
        assert len(seen) == 12
        for sex, group, name in seen:
            assert name is None if sex is None else name.startswith(sex + group)

    def test_rows_of_people_get_their_names_in_turn_and_a_single_input_needs_no_draw(self) -> None:
        names = themis.names([{"name": n, "sex": n[0]} for n in ("f1", "f2", "m1")], by="sex")
        schema = Schema(sex=["f", "m"], age=range(9), name=names)
        people = [{"sex": sex, "age": age} for age in range(9) for sex in "fm"]
        seen = set()

        def decide(person: dict[str, Any]) -> int:
            seen.add(person["name"])
            return int(person["name"] == "f2")

        audit = themis.Audit(decide, schema, profile=people)
        audit.causal("sex")
        assert seen == {"f1", "f2", "m1"}
        assert try_input(audit, {"sex": "m", "age": 3}).values["name"] == "m1"

    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ("Una,woman,b\n", "", "there is no value for 'woman' with 'b' of 'sex' and 'group'"),
            ("Una,woman", "Una,womn", "'womn' is no value of 'sex'; did you mean 'woman'?"),
            ("Eve", "", "or what it goes with, is missing in line 3"),
            (', "group"]', ', "grupe"]', "has no column 'grupe'; did you mean 'group'?"),
            ('["sex", "group"]', "[]", "inputs.name.by"),
            ("] }\n", '] }\n"name draw" = ["1"]\n', "a context of this name is added for 'name'"),
        ],
    )
    def test_what_is_wrong_with_names_is_told(
        self, project: Callable[..., Path], old: str, new: str, said: str
    ) -> None:
        path = project(NAMED.replace(old, new), names=NAMES_FILE.replace(old, new))
        with pytest.raises(ConfigError, match=re.escape(said)):
            read_config(path)


def test_what_is_derived_may_be_derived_from_several() -> None:
    schema = Schema(
        sex=["f", "m"],
        age=Integers(18, 80, bins=[40]),
        title=themis.derived(
            ["sex", "age"],
            {
                "f": {"18 to 39": "Miss", "40 to 80": "Mrs"},
                "m": {"18 to 39": "Mr", "40 to 80": "Mr"},
            },
        ),
    )
    assert Schema.from_dict(schema.to_dict()) == schema
    audit = themis.Audit(lambda person: int(person["title"] == "Miss"), schema)
    assert audit.causal("sex").score == pytest.approx(22 / 63)
    with pytest.raises(RequestError, match="'title' is derived from 'sex' and 'age', so"):
        audit.causal("title")
