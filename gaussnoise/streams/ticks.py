"""The ticks of a stream, and the rules for the rows of a tick and for a person's participation.

All of this is public, and stated before any data are read.
"""

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, Literal, final, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from domains.sets.stream import StreamWorkload

from ..errors import ParameterError
from ..files.pickling import PickledByArguments
from ..tables.release.tick_times import EXPECTED, TickTimes, tick_times
from ..tables.schema.schema import Attribute

Array = NDArray[np.float64]
Late = Literal["refuse", "carry"]

MOST_TICKS = 2000
SIGNS = (1, -1)  # a row that counts, and a row that is taken back
# where persons have one row in a tick: two rows move the counts by up to twice as much
CHANGED_ROWS = (
    "a person has at most one row in a tick, counted or taken back; if a row is taken back and "
    "comes again, changed, in the same tick, these are two, and that person's loss is up to four "
    "times this rho (rows_per_person=2 keeps it within rho)"
)
_NAMED = {
    "totals": lambda n: np.tril(np.ones((n, n))),
    "periods": np.eye,
    "both": lambda n: np.vstack([np.tril(np.ones((n, n))), np.eye(n)]),
}


@final
@dataclass(frozen=True, eq=False)
class Ticks(PickledByArguments):
    """The ticks of a release over time: at each, new rows arrive, and tables are published.

    Args:
        n: the largest number of ticks, from 1 to 2000. The stream may end earlier; the budget is
            for all n.
        reports: the largest number of ticks in which one person can have rows; by default 1.
            Without ``enforced``, this is your assumption, which is not checked, even if ``person``
            in the plan limits the rows of each tick. With ``person``, ``reports`` must be given,
            since one person often has rows in several ticks.
        apart: the least difference between the numbers of two ticks with rows of one person: with
            4, a person with rows in tick 3 has no further rows before tick 7. Without ``enforced``,
            this is your assumption too.
        enforced: whether the stream itself ensures these limits. Then it keeps a registry of the
            persons who were counted, and leaves out the rows of persons who may not be counted now.
            It needs ``person`` in the plan. The registry is in the stream's private folder, as
            confidential as the rows; it is deleted after the last tick, or by
            :meth:`Stream.forget`. How many rows are left out is private.
        workload: the answers over time whose error is minimised: "totals", the running totals;
            "periods", the counts of each tick alone; "both"; or a matrix of m answers by n ticks,
            of rank n, or a workload over time. All tables are published in any case. With
            ``unknown_length(n).workload`` and p = ∞ in the plan, the error is small at every tick
            at which the stream may end.
        late: the rule for rows that ``period`` assigns to an earlier tick: "refuse" the table, or
            "carry", which counts them in the tick in which they arrive. For their persons, this
            tick then counts as one of ``reports``. Without ``period``, rows belong to the tick in
            which they arrive.
        period: a column with the number of each row's tick, from 1 on; it is checked at every tick.
            A table with rows of a later tick is refused. Such refusals depend on the data, even
            under ``on_outside="drop"``.
        corrections: a column with 1 or -1 in each row. A row with -1 takes back one that was
            counted before, and is subtracted from the counts of the tick in which it arrives, so
            the totals are right from this tick on. It counts as a report of its person: ``reports``
            must be at least 2, and ``rows_per_person`` of the plan includes these rows. To change a
            row, send the old row with -1, and the new row with 1: then ``rows_per_person`` must be
            at least 2. If it is 1, a :class:`StreamWarning` says who is protected less. The plan
            must have no ``person``: its limit leaves out rows at random, so a row that is taken
            back might not have been counted.
        first: the time of the first tick: a year, quarter, month, week or day, like ``"2026"``,
            ``"2026-Q1"``, ``"2026-01"``, ``"January 2026"``, ``"2026-W05"`` or ``"2026-01-31"``.
            The other ticks follow it without a gap. Pages, files and questions then have these
            times beside the numbers of ticks. Times only name the ticks: no row is compared with
            them.

    Raises:
        ParameterError: a number is out of range, ``enforced`` or ``corrections`` is given without
            ``reports``, the workload does not distinguish all ticks, or ``first`` is no such time.

    >>> gn.streams.Ticks(52, reports=4, apart=4)
    Ticks(52, reports=4, apart=4)
    >>> gn.streams.Ticks(12, first="2026-01").said(2)
    'tick 2 (February 2026)'
    """

    n: int
    reports: int | None = None
    _: KW_ONLY
    apart: int = 1
    workload: Any = "totals"
    late: Late = "refuse"
    period: str | None = None
    enforced: bool = False
    corrections: str | None = None
    first: str | None = None

    def __post_init__(self) -> None:
        for name, value, most in (
            ("n", self.n, MOST_TICKS),
            ("reports", 1 if self.reports is None else self.reports, None),
            ("apart", self.apart, None),
        ):
            end = "" if most is None else f" <= {most}"
            if type(value) is not int or value < 1 or (most is not None and value > most):
                raise ParameterError(
                    f"Ticks: expected an integer 1 <= {name}{end}, got {value!r:.50}"
                )
        if self.late not in get_args(Late):
            raise ParameterError(f'Ticks: expected late="refuse" or "carry", got {self.late!r:.50}')
        for name in ("period", "corrections"):
            column = getattr(self, name)
            if column is not None and not (isinstance(column, str) and column):
                raise ParameterError(
                    f"Ticks: expected {name} to be a column's name, got {column!r:.50}"
                )
        if self.corrections is not None and (self.reports or 1) < 2:
            raise ParameterError(
                "Ticks: expected reports=2 or more with corrections=: the row that takes another "
                f"one back is a second report of the same person, got {self.reports}"
            )
        if self.corrections is not None and self.corrections == self.period:
            raise ParameterError(
                f"Ticks: expected different columns for period and corrections, got "
                f"{self.period!r:.50} for both"
            )
        if self.late == "carry" and self.period is None:
            raise ParameterError(
                'Ticks: late="carry" needs period=, the column that says which rows are late'
            )
        if not isinstance(self.enforced, bool):
            raise ParameterError(
                f"Ticks: expected enforced=True or False, got {self.enforced!r:.50}"
            )
        if self.enforced and self.reports is None:
            raise ParameterError(
                "Ticks: expected reports=k with enforced=True: in how many ticks a person is "
                "counted at most, got none"
            )
        try:
            _ = self.times
        except (AttributeError, ValueError):  # no text, or no time
            raise ParameterError(
                f"Ticks: expected first to be {EXPECTED}, got {self.first!r:.50}"
            ) from None
        if not isinstance(self.workload, str):
            object.__setattr__(self, "workload", _checked(self.workload, self.n))
        elif self.workload not in _NAMED:
            raise ParameterError(
                'Ticks: expected workload="totals", "periods", "both" or a matrix, got '
                f"{self.workload!r}"
            )

    @property
    def matrix(self) -> Array:
        """The workload over time as a matrix of shape (answers, n).

        Entry (i, t) is the weight of the counts of tick t in answer i.
        """
        return _NAMED[self.workload](self.n) if isinstance(self.workload, str) else self.workload

    @property
    def most_reports(self) -> int:
        """The largest number of the n ticks in which one person can have rows.

        This number follows from the limits ``reports`` and ``apart``.
        """
        return min(self.reports or 1, (self.n - 1) // self.apart + 1)

    @property
    def columns(self) -> list[Attribute]:
        """The columns of the tick and of the sign (1 or −1) of each row, as attributes.

        The list is empty if there are no such columns.
        """
        ticks, signs = range(1, self.n + 1), SIGNS
        named = ((self.period, ticks), (self.corrections, signs))
        return [Attribute(name, categories=own) for name, own in named if name is not None]

    @cached_property
    def times(self) -> TickTimes | None:
        """The times of the ticks, which follow from ``first``; None without it."""
        return None if self.first is None else tick_times(self.first, self.n)

    @property
    def word(self) -> str:
        """The word for a tick: "tick", or its kind of period, like "month"."""
        return "tick" if self.times is None else self.times.kind

    def time(self, tick: int) -> str:
        """Return the time of a tick, like "March 2026", or "" if ``first`` is not given.

        >>> gn.streams.Ticks(12, first="2026-W52").time(3)
        'week 1 of 2027'
        """
        return "" if self.times is None else self.times.texts[tick - 1]

    def said(self, first: int, last: int | None = None) -> str:
        """Return text that names the tick ``first``, or the ticks from ``first`` to ``last``.

        >>> gn.streams.Ticks(12, first="2026-01").said(2, 5)
        'ticks 2 to 5 (February 2026 to May 2026)'
        """
        if last is None or first == last:
            return f"tick {first}{(self.times and f' ({self.time(first)})') or ''}"
        span = f" ({self.time(first)} to {self.time(last)})" if self.times else ""
        return f"ticks {first} to {last}{span}"

    def check_number(self, function: str, number: object) -> None:
        """Raise ParameterError unless ``number`` is an integer from 1 to n."""
        if not (type(number) is int and 1 <= number <= self.n):
            raise ParameterError(
                f"{function}: expected a number from 1 to {self.n}, the number of ticks, got "
                f"{number!r:.50}; hint: more ticks take a new stream, on a budget of its own"
            )

    def as_dict(self) -> dict[str, object]:
        """Return the arguments of the constructor as plain data, for records in JSON."""
        workload = self.workload if isinstance(self.workload, str) else self.workload.tolist()
        return {
            "n": self.n,
            "reports": self.reports or 1,
            "apart": self.apart,
            "workload": workload,
            "late": self.late,
            "period": self.period,
            # left out if false, so that records equal those of earlier versions
            **({"enforced": True} if self.enforced else {}),
            **({} if self.corrections is None else {"corrections": self.corrections}),
            **({} if self.first is None else {"first": self.first}),
        }

    def __repr__(self) -> str:
        shown = [str(self.n)]
        shown += [
            f"{k}={v!r}"
            for k, v in (("reports", self.reports), ("apart", self.apart))
            if v not in (None, 1)
        ]
        named = isinstance(self.workload, str)
        shown += (
            []
            if named and self.workload == "totals"
            else [f"workload={self.workload!r}" if named else "workload=…"]
        )
        shown += [f"late={self.late!r}"] * (self.late != "refuse") + [f"period={self.period!r}"] * (
            self.period is not None
        )
        shown += ["enforced=True"] * self.enforced
        shown += [f"corrections={self.corrections!r}"] * (self.corrections is not None)
        shown += [f"first={self.first!r}"] * (self.first is not None)
        return f"Ticks({', '.join(shown)})"


def _checked(workload: "ArrayLike | StreamWorkload", n: int) -> Array:
    try:
        matrix = np.array(
            workload.toarray() if isinstance(workload, StreamWorkload) else workload,
            dtype=np.float64,
        )
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"Ticks: expected a workload of numbers, got {type(workload).__name__}"
        ) from None
    if matrix.ndim != 2 or matrix.shape[1] != n or not np.isfinite(matrix).all():
        raise ParameterError(
            f"Ticks: expected a workload of finite numbers, answers by {n} ticks, got "
            f"{matrix.shape}"
        )
    if np.linalg.matrix_rank(matrix) < n:
        raise ParameterError(
            f"Ticks: expected a workload of rank {n}, which tells all ticks apart, got less; "
            "hint: add a row for every tick, weighted little if it matters little"
        )
    matrix.flags.writeable = False
    return matrix
