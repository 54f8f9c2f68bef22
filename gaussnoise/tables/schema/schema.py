"""The schema of a table: its attributes and their possible values, stated before data are read."""

import bisect
import copy
import datetime
import functools
import io
import itertools
import json
import math
import os
import re
import tomllib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, Self, TypeAlias, final

from domains.tables.bases import AbstractBase
from domains.tables.clipped import Clipped

from ...errors import DataError, ParameterError, SchemaError, SchemaWarning
from ...files.disk import opened
from ...layout import on_screen
from ...text import near
from .about import LINE, NOTHING_SAID, About, is_line
from .bases import EXPECTED_BASE, BaseLike, as_base, base_value
from .codes import EXPECTED_CODES, Code, code_problems, settled_codes
from .date_format import ISO_FORMAT, as_iso
from .dates import (
    EXPECTED_EDGES,
    ISO,
    Edge,
    EdgeLike,
    Toml,
    are_dates,
    as_dates,
    check_no_dates,
    is_dated,
    is_open,
    place,
)
from .dialect import USUAL, Dialect
from .groups import EXPECTED_GROUPS, Level, checked, settled
from .impossible import EXPECTED, Rule, as_rules
from .impossible import text_of as _label
from .interval_names import EXPECTED_NAMES, are_ages, name_problems
from .numbers import STEPS, as_clip, as_unit, cell_labels
from .spellings import EXPECTED_SPELLINGS, Spelt, spelling_problems
from .spellings import settled as settled_spellings

Category: TypeAlias = str | int | bool
# the action for a value outside the schema: refuse the release, or leave out the row
OnOutside: TypeAlias = Literal["refuse", "drop"]
_MOST_BITS = 8192  # bits of the longest integer; Python refuses to write longer ones as text

# names of columns in released tables, not allowed for attributes
RESERVED_NAMES = ("estimate", "biased_estimate", "standard_deviation", "low", "high")


@final
@dataclass(frozen=True)
class Attribute:
    """One column: its public categories, or the public edges of its bins.

    Args:
        name: column name.
        categories: distinct values, all strings, all integers or all booleans.
        edges: increasing numbers; bins are ``[e0, e1), [e1, e2), …, [e_last-1, e_last]``. ``-inf``
            and ``inf`` are allowed. Or dates and timestamps without time zone, of Python, numpy or
            pandas, or in ISO 8601 text. If all are midnights, they are kept as dates, a timestamp
            counts as its day, and the last bin holds all of the last day; else they are kept as
            datetimes. Columns then hold dates, timestamps or strict ISO text, ``2020-01-31`` or
            ``2020-01-31 08:30:00``; all other values, and those with an offset, are outside.
        names: the names of the intervals between ``edges``, in their order, like ``["under 18", "18
            to 64", "65 and over"]``: tables, files, pages and answers have them in place of ``[0,
            18)``. Questions accept both.
        other: label of a catch-all for nulls and values outside; without it, a release refuses such
            values.
        base: the queries about this attribute if a workload does not state any: "identity" (counts,
            the default), "prefix" (the cumulative counts of its cells in order), "ranges" (all runs
            of cells), "arcs" (all runs around a circle, as of hours), ``{"kind": "bins", "widths":
            [2, 4]}``, ``{"kind": "windows", "width": 3}``, ``{"kind": "moments", "degrees":
            [0, 1]}`` (of the middles of bins, or of integer categories, unless ``"values"`` are
            given), a query matrix with a row per query and a column per cell, or an
            :class:`AbstractBase`, which can also be named by its ``stored_as`` if it is your own.
            Kept as a base; None for counts. The catch-all is in no query that takes cells
            in order ("prefix", "ranges", "arcs", bins, windows, moments): it is the last cell of a
            table of counts, and the last column of a query matrix.
            Sums of middles of bins are not sums of the values. Of a clipped number: "sum" (count
            and sum, the default), or ``{"kind": "moments", "degrees": [0, 1, 2]}``.
        clip: ``[low, high]`` for a number of which sums and means are needed, instead of categories
            or edges. Values outside, also infinite ones, are set to the nearer bound. Its cells are
            virtual: see :class:`Clipped`.
        unit: instead of ``clip``, for a number without an upper bound, like the payroll of a firm:
            values are whole multiples of this unit from 0 on, like 0.01 for cents, and are rounded
            to the nearest. Negative numbers and those from 2⁵² units on are outside the schema. Its
            tables need a budget that grows with the number: :class:`PerRecord`.
        groups: levels of named groups of the cells: ``{"region": {"North": ["a", "b"], "South":
            ["c"]}}``, or of ``[low, high]`` edges. Levels may nest or cross, and leave cells out.
            A level's name is a base: ``{"county": "region"}`` in a workload asks for the counts of
            its groups, "hierarchy" for all levels, all cells and the total in one optimum. Counts
            of groups are exact sums of released cells. Kept as nested tuples.
        missing: codes that mean "no answer", like ``[999, "refused"]``: numbers or text. Such a
            value is treated like a null, even inside the edges or the interval, in every engine;
            :meth:`Plan.check` counts it separately. Numbers are compared as doubles. Kept as a
            tuple.
        spellings: ``{"F": ["f", "Female"]}``: other texts that count as a category, where
            categories are text. Like categories, they are compared by their characters: case and
            blanks matter. Kept as nested tuples.
        title: the name that readers see instead of the column's, like "Length of stay": on pages,
            in pictures and tables, and in formats that can hold it. Questions accept it as another
            name. Like all of the schema, it is public knowledge.
        measured_in: the unit of its numbers for readers, like "days"; written after the title.

    Raises:
        SchemaError: not exactly one of categories, edges, clip and unit, or a rule above is broken.

    >>> Attribute("age", edges=[0, 18, 65, 120]).labels
    ('[0, 18)', '[18, 65)', '[65, 120]')
    >>> Attribute("admitted", edges=["2020-01-01", "2020-07-01", "2020-12-31"]).labels
    ('[2020-01-01, 2020-07-01)', '[2020-07-01, 2020-12-31]')
    >>> Attribute("age", edges=[0, 18, 120], names=["under 18", "18 and over"]).labels
    ('under 18', '18 and over')
    >>> county = Attribute("county", ["a", "b", "c"], groups={"state": {"N": ["a", "b"]}})
    >>> schema = gn.Schema([county])
    >>> print(gn.plan(schema, [{"county": "state"}, "county"], gn.zCDP(0.5)).entries)
    ('county (state)', 'county')
    """

    name: str
    categories: tuple[Category, ...] | None = None
    edges: tuple[Edge, ...] | None = None
    other: str | None = None
    base: AbstractBase | None = None
    clip: tuple[float, float] | None = None
    groups: tuple[Level, ...] | None = None
    missing: tuple[Code, ...] = field(default=(), repr=False)
    spellings: tuple[Spelt, ...] = field(default=(), repr=False)
    unit: float | None = None
    title: str | None = field(default=None, repr=False)
    measured_in: str | None = field(default=None, repr=False)
    names: tuple[str, ...] | None = field(default=None, repr=False)
    has_infinite: bool = field(default=False, init=False, repr=False)

    def __init__(
        self,
        name: str,
        categories: Iterable[Category] | None = None,
        *,
        edges: Iterable[EdgeLike] | None = None,
        names: Iterable[str] | None = None,
        other: str | None = None,
        base: BaseLike = None,
        clip: Iterable[float] | None = None,
        groups: Mapping[str, Mapping[str, Iterable[Category | EdgeLike]]]
        | tuple[Level, ...]
        | None = None,
        missing: Iterable[Code] = (),
        spellings: Mapping[str, Iterable[str]] | tuple[Spelt, ...] = (),
        unit: float | None = None,
        title: str | None = None,
        measured_in: str | None = None,
    ) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(
            self,
            "categories",
            None if categories is None else _listed(name, "categories", categories),
        )
        object.__setattr__(self, "edges", None if edges is None else _edges(name, edges))
        object.__setattr__(
            self, "names", None if names is None else _in_order(name, "names", names)
        )
        object.__setattr__(self, "other", other)
        object.__setattr__(self, "clip", None if clip is None else as_clip(name, clip))
        object.__setattr__(self, "unit", None if unit is None else as_unit(name, unit))
        object.__setattr__(self, "missing", settled_codes(_listed(name, "codes", missing)))
        object.__setattr__(self, "spellings", settled_spellings(spellings))
        object.__setattr__(self, "title", title)
        object.__setattr__(self, "measured_in", measured_in)
        object.__setattr__(self, "base", None)
        object.__setattr__(self, "groups", None)
        for problem in self._problems():
            raise SchemaError(f"attribute {name!r}: {problem}")
        if groups is not None:
            if self.is_summed:
                raise SchemaError(
                    f"attribute {name!r}: expected no groups of a summed number, whose cells are "
                    "virtual; hint: edges for bins that can be grouped"
                )
            try:
                object.__setattr__(self, "groups", settled(groups))
                checked(self)
            except SchemaError as error:
                raise SchemaError(f"attribute {name!r}: {error}") from None
            if not all(
                _is_text(t) for level, own in self.groups or () for t in (level, *dict(own))
            ):
                raise SchemaError(f"attribute {name!r}: expected names that are valid text")
        resolved = as_base(base, self)
        object.__setattr__(self, "base", None if resolved.is_identity else resolved)

    def _problems(self) -> Iterable[str]:
        if any(isinstance(c, int) and c.bit_length() > _MOST_BITS for c in self.categories or ()):
            yield f"expected integers of at most {_MOST_BITS} bits"
        labels = (self.name, self.other or "", *map(str, self.categories or ()))
        if not all(map(_is_text, labels)):
            yield "expected names and labels that are valid text"
        if not self.name:
            yield "expected a name of at least one character, got an empty one"
        if self.name in RESERVED_NAMES:
            yield (
                f"expected a name other than {', '.join(RESERVED_NAMES)}, which released tables use"
            )
        for word in ("title", "measured_in"):
            said = getattr(self, word)
            if said is not None and not is_line(said):
                yield f"expected {word} to be {LINE}, got {said!r:.80}"
        if self.measured_in is not None and not self.has_numbers:
            yield "expected measured_in of numbers alone, got it of categories or dates"
        kinds = (self.categories, self.edges, self.clip, self.unit)
        if sum(given is not None for given in kinds) != 1:
            yield "expected either categories or edges, or clip or unit for a number that is summed"
        if self.unit is not None and self.other is not None:
            yield (
                "expected no catch-all of a number with a unit; hint: a column that says whether a "
                "row has the number, and 0 where it has none"
            )
        if self.categories is not None:
            if not self.categories:
                yield "expected at least one category"
            if len({type(c) for c in self.categories}) > 1 or not isinstance(
                self.categories[0], str | int
            ):
                yield "expected categories that are all strings, all integers or all booleans"
            if len(set(self.categories)) < len(self.categories):
                yield "expected distinct categories, got one twice"
        if self.edges is not None:
            places = [place(edge) for edge in self.edges]
            if len(places) < 2 or any(not a < b for a, b in itertools.pairwise(places)):
                yield f"expected {EXPECTED_EDGES}"
        if self.names is not None:
            yield from name_problems(self.names, self.interval_texts)
        if self.other is not None and self.other in map(_label, self._own_labels()):
            yield f"expected other={self.other!r} to differ from every category"
        if self.spellings != ():
            yield from spelling_problems(self.spellings, self.categories or (), self.other)
            if not all(_is_text(text) for _, own in self.spellings for text in own):
                yield "spellings: expected valid text"
        if self.missing:
            cells = (*(self.categories or ()), *(text for _, own in self.spellings for text in own))
            is_number = self.is_summed or not (cells or is_dated(self.edges))
            yield from code_problems(self.missing, cells, is_number)

    @property
    def has_numbers(self) -> bool:
        """Whether the values are numbers: to be summed, in bins, or integer categories."""
        if self.categories is not None:
            return all(type(category) is int for category in self.categories)
        return self.edges is None or not is_dated(self.edges)

    @property
    def heading(self) -> str:
        """The name that readers see: its title or name, and the unit of its numbers.

        >>> gn.Attribute("los", clip=[0, 365], title="Length of stay", measured_in="days").heading
        'Length of stay (days)'
        """
        said = self.name if self.title is None else self.title
        return said if self.measured_in is None else f"{said} ({self.measured_in})"

    @property
    def is_summed(self) -> bool:
        """Whether the values are numbers whose sums and means are released."""
        return self.clip is not None or self.unit is not None

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the values of a number to sum; it has no upper bound with a unit."""
        return (0.0, math.inf) if self.unit is not None else self.clip or (0.0, 1.0)

    @property
    def ends(self) -> tuple[float, float]:
        """The two values of a number to sum that are each counted in a single virtual cell.

        The first virtual cell is for the lower one, the last for the upper one.
        """
        return (0.0, STEPS * self.unit) if self.unit is not None else self.clip or (0.0, 1.0)

    @property
    def size(self) -> int:
        """The number of cells (categories or bins) of this attribute in a table."""
        return len(self.labels)

    @property
    def labels(self) -> tuple[Category, ...]:
        """The labels of the cells: categories, or names of intervals, or intervals as text.

        A catch-all category (for all other values) has the last label, and then all labels are
        text.
        """
        if self.other is None:
            return self._own_labels()
        return (*map(_label, self._own_labels()), self.other)

    @property
    def reading_order(self) -> tuple[int, ...]:
        """The indices of the labels in the order in which readers expect them.

        Ages, as names of intervals of birth dates, begin with the youngest. All other labels stay
        in their order, and a catch-all stays last.

        >>> edges = ["1961-01-01", "2008-01-01", "2025-12-31"]
        >>> gn.Attribute("born", edges=edges, names=["18 to 64", "under 18"]).reading_order
        (1, 0)
        """
        places = range(self.size)
        if not are_ages(self.names or (), self.edges or ()):
            return tuple(places)
        own = len(self._own_labels())
        return (*reversed(places[:own]), *places[own:])

    def _own_labels(self) -> tuple[Category, ...]:
        if self.is_summed:
            return cell_labels(self, isinstance(self.base, Clipped) and self.base.squares)
        if self.edges is None:
            categories = self.categories or ()
            # released files hold 64-bit integers
            fits = all(isinstance(c, str) or abs(c) < 2**63 for c in categories)
            return categories if fits else tuple(map(str, categories))
        return self.interval_texts if self.names is None else self.names

    @property
    def interval_texts(self) -> tuple[str, ...]:
        """The intervals between the edges as text, also where they have names; else empty.

        >>> Attribute("age", edges=[0, 18, 120], names=["under 18", "18 and over"]).interval_texts
        ('[0, 18)', '[18, 120]')
        """
        edges = list(self.edges or ())
        bins = [
            f"{'(' if is_open(low) else '['}{_edge(low)}, {_edge(high)})"
            for low, high in itertools.pairwise(edges)
        ]
        last = [text if is_open(edges[-1]) else f"{text[:-1]}]" for text in bins[-1:]]
        return (*bins[:-1], *last)


def with_infinite(attribute: Attribute) -> Attribute:
    """Return a copy of an attribute whose first and last bin hold infinite numbers too.

    The copy is used to search for a range, since clipped numbers count infinite values at their
    bounds. In other tables, infinite numbers are outside all bins.
    """
    own = copy.copy(attribute)
    object.__setattr__(own, "has_infinite", True)
    return own


@final
@dataclass(frozen=True)
class Schema:
    """The attributes of a table.

    Categories and edges must be public knowledge, never computed from the data.

    Args:
        attributes: in the order of the tables; names are distinct.
        impossible: combinations that cannot occur, each a mapping from two attributes or more to a
            label or a list of labels, like ``{"age": "[0, 16)", "married": "yes"}``. A row with one
            of them is treated like a row with a value outside the schema: the release is
            refused, or the row is left out of all its tables. A rule applies if all its attributes
            are in tables of the release. Nothing else changes: such cells are released, with noise
            like all others.
        file: the dialect of the CSV files that plans of this schema read, if it is not RFC 4180
            with commas in UTF-8.
        is_draft: whether the schema was drafted from data and no person has confirmed it: see
            :meth:`draft`. Such a schema can be planned with, but no release can be made. In TOML,
            ``draft = true``.
        about: the title, source, period, publisher, contact and unit of tables, which pages and
            files show. Like all of the schema, it is public knowledge.

    Raises:
        SchemaError: no attributes, two of the same name, or a rule about unknown attributes or
            labels.

    >>> schema = gn.Schema(
    ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])]
    ... )
    >>> schema.names, schema.sizes
    (('sex', 'age'), (2, 3))
    """

    attributes: tuple[Attribute, ...]
    impossible: tuple[Rule, ...] = ()
    file: Dialect = USUAL
    is_draft: bool = False
    about: About = NOTHING_SAID

    def __init__(
        self,
        attributes: Iterable[Attribute],
        impossible: Iterable[Mapping[str, Category | Sequence[Category]] | Rule] = (),
        *,
        file: Dialect = USUAL,
        is_draft: bool = False,
        about: About = NOTHING_SAID,
    ) -> None:
        several = isinstance(attributes, Iterable) and not isinstance(attributes, str | Mapping)
        listed = tuple(attributes) if several else ()
        strange = [
            type(attribute).__name__ for attribute in listed if not isinstance(attribute, Attribute)
        ]
        if strange or not several:
            got = strange[0] if strange else type(attributes).__name__
            raise SchemaError(
                f"schema: expected a list of Attribute objects, got {got}"
                '; hint: Schema([Attribute("sex", ["F", "M"]), ...]), or Schema.load(path) of a '
                "TOML file"
            )
        object.__setattr__(self, "attributes", listed)
        if not self.attributes:
            raise SchemaError(
                "schema: expected at least one attribute; hint: [attributes.NAME] with "
                "categories or edges"
            )
        if len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise SchemaError(f"schema: expected distinct attribute names, got {twice!r} twice")
        for attribute in listed:
            for level, _ in attribute.groups or ():
                if level in self.names:
                    raise SchemaError(
                        f"attribute {attribute.name!r}: groups: expected a level of another name "
                        f"than the attribute {level!r}"
                    )
        check_titles(listed)
        object.__setattr__(self, "impossible", as_rules(impossible, listed))
        if not isinstance(file, Dialect):
            raise SchemaError(
                f"schema: expected file to be a Dialect, got {type(file).__name__}; hint: "
                'file=Dialect(delimiter=";")'
            )
        object.__setattr__(self, "file", file)
        for attribute in listed if file.date_format != ISO_FORMAT else ():
            codes = [code for code in attribute.missing if isinstance(code, str)]
            if is_dated(attribute.edges) and any(as_iso(x, file.date_format) != x for x in codes):
                raise SchemaError(
                    f"attribute {attribute.name!r}: missing: expected no dates, which are missing "
                    f"wherever they are outside the edges, got one written {file.date_format}; "
                    "hint: edges without it"
                )
        if not isinstance(is_draft, bool):
            raise SchemaError(
                f"schema: expected is_draft to be true or false, got {type(is_draft).__name__}"
            )
        object.__setattr__(self, "is_draft", is_draft)
        if not isinstance(about, About):
            raise SchemaError(
                f"schema: expected about to be an About, got {type(about).__name__}; hint: "
                'about=About(title="Pay by sex")'
            )
        object.__setattr__(self, "about", about)

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The column names of the attributes, in the schema's order."""
        return tuple(attribute.name for attribute in self.attributes)

    @functools.cached_property
    def levels(self) -> dict[str, str]:
        """``{level of groups: its attribute}``, without levels that several attributes have.

        >>> county = gn.Attribute("county", ["a", "b"], groups={"state": {"N": ["a"], "S": ["b"]}})
        >>> gn.Schema([county]).levels
        {'state': 'county'}
        """
        listed = [(level, a.name) for a in self.attributes for level, _ in a.groups or ()]
        names = [level for level, _ in listed]
        return {level: name for level, name in listed if names.count(level) == 1}

    def heading(self, name: str) -> str:
        """Return the name that readers see for a column; return other names unchanged.

        >>> gn.Schema([gn.Attribute("los", clip=[0, 365], title="Length of stay")]).heading("los")
        'Length of stay'
        """
        return next((a.heading for a in self.attributes if a.name == name), name)

    @functools.cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of cells (categories or bins) of each attribute, in the schema's order."""
        return tuple(attribute.size for attribute in self.attributes)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the schema that a TOML file states.

        Args:
            path: a file with one ``[attributes.NAME]`` table per column, holding ``categories``,
                ``edges`` or ``clip``, and optionally ``other`` and ``base``, like ``base =
                "prefix"`` or ``base = {kind = "bins", widths = [5]}``, and
                ``[attributes.NAME.groups.LEVEL]`` tables with lines like ``North = ["a", "b"]``.
                ``spellings = {F = ["f", "Female"]}`` joins spellings of categories, and ``names =
                ["under 18", "18 and over"]`` names the intervals of ``edges``. ``title = "Length of
                stay"`` and ``measured_in = "days"`` are for readers. Tables ``[[workload]]`` state
                the tables to release, ``of = ["sex", "age"]``, optionally with ``within = 50``, and
                tables ``[plan]``, ``[release]`` and ``[stream]`` state options. The shell uses them
                where its command line states nothing. Their types are checked here, but they are no
                part of the schema. Tables ``[[impossible]]`` are combinations that cannot occur:
                ``age = "[0, 16)"``, ``married = ["yes", "widowed"]``. A table ``[file]`` says how
                CSV files are written, by the arguments of :class:`Dialect`: ``delimiter = ";"``. A
                table ``[about]`` has lines for readers of the tables, the arguments of
                :class:`About`: ``title = "Pay by sex"``. A first line ``draft = true`` forbids
                releases with it.

        Raises:
            SchemaError: the message starts with ``path:line:``.
        """
        return cls.loads(*read_toml(path))

    @classmethod
    def loads(cls, text: str, name: str = "schema") -> Self:
        """Return the schema that a TOML text states; errors name it as the file ``name``."""
        content = parsed_toml(text, name)
        attributes = []
        for key, entry in content["attributes"].items():
            later = {field: entry.pop(field) for field in ("groups", "base") if field in entry}
            where = ("attributes", key)
            try:
                attribute = Attribute(key, **entry)
                for field, value in later.items():
                    where, entry[field] = ("attributes", key, field), value
                    attribute = Attribute(key, **entry)
            except SchemaError as error:
                raise SchemaError(f"{name}:{toml_line(text, where)}: {error}") from None
            attributes.append(attribute)
        if not attributes:
            raise SchemaError(
                f"{name}:{toml_line(text, ('attributes',))}: expected at least one attribute"
            )
        for k, rule in enumerate(content.get("impossible", ())):
            try:
                as_rules([rule], attributes)
            except SchemaError as error:
                line = toml_line(text, ("impossible", str(k)))
                raise SchemaError(f"{name}:{line}: {error}") from None
        try:
            file = Dialect(**content.get("file", {}))
        except ParameterError as error:
            line = toml_line(text, ("file",))
            raise SchemaError(f"{name}:{line}: file: {error}") from None
        try:
            about = About(**content.get("about", {}))
        except SchemaError as error:
            raise SchemaError(f"{name}:{toml_line(text, ('about',))}: {error}") from None
        try:
            return cls(
                attributes,
                content.get("impossible", ()),
                file=file,
                about=about,
                is_draft=content.get("draft", False),
            )
        except SchemaError as error:  # for example, levels that are named like attributes
            raise SchemaError(f"{name}:{toml_line(text, ('attributes',))}: {error}") from None

    @classmethod
    def draft(cls, table: object) -> Self:
        """Return a first schema, drafted from a table.

        The draft is a private document until every category and edge is public knowledge. No
        release can be made with it until a person has checked this, and calls :meth:`confirmed`.

        Text, booleans and integers of few values become categories. Texts that differ only in case,
        blanks or Unicode form become one category, with ``spellings``, and so do a word and its
        short form, like Female and F. Texts like "n/a" become codes for no answer, with
        ``missing``. Other numbers become bins with round edges, which are wider for larger numbers
        if most numbers are far below the largest. Numbers that may be codes for no answer, such as
        999, are left out of the bins. Dates become bins of months, quarters or years. A column with
        nulls gets a catch-all. In CSV and pandas, where no type is declared, a column of numbers or
        dates with a few texts, like "N/A", gets one too. Identifiers, free text, and columns that
        seem to name the person of a row, or to hold sample weights, are left out with a warning.
        `gaussnoise schema` writes the same with a comment on every column.

        Args:
            table: a dataframe, or paths of files, as for :meth:`Plan.release`. It is read once, in
                batches. Records of Spark and ibis are loaded into this process: for a large table
                there, give a sample. For CSV, the dialect is found from the rows too, unless
                :meth:`Dialect.table` states it.

        Raises:
            DataError: the table cannot be read, or no column can be an attribute.

        Warns:
            SchemaWarning: columns that were left out, and why.

        >>> import pyarrow as pa
        >>> drafted = gn.Schema.draft(pa.table({"sex": ["F", "M", "F"]}))
        >>> print(drafted.to_toml())
        draft = true
        <BLANKLINE>
        [attributes.sex]
        categories = ["F", "M"]
        <BLANKLINE>
        >>> schema = drafted.confirmed()  # once every line is public knowledge
        """
        from ..drafts.draft import draft  # imported here: drafts also need this class

        drafted = draft(table)
        reasons = "; ".join(drafted.left_out.values())
        if drafted.left_out and not drafted.attributes:
            raise DataError(f"draft: no column can be an attribute; {reasons}")
        if drafted.left_out:
            warnings.warn(f"draft: left out: {reasons}", SchemaWarning, stacklevel=2)
        return cls(drafted.attributes, file=drafted.file, is_draft=True)

    def confirmed(self) -> Self:
        """Return the schema, no longer marked as a draft.

        By this call you say that every category and edge is public knowledge.
        """
        return replace(self, is_draft=False)

    def check_confirmed(self, function: str) -> None:
        """Raise SchemaError if the schema is a draft; ``function`` is the caller's name.

        Raises:
            SchemaError: the schema is a draft.
        """
        if self.is_draft:
            raise SchemaError(
                f"{function}: expected a schema that a person has confirmed, got a draft, which "
                "was read off data; hint: see to it that every category and edge is public "
                "knowledge, then delete the line draft = true, or call schema.confirmed()"
            )

    def __str__(self) -> str:
        return on_screen(self.to_toml().rstrip())

    def to_toml(self) -> str:
        """Return the schema as TOML text, from which :meth:`loads` makes it again."""
        blocks = ["draft = true\n"] if self.is_draft else []
        blocks += stated_toml(about=self.about.stated, file=self.file.stated)
        for attribute in self.attributes:
            lines = [f"[attributes.{_key(attribute.name)}]"]
            if attribute.categories is not None:
                lines.append(f"categories = [{', '.join(map(_toml, attribute.categories))}]")
            if attribute.spellings:
                spelt: dict[str, Toml] = {name: list(own) for name, own in attribute.spellings}
                lines.append(f"spellings = {_toml(spelt)}")
            if attribute.edges is not None:
                lines.append(f"edges = [{', '.join(map(_edge, attribute.edges))}]")
            if attribute.names is not None:
                lines.append(f"names = {_toml(list(attribute.names))}")
            if attribute.clip is not None:
                lines.append(f"clip = [{', '.join(map(_number, attribute.clip))}]")
            if attribute.unit is not None:
                lines.append(f"unit = {_number(attribute.unit)}")
            if attribute.other is not None:
                lines.append(f"other = {_quoted(attribute.other)}")
            for word in ("title", "measured_in"):
                if (said := getattr(attribute, word)) is not None:
                    lines.append(f"{word} = {_quoted(said)}")
            if attribute.missing:
                lines.append(f"missing = {_toml(list(attribute.missing))}")
            if attribute.base is not None:
                lines.append(f"base = {_toml(base_value(attribute.base, attribute))}")
            for level, groups in attribute.groups or ():
                lines.append(f"\n[attributes.{_key(attribute.name)}.groups.{_key(level)}]")
                lines += [f"{_key(own)} = {_toml(list(members))}" for own, members in groups]
            blocks.append("\n".join(lines) + "\n")
        for rule in self.impossible:
            lines = [f"{_key(name)} = {_toml(list(labels))}" for name, labels in rule]
            blocks.append("\n".join(["[[impossible]]", *lines]) + "\n")
        return "\n".join(blocks)


def check_titles(attributes: Sequence[Attribute]) -> None:
    """Raise SchemaError if an attribute's title is the name or title of another column.

    The names of levels of groups are taken too.
    """
    levels = [level for attribute in attributes for level, _ in attribute.groups or ()]
    taken = {name.casefold() for name in [*levels, *(a.name for a in attributes)]}
    for attribute in attributes:
        said = (attribute.title or attribute.name).casefold()
        if said == attribute.name.casefold():
            continue
        if said in taken:
            raise SchemaError(
                f"attribute {attribute.name!r}: expected a title that is no name or title of "
                f"another column, got {attribute.title!r:.80}"
            )
        taken.add(said)


def stated_toml(**tables: Mapping[str, Any]) -> list[str]:
    """Return tables, given as name={key: value}, as TOML texts; empty tables are left out."""
    return [
        "\n".join([f"[{name}]", *(f"{k} = {_toml(v)}" for k, v in stated.items())]) + "\n"
        for name, stated in tables.items()
        if stated
    ]


def read_toml(path: str | os.PathLike[str]) -> tuple[str, str]:
    """Return the text of a schema file, and the file's name."""
    name = os.fspath(path)
    try:
        with opened(path) as file, io.TextIOWrapper(file, encoding="utf-8") as text:
            return text.read(), name
    except FileNotFoundError:
        raise SchemaError(f"{name}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SchemaError(f"{name}: cannot be read as UTF-8 text: {type(error).__name__}") from None


def parsed_toml(text: str, name: str) -> dict[str, Any]:
    """Return the content of a schema file as a dict, after checking types and keys.

    ``name`` is the file's name, for error messages.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))  # not in errors at the end of the file
        where = line[1] if line else len(text.splitlines()) or 1
        raise SchemaError(f"{name}:{where}: not valid TOML: {error}") from None
    except (RecursionError, ValueError):  # Python's limits on nesting and on digits
        raise SchemaError(
            f"{name}:1: expected TOML of few levels, and no number of thousands of digits"
        ) from None
    _check_structure(content, text, name)
    return content


def _is_text(value: object) -> bool:
    """Return whether ``value`` is text that UTF-8 can hold (without lone surrogates)."""
    try:
        return isinstance(value, str) and bool(value.encode() or True)
    except UnicodeEncodeError:
        return False


def _listed(name: str, field: str, values: Iterable[object]) -> tuple[Any, ...]:
    """Return the values of the argument ``field`` as Python objects; SchemaError if invalid."""
    listed = _in_order(name, field, values)
    check_no_dates(name, field, listed)  # item() turns numpy's nanoseconds into integers
    return _plain(listed)


def _plain(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(value.item() if hasattr(value, "item") else value for value in values)


def _in_order(name: str, field: str, values: object) -> tuple[object, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise SchemaError(f"attribute {name!r}: expected a list of {field}, got {values!r}")
    if isinstance(values, set | frozenset):
        raise SchemaError(
            f"attribute {name!r}: expected a list of {field}, which has an order, got a set"
        )
    return tuple(values)


def _edges(name: str, edges: Iterable[object]) -> tuple[Edge, ...]:
    given = _in_order(name, "edges", edges)
    if are_dates(given):
        try:
            return as_dates(given)
        except SchemaError as error:
            raise SchemaError(f"attribute {name!r}: {error}") from None
    listed = _plain(given)
    if not all(
        isinstance(e, int | float) and not isinstance(e, bool) and abs(e) <= math.inf
        for e in listed
    ):
        raise SchemaError(f"attribute {name!r}: expected {EXPECTED_EDGES}")
    try:
        return tuple(float(e) + 0.0 for e in listed)  # adding 0.0 turns -0.0 into 0.0
    except OverflowError:
        raise SchemaError(
            f"attribute {name!r}: expected edges within 1e308 of zero, or infinite ones"
        ) from None


@functools.cache
def _structure() -> Any:
    """Return the pydantic model of schema files; cached, since making it is slow."""
    import pydantic

    class Entry(pydantic.BaseModel, extra="forbid", strict=True, hide_input_in_errors=True):
        categories: list[bool | int | str] | None = None
        edges: (
            list[
                float
                | pydantic.NaiveDatetime
                | datetime.date
                | Annotated[str, pydantic.StringConstraints(pattern=f"^(?:{ISO})$")]
            ]
            | None
        ) = None
        names: list[str] | None = None
        clip: list[float] | None = None
        unit: float | None = None
        title: str | None = None
        measured_in: str | None = None
        other: str | None = None
        missing: list[bool | int | float | str] = []
        spellings: dict[str, list[str]] = {}
        base: str | dict[str, Any] | list[list[float]] | None = None
        groups: (
            dict[
                str,
                dict[str, list[bool | int | float | str | pydantic.NaiveDatetime | datetime.date]],
            ]
            | None
        ) = None

    class Wanted(pydantic.BaseModel, extra="forbid", strict=True, hide_input_in_errors=True):
        of: list[str]
        within: float = 1.0
        level: float = 0.95
        simultaneous: bool = False

    class Written(pydantic.BaseModel, extra="forbid", strict=True, hide_input_in_errors=True):
        delimiter: str | None = None
        decimal: str | None = None
        encoding: str | None = None
        quote: str | None = None
        date_format: str | None = None
        thousands: str | None = None
        skip: int | None = None

    class Said(pydantic.BaseModel, extra="forbid", strict=True, hide_input_in_errors=True):
        title: str | None = None
        source: str | None = None
        period: str | None = None
        publisher: str | None = None
        contact: str | None = None
        unit: str | None = None

    class Most(pydantic.BaseModel, extra="forbid", strict=True, hide_input_in_errors=True):
        column: str
        most: float

    class Planned(pydantic.BaseModel, extra="forbid", strict=True, hide_input_in_errors=True):
        table: str | list[str] | None = None
        rho: float | None = None
        epsilon: float | None = None
        delta: float | None = None
        per_record: dict[str, float] | None = None
        neighbors: Literal["add-remove", "replace"] | None = None
        public: list[str] | None = None
        p: float | None = None
        rows_per_person: int | None = None
        person: str | None = None
        per_person: str | dict[str, str] | None = None
        weight: Most | None = None
        expected_rows: int | None = None

    class Made(pydantic.BaseModel, extra="forbid", strict=True, hide_input_in_errors=True):
        format: str | None = None
        id: str | None = None
        purpose: str | None = None
        requested_by: str | None = None

    class Over(pydantic.BaseModel, extra="forbid", strict=True, hide_input_in_errors=True):
        ticks: int | None = None
        reports: int | None = None
        apart: int | None = None
        enforced: bool | None = None
        workload: Literal["totals", "periods", "both"] | None = None
        period: str | None = None
        late: Literal["refuse", "carry"] | None = None
        corrections: str | None = None
        counts: bool | None = None
        first: str | None = None
        title: str | None = None
        format: str | None = None
        id: str | None = None
        purpose: str | None = None
        requested_by: str | None = None

    class File(pydantic.BaseModel, extra="forbid", strict=True, hide_input_in_errors=True):
        draft: bool = False
        plan: Planned | None = None
        release: Made | None = None
        stream: Over | None = None
        about: Said | None = None
        file: Written | None = None
        attributes: dict[str, Entry]
        workload: list[Wanted] = []
        impossible: list[dict[str, bool | int | str | list[bool | int | str]]] = []

    return File


def _check_structure(content: Mapping[str, Any], text: str, name: str) -> None:
    """Raise SchemaError for the first wrong type or key in a schema file, with its line."""
    import pydantic

    try:
        _structure().model_validate(content)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
    else:
        return
    # the path of the entry: attributes, NAME, field; deeper parts are indices in a list
    where = tuple(map(str, first["loc"][:3]))
    if first["type"] == "extra_forbidden":
        message = _unknown_key(where)
    else:
        table = _EXPECTED.get(where[0], "expected [attributes.NAME] tables")
        own = _EXPECTED.get(".".join(where)) or _EXPECTED.get(where[-1], table)
        message = table if where[0] == "impossible" else own
    there = where[:-1] if first["type"] == "missing" and where[1:] else where
    raise SchemaError(f"{name}:{toml_line(text, there)}: {'.'.join(where)}: {message}")


_CODES = (
    "where a code like 999 means a missing value, add the line missing = [999] to the column; it "
    "then counts as an empty field does"
)
_TABLES = (
    "[about], [file], [plan], [release], [stream], [attributes.NAME], [[workload]] and "
    "[[impossible]] tables, and draft = true"
)
_KEYS = {
    "about": "title, source, period, publisher, contact or unit",
    "attributes": "categories, spellings, edges, names, clip, unit, other, missing, base, groups, "
    "title or measured_in",
    "file": "delimiter, decimal, thousands, encoding, quote, date_format or skip",
    "plan": "table, rho, epsilon, delta, per_record, neighbors, public, p, rows_per_person, "
    "person, per_person, weight or expected_rows",
    "release": "format, id, purpose or requested_by",
    "stream": "ticks, reports, apart, first, enforced, workload, period, late, corrections, "
    "counts, title, format, id, purpose or requested_by",
    "workload": "of, within, level or simultaneous",
}
_BASE = "; hint: base stands in [attributes.NAME]"


def _unknown_key(where: Sequence[str]) -> str:
    """Return the error message for an unknown key at the path ``where`` of a schema file."""
    if len(where) == 1:
        return f"unknown key; expected {_TABLES}"
    table, *_, key = where
    hint = near(key, re.split(", | or ", _KEYS[table])) or _BASE * (table == "workload")
    if table == "workload" and key.startswith("moment"):
        hint = '; hint: of = ["sex", "income+age:moments"]'
    if table == "file" and re.match(r"skip|head", key):
        hint = "; hint: skip = 2 for two lines before the column names"
    if table == "attributes" and re.match(r"missing.+|null|na(s|_.*)?$", key):
        hint = f"; hint: {_CODES}"
    if table == "attributes" and key.startswith("label"):
        hint = '; hint: names = ["under 18", "18 and over"] names the intervals of edges'
    if table == "attributes" and re.match(r"alias|synonym|variant|spell|map|replace|same", key):
        hint = '; hint: spellings = {F = ["f", "Female"]} counts other spellings as a category'
    return f"unknown key; expected {_KEYS[table]}{hint}"


_EXPECTED = {
    "draft": "expected true or false",
    "file": "expected a [file] table with " + _KEYS["file"],
    "about": "expected an [about] table with " + _KEYS["about"],
    "measured_in": "expected text",
    **dict.fromkeys(["title", "source", "period", "publisher", "contact"], "expected text"),
    "about.unit": 'expected text, like "households"',
    **dict.fromkeys(["delimiter", "decimal", "encoding", "quote", "date_format"], "expected text"),
    "thousands": "expected text",
    "skip": "expected an integer, the number of lines before the column names",
    "plan": "expected a [plan] table with " + _KEYS["plan"],
    "table": "expected the path of a file, or a list of paths",
    **dict.fromkeys(["rho", "epsilon", "delta"], "expected a number, like 0.1"),
    "per_record": "expected numbers and their scales, like {payroll = 1000000}",
    "neighbors": 'expected "add-remove" or "replace"',
    "public": 'expected a list of attribute names, like ["sex", "region"]',
    "p": "expected a number, 2 or more, or inf",
    **dict.fromkeys(["rows_per_person", "expected_rows"], "expected an integer"),
    "person": "expected the name of a column",
    "per_person": 'expected "mean", "sum", "max" or "count", or {stay = "mean"}',
    "weight": 'expected {column = "NAME", most = 3}',
    "release": "expected a [release] table with " + _KEYS["release"],
    "stream": "expected a [stream] table with " + _KEYS["stream"],
    **dict.fromkeys(["ticks", "reports", "apart"], "expected an integer"),
    **dict.fromkeys(["enforced", "counts"], "expected true or false"),
    "stream.workload": 'expected "totals", "periods" or "both"',
    "late": 'expected "refuse" or "carry"',
    "first": 'expected text, like "2026-01"',
    **dict.fromkeys(["corrections", "format", "id", "purpose", "requested_by"], "expected text"),
    "workload": 'expected [[workload]] tables, each with of = ["sex", "age"]',
    "impossible": f"expected [[impossible]] tables: {EXPECTED}",
    "of": 'expected a list of attribute names, like of = ["sex", "age"]',
    "within": "expected a number of rows",
    "level": "expected a number",
    "simultaneous": "expected true or false",
    "categories": "expected a list of strings, integers or booleans",
    "edges": "expected a list of numbers, or of dates like 2020-01-31 without time zone",
    "names": EXPECTED_NAMES,
    "clip": "expected [low, high], two numbers",
    "unit": "expected a number, like 0.01",
    "other": "expected a string",
    "missing": f"expected {EXPECTED_CODES}",
    "spellings": EXPECTED_SPELLINGS,
    "base": EXPECTED_BASE,
    "groups": EXPECTED_GROUPS,
}


# a line that may begin a new statement
_STATEMENT = re.compile(r"""\s*(\[|([\w-]+|"([^"\\]|\\.)*"|'[^']*')\s*[.=])""")


def toml_line(text: str, path: tuple[str, ...]) -> int:
    """Return the number of the line at which the entry ``path`` of a TOML text begins, or 1."""
    lines = text.replace("\r\n", "\n").split("\n")  # TOML has no other line ends
    ends = [k for k in range(1, len(lines)) if _STATEMENT.match(lines[k])]

    def begun(count: int) -> bool:
        """Return whether the first ``count`` lines have the beginning of the entry."""
        next_end = bisect.bisect_left(ends, count)
        # more lines are read until the text is valid TOML
        for end in (count, *ends[next_end : next_end + 8], len(lines)):
            try:
                node: Any = tomllib.loads("\n".join(lines[:end]))
            except tomllib.TOMLDecodeError:
                continue
            for key in path:
                if isinstance(node, list):  # an array of tables, by position
                    node = dict(enumerate(node)).get(int(key)) if key.isdigit() else None
                else:
                    node = node.get(key) if isinstance(node, dict) else None
            return node is not None
        return False

    numbers = range(1, len(lines) + 1)
    place = bisect.bisect_left(numbers, True, key=begun)
    return numbers[place] if place < len(numbers) else 1


def _edge(value: Edge) -> str:
    """Return the edge of a bin as text, for labels and TOML."""
    return value.isoformat() if isinstance(value, datetime.date) else _number(value)


def _number(value: float) -> str:
    """Return the shortest text from which TOML reads exactly this float."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _quoted(text: str) -> str:
    """Return text in quotes, as a TOML basic string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


# No library is used: tomli_w puts every category on its own line, and the time of tomlkit grows
# with the square of the length of a list. Records of releases and requests in ledgers hold this
# text, which must stay the same.
def _toml(value: Toml) -> str:
    """Return plain data (text, numbers, lists, dicts) as a TOML value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_key(key)} = {_toml(entry)}' for key, entry in value.items())}}}"
    return _quoted(value) if isinstance(value, str) else str(value)
