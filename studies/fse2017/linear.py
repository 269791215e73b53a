"""Systems A, G and H: logistic regression, with and without a fairness constraint, and an SVM.

A follows Zafar, Valera, Gomez Rodriguez and Gummadi, "Fairness constraints" (2015): the logistic
loss is minimised subject to |mean((s − s̄) · θᵀx)| ≤ c, so that the distance from the boundary does
not go with the sensitive characteristic. The sensitive characteristic is an input like the others,
as in the paper's schema; one that is not binary gets one constraint per value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from .data import Bools, Ints, People
from .machines import Kernel, Points

Floats = NDArray[np.float64]
Gamma = Literal["scale", "auto"]

PENALTY = 1_000.0  # of the squared excess over a bound, beside a loss of about 0.5
OUTER_STEPS, NEWTON_STEPS = 200, 50


@dataclass(frozen=True)
class Encoding:
    """What each code of each characteristic contributes to the features of a linear model."""

    bases: tuple[Floats, ...]  # per characteristic: rows = codes, columns = features

    @classmethod
    def of(cls, people: People) -> Encoding:
        """One feature per text value; numbers to mean 0 and deviation 1 among these people."""
        bases = []
        for place, column in enumerate(people.source.columns):
            codes = people.codes[:, place]
            numbers = (np.arange(column.size) - codes.mean()) / (codes.std() or 1.0)
            bases.append(np.eye(column.size) if column.nominal else numbers[:, None])
        return cls(tuple(bases))

    def features(self, codes: Ints) -> Floats:
        return np.hstack([base[codes[:, place]] for place, base in enumerate(self.bases)])

    def points(self, weights: Floats, offset: float) -> Points:
        """The linear model as one number per code."""
        ends = np.cumsum([base.shape[1] for base in self.bases])[:-1]
        parts = np.split(weights, ends)
        tables = tuple(base @ part for base, part in zip(self.bases, parts, strict=True))
        return Points(float(offset), tables)


def logistic_regression(people: People) -> Points:
    """System G: scikit-learn's logistic regression as it comes."""
    from sklearn.linear_model import LogisticRegression

    encoding = Encoding.of(people)
    model = LogisticRegression(max_iter=2_000).fit(encoding.features(people.codes), people.good)
    return encoding.points(model.coef_[0], model.intercept_[0])


def fair_logistic_regression(people: People, sensitive: str, *, bound: float = 0.0) -> Points:
    """System A: the covariance of s and θᵀx is at most `bound`; else the model of system G."""
    encoding = Encoding.of(people)
    features = np.hstack([encoding.features(people.codes), np.ones((len(people), 1))])
    limits = covariances(people, sensitive).T @ features / len(people)
    theta = _constrained(features, people.good, limits, bound)
    return encoding.points(theta[:-1], theta[-1])


def _constrained(features: Floats, good: Bools, limits: Floats, bound: float) -> Floats:
    """The weights of least logistic loss with |limits · θ| ≤ bound, by augmented Lagrangians.

    The loss is convex and the constraints are linear, so that there is one answer. The ridge is
    that of scikit-learn, on all weights but the intercept, which comes last.
    """
    sign = np.where(good, 1.0, -1.0)
    ridge = np.append(np.ones(features.shape[1] - 1), 1e-9)
    theta, prices = np.zeros(features.shape[1]), np.zeros(len(limits))
    for _ in range(OUTER_STEPS):
        for _ in range(NEWTON_STEPS):
            chance = expit(-sign * (features @ theta))
            pull = limits @ theta + prices / PENALTY
            beyond = pull - np.clip(pull, -bound, bound)
            slope = (ridge * theta - (sign * chance) @ features) / len(good)
            slope += PENALTY * beyond @ limits
            curve = (features * (chance * (1 - chance))[:, None]).T @ features / len(good)
            curve += np.diag(ridge / len(good))
            active = limits[beyond != 0]
            curve += PENALTY * active.T @ active
            step = np.linalg.solve(curve, slope)
            theta = theta - step
            if np.abs(step).max() < 1e-10:
                break
        pull = limits @ theta + prices / PENALTY
        change = PENALTY * (pull - np.clip(pull, -bound, bound)) - prices
        prices = prices + change
        if np.abs(change).max() < 1e-9 * PENALTY:
            return theta
    raise RuntimeError("system A did not converge")


def covariances(people: People, sensitive: str) -> Floats:
    """s − s̄ for each person: one column, or one per value when s has more than two."""
    codes = people.codes[:, people.source.place(sensitive)]
    values = np.unique(codes)
    indicators = (codes[:, None] == (values[1:] if len(values) == 2 else values)).astype(float)
    return indicators - indicators.mean(axis=0)


def support_vector_machine(
    people: People, *, standardised: bool = True, gamma: Gamma = "scale"
) -> Kernel:
    """System H: scikit-learn's SVC, on codes of mean 0 and deviation 1 unless they are left as is.

    `gamma` is today's default, 1 / (features · variance), or "auto", that of 2017: 1 / features.
    """
    from sklearn.svm import SVC

    mean, scale = np.zeros(people.codes.shape[1]), np.ones(people.codes.shape[1])
    if standardised:
        mean, scale = people.codes.mean(axis=0), people.codes.std(axis=0)
    model = SVC(gamma=gamma).fit((people.codes - mean) / scale, people.good)
    return Kernel(
        offset=float(model.intercept_[0]),
        gamma=float(model._gamma),
        mean=mean,
        scale=scale,
        vectors=model.support_vectors_.astype(np.float32),
        weights=model.dual_coef_[0].astype(np.float32),
    )


def largest_covariance(points: Points, people: People, sensitive: str) -> float:
    """What the constraint of system A bounds, on these people."""
    scores = points.score(people.codes.T)
    return float(np.abs(covariances(people, sensitive).T @ scores / len(people)).max())


def accuracy(decisions: Bools, people: People) -> float:
    """The share of people whose outcome is decided rightly, both outcomes weighing the same."""
    right = decisions == people.good
    return float(
        np.mean([right[people.good == outcome].mean() for outcome in np.unique(people.good)])
    )
