"""Who may ask the server of the page, and what its answers allow a browser to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest

from tests.web.serving import Server, example, serving

HEADERS = {
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@pytest.fixture
def stranger(loan: Server) -> Iterator[httpx.Client]:
    """Somebody without a cookie."""
    with httpx.Client(base_url=loan.base, trust_env=False) as client:
        yield client


def check_headers(answer: httpx.Response) -> None:
    """Whether an answer lets a browser do no more than it must."""
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize("host", ["attacker.example", "127.0.0.1", "127.0.0.1:1", "[::1]:{port}"])
def test_other_names_of_the_server_are_refused(loan: Server, host: str) -> None:
    """A name that an attacker lets point here, too, would make its pages the same origin."""
    answer = loan.get("/", headers={"Host": host.format(port=loan.port)})
    assert answer.status_code == 421
    check_headers(answer)


def test_localhost_is_the_same_server(loan: Server) -> None:
    assert loan.get("/", headers={"Host": f"localhost:{loan.port}"}).status_code == 200


@pytest.mark.parametrize("origin", ["http://attacker.example", "http://127.0.0.1:1", "null"])
def test_other_origins_are_refused(loan: Server, origin: str) -> None:
    data = {"token": loan.form_token()}
    headers = {"Origin": origin, "Sec-Fetch-Site": "same-site"}
    assert loan.client.post("/confirm", data=data, headers=headers).status_code == 403
    assert loan.get("/", headers=headers).status_code == 403


def test_a_browser_without_referrers_may_send_forms(loan: Server) -> None:
    """Its origin is null then; what it says of where the form was cannot be made up by a page."""
    headers = {"Origin": "null", "Sec-Fetch-Site": "same-origin"}
    data = {"token": loan.form_token(), "mark": loan.mark()}
    assert loan.client.post("/confirm", data=data, headers=headers).status_code == 303


@pytest.mark.parametrize("path", ["/", "/static/web.css", "/run", "/?token=wrong", "/?token="])
def test_nothing_is_shown_without_the_cookie(stranger: httpx.Client, path: str) -> None:
    answer = stranger.get(path)
    assert answer.status_code == 403
    check_headers(answer)


@pytest.mark.parametrize("token", [None, "wrong", "wröng"])
def test_a_form_without_its_token_changes_nothing(loan: Server, token: str | None) -> None:
    data = {} if token is None else {"token": token}
    answer = loan.client.post("/run", data=data, headers={"Origin": loan.base})
    assert answer.status_code == 403
    check_headers(answer)


def test_the_token_leaves_the_address_bar_and_becomes_a_cookie(
    loan: Server, stranger: httpx.Client
) -> None:
    answer = stranger.get(loan.entry)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"themis-{loan.port}=")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert stranger.get("/").status_code == 200
    check_headers(answer)


def test_the_printed_address_works_in_a_second_browser(loan: Server) -> None:
    for _ in range(2):
        with httpx.Client(base_url=loan.base, follow_redirects=True, trust_env=False) as browser:
            assert browser.get(loan.entry).status_code == 200


@pytest.mark.parametrize("path", ["/", "/none", "/runs/none", "/runs/none/events", "/run"])
def test_every_answer_has_the_headers(loan: Server, path: str) -> None:
    check_headers(loan.get(path))


def test_forms_are_bounded_whatever_they_announce(loan: Server) -> None:
    headers = {"Origin": loan.base, "Content-Type": "application/x-www-form-urlencoded"}
    announced = loan.client.post("/run", content=b"x" * 2_000_001, headers=headers)
    assert announced.status_code == 413
    check_headers(announced)
    pieces = (b"x" * 100_000 for _ in range(21))
    chunked = loan.client.post("/run", content=pieces, headers=headers)
    assert chunked.status_code == 413
    assert "At most 2,000,000 bytes" in chunked.text
    check_headers(chunked)


def test_files_are_bounded(loan: Server) -> None:
    with closing(HTTPConnection("127.0.0.1", loan.port)) as raw:
        raw.putrequest("POST", "/results")
        raw.putheader("Origin", loan.base)
        raw.putheader("Content-Length", "200000001")
        raw.endheaders()
        assert raw.getresponse().status == 413


def test_two_servers_share_a_browser(loan: Server, tmp_path: Path) -> None:
    with serving(example(tmp_path)) as other, httpx.Client(trust_env=False) as browser:
        for each in (loan, other):
            browser.get(each.entry)
        assert [browser.get(each.base).status_code for each in (loan, other)] == [200, 200]
        assert loan.form_token() != other.form_token()


def test_read_only_refuses_every_change(tmp_path: Path) -> None:
    with serving(example(tmp_path), "--read-only") as server:
        described = server.get("/describe?section=inputs&name=age").text
        assert "6 characteristics" in described
        assert "<form" not in described
        for path in ("/run", "/confirm", "/results", "/describe", "/describe/files", "/trial"):
            answer = server.post(path)
            assert answer.status_code == 403
            assert "--read-only" in answer.text
