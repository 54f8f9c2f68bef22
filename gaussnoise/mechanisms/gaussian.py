"""The unbiased mechanism with correlated Gaussian noise, for points and bodies."""

import hashlib
import os
from dataclasses import KW_ONLY, InitVar, dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from domains.description import describe
from domains.domain import AbstractDomain, AbstractFiniteDomain
from domains.floats import Array
from domains.sets.finite import FiniteSet

from ..bounds.bound import Bound, bound_of
from ..errors import DataError, NotAvailableError, ParameterError, not_a_generator, too_coarse
from ..files.pickling import PickledByArguments
from ..noise.agreement import ReplaceWithin
from ..noise.covariance import FactorCovariance
from ..noise.kronecker_covariance import KroneckerCovariance
from ..noise.optimal_noise import OptimalNoise
from ..noise.own import Covariance, own_noise
from ..noise.policy import PolicyGraph
from ..noise.problem import Relation
from ..noise.proportion import AddInProportion
from ..noise.stream_covariance import StreamCovariance
from ..numerics.rounding import rounded_up
from ..privacy.definitions import dp_event, gaussian_epsilon
from ..privacy.guarantee import AbstractPrivacy, check_gaussian
from ..privacy.lattice_bound import POINT_STEPS
from ..privacy.ledger import Ledger, ledger_and_id
from ..privacy.protected import Protected
from ..privacy.sampler import discrete_gaussian
from ..records import check_given, check_on_outside, counts_of, one_kind, real_rows
from ..text import SHOWN_DELTA, disclaimers, versions
from .body_lattice import BodyLattice
from .point_lattice import PointLattice, bits_for, origin_rows
from .release import Release

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent


_OUTSIDE = {
    "refuse": "refused",
    "project": "projected, each by itself",
    "drop": "dropped, each by itself",
}
_PROTECTED = (
    "one record, against anyone who sees only this release. The domain and its noise "
    "are assumed public."
)


@final
@dataclass(frozen=True, eq=False)
class GaussianMechanism(PickledByArguments):
    r"""A mechanism that releases unbiased means or sums of records, with correlated Gaussian noise.

    The covariance of the noise is ``M · sensitivity_squared / (2ρ n²)`` (without n² for sums),
    where M is the covariance of ``noise``.

    Listed points have coordinates ``b_i``, with ``point_i = origin + L b_i`` and ``M = L L'``.
    These coordinates are rounded to integers before any data are read. For bodies, every record is
    rounded to a public grid, without regard to other records. A release sums integers exactly, adds
    discrete Gaussian noise drawn by OpenDP, and only then decodes to real numbers.

    Formal guarantees:
        * ρ-zCDP for the stated relation, with a proven integer sensitivity of the *rounded*
          records. Rounding may put records slightly outside a body. The sensitivity covers this
          up to two limits: 1e-9 of the body's size, and 2⁻²⁶ of the size of the noise's ellipsoid.
          Records beyond either limit are refused. Whether a release is refused depends on the data.
        * ``standard_deviation`` and ``covariance`` are those of the noise that is drawn: for
          bodies they exceed the formula by a factor of about 1 + 3e-8, and by more for very thin
          bodies.
        * The estimate is unbiased up to ``rounding_bias``, a public bound, unless records are
          projected.

    Args:
        noise: the result of :func:`optimal_noise` or :func:`gamma`, which includes the domain and
            the neighbouring relation; or a :class:`Covariance` of your own. The mechanism chooses
            its scale, and ``.noise`` then states its gap to the optimum.
        privacy: :class:`zCDP`, :class:`ApproxDP`, :class:`GDP`, :class:`KL` or :class:`TV`.
        n: public number of records: required under replacement (means), forbidden under add/remove
            (sums).
        domain: for a :class:`Covariance` only, the domain that it protects.
        neighbors: for a :class:`Covariance` only, the relation, as in :func:`optimal_noise`.

    Raises:
        ParameterError: n is missing or forbidden, the privacy guarantee is not one that
            Gaussian noise satisfies, or the noise is for marginals.
        CovarianceError: the noise does not cover some direction of the sensitivity set.

    >>> noise = gn.optimal_noise(gn.FiniteSet(np.eye(3)))
    >>> mechanism = gn.GaussianMechanism(noise, gn.zCDP(0.5), n=1000)
    >>> print(f"{mechanism.error:.6f}")  # 2 / 1000
    0.002000
    >>> mechanism.release(counts=[500, 300, 200]).estimate.shape
    (3,)
    >>> disc = gn.GaussianMechanism(
    ...     gn.optimal_noise(gn.LpBall(2, 2), neighbors="add-remove"), gn.zCDP(0.5)
    ... )
    >>> disc.release([[0.6, 0.8], [0.1, -0.2]]).estimate.shape
    (2,)
    """

    noise: OptimalNoise
    privacy: AbstractPrivacy
    _: KW_ONLY
    n: int | None = None
    domain: InitVar[AbstractDomain | None] = None
    neighbors: InitVar[Any] = None

    def __post_init__(self, domain: AbstractDomain | None, neighbors: Any) -> None:
        given: Any = self.noise
        if isinstance(given, Covariance):
            relation = "replace" if neighbors is None else neighbors
            own = own_noise("GaussianMechanism", given, domain, 2, relation, 1e-6)
            object.__setattr__(self, "noise", own)
        elif domain is not None or neighbors is not None:
            raise ParameterError(
                "GaussianMechanism: expected domain= and neighbors= with a Covariance alone: noise "
                "from optimal_noise() has its own"
            )
        if not isinstance(self.noise, OptimalNoise):
            raise ParameterError(
                "GaussianMechanism: expected noise from optimal_noise() or gamma(), got "
                f"{type(self.noise).__name__}"
            )
        if isinstance(self.noise.neighbors, ReplaceWithin):
            raise ParameterError(
                "GaussianMechanism: expected noise that protects whole records, got public "
                "attributes; hint: plan(..., public=...).release, or a policy graph"
            )
        if isinstance(self.noise.neighbors, AddInProportion):
            raise ParameterError(
                "GaussianMechanism: expected noise that protects all records alike, got budgets "
                "that grow with numbers; hint: plan(..., gn.PerRecord(...)).release"
            )
        if not self._listed and self.noise.neighbors not in ("replace", "add-remove"):
            raise ParameterError(
                "GaussianMechanism: policy graphs join the listed points of a finite domain"
            )
        check_gaussian("GaussianMechanism", self.privacy, stacklevel=3)
        if self._sums and self.n is not None:
            raise ParameterError(
                "GaussianMechanism: add-remove neighbours have different numbers of records, so "
                "n is private and a "
                "mean cannot be calibrated to it; hint: leave n out and release sums"
            )
        if not self._sums and (not isinstance(self.n, int | np.integer) or self.n < 1):
            raise ParameterError(
                "GaussianMechanism: replacement releases a mean of n public records: "
                f"expected integer n >= 1, got {self.n!r}"
            )
        self._lattice  # noqa: B018 (built now, so that a bad covariance is refused before data are read)

    @property
    def _sums(self) -> bool:
        return self.noise.neighbors == "add-remove"

    @property
    def _listed(self) -> bool:
        return isinstance(self.noise.domain, AbstractFiniteDomain)

    @cached_property
    def _points(self) -> FiniteSet:
        domain = self.noise.domain
        if not isinstance(domain, AbstractFiniteDomain):
            raise TypeError("checked on construction")
        return domain.to_finite_set()

    @cached_property
    def _lattice(self) -> PointLattice | BodyLattice:
        given = self.noise.covariance
        if isinstance(given, KroneckerCovariance) and (dense := given.written_out()) is not None:
            given = dense
        if isinstance(given, StreamCovariance | KroneckerCovariance):
            raise ParameterError(
                "GaussianMechanism: the workload over time has too many ticks, or too large "
                "tables; hint: gn.streams.noise for training, gaussnoise.plan(..., "
                "over=gn.streams.Ticks(n)) for tables"
            )
        if not isinstance(given, FactorCovariance):
            raise ParameterError(
                "GaussianMechanism: marginals are released from tables; hint: "
                "gaussnoise.plan(schema, workload, "
                "privacy), or optimal_noise(domain.to_finite_set(), ...) for a small domain"
            )
        rho = self.privacy.to_zcdp(max(given.unit_factor.shape[1], 1), POINT_STEPS).rho
        if self._listed:
            lattice = PointLattice.build(self._points.points, self.noise, given, rho)
        else:
            lattice = BodyLattice.build(
                self.noise, given, rho, lambda length: bits_for(length, rho)
            )
        if lattice.rank and lattice.scale < POINT_STEPS:
            raise too_coarse("GaussianMechanism", lattice.scale)
        return lattice

    @cached_property
    def covariance(self) -> FactorCovariance:
        """The covariance of the noise in the released estimate."""
        lattice = self._lattice
        scale = lattice.size * lattice.noise_scale / self._divisor if lattice.rank else 1.0
        return FactorCovariance(lattice.unit_factor, scale)

    @property
    def standard_deviation(self) -> Array:
        """The standard deviation of the noise in the estimate, for every coordinate, shape (d,)."""
        return self.covariance.standard_deviation()

    @property
    def error(self) -> float:
        """The error of the released estimate: the p-norm of its standard deviations."""
        return self.covariance.error(self.noise.p)

    @cached_property
    def bound(self) -> Bound | None:
        """The lower bound on the error of every unbiased mechanism with the same privacy guarantee.

        The bound is None under policy graphs, and for budgets that grow with numbers in a record.

        >>> noise = gn.optimal_noise(gn.LpBall(3, 2), neighbors="add-remove")
        >>> mechanism = gn.GaussianMechanism(noise, gn.zCDP(0.1))
        >>> print(f"{mechanism.bound.factor(mechanism.error):.4f}")  # √((e^2ρ − 1) / 2ρ)
        1.0521
        """
        if isinstance(self.noise.neighbors, PolicyGraph) or self.privacy.scales:
            return None
        return bound_of(self.noise, self.privacy, self.n)

    @property
    def rounding_bias(self) -> Array:
        """An upper bound on the bias by rounding, for each coordinate, shape (d,).

        For means, it is the bias of the mean. For sums, it is the bias of each record.
        """
        lattice = self._lattice
        return (
            lattice.bias(self._points.points) if isinstance(lattice, PointLattice) else lattice.bias
        )

    @property
    def _divisor(self) -> int:
        return 1 if self.n is None else int(self.n)

    def release(
        self,
        data: "ArrayLike | None" = None,
        *,
        counts: "ArrayLike | None" = None,
        rows: "ArrayLike | None" = None,
        indices: "ArrayLike | None" = None,
        on_outside: Literal["refuse", "project", "drop"] = "refuse",
        ledger: Ledger | str | os.PathLike[str] | None = None,
        id: str | None = None,
    ) -> Release:
        """Return a private mean or sum of the records, with noise that is drawn anew.

        Args:
            data: records as rows, shape (n, d); for listed points, rows that equal them exactly.
            counts: instead of data, the number of records at each listed point, shape (N,).
            rows: another name for ``data``.
            indices: instead of data, the index of each record's listed point, shape (n,).
            on_outside: the rule for a record that is none of the listed points, or outside the
                body; NaN and infinity are outside. With "project" and "drop", no release is refused
                because of the values of records, but the answer is biased, and the size of the bias
                is private:

                * "refuse" the whole release: the fact that it was refused then depends on the data;
                * "project" every such record to a point of the body: to the nearest one for boxes
                  and Euclidean balls, else (ℓ_q balls, ellipsoids) to the one on the ray to the
                  center; a record with a NaN becomes the center;
                * "drop" every such record from a sum, under add/remove. The guarantee remains: a
                  dropped record adds zero, so all terms are in K ∪ {0}, and the sensitivity of
                  sums, ``sup ‖x‖`` in the noise's norm, is the same over this set as over K. "drop"
                  is available for listed points, and for bodies with a known map into them. It is
                  not available for means, because the public n counts all records.
            ledger: a :class:`Ledger` or its path. The release is first charged to the ledger's
                budget, then drawn once, and stored beside the ledger. A second run with the same
                arguments reads the stored release, even if the first run was interrupted.
            id: the name of this release in the ledger.

        Returns:
            A :class:`Release` of the mean under replacement, or of the sum under add/remove.

        Raises:
            DataError: records are outside the domain, not finite, or of the wrong shape or number;
                the message shows no value.
            NotAvailableError: "project" or "drop" is chosen, but no map into the domain is known.
            InvalidDomainError: a ledger is given for a domain of your own class without
                ``stored_as``, which has no description to compare.
            ParameterError: a ledger is given without an id, or "drop" for means.
            BudgetError: the ledger's budget does not allow the release; nothing was drawn.
            LedgerError: the ledger has another release under this id, or is unusable.
        """
        self._check_outside(on_outside)
        check_given("release", data, counts, rows, indices, listed=self._listed)
        record = self._record(
            private=True, on_outside=on_outside
        )  # all failures for reasons other than data come before data are read

        def released() -> Release:
            given = one_kind("release", data, rows, indices, listed=self._listed)
            return self._released(given, counts, on_outside, record)

        if (charged := ledger_and_id("release", ledger, id)) is None:
            return released()
        ledger, id = charged
        return ledger.once(
            id,
            cost=self.rho_charged,
            request=self._request | {"on_outside": on_outside},
            protects=Protected("one row", self._relation),
            target=None,
            draws=self._lattice.rank,
            write=lambda path: path.write_text(released().to_json(), encoding="utf-8"),
            read=lambda path: Release.load(path, self.covariance),
        )

    def _released(
        self,
        data: "ArrayLike | None",
        counts: "ArrayLike | None",
        on_outside: str,
        record: dict[str, object],
    ) -> Release:
        exact, offset = self._exact(data, counts, on_outside)
        noisy = [value + noise for value, noise in zip(exact, self._lattice.draw(), strict=True)]
        return Release(self._decoded(noisy, offset), self.covariance, record, private=True)

    def simulate(
        self,
        data: "ArrayLike | None",
        rng: np.random.Generator,
        *,
        counts: "ArrayLike | None" = None,
        rows: "ArrayLike | None" = None,
        indices: "ArrayLike | None" = None,
        on_outside: Literal["refuse", "project", "drop"] = "refuse",
    ) -> Release:
        """Return a simulated estimate for studies, with floats from ``rng`` as noise: NOT private.

        Args:
            data: as in :meth:`release`.
            rng: a numpy Generator.
            counts: as in :meth:`release`.
            rows: as in :meth:`release`.
            indices: as in :meth:`release`.
            on_outside: as in :meth:`release`.

        Raises:
            ParameterError: rng is not a Generator.
            DataError: as for :meth:`release`.
        """
        if not isinstance(rng, np.random.Generator):
            raise not_a_generator(rng)
        self._check_outside(on_outside)
        check_given("simulate", data, counts, rows, indices, listed=self._listed)
        data = one_kind("simulate", data, rows, indices, listed=self._listed)
        lattice = self._lattice
        noise = np.rint(rng.normal(scale=lattice.scale, size=lattice.rank)) if lattice.rank else []
        exact, offset = self._exact(data, counts, on_outside)
        drawn = [value + int(extra) for value, extra in zip(exact, noise, strict=True)]
        record = self._record(private=False, on_outside=on_outside)
        return Release(self._decoded(drawn, offset), self.covariance, record, private=False)

    def dp_event(self) -> "DpEvent":
        """Return the cost of one release as an event that the package dp-accounting can compose."""
        return dp_event(self.rho_charged)

    def to_opendp(self) -> Any:
        """Return the mechanism as an OpenDP measurement, to chain and compose with others.

        The input is row indices of the listed points, or records as rows, with symmetric distance
        for sums and change-one distance for means. The output is the estimate as a list, with
        zero-concentrated divergence: d records more or less (or changed) cost d² times
        :attr:`rho_charged`. OpenDP cannot inspect measurements made by others, so this call enables
        the features "contrib" and "honest-but-curious" of OpenDP, whose vetting does not cover this
        measurement. OpenDP converts row indices before this code sees them: error messages of
        OpenDP may show indices of a wrong kind, and OpenDP ignores masks.

        Raises:
            NotAvailableError: the relation is a policy graph, for which OpenDP has no distance.

        >>> sums = gn.GaussianMechanism(
        ...     gn.optimal_noise(gn.FiniteSet(np.eye(2)), neighbors="add-remove"), gn.zCDP(0.1)
        ... )
        >>> measurement = sums.to_opendp()
        >>> print(f"{measurement.map(1):.3f} {measurement.map(2):.3f}", len(measurement([0, 1, 1])))
        0.100 0.400 2
        """
        discrete_gaussian(1.0)  # raises if OpenDP is not usable

        from opendp.domains import atom_domain, user_domain, vector_domain
        from opendp.measurements import make_user_measurement
        from opendp.measures import zero_concentrated_divergence
        from opendp.metrics import change_one_distance, symmetric_distance
        from opendp.mod import enable_features

        if isinstance(self.noise.neighbors, PolicyGraph):
            raise NotAvailableError(
                "to_opendp: OpenDP has no distance for policy graphs; hint: release() here, and "
                "dp_event()"
            )
        enable_features("contrib", "honest-but-curious")
        rows = f"records in R^{self.noise.domain.dim}, as rows"
        name = "indices" if self._listed else "rows"
        return make_user_measurement(
            vector_domain(atom_domain(T="i64"))
            if self._listed
            else user_domain(rows, lambda records: True),
            symmetric_distance() if self._sums else change_one_distance(),
            zero_concentrated_divergence(),
            function=lambda records: self.release(**{name: records}).estimate.tolist(),
            privacy_map=lambda distance: rounded_up(
                Fraction(self.rho_charged) * int(distance) ** 2
            ),
            TO="Vec<f64>",
        )

    @property
    def _relation(self) -> str:
        """A text that identifies the neighbouring relation, with a hash for a policy graph."""
        if not isinstance(self.noise.neighbors, PolicyGraph):
            return str(self.noise.neighbors)
        return f"policy graph {hashlib.sha256(self.noise.neighbors.edges.tobytes()).hexdigest()}"

    @property
    def _request(self) -> dict[str, object]:
        """The public parameters of the mechanism, which a ledger stores and compares."""
        header, arrays = describe(self.noise.domain)
        digests = {
            name: [a.shape, hashlib.sha256(a.tobytes()).hexdigest()] for name, a in arrays.items()
        }
        return {
            "domain": [header, digests],
            "neighbors": self._relation,
            "p": self.noise.p,
            "n": None if self.n is None else int(self.n),
            "rho": f"{self.rho_charged:.9g}",
            "standard deviations": [f"{x:.6g}" for x in self.standard_deviation],
        }

    @property
    def rho_charged(self) -> float:
        """The ρ (zCDP) of one release, by OpenDP's privacy map; zero if the noise has rank zero."""
        return self._lattice.query.rho if self._lattice.rank else 0.0

    def _check_outside(self, on_outside: str) -> None:
        """Raise unless the rule ``on_outside`` can be used for records outside the domain."""
        check_on_outside("release", on_outside)
        if on_outside == "drop" and not self._sums:
            raise ParameterError(
                'release: on_outside="drop" is for sums: a mean of n public records counts every '
                'one; hint: on_outside="project" for bodies, or neighbors="add-remove"'
            )
        if on_outside == "project" and self._listed:
            raise NotAvailableError(
                'release: on_outside="project" maps into convex bodies; listed points are matched '
                'exactly; hint: on_outside="drop" leaves other rows out of a sum'
            )

    def _exact(
        self, data: "ArrayLike | None", counts: "ArrayLike | None", on_outside: str
    ) -> tuple[list[int], Array]:
        """Return the exact integers without noise, and the public vector to add after decoding."""
        lattice = self._lattice
        if isinstance(lattice, BodyLattice):
            return lattice.sums(self._records(data), on_outside), lattice.origin
        present = self._counts(data, counts, on_outside)
        return lattice.sums(present), self._offset(present)

    def _records(self, data: "ArrayLike | None") -> NDArray:
        """Return the records as an array (n, d); only their number is checked, not their values."""
        records = real_rows("release", self.noise.domain.dim, data)
        self._check_number(len(records))
        return records

    def _check_number(self, records: int) -> None:
        if self.n is not None and records != self.n:
            raise DataError(
                f"release: expected exactly n = {self.n} records, as stated to the mechanism; got "
                "another number"
            )

    def _offset(self, counts: list[int]) -> Array:
        """Return the public mean of the records' origins, which is added to the decoded answer."""
        # the origin: a listed point, one for each component of a policy graph, whose size is public
        points = self._points.points
        rows = origin_rows(points, self.noise.neighbors)
        if rows is None:
            return np.zeros(points.shape[1])
        if not rows.any():
            return points[0]
        inside = [0] * len(points)
        for row, count in zip(rows.tolist(), counts, strict=True):
            inside[row] += count
        # round only the totals of components: they are public, so their rounding reveals nothing
        return np.array([total / self._divisor for total in inside]) @ points

    def _decoded(self, lattice_sums: list[int], offset: Array) -> Array:
        lattice = self._lattice
        step = Fraction(2) ** -lattice.bits / self._divisor
        coordinates = np.array([float(value * step) for value in lattice_sums])
        return lattice.size * (lattice.unit_factor @ coordinates) + offset

    def _record(self, *, private: bool, on_outside: str) -> dict[str, object]:
        """Return the public facts of a release: privacy, noise, bound and versions; no data."""
        lattice = self._lattice
        record = self.privacy.as_dict(max(lattice.rank, 1), POINT_STEPS) | {
            "neighbors": str(self.noise.neighbors),
            "published_exactly": _published(self.noise.neighbors),
            "unit": "one record",
            "rho_charged": self.rho_charged,
            "integer_sensitivity_squared": lattice.query.sensitivity_squared if lattice.rank else 0,
            "lattice_bits": lattice.bits,
            "scale": lattice.scale,
            "certified_gap": self.noise.gap,
            "lower_bound": None if self.bound is None else self.bound.as_dict(self.error),
            "records_outside": _OUTSIDE[on_outside],
            "domain": repr(self.noise.domain),
            "libraries": dict(versions("gaussnoise", "opendp", "numpy", "scipy")),
            "disclaimers": disclaimers(_PROTECTED, private),
        }
        if private and self.rho_charged:
            epsilon = gaussian_epsilon(
                self.rho_charged, SHOWN_DELTA, draws=lattice.rank, steps=POINT_STEPS
            )
            record["epsilon_delta"] = {"epsilon": epsilon, "delta": SHOWN_DELTA}
        return record

    def _counts(
        self, data: "ArrayLike | None", counts: "ArrayLike | None", on_outside: str = "refuse"
    ) -> list[int]:
        counted = counts_of(
            "release", self._points.points, data, counts, others=on_outside == "drop"
        )
        self._check_number(sum(counted))
        return counted


def _published(neighbors: Relation) -> str:
    """Return, in words, the statistics that the neighbouring relation treats as public."""
    if neighbors == "add-remove":
        return "nothing"
    several = isinstance(neighbors, PolicyGraph) and neighbors.parts > 1
    return "number of records" + (" in each component of the policy graph" if several else "")
