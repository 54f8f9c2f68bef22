"""A product measure on records, and its check for one attribute after another."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from domains.floats import Array

from ...errors import CertificateError
from ...solvers.tables.workload import Workload
from ..covariance import AbstractCovariance, Stored
from ..problem import Problem
from ..product_covariance import ProductCovariance
from ..sensitivity import largest_move
from .certificate import Verification
from .pair_weights import NO_PAIRS, fits
from .product_fidelity import SLACK, Blocks
from .weights import TableCertificate

_DAMAGE = AttributeError, IndexError, TypeError, ValueError, ArithmeticError, np.linalg.LinAlgError


@final
@dataclass(frozen=True, eq=False)
class ProductCertificate(TableCertificate):
    """A measure under which the attributes of a record, or of a pair of records, are independent.

    The two records of a pair differ in a random pattern, which is a set of attributes.

    The second moment of the covered differences, over the records, is ``Λ^{1/2} G Λ^{1/2}`` up to
    factors κ_T, the mean squared changes of the measurements of attribute sets T between the
    records of a pair. Here Λ has the records' probabilities, and G is the sum over tables S of
    ``⊗_{i∈S} G_i ⊗_{i∉S} 11'``, with G_i the Gram matrix of attribute i's queries. Split along
    every attribute into √λ, where λ are the weights of the attribute's categories, and its
    orthogonal complement, this is a matrix of blocks over pairs of attribute sets, each a Kronecker
    product. Blocks are not coupled if G_i is the identity and weights are uniform.

    Blocks of the largest tables are diagonal if every G_i is, so that a Schur complement leaves a
    matrix over smaller tables; the trace of its root is computed from determinants, by a quadrature
    that errs downwards. If the remaining matrix is too large, the least coupled directions of every
    attribute are split off from the others and from √λ, for records and for queries: this is a
    pinching, which can only lower the nuclear norm.

    A pair of records has independent values of every attribute in its pattern. Where the categories
    of an attribute form two parts, its two values are in different parts as far as the weights of
    these parts allow. Then κ_T depends on one direction of the attribute, which separates the
    parts, and on no other direction.

    Where the tables of an attribute have no other attribute, its two values may also have any joint
    distribution: that of the weights of pairs.

    Attributes:
        cell_weights: the weights of the categories in each class of equivalent attributes, shape
            (n,).
        parts: for each class, which categories form the second part, shape (n,); all or none where
            there is one part only.
        pairs: for each class, the weights of the pairs x < y of categories, shape (n(n−1)/2,), or
            none, shape (0,).
    """

    cell_weights: tuple[Array, ...]
    parts: tuple[NDArray[np.bool_], ...]
    pairs: tuple[NDArray[np.uint16], ...]

    def lower_bound(self) -> float:
        return self._bound_and_tightness[0]

    @property
    def is_tight(self) -> bool:
        """Whether the lower bound uses all blocks of the second moment: none was dropped."""
        return self._bound_and_tightness[1]

    @cached_property
    def _bound_and_tightness(self) -> tuple[float, bool]:
        blocks = Blocks(self, self.workload())
        total, tight = blocks.fidelity()
        return max(self.domain.weights) * total * (1 - SLACK), tight

    def spectrum(self) -> tuple[Array, Array]:
        """Return eigenvalues and multiplicities of uncoupled blocks, with their mean in each block.

        They sum to a lower bound.
        """
        workload = self.workload()
        whole = tuple(np.zeros_like(part) for part in self.parts)
        same = replace(self, parts=whole, pairs=(NO_PAIRS,) * len(self.pairs))
        traces = Blocks(same, workload).uncoupled()
        counts = workload.residual_counts * workload.ranks
        return max(self.domain.weights) * traces / workload.ranks * (1 - SLACK), counts

    def check(
        self, problem: Problem, covariance: AbstractCovariance, center: Array, claimed: float
    ) -> list[Verification]:
        """Check both bounds of a product covariance, attribute by attribute."""
        try:
            return [_checked(self, problem, covariance, claimed)]
        except CertificateError:
            raise
        except _DAMAGE as error:
            raise CertificateError(
                f"verify: the stored numbers are not what they should be ({type(error).__name__})"
            ) from None

    def encode(self) -> Stored:
        header, arrays = super().encode()
        weights = {f"cell_weights{k}": weights for k, weights in enumerate(self.cell_weights)}
        parts = {
            f"cell_parts{k}": part.astype(np.int8)
            for k, part in enumerate(self.parts)
            if part.any()
        }
        pairs = {f"cell_pairs{k}": pairs for k, pairs in enumerate(self.pairs) if len(pairs)}
        return header, arrays | weights | parts | pairs

    @classmethod
    def _more(cls, arrays: dict[str, NDArray[Any]]) -> tuple[Any, ...]:
        classes = sum(name.startswith("cell_weights") for name in arrays)
        weights = tuple(arrays[f"cell_weights{k}"] for k in range(classes))
        parts = tuple(
            arrays.get(f"cell_parts{k}", np.zeros(len(cells))) != 0
            for k, cells in enumerate(weights)
        )
        pairs = tuple(arrays.get(f"cell_pairs{k}", NO_PAIRS) for k in range(classes))
        return weights, parts, pairs


def _checked(
    witness: ProductCertificate, problem: Problem, covariance: AbstractCovariance, claimed: float
) -> Verification:
    replaced = problem.protected == "replace"
    if (
        not isinstance(covariance, ProductCovariance)
        or covariance.domain is not problem.domain
        or problem.protected not in ("replace", "add-remove")
    ):
        raise CertificateError("verify: the covariance belongs to another domain or relation")
    domain = covariance.domain
    workload = Workload.of(domain, total=not replaced, public=problem.public)
    if not _is_measure(problem, witness, workload):
        raise CertificateError(
            "verify: the certificate is not a measure on the records of these products"
        )
    variances = covariance.variances
    residuals = [T for kind in workload.residuals for T in workload.moving.members(kind)]
    if (
        tuple(s.size for s in covariance.strategies) != domain.sizes
        or any(
            covariance.strategies[i] != covariance.strategies[members[0]]
            for members in workload.orbits.classes
            for i in members
        )
        or set(variances) != set(residuals)
        or not all(0 < variances[T] < math.inf for T in residuals)
    ):
        raise CertificateError(
            "verify: expected a positive variance for every residual of the tables"
        )
    workload = workload.measured_as(covariance.strategies)
    units = dict(zip(workload.residuals, workload.units.tolist(), strict=True))
    shares: dict = {}
    total = Fraction(0)
    for kind in workload.residuals:
        members = [
            Fraction(units[kind]) / Fraction(variances[T]) for T in workload.moving.members(kind)
        ]
        total += sum(members)
        shares[kind] = max(members)
    enclosure = float(total)
    if residuals and (replaced or workload.free):
        listed = np.array([float(shares[kind]) for kind in workload.residuals])
        enclosure = largest_move(workload, listed, replaced=replaced, claimed=claimed)
    return Verification(covariance.error(problem.p), witness.lower_bound(), enclosure, enclosure)


def _is_measure(problem: Problem, witness: ProductCertificate, workload: Workload) -> bool:
    """Return whether the certificate is for this problem, and all its weights are distributions."""
    sizes = [strategy.size for strategy in workload.strategies]
    return bool(
        witness.proves(problem)
        and witness.has_weights(workload)
        and [cells.shape for cells in witness.cell_weights] == [(n,) for n in sizes]
        and [(part.shape, part.dtype.kind) for part in witness.parts]
        == [((n,), "b") for n in sizes]
        and len(witness.pairs) == len(sizes)
        and all(
            fits(pairs, n)
            and k in workload.alone - workload.public
            and problem.protected == "replace"
            for k, (pairs, n) in enumerate(zip(witness.pairs, sizes, strict=True))
            if pairs.shape != (0,)
        )
        and all(
            (w >= 0).all() and np.isfinite(w).all() and w.sum() > 0 for w in witness.cell_weights
        )
    )
