"""The result of a mechanism: an unbiased estimate, with the covariance of its noise."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from domains.domain import AbstractDomain
from domains.floats import Array

from ..errors import CertificateError, ParameterError
from ..files.disk import MOST_RECORD, read_json, reading
from ..files.saved import AbstractSaved
from ..layout import on_screen
from ..noise.covariance import AbstractCovariance
from ..numerics.intervals import ConfidenceInterval, Contrast, confidence_interval
from ..text import estimate_text, guarantee_text
from .projection import BiasedRelease, nearest, nearest_sum


@dataclass(frozen=True, eq=False)
class Release(AbstractSaved):
    """An unbiased estimate, which is safe to publish as a whole if ``private`` is true.

    Attributes:
        estimate: the mean under replacement, or the sum under add/remove, shape (d,).
        covariance: covariance of the noise that was added; it is known exactly and does not depend
            on the data.
        privacy: a record of the privacy guarantee and of the budget charged.
        private: False for simulations, whose numbers must not be published.

    >>> noise = gn.optimal_noise(gn.FiniteSet(np.eye(3)))
    >>> release = gn.GaussianMechanism(noise, gn.zCDP(0.5), n=1000).release(counts=[500, 300, 200])
    >>> print(release.private, release.standard_deviation.round(6).tolist())
    True [0.001155, 0.001155, 0.001155]
    """

    estimate: Array
    covariance: AbstractCovariance
    privacy: dict[str, object]
    private: bool

    _format = "gaussnoise.release/1"

    @property
    def standard_deviation(self) -> Array:
        """The standard deviation of the noise in every coordinate of the estimate, shape (d,)."""
        return self.covariance.standard_deviation()

    def confidence_interval(
        self, level: float = 0.95, simultaneous: bool = False
    ) -> ConfidenceInterval:
        """Return intervals that contain the values without noise with probability ``level``.

        If ``simultaneous``, all intervals do so together (Šidák), otherwise each by itself.

        Returns:
            ``(low, high)``, arrays of shape (d,).

        Raises:
            ParameterError: level outside (0, 1).
        """
        return confidence_interval(self.estimate, self.standard_deviation, level, simultaneous)

    def contrast(self, weights: "ArrayLike") -> Contrast:
        """Return ``weights @ estimate`` and its standard deviation, which includes correlations.

        Args:
            weights: shape (d,).
        """
        w = np.asarray(weights, dtype=np.float64)
        if w.shape != self.estimate.shape:
            raise ParameterError(
                f"contrast: expected weights of shape {self.estimate.shape}, got {w.shape}"
            )
        return Contrast(
            float(w @ self.estimate), float(np.linalg.norm(w @ self.covariance.factor()))
        )

    def projected(self, domain: AbstractDomain) -> BiasedRelease:
        """Return the possible answer that is nearest to the estimate. It is BIASED.

        Possible means are in the convex hull of K; possible sums are in the cone over it.

        This is the projection mechanism. It costs no privacy. If n is small, its error is much less
        than the error of any unbiased answer: lower bounds for unbiased answers do not apply. Keep
        the unbiased release for numbers that will be added or compared.

        Args:
            domain: the set K that records come from.

        Returns:
            A :class:`BiasedRelease`, after at most 2000 calls of the domain's oracle.

        Raises:
            ParameterError: the domain has another dimension.
            NotAvailableError: sums of records may cancel, so that almost all answers are possible.

        Source: Nikolov, Talwar & Zhang (2016), "The geometry of differential privacy: the small
        database and approximate cases"; Nikolov & Tang (2023), Theorems 6 and 7, for what unbiased
        answers cannot attain.

        >>> noise = gn.optimal_noise(gn.LpBall(50, 1))
        >>> release = gn.GaussianMechanism(noise, gn.zCDP(0.1), n=10).release(np.zeros((10, 50)))
        >>> print(bool(np.abs(release.projected(gn.LpBall(50, 1)).estimate).sum() <= 1 + 1e-9))
        True
        """
        if not isinstance(domain, AbstractDomain) or domain.dim != self.estimate.size:
            got = (
                f"one in R^{domain.dim}"
                if isinstance(domain, AbstractDomain)
                else type(domain).__name__
            )
            raise ParameterError(
                f"projected: expected a domain in R^{self.estimate.size}, got {got}; "
                "hint: the one that the mechanism's noise is for"
            )
        sums = self.privacy["neighbors"] == "add-remove"
        nearby, gap = (nearest_sum if sums else nearest)(domain, self.estimate)
        method = "nearest sum of records" if sums else "nearest point of the records' convex hull"
        distance = float(np.linalg.norm(nearby - self.estimate))
        return BiasedRelease(nearby, distance, gap, method, self.private, self.privacy)

    def _record(self) -> dict[str, object]:
        return {
            "private": self.private,
            "estimate": self.estimate.tolist(),
            "standard_deviation": self.standard_deviation.tolist(),
            "privacy": self.privacy,
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str], covariance: AbstractCovariance) -> "Release":
        """Read a release that :meth:`save` wrote.

        Args:
            path: the file.
            covariance: covariance of the mechanism's noise; the file has only standard deviations.

        Raises:
            ParameterError: covariance is not an :class:`AbstractCovariance`.
            OutputError: the file cannot be read.
            CertificateError: the file is not a release, or its noise differs from this covariance.
        """
        if not isinstance(covariance, AbstractCovariance):
            raise ParameterError(
                "Release.load: expected the covariance of its noise, got "
                f"{type(covariance).__name__}; hint: mechanism.covariance"
            )
        expected = covariance.standard_deviation()
        with reading(path, "Release.save"):
            record = read_json(Path(path), MOST_RECORD + 128 * len(expected))
            if record["format"] != cls._format or type(record["private"]) is not bool:
                raise ValueError
            estimate, deviation = (
                np.array(record[name], dtype=np.float64)
                for name in ("estimate", "standard_deviation")
            )
            release = cls(estimate, covariance, dict(record["privacy"]), record["private"])
            bound = record["privacy"].get("lower_bound")
            if bound is not None and type(bound["sentence"]) is not str:
                raise TypeError
            if not np.isfinite(estimate).all():
                raise ValueError
        same = estimate.shape == deviation.shape == expected.shape
        if not (same and np.allclose(deviation, expected, rtol=1e-9, atol=0)):
            raise CertificateError(
                f"load: expected a release of the noise given, got another in {os.fspath(path)}"
            )
        return release

    def __repr__(self) -> str:
        said = guarantee_text(self.privacy, self.private)
        return f"Release({self.estimate.size} coordinates, {said})"

    def __str__(self) -> str:
        lines = [
            estimate_text(
                "Release", self.estimate, self.privacy, self.private, self.standard_deviation
            )
        ]
        bound = self.privacy.get("lower_bound")
        if isinstance(bound, Mapping):  # there is no bound under policy graphs
            lines.append(bound["sentence"])
        return on_screen("\n".join(lines))
