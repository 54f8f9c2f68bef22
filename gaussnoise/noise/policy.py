"""Policy graphs: an edge joins two values of a record that must be indistinguishable."""

import warnings
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from domains.floats import Array

from ..errors import ParameterError, PolicyWarning

Integers = NDArray[np.intp]


@final
@dataclass(frozen=True, eq=False)
class PolicyGraph:
    """The relation of data sets that differ in one record, if an edge joins its two values.

    This is Blowfish privacy. Values at graph distance k are protected at k²ρ. Values in different
    components are not protected: the number of records in each component is published exactly. A
    networkx graph with several components is refused, unless it declares them public. A
    ``PolicyGraph`` with several components is not refused.

    Attributes:
        edges: shape (E, 2), row indices into the domain's points, each pair sorted.
        components: shape (N,), the label of every point's connected component.

    Source: He, Machanavajjhala & Ding (2014), "Blowfish Privacy".

    >>> import networkx
    >>> edges = networkx.path_graph(3)  # 0 - 1 - 2: rows of the points
    >>> noise = gn.optimal_noise(gn.FiniteSet(np.eye(3)), neighbors=edges)
    >>> noise.neighbors.edges.tolist()
    [[0, 1], [1, 2]]
    """

    edges: Integers
    components: Integers

    def __post_init__(self) -> None:
        for name in ("edges", "components"):
            copied = np.array(getattr(self, name), dtype=np.intp)
            copied.flags.writeable = False
            object.__setattr__(self, name, copied)

    @classmethod
    def from_networkx(cls, graph: Any, points: Array, function: str) -> "PolicyGraph":
        """Return the policy of a networkx graph whose nodes are row indices of ``points``.

        Raise ParameterError if the graph has several components, unless it declares them public.
        """
        count = len(points)
        if graph.is_directed():
            raise ParameterError(
                f"{function}: expected an undirected policy graph; hint: graph.to_undirected()"
            )
        integers = (int, np.integer)
        for v in graph.nodes:
            if not isinstance(v, integers) or isinstance(v, bool) or not 0 <= v < count:
                raise ParameterError(
                    f"{function}: expected a policy graph whose nodes are row indices "
                    f"0..{count - 1}, got "
                    f"node {v!r}; hint: networkx.relabel_nodes(graph, {{label: row}})"
                )
        pairs = np.array(
            [sorted((int(u), int(v))) for u, v in graph.edges() if u != v], dtype=np.intp
        ).reshape(-1, 2)
        policy = cls.from_edges(pairs, points)
        if policy.parts > 1 and graph.graph.get("components") != "public":
            raise ParameterError(
                f"{function}: {policy.unprotected}; hint: connect it, or set "
                'graph.graph["components"] = "public" if that is known anyway'
            )
        return policy

    @classmethod
    def from_edges(cls, edges: "ArrayLike", points: Array) -> "PolicyGraph":
        """Return the policy with the given pairs of row indices as edges.

        Equal points belong to one component.
        """
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        count = len(points)
        edges = np.asarray(edges)
        if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
            raise ParameterError(
                f"PolicyGraph: expected integer edges of shape (E, 2), got {edges.shape}"
            )
        if len(edges) and not (0 <= edges.min() and edges.max() < count):
            raise ParameterError(f"PolicyGraph: expected edges between row indices 0..{count - 1}")
        edges = np.unique(np.sort(edges, axis=1), axis=0)
        edges = edges[edges[:, 0] < edges[:, 1]]
        values = np.unique(points + 0.0, axis=0, return_inverse=True)[1].reshape(-1)
        ends = values[edges]
        joined = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(count, count))
        labels = connected_components(joined, directed=False)[1][values]
        return cls(edges, np.unique(labels, return_inverse=True)[1].reshape(-1))

    @property
    def parts(self) -> int:
        """The number of connected components."""
        return int(self.components.max()) + 1

    @property
    def unprotected(self) -> str:
        """A sentence that says what a policy of several components does not protect."""
        return (
            f"the policy graph has {self.parts} components on {len(self.components)} points "
            "(points without edges are "
            "components of their own), and which one a record is in gets no protection at all"
        )

    def warn(self, function: str, stacklevel: int) -> None:
        """Warn with PolicyWarning if the graph has several components."""
        if self.parts > 1:
            warnings.warn(
                f"{function}: {self.unprotected}", PolicyWarning, stacklevel=stacklevel + 1
            )

    def origins(self) -> Integers:
        """Return the index of the first point in each point's component, shape (N,)."""
        first = np.unique(self.components, return_index=True)[1]
        return first[self.components]

    def __str__(self) -> str:
        return f"policy graph with {len(self.edges)} edges on {len(self.components)} points"

    __repr__ = __str__
