"""Comparisons of a plan with independent noise for each table, and with other kinds of noise."""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from domains.tables.bases import AbstractBase
from domains.tables.clipped import Clipped
from domains.tables.products import Products
from domains.tables.tables import AbstractTables

from ...errors import ParameterError
from ...noise.agreement import ReplaceWithin
from ...noise.certificates.apart import ApartCertificate, Block
from ...noise.certificates.marginals import MarginalCertificate
from ...noise.problem import Relation
from ...noise.solve import solved
from ...solvers.design import Protected
from ...solvers.progress import interrupts_pass, watching
from ...solvers.tables.marginals import table_noise

if TYPE_CHECKING:
    from .plan import Plan

Array = NDArray[np.float64]

_TOLERANCE = 1e-4  # relative tolerance of a comparison that is printed with three digits


def independent_deviations(plan: "Plan") -> Array:
    """Return each entry's root mean square deviation if every table has its own independent noise.

    The budget is split in the best way between the entries of the workload; shape (entries,).
    """
    cells, weights, p = plan.queries, np.array(plan.domain.weights), plan.noise.p
    if isinstance(plan.noise.certificate, ApartCertificate):
        return _deviations_of_blocks(plan, plan.noise.certificate.blocks)
    if plan.domain.is_cells:
        # The least variance of a cell of one marginal alone, at unit sensitivity. It would be 2,
        # but replacing a row keeps the sum of all cells, and the sums over each public combination.
        public = plan.noise.problem.public
        subsets = plan.domain.subsets if public else ()
        known = [float(plan.domain.cells([i for i in S if i in public])) for S in subsets] or 1.0
        free = cells / np.array(known)
        alone = np.ones_like(cells) if plan.neighbors == "add-remove" else 2 * (1 - 1 / free)
        if plan.neighbors == "replace" and plan.person is not None:
            alone = 2 * (1 - 1 / (cells + 1))  # persons may have no row
    else:
        rows = plan.noise.domain  # in place of the virtual cells of squares
        terms = rows.terms if isinstance(rows, AbstractTables) else plan.domain.terms
        known = set(plan.noise.problem.public)
        alone = np.array([_variance_alone(term, plan.neighbors, known) for term in terms]) / cells
        # a lower bound: the larger of those for replaced rows and for added rows
        if plan.neighbors == "replace" and plan.person is not None:
            added = np.array([_variance_alone(term, "add-remove", known) for term in terms]) / cells
            alone = np.maximum(alone, added)
    # The split minimises Σ cells · (weight² · alone / share)^(p/2) over shares that sum to one, by
    # Lagrange multipliers; at p = ∞, the largest term.
    outer, inner = (1.0, 0.0) if math.isinf(p) else (p / (p + 2), 2 / (p + 2))
    shares = ((weights / weights.max()) ** 2 * alone) ** outer * cells**inner
    variances = np.divide(alone, shares, out=np.zeros_like(cells), where=alone > 0)
    return np.sqrt(variances * (shares.sum() / (2 * plan.answer_rho)))


def _deviations_of_blocks(plan: "Plan", blocks: Sequence[Block]) -> NDArray[np.float64]:
    """Return the entries' deviations with independent noise and separate budgets of the blocks."""
    totals = np.zeros(len(plan.domain.terms))
    numbers = {block.number for block in blocks}
    for block in blocks:
        terms, weights = block.domain.terms, np.array(block.domain.weights)
        alone = np.array([_variance_alone(term, "add-remove", ()) for term in terms])
        # shares minimise Σ weight² · alone / share; alone: the variance with the whole budget
        shares = weights * np.sqrt(alone)
        variance = dict(zip(terms, alone / shares * shares.sum(), strict=True))
        for k, term in enumerate(plan.domain.terms):
            own = dict(term).get(-1 if block.number is None else block.number)
            rest = tuple([(i, b) for i, b in term if i not in numbers])
            if block.number is None:
                totals[k] += variance[rest]
            elif isinstance(own, Clipped):
                totals[k] += variance[rest] * (block.scale * own.high / own.unit) ** 2
    return np.sqrt(totals / plan.queries / (2 * plan.answer_rho))


def saving(plan: "Plan", name: str, protected: Protected) -> float:
    """Return the variance of the best noise for another relation, divided by this plan's.

    Let γ° be the error of this plan, the least under replacement. Let γ be a proven lower bound on
    the least error of noise for ``protected``: "add-remove", or "gamma", which leaves out the
    total. Such noise protects replaced rows if it is doubled, so the quotient is ``(2 γ / γ°)²``.
    """
    if plan.neighbors != "replace":
        raise ParameterError(
            f'{name}: expected a plan with neighbors="replace", got {plan.neighbors!r}'
        )
    if plan.public or plan.person is not None:
        more = "public attributes" if plan.public else "person="
        raise ParameterError(f"{name}: expected a plan without {more}")
    if not plan.domain.is_cells:
        raise ParameterError(
            f"{name}: expected a plan for cells alone, got other bases; hint: improvement"
        )
    workload = plan.workload
    if protected == "gamma":
        workload = replace(workload, residuals=tuple(T for T in workload.residuals if T))
    with watching(None, _TOLERANCE) as watch, interrupts_pass():
        optimum = table_noise(workload, plan.noise.p, replaced=False, tol=_TOLERANCE, watch=watch)
    proof = MarginalCertificate(
        plan.domain,
        plan.noise.p,
        protected,
        optimum.shares,
        optimum.patterns,
        optimum.pattern_weights,
    )
    lower = proof.bound_over(workload)
    if plan.noise.gamma == 0:
        return math.inf if lower > 0 else 1.0
    return (2 * lower / plan.noise.gamma) ** 2


def _variance_alone(
    term: Sequence[tuple[int, AbstractBase]], neighbors: Relation, public: Collection[int]
) -> float:
    """Return the least total variance of one entry's answers if nothing else is released."""
    single = math.prod(float(base.gram()[0, 0]) for _, base in term if base.size == 1)
    several = [(i, base) for i, base in term if base.size > 1]
    bases = [base for _, base in several]
    if neighbors == "add-remove":  # the optimum for a product is the product of optima
        return single * math.prod(_least_variance((base,), neighbors) for base in bases)
    known = tuple([k for k, (i, _) in enumerate(several) if i in public])
    if len(known) == len(bases):
        return 0.0
    return single * _least_variance(tuple(bases), ReplaceWithin(known) if known else neighbors)


@cache
def _least_variance(bases: tuple[AbstractBase, ...], neighbors: Relation) -> float:
    if not bases:
        return 1.0 if neighbors == "add-remove" else 0.0
    return solved(Products(bases, [range(len(bases))]), 2, neighbors, _TOLERANCE).gamma ** 2
