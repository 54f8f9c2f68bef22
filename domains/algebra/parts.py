"""The base classes of sums, products and hulls: sets made of other sets."""

from dataclasses import dataclass
from typing import ClassVar, Self

from ..domain import AbstractDomain
from ..errors import DimensionError, InvalidDomainError
from ..floats import Array
from .arguments import checked_domains


@dataclass(frozen=True, eq=False)
class AbstractOfParts(AbstractDomain):
    """A set made of several sets, its parts; its multiples are made of multiples of the parts."""

    parts: tuple[AbstractDomain, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.parts, tuple) or not self.parts:
            raise InvalidDomainError(f"{type(self).__name__}: expected a tuple of domains")
        checked_domains(type(self).__name__, *self.parts)

    @property
    def is_symmetric(self) -> bool:
        return all(K.is_symmetric for K in self.parts)

    def _scaled(self, factor: float) -> Self:
        return type(self)(tuple(factor * K for K in self.parts))

    def _centers(self) -> list[Array] | None:
        """Return the centers of symmetry of all parts, or None if one center is unknown."""
        known = [c for c in (K._center() for K in self.parts) if c is not None]
        return known if len(known) == len(self.parts) else None

    def _moves(self) -> tuple[list[AbstractDomain], list[Array]] | None:
        """Return the parts moved near the origin, and their shifts back; None if no part moves."""
        still, shifts = zip(*(K._apart() for K in self.parts), strict=True)
        return (list(still), list(shifts)) if any(shift.any() for shift in shifts) else None


@dataclass(frozen=True, eq=False)
class AbstractOfOneSpace(AbstractOfParts):
    """A set made of several sets, its parts, which all lie in the same space R^dim."""

    operation: ClassVar[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_same_space(self.operation, self.parts)

    @property
    def dim(self) -> int:
        return self.parts[0].dim


def check_same_space(operation: str, parts: tuple[AbstractDomain, ...]) -> None:
    """Raise DimensionError if domains have different dimensions."""
    dims = [K.dim for K in parts]
    if len(set(dims)) > 1:
        raise DimensionError(
            f"{operation}: expected domains of one space, got dimensions "
            f"{', '.join(map(str, dims))}"
        )
