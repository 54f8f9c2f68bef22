"""Plan first, without data; then release."""

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from numbers import Real
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from domains import DomainTooLargeError, InvalidDomainError, Leading, Marginals
from domains.tables.tables import AbstractTables

from ...bounds import Bound, bound_of
from ...bounds.proof import noise_of
from ...errors import GaussNoiseError, ParameterError, not_a_generator
from ...files.pickling import PickledByArguments
from ...noise.covariance import Covariance
from ...noise.marginal_covariance import covariance_of_cells
from ...noise.optimal_noise import OptimalNoise
from ...noise.problem import Relation
from ...noise.table_covariance import TableCovariance
from ...numerics.intervals import quantile
from ...numerics.norms import norm
from ...numerics.rounding import rounded_down, rounded_up
from ...privacy.definitions import AbstractPrivacy, check_gaussian, dp_event, zCDP
from ...privacy.lattice_bound import TABLE_STEPS
from ...privacy.ledger import Ledger
from ...privacy.sampler import sampling_threads
from ...solvers.progress import Counted, interrupts_pass
from ...solvers.tables.residuals import Subset
from ...solvers.tables.strategies import AbstractStrategy
from ...solvers.tables.workload import Workload
from ..counting.codes import OnOutside
from ..counting.count import PASS_CELLS
from ..schema.bases import base_value
from ..schema.entries import Entry, attribute_positions, entry_term, term_name, workload_domain
from ..schema.schema import Schema
from .independent import independent_deviations, saving
from .measure import Array, ResidualQuery, measured_integers
from .targets import Target, as_targets

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

    from ..release.release import TableRelease
    from ..release.store import FileFormat

_SECONDS_PER_INTEGER = 12e-6  # of one thread: OpenDP's draw and its conversion
_SECONDS_PER_CELL = 2e-6  # exact integers, reconstruction, writing
_MOST_CELLS = 2 * 10**8
_MOST_ROWS_PER_PERSON = 10**9
_TOLERANCE = 1e-6  # of the noise
_ROUNDING = 1e-9  # budgets for targets are this much larger, so that rounding cannot miss them


def plan(
    schema: Schema,
    workload: int | Sequence[Entry],
    privacy: AbstractPrivacy | None = None,
    *,
    neighbors: Relation = "add-remove",
    p: float = 2,
    weights: Sequence[float] | None = None,
    targets: "Target | float | Mapping[str | tuple[str, ...], Target | float] | Sequence[Target | float] | None" = None,
    rows_per_person: int = 1,
) -> "Plan":
    """The least noise for a set of marginal tables, or of queries about them, before any data are seen.

    Args:
        schema: the public attributes.
        workload: k for all k-way marginals, or the attribute names of each marginal; ``()`` is the total. A mapping
            like ``{"age": "prefix", "sex": "identity"}`` says what is asked about the cells, as ``base`` does in an
            :class:`Attribute`, whose own it overrides. Tables of cells are released all the same, with the least noise
            in the answers.
        privacy: :class:`zCDP`, :class:`ApproxDP` or another definition, for the whole release; with ``targets`` it may
            be left out, for the least ρ that meets them.
        neighbors: "add-remove", one row more or less; the number of rows is private. "replace", one row exchanged for
            another; the number of rows is public.
        p: error norm in [2, ∞]: 2 minimises total variance over all cells, ``math.inf`` the largest. Queries other than
            counts enter with the root mean square of their entry.
        weights: one positive number per marginal: its cells' standard deviations count that much. Error priority only;
            released tables are plain counts.
        targets: for every marginal of the workload, within how many rows its cells (or all answers about them) are to
            lie at 95 %: a number, or a :class:`Target` for another level; by names, or a list in the workload's order.
            They replace ``p`` and ``weights``: the largest ratio of standard deviation to target is made least, see
            :attr:`Plan.target_ratio`.
        rows_per_person: the most rows that one person can have, when persons are to be protected instead of rows.
            Standard deviations grow by this factor. It is a promise of yours: nothing in the table is checked.

    Returns:
        A :class:`Plan`.

    Raises:
        ParameterError: unknown attributes, bad weights, wrong types.
        DomainTooLargeError: more noisy cells than can be drawn in minutes; says how many.

    Warns:
        PrivacyWarning: a δ of 0.01 or more.

    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])])
    >>> survey = gn.plan(schema, 2, gn.zCDP(0.1))
    >>> print(f"{survey.standard_deviation('sex', 'age'):.4f}")
    2.2361
    >>> cheapest = gn.plan(schema, [("sex", "age"), "age"], targets={("sex", "age"): 50, "age": gn.Target(80, 0.99)})
    >>> print(f"{cheapest.rho:.6f} {cheapest.half_width('sex', 'age'):.3f}")
    0.000823 50.000
    >>> ages = gn.plan(schema, [{"age": "prefix"}], gn.zCDP(0.1))  # the cumulative distribution
    >>> print(ages.answer_deviations({"age": "prefix"}).shape)
    (3,)
    """
    if not isinstance(schema, Schema):
        raise ParameterError(f"plan: expected a Schema, got {type(schema).__name__}; hint: Schema.load(path)")
    if privacy is None and targets is None:
        raise ParameterError(
            "plan: expected a privacy definition like zCDP(rho) or ApproxDP(epsilon, delta), got NoneType; "
            "hint: targets={...} finds the least budget"
        )
    if privacy is not None:
        check_gaussian("plan", privacy, stacklevel=2)
    if not isinstance(p, Real) or not p >= 2:
        raise ParameterError(f"plan: expected p >= 2, got {p!r}; hint: math.inf for the largest error")
    if neighbors not in ("add-remove", "replace"):
        raise ParameterError(f'plan: expected neighbors="add-remove" or "replace", got {neighbors!r}')
    if type(rows_per_person) is not int or not 1 <= rows_per_person <= _MOST_ROWS_PER_PERSON:
        raise ParameterError(
            f"plan: expected an integer 1 <= rows_per_person <= {_MOST_ROWS_PER_PERSON}, got {rows_per_person!r:.50}"
        )
    domain = workload_domain(schema, workload)
    if weights is not None and np.shape(weights) != (len(domain.subsets),):
        raise ParameterError(f"plan: expected {len(domain.subsets)} weights, one per marginal, got {weights!r}")
    goals = None
    if targets is not None:
        if weights is not None or p != 2:
            raise ParameterError("plan: targets replace p and weights; hint: leave those out")
        names, deviation = schema.names, cache(Target.standard_deviation)
        goals = tuple(as_targets(targets, [tuple([names[i] for i in S]) for S in domain.subsets]))
        answers = [math.prod([base.queries for _, base in term]) for term in domain.terms]
        weights = [1 / deviation(goal, n) for goal, n in zip(goals, answers, strict=True)]
        p = math.inf
    if weights is not None:
        domain = workload_domain(schema, workload, weights)
    cells = domain.tables.dim
    if cells > _MOST_CELLS:  # before anything is solved for
        raise DomainTooLargeError(
            f"plan: {cells:.3g} cells would take {cells * _SECONDS_PER_INTEGER / 3600:.3g} hours and "
            f"{cells * 8 / 1e9:.3g} GB, more than {_MOST_CELLS:.0e} cells; "
            "hint: ask for fewer or smaller marginals"
        )
    try:
        with interrupts_pass():  # a plan that the user has stopped must not go on to a release
            noise = noise_of(domain, p, neighbors, _TOLERANCE)
    except InvalidDomainError as error:
        raise ParameterError(f"plan: {error}") from None
    if privacy is None:
        if noise.gamma == 0:
            raise ParameterError("plan: these tables need no noise, hence no budget; hint: give any, it is not spent")
        # weighted deviations at unit sensitivity are ratios to the targets; of an entry's queries, the worst counts
        ratio = noise.gamma if domain.is_cells else _worst(noise.covariance, goals or ())
        privacy = zCDP(rows_per_person**2 * ratio**2 / 2 * (1 + _ROUNDING))
    result = Plan(schema, domain, noise, privacy, rows_per_person, goals)
    if result.integers > _MOST_CELLS:
        raise DomainTooLargeError(
            f"plan: {result.integers:.3g} noisy integers would take {result.seconds / 3600:.3g} hours, more than "
            f"{_MOST_CELLS:.0e} of them; hint: ask for fewer or smaller marginals"
        )
    return result


def _worst(covariance: Covariance, goals: Sequence[Target]) -> float:
    """Largest ratio of an answer's standard deviation, at unit sensitivity, to what its target allows."""
    found = _of_tables(covariance)
    kinds = set(zip(found.largest_deviations.tolist(), found.queries.tolist(), goals, strict=True))
    return max(deviation / goal.standard_deviation(int(answers)) for deviation, answers, goal in kinds)


def _of_tables(covariance: Covariance) -> TableCovariance:
    if not isinstance(covariance, TableCovariance):
        raise ParameterError("Plan: expected noise of tables")
    return covariance


@final
@dataclass(frozen=True, eq=False)
class Plan(PickledByArguments):
    """What a release will look like: a public document, computed without data.

    Attributes:
        schema: the public attributes.
        domain: the :class:`Marginals` of the workload, or the :class:`Products` where more than cells is asked for.
        noise: the certified optimal covariance at unit sensitivity.
        privacy: the budget of the whole release, for one person.
        rows_per_person: the most rows that one person is taken to have.
        targets: what was asked of every entry of the workload, or None.
    """

    schema: Schema
    domain: AbstractTables
    noise: OptimalNoise
    privacy: AbstractPrivacy
    rows_per_person: int = 1
    targets: tuple[Target, ...] | None = None

    def __post_init__(self) -> None:
        if (
            self._covariance.domain is not self.domain
            or self.noise.shifted
            or self.noise.neighbors not in ("add-remove", "replace")
            or self.domain.sizes != self.schema.sizes
        ):
            raise ParameterError("Plan: expected optimal noise for the marginals of this schema; hint: call plan()")

    @property
    def marginals(self) -> tuple[tuple[str, ...], ...]:
        """Attribute names of every marginal that is released."""
        names = self.schema.names
        return tuple([tuple([names[i] for i in S]) for S in self.tables.subsets])

    @cached_property
    def tables(self) -> Marginals:
        """The tables of cells that are released: each attribute set of the workload once."""
        return self.domain.tables

    @property
    def entries(self) -> tuple[str, ...]:
        """What the workload asked for, in words: like ``age (prefix) × sex``."""
        return tuple([term_name(self.schema, term) for term in self.domain.terms])

    @cached_property
    def strategies(self) -> tuple[AbstractStrategy, ...]:
        """How each attribute is measured."""
        return self._covariance.strategies

    @property
    def neighbors(self) -> Relation:
        """The neighbouring relation."""
        return self.noise.neighbors

    @cached_property
    def rho(self) -> float:
        """ρ of zero-concentrated differential privacy, for the whole release."""
        return self.privacy.to_zcdp(self.integers, TABLE_STEPS).rho

    @cached_property
    def row_rho(self) -> float:
        """ρ spent on one row: k rows of one person cost k² times as much."""
        return rounded_down(Fraction(self.rho) / self.rows_per_person**2)

    @property
    def privacy_unit(self) -> str:
        """Whom the budget protects."""
        k = self.rows_per_person
        return "one row" if k == 1 else f"one person of at most {k} rows"

    @cached_property
    def request_sha256(self) -> str:
        """What was asked for, in one number: the same for plans made from the same arguments, on any machine."""
        return hashlib.sha256(json.dumps(self._request).encode()).hexdigest()

    @cached_property
    def _request(self) -> dict[str, object]:
        asked: dict[str, object] = {}
        if not self.domain.is_cells:
            asked["bases"] = [
                [base_value(base, self.schema.attributes[i]) for i, base in term] for term in self.domain.terms
            ]
        if any(isinstance(base, Leading) for term in self.domain.terms for _, base in term):
            asked["catch-alls"] = "in no query that takes cells in order"
        return asked | {
            "schema": self.schema.to_toml(),
            "marginals": self.domain.subsets,
            "weights": [f"{weight:.9g}" for weight in self.domain.weights],
            "p": str(self.noise.p),
            "neighbors": self.neighbors,
            "rho": f"{self.rho:.9g}",
            "rows_per_person": self.rows_per_person,
        }

    @property
    def target_ratio(self) -> float:
        """Largest ratio of a half-width to its target: at most 1 where all targets are met.

        Raises:
            ParameterError: planned without targets.
        """
        if self.targets is None:
            raise ParameterError("target_ratio: this plan has no targets; hint: plan(..., targets=...)")
        return _worst(self.noise.covariance, self.targets) / math.sqrt(2 * self.row_rho)

    @cached_property
    def deviations(self) -> Array:
        """Of every entry of the workload, the root mean square of its answers' standard deviations."""
        return self._covariance.deviations / math.sqrt(2 * self.row_rho)

    @property
    def queries(self) -> Array:
        """How many answers each entry of the workload has."""
        return self._covariance.queries

    def answer_deviations(self, entry: Entry) -> Array:
        """Standard deviations of the answers about one table, whether planned for or not.

        Args:
            entry: names, or a mapping from names to bases, as in :func:`plan`.

        Returns:
            An array, one axis for each name.

        Raises:
            ParameterError: unknown attributes or bases, or no planned marginal contains them.
        """
        term = entry_term(self.schema, entry)
        S = tuple(sorted(term))
        self.check_released(S)
        variance = self._covariance.term_variance(tuple((i, term[i]) for i in S))
        return np.sqrt(variance / (2 * self.row_rho)).transpose([S.index(i) for i in term])

    @property
    def _covariance(self) -> TableCovariance:
        """Of all answers, at unit sensitivity."""
        return _of_tables(self.noise.covariance)

    @cached_property
    def _cells(self) -> Array:
        """Cells of every released table."""
        return np.array([float(self.tables.cells(S)) for S in self.tables.subsets])

    @property
    def integers(self) -> int:
        """Noisy integers a release draws."""
        return measured_integers(self.strategies, self._covariance.variances)

    @property
    def seconds(self) -> float:
        """Roughly what a release takes, besides counting."""
        return self.integers * _SECONDS_PER_INTEGER / sampling_threads() + float(self._cells.sum()) * _SECONDS_PER_CELL

    @property
    def peak_bytes(self) -> float:
        """Roughly the memory of a release that is not written to files, besides the records'."""
        cells = self._cells
        return float(8 * cells.sum() + 64 * cells.max() + 32 * min(cells.sum(), PASS_CELLS))

    @property
    def error(self) -> float:
        """``‖sd‖_p`` over all (weighted) cells: at p = 2 the root of their total variance."""
        return self._covariance.error(self.noise.p) / math.sqrt(2 * self.row_rho)

    @property
    def improvement(self) -> float:
        """How many times less variance than independent noise on each marginal, both at their best for ``p``.

        As drawn: least squares over all the independent tables would win back most of the difference on workloads that
        overlap much, at the cost of exact simple standard deviations; it never gets below the optimum.
        """
        weights, p = np.array(self.domain.weights), self.noise.p
        independent = norm(weights * self.independent_deviations * self.queries ** (1 / p), p)
        return (independent / self.error) ** 2 if independent > 0 else 1.0

    @cached_property
    def independent_deviations(self) -> Array:
        """What :attr:`deviations` would be, had each entry independent noise and the best split of the budget."""
        return independent_deviations(self)

    @cached_property
    def bound(self) -> Bound:
        """What no unbiased mechanism with this budget can beat, whatever the data: on ``error``, in rows.

        >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])])
        >>> survey = gn.plan(schema, 2, gn.zCDP(0.1))
        >>> print(f"{survey.bound.error:.4f} {survey.bound.factor(survey.error):.4f}")  # √((e^2ρ − 1) / 2ρ)
        5.2058 1.0522
        """
        return bound_of(self.noise, self.privacy, None, rows=self.rows_per_person)

    @cached_property
    def replace_saving(self) -> float:
        """How many times less variance than the paper's noise, which protects replaced rows by doubling γ_p(K)'s.

        ``(2 γ_p(K) / γ°_p(K − K))²``, with the proven lower end of γ_p(K); 1 where nothing needs noise.

        Raises:
            ParameterError: planned for rows added or removed, or for more than cells.
        """
        return saving(self, "replace_saving", "gamma")

    @cached_property
    def add_remove_saving(self) -> float:
        """How many times less variance than the best add-remove noise at ``rho / 4``, which protects replaced rows too.

        Infinite where nothing needs noise.

        Raises:
            ParameterError: planned for rows added or removed, or for more than cells.
        """
        return saving(self, "add_remove_saving", "add-remove")

    @cached_property
    def _workload(self) -> Workload:
        return Workload.of(self.domain, total=True)

    def independent_standard_deviation(self, *names: str) -> float:
        """Of every cell of a planned marginal, had each marginal independent noise and the best split of the budget."""
        S = tuple(sorted(self.subset(names)))
        if not self.domain.is_cells:
            raise ParameterError(
                "independent_standard_deviation: expected a plan for cells alone, got other bases; hint: improvement"
            )
        if S not in self._places:
            raise ParameterError(f"independent_standard_deviation: expected a planned marginal, got {names!r}")
        return float(self.independent_deviations[self._places[S]])

    @cached_property
    def _places(self) -> dict[Subset, int]:
        """Where each planned marginal stands in the list of all."""
        return {S: place for place, S in enumerate(self.tables.subsets)}

    @cached_property
    def _having(self) -> list[set[int]]:
        """Which planned marginals have each attribute."""
        having: list[set[int]] = [set() for _ in self.schema.names]
        for S, place in self._places.items():
            for i in S:
                having[i].add(place)
        return having

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.schema.names)}

    def standard_deviation(self, *names: str) -> float:
        """Of every cell of the table of these attributes: a planned marginal, or a part of one.

        Where more than cells is planned for, cells differ, and this is their root mean square.

        Raises:
            ParameterError: no planned marginal contains them.
        """
        S = tuple(sorted(self.subset(names)))
        self.check_released(S)
        return math.sqrt(self._covariance.mean_variance(S) / (2 * self.row_rho))

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
        return attribute_positions(self._positions, names)

    def check_released(self, S: Subset) -> None:
        """Raise ParameterError unless some planned marginal contains S."""
        if S and S not in self._places and not set.intersection(*(self._having[i] for i in S)):
            names = " × ".join(self.schema.names[i] for i in S) or "the total"
            raise ParameterError(f"no planned marginal contains {names}; hint: plan it, a release cannot be extended")

    def release(
        self,
        table: object,
        *,
        out: str | os.PathLike[str] | None = None,
        format: "FileFormat" = "csv",
        on_outside: OnOutside = "refuse",
        progress: bool | Counted | None = None,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        id: str | None = None,
    ) -> "TableRelease":
        """Count, add noise, reconstruct: spends the whole budget once.

        Formal guarantees:
            * ρ-zCDP for rows added, removed or replaced (see ``neighbors``), ρ at most :attr:`rho`, as charged by
              OpenDP's map for one integer query of exactly known sensitivity; for a person's rows together, as long as
              nobody has more than ``rows_per_person``. Refusals depend on the data and are not covered, unless
              ``on_outside`` is "drop": then a row that does not fit is as one that is not there. Timing is not covered.
              Under replacement the number of rows is public and comes out exactly.
            * Every table is unbiased with the stated standard deviation, and tables agree on shared margins.
            * All that a release says about itself is computed before its budget is charged: after that, it only
              counts, draws, decodes and writes.

        Args:
            table: a dataframe (anything narwhals reads) or the path of a CSV or Parquet file.
            out: a new directory for the files of :meth:`TableRelease.save`; checked before noise is drawn. Tables are
                written one at a time and read back when asked for, so memory follows the largest of them.
            format: of those files, "csv" or "parquet".
            on_outside: what becomes of a row that has a null, or a value outside the schema, in an attribute without a
                catch-all: "refuse" the whole release, or "drop" the row, so that it counts in no table. Whether a
                release is refused tells something about its rows, and a schema can be made to ask for it; with "drop"
                no value decides. A table that is malformed as a whole is refused all the same, whatever the schema
                asks: CSV with fields missing, quotes out of place or bytes that are no text, and a column whose
                declared type cannot hold the attribute. How many rows are dropped is private: give attributes a
                catch-all to count them with noise. Under replacement every attribute needs one.
            progress: True for a bar of released cells, or a callable that is given their number and the total.
            ledger: a :class:`Ledger` or its path: the release is charged to its budget first, drawn once, and written
                to ``out``; run again with the same arguments, it is read from there, whatever interrupted the first.
            id: what the ledger is to call this release.

        Returns:
            A :class:`TableRelease`.

        Raises:
            DataError: the table breaks the schema; names column and rule, never a value.
            OutputError: ``out`` exists or cannot be written.
            ParameterError: more than 1000 marginals as CSV; a budget that cannot be drawn; ledger, id and out not
                together; "drop" under replacement without catch-alls.
            BudgetError: the ledger's budget does not allow it; nothing was drawn.
            LedgerError: another release under this id, or an unusable ledger.
        """
        from ..release.publish import published  # a plan and what is done with it meet here

        return published(
            self, table, out=out, format=format, on_outside=on_outside, progress=progress, ledger=ledger, id=id
        )

    def dp_event(self) -> "DpEvent":
        """What a release costs, for ``dp-accounting`` to compose: :func:`gaussnoise.privacy.dp_event`."""
        return dp_event(self._charge())

    def simulate(
        self,
        table: object,
        rng: np.random.Generator,
        *,
        on_outside: OnOutside = "refuse",
        progress: bool | Counted | None = None,
    ) -> "TableRelease":
        """The same tables with floating-point noise from ``rng``: for studies, NOT private.

        Args:
            table: as in :meth:`release`.
            rng: a numpy Generator.
            on_outside: as in :meth:`release`.
            progress: as in :meth:`release`.

        Raises:
            ParameterError: not a Generator.
            DataError: as :meth:`release`.
        """
        from ..release.publish import simulated

        if not isinstance(rng, np.random.Generator):
            raise not_a_generator(rng)
        scale = 0.0 if self._query.query is None else self._query.query.scale

        def draw(count: int) -> NDArray[np.int64]:
            return np.rint(rng.normal(scale=scale, size=count)).astype(np.int64)

        return simulated(self, table, draw, on_outside=on_outside, progress=progress)

    @cached_property
    def _query(self) -> ResidualQuery:
        """The integer query that a release answers with noise."""
        return ResidualQuery.calibrated(self.strategies, self._covariance.variances, self.neighbors, self.row_rho)

    @cached_property
    def _drawn(self) -> TableCovariance:
        """Covariance of the noise of a release, over the (unweighted) cells of all planned tables."""
        tables = Marginals(self.domain.sizes, self.tables.subsets)
        return covariance_of_cells(tables, self.strategies, self._query.variances)

    def _charge(self) -> float:
        """What OpenDP's map charges for all noise of a release, for all rows of one person."""
        query, copies = self._query.query, self.rows_per_person**2
        if query is not None and query.scale < TABLE_STEPS:
            raise GaussNoiseError(f"release: a scale of {query.scale:.3g} is too coarse; hint: another rho")
        charged = rounded_up(Fraction(query.rho) * copies) if query is not None else 0.0
        if charged > self.rho:
            raise GaussNoiseError(f"release: noise would cost rho = {charged!r}, more than the planned {self.rho!r}")
        return charged

    def __str__(self) -> str:
        from .text import plan_text

        return plan_text(self)
