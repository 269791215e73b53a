"""Chat: language models behind an API of chat completions; each input is a prompt of its own."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from themis.errors import Mistake, RequestError
from themis.inputs.documents import Documents
from themis.inputs.schema import Schema
from themis.subjects.base import Prices, Tokens
from themis.subjects.decisions import CutOff
from themis.subjects.http.client import Reply, Trouble
from themis.subjects.http.requests import Requests
from themis.subjects.http.subject import AnswerReader, HttpSubject
from themis.subjects.outputs import CUT_HINT, REFUSAL, Meanings
from themis.subjects.templates import Prose
from themis.subjects.texts import parse_json, shorten

ENDPOINT = "/chat/completions"
CHARACTERS = 4  # of a token, about, where nobody counts
FRAME = len('{"role": "user", "content": ""}')  # of a message, beside its text
OURS = ("model", "messages", "stream", "n")  # no parameters: one whole answer to our messages

_FENCED = re.compile(r"```(?:\w*\n|json)?(.*)```", re.DOTALL)
# In the error of a service that lets no model see the prompt.
_FILTERED = re.compile(r'"(content_filter|content_policy_violation|flagged_input)"')
WHERE = "subject.prompt"


class ChatSubject(HttpSubject):
    """A language model that decides: a request of its own for each input, and a message as answer.

    `url` is the base of an API such as that of OpenAI, to which `/chat/completions` is appended
    unless it is there. `user` and `system` are texts with places; `parameters` are sent as they
    are. `answer` is "text", or a JSON pointer into the JSON that the message is. What the model,
    or the service before it, declines to decide is the output "refusal"; so are messages that are
    no JSON and fit the patterns of `refusals`. Tokens are counted as the service says them.
    """

    kind = "chat"
    written = "subject.prompt"
    tokens: Tokens
    stops = frozenset({401, 402, 403, 404})

    def __init__(
        self,
        schema: Schema,
        url: str,
        *,
        user: str,
        system: str = "",
        model: str = "",
        parameters: Mapping[str, Any] | None = None,
        json_schema: Mapping[str, Any] | None = None,
        answer: str = "text",
        refusals: Iterable[str] = (),
        prices: Prices | None = None,
        concurrency: int = 8,
        rate_per_second: float | None = None,
        requests_per_minute: float | None = None,
        timeout_seconds: float = 60.0,
        **options: Any,
    ) -> None:
        if taken := [key for key in OURS if key in (parameters or {})]:
            problem, remedy = "is no parameter that is sent as it is", "leave it out"
            raise RequestError(
                Mistake("not-allowed", f"subject.parameters.{key}", problem, remedy)
                for key in taken
            )
        self.tokens, self.prices = Tokens(), prices
        self._answers = self._sent = 0  # whose tokens are counted, to how many bytes
        self._refusals = tuple(refusals)
        sent = {**({"model": model} if model else {}), **(parameters or {})}
        frame = json.dumps(sent)  # what is no text of a request, but for its messages
        if json_schema is not None:
            described = {"name": "decision", "strict": True, "schema": json_schema}
            sent["response_format"] = {"type": "json_schema", "json_schema": described}
        longest = sent.get("max_completion_tokens", sent.get("max_tokens"))
        self._longest = longest if isinstance(longest, int) else 100  # tokens of an answer
        messages = [
            {"role": role, "content": Prose(text)}
            for role, text in (("system", system), ("user", user))
            if text
        ]
        self._frame = len(frame) + FRAME * len(messages)
        rates = [rate_per_second, requests_per_minute and requests_per_minute / 60]
        super().__init__(
            schema,
            with_endpoint(url),
            body={**_as_is(sent), "messages": messages},
            answer=answer,
            concurrency=concurrency,
            rate_per_second=min(filter(None, rates), default=None),
            timeout_seconds=timeout_seconds,
            **options,
        )
        self.traits = replace(self.traits, seeded="seed" in sent)

    def make_reader(self, answer: str, requests: Requests) -> AnswerReader:
        reader = MessageReader(answer, requests.credentials, many=False)
        reader.refusals = Meanings({REFUSAL: self._refusals}) if self._refusals else None
        return reader

    def expect(self, body: bytes | None) -> float:
        if not self._answers:
            return self._guess(len(body or b"")) + self._longest
        return (
            len(body or b"") * self.tokens.input / self._sent + self.tokens.output / self._answers
        )

    def count(self, body: bytes | None, reply: Reply | Trouble) -> float:
        guessed = math.ceil(self._guess(len(body or b"")))
        if isinstance(reply, Reply) and reply.good:
            used = _usage(reply.body) or _estimate(guessed, reply.body)
        elif isinstance(reply, Trouble) and not reply.unreachable:  # it may have to be paid
            used = _estimated(guessed, self._longest)
        else:
            return 0
        self.tokens += used
        self._answers, self._sent = self._answers + 1, self._sent + len(body or b"")
        return used.total

    def foresee(self, executions: int) -> Tokens:
        if self._answers:
            share = executions / self._answers
            return Tokens(round(share * self.tokens.input), round(share * self.tokens.output))
        read, wrote = round(executions * self._prompt_tokens), executions * self._longest
        return Tokens(read, wrote, read + wrote)

    @cached_property
    def _prompt_tokens(self) -> float:
        """About how many tokens a prompt has."""
        rng, counts = np.random.default_rng(0), [each.size for each in self.schema]
        assert self.requests.body is not None
        prompts = self.requests.body.row.render(rng.integers(0, counts, (64, len(counts))))
        return self._guess(sum(map(len, prompts)) / len(prompts))

    def _guess(self, size: float) -> float:
        """About how many tokens a request of so many bytes has."""
        return max(size - self._frame, 0) / CHARACTERS


def with_endpoint(url: str) -> str:
    """The address of chat completions, of which only the base may be given."""
    if ENDPOINT in url:
        return url
    base, mark, query = url.partition("?")
    return f"{base.rstrip('/')}{ENDPOINT}{mark}{query}"


class MessageReader(AnswerReader):
    """Reads the message of a language model: its text, or a part of the JSON that it is."""

    words: Sequence[str] = ("text",)
    refusals: Meanings | None = None

    def reads(self, reply: Reply) -> bool:
        if reply.good or reply.status not in (400, 403):
            return reply.good
        return bool(_FILTERED.search(reply.body.decode("utf-8", "replace")))

    def excerpt(self, reply: Reply) -> str:
        try:
            error = parse_json(reply.body.decode())["error"]
            said = error if isinstance(error, str) else error["message"]
            return shorten(self._credentials.redact(" ".join(said.split())))
        except (ValueError, LookupError, TypeError, AttributeError):
            return super().excerpt(reply)

    def _outputs(self, text: str, count: int) -> list[Any]:
        try:
            choice = parse_json(text)["choices"][0]
            message = choice["message"]
            said = _bare(_joined(message.get("content")))
        except (ValueError, LookupError, TypeError, AttributeError):
            if _FILTERED.search(text):
                return [REFUSAL]
            raise ValueError(f"the answer is no chat completion: {shorten(text)}") from None
        if message.get("refusal") or choice.get("finish_reason") == "content_filter":
            return [REFUSAL]
        is_cut = choice.get("finish_reason") == "length"
        if not said:
            raise ValueError(f"the message is empty{CUT_HINT if is_cut else ''}")
        if self.answer == "text":
            return [CutOff(said) if is_cut else said]
        return self._part(said, CUT_HINT if is_cut else "")

    def _part(self, said: str, hint: str) -> list[Any]:
        """The part of a message in JSON."""
        try:
            document = parse_json(said)
        except ValueError:
            if self.refusals is not None and self.refusals.matching(said):
                return [said]
            raise ValueError(f"the message is not JSON: {shorten(said)!r}{hint}") from None
        return [self._single(document, "the message")]


def _joined(content: Any) -> str:
    """The text of a message, which may come in parts; empty where there is none."""
    parts = [each.get("text") for each in content] if isinstance(content, list) else [content]
    return "".join(each or "" for each in parts)  # a TypeError of what is no text


def _bare(said: str) -> str:
    """What a model says without its thoughts, and without the fence of code."""
    answer = said.rpartition("</think>")[2].strip()
    fenced = _FENCED.fullmatch(answer)
    return fenced[1].strip() if fenced else answer


def _usage(answer: bytes) -> Tokens | None:
    """The tokens as the service counted them, if it did."""
    try:
        usage = parse_json(answer.decode())["usage"]
        read, wrote = int(usage["prompt_tokens"]), int(usage.get("completion_tokens") or 0)
        wrote = max(wrote, int(usage.get("total_tokens") or 0) - read)  # some leave thoughts out
        return Tokens(read, wrote) if read > 0 <= wrote else None
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError):
        return None


def _estimate(read: int, answer: bytes) -> Tokens:
    try:
        size = len(_joined(parse_json(answer.decode())["choices"][0]["message"].get("content")))
    except (ValueError, LookupError, TypeError, AttributeError):
        size = len(answer)
    return _estimated(read, math.ceil(size / CHARACTERS))


def _estimated(read: int, wrote: int) -> Tokens:
    return Tokens(read, wrote, read + wrote)


def _as_is(value: Any) -> Any:
    """A JSON value as a template without places: braces of its texts are doubled."""
    if isinstance(value, str):
        return value.replace("{", "{{").replace("}", "}}")
    if isinstance(value, Mapping):
        return {_as_is(key): _as_is(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_is(each) for each in value]
    return value


@dataclass(frozen=True)
class Prompt:
    """The messages of a prompt, with places; where one has several texts it is a place itself.

    `contexts` has the characteristic for each such place: `wording` of the user's message, `system`
    of the other. The schema of the subject has to have them.
    """

    user: str
    system: str
    contexts: Mapping[str, Documents]


def prompt_of(given: Mapping[str, Any], folder: Path) -> Prompt:
    """The prompt of a file: each of its texts is one, a `{file = …}`, or a list of those.

    Raises RequestError with all that is wrong with files, which are relative to the folder.
    """
    mistakes: list[Mistake] = []

    def texts(*keys: str) -> Documents:
        found = [each for key in keys for each in _texts(given.get(key, ()), key, folder, mistakes)]
        words, origins = [text for text, _ in found], tuple(origin for _, origin in found)
        names = [str(number) for number in range(1, len(found) + 1)] or ["1"]
        return Documents(names, texts=tuple(words or [""]), origins=origins or ("",))

    every = {"wording": texts("user", "paraphrases"), "system": texts("system")}
    if mistakes:
        raise RequestError(mistakes)
    contexts = {name: each for name, each in every.items() if each.size > 1}
    user, system = (f"{{{n}}}" if n in contexts else each.texts[0] for n, each in every.items())
    return Prompt(user, system, contexts)


def _texts(
    given: Any, key: str, folder: Path, mistakes: list[Mistake]
) -> Iterator[tuple[str, str]]:
    """Each text under a key, and where it was found."""
    where = f"{WHERE}.{key}"
    for number, each in enumerate(given if isinstance(given, list | tuple) else [given], 1):
        if isinstance(each, Mapping):
            each = _content(folder / each["file"], where, mistakes)
        if not each.strip():
            problem, remedy = f"text {number} is empty", "write one, or remove it"
            mistakes.append(Mistake("empty", where, problem, remedy))
        yield each, f"{where}[{number}]"


def _content(path: Path, where: str, mistakes: list[Mistake]) -> str:
    """What a file holds, less the end of its last line."""
    try:
        if path.stat().st_size > 2**20:
            raise OSError(0, "it has more than 1 MiB")
        return path.read_text("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        problem, remedy = "is not UTF-8 text", "save it as UTF-8"
    except (OSError, ValueError) as error:
        problem, remedy = f"can't be read: {getattr(error, 'strerror', error)}", "check its name"
    mistakes.append(Mistake("unreadable-file", where, f"{path.name!r} {problem}", remedy))
    return "?"
