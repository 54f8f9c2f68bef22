"""Linear combinations of cells of released tables, with their exact covariance."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import ParameterError
from ...numerics.intervals import Contrast, Contrasts
from ...solvers.tables.residuals import Subset, subsets_of
from ...text import near, one_of
from ..schema.schema import Category
from .noisy import AbstractRelease, Names, estimate_of

ROUNDED = 2.0**-42  # a sum that is smaller, relative to its terms, is taken for a rounding error
Array = NDArray[np.float64]
Weights = Mapping[Names, ArrayLike]


def cell(release: AbstractRelease, /, **labels: Category) -> "Weights":
    """Return the weights that select one cell: ``release.contrast(release.cell(sex="F"))``.

    Raises:
        ParameterError: an unknown attribute or label.
    """
    attributes = [release.plan.schema.attributes[i] for i in release.plan.subset(tuple(labels))]
    weights = np.zeros([attribute.size for attribute in attributes])
    for attribute, label in zip(attributes, labels.values(), strict=True):
        if label not in attribute.labels:
            raise ParameterError(
                f"cell: expected a label of {attribute.name!r}, "
                f"{one_of(map(repr, attribute.labels))}, got {label!r:.80}"
                + near(label, attribute.labels)
            )
    weights[
        tuple(a.labels.index(label) for a, label in zip(attributes, labels.values(), strict=True))
    ] = 1
    return {tuple(labels): weights}


def contrast(release: AbstractRelease, weights: "Weights") -> Contrast:
    """Return a linear combination of cells of released tables, and its standard deviation.

    Args:
        release: the release that is asked.
        weights: {attribute names: array of the weights of all cells of their table}.

    Returns:
        The estimate and its exact standard deviation, which includes correlations between tables.

    Raises:
        ParameterError: an unknown marginal or a wrong shape.
    """
    if not isinstance(weights, Mapping):
        raise ParameterError(
            f'contrast: expected weights like {{("age", "sex"): array}}, got '
            f"{type(weights).__name__}; "
            "hint: contrasts() takes a list of them"
        )
    both = contrasts(release, [weights])
    return Contrast(float(both.estimate[0]), float(both.standard_deviation[0]))


def contrasts(release: AbstractRelease, combinations: "Sequence[Weights]") -> Contrasts:
    """Return several linear combinations of cells, with their exact covariance matrix.

    Args:
        release: the release that is asked.
        combinations: k mappings like the ``weights`` of :func:`contrast`.

    Returns:
        Their estimates, shape (k,), and their covariance, shape (k, k).

    Raises:
        ParameterError: an unknown marginal or a wrong shape.
    """
    if not isinstance(combinations, list | tuple) or not all(
        isinstance(w, Mapping) for w in combinations
    ):
        raise ParameterError(
            'contrasts: expected a list of weights like [{("age", "sex"): array}], got '
            f"{type(combinations).__name__}; hint: release.cell(sex=...) makes the weights of "
            "one cell"
        )
    sums = Sums.of(release, combinations)
    return Contrasts(sums.estimate(release), sums.covariance(release))


class Sums(NamedTuple):
    """Linear combinations of cells, which any release of the same plan can be asked for.

    Attributes:
        terms: triples: the index of a combination, the names of a table, and the weights of its
            cells, with axes in sorted order.
        shares: the value of each combination if one row is spread evenly over all cells.
        moved: {T: for each combination, a row of weights of the measurement of T}.
    """

    terms: list[tuple[int, Names, Array]]
    shares: Array
    moved: dict[Subset, Array]

    @classmethod
    def of(cls, release: AbstractRelease, combinations: "Sequence[Weights]") -> Self:
        """Return the sums for combinations, which are checked against the tables of a release."""
        query = release.query
        terms: list[tuple[int, Names, Array]] = []
        shares = np.zeros(len(combinations))
        pulled: dict[Subset, Array] = {}  # {T: a row of weights for each combination}
        sizes: dict[Subset, Array] = {}  # norms of the same arrays, for the absolute weights
        # {attribute names: (shape, order of its axes, attribute set S, measured subsets of S)}
        asked: dict[Names, tuple[tuple[int, ...], list[int], Subset, list[Subset]]] = {}
        for row, weights in enumerate(combinations):
            for names, given in weights.items():
                if names not in asked:
                    order, S, estimate = estimate_of(release, names)
                    axes = [S.index(i) for i in order]
                    measured = [T for T in subsets_of(S) if T in query.multipliers]
                    asked[names] = tuple(estimate.shape[k] for k in axes), axes, S, measured
                shape, axes, S, measured = asked[names]
                w = _weights(names, given)
                if w.shape != shape or not np.isfinite(w).all():
                    got = "infinite ones or NaN" if w.shape == shape else w.shape
                    raise ParameterError(
                        f"contrast: expected finite weights of shape {shape} for {names}, got {got}"
                    )
                w = w.transpose(np.argsort(axes))
                terms.append((row, names, w))
                shares[row] += math.fsum(w.ravel().tolist()) / w.size
                absolute = np.abs(w) if (w < 0).any() else w
                for T in measured:
                    seen = query.gather(w, S, T)
                    pulled.setdefault(T, np.zeros((len(combinations), *seen.shape)))[row] += seen
                    both = seen if absolute is w else query.gather(absolute, S, T)
                    sizes.setdefault(T, np.zeros(len(combinations)))[row] += float(
                        np.linalg.norm(both)
                    )
        moved: dict[Subset, Array] = {}
        for T, rows in pulled.items():
            strategies = query.strategies_of(T)
            for axis, strategy in enumerate(strategies, 1):
                rows = strategy.pull(rows, axis)
            own = moved[T] = rows.reshape(len(rows), -1)
            length = math.prod(strategy.length for strategy in strategies)
            # if weights cancel, the rest is a rounding error
            own[np.linalg.norm(own, axis=1) <= ROUNDED * length * sizes[T]] = 0.0
        return cls(terms, shares, moved)

    def estimate(self, release: AbstractRelease) -> Array:
        """Return the estimates of a release, shape (k,)."""
        asked = {names for _, names, _ in self.terms}
        tables = {names: estimate_of(release, names)[2] for names in asked}
        estimate = np.zeros(len(self.shares))
        for row, names, w in self.terms:
            estimate[row] += float((w * tables[names]).sum())
        if release.query.public:
            return estimate
        known = np.ones(len(estimate), dtype=bool)  # combinations that only count all rows
        for own in self.moved.values():
            known &= ~own.any(axis=1)
        return np.where(known, self.shares * (release.public_rows or 0.0), estimate)

    def covariance(self, release: AbstractRelease) -> Array:
        """Return the covariance of the estimates of a release, shape (k, k)."""
        covariance = np.zeros((len(self.shares),) * 2)
        for T, own in self.moved.items():
            covariance += release.covariance.variances[T] * (own @ own.T)
        return covariance


def _weights(names: Names, given: object) -> Array:
    """Return the weights of a table's cells as an array; raise ParameterError if not an array."""
    try:
        if not isinstance(given, Mapping):
            return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    hint = (
        'release.cell(sex="F") makes the weights of one cell'
        if isinstance(given, Mapping)
        else ".toarray() if sparse"
    )
    raise ParameterError(
        f"contrast: expected an array of weights for {names}, one number per cell in the order of "
        "the labels, got "
        f"{type(given).__name__}; hint: {hint}"
    )
