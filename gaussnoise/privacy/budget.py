"""The budget of an estimator: the shares of its steps, its cost, and its description."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ..errors import ParameterError
from ..numerics.rounding import rounded_down, rounded_up
from .guarantee import AbstractPrivacy, check_gaussian
from .lattice_bound import MIN_STEPS


@dataclass(frozen=True)
class Budget:
    """A privacy guarantee, and the shares of its budget that the steps of an estimator use.

    Under pure privacy, the ε of all steps add up. Otherwise, every step adds discrete Gaussian
    noise and may depend on earlier results, and the ρ of all steps add up. Under zCDP, this is its
    composition theorem. Under the other guarantees, compare the outputs of all steps on two
    neighbours with the outputs of one Gaussian with the whole ρ: they are no easier to distinguish
    (Dong, Roth & Su 2022, Corollary 3.3).

    Attributes:
        privacy: the privacy guarantee.
        shares: the positive share of every step. They need not add up to one.
        draws: an upper bound on the number of noisy integers that all steps draw together.
        thresholded: the share of δ that is for a threshold on counts, not for noise.
    """

    privacy: AbstractPrivacy
    shares: Mapping[str, float]
    draws: int
    thresholded: float = 0.0

    @classmethod
    def of(
        cls,
        function: str,
        privacy: object,
        shares: Mapping[str, float],
        draws: int,
        *,
        pure: bool = True,
        gaussian: bool = True,
        thresholded: float = 0.0,
    ) -> "Budget":
        """Return the budget of an estimator for a guarantee.

        Raises:
            ParameterError: the estimator has no noise for this kind of guarantee.
        """
        if isinstance(privacy, AbstractPrivacy) and privacy.noise == "laplace":
            if not pure:
                raise ParameterError(
                    f"{function}: expected zCDP(rho) or ApproxDP(epsilon, delta), got "
                    f"{type(privacy).__name__}; hint: this estimator adds Gaussian noise"
                )
            return cls(privacy, dict(shares), draws)
        if not gaussian:
            raise ParameterError(
                f"{function}: expected PureDP(epsilon), got {type(privacy).__name__}"
            )
        privacy = check_gaussian(function, privacy, stacklevel=3)
        return cls(privacy, dict(shares), draws, thresholded)

    @property
    def pure(self) -> bool:
        """Whether the budget is an ε for Laplace noise; otherwise it is a ρ for Gaussian noise."""
        return self.privacy.noise == "laplace"

    @cached_property
    def _for_noise(self) -> tuple[AbstractPrivacy, float]:
        """The guarantee of the noise alone, and the part of δ that is for thresholds on counts."""
        split = self.privacy.failing(self.thresholded) if self.thresholded else None
        return split or (self.privacy, 0.0)

    @property
    def threshold_delta(self) -> float:
        """The part of δ that is for thresholds on noisy counts; 0 without thresholds."""
        return self._for_noise[1]

    @cached_property
    def whole(self) -> float:
        """The budget of all steps of the estimator together: ε if pure, otherwise ρ."""
        if self.pure:
            return self.privacy.to_epsilon()
        return self._for_noise[0].to_zcdp(max(self.draws, 1), MIN_STEPS).rho

    def of_step(self, step: str) -> float:
        """Return the ε or ρ of one step; the sum over all steps is at most ``whole``.

        Raises:
            ParameterError: the share is so small that it rounds to zero.
        """
        parts = [Fraction(share) for share in self.shares.values()]
        part = rounded_down(Fraction(self.whole) * Fraction(self.shares[step]) / sum(parts))
        if not part > 0:
            raise ParameterError(
                f"budget: expected one that can be shared out to {len(parts)} steps, got "
                f"{self.whole:.3g}; hint: a budget this small releases nothing but noise"
            )
        return part

    @property
    def rho(self) -> float:
        """The ρ that a ledger charges for all steps.

        This ρ is ε²/2 for pure privacy (Bun & Steinke 2016, Proposition 1.4).
        """
        return rounded_up(Fraction(self.whole) ** 2 / 2) if self.pure else self.whole

    @property
    def split(self) -> dict[str, str]:
        """The share of the budget for every step, in words such as "rho = 0.1"."""
        name = "epsilon" if self.pure else "rho"
        said = {step: f"{name} = {self.of_step(step):.6g}" for step in self.shares}
        return said | (
            {"threshold": f"delta = {self.threshold_delta:.6g}"} if self.thresholded else {}
        )

    def record(self) -> dict[str, object]:
        """Return the record of the guarantee and the calibration of its noise, for a release."""
        said = self.privacy.as_dict(max(self.draws, 1), MIN_STEPS)
        return said if self.pure else said | {"rho": self.whole}
