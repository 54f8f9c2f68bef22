"""The command that finds the best noise for a matrix of queries."""

from pathlib import Path
from typing import Annotated, Any

import typer

from domains import FiniteSet

from ..errors import OutputError, ParameterError
from ..noise.optimal_noise import OptimalNoise
from ..noise.solve import optimal_noise
from ..text import number_of
from .console import ERR, check_new, say, show
from .documents import noise_document
from .matrix import read_matrix
from .options import Json, Neighbors, Norm, check_norm
from .patience import patience


def show_noise(
    workload: Annotated[
        Path,
        typer.Argument(
            help="Matrix of queries by cells: .npy, .npz or .mtx (also sparse), or CSV of "
            "numbers alone."
        ),
    ],
    neighbors: Neighbors = "add-remove",
    p: Norm = 2,
    tol: Annotated[float, typer.Option("--tol", help="Relative gap to certify.")] = 1e-6,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write the noise to, .npz.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Find the best noise for a workload of counting queries. Needs no data."""
    check_norm("optimize", p)
    if out is not None and out.suffix != ".npz":
        raise ParameterError(f"optimize: expected --out FILE.npz, got {out}")
    check_new("optimize", out)
    relation: Any = neighbors
    with patience(ERR, "solving") as tell:
        noise = optimal_noise(
            FiniteSet.from_workload(read_matrix(workload, "optimize")),
            p,
            neighbors=relation,
            tol=tol,
            progress=lambda now: tell(f"solving, gap {now.gap:.1e}"),
        )
    if out is not None:
        _save_noise(noise, out)
    if as_json:
        return show(noise_document(noise, neighbors, p, out))
    deviations = noise.covariance.standard_deviation()
    queries = number_of(len(deviations), "query", "queries")
    say(f"{queries}, {neighbors} neighbours, p = {p:g}: {noise.method}")
    say(
        f"least error at unit sensitivity: {noise.gamma_lower:.8g} <= gamma <= {noise.gamma:.8g}, "
        f"gap {noise.gap:.1e}"
    )
    say(
        f"standard deviations of the answers from {deviations.min():.6g} to "
        f"{deviations.max():.6g}, over sqrt(2 rho)"
    )
    say(f'in Python: optimal_noise(..., neighbors="{neighbors}"), whose own default is "replace"')
    if neighbors == "replace":
        say("of sums; divide by the public number of records for means")
    if out is not None:
        say(f"wrote {out}: gaussnoise.OptimalNoise.load reads and verifies it")


def _save_noise(noise: OptimalNoise, out: Path) -> None:
    try:
        noise.save(out)
    except OSError as error:
        raise OutputError(f"optimize: cannot create {out} ({type(error).__name__})") from None
