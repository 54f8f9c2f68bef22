"""The numbers that prove a lower bound in the error norm of the domain.

In that norm, each query of :class:`Products` counts with the root mean square of its table.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from domains.domain import AbstractDomain
from domains.floats import Array, power_of_two
from domains.sets.finite import FiniteSet
from domains.tables.products import Products

from ..noise.certificates.axes import AxesCertificate
from ..noise.certificates.points import PointCertificate
from ..noise.optimal_noise import OptimalNoise
from ..noise.solve import solved
from ..numerics.norms import norm
from ..numerics.span import span
from ..solvers.design import MAX_STEPS
from ..solvers.points.fidelity import Fidelity
from ..solvers.points.interior import maximum
from ..solvers.tables.shared import SharedFidelity


class Proof(NamedTuple):
    """The numbers of a certificate that a bound needs.

    Attributes:
        gamma_lower: lower bound on γ°, the least ``‖sd‖_p`` of Gaussian noise that covers a set.
        spectrum: the eigenvalues that sum to ``gamma_lower``, and their multiplicities.
        gap: relative bound on how far ``gamma_lower`` is below γ°; NaN if unknown.
        weights: weights of the coordinates, shape (d,); None if they are not listed.
    """

    gamma_lower: float
    spectrum: tuple[Array, Array]
    gap: float = math.nan
    weights: Array | None = None

    @staticmethod
    def of(noise: OptimalNoise) -> "Proof":
        """Return the numbers of the proof in the certificate of an optimal noise."""
        certificate = noise.certificate
        is_listed = isinstance(certificate, AxesCertificate | PointCertificate)
        weights = certificate.coordinate_weights if is_listed else None
        values, counts = certificate.spectrum()
        if isinstance(certificate, PointCertificate) and certificate.rows is None:
            # rounding of the points may raise every eigenvalue by this much (Weyl's inequality)
            values = np.maximum(values - max(float(values @ counts) - noise.gamma_lower, 0.0), 0.0)
        return Proof(noise.gamma_lower, (values, counts), noise.gap, weights)


def tables_of(domain: AbstractDomain) -> NDArray[np.intp]:
    """Return the index of the table that each coordinate belongs to, shape (d,).

    Coordinates of one term of :class:`Products` share a table; in other domains each has its own.
    """
    if isinstance(domain, Products):
        return np.repeat(
            np.arange(len(domain.terms)), [domain.queries(term) for term in domain.terms]
        )
    return np.arange(domain.dim)


def evened(values: Array, tables: NDArray[np.intp]) -> Array:
    """Return ``values`` with every entry replaced by the mean over its table, shape (d,)."""
    return (np.bincount(tables, values) / np.bincount(tables))[tables]


def proof_of(domain: AbstractDomain, moves: AbstractDomain, p: float, tol: float) -> Proof:
    """Return a proof of a lower bound on γ° of ``moves``, the set of changes by one record.

    γ° is the least ``‖sd‖_p`` of Gaussian noise whose covariance M covers the set (x' M⁺ x <= 1).
    """
    tables = tables_of(domain)
    if p > 2 and isinstance(moves, FiniteSet) and tables[-1] + 1 < len(tables):
        return _table_proof(moves.points, tables, p, tol)
    return Proof.of(solved(moves, p, "add-remove", tol))


def _table_proof(moves: Array, tables: NDArray[np.intp], p: float, tol: float) -> Proof:
    """Return a proof of a lower bound for p > 2, by weights that are equal within each table."""
    # w is the same within a table, s* = p/(p − 2). γ_w(S), the largest tr((W^½ C W^½)^½)
    # over second moments C on S, is at most √tr(WM) for every M that covers S; the largest √tr(WM)
    # over w is the error of M in the norm of the tables.
    live = moves.any(axis=0)
    if not live.any():
        return Proof(0.0, (np.zeros(1), np.ones(1)), 0.0)
    # division by a power of two does not round
    points = moves[:, live] / power_of_two(np.abs(moves).max())
    named, places = np.unique(tables[live], return_inverse=True)
    queries = np.bincount(tables).astype(np.float64)
    objective = SharedFidelity(Fidelity(points, p, False, span(points)), places, queries[named])
    optimum = maximum(objective, tol=tol, max_steps=MAX_STEPS)
    shares = np.zeros(len(queries))
    shares[named] = optimum.shares
    # queries that no record changes also get the weight of their table
    w = (shares / queries)[tables] ** objective.power
    w /= norm(w, 1 / objective.power)  # a proof needs ‖w‖_{s*} <= 1
    certificate = PointCertificate(moves, optimum.weights, w, None, centered=False)
    return Proof(certificate.lower_bound(), certificate.spectrum(), optimum.at.gap, w)
