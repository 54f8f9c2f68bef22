"""A schema file in parts: one part can be replaced, and the others keep their text and comments."""

import ast
import itertools
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

from ..errors import SchemaError
from ..tables.drafts.draft import INSTEAD
from ..tables.schema.schema import Attribute, Schema

_HEADER = re.compile(
    r"\[\[(workload|impossible)\]\]|\[(attributes\.|file\]|about\]|plan\]|release\]|stream\])"
)
_LEFT_OUT = re.compile(r"# left out: column ('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"): (.*)")
_OF_COLUMNS = ("attributes", "impossible")
_WARNING = "# DRAFT, read off the data"
_DRAFT = re.compile(r"^draft\s*=\s*true[^\n]*\n\n?", re.MULTILINE)


@final
@dataclass(frozen=True)
class Part:
    """A TOML table of a schema file with the comment before it, or a separate comment.

    Attributes:
        table: the name of the TOML table; empty for the head of the file and for comments.
        name: the attribute, or the column that is left out.
        text: all lines of the part.
    """

    table: str
    name: str
    text: str

    @property
    def comment(self) -> str:
        """The comment before the TOML table, as one line without the ``#`` signs."""
        lines = itertools.takewhile(lambda line: line.startswith("#"), _lines(self.text))
        return " ".join(line.lstrip("# ") for line in lines)

    @property
    def comments_apart(self) -> bool:
        """Whether comments follow the head of an attribute, or end a part that has no name."""
        if self.table == "attributes":
            after = itertools.dropwhile(lambda line: line.startswith("#"), _lines(self.text))
            return any(line.lstrip().startswith("#") for line in after)
        last = _lines(self.text.rstrip())[-1]
        return not self.name and last.lstrip().startswith("#")


@final
@dataclass(frozen=True)
class SchemaFile:
    """The text of a schema file, split into parts: TOML tables and separate comments."""

    parts: tuple[Part, ...] = ()

    @classmethod
    def of(cls, text: str) -> "SchemaFile":
        """Return the text of a schema file, split into parts."""
        parts, waiting = [Part("", "", "")], ""  # waiting: comments that may belong to a table

        def extend(more: str) -> None:
            parts[-1] = replace(parts[-1], text=parts[-1].text + more)

        for line in re.findall(r"[^\n]*\n|[^\n]+", text):  # TOML has no other line ends
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
                parts.append(_comment_part(waiting + line))
                waiting = ""
            else:
                extend(waiting + line)
                waiting = ""
        return cls((*parts, *([_comment_part(waiting)] if waiting else [])))

    @property
    def text(self) -> str:
        """The whole text of the file."""
        return "".join(part.text for part in self.parts)

    def reasons(self) -> dict[str, str]:
        """Return {attribute: comment}; in a draft, a comment marks an unconfirmed attribute."""
        attributes = (part for part in self.parts if part.table == "attributes")
        return {part.name: part.comment for part in attributes if part.comment}

    def left_out(self) -> dict[str, str]:
        """Return {column: reason} of the columns that are left out of the schema."""
        alone = [(p.name, _LEFT_OUT.match(p.text)) for p in self.parts if not p.table and p.name]
        return {name: found[2].removesuffix(INSTEAD) for name, found in alone if found}

    def instead(self, name: str) -> Attribute | None:
        """Return the attribute that the file proposes for a left-out column, or None."""
        for part in self.parts:
            if not part.table and part.name == name:
                lines = [line.removeprefix("# ") for line in _lines(part.text)[1:]]
                return Schema.loads("\n".join(lines)).attributes[0] if any(lines) else None
        return None

    def stating(self, table: str, texts: Sequence[str]) -> "SchemaFile":
        """Return the file with ``texts`` in place of all TOML tables named ``table``."""
        kept = [part for part in self.parts if part.table != table]
        return SchemaFile(
            (*kept, *(Part(table, "", _with_empty_line(text)) for text in texts))
        ).spaced()

    def with_attribute(self, attribute: Attribute, reason: str = "") -> "SchemaFile":
        """Return the file with this attribute in place of the attribute of the same name.

        If there is no such attribute, the new one becomes the last. A ``reason`` becomes the
        comment of the attribute. This comment marks the attribute as inferred from the data and not
        confirmed, so the file becomes a draft. Without a reason, the attribute is confirmed: see
        :meth:`settled`.
        """
        said = "".join(f"# {line}\n" for line in [reason] if line)
        new = Part(
            "attributes", attribute.name, _with_empty_line(said + Schema([attribute]).to_toml())
        )
        places = [k for k, part in enumerate(self.parts) if part.table == "attributes"]
        own = [k for k in places if self.parts[k].name == attribute.name]
        gone = {k for k, part in enumerate(self.parts) if part.name == attribute.name}
        at = own[0] if own else (places[-1] + 1 if places else len(self.parts))
        before = [part for k, part in enumerate(self.parts[:at]) if k not in gone]
        after = [part for k, part in enumerate(self.parts[at:], at) if k not in gone]
        file = SchemaFile((*before, new, *after)).spaced()
        return file.settled() if not reason or file._is_draft else file._as_draft()

    def changed(self, attribute: Attribute, reason: str = "") -> "SchemaFile":
        """Return the result of :meth:`with_attribute` for an attribute that the file has.

        Raises:
            SchemaError: the file has no such attribute: another page left it out.
        """
        self._check_has(attribute)
        return self.with_attribute(attribute, reason)

    def _check_has(self, attribute: Attribute) -> None:
        if attribute.name not in self._content.get("attributes", {}):
            raise SchemaError("This page is old: reload it.")

    def confirmed(self, name: str) -> "SchemaFile":
        """Return the file without the comment of an attribute, which is now public knowledge."""
        parts = [
            replace(part, text=part.text[part.text.index("[attributes") :])
            if (part.table, part.name) == ("attributes", name)
            else part
            for part in self.parts
        ]
        return SchemaFile(tuple(parts))

    def without(self, attribute: Attribute, reason: str) -> "SchemaFile":
        """Return the file with an attribute turned into a left-out column.

        Raises:
            SchemaError: the file has no such attribute: another page left it out.
        """
        self._check_has(attribute)
        toml = Schema([_without_groups(attribute)]).to_toml().rstrip("\n").split("\n")
        lines = [f"left out: column {attribute.name!r}: {reason}{INSTEAD}", *toml]
        comment = "".join(f"# {line}\n" for line in lines)
        kept = [p for p in self.parts if (p.table, p.name) != ("attributes", attribute.name)]
        return SchemaFile((*kept, _comment_part(_with_empty_line(comment)))).spaced().settled()

    def keeping(self, before: "SchemaFile") -> "SchemaFile":
        """Return this new draft with the decisions that a person made in the file ``before``.

        Confirmed columns and left-out columns stay as in ``before``, if the new draft has them. All
        TOML tables of ``before`` stay too, except ``[file]``. If ``before`` is a draft in which it
        is in doubt what a comment marks, none of its columns counts as confirmed.
        """
        in_doubt = before._is_draft and not before._shows_marks
        decided = {
            p.name: p for p in before.parts if p.name and not (p.table and (p.comment or in_doubt))
        }
        parts = [decided.get(part.name, part) if part.name else part for part in self.parts]
        stated = [p for p in before.parts if p.table not in ("", "attributes", "file")]
        return SchemaFile((*parts, *stated)).spaced().settled()

    def taking(self, other: "SchemaFile") -> "SchemaFile":
        """Return the file with the columns and impossible combinations of the file ``other``.

        If this file has no columns, it gets all columns of ``other``, with the comments that mark
        columns as not confirmed. Otherwise, each confirmed column of ``other`` replaces the column
        of the same name, or becomes the last column. If a column is not confirmed in this file, and
        ``other`` leaves it out, it is left out.
        """
        if not any(part.table == "attributes" for part in self.parts):
            kept = [part for part in self.parts if part.table not in ("", *_OF_COLUMNS)]
            wanted = {"", *_OF_COLUMNS, "file"} - {part.table for part in kept}
            return SchemaFile((*(p for p in other.parts if p.table in wanted), *kept)).spaced()
        file, theirs, mine = self, Schema.loads(other.text), Schema.loads(self.text)
        marked = other.reasons() if theirs.is_draft else {}
        if theirs.is_draft and not other._shows_marks:  # then none of them is confirmed
            marked = dict.fromkeys(theirs.names, "")
        for attribute in theirs.attributes:
            if attribute.name not in marked:
                file = file.with_attribute(attribute)
        unconfirmed = file.reasons() if mine.is_draft else {}
        for attribute in mine.attributes:
            if (reason := other.left_out().get(attribute.name)) and attribute.name in unconfirmed:
                file = file.without(attribute, reason)
        rules = [part.text for part in other.parts if part.table == "impossible"]
        return file.stating("impossible", rules) if rules else file

    def no_draft(self) -> "SchemaFile":
        """Return the file without the line ``draft = true``, which forbids releases.

        The comment before the line is removed as well.
        """
        parts = [p if p.table else replace(p, text=_DRAFT.sub("", p.text)) for p in self.parts]
        return SchemaFile(tuple(p for p in parts if not p.text.startswith(_WARNING)))

    @property
    def _is_draft(self) -> bool:
        return self._content.get("draft") is True

    @property
    def _content(self) -> dict[str, Any]:
        """The content of the file as a mapping; empty if the file is not valid TOML."""
        try:
            return tomllib.loads(self.text)
        except (ValueError, RecursionError):
            return {}

    def _as_draft(self) -> "SchemaFile":
        return SchemaFile((Part("", "", "draft = true\n\n"), *self.parts))

    def settled(self) -> "SchemaFile":
        """Return the file, no longer as a draft if a person has confirmed all its columns.

        The file stays a draft while it is in doubt whether a comment marks a column as not
        confirmed.
        """
        is_done = self._is_draft and self._shows_marks and not self.reasons()
        return self.no_draft() if is_done else self

    @property
    def _shows_marks(self) -> bool:
        """Whether every attribute is a part of the file, and all comments near a part belong to it.

        If not, a comment that marks a column as not confirmed may be overlooked.
        """
        parts = [part for part in self.parts if part.text]
        own = [part.table == "attributes" for part in parts]
        is_near = [any(own[max(k - 1, 0) : k + 2]) for k in range(len(parts))]
        apart = (near and p.comments_apart for p, near in zip(parts, is_near, strict=True))
        names = {part.name for part in parts if part.table == "attributes"}
        stated = self._content.get("attributes", {})
        return bool(names) and names == stated.keys() and not any(apart)

    def spaced(self) -> "SchemaFile":
        """Return the file without empty parts, and with an empty line between the others."""
        filled = [part for part in self.parts if part.text]
        last = len(filled) - 1
        return SchemaFile(
            tuple(
                part if k == last else replace(part, text=_with_empty_line(part.text))
                for k, part in enumerate(filled)
            )
        )


def _without_groups(attribute: Attribute) -> Attribute:
    """Return the attribute without groups of its categories, which take several TOML tables."""
    if not attribute.groups:
        return attribute
    return Attribute(
        attribute.name,
        attribute.categories,
        edges=attribute.edges,
        names=attribute.names,
        title=attribute.title,
        measured_in=attribute.measured_in,
        other=attribute.other,
        missing=attribute.missing,
        spellings=attribute.spellings,
    )


def _lines(text: str) -> list[str]:
    """Return the lines of a TOML text without their ends, which are LF or CRLF."""
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def _with_empty_line(text: str) -> str:
    return text.rstrip("\n") + "\n\n"


def _comment_part(text: str) -> Part:
    """Return a part for a separate comment; its name is the left-out column that it describes."""
    found = _LEFT_OUT.match(text)
    return Part("", ast.literal_eval(found[1]) if found else "", text)
