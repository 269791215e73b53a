"""Systems B, D and F: decision trees, two of which try not to discriminate.

B follows Kamiran, Calders and Pechenizkiy, "Discrimination aware decision tree learning" (2010): a
split is judged by its information gain about the class (IGC) and about the sensitive characteristic
(IGS). With IGC + IGS, which the authors recommend, leaves are then relabelled, those first that
remove most discrimination for the accuracy they cost, until the training data show at most ε. D
is a plain tree on locally massaged labels (Žliobaitė, Kamiran and Calders, 2011). F is plain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .bayes import counting_bayes
from .data import Bools, Ints, People
from .machines import Tree
from .relabelling import discrimination, locally_massaged

Floats = NDArray[np.float64]
Criterion = Literal["class", "difference", "ratio", "sum"]

SMALLEST_LEAF = {"census": 20, "credit": 5}  # people; the same for all trees on a data set
DEEPEST = 12
LEAST_GAIN = 1e-9


def plain_tree(people: People) -> Tree:
    """System F: scikit-learn's decision tree, by entropy."""
    return _fitted(people, people.good)


def conditional_tree(people: People, sensitive: str) -> Tree:
    """System D: a plain tree of labels without unexplained discrimination."""
    return _fitted(people, conditional_labels(people, sensitive))


def conditional_labels(people: People, sensitive: str) -> Bools:
    """What system D is trained on: labels massaged within each explanatory value."""
    explanatory = people.codes[:, people.source.place(people.source.explanatory)]
    ranks = local_ranks(people, explanatory)
    return locally_massaged(ranks, people.good, people.deprived(sensitive), explanatory)


def local_ranks(people: People, explanatory: Ints) -> Floats:
    """How much each person looks like one with the good outcome, judged among their like."""
    ranks = np.empty(len(people))
    for value in np.unique(explanatory):
        here = np.flatnonzero(explanatory == value)
        part = people.take(here)
        mixed = part.good.any() and not part.good.all()
        ranks[here] = counting_bayes(part, part.good).score(part.codes.T) if mixed else 0.0
    return ranks


def _fitted(people: People, good: Bools) -> Tree:
    from sklearn.tree import DecisionTreeClassifier

    model = DecisionTreeClassifier(
        criterion="entropy",
        max_depth=DEEPEST,
        min_samples_leaf=SMALLEST_LEAF[people.source.name],
        random_state=0,
    ).fit(people.codes, good)
    tree = model.tree_
    own = np.arange(tree.node_count)
    leaf = tree.children_left < 0
    return Tree(
        characteristic=np.where(leaf, 0, tree.feature).astype(np.intp),
        threshold=tree.threshold.astype(float),
        left=np.where(leaf, own, tree.children_left).astype(np.intp),
        right=np.where(leaf, own, tree.children_right).astype(np.intp),
        favourable=tree.value[:, 0, 1] > tree.value[:, 0, 0],
    )


def aware_tree(
    people: People,
    sensitive: str,
    *,
    criterion: Criterion = "sum",
    epsilon: float = 0.01,
) -> Tree:
    """System B: a tree by a joint criterion; with "sum" its leaves are relabelled."""
    tree = _Grower(people, sensitive, criterion).grow()
    return relabelled(tree, people, sensitive, epsilon) if criterion == "sum" else tree


def relabelled(tree: Tree, people: People, sensitive: str, epsilon: float) -> Tree:
    """Other decisions in some leaves, so that the training data show at most `epsilon`.

    Among the leaves whose change lowers the discrimination, the best ratio of discrimination
    removed to accuracy lost goes first.
    """
    deprived = people.deprived(sensitive)
    leaves = tree.leaves(people.codes.T)
    nodes = len(tree.left)

    def count(chosen: Bools) -> Floats:
        return np.bincount(leaves[chosen], minlength=nodes).astype(float)

    sign = np.where(tree.favourable, -1.0, 1.0)  # what a change adds to the rates
    removed = sign * (count(deprived) / deprived.sum() - count(~deprived) / (~deprived).sum())
    lost = np.abs(count(people.good) - count(~people.good)) / len(people)
    order = np.argsort(-removed / np.maximum(lost, 1e-12), kind="stable")
    favourable = tree.favourable.copy()
    left = discrimination(favourable[leaves], deprived)
    for leaf in order[removed[order] > 0]:
        if left <= epsilon:
            break
        favourable[leaf] = ~favourable[leaf]
        left -= removed[leaf]
    return replace(tree, favourable=favourable)


@dataclass
class _Grower:
    """Grows a tree of threshold splits; all splits of a node are judged at once, from counts."""

    people: People
    sensitive: str
    criterion: Criterion

    def grow(self) -> Tree:
        place = self.people.source.place(self.sensitive)
        sizes = self.people.source.sizes
        self._labels = [
            (self.people.good.astype(int), 2),
            (self.people.codes[:, place], sizes[place]),
        ]
        self._smallest = SMALLEST_LEAF[self.people.source.name]
        self._nodes: list[list[Any]] = []
        self._add(np.arange(len(self.people)), 0)
        columns = list(zip(*self._nodes, strict=True))
        kinds = (np.intp, float, np.intp, np.intp, bool)
        return Tree(*(np.array(c, dtype=k) for c, k in zip(columns, kinds, strict=True)))

    def _add(self, rows: Ints, depth: int) -> int:
        own = len(self._nodes)
        good = self.people.good[rows]
        self._nodes.append([0, 0.0, own, own, bool(2 * good.sum() > len(rows))])
        if depth == DEEPEST or len(rows) < 2 * self._smallest or good.all() or not good.any():
            return own
        split = self._best(rows)
        if split is not None:
            column, threshold = split
            below = self.people.codes[rows, column] <= threshold
            left, right = self._add(rows[below], depth + 1), self._add(rows[~below], depth + 1)
            self._nodes[own][:4] = [column, threshold, left, right]
        return own

    def _best(self, rows: Ints) -> tuple[int, float] | None:
        """The characteristic and threshold with the highest value, if any split gains at all."""
        best, choice = LEAST_GAIN, None
        for column, size in enumerate(self.people.source.sizes):
            codes = self.people.codes[rows, column]
            (by_class, sides), (by_group, _) = (
                self._gains(codes, size, labels[rows], kinds) for labels, kinds in self._labels
            )
            allowed = (sides >= self._smallest).all(axis=0) & (by_class > LEAST_GAIN)
            values = np.where(allowed, self._value(by_class, by_group), -np.inf)
            if len(values) and values.max() > best:
                best, choice = float(values.max()), (column, float(values.argmax()))
        return choice

    def _value(self, by_class: Floats, by_group: Floats) -> Floats:
        match self.criterion:
            case "class":
                return by_class
            case "difference":
                return by_class - by_group
            case "ratio":
                return by_class / np.maximum(by_group, LEAST_GAIN)
            case "sum":
                return by_class + by_group

    @staticmethod
    def _gains(codes: Ints, size: int, labels: Ints, kinds: int) -> tuple[Floats, Ints]:
        """The information gain of every threshold, and the numbers of people on its sides."""
        counts = np.bincount(codes * kinds + labels, minlength=size * kinds).reshape(size, kinds)
        below = counts.cumsum(axis=0)[:-1]
        above = counts.sum(axis=0) - below
        sides = np.array([below.sum(axis=1), above.sum(axis=1)])
        before = _entropy(counts.sum(axis=0, keepdims=True))
        after = (sides * np.array([_entropy(below), _entropy(above)])).sum(axis=0) / len(codes)
        return before - after, sides


def _entropy(counts: Ints) -> Floats:
    """The entropy of each row of counts, in bits."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    entropy: Floats = -(shares * np.log2(np.where(shares > 0, shares, 1.0))).sum(axis=1)
    return entropy
