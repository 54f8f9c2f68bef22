"""The protected unit and relation as a value: costs add up where it is the same."""

import json
import re
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import final


@final
@dataclass(frozen=True)
class Protected:
    """A unit and a neighbouring relation. Equal ones protect the same, and their costs add up.

    Attributes:
        unit: the unit in words, which are not compared: they may say how much of it is counted.
        neighbors: the neighbouring relation.
        rows: the most rows of a unit; None for any number.
        person: the column that says which person a row belongs to, or None.
        reports: the most ticks of a stream in which a unit has rows; None for any number.
        apart: the least difference between the numbers of two of these ticks.
        public: the attributes in which neighbours agree.
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
        """The unit and the relation in words."""
        same = f" of the same {', '.join(self.public)}" if self.public else ""
        return f"{self.unit} under {self.neighbors}{same}"

    @property
    def key(self) -> str:
        """The text that a ledger stores and compares: equal where the values are."""
        compared = {own.name: getattr(self, own.name) for own in fields(self) if own.compare}
        return json.dumps(compared, sort_keys=True)


def same_protected(words: str, key: str | None, other: str | Protected) -> bool:
    """Return whether a ledger's entry protects the same as another release.

    Args:
        words: the words of the entry.
        key: the key of the entry; None where only words are known, as in older ledgers.
        other: what the other release protects: a value, or only words.
    """
    if isinstance(other, str):
        return _whole(words) == _whole(other)
    if key is not None:
        return key == other.key
    known = {_whole(other.words)}
    if other.person is not None and other.reports is None:
        known.add(f"one person (column {other.person!r}) under {other.neighbors}")
    return _whole(words) in known


def _whole(words: str) -> str:
    """Return the words without the number of counted rows, which a person's budget covers."""
    return re.sub(r", of whom at most \d+ \w+ (is|are) counted", "", words)
