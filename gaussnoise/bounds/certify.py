"""The public function that certifies strategies for matrices, streams and tables."""

import math
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from domains.domain import AbstractDomain
from domains.errors import InvalidDomainError
from domains.floats import EPS, power_of_two
from domains.participation.patterns import AbstractPatterns
from domains.sets.finite import FiniteSet
from domains.sets.stream import StreamWorkload

from ..errors import ParameterError
from ..noise.covariance import FactorCovariance
from ..noise.patterns import check_participation, dense, participations
from ..noise.policy import PolicyGraph
from ..noise.problem import Problem, Relation
from ..noise.sensitivity import check_relation, covered
from ..noise.solve import check_problem, solved
from ..numerics.feasibility import Whitened
from ..numerics.norms import norm
from ..numerics.rounding import ROUNDING_MARGIN
from .measured import TableCertificate, certify_tables, is_measured
from .strategy import StrategyCertificate

Array = NDArray[np.float64]

_RESIDUAL = 1e-9  # part of a query outside the strategy's row space that counts as rounding
_ROUNDING = 16 * EPS  # relative rounding error of a squared length
_DOUBT = 1e-6  # largest relative error of deviations that an ill-conditioned strategy may cause


def certify(
    strategy: Any,
    workload: Any = None,
    *,
    neighbors: Any = "add-remove",
    participation: AbstractPatterns | None = None,
    domain: AbstractDomain | None = None,
    standard_deviation: "ArrayLike" = 1.0,
    sizes: Any = None,
    p: float = 2,
    tol: float = 1e-6,
) -> StrategyCertificate | TableCertificate:
    """Compare any strategy C for a workload A with the best possible noise.

    The strategy's outputs are C x plus independent noise, for a histogram x (a sum of records if a
    domain is given). The answers are the best linear unbiased estimate of A x from *all* outputs,
    and the privacy loss is that of all outputs together. Tables that another tool measured are a
    strategy as well: no matrix is written out for them.

    Args:
        strategy: C, shape (outputs, cells), of any scale and rank, since its sensitivity is
            computed. Or the first column of a lower-triangular Toeplitz matrix, shape (k,), k <=
            cells; or an object with ``materialize(n)``, ``materialize()`` or ``toarray()``, such as
            the matrices of jax_privacy. Or measured tables of counts: ``{("age", "sex"):
            standard_deviation}``, with a list for a table that was measured several times; a list
            of mbi's ``LinearMeasurement``; a contingency table of OpenDP, whose noise is assumed to
            be Gaussian; or a measurement of OpenDP made of ``make_count``,
            ``make_count_by_categories`` and ``make_gaussian``, which names its own noise.
        workload: A, shape (queries, cells), in the row space of C; or an object with ``toarray()``.
            For measured tables: the attribute sets of the tables that are estimated, by default all
            measured ones.
        neighbors: "add-remove", "replace" or a policy graph on the cells, as in
            :func:`optimal_noise`. If the number of records is public, estimates use it.
        participation: for data over time, the ticks that one person may occupy. A is then lower
            triangular, (n, n), with no zero on the diagonal, and column i of A and of C belongs to
            tick i. Whether the answer at tick t needs later outputs is not checked. If omitted, and
            if the strategy is a generator from :func:`~gaussnoise.streams.noise`, the participation
            is that of the generator.
        domain: the set K of records, with the columns of both matrices as coordinates; if
            omitted, a record is in one cell.
        standard_deviation: that of the noise of all outputs, or of each, shape (outputs,). The
            relative accuracy of outputs and ``rho`` depend on it.
        sizes: for measured tables alone, the number of categories of every attribute: a mapping, a
            :class:`Schema`, or a domain of mbi. A measurement or a table of OpenDP has its own.
        p: error norm in [2, ∞].
        tol: relative gap of the best noise.

    Returns:
        A :class:`StrategyCertificate`; for measured tables, a :class:`TableCertificate`.

    Raises:
        ParameterError: a query is outside the strategy's row space, or a table is not determined;
            another tool's noise or steps are not known; shapes or names do not fit; a number is not
            finite; the strategy is too nearly singular; p < 2, or an unknown relation.
        InvalidDomainError: the workload is no matrix of finite numbers; for ``participation``, it
            is not lower triangular, or the patterns are over other ticks.

    Source: the lower bound is that of :func:`gaussnoise.optimal_noise` (Nikolov & Tang 2023,
    Theorem 26; for repeated participation, see ``ParticipationCertificate``).

    >>> tree = np.vstack([np.eye(4), [[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]]])
    >>> found = gn.certify(tree, np.tril(np.ones((4, 4))))
    >>> print(f"{found.error:.4f} {found.lower:.4f} {found.factor:.3f}")
    2.7775 2.6219 1.059
    >>> A = np.tril(np.ones((30, 30)))
    >>> root = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, 30))])  # A = C C
    >>> found = gn.certify(root[:7], A, participation=gn.streams.Apart(30, 4, 7, kind="counts"))
    >>> print(f"{found.error / 30**0.5:.3f} {found.lower / 30**0.5:.3f} {found.factor:.3f}")
    4.304 3.941 1.092
    """
    if participation is None and domain is None:
        own = getattr(strategy, "participation", None)
        participation = own if isinstance(own, AbstractPatterns) else None
    if is_measured(strategy):
        plain = np.ndim(standard_deviation) == 0 and standard_deviation == 1.0
        if participation is not None or domain is not None or not plain:
            raise ParameterError(
                "certify: expected no participation=, domain= or standard_deviation= for measured "
                "tables; hint: {('age', 'sex'): standard_deviation}"
            )
        return certify_tables(strategy, workload, sizes, neighbors, p, tol)
    if sizes is not None:
        raise ParameterError(
            "certify: expected sizes= with measured tables alone, got it with a matrix; hint: the "
            "columns of both matrices are the cells; measured tables are like "
            "{('age', 'sex'): standard_deviation}"
        )
    return _certify_matrix(
        strategy, workload, neighbors, participation, domain, standard_deviation, p, tol
    )


def _certify_matrix(
    strategy: Any,
    workload: Any,
    neighbors: Any,
    participation: AbstractPatterns | None,
    domain: AbstractDomain | None,
    standard_deviation: "ArrayLike",
    p: float,
    tol: float,
) -> StrategyCertificate:
    """Return the certificate of a matrix, for the arguments of :func:`certify`."""
    if participation is not None:
        check_participation("certify", participation)
        if neighbors != "add-remove" or domain is not None:
            raise ParameterError(
                'certify: expected neighbors="add-remove" and no domain with participation='
            )
    if workload is None:
        raise ParameterError(
            "certify: expected a workload of shape (queries, cells), got none; hint: "
            "certify(strategy, workload)"
        )
    wanted = dense(workload)
    if wanted.dtype.kind == "f" and (place := _not_finite(wanted)):
        raise InvalidDomainError(f"certify: expected finite numbers in the workload, got {place}")
    who, given = participation, FiniteSet.from_workload(wanted)
    check_problem("certify", given, p, tol, "auto")
    A = given.points.T
    records = A.shape[1]
    C, scale = _unit(_weighted(_matrix(strategy, records), standard_deviation))
    target: AbstractDomain = given
    lost = _rounding_of_lengths(C, 0) if domain is None else 0.0
    if domain is not None:
        if not isinstance(domain, AbstractDomain) or domain.dim != records:
            raise ParameterError(
                f"certify: expected a domain of records in R^{records}, as many coordinates as the "
                f"workload has columns, got {domain!r:.80}"
            )
        listed = domain._listed()
        if listed is None:
            target = A @ domain
        else:
            lost = _rounding_of_lengths(abs(C) @ abs(listed.points.T), records)
            A, C, domain = A @ listed.points.T, C @ listed.points.T, None
            target = FiniteSet(A.T)
    if who is not None:
        target = participations(A, who)
    elif domain is None and isinstance(workload, StreamWorkload):
        target = workload
    relation = check_relation("certify", neighbors, target)
    if who is None:
        moved = _largest_move(C, relation, domain) + lost
    else:
        moved = sensitivity_of(C, who)
    rows, size = _estimated(C, A, None if domain is not None else relation)
    spread = norm(np.linalg.norm(rows, axis=1), p) * size
    error = spread * moved * (1 + len(A.T) * ROUNDING_MARGIN)
    error, sensitivity, unit = float(error), float(scale * moved), float(size / scale)
    if not all(0 < value < math.inf for value in (sensitivity, error, unit)):
        raise ParameterError(
            "certify: the error, or the sensitivity, is zero, beyond the largest double or below "
            "the least; hint: rescale the workload, or the strategy"
        )
    best = solved(target, p, relation, tol)  # its gap is stated in the sentences
    return StrategyCertificate(
        error,
        best.gamma_lower,
        sensitivity,
        float(p),
        relation,
        best,
        FactorCovariance(rows, unit),
        who,
    )


def _estimated(C: Array, A: Array, relation: Relation | None) -> tuple[Array, float]:
    """Return (F, s) with s² F F' = ``A (C'C)⁺ A'``, for the strategy C and the workload A."""
    # the covariance of the best estimate if all outputs have noise of variance one; if n is public,
    # the means of rows are subtracted first; F is enlarged by a bound on its rounding
    W, size = _unit(A)
    if relation == "add-remove" and _is_triangular(C, A):
        B = scipy.linalg.solve_triangular(C.T, W.T, lower=False).T
        with np.errstate(over="ignore", invalid="ignore"):
            left = np.abs(B @ C - W).max()
        if not left <= _RESIDUAL * np.abs(W).max():
            raise _singular()
    else:
        B = _through_singular_values(C, W, relation)
    rows, largest = _unit(B)
    return rows, largest * size


def _through_singular_values(C: Array, W: Array, relation: Relation | None) -> Array:
    """Return a matrix B with ``B B' = W (C'C)⁺ W'``, for the workload W and the strategy C."""
    whole = float(np.linalg.norm(C))
    C, centered = _centered(C, relation), _centered(W, relation)
    _, values, axes = np.linalg.svd(C, full_matrices=False)
    doubt = 8 * max(C.shape) * EPS
    kept = values > doubt * whole
    axes, values = axes[kept], values[kept]
    doubt *= whole / values.min(initial=whole)
    if doubt > _DOUBT:
        raise _singular()
    inside = centered @ axes.T
    outside = np.linalg.norm(centered - inside @ axes, axis=1)
    sizes = np.linalg.norm(W, axis=1)
    missed = outside > max(_RESIDUAL, doubt) * sizes
    if missed.any():
        worst = int(np.argmax(np.where(missed, outside / np.maximum(sizes, math.ulp(0.0)), 0)))
        raise ParameterError(
            "certify: expected a workload in the row space of the strategy, got "
            f"{missed.sum()} of {len(W)} queries that no linear estimate from the strategy's "
            f"outputs answers without bias: of query {worst}, the share "
            f"{outside[worst] / sizes[worst]:.3g} of its length is outside; hint: add rows to the "
            "strategy, such as this query, until numpy.linalg.matrix_rank of both together is that "
            "of the strategy"
        )
    return inside / values * (1 + 4 * doubt)


def _centered(matrix: Array, relation: Relation | None) -> Array:
    """Return the matrix; if records are replaced, minus each row's mean over each component."""
    if relation is None or relation == "add-remove":
        return matrix
    labels = np.zeros(matrix.shape[1], dtype=np.intp)
    if isinstance(relation, PolicyGraph):
        labels = relation.components
    moved = matrix.copy()
    for label in np.unique(labels):
        moved[:, labels == label] -= matrix[:, labels == label].mean(axis=1, keepdims=True)
    return moved


def _singular() -> ParameterError:
    return ParameterError(
        "certify: the strategy is too nearly singular for double precision; hint: rescale it"
    )


def _unit(matrix: Array) -> tuple[Array, float]:
    """Return the matrix divided by a power of two so that entries are about one, and this power."""
    size = power_of_two(np.abs(matrix).max(initial=0.0))
    return matrix / size, size


def _rounding_of_lengths(sizes: Array, terms: int) -> float:
    """Return a bound on the rounding error of ``‖c − c'‖`` for columns c, c' of the strategy."""
    # sizes bound the outputs, sums of ``terms`` products; where these cancel, the bound is large
    return 2 * (terms + 2) * EPS * float(np.linalg.norm(sizes, axis=0).max())


def _largest_move(C: Array, relation: Relation, domain: AbstractDomain | None) -> float:
    """Return a proven upper bound on the ℓ₂ norm of the change of the outputs C x by one record."""
    if domain is not None:
        reach = domain - domain if relation == "replace" else domain
        around = math.sqrt(reach.max_quadratic(np.eye(reach.dim)).upper_bound)
        longest = (C @ reach).max_quadratic(np.eye(len(C))).upper_bound
        slack = max(C.shape) * _ROUNDING * float(np.linalg.norm(C)) * around
        return math.sqrt(longest) * (1 + ROUNDING_MARGIN) + slack
    unit, size = _unit(C)
    points = FiniteSet(unit.T)
    target = covered(points, Problem(points, 2.0, relation))
    lengths = np.linalg.norm(target.points, axis=1) * (1 + (len(C) + 2) * _ROUNDING)
    whitened = Whitened(target.points, lengths, np.zeros(len(C)))
    return size * target.longest(whitened) * (1 + _ROUNDING)


def sensitivity_of(C: Array, who: AbstractPatterns) -> float:
    """Return a proven upper bound on the ℓ₂ norm of the change of the outputs C x by one person.

    ``who`` lists the ticks (columns of C) that one person may occupy.
    """
    (unit, size), rounding = _unit(C), 1 + who.most * len(C) * _ROUNDING
    if not _is_triangular(C, C):
        # C = Q L: the lower-triangular L has the same inner products of columns as C
        triangle = np.flip(np.linalg.qr(unit[:, ::-1])[1])
        rounding += 2 * who.most * C.size * _ROUNDING
        if triangle.shape != (C.shape[1],) * 2 or not triangle.diagonal().all():
            raise _singular()
        unit = np.tril(triangle)
    longest = participations(unit, who).max_quadratic(np.eye(len(unit))).upper_bound
    return size * math.sqrt(longest * rounding)


def _is_triangular(C: Array, A: Array) -> bool:
    """Return whether C is square, lower triangular, as wide as A, and has a nonzero diagonal."""
    n = A.shape[1]
    return C.shape == (n, n) and not np.triu(C, 1).any() and bool(C.diagonal().all())


def _weighted(C: Array, standard_deviation: "ArrayLike") -> Array:
    """Return C with every row divided by the standard deviation of the noise on that output."""
    try:
        scales = np.asarray(standard_deviation, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        scales = np.array(math.nan)
    if scales.shape not in ((), (len(C),)) or not (np.isfinite(scales) & (scales > 0)).all():
        raise ParameterError(
            "certify: expected a positive standard deviation, or one for each of the "
            f"{len(C)} outputs, got {standard_deviation!r:.80}"
        )
    return C / scales.reshape(-1, 1)


def _matrix(strategy: Any, n: int) -> Array:
    """Return the user's strategy, of any accepted kind, as an array of shape (outputs, n)."""
    given = strategy
    if hasattr(given, "materialize"):
        try:
            given = given.materialize(n)
        except TypeError:  # an object that knows its own size
            given = given.materialize()
    try:
        array = np.asarray(dense(given), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            "certify: expected a strategy as an array of numbers, or an object with materialize "
            "or toarray, got "
            f"{type(strategy).__name__}"
        ) from None
    if place := _not_finite(array):
        raise ParameterError(
            f"certify: expected finite numbers in the strategy, got {place}; hint: 0 for a cell "
            "that an output does not count"
        )
    if array.ndim == 1 and 0 < len(array) <= n:
        array = np.tril(scipy.linalg.toeplitz(np.append(array, np.zeros(n - len(array)))))
    if array.ndim != 2 or not len(array) or array.shape[1] != n:
        raise ParameterError(
            f"certify: expected a strategy of shape (outputs, {n}), as many columns as the "
            "workload has, or the first column of a Toeplitz one, of at "
            f"most {n} numbers; got shape {array.shape}"
        )
    return array


def _not_finite(array: Array) -> str:
    """Return text that names the first entry that is not finite, or "" if there is none."""
    places = np.argwhere(~np.isfinite(array))
    if not len(places):
        return ""
    place = tuple(places[0].tolist())
    at = f"row {place[0]}, column {place[1]}" if array.ndim == 2 else f"place {list(place)}"
    return f"{array[place]} in {at}"
