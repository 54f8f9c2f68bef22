"""Base classes of results that are saved as one JSON file."""

import abc
import json
import os
from pathlib import Path
from typing import Any, ClassVar, Self

from .disk import MOST_RECORD, read_json, reading, save_text


class AbstractSaved(abc.ABC):
    """A result, such as a certificate, that can be saved as a JSON file."""

    _format: ClassVar[str]

    @abc.abstractmethod
    def _record(self) -> dict[str, object]:
        """Return {attribute: JSON value} for all attributes of the result."""

    def to_json(self) -> str:
        """Return the result as JSON text."""
        return json.dumps({"format": self._format} | self._record(), indent=2)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`to_json` to a new file; an interrupted write leaves no file.

        Raises:
            OutputError: the file exists, or cannot be written.
        """
        save_text(path, self.to_json())


class AbstractLoaded(AbstractSaved):
    """A result that can be saved as a JSON file and read again."""

    _most_bytes: ClassVar[int] = MOST_RECORD

    @classmethod
    @abc.abstractmethod
    def _restored(cls, record: dict[str, Any]) -> Self:
        """Return the result from {attribute: JSON value}, or raise an error of any type."""

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the result that :meth:`save` wrote to a file.

        Raises:
            OutputError: the file cannot be read.
            CertificateError: the file does not hold such a result.
        """
        with reading(path, f"{cls.__name__}.save"):
            record = read_json(Path(path), cls._most_bytes)
            if record["format"] != cls._format:
                raise ValueError("another format")
            return cls._restored(record)
