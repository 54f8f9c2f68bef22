"""Plan first, without data; then release."""

import contextlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast, final

import numpy as np

from domains import DomainTooLargeError, Marginals

from .._covariance import MarginalCovariance, norm
from .._intervals import quantile
from .._noise import OptimalNoise
from .._residuals import Subset
from .._sensitivity import Relation
from .._solve import optimal_noise
from ..errors import GaussNoiseError, NotAvailableError, ParameterError
from ..privacy import AbstractPrivacy, zCDP
from ._count import count_marginals
from ._files import FileFormat, check_target, staged, write_release
from ._measure import Integers, ResidualQuery, parts_of, residual_queries
from ._read import frame_backend
from ._release import TableRelease
from ._schema import Schema
from ._targets import Target, as_targets

# 11 µs for OpenDP's draw, and exact integer arithmetic around it
_SECONDS_PER_INTEGER = 15e-6
_BYTES_PER_INTEGER = 200
_MOST_INTEGERS = 10**7
_ROUNDING = 1e-9  # budgets for targets are this much larger, so that rounding cannot miss them


def plan(
    schema: Schema,
    workload: int | Sequence[str | tuple[str, ...]],
    privacy: AbstractPrivacy | None = None,
    *,
    neighbors: Relation = "add-remove",
    p: float = 2,
    weights: Sequence[float] | None = None,
    targets: "Target | float | Mapping[str | tuple[str, ...], Target | float] | None" = None,
    rows_per_person: int = 1,
) -> "Plan":
    """The least noise for a set of marginal tables, before any data are seen.

    Args:
        schema: the public attributes.
        workload: k for all k-way marginals, or the attribute names of each marginal; ``()`` is the total.
        privacy: :class:`zCDP` or :class:`ApproxDP`, for the whole release; with ``targets`` it may be left out, for the
            least ρ that meets them.
        neighbors: "add-remove", one row more or less; the number of rows is private.
        p: error norm in [2, ∞]: 2 minimises total variance over all cells, ``math.inf`` the largest.
        weights: one positive number per marginal: its cells' standard deviations count that much. Error priority only;
            released tables are plain counts.
        targets: for every marginal of the workload, within how many rows its cells are to lie at 95 %: a number, or a
            :class:`Target` for another level. They replace ``p`` and ``weights``: the largest ratio of standard
            deviation to target is made least, see :attr:`Plan.target_ratio`.
        rows_per_person: the most rows that one person can have, when persons are to be protected instead of rows.
            Standard deviations grow by this factor. It is a promise of yours: nothing in the table is checked.

    Returns:
        A :class:`Plan`.

    Raises:
        ParameterError: unknown attributes, bad weights, wrong types.
        DomainTooLargeError: more noisy cells than can be drawn in minutes; says how many.
        NotAvailableError: replace-one (yet).

    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])])
    >>> survey = gn.plan(schema, 2, gn.zCDP(0.1))
    >>> print(f"{survey.standard_deviation('sex', 'age'):.4f}")
    2.2361
    >>> cheapest = gn.plan(schema, [("sex", "age"), "age"], targets={("sex", "age"): 50, "age": gn.Target(80, 0.99)})
    >>> print(f"{cheapest.rho:.6f} {cheapest.half_width('sex', 'age'):.3f}")
    0.000823 50.000
    """
    if not isinstance(schema, Schema):
        raise ParameterError(f"plan: expected a Schema, got {type(schema).__name__}; hint: Schema.load(path)")
    if not isinstance(privacy, AbstractPrivacy) and (privacy is not None or targets is None):
        raise ParameterError(f"plan: expected zCDP(rho) or ApproxDP(epsilon, delta), got {type(privacy).__name__}")
    if neighbors not in ("add-remove", "replace"):
        raise ParameterError(f'plan: expected neighbors="add-remove" or "replace", got {neighbors!r}')
    if neighbors == "replace":
        raise NotAvailableError(
            'plan: neighbors="replace" is not available for tables yet; use "add-remove" at rho / 4, which is '
            "at least as private, or optimal_noise(domain.to_finite_set()) and GaussianMechanism for a small table"
        )
    if type(rows_per_person) is not int or not rows_per_person >= 1:
        raise ParameterError(f"plan: expected an integer rows_per_person >= 1, got {rows_per_person!r}")
    subsets = _subsets(schema, workload)
    if weights is not None and np.shape(weights) != (len(subsets),):
        raise ParameterError(f"plan: expected {len(subsets)} weights, one per marginal, got {weights!r}")
    goals = None
    if targets is not None:
        if weights is not None or p != 2:
            raise ParameterError("plan: targets replace p and weights; hint: leave those out")
        goals = tuple(as_targets(targets, [tuple(schema.names[i] for i in S) for S in subsets]))
        cells = [math.prod(schema.sizes[i] for i in S) for S in subsets]
        weights = [1 / goal.standard_deviation(n) for goal, n in zip(goals, cells, strict=True)]
        p = math.inf
    domain = Marginals(schema.sizes, subsets, weights)
    noise = optimal_noise(domain, p, neighbors)
    if privacy is None:
        # weighted variances at unit sensitivity are squares of ratios to the targets
        privacy = zCDP(rows_per_person**2 * noise.gamma**2 / 2 * (1 + _ROUNDING))
    result = Plan(schema, domain, noise, privacy, rows_per_person, goals)
    if result.integers > _MOST_INTEGERS:
        raise DomainTooLargeError(
            f"plan: {result.integers:.3g} noisy cells would take "
            f"{result.integers * _SECONDS_PER_INTEGER / 60:.3g} minutes and "
            f"{result.integers * _BYTES_PER_INTEGER / 1e9:.3g} GB, more than {_MOST_INTEGERS:.0e} cells; "
            "hint: ask for fewer or smaller marginals"
        )
    return result


def _subsets(schema: Schema, workload: int | Sequence[str | tuple[str, ...]]) -> tuple[Subset, ...]:
    if isinstance(workload, int):
        if not 0 <= workload <= len(schema.names):
            raise ParameterError(
                f"plan: expected 0 <= k <= {len(schema.names)} attributes, got {workload}-way marginals"
            )
        return Marginals.all_kway(schema.sizes, workload).subsets
    if not isinstance(workload, list | tuple) or not all(isinstance(m, str | tuple | list) for m in workload):
        raise ParameterError(f'plan: expected k or a list of marginals like [("age", "sex")], got {workload!r}')
    if not workload:
        raise ParameterError("plan: expected at least one marginal; hint: [()] asks for the total alone")
    named = [(names,) if isinstance(names, str) else tuple(names) for names in workload]
    subsets = [attribute_positions(schema, names) for names in named]
    if len({frozenset(S) for S in subsets}) < len(subsets):
        raise ParameterError("plan: expected distinct marginals, got one twice")
    return tuple(subsets)


def attribute_positions(schema: Schema, names: tuple[str, ...]) -> Subset:
    """Positions of distinct attributes, in the order given, or a ParameterError."""
    for name in names:
        if name not in schema.names:
            raise ParameterError(f"no attribute {name!r}: expected one of {', '.join(map(repr, schema.names))}")
    if len(set(names)) < len(names):
        raise ParameterError(f"expected distinct attributes, got {names!r}")
    return tuple(schema.names.index(name) for name in names)


@final
@dataclass(frozen=True, eq=False)
class Plan:
    """What a release will look like: a public document, computed without data.

    Attributes:
        schema: the public attributes.
        domain: the :class:`Marginals` of the workload.
        noise: the certified optimal covariance at unit sensitivity.
        privacy: the budget of the whole release, for one person.
        rows_per_person: the most rows that one person is taken to have.
        targets: what was asked of every marginal, or None.
    """

    schema: Schema
    domain: Marginals
    noise: OptimalNoise
    privacy: AbstractPrivacy
    rows_per_person: int = 1
    targets: tuple[Target, ...] | None = None

    def __post_init__(self) -> None:
        covariance = self.noise.covariance
        if (
            not isinstance(covariance, MarginalCovariance)
            or self.noise.shifted
            or self.noise.neighbors != "add-remove"
            or covariance.domain is not self.domain
            or self.domain.sizes != self.schema.sizes
        ):
            raise ParameterError("Plan: expected add-remove noise for the marginals of this schema; hint: call plan()")

    @property
    def marginals(self) -> tuple[tuple[str, ...], ...]:
        """Attribute names of every marginal."""
        return tuple(tuple(self.schema.names[i] for i in S) for S in self.domain.subsets)

    @property
    def neighbors(self) -> Relation:
        """The neighbouring relation."""
        return self.noise.neighbors

    @cached_property
    def rho(self) -> float:
        """ρ of zero-concentrated differential privacy, for the whole release."""
        return self.privacy.to_zcdp().rho

    @cached_property
    def row_rho(self) -> float:
        """ρ spent on one row: k rows of one person cost k² times as much."""
        share = self.rho / self.rows_per_person**2
        return share if share * self.rows_per_person**2 <= self.rho else math.nextafter(share, 0.0)

    @property
    def target_ratio(self) -> float:
        """Largest ratio of a half-width to its target: at most 1 where all targets are met.

        Raises:
            ParameterError: planned without targets.
        """
        if self.targets is None:
            raise ParameterError("target_ratio: this plan has no targets; hint: plan(..., targets=...)")
        pairs = zip(self.domain.subsets, self.targets, strict=True)
        return max(self._deviation(S) / goal.standard_deviation(self.domain.cells(S)) for S, goal in pairs)

    def _deviation(self, S: Subset) -> float:
        """Standard deviation of every cell of the table of S."""
        return math.sqrt(self._covariance.table_variance(S) / (2 * self.row_rho))

    @cached_property
    def _covariance(self) -> MarginalCovariance:
        return cast("MarginalCovariance", self.noise.covariance)

    @property
    def integers(self) -> int:
        """Noisy integers a release draws."""
        return sum(self.domain.cells(T) for T in self._covariance.variances)

    @property
    def error(self) -> float:
        """``‖sd‖_p`` over all (weighted) cells: at p = 2 the root of their total variance."""
        return self._covariance.error(self.noise.p) / math.sqrt(2 * self.row_rho)

    @property
    def improvement(self) -> float:
        """How many times less variance than independent noise on each marginal, both at their best for ``p``."""
        domain = self.domain
        deviations = [
            weight * self._independent_deviation(S) * domain.cells(S) ** (1 / self.noise.p)
            for S, weight in zip(domain.subsets, domain.weights, strict=True)
        ]
        return (norm(np.array(deviations), self.noise.p) / self.error) ** 2

    @cached_property
    def _independent(self) -> dict[Subset, float]:
        """Shares of the budget, not normalised, at which independent noise on each marginal has the least error."""
        domain, p = self.domain, self.noise.p
        outer, inner = (2.0, 0.0) if math.isinf(p) else (2 * p / (p + 2), 2 / (p + 2))
        largest = max(domain.weights)
        return {
            S: (weight / largest) ** outer * float(domain.cells(S)) ** inner
            for S, weight in zip(domain.subsets, domain.weights, strict=True)
        }

    def _independent_deviation(self, S: Subset) -> float:
        return math.sqrt(math.fsum(self._independent.values()) / self._independent[S] / (2 * self.row_rho))

    def independent_standard_deviation(self, *names: str) -> float:
        """Of every cell of a planned marginal, had each marginal independent noise and the best split of the budget."""
        S = tuple(sorted(self.subset(names)))
        if S not in self._independent:
            raise ParameterError(f"independent_standard_deviation: expected a planned marginal, got {names!r}")
        return self._independent_deviation(S)

    def standard_deviation(self, *names: str) -> float:
        """Of every cell of the table of these attributes: a planned marginal, or a part of one.

        Raises:
            ParameterError: no planned marginal contains them.
        """
        S = tuple(sorted(self.subset(names)))
        self.check_released(S)
        return self._deviation(S)

    def half_width(self, *names: str, level: float = 0.95) -> float:
        """Half the length of a cell's confidence interval."""
        return quantile(level) * self.standard_deviation(*names)

    def subset(self, names: Sequence[str]) -> Subset:
        """Positions of attributes in the schema, in the order given.

        Raises:
            ParameterError: unknown or repeated names.
        """
        if not isinstance(names, list | tuple):
            raise ParameterError(f"expected attribute names, got {names!r}")
        return attribute_positions(self.schema, tuple(names))

    def check_released(self, S: Subset) -> None:
        """Raise ParameterError unless some planned marginal contains S."""
        if not any(set(S) <= set(planned) for planned in self.domain.subsets):
            names = " × ".join(self.schema.names[i] for i in S) or "the total"
            raise ParameterError(f"no planned marginal contains {names}; hint: plan it, a release cannot be extended")

    def release(
        self,
        table: object,
        *,
        out: str | os.PathLike[str] | None = None,
        format: FileFormat = "csv",
        ledger: object = None,
        id: object = None,
    ) -> TableRelease:
        """Count, add noise, reconstruct: spends the whole budget once.

        Formal guarantees:
            * ρ-zCDP for rows added or removed, ρ at most :attr:`rho`, as charged by OpenDP's map for integer queries of
              exactly known sensitivity; for a person's rows together, as long as nobody has more than
              ``rows_per_person``. Refusals depend on the data and are not covered; neither is timing.
            * Every table is unbiased with the stated standard deviation, and tables agree on shared margins.

        Args:
            table: a dataframe (anything narwhals reads) or the path of a CSV or Parquet file, read once.
            out: a new directory for the files of :meth:`TableRelease.save`; checked before noise is drawn.
            format: of those files, "csv" or "parquet".
            ledger: not available yet.
            id: not available yet.

        Returns:
            A :class:`TableRelease`.

        Raises:
            DataError: the table breaks the schema; names column and rule, never a value.
            OutputError: ``out`` exists or cannot be written.
        """
        if ledger is not None or id is not None:
            raise NotAvailableError("release: ledgers are not available yet; add up the rho_charged of your releases")
        check_target(out, format)
        self._charge()  # a budget that cannot be drawn is refused before data are read
        marginals = self._count(table)
        with contextlib.nullcontext() if out is None else staged(out) as folder:
            result = self._noisy(marginals, table, _draw, private=True)
            if folder is not None:
                write_release(result, folder, format)
        return result

    def simulate(self, table: object, rng: np.random.Generator) -> TableRelease:
        """The same tables with floating-point noise from ``rng``: for studies, NOT private.

        Args:
            table: as in :meth:`release`.
            rng: a numpy Generator.
        """

        def draw(query: ResidualQuery) -> list[int]:
            return [int(x) for x in np.rint(rng.normal(scale=query.query.scale, size=query.cells))]

        return self._noisy(self._count(table), table, draw, private=False)

    @cached_property
    def _queries(self) -> dict[Subset, ResidualQuery]:
        return residual_queries(self.domain, self._covariance.variances, self.row_rho)

    def _count(self, table: object) -> dict[Subset, Integers]:
        """Exact marginals of every measured subset."""
        used = sorted({i for S in self.domain.subsets for i in S})
        planned = {tuple(used.index(i) for i in S): S for S in self.domain.subsets}
        counted = count_marginals(table, [self.schema.attributes[i] for i in used], list(planned))
        return parts_of({planned[S]: marginal for S, marginal in counted}, self._queries)

    def _noisy(
        self,
        marginals: Mapping[Subset, Integers],
        table: object,
        draw: Callable[[ResidualQuery], list[int]],
        *,
        private: bool,
    ) -> TableRelease:
        charged = self._charge()
        residuals = {T: query.noisy(marginals[T], draw(query)) for T, query in self._queries.items()}
        return TableRelease(self, private, charged, self._queries, residuals, frame_backend(table))

    def _charge(self) -> float:
        """What OpenDP's map charges for all noise of a release, for all rows of one person."""
        charged = math.fsum(query.query.rho for query in self._queries.values()) * self.rows_per_person**2
        if charged > self.rho:
            raise GaussNoiseError(f"release: noise would cost rho = {charged!r}, more than the planned {self.rho!r}")
        return charged

    def __str__(self) -> str:
        from ._text import plan_text

        return plan_text(self)


def _draw(query: ResidualQuery) -> list[int]:
    return query.query.draw(query.cells)
