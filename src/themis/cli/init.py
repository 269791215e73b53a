"""The file that `themis init` writes: from nothing, from data, or from other descriptions."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from themis.cli.files import check_targets, output_mistake, save
from themis.cli.printing import print_line, say
from themis.config.drafts import (
    NO_MODEL,
    SUBJECT_FILE_NAME,
    DraftFile,
    ModelFacts,
    starter_subject_text,
    starter_text,
)
from themis.config.from_json_schema import draft_from_json_schema
from themis.config.from_rows import draft_from_data
from themis.config.from_xml import convert_settings
from themis.errors import Mistake, RequestError
from themis.inputs.tables import PARQUET_START, kind_of, read_table
from themis.show.terminal.progress import ProgressLine
from themis.show.words.values import one_line


def write_file(
    source: str | None,
    output: Path,
    *,
    protected: Sequence[str] = (),
    target: str | None = None,
    force: bool = False,
    model: Path | None = None,
    module: str | None = None,
    trust_pickle: bool = False,
) -> None:
    """Write what other settings, rows or a description of inputs amount to; else an example."""
    _check_writable(output, force=force)
    if source is None:
        needy = {"protected": protected, "target": target, "model": model, "object": module}
        for name, asked in needy.items():
            if asked:
                problem, remedy = "there are no columns without --from", "add --from FILE"
                raise RequestError.one("source", f"--{name}", problem, remedy)
        _write_starter(output)
        return
    if module is not None and model is None:
        problem = "there is no file with weights for it"
        raise RequestError.one("model", "--object", problem, "add --model FILE")
    path, pointer = _split(source)
    check_targets({"--output": output}, {"the file to convert": path})
    kind, data = _recognise(path)
    if kind in ("xml", "schema"):
        _refuse(kind, protected, target, model)
    if kind == "xml":
        save(output, convert_settings(data, source=str(path)))
        print_line(f"wrote {output}, from {one_line(source)}")
        return
    if kind == "schema":
        document = _parse_yaml(path, data) if _is_yaml(path) else _parse_json(path, data)
        draft = draft_from_json_schema(
            document, source=str(path), pointer=pointer, protected=protected
        )
    else:
        facts = NO_MODEL
        if model is not None:
            facts = _facts(model, output, module, trust_pickle=trust_pickle)
        with ProgressLine(enabled=False, say=say) as line:
            # More rows would take minutes, and tell hardly more.
            table = read_table(path, kind=kind, most=10**6, listen=line.listen)
        draft = draft_from_data(
            table,
            source=path.name,
            protected=protected,
            target=target,
            profile=_from(output, path) if kind_of(path) is not None else None,
            model=facts,
        )
    save(output, draft.text())
    used, given = len(draft.used), len(draft.drafts)
    one, many = ("property", "properties") if kind == "schema" else ("column", "columns")
    became = "a characteristic" if used == 1 else "characteristics"
    print_line(
        f"wrote {output}, from {one_line(source)}: {used} of {given} "
        f"{one if given == 1 else many} became {became}"
    )
    _tell_guesses(draft, protected)


def _write_starter(output: Path) -> None:
    """A commented file and, unless there is one, the example that it describes."""
    save(output, starter_text())
    print_line(f"wrote {output}")
    subject = output.parent / SUBJECT_FILE_NAME
    if subject.exists():
        print_line(f"{subject} is there already: left as it is")
    else:
        save(subject, starter_subject_text())
        print_line(f"wrote {subject}, the example that it describes")


def _tell_guesses(draft: DraftFile, protected: Sequence[str]) -> None:
    """What was left out, asked and guessed, for somebody who has to look over it."""
    for each in draft.drafts:
        if each.left_out:
            print_line(one_line(f"left out: {each.title}: {each.left_out}"))
    for column in draft.asked:
        asked = f"is {column} what is decided? It is named so, and was kept as an input: "
        again = shlex.join(["--target", column, "--force"])
        print_line(one_line(f"{asked}if it is, repeat the command with {again}"))
    guessed = [name for name in draft.protected if name not in protected]
    if guessed:
        print_line(f"protected, a guess from the names: {one_line(', '.join(guessed))}")
    if draft.model.order is not None:
        print_line(one_line(str(draft.model.order)))
    decides = draft.favourable or draft.output or draft.model.wanted_cut is not None
    if draft.is_complete and not decides:
        print_line(one_line(f"missing: favourable: {draft.favourable_remark}"))
    for column in draft.model.echoed:
        told = f"{column} nearly always equals the model's answer: if it is what is decided, "
        again = shlex.join(["--target", column])
        print_line(one_line(f"{told}the model must not get it; {again} names it"))
    if draft.model.failure:
        print_line(one_line(draft.model.failure))
    if draft.rare:
        print_line(f"texts of few rows, perhaps personal: {one_line(', '.join(draft.rare))}")
    own = "look" if draft.is_complete else "put your own subject into it, and look"
    print_line(f"{own} over what was guessed")


def _from(output: Path, path: Path) -> str:
    """How a file is called from the folder of the output."""
    return Path(os.path.relpath(path, output.parent)).as_posix()


def _facts(model: Path, output: Path, module: str | None, *, trust_pickle: bool) -> ModelFacts:
    from themis.config.from_model import facts_of_model

    return facts_of_model(
        model,
        folder=output.parent,
        file=_from(output, model),
        module=module,
        trust_pickle=trust_pickle,
    )


def _split(source: str) -> tuple[Path, str]:
    """The file, and which part of it is meant."""
    name, mark, pointer = source.partition("#")
    return (Path(source), "") if Path(source).exists() or not mark else (Path(name), f"#{pointer}")


def _recognise(source: Path) -> tuple[str, bytes]:
    """What a file is, by its name or else by its beginning; with its content where it is small."""
    kind = "xml" if source.suffix.lower() == ".xml" else kind_of(source)
    try:
        with source.open("rb") as file:
            if kind in ("csv", "jsonl", "parquet"):
                return kind, b""
            data = file.read(2**26)  # of settings or a description
    except OSError as error:
        problem = f"{str(source)!r} can't be read: {error.strerror}"
        raise _mistake(problem, "check its name") from error
    start = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if kind == "xml" or start.startswith(b"<"):
        return "xml", data
    if start.startswith(PARQUET_START):
        return "parquet", b""
    if start.startswith((b"{", b"[")):
        return ("jsonl" if _has_lines(start) else "schema"), data
    if _is_yaml(source):
        return "schema", data
    if any(mark in start.partition(b"\n")[0] for mark in (b",", b";", b"\t")):
        return "csv", b""
    problem = f"{str(source)!r} is not a file that can be converted"
    kinds = "rows (.csv, .jsonl, .parquet), a JSON Schema or OpenAPI (.json, .yaml)"
    remedy = f"give {kinds}, or XML settings"
    raise _mistake(problem, remedy)


def _has_lines(start: bytes) -> bool:
    """Whether each line is an object of its own, and not the whole file."""
    first, _, rest = start.partition(b"\n")
    try:
        return bool(rest.strip()) and isinstance(json.loads(first), dict)
    except ValueError:
        return False


def _is_yaml(source: Path) -> bool:
    return source.suffix.lower() in (".yaml", ".yml")


def _parse_yaml(source: Path, data: bytes) -> Any:
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError:
        problem = f"{str(source)!r} is YAML, and PyYAML is not installed"
        remedy = "run pip install pyyaml, or convert it to JSON"
        raise _mistake(problem, remedy) from None
    try:
        return yaml.safe_load(data)
    except (yaml.YAMLError, RecursionError) as error:
        problem = f"{str(source)!r} is no YAML: {' '.join(str(error).split())}"
        raise _mistake(problem, "fix it") from None


def _parse_json(source: Path, data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        problem = f"{str(source)!r} is no JSON: {error}"
        raise _mistake(problem, "fix it") from None


def _mistake(problem: str, remedy: str) -> RequestError:
    return RequestError.one("source", "--from", problem, remedy)


def _refuse(kind: str, protected: Sequence[str], target: str | None, model: Path | None) -> None:
    """Options that mean nothing for this kind of file."""
    mistakes = []
    if kind == "xml" and protected:
        problem = "XML settings name no columns to mark"
        mistakes.append(Mistake("protected", "--protected", problem, "mark them in the new file"))
    if target is not None:
        problem = "only rows of data have a column with what was decided"
        mistakes.append(Mistake("target", "--target", problem, "leave it out"))
    if model is not None:
        problem = "only rows of data say what a model's columns hold"
        mistakes.append(Mistake("model", "--model", problem, "leave it out"))
    RequestError.refuse(mistakes)


def _check_writable(output: Path, *, force: bool) -> None:
    problem, remedy = "", ""
    if output.is_dir():
        problem, remedy = f"{str(output)!r} is a folder", "name a file in it"
    elif output.exists() and not force:
        problem, remedy = f"{str(output)!r} is there already", "--force overwrites it"
    elif not output.parent.is_dir():
        problem, remedy = f"there is no folder {str(output.parent)!r}", "create it first"
    if problem:
        raise output_mistake(problem, remedy)
