"""The base class of certificates for marginals and products: weights of tables and patterns."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from domains.floats import Array
from domains.tables.tables import AbstractTables

from ...errors import CertificateError
from ...solvers.design import Protected
from ...solvers.tables.workload import Workload
from ..covariance import Stored
from ..problem import Problem
from .certificate import Certificate


@dataclass(frozen=True, eq=False)
class TableCertificate(Certificate):
    """A measure on the records of tables, or on pairs of records that differ in some attributes.

    A set of differing attributes is called a pattern.

    Attributes:
        domain: the tables, whose records the measure is on.
        p: the exponent of the error's norm.
        protected: "gamma" (K about its center), "add-remove" or "replace".
        shares: for each type of table, the sum of the dual weights of such tables, in the order of
            :attr:`Workload.tables`.
        patterns: for each pattern, the number of differing attributes in each class of alike
            attributes with more than one category, shape (k, classes).
        pattern_weights: the probabilities of the patterns, shape (k,).
        public: attributes that never differ.
    """

    domain: AbstractTables
    p: float
    protected: Protected
    shares: Array
    patterns: NDArray[np.intp]
    pattern_weights: Array
    public: tuple[int, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        for name, own in tuple(vars(self).items()):  # plans of equal tables share their certificate
            if isinstance(own, np.ndarray):
                object.__setattr__(self, name, _read_only(own))
            elif isinstance(own, tuple):
                views = [_read_only(x) if isinstance(x, np.ndarray) else x for x in own]
                object.__setattr__(self, name, tuple(views))

    def workload(self) -> Workload:
        """Return the domain's tables and attribute sets, grouped by type.

        Sets have one type if exchanges of equivalent attributes map them to each other. Strategies
        do not matter here.
        """
        total = self.protected == "add-remove"
        return Workload.of(self.domain, total=total, public=self.public)

    def proves(self, problem: Problem) -> bool:
        """Return whether the certificate was made for this problem."""
        return (
            self.domain is problem.domain
            and self.p == problem.p
            and self.protected == problem.protected
            and self.public == problem.public
        )

    def has_weights(self, workload: Workload) -> bool:
        """Return whether the weights are distributions, up to scale, on possible patterns."""
        patterns, weights, shares = self.patterns, self.pattern_weights, self.shares
        most = [
            0 if k in workload.public else len(members)
            for k, members in enumerate(workload.moving.classes)
        ]
        return bool(
            shares.shape == (len(workload.tables),)
            and weights.shape == (len(patterns),)
            and patterns.dtype.kind in "iu"
            and patterns.shape[1:] == (len(most),)
            and all(
                (a >= 0).all() and np.isfinite(a).all() and a.sum() > 0 for a in (shares, weights)
            )
            and (patterns >= 0).all()
            and (patterns <= most).all()
        )

    def encode(self) -> Stored:
        return {}, {
            "table_shares": self.shares,
            "patterns": self.patterns,
            "pattern_weights": self.pattern_weights,
        }

    @classmethod
    def decode(
        cls, problem: Problem, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> Self:
        if not isinstance(problem.domain, AbstractTables) or problem.protected is None:
            raise CertificateError("load: expected tables with the certificate of some")
        weights = arrays["table_shares"], arrays["patterns"], arrays["pattern_weights"]
        more = cls._more(arrays)
        return cls(
            problem.domain, problem.p, problem.protected, *weights, *more, public=problem.public
        )

    @classmethod
    def _more(cls, arrays: dict[str, NDArray[Any]]) -> tuple[Any, ...]:
        """Return the constructor arguments that a subclass adds, from the stored arrays."""
        return ()


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view of an array that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view
