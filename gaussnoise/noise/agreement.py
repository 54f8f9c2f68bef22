"""Replacement that leaves some attributes as they are: their joint table is published exactly."""

from dataclasses import dataclass
from typing import final

from domains.tables.tables import AbstractTables

from ..errors import ParameterError


@final
@dataclass(frozen=True)
class ReplaceWithin:
    """Neighbouring datasets differ in one record, exchanged for another with some attributes alike.

    How many records have each combination of those attributes is published exactly, and which one
    a record has gets no protection at all.

    The policy graph that joins records of equal public attributes: for marginals in closed form,
    for products of other bases by the same residuals. What is measured of two records x, y that
    agree on them differs by ``Σ_T a_T q_T(x, y)``, q_T >= 0 of the other attributes of T, a_T at
    most the longest columns of the public ones: so patterns of differing attributes leave those
    out, and residuals of public attributes alone, which nothing moves, are published as they are.

    Attributes:
        public: sorted positions of the attributes.

    Source: He, Machanavajjhala & Ding (2014), "Blowfish Privacy"; Dharangutte, Gao, Gong & Yu
    (2023), "Integer Subspace Differential Privacy", on invariants.
    """

    public: tuple[int, ...]

    def __post_init__(self) -> None:
        if (
            not self.public
            or any(type(i) is not int or i < 0 for i in self.public)
            or list(self.public) != sorted(set(self.public))
        ):
            raise ParameterError(
                "ReplaceWithin: expected sorted positions of one attribute or more, got "
                f"{self.public!r:.50}"
            )

    def check(self, function: str, domain: object) -> None:
        """Raise ParameterError unless the domain is of tables that have these attributes."""
        if not isinstance(domain, AbstractTables) or self.public[-1] >= len(domain.sizes):
            raise ParameterError(
                f"{function}: expected tables with the public attributes, got "
                f"{type(domain).__name__}; hint: a policy graph that joins points which agree on "
                'them, with graph.graph["components"] = "public"'
            )

    def __str__(self) -> str:
        return f"replace by records that agree on attributes {', '.join(map(str, self.public))}"

    __repr__ = __str__


def public_of(relation: object) -> tuple[int, ...]:
    """The attributes that a relation leaves as they are."""
    return relation.public if isinstance(relation, ReplaceWithin) else ()
