"""The relation in which a record is replaced by one with equal public attributes."""

from dataclasses import dataclass
from typing import final

from domains.tables.tables import AbstractTables

from ..errors import ParameterError


@final
@dataclass(frozen=True)
class ReplaceWithin:
    """The relation of data sets that differ in one record, but not in its public attributes.

    The number of records with each combination of public attributes is published exactly, so the
    public attributes of a record are not protected at all.

    The relation is the policy graph that joins records with equal public attributes. A residual is
    the part of a table that no smaller table has. Residuals of public attributes alone are
    published exactly.

    Attributes:
        public: sorted positions of the public attributes.

    Source: He, Machanavajjhala & Ding (2014), "Blowfish Privacy"; on invariants, Dharangutte, Gao,
    Gong & Yu (2023), "Integer Subspace Differential Privacy".
    """

    # for marginals the optimum has a closed form; for products of other queries the same residuals
    # are used. Let records x, y agree on the public attributes. The squared difference of their
    # measurements is the sum of a_T q_T(x, y) over attribute sets T. Here a_T, the product of the
    # squared lengths of the columns of public attributes, is largest where these columns are
    # longest, and q_T >= 0 depends on the other attributes. So the worst case depends on which of
    # the other attributes differ

    public: tuple[int, ...]

    def __post_init__(self) -> None:
        if (
            not self.public
            or any(type(i) is not int or i < 0 for i in self.public)
            or list(self.public) != sorted(set(self.public))
        ):
            raise ParameterError(
                "ReplaceWithin: expected sorted positions of one attribute or more, got "
                f"{self.public!r:.50}"
            )

    def check(self, function: str, domain: object) -> None:
        """Raise ParameterError unless the domain is a set of tables that has all public attributes.

        Errors name ``function``.
        """
        if not isinstance(domain, AbstractTables) or self.public[-1] >= len(domain.sizes):
            raise ParameterError(
                f"{function}: expected tables with the public attributes, got "
                f"{type(domain).__name__}; hint: a policy graph that joins points which agree on "
                'them, with graph.graph["components"] = "public"'
            )

    def __str__(self) -> str:
        return f"replace by records that agree on attributes {', '.join(map(str, self.public))}"

    __repr__ = __str__


def public_of(relation: object) -> tuple[int, ...]:
    """Return the positions of the attributes in which neighbouring records are always equal."""
    return relation.public if isinstance(relation, ReplaceWithin) else ()
