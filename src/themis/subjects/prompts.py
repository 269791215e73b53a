"""Prompts: what a language model is told, and the contexts that choose among several wordings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from themis.errors import Mistake, RequestError
from themis.inputs.documents import Documents

WHERE = "subject.prompt"
LARGEST = 2**20  # bytes of a file


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
        if path.stat().st_size > LARGEST:
            raise OSError(0, f"it has more than {LARGEST // 2**20} MiB")
        return path.read_text("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        problem, remedy = "is not UTF-8 text", "save it as UTF-8"
    except (OSError, ValueError) as error:
        problem, remedy = f"can't be read: {getattr(error, 'strerror', error)}", "check its name"
    mistakes.append(Mistake("unreadable-file", where, f"{path.name!r} {problem}", remedy))
    return "?"
