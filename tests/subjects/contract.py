"""What every kind of subject keeps to, whatever it runs."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.subjects.base import Batch, Subject


def outputs_of(batch: Batch) -> list[Any]:
    """The outputs of a batch in which nothing fails."""
    answers = batch.run()
    assert not answers.failures
    return np.asarray(answers.outputs).tolist()


def assert_keeps_the_contract(subject: Subject, codes: NDArray[np.int64]) -> None:
    """Parts of batches and overwritten columns are those inputs, and a copy of it answers alike."""
    places = np.array([7, 3, 3])
    whole = subject.load(codes)
    part, changed = whole.take(places), codes[places].copy()
    for column, new in ((0, 1), (1, np.array([2, 5, 9])), (0, np.array([0, 1, 0]))):
        part.overwrite(column, new)
        changed[:, column] = new
        assert outputs_of(part) == outputs_of(subject.load(changed))
    expected = outputs_of(subject.load(codes))
    assert outputs_of(whole) == expected, "a part is no part of the whole any more"
    assert len({*map(str, expected)}) > 1
    copied = pickle.loads(pickle.dumps(subject))
    try:
        assert copied.fingerprint() == subject.fingerprint()
        assert outputs_of(copied.load(codes)) == expected
    finally:
        copied.close()
