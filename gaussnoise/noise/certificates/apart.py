"""The dual certificate for counts and sums of unbounded numbers: one measure for each block."""

import math
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from domains.floats import Array
from domains.tables.clipped import Clipped
from domains.tables.marginals import Marginals
from domains.tables.products import Products
from domains.tables.tables import AbstractTables, Term

from ...errors import CertificateError, CovarianceError
from ...numerics.rounding import ROUNDING_MARGIN
from ...solvers.tables.residuals import Subset
from ...solvers.tables.strategies import IdentityStrategy, is_sum
from ..covariance import AbstractCovariance
from ..marginal_covariance import MarginalCovariance
from ..problem import Problem
from ..product_covariance import ProductCovariance
from ..proportion import AddInProportion
from ..table_covariance import TableCovariance
from .certificate import Certificate, Verification


class Block(NamedTuple):
    """All counts, or all sums of one number, as a problem of their own: tables of other attributes.

    Attributes:
        number: the number's position among the attributes; None for counts.
        scale: t: a row with the number u may cost ``ρ (1 + (u/t)²)``, where the unit of u and t
            is the length of the number's interval; one for counts.
        domain: the tables; sums are in units of t.
    """

    number: int | None
    scale: float
    domain: AbstractTables

    @property
    def contents(self) -> tuple[object, ...]:
        """The block's contents as a tuple of plain values, to compare it with another block."""
        own = self.domain
        return self.number, self.scale, own.sizes, own.terms, own.weights

    def own(self, T: Subset) -> Subset:
        """Return the attribute set T, with the block's number (an attribute), if any, added."""
        return T if self.number is None else tuple(sorted((*T, self.number)))

    def covariance(self, whole: TableCovariance, numbers: tuple[int, ...]) -> TableCovariance:
        """Return the covariance of this block's tables, as a part of the covariance ``whole``.

        In ``whole``, the noise of different blocks is independent. ``numbers`` are the positions of
        all numbers.
        """
        variances = {
            tuple(i for i in T if i != self.number): variance / self.scale**2
            for T, variance in whole.variances.items()
            if {*T} & {*numbers} == ({self.number} if self.number is not None else set())
        }
        used = {i for S in self.domain.subsets for i in S}
        if self.domain.is_cells and all(
            isinstance(whole.strategies[i], IdentityStrategy) for i in used
        ):
            return MarginalCovariance(self.domain, variances)
        return ProductCovariance(self.domain, whole.strategies, variances)


def blocks_of(domain: AbstractTables, relation: AddInProportion) -> tuple[Block, ...]:
    """Return the counts as one block, and the sums of each number as another, with counts first.

    Budgets of rows grow with their numbers. Queries that several tables ask are asked once, with
    the root of their summed squared weights.
    """
    scales, counts = dict(relation.scales), dict[Term, float]()
    sums: dict[int, dict[Term, float]] = {i: {} for i in scales}
    for term, weight in zip(domain.terms, domain.weights, strict=True):
        rest = tuple([(i, base) for i, base in term if i not in scales])
        counts[rest] = math.hypot(counts.get(rest, 0.0), weight)
        for i, base in term:
            if i in scales and isinstance(base, Clipped):
                share = weight * float(scales[i]) * base.high / base.unit
                sums[i][rest] = math.hypot(sums[i].get(rest, 0.0), share)
    found = [Block(None, 1.0, _tables(domain, counts))]
    found += [Block(i, float(scales[i]), _tables(domain, own)) for i, own in sums.items()]
    return tuple(found)


def _tables(domain: AbstractTables, asked: dict[Term, float]) -> AbstractTables:
    """Return tables of the given terms (products of queries), with their weights."""
    weights = list(asked.values())
    if all(base.is_identity for term in asked for _, base in term):
        subsets = [[i for i, _ in term] for term in asked]
        return Marginals(domain.sizes, subsets, weights=weights)
    own = domain.bases if isinstance(domain, Products) else ()
    return Products(own, [dict(term) for term in asked], weights=weights)


@final
@dataclass(frozen=True, eq=False)
class ApartCertificate(Certificate):
    """One certificate for all counts, and one for the sums of each number.

    The squares of the blocks' lower bounds add up (:mod:`gaussnoise.noise.apart`).

    Attributes:
        blocks: the blocks, with counts first.
        parts: one certificate for each block.
    """

    blocks: tuple[Block, ...]
    parts: tuple[Certificate, ...]

    def lower_bound(self) -> float:
        return together_below([part.lower_bound() for part in self.parts])

    def spectrum(self) -> tuple[Array, Array]:
        return self.weighted([1.0] * len(self.parts))

    def weighted(self, factors: list[float]) -> tuple[Array, Array]:
        """Return eigenvalues and their multiplicities if block j is multiplied by ``factors[j]``.

        Let f_j be the lower bound of the multiplied block j. The measure gives block j the
        probability ``f_j²/Σ f²``, and multiplies there the root of the second moment by
        ``f_j/√(Σ f²)``. So the eigenvalues, counted with multiplicity, sum to ``√(Σ f²)``.
        """
        spectra = [part.spectrum() for part in self.parts]
        ends = [
            f * float(values @ counts) for f, (values, counts) in zip(factors, spectra, strict=True)
        ]
        whole = math.hypot(*ends) or 1.0
        values = [
            values * (factor * end / whole * (1 - ROUNDING_MARGIN))
            for factor, end, (values, _) in zip(factors, ends, spectra, strict=True)
        ]
        return np.concatenate(values), np.concatenate([counts for _, counts in spectra])

    @property
    def caption(self) -> str:
        return "a measure for each of several blocks, which lists no points"

    def check(
        self, problem: Problem, covariance: AbstractCovariance, center: Array, claimed: float
    ) -> list[Verification]:
        """Check every block by its own certificate, as a separate problem."""
        relation, domain = problem.neighbors, problem.domain
        if (
            not isinstance(relation, AddInProportion)
            or not isinstance(domain, AbstractTables)
            or not isinstance(covariance, TableCovariance)
            or problem.p != 2
        ):
            raise CertificateError("verify: the certificate of blocks belongs to another problem")
        expected = [block.contents for block in blocks_of(domain, relation)]
        several = [T for T in covariance.variances if len({*T} & {*relation.numbers}) > 1]
        if expected != [block.contents for block in self.blocks] or several:
            raise CertificateError("verify: expected a certificate for every block")
        if not all(is_sum(covariance.strategies[i]) for i in relation.numbers):
            raise CovarianceError("verify: expected sums that are measured apart from counts")
        checks = [
            part.check(
                Problem(block.domain, 2.0, "add-remove"),
                block.covariance(covariance, relation.numbers),
                np.zeros(block.domain.dim),
                1.0,
            )
            for part, block in zip(self.parts, self.blocks, strict=True)
        ]
        least = [min(one.gamma_lower for one in own) for own in checks]
        listed = [one for own in checks for one in own]
        return [
            Verification(
                gamma=math.hypot(*(max(one.gamma for one in own) for own in checks)),
                gamma_lower=together_below(least),
                enclosure=max(one.enclosure for one in listed),
                sensitivity_squared=max(one.sensitivity_squared for one in listed),
                rounding=max(one.rounding for one in listed) + 8 * ROUNDING_MARGIN,
            )
        ]


def together_below(ends: list[float]) -> float:
    """Return the root of the sum of the squares of the blocks' lower bounds, rounded down."""
    return math.hypot(*ends) * (1 - ROUNDING_MARGIN)
