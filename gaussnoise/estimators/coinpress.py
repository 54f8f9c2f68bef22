"""Means in many dimensions, by steps with smaller and smaller clipping balls (CoinPress)."""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from domains.floats import EPS
from domains.oracles.rows import row_products

from ..errors import ParameterError
from ..privacy.budget import Budget
from ..privacy.guarantee import AbstractPrivacy
from .estimate import Estimate
from .knowledge import LARGEST, SMALLEST, chance, positive, shown, vector
from .publishing import Found, Sample
from .samples import OnNonfinite
from .steps import NoisyMean, ball_mean, check_ball_mean
from .tails import SquaredLength

Array = NDArray[np.float64]

_LAST = 0.75  # share of the budget for the last step: only its noise is in the estimate
_MOST_STEPS = 20
_TRIED_STEPS = 8  # with more steps, the error was not smaller in any setting we tried
_AS_GOOD = 1.01  # a smaller number of steps is chosen if intervals widen by at most this factor
# Candidates for the last step's radius: −log of the probability of clipping a record.
_TAILS = np.geomspace(0.3, 40.0, 48)
_MOST_DEVIATIONS = 1e12  # for means farther from zero, floats around the center are too coarse
_MOST_RECORDS = 2**62
_LARGEST = 1e200  # replaces infinities before coordinates are rotated


@dataclass(frozen=True, eq=False)
class CovarianceBound:
    """An upper bound on the data's covariance, stored as eigenvalues and eigenvectors.

    Attributes:
        variances: eigenvalues, shape (d,), positive.
        axes: eigenvectors as columns, shape (d, d); None for the axes of the data's coordinates.
    """

    variances: Array
    axes: Array | None

    @classmethod
    def of(cls, function: str, covariance: object, dim: int) -> "CovarianceBound":
        """Return the bound for None (the identity), a number times the identity, or a matrix.

        Raises:
            ParameterError: covariance is none of these, or not symmetric positive definite.
        """
        if covariance is None:
            return cls(np.ones(dim), None)
        try:
            matrix = np.asarray(covariance, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            matrix = np.zeros(())
        if matrix.shape == ():
            return cls(np.full(dim, positive(function, "covariance", covariance)), None)
        if matrix.shape != (dim, dim) or not np.isfinite(matrix).all():
            raise ParameterError(
                f"{function}: expected covariance to be a positive number or a matrix of shape "
                f"({dim}, {dim}), got shape {matrix.shape}"
            )
        if np.abs(matrix).max() > LARGEST:
            raise ParameterError(
                f"{function}: expected variances of at most {LARGEST:g}; hint: data in another unit"
            )
        if np.abs(matrix - matrix.T).max() > 1e-10 * np.abs(matrix).max():
            raise ParameterError(
                f"{function}: expected a symmetric covariance; hint: (C + C.T) / 2"
            )
        values, axes = np.linalg.eigh((matrix + matrix.T) / 2)
        if not values[0] > 4 * dim * EPS * values[-1]:
            raise ParameterError(
                f"{function}: expected a positive definite covariance, got the eigenvalue "
                f"{values[0]:.3g}; "
                "hint: it is an upper bound, so add a small multiple of the identity"
            )
        if values[0] < SMALLEST:
            raise ParameterError(
                f"{function}: expected variances of at least {SMALLEST:g} in all directions; hint: "
                "data in another unit"
            )
        return cls(values, None if (values == values[0]).all() else axes)

    @property
    def request(self) -> object:
        """The sha256 of the arrays, which a ledger compares to recognise a repeated request."""
        parts = [self.variances] if self.axes is None else [self.variances, self.axes]
        return [hashlib.sha256(part.tobytes()).hexdigest() for part in parts]

    def turned(self, rows: Array) -> Array:
        """Return the coordinates of every row along the axes, which are the eigenvectors."""
        return (
            rows
            if self.axes is None
            else row_products(np.clip(rows, -_LARGEST, _LARGEST), self.axes.T)
        )

    def back(self, turned: Array) -> Array:
        """Return a vector in the data's coordinates, from its coordinates along the axes."""
        return turned if self.axes is None else self.axes @ turned

    @cached_property
    def turning(self) -> float:
        """A bound on the relative error of a vector after it is rotated to the axes and back.

        The error comes from axes that are not exactly orthogonal, and from the rounding of three
        matrix products of d terms each.
        """
        if self.axes is None:
            return 0.0
        d = len(self.axes)
        off = float(np.linalg.norm(self.axes @ self.axes.T - np.eye(d)))
        return off + 2 * (d + 4) * d * EPS

    def deviation(self, variances: Array) -> Array:
        """Return standard deviations in the data's coordinates, from variances along the axes."""
        return np.sqrt(variances if self.axes is None else np.square(self.axes) @ variances)


@dataclass(frozen=True, eq=False)
class Step:
    """One step of :func:`coinpress_mean`, which releases a noisy mean of clipped records.

    The step's coordinates are those along the axes of the covariance bound, divided by ``scale``.

    Attributes:
        scale: shape (d,).
        radius: radius of the clipping ball, in divided coordinates.
        deviation: standard deviation of the noise, in divided coordinates.
        bias: bound on the change of the mean by clipping, in divided coordinates.
    """

    scale: Array
    radius: float
    deviation: float
    bias: float

    @property
    def noise(self) -> Array:
        """The variances of the noise along the axes of the covariance bound, shape (d,)."""
        return np.square(self.scale * self.deviation)


@dataclass(frozen=True, eq=False)
class Plan:
    """The plan of the steps of :func:`coinpress_mean`, computed only from public numbers.

    Let the records x_i have the mean x̄. After the first step, a record minus the step's center is
    ``(x_i − x̄) − noise``, unless a record was clipped before. Here x_i − x̄ is normal and
    independent of the noise, and its covariance is at most that of the distribution. In the first
    step, the difference is ``(x_i − μ) + (μ − center)``, where μ is the true mean.

    Attributes:
        variances: upper bounds on the distribution's variances along its axes, shape (d,).
        n: number of records.
        rhos: ρ of every step.
        radius: upper bound on the distance of the mean from the center.
        beta: probability that an early step clips a record, or that a later step's center is too
            far from the mean.
        shaped: whether records may be clipped to ellipsoids.
    """

    variances: Array
    n: int
    rhos: Sequence[float]
    radius: float
    beta: float
    shaped: bool = True

    @cached_property
    def steps(self) -> list[Step]:
        """All steps, in the order in which they run; each one depends on the steps before."""
        steps: list[Step] = []
        for rho in self.rhos[:-1]:
            listed = [self._early(scale, rho, steps) for scale in self._scales]
            # compare the noise in units of the last scale, as the last step's set has that shape
            steps.append(
                min(listed, key=lambda step: float((step.noise / self._scales[-1] ** 2).sum()))
            )
        return [*steps, min((self._last(scale, steps) for scale in self._scales), key=self._width)]

    @property
    def width(self) -> float:
        """The sum of the widths of 95 % intervals, which the choice of steps minimises."""
        return self._width(self.steps[-1])

    @property
    def shrinks(self) -> bool:
        """Whether the errors of the first and the last step are below ``radius``."""
        return all(self._reach(step) < self.radius for step in (self.steps[0], self.steps[-1]))

    @cached_property
    def _scales(self) -> list[Array]:
        """The vectors ``scale`` to try: that of a ball and, if ``shaped``, that of an ellipsoid."""
        flat = np.full_like(self.variances, math.sqrt(math.sqrt(self.variances.max())))
        if not self.shaped or (self.variances == self.variances[0]).all():
            return [flat]
        # the second vector gives the least noise and bias
        return [flat, np.sqrt(np.sqrt(self.variances))]

    @property
    def _log_odds(self) -> float:
        return math.log(2 * max(len(self.rhos) - 1, 1) / self.beta)

    def _lengths(self, scale: Array, before: list[Step]) -> SquaredLength:
        """Return bounds on the length of (record − last step's center) / ``scale``."""
        if before:
            shift = math.sqrt(SquaredLength(before[-1].noise / scale**2).quantile(self._log_odds))
        else:
            shift = self.radius / float(scale.min())
        return SquaredLength(self.variances / scale**2, shift)

    def _early(self, scale: Array, rho: float, before: list[Step]) -> Step:
        # union bound over all n records
        q = self._lengths(scale, before).quantile(self._log_odds + math.log(self.n))
        return Step(scale, math.sqrt(q), self._deviation(q, rho), 0.0)

    def _last(self, scale: Array, before: list[Step]) -> Step:
        lengths, rho = self._lengths(scale, before), self.rhos[-1]
        tried = [
            Step(scale, math.sqrt(q), self._deviation(q, rho), lengths.excess_length(q))
            for q in map(lengths.quantile, _TAILS.tolist())
        ]
        return min(tried, key=self._width)

    def _deviation(self, q: float, rho: float) -> float:
        # the sensitivity is 2√q/n, and ρ = sensitivity² / (2 deviation²)
        return math.sqrt(2 * q / rho) / self.n

    def _reach(self, step: Step) -> float:
        """Return an upper bound on the distance between the result of a step and the mean."""
        error = SquaredLength(self.variances / self.n + step.noise)
        return math.sqrt(error.quantile(self._log_odds)) + step.bias * float(step.scale.max())

    def _width(self, step: Step) -> float:
        return float(
            (2 * np.sqrt(step.noise + self.variances / self.n) + step.scale * step.bias).sum()
        )


def coinpress_mean(
    data: "ArrayLike",
    privacy: AbstractPrivacy,
    *,
    center: "ArrayLike" = 0.0,
    radius: float,
    steps: int | None = None,
    covariance: "ArrayLike | None" = None,
    beta: float = 0.01,
    on_nonfinite: OnNonfinite = "refuse",
    ledger: object = None,
    id: str | None = None,
) -> Estimate:
    r"""Return the mean μ of N(μ, Σ), where ‖μ − center‖₂ <= radius and Σ is at most ``covariance``.

    Every step clips records around the previous step's estimate and adds noise to their mean. The
    result is so accurate that the next step can use a smaller clipping radius. The last step uses
    3/4 of ρ, and the other steps share the rest. The estimate contains the noise of the last step
    alone. So ``radius`` has almost no effect if n is large enough for two steps.

    *Balls and ellipsoids.* Records are clipped to a ball, or to an ellipsoid ``{x : xᵀC⁻¹x <=
    R²}``. For an ellipsoid, let C = AAᵀ. The vector ``y = A⁻¹x`` is clipped to the ball of radius
    R, the noise for that ball is added to the mean, and the result is mapped back by A. The noise
    then has the covariance ``4R²C/(2ρn²)``. No unbiased Gaussian noise for the ellipsoid has a
    smaller trace: a covariance M covers the ellipsoid iff ``M ⪰ R²C``. R² is about ``tr(C⁻¹Σ)``, so
    the trace grows with ``tr(C) tr(C⁻¹Σ)``. This product is least at C ∝ Σ^½ (Cauchy–Schwarz),
    where it is ``(tr Σ^½)²``. For balls it is ``d tr Σ``. While the radius is large, balls are
    better and are used.

    *Radii.* All early steps together clip a record with probability at most beta/2. The last step's
    radius gives the shortest intervals from noise, sampling and the bound on the bias. Chernoff's
    method bounds the tails of the squared length of a normal vector.

    Formal guarantees:
        * The privacy guarantee, for one record replaced by any other, and for all data: only the
          error depends on the normal distribution. The number of records is public.
        * Every step is a clipped mean with its own ρ. It may use the results of earlier steps,
          since zCDP composes adaptively.
        * Every record is clipped and rounded to integers, independently of other records; sums are
          exact. The ledger is charged once for all steps.

    Args:
        data: records, shape (n, d), or (n,).
        privacy: :class:`zCDP`, :class:`ApproxDP`, or another guarantee that Gaussian noise
            satisfies.
        center: center of the ball of possible means, a number or shape (d,).
        radius: Euclidean radius of that ball.
        steps: number of steps; by default, the number that gives the shortest intervals, computed
            from public numbers.
        covariance: upper bound on the distribution's covariance (Loewner order): a number, which
            stands for a multiple of the identity, or shape (d, d), positive definite. By default,
            the identity.
        beta: probability that an early step clips a record, or that its result is too far from the
            mean.
        on_nonfinite: "refuse" NaN and infinities (a refusal depends on the data), or "clip":
            infinities are moved to the boundary of the clipping set, NaN to its center.
        ledger: a :class:`Ledger` or its path, charged before anything is drawn.
        id: the name of this estimate in the ledger.

    Returns:
        An :class:`Estimate`, shaped like a record. ``bias_bound`` includes all rounding and is for
        normal data; heavier tails are clipped more, and intervals may then fail more often.

    Raises:
        ParameterError: there are too few records for an error below ``radius``, and the message
            says how many are needed; or arguments are out of range.
        DataError: data are not real numbers, or have NaN or infinities that are not clipped.

    Source: Biswas, Dong, Kamath & Ullman (2020), "CoinPress: practical private mean and covariance
    estimation", Algorithms 1 and 2. Ellipsoids and the last radius are ours.

    >>> x = np.random.default_rng(0).normal(30, 1, size=(4000, 5))
    >>> mean = gn.estimators.coinpress_mean(x, gn.zCDP(0.5), radius=1000)
    >>> bool(np.linalg.norm(mean.estimate - 30) < 0.2), list(mean.split)
    (True, ['step 1', 'step 2', 'step 3'])
    """
    name = "coinpress_mean"
    sample = Sample.of(name, data, on_nonfinite, ledger, id)
    rows, (n, d) = sample.rows, sample.rows.shape
    middle, reach, beta = (
        vector(name, "center", center, d),
        positive(name, "radius", radius),
        chance(name, beta),
    )
    bound = CovarianceBound.of(name, covariance, d)
    if reach > _MOST_DEVIATIONS * math.sqrt(bound.variances.max()):
        raise ParameterError(
            f"{name}: expected a radius of at most {_MOST_DEVIATIONS:g} deviations, got {reach:g}"
        )

    def planned(records: int, rhos: list[float]) -> Plan:
        return Plan(bound.variances, records, rhos, reach, beta)

    def check(rho: float) -> None:
        check_ball_mean(d, rho, n, pure=False)

    one = Budget.of(name, privacy, {"step 1": 1.0}, d, pure=False)
    budget, plan = planned_steps(sample, one, steps, planned, check)

    def find() -> Found:
        with np.errstate(all="ignore"):  # some numbers may overflow
            turned = bound.turned(rows - middle if middle.any() else rows)
        place, scale = np.zeros(d), np.ones(d)
        noisy = NoisyMean(place, place, place)
        for step, share in zip(plan.steps, budget.shares, strict=True):
            place, scale = noisy.estimate * scale / step.scale, step.scale
            with np.errstate(all="ignore"):
                noisy = ball_mean(
                    turned if (scale == 1).all() else turned / scale,
                    place,
                    step.radius,
                    budget.of_step(share),
                    pure=False,
                )
        last = plan.steps[-1]
        estimate = middle + bound.back(scale * noisy.estimate)
        # rounding of the last mean, of translated, rotated and scaled records, and of the result
        carried = np.linalg.norm(scale * (noisy.rounding + 4 * EPS * np.abs(noisy.estimate)))
        far = np.linalg.norm(scale * (np.abs(place) + np.abs(noisy.estimate) + last.radius))
        rounding = carried + (bound.turning + 4 * EPS) * (far + np.linalg.norm(middle))
        bias = last.bias * bound.deviation(np.square(scale)) + rounding
        return Found(
            estimate,
            bias,
            bound.deviation(np.square(scale * noisy.deviation)),
            bound.deviation(bound.variances / n),
        )

    return sample.published(
        budget,
        find,
        request={
            "center": middle.tolist(),
            "radius": reach,
            "steps": len(plan.rhos),
            "covariance": bound.request,
            "beta": beta,
        },
        assumed=f"a normal distribution, its mean within {reach:g} of the center, its covariance "
        "at most as given",
        beta=beta if len(plan.rhos) > 1 else 0.0,
    )


class _Planned(Protocol):
    """The interface of plans that :func:`planned_steps` compares to choose the number of steps."""

    @property
    def width(self) -> float: ...
    @property
    def shrinks(self) -> bool: ...


P = TypeVar("P", bound=_Planned)


def steps_budget(one: Budget, steps: int) -> Budget:
    """Return the budget split over ``steps`` steps: 3/4 for the last one, the rest in equal shares.

    ``one`` is the budget of an estimate with a single step.
    """
    early = {f"step {i + 1}": (1 - _LAST) / (steps - 1) for i in range(steps - 1)}
    shares = early | {f"step {steps}": _LAST if early else 1.0}
    return replace(one, shares=shares, draws=steps * one.draws)


def planned_steps(
    sample: Sample,
    one: Budget,
    steps: int | None,
    planned: Callable[[int, list[float]], P],
    check: Callable[[float], object],
) -> tuple[Budget, P]:
    """Return the budget and the plan of all steps; the ledger is not yet charged.

    Args:
        sample: the records.
        one: the budget of a single step.
        steps: the number of steps, or None to choose it.
        planned: a function of the number of records and the ρ of every step that returns the plan.
        check: a function that raises ParameterError if no noise has this ρ.

    Raises:
        ParameterError: there is no such noise, ``steps`` is out of range, or there are too few
            records.
    """
    check(one.whole)  # if the whole budget allows no noise, its parts allow none

    def split(count: int) -> list[float]:
        budget = steps_budget(one, count)
        return [budget.of_step(step) for step in budget.shares]

    n = len(sample.rows)
    count = _chosen_steps(sample.function, steps, n, lambda k, records: planned(records, split(k)))
    rhos = split(count)
    for rho in rhos:
        check(rho)
    return steps_budget(one, count), planned(n, rhos)


def _chosen_steps(
    function: str, steps: int | None, n: int, planned: Callable[[int, int], _Planned]
) -> int:
    """Return ``steps`` or, if it is None, the fewest steps with nearly the shortest intervals."""
    if steps is None:
        tried = range(1, _TRIED_STEPS + 1)
    elif isinstance(steps, int) and not isinstance(steps, bool) and 1 <= steps <= _MOST_STEPS:
        tried = [steps]
    else:
        raise ParameterError(
            f"{function}: expected an integer steps from 1 to {_MOST_STEPS}, or None, got "
            f"{shown(steps)}"
        )
    plans = {count: planned(count, n) for count in tried}
    good = [count for count, plan in plans.items() if plan.shrinks]
    if good:
        enough = _AS_GOOD * min(plans[count].width for count in good)
        return min(count for count in good if plans[count].width <= enough)
    enough = n
    while enough < _MOST_RECORDS and not any(planned(count, enough).shrinks for count in tried):
        enough *= 2
    if enough >= _MOST_RECORDS:
        raise ParameterError(
            f"{function}: no number of records is enough for so large a range and so small a budget"
        )
    low = enough // 2
    while enough - low > 1:
        half = (low + enough) // 2
        low, enough = (
            (low, half) if any(planned(count, half).shrinks for count in tried) else (half, enough)
        )
    raise ParameterError(
        f"{function}: expected at least {enough} records for an answer better than what is known "
        f"before, got {n}; hint: more budget, or another number of steps"
    )
