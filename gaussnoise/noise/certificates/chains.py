"""The dual certificate for sets of ticks that cannot be listed: a Markov chain on the ticks."""

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from domains.floats import EPS, Array, power_of_two
from domains.participation.participations import AbstractParticipations, VectorParticipations
from domains.participation.patterns import Apart

from ...errors import CertificateError
from ...numerics.norms import nuclear_norm_below
from ...numerics.rounding import ROUNDING_MARGIN
from ...solvers.streams.chains import Chain
from ..problem import Problem
from .certificate import Stored
from .participations import UNIT, AbstractParticipationCertificate, are_finite

_LEAST = 2.0**-500  # least sum of all sets' weights: far more than the errors of underflow
_UNDERFLOW = 2.0**-300


@final
@dataclass(frozen=True, eq=False)
class ChainCertificate(AbstractParticipationCertificate[AbstractParticipations]):
    """Probabilities of one person's sets of ticks, as a Markov chain, and correlations of vectors.

    Every set π has a probability p_π, and vectors added at its ticks have the correlations Z_π: the
    rows and columns π of one matrix ``C C'`` with a unit diagonal. So the bound of
    ``ParticipationCertificate`` holds with ``Λ = Σ p_π Z_π``: the probabilities of pairs of ticks
    times their correlations. For numbers in [0, 1] it holds if all correlations are one: then one
    person can add 1 at all ticks of π.

    Attributes:
        domain: the workload, and the rule for the ticks at which a person may take part.
        chain: the Markov chain: its start s, its steps K, and the correlations c.
        coordinate_weights: w, shape (n,), with ``‖w‖_{s*} <= 1``, s* = p/(p − 2).
    """

    domain: AbstractParticipations
    chain: Chain
    coordinate_weights: Array

    def below(self) -> tuple[float, float]:
        """Return the lower bound on γ, and the fraction of it that was subtracted for rounding.

        The relative error of every entry of the computed Λ is at most ``lost``: probabilities are
        sums of products of nonnegative numbers. Two diagonal matrices are subtracted: the sums of
        these errors by row, and a bound on the rounding of a Cholesky factor. By diagonal
        dominance, the result is at most Λ in the positive semidefinite order.
        """
        size, scaled, root = self._factors()
        if not root.any():
            return 0.0, 0.0
        n = len(root)
        value, blurred = nuclear_norm_below(scaled @ root)
        rounded = 2 * (n + 8) * EPS * float(np.linalg.norm(np.abs(scaled) @ np.abs(root)))
        value -= np.sqrt(n) * rounded
        return max(size * value * (1 - ROUNDING_MARGIN), 0.0), blurred

    def columns(self) -> tuple[float, Array]:
        size, scaled, root = self._factors()
        return size, scaled @ root

    def _factors(self) -> tuple[float, Array, Array]:
        """Return ``size``, the weighted workload / size, and R with R R' <= the second moment."""
        size, n, k = power_of_two(np.abs(self.domain.matrix).max()), self.domain.dim, self._most()
        moment = self.chain.second_moment()
        lost = 8 * (k + 2) * (max(self.chain.alike.shape) + 8) * EPS
        probabilities = moment.diagonal()
        # errors of correlations are relative to one; in a set, a tick is in at most k pairs
        sizes = np.abs(moment).sum(axis=1) + k * probabilities
        roots = np.sqrt(probabilities)
        less = lost * sizes + 4 * (n + 8) * EPS * roots * roots.sum() + _UNDERFLOW
        scaled = np.sqrt(self.coordinate_weights)[:, None] * (self.domain.matrix / size)
        try:
            root: Array = np.linalg.cholesky(moment - np.diag(less)).astype(np.float64)
        except np.linalg.LinAlgError:
            root = np.zeros((n, n))
        return size, scaled, root

    def _most(self) -> int:
        return len(self.chain.start)

    @property
    def caption(self) -> str:
        return "a Markov chain on one person's ticks, which lists no points"

    def is_measure(self) -> bool:
        n, who, chain = self.domain.dim, self.domain.who, self.chain
        if not (isinstance(who, Apart) and are_finite(chain.start, chain.steps, chain.alike)):
            return False
        if chain.start.ndim != 2 or chain.steps.shape != (n, n) or chain.alike.ndim != 2:
            return False
        ticks = np.arange(n)
        near = np.subtract.outer(ticks, ticks) > -who.b
        return bool(
            chain.start.shape[1] == n
            and 0 < self._most() <= who.most
            and (chain.start >= 0).all()
            and (chain.steps >= 0).all()
            and not chain.steps[near].any()
            and chain.start.max() <= 1
            # scaled so that no sum of products overflows, and errors of underflow stay small
            and chain.steps.sum(axis=1).max() <= UNIT
            and chain.total() >= _LEAST
            and chain.alike.shape[0] == n
            and chain.alike.shape[1] > 0
            and np.square(chain.alike).sum(axis=1).max() <= UNIT
            and (isinstance(self.domain, VectorParticipations) or (chain.alike == 1).all())
        )

    def encode(self) -> Stored:
        return {}, {
            "chain_start": self.chain.start,
            "chain_steps": self.chain.steps,
            "chain_correlations": self.chain.alike,
            "coordinate_weights": self.coordinate_weights,
        }

    @classmethod
    def decode(
        cls, problem: Problem, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> Self:
        if not isinstance(problem.domain, AbstractParticipations):
            raise CertificateError("load: expected participations with the certificate of some")
        names = ("chain_start", "chain_steps", "chain_correlations")
        chain = Chain(*(arrays[name] for name in names))
        return cls(problem.domain, chain, arrays["coordinate_weights"])
