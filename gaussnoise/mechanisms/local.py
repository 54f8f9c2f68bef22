"""Unbiased means under local privacy, from one message of each user to a server."""

import hashlib
import math
import os
import secrets
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from domains.algebra.members import contains, magnitudes, near_members
from domains.domain import AbstractDomain
from domains.errors import DomainTooLargeError
from domains.floats import Array
from domains.sets.finite import FiniteSet

from ..bounds.bound import Bound
from ..bounds.door import lower_bound
from ..errors import CertificateError, DataError, OutputError, ParameterError, not_a_generator
from ..files.archive import DAMAGE, damaged, read_arrays, write_arrays
from ..noise.covariance import FactorCovariance
from ..noise.file import INTEGERS, described, rebuilt, verified
from ..noise.optimal_noise import OptimalNoise
from ..noise.solve import gamma
from ..numerics.norms import norm
from ..privacy.definitions import LocalDP
from ..records import as_array, check_finite, check_on_outside, indices_in, map_into, real_rows
from ..solvers.bodies.body import left_inverse
from ..solvers.progress import interrupts_pass
from ..text import estimate_text, guarantee_text
from .randomizers import Bytes, Codebook, point_release, privunit, privunitg

_RANDOMIZERS = {"privunitg": privunitg, "privunit": privunit, "point-release": point_release}
_RANDOMIZERS |= {"randomized-response": point_release}  # another name, for one dimension
_MOST_DIMENSIONS = 4096
_LEAST_EPSILON = 1e-9
_DECODED = 2**21  # largest count of numbers decoded at once: 16 MB
_LABEL = 4  # length in bytes
_SLACK = 2.0**-32  # largest relative distance from the body at which a record is a rounded member
_FORMAT = "gaussnoise.local/1"

Outside = Literal["refuse", "project", "drop"]


@final
@dataclass(frozen=True, eq=False)
class LocalEstimate:
    """A mean that is estimated from private messages, and safe to publish if ``private`` is true.

    Attributes:
        estimate: the unbiased estimate of the mean, shape (d,).
        standard_deviation: upper bounds, for all possible records, shape (d,).
        n: number of messages.
        privacy: a record of the privacy guarantee and of the randomiser.
        private: False for simulations, whose numbers must not be published.

    >>> flip = gn.LocalMechanism(gn.LpBall(1, 2), gn.LocalDP(1.0))
    >>> answer = flip.aggregate(flip.reports(np.zeros((100, 1))))
    >>> answer.n, f"{answer.standard_deviation[0]:.4f}"  # coth(1/2) / 10
    (100, '0.2164')
    """

    estimate: Array
    standard_deviation: Array
    n: int
    privacy: dict[str, object]
    private: bool

    def __repr__(self) -> str:
        said = guarantee_text(self.privacy, self.private)
        return f"LocalEstimate({self.estimate.size} coordinates from {self.n} messages, {said})"

    def __str__(self) -> str:
        title = f"LocalEstimate of {self.n} messages by {self.privacy['randomizer']}"
        return estimate_text(
            title, self.estimate, self.privacy, self.private, self.standard_deviation
        )


@final
@dataclass(frozen=True, eq=False)
class LocalMechanism:
    r"""A mechanism for means of records that never leave their users.

    Let M = A A' and v be the optimum of ``γ_p(K)``: K is in the ellipsoid of M around v. A user's
    record x becomes ``y = A⁻¹(x − v)`` in the unit ball of R^r; y is rounded without bias to a unit
    vector, and randomised. With y = ‖y‖ŷ, the decoded message has mean x and covariance ``A (α (1 −
    ŷŷ') + β ŷŷ' − yy') A' ⪯ β M``, where the randomiser determines α <= β.

    Formal guarantees:
        * ε-local differential privacy of one message, for the floating-point program: messages are
          from a finite set, and the probabilities of one message under two records differ by at
          most a rational factor, which is at most e^ε. All randomness comes from the operating
          system. The proof, in ``gaussnoise.mechanisms.randomizers``, assumes nothing else about
          the code. A user who reports k times is protected at kε.
        * This guarantee holds for all K, M and v, from any source: y is shortened to the unit ball,
          and the proof holds for every y. So the guarantee also holds for a mechanism that
          :meth:`load` read from an untrusted server's file.
        * The guarantee does not cover the running time of a report, nor the fact that a record
          outside K is refused. With ``on_outside="drop"``, no record is refused.
        * The estimate is unbiased over records in K, up to rounding and a quadrature error of
          1e-12. A user who sends a false message can change the sum by twice the length of a
          message; local privacy cannot prevent this.

    ``randomizer``: choose "privunit" for vectors and "randomized-response" for segments, r = 1.
    Each entry below begins with the total variance of a unit vector's message, :attr:`squared_norm`
    − 1, at (r, ε) = (2, 8), (3, 2), (10, 4), (100, 1):

        * "privunit", the default: 0.022, 3.71, 3.70, 633. A cap of k of N candidates on the sphere;
          the limit N → ∞ is PrivUnit (Bhowmick, Duchi, Freudiger, Kapoor & Rogers 2018). It has the
          least variance of the first three at every r >= 2 and ε that we computed; for r = 1 it is
          randomised response.
        * "privunitg": 0.205, 4.82, 4.36, 637. The same with normal candidates; the limit is
          PrivUnitG (Asi, Feldman & Talwar 2022). "privunit" and "privunitg" are within 1 % of their
          limits up to an ε of about 8 in hundreds of dimensions, and 4 in thousands. The stated
          covariance is exact for the finite N.
        * "point-release": 1.47, 5.90, 15.1, 731. One bit about a random direction (Duchi, Jordan &
          Wainwright 2018; Błasiok, Bun, Nikolov & Steinke 2019; the choice of Nikolov & Tang 2023,
          Theorem 17), with α = β. Its variance is near that of "privunit" for small ε, and hardly
          decreases beyond ε = 4.
        * "randomized-response": one bit, for segments only. Its variance is ``coth²(ε/2) − y²``
          times M. At the ends of the segment, y² = 1, this is the least possible, 1/sinh²(ε/2).

    Args:
        domain: K, with at most 4096 coordinates.
        privacy: a :class:`LocalDP` with ε at least 1e-9.
        p: error norm in [2, ∞].
        randomizer: one of the four above.

    Raises:
        ParameterError: the privacy guarantee is not LocalDP, ε is too small, the randomizer is
            unknown or only for segments, the domain is one point, or p < 2.
        DomainTooLargeError: the domain has more than 4096 coordinates.

    Warns:
        ConvergenceWarning: γ_p(K) is not known to 1e-6; all guarantees still hold.

    Source: Nikolov & Tang (2023), Theorem 17.

    >>> mechanism = gn.LocalMechanism(gn.LpBall(3, 2), gn.LocalDP(2.0))
    >>> messages = [mechanism.report([0.6, 0.0, 0.8]) for user in range(100)]
    >>> len(messages[0])  # bytes
    21
    >>> answer = mechanism.aggregate(messages)
    >>> answer.estimate.shape, answer.n
    ((3,), 100)
    >>> # root total variance; least of any
    >>> print(f"{mechanism.error(100):.3f} {mechanism.bound(100).error:.3f}")
    0.217 0.074
    >>> coin = gn.LocalMechanism(gn.LpBall(1, 2), gn.LocalDP(1.0), randomizer="randomized-response")
    >>> print(f"{coin.error(1):.6f}")  # coth(1/2)
    2.163953
    """

    domain: AbstractDomain
    privacy: LocalDP
    _: KW_ONLY
    p: float = 2
    randomizer: Literal["privunit", "privunitg", "point-release", "randomized-response"] = (
        "privunit"
    )

    def __post_init__(self) -> None:
        if not isinstance(self.privacy, LocalDP):
            raise ParameterError(
                f"LocalMechanism: expected LocalDP(epsilon), got {self.privacy!r:.50}; hint: "
                "LocalDP(1.0); the other "
                "guarantees are those of a trusted server, for GaussianMechanism"
            )
        if not self.privacy.epsilon >= _LEAST_EPSILON:
            raise ParameterError(
                f"LocalMechanism: expected epsilon >= {_LEAST_EPSILON:g}, got "
                f"{self.privacy.epsilon!r}; hint: a budget this small reports nothing but noise"
            )
        if self.randomizer not in tuple(_RANDOMIZERS):
            names = " or ".join(f'"{name}"' for name in _RANDOMIZERS)
            raise ParameterError(
                f"LocalMechanism: expected randomizer={names}, got {self.randomizer!r}"
            )
        if isinstance(self.domain, AbstractDomain) and self.domain.dim > _MOST_DIMENSIONS:
            raise DomainTooLargeError(
                f"LocalMechanism: {self.domain.dim:.3g} coordinates, more than "
                f"{_MOST_DIMENSIONS}; hint: every user "
                "handles vectors of that length: split the questions among the users"
            )
        self._codebook  # noqa: B018 (solved now, so that bad arguments are refused before data are read)

    @classmethod
    def _of(cls, noise: OptimalNoise, privacy: LocalDP, randomizer: Any) -> "LocalMechanism":
        """Return the mechanism for an optimal noise that is already known."""
        self = object.__new__(cls)
        vars(self)["noise"] = noise
        self.__init__(noise.domain, privacy, p=noise.p, randomizer=randomizer)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalMechanism._of, (self.noise, self.privacy, self.randomizer)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the parameters for users and server to a ``.npz`` file of plain numbers and text.

        Users and server must share this file: another machine may find another M for the same
        arguments, and messages made with different M cannot be aggregated.

        Raises:
            InvalidDomainError: a domain of your own class without ``stored_as``.
        """
        header, arrays = described(self.noise)
        header |= {
            "format": _FORMAT,
            "epsilon": self.privacy.epsilon,
            "randomizer": self.randomizer,
        }
        write_arrays(path, header, arrays)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "LocalMechanism":
        """Read a mechanism that :meth:`save` wrote; the file may come from an untrusted source.

        Reading runs no code from the file. The codebook is built here, from the ε that ``privacy``
        shows, so every message is ε-private for any content of the file. But the author of the file
        chose ε and K: read ``privacy`` and ``domain`` before use, and report with
        ``on_outside="drop"``. With "refuse", the author would learn which records are outside K.

        Raises:
            OutputError: the file cannot be read.
            CertificateError: the file is of another kind, or the noise in it does not pass
                :meth:`OptimalNoise.verify`.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     gn.LocalMechanism(gn.LpBall(3, 2), gn.LocalDP(2.0)).save(f"{folder}/survey.npz")
        ...     survey = gn.LocalMechanism.load(f"{folder}/survey.npz")
        >>> survey.privacy, survey.domain
        (LocalDP(epsilon=2.0), LpBall(3, q=2))
        >>> len(survey.report([0.6, 0.0, 0.8], on_outside="drop"))
        21
        """
        try:
            header, arrays = read_arrays(path, _FORMAT, INTEGERS)
            if type(header["epsilon"]) is not float or type(header["randomizer"]) is not str:
                raise CertificateError(
                    "load: expected a number epsilon and the name of a randomizer"
                )
            noise = rebuilt(header, arrays)
            if not noise.shifted or noise.domain.dim > _MOST_DIMENSIONS:
                raise CertificateError(
                    f"load: expected the optimum of gamma(), of at most {_MOST_DIMENSIONS} "
                    "coordinates"
                )
            return LocalMechanism._of(
                verified(noise), LocalDP(header["epsilon"]), header["randomizer"]
            )
        except (CertificateError, OutputError):
            raise
        except DAMAGE as error:
            reason = type(error).__name__
        raise damaged(path, "LocalMechanism.save", reason)

    @cached_property
    def noise(self) -> OptimalNoise:
        """The optimal noise of the domain. The mechanism uses its covariance M and its center v."""
        with (
            interrupts_pass()
        ):  # an interrupted solver must stop the call, and not return worse noise
            return gamma(self.domain, self.p)

    @cached_property
    def _factor(self) -> FactorCovariance:
        M = self.noise.covariance
        return M if isinstance(M, FactorCovariance) else FactorCovariance(M.factor(), 1.0)

    @cached_property
    def _whitening(self) -> Array:
        return left_inverse(self._factor.unit_factor)

    @property
    def dim(self) -> int:
        """The dimension r of the domain's affine hull, the smallest flat that contains the domain.

        Each user randomises a unit vector in R^r.
        """
        return self._factor.unit_factor.shape[1]

    @cached_property
    def _codebook(self) -> Codebook:
        if self.dim == 0:
            raise ParameterError(
                "LocalMechanism: the domain is a single point, which is its mean; nothing to report"
            )
        if self.randomizer == "randomized-response" and self.dim != 1:
            raise ParameterError(
                "LocalMechanism: randomized-response is for segments, r = 1; this domain has r = "
                f'{self.dim}; hint: randomizer="privunit" is the best for more dimensions'
            )
        return _RANDOMIZERS[self.randomizer](self.dim, self.privacy.epsilon)

    @property
    def message_bytes(self) -> int:
        """The length in bytes of one user's message."""
        return len(self._label) + self._codebook.message_bytes

    @cached_property
    def _label(self) -> bytes:
        """The first bytes of each message, a digest of the mechanism's codebook and decoder."""
        # six digits: small rounding errors do not change the digest, but it differs if the linear
        # algebra of another machine has rotated the factor
        code, M = self._codebook, self._factor
        exact = repr((code.dim, code.pairs, code.closest, code.spherical, code.hits, code.bits))
        size = float(np.abs(M.unit_factor).max())
        reach = M.scale * size
        rounded = [
            np.rint(values * 2.0**20) + 0.0
            for values in (
                M.unit_factor / size,
                self.noise.center / max(reach, float(np.abs(self.noise.center).max())),
            )
        ]
        content = (
            exact.encode()
            + b"".join(values.tobytes() for values in rounded)
            + f"{reach:.5e}".encode()
        )
        return hashlib.sha256(content).digest()[:_LABEL]

    @property
    def squared_norm(self) -> float:
        """The mean squared length of a decoded message about a unit vector: its variance + 1."""
        return (self.dim - 1) * self._codebook.across + self._codebook.along

    @property
    def covariance_bound(self) -> FactorCovariance:
        """An upper bound on the covariance of one decoded message, for all records.

        Divided by n, it is a bound for the mean of n messages.
        """
        return FactorCovariance(
            self._factor.unit_factor, self._factor.scale * math.sqrt(self._codebook.along)
        )

    def covariance(self, record: "ArrayLike") -> FactorCovariance:
        """Return the covariance of the decoded message about a *hypothetical* record.

        For a real record it is private.

        Args:
            record: as for :meth:`report`.

        Raises:
            DataError: as for :meth:`report`.

        >>> flip = gn.LocalMechanism(gn.LpBall(1, 2), gn.LocalDP(1.0))
        >>> bool(flip.covariance([1.0]).diagonal() < flip.covariance([0.0]).diagonal())
        True
        """
        y = self._coordinates(as_array("covariance", record)[None], "refuse")[0]
        length, r = float(np.linalg.norm(y)), self.dim
        across, along = self._codebook.across, self._codebook.along
        # a message has the second moment across · I + (along − across) uu', where u = ±y/‖y‖, or
        # is uniform for y = 0
        root = math.sqrt(across if length else across + (along - across) / r) * np.eye(r)
        if length:
            direction = y / length
            root += (math.sqrt(max(along - length**2, 0.0)) - math.sqrt(across)) * np.outer(
                direction, direction
            )
        return FactorCovariance(self._factor.unit_factor @ root, self._factor.scale)

    def error(self, n: int) -> float:
        """Return an upper bound on ``‖sd‖_p`` of the average of n messages, for all records.

        In the symbols of the class, its square is at most ``α ‖diag M‖ + (β − α) sup ‖(Aŷ)²‖``
        in norms of order p/2. The last norm is at most ``‖diag M‖``, and at most M's largest
        eigenvalue. If α = β (point release, randomised response), records of K near v approach the
        bound.

        Raises:
            ParameterError: n not a positive integer.
        """
        if not isinstance(n, int | np.integer) or n < 1:
            raise ParameterError(f"error: expected an integer number of messages n >= 1, got {n!r}")
        across, along = self._codebook.across, self._codebook.along
        total = norm(self._factor.standard_deviation(), self.p)
        longest = (
            self._factor.scale * float(np.linalg.norm(self._factor.unit_factor, 2)) * (1 + 1e-12)
        )
        more = math.sqrt(along - across) * min(total, longest)
        return math.hypot(math.sqrt(across) * total, more) / math.sqrt(n)

    def bound(self, n: int) -> Bound:
        """Return the :func:`lower_bound` for unbiased local mechanisms without interaction.

        Raises:
            ParameterError: n not a positive integer.

        >>> mechanism = gn.LocalMechanism(gn.LpBall(3, 2), gn.LocalDP(2.0), randomizer="privunit")
        >>> print(f"{mechanism.bound(100).factor(mechanism.error(100)):.2f}")
        2.94
        """
        return lower_bound(self.domain, self.privacy, n=n, p=self.p)

    def report(self, record: "ArrayLike", *, on_outside: Outside = "refuse") -> bytes:
        """Return one user's message: ε-locally private, drawn anew at every call, never seeded.

        Args:
            record: a member of K, shape (d,); or a row index of a :class:`FiniteSet`.
            on_outside: the rule for a record outside K: "refuse"; "project" it into a body, as
                :meth:`GaussianMechanism.release` does; or "drop", which sends a message for v
                instead. "project" and "drop" bias the mean, and refuse no record for its values.

        Returns:
            A message of :attr:`message_bytes` bytes.

        Raises:
            DataError: ``record`` is not a record, not finite, or outside K; the error shows no
                value. Others can see that this user reports nothing.
            NotAvailableError: "project" is chosen, but no map into the domain is known.
        """
        given = as_array("report", record)
        if given.ndim > 1:
            raise DataError(
                f"report: expected one record, got an array of {given.ndim} dimensions; hint: "
                "reports()"
            )
        return self.reports(given[None], on_outside=on_outside)[0]

    def reports(self, records: "ArrayLike", *, on_outside: Outside = "refuse") -> list[bytes]:
        """Return the messages of many users, one for each row of ``records``, shape (n, d).

        Raises:
            DataError: as for :meth:`report`, for any of the records.
            NotAvailableError: as for :meth:`report`.
        """
        return self._messages(records, on_outside, secrets.token_bytes)

    def aggregate(self, messages: Iterable[bytes]) -> LocalEstimate:
        """Return an unbiased estimate of the mean of the reported records; the server calls this.

        Args:
            messages: messages from :meth:`report` of an equal mechanism.

        Raises:
            DataError: there are no messages, or one of them is not a message of this mechanism.
        """
        return self._estimate(messages, private=True)

    def simulate(
        self, data: "ArrayLike", rng: np.random.Generator, *, on_outside: Outside = "refuse"
    ) -> LocalEstimate:
        """Return a mean of simulated messages about the rows of ``data``, for studies. NOT PRIVATE.

        The random bytes come from ``rng``.
        """
        if not isinstance(rng, np.random.Generator):
            raise not_a_generator(rng)
        return self._estimate(self._messages(data, on_outside, rng.bytes), private=False)

    def _messages(self, records: "ArrayLike", on_outside: str, draw: Bytes) -> list[bytes]:
        code = self._codebook
        with np.errstate(
            all="ignore"
        ):  # a warning that became an error could show a record's numbers
            Y = self._coordinates(records, on_outside)
            return [self._label + code.message(code.unit(y, draw), draw) for y in Y]

    def _coordinates(self, records: "ArrayLike", on_outside: str) -> Array:
        """Return each record in whitened coordinates, shortened to the unit ball; 0 if dropped."""
        # A A' is the covariance of the noise, and v its center
        X, counted = self._members(records, on_outside)
        with np.errstate(all="ignore"):
            Y = ((X - self.noise.center) / self._factor.scale) @ self._whitening.T
            Y = np.where(counted[:, None] & np.isfinite(Y).all(axis=1, keepdims=True), Y, 0.0)
            size = np.maximum(
                np.abs(Y).max(axis=1, initial=0.0, keepdims=True), 1.0
            )  # squares must not overflow
            lengths = size * np.linalg.norm(Y / size, axis=1, keepdims=True)
            return Y / np.maximum(lengths, 1.0)

    def _members(self, records: "ArrayLike", on_outside: str) -> tuple[Array, NDArray[np.bool_]]:
        """Return a point for each record, and whether ``on_outside`` counts it as a member."""
        check_on_outside("report", on_outside)
        domain, given = self.domain, as_array("report", records)
        if isinstance(domain, FiniteSet) and given.ndim == 1 and given.dtype.kind in "iu":
            rows = indices_in("report", len(domain.points), given, others=on_outside == "drop")
            return domain.points[np.maximum(rows, 0)], rows >= 0
        given = real_rows("report", domain.dim, given)
        move = map_into(domain) if on_outside == "project" else None
        with np.errstate(all="ignore"):
            X = given.astype(np.float64)
            if on_outside == "refuse":
                check_finite("report", X)
            if move is not None:
                return move(X), np.ones(len(X), dtype=bool)
            size = float(magnitudes(domain).max())
            near = np.asarray(
                (np.abs(X) <= 2 * size).all(axis=1)
            )  # for others, squares could overflow
            X = np.where(near[:, None], X, self.noise.center)
            try:
                close = near_members(domain, X)
            except np.linalg.LinAlgError:
                close = None
            known = np.zeros(len(X), dtype=bool)
            if close is not None:
                known = np.linalg.norm(X - close, axis=1) <= _SLACK * size
            known[~known] = [contains(domain, x) for x in X[~known]]
            known &= near
        if on_outside == "refuse" and not known.all():
            raise DataError(
                "report: expected a record in the declared domain, got one outside; hint: widen "
                'the domain, on_outside="drop", or on_outside="project" where a map into it is '
                "known (both are biased)"
            )
        return X, known

    def _unlabelled(self, message: bytes) -> bytes:
        if not isinstance(message, bytes) or message[:_LABEL] != self._label:
            raise ValueError
        return message[_LABEL:]

    def _estimate(self, messages: Iterable[bytes], *, private: bool) -> LocalEstimate:
        code = self._codebook
        try:
            read = [code.read(self._unlabelled(message)) for message in messages]
        except (ValueError, TypeError):
            raise DataError(
                f"aggregate: expected messages of {self.message_bytes} bytes from report() of an "
                "equal mechanism, got something else; hint: save() one mechanism and load() it for "
                "users and server: other machines may solve for another with the same arguments"
            ) from None
        if not read:
            raise DataError("aggregate: expected at least one message")
        n = len(read)
        chunk = max(1, _DECODED // self.dim)
        mean = (
            sum(
                (code.decoded(read[i : i + chunk]).sum(axis=0) for i in range(0, n, chunk)),
                np.zeros(self.dim),
            )
            / n
        )
        estimate = self.noise.center + self._factor.scale * (self._factor.unit_factor @ mean)
        record: dict[str, object] = {
            **self.privacy.as_dict(),
            "randomizer": self.randomizer,
            "candidates": code.size,
            "closest": code.closest,
            "cap_probability": float(code.chance),
            "unit": "one message",
        }
        deviation = self.covariance_bound.standard_deviation() / math.sqrt(n)
        return LocalEstimate(estimate, deviation, n, record, private)
