"""Domains as plain data, for files: a tree that JSON can hold, and named arrays of numbers."""

import inspect
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .algebra import sums as _sums  # noqa: F401 (its class must be known before files are read)
from .domain import AbstractDomain
from .errors import InvalidDomainError, UnknownClassError
from .stored import OWN_FIRST, Storable, class_described, type_name

_DEPTH = 50  # largest number of nested levels of domains and tuples
_WORDS = ("counts", "vectors")


def describe(domain: AbstractDomain) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return a description as plain data, from which ``domain`` is rebuilt bit for bit.

    The bases of its queries are included.

    Returns:
        A tree of dicts, lists, strings and numbers, and the arrays that it names.

    Raises:
        InvalidDomainError: a class of your own without ``stored_as``, or more than 50 levels.
    """
    arrays: dict[str, NDArray[Any]] = {}
    return _describe(domain, arrays, 0), arrays


def rebuild(tree: object, arrays: Mapping[str, NDArray[Any]]) -> AbstractDomain:
    """Return the domain from its description, which :func:`describe` returned.

    The description may come from an untrusted source: constructors validate it again.

    Raises:
        UnknownClassError: the description names a class that is not known here.
        InvalidDomainError: the arguments do not describe a domain.
    """
    domain = _rebuild(tree, arrays, 0)
    if isinstance(domain, AbstractDomain):
        return domain
    raise InvalidDomainError(
        f"load: expected the description of a domain, got that of a base, {type(domain).__name__}"
    )


def _check_depth(depth: int) -> None:
    if depth > _DEPTH:
        raise InvalidDomainError(
            f"expected a domain built in at most {_DEPTH} levels, got more; hint: A @ (B @ K) is "
            "(A @ B) @ K"
        )


def _describe(value: Any, arrays: dict[str, NDArray[Any]], depth: int) -> Any:
    _check_depth(depth)
    if isinstance(value, Storable):
        name = type_name(type(value))
        if name is None:
            raise InvalidDomainError(
                f"save: expected a class that files have a name for, got {type(value).__name__}; "
                'hint: stored_as = "..." in it, and its arguments under their own names'
            )
        return {
            "type": name,
            "fields": {k: _describe(x, arrays, depth + 1) for k, x in value._stored().items()},
        }
    if isinstance(value, tuple):
        return [_describe(x, arrays, depth + 1) for x in value]
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        name = f"array{len(arrays)}"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, float):  # JSON has no infinity
        return float(value) if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str) and value in _WORDS:
        return value
    raise InvalidDomainError(
        f"save: expected arrays of doubles, numbers, tuples and domains, got {type(value).__name__}"
    )


def _rebuild(tree: object, arrays: Mapping[str, NDArray[Any]], depth: int) -> Storable:
    if (
        not isinstance(tree, dict)
        or set(tree) != {"type", "fields"}
        or not isinstance(tree["fields"], dict)
    ):
        raise InvalidDomainError(
            "load: expected the description of a domain: a type and its fields"
        )
    cls = class_described(tree["type"])
    if cls is None:
        raise UnknownClassError(
            f"load: expected a class that is known here, got {tree['type']!r:.60}; "
            f"hint: {OWN_FIRST}"
        )
    expected = list(inspect.signature(cls).parameters)
    if set(tree["fields"]) != set(expected):
        raise InvalidDomainError(
            f"load: expected the fields {', '.join(expected)} of {cls.__name__}, got others"
        )
    fields = {name: _value(tree["fields"][name], arrays, depth + 1) for name in expected}
    try:
        return cls._restored(fields)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # our own messages never show data, but messages of other libraries may quote the file
        reason = (
            f": {error}" if isinstance(error, InvalidDomainError) else f" ({type(error).__name__})"
        )
    raise InvalidDomainError(f"load: expected fields that make a {cls.__name__}{reason}")


def _value(tree: object, arrays: Mapping[str, NDArray[Any]], depth: int) -> Any:
    """Return one argument of a constructor, rebuilt from its description and the named arrays."""
    _check_depth(depth)
    if isinstance(tree, list):
        return tuple(_value(x, arrays, depth + 1) for x in tree)
    if type(tree) in (int, float) or tree in _WORDS:
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
