"""The mean of records clipped to a public set."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from domains import AbstractDomain, Zonotope
from domains.floats import EPS
from domains.oracles.distance import bounding_box

from ..errors import ParameterError
from ..mechanisms.gaussian import GaussianMechanism
from ..noise.solve import optimal_noise
from ..privacy.budget import Budget
from ..privacy.definitions import zCDP
from ..privacy.guarantee import AbstractPrivacy
from ..records import map_into
from .estimate import Estimate
from .knowledge import check_box, digest, number, positive, vector
from .publishing import Found, Sample
from .samples import OnNonfinite
from .steps import (
    NoisyMean,
    ball_mean,
    check_ball_mean,
    check_laplace_mean,
    laplace_mean,
    released_mean,
)

Array = NDArray[np.float64]


class _Ball:
    """A Euclidean ball to which records are clipped, with the private mean of clipped records."""

    def __init__(self, center: Array, radius: float, amount: float, n: int, *, pure: bool) -> None:
        self.center, self.radius, self.amount, self.pure = center, radius, amount, pure
        self.half_widths = np.full(len(center), radius)
        self.request: dict[str, object] = {"center": center.tolist(), "radius": radius}
        check_ball_mean(len(center), amount, n, pure=pure)

    def mean(self, rows: Array) -> NoisyMean:
        return ball_mean(rows, self.center, self.radius, self.amount, pure=self.pure)


class _Box:
    """A box to which records are clipped, with the private mean of the clipped records."""

    def __init__(
        self, low: Array, high: Array, amount: float, p: float, n: int, *, pure: bool
    ) -> None:
        self.low, self.high, self.amount, self.pure = low, high, amount, pure
        self.middle, self.half_widths = low / 2 + high / 2, high / 2 - low / 2
        self.request: dict[str, object] = {"low": low.tolist(), "high": high.tolist()}
        # rounding of records and bounds to floats, of their difference, and of half the width
        self._rounding = 4 * EPS * (np.abs(self.middle) + self.half_widths)
        self._mechanism = None
        if pure:
            check_laplace_mean(len(low), 1.0, amount, n)
        else:
            noise = optimal_noise(Zonotope(np.diag(self.half_widths)), p)
            self._mechanism = GaussianMechanism(noise, zCDP(amount), n=n)

    def mean(self, rows: Array) -> NoisyMean:
        moved = np.clip(rows, self.low, self.high) - self.middle
        moved[np.isnan(moved)] = 0.0
        if self._mechanism is None:
            # for independent noises and one ε, scales proportional to h^(1/3) give the least total
            # variance (h: half widths)
            unit = np.cbrt(self.half_widths)
            size = float((self.half_widths / unit).sum())
            noisy = laplace_mean(moved / (unit * size), 1.0, self.amount)
            noisy = noisy.carried(self.middle, unit * size)
        else:
            noisy = released_mean(self._mechanism, moved).carried(self.middle, 1.0)
        return replace(noisy, rounding=noisy.rounding + self._rounding)


class _Set:
    """A set into which every record is mapped, with the private mean of the mapped records."""

    def __init__(self, domain: AbstractDomain, amount: float, p: float, n: int) -> None:
        map_into(domain)
        low, high = bounding_box(domain)
        check_box("clipped_mean", "domain", low, high)
        self.half_widths = (high - low) / 2
        self._rounding = EPS * np.maximum(np.abs(low), np.abs(high))  # rounding to floats
        self._mechanism = GaussianMechanism(optimal_noise(domain, p), zCDP(amount), n=n)
        self.request: dict[str, object] = {"domain": digest(domain)}

    def mean(self, rows: Array) -> NoisyMean:
        noisy = released_mean(self._mechanism, rows)
        return replace(noisy, rounding=noisy.rounding + self._rounding)


def clipped_mean(
    data: "ArrayLike",
    privacy: AbstractPrivacy,
    *,
    bounds: "tuple[ArrayLike, ArrayLike] | None" = None,
    center: "ArrayLike | None" = None,
    radius: float | None = None,
    domain: AbstractDomain | None = None,
    p: float = 2,
    on_nonfinite: OnNonfinite = "refuse",
    ledger: object = None,
    id: str | None = None,
) -> Estimate:
    r"""Return the private mean of records that are clipped to a public set.

    The set is a range or a box (``bounds=(low, high)``), a ball (``center=`` and ``radius=``), or
    another set into which records can be mapped (``domain=``). Under pure privacy, coordinates get
    independent Laplace noise. For a box of half widths h, its scale is ``2 h_j^(1/3) Σ_i h_i^(2/3)
    / (nε)``, which gives the least total variance. For a ball, its scale is ``2√d radius / (nε)``.
    Under other guarantees, the noise is the optimal Gaussian noise for the set
    (:func:`gaussnoise.optimal_noise`). For a box, this noise is smaller than that for the ball
    around the box.

    Formal guarantees:
        * The privacy guarantee, for one record replaced by any other; the number of records is
          public.
        * Every record is clipped and rounded to integers, independently of other records; the sum
          is exact.
        * If all records are in the set, the estimate is unbiased up to rounding of at most
          ``bias_bound``.

    Args:
        data: records, shape (n,) or (n, d).
        privacy: :class:`PureDP`, or a guarantee that Gaussian noise satisfies.
        bounds: least and largest value, numbers or shape (d,).
        center: center of a ball, a number or shape (d,).
        radius: radius of that ball.
        domain: another set in R^d, such as a ball, box or ellipsoid; Gaussian noise only. A map of
            records into the set must be known, as for ``on_outside="project"`` of
            :class:`GaussianMechanism`.
        p: norm of the error that the noise minimises, 2 to infinity; Gaussian noise only.
        on_nonfinite: "refuse" NaN and infinities (a refusal depends on the data), or "clip":
            infinities are moved to the boundary of a box or ball, NaN to its center.
        ledger: a :class:`Ledger` or its path, charged before anything is drawn.
        id: the name of this estimate in the ledger.

    Returns:
        An :class:`Estimate` of the mean of the *clipped* distribution. ``bias_bound`` is for
        rounding alone. ``sampling_deviation`` is half the set's width divided by √n, the largest
        for any distribution on the set.

    Raises:
        ParameterError: no set or two sets are given, or arguments are out of range.
        DataError: data are not real numbers, or have NaN or infinities that are not clipped.
        NotAvailableError: no map into the set is known.

    Source: Bassily, Smith & Thakurta (2014), Theorems 5.4 and 5.5, for the error of both kinds of
    noise; Steinke & Ullman (2015), Theorem 1.1, for lower bounds; Nikolov & Tang (2023) for the
    optimal covariance.

    >>> heights = np.random.default_rng(0).normal(170, 10, size=5000)
    >>> mean = gn.estimators.clipped_mean(heights, gn.PureDP(0.5), bounds=(0, 300))
    >>> low, high = mean.confidence_interval(0.95)
    >>> bool(low < 170 < high)
    True
    """
    name = "clipped_mean"
    sample = Sample.of(name, data, on_nonfinite, ledger, id)
    n, d = sample.rows.shape
    if not (isinstance(p, float) and p == math.inf):
        p = number(name, "p", p)
    given = [bounds is not None, center is not None or radius is not None, domain is not None]
    if sum(given) != 1:
        raise ParameterError(
            f"{name}: expected one of bounds=, center= with radius=, or domain=, got {sum(given)}"
        )
    budget = Budget.of(name, privacy, {"mean": 1.0}, d, pure=domain is None)
    amount = budget.of_step("mean")
    if domain is not None:
        if not isinstance(domain, AbstractDomain) or domain.dim != d:
            raise ParameterError(
                f"{name}: expected a domain in R^{d}, as the records have {d} coordinates"
            )
        clip = _Set(domain, amount, p, n)
        said = f"records in {domain!r}"
    elif bounds is not None:
        if not (isinstance(bounds, list | tuple) and len(bounds) == 2):
            raise ParameterError(f"{name}: expected bounds=(low, high)")
        low, high = (vector(name, "bounds", end, d) for end in bounds)
        if not (low < high).all():
            raise ParameterError(
                f"{name}: expected bounds=(low, high) with low < high in every coordinate"
            )
        check_box(name, "bounds", low, high)
        clip = _Box(low, high, amount, p, n, pure=budget.pure)
        said = "records within the bounds"
    else:
        middle = vector(name, "center", 0.0 if center is None else center, d)
        clip = _Ball(middle, positive(name, "radius", radius), amount, n, pure=budget.pure)
        said = f"records within {clip.radius:g} of the center"

    def find() -> Found:
        noisy = clip.mean(sample.rows)
        return Found(
            noisy.estimate, noisy.rounding, noisy.deviation, clip.half_widths / math.sqrt(n)
        )

    return sample.published(
        budget,
        find,
        request=clip.request | {"p": repr(p)},
        assumed=f"{said}; what is beyond is clipped, and the estimate is of the clipped mean",
    )
