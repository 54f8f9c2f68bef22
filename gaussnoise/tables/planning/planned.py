"""The data of a plan, and how it will be measured: public, computed without any private data."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from domains import Marginals
from domains.tables.tables import AbstractTables

from ...errors import GaussNoiseError, ParameterError
from ...files.pickling import PickledByArguments
from ...noise.marginal_covariance import covariance_of_cells
from ...noise.optimal_noise import OptimalNoise
from ...noise.problem import Relation
from ...noise.table_covariance import TableCovariance, covariance_of_tables
from ...numerics.rounding import rounded_down, rounded_up
from ...privacy.guarantee import AbstractPrivacy
from ...privacy.lattice_bound import TABLE_STEPS
from ...solvers.tables.residuals import Subset
from ...solvers.tables.strategies import AbstractStrategy
from ...solvers.tables.workload import Workload
from ..schema.entries import attribute_positions, term_name
from ..schema.numbers import Weight, unit_of
from ..schema.schema import Schema
from .exchange import with_number
from .measure import Array, ResidualQuery, measured_integers
from .request import Request
from .targets import Target


def unit_text(rows: int, person: str | None) -> str:
    """Return what a budget protects, in words: one row, or one person of limited rows."""
    if person is not None:
        counted = "1 row is" if rows == 1 else f"{rows} rows are"
        return f"one person (column {person!r}), of whom at most {counted} counted"
    return "one row" if rows == 1 else f"one person of at most {rows} rows"


@dataclass(frozen=True, eq=False)
class Planned(PickledByArguments):
    """The data of a :class:`Plan`, where the attributes are described."""

    asked: Request
    noise: OptimalNoise

    def __post_init__(self) -> None:
        if (
            self._unit_covariance.domain is not self.domain
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

    @property
    def schema(self) -> Schema:
        """The public attributes."""
        return self.asked.schema

    @property
    def domain(self) -> AbstractTables:
        """The queries: :class:`Marginals`, or :class:`Products` of more than cells."""
        return self.asked.domain

    @property
    def privacy(self) -> AbstractPrivacy:
        """The budget of the whole release, for one person."""
        if self.asked.privacy is None:
            raise ParameterError("Plan: expected a budget, got none; hint: call plan()")
        return self.asked.privacy

    @property
    def neighbors(self) -> Relation:
        """The neighbouring relation; "replace" also where rows agree on :attr:`public`."""
        return self.asked.neighbors

    @property
    def targets(self) -> tuple[Target | None, ...] | None:
        """The target of every entry of the workload (None for one without), or None."""
        return self.asked.targets

    @property
    def rows_per_person(self) -> int:
        """The most rows that one person is assumed to have, or that are counted of each."""
        return self.asked.rows_per_person

    @property
    def person(self) -> str | None:
        """The column that says which person a row belongs to, if rows are limited by it."""
        return self.asked.person

    @property
    def public(self) -> tuple[str, ...]:
        """Attributes whose joint table is exact and whose values have no protection."""
        return self.asked.public

    @property
    def weight(self) -> Weight | None:
        """The column of sample weights, or None if every row counts as one."""
        return self.asked.weight

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
        """The entries of the workload in words, like ``age (prefix) × sex``."""
        return tuple([term_name(self.schema, term) for term in self.domain.terms])

    @cached_property
    def strategies(self) -> tuple[AbstractStrategy, ...]:
        """The strategy that measures each attribute."""
        return self._unit_covariance.strategies

    @property
    def has_public_rows(self) -> bool:
        """Whether the number of rows that are counted is public, and comes out exactly."""
        return self.neighbors == "replace" and self.person is None

    @property
    def _exchanges_persons(self) -> bool:
        """Whether persons are exchanged, who may have different numbers of rows."""
        return self.neighbors == "replace" and self.person is not None

    @property
    def exact(self) -> tuple[tuple[str, ...], ...]:
        """The largest tables that come out without noise, as names of public attributes.

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
        """The ρ of zero-concentrated differential privacy for the whole release."""
        return self.privacy.to_zcdp(self.integers, TABLE_STEPS).rho

    @cached_property
    def row_rho(self) -> float:
        """The ρ spent on one row; k rows of one person cost k² times as much."""
        return rounded_down(Fraction(self.rho) / self.rows_per_person**2)

    @property
    def answer_rho(self) -> float:
        """The ρ spent on one row of weight one; rows of weight B cost B² times as much."""
        return self.row_rho if self.weight is None else self.row_rho / self.weight.most**2

    @property
    def unit(self) -> int:
        """The amount that one row adds to the integer counts that are measured.

        It is more than one where rows count in parts, see :class:`Clipped` and :class:`Weight`.
        """
        return self.query.unit

    @property
    def privacy_unit(self) -> str:
        """The unit that the budget protects, in words."""
        return unit_text(self.rows_per_person, self.person)

    @cached_property
    def request(self) -> dict[str, object]:
        """All that was asked for, as plain data that is the same on any machine."""
        return self.asked.identity(self.rho)

    @cached_property
    def request_sha256(self) -> str:
        """The SHA-256 of :attr:`request`: the same for equal arguments, on any machine."""
        return hashlib.sha256(json.dumps(self.request).encode()).hexdigest()

    @property
    def queries(self) -> Array:
        """The number of answers of each entry of the workload."""
        return self._unit_covariance.queries

    @cached_property
    def _unit_covariance(self) -> TableCovariance:
        """The covariance of all answers at unit sensitivity."""
        if self._exchanges_persons:
            return with_number(self.noise)
        return covariance_of_tables(self.noise.covariance)

    @cached_property
    def workload(self) -> Workload:
        """The tables, with attributes that can be exchanged for each other treated as one class."""
        return Workload.of(self.domain, total=True)

    @cached_property
    def _places(self) -> dict[Subset, int]:
        """The position of each planned marginal in the list of all."""
        return {S: place for place, S in enumerate(self.tables.subsets)}

    @cached_property
    def _having(self) -> list[set[int]]:
        """For each attribute, the positions of the planned marginals that contain it."""
        having: list[set[int]] = [set() for _ in self.schema.names]
        for S, place in self._places.items():
            for i in S:
                having[i].add(place)
        return having

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.schema.names)}

    def subset(self, names: Sequence[str]) -> Subset:
        """Return the positions of attributes in the schema, in the order given.

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

    @property
    def integers(self) -> int:
        """The number of noisy integers that a release draws."""
        return measured_integers(self.strategies, self._unit_covariance.variances)

    @cached_property
    def query(self) -> ResidualQuery:
        """The integer query that a release answers with noise."""
        return ResidualQuery.calibrated(
            self.strategies,
            self._unit_covariance.variances,
            "replace-persons" if self._exchanges_persons else self.noise.neighbors,
            self.row_rho,
            unit_of((self.schema.attributes[i] for i in self.asked.used), self.weight),
            1.0 if self.weight is None else self.weight.most,
        )

    @cached_property
    def covariance(self) -> TableCovariance:
        """The covariance of a release's noise over the (unweighted) cells of all tables."""
        tables = Marginals(self.domain.sizes, self.tables.subsets)
        return covariance_of_cells(tables, self.strategies, self.query.variances)

    @property
    def rho_charged(self) -> float:
        """The ρ that OpenDP's map charges for a release's noise, for all rows of one person."""
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
