"""What the certificates of marginals and of products share: weights of tables, and of patterns of attributes."""

from typing import TYPE_CHECKING

import numpy as np

from ...solvers.tables.workload import Workload

if TYPE_CHECKING:
    from .marginals import MarginalCertificate
    from .products import ProductCertificate


def are_weights(witness: "MarginalCertificate | ProductCertificate", workload: Workload) -> bool:
    """Whether shares and pattern weights are distributions over the workload's tables and possible patterns."""
    patterns, weights, shares = witness.patterns, witness.pattern_weights, witness.shares
    most = [len(members) for members in workload.moving.classes]
    return bool(
        shares.shape == (len(workload.tables),)
        and weights.shape == (len(patterns),)
        and patterns.dtype.kind in "iu"
        and patterns.shape[1:] == (len(most),)
        and all((a >= 0).all() and np.isfinite(a).all() and a.sum() > 0 for a in (shares, weights))
        and (patterns >= 0).all()
        and (patterns <= most).all()
    )
