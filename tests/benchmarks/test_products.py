"""Planning time for products of one-attribute queries, in eigendecompositions of the same run;
every gap is printed.

Run with ``pytest tests/benchmarks -m benchmark -s -n 0``. QuerySmasher (2026) reports 25 to 166
seconds for the two surveys below, where one eigendecomposition of order 1024 takes about a third of
a second.
"""

import itertools
import math
import time

import numpy as np
import pytest

import gaussnoise as gn

pytestmark = pytest.mark.benchmark

SURVEYS = {
    "CPS": ((50, 100, 7, 4, 2), 2),
    "Adult": ((100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2), 5),
    "20 attributes": ((100, 100, *range(2, 20)), 2),
    "1000 × 1000": ((1000, 1000), 2),
}


def seconds(run):
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("survey", SURVEYS)
def test_planning_and_certifying(survey, neighbors):
    """Expected: a few eigendecompositions; the certificate is the larger part where three prefixes
    share a table. The gap is widest for two-way tables of replaced records.
    """
    if survey in ("20 attributes", "1000 × 1000") and neighbors == "replace":
        pytest.skip("bases of 1000 categories are not searched for short differences")
    sizes, prefixes = SURVEYS[survey]
    matrix = np.random.default_rng(0).normal(size=(1024, 1024))
    unit = min(seconds(lambda: np.linalg.eigh(matrix @ matrix.T))[0] for _ in range(2))
    bases = [gn.Prefix(n) if i < prefixes else gn.Identity(n) for i, n in enumerate(sizes)]
    rows, slowest = [], 0.0
    for ways in ([1], [2], [3], [1, 2, 3]):
        if max(ways) > len(sizes):
            continue
        subsets = [S for k in ways for S in itertools.combinations(range(len(sizes)), k)]
        domain = gn.Products(bases, subsets)
        taken, noise = seconds(lambda domain=domain: gn.optimal_noise(domain, neighbors=neighbors))
        error = noise.gamma / math.sqrt(domain.dim)
        rows.append(
            [str(ways), float(np.prod([float(n) for n in sizes])), error, noise.gap, taken / unit]
        )
        slowest = max(slowest, taken / unit)
    print(
        f"\n{survey}, {neighbors}: ways, cells, root mean square deviation, certified gap, "
        "time in eigh(1024)"
    )
    for ways, cells, error, gap, ratio in rows:
        print(f"{ways:>10}  {cells:.3g}  {error:.6f}  {gap:.4f}  {ratio:.2f}")
    assert all(row[3] < (0.03 if neighbors == "add-remove" else 0.035) for row in rows)
    assert slowest < (200 if survey == "1000 × 1000" else 40)
