"""A bound on the total variation distance between drawn discrete and rounded Gaussians."""

import math

from ..errors import ParameterError
from ..numerics.integers import MOST_SUM

# Every mechanism here has at least this number of lattice steps per standard deviation. A million
# draws are then within 10⁻¹⁵ of the rounded continuous Gaussian, far below any δ in use.
MIN_STEPS = 2.0**28
# For tables: the number of steps aimed at, and the least number after multipliers are rounded. Both
# are well above MIN_STEPS.
TABLE_SCALE, TABLE_STEPS = 2.0**32, 2.0**29
# For listed points and bodies: the exponent of the number of steps aimed at, and the least number
# once the sensitivity is known. Rounding a strategy to POINT_BITS biases a sum of n records by at
# most n √r 2⁻⁴⁹ standard deviations.
POINT_BITS, POINT_STEPS = 48, 2.0**40
MOST_STEPS = 2.0**53  # largest number of steps aimed at: half of what the sampler can draw


def lattice_bits(rho: float, grid: int = 0) -> int:
    """Return how many times the step of the lattice of counts must still be halved for ρ.

    It was already halved ``grid`` times. One row is then at least ``2 MIN_STEPS √ρ`` lattice steps,
    and the noise on it has a standard deviation of at least MIN_STEPS steps.
    """
    return max(math.ceil(math.log2(2 * MIN_STEPS * math.sqrt(rho))) - grid, 0)


def lattice_distance(draws: int, steps: float) -> float:
    r"""Return ``√m / (25 s²)``, a bound on the distance of drawn noise from rounded noise.

    The distance is the total variation distance between m discrete Gaussians and m normals rounded
    to integers. Both have scale s, the number of lattice steps per standard deviation, and the same
    integer centres. The centres do not matter, since a shift by integers commutes with rounding.

    Proof. Take one coordinate with centre 0. Let f be the density of N(0, s²), and Z = Σ f(k) over
    all integers k. The discrete Gaussian is P(k) = f(k)/Z, and the rounded normal is Q(k) = ∫
    f(k+u) du over |u| <= 1/2. By symmetry, ``Q(k)/f(k) = ∫ e^{−u²/2s²} cosh(ku/s²) du``. By
    Jensen's inequality, ``log cosh y >= y²/2 − y⁴/12``, ∫u² = 1/12 and ∫u⁴ = 1/80,

        −log Q(k)/f(k) <= 1/(24 s²) − k²/(24 s⁴) + k⁴/(960 s⁸).

    Let q = e^{−2π²s²}, and let sums be over j >= 1. Poisson summation gives ``Z = 1 + 2Σ q^{j²} >=
    1`` and, under P, ``E k² >= s² − 8π²s⁴ Σ j² q^{j²}`` and ``E k⁴ <= s⁴ (3 + 2Σ ((2πsj)⁴ + 3)
    q^{j²})``. Hence, for s >= 1, where q <= 2.7e-9 and s⁴q decreases,

        KL(P ‖ Q) <= E[−log Q/f] <= 1/(320 s⁴) + (π²/3) Σ j² q^{j²} + 1/(480 s⁴) Σ ((2πsj)⁴ + 3)
        q^{j²} < 1/(319 s⁴).

    Divergences of independent coordinates add up, and Pinsker's inequality bounds the total
    variation distance of all by ``√(m/638)/s² < √m/(25 s²)``. The difference of 1 % covers rounding
    in this function. (For one coordinate the distance is asymptotically φ(1)/(12 s²) ≈ 0.0202/s².)

    Args:
        draws: m, integer >= 0.
        steps: s, in [1, 2⁶²].

    Returns:
        The bound.

    Raises:
        ParameterError: out of range.

    >>> from gaussnoise.privacy.lattice_bound import MIN_STEPS, lattice_distance
    >>> f"{lattice_distance(10**6, MIN_STEPS):.1e}"
    '5.6e-16'
    """
    if not (isinstance(draws, int) and draws >= 0):
        raise ParameterError(f"lattice: expected an integer number of draws >= 0, got {draws!r}")
    if not 1 <= steps <= MOST_SUM:
        raise ParameterError(
            f"lattice: expected 1 <= steps per standard deviation <= 2^62, got {steps!r}"
        )
    return math.sqrt(draws) / (25 * steps * steps)
