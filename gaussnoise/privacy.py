"""Privacy definitions, each reduced to the one number a Gaussian needs: ρ, half its squared whitened sensitivity."""

import abc
import math
from dataclasses import dataclass
from typing import final

from ._sampler import discrete_gaussian
from .errors import ParameterError


class AbstractPrivacy(abc.ABC):
    """A promise about neighbouring data sets."""

    @abc.abstractmethod
    def to_zcdp(self) -> "zCDP":
        """The zCDP to spend: a Gaussian Σ keeps ρ-zCDP iff ``Δ' Σ⁺ Δ <= 2ρ`` for all differences Δ."""

    @abc.abstractmethod
    def as_dict(self) -> dict[str, object]:
        """The promise, and how ρ follows from it, for a release's record."""


@final
@dataclass(frozen=True)
class zCDP(AbstractPrivacy):  # noqa: N801 (the field writes it so)
    """ρ-zero-concentrated differential privacy (Bun & Steinke 2016).

    Args:
        rho: Rényi divergence of order α is at most ρα, for every α > 1; finite, positive.

    Raises:
        ParameterError: rho is not positive and finite.

    >>> gn.zCDP(0.5)
    zCDP(rho=0.5)
    """

    rho: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", _number("zCDP", "rho", self.rho))
        if not (math.isfinite(self.rho) and self.rho > 0):
            raise ParameterError(f"zCDP: expected finite rho > 0, got {self.rho!r}; hint: 0.1 is a common choice")

    def epsilon(self, delta: float) -> float:
        """The ε for which this implies (ε, δ)-differential privacy, by OpenDP's conversion.

        >>> round(gn.zCDP(0.1).epsilon(1e-6), 3)
        2.142
        """
        _check_delta("epsilon", delta)
        return _epsilon(self.rho, delta)

    def to_zcdp(self) -> "zCDP":
        return self

    def as_dict(self) -> dict[str, object]:
        return {"definition": "zCDP", "rho": self.rho}


@final
@dataclass(frozen=True)
class ApproxDP(AbstractPrivacy):
    """(ε, δ)-differential privacy, reached through zCDP.

    The noise keeps the largest ρ-zCDP that implies (ε, δ) by OpenDP's conversion; about 7 % more standard deviation
    than the exact Gaussian calibration of Balle & Wang (2018), which is not available yet.

    Args:
        epsilon: finite, positive.
        delta: in (0, 1).

    Raises:
        ParameterError: out of range.

    >>> privacy = gn.ApproxDP(1.0, 1e-6)
    >>> privacy.to_zcdp().epsilon(1e-6) <= 1.0
    True
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _number("ApproxDP", "epsilon", self.epsilon))
        object.__setattr__(self, "delta", _number("ApproxDP", "delta", self.delta))
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise ParameterError(f"ApproxDP: expected finite epsilon > 0, got {self.epsilon!r}")
        _check_delta("ApproxDP", self.delta)

    def to_zcdp(self) -> zCDP:
        """Largest ρ found, on the private side of a bisection, that implies (ε, δ)."""
        log = math.log(1 / self.delta)
        # Bun & Steinke (2016), Proposition 1.3: a valid ρ to start from
        low = (math.sqrt(log + self.epsilon) - math.sqrt(log)) ** 2 * (1 - 1e-9)
        if not (low > 0 and _epsilon(low, self.delta) <= self.epsilon):
            raise ParameterError(f"ApproxDP: epsilon = {self.epsilon!r} is too small to convert; hint: at least 1e-9")
        high = 2 * low
        while _epsilon(high, self.delta) <= self.epsilon:
            low, high = high, 2 * high
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if _epsilon(middle, self.delta) <= self.epsilon else (low, middle)
        return zCDP(low)

    def as_dict(self) -> dict[str, object]:
        return {
            "definition": "approximate DP",
            "epsilon": self.epsilon,
            "delta": self.delta,
            "method": "through zCDP, by OpenDP's conversion",
            "rho": self.to_zcdp().rho,
        }


def _number(function: str, name: str, value: float) -> float:
    """A plain float, whatever kind of number was given."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ParameterError(f"{function}: expected a number {name}, got {value!r}") from None


def _check_delta(function: str, delta: float) -> None:
    if not 0 < delta < 1:
        raise ParameterError(f"{function}: expected 0 < delta < 1, got {delta!r}; hint: well below 1 / records")


def _epsilon(rho: float, delta: float) -> float:
    """OpenDP's conversion of ρ-zCDP to (ε, δ)."""
    from opendp.combinators import make_zCDP_to_approxDP
    from opendp.mod import OpenDPException

    # map(d) of the unit Gaussian is d²/2; a hair more, so that rounding cannot land below rho
    distance = math.sqrt(2 * rho) * (1 + 1e-15)
    try:
        return make_zCDP_to_approxDP(discrete_gaussian(1.0)).map(distance).epsilon(delta)
    except OpenDPException:  # overflows at ρ in the thousands; Bun & Steinke (2016), Proposition 1.3, always holds
        return rho + 2 * math.sqrt(rho * math.log(1 / delta))
