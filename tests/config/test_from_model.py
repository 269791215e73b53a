"""Does a draft for a model say what the model answers to the rows?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from themis.config.drafts import ModelFacts
from themis.config.from_rows import draft_from_data
from themis.inputs.tables import read_table
from themis.subjects.trained import trained_of


class Net:
    """As Keras calls its models: trained_of knows them by their package."""

    __module__ = "keras.models"

    layers = (SimpleNamespace(activation=SimpleNamespace(__name__="sigmoid")),)
    input_shape = (None, 2)

    def __init__(self, answer: Callable[[np.ndarray], Any], width: int = 1) -> None:
        self.answer = answer
        self.output_shape = (None, width)

    def predict(self, inputs: np.ndarray, **_: Any) -> Any:
        return self.answer(inputs)


def drafted(net: Net) -> str:
    """The text of the file that is drafted for a net and eighty rows."""
    rows = "".join(f"{row % 2},{row // 2},{row % 2}\n" for row in range(80))
    Path("rows.csv").write_text("race,points,approved\n" + rows)
    trained = trained_of(net)
    assert trained is not None
    facts = ModelFacts(
        "net.keras", classes=trained.classes, count=2, cut=trained.cut, trained=trained
    )
    return draft_from_data(read_table("rows.csv"), source="rows.csv", model=facts).text()


def _fails(_: np.ndarray) -> Any:
    raise ValueError("no answer")


@pytest.mark.parametrize(
    ("answer", "cut", "said"),
    [
        (lambda inputs: inputs[:, 1:] / 39, 0.5, "are all from 0 to 1"),
        (lambda inputs: inputs[:, 1:] / 38, 0.0, "are not all from 0 to 1"),
        (lambda inputs: inputs[:, 1:] / 39 - 0.01, 0.0, "are not all from 0 to 1"),
        (_fails, 0.5, "was not tried on the rows"),
    ],
)
def test_the_cut_fits_what_the_model_answers_to_the_rows(
    answer: Any, cut: float, said: str
) -> None:
    text = drafted(Net(answer))
    assert f"\ncut = {cut}\n" in text
    assert said in text.replace("\n# ", " ")


@pytest.mark.parametrize("width", [2, 3])
def test_a_net_of_several_classes_is_asked_about_though_the_column_has_two(width: int) -> None:
    text = drafted(Net(lambda inputs: np.ones((len(inputs), width)), width))
    asked = "which of its classes do people want? The model decides between 0, 1, 2"
    assert (asked in text.replace("\n# ", " ")) == (width == 3)
    assert f"\n{'# ' * (width == 3)}favourable = [1]\n" in text
    assert "\ncut" not in text
