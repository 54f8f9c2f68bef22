"""The mean of records where a person has several, all of them protected together."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import ParameterError
from ..privacy.budget import Budget
from ..privacy.guarantee import AbstractPrivacy
from .averages import Averages
from .estimate import Estimate
from .knowledge import chance, moment_order, number, positive, shown, vector
from .location import Search, search
from .samples import OnNonfinite, by_person
from .steps import (
    PROTECTS,
    NoisyMean,
    ball_mean,
    check_ball_mean,
    privacy_record,
    published,
    recording_refusals,
)

Array = NDArray[np.float64]

_LOCATION = 0.25  # of the budget, as for other means
# of the budget for all rounds between the location and the last mean, if there are any
_ROUNDS = 0.15
_MOST_ROUNDS = 3
_RADII = 120  # of the grid on which a radius is chosen
_MOST_SAMPLES = 2**40


def person_level_mean(
    data: object,
    privacy: AbstractPrivacy,
    *,
    person: ArrayLike | None = None,
    samples: int,
    moment: float = 1.0,
    k: float = 2.0,
    radius: float | None = None,
    center: ArrayLike = 0.0,
    beta: float = 0.01,
    on_nonfinite: OnNonfinite = "refuse",
    ledger: object = None,
    id: str | None = None,
) -> Estimate:
    r"""A mean of which n people have ``samples`` records each; a person is protected with all.

    Every person's records are averaged. A histogram of every coordinate finds the mean within
    ``6 moment/√samples``; rounds of clipping and noise, each around the estimate of the one before
    and to a smaller ball, may find it more closely; the last round releases the mean of the
    averages clipped around it. Radii and the number of rounds, 0 to 3, are those for which the
    bound on the error is least: they follow from public numbers.

    Formal guarantees:
        * The promise, for *all records of one person* replaced by any others; the number of people
          is public. It does not rest on ``samples``, ``moment``, ``k`` or ``radius``: a person is
          one average, whatever they contributed, which is clipped by itself and rounded to integers
          by itself. Clipping to a ball of radius T makes the ℓ2 sensitivity of the mean 2T/n.
        * All steps look at all people and share one budget: their ε add up, or their ρ; one charge.
        * The bias of clipping is at most ``bias_bound``, in every coordinate and in Euclidean norm,
          but for a chance of ``beta``, if what is said of the distribution holds, records are
          independent, and everybody has at least ``samples`` of them: proven, also for balls that
          were placed by looking at the same people. That nobody has fewer records is not checked:
          the answer would depend on one person.

    Args:
        data: records, shape (rows,) or (rows, d), with ``person``; or a list with the records of
            each person, of shape (rows,) or (rows, d) each.
        privacy: for one coordinate :class:`PureDP`, or a promise that Gaussian noise keeps; for
            several only those.
        person: whose record each row is, shape (rows,), integers or text.
        samples: how many records every person has at least, a public number.
        moment: ``(E|⟨v, X − μ⟩|^k)^(1/k)`` at most, for every unit vector v; in units of the
            records.
        k: order of that moment, from 2 to 100. Two is the standard deviation.
        radius: half the range of possible means of a coordinate; without one, :class:`ApproxDP`
            only.
        center: middle of that range, a number or shape (d,).
        beta: chance that an earlier step misses.
        on_nonfinite: "refuse" NaN and infinities, which depends on the data; or "clip" them. A
            person with one NaN counts as the center.
        ledger: a :class:`Ledger` or its path, charged before anything is drawn.
        id: what the ledger is to call this estimate.

    Returns:
        An :class:`Estimate` of shape () or (d,). ``sampling_deviation`` is ``moment/√(samples n)``.

    Raises:
        ParameterError: too few people, saying how many would do; arguments out of range.
        DataError: not the records of people; NaN or infinities, unless they are clipped.

    Source: Agarwal, Kamath, Majid, Mouzakis, Silver & Ullman (2024), "Private mean estimation with
    person-level differential privacy", Theorems 3.14 and 4.3 and Algorithms 1 to 4; their constants
    are not explicit, and the bounds on the bias here are our own (``estimators/averages.py``).

    >>> people = [np.random.default_rng(i).normal(50, 4, size=25) for i in range(2000)]
    >>> mean = gn.estimators.person_level_mean(
    ...     people, gn.PureDP(1), samples=25, moment=5, radius=1000
    ... )
    >>> bool(abs(mean.estimate - 50) < 0.3), mean.split["location"]
    (True, 'epsilon = 0.25')
    """
    name = "person_level_mean"
    averages = recording_refusals(
        name, "person", ledger, id, lambda: by_person(name, data, person, on_nonfinite)
    )
    shape, averages = averages.shape[1:], averages.reshape(len(averages), -1)
    n, d = averages.shape
    known = moments(name, d, samples, moment, k)
    half, thresholded = search(name, privacy, radius)
    middle = vector(name, "center", center, d)
    if d > 1 and privacy.noise == "laplace":
        raise ParameterError(
            f"{name}: expected one coordinate under PureDP, got {d}; hint: pure_person_level_mean "
            "for a few coordinates, or zCDP or ApproxDP"
        )
    beta, pure = chance(name, beta), privacy.noise == "laplace"
    probe = Search(middle, 1.0, pure, known.deviation, half, 0.0, beta / 2, "variance")
    draws = (probe.draws or n * d) + d * (_MOST_ROUNDS + 1)
    budget = Budget.of(name, privacy, {"mean": 1.0}, draws, thresholded=thresholded)
    plan = _plan(name, budget, probe, n, known, beta)
    for clip in plan.rounds:
        check_ball_mean(d, plan.budget.of_step(clip.step), n, pure=pure)
    record = privacy_record(plan.budget, "person", n)

    def draw() -> Estimate:
        place = plan.hunt.find(averages)
        noisy, bias = NoisyMean(np.nan_to_num(place), np.zeros(d), np.zeros(d)), np.zeros(d)
        # a center that is off by more than was planned moves a clipped mean by no more than that
        off = math.sqrt(d) * plan.hunt.rounding(place)
        for clip in plan.rounds:
            amount = plan.budget.of_step(clip.step)
            noisy = ball_mean(averages, noisy.estimate, clip.radius, amount, pure=plan.budget.pure)
            bias = clip.bias + off + noisy.rounding
            off += float(np.linalg.norm(noisy.rounding))
        return Estimate(
            estimate=noisy.estimate.reshape(shape),
            noise_deviation=noisy.deviation.reshape(shape),
            sampling_deviation=np.full(shape, known.deviation / math.sqrt(n)),
            bias_bound=bias.reshape(shape),
            beta=plan.beta,
            noise="laplace" if plan.budget.pure else "gaussian",
            split=plan.budget.split,
            privacy=record,
            assumed=known.said,
        )

    request: dict[str, object] = {
        "radius": None if radius is None else half,
        "center": middle.tolist(),
        "n": n,
    }
    request |= known.request | {"beta": plan.beta, "on_nonfinite": on_nonfinite}
    return published(
        name,
        draw,
        plan.budget,
        rows=averages,
        request=request,
        protects=PROTECTS["person"],
        ledger=ledger,
        id=id,
    )


@dataclass(frozen=True)
class Moments:
    """What is known of the records.

    Attributes:
        averages: bounds for averages of one person's records, in units of ``moment``.
        moment: bound on the moment.
    """

    averages: Averages
    moment: float

    @property
    def deviation(self) -> float:
        """The standard deviation of one person's average, at most."""
        return self.moment / math.sqrt(self.averages.samples)

    def clipping_bias(self, reach: Array, off: float) -> Array:
        """How far clipping moves the mean, at most: :meth:`Averages.clipping_bias` in units."""
        return self.moment * self.averages.clipping_bias(reach / self.moment, off / self.moment)

    @property
    def said(self) -> str:
        """In words."""
        known = self.averages
        return (
            f"records are independent, {known.samples} or more of each person, with a central "
            f"moment of order {known.k:g} of at most {self.moment:g}^{known.k:g}"
            + (" in every direction" if known.dim > 1 else "")
        )

    @property
    def request(self) -> dict[str, object]:
        """As a ledger compares it."""
        return {"samples": self.averages.samples, "moment": self.moment, "k": self.averages.k}


def moments(function: str, dim: int, samples: object, moment: object, k: object) -> Moments:
    """Checked.

    Raises:
        ParameterError: not a positive whole number of samples; a moment that is not positive; k
            below 2.
    """
    least = number(function, "samples", samples)
    if not (1 <= least <= _MOST_SAMPLES and least == int(least)):
        raise ParameterError(
            f"{function}: expected samples, how many records every person has at least, to be an "
            f"integer from 1 to 2^40, got {shown(samples)}"
        )
    return Moments(
        Averages(dim, int(least), moment_order(function, k)), positive(function, "moment", moment)
    )


@dataclass(frozen=True)
class _Clip:
    """One round: the mean of averages clipped to a ball, with noise.

    Attributes:
        step: its name in the budget.
        radius: of the ball.
        bias: bound on the bias.
        noise: standard deviation of the noise, in Euclidean norm.
        error: how far the round's estimate is from the mean in Euclidean norm, but for the chance
            it was given.
    """

    step: str
    radius: float
    bias: float
    noise: float
    error: float


@dataclass(frozen=True)
class _Plan:
    """The public part of an estimate."""

    budget: Budget
    hunt: Search
    rounds: list[_Clip]
    beta: float


def _plan(name: str, budget: Budget, probe: Search, n: int, known: Moments, beta: float) -> _Plan:
    """The number of rounds with the least bound on bias and noise of the last."""
    d = known.averages.dim
    plans = []
    for count in range(_MOST_ROUNDS + 1):
        steps = [*(f"round {i + 1}" for i in range(count)), "mean"]
        shares = {"location": _LOCATION} | {step: _ROUNDS / count for step in steps[:-1]}
        spent = replace(budget, shares=shares | {"mean": 1 - sum(shares.values())})
        hunt = replace(probe, amount=spent.of_step("location"), delta=spent.threshold_delta)
        if not plans:
            hunt.check(name, n, "people")
        off, rounds = math.sqrt(d) * hunt.error, []
        for step in steps:
            missed = beta / (2 * max(count, 1))
            rounds.append(_clip(step, known, n, spent.of_step(step), off, missed, pure=spent.pure))
            off = rounds[-1].error
        plans.append(_Plan(spent, hunt, rounds, beta))
    return min(plans, key=lambda plan: plan.rounds[-1].bias + plan.rounds[-1].noise)


@lru_cache(maxsize=256)
def _clip(
    step: str, known: Moments, n: int, amount: float, off: float, beta: float, *, pure: bool
) -> _Clip:
    """The radius of least bias and noise together, around a center off the mean by ``off``."""
    d = known.averages.dim
    total = math.sqrt(d) * known.deviation
    reach = total * np.geomspace(0.5, 100.0 * max(n, 10), _RADII)
    radius = off + reach
    scale = 2 * radius / (n * amount) if pure else 2 * radius / (n * math.sqrt(2 * amount))
    noise = scale * math.sqrt(2 if pure else d)
    bias = known.clipping_bias(reach, off)
    best = int(np.argmin(bias + noise))
    log = math.log(2 / beta)
    # tails: of a Laplace variable; of the norm of a Gaussian (Laurent & Massart 2000)
    drawn = scale[best] * (log if pure else math.sqrt(d + 2 * math.sqrt(d * log) + 2 * log))
    # of the norm of a sum of bounded vectors (Bousquet 2002; clipping raises no total variance), at
    # all centers of a net at once: the center was found from the same people, and moves a mean no
    # further than itself
    mean, width = total / math.sqrt(n), 2 * radius[best] / n
    mesh = mean / 2
    log += d * math.log1p(2 * off / mesh)
    sampled = mesh + mean + math.sqrt(2 * (mean**2 + 2 * width * mean) * log) + width * log / 3
    return _Clip(
        step,
        float(radius[best]),
        float(bias[best]),
        float(noise[best]),
        float(bias[best] + drawn + sampled),
    )
