"""Branch and bound on arrays of nodes: the nodes with the largest bounds are branched first."""

from collections.abc import Callable

import numpy as np

from ..floats import Array

# Arrays with one entry per node; the last array has upper bounds on the members of each node.
Nodes = tuple[np.ndarray, ...]

_FEWEST = 1000  # at least this many nodes are branched at a time, if as many are open
_SHARE = 4  # if more nodes are open, one in this many is branched at a time


def worst_open(
    root: Nodes, children: Callable[[Nodes], Nodes], closed: Callable[[], float], most: int
) -> float:
    """Return an upper bound on the values of all members of the node ``root``.

    The bound is ``closed()`` if at most ``most`` branchings prove it, and larger otherwise.

    Args:
        root: one node, or several.
        children: returns the parts of the given nodes, with their own bounds.
        closed: returns a number >= 0, which may grow; nodes with bounds up to it are not searched.
        most: number of nodes that may be branched.
    """
    pool = tuple(array.copy() for array in root)
    while True:
        bounds: Array = pool[-1]
        is_open = ~(bounds <= closed())  # NaN leaves a node open
        nodes = np.flatnonzero(is_open)
        if not len(nodes):
            return closed()
        count = min(max(_FEWEST, len(nodes) // _SHARE), len(nodes), most)
        if count <= 0:
            return float(bounds[nodes].max())
        worst = nodes[np.argpartition(-bounds[nodes], count - 1)[:count]]
        new = children(tuple(array.take(worst, axis=0) for array in pool))
        kept = np.flatnonzero(~(new[-1] <= closed()))
        # children overwrite the entries of their parents and of closed nodes
        places = np.concatenate([worst, np.flatnonzero(~is_open)])
        if (missing := len(kept) - len(places)) > 0:
            more = max(missing, len(bounds))
            places = np.append(places, len(bounds) + np.arange(missing))
            pool = tuple(
                np.concatenate([array, np.zeros((more, *array.shape[1:]), array.dtype)])
                for array in pool
            )
        pool[-1][worst] = 0.0
        for array, values in zip(pool, new, strict=True):
            array[places[: len(kept)]] = values.take(kept, axis=0)
        most -= count
