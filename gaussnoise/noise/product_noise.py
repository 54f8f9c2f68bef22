"""From strategies for attributes to an answer for products of their queries, and its check by other
means.
"""

import numpy as np
from numpy.typing import NDArray

from domains import Products

from ..numerics.rounding import ROUNDING_MARGIN
from ..solvers.design import Protected
from ..solvers.progress import Watch
from ..solvers.tables.orbits import ByType
from ..solvers.tables.products import ProductNoise, paired, product_noise
from ..solvers.tables.strategies import AbstractStrategy, IdentityStrategy
from ..solvers.tables.workload import Workload
from .answer import answer
from .certificates.products import ProductCertificate
from .optimal_noise import OptimalNoise, Status
from .problem import Problem
from .product_covariance import ProductCovariance
from .sensitivity import largest_move

Array = NDArray[np.float64]

_WORTH = (
    0.01  # of a gap: what a search for strategies with short differences may win, for its seconds
)
_CLOSED = 1e-9  # what both ends of a closed bracket may be apart by rounding


def product_optimum(
    problem: Problem, domain: Products, protected: Protected, tol: float, watch: Watch
) -> OptimalNoise:
    """The best noise that is made of one strategy per attribute, with a bracket on the best of all
    noises.
    """
    replaced = protected == "replace"
    workload = Workload.of(domain, total=not replaced)
    optimum = product_noise(workload, problem.p, replaced=replaced, tol=tol, watch=watch)
    best = _answer(problem, domain, protected, tol, optimum, watch)
    if replaced and best.gap > _WORTH:
        best = _answer(
            problem, domain, protected, tol, paired(optimum, problem.p, tol=tol, watch=watch), watch
        )
    return best


def _answer(
    problem: Problem,
    domain: Products,
    protected: Protected,
    tol: float,
    found: ProductNoise,
    watch: Watch,
) -> OptimalNoise:
    """Feasible noise from what was found, and both ends."""
    p, replaced = problem.p, protected == "replace"
    workload, tables = found.workload, found.noise
    noise = (
        tables.noise
        * largest_move(workload, 1 / tables.noise, replaced=replaced)
        * (1 + 8 * ROUNDING_MARGIN)
    )
    variances = ByType(
        workload.moving,
        dict(zip(workload.residuals, (noise * workload.units).tolist(), strict=True)),
    )
    strategies: list[AbstractStrategy] = [IdentityStrategy(n) for n in domain.sizes]
    for members, strategy in zip(workload.orbits.classes, workload.strategies, strict=True):
        for i in members:
            strategies[i] = strategy
    covariance = ProductCovariance(domain, tuple(strategies), variances)
    certificate = ProductCertificate(
        domain,
        p,
        protected,
        tables.shares,
        tables.patterns,
        tables.pattern_weights,
        found.cell_weights,
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
        method=f"products of {solved} one-attribute optima over {kinds}"
        if solved
        else f"closed form over {kinds}",
        unsolved=unsolved,
        steps=found.rounds,
        trace=watch.trace,
        tol=tol,
    )
