"""Budgets that grow with numbers in a record, for data such as firms of very different size."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from ..errors import ParameterError
from ..numerics.rounding import rounded_up
from ..text import SHOWN_DELTA, no_less
from .definitions import gaussian_epsilon, zCDP
from .guarantee import AbstractPrivacy, Larger
from .lattice_bound import MIN_STEPS

_AT_ZERO = "for a record whose numbers are 0"
_SHOWN = (1, 10, 100)  # multiples of the scales for which budgets are printed
_HCR = "Hammersley–Chapman–Robins with χ² <= e^{2P} − 1 for a record of budget P"


@final
@dataclass(frozen=True)
class PerRecord(AbstractPrivacy):
    """A budget ``P(r) = ρ (1 + Σ_j (v_j / T_j)²)`` for each record r, a public function of r.

    Here v_j are numbers of the record, and T_j their scales. Adding or removing a record r is
    P(r)-zCDP. So sums of numbers like the payroll of firms need no clipping. A firm of any size is
    counted with its full number. A small firm has the budget ρ, independent of large firms.

    Formal guarantees:
        * For two tables that differ by one record r, the Rényi divergence of order α between the
          outputs is at most ``α P(r)``, for all α > 1. The numbers v_j are those that are
          counted: multiples of the unit of :class:`Attribute`.
        * Replacing r by r' is a removal and an addition: with Gaussian noise, it costs at most
          ``(√P(r) + √P(r'))²``, by the triangle inequality. Plans are for rows added or removed.
        * In plans with ``rows_per_person`` or ``person``, a record is a person with at most k rows
          that are counted, and v_j is the sum of the person's numbers in them. So a firm of several
          branches has the budget of its whole payroll. If the scales are k T instead of T, this
          budget is at most ``ρ (1 + Σ_j (m_j / T_j)²)``, where m_j is the person's largest number.
        * For n numbers, this guarantee with ρ/(n + 1) implies the budget ``ρ max(1, (v_1 / T_1)²,
          …)`` for every record, since the sum is at most n + 1 times its largest term.
        * A release that does not use these numbers is ρ-zCDP.

    Args:
        privacy: the :class:`zCDP` of a record whose numbers are all zero.
        scale: {name of the number's attribute: T_j}, positive and finite.

    Raises:
        ParameterError: the budget is not zCDP, or scale is no mapping of names to numbers.

    Source: Seeman, Sexton, Pujol & Machanavajjhala (2023), "Per-Record zero-concentrated
    differential privacy", arXiv 2310.12827.

    >>> firms = gn.PerRecord(gn.zCDP(0.1), scale={"payroll": 1e6})
    >>> print(firms.of(payroll=0), firms.of(payroll=1e6), f"{firms.of(payroll=1e7):.4g}")
    0.1 0.2 10.1
    >>> schema = gn.Schema([gn.Attribute("region", ["N", "S"]), gn.Attribute("payroll", unit=0.01)])
    >>> plan = gn.plan(schema, [("region", "payroll")], firms)
    >>> print(f"{plan.standard_deviation('region'):.3f}")
    2.236
    """

    privacy: zCDP
    scale: tuple[tuple[str, float], ...]

    def __init__(
        self,
        privacy: zCDP | Mapping[str, Any],
        scale: Mapping[str, float] | Iterable[tuple[str, float]],
    ) -> None:
        known = AbstractPrivacy.read(privacy) if isinstance(privacy, Mapping) else privacy
        if not isinstance(known, zCDP):
            raise ParameterError(
                f"PerRecord: expected a budget like zCDP(0.1), got {type(known).__name__}"
            )
        try:
            given: dict[Any, Any] = dict(scale)
        except (TypeError, ValueError):
            given = {}
        listed = {name: getattr(t, "item", lambda t=t: t)() for name, t in given.items()}
        if not listed or not all(
            isinstance(name, str)
            and name
            and isinstance(t, int | float)
            and not isinstance(t, bool)
            and 1e-100 <= t <= 1e100
            for name, t in listed.items()
        ):
            raise ParameterError(
                'PerRecord: expected scale like {"payroll": 1e6}, from names to positive numbers, '
                f"got {scale!r:.80}"
            )
        object.__setattr__(self, "privacy", known)
        found = sorted((name, float(t)) for name, t in listed.items())
        object.__setattr__(self, "scale", tuple(found))

    def __repr__(self) -> str:
        return f"PerRecord({self.privacy!r}, scale={self.scales})"

    @property
    def scales(self) -> dict[str, float]:
        return dict(self.scale)

    def of(self, **numbers: float) -> float:
        """Return the ρ of a record with these numbers, rounded up; omitted numbers are zero.

        Raises:
            ParameterError: a number is not finite, or the budget does not depend on it.
        """
        scales = self.scales
        total = Fraction(1)
        for name, v in numbers.items():
            if name not in scales or not 0 <= v < math.inf:
                raise ParameterError(
                    f"of: expected finite numbers >= 0 of {', '.join(scales)}, got {name}={v!r:.40}"
                )
            total += (Fraction(v) / Fraction(scales[name])) ** 2
        return rounded_up(Fraction(self.privacy.rho) * total)

    def to_zcdp(self, draws: int = 1, steps: float = MIN_STEPS) -> zCDP:
        return self.privacy  # the least budget of any record

    @property
    def words(self) -> str:
        return f"{self.privacy.words} for each record, times {self._growth}"

    @property
    def _growth(self) -> str:
        return " + ".join(["1", *(f"({name}/{t:.15g})²" for name, t in self.scale)])

    def budget(self, rho: float, draws: int, steps: float, scope: str = "") -> str:
        epsilon = gaussian_epsilon(rho, SHOWN_DELTA, draws=draws, steps=steps)
        larger = "; ".join(
            f"{own.record}: rho = {no_less(own.factor * rho)}" for own in self.larger()
        )
        return (
            f"{self.words}; of a record whose numbers are 0, ({no_less(epsilon, 4)}, "
            f"{SHOWN_DELTA:g})-differential privacy. LARGE RECORDS ARE PROTECTED LESS: {larger}"
            + (f"; {scope}" if scope else "")
        )

    def larger(self) -> tuple[Larger, ...]:
        return tuple(
            Larger(f"{name} {k * t:,.15g}", 1.0 + k * k) for name, t in self.scale for k in _SHOWN
        )

    def arguments(self) -> dict[str, Any]:
        return {"privacy": self.privacy.stated(), "scale": self.scales}

    def as_dict(self, draws: int = 1, steps: float = MIN_STEPS) -> dict[str, object]:
        return {"definition": "per-record zCDP", "rho": self.privacy.rho, "scales": self.scales}

    def factor_over(self, scales: Mapping[str, float]) -> float | None:
        """Return the least c with ``P(r) <= c ρ (1 + Σ_j (v_j/T'_j)²)`` for all records r.

        P(r) is the budget of record r with the numbers v_j, and T' is ``scales``. Both sides are
        sums of squares v_j², so their coefficients are compared. Return None if no c is enough.
        """
        if not set(self.scales) <= set(scales):
            return None
        # budgets store these numbers as doubles, plans as decimals
        ratios = [
            own(scales[name]) / own(t) for name, t in self.scale for own in (Fraction, _decimal)
        ]
        return rounded_up(max([Fraction(1), *(ratio**2 for ratio in ratios)]))

    def chi_squared(self) -> tuple[float, str]:
        """Return the largest χ² divergence for a record whose numbers are zero, and its source.

        For other records, the divergence is larger.
        """
        return (
            math.expm1(min(2 * self.privacy.rho, 709.0)) if self.privacy.rho < 354 else math.inf,
            _HCR,
        )


def holds(scales: Mapping[str, float]) -> dict[str, str]:
    """Return a JSON field on the records for which a stated ε holds.

    The field is {} if the ε holds for all records.
    """
    return {"holds": _AT_ZERO} if scales else {}


def holds_text(scales: Mapping[str, float]) -> str:
    """Return text on the records for which a stated ρ or ε holds.

    The text is empty if it holds for all records.
    """
    return f", {_AT_ZERO}" if scales else ""


def _decimal(x: float) -> Fraction:
    return Fraction(repr(float(x)))
