"""Noisy tables and the covariance of their noise, from which all answers are computed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from domains.tables.bases import AbstractBase, Identity

from ...files.pickling import PickledByArguments
from ...noise.product_covariance import constants
from ...noise.table_covariance import TableCovariance
from ...solvers.tables.boxes import Box
from ...solvers.tables.residuals import Subset, part_of
from ..planning.facts import OverTime
from ..planning.measure import ResidualQuery
from ..planning.noun import noun_of
from ..schema.bases import query_labels
from ..schema.entries import Entry, entry_term
from ..schema.numbers import in_own_unit
from ..schema.schema import OnOutside
from .forms import CellForms, KeptTables, Rows
from .table import MarginalTable, QueryTable

if TYPE_CHECKING:
    from narwhals.typing import EagerAllowed

    from ..planning.plan import Plan

T = TypeVar("T", bound=np.generic)

Array = NDArray[np.float64]
Names = str | tuple[str, ...]


@dataclass(frozen=True, eq=False)
class AbstractRelease(PickledByArguments):
    """The tables of a release, with the covariance of their noise.

    Functions that compute answers from a release take this class.

    :class:`TableRelease` describes its attributes.
    """

    plan: "Plan"
    private: bool
    rho_charged: float
    covariance: TableCovariance = field(repr=False)
    query: ResidualQuery = field(repr=False)
    tables: Mapping[Subset, Array] = field(repr=False)
    backend: "EagerAllowed" = field(repr=False)
    on_outside: OnOutside = "refuse"
    over: OverTime | None = None
    without_zone: tuple[str, ...] = ()

    @property
    def times(self) -> str | None:
        """The ticks (releases of a stream) that the tables are about, in words; else None."""
        return None if self.over is None else self.over.times

    @property
    def noun(self) -> str:
        """The plural noun for the counted things: rows, persons, or the unit of `About`."""
        return noun_of(self.plan, once=self.over is None or self.over.once)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter(self.plan.marginals)

    def __len__(self) -> int:
        return len(self.plan.marginals)

    def kept(self) -> Self:
        """Return the same release, whose tables stay in memory after they are read."""
        return replace(self, tables=KeptTables(self.tables))

    def __getitem__(self, names: Names) -> MarginalTable:
        asked, S, estimate = estimate_of(self, names)
        schema = self.plan.schema
        estimate = estimate.transpose([S.index(i) for i in asked])
        return MarginalTable(
            attributes=tuple(schema.names[i] for i in asked),
            labels=tuple(schema.attributes[i].labels for i in asked),
            estimate=read_only(estimate),
            standard_deviation=np.broadcast_to(
                ordered(self.deviation(S), S, asked), estimate.shape
            ),
            private=self.private,
            backend=self.backend,
            forms=self._forms({i: Identity(schema.sizes[i]) for i in asked}),
        )

    @cached_property
    def public_rows(self) -> float | None:
        """The number of rows of the data if it is public; otherwise None.

        This number is public if the guarantee protects the replacement of a row, but not its
        presence.
        """
        return None if () in self.query.multipliers else float(estimate_of(self, ())[2])

    def deviation(self, S: Subset, box: Box | None = None) -> Array:
        """Return the standard deviations of the noise in the table of the attributes S.

        If a box of cells is given, only the deviations of its cells are returned; if all are equal,
        the result is one number.
        """
        return np.sqrt(np.asarray(self.covariance.table_variance(S, box)))

    def answers(self, entry: Entry) -> QueryTable:
        """Return answers to queries about one table, whether they were planned or not.

        Queries can be cumulative counts, ranges, bins, moments, or the rows of any query matrix.

        Args:
            entry: attribute names, with their own bases, or a mapping from names to bases, as in
                :func:`plan`.

        Returns:
            A :class:`QueryTable`, axes in the order of ``entry``.

        Raises:
            ParameterError: unknown attributes or bases, or a table that was not released.

        >>> import pyarrow as pa
        >>> schema = gn.Schema(
        ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])]
        ... )
        >>> people = pa.table({"sex": ["F", "M", "F"] * 400, "age": [7, 33, 61] * 400})
        >>> release = gn.plan(schema, [{"sex": "identity", "age": "prefix"}], gn.zCDP(0.1)).release(
        ...     people
        ... )
        >>> cumulative = release.answers({"age": "prefix"})
        >>> print(cumulative.labels, cumulative.estimate.shape)
        (('below 18', 'below 65', 'up to 120'),) (3,)
        """
        term = {i: in_own_unit(b) for i, b in entry_term(self.plan.schema, entry).items()}
        asked, S, answers = estimate_of(self, tuple(self.plan.schema.names[i] for i in term))
        for axis, i in enumerate(S):
            answers = term[i].answer(answers, axis)
        variance = self.covariance.term_variance(tuple((i, term[i]) for i in S))
        if self.public_rows is not None:  # queries that only count all rows are known exactly
            exact = reduce(
                np.multiply.outer, (constants(term[i]) for i in S), np.array(self.public_rows)
            )
            answers = np.where(np.isnan(exact), answers, exact)
        attributes = [self.plan.schema.attributes[i] for i in asked]
        return QueryTable(
            attributes=tuple(attribute.name for attribute in attributes),
            labels=tuple(query_labels(term[i], a) for i, a in zip(asked, attributes, strict=True)),
            estimate=read_only(ordered(np.asarray(answers, dtype=np.float64), S, asked)),
            standard_deviation=read_only(ordered(np.sqrt(variance), S, asked)),
            private=self.private,
            backend=self.backend,
            forms=self._forms(term),
        )

    def _forms(self, term: Mapping[int, AbstractBase]) -> CellForms:
        """Return answers to {attribute index: queries} as linear combinations of cells."""
        names = self.plan.schema.names
        own = {names[i]: Rows(base, axis) for axis, (i, base) in enumerate(term.items())}
        return CellForms(self, own)


def estimate_of(release: AbstractRelease, names: Names) -> tuple[Subset, Subset, Array]:
    """Return (attribute indices as asked, sorted attribute indices, their released table).

    The axes of the table are in sorted order.
    """
    asked = release.plan.subset((names,) if isinstance(names, str) else names)
    S = tuple(sorted(asked))
    if S in release.tables:
        return asked, S, release.tables[S]
    release.plan.check_released(S)
    domain, wanted = release.plan.tables, set(S)
    above = min((A for A in domain.subsets if wanted <= set(A)), key=domain.cells)
    part = part_of(release.tables[above], above, S)
    if _is_exact(release, S) or (part.size == 1 and _is_exact(release, ())):
        part = np.rint(part)  # a public number of rows is an integer
    return asked, S, part


def _is_exact(release: AbstractRelease, S: Subset) -> bool:
    """Return whether the table of S has no noise: the number of rows, and all of S, are public."""
    return () not in release.query.multipliers and set(S) <= set(release.query.public)


def ordered(values: Array, S: Subset, asked: Subset) -> Array:
    """Return a table with its axes moved from the order of S to that of ``asked``.

    A scalar is returned unchanged.
    """
    return values.transpose([S.index(i) for i in asked]) if values.ndim else values


def read_only(values: NDArray[T]) -> NDArray[T]:
    """Return the same values as an array that cannot be written to."""
    values = np.asarray(values).view()
    values.flags.writeable = False
    return values
