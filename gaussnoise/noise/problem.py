"""What is solved: which noise is sought for which set."""

from dataclasses import dataclass
from typing import Literal, final

from domains import AbstractDomain

from ..solvers.design import Protected
from .agreement import ReplaceWithin, public_of
from .policy import PolicyGraph

Relation = Literal["replace", "add-remove"] | PolicyGraph | ReplaceWithin


@final
@dataclass(frozen=True, eq=False)
class Problem:
    """The least ``‖sd(M)‖_p`` over covariances M that cover what one record can change.

    Attributes:
        domain: the set K.
        p: norm of the error, in [2, ∞].
        neighbors: the relation that is to be protected.
        shifted: whether the ellipsoid is to cover K up to a shift (the paper's γ_p(K)) instead of
            the sensitivity set.
    """

    domain: AbstractDomain
    p: float
    neighbors: Relation
    shifted: bool = False

    @property
    def protected(self) -> Protected | None:
        """What is covered, in one word; None for the differences along a policy graph."""
        if self.shifted:
            return "gamma"
        if isinstance(self.neighbors, ReplaceWithin):
            return "replace"
        return None if isinstance(self.neighbors, PolicyGraph) else self.neighbors

    @property
    def public(self) -> tuple[int, ...]:
        """Attributes that no exchange of records changes."""
        return public_of(self.neighbors)
