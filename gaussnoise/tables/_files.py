"""A release on disk: all of it, or nothing."""

import contextlib
import importlib.metadata
import json
import os
import re
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from ..errors import OutputError, ParameterError
from ..privacy import zCDP
from ._text import SHOWN_DELTA, disclaimers, relation_text, release_text

if TYPE_CHECKING:
    from ._release import TableRelease

FileFormat = Literal["csv", "parquet"]
_LIBRARIES = ("gaussnoise", "opendp", "numpy", "narwhals", "pyarrow", "duckdb")


def check_target(directory: str | os.PathLike[str] | None, format: str) -> None:
    """Refuse a directory that exists, a parent that cannot be written, or an unknown format."""
    if format not in get_args(FileFormat):
        raise ParameterError(f'save: expected format "csv" or "parquet", got {format!r}')
    if directory is None:
        return
    target = Path(directory)
    if os.path.lexists(target):
        raise OutputError(f"save: {target} exists already; hint: name a new directory")
    if not target.parent.is_dir() or not os.access(target.parent, os.W_OK):
        raise OutputError(f"save: cannot write to {target.parent}; hint: name a directory inside an existing one")


@contextlib.contextmanager
def staged(directory: str | os.PathLike[str]) -> Iterator[Path]:
    """A scratch directory that becomes ``directory`` at the end, and vanishes on failure."""
    target = Path(directory)
    scratch = target.parent / f".{target.name}.{os.getpid()}.partial"
    try:
        scratch.mkdir()
    except OSError as error:
        raise OutputError(f"save: cannot write to {target.parent} ({type(error).__name__})") from None
    try:
        yield scratch
        for path in scratch.rglob("*"):
            if path.is_file():
                with open(path, "rb") as file:
                    os.fsync(file.fileno())
        scratch.rename(target)
    except OSError as error:
        raise OutputError(f"save: could not complete {target} ({type(error).__name__}); nothing was kept") from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def write_release(release: "TableRelease", folder: Path, format: FileFormat) -> None:
    """All files of a release."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    from ..plots import plot_release

    (folder / "tables").mkdir()
    names = file_names(release, format)
    for marginal, name in zip(release, names, strict=True):
        table = pa.table(release[marginal].columns())
        if format == "csv":
            csv.write_csv(table, folder / name)
        else:
            parquet.write_table(table, folder / name)
    record = json.dumps(release_record(release, names), indent=2, ensure_ascii=False)
    (folder / "release.json").write_text(record + "\n", encoding="utf-8")
    (folder / "summary.txt").write_text(release_text(release) + "\n", encoding="utf-8")
    with contextlib.suppress(Exception), warnings.catch_warnings():  # a label it cannot draw must not undo a release
        warnings.filterwarnings("ignore", "Glyph .* missing")
        plot_release(release).savefig(folder / "release.png", dpi=150)


def file_names(release: "TableRelease", format: FileFormat) -> list[str]:
    """One path per marginal, numbered so that no two can collide whatever characters are dropped."""
    width = len(str(len(release)))
    slugs = ["-by-".join(re.sub(r"[^\w.-]+", "_", name) for name in marginal) or "total" for marginal in release]
    short = [slug.encode()[:100].decode(errors="ignore") for slug in slugs]  # file systems count bytes
    return [f"tables/{k:0{width}}-{slug}.{format}" for k, slug in enumerate(short, 1)]


def release_record(release: "TableRelease", names: list[str]) -> dict[str, object]:
    """What a machine, or an auditor, needs to know; nothing in it depends on the data but the estimates' files."""
    plan = release.plan
    implied = {
        "epsilon": zCDP(release.rho_charged).epsilon(SHOWN_DELTA),
        "delta": SHOWN_DELTA,
        "method": "OpenDP's conversion from zCDP",
    }
    return {
        "format": "gaussnoise.tables/1",
        "private": release.private,
        "neighbors": plan.neighbors,
        "neighbors_meaning": relation_text(plan),
        "privacy_unit": "one row" if plan.rows_per_person == 1 else "one person",
        "rows_per_person": plan.rows_per_person,
        "privacy": plan.privacy.as_dict(),
        "rho": release.rho_charged if release.private else None,
        "epsilon_delta": implied if release.private else None,
        "domain": [
            {"name": a.name, "labels": list(a.labels)} | ({"edges": [str(e) for e in a.edges]} if a.edges else {})
            for a in plan.schema.attributes
        ],
        "marginals": [
            {
                "attributes": list(marginal),
                "file": name,
                "weight": weight,
                "standard_deviation": float(release[marginal].standard_deviation.flat[0]),
            }
            for marginal, name, weight in zip(release, names, plan.domain.weights, strict=True)
        ],
        "optimality": {
            "objective": f"p-norm of all cells' weighted standard deviations at unit sensitivity, p = {plan.noise.p:g}",
            "gamma": plan.noise.gamma,
            "gamma_lower": plan.noise.gamma_lower,
            "certified_gap": plan.noise.gap,
            "method": plan.noise.method,
        },
        "measurements": [
            {
                "attributes": [plan.schema.names[i] for i in T],
                "query": "2^lattice_bits * kron(n_i I - 1 1^T) on the marginal counts",
                "integer_sensitivity_squared": query.query.sensitivity_squared,
                "lattice_bits": query.bits,
                "sigma": query.query.scale,
                "rho": query.query.rho,
            }
            for T, query in release.queries.items()
        ],
        "libraries": {name: importlib.metadata.version(name) for name in _LIBRARIES},
        "disclaimers": disclaimers(release),
    }
