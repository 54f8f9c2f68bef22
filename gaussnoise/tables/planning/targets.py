"""Targets of accuracy: the wanted margins of error, in rows, of the cells of tables."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import final

from domains.tables.marginals import Marginals
from domains.tables.products import Products
from domains.tables.tables import AbstractTables

from ...errors import ParameterError
from ...noise.covariance import AbstractCovariance
from ...noise.table_covariance import covariance_of_tables
from ...numerics.intervals import quantile
from ...text import near
from ..schema.workload import Wanted

SHARE = 0.01  # share of the targets' budget for tables without a target, at most


@final
@dataclass(frozen=True)
class Target:
    """A target of accuracy: every cell of a marginal within this many rows of the truth.

    Args:
        within: half the length of a cell's confidence interval, in rows.
        level: the level of the interval.
        simultaneous: whether all cells of the marginal should lie in their intervals together
            (Šidák 1967).

    Raises:
        ParameterError: a length that is not positive and finite, a level outside (0, 1).

    >>> round(gn.Target(50).standard_deviation(12), 3)
    25.511
    """

    within: float
    level: float = 0.95
    _: KW_ONLY
    simultaneous: bool = False

    def __post_init__(self) -> None:
        if (
            isinstance(self.within, bool)
            or not isinstance(self.within, int | float)
            or not 0 < self.within < math.inf
        ):
            raise ParameterError(
                f"Target: expected a positive, finite number of rows, got {self.within!r}"
            )
        quantile(self.level)

    def standard_deviation(self, cells: int) -> float:
        """Return the largest standard deviation that meets the target, for ``cells`` cells."""
        return self.within / quantile(self.level, cells if self.simultaneous else 1)


def goals_of(wanted: Iterable[Wanted]) -> list[Target | None]:
    """Return the target of each entry in a schema file's workload; None if it has none."""
    return [
        None if one.within is None else Target(one.within, one.level, simultaneous=one.simultaneous)
        for one in wanted
    ]


def as_targets(targets: object, marginals: list[tuple[str, ...]]) -> list[Target | None]:
    """Return the target of accuracy of each marginal, or None for a marginal without a target.

    ``targets`` is {names: target}, a list, or one target for all.
    """
    if isinstance(targets, Target | int | float):
        return [_target(targets)] * len(marginals)
    if isinstance(targets, list | tuple):
        if len(targets) != len(marginals):
            raise ParameterError(
                f"plan: expected {len(marginals)} targets, one per marginal, got {len(targets)}"
            )
        listed = [None if target is None else _target(target) for target in targets]
        _check_any(any(target is not None for target in listed))
        return listed
    if len(set(map(frozenset, marginals))) < len(marginals):
        raise ParameterError(
            "plan: expected targets as a list in the order of the workload, which has one table "
            "under several bases"
        )
    if not isinstance(targets, Mapping):
        raise ParameterError(
            f'plan: expected targets like {{("age", "sex"): 50}}, or one number for all, got '
            f"{targets!r}"
        )
    by_names: dict[frozenset[str], Target] = {}
    for names, target in targets.items():
        if not isinstance(names, str | tuple | frozenset) or not all(
            isinstance(name, str) for name in names
        ):
            raise ParameterError(
                f"plan: expected targets by attribute names, like {{{marginals[0]!r}: 50}}, got "
                f"{names!r:.80}; "
                "hint: one number for all marginals, or a list in their order"
            )
        key = frozenset((names,) if isinstance(names, str) else names)
        if key in by_names:
            raise ParameterError(f"plan: expected one target for a marginal, got two for {names!r}")
        by_names[key] = _target(target)
    _check_any(bool(by_names))
    asked, known = set(map(frozenset, marginals)), {name for m in marginals for name in m}
    for names in by_names:
        if names not in asked:
            strange = [name for name in sorted(names) if name not in known]
            hint = f"; no attribute there is called {strange[0]!r}" if strange else ""
            raise ParameterError(
                "plan: expected targets for marginals of the workload, got one for "
                f"{tuple(sorted(names))!r}{hint}{near(strange[0], known) if strange else ''}"
            )
    return [by_names.get(frozenset(m)) for m in marginals]


def _check_any(has_target: bool) -> None:
    """Raise ParameterError if no marginal has a target."""
    if not has_target:
        raise ParameterError("plan: expected a target for one marginal at least")


def _target(target: Target | float) -> Target:
    return target if isinstance(target, Target) else Target(target)


def target_weights(
    domain: AbstractTables,
    goals: Sequence[Target | None],
    least: Callable[[AbstractTables], float],
) -> list[float]:
    """Return one weight per entry, so that the plan of least error meets the targets best.

    The error is the largest weighted standard deviation of an answer. Entries without a target get
    a common deviation. Alone, with :data:`SHARE` of the targets' budget, they would have this
    deviation. Budgets of separate measurements add up, and the joint optimum needs no more than
    their sum.

    Args:
        domain: the workload.
        goals: the target of every term, or None.
        least: a function that returns the optimum for a domain: the largest weighted deviation,
            minimised, at unit sensitivity.
    """
    answers = [math.prod([base.queries for _, base in term]) for term in domain.terms]
    allowed = [
        None if goal is None else _deviation(goal, n)
        for goal, n in zip(goals, answers, strict=True)
    ]
    named = [1 / deviation for deviation in allowed if deviation is not None]
    if len(named) == len(allowed):
        return named
    aimed = [k for k, deviation in enumerate(allowed) if deviation is not None]
    free = [k for k, deviation in enumerate(allowed) if deviation is None]
    ratio, alone = least(_part(domain, aimed, named)), least(_part(domain, free, None))
    if ratio == 0:
        raise ParameterError(
            "plan: the marginals with targets need no noise, hence set no budget; hint: targets "
            "for others"
        )
    # Rounded, so that all machines find equal weights. If tables need no noise, any weight will do.
    common = float(f"{alone / ratio / math.sqrt(SHARE):.3g}") or 1 / min(named)
    return [1 / (common if deviation is None else deviation) for deviation in allowed]


def _part(
    domain: AbstractTables, places: Sequence[int], weights: Sequence[float] | None
) -> AbstractTables:
    """Return the part of a workload that consists of the entries with these indices."""
    if isinstance(domain, Products):
        return Products(domain.bases, [dict(domain.terms[k]) for k in places], weights=weights)
    return Marginals(domain.sizes, [domain.subsets[k] for k in places], weights=weights)


@cache
def _deviation(goal: Target, answers: int) -> float:
    return goal.standard_deviation(answers)


def largest_ratio(covariance: AbstractCovariance, goals: Sequence[Target | None]) -> float:
    """Return the largest ratio of a standard deviation to its limit, which a target determines.

    Deviations are at unit sensitivity.
    """
    tables = covariance_of_tables(covariance)
    kinds = set(
        zip(tables.largest_deviations.tolist(), tables.queries.tolist(), goals, strict=True)
    )
    return max(
        deviation / goal.standard_deviation(int(answers))
        for deviation, answers, goal in kinds
        if goal is not None
    )
