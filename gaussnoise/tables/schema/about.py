"""Lines about tables for their readers: title, source, period, publisher, contact, unit."""

from dataclasses import dataclass, fields
from typing import final

from ...errors import SchemaError
from ...text import printable

_LONGEST_LINE = 1000  # characters, so that records stay short
_LONGEST_UNIT = 60  # so that heads of columns and labels of pictures stay short


@final
@dataclass(frozen=True)
class About:
    """Lines for readers of released tables: public knowledge, never read from data.

    A schema holds these lines in ``about`` (in TOML, a table ``[about]`` with the same keys). Pages
    begin with them, and every format writes the parts for which it has a field. A ``title`` or
    ``source`` of :func:`plan` overrides that of the schema. Nothing here changes noise or privacy.

    Args:
        title: the subject of the tables.
        source: the origin of the rows.
        period: the time that the rows are about.
        publisher: who publishes the tables.
        contact: where questions can be asked.
        unit: what the tables count, in the plural, like ``households``: tables, pages and charts
            then say so in place of rows or persons.

    Raises:
        SchemaError: a part that is not one line of text of at most 1000 characters.

    >>> about = gn.About(title="Pay by sex", period="2024", publisher="Statistics Nowhere")
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"])], about=about)
    >>> print(schema.to_toml().splitlines()[:4])
    ['[about]', 'title = "Pay by sex"', 'period = "2024"', 'publisher = "Statistics Nowhere"']
    """

    title: str | None = None
    source: str | None = None
    period: str | None = None
    publisher: str | None = None
    contact: str | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        for name, said in self.stated.items():
            if not is_line(said):
                raise SchemaError(f"about: expected {name} to be {LINE}, got {said!r:.80}")
        if self.unit is not None and len(self.unit) > _LONGEST_UNIT:
            raise SchemaError(
                f"about: expected unit to be a noun of at most {_LONGEST_UNIT} characters, like "
                f"households, got {self.unit!r:.80}"
            )

    @property
    def stated(self) -> dict[str, str]:
        """The lines that are given, {name of the line: text}."""
        return {f.name: x for f in fields(self) if (x := getattr(self, f.name)) is not None}


NOTHING_SAID = About()
LINE = f"one line of at most {_LONGEST_LINE} characters"


def is_line(said: object) -> bool:
    """Return whether ``said`` is one line of text that files, terminals and pages can show."""
    return (
        isinstance(said, str)
        and 0 < len(said.strip()) <= len(said) <= _LONGEST_LINE
        and said.splitlines() == [printable(said)]
    )
