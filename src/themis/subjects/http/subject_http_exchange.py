"""Exchanges: the inputs of a batch, what a service answered, and which input made it fail."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from themis.subjects.base import ISOLATED_FAILURES
from themis.subjects.decisions import CRASH, TIMEOUT, TRANSPORT, Failure
from themis.subjects.http.client import REDIRECTS, RETRYABLE, Client
from themis.subjects.http.requests_http_requests import Requests
from themis.subjects.http.subject_http_answers import AnswerReader, Reply

if TYPE_CHECKING:
    from yarl import URL

ANSWER_LIMIT = 2**19  # bytes read of an answer
ANSWER_LIMIT_PER_INPUT = 2**12  # further bytes for each further input
TOO_LARGE = 413

# Failures that no smaller request would escape.
_ABOUT_THE_SERVICE = {401, 403, 404, 405, 407} | REDIRECTS | RETRYABLE - {500}


class Exchange:
    """Asks a service about the inputs of one batch, alone or in lists, and notes the outcomes."""

    def __init__(
        self, client: Client, requests: Requests, reader: AnswerReader, codes: NDArray[Any]
    ) -> None:
        self.outputs: list[Any] = [None] * len(codes)
        self.failures: dict[int, Failure] = {}
        self.inputs_per_request = sys.maxsize  # as far as the service let us know
        self._client, self._requests, self._reader = client, requests, reader
        self._urls = _addresses(requests, codes)
        self._codes = codes
        self._bodies: list[bytes] | None = None
        if requests.body is not None and not requests.many:
            self._bodies = [requests.body.join([row]) for row in requests.body.row.render(codes)]
        self._culprits = 0

    async def ask(self, place: int) -> None:
        """Send one input in a request of its own."""
        url = self._urls[place if len(self._urls) > 1 else 0]
        body = None if self._bodies is None else self._bodies[place]
        outcome = self._outcome(await self._client.send(url, body, limit=ANSWER_LIMIT))
        if isinstance(outcome, Failure):
            self.failures[place] = outcome
        else:
            self.outputs[place] = outcome

    async def settle(self, places: range) -> None:
        """Send these inputs as a list; one that makes it fail is found by halving the list."""
        template = self._requests.body
        assert template is not None
        rows = template.row.render(self._codes[places.start : places.stop])
        pending = [range(len(rows))]
        while pending:
            part = pending.pop()
            limit = ANSWER_LIMIT + ANSWER_LIMIT_PER_INPUT * (len(part) - 1)
            body, alone = template.join(rows[part.start : part.stop]), len(part) == 1
            reply = await self._client.send(self._urls[0], body, limit=limit, patient=alone)
            outcomes = self._outcomes(reply, len(part))
            if isinstance(outcomes, Failure):
                if not alone and self._culprits < ISOLATED_FAILURES and _may_be_one_input(reply):
                    middle = len(part) // 2
                    pending += [part[middle:], part[:middle]]
                    continue
                self._culprits += 1
                outcomes = [outcomes] * len(part)
            self._note(places.start + part.start, outcomes)

    def _note(self, start: int, outcomes: Sequence[Any]) -> None:
        """Keep the outcomes of a list whose first input stands at `start`."""
        self.outputs[start : start + len(outcomes)] = outcomes
        for place, outcome in enumerate(outcomes, start):
            if isinstance(outcome, Failure):
                self.outputs[place], self.failures[place] = None, outcome

    def _outcome(self, reply: Reply | Failure) -> Any:
        """The output for one input, or why there is none."""
        if isinstance(reply, Failure):
            return reply
        decides = self._reader.answer == "status" and 400 <= reply.status < 500
        if reply.good or (decides and reply.status not in RETRYABLE):
            return self._reader.one(reply)
        return self._refusal(reply)

    def _outcomes(self, reply: Reply | Failure, count: int) -> Sequence[Any] | Failure:
        """The outputs for a list of inputs, or why there are none."""
        if isinstance(reply, Failure):
            return reply
        if reply.status == TOO_LARGE:
            self.inputs_per_request = min(self.inputs_per_request, max(count // 2, 1))
        return self._reader.many(reply, count) if reply.good else self._refusal(reply)

    def _refusal(self, reply: Reply) -> Failure:
        """What a service says when it does not do what was asked."""
        if reply.status in REDIRECTS:
            where = self._requests.credentials.redact(reply.location)
            return Failure(CRASH, f"{reply.headline}: a redirect to {where!r} is not followed")
        said = self._reader.excerpt(reply)
        message = f"{reply.headline}{reply.times}{': ' if said else ''}{said}"
        return Failure(TRANSPORT if reply.status in RETRYABLE else CRASH, message)


def _addresses(requests: Requests, codes: NDArray[Any]) -> list[URL]:
    """The address of each input, or one for all."""
    from yarl import URL  # comes with aiohttp

    template = requests.address.template
    rendered = template.render(codes if template.columns else codes[:1])
    return [URL(each.decode(), encoded=True) for each in rendered]


def _may_be_one_input(reply: Reply | Failure) -> bool:
    """Whether a list may have failed because of one of its inputs, or because of its length."""
    if isinstance(reply, Failure):
        return reply.kind == TIMEOUT
    return reply.status not in _ABOUT_THE_SERVICE
