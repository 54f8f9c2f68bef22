"""A proof by example that, under (ε, δ), some data sets have no lower bound."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from domains.floats import Array

from ..errors import DataError, ParameterError, not_a_generator
from ..records import as_array


@final
@dataclass(frozen=True, eq=False)
class HardCodedMechanism:
    r"""An unbiased (0, δ)-private mean that has no error at one data set, as a counterexample.

    Let μ be the mean. The answer is μ(X₀) with probability 1 − δ, and otherwise ``μ(X₀) + (μ(X) −
    μ(X₀))/δ``, which reveals the mean exactly. At X the covariance is ``(1 − δ)/δ (μ(X) −
    μ(X₀))(μ(X) − μ(X₀))'``, which is zero at X₀ and large at its neighbours. Nothing is released;
    :meth:`simulate` shows answers.

    Args:
        favourite: X₀, records as rows, shape (n, d).
        delta: in (0, 1).

    Raises:
        ParameterError: delta is out of range.
        DataError: records are not finite numbers.

    Source: Nikolov & Tang (2023), Theorem 53.

    >>> from gaussnoise.bounds import HardCodedMechanism
    >>> mechanism = HardCodedMechanism([[0.0], [0.0]], delta=0.01)
    >>> # √99 / 2
    >>> (float(mechanism.error([[0.0], [0.0]])), round(float(mechanism.error([[0.0], [1.0]])), 4))
    (0.0, 4.9749)
    """

    favourite: ArrayLike
    delta: float

    def __post_init__(self) -> None:
        if not isinstance(self.delta, float | np.floating) or not 0 < self.delta < 1:
            raise ParameterError(f"HardCodedMechanism: expected 0 < delta < 1, got {self.delta!r}")
        object.__setattr__(self, "favourite", _rows(self.favourite))

    def _move(self, data: "ArrayLike") -> Array:
        """Return the mean of ``data`` minus the mean of ``favourite``, shape (d,)."""
        rows, known = _rows(data), _rows(self.favourite)
        if rows.shape != known.shape:
            raise DataError(
                f"HardCodedMechanism: expected records of shape {known.shape}, got {rows.shape}"
            )
        return rows.mean(axis=0) - known.mean(axis=0)

    def covariance(self, data: "ArrayLike") -> Array:
        """Return the covariance of the mechanism's answer at the data set ``data``, shape (d, d).
        NOT PRIVATE.
        """
        move = self._move(data)
        return (1 - self.delta) / self.delta * np.outer(move, move)

    def error(self, data: "ArrayLike", p: float = 2) -> float:
        """Return the error ``‖sd‖_p`` of the mechanism at ``data``. NOT PRIVATE."""
        return float(np.linalg.norm(np.sqrt(np.diag(self.covariance(data))), p))

    def simulate(self, data: "ArrayLike", rng: np.random.Generator, size: int) -> Array:
        """Return independent answers of the mechanism to ``data``, shape (size, d). NOT PRIVATE."""
        if not isinstance(rng, np.random.Generator):
            raise not_a_generator(rng)
        told = rng.binomial(1, self.delta, size)
        return _rows(self.favourite).mean(axis=0) + np.outer(told / self.delta, self._move(data))


def _rows(records: "ArrayLike") -> Array:
    array = as_array("HardCodedMechanism", records)
    if (
        array.ndim != 2
        or not len(array)
        or array.dtype.kind not in "biuf"
        or not np.isfinite(array).all()
    ):
        raise DataError("HardCodedMechanism: expected finite records as rows, shape (n, d)")
    rows = array.astype(np.float64)
    rows.flags.writeable = False
    return rows
