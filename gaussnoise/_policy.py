"""Policy graphs: which values of a record are to be indistinguishable."""

import warnings
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from .errors import ParameterError, PolicyWarning

Integers = NDArray[np.intp]


@final
@dataclass(frozen=True, eq=False)
class PolicyGraph:
    """Neighbouring datasets differ in one record, whose two values are joined by an edge (Blowfish privacy).

    Values at graph distance k are protected at k²ρ; values in different components not at all.

    Attributes:
        edges: shape (E, 2), row indices into the domain's points, each pair sorted.
        components: shape (N,), the label of every point's connected component.

    Source: He, Machanavajjhala & Ding (2014), "Blowfish Privacy".
    """

    edges: Integers
    components: Integers

    def __post_init__(self) -> None:
        for name in ("edges", "components"):
            copied = np.array(getattr(self, name), dtype=np.intp)
            copied.flags.writeable = False
            object.__setattr__(self, name, copied)

    @classmethod
    def from_networkx(cls, graph: Any, count: int, function: str) -> "PolicyGraph":
        """The policy of a networkx graph on the nodes 0..count−1; warns or raises if it is not connected."""
        nodes = list(graph.nodes)
        if not all(isinstance(v, int | np.integer) and 0 <= v < count for v in nodes):
            raise ParameterError(
                f"{function}: expected a policy graph whose nodes are row indices 0..{count - 1} of the points; "
                "hint: networkx.convert_node_labels_to_integers(graph)"
            )
        pairs = np.array([sorted((int(u), int(v))) for u, v in graph.edges() if u != v], dtype=np.intp).reshape(-1, 2)
        policy = cls.from_edges(np.unique(pairs, axis=0), count)
        parts = int(policy.components.max()) + 1
        if parts > 1:
            unprotected = (
                f"{function}: the policy graph has {parts} components on {count} points, and which one a record is in "
                "gets no protection at all"
            )
            if graph.graph.get("components") != "public":
                raise ParameterError(
                    f'{unprotected}; hint: connect it, or set graph.graph["components"] = "public" if that is known'
                )
            warnings.warn(unprotected, PolicyWarning, stacklevel=4)
        return policy

    @classmethod
    def from_edges(cls, edges: Integers, count: int) -> "PolicyGraph":
        """From sorted, distinct pairs."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        ones = np.ones(len(edges))
        matrix = coo_array((ones, (edges[:, 0], edges[:, 1])), shape=(count, count))
        return cls(edges, connected_components(matrix, directed=False)[1])

    def origins(self) -> Integers:
        """For every point, the first one of its component, shape (N,)."""
        first = np.unique(self.components, return_index=True)[1]
        return first[self.components]

    def __str__(self) -> str:
        return f"policy graph with {len(self.edges)} edges on {len(self.components)} points"

    __repr__ = __str__
