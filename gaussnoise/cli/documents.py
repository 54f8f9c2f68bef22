"""The JSON documents that commands print with ``--json``; each has stable keys."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ..bounds.strategy import AbstractStrategyCertificate
from ..estimators.columns import ColumnMeans
from ..noise.optimal_noise import OptimalNoise
from ..numerics.intervals import quantile
from ..privacy.definitions import zCDP
from ..privacy.lattice_bound import TABLE_STEPS
from ..privacy.ledger import Ledger
from ..privacy.per_record import holds
from ..streams import SeriesTable, Stream, StreamPlan, TrendTable
from ..streams.text import YEARS, facts_of_stream
from ..tables import Budgets, ComparisonTable, Plan, Schema
from ..tables.planning.expected import expected_cells
from ..tables.planning.facts import facts_of
from ..tables.release.changes import ShownChanges, changes_record
from ..tables.release.difference import Changes
from ..tables.release.tidy import LEVEL
from ..tables.schema.entries import Entry
from ..text import SHOWN_DELTA

Document = Mapping[str, object]


def written(document: Document) -> str:
    """Return the text of a JSON document, with null for infinite numbers and NaN."""
    return json.dumps(_plain(document), indent=2, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    """Return a value with JSON's types only; None replaces infinite numbers and NaN."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, Path):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plan_document(plan: Plan, expected_rows: int | None = None) -> Document:
    """Return the output of ``gaussnoise plan --json``: request, accuracy, cost and proof."""
    facts, z = facts_of(plan), quantile(LEVEL)
    entries = zip(
        plan.entries,
        plan.domain.terms,
        plan.queries.tolist(),
        plan.deviations.tolist(),
        plan.independent_deviations.tolist(),
        strict=True,
    )
    return {
        "format": "gaussnoise.plan/1",
        "draft": plan.schema.is_draft,
        "neighbors": plan.neighbors,
        "neighbors_meaning": facts.relation,
        "privacy_unit": facts.unit,
        "rows_per_person": plan.rows_per_person,
        **({"per_person": plan.per_person} if plan.per_person else {}),
        "privacy": facts.privacy,
        "rho": plan.rho,
        "epsilon_delta": {"epsilon": facts.epsilon(plan.rho), "delta": SHOWN_DELTA}
        | holds(plan.scales),
        "level": LEVEL,
        "entries": [
            {
                "name": name,
                "attributes": [plan.schema.names[i] for i, _ in term],
                "answers": int(answers),
                "standard_deviation": deviation,
                "half_width": z * deviation,
                "independent_standard_deviation": independent,
            }
            for name, term, answers, deviation, independent in entries
        ],
        **({} if expected_rows is None else _expected(plan, expected_rows)),
        "target_ratio": None if plan.targets is None else plan.target_ratio,
        "optimality": _optimality(plan),
        "verdict": facts.verdict,
        "release": {
            "integers": plan.integers,
            "seconds": plan.seconds,
            "peak_bytes": plan.peak_bytes,
        },
        "request_sha256": plan.request_sha256,
    }


def _expected(plan: Plan, rows: int) -> Document:
    """Return facts for JSON about each table's cells, if about ``rows`` rows are counted."""
    tables = [
        {
            "name": table.name,
            "cells": table.cells,
            "mean_count": table.mean,
            "half_width": table.half_width,
            "smaller_than_noise": table.is_small,
        }
        for table in expected_cells(plan, rows)
    ]
    return {"expected_rows": rows, "expected_tables": tables}


def _optimality(plan: Plan) -> Document:
    """Return {name: number} of the numbers that prove how close the error is to the least."""
    return {
        "p": str(plan.noise.p),
        "error": plan.error,
        "gamma": plan.bracket[1],
        "gamma_lower": plan.bracket[0],
        "certified_gap": plan.gap,
        "improvement": plan.improvement,
        # with exact tables, no lower bound holds for all data sets
        "lower_bound": None if plan.public else plan.bound.as_dict(plan.error),
        "method": plan.noise.method,
    }


def budgets_document(choices: Budgets) -> Document:
    """Return the output of ``gaussnoise plan --json`` without a budget: a table of budgets."""
    return {
        "format": "gaussnoise.budgets/1",
        "draft": choices.plan.schema.is_draft,
        "neighbors": choices.plan.neighbors,
        "privacy_unit": choices.plan.privacy_unit,
        "delta": choices.delta,
        "level": LEVEL,
        "rho_within_one_row": choices.least,
        "budgets": choices.to_frame("pyarrow").to_pylist(),
    }


def bound_document(plan: Plan) -> Document:
    """Return the output of ``gaussnoise bound --json``: lower bound, reason, error."""
    return {
        "format": "gaussnoise.bound/1",
        "p": str(plan.noise.p),
        "error": plan.bound.error,
        "plan_error": plan.error,
        "lower_bound": plan.bound.as_dict(plan.error),
        "explanation": plan.bound.explain().splitlines(),
    }


def release_document(folder: Path) -> Document:
    """Return the output of ``gaussnoise release --json``: the folder and its ``release.json``."""
    record = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    return {"format": "gaussnoise.released/1", "folder": folder, "record": record}


def changes_document(
    changes: Changes, found: Sequence[ShownChanges], out: Path | None, of: Sequence[Entry]
) -> Document:
    """Return the output of ``gaussnoise difference --json``: releases and changes."""
    return {**changes_record(changes, found, of, rows=True), "folder": out}


def tick_changes_document(
    changes: Mapping[str, ComparisonTable], earlier: int, later: int
) -> Document:
    """Return the output of ``gaussnoise difference --json`` for two ticks: changes."""
    return {
        "format": "gaussnoise.stream.changes/1",
        "earlier": earlier,
        "later": later,
        "level": LEVEL,
        "tables": [
            {"attributes": table.attributes, "rows": table.to_arrow().to_pylist()}
            for table in changes.values()
        ],
    }


def means_document(means: ColumnMeans, out: Path | None) -> Document:
    """Return the output of ``gaussnoise mean --json``: means with the parts of their intervals."""
    return {"format": "gaussnoise.column_means/3", **means.as_dict(), "folder": out}


def noise_document(noise: OptimalNoise, neighbors: str, p: float, out: Path | None) -> Document:
    """Return the output of ``gaussnoise optimize --json``: errors and their proof."""
    return {
        "format": "gaussnoise.optimized/1",
        "neighbors": neighbors,
        "p": str(p),
        "gamma": noise.gamma,
        "gamma_lower": noise.gamma_lower,
        "gap": noise.gap,
        "method": noise.method,
        "standard_deviations": noise.covariance.standard_deviation(),
        "file": out,
    }


def certificate_document(found: AbstractStrategyCertificate, neighbors: str) -> Document:
    """Return the output of ``gaussnoise certify --json``: privacy loss, errors and bounds."""
    return {
        "format": "gaussnoise.certified/1",
        "neighbors": neighbors,
        "p": str(found.p),
        "error": found.error,
        "lower": found.lower,
        "upper": found.upper,
        "factor": found.factor,
        "sensitivity": found.sensitivity,
        "rho": found.rho,
        "answers": found.columns(),
        "explanation": found.explain(),
    }


def written_document(file: Path, **more: object) -> Document:
    """Return the ``--json`` document of commands that only write a file."""
    return {"format": "gaussnoise.written/1", "file": file, **more}


def draft_document(
    schema: Schema, left_out: Mapping[str, str], toml: str, file: Path | None
) -> Document:
    """Return the output of ``gaussnoise schema --json``: a draft, as confidential as the table."""
    return {
        "format": "gaussnoise.draft/1",
        "file": file,
        "attributes": schema.names,
        "left_out": left_out,
        "toml": toml,
    }


def ledger_document(ledger: Ledger, delta: float, last: int | None) -> Document:
    """Return the output of ``gaussnoise ledger show --json``: the budget, and the last entries."""
    return {
        "format": "gaussnoise.ledger.shown/1",
        "rho": ledger.rho,
        "spent": ledger.spent,
        "remaining": ledger.remaining,
        **({"scales": dict(ledger.scales)} if ledger.scales else {}),
        "delta": ledger.delta,
        "spent_delta": ledger.spent_delta,
        "epsilon_delta": {
            "delta": delta,
            "spent": ledger.epsilon(delta),
            "budget": zCDP(ledger.rho).epsilon(delta - ledger.delta),
            **holds(ledger.scales),
        },
        "charges": ledger.charges,
        "refusals": ledger.refusals,
        "entries": [asdict(entry) for entry in ledger.entries(last)],
    }


def stream_plan_document(plan: StreamPlan) -> Document:
    """Return the output of ``gaussnoise stream plan --json``: the errors of some ticks' tables."""
    facts, z, n = facts_of_stream(plan), quantile(LEVEL), plan.over.n
    ticks = {"first": (1, 1), "last": (n, n), "all": (1, n)}
    deviations = [
        {name: plan.standard_deviation(*names, ticks=own) for name, own in ticks.items()}
        for names in plan.marginals
    ]
    return {
        "format": "gaussnoise.stream.plan/1",
        "draft": plan.schema.is_draft,
        "ticks": plan.over.as_dict(),
        "neighbors": plan.neighbors,
        "neighbors_meaning": facts.relation,
        "privacy_unit": facts.unit,
        "privacy": facts.privacy,
        "rho": plan.rho,
        "rho_of_ticks_in_succession": {m: plan.spent(m) for m in (1, *YEARS, n) if m <= n},
        "level": LEVEL,
        "marginals": [
            {
                "attributes": list(names),
                "cells": plan.tables.cells(tuple(sorted(plan.one_tick.subset(names)))),
                "standard_deviations": own,
                "half_widths": {name: z * sd for name, sd in own.items()},
            }
            for names, own in zip(plan.marginals, deviations, strict=True)
        ],
        "gap": plan.gap,
        "verdict": facts.verdict,
        "integers": plan.integers,
        "request_sha256": plan.request_sha256,
    }


def stream_document(stream: Stream, folder: Path) -> Document:
    """Return the output of ``gaussnoise stream show --json``: number of ticks, and last tables."""
    plan, done = stream.plan, len(stream)
    return {
        "format": "gaussnoise.stream.shown/1",
        "folder": folder,
        "ticks": plan.over.as_dict(),
        "done": done,
        "next": done + 1 if done < plan.over.n else None,
        "last": stream.state.tick_folder(done) if done else None,
        "neighbors": plan.neighbors,
        "privacy_unit": plan.privacy_unit,
        "privacy": plan.privacy.as_dict(plan.integers, TABLE_STEPS),
        "rho": plan.rho,
        "marginals": [list(names) for names in plan.marginals],
        "level": LEVEL,
        "half_widths_of_totals": [
            plan.half_width(*names, ticks=(1, done), level=LEVEL) if done else None
            for names in plan.marginals
        ],
        "gap": plan.gap,
    }


def series_document(
    series: SeriesTable,
    trend: TrendTable | None,
    step: ComparisonTable | None,
    level: float,
    files: Mapping[str, Path | None],
) -> Document:
    """Return the output of ``gaussnoise stream series --json``: numbers, and requested tests.

    The null hypothesis of each test is about the counted rows, so only the noise is random.
    """
    stepped = None
    if step is not None:
        rows, pvalues = step.to_arrow(level).to_pylist(), step.pvalue.reshape(-1).tolist()
        rows = [row | {"pvalue": p} for row, p in zip(rows, pvalues, strict=True)]
        stepped = {"difference": step.names, "rows": rows}
    return {
        "format": "gaussnoise.stream.series/1",
        "counted": series.counted,
        "attributes": series.attributes,
        **({"times": series.times} if series.times else {}),
        "level": level,
        "simultaneous": False,
        "rows": series.to_arrow(level).to_pylist(),
        "trend": None
        if trend is None
        else {"degrees": trend.degrees, "rows": trend.to_arrow(level).to_pylist()},
        "step": stepped,
        **files,
    }
