"""The request of a plan: its checked arguments, and the form in which files store them."""

import abc
import dataclasses
import hashlib
import itertools
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Generic, TypeVar, final

from domains.tables.bases import Identity, Leading
from domains.tables.marginals import Marginals
from domains.tables.tables import AbstractTables

from ...errors import ParameterError
from ...files.pickling import PickledByArguments
from ...noise.agreement import ReplaceWithin
from ...noise.problem import Relation
from ...noise.proportion import AddInProportion
from ...numerics.norms import check_order
from ...privacy.guarantee import AbstractPrivacy, Larger
from ..schema.about import LINE, About, is_line
from ..schema.bases import base_value
from ..schema.entries import attribute_positions, term_name
from ..schema.numbers import (
    PER_PERSON,
    STEPS,
    PerPerson,
    Weight,
    check_budgets,
    check_numbers,
    check_weight,
    units_in,
)
from ..schema.schema import Schema
from .ranges import FoundRange, check_ranges
from .targets import Target

T = TypeVar("T")

_MOST_ROWS_PER_PERSON = 10**9


@final
@dataclass(frozen=True, eq=False)
class Request(PickledByArguments):
    """The checked arguments of :func:`plan`.

    A new option is a field here, with its check, and an entry in :data:`_OPTIONS`.

    Attributes:
        schema: the public attributes.
        domain: the queries of the workload, with the weights of their errors.
        privacy: the budget; None until the least budget that meets the targets is known.
        neighbors: "add-remove" or "replace".
        p: the norm of the error.
        targets: the target of every entry of the workload (None without one), or None.
        rows_per_person: the most rows that one person can have.
        person: the column that says which person a row belongs to.
        per_person: pairs of a clipped number and the function that computes one number from all
            numbers of a person; empty if rows are counted.
        public: the attributes whose joint table is published exactly, in the schema's order.
        weight: the column of sample weights.
        ranges: the ranges of clipped numbers that were found with a part of the budget.
        title: the subject of the tables, for readers of the release, instead of the schema's.
        source: the origin of the rows, for the same readers, instead of the schema's.
    """

    schema: Schema
    domain: AbstractTables
    privacy: AbstractPrivacy | None
    neighbors: Relation = "add-remove"
    p: float = 2
    targets: tuple[Target | None, ...] | None = None
    rows_per_person: int = 1
    person: str | None = None
    per_person: tuple[tuple[str, PerPerson], ...] = ()
    public: tuple[str, ...] = ()
    weight: Weight | None = None
    ranges: tuple[FoundRange, ...] = ()
    title: str | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        check_order("plan", self.p)
        if self.neighbors not in ("add-remove", "replace"):
            raise ParameterError(
                f'plan: expected neighbors="add-remove" or "replace", got {self.neighbors!r}'
            )
        rows = self.rows_per_person
        if type(rows) is not int or not 1 <= rows <= _MOST_ROWS_PER_PERSON:
            raise ParameterError(
                f"plan: expected an integer 1 <= rows_per_person <= {_MOST_ROWS_PER_PERSON}, got "
                f"{rows!r:.50}"
            )
        if self.weight is not None:
            if not isinstance(self.weight, Weight):
                raise ParameterError(
                    'plan: expected weight=Weight("column", most=...), got '
                    f"{type(self.weight).__name__}"
                )
            check_weight(self.schema, self.weight, self.neighbors)
        if self.person is not None and not (isinstance(self.person, str) and self.person):
            raise ParameterError(
                "plan: expected person to be the name of a column, got "
                f"{type(self.person).__name__}"
            )
        if self.per_person not in (None, ()):
            object.__setattr__(self, "per_person", self._checked_per_person(self.per_person))
        if self.ranges:
            object.__setattr__(self, "ranges", check_ranges(self.ranges, self.schema))
        for name, said in (("title", self.title), ("source", self.source)):
            if said is not None and not is_line(said):
                raise ParameterError(f"plan: expected {name} to be {LINE}, got {said!r:.80}")
        check_numbers(self.schema, self.domain)
        self._check_budgets()
        object.__setattr__(self, "p", float(self.p))
        if self.public:
            object.__setattr__(self, "public", self._checked_public())

    @property
    def scales(self) -> Mapping[str, float]:
        """{name of a number: scale}, if the budget of a row grows with its numbers; else empty."""
        return {} if self.privacy is None else self.privacy.scales

    def _check_budgets(self) -> None:
        """Refuse options without a proof of privacy if a row's budget grows with its numbers."""
        check_budgets(self.schema, self.used, self.scales, self.neighbors)
        more = {
            "weight=": (
                self.weight,
                "products of weights and numbers without an upper end have no exact place in 64 "
                "bits; hint: a column of the products, with a unit and a scale of its own",
            ),
            "per_person=": (
                self.per_person,
                "the budget of a person grows with the sum of the numbers in the person's rows; "
                "hint: person= with rows_per_person=, or a table with one row of each person",
            ),
            "ranges=": (self.ranges, "ranges are found for rows of one budget; hint: clip = [...]"),
            "targets=": (
                self.targets,
                "which of counts and sums gets more depends on the scales, a choice in public; "
                "hint: plan with a budget, and look at standard deviations",
            ),
        }
        for name, (given, why) in more.items():
            if self.scales and given:
                raise ParameterError(
                    f"plan: {name} cannot be combined with budgets that grow with numbers: {why}"
                )

    def _checked_per_person(self, asked: object) -> tuple[tuple[str, PerPerson], ...]:
        """Return pairs (clipped number, function of a person's numbers), after checking them."""
        used = [self.schema.attributes[i] for i in self.used]
        clipped = {a.name: a for a in used if a.clip is not None}
        given = dict.fromkeys(clipped, asked) if isinstance(asked, str) else asked
        given = dict(given) if isinstance(given, Mapping | tuple) else {}
        known = all(isinstance(how, str) and how in PER_PERSON for how in given.values())
        if not (given and known and set(given) == set(clipped)):
            raise ParameterError(
                f"plan: expected per_person= to be one of {', '.join(map(repr, PER_PERSON))}, or "
                "one of these for each clipped number of the tables, got "
                f"{asked!r:.80}" + ("" if clipped else "; hint: the tables have no clipped number")
            )
        if self.person is None or self.weight is not None:
            raise ParameterError(
                "plan: per_person= makes one record of a person's rows: expected person= with it, "
                "and no weight="
            )
        for name, how in given.items():
            low, high = clipped[name].clip or (0.0, 1.0)
            if how == "sum" and low:
                raise ParameterError(
                    f"plan: expected an interval that begins at 0 for the sums of persons, got "
                    f"[{low:g}, {high:g}] for {name!r}; hint: clip = [0, the largest sum]"
                )
        return tuple([(name, given[name]) for name in clipped])

    def _checked_public(self) -> tuple[str, ...]:
        """Return the names of the public attributes in the schema's order, after checking them."""
        known = {name: i for i, name in enumerate(self.schema.names)}
        places = attribute_positions(known, self.public)
        if self.neighbors != "replace":
            raise ParameterError(
                'plan: public attributes need neighbors="replace": one row more or less changes '
                "their tables"
            )
        if any(self.schema.attributes[i].is_summed for i in self.used):
            raise ParameterError(
                "plan: public= cannot be combined with clipped numbers: a row counts in the ends "
                "of an interval by parts, and public tables are of whole rows; hint: edges instead "
                "of clip"
            )
        if unused := [self.schema.names[i] for i in places if i not in self.used]:
            raise ParameterError(
                f"plan: expected public attributes that some marginal has, got {unused[0]!r} too"
            )
        if self.person is not None:
            raise ParameterError(
                "plan: person= cannot be combined with public=: persons have different numbers of "
                "rows, so a person who is exchanged for another changes the public tables, which "
                "have no noise; hint: leave out one of the two"
            )
        return tuple([self.schema.names[i] for i in sorted(places)])

    @cached_property
    def used(self) -> tuple[int, ...]:
        """The indices of the attributes that occur in some table of the workload."""
        return tuple(sorted({i for S in self.domain.subsets for i in S}))

    @property
    def about(self) -> About:
        """The lines about the tables for their readers (title, source, …).

        Lines stated in this request replace those of the schema.
        """
        own = {"title": self.title, "source": self.source}
        return dataclasses.replace(
            self.schema.about, **{name: said for name, said in own.items() if said is not None}
        )

    @property
    def relation(self) -> Relation:
        """The neighbouring relation against which noise is calibrated.

        Public attributes, and budgets that grow with numbers, are a part of it. For such budgets,
        let ρ be the budget of a person with at most k rows, T the scale of a number, and V its sum
        over these rows. The rows change counts by at most k, and sums by V. If each row, with a
        number v, costs at most ``ρ/k² (1 + (v k/T)²)``, the changes of counts and sums cost at most
        ρ and ``ρ (V/T)²``, by the triangle inequality. This bound is attained if all rows are in
        one cell.
        """
        used = [self.schema.attributes[i] for i in self.used]
        scales = {
            i: Fraction(
                units_in(own.name, self.scales[own.name], own.unit), STEPS * self.rows_per_person
            )
            for i, own in zip(self.used, used, strict=True)
            if own.unit is not None
        }
        if scales:
            return AddInProportion(tuple(scales.items()))
        if not self.public:
            return self.neighbors
        return ReplaceWithin(tuple(map(self.schema.names.index, self.public)))

    @property
    def workload(self) -> int | list[list[str]] | list[dict[str, object]]:
        """The workload as the argument of :func:`plan`: k, lists of names, or {name: base}.

        A base is None if it is the attribute's own base.
        """
        attributes, domain = self.schema.attributes, self.domain
        if all(attribute.base is None for attribute in attributes) and domain.is_cells:
            k = len(domain.subsets[0])
            several = len(domain.subsets) == math.comb(len(attributes), k)
            if several and domain.subsets == Marginals.all_kway(domain.sizes, k).subsets:
                return k
            return [[attributes[i].name for i in S] for S in domain.subsets]
        entries: list[dict[str, object]] = []
        for term in domain.terms:
            own = [base == (attributes[i].base or Identity(attributes[i].size)) for i, base in term]
            entries.append(
                {
                    attributes[i].name: None if same else base_value(base, attributes[i])
                    for (i, base), same in zip(term, own, strict=True)
                }
            )
        return entries

    @property
    def weights(self) -> list[float] | None:
        """The weights of the errors of the workload's entries; None if targets determine them."""
        return None if self.targets is not None else list(self.domain.weights)

    def record(self) -> dict[str, object]:
        """Return the arguments of :func:`plan` as plain data, for :func:`arguments_in` to read."""
        return {
            option.name: option.written(self)
            for option in _OPTIONS
            if not option.late or option.null or option.is_given(self)
        }

    def identity(self, rho: float) -> dict[str, object]:
        """Return plain data that identify this request at the budget ``rho``.

        Numbers are rounded to nine digits, so that the data are the same on any machine.
        """
        # the order of stored requests: late options first, and of these the weight
        late = sorted(
            [option for option in _OPTIONS if option.late],
            key=lambda option: option.name != "weight",
        )
        given = {option.name: option.known(self) for option in late if option.is_given(self)}
        return {
            **self._bases(),
            **given,
            "schema": self.schema.to_toml(),
            "marginals": self.domain.subsets,
            "weights": [f"{weight:.9g}" for weight in self.domain.weights],
            "p": str(self.p),
            "neighbors": self.neighbors,
            "rho": f"{rho:.9g}",
            **({"scale": dict(self.scales)} if self.scales else {}),
            "rows_per_person": self.rows_per_person,
        }

    def _bases(self) -> dict[str, object]:
        """Return the queries that entries ask about attributes; {} if they ask for cells only."""
        if self.domain.is_cells:
            return {}
        terms, attributes = self.domain.terms, self.schema.attributes
        bases = [[base_value(base, attributes[i]) for i, base in term] for term in terms]
        written = zip(itertools.chain(*bases), itertools.chain(*terms), strict=True)
        # matrices need no note, since they have zeros for the catch-all
        if any(isinstance(b, Leading) and not isinstance(value, list) for value, (_, b) in written):
            return {"bases": bases, "catch-alls": "in no query that takes cells in order"}
        return {"bases": bases}


def arguments_in(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of :func:`plan` from a record.

    Raises:
        LookupError, TypeError, ValueError: not a record that :meth:`Request.record` returned.
    """
    stored = {
        option: record.get(option.name) if option.late else record[option.name]
        for option in _OPTIONS
    }
    asked = {
        option.name: option.read(value) for option, value in stored.items() if value is not None
    }
    if "targets" in asked:
        del asked["p"]  # targets replace it
    return asked


def _unchanged(value: T) -> T:
    return value


@final
@dataclass(frozen=True)
class Option(Generic[T]):
    """One option of :func:`plan`: how it is written to files, and read from them.

    Attributes:
        name: the argument of :func:`plan`, the request's attribute, and the key in the record.
        write: a function from the option to plain data.
        read: a function from plain data to the argument.
        identify: a function from a late option to its plain data in :meth:`Request.identity`;
            ``write`` if left out.
        late: whether releases of earlier versions lack the option. Records have it only if it is
            given.
        null: whether records contain a late option that is not given, as null.
    """

    name: str
    write: Callable[[T], object] = _unchanged
    read: Callable[[Any], object] = _unchanged
    identify: Callable[[T], object] | None = None
    late: bool = False
    null: bool = False

    def is_given(self, asked: Request) -> bool:
        """Return whether the option was given in the request."""
        return getattr(asked, self.name) not in (None, ())

    def written(self, asked: Request) -> object:
        """Return the option's value in this request as plain data; None if it has none."""
        value = getattr(asked, self.name)
        return None if value is None else self.write(value)

    def known(self, asked: Request) -> object:
        """Return the option's value as the plain data that :meth:`Request.identity` has."""
        return (self.identify or self.write)(getattr(asked, self.name))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _target(value: dict[str, Any]) -> Target:
    """Return the target of accuracy that is stored as plain data."""
    if type(value["simultaneous"]) is not bool:
        raise TypeError
    return Target(**value)


# in the order of stored records, so that equal requests give equal files
_OPTIONS = (
    Option("schema", Schema.to_toml, _text),
    Option("workload"),
    Option[AbstractPrivacy]("privacy", lambda privacy: privacy.stated(), AbstractPrivacy.read),
    Option("neighbors"),
    Option("p", str, float),  # JSON has no infinity
    Option("weights"),
    Option[tuple[Target | None, ...]](
        "targets",
        lambda targets: [t if t is None else dataclasses.asdict(t) for t in targets],
        lambda targets: [t if t is None else _target(t) for t in targets],
    ),
    Option("rows_per_person"),
    Option("person", late=True, null=True),
    Option("per_person", dict, late=True),
    Option("public", list, late=True),
    Option[Weight](
        "weight",
        dataclasses.asdict,
        lambda weight: Weight(**weight),
        lambda weight: [weight.column, f"{weight.most:.9g}"],
        late=True,
    ),
    Option[tuple[FoundRange, ...]](
        "ranges",
        lambda ranges: [own.record() for own in ranges],
        lambda ranges: [FoundRange.read(own) for own in ranges],
        late=True,
    ),
    Option("title", late=True),
    Option("source", late=True),
)


class AbstractPlan(PickledByArguments, abc.ABC):
    """The members that plans of tables and plans of streams have in common.

    Attributes:
        asked: the request.
    """

    asked: Request

    @property
    def schema(self) -> Schema:
        """The schema: the public attributes, and their possible values."""
        return self.asked.schema

    @property
    def about(self) -> About:
        """The lines about the tables for their readers, such as title and source."""
        return self.asked.about

    @property
    def domain(self) -> AbstractTables:
        """The queries: :class:`Marginals`, or :class:`Products` if not only cells are asked."""
        return self.asked.domain

    @property
    def privacy(self) -> AbstractPrivacy:
        """The privacy budget of the whole release, for all rows of one person."""
        if self.asked.privacy is None:
            raise ParameterError("Plan: expected a budget, got none; hint: call plan()")
        return self.asked.privacy

    @property
    def scales(self) -> Mapping[str, float]:
        """{name of a number: scale}, if the budget of a row grows with its numbers; else empty.

        See :class:`PerRecord`.
        """
        return self.asked.scales

    @property
    def larger(self) -> tuple[Larger, ...]:
        """Examples of rows that have a larger budget than others; empty if all have the same."""
        return self.privacy.larger()

    @property
    def neighbors(self) -> Relation:
        """The neighbouring relation, "add-remove" or "replace".

        The relation is "replace" also if only rows with equal :attr:`public` attributes are
        replaced.
        """
        return self.asked.neighbors

    @property
    def targets(self) -> tuple[Target | None, ...] | None:
        """The target of accuracy of each entry of the workload, None for entries without one.

        The result is None for a plan without targets.
        """
        return self.asked.targets

    @property
    def rows_per_person(self) -> int:
        """The most rows of one person that are counted.

        This limit is enforced if :attr:`person` names a column; otherwise it is an assumption.
        """
        return self.asked.rows_per_person

    @property
    def person(self) -> str | None:
        """The column that says which person a row belongs to; None without such a column."""
        return self.asked.person

    @property
    def per_person(self) -> dict[str, PerPerson]:
        """{clipped number: function that computes one number from all numbers of a person}.

        The mapping is empty if rows are counted.
        """
        return dict(self.asked.per_person)

    @property
    def public(self) -> tuple[str, ...]:
        """The public attributes, whose joint table is exact: their values have no protection."""
        return self.asked.public

    @property
    def weight(self) -> Weight | None:
        """The column of sample weights, or None if every row counts as one."""
        return self.asked.weight

    @property
    def ranges(self) -> tuple[FoundRange, ...]:
        """The ranges of clipped numbers that were found with a part of the budget."""
        return self.asked.ranges

    @property
    def marginals(self) -> tuple[tuple[str, ...], ...]:
        """The attribute names of every table that is released."""
        names = self.schema.names
        return tuple([tuple([names[i] for i in S]) for S in self.tables.subsets])

    @cached_property
    def tables(self) -> Marginals:
        """The tables of cells that are released, one for each attribute set of the workload."""
        return self.domain.tables

    @property
    def entries(self) -> tuple[str, ...]:
        """The entries of the workload in words, like ``age (prefix) × sex``."""
        return tuple([term_name(self.schema, term) for term in self.domain.terms])

    @cached_property
    @abc.abstractmethod
    def request(self) -> dict[str, object]:
        """The request (schema, workload, budget, …) as plain data, the same on any machine."""

    @cached_property
    def request_sha256(self) -> str:
        """The SHA-256 of :attr:`request`: the same for equal arguments, on any machine."""
        return hashlib.sha256(json.dumps(self.request).encode()).hexdigest()
