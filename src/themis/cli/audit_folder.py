"""The folder of an audit: all of it is written aside, and moved into place when it is complete."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from themis.cli.files import output_mistake, save
from themis.cli.printing import say
from themis.errors import RequestError
from themis.results.notes import Ending

if TYPE_CHECKING:
    from themis.results.model import Result

RESULT, SUITE = "result.json", "suite.csv"
DOCUMENTS = {"report.html": "html", "annex.html": "annex", "summary.md": "md"}
COVER = "README.md"
FOLDER = Path("themis-audit")  # unless another one is given
UNFINISHED = "-unfinished"  # the folder of an audit that ended early, beside a finished one
STAGE = ".new-"
LOST = "nothing of this audit was written; make room or choose another place"


@dataclass(frozen=True)
class AuditFolder:
    """Where an audit goes: `path`, or `beside` it if it ended early and a finished one is there."""

    path: Path
    beside: Path
    stage: Path = Path()  # what is being written

    @classmethod
    def of(cls, path: Path) -> AuditFolder:
        """The folder of this path, which needs a name: another one lies beside it."""
        named = path if path.name not in ("", "..") else path.resolve()
        if not named.name:
            raise output_mistake(f"{str(path)!r} is no folder of an audit", "name a folder in it")
        return cls(path, named.with_name(f"{named.name}{UNFINISHED}"))

    @contextmanager
    def staged(self) -> Iterator[AuditFolder]:
        """Within, there is a stage to write to; of what was not moved from it, nothing stays."""
        is_new = _make(self.path)
        try:
            if _is_finished(self.path):
                _check(self.beside)
            with _stage_in(self.path) as stage, _naming(stage, self.path):
                yield replace(self, stage=stage)
        finally:
            if is_new:
                with suppress(OSError):  # it is not empty
                    self.path.rmdir()

    @property
    def has_new(self) -> bool:
        """Whether there is a new result that is not in its place yet."""
        return (self.stage / RESULT).exists()

    def target(self) -> Path | None:
        """Where what was measured belongs; None where it replaces nothing and is not kept."""
        if not self.has_new:
            return None
        result = _read(self.stage)
        if result.stopped is Ending.FAILED and (self.path / RESULT).exists():
            say(f"{self.path} is left as it was: the run failed")
            return None
        if result.stopped is Ending.INTERRUPTED and not _is_measured(result):
            return None
        if result.stopped is Ending.DONE or not _is_finished(self.path):
            return self.path
        return self.beside

    def complete(self, target: Path, names: Sequence[str]) -> None:
        """Render what was saved, so that all files tell the same, and move all into place."""
        from themis.cli.session import SIGNALS
        from themis.engine.executors.interrupts import interrupts_wait
        from themis.show.reports.folder import render_cover
        from themis.show.reports.formats import FORMATS

        result, given = _read(self.stage), str(self.path) if self.path != FOLDER else None
        for name, kind in DOCUMENTS.items():
            save(self.stage / name, FORMATS[kind].render(result))
        save(self.stage / COVER, render_cover(result, names, folder=given))
        # What lies beside may be on another disk, where a file can't just be renamed.
        move = os.replace if target == self.path else shutil.move
        with interrupts_wait(*SIGNALS):
            try:
                target.mkdir(exist_ok=True)
                for name in names:
                    move(self.stage / name, target / name)
            except OSError as error:
                problem = f"{str(target)!r} can't be written: {error.strerror}"
                raise output_mistake(problem, "choose another place") from None

    def names_for(self, target: Path) -> list[str]:
        """The files that go there; an audit that lies beside another one has no suite."""
        has_suite = target == self.path and (self.stage / SUITE).exists()
        return [*DOCUMENTS, COVER, RESULT, *([SUITE] if has_suite else [])]

    def say_beside(self, target: Path) -> None:
        """Say what the folder beside has to do with this audit, if anything."""
        if target == self.beside:
            say(f"{self.path} is left as it was: it holds a finished audit")
            say(f"what was measured now is in {self.beside}")
        elif _is_finished(target) and (self.beside / RESULT).exists():
            say(f"{self.beside} still holds an earlier audit that ended early")


def _read(folder: Path) -> Result:
    from themis.results.saved import read_result

    return read_result(folder / RESULT)


def _is_finished(folder: Path) -> bool:
    """Whether there is an audit that neither a signal nor a limit ended."""
    with suppress(RequestError):
        return _read(folder).stopped is Ending.DONE
    return False


def _is_measured(result: Result) -> bool:
    """Whether there is anything that is worth a file."""
    return bool(result.searches) or any(each.samples for each in result.scores)


def _make(folder: Path) -> bool:
    """Make the folder; whether it is new. Refuses one with files that would be lost."""
    try:
        folder.mkdir(parents=True)
        return True
    except FileExistsError:
        _check(folder)
        return False
    except OSError as error:
        problem = f"{str(folder)!r} can't be created: {error.strerror}"
        raise output_mistake(problem, "choose another place") from None


def _check(folder: Path) -> None:
    """Refuse a folder with files of an audit's names that are not of an audit."""
    if folder.exists() and not folder.is_dir():
        raise output_mistake(f"{str(folder)!r} is a file", "name a folder")
    there = [name for name in (COVER, RESULT, SUITE, *DOCUMENTS) if (folder / name).exists()]
    for name in there:
        if (folder / name).is_dir():
            raise output_mistake(f"{str(folder / name)!r} is a folder", "name another folder")
    with suppress(RequestError):
        if not there or _read(folder).command == "audit":
            return
    problem = f"{str(folder)!r} has a {there[0]} that is not of an audit, and would be lost"
    raise output_mistake(problem, "name another folder")


@contextmanager
def _stage_in(folder: Path) -> Iterator[Path]:
    """A new folder within this one, on the same disk, which is removed at the end."""
    try:
        stage = folder / Path(tempfile.mkdtemp(prefix=STAGE, dir=folder)).name
    except OSError as error:
        problem = f"{str(folder)!r} can't be written: {error.strerror}"
        raise output_mistake(problem, "choose another place") from None
    try:
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


@contextmanager
def _naming(stage: Path, folder: Path) -> Iterator[None]:
    """Within, mistakes name files by where they would have been, and say that none is there.

    The one option that says where is that of the folder.
    """
    try:
        yield
    except RequestError as error:
        raise RequestError(
            output_mistake(each.problem.replace(str(stage), str(folder)), LOST).mistakes[0]
            if str(stage) in each.problem
            else each
            for each in error.mistakes
        ) from None
