"""The arguments of a plan as plain data, from which a release on disk can be planned again."""

import dataclasses
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domains import Identity, Marginals

from ...errors import GaussNoiseError, NotAvailableError, OutputError
from ...files.disk import MALFORMED, read_json
from ...privacy.guarantee import AbstractPrivacy
from ..schema.bases import base_value
from ..schema.numbers import Weight
from ..schema.schema import Schema
from .targets import Target

if TYPE_CHECKING:
    from .plan import Plan


def asked_of(plan: "Plan") -> dict[str, object]:
    """Return the arguments of :func:`plan` as plain data."""
    return {
        "schema": plan.schema.to_toml(),
        "workload": _workload(plan),
        "privacy": plan.privacy.stated(),
        "neighbors": plan.neighbors,
        "p": str(plan.noise.p),  # JSON has no infinity
        "weights": None if plan.targets is not None else list(plan.domain.weights),
        "targets": None
        if plan.targets is None
        else [None if target is None else dataclasses.asdict(target) for target in plan.targets],
        "rows_per_person": plan.rows_per_person,
        "person": plan.person,
        **({} if not plan.public else {"public": list(plan.public)}),
        **({} if plan.weight is None else {"weight": dataclasses.asdict(plan.weight)}),
    }


def planned_again(directory: str | os.PathLike[str]) -> "Plan":
    """Return the plan of a release on disk, made from its record; no equality is checked."""
    folder = Path(directory)
    try:
        record = read_json(folder / "release.json")
    except (OSError, ValueError) as error:
        raise OutputError(
            f"load: {folder} is not a complete release ({type(error).__name__}){_hint(folder)}"
        ) from None
    return planned_from(record, folder)


def _hint(folder: Path) -> str:
    """Return a hint about what a folder without a release may be."""
    if (folder / "stream.json").exists():
        return f"; hint: it is a stream: gaussnoise report {folder}, or gn.streams.Stream.open"
    if not folder.exists():
        return "; hint: there is no such folder"
    return "; hint: expected the folder that a release was written to, with its release.json"


def planned_from(record: Any, folder: Path) -> "Plan":
    """Return the plan that a record from this folder describes."""
    from .door import plan

    try:
        asked, writer = record.get("plan"), record["libraries"]["gaussnoise"]
        if asked is None:
            raise OutputError(
                f"load: {folder} does not say how it was planned, as releases of earlier versions "
                "do not; hint: load(directory, plan), planned again with the same arguments"
            )
        text, targets = asked["schema"], asked["targets"]
        if not isinstance(text, str):
            raise TypeError
        arguments: dict[str, Any] = {
            "workload": asked["workload"],
            "privacy": _privacy(asked["privacy"], folder),
            "neighbors": asked["neighbors"],
            "rows_per_person": asked["rows_per_person"],
            "person": asked.get("person"),  # releases of earlier versions do not have it
        }
        if asked.get("public"):
            arguments["public"] = asked["public"]
        if asked.get("weight") is not None:
            arguments["weight"] = Weight(**asked["weight"])
        if targets is None:
            arguments |= {"p": float(asked["p"]), "weights": asked["weights"]}
        else:
            arguments["targets"] = [
                None if target is None else Target(**target) for target in targets
            ]
    except OutputError:
        raise
    except MALFORMED as error:
        raise OutputError(
            f"load: {folder} is not a complete release ({type(error).__name__})"
        ) from None
    try:
        return plan(Schema.loads(text), **arguments)
    except (GaussNoiseError, TypeError, ValueError, OverflowError) as error:
        raise OutputError(
            f"load: {folder} cannot be planned again by this version: {error}; hint: gaussnoise "
            f"{writer} wrote it; its files can be read as they are"
        ) from None


def _workload(plan: "Plan") -> int | list[list[str]] | list[dict[str, object]]:
    """Return k, attribute names, or maps of names to bases other than the attributes' own."""
    attributes, domain = plan.schema.attributes, plan.domain
    if all(attribute.base is None for attribute in attributes) and domain.is_cells:
        k = len(domain.subsets[0])
        several = len(domain.subsets) == math.comb(len(attributes), k)
        if several and domain.subsets == Marginals.all_kway(domain.sizes, k).subsets:
            return k
        return [[attributes[i].name for i in S] for S in domain.subsets]
    entries: list[dict[str, object]] = []
    for term in domain.terms:
        own = [base == (attributes[i].base or Identity(attributes[i].size)) for i, base in term]
        entries.append(
            {
                attributes[i].name: None if same else base_value(base, attributes[i])
                for (i, base), same in zip(term, own, strict=True)
            }
        )
    return entries


def _privacy(asked: Mapping[str, Any], folder: Path) -> AbstractPrivacy:
    try:
        return AbstractPrivacy.read(asked)
    except NotAvailableError as error:
        raise OutputError(
            f"load: {folder} was planned for a privacy guarantee of its own: {error}, or "
            "load(directory, plan), planned again with the same arguments"
        ) from None
