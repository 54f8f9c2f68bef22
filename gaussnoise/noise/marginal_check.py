"""The dual witness of marginals, without the algebra that found it: second moments record by record."""

import itertools

import numpy as np
from numpy.typing import NDArray

from ..solvers.tables.workload import Workload
from .certificate import MarginalCertificate
from .product_certificate import ProductCertificate

Array = NDArray[np.float64]


def is_measure(witness: MarginalCertificate) -> bool:
    """Whether shares and pattern weights are distributions, and the patterns possible."""
    workload = witness.workload()
    return not workload.residuals or are_weights(witness, workload)


def are_weights(witness: MarginalCertificate | ProductCertificate, workload: Workload) -> bool:
    """Whether shares and pattern weights are distributions over the workload's tables and possible patterns."""
    patterns, weights, shares = witness.patterns, witness.pattern_weights, witness.shares
    most = [len(members) for members in workload.moving.classes]
    return bool(
        shares.shape == (len(workload.tables),)
        and weights.shape == (len(patterns),)
        and patterns.dtype.kind in "iu"
        and patterns.shape[1:] == (len(most),)
        and all((a >= 0).all() and np.isfinite(a).all() and a.sum() > 0 for a in (shares, weights))
        and (patterns >= 0).all()
        and (patterns <= most).all()
    )


def explicit_fidelity(witness: MarginalCertificate) -> tuple[float, float]:
    """``tr((W^{1/2} C W^{1/2})^{1/2})`` of the measure on listed records, or pairs of them."""
    domain, workload = witness.domain, witness.workload()
    largest = max(domain.weights)
    points = domain.to_finite_set().points / largest
    count = len(points)
    if witness.protected == "replace":
        # E (x − y)(x − y)' = 2 X' (I/N − Q) X, Q the joint law of the pair
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
    """W of every cell: its share, to the power 1 − 2/p."""
    place = {S: k for k, S in enumerate(workload.types)}
    parts = []
    for S in witness.domain.subsets:
        k = place[workload.orbits.type_of(S)]
        cells = witness.domain.cells(S)
        share = witness.shares[k] / witness.shares.sum() / workload.table_counts[k] / cells
        parts.append(np.full(cells, share ** (1 - 2 / witness.p)))
    return np.concatenate(parts)


def _pair_law(witness: MarginalCertificate, workload: Workload) -> Array:
    """Probability of every ordered pair of records, shape (N, N)."""
    domain = witness.domain
    classes = workload.moving.classes
    count = domain.cardinality
    law = np.zeros((count, count))
    for pattern, weight in zip(witness.patterns.tolist(), witness.pattern_weights, strict=True):
        choices = [itertools.combinations(members, j) for members, j in zip(classes, pattern, strict=True)]
        patterns = [set(itertools.chain.from_iterable(chosen)) for chosen in itertools.product(*choices)]
        for differing in patterns:
            joint = np.ones((1, 1))
            for i, n in enumerate(domain.sizes):
                joint = np.kron(joint, (1 - np.eye(n)) / (n - 1) if i in differing else np.eye(n))
            law += weight / len(patterns) / count * joint
    return law / witness.pattern_weights.sum()
