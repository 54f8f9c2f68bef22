"""Lower bounds under local privacy at one data set, from one measure for each record."""

import math

import numpy as np

from domains.domain import AbstractDomain, AbstractFiniteDomain, AbstractPolytope
from domains.floats import Array

from ..noise.certificates.points import PointCertificate
from ..numerics.norms import dual_power, even_weights
from ..numerics.rounding import ROUNDING_MARGIN
from .proof import Proof, evened, tables_of

_ROUNDS = 40
_STEPS = 20  # steps of the weights between two calls of the oracle
# a round that gains less than the share _CLOSE is idle; _IDLE idle rounds end the search
_CLOSE, _IDLE = 1e-4, 3
_CLIMBS = 3  # ascents start from this many axes of the form, in both directions
_FLOOR = 1e-12  # relative to the largest eigenvalue; below it, directions count as without points
_TRIED = 0.1  # share of a record's weight that its newest point gets


def local_proof(domain: AbstractDomain, rows: Array, counts: Array, p: float) -> Proof:
    r"""Return a proof of a lower bound on ``√(max_w Σ_i f_i γ_w(x_i − K)²)``, for rows x_i of data.

    K is the domain, and f_i is the share of records equal to row i. The maximum is over coordinate
    weights w with ``‖w‖_{s*} <= 1``, where s* = p/(p − 2). Let W = diag(w). Then ``γ_w(S)`` is the
    largest ``tr((W^{1/2} C W^{1/2})^{1/2})`` over second moments C of measures on S. Let b be the
    bound, and χ that of :func:`lower_bound`. At the data, ``‖sd‖_p²`` is at least ``b²/(nχ)²``.

    All records have the same weights w, but each has its own measure. Every intermediate result of
    the search proves a bound, and the best one is returned.

    Source: Nikolov & Tang (2023), Lemma 54, whose averaged messages are Hájek's projection. Their
    Theorem 55 then uses half of the width of K instead of the differences of each record.
    """
    # the proof that no ‖sd‖_p² is smaller:
    # * For an estimate f with covariance Σ_X from independent messages, Σ_X ⪰ Σ_i V_i, V_i the
    #   covariance of E[f | message i].
    # * Up to a constant, E[f | message i] is an unbiased estimate of x_i/n from one private
    #   message. Hence tr(W V_i) >= γ_w(x_i − K)² / (nχ)².
    # * The largest tr(W Σ_X) over w is ‖sd(Σ_X)‖_p².
    # One measure for all records would claim too much. The search takes multiplicative steps on the
    # measures and w, and adds points of K that are far from a record.
    shares = counts / counts.sum()
    axes = np.vstack([np.eye(domain.dim), -np.eye(domain.dim)])
    ends = np.unique([domain.support_point(axis) for axis in axes], axis=0)
    points = rows[:, None, :] - ends  # (records, points, d)
    size = float(np.abs(points).max())
    if size == 0:
        return Proof(0.0, (np.zeros(1), np.ones(1)), weights=np.zeros(domain.dim))
    weights = np.full(points.shape[:2], 1 / len(ends))
    w = even_weights(domain.dim, p)
    tables = tables_of(domain)
    best, before, idle = Proof(0.0, (np.zeros(1), np.ones(1)), weights=w), 0.0, 0
    for _ in range(_ROUNDS):
        for _ in range(_STEPS):
            forms, ratios = _gradients(points / size, weights, w)
            # multiplicative step: each weight times its derivative, proportional to z'Hz for its
            # point z and the form H
            weights = weights * np.einsum("rij,rij->ri", points / size @ forms, points / size)
            weights /= weights.sum(axis=1, keepdims=True)
            if p > 2:
                # gains are w times the gradient of Σ f γ²; at the maximum, proportional to w^{s*}
                gains = evened((shares * ratios.sum(axis=1)) @ ratios, tables)
                w = (gains / gains.sum()) ** dual_power(p)
        proven = [
            PointCertificate(*of, w, None, centered=False).lower_bound()
            for of in zip(points, weights, strict=True)
        ]
        lower = size * math.sqrt(shares @ (np.array(proven) / size) ** 2) * (1 - ROUNDING_MARGIN)
        if lower > best.gamma_lower:
            best = Proof(lower, (np.array([lower]), np.ones(1)), weights=w)
        idle = 0 if best.gamma_lower > before * (1 + _CLOSE) else idle + 1
        if idle == _IDLE:
            break
        before = best.gamma_lower
        forms, _ = _gradients(points / size, weights, w)
        new = [
            _far_member(domain, *of) for of in zip(forms, rows, rows - points[:, -1], strict=True)
        ]
        points = np.concatenate([points, (rows - np.array(new))[:, None, :]], axis=1)
        weights = np.column_stack([(1 - _TRIED) * weights, np.full(len(rows), _TRIED)])
    return best


def _far_member(domain: AbstractDomain, form: Array, row: Array, start: Array) -> Array:
    """Return a point y of the domain with a large ``(y − row)' form (y − row)``."""
    if isinstance(domain, AbstractFiniteDomain | AbstractPolytope):
        return domain.max_quadratic(form, row).maximizer
    # bodies other than polytopes have no exact search: several ascents are tried
    best, value = start, float((start - row) @ form @ (start - row))
    leading = np.linalg.eigh(form)[1][:, -_CLIMBS:].T
    for direction in (form @ (start - row), *leading, *-leading):
        y, before = domain.support_point(direction), -1.0
        while (here := float((y - row) @ form @ (y - row))) > before * (1 + _CLOSE):
            if here > value:
                best, value = y, here
            y, before = domain.support_point(form @ (y - row)), here
    return best


def _gradients(points: Array, weights: Array, w: Array) -> tuple[Array, Array]:
    """Return, for every record, ``W^½ (W^½ C W^½)^{-½} W^½`` and ``diag((W^½ C W^½)^½)``."""
    # C: second moment of the record's points; W = diag(w)
    root = np.sqrt(w)
    scaled = np.sqrt(weights)[:, :, None] * points * root
    values, axes = np.linalg.eigh(scaled.transpose(0, 2, 1) @ scaled)
    sigma = np.sqrt(np.maximum(values, np.maximum(_FLOOR * values[:, -1:], 1e-300)))[:, None, :]
    forms = (axes / sigma) @ axes.transpose(0, 2, 1) * np.outer(root, root)
    return forms, (axes**2 * sigma).sum(axis=2)
