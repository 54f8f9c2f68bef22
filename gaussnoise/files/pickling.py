"""Pickles of our objects. Read pickles only from people you trust, as they can run any code."""

from dataclasses import fields
from types import MappingProxyType
from typing import Any


class PickledByArguments:
    """A base class of dataclasses whose pickles hold only the arguments of the constructor.

    After unpickling, everything else is computed again from the arguments, and checked. So if a
    noise scale or a codebook in the object was replaced, the replacement is not stored.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        known: Any = self
        arguments = {field.name: getattr(self, field.name) for field in fields(known) if field.init}
        for name, value in arguments.items():
            if isinstance(value, MappingProxyType):
                arguments[name] = dict(value)
        return _made, (type(self), arguments)


def _made(kind: type, arguments: dict[str, Any]) -> object:
    """Return an object of the class ``kind``, made from the arguments of its constructor."""
    return kind(**arguments)
