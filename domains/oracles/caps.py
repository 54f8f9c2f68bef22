r"""The longest member of a zonotope of few dimensions: branch and bound over its direction.

Z = {G x : \|x_j\| <= 1} has the support function h(v) = Σ_j \|<g_j, v>\|. Its longest member z has
<z, v> <= h(v) for every v. So if the direction of z is in a cap, at angles up to R from v,

    ‖z‖ <= h(v) / (‖v‖ cos R),

and a cap is closed once this is at most the longest vertex found. The faces of the cube [−1, 1]^r
represent all directions up to their sign. The faces are cut into boxes, each inside the cap about
its middle. Near the longest vertices, caps become so small that few hyperplanes <g_j, u> = 0 meet
them. With s the signs of <g_j, v>, unit vectors u of the cap satisfy

    h(u) = <G s, u> + 2 Σ_j max(0, −s_j <g_j, u>)
         <= ‖G s‖ + 2 Σ_j max(0, ‖g_j‖ sin R − \|<g_j, v>\| cos R / ‖v‖),

and the last sum is zero for small caps around z: no flip of one sign lengthens the longest z, hence
\|<z, g_j>\| >= ‖g_j‖², so that z is far from all these hyperplanes. If all members on the boundary
have nearly the same length, n columns need about n^(r−1) caps, the number of vertices of Z, and a
gap of ε needs about ε^((1−r)/2) caps.
"""

import math

import numpy as np

from ..floats import UNIT, Array
from .branch import Nodes, worst_open

# with more dimensions, too many caps are needed to improve on the relaxation
MOST_DIMENSIONS = 9
# Relative rounding error of a few operations on 2r numbers. Cosines near _WIDEST lose one more
# digit; caps with smaller cosines get no bound.
_ROUNDING = 1e-12
_WIDEST = 0.1
_CLOSED = 1e-11  # relative excess over the longest vertex at which a bound is good enough
_FLAT = 1e-13  # share of the sum of lengths: coordinates that add less are left out
_SMALL = 4.0  # caps below this multiple of the mean angle to a hyperplane meet few hyperplanes
_CHUNK = 2**17  # most numbers in one array
_OVERHEAD = 40  # fixed cost of a box, as a number of columns


def longest_by_caps(G: Array, x: Array, work: int) -> tuple[Array, float] | None:
    """Return signs with ``‖G signs‖ >= ‖G x‖``, and a proven bound on ``‖G x‖²`` over the cube.

    The cube is [−1, 1]^n, and the signs are a vertex of it.

    Return None in too many dimensions.

    Args:
        G: shape (k, n), with columns other than zero.
        x: shape (n,), within the cube.
        work: number of multiplications allowed.

    >>> G = np.array([[1.0, 1.0, 0.0], [0.0, 0.5, 1.0], [0.0, 0.0, -0.5]])
    >>> x, bound = longest_by_caps(G, np.array([1.0, -1.0, 1.0]), 10**6)
    >>> (x * x[0]).tolist(), bool(bound < 6.5 * (1 + 1e-10))
    ([1.0, 1.0, 1.0], True)
    """
    k, n = G.shape
    total = float(np.linalg.norm(G, axis=0).sum())
    axes, _, _ = np.linalg.svd(G, full_matrices=False)
    turned = axes.T @ G
    # entry i: an upper bound on the length that the coordinates i, i + 1, … add
    beyond = np.sqrt(np.square(turned[::-1]).cumsum(axis=0))[::-1].sum(axis=1)
    r = int(np.count_nonzero(beyond > _FLAT * total))
    if r > MOST_DIMENSIONS:
        return None
    # ‖G x‖ is at most ‖axes‖ ‖turned x‖ plus three terms: the coordinates left out, the part of G
    # outside the axes, and rounding in every product and sum of <g_j, v> and G s
    stretch = math.sqrt(1 + float(np.linalg.norm(axes.T @ axes - np.eye(len(turned)))))
    slack = float(np.append(beyond, 0.0)[r] + np.linalg.norm(G - axes @ turned, axis=0).sum())
    search = _Search(turned[:r], x, slack + 8 * (k + n) * UNIT * total)
    root = (np.eye(r), 1 - np.eye(r), np.full(r, np.inf))
    most = work // (2 * r * (n + _OVERHEAD))
    bound = worst_open(root, search.halved, lambda: search.closed, most)
    return search.x, (stretch * bound) ** 2 * (1 + _ROUNDING)


class _Search:
    """A search over directions: boxes on the surface of a cube, and the longest vertex found."""

    # a box: a middle, half sides (zero along the normal of its face), and a bound on the lengths of
    # members in its directions. Coordinates are exact multiples of 2^-44: no hyperplane meets the
    # caps of smaller boxes, up to an error below ``_CLOSED``.
    def __init__(self, G: Array, x: Array, slack: float) -> None:
        self.G, self.x, self.slack = G, x, slack
        self.lengths = np.linalg.norm(G, axis=0)
        self.longest = float(np.linalg.norm(G @ x))
        self.average = float(np.square(self.lengths).sum() / self.lengths.sum())

    @property
    def closed(self) -> float:
        """The largest bound of a box that need not be divided further."""
        return self.longest * (1 + _CLOSED) + 2 * self.slack

    def halved(self, boxes: Nodes) -> Nodes:
        """Return the two halves of every box, cut across the side that spans the widest angle."""
        middles, halves, bounds = boxes
        squares = np.square(middles)
        sides = np.square(halves) * (1 - squares / squares.sum(axis=1, keepdims=True))
        cut = np.arange(len(middles)), sides.argmax(axis=1)
        shift = np.zeros_like(middles)
        shift[cut] = halves[cut] / 2
        middles = np.concatenate([middles + shift, middles - shift])
        halves = np.concatenate([halves - shift, halves - shift])
        rows = max(1, _CHUNK // self.G.shape[1])
        own = [
            self._bounds(middles[i : i + rows], halves[i : i + rows])
            for i in range(0, len(middles), rows)
        ]
        return middles, halves, np.minimum(np.concatenate(own), np.tile(bounds, 2))

    def _bounds(self, middles: Array, halves: Array) -> Array:
        lengths, cosines, sines = _caps(middles, halves)
        heights = middles @ self.G
        sizes = np.abs(heights)
        tops = sizes.sum(axis=1) / lengths
        self._vertices(heights[[int(tops.argmax())]])
        wide = cosines < _WIDEST
        bounds = (tops + self.slack) / np.where(wide, 1.0, cosines) * (1 + _ROUNDING)
        bounds[wide] = np.inf
        small = (bounds > self.closed) & (sines * self.longest < _SMALL * self.average)
        if small.any():
            ends = self._vertices(heights[small])
            inside = (cosines / lengths)[small, None] * sizes[small]
            beyond = np.maximum(sines[small, None] * self.lengths - inside, 0.0).sum(axis=1)
            cells = (ends + 2 * beyond) * (1 + _ROUNDING) + self.slack
            bounds[small] = np.minimum(bounds[small], cells)
        return bounds

    def _vertices(self, heights: Array) -> Array:
        """Return the length of the vertex with the signs of each row, and store the longest."""
        signs = np.where(heights < 0, -1.0, 1.0)
        lengths = np.linalg.norm(signs @ self.G.T, axis=1)
        best = int(lengths.argmax())
        if lengths[best] > self.longest:
            self.longest, self.x = float(lengths[best]), signs[best]
        return lengths


def _caps(middles: Array, halves: Array) -> tuple[Array, Array, Array]:
    """Return lengths of the boxes' middles, and cosines and sines of the angles of their caps."""
    # A cap, directions around the middle a, contains the box. All corners a + δ have the same ‖δ‖²,
    # and e = <a, δ> >= −Σ |a_i δ_i|. The angle grows with e up to e = −‖δ‖², then shrinks.
    squares, reach = np.square(middles).sum(axis=1), np.square(halves).sum(axis=1)
    e = -np.minimum(np.abs(middles * halves).sum(axis=1), reach)
    corners = squares * (squares + 2 * e + reach)  # |a|² |a + δ|²
    cosines = (squares + e) / np.sqrt(corners)
    return np.sqrt(squares), cosines, np.sqrt((squares * reach - np.square(e)) / corners)
