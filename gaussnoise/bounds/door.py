"""The public function for lower bounds."""

from typing import get_args

import numpy as np
from numpy.typing import ArrayLike

from domains.domain import AbstractDomain, AbstractFiniteDomain

from ..errors import DataError, GaussNoiseError, NotAvailableError, ParameterError
from ..noise.policy import PolicyGraph
from ..noise.problem import Relation
from ..noise.sensitivity import check_relation
from ..noise.solve import check_problem, solved
from ..privacy.guarantee import AbstractPrivacy, check_privacy
from .bound import Bound, Unbiased, bound_from, bound_of
from .distribution import at_distribution
from .local_design import local_proof
from .moves import moves, records_of
from .neighbors import known_chi_squared, known_epsilon_delta
from .proof import Proof, proof_of

_MOST_LOCAL_RECORDS = 500  # largest number of records with a measure each: a minute
_MOST_LOCAL_ENTRIES = 2**19  # largest number of entries in the matrices of all records
_MOST_RECORDS = 2**63  # largest n


def lower_bound(
    domain: AbstractDomain,
    privacy: AbstractPrivacy,
    *,
    n: int | None = None,
    p: float = 2,
    neighbors: Relation = "replace",
    data: "ArrayLike | None" = None,
    unbiased: Unbiased = "empirical",
    tol: float = 1e-6,
) -> Bound:
    r"""Return the error that no unbiased private mechanism can beat, with a proof.

    Let γ°_p(S) be the least ``‖sd(M)‖_p`` of a covariance M that covers S (``optimal_noise``). Let
    χ² be the largest χ² divergence between outputs on neighbours: ``4 sinh²(ε/2)`` for ε-privacy,
    ``e^{2ρ} − 1`` for ρ-zCDP, and ``e^{μ²} − 1`` for μ-GDP. Under replacement,
    ``‖sd‖_p >= γ°_p(K − K) / (2nχ)`` for all data, and ``γ°_p(S_X) / (nχ)`` at the data set X,
    where ``S_X = {±(x − y)}`` over records x of X and all y in K. For few listed points, and for
    tables of up to about eleven attributes, the bound for all data is the larger of two numbers:
    the first bound, and the least value of the second bound over data whose records are all equal.
    Under add-remove, the bound on sums is ``γ°_p(K ∪ −K) / χ`` for all data.

    Mechanisms that are unbiased for the mean of a distribution P have the same bounds. If P is
    given, they have a larger one: ``‖sd‖² >= γ²/(nχ)² + tr(W cov P)/n``. Here W = diag(w), and w
    are the proof's weights of coordinates. Under local privacy, √n replaces n. At X, γ° is then
    replaced by the root mean square over records of ``γ°_p({±(x_i − y)})``, with the same
    coordinate weights for all records.

    Under (ε, δ), total variation and KL privacy, some data sets can be answered without error. The
    bound is then on the largest error among the data set and its neighbours: see
    :meth:`Bound.neighbor_error`.

    Args:
        domain: K.
        privacy: :class:`PureDP`, :class:`zCDP`, :class:`GDP`, :class:`ApproxDP`, :class:`TV`,
            :class:`KL`, :class:`LocalDP` (without interaction, means), or one of your own.
        n: number of records, or of draws; required for means unless ``data`` are given, forbidden
            for sums.
        p: error norm in [2, ∞].
        neighbors: "replace", "add-remove" or a policy graph, as in :func:`optimal_noise`.
        data: a data set, for a bound at this one: records as rows, or row indices of listed points.
            The result depends on the data without noise: NOT PRIVATE. Under add-remove, all data
            sets have the same bound, and ``data`` is refused.
        unbiased: "empirical", for the mean of the records. "distributional", for the mean of any
            distribution on K, where the records are n independent draws from it (not under
            :class:`KL`). If ``data`` are given, they are this distribution, with all records
            equally likely, and the variance of its draws is part of the bound.
        tol: relative gap of the certificate that proves the bound.

    Returns:
        A :class:`Bound`; its ``error`` is a lower bound.

    Raises:
        ParameterError: no bound is known for the combination; the message says why.
        NotAvailableError: a guarantee of your own gives no bound on its mechanisms.
        DataError: data are not in the domain; the message shows no value.
        DomainTooLargeError: data are given and the domain has more points than can be listed.

    Source: Nikolov & Tang (2023), Theorems 42, 43, 51, 52, 55, 58 and 59; the constants,
    add-remove, the trade-off, distributions without a larger ε, and local privacy at X are ours.

    >>> bound = gn.lower_bound(gn.FiniteSet(np.eye(4)), gn.zCDP(0.1), n=100)
    >>> print(f"{bound.error:.6f}")  # at data that are all in one cell
    0.049080
    >>> at = gn.lower_bound(gn.FiniteSet(np.eye(4)), gn.zCDP(0.1), data=[0, 1, 2, 3] * 25)
    >>> print(f"{at.error:.6f}", at.private)
    0.052058 True
    """
    check_problem("lower_bound", domain, p, tol, "auto")
    _check(privacy, neighbors, unbiased)
    relation = check_relation("lower_bound", neighbors, domain)
    if relation == "add-remove":
        if n is not None or data is not None:
            raise ParameterError(
                "lower_bound: add-remove protects how many records there are; its bound is on "
                "sums, and the same at every data set; hint: leave n and data out"
            )
        return bound_of(solved(domain, p, relation, tol), privacy, None)
    if data is not None:
        return _at_data(domain, privacy, n, p, relation, data, unbiased, tol)
    if isinstance(relation, PolicyGraph):
        raise ParameterError(
            "lower_bound: expected data= under a policy graph: no bound holds for all data sets"
        )
    n = _check_n(n)
    return bound_of(solved(domain, p, relation, tol), privacy, n, unbiased=unbiased)


def _at_data(
    domain: AbstractDomain,
    privacy: AbstractPrivacy,
    n: int | None,
    p: float,
    relation: Relation,
    data: "ArrayLike",
    unbiased: Unbiased,
    tol: float,
) -> Bound:
    rows, counts = records_of(domain, data)
    if not isinstance(
        domain, AbstractFiniteDomain
    ):  # differences and variances do not depend on the position of K
        domain, shift = domain._apart()
        rows = rows - shift
    records = int(counts.sum())
    if unbiased == "distributional" and known_chi_squared(privacy) is not None:
        proof = _proof_at_data(domain, moves(domain, rows, relation), p, tol)
        draws = records if n is None else _check_n(n)
        free = bound_of(solved(domain, p, relation, tol), privacy, draws, unbiased=unbiased)
        return at_distribution(domain, rows, counts, proof, p, free)
    if n is not None and _check_n(n) != records:
        raise DataError(f"lower_bound: expected exactly n = {n} records, got another number")
    if privacy.noise != "local":
        proof = _proof_at_data(domain, moves(domain, rows, relation), p, tol)
        at = "{±(x − y)}: x in the data, y in K" + (
            " joined to x" if isinstance(relation, PolicyGraph) else ""
        )
        return bound_from(proof, p, privacy, records, 1.0, at, unbiased, private=True)
    most = min(_MOST_LOCAL_RECORDS, max(1, _MOST_LOCAL_ENTRIES // domain.dim**2))
    if len(rows) > most:
        raise ParameterError(
            f"lower_bound: expected at most {most} distinct records in R^{domain.dim} under local "
            "privacy, got more; hint: leave data out"
        )
    proof = local_proof(domain, rows, counts, p)
    reachable = (
        "x − y for every record x of the data by itself, y in K; root mean square over records"
    )
    return bound_from(proof, p, privacy, records, 1.0, reachable, "empirical", private=True)


def _proof_at_data(domain: AbstractDomain, reach: AbstractDomain, p: float, tol: float) -> Proof:
    """Return the proof of a lower bound for ``reach``, with errors that show no record's size."""
    # reach: differences between private records and their replacements
    try:
        return proof_of(domain, reach, p, tol)
    except (GaussNoiseError, ArithmeticError) as error:
        kind = type(error).__name__
    raise DataError(
        f"lower_bound: these records are too far from ordinary sizes to be compared ({kind})"
    )


def _check(given: object, neighbors: object, unbiased: object) -> None:
    privacy = check_privacy("lower_bound", given)
    if unbiased not in get_args(Unbiased):
        raise ParameterError(
            f"lower_bound: expected unbiased in {get_args(Unbiased)}, got {unbiased!r}"
        )
    if privacy.scales and neighbors != "add-remove":
        raise ParameterError(
            'lower_bound: expected neighbors="add-remove" for budgets of single records, got '
            f"{neighbors!r:.50}"
        )
    local, bounded = privacy.noise == "local", known_chi_squared(privacy) is not None
    if local and (neighbors != "replace" or unbiased != "empirical"):
        raise ParameterError(
            'lower_bound: local privacy is for means of the data: neighbors="replace", '
            'unbiased="empirical"'
        )
    if not bounded and (local or known_epsilon_delta(privacy) is None):
        raise NotAvailableError(
            f"lower_bound: no bound is known for mechanisms with {privacy!r:.100}; hint: "
            f"override {'chi_squared' if local else 'chi_squared, power'} or implies in its class"
        )
    if unbiased == "distributional" and neighbors != "replace":
        raise ParameterError('lower_bound: the mean of a distribution has neighbors="replace" only')


def _check_n(n: int | None) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 1 <= n <= _MOST_RECORDS:
        raise ParameterError(
            f"lower_bound: expected an integer n in [1, 2^63], or data, got {n!r:.100}"
        )
    return int(n)
