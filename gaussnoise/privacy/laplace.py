"""Noise for pure privacy: OpenDP's discrete Laplace on exact integers, and its noisy maximum."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

from ..errors import ParameterError
from ..files.pickling import PickledByArguments
from .sampler import MAX_SCALE, discrete_gaussian

# factor by which a scale is raised, repeatedly, until OpenDP charges no more than the budget
_STEP = 1 + 2.0**-50


@dataclass(frozen=True)
class LaplaceQuery(PickledByArguments):
    """An integer-valued query of known ℓ1 sensitivity, and the ε that it may cost.

    Attributes:
        sensitivity: the largest sum of absolute changes of coordinates between neighbours; an
            integer >= 1.
        budget: the largest ε that it may cost.
    """

    sensitivity: int
    budget: float

    @cached_property
    def scale(self) -> float:
        """The least scale of the discrete Laplace noise that the ε in ``budget`` allows.

        OpenDP computes the ε of a scale; the least scale is found up to rounding.
        """
        return _least_scale(
            self.sensitivity / self.budget, self.budget, lambda s: _laplace(s).map(self.sensitivity)
        )

    @cached_property
    def epsilon(self) -> float:
        """The ε that OpenDP charges for noise of this scale; at most ``budget``."""
        return float(_laplace(self.scale).map(self.sensitivity))

    @property
    def standard_deviation(self) -> float:
        """The standard deviation of the noise: ``√(2q) / (1 − q)``, where q = e^{−1/scale}."""
        q = math.exp(-1 / self.scale)
        return math.sqrt(2 * q) / -math.expm1(-1 / self.scale)

    def draw(self, count: int) -> list[int]:
        """Return ``count`` independent noises.

        They come from the operating system's randomness, which cannot be seeded.
        """
        return _laplace(self.scale)([0] * count)


@dataclass(frozen=True)
class NoisyMaximum(PickledByArguments):
    """A query for the index of the largest of some integer scores, answered approximately.

    The mechanism is permute-and-flip (McKenna & Sheldon 2020).

    Attributes:
        sensitivity: largest change of any score between neighbours, up or down; an integer >= 1.
        budget: the largest ε that it may cost.
    """

    sensitivity: int
    budget: float

    @cached_property
    def scale(self) -> float:
        """The scale of the exponential noise on each score: the least that the budget allows."""
        return _least_scale(
            2 * self.sensitivity / self.budget,
            self.budget,
            lambda s: _maximum(s).map(self.sensitivity),
        )

    @cached_property
    def epsilon(self) -> float:
        """The ε that OpenDP charges for choosing one index; at most ``budget``."""
        return float(_maximum(self.scale).map(self.sensitivity))

    def shortfall(self, count: int, beta: float) -> float:
        """Return a bound on (largest score − chosen score), which fails with probability ``beta``.

        The bound is ``scale · log(count / beta)`` for ``count`` scores. It holds if exponential
        noise is added to the scores. The difference of permute-and-flip is stochastically at most
        as large.
        """
        return self.scale * math.log(max(count, 2) / beta)

    def choose(self, scores: list[int]) -> int:
        """Return the index of a random score; larger scores are more probable."""
        return int(_maximum(self.scale)(scores))


@lru_cache(maxsize=8)
def _laplace(scale: float) -> Any:
    """Return OpenDP's mechanism that adds discrete Laplace noise to vectors of 64-bit integers."""
    discrete_gaussian(1.0)  # checks OpenDP, once per process

    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance

    return make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), scale=scale)


@lru_cache(maxsize=8)
def _maximum(scale: float) -> Any:
    discrete_gaussian(1.0)  # checks OpenDP, once per process

    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_max
    from opendp.measures import max_divergence
    from opendp.metrics import linf_distance

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
