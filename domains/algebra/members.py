"""Records and the body they belong to: many at once where that is quick, and maps into it."""

import numpy as np

from ..domain import AbstractDomain, Array, Map
from .images import LinearImage


def near_members(domain: AbstractDomain, X: Array) -> Array | None:
    """Members near the rows of X, not always the nearest; None where no quick way is known."""
    return domain._near(X)


def contains(domain: AbstractDomain, x: Array) -> bool:
    """Whether the domain says so; a domain that cannot tell refuses, without its complaint."""
    try:
        return bool(domain.contains(x))
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError):
        return False


def magnitudes(domain: AbstractDomain) -> Array:
    """Bounds on the numbers that coordinates are computed from, shape (d,): these are rounded.

    A class of the user's own is taken to compute its members to a few units in the last place of
    its bounding box.
    """
    return domain._magnitudes()


def pulls_back(domain: AbstractDomain) -> bool:
    """Whether a quadratic form is evaluated before A in ``A @ K``, where numbers are larger."""
    own = isinstance(domain, LinearImage) and domain._image() is None
    return own or any(pulls_back(part) for part in _inner(domain))


def _inner(domain: AbstractDomain) -> list[AbstractDomain]:
    """What it is made of."""
    names = ("body", "left", "right")
    return [getattr(domain, name) for name in names if hasattr(domain, name)] + list(
        getattr(domain, "parts", ())
    )


def widest(domain: AbstractDomain) -> int:
    """Most numbers that a record is written with: coordinates, generators, vertices, squares."""
    return max([domain._numbers(), *map(widest, _inner(domain))])


def projection(domain: AbstractDomain) -> Map | None:
    """A map of all rows into the domain that moves no member; NaN and infinity go to its center.

    Every row goes its own way, whatever the others are: elementwise arithmetic in a fixed order,
    where each operation is correctly rounded (or the C library's ``pow``, number by number), and no
    matrix products. None where no such map is known.
    """
    move = domain._map_into()
    if move is None:
        return None
    center = np.asarray(domain._center())  # all that have such a map have one

    def into(X: Array) -> Array:
        finite = np.isfinite(X).all(axis=1, keepdims=True)
        return np.where(finite, move(np.where(finite, X, center)), center)

    return into
