"""The content of our pickles. Unpickling runs code of a pickle's maker, who must be trusted."""

from dataclasses import fields
from types import MappingProxyType
from typing import Any


class PickledByArguments:
    """Dataclasses whose pickles and copies hold the constructor's arguments and nothing else.

    All else is derived from the arguments, and checked, again after unpickling. So a noise scale or
    a codebook that was replaced in the object is not stored.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        known: Any = self
        arguments = {field.name: getattr(self, field.name) for field in fields(known) if field.init}
        for name, value in arguments.items():
            if isinstance(value, MappingProxyType):
                arguments[name] = dict(value)
        return _made, (type(self), arguments)


def _made(kind: type, arguments: dict[str, Any]) -> object:
    """Return a new object of this kind."""
    return kind(**arguments)
