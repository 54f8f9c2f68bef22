"""What a pickle of our objects holds. Unpickling runs what its maker wrote: trust the maker."""

from dataclasses import fields
from types import MappingProxyType
from typing import Any


class PickledByArguments:
    """Dataclasses whose pickles and copies hold the constructor's arguments and nothing else.

    What was derived from them is derived again, and checked again: a noise scale or a codebook that
    somebody put in its place does not travel.
    """

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        known: Any = self
        arguments = (getattr(self, field.name) for field in fields(known) if field.init)
        return type(self), tuple(
            dict(x) if isinstance(x, MappingProxyType) else x for x in arguments
        )
