"""The protected unit and neighbouring relation of a release, as a value that can be compared."""

import json
import re
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import final


@final
@dataclass(frozen=True)
class Protected:
    """The protected unit and the neighbouring relation of a release.

    The costs of releases that protect equal units and relations add up.

    Attributes:
        unit: the unit in words, with the limit on counted rows, if any; the words are not compared.
        neighbors: the neighbouring relation.
        rows: the largest number of rows of a unit; None for any number.
        person: the column that says which person a row belongs to, or None.
        reports: the largest number of ticks of a stream in which a unit has rows; None for any.
        apart: the minimum separation of these ticks.
        public: the attributes that are public, in which neighbours agree.
    """

    unit: str = field(compare=False)
    neighbors: str
    _: KW_ONLY
    rows: int | None = 1
    person: str | None = None
    reports: int | None = None
    apart: int = 1
    public: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The protected unit (such as one person) and the neighbouring relation, in words."""
        same = f" of the same {', '.join(self.public)}" if self.public else ""
        return f"{self.unit} under {self.neighbors}{same}"

    @property
    def key(self) -> str:
        """A text that ledgers store and compare: equal units and relations have equal texts."""
        compared = {own.name: getattr(self, own.name) for own in fields(self) if own.compare}
        return json.dumps(compared, sort_keys=True)


def same_protected(words: str, key: str | None, other: str | Protected) -> bool:
    """Return whether an entry of a ledger protects the same unit and relation as another release.

    Args:
        words: unit and relation of the entry in words.
        key: the key of the entry; None if only words are known, as in older ledgers.
        other: the unit and relation of the other release: a value, or only words.
    """
    if isinstance(other, str):
        return _without_counted_rows(words) == _without_counted_rows(other)
    if key is not None:
        return key == other.key
    known = {_without_counted_rows(other.words)}
    if other.person is not None and other.reports is None:
        known.add(f"one person (column {other.person!r}) under {other.neighbors}")
    return _without_counted_rows(words) in known


def _without_counted_rows(words: str) -> str:
    """Return the words without the limit on counted rows, as the budget covers all rows."""
    return re.sub(r", of whom at most \d+ \w+ (is|are) counted", "", words)
