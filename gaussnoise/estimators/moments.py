"""Means of distributions with heavy tails, of which only a moment is bounded."""

import math
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.rounding import SAFE_SIDE
from ..privacy.budget import Budget
from ..privacy.guarantee import AbstractPrivacy
from .estimate import Estimate
from .knowledge import chance, moment_order, positive
from .location import Search
from .publishing import Found, Sample
from .samples import OnNonfinite, samples
from .steps import ball_mean, check_ball_mean, laplace_deviation

_SHARES = {"location": 0.25, "mean": 0.75}  # shares of the budget, as for normal data
_ROUNDING = 2.0**-44  # approximate rounding of a mean in the unit ball of a few dimensions


def tail_bias(t: float, k: float, size: float) -> float:
    r"""Return a bound on the bias of clipping at t: the largest ``E max(‖X‖ − t, 0)``.

    The largest is over all X with ``E ‖X‖^k <= size^k``. Let ``c = (k−1)^(k−1) / (k^k t^(k−1))``.
    For all x >= 0, ``max(x − t, 0) <= c x^k``: the curve touches the line at x = tk/(k−1). A
    distribution on 0 and this x attains the bound. At k = 2, the bound is a quarter of ``1/((k−1)
    t^(k−1))``, Lemma 3 of Barber & Duchi (2014). If k = ∞, clipping at t >= size changes nothing.
    The bias never exceeds E ‖X‖ <= size.
    """
    if math.isinf(k):
        return max(size - t, 0.0)
    power = (k - 1) * (math.log((k - 1) / k) + math.log(size) - math.log(t)) - math.log(k)
    return size * math.exp(min(power, 0.0)) * SAFE_SIDE


def best_radius(k: float, size: float, noise: float) -> float:
    """Return the clipping radius t that minimises ``tail_bias(t, k, size)² + (noise · t)²``.

    ``noise`` is the root of the total variance of the noise at t = 1.
    """
    if math.isinf(k):
        return size
    # if the bias is c/t^(k−1), the derivative is zero at t^(2k) = (k − 1) (c/noise)²
    unit = tail_bias(1.0, k, 1.0)
    return size * math.exp((math.log(k - 1) / 2 + math.log(unit) - math.log(noise)) / k)


def heavy_tailed_mean(
    data: "ArrayLike",
    privacy: AbstractPrivacy,
    *,
    moment: float = 1.0,
    order: float = 2.0,
    radius: float | None = None,
    center: float = 0.0,
    beta: float = 0.01,
    on_nonfinite: OnNonfinite = "refuse",
    ledger: object = None,
    id: str | None = None,
) -> Estimate:
    r"""Return the mean μ of numbers X with ``E|X − μ|^k <= moment^k``.

    A quarter of the budget finds μ with an error of at most 6 ``moment``. The rest releases the
    mean of records clipped to ± (6 ``moment`` + τ) around that location. The number τ balances
    noise of order τ/(nε) against the worst bias ``moment^k (k−1)^(k−1) / (k^k τ^(k−1))``. The error
    is ``O(1/√n + (1/(nε))^((k−1)/k))`` in units of ``moment``; no private estimator has a better
    order.

    Formal guarantees:
        * The privacy guarantee, for one record replaced by any other, and for all data. The number
          of records is public.
        * Both steps use integers, and noise drawn by OpenDP; they share one budget, charged once.
        * ``bias_bound``, which includes all rounding, holds for every distribution with that
          moment, except with probability ``beta``.

    Args:
        data: records, shape (n,). For vectors, :func:`person_level_mean` with ``samples=1``.
        privacy: :class:`PureDP`, :class:`zCDP`, :class:`ApproxDP`, or another guarantee that
            Gaussian noise satisfies.
        moment: upper bound on the k-th root of ``E|X − μ|^k``; for k = 2, on the standard
            deviation.
        order: k, the order of the moment, from 2 to 100.
        radius: half the range of possible means; it may be omitted only under :class:`ApproxDP`.
        center: middle of that range.
        beta: probability that the location is wrong.
        on_nonfinite: "refuse" NaN and infinities (a refusal depends on the data), or "clip" them.
        ledger: a :class:`Ledger` or its path, charged before anything is drawn.
        id: the name of this estimate in the ledger.

    Returns:
        An :class:`Estimate` of shape ().

    Raises:
        ParameterError: there are too few records, and the message says how many are needed; or
            arguments are out of range.
        DataError: data are not real numbers of shape (n,), or have NaN or infinities that are not
            clipped.

    Source: Kamath, Singhal & Ullman (2020), "Private mean estimation of heavy-tailed
    distributions"; Kamath, lecture 15. The radius is ours: it minimises the bound itself instead of
    its order.

    >>> x = np.random.default_rng(0).standard_t(5, size=5000) + 70
    >>> mean = gn.estimators.heavy_tailed_mean(x, gn.zCDP(0.1), moment=1.3, order=2, radius=1000)
    >>> low, high = mean.confidence_interval()
    >>> bool(abs(mean.estimate - 70) < 1), bool(high - low < 0.2)
    (True, True)
    """
    name = "heavy_tailed_mean"
    read = partial(samples, dims=(1,))
    sample = Sample.of(name, data, on_nonfinite, ledger, id, read=read)
    rows, n = sample.rows, len(sample.rows)
    size, order, beta = (
        positive(name, "moment", moment),
        moment_order(name, order),
        chance(name, beta),
    )
    probe = Search.of(sample, privacy, size, radius, center, beta)
    budget = Budget.of(name, privacy, _SHARES, probe.draws(n) + 1, thresholded=probe.thresholded)
    amount = budget.of_step("mean")
    hunt = probe.paid(budget)
    hunt.check(sample)
    check_ball_mean(1, amount, n, pure=budget.pure)
    tail = best_radius(order, size, noise_of_ball(1, amount, n, pure=budget.pure))

    def find() -> Found:
        place = hunt.find(rows)
        noisy = ball_mean(rows, np.nan_to_num(place), hunt.error + tail, amount, pure=budget.pure)
        bias = tail_bias(tail, order, size) + hunt.rounding(place) + noisy.rounding
        return Found(noisy.estimate, bias, noisy.deviation, size / math.sqrt(n))

    return sample.published(
        budget,
        find,
        request={"moment": size, "k": order} | hunt.request | {"beta": beta},
        assumed=f"a central moment of order {order:g} of at most {size:g}^{order:g}",
        beta=beta,
    )


def truncated_mean(
    data: "ArrayLike",
    privacy: AbstractPrivacy,
    *,
    moment: float = 1.0,
    order: float = 2.0,
    on_nonfinite: OnNonfinite = "refuse",
    ledger: object = None,
    id: str | None = None,
) -> Estimate:
    r"""Return the mean of records X with ``E‖X‖₂^k <= moment^k``, clipped to a ball around 0.

    Let a be the bias at T = 1, and B the root of E‖noise‖² at T = 1. The radius T minimises ``bias²
    + E‖noise‖²``: ``T = moment ((k−1)/B²)^(1/2k) a^(1/k)``. It grows like ``(n²ρ/d)^(1/2k)``, or
    like ``(nε/d)^(1/k)`` under pure privacy.

    Formal guarantees:
        * The privacy guarantee, for one record replaced by any other; the number of records is
          public. A replaced record changes the mean by at most 2T/n, and noise is calibrated to
          exactly this, for every guarantee.
        * ``bias_bound``, which includes all rounding, holds for every distribution with that
          moment. If the budget is so large that noise is smaller than the rounding of floats, the
          error is mostly rounding.

    Args:
        data: records, shape (n,) or (n, d).
        privacy: :class:`PureDP`, :class:`KL`, :class:`ApproxDP`, :class:`zCDP`, :class:`TV` or
            :class:`GDP`.
        moment: upper bound on the k-th root of ``E‖X‖₂^k``, a moment around the origin, not the
            mean.
        order: k, the order of the moment, from 2 to 100; infinity for records in the ball of radius
            ``moment``.
        on_nonfinite: "refuse" NaN and infinities (a refusal depends on the data), or "clip" them.
        ledger: a :class:`Ledger` or its path, charged before anything is drawn.
        id: the name of this estimate in the ledger.

    Raises:
        ParameterError: arguments are out of range.
        DataError: data are not real numbers, or have NaN or infinities that are not clipped.

    Source: Barber & Duchi (2014), "Privacy and statistical risk", (20) and Proposition 6. Some
    noise in this paper is too small for the stated guarantee. The variance ``2T² log(1/δ)/(n²α²)``
    for (α, δ) gives half the standard deviation of the usual Gaussian mechanism. Appendix C has
    half the variance of section 4 for KL, and half the scale for pure privacy. Here, all noise is
    calibrated exactly.

    >>> x = np.random.default_rng(0).standard_t(4, size=(5000, 3))
    >>> mean = gn.estimators.truncated_mean(x, gn.KL(0.1), moment=3, order=3)
    >>> bool((abs(mean.estimate) < 0.5).all())
    True
    """
    name = "truncated_mean"
    sample = Sample.of(name, data, on_nonfinite, ledger, id)
    rows, (n, d) = sample.rows, sample.rows.shape
    size, order = positive(name, "moment", moment), moment_order(name, order, infinite=True)
    budget = Budget.of(name, privacy, {"mean": 1.0}, d)
    amount = budget.of_step("mean")
    check_ball_mean(d, amount, n, pure=budget.pure)
    reach = best_radius(order, size, noise_of_ball(d, amount, n, pure=budget.pure))

    def find() -> Found:
        noisy = ball_mean(rows, np.zeros(d), reach, amount, pure=budget.pure)
        bias = tail_bias(reach, order, size) + noisy.rounding
        return Found(noisy.estimate, bias, noisy.deviation, size / math.sqrt(n))

    return sample.published(
        budget,
        find,
        request={"moment": size, "k": repr(order)},
        assumed=f"a moment of order {order:g} around the origin of at most {size:g}^{order:g}",
    )


def noise_of_ball(d: int, amount: float, n: int, *, pure: bool) -> float:
    """Return the root of the noise's total variance for the mean of n records in the unit ball.

    If the noise is less than the rounding of floats, the result is instead the bound on the
    rounding. This bound grows with the radius of the ball, as the noise does.
    """
    if pure:
        return math.sqrt(d) * laplace_deviation(math.sqrt(d), amount, n)
    return max(math.sqrt(d) * 2 / (n * math.sqrt(2 * amount)), _ROUNDING)
