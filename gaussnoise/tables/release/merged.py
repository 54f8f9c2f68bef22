"""The description of a combination of releases, in place of a plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, NoReturn, final

import numpy as np
import scipy
from numpy.typing import NDArray

from domains.tables.marginals import Marginals
from domains.tables.tables import AbstractTables

from ...errors import ParameterError
from ...files.pickling import PickledByArguments
from ...noise.problem import Relation
from ...solvers.tables.residuals import Subset
from ...text import number_of
from ..schema.about import About
from ..schema.entries import attribute_positions, term_name
from ..schema.numbers import PerPerson, Weight
from ..schema.schema import Schema

if TYPE_CHECKING:
    from ...privacy.guarantee import Larger
    from ..planning.ranges import FoundRange
    from .noisy import AbstractRelease


class Source(NamedTuple):
    """One of the releases that were combined.

    Attributes:
        id: the first 16 digits of the sha256 of the release's tables.
        rho: the cost ρ of the release.
        marginals: the attribute names of each table.
        unit: the number of integer units into which a row is split, see :attr:`Plan.unit`.
    """

    id: str
    rho: float
    marginals: tuple[tuple[str, ...], ...]
    unit: int


class Agreement(NamedTuple):
    """The result of the test whether combined releases can be about the same rows.

    Attributes:
        chi_squared: the squared length of the differences between releases, in standard deviations
            of the noise.
        degrees_of_freedom: the mean of ``chi_squared`` if the rows are the same.
        p_value: the probability that noise alone makes differences at least as large.
    """

    chi_squared: float
    degrees_of_freedom: int
    p_value: float

    @classmethod
    def of(cls, chi_squared: float, degrees_of_freedom: int) -> "Agreement":
        """Return the result of the test for this χ² statistic, with its p-value."""
        free = degrees_of_freedom
        p_value = float(scipy.special.chdtrc(free, chi_squared)) if free else 1.0
        return cls(chi_squared, free, p_value)


def all_fit_text(columns: Sequence[str]) -> str:
    """Return the sentence that every row is assumed to have a value that fits in these columns."""
    return f"Assumed: every row had a value of the schema in {', '.join(map(repr, columns))}."


@final
@dataclass(frozen=True, eq=False)
class MergedPlan(PickledByArguments):
    """The tables that several combined releases have, and facts about these releases.

    A combined release has a merged plan in place of a plan.

    Attributes:
        schema: all attributes.
        domain: the queries of all releases, each once.
        neighbors: the neighbouring relation of all releases.
        rows_per_person: the most rows of one person, in all releases.
        person: the column that says which person a row belongs to, in all releases; or None.
        per_person: {number: function that computes one number from the rows of a person}, in all
            releases.
        public: the attributes whose tables are exact, in all releases.
        weight: the column that rows are weighted by, in all releases; or None.
        sources: facts about the releases that were combined.
        releases: the releases that were combined.
        agreement: the test whether all can be about the same rows; None if there was no test.
        fits: the attributes in which every row was assumed to have a valid value, since only some
            of the releases leave out rows without a valid value.
    """

    schema: Schema
    domain: AbstractTables
    neighbors: Relation
    rows_per_person: int
    person: str | None
    per_person: Mapping[str, PerPerson]
    public: tuple[str, ...]
    weight: Weight | None
    sources: tuple[Source, ...]
    releases: "tuple[AbstractRelease, ...]"
    agreement: Agreement | None
    fits: tuple[str, ...] = ()

    @property
    def assumed(self) -> list[str]:
        """The assumption that all rows have valid values, in words; empty if it was not made."""
        if not self.fits:
            return []
        return [
            f"{all_fit_text(self.fits)} Rows without one are in the tables of some of the releases "
            "alone."
        ]

    @property
    def about(self) -> About:
        """The lines of the first release that describe the data to readers, such as a title."""
        return self.releases[0].plan.about

    @property
    def scales(self) -> Mapping[str, float]:
        """The columns whose numbers make the budget of a record larger, as {name: scale}.

        The larger a number is in units of its scale, the larger is the budget. The mapping is empty
        if all records have the same budget. All releases have the same scales.
        """
        return self.releases[0].plan.scales

    @property
    def larger(self) -> "tuple[Larger, ...]":
        """Examples of records that have a larger budget than others, the same in all releases."""
        return self.releases[0].plan.larger

    @property
    def unit(self) -> int:
        """The number of integer units into which a row is split; 1 if no release splits rows.

        If the releases split rows into different numbers of units, the least of these numbers
        counts.
        """
        return min([source.unit for source in self.sources if source.unit > 1], default=1)

    @property
    def ranges(self) -> "tuple[FoundRange, ...]":
        """An empty tuple: ranges were found for each release, and not for the combination."""
        return ()

    @property
    def marginals(self) -> tuple[tuple[str, ...], ...]:
        """The attribute names of every table."""
        return tuple(tuple(self.schema.names[i] for i in S) for S in self.tables.subsets)

    @cached_property
    def tables(self) -> Marginals:
        """The attribute sets of all tables, each once."""
        return self.domain.tables

    @cached_property
    def entries(self) -> tuple[str, ...]:
        """The name of each entry of the workload."""
        return tuple(term_name(self.schema, term) for term in self.domain.terms)

    @cached_property
    def queries(self) -> NDArray[np.float64]:
        """The number of answers of each entry of the workload."""
        return np.array([self.domain.queries(term) for term in self.domain.terms], dtype=float)

    @property
    def has_public_rows(self) -> bool:
        """Whether the number of counted rows is public, and is released exactly."""
        return self.neighbors == "replace" and self.person is None

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.schema.names)}

    def subset(self, names: Sequence[str]) -> Subset:
        """Return the indices in the schema of the attributes with these names."""
        if not isinstance(names, list | tuple):
            raise ParameterError(f"expected attribute names, got {names!r}")
        return attribute_positions(self._positions, names, self.schema.levels)

    def check_released(self, S: Subset) -> None:
        """Raise ParameterError unless one of the releases has a table with all attributes of S."""
        if not any(set(S) <= set(A) for A in self.tables.subsets):
            names = " × ".join(self.schema.names[i] for i in S)
            raise ParameterError(
                f"no planned marginal contains {names}; hint: one of the releases must have "
                "planned it"
            )

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_") or name == "over":  # only plans of streams have ticks
            raise AttributeError(name)
        raise ParameterError(
            f"{name}: {len(self.sources)} combined releases have no plan in common, which would "
            "say it; hint: save and describe each of them, and combine them again"
        )

    def __repr__(self) -> str:
        ids = ", ".join(source.id for source in self.sources)
        return f"MergedPlan({number_of(len(self.tables.subsets), 'marginal')} of {ids})"
