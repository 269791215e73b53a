"""Answers of a service: how the decision is read from what comes back, and what is no decision."""

from __future__ import annotations

import http
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from themis.errors import Mistake, RequestError, suggest
from themis.subjects.decisions import INVALID, Failure
from themis.subjects.http.requests_credentials import Credentials
from themis.subjects.processes.command_texts import resolve_pointer, shorten

WORDS = ("text", "status")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a service sent back."""

    status: int
    body: bytes
    whole: bool = True  # whether the body was read to its end
    location: str = ""  # where a redirect leads
    retry_after: str = ""  # when to come again, as the service says it
    times: str = ""  # how often it was asked, in words

    @property
    def good(self) -> bool:
        """Whether the service says that it has done what was asked."""
        return 200 <= self.status < 300

    @property
    def headline(self) -> str:
        """The status in words."""
        try:
            return f"HTTP {self.status} {http.HTTPStatus(self.status).phrase}"
        except ValueError:
            return f"HTTP {self.status}"


class AnswerReader:
    """Reads decisions: at a JSON pointer, as the whole text, or from the status.

    An empty pointer is the whole document. For a list of inputs the pointer leads to a list, or
    through one: `/outputs/*/decision`.
    """

    def __init__(self, answer: str, credentials: Credentials, *, many: bool) -> None:
        self.answer = answer
        self.structured = False  # whether an output may have parts
        self._credentials = credentials
        if answer and not answer.startswith("/") and answer not in WORDS:
            remedy = f"{suggest(answer, WORDS)}; or a JSON pointer such as /decision"
            raise _mistake(f"{answer!r} is no place of an answer", remedy)
        if many and answer in WORDS:
            problem = f"{answer!r} holds one decision, and {{inputs}} asks for many"
            raise _mistake(problem, "give the JSON pointer of the list, or send {input}")
        self._list, _, self._inner = answer.partition("/*")
        if self._inner and not self._inner.startswith("/"):  # a key that begins with an asterisk
            self._list, self._inner = answer, ""

    def one(self, reply: Reply) -> Any:
        """The output in an answer to one input, or a Failure."""
        if self.answer == "status":
            return reply.status
        outputs = self._read(reply, None)
        return outputs if isinstance(outputs, Failure) else outputs[0]

    def many(self, reply: Reply, count: int) -> Sequence[Any] | Failure:
        """The outputs, or Failures, in an answer to so many inputs; or one Failure for all."""
        return self._read(reply, count)

    def excerpt(self, reply: Reply) -> str:
        """The start and the end of what a service said, fit for a message."""
        text = self._credentials.redact(reply.body.decode("utf-8", "replace"))
        said = " ".join(text.split())
        return shorten(said if reply.whole else said[:100])

    def _read(self, reply: Reply, count: int | None) -> list[Any] | Failure:
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
        if clean != text and not self._reads_as(outputs, text, count):
            return Failure(INVALID, "the answer repeats a secret")
        return outputs

    def _reads_as(self, outputs: list[Any], text: str, count: int | None) -> bool:
        try:
            return self._outputs(text, count) == outputs
        except ValueError:
            return False

    def _outputs(self, text: str, count: int | None) -> list[Any]:
        if self.answer == "text":
            return [_decision(text.strip(), "the answer")]
        document = _parse(text)
        if count is None:
            found = resolve_pointer(document, self.answer)
            return [found if self.structured else _decision(found, self.answer or "the answer")]
        if isinstance(document, list) and self._list and not self._list[1:2].isdigit():
            problem = f"the answer is a list; what is in each of its items is /*{self._list}"
            raise ValueError(problem)
        listed = resolve_pointer(document, self._list)
        if not isinstance(listed, list):
            shown = shorten(json.dumps(listed))
            raise ValueError(f"{self._list or 'the answer'} is not a list of outputs: {shown}")
        if len(listed) != count:
            raise ValueError(f"the answer has {len(listed)} outputs for {count} inputs")
        if not self._inner and set(map(type, listed)) <= {int, bool}:
            return listed  # the usual case, without a call for each
        return [self._item(each) for each in listed]

    def _item(self, each: Any) -> Any:
        try:
            found = resolve_pointer(each, self._inner)
            return found if self.structured else _decision(found, self.answer or "an output")
        except ValueError as error:
            return Failure(INVALID, str(error))


def _decision(found: Any, what: str) -> Any:
    if isinstance(found, str | int | float) and found != "":
        return found
    hint = ""
    if isinstance(found, dict) and found:
        hint = f"; point to what is inside, such as {next(iter(found))!r}"
    raise ValueError(f"{what} is {shorten(json.dumps(found))}, not a decision{hint}")


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _parse(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        said = " ".join(text.split())
        problem = f"the answer is not JSON: {shorten(said)!r}" if said else "the answer is empty"
    raise ValueError(problem)


def _mistake(problem: str, remedy: str) -> RequestError:
    return RequestError([Mistake("answer", "subject.answer", problem, remedy)])
