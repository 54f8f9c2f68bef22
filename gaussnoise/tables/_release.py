"""Released tables: unbiased, consistent with each other, with exact standard deviations."""

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._intervals import ConfidenceInterval, Contrast, confidence_interval
from .._residuals import Subset, project_zero_sum, subsets_of
from ..errors import ParameterError
from ._files import FileFormat, check_target, staged, write_release
from ._measure import Integers, ResidualQuery, reconstruct
from ._schema import Category

if TYPE_CHECKING:
    from ._plan import Plan

Array = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class MarginalTable:
    """One released table of counts.

    Attributes:
        attributes: names, one per axis.
        labels: cell names along every axis.
        estimate: unbiased counts, shape (sizes…); may be negative or fractional.
        standard_deviation: of every cell, same shape, known exactly.
        numerators: the same estimates as exact integers over ``denominator``; sums of these agree between tables.
        denominator: a positive integer.
    """

    attributes: tuple[str, ...]
    labels: tuple[tuple[Category, ...], ...]
    estimate: Array
    standard_deviation: Array
    numerators: Integers
    denominator: int
    backend: Any = field(repr=False)

    def confidence_interval(self, level: float = 0.95, simultaneous: bool = False) -> ConfidenceInterval:
        """Intervals for every cell, each alone or all cells of this table together (Šidák 1967).

        Returns:
            ``(low, high)``, arrays shaped like ``estimate``.
        """
        return confidence_interval(self.estimate, self.standard_deviation, level, simultaneous)

    def columns(self, level: float = 0.95) -> dict[str, list]:
        """Tidy columns, one row per cell in C order: the attributes, estimate, standard_deviation, low, high."""
        cells = np.indices(self.estimate.shape).reshape(len(self.attributes), self.estimate.size)
        tidy: dict[str, list] = {
            name: [labels[k] for k in axis]
            for name, labels, axis in zip(self.attributes, self.labels, cells, strict=True)
        }
        low, high = self.confidence_interval(level)
        tidy["estimate"] = self.estimate.ravel().tolist()
        tidy["standard_deviation"] = self.standard_deviation.ravel().tolist()
        return tidy | {"low": low.ravel().tolist(), "high": high.ravel().tolist()}

    def to_frame(self, level: float = 0.95) -> Any:
        """:meth:`columns` as a dataframe of the library the records came in (pyarrow for files and remote engines)."""
        import narwhals as nw

        return nw.from_dict(self.columns(level), backend=self.backend).to_native()


@final
@dataclass(frozen=True, eq=False)
class TableRelease:
    """All marginals of one release. Everything in it is safe to publish when ``private`` is true.

    ``release["age", "income"]`` is a table with axes in that order; any part of a released marginal can be asked for,
    ``release["age"]`` or the total ``release[()]``. Iteration yields the planned marginals.

    Attributes:
        plan: what was planned.
        private: False for simulations, whose numbers must not be published.
        rho_charged: what OpenDP's map charges for all noise drawn; at most the planned ρ.
    """

    plan: "Plan"
    private: bool
    rho_charged: float
    queries: Mapping[Subset, ResidualQuery] = field(repr=False)
    residuals: Mapping[Subset, Integers] = field(repr=False)
    backend: Any = field(repr=False)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter(self.plan.marginals)

    def __len__(self) -> int:
        return len(self.plan.marginals)

    def __getitem__(self, names: str | tuple[str, ...]) -> MarginalTable:
        asked = self.plan.subset((names,) if isinstance(names, str) else names)
        S = tuple(sorted(asked))
        self.plan.check_released(S)
        schema = self.plan.schema
        numerators, denominator = reconstruct(S, schema.sizes, self.queries, self.residuals)
        numerators = numerators.transpose([S.index(i) for i in asked])
        # Python's integer division is correctly rounded
        estimate = np.array(numerators / denominator, dtype=np.float64)
        estimate.flags.writeable = False
        return MarginalTable(
            attributes=tuple(schema.names[i] for i in asked),
            labels=tuple(schema.attributes[i].labels for i in asked),
            estimate=estimate,
            standard_deviation=np.broadcast_to(
                math.sqrt(self._variance({S: np.eye(1, math.prod(estimate.shape))})), estimate.shape
            ),
            numerators=numerators,
            denominator=denominator,
            backend=self.backend,
        )

    def contrast(self, weights: Mapping[str | tuple[str, ...], ArrayLike]) -> Contrast:
        """A linear combination of cells of one or several tables, with its exact standard deviation.

        Args:
            weights: for each marginal, an array shaped like its table.

        Returns:
            estimate and standard deviation, correlations between tables included.

        Raises:
            ParameterError: an unknown marginal or a wrong shape.
        """
        parts: dict[Subset, Array] = {}
        estimate = 0.0
        for names, given in weights.items():
            table = self[names]
            w = np.asarray(given, dtype=np.float64)
            if w.shape != table.estimate.shape or not np.isfinite(w).all():
                raise ParameterError(
                    f"contrast: expected finite weights of shape {table.estimate.shape} for {names}, got {w.shape}"
                )
            estimate += float((w * table.estimate).sum())
            asked = self.plan.subset((names,) if isinstance(names, str) else names)
            S = tuple(sorted(asked))
            parts[S] = parts.get(S, 0.0) + w.transpose([asked.index(i) for i in S])
        return Contrast(estimate, math.sqrt(self._variance(parts)))

    def _variance(self, parts: Mapping[Subset, Array]) -> float:
        """Variance of ``Σ_S ⟨weights_S, table_S⟩``: every residual T sees the weights summed over S∖T, over N_{S∖T}."""
        sizes = self.plan.schema.sizes
        pulled: dict[Subset, Array] = {}
        for S, w in parts.items():
            table = w.reshape([sizes[i] for i in S])
            for T in subsets_of(S):
                if T in self.queries:
                    margin = table.sum(axis=tuple(axis for axis, i in enumerate(S) if i not in T))
                    outside = math.prod(sizes[i] for i in S if i not in T)
                    pulled[T] = pulled.get(T, np.zeros(margin.shape)) + margin / outside
        return math.fsum(
            self.queries[T].variance * float(np.square(project_zero_sum(w, range(w.ndim))).sum())
            for T, w in pulled.items()
        )

    def save(self, directory: str | os.PathLike[str], format: FileFormat = "csv") -> None:
        """Write one tidy file per marginal, ``release.json``, ``summary.txt`` and ``release.png`` to a new directory.

        Args:
            directory: must not exist; appears only when complete.
            format: "csv" or "parquet".

        Raises:
            OutputError: the directory exists, or its parent cannot be written.
        """
        check_target(directory, format)
        with staged(directory) as folder:
            write_release(self, folder, format)

    def __repr__(self) -> str:
        warning = "" if self.private else "NOT PRIVATE, a simulation: "
        return f"TableRelease({warning}{len(self)} marginals, rho charged {self.rho_charged:.6g})"
