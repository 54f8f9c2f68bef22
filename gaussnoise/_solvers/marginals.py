"""Closed form for marginals at p = 2: symmetry diagonalises the problem over attribute subsets."""

import math

from domains import Marginals

from .._certificate import ROUNDING_MARGIN, residual_weights
from .._residuals import Subset, rank


def residual_variances(domain: Marginals, *, signed: bool) -> dict[Subset, float]:
    """Variance ``σ_T² = F / (N_T √β_T)`` of the zero-sum noise of every T, at unit sensitivity.

    ``signed`` protects sums (K ∪ −K, every T); otherwise the shifted set K − v (nonempty T). F = Σ r_T √β_T.
    """
    # weights of 1e±150 square out of range; their common size cancels in σ_T
    size = max(domain.weights)
    unit = Marginals(domain.sizes, domain.subsets, [w / size for w in domain.weights])
    roots = {T: math.sqrt(beta) for T, beta in residual_weights(unit).items() if T or signed}
    optimum = math.fsum(rank(T, domain.sizes) * root for T, root in roots.items())
    return {T: optimum / (domain.cells(T) * root) * (1 + ROUNDING_MARGIN) for T, root in roots.items()}
