"""Released numbers compared with a recount of the data, by the distribution of the noise.

Let u be the number of integer units of a row, and B the largest weight. Let s_T be the multiplier
and C_i the contrasts of the query, and σ the scale of its noise. Let x be the difference of the
released and the recounted table of an attribute set S. For T ⊆ S, the measurements differ by
``d_T = (u s_T / B σ) ⊗_{i∈T} C_i x``, summed over S∖T. This d_T is the noise of the integers on T,
divided by σ. If C_i is nI − 11', tables determine only the projection of this noise. So for a
correct release, the ``Q_T = ‖d_T‖²`` are independent and χ² distributed with Π (n_i − 1) degrees of
freedom.

Formal guarantees:
    * A correct release fails with probability at most ``level``. Half of the level is divided
      evenly among all Q_T, and half is for their sum. Half of each part is for values that are too
      large, and half for values that are too small. The noise of integers is discrete Gaussian. The
      bound on its distance from rounded normals
      (:func:`~gaussnoise.privacy.lattice_bound.lattice_distance`) is subtracted from the level.
    * If a person has more records than are counted, the choice among them is unknown, and the
      recount uses its expectation. Let P be the number of such persons, of whom k records each are
      counted, and X_p the counted part of person p. Then the difference has a further part Σ_p (X_p
      − E X_p), independent of the noise. Two choices of one person differ by R_T at most. Here R_T
      is 2k times the length of the longest column of the query (0 for the number of rows). So with
      probability 1 − β, the length of the further part is at most
      ``R (√(P/2) + √(P ln(1/β) / 2))``: its mean is bounded by E‖X − E X‖² <= R²/2, and the rest by
      McDiarmid (1989). Half of the level for too large values is for β, and √Q may exceed its
      quantile by this length. The test for too small values is unchanged: given the further part, Q
      is a noncentral χ², which is stochastically larger than χ².

Let C be the strategy matrix of a stream. The table of tick t is like that of a release with noise
of scale σ |row t of C⁻¹|. This table combines the integers of all ticks so far. The bound on the
distance from rounded normals is for all these integers.

The counts of the test are exact, so the verdict is private: for the owner of the data alone.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ...errors import DataError, ParameterError
from ...privacy.lattice_bound import lattice_distance
from ...solvers.tables.residuals import Subset, part_of, subsets_of
from ...solvers.tables.strategies import AbstractStrategy
from ..counting.impossible import excluded
from ..counting.recount import Recount, recount
from ..planning.measure import Array, ResidualQuery
from ..reading.files import written_in
from .merged import MergedPlan
from .noisy import AbstractRelease
from .publish import limit_of
from .verdict import CLOSE, EXACT, FAR, TOGETHER, TOTAL, Inspection

POWER = 0.999  # probability with which the stated differences are noticed
_FACTORS = (0.9, 1.1)  # factors on the noise's scale whose power is stated
_MOST_SHOWN = 1000  # most categories of an attribute whose power is computed


class _Ends(NamedTuple):
    """The least and the largest squared error of an attribute set with which a release passes."""

    low: float
    high: float
    slack: float  # added to √high: the most that unknown choices among a person's records add


def inspect(release: AbstractRelease, table: object, level: float = 1e-6) -> Inspection:
    """Compare a release with a recount of its data, and return the verdict, which is private.

    ``table`` has the data. A correct release fails with probability at most ``level``.
    """
    if not (isinstance(level, float) and 1e-12 <= level < 1):
        raise ParameterError(f"inspect: expected 1e-12 <= level < 1, got {level!r:.50}")
    over = release.over
    if over is not None and over.tick is None:
        raise ParameterError(
            f"inspect: expected a release, or one tick of a stream, got {over.times}; hint: "
            "stream.tables.period(1), with the table of that tick, and so on"
        )
    if over is not None and over.enforced and over.tick != 1:
        raise ParameterError(
            "inspect: expected tick 1 of a stream that enforces participation, got "
            f"{over.times}: a second count does not know which rows were left out; hint: no file "
            "says which rows the registry leaves out of later ticks"
        )
    if isinstance(release.plan, MergedPlan):
        raise ParameterError(
            "inspect: expected one release, got several combined; hint: inspect each by itself, in "
            "the folder releases/"
        )
    plan, query = release.plan, release.query
    used, more = plan.asked.used, () if over is None else over.columns
    found = recount(
        written_in(table, plan.schema.file),
        [*(plan.schema.attributes[i] for i in used), *more],
        [tuple(used.index(i) for i in S) for S in plan.tables.subsets],
        release.on_outside,
        limit_of(plan),
        plan.weight,
        query.unit,
        excluded(plan.schema, used),
    )
    return verdict(release, found, level)


def verdict(release: AbstractRelease, found: Recount, level: float) -> Inspection:
    """Return the verdict on a release: whether its numbers agree with a recount of its data."""
    plan, query, growth = release.plan, release.query, _relative_noise(release)
    used = plan.asked.used
    scale = query.most / query.unit
    counted = {tuple(used[i] for i in S): own * scale for S, own in found.counts.items()}
    squares: dict[Subset, list[float]] = {T: [] for T in query.multipliers}
    exact = release.on_outside == "drop" or not found.left_out
    for S, counts in counted.items():
        difference = np.asarray(release.tables[S]) - counts
        if not np.isfinite(difference).all():
            raise DataError("inspect: a table of the release has numbers that are not finite")
        exact &= _is_exact(difference, S, query)
        for T in subsets_of(S):
            if T in query.multipliers:
                squares[T].append(_squared_error(difference, S, T, query, growth))
    ranks = {T: math.prod(query.strategies[i].size - 1 for i in T) for T in squares}
    reach = {T: _reach(T, release) for T in squares}
    count = query.count * (1 if release.over is None else release.over.tick or 1)
    ends, together = _ends(ranks, reach, found.crowded, level, query, count)
    names = plan.schema.names
    deviating = {
        " × ".join(names[i] for i in T) or TOTAL: how
        for T, own in sorted(squares.items(), key=lambda item: (len(item[0]), item[0]))
        if (how := _deviation(ends[T], min(own), max(own)))
    }
    least, most = (sum(end(own) for own in squares.values()) for end in (min, max))
    if how := _deviation(together, least, most):
        deviating[TOGETHER] = how
    if not exact:
        deviating[EXACT] = FAR
    lost = 1.0 if plan.has_public_rows else None
    if () in ends:
        lost = _noticed_length(ends[()], 1) * _noise_in_rows(query, (), growth)
    moved = {
        names[T[0]]: _noticed_length(own, ranks[T])
        * _noise_in_rows(query, T, growth)
        * _wrong_rows(query.strategies[T[0]])
        for T, own in ends.items()
        if len(T) == 1
        and query.strategies[T[0]].size <= _MOST_SHOWN
        and plan.schema.attributes[T[0]].unit is None  # no row adds a fixed amount to such a sum
    }
    degrees = sum(ranks.values())
    noise = {factor: _power(together, degrees, factor) for factor in _FACTORS} if squares else {}
    scales = _noticed_scales(together, degrees) if squares else None
    stated = [*moved.values(), *([] if lost is None else [lost])]
    # compared with the released number of rows, hence public
    weak = min(stated, default=0.0) > float(release[()].estimate) / 2
    crowded, sound = found.crowded > 0, not deviating
    return Inspection(sound, level, POWER, lost, moved, noise, scales, crowded, weak, deviating)


def _deviation(ends: _Ends, least: float, most: float) -> str | None:
    """Return FAR if ``most`` is above the bounds, CLOSE if ``least`` is below them, or None."""
    if math.sqrt(most) > math.sqrt(ends.high) + ends.slack:
        return FAR
    return CLOSE if least < ends.low else None


def _is_exact(difference: Array, S: Subset, query: ResidualQuery) -> bool:
    """Return whether the public part of ``difference`` (released − recounted) on S is zero."""
    if () in query.multipliers:
        return True
    known = tuple(i for i in S if i in query.public)
    # it has no noise; the rest of the table adds up to zero, up to rounding
    return bool((np.abs(part_of(difference, S, known)) < 0.5).all())


def _relative_noise(release: AbstractRelease) -> float:
    """Return the standard deviation of tables divided by that of the plan: 1 outside of streams."""
    if release.over is None or not release.query.multipliers:
        return 1.0
    # for tick t, the length of row t of C⁻¹, with the strategy matrix C
    T = next(iter(release.query.multipliers))
    return math.sqrt(release.covariance.variances[T] / release.query.variances[T])


def _squared_error(
    difference: Array, S: Subset, T: Subset, query: ResidualQuery, growth: float = 1.0
) -> float:
    """Return Q_T, the squared length of the error on the attribute set T ⊆ S, in units of noise."""
    values = part_of(difference, S, T)
    for axis, own in enumerate(query.strategies_of(T)):
        values = own.contrast(values, axis)
    return float(np.square(values / _noise_in_rows(query, T, growth)).sum())


def _noise_in_rows(query: ResidualQuery, T: Subset, growth: float = 1.0) -> float:
    """Return the scale of the noise on the attribute set T, as a number of rows."""
    scale = 0.0 if query.query is None else query.query.scale
    return growth * scale * query.most / (query.unit * int(query.multipliers[T]))


def _reach(T: Subset, release: AbstractRelease) -> float:
    """Return the largest effect on T of choosing other records of a person, in units of noise."""
    plan, query = release.plan, release.query
    length = math.prod(math.sqrt(own.square) for own in query.strategies_of(T))
    if not T:  # all choices have the same number of records
        length = 0.0 if plan.weight is None else 0.5
    return (
        2
        * plan.rows_per_person
        * length
        * query.most
        / _noise_in_rows(query, T, _relative_noise(release))
    )


def _ends(
    ranks: Mapping[Subset, int],
    reach: Mapping[Subset, float],
    crowded: int,
    level: float,
    query: ResidualQuery,
    count: int,
) -> tuple[dict[Subset, _Ends], _Ends]:
    """Return the bounds of the squared error Q_T of every attribute set T, and of their sum."""
    # ranks: degrees of freedom of Q_T; reach: R_T; count: integers with noise in the release
    if not ranks or query.query is None:
        return {}, _Ends(0.0, 0.0, 0.0)
    if (distance := lattice_distance(count, query.query.scale)) > level / 2:
        raise ParameterError(
            f"inspect: expected a level of at least {2 * distance:.2g} for the integers of this "
            f"release, which are that far from normal numbers, got {level:g}"
        )
    left = (level - distance) / 4
    one = left / len(ranks)
    own = {T: _quantiles(rank, one, reach[T], crowded) for T, rank in ranks.items()}
    whole = math.hypot(*reach.values())
    return own, _quantiles(sum(ranks.values()), left, whole, crowded)


def _quantiles(rank: int, tail: float, reach: float, crowded: int) -> _Ends:
    """Return bounds of a squared error: quantiles of χ², with probability ``tail`` on each side."""
    from scipy import special

    above, slack = tail, 0.0
    if crowded and reach:
        # half of the upper tail is for the slack: the most that unknown choices of records add
        above = tail / 2
        slack = reach * math.sqrt(crowded / 2) * (1 + math.sqrt(math.log(1 / above)))
    low, high = special.gammaincinv(rank / 2, tail), special.gammainccinv(rank / 2, above)
    return _Ends(2 * float(low), 2 * float(high), slack)


def _noticed_length(ends: _Ends, rank: int) -> float:
    """Return the length of a difference that is noticed with probability :data:`POWER`."""
    from scipy import special

    # the squared length of noise plus difference is noncentral χ²; slack counts twice, as it raises
    # the bound, and an unknown choice of records may shorten the difference by it
    high = (math.sqrt(ends.high) + 2 * ends.slack) ** 2
    # bisection between 0 and a length that is certainly noticed, since Q increases with δ
    low, top = 0.0, math.sqrt(high) + math.sqrt(rank) + 10.0
    for _ in range(60):
        middle = (low + top) / 2
        noticed = special.chndtr(high, rank, middle * middle) <= 1 - POWER
        low, top = (low, middle) if noticed else (middle, top)
    return top


def _wrong_rows(strategy: AbstractStrategy) -> float:
    """Return the number of rows in wrong categories that change a measurement by at least 1."""
    n = strategy.size
    matrix = strategy.contrast(np.eye(n) - 1 / n, 0)
    # N wrong rows change counts by 2N in all, hence by 2N/√n or more in length; least is the
    # least length of C x over unit vectors x whose sum is zero, with the contrasts C
    least = np.linalg.svd(matrix, compute_uv=False)[n - 2]
    return math.sqrt(n) / (2 * float(least))


def _power(ends: _Ends, rank: int, factor: float) -> float:
    """Return the probability that noise of ``factor`` times the stated scale is noticed."""
    from scipy import special

    low, high = _failing_lengths(ends)
    below = special.gammainc(rank / 2, low / factor**2 / 2)
    return float(below + special.gammaincc(rank / 2, high / factor**2 / 2))


def _noticed_scales(ends: _Ends, rank: int) -> tuple[float, float]:
    """Return (low, high): noise scaled by less or by more is noticed with probability POWER."""
    from scipy import special

    low, high = _failing_lengths(ends)
    most, least = (2 * special.gammaincinv(rank / 2, p) for p in (POWER, 1 - POWER))
    return math.sqrt(low / most), math.sqrt(high / least)


def _failing_lengths(ends: _Ends) -> tuple[float, float]:
    """Return bounds; noise with a squared length outside them fails for any choice of rows."""
    low = max(math.sqrt(ends.low) - ends.slack, 0.0)
    return low**2, (math.sqrt(ends.high) + 2 * ends.slack) ** 2
