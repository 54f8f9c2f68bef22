"""The mean of people's records under pure privacy, chosen from a grid of possible means."""

import itertools
import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from domains.floats import EPS

from ..errors import ParameterError
from ..privacy.budget import Budget
from ..privacy.definitions import PureDP
from ..privacy.laplace import NoisyMaximum
from .averages import Averages
from .estimate import Estimate
from .knowledge import chance, positive
from .location import Search
from .person import Moments, moments
from .publishing import Found, Sample
from .samples import OnNonfinite, by_person

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_CANDIDATES = 2**18
MOST_COMPARISONS = 2**24  # candidates × directions: some seconds
_LOCATION = 0.25  # share of the budget for the location
_UNITS = 2**22  # number of integer steps in the clipping radius
_MOST_CELLS = 2**20  # largest number of cells of a coordinate for which a bound is computed
_RADII = 96  # size of the grid from which a clipping radius is chosen


def pure_person_level_mean(
    data: object,
    privacy: PureDP,
    *,
    person: "ArrayLike | None" = None,
    samples: int,
    moment: float = 1.0,
    order: float = 2.0,
    radius: float | None = None,
    center: "ArrayLike" = 0.0,
    accuracy: float | None = None,
    beta: float = 0.01,
    on_nonfinite: OnNonfinite = "refuse",
    ledger: object = None,
    id: str | None = None,
) -> Estimate:
    r"""Return the mean of people's records, several for each person, under pure privacy.

    A quarter of ε finds every coordinate within ``6 moment/√samples``, as in
    :func:`person_level_mean`. The rest chooses a candidate from a grid on that box. Let p be a
    candidate. Project people's averages on a direction u, and clip them to an interval around the
    projection of p. Then p *loses* in direction u if the mean of these clipped numbers is further
    than a threshold from the projection of p. The score of p is the least number of people whose
    records must change for p to lose in one of 3^d − 1 directions. The candidate with the highest
    score, up to noise, is chosen.

    Formal guarantees:
        * The privacy guarantee, for *all records of one person* replaced by any others; the number
          of people is public.
        * Scores are integers, and replacing one person changes each by at most one. The reason: a
          score is the Hamming distance of the data from the data sets in which p loses, and
          neighbours have distance one. Scores are computed exactly: each person has one integer per
          direction, clipped independently of other people. To find the least number of people, the
          smallest integers are changed first, each to the largest possible one, until the sum is
          above an integer threshold.
        * The candidate is chosen by permute-and-flip, drawn by OpenDP, for scores that may rise or
          fall by one.
        * If the stated assumptions on the distribution hold, the error is at most ``bias_bound`` in
          Euclidean norm, except with probability ``beta``. This is proven, and includes sampling
          and the grid.

    The running time is exponential in the number of coordinates, so use few of them. The error is
    not.

    Args:
        data: records, shape (rows,) or (rows, d), with ``person``; or a list with the records of
            each person.
        privacy: :class:`PureDP`.
        person: the person each row belongs to, shape (rows,), integers or text.
        samples: lower bound on the number of records of every person, a public number;
            privacy does not depend on it.
        moment: upper bound on ``(E|⟨v, X − μ⟩|^k)^(1/k)`` for every unit vector v; in units of the
            records.
        order: k, the order of that moment, from 2 to 100.
        radius: half the range of possible means of a coordinate.
        center: middle of that range, a number or shape (d,).
        accuracy: Euclidean error to reach; by default, the smallest error that can be proven.
        beta: probability of a larger error.
        on_nonfinite: "refuse" NaN and infinities (a refusal depends on the data), or "clip" them. A
            person with one NaN counts as the center.
        ledger: a :class:`Ledger` or its path, charged before anything is drawn.
        id: the name of this estimate in the ledger.

    Returns:
        An :class:`Estimate` whose ``bias_bound`` is the whole error; both deviations are zero.

    Raises:
        ParameterError: there are too few people, or too many candidates, and the message says how
            many are possible; or arguments are out of range.
        DataError: data are not the records of people, or have NaN or infinities that are not
            clipped.

    Source: Agarwal, Kamath, Majid, Mouzakis, Silver & Ullman (2024), "Private mean estimation with
    person-level differential privacy", Algorithms 5 to 8 and Theorem 5.9, after Kamath, Singhal &
    Ullman (2020). Their algorithm compares candidates with the points of a local cover. Among the
    points in one direction, the nearest one determines the result, so it is enough to compare
    directions.

    >>> people = [np.random.default_rng(i).normal([1, 2], 0.5, size=(20, 2)) for i in range(1000)]
    >>> mean = gn.estimators.pure_person_level_mean(
    ...     people, gn.PureDP(2), samples=20, moment=0.6, order=6, radius=10
    ... )
    >>> bool(np.linalg.norm(mean.estimate - [1, 2]) < mean.bias_bound[0] < 0.4)
    True
    """
    name = "pure_person_level_mean"
    read = partial(by_person, person=person)
    sample = Sample.of(name, data, on_nonfinite, ledger, id, unit="person", read=read)
    averages, (n, d) = sample.rows, sample.rows.shape
    known, beta = moments(name, d, samples, moment, order), chance(name, beta)
    budget = Budget.of(
        name, privacy, {"location": _LOCATION, "choice": 1 - _LOCATION}, 0, gaussian=False
    )
    hunt = Search.of(sample, privacy, known.deviation, radius, center, beta / 2).paid(budget)
    hunt.check(sample)
    wanted = None if accuracy is None else positive(name, "accuracy", accuracy)
    choice = NoisyMaximum(1, budget.of_step("choice"))
    cover = _cover(name, known, hunt, n, choice, beta / 2, wanted)

    def find() -> Found:
        around = hunt.find(averages)
        with np.errstate(all="ignore"):  # some numbers may overflow
            scores = cover.scores(averages - around)
        found = around + cover.candidates[choice.choose(scores.tolist())]
        # rounding of the location (the middle of the grid), and of the sum
        rounding = math.sqrt(d) * (hunt.rounding(around) + 2 * EPS * float(np.abs(found).max()))
        return Found(found, cover.error + rounding)

    return sample.published(
        budget,
        find,
        request=hunt.request | {"accuracy": wanted} | known.request | {"beta": beta},
        assumed=f"{known.text}; the bound on the bias is one on the whole error, in Euclidean norm",
        beta=beta,
    )


@dataclass(frozen=True)
class Cover:
    """A grid of candidates for the mean, in a box around zero, and the rule of their scores.

    Attributes:
        dim: number of coordinates.
        half: half the width of the box.
        cells: number of cells of every coordinate; their middles are the candidates.
        radius: half the length of the interval, around the candidate, to which projections are
            clipped.
        threshold: a candidate loses if its projection is further than this from the mean of clipped
            projections; below ``radius``.
        error: upper bound on the Euclidean distance of the chosen candidate from the mean.
    """

    dim: int
    half: float
    cells: int
    radius: float
    threshold: float
    error: float

    @property
    def candidates(self) -> Array:
        """All candidates: the middles of the grid's cells, shape (cells^dim, dim)."""
        line = (np.arange(self.cells) + 0.5) * (2 * self.half / self.cells) - self.half
        corners: Array = np.stack(
            np.meshgrid(*[line] * self.dim, indexing="ij"), axis=-1, dtype=np.float64
        )
        return corners.reshape(-1, self.dim)

    def scores(self, rows: Array) -> Integers:
        """Return, for each candidate, the least number of rows that must change for it to lose.

        A candidate loses if, in some direction, the mean of the clipped projections is further than
        ``threshold`` from the candidate's own projection. The result has shape (cells^dim,).

        Args:
            rows: averages of people, shape (n, dim); NaN and infinities are allowed.
        """
        unit = self.radius / _UNITS
        with np.errstate(all="ignore"):
            rows = np.where(np.isnan(rows).any(axis=1, keepdims=True), 0.0, rows)
        needed = math.floor(len(rows) * self.threshold / unit)
        least = np.full(self.cells**self.dim, len(rows), dtype=np.int64)
        candidates = self.candidates
        for direction in _half_of_directions(self.dim):
            places = np.rint(_projections(candidates, direction) / unit).astype(np.int64)
            points, back = np.unique(places, return_inverse=True)
            furthest = float(np.abs(points).max() + _UNITS)
            with np.errstate(all="ignore"):
                seen = np.rint(_projections(rows, direction) / unit)
            seen = np.sort(
                np.clip(np.nan_to_num(seen, nan=0.0), -furthest, furthest).astype(np.int64)
            )
            forth = fewest_changes(seen, points, _UNITS, needed)
            # for negated numbers, a mean too far below a point is too far above the negated point
            other = fewest_changes(-seen[::-1], -points, _UNITS, needed)
            least = np.minimum(least, np.minimum(forth, other)[back])
        return least


def fewest_changes(values: Integers, points: Integers, reach: int, needed: int) -> Integers:
    """Return the least number of changed values for which ``Σ clip(value − point)`` > ``needed``.

    The result has one number per point. A changed value contributes at most ``reach`` instead of
    its current term. The smallest values gain most, so it is best to change these. The number of
    changes is found in integers, by bisection on sums of sorted values.

    Args:
        values: shape (n,), in ascending order.
        points: shape (c,).
        reach: bound to which differences are clipped.
        needed: less than n times ``reach``.
    """
    n = len(values)
    sums = np.concatenate([[0], np.cumsum(values)])
    low = np.searchsorted(values, points - reach, side="right")  # number clipped to −reach
    high = np.searchsorted(
        values, points + reach, side="left"
    )  # values from this index on are clipped to reach
    few, enough = np.full(len(points), -1), np.full(len(points), n)
    while (enough - few > 1).any():
        changed = (few + enough) // 2
        first, last = np.maximum(changed, low), np.maximum(changed, high)
        total = (
            reach * (changed + n - last)
            - reach * np.maximum(low - changed, 0)
            + (sums[last] - sums[first])
            - points * (last - first)
        )
        crossed = total > needed
        enough = np.where(crossed & (changed > few), changed, enough)
        few = np.where(crossed, few, changed)
    return enough.astype(np.int64)


def _projections(rows: Array, direction: Array) -> Array:
    """Return the scalar product of every row with the direction, independently of other rows."""
    total = np.zeros(len(rows))
    for j in np.flatnonzero(direction):
        total = total + rows[:, j] * direction[j]
    return total


def _half_of_directions(dim: int) -> list[Array]:
    """Return unit vectors along all nonzero vectors with entries −1, 0, 1, up to the sign."""
    signs = (np.array(s, dtype=np.float64) for s in itertools.product((0, 1, -1), repeat=dim))
    return [
        s / math.sqrt(np.abs(s).sum()) for s in signs if s.any() and s[np.flatnonzero(s)[0]] > 0
    ]


def _directions(dim: int) -> int:
    """Return the number of directions in which candidates can lose, with opposite directions."""
    return 3**dim - 1


def _alignment(dim: int) -> float:
    """Return c such that for every vector w, some direction u has ``⟨w, u⟩ >= c ‖w‖``."""
    # If |w| is sorted, the best u with j nonzero entries gives (w_1 + … + w_j)/√j. Among all w for
    # which these are at most one, the longest has w_j = √j − √(j − 1).
    return 1 / math.sqrt(sum((math.sqrt(j) - math.sqrt(j - 1)) ** 2 for j in range(1, dim + 1)))


@dataclass(frozen=True)
class _Bias:
    """Bounds on the bias of projections clipped to ± ``reach``, for increasing ``reach``."""

    reach: Array
    bound: Array

    @classmethod
    def of(cls, known: Moments, most: float) -> "_Bias":
        line = Moments(Averages(1, known.averages.samples, known.averages.k), known.moment)
        reach = np.geomspace(known.deviation / 10, most, 600)
        return cls(reach, np.minimum.accumulate(line.clipping_bias(reach, 0.0)))

    def __call__(self, reach: Array) -> Array:
        index = np.searchsorted(self.reach, reach, side="right") - 1
        return np.where(index >= 0, self.bound[np.maximum(index, 0)], math.inf)


def _cover(
    name: str,
    known: Moments,
    hunt: Search,
    n: int,
    choice: NoisyMaximum,
    beta: float,
    accuracy: float | None,
) -> Cover:
    """Return the coarsest grid of proven ``accuracy`` or, if that is None, the best grid."""
    d, half = known.averages.dim, hunt.error
    # The location depends on the same people. But at each level at most four answers are right, and
    # a union bound makes the statements hold for all of them.
    places = d * len(hunt.levels) * math.log(4)
    line = _Bias.of(known, 1000 * half)
    most = 1
    while (most + 1) ** d <= min(MOST_CANDIDATES, MOST_COMPARISONS // _directions(d)):
        most += 1
    if most < 2:
        raise ParameterError(
            f"{name}: expected at most {MOST_COMPARISONS} comparisons, got {2**d * _directions(d)} "
            f"or more, of 2^{d} candidates in {_directions(d)} directions each; hint: fewer "
            "coordinates, or zCDP or ApproxDP and person_level_mean"
        )
    goal = half * math.sqrt(d) if accuracy is None else accuracy
    sizes = sorted({round(size) for size in np.geomspace(2, _MOST_CELLS, 50)} | {most})

    def best(people: int) -> list[Cover]:
        return [_proven(line, known, half, people, choice, beta, places, size) for size in sizes]

    covers = best(n)
    enough = [cover for cover in covers if cover.error <= goal]
    if not enough:
        high = n
        while high < 2**60 and all(cover.error > goal for cover in best(high)):
            high *= 2
        low = high // 2
        while high - low > max(1, low // 1000):
            middle = (low + high) // 2
            low, high = (
                (low, middle)
                if any(cover.error <= goal for cover in best(middle))
                else (middle, high)
            )
        raise ParameterError(
            f"{name}: expected at least {high} people for an error of {goal:.3g}, got {n}; hint: "
            "more budget, more samples of each person, or a larger accuracy="
        )
    within = [cover for cover in enough if cover.cells <= most]
    if not within:
        size = enough[0].cells
        raise ParameterError(
            f"{name}: expected at most {most**d} candidates in {d} dimensions, got {size**d} for "
            f"an error of {goal:.3g}; hint: a larger accuracy=, or fewer coordinates"
        )
    return within[0] if accuracy is not None else min(within, key=lambda cover: cover.error)


def _proven(
    line: _Bias,
    known: Moments,
    half: float,
    n: int,
    choice: NoisyMaximum,
    beta: float,
    places: float,
    cells: int,
) -> Cover:
    """Return the grid with the radius and threshold that give the smallest proven error."""
    # Let δ be an upper bound on the distance from the mean to the nearest candidate, and σ² the
    # variance of a person's average. The mean over n people of clipped projections differs from its
    # expectation by at most dev = √(2σ²L/n) + 2 radius L/(3n), L = log(number of
    # statements/probability of failure) (Bernstein's inequality).
    # Near: for the nearest candidate, this expectation is at most δ + bias in every direction.
    # With threshold = δ + bias + dev + 2 radius · shortfall/n, more than shortfall people must
    # change for the candidate to lose: each changes the mean by at most 2 radius/n.
    # Far: for a candidate at a distance of error or more, the mean is at least g = error ·
    # alignment away in some direction. Clipping is monotone, so that the expectation grows with
    # this distance, and g − bias >= threshold + dev gives the candidate a score of zero.
    # So the chosen candidate is not far.
    d = known.averages.dim
    count = cells**d
    near = half / cells * math.sqrt(d)
    radius = near + known.deviation * np.geomspace(0.5, 500.0, _RADII)
    log = math.log(2 * (_directions(d) + count) / beta) + places
    dev = (
        known.deviation * math.sqrt(2 * log / n) + 2 * radius * log / (3 * n) + 4 * radius / _UNITS
    )
    shortfall = choice.shortfall(count, beta / 2)
    threshold = near + line(radius - near) + dev + 2 * radius * shortfall / n
    seen = threshold + dev
    for _ in range(60):  # increase to the least fixed point
        seen = threshold + dev + line(radius - seen)
    seen = seen * (1 + 1e-12)
    holds = (seen >= threshold + dev + line(radius - seen)) & (seen < radius)
    error = np.where(holds, seen / _alignment(d), math.inf)
    at = int(np.argmin(error))
    return Cover(d, half, cells, float(radius[at]), float(threshold[at]), float(error[at]))
