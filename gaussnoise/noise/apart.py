"""The best noise for counts and sums of unbounded numbers, and the proof that it is the best.

A row is a category x with numbers v_1, v_2, …. The row adds one to cell x of the counts, and v_j to
cell x of the sums of number j. For given scales T_j, the row may cost ``ρ (1 + Σ_j (v_j/T_j)²)``.
Counts are block 0; sums of number j are block j. Let K_0 be the set of the counts of single rows.
Let K_j be the set of the sums of number j of single rows with v_j = T_j. Let u_j = v_j/T_j. Noise
at unit sensitivity must cover the points ``(k_0, u_1 k_1, …) / √(1 + |u|²)``, for all k_0 ∈ K_0,
k_j ∈ K_j and u_j >= 0.

Upper bound: let noise be independent between blocks, with a covariance M_j that covers ±K_j in
block j. This noise covers all points, since
``(k_0' M_0⁺ k_0 + Σ_j u_j² k_j' M_j⁺ k_j) / (1 + |u|²) <= 1``.

Lower bound: for u = 0, the points are those of K_0 in block 0, and zero in all other blocks. For
u_j → ∞, the points tend to those of K_j in block j. So noise that covers all points covers ±K_j in
block j, and its total variance there is at least that of the best noise for ±K_j. Total variances
of blocks add up. So the least error at p = 2 is the root of the sum of the blocks' squared optima.
Other p are refused, since there the error of a table is the root mean square of its counts and sums
together.

Let a person have at most k rows, and let V_j be the sum of number j over these rows. The person's
budget grows with V_j. By the triangle inequality, counts are at most k times as long as a point of
K_0, and sums are at most V_j/T_j times as long as a point of K_j. Both limits are reached by k rows
in one cell, if one of these rows has the whole sum. So the points are
``(k k_0, u_1 k_1, …) / √(1 + |u|²)``: k times those of rows with the scales T_j/k. The best noise
is k times as large as the best noise for these rows.

Let f_j be the lower bound of block j. A probability measure proves the lower bound of all blocks
together. Block j has the probability ``f_j² / Σ f²``. Within block j, the measure is the one that
proves f_j. The trace of the root of the second moment is ``√(Σ f²)``.
"""

import numpy as np

from domains.domain import AbstractDomain
from domains.tables.tables import AbstractTables

from ..errors import ParameterError
from ..numerics.rounding import ROUNDING_MARGIN
from ..solvers.progress import Watch
from ..solvers.tables.residuals import Subset
from ..solvers.tables.strategies import AbstractStrategy, IdentityStrategy, SolvedStrategy
from .answer import answer
from .certificates.apart import ApartCertificate, blocks_of, together_below
from .optimal_noise import OptimalNoise, Status
from .problem import Problem
from .product_covariance import ProductCovariance
from .proportion import AddInProportion
from .table_covariance import covariance_of_tables
from .tables import tables_optimum

# The strategy for a number's two cells, of which the last has the sum: it measures the sum alone.
SUM = SolvedStrategy(np.array([[0, 1]]))


def apart_optimum(
    function: str,
    problem: Problem,
    domain: AbstractDomain,
    relation: AddInProportion,
    tol: float,
    watch: Watch,
) -> OptimalNoise:
    """Return the best noise at p = 2 for tables in which a row's budget grows with its numbers."""
    relation.check(function, domain)
    if not isinstance(domain, AbstractTables):
        raise TypeError(type(domain).__name__)
    if problem.p != 2:
        raise ParameterError(
            f"{function}: expected p = 2 and no targets where budgets grow with numbers, got "
            f"p = {problem.p:g}"
        )
    blocks = blocks_of(domain, relation)
    answers = [
        tables_optimum(Problem(block.domain, 2.0, "add-remove"), "add-remove", tol, watch)
        for block in blocks
    ]
    strategies: list[AbstractStrategy] = [IdentityStrategy(n) for n in domain.sizes]
    chosen: dict[int, AbstractStrategy] = dict.fromkeys(relation.numbers, SUM)
    variances: dict[Subset, float] = {}
    for block, noise in zip(blocks, answers, strict=True):
        covariance = covariance_of_tables(noise.covariance)
        for i in {i for S in block.domain.subsets for i in S}:
            own = covariance.strategies[i]
            if chosen.setdefault(i, own) != own:
                raise ParameterError(
                    f"{function}: expected one way to measure each attribute, in counts and in "
                    "sums that budgets grow with; hint: ask for cells, which answer all queries"
                )
        for T, variance in covariance.variances.items():
            variances[block.own(T)] = variance * block.scale**2 * (1 + 8 * ROUNDING_MARGIN)
    for i, own in chosen.items():
        strategies[i] = own
    whole = ProductCovariance(domain, tuple(strategies), variances)
    certificate = ApartCertificate(blocks, tuple(noise.certificate for noise in answers))
    lower = together_below([noise.gamma_lower for noise in answers])
    unsolved = [noise.status for noise in answers if noise.status is not Status.SOLVED]
    return answer(
        problem,
        covariance=whole,
        center=np.broadcast_to(0.0, domain.dim),
        certificate=certificate,
        upper=whole.error(2) * (1 + ROUNDING_MARGIN),
        lower=lower,
        sensitivity_squared=1.0,
        method="counts and sums apart: " + "; ".join(noise.method for noise in answers),
        unsolved=unsolved[0] if unsolved else Status.ROUNDING,
        steps=sum(noise.steps for noise in answers),
        trace=(),
        tol=tol,
    )
