"""Describing a subject: forms and the text of one file, uploads, drafts, a few inputs tried."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from html import unescape
from html.parser import HTMLParser
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.browser import Browser, Page, opened
from tests.web.serving import EXAMPLES, Server, serving, until
from themis.config.reader import load_config

BY_FORMS = """\
version = 1

[subject]
kind = "python"
function = "loan:decide"
favourable = ["approved"]

[inputs]
sex = { values = ["female", "male"], protected = true }
race = { values = ["green", "purple", "blue"], protected = true, weights = [0.7, 0.2, 0.1] }
age = { min = 18, max = 90, bins = [30, 60] }
income = { min = 0, max = 120000, step = 500 }
job = { values = ["none", "temporary", "permanent", "retired"], weights = [1, 3, 5, 2] }
amount = { min = 1000, max = 50000, step = 500 }

[constraints]
the_young_are_not_retired = "age >= 55 or job != 'retired'"
no_job_little_income = "job != 'none' or income <= 20000"
"""
PEOPLE = "sex,age,approved\n" + "female,30,yes\nmale,40,no\nfemale,50,yes\nmale,61,yes\n" * 8
HOSTILE = "<script>alert(1)</script>\"'\n]"


class _Form(HTMLParser):
    """The fields of the form with an id around it, and what they hold."""

    def __init__(self, page: str, around: str) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self._name, self._is_text = "", False
        inside = page.partition(f'id="{around}"')[2].partition("</form>")[0]
        self.feed(inside.replace("\r\n", "\n"))

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        about = dict(attrs)
        if tag in ("select", "textarea"):
            self._name = about["name"]
            self.fields[self._name] = ""
        elif tag == "option" and "selected" in about:
            self.fields[self._name] = about["value"]
        elif tag == "input" and about.get("type") != "checkbox":
            self.fields[about["name"]] = about.get("value") or ""
        self._is_text = tag == "textarea"

    def handle_data(self, data: str) -> None:
        if self._is_text:
            self.fields[self._name] += data.removeprefix("\n")

    def handle_endtag(self, tag: str) -> None:
        self._is_text = False


def fill_in(server: Server, address: str, **written: str) -> httpx.Response:
    """Send the form of an address, as a browser without script does."""
    around = "file" if "text" in written else "edit"
    fields = {**_Form(server.get(address).text, around).fields, **written}
    data = {
        name.replace("key_", "key-"): text.replace("\n", "\r\n") for name, text in fields.items()
    }
    return server.client.post("/describe", data=data, headers={"Origin": server.base})


def save(server: Server, address: str, **written: str) -> None:
    """Fill in a form whose content is saved."""
    assert fill_in(server, address, **written).status_code == 303


def add(server: Server, section: str, kind: str, name: str, **keys: str) -> None:
    """Add a part by its form."""
    written = {f"key_{key}": text for key, text in keys.items()}
    save(server, f"/describe?section={section}&new=yes&kind={kind}", name=name, **written)


def upload(server: Server, name: str, content: str | bytes) -> httpx.Response:
    """Send a file as the script of the page does."""
    given = {"Origin": server.base, "X-Themis-Token": server.form_token(), "X-Themis-Name": name}
    return server.client.post("/describe/files", content=content, headers=given)


def answer_to(server: Server, asked: str) -> httpx.Response:
    """What follows when the only form of a page is sent."""
    page = server.get(asked).text
    fields = _Form(page, "main").fields
    action = page.partition('id="main"')[2].partition('action="')[2].partition('"')[0]
    return server.client.post(
        action, data=fields, headers={"Origin": server.base}, follow_redirects=True
    )


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for a folder with a program alone."""
    folder = tmp_path_factory.mktemp("bare")
    shutil.copy(EXAMPLES / "loan" / "loan.py", folder)
    with serving(folder) as server:
        yield server


@pytest.fixture
def server(bare: Server) -> Iterator[Server]:
    """The same, where nothing is described."""
    yield bare
    for each in bare.folder.iterdir():
        if each.is_file() and each.name != "loan.py":
            each.unlink()


@pytest.fixture
def file(server: Server) -> Path:
    """The file of the example, as forms write it."""
    path = server.folder / "themis.toml"
    path.write_text(BY_FORMS)
    return path


def test_the_loan_example_is_described_by_forms_from_nothing(server: Server) -> None:
    file = server.folder / "themis.toml"
    begun = server.get("/run", follow_redirects=True)
    assert begun.url.path == "/describe"
    assert "Begin with a file" in begun.text
    assert not file.exists()
    subject = {"key_function": "loan:decide", "key_favourable": "approved"}
    save(server, "/describe?section=subject", **subject)
    assert "inputs: is missing" in server.get("/describe").text
    races = {"values": "green\npurple\nblue", "weights": "0.7, 0.2 0.1", "protected": "true"}
    jobs = "none\ntemporary\npermanent\nretired"
    add(server, "inputs", "values", "sex", values="female\nmale", protected="true")
    add(server, "inputs", "values", "race", **races)
    add(server, "inputs", "range", "age", min="18", max="90", bins="30, 60")
    add(server, "inputs", "range", "income", min="0", max="120000", step="500")
    add(server, "inputs", "values", "job", values=jobs, weights="1, 3, 5, 2")
    add(server, "inputs", "range", "amount", min="1000", max="50000", step="500")
    young, idle = "age >= 55 or job != 'retired'", "job != 'none' or income <= 20000"
    add(server, "constraints", "", "the_young_are_not_retired", condition=young)
    add(server, "constraints", "", "no_job_little_income", condition=idle)
    assert file.read_text() == BY_FORMS
    ours, example = load_config(file), load_config(EXAMPLES / "loan" / "themis.toml")
    assert [repr(each) for each in ours.schema] == [repr(each) for each in example.schema]
    page = unescape(server.get("/describe").text)
    assert "6 characteristics, 41,800,968 possible inputs; 2 constraints leave 27,831,870." in page
    asked = server.post("/trial").headers["location"]
    tried = answer_to(server, asked).text  # that is confirmed first
    assert "8 test inputs were run; each got a decision." in tried
    assert ">approved<" in tried


def test_a_file_that_is_edited_keeps_what_was_not(server: Server, file: Path) -> None:
    before = (EXAMPLES / "loan" / "themis.toml").read_bytes().replace(b"\n", b"\r\n")
    file.write_bytes(b"\xef\xbb\xbf" + before)
    save(server, "/describe?section=inputs&name=age", key_max="95", key_bins="")
    old, new = b"{ min = 18, max = 90, bins = [30, 60] }", b"{ min = 18, max = 95 }"
    assert file.read_bytes() == b"\xef\xbb\xbf" + before.replace(old, new)
    save(server, "/describe", text=_Form(server.get("/describe").text, "file").fields["text"])
    assert file.read_bytes() == b"\xef\xbb\xbf" + before.replace(old, new)
    save(server, "/describe?section=constraints&name=no_job_little_income", do="remove")
    assert b"no_job" not in file.read_bytes()


def test_what_is_wrong_is_shown_before_it_is_saved(server: Server, file: Path) -> None:
    address = "/describe?section=inputs&name=age"
    refused = fill_in(server, address, key_max="old", key_bins="1")
    assert refused.status_code == 400
    assert "Line 11, inputs.age: max must be a whole number" in unescape(refused.text)
    assert 'value="old"' in refused.text
    assert file.read_text() == BY_FORMS
    save(server, address, key_max="old", anyway="yes")
    assert 'max = "old"' in file.read_text()
    assert "inputs.age: max must be a whole number" in server.get("/describe").text
    mend = fill_in(server, "/describe", text="version = 1\n[inputs\n").text  # no TOML at all
    assert "Line 2, " in mend
    assert "[inputs\n" in mend
    twice = fill_in(server, "/describe?section=inputs&new=yes", name="sex", key_values="a")
    assert "there is one of this name already" in twice.text


def test_a_form_is_checked_while_it_is_filled_in(server: Server, file: Path) -> None:
    def checked(condition: str) -> dict[str, str]:
        page = server.get("/describe?section=constraints&new=yes").text
        written = {"name": "adult", "key-condition": condition}
        return server.post("/describe/check", {**_Form(page, "edit").fields, **written}).json()

    assert "there is no characteristic &#x27;aeg&#x27;" in checked("aeg >= 18")["state"]
    right = checked("age >= 20")
    assert "3 constraints leave" in right["state"]
    assert right["text"] == f'{BY_FORMS}adult = "age >= 20"\n'
    assert file.read_text() == BY_FORMS
    fields = _Form(server.get("/describe?section=inputs&name=age").text, "edit").fields
    file.write_text(f"# by another\n{BY_FORMS}")
    for address in ("/describe", "/describe/check"):
        assert "it was changed after this page was made" in server.post(address, fields).text
    assert file.read_text() == f"# by another\n{BY_FORMS}"


def test_a_table_that_is_uploaded_is_drafted_and_tried(server: Server) -> None:
    there = upload(server, "people.csv", PEOPLE).text
    assert there == "/describe/draft?from=people.csv"
    assert '<option value="approved">' in server.get(there).text
    chosen = {"from": "people.csv", "protected": "sex", "target": "approved"}
    assert server.post("/describe/draft", chosen).headers["location"] == "/describe"
    schema = load_config(server.folder).schema
    assert (schema.names, schema.protected) == (("sex", "age"), ("sex",))
    fails = "def decide(person):\n    return 1 / (person['age'] - 30)"
    (server.folder / "own.py").write_text(fails)
    save(server, "/describe?section=subject", key_function="own:decide")
    server.post("/confirm")
    tried = server.post("/trial").text
    for said in (
        *("8 of 8 failed", "the subject failed: invalid output"),
        "--rows shows what the subject said",
    ):
        assert said in tried
    assert "female" not in tried


def test_uploads_have_plain_names_and_overwrite_nothing(server: Server) -> None:
    for name in ("../../x%20<b>.csv", "..%2F..%5Cx <b>.csv"):
        assert upload(server, name, PEOPLE.encode()).status_code == 200
    assert {each.name for each in server.folder.glob("*.csv")} == {"x_b_.csv", "x_b_-2.csv"}
    for name in ("x.py", "x", "", ".csv", "x.csv/", "loan.py\0.csv.sh"):
        assert upload(server, name.replace("\0", "%00"), b"x").status_code == 400
    assert upload(server, "my.toml", BY_FORMS.encode()).text == "/describe"
    assert (server.folder / "themis.toml").read_text() == BY_FORMS
    assert upload(server, "my.toml", b"version = 1").status_code == 409
    assert upload(server, "model.pkl", b"x").text == "/describe?section=subject&kind=model#edit"
    assert server.post("/describe/draft", {"from": "../x.csv"}).status_code == 404


def test_an_upload_that_breaks_off_leaves_nothing(server: Server) -> None:
    request = server.client.build_request("POST", "/describe/files")
    with closing(HTTPConnection("127.0.0.1", server.port)) as raw:
        raw.putrequest("POST", "/describe/files")
        for name, text in {
            "Cookie": request.headers["cookie"], "Origin": server.base, "Content-Length": "100000",
            "X-Themis-Token": server.form_token(), "X-Themis-Name": "people.csv",
        }.items():  # fmt: skip
            raw.putheader(name, text)
        raw.endheaders(b"x" * 50_000)
        until((server.folder / "people.csv").exists)
    until(lambda: not (server.folder / "people.csv").exists())


def test_a_model_is_loaded_only_where_somebody_trusts_it(server: Server) -> None:
    upload(server, "people.csv", PEOPLE.encode())
    upload(server, "model.pkl", b"cos\nsystem\n(S'touch ran.txt'\ntR.")
    asked = {"from": "people.csv", "model": "model.pkl"}
    again = server.post("/describe/draft", {**asked, "protected": "sex"}).text
    assert "confirm that you trust it" in again
    assert 'value="sex" checked="checked"' in again  # what was chosen stays
    assert 'value="model.pkl" selected="selected"' in again
    asked |= {"trusted": "yes"}
    assert "themis ui --trust-pickle" in server.post("/describe/draft", asked).text
    assert not (server.folder / "ran.txt").exists()


def test_names_that_are_hostile_are_inert(server: Server) -> None:
    add(server, "inputs", "values", HOSTILE, values=f"{HOSTILE[:-2]}\nb")
    for address in ("/describe", "/describe?section=inputs&name=x%22%3E%3Cscript%3E"):
        page = server.get(address).text
        assert "<script>" not in page
    upload(server, "p.csv", f'"</option><script>",b\n{PEOPLE}'.encode())
    assert "<script>" not in server.get("/describe/draft?from=p.csv").text


def press(page: Page, *keys: str) -> None:
    """Press keys, or write what is none."""
    codes = {"Tab": 9, "Enter": 13, "ArrowDown": 40, " ": 32}
    for key in keys:
        if key not in codes:
            page.call("Input.insertText", {"text": key})
            continue
        code = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
        text = {"Enter": {"text": "\r"}, " ": {"text": " "}}.get(key, {})
        page.call("Input.dispatchKeyEvent", {"type": "keyDown", **code, **text})
        page.call("Input.dispatchKeyEvent", {"type": "keyUp", **code})


@pytest.mark.slow
def test_a_keyboard_is_enough_in_a_real_browser(server: Server, file: Path) -> None:
    with Browser() as browser:
        browser.open(server.entry).close()
        address = f"{server.base}/describe?section=inputs&new=yes"
        with opened(browser, address, width=360) as page:
            press(page, "<b>x</b>", "Tab", "one\ntwo")
            state = "document.querySelector('#edit output').textContent"
            until(lambda: "7 characteristics" in page.evaluate(state))
            shown = page.evaluate("document.querySelector('#text').value")
            assert '"<b>x</b>" = ["one", "two"]\n' in shown
            assert page.evaluate("document.documentElement.scrollWidth") <= 360
            press(page, "Tab", "Tab", "Tab", "Enter")
            until(lambda: "<b>x</b>" in file.read_text())
            assert file.read_text() == shown
            page.settle()
            assert page.messages == []
