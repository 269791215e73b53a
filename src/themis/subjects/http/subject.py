"""Web services as subjects: requests over kept connections, one input or many in each."""

from __future__ import annotations

import hashlib
import json
import random
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import NDArray

from themis.errors import RequestError, SubjectError, count_of
from themis.inputs.characteristics import Value
from themis.inputs.schema import Schema
from themis.subjects.base import (
    Answers,
    Batch,
    BudgetEndedError,
    CodesBatch,
    Subject,
    Traits,
    UnpaidError,
)
from themis.subjects.decisions import (
    CRASH,
    INVALID,
    NOT_SENT,
    TRANSPORT,
    CulpritSearch,
    Failure,
)
from themis.subjects.http.client import (
    CREDENTIALS,
    REDIRECTS,
    REFUSALS,
    RETRYABLE,
    Client,
    Limits,
    Reply,
    Trouble,
)
from themis.subjects.http.requests import Credentials, Requests
from themis.subjects.processes.programs import check_limits
from themis.subjects.secrets import Secrets, inherited_secrets
from themis.subjects.texts import decision, no_answer_place, parse_json, resolve_pointer, shorten

if TYPE_CHECKING:
    from yarl import URL

INPUTS_PER_REQUEST = 1_000  # at most, where a request carries a list
REQUESTS_EACH = 16  # requests of a batch for each connection, where one carries one input
_MONEY = "pay for more: what was answered is in the cache, from which the next run goes on"
REMEDIES = {
    401: CREDENTIALS,
    407: CREDENTIALS,
    402: _MONEY,
    403: CREDENTIALS,
    404: "check the url of [subject]",
    429: "rate_per_second of [subject] has fewer requests sent",
}
REDIRECTED = "give the address to which it leads as url of [subject]"

# Failures that no smaller request would escape.
_ABOUT_THE_SERVICE = {401, 403, 404, 405, 407, 429} | REDIRECTS
# Failures of a service that is down, or that one of the inputs brings down.
_MAYBE_DOWN = RETRYABLE - {429, 500}
WORDS = ("text", "status")  # answers that are no JSON pointers


class HttpSubject(Subject):
    """A web service that decides: one request for each input, or for a list of inputs.

    `body` is JSON, as text or as data, with places: `{race}` within a string inserts text, a
    string that is nothing but `{age}` becomes the value itself, `{input}` a JSON object with all
    values, `{inputs}` a list of such objects (then the answer is a list, too). Places may stand in
    the `url`, too, where values are percent-encoded; `{{` and `}}` stand for braces. Without a
    body and without places the input is sent as a JSON object.

    `answer` says where the output is: a JSON pointer ("" is the whole document; for lists
    "/outputs" or "/outputs/*/decision"), "text" for the whole answer, or "status". Outputs are JSON
    values. `${NAME}` in the url and the headers stands for an environment variable, whose value is
    a secret: it is sent, and neither shown nor hashed.

    What fails for the time being (429, 5xx, no connection, no answer in time) is tried again
    `retries` times, as late as the service asks for. Redirects are refused.
    """

    kind = "http"
    covered = "requests"
    stops: frozenset[int] = frozenset()  # statuses after which nothing more is asked
    reads_texts = True
    written = "subject.body"  # where the file says what is sent

    def __init__(
        self,
        schema: Schema,
        url: str,
        *,
        method: str = "POST",
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        answer: str = "",
        concurrency: int = 16,
        rate_per_second: float | None = None,
        retries: int = 3,
        timeout_seconds: float = 10.0,
        tokens_per_minute: float | None = None,
        version: str = "",
    ) -> None:
        self.schema = schema
        check_limits(concurrency=concurrency, timeout_seconds=timeout_seconds)
        check_limits(rate_per_second=1 if rate_per_second is None else rate_per_second)
        if retries < 0:
            raise RequestError.one("subject", "subject.retries", f"is {retries}", "use 0 or more")
        self._limits = Limits(
            concurrency, rate_per_second, retries, timeout_seconds, tokens_per_minute
        )
        self._given: dict[str, Any] = {
            "url": url,
            "method": method,
            "headers": dict(headers or {}),
            "body": body,
        }
        self._answer, self._version = answer, version
        self._open()
        self.inputs_per_request = INPUTS_PER_REQUEST if self.requests.many else 1
        each = INPUTS_PER_REQUEST if self.requests.many else REQUESTS_EACH
        slots = 1 if self.requests.many else concurrency  # a list takes what there is
        self.traits = Traits(external=True, batch_size=concurrency * each, slots=slots)

    def load(self, codes: NDArray[Any]) -> Batch:
        return CodesBatch(self.run, codes)

    def fingerprint(self) -> str:
        """A hash of what is sent and read, secrets by their names; the service itself is unknown.

        A service that changes behind its address is told apart by `version` only.
        """
        parts = [self.kind, *self.requests.described(), self._answer, self._version]
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part.encode() + b"\0")
        return digest.hexdigest()[:16]

    def secrets(self) -> Secrets:
        secrets = self.requests.credentials
        secrets.protect_variables(inherited_secrets())
        return secrets

    def reproduce(self, row: Mapping[str, Value]) -> str:
        return self.requests.curl(row)

    def close(self) -> None:
        self.client.close()

    def run(self, codes: NDArray[Any]) -> Answers:
        """The answers of the service to these inputs, in order."""
        self.reader.structured = self.structured
        self.client.deadline = self.deadline
        answers = self.begin(len(codes))
        exchange = _Exchange(self, codes, answers)
        try:
            exchange.run()
            if exchange.ending is not None:
                raise exchange.ending
        except BaseException:
            known = {place: each for place, each in answers.failures.items() if each.alone}
            given, sent = self.client.given, self.client.requests_sent
            self.unfinished = Answers(answers.outputs, known, given, sent)
            raise
        self.inputs_per_request = exchange.inputs_per_request
        return self.finish(answers, self.client.given, self.client.requests_sent)

    def _open(self) -> None:
        requests = Requests(self.schema, **self._given, where=self.written)
        self.requests: Requests = requests
        self.reader = self.make_reader(self._answer, requests)
        refusals = frozenset[int]() if self._answer == "status" else REFUSALS
        self.client = Client(requests, self._limits, refusals)
        weakref.finalize(self, self.client.close)

    def make_reader(self, answer: str, requests: Requests) -> AnswerReader:
        """What reads the decision in an answer."""
        return AnswerReader(answer, requests.credentials, many=requests.many)

    def expect(self, body: bytes | None) -> float:
        """About how many tokens a request takes, where somebody counts them."""
        return 0

    def count(self, body: bytes | None, reply: Reply | Trouble) -> float:
        """How many tokens a request took each time it was sent, which are counted here."""
        return 0

    def __getstate__(self) -> dict[str, Any]:
        # secrets of the environment stay here, too
        live = ("requests", "reader", "client", "is_spent")
        return {key: value for key, value in self.__dict__.items() if key not in live}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()


class _Exchange:
    """Asks a service about the inputs of one batch, alone or in lists, and notes the outcomes.

    An input that makes a list fail is found by halving the list.
    """

    def __init__(self, subject: HttpSubject, codes: NDArray[Any], answers: Answers) -> None:
        self.inputs_per_request = size = subject.inputs_per_request  # as far as we know yet
        self._subject, self._client, self._reader = subject, subject.client, subject.reader
        self._requests = requests = subject.requests
        self._urls = _addresses(requests, codes)
        self._rows = [] if requests.body is None else requests.body.row.render(codes)
        places = range(len(codes))
        self._lists = iter([places[at : at + size] for at in places[::size]])
        self.ending: Exception | None = None  # why nothing more is asked; what is sent is awaited
        self._outputs, self._failures = answers.outputs, answers.failures

    def run(self) -> None:
        """Fill in what the service answers to all of them."""
        client = self._client
        client.given = client.requests_sent = 0
        client.run(self._ask, workers=len(self._outputs))

    async def _ask(self) -> None:
        """Have one list after the other answered, until there are none."""
        while self._goes_on() and (places := next(self._lists, None)) is not None:
            await self._settle(places)

    def _goes_on(self) -> bool:
        """Whether one more request may be sent."""
        if self.ending is None and self._subject.is_spent():
            self.ending = BudgetEndedError()
        return self.ending is None

    async def _settle(self, places: range) -> None:
        """Ask about a list in one request, and about parts of it if it fails."""
        search = CulpritSearch([places])
        for part in search:
            reply = await self._send(part, isolating=1 < len(part) < len(places))
            if self._ends(reply):
                return
            failure = self._note(part, reply)
            if failure is None:
                continue
            failure = replace(failure, alone=failure.alone and len(part) == 1)
            self._failures.update(dict.fromkeys(part, failure))
            blame = _blame(reply)
            whole = len(part) == len(places) > 2
            if blame == "perhaps" and whole and not await self._is_up(places):
                return
            if len(part) == 1 or blame != "service":
                search.halve(part)

    async def _is_up(self, places: range) -> bool:
        """Whether a service that failed for a list answers one of two inputs, each alone."""
        for place in random.Random(len(places)).sample(places, 2):
            alone = range(place, place + 1)
            reply = await self._send(alone)
            self._note(alone, reply)
            if isinstance(reply, Reply) and _blame(reply) == "input":
                return True
        return False

    def _ends(self, reply: Reply | Failure) -> bool:
        """Whether the service refuses whoever asks, so that nobody is to blame for it."""
        if isinstance(reply, Failure) or self._reader.reads(reply):
            return False
        if reply.status in self._subject.stops or reply.out_of_quota:
            remedy = _MONEY if reply.out_of_quota else REMEDIES.get(reply.status, "")
            plain = f"the service refuses all requests: {reply.headline}"
            said = f"{plain}: {self._reader.excerpt(reply)}. {remedy}"
            kind = UnpaidError if remedy is _MONEY else SubjectError
            self.ending = kind(said, plain=f"{plain}. {remedy}")
        return self.ending is not None

    async def _send(self, part: Sequence[int], *, isolating: bool = False) -> Reply | Failure:
        template, start, stop = self._requests.body, part[0], part[-1] + 1
        body = None if template is None else template.join(self._rows[start:stop])
        return await self._client.send(
            self._urls[start if len(self._urls) > 1 else 0],
            body,
            inputs=len(part),
            limit=2**19 + 2**12 * (len(part) - 1),  # bytes that are read of an answer
            tokens=self._subject.expect(body),
            count=partial(self._subject.count, body),
            goes_on=self._goes_on,
            isolating=isolating,
        )

    def _note(self, part: Sequence[int], reply: Reply | Failure) -> Failure | None:
        """Note what was answered to a part; or why there is no answer."""
        outcomes = self._outcomes(reply, len(part))
        if isinstance(outcomes, Failure):
            return outcomes
        self._client.hear()
        for place, outcome in zip(part, outcomes, strict=True):
            self._failures.pop(place, None)
            if isinstance(outcome, Failure):
                self._failures[place] = outcome
            else:
                self._outputs[place] = outcome
        return None

    def _outcomes(self, reply: Reply | Failure, count: int) -> Sequence[Any] | Failure:
        """The outputs for so many inputs, or why there are none."""
        if isinstance(reply, Failure):
            return reply
        if reply.status == 413:  # the request is too large
            self.inputs_per_request = min(self.inputs_per_request, max(count // 2, 1))
        if self._reader.reads(reply):
            return self._reader.read(reply, count)
        if reply.status in REDIRECTS:
            where = self._requests.credentials.redact(reply.location)
            problem = f"{reply.headline}: a redirect to {where!r} is not followed"
            return Failure(CRASH, problem, reply.headline, remedy=REDIRECTED)
        said = self._reader.excerpt(reply)
        message = f"{reply.headline}{reply.times}{': ' if said else ''}{said}"
        kind = TRANSPORT if reply.status in RETRYABLE else CRASH
        remedy = REMEDIES.get(reply.status, "")
        return Failure(kind, message, f"{reply.headline}{reply.times}", remedy=remedy)


def _addresses(requests: Requests, codes: NDArray[Any]) -> list[URL]:
    """The address of each input, or one for all."""
    from yarl import URL  # comes with aiohttp

    template = requests.address.template
    rendered = template.render(codes if template.slots else codes[:1])
    return [URL(each.decode(), encoded=True) for each in rendered]


def _blame(reply: Reply | Failure) -> Literal["service", "perhaps", "input"]:
    """Who is to blame for what was said about a list, or for silence.

    A service may "perhaps" have gone down for a moment because of one of the inputs.
    """
    if isinstance(reply, Failure):
        return "perhaps" if reply.kind in (TRANSPORT, NOT_SENT) else "input"
    if reply.status in _ABOUT_THE_SERVICE:
        return "service"
    return "perhaps" if reply.status in _MAYBE_DOWN else "input"


class AnswerReader:
    """Reads decisions: at a JSON pointer, as the whole text, or from the status.

    An empty pointer is the whole document. For a list of inputs the pointer leads to a list, or
    through one: `/outputs/*/decision`.
    """

    words: Sequence[str] = WORDS

    def __init__(self, answer: str, credentials: Credentials, *, many: bool) -> None:
        self.answer = answer
        self.structured = False  # whether an output may have parts
        self._credentials, self._many = credentials, many
        if answer and not answer.startswith("/") and answer not in self.words:
            raise no_answer_place(answer, self.words)
        if many and answer in WORDS:
            problem = f"{answer!r} holds one decision, and {{inputs}} asks for many"
            remedy = "give the JSON pointer of the list, or send {input}"
            raise RequestError.one("answer", "subject.answer", problem, remedy)
        self._list, _, self._inner = answer.partition("/*")
        if self._inner and not self._inner.startswith("/"):  # a key that begins with an asterisk
            self._list, self._inner = answer, ""
        self._item_pointer = f"{self._list}/*{self._inner}"

    def reads(self, reply: Reply) -> bool:
        """Whether a decision may be in this answer."""
        is_decided = self.answer == "status" and 400 <= reply.status < 500
        return reply.good or (is_decided and reply.status not in RETRYABLE)

    def excerpt(self, reply: Reply) -> str:
        """The start and the end of what a service said, fit for a message."""
        text = self._credentials.redact(reply.body.decode("utf-8", "replace"))
        said = " ".join(text.split())
        return shorten(said if reply.whole else said[:100])

    def read(self, reply: Reply, count: int) -> list[Any] | Failure:
        """The outputs, or Failures, in an answer to so many inputs; or one Failure for all."""
        if self.answer == "status":
            return [reply.status]
        if not reply.whole:
            start = self.excerpt(reply)
            return Failure(INVALID, f"an answer of more than {len(reply.body):,} bytes: {start!r}")
        try:
            text = reply.body.decode()
        except UnicodeDecodeError:
            return Failure(INVALID, f"the answer is not UTF-8: {self.excerpt(reply)!r}")
        # Messages repeat parts of the text, so that it must hold no secret when it is read.
        clean = self._credentials.redact(text)
        try:
            outputs = self._outputs(clean, count)
        except ValueError as error:
            return Failure(INVALID, str(error))
        with suppress(ValueError):
            if clean == text or self._outputs(text, count) == outputs:
                return outputs
        return Failure(INVALID, "the answer repeats a secret")

    def _outputs(self, text: str, count: int) -> list[Any]:
        if self.answer == "text":
            return [decision(text.strip(), "the answer")]
        try:
            document = parse_json(text)
        except ValueError:
            said = " ".join(text.split())
            problem = f"not JSON: {shorten(said)!r}" if said else "empty"
            raise ValueError(f"the answer is {problem}") from None
        if not self._many:
            return [self._single(document, "the answer")]
        listed = resolve_pointer(document, self._list)
        if not isinstance(listed, list):
            shown = shorten(json.dumps(listed))
            raise ValueError(f"{self._list or 'the answer'} is not a list of outputs: {shown}")
        if len(listed) != count:
            raise ValueError(
                f"the answer has {count_of(len(listed), 'output')} for {count_of(count, 'input')}"
            )
        if not self._inner and set(map(type, listed)) <= {int, bool}:
            return listed  # the usual case, without a call for each
        return [self._item(each) for each in listed]

    def _single(self, document: Any, what: str) -> Any:
        """The output in a document of one."""
        found = resolve_pointer(document, self.answer)
        return found if self.structured else decision(found, what, self.answer)

    def _item(self, each: Any) -> Any:
        try:
            found = resolve_pointer(each, self._inner)
            return found if self.structured else decision(found, "an output", self._item_pointer)
        except ValueError as error:
            return Failure(INVALID, str(error))
