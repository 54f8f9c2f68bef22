"""The (ε, δ) that ρ-zCDP implies by OpenDP's conversion, and the ρ for a given (ε, δ)."""

import math
from functools import lru_cache

from .sampler import discrete_gaussian


def rho_through_zcdp(epsilon: float, delta: float) -> float:
    """Return the largest ρ found such that ρ-zCDP implies (ε, δ)-privacy; 0 if none is found.

    OpenDP's conversion from zCDP gives the ε.
    """
    log = -math.log(delta)
    # start from a ρ that is valid by Bun & Steinke (2016), Proposition 1.3
    low = (epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))) ** 2 * (1 - 1e-9)
    if not (low > 0 and epsilon_of_zcdp(low, delta) <= epsilon):
        return 0.0
    high = 2 * low
    while epsilon_of_zcdp(high, delta) <= epsilon:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if epsilon_of_zcdp(middle, delta) <= epsilon else (low, middle)
    return low


@lru_cache(1024)  # a call takes milliseconds, and all releases of a mechanism repeat it
def epsilon_of_zcdp(rho: float, delta: float) -> float:
    """Return an ε such that ρ-zCDP implies (ε, δ)-privacy, by OpenDP's conversion."""
    unit = discrete_gaussian(1.0)  # checks OpenDP, once per process

    from opendp.combinators import make_zCDP_to_approxDP
    from opendp.mod import OpenDPException

    # map(d) of the unit Gaussian is d²/2; d is made slightly larger: d²/2 is not rounded below ρ
    distance = math.sqrt(2 * rho) * (1 + 1e-15)
    try:
        return make_zCDP_to_approxDP(unit).map(distance).epsilon(delta)
    # OpenDP overflows for ρ in the thousands; Bun & Steinke (2016), Proposition 1.3, always holds
    except OpenDPException:
        return rho + 2 * math.sqrt(rho * -math.log(delta))
