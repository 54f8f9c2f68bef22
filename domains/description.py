"""Domains as plain data, for files: a tree that JSON can hold, and named arrays of numbers."""

import inspect
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .domain import AbstractDomain
from .errors import InvalidDomainError
from .participation.patterns import AbstractPatterns, Apart, Epochs, Window
from .tables.bases import (
    AbstractBase,
    Base,
    Bins,
    Groups,
    Identity,
    Leading,
    Moments,
    Prefix,
    Ranges,
    Total,
    Windows,
)
from .tables.clipped import Clipped
from .tables.products import Products

_DEPTH = 50  # of domains and tuples within each other

# arguments of constructors that are stored under another name
_STORED_AS = {("TensorPower", "dim"): "base"}

_BASES: dict[str, type[AbstractBase]] = {
    cls.__name__: cls
    for cls in (
        Base,
        Bins,
        Clipped,
        Groups,
        Identity,
        Leading,
        Moments,
        Prefix,
        Ranges,
        Total,
        Windows,
    )
}

_PATTERNS: dict[str, type[AbstractPatterns]] = {
    cls.__name__: cls for cls in (Apart, Epochs, Window)
}

# what the small classes of the algebra take on trust
_BODIES = ("body", "left", "right")
_NUMBERS = ("factor",)


def describe(domain: AbstractDomain) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Everything it takes to build ``domain`` again, bases included, bit for bit.

    Returns:
        A tree of dicts, lists, strings and numbers, and the arrays that it names.

    Raises:
        InvalidDomainError: a class, of domains or bases, that is not of this package, or more than
            50 levels.
    """
    arrays: dict[str, NDArray[Any]] = {}
    return _describe(domain, arrays, 0), arrays


def rebuild(tree: object, arrays: Mapping[str, NDArray[Any]]) -> AbstractDomain:
    """What :func:`describe` described. It may come from anyone: constructors validate it again.

    Raises:
        InvalidDomainError: not a description of one of our domains.
    """
    domain = _rebuild(tree, arrays, 0)
    if isinstance(domain, AbstractDomain):
        return domain
    raise InvalidDomainError(
        f"load: expected the description of a domain, got that of a base, {type(domain).__name__}"
    )


def _classes() -> dict[str, type[AbstractDomain]]:
    from .algebra.differences import DifferenceBody
    from .algebra.hulls import Hull
    from .algebra.images import LinearImage, Scaled, Translate
    from .algebra.products import Kronecker, Product
    from .algebra.sums import MinkowskiSum
    from .participation.participations import CountParticipations, VectorParticipations
    from .sets.ellipsoid import Ellipsoid
    from .sets.finite import FiniteSet
    from .sets.lp_ball import LpBall
    from .sets.polytope import Polytope
    from .sets.schatten import SchattenBall
    from .sets.stream import StreamWorkload
    from .sets.tensor import TensorPower
    from .sets.two_convex import TwoConvex
    from .sets.zonotope import Zonotope
    from .tables.marginals import Marginals
    from .tables.stream_product import StreamProduct

    known: list[type[AbstractDomain]] = [
        Ellipsoid, FiniteSet, LpBall, Marginals, Polytope, Products, SchattenBall, StreamProduct,
        StreamWorkload,
        TensorPower, TwoConvex, Zonotope,
        DifferenceBody, Hull, Kronecker, LinearImage, MinkowskiSum, Product,
        Scaled, Translate,
        CountParticipations, VectorParticipations,
    ]  # fmt: skip
    return {cls.__name__: cls for cls in known}


def _arguments(cls: type[AbstractDomain | AbstractBase | AbstractPatterns]) -> list[str]:
    """Names of a constructor's arguments, all of which the class stores."""
    return list(inspect.signature(cls).parameters)


def _check_depth(depth: int) -> None:
    if depth > _DEPTH:
        raise InvalidDomainError(
            f"expected a domain built in at most {_DEPTH} levels, got more; hint: A @ (B @ K) is "
            "(A @ B) @ K"
        )


def _describe(value: Any, arrays: dict[str, NDArray[Any]], depth: int) -> Any:
    _check_depth(depth)
    if isinstance(value, AbstractDomain | AbstractBase | AbstractPatterns):
        name = type(value).__name__
        if (_classes() | _BASES | _PATTERNS).get(name) is not type(value):
            raise InvalidDomainError(
                f"save: expected {'domains' if isinstance(value, AbstractDomain) else 'bases'} of "
                f"this package, got {name}; hint: store the arguments of your own class, and build "
                "it again"
            )
        fields = {
            field: getattr(value, _STORED_AS.get((name, field), field))
            for field in _arguments(type(value))
        }
        if isinstance(value, Moments):
            fields["values"] = np.array(value.values)
        if isinstance(value, Products):  # bases other than the attributes' own are spelled out
            own = value.bases
            fields["subsets"] = tuple(
                tuple(i if W == own[i] else (i, W) for i, W in term) for term in value.terms
            )
        return {
            "type": name,
            "fields": {field: _describe(x, arrays, depth + 1) for field, x in fields.items()},
        }
    if isinstance(value, tuple):
        return [_describe(x, arrays, depth + 1) for x in value]
    if isinstance(value, np.ndarray):
        name = f"array{len(arrays)}"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, float):  # JSON has no infinity
        return float(value) if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, int):
        return int(value)
    if value in ("counts", "vectors"):
        return value
    raise InvalidDomainError(
        f"save: expected arrays, numbers, tuples and domains, got {type(value).__name__}"
    )


def _rebuild(
    tree: object, arrays: Mapping[str, NDArray[Any]], depth: int
) -> AbstractDomain | AbstractBase | AbstractPatterns:
    if (
        not isinstance(tree, dict)
        or set(tree) != {"type", "fields"}
        or not isinstance(tree["fields"], dict)
    ):
        raise InvalidDomainError(
            "load: expected the description of a domain: a type and its fields"
        )
    cls = (
        (_classes() | _BASES | _PATTERNS).get(tree["type"])
        if isinstance(tree["type"], str)
        else None
    )
    if cls is None:
        raise InvalidDomainError(
            "load: expected the description of a domain of this package, got an unknown type"
        )
    expected = _arguments(cls)
    if set(tree["fields"]) != set(expected):
        raise InvalidDomainError(
            f"load: expected the fields {', '.join(expected)} of {cls.__name__}, got others"
        )
    fields = {name: _value(tree["fields"][name], arrays, depth + 1) for name in expected}
    if not all(_is_of_its_kind(name, value) for name, value in fields.items()):
        raise InvalidDomainError(
            f"load: expected domains and numbers where {cls.__name__} has them, got others"
        )
    try:
        if cls is Products:
            own, terms = fields["bases"], fields["subsets"]
            fields["subsets"] = [
                dict((i, own[i]) if isinstance(i, int) else i for i in term) for term in terms
            ]
        return cls(**fields)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # errors of our own are sentences, which never show data; others may quote what the file
        # holds
        reason = (
            f": {error}" if isinstance(error, InvalidDomainError) else f" ({type(error).__name__})"
        )
    raise InvalidDomainError(f"load: expected fields that make a {cls.__name__}{reason}")


def _is_of_its_kind(name: str, value: object) -> bool:
    if name == "parts":
        return (
            isinstance(value, tuple)
            and len(value) > 0
            and all(isinstance(x, AbstractDomain) for x in value)
        )
    if name in _NUMBERS:
        return isinstance(value, int | float)
    return isinstance(value, AbstractDomain) == (name in _BODIES)


def _value(tree: object, arrays: Mapping[str, NDArray[Any]], depth: int) -> Any:
    """An argument of a constructor."""
    _check_depth(depth)
    if isinstance(tree, list):
        return tuple(_value(x, arrays, depth + 1) for x in tree)
    if type(tree) in (int, float) or tree in ("counts", "vectors"):
        return tree
    if isinstance(tree, dict):
        if set(tree) == {"array"} and isinstance(tree["array"], str):
            array = arrays.get(tree["array"])
            if isinstance(array, np.ndarray) and array.dtype == np.float64:
                return array
            raise InvalidDomainError(
                "load: expected an array of doubles under every name in the description"
            )
        if set(tree) == {"float"} and tree["float"] in ("inf", "-inf"):
            return float(tree["float"])
        return _rebuild(tree, arrays, depth)
    raise InvalidDomainError(
        f"load: expected arrays, numbers, lists and domains, got {type(tree).__name__}"
    )
