"""Which keys are frequent, when nobody can list them: noisy counts above a threshold, by OpenDP."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any

from ..errors import ParameterError
from ..files.pickling import PickledByArguments
from ..numerics.integers import MOST_SUM, root_above
from .lattice_bound import lattice_bits
from .sampler import MAX_SCALE, discrete_gaussian

_MOST_BITS = 40
_WIDEST = 40  # standard deviations: OpenDP's chances end before
_AT_ONCE = 2**16  # keys that OpenDP is given


@dataclass(frozen=True)
class Change:
    """How far counts of keys move between neighbours, at most.

    Attributes:
        keys: how many counts change, an integer >= 1.
        length_squared: squared ℓ2 length of the change, in rows; an integer >= 1.
        most: by which one count changes, in rows; an integer >= 1.
    """

    keys: int
    length_squared: int
    most: int

    @classmethod
    def added(cls, rows: int) -> "Change":
        """By one person more or less, who has at most so many rows.

        All counts move the same way, by integers that add up to k rows: at most k of them move,
        none by more than k, and the length is at most that sum, which it is where all rows share a
        key.
        """
        return cls(rows, rows**2, rows)

    @classmethod
    def replaced(cls, rows: int) -> "Change":
        """By one person exchanged for another: two persons' rows, of opposite signs.

        Of keys that both have, the difference is less; where they share none, squared lengths of
        at most k² each add up.
        """
        return cls(2 * rows, 2 * rows**2, rows)


@dataclass(frozen=True)
class ThresholdQuery(PickledByArguments):
    """Counts of unknown keys, and what may be spent on showing the frequent ones.

    Formal guarantees:
        * δ-approximate ρ-zCDP (Bun & Steinke 2016, section 8): but for events of probability δ, no
          key is shown that only one of two neighbours has (Rogers 2023, on whose argument OpenDP's
          threshold rests). Noises are independent and one threshold is for all keys, so the rest is
          a discrete Gaussian on the counts of common keys, of which those below are left out.
        * With (ε, δ') in place of ρ-zCDP for these Gaussians, all is (ε, δ' + δ)-differentially
          private. Proof: let p be the probability that common keys alone give an outcome in S, and
          q that of the neighbour, ``p <= min(1, e^ε q + δ')``; a and b, at most δ, the chances that
          a key of its own is shown. Then ``P(S) <= (1 − a) p + a`` and ``Q(S) >= (1 − b) q``. If
          ``e^ε q <= 1``, then ``P(S) <= e^ε q + δ' + a (1 − e^ε q)``, which is at most
          ``(1 − b) e^ε q + δ' + max(a, b)``; else ``(1 − b) e^ε q + b >= 1``.
        * The noise has at least ``MIN_STEPS`` lattice steps per standard deviation.

    Attributes:
        change: of the counts between neighbours.
        rho: ρ it may spend at most.
        delta: chance that any key is shown that only one of two neighbours has.
    """

    change: Change
    rho: float
    delta: float

    @cached_property
    def _bits(self) -> int:
        """Lattice steps in a row, as a power of two."""
        bits = lattice_bits(self.rho)
        if bits > _MOST_BITS:
            raise ParameterError(
                f"threshold: rho = {self.rho:.3g} needs a lattice too fine for 64-bit integers; "
                "hint: less rho"
            )
        return bits

    @cached_property
    def _distances(self) -> tuple[int, float, int]:
        """OpenDP's d_in, in lattice steps: the length rounded up to a float."""
        squared = self.change.length_squared << (2 * self._bits)
        return self.change.keys, root_above(squared), self.change.most << self._bits

    @cached_property
    def _scale(self) -> float:
        """Of the discrete Gaussian, in lattice steps."""
        scale = self._distances[1] / math.sqrt(2 * self.rho) * (1 + 2.0**-40)
        if not scale <= MAX_SCALE:
            raise ParameterError(
                f"threshold: rho = {self.rho:.3g} needs a scale of {scale:.3g} lattice steps, "
                f"expected at most {MAX_SCALE:.3g}; hint: a larger budget, or fewer rows a person"
            )
        return scale

    @cached_property
    def _threshold(self) -> int:
        """The least for which OpenDP charges no more than may be spent, up to 2⁻²⁰ deviations."""
        low = self._distances[2]
        high = low + math.ceil(_WIDEST * self._scale)
        if not self._allows(high):
            raise ParameterError(
                f"threshold: rho = {self.rho:.3g} and delta = {self.delta:.3g} allow none; hint: a "
                "larger budget, or what is looked for given as public knowledge"
            )
        while high - low > max(1, int(self._scale * 2.0**-20)):
            middle = (low + high) // 2
            low, high = (low, middle) if self._allows(middle) else (middle, high)
        return high

    def _allows(self, threshold: int) -> bool:
        rho, delta = self._charge(threshold)
        return rho <= self.rho and delta <= self.delta

    def _charge(self, threshold: int) -> tuple[float, float]:
        """OpenDP's ρ and δ for a threshold one step lower.

        Its δ is the tail of a continuous Gaussian (opendp#2922). That of the discrete one, which
        is drawn, is larger: three times on a coarse lattice. It is no larger than the continuous
        one's from one step lower on (Canonne, Kamath & Steinke 2020, Proposition 25).
        """
        rho, delta = _measurement(self._scale, threshold - 1).map(self._distances)
        return float(rho), float(delta)

    @cached_property
    def spent(self) -> tuple[float, float]:
        """What is charged for what is really drawn, by OpenDP's privacy map: ρ and δ."""
        return self._charge(self._threshold)

    @property
    def standard_deviation(self) -> float:
        """Of the noise on each count, in rows."""
        return math.ldexp(self._scale, -self._bits)

    @property
    def threshold(self) -> float:
        """The noisy count, in rows, below which no key is shown."""
        return math.ldexp(self._threshold, -self._bits)

    def frequent(self, counts: Mapping[int, int]) -> dict[int, float]:
        """Noisy counts, in rows, of the keys for which they are not below the threshold.

        Args:
            counts: of the keys that occur, each at least 1. Keys are numbers by which the caller
                knows them; they play no part in what is drawn.
        """
        measurement = _measurement(self._scale, self._threshold)
        # enough for any table; cutting counts off brings those of neighbours no further apart
        most = (MOST_SUM - 1) >> self._bits
        found: dict[int, float] = {}
        left = iter(counts.items())
        while some := dict(islice(left, _AT_ONCE)):
            steps = {key: min(count, most) << self._bits for key, count in some.items()}
            noisy = measurement(steps).items()
            found |= {int(key): math.ldexp(int(value), -self._bits) for key, value in noisy}
        return found


@lru_cache(maxsize=8)
def _measurement(scale: float, threshold: int) -> Any:
    """OpenDP's: discrete Gaussians on counts, of which those not below the threshold are shown."""
    discrete_gaussian(1.0)  # checks OpenDP, once

    from opendp.domains import atom_domain, map_domain
    from opendp.measurements import make_gaussian_threshold
    from opendp.metrics import absolute_distance, l02inf_distance

    integers = atom_domain(T="i64")
    return make_gaussian_threshold(
        map_domain(integers, integers),
        l02inf_distance(absolute_distance(T="f64")),
        scale=scale,
        threshold=threshold,
    )
