"""The only source of released noise: OpenDP's discrete Gaussian on exact integers, from system randomness."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from .errors import ParameterError

# OpenDP saturates silently at 64 bits; at this scale an overflow is 8192 standard deviations away
MAX_SCALE = 2.0**50
# integers of a finer lattice than 2⁻⁴⁰⁰ would no longer convert to floats
MAX_BITS = 400


@dataclass(frozen=True)
class IntegerQuery:
    """An integer-valued query of known squared sensitivity, and the share of the budget it may spend.

    Attributes:
        sensitivity_squared: largest squared change of the integer answer between neighbours, an integer >= 1.
        budget: ρ it may spend at most.
    """

    sensitivity_squared: int
    budget: float

    @cached_property
    def distance(self) -> float:
        """The sensitivity, rounded up to a float: OpenDP's d_in."""
        distance = math.sqrt(self.sensitivity_squared)
        while Fraction(distance) ** 2 < self.sensitivity_squared:
            distance = math.nextafter(distance, math.inf)
        return distance

    @cached_property
    def scale(self) -> float:
        """Standard deviation of the discrete Gaussian: the least, up to rounding, that OpenDP charges within budget."""
        scale = self.distance / math.sqrt(2 * self.budget)
        while 0 < scale <= MAX_SCALE and discrete_gaussian(scale).map(self.distance) > self.budget:
            scale *= 1 + 2.0**-50
        if not scale > 0:
            raise ParameterError(f"noise: rho = {self.budget:.3g} is too large; hint: at most 1e100")
        if not scale <= MAX_SCALE:
            raise ParameterError(
                f"noise: rho = {self.budget:.3g} needs a scale of {scale:.3g} lattice steps, "
                f"more than {MAX_SCALE:.3g}; "
                "hint: a budget this small releases nothing but noise"
            )
        return scale

    @cached_property
    def rho(self) -> float:
        """What OpenDP's privacy map charges for the scale that is really drawn."""
        return discrete_gaussian(self.scale).map(self.distance)

    def draw(self, count: int) -> list[int]:
        """``count`` independent noises. No seed: randomness comes from the operating system through OpenDP."""
        return discrete_gaussian(self.scale)([0] * count)


def discrete_gaussian(scale: float) -> Any:
    """OpenDP's zCDP measurement that adds a discrete Gaussian of standard deviation ``scale`` to 64-bit integers."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    return make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), scale=scale)
