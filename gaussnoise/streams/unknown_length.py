"""Noise for streams that may end at any tick, and bounds on the cost of an unknown length."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from domains.sets.stream import StreamWorkload

from ..errors import ParameterError
from ..noise.optimal_noise import OptimalNoise
from ..noise.solve import optimal_noise
from .unlimited import UnlimitedTotals
from .workloads import prefix_sums, recurrence

Array = NDArray[np.float64]

_PER_DOUBLING = 2  # lengths per doubling for which the optimum is computed


@final
@dataclass(frozen=True, eq=False)
class UnknownLength:
    """Noise for the running totals of a stream that may end at any tick up to a largest length.

    At each tick t, the standard deviation is divided by that of the best noise for a stream of
    known length t. The largest of these ratios, over all t, is as small as possible.

    Attributes:
        lengths: the lengths at which the best noise of known length was computed, shape (m,),
            ending with the largest length.
        known: certified lower bounds on the largest standard deviation of that best noise, at
            sensitivity 1, shape (m,).
        targets: ``known`` interpolated to all ticks, shape (n,); the standard deviation of the
            noise should be proportional to it.
        workload: the running totals, each divided by its target; :func:`noise` makes a generator of
            few states for it.
        noise: the certified optimal noise of ``workload`` at p = ∞. No running total has a standard
            deviation above ``noise.gamma`` times its target, and for every noise of sensitivity 1,
            some total has at least ``noise.gamma_lower`` times its target.
        standard_deviation: the standard deviation of every running total at sensitivity 1, shape
            (n,).

    >>> found = gn.streams.unknown_length(16)
    >>> print(found.lengths[-1], f"{found.price:.3f}")
    16 1.182
    """

    lengths: NDArray[np.intp]
    known: Array
    targets: Array
    workload: StreamWorkload
    noise: OptimalNoise
    standard_deviation: Array

    @property
    def price(self) -> float:
        """The largest value of ``standard_deviation / known`` over the lengths in ``lengths``.

        This ratio is an upper bound, at these lengths, on the cost of an unknown length.
        """
        return float((self.standard_deviation[self.lengths - 1] / self.known).max())

    def __str__(self) -> str:
        forever = UnlimitedTotals().standard_deviation(int(self.lengths[-1]))
        doubled = np.sqrt(_doubling(self.lengths, self.known))
        lines = [
            f"Running totals of at most {self.lengths[-1]} ticks that may end at any of them; "
            "noise of sensitivity 1.",
            f"Not knowing the length costs at most a factor {self.price:.4g} of standard "
            "deviation at these lengths; "
            f"no noise stays below {self.noise.gamma_lower:.4g} times the targets at all ticks.",
            "  ticks   known length   unknown length   doubling   without end",
        ]
        for length, known, twice in zip(self.lengths, self.known, doubled, strict=True):
            here = self.standard_deviation[length - 1]
            lines.append(
                f"{length:>7}{known:>15.5g}{here:>17.5g}{twice:>11.5g}{forever[length - 1]:>14.5g}"
            )
        return "\n".join(lines)


def unknown_length(ticks: int) -> UnknownLength:
    """Return the best noise for running totals of a stream that may end at any tick.

    Let γ(t) be the largest standard deviation of a total under the best noise for known length t.
    The standard deviation of the returned noise is about the same multiple of γ(t) at all t. This
    noise is a certified optimum, since the totals divided by γ(t) are a workload over time. For
    1024 ticks the multiple is 1.25; starting new noise at ticks 1, 2, 4, … would have a multiple of
    2.05.

    Args:
        ticks: the largest length, at least 2. If it is ten times larger, errors increase little.

    Raises:
        ParameterError: there are fewer than two ticks.

    Source: found for this package; Jacobsen & Fawaz (2025) for streams without any end
    (:class:`UnlimitedTotals`).

    >>> any_length = gn.streams.unknown_length(64)
    >>> print(f"{any_length.price:.3f}")
    1.219
    """
    if isinstance(ticks, bool) or not isinstance(ticks, int | np.integer) or ticks < 2:
        raise ParameterError(f"unknown_length: expected at least 2 ticks, got {ticks!r}")
    doublings = math.log2(ticks)
    lengths = np.unique(np.rint(2 ** np.arange(0, doublings, 1 / _PER_DOUBLING)).astype(np.intp))
    lengths = np.append(lengths[lengths < ticks], ticks)
    known = np.array(
        [
            optimal_noise(prefix_sums(int(t)), math.inf, neighbors="add-remove").gamma_lower
            for t in lengths
        ]
    )
    targets = np.interp(np.log(np.arange(1, ticks + 1)), np.log(lengths), known)
    # the bands of (D⁻¹ A)⁻¹ = A⁻¹ D, where D is the diagonal matrix of the targets
    workload = recurrence(ticks, [targets, np.concatenate([[0.0], -targets[:-1]])])
    noise = optimal_noise(workload, math.inf, neighbors="add-remove")
    return UnknownLength(
        lengths=lengths,
        known=known,
        targets=targets,
        workload=workload,
        noise=noise,
        standard_deviation=targets * noise.covariance.standard_deviation(),
    )


def _doubling(lengths: NDArray[np.intp], known: Array) -> Array:
    """Return variances of running totals at ``lengths`` if new noise starts at ticks 1, 2, 4, …."""
    # each part between two starts has the best noise for its length, and variances of parts add up
    at = np.log2(lengths)

    def variance(length: int) -> float:
        return float(np.interp(math.log2(length), at, known)) ** 2

    totals = []
    for length in lengths.tolist():
        parts, part = 0.0, 1
        while length > part:
            parts, length, part = parts + variance(part), length - part, 2 * part
        totals.append(parts + variance(part if part <= lengths[-1] else int(lengths[-1])))
    return np.array(totals)
