"""All tables of a release, replaced by the nearest tables that a data set can have: biased."""

from collections.abc import Mapping

import numpy as np

from domains.tables.marginals import Marginals

from ...mechanisms.projection import nearest
from .biased import BiasedTable
from .noisy import AbstractRelease, read_only

_PROJECTED = "nearest marginals of a table of records, all tables together"


def projected(release: AbstractRelease) -> Mapping[tuple[str, ...], BiasedTable]:
    """Return the planned marginals, replaced by the nearest ones of any data set. BIASED.

    The sum of squared changes over all cells is the least possible for tables with the released
    total (zero if the released total is negative). The marginals are those of one full table
    without negative cells, so they agree in more than shared margins. Every step reads all cells of
    the full table, so the full table must fit into memory. Hundreds of released cells take seconds,
    and thousands take minutes.

    Returns:
        A :class:`BiasedTable` for each planned marginal; cells are real numbers.

    Raises:
        DomainTooLargeError: the full table has more cells than can be listed.

    Source: Nikolov, Talwar & Zhang (2016).

    >>> import pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute(name, ["no", "yes"]) for name in "abc"])
    >>> rows = pa.table({"a": ["no"] * 9, "b": ["yes"] * 9, "c": ["no"] * 9})
    >>> release = gn.plan(schema, 2, gn.zCDP(0.01)).release(rows)
    >>> tables = release.projected()
    >>> print(len(tables), min(table.estimate.min() for table in tables.values()) >= 0)
    3 True
    """
    domain = Marginals(release.plan.schema.sizes, release.plan.tables.subsets)  # with all weights 1
    stacked = np.concatenate([np.ravel(release.tables[S]) for S in domain.subsets])
    rows = max(float(np.sum(release.tables[domain.subsets[0]])), 0.0)
    nearby = rows * nearest(domain, stacked / rows)[0] if rows else np.zeros_like(stacked)
    ends = np.cumsum([domain.cells(S) for S in domain.subsets])[:-1]
    parts = dict(zip(domain.subsets, np.split(nearby, ends), strict=True))
    tables = {}
    for names in release:
        asked, released = release.plan.subset(names), release[names]
        S = tuple(sorted(asked))
        estimate = (
            parts[S].reshape([domain.sizes[i] for i in S]).transpose([S.index(i) for i in asked])
        )
        tables[names] = BiasedTable(
            released.attributes,
            released.labels,
            read_only(estimate),
            _PROJECTED,
            release.private,
            release.backend,
            release.noun,
        )
    return tables
