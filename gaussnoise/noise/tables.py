"""The optimal covariance of marginals and of products of one-attribute queries."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from domains.errors import DomainTooLargeError
from domains.floats import MOST_NUMBERS, Array
from domains.tables.marginals import Marginals
from domains.tables.products import Products

from ..numerics.rounding import ROUNDING_MARGIN
from ..solvers.design import Protected
from ..solvers.progress import Watch, interrupts_pass
from ..solvers.tables.marginals import table_noise
from ..solvers.tables.orbits import ByType
from ..solvers.tables.products import ProductNoise, opposite, paired, product_noise
from ..solvers.tables.set_strategies import with_set_strategies
from ..solvers.tables.strategies import IdentityStrategy, SolvedStrategy
from ..solvers.tables.workload import Workload
from .answer import answer
from .certificates.marginals import MarginalCertificate
from .certificates.pair_weights import NO_PAIRS, packed
from .certificates.products import ProductCertificate
from .marginal_covariance import MarginalCovariance
from .optimal_noise import OptimalNoise, Status
from .problem import Problem
from .product_covariance import ProductCovariance
from .sensitivity import largest_move, marginal_sensitivity

_SHARE = 0.9  # the solver's part of the tolerance; the rest is for rounding and the final checks
_MOST_NAMED = 2**60  # numpy's indices have 63 bits
# below this gap, a search for better strategies under replacement takes more time than it is worth
_WORTH = 0.01
# most attributes with parts in one table: with more, the bound loses more by the directions that
# must be dropped than it gains by the parts
_MOST_SPLIT = 2
# Where the number of rows is private too, the largest share of it that contrasts of an attribute
# alone give to a category, as a multiple of 1/n: where shares are larger, contrasts are long.
_MOST_SHARE = 8.0
_CLOSED = 1e-9  # a lower bound may exceed the upper one by this much through rounding


def tables_optimum(
    problem: Problem, protected: Protected, tol: float, watch: Watch
) -> OptimalNoise:
    """Return the best noise for marginals or products."""
    if isinstance(problem.domain, Marginals):
        return marginal_optimum(problem, problem.domain, protected, tol, watch)
    if isinstance(problem.domain, Products):
        return product_optimum(problem, problem.domain, protected, tol, watch)
    raise TypeError(type(problem.domain).__name__)


def marginal_optimum(
    problem: Problem, domain: Marginals, protected: Protected, tol: float, watch: Watch
) -> OptimalNoise:
    """Return the best noise for marginals, given by the variances of attribute sets."""
    p, replaced, shifted = problem.p, protected == "replace", problem.shifted
    if shifted and domain.dim > MOST_NUMBERS:
        raise DomainTooLargeError(
            f"gamma: a center of {domain.dim:.3g} cells, more than {MOST_NUMBERS}; hint: "
            "optimal_noise stores none"
        )
    if domain.dim > _MOST_NAMED:
        raise DomainTooLargeError(f"marginals: {domain.dim:.3g} cells, more than can be numbered")
    workload = Workload.of(domain, total=protected == "add-remove", public=problem.public)
    optimum = table_noise(workload, p, replaced=replaced, tol=_SHARE * tol, watch=watch)
    enclosed = workload.largest_move(1 / optimum.noise, replaced=replaced)
    noise = optimum.noise * enclosed * (1 + 8 * ROUNDING_MARGIN)
    by_type = _by_type(workload, noise)
    certificate = MarginalCertificate(
        domain,
        p,
        protected,
        optimum.shares,
        optimum.patterns,
        optimum.pattern_weights,
        public=problem.public,
    )
    center = np.broadcast_to(0.0, domain.dim)
    if shifted:
        cells = [domain.cells(S) for S in domain.subsets]
        center = np.repeat(np.asarray(domain.weights) / cells, cells)
    unsolved = Status.INTERRUPTED if optimum.interrupted else Status.ROUNDING
    iterated = len(optimum.pattern_weights) > 1 or (p > 2 and len(optimum.shares) > 1)
    method = (
        f"{'interior-point method' if iterated else 'closed form'} over {_counted_types(workload)}"
    )
    if optimum.unproven:
        method = f"{method}; patterns of differing attributes are bounded, too many to look at"
        unsolved = Status.PATTERNS
    return answer(
        problem,
        covariance=MarginalCovariance(domain, by_type),
        center=center,
        certificate=certificate,
        upper=max(domain.weights) * workload.error(noise, p) * (1 + ROUNDING_MARGIN),
        lower=certificate.bound_over(workload),
        sensitivity_squared=marginal_sensitivity(domain, by_type, "replace") if shifted else 1.0,
        method=method,
        unsolved=unsolved,
        steps=optimum.steps if iterated else 0,
        trace=watch.trace if iterated else (),
        tol=tol,
    )


def product_optimum(
    problem: Problem,
    domain: Products,
    protected: Protected,
    tol: float,
    watch: Watch,
    joined: Collection[int] = (),
    one_way: Collection[int] = (),
) -> OptimalNoise:
    """Return the best noise with strategies for attributes, and a bound for all noise.

    A strategy lists the contrasts of the categories that are measured; the lower bound also holds
    for noise without strategies. Classes of attributes in ``joined`` are solved as if they were in
    tables with others; attributes in ``one_way`` have one strategy for all sets of attributes.
    """
    replaced = protected == "replace"
    workload = Workload.of(domain, total=not replaced, public=problem.public)
    optimum = product_noise(
        workload, problem.p, replaced=replaced, tol=tol, watch=watch, joined=joined
    )
    if not replaced:
        but = {workload.orbits.class_of(i) for i in one_way}
        with interrupts_pass():  # an unfinished round makes all others worse
            found = with_set_strategies(
                optimum.workload, problem.p, optimum.cell_weights, optimum.bits, but
            )
        if found is not optimum.workload:
            noise = table_noise(found, problem.p, replaced=False, tol=tol, watch=watch)
            optimum = replace(optimum, workload=found, noise=noise)
    best = _answer(problem, domain, protected, tol, optimum, watch)
    if replaced and best.gap > _WORTH:
        optimum = paired(optimum, problem.p, tol=tol, watch=watch)
        best = _answer(problem, domain, protected, tol, optimum, watch)
    return best


def with_short_contrasts(noise: OptimalNoise, tol: float) -> OptimalNoise:
    """Return noise for replaced rows with contrasts that hardly change if a row is added.

    Let an attribute be alone in its tables, and let its queries have few directions. The best
    contrasts are then nearly equal for all categories, and much longer than their differences. For
    such attributes, contrasts for joint tables are used. The proof that no noise is much better
    does not change.
    """
    proof, own, domain = noise.certificate, noise.covariance, noise.domain
    if not (
        isinstance(proof, ProductCertificate)
        and isinstance(own, ProductCovariance)
        and isinstance(domain, Products)
    ):
        return noise
    classes = proof.workload().orbits.classes
    shares = [own.strategies[members[0]].profile for members in classes]
    long = [
        k
        for k, (pairs, share) in enumerate(zip(proof.pairs, shares, strict=True))
        if len(pairs) and len(share) * np.abs(share).max() > _MOST_SHARE
    ]
    if not long:
        return noise
    short = product_optimum(noise.problem, domain, "replace", tol, Watch(None), joined=long)
    if not isinstance(short.certificate, ProductCertificate):
        raise TypeError(type(short.certificate).__name__)
    proof = replace(short.certificate, pairs=proof.pairs)
    return replace(short, certificate=proof, gamma_lower=min(proof.lower_bound(), short.gamma))


@lru_cache(maxsize=4)  # plans that differ in their budget alone have the same noise
def in_one_way(noise: OptimalNoise, attributes: frozenset[int], tol: float) -> OptimalNoise:
    """Return noise with one strategy for all sets of attributes, for some of the attributes."""
    own, domain = noise.covariance, noise.domain
    if not (
        isinstance(own, ProductCovariance)
        and isinstance(domain, Products)
        and any(own.strategies[i].others for i in attributes)
    ):
        return noise
    return product_optimum(
        noise.problem, domain, "add-remove", tol, Watch(None), one_way=attributes
    )


def _answer(
    problem: Problem,
    domain: Products,
    protected: Protected,
    tol: float,
    optimum: ProductNoise,
    watch: Watch,
) -> OptimalNoise:
    """Return noise that covers the set, from a solver's result, with lower and upper bounds."""
    p, replaced = problem.p, protected == "replace"
    workload, tables = optimum.workload, optimum.noise
    enclosed = largest_move(workload, 1 / tables.noise, replaced=replaced)
    noise = tables.noise * enclosed * (1 + 8 * ROUNDING_MARGIN)
    strategies = workload.by_attribute(domain.sizes)
    covariance = ProductCovariance(domain, strategies, _by_type(workload, noise))
    whole = tuple(np.zeros(len(weights), dtype=bool) for weights in optimum.cell_weights)
    certificate = ProductCertificate(
        domain,
        p,
        protected,
        tables.shares,
        tables.patterns if replaced else np.zeros((1, len(workload.moving.classes)), dtype=np.intp),
        tables.pattern_weights if replaced else np.ones(1),
        optimum.cell_weights,
        whole,
        tuple(
            packed(optimum.pairs[k]) if k in optimum.pairs else NO_PAIRS for k in range(len(whole))
        ),
        public=problem.public,
    )
    if optimum.shares is not None:
        other = replace(certificate, shares=optimum.shares)
        certificate = max(certificate, other, key=ProductCertificate.lower_bound)
    if replaced and len(tables.noise):
        certificate = max(_pair_laws(certificate, workload), key=ProductCertificate.lower_bound)
    upper = max(domain.weights) * workload.error(noise, p) * (1 + ROUNDING_MARGIN)
    lower = certificate.lower_bound()
    if lower <= upper * (1 + 8 * _CLOSED):
        lower = min(lower, upper)
    unsolved = Status.PRODUCTS if certificate.is_tight else Status.COUPLINGS
    if tables.unproven:
        unsolved = Status.PATTERNS
    elif tables.interrupted:
        unsolved = Status.INTERRUPTED
    solved = len({id(s) for s in workload.strategies if not isinstance(s, IdentityStrategy)})
    how = f"products of {solved} one-attribute optima" if solved else "closed form"
    return answer(
        problem,
        covariance=covariance,
        center=np.broadcast_to(0.0, domain.dim),
        certificate=certificate,
        upper=upper,
        lower=lower,
        sensitivity_squared=1.0,
        method=f"{how} over {_counted_types(workload)}",
        unsolved=unsolved,
        steps=optimum.rounds,
        trace=watch.trace,
        tol=tol,
    )


def _pair_laws(first: ProductCertificate, workload: Workload) -> Iterator[ProductCertificate]:
    """Yield certificates like ``first``, each with another distribution of pairs of records."""
    if not any(isinstance(strategy, SolvedStrategy) for strategy in workload.strategies):
        yield first
        return
    # Pairs that differ in all attributes mostly prove more than the worst patterns; two parts of an
    # attribute's categories prove much more; if several have parts, a mixture of both is best.
    all_differ = np.array(
        [0 if k in workload.public else len(c) for k, c in enumerate(workload.moving.classes)]
    )
    apart = replace(first, patterns=all_differ[None], pattern_weights=np.ones(1))
    yield apart
    if len(workload.alone) == len(workload.strategies):
        return  # every table has one attribute, and none changes more than in such pairs
    yield first
    parts = list(first.parts)
    for k, (bases, weights) in enumerate(zip(workload.bases, first.cell_weights, strict=True)):
        solved = isinstance(workload.strategies[k], SolvedStrategy)
        if solved and len(bases) == 1 and k not in workload.public and not len(first.pairs[k]):
            parts[k] = opposite(bases[0].gram(), weights)
    split = [k for k, part in enumerate(parts) if part.any()]
    together = max(sum(k in split for k in S) for S in workload.types)
    if together > 1 and sum(len(workload.orbits.classes[k]) for k in split) > _MOST_SPLIT:
        return
    apart = replace(apart, parts=tuple(parts))
    yield apart
    half = np.append(first.pattern_weights / first.pattern_weights.sum(), 1.0)
    yield replace(apart, patterns=np.vstack([first.patterns, all_differ]), pattern_weights=half)


def _by_type(workload: Workload, noise: Array) -> ByType:
    """Return the variance of each type of attribute set, from ``noise`` in the workload's units."""
    variances = (noise * workload.units).tolist()
    return ByType(workload.moving, dict(zip(workload.residuals, variances, strict=True)))


def _counted_types(workload: Workload) -> str:
    return f"{len(workload.tables)} types of table, {len(workload.residuals)} of residual"
