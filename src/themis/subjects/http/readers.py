"""Readers: the decisions in what a service answers, one or a list of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from themis.errors import RequestError, count_of
from themis.subjects.decisions import INVALID, Failure
from themis.subjects.http.client import RETRYABLE, Reply
from themis.subjects.http.requests import Credentials
from themis.subjects.processes.texts import no_answer_place, parse_json, resolve_pointer, shorten

WORDS = ("text", "status")  # answers that are no JSON pointers


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
        if clean != text and not self._reads_as(outputs, text, count):
            return Failure(INVALID, "the answer repeats a secret")
        return outputs

    def _reads_as(self, outputs: list[Any], text: str, count: int) -> bool:
        try:
            return self._outputs(text, count) == outputs
        except ValueError:
            return False

    def _outputs(self, text: str, count: int) -> list[Any]:
        if self.answer == "text":
            return [_decision(text.strip(), "the answer")]
        document = _document(text)
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
        return found if self.structured else _decision(found, what, self.answer)

    def _item(self, each: Any) -> Any:
        try:
            found = resolve_pointer(each, self._inner)
            return found if self.structured else _decision(found, "an output", self._item_pointer)
        except ValueError as error:
            return Failure(INVALID, str(error))


def _decision(found: Any, what: str, pointer: str = "") -> Any:
    """What a pointer led to, if that is a decision."""
    if isinstance(found, str | int | float) and found != "":
        return found
    hint = ""
    if isinstance(found, dict) and found:
        token = next(iter(found)).replace("~", "~0").replace("/", "~1")
        inside = json.dumps(f"{pointer}/{token}", ensure_ascii=False)
        hint = f"; point to what is inside, such as answer = {inside}"
    problem = f"{pointer or what} is {shorten(json.dumps(found))}, not a decision"
    raise ValueError(f"{problem}{hint}")


def _document(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        said = " ".join(text.split())
        problem = f"the answer is not JSON: {shorten(said)!r}" if said else "the answer is empty"
    raise ValueError(problem)
