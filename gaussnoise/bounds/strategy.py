"""The proven error of a strategy, compared with the least possible error."""

import abc
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, final

from domains.participation.patterns import AbstractPatterns

from ..layout import on_screen
from ..noise.certificates.certificate import Certificate
from ..noise.covariance import AbstractCovariance
from ..noise.optimal_noise import OptimalNoise
from ..noise.problem import Relation
from ..numerics.rounding import rounded_up
from ..text import no_less, number_of

_RELATIONS = {
    "add-remove": "One record is added or removed.",
    "replace": "One record is replaced by another; the number of records is public.",
}


@dataclass(frozen=True, eq=False)
class AbstractStrategyCertificate(abc.ABC):
    """A strategy's proven error and privacy loss: the fields of all strategy certificates."""

    error: float
    lower: float
    sensitivity: float
    p: float
    neighbors: Relation
    optimal: OptimalNoise
    covariance: AbstractCovariance

    @property
    def factor(self) -> float:
        """An upper bound on the strategy's error divided by the least error: ``error / lower``."""
        return self.error / self.lower

    @property
    def upper(self) -> float:
        """The error of the best known noise, an upper bound on the least possible error."""
        return self.optimal.gamma

    @property
    def witness(self) -> Certificate:
        """The certificate that proves ``lower``; ``optimal.verify()`` checks it again."""
        return self.optimal.certificate

    @property
    def rho(self) -> float:
        """The privacy loss ρ (zCDP) of all outputs together, ``sensitivity² / 2``, rounded up."""
        return rounded_up(Fraction(self.sensitivity) ** 2 / 2)

    @abc.abstractmethod
    def columns(self) -> dict[str, list]:
        """Return {column name: values}: standard deviations of answers, and with the best noise."""

    @abc.abstractmethod
    def _protection_sentences(self) -> tuple[str, str]:
        """Return two sentences: who is protected, and how much one of them changes the outputs."""

    @property
    @abc.abstractmethod
    def _answers(self) -> int:
        """The number of answers of the workload."""

    def explain(self) -> str:
        """Return sentences on the error of the strategy, the least error, and the privacy loss."""
        n, share = self._answers, 1.0
        what = "root of the summed p-th powers of the standard deviations"
        if self.p == 2:
            what, share = f"root mean square error of the {n} answers", math.sqrt(n)
        elif self.p == math.inf:
            what = f"largest standard deviation among the {n} answers"
        who, moved = self._protection_sentences()
        return (
            "At rho = 1/2, where the standard deviation of the noise is the sensitivity, the "
            f"{what} is at most {self.error / share:.6g} with this strategy; another rho makes it "
            f"1/√(2 rho) times as large. No strategy of any kind, {self._same}, has less than "
            f"{self.lower / share:.6g} at the same rho: this one is at most "
            f"{no_less(100 * (self.factor - 1), 3)} % above the best possible, and the best one "
            f"known has {self.upper / share:.6g}. At the stated noise, of standard deviation 1 "
            f"where none is stated, all outputs together have rho = {self.rho:.6g}, and this error "
            "is at most "
            f"{self.error / self.sensitivity / share:.6g}. {who} {moved}"
        )

    @property
    def _same(self) -> str:
        """The neighbours or participation shared by all compared strategies, in words."""
        return "for the same neighbours"

    def __str__(self) -> str:
        n, share = self._answers, 1.0
        what = f"‖sd‖_{self.p:g}"
        if self.p == 2:
            what, share = "root mean square error", math.sqrt(n)
        elif self.p == math.inf:
            what = "largest standard deviation"
        who, moved = self._protection_sentences()
        above = no_less(100 * (self.factor - 1), 3)
        stated = self.error / self.sensitivity / share
        lines = [
            f"Strategy for {number_of(n, 'answer')}: {what} at rho = 1/2",
            f"this strategy  at most {self.error / share:.6g}",
            f"best known     {self.upper / share:.6g}",
            f"any strategy   at least {self.lower / share:.6g}, {self._same}",
            f"distance       at most {above} % above the best possible",
            "another rho    1/√(2 rho) times these errors",
            f"as stated      rho = {self.rho:.6g} for all outputs together, error at most "
            f"{stated:.6g}",
            f"protected      {who} {moved}",
        ]
        return on_screen("\n".join(lines))

    def to_frame(self, backend: Literal["pyarrow", "pandas", "polars"] = "pyarrow") -> Any:
        """Return the columns of :meth:`columns`, with standard deviations, as a dataframe.

        Args:
            backend: "pyarrow", "pandas" or "polars".
        """
        import narwhals as nw
        import pyarrow as pa

        return nw.from_arrow(pa.table(self.columns()), backend=backend).to_native()


@final
@dataclass(frozen=True, eq=False)
class StrategyCertificate(AbstractStrategyCertificate):
    """The error of a strategy, and a lower bound on the error of every strategy.

    Attributes:
        error: upper bound on ``‖sd‖_p`` of all answers at ρ = 1/2, where the standard deviation
            of the noise on the strategy's outputs is ``sensitivity``. For another ρ it is 1/√(2ρ)
            times as large; at the stated noise it is ``error / sensitivity``.
        lower: certified lower bound on this error for strategies of any kind, for the same
            neighbours or the same participation.
        sensitivity: proven upper bound on the change of the strategy's outputs by one record or
            person (ℓ₂ norm). Each output is divided by the standard deviation of its noise, if this
            was stated.
        p: the norm of the error: 2 is root total variance, ``math.inf`` the largest standard
            deviation.
        neighbors: the neighbouring relation.
        optimal: the best known noise, with the certificate behind ``lower``.
        covariance: that of the best linear unbiased estimate of the answers, at the stated noise.
        participation: the ticks that one person may occupy; None if each record counts once.

    >>> found = gn.certify(np.eye(4), gn.streams.prefix_sums(4))
    >>> print(f"{found.factor:.3f} {found.rho:.2f}")
    1.206 0.50
    """

    participation: AbstractPatterns | None

    @property
    def _answers(self) -> int:
        return self.covariance.dim

    @property
    def _same(self) -> str:
        same = "for the same neighbours"
        return same if self.participation is None else "under the same participation"

    def _protection_sentences(self) -> tuple[str, str]:
        if self.participation is not None:
            who, one = f"Who takes part: {self.participation!r}.", "person"
        else:
            who = _RELATIONS.get(str(self.neighbors), f"The neighbours: {self.neighbors}.")
            one = "record"
        return who, (
            f"One {one} moves the strategy's answers, as they were given, by at most "
            f"{self.sensitivity:.6g}."
        )

    def columns(self) -> dict[str, list]:
        """Return one row for each answer, for two kinds of noise with the same privacy loss.

        The columns are the answer's number, its standard deviation, its standard deviation with the
        best noise known, and the ratio of the two.
        """
        own = self.covariance.standard_deviation()
        best = self.optimal.covariance.standard_deviation() / self.sensitivity
        return {
            "answer": list(range(len(own))),
            "standard_deviation": own.tolist(),
            "best_known": best.tolist(),
            "times_best": [a / b if b else math.nan for a, b in zip(own, best, strict=True)],
        }
