"""Storage of sets, bases and patterns: the name of a class and its constructor's arguments."""

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeVar

from .errors import InvalidDomainError

_OWN_PACKAGE = __name__.partition(".")[0]
_KNOWN: dict[str, type["Storable"]] = {}

OWN_FIRST = "a class of your own is known by its stored_as once it is defined or imported"

Kind = TypeVar("Kind", bound="Storable")


class Storable:
    """An object that files store as the name of its class and the arguments of its constructor.

    A class of your own is stored if it sets ``stored_as``, and keeps every argument of its
    constructor under the argument's name: numbers, arrays of doubles, tuples, sets and bases. Files
    may be untrusted, so the constructor must validate its arguments. No file names a module: your
    class has to be defined, or imported, before its files are read.

    Attributes:
        stored_as: the name of the class in files. It is unique, and subclasses do not inherit it.

    Raises:
        InvalidDomainError: a class is defined with an empty name, or with another class's name.
    """

    stored_as: ClassVar[str | None] = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = schema_name(cls)
        if own is not None and not (isinstance(own, str) and own):
            raise InvalidDomainError(
                f"{cls.__name__}: expected stored_as to be a name, got {own!r:.60}"
            )
        for name in filter(None, (type_name(cls), own)):
            taken = _KNOWN.get(name, cls)
            # the same module may define a class again, as notebooks and dataclasses with slots do
            if (taken.__module__, taken.__name__) != (cls.__module__, cls.__name__):
                raise InvalidDomainError(
                    f"{cls.__name__}: expected stored_as to be a name of its own, got {name!r}, "
                    f"which is that of {taken.__module__}.{taken.__name__}"
                )
            _KNOWN[name] = cls

    def _stored(self) -> dict[str, Any]:
        """Return the arguments, by name, from which the constructor makes an equal object."""
        names = inspect.signature(type(self)).parameters
        missing = [name for name in names if not hasattr(self, name)]
        if missing:
            raise InvalidDomainError(
                f"{type(self).__name__}: expected every argument of the constructor under its own "
                f"name, got no {missing[0]!r}"
            )
        return {name: getattr(self, name) for name in names}

    @classmethod
    def _restored(cls, arguments: Mapping[str, Any]) -> Self:
        """Return the object built from the arguments that :meth:`_stored` returned."""
        return cls(**arguments)


def is_ours(cls: type) -> bool:
    """Return whether a class belongs to this package."""
    return cls.__module__.partition(".")[0] == _OWN_PACKAGE


def schema_name(cls: type[Storable]) -> str | None:
    """Return ``cls.stored_as``, the name in schema files; None if the class sets none itself."""
    return vars(cls).get("stored_as")


def type_name(cls: type[Storable]) -> str | None:
    """Return a class's name in descriptions: its Python name if ours, else ``stored_as``."""
    return cls.__name__ if is_ours(cls) else schema_name(cls)


def class_described(name: object) -> type[Storable] | None:
    """Return the class with this name in the descriptions of files; None if it is unknown."""
    cls = _KNOWN.get(name) if isinstance(name, str) else None
    known = cls is not None and type_name(cls) == name and not inspect.isabstract(cls)
    return cls if known else None


def named_classes(family: type[Kind]) -> dict[str, type[Kind]]:
    """Return the subclasses of ``family`` that have a name in files: {name: class}."""
    return {
        name: cls
        for name, cls in _KNOWN.items()
        if issubclass(cls, family) and schema_name(cls) == name
    }
