"""The commands that describe a release in advance, and the lower bound for any mechanism."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import ParameterError
from ..tables.planning.expected import expected_text
from ..tables.schema.planned import load_plan
from .asked import Options, asked_for, budgets_of, planned, with_options
from .console import say, show
from .documents import bound_document, budgets_document, plan_document
from .options import (
    Delta,
    Epsilon,
    ExpectedRows,
    Json,
    Marginals,
    PerRecordOption,
    Public,
    Rho,
    SchemaFile,
    StatedNeighbors,
    StatedNorm,
    StatedRows,
)
from .wording import OF_RELEASES, in_shell


@with_options
def show_plan(
    options: Options,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Without a budget: new picture of error against budget."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="New HTML file: the plan as a page.")
    ] = None,
    expected_rows: ExpectedRows = None,
    as_json: Json = False,
) -> None:
    """Show the accuracy and the privacy of a release in advance. Needs no data.

    Without a budget, show error and risk for several budgets. Tables over time: gaussnoise stream
    plan.
    """
    asked = asked_for(options)
    budgets = options.rho, options.epsilon, options.per_record, asked.targets
    if all(given is None for given in budgets):
        if report is not None:
            raise ParameterError("plan: --report shows one plan; hint: give a budget or a target")
        more = {**vars(options), "expected-rows": expected_rows}
        for name in ("weight", "public", "title", "source", "expected-rows"):
            if more[name] is not None:
                raise ParameterError(f"plan: --{name} needs a budget or a target; hint: --rho 0.1")
        choices = budgets_of(asked, options, plot)
        if as_json:
            return show(budgets_document(choices))
        say(in_shell(str(choices), OF_RELEASES))
        if plot is not None:
            say(f"wrote {plot}")
        return None
    if plot is not None:
        raise ParameterError(
            "plan: --plot shows all budgets; hint: leave out the budget and targets"
        )
    found = planned(asked)
    stated = load_plan(options.schema).get("expected_rows")
    rows = stated if expected_rows is None else expected_rows
    # both refuse a wrong number of rows before anything is written
    document = plan_document(found, rows) if as_json else None
    expected = [] if rows is None or as_json else expected_text(found, rows)
    if report is not None:
        found.report(report)
    if document is not None:
        return show(document)
    say("\n".join([in_shell(str(found), OF_RELEASES), *expected]))
    if report is not None:
        say(f"wrote {report}")


def show_bound(
    schema: SchemaFile,
    marginals: Marginals = None,
    rho: Rho = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    per_record: PerRecordOption = None,
    neighbors: StatedNeighbors = None,
    public: Public = None,
    p: StatedNorm = None,
    rows_per_person: StatedRows = None,
    as_json: Json = False,
) -> None:
    """Show a lower bound on the error of all unbiased mechanisms on these tables. Needs no data."""
    options = Options(
        schema=schema,
        marginals=marginals,
        rho=rho,
        epsilon=epsilon,
        delta=delta,
        per_record=per_record,
        neighbors=neighbors,
        public=public,
        p=p,
        rows_per_person=rows_per_person,
    ).settled()
    found = planned(asked_for(options))
    if as_json:
        return show(bound_document(found))
    say(found.bound.explain())
    say(f"this plan    {found.error:.6g}: {found.bound.sentence(found.error)}")
