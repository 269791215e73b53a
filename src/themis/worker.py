"""The worker's side: three lines turn a Python script into a subject that stays alive.

    from themis.worker import serve

    if __name__ == "__main__":
        serve(decide)

Needs nothing but the standard library; the file may be copied beside a script that runs where
Themis is not installed.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["serve"]

_MOST_AT_ONCE = 1 << 20

_encode = json.JSONEncoder(ensure_ascii=False, default=lambda value: value.tolist()).encode


def serve(
    function: Callable[..., Any],
    *,
    format: str = "jsonl",  # noqa: A002 - the key of the configuration file
    keywords: bool = False,
    batch: bool = False,
) -> None:
    """Answer every input on standard input with the function's output, until the input ends.

    The function gets a dictionary; with `keywords` its items as keyword arguments; with `batch` a
    list of dictionaries, for which it returns as many outputs. What it raises is answered as an
    error of that input. In CSV all values are strings. From now on all that the script prints goes
    to standard error; standard output belongs to the answers.
    """
    if format not in ("jsonl", "csv"):
        raise ValueError(f"format must be 'jsonl' or 'csv', got {format!r}")
    source, target = _take_over()
    wire = _Jsonl() if format == "jsonl" else _Csv()
    call = (lambda row: function(**row)) if keywords else function
    answer = _answer_batch if batch else _answer_each
    size = _MOST_AT_ONCE if batch else 1
    try:
        for lines in _available(source, wire.complete):
            ids, rows = wire.read(lines)
            while rows:
                started = time.monotonic()
                _write_all(target, wire.write(ids[:size], answer(call, rows[:size])))
                ids, rows = ids[size:], rows[size:]
                if not batch:
                    size = _next_size(size, time.monotonic() - started)
    except BrokenPipeError:
        pass  # nobody listens any more


def _next_size(size: int, seconds: float) -> int:
    """How many answers to write at once: a tenth of a second's, so that no slow one is lost."""
    return min(2 * size, _MOST_AT_ONCE) if seconds < 0.05 else max(size // 2, 1)


class _Error:
    """What the function raised for one input."""

    def __init__(self, error: Exception) -> None:
        self.text = f"{type(error).__name__}: {error}"


def _answer_each(call: Callable[[Any], Any], rows: list[Any]) -> list[Any]:
    outputs: list[Any] = []
    waiting = iter(rows)
    while True:
        try:
            outputs += map(call, waiting)
            return outputs
        except Exception as error:  # `+=` keeps what came before: go on behind the culprit
            outputs.append(_Error(error))


def _answer_batch(call: Callable[[Any], Any], rows: list[Any]) -> list[Any]:
    try:
        outputs = list(call(list(rows)))
        if len(outputs) != len(rows):
            raise ValueError(f"inputs: {len(rows)}, outputs: {len(outputs)}")
    except Exception as error:
        if len(rows) == 1:
            return [_Error(error)]
        return [output for row in rows for output in _answer_batch(call, [row])]
    return outputs


class _Jsonl:
    """`{"id": 7, "input": {…}}` → `{"id": 7, "output": …}`."""

    def complete(self, lines: bytes) -> bool:
        return True

    def read(self, lines: bytes) -> tuple[list[Any], list[Any]]:
        """Ids and inputs."""
        asked = [line for line in lines.split(b"\n") if line.strip()]
        requests = json.loads(b"[%b]" % b",".join(asked))
        return [each["id"] for each in requests], [each["input"] for each in requests]

    def write(self, ids: list[Any], outputs: list[Any]) -> bytes:
        text, encode = self._text, _encode
        lines = [
            f'{{"id": {identity if type(identity) is int else encode(identity)}, {text(output)}}}\n'
            for identity, output in zip(ids, outputs, strict=True)
        ]
        return "".join(lines).encode("utf-8", "backslashreplace")

    def _text(self, output: Any) -> str:
        if not isinstance(output, _Error):
            try:
                return f'"output": {_encode(output)}'
            except Exception:
                output = _Error(TypeError(f"the output {output!r:.100} can't be written as JSON"))
        return f'"error": {_encode(output.text)}'


class _Csv:
    """A header, then `7,green,30` → `7,1`, or `7,,message` for an error."""

    def __init__(self) -> None:
        self._names: list[str] | None = None

    def complete(self, lines: bytes) -> bool:
        return lines.count(b'"') % 2 == 0

    def read(self, lines: bytes) -> tuple[list[Any], list[Any]]:
        """Ids and inputs."""
        records = [row for row in csv.reader(io.StringIO(lines.decode(), newline="")) if row]
        if self._names is None and records:
            self._names = records.pop(0)[1:]
        names = self._names or []
        return [row[0] for row in records], [dict(zip(names, row[1:])) for row in records]  # noqa: B905

    def write(self, ids: list[Any], outputs: list[Any]) -> bytes:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(map(self._row, ids, outputs))
        return text.getvalue().encode("utf-8", "backslashreplace")

    def _row(self, identity: Any, output: Any) -> tuple[Any, ...]:
        """An answer is one line."""
        if isinstance(output, _Error):
            return identity, "", " ".join(output.text.splitlines())
        text = str(output).lower() if isinstance(output, bool) else str(output)
        return identity, " ".join(text.splitlines())


def _available(source: int, complete: Callable[[bytes], bool]) -> Iterator[bytes]:
    """All complete lines that have arrived, again and again: as much as there is, without waiting.

    So answers are written once for each chunk, and never wait for requests that come later.
    """
    parts: list[bytes] = []
    while chunk := os.read(source, 1 << 16):
        head, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            parts.append(chunk)
            continue
        lines = b"".join(parts) + head + newline
        if complete(lines):
            yield lines
            parts = [tail]
        else:
            parts = [lines, tail]
    if rest := b"".join(parts):
        yield rest


def _take_over() -> tuple[int, int]:
    """Own descriptors of standard input and output; the script keeps nothing and standard error."""
    source, target = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout.flush()  # what was printed before is no answer, either
    return source, target


def _write_all(target: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(target, view) :]
