"""A symmetric measure on records, and its check by a method that the solver does not use."""

import itertools
import math
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

import numpy as np

from domains.floats import Array
from domains.tables.tables import AbstractTables

from ...errors import CertificateError
from ...numerics.norms import dual_power, norm
from ...numerics.precision import LONG_OPERATIONS
from ...numerics.rounding import CANCELLATION, ROUNDING_MARGIN
from ...solvers.tables.residuals import rank, residual_subsets, subsets_of
from ...solvers.tables.workload import Workload
from ..agreement import ReplaceWithin
from ..covariance import AbstractCovariance
from ..marginal_covariance import MarginalCovariance
from ..policy import PolicyGraph
from ..problem import Problem
from ..sensitivity import marginal_sensitivity
from .certificate import Verification
from .points import check_points
from .weights import TableCertificate

# marginals are also checked record by record if the full table has at most this many cells
_EXPLICIT_CELLS = 512
_EXPLICIT_RATIO = 1e9  # with a larger ratio of weights, columns look dependent in double precision


@final
@dataclass(frozen=True, eq=False)
class MarginalCertificate(TableCertificate):
    """A measure on the records of marginals, or on pairs of records, defined by few numbers.

    The measure is uniform on all records (with a random sign under add-remove), or on all pairs
    that differ in a set D of attributes, with a probability for each type of D. The type of a set
    lists the classes of equivalent attributes in it. The residual of an attribute set T is the part
    of its table that is orthogonal to the tables of all smaller sets; it has r_T dimensions. By
    symmetry, the second moment has one eigenvalue κ_T there. With β_T the eigenvalue of the tables'
    weights there, the bound is ``Σ_T r_T √(β_T κ_T)``.
    """

    @property
    def is_of_alike_records(self) -> bool:
        return True

    @property
    def caption(self) -> str:
        records = "pairs of records, by pattern" if self.protected == "replace" else "all records"
        return f"uniform on {records}, not drawn"

    def lower_bound(self) -> float:
        return self.bound_over(self.workload())

    def bound_over(self, workload: Workload) -> float:
        """Return the lower bound on γ, for tables that are grouped by type already.

        ``workload`` is the result of :meth:`workload`, which takes long to compute.
        """
        traces = self._traces(workload)
        return (
            max(self.domain.weights)
            * math.fsum(workload.residual_counts * traces)
            * (1 - ROUNDING_MARGIN)
        )

    def spectrum(self) -> tuple[Array, Array]:
        workload = self.workload()
        values = max(self.domain.weights) * self._traces(workload) / workload.ranks
        return values * (1 - ROUNDING_MARGIN), workload.residual_counts * workload.ranks

    def losses(self, workload: Workload) -> Array:
        """Return, for each type of attribute set, the variance that unit noise on one set causes.

        It is the variance of all answers, weighted with the dual weights of the tables.
        """
        shares = self.shares / (math.fsum(self.shares) * (1 + CANCELLATION))
        return workload.dual_loss(self.p) @ shares ** dual_power(self.p)

    def _traces(self, workload: Workload) -> Array:
        """Return, for each type of attribute set, one set's term in the lower bound."""
        if not workload.residuals:
            return np.zeros(0)
        weights = self.pattern_weights / (math.fsum(self.pattern_weights) * (1 + CANCELLATION))
        losses = self.losses(workload)
        moved = np.ones(len(losses))
        if self.protected == "replace":
            # subtract a margin: 1 − Π loses digits if Π is near one
            moved = weights @ np.maximum(workload.moved(self.patterns) - CANCELLATION, 0.0)
        return np.sqrt(losses * moved)

    def check(
        self, problem: Problem, covariance: AbstractCovariance, center: Array, claimed: float
    ) -> list[Verification]:
        """Check the variance of every attribute set; for a small full table, list all records."""
        if not isinstance(covariance, MarginalCovariance):
            raise CertificateError("verify: the covariance belongs to another domain")
        checks = [_by_subsets(self, problem, covariance, center, claimed)]
        if _is_explicit(covariance.domain):
            listed = covariance.domain.to_finite_set()
            if isinstance(problem.neighbors, ReplaceWithin):
                policy = _policy(problem.neighbors, covariance.domain, listed.points)
                problem = replace(problem, neighbors=policy)
            checks.append(
                check_points(problem, covariance, center, listed, explicit_fidelity(self))
            )
        return checks


def _policy(relation: ReplaceWithin, domain: AbstractTables, points: Array) -> PolicyGraph:
    """Return the policy graph of all pairs of records with equal public attributes."""
    records = np.indices(domain.sizes).reshape(len(domain.sizes), -1)[list(relation.public)]
    first, second = np.triu_indices(len(points), 1)
    agree = (records[:, first] == records[:, second]).all(axis=0)
    return PolicyGraph.from_edges(np.column_stack([first, second])[agree], points)


def _is_explicit(domain: AbstractTables) -> bool:
    """Return whether tables are small, with similar weights, so that all records can be listed."""
    return (
        domain.cardinality <= _EXPLICIT_CELLS
        and domain.cardinality**2 * domain.dim <= LONG_OPERATIONS
        and max(domain.weights) <= _EXPLICIT_RATIO * min(domain.weights)
    )


def _is_mean(center: Array, domain: AbstractTables) -> bool:
    """Return whether ``center`` is the mean of all records, to the last bit."""
    return all(
        bool((center[block] == weight / (block.stop - block.start)).all())
        for _, weight, block in domain.blocks()
    )


def _by_subsets(
    witness: MarginalCertificate,
    problem: Problem,
    covariance: MarginalCovariance,
    center: Array,
    claimed: float,
) -> Verification:
    """Return both bounds for a marginal covariance from its variances, by rational arithmetic."""
    domain = covariance.domain
    public = set(problem.public)
    if problem.protected not in ("replace", "add-remove", "gamma"):
        raise CertificateError("verify: expected 'replace' or 'add-remove' for marginals")
    if problem.domain is not domain:
        raise CertificateError("verify: the covariance belongs to another domain")
    signed = problem.neighbors == "add-remove"
    inside = residual_subsets(domain.subsets, domain.sizes)
    expected = {T for T in inside if (signed if not T else not public.issuperset(T))}
    variances = {T: float(variance) for T, variance in covariance.variances.items()}
    if set(variances) != expected or not all(0 < v < math.inf for v in variances.values()):
        raise CertificateError(
            "verify: expected a positive variance for every residual of the marginals"
        )
    if problem.shifted and not _is_mean(center, domain):
        raise CertificateError(
            "verify: expected the mean of all records as the center of marginals"
        )
    # compute equal terms once: sums of rationals do not depend on their order
    alike = Counter((rank(T, domain.sizes), domain.cells(T), v) for T, v in variances.items())
    # a record's part in residual T has squared length rank/cells; its noise has variance v
    enclosure = float(
        sum((Fraction(n * r, cells) / Fraction(v) for (r, cells, v), n in alike.items()), 0)
    )
    sensitivity = enclosure
    if not signed:
        sensitivity = marginal_sensitivity(domain, covariance.variances, problem.neighbors, claimed)
        enclosure = enclosure if problem.shifted else sensitivity
    # floats are integers over powers of two: with one common denominator, sums are of integers
    parts = {T: v.as_integer_ratio() for T, v in variances.items()}
    below = max((den for _, den in parts.values()), default=1)
    summands = {
        T: num * (below // den) * rank(T, domain.sizes) * domain.cells(T)
        for T, (num, den) in parts.items()
    }
    # a cell of S has the variance Σ_T v_T rank_T cells_T / cells_S²
    deviations = []
    for S, weight in zip(domain.subsets, domain.weights, strict=True):
        summed = sum(summands[T] for T in subsets_of(S) if T in summands) / below
        cells = domain.cells(S)
        deviations.append(weight * math.sqrt(summed) / cells * float(cells) ** (1 / problem.p))
    if not (witness.proves(problem) and is_measure(witness)):
        raise CertificateError(
            "verify: the certificate is not a measure on the records of these marginals"
        )
    return Verification(
        norm(np.array(deviations), problem.p), witness.lower_bound(), enclosure, sensitivity
    )


def is_measure(witness: MarginalCertificate) -> bool:
    """Return whether the weights of tables and patterns are distributions on possible patterns."""
    workload = witness.workload()
    return not workload.residuals or witness.has_weights(workload)


def explicit_fidelity(witness: MarginalCertificate) -> tuple[float, float]:
    """Return ``tr((W^½ C W^½)^½)`` of the measure on listed records or pairs, and its rounding.

    W is the diagonal matrix of the coordinate weights, and C the measure's second moment, or its
    covariance for ``gamma``. The rounding is a bound, as a fraction of the result.
    """
    domain, workload = witness.domain, witness.workload()
    largest = max(domain.weights)
    points = domain.to_finite_set().points / largest
    count = len(points)
    if witness.protected == "replace":
        # E (x − y)(x − y)' = 2 X' (I/N − Q) X, where Q is the joint distribution of the pair
        middle = 2 * (np.eye(count) - count * _pair_law(witness, workload)) / count
    elif witness.protected == "gamma":
        middle = (np.eye(count) - 1 / count) / count
    else:
        middle = np.eye(count) / count
    if witness.p > 2:
        points = points * np.sqrt(_coordinate_weights(witness, workload))
    rank = int(workload.residual_counts @ workload.ranks)
    values = np.linalg.eigvalsh(points.T @ middle @ points)
    kept = values[len(values) - rank :]
    if not len(kept):
        return 0.0, 0.0
    blur = 1e-15 * values[-1] * len(values)
    low, high = (float(np.sqrt(np.maximum(kept + s, 0)).sum()) for s in (-blur, blur))
    return largest * low, (high - low) / high + 2.0**-40


def _coordinate_weights(witness: MarginalCertificate, workload: Workload) -> Array:
    """Return every cell's weight: the power 1 − 2/p of its share of the dual weights."""
    place = {S: k for k, S in enumerate(workload.types)}
    parts = []
    for S in witness.domain.subsets:
        k = place[workload.orbits.type_of(S)]
        cells = witness.domain.cells(S)
        share = witness.shares[k] / witness.shares.sum() / workload.table_counts[k] / cells
        parts.append(np.full(cells, share ** dual_power(witness.p)))
    return np.concatenate(parts)


def _pair_law(witness: MarginalCertificate, workload: Workload) -> Array:
    """Return the probability of every ordered pair of records under the measure, shape (N, N)."""
    domain = witness.domain
    classes = workload.moving.classes
    count = domain.cardinality
    law = np.zeros((count, count))
    for pattern, weight in zip(witness.patterns.tolist(), witness.pattern_weights, strict=True):
        choices = [
            itertools.combinations(members, j) for members, j in zip(classes, pattern, strict=True)
        ]
        patterns = [
            set(itertools.chain.from_iterable(chosen)) for chosen in itertools.product(*choices)
        ]
        for differing in patterns:
            joint = np.ones((1, 1))
            for i, n in enumerate(domain.sizes):
                joint = np.kron(joint, (1 - np.eye(n)) / (n - 1) if i in differing else np.eye(n))
            law += weight / len(patterns) / count * joint
    return law / witness.pattern_weights.sum()
