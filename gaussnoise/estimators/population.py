"""Means of a population, and their changes, from releases of :func:`column_means`."""

from typing import overload

from ..errors import ParameterError
from ..tables.release.difference import Changes
from ..tables.release.mean_changes import MeanChanges, changes_of_means
from ..tables.release.noisy import AbstractRelease
from ..tables.release.population import ColumnMeans, population_of
from ..tables.release.tidy import LEVEL


@overload
def population_means(release: AbstractRelease, level: float = LEVEL) -> ColumnMeans: ...
@overload
def population_means(release: Changes, level: float = LEVEL) -> MeanChanges: ...
def population_means(
    release: AbstractRelease | Changes, level: float = LEVEL
) -> ColumnMeans | MeanChanges:
    """Return the means of a population, or their changes, for releases of :func:`column_means`.

    Args:
        release: the release, which may be a loaded one; or :func:`gaussnoise.difference` of two
            such releases of two independent samples. If the two releases are of the same persons,
            sampling errors are not independent, and intervals of changes do not hold. The two
            releases may have different ranges.
        level: confidence level of each single interval.

    Returns:
        :class:`ColumnMeans`; for a difference, :class:`MeanChanges`.

    Raises:
        ParameterError: a release has no ranges that were found; or ranges are wrong with a
            probability that 1 − level does not allow; or, for changes, releases have no common
            column, different groups, or weights.

    Source: intervals of changes combine the distances of both means from the ends of their own
    intervals (Zou & Donner 2008).

    >>> import pyarrow as pa
    >>> table = pa.table({"age": np.linspace(20, 60, 5000)})
    >>> found = gn.estimators.column_means(table, ["age"], gn.zCDP(1.0))
    >>> again = gn.estimators.population_means(found.release)
    >>> again.means[0].mean == found.means[0].mean
    True
    """
    if isinstance(release, Changes):
        return changes_of_means(release.before, release.after, release.unlike, level)
    if not isinstance(release, AbstractRelease):
        raise ParameterError(
            "population_means: expected a release of column_means, or the difference of two, got "
            f"{type(release).__name__}; hint: found.release, or TableRelease.load(folder)"
        )
    return population_of(release, level)
