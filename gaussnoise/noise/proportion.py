"""The relation in which a row is added or removed, and its budget grows with its numbers."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from domains.tables.clipped import Clipped
from domains.tables.tables import AbstractTables

from ..errors import ParameterError


@final
@dataclass(frozen=True)
class AddInProportion:
    """The relation of data sets that differ in one row; rows with larger numbers may cost more.

    The queries of number j belong to a :class:`Clipped` base of an interval [0, h_j], but numbers
    may be larger. A row with the numbers u_j h_j may cost ``ρ (1 + Σ_j (u_j/t_j)²)``. If the row
    changes the answers by φ, noise of covariance M at unit sensitivity must satisfy
    ``φ' M⁺ φ <= 1 + Σ_j (u_j/t_j)²``, for all u_j >= 0.

    Attributes:
        scales: pairs of a number's attribute position and its t_j, sorted by position.

    Source: Seeman, Sexton, Pujol & Machanavajjhala (2023), "Per-Record zero-concentrated
    differential privacy", arXiv 2310.12827.
    """

    scales: tuple[tuple[int, Fraction], ...]

    def __post_init__(self) -> None:
        places = [i for i, _ in self.scales]
        if not places or places != sorted(set(places)) or any(t <= 0 for _, t in self.scales):
            raise ParameterError(
                "AddInProportion: expected positive scales of one number or more, by position, got "
                f"{self.scales!r:.80}"
            )

    @property
    def numbers(self) -> tuple[int, ...]:
        """The positions of the numbers among the attributes."""
        return tuple([i for i, _ in self.scales])

    def check(self, function: str, domain: object) -> None:
        """Raise ParameterError unless the domain has tables of counts and sums of all numbers.

        Errors name ``function``.
        """
        asked = domain.terms if isinstance(domain, AbstractTables) else ()
        bases = [(i, base) for term in asked for i, base in term if i in self.numbers]
        if {i for i, _ in bases} != {*self.numbers} or not all(
            isinstance(base, Clipped)
            and (base.degrees, base.size, base.low, base.about) == ((0, 1), 2, 0.0, 0.0)
            for _, base in bases
        ):
            raise ParameterError(
                f"{function}: expected tables of counts and sums of every number in proportion to "
                "which budgets grow"
            )

    def __str__(self) -> str:
        return f"add-remove in proportion to attributes {', '.join(map(str, self.numbers))}"

    __repr__ = __str__
