"""The meaning of a privacy budget ρ (of zCDP): errors of tables, and the risk of one person."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, final

import scipy

from ...errors import ParameterError
from ...layout import on_screen
from ...noise.problem import Relation
from ...numerics.intervals import quantile
from ...numerics.rounding import SAFE_SIDE
from ...privacy.definitions import gaussian_epsilon, zCDP
from ...privacy.lattice_bound import TABLE_STEPS, lattice_distance
from ...privacy.testing import most_power
from ...text import SHOWN_DELTA, no_less, number_of
from ..schema.entries import Entry
from ..schema.schema import Schema
from .door import plan
from .facts import percent_text, relation_text, surest
from .noun import noun_of
from .plan import Plan
from .text import draft_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RHOS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
FALSE_ALARMS = 0.05  # false positive rate of the test for the presence of one row
LEVEL = 0.95  # confidence level of the intervals
_MOST_KINDS = 24  # most tables in a list
_LONGEST_NAME = 40


@final
@dataclass(frozen=True)
class Kind:
    """Tables with the same number of answers and the same error.

    Attributes:
        names: the names of these tables in the workload.
        answers: the number of answers in each table.
        deviation: root mean square standard deviation of the answers of a table at ρ = 1, in rows.
    """

    names: tuple[str, ...]
    answers: int
    deviation: float

    @property
    def name(self) -> str:
        """The name of the first of these tables, and how many more there are."""
        more = len(self.names) - 1
        return self.names[0] if not more else f"{self.names[0]} and {more} more"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Budgets:
    """The errors of tables and the risk of one person at several budgets, from :func:`budgets`.

    One optimum serves all budgets, since standard deviations are proportional to 1/√ρ.

    Attributes:
        plan: the plan of least error at ρ = 1.
        rhos: the budgets to show.
        delta: the δ of every (ε, δ), and the probability that a belief is larger than shown.
        least: the ρ at which every 95 % interval has a half-width of one row at most. For w rows, ρ
            is ``least / w²``. It is 0 if no noise is needed.

    >>> schema = gn.Schema(
    ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 40, 65])]
    ... )
    >>> found = gn.budgets(schema, 2)
    >>> print(f"{found.rho_within(10):.4f}")  # ten rows, at 95 %
    0.0192
    """

    plan: Plan
    rhos: tuple[float, ...]
    delta: float
    least: float

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """The tables of the workload in groups of equal error and equal number of answers."""
        groups: dict[tuple[int, str], list[int]] = {}
        planned = self.plan
        for k, (answers, deviation) in enumerate(
            zip(planned.queries, planned.deviations, strict=True)
        ):
            groups.setdefault((int(answers), f"{deviation:.6e}"), []).append(k)
        names, unit = planned.entries, planned.deviations
        return tuple(
            Kind(tuple(names[k] for k in places), answers, float(unit[places].max()))
            for (answers, _), places in groups.items()
        )

    def standard_deviation(self, kind: Kind, rho: float) -> float:
        """Return the standard deviation of an answer of these tables, in rows, at the budget ρ."""
        return kind.deviation / math.sqrt(rho)

    def half_width(self, kind: Kind, rho: float) -> float:
        """Return half the length of an answer's 95 % interval, in rows, at the budget ρ."""
        return quantile(LEVEL) * self.standard_deviation(kind, rho)

    def epsilon(self, rho: float) -> float:
        """Return the ε of the (ε, δ) privacy guarantee at the budget ρ; δ is :attr:`delta`."""
        return gaussian_epsilon(rho, self.delta, draws=self.plan.integers, steps=TABLE_STEPS)

    def power(self, rho: float) -> float:
        """Return the largest power of a test of whether one row (or person) was in the data.

        The test has a false positive rate of 5 %.

        The value holds for the drawn noise, since the total variation distance between this noise
        and the rounded Gaussian is added.
        """
        far = self._distance
        gaussian = float(most_power(zCDP(rho), FALSE_ALARMS))
        # The noise is within total variation ``far`` of the rounded Gaussian: this changes level
        # and power by at most ``far``. The bound for any ρ-zCDP mechanism holds as well.
        return min(gaussian, _gaussian_power(rho, FALSE_ALARMS + far) + far)

    def posterior(self, rho: float) -> float:
        """Return the largest posterior belief that one row (or person) was there; prior 50 %.

        The belief exceeds this bound with probability at most :attr:`delta`; see
        :func:`gaussnoise.privacy.most_posterior`.
        """
        return surest(rho, self.delta, self.plan.integers, TABLE_STEPS)

    def rho_within(self, rows: float) -> float:
        """Return the least ρ at which every 95 % interval has a half-width of at most ``rows``.

        ``plan(..., targets=rows)`` finds the same ρ.

        Raises:
            ParameterError: ``rows`` is not a positive, finite number.
        """
        if not (isinstance(rows, int | float) and 0 < rows < math.inf):
            raise ParameterError(
                f"rho_within: expected a positive, finite number of rows, got {rows!r}"
            )
        return self.least / rows**2

    @cached_property
    def _distance(self) -> float:
        """A bound on the total variation distance of the drawn noise from a rounded Gaussian."""
        return lattice_distance(int(self.plan.integers), TABLE_STEPS)

    @cached_property
    def _shown(self) -> tuple[Kind, ...]:
        """The kinds of tables to show: all, or 24, from the smallest to the largest error."""
        if len(self.kinds) <= _MOST_KINDS:
            return self.kinds
        order = sorted(self.kinds, key=lambda kind: kind.deviation)
        step = (len(order) - 1) / (_MOST_KINDS - 1)
        return tuple(order[round(k * step)] for k in range(_MOST_KINDS))

    def to_frame(self, backend: Literal["pyarrow", "pandas", "polars"] = "pyarrow") -> Any:
        """Return one row for every kind of table and every ρ, as a dataframe.

        Args:
            backend: "pyarrow", "pandas" or "polars".
        """
        import narwhals as nw
        import pyarrow as pa

        pairs = [(kind, rho) for kind in self.kinds for rho in self.rhos]
        columns = {
            "tables": [kind.name for kind, _ in pairs],
            "answers": [kind.answers for kind, _ in pairs],
            "rho": [rho for _, rho in pairs],
            "standard_deviation": [self.standard_deviation(*pair) for pair in pairs],
            "half_width": [self.half_width(*pair) for pair in pairs],
            # the columns below depend on ρ alone, not on the table
            "epsilon": [self.epsilon(rho) for rho in self.rhos] * len(self.kinds),
            "power": [self.power(rho) for rho in self.rhos] * len(self.kinds),
            "posterior": [self.posterior(rho) for rho in self.rhos] * len(self.kinds),
        }
        return nw.from_arrow(pa.table(columns), backend=backend).to_native()

    def plot(self) -> "Figure":
        """Plot error against budget, next to the risk of one row (or person).

        Returns:
            A matplotlib Figure; save it with ``.savefig(path)``.
        """
        from .budgets_picture import plot_budgets

        return plot_budgets(self, self._shown)

    def _blocks(self) -> tuple[list[str], list[list[str]], list[list[str]]]:
        """Return the parts of the printed table: budgets, rows on ε and risk, and half-widths."""
        means = [
            [
                f"epsilon, at delta = {self.delta:g}",
                *(no_less(self.epsilon(r), 4) for r in self.rhos),
            ],
            ["surest of one row, from 50 %", *(percent_text(self.posterior(r)) for r in self.rhos)],
            [
                f"found, at {100 * FALSE_ALARMS:g} % false alarms",
                *(percent_text(self.power(r)) for r in self.rhos),
            ],
        ]
        if self.plan.rows_per_person > 1:
            means[1][0] = "surest of one person, from 50 %"
        errors = [
            [_shortened(kind.name), *(f"{self.half_width(kind, r):.4g}" for r in self.rhos)]
            for kind in self._shown
        ]
        return [f"{rho:g}" for rho in self.rhos], means, errors

    def _in_words(self) -> list[str]:
        """Return sentences that explain the budget nearest to 0.1, and what smaller errors cost."""
        rho = min(self.rhos, key=lambda r: abs(math.log(r / 0.1)))
        there = (
            "a row was exchanged for another"
            if self.plan.neighbors == "replace"
            else "a row is there"
        )
        if self.plan.rows_per_person > 1:
            there = there.replace("a row", "a person") + (
                f" (with at most {self.plan.rows_per_person} rows)"
            )
        power, sure = percent_text(self.power(rho)), percent_text(self.posterior(rho))
        lines = [
            f"rho = {rho:g} in words: someone who knows all other rows and thinks it 50 % likely "
            f"that {there} is at most {sure} sure after seeing the release, except with "
            f"probability {self.delta:g}. A test that raises {100 * FALSE_ALARMS:g} % false "
            f"alarms finds it with probability {power} at most; blind guessing, with "
            f"{100 * FALSE_ALARMS:g} %.",
            f"Standard deviations are half-widths / {quantile(LEVEL):.2f}. Ten times the budget "
            f"makes errors {math.sqrt(10):.2f} times smaller.",
        ]
        if self.least > 0:
            cost = ", ".join(f"±{w} costs rho = {self.rho_within(w):.3g}" for w in (1000, 100, 10))
            lines.append(
                f"What a target costs, if it is the same for every answer at {100 * LEVEL:g} %: "
                f"{cost}; in general {self.least:.4g} / {noun_of(self.plan)}^2."
            )
        else:
            lines.append("These tables need no noise: under this relation they are public.")
        return lines

    def _head(self) -> str:
        planned = self.plan
        count, what = len(planned.entries), "cells" if planned.domain.is_cells else "answers"
        noun = "table" if count == 1 else "tables"
        return f"Budgets for {count} {noun} of {planned.domain.dim} {what}, before any data"

    def _note(self) -> str:
        what = "cell" if self.plan.domain.is_cells else "answer (root mean square of a table's)"
        noun = noun_of(self.plan)
        return f"In {100 * LEVEL:g} of 100 cases, every {what} is off by less than ±, in {noun}:"

    def __str__(self) -> str:
        rhos, means, errors = self._blocks()
        names = max(len(row[0]) for row in [*means, *errors])
        widths = [
            max(len(row[k]) for row in [["", *rhos], *means, *errors])
            for k in range(1, len(rhos) + 1)
        ]

        def line(row: Sequence[str]) -> str:
            return "  ".join(
                [f"{row[0]:<{names}}", *(f"{x:>{w}}" for x, w in zip(row[1:], widths, strict=True))]
            )

        left_out = len(self.kinds) - len(self._shown)
        lines = [
            self._head(),
            f"neighbours   {relation_text(self.plan)}",
            *draft_text(self.plan.schema),
            "",
            line(["rho", *rhos]),
            *map(line, means),
            "",
            self._note(),
            *map(line, errors),
            *([f"… and {left_out} kinds of tables between these"] if left_out else []),
            "",
            *self._in_words(),
            "Choose one: plan(..., zCDP(rho)), or --rho in the shell. All releases of the same "
            "data add up: their rho is the sum.",
        ]
        return on_screen("\n".join(lines))

    def __repr__(self) -> str:
        first, last = self.rhos[0], self.rhos[-1]
        return (
            f"Budgets({number_of(len(self.plan.entries), 'table')}, rho from {first:g} to {last:g})"
        )

    def _repr_html_(self) -> str:
        from ..release.report.render import rendered

        rhos, means, errors = self._blocks()
        return rendered(
            "budgets.html",
            head=self._head(),
            rhos=rhos,
            means=means,
            note=self._note(),
            errors=errors,
            sentences=self._in_words(),
        )


def budgets(
    schema: Schema,
    workload: int | Sequence[Entry],
    *,
    rhos: Iterable[float] | None = None,
    delta: float = SHOWN_DELTA,
    neighbors: Relation = "add-remove",
    p: float = 2,
    weights: Sequence[float] | None = None,
    rows_per_person: int = 1,
) -> Budgets:
    """Return the errors and risks of several budgets for a workload, without any data.

    For every ρ, the result has the error of the tables, the ε that ρ implies, and two risks. One
    risk is an attacker's largest belief that one row (or person) was in the data; the other is the
    power of the best test of this. For some errors, the result also has the ρ that they cost.

    Args:
        schema: the public attributes.
        workload: as in :func:`plan`.
        rhos: the budgets to show, increasing; 0.001 to 1 if omitted.
        delta: the δ of the (ε, δ) that each ρ implies, and the probability with which an attacker's
            belief may be larger than shown.
        neighbors: as in :func:`plan`.
        p: as in :func:`plan`.
        weights: as in :func:`plan`.
        rows_per_person: as in :func:`plan`.

    Returns:
        A :class:`Budgets`: print it, or call its ``plot()`` or ``to_frame()``.

    Raises:
        ParameterError: as :func:`plan`; budgets that are not increasing positive numbers; a δ
            outside (0, 1).

    Source: Bun & Steinke (2016) for ρ; Balle & Wang (2018), Theorem 8, for ε; Dong, Roth & Su
    (2022) for tests of a Gaussian with μ = √(2ρ).

    >>> schema = gn.Schema(
    ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])]
    ... )
    >>> means = gn.budgets(schema, 2)
    >>> kind = means.kinds[0]
    >>> print(kind.name, f"{means.half_width(kind, 0.1):.3f} {means.posterior(0.1):.3f}")
    sex × age 4.383 0.910
    >>> print(f"{means.rho_within(50):.6f}")
    0.000768
    """
    shown = RHOS if rhos is None else tuple(rhos)
    if (
        not shown
        or not all(
            isinstance(rho, int | float) and not isinstance(rho, bool) and 0 < rho < math.inf
            for rho in shown
        )
        or any(a >= b for a, b in pairwise(shown))
    ):
        raise ParameterError(
            f"budgets: expected increasing positive numbers, like [0.01, 0.1, 1], got {rhos!r:.80}"
        )
    if not (isinstance(delta, float) and 0 < delta < 1):
        raise ParameterError(f"budgets: expected 0 < delta < 1, got {delta!r}")
    optimum = plan(
        schema,
        workload,
        zCDP(1.0),
        neighbors=neighbors,
        p=p,
        weights=weights,
        rows_per_person=rows_per_person,
    )
    least = 0.0
    if optimum.noise.gamma > 0:
        least = plan(
            schema, workload, targets=1.0, neighbors=neighbors, rows_per_person=rows_per_person
        ).rho
    return Budgets(optimum, tuple(map(float, shown)), delta, least)


def _gaussian_power(rho: float, level: float) -> float:
    z = scipy.special.ndtri(level) + math.sqrt(2 * rho)
    return math.exp(float(scipy.special.log_ndtr(z))) * SAFE_SIDE


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
