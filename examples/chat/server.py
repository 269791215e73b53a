"""A stand-in for a chat service, so that the example runs without a key or a network.

    CHAT_API_KEY=example-key python server.py --port 8765

It answers POST /v1/chat/completions in the way that such services do. What it decides is known,
and unfair on purpose: women need an income of 50,000, men one of 35,000; the city never matters,
except for how the answer is written.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def decide(prompt: str) -> str:
    """Read the application and answer in words, as a language model would."""
    income = int(re.search(r"earns ([\d]+)", prompt)[1])  # type: ignore[index]
    needed = 50_000 if "woman" in prompt else 35_000
    word = "Approved" if income >= needed else "Denied"
    return f"{word}." if "Athens" in prompt else f"**{word.upper()}**\n"


def complete(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request, in the shape of a chat completion."""
    prompt = request["messages"][-1]["content"]
    message = {"role": "assistant", "content": decide(prompt)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"object": "chat.completion", "model": request["model"], "choices": [choice]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps connections open
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Authorization") != f"Bearer {os.environ['CHAT_API_KEY']}":
            self.answer(401, {"error": {"message": "wrong key"}})
        else:
            self.answer(200, complete(json.loads(body)))

    def answer(self, status: int, document: dict[str, Any]) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8765)
    server = ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Handler)
    address = f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
    print(f"listening at {address}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
