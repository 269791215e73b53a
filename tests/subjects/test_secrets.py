"""What a subject says is shown without the secrets that it knows; decisions as they are."""

from __future__ import annotations

import base64
import json
import os
import shlex
from collections.abc import Callable
from html import escape
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

import themis
from tests.external import RACE, write_command, write_worker
from tests.projects import run
from themis.show.reports.formats import FORMATS
from themis.subjects.secrets import Secrets, redact_inherited

TOKEN = "s3cr3t/with+signs&more"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if any(part in name.upper() for part in ("KEY", "TOKEN", "SECRET", "PASS")):
            monkeypatch.delenv(name)


def assert_secret(text: str) -> None:
    """The token is in the text in none of the ways in which one writes it."""
    inner = [base64.b64encode(b"x" * n + TOKEN.encode()).decode()[4:-4] for n in range(3)]
    for form in (TOKEN[:9], quote(TOKEN), quote(TOKEN, safe=""), json.dumps(TOKEN)[1:-1], *inner):
        assert form not in text


@pytest.mark.some_slow(core=2)
@pytest.mark.parametrize("where", ["env", "inherited"])
def test_a_failing_command_puts_no_token_into_any_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    fails = 'if [ "$3" -ge 70 ]; then echo token "$API_TOKEN" >&2; exit 3; fi'
    options = "max_failures = 0.9\n"
    if where == "env":
        options += f'env = {{ API_TOKEN = "{TOKEN}" }}\n'
    else:
        monkeypatch.setenv("API_TOKEN", TOKEN)
    write_command(tmp_path, before=fails, options=options, run="error = 0.3\nprobe = 0")
    done = run("score", *RACE, "-o", "result.json", "-v", "--suite", "tests.jsonl")
    assert_secret(done.output)
    saved = Path("result.json").read_text()
    assert "token $API_TOKEN" in saved
    for each in (saved, Path("tests.jsonl").read_text()):
        assert_secret(each)
    for name in FORMATS:
        folder = tmp_path / name
        assert run("report", "result.json", "--format", name, "-o", str(folder)).exit_code == 0
        paths = folder.rglob("*") if folder.is_dir() else [folder]
        assert_secret(" ".join(p.read_bytes().decode("latin-1") for p in paths if p.is_file()))


def test_a_variable_that_is_no_secret_may_be_a_decision(tmp_path: Path) -> None:
    write_command(tmp_path, decide='echo "$DEFAULT"', options='env = { DEFAULT = "approved" }\n')
    assert run("score", *RACE, "-o", "result.json").exit_code == 0
    assert json.loads(Path("result.json").read_text())["failures"] == {}


def test_names_and_values_are_shown_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "purple")
    schema = themis.Schema(race=["green", "purple"], purple=[0, 1])
    result = themis.Audit(lambda p: int(p["race"] == "purple"), schema).score([["race"]])
    (pair, *_) = result.to_dict()["scores"][0]["witnesses"]
    assert {each["race"] for each in pair["inputs"]} == {"green", "purple"}


FLOOD = f'printf "%s%0{4096 - len(TOKEN) + 1}d" "A$API_TOKEN" 7 >&2; exit 3'


@pytest.mark.parametrize("before", [85, 90, 95, 300, None])
def test_a_token_that_is_cut_in_a_long_answer_or_a_flood_of_errors_is_not_shown(
    tmp_path: Path, before: int | None
) -> None:
    options = f'env = {{ API_TOKEN = "{TOKEN}" }}\n'
    if before is None:
        write_command(tmp_path, before=FLOOD, options=options)
    else:
        long = f"'E' * {before} + os.environ['API_TOKEN'] + 'F' * {390 - before}"
        write_worker(tmp_path, before=f"raise ValueError({long})", options=options)
    done = run("score", *RACE)
    assert ("00" if before is None else "EEE") in done.output
    assert not any(TOKEN[at : at + 6] in done.output for at in range(len(TOKEN) - 5))


def test_a_module_that_fails_with_a_token_says_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", TOKEN)
    Path("leaky.py").write_text("import os\nraise RuntimeError(os.environ['MY_TOKEN'])\n")
    subject = '[subject]\nkind = "python"\nfunction = "leaky:decide"\n'
    Path("themis.toml").write_text(f'version = 1\n{subject}[inputs]\nsex = ["f", "m"]\n')
    done = run("score", "--against", "sex")
    assert done.exit_code == 2
    assert "$MY_TOKEN" in done.output
    assert_secret(done.output)


ODD = TOKEN + "é'\"<\\\\>%25 🔑\n"


@pytest.mark.parametrize("secret", [TOKEN, ODD], ids=["usual", "odd"])
@pytest.mark.parametrize(
    "write",
    [
        str,
        repr,
        json.dumps,
        escape,
        quote_plus,
        shlex.quote,
        lambda secret: repr([secret.encode()]),
        lambda secret: json.dumps(secret, ensure_ascii=False).replace("/", "\\/"),
        lambda secret: json.dumps(json.dumps([secret])),
        lambda secret: quote(secret, safe="!'()*&+/"),
        lambda secret: quote(quote(secret, safe="")),
        lambda secret: "".join(f"%{byte:02x}" for byte in secret.encode()),
        lambda secret: "".join(f"&#{ord(sign)};" for sign in secret),
        lambda secret: "".join(f"&#x{ord(sign):04X};" for sign in secret),
        lambda secret: escape(escape(secret)),
        lambda secret: secret.encode().hex(),
        lambda secret: secret.encode().hex().upper(),
        lambda secret: quote(base64.b64encode(secret.encode()), safe=""),
    ],
)
def test_escaped_or_encoded_it_is_redacted_as_a_whole(
    secret: str, write: Callable[[str], str]
) -> None:
    secrets = Secrets()
    secrets.protect(secret, "KEY")
    written = write(secret)
    assert secrets.are_in(written)
    before, name, behind = secrets.redact(f"?key= {written} &x").partition("$KEY")
    assert name
    assert len(before + behind) <= len('?key= "[b&#x0022;\'"]" &x') + 4
    for cut in range(len(written) // 2, len(written) // 2 + 8):  # also inside of an escape
        assert "$KEY" in secrets.redact(f"{written[:cut]} … 7")
        assert "$KEY" in secrets.redact(f"…{written[cut:]}")


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        *((name, True) for name in ("DB_PASS", "PGPASSWORD", "api_key", "KEY2", "MyApiKeyA")),
        *((name, False) for name in ("PASSENGER_APP_ENV", "TOKENIZERS_MODE", "Secretary")),
    ],
)
def test_a_secret_is_named_by_a_word(
    monkeypatch: pytest.MonkeyPatch, name: str, is_secret: bool
) -> None:
    monkeypatch.setenv(name, "approved")
    secrets = Secrets()
    secrets.protect_variables({name: "approved"})
    assert secrets.are_in("approved") == (redact_inherited("approved") != "approved") == is_secret


def test_short_values_are_no_secrets() -> None:
    secrets = Secrets()
    secrets.protect_variables({"TOKEN": "short", "MODE": "12345"})
    assert secrets.redact("short 12345") == "short 12345"
    assert not secrets.are_in("short")


@given(st.text(min_size=6).filter(str.strip), st.binary(max_size=5))
def test_base64_of_a_longer_text_gives_nothing_away(secret: str, before: bytes) -> None:
    secrets = Secrets()
    secrets.protect_variables({"TOKEN": secret})
    encoded = base64.b64encode(before + secret.encode("utf-8", "surrogateescape")).decode()
    kept = secrets.redact(encoded).partition("$TOKEN")
    assert len(kept[0]) <= len(before) * 4 // 3 + 4
    assert len(kept[2]) <= 4
    assert kept[1]
