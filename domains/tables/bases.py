"""Queries about one attribute: matrices over its categories."""

import abc
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import DimensionError, DomainTooLargeError, InvalidDomainError
from ..floats import MOST_NUMBERS, Array
from ..records import dense, own_array
from ..stored import Storable, schema_name

_APART = 1e-8  # least squared distance of two columns of W, relative to the largest square

_MOST_NAMED = 3  # largest number of categories in the label of a group


class AbstractBase(Storable, abc.ABC):
    """A workload W over the categories of one attribute: a row per query, a column per category.

    Bases of the same class and arguments are equal, and attributes with equal bases are solved
    once. A base of your own is a frozen dataclass with ``size``, ``queries`` and ``toarray``; for
    most queries :class:`Base` is enough. With ``stored_as = "around"``, schema files may say
    ``base = "around"``, or ``{kind = "around", reach = 2}`` for a constructor with arguments
    besides ``size``, and saved releases and noise refer to the base by that name. Without a name,
    releases hold its matrix, and its noise cannot be saved.

    Attributes:
        size: number of categories n.
        is_ordered: whether queries depend on the order of categories. A catch-all for all other
            values has no place in an order, so a base that is ordered, or does not say, is refused
            for an attribute with a catch-all.

    >>> isinstance(gn.Prefix(4), gn.domains.AbstractBase)
    True
    >>> gn.Prefix(3).toarray().tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
    """

    size: int
    is_ordered: ClassVar[bool | None] = None

    @property
    @abc.abstractmethod
    def queries(self) -> int:
        """The number q of queries."""

    @abc.abstractmethod
    def toarray(self) -> Array:
        """Return the query matrix W, shape (q, n).

        Raises:
            DomainTooLargeError: more than a gigabyte of numbers.
        """

    @property
    def is_identity(self) -> bool:
        """Whether the query matrix W is known to be the identity: one query per category."""
        return False

    def options(self) -> dict[str, Any]:
        """Return the options of the base as they stand in schema files: text, numbers and lists.

        >>> Bins(9, [2, (3, 6)]).options()
        {'widths': [2, [3, 6]]}
        """
        own = {name: _plain(value) for name, value in self._stored().items() if name != "size"}
        return {name: value for name, value in own.items() if value is not None}

    def summary(self) -> str:
        """Return a short description of the queries.

        >>> Windows(24, 3).summary()
        'windows of 3'
        """
        name = schema_name(type(self))
        if name is None:
            return f"{self.queries} queries"
        return ", ".join([name, *(f"{key} {value!r:.40}" for key, value in self.options().items())])

    @classmethod
    def _of_cells(
        cls, size: int, numbers: Callable[[], Sequence[float]], options: Mapping[str, Any]
    ) -> Self:
        """Return the base that a schema file describes; raise TypeError for an unknown option."""
        own = {name: _tuples(value) for name, value in options.items()}
        return cls(**{"size": size}, **own)  # if ``own`` has a size too, this is a TypeError

    def gram(self) -> Array:
        """Return ``W' W``, shape (n, n), for the query matrix W.

        Raises:
            DomainTooLargeError: more than a gigabyte of numbers.

        >>> Prefix(3).gram()
        array([[3., 2., 1.],
               [2., 2., 1.],
               [1., 1., 1.]])
        """
        check_entries(self, self.size)
        W = self.toarray()
        return W.T @ W

    @final
    def answer(self, values: "ArrayLike", axis: int = 0) -> NDArray[Any]:
        """Return the answers to the q queries along one axis of an array.

        The axis has n entries, one per category, and is replaced by an axis of q entries.

        If W is all zeros and ones, answers to integers are exact integers. The identity returns
        ``values`` itself.

        Raises:
            DimensionError: the axis has not n entries.

        >>> Ranges(3).answer([10, 20, 30])
        array([10, 30, 60, 20, 50, 30])
        """
        table = np.asarray(values)
        if not -table.ndim <= axis < table.ndim or table.shape[axis] != self.size:
            raise DimensionError(
                f"answer: expected {self.size} entries along axis {axis}, got shape {table.shape}"
            )
        return self._answer(table, axis)

    @final
    def labels(self, cells: Sequence[object]) -> tuple[str, ...]:
        """Return the names of the queries, given the names of the categories.

        >>> Ranges(2).labels(["young", "old"])
        ('young', 'young to old', 'old')
        """
        if len(cells) != self.size:
            raise DimensionError(
                f"labels: expected {self.size} names of categories, got {len(cells)}"
            )
        return self._labels(cells)

    def _answer(self, table: NDArray[Any], axis: int) -> NDArray[Any]:
        return np.moveaxis(np.tensordot(self.toarray(), table, axes=(1, axis)), 0, axis)

    def _labels(self, cells: Sequence[object]) -> tuple[str, ...]:
        return tuple(f"query {k}" for k in range(1, self.queries + 1))

    def _columns(self, codes: NDArray[np.int64]) -> Array:
        """Return what each record adds to the answers of all queries, shape (len(codes), q)."""
        return self.toarray()[:, codes].T


class AbstractRuns(AbstractBase):
    """A base of zeros and ones: every query counts a run of consecutive categories."""

    is_ordered = True

    @abc.abstractmethod
    def _runs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the first and last category of every run; from n on, numbers start again at 0."""

    @final
    def ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the first and the last category of every run, as two arrays of numbers below n."""
        first, last = self._checked_runs()
        return first, last % self.size

    def toarray(self) -> Array:
        check_entries(self, self.queries)
        return np.ascontiguousarray(self._columns(np.arange(self.size)).T)

    def _checked_runs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if self.queries > MOST_NUMBERS:
            raise DomainTooLargeError(
                f"{type(self).__name__}: {self.queries} queries, more than {MOST_NUMBERS}"
            )
        return self._runs()

    def _columns(self, codes: NDArray[np.int64]) -> Array:
        first, last = self._checked_runs()
        return ((codes[:, None] - first) % self.size <= last - first).astype(np.float64)

    def _answer(self, table: NDArray[Any], axis: int) -> NDArray[Any]:
        first, last = self._checked_runs()
        again = np.take(table, np.arange(max(0, int(last.max()) + 1 - self.size)), axis=axis)
        sums = np.cumsum(
            np.concatenate([table, again], axis=axis) if again.shape[axis] else table, axis=axis
        )
        sums = np.concatenate([np.zeros_like(np.take(sums, [0], axis=axis)), sums], axis=axis)
        return np.take(sums, last + 1, axis=axis) - np.take(sums, first, axis=axis)

    def _labels(self, cells: Sequence[object]) -> tuple[str, ...]:
        ends = zip(*self.ends(), strict=True)
        return tuple(f"{cells[i]}" if i == j else f"{cells[i]} to {cells[j]}" for i, j in ends)


@final
@dataclass(frozen=True)
class Identity(AbstractBase):
    """The count of each category.

    >>> Identity(2).toarray()
    array([[1., 0.],
           [0., 1.]])
    """

    size: int

    stored_as = "identity"
    is_ordered = False

    def __post_init__(self) -> None:
        settle_size(self)

    @property
    def queries(self) -> int:
        return self.size

    @property
    def is_identity(self) -> bool:
        return True

    def toarray(self) -> Array:
        check_entries(self, self.size)
        return np.eye(self.size)

    def gram(self) -> Array:
        return self.toarray()

    def _answer(self, table: NDArray[Any], axis: int) -> NDArray[Any]:
        return table

    def _labels(self, cells: Sequence[object]) -> tuple[str, ...]:
        return tuple(map(str, cells))

    def _columns(self, codes: NDArray[np.int64]) -> Array:
        points = np.zeros((len(codes), self.size))
        points[np.arange(len(codes)), codes] = 1.0
        return points


@final
@dataclass(frozen=True)
class Total(AbstractRuns):
    """The count of all categories together.

    >>> Total(3).toarray()
    array([[1., 1., 1.]])
    """

    size: int

    is_ordered = False

    def __post_init__(self) -> None:
        settle_size(self)

    @property
    def queries(self) -> int:
        return 1

    def _runs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.array([0]), np.array([self.size - 1])

    def gram(self) -> Array:
        check_entries(self, self.size)
        return np.ones((self.size, self.size))

    def summary(self) -> str:
        return "total"

    def _answer(self, table: NDArray[Any], axis: int) -> NDArray[Any]:
        return np.sum(table, axis=axis, keepdims=True)

    def _labels(self, cells: Sequence[object]) -> tuple[str, ...]:
        return ("all",)


@final
@dataclass(frozen=True)
class Prefix(AbstractRuns):
    """The count of all categories up to each category, in their order: an unnormalised CDF.

    >>> Prefix(3).toarray()
    array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 1., 1.]])
    """

    size: int

    stored_as = "prefix"

    def __post_init__(self) -> None:
        settle_size(self)

    @property
    def queries(self) -> int:
        return self.size

    def _runs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.zeros(self.size, dtype=np.int64), np.arange(self.size)

    def gram(self) -> Array:
        check_entries(self, self.size)
        places = np.arange(self.size)
        # the prefixes that contain both categories are those that end at or after the later one
        return np.asarray(self.size - np.maximum.outer(places, places), dtype=np.float64)

    def _answer(self, table: NDArray[Any], axis: int) -> NDArray[Any]:
        return np.cumsum(table, axis=axis)

    def _labels(self, cells: Sequence[object]) -> tuple[str, ...]:
        return tuple(f"up to {cell}" for cell in cells)


@final
@dataclass(frozen=True)
class Ranges(AbstractRuns):
    """The count of every run of consecutive categories, ordered by the first category.

    >>> Ranges(2).toarray()
    array([[1., 0.],
           [1., 1.],
           [0., 1.]])
    """

    size: int

    stored_as = "ranges"

    def __post_init__(self) -> None:
        settle_size(self)

    @property
    def queries(self) -> int:
        return self.size * (self.size + 1) // 2

    def _runs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        first, last = np.triu_indices(self.size)
        return first, last

    def gram(self) -> Array:
        check_entries(self, self.size)
        places = np.arange(self.size)
        # the ranges that contain both categories start at or before the earlier one, and end at or
        # after the later one
        before, after = (
            np.minimum.outer(places, places) + 1,
            self.size - np.maximum.outer(places, places),
        )
        return np.asarray(before * after, dtype=np.float64)


@final
@dataclass(frozen=True)
class Bins(AbstractRuns):
    """The counts of consecutive bins, in one or several levels.

    Args:
        size: number of categories.
        widths: one entry for every level: the width of all bins (the last may be narrower), or a
            tuple with the first category of every bin except the first.

    >>> Bins(3, [1, 2]).toarray()
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.],
           [1., 1., 0.],
           [0., 0., 1.]])
    >>> Bins(100, [(18, 65)]).labels(range(100))
    ('0 to 17', '18 to 64', '65 to 99')
    """

    size: int
    widths: tuple[int | tuple[int, ...], ...]

    stored_as = "bins"

    def __init__(self, size: int, widths: Iterable[int | Iterable[int]]) -> None:
        object.__setattr__(self, "size", size)
        settle_size(self)
        levels = list(_in_order("Bins", widths)) if isinstance(widths, Iterable) else []
        settled = [
            _integers("Bins: expected cuts", level) if isinstance(level, Iterable) else
            _integers("Bins: expected widths", [level])[0]
            for level in levels
        ]  # fmt: skip
        object.__setattr__(self, "widths", tuple(settled))
        if not settled or len(set(settled)) < len(settled):
            raise InvalidDomainError("Bins: expected distinct levels, like [5, 10] or [(18, 65)]")
        for level in settled:
            if isinstance(level, int) and not 1 <= level <= self.size:
                raise InvalidDomainError(
                    f"Bins: expected 1 <= width <= {self.size} categories, got {level}"
                )
            if isinstance(level, tuple) and (
                not level or any(a >= b for a, b in pairwise((0, *level, self.size)))
            ):
                raise InvalidDomainError(
                    f"Bins: expected increasing cuts in 1..{self.size - 1}, got {level}"
                )

    @property
    def queries(self) -> int:
        return sum(
            -(-self.size // level) if isinstance(level, int) else len(level) + 1
            for level in self.widths
        )

    def summary(self) -> str:
        return f"bins of {', '.join(map(str, self.widths))}"

    def _starts(self, level: int | tuple[int, ...]) -> NDArray[np.int64]:
        return np.arange(0, self.size, level) if isinstance(level, int) else np.array((0, *level))

    def _runs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        starts = [self._starts(level) for level in self.widths]
        return np.concatenate(starts), np.concatenate(
            [np.append(first[1:], self.size) - 1 for first in starts]
        )

    def gram(self) -> Array:
        check_entries(self, self.size)
        gram = np.zeros((self.size, self.size))
        for level in self.widths:
            bins = np.searchsorted(self._starts(level), np.arange(self.size), side="right")
            gram += np.equal.outer(bins, bins)
        return gram


@final
@dataclass(frozen=True)
class Windows(AbstractRuns):
    """The count of every run of ``width`` categories on a circle, such as hours or months.

    >>> Windows(3, 2).toarray()
    array([[1., 1., 0.],
           [0., 1., 1.],
           [1., 0., 1.]])
    """

    size: int
    width: int

    stored_as = "windows"

    def __post_init__(self) -> None:
        settle_size(self)
        object.__setattr__(self, "width", _integers("Windows: expected a width", [self.width])[0])
        if not 1 <= self.width <= self.size:
            raise InvalidDomainError(
                f"Windows: expected 1 <= width <= {self.size} categories, got {self.width}"
            )

    @property
    def queries(self) -> int:
        return self.size

    def summary(self) -> str:
        return f"windows of {self.width}"

    def _runs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        first = np.arange(self.size)
        return first, first + self.width - 1

    def gram(self) -> Array:
        check_entries(self, self.size)
        places = np.arange(self.size)
        apart = np.abs(np.subtract.outer(places, places))
        # windows that contain both categories also contain one of the two arcs between them
        shared = np.maximum(self.width - apart, 0) + np.maximum(self.width - (self.size - apart), 0)
        return shared.astype(np.float64)


@final
@dataclass(frozen=True)
class Moments(AbstractBase):
    """Sums of powers of numbers, one number for each category, such as the middle of its bin.

    The error of a sum is measured in the unit of that sum, so the highest power dominates the error
    of a workload. Separate tables with weights balance the powers.

    >>> Moments([1, 2, 4], degrees=[0, 1]).toarray()
    array([[1., 1., 1.],
           [1., 2., 4.]])
    """

    values: tuple[float, ...]
    degrees: tuple[int, ...]
    size: int = field(init=False, repr=False)

    stored_as = "moments"
    is_ordered = True

    def __init__(self, values: Iterable[float], degrees: Iterable[int] = (1,)) -> None:
        listed = list(_in_order("Moments", values)) if isinstance(values, Iterable) else values
        numbers = _numbers("Moments: expected one number per category", listed, ndim=1)
        object.__setattr__(self, "values", tuple(numbers.tolist()))
        object.__setattr__(self, "size", len(numbers))
        object.__setattr__(self, "degrees", _integers("Moments: expected degrees", degrees))
        if not self.degrees or len(set(self.degrees)) < len(self.degrees) or min(self.degrees) < 0:
            raise InvalidDomainError(
                f"Moments: expected distinct degrees of at least 0, got {self.degrees}"
            )
        try:
            _check_magnitude("Moments", self.toarray())
        except OverflowError:
            raise InvalidDomainError("Moments: expected powers of at most 1e100") from None

    @property
    def queries(self) -> int:
        return len(self.degrees)

    def options(self) -> dict[str, Any]:
        return {"degrees": list(self.degrees), "values": list(self.values)}

    def summary(self) -> str:
        return f"moments {', '.join(map(str, self.degrees))}"

    def _stored(self) -> dict[str, Any]:
        return {"values": np.array(self.values), "degrees": self.degrees}

    @classmethod
    def _of_cells(
        cls, size: int, numbers: Callable[[], Sequence[float]], options: Mapping[str, Any]
    ) -> Self:
        if not set(options) <= {"values", "degrees"}:
            raise TypeError
        return cls(**{"values": numbers() if "values" not in options else (), **options})

    def toarray(self) -> Array:
        # Python's powers are exact if a double can hold the result; numpy's may not be
        return np.array([[value**degree for value in self.values] for degree in self.degrees])

    def _labels(self, cells: Sequence[object]) -> tuple[str, ...]:
        return tuple(f"sum of power {degree}" if degree else "count" for degree in self.degrees)


@final
@dataclass(frozen=True)
class Leading(AbstractBase):
    """The queries of a smaller base about the first categories; later categories are in no query.

    A later category is, for example, a catch-all, which has no place in the order of numbers.

    Args:
        base: the queries about the first categories.
        size: number of all categories, more than ``base`` has.

    >>> Leading(Prefix(2), 3).toarray()
    array([[1., 0., 0.],
           [1., 1., 0.]])
    """

    base: AbstractBase
    size: int

    is_ordered = False

    def __post_init__(self) -> None:
        if not isinstance(self.base, AbstractBase):
            raise InvalidDomainError(
                f"Leading: expected a base, like Prefix(5), got {type(self.base).__name__}"
            )
        settle_size(self)
        if self.size <= self.base.size:
            raise InvalidDomainError(
                f"Leading: expected more categories than the {self.base.size} of its base, got "
                f"{self.size}; hint: the base itself"
            )

    @property
    def queries(self) -> int:
        return self.base.queries

    def toarray(self) -> Array:
        check_entries(self, self.queries)
        return np.pad(self.base.toarray(), ((0, 0), (0, self.size - self.base.size)))

    def gram(self) -> Array:
        check_entries(self, self.size)
        return np.pad(self.base.gram(), (0, self.size - self.base.size))

    def _answer(self, table: NDArray[Any], axis: int) -> NDArray[Any]:
        return self.base.answer(
            np.moveaxis(np.moveaxis(table, axis, 0)[: self.base.size], 0, axis), axis
        )

    def _labels(self, cells: Sequence[object]) -> tuple[str, ...]:
        return self.base.labels(cells[: self.base.size])

    def _columns(self, codes: NDArray[np.int64]) -> Array:
        points = np.zeros((len(codes), self.queries))
        inside = codes < self.base.size
        points[inside] = self.base._columns(codes[inside])
        return points


@final
@dataclass(frozen=True, repr=False)
class Groups(AbstractBase):
    """The counts of sets of categories in any order, such as regions made of counties.

    Args:
        size: number of categories.
        members: the categories of every group, distinct; groups may share some.

    >>> Groups(3, [(0, 2), (1,)]).toarray()
    array([[1., 0., 1.],
           [0., 1., 0.]])
    """

    size: int
    members: tuple[tuple[int, ...], ...]

    stored_as = "groups"
    is_ordered = False

    def __init__(self, size: int, members: Iterable[Iterable[int]]) -> None:
        object.__setattr__(self, "size", size)
        settle_size(self)
        several = isinstance(members, Iterable) and not isinstance(members, str)
        listed = [
            tuple(sorted(_integers("Groups: expected members", group)))
            for group in (_in_order("Groups", members) if several else ())
        ]
        object.__setattr__(self, "members", tuple(listed))
        if not listed or not all(listed):
            raise InvalidDomainError("Groups: expected groups of categories, like [(0, 2), (1,)]")
        for group in listed:
            if group[0] < 0 or group[-1] >= self.size or len(set(group)) < len(group):
                raise InvalidDomainError(
                    f"Groups: expected distinct categories in 0..{self.size - 1}, got {group!r:.60}"
                )

    @property
    def queries(self) -> int:
        return len(self.members)

    def summary(self) -> str:
        return f"{self.queries} groups"

    def toarray(self) -> Array:
        check_entries(self, self.queries)
        W = np.zeros((self.queries, self.size))
        for row, group in zip(W, self.members, strict=True):
            row[list(group)] = 1.0
        return W

    def _answer(self, table: NDArray[Any], axis: int) -> NDArray[Any]:
        return np.concatenate(
            [
                np.take(table, group, axis=axis).sum(axis=axis, keepdims=True)
                for group in self.members
            ],
            axis=axis,
        )

    def _labels(self, cells: Sequence[object]) -> tuple[str, ...]:
        named = ([str(cells[k]) for k in group] for group in self.members)
        return tuple(
            " + ".join(names) if len(names) <= _MOST_NAMED
            else f"{names[0]} + {len(names) - 1} more"
            for names in named
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"Groups({self.queries} groups of {self.size} categories)"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Base(AbstractBase):
    """A query matrix of the user's own.

    Args:
        matrix: shape (queries, categories), finite; copied to read-only float64. A scipy.sparse
            matrix is converted to a dense one, up to a gigabyte.

    >>> Base([[1, -1, 0], [0, 1, -1]])
    Base(2 queries of 3 categories)
    """

    matrix: Array

    is_ordered = False

    def __init__(self, matrix: "ArrayLike") -> None:
        written = dense(matrix)
        W = _numbers("Base: expected a matrix of shape (queries, categories)", written, ndim=2)
        _check_magnitude("Base", W)
        object.__setattr__(self, "matrix", own_array(W + 0.0))  # adding 0.0 turns -0.0 into 0.0
        object.__setattr__(self, "size", W.shape[1])

    @property
    def queries(self) -> int:
        return self.matrix.shape[0]

    def toarray(self) -> Array:
        return self.matrix

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Base) and np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash((self.matrix.shape, self.matrix.tobytes()))

    def __repr__(self) -> str:
        return f"Base({self.queries} queries of {self.size} categories)"


def _plain(value: Any) -> Any:
    """Return a value with lists in place of tuples and arrays, and with Python's own numbers."""
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)  # as TOML reads it, so that a plan made from the file is the same plan
    return list(map(_plain, value)) if isinstance(value, tuple | list) else value


def _tuples(value: Any) -> Any:
    """Return a value with tuples instead of lists, so that a frozen dataclass has a hash."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _in_order(name: str, values: Iterable[Any]) -> Iterable[Any]:
    if isinstance(values, set | frozenset):
        raise InvalidDomainError(
            f"{name.partition(':')[0]}: expected a list, which has an order, got a set"
        )
    return values


def _integers(expected: str, values: Iterable[Any]) -> tuple[int, ...]:
    several = isinstance(values, Iterable) and not isinstance(values, str)
    listed: tuple[Any, ...] = tuple(_in_order(expected, values)) if several else (values,)
    if not all(
        isinstance(value, int | np.integer) and not isinstance(value, bool) for value in listed
    ):
        raise InvalidDomainError(f"{expected}, all integers, got {listed!r:.60}")
    return tuple(map(int, listed))


def _numbers(expected: str, values: "ArrayLike", ndim: int) -> Array:
    try:
        array = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        raise InvalidDomainError(
            f"{expected}, all real; hint: .toarray() for sparse matrices"
        ) from None
    if array.ndim != ndim or 0 in array.shape:
        raise DimensionError(f"{expected}, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise InvalidDomainError(f"{expected}, all finite")
    return array


def _check_magnitude(name: str, W: Array) -> None:
    """Raise unless the largest entry of a matrix can be squared without overflow or underflow."""
    if not 1e-100 <= np.abs(W).max() <= 1e100:
        raise InvalidDomainError(
            f"{name}: expected a largest entry between 1e-100 and 1e100; hint: another unit"
        )


def settle_size(base: AbstractBase) -> None:
    """Check that a base has a whole number of categories, and store it as an int."""
    name = type(base).__name__
    (size,) = _integers(f"{name}: expected a number of categories", [base.size])
    if size < 1:
        raise InvalidDomainError(f"{name}: expected at least one category, got {size}")
    object.__setattr__(base, "size", size)


def check_apart(base: AbstractBase, gram: Array) -> None:
    """Raise if the queries hardly distinguish any categories, so that digits would be lost.

    ``gram`` is W'W for the query matrix W.
    """
    apart = float((np.diag(gram) + gram[0, 0] - 2 * gram[0]).max())
    if len(gram) > 1 and apart <= _APART * float(np.abs(gram).max()):
        raise InvalidDomainError(
            f"{type(base).__name__}: expected queries that tell categories apart, by more than "
            f"1e-4 of their size; hint: take away what they have in common, or Total({base.size})"
        )


def check_entries(base: AbstractBase, rows: int) -> None:
    """Raise DomainTooLargeError if a matrix with this many rows does not fit into memory.

    The matrix has one column for each category of the base.
    """
    if rows * base.size > MOST_NUMBERS:
        raise DomainTooLargeError(
            f"{type(base).__name__}: a matrix of {rows} × {base.size} numbers needs more than "
            f"{MOST_NUMBERS * 8 / 1e9:.2g} GB"
        )
