"""The public function that makes noise generators for workloads over time.

A generator keeps few arrays, called states, between ticks.
"""

import math
import warnings
from typing import Literal

import numpy as np

from domains.participation.patterns import AbstractPatterns
from domains.sets.stream import StreamWorkload

from ..bounds.certify import sensitivity_of
from ..errors import ConvergenceWarning, ParameterError
from ..noise.patterns import check_participation, participations
from ..noise.solve import optimal_noise
from ..numerics.norms import norm
from ..solvers.progress import working
from ..solvers.streams.few_states import few_states
from ..solvers.streams.recursions import Recursion
from ..solvers.streams.repeated import repeated_recursion
from .generator import NoiseGenerator

_EXPONENT = {"mean": 2.0, "max": math.inf}
_MOST_REPEATED = 512  # most ticks with participation; they take minutes
_ENOUGH = 1e-4  # tolerance of the certified optimum, about a hundredth of the cost of few states


def noise(
    workload: StreamWorkload,
    *,
    states: int = 4,
    error: Literal["mean", "max"] = "mean",
    participation: AbstractPatterns | None = None,
) -> NoiseGenerator:
    """Return a generator of correlated noise that keeps few arrays, called states, between ticks.

    The generator's ``factor`` is a proven upper bound on its error divided by that of the best
    possible noise. If people may take part more than once, coefficients are chosen for their
    participation, and the sensitivity is computed as in :func:`certify`.

    Args:
        workload: a workload over time with a banded inverse, such as :func:`prefix_sums` or
            :func:`momentum`.
        states: the largest number of arrays, of the shape of one contribution, to keep between
            ticks, at least 1; no more than the number of ticks are used.
        error: the error to minimise: the root mean square of the answers' standard deviations,
            or the largest of them.
        participation: the ticks in which one person may take part: :class:`Epochs`,
            :class:`Apart`, :func:`AnyOf` or :class:`Window`, over the same ticks, at most 512 of
            them; if omitted, each person takes part once.

    Raises:
        ParameterError: the workload is not one over time, or its inverse is diagonal; states is not
            an integer of at least 1; error is neither word; participation is no pattern, or has too
            many ticks.
        InvalidDomainError: participation and workload have different numbers of ticks.

    Source: found for this package. The closest published method is buffered Toeplitz matrices (BLT;
    Dvijotham et al. 2024). Errors in per cent above the optimum, for running totals: for 256 ticks,
    BLT with 2 and 4 buffers 3.9 and 3.7, this noise 0.26 and 0.001. For 1024 ticks, this noise with
    1, 2, 3 and 4 states 13, 1.0, 0.08 and 0.005. For 64 ticks in 4 epochs, BLT 9.2 and this noise
    2.5 with 4 buffers; 11.5 and 6.0 with one. For 128 ticks, with 4 participations at least 16
    ticks apart, 9.1 and 2.1.

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
    if len(workload.bands) == 1:
        raise ParameterError(
            "noise: expected a workload of at least two ticks whose answers depend on the past"
        )
    if type(states) is not int or states < 1:
        raise ParameterError(f"noise: expected an integer states >= 1, got {states!r}")
    p = _EXPONENT[error]
    with working("searching noise"):
        if participation is not None:
            check_participation("noise", participation)
            return _repeated(workload, states, p, participation)
        lower = optimal_noise(workload, p, neighbors="add-remove").gamma_lower
        found = few_states(workload, p, min(states, workload.ticks))
        return _generator(found, math.sqrt(found.squared_columns().max()), p, lower)


def _repeated(
    workload: StreamWorkload, states: int, p: float, who: AbstractPatterns
) -> NoiseGenerator:
    n = workload.ticks
    if n > _MOST_REPEATED:
        raise ParameterError(
            f"noise: expected at most {_MOST_REPEATED} ticks with participation=, whose "
            f"coefficients are searched tick by tick, in minutes, got {n}; hint: "
            "certify(…, participation=) says what noise for one participation costs"
        )
    domain = participations(workload, who)
    with warnings.catch_warnings():  # no warning is needed: ``factor`` includes the gap
        warnings.simplefilter("ignore", ConvergenceWarning)
        lower = optimal_noise(domain, p, neighbors="add-remove", tol=_ENOUGH).gamma_lower
    found = repeated_recursion(workload, who, p, min(states, n))
    # rounding in the entries of C can add this much for each tick of one person
    sensitivity = sensitivity_of(found.strategy(), who) + who.most * found.rounding()
    return _generator(found, sensitivity, p, lower, who)


def _generator(
    found: Recursion,
    sensitivity: float,
    p: float,
    lower: float,
    who: AbstractPatterns | None = None,
) -> NoiseGenerator:
    error = norm(np.sqrt(found.variances()), p) * sensitivity
    scale = math.sqrt(found.ticks) if p == 2 else 1.0
    return NoiseGenerator(found, sensitivity, who, error=error / scale, lower=lower / scale)
