"""Who is the reference person? The most usual value of each characteristic of a population."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.inputs.population import Population
from themis.inputs.population_blocks import Block, ColumnBlock, RejectionBlock

LISTED = 2**16  # combinations of linked characteristics that are counted; of more, a sample is
DRAWN = 4_096


def reference_person(population: Population) -> NDArray[Any]:
    """The codes of one value for each characteristic, whether or not they are valid together.

    A number takes its median, everything else its most common value; among equally common ones
    the first that the schema lists.
    """
    reference = np.zeros(len(population.schema), dtype=population.schema.dtype)
    for block in population.blocks:
        parts = block.parts if isinstance(block, RejectionBlock) else (block,)
        for part in parts:
            _fill(population, part, reference)
    return reference


def _fill(population: Population, block: Block, reference: NDArray[Any]) -> None:
    """Set the columns of one block."""
    characteristics = population.schema.characteristics
    if isinstance(block, ColumnBlock) and block.uniform:  # however many values there are
        (column,) = block.columns
        middle = (block.start + block.stop - 1) // 2
        reference[column] = middle if characteristics[column].ordered else block.start
        return
    if block.size is not None and block.size <= LISTED:
        codes, weights = block.combinations(np.arange(block.size)), block.probabilities()
    else:
        codes, weights = block.draw(np.random.default_rng(0), DRAWN), np.full(DRAWN, 1 / DRAWN)
    for position, column in enumerate(block.columns):
        values, places = np.unique(codes[:, position], return_inverse=True)
        shares = np.bincount(places, weights)
        place = int(np.argmax(shares > shares.max() - 1e-9))
        if characteristics[column].ordered:
            place = int(np.searchsorted(np.cumsum(shares), 0.5 - 1e-9))
        reference[column] = values[place]
