"""Noise of pure privacy: OpenDP's discrete Laplace on exact integers, and its noisy maximum."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

from ..errors import ParameterError
from ..files.pickling import PickledByArguments
from .sampler import MAX_SCALE, discrete_gaussian

_STEP = 1 + 2.0**-50  # by which a scale is raised until OpenDP charges no more than allowed


@dataclass(frozen=True)
class LaplaceQuery(PickledByArguments):
    """An integer-valued query of known ℓ1 sensitivity, and the ε it may spend.

    Attributes:
        sensitivity: largest change between neighbours, summed over coordinates; an integer >= 1.
        budget: ε it may spend at most.
    """

    sensitivity: int
    budget: float

    @cached_property
    def scale(self) -> float:
        """Scale of the discrete Laplace: the least, up to rounding, that the budget pays for."""
        return _least_scale(
            self.sensitivity / self.budget, self.budget, lambda s: _laplace(s).map(self.sensitivity)
        )

    @cached_property
    def epsilon(self) -> float:
        """What OpenDP's privacy map charges for the scale that is really drawn."""
        return float(_laplace(self.scale).map(self.sensitivity))

    @property
    def standard_deviation(self) -> float:
        """Of each noise: ``√(2q) / (1 − q)``, q = e^{−1/scale}: √2 scale on a fine lattice."""
        q = math.exp(-1 / self.scale)
        return math.sqrt(2 * q) / -math.expm1(-1 / self.scale)

    def draw(self, count: int) -> list[int]:
        """``count`` independent noises. No seed: OpenDP takes the operating system's randomness."""
        return _laplace(self.scale)([0] * count)


@dataclass(frozen=True)
class NoisyMaximum(PickledByArguments):
    """The index of the largest of some integer scores, up to noise (McKenna & Sheldon 2020, permute
    and flip).

    Attributes:
        sensitivity: largest change of any score between neighbours, up or down; an integer >= 1.
        budget: ε it may spend at most.
    """

    sensitivity: int
    budget: float

    @cached_property
    def scale(self) -> float:
        """Scale of the exponential noise on each score."""
        return _least_scale(
            2 * self.sensitivity / self.budget,
            self.budget,
            lambda s: _maximum(s).map(self.sensitivity),
        )

    @cached_property
    def epsilon(self) -> float:
        """What OpenDP's privacy map charges."""
        return float(_maximum(self.scale).map(self.sensitivity))

    def shortfall(self, count: int, beta: float) -> float:
        """By how much the chosen one of ``count`` scores may fall short of the largest, but for a
        chance of ``beta``.

        With exponential noise: ``scale · log(count / β)``, which permute and flip never exceeds in
        distribution.
        """
        return self.scale * math.log(max(count, 2) / beta)

    def choose(self, scores: list[int]) -> int:
        """The index of one score."""
        return int(_maximum(self.scale)(scores))


def frequent(counts: Mapping[int, int], *, steps: int, rho: float, delta: float) -> dict[int, int]:
    """Which keys are frequent, when nobody can list all keys: noisy counts, in 1/steps, of those
    above a threshold.

    Formal guarantees:
        * ρ-zCDP but for an event of probability δ, when neighbours differ by one record *replaced*:
          two counts change, each by one (Rogers 2023, on whose argument OpenDP's threshold rests).
        * The noise is a discrete Gaussian of at least ``steps`` lattice steps, on the counts times
          ``steps``.

    Args:
        counts: of the keys that occur, each at least 1.
        steps: lattice steps per record, a positive integer.
        rho: what it may spend.
        delta: chance that a key which only one data set has is shown.

    Returns:
        Noisy counts times ``steps``.
    """
    noisy = _threshold(steps, rho, delta)({key: count * steps for key, count in counts.items()})
    return {int(key): int(value) for key, value in noisy.items()}


def frequent_scale(steps: int, rho: float) -> float:
    """Standard deviation of :func:`frequent`'s noise, in records."""
    return _gaussian_scale(steps, rho) / steps


def frequent_threshold(steps: int, rho: float, delta: float) -> float:
    """The count, in records, below which :func:`frequent` shows no key."""
    return _threshold_of(steps, rho, delta) / steps


def _gaussian_scale(steps: int, rho: float) -> float:
    """For two counts that change by ``steps`` each."""
    return math.sqrt(2) * steps / math.sqrt(2 * rho) * (1 + 2.0**-40)


def _threshold_of(steps: int, rho: float, delta: float) -> int:
    """The least threshold, up to 2⁻²⁰ lattice steps, that OpenDP charges at most (ρ, δ) for."""
    scale, low = _gaussian_scale(steps, rho), steps
    high = steps + math.ceil(40 * scale)
    while high - low > max(1, int(scale * 2.0**-20)):
        middle = (low + high) // 2
        charged = _make_threshold(scale, middle).map(_replaced(steps))
        low, high = (low, middle) if charged[0] <= rho and charged[1] <= delta else (middle, high)
    return high


def _threshold(steps: int, rho: float, delta: float) -> Any:
    scale, threshold = _gaussian_scale(steps, rho), _threshold_of(steps, rho, delta)
    made = _make_threshold(scale, threshold)
    charged = made.map(_replaced(steps))
    if not (charged[0] <= rho and charged[1] <= delta):
        raise ParameterError(
            f"coarse_location: rho = {rho:.3g} and delta = {delta:.3g} allow no threshold; hint: a "
            "larger budget, or a public range for the location"
        )
    return made


def _replaced(steps: int) -> tuple[int, float, int]:
    """How far replacing a record moves counts: how many, in ℓ2 norm (rounded up), and most."""
    return 2, math.nextafter(math.sqrt(2) * steps, math.inf), steps


def _make_threshold(scale: float, threshold: int) -> Any:
    from opendp.domains import atom_domain, map_domain
    from opendp.measurements import make_gaussian_threshold
    from opendp.metrics import absolute_distance, l02inf_distance

    discrete_gaussian(1.0)  # checks OpenDP, once
    integers = atom_domain(T="i64")
    return make_gaussian_threshold(
        map_domain(integers, integers),
        l02inf_distance(absolute_distance(T="f64")),
        scale=scale,
        threshold=threshold,
    )


@lru_cache(maxsize=8)
def _laplace(scale: float) -> Any:
    """OpenDP's measurement that adds discrete Laplace noise to 64-bit integers."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance

    discrete_gaussian(1.0)  # checks OpenDP, once
    return make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), scale=scale)


@lru_cache(maxsize=8)
def _maximum(scale: float) -> Any:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_max
    from opendp.measures import max_divergence
    from opendp.metrics import linf_distance

    discrete_gaussian(1.0)  # checks OpenDP, once
    return make_noisy_max(
        vector_domain(atom_domain(T="i64")), linf_distance(T="i64"), max_divergence(), scale=scale
    )


def _least_scale(first: float, budget: float, charge: Any) -> float:
    scale = first
    if not 0 < scale <= MAX_SCALE:
        raise ParameterError(
            f"noise: epsilon = {budget:.3g} needs a scale of {scale:.3g} lattice steps, expected "
            f"at most {MAX_SCALE:.3g}; hint: a budget this small releases nothing but noise"
        )
    while Fraction(charge(scale)) > Fraction(budget):
        scale *= _STEP
    return scale
