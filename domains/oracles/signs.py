r"""The longest member of a zonotope of few generators: branch and bound over its signs.

For signs x and any y, ``‖G x‖² = Σ y_j − x'N x`` with N = diag(y) − G'G. The relaxation's y makes N
positive semidefinite. Let N = L'L with L lower triangular, so that

    ‖G x‖² = Σ_j y_j − Σ_i (L_i1 x_1 + … + L_ii x_i)².

The first i terms of the last sum depend on the first i signs alone. Their sum is the least x'N x
over all x that begin with these signs and go on with real numbers, so it gives a bound on all these
x. Signs are fixed one by one while this bound exceeds the longest vertex found, as in the
enumeration of lattice points (Fincke & Pohst 1985). The smaller the relaxation's gap, the fewer
beginnings are left. The gap always closes for up to about 40 columns, in any dimension.
"""

import numpy as np
import scipy
from numpy.typing import NDArray

from ..floats import UNIT, Array
from .branch import Nodes, worst_open

Bits = NDArray[np.uint8]

_MOST_ENTRIES = 1280  # if G has more entries, the search would hardly close the relaxation's gap
_CLOSED = 2e-11  # relative excess over the longest vertex at which a bound is good enough
_SHIFT = 1e-12  # relative increase of y, which makes semidefinite N positive definite
_CHUNK = 2**17  # most numbers in one array
_COST = 4  # cost of one sign, in multiplications
_OVERHEAD = 40  # fixed cost of a node, as a number of signs


def longest_by_signs(G: Array, x: Array, y: Array, work: int) -> tuple[Array, float] | None:
    """Return signs with ``‖G signs‖ >= ‖G x‖``, and a proven bound on ``‖G x‖²`` over the cube.

    The cube is [−1, 1]^n, and the signs are a vertex of it.

    Return None if G has too many entries, or unless diag(y) ⪰ G'G.

    Args:
        G: shape (k, n).
        x: shape (n,), within the cube.
        y: shape (n,), positive.
        work: number of multiplications allowed.

    >>> G = np.array([[1.0, 1.0, 0.0], [0.0, 0.5, 1.0], [0.0, 0.0, -0.5]])
    >>> x, bound = longest_by_signs(G, np.array([1.0, -1.0, 1.0]), np.full(3, 3.0), 10**6)
    >>> (x * x[0]).tolist(), bool(bound < 6.5 * (1 + 1e-10))
    ([1.0, 1.0, 1.0], True)
    """
    k, n = G.shape
    if k * n > _MOST_ENTRIES:
        return None
    order = np.argsort(np.square(G).sum(axis=0) - y, kind="stable")  # largest N_ii first
    G, y = G[:, order], y[order]
    N = np.diag(y) - G.T @ G
    try:
        # Cholesky's factorisation from the last row on: N = L'L with L lower triangular
        upper = scipy.linalg.cholesky((N + np.diag(_SHIFT * y))[::-1, ::-1], lower=True)[::-1, ::-1]
    except np.linalg.LinAlgError:
        return None
    L = upper.T.copy()
    # bounds |x'(N − L'L)x|, and the rounding of N, L'L, all (L x)_i² and their sums
    sizes = float(y.sum() + np.square(np.abs(G).sum(axis=1)).sum())
    sizes += float(np.square(np.abs(L).sum(axis=1)).sum())
    slack = float(np.abs(N - L.T @ L).sum()) + 8 * (k + n) * UNIT * sizes
    search = _Search(G, x[order], L, slack)
    root = np.zeros((1, -(-n // 8)), np.uint8), np.zeros(1, np.intp), np.full(1, y.sum() + slack)
    # x and −x have the same length, so the first sign may be plus
    plus = tuple(array[1:] for array in search.longer(root))
    most = work // (_COST * (n + _OVERHEAD))
    bound = worst_open(plus, search.longer, lambda: search.closed, most)
    found = np.empty(n)
    found[order] = search.x
    return found, bound


class _Search:
    """A search over beginnings of sign vectors, with the longest vertex found."""

    # a beginning: its signs as bits (one for plus, zero for minus or not yet fixed), the number of
    # fixed signs, and a bound on ‖G x‖²
    def __init__(self, G: Array, x: Array, L: Array, slack: float) -> None:
        self.G, self.x, self.L, self.slack = G, x, L, slack
        self.longest = float(np.square(G @ x).sum())

    @property
    def closed(self) -> float:
        """The largest bound of a beginning that need not be extended further."""
        return self.longest * (1 + _CLOSED) + 3 * self.slack

    def longer(self, beginnings: Nodes) -> Nodes:
        """Return the beginnings, extended by a minus and then extended by a plus."""
        bits, fixed, bounds = beginnings
        n, every = len(self.L), np.arange(len(fixed))
        rows = max(1, _CHUNK // n)
        minus = np.concatenate([
            np.einsum("ij,ij->i", self.L[fixed[i : i + rows]], _signs(bits[i : i + rows], n))
            for i in range(0, len(fixed), rows)
        ])  # fmt: skip
        plus = minus + 2 * self.L[fixed, fixed]
        more = bits.copy()
        more[every, fixed // 8] |= (128 >> fixed % 8).astype(np.uint8)
        bits, fixed = np.concatenate([bits, more]), np.tile(fixed + 1, 2)
        # each fixed sign i subtracts its term (L x)_i² from Σ y_j
        bounds = np.tile(bounds, 2) - np.square(np.concatenate([minus, plus]))
        self._vertices(bits[(fixed == n) & (bounds > self.closed)])
        bounds[fixed == n] = 0.0
        return bits, fixed, bounds

    def _vertices(self, bits: Bits) -> None:
        """Compute ‖G x‖² for complete sign vectors x, and store the longest one so far."""
        if len(bits):
            signs = _signs(bits, len(self.L))
            lengths = np.square(signs @ self.G.T).sum(axis=1)
            best = int(lengths.argmax())
            if lengths[best] > self.longest:
                self.longest, self.x = float(lengths[best]), signs[best]


def _signs(bits: Bits, n: int) -> Array:
    return 2 * np.unpackbits(bits, axis=1, count=n).astype(np.float64) - 1
