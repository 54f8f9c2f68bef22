"""The verdict of an inspection, for the owner of the data alone."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, final

from ...layout import on_screen
from ...text import printable

OFFICE = (
    "For the office alone: the verdict depends on exact counts of the data. Publishing it, or "
    "acting on it in public, is a release that no budget covers."
)

TOTAL = "the number of rows"
TOGETHER = "all numbers together"
EXACT = "what is exact, or whether every row fits"
FAR, CLOSE = "too far", "too close"

_WHERE = {
    FAR: "Too far from the recount",
    CLOSE: "Too close to the recount, as with less noise than stated",
}
_HOW = (
    "A table is compared apart from the smaller tables in it. If nearly all deviate, the data are "
    "of other rows; if all with one attribute do, that column differs. Where it differs "
    "depends on exact counts too: that is for the office alone as well."
)
_MOST_NAMED = 8
_HARDLY = 0.1  # below this probability, wrong noise is "hardly noticed"
_NEXT_TO_NONE = 0.01  # a smaller factor of the noise's scale is not mentioned


@final
@dataclass(frozen=True)
class Inspection:
    """The result of comparing released numbers with a recount of the data. NOT private.

    Attributes:
        passed: the verdict.
        level: a bound on the probability that a correct release does not pass.
        power: a lower bound on the probability with which the differences below are noticed.
        rows_lost: a number of rows (or a weight) whose loss, or double count, is noticed; 1 if the
            number of rows is public.
        rows_moved: {attribute: number of rows in wrong categories that is noticed}, as after
            swapping columns. For a clipped number, these are rows that count at one bound instead
            of the other. Only attributes that are measured alone are in it.
        noise: {factor: probability of noticing noise that is larger or smaller by this factor}.
        scales: two factors. Noise is noticed if its scale is less than the first factor, or more
            than the second, times the stated scale. None if nothing is measured.
        crowded: whether persons had more records than are counted. The random choice of the counted
            records was not stored. So differences that this choice can make are not noticed.
        weak: whether half of all rows could be missing, or in wrong categories, unnoticed.
        deviating: {table: "too far" or "too close"} for tables that disagree with the recount, each
            without the smaller tables that it contains.

    >>> import pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
    >>> people = pa.table({"sex": ["F", "M", "F"] * 400})
    >>> release = gn.plan(schema, 1, gn.zCDP(0.1)).release(people)
    >>> found = release.inspect(people)
    >>> found.passed, found.level, f"{found.rows_lost:.0f} {found.rows_moved['sex']:.0f}"
    (True, 1e-06, '26 13')
    >>> release.inspect(people.slice(0, 1100)).deviating["the number of rows"]
    'too far'
    """

    passed: bool
    level: float
    power: float
    rows_lost: float | None
    rows_moved: Mapping[str, float]
    noise: Mapping[float, float]
    scales: tuple[float, float] | None
    crowded: bool
    weak: bool = False
    deviating: Mapping[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, labelled as not private."""
        own = asdict(self) | {"noise": {str(factor): p for factor, p in self.noise.items()}}
        return {"format": "gaussnoise.inspection/1", "not_private": OFFICE, **own}

    @property
    def _verdict(self) -> str:
        """The first line of the printed inspection: whether it passed."""
        if not self.passed:
            return "FAILED"
        if not self.weak:
            return "PASSED"
        return (
            "PASSED, which says little: with this much noise, half of all rows could be missing or "
            "in other categories"
        )

    @property
    def _where(self) -> list[str]:
        """Lines that name the tables that disagree with the recount."""
        lines = []
        for how, said in _WHERE.items():
            names = [printable(name) for name, own in self.deviating.items() if own == how]
            more = len(names) - _MOST_NAMED
            shown = [*names[:_MOST_NAMED], *([f"… and {more} more"] if more > 0 else [])]
            lines += [f"{said}: {', '.join(shown)}"] if names else []
        return [*lines, _HOW] if lines else []

    def __str__(self) -> str:
        sure = f"with probability {self.power:g}"
        lines = [self._verdict, OFFICE, *self._where]
        lines += [f"A correct release fails with probability {self.level:g} at most."]
        if self.rows_lost is not None:
            lines += [f"Noticed {sure}: {self.rows_lost:,.0f} rows that are missing or come twice"]
        lines += [
            f"Noticed {sure}: {rows:,.0f} rows in other categories of {printable(name)}"
            for name, rows in self.rows_moved.items()
        ]
        if self.scales is not None:
            low, high = self.scales
            less = f"< {low:.3g} or " if low >= _NEXT_TO_NONE else ""
            lines += [f"Noticed {sure}: noise of {less}> {high:.3g} times the stated scale"]
            if not less:
                lines += ["Hardly noticed: noise of less than the stated scale, however small"]
        lines += [
            f"{'Noticed' if chance >= _HARDLY else 'Hardly noticed,'} with probability "
            f"{chance:.3g}: noise of {factor:g} times the stated scale"
            for factor, chance in self.noise.items()
        ]
        if self.crowded:
            lines += [
                "Some persons had more records than are counted. The choice among them was random "
                "and was not kept: the numbers above allow for it."
            ]
        return on_screen("\n".join(lines))
