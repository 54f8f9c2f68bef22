"""Patterns of participation, and the set that noise must cover for them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from domains.participation.participations import CountParticipations, VectorParticipations
from domains.participation.patterns import AbstractPatterns
from domains.sets.finite import FiniteSet

from ..errors import ParameterError

Array = NDArray[np.float64]


def participations(
    workload: Any, participation: AbstractPatterns
) -> CountParticipations | VectorParticipations:
    """Return the set of changes that one person can make to all answers of a workload over time.

    It is a domain for :func:`gaussnoise.optimal_noise`.

    People are added or removed: pass ``neighbors="add-remove"``. For vectors, the answer's error
    and covariance are those of one coordinate: add noise of covariance M to every coordinate of the
    n published vectors, independently.

    Args:
        workload: A, shape (n, n), lower triangular with no zero on the diagonal: an array, or an
            object with ``toarray()``. Row t is published at time t; column i is the effect of the
            contribution at time i on all rows.
        participation: :class:`Epochs`, :class:`Apart`, :func:`AnyOf` or :class:`Window`, over the
            same n ticks.

    Returns:
        A domain in R^n: of ``kind="counts"`` the set ±{Σ_{i∈π} s_i a_i : 0 <= s_i <= 1}; of
        ``kind="vectors"`` {Σ_{i∈π} a_i ⊗ u_i : ‖u_i‖₂ <= 1}, of which the domain shows one
        coordinate.

    Raises:
        ParameterError: ``participation`` is not a pattern of participation.
        InvalidDomainError: the workload has another shape or a zero on the diagonal, or is over
            other ticks.

    Source: Choquette-Choo et al. (2023), "Multi-epoch matrix factorization"; the semidefinite
    programme of one pattern, the proof that nothing is lost for disjoint ones, and the certificate
    are this project's.

    >>> K = gn.streams.participations(np.tril(np.ones((16, 16))), gn.streams.Epochs(16, 4))
    >>> # root mean square of 16 answers
    >>> print(f"{gn.optimal_noise(K, neighbors='add-remove').gamma / 4:.5f}")
    3.67061
    """
    check_participation("participations", participation)
    kind = CountParticipations if participation.kind == "counts" else VectorParticipations
    return kind(dense(workload), participation)


def check_participation(function: str, participation: object) -> None:
    """Refuse a participation that is no pattern."""
    if not isinstance(participation, AbstractPatterns):
        raise ParameterError(
            f"{function}: expected a pattern of participation, got {type(participation).__name__}; "
            "hint: gn.streams.Epochs(n, k), gn.streams.Apart(n, k, b)"
        )


def dense(workload: Any) -> Array:
    """Return the matrix of a workload, or of any object that can be converted to one."""
    if isinstance(workload, FiniteSet):  # points are the columns
        return workload.points.T
    return np.asarray(workload.toarray() if hasattr(workload, "toarray") else workload)
