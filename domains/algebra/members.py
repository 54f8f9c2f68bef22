"""Membership of records, and quick maps of many records into a body."""

import numpy as np

from ..domain import AbstractDomain
from ..floats import Array, Map


def near_members(domain: AbstractDomain, X: Array) -> Array | None:
    """Return a member of the domain near each row of X, or None if no quick method is known.

    A returned member is not always the nearest one.
    """
    return domain._near(X)


def contains(domain: AbstractDomain, x: Array) -> bool:
    """Return whether x is a member; False if the domain cannot decide."""
    try:
        return bool(domain.contains(x))
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError):
        return False


def magnitudes(domain: AbstractDomain) -> Array:
    """Return a bound for each coordinate on the absolute numbers from which it is computed.

    The result bounds the rounding of members. A class of your own is assumed to compute members
    with an error of a few units in the last place of its bounding box.
    """
    return domain._magnitudes()


def parts_of(domain: AbstractDomain) -> list[AbstractDomain]:
    """Return the sets from which this domain is built: its body, its factors, or its parts."""
    names = ("body", "left", "right")
    return [getattr(domain, name) for name in names if hasattr(domain, name)] + list(
        getattr(domain, "parts", ())
    )


def widest(domain: AbstractDomain) -> int:
    """Return how many numbers describe one member, at most, of the domain or any of its parts."""
    return max([domain._numbers(), *map(widest, parts_of(domain))])


def projection(domain: AbstractDomain) -> Map | None:
    """Return a function that maps rows to members of the domain; None if no quick one is known.

    The function leaves rows that are members as they are. NaN and infinity are mapped to the
    center. The result for a row does not depend on other rows. Numbers are computed one by one in a
    fixed order, without matrix products. Each operation is either correctly rounded or a call of
    ``pow`` of the C library for one number.
    """
    move = domain._map_into()
    if move is None:
        return None
    center = np.asarray(domain._center())  # every domain with such a map has a center

    def into(X: Array) -> Array:
        finite = np.isfinite(X).all(axis=1, keepdims=True)
        if finite.all():  # the same numbers as below, without copies
            return move(X)
        return np.where(finite, move(np.where(finite, X, center)), center)

    return into
