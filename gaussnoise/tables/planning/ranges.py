"""The ranges of numbers that were found with a part of a plan's budget."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Self, final

from ...errors import ParameterError
from ...numerics.rounding import rounded_up
from ..schema.schema import Schema


@final
@dataclass(frozen=True)
class FoundRange:
    """The range to which a column's numbers are clipped, as :func:`column_means` found it.

    Attributes:
        column: the name of the column.
        low: the lower end; None where no range was found.
        high: the upper end; None where no range was found.
        size: a bound on the standard deviation of the numbers, under the assumption.
        bias: a bound on the bias that clipping gives a mean, under the assumption.
        assumed: the assumption, in words; empty if both ends are public.
        reason: why no range was found, and what would help; empty if one was found.
        number: the noisy number of numbers; 0 if both ends are public.
        rho: the ρ that was spent.
        draws: the most noisy counts that were drawn.
        wrong: the chance that the range is too narrow, or that another of its checks errs.
    """

    column: str
    low: float | None
    high: float | None
    size: float = 0.0
    bias: float = 0.0
    assumed: str = ""
    reason: str = ""
    number: float = 0.0
    rho: float = 0.0
    draws: int = 0
    wrong: float = 0.0

    def record(self) -> dict[str, object]:
        """Return the range as plain data."""
        return asdict(self)

    @classmethod
    def read(cls, record: Any) -> Self:
        """Return the range that :meth:`record` wrote; TypeError or ValueError for anything else."""
        found = cls(**record)
        names = ("size", "bias", "number", "rho", "wrong")
        numbers = [getattr(found, name) for name in names]
        ends = [found.low, found.high] if found.low is not None else []
        texts = found.column, found.assumed, found.reason
        if not all(isinstance(text, str) for text in texts) or type(found.draws) is not int:
            raise TypeError
        if not all(math.isfinite(x) for x in [*numbers, *ends]) or min(*numbers, found.draws) < 0:
            raise ValueError
        return found


def check_ranges(ranges: object, schema: Schema) -> tuple[FoundRange, ...]:
    """Return the ranges, each of which is the interval of its attribute.

    Raises:
        ParameterError: they are none of this schema.
    """
    found: tuple[Any, ...] = tuple(ranges) if isinstance(ranges, list | tuple) else (ranges,)
    clips = {attribute.name: attribute.clip for attribute in schema.attributes}
    for own in found:
        ends = (own.low, own.high) if isinstance(own, FoundRange) else ()
        expected = clips.get(own.column, ()) if isinstance(own, FoundRange) else ()
        if not ends or ends != (expected or (None, None)):
            raise ParameterError(
                "plan: expected ranges= to be the ranges that estimators.column_means found for "
                "the clipped numbers of the schema; hint: leave it out"
            )
    return found


def spent_on(ranges: Sequence[FoundRange]) -> float:
    """Return the ρ that was spent to find ranges."""
    return rounded_up(sum((Fraction(own.rho) for own in ranges), Fraction(0)))


def ranges_text(ranges: Sequence[FoundRange], rho: float) -> list[str]:
    """Return the sentences on ranges, their cost as a part of ρ, and their assumptions."""
    lines: list[str] = []
    for own in ranges:
        if own.reason:
            lines.append(f"{own.column}: no range, since {own.reason}.")
        elif not own.rho:
            lines.append(
                f"{own.column}: numbers are clipped to the public bounds "
                f"[{own.low:g}, {own.high:g}]."
            )
        else:
            saved = 1 - math.sqrt(1 - own.rho / rho)
            lines += [
                f"{own.column}: assumed, {own.assumed}.",
                f"{own.column}: {own.rho / rho:.0%} of the budget found this range, "
                f"[{own.low:g}, {own.high:g}]; public bounds as wide would make noise {saved:.0%} "
                "smaller.",
            ]
    return lines
