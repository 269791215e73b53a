"""Systems C and E: naive Bayes, on data with the discrimination taken out, and plain.

C follows Calders, Kamiran and Pechenizkiy, "Building classifiers with independency constraints"
(2009): the labels of the training data are changed as little as possible until both groups have the
same rate (massaging), or people get weights to that effect (reweighing); then naive Bayes is
trained as usual. C counts codes, E is scikit-learn's Gaussian naive Bayes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .data import Bools, Ints, People
from .machines import Points
from .relabelling import massaged, weights_of_reweighing

Floats = NDArray[np.float64]


def massaged_bayes(people: People, sensitive: str) -> Points:
    """System C: naive Bayes of labels that no longer depend on the group."""
    return counting_bayes(people, massaged_labels(people, sensitive))


def massaged_labels(people: People, sensitive: str) -> Bools:
    """What system C is trained on; naive Bayes ranks the people."""
    ranks = counting_bayes(people, people.good).score(people.codes.T)
    return massaged(ranks, people.good, people.deprived(sensitive))


def reweighed_bayes(people: People, sensitive: str) -> Points:
    """System C in its other form: naive Bayes of weighted people."""
    weights = weights_of_reweighing(people.good, people.deprived(sensitive))
    return counting_bayes(people, people.good, weights)


def counting_bayes(people: People, good: Bools, weights: Floats | None = None) -> Points:
    """Naive Bayes from counts of codes, each count one larger so that none is 0."""
    weights = np.ones(len(good)) if weights is None else weights
    tables = tuple(
        np.log(_shares(codes, good, weights, size) / _shares(codes, ~good, weights, size))
        for codes, size in zip(people.codes.T, people.source.sizes, strict=True)
    )
    return Points(float(np.log(weights[good].sum() / weights[~good].sum())), tables)


def _shares(codes: Ints, chosen: Bools, weights: Floats, size: int) -> Floats:
    counts = np.bincount(codes[chosen], weights[chosen], minlength=size) + 1
    shares: Floats = counts / counts.sum()
    return shares


def gaussian_bayes(people: People) -> Points:
    """System E: scikit-learn's Gaussian naive Bayes as it comes, on the codes as numbers."""
    from sklearn.naive_bayes import GaussianNB

    model = GaussianNB().fit(people.codes, people.good)
    tables = tuple(
        _log_normal(np.arange(size), model.theta_[1, place], model.var_[1, place])
        - _log_normal(np.arange(size), model.theta_[0, place], model.var_[0, place])
        for place, size in enumerate(people.source.sizes)
    )
    return Points(float(np.log(model.class_prior_[1] / model.class_prior_[0])), tables)


def _log_normal(codes: Ints, mean: float, variance: float) -> Floats:
    density: Floats = -0.5 * (np.log(2 * np.pi * variance) + (codes - mean) ** 2 / variance)
    return density
