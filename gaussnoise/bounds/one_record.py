"""The least γ° of data with equal records, for a bound that holds for all data.

γ° of a set is the least ``‖sd‖_p`` of Gaussian noise whose covariance covers the set.

If all records equal x, one replacement changes their sum by ±(x − y). Data with different records
allow changes of this kind and more. So the bound for the record x with the least γ° of {±(x − y)}
holds for all data, and does not depend on them. In tables all records are equivalent, so x may be
fixed. The symmetries that keep x permute the other categories of every attribute, and a small
problem is left.
"""

import itertools
import math
from functools import lru_cache

import numpy as np

from domains.domain import AbstractFiniteDomain
from domains.floats import EPS
from domains.sets.finite import FiniteSet

from ..noise.certificates.marginals import MarginalCertificate
from ..noise.optimal_noise import OptimalNoise
from ..numerics.rounding import ROUNDING_MARGIN
from ..solvers.tables.residuals import Subset
from .proof import Proof, proof_of

# Limits for sets of points, each of which is tried as the only record: within a second.
_MOST_CENTERS, _MOST_ENTRIES = 48, 2**14
_TOLERANCE = 1e-5
# Limits for tables: the number of patterns, and patterns times squared sizes of the blocks.
_MOST_PATTERNS, _MOST_WORK = 2**12, 2**24
_STEPS, _CLOSE = 100, 1e-5


@lru_cache(maxsize=8)
def one_record(noise: OptimalNoise) -> Proof | None:
    """Return the proof of the least γ° of ``{±(x − y): y in the domain}`` over its points x.

    γ° of a set is the least ``‖sd‖_p`` of Gaussian noise whose covariance covers the set. The
    result is None if the domain has too many points.
    """
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
    """Return the proof for tables, whose records are all equivalent; None if it takes too long."""
    # A pattern D is the set of attributes in which the replacement y differs from x.
    # The measure is uniform on all y of one pattern. Let z_x be the zero-sum vector of x in an
    # attribute. If y agrees with x there, y has the same vector. If not, its vector is −z_x/(n − 1)
    # + t, with t orthogonal to z_x, uniform, and of squared length 1 − 1/(n − 1)² times that of
    # z_x. So the residual T of a_x − a_y (points of x and y) is a sum over sets Q ⊆ T ∩ D:
    # attributes in Q contribute t, the others a multiple of z_x. For one Q there are Π_{i∈Q} (n_i −
    # 2) equivalent dimensions. In each, the second moment is a matrix over the T ⊇ Q: V V' / dim,
    # with a column of V for every D. The trace of its root is the nuclear norm of V, up to a
    # factor.
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
    turned = np.where(differs, [-1 / max(n - 1, 1) for n in sizes], 1.0)  # factor of z_x in y
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
            # gains are the shares times twice the derivative of the trace: proportional to the
            # shares at the maximum
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
    """Return {T: weighted squared length of a record's residual T}; None for too many sets T."""
    # a residual T is the part of a record's point that belongs to the attributes T alone
    workload = certificate.workload()
    if 2 ** sum(len(members) for members in workload.moving.classes) > _MOST_PATTERNS:
        return None
    squares = max(certificate.domain.weights) ** 2 * certificate.losses(workload) / workload.ranks
    kinds = zip(workload.residuals, squares.tolist(), strict=True)
    return {
        T: square for kind, square in kinds if kind for T in workload.moving.members(kind)
    } or None
