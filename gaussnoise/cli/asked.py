"""The options of a plan in the shell, and their conversion to tables, targets and a budget."""

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ParameterError
from ..privacy.definitions import ApproxDP, zCDP
from ..privacy.guarantee import AbstractPrivacy
from ..tables import Budgets, Dialect, Plan, Schema, Target, Weight, budgets, plan
from ..tables.planning.targets import goals_of
from ..tables.schema.entries import Entry
from ..tables.schema.planned import load_plan
from ..tables.schema.workload import as_entry, load_workload
from .console import ERR, check_new, save_picture
from .options import (
    Delta,
    Epsilon,
    Marginals,
    PerPersonOption,
    PerRecordOption,
    Person,
    Public,
    Rho,
    SchemaFile,
    Source,
    StatedNeighbors,
    StatedNorm,
    StatedRows,
    Targets,
    Title,
    WeightColumn,
    Within,
    growing,
)
from .patience import patience

BUDGET = ("rho", "epsilon", "delta", "per_record")
USUAL = {"neighbors": "add-remove", "p": 2.0, "rows_per_person": 1}  # if nothing is stated
_TARGETED = ", or --within, or --target"
Written = tuple[str | None, ...]  # options that state a dialect: the arguments of dialect_of


@dataclass(frozen=True)
class Options:
    """The options of a plan, in the order of their help texts."""

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

    @property
    def has_budget(self) -> bool:
        """Whether a budget is given."""
        return any(getattr(self, name) is not None for name in BUDGET)

    def settled(self) -> "Options":
        """Return these options; those not given are taken from the schema's ``[plan]``.

        A budget, ``--within`` or ``--target`` in the shell replaces the whole budget of ``[plan]``.
        """
        has_own = self.has_budget or self.within is not None or bool(self.target)
        return filled(self, USUAL, without=BUDGET if has_own else ())

    @property
    def privacy(self) -> AbstractPrivacy:
        """The budget of these options."""
        own = privacy_of(self.rho, self.epsilon, self.delta, _TARGETED)
        return growing(own, self.per_record)

    def plan(self, asked: "Asked") -> Plan:
        """Return the plan of these options."""
        free = asked.targets is not None and not self.has_budget
        settled: dict[str, Any] = {name: getattr(self, name) for name in USUAL}
        with patience(ERR, "planning"):
            return plan(
                asked.schema,
                asked.workload,
                None if free else self.privacy,
                targets=asked.targets,
                person=self.person,
                per_person=per_person_of(self.per_person),
                weight=None if self.weight is None else weight_of(self.weight),
                public=parts_of(self.public or ""),
                title=self.title,
                source=self.source,
                **settled,
            )


def filled(options: Any, usual: Mapping[str, object], without: Iterable[str] = ()) -> Any:
    """Return options whose empty fields are taken from the schema's ``[plan]``, or from ``usual``.

    Raises:
        ParameterError: ``[plan]`` states something that is no such option. It must not be ignored,
            since it might have protected more.
    """
    stated = {
        name: _as_option(value)
        for name, value in load_plan(options.schema).items()
        if name != "table"
    }
    for name in stated:
        if not hasattr(options, name):
            raise ParameterError(
                f"{options.schema}: [plan]: {name} is stated there, which this command cannot take "
                "into account; hint: another schema file without it"
            )
    given = {
        name: value for name in (*usual, *stated) if (value := getattr(options, name)) is not None
    }
    stated = {name: value for name, value in stated.items() if name not in without}
    return replace(options, **{**usual, **stated, **given})


def _as_option(value: Any) -> Any:
    """Return a value of ``[plan]`` as the shell's option would have it."""
    match value:
        case {"column": str(column), "most": most}:
            return f"{column}:{most!r}"
        case dict() if all(isinstance(number, int | float) for number in value.values()):
            return [f"{name}={number!r}" for name, number in value.items()]
        case dict():
            return joined(f"{name}={how}" for name, how in value.items())
        case list():
            return joined(value)
    return value


def rows_of(table: list[Path] | None, schema: Path) -> list[Path]:
    """Return the files with the rows: the given ones, or those in the schema's ``[plan]``."""
    found = table or load_plan(schema).get("table")
    if not found:
        raise ParameterError(
            f'expected TABLE, the file of the rows, or table = "FILE" in [plan] of {schema}'
        )
    return found


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with all fields of the class of ``options`` as options of its own."""
    own = inspect.signature(command).parameters
    kind = own["options"].annotation
    shared = inspect.signature(kind).parameters

    @functools.wraps(command)
    def run(**given: Any) -> None:
        options = kind(**{name: given.pop(name) for name in shared}).settled()
        command(options=options, **given)

    listed = [p for name, p in own.items() for p in (shared.values() if name == "options" else [p])]
    required = [p for p in listed if p.default is p.empty]
    listed = [*required, *(p for p in listed if p.default is not p.empty)]
    run.__signature__ = inspect.Signature(listed)  # pyright: ignore[reportAttributeAccessIssue] (typer reads it)
    run.__annotations__ = {p.name: p.annotation for p in listed}
    return run


class Asked(NamedTuple):
    """The schema, workload and targets that a command line and a schema file ask for."""

    schema: Schema
    workload: int | list[Entry]
    targets: Any  # as plan() takes targets; None if there are none


def asked_for(options: Options, written: Written = ()) -> Asked:
    """Return schema, workload and targets from the schema file and the options."""
    path, marginals = options.schema, options.marginals
    within, target = options.within, options.target
    schema = Schema.load(path)
    schema = replace(schema, file=dialect_of(schema.file, *written))
    targets: dict[frozenset[str], Target] = dict(map(target_of, target or []))
    if len(targets) < len(target or []):
        raise ParameterError("--target: expected one for each marginal, got two for one")
    if within is not None and targets:
        raise ParameterError("expected --within for all marginals, or --target for each, not both")
    if marginals:
        aims = within if within is not None else targets or None
        return Asked(schema, workload_of(marginals, schema.names), aims)
    wanted = load_workload(path)
    if not wanted:
        raise ParameterError(
            f"expected --marginals (-m), or [[workload]] tables in {path} that say what to ask"
        )
    goals = goals_of(wanted)
    entries = [one.entry for one in wanted]
    if within is not None or all(goal is None for goal in goals):
        return Asked(schema, entries, within if within is not None else targets or None)
    if targets:  # targets of the command line take precedence
        own = {
            frozenset(entry): goal
            for entry, goal in zip(entries, goals, strict=True)
            if goal is not None
        }
        return Asked(schema, entries, own | targets)
    return Asked(schema, entries, goals)


def target_of(text: str) -> tuple[frozenset[str], Target]:
    """Return names and a target, from ``sex,age=50`` or ``age=80@0.99``."""
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
    """Return the parts between commas; a part in "…" may contain commas, and "" for one quote.

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
    """Return the errors and risks of several budgets; save a picture if ``plot`` is given."""
    check_new("plan", plot)
    wanted: dict[str, Any] = {name: getattr(options, name) for name in USUAL}
    if options.delta is not None:
        wanted["delta"] = options.delta
    with patience(ERR, "planning"):
        table = budgets(asked.schema, asked.workload, **wanted)
    if plot is not None:
        save_picture("plan", table.plot(), plot)
    return table


def per_person_of(text: str | None) -> Any:
    """Return the function of a person's numbers: one for all clipped numbers, or {name: one}."""
    pairs = [part.rpartition("=") for part in parts_of(text or "")]
    if [equals for _, equals, _ in pairs] == [""]:
        return pairs[0][2]
    return {name: how for name, _, how in pairs} or None


def weight_of(text: str) -> Weight:
    """Return a column and its largest weight, from ``COLUMN:MOST``."""
    column, _, most = text.rpartition(":")
    try:
        return Weight(column, float(most))
    except ValueError:
        raise ParameterError(
            f"--weight: expected COLUMN:MOST, a column and the largest weight that counts in full, "
            f"got {text!r:.80}"
        ) from None


def dialect_of(
    base: Dialect,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    quote: str | None = None,
    date_format: str | None = None,
    thousands: str | None = None,
) -> Dialect:
    """Return the dialect ``base`` of a schema, with the given options replaced."""
    delimiter = "\t" if delimiter in ("tab", "\\t") else delimiter
    said = {
        "delimiter": delimiter,
        "decimal": decimal,
        "encoding": encoding,
        "quote": quote,
        "date_format": date_format,
        "thousands": thousands,
    }
    return replace(base, **{name: value for name, value in said.items() if value is not None})


def table_of(paths: list[Path]) -> str | list[str]:
    """Return one path, or a list of paths, for a table in one file or several."""
    return str(paths[0]) if len(paths) == 1 else [str(path) for path in paths]


def workload_of(marginals: list[str], known: tuple[str, ...]) -> int | list[Entry]:
    """Return k for all k-way marginals, or the list of entries."""
    if len(marginals) == 1 and marginals[0].isdigit():
        return int(marginals[0])
    return [entry_of(listed, known) for listed in marginals]


def entry_of(listed: str, known: tuple[str, ...]) -> Entry:
    """Return an entry from names separated by commas, with bases after colons."""
    return as_entry([listed] if listed in known else parts_of(listed), known)


def privacy_of(
    rho: float | None, epsilon: float | None, delta: float | None, more: str = ""
) -> AbstractPrivacy:
    """Return the budget from --rho, or --epsilon with --delta; ``more`` names other options."""
    if rho is not None and epsilon is None and delta is None:
        return zCDP(rho)
    if rho is None and epsilon is not None and delta is not None:
        return ApproxDP(epsilon, delta)
    if rho is None and epsilon is not None:
        raise ParameterError(
            "budget: expected --delta with --epsilon, the chance that the loss of privacy exceeds "
            "epsilon, got none; hint: --delta 1e-6, at most one in the number of persons; or --rho "
            "alone, which needs no delta"
        )
    raise ParameterError(f"budget: expected either --rho, or --epsilon with --delta{more}")
