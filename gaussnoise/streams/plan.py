"""What a release that goes on will look like: public, since it is computed without data."""

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from domains import Marginals

from ..errors import GaussNoiseError, ParameterError, not_a_generator
from ..files.pickling import PickledByArguments
from ..noise.marginal_covariance import covariance_of_cells
from ..noise.problem import Relation
from ..noise.table_covariance import TableCovariance
from ..numerics.intervals import quantile
from ..numerics.rounding import rounded_up
from ..privacy.definitions import dp_event, zCDP
from ..privacy.guarantee import AbstractPrivacy
from ..privacy.lattice_bound import TABLE_STEPS
from ..privacy.ledger import Ledger
from ..privacy.sampler import IntegerQuery
from ..solvers.tables.orbits import ByType, Type
from ..tables.planning.measure import ResidualQuery
from ..tables.planning.plan import SECONDS_PER_INTEGER, Plan
from ..tables.release.store import FileFormat
from ..tables.schema.schema import OnOutside, Schema
from .ticks import Ticks
from .time_strategy import BITS, TimeStrategy, chosen

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

    from .running import Stream
    from .tables import StreamTables

Array = NDArray[np.float64]

MOST_HERE = 10**8  # integers of all ticks, or cells, on one machine: all are read at every tick
_SECONDS_PER_TICK = 0.2e-6  # of one thread, for an integer and an earlier tick: what is measured
_WANTED_BITS, _FEWEST_BITS = 16, 12  # of the time strategy's columns
_MULTIPLIER_BITS = (
    12  # that residuals keep where bits are few: deviations to a part in four thousand
)
_MOST_SCALE_BITS = 53


@final
@dataclass(frozen=True, eq=False)
class StreamPlan(PickledByArguments):
    """A release of tables that goes on from tick to tick: a public document, computed without data.

    At tick t the integers that a release of tables measures are known of each tick's rows so far,
    q_1, …, q_t; what is measured is ``Σ_{i<=t} C_ti q_i`` with fresh discrete Gaussian noise. One
    person's reports move all of that by at most ``Δ² max_π Σ_{i,j∈π} |(CᵀC)_ij|`` squared, Δ² for
    the rows of one person in one table: see :func:`.reports.largest_change`.

    Formal guarantees:
        * All ticks together are ρ-zCDP, even if the rows of a tick, and who reports in it, depend
          on what was published before. Proof: given what was published before tick t, the noise of
          tick t is a discrete Gaussian of scale σ around integers, which differ between neighbours
          by some s_t that the past determines, since C is lower triangular. With p, q the
          probabilities of what tick t shows, ``E_q[(p/q)^α | past] <= exp(α(α−1)‖s_t‖²/2σ²)``
          (Canonne, Kamath & Steinke 2020, Proposition 5). So ``Π_t (p/q)^α exp(−α(α−1)‖s_t‖²/2σ²)``
          is a supermartingale that starts at 1; and whatever happens, the s_t are those of *some*
          reports that one person may make, hence ``Σ_t ‖s_t‖² <= 2ρσ²`` for every course of events.
          Together, ``E_q Π_t (p/q)^α <= exp(α(α−1)ρ)``. Who reports may be chosen on the way, as
          long as it is a person's at most ``reports`` ticks, each two ``apart``, in every course of
          events.
        * Other promises, such as (ε, δ), hold by the same argument as for releases one after
          another under a :class:`Ledger`: a path of one Brownian motion, and distances of the
          lattice that add up.
        * What is published of a tick is never changed afterwards: the estimates of tick t's counts
          are row t of C⁻¹ times the measurements so far. They are unbiased, totals are their sums,
          and tables agree on shared margins.

    Attributes:
        tables: the plan of one tick's tables, as if released alone with the whole budget.
        over: ticks, and who takes part in them.
        privacy: the budget of the whole stream, for one person.
        strategy: how ticks are measured together.
        multipliers: of residuals, by type; None for those that the tables' plan has.

    >>> schema = gn.Schema(
    ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])]
    ... )
    >>> weekly = gn.plan(schema, 2, gn.zCDP(0.1), over=gn.streams.Ticks(52))
    >>> # of a total over all ticks
    >>> print(f"{weekly.standard_deviation('sex', 'age', ticks=(1, 52)):.3f}")
    4.999
    """

    tables: Plan
    over: Ticks
    privacy: AbstractPrivacy
    strategy: TimeStrategy
    multipliers: Mapping[Type, int] | None = None

    def __post_init__(self) -> None:
        if self.strategy.ticks.as_dict() != self.over.as_dict():
            raise ParameterError(
                "StreamPlan: expected a strategy for the same ticks; hint: call plan(..., over=)"
            )

    @property
    def schema(self) -> Schema:
        """The public attributes."""
        return self.tables.schema

    @property
    def marginals(self) -> tuple[tuple[str, ...], ...]:
        """Attribute names of every marginal that is released."""
        return self.tables.marginals

    @property
    def neighbors(self) -> Relation:
        """The neighbouring relation."""
        return self.tables.neighbors

    @property
    def rho(self) -> float:
        """ρ of zero-concentrated differential privacy, for all ticks together."""
        return self.tables.rho

    @property
    def integers(self) -> int:
        """Noisy integers drawn in all ticks together."""
        return self.over.n * self.tables.query.count

    @property
    def needs_executors(self) -> bool:
        """Whether the stream is more than one machine can do: ``start(…, executors=True)``."""
        return max(self.integers, self.tables.tables.dim) > MOST_HERE

    @property
    def core_hours(self) -> dict[tuple[str, ...], float]:
        """Roughly how long each table takes one core of an executor, in all ticks together.

        By names of attributes; counting is not in it. Every tick reads what all before it counted
        and measured.
        """
        n = self.over.n
        once, drawn = self.tables.core_hours, self.tables.integers * SECONDS_PER_INTEGER / 3600
        again = n * (n + 1) / 2 * _SECONDS_PER_TICK / SECONDS_PER_INTEGER
        # the tables' own hours are those of drawing, but for a part that is as small for each
        share = drawn / sum(once.values())
        return {names: hours * (n + again * share) for names, hours in once.items()}

    @property
    def privacy_unit(self) -> str:
        """Whom the budget protects."""
        k, b, rows = self.over.most_reports, self.over.apart, self.tables.rows_per_person
        if self.tables.person is not None:
            one = f"{self.tables.privacy_unit} in each of at most {k} ticks"
            return f"{one}, each two at least {b} apart" if b > 1 else one
        if k == 1:
            return "one row" if rows == 1 else f"one person of at most {rows} rows, in one tick"
        each = "" if rows == 1 else f" of at most {rows} rows each"
        ticks = f", {b} ticks apart or more" if b > 1 else ", in different ticks"
        return f"one person of at most {k} reports{each}{ticks}"

    @cached_property
    def query(self) -> ResidualQuery:
        """The integer query of one tick's tables, with the noise that is drawn at every tick."""
        one = self.tables.query
        if self.multipliers is not None:
            one = one.with_multipliers(self.multipliers, self.neighbors)
        squared = drawn_query(one).sensitivity_squared * self.strategy.sensitivity_squared
        return replace(one, query=IntegerQuery(squared, self.tables.row_rho))

    @property
    def scale(self) -> float:
        """Standard deviation of the noise on every integer."""
        return drawn_query(self.query).scale

    @property
    def rho_charged(self) -> float:
        """What OpenDP's map charges for all noise of all ticks, for all reports of one person."""
        query = drawn_query(self.query)
        if query.scale < TABLE_STEPS:
            raise GaussNoiseError(
                "stream: the noise is too coarse for its lattice; hint: another rho"
            )
        charged = rounded_up(Fraction(query.rho) * self.tables.rows_per_person**2)
        if charged > self.rho:
            raise GaussNoiseError(
                f"stream: noise would cost rho = {charged!r}, more than the planned {self.rho!r}"
            )
        return charged

    @cached_property
    def request(self) -> dict[str, object]:
        """Every part of what was asked for, as plain data: the same on any machine."""
        return self.tables.request | {"ticks": self.over.as_dict()}

    @cached_property
    def request_sha256(self) -> str:
        """What was asked for, in one number."""
        return hashlib.sha256(json.dumps(self.request).encode()).hexdigest()

    def covariance(self, weights: ArrayLike) -> TableCovariance:
        """Covariance of the noise in a combination of ticks, over the cells of all planned tables.

        Args:
            weights: of ticks 1, 2, …: at most n numbers.

        Raises:
            ParameterError: more weights than ticks, or not finite.
        """
        variance, drawn = self.strategy.variance(self.weights(weights)), self.query.variances
        scaled = ByType(
            drawn.orbits, {kind: variance * own for kind, own in drawn.values_by_type.items()}
        )
        return covariance_of_cells(
            Marginals(self.schema.sizes, self.tables.tables.subsets), self.query.strategies, scaled
        )

    @cached_property
    def time_covariance(self) -> Array:
        """Covariance of the estimates of a cell's counts in each two ticks, shape (n, n).

        It is in units of the cell's variance at tick 1.

        The covariance of any two cells in any two ticks is their covariance at tick 1 times this:
        time and tables are independent of each other.
        """
        inverse = self.strategy.inverse
        return (inverse @ inverse.T) / float(np.square(inverse[0]).sum())

    def standard_deviation(self, *names: str, ticks: tuple[int, int]) -> float:
        """Of every cell of the table of these attributes, as counted over ticks first to last.

        Where more than cells is planned for, cells differ, and this is their root mean square.

        Raises:
            ParameterError: no planned marginal contains them, or no such ticks.
        """
        S = tuple(sorted(self.tables.subset(names)))
        self.tables.check_released(S)
        return math.sqrt(self.covariance(self.window(*ticks)).mean_variance(S))

    def half_width(self, *names: str, ticks: tuple[int, int], level: float = 0.95) -> float:
        """Half the length of a cell's confidence interval, as counted over ticks first to last."""
        return quantile(level) * self.standard_deviation(*names, ticks=ticks)

    def window(self, first: int, last: int) -> Array:
        """Weights of ticks that count those from first to last.

        Raises:
            ParameterError: no such ticks.
        """
        ends = (first, last)
        if not (all(type(t) is int for t in ends) and 1 <= first <= last <= self.over.n):
            raise ParameterError(
                f"ticks: expected 1 <= first <= last <= {self.over.n}, got {ends!r:.50}"
            )
        return (np.arange(1, last + 1) >= first).astype(np.float64)

    def weights(self, given: ArrayLike) -> Array:
        """Weights of ticks, checked."""
        try:
            weights = np.array(given, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ParameterError(
                f"ticks: expected a list of weights, got {type(given).__name__}"
            ) from None
        if (
            weights.ndim != 1
            or not 1 <= len(weights) <= self.over.n
            or not np.isfinite(weights).all()
        ):
            raise ParameterError(
                f"ticks: expected 1 to {self.over.n} finite weights, got shape {weights.shape}"
            )
        return weights

    @property
    def error(self) -> float:
        """p-norm of the standard deviations of all (weighted) cells in all answers over time."""
        return self.tables.error * self.strategy.error

    @property
    def gap(self) -> float:
        """How much more error than the least possible this has, at most.

        The optimum of the product is the product of the optima, in every p-norm: the product of two
        covariances covers the products of their points, and the product of two dual measures proves
        the product of the lower ends.
        """
        return (1 + self.tables.noise.gap) * (1 + self.strategy.gap) - 1

    def start(
        self,
        path: str | os.PathLike[str],
        *,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        id: str | None = None,
        format: FileFormat = "csv",
        on_outside: OnOutside = "refuse",
        executors: bool = False,
    ) -> "Stream":
        """Begin the stream in a new folder; under a ledger, its whole budget is charged here, once.

        A program that is killed between the charge and the record of it loses the charge, as for
        any release.

        ``path/ticks`` and ``path/stream.json`` are public. ``path/private`` holds the exact counts
        of every tick, which later ticks need: keep it as confidential as the rows.

        Args:
            path: a new directory; with ledger and id, the same one again reads the stream that was
                started there.
            ledger: a :class:`Ledger` or its path.
            id: what the ledger is to call this stream; its ticks are entries of their own, at no
                further cost. It is in ``stream.json``, which is public.
            format: of table files, "csv" or "parquet".
            on_outside: as for :meth:`Plan.release`, at every tick.
            executors: whether Spark's executors count, draw, decode and write the ticks, which then
                take Spark dataframes: what :meth:`Plan.release` says of ``executors`` holds for
                ``path``. It needs ``format="parquet"``.

        Raises:
            OutputError: the directory exists, or cannot be written.
            StreamError: its folder ``private`` cannot be kept from other users.
            ParameterError: more than 1000 marginals as CSV, or any with ``executors``; ledger and
                id not together.
            DomainTooLargeError: more than 10⁸ noisy integers in all ticks together, or cells,
                without ``executors``; with them, a table of more than 2²⁶ cells,
                which streams do not cut into pieces.
            BudgetError: the ledger's budget does not allow it.
            LedgerError: another release under this id, or an unusable ledger.
            SchemaError: the schema is a draft, which no person has confirmed.
        """
        from .running import started

        return started(
            self,
            path,
            ledger=ledger,
            id=id,
            format=format,
            on_outside=on_outside,
            executors=executors,
        )

    def simulate(
        self,
        tables: Sequence[object],
        rng: np.random.Generator,
        *,
        on_outside: OnOutside = "refuse",
    ) -> "StreamTables":
        """The first ticks with floating-point noise from ``rng``: for studies, NOT private.

        Args:
            tables: the rows of ticks 1, 2, …
            rng: a numpy Generator.
            on_outside: as for :meth:`start`.

        Raises:
            ParameterError: not a Generator, or more tables than ticks.
            DataError: as :meth:`Stream.tick`.
        """
        from .running import simulated

        if not isinstance(rng, np.random.Generator):
            raise not_a_generator(rng)

        def draw(count: int) -> NDArray[np.int64]:
            return np.rint(rng.normal(scale=self.scale, size=count)).astype(np.int64)

        return simulated(self, tables, draw, on_outside=on_outside)

    def dp_event(self) -> "DpEvent":
        """What the stream costs, as :func:`gaussnoise.privacy.dp_event`.

        ``dp-accounting`` composes it with others.
        """
        return dp_event(self.rho_charged)

    def __str__(self) -> str:
        from .text import plan_text

        return plan_text(self)


def drawn_query(query: ResidualQuery) -> IntegerQuery:
    """The integers that get noise; tables in which no row can change anything are refused."""
    if query.query is None:
        raise ParameterError(
            "plan: over= needs tables that rows can change; hint: release these once, they are "
            "exact"
        )
    return query.query


def continual(
    tables: Plan,
    over: object,
    strategy: TimeStrategy | None = None,
    multipliers: Mapping[Type, int] | None = None,
) -> StreamPlan:
    """The plan of a stream of such tables.

    It has the strategy it was begun with, or the best that is known.

    Raises:
        ParameterError: not ticks; a budget that cannot be drawn.
    """
    if not isinstance(over, Ticks):
        raise ParameterError(
            f"plan: expected over=gn.streams.Ticks(52) or the like, got {type(over).__name__}"
        )
    if tables.person is not None and over.reports is None:
        raise ParameterError(
            "plan: expected Ticks(..., reports=k) with person=: in how many ticks one person can "
            f"have rows at most, got none; hint: reports={over.n} is always true"
        )
    if over.period in tables.schema.names:
        raise ParameterError(
            f"plan: expected a period column beside the attributes, got {over.period!r}, one of "
            "them"
        )
    drawn = over.n * tables.integers
    privacy = tables.privacy
    # the promise is for all that is drawn, which is what says how much of it the lattice takes
    whole = replace(tables, privacy=zCDP(privacy.to_zcdp(drawn, TABLE_STEPS).rho))
    if strategy is None:
        query, multipliers = _coarsened(whole, over)
        strategy = chosen(over, tables.noise.p, _bits(query, over))
    return StreamPlan(whole, over, privacy, strategy, multipliers)


def _coarsened(tables: Plan, over: Ticks) -> tuple[ResidualQuery, Mapping[Type, int]]:
    """The tables' query, on a lattice as coarse as it takes to leave bits for the time strategy."""
    query = tables.query
    drawn_query(query)
    known = {kind: int(s) for kind, s in query.multipliers.values_by_type.items()}
    spare = min(known.values()).bit_length() - _MULTIPLIER_BITS
    shift = max(min(_WANTED_BITS - _bits(query, over), spare), 0)
    known = {kind: max(round(s / 2**shift), 1) for kind, s in known.items()}
    query = query.with_multipliers(known, tables.neighbors)
    if (bits := _bits(query, over)) < _FEWEST_BITS:
        raise ParameterError(
            f"plan: noise on these tables leaves {bits} of 64 bits for {over.n} ticks; hint: a "
            "larger rho, queries of "
            "like size"
        )
    return query, known


def _bits(query: ResidualQuery, over: Ticks) -> int:
    """Of the longest column: as fine as 64-bit noise allows."""
    return min(
        BITS, math.floor(_MOST_SCALE_BITS - math.log2(drawn_query(query).scale * over.most_reports))
    )
