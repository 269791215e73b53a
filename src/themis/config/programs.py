"""What a file names that is run or read, for somebody who is asked whether it may be."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from themis.config.reader import Config
from themis.inputs.documents import Documents

# Keys of a subject of which something is run, and how.
RUN = {
    "function": "Python function: its module is imported, and it is called",
    "object": "Python object: its module is imported, and it is called",
    "file": "model file: it is loaded and asked",
    "command": "program: it is started",
    "url": "service: test inputs are sent there",
    "prompt": "sent to the service, with the files that it names",
}
STEERING = re.compile(r"(PYTHON|LD_|DYLD_|RUBY|PERL|NODE_|JAVA_|BASH_)\w*|PATH|ENV")
SECRET = ("env", "headers")  # keys whose values are not shown
NAMING = ("file", "command", "prompt")  # keys that name files
PICKLES = (".pkl", ".pickle", ".joblib")
PICKLE = "a pickle, which may run any code it likes"


@dataclass(frozen=True)
class Named:
    """One key, what it says, what is done with that, and the files that it leads to."""

    key: str
    words: tuple[str, ...]
    use: str
    files: tuple[Path, ...] = ()


def programs(config: Config) -> Iterator[Named]:
    """All that a file says of its subject, and the tables that are read."""
    for key, each in config.subject.options.items():
        words = [*_words(each)]
        use = RUN.get(key, "names only; values are not shown" if key in SECRET else "setting")
        files = tuple(_files(config.folder, key, words))
        if any(place.suffix in PICKLES for place in files):
            use = f"{use}; {PICKLE}"
        yield Named(key, tuple(words), use, files)
    for pattern in config.subject.depends:
        yield Named("depends", (pattern,), "read by the program")
    for each in config.schema:
        if isinstance(each, Documents) and each.source:
            shown = each.source.removeprefix(f"{config.folder}{os.sep}")
            key, use = f"inputs.{each.name}", "documents: sent to the service"
            yield Named(key, (shown,), use, (Path(each.source),))
    if config.profile is not None:
        yield Named("profile", (config.profile.data,), "table of people: it is read")


def _words(said: Any) -> Iterator[str]:
    """What is shown of it: of a mapping the names, with values that say what is loaded."""
    if isinstance(said, Mapping):
        for name, value in said.items():
            yield f"{name}={value}" if STEERING.match(str(name)) else str(name)
            several = value if isinstance(value, list) else [value]
            yield from (e["file"] for e in several if isinstance(e, Mapping) and "file" in e)
    else:
        yield from map(str, said if isinstance(said, list) else [said])


def _files(folder: Path, key: str, words: list[str]) -> Iterator[Path]:
    found: list[Any] = [folder / word for word in words] if key in NAMING else []
    if key == "command":
        found.insert(0, shutil.which(words[0]))
    if key in ("function", "object"):
        module = folder / words[0].partition(":")[0].replace(".", "/")
        found = [module.with_suffix(".py"), module / "__init__.py"]
    yield from (Path(each) for each in found if each and Path(each).is_file())
