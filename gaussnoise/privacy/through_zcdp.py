"""(ε, δ) by way of ρ-zCDP: OpenDP's conversion, and the ρ that it allows."""

import math
from functools import lru_cache

from .sampler import discrete_gaussian


def rho_through_zcdp(epsilon: float, delta: float) -> float:
    """Largest ρ found, on a bisection's private side, that implies (ε, δ) by OpenDP; or 0."""
    log = -math.log(delta)
    # Bun & Steinke (2016), Proposition 1.3: a valid ρ to start from
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


@lru_cache(1024)  # milliseconds a time, and every release of a mechanism asks the same
def epsilon_of_zcdp(rho: float, delta: float) -> float:
    """OpenDP's conversion of ρ-zCDP to (ε, δ)."""
    unit = discrete_gaussian(1.0)  # checks OpenDP, once

    from opendp.combinators import make_zCDP_to_approxDP
    from opendp.mod import OpenDPException

    # map(d) of the unit Gaussian is d²/2; a hair more, so that rounding cannot land below rho
    distance = math.sqrt(2 * rho) * (1 + 1e-15)
    try:
        return make_zCDP_to_approxDP(unit).map(distance).epsilon(delta)
    except (
        OpenDPException
    ):  # overflows at ρ in the thousands; Bun & Steinke (2016), Proposition 1.3, always holds
        return rho + 2 * math.sqrt(rho * -math.log(delta))
