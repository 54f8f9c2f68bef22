"""The layout of a release by Spark: which task measures and publishes which tables, and where."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

from domains.errors import DomainTooLargeError

from ...solvers.tables.boxes import Box, boxes
from ...solvers.tables.residuals import Subset
from ...solvers.tables.strategies import AbstractStrategy, SolvedStrategy
from ..counting.count import grouped
from ..planning.measure import ResidualQuery
from ..planning.plan import Plan
from ..release.store import Place
from ..release.stream import known_part, measured_parts
from .matrix import MOST_HELD, Matrix, piece_cells

Key = tuple[Subset, bool]  # a residual (False), or a public table (True)

MOST_CELLS = 2**24  # most cells of a table that one task measures and writes
_PIECE_CELLS = 2**20  # a larger table is cut into pieces of at least this many cells
_GROUPS = 256  # the fewest groups, if there are enough tables
_GROUP_CELLS = 2**16, 2**20  # least and largest limit on the cells of a group of several tables


@final
@dataclass(frozen=True)
class Layout:
    """The groups of attributes that are counted, measured and published together.

    A layout also says which tables are cut into pieces. It is computed without data.

    Attributes:
        sizes: the sizes of all attributes of the schema.
        groups: the sorted positions of each group's attributes.
        tables: for each group, the planned tables whose attributes it contains; the groups that are
            only for parts of large tables have none.
        query: the query that is answered with noise.
        large: the planned tables that are too large for one task, and so are in no group.
        parts: for each group without tables, the parts of large tables that are measured there.
        most: the most cells of a table that a task holds.
        piece: the fewest cells in a piece of a larger table.
    """

    sizes: tuple[int, ...]
    groups: tuple[Subset, ...]
    tables: tuple[tuple[Subset, ...], ...]
    query: ResidualQuery
    large: tuple[Subset, ...] = ()
    parts: tuple[tuple[Key, ...], ...] = ()
    most: int = MOST_CELLS
    piece: int = _PIECE_CELLS

    @classmethod
    def of(
        cls, plan: Plan, query: ResidualQuery | None = None, most: int | None = None
    ) -> "Layout":
        """Return the layout of a plan, for the plan's own query or the query of a stream's ticks.

        Tables of more than ``most`` cells are cut into pieces.

        Raises:
            DomainTooLargeError: a table is too large and cannot be cut into pieces.
        """
        query, most = query or plan.query, MOST_CELLS if most is None else most
        cells, attributes = plan.tables.cells, plan.schema.attributes
        room = int(min(max(plan.tables.dim / _GROUPS, _GROUP_CELLS[0]), _GROUP_CELLS[1]))
        small = [S for S in plan.tables.subsets if cells(S) <= most]
        groups = grouped(small, attributes, room)
        tables = tuple(map(tuple, groups.values()))
        layout = cls(plan.schema.sizes, tuple(groups), tables, query, most=most, piece=_PIECE_CELLS)
        large = tuple([S for S in plan.tables.subsets if cells(S) > most])
        if not large:
            return layout
        measured = set(layout.places)
        new = [key for S in large for key in keys_of(S, query) if key not in measured]
        new = {T: exact for T, exact in new if exact or cells(T) <= most}
        for T, exact in new.items():
            if exact and cells(T) > MOST_HELD:
                raise DomainTooLargeError(
                    f"release: public attributes whose joint table has {cells(T):.3g} cells, more "
                    "than the 2^26 that one task of an executor holds; hint: fewer public ones"
                )
        some = [large[0][:1]] if list(new) == [()] else []  # a group needs at least one attribute
        smaller = grouped([*new, *some], attributes, room)
        inside = [[T for T in own if T in new] for own in smaller.values()]
        return replace(
            layout,
            groups=(*groups, *smaller),
            large=large,
            parts=tuple([tuple([(T, new[T]) for T in own]) for own in inside]),
        )

    @cached_property
    def measured(self) -> tuple[tuple[Key, ...], ...]:
        """The measurements in the file of each group of attributes, as pairs (T, exact).

        T is an attribute set. If ``exact``, the measurement is the exact public table of T, which
        is stored. Otherwise, it is the residual of T with noise. A measurement that several groups
        need is made by the first of these groups.
        """
        seen: set[Key] = set()
        found = []
        for tables in self.tables:
            own = {key: None for S in tables for key in keys_of(S, self.query)}
            found.append(tuple([key for key in own if key not in seen]))
            seen.update(own)
        return (*found, *self.parts)

    @cached_property
    def matrices(self) -> Mapping[Subset, Matrix]:
        """The residuals that are too large for one task, by attribute set, each cut into pieces.

        Raises:
            DomainTooLargeError: a residual cannot be cut into pieces.
        """
        keys = dict.fromkeys([key for S in self.large for key in keys_of(S, self.query)])
        rest = [T for T, exact in keys if (T, exact) not in self.places]
        return {T: Matrix.of(T, self.query, self.piece) for T in rest}

    @cached_property
    def large_pieces(self) -> list[tuple[Subset, Box]]:
        """All pieces of the tables too large for one task: pairs (attribute set, cells)."""
        return [(S, box) for S in self.large for box in self.boxes(S)]

    def boxes(self, S: Subset) -> list[Box]:
        """Return the pieces of the table of the attributes S, each as a range of cells."""
        sizes = [self.sizes[i] for i in S]
        return boxes(sizes, piece_cells(math.prod(sizes), self.piece))

    def piece_file(self, number: int) -> str:
        """Return the name of the published file that holds the piece ``large_pieces[number]``."""
        return _file(self.large_pieces[number][0], len(self.groups) + number)

    @cached_property
    def places(self) -> Mapping[Key, tuple[int, slice]]:
        """The place of each measurement (T, exact): its group and its slice of the group's file."""
        places = {}
        for part, own in enumerate(self.measured):
            start = 0
            for key in own:
                end = start + math.prod(self.sizes[i] for i in key[0])
                places[key] = part, slice(start, end)
                start = end
        return places

    def files(self, part: int) -> dict[str, list[Subset]]:
        """Return {file: attribute sets of its tables} for the group with index ``part``.

        Tables with the same number of attributes share a file.
        """
        files: dict[str, list[Subset]] = {}
        for S in self.tables[part]:
            files.setdefault(_file(S, part), []).append(S)
        return files

    @cached_property
    def table_places(self) -> dict[Subset, Place]:
        """The place of each published table: the file, the first row there, and the shape."""
        places = {}
        for part in range(len(self.tables)):
            for file, tables in self.files(part).items():
                row = 0
                for S in tables:
                    shape = tuple(self.sizes[i] for i in S)
                    places[S] = Place(file, row, shape)
                    row += math.prod(shape)
        for number, (S, _) in enumerate(self.large_pieces):
            first = Place(self.piece_file(number), 0, tuple([self.sizes[i] for i in S]))
            places.setdefault(S, first)
        return places

    @property
    def sha256(self) -> str:
        """The sha256 of all parts of the layout and the query that determine the noise.

        Another version of this program, or of the libraries that solve for noise, may form other
        groups or measure other queries. The measurements of two versions together would cost more
        privacy than those of one, so a release must not mix them.
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
        if self.large:
            cut = [
                (T, matrix.lead, matrix.heights, [columns.stop for columns in matrix.columns])
                for T, matrix in self.matrices.items()
            ]
            known = (*known, self.large, self.piece, cut)
        return hashlib.sha256(json.dumps(known).encode()).hexdigest()


def keys_of(S: Subset, query: ResidualQuery) -> list[Key]:
    """Return the measurements that make up the table of the attributes S, as pairs (T, exact).

    ``exact`` is True for the exact public table of T, and False for the residual of T, which has
    noise.
    """
    exact = [] if () in query.multipliers else [(known_part(S, query), True)]
    return [*exact, *((T, False) for T in measured_parts(S, query))]


def _file(S: Subset, part: int) -> str:
    return f"tables/{len(S)}-way/part-{part:06d}.parquet"


def _contrasts(strategy: AbstractStrategy) -> tuple[int, str]:
    """Return an attribute's size and its contrasts' sha256, which identify how it is measured."""
    solved = isinstance(strategy, SolvedStrategy)
    own = strategy.measured.astype("<i8").tobytes() if solved else b""
    others = [(T, *_contrasts(other)) for T, other in sorted(strategy.others.items())]
    return strategy.size, hashlib.sha256(own + repr(others).encode()).hexdigest()
