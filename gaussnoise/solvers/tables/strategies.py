"""The strategy for one attribute: integer contrasts, measured besides the total."""

import abc
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from domains.floats import Array
from domains.tables.bases import AbstractBase

from ...errors import CovarianceError
from ...files.pickling import PickledByArguments
from ...numerics.integers import exact_type
from .residuals import Subset

_SEGMENTS = 128  # triangles along a curve; each is 2⁻¹⁶ high
ROUNDED = 2.0**6  # directions with this share of the budget, times 4^-bits, are not rounded to zero
_SAME = 1e-9  # largest rounding error of a share of the total


class AbstractStrategy(abc.ABC):
    """Measured contrasts of one attribute: integer combinations C of the counts of n categories.

    B is C divided by the length of its longest column. A table over attributes S is answered from
    the measurements ``⊗_{i∈T} B_i ⊗_{i∉T} 1'`` of all T ⊆ S. The matrix [1; B] has a left inverse
    [v, B⁺]. B⁺ decodes a measurement along the attributes of T, and v spreads the result along the
    attributes of S∖T. The decoded parts are added. E is the covariance B⁺B⁺' of decoded unit noise,
    divided by the number ``unit``.

    Attributes:
        size: the number n of categories.
    """

    size: int

    @property
    @abc.abstractmethod
    def rows(self) -> int:
        """The number of contrasts that are measured."""

    @property
    @abc.abstractmethod
    def square(self) -> int:
        """The squared length of the longest column of the contrasts C."""

    @property
    @abc.abstractmethod
    def least(self) -> int:
        """The least inner product of two columns of the contrasts C."""

    @property
    def farthest(self) -> int:
        """The squared length of C's longest column; equal to :attr:`square` unless overridden."""
        return self.square

    @property
    @abc.abstractmethod
    def stretch(self) -> int:
        """The number a such that unit noise on C, decoded to counts, has the covariance E/a.

        C are the integer contrasts, and ``E = R R'`` with R = :attr:`root`.
        """

    @property
    @abc.abstractmethod
    def unit(self) -> float:
        """The number a such that unit noise on B, decoded to counts, has the covariance aE.

        B is C, the integer contrasts, divided by the length of the longest column, and ``E = R R'``
        with R = :attr:`root`.
        """

    @property
    @abc.abstractmethod
    def growth(self) -> int:
        """A number a such that entries of C x are at most ``a Σ x`` for all counts x >= 0.

        C are the contrasts. The bound also holds for intermediate results of the product.
        """

    @property
    @abc.abstractmethod
    def profile(self) -> Array:
        """The vector v, shape (n,), with sum one, that distributes a total over the categories."""

    @property
    @abc.abstractmethod
    def root(self) -> Array:
        """A matrix R, shape (n, k), with ``R R' = E``.

        E is the covariance of the counts decoded from unit noise on B, divided by :attr:`unit`.
        """

    @property
    def length(self) -> float:
        """The spectral norm of :attr:`root`: :meth:`pull` lengthens vectors by at most this."""
        return float(np.linalg.norm(self.root, 2))

    @property
    def correlation(self) -> float:
        """The least inner product of two columns of B, whose longest column has length one."""
        return self.least / self.square

    @abc.abstractmethod
    def contrast(self, counts: NDArray[Any], axis: int) -> NDArray[Any]:
        """Return the contrasts C of integer counts, along an axis of the array."""

    @abc.abstractmethod
    def decode(self, contrasts: Array, axis: int) -> Array:
        """Return counts decoded from measured contrasts, along an axis: apply the inverse C⁺.

        The part of the counts that depends on the total is not included.
        """

    @abc.abstractmethod
    def pull(self, weights: Array, axis: int) -> Array:
        """Multiply ``weights`` of the cells by R', along an axis, where R is :attr:`root`.

        Let r be the result for the weights a, and s the result for the weights b. Then
        ``r's = a'E b``, with ``E = R R'``.
        """

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The squared lengths of the columns of the contrasts C, shape (n,), or upper bounds."""
        return np.full(self.size, self.square)

    @property
    def others(self) -> Mapping[Subset, "AbstractStrategy"]:
        """The sets of attributes that measure this attribute by other contrasts, with these.

        All of them have the same :attr:`profile`. So a table is decoded from the measurements of
        all its subsets, for any strategies in them.
        """
        return {}

    def in_set(self, T: Subset) -> "AbstractStrategy":
        """Return the strategy of this attribute in the measurement of the attributes T."""
        return self.others.get(T, self)

    def keyed(self, keys: Callable[[Subset], Iterable[Subset]]) -> "AbstractStrategy":
        """Return the same strategies if each set of attributes T is renamed to all of ``keys(T)``.

        Solvers name classes of equivalent attributes, everything else names attributes.
        """
        return self

    @property
    def centred(self) -> "AbstractStrategy":
        """The same strategy for a known total N, which other attributes do not share.

        Let u be integers near the mean column of C. ``C − u1'`` is measured in place of C. The
        contrasts change by uN, which is known, and differences of records do not change. The shares
        v of the total become about 1/n. With C, these shares can be thousands of times as large if
        the columns are on a large sphere. They then cancel against the contrasts.
        """
        return self

    def residual(self, counts: Array, axis: int) -> Array:
        """Subtract the total, distributed by v = :attr:`profile`, from the counts along an axis.

        The result is ``(I − v 1') counts``.
        """
        shape = [-1 if k == axis else 1 for k in range(counts.ndim)]
        return counts - counts.sum(axis=axis, keepdims=True) * self.profile.reshape(shape)

    def gain(self, base: AbstractBase) -> float:
        """Return the summed variance of all queries of ``base`` if the contrasts B have unit noise.

        B is C, the integer contrasts, divided by the length of the longest column.
        """
        if (
            base.queries <= 4 * base.size
        ):  # constant parts of queries, which R' maps to zero, are subtracted first: less rounding
            W = base.toarray()
            return self.unit * float(np.square((W - W[:, :1]) @ self.root).sum())
        return self.unit * float((base.gram() * (self.root @ self.root.T)).sum())

    def total_gain(self, base: AbstractBase) -> float:
        """Return the summed variance of all queries of ``base`` if only the total has noise.

        The noise has variance one, and v = :attr:`profile` distributes it over the categories.
        """
        return float(self.profile @ base.gram() @ self.profile)


@final
@dataclass(frozen=True)
class IdentityStrategy(AbstractStrategy):
    """A strategy that treats all categories alike: ``B = √(n/(n−1)) (I − 11'/n)``.

    B is a multiple of ``C = nI − 11'``, and ``E = I − 11'/n``. For two categories, one row is
    enough: ``C = (1, −1)``.
    """

    size: int

    @property
    def rows(self) -> int:
        return self.size if self.size > 2 else 1

    @property
    def stretch(self) -> int:
        return self.size**2 if self.size > 2 else 2

    @property
    def square(self) -> int:
        return self.stretch * (self.size - 1) // self.size

    @property
    def least(self) -> int:
        return -(self.stretch // self.size)

    @property
    def unit(self) -> float:
        return (self.size - 1) / self.size

    @property
    def growth(self) -> int:
        return 2 * self.size

    @property
    def profile(self) -> Array:
        return np.full(self.size, 1 / self.size)

    @property
    def root(self) -> Array:
        return np.eye(self.size) - 1 / self.size

    @property
    def length(self) -> float:
        return 1.0

    def contrast(self, counts: NDArray[Any], axis: int) -> NDArray[Any]:
        if self.size == 2:
            first, second = np.split(counts, 2, axis)
            return first - second
        return self.size * counts - counts.sum(axis=axis, keepdims=True)

    def decode(self, contrasts: Array, axis: int) -> Array:
        if self.size == 2:
            return np.concatenate([contrasts / 2, contrasts / -2], axis)
        return (contrasts - contrasts.mean(axis=axis, keepdims=True)) / self.size

    def pull(self, weights: Array, axis: int) -> Array:
        return weights - weights.mean(axis=axis, keepdims=True)

    def residual(self, counts: Array, axis: int) -> Array:
        return counts - counts.mean(axis=axis, keepdims=True)

    def gain(self, base: AbstractBase) -> float:
        n = self.size
        if base.is_identity:
            return (n - 1) ** 2 / n
        gram = base.gram()
        return self.unit * float(np.trace(gram) - gram.sum() / n)

    def total_gain(self, base: AbstractBase) -> float:
        return 1 / self.size if base.is_identity else float(base.gram().sum()) / self.size**2


@final
@dataclass(frozen=True, eq=False)
class SolvedStrategy(AbstractStrategy, PickledByArguments):
    """Integer contrasts found by solving one attribute's problem, which determine the strategy.

    The inverse is computed from the rounded contrasts, so decoding adds no error of rounding.

    If the squares of a number are summed, a row has weights ``((1 − t)², 2t(1 − t), t²)`` on the
    first three categories, or is in the fourth. No row is the second category alone. So the longest
    "column" is that of a row, and the "columns" of all t form a curve. For t from j/K to (j + 1)/K,
    this curve is in a triangle. The corners are the curve's two ends and the point where its
    tangents there meet (a Bézier curve's control points, Farin 2002). A norm is convex, so these 2K
    + 1 points take the place of the three columns.

    Attributes:
        contrasts: C, shape (n − 1, n); [1; C] is invertible.
        off: for a number whose squares are summed, how many units of two rows may be outside the
            products of curves because units are whole numbers; 0 for other attributes.
        common: integers u, shape (n − 1,), of :attr:`centred`; empty, which means zeros, otherwise.
        by_set: the sets of attributes that are measured by other contrasts of this attribute, with
            the strategy there. C v = 0 for all of them, with the same v = :attr:`profile`.
    """

    contrasts: NDArray[np.int64]
    off: int = 0
    common: tuple[int, ...] = ()
    by_set: Mapping[Subset, "SolvedStrategy"] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = self.contrasts
        if given.dtype.kind not in "iu" or given.ndim != 2 or given.shape[1] != len(given) + 1:
            raise CovarianceError(
                f"strategy: expected integer contrasts of shape (n - 1, n), got {given.shape}"
            )
        if np.square(given.astype(np.float64)).sum(axis=0).max(initial=0.0) >= 2.0**62:
            raise CovarianceError("strategy: expected contrasts whose inner products fit 64 bits")
        copied = given.astype(np.int64)
        copied.flags.writeable = False
        object.__setattr__(self, "contrasts", copied)
        if len(self.common) not in (0, len(given)):
            raise CovarianceError(
                f"strategy: expected {len(given)} integers, one for each contrast, got "
                f"{len(self.common)}"
            )
        if (
            np.linalg.matrix_rank(
                np.vstack([np.ones(self.size), copied / max(1.0, np.abs(copied).max())])
            )
            < self.size
        ):
            raise CovarianceError(
                "strategy: expected contrasts that, with the total, tell all categories apart"
            )
        others = {id(own): own for own in self.by_set.values()}.values()
        if others and (
            self.off
            or self.common
            or any(own.size != self.size or own.off or own.by_set for own in others)
            or any(np.abs(own.profile - self.profile).max() > _SAME for own in others)
        ):
            raise CovarianceError(
                "strategy: expected contrasts of an attribute that spread totals in the same way "
                "in all sets of attributes"
            )

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.contrasts.shape[1]

    @property
    def rows(self) -> int:
        return self.contrasts.shape[0]

    @cached_property
    def _points(self) -> tuple[NDArray[Any], int]:
        """Points (columns) with a hull that holds the contrasts of all rows times a c; and c²."""
        if not self.off:
            return self.contrasts, 1
        one = _SEGMENTS**4
        exact = exact_type(self.rows * int(np.abs(self.contrasts).max()) ** 2 * one)
        return self.contrasts.astype(exact) @ _curve(self.size).astype(exact), one

    @cached_property
    def square(self) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        points, one = self._points  # the largest product is a point's with itself (Cauchy-Schwarz)
        return -(-int((points * points).sum(axis=0).max()) // one)

    @cached_property
    def least(self) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self.by_set:  # inner products in several sets are least for other pairs of columns
            raise CovarianceError(
                "strategy: expected one strategy for all sets of attributes where rows are "
                "exchanged"
            )
        points, one = self._points
        return int((points.T @ points).min()) // one

    @property
    def lengths(self) -> NDArray[np.int64]:
        # rows of a number with squares are on a curve, not at the cells
        return super().lengths if self.off else np.square(self.contrasts).sum(axis=0)

    @property
    def farthest(self) -> int:
        return int(np.square(self.contrasts).sum(axis=0).max())

    @property
    def stretch(self) -> int:
        return self.square

    @property
    def unit(self) -> float:
        return 1.0

    @property
    def growth(self) -> int:
        return int(np.abs(self.measured).max())

    @cached_property
    def measured(self) -> NDArray[np.int64]:
        """The measured contrasts: C, minus a multiple of the total if that is known."""
        if not self.common:
            return self.contrasts
        return self.contrasts - np.array(self.common, dtype=np.int64)[:, None]

    @property
    def others(self) -> "Mapping[Subset, SolvedStrategy]":
        return self.by_set

    def keyed(self, keys: Callable[[Subset], Iterable[Subset]]) -> "SolvedStrategy":
        if not self.by_set:
            return self
        renamed = {key: own for T, own in self.by_set.items() for key in keys(T)}
        return SolvedStrategy(self.contrasts, by_set=renamed)

    @cached_property
    def centred(self) -> "SolvedStrategy":  # pyright: ignore[reportIncompatibleMethodOverride]
        common = np.rint(self.contrasts.mean(axis=1)).astype(np.int64)
        return SolvedStrategy(self.contrasts, self.off, tuple(common.tolist()))

    @cached_property
    def _inverse(self) -> Array:
        """The inverse of the total and scaled contrasts, which decodes these to counts."""
        scale = np.sqrt(float(self.square))
        return np.asarray(
            np.linalg.inv(np.vstack([np.ones(self.size), self.measured / scale])), dtype=np.float64
        )

    @property
    def profile(self) -> Array:
        return self._inverse[:, 0]

    @property
    def root(self) -> Array:
        return self._inverse[:, 1:]

    def contrast(self, counts: NDArray[Any], axis: int) -> NDArray[Any]:
        matrix = self.measured.astype(counts.dtype)
        return np.moveaxis(np.tensordot(matrix, counts, axes=(1, axis)), 0, axis)

    def decode(self, contrasts: Array, axis: int) -> Array:
        scaled = self.root / np.sqrt(float(self.square))
        return np.moveaxis(np.tensordot(scaled, contrasts, axes=(1, axis)), 0, axis)

    def pull(self, weights: Array, axis: int) -> Array:
        return np.moveaxis(np.tensordot(self.root, weights, axes=(0, axis)), 0, axis)


def _curve(size: int) -> NDArray[np.int64]:
    """Return points whose hull holds all rows of a number with squares, times ``_SEGMENTS``²."""
    K, j = _SEGMENTS, np.arange(_SEGMENTS + 1)
    s, t = np.append(j, j[:-1]), np.append(j, j[1:])
    points = np.zeros((size, 2 * K + size - 2), dtype=np.int64)
    points[:3, : 2 * K + 1] = (K - s) * (K - t), (K - s) * t + s * (K - t), s * t
    points[3:, 2 * K + 1 :] = K**2
    return points


def is_sum(strategy: AbstractStrategy) -> bool:
    """Return whether the only contrast of two categories is (0, 1), the count of the second one."""
    return isinstance(strategy, SolvedStrategy) and strategy.contrasts.tolist() == [[0, 1]]


def is_exchangeable(gram: Array) -> bool:
    """Return whether all diagonal entries of a Gram matrix are equal, and all others are equal.

    Then queries treat all categories alike, and an identity strategy is enough.
    """
    n = len(gram)
    return n == 1 or bool(
        (np.diag(gram) == gram[0, 0]).all() and (gram[~np.eye(n, dtype=bool)] == gram[0, 1]).all()
    )
