"""Participation patterns: which sets of ticks one person may occupy, and sums over these sets."""

import abc
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from ..checks import whole
from ..errors import InvalidDomainError
from ..floats import Array
from ..stored import Storable

Indices = NDArray[np.intp]
Kind = Literal["counts", "vectors"]

_KINDS = ("counts", "vectors")
_MOST_LISTED = 2**20  # largest number of pairs of ticks in all sets together


class AbstractPatterns(Storable, abc.ABC):
    """Sets of ticks 0, …, n − 1. One person may occupy all or some ticks of one of the sets.

    A tick is one release of a stream.

    Attributes:
        n: number of ticks.
        kind: "counts" if a person adds a number in [0, 1] at each tick, "vectors" for a vector no
            longer than one.
    """

    n: int
    kind: Kind

    @property
    def ticks(self) -> int:
        """The number n of ticks; a tick is one release of a stream."""
        return self.n

    @property
    @abc.abstractmethod
    def most(self) -> int:
        """The largest number of ticks that one person may occupy."""

    @property
    @abc.abstractmethod
    def count(self) -> int:
        """An upper bound on the number of maximal sets of ticks.

        No other allowed set contains a maximal set.
        """

    @abc.abstractmethod
    def totals(self, values: Array, most: int | None = None) -> Array:
        """Return the largest sum of ``values`` over a set of at most ``most`` ticks, for each row.

        ``values`` (m, n) are nonnegative. The sums, shape (m,), are exact.
        """

    @abc.abstractmethod
    def best(self, values: Array) -> Indices:
        """Return an allowed set of ticks with the largest sum of ``values``, as tick numbers.

        The values, shape (n,), are not negative.
        """

    @abc.abstractmethod
    def _sets(self) -> Iterator[tuple[int, ...]]:
        """Yield every maximal set of ticks: a set that no other allowed set contains."""

    @abc.abstractmethod
    def allows(self, ticks: tuple[int, ...]) -> bool:
        """Return whether one person may occupy these distinct, increasing ticks."""

    @abc.abstractmethod
    def meet(self) -> NDArray[np.bool_]:
        """Return whether one person may occupy both of two different ticks, as a matrix (n, n)."""

    @property
    def are_disjoint(self) -> bool:
        """Whether every tick is in only one maximal set of ticks.

        No other allowed set contains a maximal set.
        """
        return False

    @property
    def lists_few(self) -> bool:
        """Whether the list of all maximal sets, with all pairs of ticks in each, fits into memory.

        No other allowed set of ticks contains a maximal set.
        """
        return self.count * self.most**2 <= _MOST_LISTED

    def maximal(self) -> Indices:
        """Return every maximal set of ticks, as a row of ``most`` tick numbers.

        No other allowed set contains a maximal set. Rows of shorter sets are padded with n.
        """
        filled = [set_ + (self.ticks,) * (self.most - len(set_)) for set_ in self._sets()]
        return np.array(filled, dtype=np.intp).reshape(-1, self.most)


def _check_kind(name: str, kind: str) -> None:
    if kind not in _KINDS:
        raise InvalidDomainError(f'{name}: expected kind="counts" or kind="vectors", got {kind!r}')


def _check_sizes(name: str, n: int, k: int) -> tuple[int, int]:
    n, k = whole(name, "n", n), whole(name, "k", k)
    if k > n:
        raise InvalidDomainError(f"{name}: expected k <= n, got k = {k} of n = {n} ticks")
    return n, k


class _Listed(AbstractPatterns):
    """Patterns with few maximal sets of ticks, so that all of these sets are listed."""

    def totals(self, values: Array, most: int | None = None) -> Array:
        padded = np.concatenate([values, np.zeros((len(values), 1))], axis=1)
        parts = padded[:, self.maximal()]
        if most is not None and most < self.most:
            parts = np.sort(parts, axis=2)[:, :, self.most - most :]
        return parts.sum(axis=2).max(axis=1)

    def best(self, values: Array) -> Indices:
        sets = self.maximal()
        chosen = sets[np.append(values, 0.0)[sets].sum(axis=1).argmax()]
        return chosen[chosen < self.ticks]

    def meet(self) -> NDArray[np.bool_]:
        return _meeting(self.maximal(), self.ticks)


def _meeting(sets: Indices, n: int) -> NDArray[np.bool_]:
    joined = np.zeros((n + 1, n + 1), dtype=bool)
    joined[sets[:, :, None], sets[:, None, :]] = True
    joined = joined[:n, :n]
    np.fill_diagonal(joined, False)
    return joined


@final
@dataclass(frozen=True)
class Epochs(_Listed):
    """Rounds over all persons in a fixed order: one person has ticks i, i + b, …, k at most.

    Args:
        n: ticks.
        k: rounds.
        b: number of ticks from one round to the next; ⌈n/k⌉ if omitted, so that each tick is in one
            set only.
        kind: "vectors" (gradients, ‖u‖₂ <= 1) or "counts" (numbers in [0, 1]).

    Raises:
        InvalidDomainError: not integers, k > n, or another kind.

    >>> gn.streams.Epochs(6, 2).maximal().tolist()
    [[0, 3], [1, 4], [2, 5]]
    """

    n: int
    k: int
    b: int
    kind: Kind

    def __init__(self, n: int, k: int, *, b: int | None = None, kind: Kind = "vectors") -> None:
        n, k = _check_sizes("Epochs", n, k)
        _check_kind("Epochs", kind)
        b = -(-n // k) if b is None else whole("Epochs", "b", b)
        for name, value in (("n", n), ("k", k), ("b", b), ("kind", kind)):
            object.__setattr__(self, name, value)

    @property
    def most(self) -> int:
        return min(self.k, -(-self.n // self.b))

    @property
    def count(self) -> int:
        return self.n

    @property
    def are_disjoint(self) -> bool:
        return self.k * self.b >= self.n

    def allows(self, ticks: tuple[int, ...]) -> bool:
        return ticks[-1] - ticks[0] < self.k * self.b and all(
            (t - ticks[0]) % self.b == 0 for t in ticks
        )

    def _sets(self) -> Iterator[tuple[int, ...]]:
        for i in range(self.n):
            ticks = tuple(range(i, min(self.n, i + self.k * self.b), self.b))
            # leave out a set that could begin one round earlier: it is contained in that longer set
            if i < self.b or len(ticks) == self.k:
                yield ticks


@final
@dataclass(frozen=True)
class Window(_Listed):
    """Any k consecutive ticks, or some of them.

    Args:
        n: ticks.
        k: length of the window.
        kind: "vectors" (gradients, ‖u‖₂ <= 1) or "counts" (numbers in [0, 1]).

    Raises:
        InvalidDomainError: not integers, k > n, or another kind.

    >>> gn.streams.Window(4, 3).maximal().tolist()
    [[0, 1, 2], [1, 2, 3]]
    """

    n: int
    k: int
    kind: Kind

    def __init__(self, n: int, k: int, *, kind: Kind = "vectors") -> None:
        n, k = _check_sizes("Window", n, k)
        _check_kind("Window", kind)
        for name, value in (("n", n), ("k", k), ("kind", kind)):
            object.__setattr__(self, name, value)

    @property
    def most(self) -> int:
        return self.k

    @property
    def count(self) -> int:
        return self.n - self.k + 1

    @property
    def are_disjoint(self) -> bool:
        return self.k == self.n

    def allows(self, ticks: tuple[int, ...]) -> bool:
        return ticks[-1] - ticks[0] < self.k

    def _sets(self) -> Iterator[tuple[int, ...]]:
        return (tuple(range(i, i + self.k)) for i in range(self.n - self.k + 1))


@final
@dataclass(frozen=True)
class Apart(AbstractPatterns):
    """At most k ticks, any two of which are at least b apart ("minimum separation").

    Args:
        n: ticks.
        k: largest number of ticks of one person.
        b: least difference of two ticks of one person.
        kind: "vectors" (gradients, ‖u‖₂ <= 1) or "counts" (numbers in [0, 1]).

    Raises:
        InvalidDomainError: not integers, k > n, or another kind.

    >>> gn.streams.Apart(5, 2, 3).maximal().tolist()
    [[2, 5], [0, 3], [0, 4], [1, 4]]

    The first row is tick 2 alone, padded with n, since all other ticks are less than 3 away.
    """

    n: int
    k: int
    b: int
    kind: Kind

    def __init__(self, n: int, k: int, b: int, *, kind: Kind = "vectors") -> None:
        n, k = _check_sizes("Apart", n, k)
        b = whole("Apart", "b", b)
        _check_kind("Apart", kind)
        for name, value in (("n", n), ("k", k), ("b", b), ("kind", kind)):
            object.__setattr__(self, name, value)

    @property
    def most(self) -> int:
        return min(self.k, -(-self.n // self.b))

    @property
    def count(self) -> int:
        """An upper bound on the number of maximal sets.

        The bound is the number of all nonempty sets of ticks that one person may occupy, also
        those that are not maximal.
        """
        return sum(math.comb(self.n - (m - 1) * (self.b - 1), m) for m in range(1, self.most + 1))

    @property
    def are_disjoint(self) -> bool:
        return self.most == 1 or (self.b == 1 and self.k == self.n)

    def _steps(self, values: Array, most: int | None) -> Iterator[Array]:
        """Yield the largest sums over allowed sets within the ticks t, …, n − 1; t falls to 0."""
        # entry j: sums of sets of at most j ticks
        later = [
            np.zeros((len(values), min(self.most if most is None else most, self.n) + 1))
        ] * self.b
        for t in reversed(range(self.n)):
            # either tick t is not used, or it is, and the next tick used is t + b or later
            now = later[-1].copy()
            now[:, 1:] = np.maximum(now[:, 1:], values[:, t, None] + later[-self.b][:, :-1])
            later = [*later[1:], now]
            yield now

    def totals(self, values: Array, most: int | None = None) -> Array:
        last = np.zeros((len(values), 1))
        for now in self._steps(values, most):
            last = now
        return last[:, -1]

    def best(self, values: Array) -> Indices:
        table = np.zeros((self.n + self.b, self.most + 1))
        for t, now in zip(reversed(range(self.n)), self._steps(values[None], None), strict=True):
            table[t] = now[0]
        chosen, t, left = [], 0, self.most
        while t < self.n and left:
            if table[t, left] > table[t + 1, left]:
                chosen.append(t)
                t, left = t + self.b, left - 1
            else:
                t += 1
        return np.array(chosen, dtype=np.intp)

    def allows(self, ticks: tuple[int, ...]) -> bool:
        return len(ticks) <= self.k and all(
            after - before >= self.b for before, after in itertools.pairwise(ticks)
        )

    def _sets(self) -> Iterator[tuple[int, ...]]:
        for m in range(1, self.most + 1):
            # distinct ticks of a shorter range, with j (b − 1) added to the j-th, are b apart
            for packed in itertools.combinations(range(self.n - (m - 1) * (self.b - 1)), m):
                ticks = tuple(t + j * (self.b - 1) for j, t in enumerate(packed))
                if m == self.most or not self._has_room(ticks):
                    yield ticks

    def _has_room(self, ticks: tuple[int, ...]) -> bool:
        around = (-self.b, *ticks, self.n - 1 + self.b)
        return any(after - before >= 2 * self.b for before, after in itertools.pairwise(around))

    def meet(self) -> NDArray[np.bool_]:
        steps = np.abs(np.subtract.outer(np.arange(self.n), np.arange(self.n)))
        return (steps >= self.b) & (self.most > 1) & (steps > 0)


def AnyOf(n: int, k: int, *, kind: Kind = "vectors") -> Apart:  # noqa: N802 (like classes)
    """Return the pattern in which a person may occupy any k ticks, or fewer: ``Apart(n, k, 1)``.

    >>> gn.streams.AnyOf(3, 2).maximal().tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    _check_kind("AnyOf", kind)
    return Apart(*_check_sizes("AnyOf", n, k), 1, kind=kind)
