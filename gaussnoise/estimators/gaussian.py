"""The mean of a normal distribution in one dimension, at any location."""

import math
from dataclasses import replace

import numpy as np
import scipy
from numpy.typing import ArrayLike

from ..numerics.rounding import SAFE_SIDE
from ..privacy.budget import Budget
from ..privacy.guarantee import AbstractPrivacy
from .estimate import Estimate
from .knowledge import chance, positive, vector
from .location import Search, search
from .samples import OnNonfinite, samples
from .steps import (
    PROTECTS,
    ball_mean,
    check_ball_mean,
    privacy_record,
    published,
    recording_refusals,
)

# of the budget: finding the bin needs little, and the last step's noise falls with its share
_LOCATION = 0.25


def gaussian_mean(
    data: ArrayLike,
    privacy: AbstractPrivacy,
    *,
    sigma: float,
    radius: float | None = None,
    center: float = 0.0,
    beta: float = 0.01,
    on_nonfinite: OnNonfinite = "refuse",
    ledger: object = None,
    id: str | None = None,
) -> Estimate:
    r"""Return the mean of N(μ, σ²), ``|μ − center| <= radius``: locate coarsely, then clip.

    A quarter of the budget finds the fullest of bins 2σ wide, whose middle is within 2σ of μ; the
    rest releases the mean of records clipped at ``2σ + σ√(2 log(2n/β))`` around it. The error is
    ``O(σ/√n + σ√(log n)/(nε))`` for all ranges, once n is of order ``log(radius/σ)/ε``.

    Formal guarantees:
        * The privacy guarantee, for one record replaced by any other, and for all data: their
          normal distribution matters for the error alone. The number of records is public.
        * Both steps use integers, and noise drawn through OpenDP; one budget, one charge.

    Args:
        data: records, shape (n,).
        privacy: :class:`PureDP`, :class:`zCDP`, :class:`ApproxDP`, or another guarantee that
            Gaussian noise satisfies.
        sigma: known standard deviation, or an upper bound on it.
        radius: half the range of possible means; it may be omitted only under :class:`ApproxDP`.
        center: middle of that range.
        beta: probability that the location is wrong or a record is clipped, half of it each.
        on_nonfinite: "refuse" NaN and infinities, which depends on the data; or "clip" them.
        ledger: a :class:`Ledger` or its path, charged before anything is drawn.
        id: the name of this estimate in the ledger.

    Returns:
        An :class:`Estimate` of shape (). The interval holds for normal data. For skewed or heavier
        tails the bias of clipping may make it miss its level: :func:`heavy_tailed_mean` has a bound
        on that bias.

    Raises:
        ParameterError: there are too few records, and the message says how many are needed; or
            arguments are out of range.
        DataError: data are not real numbers of shape (n,), or have NaN or infinities that are not
            clipped.

    Source: Karwa & Vadhan (2018); Kamath, lecture 15, "histogram-based approach".

    >>> x = np.random.default_rng(0).normal(1000, 1, size=2000)
    >>> mean = gn.estimators.gaussian_mean(x, gn.PureDP(1), sigma=1, radius=1e6)
    >>> bool(abs(mean.estimate - 1000) < 0.2), mean.split["location"]
    (True, 'epsilon = 0.25')
    """
    name = "gaussian_mean"
    rows = recording_refusals(
        name, "record", ledger, id, lambda: samples(name, data, on_nonfinite, dims=(1,))
    )[:, None]
    n, deviation, beta = len(rows), positive(name, "sigma", sigma), chance(name, beta)
    half, thresholded = search(name, privacy, radius)
    middle = vector(name, "center", center, 1)
    pure = privacy.noise == "laplace"
    probe = Search(middle, 1.0, pure, deviation, half, 0.0, beta / 2, "gaussian")
    shares = {"location": _LOCATION, "mean": 1 - _LOCATION}
    budget = Budget.of(name, privacy, shares, (probe.draws or n) + 1, thresholded=thresholded)
    hunt = replace(probe, amount=budget.of_step("location"), delta=budget.threshold_delta)
    hunt.check(name, n)
    amount = budget.of_step("mean")
    check_ball_mean(1, amount, n, pure=pure)
    tail = math.sqrt(2 * math.log(4 * n / beta))
    reach = hunt.error + deviation * tail
    record = privacy_record(budget, "record", n)

    def draw() -> Estimate:
        place = hunt.find(rows)
        noisy = ball_mean(rows, np.nan_to_num(place), reach, amount, pure=pure)
        bias = deviation * _beyond(tail) + hunt.rounding(place) + noisy.rounding[0]
        return Estimate(
            estimate=noisy.estimate[0],
            noise_deviation=noisy.deviation[0],
            sampling_deviation=np.array(deviation / math.sqrt(n)),
            bias_bound=np.array(bias),
            beta=beta,
            noise="laplace" if pure else "gaussian",
            split=budget.split,
            privacy=record,
            assumed=f"a normal distribution with standard deviation at most {deviation:g}",
        )

    request = {
        "sigma": deviation,
        "radius": None if radius is None else half,
        "center": middle.tolist(),
        "beta": beta,
    }
    request |= {"n": n, "on_nonfinite": on_nonfinite}
    return published(
        name,
        draw,
        budget,
        rows=rows,
        request=request,
        protects=PROTECTS["record"],
        ledger=ledger,
        id=id,
    )


def _beyond(t: float) -> float:
    """Return ``E (|Z| − t)₊``, a bound on how far clipping at t moves a standard normal's mean."""
    density = math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    return 2 * (density - t * math.exp(float(scipy.special.log_ndtr(-t)))) * SAFE_SIDE
