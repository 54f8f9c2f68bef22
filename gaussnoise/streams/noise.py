"""The step from a workload over time to a noise generator of few states."""

import math
import warnings
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from domains.participation.patterns import AbstractPatterns, Epochs
from domains.sets.stream import StreamWorkload

from ..bounds.certify import sensitivity_of
from ..errors import ConvergenceWarning, ParameterError
from ..noise.certificates.certificate import Certificate
from ..noise.certificates.points import PointCertificate
from ..noise.certificates.streams import StreamCertificate
from ..noise.patterns import check_participation, participations
from ..noise.solve import optimal_noise
from ..numerics.norms import norm
from ..solvers.streams.few_states import few_states
from ..solvers.streams.repeated import repeated_recursion
from .generator import NoiseGenerator

_EXPONENT = {"mean": 2.0, "max": math.inf}
_MOST_REPEATED = 512  # most ticks: they take minutes
_ENOUGH = 1e-4  # excess over the certified optimum: a hundredth of the cost of few states
_LEAST = 0.5  # share of the mean weight: a tick of almost no weight would need its own chains


def noise(
    workload: StreamWorkload,
    *,
    states: int = 4,
    error: Literal["mean", "max"] = "mean",
    participation: AbstractPatterns | None = None,
) -> NoiseGenerator:
    """Return a generator of correlated noise with a few states.

    It states a proven bound on its distance from the best possible noise.

    Where people take part more than once, all coefficients are chosen for that, tick by tick, and
    the sensitivity is the proven one of :func:`certify`. (Where there are too many sets of ticks to
    list, the coefficients are those for rounds in a fixed order; the sensitivity is still proven.)

    Args:
        workload: a workload over time with a banded inverse, such as :func:`prefix_sums` or
            :func:`momentum`.
        states: arrays of the shape of one contribution that may be kept between ticks: a multiple
            of the number b of subdiagonals of A⁻¹ (1 for running totals, 2 for momentum), at least
            2b. With ``participation``, any number.
        error: the error to minimise: the root mean square of the answers' standard deviations,
            or the largest of them.
        participation: the ticks in which one person may take part: :class:`Epochs`,
            :class:`Apart`, :func:`AnyOf` or :class:`Window`, over the same ticks, at most 512 of
            them; if omitted, each person takes part once.

    Raises:
        ParameterError: the workload's inverse is not banded, or is diagonal; the number of states
            or error is neither word; participation is no pattern, or has too many ticks.
        InvalidDomainError: the patterns are over other ticks.

    Source: found for this package. The closest published method is buffered Toeplitz matrices
    (Dvijotham et al. 2024): 3.7 % above the optimum for 256 running totals, where this is 0.1 %
    above it. For 1024 of them, 4, 5, 6 and 8 states are 0.38 %, 0.033 %, 0.0034 % and 0.0002 %
    above it.
    For 64 in 4 epochs, the best such matrix of 4 buffers is 9.2 % above it, and this is 2.4 %
    above; with one buffer, 11.5 % and 6.0 %.

    >>> noise = gn.streams.noise(gn.streams.prefix_sums(64))
    >>> noise.buffers, noise.factor < 1.002
    (4, True)
    >>> totals, who = gn.streams.prefix_sums(16), gn.streams.Epochs(16, 4)
    >>> noise = gn.streams.noise(totals, states=2, participation=who)
    >>> noise.buffers, noise.factor < 1.02
    (2, True)
    """
    if not isinstance(workload, StreamWorkload):
        raise ParameterError(
            f"noise: expected a workload over time, got {type(workload).__name__}; hint: "
            "gn.streams.prefix_sums(n)"
        )
    if error not in _EXPONENT:
        raise ParameterError(f"noise: expected error 'mean' or 'max', got {error!r}")
    b = len(workload.bands) - 1
    if not b:
        raise ParameterError(
            "noise: expected a workload of at least two ticks whose answers depend on the past"
        )
    if participation is not None:
        check_participation("noise", participation)
        return _repeated(workload, states, _EXPONENT[error], participation)
    if type(states) is not int or states % b or states < 2 * b:
        raise ParameterError(
            f"noise: expected a number of states that is a multiple of {b} and at least {2 * b}, "
            f"got {states!r}"
        )
    p = _EXPONENT[error]
    best = optimal_noise(workload, p, neighbors="add-remove")
    weights, shares = (
        np.maximum(given, _LEAST / workload.ticks) for given in _weights(best.certificate)
    )
    few = few_states(
        workload.bands, weights / weights.sum(), shares / shares.sum(), p, states // b - 1
    )
    scale = math.sqrt(workload.ticks) if p == 2 else 1.0
    return NoiseGenerator(
        few.filter,
        few.squared_sensitivity,
        error=few.error / scale,
        lower=best.gamma_lower / scale,
    )


def _repeated(
    workload: StreamWorkload, states: int, p: float, who: AbstractPatterns
) -> NoiseGenerator:
    n = workload.ticks
    if type(states) is not int or not 1 <= states <= n:
        raise ParameterError(f"noise: expected an integer 1 <= states <= {n}, got {states!r}")
    if n > _MOST_REPEATED:
        raise ParameterError(
            f"noise: expected at most {_MOST_REPEATED} ticks with participation=, got {n}; hint: "
            "certify(…, participation=) says what noise for one "
            "participation costs"
        )
    domain = participations(workload, who)
    listed = who if who.lists_few else Epochs(n, who.most)
    with warnings.catch_warnings():  # no warning here: the factor states its gap
        warnings.simplefilter("ignore", ConvergenceWarning)
        lower = optimal_noise(domain, p, neighbors="add-remove", tol=_ENOUGH).gamma_lower
    found = repeated_recursion(workload, listed.maximal(), p, states)
    # C's own rounding can add this much at each tick of one person
    sensitivity = sensitivity_of(found.strategy(), who) + who.most * found.rounding()
    error = norm(np.sqrt(found.variances()), p) * sensitivity
    scale = math.sqrt(n) if p == 2 else 1.0
    return NoiseGenerator(found, sensitivity**2, error=error / scale, lower=lower / scale)


def _weights(certificate: Certificate) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights of contributions and of answers, one for each tick."""
    if isinstance(certificate, StreamCertificate):
        return certificate.weights, certificate.coordinate_weights
    if not isinstance(certificate, PointCertificate) or certificate.rows is None:
        raise ParameterError("noise: expected a certificate on ticks")
    weights = np.zeros(len(certificate.coordinate_weights))
    weights[certificate.rows[:, 0]] = certificate.weights
    return weights, certificate.coordinate_weights
