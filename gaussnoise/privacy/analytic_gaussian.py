r"""The exact (ε, δ) of Gaussian noise, by Balle & Wang (2018), Theorem 8.

Gaussian noise with sensitivity Δ (in standard deviations) is (ε, δ)-differentially private iff
``δ(ε, Δ) <= δ``, where

    δ(ε, Δ) = Φ(−a) − e^ε Φ(−b) = φ(a) (R(a) − R(b)),   a = ε/Δ − Δ/2,   b = ε/Δ + Δ/2,

and R = Φ(−·)/φ is Mills' ratio. In the last form no factor overflows and, since ``e^ε φ(b) =
φ(a)``, no large terms cancel.
"""

import math

import scipy

# Relative margin by which the ρ that is found is lowered: 100 times the largest change of ρ by
# rounding in δ(ε, Δ), as measured against 400 digits.
MARGIN = 1e-9
_MOST_EPSILON = 700.0  # e^ε overflows for slightly larger ε
_MOST_DELTA = 0.99  # larger δ are useless, and would need an accurate 1 − δ
_SMALL = 1e-4


def log_delta(epsilon: float, distance: float) -> float:
    """Return ``log δ``, or slightly more, for Gaussian noise of this ``ε >= 0`` and ``Δ > 0``.

    δ is the least δ such that the noise is (ε, δ)-private. ``distance`` Δ is the change of the
    answer in standard deviations.
    """
    a, b = epsilon / distance - distance / 2, epsilon / distance + distance / 2
    if a < -10:
        return 0.0
    if a > 40:  # δ(ε, Δ) <= Φ(−a) is below the least float; return a bound on log Φ(−a)
        return -a * a / 2
    if distance < _SMALL:
        # The difference is the integral of −R' = 1 − xR over [a, b]. It is convex, since 1 − xR = ∫
        # t exp(−xt − t²/2) dt, so that the trapezoidal rule is above the integral.
        difference = distance * ((1 - a * _mills(a)) + (1 - b * _mills(b))) / 2
    else:
        difference = _mills(a) - _mills(b)
    return math.log(difference) - a * a / 2 - math.log(2 * math.pi) / 2


def _mills(x: float) -> float:
    return math.sqrt(math.pi / 2) * float(scipy.special.erfcx(x / math.sqrt(2)))


def largest_rho(epsilon: float, delta: float) -> float:
    """Return the largest ρ of (ε, δ)-private Gaussian noise, minus a margin for rounding; or 0."""
    if not (delta > 0 and epsilon <= _MOST_EPSILON):
        return 0.0
    goal = math.log(min(delta, _MOST_DELTA))
    # Two distances that are private: by Bun & Steinke (2016), Proposition 1.3, with a =
    # √(−2 log δ), and the largest one for ε = 0.
    low = max(
        math.sqrt(2) * epsilon / (math.sqrt(epsilon - goal) + math.sqrt(-goal)),
        math.sqrt(2 * math.pi) * math.exp(goal),
    )
    low *= 1 - MARGIN
    high = 2 * low
    while 0 < low and log_delta(epsilon, high) <= goal:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if log_delta(epsilon, middle) <= goal else (low, middle)
    return low * low / 2 * (1 - MARGIN)


def least_epsilon(rho: float, delta: float, most: float) -> float:
    """Return the least ε in [0, most] for which Gaussian noise of cost ρ is (ε, δ)-private.

    A margin for rounding is included; ``most`` is returned if no smaller ε is found.
    """
    if not (0 < delta < 1 and most <= _MOST_EPSILON):
        return most
    # The margin is smaller than that of largest_rho, so that for the ρ that largest_rho returns for
    # (ε, δ), this function returns at most ε.
    goal, distance = math.log(min(delta, _MOST_DELTA)), math.sqrt(2 * rho) * (1 + MARGIN / 4)
    low, high = 0.0, most
    if log_delta(low, distance) <= goal:
        return low
    if log_delta(high, distance) > goal:
        return most
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if log_delta(middle, distance) <= goal else (middle, high)
    return high
