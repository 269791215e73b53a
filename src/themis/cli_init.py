"""How does `themis init` write its file? From nothing, or from settings of other programs."""

from __future__ import annotations

from pathlib import Path

from themis.errors import Mistake, RequestError
from themis.settings_xml import convert_settings
from themis.starter import SUBJECT_FILE_NAME, starter_subject_text, starter_text


def write_starter(output: Path, *, force: bool) -> None:
    """Write a commented file and, unless there is one, the example that it describes."""
    _check_writable(output, force=force)
    output.write_text(starter_text(), encoding="utf-8")
    print(f"wrote {output}")
    subject = output.parent / SUBJECT_FILE_NAME
    if subject.exists():
        print(f"{subject} is there already: left as it is")
    else:
        subject.write_text(starter_subject_text(), encoding="utf-8")
        print(f"wrote {subject}, the example that it describes")


def write_converted(source: Path, output: Path, *, force: bool) -> None:
    """Write the file that other settings amount to."""
    _check_writable(output, force=force)
    if source.suffix.lower() != ".xml":
        problem = f"{str(source)!r} is not a file that this version can convert"
        raise RequestError([Mistake("source", "--from", problem, "give XML settings: a .xml file")])
    try:
        data = source.read_bytes()
    except OSError as error:
        problem = f"{str(source)!r} can't be read: {error.strerror}"
        raise RequestError([Mistake("source", "--from", problem, "check its name")]) from error
    text = convert_settings(data, source=str(source))
    output.write_text(text, encoding="utf-8")
    print(f"wrote {output}, from {source}")


def _check_writable(output: Path, *, force: bool) -> None:
    problem, remedy = "", ""
    if output.is_dir():
        problem, remedy = f"{str(output)!r} is a folder", "name a file in it"
    elif output.exists() and not force:
        problem, remedy = f"{str(output)!r} is there already", "--force overwrites it"
    elif not output.parent.is_dir():
        problem, remedy = f"there is no folder {str(output.parent)!r}", "create it first"
    if problem:
        raise RequestError([Mistake("output", "--output", problem, remedy)])
