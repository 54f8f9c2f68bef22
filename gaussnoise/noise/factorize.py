"""Factorization norms of a matrix, γ₂ (max error) and γ_F (mean error), with proven bounds."""

import functools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from domains.domain import AbstractDomain
from domains.errors import DomainTooLargeError
from domains.floats import EPS, MOST_NUMBERS, Array
from domains.sets.finite import FiniteSet
from domains.sets.stream import StreamWorkload
from domains.tables.stream_product import StreamProduct

from ..errors import CertificateError, ConvergenceWarning, ParameterError
from ..files.pickling import PickledByArguments
from ..numerics.feasibility import whiten
from ..numerics.norms import dual_power, even_weights, norm
from ..numerics.rounding import ROUNDING_MARGIN
from .certificates.points import PointCertificate
from .certificates.streams import StreamCertificate
from .optimal_noise import OptimalNoise
from .solve import optimal_noise
from .streams import is_written_out
from .structure import Piece, pieces, runs, table

# Uniform weights count as optimal if their certificate's gap is at most this. Rounding margins
# alone cause a gap of 1e-11 at order 1024, more at 4096; a Hadamard matrix of order 1024 with one
# changed sign has a gap of 2e-7.
_CLOSED = 1e-10
# With sizes beyond these, factors and products of norms would over- or underflow.
_LARGEST, _SMALLEST = 1e300, 1e-300
_COLUMNS = 512  # columns of an extended-precision product that are computed at a time


def factorize(
    A: "ArrayLike | Sequence[ArrayLike | StreamWorkload] | StreamWorkload | StreamProduct",
    error: str | float = "max",
    *,
    tol: float = 1e-6,
) -> "Factorization":
    r"""Return the best factorization ``A = L R``, and a proof that no other is better.

    Let ``‖L‖_p`` be the p-norm of the row norms of L, and ``‖R‖`` the largest column norm of R. The
    best factorization attains ``γ_(p)(A) = min { ‖L‖_p · ‖R‖ : A = L R }``. To answer the queries A
    on data x, measure R x with Gaussian noise and multiply by L. Under ρ-zCDP, when one record is
    added or removed, the error is ``γ_(p)(A)/√(2ρ)``. No Gaussian noise has a smaller error.

    Args:
        A: an array of shape (queries, cells). Or a list of matrices ``[A1, ..., Ak]`` that stands
            for ``A1 ⊗ ... ⊗ Ak``. This product is never formed: γ_(p)(K ⊗ L) = γ_(p)(K) γ_(p)(L),
            by products of the factors and of the witnesses. Or a workload over time, such as
            ``gn.streams.prefix_sums(n)``, also in such a list, or in ``gn.kron``. Beyond 1024
            ticks, the factors of a workload over time are stored as the weights that define them,
            never as matrices.
        error: "max" (p = ∞: the largest standard deviation, the γ₂ norm of functional analysis),
            "mean" (p = 2: root total variance, γ_F, not divided by anything), or p itself in [2,
            ∞].
        tol: certified relative gap to reach, in (0, 1).

    Returns:
        A :class:`Factorization`; ``float(...)`` is the upper bound.

    Structure that holds exactly for the stored numbers is used, and named in ``.method``:
    group-circulants ``A[g, h] = f(g ∓ h)`` over Z_{n1} × ... × Z_{nk} in C order, by FFT; matrices
    of entries 0 and ±c that are Kronecker products (give others as lists, since rounded products
    may differ from the exact ones); and matrices for which uniform weights are optimal, such as
    Hadamard matrices and orbits of a symmetry group.

    Raises:
        ParameterError: A is not a finite real matrix of at least one row and column, has entries
            beyond 1e±300, the error is unknown, or tol is outside (0, 1).
        CovarianceError: the queries are dependent, and differ so much in size (1e5 and more) that
            the rounding of a large one is more than a small one.

    Warns:
        ConvergenceWarning: the gap is wider than ``tol``.

    Source: Nikolov & Tang (2023), Theorems 23 and 26; at p = ∞, this is Haagerup's characterisation
    of γ₂. For private answers to queries: Li, Miklau, Hay, McGregor & Rastogi (2015) at p = 2, and
    Edmonds, Nikolov & Ullman (2020) at p = ∞. For γ₂ of Kronecker products: Lee, Shraibman & Špalek
    (2008), whose argument holds for every p.

    >>> # prefix sums of two cells: the golden ratio
    >>> f = gn.factorize([[1, 0], [1, 1]], error="mean")
    >>> print(f"{f.value:.5f}", f.gap < 1e-6)
    1.61803 True
    >>> float(np.abs(f.left @ f.right - [[1, 0], [1, 1]]).max()) < 1e-12
    True
    """
    p = asked_norm("factorize", error, tol)
    asked = _listed(A)
    given = tuple(_factor(M) for M in asked)
    simple = [
        piece
        for M, matrix in zip(asked, given, strict=True)
        for piece in ([M] if isinstance(M, StreamWorkload) else pieces(_written_out(matrix)))
    ]
    share = math.expm1(math.log1p(tol) / len(simple)) if len(simple) > 1 else tol
    result = Factorization(given, p, tol, tuple(_part(piece, p, share) for piece in simple))
    is_zero = any(not isinstance(M, StreamWorkload) and not M.any() for M in given)
    if result.value > _LARGEST or (result.value < _SMALLEST and not is_zero):
        raise ParameterError(
            f"factorize: the product's value {result.value:g} leaves 1e±300; hint: rescale the "
            "factors"
        )
    warn_of_gap("factorize", result.gap, tol, "the factors are valid")
    return result


@final
@dataclass(frozen=True, eq=False)
class Witness:
    """Dual weights that prove a factorization optimal (Nikolov & Tang 2023, Theorem 26).

    They prove ``γ_(p)(A) >= ‖W^{1/2} A Λ^{1/2}‖_*``.

    Attributes:
        query_weights: w, the diagonal of W, shape (queries,), nonnegative: all ones at p = 2, with
            sum one at p = ∞, with norm ``‖w‖_{p/(p−2)} = 1`` otherwise. Queries with large weights
            cause most of the error.
        cell_weights: λ, the diagonal of Λ, shape (cells,), a probability vector. Records in cells
            with large weights need most of the noise.

    >>> witness = gn.factorize(np.eye(3)).witness
    >>> print(witness.cell_weights.round(6).tolist(), f"{witness.lower_bound(np.eye(3)):.4f}")
    [0.333333, 0.333333, 0.333333] 1.0000
    """

    query_weights: Array
    cell_weights: Array

    def lower_bound(self, A: "ArrayLike") -> float:
        """Return the nuclear norm ``‖W^{1/2} A Λ^{1/2}‖_*``, recomputed, minus a rounding margin.

        Args:
            A: shape (queries, cells).

        >>> f = gn.factorize([[1, 0], [1, 1]], error="mean")
        >>> print(f"{f.witness.lower_bound([[1, 0], [1, 1]]):.5f}")
        1.61803
        """
        matrix = check_matrix("lower_bound", A)
        if matrix.shape != (len(self.query_weights), len(self.cell_weights)):
            raise ParameterError(
                "lower_bound: expected A of shape "
                f"{(len(self.query_weights), len(self.cell_weights))}, got {matrix.shape}"
            )
        columns = np.arange(matrix.shape[1])[:, None]
        return PointCertificate(
            matrix.T, self.cell_weights, self.query_weights, columns, centered=False
        ).lower_bound()


@dataclass(frozen=True, eq=False)
class _Part:
    """The factorization of one Kronecker factor of the matrix, with bounds."""

    left: Array
    right: Array
    witness: Witness
    value: float
    lower: float
    residual: float
    method: str
    noise: OptimalNoise | None = None

    def __post_init__(self) -> None:
        for array in (self.left, self.right, self.witness.query_weights, self.witness.cell_weights):
            array.flags.writeable = False


@dataclass(frozen=True, eq=False)
class _LongPart:
    """The factorization of a workload over time with too many ticks for its matrices."""

    # L = M^½ and R = M^-½ A, for the best covariance M, stored as weights: the rows of L have
    # standard deviations as norms, the columns of R leverages as squares, with proven bounds
    workload: StreamWorkload
    noise: OptimalNoise
    witness: Witness
    residual: float = 0.0  # A = L R by definition

    @property
    def value(self) -> float:
        return self.noise.gamma

    @property
    def lower(self) -> float:
        return self.noise.gamma_lower

    @property
    def method(self) -> str:
        return self.noise.method

    @property
    def left(self) -> Array:
        raise self._too_large()

    @property
    def right(self) -> Array:
        raise self._too_large()

    def _too_large(self) -> DomainTooLargeError:
        n = self.workload.ticks
        return DomainTooLargeError(
            f"factorize: factors of {n} x {n} for {n} ticks are too large; hint: "
            "value, lower, gap and witness need none, .noise.covariance multiplies vectors by "
            "L L', and gn.streams.noise makes noise tick by tick"
        )


@final
@dataclass(frozen=True, eq=False)
class Factorization(PickledByArguments):
    """A factorization ``A ≈ left @ right`` with bounds on γ_(p)(A), by :func:`factorize`.

    For the stored numbers, the columns of ``right`` have norm at most one, and
    ``lower <= γ_(p)(A) <= value``. ``value`` is a sum of three terms: the p-norm of the row norms
    of ``left`` times the largest column norm of ``right``; a bound on the effect of
    ``A − left @ right``; and a margin for rounding.

    Attributes:
        matrices: the matrices that were factorized, as given: one, or the Kronecker factors. A
            workload over time of more than 1024 ticks is kept as that object.
        p: the order of the error's norm.
        tol: the requested relative gap.
        parts: one factorization for each Kronecker factor, either given or found in a matrix.

    >>> totals = np.tril(np.ones((4, 4)))
    >>> found = gn.factorize(totals)
    >>> print(f"{found.lower:.4f} {found.value:.4f}", np.allclose(found.left @ found.right, totals))
    1.3261 1.3261 True
    """

    matrices: tuple[Array | StreamWorkload, ...]
    p: float
    tol: float
    parts: tuple[_Part | _LongPart, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """The shape ``(queries, cells)``."""
        sizes = [
            (M.ticks, M.ticks) if isinstance(M, StreamWorkload) else M.shape for M in self.matrices
        ]
        return math.prod(size[0] for size in sizes), math.prod(size[1] for size in sizes)

    @property
    def value(self) -> float:
        """The upper bound on the factorization norm γ_(p)(A), which the stored factors attain."""
        return _multiplied([part.value for part in self.parts], +1)

    @property
    def lower(self) -> float:
        """The lower bound on the factorization norm γ_(p)(A), proved by ``witness``."""
        return _multiplied([part.lower for part in self.parts], -1)

    @property
    def gap(self) -> float:
        """The gap ``value / lower − 1``, a bound on any improvement; zero if both are zero."""
        if self.value == 0:
            return 0.0
        return self.value / self.lower - 1 if self.lower > 0 else math.inf

    @property
    def residual(self) -> float:
        """The largest entry of ``|A − left @ right|``, divided by the largest entry of ``|A|``.

        For a Kronecker product it is an upper bound.
        """
        if len(self.parts) == 1:
            return self.parts[0].residual
        return math.expm1(math.fsum(math.log1p(part.residual) for part in self.parts))

    @property
    def method(self) -> str:
        """The method of factorization, and the reason for it."""
        methods = [part.method for part in self.parts]
        if len(methods) == 1:
            return methods[0]
        each = "; ".join(f"{methods.count(m)} by: {m}" for m in dict.fromkeys(methods))
        return f"Kronecker product of {len(methods)} matrices, {each}"

    @cached_property
    def left(self) -> Array:
        """The factor L, shape (queries, k).

        Raises:
            DomainTooLargeError: a Kronecker product of more than 2^27 entries, or a workload over
                time of more than 1024 ticks.
        """
        return _kronecker([part.left for part in self.parts])

    @cached_property
    def right(self) -> Array:
        """The factor R, shape (k, cells), with columns of length at most one: unit sensitivity.

        Raises:
            DomainTooLargeError: a Kronecker product of more than 2^27 entries, or a workload over
                time of more than 1024 ticks.
        """
        return _kronecker([part.right for part in self.parts])

    @cached_property
    def witness(self) -> Witness:
        """The dual weights that prove the lower bound ``lower``."""
        queries = _kronecker([part.witness.query_weights for part in self.parts])
        return Witness(queries, _kronecker([part.witness.cell_weights for part in self.parts]))

    @cached_property
    def noise(self) -> OptimalNoise:
        """The result of ``optimal_noise`` for the columns of A under "add-remove".

        For structured matrices it is computed at the first access.

        Raises:
            DomainTooLargeError: a Kronecker product of more than 2^27 entries.
        """
        known = self.parts[0].noise
        if len(self.parts) == 1 and known is not None:
            return known
        dense = [M for M in self.matrices if not isinstance(M, StreamWorkload)]
        if len(dense) == len(self.matrices):
            columns: AbstractDomain = FiniteSet.from_workload(_kronecker(dense))
        else:
            columns = StreamProduct(
                tuple(
                    M if isinstance(M, StreamWorkload) else FiniteSet.from_workload(M)
                    for M in self.matrices
                )
            )
        return optimal_noise(columns, self.p, neighbors="add-remove", tol=self.tol)

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return (
            f"Factorization(gamma_({self.p:g}) of {self.shape[0]} x {self.shape[1]}: "
            f"{self.lower:.10g} <= gamma <= {self.value:.10g}, gap {self.gap:.1e}, {self.method})"
        )


def warn_of_gap(function: str, gap: float, tol: float, certain: str) -> None:
    """Warn the caller of a public function if ``gap`` exceeds ``tol``.

    The warning also says ``certain``, which names a proven fact.
    """
    if gap > tol:
        message = (
            f"{function}: certified gap {gap:.2g}, wider than tol={tol:g}; {certain} all the same"
        )
        warnings.warn(message, ConvergenceWarning, stacklevel=3)


def asked_norm(function: str, error: object, tol: object) -> float:
    """Return the exponent p that ``error`` names: 2 for "mean", ∞ for "max", or a number itself.

    Raise ParameterError for other errors, and for a ``tol`` outside (0, 1).
    """
    if not isinstance(tol, float) or not 0 < tol < 1:
        raise ParameterError(f"{function}: expected 0 < tol < 1, got {tol!r}")
    if isinstance(error, str):
        if error in ("max", "mean"):
            return math.inf if error == "max" else 2.0
    elif isinstance(error, int | float) and error >= 2:
        return float(error)
    raise ParameterError(
        f'{function}: expected error="max", "mean" or a number p >= 2, got {error!r}'
    )


def check_matrix(function: str, A: object) -> Array:
    """Return ``A`` as a read-only copy in float64; raise ParameterError if it is not a matrix."""
    try:
        array = np.asarray(A)
    except ValueError:
        raise ParameterError(
            f"{function}: expected a matrix, got rows of different lengths; "
            "hint: every Kronecker factor must be a matrix"
        ) from None
    if hasattr(A, "toarray") and not array.ndim:  # numpy sees scipy's sparse matrices as objects
        raise ParameterError(
            f"{function}: expected a dense matrix, got {type(A).__name__}; hint: A.toarray()"
        )
    if array.dtype.kind not in "biufO":
        raise ParameterError(f"{function}: expected real numbers, got dtype {array.dtype}")
    if array.ndim != 2 or 0 in array.shape:
        raise ParameterError(
            f"{function}: expected A of shape (queries, cells), at least (1, 1), got "
            f"{array.shape}; "
            "hint: [[...]] for one query; a list of matrices for a Kronecker product"
        )
    try:
        matrix = np.array(array, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"{function}: expected real numbers, got {array.flat[0]!r} and the like"
        ) from None
    if not np.isfinite(matrix).all():
        raise ParameterError(f"{function}: expected finite entries, got NaN or infinity")
    size = float(np.abs(matrix).max())
    if size and not _SMALLEST <= size <= _LARGEST:
        raise ParameterError(
            f"{function}: expected the largest entry within 1e±300, got {size:g}; hint: rescale A"
        )
    matrix.flags.writeable = False
    return matrix


def _factor(M: object) -> Array | StreamWorkload:
    """Return a Kronecker factor as a matrix; a workload over too many ticks stays as it is."""
    return M if isinstance(M, StreamWorkload) and not is_written_out(M) else _written_out(M)


def _written_out(M: object) -> Array:
    return check_matrix("factorize", M.toarray() if isinstance(M, StreamWorkload) else M)


def _listed(A: object) -> Sequence[object]:
    """Return a list of matrices unchanged; return a list for any other object."""
    if isinstance(A, StreamProduct):
        return [K if isinstance(K, StreamWorkload) else K.to_finite_set().points.T for K in A.parts]
    try:
        listed = (
            isinstance(A, list | tuple)
            and len(A) > 0
            and all(isinstance(M, StreamWorkload) or np.ndim(M) == 2 for M in A)
        )
    except ValueError:  # rows of different lengths: no matrix, so no list of matrices either
        listed = False
    return A if listed and isinstance(A, list | tuple) else [A]


def _multiplied(bounds: list[float], side: int) -> float:
    """Return the product of bounds, rounded up if ``side`` is +1, and down if ``side`` is −1."""
    if len(bounds) == 1 or 0 in bounds:
        return min(bounds)
    exponent = sum(math.frexp(bound)[1] for bound in bounds)
    product = math.prod(math.frexp(bound)[0] for bound in bounds) * (1 + side * len(bounds) * EPS)
    try:
        return math.ldexp(product, exponent)
    except OverflowError:
        return math.inf


def _kronecker(factors: Sequence[Array]) -> Array:
    """Return the Kronecker product of the matrices; raise DomainTooLargeError above a gigabyte."""
    if len(factors) == 1:
        return factors[0]
    entries = math.prod(factor.size for factor in factors)
    if entries > MOST_NUMBERS:
        raise DomainTooLargeError(
            f"factorize: the dense Kronecker product needs {entries * 8 / 1e9:.3g} GB; "
            "hint: value, lower and gap need no dense matrix, and parts[i].left, parts[i].right "
            "are its factors"
        )
    # powers of two are multiplied apart, so that 1e200 ⊗ 1e−200 does not overflow
    exponents = [_exponent(factor) for factor in factors]
    product = functools.reduce(
        np.kron, (np.ldexp(f, -e) for f, e in zip(factors, exponents, strict=True))
    )
    product = np.ldexp(product, sum(exponents))
    product.flags.writeable = False
    return product


def _exponent(array: Array) -> int:
    """Return the integer e with ``2^(e−1) <= max |array| < 2^e``; dividing by 2^e is exact."""
    return math.frexp(float(np.abs(array).max(initial=0.0)))[1]


def _part(piece: Piece | StreamWorkload, p: float, tol: float) -> _Part | _LongPart:
    over_time = piece if isinstance(piece, StreamWorkload) else None
    if over_time is not None and not is_written_out(over_time):
        return _never_written_out(over_time, p, tol)
    piece = Piece(_written_out(piece)) if isinstance(piece, StreamWorkload) else piece
    A = piece.matrix
    if not A.any():
        q, n = A.shape
        weights = Witness(even_weights(q, p), np.full(n, 1 / n))
        return _Part(
            np.zeros((q, 0)),
            np.zeros((0, n)),
            weights,
            0.0,
            0.0,
            0.0,
            "a zero matrix needs no noise",
        )
    exponent = _exponent(A)
    unit = np.ldexp(A, -exponent)
    if over_time is not None:
        noise = _by_optimisation(A, unit, exponent, p, tol, over_time)
    elif piece.orders:
        noise = _by_symmetry(unit, piece.orders, piece.sign, p)
    else:
        noise = _at_uniform_weights(unit, p)
        if not noise.value <= noise.lower * (1 + _CLOSED):
            noise = _by_optimisation(A, unit, exponent, p, tol)
    if not noise.lower <= noise.value:
        raise CertificateError(
            f"factorize: rounding crossed the bounds: {noise.lower!r} > {noise.value!r}"
        )
    value, lower = (float(np.ldexp(bound, exponent)) for bound in (noise.value, noise.lower))
    return replace(noise, left=np.ldexp(noise.left, exponent), value=value, lower=lower)


def _never_written_out(workload: StreamWorkload, p: float, tol: float) -> _Part | _LongPart:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # factorize warns of the final gap
        noise = optimal_noise(workload, p, neighbors="add-remove", tol=tol)
    certificate = noise.certificate
    if not isinstance(certificate, StreamCertificate):  # the linear-time method needs few bands
        return _part(Piece(_written_out(workload)), p, tol)
    witness = Witness(certificate.coordinate_weights, certificate.weights)
    return _LongPart(workload, noise, witness)


def _by_optimisation(
    A: Array, unit: Array, exponent: int, p: float, tol: float, domain: AbstractDomain | None = None
) -> _Part:
    """Return A = L R for the optimal covariance ``M = L L'`` of A's columns."""
    rows = A.any(axis=1)  # zero queries need no noise
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # factorize warns of the final gap
        # a tenth of the tolerance is left for the residual and the margins
        columns = FiniteSet.from_workload(A[rows]) if domain is None else domain
        noise = optimal_noise(columns, p, neighbors="add-remove", tol=0.9 * tol)
    certificate = noise.certificate
    if not isinstance(certificate, PointCertificate) or certificate.rows is None:
        raise CertificateError(
            f"factorize: expected weights on columns, got {type(certificate).__name__}"
        )
    factor = np.ldexp(noise.covariance.factor(), -exponent)
    left = np.zeros((len(A), factor.shape[1]))
    left[rows], right = _bounded(factor, whiten(factor, unit[rows].T).coordinates.T)
    value, residual = _attained(unit, left, right, p)
    queries, cells = np.full(len(A), 1.0 if p == 2 else 0.0), np.zeros(A.shape[1])
    queries[rows] = certificate.coordinate_weights
    cells[certificate.rows[:, 0]] = certificate.weights / math.fsum(certificate.weights)
    lower = float(np.ldexp(noise.gamma_lower, -exponent))
    known = noise if rows.all() else None
    return _Part(left, right, Witness(queries, cells), value, lower, residual, noise.method, known)


def _at_uniform_weights(A: Array, p: float) -> _Part:
    """Return the factors ``U S^½`` and ``S^½ V'`` of the singular value decomposition U S V'."""
    # they are optimal if all rows of the first and all columns of the second have equal norms
    rows, columns = (A != 0).any(axis=1), (A != 0).any(axis=0)
    w = np.where(rows, rows.sum() ** -dual_power(p), 0.0 if p > 2 else 1.0)
    cells = columns / columns.sum()
    U, singular, Vt = np.linalg.svd(A, full_matrices=False)
    scale = math.sqrt(rows.sum() ** -dual_power(p) / columns.sum())
    rounding = 8 * len(singular) * EPS * singular[0]
    lower = float(scale * max(singular.sum() - rounding, 0.0) * (1 - ROUNDING_MARGIN))
    # smaller singular values may be rounding errors of the others
    kept = singular > 4 * EPS * singular[0] * math.sqrt(max(A.shape))
    roots = np.sqrt(singular[kept])
    left, right = _bounded(U[:, kept] * roots, roots[:, None] * Vt[kept])
    value, residual = _attained(A, left, right, p)
    method = "uniform weights are optimal: the certificate closes at the polar factors"
    return _Part(left, right, Witness(w, cells), value, lower, residual, method)


def _bounded(left: Array, right: Array) -> tuple[Array, Array]:
    """Return both factors, scaled so that no column of ``right`` is longer than one."""
    longest = np.linalg.norm(right, axis=0).max() * (1 + ROUNDING_MARGIN / 2)
    return left * longest, right / longest


def _attained(
    A: Array, left: Array, right: Array, p: float, precision: type = np.float64
) -> tuple[float, float]:
    """Return an upper bound on γ_(p)(A) from both factors, and the relative residual of A."""
    n = A.shape[1]
    wide = left.astype(precision)
    columns = (slice(start, start + _COLUMNS) for start in range(0, n, _COLUMNS))
    residual = np.hstack(
        [(A[:, c] - wide @ right[:, c].astype(precision)).astype(np.float64) for c in columns]
    )
    lengths = np.linalg.norm(left, axis=1)
    rounding = (len(right) + 2) * float(np.finfo(precision).eps) * math.sqrt(n) * lengths
    # A − L R is factorized as E·I: the norms of its rows, with their rounding, add to the error
    charge = norm(np.linalg.norm(residual, axis=1) + rounding, p)
    value = norm(lengths, p) * float(np.linalg.norm(right, axis=0).max()) + charge
    return value * (1 + ROUNDING_MARGIN), float(np.abs(residual).max() / np.abs(A).max())


def _by_symmetry(A: Array, orders: tuple[int, ...], sign: int, p: float) -> _Part:
    """Return the factorization of ``A[g, h] = f(g − sign·h)`` on a group, by FFT."""
    # The group permutes rows and columns transitively, so that uniform weights are optimal, and
    # γ_(p) = n^{1/p − 1} Σ|f̂| for the Fourier transform f̂ of the first column f.
    n = len(A)
    spectrum = np.fft.fftn(A[:, 0].reshape(orders))
    sizes = np.abs(spectrum)
    roots = np.sqrt(sizes)
    first_left = np.fft.ifftn(spectrum / np.where(roots > 0, roots, 1.0)).real.ravel()
    first_right = np.fft.ifftn(roots).real.ravel()
    longest = float(np.linalg.norm(first_right)) * (1 + ROUNDING_MARGIN / 2)
    left, right = (
        (first_left * longest)[table(orders, 1)],
        (first_right / longest)[table(orders, sign)],
    )
    # the stored product is exactly group-circulant: its first row determines all rows
    row_value, residual = _attained(A[:1], left[:1], right, p, precision=np.longdouble)
    # FFT errors are relative to the Euclidean norm (Higham 2002, Theorem 24.2); the factor √n
    # bounds the sum
    margin = ROUNDING_MARGIN + 32 * EPS * math.log2(2 * n) * math.sqrt(n)
    lower = float(n ** (1 / p - 1) * sizes.sum() * (1 - margin))
    group = " x ".join(f"Z_{m}" + (f"^{k}" if k > 1 else "") for m, k in runs(orders))
    method = (
        f"group-circulant over {group}: uniform weights are optimal by symmetry, factors by FFT"
    )
    weights = Witness(even_weights(n, p), np.full(n, 1 / n))
    return _Part(left, right, weights, n ** (1 / p) * row_value, lower, residual, method)
