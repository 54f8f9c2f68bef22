"""A project folder: schema, plan and ledger, in the files that the command line uses too."""

import contextlib
import itertools
import os
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from ..errors import OutputError, ParameterError, SchemaError
from ..files.disk import MALFORMED, read_json
from ..privacy.ledger import Ledger
from ..tables.schema.planned import load_options, load_plan
from ..tables.schema.schema import Schema, stated_toml
from ..tables.schema.workload import load_workload
from .schema_file import SchemaFile

SCHEMA, LEDGER, RELEASES, SCRIPTS = "schema.toml", "project.ledger", "releases", "scripts"
STREAMS = "streams"
RECORDS = ("release.json", "stream.json")
TABLES = (".csv", ".tsv", ".gz", ".xz", ".zst", ".zip", ".parquet", ".xlsx", ".sav", ".dta")
TABLES = (*TABLES, ".sas7bdat")
NO_COLUMNS = "There are no columns yet."
_MOST_FILES = 500  # largest number of files to choose from
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@final
@dataclass(frozen=True)
class Project:
    """The project: a folder named when the server starts; no file outside it is read or written."""

    folder: Path
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    @property
    def schema(self) -> Path:
        """The path of the schema file, which also states the requested tables and the plan."""
        return self.folder / SCHEMA

    @property
    def ledger(self) -> Path:
        """The path of the ledger, which records the charges of all releases and streams."""
        return self.folder / LEDGER

    def inside(self, name: str) -> Path:
        """Return the path of the file ``name`` in the project's folder.

        Raises:
            ParameterError: the path leads out of the folder, perhaps by a link.
        """
        path = (self.folder / name).resolve()
        if not path.is_relative_to(self.folder):
            raise ParameterError("app: expected a file in the folder named at the start")
        return path

    def tables(self) -> list[str]:
        """Return the paths, relative to the folder, of files that may hold rows of data."""
        written = RELEASES, STREAMS, SCRIPTS  # many files, which are no rows
        return self._listed(lambda name: Path(name).suffix.lower() in TABLES, written)

    def other_schemas(self) -> list[str]:
        """Return the paths of other schema files and of published folders below the folder."""
        files = self._listed(lambda name: name in RECORDS or name.endswith(".toml"))
        found = (Path(x).parent.as_posix() if Path(x).name in RECORDS else x for x in files)
        return [x for x in found if x not in (".", SCHEMA)]

    def _listed(self, is_wanted: Callable[[str], bool], apart: Collection[str] = ()) -> list[str]:
        """Return relative paths of wanted files; skip published folders and folders ``apart``."""
        found = []
        for place, folders, files in os.walk(self.folder):
            own = Path(place)
            top = own == self.folder
            published = not top and any(record in files for record in RECORDS)
            skipped = {*folders} if published else {*apart} if top else set[str]()
            folders[:] = [x for x in sorted(folders) if x[0] != "." and x not in skipped]
            for name in sorted(files):
                path = own / name
                if name[0] != "." and is_wanted(name) and self._is_inside(path):
                    found.append(path.relative_to(self.folder).as_posix())
            if len(found) >= _MOST_FILES:
                break
        return found[:_MOST_FILES]

    def _is_inside(self, path: Path) -> bool:
        return path.resolve().is_relative_to(self.folder)

    def published(self) -> list[str]:
        """Return the names of the complete releases in the folder, newest last."""
        return self._with(f"{RELEASES}/*/release.json")

    def streams(self) -> list[str]:
        """Return the names of the started streams in the folder, newest last."""
        return self._with(f"{STREAMS}/*/stream.json")

    def _with(self, record: str) -> list[str]:
        """Return the names of folders with a file that matches ``record``, the newest file last."""
        own = [path for path in self.folder.glob(record) if self._is_inside(path)]
        return [path.parent.name for path in sorted(own, key=lambda p: p.stat().st_mtime_ns)]

    def read(self) -> SchemaFile:
        """Return the schema file, split into parts; without a file, a SchemaFile without parts."""
        try:
            return SchemaFile.of(self.schema.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return SchemaFile()
        except (OSError, UnicodeDecodeError) as error:
            raise OutputError(f"app: cannot read {SCHEMA} ({type(error).__name__})") from None

    def change(self, edit: Callable[[SchemaFile], SchemaFile]) -> None:
        """Replace the schema file by the result of ``edit``, if that is valid.

        Raises:
            GaussNoiseError: the result would not be valid; the file is unchanged.
        """
        with self._lock:
            text = edit(self.read()).text
            with self._beside() as scratch:
                scratch.write_text(text, encoding="utf-8")
                try:
                    check(scratch)
                except SchemaError as error:
                    raise SchemaError(str(error).replace(str(scratch), SCHEMA)) from None
                os.replace(scratch, self.schema)

    def take_columns(self, name: str) -> None:
        """Take the columns of ``name``, another schema file or a published folder.

        See :meth:`SchemaFile.taking`.

        Raises:
            GaussNoiseError: ``name`` has no columns, or its columns do not fit what the schema file
                asks for.
        """
        other = self._columns_of(name)
        self.change(lambda file: file.taking(other))

    def _columns_of(self, name: str) -> SchemaFile:
        """Return the schema file ``name``, or the schema in the record of the folder ``name``."""
        path = self.inside(name)
        records = [self.inside(f"{name}/{x}") for x in RECORDS if (path / x).is_file()]
        try:
            text = (
                read_json(records[0])["plan"]["schema"]
                if records
                else path.read_text(encoding="utf-8")
            )
            Schema.loads(text)
        except SchemaError as error:
            raise SchemaError(f"{name}: {error}") from None
        except (OSError, *MALFORMED) as error:
            raise OutputError(
                f"app: {name}: expected a schema file, or a published release or stream "
                f"({type(error).__name__})"
            ) from None
        return SchemaFile.of(text)

    def replace_schema(self, draft: Path, table: str) -> None:
        """Replace the schema file by the file ``draft``, which was made from the rows of ``table``.

        Columns that the user has confirmed or left out stay: see :meth:`SchemaFile.keeping`.
        """
        with self._lock:
            text = SchemaFile.of(draft.read_text(encoding="utf-8")).keeping(self.read())
            plan = (_stated(self.schema) if self.schema.exists() else {}) | {"table": table}
            stated = text.stating("plan", stated_toml(plan=plan))
            draft.write_text(stated.text, encoding="utf-8")
            check(draft)
            draft.chmod(0o600)  # a draft is as confidential as the rows
            os.replace(draft, self.schema)

    @contextlib.contextmanager
    def _beside(self) -> Iterator[Path]:
        """Yield the path of a new file that only its owner can read; remove it after the block."""
        scratch = self.folder / f".{SCHEMA}.{os.getpid()}.{threading.get_ident()}"
        try:
            os.close(os.open(scratch, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600))
            yield scratch
        except OSError as error:
            raise OutputError(f"app: cannot write {SCHEMA} ({type(error).__name__})") from None
        finally:
            scratch.unlink(missing_ok=True)

    def state(self, **options: object) -> None:
        """Set options in the ``[plan]`` table; the value None removes an option."""
        self._state("plan", _stated, options)

    def state_stream(self, **options: object) -> None:
        """Set options in the ``[stream]`` table; the value None removes an option."""
        self._state("stream", lambda path: load_options(path, "stream"), options)

    def state_release(self, **options: object) -> None:
        """Set options in the ``[release]`` table; the value None removes an option."""
        self._state("release", lambda path: load_options(path, "release"), options)

    def state_file(self, stated: Mapping[str, str | int]) -> None:
        """Replace the ``[file]`` table, which says how data files are written.

        Values in ``stated`` that are empty are left out.
        """
        kept = {name: value for name, value in stated.items() if value}
        self.change(lambda file: file.stating("file", stated_toml(file=kept)))

    def state_about(self, **lines: str) -> None:
        """Set lines of the ``[about]`` table, which describes the data; remove empty lines."""
        stated = {name: line.strip() or None for name, line in lines.items()}
        self._state("about", lambda path: {**Schema.load(path).about.stated}, stated)

    def _state(
        self,
        table: str,
        read: Callable[[Path], dict[str, object]],
        options: Mapping[str, object],
    ) -> None:
        def edit(file: SchemaFile) -> SchemaFile:
            stated: dict[str, Any] = {**read(self.schema), **options}
            kept = {name: value for name, value in stated.items() if value is not None}
            return file.stating(table, stated_toml(**{table: kept}))

        self.change(edit)

    def check_confirmed(self, so: str) -> None:
        """Raise SchemaError if there are no columns, or if they are not confirmed as public.

        ``so`` is the end of the message about columns that are not confirmed. It says what cannot
        be done.
        """
        if not self.schema.exists():
            raise SchemaError(NO_COLUMNS)
        if Schema.load(self.schema).is_draft:
            raise SchemaError(
                "The columns were read off the data, and are not confirmed as public knowledge: "
                f"{so}."
            )

    def budget(self) -> Ledger | None:
        """Return the opened ledger of the project; None if the project has no ledger yet."""
        return Ledger.open(self.ledger) if self.ledger.exists() else None


def free_name(what: str, known: Collection[str]) -> str:
    """Return the first of the names ``what-1``, ``what-2`` … that is not in ``known``."""
    return next(name for k in itertools.count(1) if (name := f"{what}-{k}") not in known)


def check_name(what: str, name: str) -> None:
    """Raise ParameterError unless a name has letters, digits, - and _ alone.

    ``what`` says in the message what the name is for, such as "stream".
    """
    if not _NAME.fullmatch(name):
        raise ParameterError(
            f"Name of the {what}: expected letters, digits, - and _ alone, like {what}-1."
        )


def check(path: Path) -> None:
    """Raise SchemaError unless attributes, requested tables and plan of a schema file are valid."""
    Schema.load(path)
    load_workload(path)
    load_plan(path)


def _stated(path: Path) -> dict[str, object]:
    """Return the ``[plan]`` table of a schema file, with paths relative to the file's folder."""
    stated = load_plan(path)
    if "table" in stated:
        files = [os.path.relpath(file, path.parent) for file in stated["table"]]
        stated["table"] = files[0] if len(files) == 1 else files
    return stated
