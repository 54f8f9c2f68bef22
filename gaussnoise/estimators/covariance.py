"""Covariances of unbounded data, by steps of whitening and clipping (CoinPress)."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from domains.floats import EPS
from domains.oracles.rows import row_products

from ..errors import ParameterError
from ..privacy.budget import Budget
from ..privacy.guarantee import AbstractPrivacy
from .coinpress import planned_steps
from .estimate import Estimate
from .knowledge import chance, positive
from .publishing import Found, Sample
from .samples import OnNonfinite, clipped, clipping_error, samples
from .second_moment import MomentLattice

Array = NDArray[np.float64]

_LARGEST = 1e150  # replaces infinities before rows are whitened


@dataclass(frozen=True)
class Whitening:
    """The clipping radius of one step, and the accuracy that follows from it.

    The rows are whitened: their covariance is at most the identity.

    Attributes:
        squared_radius: q, the squared radius of the clipping ball.
        kept: ``1 − E max(χ²_d − q, 0)/d``, a lower bound on the share of the variance, in every
            direction, that remains after clipping.
        widened: a number such that the covariance is at most ``(Z + widened I)/shrunk`` for the
            step's result Z.
        shrunk: see ``widened``.
        ratio: a number such that the step's upper bound on the covariance is at most ``ratio``
            times the covariance.
        width: upper bound on the widths of intervals for variances, divided by the variances.
    """

    squared_radius: float
    kept: float
    widened: float
    shrunk: float
    ratio: float
    width: float


@dataclass(frozen=True, eq=False)
class CovariancePlan:
    r"""The plan of the steps of :func:`coinpress_covariance`, computed only from public numbers.

    Let T² be the known upper bound on Σ. A step's rows are w = T⁻¹x, with covariance at most I.
    They are clipped to a ball of squared radius q. Let <= be the Loewner order for matrices, δ = 1
    − kept (see :class:`Whitening`), and z a normal quantile:

    * ``(1 − δ) S <= E[clipped w wᵀ] <= S``, where S = Cov(w). Let w = S^½ g with a standard normal
      vector g. Along any v, clipping removes at most ``E[(v·w)² max(1 − q/‖g‖², 0)]``. By symmetry,
      this is ``vᵀSv · E max(‖g‖² − q, 0)/d``.
    * The mean of n such matrices is at least ``(1 − √(d/n) − z/√(2n))²`` times its expectation, and
      at most ``(1 + √(d/n) + z/√(2n))²`` times.
    * The least eigenvalue of the noise is at least −(√(2d) + z − √2) standard deviations.

    Each of the last two bounds is the expectation of an extreme eigenvalue, plus its fluctuation in
    the case d = 1. In simulations with larger d, the eigenvalue fluctuated less. Accuracy depends
    on these bounds, but privacy does not.

    Attributes:
        dim: d.
        n: number of records.
        rhos: ρ of every step.
        ratio: ratio of the largest to the smallest possible variance.
        beta: probability that any of these bounds fails.
    """

    dim: int
    n: int
    rhos: Sequence[float]
    ratio: float
    beta: float

    @cached_property
    def steps(self) -> list[Whitening]:
        """All steps, in the order in which they run; each one depends on the steps before."""
        steps: list[Whitening] = []
        ratio = self.ratio
        for rho in self.rhos[:-1]:
            steps.append(min(self._tried(rho, ratio), key=lambda step: step.ratio))
            ratio = steps[-1].ratio
        return [*steps, min(self._tried(self.rhos[-1], ratio), key=lambda step: step.width)]

    @property
    def width(self) -> float:
        """The largest relative width of intervals for variances; chosen steps minimise it."""
        return self.steps[-1].width

    @property
    def shrinks(self) -> bool:
        """Whether every step improves the upper bound, and the last one the known bounds."""
        ratios = [self.ratio, *(step.ratio for step in self.steps[:-1])]
        return all(b < a for a, b in itertools.pairwise(ratios)) and self.width < min(
            1.0, self.ratio - 1
        )

    def _tried(self, rho: float, ratio: float) -> list[Whitening]:
        d, n, z = self.dim, self.n, -float(scipy.special.ndtri(self.beta / (2 * len(self.rhos))))
        extreme = math.sqrt(2 * d) + max(z - math.sqrt(2), 0.0)
        off = math.sqrt(d / n) + z / math.sqrt(2 * n)
        plans = []
        for q in np.geomspace(d / 4, d + 2 * math.sqrt(40 * d) + 80, 96).tolist():
            # the squared change by one record is at most 2 q² / n² (q² / n² in one dimension)
            deviation = q / (n * math.sqrt(rho if d > 1 else 2 * rho))
            # E[χ²_d; χ²_d > q] = d P(χ²_{d+2} > q)
            kept = 1 - float(scipy.special.chdtrc(d + 2, q) - q / d * scipy.special.chdtrc(d, q))
            # Z is at most (1 + off)² Cov(w) + widened I, and I is at most ratio · Cov(w)
            widened, shrunk = extreme * deviation, kept * max(1 - off, 0.0) ** 2
            following = ((1 + off) ** 2 + 2 * widened * ratio) / shrunk if shrunk > 0 else math.inf
            # the sample variance of n normal numbers has the relative deviation √(2/n)
            width = 2 * math.hypot(deviation * ratio, math.sqrt(2 / n)) + 1 - kept
            plans.append(Whitening(q, kept, widened, shrunk, following, width))
        return plans


def coinpress_covariance(
    data: "ArrayLike",
    privacy: AbstractPrivacy,
    *,
    largest: float,
    smallest: float = 1.0,
    steps: int | None = None,
    beta: float = 0.01,
    on_nonfinite: OnNonfinite = "refuse",
    ledger: object = None,
    id: str | None = None,
) -> Estimate:
    r"""Return the covariance Σ of N(0, Σ), where smallest · I <= Σ <= largest · I.

    Every step multiplies records by the inverse square root of the known upper bound on Σ. Then it
    clips the results x to a ball, and adds noise to the mean of x xᵀ. The noisy mean, slightly
    enlarged, is the next upper bound. The last step uses 3/4 of ρ, and the other steps share the
    rest.

    The mean must be zero. For other data, use differences of disjoint pairs of records, divided by
    √2. There are half as many differences as records, each from two people.

    Formal guarantees:
        * The privacy guarantee, for one record replaced by any other, and for all data: only the
          error depends on the normal distribution. The number of records is public.
        * ``‖x xᵀ − y yᵀ‖²_F = ‖x‖⁴ + ‖y‖⁴ − 2 (x·y)² <= 2γ⁴`` for vectors no longer than γ. Noise
          is calibrated to this bound for the *rounded* rows: entries on the diagonal, and √2 (to
          0.03 %) times the entries above it, have noise of the same deviation. Every record is
          whitened, clipped and rounded independently of other records; sums are exact integers.
        * A step may use the results of earlier steps, since zCDP composes adaptively. The ledger
          is charged once for all steps.

    Args:
        data: records, shape (n, d).
        privacy: :class:`zCDP`, :class:`ApproxDP`, or another guarantee that Gaussian noise
            satisfies.
        largest: upper bound on the variance in every direction.
        smallest: lower bound on the variance in every direction.
        steps: number of steps; by default the number that gives the shortest intervals in the worst
            case, from public numbers alone.
        beta: probability that an upper bound on Σ is wrong.
        on_nonfinite: "refuse" NaN and infinities (a refusal depends on the data), or "clip":
            infinities are moved to the boundary of the clipping set, records with NaN to its
            center.
        ledger: a :class:`Ledger` or its path, charged before anything is drawn.
        id: the name of this estimate in the ledger.

    Returns:
        An :class:`Estimate` of shape (d, d), symmetric. If n is small, it may have negative
        eigenvalues. You may raise them to ``smallest`` without a loss of privacy, but then the
        noise no longer has the distribution that intervals assume. Bounds on sampling and bias come
        from the last upper bound on Σ, which is private; they are for normal data of mean zero. The
        bound on the bias includes all rounding.

    Raises:
        ParameterError: there are too few records, and the message says how many are needed; or
            arguments are out of range.
        DataError: data are not real numbers of shape (n, d), or have NaN or infinities that are not
            clipped.

    Source: Biswas, Dong, Kamath & Ullman (2020), "CoinPress: practical private mean and covariance
    estimation", Algorithms 3 and 4; noise, radii and widening are ours.

    >>> x = np.random.default_rng(0).normal(size=(20_000, 2)) * [3, 1]
    >>> found = gn.estimators.coinpress_covariance(x, gn.zCDP(0.5), largest=100)
    >>> bool(abs(found.estimate[0, 0] - 9) < 1), bool(abs(found.estimate[1, 1] - 1) < 0.1)
    (True, True)
    """
    name = "coinpress_covariance"
    read = partial(samples, dims=(2,))
    sample = Sample.of(name, data, on_nonfinite, ledger, id, read=read)
    n, d = sample.rows.shape
    most, least = positive(name, "largest", largest), positive(name, "smallest", smallest)
    beta = chance(name, beta)
    if not most > least:
        raise ParameterError(f"{name}: expected largest > smallest, got {most:g} and {least:g}")

    def planned(records: int, rhos: list[float]) -> CovariancePlan:
        return CovariancePlan(d, records, rhos, most / least, beta)

    one = Budget.of(name, privacy, {"step 1": 1.0}, d * (d + 1) // 2, pure=False)
    budget, plan = planned_steps(
        sample, one, steps, planned, lambda rho: MomentLattice(d, n, rho).query.scale
    )
    lattices = [MomentLattice(d, n, rho) for rho in plan.rhos]

    def find() -> Found:
        finite = np.clip(sample.rows, -_LARGEST, _LARGEST)
        bound, last = np.eye(d) * most, plan.steps[-1]
        for step, lattice in zip(plan.steps[:-1], lattices[:-1], strict=True):
            bound = _released(finite, bound, least, step, lattice).bound
        noisy = _released(finite, bound, least, last, lattices[-1])
        known = np.maximum(np.minimum(np.diag(noisy.bound), np.diag(bound)), least)
        sizes = np.sqrt(np.outer(known, known))
        bias = (1 - last.kept + 4 * EPS) * sizes + noisy.rounding
        return Found(noisy.estimate, bias, noisy.deviation, math.sqrt(2 / n) * sizes)

    return sample.published(
        budget,
        find,
        request={"largest": most, "smallest": least, "steps": len(plan.rhos), "beta": beta},
        assumed=f"a normal distribution with mean 0 and variances from {least:g} to {most:g} in "
        "all directions",
        beta=beta,
        shape=(d, d),
    )


@dataclass(frozen=True, eq=False)
class _Moment:
    """The noisy covariance of one step, with its errors, and an upper bound on the covariance."""

    estimate: Array
    deviation: Array
    bound: Array
    rounding: Array


def _released(
    rows: Array, bound: Array, least: float, step: Whitening, lattice: MomentLattice
) -> _Moment:
    """Return the noisy covariance of one step, and a new upper bound on the covariance."""
    # bound is the upper bound that is known before.
    # Rounding: let W be the inverse of root. A row x that is not clipped is x = root w' with ‖w'‖
    # <= √q, and becomes w = W x. Here w differs from w' because W root is not exactly the identity,
    # and by the rounding of d terms, of clipping, and of the lattice: in every coordinate by at
    # most lost √q. So the error of w wᵀ is at most q times lost 1ᵀ + 1 lostᵀ + lost lostᵀ. It is
    # mapped back by |root|, where sums of d terms are rounded twice more. For clipped rows the same
    # holds, since they have length √q.
    values, axes = np.linalg.eigh(bound)
    roots = np.sqrt(np.maximum(values, least))
    root, whitening = (axes * roots) @ axes.T, (axes / roots) @ axes.T
    white = row_products(rows, whitening)
    noisy = lattice.release(clipped(white, np.zeros(len(root)), math.sqrt(step.squared_radius)))
    estimate = step.squared_radius * (root @ noisy.estimate @ root)
    estimate = (estimate + estimate.T) / 2
    d, size = len(root), np.abs(root)
    terms = (d + 4) * EPS
    lost = np.abs(whitening @ root - np.eye(d)) + 3 * terms * (np.abs(whitening) @ size)
    lost = lost.sum(axis=1) + clipping_error(np.zeros(d), 1.0) + noisy.rounding
    off = np.add.outer(lost, lost) + np.outer(lost, lost) + 2 * terms * np.abs(noisy.estimate)
    rounding = step.squared_radius * (size @ off @ size)
    wider = (estimate + step.widened * (root @ root)) / step.shrunk
    return _Moment(
        estimate,
        step.squared_radius * _carried(root, noisy.diagonal, noisy.off),
        (wider + wider.T) / 2,
        rounding,
    )


def _carried(root: Array, diagonal: float, off: float) -> Array:
    """Return the standard deviations of ``root @ Y @ root`` for noise Y, shape (d, d)."""
    # Y is symmetric, with independent noise: ``diagonal`` on its diagonal and ``off`` above it
    known = root @ root
    alone = np.square(root) @ np.square(root).T
    # Σ_{k<l} (r_ik r_jl + r_il r_jk)², expanded, where r is the root
    crossed = np.outer(np.diag(known), np.diag(known)) + np.square(known) - 2 * alone
    return np.sqrt(diagonal**2 * alone + off**2 * crossed)
