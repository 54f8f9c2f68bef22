"""Polytopes by vertices, by halfspaces, or by the cuts of a graph, with exact oracles."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, final

import numpy as np
import scipy
from numpy.typing import ArrayLike

from ..checks import numbers
from ..domain import AbstractDomain, AbstractPolytope, QuadraticMax
from ..errors import DomainTooLargeError, InvalidDomainError
from ..floats import Array
from ..oracles.coefficients import coefficients
from ..oracles.image import ConvexImage

if TYPE_CHECKING:
    import networkx

_DIFFERENCES = 4000  # largest number of pairs of vertices that a difference body lists
_OFFSETS = 2**12  # largest number of vertices for which a polytope is also given as a linear image
_CUT_ENTRIES = 2**24  # largest number of numbers in the vertices of a cut polytope: 128 MB


@final
@dataclass(frozen=True, eq=False)
class Polytope(AbstractPolytope):
    """The convex hull of N points of R^d.

    Unlike a :class:`FiniteSet`, a polytope contains everything between the points, up to rounding.
    The optimal noise is the same for both (Nikolov & Tang 2023, Theorem 20). Points inside the hull
    of the other points are kept.

    Args:
        vertices: shape (N, d), N >= 1, d >= 1, finite; copied to read-only float64.

    Raises:
        InvalidDomainError: not two-dimensional, empty, NaN or infinite.

    >>> K = Polytope([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    >>> K.contains([0.5, 0.5]), K.contains([2.0, 2.0])
    (True, False)
    >>> K.max_quadratic(np.eye(2)).value
    4.0
    """

    _vertices: Array

    def __init__(self, vertices: "ArrayLike") -> None:
        array = numbers("Polytope", "vertices", vertices)
        if array.ndim != 2 or 0 in array.shape:
            raise InvalidDomainError(
                f"Polytope: expected vertices of shape (N, d) with N, d >= 1, got {array.shape}; "
                "hint: one vertex per row; Polytope.from_halfspaces(A, b) for inequalities"
            )
        object.__setattr__(self, "_vertices", array)

    @classmethod
    def from_halfspaces(cls, A: "ArrayLike", b: "ArrayLike") -> Self:
        """Return the polytope ``{x : A x <= b}``; its vertices are computed.

        The vertices are found in exact arithmetic (double description: Motzkin et al. 1953; Fukuda
        & Prodon 1996), so none is missed, and each coordinate is then rounded once. Numbers are
        taken exactly as stored: write an equality as two inequalities with exactly opposite
        numbers. The set ``0.1 + 0.2 <= x <= 0.3`` is empty.

        Args:
            A: shape (m, d), finite.
            b: shape (m,), finite.

        Raises:
            InvalidDomainError: wrong shape, NaN, infinity; no x satisfies the inequalities, or the
                set is unbounded.
            DomainTooLargeError: at some step there are more than several thousand rays or vertices.

        >>> Polytope.from_halfspaces(
        ...     [[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]], [0.0, 0.0, 1.0]
        ... ).vertices
        array([[0., 0.],
               [0., 1.],
               [1., 0.]])
        """
        from ..oracles.vertices import enumerate_vertices

        normals, bounds = numbers("from_halfspaces", "A", A), numbers("from_halfspaces", "b", b)
        if normals.ndim != 2 or normals.shape[1] == 0 or bounds.shape != normals.shape[:1]:
            raise InvalidDomainError(
                f"from_halfspaces: expected A of shape (m, d) with d >= 1 and b of shape (m,), "
                f"got {normals.shape} and {bounds.shape}; hint: leave infinite bounds out"
            )
        return cls(enumerate_vertices(normals, bounds))

    @classmethod
    def cuts(cls, graph: "networkx.Graph") -> Self:
        """Return the cut polytope of a graph (Deza & Laurent 1997, "Geometry of Cuts and Metrics").

        Every set S of nodes gives one vertex, with one coordinate per edge in the order of
        ``graph.edges``. The coordinate is 1 if the edge joins S with its complement, and 0
        otherwise. There are 2^(nodes − components) vertices.

        Args:
            graph: an undirected networkx graph with at least one edge, without self-loops or
                parallel edges.

        Raises:
            InvalidDomainError: another kind of graph.
            DomainTooLargeError: more than 2^24 numbers.

        >>> import networkx
        >>> Polytope.cuts(networkx.complete_graph(3)).vertices
        array([[0., 0., 0.],
               [1., 0., 1.],
               [0., 1., 1.],
               [1., 1., 0.]])
        """
        import networkx

        if not isinstance(graph, networkx.Graph) or graph.is_directed():
            raise InvalidDomainError(
                f"cuts: expected an undirected networkx graph, got {type(graph).__name__}; hint: "
                "graph.to_undirected()"
            )
        edges = [(u, v) for u, v in graph.edges()]
        if not edges:
            raise InvalidDomainError("cuts: expected at least one edge, got none")
        if any(u == v for u, v in edges):
            raise InvalidDomainError(
                "cuts: expected no self-loops, which no cut contains; hint: remove them"
            )
        if len({frozenset(edge) for edge in edges}) < len(edges):
            raise InvalidDomainError(
                "cuts: expected no parallel edges; hint: networkx.Graph(graph) merges them"
            )
        # fix the side of one node per component: exchanging the two sides gives the same cut
        free = [node for part in networkx.connected_components(graph) for node in list(part)[1:]]
        place = {node: j for j, node in enumerate(sorted(free, key=list(graph).index))}
        entries = len(edges) << len(free)
        if entries > _CUT_ENTRIES:
            raise DomainTooLargeError(
                f"cuts: 2^{len(free)} cuts × {len(edges)} edges need {entries * 8 / 1e9:.3g} GB, "
                f"more than {_CUT_ENTRIES * 8 / 1e9:.2g}; hint: a smaller graph, or product(...) "
                "of its biconnected components"
            )
        codes = np.arange(2 ** len(free))

        def side(node: object) -> np.ndarray:
            return codes >> place[node] & 1 if node in place else np.zeros_like(codes)

        return cls(np.column_stack([side(u) ^ side(v) for u, v in edges]))

    @property
    def vertices(self) -> Array:
        return self._vertices

    @property
    def dim(self) -> int:
        return self._vertices.shape[1]

    @property
    def is_symmetric(self) -> bool:
        forward = np.unique(self._vertices + 0.0, axis=0)  # adding 0.0 turns -0.0 into 0.0
        return bool(np.array_equal(forward, np.unique(-self._vertices + 0.0, axis=0)))

    def _center(self) -> Array | None:
        opposite = self._opposite()
        return None if opposite is None else (opposite[0][0] / 2 + opposite[1][0] / 2)

    def _opposite(self) -> tuple[Array, Array] | None:
        """Return the vertices and their mirror images in the exact center; None without center."""
        points = np.unique(self._vertices + 0.0, axis=0)
        mirrored = points[::-1]  # reflection reverses the lexicographic order
        with np.errstate(over="ignore", invalid="ignore"):
            sums = points + mirrored
            parts = sums - points  # rounding errors of the sums (Knuth 1969, TwoSum)
            lost = (points - (sums - parts)) + (mirrored - parts)
        exact = np.isfinite(sums).all() and not lost.any() and (sums == sums[0]).all()
        return (points, mirrored) if exact else None

    def _difference(self) -> AbstractDomain:
        opposite = self._opposite()
        if opposite is not None:
            return Polytope(opposite[0] - opposite[1])
        points = np.unique(self._vertices + 0.0, axis=0)
        if len(points) ** 2 <= _DIFFERENCES:
            return Polytope(
                np.unique((points[:, None] - points).reshape(-1, self.dim) + 0.0, axis=0)
            )
        from ..algebra.differences import DifferenceBody  # imported here, as it imports this class

        return DifferenceBody(self)

    def _apart(self) -> tuple[AbstractDomain, Array]:
        return Polytope(self._vertices - self._vertices[0]), self._vertices[0].copy()

    def _drift(self, shift: Array) -> float:
        return 0.0

    def _near(self, X: Array) -> Array:
        """Return a member near each row of X: a weighted mean of the vertices."""
        middle = self._vertices.mean(axis=0)
        moved = self._vertices - middle
        size = float(np.abs(moved).max()) or 1.0
        rows, targets = (np.column_stack([Y, np.full(len(Y), size)]) for Y in (moved, X - middle))
        weights = coefficients(
            targets, rows, lambda c: np.maximum(c, 0.0), lambda y: scipy.optimize.nnls(rows.T, y)[0]
        )
        return (weights / weights.sum(axis=1, keepdims=True)) @ self._vertices

    def _numbers(self) -> int:
        return max(self.dim, len(self._vertices))

    def _image(self) -> ConvexImage | None:
        if len(self._vertices) > _OFFSETS:
            return None
        return ConvexImage(np.zeros((self.dim, 0)), (), self._vertices)

    def _support_point(self, theta: Array) -> Array:
        return self._vertices[np.argmax(self._vertices @ theta)].copy()

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        moved = self._vertices - center
        values = np.einsum("ij,ij->i", moved @ form, moved)
        best = int(np.argmax(values))
        return QuadraticMax(self._vertices[best].copy(), float(values[best]), float(values[best]))

    def __repr__(self) -> str:
        return f"Polytope({len(self._vertices)} vertices in R^{self.dim})"
