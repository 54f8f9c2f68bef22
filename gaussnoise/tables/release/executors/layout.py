"""What each of Spark's tasks measures and publishes, and where it goes: without data."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import final

from ....solvers.tables.residuals import Subset
from ....solvers.tables.strategies import AbstractStrategy, SolvedStrategy
from ...counting.count import grouped
from ...planning.measure import ResidualQuery
from ...planning.plan import Plan
from ..store import Place
from ..stream import known_part, measured_parts

_GROUPS = 256  # at least so many, where tables are that many
_GROUP_CELLS = 2**16, 2**20  # of a group, unless it is one table


@final
@dataclass(frozen=True)
class Layout:
    """Which groups of attributes are counted, measured and published together.

    It is known before any data are read.

    Attributes:
        sizes: of all attributes of the schema.
        groups: sorted positions of attributes.
        tables: of each group, the planned tables that are parts of it.
        query: what is measured.
    """

    sizes: tuple[int, ...]
    groups: tuple[Subset, ...]
    tables: tuple[tuple[Subset, ...], ...]
    query: ResidualQuery

    @classmethod
    def of(cls, plan: Plan, query: ResidualQuery | None = None) -> "Layout":
        """Of a plan, whose own query may be replaced by that of a stream's ticks."""
        cells = plan.tables.dim / _GROUPS
        most = int(min(max(cells, _GROUP_CELLS[0]), _GROUP_CELLS[1]))
        groups = grouped(plan.tables.subsets, plan.schema.attributes, most)
        tables = tuple(map(tuple, groups.values()))
        return cls(plan.schema.sizes, tuple(groups), tables, query or plan.query)

    @cached_property
    def measured(self) -> tuple[tuple[tuple[Subset, bool], ...], ...]:
        """Of each group, its residuals (False) and public tables (True), as they are stored.

        Residuals are those that it is the first to have.
        """
        seen: set[tuple[Subset, bool]] = set()
        found = []
        for tables in self.tables:
            own: dict[tuple[Subset, bool], None] = {}
            for S in tables:
                if () not in self.query.multipliers:
                    own[known_part(S, self.query), True] = None
                own |= {(T, False): None for T in measured_parts(S, self.query)}
            found.append(tuple([key for key in own if key not in seen]))
            seen.update(own)
        return tuple(found)

    @cached_property
    def places(self) -> Mapping[tuple[Subset, bool], tuple[int, slice]]:
        """In which group's file each of them is, and where there."""
        places = {}
        for part, own in enumerate(self.measured):
            start = 0
            for key in own:
                end = start + math.prod(self.sizes[i] for i in key[0])
                places[key] = part, slice(start, end)
                start = end
        return places

    def files(self, part: int) -> dict[str, list[Subset]]:
        """The files of a group's tables, one for each number of attributes."""
        files: dict[str, list[Subset]] = {}
        for S in self.tables[part]:
            files.setdefault(f"tables/{len(S)}-way/part-{part:06d}.parquet", []).append(S)
        return files

    @cached_property
    def table_places(self) -> dict[Subset, Place]:
        """Where each table is in the dataset."""
        places = {}
        for part in range(len(self.groups)):
            for file, tables in self.files(part).items():
                row = 0
                for S in tables:
                    shape = tuple(self.sizes[i] for i in S)
                    places[S] = Place(file, row, shape)
                    row += math.prod(shape)
        return places

    @property
    def sha256(self) -> str:
        """sha256 of all that decides what is measured.

        Another version of this program, or of the libraries that solve for noise, may group
        or measure otherwise, and what two of them measure costs more than either.
        """
        multipliers, noise = self.query.multipliers, self.query.query
        known = (
            self.sizes,
            self.groups,
            self.tables,
            self.measured,
            multipliers.orbits.classes,
            [(kind, int(s)) for kind, s in multipliers.values_by_type.items()],
            [_contrasts(strategy) for strategy in self.query.strategies],
            None if noise is None else (noise.sensitivity_squared, noise.budget),
            (self.query.unit, self.query.most, self.query.public),
        )
        return hashlib.sha256(json.dumps(known).encode()).hexdigest()


def _contrasts(strategy: AbstractStrategy) -> tuple[int, str]:
    """What tells measurements of one attribute apart."""
    solved = isinstance(strategy, SolvedStrategy)
    own = strategy.contrasts.astype("<i8").tobytes() if solved else b""
    return strategy.size, hashlib.sha256(own).hexdigest()
