"""The mean of a normal distribution in one dimension, anywhere on the line."""

import math
from functools import partial

import numpy as np
import scipy
from numpy.typing import ArrayLike

from ..numerics.rounding import SAFE_SIDE
from ..privacy.budget import Budget
from ..privacy.guarantee import AbstractPrivacy
from .estimate import Estimate
from .knowledge import chance, positive
from .location import Search
from .publishing import Found, Sample
from .samples import OnNonfinite, samples
from .steps import ball_mean, check_ball_mean

# a small share is enough to find the bin; the rest makes the noise of the mean smaller
_SHARES = {"location": 0.25, "mean": 0.75}


def gaussian_mean(
    data: "ArrayLike",
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
    r"""Return the mean μ of N(μ, σ²), where ``|μ − center| <= radius``.

    A quarter of the budget finds the bin of width 2σ with most records; its middle is within 2σ of
    μ. The rest releases the mean of records clipped to ``± (2σ + σ√(2 log(4n/β)))`` around that
    middle. The error is ``O(σ/√n + σ√(log n)/(nε))`` for all ranges if n is at least of order
    ``log(radius/σ)/ε``.

    Formal guarantees:
        * The privacy guarantee, for one record replaced by any other, and for all data: only the
          error depends on the normal distribution. The number of records is public.
        * Both steps use integers, and noise drawn by OpenDP. They share one budget, which is
          charged once.

    Args:
        data: records, shape (n,).
        privacy: :class:`PureDP`, :class:`zCDP`, :class:`ApproxDP`, or another guarantee that
            Gaussian noise satisfies.
        sigma: known standard deviation, or an upper bound on it.
        radius: half the range of possible means; it may be omitted only under :class:`ApproxDP`.
        center: middle of that range.
        beta: probability of failure, half of it for a wrong location, half for a clipped record.
        on_nonfinite: "refuse" NaN and infinities (a refusal depends on the data), or "clip" them.
        ledger: a :class:`Ledger` or its path, charged before anything is drawn.
        id: the name of this estimate in the ledger.

    Returns:
        An :class:`Estimate` of shape (). The interval is for normal data. If tails are skewed or
        heavier, it may fail more often because of the bias of clipping: :func:`heavy_tailed_mean`
        has a bound on that bias.

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
    read = partial(samples, dims=(1,))
    sample = Sample.of(name, data, on_nonfinite, ledger, id, read=read)
    rows, n = sample.rows, len(sample.rows)
    deviation, beta = positive(name, "sigma", sigma), chance(name, beta)
    probe = Search.of(sample, privacy, deviation, radius, center, beta / 2, "gaussian")
    budget = Budget.of(name, privacy, _SHARES, probe.draws(n) + 1, thresholded=probe.thresholded)
    hunt = probe.paid(budget)
    hunt.check(sample)
    amount = budget.of_step("mean")
    check_ball_mean(1, amount, n, pure=budget.pure)
    # union bound: except with probability β/2, all records are within this many deviations of μ
    tail = math.sqrt(2 * math.log(4 * n / beta))
    reach = hunt.error + deviation * tail

    def find() -> Found:
        place = hunt.find(rows)
        noisy = ball_mean(rows, np.nan_to_num(place), reach, amount, pure=budget.pure)
        bias = deviation * _clipping_bias(tail) + hunt.rounding(place) + noisy.rounding
        return Found(noisy.estimate, bias, noisy.deviation, deviation / math.sqrt(n))

    return sample.published(
        budget,
        find,
        request={"sigma": deviation} | hunt.request | {"beta": beta},
        assumed=f"a normal distribution with standard deviation at most {deviation:g}",
        beta=beta,
    )


def _clipping_bias(t: float) -> float:
    """Return ``E max(|Z| − t, 0)`` for standard normal Z, a bound on the bias of clipping at t."""
    density = math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    return 2 * (density - t * math.exp(float(scipy.special.log_ndtr(-t)))) * SAFE_SIDE
