"""Answers that are saved as one JSON file, with a format and a record."""

import abc
import json
import os
from pathlib import Path
from typing import Any, ClassVar, Self

from .disk import MOST_RECORD, read_json, reading, save_text


class AbstractSaved(abc.ABC):
    """An answer that can be saved as a JSON file."""

    _format: ClassVar[str]

    @abc.abstractmethod
    def _record(self) -> dict[str, object]:
        """Return all attributes as JSON values."""

    def to_json(self) -> str:
        """Return the answer as JSON text."""
        return json.dumps({"format": self._format} | self._record(), indent=2)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`to_json` to a new file; an interrupted write leaves no file.

        Raises:
            OutputError: the file exists, or cannot be written.
        """
        save_text(path, self.to_json())


class AbstractLoaded(AbstractSaved):
    """An answer that can be read from its file alone."""

    _most_bytes: ClassVar[int] = MOST_RECORD

    @classmethod
    @abc.abstractmethod
    def _restored(cls, record: dict[str, Any]) -> Self:
        """Return the answer with this record; raise an error if the record has another form."""

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read an answer that :meth:`save` wrote.

        Raises:
            OutputError: the file cannot be read.
            CertificateError: the file does not hold such an answer.
        """
        with reading(path, f"{cls.__name__}.save"):
            record = read_json(Path(path), cls._most_bytes)
            if record["format"] != cls._format:
                raise ValueError("another format")
            return cls._restored(record)
