"""The ranges of a column's numbers, found from the data with a part of a plan's budget."""

import math
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Self, final

from ...errors import ParameterError
from ...numerics.rounding import rounded_up
from ...text import significant
from ..schema.schema import Schema

FEW = 2  # noisy counts below it are called few


@final
@dataclass(frozen=True)
class FoundRange:
    """The range to which a column's numbers are clipped, as :func:`column_means` found it.

    Attributes:
        column: the name of the column.
        low: the lower bound; None if no range was found.
        high: the upper bound; None if no range was found.
        size: a bound on the standard deviation of the numbers, under the assumption.
        bias: a bound on the bias that clipping gives a mean, under the assumption.
        assumed: the assumption, in words; empty if both bounds are public.
        reason: why no range was found, and what would help; empty if one was found.
        number: the noisy count of values that are numbers; 0 if both bounds are public.
        rho: the ρ that was spent.
        draws: an upper bound on the number of noisy counts that were drawn.
        wrong: the probability that the range is too narrow, or that another check of it errs.
        least: the public lower bound of all numbers, or zero if that is assumed; None if there is
            no such bound, or both bounds are public.
        most: the public upper bound of all numbers, likewise.
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
    least: float | None = None
    most: float | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest number that the column can have, as known or assumed.

        Unknown ends are infinite.
        """
        if self.low is not None and self.high is not None and not self.assumed:
            return self.low, self.high
        least, most = self.least, self.most
        return -math.inf if least is None else least, math.inf if most is None else most

    def record(self) -> dict[str, object]:
        """Return the range as plain data for a file; unknown bounds are left out."""
        ends = ("least", "most")
        return {k: x for k, x in asdict(self).items() if k not in ends or x is not None}

    @classmethod
    def read(cls, record: Any) -> Self:
        """Return the range that :meth:`record` wrote as plain data.

        Raise TypeError or ValueError for other data.
        """
        found = cls(**record)
        names = ("size", "bias", "number", "rho", "wrong")
        numbers = [getattr(found, name) for name in names]
        ends = [found.low, found.high] if found.low is not None else []
        ends += [end for end in (found.least, found.most) if end is not None]
        texts = found.column, found.assumed, found.reason
        if not all(isinstance(text, str) for text in texts) or type(found.draws) is not int:
            raise TypeError
        if not all(math.isfinite(x) for x in [*numbers, *ends]) or min(*numbers, found.draws) < 0:
            raise ValueError
        return found


def check_ranges(ranges: object, schema: Schema) -> tuple[FoundRange, ...]:
    """Return ``ranges`` as a tuple, if each is the interval of its attribute.

    Raises:
        ParameterError: a range does not belong to this schema.
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
    """Return the ρ that was spent to find these ranges, rounded up."""
    return rounded_up(sum((Fraction(own.rho) for own in ranges), Fraction(0)))


def ranges_text(ranges: Sequence[FoundRange], rho: float) -> list[str]:
    """Return sentences on each range: which numbers it changes, its cost, and its assumption.

    ``rho`` is the whole budget. The cost of a range is a part of it.
    """
    lines: list[str] = []
    for own in ranges:
        if own.low is None or own.high is None:
            lines.append(f"{own.column}: no range, since {own.reason}.")
            continue
        (least, most), (low, high) = own.ends, (_exact_text(own.low), _exact_text(own.high))
        cuts = [f"below {low} count as {low}"] * (own.low > least or not own.rho)
        cuts += [f"above {high} count as {high}"] * (own.high < most or not own.rho)
        cut = f"{own.column}: numbers {' and those '.join(cuts) or 'all count as they are'}"
        if not own.rho:
            lines.append(
                f"{cut}, the public bounds: intervals for a population take it that there are none."
            )
            continue
        length = own.high - own.low
        share, given = 100 * own.bias / length, shlex.quote(f"{own.column}={low},{high}")
        further = "higher" if own.low <= least else "lower" if own.high >= most else "outside"
        saved = 1 - math.sqrt(1 - own.rho / rho)
        lines += [
            f"{cut}. Intervals allow for a bias of {significant(own.bias, 3)}, as if {share:.2g} % "
            f"of the numbers of a group lay {significant(length, 3)} outside this range; if more "
            f"do, the true mean may be {further}.",
            f"{own.column}: assumed, {own.assumed}.",
            f"{own.column}: {100 * own.rho / rho:.0f} % of the budget found this range, "
            f"[{low}, {high}]; public bounds as wide would make noise {100 * saved:.0f} % "
            "smaller. Sums and means of the counted rows can be compared only with those of a "
            f"release with the same range: give the next one --between {given}.",
        ]
    assumed = [own.column for own in ranges if own.assumed]
    if assumed:
        lines.append(
            f"Assumed of {' and of '.join(assumed)}, in plain words: in no group, however small, "
            "do a few numbers far from the others make up much of the mean. Where they do, the "
            "interval misses the true mean more often than it says; public bounds, --between "
            f"{shlex.quote(f'{assumed[0]}=LOW,HIGH')}, need no assumption."
        )
    return lines


def _exact_text(end: float) -> str:
    """Return the shortest text from which Python reads exactly this number."""
    return repr(end).removesuffix(".0")
