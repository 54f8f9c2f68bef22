"""The ``.npz`` file of an answer, with plain arrays and a JSON header, without pickles."""

import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from domains.description import describe, rebuild
from domains.domain import AbstractDomain, AbstractFiniteDomain
from domains.errors import UnknownClassError
from domains.sets.stream import StreamWorkload
from domains.tables.marginals import Marginals
from domains.tables.products import Products

from ..errors import CertificateError, OutputError
from ..files.archive import DAMAGE, Arrays, damaged, read_arrays, write_arrays
from ..solvers.progress import Progress
from .agreement import ReplaceWithin
from .certificates.axes import AxesCertificate
from .certificates.certificate import Certificate
from .certificates.chains import ChainCertificate
from .certificates.kronecker import KroneckerCertificate
from .certificates.marginals import MarginalCertificate
from .certificates.participations import ParticipationCertificate
from .certificates.points import PointCertificate
from .certificates.products import ProductCertificate
from .certificates.streams import StreamCertificate
from .certificates.tensors import TensorCertificate
from .covariance import AbstractCovariance, FactorCovariance
from .kronecker_covariance import KroneckerCovariance
from .marginal_covariance import MarginalCovariance
from .policy import PolicyGraph
from .problem import Problem
from .product_covariance import ProductCovariance
from .stream_covariance import StreamCovariance

if TYPE_CHECKING:
    from .optimal_noise import OptimalNoise

_FORMAT = "gaussnoise.noise/4"
_DOMAIN = "domain."  # prefix for the names of a domain's arrays
INTEGERS = (
    "policy_edges",
    "certificate_rows",
    "patterns",
    "contrasts",
    "participations",
    "cell_parts",
    "cell_pairs",
)
_SCALARS = (
    "p",
    "neighbors",
    "shifted",
    "gamma",
    "gamma_lower",
    "sensitivity_squared",
    "method",
    "steps",
)


def write(noise: "OptimalNoise", path: str | os.PathLike[str]) -> None:
    """Write ``noise`` to a file from which :func:`read` returns the same numbers, bit for bit."""
    header, arrays = described(noise)
    write_arrays(path, header | {"format": _FORMAT}, arrays)


def described(noise: "OptimalNoise") -> tuple[dict[str, Any], Arrays]:
    """Return all contents of an answer for a file: a header for JSON, and arrays."""
    header: dict[str, Any] = {name: getattr(noise, name) for name in _SCALARS}
    header["status"] = noise.status.name
    arrays: Arrays = {"center": noise.center}
    if not (
        any(noise.center.strides) or noise.center[:1].any()
    ):  # a single zero stands for all of them, as in memory
        header["center"], arrays = "zeros", {}
    if isinstance(noise.neighbors, PolicyGraph):
        header["neighbors"] = "policy graph"
        arrays["policy_edges"] = noise.neighbors.edges
    if isinstance(noise.neighbors, ReplaceWithin):
        header["neighbors"] = "replace within"
        header["public"] = list(noise.neighbors.public)
    header["domain"], parts = describe(noise.domain)
    arrays |= {_DOMAIN + name: array for name, array in parts.items()}
    for part in (noise.covariance, noise.certificate):
        own, numbers = part.encode()
        header |= own
        arrays |= numbers
    arrays["trace"] = np.array([[now.steps, now.lower, now.upper] for now in noise.trace]).reshape(
        -1, 3
    )
    return header, arrays


def read(path: str | os.PathLike[str]) -> "OptimalNoise":
    """Read an answer that :func:`write` stored, and verify it."""
    try:
        noise = verified(rebuilt(*read_arrays(path, _FORMAT, INTEGERS)))
    except (CertificateError, OutputError):
        raise
    except DAMAGE as error:
        reason = type(error).__name__
    else:
        if isinstance(noise.neighbors, PolicyGraph):
            noise.neighbors.warn("load", stacklevel=3)
        return noise
    raise damaged(path, "OptimalNoise.save", reason)


def verified(noise: "OptimalNoise") -> "OptimalNoise":
    """Return the answer after its verification, in which an overflow is a failure."""
    with np.errstate(all="ignore"):
        noise.verify()
    return noise


def rebuilt(header: dict[str, Any], arrays: dict[str, Any]) -> "OptimalNoise":
    """Return the answer that :func:`described` wrote, without verification: it may be forged."""
    from .optimal_noise import OptimalNoise, Status

    _check_types(header)
    parts = {
        name.removeprefix(_DOMAIN): array
        for name, array in arrays.items()
        if name.startswith(_DOMAIN)
    }
    try:
        domain = rebuild(header["domain"], parts)
    except UnknownClassError as error:
        raise CertificateError(str(error)) from None
    if header["neighbors"] == "policy graph":
        if not isinstance(domain, AbstractFiniteDomain):
            raise CertificateError("load: expected a policy graph on listed points")
        header["neighbors"] = PolicyGraph.from_edges(
            arrays["policy_edges"], domain.to_finite_set().points
        )
    if header["neighbors"] == "replace within":
        header["neighbors"] = ReplaceWithin(tuple(header["public"]))
        header["neighbors"].check("load", domain)
    problem = Problem(domain, header["p"], header["neighbors"], header["shifted"])
    noise, proof = _stored_classes(domain, header, arrays)
    covariance = noise.decode(domain, header, arrays)
    center = (
        np.broadcast_to(0.0, domain.dim) if header.get("center") == "zeros" else arrays["center"]
    )
    if center.shape != (domain.dim,) or covariance.dim != domain.dim:
        raise CertificateError("load: the covariance belongs to another domain")
    return OptimalNoise(
        domain=domain,
        covariance=covariance,
        center=center,
        certificate=proof.decode(problem, header, arrays),
        status=Status[header["status"]],
        trace=tuple(
            Progress(int(steps), lower, upper) for steps, lower, upper in arrays["trace"].tolist()
        ),
        **{name: header[name] for name in _SCALARS},
    )


def _check_types(header: dict) -> None:
    """Raise CertificateError unless every scalar in the file's header has the expected type."""
    numbers = [header[name] for name in ("p", "gamma", "gamma_lower", "sensitivity_squared")]
    numbers += [header["scale"]] if "scale" in header else []
    finite = numbers[1:]
    if (
        header["neighbors"] not in ("replace", "add-remove", "policy graph", "replace within")
        or not isinstance(header["shifted"], bool)
        or not isinstance(header["method"], str)
        or not (type(header["steps"]) is int and header["steps"] >= 0)
        or not all(type(x) in (int, float) and x >= 0 for x in numbers)
        or not all(math.isfinite(x) for x in finite)
    ):
        raise CertificateError(
            "load: expected numbers, a relation and a method; the header holds something else"
        )


def _stored_classes(
    domain: AbstractDomain, header: dict, arrays: dict
) -> tuple[type[AbstractCovariance], type[Certificate]]:
    """Return the classes of the covariance and of the certificate that are stored in a file."""
    if isinstance(domain, Products) and "strategies" in header:
        return ProductCovariance, ProductCertificate
    if isinstance(domain, Marginals) and "variances" in header:
        return MarginalCovariance, MarginalCertificate
    if isinstance(domain, StreamWorkload) and "stream_weights" in arrays:
        return StreamCovariance, StreamCertificate
    if "covariances" in header:
        return KroneckerCovariance, KroneckerCertificate
    if "participations" in arrays:
        return FactorCovariance, ParticipationCertificate
    if "chain_steps" in arrays:
        return FactorCovariance, ChainCertificate
    if "axes_share" in header:
        return FactorCovariance, AxesCertificate
    return FactorCovariance, TensorCertificate if "tensor_atoms" in arrays else PointCertificate
