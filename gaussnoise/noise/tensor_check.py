"""The check of the closed form for tensor powers, from stored numbers."""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from domains import AbstractDomain, TensorPower
from domains.algebra.combinators import Scaled, Translate

from ..errors import CertificateError
from ..solvers.bodies.harmonics import enclosure, harmonic_bases, multiplicity
from .covariance import FactorCovariance
from .tensor_certificate import TensorCertificate

if TYPE_CHECKING:
    from .optimal_noise import OptimalNoise

Array = NDArray[np.float64]

# harmonic tensors are computed: columns of the factor may leave their degree by this much, relative to their length
ASTRAY = 1e-11


def check_tensor(noise: "OptimalNoise") -> tuple[float, float]:
    """The largest z' M⁺ z over the set, and γ, from the stored factor; a CertificateError if its shape is wrong."""
    witness = noise.certificate
    power, scale, shift = stripped(noise.domain)
    kind = noise.problem.protected
    if (
        power is None
        or not isinstance(witness, TensorCertificate)
        or not isinstance(noise.covariance, FactorCovariance)
        or (witness.domain.base, witness.domain.order) != (power.base, power.order)
        or kind is None
        or witness.kind != kind
        or witness.scale != abs(scale)
        or (kind == "add-remove" and shift.any())
        or noise.p != 2
    ):
        raise CertificateError("verify: the closed form of tensor powers belongs to another problem")
    factor = noise.covariance.unit_factor
    bases = harmonic_bases(power)
    degrees, start = {}, 0
    for j, basis in bases.items():
        columns = factor[:, start : start + multiplicity(power.base, j)]
        start += columns.shape[1]
        gram = columns.T @ columns
        mean = float(gram.trace()) / max(len(gram), 1)
        astray = float(np.linalg.norm(gram - mean * np.eye(len(gram))))
        astray += 2 * float(np.linalg.norm(columns - basis @ (basis.T @ columns))) * math.sqrt(max(mean, 0.0))
        degrees[j] = mean - astray
        if columns.shape[1] != basis.shape[1] or not (0 < degrees[j] and astray <= ASTRAY * mean):
            raise CertificateError("verify: the factor's columns are not harmonic tensors of one length a degree")
    if start != factor.shape[1]:
        raise CertificateError("verify: the factor has more columns than there are harmonic tensors")
    share, lost = 0.0, 0.0
    if noise.shifted:
        mean = bases[0][:, 0] * bases[0][0, 0] if power.order % 2 == 0 else np.zeros(power.dim)
        share = float((noise.center - shift) @ mean) / scale / float(mean @ mean or 1.0)
        beside = noise.center - shift - scale * share * mean
        if not np.linalg.norm(beside) <= 1e-14 * (np.abs(shift).max() + abs(scale)) * math.sqrt(power.dim):
            raise CertificateError("verify: the center is not a multiple of the mean over the sphere")
        lost = float(np.linalg.norm(beside)) / math.sqrt(min(degrees.values()))
    longest = math.sqrt(enclosure(power, degrees, kind, share)) * abs(scale) + lost
    return (longest / noise.covariance.scale) ** 2, noise.covariance.error(2)


def stripped(domain: AbstractDomain) -> tuple[TensorPower | None, float, Array]:
    """T, c and v of a domain c · T + v."""
    shift, scale = np.zeros(domain.dim), 1.0
    if isinstance(domain, Translate):
        domain, shift = domain.body, domain.shift
    if isinstance(domain, Scaled):
        domain, scale = domain.body, domain.factor
    return (domain if isinstance(domain, TensorPower) else None), scale, shift
