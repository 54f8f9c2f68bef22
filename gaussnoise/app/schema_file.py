"""The parts of a schema file: one is exchanged, and the others keep their text and comments."""

import ast
import itertools
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

from ..tables.schema.schema import Attribute, Schema

_HEADER = re.compile(r"\[\[(workload|impossible)\]\]|\[(attributes\.|file\]|about\]|plan\])")
_LEFT_OUT = re.compile(r"# left out: column ('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"): (.*)")
_INSTEAD = "; if it is something else:"
_WARNING = "# DRAFT, read off the data"
_DRAFT = re.compile(r"^draft\s*=\s*true[^\n]*\n\n?", re.MULTILINE)


@final
@dataclass(frozen=True)
class Part:
    """A table of a schema file with the comment before it; or a comment that stands alone.

    Attributes:
        table: the name of the table; empty for the head of the file and for comments.
        name: the attribute, or the column that is left out.
        text: all lines.
    """

    table: str
    name: str
    text: str

    @property
    def comment(self) -> str:
        """The comment before the table, without its marks."""
        lines = itertools.takewhile(lambda line: line.startswith("#"), self.text.splitlines())
        return " ".join(line.lstrip("# ") for line in lines)


@final
@dataclass(frozen=True)
class SchemaFile:
    """The text of a schema file, in parts."""

    parts: tuple[Part, ...] = ()

    @classmethod
    def of(cls, text: str) -> "SchemaFile":
        """Return the parts of a text."""
        parts, waiting = [Part("", "", "")], ""  # waiting: comments that may belong to a table

        def extend(more: str) -> None:
            parts[-1] = replace(parts[-1], text=parts[-1].text + more)

        for line in text.splitlines(keepends=True):
            if line.startswith("#"):
                waiting += line
            elif found := _HEADER.match(line):
                table = (found[1] or found[2]).rstrip(".]")
                name = next(iter(tomllib.loads(line)[table])) if table == "attributes" else ""
                if name and (table, name) == (parts[-1].table, parts[-1].name):  # its groups
                    extend(waiting + line)
                else:
                    parts.append(Part(table, name, waiting + line))
                waiting = ""
            elif waiting and not line.strip():
                parts.append(_alone(waiting + line))
                waiting = ""
            else:
                extend(waiting + line)
                waiting = ""
        return cls((*parts, *([_alone(waiting)] if waiting else [])))

    @property
    def text(self) -> str:
        """All parts together."""
        return "".join(part.text for part in self.parts)

    def reasons(self) -> dict[str, str]:
        """Return the comment of every attribute that has one: in a draft, it is unconfirmed."""
        attributes = (part for part in self.parts if part.table == "attributes")
        return {part.name: part.comment for part in attributes if part.comment}

    def left_out(self) -> dict[str, str]:
        """Return the reason why each column that is left out is no attribute."""
        alone = [(p.name, _LEFT_OUT.match(p.text)) for p in self.parts if not p.table and p.name]
        return {name: found[2].removesuffix(_INSTEAD) for name, found in alone if found}

    def instead(self, name: str) -> Attribute | None:
        """Return the attribute that a column which is left out could be."""
        for part in self.parts:
            if not part.table and part.name == name:
                lines = [line.removeprefix("# ") for line in part.text.splitlines()[1:]]
                return Schema.loads("\n".join(lines)).attributes[0] if any(lines) else None
        return None

    def stating(self, table: str, texts: Sequence[str]) -> "SchemaFile":
        """Return the file with these texts as all its tables of one name."""
        kept = [part for part in self.parts if part.table != table]
        return SchemaFile((*kept, *(Part(table, "", _apart(text)) for text in texts))).spaced()

    def with_attribute(self, attribute: Attribute, reason: str = "") -> "SchemaFile":
        """Return the file with this attribute, in its place or as the last one.

        With a reason, it stays marked as read off the data.
        """
        said = "".join(f"# {line}\n" for line in [reason] if line)
        new = Part("attributes", attribute.name, _apart(said + Schema([attribute]).to_toml()))
        places = [k for k, part in enumerate(self.parts) if part.table == "attributes"]
        own = [k for k in places if self.parts[k].name == attribute.name]
        gone = {k for k, part in enumerate(self.parts) if part.name == attribute.name}
        at = own[0] if own else (places[-1] + 1 if places else len(self.parts))
        before = [part for k, part in enumerate(self.parts[:at]) if k not in gone]
        after = [part for k, part in enumerate(self.parts[at:], at) if k not in gone]
        return SchemaFile((*before, new, *after)).spaced()

    def confirmed(self, name: str) -> "SchemaFile":
        """Return the file without the comment of an attribute: it is public knowledge."""
        parts = [
            replace(part, text=part.text[part.text.index("[attributes") :])
            if (part.table, part.name) == ("attributes", name)
            else part
            for part in self.parts
        ]
        return SchemaFile(tuple(parts))

    def without(self, attribute: Attribute, reason: str) -> "SchemaFile":
        """Return the file in which an attribute is a column that is left out."""
        toml = Schema([_without_groups(attribute)]).to_toml().splitlines()
        lines = [f"left out: column {attribute.name!r}: {reason}{_INSTEAD}", *toml]
        comment = "".join(f"# {line}\n" for line in lines)
        kept = [p for p in self.parts if (p.table, p.name) != ("attributes", attribute.name)]
        return SchemaFile((*kept, _alone(_apart(comment)))).spaced()

    def no_draft(self) -> "SchemaFile":
        """Return the file without the line that forbids releases, and the words before it."""
        parts = [p if p.table else replace(p, text=_DRAFT.sub("", p.text)) for p in self.parts]
        return SchemaFile(tuple(p for p in parts if not p.text.startswith(_WARNING)))

    def spaced(self) -> "SchemaFile":
        """Return the file with an empty line after every part but the last."""
        filled = [part for part in self.parts if part.text]
        last = len(filled) - 1
        return SchemaFile(
            tuple(
                part if k == last else replace(part, text=_apart(part.text))
                for k, part in enumerate(filled)
            )
        )


def _without_groups(attribute: Attribute) -> Attribute:
    """Return the attribute in lines that can all stand in a comment: without groups."""
    if not attribute.groups:
        return attribute
    return Attribute(
        attribute.name,
        attribute.categories,
        edges=attribute.edges,
        other=attribute.other,
        missing=attribute.missing,
    )


def _apart(text: str) -> str:
    return text.rstrip("\n") + "\n\n"


def _alone(text: str) -> Part:
    """Return a comment that stands alone, with the column that it is about, if any."""
    found = _LEFT_OUT.match(text)
    return Part("", ast.literal_eval(found[1]) if found else "", text)
