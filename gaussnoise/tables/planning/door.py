"""The function :func:`plan`, which finds the plan with the least noise, without any data."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, overload

import numpy as np

from domains.errors import DomainTooLargeError, InvalidDomainError
from domains.tables.tables import AbstractTables

from ...errors import ParameterError
from ...noise.optimal_noise import OptimalNoise
from ...noise.problem import Relation
from ...noise.tables import in_one_way, with_short_contrasts
from ...privacy.definitions import zCDP
from ...privacy.guarantee import AbstractPrivacy, check_gaussian
from ...solvers.progress import interrupts_pass
from ..schema.entries import Entry, workload_domain
from ..schema.numbers import PerPerson, Weight, asks_squares, unit_of
from ..schema.schema import Schema
from .exchange import with_number
from .plan import SECONDS_PER_INTEGER, Plan
from .ranges import FoundRange
from .request import Request
from .rows import covariance_in_cells, noise_for_rows
from .targets import Target, as_targets, largest_ratio, target_weights

if TYPE_CHECKING:
    from ...streams.plan import StreamPlan
    from ...streams.ticks import Ticks

_MOST_CELLS = 10**11
_TOLERANCE = 1e-6  # relative tolerance of the optimal noise
_ROUGHLY = 1e-3  # the tolerance where noise only determines the budget of tables without a target
# relative increase of budgets for targets, so that rounding makes no answer miss its target
_ROUNDING = 1e-9


@overload
def plan(
    schema: Schema,
    workload: int | Sequence[Entry],
    privacy: AbstractPrivacy | None = ...,
    *,
    neighbors: Relation = ...,
    p: float = ...,
    weights: Sequence[float] | None = ...,
    targets: Target
    | float
    | Mapping[str | tuple[str, ...], Target | float]
    | Sequence[Target | float | None]
    | None = ...,
    rows_per_person: int = ...,
    weight: Weight | None = ...,
    ranges: Sequence[FoundRange] = ...,
    person: str | None = ...,
    per_person: PerPerson | Mapping[str, PerPerson] | None = ...,
    public: str | Sequence[str] = ...,
    title: str | None = ...,
    source: str | None = ...,
    over: None = ...,
) -> Plan: ...
@overload
def plan(
    schema: Schema,
    workload: int | Sequence[Entry],
    privacy: AbstractPrivacy | None = ...,
    *,
    neighbors: Relation = ...,
    p: float = ...,
    weights: Sequence[float] | None = ...,
    targets: Target
    | float
    | Mapping[str | tuple[str, ...], Target | float]
    | Sequence[Target | float | None]
    | None = ...,
    rows_per_person: int = ...,
    weight: Weight | None = ...,
    person: str | None = ...,
    public: str | Sequence[str] = ...,
    title: str | None = ...,
    source: str | None = ...,
    over: "Ticks",
) -> "StreamPlan": ...
def plan(
    schema: Schema,
    workload: int | Sequence[Entry],
    privacy: AbstractPrivacy | None = None,
    *,
    neighbors: Relation = "add-remove",
    p: float = 2,
    weights: Sequence[float] | None = None,
    targets: Target
    | float
    | Mapping[str | tuple[str, ...], Target | float]
    | Sequence[Target | float | None]
    | None = None,
    rows_per_person: int = 1,
    weight: Weight | None = None,
    ranges: Sequence[FoundRange] = (),
    person: str | None = None,
    per_person: PerPerson | Mapping[str, PerPerson] | None = None,
    public: str | Sequence[str] = (),
    title: str | None = None,
    source: str | None = None,
    over: "Ticks | None" = None,
) -> "Plan | StreamPlan":
    """Return the plan with the least noise for marginal tables, or for queries about them.

    No data are needed.

    Args:
        schema: the public attributes.
        workload: k for all k-way marginals, or the attribute names of each marginal; ``()`` is the
            total. A mapping like ``{"age": "prefix", "sex": "identity"}`` says which queries are
            asked about the cells. It overrides the ``base`` of an :class:`Attribute`. Tables of
            cells are still released, with the least noise in the answers to these queries.
            ``{"sex": None, "income+hours": "moments"}`` asks, by sex, for the count and for the
            sums, the sums of squares and of products of clipped numbers.
        privacy: :class:`zCDP`, :class:`ApproxDP` or another guarantee, for the whole release. With
            ``targets`` it may be omitted: the plan then takes the least ρ that meets them.
        neighbors: "add-remove" for one row added or removed; the number of rows is private.
            "replace" for one row replaced by another; the number of rows is public.
        p: error norm in [2, ∞]: 2 minimises total variance over all cells, ``math.inf`` the
            largest variance. For queries other than counts, each entry's root mean square deviation
            is taken.
        weights: one positive number per marginal, by which its cells' standard deviations are
            multiplied in the error. Weights set priorities only; released tables are plain counts.
        targets: the wanted half-width, in rows, of 95 % intervals for the cells of each marginal
            (or for all answers about them): a number, or a :class:`Target` for another level. Give
            one for all marginals, a mapping from names, or a list in the workload's order. Targets
            replace ``p`` and ``weights``: the plan minimises the largest ratio of standard
            deviation to target, see :attr:`Plan.target_ratio`. Where the answers of an entry have
            different deviations, it minimises their root mean square, and the largest one meets the
            target: a smaller budget may then be possible. Marginals without a target (None in
            a list) get at most about 1 % of the budget. Their largest standard deviation is at most
            the one that they would have alone with 1 % of the budget, so it can be large.
        rows_per_person: the most rows that one person can have, if persons instead of rows are to
            be protected. Standard deviations grow by this factor. Without ``person`` it is an
            assumption that you make: the table is not checked for it.
        weight: a :class:`Weight`, that is a column of sample weights: each row counts with its
            weight, clipped to a largest weight. Standard deviations grow by this largest weight.
            Under "add-remove" only.
        person: the column that names the person of each row. Each release draws at most
            ``rows_per_person`` rows of each person at random, from those that fit the schema, and
            counts only these. So counts are too small where persons have more rows. Equal values in
            this column are the same person. In CSV they are compared byte by byte, and empty text
            means that a row belongs to no person. Such rows are outside the schema: see
            ``on_outside`` of :meth:`Plan.release`. With "replace", one person is replaced by
            another, who may have more or fewer of these rows. So the number of rows is private
            there too.
        per_person: the function that computes one number from all of a person's numbers, for means
            over persons, not rows: "mean", "sum", "max", or "count" (the number of the person's
            rows that have a number); or {clipped number: function}. A group is a combination of
            values of all attributes in tables that are not clipped numbers. A person has one record
            in each group with rows of this person, in at most ``rows_per_person`` groups. Numbers
            are clipped before their mean is taken. Sums of a person are clipped too, so for "sum"
            the interval must begin at 0.
        public: attributes whose joint table is published exactly: under replacement only, and only
            for workloads without clipped numbers. The guarantee is then about a row that is
            replaced by another row with the same values of these attributes. So these values of a
            row have NO protection: use this only for values that all people may know, like totals
            that a law fixes. Tables of these attributes have no noise, and other tables have less
            noise. Each marginal of the workload with some of these attributes publishes their exact
            table.
        ranges: the ranges that :func:`~gaussnoise.estimators.column_means` found for clipped
            numbers; a part of the budget is already spent on them. Other plans have no ranges.
        title: one line that says what the tables are about, like "Income by region, 2024". It is
            public: the text of the plan shows it, and so do the record, the text and the page of
            its release.
        source: one line that says where the rows come from, shown with the title.
        over: :class:`~gaussnoise.streams.Ticks`, for a continual release: at every tick, a table of
            new rows is counted, and tables of the new rows and of all rows so far are published, on
            one budget. ``rows_per_person`` and ``person`` are then per tick. The number of ticks in
            which a person has rows, ``Ticks(reports=)``, remains an assumption that is not checked,
            except with ``Ticks(enforced=True)``.

    Returns:
        A :class:`Plan`; with ``over``, a :class:`~gaussnoise.streams.StreamPlan`.

    Raises:
        ParameterError: unknown attributes, bad weights, wrong types.
        DomainTooLargeError: there are more noisy cells than can be drawn in minutes; the message
            says how many.

    Warns:
        PrivacyWarning: a δ of 0.01 or more.

    >>> schema = gn.Schema(
    ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])]
    ... )
    >>> survey = gn.plan(schema, 2, gn.zCDP(0.1))
    >>> print(f"{survey.standard_deviation('sex', 'age'):.4f}")
    2.2361
    >>> cheapest = gn.plan(
    ...     schema,
    ...     [("sex", "age"), "age"],
    ...     targets={("sex", "age"): 50, "age": gn.Target(80, 0.99)},
    ... )
    >>> print(f"{cheapest.rho:.6f} {cheapest.half_width('sex', 'age'):.3f}")
    0.000823 50.000
    >>> ages = gn.plan(schema, [{"age": "prefix"}], gn.zCDP(0.1))  # the cumulative distribution
    >>> print(ages.answer_deviations({"age": "prefix"}).shape)
    (3,)
    """
    if not isinstance(schema, Schema):
        raise ParameterError(
            f"plan: expected a Schema, got {type(schema).__name__}; hint: Schema.load(path)"
        )
    if privacy is None and targets is None:
        raise ParameterError(
            "plan: expected a privacy guarantee like zCDP(rho) or ApproxDP(epsilon, delta), got "
            "NoneType; hint: targets={...} finds the least budget"
        )
    if privacy is not None:
        check_gaussian("plan", privacy, stacklevel=2).stated()  # raises if files cannot store it
    names = [public] if isinstance(public, str) else public
    if not isinstance(names, list | tuple):
        raise ParameterError(
            f"plan: expected public to be attribute names, got {type(names).__name__}"
        )
    scales = {} if privacy is None else privacy.scales
    domain = workload_domain(schema, workload, scales=scales)
    if weights is not None and np.shape(weights) != (len(domain.subsets),):
        raise ParameterError(
            f"plan: expected {len(domain.subsets)} weights, one per marginal, got {weights!r}"
        )
    if over is not None and (targets is not None or privacy is None):
        raise ParameterError(
            "plan: a stream takes a budget, no targets; hint: its plan says how accurate it is"
        )
    goals = None
    if targets is not None:
        if weights is not None or p != 2:
            raise ParameterError("plan: targets replace p and weights; hint: leave those out")
        marginals = [tuple([schema.names[i] for i in S]) for S in domain.subsets]
        goals, p = tuple(as_targets(targets, marginals)), math.inf
    asked = Request(
        schema=schema,
        domain=domain,
        privacy=privacy,
        neighbors=neighbors,
        p=p,
        targets=goals,
        rows_per_person=rows_per_person,
        person=person,
        per_person=per_person or (),  # pyright: ignore[reportArgumentType] (Request checks it)
        public=tuple(names),
        weight=weight,
        ranges=tuple(ranges),
        title=title,
        source=source,
    )
    if over is not None:
        _check_continual(asked)
    _check_cells(domain)
    with interrupts_pass():  # a plan that the user has stopped must not go on to a release
        if goals is not None:

            def least(part: AbstractTables) -> float:
                return noise_for_rows(part, math.inf, asked.relation, _ROUGHLY).gamma

            weights = target_weights(domain, goals, least)
        if weights is not None:
            asked = replace(asked, domain=workload_domain(schema, workload, weights, scales))
        try:
            noise = noise_for_rows(asked.domain, asked.p, asked.relation, _TOLERANCE)
            if asked.person is not None and asked.neighbors == "replace":
                noise = with_short_contrasts(noise, _TOLERANCE)
            if goals is not None:
                noise = _meeting_most(noise, asked.domain, goals)
        except InvalidDomainError as error:
            raise ParameterError(f"plan: {error}") from None
    if isinstance(noise.domain, AbstractTables) and noise.domain.sizes == asked.domain.sizes:
        asked = replace(asked, domain=noise.domain)  # the same tables, if they were known already
    if privacy is None:
        asked = replace(asked, privacy=_least_budget(asked, noise))
    result = Plan(asked, noise)
    if privacy is None and asks_squares(asked.domain):
        result = _meeting_targets(result)
    if result.integers > _MOST_CELLS:
        raise DomainTooLargeError(
            f"plan: {result.integers:.3g} noisy integers would take {result.seconds / 3600:.3g} "
            f"hours, more than {_MOST_CELLS:.0e} of them; hint: ask for fewer or smaller marginals"
        )
    if over is None:
        _ = result.query.variances  # noise that cannot be drawn is refused here, not by the release
        return result
    from ...streams.plan import continual  # not at the top, since streams import plans

    return continual(result, over)


def _check_continual(asked: Request) -> None:
    """Raise ParameterError for arguments of :func:`plan` that plans of streams do not accept."""
    used = [asked.schema.attributes[i] for i in asked.used]
    if asked.public:
        raise ParameterError("plan: public attributes are for one release, not for a stream")
    if unit_of(used, asked.weight) > 1:
        raise ParameterError(
            "plan: a stream takes tables of counts, no clipped numbers and no weights; hint: for "
            "means over time, give the number edges in place of clip, whose shares and quantiles a "
            "stream has; or release every tick by itself, each at a part of the budget of one "
            "ledger, and compare them by difference(january, june)"
        )
    if asked.person is not None and asked.neighbors == "replace":
        raise ParameterError(
            "plan: a stream of persons cannot be combined with replacement: a person who is "
            "exchanged may have rows in other ticks than the other has, in twice as many together; "
            'hint: neighbors="add-remove"'
        )


def _meeting_most(
    noise: OptimalNoise, domain: AbstractTables, goals: Sequence[Target | None]
) -> OptimalNoise:
    """Return this noise, or that of one strategy for all sets: the one that needs less budget.

    Both minimise root mean squares of entries, but the largest deviation of an entry decides.
    """
    other = in_one_way(noise, frozenset(range(len(domain.sizes))), _TOLERANCE)
    if other is noise:
        return noise
    return min(noise, other, key=lambda own: largest_ratio(covariance_in_cells(own, domain), goals))


def _least_budget(asked: Request, noise: OptimalNoise) -> zCDP:
    """Return the least ρ at which this noise, scaled to cost ρ, meets all targets of accuracy."""
    covariance, goals = covariance_in_cells(noise, asked.domain), asked.targets or ()
    if asked.person is not None and asked.neighbors == "replace":
        covariance = with_number(covariance)
    elif noise.gamma == 0:
        raise ParameterError(
            "plan: these tables need no noise, hence no budget; hint: give any, it is not spent"
        )
    # The weights are 1 / target, so weighted deviations at unit sensitivity are ratios to the
    # targets. If an entry asks for more than cells, its worst query decides. Gaussian noise at unit
    # sensitivity is 1/2-zCDP (Bun & Steinke 2016, Proposition 1.6), and dividing it by a ratio
    # multiplies ρ by the square of this ratio.
    whole = asked.domain.is_cells and None not in goals and covariance is noise.covariance
    ratio = noise.gamma if whole else largest_ratio(covariance, goals)
    most = 1.0 if asked.weight is None else asked.weight.most
    return zCDP((asked.rows_per_person * most) ** 2 * ratio**2 / 2 * (1 + _ROUNDING))


def _meeting_targets(plan: Plan) -> Plan:
    """Return the plan, with its budget raised until the drawn noise meets all targets."""
    # where squares are summed, large noise is drawn a little larger than it was planned
    while (ratio := plan.target_ratio) > 1 + _ROUNDING:
        plan = plan.with_budget(zCDP(plan.rho * ratio**2 * (1 + _ROUNDING)))
    return plan


def _check_cells(domain: AbstractTables) -> None:
    """Raise DomainTooLargeError if the tables have too many cells, before anything is computed."""
    cells = domain.tables.dim
    if cells > _MOST_CELLS:
        raise DomainTooLargeError(
            f"plan: {cells:.3g} cells would take {cells * SECONDS_PER_INTEGER / 3600:.3g} hours "
            f"and {cells * 8 / 1e9:.3g} GB, more than {_MOST_CELLS:.0e} cells; hint: ask for fewer "
            "or smaller marginals"
        )
