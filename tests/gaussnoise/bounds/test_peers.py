"""The table of peers' allocations in the book: every number is computed again."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
import scipy

import gaussnoise as gn

PAGE = (Path(__file__).parents[3] / "notebooks" / "peers.md").read_text(encoding="utf-8")
CELLS = 64


def printed(row):
    """The numbers in a row of the book's table."""
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {row} |")]
    return [float(number) for number in re.findall(r"\| (\d+\.\d+)", line)]


def workloads(n=CELLS):
    runs = [[i <= k <= j for k in range(n)] for i in range(n) for j in range(i, n)]
    return np.tri(n), np.array(runs, dtype=float)


def tree(n, branching):
    widths = [branching**k for k in range(n.bit_length()) if branching**k <= n]
    return np.vstack([np.kron(np.eye(n // w), np.ones((1, w))) for w in widths])


def wavelet(n):
    halves = [2**k for k in range(n.bit_length() - 1)]
    steps = [np.kron(np.eye(n // (2 * h)), np.repeat([[1.0, -1.0]], h, axis=1)) for h in halves]
    return np.vstack([np.ones((1, n)), *steps])


def square_root(n):
    return np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, n))])


STRATEGIES = {
    "identity: noise on every cell": lambda W: np.eye(CELLS),
    "the workload itself: noise on every answer": lambda W: W,
    "binary tree (Hay et al. 2010)": lambda W: tree(CELLS, 2),
    "tree with 4 branches": lambda W: tree(CELLS, 4),
    "tree with 8 branches": lambda W: tree(CELLS, 8),
    "Haar wavelet (Xiao et al. 2010)": lambda W: wavelet(CELLS),
    "square root (Fichtenberger et al. 2023)": lambda W: square_root(CELLS),
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_strategies_for_ordered_cells(name):
    found = [gn.certify(STRATEGIES[name](W), W, tol=1e-5).factor ** 2 for W in workloads()]
    assert found == pytest.approx(printed(name), abs=6e-4)


def test_the_form_of_hdmm():
    """Rows of an identity and four more, all columns of length one, optimised by jax."""
    jax = pytest.importorskip("jax")
    numbers = []
    with jax.enable_x64(True):
        for W in workloads():
            G = jax.numpy.array(W.T @ W)

            def strategy(flat):
                theta = flat.reshape(4, CELLS)
                return jax.numpy.vstack([jax.numpy.eye(CELLS), theta]) / jax.numpy.sqrt(
                    1 + (theta**2).sum(axis=0)
                )

            def loss(flat, G=G):
                A = strategy(flat)
                return jax.numpy.log(jax.numpy.trace(jax.numpy.linalg.solve(A.T @ A, G)))

            start = np.random.default_rng(0).uniform(size=4 * CELLS)
            value = jax.jit(jax.value_and_grad(loss))

            def both(flat, value=value):
                return [np.asarray(part, dtype=float) for part in value(flat)]

            best = scipy.optimize.minimize(
                both, start, jac=True, method="L-BFGS-B", options={"maxiter": 2000}
            )
            numbers.append(gn.certify(np.asarray(strategy(best.x)), W, tol=1e-5).factor ** 2)
    assert numbers == pytest.approx(
        printed("identity and 4 rows, the form of HDMM (McKenna et al. 2018)"), abs=2e-2
    )


SIZES = {"age": 10, "region": 6, "sex": 2, "work": 4}
PAIRS = list(itertools.combinations(SIZES, 2))


def residual_planner():
    """Xiao et al. (2023): residuals, with their noise by its closed form for the sum of variances.

    A residual on T costs p/σ², p = Π (n−1)/n, and adds σ² Π_T (n−1)/n Π_{S∖T} 1/n² to each cell of
    a table S; σ² is in proportion to √(p/v), v the sum over all cells.
    """
    rows, tables = [], []
    for T in {T for S in PAIRS for k in range(3) for T in itertools.combinations(S, k)}:
        cost = math.prod((SIZES[i] - 1) / SIZES[i] for i in T)
        spread = sum(
            math.prod(SIZES[i] for i in S)
            * cost
            * math.prod(1 / SIZES[i] ** 2 for i in S if i not in T)
            for S in PAIRS
            if set(T) <= set(S)
        )
        residual = np.ones((1, 1))
        for name, n in SIZES.items():
            part = scipy.linalg.helmert(n) if name in T else np.ones((1, n))
            residual = np.kron(residual, part)
        rows.append(residual / (cost / spread) ** 0.25)
    for S in PAIRS:
        table = np.ones((1, 1))
        for name, n in SIZES.items():
            table = np.kron(table, np.eye(n) if name in S else np.ones((1, n)))
        tables.append(table)
    return np.vstack(rows), np.vstack(tables)


def test_allocations_for_two_way_tables():
    joint = gn.certify({tuple(SIZES): 1.0}, PAIRS, sizes=SIZES)
    alike = gn.certify(dict.fromkeys(PAIRS, 1.0), sizes=SIZES)
    # Σ √cells of the best separate split: σ² in proportion to 1/√cells
    split = {S: math.prod(SIZES[i] for i in S) ** -0.25 for S in PAIRS}
    weighted = gn.certify(split, sizes=SIZES)
    residuals = gn.certify(*residual_planner(), tol=1e-5)
    for row, found in (
        ("the joint table: noise on every cell", joint),
        ("every table, with equal noise", alike),
        ("every table, noise by its number of cells", weighted),
        ("residuals of ResidualPlanner (Xiao et al. 2023)", residuals),
    ):
        assert [found.factor**2] == pytest.approx(printed(row), abs=6e-4)
    assert residuals.factor < 1 + 1e-5
