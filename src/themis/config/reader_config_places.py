"""Where in its file is what can't be used? A mistake found after reading gets its line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from themis.config.reader import Config
from themis.errors import Mistake, RequestError


@contextmanager
def placing(config: Config) -> Iterator[None]:
    """Within, mistakes in what the keys of the file mean carry the file and their line."""
    try:
        yield
    except RequestError as error:
        raise RequestError(_placed(config, each) for each in error.mistakes) from error


def _placed(config: Config, mistake: Mistake) -> Mistake:
    """The mistake at its key, or at the table that the key would stand in."""
    profile = config.profile
    if profile is not None and mistake.file == str(config.folder / profile.data):
        if mistake.line is not None:  # it is in a row
            return mistake
        problem = f"{profile.data}: {mistake.problem}"
        mistake = replace(mistake, where="profile.data", problem=problem, file="")
    if mistake.where == "weights":  # what the rows call the option of [profile]
        mistake = replace(mistake, where="profile.weights")
    place = mistake.where
    while place and place not in config.lines:
        place = place.rpartition(".")[0]
    if mistake.file or not place:
        return mistake
    return mistake.at(file=str(config.path), line=config.lines[place])
