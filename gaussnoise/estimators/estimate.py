"""The result of every estimator of a population mean."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import scipy
from numpy.typing import NDArray

from ..errors import ParameterError
from ..files.saved import AbstractLoaded
from ..numerics.intervals import ConfidenceInterval
from ..text import estimate_text
from .stored import fields, guarantee_record, real, reals, text, texts

Array = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class Estimate(AbstractLoaded):
    """A private estimate of a population quantity, with its error. It is BIASED by clipping.

    Under pure and concentrated privacy, no private estimate of an unbounded mean is unbiased
    (Kamath et al. 2023, "A bias-variance-privacy trilemma for statistical estimation"). So the
    interval includes a bound on the bias.

    Attributes:
        estimate: shape () for samples of shape (n,), otherwise (d,) or as the estimator documents.
        noise_deviation: the exact standard deviation of the noise of the last step, shaped like the
            estimate.
        sampling_deviation: bound on the standard deviation of the mean of n records without noise,
            under the given assumptions; shaped like the estimate.
        bias_bound: bound on the bias of clipping and on all rounding, under the given assumptions
            and except with probability ``beta``; shaped like the estimate.
        beta: the probability that an earlier step fails, so that the last step clips too much.
        noise: "gaussian" or "laplace", the distribution of the last step's noise.
        split: {step: its budget, in words}.
        privacy: a record of the privacy guarantee.
        assumed: the assumptions, in words.
        private: False for simulations.

    >>> found = gn.estimators.gaussian_mean(
    ...     np.linspace(-1.0, 1.0, 4000), gn.zCDP(1.0), sigma=1, radius=10
    ... )
    >>> print(found.private, 0 < found.noise_deviation < 0.1)
    True True
    """

    estimate: Array
    noise_deviation: Array
    sampling_deviation: Array
    bias_bound: Array
    beta: float
    noise: str
    split: Mapping[str, str]
    privacy: Mapping[str, object]
    assumed: str
    private: bool = True

    _format = "gaussnoise.estimate/1"

    @property
    def standard_deviation(self) -> Array:
        """The standard deviation of noise and sampling, without bias, shaped like the estimate."""
        return np.hypot(self.noise_deviation, self.sampling_deviation)

    def confidence_interval(self, level: float = 0.95) -> ConfidenceInterval:
        """Return a confidence interval for each single coordinate of the population quantity.

        Half the width of an interval is the bound on the bias plus a quantile of the sum of noise
        and sampling error. The sampling error is Gaussian by the central limit theorem. The
        quantile is exceeded with probability 1 − level, minus the probability that an earlier step
        fails.

        Args:
            level: confidence level, in (0, 1 − beta).

        Raises:
            ParameterError: level is out of range, or the estimate's error is not known.
        """
        if not 0 < level < 1 - self.beta:
            raise ParameterError(
                f"confidence_interval: expected 0 < level < 1 - beta = {1 - self.beta:.6g}, got "
                f"{level!r}; hint: 0.95, or ask the estimator for a smaller beta="
            )
        if not np.isfinite(self.standard_deviation).all():
            raise ParameterError(
                "confidence_interval: no bound on the error of this estimate is known"
            )
        missed = (1 - level) - self.beta
        width = np.vectorize(_half_width, otypes=[np.float64])(
            self.noise_deviation, self.sampling_deviation, missed, self.noise == "laplace"
        )
        half = width + self.bias_bound
        return ConfidenceInterval(self.estimate - half, self.estimate + half)

    def explain(self) -> str:
        """Return sentences on the privacy guarantee, the budget of each step, and the error."""
        steps = "; ".join(f"{step}: {spent}" for step, spent in self.split.items())
        worst = [
            float(np.max(x))
            for x in (self.noise_deviation, self.sampling_deviation, self.bias_bound)
        ]
        lines = [
            str(self),
            f"The budget was spent on {steps}.",
            f"The error is at most {worst[2]:.4g} in all, but for a chance of {self.beta:g}."
            if self._has_one_bound
            else f"Largest standard deviation of the noise {worst[0]:.4g}, of sampling at most "
            f"{worst[1]:.4g}; the bias of "
            f"clipping is at most {worst[2]:.4g}, but for a chance of {self.beta:g}.",
            f"Taken to be known: {self.assumed}.",
            "Clipping is biased: no private mean of unbounded data is unbiased.",
        ]
        return "\n".join(lines)

    def _record(self) -> dict[str, object]:
        return {
            "private": self.private,
            **{name: getattr(self, name).tolist() for name in _ARRAYS},
            **{name: getattr(self, name) for name in ("beta", "noise", "assumed")},
            "split": dict(self.split),
            "privacy": dict(self.privacy),
        }

    @classmethod
    def _restored(cls, record: dict[str, Any]) -> Self:
        fields(record, "format", *cls.__dataclass_fields__)
        estimate = reals(record["estimate"])
        errors = {name: reals(record[name], 0.0) for name in _ARRAYS[1:]}
        if {array.shape for array in errors.values()} != {estimate.shape}:
            raise ValueError("arrays of different shapes")
        if record["noise"] not in ("gaussian", "laplace") or type(record["private"]) is not bool:
            raise ValueError("another noise")
        return cls(
            estimate,
            **errors,
            noise=record["noise"],
            assumed=text(record["assumed"]),
            beta=real(record["beta"], 0.0, 0.5),
            split=texts(record["split"]),
            privacy=guarantee_record(record["privacy"]),
            private=record["private"],
        )

    def __repr__(self) -> str:
        return f"Estimate({np.size(self.estimate)} coordinates, {self.privacy['definition']})"

    def __str__(self) -> str:
        whole = self._has_one_bound
        return estimate_text(
            "Estimate",
            np.ravel(self.estimate),
            self.privacy,
            self.private,
            np.ravel(self.bias_bound if whole else self.standard_deviation),
            f"a bound on the whole error, but for a chance of {self.beta:g}" if whole else None,
        )

    @property
    def _has_one_bound(self) -> bool:
        """Whether ``bias_bound`` bounds the whole error, so that both deviations are zero."""
        return not self.standard_deviation.any() and bool(self.bias_bound.any())


_ARRAYS = ("estimate", "noise_deviation", "sampling_deviation", "bias_bound")


def _half_width(noise: float, sampling: float, missed: float, laplace: bool) -> float:
    """Return w such that |noise + sampling error| > w with probability ``missed``."""
    if not laplace or noise == 0:
        return float(-scipy.special.ndtri(missed / 2)) * math.hypot(noise, sampling)
    b = noise / math.sqrt(2)
    if sampling == 0:
        return -b * math.log(missed)
    widest = -b * math.log(missed / 2) - float(scipy.special.ndtri(missed / 4)) * sampling
    root: float = scipy.optimize.brentq(
        lambda w: _laplace_tail(w, b, sampling) - missed / 2, 0.0, widest
    )  # pyright: ignore[reportAssignmentType]
    return root


def _laplace_tail(w: float, b: float, s: float) -> float:
    """Return P(Laplace noise of scale b + normal variable of standard deviation s > w)."""
    # P(N > w) + ½E[e^{−(w−N)/b}; N < w] − ½E[e^{(w−N)/b}; N > w], where each expectation is a
    # normal probability with a shifted mean, times a factor
    half = s * s / (2 * b * b)
    parts = (
        float(scipy.special.log_ndtr(-w / s)),
        half - w / b + float(scipy.special.log_ndtr(w / s - s / b)) + math.log(0.5),
        half + w / b + float(scipy.special.log_ndtr(-w / s - s / b)) + math.log(0.5),
    )
    return math.exp(parts[0]) + math.exp(parts[1]) - math.exp(parts[2])
