"""The answer: the optimal covariance of a domain, with lower and upper bounds on its error."""

import enum
import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from domains.domain import AbstractDomain
from domains.floats import Array

from ..solvers.progress import Progress
from .certificates.certificate import Certificate, Verification
from .covariance import AbstractCovariance
from .problem import Problem, Relation

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Status(enum.Enum):
    """The reason why a solve ended; its value says what to try next.

    >>> print(gn.optimal_noise(gn.LpBall(2, 2)).status)
    Status.SOLVED
    """

    SOLVED = "The certified gap is within the tolerance."
    ROUNDING = (
        "Rounding stopped progress: the noise is feasible, hence private; "
        "loosen tol, center the points, or even out sizes that differ by more than 1e5."
    )
    MAX_STEPS = (
        "The step limit came first: the noise is feasible, hence private; loosen tol to "
        "accept its gap."
    )
    ORACLE = (
        "The bracket is as narrow as the domain's quadratic oracle proves: the noise is feasible, "
        "hence private; accept the gap, or describe the set so that its oracle is exact: by its "
        "vertices, or fewer generators."
    )
    PATTERNS = (
        "More patterns of differing attributes than can be looked at: the noise covers what a "
        "search proves of all of them, hence is private; accept the gap, or ask for fewer or more "
        "alike attributes."
    )
    PRODUCTS = (
        "The best noise found that measures sets of attributes by products: feasible, hence "
        "private; the gap is what other noises could win at most. For small tables, "
        "optimal_noise(domain.to_finite_set()) looks at all noises."
    )
    COUPLINGS = (
        "The best noise found that measures sets of attributes by products: feasible, hence "
        "private; at this size, no certificate but a coarse one that leaves couplings between "
        "tables out, so that most of the gap may be its own."
    )
    PARTICIPATIONS = (
        "The search over what one person may do was stopped: the noise is feasible, hence "
        "private; accept the "
        "gap, or ask for at most 48 ticks, or fewer patterns, which are solved to the tolerance."
    )
    OWN = (
        "A covariance of one's own, enlarged until it covers the set: feasible, hence private; the "
        "gap is what the best noise could win."
    )
    INTERRUPTED = "Interrupted: the noise is feasible, hence private; run again for a narrower gap."


def gap_between(lower: float, upper: float) -> float:
    """Return the relative gap ``upper / lower − 1`` between two bounds, or 0 if both are 0."""
    if upper == 0:
        return 0.0
    return upper / lower - 1 if lower > 0 else math.inf


@final
@dataclass(frozen=True, eq=False)
class OptimalNoise:
    """The best Gaussian covariance for a domain at unit sensitivity, with its proof.

    From :func:`gaussnoise.optimal_noise`, the covariance covers the differences of neighbours. From
    :func:`gaussnoise.gamma` (the paper's γ_p(K)), the covariance covers the set up to a shift.

    Attributes:
        domain: the set K.
        p: the order of the error's norm ``‖sd‖_p``, with sd the standard deviations.
        neighbors: relation that the mechanism protects: "replace", "add-remove" or a policy graph.
        shifted: whether M encloses K − center (``gamma``) instead of the sensitivity set
            (``optimal_noise``).
        gamma: the upper bound on the least error: ``‖sd(M)‖_p`` of the stored covariance.
        gamma_lower: the lower bound on the least error, proved by ``certificate``.
        covariance: the covariance M of the noise, shape (d, d).
        center: v, shape (d,), if M encloses K − v; otherwise zeros.
        certificate: the proof of the lower bound ``gamma_lower``.
        sensitivity_squared: a proven upper bound on ``s' M⁺ s`` for all differences s of
            neighbours: 1 from ``optimal_noise``, up to 4 from ``gamma``.
        method: the method that found M, and the reason for it.
        status: the reason why the solver stopped.
        steps: iterations spent, 0 for closed forms.
        trace: both bounds after every step; empty for closed forms, and for answers read from a
            file.

    >>> noise = gn.optimal_noise(gn.FiniteSet(np.eye(3)), neighbors="add-remove")
    >>> print(f"{noise.gamma_lower:.4f} {noise.gamma:.4f}", noise.covariance.shape)
    1.7321 1.7321 (3, 3)
    """

    domain: AbstractDomain
    p: float
    neighbors: Relation
    shifted: bool
    gamma: float
    gamma_lower: float
    covariance: AbstractCovariance
    center: Array
    certificate: Certificate
    sensitivity_squared: float
    method: str
    status: Status
    steps: int
    trace: tuple[Progress, ...] = ()

    @property
    def problem(self) -> Problem:
        """The problem that was solved: ``domain``, ``p``, ``neighbors`` and ``shifted``."""
        return Problem(self.domain, self.p, self.neighbors, self.shifted)

    @property
    def gap(self) -> float:
        """The gap ``gamma / gamma_lower − 1``, a bound on any improvement; zero if both are 0."""
        return gap_between(self.gamma_lower, self.gamma)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling, where a center of zeros is replaced by its shape."""
        bare = not any(self.center.strides) and not self.center.flat[0]
        return self.__dict__ | ({"center": self.center.shape} if bare else {})

    def __setstate__(self, state: dict[str, Any]) -> None:
        center = state["center"]
        zeros = {"center": np.broadcast_to(0.0, center)} if isinstance(center, tuple) else {}
        self.__dict__.update(state | zeros)

    def __float__(self) -> float:
        return self.gamma

    def __repr__(self) -> str:
        name = f"gamma_{self.p:g}(K)" if self.shifted else f"gamma_{self.p:g}, {self.neighbors}"
        return (
            f"OptimalNoise({name}: {self.gamma_lower:.10g} <= gamma <= {self.gamma:.10g}, gap "
            f"{self.gap:.1e}, {self.domain!r})"
        )

    def verify(self) -> Verification:
        """Recompute both bounds from the domain and stored numbers, not by the solver's methods.

        Small finite sets are checked in rational arithmetic. For larger finite sets, the upper
        bound comes from QR with residuals in extended precision, and the lower bound from an inner
        product with a matrix whose norm is proven. Marginals are checked in rational arithmetic; if
        the full table has at most 512 cells, also as a finite set. For closed forms of tensor
        powers, the form of the stored factor is checked, and a bound holds for all factors of that
        form. For other domains, the upper bound is that of their oracle, in coordinates by a
        singular value decomposition; every point of the certificate must be in the set.

        Returns:
            The recomputed bounds.

        Raises:
            CertificateError: a stored bound is stronger than the recomputed one.
            CovarianceError: the noise is zero in some direction in which neighbours differ.

        >>> gn.optimal_noise(
        ...     gn.FiniteSet(np.eye(3)), neighbors="add-remove"
        ... ).verify().sensitivity_squared <= 1
        True
        """
        from .verify import verify  # imported here, since few programs need it

        return verify(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the answer and its domain to one ``.npz`` file, without pickles."""
        from .file import write  # imported here, since files and pictures import this class

        write(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "OptimalNoise":
        """Read an answer written by :meth:`save`, and verify it.

        Verification proves that the numbers in the file fit each other, but not who wrote it: check
        ``neighbors`` and ``domain`` before use.

        Raises:
            OutputError: the file cannot be read.
            CertificateError: the file contains no answer, or one that fails :meth:`verify`.
        """
        from .file import read

        return read(path)

    def plot(self, axes: tuple[int, int] = (0, 1)) -> "Figure":
        """Draw the covered set, its optimal ellipsoid, the certificate's points and the naive ball.

        Args:
            axes: the two coordinates to project to.

        Returns:
            A matplotlib Figure; save it with ``.savefig(path)``.

        Raises:
            ParameterError: axes are not two of the coordinates.

        >>> gn.optimal_noise(gn.FiniteSet(np.eye(3))).plot().axes[0].get_xlabel()
        'coordinate 0'
        """
        from .plots import plot_noise

        return plot_noise(self, axes)

    def plot_convergence(self) -> "Figure":
        """Draw the lower and upper bound on the least error, step by step.

        Returns:
            A matplotlib Figure.

        Raises:
            ParameterError: the answer is a closed form, or was read from a file: there are no steps
                to show.
        """
        from .convergence import plot_convergence

        return plot_convergence(self)
