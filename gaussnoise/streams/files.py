"""The public JSON records and texts that describe a stream and its ticks.

Records and texts depend on the data only through the noisy measurements.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import text as _text
from ..files.disk import digests_in
from ..noise.table_covariance import TableCovariance
from ..privacy.per_record import holds, holds_text
from ..solvers.tables.orbits import Type
from ..solvers.tables.residuals import Subset
from ..tables.planning.facts import EPSILON_METHOD, marginal_name
from ..tables.planning.noun import noun_of
from ..tables.planning.plan import Plan
from ..tables.planning.text import for_readers
from ..tables.release.formats import format_name
from ..tables.release.formats.format import Notes
from ..tables.release.method import attributes_of, statement, texts_of
from ..tables.release.record import contrasts_of, measurements_of
from ..tables.release.store import MOST_FILES, Place, StoredTables, is_part, planned_places
from ..tables.release.text import FOR_SPECIALISTS, INTERVALS, UNBIASED, opening
from ..tables.release.tidy import interval_record
from ..tables.schema.schema import OnOutside
from ..text import SHOWN_DELTA, versions
from .plan import StreamPlan, drawn_query
from .text import errors_text, facts_of_stream, participation_text, stream_head
from .ticks import Ticks
from .time_strategy import TimeStrategy

Array = NDArray[np.float64]

TICK_FORMAT = "gaussnoise.stream-tick/1"
_PROMISED = "How often a person reports is a promise of the publisher's, not checked."
_ENFORCED = (
    "In how many ticks a person is counted is enforced: the program keeps a private registry of "
    "persons, and leaves out the rows of those who must not be counted again yet; how many is "
    "private."
)
_LIBRARIES = ("gaussnoise", "opendp", "numpy", "narwhals", "pyarrow", "duckdb")


def stream_record(plan: StreamPlan, key: str, format: str, on_outside: OnOutside) -> dict[str, Any]:
    """Return the content of ``stream.json``: everything that later ticks need.

    ``key`` is the random name of the stream, and ``format`` that of its table files. The entry
    "format" is None; the caller sets it.
    """
    query = drawn_query(plan.query)
    return {
        "format": None,
        "stream": key,
        "ticks": plan.over.as_dict(),
        **_guarantee(plan),
        "on_outside": on_outside,
        "table_format": format,
        "plan": plan.asked.record(),
        "noise": {
            "query": (
                "at tick t, sum over i <= t of time_matrix[t, i] times what the table plan "
                "measures on the rows "
                "of tick i: for every measured set T of attributes, multiplier_T * kron(C_j, j "
                "in T) on its "
                "marginal counts; discrete Gaussian noise of scale sigma on every integer, fresh "
                "at every tick"
            ),
            **contrasts_of(plan.one_tick),
            "time_sensitivity_squared": plan.strategy.sensitivity_squared,
            "integer_sensitivity_squared": query.sensitivity_squared,
            "sigma": query.scale,
            "rho_of_one_row_per_report": query.rho,
        },
        "measurements": measurements_of(plan.schema.names, plan.query),
        "time_matrix": [
            " ".join(map(str, row[: t + 1])) for t, row in enumerate(plan.strategy.matrix.tolist())
        ],
        "time_lower": plan.strategy.lower,
        "certified_gap": plan.gap,
        "request_sha256": plan.request_sha256,
        "libraries": dict(versions(*_LIBRARIES)),
        "disclaimers": disclaimers(plan),
    }


def strategy_in(record: Mapping[str, Any], over: Ticks, p: float) -> TimeStrategy:
    """Return the time strategy that ``stream.json`` states.

    A time strategy is the matrix of the weights of ticks in measurements. ``record`` is the content
    of the file; ``over`` are the ticks of the stream, and p is the error norm.
    """
    matrix = np.zeros((over.n, over.n), dtype=np.int64)
    for t, row in enumerate(record["time_matrix"]):
        matrix[t, : t + 1] = [int(x) for x in row.split(" ")]
    return TimeStrategy(matrix, over, p, float(record["time_lower"]))


def multipliers_in(record: Mapping[str, Any], tables: Plan) -> dict[Type, int]:
    """Return {type of residual: the integer that multiplies it in measurements}.

    A residual is the part of a table that no smaller table determines. Residuals of attribute sets
    of the same type have the same multiplier. ``record`` is the content of ``stream.json``.
    """
    known, at = tables.query.multipliers.orbits, tables.schema.names.index
    return {
        known.type_of(tuple(map(at, of["attributes"]))): int(of["multiplier"])
        for of in record["measurements"]
    }


def tick_record(
    plan: StreamPlan,
    key: str,
    tick: int,
    measurements_sha256: str,
    written: Mapping[str, StoredTables],
    folder: Path,
    on_outside: OnOutside,
    digests: Mapping[str, str] | None = None,
) -> dict[str, object]:
    """Return the content of ``release.json`` of one tick; the tick's other files are in ``folder``.

    ``written`` maps "period" (the tick alone) and "cumulative" (all ticks so far) to the written
    tables. ``digests`` has the known sha256 values of files; the others are computed.
    """
    names = plan.schema.names
    deviations = {
        what: plan.covariance(plan.window(first, tick))
        for what, first in (("cumulative", 1), ("period", tick))
    }
    tables = {
        what: [
            {
                "attributes": [names[i] for i in S],
                "file": stored.places[S].file,
                "first_row": stored.places[S].first_row,
                "rms_standard_deviation": float(np.sqrt(deviations[what].mean_variance(S))),
            }
            for S in plan.tables.subsets
        ]
        for what, stored in written.items()
    }
    return {
        "format": TICK_FORMAT,
        "private": True,
        "stream": key,
        "tick": tick,
        "ticks": plan.over.as_dict(),
        **_guarantee(plan),
        "on_outside": on_outside,
        "cumulative_meaning": f"all rows of ticks 1 to {tick}",
        "period_meaning": f"the rows of tick {tick} alone",
        **tables,
        "measurements_sha256": measurements_sha256,
        "intervals": interval_record(),
        "files": digests_in(folder, digests),
        "libraries": dict(versions(*_LIBRARIES)),
        "disclaimers": disclaimers(plan),
    }


def write_record(record: Mapping[str, object], folder: Path) -> None:
    """Write ``release.json``, the last file of a tick, into the folder of the tick."""
    text = json.dumps(record, indent=2, ensure_ascii=False)
    (folder / "release.json").write_text(text + "\n", encoding="utf-8")


def deviation_in(covariance: TableCovariance) -> Callable[[Subset], Array]:
    """Return the function from a table's attributes to the standard deviations of its cells."""
    return lambda S: np.sqrt(np.asarray(covariance.table_variance(S)))


def places_in(record: Mapping[str, Any], what: str, plan: StreamPlan) -> dict[Subset, Place]:
    """Return {table: its file, first row in the file, and shape} for every planned table of a tick.

    ``record`` is the content of ``release.json``, and ``what`` is "period" or "cumulative".
    """
    listed, places = record[what], dict[Subset, Place]()
    few = len(plan.tables.subsets) <= MOST_FILES
    if few and not all(is_part(entry["file"]) for entry in listed):
        return planned_places(plan.schema, plan.tables.subsets, format_name(listed[0]["file"]))
    for S, entry in zip(plan.tables.subsets, listed, strict=True):
        first_row, named = entry["first_row"], entry["attributes"]
        if named != [plan.schema.names[i] for i in S] or type(first_row) is not int:
            raise ValueError
        if first_row < 0:
            raise ValueError
        places[S] = Place(str(entry["file"]), first_row, tuple(plan.schema.sizes[i] for i in S))
    return places


def _guarantee(plan: StreamPlan) -> dict[str, object]:
    facts, rho = facts_of_stream(plan), plan.rho_charged
    return {
        "neighbors": plan.neighbors,
        "privacy_unit": facts.unit,
        "participation": participation_text(plan),
        "rows_per_person_and_tick": plan.rows_per_person,
        **({} if plan.person is None else {"person": plan.person, "rows_counted": facts.counted}),
        "privacy": facts.privacy,
        "rho_of_all_ticks": rho,
        "epsilon_delta_of_all_ticks": {
            "epsilon": facts.epsilon(rho),
            "delta": SHOWN_DELTA,
            "method": EPSILON_METHOD,
            **holds(plan.privacy.scales),
        },
    }


def disclaimers(plan: StreamPlan) -> list[str]:
    """Return sentences on the persons that the guarantee protects, and on its assumptions."""
    whom, enforced = participation_text(plan), plan.over.enforced
    return _text.disclaimers(
        f"{whom}; by all {plan.over.n} ticks together, against anyone who sees only what is "
        f"published. {_ENFORCED if enforced else _PROMISED} Categories, bins and the times of "
        "ticks are assumed public.",
        True,
    )


def rules_of(over: Ticks) -> list[str]:
    """Return sentences for users on empty ticks, late rows, corrections and participation."""
    when = "Rows belong to the tick in which they arrive."
    if over.period is not None:
        late = "are counted in the tick they come in" if over.late == "carry" else "are refused"
        when = (
            f"Column {over.period!r} has the number of each row's tick, from 1 on: rows of an "
            f"earlier tick {late}, those of a later one are refused."
        )
    return [
        f"There are {over.n} ticks at most. Fewer may happen: the budget is for all of them.",
        *times_of(over),
        "No tick is left out: a tick without rows is a table without rows, such as a file with the "
        "names of its columns alone.",
        when,
        _corrections_of(over),
        "Rows are not compared with those of any tick, so the same rows under a new number count "
        "again; only a file that an earlier tick counted is refused.",
        _ENFORCED if over.enforced else _PROMISED,
    ]


def times_of(over: Ticks) -> list[str]:
    """Return a sentence on the times of the first and the last tick, if known."""
    if over.times is None:
        return []
    return [
        f"Each tick is a {over.word}: the first is {over.time(1)}, the last {over.time(over.n)}."
    ]


def _corrections_of(over: Ticks) -> str:
    if over.corrections is None:
        return (
            "Corrections of earlier ticks are not counted: what is published of a tick never "
            "changes."
        )
    return (
        f"Rows with -1 in column {over.corrections!r} take back earlier ones, and are subtracted "
        "in the tick in which they arrive: what is published of a tick never changes. Each is a "
        "row and a report of its person: a changed row is two rows."
    )


def tick_statement(plan: StreamPlan, tick: int) -> Notes:
    """Return the notes on the method that are published with the tables of one tick."""
    return _statement(
        plan,
        f"{_tick_text(plan, tick)}: tables of its own rows (period), and of the rows of "
        f"ticks 1 to {tick} (cumulative).",
        private=True,
    )


def _tick_text(plan: StreamPlan, tick: int) -> str:
    time = plan.over.time(tick)
    return f"Tick {tick} of {plan.over.n}{time and f' ({time})'}"


def tick_texts(plan: StreamPlan, tick: int) -> dict[str, str]:
    """Return {file name: content} of the text files that are published with one tick."""
    one, notes = plan.one_tick, tick_statement(plan, tick)
    described = texts_of(attributes_of(one), notes, one.about)
    return {"summary.txt": summary_text(plan, tick) + "\n", **described}


def series_statement(plan: StreamPlan, first: int, last: int, *, private: bool) -> Notes:
    """Return the notes on the method for a saved series of the ticks ``first`` to ``last``."""
    return _statement(
        plan,
        f"Ticks {first} to {last} of {plan.over.n}: for each, the rows of that tick (period), and "
        f"those of ticks {first} to that tick (cumulative).",
        private=private,
    )


def _statement(plan: StreamPlan, times: str, *, private: bool) -> Notes:
    return statement(
        plan.one_tick,
        facts_of_stream(plan),
        plan.one_tick.about,
        private=private,
        noun=noun_of(plan, once=plan.over.most_reports == 1),
        counted=[],
        unit=[],
        policy=disclaimers(plan),
        times=[times, *times_of(plan.over)],
    )


def summary_text(plan: StreamPlan, tick: int) -> str:
    """Return the content of ``summary.txt`` of one tick, for all readers and for specialists."""
    width = max(len("table"), *(len(marginal_name(m)) for m in plan.marginals))
    plain, others = for_readers(stream_head(plan))
    tables = _text.number_of(len(plan.marginals), "table")
    whose = "of its own rows (period/) and of all rows so far (cumulative/)"
    lines = [
        opening(f"{_tick_text(plan, tick)}: {tables}, {whose}", private=True),
        *plain,
        "",
        f"{UNBIASED} Tables agree on the totals that they share, and those of all rows so far "
        "are the sums of those of each tick.",
        INTERVALS,
        *disclaimers(plan),
        "",
        FOR_SPECIALISTS,
        f"charged      rho = {plan.rho_charged:.10g}, once, for all {plan.over.n} ticks together"
        f"{holds_text(plan.privacy.scales)}",
        *others,
        "",
        f"{'table':<{width}}  {'sd of this tick':>15}  {'sd of all so far':>16}",
    ]
    for marginal in plan.marginals:
        own = plan.standard_deviation(*marginal, ticks=(tick, tick))
        total = plan.standard_deviation(*marginal, ticks=(1, tick))
        lines.append(f"{marginal_name(marginal):<{width}}  {own:>15.4g}  {total:>16.4g}")
    return _text.printable("\n".join([*lines, "", errors_text(plan)]))
