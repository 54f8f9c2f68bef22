"""Private histograms as density estimates on the unit cube."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from domains.floats import EPS

from ..errors import ParameterError
from ..privacy.budget import Budget
from ..privacy.guarantee import AbstractPrivacy
from .estimate import Estimate
from .knowledge import positive
from .publishing import Found, Sample
from .samples import OnNonfinite
from .steps import count_deviation, laplace_counts, noisy_counts

_MOST_CELLS = 2**20
_MOST_DIMENSIONS = 20  # largest number of dimensions: each has at least two cells


def histogram_density(
    data: "ArrayLike",
    privacy: AbstractPrivacy,
    *,
    lipschitz: float = 1.0,
    on_nonfinite: OnNonfinite = "refuse",
    ledger: object = None,
    id: str | None = None,
) -> Estimate:
    r"""Return an estimate of a Lipschitz density on [0, 1]^b, from a noisy histogram.

    The histogram has about ``min(n^(b/(b+2)), (nα)^(b/(b+1)))`` cells, where α is ε or √(2ρ). The
    mean integrated squared error is of the order ``n^(−2/(b+2)) + (nα)^(−2/(b+1))``. No private
    estimator has a better order.

    Formal guarantees:
        * The privacy guarantee, for one record replaced by any other. This changes two integer
          counts by one each, so noise is Laplace for ℓ1 sensitivity 2, or Gaussian for ℓ2
          sensitivity √2. The number of records is public.

    Args:
        data: records in the unit cube, shape (n,) or (n, b); coordinates outside it are counted in
            the nearest cells.
        privacy: :class:`PureDP`, or a guarantee that Gaussian noise satisfies.
        lipschitz: upper bound on the density's Lipschitz constant in the Euclidean norm.
        on_nonfinite: "refuse" NaN and infinities (a refusal depends on the data), or "clip": NaN is
            counted in the middle.
        ledger: a :class:`Ledger` or its path, charged before anything is drawn.
        id: the name of this estimate in the ledger.

    Returns:
        An :class:`Estimate` of shape (m,) * b: unbiased estimates of the average density in each of
        m^b cells, which may be negative. ``bias_bound`` is the largest difference between the
        density at a point and the average over its cell, ``lipschitz √b / m``, plus rounding.

    Raises:
        ParameterError: arguments are out of range, or there are more than 2^20 cells.
        DataError: data are not real numbers, or have NaN or infinities that are not clipped.

    Source: Barber & Duchi (2014), (19) and Proposition 5; Wasserman & Zhou (2010).

    >>> x = np.random.default_rng(0).beta(2, 2, size=20_000)
    >>> density = gn.estimators.histogram_density(x, gn.PureDP(1), lipschitz=6)
    >>> density.estimate.shape, bool(abs(density.estimate.mean() - 1) < 0.05)
    ((27,), True)
    """
    name = "histogram_density"
    sample = Sample.of(name, data, on_nonfinite, ledger, id)
    rows, (n, b) = sample.rows, sample.rows.shape
    slope = positive(name, "lipschitz", lipschitz)
    budget = Budget.of(name, privacy, {"histogram": 1.0}, n)
    alpha = budget.whole if budget.pure else math.sqrt(2 * budget.whole)
    # at these numbers m^b of cells, the bias 1/m equals the sampling error √(m^b/n), or the noise
    # m^b/(nα)
    cells = min(n ** (b / (b + 2)), max(n * alpha, 1.0) ** (b / (b + 1)))
    m = max(round(cells ** (1 / b)), 1)
    if b > _MOST_DIMENSIONS or m**b > _MOST_CELLS:
        raise ParameterError(
            f"{name}: expected at most {_MOST_DIMENSIONS} dimensions and {_MOST_CELLS} cells, got "
            f"{m}^{b}; hint: fewer dimensions"
        )
    budget = replace(budget, draws=m**b)
    amount = budget.of_step("histogram")
    deviation = count_deviation(amount, pure=budget.pure)

    def find() -> Found:
        with np.errstate(all="ignore"):
            at = np.clip(
                np.nan_to_num(np.floor(rows * m), nan=m // 2, posinf=m - 1, neginf=0), 0, m - 1
            )
        counts = np.bincount(
            np.ravel_multi_index(tuple(at.astype(np.int64).T), (m,) * b), minlength=m**b
        )
        noisy = laplace_counts(counts, amount) if budget.pure else noisy_counts(counts, amount)
        unit = m**b / n
        largest = 1 + slope * math.sqrt(b)  # somewhere the density is at most its mean, one
        estimate = noisy * unit
        # a record within EPS of one of its cell's 2b faces may be counted in a neighbouring cell
        rounding = 2 * b * m * EPS * largest + 2 * EPS * np.abs(estimate)
        bias = slope * math.sqrt(b) / m + rounding
        return Found(estimate, bias, deviation * unit, math.sqrt(largest * unit))

    return sample.published(
        budget,
        find,
        request={"lipschitz": slope, "dim": b},
        assumed=f"a density on the unit cube with Lipschitz constant at most {slope:g}",
        shape=(m,) * b,
    )
