"""The plan of a release over time. It is public, since it is computed without data."""

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from domains.tables.marginals import Marginals

from ..errors import GaussNoiseError, ParameterError, StreamWarning, not_a_generator
from ..layout import on_screen
from ..noise.marginal_covariance import covariance_of_cells
from ..noise.table_covariance import TableCovariance
from ..numerics.intervals import quantile
from ..numerics.rounding import rounded_up
from ..privacy.definitions import dp_event, zCDP
from ..privacy.lattice_bound import TABLE_STEPS
from ..privacy.ledger import Ledger
from ..privacy.sampler import IntegerQuery
from ..solvers.tables.orbits import ByType, Type
from ..tables.planning.facts import Facts, unit_text
from ..tables.planning.measure import ResidualQuery
from ..tables.planning.plan import SECONDS_PER_INTEGER, Plan
from ..tables.planning.request import AbstractPlan, Request
from ..tables.release.store import FileFormat
from ..tables.schema.schema import OnOutside
from ..text import number_of
from .ticks import CHANGED_ROWS, Ticks
from .time_strategy import BITS, TimeStrategy, chosen

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

    from ..tables import CheckResult
    from .running import Stream
    from .tables import StreamTables

Array = NDArray[np.float64]

MOST_HERE = 10**8  # most integers of all ticks, or cells, on one machine
_SECONDS_PER_TICK = 0.2e-6  # seconds of one thread to read one earlier tick's integer
_WANTED_BITS, _FEWEST_BITS = 16, 12  # wanted, and least, bits of the norms of C's columns
_MULTIPLIER_BITS = 12  # bits that every multiplier keeps: deviations change by 1/4000 at most
_MOST_SCALE_BITS = 53


@final
@dataclass(frozen=True, eq=False, repr=False)
class StreamPlan(AbstractPlan):
    """A plan of tables that are released tick by tick: a public document, computed without data.

    Let q_i be the integers that a release of tables measures, for the rows of tick i, and C the
    ``strategy``. At tick t, ``Σ_{i<=t} C_ti q_i`` is measured with fresh discrete Gaussian noise.
    Let π be a set of ticks in which one person may report, and let Δ² bound the squared change of
    q_i by one person's rows in one tick. Then the squared change of all measurements by one
    person's reports is at most ``Δ² max_π Σ_{i,j∈π} |(CᵀC)_ij|``. See
    :func:`.reports.largest_change`.

    Formal guarantees:
        * All ticks together are ρ-zCDP, even if the rows of a tick, and who reports in it, depend
          on earlier publications. Proof: given the publications before tick t, the noise of tick t
          is a discrete Gaussian of scale σ around integers. Between neighbours these differ by some
          s_t that the past determines, since C is lower triangular. Let p, q be the probabilities
          of tick t's measurements for the two neighbours. Then ``E_q[(p/q)^α | past] <=
          exp(α(α−1)‖s_t‖²/2σ²)`` (Canonne, Kamath & Steinke 2020, Proposition 5). So ``Π_t (p/q)^α
          exp(−α(α−1)‖s_t‖²/2σ²)`` is a supermartingale that starts at 1. In every sequence of
          publications, the s_t come from *some* reports that one person may make, hence ``Σ_t
          ‖s_t‖² <= 2ρσ²``. Together, ``E_q Π_t (p/q)^α <= exp(α(α−1)ρ)``. Who reports may be chosen
          during the stream, as long as every person reports in at most ``reports`` ticks, any two
          of them at least ``apart`` ticks apart, for any publications.
        * Other guarantees, such as (ε, δ), hold by the same argument as for successive releases
          under a :class:`Ledger`: the Gaussian noise of all ticks corresponds to a path of one
          Brownian motion, and the distances of discrete from continuous noise add up.
        * The publication of a tick is never changed afterwards. The estimates of tick t's counts
          are row t of C⁻¹, multiplied by the measurements so far. These estimates are unbiased,
          totals are their sums, and tables agree on shared margins.

    Attributes:
        asked: the request for each tick's tables, with the budget of the whole stream.
        one_tick: the plan of one tick's tables, as if the whole budget were for this tick.
        over: the ticks, and the rules for the participation of persons in them.
        strategy: the matrix C that combines the ticks in measurements.
        multipliers: {type of residual: its integer factor}; None if they are those of ``one_tick``.

    >>> schema = gn.Schema(
    ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])]
    ... )
    >>> weekly = gn.plan(schema, 2, gn.zCDP(0.1), over=gn.streams.Ticks(52))
    >>> # of a total over all ticks
    >>> print(f"{weekly.standard_deviation('sex', 'age', ticks=(1, 52)):.3f}")
    4.999
    """

    asked: Request
    one_tick: Plan
    over: Ticks
    strategy: TimeStrategy
    multipliers: Mapping[Type, int] | None = None

    def __post_init__(self) -> None:
        if (
            self.strategy.ticks.as_dict() != self.over.as_dict()
            or self.asked.domain is not self.one_tick.domain
        ):
            raise ParameterError(
                "StreamPlan: expected a strategy and tables for what is asked; hint: "
                "call plan(..., over=)"
            )

    @property
    def rho(self) -> float:
        """The ρ of zero-concentrated differential privacy that all ticks together may cost."""
        return self.one_tick.rho

    @property
    def integers(self) -> int:
        """The number of noisy integers that all ticks together draw."""
        return self.over.n * self.one_tick.query.count

    @property
    def needs_executors(self) -> bool:
        """Whether the stream is too large for one machine and needs ``executors=True``."""
        return max(self.integers, self.tables.dim) > MOST_HERE

    @property
    def core_hours(self) -> dict[tuple[str, ...], float]:
        """The approximate hours of one executor core for each table, in all ticks together.

        The keys are names of attributes; counting is not included. Every tick reads the counts and
        measurements of all earlier ticks.
        """
        n = self.over.n
        once, drawn = self.one_tick.core_hours, self.one_tick.integers * SECONDS_PER_INTEGER / 3600
        again = n * (n + 1) / 2 * _SECONDS_PER_TICK / SECONDS_PER_INTEGER
        # hours of ``once`` beyond drawing do not grow with the number of earlier ticks
        share = drawn / sum(once.values())
        return {names: hours * (n + again * share) for names, hours in once.items()}

    @property
    def privacy_unit(self) -> str:
        """Text on the unit of privacy, for example the rows of one person in at most k ticks."""
        k, b, rows = self.over.most_reports, self.over.apart, self.rows_per_person
        if self.person is not None:
            one = f"{self.one_tick.privacy_unit} in each of at most {k} ticks"
            return f"{one}, each two at least {b} apart" if b > 1 else one
        if k == 1:
            one = unit_text(rows, None)
            return one if rows == 1 else f"{one}, in one tick"
        each = "" if rows == 1 else f" of at most {rows} rows each"
        ticks = f", {b} ticks apart or more" if b > 1 else ", in different ticks"
        return f"one person of at most {k} reports{each}{ticks}"

    @cached_property
    def query(self) -> ResidualQuery:
        """The integer query that is measured on each tick's tables, with its noise scale."""
        one = self.one_tick.query
        if self.multipliers is not None:
            one = one.with_multipliers(self.multipliers, self.neighbors)
        squared = drawn_query(one).sensitivity_squared * self.strategy.sensitivity_squared
        return replace(one, query=IntegerQuery(squared, self.one_tick.row_rho))

    @property
    def scale(self) -> float:
        """The standard deviation of the noise on every measured integer."""
        return drawn_query(self.query).scale

    @cached_property
    def rho_charged(self) -> float:
        """The ρ that all ticks cost for one person, as OpenDP's privacy map computes it."""
        query = drawn_query(self.query)
        if query.scale < TABLE_STEPS:
            raise GaussNoiseError(
                "stream: the noise is too coarse for its lattice; hint: another rho"
            )
        charged = rounded_up(Fraction(query.rho) * self.rows_per_person**2)
        if charged > self.rho:
            raise GaussNoiseError(
                f"stream: noise would cost rho = {charged!r}, more than the planned {self.rho!r}"
            )
        return charged

    def spent(self, ticks: int) -> float:
        """Return the ρ that one person's rows cost in any ``ticks`` successive ticks.

        For example, 12 monthly, 52 weekly or 365 daily ticks give the cost of a person's rows of
        one year. If participation is enforced, the result is the ρ of all rows of a person. The
        reason: without the rows of that year, the registry might admit later rows of the person
        that are now left out.

        Args:
            ticks: the number of ticks, at least 1; more than n mean all of them.

        Raises:
            ParameterError: it is not an integer of at least 1.

        >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
        >>> over = gn.streams.Ticks(16, reports=4, apart=4)
        >>> weekly = gn.plan(schema, 1, gn.zCDP(0.1), over=over)
        >>> weekly.spent(1) < weekly.spent(5) < weekly.spent(16) <= 0.1
        True
        """
        if type(ticks) is not int or ticks < 1:
            raise ParameterError(f"spent: expected an integer ticks >= 1, got {ticks!r:.50}")
        over, all_of = self.over, self.strategy.sensitivity_squared
        few = (min(ticks, over.n) - 1) // over.apart + 1
        if over.enforced or few >= over.most_reports:
            return self.rho_charged
        share = Fraction(min(self.strategy.change_by(few), all_of), all_of)
        return rounded_up(Fraction(self.rho_charged) * share)

    @cached_property
    def request(self) -> dict[str, object]:
        """All arguments of the plan as plain data; a ledger of budgets stores and compares them."""
        return self.one_tick.request | {"ticks": self.over.as_dict()}

    @cached_property
    def facts(self) -> Facts:
        """The facts about the stream, such as guarantee, noise and error, that its texts state."""
        from .text import facts_of_stream

        return facts_of_stream(self)

    def covariance(self, weights: "ArrayLike") -> TableCovariance:
        """Return the noise covariance of a weighted sum of ticks, over the cells of all tables.

        Args:
            weights: the weights of ticks 1, 2, …: at most n numbers.

        Raises:
            ParameterError: there are more weights than ticks, or they are not finite.
        """
        variance, drawn = self.strategy.variance(self.weights(weights)), self.query.variances
        scaled = ByType(
            drawn.orbits, {kind: variance * own for kind, own in drawn.values_by_type.items()}
        )
        return covariance_of_cells(self._counts, self.query.strategies, scaled)

    @cached_property
    def _counts(self) -> Marginals:
        """The planned marginals with all their cells, even if the planned queries are no cells."""
        return Marginals(self.schema.sizes, self.tables.subsets)

    @cached_property
    def time_covariance(self) -> Array:
        """The covariance of one cell's estimates between all pairs of ticks, shape (n, n).

        The unit is the cell's variance at tick 1. For two cells and two ticks s and t, the
        covariance of the cells' estimates is their covariance at tick 1 times entry (s, t).
        """
        inverse = self.strategy.inverse
        return (inverse @ inverse.T) / float(np.square(inverse[0]).sum())

    def standard_deviation(self, *names: str, ticks: tuple[int, int]) -> float:
        """Return the standard deviation of a cell that counts the rows of the given ticks.

        ``names`` are the attributes of the table, and ``ticks`` are the first and the last tick. If
        other queries than cells are planned, the deviations of cells differ, and the result is
        their root mean square.

        Raises:
            ParameterError: no planned marginal contains the attributes, or there are no such ticks.
        """
        S = tuple(sorted(self.one_tick.subset(names)))
        self.one_tick.check_released(S)
        return math.sqrt(self.covariance(self.window(*ticks)).mean_variance(S))

    def half_width(self, *names: str, ticks: tuple[int, int], level: float = 0.95) -> float:
        """Return half the length of the confidence intervals for the cells of one table.

        ``names`` are the attributes of the table, and ``ticks`` are the first and the last tick
        whose rows it counts.
        """
        return quantile(level) * self.standard_deviation(*names, ticks=ticks)

    def window(self, first: int, last: int) -> Array:
        """Return the weights of a sum over ticks: 1 from first to last, 0 before.

        Raises:
            ParameterError: there are no such ticks.
        """
        ends = (first, last)
        if not (all(type(t) is int for t in ends) and 1 <= first <= last <= self.over.n):
            raise ParameterError(
                f"ticks: expected 1 <= first <= last <= {self.over.n}, got {ends!r:.50}"
            )
        return (np.arange(1, last + 1) >= first).astype(np.float64)

    def weights(self, given: "ArrayLike") -> Array:
        """Return the user's weights of ticks as an array, or raise ParameterError."""
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
        """The p-norm of the standard deviations of all weighted cells of all answers over time."""
        return self.one_tick.error * self.strategy.error

    @property
    def gap(self) -> float:
        """The relative gap: an upper bound on ``error / least possible error − 1``.

        The result combines the gaps of the tables and of the time strategy. In every p-norm, the
        least error for a Kronecker product of workloads is the product of their least errors. Two
        facts prove this: the product of two covariances covers the products of their points, and
        the product of two dual measures proves the product of the lower bounds.
        """
        return (1 + self.one_tick.noise.gap) * (1 + self.strategy.gap) - 1

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
        """Begin the stream in a new folder, and charge its whole budget to the ledger, if given.

        If the program is killed after the charge and before the stream is recorded, the charge
        remains, as for any release.

        ``path/ticks`` and ``path/stream.json`` are public. ``path/private`` holds the exact counts
        of every tick, which later ticks need: keep it as confidential as the rows.

        Args:
            path: a new directory. With ledger and id, a repeated call returns the stream that was
                started there.
            ledger: a :class:`Ledger` or its path.
            id: the name of this stream in the ledger. Each tick becomes a further entry there, at
                no cost. The name is in ``stream.json``, which is public.
            format: the format of table files, as for :meth:`Plan.release`.
            on_outside: as for :meth:`Plan.release`, at every tick.
            executors: whether Spark's executors count, draw, decode and write the ticks.
                :meth:`Stream.tick` then takes Spark dataframes. The rules of ``executors`` in
                :meth:`Plan.release` hold for ``path``. It needs ``format="parquet"``.

        Raises:
            OutputError: the directory exists, or cannot be written.
            StreamError: other users cannot be kept out of its folder ``private``.
            ParameterError: there are more than 1000 marginals as CSV, or CSV is combined with
                ``executors``; or ledger and id are not given together.
            DomainTooLargeError: without ``executors``, there are more than 10⁸ noisy integers in
                all ticks together, or more than 10⁸ cells; with them, a table has more than 2²⁶
                cells.
            BudgetError: the ledger's budget does not allow the stream.
            LedgerError: the ledger has another release under this id, or is unusable.
            SchemaError: the schema is a draft that no person has confirmed.
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

    def check(self, table: object, number: int | None = None) -> "CheckResult":
        """Return how many rows of a tick would be left out: see :meth:`Plan.check`. NOT private.

        The rule ``on_outside`` does not apply to rows of other ticks: :class:`Ticks` says whether
        they are refused or carried.

        Args:
            table: the rows of one tick, as for :meth:`Stream.tick`.
            number: the number of the tick; without it, the table is not searched for rows of other
                ticks.

        Returns:
            A :class:`~gaussnoise.results.CheckResult`.

        Raises:
            DataError: as for :meth:`Plan.check`; or the tick ``number`` would refuse rows of other
                ticks.
            ParameterError: ``number`` is not the number of a tick.

        >>> import pyarrow as pa
        >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
        >>> weekly = gn.plan(schema, 1, gn.zCDP(0.1), over=gn.streams.Ticks(52, period="week"))
        >>> found = weekly.check(pa.table({"sex": ["F", "x"], "week": [1, 1]}))
        >>> found.rows, found.left_out
        (2, 1)
        """
        from .running import checked

        return checked(self, table, number)

    def simulate(
        self,
        tables: Sequence[object],
        rng: np.random.Generator,
        *,
        on_outside: OnOutside = "refuse",
    ) -> "StreamTables":
        """Return the first ticks with floating-point noise from ``rng``: for studies, NOT private.

        Args:
            tables: the rows of ticks 1, 2, …
            rng: a numpy Generator.
            on_outside: as for :meth:`start`.

        Raises:
            ParameterError: rng is not a Generator, or there are more tables than ticks.
            DataError: as for :meth:`Stream.tick`.
        """
        from .running import simulated

        if not isinstance(rng, np.random.Generator):
            raise not_a_generator(rng)

        def draw(count: int) -> NDArray[np.int64]:
            return np.rint(rng.normal(scale=self.scale, size=count)).astype(np.int64)

        return simulated(self, tables, draw, on_outside=on_outside)

    def dp_event(self) -> "DpEvent":
        """Return the cost of the whole stream as an event for the accountants of dp-accounting."""
        return dp_event(self.rho_charged)

    def __repr__(self) -> str:
        return f"StreamPlan({number_of(self.over.n, 'tick')}, {self.one_tick!r})"

    def __str__(self) -> str:
        from .text import plan_text

        return on_screen(plan_text(self))


def drawn_query(query: ResidualQuery) -> IntegerQuery:
    """Return the integer query to which noise is added.

    Raise ParameterError if no row can change the planned tables, since there is no such query then.
    """
    if query.query is None:
        raise ParameterError(
            "plan: a stream needs tables that rows can change; hint: release these once, they are "
            "exact"
        )
    return query.query


def continual(
    tables: Plan,
    over: object,
    strategy: TimeStrategy | None = None,
    multipliers: Mapping[Type, int] | None = None,
) -> StreamPlan:
    """Return the plan of a stream that publishes these tables at every tick.

    Without ``strategy``, the best known time strategy is chosen. For a stream on disk, ``strategy``
    and ``multipliers`` are those with which it was begun.

    Raises:
        ParameterError: ``over`` is not ticks, or the budget cannot be drawn.
    """
    if not isinstance(over, Ticks):
        raise ParameterError(
            f"plan: expected over=gn.streams.Ticks(52) or the like, got {type(over).__name__}"
        )
    if tables.person is not None and over.reports is None:
        raise ParameterError(
            "plan: expected Ticks(..., reports=k) with person=: the largest number of ticks in "
            f"which one person has rows; got none; hint: reports={over.n} is always true"
        )
    if over.enforced and tables.person is None:
        raise ParameterError(
            "plan: expected person= with Ticks(..., enforced=True): the column that says whose row "
            "it is, got none"
        )
    for named, column in (("period", over.period), ("corrections", over.corrections)):
        if column in tables.schema.names:
            raise ParameterError(
                f"plan: expected a {named} column beside the attributes, got {column!r}, one of "
                "them"
            )
    if over.corrections is not None and (tables.person is not None or tables.has_public_rows):
        raise ParameterError(
            "plan: Ticks(..., corrections=...) cannot be combined with person= or replacement: "
            "rows beyond a limit are left out at random, so that a row that is taken back may not "
            "have been counted, and under replacement the number of rows is public; hint: "
            'rows_per_person=, which you assure, and neighbors="add-remove"; or tables of an '
            "attribute with the categories new and withdrawn"
        )
    drawn = over.n * tables.integers
    privacy = tables.privacy
    # the guarantee is for all draws together; the cost of the lattice grows with their number
    budget = zCDP(privacy.to_zcdp(drawn, TABLE_STEPS).rho)
    whole = replace(tables, asked=replace(tables.asked, privacy=budget))
    if strategy is None:
        if over.corrections is not None and tables.rows_per_person == 1:
            warnings.warn(f"plan: with corrections=, {CHANGED_ROWS}", StreamWarning, stacklevel=3)
        query, multipliers = _coarsened(whole, over)
        strategy = chosen(over, tables.noise.p, _bits(query, over))
    return StreamPlan(tables.asked, whole, over, strategy, multipliers)


def _coarsened(tables: Plan, over: Ticks) -> tuple[ResidualQuery, Mapping[Type, int]]:
    """Return one tick's query with smaller integer multipliers, and {type: multiplier}."""
    # the integers of the time strategy multiply its integers, and all noise must fit into 64 bits
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
    """Return the largest number of bits for the norm of a column of the time strategy."""
    # the scale of the noise is proportional to this norm, and noise must fit into 64 bits
    return min(
        BITS, math.floor(_MOST_SCALE_BITS - math.log2(drawn_query(query).scale * over.most_reports))
    )
