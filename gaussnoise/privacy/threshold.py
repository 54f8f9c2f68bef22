"""Keys that are not listed in advance: noisy counts above a threshold, by OpenDP."""

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
_WIDEST = 40  # OpenDP's tail probabilities are positive within this many standard deviations
_AT_ONCE = 2**16  # number of keys in one call of OpenDP


@dataclass(frozen=True)
class Change:
    """The largest change of the counts of keys between neighbouring data sets.

    Attributes:
        keys: number of counts that change, an integer >= 1.
        length_squared: squared ℓ2 length of the change of all counts, in rows; an integer >= 1.
        most: the largest change of one count, in rows; an integer >= 1.
    """

    keys: int
    length_squared: int
    most: int

    @classmethod
    def added(cls, rows: int) -> "Change":
        """Return the change if one person with at most k = ``rows`` rows is added or removed.

        All counts change in one direction, by integers that add up to at most k. So at most k
        counts change, each by at most k, and the ℓ2 length is at most k, with equality if all rows
        have the same key.
        """
        return cls(rows, rows**2, rows)

    @classmethod
    def replaced(cls, rows: int) -> "Change":
        """Return the change if one person replaces another, each with at most k = ``rows`` rows.

        For a key that both persons have, the changes cancel. If they share no key, their squared
        lengths, of at most k² each, add up.
        """
        return cls(2 * rows, 2 * rows**2, rows)


@dataclass(frozen=True)
class ThresholdQuery(PickledByArguments):
    """Counts of keys that are not listed in advance, and the budget for showing frequent keys.

    Formal guarantees:
        * δ-approximate ρ-zCDP (Bun & Steinke 2016, section 8): except with probability δ, no key is
          shown that only one of two neighbours has (Rogers 2023, the argument behind OpenDP's
          threshold). The rest of the result is computed from the counts of common keys plus
          independent discrete Gaussians: those below the threshold, which is the same for all keys,
          are left out.
        * If these Gaussians are (ε, δ')-private, the result is (ε, δ' + δ)-differentially private.
          Proof: let p be the probability that common keys alone give an outcome in S, and q the
          same for the neighbour, so ``p <= min(1, e^ε q + δ')``. Let a and b, at most δ, be the
          probabilities that a key of only the first, or only the second data set is shown. Then
          ``P(S) <= (1 − a) p + a`` and ``Q(S) >= (1 − b) q``. If ``e^ε q <= 1``, then ``P(S) <= e^ε
          q + δ' + a (1 − e^ε q)``, which is at most ``(1 − b) e^ε q + δ' + max(a, b)``; otherwise
          ``(1 − b) e^ε q + b >= 1``.
        * The noise has at least ``MIN_STEPS`` lattice steps per standard deviation.

    Attributes:
        change: the largest change of the counts between neighbours.
        rho: the largest ρ that the noise may cost.
        delta: bound on the probability of showing a key that only one of two neighbours has.
    """

    change: Change
    rho: float
    delta: float

    @cached_property
    def _bits(self) -> int:
        """The number b such that one row is 2^b lattice steps."""
        bits = lattice_bits(self.rho)
        if bits > _MOST_BITS:
            raise ParameterError(
                f"threshold: rho = {self.rho:.3g} needs a lattice too fine for 64-bit integers; "
                "hint: less rho"
            )
        return bits

    @cached_property
    def _distances(self) -> tuple[int, float, int]:
        """OpenDP's d_in: (number of changed keys, ℓ2 length, largest change), in steps."""
        # how many counts change between neighbours, and a length rounded up to a float
        squared = self.change.length_squared << (2 * self._bits)
        return self.change.keys, root_above(squared), self.change.most << self._bits

    @cached_property
    def _scale(self) -> float:
        """The scale of the discrete Gaussian noise on each count, in lattice steps."""
        scale = self._distances[1] / math.sqrt(2 * self.rho) * (1 + 2.0**-40)
        if not scale <= MAX_SCALE:
            raise ParameterError(
                f"threshold: rho = {self.rho:.3g} needs a scale of {scale:.3g} lattice steps, "
                f"expected at most {MAX_SCALE:.3g}; hint: a larger budget, or fewer rows a person"
            )
        return scale

    @cached_property
    def _threshold(self) -> int:
        """The least threshold, in lattice steps, for which ρ and δ are within the budget."""
        low = self._distances[2]
        high = low + math.ceil(_WIDEST * self._scale)
        if not self._allows(high):
            raise ParameterError(
                f"threshold: rho = {self.rho:.3g} and delta = {self.delta:.3g} allow no "
                "threshold; hint: a larger budget, or a public list or range instead of a search"
            )
        # least up to 2⁻²⁰ of the noise's standard deviation
        while high - low > max(1, int(self._scale * 2.0**-20)):
            middle = (low + high) // 2
            low, high = (low, middle) if self._allows(middle) else (middle, high)
        return high

    def _allows(self, threshold: int) -> bool:
        rho, delta = self._charge(threshold)
        return rho <= self.rho and delta <= self.delta

    def _charge(self, threshold: int) -> tuple[float, float]:
        """Return the ρ and δ that OpenDP charges for a threshold that is one step lower."""
        # OpenDP's δ is the tail of a continuous Gaussian (opendp#2922). The drawn one is larger,
        # up to threefold on a coarse lattice, but at most the continuous one from one step lower
        # (Canonne, Kamath & Steinke 2020, Proposition 25).
        rho, delta = _measurement(self._scale, threshold - 1).map(self._distances)
        return float(rho), float(delta)

    @cached_property
    def spent(self) -> tuple[float, float]:
        """The ρ and δ that are charged for the noise and the threshold."""
        return self._charge(self._threshold)

    @property
    def standard_deviation(self) -> float:
        """The standard deviation of the noise on each count, in rows."""
        return math.ldexp(self._scale, -self._bits)

    @property
    def threshold(self) -> float:
        """The least noisy count, in rows, of keys that are shown."""
        return math.ldexp(self._threshold, -self._bits)

    def frequent(self, counts: Mapping[int, int]) -> dict[int, float]:
        """Return the noisy counts, in rows, of all keys whose noisy count reaches the threshold.

        Args:
            counts: the counts of the keys that occur, each at least 1. The caller chooses numbers
                for the keys, which do not affect the draws.
        """
        measurement = _measurement(self._scale, self._threshold)
        # larger than the count of any table; a cap on counts does not increase the change between
        # neighbours
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
    """Return OpenDP's mechanism that adds noise to counts, and shows those above a threshold."""
    discrete_gaussian(1.0)  # checks OpenDP, once per process

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
