"""How far the discrete Gaussian that is drawn lies from a rounded continuous one."""

import math

from ..errors import ParameterError
from ..numerics.integers import MOST_SUM

# Lattice steps per standard deviation that every mechanism here guarantees: a million draws are
# then within 10⁻¹⁵ of the continuous Gaussian's rounding, far below any δ in use.
MIN_STEPS = 2.0**28
# Of tables: aimed at, and left once multipliers are rounded, with room to spare.
TABLE_SCALE, TABLE_STEPS = 2.0**32, 2.0**29
# Of listed points and bodies: aimed at as a power of two, and left once the sensitivity is known.
# Rounding a strategy to the first biases a sum of n records by n √r 2⁻⁴⁹ deviations at most.
POINT_BITS, POINT_STEPS = 48, 2.0**40
MOST_STEPS = 2.0**53  # aimed at: half of what is drawn at most


def lattice_bits(rho: float, grid: int = 0) -> int:
    """How many binary digits beyond ``grid`` a count needs for a budget ρ.

    One row is then ``2 MIN_STEPS √ρ`` lattice steps or more, and noise on it has MIN_STEPS of
    them.
    """
    return max(math.ceil(math.log2(2 * MIN_STEPS * math.sqrt(rho))) - grid, 0)


def lattice_distance(draws: int, steps: float) -> float:
    r"""Upper bound ``√m / (25 s²)`` on a total variation.

    It is between m discrete Gaussians and m normals rounded to integers.

    Both have scale s, the number of lattice steps per standard deviation, and any common integer
    centres: moving by integers commutes with rounding.

    Proof. One coordinate, centre 0; f the density of N(0, s²), Z = Σ f(k), P(k) = f(k)/Z the
    discrete Gaussian and Q(k) = ∫ f(k+u) du over |u| <= 1/2 the rounded normal. By symmetry,
    ``Q(k)/f(k) = ∫ e^{−u²/2s²} cosh(ku/s²) du``; by Jensen's inequality,
    ``log cosh y >= y²/2 − y⁴/12``, ∫u² = 1/12 and ∫u⁴ = 1/80,

        −log Q(k)/f(k) <= 1/(24 s²) − k²/(24 s⁴) + k⁴/(960 s⁸).

    With q = e^{−2π²s²} and sums over j >= 1, Poisson summation gives ``Z = 1 + 2Σ q^{j²} >= 1``
    and, under P, ``E k² >= s² − 8π²s⁴ Σ j² q^{j²}`` and
    ``E k⁴ <= s⁴ (3 + 2Σ ((2πsj)⁴ + 3) q^{j²})``. Hence, for s >= 1, where q <= 2.7e-9 and s⁴q
    decreases,

        KL(P ‖ Q) <= E[−log Q/f] <= 1/(320 s⁴) + (π²/3) Σ j² q^{j²} + 1/(480 s⁴) Σ ((2πsj)⁴ + 3)
        q^{j²} < 1/(319 s⁴).

    Divergences of independent coordinates add up, and Pinsker's inequality bounds the total
    variation of all by ``√(m/638)/s² < √m/(25 s²)``; the 1 % to spare covers rounding here. (One
    coordinate: φ(1)/(12 s²) ≈ 0.0202/s² asymptotically.)

    Args:
        draws: m, integer >= 0.
        steps: s, in [1, 2⁶²].

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
