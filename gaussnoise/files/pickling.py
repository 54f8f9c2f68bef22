"""The content of our pickles. Unpickling runs code of a pickle's maker, who must be trusted."""

from dataclasses import fields
from functools import partial
from types import MappingProxyType
from typing import Any


class PickledByArguments:
    """Dataclasses whose pickles and copies hold the constructor's arguments and nothing else.

    All else is derived from the arguments, and checked, again after unpickling. So a noise scale or
    a codebook that was replaced in the object is not stored.
    """

    def __reduce__(self) -> tuple[partial[Any], tuple[()]]:
        known: Any = self
        arguments = {field.name: getattr(self, field.name) for field in fields(known) if field.init}
        return partial(
            type(self),
            **{
                name: dict(value) if isinstance(value, MappingProxyType) else value
                for name, value in arguments.items()
            },
        ), ()
