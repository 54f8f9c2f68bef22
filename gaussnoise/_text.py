"""Released estimates, said in words."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SHOWN = 8  # coordinates


def promise(privacy: Mapping[str, object], private: bool) -> str:
    """The definition and its numbers, from the record of a release: ``zCDP, rho = 0.1``."""
    numbers = [name for name in ("epsilon", "delta", "mu", "alpha") if name in privacy] or ["rho"]
    said = [str(privacy.get("definition", "no promise on record"))]
    said += [f"{name} = {privacy[name]}" for name in numbers if name in privacy]
    return ("" if private else "NOT PRIVATE, a simulation of ") + ", ".join(said)


def estimate_text(
    title: str, estimate: Array, privacy: Mapping[str, object], private: bool, sd: Array | None = None
) -> str:
    """What ``print`` shows of an estimate: the first coordinates, ± the standard deviations where they are known."""
    neighbors = f", under {privacy['neighbors']}" if "neighbors" in privacy else ""
    lines = [f"{title}: {estimate.size} coordinates", f"privacy  {promise(privacy, private)}{neighbors}"]
    if sd is None:
        lines += [f"{x:>14.8g}" for x in estimate[:_SHOWN]]
    else:
        lines += [f"{x:>14.8g} ± {deviation:.4g}" for x, deviation in zip(estimate[:_SHOWN], sd, strict=False)]
    if estimate.size > _SHOWN:
        lines.append(f"… and {estimate.size - _SHOWN} more")
    if sd is not None:
        lines.append(f"± one standard deviation; root of the total variance, ‖sd‖₂: {np.linalg.norm(sd):.4g}")
    return "\n".join(lines)
