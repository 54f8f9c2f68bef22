"""The command that checks a table against a schema."""

from typing import NoReturn

import typer

from ..results import CheckResult
from ..tables.schema.workload import load_workload
from .asked import DatedFileOptions, Options, asked_for, planned, rows_of, table_of, with_options
from .console import say, show
from .options import (
    Json,
    Marginals,
    PerPersonOption,
    Person,
    SchemaFile,
    StatedRows,
    StatedTables,
    WeightColumn,
)
from .wording import OF_RELEASES, in_shell


@with_options
def check_table(
    schema: SchemaFile,
    table: StatedTables = None,
    marginals: Marginals = None,
    rows_per_person: StatedRows = None,
    person: Person = None,
    per_person: PerPersonOption = None,
    weight: WeightColumn = None,
    written: DatedFileOptions = DatedFileOptions(),
    as_json: Json = False,
) -> None:
    """Say which rows a release would leave out, and why. NOT private: for the table's owner alone.

    It also lists values that count as other values: clipped to an interval, or in a catch-all. It
    warns if nearly all values of a column count as others: the file may be of another year.

    Without -m, and without a workload in the schema, every column is checked.

    The exit code is 0 if all rows fit; 1 if some do not, or if the table cannot be read.
    """
    if not (marginals or load_workload(schema)):
        marginals = ["1"]
    options = Options(
        schema=schema,
        marginals=marginals,
        rho=1.0,  # the check does not depend on it
        rows_per_person=rows_per_person,
        person=person,
        per_person=per_person,
        weight=weight,
    ).settled()
    said(planned(asked_for(options, written)).check(table_of(rows_of(table, schema))), as_json)


def said(found: CheckResult, as_json: bool) -> NoReturn:
    """Print the result of a check, and exit with status 1 if some rows do not fit the schema."""
    if as_json:
        show(found.as_dict())
    else:
        say(in_shell(str(found), OF_RELEASES))
    raise typer.Exit(int(not found.passed))
