r"""The least variances of unbiased estimates at two neighbours whose means are one apart.

Let P and Q, with densities p and q, be the output distributions of a mechanism on two data sets,
and f an estimate of one coordinate with E_P f − E_Q f = 1. For every 0 < α < 1, by Cauchy's
inequality for (p − q)/(αp + (1 − α)q) and f,

    α Var_P f + (1 − α) Var_Q f  >=  1/T_α − α(1 − α),      T_α = ∫ (p − q)² / (αp + (1 − α)q),

with equality for some function f of the outcome. T_α is a divergence, so it is largest for the
least private pair. At α = 1, T_α is χ²(Q ‖ P), and the inequality is that of Hammersley, Chapman
and Robins, Var_P f >= 1/χ².
"""

import math
from dataclasses import dataclass

import numpy as np

from domains.floats import Array

from ..errors import NotAvailableError
from ..privacy.divergences import chi_squared_of_epsilon
from ..privacy.guarantee import AbstractPrivacy
from ..privacy.testing import total_variation

_DELTA = 1e-6  # δ of the (ε, δ) guarantee from which other bounds are derived
_LEAST = 1e-200  # smaller χ² and δ are raised to this, so that no result underflows
_MARGIN = 1e-12  # relative margin of every constant, for its rounding
_MOST_OWN = 1e100  # largest error, relative to the spectrum, for which the neighbours get a bound
_SHARES = np.geomspace(1e-30, 0.5, 600)  # values of 1 − α, the weight of the neighbours' variance
_CLIPS = np.geomspace(1.0, 1e9, 60)


def known_chi_squared(privacy: AbstractPrivacy) -> tuple[float, str] | None:
    """Return the largest χ² divergence between outputs on neighbours, and the reason as text.

    If the guarantee itself gives no number, the result is the least number of all guarantees that
    it implies. If none of these gives a number, the result is None.
    """
    own = privacy.chi_squared()
    if own is not None:
        return own
    found = [
        (known[0], f"it implies {weaker}: {known[1]}")
        for weaker in privacy.implies(_DELTA)
        if (known := known_chi_squared(weaker)) is not None
    ]
    return min(found, default=None)


def known_epsilon_delta(privacy: AbstractPrivacy) -> tuple[float, float] | None:
    """Return an (ε, δ) that the guarantee implies, or None if none is known.

    By default it is (0, total variation between outputs on neighbours).
    """
    own = privacy.epsilon_delta()
    if own is not None:
        return own
    try:
        distance = total_variation(privacy)
    except NotAvailableError:
        return None
    return 0.0, min(distance * (1 + _MARGIN), 1.0)


def chi_squared(privacy: AbstractPrivacy) -> float:
    """Return the largest χ² divergence between outputs on two neighbours; infinite if unbounded.

    Source: Nikolov & Tang (2023), Lemma 39 (pure) and Theorem 43 (ρ-zCDP, at order two); N(μ, 1)
    against N(0, 1) (GDP).

    >>> print(f"{chi_squared(gn.PureDP(1.0)):.6f} {chi_squared(gn.zCDP(0.1)):.6f}")
    1.086161 0.221403
    """
    known = known_chi_squared(privacy)
    return math.inf if known is None else max(known[0], _LEAST) * (1 + _MARGIN)


@dataclass(frozen=True)
class TradeOff:
    r"""The trade-off between the variances at two (ε, δ)-indistinguishable neighbours.

    Var_P and Var_Q are the variances of an estimate at two neighbours whose means are one apart.
    The worst pair of output distributions has four outcomes (Kairouz, Oh & Viswanath 2015). For it,
    with χ² = 4 sinh²(ε/2) and 0 <= α <= 1,

        α Var_P + (1 − α) Var_Q  >=  κ(α) = (1 − δ) α(1 − α) / (δ + α(1 − α) χ²).
    """

    # Equality is possible. In several dimensions, let λ be a measure on the differences s_j between
    # the means of X and of its neighbours X_j, C = Σ λ_j s_j s_j', and W = diag(w) coordinate
    # weights. Let (W^{1/2} C W^{1/2})^{1/2} have eigenvalues σ, and choose 0 <= u <= 1 for each
    # eigenvector. Let T = W^{1/2} U W^{1/2}, where U has the same eigenvectors and the eigenvalues
    # u/σ. Apply the inequality to the directions θ_j = T s_j, and sum over j:
    # α ‖sd(Σ_X)‖_p² + (1 − α) Σu² · max_j ‖sd(Σ_{X_j})‖_p² >= κ(α) (Σ u σ)²
    # since tr(Σ_X T C T) <= tr(Σ_X W) <= ‖sd(Σ_X)‖_p² and θ'Σ_jθ <= ‖W^{-1/2} θ‖² tr(Σ_j W). With u
    # = 1 the right side is κ(α) γ². This implies Nikolov & Tang (2023), Theorems 4, 51 and 52,
    # which have the least σ in place of γ/√rank.

    epsilon: float
    delta: float

    @staticmethod
    def of(privacy: AbstractPrivacy) -> "TradeOff":
        """Return the trade-off of errors at two neighbours, for an (ε, δ) that ``privacy`` implies.

        If none is known, it is the trade-off for (0, 1), which every mechanism satisfies.
        """
        return TradeOff(*(known_epsilon_delta(privacy) or (0.0, 1.0)))

    def kappa(self, other: Array | float) -> Array:
        """Return κ(α), a lower bound on α Var_P + (1 − α) Var_Q, for ``other`` = 1 − α.

        Var_P and Var_Q are the variances of an estimate at two neighbours whose means are one
        apart.

        >>> # the larger variance is at least the average
        >>> print(f"{TradeOff(1.0, 1e-6).kappa(0.5):.10f}")
        0.9206692830
        """
        beta = np.asarray((1 - other) * other)
        return (
            (1 - self.delta)
            * beta
            / (max(self.delta, _LEAST) + beta * chi_squared_of_epsilon(self.epsilon))
            * (1 - _MARGIN)
        )

    def worst(self, spectrum: Array, counts: Array) -> float:
        """Return a lower bound on the largest ‖sd‖_p at a data set or at one of its neighbours.

        ``spectrum`` and ``counts`` are the eigenvalues σ of the proof, and the multiplicity of
        each.
        """
        if not len(spectrum) or not spectrum.max() > 0:
            return 0.0
        sums, squares = _clipped(spectrum, counts)
        values = (
            self.kappa(_SHARES)[:, None]
            * sums**2
            / ((1 - _SHARES)[:, None] + _SHARES[:, None] * squares)
        )
        return float(spectrum.max()) * math.sqrt(values.max())

    def neighbor(self, error: float, spectrum: Array, counts: Array) -> float:
        """Return a lower bound on the largest ‖sd‖_p at the neighbours of a data set.

        At the data set, ‖sd‖_p is ``error``. ``spectrum`` and ``counts`` are the eigenvalues σ of
        the proof, and the multiplicity of each.
        """
        if not len(spectrum) or not spectrum.max() > 0:
            return 0.0
        size = float(spectrum.max())
        own = error / size
        if own > _MOST_OWN:
            return 0.0
        sums, squares = _clipped(spectrum, counts)
        left = self.kappa(_SHARES)[:, None] * sums**2 - (1 - _SHARES)[:, None] * own**2 * (
            1 + _MARGIN
        )
        return size * math.sqrt(max(float((left / (_SHARES[:, None] * squares)).max()), 0.0))


def _clipped(spectrum: Array, counts: Array) -> tuple[Array, Array]:
    """Return ``Σ u s`` and ``Σ u²`` over s = σ / max σ, ``u = min(1, c s)``, for clips c."""
    share = spectrum / spectrum.max()
    u = np.minimum(1.0, _CLIPS[:, None] * share)
    return u @ (counts * share), u**2 @ counts
