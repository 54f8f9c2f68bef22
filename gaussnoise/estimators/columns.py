"""Means of a table's numeric columns, by group, without known bounds on the numbers."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError, GaussNoiseError, OutputError, ParameterError
from ..files.disk import check_parent
from ..numerics.rounding import rounded_down
from ..privacy.budget import Budget
from ..privacy.guarantee import AbstractPrivacy
from ..privacy.lattice_bound import MIN_STEPS
from ..privacy.ledger import Ledger, ledger_and_id
from ..records import check_on_outside
from ..tables.planning.facts import protected
from ..tables.planning.ranges import FoundRange
from ..tables.release.population import ColumnMeans, population_of
from ..tables.release.release import TableRelease
from ..tables.release.store import FileFormat
from ..tables.schema.about import NOTHING_SAID, About
from ..tables.schema.codes import Code
from ..tables.schema.numbers import PER_PERSON, PerPerson, Weight
from ..tables.schema.schema import Attribute, OnOutside, Schema
from ..text import one_of
from .knowledge import LARGEST, moment_order, number, positive, shown
from .ranges import QUESTIONS, SHARES, Ends, Neighbors, check_questions

_MOST_GROUPS = 10_000
_OTHER = "other"


def column_means(
    table: Any,
    columns: Sequence[str],
    privacy: AbstractPrivacy,
    *,
    by: Mapping[str, Sequence[str | int | bool]] | Sequence[Attribute] | None = None,
    person: str | None = None,
    per_person: PerPerson | Mapping[str, PerPerson] | None = "mean",
    rows_per_person: int = 1,
    neighbors: Neighbors = "add-remove",
    between: Mapping[str, Ends] | None = None,
    weight: Weight | None = None,
    spread: float = 1.0,
    order: float | None = None,
    level: float = 0.95,
    on_outside: OnOutside = "drop",
    missing: Mapping[str, Sequence[Code]] | None = None,
    out: str | os.PathLike[str] | None = None,
    format: FileFormat = "csv",
    about: About = NOTHING_SAID,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    id: str | None = None,
) -> ColumnMeans:
    r"""Return means of numeric columns with intervals, after a private search for their ranges.

    For each column, noisy counts find numbers L and U: less than a tenth of all numbers are below
    L, and less than a tenth are above U. A last noisy count checks this. Numbers are clipped to a
    range ``c ± T`` around the middle c of L and U. The rest of the budget is for the release of a
    plan (:func:`plan`) of the counts, sums and sums of squares of all columns. The release answers
    more questions, and can be saved and reported.

    T balances noise against the bias of clipping, for distributions with ``(E|X − c|^k)^(1/k) <=
    spread · (U − L)``. With k = 2 the left side is about 0.39 (U − L) for a normal distribution,
    0.5 (U − L) for an exponential one, and 0.65 (U − L) for a lognormal one of parameter 1.
    ``bias`` is the bound on the bias under this assumption. The result states the assumption, with
    its numbers, for each column. The assumption should hold in each group; you must judge whether
    it does. A larger k needs less noise. Without ``order``, k is 4, or 2 if a noisy count shows too
    many numbers far from c. The result may also assume that no number is negative. It does so if L
    >= 0 and the noisy count of negative numbers may be noise alone.

    Public bounds, given as ``between``, need no search and no assumption.

    The half width of an interval is the bias plus a quantile of the sum of noise and sampling
    error. A twentieth of 1 − level covers the event that a check errs. Sampling has Wilson's
    correction (1927) for small groups and rare large numbers, which shifts an interval towards the
    middle of the range.

    Formal guarantees:
        * The privacy guarantee, for one row more or less ("add-remove") or one row replaced; with
          ``person``, for all rows of one person. A row without a number in a column is left out for
          that column; a row without a listed category is left out for all columns. Refusals, with
          ``on_outside="refuse"``, depend on the data and are not covered.
        * In the search, a row is in at most one of two counts, and only one row of each person is
          counted, drawn at random. All noise is discrete Gaussian, drawn by OpenDP.
        * The cost of later steps may depend on earlier results. All steps together are within one
          budget, which is fixed before and charged once.

    Args:
        table: a dataframe of any kind, or the path of a CSV or Parquet file; for CSV in another
            dialect, :meth:`Dialect.table`. The table is read several times.
        columns: names of numeric columns, at least one; each search for a range gets an equal share
            of the budget.
        privacy: :class:`zCDP`, :class:`ApproxDP`, or another guarantee that Gaussian noise
            satisfies.
        by: the public categories of each grouping column, or an :class:`Attribute` for each; groups
            are all combinations of categories.
        person: name of the column that identifies the person of each row.
        per_person: as in :func:`plan`: with "mean", each person counts with the mean of their own
            numbers in a group, with "max" with the largest of them. "sum" and "count" need
            ``between``. Or one of these for each column, ``{"stay": "mean", "visits": "count"}``.
            None for means over rows.
        rows_per_person: the largest number of groups in which a person is counted; if
            ``per_person`` is None, the largest number of a person's rows. If a person has more, a
            random sample of this size is counted.
        neighbors: the relation, for one person or row; under "replace", the number of rows is
            public.
        between: the public bounds ``(low, high)`` of some columns; None for an unknown bound, as in
            ``{"income": (0, None)}``. Numbers beyond a bound are clipped to it.
        weight: the sample weights of rows: means are weighted sums over weighted counts. All
            columns need both public bounds, since a search counts rows, not their weights. The
            interval is for the weighted mean of the counted rows themselves, clipped and rounded to
            steps of ``most / 2**20``; its noise is known exactly. It is not for the mean of a
            population: how weighted means vary from sample to sample depends on the sampling
            design, and on squares that plans do not release. So ``sampling`` and ``bias`` are 0.
            With ``person``, ``per_person`` is None.
        spread: the factor in the assumption above; 0.5 if it is less.
        order: k, the order of the moment, from 2 to 100; chosen as above if omitted.
        level: confidence level of each single interval, in (0, 1).
        on_outside: the treatment of a row without a number in a column, without a listed category,
            or without a person: "drop" leaves it out; "refuse" refuses the whole call, which is not
            private, as in :meth:`Plan.release`. Infinite numbers are numbers, and are clipped.
        missing: codes of columns that mean "no answer", as in :class:`Attribute`: ``{"income":
            [999]}``.
        out: a new folder for the release, as in :meth:`Plan.release`.
        format: the format of its tables.
        about: the title, source, period, publisher and contact, for readers of the release.
        ledger: a :class:`Ledger` or its path, charged before anything is drawn; it requires ``out``
            and ``id``.
        id: the name of these means in the ledger.

    Returns:
        A :class:`ColumnMeans`. If a column has too few numbers, or 8 in 10 are equal, its means are
        NaN with infinite intervals, and ``reason`` says what would help.

    Raises:
        ParameterError: arguments are of another kind, or out of range.
        SchemaError: ``by`` lists no categories, or a category twice.
        DataError: a column is missing, or does not hold numbers; or a row does not fit, with
            ``on_outside="refuse"``.
        OutputError: ``out`` exists, or cannot be written.

    Source: the search is similar to Smith (2011) and Karwa & Vadhan (2018); the clipping follows
    Kamath, Singhal & Ullman (2020). The check is ours.

    >>> import polars as pl
    >>> rng = np.random.default_rng(0)
    >>> frame = pl.DataFrame(
    ...     {"income": rng.lognormal(10, 0.5, 20_000), "sex": rng.choice(["f", "m"], 20_000)}
    ... )
    >>> found = gn.estimators.column_means(frame, ["income"], gn.zCDP(0.1), by={"sex": ["f", "m"]})
    >>> truth = float(np.exp(10 + 0.125))
    >>> all(abs(mean.mean / truth - 1) < 0.2 for mean in found.means)
    True
    """
    # imported here, since they load an engine of tables
    from ..tables.reading.declared import check_columns
    from ..tables.reading.files import dialect_of
    from ..tables.release.files import check_format
    from .column_plan import UNSPENT, ColumnPlan

    name = "column_means"
    columns = _columns(columns)
    ends = {column: (None, None) for column in columns} | _public(columns, between)
    if not (isinstance(neighbors, str) and neighbors in ("add-remove", "replace")):
        raise ParameterError(
            f'{name}: expected neighbors="add-remove" or "replace", got {shown(neighbors)}'
        )
    check_on_outside(name, on_outside, bodies=False)
    groups = _groups(by, neighbors == "replace" and person is None and on_outside == "drop")
    reduced = _reduced(per_person, columns)
    if person is None:
        if per_person not in ("mean", None):
            raise ParameterError(
                f"{name}: per_person={shown(per_person)} needs person=, the column of persons"
            )
        reduced = {}
    for column, how in reduced.items():
        if how in ("sum", "count") and None in ends[column]:
            raise ParameterError(
                f"{name}: expected both public ends with per_person={how!r}: a search finds a "
                "range for the numbers of rows, not for their sum or count for a person; hint: "
                f"between={{{column!r:.80}: (0, most)}}, with the most that one "
                "person may have"
            )
        if how == "sum" and ends[column][0] != 0:
            raise ParameterError(
                f"{name}: expected public ends that begin at 0 for the sums of persons, got "
                f"{shown(ends[column])} for {column!r:.80}; hint: (0, the largest sum)"
            )
    if weight is not None and (reduced or any(None in pair for pair in ends.values())):
        raise ParameterError(
            f"{name}: expected both public ends, and per_person=None, with weight=: a search for "
            "ranges counts rows, not their weights; hint: between={column: (0, most)}"
        )
    if person is None and not (type(rows_per_person) is int and rows_per_person == 1):
        raise ParameterError(f"{name}: rows_per_person= needs person=, the column of persons")
    if (ledger is None) != (id is None) or (ledger is not None and out is None):
        raise ParameterError(f"{name}: expected ledger=, id= and out= together")
    spread = positive(name, "spread", spread)
    order = None if order is None else moment_order(name, order)
    if not 0 < (level := number(name, "level", level)) < 1:
        raise ParameterError(f"{name}: expected 0 < level < 1, got {level!r}; hint: 0.95")
    budget = Budget.of(name, privacy, SHARES, len(columns) * QUESTIONS, pure=False)
    part = rounded_down(Fraction(budget.whole) / len(columns))
    check_questions(neighbors, part)
    options = {"neighbors": neighbors, "person": person, "rows_per_person": rows_per_person}
    options |= {} if weight is None else {"weight": weight}
    if not isinstance(about, About):
        raise ParameterError(f"{name}: expected about= to be an About, got {shown(about)}")
    codes, file = _codes(missing, columns), dialect_of(table)
    asked = ColumnPlan(columns, groups, options, reduced, on_outside, level, about, codes, file)
    unit = asked.deviation(rounded_down(Fraction(budget.whole) * Fraction(UNSPENT)))
    check_format(format, asked.in_unit.schema, () if out is None else asked.in_unit.tables.subsets)
    if out is not None and ledger is None:
        check_parent(Path(out), name)

    def found_in(column: str) -> FoundRange:
        counts = asked.counts(table, column, part)
        return asked.range_of(column, counts, ends[column], spread, order, unit)

    def release(folder: Any) -> TableRelease:
        plan = asked.plan(tuple(map(found_in, columns)), privacy)
        return plan.release(table, out=folder, format=format, on_outside=on_outside)

    def paid(folder: Any) -> TableRelease:
        try:
            return release(folder)
        except (DataError, OutputError):
            raise
        except GaussNoiseError as error:
            # the error may depend on the noise of the search, so the charge must stay
            raise OutputError(
                f"{name}: no release follows from what the search found "
                f"({type(error).__name__}); hint: public bounds, between="
            ) from None

    charged = ledger_and_id(name, ledger, id)
    if charged is None or out is None:
        return population_of(release(out), level)
    request = {
        "estimator": name,
        "privacy": repr(privacy),
        "columns": columns,
        "by": Schema(groups).to_toml() if groups else "",
        **options,
        **({} if weight is None else {"weight": asdict(weight)}),
        **({"about": about.stated} if about.stated else {}),
        **({"file": file.stated} if file.stated else {}),
        **(
            {"missing": {name: list(own) for name, own in asked.missing.items()}} if missing else {}
        ),
        "per_person": _in_request(reduced),
        "spread": spread,
        "k": order,
        "level": level,
        "on_outside": on_outside,
        "between": {column: ends[column] for column in between or {}},
    }
    ledger, id = charged
    wanted = [*columns, *(group.name for group in groups), person]
    wanted += [] if weight is None else [weight.column]
    draws = asked.in_unit.integers + len(columns) * QUESTIONS
    found = ledger.once(
        id,
        cost=privacy.to_zcdp(1, MIN_STEPS).rho,
        request=request,
        protects=protected(asked.in_unit),
        target=out,
        draws=draws,
        write=paid,
        ready=lambda: check_columns(table, wanted),
        read=TableRelease.load,
    )
    return population_of(found, level)


def _public(columns: list[str], between: object) -> dict[str, Ends]:
    """Return the public bounds of some columns as floats, or raise ParameterError."""
    found: dict[str, Ends] = {}
    if not (between is None or isinstance(between, Mapping)) or set(between or {}) - set(columns):
        raise ParameterError(
            "column_means: expected between= to give the ends of columns that are asked for; hint: "
            'between={"age": (0, 120)}'
        )
    for column, given in (between or {}).items():
        if not (isinstance(given, list | tuple) and len(given) == 2):
            raise ParameterError(
                f"column_means: expected two ends for {column!r}, or None for an unknown one, got "
                f"{shown(given)}"
            )
        low, high = (
            None if end is None else number("column_means", "as an end in between=", end)
            for end in given
        )
        if not (low is None or high is None or 0 < high / 2 - low / 2 <= LARGEST):
            raise ParameterError(
                f"column_means: expected low < high, no further apart than {LARGEST:g}, for "
                f"{column!r}, got {shown(given)}"
            )
        found[column] = (low, high)
    return found


def _columns(given: object) -> list[str]:
    """Return the names of columns as a list, or raise ParameterError if they are not distinct."""
    names = [given] if isinstance(given, str) else given
    if not (
        isinstance(names, list | tuple)
        and names
        and all(isinstance(name, str) for name in names)
        and len(set(names)) == len(names)
    ):
        raise ParameterError(
            "column_means: expected names of columns, at least one, each once; hint: "
            'columns=["income", "age"]'
        )
    return list(names)


def _reduced(given: object, columns: list[str]) -> dict[str, PerPerson]:
    """Return {column: name of the function that reduces a person's numbers to one}."""
    if given is None:
        return {}
    own: Any = dict.fromkeys(columns, given) if isinstance(given, str) else given
    known = isinstance(own, Mapping) and {*own} == {*columns}
    if not (known and all(isinstance(how, str) and how in PER_PERSON for how in own.values())):
        raise ParameterError(
            f"column_means: expected per_person= to be None, {one_of(map(repr, PER_PERSON))}, or "
            f"one of these for each column, got {shown(given)}"
        )
    return {column: own[column] for column in columns}


def _codes(given: object, columns: list[str]) -> dict[str, tuple[Code, ...]]:
    """Return the codes that mean "no answer", for the columns that have some."""
    if not (given is None or isinstance(given, Mapping)) or {*(given or {})} - {*columns}:
        raise ParameterError(
            "column_means: expected missing= to give the codes of columns that are asked for; "
            'hint: missing={"age": [999]}'
        )
    return {
        name: Attribute(name, clip=[0, 1], missing=own).missing
        for name, own in (given or {}).items()
    }


def _in_request(reduced: Mapping[str, PerPerson]) -> object:
    """Return ``per_person`` for a ledger's record: a single name if all columns have the same."""
    return next(iter(reduced.values()), None) if len({*reduced.values()}) < 2 else dict(reduced)


def _groups(by: object, with_others: bool) -> list[Attribute]:
    """Return the grouping attributes; ``with_others`` adds a catch-all category to each."""
    given = [] if by is None else by
    if isinstance(given, Mapping) and all(
        isinstance(name, str) and isinstance(values, list | tuple | np.ndarray)
        for name, values in given.items()
    ):
        given = [Attribute(name, list(values)) for name, values in given.items()]
    if not isinstance(given, list | tuple) or not all(
        isinstance(own, Attribute) and own.clip is None for own in given
    ):
        raise ParameterError(
            "column_means: expected by= to give the categories of each grouping column, or "
            'attributes; hint: by={"sex": ["f", "m"]}'
        )
    cells = math.prod(attribute.size for attribute in given)
    if cells > _MOST_GROUPS:
        raise ParameterError(
            f"column_means: expected at most {_MOST_GROUPS} groups, got {shown(cells)}"
        )
    return [
        replace(own, other=_OTHER) if with_others and own.other is None else own for own in given
    ]
