"""Gaussian confidence intervals, by the same rule for every release."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy

from domains.floats import Array

from ..errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class ConfidenceInterval(NamedTuple):
    """The lower and upper ends of intervals: two arrays, shaped like the estimate.

    >>> import pyarrow as pa
    >>> people = pa.table({"sex": ["F", "M", "F"] * 400, "age": [7, 33, 61] * 400})
    >>> schema = gn.Schema(
    ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 40, 65])]
    ... )
    >>> release = gn.plan(schema, 2, gn.zCDP(0.1)).release(people)
    >>> interval = release["sex",].confidence_interval(0.95)
    >>> (interval.high - interval.low).round(1).tolist()
    [15.2, 15.2]
    """

    low: Array
    high: Array


def quantile(level: float, count: int = 1) -> float:
    """Return the half width of an interval, in standard deviations, at confidence ``level``.

    With ``count`` > 1, intervals are simultaneous for that many Gaussians with any correlations, by
    Šidák's inequality (1967), which is conservative.
    """
    if not 0 < level < 1:
        raise ParameterError(
            f"confidence_interval: expected 0 < level < 1, got {level!r}; hint: 0.95"
        )
    return float(-scipy.special.ndtri(-np.expm1(np.log(level) / max(count, 1)) / 2))


def confidence_interval(
    estimate: Array, sd: Array, level: float, simultaneous: bool
) -> ConfidenceInterval:
    """Return the intervals ``estimate ± quantile · sd`` of Gaussian estimates, each at ``level``.

    If ``simultaneous``, the probability that all intervals contain their true values is at least
    ``level``.
    """
    half = quantile(level, np.size(estimate) if simultaneous else 1) * sd
    return ConfidenceInterval(estimate - half, estimate + half)


def ratio_interval(
    x: Array,
    g: Array,
    variance: Array,
    covariance: Array,
    divisor_variance: Array,
    squared: float,
    ends: tuple[float, float],
) -> ConfidenceInterval:
    """Return intervals for the ratios ``E x / E g`` of the means of Gaussians (Fieller 1954).

    An interval contains every p within ``ends`` for which ``x − p g`` is at most ``√squared`` of
    its standard deviations from zero. If g is not clearly positive, the interval is all of
    ``ends``.

    Args:
        x: the numerator.
        g: the divisor; its mean is positive.
        variance: the variance of x.
        covariance: the covariance of x and g.
        divisor_variance: the variance of g.
        squared: the half width in standard deviations, squared.
        ends: known lower and upper bounds on the ratio.
    """
    # the ends solve a p² − 2 b p + c = 0
    a = g**2 - squared * divisor_variance
    b = x * g - squared * covariance
    c = x**2 - squared * variance
    with np.errstate(divide="ignore", invalid="ignore"):
        half = np.sqrt(np.maximum(b**2 - a * c, 0)) / a
        low, high = b / a - half, b / a + half
    known = (a > 0) & (g > 0)
    return ConfidenceInterval(
        np.where(known, np.clip(low, *ends), ends[0]),
        np.where(known, np.clip(high, *ends), ends[1]),
    )


class Contrast(NamedTuple):
    """A linear combination of released numbers, with the exact standard deviation of its noise.

    >>> import pyarrow as pa
    >>> people = pa.table({"sex": ["F", "M", "F"] * 400, "age": [7, 33, 61] * 400})
    >>> schema = gn.Schema(
    ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 40, 65])]
    ... )
    >>> release = gn.plan(schema, 2, gn.zCDP(0.1)).release(people)
    >>> more = release.contrast({("sex",): [1, -1]})  # women less men
    >>> print(f"{more.standard_deviation:.2f}")
    5.48
    """

    estimate: float
    standard_deviation: float

    def confidence_interval(self, level: float = 0.95) -> ConfidenceInterval:
        """Return an interval that contains the true value with probability ``level``."""
        return confidence_interval(
            np.asarray(self.estimate), np.asarray(self.standard_deviation), level, False
        )


class Contrasts(NamedTuple):
    """Linear combinations of released numbers, with the exact covariance of their noise.

    The estimate has shape (k,), and the covariance (k, k).

    >>> pair = Contrasts(np.array([10.0, 40.0]), np.array([[4.0, 1.0], [1.0, 9.0]]))
    >>> pair.standard_deviation.tolist()
    [2.0, 3.0]
    >>> low, high = pair.confidence_interval(0.95, simultaneous=True)
    >>> high.round(2).tolist()
    [14.47, 46.71]
    """

    estimate: Array
    covariance: Array

    @property
    def standard_deviation(self) -> Array:
        """The standard deviation of every combination, shape (k,)."""
        return np.sqrt(np.diagonal(self.covariance))

    def confidence_interval(
        self, level: float = 0.95, simultaneous: bool = False
    ) -> ConfidenceInterval:
        """Return intervals that contain the true values, each with probability ``level``.

        If ``simultaneous``, the probability that all intervals contain their true values is at
        least ``level``, for any correlations (Šidák 1967).

        Returns:
            ``(low, high)``, arrays of shape (k,).

        Raises:
            ParameterError: level outside (0, 1).
        """
        return confidence_interval(self.estimate, self.standard_deviation, level, simultaneous)

    def plot(self, names: Sequence[str] | None = None, level: float = 0.95) -> "Figure":
        """Return a plot with a dot and an interval for every combination.

        Args:
            names: one name for each combination; by default, numbers from 1.
            level: confidence level of the intervals.

        Returns:
            A matplotlib Figure; save it with ``.savefig(path)``.

        Raises:
            ParameterError: level outside (0, 1), or another number of names.

        >>> pair = Contrasts(np.array([10.0, 40.0]), np.array([[4.0, 1.0], [1.0, 9.0]]))
        >>> [label.get_text() for label in pair.plot(["here", "there"]).axes[0].get_yticklabels()]
        ['here', 'there']
        """
        from ..drawing import dotted_height, dotted_rows, new_figure

        listed = [str(k + 1) for k in range(len(self.estimate))] if names is None else list(names)
        if len(listed) != len(self.estimate) or isinstance(names, str):
            raise ParameterError(
                f"plot: expected {len(self.estimate)} names, one for each combination, got "
                + ("a text" if isinstance(names, str) else f"{len(listed)}")
            )
        low, high = self.confidence_interval(level)
        figure = new_figure(7, dotted_height(len(listed)))
        axes = figure.subplots()
        dotted_rows(axes, listed, self.estimate, low, high)
        axes.set_xlabel(f"estimate and {100 * level:g} % interval, each alone")
        return figure
