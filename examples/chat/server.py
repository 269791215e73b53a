"""A stand-in for a language model: a chat service of which the truth is known.

    python server.py truth.toml themis score         # serve while a command runs
    python server.py --set fails=0.01 truth.toml     # serve until Ctrl-C

It answers POST …/chat/completions as such services do. The file says how probable each answer is,
and which rules, found in the prompt, alter that; its keys are the fields of `Truth`. The command
gets the address as CHAT_HOST and the key as CHAT_API_KEY. GET /stats counts what was asked.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LETTERS = 4  # of a token, about


@dataclass
class Truth:
    """What the stand-in answers, and how it behaves."""

    answers: dict[str, float]  # their chances at temperature 1
    rules: list[dict[str, Any]] = field(default_factory=list)  # find, add, and for numbers above
    texts: dict[str, list[str]] = field(default_factory=dict)  # how an answer may be written
    refusal: str = ""  # the answer that is a refusal
    drift: float = 0.0  # so much the last answer gains from the first one in 1,000 requests
    fenced: bool = False  # JSON stands between ```json and ```
    usage: bool = True  # answers say how many tokens they took
    seed: int | str = 0  # two of the same seed repeat each other
    key: str = "example-key"
    latency_seconds: float = 0.0
    fails: float = 0.0  # the share of requests that end with 500
    per_second: float = float("inf")  # requests; the others get 429 and Retry-After
    quota: float = float("inf")  # answers; all requests behind get `quota_status`
    quota_status: int = 429  # or 402

    def chances(self, prompt: str, temperature: float = 1.0, before: int = 0) -> dict[str, float]:
        """How probable each answer to a prompt is, `before` requests after the start."""
        chances = Counter(self.answers)
        for rule in self.rules:
            found = re.search(rule["find"], prompt)
            if found and ("above" not in rule or float(found[1]) >= rule["above"]):
                chances.update(rule["add"])
        moved = min(self.drift * before / 1000, max(chances[next(iter(self.answers))], 0.0))
        chances.update({next(iter(self.answers)): -moved, list(self.answers)[-1]: moved})
        if temperature == 0:
            first = max(chances, key=chances.__getitem__)
            return {name: float(name == first) for name in chances}
        weights = {name: max(each, 0.0) ** (1 / temperature) for name, each in chances.items()}
        return {name: each / sum(weights.values()) for name, each in weights.items()}


class RefusedError(Exception):
    """A request that is not answered: status, code, and headers."""

    def __init__(self, status: int, code: str, **headers: str) -> None:
        super().__init__(status, code, headers)


class Model:
    """A truth at work. The n-th answer to a prompt depends on both alone, unless it drifts."""

    def __init__(self, truth: Truth) -> None:
        self.truth, self._lock = truth, threading.Lock()
        self.asked: Counter[str] = Counter()  # prompts that were answered, and how often
        self.requests = self.tokens = 0
        self._second, self._allowed = 0, 0.0

    def complete(self, body: dict[str, Any], key: str | None) -> dict[str, Any]:
        """The answer to a request, in the shape of a chat completion."""
        prompt = "\n".join(each["content"] for each in body["messages"])
        with self._lock:
            draw = self._admit(prompt, key)
            before = self.asked.total()
            self.asked[prompt] += 1
        time.sleep(self.truth.latency_seconds)
        chances = self.truth.chances(prompt, body.get("temperature", 1), before)
        (answer,) = draw.choices(list(chances), list(chances.values()))
        text = draw.choice(self.truth.texts.get(answer, [answer]))
        message = self._message(answer, text, body.get("response_format"))
        written = message["content"] or text
        limit = LETTERS * body.get("max_tokens", len(written))
        if message["content"]:
            message["content"] = written[:limit]
        choice = {"index": 0, "message": message}
        choice["finish_reason"] = "length" if len(written) > limit else "stop"
        done = {"object": "chat.completion", "model": body.get("model"), "choices": [choice]}
        if self.truth.usage:
            used = -(-len(prompt) // LETTERS), -(-min(len(written), limit) // LETTERS)
            with self._lock:
                self.tokens += sum(used)
            names = "prompt_tokens", "completion_tokens", "total_tokens"
            done["usage"] = dict(zip(names, (*used, sum(used)), strict=True))
        return done

    def _admit(self, prompt: str, key: str | None) -> random.Random:
        """The randomness of an answer, unless there is none."""
        truth, self.requests = self.truth, self.requests + 1
        draw = random.Random(f"{truth.seed} {self.asked[prompt]} {prompt}")
        if key != f"Bearer {truth.key}":
            raise RefusedError(401, "invalid_api_key")
        if self.asked.total() >= truth.quota:
            raise RefusedError(truth.quota_status, "insufficient_quota")
        if self._second != (second := int(time.monotonic())):
            self._second, self._allowed = second, truth.per_second
        if self._allowed < 1:
            raise RefusedError(429, "rate_limit_exceeded", **{"Retry-After": "1"})
        self._allowed -= 1
        if random.Random(f"{truth.seed} fails {self.requests}").random() < truth.fails:
            raise RefusedError(500, "server_error")
        return draw

    def _message(self, answer: str, text: str, shape: dict[str, Any] | None) -> dict[str, Any]:
        """As a text, or as JSON where a shape of it was asked for."""
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
        if shape is None:
            return message
        if answer == self.truth.refusal:
            return message | {"content": None, "refusal": text}
        schema = shape.get("json_schema", {}).get("schema", {})
        inside = json.dumps({next(iter(schema.get("properties", {"decision": {}}))): answer})
        return message | {"content": f"```json\n{inside}\n```" if self.truth.fenced else inside}

    @property
    def stats(self) -> dict[str, int]:
        """Requests, those that were answered, different prompts among these, and their tokens."""
        answered, distinct = self.asked.total(), len(self.asked)
        return {"requests": self.requests, "answered": answered} | {
            "distinct": distinct,
            "tokens": self.tokens,
        }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps connections open
    disable_nagle_algorithm = True
    model: Model

    def do_GET(self) -> None:
        self.answer(200, self.model.stats)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.path.partition("?")[0].endswith("/chat/completions"):
            self.answer(404, {"error": {"message": f"unknown path {self.path}"}})
            return
        try:
            self.answer(200, self.model.complete(body, self.headers.get("Authorization")))
        except RefusedError as refused:
            status, code, headers = refused.args
            self.answer(
                status, {"error": {"message": code.replace("_", " "), "code": code}}, headers
            )

    def answer(self, status: int, document: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(document).encode()
        with suppress(ConnectionError):
            self.send_response(status)
            own = {"Content-Type": "application/json", "Content-Length": str(len(data))}
            for name, value in (own | (headers or {})).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: Any) -> None:
        pass  # whoever asked is gone


@contextmanager
def serve(model: Model, port: int = 0) -> Iterator[str]:
    """Answer until the end of the block, at the address that it is given."""
    with Server(("127.0.0.1", port), type("Own", (Handler,), {"model": model})) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("truth", type=Path, help="a TOML file: what it answers, and how often")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="run it, then end with its code")
    asked = parser.parse_args()
    # Who starts it again would hear the same answers again, which look as if it were certain.
    start = os.environ.get("CHAT_SEED", time.time_ns())
    known = {"seed": f"{start} {' '.join(asked.command[1:])}"}
    known |= tomllib.loads(asked.truth.read_text()) | tomllib.loads("\n".join(asked.set))
    model = Model(Truth(**known))
    with serve(model, asked.port) as host, suppress(KeyboardInterrupt):
        variables = {"CHAT_HOST": host, "CHAT_API_KEY": model.truth.key}
        if asked.command:
            return subprocess.run(asked.command, env=os.environ | variables, check=False).returncode
        for name, value in variables.items():
            print(f"export {name}={value}", flush=True)
        threading.Event().wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
