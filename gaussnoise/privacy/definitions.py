"""Privacy guarantees, each with the ρ of the Gaussian noise that satisfies it.

The drawn noise is a discrete Gaussian on a fine integer lattice. zCDP and KL hold for it exactly.
The other guarantees hold for a continuous Gaussian, and for one rounded to integers: the exact
answers are integers, so rounding the noisy answers is post-processing. The drawn noise is within a
total variation distance η of the rounded noise; :func:`.lattice_bound.lattice_distance` bounds η.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

import scipy

from ..errors import NotAvailableError, ParameterError
from ..numerics.rounding import rounded_down
from ..text import SHOWN_DELTA, no_less
from .analytic_gaussian import MARGIN, largest_rho, least_epsilon
from .divergences import (
    chi_squared_of_epsilon,
    growth_of_approx,
    growth_of_kl,
    power_of_approx,
    power_of_kl,
    power_of_rho,
    variation_of_kl,
)
from .guarantee import AbstractPrivacy
from .lattice_bound import MIN_STEPS, lattice_distance
from .through_zcdp import epsilon_of_zcdp, rho_through_zcdp

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

_MOST_PURE = 700.0  # largest ε for which e^ε is computed
_LARGE_DELTA = 1e-2  # with this δ, a mechanism may publish one record in a hundred
_LEAST_RESAMPLED = 1e-200  # numbers computed from a smaller ε could underflow
_MARGIN = 1e-12  # relative bound on the rounding of a resampled guarantee
_HCR = "Hammersley–Chapman–Robins"
# the conversion from zCDP is tried too if the lattice leaves less than this share of δ
_MOST_OF_DELTA = 0.99


@final
@dataclass(frozen=True)
class zCDP(AbstractPrivacy):  # noqa: N801 (the field writes it so)
    """ρ-zero-concentrated differential privacy (Bun & Steinke 2016).

    Args:
        rho: finite, positive. The Rényi divergence of order α between the outputs on neighbouring
            data sets is at most ρα, for every α > 1.

    Raises:
        ParameterError: rho is not positive and finite.

    >>> gn.zCDP(0.5)
    zCDP(rho=0.5)
    """

    rho: float

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "rho", _positive("zCDP", "rho", self.rho, "0.1 is a common choice")
        )

    def epsilon(self, delta: float) -> float:
        """Return an ε such that ρ-zCDP implies (ε, δ)-differential privacy, by OpenDP's conversion.

        This ε is valid for every ρ-zCDP mechanism. For Gaussian noise,
        :func:`~gaussnoise.privacy.gaussian_epsilon` returns a smaller one.

        >>> round(gn.zCDP(0.1).epsilon(1e-6), 3)
        2.142
        """
        _check_delta("epsilon", delta)
        return epsilon_of_zcdp(self.rho, delta)

    def to_zcdp(self, draws: int = 1, steps: float = MIN_STEPS) -> "zCDP":
        return self

    def to_epsilon(self) -> float:  # Bun & Steinke (2016), Proposition 3.3
        return math.sqrt(2 * self.rho)

    @property
    def words(self) -> str:
        return f"{no_less(self.rho)}-zCDP"

    def budget(self, rho: float, draws: int, steps: float, scope: str = "") -> str:
        epsilon = gaussian_epsilon(rho, SHOWN_DELTA, draws=draws, steps=steps)
        return (
            f"{self.words}; for this noise, ({no_less(epsilon, 4)}, {SHOWN_DELTA:g})-differential "
            "privacy" + (f"; {scope}" if scope else "")
        )

    def as_dict(self, draws: int = 1, steps: float = MIN_STEPS) -> dict[str, object]:
        return {"definition": "zCDP", "rho": self.rho}

    def implies(self, delta: float) -> list[AbstractPrivacy]:
        return [KL(self.rho), ApproxDP(self.epsilon(delta), delta)]

    def power(self, level: float) -> float:
        return power_of_rho(self.rho, level)

    def growth(self, chance: float) -> float:
        return self.rho + 2 * math.sqrt(-self.rho * math.log(chance))

    def variation(self) -> float:
        return variation_of_kl(self.rho)

    def chi_squared(self) -> tuple[float, str]:
        return (
            math.expm1(min(2 * self.rho, 709.0)) if self.rho < 354 else math.inf,
            f"{_HCR} with χ² <= e^{{2ρ}} − 1 (Nikolov & Tang 2023, Theorem 43)",
        )


@final
@dataclass(frozen=True)
class ApproxDP(AbstractPrivacy):
    """(ε, δ)-differential privacy, calibrated exactly (Balle & Wang 2018, Theorem 8).

    The drawn noise is within a total variation distance η of the rounded Gaussian. So if continuous
    noise is ``(ε, δ − (1 + e^ε) η)``-private, the drawn noise is (ε, δ)-private. This correction
    may take most of δ, as for (ε, δ) = (1, 1e-18) or (20, 1e-9). Then ρ is instead the largest for
    which ρ-zCDP implies (ε, δ) by OpenDP's conversion, which is valid for the drawn noise.

    Args:
        epsilon: finite, positive.
        delta: in (0, 1). It should be far below 1 / (number of records), since with a larger δ a
            mechanism may publish whole records. From 0.01 on, :func:`plan` and
            :class:`GaussianMechanism` warn (:class:`PrivacyWarning`).

    Raises:
        ParameterError: out of range.

    >>> privacy = gn.ApproxDP(1.0, 1e-6)
    >>> print(f"{privacy.to_zcdp().rho:.6f}")  # standard deviation 1 / √(2ρ) at sensitivity 1
    0.028014
    >>> privacy.to_zcdp().epsilon(1e-6) > 1  # a calibration through zCDP would give a smaller ρ
    True
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _positive("ApproxDP", "epsilon", self.epsilon))
        object.__setattr__(self, "delta", _number("ApproxDP", "delta", self.delta))
        _check_delta("ApproxDP", self.delta)

    def to_zcdp(self, draws: int = 1, steps: float = MIN_STEPS) -> zCDP:
        return self._calibrated(draws, steps)[0]

    def to_epsilon(self) -> float:
        return self.epsilon

    def failing(self, share: float) -> "tuple[ApproxDP, float]":
        failed = share * self.delta
        return ApproxDP(self.epsilon, self.delta - failed), failed

    @property
    def words(self) -> str:
        return f"({no_less(self.epsilon)}, {no_less(self.delta)})-differential privacy"

    def concern(self) -> str:
        if self.delta < _LARGE_DELTA:
            return ""
        swapped = f"ApproxDP(epsilon={self.delta!r}, delta={self.epsilon!r})"
        return (
            f"delta = {self.delta!r} allows each record to be published with that probability; "
            "expected delta well below 1 / records, like 1e-6"
            + (f"; hint: did you mean {swapped}?" if self.epsilon < self.delta else "")
        )

    def as_dict(self, draws: int = 1, steps: float = MIN_STEPS) -> dict[str, object]:
        zcdp, analytic = self._calibrated(draws, steps)
        method: dict[str, object] = {
            "method": "through zCDP, by OpenDP's conversion, exact on the lattice"
        }
        if analytic:
            method = _lattice_method(
                "analytic Gaussian calibration (Balle & Wang 2018, Theorem 8), "
                "for delta - (1 + exp(epsilon)) * lattice_distance",
                draws,
                steps,
            )
        return (
            {"definition": "approximate DP", "epsilon": self.epsilon, "delta": self.delta}
            | method
            | {"rho": zcdp.rho}
        )

    def power(self, level: float) -> float:
        return power_of_approx(self.epsilon, self.delta, level)

    def growth(self, chance: float) -> float:
        return growth_of_approx(self.epsilon, self.delta, chance)

    def variation(self) -> float:
        return min(math.tanh(self.epsilon / 2) + 2 * self.delta / (math.exp(self.epsilon) + 1), 1.0)

    def epsilon_delta(self) -> tuple[float, float]:
        return self.epsilon, self.delta

    def resampled(self, n: int) -> "tuple[ApproxDP, str]":
        amplified = _resampled_epsilon(self, self.epsilon, n)
        # in the same range of ε as in _resampled_epsilon
        epsilon = min(max(self.epsilon, _LEAST_RESAMPLED), _MOST_PURE)
        lost = self.delta * (math.expm1(amplified) / math.expm1(epsilon)) * (1 + _MARGIN)
        if lost >= 1:
            raise _nothing_left(self, n)
        of = ApproxDP(amplified, lost)
        return of, f"{_rule(of.epsilon)}, δ' = δ (e^ε' − 1)/(e^ε − 1) = {no_less(of.delta, 3)}"

    def _calibrated(self, draws: int, steps: float) -> tuple[zCDP, bool]:
        """Return the zCDP of the noise, and whether it was computed by the analytic formula."""
        left = _drawn_delta(self.delta, self.epsilon, draws, steps)
        # the formula of Balle & Wang (2018), or OpenDP's conversion from zCDP
        analytic = largest_rho(self.epsilon, left)
        if (
            analytic > 0 and left > _MOST_OF_DELTA * self.delta
        ):  # it is exact: no conversion is better
            return zCDP(analytic), True
        through_zcdp = rho_through_zcdp(self.epsilon, self.delta)
        rho = max(analytic, through_zcdp)
        if not rho > 0:
            raise ParameterError(
                f"ApproxDP: epsilon = {self.epsilon!r} is too small for delta = {self.delta!r} and "
                f"{draws} draws on a lattice of {steps:.3g} steps, which is off by "
                f"{lattice_distance(draws, steps):.3g}; hint: epsilon at least 1e-9, or a larger "
                "delta"
            )
        return zCDP(rho), analytic >= through_zcdp


@final
@dataclass(frozen=True)
class GDP(AbstractPrivacy):
    r"""μ-Gaussian differential privacy (Dong, Roth & Su 2022).

    The outputs on two neighbouring data sets are at least as hard to distinguish as N(0, 1) and
    N(μ, 1).

    A continuous Gaussian is μ-GDP iff ``ρ <= μ²/2``. No noise on a lattice satisfies μ-GDP exactly.
    The drawn noise is within total variation distance η of a μ-GDP mechanism. Let ``G_μ(α) =
    Φ(Φ⁻¹(1 − α) − μ)``. A test between neighbours with false positive rate α has a false negative
    rate of at least ``G_μ(α + η) − η``. The drawn noise is exactly μ²/2-zCDP.

    Args:
        mu: in [1e-150, 1e150].

    Raises:
        ParameterError: out of range.

    >>> gn.GDP(1).to_zcdp()
    zCDP(rho=0.5)
    """

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", _positive("GDP", "mu", self.mu))
        if not 1e-150 <= self.mu <= 1e150:
            raise ParameterError(
                f"GDP: expected 1e-150 <= mu <= 1e150, got {self.mu!r}; hint: 1 is a common choice"
            )

    def to_zcdp(self, draws: int = 1, steps: float = MIN_STEPS) -> zCDP:
        return zCDP(rounded_down(Fraction(self.mu) ** 2 / 2))

    def as_dict(self, draws: int = 1, steps: float = MIN_STEPS) -> dict[str, object]:
        method = _lattice_method(
            "rho = mu^2 / 2; the noise drawn is rho-zCDP exactly, and within a total variation of "
            "lattice_distance of a mu-GDP mechanism",
            draws,
            steps,
        )
        return {"definition": "Gaussian DP", "mu": self.mu} | method | {"rho": self.to_zcdp().rho}

    # consider a test with equal error rates: they are at least 1/(1 + e^ε) under ε-DP, and at
    # least Φ(−μ/2) under μ-GDP
    def to_epsilon(self) -> float:
        return float(scipy.special.log_ndtr(self.mu / 2) - scipy.special.log_ndtr(-self.mu / 2))

    def implies(self, delta: float) -> list[AbstractPrivacy]:
        rho, half = self.mu**2 / 2, self.mu * self.mu / 2
        # Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2) = δ (Balle & Wang 2018, Theorem 8)
        epsilon = least_epsilon(half, delta, zCDP(half).epsilon(delta))
        return [zCDP(rho), KL(rho), ApproxDP(epsilon, delta)]

    def power(self, level: float) -> float:
        return float(scipy.special.ndtr(scipy.special.ndtri(level) + self.mu))

    def growth(self, chance: float) -> float:
        z = scipy.special.ndtri(chance) - self.mu
        return math.log(chance) - float(scipy.special.log_ndtr(z))

    def variation(self) -> float:
        return float(scipy.special.ndtr(self.mu / 2) - scipy.special.ndtr(-self.mu / 2))

    def chi_squared(self) -> tuple[float, str]:
        return (
            math.expm1(self.mu**2) if self.mu < 26 else math.inf,
            f"{_HCR} with χ² <= e^{{μ²}} − 1",
        )


@final
@dataclass(frozen=True)
class KL(AbstractPrivacy):
    """Kullback–Leibler privacy: divergences between outputs on neighbours are at most α.

    The calibration is ρ = α, for a continuous Gaussian and for the drawn noise of scale s. Let k be
    a discrete Gaussian, P its distribution around 0, and P' its distribution around an integer Δ.
    Then ``KL(P ‖ P') = E_P[(k − Δ)² − k²]/2s² = Δ²/2s²``, since E_P k = 0. The sum over coordinates
    is half the squared distance in standard deviations.

    Args:
        alpha: in nats; finite, positive.

    Raises:
        ParameterError: out of range.

    >>> gn.KL(0.1).to_zcdp()
    zCDP(rho=0.1)
    """

    alpha: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", _positive("KL", "alpha", self.alpha))

    def to_zcdp(self, draws: int = 1, steps: float = MIN_STEPS) -> zCDP:
        return zCDP(self.alpha)

    def as_dict(self, draws: int = 1, steps: float = MIN_STEPS) -> dict[str, object]:
        return {
            "definition": "KL privacy",
            "alpha": self.alpha,
            "method": "rho = alpha, exact on the lattice",
            "rho": self.alpha,
        }

    def to_epsilon(self) -> float:
        return math.sqrt(2 * self.alpha)

    def power(self, level: float) -> float:
        return power_of_kl(self.alpha, level)

    def growth(self, chance: float) -> float:
        return growth_of_kl(self.alpha, chance)

    def variation(self) -> float:
        return variation_of_kl(self.alpha)


@final
@dataclass(frozen=True)
class TV(AbstractPrivacy):
    """Total variation privacy, or (0, α)-DP: an event's probability changes by at most α.

    Two Gaussians at a distance of Δ = √(2ρ) standard deviations have total variation distance
    2Φ(Δ/2) − 1. With the drawn noise, each distribution is within a distance η of its Gaussian, so
    ρ is computed for α − 2η. If α − 2η is not positive, or this ρ is less than 2α², then ρ = 2α² is
    used. That value is valid by Pinsker's inequality and the calibration of :class:`KL`, which
    holds for the drawn noise itself.

    Args:
        alpha: in (0, 1).

    Raises:
        ParameterError: out of range.

    >>> print(f"{gn.privacy.TV(0.1).to_zcdp().rho:.6f}")  # about πα²
    0.031582
    """

    alpha: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", _positive("TV", "alpha", self.alpha))
        if not 1e-150 <= self.alpha < 1:
            raise ParameterError(
                f"TV: expected 1e-150 <= alpha < 1, got {self.alpha!r}; hint: well below 1"
            )

    def to_zcdp(self, draws: int = 1, steps: float = MIN_STEPS) -> zCDP:
        return self._calibrated(draws, steps)[0]

    def as_dict(self, draws: int = 1, steps: float = MIN_STEPS) -> dict[str, object]:
        zcdp, analytic = self._calibrated(draws, steps)
        method: dict[str, object] = {
            "method": "rho = 2 alpha^2 (Pinsker's inequality), exact on the lattice"
        }
        if analytic:
            method = _lattice_method(
                "2 Phi(sqrt(rho / 2)) - 1 = alpha - 2 * lattice_distance", draws, steps
            )
        return (
            {"definition": "total variation privacy", "alpha": self.alpha}
            | method
            | {"rho": zcdp.rho}
        )

    def to_epsilon(self) -> float:  # TV is tanh(ε/2) under ε-DP
        return 2 * math.atanh(self.alpha)

    def power(self, level: float) -> float:
        return power_of_approx(0.0, self.alpha, level)

    def growth(self, chance: float) -> float:
        return growth_of_approx(0.0, self.alpha, chance)

    def variation(self) -> float:
        return self.alpha

    def epsilon_delta(self) -> tuple[float, float]:
        return 0.0, self.alpha

    def resampled(self, n: int) -> "tuple[TV, str]":
        return self, "the same guarantee"

    def _calibrated(self, draws: int, steps: float) -> tuple[zCDP, bool]:
        """Return the zCDP of the noise, and whether it was computed by the exact formula."""
        left = math.nextafter(self.alpha - 2 * lattice_distance(draws, steps), 0.0)
        # the exact formula: total variation between Gaussians
        analytic = 4 * float(scipy.special.erfinv(left)) ** 2 * (1 - MARGIN) if left > 0 else 0.0
        pinsker = rounded_down(2 * Fraction(self.alpha) ** 2)
        return zCDP(max(analytic, pinsker)), analytic >= pinsker


@final
@dataclass(frozen=True)
class PureDP(AbstractPrivacy):
    """ε-differential privacy (Dwork et al. 2006).

    No Gaussian noise satisfies this guarantee. :func:`~gaussnoise.lower_bound` and estimators with
    Laplace noise take it as an argument.

    Args:
        epsilon: in (0, 700]; between neighbours, the probability of an event changes by at most a
            factor e^ε.

    Raises:
        ParameterError: out of range.

    >>> gn.PureDP(1)
    PureDP(epsilon=1.0)
    """

    noise = "laplace"
    instead = "no Gaussian is purely ε-DP, hint: zCDP(rho) or ApproxDP(epsilon, delta)"

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _pure("PureDP", self.epsilon))

    def to_epsilon(self) -> float:
        return self.epsilon

    def as_dict(self, draws: int = 1, steps: float = MIN_STEPS) -> dict[str, object]:
        return {
            "definition": "pure DP",
            "epsilon": self.epsilon,
            "method": "discrete Laplace noise",
        }

    def implies(self, delta: float) -> list[AbstractPrivacy]:
        epsilon = self.epsilon
        return [
            zCDP(epsilon * epsilon / 2),
            KL(epsilon * math.tanh(epsilon / 2)),
            ApproxDP(epsilon, delta),
        ]

    def power(self, level: float) -> float:
        return power_of_approx(self.epsilon, 0.0, level)

    def growth(self, chance: float) -> float:
        return growth_of_approx(self.epsilon, 0.0, chance)

    def variation(self) -> float:
        return math.tanh(self.epsilon / 2)

    def chi_squared(self) -> tuple[float, str]:
        return (
            chi_squared_of_epsilon(self.epsilon),
            f"{_HCR} with χ² <= 4 sinh²(ε/2) (Nikolov & Tang 2023, Lemma 39, Theorem 42)",
        )

    def resampled(self, n: int) -> "tuple[PureDP, str]":
        of = PureDP(_resampled_epsilon(self, self.epsilon, n))
        return of, _rule(of.epsilon)


@final
@dataclass(frozen=True)
class LocalDP(AbstractPrivacy):
    """ε-local differential privacy: the message of each person is ε-private for all who read it.

    No message depends on another person's message. :class:`~gaussnoise.LocalMechanism` and
    :func:`~gaussnoise.lower_bound` take this guarantee.

    Args:
        epsilon: in (0, 700]; between any two records, the probability of a message changes by at
            most a factor e^ε.

    Raises:
        ParameterError: out of range.

    >>> gn.LocalDP(1)
    LocalDP(epsilon=1.0)
    """

    noise = "local"
    instead = "noise on an answer is not local, hint: LocalMechanism(domain, privacy)"

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _pure("LocalDP", self.epsilon))

    def as_dict(self, draws: int = 1, steps: float = MIN_STEPS) -> dict[str, object]:
        return {"definition": "local DP", "epsilon": self.epsilon}

    def implies(self, delta: float) -> list[AbstractPrivacy]:
        # one record changes one message, so all messages together are ε-private too
        whole = PureDP(self.epsilon)
        return [whole, *whole.implies(delta)]

    def chi_squared(self) -> tuple[float, str]:
        return (
            chi_squared_of_epsilon(self.epsilon),
            f"messages vary independently, each by {_HCR} (Nikolov & Tang 2023, Lemma 54, Theorem "
            "55)",
        )


def gaussian_epsilon(
    rho: float, delta: float, *, draws: int = 1, steps: float = MIN_STEPS
) -> float:
    """Return an ε for which the drawn *Gaussian noise* of cost ρ is (ε, δ)-private.

    This ε comes from Balle & Wang (2018), Theorem 8, with the correction of :class:`ApproxDP` for
    the lattice. It never exceeds :meth:`zCDP.epsilon`, which is valid for any ρ-zCDP mechanism.

    Args:
        rho: the ρ that is charged, at least 0.
        delta: in (0, 1).
        draws: as for :meth:`AbstractPrivacy.to_zcdp`.
        steps: as for :meth:`AbstractPrivacy.to_zcdp`.

    Returns:
        ε >= 0.

    Raises:
        ParameterError: out of range.

    >>> from gaussnoise.privacy import gaussian_epsilon
    >>> round(gn.zCDP(0.1).epsilon(1e-6), 3), round(gaussian_epsilon(0.1, 1e-6), 3)
    (2.142, 1.995)
    """
    _check_delta("gaussian_epsilon", delta)
    if rho == 0:
        return 0.0
    most = zCDP(rho).epsilon(delta)
    # the correction grows with ε, so that for the largest ε is enough for every ε
    return least_epsilon(rho, _drawn_delta(delta, most, draws, steps), most)


def dp_event(rho: float) -> "DpEvent":
    """Return the ρ-zCDP event of dp-accounting that describes the drawn noise exactly.

    The RDP accountant of dp-accounting accepts the event, alone or with other events, and adds up
    ρ. The PLD accountant accepts no zCDP events. It accepts ``GaussianDpEvent(1 / √(2ρ))``, which
    describes a continuous Gaussian instead of the drawn noise.

    Args:
        rho: the ρ that is charged, at least 0 and finite.

    Returns:
        A ``dp_accounting.ZCDpEvent``.

    Raises:
        ParameterError: rho out of range.
        NotAvailableError: dp-accounting is not installed.

    >>> from gaussnoise.privacy import dp_event
    >>> dp_event(0.1)
    ZCDpEvent(rho=0.1, xi=0.0)
    """
    rho = _number("dp_event", "rho", rho)
    if not (math.isfinite(rho) and rho >= 0):
        raise ParameterError(f"dp_event: expected finite rho >= 0, got {rho!r}")
    try:
        from dp_accounting.dp_event import ZCDpEvent
    except ImportError:
        raise NotAvailableError(
            'dp_event: needs dp-accounting; hint: pip install "gaussnoise[accounting]"'
        ) from None
    return ZCDpEvent(rho)


def _number(function: str, name: str, value: float) -> float:
    """Return a number of any numeric type as a plain float, or raise ParameterError."""
    try:
        # float() would accept text, and booleans (also of numpy and torch) as 0 and 1
        flag = isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool")
        if not flag and not isinstance(value, str | bytes):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ParameterError(f"{function}: expected a number {name}, got {value!r}")


def _positive(function: str, name: str, value: float, hint: str = "") -> float:
    number = _number(function, name, value)
    if not (math.isfinite(number) and number > 0):
        raise ParameterError(
            f"{function}: expected finite {name} > 0, got {number!r}"
            + (f"; hint: {hint}" if hint else "")
        )
    return number


def _pure(name: str, epsilon: float) -> float:
    epsilon = _positive(name, "epsilon", epsilon)
    if epsilon > _MOST_PURE:
        raise ParameterError(
            f"{name}: expected epsilon <= {_MOST_PURE:g}, got {epsilon!r}; hint: 1 is a common "
            "choice"
        )
    return epsilon


def _check_delta(function: str, delta: float) -> None:
    if not 0 < delta < 1:
        raise ParameterError(
            f"{function}: expected 0 < delta < 1, got {delta!r}; hint: well below 1 / records"
        )


def _resampled_epsilon(privacy: AbstractPrivacy, epsilon: float, n: int) -> float:
    """Return an upper bound on ``n ln(1 + (e^ε − 1)/n)``, the ε after resampling n records."""
    # a larger ε gives no protection at all
    epsilon = min(max(epsilon, _LEAST_RESAMPLED), _MOST_PURE)
    amplified = n * math.log1p(math.expm1(epsilon) / n) * (1 + _MARGIN)
    if amplified > _MOST_PURE:
        raise _nothing_left(privacy, n)
    return amplified


def _nothing_left(privacy: AbstractPrivacy, n: int) -> ParameterError:
    return ParameterError(
        f"lower_bound: resampling {n} records leaves nothing of {privacy}; hint: a smaller epsilon"
    )


def _rule(epsilon: float) -> str:
    return f"ε' = n ln(1 + (e^ε − 1)/n) = {no_less(epsilon)}"


def _drawn_delta(delta: float, epsilon: float, draws: int, steps: float) -> float:
    """Return the δ that remains for a continuous Gaussian after the correction for the lattice."""
    # the part is (1 + e^ε) η: η bounds the distance between drawn noise and the Gaussian
    taken = (1 + math.exp(min(epsilon, 700.0))) * lattice_distance(draws, steps)
    return math.nextafter(delta - taken, -math.inf)


def _lattice_method(method: str, draws: int, steps: float) -> dict[str, object]:
    return {
        "method": method,
        "draws": draws,
        "least_steps_per_standard_deviation": steps,
        "lattice_distance": lattice_distance(draws, steps),
    }
