"""The approximate location of a mean: for each coordinate, the fullest bin of a noisy histogram."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from domains.floats import EPS

from ..errors import ParameterError
from ..numerics.rounding import rounded_down
from ..privacy.budget import Budget
from ..privacy.guarantee import AbstractPrivacy, check_privacy
from .estimate import Estimate
from .knowledge import chance, positive, vector
from .publishing import Found, Sample
from .samples import OnNonfinite
from .steps import fullest, fullest_of_any, fullest_of_any_needs, fullest_shortfall, lattice_query

Array = NDArray[np.float64]

_THRESHOLDED = 0.1  # share of δ for the threshold, if the range is unbounded
_LEVEL = 2**12  # largest number of bins; a larger range is searched in several levels
_MOST_LEVELS = 20
# Number of bins on either side of an unbounded range; the last bin has all numbers beyond.
_MOST_KEYS = 2.0**61
# Largest rounding of data, in standard deviations. Rounded data are not exactly normal: this lowers
# the lead 0.3199 below by at most 0.42 times the rounding, less than one unit of its last digit.
_MOST_BLUR = 1e-4
_MOST_RECORDS = 2**62
# Width of a bin, error of its middle, and lead. Width and error are in standard deviations. The
# lead is the difference, as a share of all records, between the bin around the mean and any bin
# whose middle is further away than the error. "variance": 8/9 of the mass is within 3 deviations
# (Chebyshev), and so in at most two bins of width 6. "gaussian": the best bin of width 2 has at
# least Φ(2) − Φ(0), a bin whose middle is 2 away at most Φ(3) − Φ(1).
_SHAPES = {"variance": (6.0, 6.0, 1 / 3), "gaussian": (2.0, 2.0, 0.3199)}


@dataclass(frozen=True, eq=False)
class Search:
    """A private search for the approximate mean of every coordinate, by noisy histograms.

    Attributes:
        center: middle of the range of possible means, shape (d,).
        amount: ε or ρ for all coordinates.
        pure: whether ``amount`` is ε.
        deviation: upper bound on the standard deviation of the distribution.
        radius: half the range of possible means; infinite for an unbounded range.
        delta: δ of the threshold, for an unbounded range.
        beta: probability that the result for any coordinate is wrong.
        shape: the assumption on the shape of the distribution, besides its standard deviation.
    """

    center: Array
    amount: float
    pure: bool
    deviation: float
    radius: float
    delta: float
    beta: float
    shape: Literal["variance", "gaussian"]

    @classmethod
    def of(
        cls,
        sample: Sample,
        privacy: object,
        deviation: float,
        radius: float | None,
        center: "ArrayLike",
        beta: float,
        shape: Literal["variance", "gaussian"] = "variance",
    ) -> "Search":
        """Return a search without a budget; if ``radius`` is None, the range of means is unbounded.

        Raises:
            ParameterError: the range is unbounded and the guarantee has no δ, privacy is no
                guarantee, or arguments are out of range.
        """
        name, privacy = sample.function, check_privacy(sample.function, privacy)
        if radius is None and privacy.failing(_THRESHOLDED) is None:
            raise ParameterError(
                f"{name}: expected radius=, half the range of possible means: without one only "
                f"ApproxDP can find the location, got {type(privacy).__name__}"
            )
        half = math.inf if radius is None else positive(name, "radius", radius)
        middle = vector(name, "center", center, sample.rows.shape[1])
        return cls(middle, 1.0, privacy.noise == "laplace", deviation, half, 0.0, beta, shape)

    @property
    def thresholded(self) -> float:
        """The share of δ that is used to hide small counts; zero if the range is bounded."""
        return _THRESHOLDED if math.isinf(self.radius) else 0.0

    def paid(self, budget: Budget) -> "Search":
        """Return the search with the budget of the step "location" as its ``amount``."""
        return replace(self, amount=budget.of_step("location"), delta=budget.threshold_delta)

    @property
    def request(self) -> dict[str, object]:
        """The range of possible means as plain data, which a ledger stores."""
        radius = None if math.isinf(self.radius) else self.radius
        return {"radius": radius, "center": self.center.tolist()}

    @property
    def dim(self) -> int:
        """The number of coordinates."""
        return len(self.center)

    @property
    def width(self) -> float:
        """The width of the bins of the last, finest histogram."""
        return _SHAPES[self.shape][0] * (self.deviation + self._blur)

    @property
    def error(self) -> float:
        """An upper bound on the error of every coordinate, without rounding.

        The bound holds for all coordinates together, except with probability ``beta``.
        """
        return _SHAPES[self.shape][1] * (self.deviation + self._blur)

    @property
    def _blur(self) -> float:
        """The largest effect of rounding on a number in the range when its bin is computed."""
        # two roundings, each relative to the distance from the lower bound
        return 0.0 if math.isinf(self.radius) else 2 * EPS * self._furthest

    @property
    def _furthest(self) -> float:
        """An upper bound on the difference of two numbers in the range."""
        return float(np.abs(self.center).max()) + 2 * self.radius

    def rounding(self, place: Array) -> float:
        """Return an upper bound on the effect of rounding on ``place``, a result of :meth:`find`.

        The bound is infinite if ``place`` has a NaN. Otherwise, it includes the rounding of the
        records, and of the sums and products that give the middle of a bin. A record's rounding is
        relative to its distance from the center, or from the end of a range.
        """
        if np.isnan(place).any():
            return math.inf
        size = float((np.abs(place) + np.abs(self.center)).max())
        return 8 * EPS * (size if math.isinf(self.radius) else size + self._furthest)

    @cached_property
    def levels(self) -> list[tuple[float, int]]:
        """The (width, number of bins) of the histograms to search in turn, the coarsest first."""
        levels, radius = [], self.radius
        while True:
            # the cap exceeds the bins of all levels together; larger numbers would overflow
            bins = max(math.ceil(min(2 * radius / self.width, 1e300)), 1)
            if bins <= _LEVEL:
                return [*levels, (self.width, bins)]
            coarse = 2 * radius / _LEVEL
            levels.append((coarse, _LEVEL))
            radius = coarse / 2 + self.error
            if len(levels) > _MOST_LEVELS:
                raise ParameterError(
                    f"coarse location: expected a range of at most {_LEVEL}^{_MOST_LEVELS} bins; "
                    "hint: a smaller radius"
                )

    def draws(self, n: int) -> int:
        """Return an upper bound on the number of noises that a search of n records draws."""
        bins = n if math.isinf(self.radius) else sum(bins for _, bins in self.levels)
        return self.dim * bins

    def _part(self, whole: float, parts: int) -> float:
        """Return ``whole / parts``, rounded down, so that parts add up to at most ``whole``."""
        part = rounded_down(Fraction(whole) / parts)
        if not part > 0:
            raise ParameterError(
                f"coarse location: expected a budget for {parts} steps, got {whole:.3g}"
            )
        return part

    @property
    def _unbounded(self) -> tuple[float, float]:
        """The ρ and the δ that each coordinate may cost if the range is unbounded."""
        return self._part(self.amount, self.dim), self._part(self.delta, self.dim)

    def _needed_lead(self, n: int) -> float:
        """Return by how many records, in expectation, a right bin must exceed every wrong bin."""
        # Hoeffding's inequality for a difference of two counts: with probability at most
        # exp(−t²/2n) = β/4 it is below its mean by t. For "variance", one such event covers all
        # wrong bins together. For "gaussian", one wrong bin may be just further away than 2
        # deviations; all other bins on a side together have n/8 fewer records, and so win with
        # probability at most β/8, since n >= t/lead.
        if math.isinf(self.radius):
            beta = self.beta / self.dim
            fall, _ = fullest_of_any_needs(n, *self._unbounded, beta / 2)
            return fall + 2 * math.sqrt(n * math.log(4 / beta) / 2)
        steps = self.dim * len(self.levels)
        beta = self.beta / steps
        fall = max(
            fullest_shortfall(bins, self._part(self.amount, steps), beta / 2, pure=self.pure)
            for _, bins in self.levels
        )
        return fall + 2 * math.sqrt(n * math.log(4 / beta) / 2)

    def _enough(self, n: int) -> bool:
        lead = _SHAPES[self.shape][2]
        if n * lead < self._needed_lead(n):
            return False
        if math.isinf(self.radius):
            beta = self.beta / self.dim
            least = fullest_of_any_needs(n, *self._unbounded, beta / 2)[1]
            return n * lead >= least
        return True

    def check(self, sample: Sample) -> None:
        """Raise ParameterError if there are too few records, or people, for the bound on the error.

        Raises:
            ParameterError: there are too few; the message says how many are needed.
        """
        function, n, unit = sample.function, len(sample.rows), sample.units
        if self.shape == "gaussian" and self._blur > _MOST_BLUR * self.deviation:
            raise ParameterError(
                f"{function}: expected sigma of at least {self._blur / _MOST_BLUR:.3g}, got "
                f"{self.deviation:g}: floats are too coarse for it in so large a range; hint: a "
                "smaller radius, or numbers minus a public constant"
            )
        if self._enough(n):
            if not (self.pure or math.isinf(self.radius)):
                lattice_query(2, self._part(self.amount, self.dim * len(self.levels)))
            return
        enough = n
        while enough < _MOST_RECORDS and not self._enough(enough):
            enough *= 2
        if enough >= _MOST_RECORDS:
            raise ParameterError(f"{function}: no number of {unit} is enough for so small a budget")
        low = enough // 2
        while enough - low > 1:
            middle = (low + enough) // 2
            low, enough = (low, middle) if self._enough(middle) else (middle, enough)
        raise ParameterError(
            f"{function}: expected at least {enough} {unit} to find the location with this budget, "
            f"got {n}; hint: a smaller range (radius=), a larger beta, or more budget"
        )

    def find(self, rows: Array) -> Array:
        """Return the middle of the chosen bin for every coordinate, shape (d,).

        A coordinate is NaN if its range is unbounded and no count was above the threshold.
        """
        return np.array([self._find_one(rows[:, j], c) for j, c in enumerate(self.center.tolist())])

    def _find_one(self, x: Array, center: float) -> float:
        if math.isinf(self.radius):
            with np.errstate(all="ignore"):
                keys = np.nan_to_num(
                    np.floor((x - center) / self.width),
                    nan=0.0,
                    posinf=_MOST_KEYS,
                    neginf=-_MOST_KEYS,
                )
            keys = np.clip(keys, -_MOST_KEYS, _MOST_KEYS).astype(np.int64)
            key = fullest_of_any(keys, *self._unbounded)
            return math.nan if key is None else center + (key + 0.5) * self.width
        amount = self._part(self.amount, self.dim * len(self.levels))
        for width, bins in self.levels:
            low = center - width * bins / 2
            with np.errstate(all="ignore"):
                cells = np.nan_to_num(
                    np.floor((x - low) / width), nan=bins // 2, posinf=bins - 1, neginf=0
                )
            cells = np.clip(cells, 0, bins - 1).astype(np.int64)
            chosen = fullest(np.bincount(cells, minlength=bins), amount, pure=self.pure)
            center = low + (chosen + 0.5) * width
        return center


def coarse_location(
    data: "ArrayLike",
    privacy: AbstractPrivacy,
    *,
    sigma: float,
    radius: float | None = None,
    center: "ArrayLike" = 0.0,
    beta: float = 0.01,
    on_nonfinite: OnNonfinite = "refuse",
    ledger: object = None,
    id: str | None = None,
) -> Estimate:
    r"""Return the mean of every coordinate, with an error of at most six standard deviations.

    The result is the middle of the fullest bin of a noisy histogram with bins of width ``6 sigma``.
    By Chebyshev's inequality, at least 8/9 of the distribution is within three standard deviations
    of the mean. So a bin near the mean is expected to have more records than each distant bin, by a
    third of all records.

    Formal guarantees:
        * The privacy guarantee, for one record replaced by any other; the number of records is
          public. Replacing one record changes two counts by one each. Under pure privacy, the bin
          is chosen by permute-and-flip, for counts that may rise or fall by one. Under other
          guarantees, discrete Gaussian noise for ℓ2 sensitivity √2 is added to every bin. Without
          ``radius``, it is added to the nonempty bins, and only bins above a threshold are used, at
          the cost of a tenth of δ.
        * Each record is put into a bin independently of other records; counts are integers.

    Args:
        data: records, shape (n,) or (n, d).
        privacy: :class:`PureDP`, :class:`zCDP`, :class:`ApproxDP`, or another guarantee that
            Gaussian noise satisfies.
        sigma: upper bound on the standard deviation of every coordinate. With a larger bound the
            result is still valid, but coarser.
        radius: half the range of possible means; it may be omitted only under :class:`ApproxDP`.
            Ranges of more than 4096 bins are searched by histograms with finer and finer bins.
        center: middle of that range, shape () or (d,).
        beta: probability of a wrong answer.
        on_nonfinite: "refuse" NaN and infinities (a refusal depends on the data), or "clip":
            infinities are counted in the last bins, NaN in the middle.
        ledger: a :class:`Ledger` or its path, charged before anything is drawn.
        id: the name of this estimate in the ledger.

    Returns:
        An :class:`Estimate` whose ``bias_bound`` is 6 sigma plus rounding; NaN for coordinates in
        which no bin passed the threshold.

    Raises:
        ParameterError: there are too few records, and the message says how many are needed; or
            arguments are out of range.
        DataError: data are not real numbers, or have NaN or infinities that are not clipped.

    Source: Karwa & Vadhan (2018), "Finite sample differentially private confidence intervals",
    Algorithm 1; the constants are ours.

    >>> x = np.random.default_rng(0).normal(170, 10, size=2000)
    >>> place = gn.estimators.coarse_location(x, gn.PureDP(1), sigma=20, radius=10_000)
    >>> bool(abs(place.estimate - 170) <= place.bias_bound)
    True
    """
    name = "coarse_location"
    sample = Sample.of(name, data, on_nonfinite, ledger, id)
    deviation, beta = positive(name, "sigma", sigma), chance(name, beta)
    probe = Search.of(sample, privacy, deviation, radius, center, beta)
    draws = probe.draws(len(sample.rows))
    budget = Budget.of(name, privacy, {"location": 1.0}, draws, thresholded=probe.thresholded)
    hunt = probe.paid(budget)
    hunt.check(sample)

    def find() -> Found:
        place = hunt.find(sample.rows)
        error = hunt.error + hunt.rounding(np.nan_to_num(place))
        return Found(place, np.where(np.isnan(place), math.inf, error))

    return sample.published(
        budget,
        find,
        request={"sigma": deviation} | hunt.request | {"beta": beta},
        assumed=f"a standard deviation of at most {deviation:g}"
        + ("" if radius is None else f", a mean within {hunt.radius:g} of the center"),
        beta=beta,
    )
