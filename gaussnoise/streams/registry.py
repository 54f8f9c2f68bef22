"""The registry of a stream: for each person, how many ticks counted rows, and the last of them.

The registry is PRIVATE, as confidential as the rows. It holds keyed hashes instead of names, but
the key is in the same file, so a reader of the file can find a person.

Formal guarantees:
    * A person's rows of a tick are counted only if earlier rows were counted in fewer than
      ``reports`` ticks, and the last of these is at least ``apart`` ticks before. So every person
      is counted only in ticks that the plan allows, for any rows.
    * Whether a tick counts a person depends only on that person's rows of this and earlier ticks.
      So adding or removing a person, with rows in any ticks, changes no other person's counted
      rows.
    * The registry is part of the tick's commit: its file is on disk before the tick is committed,
      the commit holds the file's sha256, and the next tick accepts no other file. So an older copy
      is refused. If an interrupted tick was committed, it is not counted again; if not, its file is
      written again.

The file of each tick replaces the one before. It has a record of 20 bytes for each person, and
records are sorted by hash. Drawing a tick reads the old file and writes the new one in blocks.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, StreamError
from ..files.disk import aside, file_digest, opened, remove
from ..tables.counting.admission import DIGEST, KEY_BYTES, AbstractAdmission, Digests
from .ticks import Ticks

_FORMAT = "gaussnoise.registry/1"
_WARNING = "PRIVATE: keep this file as confidential as the rows; never publish it"
_HEADER = 1024  # bytes before the first record
_RECORD = np.dtype([("digest", DIGEST), ("ticks", "<u2"), ("last", "<u2")])
_AT_ONCE = 2**20  # most records of a block
Records = NDArray[np.void]


@final
@dataclass(frozen=True, eq=False)
class Registry:
    """The persons whom ticks have counted, with the number and the last of each person's ticks.

    Attributes:
        key: the key of the hashes.
        kind: the type of the values that name persons; None before the first tick.
        records: one record for each person, sorted by hash; in memory or on disk.
    """

    key: bytes
    kind: str | None
    records: Records

    @classmethod
    def new(cls) -> "Registry":
        """Return a registry without persons, with a new random key for the hashes."""
        return cls(secrets.token_bytes(KEY_BYTES), None, np.zeros(0, dtype=_RECORD))

    def blocks(self) -> Iterator[Records]:
        """Yield the records of all persons, sorted by hash, in blocks of bounded size.

        There is at least one block, which may be empty.
        """
        for start in range(0, max(len(self.records), 1), _AT_ONCE):
            yield np.array(self.records[start : start + _AT_ONCE])

    def beside(self, digests: Digests) -> Iterator[tuple[Records, Digests]]:
        """Yield (block of records, the ``digests`` in the block's range of hashes), for all blocks.

        ``digests`` are sorted hashes of persons. A record is about one person: a hash, the number
        of ticks that counted rows, and the last of these ticks.
        """
        begin = 0
        for start, block in enumerate(self.blocks(), 1):
            following = self.records["digest"][start * _AT_ONCE : start * _AT_ONCE + 1]
            end = int(np.searchsorted(digests, following[0])) if len(following) else len(digests)
            yield block, digests[begin:end]
            begin = end


@final
@dataclass(eq=False)
class Turn(AbstractAdmission):
    """The rule that decides which persons one tick counts; it remembers whom it admitted.

    Attributes:
        registry: the registry after the tick before.
        over: the ticks, with their limits ``reports`` and ``apart``.
        tick: the number of the tick.
        kind: the type of the values that name persons in this tick; None until it is known.
        counted: the hashes of admitted persons, sorted and distinct.
    """

    registry: Registry
    over: Ticks
    tick: int
    kind: str | None = None
    counted: Digests = field(default_factory=lambda: np.zeros(0, dtype=DIGEST))

    @property
    def key(self) -> bytes:
        """The secret key with which persons' names are hashed."""
        return self.registry.key

    def check_kind(self, kind: str) -> None:
        """Raise DataError if persons' ids have another type than at earlier ticks.

        The hashes of ids of another type differ, so the registry would recognise no person.
        """
        if self.registry.kind not in (None, kind):
            raise DataError(
                f"persons: expected {self.registry.kind}, as at the first tick, got {kind}: the "
                "registry would not recognise them; hint: a table whose column of persons has the "
                "same type"
            )
        self.kind = kind

    def admitted(self, digests: Digests) -> NDArray[np.bool_]:
        """Return a mask of the persons, given by their hashes, whose rows this tick may count.

        These persons are added to ``counted``.
        """
        order = np.argsort(digests, kind="stable")
        ordered, found = digests[order], np.empty(len(digests), dtype=bool)
        blocks = self.registry.beside(ordered)
        allowed = np.concatenate([self._allowed(block, own) for block, own in blocks])
        found[order] = allowed
        self.counted = _distinct([self.counted, ordered[allowed]])
        return found

    def _allowed(self, block: Records, digests: Digests) -> NDArray[np.bool_]:
        known, places = _places(block, digests)
        own = block[places[known]]
        waited = self.tick - own["last"].astype(np.int64) >= self.over.apart
        allowed = np.ones(len(digests), dtype=bool)
        allowed[known] = waited & (own["ticks"] < self.over.most_reports)
        return allowed

    def blocks(self) -> Iterator[Records]:
        """Yield the records of the registry of persons after this tick, in blocks.

        The records are in the order of their hashes.
        """
        for block, digests in self.registry.beside(self.counted):
            known, places = _places(block, digests)
            block["ticks"][places[known]] += 1
            block["last"][places[known]] = self.tick
            new = np.zeros(int((~known).sum()), dtype=_RECORD)
            new["digest"], new["ticks"], new["last"] = digests[~known], 1, self.tick
            yield np.insert(block, places[~known], new)

    def after(self) -> Registry:
        """Return the registry of persons after this tick, with all records in memory."""
        return Registry(self.key, self.kind, np.concatenate([*self.blocks()]))


def _distinct(parts: Sequence[Digests]) -> Digests:
    """Return the hashes of several sorted arrays as one sorted array, each hash once."""
    every = np.concatenate(parts)
    every.sort(kind="stable")  # quick where parts are sorted
    first = np.ones(len(every), dtype=bool)
    first[1:] = every[1:] != every[:-1]
    return every[first]


def _places(block: Records, digests: Digests) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Return a mask of the hashes that ``block`` has, and each hash's position in its order."""
    own = np.ascontiguousarray(block["digest"])
    places = np.searchsorted(own, digests)
    known = np.zeros(len(digests), dtype=bool)
    inside = places < len(own)
    known[inside] = own[places[inside]] == digests[inside]
    return known, places


# The files.


def begun(private: Path) -> None:
    """Write the file of an empty registry of persons for a new stream.

    A file from an interrupted start of the stream is replaced.
    """
    forgotten(private)
    registry = Registry.new()
    _write(_file(private, 0), registry, registry.blocks())


def turn_of(private: Path, over: Ticks, before: Sequence[str | None]) -> Turn | None:
    """Return the rule that decides which persons the next tick counts.

    Return None if the stream does not enforce limits on participation.

    Args:
        private: the private folder of the stream.
        over: the ticks.
        before: the sha256 of the registry's file after each tick so far.

    Raises:
        StreamError: the file is missing, or is not the one that the last tick committed.
    """
    if not over.enforced:
        return None
    file = _file(private, len(before))
    try:
        with opened(file) as stream:
            header = json.loads(stream.read(_HEADER))
        key, kind = bytes.fromhex(header["key"]), header["persons"]
        sound = header["format"] == _FORMAT and len(key) == KEY_BYTES
        records: Any = np.zeros(0, dtype=_RECORD)
        if os.path.getsize(file) > _HEADER:
            records = np.memmap(file, dtype=_RECORD, mode="r", offset=_HEADER)
        sound = sound and (before[-1] == file_digest(file) if before else not len(records))
    except FileNotFoundError:
        raise StreamError(
            f"stream: {file}, the registry of persons, is missing: it was deleted, or {private} is "
            "an older copy; hint: put back what was there; without it the stream can only be read"
        ) from None
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise StreamError(f"stream: {file} is damaged ({type(error).__name__})") from None
    if not sound:
        raise StreamError(
            f"stream: {file} is not the registry of persons that the last tick was committed with; "
            "hint: put back what was there; a stream cannot go on from an older copy"
        )
    return Turn(Registry(key, kind, records), over, len(before) + 1)


def written(private: Path, turn: Turn | None) -> dict[str, str]:
    """Write the file of the registry of persons after a tick.

    Return {"registry": sha256 of the file}; without a registry (``turn`` is None), return {}.
    """
    if turn is None:
        return {}
    file = _file(private, turn.tick)
    registry = Registry(turn.key, turn.kind, turn.registry.records)
    return {"registry": _write(file, registry, turn.blocks())}


def tidied(private: Path, over: Ticks, done: int) -> None:
    """Delete the files of the registry of persons, except the one after tick number ``done``.

    After the last tick of the stream, delete all.
    """
    for file in _files(private):
        if done == over.n or file != _file(private, done):
            remove(file)


def forgotten(private: Path) -> None:
    """Delete all files of the registry of persons, with the key of its hashes.

    Raises:
        OSError: a file cannot be deleted.
    """
    for file in _files(private):
        file.unlink()


def _file(private: Path, tick: int) -> Path:
    return private / f"registry-{tick:04d}"


def _files(private: Path) -> list[Path]:
    return list(private.glob("registry-*"))


def _write(file: Path, registry: Registry, blocks: Iterator[Records]) -> str:
    """Write a registry to a file in one step, readable by its owner only; return the sha256."""
    header = {
        "format": _FORMAT,
        "warning": _WARNING,
        "persons": registry.kind,
        "key": registry.key.hex(),
    }
    text = json.dumps(header).encode().ljust(_HEADER - 1) + b"\n"
    found = hashlib.sha256(text)
    with aside(file, "stream") as scratch:
        handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "wb") as stream:
            stream.write(text)
            for block in blocks:
                stream.write(content := block.tobytes())
                found.update(content)
    return found.hexdigest()
