"""The shell's options of a plan, and their conversion to tables, accuracy targets and a budget."""

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from ..errors import ParameterError
from ..tables import Budgets, Dialect, Plan, Schema, Target, budgets
from ..tables.planning.stated import BUDGET, Asked
from ..tables.planning.targets import goals_of
from ..tables.schema.entries import Entry
from ..tables.schema.planned import load_plan
from ..tables.schema.workload import as_entry, load_workload, tables_of
from .console import ERR, check_new, save_picture
from .options import (
    DateFormat,
    Decimal,
    Delimiter,
    Delta,
    Encoding,
    Epsilon,
    Marginals,
    PerPersonOption,
    PerRecordOption,
    Person,
    Public,
    Quote,
    Rho,
    SchemaFile,
    Skip,
    Source,
    StatedNeighbors,
    StatedNorm,
    StatedRows,
    Targets,
    Thousands,
    Title,
    WeightColumn,
    Within,
    scales_of,
)
from .patience import patience


class OptionGroup:
    """A group of options of several commands, as one argument of a command's function."""

    def settled(self) -> Self:
        """Return the options, with values from files for options that are not given."""
        return self


@dataclass(frozen=True)
class FileOptions(OptionGroup):
    """The options that say how a data file is written, in the order of the help text."""

    delimiter: Delimiter = None
    decimal: Decimal = None
    thousands: Thousands = None
    encoding: Encoding = None
    quote: Quote = None
    skip: Skip = None

    def dialect(self, base: Dialect) -> Dialect:
        """Return the dialect of a file from the given options, and from ``base`` for the others."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        if given.get("delimiter") in ("tab", "\\t"):
            given["delimiter"] = "\t"
        return replace(base, **given)


@dataclass(frozen=True)
class DatedFileOptions(FileOptions):
    """The options that say how a data file is written, with the format of dates."""

    date_format: DateFormat = None


@dataclass(frozen=True)
class Options(OptionGroup):
    """The options of a plan, in the order of the help text."""

    schema: SchemaFile
    marginals: Marginals = None
    rho: Rho = None
    epsilon: Epsilon = None
    delta: Delta = None
    per_record: PerRecordOption = None
    neighbors: StatedNeighbors = None
    public: Public = None
    p: StatedNorm = None
    within: Within = None
    target: Targets = None
    rows_per_person: StatedRows = None
    person: Person = None
    per_person: PerPersonOption = None
    weight: WeightColumn = None
    title: Title = None
    source: Source = None

    def settled(self) -> Self:
        """Return the options, with values from the schema file's ``[plan]`` for options not given.

        A budget, ``--within`` or ``--target`` in the shell replaces the whole budget of ``[plan]``.
        """
        own = (self.within, self.target or None, *(getattr(self, name) for name in BUDGET))
        return filled(self, BUDGET if any(given is not None for given in own) else ())


def filled(options: Any, without: Iterable[str] = (), more: Mapping[str, Any] = {}) -> Any:
    """Return options as plain values, with values from ``[plan]`` for options not given.

    Args:
        options: the options of a command, with a schema file.
        without: names in ``[plan]`` that are ignored.
        more: {name: value} from another table of the schema file, which overrides ``[plan]``.

    Raises:
        ParameterError: ``[plan]`` has a name that is no option of the command. Such a name is not
            ignored, since it may ask for more privacy.
    """
    stated = load_plan(options.schema)
    for name in ("table", "expected_rows"):  # they do not change the plan
        stated.pop(name, None)
    for name in stated:
        if not hasattr(options, name):
            raise ParameterError(
                f"{options.schema}: [plan]: {name} is stated there, which this command cannot take "
                "into account; hint: another schema file without it"
            )
    given = {name: value for name, value in vars(options).items() if value is not None}
    read = {name: _READERS[name](given[name]) for name in _READERS if name in given}
    kept = {name: value for name, value in stated.items() if name not in without}
    return replace(options, **{**kept, **more, **given, **read})


def rows_of(table: list[Path] | None, schema: Path) -> list[Path]:
    """Return the paths of the files with rows: ``table`` or, if None, those in ``[plan]``."""
    found = table or load_plan(schema).get("table")
    if not found:
        raise ParameterError(
            f'expected TABLE, the file of the rows, or table = "FILE" in [plan] of {schema}'
        )
    return found


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with separate options in place of each ``OptionGroup`` argument.

    Typer reads the signature of the returned function; the function itself builds the groups.
    """
    own = inspect.signature(command).parameters
    kinds: dict[str, type[OptionGroup]] = {
        name: p.annotation
        for name, p in own.items()
        if isinstance(p.annotation, type) and issubclass(p.annotation, OptionGroup)
    }
    fields = {name: inspect.signature(kind).parameters for name, kind in kinds.items()}

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, kind in kinds.items():
            given[name] = kind(**{field: given.pop(field) for field in fields[name]}).settled()
        command(**given)

    listed = [each for name, p in own.items() for each in fields.get(name, {name: p}).values()]
    required = [p for p in listed if p.default is p.empty]
    listed = [*required, *(p for p in listed if p.default is not p.empty)]
    run.__signature__ = inspect.Signature(listed)  # pyright: ignore[reportAttributeAccessIssue] (typer reads it)
    run.__annotations__ = {p.name: p.annotation for p in listed}
    return run


def asked_for(options: Options, written: FileOptions = FileOptions()) -> Asked:
    """Return the tables and accuracy targets that the options and the schema file ask for.

    Options take precedence. ``written`` are the options that say how a data file is written.
    """
    path, marginals, stated = options.schema, options.marginals, vars(options)
    within, target = options.within, options.target
    schema = Schema.load(path)
    schema = replace(schema, file=written.dialect(schema.file))
    targets: dict[frozenset[str], Target] = dict(map(target_of, target or []))
    if len(targets) < len(target or []):
        raise ParameterError("--target: expected one for each marginal, got two for one")
    if within is not None and targets:
        raise ParameterError("expected --within for all marginals, or --target for each, not both")
    if marginals:
        aims = within if within is not None else targets or None
        return Asked(schema, workload_of(marginals, schema.names), aims, stated)
    wanted = tables_of(schema, load_workload(path))
    if not wanted:
        raise ParameterError(
            f"expected --marginals (-m), or [[workload]] tables in {path} that say what to ask"
        )
    goals = goals_of(wanted)
    entries = [one.entry for one in wanted]
    if within is not None or all(goal is None for goal in goals):
        aims = within if within is not None else targets or None
        return Asked(schema, entries, aims, stated)
    if targets:  # targets of the command line take precedence
        own = {
            frozenset(entry): goal
            for entry, goal in zip(entries, goals, strict=True)
            if goal is not None
        }
        return Asked(schema, entries, own | targets, stated)
    return Asked(schema, entries, goals, stated)


def planned(asked: Asked) -> Plan:
    """Compute the plan of a request, with a progress bar on a terminal if it takes time."""
    if asked.targets is None and not asked.has_budget:
        raise ParameterError(
            "budget: expected either --rho, or --epsilon with --delta, or --within, or --target"
        )
    with patience(ERR, "planning"):
        return asked.plan()


def target_of(text: str) -> tuple[frozenset[str], Target]:
    """Return the attribute names and the accuracy target in a text like ``sex,age=80@0.99``.

    Here, the half-width of the intervals is 80 rows, and their level is 0.99. Without ``@``, the
    level is 0.95.
    """
    names, equals, numbers = text.rpartition("=")
    rows, at, level = numbers.partition("@")
    try:
        goal = (float(rows), float(level) if at else 0.95)
    except ValueError:
        goal = None
    if not equals or goal is None:
        raise ParameterError(
            f"--target: expected NAMES=ROWS or NAMES=ROWS@LEVEL, like age=80@0.99, got {text!r}"
        )
    return frozenset(parts_of(names)), Target(*goal)


def parts_of(text: str) -> list[str]:
    """Return the parts of a text between commas; a part in "…" may have commas, and "" for a quote.

    >>> parts_of('age:prefix, "pay, net", "pay, gross":ranges')
    ['age:prefix', 'pay, net', 'pay, gross:ranges']
    """
    parts = []
    for part in map(str.strip, _PARTS.findall(text)):
        quoted = _QUOTED.fullmatch(part)
        parts.append(part if quoted is None else quoted[1].replace('""', '"') + (quoted[2] or ""))
    return list(filter(None, parts))


def joined(names: Iterable[str]) -> str:
    """Return names separated by commas, so that :func:`parts_of` splits them again.

    >>> joined(["age", "pay, net"])
    'age,"pay, net"'
    """
    quoted = (
        '"' + name.replace('"', '""') + '"' if re.search('[,"]', name) else name for name in names
    )
    return ",".join(quoted)


_PARTS = re.compile(r'(?:"(?:[^"]|"")*"|[^,"]|")+')
_QUOTED = re.compile(r'"((?:[^"]|"")*)"\s*(:.*)?', re.DOTALL)


def budgets_of(asked: Asked, options: Options, plot: Path | None) -> Budgets:
    """Return a table of the errors and risks of several budgets; save its picture to ``plot``."""
    check_new("plan", plot)
    names = "neighbors", "p", "rows_per_person", "delta"
    wanted = {name: value for name in names if (value := getattr(options, name)) is not None}
    with patience(ERR, "planning"):
        table = budgets(asked.schema, asked.workload, **wanted)
    if plot is not None:
        save_picture("plan", table.plot(), plot)
    return table


def per_person_of(text: str | None) -> Any:
    """Return the value of ``--per-person``: the functions that reduce a person's numbers to one.

    The value is one name, like "mean", for all columns, or {column: name}. Without a text, it is
    None.
    """
    pairs = [part.rpartition("=") for part in parts_of(text or "")]
    if [equals for _, equals, _ in pairs] == [""]:
        return pairs[0][2]
    return {name: how for name, _, how in pairs} or None


def weight_of(text: str) -> dict[str, Any]:
    """Return {"column": name, "most": largest weight} for a text ``COLUMN:MOST``."""
    column, _, most = text.rpartition(":")
    try:
        return {"column": column, "most": float(most)}
    except ValueError:
        raise ParameterError(
            f"--weight: expected COLUMN:MOST, a column and the largest weight that counts in full, "
            f"got {text!r:.80}"
        ) from None


# options that are given as text, with functions from the text to the value that [plan] has
_READERS: dict[str, Callable[[Any], Any]] = {
    "per_record": scales_of,
    "public": parts_of,
    "per_person": per_person_of,
    "weight": weight_of,
}


def table_of(paths: list[Path]) -> str | list[str]:
    """Return the path of a single file, or the list of the paths of several, as text."""
    return str(paths[0]) if len(paths) == 1 else [str(path) for path in paths]


def workload_of(marginals: list[str], known: tuple[str, ...]) -> int | list[Entry]:
    """Return the value of ``--marginals``: k for all k-way marginals, or a list of tables.

    ``known`` are the names of all attributes.
    """
    if len(marginals) == 1 and marginals[0].isdigit():
        return int(marginals[0])
    return [entry_of(listed, known) for listed in marginals]


def entry_of(listed: str, known: tuple[str, ...]) -> Entry:
    """Return one requested table from text such as ``sex,age:prefix``.

    The text has names of attributes. A name may be followed by a colon and a base: the name of a
    query matrix.
    """
    return as_entry([listed] if listed in known else parts_of(listed), known)
