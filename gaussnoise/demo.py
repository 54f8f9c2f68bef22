"""The demo table: a 1974 survey on marriage and affairs (Fair 1978), from statsmodels."""

from typing import TYPE_CHECKING, Any

from .errors import NotAvailableError
from .tables import Attribute, Schema

if TYPE_CHECKING:
    import pyarrow as pa

_WORK = (
    "student",
    "unskilled or farming",
    "white-collar",
    "skilled, teacher, artist",
    "managerial",
    "professional",
)

# {attribute: (column of the source, meaning of its codes, from the data set's own notes)}
_LABELS: dict[str, tuple[str, dict[float, str]]] = {
    "marriage": (
        "rate_marriage",
        dict(zip(range(1, 6), ("very poor", "poor", "fair", "good", "very good"), strict=True)),
    ),
    "years_married": (
        "yrs_married",
        {y: f"about {y:g}" for y in (0.5, 2.5, 6.0, 9.0, 13.0, 16.5, 23.0)},
    ),
    "children": ("children", {0: "0", 1: "1", 2: "2", 3: "3", 4: "4", 5.5: "5 or more"}),
    "religious": (
        "religious",
        dict(zip(range(1, 5), ("not", "mildly", "fairly", "strongly"), strict=True)),
    ),
    "education": (
        "educ",
        {
            9: "grade school",
            12: "high school",
            14: "some college",
            16: "college graduate",
            17: "some graduate school",
            20: "advanced degree",
        },
    ),
    "occupation": ("occupation", dict(zip(range(1, 7), _WORK, strict=True))),
    "husband_occupation": ("occupation_husb", dict(zip(range(1, 7), _WORK, strict=True))),
}

# ages are midpoints of classes; the first and last class are open
_AGE_EDGES = (float("-inf"), 20, 25, 30, 35, 40, float("inf"))


def load() -> "tuple[pa.Table, Schema]":
    """Return the demo table, a pyarrow Table of 6366 rows, and its schema.

    It has eight columns of four to seven categories, age in bins, and whether a person reports an
    affair.

    Raises:
        NotAvailableError: statsmodels is not installed.

    >>> from gaussnoise.demo import load
    >>> table, schema = load()
    >>> table.num_rows, schema.sizes
    (6366, (2, 5, 6, 7, 6, 4, 6, 6, 6))
    """
    import pyarrow as pa

    try:
        from statsmodels.datasets import fair
    except ImportError:
        raise NotAvailableError(
            "demo: needs statsmodels; hint: pip install 'gaussnoise[demo]'"
        ) from None
    source: Any = fair.load_pandas().data
    columns = {"affair": ["yes" if hours > 0 else "no" for hours in source["affairs"]]}
    attributes = [Attribute("affair", ["no", "yes"])]
    for name, (code, labels) in _LABELS.items():
        columns[name] = [labels[value] for value in source[code]]
        attributes.append(Attribute(name, labels.values()))
        if name == "marriage":
            columns["age"] = source["age"].tolist()
            attributes.append(Attribute("age", edges=_AGE_EDGES))
    return pa.table(columns), Schema(attributes)
