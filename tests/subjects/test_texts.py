"""Texts with places that a service is given: wordings, documents, variants of prompts, names."""

from __future__ import annotations

import pytest

from tests.services import Service, complaint, run
from themis import Integers, Schema, Values
from themis.subjects.http.subject import HttpSubject

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
        run(service.subject(schema=PEOPLE, body=body), [[0, 0, 0], [1, 22, 1], [1, 62, 2]])
        sent = sorted((each.json for each in service.requests), key=lambda body: str(body["b"]))
        assert sent == [
            {"a": "he, too,: of age", "b": ""},
            {"a": "he, too,: of age", "b": "?"},
            {"a": 'she "says": young', "b": "alone"},
        ]

    def test_they_stand_in_addresses_too(self, service: Service) -> None:
        schema = Schema(sex=["woman", "man"])
        subject = service.subject("/x?by={sex|woman:a b,man:c}", schema=schema, method="GET")
        run(subject, [[0], [1]])
        assert {each.path for each in service.requests} == {"/x?by=a%20b", "/x?by=c"}

    def test_all_mistakes_are_told_at_once(self) -> None:
        said = complaint(
            schema=PEOPLE,
            body=[
                "{sex|womn:she,man:he,man:his}",
                "{sexx|woman:she}",
                "{single|true:yes}",
                "{age}",
            ],
        )
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
