"""The only source of released Gaussian noise: OpenDP's discrete Gaussian, never seeded."""

import math
import os
import re
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import NotAvailableError, ParameterError
from ..files.pickling import PickledByArguments
from ..numerics.integers import MOST_SUM, root_above

Integers = NDArray[np.int64]

# OpenDP silently truncates noise at 64 bits: at this scale, 512 standard deviations away
MAX_SCALE = 2.0**54
# integers of a lattice finer than 2⁻⁴⁰⁰ cannot be converted to floats
MAX_BITS = 400
OLDEST_OPENDP = (0, 15)  # earlier discrete Gaussians were biased (opendp#2638)
_CHARGES = ((1.0, 3.0), (math.sqrt(2.0), 2.0**40), (2.0**20 + 1, MAX_SCALE))  # distances and scales
_CLOSE = Fraction(1, 2**50)  # relative tolerance of a charge, for rounding
_DRAWS = 16
_CHUNK = 2**13  # number of integers per draw
_CHUNKS_AHEAD = 128  # chunks drawn ahead: 8 MB of integers
_MOST_THREADS = 8


@dataclass(frozen=True)
class IntegerQuery(PickledByArguments):
    """A query with integer answers of known squared ℓ2 sensitivity, and the ρ that it may cost.

    Attributes:
        sensitivity_squared: largest squared change of the integer answer between neighbours, an
            integer >= 1.
        budget: the largest ρ that it may cost.
    """

    sensitivity_squared: int
    budget: float

    @cached_property
    def distance(self) -> float:
        """The ℓ2 sensitivity, rounded up to a float, which OpenDP calls d_in."""
        return root_above(self.sensitivity_squared)

    @cached_property
    def scale(self) -> float:
        """The least scale of the discrete Gaussian noise that the ρ in ``budget`` allows.

        OpenDP computes the ρ of a scale; the least scale is found up to rounding.
        """
        if not self.budget > 0:
            raise ParameterError(f"noise: expected a budget rho > 0, got {self.budget!r}")
        scale = self.distance / math.sqrt(2 * self.budget)
        while 0 < scale <= MAX_SCALE and discrete_gaussian(scale).map(self.distance) > self.budget:
            scale *= 1 + 2.0**-50
        if not scale > 0:
            raise ParameterError(
                f"noise: rho = {self.budget:.3g} is too large; hint: at most 1e100"
            )
        if not scale <= MAX_SCALE:
            raise ParameterError(
                f"noise: rho = {self.budget:.3g} needs a scale of {scale:.3g} lattice steps, more "
                f"than {MAX_SCALE:.3g}; hint: a budget this small releases nothing but noise"
            )
        return scale

    @cached_property
    def rho(self) -> float:
        """The ρ that OpenDP charges for noise of this scale; at most ``budget``."""
        return discrete_gaussian(self.scale).map(self.distance)

    def draw(self, count: int) -> list[int]:
        """Return ``count`` independent noises.

        They come from the operating system's randomness, which cannot be seeded.
        """
        return discrete_gaussian(self.scale)([0] * count)


class NoiseStream:
    """A stream of independent noises, which other threads draw in advance.

    OpenDP releases Python's lock while it draws.
    """

    def __init__(
        self, draw: "Callable[[int], ArrayLike]", count: int, pool: ThreadPoolExecutor
    ) -> None:
        self._draw, self._unasked, self._pool = draw, count, pool
        self._coming: deque[Future[Integers]] = deque()
        self._here = np.zeros(0, dtype=np.int64)
        self._ask()

    def take(self, count: int) -> Integers:
        """Return the next ``count`` noises."""
        parts = [self._here[:count]]
        self._here = self._here[count:]
        missing = count - len(parts[0])
        while missing:
            drawn = self._coming.popleft().result()
            self._ask()
            parts.append(drawn[:missing])
            self._here = drawn[missing:]
            missing -= len(parts[-1])
        return np.concatenate(parts)

    def _ask(self) -> None:
        while self._unasked and len(self._coming) < _CHUNKS_AHEAD:
            size = min(_CHUNK, self._unasked)
            self._coming.append(self._pool.submit(self._chunk, size))
            self._unasked -= size

    def _chunk(self, size: int) -> Integers:
        return np.asarray(self._draw(size)).astype(np.int64, casting="safe")


def drawn(query: IntegerQuery, count: int) -> Integers:
    """Return ``count`` independent noises of the query, drawn in the calling thread."""
    sizes = [min(_CHUNK, count - start) for start in range(0, count, _CHUNK)]
    parts = [np.asarray(query.draw(size)).astype(np.int64, casting="safe") for size in sizes]
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


@contextmanager
def noise_stream(
    draw: "Callable[[int], ArrayLike]", count: int, threads: int
) -> Iterator[NoiseStream]:
    """Yield a stream of ``count`` noises, which other threads draw in advance.

    Noises that are not taken within the block are discarded.
    """
    pool = ThreadPoolExecutor(threads)
    try:
        yield NoiseStream(draw, count, pool)
    finally:
        pool.shutdown(cancel_futures=True)


def sampling_threads() -> int:
    """Return the number of threads that draw noise."""
    return min(os.cpu_count() or 1, _MOST_THREADS)


def discrete_gaussian(scale: float) -> Any:
    """Return OpenDP's mechanism that adds discrete Gaussian noise of this scale to integers.

    It maps vectors of 64-bit integers.
    """
    return _opendp()(scale)


@cache
def _opendp() -> Callable[[float], Any]:
    """Return a function from a scale to OpenDP's noise mechanism, or raise NotAvailableError."""
    wanted = ".".join(map(str, OLDEST_OPENDP))
    try:
        from importlib import metadata

        from opendp.domains import atom_domain, vector_domain
        from opendp.measurements import make_gaussian
        from opendp.metrics import l2_distance
        from opendp.mod import enable_features

        version = metadata.version("opendp")
    except ImportError as error:
        raise NotAvailableError(
            f"noise: expected OpenDP, which draws it, got {type(error).__name__}; hint: pip "
            f'install "opendp>={wanted}"'
        ) from None
    except Exception:  # noqa: BLE001 (the one class of error that OpenDP raises when it cannot load)
        raise NotAvailableError(
            "noise: expected OpenDP, which draws it, got a library that does not load; hint: "
            f'pip install --force-reinstall "opendp>={wanted}", and no OPENDP_LIB_DIR in the '
            "environment"
        ) from None
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST_OPENDP:
        raise NotAvailableError(
            f"noise: expected OpenDP {wanted} or later, got {version}, whose discrete Gaussian is "
            f'biased; hint: pip install "opendp>={wanted}"'
        )

    def make(scale: float) -> Any:
        enable_features("contrib")
        return make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), scale=scale)

    _check(make, version)
    return make


def _check(make: Callable[[float], Any], version: str) -> None:
    """Raise an error if OpenDP charges or draws wrongly; false alarms have probability 10⁻¹³."""
    charged = all(
        abs(
            Fraction(make(scale).map(distance)) * 2 * Fraction(scale) ** 2 / Fraction(distance) ** 2
            - 1
        )
        <= _CLOSE
        for distance, scale in _CHARGES
    )
    drawn = make(MAX_SCALE)([0] * _DRAWS)
    # the draws must be distinct, not zero, and within 256 standard deviations
    if (
        not charged
        or len({0, *drawn}) != _DRAWS + 1
        or not all(type(x) is int and abs(x) < MOST_SUM for x in drawn)
    ):
        raise NotAvailableError(
            f"noise: OpenDP {version} does not charge or draw what it should on this machine; "
            "hint: install it again, or another version"
        )
