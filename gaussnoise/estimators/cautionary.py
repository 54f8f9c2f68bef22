"""An example of a mechanism that a weak privacy guarantee allows. Do not use it."""

import secrets
import warnings

import numpy as np
from numpy.typing import ArrayLike

from ..errors import PrivacyWarning
from .estimate import Estimate
from .samples import check_finite, samples


def release_one_at_random(data: "ArrayLike") -> Estimate:
    """Return one random record unchanged, as a warning about weak guarantees; NOT private.

    The output reveals one person completely, and nothing about other people. But the distributions
    of the output on neighbouring data sets have a total variation distance of at most 1/n. So
    neither :class:`TV` with α = 1/n nor (ε, δ) with δ = 1/n excludes this mechanism. Keep δ far
    below 1/n, or use zCDP or GDP. Under these, every test between two records has bounded power
    *for all outputs*.

    Args:
        data: records, shape (n,) or (n, d).

    Returns:
        An :class:`Estimate` with ``private=False``: unbiased for the mean, with the error of one
        record.

    Raises:
        DataError: data are not finite real numbers.

    Warns:
        PrivacyWarning: always.

    Source: Barber & Duchi (2014), Example 2.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     shown = gn.estimators.release_one_at_random([3.0, 3.0])
    >>> float(shown.estimate), shown.private, caught[0].category.__name__
    (3.0, False, 'PrivacyWarning')
    """
    rows = samples("release_one_at_random", data)
    check_finite("release_one_at_random", rows, "refuse")
    n = len(rows)
    warnings.warn(
        "release_one_at_random: publishes one record as it is; a guarantee of total variation 1/n, "
        "or of a delta of 1/n, allows that",
        PrivacyWarning,
        stacklevel=2,
    )
    shape = rows.shape[1:]
    return Estimate(
        estimate=rows[secrets.randbelow(n)],
        noise_deviation=np.zeros(shape),
        sampling_deviation=np.full(shape, np.inf),
        bias_bound=np.zeros(shape),
        beta=0.0,
        noise="gaussian",
        split={},
        privacy={
            "definition": "total variation privacy",
            "alpha": 1 / n,
            "neighbors": "replace",
            "unit": "one record",
        },
        assumed="nothing",
        private=False,
    )
