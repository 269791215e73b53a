"""Language models as subjects: what is sent, what is read, what ends a run, what it costs."""

from __future__ import annotations

import _thread
import asyncio
import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.clocks import Clock
from tests.services import SCHEMA, Reply, Request, Service, failure_of, run
from themis import Audit, Integers, Output, RequestError, Schema, SubjectError, read_result
from themis.cli import app
from themis.config.parts import programs
from themis.config.reader import read_config
from themis.subjects.base import Prices
from themis.subjects.decisions import INVALID
from themis.subjects.http import client
from themis.subjects.http.chat import ChatSubject

pytest.importorskip("aiohttp")
pytestmark = pytest.mark.usefixtures("quick_retries")

LARGE = Schema(race=["green", "purple"], age=Integers(18, 20_000))
KEY = "sk-live-0123456789abcdef"


def completion(content: Any = "approved", reason: str = "stop", **more: Any) -> Reply:
    """An answer in the shape of such services."""
    usage = more.pop("usage", {"prompt_tokens": 30, "completion_tokens": 2})
    message = {"role": "assistant", "content": content, **more}
    choices = [{"index": 0, "message": message, "finish_reason": reason}]
    return Reply(json.dumps({"choices": choices, **({"usage": usage} if usage else {})}))


def error(status: int, code: str = "", said: str = "no", **more: Any) -> Reply:
    return Reply(json.dumps({"error": {"message": said, "code": code, "metadata": more}}), status)


def model(service: Service, **options: Any) -> ChatSubject:
    given = {"user": "A {race} applicant of {age}.", **options}
    return ChatSubject(given.pop("schema", SCHEMA), service.url + "/v1", **given)


def saying(service: Service, reply: Reply, **options: Any) -> Any:
    """The one answer that is read from this reply, or its failure."""
    service.answer = lambda _: reply
    answers = run(model(service, **options))
    return answers.failures.get(0) or answers.outputs[0]


class TestRequests:
    def test_prompts_and_parameters_are_sent_as_messages(self, service: Service) -> None:
        service.answer = lambda _: completion()
        schema = {"type": "object", "description": "{race} is no place here"}
        subject = model(
            service,
            system='Answer {{"decision": …}}.',
            model="small-1",
            parameters={"temperature": 0.7, "stop": ["{"]},
            json_schema=schema,
        )
        assert run(subject, [[1, 2]]).outputs == ["approved"]
        (request,) = service.requests
        assert request.path == "/v1/chat/completions"
        described = {"name": "decision", "strict": True, "schema": schema}
        assert request.json == {
            "model": "small-1",
            "temperature": 0.7,
            "stop": ["{"],
            "response_format": {"type": "json_schema", "json_schema": described},
            "messages": [
                {"role": "system", "content": 'Answer {"decision": …}.'},
                {"role": "user", "content": "A purple applicant of 20."},
            ],
        }

    def test_a_prompt_that_is_one_place_stays_a_text(self, service: Service) -> None:
        saying(service, completion(), user="{age}", schema=Schema(age=[40]))
        assert service.requests[0].json["messages"][0]["content"] == "40"

    def test_parameters_do_not_replace_what_themis_sends(self, service: Service) -> None:
        with pytest.raises(RequestError) as refused:
            model(service, parameters={"stream": True, "n": 2, "temperature": 1})
        places = [each.where for each in refused.value.mistakes]
        assert places == ["subject.parameters.stream", "subject.parameters.n"]

    @pytest.mark.parametrize(
        "given",
        ["/v1/", "/v1/chat/completions", "/deployments/x?api-version=2", "/x/chat/completions?v=1"],
    )
    def test_the_endpoint_is_appended_unless_it_is_there(
        self, service: Service, given: str
    ) -> None:
        service.answer = lambda _: completion()
        run(ChatSubject(SCHEMA, service.url + given, user="{input}"))
        path, _, query = service.requests[0].path.partition("?")
        assert path.endswith("/chat/completions")
        assert path.count("chat") == 1
        assert query == given.partition("?")[2]


class TestAnswers:
    @pytest.mark.parametrize(
        ("reply", "words"),
        [
            (completion(None), "the message is empty"),
            (completion("", "length"), "raise max_tokens"),
            (Reply(json.dumps({"error": {"message": "model crashed"}})), "model crashed"),
            (Reply('{"choices": []}'), "no chat completion"),
            (completion(5), "no chat completion"),
            (completion({"decision": "no"}), "no chat completion"),
            (completion([{"type": "text", "text": None}]), "the message is empty"),
            (completion("<think>approved</think>"), "the message is empty"),
            (Reply("[" * 100_000), "no chat completion"),
        ],
    )
    def test_what_holds_no_message_is_a_failure(
        self, service: Service, reply: Reply, words: str
    ) -> None:
        failure = saying(service, reply)
        assert failure.kind == INVALID
        assert words in failure.message

    @pytest.mark.parametrize(
        ("reply", "answer", "output"),
        [
            (completion("```approved```"), "text", "approved"),
            (completion("```\napproved\n```"), "text", "approved"),
            (completion("<think>approved? no</think>\n denied"), "text", "denied"),
            (completion("no opening tag</think>denied"), "text", "denied"),
            (completion([{"type": "text", "text": "a"}, {"text": "b"}]), "text", "ab"),
            (completion('{"decision": "no"}'), "/decision", "no"),
            (completion('```json\n{"decision": "no"}\n```'), "/decision", "no"),
            (completion('```{"decision": "no"}```'), "/decision", "no"),
            (completion('<think>Hm.</think>\n{"decision": "no"}'), "/decision", "no"),
            (completion("I can't decide that."), "/decision", "I can't decide that."),
            (completion(None, refusal="I'm sorry, I can't."), "text", "refusal"),
            (completion("", "content_filter"), "text", "refusal"),
            (error(400, "content_filter"), "text", "refusal"),
            (error(403, flagged_input="…"), "text", "refusal"),
        ],
    )
    def test_a_decision_is_the_text_or_a_part_of_its_json_or_a_refusal(
        self, service: Service, reply: Reply, answer: str, output: str
    ) -> None:
        assert saying(service, reply, answer=answer, refusals=["I can't*"]) == output

    def test_a_service_that_filters_every_prompt_is_asked_on(self, service: Service) -> None:
        service.answer = lambda _: error(403, "content_filter")
        answers = run(model(service, concurrency=1), [[0, age] for age in range(40)])
        assert list(answers.outputs) == ["refusal"] * 40

    def test_several_outputs_are_parts_of_a_message(self, service: Service) -> None:
        said = json.dumps({"decision": "no", "score": 3})
        service.answer = lambda _: completion(f"```json\n{said}\n```")
        outputs = [
            Output(name="decision", at="/decision"),
            Output(name="score", at="/score", min=0, max=9),
        ]
        with Audit(model(service), SCHEMA, outputs=outputs, deterministic=True) as audit:
            result = audit.score("race")
        assert {each.output for each in result.scores if each.high < 0.1} == {"decision", "score"}

    def test_a_message_that_was_cut_off_says_so(self, service: Service) -> None:
        endless = completion("```json" + "\n" * 100_000 + "{", "length")
        assert "raise max_tokens" in saying(service, endless, answer="/decision").message
        service.answer = lambda _: completion("Well, the", "length")
        with pytest.raises(SubjectError, match="fits no label; it was cut off: raise max_tokens"):
            Audit(model(service), SCHEMA, labels={"yes": ["yes*"]}).causal("race")


class TestStops:
    @pytest.mark.parametrize(
        ("reply", "words"),
        [
            (error(401, said="Incorrect API key"), "401 Unauthorized: Incorrect API key"),
            (error(402, said="Insufficient Balance"), "pay for more"),
            (error(400, said="Your credit balance is too low to access the API"), "pay for more"),
            (error(403, "insufficient_quota"), "pay for more"),
            (error(403), "check the credentials"),
            (error(404, said="model 'x' not found"), "model 'x' not found"),
            (error(429, "insufficient_quota", "You exceeded"), "pay for more"),
        ],
    )
    def test_who_is_refused_stops_at_once(self, service: Service, reply: Reply, words: str) -> None:
        service.answer = lambda _: reply
        with pytest.raises(SubjectError, match=words):
            run(model(service), [[0, age] for age in range(60)])
        assert len(service.requests) <= 8

    def test_a_refused_input_that_is_about_credit_stops_nothing(self, service: Service) -> None:
        service.answer = lambda _: error(400, said="The applicant's credit balance is too low")
        assert len(run(model(service), [[0, age] for age in range(3)]).failures) == 3

    def test_what_was_answered_before_the_money_ended_is_measured_and_not_sent_again(
        self, service: Service, tmp_path: Path
    ) -> None:
        def audit() -> Audit:
            subject = model(service, schema=LARGE)
            return Audit(subject, LARGE, cache=tmp_path / "c", deterministic=True)

        def answer(_: Request) -> Reply:
            if len(service.requests) > 150:
                return error(429, "insufficient_quota", "Pay the bill")
            return completion()

        service.answer = answer
        with audit() as poor:
            result = poor.score([["race"], ["age"], ["race", "age"]])
            assert result.stopped == "budget"
            assert result.scores[0].samples > 20
            assert any("Pay the bill" in str(each) for each in result.timing["notes"])
            assert 150 < len(service.requests) <= 150 + 8  # nor is it asked about the next sets
            answered = {each.body for each in service.requests[:150]}
            service.requests.clear()
            assert poor.score([["race"]]).scores[0].samples  # it was paid
        with audit() as later:
            assert later.score("race").scores[0].conclusive
        assert answered.isdisjoint(each.body for each in service.requests)

    @pytest.mark.parametrize("status", [408, 429, 500, 524, 529])
    def test_what_passes_is_sent_again(self, service: Service, status: int) -> None:
        replies = iter([error(status, "rate_limit_exceeded")])
        service.answer = lambda _: next(replies, completion())
        assert run(model(service)).outputs == ["approved"]


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [
        ({"requests_per_minute": 1_200}, 39 * 0.05),
        ({"requests_per_minute": 1_200, "rate_per_second": 10}, 39 * 0.1),
        ({"tokens_per_minute": 240_000}, 39 * 100 / 4_000),
    ],
)
def test_rates_are_kept(
    service: Service, monkeypatch: pytest.MonkeyPatch, limit: dict[str, Any], seconds: float
) -> None:
    """By the client's clock, of which only waiting takes time."""
    clock = Clock.put_into(monkeypatch, client)
    began = clock.now

    async def sleep(pause: float) -> None:
        clock.now += pause

    monkeypatch.setattr(client, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": sleep}))
    service.answer = lambda _: completion(usage={"prompt_tokens": 90, "completion_tokens": 10})
    run(model(service, concurrency=1, **limit), [[0, age] for age in range(40)])
    assert len(service.requests) == 40
    assert clock.now - began == pytest.approx(seconds - client.BURST_SECONDS)


FILE = """
version = 1
[subject]
kind = "chat"
url = "http://127.0.0.1:PORT/v1"
headers = { Authorization = "Bearer ${CHAT_KEY}" }
favourable = ["approved"]
deterministic = true
[subject.labels]
approved = ["approved*"]
denied = ["denied*", "no."]
[subject.prompt]
user = "A {race} applicant of {age}."
[inputs]
race = { values = ["green", "purple"], protected = true }
age = { min = 18, max = 60 }
"""


@pytest.fixture
def file(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of a model that declines purple people under 30, and denies other young people."""
    monkeypatch.setenv("CHAT_KEY", KEY)
    monkeypatch.chdir(tmp_path)

    def answer(request: Request) -> Reply:
        said = request.json["messages"][-1]["content"]
        is_young = int(said.split()[-1][:-1]) < 30
        declines = is_young and "purple" in said
        return completion("Sorry, no." if declines else "Denied." if is_young else "Approved.")

    service.answer = answer
    path = tmp_path / "themis.toml"
    path.write_text(FILE.replace("PORT", str(service.port)), encoding="utf-8")
    return path


def themis(*words: str, code: int = 0) -> str:
    """What a command says, which ends with this code."""
    done = CliRunner().invoke(app, [*words])
    assert done.exit_code == code, done.output
    return done.output


def rewrite(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def test_what_is_wrong_with_a_file_is_said_with_its_line(file: Path) -> None:
    rewrite(file, FILE[FILE.index("[subject.labels]") : FILE.index("[subject.prompt]")], "")
    rewrite(file, "= 60 }", "= 60 }\n[run]\nmax_spend = 1")
    (said,) = themis("score", code=2).splitlines()
    assert said.startswith("error[setting]: themis.toml:15: run.max_spend: what is spent is only")
    rewrite(file, "favour", 'refusals = ["no*"]\nfavour')
    said = themis("score", code=2)
    assert "subject.refusals: only labels tell decisions from refusals" in said
    rewrite(file, "favour", "json_schema = 1\nfavour")
    rewrite(file, "user", "usr")
    rewrite(file, "[run]", "[subject.prices]\ninput = -1\n[run]")
    said = themis("score", code=2)
    for each in (
        "subject.json_schema: must be a table",
        "subject.prompt.usr: there is no such key; did you mean 'user'?",
        "subject.prices.input: must be at least 0, got -1",
        "subject.prices.output: is missing",
    ):
        assert each in said


def test_what_forbids_an_excess_is_said_where_it_was_written(file: Path) -> None:
    excess = ("score", "--measure", "excess")
    said = "error[excess]: {}: with {} nothing shows how often"
    placed = said.format("themis.toml:8: subject.deterministic", "deterministic")
    assert placed in themis(*excess, code=2)
    rewrite(file, "deterministic = true", "parameters.seed = 3")
    assert said.format("themis.toml:8: subject.parameters.seed", "seed") in themis(*excess, code=2)
    rewrite(file, "parameters.seed = 3", "")
    assert said.format("--repeats", "repeats") in themis(*excess, "--repeats", "3", code=2)


def test_who_confirms_a_file_sees_which_files_are_sent(file: Path) -> None:
    secret = file.with_name("secret.txt")
    secret.write_text("{race} {age}", encoding="utf-8")
    rewrite(file, '"A {race} applicant of {age}."', '{ file = "secret.txt" }')
    named = {each.key: each for each in programs(read_config(file))}
    assert "secret.txt" in named["prompt"].words
    assert secret in named["prompt"].files
    assert KEY not in str(named)


def test_a_pilot_sends_no_more_than_asked_and_keeps_what_was_answered(
    service: Service, file: Path
) -> None:
    rewrite(file, "favour", 'refusals = ["sorry*"]\nfavour')
    rewrite(file, "[inputs]", "[subject.prices]\ninput = 100\noutput = 1000\n[inputs]")
    said = json.loads(themis("validate", "--pilot", "60", "--json"))
    sent = len(service.requests)
    assert 30 < sent <= 60
    pilot = said["pilot"]
    assert (pilot["executions"], pilot["repeated"], pilot["differing"]) == (sent, 20, 0)
    assert (pilot["tokens_in"], pilot["tokens_out"]) == (30 * sent, 2 * sent)
    assert pilot["spend"] == pytest.approx(0.005 * sent)
    assert said["forecast"]["tokens"] == 32 * said["forecast"]["executions"]
    assert "at a cost of" in said["costs"][-1]
    again = themis("validate", "--pilot", "60")
    assert "all answers come from an earlier run" in again
    assert "20 inputs got a different decision" in again
    assert len(service.requests) == sent


def test_no_key_is_in_anything_that_is_written_or_said(service: Service, file: Path) -> None:
    def answer(request: Request) -> Reply:
        if len(service.requests) % 7 == 3:
            return error(500, said=f"who is {request.headers['Authorization']}?")
        return completion(f"approved {request.headers['Authorization']}")

    service.answer = answer
    said = themis("validate", code=3)
    service.answer = lambda request: error(401, said=f"wrong: {request.headers}")
    said += themis("score", "-v", "--events", "events", code=3)
    assert "wrong: " in said
    service.answer = lambda request: (
        error(400, said=request.headers["Authorization"])
        if b"of 21." in request.body
        else completion()
    )
    said += themis("score", "-o", "r.json", code=3)
    said += themis("report", "r.json", "-o", "r.html")
    assert {each.headers["Authorization"] for each in service.requests} == {f"Bearer {KEY}"}
    written = [path.read_bytes() for path in file.parent.rglob("*") if path.is_file()]
    assert len(written) > 4
    assert KEY.encode() not in b"".join([said.encode(), *written])


def test_what_declines_to_decide_has_its_rate_by_group_and_is_never_favourable(
    service: Service, file: Path
) -> None:
    themis("score", code=3)  # what fits no label is no decision
    sent = len(service.requests)
    rewrite(file, "favour", 'refusals = ["sorry*"]\nfavour')
    themis("score", "-o", "result.json")
    assert len(service.requests) == sent  # other labels need no other answers
    scores = read_result("result.json").scores
    assert {(each.measure, each.output): each.score for each in scores} == {
        ("causal", "decision"): pytest.approx(12 / 43),
        ("causal", "answered"): pytest.approx(12 / 43),
        ("group", "decision"): 0.0,
        ("group", "answered"): pytest.approx(12 / 43),
    }
    rewrite(file, '["approved"]', '["refusal"]')
    assert "'refusal' is no label" in themis("score", code=2)


class TestMoney:
    PRICES = Prices(input=1.0, output=10.0)  # so that a request costs 50 millionths

    def audit(self, service: Service, **settings: Any) -> Audit:
        service.answer = lambda request: completion(("denied", "approved")[len(request.body) % 2])
        subject = model(service, prices=self.PRICES)
        return Audit(subject, SCHEMA, favourable=["approved"], error=0.05, **settings)

    @pytest.mark.parametrize("limit", [{"max_total_tokens": 3_200}, {"max_spend": 0.005}])
    def test_a_limit_is_exceeded_by_what_is_in_flight_at_most(
        self, service: Service, limit: dict[str, float]
    ) -> None:
        with self.audit(service, **limit) as audit:
            result = audit.score("race")
        assert result.stopped == "budget"
        assert 50 < len(service.requests) <= 100 + 8
        used = result.timing
        assert (used["tokens_in"], used["tokens_out"]) == tuple(
            each * len(service.requests) for each in (30, 2)
        )
        assert used["spend"] == pytest.approx(50e-6 * len(service.requests))

    def test_answers_of_the_cache_cost_nothing(self, service: Service, tmp_path: Path) -> None:
        for _ in range(2):
            settings = {"max_total_tokens": 3_200, "cache": tmp_path / "c", "deterministic": True}
            with self.audit(service, **settings) as audit:
                before = len(service.requests)
                audit.score("race")
                assert 32 * (len(service.requests) - before) <= 3_200 + 8 * 32
        bodies = [each.body for each in service.requests]
        assert len(bodies) > 110
        assert len(bodies) == len(set(bodies))

    @pytest.mark.parametrize(
        ("usage", "read", "wrote"),
        [
            ({"prompt_tokens": 30, "completion_tokens": 2}, 30, 2),
            ({"prompt_tokens": 30, "completion_tokens": 2, "total_tokens": 132}, 30, 102),
            *((count, 6, 10) for count in (None, -5, 0, "many", [])),
        ],
    )
    def test_tokens_are_those_of_the_service_thoughts_included_or_estimated(
        self, service: Service, usage: Any, read: int, wrote: int
    ) -> None:
        counted = isinstance(usage, dict)
        given = usage if counted or usage is None else {"prompt_tokens": usage}
        subject = model(service)
        service.answer = lambda _: completion("a" * 40, usage=given)
        assert run(subject, [[0, 0]]).outputs == ["a" * 40]
        assert subject.tokens.output == wrote
        assert read <= subject.tokens.input <= read + 4 * (not counted)  # of 24 characters
        assert subject.tokens.estimated == (0 if counted else subject.tokens.total)

    def test_tokens_are_foreseen_before_anything_is_sent(self, service: Service) -> None:
        subject = model(service, user="x" * 400 + "{input}", parameters={"max_tokens": 7})
        foreseen = subject.foresee(1_000)
        assert 100_000 < foreseen.input < 115_000
        assert foreseen.output == 7_000
        assert not service.requests

    def test_an_answer_without_end_is_counted_by_its_size(self, service: Service) -> None:
        service.answer = lambda _: completion("a" * 10**6)
        subject = model(service)
        assert "more than 524,288 bytes" in failure_of(subject).message
        assert subject.tokens.output == 524_288 / 4

    @pytest.mark.parametrize("breaks", [True, False])
    def test_what_was_under_way_when_it_broke_or_the_run_ended_is_counted(
        self, service: Service, breaks: bool
    ) -> None:
        def answer(request: Request) -> None:
            if not breaks:
                if request in service.requests[7:]:
                    _thread.interrupt_main()
                service.stopped.wait()

        service.answer = answer
        subject = model(service, parameters={"max_tokens": 50}, retries=0, concurrency=8)
        with nullcontext() if breaks else pytest.raises(KeyboardInterrupt):
            run(subject, [[0, age] for age in range(8)])
        assert subject.tokens.output == 8 * 50

    def test_what_came_too_late_is_counted_each_time_and_not_sent_again_behind_the_limit(
        self, service: Service
    ) -> None:
        def never(_: Request) -> None:
            service.stopped.wait()

        service.answer = never
        subject = model(service, parameters={"max_tokens": 50}, concurrency=2, timeout_seconds=0.1)
        with Audit(subject, SCHEMA, max_total_tokens=600, max_failures=1) as audit:
            assert audit.score("race").stopped == "budget"
        sent, used = len(service.requests), subject.tokens
        assert used.output == 50 * sent
        assert used.total == used.estimated <= 600 + 2 * used.total / sent

    def test_limits_that_nothing_can_keep_are_mistakes(self, service: Service) -> None:
        with pytest.raises(RequestError, match=r"max_spend.*prices"):
            Audit(model(service), SCHEMA, max_spend=1).causal("race")
        with pytest.raises(RequestError, match=r"max_total_tokens.*no tokens"):
            Audit(lambda _: 1, SCHEMA, max_total_tokens=9).causal("race")


def test_a_model_that_is_told_to_repeat_itself_has_no_excess(service: Service) -> None:
    service.answer = lambda _: completion()
    seeded = Audit(model(service, parameters={"seed": 1}), SCHEMA, favourable=["approved"])
    with pytest.raises(RequestError, match="with seed nothing shows how often"):
        seeded.excess("race")
    assert not service.requests
    assert seeded.causal("race").score == 0
