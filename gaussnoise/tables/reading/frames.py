"""Opening tables in any engine. Messages of engines are not shown, as they may quote records."""

import contextlib
import glob
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import narwhals as nw

from ...errors import DataError, NotAvailableError
from .as_read import AsRead, columns_as_read
from .csv import open_csv
from .files import dialect_of, is_csv, is_parquet, is_path, keys_of, partition_columns, table_files
from .lines import Lines
from .office import check_reader, is_office, open_office

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa
    from narwhals.typing import EagerAllowed

# frames and columns of any engine
Lazy: TypeAlias = nw.LazyFrame[Any]
Frame: TypeAlias = nw.DataFrame[Any] | Lazy
Column: TypeAlias = nw.Series[Any]
Relation: TypeAlias = "duckdb.DuckDBPyRelation"
Arrow: TypeAlias = "pa.Array | pa.ChunkedArray"
Result = TypeVar("Result")

_POLARS = (1, 2)  # older versions of polars count nanoseconds wrongly
_ASIDE = "gaussnoise-reader"  # name of the threads in which duckdb works
# what reads in these threads, and Ctrl-C interrupts
_opened: "weakref.WeakSet[duckdb.DuckDBPyConnection | Lines]" = weakref.WeakSet()


def open_table(table: object, numbers: Sequence[str] = (), dates: Sequence[str] = ()) -> Frame:
    """Return the table as a frame, in which CSV columns are text.

    ``numbers`` and ``dates`` are the columns to be read as numbers or dates. In files with another
    decimal mark or date format, the text of these columns is replaced by text with points and ISO
    8601.
    """
    return open_both(table, numbers, dates)[0]


def open_both(
    table: object, numbers: Sequence[str], dates: Sequence[str]
) -> tuple[Frame, Lines | None]:
    """Return the frame of :func:`open_table`, and the same files for arrow's faster reader.

    The second is None if arrow cannot read the files as the frame does.
    """
    if not is_path(table):
        return _frame(table), None
    rows, lines = guarded(
        "open the file", lambda: _open_files(table, numbers, dates), engine=nw.Implementation.DUCKDB
    )
    return nw.from_native(rows), lines


def check_opens(table: object) -> None:
    """Refuse a table that cannot be opened, for reasons that do not depend on rows.

    Either the argument is no table, or files are missing, unreadable, of several kinds, or have no
    reader.

    Raises:
        DataError: the table cannot be opened.
    """
    if not is_path(table):
        _frame(table)
        return
    for file in _files_of_one_kind(table):
        if is_office(file):
            check_reader(file)
        try:
            with open(file, "rb"):
                pass
        except OSError as error:
            raise DataError(f"table: cannot open {file} ({type(error).__name__})") from None


def _frame(table: object) -> Frame:
    """Return the table as a narwhals frame; raise DataError if it is no dataframe."""
    frame = native_frame(table)
    if not isinstance(frame, nw.DataFrame | nw.LazyFrame):
        raise DataError(
            "table: expected a dataframe (polars, pandas, pyarrow, duckdb, …), or the path of a "
            "CSV or Parquet file or a list of such paths, "
            f"got {type(table).__name__}"
        )
    return frame


def frame_backend(table: object) -> "EagerAllowed":
    """Return the library for dataframes of results: the table's if it is eager, else pyarrow."""
    frame = None if is_path(table) else native_frame(table)
    # objects that are no frame are refused later
    own = frame.implementation if isinstance(frame, nw.DataFrame | nw.LazyFrame) else None
    known: dict[nw.Implementation | None, EagerAllowed] = {
        nw.Implementation.PANDAS: nw.Implementation.PANDAS,
        nw.Implementation.POLARS: nw.Implementation.POLARS,
        nw.Implementation.MODIN: nw.Implementation.MODIN,
    }
    return known.get(own, "pyarrow")


def native_frame(table: object) -> object:
    """Return a dataframe of any library as a narwhals frame; return other objects unchanged."""

    def opened() -> object:
        try:
            return nw.from_native(table, pass_through=True)  # pyright: ignore[reportArgumentType, reportCallIssue]
        except nw.exceptions.DuplicateError:
            pass
        raise DataError(
            "table: expected distinct column names, got one twice; hint: rename one, also where "
            "neither is asked for"
        )

    frame = guarded("open it", opened)
    if getattr(frame, "implementation", None) == nw.Implementation.POLARS:
        _check_polars()
    return frame


def _check_polars() -> None:
    import polars as pl

    if tuple(map(int, pl.__version__.split(".")[:2])) < _POLARS:
        raise NotAvailableError(
            f"table: expected polars {'.'.join(map(str, _POLARS))} or later, got {pl.__version__}, "
            "which counts nanoseconds wrongly; hint: upgrade polars"
        )


_HINTS = {
    "ResourceInUseException": "another result of this duckdb connection is not read to its end, or "
    "another thread uses it: fetch that result first, or open a connection of its own"
}


def guarded(
    task: str,
    action: Callable[[], Result],
    hint: str = "",
    *,
    engine: nw.Implementation | None = None,
) -> Result:
    """Return ``action()``; an engine's error is replaced, since its text may quote records.

    The logs of Spark's driver may quote records too, so they are turned off meanwhile. The logs of
    executors on other machines stay on. ``engine`` is the library that does the work, if known. The
    work of duckdb is done in another thread.
    """
    try:
        with _quiet_spark():
            return _in_another_thread(action) if engine == nw.Implementation.DUCKDB else action()
    except DataError:
        raise
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 (engines raise any error; a panic of polars is no Exception)
        kind, interrupted = type(error).__name__, _interrupted(error)
    # raised outside the handler, so that not even __context__ refers to the original error
    if interrupted:
        raise KeyboardInterrupt
    withheld = "the engine's message is withheld because it may quote records"
    hint = hint or _HINTS.get(kind, "")
    raise DataError(f"table: could not {task} ({kind}); {withheld}{hint and '; hint: '}{hint}")


def _in_another_thread(action: Callable[[], Result]) -> Result:
    """Return ``action()``, run in another thread while the main thread waits for signals."""
    if threading.current_thread() is not threading.main_thread():
        return action()
    # if duckdb worked in the main thread, a signal that Python handles meanwhile might be lost,
    # or end the process
    with futures.ThreadPoolExecutor(1, _ASIDE) as thread:
        done = thread.submit(action)
        try:
            # waits end, since the system may deliver a signal to any thread
            while not futures.wait([done], timeout=1).done:
                pass
            return done.result()
        finally:
            # repeated, since an interrupt between two queries has no effect
            while not done.done():
                for reader in list(_opened):
                    reader.interrupt()
                futures.wait([done], timeout=0.1)


@contextlib.contextmanager
def _quiet_spark() -> Iterator[None]:
    """Turn off the logs of Spark in the ``with`` block, if this process has a Spark session."""
    core = sys.modules.get("pyspark.core.context") or sys.modules.get("pyspark.context")
    context = getattr(getattr(core, "SparkContext", None), "_active_spark_context", None)
    quiet = []
    if "pyspark" in sys.modules:
        with contextlib.suppress(ImportError):  # before version 4 Spark has no such logs
            from pyspark.logger import PySparkLogger

            quiet = [
                PySparkLogger.getLogger(f"{kind}QueryContextLogger")
                for kind in ("SQL", "DataFrame")
            ]
    loud = [logger for logger in quiet if not logger.disabled]
    restore = contextlib.ExitStack()
    if context is not None:
        with contextlib.suppress(Exception):
            restore.callback(_quiet_jvm(context))
    for logger in loud:
        logger.disabled = True
    try:
        yield
    except Exception as error:
        if type(error).__module__.startswith(("pyspark", "py4j")):
            with contextlib.suppress(Exception):
                _await_tasks(context)
        raise
    finally:
        for logger in loud:
            logger.disabled = False
        with contextlib.suppress(Exception):
            restore.close()


def _quiet_jvm(context: Any) -> Callable[[], None]:
    """Turn off the logs of Spark's driver, and return a function that restores them."""
    level = str(context._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel())
    # setLogLevel forgets the level below which a Spark shell hides logs
    logging = getattr(getattr(context._jvm.org.apache.spark.internal, "Logging$"), "MODULE$")
    hidden = logging.sparkShellThresholdLevel()
    context.setLogLevel("OFF")

    def restore() -> None:
        if level != "OFF":  # if it was OFF, another thread will restore it
            context.setLogLevel(level)
            getattr(logging, "sparkShellThresholdLevel_$eq")(hidden)

    return restore


def _await_tasks(context: Any) -> None:
    """Wait until Spark runs no task, for some seconds at most."""
    # stopped tasks of a failed job may still log records
    for _ in range(100):
        executors = context._jsc.sc().statusTracker().getExecutorInfos()
        if not any(executor.numRunningTasks() for executor in executors):
            return
        time.sleep(0.1)


def _interrupted(error: BaseException | None) -> bool:
    """Return whether Ctrl-C caused this error."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        # duckdb and arrow have errors of their own for Ctrl-C; other engines wrap Python's error
        if isinstance(error, KeyboardInterrupt) or type(error).__name__ in (
            "InterruptException",
            "ArrowCancelled",
        ):
            return True
        if isinstance(error, RuntimeError) and error.args == ("Query interrupted",):
            return True
        error = error.__cause__ or error.__context__
    return False


def _files_of_one_kind(table: object) -> list[str]:
    """Return the files of a table, after checking by their names that they are of one kind."""
    files = table_files(table)
    if all(map(is_parquet, files)):
        return files
    if not is_csv(files):
        strange = next((f for f in files if not (is_csv(f) or is_parquet(f))), None)
        raise DataError(
            "table: expected files of one kind, got CSV and Parquet"
            if strange is None
            else "table: expected a .csv, .tsv or .parquet file (or .csv.gz, .csv.xz, .csv.zst, "
            f".zip, .xlsx, .sav, .dta, .sas7bdat), got {strange}"
        )
    if any(map(is_office, files)) and not all(map(is_office, files)):
        raise DataError("table: expected files of one kind, got CSV and others")
    return files


def _open_files(
    table: object, numbers: Sequence[str], dates: Sequence[str]
) -> tuple[Relation, Lines | None]:
    files = _files_of_one_kind(table)
    if is_parquet(files[0]):
        return _open_parquet(files, partition_columns(table, files)), None
    if is_office(files[0]):
        return open_office(files, _connect(), numbers, dialect_of(table).skip), None
    text, lines = open_csv(files, _connect(), dialect_of(table))
    if lines is not None and _is_reader_thread():
        _opened.add(lines)
    if not (changed := changed_columns(table, numbers, dates)):
        return text, lines
    columns = (
        f"{changed[name].sql(sql(name))} AS {sql(name)}" if name in changed else sql(name)
        for name in text.columns
    )
    return text.project(", ".join(columns)), lines


def changed_columns(
    table: object, numbers: Sequence[str], dates: Sequence[str]
) -> Mapping[str, AsRead]:
    """Return {column: rule} for the columns whose text :func:`open_table` replaces by that rule."""
    if not is_csv(table) or any(map(is_office, table_files(table))):
        return {}
    return columns_as_read(dialect_of(table), numbers, dates)


def _open_parquet(files: list[str], partitions: list[str]) -> Relation:
    """Return a duckdb relation of Parquet files, and of folder names like ``year=2024``."""
    connection = _connect()
    parts = [connection.read_parquet(glob.escape(f), hive_partitioning=False) for f in files]
    if any((one.columns, one.types) != (parts[0].columns, parts[0].types) for one in parts[1:]):
        raise DataError(
            "table: expected the same columns of the same types in every Parquet file; "
            "hint: write them with one schema (integers with gaps as nullable integers)"
        )
    columns = parts[0].columns
    partitions = _only_in_folders(partitions, columns)
    if not partitions and _has_milliseconds(files):
        import pyarrow.dataset

        return connection.from_arrow(pyarrow.dataset.dataset(files, format="parquet"))
    if not partitions:
        return (
            parts[0]
            if len(files) == 1
            else connection.read_parquet([glob.escape(f) for f in files], hive_partitioning=False)
        )
    # if a column is in the files and in folder names, even above the table, duckdb uses the latter
    others = [key for key in keys_of(files[0]) if key not in partitions]
    if len(others) > len(_only_in_folders(others, columns)):
        raise DataError(
            "table: expected all columns that folder names state in the files, or none of them; "
            f"got {', '.join(map(repr, others))} in both; hint: a path from within "
            "such folders, or files without these columns"
        )
    paths = ", ".join(literal(glob.escape(f)) for f in files)
    return connection.sql(
        f"SELECT {', '.join(map(sql, [*columns, *partitions]))} FROM "
        f"read_parquet([{paths}], hive_partitioning=true, hive_types_autocast=false)"
    )


def _has_milliseconds(files: list[str]) -> bool:
    """Return whether some timestamps are in milliseconds, which duckdb reads only near 1970."""
    import pyarrow as pa
    import pyarrow.parquet

    schemas = [pyarrow.parquet.read_schema(file) for file in files]
    coarse = any(pa.types.is_timestamp(t) and t.unit == "ms" for t in schemas[0].types)
    return coarse and all(s.equals(schemas[0]) for s in schemas)


def _only_in_folders(partitions: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return the columns that only folder names state: those that the files themselves lack."""
    inside = {column.lower() for column in columns}
    return [name for name in partitions if name.lower() not in inside]


def text_columns(table: object, names: Sequence[str]) -> Sequence[str]:
    """Return the columns whose values are text because the files declare no type for them.

    These are the columns of CSV, and the partitions of folders.
    """
    if not is_path(table):
        return ()
    if is_csv(table):
        return names
    files = table_files(table)
    partitions = partition_columns(table, files)
    if not partitions:
        return ()
    own = guarded(
        "open the file",
        lambda: _connect().read_parquet(glob.escape(files[0]), hive_partitioning=False),
        engine=nw.Implementation.DUCKDB,
    )
    return _only_in_folders(partitions, own.columns)


def without_zone(table: object) -> tuple[str, ...]:
    """Return the columns of type INT96: Spark's timestamps, for which files state no time zone.

    Return () if files cannot be read: opening them raises the error.
    """
    from pyarrow import parquet

    found: dict[str, None] = {}
    with contextlib.suppress(Exception):
        for file in table_files(table) if is_path(table) and not is_csv(table) else ():
            schema = parquet.ParquetFile(file).schema
            columns = [schema.column(k) for k in range(len(schema.names))]
            found |= {c.path: None for c in columns if c.physical_type == "INT96"}
    return tuple(found)


def literal(text: str) -> str:
    """Return text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def _connect() -> "duckdb.DuckDBPyConnection":
    """Return a connection to a duckdb in memory that writes nothing to disk."""
    import duckdb

    # by default, duckdb writes to .tmp if memory is short; the optimizer applies the bounds of a
    # block of rows to NaN too, which they exclude: one row's result would depend on other rows
    connection = duckdb.connect(
        config={"temp_directory": "", "disabled_optimizers": "statistics_propagation"}
    )
    if _is_reader_thread():
        _opened.add(connection)
    return connection


def _is_reader_thread() -> bool:
    """Return whether this is a thread in which duckdb works while the main thread waits."""
    return threading.current_thread().name.startswith(_ASIDE)


def type_name(dtype: nw.dtypes.DType) -> str:
    """Return the name of a column type, without parameters, which may be data."""
    return dtype.base_type().__name__


def is_zoned(dtype: nw.dtypes.DType) -> bool:
    """Return whether values of a column type are timestamps with a time zone."""
    return isinstance(dtype, nw.Datetime) and dtype.time_zone is not None


def sql(name: str) -> str:
    """Return a column name, quoted as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def zone_hint(engine: nw.Implementation) -> str:
    """Return a hint, for errors, on how to remove time zones from timestamps in this engine."""
    named = {
        nw.Implementation.POLARS: "column.dt.replace_time_zone(None) in polars",
        nw.Implementation.PYARROW: "pyarrow.compute.local_timestamp(column) in pyarrow",
        nw.Implementation.DUCKDB: "timezone('Europe/Paris', column) in duckdb, with the zone of "
        "your records",
    }
    how = named.get(engine, "a cast to timestamps without time zone")
    if engine.is_pandas_like() or engine == nw.Implementation.DASK:
        how = "column.dt.tz_localize(None) in pandas"
    elif engine.is_spark_like():
        how = "CAST(column AS TIMESTAMP_NTZ) in Spark"
    return f"convert it to local times without a time zone, or dates, before: {how}"
