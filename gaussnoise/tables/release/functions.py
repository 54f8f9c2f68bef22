"""Functions of released numbers, with intervals from the exact distribution of their noise."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from domains.tables.clipped import Clipped

from ...errors import ParameterError
from ...layout import fitted
from ...numerics.intervals import ConfidenceInterval, quantile
from ...numerics.polynomials import Quadratic, Rational, algebraic, quadratic, unbiased
from ...numerics.quadratic_forms import QuadraticRatio, quadratic_near, standard
from ...numerics.together import at_all
from ...text import between_text, has_interval
from ..schema.schema import Category
from .contrasts import Weights, cell
from .forms import Function, side_by_side
from .noisy import AbstractRelease
from .show import first
from .sums import check_no_number, clipped_number
from .table import AbstractEstimates
from .tidy import LEVEL, level_text

Array = NDArray[np.float64]

_MOST_NUMBERS = 400  # most numbers in a function, since the time grows with their cube
_WITH_SQUARES = 'hint: base={"kind": "moments", "degrees": [0, 1, 2]} of the attribute'
_NONE = "no interval: the noise is too large for this function; within it "
_ROUNDING = 1e-12  # smaller changes, relative to the function's value, are rounding errors
_MOST_BENT = 0.2  # most standard deviations between a function and its quadratic approximation


@final
@dataclass(frozen=True, eq=False)
class FunctionEstimate:
    """A function of released numbers: an estimate and the method of its intervals.

    The intervals are for the function of the data, not of a population from which they are drawn.

    Attributes:
        estimate: unbiased for polynomials; for a ratio of two polynomials, the ratio of unbiased
            estimates; for other functions, corrected for the bias of second order.
        standard_deviation: the estimated standard deviation of the estimate, due to noise.
        method: how intervals are found, in words.
        private: False for simulations, whose numbers must not be published.

    >>> import pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("town", ["A", "B", "C"])])
    >>> people = pa.table({"town": ["A", "B", "A", "C"] * 300})
    >>> release = gn.plan(schema, 1, gn.zCDP(0.5)).release(people)
    >>> share = release.function(lambda n: n[0] / n.sum(), "town")
    >>> print(share.method)
    a ratio of linear forms: exact (Fieller 1954)
    """

    estimate: float
    standard_deviation: float
    method: str
    private: bool
    _ratio: QuadraticRatio | None = field(repr=False)

    def confidence_interval(self, level: float = LEVEL) -> ConfidenceInterval:
        """Return an interval that contains the function of the data with probability ``level``.

        A bound is infinite if the noise allows no finite bound.

        Raises:
            ParameterError: level outside (0, 1).
        """
        quantile(level)  # refuses a level outside (0, 1)
        low, high = (-math.inf, math.inf) if self._ratio is None else self._ratio.interval(level)
        return ConfidenceInterval(np.asarray(low), np.asarray(high))

    def __str__(self) -> str:
        low, high = self.confidence_interval()
        said = f"{self.estimate:.6g} ± {self.standard_deviation:.4g}"
        if has_interval(np.asarray(self.estimate), low, high):
            ends = (first(end, 6)[0] for end in (low, high))
            said += f", {level_text(LEVEL)} interval {between_text(*ends)}"
        said += f"\n{fitted(self.method)}"
        return said if self.private else f"{said}\nNOT PRIVATE: a simulation"


def function(release: AbstractRelease, f: Callable[..., Any], *tables: Any) -> FunctionEstimate:
    """Return the estimate of a function of released numbers, with its interval.

    If f only adds, multiplies, divides and takes integer powers, calling f on symbols shows that it
    is a ratio of polynomials. If both polynomials have degree two at most, the interval contains
    each value r for which a test does not reject the hypothesis "numerator − r · denominator is 0".
    The test uses the distribution of a quadratic form. It is exact for linear forms and their
    ratios (Fieller 1954), and nearly exact for other polynomials and ratios. All other functions
    are approximated by quadratic functions in the range of the noise. There is no interval if the
    approximation is not close enough.

    Args:
        release: the release that is asked.
        f: a function of one array per table, of the table's shape, that returns one number. It may
            be called with objects that support only arithmetic, in place of numbers.
        tables: names of released tables, ``"sex"`` or ``("sex", "age")``; tables of this release,
            such as ``release.sums("pay", given="sex")``, means or shares; or weights as for
            :meth:`contrast`, which give one number.

    Returns:
        A :class:`~gaussnoise.results.FunctionEstimate`.

    Raises:
        ParameterError: no tables, more than 400 numbers in them, or an f that does not return one
            number.

    >>> import pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("job", ["yes", "no"])])
    >>> people = pa.table({"sex": ["F", "M", "F"] * 4000, "job": ["yes", "yes", "no"] * 4000})
    >>> release = gn.plan(schema, 2, gn.zCDP(0.5)).release(people)
    >>> concentration = release.function(lambda n: (n**2).sum() / n.sum() ** 2, "sex")  # 5/9
    >>> low, high = concentration.confidence_interval(0.999999)
    >>> bool(low < 5 / 9 < high), concentration.method
    (True, 'a ratio of quadratic forms: by their law (saddle point, Lugannani & Rice 1980)')
    """
    if not callable(f) or not tables:
        raise ParameterError(
            "function: expected a function and the tables that it takes, got "
            f'{type(f).__name__} and {len(tables)} tables; hint: function(f, "sex", …)'
        )
    found = [_forms_of(release, table) for table in tables]
    size = sum(len(numbers.forms) for numbers, _, _ in found)
    if size > _MOST_NUMBERS:
        raise ParameterError(
            f"function: expected at most {_MOST_NUMBERS} released numbers, got {size}; hint: "
            "tables of fewer attributes"
        )
    joint = side_by_side(*(numbers for numbers, _, _ in found)).joint()
    ends = np.cumsum([len(numbers.forms) for numbers, _, _ in found])[:-1]

    def of_all(x: NDArray[Any]) -> object:
        parts = zip(found, np.split(x, ends), strict=True)
        return f(*(own(part).reshape(shape) for (_, own, shape), part in parts))

    y, covariance = joint.estimate, joint.covariance
    rational = algebraic(of_all, y)
    if rational is not None:
        top, bottom = (quadratic(terms, size) for terms in (rational.top, rational.bottom))
        if top is not None and bottom is not None:
            ratio = QuadraticRatio(top, bottom, y, covariance)
            return _estimate(release, ratio.estimate, ratio, _method(top, bottom))
    return _approximated(release, of_all, rational, y, covariance)


def variance(release: AbstractRelease, name: str, /, **groups: Category) -> FunctionEstimate:
    """Return the variance of a clipped number: ``release.variance("pay", sex="F")``.

    The variance is the mean squared distance of clipped values from their mean, over the records
    that have a number.

    Args:
        release: the release that is asked.
        name: an attribute with ``clip`` whose squares the schema declares.
        groups: a category of each attribute that selects records; none for all records.

    Returns:
        A :class:`~gaussnoise.results.FunctionEstimate`, in the unit of the number squared.

    Raises:
        ParameterError: no clipped number, no squares of it, unknown labels, or a table that was not
            released.

    >>> import pyarrow as pa
    >>> pay = gn.Attribute("pay", clip=[0, 40], base={"kind": "moments", "degrees": [0, 1, 2]})
    >>> release = gn.plan(gn.Schema([pay]), ["pay"], gn.zCDP(0.5)).release(
    ...     pa.table({"pay": [10.0, 30.0] * 20000})
    ... )
    >>> low, high = release.variance("pay").confidence_interval(0.999999)
    >>> bool(low < 100 < high), bool(high - low < 2)
    (True, True)
    """
    return variance_within(release, name, cell(release, **groups))


def variance_within(release: AbstractRelease, name: str, within: Weights) -> FunctionEstimate:
    """Return the variance of a clipped number over the records in some cells of one table.

    A clipped number has a public interval, and values outside are moved to the nearer bound.
    ``within`` is {attribute names: weight of each cell}, with weight 1 for cells that are included.
    """
    (i,) = release.plan.subset((name,))
    base = release.plan.schema.attributes[i].base
    if not isinstance(base, Clipped) or not base.squares:
        raise ParameterError(
            f"variance: expected a clipped number with squares, got {name!r}; {_WITH_SQUARES}"
        )
    ((names, own),) = within.items()
    moments = [{(*names, name): np.multiply.outer(own, row)} for row in powers(base)]
    width = base.high - base.low

    def of_moments(count: Any, total: Any, squares: Any) -> Any:
        return width**2 * (squares * count - total * total) / count**2

    return function(release, of_moments, *moments)


def covariance_of(
    release: AbstractRelease, one: str, other: str, /, **groups: Category
) -> FunctionEstimate:
    """Return the covariance of two clipped numbers: ``release.covariance_of("pay", "hours")``.

    The covariance is the mean of the product minus the product of the means, for clipped values.
    All means are over the records that have both numbers.

    Args:
        release: the release that is asked.
        one: an attribute with ``clip``.
        other: another one, in the same table.
        groups: a category of each attribute that selects records; none for all records.

    Returns:
        A :class:`~gaussnoise.results.FunctionEstimate`, in the product of the units of both
        numbers.

    Raises:
        ParameterError: no clipped numbers, unknown labels, or a table that was not released.

    >>> import pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("pay", clip=[0, 40]), gn.Attribute("age", clip=[0, 80])])
    >>> people = pa.table({"pay": [10.0, 30.0] * 20000, "age": [20.0, 60.0] * 20000})
    >>> release = gn.plan(schema, [("pay", "age")], gn.zCDP(0.5)).release(people)
    >>> low, high = release.covariance_of("pay", "age").confidence_interval(0.999999)
    >>> bool(low < 200 < high), bool(high - low < 5)
    (True, True)
    """
    return covariance_within(release, one, other, cell(release, **groups))


def covariance_within(
    release: AbstractRelease, one: str, other: str, within: Weights
) -> FunctionEstimate:
    """Return the covariance of two clipped numbers over the records in some cells of a table.

    A clipped number has a public interval, and values outside are moved to the nearer bound.
    ``within`` is {attribute names: weight of each cell}, with weight 1 for cells that are included.
    """
    moments, (width, height) = _pair_moments(release, "covariance_of", (one, other), within, 1)

    def of_moments(count: Any, first: Any, second: Any, both: Any) -> Any:
        return width * height * (both * count - first * second) / count**2

    return function(release, of_moments, *moments)


def correlation(
    release: AbstractRelease, one: str, other: str, /, **groups: Category
) -> FunctionEstimate:
    """Return the correlation of two clipped numbers: ``release.correlation("pay", "hours")``.

    The correlation is that of clipped values, over the records that have both numbers.

    Args:
        release: the release that is asked.
        one: an attribute with ``clip`` whose squares the schema declares.
        other: another one, in the same table.
        groups: a category of each attribute that selects records; none for all records.

    Returns:
        A :class:`~gaussnoise.results.FunctionEstimate`, usually between -1 and 1.

    Raises:
        ParameterError: no clipped numbers, no squares of them, unknown labels, or a table that was
            not released.

    >>> import pyarrow as pa
    >>> moments = {"kind": "moments", "degrees": [0, 1, 2]}
    >>> names = ["pay", "age"]
    >>> schema = gn.Schema([gn.Attribute(name, clip=[0, 80], base=moments) for name in names])
    >>> people = pa.table({"pay": [10.0, 30.0, 50.0] * 20000, "age": [20.0, 40.0, 30.0] * 20000})
    >>> release = gn.plan(schema, [("pay", "age")], gn.zCDP(0.5)).release(people)
    >>> low, high = release.correlation("pay", "age").confidence_interval(0.999999)
    >>> bool(low < 0.5 < high), bool(high - low < 0.1)
    (True, True)
    """
    return correlation_within(release, one, other, cell(release, **groups))


def correlation_within(
    release: AbstractRelease, one: str, other: str, within: Weights
) -> FunctionEstimate:
    """Return the correlation of two clipped numbers over the records in some cells of a table.

    A clipped number has a public interval, and values outside are moved to the nearer bound.
    ``within`` is {attribute names: weight of each cell}, with weight 1 for cells that are included.
    """
    moments, _ = _pair_moments(release, "correlation", (one, other), within, 2)

    def of_moments(n: Any, x: Any, y: Any, xy: Any, xx: Any, yy: Any) -> Any:
        return (xy * n - x * y) / ((xx * n - x * x) * (yy * n - y * y)) ** 0.5

    return function(release, of_moments, *moments)


def _pair_moments(
    release: AbstractRelease, asked: str, names: tuple[object, object], within: Weights, most: int
) -> tuple[Sequence[Mapping], Sequence[float]]:
    """Return the weights of cells that give two numbers' moments, and the intervals' lengths."""
    bases = [clipped_number(release, asked, name)[1] for name in names]
    if names[0] == names[1]:
        raise ParameterError(
            f"{asked}: expected two clipped numbers, got {names[0]!r} twice; hint: variance"
        )
    for name, base in zip(names, bases, strict=True):
        if most > 1 and not base.squares:
            raise ParameterError(
                f"{asked}: expected clipped numbers with squares, got {name!r}; {_WITH_SQUARES}"
            )
    first, second = (powers(base) for base in bases)
    ((own, cells),) = within.items()
    # count, sums, product, and squares if most is 2: moments of t = (value − low) / (high − low),
    # so that no digits are lost if the interval is far from zero
    degrees = [(0, 0), (1, 0), (0, 1), (1, 1), *[(2, 0), (0, 2)] * (most > 1)]
    moments = [
        {(*own, *names): np.multiply.outer(cells, np.multiply.outer(first[j], second[k]))}
        for j, k in degrees
    ]
    return moments, [base.high - base.low for base in bases]


def powers(base: Clipped) -> Array:
    """Return the weights that turn the cells of a clipped number into sums of powers of t.

    Here t is the relative position of the number in its interval, from 0 to 1. There is a row of
    weights for the sum of t⁰ (the count), one for the sum of t, and one for the sum of t² if the
    schema declares squares; shape (powers, cells).
    """
    rows = [[1.0, 1.0, 1.0], [0.0, 0.5, 1.0], [0.0, 0.0, 1.0]]
    rows = rows if base.squares else [[1.0, 1.0], [0.0, 1.0]]
    weights = np.zeros((len(rows), base.size))
    weights[:, : len(rows[0])] = rows
    return weights


def _forms_of(
    release: AbstractRelease, table: Any
) -> tuple[Function, Callable[[NDArray[Any]], NDArray[Any]], tuple[int, ...]]:
    """Return linear forms of cells, a function from them to a table, and the table's shape."""
    if isinstance(table, Mapping):
        return Function([(release, table)], lambda x: (x, np.eye(len(x)))), lambda x: x, ()
    if not isinstance(table, AbstractEstimates):
        check_no_number(release, "function", table)
        table = release[table]
    forms = table.at(list(np.ndindex(table.estimate.shape))).forms
    own: Any = table.forms  # not None, since cells were found
    if any(source is not release for source, _ in forms):
        raise ParameterError(
            "function: expected tables of this release, got one of another; hint: combine([…]) or "
            "difference(…) compare releases"
        )

    def numbers(x: NDArray[Any]) -> NDArray[Any]:
        if own.bottom is None:
            return x if own.scale == 1 else own.scale * x
        top, bottom = np.split(x, 2)
        return own.shift + own.scale * (top / bottom)

    return Function(forms, lambda x: (x, np.eye(len(x)))), numbers, table.estimate.shape


def _method(top: Quadratic, bottom: Quadratic) -> str:
    """Return a text that says how the intervals of the ratio ``top`` / ``bottom`` are found."""
    linear = not (top.square.any() or bottom.square.any())
    if not (bottom.square.any() or bottom.linear.any()):
        if linear:
            return "a linear form: exact"
        return "a quadratic form: by its law (saddle point, Lugannani & Rice 1980)"
    if linear:
        return "a ratio of linear forms: exact (Fieller 1954)"
    return "a ratio of quadratic forms: by their law (saddle point, Lugannani & Rice 1980)"


def _estimate(
    release: AbstractRelease, estimate: float, ratio: QuadraticRatio | None, method: str
) -> FunctionEstimate:
    sd = math.nan if ratio is None else ratio.standard_deviation
    return FunctionEstimate(estimate, sd, method, release.private, ratio)


def _approximated(
    release: AbstractRelease,
    f: Callable[[Array], Any],
    rational: Rational | None,
    y: Array,
    covariance: Array,
) -> FunctionEstimate:
    """Return the estimate of ``f``, approximated by a quadratic function in the noise's range."""
    root, _ = standard(y, covariance)
    count = root.shape[1]
    with np.errstate(all="ignore"):  # noise may reach numbers at which f is not defined
        near, far = quadratic_near(lambda steps: at_all(f, y[:, None] + steps, _number), root)
    if not all(np.isfinite(part).all() for part in (*near, far)):
        return _estimate(release, near.constant, None, f"{_NONE}it is not defined everywhere")
    ratio = QuadraticRatio(near, Quadratic.one(count), np.zeros(count), np.eye(count))
    estimate = ratio.estimate
    if rational is not None and set(rational.bottom) == {()}:
        estimate = float(unbiased(rational.top, y, covariance)) / rational.bottom[()]
    sd = ratio.standard_deviation
    # no interval, as f is not close to a quadratic function
    if far > max(_MOST_BENT * sd, _ROUNDING * abs(near.constant)):
        differs = "it changes by steps"
        if sd:
            differs = f"it differs from a quadratic one by {far / sd:.2g} of its deviations"
        return _estimate(release, estimate, None, f"{_NONE}{differs}")
    method = "by the quadratic function that is nearly the same within the noise"
    return _estimate(release, estimate, ratio, method)


def _number(value: Any) -> float:
    """Return the single number that a user's function returned, or raise ParameterError."""
    try:
        # by default, None would become NaN, and complex numbers their real parts
        (number,) = np.asarray(value).astype(np.float64, casting="same_kind").ravel()
    except (TypeError, ValueError):
        raise ParameterError(
            f"function: expected a function that returns one number, got {type(value).__name__}"
        ) from None
    return float(number)
