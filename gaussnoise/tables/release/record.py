"""The content of ``release.json``; nothing in it depends on the data."""

import dataclasses
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...files.disk import MOST_RECORD
from ...noise.certificates.marginals import MarginalCertificate
from ...privacy.definitions import zCDP
from ...privacy.per_record import holds
from ...solvers.tables.boxes import boxes
from ...solvers.tables.residuals import Subset
from ...solvers.tables.strategies import SolvedStrategy
from ...text import SHOWN_DELTA, versions
from ..planning.facts import EPSILON_METHOD, facts_of
from ..schema.bases import base_value
from ..schema.groups import group_record, group_texts
from .noisy import AbstractRelease
from .store import MOST_FILES
from .text import disclaimers
from .tidy import interval_record

if TYPE_CHECKING:
    from ..planning.measure import ResidualQuery
    from ..planning.plan import Plan

FORMAT = "gaussnoise.tables/3"
CONTRASTS = ("contrasts", "contrasts_in_sets")  # keys of the contrasts inside ``noise``
ASSUMED = (
    "drawn by Spark executors; every residual was committed once, by a hard link on a file system "
    "that all of them share, before anything was made of it"
)
_BYTES_OF_PIECES = 2**9  # most bytes of a record per 2^20 cells, for file names and their sha256
_MOST_PATTERNS = 2**10  # most sets of attributes in a witness
_CELLS_AT_ONCE = 2**22  # most cells whose deviations are computed in one step
_LIBRARIES = ("gaussnoise", "opendp", "numpy", "narwhals", "pyarrow", "duckdb")


def release_record(release: AbstractRelease, answers: Mapping[int, str]) -> dict[str, object]:
    """Return the content of ``release.json``; nothing in it depends on the data."""
    plan, query = release.plan, release.query
    facts, contrasts = facts_of(plan), contrasts_of(plan)
    entries = "cells'" if plan.domain.is_cells else "answers' (with their entry's root mean square)"
    objective = (
        f"p-norm of all {entries} weighted standard deviations at unit sensitivity, p = "
        f"{plan.noise.p:g}"
    )
    implied = {
        "epsilon": facts.epsilon(release.rho_charged),
        "delta": SHOWN_DELTA,
        "method": EPSILON_METHOD,
        "epsilon_through_zcdp": zCDP(release.rho_charged).epsilon(SHOWN_DELTA)
        if release.rho_charged
        else 0.0,
        **holds(plan.privacy.scales),
    }
    return {
        "format": FORMAT,
        "private": release.private,
        **({"about": said} if (said := plan.about.stated) else {}),
        "neighbors": plan.neighbors,
        "neighbors_meaning": facts.relation,
        **({"published_exactly": facts.exact} if plan.public else {}),
        "privacy_unit": facts.unit,
        "rows_per_person": plan.rows_per_person,
        "person": plan.person,
        **({"per_person": plan.per_person} if plan.per_person else {}),
        "rows_counted": facts.counted,
        "on_outside": release.on_outside,
        **({"without_time_zone": release.without_zone} if release.without_zone else {}),
        "privacy": facts.privacy,
        "rho": release.rho_charged if release.private else None,
        "epsilon_delta": implied if release.private else None,
        "domain": [
            {"name": a.name, "labels": list(a.labels)}
            | ({"edges": [str(e) for e in a.edges]} if a.edges else {})
            | ({"clip": list(a.clip)} if a.clip else {})
            | ({"unit": a.unit} if a.unit else {})
            | ({"base": base_value(a.base, a)} if a.base else {})
            | ({"groups": group_record(a)} if a.groups else {})
            for a in plan.schema.attributes
        ],
        "optimality": {
            "objective": objective,
            "gamma": plan.bracket[1],
            "gamma_lower": plan.bracket[0],
            "certified_gap": plan.gap,
            "lower_bound": None if plan.public else plan.bound.as_dict(plan.error),
            "method": plan.noise.method,
            **_witness_record(plan),
        },
        "noise": {
            "query": (
                "for every measured set T of attributes, multiplier_T * kron(C_i, i in T) on its "
                "marginal counts; "
                "C_i = (1, -1) for two categories, n I - 1 1^T for n > 2"
                + (", unless contrasts_i are listed" if contrasts else "")
                + (" (for some T: contrasts_in_sets)" if CONTRASTS[1] in contrasts else "")
                + "; discrete Gaussian noise on every integer"
            ),
            **contrasts,
            **({} if query.unit == 1 else {"unit": _unit_record(plan)}),
            "integer_sensitivity_squared": query.query.sensitivity_squared if query.query else 0,
            "sigma": query.query.scale if query.query else 0.0,
            "rho_of_one_row": query.query.rho if query.query else 0.0,
        },
        "plan": plan.asked.record(),
        "request_sha256": plan.request_sha256,
        "intervals": interval_record(),
        **({} if plan.domain.is_cells else {"workload": _entries(release, answers)}),
        "marginals": None,  # filled in after the tables are written
        "measurements": None,
        "files": None,
        "libraries": dict(versions(*_LIBRARIES)),
        "disclaimers": disclaimers(release),
    }


def _witness_record(plan: "Plan") -> dict[str, object]:
    """Return the proof of ``gamma_lower`` if it is short and rows are replaced; else {}."""
    proof = plan.noise.certificate
    if not isinstance(proof, MarginalCertificate) or proof.protected != "replace":
        return {}
    classes, differing = proof.workload().moving.classes, list[dict[str, object]]()
    for counts, weight in zip(proof.patterns.tolist(), proof.pattern_weights.tolist(), strict=True):
        ways = math.prod(math.comb(len(own), j) for own, j in zip(classes, counts, strict=True))
        if ways + len(differing) > _MOST_PATTERNS:
            return {}
        chosen = [itertools.combinations(own, j) for own, j in zip(classes, counts, strict=True)]
        for sets in itertools.product(*chosen):
            # the attributes in which two rows differ
            names = [plan.schema.names[i] for i in sorted(itertools.chain(*sets))]
            differing.append({"differing": names, "weight": weight / ways})
    return {"witness": differing}


def _unit_record(plan: "Plan") -> dict[str, object]:
    """Return the part of the record that explains the integer units in which tables count."""
    meaning = (
        "a row adds so many units to the integer counts of every table, spread over the virtual "
        "cells of a clipped number x: t of them on the last cell and 1 - t on the first, t = (x - "
        "low) / (high - low) in steps of 1 / unit; with three cells, (1 - t)^2, 2 t (1 - t), t^2"
    )
    if plan.weight is not None:
        meaning += "; a row of weight w adds w / most of it"
    weight = {} if plan.weight is None else {"weight": dataclasses.asdict(plan.weight)}
    return {"units_of_a_row": plan.unit, "meaning": meaning, **weight}


def _entries(release: AbstractRelease, answers: Mapping[int, str]) -> list[dict[str, object]]:
    """Return the record's list of workload entries, each with queries, weight and accuracy."""
    plan = release.plan
    entries = zip(plan.domain.terms, plan.domain.weights, plan.deviations, strict=True)
    return [
        {
            "name": plan.entries[k],
            "bases": {
                plan.schema.names[i]: base_value(base, plan.schema.attributes[i])
                for i, base in term
            },
            "answers": math.prod(base.queries for _, base in term),
            "weight": weight,
            "root_mean_square_deviation": float(deviation),
            "file": answers.get(k),
        }
        for k, (term, weight, deviation) in enumerate(entries)
    ]


def marginal_records(release: AbstractRelease) -> list[dict[str, object]]:
    """Return the record's list of released tables, without the file of each table."""
    plan = release.plan
    return [
        {
            "attributes": list(marginal),
            "cells": plan.tables.cells(S),
            **({"weight": plan.domain.weights[k]} if plan.domain.is_cells else {}),
            **_deviation_record(release, S),
        }
        for k, (marginal, S) in enumerate(zip(release, plan.tables.subsets, strict=True))
    ]


def _deviation_record(release: AbstractRelease, S: Subset) -> dict[str, object]:
    """Return the recorded standard deviation: one for all cells, or [smallest, largest]."""
    pieces = boxes([release.plan.schema.sizes[i] for i in S], _CELLS_AT_ONCE) if S else [()]
    if not (one := release.deviation(S, pieces[0])).ndim:
        return {"standard_deviation": float(one)}
    least, most = math.inf, 0.0
    for box in pieces:
        deviations = release.deviation(S, box)
        least, most = min(least, float(deviations.min())), max(most, float(deviations.max()))
    return {"standard_deviation": [least, most]}


def measurement_records(release: AbstractRelease) -> list[dict[str, object]]:
    """Return the record's list of noisy measurements of a release."""
    return measurements_of(release.plan.schema.names, release.query)


def measurements_of(names: Sequence[str], query: "ResidualQuery") -> list[dict[str, object]]:
    """Return the record's list of noisy measurements, one for each set of attributes measured."""
    return [
        # as text, since multipliers exceed 64 bits for extreme budgets
        {"attributes": [names[i] for i in T], "multiplier": str(multiplier)}
        for T, multiplier in query.multipliers.items()
    ]


def contrasts_of(plan: "Plan") -> dict[str, object]:
    """Return the contrast matrices of attributes whose strategy was solved for, rows as text.

    The entry ``contrasts`` has those of attributes, and ``contrasts_in_sets`` those of an attribute
    in the measurements of some sets of attributes.
    """
    names, of_attributes, in_sets = plan.schema.names, dict[str, object](), list[object]()
    for name, strategy in zip(names, plan.strategies, strict=True):
        if isinstance(strategy, SolvedStrategy):
            of_attributes[name] = _rows(strategy)
            sets: dict[SolvedStrategy, list[list[str]]] = {}
            for T, other in strategy.by_set.items():
                sets.setdefault(other, []).append([names[i] for i in T])
            in_sets += [
                {"attribute": name, "sets": listed, "contrasts": _rows(other)}
                for other, listed in sets.items()
            ]
    found = dict(zip(CONTRASTS, (of_attributes, in_sets), strict=True))
    return {key: value for key, value in found.items() if value}


def _rows(strategy: SolvedStrategy) -> list[str]:
    return [" ".join(map(str, row)) for row in strategy.contrasts.tolist()]


def most_bytes(plan: "Plan") -> int:
    """Return an upper bound on the length of the record of a release, in bytes."""
    texts = [
        str(label)
        for a in plan.schema.attributes
        for label in (a.name, *a.labels, *(a.edges or ()), *group_texts(a))
    ]
    terms, attributes = () if plan.domain.is_cells else plan.domain.terms, plan.schema.attributes
    asked = [(a.base, a) for a in attributes if a.base]
    asked += [(base, attributes[i]) for term in terms for i, base in term]
    texts += [json.dumps(base_value(base, a)) for base, a in asked]
    contrasts = len(json.dumps(contrasts_of(plan)))
    entries = len(terms) + min(len(plan.tables.subsets), MOST_FILES)
    names = entries * sum(len(a.name) for a in plan.schema.attributes)
    return (
        MOST_RECORD
        + 64 * (sum(map(len, texts)) + len(texts))
        + 2 * contrasts
        + 4096 * entries
        + 8 * names
        + _BYTES_OF_PIECES * plan.tables.dim // 2**20
    )
