"""The plan of a release: the request, the measurements, and their accuracy."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from domains.tables.marginals import Marginals

from ...bounds.bound import Bound, bound_of
from ...errors import (
    GaussNoiseError,
    NotAvailableError,
    ParameterError,
    not_a_generator,
    too_coarse,
)
from ...layout import on_screen
from ...noise.marginal_covariance import covariance_of_cells
from ...noise.optimal_noise import OptimalNoise
from ...noise.product_covariance import ProductCovariance
from ...noise.solve import noise_of
from ...noise.table_covariance import TableCovariance
from ...numerics.intervals import quantile
from ...numerics.norms import group_norm
from ...numerics.rounding import rounded_down, rounded_up
from ...privacy.definitions import dp_event
from ...privacy.guarantee import AbstractPrivacy, check_gaussian
from ...privacy.lattice_bound import MIN_STEPS, TABLE_STEPS
from ...privacy.ledger import Ledger
from ...privacy.sampler import sampling_threads
from ...solvers.progress import Counted
from ...solvers.tables.residuals import Subset, subsets_of
from ...solvers.tables.strategies import AbstractStrategy
from ...solvers.tables.workload import Workload
from ...text import number_of, one_of
from ..schema.entries import Entry, attribute_positions, entry_term
from ..schema.numbers import STEPS, in_own_unit, unit_of
from ..schema.schema import OnOutside
from .exchange import least_error, with_number
from .facts import marginal_name, unit_text
from .independent import independent_deviations, saving
from .measure import Array, ResidualQuery, measured_integers, units_off
from .ranges import spent_on
from .request import AbstractPlan, Request
from .rows import covariance_in_cells
from .targets import largest_ratio
from .text import plan_text

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

    from ..counting.check_result import CheckResult
    from ..release.release import TableRelease
    from ..release.store import FileFormat

SECONDS_PER_INTEGER = 12e-6  # for one draw by OpenDP and its conversion, on one thread
MOST_HERE = 2 * 10**8  # most integers, or cells, of a release on one machine
_SECONDS_PER_CELL = 2e-6  # for exact integers, reconstruction and writing of one cell
_COMPARED = 1e-4  # tolerance of a comparison that is printed to three digits


@final
@dataclass(frozen=True, eq=False, repr=False)
class Plan(AbstractPlan):
    """The plan of a release: a public document, computed without data.

    Attributes:
        asked: the request.
        noise: the certified optimal covariance at unit sensitivity. Under replacement of persons,
            it is the optimum for replaced rows. If squares of numbers are summed, it is the optimum
            for numbers on a grid. :attr:`bracket` is about the noise that is drawn.

    >>> schema = gn.Schema(
    ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 40, 65])]
    ... )
    >>> plan = gn.plan(schema, 2, gn.zCDP(0.1))
    >>> print(f"{plan.standard_deviation('sex', 'age'):.2f}", plan.gap < 1e-6)
    2.24 True
    """

    asked: Request
    noise: OptimalNoise

    def __post_init__(self) -> None:
        if (
            self._planned_covariance.domain is not self.domain
            or self.noise.shifted
            or self.noise.neighbors != self.asked.relation
            or self.noise.p != self.asked.p
            or self.domain.sizes != self.schema.sizes
        ):
            raise ParameterError(
                "Plan: expected optimal noise for what is asked about the marginals of this "
                "schema; hint: call plan()"
            )
        _ = self.privacy

    @cached_property
    def strategies(self) -> tuple[AbstractStrategy, ...]:
        """The strategy of each attribute: the matrix by which its counts are multiplied."""
        return self._planned_covariance.strategies

    @property
    def has_public_rows(self) -> bool:
        """Whether the number of counted rows is public, and is released exactly."""
        return self.neighbors == "replace" and self.person is None

    @property
    def _exchanges_persons(self) -> bool:
        """Whether neighbours replace a person by another, who may have more or fewer rows."""
        return self.neighbors == "replace" and self.person is not None

    @property
    def exact(self) -> tuple[tuple[str, ...], ...]:
        """The largest tables that are published without noise, each as names of public attributes.

        ``()`` is the number of rows.
        """
        if not self.has_public_rows:
            return ()
        public = self.noise.problem.public
        parts = {tuple(i for i in S if i in public) for S in self.tables.subsets}
        largest = [S for S in sorted(parts) if not any(set(S) < set(T) for T in parts)]
        return tuple([tuple([self.schema.names[i] for i in S]) for S in largest])

    @cached_property
    def rho(self) -> float:
        """The ρ of zero-concentrated differential privacy that the whole release guarantees."""
        return self.privacy.to_zcdp(self.draws, self.steps).rho

    @property
    def draws(self) -> int:
        """The number of noisy integers that are drawn in all.

        The number includes the noisy counts of the searches for ranges of numbers.
        """
        return self.integers + sum(own.draws for own in self.ranges)

    @property
    def steps(self) -> float:
        """The least scale σ of any noise that is drawn, in steps of the integers."""
        return MIN_STEPS if self.ranges else TABLE_STEPS

    @cached_property
    def row_rho(self) -> float:
        """The ρ that protecting one row costs; a person with k rows costs k² times as much."""
        left = Fraction(self.rho) - Fraction(spent_on(self.ranges))
        if left <= 0:
            raise ParameterError("plan: expected a budget that ranges= has not spent")
        return rounded_down(left / self.rows_per_person**2)

    @property
    def answer_rho(self) -> float:
        """The ρ that protecting a row of weight one costs.

        For a row of weight B it is B² times as much.
        """
        return self.row_rho if self.weight is None else self.row_rho / self.weight.most**2

    @property
    def unit(self) -> int:
        """The number of integer units that one row adds to the measured counts.

        The number is above one if rows are split over cells, see :class:`Clipped` and
        :class:`Weight`.
        """
        return self.query.unit

    @property
    def privacy_unit(self) -> str:
        """The unit that the budget protects, in words, like "one row"."""
        return unit_text(self.rows_per_person, self.person, bool(self.per_person))

    @cached_property
    def request(self) -> dict[str, object]:
        """The request (schema, workload, budget, …) as plain data, the same on any machine."""
        return self.asked.identity(self.rho)

    @property
    def queries(self) -> Array:
        """The number of answers of each entry in the workload, shape (entries,)."""
        return self._planned_covariance.queries

    @cached_property
    def _planned_covariance(self) -> TableCovariance:
        """The covariance of the planned noise in all answers, at unit sensitivity."""
        covariance = covariance_in_cells(self.noise, self.domain)
        return with_number(covariance) if self._exchanges_persons else covariance

    @cached_property
    def _unit_covariance(self) -> TableCovariance:
        """The covariance of the drawn noise in all answers, scaled to unit sensitivity."""
        planned = self._planned_covariance
        if not units_off(planned.strategies) or self.query.unit == STEPS:
            return planned
        # large noise is drawn with coarse units of rows, of which some are off the rows' curves
        drawn, unit_rho = self.query.variances, 2 * self.row_rho
        grown = max(unit_rho * drawn[T] / planned.variances[T] for T in drawn)
        variances = {T: grown * variance for T, variance in planned.variances.items()}
        return ProductCovariance(planned.domain, planned.strategies, variances)

    @cached_property
    def workload(self) -> Workload:
        """The tables in the solver's form, where attributes that can be swapped share a class."""
        return Workload.of(self.domain, total=True)

    @cached_property
    def _places(self) -> dict[Subset, int]:
        """{attribute set: its index among the planned marginals}."""
        return {S: place for place, S in enumerate(self.tables.subsets)}

    @cached_property
    def _places_with(self) -> list[set[int]]:
        """For each attribute, the indices of the planned marginals that contain it."""
        having: list[set[int]] = [set() for _ in self.schema.names]
        for S, place in self._places.items():
            for i in S:
                having[i].add(place)
        return having

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.schema.names)}

    def subset(self, names: Sequence[str]) -> Subset:
        """Return the indices of attributes in the schema, in the given order.

        Raises:
            ParameterError: unknown or repeated names.
        """
        if not isinstance(names, list | tuple):
            raise ParameterError(f"expected attribute names, got {names!r}")
        return attribute_positions(self._positions, names, self.schema.levels)

    def check_released(self, S: Subset) -> None:
        """Raise ParameterError unless the attributes S are part of a planned marginal."""
        if S and S not in self._places and not set.intersection(*(self._places_with[i] for i in S)):
            names = " × ".join(self.schema.names[i] for i in S) or "the total"
            known = one_of(marginal_name(marginal) or "the total" for marginal in self.marginals)
            raise ParameterError(
                f"no planned marginal contains {names}, expected part of {known}; hint: plan it, "
                "a release cannot be extended"
            )

    @property
    def integers(self) -> int:
        """The number of noisy integers of a release, without the counts that found ranges."""
        return measured_integers(self.strategies, self._planned_covariance.variances)

    @cached_property
    def query(self) -> ResidualQuery:
        """The query of integers that a release answers with noise."""
        return ResidualQuery.calibrated(
            self.strategies,
            self._planned_covariance.variances,
            "replace-persons" if self._exchanges_persons else self.noise.neighbors,
            self.row_rho,
            unit_of((self.schema.attributes[i] for i in self.asked.used), self.weight),
            1.0 if self.weight is None else self.weight.most,
        )

    @cached_property
    def covariance(self) -> TableCovariance:
        """The covariance of the noise in the cells of all tables, without weights of errors."""
        tables = Marginals(self.domain.sizes, self.tables.subsets)
        return covariance_of_cells(tables, self.strategies, self.query.variances)

    @property
    def rho_charged(self) -> float:
        """The ρ that OpenDP charges for the noise, for all rows of one person.

        This ρ includes the cost of the searches for ranges.
        """
        query, copies = self.query.query, self.rows_per_person**2
        if query is not None and query.scale < TABLE_STEPS:
            raise too_coarse("release", query.scale)
        noise = Fraction(query.rho) * copies if query is not None else Fraction(0)
        charged = rounded_up(noise + Fraction(spent_on(self.ranges)))
        if charged > self.rho:
            raise GaussNoiseError(
                f"release: noise would cost rho = {charged!r}, more than the planned {self.rho!r}"
            )
        return charged

    @cached_property
    def bracket(self) -> tuple[float, float]:
        """A proven lower bound on the least error γ, and the error that this plan has.

        γ is the least ``‖sd‖_p`` of any Gaussian noise that protects these answers, at unit
        sensitivity.
        """
        if not self._exchanges_persons and self.noise.covariance is self._unit_covariance:
            return self.noise.gamma_lower, self.noise.gamma
        upper = self._unit_covariance.error(self.noise.p)
        if not self._exchanges_persons:
            return min(self.noise.gamma_lower, upper), upper
        return min(least_error(self.noise, self._unit_covariance), upper), upper

    @property
    def gap(self) -> float:
        """The relative difference of the two numbers in :attr:`bracket`: 0 if they are equal."""
        if not self._exchanges_persons and self.noise.covariance is self._unit_covariance:
            return self.noise.gap
        lower, upper = self.bracket
        return upper / lower - 1 if lower > 0 else math.inf

    @cached_property
    def public_saving(self) -> float:
        """The factor by which variance would grow if the exact public tables were protected too.

        The comparison is with a proven lower bound. The factor is infinite if nothing else needs
        protection.
        """
        if not self.public:
            return 1.0
        whole = noise_of(self.domain, self.noise.p, "replace", _COMPARED).gamma_lower
        if self.noise.gamma == 0:
            return math.inf if whole > 0 else 1.0
        return (whole / self.noise.gamma) ** 2

    @property
    def target_ratio(self) -> float:
        """The largest ratio of a half-width to its target; all targets are met if it is <= 1.

        Raises:
            ParameterError: the plan has no targets.
        """
        if self.targets is None:
            raise ParameterError(
                "target_ratio: this plan has no targets; hint: plan(..., targets=...)"
            )
        return largest_ratio(self._unit_covariance, self.targets) / math.sqrt(2 * self.answer_rho)

    @cached_property
    def deviations(self) -> Array:
        """The root mean square standard deviation of each entry's answers, shape (entries,)."""
        return self._unit_covariance.deviations / math.sqrt(2 * self.answer_rho)

    def answer_deviations(self, entry: Entry) -> Array:
        """Return the standard deviations of the answers about one table, planned or not.

        Args:
            entry: attribute names, or a mapping from names to bases, as in :func:`plan`.

        Returns:
            An array with one axis per name; sums of clipped numbers are in their own unit.

        Raises:
            ParameterError: unknown attributes or bases, or no planned marginal contains them.
        """
        term = entry_term(self.schema, entry)
        S = tuple(sorted(term))
        self.check_released(S)
        stated = tuple((i, in_own_unit(term[i])) for i in S)
        variance = self._unit_covariance.term_variance(stated)
        return np.sqrt(variance / (2 * self.answer_rho)).transpose([S.index(i) for i in term])

    @property
    def error(self) -> float:
        """The error that the plan minimises: ``‖sd‖_p`` of the standard deviations sd.

        For each answer, sd has its standard deviation times its weight. At p = 2 the error is the
        root of the total variance.
        """
        return self._unit_covariance.error(self.noise.p) / math.sqrt(2 * self.answer_rho)

    @property
    def improvement(self) -> float:
        """The factor by which variance is larger if every marginal has independent noise.

        Both kinds of noise are the best possible for ``p``.

        The independent tables are not combined. Where tables overlap much, least squares over all
        independent tables would remove most of the difference. But the exact and simple standard
        deviations would then be lost, and the result is never better than the optimum.
        """
        weights, p = np.array(self.domain.weights), self.noise.p
        independent = group_norm(weights * self.independent_deviations, self.queries, p)
        return (independent / self.error) ** 2 if independent > 0 else 1.0

    @cached_property
    def independent_deviations(self) -> Array:
        """:attr:`deviations` if every table had independent noise and the best share of ρ."""
        return independent_deviations(self)

    @cached_property
    def bound(self) -> Bound:
        """A lower bound on the ``error`` of unbiased mechanisms of this budget, on any data.

        Raises:
            ParameterError: the plan has public attributes, for which no bound is known.

        >>> schema = gn.Schema(
        ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])]
        ... )
        >>> survey = gn.plan(schema, 2, gn.zCDP(0.1))
        >>> # √((e^2ρ − 1) / 2ρ)
        >>> print(f"{survey.bound.error:.4f} {survey.bound.factor(survey.error):.4f}")
        5.2058 1.0521
        """
        noise = self.noise
        # the replaced person may have no row
        if self._exchanges_persons and noise.gamma == 0:
            noise = noise_of(noise.domain, noise.p, "add-remove", _COMPARED)
        summed = any(self.schema.attributes[i].is_summed for i in self.asked.used)
        rows = self.rows_per_person
        bound = bound_of(noise, self.privacy, None, rows=rows, complete=not summed)
        share = 1.0 if self.weight is None else self.weight.most
        values, counts = bound.spectrum
        return replace(
            bound, gamma_lower=share * bound.gamma_lower, spectrum=(share * values, counts)
        )

    @cached_property
    def replace_saving(self) -> float:
        """The variance of the paper's noise for replaced rows, divided by the plan's variance.

        The paper doubles the optimal noise for added or removed rows. Let γ_p(K) be the least error
        for added or removed rows, and γ°_p(K − K) that for replaced rows. The quotient is ``(2
        γ_p(K) / γ°_p(K − K))²``, with a proven lower bound in place of γ_p(K). If no noise is
        needed, the quotient is 1.

        Raises:
            ParameterError: the plan is for rows added or removed, or asks for more than cells.
        """
        return saving(self, "replace_saving", "gamma")

    @cached_property
    def add_remove_saving(self) -> float:
        """The variance of the best add-remove noise at ``rho / 4``, divided by the plan's variance.

        That noise protects replaced rows too, since a replacement is two changes of one row. The
        quotient is infinite if no noise is needed.

        Raises:
            ParameterError: the plan is for rows added or removed, or asks for more than cells.
        """
        return saving(self, "add_remove_saving", "add-remove")

    def with_budget(self, privacy: AbstractPrivacy) -> "Plan":
        """Return the plan of the same tables at another budget, without solving again.

        The best noise has the same shape at every budget, and standard deviations fall as 1/√ρ.

        Raises:
            ParameterError: noise for the budget cannot be drawn, or the plan's ranges cost more.
            NotAvailableError: budgets of rows grow with their numbers, which changes the shape.

        >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
        >>> one = gn.plan(schema, 1, gn.zCDP(1.0))
        >>> four = one.with_budget(gn.zCDP(4.0))
        >>> print(one.standard_deviation("sex") / four.standard_deviation("sex"))
        2.0
        """
        check_gaussian("with_budget", privacy, stacklevel=2).stated()
        if self.scales or privacy.scales:
            raise NotAvailableError(
                "with_budget: budgets that grow with numbers of a record change the shape of the "
                "noise; hint: plan() with the new budget"
            )
        result = replace(self, asked=replace(self.asked, privacy=privacy))
        _ = result.query.variances  # a budget whose noise cannot be drawn is refused here
        return result

    def independent_standard_deviation(self, *names: str) -> float:
        """Return the standard deviation of a marginal's cells with independent noise per marginal.

        The budget is split between the marginals in the best way.
        """
        S = tuple(sorted(self.subset(names)))
        if not self.domain.is_cells:
            raise ParameterError(
                "independent_standard_deviation: expected a plan for cells alone, got other "
                "bases; hint: improvement"
            )
        if S not in self._places:
            raise ParameterError(
                f"independent_standard_deviation: expected a planned marginal, got {names!r}"
            )
        return float(self.independent_deviations[self._places[S]])

    def standard_deviation(self, *names: str) -> float:
        """Return the standard deviation of each cell of the table of these attributes.

        The table is a planned marginal or a part of one. If the plan asks for more than cells, the
        cells differ, and this is their root mean square.

        Raises:
            ParameterError: no planned marginal contains these attributes.
        """
        S = tuple(sorted(self.subset(names)))
        self.check_released(S)
        return math.sqrt(self._unit_covariance.mean_variance(S) / (2 * self.answer_rho))

    def half_width(self, *names: str, level: float = 0.95) -> float:
        """Return half the length of a cell's confidence interval in the table of these attributes.

        The result is in rows, and ``level`` is the level of confidence.
        """
        return quantile(level) * self.standard_deviation(*names)

    @cached_property
    def _cells(self) -> Array:
        """The number of cells of every released table, shape (tables,)."""
        if self.domain.is_cells:
            return self.queries
        return np.array([float(self.tables.cells(S)) for S in self.tables.subsets])

    @property
    def seconds(self) -> float:
        """A rough estimate of the seconds that a release takes, besides counting."""
        return (
            self.integers * SECONDS_PER_INTEGER / sampling_threads()
            + float(self._cells.sum()) * _SECONDS_PER_CELL
        )

    @property
    def needs_executors(self) -> bool:
        """Whether a release is too large for one machine, so that it needs ``executors=True``."""
        return max(self.integers, self.tables.dim) > MOST_HERE

    @property
    def core_hours(self) -> dict[tuple[str, ...], float]:
        """{attributes of a table: rough estimate of the core hours that executors take for it}.

        Counting is not included. If several tables use the same noise, its time is counted for the
        first of them.
        """
        drawn: set[Subset] = set()
        hours = {}
        tables = zip(self.marginals, self.tables.subsets, self._cells.tolist(), strict=True)
        for marginal, S, cells in tables:
            new = [T for T in subsets_of(S) if T not in drawn]
            integers = sum([self.query.rows(T) for T in new if T in self.query.multipliers])
            seconds = integers * SECONDS_PER_INTEGER + cells * _SECONDS_PER_CELL
            hours[marginal] = seconds / 3600
            drawn.update(new)
        return hours

    @property
    def peak_bytes(self) -> float:
        """A rough estimate of a release's memory in bytes, without files and the records."""
        from ..counting.count import PASS_CELLS

        cells = self._cells
        return float(8 * cells.sum() + 64 * cells.max() + 32 * min(cells.sum(), PASS_CELLS))

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
        executors: bool = False,
        verifier: bool = False,
    ) -> "TableRelease":
        """Count, add noise, reconstruct and return a release. This spends the whole budget once.

        Formal guarantees:
            * ρ-zCDP for rows added, removed or replaced (see ``neighbors``), with ρ at most
              :attr:`rho`, as charged by OpenDP's map for one integer query of exactly known
              sensitivity. It holds for all rows of a person together, if no person has more than
              ``rows_per_person``. Planned with ``person``, it holds for any number of rows
              (:mod:`gaussnoise.tables.counting.persons`); a person is then a value of that column.
              Refusals depend on the data and are not covered, unless ``on_outside`` is "drop": then
              a row that does not fit is treated as if it were absent. Timing is not covered. Under
              replacement the number of rows is public and comes out exactly.
            * Every table is unbiased with the stated standard deviation, and tables agree on shared
              margins. Planned with ``person``, this holds for the rows that are counted: if persons
              have more rows, counts of all rows are larger, by an amount that is private.
            * All that a release says about itself is computed before its budget is charged: after
              that, it only counts, draws, decodes and writes.

        Args:
            table: a dataframe (anything narwhals reads); or the path of a CSV or Parquet file, a
                list of such paths, a pattern like ``data/*.csv``, all with the same columns; or a
                folder of Parquet, in which names of folders like ``year=2024`` are columns too. CSV
                is read in the schema's dialect, or in that of :meth:`Dialect.table`.
            out: a new directory for the files of :meth:`TableRelease.save`, which is checked before
                noise is drawn. Tables are written one at a time and read back when asked for, so
                that memory depends on the largest table alone.
            format: the format of those files, one of
                :data:`~gaussnoise.tables.release.formats.FileFormat`.
            on_outside: the rule for a row that has a null, or a value outside the schema, in an
                attribute without a catch-all, or an impossible combination: "refuse" refuses the
                whole release; "drop" leaves out the row, so that it counts in no table. A refusal
                reveals something about the rows, and a schema can be written to cause it; with
                "drop" the outcome does not depend on a value. A table that is malformed as a whole
                is refused in both cases, with any schema: CSV with fields missing, misplaced quotes
                or bytes that are no text, and a column whose declared type cannot hold the
                attribute. In pandas and dask, where types depend on rows, such values are outside
                the schema instead, and numbers from 2^53 on name no person. How many rows are
                dropped is private: give attributes a catch-all to count them with noise. Under
                replacement every attribute needs a catch-all, and no combination may be impossible,
                unless planned with ``person``. With ``person``, rows of no person are dropped too,
                and a dropped row is never among the counted rows of a person.
            progress: True for a bar of released cells, or a callable that is given their number and
                the total; False for silence. By default a bar is drawn after two seconds, on a
                terminal.
            ledger: a :class:`Ledger` or its path: the release is first charged to its budget, drawn
                once, and written to ``out``. Names of columns are public: a table that lacks one is
                refused before the charge. If called again with the same arguments, also after an
                interruption, the release is read from ``out``.
            id: the name of this release in the ledger.
            executors: for a Spark dataframe, whether its executors draw, decode and write as well,
                so that neither driver nor executor holds all tables. Executors need this package,
                and ``out`` on a file system that all of them share and that has hard links: a local
                disk for Spark on one machine, NFS or the like for several; object stores have no
                hard links. The dataframe must have the same rows each time Spark computes it. Every
                residual, or block of a large one, is drawn once: the first task that finishes
                commits it, and tables are made of committed residuals, even if tasks are tried
                again, run twice or are killed. Under a ledger, call it again after the driver was
                killed: the release goes on, and is charged once. The format is "parquet": a dataset
                in ``out/tables`` with a folder for each number of attributes.
            verifier: whether to copy the files of ``verifier`` into ``out``, which check the folder
                with Python's standard library alone: ``python verifier/verify.py``.

        Returns:
            A :class:`TableRelease`.

        Raises:
            DomainTooLargeError: too large for one machine, without ``executors``; with it, a table
                that cannot be split into blocks of 2^26 numbers.
            DataError: the table breaks the schema; names column and rule, never a value.
            OutputError: ``out`` exists or cannot be written.
            ParameterError: more than 1000 marginals as CSV; a budget that cannot be drawn; only
                some of ledger, id and out; "drop" under replacement without catch-alls.
            BudgetError: the ledger's budget does not allow it; nothing was drawn.
            LedgerError: another release under this id, or an unusable ledger.
            SchemaError: the schema is a draft, which no person has confirmed.
        """
        from ..release.publish import published  # imported here, since releases import plans

        return published(
            self,
            table,
            out=out,
            format=format,
            on_outside=on_outside,
            progress=progress,
            ledger=ledger,
            id=id,
            executors=executors,
            verifier=verifier,
        )

    def check(self, table: object) -> "CheckResult":
        """Return which rows a release would leave out, and why. NOT private: for the owner alone.

        The result has exact counts and values of the data, without any noise, and spends no budget.
        Columns that no table of the plan has are not read. A schema that is a draft can be checked
        too.

        Args:
            table: as in :meth:`release`.

        Returns:
            A :class:`~gaussnoise.results.CheckResult`. It has passed if ``on_outside="refuse"``
            would accept the table; ``counted`` is the number of rows that ``on_outside="drop"``
            counts. It also lists values that are set to a bound of an interval, or that the
            catch-all counts. Where the number of rows is public, no row can be dropped.

        Raises:
            DataError: a column is missing, or of a type that cannot hold the attribute; or a file
                is malformed. A release refuses these also with ``on_outside="drop"``.

        >>> import pyarrow as pa
        >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
        >>> survey = gn.plan(schema, 1, gn.zCDP(0.1))
        >>> print(survey.check(pa.table({"sex": [*"FM" * 20, "f", "f", None]})))
        NOT PRIVATE: for you alone, with exact counts and values of your data.
        43 rows, 40 counted
        3 left out, or on_outside="refuse" refuses the table:
          sex  not a category  2  'f'
          sex  missing         1
        """
        from ..release.publish import checked

        return checked(self, table)

    def dp_event(self) -> "DpEvent":
        """Return the cost for ``dp-accounting``; see :func:`gaussnoise.privacy.dp_event`.

        Raises:
            NotAvailableError: budgets of rows grow with their numbers.
        """
        return event_of(self.scales, self.rho_charged)

    def simulate(
        self,
        table: object,
        rng: np.random.Generator,
        *,
        on_outside: OnOutside = "refuse",
        progress: bool | Counted | None = None,
    ) -> "TableRelease":
        """Return the same tables with floating-point noise from ``rng``: for studies, NOT private.

        Args:
            table: as in :meth:`release`.
            rng: a numpy Generator.
            on_outside: as in :meth:`release`.
            progress: as in :meth:`release`.

        Returns:
            A :class:`TableRelease`, which says that it is a simulation.

        Raises:
            ParameterError: ``rng`` is not a Generator.
            DataError: as :meth:`release`.
        """
        from ..release.publish import simulated

        if not isinstance(rng, np.random.Generator):
            raise not_a_generator(rng)
        scale = 0.0 if self.query.query is None else self.query.query.scale

        def draw(count: int) -> NDArray[np.int64]:
            return np.rint(rng.normal(scale=scale, size=count)).astype(np.int64)

        return simulated(self, table, draw, on_outside=on_outside, progress=progress)

    def report(self, path: str | os.PathLike[str], *, title: str | None = None) -> None:
        """Write one HTML page that describes the planned release.

        The page has the request, its accuracy, its cost in privacy, and its distance from the
        optimum. It needs no data, no other file and no network.

        Args:
            path: a new file, like ``plan.html``.
            title: the heading of the page.

        Raises:
            OutputError: the file exists, or cannot be written.
            ParameterError: the title is no text.
            SchemaError: the schema is a draft, and the page would show its categories.
        """
        # imported here, since the page imports plans
        from ..release.report.pages import save_report

        self.schema.check_confirmed("report")
        save_report(self, path, title)

    def __repr__(self) -> str:
        tables, cells = number_of(len(self.marginals), "table"), number_of(self.tables.dim, "cell")
        return f"Plan({tables}, {cells}, {self.privacy!r})"

    def __str__(self) -> str:
        return on_screen(plan_text(self))


def event_of(scales: Mapping[str, float], rho: float) -> "DpEvent":
    """Return the cost of a release at the budget ρ as an event of the package dp-accounting.

    Raise NotAvailableError if budgets grow with numbers of a record (``scales`` is not empty).
    """
    if scales:
        raise NotAvailableError(
            "dp_event: dp-accounting knows no budgets that grow with numbers of a record"
        )
    return dp_event(rho)
