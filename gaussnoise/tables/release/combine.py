"""Several releases of the same data combined by generalised least squares; budgets add up."""

import hashlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from domains.tables.bases import Identity
from domains.tables.marginals import Marginals
from domains.tables.products import Products
from domains.tables.tables import AbstractTables

from ...errors import NotAvailableError, ParameterError
from ...noise.marginal_covariance import covariance_of_cells
from ...numerics.rounding import rounded_up
from ...solvers.tables.orbits import ByType, Orbits
from ...solvers.tables.residuals import Subset, subsets_of
from ...solvers.tables.strategies import AbstractStrategy, IdentityStrategy, SolvedStrategy
from ..planning.measure import ResidualQuery
from ..schema.numbers import Weight
from ..schema.schema import Attribute, OnOutside, Schema
from .alike import difference_of
from .contrasts import ROUNDED
from .merged import Agreement, MergedPlan, Source
from .noisy import AbstractRelease
from .release import TableRelease

Array = NDArray[np.float64]
SameRows = Literal["tested", "assumed"]

_LEAST_P = 1e-6  # refused if noise alone makes such differences less often


def combine(
    releases: Sequence[TableRelease], *, same_rows: SameRows = "tested", all_rows_fit: bool = False
) -> TableRelease:
    r"""Return several releases of one data set as one release.

    Its numbers have the least variance of all unbiased linear estimates from these releases.

    A release is a set of independent measurements, one for each measured set T of attributes. The
    measurement of T is the part of T's table that its margins do not determine, plus noise
    ``N(0, σ² E)``. Releases that measure attributes by the same contrasts have the same matrix E.
    So generalised least squares weights each measurement of T by 1/σ². The result has
    ``1/σ² = Σ 1/σ_r²``, the sum over releases r. The combined release answers all questions that
    any of the releases answers: tables, ``contrast``, ``proportions``, ``ask`` and the rest, with
    exact covariances.

    Formal guarantees:
        * The costs ρ of all releases add up to the total cost (``rho_charged``), whether they are
          combined or not.
        * Estimates are unbiased with the stated deviations *if all releases are of the same rows
          and their noises are independent*. A release that is given twice is refused.
        * Whether the rows are the same is tested on the released numbers alone. This costs no
          privacy. If the rows are the same, differences between measurements of the same T are
          noise of known covariance, and their squared length in standard deviations is χ²
          distributed. The test refuses releases of the same rows once in a million cases. (The
          noise is on integers, with 2²⁹ steps or more per standard deviation. This changes the
          probability by less than 10⁻¹⁴, see
          :func:`gaussnoise.privacy.lattice_bound.lattice_distance`.) Releases of different rows
          pass if they differ less than the noise.

    Args:
        releases: two or more releases. All must have the same neighbouring relation,
            ``rows_per_person``, column of persons, public attributes and weight of rows. Attributes
            of the same name must have the same categories, edges or interval.
        same_rows: "tested", or "assumed" for no test. With a column of persons, it must be
            "assumed", since each release draws anew which rows of a person are counted. If persons
            have more rows than are counted, the releases count different rows, and estimates are
            for the rows that are counted on average. Numbers and weights are not tested if plans
            round them to different multiples.
        all_rows_fit: whether to assume that every row has valid values, as for :func:`difference`.
            This is needed if only some of the releases leave out rows without a valid value.

    Returns:
        A :class:`TableRelease` whose ``plan.sources`` lists the releases, and whose
        ``plan.agreement`` has the result of the test, or None. ``save`` writes the releases beside
        the tables, and ``TableRelease.load`` combines them again.

    Raises:
        ParameterError: releases that differ in neighbouring relation, unit, attributes, weight,
            public tables, public number of rows, or the rows that they leave out; releases of a
            stream; the same release twice; or tables that differ by more than noise, as tables of
            different rows do.
        NotAvailableError: the releases measure an attribute by different contrasts, since their
            plans have different bases.

    >>> import pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("smoker", [True, False])])
    >>> people = pa.table({"sex": ["F", "M", "F"] * 400, "smoker": [True, False, False] * 400})
    >>> plan = gn.plan(schema, 2, gn.zCDP(0.1))
    >>> one, two = plan.release(people), plan.release(people)
    >>> both = gn.combine([one, two])
    >>> print(both)
    TableRelease(1 marginal combined from 2 releases, rho charged 0.2)
    >>> ratio = both["sex"].standard_deviation / one["sex"].standard_deviation
    >>> ratio.round(6).tolist()
    [0.707107, 0.707107]
    >>> later = plan.release(pa.concat_tables([people, people]))
    >>> try:
    ...     gn.combine([one, later])
    ... except gn.errors.ParameterError as error:
    ...     print(str(error)[:92])
    combine: expected releases of the same rows, got tables that differ by more than their noise
    """
    if same_rows not in ("tested", "assumed"):
        raise ParameterError(
            f"combine: expected same_rows to be 'tested' or 'assumed', got {same_rows!r:.80}"
        )
    if not isinstance(all_rows_fit, bool):
        raise ParameterError(
            f"combine: expected all_rows_fit to be True or False, got {all_rows_fit!r:.80}"
        )
    listed = _checked(releases)
    if same_rows == "tested" and (person := listed[0].plan.person) is not None:
        raise ParameterError(
            "combine: expected releases of rows: those of persons cannot be tested, since each "
            f"draws anew which rows of a person (column {person!r}) it counts; hint: "
            'same_rows="assumed" if all counted the same table'
        )
    fits = _left_out(listed)
    if fits and not all_rows_fit:
        raise ParameterError(
            "combine: expected releases of the same rows, got some that drop rows with values "
            f"outside {', '.join(fits)} and some that do not; hint: all_rows_fit=True "
            "if every row had a value of the schema; next time a catch-all, "
            "other, in the schema"
        )
    attributes: dict[str, Attribute] = {}
    for attribute in itertools.chain(*(release.plan.schema.attributes for release in listed)):
        attributes.setdefault(attribute.name, attribute)
    schema = Schema(attributes.values())
    at = {name: i for i, name in enumerate(schema.names)}
    domain = _domain(listed, schema, at)
    tables = domain.tables
    strategies = _strategies(listed, schema, at)
    sources = tuple(source for release in listed for source in sources_of(release))
    parts = tuple(part for release in listed for part in releases_of(release))
    first = listed[0].plan
    residuals, variances, gaps = _mean_measurements(listed, at, strategies)
    tested = same_rows == "tested"
    agreement = _agreement(gaps, schema, sources, first.weight) if tested else None
    measured = ByType(Orbits(tuple((i,) for i in range(len(at)))), dict.fromkeys(variances, 1))
    query = ResidualQuery(strategies, measured, None)
    kind = first.neighbors, first.rows_per_person, first.person, first.per_person, first.public
    plan: Any = MergedPlan(schema, domain, *kind, first.weight, sources, parts, agreement, fits)
    outside: OnOutside = "drop" if any(r.on_outside == "drop" for r in listed) else "refuse"
    return TableRelease(
        plan,
        all(release.private for release in listed),
        rounded_up(sum((Fraction(release.rho_charged) for release in listed), Fraction(0))),
        covariance_of_cells(tables, strategies, variances),
        query,
        {S: _table(query, residuals, S) for S in tables.subsets},
        listed[0].backend,
        outside,
    )


def _record_of(plan: Any) -> str:
    """Return the meaning of a person's record, like "the mean of income by sex", or "rows"."""
    if not plan.per_person:
        return "rows"
    numbers = [f"the {how} of {name}" for name, how in plan.per_person.items()]
    groups = {name for names in plan.marginals for name in names} - set(plan.per_person)
    return " and ".join([*numbers, f"by {' × '.join(sorted(groups))}" if groups else "once"])


def _checked(releases: Sequence[TableRelease]) -> list[TableRelease]:
    """Return the releases as a list; raise ParameterError if they cannot be combined."""
    if not isinstance(releases, list | tuple) or not all(
        isinstance(release, TableRelease) for release in releases
    ):
        raise ParameterError(
            f"combine: expected a list of releases, got {type(releases).__name__}; "
            "hint: combine([one, two])"
        )
    if len(releases) < 2:
        raise ParameterError(f"combine: expected two releases or more, got {len(releases)}")
    check_together("combine", releases)
    _check_attributes(releases)
    return list(releases)


def _left_out(releases: Sequence[TableRelease]) -> tuple[str, ...]:
    """Return the attributes by which only some of the releases leave out rows."""
    # a release with on_outside="refuse" shows that there are no rows to leave out
    fits = {name for r in releases if r.on_outside == "refuse" for name in _without_catch_all(r)}
    dropped = {
        frozenset(_without_catch_all(r) - fits if r.on_outside == "drop" else ()) for r in releases
    }
    return tuple(sorted(frozenset.union(*dropped))) if len(dropped) > 1 else ()


def check_together(
    function: str, releases: Sequence[TableRelease], may_differ: Sequence[str] = ()
) -> None:
    """Raise ParameterError if releases count different records, or have noise in common.

    Args:
        function: the name at the beginning of error messages.
        releases: the releases.
        may_differ: the properties in which releases may differ.
    """
    expected = f"{function}: expected releases with independent noise, got"
    if any(release.times is not None for release in releases):
        raise ParameterError(
            f"{expected} tables of a stream; hint: its own tables have difference(later, earlier) "
            "and combined(weights)"
        )
    for what, (arguments, of) in _AGREE.items():
        found = {of(release.plan) for release in releases}
        if len(found) > 1 and what not in may_differ:
            got = " and ".join(sorted("none" if one is None else str(one) for one in found))
            raise ParameterError(
                f"{function}: expected one {what}, got {got}, so that their budgets protect "
                "different things, or they count other rows; hint: make one of them again, with "
                f"the same {arguments}"
            )
    ids = [source.id for release in releases for source in sources_of(release)]
    if len(set(ids)) < len(ids):
        raise ParameterError(f"{expected} one twice")


# {property in which releases must agree: (arguments of plan(), the property of a plan)}
_AGREE: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "neighbouring relation": ("neighbors=", lambda plan: plan.neighbors),
    "number of rows per person": ("rows_per_person=", lambda plan: plan.rows_per_person),
    "column of persons": ("person=", lambda plan: plan.person),
    "set of public attributes": ("public=", lambda plan: plan.public),
    "record of persons": ("per_person=", lambda plan: _record_of(plan)),
    "weight of rows": ("weight=", lambda plan: plan.weight),
    "set of scales of budgets": (
        "budget, gn.PerRecord(…)",
        lambda plan: tuple(sorted(plan.scales.items())),
    ),
    "number of counted rows per person": (
        "person= and rows_per_person=",
        lambda plan: "all" if plan.person is None else plan.rows_per_person,
    ),
}


def _without_catch_all(release: TableRelease) -> set[str]:
    """Return the attributes in a release's tables that have no category for all other values."""
    used = {name for marginal in release for name in marginal}
    return {a.name for a in release.plan.schema.attributes if a.name in used and a.other is None}


def _check_attributes(releases: Sequence[TableRelease]) -> None:
    """Raise ParameterError if two releases define an attribute of the same name differently."""
    known: dict[str, Attribute] = {}
    for attribute in itertools.chain(*(release.plan.schema.attributes for release in releases)):
        name = attribute.name
        first = known.setdefault(name, attribute)
        how = difference_of(first, attribute)
        spelt = ({t for _, own in a.spellings for t in own} for a in (first, attribute))
        if how is None and attribute.other is not None and len(set(map(frozenset, spelt))) > 1:
            how = "has spellings in one release that its catch-all counts in the other"
        if how is not None:
            raise ParameterError(
                f"combine: expected {name!r} with the same categories, edges or interval in all "
                f"releases, got {name!r} which {how}; hint: ask one of them for its tables of "
                f"{name!r}"
            )


def _domain(
    releases: Sequence[TableRelease], schema: Schema, at: Mapping[str, int]
) -> AbstractTables:
    """Return one workload that has each query of the releases once; ``at`` is {name: index}."""
    terms = dict.fromkeys(
        tuple(sorted((at[release.plan.schema.names[i]], base) for i, base in term))
        for release in releases
        for term in release.plan.domain.terms
    )
    if all(base.is_identity for term in terms for _, base in term):
        return Marginals(schema.sizes, [[i for i, _ in term] for term in terms])
    own = [attribute.base or Identity(attribute.size) for attribute in schema.attributes]
    return Products(own, list(map(dict, terms)))


def _strategies(
    releases: Sequence[TableRelease], schema: Schema, at: Mapping[str, int]
) -> tuple[AbstractStrategy, ...]:
    """Return the strategy of each attribute of ``schema``; NotAvailableError if releases differ."""
    strategies: dict[str, AbstractStrategy] = {}
    for release in releases:
        used = {name for marginal in release for name in marginal}
        names = release.plan.schema.names
        for name, named in zip(names, release.query.strategies, strict=True):
            own = named.keyed(lambda T, names=names: [tuple(sorted(at[names[i]] for i in T))])
            if name in used and not _same(strategies.setdefault(name, own), own):
                raise NotAvailableError(
                    f"combine: expected {name!r} to be measured by the same contrasts in all "
                    "releases, got different ones, as plans for different queries have (such as "
                    f"cells and prefix); hint: plan the same queries of {name!r} next time, and "
                    "ask each of these releases by itself"
                )
    return tuple(strategies.get(a.name, IdentityStrategy(a.size)) for a in schema.attributes)


def _same(one: AbstractStrategy, other: AbstractStrategy) -> bool:
    if isinstance(one, SolvedStrategy) and isinstance(other, SolvedStrategy):
        return (
            np.array_equal(one.measured, other.measured)
            and one.others.keys() == other.others.keys()
            and all(_same(own, other.others[T]) for T, own in one.others.items())
        )
    return one == other


class _Gap(NamedTuple):
    """The difference of a release from the mean of the earlier ones, for one attribute set."""

    subset: Subset
    chi_squared: float  # squared length of the difference, in standard deviations of its noise
    degrees_of_freedom: int


def _mean_measurements(
    releases: Sequence[TableRelease], at: dict[str, int], strategies: Sequence[AbstractStrategy]
) -> tuple[dict[Subset, Array], dict[Subset, float], list[_Gap]]:
    """Return each set's precision-weighted mean, its variance, and the gaps between releases."""
    totals: dict[Subset, Array] = {}
    precisions: dict[Subset, float] = {}
    exact: dict[Subset, Array] = {}
    gaps: list[_Gap] = []
    for release in releases:
        rounding = ROUNDED * abs(float(release[()].estimate))  # floating-point rounding error
        for names, estimate, deviation in release.measurements():
            order = sorted(range(len(names)), key=lambda k: at[names[k]])
            T = tuple(at[names[k]] for k in order)
            estimate = np.transpose(estimate, order)
            # public tables are exact and have no variance here
            if deviation == 0:
                known = exact.setdefault(T, estimate)
                if not np.allclose(known, estimate, rtol=1e-12, atol=1e-6):  # they are integers
                    raise ParameterError(
                        "combine: expected releases of one data set, got different public numbers "
                        "of rows"
                    )
                continue
            precision = deviation**-2
            # each gap compares with the mean of those before, so that gaps are independent
            if T in totals:
                gap, scale = estimate - totals[T] / precisions[T], 1.0
                for axis, own in enumerate([strategies[i].in_set(T) for i in T]):
                    # the length by E⁺, the pseudoinverse of E, is proportional to that of C x
                    gap, scale = own.contrast(gap, axis), scale * own.unit / own.square
                variance = deviation**2 + 1 / precisions[T] + rounding**2
                free = math.prod(strategies[i].size - 1 for i in T)
                gaps.append(_Gap(T, scale * float(np.square(gap).sum()) / variance, free))
            totals[T] = totals.get(T, 0.0) + precision * estimate
            precisions[T] = precisions.get(T, 0.0) + precision
    residuals = {T: np.asarray(totals[T] / precisions[T]) for T in totals} | exact
    return residuals, {T: 1 / precision for T, precision in precisions.items()}, gaps


def _agreement(
    gaps: Sequence[_Gap], schema: Schema, sources: Sequence[Source], weight: Weight | None
) -> Agreement:
    """Return the result of the test whether gaps are noise; ParameterError if they are larger."""
    if len({source.unit for source in sources}) > 1:  # numbers are rounded to different multiples
        clipped = {i for i, a in enumerate(schema.attributes) if a.is_summed}
        gaps = [gap for gap in gaps if weight is None and not clipped & set(gap.subset)]
    total, free = sum(gap.chi_squared for gap in gaps), sum(g.degrees_of_freedom for g in gaps)
    agreement = Agreement.of(total, free)
    if agreement.p_value < _LEAST_P:
        widest = max(gaps, key=lambda gap: gap.chi_squared / gap.degrees_of_freedom).subset
        where = " × ".join(schema.names[i] for i in widest) or "the number of rows"
        raise ParameterError(
            "combine: expected releases of the same rows, got tables that differ by more than "
            f"their noise, most in {where} (χ² = {total:.4g} with {free} degrees of freedom, "
            f"p = {agreement.p_value:.1e}); hint: difference(before, after) compares releases of "
            'different rows; same_rows="assumed" leaves this test out'
        )
    return agreement


def _table(query: ResidualQuery, residuals: dict[Subset, Array], S: Subset) -> Array:
    """Return the table of the attribute set S: the sum of the measurements of all subsets of S."""
    table = np.zeros([query.strategies[i].size for i in S])
    for T in subsets_of(S):
        if T in residuals:
            table += query.spread(residuals[T], T, S)  # in place: a sum of () is no array
    table.flags.writeable = False
    return table


def sources_of(release: TableRelease) -> tuple[Source, ...]:
    """Return a short description (identifier, cost, tables) of each release that this one combines.

    If it combines no others, there is one description, of the release itself.
    """
    plan: Any = release.plan
    if isinstance(plan, MergedPlan):
        return plan.sources
    digest = hashlib.sha256()
    for S in release.plan.tables.subsets:
        digest.update(np.ascontiguousarray(release.tables[S]).tobytes())
    marginals = tuple(release)
    unit = release.query.unit
    return (Source(digest.hexdigest()[:16], release.rho_charged, marginals, unit),)


def releases_of(release: TableRelease) -> tuple[AbstractRelease, ...]:
    """Return the release itself, or the releases that it combines."""
    plan: Any = release.plan
    return plan.releases if isinstance(plan, MergedPlan) else (release,)
