"""The unbiased correlated Gaussian mechanism for finite domains, on an integer lattice."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NoReturn, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from domains import AbstractFiniteDomain, FiniteSet

from ._covariance import FactorCovariance
from ._feasibility import Strategy, check_range, strategy
from ._noise import OptimalNoise
from ._policy import PolicyGraph
from ._release import Release
from ._sampler import MAX_BITS, IntegerQuery
from ._sensitivity import Relation, largest_pair
from .errors import DataError, NotAvailableError, ParameterError
from .privacy import AbstractPrivacy

Array = NDArray[np.float64]

# Lattice steps per standard deviation, a power of two below the sampler's limit with room to calibrate: rounding the
# strategy to the lattice biases a sum of n records by at most n √r 2⁻⁴⁹ standard deviations.
_SCALE_BITS = 48
# Coarser lattices would round the strategy visibly: a budget that small releases nothing but noise.
_MIN_BITS = 20
_EXACT_PAIR_ENTRIES = 2**21


@final
@dataclass(frozen=True, eq=False)
class GaussianMechanism:
    r"""Unbiased answers with covariance ``Σ = M · sensitivity_squared / (2ρ n²)`` (no n² for sums).

    The strategy ``b_i`` (point_i = origin + L b_i, M = L L') is rounded to integers before any data are seen. A release
    sums those integers exactly, adds OpenDP's discrete Gaussian, and only then decodes to real numbers.

    Formal guarantees:
        * ρ-zCDP for the stated relation, with the sensitivity of the *rounded* strategy in integer arithmetic.
        * ``standard_deviation`` and ``covariance`` are those of the noise really drawn.
        * The estimate is unbiased up to ``rounding_bias``, a public bound.

    Args:
        noise: from :func:`optimal_noise` or :func:`gamma`; carries the domain and the neighbouring relation.
        privacy: :class:`zCDP` or :class:`ApproxDP`.
        n: number of records, public: required under replacement (means), forbidden under add/remove (sums).

    Raises:
        ParameterError: n missing or forbidden, not a Gaussian's privacy definition, or marginals noise.
        NotAvailableError: a domain that is not finite (yet).
        CovarianceError: the noise leaves some direction of the sensitivity set bare.

    >>> noise = gn.optimal_noise(gn.FiniteSet(np.eye(3)))
    >>> mechanism = gn.GaussianMechanism(noise, gn.zCDP(0.5), n=1000)
    >>> print(f"{mechanism.error:.6f}")  # 2 / 1000
    0.002000
    >>> mechanism.release(counts=[500, 300, 200]).estimate.shape
    (3,)
    """

    noise: OptimalNoise
    privacy: AbstractPrivacy
    n: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.noise, OptimalNoise):
            raise ParameterError(
                f"GaussianMechanism: expected noise from optimal_noise() or gamma(), got {type(self.noise).__name__}"
            )
        if not isinstance(self.noise.domain, AbstractFiniteDomain):
            raise NotAvailableError(
                "GaussianMechanism: expected a finite domain, whose records are its points, got "
                f"{type(self.noise.domain).__name__}; releases of real-valued records are not available yet"
            )
        if not isinstance(self.privacy, AbstractPrivacy):
            raise ParameterError(
                "GaussianMechanism: expected privacy zCDP(rho) or ApproxDP(epsilon, delta), "
                f"got {type(self.privacy).__name__}; no Gaussian is purely ε-DP"
            )
        if self._sums and self.n is not None:
            raise ParameterError(
                "GaussianMechanism: add-remove neighbours have different numbers of records, so n is private and a "
                "mean cannot be calibrated to it; hint: leave n out and release sums"
            )
        if not self._sums and (not isinstance(self.n, int | np.integer) or self.n < 1):
            raise ParameterError(
                "GaussianMechanism: replacement releases a mean of n public records: "
                f"expected integer n >= 1, got {self.n!r}"
            )
        self._lattice  # noqa: B018 (built now, so that a bad covariance is refused before data are near)

    @property
    def _sums(self) -> bool:
        return self.noise.neighbors == "add-remove"

    @cached_property
    def _points(self) -> FiniteSet:
        domain = self.noise.domain
        if not isinstance(domain, AbstractFiniteDomain):
            raise TypeError("checked on construction")
        return domain.to_finite_set()

    @cached_property
    def _lattice(self) -> "_Lattice":
        if not isinstance(self.noise.covariance, FactorCovariance):
            raise ParameterError(
                "GaussianMechanism: marginals are released from tables; hint: gaussnoise.plan(schema, workload, "
                "privacy), or optimal_noise(domain.to_finite_set(), ...) for a small domain"
            )
        return _Lattice.build(self._points.points, self.noise, self.noise.covariance, self.privacy.to_zcdp().rho)

    @cached_property
    def covariance(self) -> FactorCovariance:
        """Covariance of the released estimate, as really drawn."""
        lattice = self._lattice
        scale = lattice.size * lattice.noise_scale / self._divisor if lattice.rank else 1.0
        return FactorCovariance(lattice.unit_factor, scale)

    @property
    def standard_deviation(self) -> Array:
        """Of every released coordinate, shape (d,)."""
        return self.covariance.standard_deviation()

    @property
    def error(self) -> float:
        """``‖sd‖_p`` of the released estimate."""
        return self.covariance.error(self.noise.p)

    @property
    def rounding_bias(self) -> Array:
        """Bound on how far rounding moves the mean, or each record's term of the sum, shape (d,)."""
        return self._lattice.bias(self._points.points)

    @property
    def _divisor(self) -> int:
        return 1 if self.n is None else int(self.n)

    def release(
        self,
        data: ArrayLike | None = None,
        *,
        counts: ArrayLike | None = None,
        ledger: object = None,
        id: object = None,
    ) -> Release:
        """Draw once, privately.

        Args:
            data: row indices into the listed points, shape (n,), or exact rows of them, shape (n, d).
            counts: instead of data, how many records sit at each listed point, shape (N,).
            ledger: not available yet.
            id: not available yet.

        Returns:
            A :class:`Release`: the mean under replacement, the sum under add/remove.

        Raises:
            DataError: records outside the domain, wrong shape or number; shows no value.
        """
        if ledger is not None or id is not None:
            raise NotAvailableError(
                "release: ledgers are not available yet; add up `privacy['rho_charged']` of your releases"
            )
        lattice = self._lattice
        found = self._counts(data, counts)
        exact = lattice.sums(found)
        noisy = [value + noise for value, noise in zip(exact, lattice.draw(), strict=True)]
        return self._decode(noisy, self._offset(found), private=True)

    def simulate(self, data: ArrayLike | None, rng: np.random.Generator, *, counts: ArrayLike | None = None) -> Release:
        """The same estimate with floating-point noise from ``rng``: for studies, NOT private.

        Args:
            data: as in :meth:`release`.
            rng: a numpy Generator.
            counts: as in :meth:`release`.
        """
        lattice = self._lattice
        noise = np.rint(rng.normal(scale=lattice.scale, size=lattice.rank)) if lattice.rank else []
        found = self._counts(data, counts)
        drawn = [value + int(extra) for value, extra in zip(lattice.sums(found), noise, strict=True)]
        return self._decode(drawn, self._offset(found), private=False)

    def dp_event(self) -> NoReturn:
        """Not available yet."""
        raise NotAvailableError(
            "dp_event is not available yet; describe a release as ZCDpEvent(rho=mechanism.rho_charged)"
        )

    @property
    def rho_charged(self) -> float:
        """What OpenDP's map charges for one release; zero when there is nothing to protect."""
        return self._lattice.query.rho if self._lattice.rank else 0.0

    def _offset(self, counts: list[int]) -> Array:
        """Mean of the records' origins: one point for all, or one for each component of a policy graph.

        How many records are in a component is public, by the policy's own declaration.
        """
        rows = _origin_rows(self._points.points, self.noise.neighbors)
        if rows is None or not rows.any():
            return self._lattice.origins[0]
        inside = np.bincount(rows, weights=counts, minlength=len(counts))
        return inside @ self._points.points / self._divisor

    def _decode(self, lattice_sums: list[int], offset: Array, *, private: bool) -> Release:
        lattice = self._lattice
        step = Fraction(2) ** -lattice.bits / self._divisor
        coordinates = np.array([float(value * step) for value in lattice_sums])
        estimate = lattice.size * (lattice.unit_factor @ coordinates) + offset
        record = self.privacy.as_dict() | {
            "neighbors": str(self.noise.neighbors),
            "published_exactly": _published(self.noise.neighbors),
            "unit": "one record",
            "rho_charged": self.rho_charged,
            "integer_sensitivity_squared": lattice.query.sensitivity_squared if lattice.rank else 0,
            "lattice_bits": lattice.bits,
            "scale": lattice.scale,
            "certified_gap": self.noise.gap,
        }
        return Release(estimate, self.covariance, record, private)

    def _counts(self, data: ArrayLike | None, counts: ArrayLike | None) -> list[int]:
        """How many records sit at each listed point, as Python integers."""
        if (data is None) == (counts is None):
            raise ParameterError("release: expected either data or counts=")
        given = _array(data if counts is None else counts)
        found = self._count_rows(given) if counts is None else self._check_counts(given)
        if self.n is not None and sum(found) != self.n:
            raise DataError(
                f"release: expected exactly n = {self.n} records, as stated to the mechanism; got another number"
            )
        return found

    def _check_counts(self, counts: NDArray) -> list[int]:
        size = self._points.cardinality
        if counts.shape != (size,) or not np.issubdtype(counts.dtype, np.integer):
            raise DataError(
                f"release: expected integer counts of shape ({size},), got {_kind(counts)} of shape {counts.shape}"
            )
        if (counts < 0).any():
            raise DataError("release: expected counts >= 0")
        return [int(c) for c in counts]

    def _count_rows(self, data: NDArray) -> list[int]:
        size, dim = self._points.points.shape
        if data.ndim == 1 and (data.size == 0 or np.issubdtype(data.dtype, np.integer)):
            indices = data.astype(np.int64)
            if ((indices < 0) | (indices >= size)).any():
                raise DataError(f"release: expected row indices in 0..{size - 1}, got one outside")
        elif data.ndim == 2 and data.shape[1] == dim and data.dtype.kind in "biuf":
            rows = {point.tobytes(): i for i, point in reversed(list(enumerate(self._points.points + 0.0)))}
            found = [rows.get(row.tobytes(), -1) for row in np.ascontiguousarray(data, dtype=np.float64) + 0.0]
            if -1 in found:
                raise DataError("release: expected every row to be one of the domain's points exactly, got another")
            indices = np.array(found, dtype=np.int64)
        else:
            raise DataError(
                f"release: expected integer row indices of shape (n,) or rows of shape (n, {dim}), "
                f"got {_kind(data)} with {data.ndim} dimensions"
            )
        return [int(c) for c in np.bincount(indices, minlength=size)]


def _array(values: ArrayLike | None) -> NDArray:
    """``values`` as an array; numpy's own complaints may quote them."""
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        pass
    raise DataError("release: expected a regular array of numbers, got ragged or mixed values")


def _kind(array: NDArray) -> str:
    """The kind of numbers in an array; a text type's own name would tell the length of the longest."""
    return {"b": "booleans", "i": "integers", "u": "integers", "f": "floats", "c": "complex numbers"}.get(
        array.dtype.kind, "something else"
    )


@dataclass(frozen=True, eq=False)
class _Lattice:
    """The integer strategy: record i contributes ``strategy[i] ≈ 2^bits · b_i``, where point_i = origins[i] + L b_i."""

    strategy: list[list[int]]
    bits: int
    query: IntegerQuery
    unit_factor: Array
    size: float
    origins: Array

    @classmethod
    def build(cls, points: Array, noise: OptimalNoise, covariance: FactorCovariance, rho: float) -> "_Lattice":
        rows = _origin_rows(points, noise.neighbors)
        origins = np.zeros_like(points) if rows is None else points[rows]
        size = covariance.scale
        found = strategy(covariance.unit_factor, (points - origins) / size)
        check_range(found, np.abs(points - origins).max(axis=0) / size)
        if covariance.unit_factor.shape[1] == 0:
            return cls([[] for _ in points], 0, IntegerQuery(1, 1.0), covariance.unit_factor, size, origins)
        length = math.sqrt(noise.sensitivity_squared / (2 * rho))
        bits = _SCALE_BITS - math.frexp(length)[1]
        if not (length > 0 and _MIN_BITS <= bits <= MAX_BITS):
            raise ParameterError(
                f"GaussianMechanism: rho = {rho:.3g} needs a lattice of 2^{-bits} per unit of noise, expected between "
                f"2^-{MAX_BITS} and 2^-{_MIN_BITS}; hint: rho between 1e-12 and 1e100"
            )
        integers = [[int(x) for x in row] for row in np.rint(np.ldexp(found.coordinates, bits))]
        query = IntegerQuery(_largest_change(integers, bits, noise.neighbors), rho)
        return cls(integers, bits, query, covariance.unit_factor, size, origins)

    @property
    def rank(self) -> int:
        return self.unit_factor.shape[1]

    @property
    def scale(self) -> float:
        return self.query.scale if self.rank else 0.0

    @property
    def noise_scale(self) -> float:
        """Standard deviation of the drawn noise in units of the strategy."""
        return math.ldexp(self.scale, -self.bits)

    def bias(self, points: Array) -> Array:
        """Largest difference between a point and what its integers decode to, in extended precision."""
        wide = np.longdouble
        integers = np.array([[math.ldexp(x, -self.bits) for x in row] for row in self.strategy])
        integers = integers.reshape(len(self.strategy), self.rank)
        decoded = self.size * (integers.astype(wide) @ self.unit_factor.T.astype(wide)) + self.origins
        decoding = (
            np.abs(points).max(axis=0)
            + np.abs(self.origins)
            + self.size * np.abs(integers) @ np.abs(self.unit_factor.T)
        )
        rounding = 4 * (self.rank + 2) * np.finfo(np.float64).eps * decoding.max(axis=0)
        return (np.abs(decoded - points).max(axis=0) + rounding).astype(np.float64)

    def sums(self, counts: list[int]) -> list[int]:
        """Exact integer totals of the strategy over all records, one for each of its coordinates."""
        present = [(count, row) for count, row in zip(counts, self.strategy, strict=True) if count]
        return [sum(count * row[k] for count, row in present) for k in range(self.rank)]

    def draw(self) -> list[int]:
        return self.query.draw(self.rank) if self.rank else []


def _origin_rows(points: Array, neighbors: Relation) -> NDArray[np.intp] | None:
    """For every point, the one its strategy is measured from, shape (N,); None for the origin of the space.

    A member of K where the number of records is public: coordinates that no neighbour can change come out exactly. For
    a policy graph, one in the same component, found from the points themselves: equal points are one value.
    """
    if neighbors == "add-remove":
        return None
    if not isinstance(neighbors, PolicyGraph):
        return np.zeros(len(points), dtype=np.intp)
    return PolicyGraph.from_edges(neighbors.edges, points).origins()


def _published(neighbors: Relation) -> str:
    """What the relation itself makes public."""
    if neighbors == "add-remove":
        return "nothing"
    several = isinstance(neighbors, PolicyGraph) and neighbors.parts > 1
    return "number of records" + (" in each component of the policy graph" if several else "")


def _largest_change(integers: list[list[int]], bits: int, neighbors: Relation) -> int:
    """Largest squared length, or squared distance between neighbouring rows: exact, or an integer bound 1e-12 above."""
    if neighbors == "add-remove":
        return max(sum(x * x for x in row) for row in integers)
    count, rank = len(integers), len(integers[0])
    if isinstance(neighbors, PolicyGraph):
        return max(
            (sum((x - y) ** 2 for x, y in zip(integers[i], integers[j], strict=True)) for i, j in neighbors.edges),
            default=0,
        )
    if count * count * rank <= _EXACT_PAIR_ENTRIES:
        rows = np.array(integers, dtype=object)
        changes = (int(np.square(rows[i + 1 :] - rows[i]).sum(axis=1).max()) for i in range(count - 1))
        return max(changes, default=0)
    rounded = np.array([[math.ldexp(x, -bits) for x in row] for row in integers])
    lengths = np.linalg.norm(rounded, axis=1) * (1 + 8 * rank * np.finfo(np.float64).eps)
    return math.ceil(Fraction(largest_pair(Strategy(rounded, lengths, np.zeros(rank)))) * Fraction(4) ** bits)
