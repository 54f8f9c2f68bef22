"""The moves of data that are all one point: other data move at least as far as the best of them.

Nothing here depends on data: the record is the listed point whose moves need the least noise. In
tables all records are equivalent, and with one record fixed symmetry leaves a small problem: the
record's stabiliser permutes the other categories of every attribute.
"""

import itertools
import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from domains import AbstractFiniteDomain, FiniteSet
from domains.floats import EPS

from ..noise.certificates.marginals import MarginalCertificate
from ..noise.optimal_noise import OptimalNoise
from ..numerics.rounding import ROUNDING_MARGIN
from ..solvers.tables.residuals import Subset
from .proof import Proof
from .tables import proof_of

Array = NDArray[np.float64]

# Limits for sets whose every point is tried as the only record: under a second.
_MOST_CENTERS, _MOST_ENTRIES = 48, 2**14
_TOLERANCE = 1e-5
# Limits for tables: patterns, and patterns times squares of the blocks' sizes.
_MOST_PATTERNS, _MOST_WORK = 2**12, 2**24
_STEPS, _CLOSE = 100, 1e-5


@lru_cache(maxsize=8)
def one_record(noise: OptimalNoise) -> Proof | None:
    """Return γ° of the least ``{±(x − y)}``, from noise for the set; None where it is too large."""
    if isinstance(noise.certificate, MarginalCertificate):
        return _of_tables(noise.certificate)
    domain = noise.domain
    if (
        not isinstance(domain, AbstractFiniteDomain)
        or domain.cardinality * domain.dim > _MOST_ENTRIES
    ):
        return None
    points = np.unique(domain.to_finite_set().points, axis=0)
    if not 1 < len(points) <= _MOST_CENTERS:
        return None
    proofs = []
    for x in points:
        differences = x - points
        moves = FiniteSet(differences[differences.any(axis=1)])
        proofs.append(proof_of(domain, moves, noise.p, _TOLERANCE))
    return min(proofs, key=lambda proof: proof.gamma_lower)


def _of_tables(certificate: MarginalCertificate) -> Proof | None:
    r"""Return the best measure on patterns in which y differs from x, uniform within each.

    A zero-sum coordinate of y equals that of x where they agree; elsewhere it is ``−z_x/(n − 1) +
    t``, with t orthogonal to z_x, uniform, and of squared length 1 − 1/(n − 1)² times that of z_x.
    So the part of T of ``a_x − a_y`` splits into sets Q ⊆ T ∩ D of attributes that contribute t.
    Those of one Q have ``Π_{i∈Q} (n_i − 2)`` equal dimensions, on each of which the second moment
    is a matrix over the T ⊇ Q: ``V V' / dim``, with columns D. Its root's trace is the nuclear norm
    of V.
    """
    energies = _energies(certificate)
    if energies is None:
        return None
    sizes, moving = certificate.domain.sizes, sorted({i for T in energies for i in T})
    patterns = [D for k in range(1, len(moving) + 1) for D in itertools.combinations(moving, k)]
    blocks: dict[Subset, list[Subset]] = {}
    for T in energies:
        for k in range(len(T) + 1):
            for Q in itertools.combinations(T, k):
                if all(sizes[i] > 2 for i in Q):
                    blocks.setdefault(Q, []).append(T)
    if sum(len(above) ** 2 for above in blocks.values()) * len(patterns) > _MOST_WORK:
        return None
    differs = np.array([[i in D for i in range(len(sizes))] for D in patterns])
    turned = np.where(
        differs, [-1 / max(n - 1, 1) for n in sizes], 1.0
    )  # factors of the part along z_x
    matrices = []
    for Q, above in blocks.items():
        rest = [turned[:, [i for i in T if i not in Q]].prod(axis=1) for T in above]
        moved = np.array(rest) - (0 if Q else 1)
        moved *= differs[:, list(Q)].all(axis=1) * np.sqrt([energies[T] for T in above])[:, None]
        matrices.append(
            (math.prod(sizes[i] - 2 for i in Q), moved * math.sqrt(_tangential(sizes, Q)))
        )
    shares = np.full(len(patterns), 1 / len(patterns))
    best = Proof(0.0, (np.zeros(1), np.ones(1)), math.nan)
    before = 0.0
    for _ in range(_STEPS):
        values, counts, gains = [], [], np.zeros(len(patterns))
        for dim, V in matrices:
            _, sigma, right = np.linalg.svd(V * np.sqrt(shares), full_matrices=False)
            sigma = np.maximum(sigma - 8 * EPS * sigma[0], 0.0)
            gains += math.sqrt(dim) * (sigma @ right**2)
            values.append(sigma / math.sqrt(dim))
            counts.append(np.full(len(sigma), float(dim)))
        spectrum = np.concatenate(values) * (1 - ROUNDING_MARGIN), np.concatenate(counts)
        lower = float(spectrum[0] @ spectrum[1]) * (1 - ROUNDING_MARGIN)
        if lower > best.gamma_lower:
            best = Proof(lower, spectrum, math.nan)
        if lower <= before * (1 + _CLOSE):
            break
        before, shares = lower, gains / gains.sum()
    return best


def _tangential(sizes: tuple[int, ...], Q: Subset) -> float:
    return math.prod(1 - 1 / (sizes[i] - 1) ** 2 for i in Q)


def _energies(certificate: MarginalCertificate) -> dict[Subset, float] | None:
    """Return the squared length of every T ≠ ∅ in a record, by weights; None if too many."""
    workload = certificate.workload()
    if 2 ** sum(len(members) for members in workload.moving.classes) > _MOST_PATTERNS:
        return None
    squares = max(certificate.domain.weights) ** 2 * certificate.losses(workload) / workload.ranks
    kinds = zip(workload.residuals, squares.tolist(), strict=True)
    return {
        T: square for kind, square in kinds if kind for T in workload.moving.members(kind)
    } or None
