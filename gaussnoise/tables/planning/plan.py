"""What was planned, how well it answers, and what it costs: public, computed without data."""

import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from domains import Marginals
from domains.tables.tables import AbstractTables

from ...bounds import Bound, bound_of
from ...bounds.proof import noise_of
from ...errors import GaussNoiseError, ParameterError, not_a_generator
from ...files.pickling import PickledByArguments
from ...noise.marginal_covariance import covariance_of_cells
from ...noise.optimal_noise import OptimalNoise
from ...noise.problem import Relation
from ...noise.table_covariance import TableCovariance, covariance_of_tables
from ...numerics.intervals import quantile
from ...numerics.norms import group_norm
from ...numerics.rounding import rounded_down, rounded_up
from ...privacy.definitions import AbstractPrivacy, dp_event
from ...privacy.lattice_bound import TABLE_STEPS
from ...privacy.ledger import Ledger
from ...privacy.sampler import sampling_threads
from ...solvers.progress import Counted
from ...solvers.tables.residuals import Subset
from ...solvers.tables.strategies import AbstractStrategy
from ...solvers.tables.workload import Workload
from ..counting.codes import OnOutside
from ..counting.count import PASS_CELLS
from ..schema.entries import Entry, attribute_positions, entry_term, term_name
from ..schema.numbers import (
    Weight,
    check_one_number,
    check_weight,
    in_own_unit,
    reached,
    unit_of,
)
from ..schema.schema import Schema
from .exchange import least_error, with_number
from .independent import independent_deviations, saving
from .measure import Array, ResidualQuery, measured_integers
from .request import request_of
from .targets import Target, largest_ratio

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

    from ..release.release import TableRelease
    from ..release.store import FileFormat

_COMPARED = 1e-4  # tolerance of a comparison that is printed to three digits
SECONDS_PER_INTEGER = 12e-6  # of one thread: OpenDP's draw and its conversion
_SECONDS_PER_CELL = 2e-6  # exact integers, reconstruction, writing


@final
@dataclass(frozen=True, eq=False)
class Plan(PickledByArguments):
    """What a release will look like: a public document, computed without data.

    Attributes:
        schema: the public attributes.
        domain: the :class:`Marginals` of the workload, or the :class:`Products` where more than
            cells is asked for.
        noise: the certified optimal covariance at unit sensitivity. Where persons are exchanged,
            it is for their rows; :attr:`bracket` is about all noise.
        privacy: the budget of the whole release, for one person.
        rows_per_person: the most rows that one person is taken to have.
        targets: what was asked of every entry of the workload (None where nothing was), or None.
        weight: the column of sample weights, or None where every row counts as one.
        person: the column that says whose row it is, where at most ``rows_per_person`` rows of each
            person are counted; None where nobody counts them, and their number is a promise.
    """

    schema: Schema
    domain: AbstractTables
    noise: OptimalNoise
    privacy: AbstractPrivacy
    rows_per_person: int = 1
    targets: tuple[Target | None, ...] | None = None
    weight: Weight | None = None
    person: str | None = None

    def __post_init__(self) -> None:
        if (
            self._unit_covariance.domain is not self.domain
            or self.noise.shifted
            or self.noise.problem.protected not in ("add-remove", "replace")
            or self.domain.sizes != self.schema.sizes
        ):
            raise ParameterError(
                "Plan: expected optimal noise for the marginals of this schema; hint: call plan()"
            )
        if self.weight is not None:
            check_weight(self.schema, self.weight, self.neighbors)
        check_one_number(self.schema, self.domain)
        if self.person is not None and self.public:
            raise ParameterError(
                "plan: person= cannot be combined with public=: persons have different numbers of "
                "rows, so a person who is exchanged for another changes the public tables, which "
                "have no noise; hint: leave out one of the two"
            )

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
        return self._unit_covariance.strategies

    @property
    def neighbors(self) -> Relation:
        """The neighbouring relation; with :attr:`public` attributes "replace", less."""
        return "replace" if self.noise.problem.public else self.noise.neighbors

    @property
    def has_public_rows(self) -> bool:
        """Whether the number of rows that are counted is public, and comes out exactly."""
        return self.neighbors == "replace" and self.person is None

    @property
    def bracket(self) -> tuple[float, float]:
        """A proven lower end of γ, and γ of this plan: the least ``‖sd‖_p`` of Gaussian noise that
        protects these answers, at unit sensitivity.
        """
        if not self._exchanges_persons:
            return self.noise.gamma_lower, self.noise.gamma
        upper = self._unit_covariance.error(self.noise.p)
        return min(least_error(self.noise, self._unit_covariance), upper), upper

    @property
    def gap(self) -> float:
        """By how much :attr:`bracket` is open, relative: 0 where it is closed."""
        if not self._exchanges_persons:
            return self.noise.gap
        lower, upper = self.bracket
        return upper / lower - 1 if lower > 0 else math.inf

    @property
    def _exchanges_persons(self) -> bool:
        """Whether persons are exchanged, whose numbers of rows differ."""
        return self.neighbors == "replace" and self.person is not None

    @property
    def public(self) -> tuple[str, ...]:
        """Attributes whose joint table is released exactly, and in which nobody is protected."""
        return tuple([self.schema.names[i] for i in self.noise.problem.public])

    @property
    def exact(self) -> tuple[tuple[str, ...], ...]:
        """The largest tables that come out without noise, of public attributes; ``()`` is the
        number of rows.
        """
        if not self.has_public_rows:
            return ()
        public = self.noise.problem.public
        parts = {tuple(i for i in S if i in public) for S in self.tables.subsets}
        largest = [S for S in sorted(parts) if not any(set(S) < set(T) for T in parts)]
        return tuple([tuple([self.schema.names[i] for i in S]) for S in largest])

    @cached_property
    def public_saving(self) -> float:
        """How many times less variance than with the public tables protected as well.

        The comparison is with a proven lower end; infinite where nothing is left to protect.
        """
        if not self.public:
            return 1.0
        whole = noise_of(self.domain, self.noise.p, "replace", _COMPARED).gamma_lower
        if self.noise.gamma == 0:
            return math.inf if whole > 0 else 1.0
        return (whole / self.noise.gamma) ** 2

    @cached_property
    def rho(self) -> float:
        """ρ of zero-concentrated differential privacy, for the whole release."""
        return self.privacy.to_zcdp(self.integers, TABLE_STEPS).rho

    @cached_property
    def row_rho(self) -> float:
        """ρ spent on one row: k rows of one person cost k² times as much."""
        return rounded_down(Fraction(self.rho) / self.rows_per_person**2)

    @property
    def answer_rho(self) -> float:
        """ρ spent on one row that counts as one: rows of weight B cost B² times as much."""
        return self.row_rho if self.weight is None else self.row_rho / self.weight.most**2

    @property
    def unit(self) -> int:
        """How much one row adds to the integer counts that are measured: more than one where rows
        count in parts, see :class:`Clipped` and :class:`Weight`.
        """
        return self.query.unit

    @property
    def privacy_unit(self) -> str:
        """Whom the budget protects."""
        k = self.rows_per_person
        if self.person is not None:
            rows = f"{k} row is" if k == 1 else f"{k} rows are"
            return f"one person (column {self.person!r}), of whom at most {rows} counted"
        return "one row" if k == 1 else f"one person of at most {k} rows"

    @cached_property
    def request(self) -> dict[str, object]:
        """Every part of what was asked for, as plain data: the same on any machine."""
        return request_of(self)

    @cached_property
    def request_sha256(self) -> str:
        """What was asked for, in one number: the same for equal arguments, on any machine."""
        return hashlib.sha256(json.dumps(self.request).encode()).hexdigest()

    @property
    def target_ratio(self) -> float:
        """Largest ratio of a half-width to its target: at most 1 where all targets are met.

        Raises:
            ParameterError: planned without targets.
        """
        if self.targets is None:
            raise ParameterError(
                "target_ratio: this plan has no targets; hint: plan(..., targets=...)"
            )
        return largest_ratio(self._unit_covariance, self.targets) / math.sqrt(2 * self.answer_rho)

    @cached_property
    def deviations(self) -> Array:
        """Of every entry, the root mean square of its answers' standard deviations."""
        return self._unit_covariance.deviations / math.sqrt(2 * self.answer_rho)

    @property
    def queries(self) -> Array:
        """How many answers each entry of the workload has."""
        return self._unit_covariance.queries

    def answer_deviations(self, entry: Entry) -> Array:
        """Standard deviations of the answers about one table, whether planned for or not.

        Args:
            entry: names, or a mapping from names to bases, as in :func:`plan`.

        Returns:
            An array, one axis for each name; sums of clipped numbers in their own unit.

        Raises:
            ParameterError: unknown attributes or bases, or no planned marginal contains them.
        """
        term = entry_term(self.schema, entry)
        S = tuple(sorted(term))
        self.check_released(S)
        stated = tuple((i, in_own_unit(term[i])) for i in S)
        variance = self._unit_covariance.term_variance(stated)
        return np.sqrt(variance / (2 * self.answer_rho)).transpose([S.index(i) for i in term])

    @cached_property
    def _unit_covariance(self) -> TableCovariance:
        """Of all answers, at unit sensitivity."""
        if self._exchanges_persons:
            return with_number(self.noise)
        return covariance_of_tables(self.noise.covariance)

    @cached_property
    def _cells(self) -> Array:
        """Cells of every released table."""
        return np.array([float(self.tables.cells(S)) for S in self.tables.subsets])

    @property
    def integers(self) -> int:
        """Noisy integers a release draws."""
        return measured_integers(self.strategies, self._unit_covariance.variances)

    @property
    def seconds(self) -> float:
        """Roughly what a release takes, besides counting."""
        return (
            self.integers * SECONDS_PER_INTEGER / sampling_threads()
            + float(self._cells.sum()) * _SECONDS_PER_CELL
        )

    @property
    def peak_bytes(self) -> float:
        """Roughly the memory of a release that is not written to files, besides the records'."""
        cells = self._cells
        return float(8 * cells.sum() + 64 * cells.max() + 32 * min(cells.sum(), PASS_CELLS))

    @property
    def error(self) -> float:
        """``‖sd‖_p`` over all (weighted) cells: at p = 2 the root of their total variance."""
        return self._unit_covariance.error(self.noise.p) / math.sqrt(2 * self.answer_rho)

    @property
    def improvement(self) -> float:
        """How many times less variance than independent noise on each marginal, both at their best
        for ``p``.

        As drawn: least squares over all the independent tables would win back most of the
        difference on workloads that overlap much, at the cost of exact simple standard deviations;
        it never gets below the optimum.
        """
        weights, p = np.array(self.domain.weights), self.noise.p
        independent = group_norm(weights * self.independent_deviations, self.queries, p)
        return (independent / self.error) ** 2 if independent > 0 else 1.0

    @cached_property
    def independent_deviations(self) -> Array:
        """What :attr:`deviations` would be with independent noise and the best split."""
        return independent_deviations(self)

    @cached_property
    def bound(self) -> Bound:
        """What no unbiased mechanism of this budget can beat, on any data: on ``error``, in rows.

        Raises:
            ParameterError: planned with public attributes, under which no bound is known.

        >>> schema = gn.Schema(
        ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])]
        ... )
        >>> survey = gn.plan(schema, 2, gn.zCDP(0.1))
        >>> # √((e^2ρ − 1) / 2ρ)
        >>> print(f"{survey.bound.error:.4f} {survey.bound.factor(survey.error):.4f}")
        5.2058 1.0522
        """
        noise = self.noise
        if self._exchanges_persons and noise.gamma == 0:  # persons may also come without rows
            noise = noise_of(self.domain, noise.p, "add-remove", _COMPARED)
        bound = bound_of(noise, self.privacy, None, rows=self.rows_per_person)
        share = reached(self.domain, self.neighbors)
        share *= 1.0 if self.weight is None else self.weight.most
        values, counts = bound.spectrum
        return replace(
            bound, gamma_lower=share * bound.gamma_lower, spectrum=(share * values, counts)
        )

    @cached_property
    def replace_saving(self) -> float:
        """How many times less variance than the paper's noise, which protects replaced rows by
        doubling γ_p(K)'s.

        ``(2 γ_p(K) / γ°_p(K − K))²``, with the proven lower end of γ_p(K); 1 where nothing needs
        noise.

        Raises:
            ParameterError: planned for rows added or removed, or for more than cells.
        """
        return saving(self, "replace_saving", "gamma")

    @cached_property
    def add_remove_saving(self) -> float:
        """How many times less variance than the best add-remove noise at ``rho / 4``, which
        protects replaced rows too.

        Infinite where nothing needs noise.

        Raises:
            ParameterError: planned for rows added or removed, or for more than cells.
        """
        return saving(self, "add_remove_saving", "add-remove")

    @cached_property
    def workload(self) -> Workload:
        """The tables up to exchange of attributes that they cannot tell apart."""
        return Workload.of(self.domain, total=True)

    def independent_standard_deviation(self, *names: str) -> float:
        """Of every cell of a planned marginal, with independent noise and the best split."""
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
        return math.sqrt(self._unit_covariance.mean_variance(S) / (2 * self.answer_rho))

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
            raise ParameterError(
                f"no planned marginal contains {names}; hint: plan it, a release cannot be extended"
            )

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
            * ρ-zCDP for rows added, removed or replaced (see ``neighbors``), ρ at most :attr:`rho`,
              as charged by OpenDP's map for one integer query of exactly known sensitivity; for a
              person's rows together, as long as nobody has more than ``rows_per_person``; planned
              with ``person``, however many they are (:mod:`gaussnoise.tables.counting.persons`),
              where a person is whoever has one value in that column. Refusals
              depend on the data and are not covered, unless ``on_outside`` is "drop": then a row
              that does not fit is as one that is not there. Timing is not covered. Under
              replacement the number of rows is public and comes out exactly.
            * Every table is unbiased with the stated standard deviation, and tables agree on shared
              margins. Planned with ``person``, they are so for the rows that are counted: where
              persons have more, counts of all rows are larger, by how much is private.
            * All that a release says about itself is computed before its budget is charged: after
              that, it only counts, draws, decodes and writes.

        Args:
            table: a dataframe (anything narwhals reads); or the path of a CSV or Parquet file, a
                list of such paths, a pattern like ``data/*.csv``, all with the same columns; or a
                folder of Parquet, in which names of folders like ``year=2024`` are columns too.
            out: a new directory for the files of :meth:`TableRelease.save`; checked before noise is
                drawn. Tables are written one at a time and read back when asked for, so memory
                follows the largest of them.
            format: of those files, "csv" or "parquet".
            on_outside: what becomes of a row that has a null, or a value outside the schema, in an
                attribute without a catch-all, or an impossible combination: "refuse" the whole
                release, or "drop" the row, so that it counts in no table. Whether a release is
                refused tells something about its rows, and a schema can be made to ask for it; with
                "drop" no value decides. A table that is malformed as a whole is refused all the
                same, whatever the schema asks: CSV with fields missing, quotes out of place or
                bytes that are no text, and a column whose declared type cannot hold the attribute.
                How many rows are dropped is private: give attributes a catch-all to count them with
                noise. Under replacement every attribute needs one, and nothing may be impossible,
                unless planned with ``person``: rows of nobody are dropped then too, and no dropped
                row takes a place among a person's.
            progress: True for a bar of released cells, or a callable that is given their number and
                the total; False for silence. By default a bar is drawn after two seconds, on a
                terminal.
            ledger: a :class:`Ledger` or its path: the release is charged to its budget first, drawn
                once, and written to ``out``; run again with the same arguments, it is read from
                there, whatever interrupted the first.
            id: what the ledger is to call this release.

        Returns:
            A :class:`TableRelease`.

        Raises:
            DataError: the table breaks the schema; names column and rule, never a value.
            OutputError: ``out`` exists or cannot be written.
            ParameterError: more than 1000 marginals as CSV; a budget that cannot be drawn; ledger,
                id and out not together; "drop" under replacement without catch-alls.
            BudgetError: the ledger's budget does not allow it; nothing was drawn.
            LedgerError: another release under this id, or an unusable ledger.
        """
        from ..release.publish import published  # a plan and what is done with it meet here

        return published(
            self,
            table,
            out=out,
            format=format,
            on_outside=on_outside,
            progress=progress,
            ledger=ledger,
            id=id,
        )

    def dp_event(self) -> "DpEvent":
        """What a release costs, for ``dp-accounting``; see :func:`gaussnoise.privacy.dp_event`."""
        return dp_event(self.rho_charged)

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
        scale = 0.0 if self.query.query is None else self.query.query.scale

        def draw(count: int) -> NDArray[np.int64]:
            return np.rint(rng.normal(scale=scale, size=count)).astype(np.int64)

        return simulated(self, table, draw, on_outside=on_outside, progress=progress)

    def report(self, path: str | os.PathLike[str], *, title: str | None = None) -> None:
        """Write one HTML page that says what would be released: asked for, how accurate, at what
        cost in privacy, how close to optimal. It needs no data, no other file and no network.

        Args:
            path: a new file, like ``plan.html``.
            title: the heading of the page.

        Raises:
            OutputError: the file exists, or cannot be written.
            ParameterError: the title is no text.
        """
        from ..release.report.pages import save_report  # a plan and its page meet here

        save_report(self, path, title)

    @cached_property
    def query(self) -> ResidualQuery:
        """The integer query that a release answers with noise."""
        used = {i for S in self.tables.subsets for i in S}
        return ResidualQuery.calibrated(
            self.strategies,
            self._unit_covariance.variances,
            "replace-persons" if self._exchanges_persons else self.noise.neighbors,
            self.row_rho,
            unit_of((self.schema.attributes[i] for i in used), self.weight),
            1.0 if self.weight is None else self.weight.most,
        )

    @cached_property
    def covariance(self) -> TableCovariance:
        """Covariance of a release's noise, over the (unweighted) cells of all planned tables."""
        tables = Marginals(self.domain.sizes, self.tables.subsets)
        return covariance_of_cells(tables, self.strategies, self.query.variances)

    @property
    def rho_charged(self) -> float:
        """What OpenDP's map charges for all noise of a release, for all rows of one person."""
        query, copies = self.query.query, self.rows_per_person**2
        if query is not None and query.scale < TABLE_STEPS:
            raise GaussNoiseError(
                f"release: a scale of {query.scale:.3g} is too coarse; hint: another rho"
            )
        charged = rounded_up(Fraction(query.rho) * copies) if query is not None else 0.0
        if charged > self.rho:
            raise GaussNoiseError(
                f"release: noise would cost rho = {charged!r}, more than the planned {self.rho!r}"
            )
        return charged

    def __str__(self) -> str:
        from .text import plan_text

        return plan_text(self)
