"""Certificates of tables that another tool measured, in closed form."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from domains.tables.marginals import Marginals

from ..errors import ParameterError
from ..noise.marginal_covariance import MarginalCovariance
from ..noise.problem import Relation
from ..noise.solve import check_problem, solved
from ..numerics.rounding import ROUNDING_MARGIN, rounded_up
from ..solvers.tables.residuals import (
    Subset,
    extended,
    part_of,
    project_zero_sum,
    residual_subsets,
    subsets_of,
)
from .opendp_tables import is_opendp, tables_of
from .strategy import AbstractStrategyCertificate

Array = NDArray[np.float64]
Names = tuple[str, ...]

_CELLS = ("DatavectorQuery", "datavector")  # mbi's names for a query that counts cells


class Measured(NamedTuple):
    """One table with noise: attributes, the standard deviation of each cell, and noisy values."""

    names: Names
    standard_deviation: float
    values: Any


@final
@dataclass(frozen=True, eq=False)
class TableCertificate(AbstractStrategyCertificate):
    """The privacy loss and the error of tables that another tool measured, after least squares.

    Attributes:
        error: upper bound on ``‖sd‖_p`` of all cells of the workload's tables at ρ = 1/2: their
            standard deviations at the stated noise, times ``sensitivity``.
        lower: certified lower bound on this error for noise of any kind.
        sensitivity: the largest change of all measured cells by one record, in standard deviations
            of their noise (ℓ₂ norm), rounded up.
        p: the norm of the error.
        neighbors: "add-remove" or "replace".
        optimal: the best known noise, with the certificate behind ``lower``.
        covariance: that of the least-squares tables, in the order of ``names``; its matrix is
            formed only if it is asked for.
        names: the attributes of each table of the workload.
        tables: the least-squares tables, by their attributes, if the measurements have values and
            records are added or removed; else empty.

    >>> found = gn.certify({("a", "b"): 2.0, ("a",): 1.0}, sizes={"a": 3, "b": 2})
    >>> print(f"rho = {found.rho:.3f}, {found.factor:.3f} times the best")
    rho = 0.625, 1.337 times the best
    >>> found.columns()["attributes"]
    ['a × b', 'a']
    """

    names: tuple[Names, ...]
    tables: Mapping[Names, Array]

    @property
    def _answers(self) -> int:
        return self.covariance.dim

    def _protection_sentences(self) -> tuple[str, str]:
        who = "One row is added or removed: all rows move the tables alike."
        if self.neighbors == "replace":
            who = (
                "One row is replaced by another, and the number of rows is public: the worst pair "
                "differs in every attribute."
            )
        return who, (
            "The noise of all measurements is taken to be Gaussian, and their tables to be fixed "
            "in advance: a choice of tables by the data costs more. Errors hold if every table "
            "counts every row."
        )

    def columns(self) -> dict[str, list]:
        """Return one row for each table, for two kinds of noise with the same privacy loss.

        The columns are the attributes, the number of cells, their standard deviation after least
        squares, their standard deviation with the best noise known, and the ratio of the two.
        """
        own, best = (
            noise.deviations if isinstance(noise, MarginalCovariance) else np.zeros(0)
            for noise in (self.covariance, self.optimal.covariance)
        )
        best = best / self.sensitivity
        domain = self.optimal.domain
        cells = [domain.cells(S) for S in domain.subsets] if isinstance(domain, Marginals) else []
        return {
            "attributes": [" × ".join(names) or "total" for names in self.names],
            "cells": cells,
            "standard_deviation": own.tolist(),
            "best_known": best.tolist(),
            "times_best": (own / best).tolist(),
        }


def is_measured(strategy: object) -> bool:
    """Return whether a strategy is a collection of noisy tables, not a matrix."""
    if isinstance(strategy, Mapping) or hasattr(strategy, "by_clique") or is_opendp(strategy):
        return True
    if hasattr(strategy, "marginals") and hasattr(strategy, "keys"):
        return True
    return isinstance(strategy, list | tuple) and any(hasattr(one, "clique") for one in strategy)


def certify_tables(
    measurements: Any,
    workload: Sequence[Iterable[str]] | None,
    sizes: Any,
    neighbors: str,
    p: float,
    tol: float,
) -> TableCertificate:
    """Return the certificate of measured tables whose cells have independent Gaussian noise.

    The arguments are those of :func:`certify`.
    """
    if neighbors not in ("add-remove", "replace"):
        raise ParameterError(
            'certify: expected neighbors="add-remove" or "replace" for tables, got '
            f"{neighbors!r:.80}"
        )
    relation: Relation = "replace" if neighbors == "replace" else "add-remove"
    if is_opendp(measurements):
        measurements, own = tables_of(measurements, neighbors)
        sizes = _agreed(own, sizes)
    if sizes is None and hasattr(workload, "attributes"):
        raise ParameterError("certify: expected sizes=domain for a domain of mbi, got a workload")
    counts = _sizes(measurements, sizes)
    if not counts:
        raise ParameterError(
            "certify: expected tables of an attribute or more, got a total alone; hint: "
            "certify([[1.0]], [[1.0]], standard_deviation=...)"
        )
    at = {name: i for i, name in enumerate(counts)}
    measured = list(_listed(measurements))
    wanted = [one.names for one in measured]
    if workload is not None:
        wanted = [(names,) if isinstance(names, str) else tuple(names) for names in workload]
    for names in [one.names for one in measured] + wanted:
        _check_names(names, at)
    domain = Marginals(tuple(counts.values()), [[at[name] for name in names] for names in wanted])
    check_problem("certify", domain, p, tol, "auto")
    live = [i for i, n in enumerate(domain.sizes) if n > 1]
    parts: dict[Subset, list[tuple[float, int]]] = {}
    for k, one in enumerate(measured):
        S = tuple(sorted(at[name] for name in one.names))
        for T in subsets_of(tuple(i for i in S if i in live)):
            # a cell of T is the sum of cells(S)/cells(T) cells of S: variances add up
            spread = one.standard_deviation**2 * (domain.cells(S) / domain.cells(T))
            parts.setdefault(T, []).append((1 / spread, k))
    needed = residual_subsets(domain.subsets, domain.sizes)
    if relation == "replace":
        needed = [T for T in needed if T]
    if missing := [T for T in needed if T not in parts]:
        what = ", ".join(list(counts)[i] for i in missing[-1])
        raise ParameterError(
            "certify: expected tables that the measurements determine, got a workload with joint "
            f"counts of ({what}), which no measurement has together; hint: leave that table out "
            "of the workload"
        )
    precisions = {T: math.fsum(weight for weight, _ in parts[T]) for T in needed}
    variances = {T: 1 / precision for T, precision in precisions.items()}
    covariance = MarginalCovariance(domain, variances)
    moved = _largest_move([one for one in measured if any(counts[n] > 1 for n in one.names)], 2)
    if relation == "add-remove":
        moved = _largest_move(measured, 1)
    error = covariance.error(p) * moved * (1 + ROUNDING_MARGIN)
    if not (0 < moved < math.inf and 0 < error < math.inf):
        raise ParameterError(
            "certify: expected measurements that some row moves, and errors within the range of "
            "doubles"
        )
    best = solved(domain, p, relation, tol)
    order = tuple(counts)
    named = tuple(tuple(order[i] for i in S) for S in domain.subsets)
    tables: dict[Names, Array] = {}
    if relation == "add-remove" and all(one.values is not None for one in measured):
        residuals = _residuals(measured, at, domain, parts, precisions)
        tables = {
            names: _table(S, residuals, domain)
            for names, S in zip(named, domain.subsets, strict=True)
        }
    return TableCertificate(
        error,
        best.gamma_lower,
        moved,
        float(p),
        relation,
        best,
        covariance,
        named,
        MappingProxyType(tables),
    )


def _largest_move(measured: Sequence[Measured], cells: int) -> float:
    """Return the ℓ₂ norm of one record's change of all cells, in units of noise, rounded up."""
    # ``cells``: 1 if a record is added, 2 if it is replaced
    squared = sum((cells / Fraction(one.standard_deviation) ** 2 for one in measured), Fraction(0))
    root = math.sqrt(rounded_up(squared))
    while Fraction(root) ** 2 < squared:
        root = math.nextafter(root, math.inf)
    return root


def _residuals(
    measured: Sequence[Measured],
    at: Mapping[str, int],
    domain: Marginals,
    parts: Mapping[Subset, list[tuple[float, int]]],
    precisions: Mapping[Subset, float],
) -> dict[Subset, Array]:
    """Return {T: residual of T} for attribute sets T, from all measured tables that contain T."""
    arrays = []
    for one in measured:
        shape = [domain.sizes[at[name]] for name in one.names]
        values = np.asarray(one.values, dtype=np.float64)
        if values.size != math.prod(shape) or not np.isfinite(values).all():
            raise ParameterError(
                f"certify: expected {math.prod(shape)} finite values for the table of "
                f"({', '.join(one.names)}), got shape {values.shape}"
            )
        axes = sorted(range(len(shape)), key=lambda k, names=one.names: at[names[k]])
        S = tuple(at[one.names[k]] for k in axes)
        arrays.append((S, values.reshape(shape).transpose(axes)))
    # a residual is the part of a table that no smaller table determines; weights are 1 / variance
    residuals: dict[Subset, Array] = {}
    for T, precision in precisions.items():
        total = np.zeros([domain.sizes[i] for i in T])
        for weight, k in parts[T]:
            S, values = arrays[k]
            total = total + weight * project_zero_sum(part_of(values, S, T), range(len(T)))
        residuals[T] = total / precision
    return residuals


def _table(S: Subset, residuals: Mapping[Subset, Array], domain: Marginals) -> Array:
    """Return the table of the attributes S as a sum: residuals of all subsets, spread evenly."""
    table = np.zeros([domain.sizes[i] for i in S])
    for T in subsets_of(S):
        if T in residuals:
            share = domain.cells(T) / domain.cells(S)
            table += share * extended(residuals[T].reshape(-1), T, S, domain.sizes)
    table.flags.writeable = False
    return table


def _listed(measurements: Any) -> Iterator[Measured]:
    """Yield every measured table of a mapping, of mbi's measurements, or of OpenDP's table."""
    given = getattr(measurements, "marginals", measurements)
    given = getattr(given, "by_clique", given)
    pairs = (
        given.items()
        if isinstance(given, Mapping)
        else [(getattr(one, "clique", None), one) for one in given]
    )
    count = 0
    for names, group in pairs:
        for one in group if isinstance(group, list | tuple) else [group]:
            count += 1
            yield _measured(names, one)
    if not count:
        raise ParameterError("certify: expected a measured table or more, got none")


def _measured(names: Any, one: Any) -> Measured:
    """Return a measured table from its standard deviation or an mbi ``LinearMeasurement``."""
    values, scale = None, one
    if hasattr(one, "stddev"):
        names, scale, values = one.clique, one.stddev, one.noisy_measurement
        query = getattr(one, "query", None)
        kind = getattr(query, "__name__", type(query).__name__)
        if query is not None and kind not in _CELLS:
            raise ParameterError(
                "certify: expected measurements of the cells of tables, got the query "
                f"{kind} of {tuple(names)}; hint: certify(matrix, workload) for other queries"
            )
    names = (names,) if isinstance(names, str) else names
    if not isinstance(names, Iterable):
        raise ParameterError(
            "certify: expected measurements like {('age', 'sex'): standard_deviation}, or those of "
            f"mbi, got {names!r:.80}"
        )
    try:
        deviation = float(scale)
    except (TypeError, ValueError, OverflowError):
        deviation = math.nan
    if not 0 < deviation < math.inf:
        raise ParameterError(
            f"certify: expected a positive standard deviation for {tuple(names)}, got {scale!r:.80}"
        )
    return Measured(tuple(names), deviation, values)


def _sizes(measurements: Any, sizes: Any) -> dict[str, int]:
    """Return {attribute: number of categories}, from ``sizes`` or OpenDP's contingency table."""
    if sizes is None and hasattr(measurements, "marginals"):  # OpenDP's contingency table
        return {name: len(labels) for name, labels in measurements.keys.items()}
    if isinstance(sizes, Mapping):
        return dict(sizes)
    for names, numbers in (("attributes", "shape"), ("names", "sizes")):  # mbi's domain, a schema
        if hasattr(sizes, numbers) and hasattr(sizes, names):
            return dict(zip(getattr(sizes, names), getattr(sizes, numbers), strict=True))
    raise ParameterError(
        "certify: expected sizes like {'age': 4, 'sex': 2} for measured tables, a schema, or a "
        f"domain of mbi, got {type(sizes).__name__}"
    )


def _agreed(own: Mapping[str, int], sizes: Any) -> dict[str, int]:
    """Return {attribute: number of categories}; raise if measurements and ``sizes`` disagree."""
    given = {} if sizes is None else _sizes((), sizes)
    for name, count in own.items():
        if given.get(name, count) != count:
            raise ParameterError(
                f"certify: expected {count} categories of {name!r}, as measured, got {given[name]} "
                "in sizes=; hint: null_category=True counts all other values as one more"
            )
    return {**given, **own}


def _check_names(names: Names, at: Mapping[str, int]) -> None:
    """Raise ParameterError unless the attribute names are distinct keys of ``at``."""
    unknown = [name for name in names if name not in at]
    if unknown or len(set(names)) < len(names):
        raise ParameterError(
            f"certify: expected distinct attributes among {', '.join(map(str, at))}, got "
            f"({', '.join(map(str, names))}); hint: sizes= names all attributes"
        )
