"""How accurate a marginal is to be."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from ...errors import ParameterError
from ...noise.covariance import Covariance
from ...noise.table_covariance import covariance_of_tables
from ...numerics.intervals import quantile
from ...text import near


@final
@dataclass(frozen=True)
class Target:
    """Every cell of a marginal within ± so much.

    Args:
        within: half the length of a cell's confidence interval, in rows.
        level: of the interval.
        simultaneous: whether all cells of the marginal are to lie in their intervals together
            (Šidák 1967).

    Raises:
        ParameterError: a length that is not positive and finite, a level outside (0, 1).

    >>> round(gn.Target(50).standard_deviation(12), 3)
    25.511
    """

    within: float
    level: float = 0.95
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
        """The largest that meets the target, for a marginal of so many cells."""
        return self.within / quantile(self.level, cells if self.simultaneous else 1)


def as_targets(targets: object, marginals: list[tuple[str, ...]]) -> list[Target]:
    """One target per marginal, from a mapping by names, an ordered list, or one number."""
    if isinstance(targets, Target | int | float):
        return [targets if isinstance(targets, Target) else Target(targets)] * len(marginals)
    if isinstance(targets, list | tuple):
        if len(targets) != len(marginals):
            raise ParameterError(
                f"plan: expected {len(marginals)} targets, one per marginal, got {len(targets)}"
            )
        return [target if isinstance(target, Target) else Target(target) for target in targets]
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
        by_names[key] = target if isinstance(target, Target) else Target(target)
    missing = [m for m in marginals if frozenset(m) not in by_names]
    if missing or len(by_names) != len(marginals) or len(targets) != len(marginals):
        named = f"{missing[0]!r} has none" if missing else "got targets for others"
        known = {name for marginal in marginals for name in marginal}
        strange = [name for names in by_names for name in sorted(names) if name not in known]
        named += (
            f", and no attribute is called {strange[0]!r}{near(strange[0], known)}"
            if strange
            else ""
        )
        raise ParameterError(
            f"plan: expected one target for every marginal of the workload; {named}"
        )
    return [by_names[frozenset(m)] for m in marginals]


def largest_ratio(covariance: Covariance, goals: Sequence[Target]) -> float:
    """Largest ratio of an answer's deviation, at unit sensitivity, to what its target allows."""
    tables = covariance_of_tables(covariance)
    kinds = set(
        zip(tables.largest_deviations.tolist(), tables.queries.tolist(), goals, strict=True)
    )
    return max(
        deviation / goal.standard_deviation(int(answers)) for deviation, answers, goal in kinds
    )
