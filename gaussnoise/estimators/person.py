"""The mean of records of people, with privacy for all records of a person together."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import ParameterError
from ..privacy.budget import Budget
from ..privacy.guarantee import AbstractPrivacy
from .averages import Averages
from .estimate import Estimate
from .knowledge import chance, moment_order, number, positive, shown
from .location import Search
from .publishing import Found, Sample
from .samples import OnNonfinite, by_person
from .steps import NoisyMean, ball_mean, check_ball_mean

Array = NDArray[np.float64]

_LOCATION = 0.25  # share of the budget, as for other means
# share of the budget for all rounds between the location and the last mean, if there are any
_ROUNDS = 0.15
_MOST_ROUNDS = 3
_RADII = 120  # size of the grid from which a radius is chosen
_MOST_SAMPLES = 2**40


def person_level_mean(
    data: object,
    privacy: AbstractPrivacy,
    *,
    person: "ArrayLike | None" = None,
    samples: int,
    moment: float = 1.0,
    order: float = 2.0,
    radius: float | None = None,
    center: "ArrayLike" = 0.0,
    beta: float = 0.01,
    on_nonfinite: OnNonfinite = "refuse",
    ledger: object = None,
    id: str | None = None,
) -> Estimate:
    r"""Return the mean of the records of n people, each with at least ``samples`` records.

    Every person's records are averaged. A noisy histogram of every coordinate finds the mean with
    an error of at most ``6 moment/√samples``. Further rounds may improve this estimate: each clips
    the averages to a smaller ball around the previous estimate, and adds noise to their mean. The
    last round's mean is released. Radii and the number of further rounds, 0 to 3, minimise the
    bound on the error, and depend on public numbers only.

    Formal guarantees:
        * The privacy guarantee, for *all records of one person* replaced by any others; the number
          of people is public. Privacy also holds if ``samples``, ``moment``, ``order`` or
          ``radius`` are wrong: each person has one average, of any number of records, which is
          clipped and rounded to integers independently of other people. After clipping to a ball of
          radius T, the mean has the ℓ2 sensitivity 2T/n.
        * All steps use all people and share one budget, which is charged once: the ε, or ρ, of all
          steps add up to it.
        * If the stated assumptions on the distribution hold, records are independent, and all
          people have at least ``samples`` records, the bias of clipping is at most ``bias_bound``,
          in every coordinate and in Euclidean norm, except with probability ``beta``. This is
          proven even for balls whose centers depend on the same people. Whether a person has fewer
          records is not checked, since the result of the check would depend on one person.

    Args:
        data: records, shape (rows,) or (rows, d), with ``person``; or a list with the records of
            each person, of shape (rows,) or (rows, d) each.
        privacy: a guarantee that Gaussian noise satisfies or, for one coordinate, :class:`PureDP`.
        person: the person of each row, shape (rows,), integers or text.
        samples: lower bound on the number of records of every person, a public number.
        moment: upper bound on ``(E|⟨v, X − μ⟩|^k)^(1/k)`` for every unit vector v; in units of the
            records.
        order: k, the order of that moment, from 2 to 100. For k = 2, the moment is a standard
            deviation.
        radius: half the range of possible means of a coordinate; it may be omitted only under
            :class:`ApproxDP`.
        center: middle of that range, a number or shape (d,).
        beta: probability that an earlier step fails.
        on_nonfinite: "refuse" NaN and infinities (a refusal depends on the data), or "clip" them. A
            person with one NaN counts as the center.
        ledger: a :class:`Ledger` or its path, charged before anything is drawn.
        id: the name of this estimate in the ledger.

    Returns:
        An :class:`Estimate` of shape () or (d,). ``sampling_deviation`` is ``moment/√(samples n)``.

    Raises:
        ParameterError: there are too few people, and the message says how many are needed; or
            arguments are out of range.
        DataError: data are not the records of people, or have NaN or infinities that are not
            clipped.

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
    read = partial(by_person, person=person)
    sample = Sample.of(name, data, on_nonfinite, ledger, id, unit="person", read=read)
    averages, (n, d) = sample.rows, sample.rows.shape
    known, beta = moments(name, d, samples, moment, order), chance(name, beta)
    probe = Search.of(sample, privacy, known.deviation, radius, center, beta / 2)
    if d > 1 and probe.pure:
        raise ParameterError(
            f"{name}: expected one coordinate under PureDP, got {d}; hint: pure_person_level_mean "
            "for a few coordinates, or zCDP or ApproxDP"
        )
    draws = probe.draws(n) + d * (_MOST_ROUNDS + 1)
    budget = Budget.of(name, privacy, {"mean": 1.0}, draws, thresholded=probe.thresholded)
    plan = _plan(sample, budget, probe, known, beta)
    for clip in plan.rounds:
        check_ball_mean(d, plan.budget.of_step(clip.step), n, pure=budget.pure)

    def find() -> Found:
        place = plan.hunt.find(averages)
        noisy, bias = NoisyMean(np.nan_to_num(place), np.zeros(d), np.zeros(d)), np.zeros(d)
        # if the center's error is larger than planned, the mean changes by at most the excess
        off = math.sqrt(d) * plan.hunt.rounding(place)
        for clip in plan.rounds:
            amount = plan.budget.of_step(clip.step)
            noisy = ball_mean(averages, noisy.estimate, clip.radius, amount, pure=budget.pure)
            bias = clip.bias + off + noisy.rounding
            off += float(np.linalg.norm(noisy.rounding))
        return Found(noisy.estimate, bias, noisy.deviation, known.deviation / math.sqrt(n))

    return sample.published(
        plan.budget,
        find,
        request=probe.request | known.request | {"beta": beta},
        assumed=known.text,
        beta=beta,
    )


@dataclass(frozen=True)
class Moments:
    """The assumptions on the records: a bounded moment, and a least number for each person.

    Attributes:
        averages: bounds for averages of one person's records, in units of ``moment``.
        moment: upper bound on the moment.
    """

    averages: Averages
    moment: float

    @property
    def deviation(self) -> float:
        """The upper bound on the standard deviation of the average of one person's records."""
        return self.moment / math.sqrt(self.averages.samples)

    def clipping_bias(self, reach: Array, off: float) -> Array:
        """Return an upper bound on the bias of a clipped average, in the units of the records.

        The arguments are those of :meth:`Averages.clipping_bias`, in the same units.
        """
        return self.moment * self.averages.clipping_bias(reach / self.moment, off / self.moment)

    @property
    def text(self) -> str:
        """The assumptions as text, for use in a sentence."""
        known = self.averages
        return (
            f"records are independent, {known.samples} or more of each person, with a central "
            f"moment of order {known.k:g} of at most {self.moment:g}^{known.k:g}"
            + (" in every direction" if known.dim > 1 else "")
        )

    @property
    def request(self) -> dict[str, object]:
        """The assumptions as plain data, which a ledger stores."""
        return {"samples": self.averages.samples, "moment": self.moment, "k": self.averages.k}


def moments(function: str, dim: int, samples: object, moment: object, k: object) -> Moments:
    """Check the arguments, and return the assumptions on the records.

    Raises:
        ParameterError: samples is not a positive whole number, moment is not positive, or k is
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
    """The plan of one round: clipping to a ball, noise, and bounds on the error."""

    step: str
    radius: float
    bias: float
    noise: float
    # bound on the Euclidean distance of the round's estimate from the mean, which holds except with
    # the probability of failure given to the round
    error: float


@dataclass(frozen=True)
class _Plan:
    """The plan of an estimate: the budget, the search, and the rounds after it."""

    budget: Budget
    hunt: Search
    rounds: list[_Clip]


def _plan(sample: Sample, budget: Budget, probe: Search, known: Moments, beta: float) -> _Plan:
    """Return the plan with the least sum of bias bound and noise in the last round."""
    n, d = sample.rows.shape
    plans = []
    for count in range(_MOST_ROUNDS + 1):
        steps = [*(f"round {i + 1}" for i in range(count)), "mean"]
        shares = {"location": _LOCATION} | {step: _ROUNDS / count for step in steps[:-1]}
        spent = replace(budget, shares=shares | {"mean": 1 - sum(shares.values())})
        hunt = probe.paid(spent)
        if not plans:
            hunt.check(sample)
        off, rounds = math.sqrt(d) * hunt.error, []
        for step in steps:
            missed = beta / (2 * max(count, 1))
            rounds.append(_clip(step, known, n, spent.of_step(step), off, missed, pure=spent.pure))
            off = rounds[-1].error
        plans.append(_Plan(spent, hunt, rounds))
    return min(plans, key=lambda plan: plan.rounds[-1].bias + plan.rounds[-1].noise)


@lru_cache(maxsize=256)
def _clip(
    step: str, known: Moments, n: int, amount: float, off: float, beta: float, *, pure: bool
) -> _Clip:
    """Return the plan of a round, with the radius of the least sum of bias bound and noise."""
    # ``off`` bounds the distance of the ball's center from the mean
    d = known.averages.dim
    total = math.sqrt(d) * known.deviation
    reach = total * np.geomspace(0.5, 100.0 * max(n, 10), _RADII)
    radius = off + reach
    scale = 2 * radius / (n * amount) if pure else 2 * radius / (n * math.sqrt(2 * amount))
    noise = scale * math.sqrt(2 if pure else d)
    bias = known.clipping_bias(reach, off)
    best = int(np.argmin(bias + noise))
    log = math.log(2 / beta)
    # tail of a Laplace variable, or of the norm of a Gaussian (Laurent & Massart 2000)
    drawn = scale[best] * (log if pure else math.sqrt(d + 2 * math.sqrt(d * log) + 2 * log))
    # Tail of the norm of a sum of bounded vectors (Bousquet 2002); clipping does not increase the
    # total variance. The bound holds for all centers of a net at once, since the center depends on
    # the same people. From a center of the net to one between them, the clipped mean changes by at
    # most their distance.
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
