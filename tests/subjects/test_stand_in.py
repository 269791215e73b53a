"""The stand-in for a language model, on which examples, simulations and tests rest."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from examples.chat.server import Model, Truth, serve

LOANS: dict[str, Any] = {
    "answers": {"yes": 0.5, "no": 0.5, "never": 0.0},
    "texts": {"yes": ["Yes.", "YES"], "never": ["I can't help with that."]},
    "refusal": "never",
    "rules": [
        {"find": r"\bshe\b", "add": {"yes": -0.2, "never": 0.2}},
        {"find": r"earns (\d+)", "above": 50, "add": {"yes": 0.5, "no": -0.5}},
    ],
}


def body(prompt: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": prompt}]}


def test_answers_are_as_probable_as_the_file_says() -> None:
    truth = Truth(**LOANS)
    assert truth.chances("she earns 40") == pytest.approx({"yes": 0.3, "no": 0.5, "never": 0.2})
    assert truth.chances("he earns 60") == {"yes": 1.0, "no": 0.0, "never": 0.0}
    assert truth.chances("she", temperature=0) == {"yes": 0.0, "no": 1.0, "never": 0.0}
    assert truth.chances("she", temperature=0.5)["no"] == pytest.approx(0.25 / 0.38)
    assert Truth(**LOANS, drift=0.1).chances("he", before=2_000)["never"] == pytest.approx(0.2)
    model = Model(truth)
    for prompt in ("he earns 40", "she earns 60", "she earns 40"):
        answers = [model.complete(body(prompt), "Bearer example-key") for _ in range(2_000)]
        counts = Counter(each["choices"][0]["message"]["content"][0].lower() for each in answers)
        for name, chance in truth.chances(prompt).items():
            seen = counts[{"yes": "y", "no": "n", "never": "i"}[name]] / 2_000
            assert seen == pytest.approx(chance, abs=0.04)


@pytest.mark.parametrize(
    ("knobs", "key", "status", "code"),
    [
        ({}, "wrong", 401, "invalid_api_key"),
        ({"quota": 0, "quota_status": 402}, "example-key", 402, "insufficient_quota"),
        ({"per_second": 0}, "example-key", 429, "rate_limit_exceeded"),
        ({"fails": 1}, "example-key", 500, "server_error"),
    ],
)
def test_it_turns_requests_away_as_services_do(
    knobs: dict[str, Any], key: str, status: int, code: str
) -> None:
    model = Model(Truth(**LOANS, **knobs))
    with serve(model) as host:
        request = Request(f"http://{host}/v1/chat/completions", json.dumps(body("he")).encode())
        request.add_header("Authorization", f"Bearer {key}")
        with pytest.raises(HTTPError) as refused:
            urlopen(request)
    assert (refused.value.code, json.load(refused.value)["error"]["code"]) == (status, code)
    assert refused.value.headers["Retry-After"] == ("1" if status == 429 else None)
    assert model.stats == {"requests": 1, "answered": 0, "distinct": 0, "tokens": 0}
