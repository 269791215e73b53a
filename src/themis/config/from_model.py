"""What a model's file says about the rows that it was trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from themis.inputs.characteristics import Value
from themis.subjects.loading import load_attribute
from themis.subjects.model_files import read_model
from themis.subjects.trained import trained_of


@dataclass(frozen=True)
class ModelFacts:
    """The columns and classes of a model, and its file as a themis.toml names it."""

    file: str
    names: Sequence[str] | None = None
    count: int | None = None  # of its columns, where it does not know their names
    classes: tuple[Value, ...] | None = None
    categories: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    spelled: Callable[[str], str] = str  # how it writes the name of a column
    target: str | None = None  # the column that it predicts
    cut: float | None = None  # from where on its answer is usually a yes
    module: str | None = None  # whose weights are in the file, as module:Class


def facts_of_model(
    path: Path, *, folder: Path, file: str, module: str | None = None, trust_pickle: bool = False
) -> ModelFacts:
    """What a model knows about itself; nothing of an ONNX file, whose columns have no names.

    `module` is that of a file with weights, and is looked for in the folder of the themis.toml.
    """
    if path.suffix.lower() == ".onnx":
        return ModelFacts(file)
    thing = None if module is None else load_attribute(module, folder, where="--object")
    trained = trained_of(read_model(path, module=thing, trust_pickle=trust_pickle))
    assert trained is not None, "read_model gives only models"
    return ModelFacts(
        file,
        trained.names,
        trained.count,
        trained.classes,
        trained.categories,
        trained.spelled,
        trained.target,
        trained.cut,
        module,
    )
