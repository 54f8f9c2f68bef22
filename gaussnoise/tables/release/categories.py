"""The frequent values of a column, found privately, where no public list of categories exists."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, final

from ...errors import ParameterError
from ...files.saved import AbstractLoaded
from ...layout import on_screen
from ...privacy.budget import Budget
from ...privacy.guarantee import AbstractPrivacy
from ...privacy.ledger import Ledger, ledger_and_id
from ...privacy.protected import Protected
from ...privacy.threshold import Change, ThresholdQuery
from ...text import disclaimers, guarantee_text, versions
from ..planning.facts import unit_text
from ..schema.schema import Attribute, Schema

if TYPE_CHECKING:
    from ..reading.values import Label

_FUNCTION = "discover_categories"
_MOST_VALUES = 10**7
_MOST_ROWS = 10**6  # most rows per person
_THRESHOLD = 0.5  # share of delta that the threshold spends
# text that begins so is a formula in spreadsheets; the last four are full-width signs
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")
NOTE = (
    "Counts are biased upwards: a value is shown only if noise left its count above the "
    "threshold. Release counts of these categories for unbiased ones."
)


@final
@dataclass(frozen=True, eq=False)
class Categories(AbstractLoaded):
    """The frequent values of a column. Counts are BIASED upwards by the private selection.

    Attributes:
        column: the column in which the values were found.
        categories: all text or all integers, sorted, so that their order reveals nothing else.
        counts: the noisy number of rows of each category, biased: see :attr:`note`.
        threshold: values with a noisy count below this are not shown.
        standard_deviation: the standard deviation of the noise on each count, in rows.
        rho: the part of the budget spent on noise.
        delta: the δ spent on the threshold.
        privacy: a record of the privacy guarantee.

    >>> import pyarrow as pa
    >>> jobs = pa.table({"job": ["nurse"] * 500 + ["teacher"] * 400 + ["juggler"]})
    >>> found = gn.discover_categories(jobs, "job", gn.ApproxDP(1.0, 1e-6))
    >>> list(found.categories)
    ['nurse', 'teacher']
    """

    column: str
    categories: "tuple[Label, ...]"
    counts: tuple[float, ...]
    threshold: float
    standard_deviation: float
    rho: float
    delta: float
    privacy: Mapping[str, object]

    note = NOTE
    _format = "gaussnoise.categories/1"
    _most_bytes = 2**32

    def attribute(self, other: str = "other") -> Attribute:
        """Return an attribute with these categories, and a catch-all category for all other values.

        Args:
            other: label of the catch-all; underscores are added if a category has this name.

        Raises:
            ParameterError: no category was found.
        """
        if not self.categories:
            raise ParameterError(
                f"categories: no value of {self.column!r} was found in {self.threshold:.0f} rows "
                "or more; hint: a larger budget, or coarser values"
            )
        names = set(map(str, self.categories))
        while other in names:
            other += "_"
        return Attribute(self.column, self.categories, other=other)

    def to_toml(self) -> str:
        """Return the part of a schema file for this column, with comments on its cost."""
        lines = "".join(f"# {line}\n" for line in str(self).splitlines())
        return lines + (Schema([self.attribute()]).to_toml() if self.categories else "")

    def _record(self) -> dict[str, object]:
        return {
            **{name: getattr(self, name) for name in _FIELDS},
            "privacy": dict(self.privacy),
            "note": NOTE,
        }

    @classmethod
    def _restored(cls, record: dict[str, Any]) -> Self:
        values, counts = tuple(record["categories"]), tuple(map(float, record["counts"]))
        kinds = {type(value) for value in values}
        if not (kinds <= {str} or kinds <= {int}):
            raise ValueError("categories of different kinds")
        if not len(values) == len(set(values)) == len(counts):
            raise ValueError("other counts than categories")
        numbers = {name: float(record[name]) for name in _FIELDS[3:]}
        return cls(
            str(record["column"]), values, counts, privacy=dict(record["privacy"]), **numbers
        )

    def __repr__(self) -> str:
        return f"Categories({self.column!r}, {len(self.categories)} found)"

    def __str__(self) -> str:
        text = (
            f"{len(self.categories)} values of {self.column!r}, "
            f"{guarantee_text(self.privacy, True)}: "
            f"rho = {self.rho:.6g} for noise, delta = {self.delta:.6g} for the threshold.\n"
            f"Values with fewer than about {self.threshold:.0f} rows are not shown "
            f"(noise of standard deviation {self.standard_deviation:.3g})."
        )
        if self.privacy.get("on_formula") == "drop":
            text += "\nNor are values that spreadsheets would take for formulas."
        return on_screen(text)


_FIELDS = ("column", "categories", "counts", "threshold", "standard_deviation", "rho", "delta")


def discover_categories(
    table: object,
    column: str,
    privacy: AbstractPrivacy,
    *,
    neighbors: Literal["add-remove", "replace"] = "add-remove",
    rows_per_person: int = 1,
    person: str | None = None,
    on_formula: Literal["show", "drop"] = "show",
    ledger: Ledger | str | os.PathLike[str] | None = None,
    id: str | None = None,
) -> Categories:
    """Return the frequent values of a column, found privately, where no list of them is public.

    Noise is added to the count of every value that occurs; the values whose noisy count is at least
    a threshold are shown. Where a code book or questionnaire lists the categories, use that list:
    it costs no privacy, and hides no category.

    Formal guarantees:
        * (ε, δ)-differential privacy, for one person of ``rows_per_person`` rows. Half of δ is for
          the threshold: it bounds the probability of showing a value that only this person has.
          The other half and ε are for the Gaussian noise: see
          :class:`~gaussnoise.privacy.threshold.ThresholdQuery`.
        * Counts are exact integers. OpenDP adds the noise and applies the threshold. The number of
          distinct values is never shown, except that more than 10⁷ are refused.

    Args:
        table: a CSV, TSV or Parquet file, or a table of polars, pandas, pyarrow, duckdb or dask;
            :meth:`Dialect.table` for CSV in another dialect. There is no
            ``on_outside``, since there is no schema: rows without a value or a person are always
            left out.
        column: a column of text or integers. Nulls are ignored. Values of a CSV file are text, byte
            by byte: 3 and 03 are two values.
        privacy: the budget for everything here.
        neighbors: neighbouring data sets: one person added or removed, or one replaced by another.
        rows_per_person: the most rows that one person has, as the data holder states. With
            ``person``, this is the largest number of rows that are counted of each person.
        person: the column that says which person a row belongs to, text or integers. If a person
            has more than ``rows_per_person`` rows, this number of them is drawn at random,
            independently of all other rows. Rows without a person are ignored. Both columns are
            read into memory.
        on_formula: "show" or "drop", for values that a spreadsheet would run as a formula when it
            opens a CSV file. Such values begin with =, +, -, @, a tab or the end of a line. "drop"
            leaves them out, however frequent they are; a schema then counts them in its catch-all
            category.
        ledger: a :class:`Ledger` with a δ, or its path: ρ and half of δ are charged.
        id: the name of this release in the ledger.

    Raises:
        ParameterError: another kind of guarantee, or a budget that allows no threshold.
        SchemaError: a column name that no attribute may have.
        DataError: no such column, another type, or more than 10⁷ distinct values.
        BudgetError: the ledger does not allow the charge.

    >>> table = {"job": ["nurse"] * 500 + ["teacher"] * 400 + ["juggler"]}
    >>> import pyarrow as pa
    >>> found = gn.discover_categories(pa.table(table), "job", gn.ApproxDP(1.0, 1e-6))
    >>> found.attribute().labels
    ('nurse', 'teacher', 'other')
    """
    from ..counting.frequencies import count_values
    from ..counting.persons import PersonLimit
    from ..reading.declared import check_columns

    if not isinstance(column, str):
        raise ParameterError(
            f"{_FUNCTION}: expected column to be a name, got {type(column).__name__}"
        )
    Attribute(column, [""], other="other")  # refuses names that no attribute may have
    if type(rows_per_person) is not int or not 1 <= rows_per_person <= _MOST_ROWS:
        raise ParameterError(
            f"{_FUNCTION}: expected an integer 1 <= rows_per_person <= {_MOST_ROWS}, got "
            f"{rows_per_person!r:.50}"
        )
    if neighbors not in ("add-remove", "replace"):
        raise ParameterError(
            f'{_FUNCTION}: expected neighbors "add-remove" or "replace", got {neighbors!r:.50}'
        )
    if on_formula not in ("show", "drop"):
        raise ParameterError(
            f'{_FUNCTION}: expected on_formula "show" or "drop", got {on_formula!r:.50}'
        )
    if not isinstance(privacy, AbstractPrivacy) or privacy.failing(_THRESHOLD) is None:
        raise ParameterError(
            f"{_FUNCTION}: expected ApproxDP(epsilon, delta), got {type(privacy).__name__}; hint: "
            "no threshold hides a value for certain, which takes a delta"
        )
    if person is not None and (not isinstance(person, str) or person in ("", column)):
        raise ParameterError(f"{_FUNCTION}: expected person to be the name of another column")
    budget = Budget.of(
        _FUNCTION, privacy, {"counts": 1.0}, _MOST_VALUES, pure=False, thresholded=_THRESHOLD
    )
    added = neighbors == "add-remove"
    change = (Change.added if added else Change.replaced)(rows_per_person)
    query = ThresholdQuery(change, budget.whole, budget.threshold_delta)
    _ = query.spent  # refuses budgets too small for a threshold before anything is read
    unit = unit_text(rows_per_person, person)
    limit = None if person is None else PersonLimit(person, rows_per_person)

    def found() -> Categories:
        record = budget.record() | {
            "neighbors": neighbors,
            "unit": unit,
            "split": budget.split,
            "on_formula": on_formula,
            "libraries": dict(versions("gaussnoise", "opendp")),
            "disclaimers": disclaimers(
                f"{unit}, {'more or less' if added else 'replaced by any other'}.", private=True
            ),
        }
        counts = count_values(table, column, _MOST_VALUES, limit)
        return _found(counts, column, query, record)

    if (charged := ledger_and_id(_FUNCTION, ledger, id)) is None:
        return found()
    ledger, id = charged
    return ledger.once(
        id,
        cost=budget.rho,
        delta=budget.threshold_delta,
        request={
            "function": _FUNCTION,
            "privacy": repr(privacy),
            "column": column,
            "neighbors": neighbors,
            "rows_per_person": rows_per_person,
            **({} if person is None else {"person": person}),
            **({} if on_formula == "show" else {"on_formula": on_formula}),
        },
        protects=Protected(
            unit, neighbors, rows=rows_per_person if person is None else None, person=person
        ),
        target=None,
        write=lambda path: path.write_text(found().to_json(), encoding="utf-8"),
        ready=lambda: check_columns(table, [column, person]),
        read=Categories.load,
    )


def _found(
    counts: "Mapping[Label, int]", column: str, query: ThresholdQuery, record: Mapping[str, object]
) -> Categories:
    """Return the frequent values: those whose noisy count reaches the threshold."""
    values = list(counts)
    # OpenDP, which adds the noise and compares, gets the counts without the values
    noisy = query.frequent(dict(enumerate(counts.values())))
    shown: dict[Label, float] = {values[k]: count for k, count in noisy.items()}
    if record["on_formula"] == "drop":
        shown = {
            v: n for v, n in shown.items() if not (isinstance(v, str) and v.startswith(_FORMULA))
        }
    # pandas may give both 1 and "1", which are one value: so categories become text
    if any(isinstance(value, str) for value in shown):
        shown = {str(value): count for value, count in shown.items()}
    order = sorted(shown)  # pyright: ignore[reportArgumentType] (all of one kind)
    return Categories(
        column=column,
        categories=tuple(order),
        counts=tuple(shown[value] for value in order),
        threshold=query.threshold,
        standard_deviation=query.standard_deviation,
        rho=query.spent[0],
        delta=query.spent[1],
        privacy=record,
    )
