"""From strategies for attributes to an answer for products of their queries, and its check by other means."""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from domains import Products

from ..errors import CertificateError
from ..numerics.rounding import ROUNDING_MARGIN
from ..solvers.design import Protected
from ..solvers.progress import Watch
from ..solvers.tables.orbits import ByType
from ..solvers.tables.products import ProductNoise, paired, product_noise
from ..solvers.tables.strategies import AbstractStrategy, IdentityStrategy
from ..solvers.tables.workload import Workload
from .answer import answer
from .marginal_check import are_weights
from .optimal_noise import OptimalNoise, Status, Verification
from .problem import Problem
from .product_certificate import ProductCertificate
from .product_covariance import ProductCovariance

Array = NDArray[np.float64]

_DAMAGE = AttributeError, IndexError, TypeError, ValueError, ArithmeticError, np.linalg.LinAlgError
_WORTH = 0.01  # of a gap: what a search for strategies with short differences may win, for its seconds
_CLOSED = 1e-9  # what both ends of a closed bracket may be apart by rounding


def product_optimum(problem: Problem, domain: Products, tol: float, watch: Watch) -> OptimalNoise:
    """The best noise that is made of one strategy per attribute, with a bracket on the best of all noises."""
    replaced = problem.protected == "replace"
    workload = Workload.of(domain, total=not replaced)
    found = product_noise(workload, problem.p, replaced=replaced, tol=tol, watch=watch)
    best = _answer(problem, domain, tol, found, watch)
    if replaced and best.gap > _WORTH:
        best = _answer(problem, domain, tol, paired(found, problem.p, tol=tol, watch=watch), watch)
    return best


def _answer(problem: Problem, domain: Products, tol: float, found: ProductNoise, watch: Watch) -> OptimalNoise:
    """Feasible noise from what was found, and both ends."""
    p, replaced = problem.p, problem.protected == "replace"
    protected: Protected = "replace" if replaced else "add-remove"
    workload, tables = found.workload, found.noise
    noise = tables.noise * _moved(workload, 1 / tables.noise, replaced=replaced) * (1 + 8 * ROUNDING_MARGIN)
    variances = ByType(workload.moving, dict(zip(workload.residuals, (noise * workload.units).tolist(), strict=True)))
    strategies: list[AbstractStrategy] = [IdentityStrategy(n) for n in domain.sizes]
    for members, strategy in zip(workload.orbits.classes, workload.strategies, strict=True):
        for i in members:
            strategies[i] = strategy
    covariance = ProductCovariance(domain, tuple(strategies), variances)
    certificate = ProductCertificate(
        domain, p, protected, tables.shares, tables.patterns, tables.pattern_weights, found.cell_weights
    )
    upper = max(domain.weights) * workload.error(noise, p) * (1 + ROUNDING_MARGIN)
    lower = certificate.lower_bound()
    if lower <= upper * (1 + 8 * _CLOSED):
        lower = min(lower, upper)
    unsolved = Status.PRODUCTS if certificate.is_tight else Status.COUPLINGS
    if tables.safe:
        unsolved = Status.PATTERNS
    elif tables.interrupted:
        unsolved = Status.INTERRUPTED
    solved = len({id(s) for s in workload.strategies if not isinstance(s, IdentityStrategy)})
    kinds = f"{len(workload.tables)} types of table, {len(workload.residuals)} of residual"
    return answer(
        problem,
        covariance=covariance,
        center=np.broadcast_to(0.0, domain.dim),
        certificate=certificate,
        upper=upper,
        lower=lower,
        sensitivity_squared=1.0,
        method=f"products of {solved} one-attribute optima over {kinds}" if solved else f"closed form over {kinds}",
        unsolved=unsolved,
        steps=found.rounds,
        trace=watch.trace,
        tol=tol,
    )


def _moved(workload: Workload, shares: Array, *, replaced: bool) -> float:
    """Largest squared change of all measurements, ``shares`` being one over their noise."""
    found = workload.largest_move(shares, replaced=replaced)
    if replaced:  # differences of a total and sums like it
        found += 2 * ROUNDING_MARGIN * float(workload.residual_counts @ shares)
    return found


def check_products(noise: OptimalNoise) -> Verification:
    """The bracket of a product covariance, attribute by attribute, from the stored integers and weights."""
    try:
        return _checked(noise)
    except CertificateError:
        raise
    except _DAMAGE as error:
        raise CertificateError(
            f"verify: the stored numbers are not what they should be ({type(error).__name__})"
        ) from None


def _checked(noise: OptimalNoise) -> Verification:
    domain, witness, covariance = noise.domain, noise.certificate, noise.covariance
    replaced = noise.neighbors == "replace"
    if (
        not isinstance(domain, Products)
        or not isinstance(covariance, ProductCovariance)
        or covariance.domain is not domain
        or noise.shifted
        or noise.neighbors not in ("replace", "add-remove")
    ):
        raise CertificateError("verify: the covariance belongs to another domain or relation")
    workload = Workload.of(domain, total=not replaced)
    if not isinstance(witness, ProductCertificate) or not _is_measure(noise, witness, workload):
        raise CertificateError("verify: the certificate is not a measure on the records of these products")
    strategies = tuple(covariance.strategies[members[0]] for members in workload.orbits.classes)
    alike = zip(workload.orbits.classes, strategies, strict=True)
    variances = covariance.variances
    residuals = [T for kind in workload.residuals for T in workload.moving.members(kind)]
    if (
        tuple(s.size for s in covariance.strategies) != domain.sizes
        or any(covariance.strategies[i] != strategy for members, strategy in alike for i in members)
        or set(variances) != set(residuals)
        or not all(0 < variances[T] < math.inf for T in residuals)
    ):
        raise CertificateError("verify: expected a positive variance for every residual of the tables")
    workload = workload.measured_by(strategies)
    units = dict(zip(workload.residuals, workload.units.tolist(), strict=True))
    shares: dict = {}
    total = Fraction(0)
    for kind in workload.residuals:
        members = [Fraction(units[kind]) / Fraction(variances[T]) for T in workload.moving.members(kind)]
        total += sum(members)
        shares[kind] = max(members)
    enclosure = float(total)
    if replaced and residuals:
        enclosure = _moved(workload, np.array([float(shares[kind]) for kind in workload.residuals]), replaced=True)
    return Verification(covariance.error(noise.p), witness.lower_bound(), enclosure, enclosure)


def _is_measure(noise: OptimalNoise, witness: ProductCertificate, workload: Workload) -> bool:
    """Whether the certificate is about this noise, and all its weights are distributions."""
    sizes = [strategy.size for strategy in workload.strategies]
    return bool(
        witness.domain is noise.domain
        and witness.p == noise.p
        and witness.protected == noise.neighbors
        and are_weights(witness, workload)
        and [cells.shape for cells in witness.cell_weights] == [(n,) for n in sizes]
        and all((w >= 0).all() and np.isfinite(w).all() and w.sum() > 0 for w in witness.cell_weights)
    )
