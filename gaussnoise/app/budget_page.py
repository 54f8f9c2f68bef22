"""The third page: the choice of a budget, with its effect on tables and on one person."""

import asyncio
import html
import math

from nicegui import ui

from ..errors import GaussNoiseError
from ..privacy.ledger_entries import spent_and_left
from ..tables import Plan
from ..tables.planning.expected import ExpectedCells, expected_cells, small_text
from ..tables.planning.facts import (
    CLOSED,
    Facts,
    facts_of,
    guess_text,
    percent_text,
    risk_text,
)
from ..tables.planning.noun import noun_of
from ..tables.planning.stated import BUDGET
from ..tables.release.report.charts import Row, interval_chart
from ..tables.release.report.errors import (
    error_text,
    errors_of_plan,
    half_text,
    means_of,
    rounded,
)
from ..tables.release.report.numbers import titles_of
from ..tables.release.report.render import rendered
from ..tables.schema.planned import load_plan
from .number_field import NumberField
from .parts import TYPED, frame, go, handled, head, more, output, paged, refusal, words
from .project import LEDGER
from .state import State

_START = 0.1  # ρ that is shown if a project states no budget; it is stated once the user chooses it
_LEAST, _MOST = -4.0, 1.0  # powers of ten of ρ on the slider
_STEP = 0.05
_ENDS = (
    "More accurate means: in twice as many rows, the error is half of that. It is proportional to "
    "the distance of the ends: choose them no further apart than most values need; values beyond "
    "count as the nearer end."
)
_COLUMNS = {"name": "Table", "half": "Off by at most, in 95 % of cases"}
_COUNTS = {"mean": "Mean count of a cell"}  # if the owner says about how many rows there are
_OTHERS = 0.01, 0.1, 1.0  # budgets with which a budget is compared
_CENSUS = 2.56  # ρ of the redistricting tables of persons, 2020 Census of the United States
_SHOWN = 8  # largest number of counts in the picture
_ROWS = 10_000  # in the picture, unless the owner says about how many there are


async def budget_page(state: State) -> None:
    """Draw the page on which the user chooses a budget."""
    with frame(state, "/budget", "Budget: accuracy against privacy"):
        try:
            stated = load_plan(state.project.schema)
            has_own = any(name in stated for name in BUDGET)
            try:
                planned = await state.plan()
            except GaussNoiseError:
                if has_own:
                    raise
                planned = await state.plan(_START)
        except GaussNoiseError as error:
            refusal(str(error), "/questions" if state.project.schema.exists() else "/")
            return
        if planned.scales:
            ui.label("This budget grows with numbers of a record; it is stated in schema.toml.")
            output(str(planned))
            return
        _Panel(state, planned, has_own)


class _Panel:
    """The slider for the budget, and all texts and figures that change with the slider."""

    def __init__(self, state: State, planned: Plan, has_own: bool) -> None:
        self.state, self.plan, self.has_own = state, planned, has_own
        with ui.card():
            words(
                "Each number is changed a little at random (noise). With a larger *budget*, "
                "numbers are more exact, and persons less protected."
            )
            place = _slider_position(planned.rho)
            self.slider = ui.slider(min=_LEAST, max=_MOST, step=_STEP, value=place).props(
                'aria-label="Budget rho, in powers of ten"'
            )
            with ui.row().classes("items-center"):
                self.number = NumberField("ρ (rho)", float(f"{planned.rho:.6g}"))
                ui.button("Keep this budget", on_click=handled(self.keep))
                if planned.targets is not None:
                    least = ui.button("The least that meets all targets")
                    least.on_click(handled(self.least)).props("outline")
                kept = has_own or planned.targets is not None
                self.note = ui.label("" if kept else "Not kept yet.").props('role="status"')
            if (ledger := state.project.budget()) is None:
                ui.label("For this release alone: the total is asked later.")
            else:
                _, left = spent_and_left(ledger.spent, ledger.charges, ledger.rho)
                ui.label(f"{left} of ρ = {ledger.rho:.6g} is left in {LEDGER}.")
            self.guess = ui.label().props('role="status"')
            with more("The worst case, and other budgets") as self.worst:
                self.risk = ui.label()
                self.others = ui.label()
            with more("For specialists"):
                words("The accuracy is known without any data; numbers are *unbiased*.")
                self.least_error = ui.label()
                self.best = ui.html("", sanitize=False)
                self.ends = ui.label(_ENDS)
        with ui.card():
            head("Accuracy of every table", 2)
            size = paged(planned.entries)
            self.table = ui.table(columns=[], rows=[], row_key="name", pagination=size)
            self.table.classes("w-full").props("wrap-cells")
            self.small = ui.label().props('role="status"')
            expected = load_plan(state.project.schema).get("expected_rows")
            with more("Forecast of small cells, and an example") as forecast:
                forecast.value = expected is not None
                self.total = NumberField("About how many rows", expected, whole=True)
                self.total.classes("w-full").props(
                    f'{TYPED} hint="your own guess, for this forecast: it changes no table"'
                )
                self.picture = ui.html("", sanitize=False)
        self.show(planned)
        self.slider.on_value_change(handled(self.moved))
        self.number.on("change", handled(self.typed))
        self.total.on_value_change(handled(self.guessed))

    async def moved(self) -> None:
        """Show the plan with the slider's budget, unless the slider was moved again meanwhile."""
        value = self.slider.value or 0.0
        await asyncio.sleep(0)
        # a typed budget moves the slider too, and may lie beyond its ends
        if value == self.slider.value and value != self._typed_position():
            rho = float(f"{10**value:.3g}")
            self.number.show(rho)
            await self.at(rho)

    async def typed(self) -> None:
        """Show the plan with the typed budget."""
        await self.at(self.number.number or 0.0)
        self.slider.value = self._typed_position()

    def _typed_position(self) -> float:
        """Return the slider's position for the budget in the field beside the slider."""
        return _slider_position(self.number.valid or 0.0)

    async def at(self, rho: float) -> None:
        """Compute the plan with the budget ``rho``, and show it."""
        self.plan = await self.state.plan(rho)
        self.has_own = True
        self.show(self.plan)
        self.note.text = "Not kept yet."

    async def keep(self) -> None:
        """Write the budget of the shown plan into the schema file."""
        if self.number.number != float(f"{self.plan.rho:.6g}"):
            await self.typed()  # it was typed just before the click
        self.state.project.state(rho=self.plan.rho, epsilon=None, delta=None)
        self.note.text = f"Kept: ρ = {self.plan.rho:.6g}."

    def least(self) -> None:
        """Remove the budget from the schema file, so that the accuracy targets determine it."""
        self.state.project.state(rho=None, epsilon=None, delta=None)
        go("/budget")

    def guessed(self) -> None:
        """Write the expected number of rows into the schema file, and show the new forecast."""
        number = self.total.valid  # a wrong text is no number: none stays in the file
        self.state.project.state(expected_rows=None if number is None else int(number))
        self.show(self.plan)

    def show(self, planned: Plan) -> None:
        """Show a plan: the accuracy of tables, the risk for one person, and an example figure."""
        facts, rows = facts_of(planned), self.total.valid
        expected = [] if rows is None else expected_cells(planned, int(rows))
        cells = {table.name: mean_text(table) for table in expected}
        said = means_of(planned, rows)
        names = zip(titles_of(planned), planned.entries, strict=True)
        self.ends.set_visibility(any(said))
        shown = zip(names, errors_of_plan(planned), said, strict=True)
        self.table.rows = [
            {
                "name": name,
                "half": mean or error_text(errors),
                "mean": cells.get(entry, ""),
            }
            for (name, entry), errors, mean in shown
        ]
        self.table.columns = [
            {"name": name, "label": label, "field": name, "align": "left"}
            for name, label in (_COLUMNS if rows is None else _COLUMNS | _COUNTS).items()
        ]
        self.table.update()
        self.small.text = small_text(expected)
        self.guess.text = guess_text(planned, facts) or ""
        risk = risk_text(planned, facts)
        self.worst.set_visibility(risk is not None)
        self.risk.text = f"The budget protects {facts.unit}: {risk}."
        self.others.text = _other_budgets(facts)
        self.least_error.text = best(facts.gap)
        many = f"{int(sum(planned.queries)):,} numbers are released"
        lines = "".join(f"<li>{html.escape(line)}</li>" for line in (many, *facts.verdict))
        self.best.content = f"<p>{html.escape(facts.budget)}</p><ul>{lines}</ul>"
        self.picture.content = made_up(planned, rows or _ROWS)


def _three_digits(number: float) -> str:
    return f"{rounded(number):,.15g}"  # 2,790 in place of 2.79e+03


def mean_text(table: ExpectedCells) -> str:
    """Return the mean count of a table's cells as text, marked if it is smaller than its noise."""
    small = f", less than {half_text(table.half_width)}" * table.is_small
    return f"{_three_digits(table.mean)}{small}"


def _slider_position(rho: float) -> float:
    """Return the position of the slider for a budget rho: log10(rho), cut to the slider's ends."""
    return math.log10(min(max(rho, 10**_LEAST), 10**_MOST))


def best(gap: float) -> str:
    """Return a sentence that compares a plan's error with the least possible error.

    ``gap`` is the proven bound on their relative difference (the certified gap).
    """
    if gap < CLOSED:
        return (
            f"The best possible for Gaussian noise with this budget, proven to {100 * CLOSED:g} %."
        )
    return (
        f"The error is at most {percent_text(gap)} larger than the least for Gaussian noise with "
        "this budget, which is proven."
    )


def _other_budgets(facts: Facts) -> str:
    """Return sentences with the risk for one person at a few other budgets, for comparison."""
    known = ", ".join(f"{percent_text(facts.surest(rho))} at ρ = {rho:g}" for rho in _OTHERS)
    return (
        f"For comparison: at most {known}. This page begins with ρ = {_START:g}. "
        "The redistricting tables of the 2020 Census of the United States spent a ρ of "
        f"{_CENSUS} on persons: at most {percent_text(facts.surest(_CENSUS))}. It is the limit for "
        "a reader who knows everything but this one fact; others learn less. No number is right "
        "for all data: who answers for the data decides, and says why."
    )


def made_up(planned: Plan, total: float) -> str:
    """Return HTML of a figure: made-up counts with the 95 % intervals of the plan's first table.

    The average of the made-up counts is ``total`` divided by the number of cells.
    """
    half, noun = next(iter(errors_of_plan(planned)[0].values())), noun_of(planned)
    answers = max(int(planned.queries[0]), 1)
    shown = min(max(answers, 2), _SHOWN)
    counts = [total / answers * (0.4 + 1.2 * k / (shown - 1)) for k in range(shown)]
    width = f"{half_text(half)} {noun}"
    said = f"Made-up counts, each with an interval of {width.replace('±', 'plus or minus')}"
    picture = interval_chart(
        [Row(f"cell {k}", count, count - half, count + half) for k, count in enumerate(counts, 1)],
        "made-up",
        said,
        ", ".join(f"cell {k}: {count:,.0f}" for k, count in enumerate(counts, 1)),
    )
    return rendered(
        "figure.html",
        picture=picture,
        caption=f"MADE-UP counts, not yours; {width} is that of the first table.",
    )
