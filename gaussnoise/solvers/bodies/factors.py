"""Products of symmetric bodies, factor by factor (Nikolov & Tang 2023, Lemmas 60 and 62)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np
import scipy

from domains.algebra.hulls import hull
from domains.algebra.images import Scaled
from domains.algebra.products import Kronecker, Product
from domains.domain import AbstractDomain
from domains.floats import Array

from ...numerics.norms import dual_power, norm
from ..design import Design

_MOST_NUMBERS = 2**25  # largest number of coordinates in a certificate's points: 256 MB
_NEGLIGIBLE_WEIGHT = 1e-14


@dataclass(frozen=True, eq=False)
class Factor:
    """The solution for one factor of a product: an ellipsoid that covers it, and its proof.

    Attributes:
        design: the optimal design; its ellipsoid covers the factor up to the solver's precision.
        points: shape (k, d), the factor's points that have the dual weights ``design.weights``.
    """

    design: Design
    points: Array

    def error(self, p: float) -> float:
        """Return the p-norm of the standard deviations of ``design``'s covariance."""
        return norm(np.sqrt(np.square(self.design.factor).sum(axis=1)), p)


def factored(
    domain: AbstractDomain, p: float, solve: Callable[[AbstractDomain], Factor]
) -> tuple[Design, Array] | None:
    """Return the optimal design of a product of symmetric bodies, and points of its dual measure.

    ``solve`` returns the solution for one factor. For other domains the result is None.
    """
    if isinstance(domain, Scaled):
        inner = factored(domain.body, p, solve)
        return None if inner is None else (inner[0], domain.factor * inner[1])
    if isinstance(domain, Kronecker) and domain.is_symmetric:
        return _kronecker(*(solve(_with_mirror_image(K)) for K in (domain.left, domain.right)))
    if isinstance(domain, Product) and domain.is_symmetric:
        return _cartesian([solve(part) for part in domain.parts], p)
    return None


def _with_mirror_image(K: AbstractDomain) -> AbstractDomain:
    """Return K if it is symmetric, else the hull of K ∪ −K."""
    # for a symmetric L, x ⊗ y and (−x) ⊗ y are both in K ⊗ L: K ∪ −K needs the same noise
    return K if K.is_symmetric else hull(K, -K)


def _kronecker(left: Factor, right: Factor) -> tuple[Design, Array] | None:
    """Return the design of a Kronecker product and its points, or None if they are too many."""
    parts = (left.design, right.design)
    weights = reduce(np.kron, (design.weights for design in parts))
    kept = weights > _NEGLIGIBLE_WEIGHT * weights.max()
    dim = left.points.shape[1] * right.points.shape[1]
    if kept.sum() * dim > _MOST_NUMBERS:
        return None
    rows = np.argwhere(kept.reshape(len(left.points), -1))
    points = np.einsum("ki,kj->kij", left.points[rows[:, 0]], right.points[rows[:, 1]]).reshape(
        -1, dim
    )
    # γ_p(K ⊗ L) = γ_p(K) γ_p(L): the covariance and the dual measure are Kronecker products
    design = Design(
        weights=weights[kept] / weights[kept].sum(),
        coordinate_weights=_kron(left.design.coordinate_weights, right.design.coordinate_weights),
        factor=_kron(left.design.factor, right.design.factor),
        center=np.zeros(dim),
        gap=(1 + left.design.gap) * (1 + right.design.gap) - 1,
        steps=left.design.steps + right.design.steps,
        note=f"Kronecker product, factor by factor ({left.design.note}; {right.design.note})",
        interrupted=any(design.interrupted for design in parts),
        inexact=any(design.inexact for design in parts),
    )
    return design, points


def _kron(first: Array, second: Array) -> Array:
    return np.asarray(np.kron(first, second), dtype=np.float64)


def _cartesian(factors: list[Factor], p: float) -> tuple[Design, Array]:
    """Return the optimal design of a Cartesian product of factors, and its points."""
    alpha = 2 if p == np.inf else 2 * p / (p + 2)
    # ⊕ M_k/c_k with Σ c_k = 1 covers the product, and its ‖sd‖_p is least at c_k ∝
    # error_k^{2p/(p+2)}.
    errors = np.array([factor.error(p) for factor in factors])
    shares = (errors / (errors.max() or 1.0)) ** alpha
    shares = np.maximum(shares / (shares.sum() or 1.0), 1e-30)
    # with these multiples of the factors' coordinate weights, the dual bound equals the error
    lifts = np.ones(len(factors)) if p == 2 else shares ** dual_power(p)
    weights, points = _coupled(factors)
    scaled = [
        factor.design.factor / np.sqrt(share) for share, factor in zip(shares, factors, strict=True)
    ]
    notes = sorted({factor.design.note for factor in factors})
    design = Design(
        weights=weights,
        coordinate_weights=np.concatenate(
            [
                lift * factor.design.coordinate_weights
                for lift, factor in zip(lifts, factors, strict=True)
            ]
        ),
        factor=np.asarray(scipy.linalg.block_diag(*scaled), dtype=np.float64),
        center=np.zeros(points.shape[1]),
        gap=max(factor.design.gap for factor in factors),
        steps=sum(factor.design.steps for factor in factors),
        note=f"product of {len(factors)} factors, one by one ({'; '.join(notes)})",
        interrupted=any(factor.design.interrupted for factor in factors),
        inexact=any(factor.design.inexact for factor in factors),
    )
    return design, points


def _coupled(factors: list[Factor]) -> tuple[Array, Array]:
    """Return points and weights of a product, in which the factors' parts are uncorrelated."""
    # The cumulative weights of every measure cut [0, 1] into intervals, one per atom. Between two
    # neighbouring cuts of any of them, each measure has a single atom: these atoms are combined.
    cuts = [np.cumsum(factor.design.weights) / factor.design.weights.sum() for factor in factors]
    ends = np.unique(np.concatenate(cuts))
    ends = ends[ends < 1 - 1e-15]
    masses = np.diff(np.concatenate([[0.0], ends, [1.0]]))
    middles = np.concatenate([[0.0], ends, [1.0]])[:-1] + masses / 2
    rows = [np.minimum(np.searchsorted(cut, middles), len(cut) - 1) for cut in cuts]
    # orthogonal sign patterns leave no correlation between factors
    signs = scipy.linalg.hadamard(1 << max(len(factors) - 1, 0).bit_length())[:, : len(factors)]
    used = masses > _NEGLIGIBLE_WEIGHT
    blocks = [
        [
            sign * factor.points[row[used]]
            for sign, factor, row in zip(pattern, factors, rows, strict=True)
        ]
        for pattern in signs
    ]
    points = np.vstack([np.hstack(block) for block in blocks])
    weights = np.tile(masses[used] / masses[used].sum() / len(signs), len(signs))
    return weights, points
