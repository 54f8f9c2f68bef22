"""Synthetic records, drawn by mbi from a graphical model of the noisy residuals."""

import contextlib
import io
import logging
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ...errors import NotAvailableError, ParameterError
from ...solvers.tables.residuals import project_zero_sum
from ...solvers.tables.strategies import AbstractStrategy, SolvedStrategy
from ..schema.schema import Attribute, Schema
from .measurements import Measurement, measurements
from .noisy import AbstractRelease
from .shapes import beta, even_shares, exponential

if TYPE_CHECKING:
    import mbi

Array = NDArray[np.float64]

_MOST_RECORDS = 10**8
_DIGITS = 4  # numbers are rounded to a step between 1e-5 and 1e-4 of their interval
_MOST_DECIMALS = 300  # numpy multiplies by a power of ten, which must be finite


class MbiProblem(NamedTuple):
    """The arguments of mbi's estimators, in the order of mbi.

    Use it as ``mbi.estimation.MirrorDescent().estimate(*problem)``.

    Attributes:
        domain: names, sizes and labels; synthetic code k of attribute a means
            ``domain.labels_config[a][k]``.
        measurements: independent noisy residuals. Do not call ``compress`` on them: it would drop
            the projection.
        known_total: the exact number of rows if it is public; None if the total is one of the
            measurements.
    """

    domain: "mbi.Domain"
    measurements: "list[mbi.LinearMeasurement]"
    known_total: float | None


@final
@dataclass(frozen=True)
class ZeroSumQuery:
    """The query of mbi that projects a marginal onto tensors with zero sums along every axis.

    All measurements use one object, so that jax compiles only once.
    """

    def __call__(self, marginal: "mbi.Factor") -> Any:
        """Return the projection of a marginal, as a vector in C order."""
        # a jax array; the projection uses only its methods
        values: Any = marginal.datavector(flatten=False)
        return project_zero_sum(values, range(values.ndim)).reshape(-1)

    def op_norm_sq(self) -> float:
        """Return the square of the query's operator norm, which gives mbi its first step size."""
        return 1.0


@final
@dataclass(frozen=True, eq=False)
class ContrastQuery:
    """The query of mbi that measures a marginal by contrasts (weights that sum to zero).

    The query is a matrix along some axes, and the projection of :class:`ZeroSumQuery` along others.

    Attributes:
        matrices: one per axis, None for the projection.
    """

    matrices: tuple[NDArray[np.float64] | None, ...]

    def __call__(self, marginal: "mbi.Factor") -> Any:
        """Return the answer to the query, given a marginal, as a vector in C order."""
        values: Any = marginal.datavector(flatten=False)
        return self.of(values).reshape(-1)

    def of(self, values: Any) -> Any:
        """Return the answer to the query, given the marginal as an array of numpy or jax."""
        for axis, matrix in enumerate(self.matrices):
            if matrix is None:
                values = project_zero_sum(values, [axis])
            else:  # methods of the array, so that jax can trace them
                values = (values.swapaxes(axis, -1) @ matrix.T).swapaxes(axis, -1)
        return values

    def op_norm_sq(self) -> float:
        """Return the square of the query's operator norm, which gives mbi its first step size."""
        return math.prod(
            float(np.linalg.norm(matrix, 2)) ** 2 for matrix in self.matrices if matrix is not None
        )


def to_mbi(release: AbstractRelease) -> MbiProblem:
    """Return the measurements as input for ``mbi``, which makes synthetic records.

    The records are biased, but have no further privacy cost.
    ``mbi.estimation.MirrorDescent().estimate(*release.to_mbi())`` is a model from which records can
    be drawn.

    Raises:
        NotAvailableError: ``mbi`` is not installed; the message says how to install it.
        ParameterError: the plan has ``public`` attributes, or numbers without an upper bound:
            ``mbi`` can use neither exact tables nor such numbers.
    """
    if release.query.public:
        raise ParameterError(
            "to_mbi: expected a plan without public attributes: models of mbi take noisy "
            "tables, and no exact ones beside the number of rows"
        )
    if release.plan.scales:
        raise ParameterError(
            "to_mbi: expected numbers inside an interval, got some without an upper end; models of "
            "mbi take shares of virtual cells"
        )
    strategies = dict(zip(release.plan.schema.names, release.query.strategies, strict=True))
    return mbi_measurements(measurements(release), release.plan.schema, strategies)


def synthetic(release: AbstractRelease, n: int | None = None) -> Any:
    """Return synthetic records, drawn from a model of the released tables: BIASED.

    A graphical model of ``mbi`` is fitted to the noisy measurements, and records are drawn from the
    model. This is post-processing, at no further privacy cost. Counts of these records are not the
    released estimates, and have no known standard deviation. Relations that are in no released
    table are assumptions of the model, not facts about the data. For numbers with intervals, ask
    the release itself. The records are as private as the release; records of a simulation are not
    private.

    A clipped number lies inside its interval. Take the attributes that are in a table with this
    number, and the records that agree in all these attributes. The numbers of these records have
    the distribution of largest entropy with the model's mean, a falling or rising exponential. If
    the number has squares, they have a Beta distribution with the model's mean and variance. Sums
    and means are about right; with squares, standard deviations are too. All other properties of
    the number, above all its quantiles, follow from this shape, not from the data: compare by
    :meth:`likeness`. A mean that noise moved to a bound or beyond gives numbers at or close to that
    bound. A variance that noise moved to zero or below gives the mean itself. Since an attribute
    has no unit, numbers are rounded to a power of ten, between 1/100,000 and 1/10,000 of the
    interval.

    ``mbi`` draws from numpy's global generator. Nothing private depends on these draws, so you
    may seed that generator to draw the same records again.

    Args:
        release: the release that is asked.
        n: the number of records; about as many as the release estimates if left out.

    Returns:
        A dataframe of the library that the records came in (pyarrow for files and remote
        engines), one column for each released attribute, with its labels: bins as
        ``"[18, 65)"``.

    Raises:
        NotAvailableError: ``mbi`` is not installed; the message says how to install it.
        ParameterError: n is not a positive integer, or a number has no upper bound.

    Source: McKenna, Sheldon & Miklau (2019), see :func:`to_mbi`.
    """
    if n is not None and (type(n) is not int or not 1 <= n <= _MOST_RECORDS):
        raise ParameterError(
            f"synthetic: expected a number of records, from 1 to {_MOST_RECORDS}, got {n!r:.50}"
        )
    try:
        with _quiet():
            import jax
            import mbi
    except ImportError:
        raise NotAvailableError(
            'synthetic: needs mbi; hint: pip install "gaussnoise[synth]"'
        ) from None
    import narwhals as nw
    import pyarrow as pa

    with _quiet(), jax.enable_x64(True):
        # estimate() is annotated without the class of the model
        model: Any = mbi.estimation.MirrorDescent().estimate(*to_mbi(release))
        records = model.synthetic_data(rows=n)
    drawn = [a for a in release.plan.schema.attributes if a.name in records.domain.attributes]
    codes = {a.name: np.asarray(records.data[a.name], dtype=np.int64) for a in drawn}
    columns = []
    for k, a in enumerate(drawn):
        if not a.is_summed:
            columns.append(pa.array(a.labels).take(pa.array(codes[a.name])))
        else:
            chances = _chances(model.potentials.tables, a, codes)
            numbers = _numbers(a, chances, k)
            columns.append(pa.array(numbers, mask=codes[a.name] >= chances.shape[1]))
    rows = pa.table(columns, [a.name for a in drawn])
    return nw.from_arrow(rows, backend=release.backend).to_native()


def mbi_measurements(
    measurements: Iterable[Measurement],
    schema: Schema,
    strategies: Mapping[str, AbstractStrategy] | None = None,
) -> MbiProblem:
    r"""Return noisy residuals as input for mbi, which makes synthetic records.

    See `mbi <https://github.com/ryan112358/mbi>`_.

    Let Π_T be the projection onto tables of the attributes T that sum to zero along each of them.
    The residual y_T is observed with noise N(0, σ_T² Π_T), independently of the others. So mbi's
    loss of a model with marginals x_T,

    .. math:: \tfrac12 \sum_T \|Π_T x_T − y_T\|^2 / σ_T^2,

    is, up to a constant, minus the exact log-likelihood of all released tables together. Synthetic
    records are post-processing: they cost no privacy budget. They are *biased*: counts become
    nonnegative, and relations that no table measured come from the model. Tables counted from them
    have no known standard deviation: take estimates and intervals from the release.

    mbi needs independent noise of one size. Attributes with a solved strategy are measured by
    contrasts B_i that have such noise, ``(⊗_i B_i) x_T``. For other attributes, B_i is the
    projection.

    Args:
        measurements: zero-sum estimates of shape (sizes…), in rows, with their standard deviations.
        schema: the schema of the release. Attributes that no measurement has are left out.
        strategies: the strategy that measured each attribute, by name; all for counts if omitted.

    Returns:
        An :class:`MbiProblem`. mbi recommends the two settings of jax below, before its first
        import. The exact inference of mbi makes one table of all attributes that marginals link:
        all pairs of ten attributes make one table of ten attributes.

    Raises:
        NotAvailableError: mbi is not installed.

    Source: McKenna, Sheldon and Miklau (2019), "Graphical-model based estimation and inference for
    differential privacy", https://arxiv.org/abs/1901.09136.

    >>> import jax
    >>> jax.config.update("jax_enable_x64", True)
    >>> jax.config.update("jax_enable_compilation_cache", False)
    >>> from gaussnoise.tables.release.measurements import Measurement
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
    >>> noisy = [
    ...     Measurement((), np.array(98.0), 2.0),
    ...     Measurement(("sex",), np.array([11.0, -11.0]), 3.0),
    ... ]
    >>> problem = mbi_measurements(noisy, schema)
    >>> import mbi
    >>> model = mbi.estimation.MirrorDescent().estimate(*problem)
    >>> model.project(("sex",)).datavector().round(3)
    Array([60., 38.], dtype=float64)
    """
    try:
        import mbi
    except ImportError:
        raise NotAvailableError(
            'to_mbi: needs mbi; hint: pip install "gaussnoise[synth]"'
        ) from None
    linear, known_total, measured = [], None, set()
    places = {name: i for i, name in enumerate(schema.names)}
    for T, estimate, standard_deviation in measurements:
        measured.update(T)
        if not T and standard_deviation == 0:
            known_total = float(
                round(float(estimate))
            )  # as a count of records, since mbi rounds 99.999… down to 99
        else:
            # mbi estimates the total only from measurements with its own query class
            query, values = ZeroSumQuery() if T else mbi.DatavectorQuery(), estimate
            at = tuple(sorted(places[name] for name in T))
            own = [strategies[name].in_set(at) if strategies else None for name in T]
            matrices = tuple(map(_rows_of_unit_noise, own))
            if any(matrix is not None for matrix in matrices):
                query = ContrastQuery(matrices)
                values = query.of(estimate)
            linear.append(mbi.LinearMeasurement(np.ravel(values), T, standard_deviation, query))
    drawn = [a for a in schema.attributes if a.size == 1 or a.name in measured]
    domain = mbi.Domain([a.name for a in drawn], [a.size for a in drawn], [a.labels for a in drawn])
    return MbiProblem(domain, linear, known_total)


def _rows_of_unit_noise(strategy: AbstractStrategy | None) -> NDArray[np.float64] | None:
    """Return contrasts, scaled so that their noise has unit variance; None for counts."""
    # for counts, the projection of ZeroSumQuery is used
    if not isinstance(strategy, SolvedStrategy):
        return None
    return strategy.measured / math.sqrt(strategy.square)


def _chances(
    potentials: Mapping[tuple[str, ...], "mbi.Factor"],
    attribute: Attribute,
    codes: Mapping[str, NDArray[np.int64]],
) -> Array:
    """Return each record's probabilities of a number's cells, given the record's categories."""
    chances = np.zeros((len(codes[attribute.name]), attribute.size))
    # the model is a product of exponentials: only potentials of tables with this number matter
    for names, potential in potentials.items():
        if attribute.name in names:
            values = np.asarray(potential.datavector(flatten=False), dtype=np.float64)
            values = np.moveaxis(values, names.index(attribute.name), -1)
            chances += values[tuple(codes[name] for name in names if name != attribute.name)]
    virtual = attribute.size - (attribute.other is not None)
    chances = np.exp(chances[:, :virtual] - chances[:, :virtual].max(axis=1, keepdims=True))
    return chances / chances.sum(axis=1, keepdims=True)


def _numbers(attribute: Attribute, chances: Array, column: int) -> Array:
    """Return a number for each record, given ``chances``, the probabilities of its own cells."""
    low, high = attribute.clip or (0.0, 1.0)
    squares = chances.shape[1] == 3  # with weights (1 − t)², 2t(1 − t) and t² on virtual cells
    means = np.minimum(chances[:, 1] / 2 + chances[:, 2], 1.0) if squares else chances[:, 1]
    shares = np.empty(len(means))
    # records with equal means are consecutive, so that they get evenly spread quantiles
    shares[np.argsort(means, kind="stable")] = even_shares(len(means), column)
    places = beta(means, chances[:, 2], shares) if squares else exponential(means, shares)
    decimals = min(_DIGITS - math.floor(math.log10(high - low)), _MOST_DECIMALS)
    return np.clip(np.round(low + (high - low) * places, decimals) + 0.0, low, high)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the output of jax and mbi on devices, precision, caches and progress."""
    logger = logging.getLogger("jax")
    level, silent = logger.level, io.StringIO()
    logger.setLevel(logging.ERROR)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(silent),
            contextlib.redirect_stderr(silent),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
