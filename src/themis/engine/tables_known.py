"""Outputs that are known by their inputs, in domains that are too large to be remembered whole."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.variants import OWN, Rows, Variants
from themis.inputs.schema import Schema
from themis.subjects.decisions import FAILED, NOT_RUN, Cells

KEPT = 2**23  # outputs kept at most
KEY_LIMIT = 2**62  # larger keys do not fit into 64 bits

_BYTE = np.dtype(np.int8)

Keys = NDArray[Any]  # an input's place in the whole domain: whole numbers, however large


class KnownOutputs:
    """The outputs of inputs that were run, found by key."""

    def __init__(self, schema: Schema, dtype: np.dtype[Any] = _BYTE) -> None:
        sizes = [each.size for each in schema]
        self._strides = [math.prod(sizes[column + 1 :]) for column in range(len(sizes))]
        self._type = np.int64 if schema.size < KEY_LIMIT else object
        self._keys: Keys = np.empty(0, dtype=self._type)
        self._cells: Cells = np.empty(0, dtype=dtype)

    def keys(self, codes: NDArray[Any]) -> Keys:
        """The keys of these inputs."""
        keys: Keys = np.zeros(len(codes), dtype=self._type)
        for column in range(codes.shape[1]):
            keys += self._part(column, codes[:, column])
        return keys

    def table_keys(self, variants: Variants, rows: Rows) -> Keys:
        """The keys of all cells of a table: rows × assignments."""
        columns = variants.assignments.columns
        context = self.keys(rows.codes)
        for column in columns:
            context -= self._part(column, rows.codes[:, column])
        keys: Keys = np.repeat(context[:, None], variants.width, axis=1)
        for position, column in enumerate(columns):
            levels = variants.levels[:, position]
            members = rows.members.get(column)
            new = np.broadcast_to(levels, keys.shape) if members is None else members[:, levels]
            own = rows.codes[:, column][:, None]
            keys += self._part(column, np.where(levels[None, :] == OWN, own, new))
        return keys

    def look_up(self, keys: Keys) -> Cells:
        """The output of each input, NOT_RUN where it is not known."""
        cells: Cells = np.full(keys.shape, NOT_RUN, dtype=self._cells.dtype, order="F")
        if len(self._keys):
            place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            found = (self._keys[place] == keys).astype(bool)
            cells[found] = self._cells[place[found]]
        return cells

    def add(self, keys: Keys, cells: Cells) -> None:
        """Keep the outputs of these inputs; those that were not run are left out."""
        run = cells >= FAILED
        if len(self._keys) + int(run.sum()) > KEPT:
            return
        every = np.concatenate([self._keys, keys[run]])
        outputs = np.concatenate([self._cells, cells[run]])
        self._keys, first = np.unique(every, return_index=True)
        self._cells = outputs[first]

    def _part(self, column: int, codes: NDArray[Any]) -> Keys:
        """What one column contributes to the keys."""
        part: Keys = codes.astype(self._type) * self._strides[column]
        return part
