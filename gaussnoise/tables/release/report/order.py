"""The order of a table's cells on a page."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...schema.schema import Attribute, Category, Schema

if TYPE_CHECKING:
    from ..answer import Answer
    from ..table import AbstractEstimates


def reading_labels(attribute: Attribute) -> list[Category]:
    """Return the labels of an attribute's categories in the order for readers."""
    labels = attribute.labels
    return [labels[k] for k in attribute.reading_order]


def reading_axes(
    table: "AbstractEstimates | Answer", schema: Schema | None
) -> list[NDArray[np.intp]]:
    """Return, for each axis of a table, the indices of its labels in the order for readers.

    Labels other than those of an attribute's categories stay in their order.
    """
    known = {} if schema is None else {own.name: own for own in schema.attributes}
    axes = list[NDArray[np.intp]]()
    for name, labels in zip(table.attributes, table.labels, strict=True):
        own = known.get(name)
        order = own.reading_order if own and own.labels == labels else range(len(labels))
        axes.append(np.array(order, int))
    return axes


def reading_places(table: "AbstractEstimates | Answer", schema: Schema | None) -> list[int]:
    """Return the indices of all cells of a table (in C order), sorted for readers."""
    axes = reading_axes(table, schema)
    every = np.arange(table.estimate.size).reshape([axis.size for axis in axes])
    return every[np.ix_(*axes)].ravel().tolist() if axes else [0]
