"""Quasi-Newton steps to the best evaluated point, and power means in place of maxima."""

from collections.abc import Callable, Sequence

import numpy as np
import scipy

from domains.floats import Array

_GRADIENT = 1e-9  # steps end if no derivative is larger
MEMORY = 30  # number of last steps from which the curvature is estimated
# for each stage: β, since ``log(Σ exp(β x))/β`` replaces maxima, and the largest number of steps
STAGES = ((300.0, 100), (3000.0, 300), (30000.0, 600))
_STAGED_DECREASE = 1e-10
_TOO_FAR = 1e3  # value in place of one that is not finite, so that the line search shortens a step


def descended(
    value: Callable[[Array], tuple[float, Array]],
    x: Array,
    *,
    steps: int,
    memory: int,
    decrease: float = 1e-11,
) -> Array:
    """Minimise a function by quasi-Newton steps from x; return the best of all evaluated points.

    Args:
        value: returns the logarithm to minimise, and its derivatives.
        x: the first point.
        steps: the largest number of steps.
        memory: the number of last steps from which the curvature is estimated.
        decrease: steps end when a step decreases the value by a smaller fraction.
    """
    best, least = x, np.inf

    def seen(y: Array) -> tuple[float, Array]:
        nonlocal best, least
        try:
            now, slope = value(y)
        except np.linalg.LinAlgError:
            now, slope = np.inf, y
        if not (np.isfinite(now) and np.isfinite(slope).all()):
            return _TOO_FAR, np.zeros_like(y)
        if now < least:
            best, least = y.copy(), now
        return now, slope

    options = {
        "maxiter": steps,
        "maxfun": 2 * steps,
        "maxcor": memory,
        "gtol": _GRADIENT,
        "ftol": decrease,
    }
    with np.errstate(all="ignore"):
        scipy.optimize.minimize(seen, x, jac=True, method="L-BFGS-B", options=options)
    return best


def sharpened(
    value: Callable[[Array, float, float], tuple[float, Array]],
    x: Array,
    p: float,
    stages: Sequence[tuple[float, int]] = STAGES,
) -> Array:
    """Minimise an error in the p-norm plus a smooth bound, with less smoothing in each stage.

    Args:
        value: returns the logarithm to minimise and its derivatives, from a point, the power in
            :func:`mean_power`, and a sharpness β.
        x: the first point.
        p: norm of the error, in [2, ∞].
        stages: β and the largest number of steps of each stage.
    """
    for sharpness, steps in stages:
        given = sharpness / 30 if np.isinf(p) else p / 2, sharpness
        x = descended(
            lambda y, given=given: value(y, *given),
            x,
            steps=steps,
            memory=MEMORY,
            decrease=_STAGED_DECREASE,
        )
    return x


def mean_power(values: Array, power: float, count: float) -> tuple[float, Array]:
    """Return the logarithm of ``(Σ values^power / count)^{1/power}``, and its derivatives."""
    largest = values.max()
    raised = (values / largest) ** power
    total = raised.sum()
    return float(np.log(largest) + np.log(total / count) / power), raised / values / total
