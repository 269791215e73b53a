"""What-if questions as lines of JSON on stdin, answers on stdout: how the page asks a subject."""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from themis.audit.audit import Audit
from themis.audit.trying import some_input, try_input
from themis.cli.options import Options
from themis.cli.session import hosting_subject, open_config
from themis.config.reader import Config
from themis.errors import Exit, MistakesError, ThemisError

PATIENCE = 10.0  # seconds after which a subject that does not let go is ended with the process


def answer_lines(options: Options) -> int:
    """Answer until stdin ends: `{"values": {…}}`, or `{}` for an input to start from.

    The first line says that the subject is loaded. Each names the files that it rests on, with
    their times: where one of them changes, a new process is to be asked.
    """
    asked, told = _asked(), os.fdopen(os.dup(1), "w", encoding="utf-8")
    with told, hosting_subject():
        try:
            config = open_config(options)
            audit = Audit.from_config(
                config, cache=False, trust_pickle=options.trust_pickle, ahead=False
            )
        except ThemisError as error:
            _tell(told, {"mistakes": _said(error)})
            return error.exit_code
        with audit:
            about = {"fingerprint": audit.runner.subject.fingerprint()}
            _tell(told, {**about, "files": _files(config)})
            for question in asked:
                _tell(told, {**about, **_answer(audit, question), "files": _files(config)})
    return Exit.DONE


def _answer(audit: Audit, question: dict[str, Any]) -> dict[str, Any]:
    try:
        if "values" not in question:
            return {"values": some_input(audit)}
        return {"answer": asdict(try_input(audit, question["values"]))}
    except ThemisError as error:
        return {"mistakes": _said(error)}


def _said(error: ThemisError) -> list[str]:
    return [*map(str, error.mistakes if isinstance(error, MistakesError) else [error])]


def _tell(told: TextIO, what: dict[str, Any]) -> None:
    told.write(f"{json.dumps(what, default=str)}\n")
    told.flush()


def _asked() -> Iterator[dict[str, Any]]:
    """The lines of stdin, which the subject can't read; its end interrupts what runs."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    given = os.fdopen(os.dup(0), encoding="utf-8")
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)

    def read() -> None:
        for line in given:
            lines.put(line)
        lines.put("")
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(PATIENCE)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=read, daemon=True).start()
    return map(json.loads, iter(lines.get, ""))


def _files(config: Config) -> dict[str, int]:
    """What the subject was made of, as far as it is known: what the file names, and modules."""
    spec, folder = config.subject, config.folder
    named = {folder / each for each in _texts(spec.options)}
    named |= {each for pattern in spec.depends for each in folder.glob(pattern)}
    loaded = [getattr(each, "__file__", None) for each in [*sys.modules.values()]]
    named |= {path for each in loaded if each and (path := Path(each)).is_relative_to(folder)}
    return {str(each): each.stat().st_mtime_ns for each in named if each.is_file()}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str) and len(value) < 1_000 and "\0" not in value:
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
