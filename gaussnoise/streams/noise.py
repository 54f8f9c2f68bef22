"""From a workload over time to a noise generator of few states."""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from domains import StreamWorkload

from ..errors import ParameterError
from ..noise.certificates.certificate import Certificate
from ..noise.certificates.points import PointCertificate
from ..noise.certificates.streams import StreamCertificate
from ..noise.solve import optimal_noise
from ..solvers.streams.few_states import few_states
from .generator import NoiseGenerator

_EXPONENT = {"mean": 2.0, "max": math.inf}
_LEAST = 0.5  # of the mean weight: a tick that hardly counts would ask for chains of its own


def noise(
    workload: StreamWorkload, *, states: int = 4, loss: Literal["mean", "max"] = "mean"
) -> NoiseGenerator:
    """A generator of correlated noise with a few states, and how far from the best possible noise
    it is at most.

    Everybody takes part once. Where people take part more often, :func:`certify` says what this
    noise, or any other strategy, costs: ``certify(noise(workload), workload, Epochs(n, k))``.

    Args:
        workload: over time, with a banded inverse: :func:`prefix_sums`, :func:`momentum` and their
            neighbours.
        states: arrays of the shape of one contribution that may be kept between ticks: a multiple
            of the number b of subdiagonals of A⁻¹ (1 for running totals, 2 for momentum), at least
            2b.
        loss: what is small: the root mean square of the answers' standard deviations, or the
            largest of them.

    Raises:
        ParameterError: a workload whose inverse is not banded, or is diagonal; another number of
            states; another loss.

    Source: found for this package. The peer is buffered Toeplitz matrices (Dvijotham et al. 2024):
    3.7 % above the optimum for 256 running totals, where this is 0.1 % above it.

    >>> noise = gn.streams.noise(gn.streams.prefix_sums(64))
    >>> noise.buffers, noise.factor < 1.002
    (4, True)
    """
    if not isinstance(workload, StreamWorkload):
        raise ParameterError(
            f"noise: expected a workload over time, got {type(workload).__name__}; hint: "
            "gn.streams.prefix_sums(n)"
        )
    if loss not in _EXPONENT:
        raise ParameterError(f"noise: expected loss 'mean' or 'max', got {loss!r}")
    b = len(workload.bands) - 1
    if not b:
        raise ParameterError(
            "noise: expected a workload of at least two ticks whose answers depend on the past"
        )
    if type(states) is not int or states % b or states < 2 * b:
        raise ParameterError(
            f"noise: expected a number of states that is a multiple of {b} and at least {2 * b}, "
            f"got {states!r}"
        )
    p = _EXPONENT[loss]
    best = optimal_noise(workload, p, "add-remove")
    weights, shares = (
        np.maximum(given, _LEAST / workload.ticks) for given in _weights(best.certificate)
    )
    found = few_states(
        workload.bands, weights / weights.sum(), shares / shares.sum(), p, states // b - 1
    )
    scale = math.sqrt(workload.ticks) if p == 2 else 1.0
    return NoiseGenerator(
        found.filter,
        found.squared_sensitivity,
        loss=found.error / scale,
        lower=best.gamma_lower / scale,
    )


def _weights(certificate: Certificate) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of contributions and of answers, one for each tick."""
    if isinstance(certificate, StreamCertificate):
        return certificate.weights, certificate.coordinate_weights
    if not isinstance(certificate, PointCertificate) or certificate.rows is None:
        raise ParameterError("noise: expected a certificate on ticks")
    weights = np.zeros(len(certificate.coordinate_weights))
    weights[certificate.rows[:, 0]] = certificate.weights
    return weights, certificate.coordinate_weights
