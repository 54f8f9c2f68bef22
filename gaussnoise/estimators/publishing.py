"""The common part of all estimators: reading records, and publishing an estimate."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Never

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..privacy.budget import Budget
from ..privacy.ledger import ledger_and_id
from ..privacy.protected import Protected
from ..text import disclaimers, versions
from .estimate import Estimate
from .samples import OnNonfinite, check_finite, samples

Array = NDArray[np.float64]

_PROTECTS = {
    "record": Protected("one row", "replace"),
    "person": Protected("all rows of one person", "replace", rows=None),
}


@dataclass(frozen=True, eq=False)
class Found:
    """An estimate with the parts of its error.

    Each part is an array of the estimate's shape, or one number for all entries.

    Attributes:
        estimate: the estimate.
        bias: bound on the bias of clipping and on all rounding.
        noise: standard deviation of the last step's noise; None if ``bias`` bounds the whole error.
        sampling: bound on the standard deviation of the sampling error.
    """

    estimate: Array
    bias: Array | float
    noise: Array | float | None = None
    sampling: Array | float = 0.0


@dataclass(frozen=True, eq=False)
class Sample:
    """The records of an estimator, and the ledger to which its estimate is charged.

    Attributes:
        function: the estimator's name, which is part of the request.
        unit: the protected unit, a record or a person.
        rows: the records, or the averages of people, shape (n, d).
        shape: the shape of one record, () or (d,).
        on_nonfinite: the rule for NaN and infinities.
        ledger: a :class:`Ledger` or its path, or None.
        id: the name of the estimate in the ledger, or None.
    """

    function: str
    unit: Literal["record", "person"]
    rows: Array
    shape: tuple[int, ...]
    on_nonfinite: OnNonfinite
    ledger: object
    id: str | None

    @property
    def units(self) -> str:
        """The protected units in the plural, for messages: "records" or "people"."""
        return "records" if self.unit == "record" else "people"

    @classmethod
    def of(
        cls,
        function: str,
        data: object,
        on_nonfinite: OnNonfinite,
        ledger: object,
        id: str | None,
        *,
        unit: Literal["record", "person"] = "record",
        read: Callable[..., Array] = samples,
    ) -> "Sample":
        """Return the sample of the records, or averages of persons, that ``read`` returns.

        With a ledger, a refusal of the data is recorded, at no cost.

        Raises:
            DataError: the data are refused; under a ledger the message does not say why.
        """
        charged = ledger_and_id(function, ledger, id)
        try:
            rows = read(function, data, on_nonfinite=on_nonfinite)
        except DataError as error:
            if charged is None:
                raise
            refusal = error
        else:
            flat = rows.reshape(len(rows), -1)
            return cls(function, unit, flat, rows.shape[1:], on_nonfinite, ledger, id)

        def refuse(_: Path) -> Never:
            raise refusal

        ledger, id = charged
        return ledger.once(
            id,
            cost=0.0,
            request={"estimator": function},
            protects=_PROTECTS[unit],
            target=None,
            write=refuse,
            read=refuse,
        )

    def published(
        self,
        budget: Budget,
        find: Callable[[], Found],
        *,
        request: Mapping[str, object],
        assumed: str,
        beta: float = 0.0,
        shape: tuple[int, ...] | None = None,
    ) -> Estimate:
        """Return the estimate that ``find`` draws.

        With a ledger, the budget is charged first. Then the estimate is drawn once and stored, and
        a repeated call reads the stored estimate.

        Before anything is drawn, numbers that are not finite are refused, unless they are to be
        clipped.

        Args:
            budget: the budget of all steps together, which is charged once.
            find: the function that draws.
            request: all other public parameters, as JSON values.
            assumed: the assumptions, in words.
            beta: probability that an earlier step fails.
            shape: the shape of the estimate; by default that of a record.
        """
        n = len(self.rows)
        protected = f"one {self.unit}, replaced by any other; the number of {self.units} is public."
        record = budget.record() | {
            "neighbors": "replace",
            "unit": f"one {self.unit}",
            "n": n,
            "split": budget.split,
            "libraries": dict(versions("gaussnoise", "opendp", "numpy", "scipy")),
            "disclaimers": disclaimers(protected, private=True),
        }

        def draw() -> Estimate:
            check_finite(self.function, self.rows, self.on_nonfinite)
            found = find()
            is_noisy = found.noise is not None

            def shaped(part: Array | float | None) -> Array:
                full = np.full(found.estimate.shape, part, dtype=np.float64)
                return full.reshape(self.shape if shape is None else shape)

            return Estimate(
                estimate=shaped(found.estimate),
                noise_deviation=shaped(found.noise if is_noisy else 0.0),
                sampling_deviation=shaped(found.sampling),
                bias_bound=shaped(found.bias),
                beta=beta,
                noise="laplace" if budget.pure and is_noisy else "gaussian",
                split=budget.split,
                privacy=record,
                assumed=assumed,
            )

        if (charged := ledger_and_id(self.function, self.ledger, self.id)) is None:
            return draw()
        ledger, id = charged
        asked = {"estimator": self.function, "privacy": repr(budget.privacy)}
        return ledger.once(
            id,
            cost=budget.rho,
            delta=budget.threshold_delta,
            request=asked | dict(request) | {"n": n, "on_nonfinite": self.on_nonfinite},
            protects=_PROTECTS[self.unit],
            target=None,
            draws=None if budget.pure or budget.thresholded else budget.draws,
            write=lambda path: path.write_text(draw().to_json(), encoding="utf-8"),
            read=Estimate.load,
        )
