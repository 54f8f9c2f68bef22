"""Attributes with nearly all rows in cells that should be rare: the file may be the wrong one.

The remarks are computed from released numbers and the known deviations of their noise alone. So
they cost no privacy.
"""

import math
from collections.abc import Iterator

import numpy as np

from ..schema.dates import open_bins
from ..schema.schema import Attribute
from .contrasts import contrast
from .noisy import AbstractRelease, estimate_of

_NEARLY_ALL = 0.9  # smallest share of the rows
_DEVIATIONS = 5.0  # noise alone exceeds the share in one of three million releases
_MOST_CELLS = 10**5  # larger tables are not read for this


def rows_aside(release: AbstractRelease) -> Iterator[str]:
    """Yield a remark for each attribute with nearly all rows in a cell that should be rare.

    Such a cell is the catch-all category (the category for all other values), or a bin without a
    lower or an upper limit.
    """
    release, tables = release.kept(), release.plan.tables
    for i, attribute in enumerate(release.plan.schema.attributes):
        cells = min((tables.cells(S) for S in tables.subsets if i in S), default=math.inf)
        for cell, name in _rare_cells(attribute).items() if cells <= _MOST_CELLS else ():
            beyond = np.full(attribute.size, -_NEARLY_ALL)
            beyond[cell] += 1
            rows, deviation = contrast(release, {(attribute.name,): beyond})
            if rows > _DEVIATIONS * deviation:
                counts = estimate_of(release, attribute.name)[2]
                share = min(1.0, float(counts[cell] / counts.sum()))
                said = f"about {100 * share:.0f} % of all {release.noun} are in {name}"
                yield f"{said} of {attribute.name!r}"


def _rare_cells(attribute: Attribute) -> dict[int, str]:
    """Return {index: name} of cells that should be rare: the catch-all, and open bins of dates."""
    found = open_bins(attribute.edges)
    if attribute.other is not None:
        found[attribute.size - 1] = f"the catch-all {attribute.other!r}"
    return found
