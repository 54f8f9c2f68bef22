"""The problem to solve: the norm of the error, and the set that the noise must cover."""

from dataclasses import dataclass
from typing import Literal, final

from domains.domain import AbstractDomain

from ..solvers.design import Protected
from .agreement import ReplaceWithin, public_of
from .policy import PolicyGraph
from .proportion import AddInProportion

Relation = Literal["replace", "add-remove"] | PolicyGraph | ReplaceWithin | AddInProportion


@final
@dataclass(frozen=True, eq=False)
class Problem:
    """The problem of finding noise of least error ``‖sd(M)‖_p`` that protects one record.

    Its covariance M must cover the changes of the answer; sd(M) are its standard deviations.

    Attributes:
        domain: the set K.
        p: the exponent of the error's norm, in [2, ∞].
        neighbors: the neighbouring relation to protect.
        shifted: whether M covers K − v for some v (the paper's γ_p(K)) instead of the differences
            of neighbours.
    """

    domain: AbstractDomain
    p: float
    neighbors: Relation
    shifted: bool = False

    @property
    def protected(self) -> Protected | None:
        """The kind of set that the noise must cover; None for the differences along a policy graph.

        The kind is "gamma" for K up to a shift, "add-remove" for K ∪ −K, and "replace" for K − K.
        """
        if self.shifted:
            return "gamma"
        if isinstance(self.neighbors, ReplaceWithin):
            return "replace"
        if isinstance(self.neighbors, AddInProportion):
            return "add-remove"
        return None if isinstance(self.neighbors, PolicyGraph) else self.neighbors

    @property
    def public(self) -> tuple[int, ...]:
        """The attributes in which neighbouring records are always equal."""
        return public_of(self.neighbors)
