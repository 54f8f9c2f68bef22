"""Participation patterns, and the set that noise must cover for them."""

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

    The set is a domain for :func:`gaussnoise.optimal_noise`. Neighbours differ in one person: pass
    ``neighbors="add-remove"``. For vectors, the answer's error and covariance M are those of one
    coordinate: add independent noise of covariance M to every coordinate of the n published
    vectors.

    Args:
        workload: A, shape (n, n), lower triangular with no zero on the diagonal: an array, or an
            object with ``toarray()``. Row t is published at time t; column i is the effect of the
            contribution at time i on all rows.
        participation: :class:`Epochs`, :class:`Apart`, :func:`AnyOf` or :class:`Window`, over the
            same n ticks.

    Returns:
        A domain in R^n. Let a_i be the columns of A, and π any set of ticks in the pattern. For
        ``kind="counts"`` it is ±{Σ_{i∈π} s_i a_i : 0 <= s_i <= 1}; for ``kind="vectors"``, one
        coordinate of {Σ_{i∈π} a_i ⊗ u_i : ‖u_i‖₂ <= 1}.

    Raises:
        ParameterError: ``participation`` is not a pattern of participation.
        InvalidDomainError: the workload has another shape, a zero on the diagonal, or another
            number of ticks.

    Source: Choquette-Choo et al. (2023), "Multi-epoch matrix factorization". New here: the
    semidefinite programme for one pattern, the proof that it is exact for disjoint patterns, and
    the certificate.

    >>> K = gn.streams.participations(np.tril(np.ones((16, 16))), gn.streams.Epochs(16, 4))
    >>> # root mean square of 16 answers
    >>> print(f"{gn.optimal_noise(K, neighbors='add-remove').gamma / 4:.5f}")
    3.67061
    """
    check_participation("participations", participation)
    kind = CountParticipations if participation.kind == "counts" else VectorParticipations
    return kind(dense(workload), participation)


def check_participation(function: str, participation: object) -> None:
    """Raise ParameterError unless ``participation`` is a pattern of participation."""
    if not isinstance(participation, AbstractPatterns):
        raise ParameterError(
            f"{function}: expected a pattern of participation, got {type(participation).__name__}; "
            "hint: gn.streams.Epochs(n, k), gn.streams.Apart(n, k, b)"
        )


def dense(workload: Any) -> Array:
    """Return the matrix of a workload, or of any object with ``toarray()``, as an array."""
    if isinstance(workload, FiniteSet):  # its points are the columns
        return workload.points.T
    return np.asarray(workload.toarray() if hasattr(workload, "toarray") else workload)
